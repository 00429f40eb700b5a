"""Unified shared memory: bytes that a device, and for two kinds of three the host, address by pointer."""
from drupe._engine import DeviceMemoryError as USMAllocationError
from drupe._engine import Device, MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared
from drupe import _engine

__all__ = ["MemoryUSMDevice", "MemoryUSMHost", "MemoryUSMShared", "USMAllocationError", "as_usm_memory", "pool"]

_BY_KIND = {"device": MemoryUSMDevice, "shared": MemoryUSMShared, "host": MemoryUSMHost}


def as_usm_memory(obj):
    """The memory behind an array or another object with __sycl_usm_array_interface__, without a copy."""
    if isinstance(obj, tuple(_BY_KIND.values())):
        return obj
    kind = getattr(obj, "usm_type", None)
    if kind not in _BY_KIND:
        raise TypeError(f"{type(obj).__name__} has no USM memory; copy host data with MemoryUSMDevice(obj)")
    return _BY_KIND[kind](obj)


class Pool:
    """What is allocated on a device. The figures are those of the moment they are read."""

    def __init__(self, device=None):
        self.device = device if isinstance(device, Device) else Device(device)

    used = property(lambda self: _engine._pool_stats(self.device)["used"], doc="Bytes handed out.")
    reserved = property(lambda self: _engine._pool_stats(self.device)["reserved"],
                        doc="Bytes taken from the driver, used ones included.")
    peak = property(lambda self: _engine._pool_stats(self.device)["peak"], doc="Most bytes ever handed out.")
    count = property(lambda self: _engine._pool_stats(self.device)["count"], doc="Allocations handed out.")

    def trim(self):
        """Give free blocks back to the driver; the number of bytes given back."""
        return _engine._pool_trim(self.device)

    def __repr__(self):
        figures = _engine._pool_stats(self.device)
        return (f"<drupe.memory.Pool of {self.device.filter_string}: {figures['used']} bytes used in "
                f"{figures['count']} allocations, {figures['reserved']} reserved>")


def pool(device=None):
    """The memory pool of a device."""
    return Pool(device)
