"""Reductions, sums up to each element, products of matrices, searching, sets, sorting."""
from collections import namedtuple

from drupe import array as da
from drupe.compat.dpctl.tensor._calling import ahead, array_behind, call, operands, ordered, put_into, target

__all__ = ["all", "allclose", "any", "argmax", "argmin", "argsort", "clip", "count_nonzero", "cumulative_prod",
           "cumulative_sum", "diff", "isin", "logsumexp", "matmul", "matrix_transpose", "max", "mean", "min", "prod",
           "reduce_hypot", "searchsorted", "sort", "std", "sum", "tensordot", "top_k", "unique_all", "unique_counts",
           "unique_inverse", "unique_values", "var", "vecdot", "where"]

# --- Reductions ------------------------------------------------------------------------------------------------------

def _reduced(function, x, out, **options):
    target(out)
    return put_into(function(array_behind(x), **options), out)


def sum(x, /, *, axis=None, dtype=None, keepdims=False, out=None):
    """The sum along axes."""
    return _reduced(da.sum, x, out, axis=axis, dtype=dtype, keepdims=keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False, out=None):
    """The product along axes."""
    return _reduced(da.prod, x, out, axis=axis, dtype=dtype, keepdims=keepdims)


def logsumexp(x, /, *, axis=None, dtype=None, keepdims=False, out=None):
    """The logarithm of the sum of exponentials."""
    return _reduced(da.logsumexp, x, out, axis=axis, dtype=dtype, keepdims=keepdims)


def reduce_hypot(x, /, *, axis=None, dtype=None, keepdims=False, out=None):
    """The square root of the sum of squares."""
    return _reduced(da.reduce_hypot, x, out, axis=axis, dtype=dtype, keepdims=keepdims)


def max(x, /, *, axis=None, keepdims=False, out=None):
    """The largest element along axes."""
    return _reduced(da.max, x, out, axis=axis, keepdims=keepdims)


def min(x, /, *, axis=None, keepdims=False, out=None):
    """The smallest element along axes."""
    return _reduced(da.min, x, out, axis=axis, keepdims=keepdims)


def argmax(x, /, *, axis=None, keepdims=False, out=None):
    """Where the first largest element is."""
    return _reduced(da.argmax, x, out, axis=axis, keepdims=keepdims)


def argmin(x, /, *, axis=None, keepdims=False, out=None):
    """Where the first smallest element is."""
    return _reduced(da.argmin, x, out, axis=axis, keepdims=keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False, out=None):
    """How many elements are not zero."""
    return _reduced(da.count_nonzero, x, out, axis=axis, keepdims=keepdims)


def all(x, /, *, axis=None, keepdims=False):
    """Whether all elements are true."""
    return _reduced(da.all, x, None, axis=axis, keepdims=keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether an element is true."""
    return _reduced(da.any, x, None, axis=axis, keepdims=keepdims)


def mean(x, axis=None, keepdims=False):
    """The arithmetic mean."""
    return _reduced(da.mean, x, None, axis=axis, keepdims=keepdims)


def std(x, axis=None, correction=0.0, keepdims=False):
    """The standard deviation."""
    return _reduced(da.std, x, None, axis=axis, correction=correction, keepdims=keepdims)


def var(x, axis=None, correction=0.0, keepdims=False):
    """The variance."""
    return _reduced(da.var, x, None, axis=axis, correction=correction, keepdims=keepdims)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False, out=None):
    """Sums up to each element."""
    return _reduced(da.cumulative_sum, x, out, axis=axis, dtype=dtype, include_initial=include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False, out=None):
    """Products up to each element."""
    return _reduced(da.cumulative_prod, x, out, axis=axis, dtype=dtype, include_initial=include_initial)


# --- Elements --------------------------------------------------------------------------------------------------------

def clip(x, /, min=None, max=None, out=None, order="K"):
    """Elements between two bounds."""
    target(out)
    return put_into(ordered(da.clip(*operands(array_behind(x), min, max)), order), out)


def where(condition, x1, x2, /, *, order="K", out=None):
    """Elements of x1 where the condition holds, else of x2."""
    target(out)
    return put_into(ordered(da.where(*operands(condition, x1, x2)), order), out)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours."""
    return call(da.diff, x, n=n, axis=axis, prepend=prepend, append=append)


def allclose(a1, a2, atol=1e-8, rtol=1e-5, equal_nan=False):
    """Whether all elements are nearly equal, as an array without axes."""
    return call(da.allclose, a1, a2, rtol=rtol, atol=atol, equal_nan=equal_nan)


# --- Matrices --------------------------------------------------------------------------------------------------------

def matmul(x1, x2, out=None, dtype=None, order="K"):
    """The product of matrices."""
    first, second = array_behind(x1), array_behind(x2)
    target(out)
    if dtype is not None:
        first, second = da.astype(first, dtype, copy=False), da.astype(second, dtype, copy=False)
    return put_into(ordered(da.matmul(first, second), order), out)


def matrix_transpose(x):
    """The last two axes exchanged."""
    return call(da.matrix_transpose, x)


def tensordot(x1, x2, axes=2):
    """The product along several axes."""
    return call(da.tensordot, x1, x2, axes=axes)


def vecdot(x1, x2, axis=-1):
    """Products of vectors along an axis."""
    first, second = array_behind(x1), array_behind(x2)
    if axis >= 0 and first.ndim == second.ndim:
        axis -= first.ndim
    return call(da.vecdot, first, second, axis=axis)


# --- Searching, sets, sorting ----------------------------------------------------------------------------------------

def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Where elements would be put into a sorted array."""
    return call(da.searchsorted, x1, x2, side=side, sorter=sorter)


def isin(x, test_elements, /, *, invert=False):
    """Which elements are among others."""
    return call(da.isin, x, test_elements, invert=invert)


def unique_all(x):
    """Different values, where they are first, where they are in each place, and how often."""
    return call(da.unique_all, x)


def unique_counts(x):
    """Different values, and how often each is there."""
    return call(da.unique_counts, x)


def unique_inverse(x):
    """Different values, and which one stands in each place."""
    return call(da.unique_inverse, x)


def unique_values(x):
    """Different values."""
    return call(da.unique_values, x)


_KINDS = (None, "stable", "mergesort", "radixsort", "quicksort")


def _sorting(kind):
    if kind not in _KINDS:
        raise ValueError(f"kind is one of {', '.join(map(str, _KINDS))}, not {kind!r}")  # which changes no result


def sort(x, /, *, axis=-1, descending=False, stable=True, kind=None):
    """Elements in order."""
    _sorting(kind)
    return call(da.sort, x, axis=axis, descending=descending, stable=stable)


def argsort(x, axis=-1, descending=False, stable=True, kind=None):
    """Where the elements in order are."""
    _sorting(kind)
    return call(da.argsort, x, axis=axis, descending=descending, stable=stable)


TopKResult = namedtuple("TopKResult", "values indices")


def top_k(x, k, /, *, axis=None, mode="largest"):
    """The largest or smallest elements, and where they are; axis=None: of all."""
    array = array_behind(x)
    if axis is None:
        array, axis = da.reshape(array, (-1,)), 0
    return TopKResult(*map(ahead, da.top_k(array, k, axis=axis, mode=mode)))
