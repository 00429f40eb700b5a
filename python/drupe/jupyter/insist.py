"""Ctrl-C that does not end what a cell awaits: after the second one within two seconds the cell is told what holds on.
For code that runs, and for functions of C that keep the interpreter, jkernel/server/control/stuck_cell.c tells."""
import asyncio

from . import display
from .interrupt import shielded
from .tracebacks import cell_name

_GRACE = 0.3  # seconds for the second to do its work


@shielded
def note(server, shell, loop, cell):
    """The cell was interrupted for the second time, and what it awaits goes on. Called by the loop: no code stands in
    its way."""
    server.interrupt_taken()
    if not cell.insisted:
        cell.insisted = True
        loop.call_later(_GRACE, _tell, server, shell, cell)


@shielded
def _tell(server, shell, cell):
    task = cell.task
    if task is None or task.done():
        return
    frame, where = _holder(shell, task), ""
    if frame is not None:
        code = frame.f_code
        name = cell_name(shell, code.co_filename) or 'File "%s"' % code.co_filename
        where = " at %s, line %d, in %s" % (name, frame.f_lineno, code.co_name)
    text = ("Interrupted twice, and the cell goes on: what it awaits%s does not end when it is cancelled (it may catch "
            "CancelledError). Kernel > Restart ends it; its variables are lost then.\n" % where)
    display.publish(server, "stream", {"name": "stderr", "text": text}, cell.request.parent)


def _holder(shell, task):
    """The frame where the last of the tasks that wait for one another awaits: the innermost one of a cell, if any."""
    frames, seen = [], set()
    while isinstance(task, asyncio.Task) and task not in seen:
        seen.add(task)
        frames += _frames(task.get_coro())
        task = getattr(task, "_fut_waiter", None)
        for child in getattr(task, "_children", ()):  # of gather()
            if not child.done():
                task = child
                break
    own = [frame for frame in frames if cell_name(shell, frame.f_code.co_filename)]
    return (own or frames or [None])[-1]


def _frames(awaitable):
    """Of a suspended coroutine and what it awaits, the innermost last."""
    frames = []
    while awaitable is not None:
        frame = getattr(awaitable, "cr_frame", None) or getattr(awaitable, "gi_frame", None)
        if frame is not None:
            frames.append(frame)
        awaitable = getattr(awaitable, "cr_await", None) or getattr(awaitable, "gi_yieldfrom", None)
    return frames
