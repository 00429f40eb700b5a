"""Functions with NumPy's names that give arrays other shapes, join them and take them apart."""
import operator

from drupe import _engine
from drupe.array._arguments import in_c_order, need, several
from drupe.array._axes import one_axis


def ravel(x, /, order="C"):
    """The elements in one dimension: a view where that is possible.

    x: an array of any shape and data type. order: "C" (rows one after the other) or "F" (columns). Returns an array of
    shape (x.size,). ValueError: another order.

    >>> da.ravel(da.asarray([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    need("ravel", x)
    return x.reshape(-1) if in_c_order("ravel", order) else x.T.reshape(-1)


def transpose(x, /, axes=None):
    """A view with the axes in another order, reversed without one.

    x: an array of any data type. axes: the axes of x in the order of the result, or None. ValueError: not every axis is
    there once.

    >>> da.transpose(da.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """
    need("transpose", x)
    return x.T if axes is None else _engine.permute_dims(x, axes)


def swapaxes(x, axis1, axis2, /):
    """A view with two axes exchanged.

    x: an array of any data type. IndexError: an axis that x does not have.

    >>> da.swapaxes(da.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    need("swapaxes", x)
    axes = list(range(x.ndim))
    one, other = one_axis(axis1, x.ndim), one_axis(axis2, x.ndim)
    axes[one], axes[other] = other, one
    return _engine.permute_dims(x, tuple(axes))


def rollaxis(x, axis, /, start=0):
    """A view with one axis moved to before the axis that is at `start`. moveaxis() is easier to read.

    x: an array of any data type. IndexError: an axis that x does not have.

    >>> da.rollaxis(da.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    need("rollaxis", x)
    axis = one_axis(axis, x.ndim)
    start = operator.index(start)
    start += x.ndim if start < 0 else 0
    if not 0 <= start <= x.ndim:
        raise IndexError(f"rollaxis: start {start} is out of bounds for an array with {x.ndim} dimensions")
    axes = [a for a in range(x.ndim) if a != axis]
    axes.insert(start - (start > axis), axis)
    return _engine.permute_dims(x, tuple(axes))


def _at_least(name, arrays, view):
    need(name, *arrays)
    views = tuple(view(x) for x in arrays)
    return views[0] if len(views) == 1 else views


def atleast_1d(*arrays):
    """Views with one dimension at least; several arrays give a tuple.

    arrays: of any shape and data type. TypeError: what is no array.

    >>> da.atleast_1d(da.asarray(5)).shape
    (1,)
    """
    return _at_least("atleast_1d", arrays, lambda x: x.reshape(1) if x.ndim == 0 else x)


def atleast_2d(*arrays):
    """Views with two dimensions at least, where new axes come first; several arrays give a tuple.

    arrays: of any shape and data type. TypeError: what is no array.

    >>> da.atleast_2d(da.asarray([1, 2, 3])).shape
    (1, 3)
    """
    return _at_least("atleast_2d", arrays, lambda x: x[(None,) * (2 - x.ndim)] if x.ndim < 2 else x)


def atleast_3d(*arrays):
    """Views with three dimensions at least: (1, n, 1) of n elements, (m, n, 1) of a matrix. Several arrays give a
    tuple.

    arrays: of any shape and data type. TypeError: what is no array.

    >>> da.atleast_3d(da.asarray([1, 2, 3])).shape
    (1, 3, 1)
    """
    shapes = {0: (None, None, None), 1: (None, slice(None), None), 2: (slice(None), slice(None), None)}
    return _at_least("atleast_3d", arrays, lambda x: x[shapes[x.ndim]] if x.ndim < 3 else x)


# --- Taking apart ------------------------------------------------------------------------------------------------

def array_split(x, indices_or_sections, /, axis=0):
    """Views of the parts of x along an axis, in a list: so many parts of about the same size, or cut at given places.

    x: an array of one dimension at least. indices_or_sections: how many parts, or a sequence of the places where parts
    begin. ValueError: no part, or an array without dimensions; IndexError: an axis that x does not have.

    >>> [part.tolist() for part in da.array_split(da.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    need("array_split", x)
    axis = one_axis(axis, x.ndim)
    length = x.shape[axis]
    if hasattr(indices_or_sections, "__index__") and not hasattr(indices_or_sections, "__len__"):
        count = operator.index(indices_or_sections)
        if count <= 0:
            raise ValueError("array_split: the number of parts must be larger than 0")
        small, larger = divmod(length, count)
        cuts = [i * small + min(i, larger) for i in range(1, count)]
    else:
        cuts = [operator.index(i) for i in indices_or_sections]
    whole = (slice(None),) * axis
    return [x[(*whole, slice(start, stop))] for start, stop in zip([0, *cuts], [*cuts, length])]


def split(x, indices_or_sections, /, axis=0):
    """Views of the parts of x along an axis, in a list: so many parts of the same size, or cut at given places.

    As array_split(), but ValueError where the parts would not have the same size.

    >>> [part.tolist() for part in da.split(da.arange(6), [1, 4])]
    [[0], [1, 2, 3], [4, 5]]
    """
    need("split", x)
    if hasattr(indices_or_sections, "__index__") and not hasattr(indices_or_sections, "__len__"):
        count, length = operator.index(indices_or_sections), x.shape[one_axis(axis, x.ndim)]
        if count > 0 and length % count:
            raise ValueError(f"split: {length} elements do not give {count} parts of the same size; array_split() "
                             "gives parts of different sizes")
    return array_split(x, indices_or_sections, axis)


def _split_along(name, x, indices_or_sections, axis, least):
    need(name, x)
    if x.ndim < least:
        raise ValueError(f"{name} needs {least} dimension{'s' * (least > 1)} at least, and the array has {x.ndim}")
    return split(x, indices_or_sections, axis)


def hsplit(x, indices_or_sections, /):
    """split() along axis 1, or along the only axis.

    x: an array of one dimension at least. ValueError: parts that would not have the same size.

    >>> [part.shape for part in da.hsplit(da.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    need("hsplit", x)
    return _split_along("hsplit", x, indices_or_sections, 1 if x.ndim > 1 else 0, 1)


def vsplit(x, indices_or_sections, /):
    """split() along axis 0 of an array of two dimensions at least.

    ValueError: fewer dimensions, or parts that would not have the same size.

    >>> [part.shape for part in da.vsplit(da.zeros((2, 4)), 2)]
    [(1, 4), (1, 4)]
    """
    return _split_along("vsplit", x, indices_or_sections, 0, 2)


def dsplit(x, indices_or_sections, /):
    """split() along axis 2 of an array of three dimensions at least.

    ValueError: fewer dimensions, or parts that would not have the same size.

    >>> [part.shape for part in da.dsplit(da.zeros((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _split_along("dsplit", x, indices_or_sections, 2, 3)


# --- Joining -----------------------------------------------------------------------------------------------------

def _concat(arrays, axis):
    from drupe.array import concat

    return concat(arrays, axis=axis)


def concatenate(arrays, /, axis=0, *, dtype=None):
    """NumPy's name of concat(): the arrays one after the other along an axis; None flattens them first.

    arrays: a sequence of arrays whose shapes are the same outside of the axis. dtype: of the result, or None for the
    common type. ValueError: shapes that do not fit, no arrays; IndexError: an axis that they do not have.

    >>> da.concatenate([da.asarray([1, 2]), da.asarray([3])]).tolist()
    [1, 2, 3]
    """
    joined = _concat(several("concatenate", arrays), axis)
    return joined if dtype is None else joined.astype(dtype, copy=False)


def hstack(arrays, /):
    """The arrays side by side: along axis 1, or along the only axis.

    arrays: a sequence whose shapes are the same outside of that axis; ValueError where they are not.

    >>> da.hstack([da.asarray([1, 2]), da.asarray([3])]).tolist()
    [1, 2, 3]
    """
    arrays = [atleast_1d(x) for x in several("hstack", arrays)]
    return _concat(arrays, 0 if arrays and arrays[0].ndim == 1 else 1)


def vstack(arrays, /):
    """The arrays one above the other, along axis 0; those with one dimension are rows.

    arrays: a sequence whose shapes are the same outside of axis 0; ValueError where they are not.

    >>> da.vstack([da.asarray([1, 2]), da.asarray([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    return _concat([atleast_2d(x) for x in several("vstack", arrays)], 0)


def dstack(arrays, /):
    """The arrays one behind the other, along axis 2, as atleast_3d() has them.

    arrays: a sequence whose shapes are the same outside of axis 2; ValueError where they are not.

    >>> da.dstack([da.asarray([1, 2]), da.asarray([3, 4])]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return _concat([atleast_3d(x) for x in several("dstack", arrays)], 2)


def column_stack(arrays, /):
    """The arrays side by side, those with one dimension as columns.

    arrays: a sequence with the same number of rows; ValueError where it is not.

    >>> da.column_stack([da.asarray([1, 2]), da.asarray([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    arrays = [x.reshape((-1, 1)) if x.ndim < 2 else x for x in several("column_stack", arrays)]
    return _concat(arrays, 1)


def block(arrays, /):
    """One array of nested lists of arrays: the innermost lists are joined along the last axis, the lists around them
    along the one before, and so on.

    arrays: an array, or lists of them, all nested to the same depth. ValueError: depths or shapes that do not fit;
    TypeError: what is neither a list nor an array.

    >>> da.block([[da.ones((1, 1)), da.zeros((1, 2))], [da.zeros((1, 3))]]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    depth = _depth(arrays)
    leaves = list(_leaves(arrays))
    need("block", *leaves)
    ndim = max(depth, *(x.ndim for x in leaves))
    return _joined(arrays, ndim, depth)


def _depth(item):
    if not isinstance(item, list):
        return 0
    depths = {_depth(each) for each in item}
    if len(depths) != 1:
        raise ValueError("block: every list must hold something, and all arrays must be nested to the same depth")
    return 1 + depths.pop()


def _leaves(item):
    if not isinstance(item, list):
        yield item
        return
    for each in item:
        yield from _leaves(each)


def _joined(item, ndim, depth):
    if depth == 0:
        return item[(None,) * (ndim - item.ndim)] if item.ndim < ndim else item
    parts = [_joined(each, ndim, depth - 1) for each in item]
    return _concat(parts, ndim - depth)


def append(x, values, /, axis=None):
    """x and behind it `values` along an axis; None flattens both first.

    x, values: arrays whose shapes are the same outside of the axis. Returns a new array of the common data type.
    ValueError: shapes that do not fit.

    >>> da.append(da.asarray([1, 2]), da.asarray([3])).tolist()
    [1, 2, 3]
    """
    need("append", x)
    if not isinstance(values, _engine.Array):
        values = _engine.asarray(values, queue=x.queue)
    return _concat([x, values], axis)


# --- Turning -----------------------------------------------------------------------------------------------------

def fliplr(x, /):
    """A view with the columns in reversed order: flip() of axis 1.

    x: an array of two dimensions at least; ValueError for fewer.

    >>> da.fliplr(da.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    need("fliplr", x)
    if x.ndim < 2:
        raise ValueError(f"fliplr needs 2 dimensions at least, and the array has {x.ndim}")
    return x[:, ::-1]


def flipud(x, /):
    """A view with the rows in reversed order: flip() of axis 0.

    x: an array of one dimension at least; ValueError for none.

    >>> da.flipud(da.asarray([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    need("flipud", x)
    if x.ndim < 1:
        raise ValueError("flipud needs 1 dimension at least, and the array has none")
    return x[::-1]


def rot90(x, /, k=1, axes=(0, 1)):
    """A view turned by 90 degrees k times, from the first of two axes towards the second.

    x: an array of two dimensions at least. ValueError: not two different axes; IndexError: an axis that x does not
    have.

    >>> da.rot90(da.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    need("rot90", x)
    if len(axes) != 2 or (first := one_axis(axes[0], x.ndim)) == (second := one_axis(axes[1], x.ndim)):
        raise ValueError(f"rot90: axes must be two different ones, not {axes!r}")
    turns = operator.index(k) % 4

    def reverse(view, axis):
        return view[tuple(slice(None, None, -1) if a == axis else slice(None) for a in range(x.ndim))]

    if turns == 0:
        return x[...]
    if turns == 2:
        return reverse(reverse(x, first), second)
    return swapaxes(reverse(x, second), first, second) if turns == 1 else reverse(swapaxes(x, first, second), second)
