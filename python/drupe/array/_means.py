"""Mean, variance and what else of the array API is made of sums and comparisons."""
import math

from drupe import _engine
from drupe.array._arguments import need
from drupe.array._axes import some_axes

_ops = _engine.operations


def clip(x, /, min=None, max=None, *, out=None):
    """The elements of x, where they are below `min` that, and where they are above `max` that; None is no limit.

    x: an array of a real type. min, max: numbers, or arrays that broadcast with x. out: an array of the result's shape
    that receives it. Returns an array of x's data type, or of the common one where a limit's is wider. Where min is
    above max, the result is max; NaN stays NaN, and a limit that is NaN gives NaN.

    >>> da.clip(da.asarray([1, 5, 9]), 2, 8).tolist()
    [2, 5, 8]
    """
    need("clip", x)
    if min is None and max is None:
        return x.copy() if out is None else _ops["positive"](x, out=out)
    if min is None or max is None:
        return _ops["maximum" if max is None else "minimum"](x, min if max is None else max, out=out)
    return _ops["minimum"](_ops["maximum"](x, min), max, out=out)


def mean(x, /, axis=None, *, keepdims=False, dtype=None, out=None):
    """Arithmetic mean over the axes, in floating point: integers are added as floats, whose sum does not wrap, and
    float16 as float32.

    x: an array of any numeric type. axis: one, several in a tuple, or None for all. keepdims: whether the axes stay,
    with size 1. dtype: what is added up in, and the result. out: an array of the result's shape that receives it.
    Without elements it is NaN.

    >>> da.mean(da.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [2.0, 3.0]
    """
    need("mean", x)
    if dtype is None and x.dtype.kind not in "fc":
        dtype = "float64" if x.device.has_aspect_fp64 else "float32"
    half = dtype is None and x.dtype == "float16"
    total = _ops["sum"](x, axis=axis, keepdims=keepdims, dtype="float32" if half else dtype)
    count = math.prod(x.shape[a] for a in some_axes(axis, x.ndim))
    result = total / count if count else total * math.nan
    result = result.astype("float16") if half else result
    return _into("mean", result, out)


def count_nonzero(x, /, axis=None, *, keepdims=False):
    """How many elements are not zero, over the axes; NaN is not.

    x: an array of any data type. axis: one, several in a tuple, or None for all. Returns an array of int64.

    >>> da.count_nonzero(da.asarray([[0, 1], [2, 3]]), axis=1).tolist()
    [1, 2]
    """
    need("count_nonzero", x)
    return _ops["sum"](x if x.dtype.kind == "b" else x != 0, axis=axis, keepdims=keepdims)


def _into(function, result, out):
    if out is None:
        return result
    need(function, out)
    if out.shape != result.shape:
        raise ValueError(f"{function}: out has shape {out.shape}, and the result has {result.shape}")
    out[...] = result
    return out


def var(x, /, axis=None, *, correction=0.0, keepdims=False, ddof=None, out=None):
    """Variance over the axes: the mean of the squared distances from the mean, with n - correction instead of n.
    Of complex numbers it is real.

    x: an array of any numeric type. axis: one, several in a tuple, or None for all. ddof: correction, by NumPy's name.
    out: an array of the result's shape that receives it; ValueError for another shape. Returns floats; NaN where
    n - correction is not above 0 and all distances are 0.

    >>> da.var(da.asarray([1.0, 3.0])).item()
    1.0
    """
    need("var", x)
    axes = some_axes(axis, x.ndim)
    half = x.dtype == "float16"
    apart = x.astype("float32") if half else x
    apart = apart - mean(apart, axis=axis, keepdims=True)
    if apart.dtype.kind == "c":
        square = _ops["square"](_ops["real"](apart)) + _ops["square"](_ops["imag"](apart))
    else:
        square = _ops["square"](apart)
    total = _ops["sum"](square, axis=axis, keepdims=keepdims)
    count = math.prod(x.shape[a] for a in axes) - (correction if ddof is None else ddof)
    result = total / (count if count > 0 else 0.0)
    return _into("var", result.astype("float16") if half else result, out)


def std(x, /, axis=None, *, correction=0.0, keepdims=False, ddof=None, out=None):
    """Standard deviation over the axes: the root of the variance.

    x, axis, correction, keepdims, ddof, out: as var() has them.

    >>> da.std(da.asarray([1.0, 3.0])).item()
    1.0
    """
    need("std", x)
    half = x.dtype == "float16"  # whose variance may be infinite where its root is not
    correction = correction if ddof is None else ddof
    root = _ops["sqrt"](var(x.astype("float32") if half else x, axis=axis, correction=correction, keepdims=keepdims))
    return _into("std", root.astype("float16") if half else root, out)
