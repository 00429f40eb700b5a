"""Functions of NumPy that dpnp has and drupe.array has not, written with those that it has."""
import numpy

from drupe import array
from drupe.compat.dpnp._calls import placed

binary_repr, iterable, ndindex = numpy.binary_repr, numpy.iterable, numpy.ndindex


def ndim(a):
    """The number of dimensions."""
    return getattr(a, "ndim", 0) if not isinstance(a, (list, tuple)) else numpy.ndim(a)


def shape(a):
    """The sizes."""
    return a.shape if hasattr(a, "shape") else numpy.shape(a)


def size(a, axis=None):
    """The number of elements, or the size along an axis."""
    sizes = shape(a)
    if axis is not None:
        return sizes[axis]
    total = 1
    for one in sizes:
        total *= one
    return total


def _name(dtype):
    return dtype if isinstance(dtype, type) else numpy.dtype(str(dtype))


def issubdtype(arg1, arg2):
    """Whether a type is below another one: issubdtype(x.dtype, dpnp.floating)."""
    return numpy.issubdtype(_name(arg1), _name(arg2))


def common_type(*arrays):
    """The type of floats or complex numbers that holds the elements of all."""
    return numpy.common_type(*(numpy.empty(0, numpy.dtype(str(one.dtype))) for one in arrays))


# --- Making -------------------------------------------------------------------------------------------------

def asfarray(a, dtype=None, **where):
    """An array of floats."""
    found = placed(array.asarray)(a, **where)
    wanted = numpy.dtype(dtype) if dtype is not None else numpy.dtype(str(found.dtype))
    return array.astype(found, wanted if wanted.kind in "fc" else array.asarray(1.0).dtype, copy=False)


def asarray_chkfinite(a, dtype=None, order=None, **where):
    """An array; ValueError where an element is infinite or no number."""
    found = placed(array.asarray)(a, dtype=dtype, order=order, **where)
    if found.dtype.kind in "fc" and not bool(array.all(array.isfinite(found))):
        raise ValueError("an element is infinite, or no number")
    return found


def _from_numpy(name):
    theirs = getattr(numpy, name)

    def made(*args, device=None, usm_type=None, sycl_queue=None, like=None, **options):
        return placed(array.asarray)(theirs(*args, **options), device=device, usm_type=usm_type, sycl_queue=sycl_queue,
                                     like=like)

    made.__name__, made.__doc__ = name, "numpy.%s() as an array on a device." % name
    return made


bartlett, blackman, hamming, hanning, kaiser, fromfile, fromstring, loadtxt = map(_from_numpy, (
    "bartlett", "blackman", "hamming", "hanning", "kaiser", "fromfile", "fromstring", "loadtxt"))


def mask_indices(n, mask_func, k=0, **where):
    """The indices at which mask_func() leaves elements of an n by n array."""
    return array.nonzero(mask_func(placed(array.ones)((n, n), dtype="int32", **where), k) != 0)


# --- Shapes and elements ------------------------------------------------------------------------------------

def resize(a, new_shape):
    """The elements again and again, until the shape is full."""
    new_shape = (new_shape,) if hasattr(new_shape, "__index__") else tuple(new_shape)
    count = size(numpy.broadcast_to(0, new_shape))
    if not a.size:
        return array.zeros(new_shape, dtype=a.dtype, queue=a.queue)
    return _again(a, count).reshape(new_shape)


def _again(a, count):
    return array.take(array.ravel(a), array.arange(count, queue=a.queue) % a.size)


def putmask(a, mask, values):
    """a[mask] = values of the same places; values that are too few are taken again and again."""
    if hasattr(values, "shape") and values.shape != a.shape:
        values = _again(values, a.size).reshape(a.shape)
    array.copyto(a, values, where=mask)


def trim_zeros(filt, trim="fb"):
    """Without zeros at the front ("f") and at the back ("b"), of one dimension."""
    if filt.ndim != 1:
        raise ValueError("trim_zeros() takes an array of one dimension")
    there = array.flatnonzero(filt)
    if not there.size:
        return filt[:0]
    first = int(there[0]) if "f" in trim.lower() else 0
    last = int(there[-1]) + 1 if "b" in trim.lower() else filt.size
    return filt[first:last]


def apply_over_axes(func, a, axes):
    """func(a, axis) for one axis after the other; the result keeps its dimensions."""
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        done = func(a, axis + a.ndim if axis < 0 else axis)
        if done.ndim == a.ndim - 1:
            done = array.expand_dims(done, axis=axis)
        if done.ndim != a.ndim:
            raise ValueError("the function gives an array of as many dimensions, or of one less")
        a = done
    return a


def sort_complex(a):
    """Complex numbers in the order of their real parts, and of equal ones of the imaginary parts."""
    wanted = array.result_type(a.dtype, "complex64") if str(a.dtype) != "bool" else "complex128"
    a = array.astype(a, wanted, copy=False)
    return array.take_along_axis(a, array.lexsort((array.imag(a), array.real(a)), axis=-1), axis=-1)


# --- Mathematics --------------------------------------------------------------------------------------------

def modf(x):
    """(the fractional parts, the integral parts), with the sign of x."""
    x = array.astype(x, array.result_type(x.dtype, "float32") if x.dtype.kind == "f" else array.asarray(1.0).dtype,
                     copy=False)
    whole = array.trunc(x)
    rest = array.where(array.isinf(x), array.zeros_like(x), x - whole)
    return array.copysign(rest, x), whole


def matvec(x1, x2):
    """Matrices by vectors."""
    return array.matmul(x1, array.expand_dims(x2, axis=-1))[..., 0]


def vecmat(x1, x2):
    """Vectors, conjugated, by matrices."""
    return array.matmul(array.expand_dims(array.conj(x1), axis=-2), x2)[..., 0, :]


def einsum_path(subscripts, *operands, **options):
    """In which order einsum() would take its operands."""
    plain = [numpy.broadcast_to(numpy.empty((), numpy.dtype(str(one.dtype))), one.shape) for one in operands]
    return numpy.einsum_path(subscripts, *plain, **options)
