"""Functions of arrays that have to do with order: running sums, places of extremes, sorts."""
import operator

from drupe import _engine
from drupe.array._axes import one_axis

_INDEX = "int64"


def _scan_axis(name, x, axis):
    if axis is not None:
        return one_axis(axis, x.ndim)
    if x.ndim != 1:
        raise ValueError(f"{name}: axis may be left out for arrays with one dimension, and this one has {x.ndim}")
    return 0


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running sums along an axis, which may be left out for arrays with one dimension.

    The result has the shape of x; with `include_initial` a zero stands in front, so that the axis is longer by one.
    Its dtype is that of sum() unless `dtype` is given. bool is refused as a dtype.

    >>> cumulative_sum(asarray([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _engine._cumulate(x, _scan_axis("cumulative_sum", x, axis), dtype, False, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running products along an axis, which may be left out for arrays with one dimension.

    The result has the shape of x; with `include_initial` a one stands in front, so that the axis is longer by one.
    Its dtype is that of prod() unless `dtype` is given. bool is refused as a dtype.

    >>> cumulative_prod(asarray([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    return _engine._cumulate(x, _scan_axis("cumulative_prod", x, axis), dtype, True, include_initial)


def cumsum(x, /, axis=None, dtype=None):
    """NumPy's name of cumulative_sum(): without an axis the elements are taken in C order.

    >>> cumsum(asarray([[1, 2], [3, 4]])).tolist()
    [1, 3, 6, 10]
    """
    x, axis = (x.reshape(-1), 0) if axis is None else (x, one_axis(axis, x.ndim))
    return _engine._cumulate(x, axis, dtype, False, False)


def cumprod(x, /, axis=None, dtype=None):
    """NumPy's name of cumulative_prod(): without an axis the elements are taken in C order.

    >>> cumprod(asarray([[1, 2], [3, 4]])).tolist()
    [1, 2, 6, 24]
    """
    x, axis = (x.reshape(-1), 0) if axis is None else (x, one_axis(axis, x.ndim))
    return _engine._cumulate(x, axis, dtype, True, False)


def argmax(x, /, axis=None, *, keepdims=False):
    """Where the largest element is along an axis, the first of equals, as int64; None: in C order of all elements.

    NaN counts as larger than everything. Complex numbers are compared by their real parts, equal ones by their
    imaginary parts. No elements along the axis are a ValueError.

    >>> argmax(asarray([3, 7, 7])).item()
    1
    """
    return _engine._argreduce(x, axis, keepdims, False)


def argmin(x, /, axis=None, *, keepdims=False):
    """Where the least element is along an axis, the first of equals, as int64; None: in C order of all elements.

    NaN counts as less than everything. Complex numbers are compared by their real parts, equal ones by their
    imaginary parts. No elements along the axis are a ValueError.

    >>> argmin(asarray([3, 7, 3])).item()
    0
    """
    return _engine._argreduce(x, axis, keepdims, True)


def _sort_axis(x, axis):
    if axis is None:
        return x.reshape(-1), 0
    if x.ndim == 0:
        raise ValueError("an array without dimensions cannot be sorted: reshape it to (1,) first")
    return x, one_axis(axis, x.ndim)


def sort(x, /, axis=-1, *, descending=False, stable=True, kind=None):
    """The elements sorted along an axis, as a new array of x's shape and dtype; None sorts all of them, flattened.

    Equal elements keep their order, whatever `stable` and NumPy's `kind` say, also when descending. NaN comes last,
    always. Complex numbers are ordered by their real parts, equal ones by their imaginary parts.

    >>> sort(asarray([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    del stable, kind
    x, axis = _sort_axis(x, axis)
    return _engine._sort(x, axis, descending, True, False)


def argsort(x, /, axis=-1, *, descending=False, stable=True, kind=None):
    """The places, as int64, from which sort() takes its elements: of x's shape; None takes all of them, flattened.

    Equal elements keep their order, whatever `stable` and NumPy's `kind` say, also when descending. NaN comes last,
    always.

    >>> argsort(asarray([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    del stable, kind
    x, axis = _sort_axis(x, axis)
    return _engine._sort(x, axis, descending, False, True)


def partition(x, kth, /, axis=-1, kind="introselect"):
    """NumPy's partition: the elements of each row with the kth ones (an integer or several) in their places, the
    smaller ones before and the larger ones behind them. The rest may have any order, and is sorted here, whatever
    `kind` says.

    >>> partition(asarray([4, 1, 3, 2]), 1).tolist()
    [1, 2, 3, 4]
    """
    del kind
    x, axis = _sort_axis(x, axis)
    _check_kth(x, kth, axis)
    return _engine._sort(x, axis, False, True, False)


def argpartition(x, kth, /, axis=-1, kind="introselect"):
    """The places, as int64, from which partition() takes its elements, whatever `kind` says.

    >>> argpartition(asarray([4, 1, 3, 2]), 1).tolist()
    [1, 3, 2, 0]
    """
    del kind
    x, axis = _sort_axis(x, axis)
    _check_kth(x, kth, axis)
    return _engine._sort(x, axis, False, False, True)


def _check_kth(x, kth, axis):
    length = x.shape[axis]
    for k in kth if isinstance(kth, (tuple, list)) else (kth,):
        if not -length <= operator.index(k) < length:
            raise ValueError(f"partition: kth {k} is out of bounds for an axis of size {length}")


def top_k(x, k, /, *, axis=-1, mode="largest"):
    """The k largest elements along an axis in descending order (mode "smallest": the least in ascending order), and
    their places as int64: a tuple of two arrays. NaN counts as neither, so that it comes last.

    >>> [part.tolist() for part in top_k(asarray([4, 1, 3, 2]), 2)]
    [[4, 3], [0, 2]]
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f'top_k: mode is "largest" or "smallest", not {mode!r}')
    axis, k = one_axis(axis, x.ndim), operator.index(k)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"top_k: k is {k}, and the axis has {x.shape[axis]} elements")
    values, places = _engine._sort(x, axis, mode == "largest", True, True)
    first = (slice(None),) * axis + (slice(None, k),)
    return values[first].copy(), places[first].copy()


def lexsort(keys, /, *, axis=-1):
    """The places, as int64, that sort by several keys: by the last one, equal ones by the one before it, and so on.

    keys: arrays of one shape, or one array whose first axis counts the keys. They are sorted along an axis, stably.

    >>> lexsort([asarray([2, 1, 3]), asarray([1, 1, 0])]).tolist()
    [2, 1, 0]
    """
    from drupe.array import take_along_axis

    keys = [keys[i] for i in range(len(keys))]
    if not keys or any(key.shape != keys[0].shape for key in keys):
        raise ValueError("lexsort: there must be one key at least, and all have the same shape")
    axis = _sort_axis(keys[0], axis)[1]
    order = _engine._sort(keys[0], axis, False, False, True)
    for key in keys[1:]:
        again = _engine._sort(take_along_axis(key, order, axis=axis), axis, False, False, True)
        order = take_along_axis(order, again, axis=axis)
    return order
