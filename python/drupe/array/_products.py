"""Products of arrays, but for those of the table and matmul()."""
import math
import operator

from drupe import _engine
from drupe.array._axes import one_axis
from drupe.array._shapes import broadcast_arrays, moveaxis

_ops = _engine.operations


def _arrays(name, *arrays):
    for x in arrays:
        if not isinstance(x, _engine.Array):
            raise TypeError(f"{name}: operands are arrays of drupe.array, not {type(x).__name__}. Copy it to the "
                            "device first: drupe.array.asarray(x)")


def conjugate(x):
    """The complex conjugate; x itself where it is real."""
    return _ops["conj"](x) if x.dtype.kind == "c" else x


def total(x, axes):
    """Sums over the axes in the type of x, as products have it; of bool whether one is true."""
    if not axes:
        return x
    return _ops["any"](x, axis=axes) if x.dtype.kind == "b" else _ops["sum"](x, axis=axes, dtype=x.dtype)


def vecdot(x1, x2, /, *, axis=-1):
    """Sums of products along an axis of both arrays, which broadcast otherwise; complex elements of x1 are conjugated.

    The axis is counted from the end: it is negative. ValueError if it has not the same size in both.

    The result has the shape without that axis, and the common type.

    >>> da.vecdot(da.asarray([[1, 2], [3, 4]]), da.asarray([10, 1])).tolist()
    [12, 34]
    """
    _arrays("vecdot", x1, x2)
    if axis >= 0:
        raise ValueError("vecdot counts its axis from the end: -1 is the last")
    x1, x2 = (x if axis == -1 else moveaxis(x, axis, -1) for x in (x1, x2))
    for x in (x1, x2):
        if not x.ndim:
            raise ValueError("vecdot needs one dimension at least")
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"vecdot: axis {axis} has sizes {x1.shape[-1]} and {x2.shape[-1]}")
    row = conjugate(x1).reshape(x1.shape[:-1] + (1, x1.shape[-1]))
    column = x2.reshape(x2.shape + (1,))
    return _engine.matmul(row, column)[..., 0, 0]


def tensordot(x1, x2, /, *, axes=2):
    """Sums of products over several axes: the last `axes` of x1 with the first of x2, or pairs of axes, as two
    sequences. The result has the remaining axes of x1 and those of x2.

    ValueError if the axes of a pair differ in size.

    >>> da.tensordot(da.ones((2, 3, 4)), da.ones((4, 3)), axes=((1, 2), (1, 0))).shape
    (2,)
    """
    _arrays("tensordot", x1, x2)
    if hasattr(axes, "__index__"):
        count = operator.index(axes)
        if not 0 <= count <= min(x1.ndim, x2.ndim):
            raise ValueError(f"tensordot: there are no {count} axes in arrays with {x1.ndim} and {x2.ndim} dimensions")
        first, second = list(range(x1.ndim - count, x1.ndim)), list(range(count))
    else:
        first, second = ([a] if hasattr(a, "__index__") else list(a) for a in axes)
        first = [one_axis(a, x1.ndim) for a in first]
        second = [one_axis(a, x2.ndim) for a in second]
    if len(first) != len(second) or len(set(first)) < len(first) or len(set(second)) < len(second):
        raise ValueError("tensordot: axes are pairs, and each axis can be in one pair alone")
    for a, b in zip(first, second):
        if x1.shape[a] != x2.shape[b]:
            raise ValueError(f"tensordot: axis {a} of the first has size {x1.shape[a]}, and axis {b} of the second "
                             f"{x2.shape[b]}")
    rest1 = [a for a in range(x1.ndim) if a not in first]
    rest2 = [a for a in range(x2.ndim) if a not in second]
    inner = math.prod(x1.shape[a] for a in first)
    left = _engine.permute_dims(x1, (*rest1, *first)).reshape((math.prod(x1.shape[a] for a in rest1), inner))
    right = _engine.permute_dims(x2, (*second, *rest2)).reshape((inner, math.prod(x2.shape[a] for a in rest2)))
    return _engine.matmul(left, right).reshape(tuple(x1.shape[a] for a in rest1) + tuple(x2.shape[a] for a in rest2))


def dot(x1, x2, /):
    """NumPy's product: of vectors their inner product, of matrices the matrix product, with a number the product; else
    sums over the last axis of x1 and the last but one of x2.

    The result has the common type. ValueError: the lengths of these axes differ.

    >>> da.dot(da.asarray([1, 2]), da.asarray([3, 4])).item()
    11
    """
    if not isinstance(x1, _engine.Array) or not isinstance(x2, _engine.Array) or not x1.ndim or not x2.ndim:
        return _ops["multiply"](x1, x2)
    if x2.ndim < 3:
        return _engine.matmul(x1, x2)
    return tensordot(x1, x2, axes=((-1,), (-2,)))


def inner(x1, x2, /):
    """Sums of products over the last axes, without conjugation. With a number the product.

    The result has the other axes of x1, then those of x2, and the common type. ValueError: the last axes differ in
    length.

    >>> da.inner(da.asarray([[1, 2], [3, 4]]), da.asarray([1, 1])).tolist()
    [3, 7]
    """
    if not isinstance(x1, _engine.Array) or not isinstance(x2, _engine.Array) or not x1.ndim or not x2.ndim:
        return _ops["multiply"](x1, x2)
    return tensordot(x1, x2, axes=((-1,), (-1,)))


def vdot(x1, x2, /):
    """The inner product of all elements, of which those of x1 are conjugated.

    Both are flattened. The result has no dimensions, and the common type. ValueError: they differ in size.

    >>> da.vdot(da.ones((2, 2)), da.ones((2, 2))).item()
    4.0
    """
    _arrays("vdot", x1, x2)
    return _engine.matmul(conjugate(x1).reshape(-1), x2.reshape(-1))


def outer(x1, x2, /):
    """All products of an element of x1 with one of x2, as a matrix; arrays are flattened.

    The result has shape (x1.size, x2.size) and the common type.

    >>> da.outer(da.asarray([1, 2]), da.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    _arrays("outer", x1, x2)
    return _ops["multiply"](x1.reshape((-1, 1)), x2.reshape((1, -1)))


def kron(x1, x2, /):
    """The Kronecker product: x2 once for each element of x1, times that.

    The result has as many axes as the array with more of them; their sizes are multiplied. Its type is the common one.

    >>> da.kron(da.asarray([1, 10]), da.asarray([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    _arrays("kron", x1, x2)
    ndim = max(x1.ndim, x2.ndim)
    one, two = ((1,) * (ndim - x.ndim) + x.shape for x in (x1, x2))
    apart1 = x1.reshape(tuple(n for length in one for n in (length, 1)))
    apart2 = x2.reshape(tuple(n for length in two for n in (1, length)))
    return _ops["multiply"](apart1, apart2).reshape(tuple(a * b for a, b in zip(one, two)))


def cross(x1, x2, /, *, axis=-1):
    """Cross products of vectors with three elements along an axis; the other axes broadcast.

    The result has the common type. ValueError: another number of elements; IndexError: an axis that the arrays do not
    have.

    >>> da.cross(da.asarray([1, 0, 0]), da.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    from drupe.array import stack

    _arrays("cross", x1, x2)
    x1, x2 = (moveaxis(x, axis, -1) for x in (x1, x2))
    if x1.shape[-1] != 3 or x2.shape[-1] != 3:
        raise ValueError(f"cross takes vectors with 3 elements, and axis {axis} has {x1.shape[-1]} and {x2.shape[-1]}")
    x1, x2 = broadcast_arrays(x1, x2)
    parts = [x1[..., i] * x2[..., j] - x1[..., j] * x2[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return moveaxis(stack(parts, axis=-1), -1, axis)


def multi_dot(arrays, /):
    """The matrix product of several arrays, in the order that takes the fewest multiplications. The first and the last
    may be vectors.

    arrays: a sequence of two arrays or more, which have two dimensions in between. ValueError: shapes that do not fit,
    and fewer than two arrays.

    >>> da.linalg.multi_dot([da.ones((10, 2)), da.ones((2, 30)), da.ones(30)]).shape
    (10,)
    """
    arrays = list(arrays)
    _arrays("multi_dot", *arrays)
    if len(arrays) < 2:
        raise ValueError("multi_dot takes two arrays at least")
    first, last = arrays[0].ndim == 1, arrays[-1].ndim == 1
    if first:
        arrays[0] = arrays[0].reshape((1, -1))
    if last:
        arrays[-1] = arrays[-1].reshape((-1, 1))
    for x in arrays:
        if x.ndim != 2:
            raise ValueError("multi_dot takes matrices, and vectors at both ends")
    sizes = [arrays[0].shape[0], *(x.shape[1] for x in arrays)]
    best = {(i, i): (0, None) for i in range(len(arrays))}
    for length in range(1, len(arrays)):
        for i in range(len(arrays) - length):
            j = i + length
            best[i, j] = min((best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                             for k in range(i, j))

    def product(i, j):
        return arrays[i] if i == j else _engine.matmul(product(i, best[i, j][1]), product(best[i, j][1] + 1, j))

    result = product(0, len(arrays) - 1)
    return result[(0 if first else slice(None)), (0 if last else slice(None))]
