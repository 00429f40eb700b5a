"""What dpnp has beside NumPy's functions: checks, queues, the class of arrays."""
import numpy

from drupe import _engine, array
from drupe.compat import NotProvided
from drupe.compat.dpnp._calls import behind, check_limitations, placed  # noqa: F401  check_limitations is dpnp's


class _Arrays(type):
    def __instancecheck__(cls, thing):
        return isinstance(thing, _engine.Array)


class ndarray(metaclass=_Arrays):  # noqa: N801 (its name)
    """The class of arrays, drupe.array.Array, as dpnp makes one: its elements have no values."""

    def __new__(cls, shape, dtype=None, buffer=None, offset=0, strides=None, order="C", device=None, usm_type="device",
                sycl_queue=None):
        if buffer is not None or offset or strides is not None:
            raise NotProvided("an array over memory that is there is made by dpnp.asarray(memory), a view by an index")
        return placed(array.empty)(shape, dtype=dtype, order=order, device=device, usm_type=usm_type,
                                   sycl_queue=sycl_queue)


# --- Arrays -------------------------------------------------------------------------------------------------

def _usm():
    from drupe.compat.dpctl.tensor import usm_ndarray

    return usm_ndarray


def asnumpy(a, order="C"):
    """A copy on the host."""
    a = behind(a)
    return a.asnumpy() if isinstance(a, _engine.Array) else numpy.asarray(a, order=order)


def is_supported_array_type(a):
    """Whether it is an array on a device."""
    return isinstance(behind(a), _engine.Array)


def is_supported_array_or_scalar(a):
    """Whether it is an array on a device, or a number."""
    return is_supported_array_type(a) or numpy.isscalar(a)


def check_supported_arrays_type(*arrays, scalar_type=False, all_scalars=False):
    """True; TypeError where one is no array on a device (nor a number, where `scalar_type` takes these)."""
    for one in arrays:
        if not (is_supported_array_type(one) or scalar_type and numpy.isscalar(one)):
            raise TypeError("an array on a device is expected, not %s: dpnp.asarray(x) makes one" % type(one).__name__)
    if arrays and not all_scalars and not any(map(is_supported_array_type, arrays)):
        raise TypeError("one of the arguments is an array on a device at least")
    return True


def get_usm_ndarray(a):
    """The same elements as an array of dpnp.tensor."""
    check_supported_arrays_type(a)
    return _usm()._of(a) if isinstance(a, _engine.Array) else a


def get_usm_ndarray_or_scalar(a):
    """The same of an array; a number as it is."""
    return a if numpy.isscalar(a) else get_usm_ndarray(a)


def as_usm_ndarray(a, dtype=None, device=None, usm_type=None, sycl_queue=None):
    """An array of dpnp.tensor, of anything that can be one; elements of an array are not copied."""
    if is_supported_array_type(a):
        return get_usm_ndarray(a)
    return _usm()._of(placed(array.asarray)(a, dtype=dtype, device=device, usm_type=usm_type, sycl_queue=sycl_queue))


def are_same_logical_tensors(ar1, ar2):
    """Whether two arrays are the same elements in the same order."""
    check_supported_arrays_type(ar1, ar2)
    one, other = behind(ar1), behind(ar2)
    return all(getattr(one, name) == getattr(other, name) for name in (
        "queue", "dtype", "shape", "strides", "_pointer"))


def get_result_array(a, out=None, casting="safe"):
    """`a`, or `out` with the elements of `a`."""
    if out is None or out is a:
        return a
    check_supported_arrays_type(out)
    source, into = behind(a), behind(out)
    if into.shape != source.shape:
        raise ValueError("out has the shape %s, and the result %s" % (into.shape, source.shape))
    if not numpy.can_cast(str(source.dtype), str(into.dtype), casting):
        raise TypeError("%s does not become %s by the rule %r" % (source.dtype, into.dtype, casting))
    array.copyto(into, source)
    return out


# --- Devices ------------------------------------------------------------------------------------------------

def get_normalized_queue_device(obj=None, device=None, sycl_queue=None):
    """The queue that these name: of an array, of a device, or the default one."""
    if sycl_queue is not None:
        return behind(sycl_queue)
    device, obj = behind(device), behind(obj)
    if device is None and isinstance(obj, _engine.Array):
        return obj.queue
    return device if isinstance(device, _engine.Queue) else _engine.Device(device).queue


def default_float_type(device=None, sycl_queue=None):
    """float64, where the device has it."""
    queue = get_normalized_queue_device(device=device, sycl_queue=sycl_queue)
    return numpy.dtype("float64" if queue.device.has_aspect_fp64 else "float32")


def is_cuda_backend(obj=None):
    """Whether an array, a queue or a device is one of CUDA."""
    obj = behind(obj)
    if not isinstance(obj, _engine.Device):
        obj = getattr(obj, "device", None) or _engine.Device(None)
    return obj.backend.name == "cuda"


def synchronize_array_data(a):
    """Wait for the work on an array."""
    check_supported_arrays_type(a)
    behind(a).queue.wait()
