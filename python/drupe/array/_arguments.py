"""Arguments that functions of drupe.array have in common."""
from drupe import _engine


def need(function, *arrays):
    """TypeError for what is no array."""
    for x in arrays:
        if not isinstance(x, _engine.Array):
            raise TypeError(f"{function}: a drupe.array.Array is expected, not {type(x).__name__}: make one with "
                            "drupe.array.asarray()")


def several(function, arrays):
    """A sequence of arrays as a list."""
    if isinstance(arrays, _engine.Array):
        return [arrays[i] for i in range(len(arrays))]
    arrays = list(arrays)
    need(function, *arrays)
    return arrays


def in_c_order(function, order):
    """Whether `order` of NumPy is that of rows ("C", "A", "K", None); False for "F"; other letters are an error."""
    if order in ("C", "A", "K", "c", "a", "k", None):
        return True
    if order in ("F", "f"):
        return False
    raise ValueError(f'{function}: order is "C" or "F", not {order!r}')


def by_columns(x):
    """Whether the elements lie in memory column by column, and not row by row."""
    return not x.is_contiguous and x.T.is_contiguous


def laid_out(x, order, copy=None):
    """x with its elements in memory row by row ("C") or column by column ("F"), copied where they are not; other
    orders leave it."""
    if not in_c_order("asarray", order):
        good, made = x.T.is_contiguous, lambda: x.T.copy().T
    elif order in ("C", "c"):
        good, made = x.is_contiguous, x.copy
    else:
        return x
    if not good and copy is not None and not copy:
        raise ValueError(f'copy=False, but order "{order}" needs a copy')
    return x if good else made()
