"""A debugger's front-end for the tests: debug_request on control, events from iopub."""
import contextlib
import itertools
import time

import support

START = {"clientID": "tests", "clientName": "tests", "adapterID": "drupe", "pathFormat": "path", "linesStartAt1": True,
         "columnsStartAt1": True, "supportsVariableType": True, "supportsVariablePaging": True, "locale": "en"}


class Front:
    """Talks to one kernel as JupyterLab's debugger does."""

    def __init__(self, kernel):
        self.kernel = kernel
        self._seq = itertools.count()
        self._replies = {}
        self._seen = len(kernel.log)

    def send(self, command, arguments=None):
        """A debug_request, not waited for. Returns the id of its message."""
        content = {"type": "request", "seq": next(self._seq), "command": command, "arguments": arguments or {}}
        message = self.kernel.client.session.msg("debug_request", content)
        self.kernel.client.control_channel.send(message)
        return message["header"]["msg_id"]

    def reply(self, msg_id, timeout=support.TIMEOUT):
        deadline = time.monotonic() + timeout
        while msg_id not in self._replies:
            assert time.monotonic() < deadline, "no debug_reply within %g s" % timeout
            with contextlib.suppress(Exception):
                message = self.kernel.client.get_control_msg(timeout=0.05)
                self._replies[message["parent_header"]["msg_id"]] = message
            self.kernel.poll(0.001)
        return self._replies.pop(msg_id)["content"]

    def ask(self, command, arguments=None, timeout=support.TIMEOUT):
        """The whole response, whether success or not."""
        response = self.reply(self.send(command, arguments), timeout)
        assert response["type"] == "response", response
        return response

    def get(self, command, arguments=None, timeout=support.TIMEOUT):
        """The body of a response that must be a success."""
        response = self.ask(command, arguments, timeout)
        assert response["success"] and response["command"] == command, response
        return response.get("body")

    def start(self, **attach):
        """What a front-end does when its debugger is switched on."""
        self.get("debugInfo")
        self.get("initialize", START)
        self.get("attach", attach)
        self.get("configurationDone")
        return self

    def stop(self):
        self.get("disconnect", {"restart": False, "terminateDebuggee": False})

    def breakpoints(self, code, *lines):
        """Dump a cell and set breakpoints in it. Returns its path."""
        path = self.get("dumpCell", {"code": code})["sourcePath"]
        points = [{"line": line} if isinstance(line, int) else line for line in lines]
        body = self.get("setBreakpoints", {"breakpoints": points, "source": {"path": path}, "sourceModified": False})
        assert [point["verified"] for point in body["breakpoints"]] == [True] * len(lines), body
        return path

    def event(self, name, timeout=support.TIMEOUT):
        """The body of the next event of this name; events before it are passed over."""
        deadline = time.monotonic() + timeout
        while True:
            log = self.kernel.log
            while self._seen < len(log):
                message = log[self._seen]
                self._seen += 1
                if message["msg_type"] == "debug_event" and message["content"]["event"] == name:
                    assert message["parent_header"]["msg_type"] == "debug_request"
                    return message["content"].get("body", {})
            assert time.monotonic() < deadline, "no %s event within %g s" % (name, timeout)
            self.kernel.poll()

    def events(self, name):
        """How many events of this name have come so far."""
        return sum(m["msg_type"] == "debug_event" and m["content"]["event"] == name for m in self.kernel.log)

    def frames(self, thread):
        return self.get("stackTrace", {"threadId": thread})["stackFrames"]

    def stopped(self):
        """Wait for a stop. Returns the thread and its innermost frame."""
        body = self.event("stopped")
        return body["threadId"], self.frames(body["threadId"])[0]

    def step(self, command, thread):
        """A step and the stop after it. Returns the innermost frame."""
        self.get(command, {"threadId": thread})
        thread, frame = self.stopped()
        return frame

    def go_on(self, thread):
        self.get("continue", {"threadId": thread})
        self.event("continued")

    def variables(self, frame, scope):
        scopes = {each["name"]: each["variablesReference"] for each in self.get("scopes", {"frameId": frame})["scopes"]}
        found = self.get("variables", {"variablesReference": scopes[scope]})["variables"]
        return {each["name"]: each for each in found}
