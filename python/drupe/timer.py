"""Time spent by the host and by a device on the same work."""
import timeit

__all__ = ["HostDeviceDuration", "Timer"]

_DEVICE_TIMERS = ("queue_barrier", "order_manager")


class HostDeviceDuration:
    """A pair of times, in seconds times the scale of the timer."""

    __slots__ = ("host_dt", "device_dt")

    def __init__(self, host_dt, device_dt):
        self.host_dt = host_dt
        self.device_dt = device_dt

    def __iter__(self):
        yield self.host_dt
        yield self.device_dt

    def __repr__(self):
        return f"(host_dt={self.host_dt}, device_dt={self.device_dt})"


class Timer:
    """Measures blocks `with timer(queue):`; `dt` sums them up.

    The device's time runs from the marker at the block's beginning to the one at its end, so the queue must be made
    with profiling. `host_timer` gives seconds; `device_timer` is "queue_barrier" or "order_manager", which both mean
    markers that wait for everything submitted before them."""

    def __init__(self, host_timer=timeit.default_timer, device_timer=None, time_scale=1):
        if device_timer is not None and device_timer not in _DEVICE_TIMERS:
            raise ValueError(f"device_timer is one of {', '.join(_DEVICE_TIMERS)}, not {device_timer!r}")
        self.timer = host_timer
        self.time_scale = time_scale
        self.queue = None
        self._open = []
        self._blocks = []

    def __call__(self, queue=None):
        if not getattr(queue, "has_enable_profiling", False):
            raise ValueError("the timer needs a queue with profiling: drupe.Queue(device, profiling=True), "
                             f"not {queue!r}")
        self.queue = queue
        return self

    def __enter__(self):
        if self.queue is None:
            raise ValueError("the timer has no queue yet: write `with timer(queue):`")
        self._open.append((self._marker(), self.timer()))
        return self

    def __exit__(self, *_exception):
        begin, started = self._open.pop()
        self._blocks.append((started, self.timer(), begin, self._marker()))

    def _marker(self):
        """The event of a point that all work before comes before. Drivers keep no times of barriers on queues without
        order (NVIDIA's tells those of other events), so there the smallest piece of work stands behind one."""
        event = self.queue.barrier()
        if self.queue.is_in_order:
            return event
        from drupe.memory import MemoryUSMDevice

        return self.queue.fill(MemoryUSMDevice(4, queue=self.queue), 0)

    @property
    def dt(self):
        """The times of all blocks so far; waits until the device has done them."""
        host = device = 0
        for started, ended, begin, end in self._blocks:
            end.wait()
            host += ended - started
            device += end.profiling_info_start - begin.profiling_info_start
        return HostDeviceDuration(host * self.time_scale, device * 1e-9 * self.time_scale)
