"""Numbers of axes."""
import operator


def one_axis(axis, ndim):
    """The number of an axis from 0 on."""
    place = operator.index(axis)
    place += ndim if place < 0 else 0
    if not 0 <= place < ndim:
        raise IndexError(f"axis {axis} is out of bounds for an array with {ndim} dimensions")
    return place


def some_axes(axis, ndim, size=None):
    """The numbers of `axis`, one or several or None for all, from 0 to below `size`; `ndim` is told in errors."""
    size = ndim if size is None else size
    if axis is None:
        return set(range(size))
    axes = set()
    for given in axis if isinstance(axis, (tuple, list)) else (axis,):
        place = operator.index(given)
        place += size if place < 0 else 0
        if not 0 <= place < size:
            raise IndexError(f"axis {given} is out of bounds for an array with {ndim} dimensions")
        if place in axes:
            raise ValueError(f"axis {given} is given twice")
        axes.add(place)
    return axes
