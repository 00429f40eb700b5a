"""Parking: the memory of devices waits in host memory while others have the devices.

    park()        memory to the host, if nothing stands in the way
    unpark()      and back
    parkable()    what stands in the way now
"""
from drupe import _engine
from drupe._engine import Device
from drupe._units import size
from drupe.memory import Holder

__all__ = ["Parking", "is_parked", "park", "parkable", "unpark"]


class Parking:
    """What was moved, or what stands in the way: of one device, or of several together."""

    def __init__(self, devices, moved, done):
        self.devices = devices  #: Their filter strings.
        self.nbytes = sum(one["bytes"] for one in moved)  #: Bytes of the memory that was moved, or would be.
        self.pieces = sum(one["pieces"] for one in moved)  #: In so many allocations.
        self.freed = sum(one["freed"] for one in moved)  #: Bytes that drivers have back, free blocks included.
        self.seconds = sum(one["seconds"] for one in moved)
        self.reasons = [one["why"] for one in moved if one["why"]]  #: Why it cannot be: a sentence for each device.
        #: Whose address was given away, or what other processes share: drupe.memory.Holder for each place.
        self.holders = [Holder(*holder) for one in moved for holder in one["holders"]]
        self.unfinished = sum(one["unfinished"] for one in moved)  #: Submissions that are not over.
        self._done = done

    @property
    def ok(self):
        """Whether nothing stands in the way, and what was asked for was done."""
        return not self.reasons

    def __bool__(self):
        return self.ok

    def __str__(self):
        if self.reasons:
            return " ".join(self.reasons)
        allocations = "1 allocation" if self.pieces == 1 else f"{self.pieces:,} allocations"
        took = f" in {self.seconds:.3g} s" if self.seconds else ""
        return f"{', '.join(self.devices) or 'no device'}: {size(self.nbytes)} in {allocations} {self._done}{took}"

    def __repr__(self):
        return f"<{self}>"


def _devices(device):
    if device is not None:
        return [device if isinstance(device, Device) else Device(device)]
    return [one for one in _engine._known_devices() if _engine._pool_stats(one)["reserved"] or _engine._parked(one)]


def _report(devices, moved, done):
    return Parking([one.filter_string for one in devices], moved, done)


def park(device=None, *, automatic=True):
    """Move the memory of a device (None: of every device that memory was taken of) to the host, and give it back
    to the driver. All of it, or nothing: the report's `reasons` say what stands in the way. Waits for no work.

    The memory comes back when it is next used. With automatic=False that is refused with a BusyError until
    unpark() is called.
    """
    devices, moved, done = _devices(device), [], []
    for one in devices:
        was = _engine._parked(one)
        try:
            moved.append(_engine._park(one, not automatic))
        except _engine.DeviceError:
            _back(done)
            raise
        if moved[-1]["why"]:
            _back(done)
            return _report([one], moved[-1:], "not parked")
        if not was:
            done.append(one)
    return _report(devices, moved, "parked")


def _back(devices):
    for one in devices:
        _engine._unpark(one)


def parkable(device=None):
    """What park() would do now. Moves nothing."""
    devices = _devices(device)
    return _report(devices, [_engine._parkable(one) for one in devices], "can be parked")


def unpark(device=None):
    """Have the memory of a device (None: of every device) come back. DeviceMemoryError when there is no room for it:
    then it waits in host memory as before."""
    devices = _devices(device)
    return _report(devices, [_engine._unpark(one) for one in devices], "came back")


def is_parked(device=None):
    """Whether a device (None: any) is parked."""
    return any(_engine._parked(one) for one in _devices(device))
