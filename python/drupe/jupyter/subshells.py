"""Subshells: cells beside those of the main shell, each shell in a thread of its own with its own asyncio
loop (JEP 91).

Off unless DRUPE_SUBSHELLS=1: widget callbacks and cells then run in threads other than the main one. What a running
cell owns lives with the cell (cell.py); here is made safe what IPython keeps for one thread only.
"""
import asyncio
import os
import signal
import threading
import time

from drupe import _jkernel

from . import features, interrupt
from .interrupt import shielded
from .line import Line

_SLICE = 0.02  # seconds after which a sleeping subshell looks for interrupts
_original_sleep = time.sleep
_parts = ()
_begin = None


def prepare(server, shell, interrupts, context, main):
    """Let subshells be served from now on. `main`: the line of the main shell, whose cells run in `context`."""
    global _parts, _begin
    _begin = _Beginnings(server, context)
    main.before_cell = _begin.before_cell
    _parts = (server, shell, interrupts, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    # Entered once and never left: two cells that leave at a time would take get_ipython() and the display hook from a
    # third.
    shell.builtin_trap.__enter__()
    shell.display_trap.__enter__()
    if shell.history_manager is not None:
        _order_inputs(shell.history_manager)
    _lock_lazy_magics(shell.magics_manager)
    time.sleep = sleep


@shielded
def serve(subshell):
    """The life of a subshell, in its thread."""
    server, shell, main, signals = _parts
    signal.pthread_sigmask(signal.SIG_SETMASK, signals)  # inherited by programs that are started here
    _jkernel.guard_thread()
    threading.current_thread().name = "subshell-" + subshell.id
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    interrupts = interrupt.ThreadInterrupts(loop)
    line = SubLine(subshell, server, shell, interrupts, loop, _begin.context(subshell.number))
    main.others.add(interrupts)
    line.open()
    try:
        while not line.finished:
            interrupt.run_forever(loop)
        interrupt.run_until_complete(loop, line.rest())
    finally:
        main.others.discard(interrupts)
        line.close()
        loop.close()


class _Beginnings:
    """The contexts that subshells begin with: as they were when each was made. C makes one, whatever Python does; its
    thread may come to run only behind the next cells of the main shell, so those leave a copy for it."""

    def __init__(self, server, context):
        self._server, self._context = server, context
        self._lock = threading.Lock()
        self._begun = 0  # so many of the first have begun
        self._early = set()  # those that have begun before an earlier one
        self._kept = []  # (how many had been made, the context then)

    def before_cell(self):
        made = self._server.subshells_made
        if made == self._begun:
            return
        with self._lock:
            if made > (self._kept[-1][0] if self._kept else self._begun):
                self._kept.append((made, self._context.copy()))

    def context(self, number):
        with self._lock:
            context = next((kept for made, kept in self._kept if made >= number), self._context).copy()
            self._early.add(number)
            while self._begun + 1 in self._early:
                self._begun += 1
                self._early.remove(self._begun)
            self._kept = [pair for pair in self._kept if pair[0] > self._begun]
            return context


class SubLine(Line):
    """The line of a subshell. Deletion lets its running cell finish; the end of the kernel does not."""

    @property
    def finished(self):
        return bool(self._source.ended or self._server.shutdown)

    async def rest(self):
        """What remains to be done when no request will follow."""
        task = self._executor.task
        if task is not None and not self._server.shutdown:
            await asyncio.wait([task])
        await interrupt.end_tasks(self.loop)


def sleep(seconds, /):
    """time.sleep(), which an interrupt breaks in subshells too: CPython wakes the main thread only."""
    line = Line.current()
    if not isinstance(line, SubLine) or not isinstance(seconds, (int, float)) or not _SLICE < seconds < 1e9:
        return _original_sleep(seconds)
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return None
        _original_sleep(min(left, _SLICE))


def _order_inputs(manager):
    """In[n] is the input of cell n, in whatever order cells of several shells begin."""
    original, lock = manager.store_inputs, threading.Lock()

    def store_inputs(line_num, source, source_raw=None):
        with lock:
            lists = (manager.input_hist_parsed, manager.input_hist_raw)
            before = len(lists[0])
            original(line_num, source, source_raw)
            if len(lists[0]) == before:
                return
            for inputs in lists:
                text = inputs.pop()
                inputs.extend([""] * (line_num + 1 - len(inputs)))
                inputs[line_num] = text

    manager.store_inputs = store_inputs


def _lock_lazy_magics(manager):
    """A magic that another cell is just loading is waited for."""
    original = getattr(manager, "load_lazy", None)
    if original is None:  # this IPython loads all magics at the start
        return
    lock = threading.RLock()

    def load_lazy(*args):
        with lock:
            original(*args)

    manager.load_lazy = load_lazy


def describe():
    """What %subshell prints."""
    line = Line.current()
    number, name = threading.get_ident(), threading.current_thread().name
    lines = ["subshell id: %s" % (line._source.id if isinstance(line, SubLine) else "none, this is the main shell"),
             "thread: %s (%d)" % (name, number),
             "parent: the main shell, thread %d" % threading.main_thread().ident,
             "process: %d" % os.getpid()]
    if not isinstance(line, SubLine):
        del lines[2]
    if not _parts:
        lines.append("subshells are off; DRUPE_SUBSHELLS=1 in the kernel's environment switches them on")
        lines += [line for line in features.problems() if line.startswith("DRUPE_SUBSHELLS")]
    return "\n".join(lines)
