"""Functions that pick elements by index arrays and masks, or write them.

Index arrays of any integer type become int64 on the device. An index outside of its axis is found by the work: the
error arrives where its result is waited for. Lists and NumPy arrays of indices are copied to the device.
"""
import operator

from drupe import _engine
from drupe.array._axes import one_axis

_ops = _engine.operations


def _array(name, x):
    if not isinstance(x, _engine.Array):
        raise TypeError(f"{name} takes arrays of drupe.array, not {type(x).__name__}. "
                        "Copy it to the device first: drupe.array.asarray(x)")
    return x


def _here(x, other, dtype=None):
    """`other` as an array on the queue of x."""
    if isinstance(other, _engine.Array):
        return other
    made = _engine.asarray(other, queue=x.queue, dtype=dtype)
    if dtype is None and not made.size and isinstance(other, (list, tuple)):
        made = made.astype("int64")  # nothing says what it would hold
    return made


def _mask(x, condition):
    """A condition as bools on the queue of x."""
    condition = _here(x, condition)
    return condition if condition.dtype.kind == "b" else condition != 0


def _along(name, x, axis):
    """x and the number of an axis; x flattened for None."""
    return (_array(name, x).reshape(-1), 0) if axis is None else (_array(name, x), one_axis(axis, x.ndim))


def _cycled(x, values, count):
    """`count` values, begun anew when they are over; None when there are none."""
    values = _here(x, values).reshape(-1)
    if values.size == 1 or values.size == count:
        return values
    if values.size > count or not values.size:
        return values[:count] if values.size else None
    order = _engine._sequence(count, 0, 1, "int64", None, None, x.queue)
    return _engine._take(values, order, 0, "wrap")


def take(x, indices, /, axis=None, *, mode="raise"):
    """Elements of x along an axis; with axis=None of x flattened.

    indices: integers, negative ones from the end, of any shape, which takes the place of the axis in the result's
    shape. mode: what becomes of indices outside: "raise" (an error, told where the result is waited for), "wrap"
    (modulo the length) or "clip" (the nearest end; no negative ones). IndexError for an axis that x does not have.

    >>> take(asarray([10., 20., 30.]), asarray([2, 0])).tolist()
    [30.0, 10.0]
    """
    x, axis = _along("take", x, axis)
    return _engine._take(x, _here(x, indices), axis, mode)


def take_along_axis(x, indices, /, axis=-1, *, mode="raise"):
    """For each index the element of its own row: out[i, j] = x[i, indices[i, j]] along the last of two axes.

    indices: integers, with as many dimensions as x; lengths beside the axis are equal or 1. axis=None: of x flattened.
    mode: as of take(). ValueError where shapes do not fit. What argsort() gives sorts by this.

    >>> take_along_axis(asarray([[3, 1], [2, 5]]), asarray([[1], [0]])).tolist()
    [[1], [2]]
    """
    x, axis = _along("take_along_axis", x, axis)
    return _engine._take_along(x, _here(x, indices), axis, mode)


def put(x, indices, values, /, *, mode="raise"):
    """Write values into x flattened, in place. Where an index comes twice, the last value stays.

    values: cast to the type of x, and begun anew when there are fewer than indices. mode: as of take().

    >>> x = zeros(4); put(x, [0, -1], [5, 6]); x.tolist()
    [5.0, 0.0, 0.0, 6.0]
    """
    indices = _here(_array("put", x), indices).reshape(-1)
    values = _cycled(x, values, indices.size)
    if values is None or not indices.size:
        return
    flat = x.reshape(-1)
    _engine._put(flat, indices, values, mode)
    if not x.is_contiguous:  # then it was a copy
        x[...] = flat.reshape(x.shape)


def put_along_axis(x, indices, /, values, axis=-1):
    """Write a value to each row's own place: x[i, indices[i, j]] = values[i, j] along the last of two axes, in place.

    indices: as of take_along_axis(); values broadcast to their shape. axis=None: into x flattened.

    >>> x = zeros((2, 2)); put_along_axis(x, asarray([[1], [0]]), 7.); x.tolist()
    [[0.0, 7.0], [7.0, 0.0]]
    """
    indices = _here(_array("put_along_axis", x), indices)
    values = values if isinstance(values, (bool, int, float)) else _here(x, values)
    if axis is None:
        flat = x.reshape(-1)
        _engine._put_along(flat, indices, 0, values)
        if not x.is_contiguous:
            x[...] = flat.reshape(x.shape)
    else:
        _engine._put_along(x, indices, one_axis(axis, x.ndim), values)


def nonzero(x, /):
    """Where elements are not zero (or true): a tuple of one int64 array for each axis, in C order. Waits for their
    number. ValueError for an array without dimensions.

    >>> [i.tolist() for i in nonzero(asarray([[0, 1], [2, 0]]))]
    [[0, 1], [1, 0]]
    """
    return _engine._nonzero(_array("nonzero", x), False)


def flatnonzero(x, /):
    """Where elements of x flattened are not zero, an int64 array. Waits for their number.

    >>> flatnonzero(asarray([0, 3, 0, 4])).tolist()
    [1, 3]
    """
    return _engine._nonzero(_array("flatnonzero", x).reshape(-1), False)[0]


def argwhere(x, /):
    """Where elements are not zero: a row of x.ndim numbers for each of them. Waits for their number.

    >>> argwhere(asarray([[0, 1], [2, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    if _array("argwhere", x).ndim == 0:
        return _engine.permute_dims(_engine._nonzero(x.reshape(1), True), (1, 0))[:, :0]
    return _engine.permute_dims(_engine._nonzero(x, True), (1, 0))


def extract(condition, x, /):
    """The elements of x flattened where `condition`, of the same size, is true. Waits for their number.

    >>> extract(asarray([True, False, True]), asarray([1, 2, 3])).tolist()
    [1, 3]
    """
    x = _array("extract", x).reshape(-1)
    return compress(_here(x, condition).reshape(-1), x)


def compress(condition, x, /, axis=None):
    """The parts of x along an axis where `condition`, bools in one dimension, is true; it may be shorter than the axis,
    not longer. axis=None: elements of x flattened. Waits for their number.

    >>> compress([True, False], asarray([[1, 2], [3, 4]]), axis=1).tolist()
    [[1], [3]]
    """
    x, axis = _along("compress", x, axis)
    mask = _mask(x, condition)
    if mask.ndim != 1:
        raise ValueError(f"compress: the condition has one dimension, not {mask.ndim}")
    if axis == 0 and mask.shape[0] == x.shape[0]:
        return x[mask]
    return _engine._take(x, flatnonzero(mask), axis, "raise")


def place(x, mask, values, /):
    """x[mask] = values, in place, where values are begun anew when they are over, and too many are not looked at. mask:
    bools of the size of x. Waits for the number of true ones, unless there is one value.

    >>> x = zeros(5); place(x, asarray([True, False, True, True, False]), [1, 2]); x.tolist()
    [1.0, 0.0, 2.0, 1.0, 0.0]
    """
    mask = _mask(_array("place", x), mask)
    if mask.size != x.size:
        raise ValueError(f"place: the mask has {mask.size} elements, and the array {x.size}")
    values, mask = _here(x, values).reshape(-1), mask.reshape(x.shape)
    if values.size != 1:
        count = int(_ops["sum"](mask))
        values = _cycled(x, values, count)
        if values is None and count:
            raise ValueError("place: there are no values for the true elements of the mask")
        if not count:
            return
    x[mask] = values


def choose(a, choices, /, *, mode="raise"):
    """For each element of a, integers, that of the array of `choices` which it numbers. All are broadcast together.
    mode: as of take().

    >>> choose(asarray([0, 1, 1]), [asarray([1, 2, 3]), 9]).tolist()
    [1, 9, 9]
    """
    from drupe.array import broadcast_arrays, result_type, stack

    choices = [_here(_array("choose", a), c) for c in choices]
    if not choices:
        raise ValueError("choose: there is nothing to choose from")
    dtype = result_type(*choices)
    place_, *rest = broadcast_arrays(a, *choices)
    rows = stack([c.astype(dtype, copy=False) for c in rest])
    return _engine._take_along(rows, place_.reshape((1, *place_.shape)), 0, mode).reshape(place_.shape)


def select(conditions, choices, default=0):
    """For each element that of the first of `choices` whose condition is true, else `default`. All are broadcast
    together.

    >>> x = asarray([1, 5, 9]); select([x < 3, x > 7], [x, x * 10]).tolist()
    [1, 0, 90]
    """
    if len(conditions) != len(choices) or not conditions:
        raise ValueError(f"select: {len(conditions)} conditions for {len(choices)} choices; there is one for each, and "
                         "one at least")
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        result = _ops["where"](_array("select", condition), choice, result)
    return result


def delete(x, obj, /, axis=None):
    """x without the parts along an axis that obj names: an integer, a slice, or an array of integers or bools.
    axis=None: of x flattened. Waits for the number of what is left, unless obj is an integer or a slice of
    neighbours.

    >>> delete(asarray([1, 2, 3, 4]), [0, -1]).tolist()
    [2, 3]
    """
    from drupe.array import concat

    x, axis = _along("delete", x, axis)
    length, before = x.shape[axis], (slice(None),) * axis
    if hasattr(obj, "__index__") and not isinstance(obj, (bool, _engine.Array)) and not getattr(obj, "ndim", 0):
        place_ = operator.index(obj)
        if not -length <= place_ < length:
            raise IndexError(f"index {place_} is out of bounds for axis {axis} with size {length}")
        place_ %= length
        obj = slice(place_, place_ + 1)
    if isinstance(obj, slice):
        gone = range(length)[obj]
        if abs(gone.step) == 1 or len(gone) < 2:
            if not gone:
                return x.copy()
            low, high = min(gone[0], gone[-1]), max(gone[0], gone[-1])
            return concat([x[before + (slice(None, low),)], x[before + (slice(high + 1, None),)]], axis=axis)
    else:
        obj = _here(x, obj)
    keep = _engine.full((length,), True, dtype="bool", queue=x.queue)
    keep[obj] = False
    return x[before + (keep,)]


def _insert_one(x, place_, values, axis):
    """insert() in front of one position: as many parts as the first axis of the values has."""
    from drupe.array import concat, moveaxis

    length, before = x.shape[axis], (slice(None),) * axis
    if not -length <= place_ <= length:
        raise IndexError(f"index {place_} is out of bounds for axis {axis} with size {length}")
    place_ += length if place_ < 0 else 0
    values = values.reshape((1,) * (x.ndim - values.ndim) + values.shape)
    values = moveaxis(values, 0, axis)
    shape = x.shape[:axis] + (values.shape[axis],) + x.shape[axis + 1:]
    values = _engine.broadcast_to(values, shape).astype(x.dtype, copy=False)
    return concat([x[before + (slice(None, place_),)], values, x[before + (slice(place_, None),)]], axis=axis)


def insert(x, obj, values, /, axis=None):
    """x with values, cast to its type, in front of positions along an axis: an integer, a slice, or a sequence of
    integers (of the axis of x, as it was). axis=None: into x flattened. An array obj is waited for.

    >>> insert(asarray([1, 2, 3]), 1, 9).tolist()
    [1, 9, 2, 3]
    """
    x, axis = _along("insert", x, axis)
    length, before = x.shape[axis], (slice(None),) * axis
    values = _here(x, values)
    if isinstance(obj, slice):
        obj = list(range(length)[obj])
    elif hasattr(obj, "tolist"):
        obj = obj.tolist()
    if not isinstance(obj, (list, tuple)):
        return _insert_one(x, operator.index(obj), values, axis)
    places = [operator.index(i) for i in obj]
    if len(places) == 1:
        return _insert_one(x, places[0], _moved_first(values, x.ndim, axis), axis)
    for i in places:
        if not -length <= i <= length:
            raise IndexError(f"index {i} is out of bounds for axis {axis} with size {length}")
    places = [i + length if i < 0 else i for i in places]
    order = sorted(range(len(places)), key=places.__getitem__)
    new = [0] * len(places)
    for rank, i in enumerate(order):
        new[i] = places[i] + rank
    new = _engine.asarray(new, dtype="int64", queue=x.queue)
    old = _engine.full((length + len(places),), True, dtype="bool", queue=x.queue)
    old[new] = False
    out = _engine._written(x.shape[:axis] + old.shape + x.shape[axis + 1:], dtype=x.dtype, queue=x.queue,
                           usm_type=x.usm_type)
    out[before + (new,)] = values
    out[before + (old,)] = x
    return out


def _moved_first(values, ndim, axis):
    """Values with the axis in front, as one position takes them."""
    from drupe.array import moveaxis

    return moveaxis(values.reshape((1,) * (ndim - values.ndim) + values.shape), axis, 0)


def repeated(x, repeats, axis):
    """repeat() by an array of numbers, one for each part along an axis of x."""
    repeats = _here(x, repeats)
    if repeats.ndim > 1 or repeats.size not in (1, x.shape[axis]):
        raise ValueError(f"repeat: repeats of shape {repeats.shape} do not fit an axis of {x.shape[axis]} elements: "
                         "give one for each, or one for all")
    if repeats.dtype.kind not in "iu":
        raise TypeError(f"repeat: repeats are integers, not {repeats.dtype.name}")
    repeats = _engine.broadcast_to(repeats.reshape(-1), (x.shape[axis],))
    return _engine._take(x, _engine._repeated(repeats), axis, "raise")
