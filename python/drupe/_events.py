"""Events and Python: awaiting them, futures as events, and functions that run in a queue's order.

Three threads of Python, each started when it is first needed. `drupe-notices` hears from the engine that events are
over or have their turn; it only passes that on, to event loops and to the other two, and so never stands still.
`drupe-callbacks` and `drupe-host-tasks` call the program's functions, one after the other. They are two, because queues
wait for host tasks, and a callback may wait for a queue, or for a lock whose holder does. Where a function waits for a
device itself, another thread of the same name goes on.
"""
import contextvars
import functools
import os
import select
import sys
import threading
import time
import traceback
from _queue import Empty, SimpleQueue

from drupe import _engine

_OWN = os.path.join(os.path.dirname(__file__), "")
_GRACE = 1.0  # seconds at the end of the program for callbacks that are due
_RAISED_MOST = 32
_THREADS_MOST = 256  # of a line: functions that wait
_raised = {}  # submission: exception, the latest ones
_raised_lock, _starting = threading.RLock(), threading.RLock()  # a collection, which may run any code, comes any time


class _Line:
    """Functions that a thread calls in the order in which they come. One that waits for a device may wait for what the
    next ones do: then another thread goes on with the line, and the one that waits ends with its function."""

    def __init__(self, name):
        self.name = name
        self.thread = None
        self._served = False
        self._turn = 0  # of the thread that goes on with the line
        self._threads = 0
        self._due = SimpleQueue()
        self.put = self._due.put  # never waits

    def start(self):
        with _starting:
            if self.thread is not None:
                return
            self.thread = threading.Thread(target=self._begin, name=self.name, daemon=True)
            try:
                self.thread.start()
            except BaseException:  # no memory, the end of the program, or an interrupt when it has started already
                self.thread = None
                raise

    def _begin(self):
        with _starting:
            if self._served:
                return
            self._served = True
        self._run()

    def _run(self):
        self._turn += 1
        mine = self._turn
        _engine._serve(functools.partial(self._hand_on, mine))
        self._threads += 1
        while self._turn == mine:
            self._due.get()()
        self._threads -= 1
        _engine._serve(None)

    def _hand_on(self, mine):
        """The function that this thread runs waits for a device."""
        if self._turn != mine or self._due.empty() or self._threads >= _THREADS_MOST:
            return
        self._turn += 1  # this thread's is over, whoever comes next
        try:
            threading.Thread(target=self._run, name=self.name, daemon=True).start()
        except BaseException:  # no memory, or the end of the program: the line waits for this function
            self._turn = mine
            raise

    def take_all(self):
        while True:
            try:
                yield self._due.get_nowait()
            except Empty:
                return


class _Notices(_Line):
    """The thread that hears from the engine."""

    def _run(self):
        poller = select.poll()
        poller.register(_engine._notices_fd(), select.POLLIN)
        _engine._serve(_engine._notices_run)  # what is collected on this thread may wait, too
        while True:
            poller.poll()
            _engine._notices_run()


_notices = _Notices("drupe-notices")
_callbacks = _Line("drupe-callbacks")
_tasks = _Line("drupe-host-tasks")


def add_done_callback(event, function, *, context=None):
    """Have function(event) called in a context, a copy of the present one, when the event is over."""
    if not callable(function):
        raise TypeError(f"a callback is a function of one argument, the event, not {type(function).__name__}")
    if context is None:
        context = contextvars.copy_context()
    elif not isinstance(context, contextvars.Context):
        raise TypeError(f"context must be a contextvars.Context, not {type(context).__name__}")
    _engine._notices_fd()  # raises in a forked child, which must start no threads
    _callbacks.start()
    _notices.start()
    event._notify(functools.partial(_call_later, function, context))


def _call_later(function, context, event):
    _callbacks.put(functools.partial(_call_back, function, context, event))


def _call_back(function, context, event):
    """function(event) in a context. What it raises is shown there, where its output goes, too."""
    try:
        context.run(_engine._call_shown, function, event)
    except RuntimeError:  # somebody is in it: its variables will do
        context.copy().run(_engine._call_shown, function, event)


def end():
    """The program ends: callbacks that are due are called, if they take no longer than that."""
    if _notices.thread is not None:
        _engine._notices_run()
    if _callbacks.thread is not None:
        called = threading.Event()
        _callbacks.put(called.set)
        called.wait(_GRACE)
    for work in _tasks.take_all():
        work.give_up()


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
        _notices.start()
        event._notify(functools.partial(_tell, loop, future))
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
        self.event._finish("the future was dropped before it was done", True)  # without effect on one that has ended


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
    try:
        text = str(error)
    except BaseException:  # whoever waits for the work must hear of it all the same
        text = ""
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
    work = contextvars.copy_context(), function, tuple(args)
    _tasks.start()
    _notices.start()
    return _engine._turn(queue, wait_for, name, _Task(*work))  # in one: no interrupt leaves a turn that nobody takes


class _Task:
    """A host task in Python: told that its turn has come, and called by the thread for that."""

    def __init__(self, context, function, args):
        self._work = (context, function, args)
        self._event = None

    def __call__(self, event=None):
        if event is not None:
            self._event = event
            _tasks.put(self)
            return
        event, (context, function, args) = self._event, self._work
        self._event = self._work = None  # what an exception's frames keep is not kept by this one, too
        if event.done:  # it failed before its turn
            return
        try:
            context.run(function, *args)
        except BaseException as error:
            try:
                frames = None if getattr(error, "frameless", False) else error.__traceback__.tb_next  # not this one
                _fail(event, error.with_traceback(frames), "it raised ")
            except BaseException:  # whatever happens, the queue goes on
                event._finish("it raised " + type(error).__name__)
        else:
            event._finish()

    def give_up(self):
        self._event._finish("Python ended before its turn came", True)


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
