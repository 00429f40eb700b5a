"""A work-group of a simulated kernel, and where its work-items wait for each other.

The work-items run one after the other as plain calls. The first one that waits is kept as it is, on the stack of the
caller: from within its wait the others run, each in a greenlet, because from here on several of them are unfinished.
So a kernel without barriers needs no greenlet at all.
"""
import collections
import contextvars
import sys
from sys import gettrace, settrace

from drupe.kernel_api.items import plain
from drupe.simulator import traces
from drupe.simulator.errors import BarrierDivergenceError
from drupe.simulator.traces import no_lines

_MANY = 8  # work-items that a message names


class Unwound(BaseException):
    """Ends the work-item on the caller's stack, because another one has failed."""


class _Waiter:
    """A work-item that waits. worker: its greenlet, None for the one on the caller's stack."""
    __slots__ = ("item", "worker", "what", "place", "sub", "value", "combine", "clocks", "frame", "result")

    def __init__(self, item, worker, what, place, sub, value, combine, clocks, frame):
        self.item, self.worker, self.what, self.place, self.sub = item, worker, what, place, sub
        self.value, self.combine, self.clocks, self.frame, self.result = value, combine, clocks, frame, None


class GroupRun:
    """One work-group while it runs.

    ready: NdItems that have not begun, and _Waiters that may go on. waiting: _Waiters that may not. arrays: those of
    local.array(), by the place in the source."""

    def __init__(self, run, group, members):
        self.run, self.group, self.members, self.size = run, group, members, len(members)
        self.ready, self.waiting = collections.deque(run.order(members)), []
        self.arrays, self.idle, self.worker, self.main, self.failed = {}, [], None, None, None

    def all(self, args):
        """Run all work-items to their ends."""
        no_lines()
        run, ready, start, takes_item = self.run, self.ready, self.run.start, self.run.takes_item
        self.args, self.idle = args, list(run.workers)
        try:
            while ready:
                run.item = item = ready.popleft()
                if takes_item:
                    start(item, *args)
                else:
                    start(*args)
                trace = gettrace()  # of a debugger in Python: a method
                if hasattr(trace, "__self__"):
                    settrace(None)
                    traces.behind(trace)
                if self.main is not None:  # it had to wait, and so the others have begun
                    self._drive(None)
        except Unwound:
            pass
        if self.failed is not None:
            raise self.failed

    # --- Waiting ---

    def meet(self, what, sub, value, combine, frame, clocks=None):
        """Wait until all work-items of the group (sub: of the sub-group) are here; give what combine() makes of their
        values for this one. clocks() is called with all of them."""
        if self.failed is not None:  # and this is what the user's code does when it is unwound
            raise Unwound
        no_lines()
        waiter = _Waiter(self.run.item, self.worker, what, self._place(frame), sub, value, combine, clocks, frame)
        self.waiting.append(waiter)
        if self.worker is None:
            self._drive(waiter)
        else:
            self.main.switch()
        trace = gettrace()  # of a debugger in Python: a method
        if hasattr(trace, "__self__"):
            settrace(None)
            traces.trace_again(trace, frame)
        return waiter.result

    def _place(self, frame):
        """Where in the source a work-item waits, by all calls between the kernel and there."""
        code, place = self.run.function.__code__, [traces.place(frame, self.run.places)]
        while frame.f_code is not code and frame.f_back is not None:
            frame = frame.f_back
            place.append(traces.place(frame, self.run.places))
        return place

    def _drive(self, own):
        """Run the others until `own`, who waits on the caller's stack, may go on; with None until all have ended."""
        no_lines()
        try:
            if self.main is None:
                self.main = _greenlet().getcurrent()
            while True:
                while self.ready:
                    entry = self.ready.popleft()
                    if entry is own:
                        self.run.item = own.item
                        return
                    self._resume(entry)
                if not self.waiting:
                    return
                self.ready.extend(self.run.order(self._met()))
        except BaseException as error:
            if own is None or (isinstance(error, BarrierDivergenceError) and self.run.item is own.item):
                raise
            self.failed = error
        raise Unwound

    def _resume(self, entry):
        """Let a work-item run until it waits or ends."""
        no_lines()
        if isinstance(entry, _Waiter):
            self.run.item, self.worker = entry.item, entry.worker
            ended = self.worker.switch()
        else:
            self.run.item, self.worker = entry, self._free_worker()
            ended = self.worker.switch(entry)
        if ended:
            self.idle.append(self.worker)
        self.worker = None

    def _free_worker(self):
        if self.idle:
            return self.idle.pop()
        worker = _greenlet().greenlet(_Work(self.run, self.main), self.main)
        interrupts = sys.modules.get("drupe.jupyter.interrupt")
        if interrupts is not None:  # which looks on the stack for those who catch Ctrl-C; a greenlet begins a new one
            interrupts.interruptible(_Work.__call__)
        worker.gr_context = contextvars.copy_context()
        self.run.workers.append(worker)
        return worker

    # --- Meeting ---

    def _met(self):
        """Those who may go on, because all for whom they wait are here."""
        units = {}
        for waiter in self.waiting:
            units.setdefault(waiter.item._lane // waiter.item._sub_size if waiter.sub else None, []).append(waiter)
        met = []
        for unit, waiters in units.items():
            first = waiters[0]
            if len(waiters) == self._count(unit) and all(one.place == first.place for one in waiters):
                self._release(waiters)
                met += waiters
        if not met:
            self._diverged()
        gone = set(map(id, met))
        self.waiting = [one for one in self.waiting if id(one) not in gone]
        return met

    def _count(self, unit):
        if unit is None:
            return self.size
        most = self.run.options.sub_group_size
        return min(most, self.size - unit * most)

    def _release(self, waiters):
        waiters.sort(key=lambda one: one.item._lane)
        first = waiters[0]
        if first.clocks is not None:
            first.clocks([one.item for one in waiters])
        if first.combine is not None:
            self.run.item = first.item  # whose mistake it is, if there is one
            for one, result in zip(waiters, first.combine([one.value for one in waiters])):
                one.result = result

    def _diverged(self):
        """BarrierDivergenceError, from the place where a work-item waits."""
        waiter = next((one for one in self.waiting if one.worker is None), self.waiting[0])
        error = BarrierDivergenceError(self._divergence())
        self.run.item = waiter.item
        if waiter.worker is None:
            raise error
        self.worker = waiter.worker
        waiter.worker.throw(error)

    def _divergence(self):
        places = {}
        for one in sorted(self.waiting, key=lambda one: one.item._lane):
            places.setdefault((one.what, one.sub, tuple(one.place)), []).append(one.item)
        lines = []
        for (what, sub, (inner, *callers)), items in places.items():
            _, line, text = traces.where(*inner)
            callers = [traces.where(*one)[1] for one in callers if not traces.ours(one[0])]
            lines.append("  %s %s at %s%s in line %d%s:  %s" % (
                _named(items), "waits" if len(items) == 1 else "wait", what, " of a sub-group" if sub else "", line,
                "".join(", called in line %d" % one for one in callers), text))
        waiting = {one.item._lane for one in self.waiting}
        ended = [item for item in self.members if item._lane not in waiting]
        if ended:
            lines.append("  %s %s ended" % (_named(ended), "has" if len(ended) == 1 else "have"))
        return "the %d work-items of group %s do not come to the same barrier:\n%s\nAll of them must come to each, " \
            "or none: put it outside of the `if`, the loop or the early return that parts them." % (
                self.size, plain(self.group._index), "\n".join(lines))


class _Work:
    """What a greenlet does: one work-item after the other, because beginning a greenlet takes longer than all else."""
    __slots__ = ("run", "main")

    def __init__(self, run, main):
        self.run, self.main = run, main

    def __call__(self, item):
        __tracebackhide__ = True
        no_lines()
        run, main = self.run, self.main
        while True:
            if run.takes_item:
                run.start(item, *run.group.args)
            else:
                run.start(*run.group.args)
            trace = gettrace()  # of a debugger in Python: a method
            if hasattr(trace, "__self__"):
                settrace(None)
                traces.behind(trace)
            item = main.switch(True)


def _named(items):
    places = [plain(one._local._index) for one in items]
    shown = ", ".join(places[:_MANY]) + (", ... (%d of them)" % len(places) if len(places) > _MANY else "")
    return "work-item%s %s" % ("" if len(places) == 1 else "s", shown)


def _greenlet():
    try:
        import greenlet
    except ImportError:
        raise ImportError("a kernel with barriers is simulated with the package greenlet, which is not installed: "
                          "pip install greenlet") from None
    return greenlet
