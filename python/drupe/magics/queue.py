"""%queue: what stands on the queues."""
from drupe.magics import render
from drupe.magics.base import WIDTH, Magic, Option, Result, UsageError
from drupe.magics.device import choose

_ACTIONS = ("ls", "finish", "cancel")


def _numbers(magic, _start):
    import sys

    engine = sys.modules.get("drupe._engine")
    return [str(one.number) for one in engine._queues()] if engine is not None else []


class Queue(Magic):
    """The queues of the notebook: order, how much waits, and for what.

    finish waits until they are empty, and raises the first error that nobody has seen yet. cancel gives up what has not
    started; what runs goes on."""

    name = "queue"
    options = (
        Option("action", nargs="?", choices=_ACTIONS, default="ls", metavar="ACTION",
               help="ls (if none is given), finish or cancel"),
        Option("number", nargs="?", type=int, metavar="ID", complete=_numbers,
               help="the queue's number; cancel needs it"),
        Option("-d", "--device", metavar="SEL", complete="device", help="only the queues of this device"),
    )
    examples = (("%queue", "what every queue does"), ("%queue cancel 3", "gives up what has not started on queue 3"))

    def line(self, options):
        from drupe import _engine

        queues = _engine._queues()
        if options.device is not None:
            device = choose(options.device)
            queues = [one for one in queues if one.device == device]
        if options.number is not None:
            queues = [one for one in queues if one.number == options.number] or _none(options.number, queues)
        if options.action == "cancel":
            if options.number is None:
                raise UsageError("%queue cancel needs the number of a queue; %queue lists them")
            return Cancelled(queues[0], queues[0].cancel())
        if options.action == "finish":
            for one in queues:
                one.wait()
        return Queues([_state(one, _engine.trace()) for one in queues])


def _none(number, queues):
    there = ", ".join(str(one.number) for one in queues) or "none"
    raise UsageError("%%queue: there is no queue %d; the queues: %s" % (number, there))


def _state(queue, trace):
    """What a queue does, as a dict."""
    waiting = [one for one in trace if one["queue"] == queue.number and one["status"] == "pending"]
    depth = queue.pending
    first = waiting[0] if waiting and depth else None
    return {
        "number": queue.number, "device": queue.device.filter_string,
        "order": "in order" if queue.is_in_order else "out of order",
        "profiling": queue.has_enable_profiling, "priority": queue.priority, "depth": depth,
        "next": first["label"] if first else None, "cell": first["cell"] if first else None,
        "line": first["line"] if first else None,
        "waits_for": [_blocker(one) for one in queue._blockers()] if depth else [],
    }


def _blocker(event):
    queue = event.queue
    return {"queue": None if queue is None else queue.number, "status": event.status}


def _waits(state):
    """What a queue waits for, in words."""
    blockers = state["waits_for"]
    if not blockers:
        return ""
    numbers = list(dict.fromkeys("queue %d" % one["queue"] if one["queue"] else "the host" for one in blockers))
    return ", ".join(numbers)


def _work(state):
    if state["next"] is None:
        return ""
    if not state["cell"]:
        return state["next"]
    line = ", line %d" % state["line"] if state["line"] else ""
    return "%s (cell [%d]%s)" % (state["next"], state["cell"], line)


class Queues(Result):
    """Queues as a table; `queues` has a dict for each."""

    _TITLES = ("queue", "device", "order", "depth", "first", "waits for")

    def __init__(self, queues):
        self.queues = queues

    def _rows(self):
        return [(one["number"], one["device"],
                 ", ".join(filter(None, (one["order"], "profiling" if one["profiling"] else "",
                                         "" if one["priority"] == "normal" else one["priority"]))),
                 one["depth"], _work(one), _waits(one)) for one in self.queues]

    def text(self, columns=WIDTH):
        if not self.queues:
            return "no queues: nothing was submitted to a device yet"
        return render.table_text(self._TITLES, self._rows(), columns, right=(0, 3), flexible=4)

    def html(self):
        if not self.queues:
            return render.note_html(self.text())
        idle = [number for number, one in enumerate(self.queues) if not one["depth"]]
        return render.table_html(self._TITLES, self._rows(), right=(0, 3), faint=idle, flexible=4)

    def data(self):
        return self.queues


class Cancelled(Result):
    """What %queue cancel did: `given_up` submissions, and how many `left` go on."""

    def __init__(self, queue, given_up):
        self.number = queue.number
        self.given_up = given_up
        self.left = queue.pending

    def text(self, columns=WIDTH):
        left = "; %d cannot be stopped any more" % self.left if self.left else ""
        return "queue %d: %s given up%s" % (self.number, render.count(self.given_up, "submission"), left)

    def data(self):
        return {"queue": self.number, "given_up": self.given_up, "left": self.left}
