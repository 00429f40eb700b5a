"""A client for the tests: starts a kernel, keeps every iopub message, waits with deadlines."""
import contextlib
import os
import queue
import signal
import time

import pytest
import zmq
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.session import Session

TIMEOUT = 60.0  # seconds; a hang is what ends there, however slow the machine

# For sends, in ms: where libzmq has taken a refused link's pipe away, one without a limit waits for ever.
PATIENCE = int(TIMEOUT * 1000)


def wait_until(condition, timeout=TIMEOUT, what="the condition"):
    """Poll until `condition()` is true; returns its value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("waited %g s in vain for %s" % (timeout, what))
        time.sleep(0.01)


def link_target(path):
    """What a symbolic link names, or "" when it is gone."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def pieces(messages):
    """The messages, those of one stream and cell that follow each other joined: how often a text is sent is a matter
    of time, and `print` writes its newline on its own."""
    joined = []
    for message in messages:
        last = joined[-1] if joined else None
        if last and last["msg_type"] == message["msg_type"] == "stream" \
                and last["content"]["name"] == message["content"]["name"] \
                and last["parent_header"].get("msg_id") == message["parent_header"].get("msg_id"):
            text = last["content"]["text"] + message["content"]["text"]
            joined[-1] = {**last, "content": {**last["content"], "text": text}}
        else:
            joined.append(message)
    return joined


class Run:
    """What one execute_request brought. `types` and `of` join the pieces of a stream; `messages` and `sent` do not."""

    def __init__(self, msg_id, reply, messages):
        self.id = msg_id
        self.message = reply
        self.reply = reply["content"]
        self.messages = messages

    @property
    def status(self):
        return self.reply["status"]

    @property
    def types(self):
        return [message["msg_type"] for message in pieces(self.messages)]

    def of(self, msg_type):
        return [message["content"] for message in pieces(self.messages) if message["msg_type"] == msg_type]

    def sent(self, msg_type):
        return [message["content"] for message in self.messages if message["msg_type"] == msg_type]

    def text(self, name="stdout"):
        return "".join(content["text"] for content in self.of("stream") if content["name"] == name)

    @property
    def result(self):
        (content,) = self.of("execute_result")
        return content["data"]["text/plain"]


class Kernel:
    """A kernel and one client connected to it."""

    def __init__(self, spec_folder, environment=None, name="drupe", **options):
        """`options` are the KernelManager's: transport, transport_encryption and the like."""
        specs = KernelSpecManager(kernel_dirs=[str(spec_folder)], ensure_native_kernel=False)
        self.manager = KernelManager(kernel_name=name, kernel_spec_manager=specs, **options)
        self.manager.context.sndtimeo = PATIENCE
        self.manager.start_kernel(env={**os.environ, **(environment or {})})
        self.client = self.manager.client()
        self.client.context.sndtimeo = PATIENCE
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)
        self.log = []  # every iopub message, in order

    @property
    def pid(self):
        return self.manager.provisioner.process.pid

    def close(self):
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    # --- iopub ---

    def poll(self, timeout=0.02):
        """Move what has arrived into the log."""
        with contextlib.suppress(Exception):
            while True:
                self.log.append(self.client.get_iopub_msg(timeout=timeout))
                timeout = 0

    def of_parent(self, msg_id):
        return [message for message in self.log if message["parent_header"].get("msg_id") == msg_id]

    def wait_iopub(self, condition, timeout=TIMEOUT, what="a message"):
        """The first message in the log, past or to come, for which `condition(message)` holds."""
        deadline = time.monotonic() + timeout
        seen = 0
        while True:
            for message in self.log[seen:]:
                if condition(message):
                    return message
            seen = len(self.log)
            if time.monotonic() > deadline:
                raise AssertionError("waited %g s in vain for %s" % (timeout, what))
            self.poll()

    def wait_idle(self, msg_id, timeout=TIMEOUT):
        def idle(message):
            return (message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
                    and message["parent_header"].get("msg_id") == msg_id)

        return self.wait_iopub(idle, timeout, "idle")

    # --- requests ---

    def send(self, code, **options):
        """An execute_request, not waited for. Returns its id."""
        options.setdefault("allow_stdin", False)
        return self.client.execute(code, **options)

    def reply(self, msg_id, timeout=TIMEOUT):
        """The shell reply to `msg_id`; others that arrive meanwhile are kept."""
        kept = self.__dict__.setdefault("_replies", {})
        deadline = time.monotonic() + timeout
        while msg_id not in kept:
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError("no reply within %g s" % timeout)
            with contextlib.suppress(Exception):
                message = self.client.get_shell_msg(timeout=min(left, 0.05))
                kept[message["parent_header"]["msg_id"]] = message
            self.poll(0.001)
        return kept.pop(msg_id)

    def finish(self, msg_id, timeout=TIMEOUT):
        reply = self.reply(msg_id, timeout)
        self.wait_idle(msg_id, timeout)
        return Run(msg_id, reply, self.of_parent(msg_id))

    def finish_idle(self, msg_id, timeout=60):
        """The same for a message that has no reply."""
        self.wait_idle(msg_id, timeout)
        return Run(msg_id, {"content": {}}, self.of_parent(msg_id))

    def run(self, code, timeout=TIMEOUT, **options):
        return self.finish(self.send(code, **options), timeout)

    def ask(self, msg_type, content, timeout=TIMEOUT):
        """Any shell request; the content of its reply."""
        message = self.client.session.msg(msg_type, content)
        self.client.shell_channel.send(message)
        msg_id = message["header"]["msg_id"]
        reply = self.reply(msg_id, timeout)["content"]
        self.wait_idle(msg_id, timeout)
        return reply

    def send_comm(self, msg_type, content, metadata=None, buffers=None):
        """A comm message, not waited for. Returns its id."""
        message = self.client.session.msg(msg_type, content, metadata=metadata)
        self.client.session.send(self.client.shell_channel.socket, message, buffers=buffers)
        return message["header"]["msg_id"]

    def comm(self, msg_type, content, **more):
        """A comm message and what it brought."""
        msg_id = self.send_comm(msg_type, content, **more)
        self.wait_idle(msg_id)
        return Run(msg_id, {"content": {}}, self.of_parent(msg_id))

    def stdin(self):
        """The next message on stdin, or None when none comes soon."""
        with contextlib.suppress(queue.Empty):
            return self.client.get_stdin_msg(timeout=0.1)
        return None

    def asked(self, msg_id):
        """Wait until the cell asks for input; the content of its input_request."""
        message = wait_until(self.stdin, what="input_request")
        assert message["msg_type"] == "input_request" and message["parent_header"]["msg_id"] == msg_id
        return message["content"]

    def started(self, msg_id):
        """Wait until the cell's code is running (its execute_input is out)."""
        self.wait_iopub(lambda m: m["msg_type"] == "execute_input" and m["parent_header"].get("msg_id") == msg_id,
                        what="execute_input")

    def interrupt(self):
        """By message. When this returns, the kernel has passed it on."""
        message = self.client.session.msg("interrupt_request", {})
        self.client.control_channel.send(message)
        while self.client.get_control_msg(timeout=TIMEOUT)["parent_header"]["msg_id"] != message["header"]["msg_id"]:
            pass

    def arrived(self):
        """Wait until the kernel has read what was sent on the shell channel."""
        self.ask("kernel_info_request", {})

    def told(self, msg_id, text):
        """Wait until the cell has printed this."""
        self.wait_iopub(lambda m: m["msg_type"] == "stream" and text in m["content"]["text"]
                        and m["parent_header"].get("msg_id") == msg_id, what=text)

    def sigint(self):
        os.kill(self.pid, signal.SIGINT)


class Raw:
    """Sockets of our own, for what no well-behaved client sends."""

    def __init__(self, manager, most=0):
        """`most`: how many iopub messages the socket takes without being read; 0 for any number."""
        info = manager.get_connection_info()
        self.session = Session(key=info["key"], signature_scheme=info["signature_scheme"])
        self.context = zmq.Context()
        self.context.sndtimeo = PATIENCE
        self.sockets = {}
        for name, kind in (("shell", zmq.DEALER), ("control", zmq.DEALER), ("iopub", zmq.SUB), ("hb", zmq.REQ)):
            socket = self.context.socket(kind)
            socket.linger = 0
            if kind == zmq.SUB:
                socket.setsockopt(zmq.RCVHWM, most)
                socket.subscribe(b"")
            between = "-" if info["transport"] == "ipc" else ":"
            socket.connect("%s://%s%s%d" % (info["transport"], info["ip"], between, info[name + "_port"]))
            self.sockets[name] = socket
        self.first = self.receive("iopub")  # the welcome: from here on nothing is missed
        self.state = self.receive("iopub")  # what the kernel does just now, behind what others may have missed
        while self.state["parent_header"].get("msg_type") == "kernel_info_request":
            self.state = self.receive("iopub")

    def close(self):
        self.context.destroy(linger=0)

    def frames(self, msg_type, content=None, **header):
        """The signed frames of a request, and its header."""
        message = self.session.msg(msg_type, content or {})
        message["header"].update(header)
        return self.session.serialize(message), message["header"]

    def send(self, channel, msg_type, content=None, **header):
        frames, header = self.frames(msg_type, content, **header)
        self.sockets[channel].send_multipart(frames)
        return header["msg_id"]

    def receive(self, channel, timeout=TIMEOUT):
        """The next message of a channel as a dict, or None when none came in time."""
        socket = self.sockets[channel]
        if not socket.poll(timeout * 1000):
            return None
        _, frames = self.session.feed_identities(socket.recv_multipart())
        return self.session.deserialize(frames)

    def status_of(self, msg_id, timeout=TIMEOUT):
        """The states published for `msg_id`, up to idle."""
        states, deadline = [], time.monotonic() + timeout
        while time.monotonic() < deadline:
            message = self.receive("iopub", 0.1)
            if message and message["msg_type"] == "status" and message["parent_header"].get("msg_id") == msg_id:
                states.append(message["content"]["execution_state"])
                if states[-1] == "idle":
                    return states
        return states


def need_parts(kernel):
    """Skip where `host` has nothing to make parts of."""
    if kernel.run("import drupe; drupe.Device('host').max_compute_units > 1").result != "True":
        pytest.skip("one processor only")


class Gate:
    """A file that cells wait for: `wait` and `awaited` are code for this, without a line end."""

    def __init__(self, path):
        self.open, self.path = path.touch, str(path)
        self.wait = "import os, time\nwhile not os.path.exists(%r): time.sleep(0.01)" % str(path)
        self.awaited = ("import asyncio, os\nwhile not os.path.exists(%r): await asyncio.sleep(0.01)" % str(path))


class Stuck:
    """A cell whose last line is a C call that holds the GIL until `free()`: `code` stands before it."""

    def __init__(self, kernel, path, code=""):
        os.mkfifo(path)
        self.kernel, self.path, self.end = kernel, path, None
        line = "__import__('ctypes').PyDLL(None).open(%r, 0) > 0 or 1 / 0;\n" % os.fsencode(path)
        self.id = kernel.send(code + line)

    def free(self):
        if self.end is None:
            self.end = os.open(self.path, os.O_RDWR)
        return self.kernel.finish(self.id)


@contextlib.contextmanager
def stuck(kernel, folder, code="", kind=Stuck):
    """The cell, once it has begun; freed at the end at the latest."""
    cell = kind(kernel, folder / "pipe", code)
    try:
        kernel.started(cell.id)
        yield cell
    finally:
        if cell.end is None:
            cell.free()
        os.close(cell.end)
