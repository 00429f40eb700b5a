"""The lease of this kernel: a thread that tells the broker whether the kernel works, and does what the broker asks.

    drupe.hosted.lease()                   what this kernel holds, how long, who waits for it
    drupe.hosted.extend(3600)              keep it for an hour more

The broker asks for the device when others wait and this kernel has been idle for its time. Then what lies on the device
moves to the host between two cells, and comes back before the next cell that may use it. That cell waits for its turn;
Ctrl-C ends the wait, and the cell.

Threads: "drupe-session" alone reads the broker's events, and parks. The thread of a cell resumes, over a connection of
its own. `_gate` covers what both use; nobody holds it while waiting for the broker or a device.
"""
import contextlib
import os
import select
import sys
import threading
import time

from . import words
from .client import Broker, BrokerError
from .siblings import Siblings
from .touches import may_use_devices

_CALM = 1.0  # seconds after which a cell that has ended is no work any more
_LOOK = 0.5  # seconds between two looks at work that outlasts its cell
_GLANCE = 5.0  # the same while nothing is known to work: a thread may have begun
_FRESH = 2.0  # seconds between two looks at who waits, at most
_AWAY = (0.2, 0.5, 1.0, 2.0, 5.0)  # seconds until a broker that does not answer is asked again
_TURN = 1.0  # seconds between two looks at one's place in the queue
_FIRST = 5.0  # seconds in which a new kernel knows whether its lease is parked
_LOST = ("unknown",)  # codes of a broker that does not know the lease

_current = None  # the Session of this process


class LeaseEnded(RuntimeError):
    """The lease of this kernel is over, and its device is another's."""


class DeviceMoved(RuntimeError):
    """The broker gave this kernel another device than that on which its memory was."""


class Session:
    """The lease `lease` and the thread that looks after it. `notebook` shows things: see drupe.jupyter.leased."""

    def __init__(self, lease, notebook, path=None):
        self.lease = str(lease)
        self._notebook = notebook
        self._broker = Broker(path)
        self._siblings = Siblings(lease)
        self._env = None  # the lease's, while it is known
        self._gate = threading.Condition()
        self._cells = set()
        self._parking = False  # the thread parks, or says so: no cell begins
        self._unsaid = False  # this kernel has parked, and the broker may believe that the lease has its devices
        self._unused = False  # what the broker has granted last is of no use to this kernel
        self._looked = threading.Event()  # at the lease, for the first time
        self._park_asked = False
        self._held = "held"  # "parked", "ended"
        self._why = ""  # of "ended"
        self._holds = ""  # what made the last attempt to park fail
        self._parked_at = None
        self._own = None  # "busy" or "idle": what this kernel does
        self._told = None  # the same of all kernels of the lease: what the broker heard last
        self._left_at = 0.0  # when the last cell ended
        self._connection = 0  # the number of the one that hears of the lease
        self._facts = {}
        self._warning = None
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="drupe-session", daemon=True)

    def start(self):
        self._thread.start()
        return self

    def close(self):
        """End the thread. The lease stays the process's."""
        self._closing = True
        self._rouse()
        self._thread.join(2.0)
        self._siblings.close()
        self._broker.close()

    def _rouse(self):
        with contextlib.suppress(BlockingIOError):
            os.write(self._waker, b"!")

    # --- Cells: on their threads -------------------------------------------------------------------------------

    def enter(self, cell):
        """A cell begins, and nothing is parked until it has ended."""
        with self._gate:
            self._cells.add(cell)
        self._rouse()

    def leave(self, cell):
        with self._gate:
            self._cells.discard(cell)
            self._left_at = time.monotonic()
        self._rouse()

    def before_code(self, code):
        """Before the code of a cell runs: wait for parking to end, and for a device if the code may use one."""
        held = self._state_for_cells()
        if held == "held" and self._looked.is_set():
            return
        if not may_use_devices(code, self._notebook.names()):
            return
        self._looked.wait(_FIRST)  # the lease may have been parked before this kernel began
        held = self._state_for_cells()
        if held == "held":
            return
        if held == "ended":
            raise LeaseEnded(self._ended_text())
        self._resume()

    def _state_for_cells(self):
        with self._gate:
            while self._parking:
                self._gate.wait()
            return self._held

    def _ended_text(self):
        return ("The lease of this kernel has ended (%s), and its device is another's now. Cells that use no device "
                "still run: save what you need, then stop the server on the hub's page and start it again for another "
                "lease."
                % (self._why or "its time is over"))

    def _resume(self):
        line = self._notebook.line()
        self._siblings.mark("busy")  # so that none of them says that all have parked
        try:
            with Broker(self._broker.path) as own:
                answer = self._ask_until_granted(own, line)
            away = time.time() - (self._parked_at or time.time())
            self._take_environment(answer)
            back, seconds = _unpark()
            with self._gate:
                self._held, self._told, self._unsaid = "held", None, False
                self._unused = False
        except BaseException:
            if self._held == "parked":
                # The devices may have been granted all the same, and nobody would use them.
                self._unsaid = self._unused = True
                self._siblings.mark("parked")
            raise
        self._note(answer)
        self._rouse()
        if line is not None:
            line.show(words.came_back(away, back, seconds))

    def _take_environment(self, answer):
        """Apply the environment of the devices that were granted. Open drivers do not look at it any more."""
        env = {str(name): str(value) for name, value in answer.get("env", {}).items()}
        before, self._env = self._env, env
        other = before is not None and before != env
        moved = other and any(one.get("kind") != "cpu" for one in answer.get("devices", ()))
        for name in set(before or ()) - set(env):
            os.environ.pop(name, None)
        os.environ.update(env)
        if moved and "drupe._engine" in sys.modules:
            self._env = before  # until the kernel is restarted
            raise DeviceMoved("The broker gave this session %s, and what this kernel has in memory was on another "
                              "device. It stays in host memory. Run the cell again later to try for the old device, or "
                              "restart the kernel to use the new one."
                              % ", ".join(words.device(one) for one in answer["devices"]))

    def _ask_until_granted(self, own, line):
        """The broker's answer. A broker that goes away meanwhile is asked again: the lease outlives it. Of the kernels
        of a lease one asks at a time, since the broker keeps one place in the queue for a lease."""
        with self._siblings.alone() as begin:
            told = line is None
            while not begin():
                if not told:
                    line.show("Waiting for a device, behind another notebook of this session. Interrupt the cell to "
                              "give up.")
                told = True
                time.sleep(0.1)
            return self._ask(own, line)

    def _ask(self, own, line):
        for pause in _pauses():
            try:
                answer = own.request("resume", lease=self.lease)
                return answer if "waiting" not in answer else self._wait_turn(own, answer, line)
            except BrokerError as error:
                if error.code in _LOST:
                    self._end(str(error))
                    raise LeaseEnded(self._ended_text()) from None
                if error.code not in ("closed", "unreachable", "timeout"):
                    raise
                if line is not None:
                    line.show("Waiting for the broker of devices, which does not answer. Interrupt the cell to give "
                              "up.")
            time.sleep(pause)

    def _wait_turn(self, own, answer, line):
        ticket, shown = answer["ticket"], None
        position = answer["waiting"]
        try:
            while True:
                if line is not None and position != shown:
                    line.show(words.waiting(position))
                shown = position
                event = own.event(_TURN)
                if event is None:
                    position = _position(own.list(), ticket, position)
                elif event.get("event") == "granted" and event.get("ticket") == ticket:
                    return event
                elif event.get("event") == "ended" and "lease" in event:
                    self._end(event.get("why", ""))
                    raise LeaseEnded(self._ended_text())
        except BaseException as error:
            if not isinstance(error, BrokerError):
                with contextlib.suppress(BrokerError):
                    own.give_back(ticket=ticket)
            if isinstance(error, KeyboardInterrupt) and line is not None:
                line.show("The wait for a device was given up. A cell that uses one waits again.", "warning")
            raise

    # --- The thread --------------------------------------------------------------------------------------------

    def _run(self):
        pauses = _pauses()
        while not self._closing:
            try:
                self._join()
                self._looked.set()
                pauses = _pauses()
                self._serve()
            except BrokerError as error:
                self._looked.set()
                if error.code in _LOST:
                    self._end(str(error))
                    return
            except Exception as error:  # nothing of this may end the thread unseen
                self._notebook.log("drupe-session: %s: %s" % (type(error).__name__, error))
            if not self._closing:
                self._pause(next(pauses))

    def _join(self):
        """Listen to the lease, over a new connection."""
        self._broker.subscribe(self.lease)
        self._connection = self._broker.connections
        self._broker.watch()
        self._told = None
        lease = self._look_at_lease()
        if lease is None:
            return
        with self._gate:
            if not lease.get("parked"):
                self._unsaid = self._held == "parked"  # the broker went away before it heard of that
            elif self._held == "held" and not (self._cells and self._looked.is_set()):
                self._held, self._parked_at = "parked", time.time()  # before this kernel began

    def _serve(self):
        looked = time.monotonic()
        stale = False
        while not self._closing:
            if self._broker.connections != self._connection:
                return  # it was made anew by a request, and hears nothing of the lease
            self._tell_state()
            if self._park_asked:
                self._try_to_park()
            if self._unsaid:
                self._say_again()
            event = self._event(self._patience(stale, looked))
            while event is not None:
                stale = stale or event.get("event") == "changed"
                self._on_event(event)
                event = self._broker.event(0)
            if stale and time.monotonic() - looked >= _FRESH:
                self._look_at_lease()
                looked, stale = time.monotonic(), False

    def _event(self, patience):
        """The next event, or None when something else woke this thread."""
        event = self._broker.event(0)
        if event is not None:
            return event
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        poll.register(self._broker.fileno(), select.POLLIN)
        ready = dict(poll.poll(patience * 1000))
        if self._wake in ready:
            os.read(self._wake, 4096)
        return self._broker.event(0) if len(ready) > (self._wake in ready) else None

    def _pause(self, seconds):
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if poll.poll(seconds * 1000):
            os.read(self._wake, 4096)

    def _patience(self, stale, looked):
        with self._gate:
            running = bool(self._cells)
        wait = _GLANCE
        if self._own == "busy" and not running:
            wait = _LOOK
        if stale:
            wait = min(wait, max(0.05, _FRESH - (time.monotonic() - looked)))
        return wait

    def _tell_state(self):
        """Say busy as soon as a cell begins or a device works, and idle once both have been over for a moment."""
        with self._gate:
            held, running = self._held, bool(self._cells)
            recent = time.monotonic() - self._left_at < _CALM and self._own == "busy"
        if held != "held":
            return
        self._own = "busy" if running or recent or _devices_work() else "idle"
        self._siblings.mark(self._own)
        state = self._state_of_all()
        if state == self._told:
            return
        if state == "idle":
            self._broker.idle(self.lease)
            state = self._state_of_all()  # one may have begun meanwhile
        if state == "busy":
            self._broker.busy(self.lease)
        self._told = state

    def _state_of_all(self):
        """One that was killed while it worked does not count any more: so it is looked at again and again."""
        return "busy" if self._own == "busy" or "busy" in self._siblings.others() else "idle"

    def _on_event(self, event):
        name = event.get("event")
        if str(event.get("lease", self.lease)) != self.lease:
            return
        if name == "warning":
            self._warn(event.get("seconds", 0))
        elif name == "park":
            self._park_asked = True
        elif name == "ended":
            self._end(event.get("why", ""))

    def _warn(self, seconds):
        line = self._notebook.line()
        if line is not None:
            line.show(words.warning(seconds), "warning")
        self._warning = line
        self._facts["ends"] = time.time() + seconds
        self._show_facts()

    # --- Parking -----------------------------------------------------------------------------------------------

    def _try_to_park(self):
        """If no cell runs and no device works: else the broker is told that this kernel is not idle."""
        with self._gate:
            self._park_asked = False
            if self._held != "held":
                return
            free = not self._cells and not _devices_work()
            self._parking = free
        if not free:
            self._told = None  # it is said again, whatever was said before
            return
        try:
            try:
                why = _park()
            except Exception as error:
                why = "%s: %s" % (type(error).__name__, error)
            with self._gate:
                self._holds = why
                if not why:
                    self._held, self._parked_at, self._unsaid = "parked", time.time(), True
            self._show_facts()
            if not why:
                self._say_parked()
        finally:
            self._let_cells_begin()
        if why:
            self._broker.busy(self.lease)  # the time until the next attempt begins anew
            self._told = self._own = "busy"

    def _say_parked(self):
        """Unless another kernel of the lease has its devices: the last one says it. No cell begins meanwhile: it would
        ask for the devices before the broker has heard that they are given up, and lose them then."""
        self._siblings.mark("parked")
        if all(state == "parked" for state in self._siblings.others()):
            self._broker.parked(self.lease, self._unused)
            with self._gate:
                self._unsaid = False

    def _say_again(self):
        """What could not be said, or was not true of the others."""
        with self._gate:
            if self._cells or self._held != "parked":
                return
            self._parking = True
        try:
            self._say_parked()
        finally:
            self._let_cells_begin()

    def _let_cells_begin(self):
        with self._gate:
            self._parking = False
            self._gate.notify_all()

    def _end(self, why):
        """The broker has taken the device. What lies on it moves to the host, as long as the driver lets us."""
        with self._gate:
            if self._held == "ended":
                return
            was, self._held, self._why = self._held, "ended", why
            clear = was == "held" and not self._cells
        if clear:
            with contextlib.suppress(Exception):
                self._holds = _park()
        line = self._notebook.line()
        if line is not None:
            line.show(self._ended_text(), "error")
        self._show_facts()

    # --- What the panel shows ----------------------------------------------------------------------------------

    def _look_at_lease(self):
        """The lease as the broker lists it; None where it is not among those that are listed."""
        facts = own_lease(self._broker.list(), self.lease)
        self._note(facts or {})
        return facts

    def _note(self, lease):
        if lease.get("devices"):
            self._facts["devices"] = [words.device(one) for one in lease["devices"]]
        if lease.get("env") and self._env is None:
            self._env = {str(name): str(value) for name, value in lease["env"].items()}
        for name in ("ends", "waiting"):
            if name in lease:
                self._facts[name] = lease[name]
        self._show_facts()

    def _show_facts(self):
        facts = {"version": 1, "lease": self.lease, "state": self._held, "devices": [], "ends": None, "waiting": 0,
                 **self._facts, "holds": self._holds, "why": self._why}
        self._notebook.tell_panel(facts)

    def extended(self, ends):
        """The lease lasts until then: the warning has done its work."""
        self._facts["ends"] = ends
        line, self._warning = self._warning, None
        if line is not None and ends is not None:
            line.show(words.extended(ends - time.time()))
        self._show_facts()


def _pauses():
    yield from _AWAY
    while True:
        yield _AWAY[-1]


def _position(listing, ticket, otherwise):
    for one in listing.get("waiting", ()) if isinstance(listing.get("waiting"), list) else ():
        if one.get("ticket") == ticket:
            return one.get("position", otherwise)
    return otherwise


def own_lease(listing, lease):
    """This lease of the broker's list, with how many wait as `waiting`; None: it is not there."""
    for one in listing.get("leases", ()):
        if str(one.get("lease")) == str(lease):
            queue = listing.get("queue", 0)
            return {**one, "waiting": queue if isinstance(queue, int) else len(queue)}
    return None


# --- Devices: only where they are used already ---------------------------------------------------------------------


def _devices_work():
    engine = sys.modules.get("drupe._engine")
    return engine is not None and engine._view_works()


def _park():
    """Move what lies on devices to the host. Why that cannot be, or ""."""
    if "drupe._engine" not in sys.modules:
        return ""  # nothing lies there
    from . import parking

    return " ".join(parking.park(automatic=False).reasons)  # it comes back with the lease, and not before


def _unpark():
    """Bring it back. How many bytes came, in which time."""
    if "drupe._engine" not in sys.modules:
        return 0, 0.0
    from . import parking

    report = parking.unpark()
    return report.nbytes, report.seconds


# --- For programs and people ---------------------------------------------------------------------------------------


def start(lease, notebook, path=None):
    """Look after the lease of this process from now on."""
    global _current
    _current = Session(lease, notebook, path).start()
    return _current


def _id():
    if _current is not None:
        return _current.lease
    if not os.environ.get("DRUPE_LEASE"):
        raise BrokerError("this process holds no lease of a device broker: DRUPE_LEASE is not set. Start the kernel "
                          "from a hub that leases devices, or lease one with drupe.hosted.Broker().lease()", "unknown")
    return os.environ["DRUPE_LEASE"]


def lease():
    """What this kernel holds: the devices, when it ends, who waits."""
    number = _id()
    with Broker() as broker:
        found = own_lease(broker.list(), number)
    if found is None:
        raise BrokerError("the broker does not know the lease %s any more: it has ended" % number, "unknown")
    return words.Described(found)


def extend(seconds=3600):
    """Have the lease last at least so many seconds from now. The broker refuses while others wait, and gives no more
    than a user may have. When it ends then, in seconds since 1970; None: it has no end."""
    number = _id()
    with Broker() as broker:
        ends = broker.extend(number, seconds).get("ends")
    if _current is not None:
        _current.extended(ends)
    return ends
