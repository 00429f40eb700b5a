"""Functions of the array API that arrange elements, or combine operations of the table."""
import math
import operator

from drupe import _engine
from drupe.array._axes import one_axis, some_axes

_ops = _engine.operations


def broadcast_shapes(*shapes):
    """The common shape of several, as a tuple."""
    ndim = max((len(shape) for shape in shapes), default=0)
    common = [1] * ndim
    for shape in shapes:
        for axis, length in enumerate(shape, ndim - len(shape)):
            if length != 1 and common[axis] not in (1, length):
                raise ValueError(f"shapes {', '.join(str(tuple(s)) for s in shapes)} do not broadcast to one shape")
            common[axis] = length if length != 1 else common[axis]
    return tuple(common)


def broadcast_arrays(*arrays):
    """Views of the arrays in their common shape, as a tuple. Elements that are shown often cannot be written."""
    shape = broadcast_shapes(*[x.shape for x in arrays])
    return tuple(_engine.broadcast_to(x, shape) for x in arrays)


def flip(x, /, *, axis=None):
    """A view with the order of the elements reversed along the axes, None for all."""
    axes = some_axes(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(x.ndim))]


def moveaxis(x, source, destination, /):
    """A view with axes moved to other places; the others keep their order."""
    source = source if isinstance(source, (tuple, list)) else (source,)
    destination = destination if isinstance(destination, (tuple, list)) else (destination,)
    if len(source) != len(destination):
        raise ValueError(f"moveaxis: {len(source)} axes cannot be moved to {len(destination)} places")
    come, go = some_axes(tuple(source), x.ndim), some_axes(tuple(destination), x.ndim)
    moved = [one_axis(a, x.ndim) for a in source]
    places = dict(zip((one_axis(a, x.ndim) for a in destination), moved))
    rest = iter(a for a in range(x.ndim) if a not in come)
    return _engine.permute_dims(x, tuple(places[a] if a in go else next(rest) for a in range(x.ndim)))


def roll(x, /, shift, *, axis=None):
    """The elements moved along the axes by `shift` places; what leaves at the end comes in at the beginning. None moves
    through the flattened array."""
    if axis is None:
        return roll(x.reshape(-1), shift, axis=0).reshape(x.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    for by, along in zip(shifts, axes):
        along = one_axis(along, x.ndim)
        length = x.shape[along]
        by = operator.index(by) % length if length else 0
        out = _engine.empty_like(x)
        whole = (slice(None),) * along
        out[whole + (slice(by, None),)] = x[whole + (slice(None, length - by),)]
        out[whole + (slice(None, by),)] = x[whole + (slice(length - by, None),)]
        x = out
    return x if axes else x.copy()


def repeat(x, repeats, /, *, axis=None):
    """Each element `repeats` times in a row along an axis; None flattens first. `repeats` is an integer."""
    if not hasattr(repeats, "__index__") or isinstance(repeats, _engine.Array):
        raise TypeError("repeat: the number of repeats must be an integer here, the same for all elements")
    x, axis = (x.reshape(-1), 0) if axis is None else (x, one_axis(axis, x.ndim))
    if (repeats := operator.index(repeats)) < 0:
        raise ValueError(f"repeat: the number of repeats must not be negative, and {repeats} is")
    shape = x.shape
    apart = x.reshape(shape[:axis + 1] + (1,) + shape[axis + 1:])
    together = _engine.broadcast_to(apart, shape[:axis + 1] + (repeats,) + shape[axis + 1:])
    return together.copy().reshape(shape[:axis] + (shape[axis] * repeats,) + shape[axis + 1:])


def tile(x, repetitions, /):
    """The array itself repeated along each axis, as often as `repetitions` says."""
    ndim = max(x.ndim, len(repetitions))
    shape = (1,) * (ndim - x.ndim) + x.shape
    times = (1,) * (ndim - len(repetitions)) + tuple(operator.index(n) for n in repetitions)
    if any(n < 0 for n in times):
        raise ValueError("tile: repetitions must not be negative")
    apart = x.reshape(tuple(n for length in shape for n in (1, length)))
    together = _engine.broadcast_to(apart, tuple(n for pair in zip(times, shape) for n in pair))
    return together.copy().reshape(tuple(n * length for n, length in zip(times, shape)))


def unstack(x, /, *, axis=0):
    """Views of the parts of x along an axis, as a tuple."""
    axis = one_axis(axis, x.ndim)
    return tuple(x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis]))


def meshgrid(*arrays, indexing="xy"):
    """Coordinates on a grid, an array for each of the one-dimensional arrays, as a tuple."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing is "xy" or "ij", not {indexing!r}')
    if any(x.ndim > 1 for x in arrays):
        raise ValueError("meshgrid takes arrays with one dimension")
    n = len(arrays)
    apart = [x.reshape((1,) * i + (-1,) + (1,) * (n - 1 - i)) for i, x in enumerate(arrays)]
    if indexing == "xy" and n > 1:
        apart = [_engine.permute_dims(x, (1, 0, *range(2, n))) for x in apart]
    return tuple(x.copy() for x in broadcast_arrays(*apart))


def _diagonal(rows, columns, *, queue=None, device=None):
    """Column minus row of each element of a matrix."""
    down = _engine._sequence(rows, 0, 1, "int64", device, None, queue)
    right = _engine._sequence(columns, 0, 1, "int64", None, None, down.queue)
    return right - down.reshape((-1, 1))


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """A matrix with ones on the diagonal that begins in column k, and zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    matrix = _ops["equal"](_diagonal(operator.index(n_rows), operator.index(columns), device=device), operator.index(k))
    if dtype is None:
        dtype = "float64" if matrix.device.has_aspect_fp64 else "float32"
    return matrix.astype(dtype, copy=False)


def tril(x, /, *, k=0):
    """The elements of matrices on the diagonal that begins in column k and below it, and zeros elsewhere."""
    return _ops["where"](_on_matrices("tril", x) <= operator.index(k), x, False)


def triu(x, /, *, k=0):
    """The elements of matrices on the diagonal that begins in column k and above it, and zeros elsewhere."""
    return _ops["where"](_on_matrices("triu", x) >= operator.index(k), x, False)


def _on_matrices(name, x):
    if x.ndim < 2:
        raise ValueError(f"{name} needs 2 dimensions at least, and the array has {x.ndim}")
    return _diagonal(x.shape[-2], x.shape[-1], queue=x.queue)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours along an axis, taken n times; between bools whether they differ."""
    from drupe.array import concat

    axis = one_axis(axis, x.ndim)
    if (n := operator.index(n)) < 0:
        raise ValueError(f"diff: n must not be negative, and {n} is")
    parts = [part for part in (prepend, x, append) if part is not None]
    if n and len(parts) > 1:
        x = concat(parts, axis=axis)
    whole = (slice(None),) * axis
    for _ in range(n):
        after, before = x[whole + (slice(1, None),)], x[whole + (slice(None, -1),)]
        x = after != before if x.dtype.kind == "b" else after - before
    return x if n else x.copy()


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements are not zero, over the axes; NaN is not."""
    return _ops["sum"](x if x.dtype.kind == "b" else x != 0, axis=axis, keepdims=keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Variance over the axes: the mean of the squared distances from the mean, with n - correction instead of n."""
    from drupe.array import mean

    axes = some_axes(axis, x.ndim)
    apart = x - mean(x, axis=axis, keepdims=True)
    total = _ops["sum"](_ops["square"](apart), axis=axis, keepdims=keepdims)
    count = math.prod(x.shape[a] for a in axes) - correction
    return total / (count if count > 0 else 0.0)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Standard deviation over the axes: the root of the variance."""
    return _ops["sqrt"](var(x, axis=axis, correction=correction, keepdims=keepdims))
