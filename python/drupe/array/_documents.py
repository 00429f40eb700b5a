"""What help() says of the operations of the table: the engine asks for it when somebody reads it."""

# How an operation is called, and what comes out, as Python prints it.
_EXAMPLES = {
    "abs": ("da.abs(da.asarray([-1, 2]))", "[1, 2]"),
    "acos": ("da.acos(da.asarray([1.0]))", "[0.0]"),
    "acosh": ("da.acosh(da.asarray([1.0]))", "[0.0]"),
    "add": ("da.add(da.asarray([1, 2]), 10)", "[11, 12]"),
    "all": ("da.all(da.asarray([[True, False], [True, True]]), axis=1)", "[False, True]"),
    "any": ("da.any(da.asarray([[True, False], [False, False]]), axis=1)", "[True, False]"),
    "angle": ("da.angle(da.asarray([1j]))", "[1.5707963267948966]"),
    "asin": ("da.asin(da.asarray([0.0]))", "[0.0]"),
    "asinh": ("da.asinh(da.asarray([0.0]))", "[0.0]"),
    "atan": ("da.atan(da.asarray([0.0]))", "[0.0]"),
    "atan2": ("da.atan2(da.asarray([0.0]), 1.0)", "[0.0]"),
    "atanh": ("da.atanh(da.asarray([0.0]))", "[0.0]"),
    "bitwise_and": ("da.bitwise_and(da.asarray([6, 5]), 3)", "[2, 1]"),
    "bitwise_invert": ("da.bitwise_invert(da.asarray([0, 5]))", "[-1, -6]"),
    "bitwise_left_shift": ("da.bitwise_left_shift(da.asarray([1, 3]), 2)", "[4, 12]"),
    "bitwise_or": ("da.bitwise_or(da.asarray([6, 5]), 3)", "[7, 7]"),
    "bitwise_right_shift": ("da.bitwise_right_shift(da.asarray([4, -4]), 1)", "[2, -2]"),
    "bitwise_xor": ("da.bitwise_xor(da.asarray([6, 5]), 3)", "[5, 6]"),
    "ceil": ("da.ceil(da.asarray([1.2, -1.2]))", "[2.0, -1.0]"),
    "conj": ("da.conj(da.asarray([1 + 2j]))", "[(1-2j)]"),
    "copysign": ("da.copysign(da.asarray([1.0, 2.0]), -1.0)", "[-1.0, -2.0]"),
    "cos": ("da.cos(da.asarray([0.0]))", "[1.0]"),
    "cosh": ("da.cosh(da.asarray([0.0]))", "[1.0]"),
    "count_nonzero": ("da.count_nonzero(da.asarray([[0, 1], [2, 3]]), axis=1)", "[1, 2]"),
    "divide": ("da.divide(da.asarray([1, 3]), 2)", "[0.5, 1.5]"),
    "equal": ("da.equal(da.asarray([1, 2]), 2)", "[False, True]"),
    "exp": ("da.exp(da.asarray([0.0]))", "[1.0]"),
    "expm1": ("da.expm1(da.asarray([0.0]))", "[0.0]"),
    "floor": ("da.floor(da.asarray([1.7, -1.2]))", "[1.0, -2.0]"),
    "floor_divide": ("da.floor_divide(da.asarray([7, -7]), 2)", "[3, -4]"),
    "gcd": ("da.gcd(da.asarray([12, 7]), 8)", "[4, 1]"),
    "greater": ("da.greater(da.asarray([1, 3]), 2)", "[False, True]"),
    "greater_equal": ("da.greater_equal(da.asarray([1, 2]), 2)", "[False, True]"),
    "hypot": ("da.hypot(da.asarray([3.0]), 4.0)", "[5.0]"),
    "imag": ("da.imag(da.asarray([1 + 2j]))", "[2.0]"),
    "isfinite": ("da.isfinite(da.asarray([1.0, da.inf]))", "[True, False]"),
    "isinf": ("da.isinf(da.asarray([1.0, da.inf]))", "[False, True]"),
    "isnan": ("da.isnan(da.asarray([1.0, da.nan]))", "[False, True]"),
    "lcm": ("da.lcm(da.asarray([4, 7]), 6)", "[12, 42]"),
    "less": ("da.less(da.asarray([1, 2]), 2)", "[True, False]"),
    "less_equal": ("da.less_equal(da.asarray([2, 3]), 2)", "[True, False]"),
    "log": ("da.log(da.asarray([1.0]))", "[0.0]"),
    "log10": ("da.log10(da.asarray([1.0]))", "[0.0]"),
    "log1p": ("da.log1p(da.asarray([0.0]))", "[0.0]"),
    "log2": ("da.log2(da.asarray([8.0]))", "[3.0]"),
    "logaddexp": ("da.logaddexp(da.asarray([0.0]), -da.inf)", "[0.0]"),
    "logical_and": ("da.logical_and(da.asarray([True, False]), True)", "[True, False]"),
    "logical_not": ("da.logical_not(da.asarray([0, 2]))", "[True, False]"),
    "logical_or": ("da.logical_or(da.asarray([True, False]), False)", "[True, False]"),
    "logical_xor": ("da.logical_xor(da.asarray([True, False]), True)", "[False, True]"),
    "max": ("da.max(da.asarray([[1, 5], [4, 2]]), axis=0)", "[4, 5]"),
    "maximum": ("da.maximum(da.asarray([1, 5]), 3)", "[3, 5]"),
    "min": ("da.min(da.asarray([[1, 5], [4, 2]]), axis=0)", "[1, 2]"),
    "minimum": ("da.minimum(da.asarray([1, 5]), 3)", "[1, 3]"),
    "multiply": ("da.multiply(da.asarray([1, 2]), 3)", "[3, 6]"),
    "negative": ("da.negative(da.asarray([1, -2]))", "[-1, 2]"),
    "nextafter": ("da.nextafter(da.asarray([1.0]), 2.0)", "[1.0000000000000002]"),
    "not_equal": ("da.not_equal(da.asarray([1, 2]), 2)", "[True, False]"),
    "positive": ("da.positive(da.asarray([1, -2]))", "[1, -2]"),
    "pow": ("da.pow(da.asarray([2, 3]), 2)", "[4, 9]"),
    "prod": ("da.prod(da.asarray([[1, 2], [3, 4]]), axis=1)", "[2, 12]"),
    "real": ("da.real(da.asarray([1 + 2j]))", "[1.0]"),
    "reciprocal": ("da.reciprocal(da.asarray([2.0]))", "[0.5]"),
    "remainder": ("da.remainder(da.asarray([7, -7]), 3)", "[1, 2]"),
    "round": ("da.round(da.asarray([0.5, 1.5]))", "[0.0, 2.0]"),
    "sign": ("da.sign(da.asarray([-3, 0, 2]))", "[-1, 0, 1]"),
    "signbit": ("da.signbit(da.asarray([-0.0, 1.0]))", "[True, False]"),
    "sin": ("da.sin(da.asarray([0.0]))", "[0.0]"),
    "sinh": ("da.sinh(da.asarray([0.0]))", "[0.0]"),
    "sqrt": ("da.sqrt(da.asarray([4.0]))", "[2.0]"),
    "square": ("da.square(da.asarray([3, -2]))", "[9, 4]"),
    "subtract": ("da.subtract(da.asarray([5, 6]), 1)", "[4, 5]"),
    "sum": ("da.sum(da.asarray([[1, 2], [3, 4]]), axis=0)", "[4, 6]"),
    "tan": ("da.tan(da.asarray([0.0]))", "[0.0]"),
    "tanh": ("da.tanh(da.asarray([0.0]))", "[0.0]"),
    "trunc": ("da.trunc(da.asarray([1.7, -1.7]))", "[1.0, -1.0]"),
    "where": ("da.where(da.asarray([True, False]), da.asarray([1, 2]), 0)", "[1, 0]"),
}
_OPERANDS = """{operands}: {what}. out: an array of the result's shape that receives it, cast to its data type.
Returns an array on the queue of the operands. TypeError: no operand is an array, or a data type that the operation
does not take; ExecutionPlacementError: operands on different queues{shapes}."""
_REDUCED = """x: an array of any shape. axis: one axis, several in a tuple, or None for all. keepdims: whether the axes
stay, with size 1.{dtype} out: an array of the result's shape that receives it. Returns an array
without these axes. IndexError: an axis that x does not have; TypeError: a data type that the operation does not
take."""


def operation(name, parameters, sentence):
    """The text of an operation: the engine's sentence for it, the operands, and an example."""
    text = f"{name}({parameters})\n\n{sentence}\n\n"
    if "keepdims" in parameters:
        text += _REDUCED.format(dtype=" dtype: what is added up or multiplied in, and the result."
                                if "dtype" in parameters else "")
    else:
        operands = parameters.partition(", /")[0]
        several = "," in operands
        text += _OPERANDS.format(operands=operands,
                                 what="arrays or numbers that broadcast with each other" if several
                                 else "an array of any shape",
                                 shapes="; ValueError: shapes that do not broadcast" if several else "")
    if name in _EXAMPLES:
        call, result = _EXAMPLES[name]
        text += f"\n\n>>> {call}.tolist()\n{result}"
    return text
