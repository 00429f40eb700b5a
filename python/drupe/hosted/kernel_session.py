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
import threading
import time

from . import kernel_devices as devices
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
_STEP = 0.01  # seconds between two looks at what a cell waits for and what ends soon
_SIBLING = 0.5  # seconds until it is told that another kernel of the lease is first
_LOST = ("unknown",)  # codes of a broker that does not know the lease
_AGAIN = ("closed", "unreachable", "timeout", "again")  # codes after which the device is asked for once more

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
        self._broker = Broker(path, reconnect=False)
        self._siblings = Siblings(lease, self._broker.path)
        self._began = dict(os.environ)
        self._env = None  # the lease's, while it is known
        self._known = False  # whether the broker was asked how things stand
        self._gate = threading.Condition()
        self._cells = set()
        self._parking = False  # the thread parks: no cell begins
        self._park_asked = False
        self._held = "held"  # "parked", "ended"
        self._why = ""  # of "ended"
        self._holds = ""  # what keeps memory on the device: of the last attempt to park
        self._tried_at = None  # after an end: when the cell ended after which memory was moved last, or nearly
        self._parked_at = None
        self._unused = False  # the devices that were granted last are of no use to this kernel
        self._own = None  # "busy" or "idle": what this kernel does
        self._told = None  # "busy", "idle" or "parked", of all kernels of the lease: what the broker heard last
        self._left_at = 0.0  # when the last cell ended
        self._facts = {}
        self._of = {}  # how many parts devices have, as far as that is known
        self._warning = None  # lines that say what holds for a while, and are replaced by what came of it
        self._notice = None
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._closing = False
        self._take_kept()
        self._siblings.mark("idle")  # before it is known how things stand: nobody parks for this kernel, too
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

    def stand(self):
        """Whether it is being parked, what is held, whether that is known. Nothing may break this: the lock would stay
        taken."""
        with self._gate:
            return self._parking, self._held, self._known

    def before_code(self, code):
        """Before the code of a cell runs: wait for parking to end, and for a device if the code may use one."""
        uses = None
        while True:
            parking, held, known = self.stand()
            if not parking and held == "held" and known:
                return
            if not parking:
                uses = may_use_devices(code, self._notebook.names()) if uses is None else uses
                if not uses:
                    return
                if known:
                    break
            time.sleep(_STEP)
        if held == "ended":
            raise LeaseEnded(self._ended_text())
        self._resume()

    def _ended_text(self):
        return words.ended(self._why or "its time is over", self._holds)

    def _resume(self):
        line = self._notebook.line()
        parked_at = self._parked_at or time.time()
        with self._siblings.alone() as begin, Broker(self._broker.path) as own:
            _wait_for_siblings(begin, line)
            try:
                answer = self._ask(own, line)
                away = time.time() - parked_at
                self._take_environment(answer)
                back, seconds = devices.unpark()
                self.keep_device()
            except BaseException:
                self.leave_device()
                raise
        self._note(answer)
        notice, self._notice = self._notice, None
        if notice is not None:
            notice.show(words.was_away(away))
        if line is not None:
            line.show(words.came_back(away, back, seconds))

    def keep_device(self):
        """The memory is on the device again."""
        self._siblings.mark("busy")
        with self._gate:
            if self._held == "ended":
                raise LeaseEnded(self._ended_text())
            self._held, self._told, self._unused = "held", None, False
        self._rouse()

    def leave_device(self):
        """The wait was broken off, or the memory did not come back, and the device may have been granted all the same:
        the thread tells the broker that it is free, for nobody else would."""
        if self._held == "ended":
            return
        why = ""
        with contextlib.suppress(Exception):  # then it is parked as before
            why, _ = devices.park()
        if why:
            self.keep_device()
            return
        with contextlib.suppress(OSError):
            self._siblings.mark("parked")
        with self._gate:
            self._held, self._told, self._unused = "parked", None, True
        self._rouse()

    def _take_environment(self, answer):
        """Apply the environment of the devices that were granted. Open drivers do not look at it any more."""
        env = {str(name): str(value) for name, value in answer.get("env", {}).items()}
        before, self._env = self._env, env
        if before is None:  # the broker does not list it, as in a container: then what the process began with counts
            other = any(self._began.get(name, value) != value for name, value in env.items())
        else:
            other = before != env
        moved = other and any(one.get("kind") != "cpu" for one in answer.get("devices", ()))
        for name in set(before or ()) - set(env):
            os.environ.pop(name, None)
        os.environ.update(env)
        if moved and devices.opened():
            self._env = before  # until the kernel is restarted
            raise DeviceMoved("The broker gave this session %s, and what this kernel has in memory was on another "
                              "device. It stays in host memory. Run the cell again later to try for the old device, or "
                              "restart the kernel to use the new one."
                              % ", ".join(words.device(one) for one in answer["devices"]))
        self._siblings.keep(env)

    def _take_kept(self):
        """A kernel that is started again has the environment of its server, which tells the first device."""
        env = self._siblings.kept()
        if env and not devices.opened():
            self._env = env
            os.environ.update(env)

    def _ask(self, own, line):
        """The broker's answer. A broker that goes away meanwhile is asked again: the lease outlives it."""
        for pause in _pauses():
            try:
                answer = own.request("resume", lease=self.lease)
                return answer if "waiting" not in answer else self._wait_turn(own, answer, line)
            except BrokerError as error:
                if error.code in _LOST:
                    self._end(str(error))
                    raise LeaseEnded(self._ended_text()) from None
                if error.code not in _AGAIN:
                    raise
                if line is not None and error.code != "again":
                    line.show("Waiting for the broker of devices, which does not answer. Interrupt the cell to give "
                              "up.")
            time.sleep(pause)

    def _wait_turn(self, own, answer, line):
        ticket, shown = answer["ticket"], None
        position = answer["waiting"]
        try:
            while True:
                if position != shown:
                    self._tell_place(position, line)
                shown = position
                event = own.event(_TURN)
                if event is None:
                    position = _position(own.list(), ticket, position)
                elif event.get("event") == "granted" and event.get("ticket") == ticket:
                    return event
                elif event.get("event") == "ended" and str(event.get("lease")) == self.lease:
                    self._end(event.get("why", ""))
                elif event.get("event") == "ended" and event.get("ticket") == ticket:
                    raise BrokerError("the place in the queue is gone: %s" % event.get("why", ""), "again")
                if self._held == "ended":  # the thread may have heard of it
                    raise LeaseEnded(self._ended_text())
        except BaseException as error:
            if not isinstance(error, BrokerError):
                with contextlib.suppress(BrokerError):
                    own.give_back(ticket=ticket)
            if isinstance(error, KeyboardInterrupt) and line is not None:
                line.show("The wait for a device was given up. A cell that uses one waits again.", "warning")
            raise
        finally:
            self._tell_place(0, None)

    def _tell_place(self, position, line):
        """In the queue, from 1; 0: no cell waits."""
        self._facts["position"] = position
        self._show_facts()
        if line is not None:
            line.show(words.waiting(position))

    # --- The thread --------------------------------------------------------------------------------------------

    def _run(self):
        pauses = _pauses()
        while not self._closing:
            try:
                self._join()
                pauses = _pauses()
                self._serve()
            except BrokerError as error:
                if error.code in _LOST:
                    self._end(str(error))
                self._known = True
            except Exception as error:  # nothing of this may end the thread unseen
                self._known = True
                self._notebook.log("drupe-session: %s: %s" % (type(error).__name__, error))
            if self._held == "ended":
                return self._clear_up()
            if not self._closing:
                self._pause(next(pauses))

    def _join(self):
        """Listen to the lease, over a new connection."""
        self._broker.connect()
        self._broker.subscribe(self.lease)
        self._broker.watch()
        self._told = None
        lease = self._look_at_lease(sweep=True)
        with self._gate:
            idle = not self._cells or not self._known  # cells that may use a device wait until it is known
            if lease is not None and lease.get("parked") and self._held == "held" and idle:
                self._held, self._parked_at = "parked", time.time()  # before this kernel began
                self._siblings.mark("parked")
            self._known = True

    def _serve(self):
        looked = time.monotonic()
        stale = False
        while not self._closing and self._held != "ended":
            self._tell_state()
            if self._park_asked:
                self._try_to_park()
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
        if held == "parked":
            self._tell_parked()
        if held != "held":
            return
        self._own = "busy" if running or recent or devices.work() else "idle"
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

    def _tell_parked(self):
        """Say that the device is free once all kernels of the lease have parked: also when the broker that heard it is
        gone, or the last that had not parked. Not while one of them asks for it: what it is granted would go."""
        if any(state != "parked" for state in self._siblings.others()):
            self._told = None
        if self._told == "parked":
            return
        with self._siblings.alone() as begin:
            if begin() and self._held == "parked" and all(one == "parked" for one in self._siblings.others()):
                self._broker.parked(self.lease, self._unused)
                self._told = "parked"

    def _on_event(self, event):
        name = event.get("event")
        if str(event.get("lease", self.lease)) != self.lease:
            return
        if name == "warning":
            self._warn(event.get("seconds", 0))
        elif name == "park":
            self._park_asked = True
        elif name == "ended" and "lease" in event:
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
            free = not self._cells and not devices.work()
            self._parking = free
        if not free:
            self._told = None  # it is said again, whatever was said before
            return
        why, count = devices.park()
        if not why:
            self._parked_at = time.time()
        with self._gate:
            self._held = "parked" if not why else self._held
            self._holds = why
            self._parking = False
        self._show_facts()
        if why:
            self._broker.busy(self.lease)  # the time until the next attempt begins anew
            self._told = self._own = "busy"
            return
        self._notice = self._notebook.line()
        if self._notice is not None:
            self._notice.show(words.parked(count))
        self._siblings.mark("parked")
        self._told = None
        self._tell_state()

    def _end(self, why):
        """The broker has taken the device. The thread moves what lies on it to the host."""
        with self._gate:
            if self._held == "ended":
                return
            was, self._held, self._why = self._held, "ended", why
            self._holds = words.IN_USE if was == "held" and self._cells and devices.opened() else ""
        if was == "held" and not self._holds and threading.current_thread() is self._thread:
            self._clear()
        for line in (self._warning, self._notice):
            if line is not None:
                line.show(words.OVER, "warning")
        self._warning, self._notice = None, self._notebook.line()
        self._show_end()

    def _show_end(self):
        if self._notice is not None:
            self._notice.show(self._ended_text(), "error")
        self._show_facts()

    def _clear(self):
        """Move what lies on a device that is another's to the host: after each cell, until nothing is left there."""
        with self._gate:
            if self._cells or self._tried_at == self._left_at:
                return
            tried, self._parking = self._left_at, True
        try:
            working = devices.work()
            holds = words.IN_USE if working else devices.park()[0]
        finally:
            with self._gate:
                self._parking = False
                self._gate.notify_all()
        self._holds = holds
        if not working:
            self._tried_at = tried

    def _clear_up(self):
        """The last that this thread does."""
        while not self._closing:
            before = self._holds
            self._clear()
            if self._holds != before:
                self._show_end()
            self._pause(_LOOK if self._holds == words.IN_USE else _GLANCE)

    # --- What the panel shows ----------------------------------------------------------------------------------

    def _look_at_lease(self, sweep=False):
        """The lease as the broker lists it; None where it is not among those that are listed."""
        listing = self._broker.list()
        facts = own_lease(listing, self.lease)
        if sweep and facts is not None:  # else it lists those of another user, as to a container
            self._siblings.sweep(one.get("lease") for one in listing["leases"])
        self._note(facts or {})
        return facts

    def _note(self, lease):
        if lease.get("devices"):
            self._of.update((one.get("id"), one["of"]) for one in lease["devices"] if one.get("of"))
            self._facts["devices"] = [words.device({**one, "of": self._of.get(one.get("id"))})
                                      for one in lease["devices"]]
        if lease.get("env") and self._env is None:
            self._env = {str(name): str(value) for name, value in lease["env"].items()}
        for name in ("ends", "waiting"):
            if name in lease:
                self._facts[name] = lease[name]
        self._show_facts()

    def _show_facts(self):
        facts = {"version": 1, "lease": self.lease, "state": self._held, "devices": [], "ends": None, "waiting": 0,
                 "position": 0, **self._facts, "holds": self._holds, "why": self._why}
        self._notebook.tell_panel(facts)

    def extended(self, ends):
        """The lease lasts until then: the warning has done its work."""
        self._facts["ends"] = ends
        line, self._warning = self._warning, None
        if line is not None and ends is not None:
            line.show(words.extended(ends - time.time()))
        self._show_facts()


def _wait_for_siblings(begin, line):
    """Of the kernels of a lease one asks at a time, since the broker keeps one place in the queue for a lease."""
    since, told = time.monotonic(), line is None
    while not begin():
        if not told and time.monotonic() - since > _SIBLING:
            line.show("Waiting for a device, behind another notebook of this session. Interrupt the cell to give up.")
            told = True
        time.sleep(10 * _STEP if told else _STEP)


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
    """This lease of the broker's list, with how many others wait as `waiting`; None: it is not there."""
    for one in listing.get("leases", ()):
        if str(one.get("lease")) == str(lease):
            own = sum(ask.get("user") == one.get("user") for ask in listing.get("waiting", ()))
            of = {device.get("id"): device.get("parts") for device in listing.get("devices", ())}
            devices = [{**device, "of": of.get(device.get("id"))} for device in one.get("devices", ())]
            return {**one, "devices": devices, "waiting": listing.get("queue", 0) - own}
    return None


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
