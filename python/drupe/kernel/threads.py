"""Output of a thread goes to the cell that started it: the one place where threading is patched.

A new thread begins with an empty context (PEP 567), so its cell must be carried over by hand. `start` notes the
caller's cell, and the thread's `run` is wrapped once to set it.
"""
import threading

from drupe import _jkernel

_original_start = threading.Thread.start


def _start(self):
    parent = _jkernel.cell.get(None)
    if parent is None or self._started.is_set():
        return _original_start(self)
    run, own = self.run, "run" in self.__dict__

    def run_in_cell():
        if own:
            self.run = run
        else:
            self.__dict__.pop("run", None)
        _jkernel.cell.set(parent)
        run()

    self.run = run_in_cell
    return _original_start(self)


def install():
    threading.Thread.start = _start
