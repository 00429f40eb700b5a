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


def only_c_order(function, order):
    """ValueError for an order of elements in memory that no array has."""
    if not in_c_order(function, order):
        raise ValueError(f"{function}: arrays are made in C order. A view with the axes reversed, x.T, has the "
                         "elements of its columns side by side.")
