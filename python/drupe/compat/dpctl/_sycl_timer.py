"""SyclTimer."""
from drupe import timer
from drupe.compat.dpctl._sycl_queue import SyclQueue
from drupe.timer import HostDeviceDuration

__all__ = ["HostDeviceDuration", "SyclTimer"]


class SyclTimer(timer.Timer):
    """Measures blocks `with timer(queue):` on the host and on the device; `dt` sums them up."""

    def __call__(self, queue=None):
        if not isinstance(queue, SyclQueue):
            raise TypeError(f"a SyclQueue is expected, not {type(queue).__name__}")
        if not queue.has_enable_profiling:
            raise ValueError("the timer needs a queue with profiling: SyclQueue(device, property='enable_profiling')")
        self.queue = queue._drupe
        return self
