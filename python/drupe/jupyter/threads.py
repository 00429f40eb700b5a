"""Output of a thread goes to the cell that started it: the one place where threading is patched.

A new thread begins with an empty context (PEP 567), so its cell must be carried over by hand. It is set before the
thread's run() is called, not around it, so that tracebacks show nothing of it. What crash reports need is set there
too. The threads of an executor outlive the cell that started them: what they do belongs to the cell that submitted it.
"""
import _thread
import contextvars
import sys
import threading

from drupe import _jkernel

from . import late

_original_start = threading.Thread.start
_original_start_new_thread = _thread.start_new_thread


def _enter(thread, parent):
    """Have the new thread set its cell (None: it has it) in the first of the steps that come before run()."""

    def set_ident():
        thread.__dict__.pop("_set_ident", None)
        if parent is not None:
            _jkernel.cell.set(parent)
        _jkernel.guard_thread()
        thread._set_ident()

    thread._set_ident = set_ident


def _give_context(thread, parent):
    """From Python 3.14 on a thread has a context of its own from the start; one that the caller chose stays."""
    if thread._context is None:
        inherits = getattr(sys.flags, "thread_inherit_context", False)
        thread._context = contextvars.copy_context() if inherits else contextvars.Context()
        thread._context.run(_jkernel.cell.set, parent)


def _start(self):
    parent = _jkernel.cell.get(None)
    if parent is not None and not self._started.is_set():
        if "_context" in self.__dict__:
            _give_context(self, parent)
            parent = None
        _enter(self, parent)
    return _original_start(self)


def _start_new_thread(function, args, *kwargs):
    parent = _jkernel.cell.get(None)
    if parent is None or not callable(function) or not isinstance(args, tuple):
        return _original_start_new_thread(function, args, *kwargs)
    context = contextvars.Context()
    context.run(_jkernel.cell.set, parent)
    return _original_start_new_thread(context.run, (function, *args), *kwargs)


def _watch_executors():
    """Every task that is submitted notes its cell."""
    from concurrent.futures.thread import _WorkItem

    original_init, original_run = _WorkItem.__init__, _WorkItem.run

    def init(self, *args, **kwargs):
        original_init(self, *args, **kwargs)
        self._drupe_cell = _jkernel.cell.get(None)

    def run(self, *args):
        parent = self.__dict__.pop("_drupe_cell", None)
        if parent is None:
            return original_run(self, *args)
        token = _jkernel.cell.set(parent)
        try:
            return original_run(self, *args)
        finally:
            _jkernel.cell.reset(token)

    _WorkItem.__init__, _WorkItem.run = init, run


def install():
    threading.Thread.start = _start
    _thread.start_new_thread = _start_new_thread
    late.after_import("concurrent.futures.thread", _watch_executors)
