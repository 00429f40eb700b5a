"""The real drupe-broker for tests and benchmarks: its process, clients, and other people who are its clients."""
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time

ANSWER_MOST = 131072
PATIENCE = 60.0  # seconds after which something that must happen did not

# A person's process: what comes in by lines goes to the broker; its packets come out by lines.
AGENT = """
import os, select, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
rest, sources = b"", [0, s]
while True:
    for ready in select.select(sources, [], [])[0]:
        if ready is s:
            try:
                packet = s.recv(131072)
            except ConnectionError:
                packet = b""
            if packet:
                os.write(1, packet + b"\\n")
            else:
                sources.remove(s)  # it lives on when the broker does not
        else:
            got = os.read(0, 65536)
            if not got:
                os._exit(0)
            *lines, rest = (rest + got).split(b"\\n")
            for line in lines:
                s.send(line)
"""


def program():
    """The broker that DRUPE_TEST_BROKER names, that is installed beside this Python, or that was built for C tests."""
    named = os.environ.get("DRUPE_TEST_BROKER")
    built = pathlib.Path(__file__).resolve().parents[2] / "build/tests/broker/drupe-broker"
    for path in [named] if named else [pathlib.Path(sys.executable).parent / "drupe-broker", built]:
        if os.access(path, os.X_OK):
            return str(path)
    raise AssertionError("drupe-broker is not built: ./dev test hosted builds it")


class Refused(Exception):
    """The broker said no."""

    def __init__(self, answer):
        super().__init__(answer["error"])
        self.code = answer["code"]


class Conversation:
    """What clients in this process and elsewhere have in common: requests, answers, and events in between."""

    def __init__(self):
        self.events = []

    def ask(self, op, **request):
        """The answer; events that come before it are kept."""
        self.send(json.dumps({"op": op, **request}).encode())
        while "event" in (answer := self.receive()):
            self.events.append(answer)
        if not answer["ok"]:
            raise Refused(answer)
        return answer

    def event(self, name=None):
        """The next event, or the next one of this name."""
        while True:
            found = next((event for event in self.events if name in (None, event["event"])), None)
            if found:
                self.events.remove(found)
                return found
            self.events.append(self.receive())

    def quiet(self):
        """Whether no event of a lease came before the answer to a request that is made now."""
        self.ask("hello")
        return not [event for event in self.events if event["event"] != "changed"]


class Client(Conversation):
    """A connection of this process."""

    def __init__(self, path):
        super().__init__()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)

    def send(self, packet):
        self.socket.send(packet)

    def receive(self):
        packet = self.socket.recv(ANSWER_MOST)
        if not packet:
            raise ConnectionError("the broker closed the connection")
        return json.loads(packet)

    def close(self):
        self.socket.close()


class Person(Conversation):
    """A process of its own, as another user if `uid` is one."""

    def __init__(self, path, uid=None):
        super().__init__()
        other = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        # The system's Python: other users need not be able to read this one.
        self.process = subprocess.Popen([sys._base_executable, "-S", "-c", AGENT, path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, cwd="/", **other)
        self.rest = b""

    @property
    def pid(self):
        return self.process.pid

    def send(self, packet):
        os.write(self.process.stdin.fileno(), packet + b"\n")

    def receive(self):
        output = self.process.stdout.fileno()
        while b"\n" not in self.rest:
            if not select.select([output], [], [], PATIENCE)[0]:
                raise TimeoutError("the broker sent nothing")
            got = os.read(output, 65536)
            if not got:
                raise ConnectionError("the process has ended")
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    close = kill


class Broker:
    """The program, with a folder for its files. A context manager: at the end nothing of it is left.

    `options` are those of subprocess.Popen, such as the user that it runs as."""

    def __init__(self, folder, config, **options):
        self.options = options
        self.folder = pathlib.Path(folder)
        self.path = str(self.folder / "socket")
        self.config = self.folder / "config.json"
        self.config.write_text(json.dumps(config))
        self.log = self.folder / "log"
        self.clients = []
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([program(), "--config", str(self.config), "--socket", self.path,
                                             "--state", str(self.folder / "state")], stdin=subprocess.DEVNULL,
                                            stderr=log, **self.options)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                Client(self.path).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(self.log.read_text()) from None
                time.sleep(0.01)

    def client(self):
        self.clients.append(Client(self.path))
        return self.clients[-1]

    def person(self, uid=None):
        self.clients.append(Person(self.path, uid))
        return self.clients[-1]

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()
        if self.process.poll() is None:
            self.kill(signal.SIGTERM)
        status = self.process.returncode
        assert status in (0, -signal.SIGKILL), self.log.read_text()
        assert "ERROR" not in self.log.read_text(), self.log.read_text()  # of a sanitizer


def until(condition, what="what was to happen", seconds=PATIENCE):
    """Poll until the condition holds; its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.005)
    return value
