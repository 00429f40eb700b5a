"""Functions with NumPy's names that make indices, or turn some of one kind into another."""
import operator

from drupe import _engine
from drupe.array._arguments import in_c_order, need
from drupe.array._making import tri

_ops = _engine.operations


def diag_indices(n, /, ndim=2, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """The indices of the main diagonal of an array with ndim axes of size n: a tuple of ndim arrays.

    device, usm_type, queue: as zeros() has them; sycl_queue: queue, as dpctl calls it.

    >>> [i.tolist() for i in da.diag_indices(2)]
    [[0, 1], [0, 1]]
    """
    queue = sycl_queue if queue is None else queue
    places = _engine._sequence(operator.index(n), 0, 1, "int64", device, usm_type, queue)
    return (places,) * ndim


def diag_indices_from(x, /):
    """The indices of the main diagonal of an array whose axes have one size: a tuple of x.ndim arrays.

    x: an array of two dimensions at least; ValueError for fewer, or sizes that differ.

    >>> [i.tolist() for i in da.diag_indices_from(da.zeros((2, 2)))]
    [[0, 1], [0, 1]]
    """
    need("diag_indices_from", x)
    if x.ndim < 2 or len(set(x.shape)) != 1:
        raise ValueError("diag_indices_from takes an array of two dimensions at least whose axes have one size, not of "
                         f"shape {x.shape}")
    places = _engine._sequence(x.shape[0], 0, 1, "int64", None, None, x.queue)
    return (places,) * x.ndim


def _triangle(lower, k, rows, columns, **where):
    from drupe.array import nonzero

    below = tri(rows, columns, k if lower else k - 1, "bool", **where)
    return nonzero(below if lower else _ops["logical_not"](below))


def tril_indices(n, /, k=0, m=None, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """The indices of the elements of a matrix that tril() keeps: an array of rows, and one of columns.

    n, m: the sizes of the matrix, which is square without m. k: the column in which the diagonal begins.
    device, usm_type, queue: as zeros() has them; sycl_queue: queue, as dpctl calls it.

    >>> [i.tolist() for i in da.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _triangle(True, k, n, n if m is None else m, device=device, usm_type=usm_type, queue=queue,
                     sycl_queue=sycl_queue)


def triu_indices(n, /, k=0, m=None, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """The indices of the elements of a matrix that triu() keeps: an array of rows, and one of columns.

    n, m: the sizes of the matrix, which is square without m. k: the column in which the diagonal begins.
    device, usm_type, queue: as zeros() has them; sycl_queue: queue, as dpctl calls it.

    >>> [i.tolist() for i in da.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return _triangle(False, k, n, n if m is None else m, device=device, usm_type=usm_type, queue=queue,
                     sycl_queue=sycl_queue)


def tril_indices_from(x, /, k=0):
    """tril_indices() for a matrix of x's shape. ValueError: x has not two dimensions.

    >>> [i.tolist() for i in da.tril_indices_from(da.zeros((1, 2)))]
    [[0], [0]]
    """
    return _triangle(True, k, *_matrix("tril_indices_from", x), queue=x.queue)


def triu_indices_from(x, /, k=0):
    """triu_indices() for a matrix of x's shape. ValueError: x has not two dimensions.

    >>> [i.tolist() for i in da.triu_indices_from(da.zeros((1, 2)))]
    [[0, 0], [0, 1]]
    """
    return _triangle(False, k, *_matrix("triu_indices_from", x), queue=x.queue)


def _matrix(function, x):
    need(function, x)
    if x.ndim != 2:
        raise ValueError(f"{function} takes an array with 2 dimensions, and this one has {x.ndim}")
    return x.shape


def unravel_index(indices, shape, /, order="C"):
    """Places in the flattened array as indices of each axis of an array of this shape: a tuple of arrays.

    indices: an array of integers from 0 on. order: "C" or "F", in which the elements are counted. Places that the array
    does not have are not noticed.

    >>> [i.tolist() for i in da.unravel_index(da.asarray([1, 5]), (2, 3))]
    [[0, 1], [1, 2]]
    """
    need("unravel_index", indices)
    axes, indices = list(enumerate(shape)), indices.astype("int64", copy=False)
    found = {}
    for axis, length in reversed(axes) if in_c_order("unravel_index", order) else axes:
        found[axis] = indices % length
        indices = indices // length
    return tuple(found[axis] for axis, _ in axes)


def ravel_multi_index(multi_index, dims, /, mode="raise", order="C"):
    """Indices of each axis as places in the flattened array.

    multi_index: a sequence of arrays of integers. dims: the shape. mode: what indices beyond the shape mean: "raise"
    (ValueError, which waits), "wrap" (from the beginning) or "clip" (the last one). order: "C" or "F".

    >>> da.ravel_multi_index((da.asarray([0, 1]), da.asarray([1, 2])), (2, 3)).tolist()
    [1, 5]
    """
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f'ravel_multi_index: mode is "raise", "wrap" or "clip", not {mode!r}')
    if len(multi_index) != len(dims):
        raise ValueError(f"ravel_multi_index: {len(multi_index)} arrays of indices for {len(dims)} axes")
    need("ravel_multi_index", *multi_index)
    axes = list(range(len(dims)))
    place, step = 0, 1
    for axis in reversed(axes) if in_c_order("ravel_multi_index", order) else axes:
        index, length = multi_index[axis].astype("int64", copy=False), dims[axis]
        if mode == "wrap":
            index = index % length
        elif mode == "clip":
            index = _ops["minimum"](_ops["maximum"](index, 0), length - 1)
        elif bool(_ops["any"](_ops["logical_or"](index < 0, index >= length))):
            raise ValueError(f"ravel_multi_index: an index is out of bounds for axis {axis} with size {length}")
        place = index * step + place
        step *= length
    return place
