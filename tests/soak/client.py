"""A light client for the soaks: its own signing and no checks, so that what is measured is the kernel."""
import collections
import datetime
import hashlib
import hmac
import json
import os
import pathlib
import subprocess
import sys
import time
import uuid

import zmq

PATIENCE = 60.0  # seconds after which an answer is missing


class Failure(Exception):
    """The kernel did something that it must not do."""


class Process:
    """A kernel started by hand: python -m drupe on a connection file of our own."""

    def __init__(self, folder, environment=None, ports=None):
        self.path = pathlib.Path(folder) / ("connection-%s.json" % uuid.uuid4().hex[:8])
        self.key = uuid.uuid4().hex
        names = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
        content = {"transport": "tcp", "ip": "127.0.0.1", "key": self.key, "signature_scheme": "hmac-sha256"}
        content.update(ports or dict.fromkeys(names, 0))
        self.path.touch(mode=0o600)
        self.path.write_text(json.dumps(content))
        variables = {**os.environ, "IPYTHONDIR": str(pathlib.Path(folder) / "ipython"), **(environment or {})}
        variables.pop("JPY_PARENT_PID", None)
        variables["JPY_PARENT_PID"] = str(os.getpid())
        self.process = subprocess.Popen([sys.executable, "-m", "drupe", "-f", str(self.path)], env=variables,
                                        stdin=subprocess.DEVNULL, start_new_session=True, cwd=str(folder))
        self.pid = self.process.pid
        deadline = time.monotonic() + PATIENCE
        while True:
            self.info = json.loads(self.path.read_text() or "{}")
            if self.info.get("hb_port"):
                break
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failure("the kernel did not start (exit code %s)" % self.process.poll())
            time.sleep(0.005)

    def client(self, queue=0):
        return Client(self, queue)

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        """Whatever it does, it is gone after this."""
        if self.alive():
            self.process.kill()
        self.process.wait()
        self.path.unlink(missing_ok=True)

    # --- what it holds ---

    def threads(self):
        return len(os.listdir("/proc/%d/task" % self.pid))

    def descriptors(self):
        """What is open: the target of each descriptor, by its number."""
        folder = pathlib.Path("/proc/%d/fd" % self.pid)
        links = {}
        for entry in folder.iterdir():
            try:
                links[int(entry.name)] = os.readlink(entry)
            except FileNotFoundError:
                pass  # closed since
        return links

    def memory(self):
        return memory(self.pid)


def memory(pid):
    """Private bytes of a process: what it has for itself, whatever it shares."""
    total = 0
    for line in pathlib.Path("/proc/%d/smaps_rollup" % pid).read_text().splitlines():
        if line.startswith("Private_"):
            total += int(line.split()[1]) * 1024
    return total


class Answer:
    """What a request brought: its reply's content, and every iopub message in order."""

    def __init__(self):
        self.reply = None
        self.messages = []
        self.idle = False

    @property
    def text(self):
        return "".join(content["text"] for kind, content in self.messages if kind == "stream")

    def of(self, kind):
        return [content for name, content in self.messages if name == kind]


class Client:
    """Sockets to one kernel; every answer is kept until it is asked for."""

    def __init__(self, process, queue=0):
        """`queue`: how many messages wait to be sent before sending would block; 0: any number."""
        info = process.info
        self.key = process.key.encode()
        self.session = uuid.uuid4().hex
        self.count = 0
        self.context = zmq.Context()
        self.sockets = {}
        self.poller = zmq.Poller()
        identity = self.session.encode()
        for name, kind in (("shell", zmq.DEALER), ("control", zmq.DEALER), ("stdin", zmq.DEALER),
                           ("iopub", zmq.SUB)):
            socket = self.context.socket(kind)
            socket.linger = 0
            socket.sndhwm, socket.rcvhwm = queue, 0
            if kind == zmq.SUB:
                socket.subscribe(b"")
            else:
                socket.setsockopt(zmq.IDENTITY, identity)
            socket.connect("tcp://127.0.0.1:%d" % info[name + "_port"])
            self.sockets[name] = socket
            self.poller.register(socket, zmq.POLLIN)
        self.answers = collections.defaultdict(Answer)
        self.input_value = "typed"
        self.welcomed = False
        self.wait(lambda: self.welcomed, "the welcome")

    def close(self):
        self.context.destroy(linger=0)

    # --- out ---

    def frames(self, kind, content):
        self.count += 1
        msg_id = "%s_%d" % (self.session, self.count)
        header = {"msg_id": msg_id, "msg_type": kind, "session": self.session, "username": "soak", "version": "5.4",
                  "date": datetime.datetime.now(datetime.timezone.utc).isoformat()}
        parts = [json.dumps(header).encode(), b"{}", b"{}", json.dumps(content).encode()]
        digest = hmac.new(self.key, digestmod=hashlib.sha256)
        for part in parts:
            digest.update(part)
        return msg_id, [b"<IDS|MSG>", digest.hexdigest().encode(), *parts]

    def send(self, channel, kind, content):
        msg_id, frames = self.frames(kind, content)
        self.sockets[channel].send_multipart(frames)
        return msg_id

    def execute(self, code, **options):
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": True,
                   "stop_on_error": False}
        content.update(options)
        return self.send("shell", "execute_request", content)

    # --- in ---

    def take(self, timeout):
        """Take in what arrives within `timeout` seconds; at most a batch."""
        for socket, _ in self.poller.poll(timeout * 1000):
            for _ in range(200):
                try:
                    self._receive(socket, socket.recv_multipart(zmq.NOBLOCK))
                except zmq.Again:
                    break

    def _receive(self, socket, frames):
        at = frames.index(b"<IDS|MSG>") + 2
        header, parent, _, content = (json.loads(frame) for frame in frames[at:at + 4])
        kind = header["msg_type"]
        answer = self.answers[parent.get("msg_id")]
        if socket is self.sockets["stdin"]:
            if self.input_value is not None:
                self.send("stdin", "input_reply", {"value": self.input_value})
        elif socket is not self.sockets["iopub"]:
            if answer.reply is not None:
                raise Failure("two replies to one request")
            answer.reply = content
        elif kind == "iopub_welcome":
            self.welcomed = True
        elif not parent:
            pass  # the state that every new subscriber is told
        else:
            if answer.idle and kind == "status" and content["execution_state"] == "idle":
                raise Failure("two idles for one request")
            answer.messages.append((kind, content))
            answer.idle = answer.idle or content.get("execution_state") == "idle"

    def wait(self, condition, what, timeout=PATIENCE):
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise Failure("waited %g s in vain for %s" % (timeout, what))
            self.take(0.2)

    def finish(self, msg_id, reply=True, timeout=PATIENCE):
        """The whole answer to a request; it is forgotten here."""
        answer = self.answers[msg_id]
        self.wait(lambda: answer.idle and (answer.reply is not None or not reply), "the reply and the idle", timeout)
        del self.answers[msg_id]
        return answer

    def run(self, code, **options):
        return self.finish(self.execute(code, **options))

    def ask(self, channel, kind, content):
        return self.finish(self.send(channel, kind, content)).reply
