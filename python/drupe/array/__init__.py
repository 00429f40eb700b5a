"""Arrays on devices, in the manner of the Python array API.

Work is queued where its operands are and nothing waits, except reading elements: asnumpy(), float(), printing.
The functions of the operations table (add, exp, sum ...) are made by the engine from that table.
"""
import math as _math
import numbers as _numbers
import operator as _operator
import sys as _sys

from drupe import _engine
from drupe.array._axes import one_axis as _one_axis
from drupe.array._axes import some_axes as _some_axes
from drupe.array._copies import HostCopyWarning, allow_host_copies
from drupe.array._inspect import __array_namespace_info__, can_cast, finfo, iinfo, isdtype
from drupe.array._shapes import (broadcast_arrays, broadcast_shapes, count_nonzero, diff, eye, flip, meshgrid, moveaxis,
                                 repeat, roll, std, tile, tril, triu, unstack, var, vecdot)
from drupe._engine import (Array, DType, asarray, asnumpy, broadcast_to, empty, empty_like, full, full_like, matmul,
                           ones, ones_like, permute_dims, zeros, zeros_like)

__array_api_version__ = "2025.12"

e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None

__all__ = ["Array", "DType", "HostCopyWarning", "__array_namespace_info__", "allow_host_copies", "arange", "asarray",
           "asnumpy", "astype", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "clip", "concat",
           "count_nonzero", "diff", "e", "empty", "empty_like", "expand_dims", "eye", "finfo", "flip", "full",
           "full_like", "iinfo", "inf", "isdtype", "linspace", "matmul", "matrix_transpose", "mean", "meshgrid",
           "moveaxis", "nan", "newaxis", "ones", "ones_like", "permute_dims", "pi", "repeat", "reshape",
           "result_type", "roll", "squeeze", "stack", "std", "tile", "to_device", "tril", "triu", "unstack", "var",
           "vecdot", "zeros", "zeros_like"]

_KINDS = {bool: 1, int: 2, float: 3, complex: 4}  # of data types: what Python's numbers are in order
_PLACES = {"b": 1, "i": 2, "u": 2, "f": 3, "c": 4}  # and of what kind a data type's numbers are

# The names of the table, such as sum and abs, hide builtins from here on; functions below use none of those.
globals().update(_engine.operations)
globals().update(_engine.dtypes)
__all__ += [*_engine.operations, *_engine.dtypes]


_INSTEAD = {
    "array": "Arrays are made by asarray(obj), and asarray(x, copy=True) is a copy.",
    "ndarray": "The class of arrays is Array.",
}


def __getattr__(name):
    """Say what there is instead of a name that is known from NumPy."""
    hint = _INSTEAD.get(name, "")
    if not hint and not name.startswith("_") and name in getattr(_sys.modules.get("numpy"), "__dict__", ()):
        hint = f"NumPy's takes copies: asarray(numpy.{name}(x.asnumpy(), ...))."
    raise AttributeError(f"module 'drupe.array' has no attribute {name!r}" + (hint and ". " + hint))


def _real(what, number):
    """A number as an int or a float of Python."""
    kind = _scalar_kind(number)
    if not 0 < kind < 4:
        raise TypeError(f"{what} must be a {'real ' if kind else ''}number, not {type(number).__name__}")
    return float(number) if kind == 3 else int(number)


def _number(what, number):
    """A number as a float or a complex of Python."""
    return complex(number) if _scalar_kind(number) == 4 else float(_real(what, number))


def _whole_type(first, last, dtype):
    """The data type of integers from first to last; checked where it is given."""
    low, high = (first, last) if first <= last else (last, first)
    if dtype is None:
        dtype = "int64" if low < 0 or high < 2**63 else "uint64"
    dtype = DType(dtype)
    if dtype.kind in "iu":
        limits = iinfo(dtype)
        for number in (low, high):
            if not limits.min <= number <= limits.max:
                raise OverflowError(f"{number} does not fit into {dtype}")
    return dtype


def arange(start, stop=None, step=1, dtype=None, *, device=None, usm_type=None, queue=None):
    """Numbers from start (0 if one limit is given) to before stop."""
    start, stop = (0, start) if stop is None else (_real("start", start), stop)
    stop, step = _real("stop", stop), 1 if step is None else _real("step", step)
    if step == 0 or not _math.isfinite(step):
        raise ValueError("arange: step must be finite and not zero")
    if type(start) is type(stop) is type(step) is int:
        count = -((start - stop) // step)  # rounded up
        start = start if count > 0 else 0
        dtype = _whole_type(start, start + (count - 1) * step if count > 0 else 0, dtype)
        step = step if count > 1 else 1
    else:
        count = (stop - start) / step
        if _math.isnan(count):
            raise ValueError("arange: start and stop must be finite")
        count = _math.ceil(count) if _math.isfinite(count) else count
    if count > 9e18:
        raise OverflowError("arange: the array would be too long")
    return _engine._sequence(count if count > 0 else 0, start, step, dtype, device, usm_type, queue)


def linspace(start, stop, num, *, dtype=None, device=None, usm_type=None, queue=None, endpoint=True):
    """Numbers evenly spaced from start to stop, which may be complex.

    >>> linspace(0, 1 + 2j, 3).tolist()
    [0j, (0.5+1j), (1+2j)]"""
    start, stop = _number("start", start), _number("stop", stop)
    if not hasattr(num, "__index__"):
        raise TypeError(f"num must be an integer, not {type(num).__name__}")
    num = _operator.index(num)
    endpoint = True if endpoint is None else endpoint
    if num < 0:
        raise ValueError(f"num must not be negative, and {num} is")
    dtype = None if dtype is None else DType(dtype)
    if complex in (type(start), type(stop)):
        return _complex_space(complex(start), complex(stop), num, dtype, device, usm_type, queue, endpoint)
    steps = num - 1 if endpoint else num
    step = (stop - start) / (steps if steps > 0 else 1)
    # Computed in floats, and cast at the end where other kinds are wanted.
    x = _engine._sequence(num, start, step, dtype if dtype is not None and dtype.kind == "f" else None, device,
                          usm_type, queue)
    if endpoint and num > 1:
        x[-1] = stop  # which start + i*step may miss by rounding
    if dtype is None or x.dtype == dtype:
        return x
    if dtype.kind in "iu":  # rounded down, as NumPy does: a cast alone would cut
        _engine.operations["floor_divide"](x, 1, out=x)
    return x.astype(dtype)


def _complex_space(start, stop, num, dtype, device, usm_type, queue, endpoint):
    """linspace() of complex numbers: one of the real and one of the imaginary parts."""
    if dtype is not None and dtype.kind != "c":
        raise TypeError(f"linspace: from complex numbers a complex dtype is made, not {dtype}")
    real = linspace(start.real, stop.real, num, device=device, usm_type=usm_type, queue=queue, endpoint=endpoint)
    imag = linspace(start.imag, stop.imag, num, usm_type=usm_type, queue=real.queue, endpoint=endpoint)
    x = empty(num, dtype="complex128" if real.dtype == "float64" else "complex64", queue=real.queue, usm_type=usm_type)
    x.real, x.imag = real, imag
    return x if dtype is None else x.astype(dtype, copy=False)


def astype(x, dtype, /, *, copy=True):
    """The elements of x as another data type."""
    return x.astype(dtype, copy=copy)


def to_device(x, device, /):
    """x on another device or queue; x itself if it is there."""
    return x.to_device(device)


def reshape(x, /, shape):
    """The elements in another shape: a view where that is possible."""
    return x.reshape(shape)


def matrix_transpose(x, /):
    """A view with the last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose needs 2 dimensions at least, and the array has {x.ndim}")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def expand_dims(x, /, *, axis=0):
    """A view with new axes of size 1, which are `axis` (one, or a tuple) of the result."""
    size = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    axes = _some_axes(axis, x.ndim, size)
    return x[tuple([None if a in axes else slice(None) for a in range(size)])]


def squeeze(x, /, axis):
    """A view without the given axes, which have size 1."""
    axes = _some_axes(axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"axis {a} has size {x.shape[a]} and cannot be left out")
    return x[tuple([0 if a in axes else slice(None) for a in range(x.ndim)])]


def _scalar_kind(item):
    """The place of a Python or NumPy number among the kinds of data types, 0 for what is none."""
    if type(item) in _KINDS:
        return _KINDS[type(item)]
    if type(item).__name__ in ("bool", "bool_"):  # NumPy's, under both of its names
        return 1
    for place, kind in ((2, _numbers.Integral), (3, _numbers.Real), (4, _numbers.Complex)):
        if isinstance(item, kind):
            return place
    return 0


def result_type(*arrays_and_dtypes):
    """The common data type of arrays, data types and numbers. A number changes the type of the others only when its
    kind (bool, int, float, complex) is above theirs, to int64, float64 or complex128, as operators do; of float16 and
    float32 a complex number makes complex64.

    >>> result_type("uint8", "int8"), result_type("uint8", 3), result_type("float32", 1j)
    (drupe.array.int16, drupe.array.uint8, drupe.array.complex64)"""
    common, scalar, double = None, 0, True
    for item in arrays_and_dtypes:
        if kind := _scalar_kind(item):
            scalar = kind if kind > scalar else scalar
            continue
        dtype = item.dtype if isinstance(item, Array) else DType(item)
        double = double and not (isinstance(item, Array) and not item.device.has_aspect_fp64)
        common = dtype if common is None else _engine._promote(common, dtype)
    if common is None:
        raise TypeError("result_type needs an array or a data type at least")
    if scalar <= _PLACES[common.kind]:
        return common
    double = double and not (common.kind == "f" and common.itemsize < 8)
    return DType("int64" if scalar == 2 else
                 ("float64", "complex128")[scalar == 4] if double else ("float32", "complex64")[scalar == 4])


def clip(x, /, min=None, max=None, *, out=None):
    """The elements of x, where they are below `min` that, and where they are above `max` that; None is no limit.

    The limits are numbers or arrays that broadcast with x. Where min is above max, the result is max."""
    operations = _engine.operations
    if min is None and max is None:
        return operations["positive"](x, out=out) if x.dtype.kind != "b" or out is not None else astype(x, x.dtype)
    if min is None or max is None:
        return operations["maximum" if max is None else "minimum"](x, min if max is None else max, out=out)
    return operations["minimum"](operations["maximum"](x, min), max, out=out)


def mean(x, /, *, axis=None, keepdims=False):
    """Arithmetic mean over the axes, in floating point: integers are added as floats, whose sum does not wrap, and
    float16 as float32."""
    dtype, half = None, isinstance(x, Array) and x.dtype == "float16"
    if isinstance(x, Array) and x.dtype.kind not in "fc":
        dtype = "float64" if x.device.has_aspect_fp64 else "float32"
    total = _engine.operations["sum"](x, axis=axis, keepdims=keepdims, dtype="float32" if half else dtype)
    found = total / (x.size // total.size if total.size else 0) if x.size else total * nan
    return found.astype("float16") if half else found


def _mean(x, axis, keepdims):
    """Array.mean()."""
    return mean(x, axis=axis, keepdims=keepdims)


def concat(arrays, /, *, axis=0):
    """The arrays one after the other along an axis; None flattens them first."""
    arrays = [a.reshape(-1) for a in arrays] if axis is None else list(arrays)
    if not arrays:
        raise ValueError("concat needs one array at least")
    first = arrays[0]
    axis = 0 if axis is None else _one_axis(axis, first.ndim)
    for a in arrays:
        if a.shape[:axis] + a.shape[axis + 1:] != first.shape[:axis] + first.shape[axis + 1:] or a.ndim != first.ndim:
            raise ValueError(f"concat: shapes {first.shape} and {a.shape} differ outside of axis {axis}")
        if a.queue != first.queue:
            raise _engine.ExecutionPlacementError("the arrays live on different queues: bring them together with "
                                                  "to_device()")
    length = 0
    for a in arrays:
        length += a.shape[axis]
    out = empty(first.shape[:axis] + (length,) + first.shape[axis + 1:], dtype=result_type(*arrays),
                queue=first.queue, usm_type=first.usm_type)
    start = 0
    for a in arrays:
        out[(slice(None),) * axis + (slice(start, start + a.shape[axis]),)] = a
        start += a.shape[axis]
    return out


def stack(arrays, /, *, axis=0):
    """The arrays side by side along a new axis."""
    return concat([expand_dims(a, axis=axis) for a in arrays], axis=axis)


from drupe.array import fft, random  # noqa: E402 (they use what is defined above)

__all__ += ["fft", "random"]
