"""Devices, contexts, streams and events of numba.cuda.

All that this module queues goes to the default queue of the chosen device, in order. So a stream is a name for it: its
work comes when its turn is, which any order of streams allows, but two streams do not run side by side.
"""
import contextlib
import functools
import threading
import time

from drupe import _engine

_MOST_THREADS = 1024  # of a block, where the device itself sets no bound


class _Chosen(threading.local):
    device = None


_chosen = _Chosen()


def _listed():
    """The devices that compile kernels: GPUs where there are any."""
    from drupe.compiler import launch

    usable = [one for one in _engine.devices() if launch.dialect_of(one) is not None]
    default = _engine.Device(None)
    usable.sort(key=lambda one: one != default)
    return [one for one in usable if one.is_gpu] or usable


def device():
    """The engine's device that is chosen: by select_device(), by `with drupe.device(...)`, or the default one."""
    if _chosen.device is not None:
        return _chosen.device
    return _engine.Device(None)


def queue():
    """Where work goes."""
    return device().queue


@functools.lru_cache(maxsize=64)
def nothing(queue):
    """An array of one element on a queue."""
    from drupe import array

    return array.zeros(1, dtype="int8", queue=queue)


class Device:
    """A device as numba.cuda shows it."""

    def __init__(self, number, engine):
        self.id, self._engine = number, engine
        self.name = engine.name
        self.MULTIPROCESSOR_COUNT = engine.max_compute_units
        most = engine.max_work_group_size
        self.MAX_THREADS_PER_BLOCK = most if most and most > 1 else _MOST_THREADS
        self.MAX_SHARED_MEMORY_PER_BLOCK = engine.local_mem_size or 1 << 15
        self.WARP_SIZE = 32
        self.uuid = str(engine.uuid)

    def __getattr__(self, name):
        if name in ("compute_capability", "COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR"):
            raise AttributeError("%s is no number of this device for kernels: they are compiled for any" % name)
        raise AttributeError("'Device' object has no attribute %r" % name)

    def __eq__(self, other):
        return isinstance(other, Device) and other._engine == self._engine

    def __hash__(self):
        return hash(self._engine)

    def __repr__(self):
        return "<numba.cuda device %d: %s (%s)>" % (self.id, self.name, self._engine.filter_string)

    def reset(self):
        """Wait for all work."""
        self._engine.queue.wait()

    # As a context manager, and as its own context

    def __enter__(self):
        self._before, _chosen.device = _chosen.device, self._engine
        return self

    def __exit__(self, *_):
        _chosen.device = self._before


class Context:
    """The context of a device."""

    def __init__(self, device):
        self.device = device

    def get_memory_info(self):
        """(bytes that are free, all bytes)."""
        engine = self.device._engine
        total = engine.global_mem_size
        free = engine.free_memory
        return (total if free is None else min(free, total), total)

    def synchronize(self):
        """Wait for all work."""
        self.device._engine.queue.wait()

    reset = synchronize

    @contextlib.contextmanager
    def defer_cleanup(self):
        """A block within which memory may be kept: it is kept as long as it is used anyway."""
        yield

    def push(self):
        """Make its device the current one."""
        _chosen.device = self.device._engine

    def pop(self):
        """The default device is the current one again."""
        _chosen.device = None


class Devices:
    """cuda.gpus: the devices that kernels run on; GPUs where there are any, and else all that compile kernels."""

    @property
    def lst(self):
        return [Device(number, one) for number, one in enumerate(_listed())]

    def __getitem__(self, number):
        return self.lst[number]

    def __len__(self):
        return len(self.lst)

    def __iter__(self):
        return iter(self.lst)

    def __str__(self):
        return ", ".join(map(str, self.lst))

    @property
    def current(self):
        return get_current_device()


gpus = Devices()


def get_current_device():
    """The device on which work runs now."""
    now = device()
    known = gpus.lst
    return next((one for one in known if one._engine == now), None) or Device(len(known), now)


def select_device(device_id):
    """Make a device of cuda.gpus the current one in this thread."""
    known = gpus.lst
    if not 0 <= device_id < len(known):
        raise IndexError("cuda.gpus has %d devices, and %d is none of them" % (len(known), device_id))
    _chosen.device = known[device_id]._engine
    return current_context()


def current_context(devnum=None):
    """The context of the current device, or of one of cuda.gpus."""
    return Context(get_current_device() if devnum is None else gpus[devnum])


def list_devices():
    """cuda.gpus"""
    return gpus


def close():
    """Wait for all work; the default device is the current one again."""
    queue().wait()
    _chosen.device = None


def synchronize():
    """Wait for all work of the current device."""
    queue().wait()


def is_available():
    """Whether kernels run: on some device they always do."""
    return bool(_listed())


def is_supported_version():
    return True


def detect():
    """Print the devices."""
    known = gpus.lst
    print("Found %d devices for kernels" % len(known))
    for one in known:
        print("id %d    %s    [%s]" % (one.id, one.name, one._engine.filter_string))
    return bool(known)


def cuda_error():
    """Why there are no devices: nothing, since there are."""
    return None


# --- Streams and events -------------------------------------------------------------------------------------

class Stream:
    """A stream: work in order on the queue of the device that was current when it was made."""

    def __init__(self, device=None):
        self._device = device

    @property
    def _queue(self):
        return (self._device or device()).queue

    def __repr__(self):
        return "<numba.cuda stream on %s>" % self._queue.device.filter_string

    def synchronize(self):
        """Wait for all work."""
        self._queue.wait()

    @contextlib.contextmanager
    def auto_synchronize(self):
        """A block at whose end all work is waited for."""
        yield self
        self.synchronize()

    def add_callback(self, callback, arg=None):
        """Call callback(stream, status, arg) when what was queued so far is over."""
        def over(event):
            callback(self, 0 if event.error is None else 1, arg)

        self._queue.barrier().add_done_callback(over)

    def async_done(self):
        """What can be awaited: the end of what was queued so far."""
        import asyncio

        async def over(event):
            await event
            return self

        return asyncio.ensure_future(over(self._queue.barrier()))


def stream():
    """A new stream of the current device."""
    return Stream(device())


_default = Stream()


def default_stream():
    """The stream of launches that name none."""
    return _default


legacy_default_stream = per_thread_default_stream = default_stream


def external_stream(ptr):
    raise NotImplementedError("a stream of another library cannot be used: share memory, and synchronize()")


def stream_of(given):
    """A stream that a launch or a copy is given: None and 0 are the default one."""
    if given is None or (isinstance(given, int) and given == 0):
        return _default
    if not isinstance(given, Stream):
        raise TypeError("a stream is what cuda.stream() gives, or 0, not %r" % (given,))
    return given


class Event:
    """A place in the order of work."""

    def __init__(self, timing=True):
        self._timing, self._event, self._seen, self._time = timing, None, threading.Event(), None

    def record(self, stream=0):
        """Put it behind what was queued so far."""
        self._seen = seen = threading.Event()

        def over(event):
            if seen is self._seen:
                self._time = time.perf_counter()
            seen.set()

        self._event = stream_of(stream)._queue.barrier()
        self._event.add_done_callback(over)

    def synchronize(self):
        """Wait until it is over."""
        if self._event is not None:
            self._event.wait()
            self._seen.wait()

    def wait(self, stream=0):
        """What follows comes behind it: all streams of a device are in order anyway."""
        target = stream_of(stream)._queue
        if self._event is not None and self._event.queue != target:
            target.barrier([self._event])

    def query(self):
        """Whether it is over."""
        return self._event is None or self._event.done

    def elapsed_time(self, evtend):
        """Milliseconds from here to another event: between the moments at which the host saw them over."""
        for one in (self, evtend):
            if not one._timing or one._event is None:
                raise RuntimeError("only events that were recorded, and made with timing=True, have times")
            one.synchronize()
        return (evtend._time - self._time) * 1e3


def event(timing=True):
    """A new event."""
    return Event(timing)


def event_elapsed_time(evtstart, evtend):
    """Milliseconds between two events."""
    return evtstart.elapsed_time(evtend)


@contextlib.contextmanager
def defer_cleanup():
    """A block within which memory may be kept: it is kept as long as it is used anyway."""
    yield
