"""Ctrl-C: which SIGINT becomes a KeyboardInterrupt, and where.

The handler stands for the life of the kernel and decides by what is on the stack, not by a flag: a flag that is set
before a `try` and cleared in its `finally` always leaves an instant in which the exception escapes. A frame of an
`interruptible` function means that something above it catches; a frame of a `shielded` one means bookkeeping, which
must not be broken (half a `with` leaves a lock taken): it waits for the user's code. A `patient` one is something in
between: it waits once. Innermost wins.
"""
import asyncio
import signal
import sys
import threading

from drupe import _jkernel

_SHUTDOWN_GRACE = 0.2  # seconds for cancelled tasks to run their `finally`
_COROUTINE = 0x80  # inspect.CO_COROUTINE, without importing inspect for it
_handle_code = asyncio.Handle._run.__code__
_shielded_codes = set()
_patient_codes = set()
_interruptible_codes = set()


def shielded(function):
    """Mark bookkeeping: an interrupt that arrives in it waits until the cell's code runs."""
    _shielded_codes.add(function.__code__)
    return function


def interruptible(function):
    """Mark a function in which, and in all that it calls, Ctrl-C raises KeyboardInterrupt. Its callers catch it."""
    _interruptible_codes.add(function.__code__)
    return function


def patient(function):
    """Mark where foreign code runs that swallows KeyboardInterrupt: the first one waits, the second breaks it."""
    _patient_codes.add(function.__code__)
    return function


@interruptible
def call_interruptibly(function, *args):
    return function(*args)


class Interrupts:
    """The kernel's SIGINT handler and what it knows about the cell."""

    def __init__(self, loop):
        self._loop = loop
        self.awaiting = None  # cancels the cell that awaits, or None
        self.pending = False  # arrived while no code of the cell was running
        self.others = set()  # ThreadInterrupts of the shells beside the main one
        self.before_break = None  # the debugger's, called before a cell gets its KeyboardInterrupt

    def install(self):
        signal.signal(signal.SIGINT, self._on_signal)
        _jkernel.sigint_adopt()

    def reassert(self):
        """Take SIGINT back from drivers' compilers and from handlers that a cell left behind."""
        if signal.getsignal(signal.SIGINT) != self._on_signal:
            signal.signal(signal.SIGINT, self._on_signal)
        _jkernel.sigint_reassert()

    def take_pending(self):
        """Whether an interrupt waits for the code that is about to run; it is delivered by this."""
        pending, self.pending = self.pending, False
        return pending

    def _on_signal(self, number, frame):
        _jkernel.sigint_seen()
        for other in tuple(self.others):
            other.strike()
        if self._breaks(frame):
            raise KeyboardInterrupt

    def _breaks(self, frame):
        """Whether KeyboardInterrupt is to be raised in the thread whose innermost frame this is."""
        inner = None
        while frame is not None:
            code = frame.f_code
            if code in _interruptible_codes:
                if self.before_break is not None:
                    self.before_break()
                return True
            if code in _shielded_codes:
                self._wait()
                return False
            if code in _patient_codes:
                if not self._wait():
                    return False
                self.pending = False
                return True
            if code is _handle_code:
                return self._breaks_loop(inner)
            inner, frame = frame, frame.f_back
        self._cancel()
        return False

    def _wait(self):
        """Keep the interrupt for later. Returns whether one was waiting already."""
        if self.awaiting is not None:
            self._cancel()
            return False
        waiting, self.pending = self.pending, True
        return waiting

    def _breaks_loop(self, inner):
        """The loop runs a task or callback. asyncio's own callbacks must not break: they carry other tasks' wake-ups."""
        self._cancel()
        if inner is None:
            return False
        return inner.f_code.co_flags & _COROUTINE or not inner.f_globals.get("__name__", "").startswith("asyncio")

    def _cancel(self):
        if self.awaiting is not None:
            self._loop.call_soon_threadsafe(self.awaiting)


class ThreadInterrupts(Interrupts):
    """The same for a shell in another thread. Python hands signals to the main thread only, whose handler strikes here:
    the exception is raised where the thread next runs bytecode, so a call that blocks in C is broken when it returns."""

    def __init__(self, loop):
        super().__init__(loop)
        self._thread = threading.get_ident()

    def install(self):
        """The main thread's handler is the only one."""

    def reassert(self):
        """SIGINT is the main thread's."""

    def strike(self):
        """Called by the main thread, holding the interpreter: the frame does not move meanwhile."""
        frame = sys._current_frames().get(self._thread)
        if frame is not None and self._breaks(frame):
            _jkernel.interrupt_thread(self._thread)


def run_forever(loop):
    """loop.run_forever() that an interrupted task does not end."""
    while True:
        try:
            loop.run_forever()
            return
        except KeyboardInterrupt:
            continue
        except SystemExit as error:
            sys.stderr.write("a task asked to exit (%s); the kernel goes on\n" % error)
        except IndexError:  # asyncio's own: a cell that ran the loop in itself has emptied its list
            continue


def run_until_complete(loop, coroutine):
    """The same for the last coroutine of the loop."""
    task = loop.create_task(coroutine)
    task.add_done_callback(lambda _: loop.stop())
    while not task.done():  # a stop() from before may still be on its way
        run_forever(loop)


async def end_tasks(loop):
    """Cancel what still runs on a loop that is about to close."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_SHUTDOWN_GRACE)
    await loop.shutdown_asyncgens()
