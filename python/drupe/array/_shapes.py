"""Functions of the array API that arrange elements, or combine operations of the table."""
import operator

from drupe import _engine
from drupe.array._arguments import in_c_order, laid_out, need, several
from drupe.array._axes import one_axis, some_axes
from drupe.array._indexing import repeated

_ops = _engine.operations


def reshape(x, /, shape, *, copy=None, order="C"):
    """The elements in another shape: a view where that is possible.

    x: an array. shape: the sizes, of which one may be -1 for what is left. copy: True for a copy always, False for none
    (ValueError where no view has the shape). order: "C" (elements are counted by rows) or "F" (by columns). ValueError:
    a shape of another number of elements.

    >>> da.reshape(da.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if in_c_order("reshape", order):
        return _engine._reshape(x, shape, copy)
    shape = tuple(shape) if hasattr(shape, "__len__") else (shape,)
    return _engine._reshape(x.T, shape[::-1], copy).T


def reshape_method(x, shape, options):
    """Array.reshape() with options: a dict of them."""
    return reshape(x, shape, **options)


def concat(arrays, /, axis=0):
    """The arrays one after the other along an axis; None flattens them first.

    arrays: a sequence of arrays whose shapes are the same outside of the axis. Returns a new array of the common data
    type. ValueError: no arrays, or shapes that differ; ExecutionPlacementError: arrays on different queues.

    >>> da.concat([da.asarray([1, 2]), da.asarray([3])]).tolist()
    [1, 2, 3]
    """
    from drupe.array import result_type
    from drupe.utils import get_coerced_usm_type

    arrays = several("concat", arrays)
    if not arrays:
        raise ValueError("concat needs one array at least")
    if axis is None:
        arrays, axis = [a.reshape(-1) for a in arrays], 0
    first = arrays[0]
    axis = one_axis(axis, first.ndim)
    for a in arrays:
        if a.shape[:axis] + a.shape[axis + 1:] != first.shape[:axis] + first.shape[axis + 1:] or a.ndim != first.ndim:
            raise ValueError(f"concat: shapes {first.shape} and {a.shape} differ outside of axis {axis}")
        if a.queue != first.queue:
            raise _engine.ExecutionPlacementError("the arrays live on different queues: bring them together with "
                                                  "to_device()")
    length = 0
    for a in arrays:
        length += a.shape[axis]
    out = _engine._written(first.shape[:axis] + (length,) + first.shape[axis + 1:], dtype=result_type(*arrays),
                           queue=first.queue, usm_type=get_coerced_usm_type([a.usm_type for a in arrays]))
    start = 0
    for a in arrays:
        out[(slice(None),) * axis + (slice(start, start + a.shape[axis]),)] = a
        start += a.shape[axis]
    return out


def stack(arrays, /, axis=0):
    """The arrays side by side along a new axis.

    arrays: a sequence of arrays of one shape. axis: the place of the new axis in the result. Returns a new array of the
    common data type. ValueError: no arrays, or shapes that differ.

    >>> da.stack([da.asarray([1, 2]), da.asarray([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    arrays = several("stack", arrays)
    if not arrays:
        raise ValueError("stack needs one array at least")
    axis = one_axis(axis, arrays[0].ndim + 1)
    for x in arrays:
        if x.shape != arrays[0].shape:
            raise ValueError(f"stack: shapes {arrays[0].shape} and {x.shape} differ")
    whole = (slice(None),) * axis
    return concat([x[(*whole, None)] for x in arrays], axis=axis)


def broadcast_shapes(*shapes):
    """The common shape of several, as a tuple.

    shapes: tuples of sizes; an integer is a shape of one axis. ValueError: they do not broadcast to one shape.

    >>> da.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    shapes = [tuple(shape) if hasattr(shape, "__len__") else (operator.index(shape),) for shape in shapes]
    ndim = max((len(shape) for shape in shapes), default=0)
    common = [1] * ndim
    for shape in shapes:
        for axis, length in enumerate(shape, ndim - len(shape)):
            if length != 1 and common[axis] not in (1, length):
                raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast to one shape")
            common[axis] = length if length != 1 else common[axis]
    return tuple(common)


def broadcast_arrays(*arrays):
    """Views of the arrays in their common shape, as a tuple. Elements that are shown often cannot be written.

    arrays: of any shapes that broadcast to one, and any data types. ValueError: they do not broadcast.

    >>> [x.shape for x in da.broadcast_arrays(da.zeros((2, 1)), da.zeros(3))]
    [(2, 3), (2, 3)]
    """
    shape = broadcast_shapes(*[x.shape for x in arrays])
    return tuple(_engine.broadcast_to(x, shape) for x in arrays)


def flip(x, /, axis=None):
    """A view with the order of the elements reversed along the axes, None for all.

    x: an array of any data type. axis: one axis, or several in a tuple. IndexError: an axis that x does not have.

    >>> da.flip(da.asarray([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    axes = some_axes(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(x.ndim))]


def moveaxis(x, source, destination, /):
    """A view with axes moved to other places; the others keep their order.

    x: an array of any data type. source, destination: an axis each, or as many in tuples. IndexError: an axis that x
    does not have; ValueError: not as many places as axes, or one twice.

    >>> da.moveaxis(da.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    source = source if isinstance(source, (tuple, list)) else (source,)
    destination = destination if isinstance(destination, (tuple, list)) else (destination,)
    if len(source) != len(destination):
        raise ValueError(f"moveaxis: {len(source)} axes cannot be moved to {len(destination)} places")
    come, go = some_axes(tuple(source), x.ndim), some_axes(tuple(destination), x.ndim)
    moved = [one_axis(a, x.ndim) for a in source]
    places = dict(zip((one_axis(a, x.ndim) for a in destination), moved))
    rest = iter(a for a in range(x.ndim) if a not in come)
    return _engine.permute_dims(x, tuple(places[a] if a in go else next(rest) for a in range(x.ndim)))


def roll(x, /, shift, axis=None):
    """The elements moved along the axes by `shift` places; what leaves at the end comes in at the beginning. None moves
    through the flattened array.

    x: an array of any data type. shift: an integer, or one for each axis. axis: one axis, or several in a tuple.
    Returns a new array. IndexError: an axis that x does not have; ValueError: not as many shifts as axes.

    >>> da.roll(da.asarray([1, 2, 3, 4]), 1).tolist()
    [4, 1, 2, 3]
    """
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
        out = _engine._written_like(x)
        whole = (slice(None),) * along
        out[whole + (slice(by, None),)] = x[whole + (slice(None, length - by),)]
        out[whole + (slice(None, by),)] = x[whole + (slice(length - by, None),)]
        x = out
    return x if axes else x.copy()


def repeat(x, repeats, /, axis=None):
    """Each element `repeats` times in a row along an axis; None flattens first.

    x: an array of any data type. repeats: an integer, or integers in one dimension, one for each element along the
    axis, whose sum is waited for. Returns a new array. ValueError: a negative number, or repeats that do not fit the
    axis; TypeError: repeats that are no integers.

    >>> da.repeat(da.asarray([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    x, axis = (x.reshape(-1), 0) if axis is None else (x, one_axis(axis, x.ndim))
    if isinstance(repeats, (_engine.Array, list, tuple)) or getattr(repeats, "ndim", 0):
        return repeated(x, repeats, axis)
    if not hasattr(repeats, "__index__"):
        raise TypeError("repeat: the number of repeats is an integer, or an array of integers")
    if (repeats := operator.index(repeats)) < 0:
        raise ValueError(f"repeat: the number of repeats must not be negative, and {repeats} is")
    shape = x.shape
    apart = x.reshape(shape[:axis + 1] + (1,) + shape[axis + 1:])
    together = _engine.broadcast_to(apart, shape[:axis + 1] + (repeats,) + shape[axis + 1:])
    return together.copy().reshape(shape[:axis] + (shape[axis] * repeats,) + shape[axis + 1:])


def tile(x, repetitions, /):
    """The array itself repeated along each axis, as often as `repetitions` says.

    x: an array of any data type. repetitions: an integer for the last axis, or a tuple; it may have more entries than x
    has axes, or fewer. Returns a new array. ValueError: a negative number.

    >>> da.tile(da.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    need("tile", x)
    repetitions = tuple(repetitions) if hasattr(repetitions, "__len__") else (repetitions,)
    ndim = max(x.ndim, len(repetitions))
    shape = (1,) * (ndim - x.ndim) + x.shape
    times = (1,) * (ndim - len(repetitions)) + tuple(operator.index(n) for n in repetitions)
    if any(n < 0 for n in times):
        raise ValueError("tile: repetitions must not be negative")
    apart = x.reshape(tuple(n for length in shape for n in (1, length)))
    together = _engine.broadcast_to(apart, tuple(n for pair in zip(times, shape) for n in pair))
    return together.copy().reshape(tuple(n * length for n, length in zip(times, shape)))


def unstack(x, /, axis=0):
    """Views of the parts of x along an axis, as a tuple.

    x: an array of one dimension at least. IndexError: an axis that x does not have.

    >>> [part.tolist() for part in da.unstack(da.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    axis = one_axis(axis, x.ndim)
    return tuple(x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis]))


def meshgrid(*arrays, indexing="xy", sparse=False, copy=True):
    """Coordinates on a grid, an array for each of the one-dimensional arrays, as a tuple.

    arrays: with one dimension each. indexing: "xy" for a grid whose rows belong to the second array, "ij" for one whose
    rows belong to the first. Returns new arrays of the grid's shape; views of it if not copy, and of size 1 along the
    other axes if sparse. ValueError: more dimensions, or another indexing.

    >>> [x.tolist() for x in da.meshgrid(da.asarray([1, 2]), da.asarray([5, 6, 7]))]
    [[[1, 2], [1, 2], [1, 2]], [[5, 5], [6, 6], [7, 7]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing is "xy" or "ij", not {indexing!r}')
    if any(x.ndim > 1 for x in arrays):
        raise ValueError("meshgrid takes arrays with one dimension")
    n = len(arrays)
    apart = [x.reshape((1,) * i + (-1,) + (1,) * (n - 1 - i)) for i, x in enumerate(arrays)]
    if indexing == "xy" and n > 1:
        apart = [_engine.permute_dims(x, (1, 0, *range(2, n))) for x in apart]
    made = apart if sparse else broadcast_arrays(*apart)
    return tuple(x.copy() for x in made) if copy else tuple(made)


def _column(k):
    """The column in which a diagonal begins, as a number of int64: beyond every matrix, one is as good as another."""
    return max(-2**62, min(operator.index(k), 2**62))


def _diagonal(rows, columns, *, queue=None, device=None, usm_type=None):
    """Column minus row of each element of a matrix."""
    down = _engine._sequence(rows, 0, 1, "int64", device, usm_type, queue)
    right = _engine._sequence(columns, 0, 1, "int64", None, usm_type, down.queue)
    return right - down.reshape((-1, 1))


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None, usm_type=None, queue=None, sycl_queue=None,
        order="C"):
    """A matrix with ones on the diagonal that begins in column k, and zeros elsewhere.

    n_rows, n_cols: its sizes; without n_cols it is square. dtype: of the elements, or None for the default float.
    device, usm_type, queue, order: as zeros() has them; sycl_queue: queue, as dpctl calls it. ValueError: a size is
    negative.

    >>> da.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    shape = operator.index(n_rows), operator.index(n_rows if n_cols is None else n_cols)
    queue = sycl_queue if queue is None else queue
    matrix = _ops["equal"](_diagonal(*shape, device=device, usm_type=usm_type, queue=queue), _column(k))
    if dtype is None:
        dtype = "float64" if matrix.device.has_aspect_fp64 else "float32"
    matrix = matrix.astype(dtype, copy=False)
    return matrix if in_c_order("eye", order) else laid_out(matrix, "F")


def tril(x, /, *, k=0):
    """The elements of matrices on the diagonal that begins in column k and below it, and zeros elsewhere.

    x: an array of two dimensions at least, of any data type; ValueError for fewer.

    >>> da.tril(da.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 0], [3, 4]]
    """
    return _ops["where"](_on_matrices("tril", x) <= _column(k), x, False)


def triu(x, /, *, k=0):
    """The elements of matrices on the diagonal that begins in column k and above it, and zeros elsewhere.

    x: an array of two dimensions at least, of any data type; ValueError for fewer.

    >>> da.triu(da.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 2], [0, 4]]
    """
    return _ops["where"](_on_matrices("triu", x) >= _column(k), x, False)


def _on_matrices(name, x):
    if x.ndim < 2:
        raise ValueError(f"{name} needs 2 dimensions at least, and the array has {x.ndim}")
    return _diagonal(x.shape[-2], x.shape[-1], queue=x.queue, usm_type=x.usm_type)


def diff(x, /, n=1, axis=-1, *, prepend=None, append=None):
    """Differences of neighbours along an axis, taken n times; between bools whether they differ.

    x: an array of one dimension at least. prepend, append: arrays to join to it before. Returns an array that is n
    shorter along the axis. IndexError: an axis that x does not have; ValueError: n is negative.

    >>> da.diff(da.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
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
