"""Searches in sorted arrays, and arrays as sets of elements."""
import collections
import math

from drupe import _engine
from drupe.array._axes import one_axis

_ops = _engine.operations

_AllResult = collections.namedtuple("unique_all_result", "values indices inverse_indices counts")
_CountsResult = collections.namedtuple("unique_counts_result", "values counts")
_InverseResult = collections.namedtuple("unique_inverse_result", "values inverse_indices")
_FIRSTS, _INVERSE, _COUNTS = 1, 2, 4


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where each element of x2 (an array or a number) belongs in the one-dimensional, ascending x1, so that it stays
    so.

    The result is of int64 and has x2's shape. side "left" is in front of equal elements, "right" behind them; NaN comes
    last. `sorter`: an array of integers by which x1 is ascending, such as argsort(x1); one that is no place in x1 is
    reported when the work has run. Both are compared in their common data type.

    >>> searchsorted(asarray([1, 3, 5]), asarray([0, 3, 9])).tolist()
    [0, 1, 3]
    """
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side is "left" or "right", not {side!r}')
    if not isinstance(x2, _engine.Array):
        x2 = _beside(x1, x2)
    if sorter is not None and sorter.dtype.kind not in "iu":
        raise TypeError(f"searchsorted: sorter holds integers, not {sorter.dtype}")
    return _engine._search(x1, x2, side == "right", sorter)


def _beside(x, number):
    """A number as an array on x's queue, in the type that it has beside x; what is none is refused later."""
    from drupe.array import _scalar_kind, result_type

    if not isinstance(x, _engine.Array) or not _scalar_kind(number):
        return number
    return _engine.asarray(number, dtype=result_type(x, number), queue=x.queue)


def _distinct(x, equal_nan, wanted):
    """(values, firsts, inverse, counts): what is wanted, cut to what there is. Waits."""
    count, *results = _engine._unique(x, equal_nan, wanted)
    n = count.item()
    values, firsts, inverse, counts = results
    return _cut(values, n), _cut(firsts, n), inverse if inverse is None else inverse.reshape(x.shape), _cut(counts, n)


def _cut(x, n):
    """The first n elements; of few the rest of the memory is let go."""
    if x is None or n == x.size:
        return x
    return x[:n] if 2 * n > x.size else x[:n].copy()


def unique_all(x, /):
    """The distinct elements of x, ascending, as a named tuple (values, indices, inverse_indices, counts).

    `indices`: where each is first in x in C order; `inverse_indices`: of x's shape, so that values[inverse_indices] is
    x; `counts`: how often each is there; all of int64. Each NaN stands for itself; -0.0 and 0.0 are equal. Waits,
    since the size of the result follows from the elements.

    >>> unique_all(asarray([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    return _AllResult(*_distinct(x, False, _FIRSTS | _INVERSE | _COUNTS))


def unique_counts(x, /):
    """The distinct elements of x, ascending, and how often each is there, as a named tuple (values, counts).

    Each NaN stands for itself; -0.0 and 0.0 are equal. Waits.

    >>> unique_counts(asarray([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    values, _, _, counts = _distinct(x, False, _COUNTS)
    return _CountsResult(values, counts)


def unique_inverse(x, /):
    """The distinct elements of x, ascending, and which of them each element is, as a named tuple (values,
    inverse_indices): values[inverse_indices] is x.

    Each NaN stands for itself; -0.0 and 0.0 are equal. Waits.

    >>> unique_inverse(asarray([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    values, _, inverse, _ = _distinct(x, False, _INVERSE)
    return _InverseResult(values, inverse)


def unique_values(x, /):
    """The distinct elements of x, ascending. Each NaN stands for itself; -0.0 and 0.0 are equal. Waits.

    >>> unique_values(asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    return _distinct(x, False, 0)[0]


def unique(x, /, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True,
           sorted=True):
    """NumPy's unique(): the distinct elements, ascending, and what is asked for beside them, as a tuple then.

    x: an array. axis: None for its elements, else the distinct parts of x along this axis, in the order of their
    elements from the first on. Beside the values, as int64: where each is first (return_index), which of them each
    element or part is (return_inverse: of x's shape, or with an axis one dimension), and how often each is there
    (return_counts). All NaNs are one element unless equal_nan is false; a part with a NaN stands for itself. They
    ascend whatever `sorted` says. Waits. IndexError: an axis that x does not have.

    >>> [part.tolist() for part in unique(asarray([3, 1, 3]), return_counts=True)]
    [[1, 3], [1, 2]]
    >>> unique(asarray([[3, 1], [2, 5], [3, 1]]), axis=0).tolist()
    [[2, 5], [3, 1]]
    """
    if axis is not None and not (x.ndim == 1 and axis in (0, -1)):
        parts = _distinct_parts(x, one_axis(axis, x.ndim), return_index, return_inverse, return_counts)
        return parts if len(parts) > 1 else parts[0]
    wanted = _FIRSTS * bool(return_index) | _INVERSE * bool(return_inverse) | _COUNTS * bool(return_counts)
    if x.dtype.kind == "c" and equal_nan and wanted == 0:
        equal_nan = False
    parts = [part for part in _distinct(x, equal_nan, wanted) if part is not None]
    return tuple(parts) if wanted else parts[0]


def _distinct_parts(x, axis, with_places, with_inverse, with_counts):
    """unique() along an axis: the parts are sorted as rows, and those are kept that differ from the one before."""
    from drupe.array import concat, cumulative_sum, diff, flatnonzero, lexsort, moveaxis, take

    x = moveaxis(x, axis, 0)
    n = x.shape[0]
    rows = x.reshape((n, math.prod(x.shape[1:])))
    if n and rows.shape[1]:
        order = lexsort([rows[:, i] for i in range(rows.shape[1] - 1, -1, -1)])
    else:
        order = _engine._sequence(n, 0, 1, "int64", None, None, x.queue)
    rows = take(rows, order, axis=0)
    differs = _ops["any"](rows[1:] != rows[:-1], axis=1)
    first = concat([_engine.ones(min(n, 1), "bool", queue=x.queue), differs])
    starts = flatnonzero(first)
    found = [moveaxis(take(rows, starts, axis=0).reshape((starts.size, *x.shape[1:])), 0, axis)]
    if with_places:
        found.append(take(order, starts))
    if with_inverse:
        inverse = _engine.empty(n, "int64", queue=x.queue)
        inverse[order] = cumulative_sum(first, dtype="int64") - 1
        found.append(inverse)
    if with_counts:
        found.append(diff(starts, append=_engine.full(1, n, "int64", queue=x.queue)))
    return tuple(found)


def isin(x1, x2, /, *, invert=False):
    """Whether each element of x1 is among those of x2 (`invert`: is not), as bool of x1's shape; one of the two may be
    a number. They are compared in their common data type. NaN is never among them.

    >>> isin(asarray([1, 2, 3]), asarray([3, 1])).tolist()
    [True, False, True]
    """
    if not isinstance(x2, _engine.Array):
        x2 = _beside(x1, x2)
    elif not isinstance(x1, _engine.Array):
        x1 = _beside(x2, x1)
    return _engine._isin(x1, x2, invert)


def _common(ar1, ar2, assume_unique):
    """Both as flat arrays of one type, without repetitions."""
    from drupe.array import result_type

    dtype = result_type(ar1, ar2)
    flat = [x.astype(dtype, copy=False).reshape(-1) for x in (ar1, ar2)]
    return flat if assume_unique else [unique(x) for x in flat]


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """The distinct elements that both arrays have, ascending. Waits.

    return_indices: whether the places where each is first in the flattened arrays are wanted, too, as int64: a tuple of
    three arrays then.

    >>> intersect1d(asarray([1, 3, 4]), asarray([3, 4, 7])).tolist()
    [3, 4]
    """
    if return_indices:
        (a, at_a), (b, at_b) = (_with_places(x, assume_unique) for x in _common(ar1, ar2, True))
        in_both = isin(a, b)
        return a[in_both], at_a[in_both], at_b[isin(b, a)]
    a, b = _common(ar1, ar2, assume_unique)
    return _where_true(a, isin(a, b), sort=assume_unique)


def _with_places(x, is_set):
    """The distinct elements of a flat array, ascending, and where each is first."""
    if not is_set:
        return unique(x, return_index=True)
    order = _engine._sort(x, 0, False, False, True)
    return x[order], order


def setdiff1d(ar1, ar2, assume_unique=False):
    """The distinct elements of the first array that the second one does not have, ascending, of the first one's type.
    Waits.

    >>> setdiff1d(asarray([1, 3, 4]), asarray([3, 7])).tolist()
    [1, 4]
    """
    a = ar1.reshape(-1) if assume_unique else unique(ar1)
    return _where_true(a, isin(a, ar2, invert=True))


def union1d(ar1, ar2):
    """The distinct elements that one array or the other has, ascending. Waits.

    >>> union1d(asarray([1, 3]), asarray([3, 4, 7])).tolist()
    [1, 3, 4, 7]
    """
    from drupe.array import concat

    return unique(concat([ar1.reshape(-1), ar2.reshape(-1)]))


def setxor1d(ar1, ar2, assume_unique=False):
    """The distinct elements that one array has and the other has not, ascending. Waits.

    >>> setxor1d(asarray([1, 3]), asarray([3, 4])).tolist()
    [1, 4]
    """
    from drupe.array import concat, sort

    a, b = _common(ar1, ar2, assume_unique)
    return sort(concat([_where_true(a, isin(a, b, invert=True)), _where_true(b, isin(b, a, invert=True))]))


def _where_true(x, mask, sort=False):
    """The elements where the mask is true."""
    x = x[mask]
    return _engine._sort(x, 0, False, True, False) if sort else x
