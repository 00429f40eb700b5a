"""Events and Python: awaiting them, futures as events, and functions that run in a queue's order.

The engine calls Python back on the main thread while that runs Python code. Event loops that wait for their
descriptors watch the engine's as well, so that callbacks run while nothing else does. A thread of this module takes
what nobody takes: the main thread may be waiting for the very thing that a callback does.
"""
import contextvars
import functools
import os
import select
import sys
import threading
import time
import traceback
import weakref

from drupe import _engine

_GRACE = 0.05  # seconds in which the main thread or a loop may take what is due
_OWN = os.path.join(os.path.dirname(__file__), "")
_attached = weakref.WeakSet()  # loops that watch the engine's descriptor
_rest = None  # the thread
_RAISED_MOST = 32
_raised = {}  # submission: exception, the latest ones
_raised_lock = threading.Lock()


def _take_the_rest(descriptor):
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    while True:
        # Before Python 3.13 the main thread does not hear of a pending call from another thread; coming back here takes
        # the interpreter's lock, and whoever gives it up for that looks for pending calls.
        poller.poll()
        time.sleep(_GRACE)
        if poller.poll(0):
            try:
                _engine._notices_run()
            except BaseException as error:  # KeyboardInterrupt, raised by a callback
                sys.excepthook(type(error), error, error.__traceback__)


def attach():
    """Have the calling thread's loop, and in a kernel that of its shell, call what is due."""
    global _rest
    if _rest is None:
        _rest = threading.Thread(target=_take_the_rest, args=(_engine._notices_fd(),), name="drupe-notices",
                                 daemon=True)
        _rest.start()
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return
    loop = asyncio._get_running_loop()
    if loop is not None:
        _attach(loop)
    line = sys.modules.get("drupe.kernel.line")
    line = line.Line.of_caller() if line is not None else None
    if line is not None and line.loop is not loop and line.loop not in _attached:
        _soon(line.loop, _attach, line.loop)


def _attach(loop):
    if loop in _attached:
        return
    try:
        loop.add_reader(_engine._notices_fd(), _engine._notices_run)
    except NotImplementedError:  # a loop without descriptors: pending calls and waits are left
        return
    _attached.add(loop)


def _soon(loop, function, *args):
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        pass  # the loop is closed: nobody waits any more


async def wait(event):
    """Wait without blocking the loop; raises the event's error."""
    import asyncio

    if not event.done:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        event._notify(functools.partial(_tell, loop, future))
        attach()
        await future
    event.wait(0)


def _tell(loop, future, event):
    _soon(loop, _settle, future)


def _settle(future):
    if not future.done():
        future.set_result(None)


def wait_for(events, timeout=None):
    """Wait for one event or for all of a sequence, `timeout` seconds at most for all together. Raises the first
    error."""
    given = events
    events = [given] if isinstance(given, _engine.Event) or not hasattr(given, "__iter__") else list(given)
    for event in events:
        if not isinstance(event, _engine.Event):
            raise TypeError(f"wait_for takes a drupe.Event or a sequence of them, not {type(event).__name__}")
    end = None if timeout is None else time.monotonic() + timeout
    for event in events:
        event.wait(None if end is None else max(0, end - time.monotonic()))


# --- Futures ---------------------------------------------------------------------------------------------------------


class _Promise:
    """Ends an event when a future is done, also when the future goes away undone."""

    def __init__(self, event):
        self.event = event

    def __call__(self, future):
        if future.cancelled():
            self.event._finish("the future was cancelled", True)
            return
        error = future.exception()
        if error is None:
            self.event._finish()
        else:
            _fail(self.event, error)

    def __del__(self):
        self.event._finish("the future went away before it was done", True)  # without effect on one that has ended


def from_future(future):
    """An event that ends when the future does: one of concurrent.futures, or of asyncio on the thread of its loop."""
    if not callable(getattr(future, "add_done_callback", None)):
        raise TypeError(f"from_future takes a future with add_done_callback(), not {type(future).__name__}")
    event = _engine._event_open("future")
    future.add_done_callback(_Promise(event))
    return event


def _fail(event, error, words=""):
    """End the event with this exception, which raised_by() gives to those who ask why."""
    number = event._submission()
    with _raised_lock:
        if _raised:  # what their frames hold, such as arrays, may go; the lines stay
            traceback.clear_frames(_raised[next(reversed(_raised))].__traceback__)
        _raised[number] = error
        if len(_raised) > _RAISED_MOST:
            del _raised[next(iter(_raised))]
    event._finish(words + _sentence(error))


def raised_by(number):
    """The exception that made the submission of this number fail, or None; the latest few are known."""
    return _raised.get(number)


def _sentence(error):
    """"ValueError: text (file.py, line 3)", or "(cell [7], line 3)": the last place outside of this package."""
    text = str(error)
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    places = [(trace.tb_frame.f_code.co_filename, trace.tb_lineno) for trace in _traces(error)]
    places = [place for place in places if not place[0].startswith(_OWN)]
    if not places:
        return text
    file, line = places[-1]
    cell = _engine._file_cell(file)
    return f"{text} ({f'cell [{cell}]' if cell else os.path.basename(file)}, line {line})"


def _traces(error):
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


# --- Host tasks ------------------------------------------------------------------------------------------------------


def host_task(queue, function, args=(), wait_for=(), *, user=None):
    """Run a function when its turn on the queue comes; gives its Event."""
    name = getattr(function, "__name__", None) or type(function).__name__
    address, keep = _native(function)
    if address:
        if args:
            raise TypeError("a host task in C gets one pointer, user=, and no other arguments")
        where, kept = _user_pointer(user)
        return _engine._host_call(queue, address, where, (keep, kept), wait_for, name)
    if not callable(function):
        raise TypeError(f"a host task is a function, a ctypes function or a PyCapsule, not {type(function).__name__}")
    if user is not None:
        raise TypeError("user= is for host tasks in C; give Python functions their arguments with args=")
    if not hasattr(args, "__iter__"):
        raise TypeError(f"args must be a sequence of the function's arguments, not {type(args).__name__}: ({args!r},)")
    work = functools.partial(_run, contextvars.copy_context(), function, tuple(args))
    event = _engine._turn(queue, wait_for, name)
    try:
        event._on_turn(work)
        attach()
    except BaseException:  # no memory, or an interrupt: the queue must not wait for a turn that nobody takes
        event._finish("it was interrupted while it was submitted", True)
        raise
    return event


def _run(context, function, args, event):
    if event.done:  # it failed before its turn
        return
    try:
        context.run(function, *args)
    except BaseException as error:
        _fail(event, error.with_traceback(error.__traceback__.tb_next), "it raised ")  # without this frame
        if not isinstance(error, Exception):
            raise
    else:
        event._finish()


def _native(function):
    """The address of a function in C and what keeps it there, or (0, None)."""
    if type(function).__name__ == "PyCapsule":
        return _engine._capsule_address(function), function
    ctypes = sys.modules.get("ctypes")
    if ctypes is None or not isinstance(function, ctypes._CFuncPtr):
        return 0, None
    if any(type(part).__name__ == "CThunkObject" for part in (function._objects or {}).values()):
        raise TypeError("this ctypes function is a Python function in disguise, and the engine's threads never run "
                        "Python: give host_task() the Python function itself")
    return ctypes.cast(function, ctypes.c_void_p).value or 0, function


def _user_pointer(user):
    """The address that a host task in C gets, and what keeps it valid."""
    if user is None or isinstance(user, int):
        return user or 0, None
    interface = getattr(user, "__sycl_usm_array_interface__", None)
    if interface is not None:
        return interface["data"][0], user
    ctypes = sys.modules.get("ctypes")
    if ctypes is not None and isinstance(user, (ctypes._Pointer, ctypes.c_void_p)):
        return ctypes.cast(user, ctypes.c_void_p).value or 0, user
    if ctypes is not None and isinstance(user, (ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array)):
        return ctypes.addressof(user), user
    raise TypeError(f"user= is an address, a ctypes object or USM memory, not {type(user).__name__}")
