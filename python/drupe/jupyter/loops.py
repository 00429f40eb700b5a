"""Cells that await under another loop than the kernel's: %autoawait trio, curio, or a runner of the user's own.

Such a cell runs to its end, as one that awaits nothing does: the kernel's own loop stands still meanwhile.
"""
import asyncio
import inspect
import signal
import sys
import threading

from IPython.core.async_helpers import _asyncio_runner
from IPython.core.error import UsageError


def foreign_runner(shell):
    """What runs a coroutine to its end where that is not the kernel's loop, else None."""
    runner = shell.loop_runner
    return None if runner is _asyncio_runner else runner


def run(cell):
    """Run its coroutine to the end, as in a program whose main thread has no loop yet."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        if threading.current_thread() is threading.main_thread():
            # A loop that finds Python's own handler for Ctrl-C takes care that its inside is not broken.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return cell.runner(cell.coroutine)
    finally:
        try:
            cell.interrupts.reassert()
        finally:
            asyncio._set_running_loop(loop)
        if inspect.getcoroutinestate(cell.coroutine) == inspect.CORO_CREATED:
            cell.coroutine.close()  # there is no such loop


def check(name):
    """Refuse a loop whose package is missing, before a cell needs it."""
    if name not in ("trio", "curio") or name in sys.modules:
        return
    from importlib.util import find_spec

    try:
        found = find_spec(name) is not None
    except ImportError:
        found = False
    if not found:
        raise UsageError("%%autoawait %s: the package %s is not installed: %%pip install %s" % (name, name, name))
