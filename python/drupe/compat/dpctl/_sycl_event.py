"""SyclEvent."""
from drupe import _engine
from drupe.compat.dpctl._wrapping import Wrapped, refuse_capsule
from drupe.enums import backend_type

__all__ = ["SyclEvent"]


class SyclEvent(Wrapped):
    """One that is complete, or the same as another."""

    def __init__(self, arg=None):
        refuse_capsule(arg, TypeError)
        if arg is None:
            self._drupe = _engine.Event()
        elif isinstance(arg, (SyclEvent, _engine.Event)):
            self._drupe = getattr(arg, "_drupe", arg)
        else:
            raise TypeError(f"a SyclEvent is made of another one, not of {type(arg).__name__}")

    @property
    def backend(self):
        """A member of backend_type; None for one that never had a queue."""
        word = self._drupe.backend
        return None if word is None else backend_type(word)

    @property
    def execution_status(self):
        """A member of event_status_type."""
        return self._drupe.execution_status

    @property
    def profiling_info_submit(self):
        """When it was handed to the device, in ns."""
        return self._drupe.profiling_info_submit

    @property
    def profiling_info_start(self):
        """When the device began, in ns."""
        return self._drupe.profiling_info_start

    @property
    def profiling_info_end(self):
        """When the device was done, in ns."""
        return self._drupe.profiling_info_end

    def wait(self):
        """Wait until the work is done; raises its error."""
        self._drupe.wait()

    @staticmethod
    def wait_for(event):
        """Wait for one event or for all of a sequence."""
        events = [event] if isinstance(event, (SyclEvent, _engine.Event)) else event
        _engine.Event.wait_for(behind_all(events))

    def get_wait_list(self):
        """The events that it waits for."""
        return [SyclEvent._of(one) for one in self._drupe.get_wait_list()]

    def __repr__(self):
        return f"<dpctl.SyclEvent [{self.execution_status}] at {id(self):#x}>"


def behind_all(events):
    """Drupe's events behind dpctl's: of None, one or a sequence."""
    if events is None:
        return []
    if isinstance(events, (SyclEvent, _engine.Event)):
        raise TypeError("a sequence of SyclEvent objects is expected, not a single one")
    found = [getattr(one, "_drupe", one) for one in events]
    for one in found:
        if not isinstance(one, _engine.Event):
            raise TypeError(f"a SyclEvent is expected, not {type(one).__name__}")
    return found
