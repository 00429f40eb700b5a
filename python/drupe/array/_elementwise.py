"""Functions of elements with NumPy's names that are made of operations of the table."""
import math

from drupe import _engine
from drupe.array._arguments import need

_ops = _engine.operations


def _one(function, *operands):
    """The first array among the operands."""
    for x in operands:
        if isinstance(x, _engine.Array):
            return x
    return need(function, operands[0])


def _floating(x):
    """x in floating point: integers and bools in the default float."""
    return x if x.dtype.kind in "fc" else x.astype(_engine.empty(0, queue=x.queue).dtype)


def _given(result, out):
    """The result itself, or `out` with it."""
    if out is None:
        return result
    need("out", out)
    out[...] = result
    return out


def round(x, /, decimals=0, *, out=None):
    """The nearest number with so many decimals; of two as near, the one whose last digit is even.

    x: an array of any shape. decimals: digits behind the point, or before it if negative; 0 without it. out: an array
    of the result's shape that receives it. Returns an array of x's shape and data type.

    >>> da.round(da.asarray([0.5, 1.5, 2.126]), 2).tolist()
    [0.5, 1.5, 2.13]
    """
    if decimals == 0:
        return _ops["round"](x, out=out)
    need("round", x)
    if x.dtype.kind in "iu" and decimals > 0:
        return _given(x.copy(), out)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return _given(_ops["round"](x * scale) / scale, out)
    if x.dtype.kind in "iub":
        return _given((_ops["round"](x / scale) * scale).astype(x.dtype), out)
    return _given(_ops["round"](x / scale) * scale, out)


def fmod(x1, x2, /, *, out=None):
    """Remainder with the sign of the dividend, as C has it; remainder() has that of the divisor.

    x1, x2: arrays or numbers of real types that broadcast; integers by zero give 0. Returns their common type.

    >>> da.fmod(da.asarray([-7, 7]), 3).tolist()
    [-1, 1]
    """
    x = _one("fmod", x1, x2)
    quotient = _ops["remainder"](_ops["abs"](x1) if isinstance(x1, _engine.Array) else abs(x1),
                                 _ops["abs"](x2) if isinstance(x2, _engine.Array) else abs(x2))
    if not isinstance(x1, _engine.Array):
        x1 = _engine.full((), x1, quotient.dtype, queue=x.queue)
    if quotient.dtype.kind == "f":
        return _given(_ops["copysign"](quotient, x1), out)
    return _given(_ops["where"](x1 < 0, _ops["negative"](quotient), quotient) if quotient.dtype.kind == "i"
                  else quotient, out)


def divmod(x1, x2, /):
    """floor_divide() and remainder() of the operands, as a tuple.

    x1, x2: arrays or numbers of real types that broadcast.

    >>> [x.tolist() for x in da.divmod(da.asarray([7, -7]), 3)]
    [[2, -3], [1, 2]]
    """
    return _ops["floor_divide"](x1, x2), _ops["remainder"](x1, x2)


def float_power(x1, x2, /, *, out=None):
    """Power in floating point, also of integers, whose negative powers are fractions.

    x1, x2: arrays or numbers that broadcast. Returns an array of float64, or of the default float.

    >>> da.float_power(da.asarray([2, 4]), -1).tolist()
    [0.5, 0.25]
    """
    x = _one("float_power", x1, x2)
    wide = ("float64", "complex128") if x.device.has_aspect_fp64 else ("float32", "complex64")

    def cast(operand):
        if not isinstance(operand, _engine.Array):
            return operand if isinstance(operand, complex) else float(operand)
        return operand.astype(wide[operand.dtype.kind == "c"], copy=False)

    return _ops["pow"](cast(x1), cast(x2), out=out)


def fabs(x, /, *, out=None):
    """Absolute value in floating point, also of integers.

    x: an array of a real type. Returns floats of x's shape. TypeError: complex numbers, which abs() takes.

    >>> da.fabs(da.asarray([-1, 2])).tolist()
    [1.0, 2.0]
    """
    need("fabs", x)
    if x.dtype.kind == "c":
        raise TypeError("fabs takes real numbers: abs() is the absolute value of complex ones")
    return _ops["abs"](_floating(x), out=out)


def fmax(x1, x2, /, *, out=None):
    """Larger of the two; the other one where one is NaN.

    x1, x2: arrays or numbers of real types that broadcast. maximum() gives NaN where one is.

    >>> da.fmax(da.asarray([1.0, da.nan]), 0.5).tolist()
    [1.0, 0.5]
    """
    return _but_nan("fmax", "maximum", x1, x2, out)


def fmin(x1, x2, /, *, out=None):
    """Smaller of the two; the other one where one is NaN.

    x1, x2: arrays or numbers of real types that broadcast. minimum() gives NaN where one is.

    >>> da.fmin(da.asarray([1.0, da.nan]), 0.5).tolist()
    [0.5, 0.5]
    """
    return _but_nan("fmin", "minimum", x1, x2, out)


def _but_nan(function, operation, x1, x2, out):
    _one(function, x1, x2)
    result = _ops[operation](x1, x2)
    if result.dtype.kind in "fc":
        for x, other in ((x1, x2), (x2, x1)):
            if not isinstance(x, _engine.Array):
                if x != x:
                    return _given(_engine.broadcast_to(other.astype(result.dtype), result.shape).copy(), out)
            elif x.dtype.kind in "fc":
                result = _ops["where"](_ops["isnan"](x), other, result)
    return _given(result, out)


def heaviside(x1, x2, /, *, out=None):
    """Step: 0 where x1 is below 0, 1 where it is above, x2 where it is 0; NaN of NaN.

    x1, x2: arrays or numbers of real types that broadcast. Returns floats.

    >>> da.heaviside(da.asarray([-2.0, 0.0, 3.0]), 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    x = _one("heaviside", x1, x2)
    if not isinstance(x1, _engine.Array):
        x1 = _engine.full((), float(x1), x2.dtype if x2.dtype.kind == "f" else None, queue=x.queue)
    x1 = _floating(x1)
    x2 = _floating(x2) if isinstance(x2, _engine.Array) else float(x2)
    step = _ops["where"](x1 == 0, x2, _ops["where"](x1 > 0, 1.0, x1 * 0.0))
    return _given(_ops["where"](x1 < 0, 0.0, step), out)


def deg2rad(x, /, *, out=None):
    """Degrees in radians.

    x: an array of a real type. Returns floats of x's shape.

    >>> da.deg2rad(da.asarray([0.0, 180.0])).tolist()
    [0.0, 3.141592653589793]
    """
    need("deg2rad", x)
    return _ops["multiply"](_floating(x), math.pi / 180.0, out=out)


def rad2deg(x, /, *, out=None):
    """Radians in degrees.

    x: an array of a real type. Returns floats of x's shape.

    >>> da.rad2deg(da.asarray([0.0, da.pi])).tolist()
    [0.0, 180.0]
    """
    need("rad2deg", x)
    return _ops["multiply"](_floating(x), 180.0 / math.pi, out=out)


def exp2(x, /, *, out=None):
    """2 to the power of x.

    x: an array of any numeric type. Returns floating-point numbers of x's shape.

    >>> da.exp2(da.asarray([0, 3])).tolist()
    [1.0, 8.0]
    """
    need("exp2", x)
    return _ops["pow"](2.0, _floating(x), out=out)


def cbrt(x, /, *, out=None):
    """Cube root; of negative numbers negative.

    x: an array of a real type. Returns floats of x's shape.

    >>> da.cbrt(da.asarray([-8.0, 27.0])).tolist()
    [-2.0, 3.0]
    """
    need("cbrt", x)
    x = _floating(x)
    size = _ops["abs"](x)
    root = _ops["pow"](size, 1.0 / 3.0)
    # One step of Newton's makes up for 1/3, which no float is; 0 and what is not finite stay as they are.
    better = root - (root - size / (root * root)) / 3.0
    root = _ops["where"](_ops["logical_and"](_ops["isfinite"](better), root > 0), better, root)
    return _given(_ops["copysign"](root, x), out)


def rsqrt(x, /, *, out=None):
    """1 divided by the square root.

    x: an array of a real type. Returns floats of x's shape; inf of 0, NaN below.

    >>> da.rsqrt(da.asarray([1.0, 4.0])).tolist()
    [1.0, 0.5]
    """
    return _ops["reciprocal"](_ops["sqrt"](x), out=out)


def logaddexp2(x1, x2, /, *, out=None):
    """log2(2**x1 + 2**x2) without overflow on the way.

    x1, x2: arrays or numbers of real types that broadcast. Returns floats.

    >>> da.logaddexp2(da.asarray([1.0, 3.0]), 1.0).tolist()[0]
    2.0
    """
    _one("logaddexp2", x1, x2)
    larger, smaller = _ops["maximum"](x1, x2), _ops["minimum"](x1, x2)
    larger, smaller = _floating(larger), _floating(smaller)
    apart = _ops["where"](larger == smaller, 0.0, smaller - larger)  # also where both are infinite
    return _given(larger + _ops["log1p"](exp2(apart)) * (1.0 / math.log(2.0)), out)


def sinc(x, /):
    """sin(pi x) / (pi x), and 1 at 0.

    x: an array of a real type. Returns floats of x's shape.

    >>> da.sinc(da.asarray([0.0, 0.5])).tolist()
    [1.0, 0.6366197723675814]
    """
    need("sinc", x)
    angle = _floating(x) * math.pi
    return _ops["where"](angle == 0, 1.0, _ops["sin"](angle) / angle)


def nan_to_num(x, /, copy=True, nan=0.0, posinf=None, neginf=None):
    """x with numbers in place of NaN and of the infinities: 0 and the largest and smallest of the data type.

    x: an array. copy: False writes into x and returns it. nan, posinf, neginf: the numbers to take. Integers and bools
    stay as they are.

    >>> da.nan_to_num(da.asarray([da.nan, 1.0, da.inf]), posinf=9.0).tolist()
    [0.0, 1.0, 9.0]
    """
    need("nan_to_num", x)
    if x.dtype.kind not in "fc":
        return x.copy() if copy else x
    if x.dtype.kind == "c":
        x = x.copy() if copy else x
        for part in (x.real, x.imag):  # views
            nan_to_num(part, False, nan, posinf, neginf)
        return x
    from drupe.array import finfo

    limits = finfo(x.dtype)
    result = _ops["where"](_ops["isnan"](x), nan, x)
    for infinity, number in ((math.inf, limits.max if posinf is None else posinf),
                             (-math.inf, limits.min if neginf is None else neginf)):
        result = _ops["where"](x == infinity, number, result)
    if copy:
        return result
    x[...] = result
    return x


def isposinf(x, /, *, out=None):
    """Whether it is inf.

    x: an array of a real type. Returns bools of x's shape.

    >>> da.isposinf(da.asarray([da.inf, -da.inf, 0.0])).tolist()
    [True, False, False]
    """
    return _ops["equal"](x, math.inf, out=out)


def isneginf(x, /, *, out=None):
    """Whether it is -inf.

    x: an array of a real type. Returns bools of x's shape.

    >>> da.isneginf(da.asarray([da.inf, -da.inf, 0.0])).tolist()
    [False, True, False]
    """
    return _ops["equal"](x, -math.inf, out=out)


def _is_complex(x):
    return isinstance(x, complex) or getattr(getattr(x, "dtype", None), "kind", "") == "c"


def iscomplexobj(x, /):
    """Whether an array has a complex data type, or a number is complex: a bool of Python.

    x: an array, a data type's owner or a number.

    >>> da.iscomplexobj(da.zeros(2))
    False
    """
    return _is_complex(x)


def isrealobj(x, /):
    """Whether an array has a data type that is not complex: a bool of Python.

    x: an array or a number.

    >>> da.isrealobj(da.zeros(2))
    True
    """
    return not _is_complex(x)


def iscomplex(x, /):
    """Whether the imaginary part is not zero.

    x: an array. Returns bools of x's shape.

    >>> da.iscomplex(da.zeros(2)).tolist()
    [False, False]
    """
    need("iscomplex", x)
    if x.dtype.kind == "c":
        return _ops["imag"](x) != 0
    return _engine.zeros(x.shape, "bool", queue=x.queue, usm_type=x.usm_type)


def isreal(x, /):
    """Whether the imaginary part is zero.

    x: an array. Returns bools of x's shape.

    >>> da.isreal(da.zeros(2)).tolist()
    [True, True]
    """
    need("isreal", x)
    if x.dtype.kind == "c":
        return _ops["imag"](x) == 0
    return _engine.ones(x.shape, "bool", queue=x.queue, usm_type=x.usm_type)


def isscalar(item, /):
    """Whether something is a number of Python or NumPy, and no array: a bool of Python.

    >>> da.isscalar(3.0), da.isscalar(da.asarray(3.0))
    (True, False)
    """
    import numbers

    return isinstance(item, (numbers.Number, bool)) or type(item).__module__ == "numpy" and hasattr(item, "item") \
        and getattr(item, "ndim", 1) == 0 and type(item).__name__ != "ndarray"


def bitwise_count(x, /):
    """How many bits of the absolute value are set.

    x: an array of an integer type or bools. Returns uint8 of x's shape, or int32 where there is no uint8.

    >>> da.bitwise_count(da.asarray([0, 7, -8])).tolist()
    [0, 3, 1]
    """
    need("bitwise_count", x)
    if x.dtype.kind not in "iub":
        raise TypeError(f"bitwise_count takes integers, and the array has {x.dtype}")
    small = "uint8" if "uint8" in _engine.dtypes else "int32"
    if x.dtype.kind == "b":
        return x.astype(small)
    bits = _ops["abs"](x)
    count = bits & 1
    for place in range(1, 8 * x.dtype.itemsize):
        count = count + ((bits >> place) & 1)
    return count.astype(small)


def ldexp(x1, x2, /, *, out=None):
    """x1 times 2 to the power of x2.

    x1: an array or number of a real type. x2: integers that broadcast with it. Returns floats.

    >>> da.ldexp(da.asarray([1.0, 3.0]), 2).tolist()
    [4.0, 12.0]
    """
    _one("ldexp", x1, x2)
    x1 = _floating(x1) if isinstance(x1, _engine.Array) else float(x1)
    if not isinstance(x2, _engine.Array):
        half = int(x2) // 2
        return _ops["multiply"](x1 * 2.0 ** max(-1000, min(half, 1000)), 2.0 ** max(-1000, min(int(x2) - half, 1000)),
                                out=out)
    half = x2 // 2  # in two steps, since 2**x2 may overflow where the product does not
    dtype = x1.dtype if isinstance(x1, _engine.Array) else None
    first, second = (exp2(part.astype(dtype) if dtype else part) for part in (half, x2 - half))
    return _ops["multiply"](x1 * first, second, out=out)


def frexp(x, /):
    """The significand, from 0.5 to below 1, and the exponent of 2 of each number, as a tuple.

    x: an array of a real type. Returns floats, and int32 in which the exponents are; 0 and what is not finite come back
    with an exponent of 0.

    >>> [part.tolist() for part in da.frexp(da.asarray([8.0, -0.75]))]
    [[0.5, -0.75], [4, 0]]
    """
    need("frexp", x)
    x = _floating(x)
    size = _ops["abs"](x)
    whole = _ops["logical_and"](_ops["isfinite"](x), size > 0)
    size = _ops["where"](whole, size, 1.0)
    # Small numbers are scaled first, whose logarithm is inexact; then the exponent is right, or off by one.
    small = size < 2.0 ** -20
    scaled = _ops["where"](small, size * 2.0 ** 60, size)
    tiny = scaled < 2.0 ** -20
    scaled = _ops["where"](tiny, scaled * 2.0 ** 60, scaled)
    exponent = _ops["floor"](_ops["log2"](scaled)) + 1
    part = scaled / exp2(exponent - 1) * 0.5
    for step in (_ops["where"](part >= 1, 1, 0), _ops["where"](part < 0.5, -1, 0)):
        step = step.astype(x.dtype)
        exponent = exponent + step
        part = part / exp2(step)
    for where in (small, tiny):
        exponent = _ops["where"](where, exponent - 60, exponent)
    part = _ops["where"](whole, _ops["copysign"](part, x), x)
    return part, _ops["where"](whole, exponent, 0).astype("int32")


def real_if_close(x, /, tol=100):
    """The real parts, where all imaginary parts are close to zero; x itself otherwise. Waits, if x is complex.

    x: an array. tol: how close, in units of the data type's eps if it is above 1.

    >>> da.real_if_close(da.asarray([1.5])).tolist()
    [1.5]
    """
    need("real_if_close", x)
    if x.dtype.kind != "c":
        return x
    from drupe.array import finfo

    limit = tol * finfo(x.dtype).eps if tol > 1 else tol
    return x.real if bool(_ops["all"](_ops["abs"](x.imag) < limit)) else x
