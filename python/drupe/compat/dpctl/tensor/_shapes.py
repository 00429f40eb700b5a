"""Shapes, joining, and indexing by functions."""
from drupe import array as da
from drupe.compat.dpctl.tensor._calling import ahead, array_behind, behind, call, put_into, target, view

__all__ = ["broadcast_arrays", "broadcast_to", "concat", "expand_dims", "extract", "flip", "moveaxis", "nonzero",
           "permute_dims", "place", "put", "put_along_axis", "repeat", "reshape", "roll", "squeeze", "stack",
           "swapaxes", "take", "take_along_axis", "tile", "unstack"]


def broadcast_arrays(*args):
    """Views in a common shape. What is repeated there is read-only; an array that has the shape stays as it is."""
    shape = da.broadcast_shapes(*(array_behind(x).shape for x in args))
    return [broadcast_to(x, shape) if x.shape != shape else ahead(x) for x in args]


def broadcast_to(X, /, shape):
    """A view in which axes of length 1 are repeated. It is read-only."""
    result = call(da.broadcast_to, X, shape)
    result.flags.writable = False
    return result


def concat(arrays, /, *, axis=0):
    """Arrays one behind the other."""
    return call(da.concat, arrays, axis=axis)


def expand_dims(X, /, *, axis=0):
    """A view with new axes of length 1."""
    return view(da.expand_dims, X, axis=axis)


def flip(X, /, *, axis=None):
    """Elements in the opposite order."""
    return view(da.flip, X, axis=axis)


def moveaxis(X, source, destination, /):
    """A view with axes in other places."""
    return view(da.moveaxis, X, source, destination)


def permute_dims(X, /, axes):
    """A view with the axes in another order."""
    return view(da.permute_dims, X, axes)


def repeat(x, repeats, /, *, axis=None):
    """Each element several times."""
    return call(da.repeat, x, repeats, axis=axis)


def reshape(X, /, shape, *, order="C", copy=None):
    """The elements in another shape."""
    return view(da.reshape, X, shape, order=order, copy=copy)


def roll(x, /, shift, *, axis=None):
    """Elements moved on, the last ones to the front."""
    return call(da.roll, x, shift, axis=axis)


def squeeze(X, /, axis=None):
    """A view without axes of length 1."""
    array = array_behind(X)
    axes = tuple(place for place, length in enumerate(array.shape) if length == 1) if axis is None else axis
    return view(da.squeeze, X, axes)


def stack(arrays, /, *, axis=0):
    """Arrays along a new axis."""
    return call(da.stack, arrays, axis=axis)


def swapaxes(X, axis1, axis2):
    """A view with two axes exchanged."""
    return view(da.swapaxes, X, axis1, axis2)


def tile(x, repetitions, /):
    """The array several times beside itself."""
    return call(da.tile, x, repetitions)


def unstack(X, /, *, axis=0):
    """The arrays along an axis."""
    return view(da.unstack, X, axis=axis)


# --- Indexing --------------------------------------------------------------------------------------------------------

def _within(indices, length, mode):
    """Indices as dpctl takes them: "wrap" counts negative ones from the end and moves what is outside to the nearest
    place, "clip" takes the first element for negative ones."""
    if mode not in ("wrap", "clip"):
        raise ValueError(f"mode is 'wrap' or 'clip', not {mode!r}")
    indices = array_behind(indices, "an array of indices")
    if "int" not in str(indices.dtype):
        raise IndexError(f"indices are whole numbers, not {indices.dtype}")
    if length == 0:
        return indices
    indices = da.astype(indices, "int64", copy=False)
    return da.clip(indices, -length if mode == "wrap" else 0, length - 1)


def _axis_of(array, axis, what):
    if axis is None and array.ndim > 1:
        raise ValueError(f"{what}() of an array of {array.ndim} axes needs axis=")
    return 0 if axis is None else axis


def take(x, indices, /, *, axis=None, out=None, mode="wrap"):
    """Elements at places along an axis."""
    array = array_behind(x)
    axis = _axis_of(array, axis, "take")
    target(out)
    return put_into(da.take(array, _within(indices, array.shape[axis], mode), axis=axis), out)


def put(x, indices, vals, /, *, axis=None, mode="wrap"):
    """Write values to places along an axis."""
    array = target(x)
    axis = _axis_of(array, axis, "put")
    rows = da.moveaxis(array, axis, 0)
    where = _within(indices, array.shape[axis], mode)
    values = behind(vals)
    if hasattr(values, "ndim") and values.ndim == array.ndim and array.ndim > 1:
        values = da.moveaxis(values, axis, 0)
    rows[where] = values


def take_along_axis(x, indices, /, *, axis=-1, mode="wrap"):
    """Elements at places that are given for each row."""
    array = array_behind(x)
    return call(da.take_along_axis, array, _within(indices, array.shape[axis], mode), axis=axis)


def put_along_axis(x, indices, vals, /, *, axis=-1, mode="wrap"):
    """Write values to places that are given for each row."""
    array = target(x)
    da.put_along_axis(array, _within(indices, array.shape[axis], mode), behind(vals), axis=axis)


def extract(condition, arr):
    """Elements for which the condition holds."""
    return call(da.extract, condition, arr)


def place(arr, mask, vals):
    """Write values in turn to where the mask holds."""
    da.place(target(arr), behind(mask), behind(vals))


def nonzero(arr):
    """Where elements are not zero, an array for each axis."""
    return call(da.nonzero, arr)
