"""A kernel under measurement, and the leanest client for it.

Raw ZeroMQ sockets, connected before the kernel binds. A message is signed and looked at as bytes; nothing is parsed
while a clock runs, because a client that works per message would be part of every figure.
"""
import contextlib
import hmac
import itertools
import json
import os
import pathlib
import secrets
import signal
import socket as sockets
import subprocess
import sys
import time

import zmq

HERE = pathlib.Path(__file__).parent
WAIT = 20  # seconds until a kernel counts as dead

KERNELS = {
    "drupe": [sys.executable, "-m", "drupe", "-f"],
    "ipykernel": [sys.executable, "-m", "ipykernel_launcher", "-f"],
    "xeus-python": [sys.executable, "-m", "xpython_launcher", "-f"],
}


def available():
    """The kernels that this Python has."""
    from importlib.util import find_spec

    return [name for name, argv in KERNELS.items() if find_spec(argv[2])]


_ports = itertools.count(20000 + os.getpid() % 4000)


def free_ports(count):
    """Below those that the system gives to connections: of a crowd that starts at once, one's client would take the
    port that another's kernel is about to bind."""
    found = []
    while len(found) < count:
        port = 20000 + (next(_ports) - 20000) % 12000
        with sockets.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


def environment(folder):
    """Nothing of the user's configuration, and no warnings of the debugger."""
    return {**os.environ, "IPYTHONDIR": str(folder / "ipython"), "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "JUPYTER_CONFIG_DIR": str(folder / "jupyter"), "DRUPE_LOG": ""}


class Silent(Exception):
    """A kernel has not answered in time."""


class Messages:
    """Makes signed requests and recognises answers."""

    def __init__(self, key):
        self._key = key
        self._session = secrets.token_hex(16)
        self._count = 0

    def request(self, msg_type, content):
        """The frames of a request, and its id as it stands in the parent headers of the answers."""
        self._count += 1
        msg_id = "%s_%d" % (self._session, self._count)
        header = json.dumps({"msg_id": msg_id, "session": self._session, "username": "bench", "version": "5.4",
                             "date": "2026-01-01T00:00:00.000000Z", "msg_type": msg_type}).encode()
        parts = [header, b"{}", b"{}", json.dumps(content).encode()]
        signature = hmac.digest(self._key, b"".join(parts), "sha256").hex().encode()
        return [b"<IDS|MSG>", signature, *parts], msg_id.encode()


def parts(frames):
    """Header, parent header, metadata, content as bytes."""
    at = frames.index(b"<IDS|MSG>") + 2
    return frames[at:at + 4]


def is_idle(frames, msg_id):
    header, parent, _, content = parts(frames)
    return msg_id in parent and b'"idle"' in content and b'"status"' in header


def execute_content(code, **options):
    return {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
            "stop_on_error": True, **options}


class Kernel:
    """One kernel process and sockets to it, which try every `reconnect` ms until it listens."""

    def __init__(self, name, folder, context=None, settings=None, reconnect=5):
        self.name, self._reconnect = name, reconnect
        key = secrets.token_hex(16)
        self.ports = dict(zip(("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port"), free_ports(5)))
        path = folder / ("%s-%d.json" % (name, time.monotonic_ns()))
        path.touch(mode=0o600)
        path.write_text(json.dumps({**self.ports, "ip": "127.0.0.1", "transport": "tcp", "key": key,
                                    "signature_scheme": "hmac-sha256", "kernel_name": name}))
        self.messages = Messages(key.encode())
        self._own = context is None
        self.context = zmq.Context() if context is None else context
        self.shell = self._connect(zmq.DEALER, "shell_port")
        self.control = self._connect(zmq.DEALER, "control_port")
        self.iopub = self._connect(zmq.SUB, "iopub_port")
        self.started = time.perf_counter()
        self.process = subprocess.Popen([*KERNELS[name], str(path)], env={**environment(folder), **(settings or {})},
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)

    def _connect(self, kind, port):
        socket = self.context.socket(kind)
        socket.linger = 0
        socket.rcvtimeo = WAIT * 1000
        socket.rcvhwm = socket.sndhwm = 0
        socket.setsockopt(zmq.RECONNECT_IVL, self._reconnect)
        if kind == zmq.SUB:
            socket.subscribe(b"")
        socket.connect("tcp://127.0.0.1:%d" % self.ports[port])
        return socket

    def disconnect(self):
        for socket in (self.shell, self.control, self.iopub):
            socket.close()

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.disconnect()
        if self._own:
            self.context.term()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        status = self.process.poll()
        self.close()
        if kind is not None and issubclass(kind, zmq.Again):
            state = "runs" if status is None else "has ended with status %d" % status
            raise Silent("%s did not answer within %d s; its process %s" % (self.name, WAIT, state)) from error

    # --- asking ---

    def ask(self, socket, msg_type, content):
        """The seconds until the reply, its frames, and the id of the request."""
        frames, msg_id = self.messages.request(msg_type, content)
        begun = time.perf_counter()
        socket.send_multipart(frames)
        reply = self.answer(socket, msg_id)
        return time.perf_counter() - begun, reply, msg_id

    @staticmethod
    def answer(socket, msg_id):
        while True:
            reply = socket.recv_multipart()
            if msg_id in parts(reply)[1]:
                return reply

    def until_idle(self, msg_id):
        """The messages on iopub up to the idle of the request."""
        seen = []
        while True:
            seen.append(self.iopub.recv_multipart())
            if is_idle(seen[-1], msg_id):
                return seen

    def info(self, socket):
        """Seconds until kernel_info_reply; the statuses are taken off iopub afterwards."""
        seconds, _, msg_id = self.ask(socket, "kernel_info_request", {})
        self.until_idle(msg_id)
        return seconds

    def ready(self):
        """Wait until requests are answered and iopub delivers."""
        self.ask(self.shell, "kernel_info_request", {})
        self.iopub.rcvtimeo = 200
        try:
            while True:  # a subscription may take effect after the first statuses
                _, _, msg_id = self.ask(self.shell, "kernel_info_request", {})
                try:
                    self.until_idle(msg_id)
                    return
                except zmq.Again:
                    continue
        finally:
            self.iopub.rcvtimeo = WAIT * 1000

    def start_cell(self, code, **options):
        frames, msg_id = self.messages.request("execute_request", execute_content(code, **options))
        self.shell.send_multipart(frames)
        return msg_id

    def execute(self, code, **options):
        """Seconds until the reply, seconds until idle, and what came on iopub."""
        frames, msg_id = self.messages.request("execute_request", execute_content(code, **options))
        begun = time.perf_counter()
        self.shell.send_multipart(frames)
        reply = self.answer(self.shell, msg_id)
        replied = time.perf_counter() - begun
        seen = self.until_idle(msg_id)
        idle = time.perf_counter() - begun
        content = json.loads(parts(reply)[3])
        if content["status"] != "ok":
            raise SystemExit("a cell of the benchmark failed: %s" % content)
        return replied, idle, seen

    # --- looking at the process ---

    def memory(self):
        """PSS, in which what several processes map counts in proportion, and private memory, in MiB."""
        rollup = pathlib.Path("/proc/%d/smaps_rollup" % self.process.pid).read_text()
        kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in rollup.splitlines()[1:]}
        return kilobytes["Pss"] / 1024, (kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]) / 1024

    def threads(self):
        return len(os.listdir("/proc/%d/task" % self.process.pid))

    def cpu(self):
        """Seconds of processor time so far."""
        stat = pathlib.Path("/proc/%d/stat" % self.process.pid).read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def stream_text(seen):
    """The text on stdout among messages, and how many messages it came in."""
    found = [json.loads(parts(frames)[3])["text"] for frames in seen if b'"stream"' in parts(frames)[0]]
    return "".join(found), len(found)


def count(seen, msg_type):
    return sum(json.loads(parts(frames)[0])["msg_type"] == msg_type for frames in seen)
