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


def prepare(server, shell, interrupts, context):
    """Let subshells be served from now on."""
    global _parts
    _parts = (server, shell, interrupts, context, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
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
    server, shell, main, context, signals = _parts
    signal.pthread_sigmask(signal.SIG_SETMASK, signals)  # inherited by programs that are started here
    _jkernel.guard_thread()
    threading.current_thread().name = "subshell-" + subshell.id
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    interrupts = interrupt.ThreadInterrupts(loop)
    line = SubLine(subshell, server, shell, interrupts, loop, context.copy())
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
