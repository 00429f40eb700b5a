"""dpctl.utils: placement, the order of work, details of devices."""
import contextlib
from contextvars import ContextVar

from drupe import _engine
from drupe import utils as _utils
from drupe.compat.dpctl._sycl_device import SyclDevice
from drupe.compat.dpctl._sycl_event import SyclEvent
from drupe.compat.dpctl._sycl_queue import SyclQueue
from drupe.program import SpecializationConstantInfo, parse_spirv_specializations
from drupe.utils import ExecutionPlacementError, get_coerced_usm_type, validate_usm_type

__all__ = ["ExecutionPlacementError", "SequentialOrderManager", "SpecializationConstantInfo", "get_coerced_usm_type",
           "get_execution_queue", "intel_device_info", "onetrace_enabled", "parse_spirv_specializations",
           "validate_usm_type"]


def get_execution_queue(qs, /):
    """The one queue of all, or None when they are not equal."""
    if not isinstance(qs, (list, tuple)):
        raise TypeError(f"a list or tuple of SyclQueue objects is expected, not {type(qs).__name__}")
    for queue in qs:
        if not isinstance(queue, SyclQueue):
            raise TypeError(f"a SyclQueue is expected, not {type(queue).__name__}")
    return qs[0] if qs and all(queue == qs[0] for queue in qs) else None


def intel_device_info(dev, /):
    """Details of Intel's devices, as far as the driver reports them; empty for other devices."""
    if not isinstance(dev, SyclDevice):
        raise TypeError(f"a SyclDevice is expected, not {type(dev).__name__}")
    return _utils.intel_device_info(dev._drupe)


@contextlib.contextmanager
def onetrace_enabled():
    """A block that Intel's onetrace records, where a program runs under it. Drupe's own record is drupe.trace()."""
    yield


# --- The order of work -----------------------------------------------------------------------------------------------

def _events(given):
    """SyclEvents of one or several; those that an extension over drupe/ext.h gives are Drupe's own."""
    events = given if isinstance(given, (list, tuple)) else [given]
    for event in events:
        if not isinstance(event, (SyclEvent, _engine.Event)):
            raise TypeError(f"a SyclEvent or a list of them is expected, not {type(event).__name__}")
    return [SyclEvent(event) for event in events]


class _Order:
    """Of one queue: pairs of events that came before. Array operations keep their order by themselves."""

    def __init__(self, queue):
        self._queue = queue
        self._host, self._computed = [], []

    @staticmethod
    def _pending(events):
        return [event for event in events if not event._drupe.done]

    def add_event_pair(self, host_task_ev, comp_ev):
        """Have what follows in order come after these: events, or lists of them, of the host and of the device."""
        host, computed = _events(host_task_ev), _events(comp_ev)
        self._host = self._pending(self._host) + host
        self._computed = self._pending(self._computed) + computed
        foreign = [one for one in self._pending(computed) if one._drupe.queue != self._queue._drupe]
        if foreign:  # array operations wait for a barrier of their own queue
            self._queue.submit_barrier(foreign)

    @property
    def host_task_events(self):
        """The events of the host that are not over."""
        self._host = self._pending(self._host)
        return list(self._host)

    @property
    def submitted_events(self):
        """What work that must come after everything so far waits for; array operations are among it."""
        self._computed = self._pending(self._computed)
        self._queue._drupe.flush()  # expressions that are not submitted yet
        arrays = [] if self._queue.is_in_order or not self._queue._drupe.pending else [self._queue.submit_barrier()]
        return self._computed + arrays

    @property
    def num_host_task_events(self):
        """How many events of the host are not over."""
        return len(self.host_task_events)

    @property
    def num_submitted_events(self):
        """How many there are to wait for."""
        return len(self.submitted_events)

    def wait(self):
        """Wait for everything that was added, and for the queue's array operations."""
        SyclEvent.wait_for(self.submitted_events)
        SyclEvent.wait_for(self.host_task_events)
        self._host, self._computed = [], []


class _Orders:
    def __init__(self):
        self._map = ContextVar("dpctl_orders")

    def __getitem__(self, queue):
        if not isinstance(queue, SyclQueue):
            raise TypeError(f"a SyclQueue is expected, not {type(queue).__name__}")
        orders = self._map.get(None)
        if orders is None:
            self._map.set(orders := {})
        if queue not in orders:
            orders[queue] = _Order(queue)
        return orders[queue]

    def clear(self):
        """Forget what was added, once it is over."""
        for order in list((self._map.get(None) or {}).values()):
            order.wait()
        self._map.set({})


SequentialOrderManager = _Orders()
