"""What a server believes of a kernel: busy for the whole of a cell although others ask; idle ones are culled."""
import contextlib
import json
import time

import websocket
from servers import TIMEOUT

IDLE = 8  # seconds, more than a slow machine needs to start a kernel
CULLING = ("--MappingKernelManager.cull_idle_timeout=%d" % IDLE, "--MappingKernelManager.cull_interval=1",
           "--MappingKernelManager.cull_connected=True")


def wait_until(condition, what):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "waited in vain for " + what
        time.sleep(0.1)


class Client:
    """A websocket to one kernel."""

    def __init__(self, server, kernel):
        self.socket = websocket.create_connection(
            "%sapi/kernels/%s/channels?session_id=test" % (server.url.replace("http", "ws", 1), kernel["id"]),
            header={"Authorization": "token " + server.token}, timeout=TIMEOUT)
        self.count = 0

    def send(self, channel, msg_type, content):
        self.count += 1
        header = {"msg_id": "%s-%d" % (msg_type, self.count), "msg_type": msg_type, "session": "test", "username": "",
                  "date": "2026-01-01T00:00:00Z", "version": "5.4"}
        self.socket.send(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content,
                                     "channel": channel, "buffers": []}))
        return header["msg_id"]

    def wait(self, msg_id, msg_type):
        while True:
            message = json.loads(self.socket.recv())
            if message["parent_header"].get("msg_id") == msg_id and message["header"]["msg_type"] == msg_type:
                return message["content"]


def state(server, kernel):
    found = [k for k in server.rest("api/kernels") if k["id"] == kernel["id"]]
    return found[0]["execution_state"] if found else "gone"


def test_a_busy_kernel_is_not_culled_and_an_idle_one_is(make_server, tmp_path):
    """The cell lasts twice the timeout, and its usage is asked for each second, as by a resource panel."""
    server = make_server(*CULLING)
    kernel = server.rest("api/kernels", "POST", {"name": "drupe"})
    client = Client(server, kernel)
    go = tmp_path / "go"
    code = "import os, time\nwhile not os.path.exists(%r): time.sleep(0.01)" % str(go)
    cell = client.send("shell", "execute_request", {"code": code, "silent": False})
    client.wait(cell, "execute_input")
    end = time.monotonic() + 2 * IDLE
    while time.monotonic() < end:
        usage = client.send("control", "usage_request", {})
        assert client.wait(usage, "usage_reply")["kernel_memory"] > 0
        wait_until(lambda: state(server, kernel) == "busy", "busy in REST")
        time.sleep(1)
    assert state(server, kernel) == "busy"
    go.touch()
    assert client.wait(cell, "execute_reply")["status"] == "ok"
    wait_until(lambda: state(server, kernel) == "gone", "the idle kernel to be culled")


def test_an_idle_kernel_with_a_widget_is_culled(make_server):
    """Nothing that the kernel does by itself counts as activity."""
    server = make_server(*CULLING)
    kernel = server.rest("api/kernels", "POST", {"name": "drupe"})
    client = Client(server, kernel)
    code = ("import asyncio, ipywidgets\nslider = ipywidgets.IntSlider(); display(slider)\n"
            "async def forever():\n    while True: await asyncio.sleep(0.01)\n"
            "task = asyncio.get_running_loop().create_task(forever())")
    cell = client.send("shell", "execute_request", {"code": code, "silent": False})
    assert client.wait(cell, "execute_reply")["status"] == "ok"
    wait_until(lambda: state(server, kernel) == "gone", "the idle kernel to be culled")


def test_an_idle_kernel_that_a_panel_asks_is_culled(make_server):
    """The panel's questions are no activity: its kernel goes like any other."""
    server = make_server(*CULLING)
    kernel = server.rest("api/kernels", "POST", {"name": "drupe"})
    client = Client(server, kernel)
    code = "import drupe, drupe.array as da\nfloat(da.ones(1000, device='host').sum())"
    cell = client.send("shell", "execute_request", {"code": code, "silent": False})
    assert client.wait(cell, "execute_reply")["status"] == "ok"
    client.socket.settimeout(5)  # a question that comes when the kernel goes is never answered
    end = time.monotonic() + TIMEOUT
    answers = 0
    while state(server, kernel) != "gone":
        assert time.monotonic() < end, "the kernel is not culled, after %d answers" % answers
        with contextlib.suppress(OSError, websocket.WebSocketException):
            question = client.send("control", "debug_request",
                                   {"type": "request", "seq": answers, "command": "drupe/view",
                                                                "arguments": {"after": 0}})
            answers += client.wait(question, "debug_reply")["success"]  # one that ends refuses
        time.sleep(0.2)
    assert answers > 2
