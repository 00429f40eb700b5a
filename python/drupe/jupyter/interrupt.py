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
import time

from drupe import _jkernel

_SHUTDOWN_GRACE = 0.2  # seconds for cancelled tasks to run their `finally`
_AGAIN = 2  # of sigint_seen()
_PATIENCE = 2.0  # seconds for what must end; starting a program may take so long on a busy machine
_PAUSE = 0.0005  # seconds
_SOON = 2.0  # seconds between two that belong together
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
_COROUTINE = 0x80  # inspect.CO_COROUTINE, without importing inspect for it
_handle_code = asyncio.Handle._run.__code__
_shielded_codes = set()
_patient_codes = set()
_interruptible_codes = set()
_whole_codes = set()


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


def whole(function):
    """Mark a function that ends soon and that an exception would leave half done, with what it opened: an interrupt
    that arrives in it comes again when it has ended."""
    _whole_codes.add(function.__code__)
    return function


def keep_popen_whole():
    """A Popen() that is broken leaves its pipes open, or a process that nobody knows: it ends soon, or fails."""
    _whole_codes.add(sys.modules["subprocess"].Popen.__init__.__code__)


@interruptible
def call_interruptibly(function, *args):
    return function(*args)


def _imports(frame):
    """Whether the import system itself, not what it imports, is at work there: an exception between its taking of the
    lock of all imports and its `try` leaves the lock taken, and no other thread imports anything ever after."""
    return frame is not None and frame.f_code.co_filename == _IMPORT_SYSTEM


def _must_end(frame):
    """Whether what runs there ends by itself and must."""
    if _imports(frame):
        return True
    while frame is not None and frame.f_code not in _whole_codes:
        frame = frame.f_back
    return frame is not None


def cut_traceback(error):
    """Drop the handler's frame from the tracebacks of the exception and of those that led to it: each ends in the code
    that was interrupted."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            if traceback.tb_next.tb_frame.f_code is _handler_code:
                traceback.tb_next = None
            traceback = traceback.tb_next
        error = error.__cause__ or error.__context__


class Interrupts:
    """The kernel's SIGINT handler and what it knows about the cell."""

    def __init__(self, loop):
        self._loop = loop
        self.awaiting = None  # cancels the cell that awaits, or None
        self.insisting = None  # tells in that cell what does not end by it
        self._last = -_SOON  # when one came
        self.pending = False  # arrived while no code of the cell was running
        self._until = 0  # when an interrupt that found at work what must end breaks it after all
        self._late = False  # such an interrupt waits for it
        self._aim = None  # whose cell it is for: the Parent, which lets go of its cell
        self.others = set()  # ThreadInterrupts of the shells beside the main one
        self.debugger = None  # called first: nothing stays stopped at a breakpoint

    def install(self):
        signal.signal(signal.SIGINT, self._on_signal)
        _jkernel.sigint_adopt()

    def ignore(self):
        """The kernel ends: finalizing Python would put back the handler that ends the process otherwise."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def reassert(self):
        """Take SIGINT back from drivers' compilers and from handlers that a cell left behind."""
        # signal.signal() puts another C handler there too, so C sees every case; asking Python first is dear.
        if _jkernel.sigint_reassert() and signal.getsignal(signal.SIGINT) != self._on_signal:
            signal.signal(signal.SIGINT, self._on_signal)
            _jkernel.sigint_reassert()

    def take_pending(self):
        """Whether an interrupt waits for the code that is about to run; it is delivered by this."""
        pending, self.pending = self.pending, False
        return pending

    def take_late(self):
        """Whether the statement that has just ended was interrupted in what must end: there was nothing left to
        break."""
        late, self._late = self._late, False
        return late

    def _on_signal(self, number, frame):
        if self.debugger is not None:
            self.debugger()
        self._late = False
        came = _jkernel.sigint_seen() != _AGAIN
        if came:
            self._aim = _jkernel.cell.get(None)
            for other in tuple(self.others):
                other.strike()
            self._count(time.monotonic())
        elif _jkernel.cell.get(None) is not self._aim:
            return  # that cell has ended meanwhile
        if _must_end(frame) and time.monotonic() < self._until and _jkernel.sigint_again():
            self._late = True
        elif self._breaks(frame):
            raise KeyboardInterrupt

    def _count(self, now):
        self._until = now + _PATIENCE
        again, self._last = now - self._last < _SOON, now
        if again and self.insisting is not None:
            self._loop.call_soon_threadsafe(self.insisting)

    def _breaks(self, frame):
        """Whether KeyboardInterrupt is to be raised in the thread whose innermost frame this is."""
        inner = None
        while frame is not None:
            code = frame.f_code
            if code in _interruptible_codes:
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
        """The loop runs a task or callback. asyncio's own callbacks must not break: they carry other tasks'
        wake-ups."""
        self._cancel()
        if inner is None:
            return False
        return inner.f_code.co_flags & _COROUTINE or not inner.f_globals.get("__name__", "").startswith("asyncio")

    def _cancel(self):
        if self.awaiting is not None:
            self._loop.call_soon_threadsafe(self.awaiting)


_handler_code = Interrupts._on_signal.__code__


class ThreadInterrupts(Interrupts):
    """The same for a shell in another thread. Python hands signals to the main thread only, whose handler strikes here:
    the exception is raised where the thread next runs bytecode, so a call that blocks in C is broken when it
    returns."""

    def __init__(self, loop):
        super().__init__(loop)
        self._thread = threading.get_ident()

    def install(self):
        """The main thread's handler is the only one."""

    def reassert(self):
        """SIGINT is the main thread's."""

    def strike(self):
        """Called by the main thread. What is seen of the other one is old when it is acted upon, as the two take turns;
        so C compares once more, and holds the interpreter from there on."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            frame = sys._current_frames().get(self._thread)
            if frame is None:
                return
            position = frame.f_lasti
            if not _must_end(frame):
                if not self._breaks(frame) or _jkernel.interrupt_thread(self._thread, frame, position):
                    return
            time.sleep(_PAUSE)


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
