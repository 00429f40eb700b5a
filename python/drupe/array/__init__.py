"""Arrays on devices, in the manner of the Python array API.

Work is queued where its operands are and nothing waits, except reading elements: asnumpy(), float(), printing.
The functions of the operations table (add, exp, sum ...) are made by the engine from that table.
"""
import math as _math
import numbers as _numbers
import operator as _operator
import sys as _sys

from drupe import _engine
from drupe.array._arguments import need as _need
from drupe.array._axes import some_axes as _some_axes
from drupe.array._copies import HostCopyWarning, allow_host_copies
from drupe.array._comparing import allclose, array_equal, array_equiv, isclose
from drupe.array._counting import bincount, digitize, histogram, histogram_bin_edges, interp
from drupe.array._einsum import einsum
from drupe.array._elementwise import (bitwise_count, cbrt, deg2rad, divmod, exp2, fabs, float_power, fmax, fmin, fmod,
                                      frexp, heaviside, iscomplex, iscomplexobj, isneginf, isposinf, isreal, isrealobj,
                                      isscalar, ldexp, logaddexp2, nan_to_num, rad2deg,
                                      real_if_close, rsqrt, sinc)
from drupe.array._elementwise import round as _round
from drupe.array._indexing import (argwhere, choose, compress, delete, extract, flatnonzero, insert, nonzero, place,
                                   put, put_along_axis, select, take, take_along_axis)
from drupe.array._exchange import from_dlpack
from drupe.array._fusing import eager
from drupe.array._inspect import __array_namespace_info__, can_cast, finfo, iinfo, isdtype
from drupe.array._joining import (append, array_split, atleast_1d, atleast_2d, atleast_3d, block, column_stack,
                                  concatenate, dsplit, dstack, fliplr, flipud, hsplit, hstack, ravel, rollaxis,
                                  rot90, split, swapaxes, transpose, vsplit, vstack)
from drupe.array._making import (array, asanyarray, ascontiguousarray, asfortranarray, copy, copyto, diag, diagflat,
                                 diagonal, fill_diagonal, from_numpy, frombuffer, fromfunction, fromiter, geomspace,
                                 identity, indices, isfortran, ix_, logspace, mgrid, ogrid, to_numpy, trace, tri,
                                 vander)
from drupe.array._means import clip, count_nonzero, mean, std, var
from drupe.array._numeric import (apply_along_axis, average, convolve, correlate, ediff1d, gradient, logsumexp, polyval,
                                  ptp, reduce_hypot, trapezoid, unwrap)
from drupe.array._order import (argmax, argmin, argpartition, argsort, cumprod, cumsum, cumulative_prod, cumulative_sum,
                                lexsort, partition, sort, top_k)
from drupe.array._padding import pad
from drupe.array._places import (diag_indices, diag_indices_from, ravel_multi_index, tril_indices, tril_indices_from,
                                 triu_indices, triu_indices_from, unravel_index)
from drupe.array._products import cross, dot, inner, kron, outer, tensordot, vdot, vecdot
from drupe.array._providers import providers
from drupe.array._refused import ALIASES as _ALIASES
from drupe.array._refused import hint as _hint
from drupe.array._recipe import Recipe
from drupe.array._sets import (intersect1d, isin, searchsorted, setdiff1d, setxor1d, union1d, unique, unique_all,
                               unique_counts, unique_inverse, unique_values)
from drupe.array._shapes import (broadcast_arrays, broadcast_shapes, concat, diff, eye, flip, meshgrid, moveaxis,
                                 repeat, reshape, roll, stack, tile, tril, triu, unstack)
from drupe.array._statistics import (corrcoef, cov, median, nanargmax, nanargmin, nancumprod, nancumsum, nanmax,
                                     nanmean, nanmedian, nanmin, nanpercentile, nanprod, nanquantile, nanstd, nansum,
                                     nanvar, percentile, quantile)
from drupe._engine import (Array, DType, asarray, asnumpy, broadcast_to, empty, empty_like, full, full_like, matmul,
                           ones, ones_like, permute_dims, zeros, zeros_like)

__array_api_version__ = "2025.12"

e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None
euler_gamma = 0.5772156649015329

__all__ = ["Array", "DType", "HostCopyWarning", "__array_namespace_info__", "allow_host_copies", "arange", "asarray",
           "asnumpy", "astype", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "clip", "concat",
           "count_nonzero", "diff", "e", "empty", "empty_like", "expand_dims", "eye", "finfo", "flip", "from_dlpack",
           "full", "full_like", "iinfo", "inf", "isdtype", "linspace", "matmul", "matrix_transpose", "mean",
           "meshgrid", "moveaxis", "nan", "newaxis", "ones", "ones_like", "permute_dims", "pi", "repeat", "reshape",
           "result_type", "roll", "squeeze", "stack", "std", "tile", "to_device", "tril", "triu", "unstack", "var",
           "vecdot", "zeros", "zeros_like"]

_KINDS = {bool: 1, int: 2, float: 3, complex: 4}  # of data types: what Python's numbers are in order
_PLACES = {"b": 1, "i": 2, "u": 2, "f": 3, "c": 4}  # and of what kind a data type's numbers are

__all__ += ["argwhere", "choose", "compress", "delete", "extract", "flatnonzero", "insert", "nonzero", "place", "put",
            "put_along_axis", "select", "take", "take_along_axis"]

# The names of the table, such as sum and abs, hide builtins from here on; functions below use none of those.
globals().update(_engine.operations)
globals().update(_engine.dtypes)
__all__ += [*_engine.operations, *_engine.dtypes]
dtype, round = DType, _round

def __getattr__(name):
    """Say what there is instead of a name that is known from NumPy."""
    known = not name.startswith("_") and name in getattr(_sys.modules.get("numpy"), "__dict__", ())
    hint = _hint(name, known)
    raise AttributeError(f"module 'drupe.array' has no attribute {name!r}" + (hint and ". " + hint))


def _real(what, number):
    """A number, or an array without dimensions, as an int or a float of Python."""
    number = number.item() if isinstance(number, Array) and number.ndim == 0 else number
    kind = _scalar_kind(number)
    if not 0 < kind < 4:
        raise TypeError(f"{what} must be a {'real ' if kind else ''}number, not {type(number).__name__}")
    return float(number) if kind == 3 else int(number)


def _number(what, number):
    """A number, or an array without dimensions, as a float or a complex of Python."""
    number = number.item() if isinstance(number, Array) and number.ndim == 0 else number
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


def arange(start, /, stop=None, step=1, dtype=None, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """Numbers from start (0 if one limit is given) to before stop.

    start, stop, step: real numbers. dtype: of the elements; None for int64 where all three are integers, else for the
    default float. sycl_queue: queue, as dpctl calls it. ValueError: step is 0; OverflowError: a number does not fit
    into the type.

    >>> da.arange(1, 7, 2).tolist()
    [1, 3, 5]
    """
    queue = sycl_queue if queue is None else queue
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


def linspace(start, stop, /, num=50, *, dtype=None, device=None, usm_type=None, queue=None, sycl_queue=None,
             endpoint=True, retstep=False):
    """Numbers evenly spaced from start to stop, which may be complex.

    num: how many. sycl_queue: queue, as dpctl calls it. endpoint: whether stop is the last one. retstep: whether the
    distance of neighbours is wanted, too: a tuple (numbers, distance) then. dtype: of the elements, None for the
    default float, or the default complex type; integers are rounded down. ValueError: num is negative. TypeError: a
    real dtype of complex ends.

    >>> da.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    queue = sycl_queue if queue is None else queue
    start, stop = _number("start", start), _number("stop", stop)
    if not hasattr(num, "__index__"):
        raise TypeError(f"num must be an integer, not {type(num).__name__}")
    num = _operator.index(num)
    endpoint = True if endpoint is None else endpoint
    if num < 0:
        raise ValueError(f"num must not be negative, and {num} is")
    if retstep:
        x = linspace(start, stop, num, dtype=dtype, device=device, usm_type=usm_type, queue=queue, endpoint=endpoint)
        steps = num - 1 if endpoint else num
        return x, (stop - start) / steps if steps > 0 else nan
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


def astype(x, dtype, /, *, copy=True, device=None):
    """The elements of x as another data type.

    x: an array of any shape. copy: False gives x itself where it has that type. device: where the result lives, None
    for where x does; another one takes a copy. Returns an array of x's shape. TypeError: complex numbers as real ones,
    whose real() or abs() is taken first.

    >>> da.astype(da.asarray([1.7, 2.0]), "int64").tolist()
    [1, 2]
    """
    _need("astype", x)
    converted = x.astype(dtype, copy=copy)
    return converted if device is None else converted.to_device(device)


def to_device(x, device, /, *, stream=None):
    """x on another device or queue; x itself if it is there.

    x: an array. device: a Device, a filter, or a Queue. stream: None, since queues are what others call streams.
    DeviceNotFoundError: there is no such device.

    >>> x = da.zeros(2)
    >>> da.to_device(x, x.queue) is x
    True
    """
    _need("to_device", x)
    return x.to_device(device, stream=stream)


def matrix_transpose(x, /):
    """A view with the last two axes exchanged.

    x: an array of two dimensions at least; ValueError for fewer.

    >>> da.matrix_transpose(da.zeros((2, 3, 4))).shape
    (2, 4, 3)
    """
    _need("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose needs 2 dimensions at least, and the array has {x.ndim}")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def expand_dims(x, /, axis):
    """A view with new axes of size 1, which are `axis` (one, or a tuple) of the result.

    x: an array of any shape. IndexError: an axis that the result does not have; ValueError: one that is given twice.

    >>> da.expand_dims(da.zeros((2, 3)), 1).shape
    (2, 1, 3)
    """
    _need("expand_dims", x)
    size = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    axes = _some_axes(axis, x.ndim, size)
    return x[tuple([None if a in axes else slice(None) for a in range(size)])]


def squeeze(x, /, axis):
    """A view without the given axes, which have size 1.

    x: an array. axis: one, or several in a tuple. IndexError: an axis that x does not have; ValueError: one that has
    another size.

    >>> da.squeeze(da.zeros((1, 3, 1)), 0).shape
    (3, 1)
    """
    _need("squeeze", x)
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

    >>> da.result_type("float32", 3) == "float32", da.result_type("uint8", "int8") == "int16"
    (True, True)
    """
    common, scalar, double = None, 0, True
    for item in arrays_and_dtypes:
        if kind := _scalar_kind(item):
            scalar = kind if kind > scalar else scalar
            continue
        dtype = item.dtype if isinstance(item, Array) else DType(item)
        double = double and not (isinstance(item, Array) and not item.device.has_aspect_fp64)
        common = dtype if common is None else _engine._promote(common, dtype)
    if common is None:
        raise ValueError("result_type needs an array or a data type at least")
    if scalar <= _PLACES[common.kind]:
        return common
    double = double and not (common.kind == "f" and common.itemsize < 8)
    return DType("int64" if scalar == 2 else
                 ("float64", "complex128")[scalar == 4] if double else ("float32", "complex64")[scalar == 4])


from drupe.array import fft, linalg, random  # noqa: E402 (they use what is defined above)

for _name, _other in _ALIASES.items():
    if _other in globals():
        globals()[_name] = globals()[_other]
__all__ = sorted({*__all__, *(_name for _name in globals() if not _name.startswith("_"))})
