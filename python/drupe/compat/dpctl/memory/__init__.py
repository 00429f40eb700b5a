"""dpctl.memory: USM memory by the byte. The classes may be inherited from; shared and host memory have the buffer
protocol."""
from drupe import _engine
from drupe import memory as _memory
from drupe.compat.dpctl._sycl_context import SyclContext
from drupe.compat.dpctl._sycl_device import SyclDevice
from drupe.compat.dpctl._sycl_queue import SyclQueue
from drupe.compat.dpctl._sycl_queue_manager import get_device_cached_queue
from drupe.compat.dpctl._wrapping import behind
from drupe.memory import USMAllocationError

__all__ = ["IPCMemoryHandle", "MemoryIPCDevice", "MemoryUSMDevice", "MemoryUSMHost", "MemoryUSMShared",
           "SyclIPCCloseMemHandle", "SyclIPCGetMemHandle", "SyclIPCOpenMemHandle", "USMAllocationError",
           "as_usm_memory"]


def _queue_of(queue):
    if queue is None:
        return get_device_cached_queue(SyclDevice())._drupe
    if not isinstance(queue, SyclQueue):
        raise TypeError(f"queue is a SyclQueue, not {type(queue).__name__}")
    return queue._drupe


def _told_queue(obj):
    """The queue that an object with __sycl_usm_array_interface__ tells of, or None: it may tell of less."""
    told = behind(obj.__sycl_usm_array_interface__.get("syclobj"))
    return told if isinstance(told, _engine.Queue) else None


class _Memory:
    """What the three kinds have in common. The memory is made by __new__, so that classes that inherit may have an
    __init__ of any form."""

    _kind = None
    _placed = None  # the queue of a view, where it is not that of the allocation

    def __new__(cls, nbytes_or_obj, *, alignment=0, queue=None, copy=False):
        self = super().__new__(cls)
        behind_it = behind(nbytes_or_obj)
        # What is a view stays on the queue of what it views.
        chosen = None if queue is None and hasattr(nbytes_or_obj, "__sycl_usm_array_interface__") else _queue_of(queue)
        self._drupe = cls._kind(behind_it, alignment=alignment, queue=chosen, copy=copy)
        if self._drupe.reference_obj is not None:
            self._viewed = nbytes_or_obj
            self._placed = chosen or _told_queue(nbytes_or_obj)
            if self._placed is not None and self._placed.context != self._drupe.context:
                raise ValueError("the memory is not of the queue's context: give copy=True")
        else:
            self._viewed = None
        return self

    def __init__(self, *args, **options):
        pass

    @classmethod
    def _of(cls, memory, viewed=None):
        """The one with this memory of Drupe's behind it."""
        kind = {"device": MemoryUSMDevice, "shared": MemoryUSMShared, "host": MemoryUSMHost}[memory.usm_type]
        self = object.__new__(kind)
        self._drupe, self._viewed = memory, viewed
        return self

    _kernel_argument = property(lambda self: self._drupe)
    nbytes = property(lambda self: self._drupe.nbytes, doc="Size in bytes.")
    size = property(lambda self: self._drupe.nbytes, doc="Size in bytes.")
    reference_obj = property(lambda self: self._viewed, doc="What it is a view of, or None.")
    sycl_queue = property(lambda self: SyclQueue._of(self._placed or self._drupe.queue), doc="The queue it is on.")
    sycl_device = property(lambda self: SyclDevice._of(self._drupe.device), doc="The device of that queue.")
    sycl_context = property(lambda self: SyclContext._of(self._drupe.context), doc="The context of that queue.")
    _queue, _context = sycl_queue, sycl_context
    _pointer = property(lambda self: self._drupe._pointer, doc="The address, as an integer.")

    @property
    def __sycl_usm_array_interface__(self):
        """The description that other libraries read."""
        return {**self._drupe.__sycl_usm_array_interface__, "syclobj": self.sycl_queue}

    def get_usm_type(self, syclobj=None):
        """"device", "shared" or "host"; "unknown" to another SyclContext or a SyclQueue of one."""
        return self._drupe.get_usm_type(behind(syclobj))

    def get_usm_type_enum(self, syclobj=None):
        """The same as a number: 1 device, 2 shared, 3 host, 0 unknown."""
        return self._drupe.get_usm_type_enum(behind(syclobj))

    def copy_to_host(self, obj=None):
        """Copy all bytes to a writable buffer (a new bytearray if none is given), and return it."""
        return self._drupe.copy_to_host(obj)

    def copy_from_host(self, obj):
        """Copy the bytes of a buffer to the start of the memory."""
        if hasattr(obj, "__sycl_usm_array_interface__"):
            raise TypeError("copy_from_host() takes a host buffer; copy_from_device() takes USM memory")
        self._drupe.copy_from_host(obj)

    def copy_from_device(self, sycl_usm_ary):
        """Copy from other USM memory."""
        if not hasattr(sycl_usm_ary, "__sycl_usm_array_interface__"):
            raise TypeError(f"copy_from_device() takes USM memory, and {type(sycl_usm_ary).__name__} has no "
                            "__sycl_usm_array_interface__")
        self._drupe.copy_from_device(behind(sycl_usm_ary))

    def memset(self, val=0):
        """Set every byte."""
        self._drupe.memset(val)

    def tobytes(self):
        """All bytes."""
        return self._drupe.tobytes()

    def __bytes__(self):
        return self._drupe.tobytes()

    def __len__(self):
        return self._drupe.nbytes

    def __sizeof__(self):
        return object.__sizeof__(self) + self._drupe.nbytes

    def __reduce__(self):
        return _restore, (self.get_usm_type(), self.tobytes(), self._drupe.device.filter_string)

    def __repr__(self):
        return f"<USM-{self.get_usm_type()} allocation of {self.nbytes} bytes at {self._pointer:#x}>"


class MemoryUSMDevice(_Memory):
    """Memory of a device, which the host cannot address."""

    _kind = _memory.MemoryUSMDevice


class MemoryUSMShared(_Memory, _engine._Lender):
    """Memory that moves between host and device."""

    _kind = _memory.MemoryUSMShared


class MemoryUSMHost(_Memory, _engine._Lender):
    """Memory of the host that a device can address."""

    _kind = _memory.MemoryUSMHost


def _restore(kind, content, device):
    """What a pickled memory becomes."""
    return _Memory._of(_memory._restore(kind, content, device))


def as_usm_memory(obj):
    """The memory behind an object with __sycl_usm_array_interface__, without a copy."""
    if isinstance(obj, _Memory):
        return obj
    found = _Memory._of(_memory.as_usm_memory(behind(obj)), obj)
    queue = _told_queue(obj)
    if queue is not None and queue.context == found._drupe.context:
        found._placed = queue
    return found


# --- Between processes -----------------------------------------------------------------------------------------------

class MemoryIPCDevice(MemoryUSMDevice):
    """Memory of another process, until it is closed."""

    def __new__(cls, view):
        self = object.__new__(cls)
        self._view, self._viewed = view, None
        return self

    _drupe = property(lambda self: self._view.memory)
    is_closed = property(lambda self: self._view.is_closed, doc="Whether close() was called.")

    def close(self):
        """Let go of the memory."""
        self._view.close()

    def __repr__(self):
        return "<closed MemoryIPCDevice>" if self.is_closed else super().__repr__()


class IPCMemoryHandle:
    """A name for memory, for another process of the same user on this machine."""

    def __init__(self, usm_memory):
        if not isinstance(usm_memory, _Memory):
            raise TypeError(f"usm_memory is USM memory, not {type(usm_memory).__name__}")
        self._handle = _memory.IPCMemoryHandle(usm_memory._drupe)

    @staticmethod
    def is_available():
        """Whether memory of the default device can be shared between processes."""
        return _memory.IPCMemoryHandle.is_available(SyclDevice()._drupe)

    def to_bytes(self):
        """The name, to be sent to the other process."""
        return self._handle.to_bytes()

    @staticmethod
    def open(handle_bytes, device, nbytes):
        """The first `nbytes` bytes of the memory behind a name."""
        return MemoryIPCDevice(_memory.IPCMemoryHandle.open(handle_bytes, SyclDevice(device)._drupe, nbytes))

    @staticmethod
    def close_mapping(usm_memory):
        """Let go of memory that open() gave."""
        usm_memory.close()

    def close(self):
        """Let go of the memory of this process."""
        self._handle.close()


def SyclIPCGetMemHandle(usm_memory):
    """A name for memory as bytes."""
    return IPCMemoryHandle(usm_memory).to_bytes()


def SyclIPCOpenMemHandle(handle_bytes, device, nbytes):
    """The memory behind a name."""
    return IPCMemoryHandle.open(handle_bytes, device, nbytes)


def SyclIPCCloseMemHandle(usm_memory):
    """Let go of memory that SyclIPCOpenMemHandle() gave."""
    usm_memory.close()
