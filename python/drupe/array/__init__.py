"""Arrays on devices, in the manner of the Python array API.

Work is queued where its operands are and nothing waits, except reading elements: asnumpy(), float(), printing.
The functions of the operations table (add, exp, sum ...) are made by the engine from that table.
"""
import math as _math
import numbers as _numbers
import operator as _operator
import sys as _sys
from importlib import import_module as _import_module

from drupe import _engine
from drupe.array._axes import one_axis as _one_axis
from drupe.array._axes import some_axes as _some_axes
from drupe.array._copies import HostCopyWarning, allow_host_copies
from drupe.array._einsum import einsum
from drupe.array._inspect import __array_namespace_info__, can_cast, finfo, iinfo, isdtype
from drupe.array._products import cross, diagonal, dot, inner, kron, outer, tensordot, trace, vdot, vecdot
from drupe.array._providers import providers
from drupe.array._shapes import (broadcast_arrays, broadcast_shapes, count_nonzero, diff, eye, flip, meshgrid, moveaxis,
                                 repeat, roll, std, tile, tril, triu, unstack, var)
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
__all__ += ["cross", "diagonal", "dot", "einsum", "inner", "kron", "linalg", "outer", "providers", "tensordot", "trace",
            "vdot"]

_KINDS = {bool: 1, int: 2, float: 3}  # of data types: what Python's numbers are in order

# The names of the table, such as sum and abs, hide builtins from here on; functions below use none of those.
globals().update(_engine.operations)
globals().update(_engine.dtypes)
__all__ += [*_engine.operations, *_engine.dtypes]


_INSTEAD = {
    "array": "Arrays are made by asarray(obj), and asarray(x, copy=True) is a copy.",
    "ndarray": "The class of arrays is Array.",
    "random": "Take NumPy's numbers: asarray(numpy.random.default_rng().normal(size=n)).",
}


def __getattr__(name):
    """Say what there is instead of a name that is known from NumPy."""
    if name == "linalg":
        return _import_module("drupe.array.linalg")
    hint = _INSTEAD.get(name, "")
    if not hint and not name.startswith("_") and name in getattr(_sys.modules.get("numpy"), "__dict__", ()):
        hint = f"NumPy's takes copies: asarray(numpy.{name}(x.asnumpy(), ...))."
    raise AttributeError(f"module 'drupe.array' has no attribute {name!r}" + (hint and ". " + hint))


def _real(what, number):
    """A number as an int or a float of Python."""
    if type(number) is float or type(number) is int and -2**63 <= number < 2**63:
        return number
    kind = _scalar_kind(number)
    if not kind:
        raise TypeError(f"{what} must be a number, not {type(number).__name__}")
    if kind == 3:
        return float(number)
    if not -2**63 <= number < 2**63:
        raise OverflowError(f"{number} does not fit into int64, the largest integer type of drupe.array")
    return int(number)


def arange(start, stop=None, step=1, dtype=None, *, device=None, usm_type=None, queue=None):
    """Numbers from start (0 if one limit is given) to before stop."""
    start, stop = (0, start) if stop is None else (_real("start", start), stop)
    stop, step = _real("stop", stop), 1 if step is None else _real("step", step)
    if step == 0 or not _math.isfinite(step):
        raise ValueError("arange: step must be finite and not zero")
    if type(start) is type(stop) is type(step) is int:
        count = -((start - stop) // step)  # rounded up
        dtype = "int64" if dtype is None else dtype
    else:
        count = (stop - start) / step
        if _math.isnan(count):
            raise ValueError("arange: start and stop must be finite")
        count = _math.ceil(count) if _math.isfinite(count) else count
    if count > 9e18:
        raise OverflowError("arange: the array would be too long")
    return _engine._sequence(count if count > 0 else 0, start, step, dtype, device, usm_type, queue)


def linspace(start, stop, num, *, dtype=None, device=None, usm_type=None, queue=None, endpoint=True):
    """Numbers evenly spaced from start to stop."""
    start, stop = float(_real("start", start)), float(_real("stop", stop))
    if not hasattr(num, "__index__"):
        raise TypeError(f"num must be an integer, not {type(num).__name__}")
    num = _operator.index(num)
    endpoint = True if endpoint is None else endpoint
    if num < 0:
        raise ValueError(f"num must not be negative, and {num} is")
    steps = num - 1 if endpoint else num
    step = (stop - start) / (steps if steps > 0 else 1)
    dtype = None if dtype is None else DType(dtype)
    # Computed in floats, and cast at the end where integers are wanted.
    x = _engine._sequence(num, start, step, dtype if dtype == "float32" else None, device, usm_type, queue)
    if endpoint and num > 1:
        x[-1] = stop  # which start + i*step may miss by rounding
    if dtype is None or x.dtype == dtype:
        return x
    if dtype.kind == "i":  # rounded down, as NumPy does: a cast alone would cut
        _engine.operations["floor_divide"](x, 1, out=x)
    return x.astype(dtype)


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
    return 2 if isinstance(item, _numbers.Integral) else 3 if isinstance(item, _numbers.Real) else 0


def result_type(*arrays_and_dtypes):
    """The common data type of arrays, data types and numbers. A number changes the type of the others only when its
    kind (bool, int, float) is above theirs, to int64 or float64, as operators do."""
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
    if scalar > "bif".index(common.kind) + 1:
        common = DType("int64" if scalar == 2 else "float64" if double else "float32")
    return common


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
    """Arithmetic mean over the axes, in floating point: integers are added as floats, whose sum does not wrap."""
    dtype = None
    if isinstance(x, Array) and x.dtype.kind != "f":
        dtype = "float64" if x.device.has_aspect_fp64 else "float32"
    total = _engine.operations["sum"](x, axis=axis, keepdims=keepdims, dtype=dtype)
    return total / (x.size // total.size if total.size else 0) if x.size else total * nan


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
