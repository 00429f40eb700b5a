"""The place of an array: a queue, as the array API's device."""
from drupe.compat import NotProvided
from drupe.compat.dpctl._sycl_device import SyclDevice
from drupe.compat.dpctl._sycl_queue import SyclQueue
from drupe.compat.dpctl._sycl_queue_manager import get_device_cached_queue

__all__ = ["Device", "normalize_queue_device"]


class Device:
    """The queue on which an array is computed. Made by create_device() alone."""

    def __new__(cls, *args, **options):
        raise TypeError("a Device is made by Device.create_device()")

    @classmethod
    def create_device(cls, device=None):
        """Of None (the best device), a filter, a SyclDevice, a SyclQueue, or a Device."""
        if isinstance(device, cls):
            return device
        self = object.__new__(cls)
        if isinstance(device, SyclQueue):
            self.sycl_queue = device
        elif device is None or isinstance(device, (str, SyclDevice)):
            self.sycl_queue = get_device_cached_queue(SyclDevice(device))
        else:
            raise TypeError("a device is a filter, a SyclDevice, a SyclQueue or a Device, not "
                            f"{type(device).__name__}")
        return self

    @property
    def sycl_context(self):
        """The context of the queue."""
        return self.sycl_queue.sycl_context

    @property
    def sycl_device(self):
        """The device of the queue."""
        return self.sycl_queue.sycl_device

    def print_device_info(self):
        """Print what is most important of the device."""
        self.sycl_queue.print_device_info()

    def wait(self):
        """Wait for what was submitted to the queue."""
        self.sycl_queue.wait()

    def __eq__(self, other):
        return self.sycl_queue == other.sycl_queue if isinstance(other, Device) else NotImplemented

    def __hash__(self):
        return hash(self.sycl_queue)

    def __repr__(self):
        device = self.sycl_device
        return f"Device({device.filter_string if device.parent_device is None else repr(device)})"


def normalize_queue_device(sycl_queue=None, device=None):
    """The SyclQueue of the two keywords; TypeError where they do not agree."""
    if sycl_queue is not None and not isinstance(sycl_queue, SyclQueue):
        raise TypeError(f"sycl_queue is a SyclQueue, not {type(sycl_queue).__name__}")
    if sycl_queue is None:
        return Device.create_device(device).sycl_queue
    if device is not None and Device.create_device(device).sycl_queue != sycl_queue:
        raise TypeError("sycl_queue and device name two queues: give one of them")
    return sycl_queue


def refuse_stream(stream):
    if stream is not None and not isinstance(stream, (SyclQueue, int)):
        raise NotProvided("stream= is left out: work of Drupe's arrays is ordered by itself")
