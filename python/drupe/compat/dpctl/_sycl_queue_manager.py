"""The cache of queues: one for each pair of a context and a device, per thread or task. Also the device of a block, as
dpctl had it before 0.12."""
from contextvars import ContextVar

from drupe import _engine
from drupe.compat import NotProvided
from drupe.compat.dpctl._sycl_context import SyclContext
from drupe.compat.dpctl._sycl_device import SyclDevice
from drupe.compat.dpctl._sycl_queue import SyclQueue

__all__ = ["device_context", "get_current_queue", "get_device_cached_queue", "is_in_device_context"]

_queues = ContextVar("dpctl_queues")


def get_device_cached_queue(key):
    """The cached queue of a SyclDevice, a filter, or a pair (SyclContext, SyclDevice): equal at each call. That of a
    device with its own context is the default queue of Drupe, which arrays use, too; it is in order."""
    if isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], SyclContext) and isinstance(key[1], SyclDevice):
        context, device = key
    elif isinstance(key, (SyclDevice, str)):
        device = SyclDevice(key)
        context = SyclContext(device)
    else:
        raise TypeError("a key is a SyclDevice, a filter, or a pair (SyclContext, SyclDevice), not "
                        f"{type(key).__name__}")
    if device.parent_device is not None and not isinstance(key, tuple):
        raise ValueError("a sub-device has no cached queue: give a pair (SyclContext, SyclDevice)")
    if context._drupe == device._drupe.context:
        return SyclQueue._of(device._drupe.queue)
    cache = _queues.get(None)
    if cache is None:
        _queues.set(cache := {})
    if (context, device) not in cache:
        cache[context, device] = SyclQueue(context, device)
    return cache[context, device]


class device_context:  # noqa: N801 (dpctl's name)
    """`with device_context(which) as queue:` makes a device the default one of the block: a SyclDevice, a filter, or
    the cached queue of a device. It is that of `with drupe.device(...)` as well, so that arrays follow it."""

    def __init__(self, which):
        if isinstance(which, SyclQueue) and which != get_device_cached_queue(which.sycl_device):
            raise NotProvided("a block has a device, not a queue of its own: give the queue to what uses it, or write "
                              "device_context(queue.sycl_device)")
        self.queue = which if isinstance(which, SyclQueue) else get_device_cached_queue(which)
        self._tokens = []

    def __enter__(self):
        self._tokens.append(_engine._chosen_device.set(self.queue.sycl_device._drupe))
        return self.queue

    def __exit__(self, *_exception):
        _engine._chosen_device.reset(self._tokens.pop())


def get_current_queue():
    """The cached queue of the device of the block, or of the best device."""
    return get_device_cached_queue(SyclDevice())


def is_in_device_context():
    """Whether a block has chosen a device."""
    return _engine._chosen_device.get(None) is not None
