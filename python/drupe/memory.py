"""Unified shared memory: bytes that a device, and for two kinds of three the host, address by pointer.

    MemoryUSMDevice(nbytes), MemoryUSMShared(nbytes), MemoryUSMHost(nbytes)    allocate
    pool(device)                                           figures and limits of a device's memory
    report(device)                                         who holds memory: cell and line, largest first
    IPCMemoryHandle(memory)                                memory for another process of this user
"""
from collections import namedtuple

from drupe import _engine
from drupe._engine import (Device, DeviceMemoryError as USMAllocationError, MemoryUSMDevice, MemoryUSMHost,
                           MemoryUSMShared)
from drupe._units import size

__all__ = ["Holder", "IPCCloseMemHandle", "IPCGetMemHandle", "IPCMemoryHandle", "IPCOpenMemHandle",
           "MemoryIPCDevice", "MemoryUSMDevice", "MemoryUSMHost", "MemoryUSMShared", "Pool", "Report",
           "USMAllocationError", "as_usm_memory", "pool", "report"]

_BY_KIND = {"device": MemoryUSMDevice, "shared": MemoryUSMShared, "host": MemoryUSMHost}
_WIPE = {"alloc": 1, "free": 2}


def as_usm_memory(obj):
    """The memory behind an array or another object with __sycl_usm_array_interface__, without a copy."""
    if isinstance(obj, tuple(_BY_KIND.values())):
        return obj
    if not hasattr(obj, "__sycl_usm_array_interface__"):
        raise TypeError(f"{type(obj).__name__} has no USM memory; copy host data with MemoryUSMDevice(obj)")
    for kind in _BY_KIND.values():
        try:
            return kind(obj)
        except ValueError as problem:
            if "cannot be viewed as" not in str(problem):
                raise
    raise ValueError(f"the memory of {type(obj).__name__} is of no kind that is known")


def _restore(kind, content, device):
    """What a pickled memory becomes: on the device it was on, or on the default device where that is absent."""
    try:
        return _BY_KIND[kind](content, device=device)
    except (_engine.DeviceNotFoundError, _engine.DriverUnavailableError):
        return _BY_KIND[kind](content)


# --- Pools -----------------------------------------------------------------------------------------------------

class Pool:
    """What is allocated on a device, and how much may be. The figures are those of the moment they are read."""

    def __init__(self, device=None):
        self.device = device if isinstance(device, Device) else Device(device)

    def _figure(self, name):
        return _engine._pool_stats(self.device)[name]

    used = property(lambda self: self._figure("used"), doc="Bytes handed out.")
    in_flight = property(lambda self: self._figure("in_flight"),
                         doc="Bytes that were given back, and which unfinished work still uses.")
    reserved = property(lambda self: self._figure("reserved"),
                        doc="Bytes taken from the driver, used ones and those in flight included.")

    @property
    def reserve(self):
        """Bytes taken from the driver that are not in use."""
        figures = _engine._pool_stats(self.device)
        return max(0, figures["reserved"] - figures["used"] - figures["in_flight"])

    peak = property(lambda self: self._figure("peak"), doc="Most bytes ever handed out, since reset_peak().")
    count = property(lambda self: self._figure("count"), doc="Allocations handed out.")
    by_kind = property(lambda self: self._figure("by_kind"),
                       doc='The five figures of each kind: {"device": {"used": ...}, "shared": ..., "host": ...}.')

    @property
    def limit(self):
        """Most bytes that may be reserved. Set it to a number of bytes, or to None for what DRUPE_MEMORY_LIMIT
        says, else the whole device."""
        return self._figure("limit")

    @limit.setter
    def limit(self, nbytes):
        _engine._pool_limit(self.device, nbytes)

    @property
    def wipe(self):
        """When memory is overwritten with zeros: a set of "alloc" (before it is handed out) and "free" (when it
        comes back). Set it to such a set, a string or None; DRUPE_MEMORY_WIPE is the first value."""
        when = self._figure("wipe")
        return {name for name, bit in _WIPE.items() if when & bit}

    @wipe.setter
    def wipe(self, when):
        names = {when} if isinstance(when, str) else set(when or ())
        if not names <= set(_WIPE):
            raise ValueError(f'wipe takes "alloc", "free" or both, not {sorted(map(str, names - set(_WIPE)))}')
        _engine._pool_wipe(self.device, sum(_WIPE[name] for name in names))

    def trim(self):
        """Give free blocks back to the driver; the number of bytes given back."""
        return _engine._pool_trim(self.device)

    def reset_peak(self):
        """Begin a new peak at what is in use now."""
        _engine._pool_reset_peak(self.device)

    def _repr_mimebundle_(self, include=None, exclude=None):
        from drupe import _repr

        return _repr.mimebundle(self)

    def __repr__(self):
        figures = _engine._pool_stats(self.device)
        return (f"<drupe.memory.Pool of {self.device.filter_string}: {figures['used']:,} bytes used in "
                f"{figures['count']:,} allocations, {figures['in_flight']:,} in flight, {figures['reserved']:,} "
                f"reserved, limit {figures['limit']:,}>")


def pool(device=None):
    """The memory pool of a device."""
    return Pool(device)


# --- Who holds what --------------------------------------------------------------------------------------------

Holder = namedtuple("Holder", "device kind nbytes count cell file line function place")
Holder.__doc__ = """Live allocations of one place in a program. `place` says where in words, "cell [3], line 2"; of
cell, file, line and function, what is not known is None."""


class Report(list):
    """Holders, largest first; shown as a table."""

    def __str__(self):
        if not self:
            return "no memory is allocated"
        rows = [("size", "allocations", "kind", "device", "allocated at")]
        rows += [(size(one.nbytes), str(one.count), one.kind, one.device, one.place) for one in self]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        return "\n".join("  ".join([row[0].rjust(widths[0]), row[1].rjust(widths[1]), row[2].ljust(widths[2]),
                                    row[3].ljust(widths[3]), row[4]]) for row in rows)

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None):
        from drupe import _repr

        return _repr.mimebundle(self)


def report(device=None, each=False):
    """Who holds memory of a device (None: of every device): one line per place in a program that allocated what
    is still alive, or one per allocation (each=True). Only the latest places are remembered."""
    if device is not None and not isinstance(device, Device):
        device = Device(device)
    return Report(Holder(*one) for one in _engine._holders(device, not each))


# --- Between processes -----------------------------------------------------------------------------------------

class MemoryIPCDevice:
    """Memory of another process, until it is closed. It has everything that the memory behind it (`memory`) has."""

    def __init__(self, memory):
        self._memory = memory

    @property
    def memory(self):
        """The memory as one of the three types; ValueError once it is closed."""
        if self._memory is None:
            raise ValueError("this view of another process's memory is closed")
        return self._memory

    @property
    def is_closed(self):
        """Whether close() was called."""
        return self._memory is None

    def close(self):
        """Let go of the memory; work in flight keeps it until it is done."""
        self._memory = None

    def __getattr__(self, name):
        if name.startswith("__") and name != "__sycl_usm_array_interface__":
            raise AttributeError(name)
        return getattr(self.memory, name)

    def __len__(self):
        return len(self.memory)

    def __bytes__(self):
        return bytes(self.memory)

    def __repr__(self):
        return "<closed drupe.memory.MemoryIPCDevice>" if self.is_closed else f"<IPC view: {self.memory!r}>"


class IPCMemoryHandle:
    """A name for memory, for another process of the same user on this machine. The memory must stay alive in the
    process that made it; work that is queued on it is waited for."""

    def __init__(self, usm_memory):
        usm_memory = as_usm_memory(usm_memory)
        usm_memory.queue.wait()
        self._bytes = _engine._ipc_export(usm_memory)
        self._memory = usm_memory

    @staticmethod
    def is_available(device=None):
        """Whether memory of the device can be shared between processes."""
        device = device if isinstance(device, Device) else Device(device)
        try:
            _engine._ipc_export(MemoryUSMDevice(4096, device=device))
        except _engine.UnsupportedError:
            return False
        return True

    def to_bytes(self):
        """The name, to be sent to the other process."""
        if self._memory is None:
            raise ValueError("this handle is closed")
        return self._bytes

    @staticmethod
    def open(handle_bytes, device=None, nbytes=0):
        """The first `nbytes` bytes (0: all) of the memory behind a name, as a MemoryIPCDevice."""
        device = device if isinstance(device, Device) else Device(device)
        return MemoryIPCDevice(_engine._ipc_import(bytes(handle_bytes), device.queue, nbytes))

    @staticmethod
    def close_mapping(usm_memory):
        """Let go of memory that open() gave."""
        usm_memory.close()

    def close(self):
        """Let go of the memory; the name stays good as long as somebody else keeps the memory alive."""
        self._memory = None


def IPCGetMemHandle(usm_memory):
    """A name for memory as bytes; see IPCMemoryHandle."""
    return IPCMemoryHandle(usm_memory).to_bytes()


def IPCOpenMemHandle(handle_bytes, device=None, nbytes=0):
    """The memory behind a name; see IPCMemoryHandle.open()."""
    return IPCMemoryHandle.open(handle_bytes, device, nbytes)


def IPCCloseMemHandle(usm_memory):
    """Let go of memory that IPCOpenMemHandle() gave."""
    usm_memory.close()
