"""Arrays on devices as numba.cuda has them, over those of Drupe."""
import contextlib
import operator

import numpy

from drupe import _engine, array
from drupe.compat.numba_cuda import _devices


class DeviceNDArray:
    """An array on a device. Made by to_device(), device_array() and their like."""

    __slots__ = ("_array", "__weakref__")
    __array_priority__ = 100
    __hash__ = None

    def __init__(self, given):
        self._array = given

    shape = property(lambda self: self._array.shape)
    size = property(lambda self: self._array.size)
    ndim = property(lambda self: self._array.ndim)
    nbytes = property(lambda self: self._array.nbytes)
    dtype = property(lambda self: numpy.dtype(str(self._array.dtype)))
    strides = property(lambda self: _strides(self._array))
    T = property(lambda self: DeviceNDArray(self._array.T))

    def __len__(self):
        return len(self._array)

    def __repr__(self):
        return "<numba.cuda device array, shape %s, %s, on %s>" % (self.shape, self.dtype,
                                                                  self._array.device.filter_string)

    def __getattr__(self, name):
        if name == "__cuda_array_interface__":
            raise AttributeError("an array of Drupe has no __cuda_array_interface__: from_dlpack(x) shares its memory")
        raise AttributeError("a device array has no %r; drupe.array.from_dlpack(x) gives one with all that NumPy's "
                             "arrays have" % name)

    # --- Copies ---

    def copy_to_host(self, ary=None, stream=0):
        """The elements as an array of NumPy: a new one, or `ary`."""
        _devices.stream_of(stream)
        if ary is None:
            return numpy.array(self._array.asnumpy(), order="K")
        _same(self, ary)
        ary[...] = self._array.asnumpy()
        return ary

    def copy_to_device(self, ary, stream=0):
        """Copy from an array of the host, or from another device array."""
        _devices.stream_of(stream)
        ary = ary._array if isinstance(ary, DeviceNDArray) else numpy.asarray(ary) \
            if not isinstance(ary, _engine.Array) else ary
        _same(self, ary)
        self._array[...] = ary if isinstance(ary, _engine.Array) else array.asarray(ary, queue=self._array.queue)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("a device array is copied to the host: copy=False cannot be")
        found = self.copy_to_host()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    # --- Views ---

    def __getitem__(self, key):
        found = self._array[_key(key)]
        if not found.ndim and not _has_slice(key):
            return found.asnumpy()[()]
        return DeviceNDArray(found)

    getitem = __getitem__

    def __setitem__(self, key, value):
        value = unwrapped([value])[0]
        if isinstance(value, numpy.ndarray):
            value = array.asarray(value, queue=self._array.queue)
        self._array[_key(key)] = value

    def setitem(self, key, value, stream=0):
        """self[key] = value"""
        self[key] = value

    def reshape(self, *shape, order="C"):
        """The same elements in another shape, without a copy."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if order not in ("C", "A") and self.ndim > 1:
            raise NotImplementedError("reshape() of a device array has the order C")
        if not self._array.flags["c_contiguous"]:
            raise NotImplementedError("reshape() takes an array whose elements lie in the order C")
        return DeviceNDArray(self._array.reshape(tuple(shape)))

    def ravel(self, order="C", stream=0):
        """The same elements in one dimension."""
        return self.reshape(self.size, order=order)

    def squeeze(self, axis=None, stream=0):
        """Without dimensions of one element."""
        return DeviceNDArray(self._array.squeeze(axis))

    def transpose(self, axes=None):
        """With the dimensions in another order."""
        return DeviceNDArray(self._array.transpose() if axes is None else self._array.transpose(tuple(axes)))

    def view(self, dtype):
        """The same bytes as elements of another type."""
        return DeviceNDArray(self._array.view(dtype))

    def split(self, section, stream=0):
        """Parts of so many elements of an array of one dimension, one after the other."""
        if self.ndim != 1:
            raise ValueError("split() takes an array of one dimension")
        section = operator.index(section)
        for at in range(0, self.size, section):
            yield DeviceNDArray(self._array[at:at + section])

    def is_c_contiguous(self):
        return bool(self._array.flags["c_contiguous"])

    def is_f_contiguous(self):
        return bool(self._array.flags["f_contiguous"])

    @property
    def flags(self):
        return {"C_CONTIGUOUS": self.is_c_contiguous(), "F_CONTIGUOUS": self.is_f_contiguous()}


def _strides(given):
    return tuple(step * given.itemsize for step in given.strides)


def _key(key):
    if isinstance(key, tuple):
        return tuple(map(_key, key))
    return key._array if isinstance(key, DeviceNDArray) else key


def _has_slice(key):
    return any(isinstance(one, slice) or one is Ellipsis for one in (key if isinstance(key, tuple) else (key,)))


def _same(mine, other):
    if tuple(other.shape) != tuple(mine.shape) or str(other.dtype) != str(mine.dtype):
        raise ValueError("a copy is between arrays of one shape and dtype, and these are %s %s and %s %s" % (
            mine.shape, mine.dtype, tuple(other.shape), other.dtype))


class MappedNDArray(numpy.ndarray):
    """Memory that host and device both reach: an array of NumPy, and for kernels one of the device. Wait for kernels
    before reading it."""

    _device_array = None


# --- Making -------------------------------------------------------------------------------------------------

def _order(shape, order, strides):
    if strides is not None:
        raise NotImplementedError("strides= has no counterpart: allocate the whole array, and take a view")
    if order not in ("C", "F"):
        raise ValueError("order is \"C\" or \"F\", not %r" % (order,))
    return (operator.index(shape),) if hasattr(shape, "__index__") else tuple(shape)


def to_device(obj, stream=0, copy=True, to=None):
    """A copy of an array on the device; an array that is on one is given back."""
    _devices.stream_of(stream)
    if to is not None:
        to.copy_to_device(obj)
        return to
    if isinstance(obj, DeviceNDArray):
        return obj
    if isinstance(obj, _engine.Array):
        return DeviceNDArray(obj)
    if not copy:
        return device_array_like(numpy.asarray(obj))
    return DeviceNDArray(array.asarray(numpy.asarray(obj), queue=_devices.queue(), copy=True))


def device_array(shape, dtype=numpy.float64, strides=None, order="C", stream=0):
    """A new array on the device, whose elements nobody has written."""
    _devices.stream_of(stream)
    shape = _order(shape, order, strides)
    return DeviceNDArray(array.empty(shape, dtype=_dtype(dtype), queue=_devices.queue(), order=order))


def _dtype(dtype):
    from drupe.compat.numba_cuda import _written

    return _written._numpy_dtype(dtype)


def device_array_like(ary, stream=0):
    """A new array of the shape, dtype and order of another one."""
    flags = getattr(ary, "flags", {})
    key = "F_CONTIGUOUS" if not isinstance(ary, _engine.Array) else "f_contiguous"
    other = "C_CONTIGUOUS" if not isinstance(ary, _engine.Array) else "c_contiguous"
    order = "F" if flags[key] and not flags[other] else "C"
    return device_array(ary.shape, _dtype(str(ary.dtype)), order=order, stream=stream)


def pinned_array(shape, dtype=numpy.float64, strides=None, order="C"):
    """A new array of the host. Copies of Drupe do not need pinned memory of yours."""
    return numpy.empty(_order(shape, order, strides), _dtype(dtype), order)


def pinned_array_like(ary):
    """The same with the shape, dtype and order of another one."""
    return numpy.empty_like(ary)


def mapped_array(shape, dtype=numpy.float64, strides=None, order="C", stream=0, portable=False, wc=False):
    """A new array that host and device both reach."""
    shape = _order(shape, order, strides)
    if order != "C":
        raise NotImplementedError("mapped_array() has the order C")
    made = array.zeros(shape, dtype=_dtype(dtype), usm_type="shared", queue=_devices.queue())
    memory = made.usm_data
    made.queue.wait()
    host = numpy.ndarray(shape, _dtype(dtype), memory, made._offset * made.itemsize).view(MappedNDArray)
    host._device_array = made
    return host


def mapped_array_like(ary, stream=0, portable=False, wc=False):
    """The same with the shape and dtype of another one."""
    return mapped_array(ary.shape, ary.dtype)


def managed_array(shape, dtype=numpy.float64, strides=None, order="C", stream=0, attach_global=True):
    """A new array that host and device both reach."""
    return mapped_array(shape, dtype, strides, order)


@contextlib.contextmanager
def pinned(*arylist):
    """A block in which arrays of the host are pinned, which Drupe's copies do not need."""
    yield


@contextlib.contextmanager
def mapped(*arylist, **options):
    """A block in which arrays of the host are arrays of the device, which must work in the host's memory."""
    queue = _devices.queue()
    try:
        made = [DeviceNDArray(array.asarray(one, queue=queue, copy=False)) for one in arylist]
    except ValueError as error:
        raise NotImplementedError("%s cannot reach these arrays of the host: use mapped_array(), or to_device()"
                                  % queue.device.name) from error
    try:
        yield made[0] if len(made) == 1 else made
    finally:
        queue.wait()


def as_cuda_array(obj, sync=True):
    raise NotImplementedError("memory of other libraries is shared by drupe.array.from_dlpack(x), which kernels take")


def is_cuda_array(obj):
    """Whether it is an array on a device."""
    return isinstance(obj, (DeviceNDArray, _engine.Array))


# --- Arguments ----------------------------------------------------------------------------------------------

class In:
    """An array of the host that a kernel only reads: it is not copied back."""

    def __init__(self, value):
        self.value = value


class InOut(In):
    """An array of the host that is copied in and back."""


class Out(InOut):
    """An array of the host that is copied back."""


def unwrapped(args):
    """The arguments with Drupe's arrays for those of this module."""
    return tuple(_unwrapped(one) for one in args)


def _unwrapped(one):
    kind = type(one)
    if kind is DeviceNDArray:
        return one._array
    if isinstance(one, InOut):
        return numpy.asarray(one.value) if not isinstance(one.value, DeviceNDArray) else one.value._array
    if isinstance(one, In):
        return to_device(one.value)._array
    if isinstance(one, MappedNDArray):
        return _mapped(one)
    if isinstance(one, tuple):
        items = map(_unwrapped, one)
        return type(one)(*items) if hasattr(one, "_fields") else tuple(items)
    return one._drupe if kind.__name__ == "usm_ndarray" else one


def _mapped(host):
    """The device's side of mapped memory; a part of it is an array of NumPy as any other."""
    return host._device_array if host._device_array is not None else host.view(numpy.ndarray)
