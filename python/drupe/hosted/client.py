"""A connection to the device broker: what it offers as methods.

One packet of the socket is one JSON object. Answers carry the tag of their request, events carry none. Any number of
threads may use one Broker: whoever waits while nobody else reads is the reader, and hands the others what is theirs.
"""
import collections
import contextlib
import itertools
import json
import os
import select
import socket
import threading
import time

LONGEST_PACKET = 16 * 1024  # of a request: the broker disconnects who sends more
LONGEST_ANSWER = 1024 * 1024
KEPT_EVENTS = 1000  # that nobody asked for; the oldest are forgotten
TIMEOUT = 10.0
_ERRORS = {FileNotFoundError: "there is no such socket. Start drupe-broker, or set DRUPE_BROKER to its socket's path",
           ConnectionRefusedError: "nobody listens there. Start drupe-broker again",
           PermissionError: "this user may not open it. Its folder needs mode 0755 and the socket 0666"}


class BrokerError(Exception):
    """What the broker refused, or why it cannot be reached; `code` is a word that programs can compare."""

    def __init__(self, message, code="failed"):
        super().__init__(message)
        self.code = code


def default_path():
    """The socket that DRUPE_BROKER names, or the one that a broker of this user, or of the machine, listens on."""
    named = os.environ.get("DRUPE_BROKER")
    if named:
        return named
    own = os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), "drupe", "broker.sock")
    if os.geteuid() != 0 and os.environ.get("XDG_RUNTIME_DIR") and os.path.exists(own):
        return own
    return "/run/drupe/broker.sock"


class Lease:
    """What was leased: `id`, `devices`, `env` (with DRUPE_LEASE) and `ends` (in seconds since 1970, or None)."""

    def __init__(self, answer):
        self.id = answer["lease"]
        self.devices = answer.get("devices", [])
        self.env = {"DRUPE_LEASE": str(self.id), **answer.get("env", {})}
        self.ends = answer.get("ends")

    def __repr__(self):
        return f"Lease({self.id!r}, {self.title!r})"

    @property
    def title(self):
        """The devices in words, for logs and pages."""
        return ", ".join(device_title(one) for one in self.devices) or "no device"


def device_title(device):
    """`device` may have `of`, how many parts there are: who has all of them has the device."""
    text, parts = device.get("name") or device["id"], device.get("parts") or []
    if len(parts) == device.get("of") or parts == [0] and device.get("kind") != "cpu":  # most have a single part
        return text
    return f"{text}, {'part' if len(parts) == 1 else 'parts'} {', '.join(map(str, parts))}" if parts else text


class Broker:
    """A connection to drupe-broker. It is made with the first request, and made again once the broker has restarted.

    Each method waits `timeout` seconds for its answer, and raises BrokerError when there is none. Who hears events
    says reconnect=False: nothing is subscribed on a new connection, so it is made by connect() alone.
    """

    def __init__(self, path=None, timeout=TIMEOUT, *, reconnect=True):
        self.path = path or default_path()
        self.timeout = timeout
        self._reconnects = reconnect
        self._tags = itertools.count(1)
        self._state = threading.Condition()
        self._socket = None
        self._reading = False
        self._answers = {}  # by tag: None until it has come
        self._events = collections.deque(maxlen=KEPT_EVENTS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- Requests ----------------------------------------------------------------------------------------------

    def hello(self):
        """The version of the protocol, and who the broker takes this process for."""
        return self.request("hello")

    def list(self):
        """Devices, leases, the queue: leases of other users as sums, unless this one is an admin."""
        state = self.request("list")
        while state.get("left_out"):
            more = self.request("list", skip=len(state["leases"]))
            state["left_out"] = more.get("left_out", 0) if more["leases"] else 0
            state["leases"] += more["leases"]
        return state

    def profiles(self):
        """What users choose from: a dict for each profile, with its `name`."""
        return [{"name": name, **one} for name, one in self.request("profiles")["profiles"].items()]

    def metrics(self):
        """The broker's figures, as Prometheus wants them."""
        return self.request("metrics")["metrics"]

    def lease(self, profile=None, *, kind=None, devices=None, parts=None, memory=None, seconds=None, holder=None,
              user=None, label=None, key=None, wait=False, timeout=None, waiting=None):
        """Lease what a profile says, or `devices` devices of a kind, `parts` parts of one, `memory` bytes of one.

        The lease ends with the process `holder` (a pid; this process otherwise). With wait=True this call waits for
        its turn, at most `timeout` seconds, and calls waiting(position, ticket) when these become known. When the
        answer is lost, give_back(key=...) ends what came of it.
        """
        want = {"profile": profile, "kind": kind, "devices": devices, "parts": parts, "memory": memory}
        request = {"want": {name: value for name, value in want.items() if value is not None}, "seconds": seconds,
                   "holder": None if holder is None else {"pid": holder}, "user": user, "label": label, "key": key}
        if wait:
            request["wait"] = True
        return self._granted(self.request("lease", **request), timeout, waiting)

    def resume(self, lease, timeout=None, waiting=None):
        """Get devices for a parked lease again; they may be others than before."""
        return self._granted(self.request("resume", lease=lease), timeout, waiting, resumes=True)

    def adopt(self, lease, pid):
        """Another process holds the lease from now on."""
        return self.request("adopt", lease=lease, holder={"pid": pid})

    def give_back(self, lease=None, *, ticket=None, key=None):
        """Return a lease, give up a place in the queue, or end whatever came of an ask with this key."""
        return self.request("return", lease=lease, ticket=ticket, key=key)

    def extend(self, lease, seconds):
        """Keep a lease for longer, where the quota allows it and nobody waits."""
        return self.request("extend", lease=lease, seconds=seconds)

    def idle(self, lease):
        return self.request("idle", lease=lease)

    def busy(self, lease):
        return self.request("busy", lease=lease)

    def parked(self, lease, unused=False):
        """Its devices are free for others; with `unused`, those that it had before are the ones that it waits for."""
        return self.request("parked", lease=lease, unused=unused or None)

    def subscribe(self, lease):
        """Hear of a lease's events by event()."""
        return self.request("subscribe", lease=lease)

    def watch(self):
        """Hear {"event": "changed"} by event() whenever list() would answer something else."""
        return self.request("watch")

    def request(self, op, **fields):
        """Send one request and wait for its answer; fields that are None are left out."""
        tag = next(self._tags)
        packet = json.dumps({"op": op, "tag": tag, **{name: value for name, value in fields.items()
                                                      if value is not None}}).encode()
        if len(packet) > LONGEST_PACKET:
            raise BrokerError(f"a request may have {LONGEST_PACKET} bytes; this one has {len(packet)}", "too-long")
        with self._state:
            self._answers[tag] = None
        try:
            used = self._send(packet)
            answer = self._wait(lambda: self._answers[tag], self.timeout, used)
        finally:
            with self._state:
                del self._answers[tag]
        if answer is None:
            raise BrokerError(f"the broker at {self.path} did not answer within {self.timeout:g} s", "timeout")
        if not answer.get("ok"):
            raise BrokerError(answer.get("error", "the broker refused without a reason"), answer.get("code", "failed"))
        return answer

    # --- Events ------------------------------------------------------------------------------------------------

    def event(self, timeout=None):
        """The next event, or None when none came within `timeout` seconds."""
        return self._wait(lambda: self._events.popleft() if self._events else None, timeout, self._socket)

    def fileno(self):
        """The descriptor of the connection, for those who wait for more than events. It may be readable although
        event(0) has none: what came was the answer to a request."""
        with self._state:
            if self._socket is None:
                raise BrokerError(f"there is no connection to the broker at {self.path}. Leases stay; ask again",
                                  "closed")
            return self._socket.fileno()

    def _granted(self, answer, timeout, waiting, resumes=False):
        if "waiting" not in answer:
            return Lease(answer)
        ticket = answer["ticket"]
        try:
            if waiting is not None:
                waiting(answer["waiting"], ticket)
            event = self._wait(lambda: self._take(ticket), timeout, self._socket)
        except BrokerError:
            raise  # the connection is gone, and the place with it; or the caller gives it up
        except BaseException:  # Ctrl-C: nobody would know of what is granted
            self._withdraw(ticket, resumes)
            raise
        if event is None:
            try:
                self.give_back(ticket=ticket)
            except BrokerError:
                event = self._wait(lambda: self._take(ticket), 0, self._socket)  # granted just now
                if event is None:
                    raise
        if event is None:
            raise BrokerError(f"no device became free within {timeout:g} s", "timeout")
        if event["event"] == "given up":
            raise BrokerError("the place in the queue was given up", "given-up")
        if event["event"] == "ended":
            raise BrokerError(f"the wait has ended: {event.get('why', 'the broker does not say why')}", "gone")
        return Lease(event)

    def _withdraw(self, ticket, resumes):
        """Give up a place in the queue, or what was granted just now: a lease, or the devices of one."""
        try:
            self.give_back(ticket=ticket)
        except BrokerError:
            with self._state:
                event = self._take(ticket)
            if event is not None and event["event"] == "granted":
                with contextlib.suppress(BrokerError):
                    self.parked(event["lease"]) if resumes else self.give_back(event["lease"])

    def give_up(self, ticket):
        """End the wait of another thread. It raises BrokerError, or has its lease when that came first."""
        try:
            self.give_back(ticket=ticket)
        except BrokerError:
            return
        with self._state:
            self._events.append({"event": "given up", "ticket": ticket})
            self._state.notify_all()
        self.hello()  # its answer wakes a thread that waits at the socket

    def _take(self, ticket):
        for event in self._events:
            if event.get("ticket") == ticket:
                self._events.remove(event)
                return event
        return None

    # --- The connection ----------------------------------------------------------------------------------------

    def close(self):
        """Close the connection. Leases stay: they end with their holders."""
        with self._state:
            self._drop(self._socket)

    def connect(self):
        """Make a new connection; the events of the one before are forgotten."""
        with self._state:
            self._drop(self._socket)
            self._events.clear()
            self._socket = self._connect()

    def _drop(self, used):
        """Under the lock: nothing more comes from this socket. Who reads it is woken by shutdown()."""
        if used is None or self._socket is not used:
            return
        self._socket = None
        try:
            used.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other side was faster
        if not self._reading:
            used.close()
        self._state.notify_all()

    def _connect(self):
        new = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        new.settimeout(self.timeout)
        try:
            new.connect(self.path)
        except OSError as error:
            new.close()
            why = _ERRORS.get(type(error), str(error))
            raise BrokerError(f"cannot reach the broker at {self.path}: {why}", "unreachable") from error
        return new

    def _closed(self):
        return BrokerError(f"the broker at {self.path} has closed the connection. Leases stay; ask again", "closed")

    def _send(self, packet):
        """Returns the socket it went by. A connection that broke since the last request is made anew, once."""
        for first in (True, False):
            with self._state:
                if self._socket is None and not self._reconnects:
                    raise self._closed()
                if self._socket is None:
                    self._socket = self._connect()
                used = self._socket
            try:
                used.send(packet)
                return used
            except OSError as error:
                with self._state:
                    self._drop(used)
                if not self._reconnects:
                    raise self._closed() from error
                if not first or isinstance(error, TimeoutError):
                    raise BrokerError(f"the broker at {self.path} takes no requests: {error}", "unreachable") from error

    def _wait(self, get, timeout, used):
        """Wait until get() has something, reading the socket where no other thread does; None after `timeout`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        looked = False  # with timeout 0 what has come is taken
        with self._state:
            while True:
                value = get()
                if value is not None:
                    return value
                if used is None or self._socket is not used:
                    raise self._closed()
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left < 0 and looked:
                    return None
                looked = True
                if self._reading:
                    self._state.wait(left if left is None else max(0, left))
                else:
                    self._read(used, left)

    def _read(self, used, left):
        """Called with the lock, which is free while this thread waits for one packet."""
        self._reading = True
        packet = None
        try:
            self._state.release()
            poll = select.poll()
            poll.register(used, select.POLLIN)
            if poll.poll(None if left is None else max(0, left) * 1000 + 1):
                packet = used.recv(LONGEST_ANSWER)
        except OSError:
            packet = b""
        finally:
            self._state.acquire()
            self._reading = False
            self._state.notify_all()
        if packet is None:
            return
        if not packet:
            if self._socket is used:
                self._drop(used)
            else:
                used.close()
            return
        self._deliver(json.loads(packet))

    def _deliver(self, message):
        if "event" in message:
            self._events.append(message)
        elif message.get("tag") in self._answers:
            self._answers[message["tag"]] = message
