"""Functions of math, cmath, NumPy and drupe.array on numbers: one table of names for all of them."""
import ast
import functools

from drupe.compiler import folding, operators, tree, types
from drupe.compiler.messages import KernelError
from drupe.compiler.types import BOOL, FLOAT, INT, Scalar
from drupe.compiler.values import Elements, Number, constant, stored

# Functions of one float: the library's name for each. NumPy's other spellings follow.
_FLOAT1 = {name: name for name in
           "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
           "erf erfc gamma lgamma fabs".split()}
_FLOAT1.update(arcsin="asin", arccos="acos", arctan="atan", arcsinh="asinh", arccosh="acosh", arctanh="atanh",
               gammaln="lgamma", rsqrt="rsqrt")
_FLOAT2 = {"atan2": "atan2", "arctan2": "atan2", "copysign": "copysign",
           "hypot": "hypot"}
_COMPLEX1 = ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt")
_ASKS = ("isnan", "isinf", "isfinite", "signbit")
_ROUNDED = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "fix": "trunc"}
# NumPy's names of operators.
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "floor_divide": "//",
          "remainder": "%", "mod": "%", "power": "**", "left_shift": "<<", "right_shift": ">>", "bitwise_and": "&",
          "bitwise_or": "|", "bitwise_xor": "^", "less": "<", "less_equal": "<=", "greater": ">",
          "greater_equal": ">=", "equal": "==", "not_equal": "!=", "bitwise_left_shift": "<<",
          "bitwise_right_shift": ">>"}
_ANGLES = {"degrees": 57.29577951308232, "rad2deg": 57.29577951308232, "radians": 0.017453292519943295,
           "deg2rad": 0.017453292519943295}


def strong(low, args):
    """Numbers as a function of NumPy takes them: where all of them are Python's, they are NumPy's from there on. On a
    device without float64, Python's floats stay what they are."""
    if not all(isinstance(one, Number) and one.scalar.weak for one in args):
        return args
    return [one if one.scalar.kind >= 2 and not low.fp64 else
            Number(Scalar(one.scalar.name), one.expr, one.const, one.low) for one in args]


def numbers(name, args, *counts):
    """The arguments, which must be so many numbers."""
    for one in args:
        if isinstance(one, Elements):
            raise KernelError("DK012", "%s() takes numbers in a kernel, and this is %s." % (name, one.type),
                              "Give it an element, such as a[i].")
        if not isinstance(one, Number):
            raise KernelError("DK012", "%s() takes numbers in a kernel, and this is %s." % (name, one.type))
    if counts and len(args) not in counts:
        raise KernelError("DK008", "%s() takes %s argument%s, and %d were given." % (
            name, " or ".join(map(str, counts)), "" if counts == (1,) else "s", len(args)))
    return args


def _floating(low, weak_ints, *args):
    """The arguments in the type that a function of floats computes in. `weak_ints`: integers count as Python
    floats, as math has it; NumPy looks at their size."""
    scalars = [FLOAT if weak_ints and one.scalar.kind < 2 else one.scalar for one in args]
    scalar = types.as_float(functools.reduce(types.common, scalars))
    return scalar, [operators.cast(low, one, scalar) for one in args]


def _one(library):
    def function(low, name, args, weak):
        scalar, (x,) = _floating(low, weak, *numbers(name, args, 1))
        if scalar.kind == 3:
            if library not in _COMPLEX1:
                raise KernelError("DK010", "%s() of a complex number is not defined in a kernel." % name)
            return Number(scalar, tree.Call(x.expr.type, library, [x.expr]))
        return operators.call(low, scalar, library, x)
    return function


def _two(library):
    def function(low, name, args, weak):
        scalar, pair = _floating(low, weak, *numbers(name, args, 2))
        if scalar.kind == 3:
            raise KernelError("DK010", "%s() of complex numbers is not defined in a kernel." % name)
        return operators.call(low, scalar, library, *pair)
    return function


def _asks(library):
    def function(low, name, args, weak):
        (x,) = numbers(name, args, 1)
        result = BOOL if weak else Scalar("bool")
        if x.scalar.kind < 2:
            if library == "signbit":
                return operators.binary(low, "<", x, constant(0))
            return Number(result, tree.Const("bool", library == "isfinite"))
        expr = tree.Cast("float32", x.expr) if x.expr.type == "float16" else x.expr
        return Number(result, tree.Call("bool", library, [expr]))
    return function


def _rounded(library):
    def function(low, name, args, weak):
        (x,) = numbers(name, args, 1)
        if x.scalar.kind < 2:
            return operators.cast(low, x, INT) if weak else x
        done = operators.call(low, x.scalar, library, x)
        weak = weak and not (library != "rint" and low.unit.dialect is not None and low.unit.dialect.floors)
        return operators.cast(low, done, INT) if weak else done
    return function


def _sign_of(sign):
    def function(low, name, args, weak):
        return operators.binary(low, sign, *numbers(name, args, 2))
    return function


def _fmod(low, name, args, weak):
    """The remainder with the sign of the dividend. That of NumPy is an integer for integers."""
    a, b = numbers(name, args, 2)
    scalar = operators.whole(types.common(a.scalar, b.scalar))
    if weak or scalar.kind > 1:
        return _two("fmod")(low, name, args, weak)
    a, b = (low.once(operators.cast(low, one, scalar)) for one in (a, b))
    rest = low.once(operators.binary(low, "%", a, b))
    if scalar.name in types.UNSIGNED:
        return rest
    zero = operators.cast(low, constant(0), scalar)
    other = operators.binary(low, "^", operators.binary(low, "<", a, zero), operators.binary(low, "<", b, zero))
    moved = operators.select(low, operators.binary(low, "!=", rest, zero).expr,
                             operators.binary(low, "-", rest, b), zero)
    return operators.select(low, other.expr, moved, rest)


def _pow(low, name, args, weak):
    """math.pow() computes in floats; numpy.pow() is the operator."""
    return _two("pow")(low, name, args, weak) if weak else operators.binary(low, "**", *numbers(name, args, 2))


def _nextafter(low, name, args, weak):
    scalar, pair = _floating(low, weak, *numbers(name, args, 2))
    if scalar.name not in ("float32", "float64"):
        raise KernelError("DK010", "%s() of %s is not defined in a kernel." % (name, scalar))
    return operators.call(low, scalar, "nextafter", *pair)


def _float_power(low, name, args, weak):
    """Never less than float64."""
    return operators.binary(low, "**", *(operators.cast(low, one, Scalar("float64"))
                                         for one in numbers(name, args, 2)))


def _rint(low, name, args, weak):
    scalar, (x,) = _floating(low, weak, *numbers(name, args, 1))
    return operators.call(low, scalar, "rint", x) if scalar.kind == 2 else _rounded("rint")(low, name, args, weak)


def _scaled(factor):
    def function(low, name, args, weak):
        scalar, (x,) = _floating(low, weak, *numbers(name, args, 1))
        return operators.binary(low, "*", x, constant(factor, fp64=low.fp64))
    return function


def extreme(low, name, args, weak):
    """maximum, minimum, fmax, fmin of NumPy."""
    a, b = numbers(name, args, 2)
    scalar = types.common(a.scalar, b.scalar)
    if scalar.kind == 0:
        return operators.binary(low, "|" if name in ("maximum", "fmax") else "&", a, b)
    if scalar.kind == 3:
        raise KernelError("DK010", "%s() of complex numbers is not defined in a kernel." % name)
    library = name if scalar.kind == 2 else {"fmax": "maximum", "fmin": "minimum"}.get(name, name)
    pair = [operators.cast(low, one, scalar) for one in (a, b)]
    done = operators.call(low, scalar, library, *pair)
    lows = [one.low for one in pair]
    if scalar.kind == 1 and (None not in lows or (library == "maximum" and lows != [None, None])):
        done.low = max(one for one in lows if one is not None) if library == "maximum" else min(lows)
    return done


def absolute(low, name, args, weak):
    (x,) = numbers(name, args, 1)
    if x.scalar.kind == 3:
        real = Scalar(types.real_of(x.scalar.name), x.scalar.weak)
        return Number(real, tree.Call(stored(real, low.fp64), "abs", [x.expr]))
    if x.scalar.kind == 0:
        return operators.cast(low, x, INT) if x.scalar.weak else x
    if x.natural or x.scalar.name in types.UNSIGNED:
        return x
    done = operators.call(low, x.scalar, "fabs" if x.scalar.kind == 2 else "abs", x)
    done.low = 0 if x.scalar == INT else None
    return done


def _log(low, name, args, weak):
    if len(args) == 2:
        pair = [_one("log")(low, name, [one], weak) for one in args]
        return operators.binary(low, "/", *pair)
    return _one("log")(low, name, args, weak)


def _ldexp(low, name, args, weak):
    x, n = numbers(name, args, 2)
    scalar, (x,) = _floating(low, weak, x)
    n = operators.cast(low, n, INT)
    if scalar.name == "float16":
        return Number(scalar, tree.Cast("float16", tree.Call("float32", "ldexp",
                                                             [tree.Cast("float32", x.expr), n.expr])))
    return Number(scalar, tree.Call(x.expr.type, "ldexp", [x.expr, n.expr]))


def _where(low, name, args, weak):
    cond, a, b = numbers(name, args, 3)
    return operators.select(low, operators.truth(low, cond), a, b)


def _clip(low, name, args, weak):
    x, least, most = numbers(name, args, 3)
    return extreme(low, "minimum", [extreme(low, "maximum", [x, least], weak), most], weak)


def _sign(low, name, args, weak):
    x = low.once(numbers(name, args, 1)[0])
    zero = constant(0)
    above = operators.binary(low, ">", x, zero).expr
    below = operators.binary(low, "<", x, zero).expr
    one = operators.cast(low, constant(1), x.scalar)
    minus = one if x.scalar.name in types.UNSIGNED else operators.cast(low, constant(-1), x.scalar)
    if x.scalar.kind == 2:  # of -0.0 it is 0.0, and NaN stays
        same = operators.binary(low, "==", x, zero).expr
        x = operators.select(low, same, operators.cast(low, zero, x.scalar), x)
    return operators.select(low, above, one, operators.select(low, below, minus, x))


def _square(low, name, args, weak):
    (x,) = numbers(name, args, 1)
    x = low.once(operators.cast(low, x, operators.whole(x.scalar)))
    return operators.binary(low, "*", x, x)


def _reciprocal(low, name, args, weak):
    """1/x; of an integer the whole part of that."""
    (x,) = numbers(name, args, 1)
    x = low.once(operators.cast(low, x, operators.whole(x.scalar)))
    if x.scalar.kind == 2:
        return operators.binary(low, "/", constant(1.0, fp64=low.fp64), x)
    if x.scalar.kind == 3:
        return _complex_reciprocal(low, x)
    one, zero = (operators.cast(low, constant(value), x.scalar) for value in (1, 0))
    unit = operators.binary(low, "==", x, one).expr
    if x.scalar.name not in types.UNSIGNED:
        minus = operators.cast(low, constant(-1), x.scalar)
        unit = tree.Binary("bool", "||", unit, operators.binary(low, "==", x, minus).expr)
    return operators.select(low, unit, x, zero)


def _complex_reciprocal(low, x):
    """By the quotient of the smaller part and the larger one, in the order of NumPy's operations."""
    real, imag = (low.once(_part(part)(low, part, [x], False)) for part in ("real", "imag"))
    sizes = [operators.call(low, one.scalar, "fabs", one) for one in (real, imag)]
    flat = low.once(operators.binary(low, ">=", *sizes)).expr
    small, large = operators.select(low, flat, imag, real), low.once(operators.select(low, flat, real, imag))
    ratio = low.once(operators.binary(low, "/", small, large))
    whole = low.once(operators.binary(low, "+", large, operators.binary(low, "*", low.once(small), ratio)))
    first = operators.select(low, flat, constant(1.0, real.scalar), ratio)
    second = operators.select(low, flat, operators.unary(low, ast.USub(), ratio), constant(-1.0, real.scalar))
    parts = [operators.binary(low, "/", one, whole).expr for one in (first, second)]
    return Number(x.scalar, tree.Call(x.expr.type, "complex", parts))


def _logical(sign):
    def function(low, name, args, weak):
        pair = [operators.truth(low, one) for one in numbers(name, args, 2)]
        return Number(Scalar("bool"), folding.logic(sign, *pair))
    return function


def _not(low, name, args, weak):
    return Number(Scalar("bool"), folding.negated(operators.truth(low, numbers(name, args, 1)[0])))


def _negated(op):
    def function(low, name, args, weak):
        return operators.unary(low, op, numbers(name, args, 1)[0])
    return function


def _part(part):
    def function(low, name, args, weak):
        from drupe.compiler.attributes import attribute

        return attribute(low, numbers(name, args, 1)[0], part)
    return function


def conjugate(low, name, args, weak):
    (x,) = numbers(name, args, 1)
    if x.scalar.kind == 3:
        return Number(x.scalar, tree.Call(x.expr.type, "conj", [x.expr]))
    return operators.cast(low, x, operators.whole(x.scalar))


def _angle(low, name, args, weak):
    (x,) = numbers(name, args, 1)
    if x.scalar.kind < 3:
        x = operators.cast(low, x, Scalar("complex64" if x.scalar.name == "float32" else "complex128", x.scalar.weak))
    real = Scalar(types.real_of(x.scalar.name), x.scalar.weak)
    return Number(real, tree.Call(types.real_of(x.expr.type), "angle", [x.expr]))


def _gcd(low, name, args, weak):
    a, b = numbers(name, args, 2)
    scalar = types.common(a.scalar, b.scalar)
    if scalar.kind != 1:
        raise KernelError("DK012", "%s() takes integers." % name)
    return operators.call(low, scalar, "gcd", operators.cast(low, a, scalar), operators.cast(low, b, scalar))


def _fma(low, name, args, weak):
    scalar, three = _floating(low, weak, *numbers(name, args, 3))
    return operators.call(low, scalar, "fma", *three)


def round_half_even(low, name, args, weak):
    """round(x), numpy.round(x)"""
    (x,) = numbers(name, args[:1])
    if len(args) > 1 and not (isinstance(args[1], Number) and args[1].const == 0):
        raise KernelError("DK010", "%s() takes no number of digits in a kernel." % name,
                          "Multiply before and divide behind it.")
    return _rounded("rint")(low, name, [x], weak and len(args) == 1)


FUNCTIONS = {**{name: _one(library) for name, library in _FLOAT1.items()},
             **{name: _two(library) for name, library in _FLOAT2.items()},
             **{name: _asks(name) for name in _ASKS},
             **{name: _rounded(library) for name, library in _ROUNDED.items()},
             **{name: _sign_of(sign) for name, sign in _SIGNS.items()},
             **{name: _scaled(factor) for name, factor in _ANGLES.items()},
             **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), extreme),
             **dict.fromkeys(("abs", "absolute"), absolute),
             **dict.fromkeys(("conj", "conjugate"), conjugate),
             **dict.fromkeys(("round", "around"), round_half_even),
             **dict.fromkeys(("angle", "phase"), _angle),
             "fmod": _fmod, "pow": _pow, "nextafter": _nextafter, "float_power": _float_power, "rint": _rint,
             "log": _log, "ldexp": _ldexp, "where": _where, "clip": _clip, "sign": _sign, "square": _square,
             "reciprocal": _reciprocal, "logical_and": _logical("&&"), "logical_or": _logical("||"),
             "logical_xor": _logical("!="), "logical_not": _not, "negative": _negated(ast.USub()),
             "positive": _negated(ast.UAdd()), "invert": _negated(ast.Invert()),
             "bitwise_invert": _negated(ast.Invert()), "bitwise_not": _negated(ast.Invert()),
             "real": _part("real"), "imag": _part("imag"), "gcd": _gcd, "fma": _fma}
