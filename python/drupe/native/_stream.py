"""Streams and offload arrays, as pyMIC has them: arrays with a part on the host, a NumPy array, and one on a device.

A stream is a queue. What is asked of it is queued and runs in order; sync() waits. Arithmetic on offload arrays is
drupe.array's, on the device parts; the host part of a result holds nothing until update_host() has brought it."""
import ctypes
import operator

import numpy

from drupe import _engine
from drupe import array as _array


class OffloadError(Exception):
    """Something that cannot be offloaded: a kernel of another device, memory that was given back."""


def stream(device=None, *, queue=None):
    """The Stream of a device's default queue, or of a queue."""
    return Stream(device, queue=queue)


class DevicePointer:
    """Memory that was allocated by allocate_device_memory()."""

    __slots__ = ("_bytes", "nbytes")

    def __init__(self, bytes_, nbytes):
        self._bytes = bytes_
        self.nbytes = nbytes

    @property
    def array(self):
        """Its bytes as an array of drupe.array. OffloadError once it was deallocated."""
        if self._bytes is None:
            raise OffloadError("the device memory was deallocated")
        return self._bytes

    __drupe_array__ = array

    def __int__(self):
        return _address(self.array)

    __index__ = __int__

    def part(self, offset, nbytes, what):
        """`nbytes` of it at `offset`. ValueError when they do not lie inside."""
        offset, nbytes = _inside(offset, nbytes, self.nbytes, what)
        return self.array[offset:offset + nbytes]

    def __repr__(self):
        return "<DevicePointer %s>" % ("deallocated" if self._bytes is None else "%d bytes" % self.nbytes)


def _address(array):
    interface = array.__sycl_usm_array_interface__
    return interface["data"][0] + interface["offset"] * array.dtype.itemsize


def _inside(offset, nbytes, size, what):
    offset, nbytes = operator.index(offset), operator.index(nbytes)
    if offset < 0 or nbytes < 0:
        raise ValueError("%s: offset %d and number of bytes %d must not be negative" % (what, offset, nbytes))
    if size is not None and offset + nbytes > size:
        raise ValueError("%s: bytes %d to %d lie outside of its %d bytes" % (what, offset, offset + nbytes, size))
    return offset, nbytes


class Stream(_engine._Stream):
    """A queue of transfers, kernels and arithmetic on offload arrays."""

    def __init__(self, device=None, *, queue=None):
        if queue is None:
            queue = _engine.Device(device).queue
        elif device is not None:
            raise TypeError("give either device or queue: a queue has its device already")
        self.queue = queue

    def __copy__(self):
        result = _engine._Stream.__new__(type(self))
        result.__dict__.update(self.__dict__)
        result.queue = self.queue
        return result

    def get_device(self):
        """The device that it works on."""
        return self.queue.device

    device = property(get_device)

    def invoke(self, kernel, *arguments):
        """Queue a call of a function of a library, and give its Event.

        Offload arrays are passed by the address of their device part. A call with NumPy arrays has ended on return."""
        return self._function(kernel)(*arguments, queue=self.queue)

    invoke_kernel = invoke

    def _arrays(self):
        """The class of its arrays."""
        return OffloadArray

    def _function(self, kernel):
        if isinstance(kernel, _engine._NativeFunction):
            return kernel
        raise TypeError("invoke() takes a function of a library, such as library.dgemm, not %s" % type(kernel).__name__)

    # --- offload arrays ---

    def bind(self, array, update_device=True):
        """An OffloadArray whose host part is this NumPy array; its elements are copied to the device, unless
        `update_device` is false."""
        if not isinstance(array, numpy.ndarray):
            raise ValueError("only a numpy.ndarray can be bound, not %s" % type(array).__name__)
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise ValueError("the array is a strided view: bind a contiguous copy, numpy.ascontiguousarray(x)")
        order = "C" if array.flags.c_contiguous else "F"
        result = self._new(array.shape, array.dtype, order, array)
        if update_device:
            result.update_device()
        return result

    def copy(self, array, update_device=True):
        """bind() of a copy of the array."""
        if not isinstance(array, numpy.ndarray):
            raise ValueError("only a numpy.ndarray can be copied, not %s" % type(array).__name__)
        return self.bind(array.copy(order="A"), update_device)

    def empty(self, shape, dtype=float, order="C", update_host=True):
        """An OffloadArray with undefined elements, the same on host and device if `update_host`."""
        result = self._new(shape, dtype, order)
        return result.update_host() if update_host else result

    def zeros(self, shape, dtype=float, order="C", update_host=True):
        """An OffloadArray of zeros; the host part too, if `update_host`."""
        return self.bcast(numpy.dtype(dtype).type(0), shape, dtype, order, update_host)

    def ones(self, shape, dtype=float, order="C", update_host=True):
        """An OffloadArray of ones; the host part too, if `update_host`."""
        return self.bcast(numpy.dtype(dtype).type(1), shape, dtype, order, update_host)

    def bcast(self, value, shape, dtype=float, order="C", update_host=True):
        """An OffloadArray whose elements are all `value`."""
        result = self._new(shape, dtype, order).fill(value)
        if update_host:
            result.array.fill(value)
        return result

    def empty_like(self, other, update_host=True):
        """empty() with shape, type and order of another array."""
        return self.empty(other.shape, other.dtype, _order(other), update_host)

    def zeros_like(self, other, update_host=True):
        """zeros() with shape, type and order of another array."""
        return self.zeros(other.shape, other.dtype, _order(other), update_host)

    def ones_like(self, other, update_host=True):
        """ones() with shape, type and order of another array."""
        return self.ones(other.shape, other.dtype, _order(other), update_host)

    def bcast_like(self, value, other, update_host=True):
        """bcast() with shape, type and order of another array."""
        return self.bcast(value, other.shape, other.dtype, _order(other), update_host)

    def _new(self, shape, dtype, order, array=None):
        result = self._arrays()(shape, dtype, order, alloc_arr=array is None, stream=self)
        if array is not None:
            result.array = array
        return result

    # --- memory by the byte ---

    def allocate_device_memory(self, nbytes, alignment=64, sticky=False):
        """Memory of the device, as a pointer for transfers and kernels. `sticky` means nothing here."""
        nbytes = operator.index(nbytes)
        if nbytes <= 0:
            raise ValueError("device memory has at least 1 byte, not %d" % nbytes)
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError("alignment is a power of two, not %r" % (alignment,))
        more = alignment if alignment > 64 else 0
        array = _array.empty(nbytes + more, dtype="uint8", queue=self.queue)
        begin = -_address(array) % alignment if more else 0
        return DevicePointer(array[begin:begin + nbytes], nbytes)

    def deallocate_device_memory(self, device_ptr):
        """Give memory back; work that uses it goes on."""
        _pointer(device_ptr).array
        device_ptr._bytes = None

    def transfer_host2device(self, host_ptr, device_ptr, nbytes, offset_host=0, offset_device=0):
        """Queue a copy from the host: a NumPy array or another buffer, or the address of memory that has to stay valid
        until sync(). Offsets are in bytes."""
        source = _host(host_ptr, offset_host, nbytes, "the host memory")
        return self._copy(_pointer(device_ptr).part(offset_device, nbytes, "the device memory"), source)

    def transfer_device2host(self, device_ptr, host_ptr, nbytes, offset_device=0, offset_host=0):
        """Queue a copy to the host; see transfer_host2device()."""
        target = _host(host_ptr, offset_host, nbytes, "the host memory")
        return self._copy(target, _pointer(device_ptr).part(offset_device, nbytes, "the device memory"))

    def transfer_device2device(self, device_ptr_src, device_ptr_dst, nbytes, offset_device_src=0, offset_device_dst=0):
        """Queue a copy from device memory to device memory; the parts must not overlap."""
        source = _pointer(device_ptr_src).part(offset_device_src, nbytes, "the source")
        return self._copy(_pointer(device_ptr_dst).part(offset_device_dst, nbytes, "the target"), source)

    def translate_device_pointer(self, device_ptr):
        """The address on the device."""
        return int(_pointer(device_ptr))

    def _copy(self, target, source):
        if len(target) == 0:
            return self.queue.barrier()
        return self.queue.copy(target, source)

    def __repr__(self):
        return "<drupe.native.Stream on %s>" % self.queue.device.filter_string


def _pointer(one):
    if not isinstance(one, DevicePointer):
        raise TypeError("device memory is what allocate_device_memory() gave, not %s" % type(one).__name__)
    return one


def _host(one, offset, nbytes, what):
    """`nbytes` of host memory as something with a buffer."""
    if hasattr(one, "__index__") and not isinstance(one, numpy.ndarray):
        offset, nbytes = _inside(offset, nbytes, None, what)
        return (ctypes.c_char * nbytes).from_address(operator.index(one) + offset)
    if isinstance(one, numpy.ndarray):
        if not (one.flags.c_contiguous or one.flags.f_contiguous):
            raise ValueError("%s is a strided view: its bytes do not lie side by side" % what)
        one = one.reshape(-1, order="A")
    view = memoryview(one).cast("B")
    offset, nbytes = _inside(offset, nbytes, len(view), what)
    return view[offset:offset + nbytes]


def _order(other):
    if isinstance(other, OffloadArray):
        return other.order
    return "F" if isinstance(other, numpy.ndarray) and other.flags.fnc else "C"


def _arithmetic(function, reflected=False):
    def method(self, other):
        return self._apply(function, other, reflected)

    return method


def _in_place(function):
    def method(self, other):
        theirs = self._operand(other)
        if theirs is NotImplemented:
            return theirs
        self._device = function(self._device, theirs)
        return self

    return method


class OffloadArray(_engine._OffloadArray):
    """An array with a host part, `array`, and a part on a device. update_device() and update_host() copy one to the
    other; they are queued, like arithmetic, and the stream's sync() waits."""

    __array_priority__ = 1000.0
    __array_ufunc__ = None  # NumPy leaves operators to this class

    def __init__(self, shape, dtype, order="C", alloc_arr=True, base=None, device=None, stream=None):
        if order not in ("C", "F"):
            raise ValueError("order must be \"C\" or \"F\", not %r" % (order,))
        self.stream = stream if stream is not None else Stream(device)
        self.shape = (operator.index(shape),) if hasattr(shape, "__index__") else tuple(map(operator.index, shape))
        self.dtype = numpy.dtype(dtype)
        self.order = order
        self.base = base
        self.array = numpy.empty(self.shape, self.dtype, order) if alloc_arr else None
        self._device = _array.empty(self._lying, dtype=self.dtype, queue=self.stream.queue) if base is None else None

    # The device part lies row by row: of an array in order "F" it is the transposed one.
    @property
    def _lying(self):
        return self.shape if self.order == "C" else self.shape[::-1]

    @property
    def __drupe_array__(self):
        return self._device

    @property
    def device(self):
        """The device of its stream."""
        return self.stream.get_device()

    @property
    def size(self):
        """The number of elements."""
        return self._device.size

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self):
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize

    def device_array(self):
        """The device part as an array of drupe.array, which shares its memory."""
        return self._device if self.order == "C" else self._device.T

    # --- transfers ---

    # update_device() and update_host() are the engine's.

    def _make_host(self):
        self.array = numpy.empty(self.shape, self.dtype, self.order)

    def assign_stream(self, stream):
        """Go on in another stream of the same device, behind what the present one has by now."""
        if stream.get_device() != self.device:
            raise OffloadError("the stream is of %s, the array of %s" % (stream.get_device(), self.device))
        if stream.queue != self.stream.queue:
            stream.queue.barrier(wait_for=[self.stream.queue.barrier()])
            self._device = self._device.to_device(stream.queue)
        self.stream = stream

    # --- elements ---

    def fill(self, value):
        """Set all elements of the device part to a number. The array itself."""
        self._device[...] = self.dtype.type(value).item()
        return self

    def fillfrom(self, array):
        """Set the elements of the device part to those of a NumPy array or an offload array of this shape. The array
        itself."""
        if tuple(array.shape) != self.shape:
            raise ValueError("an array of shape %s is not filled from one of shape %s" % (self.shape, array.shape))
        self._device[...] = self._operand(array)
        return self

    def zero(self, zero_value=None):
        """Set all elements of the device part to zero. The array itself."""
        return self.fill(0 if zero_value is None else zero_value)

    def one(self, one_value=None):
        """Set all elements of the device part to one. The array itself."""
        return self.fill(1 if one_value is None else one_value)

    def __len__(self):
        if not self.shape:
            raise TypeError("an array without dimensions has no len()")
        return self.shape[0]

    def __setitem__(self, index, sequence):
        value = sequence
        if isinstance(sequence, OffloadArray):
            value = sequence.device_array()
        elif isinstance(sequence, (list, tuple, numpy.ndarray)):
            value = _array.asarray(numpy.asarray(sequence, self.dtype), queue=self.stream.queue)
        self.device_array()[index] = value

    def __setslice__(self, i, j, sequence):
        self[i:j] = sequence

    # --- the same elements in another shape ---

    def _view(self, shape, order="C"):
        result = self._like(shape, self.dtype, order, self)
        result.array = None if self.array is None else self.array.reshape(shape, order=order)
        result._device = self._device.reshape(shape if order == "C" else shape[::-1])
        return result

    def reshape(self, *shape):
        """The same elements in another shape: host and device part are shared."""
        shape = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
        return self._view(_resolved(tuple(map(operator.index, shape)), self.size), self.order)

    def ravel(self):
        """The same elements in one dimension."""
        return self._view((self.size,), self.order)

    # --- arithmetic on the device parts ---

    def _operand(self, other):
        """What drupe.array takes for an operand, as the device part lies."""
        if isinstance(other, OffloadArray):
            same = other.order == self.order and other.ndim == self.ndim
            return other._device if same else self._lain(other.device_array())
        if isinstance(other, numpy.ndarray) and other.ndim:
            return _array.asarray(self._lain(other), queue=self.stream.queue)
        if isinstance(other, (bool, int, float, complex, numpy.generic, numpy.ndarray)):
            return other.item() if isinstance(other, (numpy.generic, numpy.ndarray)) else other
        return NotImplemented

    def _lain(self, other):
        """An array as the device part lies. Axes that broadcasting adds come first, so they come last of transposed
        ones."""
        if self.order == "C":
            return other
        if other.ndim > self.ndim:
            raise ValueError("an array of %d dimensions in order \"F\" takes no operand of %d"
                             % (self.ndim, other.ndim))
        return other.reshape((1,) * (self.ndim - other.ndim) + tuple(other.shape)).T

    def _apply(self, function, other, reflected):
        theirs = self._operand(other)
        if theirs is NotImplemented:
            return theirs
        return self._result(function(theirs, self._device) if reflected else function(self._device, theirs))

    def _result(self, device):
        if not device.flags.c_contiguous:
            device = _array.asarray(device, copy=True)
        shape = tuple(device.shape)
        result = self._like(shape if self.order == "C" else shape[::-1], numpy.dtype(device.dtype.name), self.order)
        result._device = device
        result._make_host()
        return result

    def _like(self, shape, dtype, order, base=None):
        """One of the same class and stream, which has no parts yet."""
        result = _engine._OffloadArray.__new__(type(self))
        result.__dict__.update(self.__dict__, shape=shape, dtype=dtype, order=order, base=base)
        result.stream = self.stream
        return result

    def __copy__(self):
        result = self._like(self.shape, self.dtype, self.order, self.base)
        result.array, result._device = self.array, self._device
        return result

    def abs(self):
        """The absolute values, in a new array."""
        return self._result(_array.abs(self._device))

    __abs__ = abs
    __add__ = _arithmetic(operator.add)
    __radd__ = _arithmetic(operator.add, True)
    __sub__ = _arithmetic(operator.sub)
    __rsub__ = _arithmetic(operator.sub, True)
    __mul__ = _arithmetic(operator.mul)
    __rmul__ = _arithmetic(operator.mul, True)
    __truediv__ = _arithmetic(operator.truediv)
    __rtruediv__ = _arithmetic(operator.truediv, True)
    __pow__ = _arithmetic(operator.pow)
    __rpow__ = _arithmetic(operator.pow, True)
    __iadd__ = _in_place(operator.iadd)
    __isub__ = _in_place(operator.isub)
    __imul__ = _in_place(operator.imul)

    def __neg__(self):
        return self._result(-self._device)

    def reverse(self):
        """The elements in reverse order, in a new array."""
        device = _array.reshape(self._device, (-1,))
        return self._result(_array.reshape(_array.flip(device), self._lying))

    def __str__(self):
        return str(self.array)

    def __repr__(self):
        device = self.stream.queue.device.filter_string
        return "<OffloadArray of shape %s, %s, on %s>" % (self.shape, self.dtype, device)


def _resolved(shape, size):
    """A shape whose -1 is replaced."""
    if shape.count(-1) > 1:
        raise ValueError("one size can be left open, not several: %s" % (shape,))
    known = 1
    for one in shape:
        known *= 1 if one == -1 else one
    if -1 in shape and (not known or size % known) or -1 not in shape and known != size:
        raise ValueError("an array of %d elements has no shape %s" % (size, shape))
    return tuple(size // known if one == -1 else one for one in shape)
