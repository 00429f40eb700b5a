"""The debugger, driven through the control channel in the order in which JupyterLab does it."""
import ast
import os
import pathlib
import re
import stat
import time

import debugging
import pytest
import support
import test_subshell

pytest.importorskip("debugpy")

TWICE = "def twice(x):\n    y = x * 2\n    return y\n\na = twice(1)\nb = twice(a)\nprint(a, b)"


@pytest.fixture
def front(kernel):
    """A debugging session on the module's kernel."""
    front = debugging.Front(kernel).start()
    yield front
    front.stop()
    kernel.run("%reset -f")


def stop_in(front, code, line):
    """Run a cell up to a breakpoint. Returns its message id, the stopped thread and the frame."""
    path = front.breakpoints(code, line)
    msg_id = front.kernel.send(code)
    thread, frame = front.stopped()
    assert frame["line"] == line and frame["source"]["path"] == path
    return msg_id, thread, frame


# --- before it is started ---


def test_announced(kernel, raw):
    raw.send("control", "kernel_info_request")
    assert "debugger" in raw.receive("control")["content"]["supported_features"]


def test_debug_info_needs_no_python(fresh, tmp_path):
    front = debugging.Front(fresh)
    with support.stuck(fresh, tmp_path) as cell:
        info = front.get("debugInfo")
        assert cell.free().status == "ok"
    assert info["isStarted"] is False and info["hashMethod"] == "Murmur2" and info["hashSeed"] == 0xC70F6907
    assert info["breakpoints"] == [] and info["stoppedThreads"] == [] and info["exceptionPaths"] == []
    assert info["richRendering"] is True and info["copyToGlobals"] is True and info["tmpFileSuffix"] == ".py"
    assert os.path.isabs(info["tmpFilePrefix"]) and info["tmpFilePrefix"].endswith("/")
    run = fresh.run("import threading, sys; len(threading.enumerate()), 'debugpy' in sys.modules")
    assert run.result.endswith("False)")


def test_requests_before_the_start_are_refused(fresh):
    front = debugging.Front(fresh)
    for command in ("setBreakpoints", "stackTrace", "continue", "configurationDone", "attach", "nonsense", None, 5):
        response = front.ask(command, {"source": {"path": "x"}, "threadId": 1})
        assert response["success"] is False and response["message"], response
    assert front.get("disconnect") == {}
    assert fresh.run("1+1").result == "2"


def test_a_debugger_that_fails_to_start(spec_folder, tmp_path):
    log = tmp_path / "log"
    kernel = support.Kernel(spec_folder, {"DRUPE_LOG": str(log)})
    try:
        front = debugging.Front(kernel)
        kernel.run("from drupe.jupyter import debugger; serve, debugger.serve = debugger.serve, 'no function'")
        for _ in range(3):
            response = front.ask("inspectVariables")
            assert response["success"] is False and "not callable" in response["message"]
        assert "drupe.jupyter.debugger has ended: TypeError" in log.read_text()
        kernel.run("debugger.serve = serve")
        assert {each["name"] for each in front.get("inspectVariables")["variables"]} >= {"serve", "debugger"}
    finally:
        kernel.close()


def test_variables_without_a_session(fresh):
    fresh.run("import pandas as pd\nfrom IPython.display import HTML\n"
              "page = HTML('<b>bold</b>')\nnumbers = [1, [2, 3]]\nnames = {'a': numbers, 'b': None}\n_mine = 1")
    front = debugging.Front(fresh)
    found = {each["name"]: each for each in front.get("inspectVariables")["variables"]}
    assert {"page", "numbers", "names", "_mine"} <= set(found)
    assert not {"In", "Out", "get_ipython", "exit", "quit", "_", "_i", "_i1", "_oh", "_dh", "__name__"} & set(found)
    assert found["numbers"]["type"] == "list" and found["numbers"]["value"] == "[1, [2, 3]]"
    children = front.get("variables", {"variablesReference": found["names"]["variablesReference"]})["variables"]
    assert [(each["name"], each["value"]) for each in children] == [("'a'", "[1, [2, 3]]"), ("'b'", "None")]
    assert children[0]["evaluateName"] == "names['a']" and children[1]["variablesReference"] == 0
    paged = front.get("variables", {"variablesReference": children[0]["variablesReference"], "start": 1, "count": 1})
    assert [each["evaluateName"] for each in paged["variables"]] == ["names['a'][1]"]
    rich = front.get("richInspectVariables", {"variableName": "page"})
    assert rich["data"]["text/html"] == "<b>bold</b>" and "text/plain" in rich["data"] and rich["metadata"] == {}
    assert front.get("richInspectVariables", {"variableName": "special variables"}) == {"data": {}, "metadata": {}}
    for odd, problem in (("nothing", "NameError"), ("1) + (2", "SyntaxError"), ("1/0", "ZeroDivisionError")):
        data = front.get("richInspectVariables", {"variableName": odd})["data"]
        assert list(data) == ["text/plain"] and data["text/plain"].startswith(problem)
    assert front.get("debugInfo")["isStarted"] is False


def test_values_that_fail_to_show(fresh):
    fresh.run("class Bad:\n    def __repr__(self): raise OSError('no')\n    @property\n"
              "    def p(self): raise KeyError(1)\n"
              "bad = Bad()\nbig = list(range(10**6))\nsurrogate = '\\ud800'")
    front = debugging.Front(fresh)
    found = {each["name"]: each for each in front.get("inspectVariables")["variables"]}
    assert "Bad" in found["bad"]["value"]
    assert len(found["big"]["value"]) < 300
    assert len(front.get("variables", {"variablesReference": found["big"]["variablesReference"]})["variables"]) == 1000
    children = front.get("variables", {"variablesReference": found["bad"]["variablesReference"]})["variables"]
    assert children[0]["name"] == "p" and "KeyError" in children[0]["value"]
    assert fresh.run("1").result == "1"


# --- stopping and going on ---


def test_breakpoint_steps_and_variables(front, kernel):
    msg_id, thread, frame = stop_in(front, TWICE, 5)
    info = front.get("debugInfo")
    assert info["isStarted"] and info["stoppedThreads"] == [thread]
    assert info["breakpoints"] == [{"source": frame["source"]["path"], "breakpoints": [{"line": 5}]}]
    inner = front.step("stepIn", thread)
    assert (inner["line"], inner["name"]) == (2, "twice")
    inner = front.step("next", thread)
    assert inner["line"] == 3
    local = front.variables(inner["id"], "Locals")
    assert local["x"]["value"] == "1" and local["y"]["value"] == "2"
    assert [each["name"] for each in front.frames(thread)[:2]] == ["twice", "<module>"]
    outer = front.step("stepOut", thread)
    assert outer["name"] == "<module>" and outer["line"] in (5, 6)
    while outer["line"] < 7:
        outer = front.step("next", thread)
    names = set(front.variables(outer["id"], "Globals"))
    assert {"a", "b"} <= names and not {"In", "Out", "get_ipython", "_i"} & names
    assert not [m for m in kernel.of_parent(msg_id) if m["msg_type"] == "stream"], "the cell has not printed yet"
    front.go_on(thread)
    run = kernel.finish(msg_id)
    assert run.status == "ok" and run.text() == "2 4\n" and run.text("stderr") == ""
    assert front.get("debugInfo")["stoppedThreads"] == []


def test_a_step_ends_with_its_cell(front, kernel):
    code = "value = 1\nvalue += 1"
    msg_id, thread, frame = stop_in(front, code, 2)
    front.get("next", {"threadId": thread})
    assert kernel.finish(msg_id).status == "ok"
    front.get("setBreakpoints", {"breakpoints": [], "source": frame["source"]})
    assert kernel.run(code).status == "ok", "the same cell again does not stop"
    assert front.events("stopped") == 1


def test_pause_before_a_cell(front, kernel):
    front.get("pause", {"threadId": 1})
    msg_id = kernel.send("value = 5\nvalue")
    thread, frame = front.stopped()
    assert frame["line"] == 1
    front.go_on(thread)
    assert kernel.finish(msg_id).result == "5"


def test_blank_lines_above_a_cell_count(front, kernel):
    msg_id, thread, frame = stop_in(front, "\n\nvalue = 5\nvalue += 1", 4)
    front.go_on(thread)
    assert kernel.finish(msg_id).status == "ok"


def test_everything_else_answers_while_stopped(front, kernel, raw):
    msg_id, thread, frame = stop_in(front, TWICE, 2)
    raw.send("control", "kernel_info_request")
    assert raw.receive("control")["content"]["status"] == "ok"
    raw.send("shell", "kernel_info_request")
    assert raw.receive("shell")["content"]["status"] == "ok"
    raw.sockets["hb"].send(b"beat")
    assert raw.sockets["hb"].poll(support.TIMEOUT * 1000)
    assert front.get("evaluate", {"expression": "x + 40", "frameId": frame["id"], "context": "repl"})["result"] == "41"
    assert kernel.manager.is_alive()
    front.get("setBreakpoints", {"breakpoints": [], "source": frame["source"]})
    front.go_on(thread)
    assert kernel.finish(msg_id).text() == "2 4\n"


def test_rich_and_copied_variables_at_a_frame(front, kernel):
    code = ("from IPython.display import HTML\ndef inner():\n    page = HTML('<i>it</i>')\n    plain = {'k': [1]}\n"
            "    return page\ninner()")
    msg_id, thread, frame = stop_in(front, code, 5)
    rich = front.get("richInspectVariables", {"variableName": "page", "frameId": frame["id"]})
    assert rich["data"]["text/html"] == "<i>it</i>"
    nested = front.get("richInspectVariables", {"variableName": "plain['k']", "frameId": frame["id"]})
    assert nested["data"]["text/plain"] == "[1]"
    gone = front.get("richInspectVariables", {"variableName": "nothing", "frameId": frame["id"]})
    assert list(gone["data"]) == ["text/plain"] and "name 'nothing' is not defined" in gone["data"]["text/plain"]
    front.get("copyToGlobals", {"srcVariableName": "plain", "dstVariableName": "copy", "srcFrameId": frame["id"]})
    assert front.ask("copyToGlobals", {"srcVariableName": "plain", "dstVariableName": "a b", "srcFrameId": frame["id"]}
                     )["success"] is False
    assert front.variables(frame["id"], "Globals")["copy"]["value"] == "{'k': [1]}"
    front.get("setVariable", {"variablesReference": front.get("scopes", {"frameId": frame["id"]})["scopes"][0][
        "variablesReference"], "name": "plain", "value": "7"})
    assert front.variables(frame["id"], "Locals")["plain"]["value"] == "7"
    front.go_on(thread)
    kernel.finish(msg_id)
    assert kernel.run("copy").result == "{'k': [1]}"


def test_conditions_and_several_breakpoints(front, kernel):
    code = "total = 0\nfor i in range(5):\n    total += i\ntotal"
    path = front.breakpoints(code, {"line": 3, "condition": "i == 3"}, 4)
    msg_id = kernel.send(code)
    thread, frame = front.stopped()
    assert (frame["line"], front.variables(frame["id"], "Globals")["i"]["value"]) == (3, "3")
    assert front.get("debugInfo")["breakpoints"] == [
        {"source": path, "breakpoints": [{"line": 3, "condition": "i == 3"}, {"line": 4}]}]
    front.go_on(thread)
    thread, frame = front.stopped()
    assert frame["line"] == 4
    front.go_on(thread)
    assert kernel.finish(msg_id).result == "10"


def test_threads_stop_too(front, kernel):
    code = ("import threading\ndef work():\n    value = 9\n    return value\n"
            "t = threading.Thread(target=work, name='worker')\nt.start()\nt.join()")
    msg_id, thread, frame = stop_in(front, code, 4)
    threads = {each["id"]: each["name"] for each in front.get("threads")["threads"]}
    assert threads[thread] == "worker"
    assert sorted(threads.values()) == ["MainThread", "worker"], "the kernel's own threads are hidden"
    front.go_on(thread)
    assert kernel.finish(msg_id).status == "ok"


def test_asynchronous_cells_stop(front, kernel):
    code = "import asyncio\nawait asyncio.sleep(0.01)\nvalue = 1\nawait asyncio.sleep(0.01)\nvalue += 1"
    msg_id, thread, frame = stop_in(front, code, 3)
    assert front.step("next", thread)["line"] == 4
    front.go_on(thread)
    assert kernel.finish(msg_id).status == "ok"
    assert kernel.run("value").result == "2"


def test_exception_breakpoints(front, kernel):
    front.get("setExceptionBreakpoints", {"filters": ["raised"]})
    msg_id = kernel.send("def fail():\n    raise ValueError('seven')\nfail()")
    body = front.event("stopped")
    assert body["reason"] == "exception"
    assert front.frames(body["threadId"])[0]["line"] == 2
    assert "seven" in front.get("exceptionInfo", {"threadId": body["threadId"]})["description"]
    front.get("setExceptionBreakpoints", {"filters": []})
    front.go_on(body["threadId"])
    run = kernel.finish(msg_id)
    assert run.status == "error" and run.reply["evalue"] == "seven"
    assert any("In[" in line for line in run.reply["traceback"])


def test_breakpoint_in_a_library(front, kernel, tmp_path):
    (tmp_path / "some_library.py").write_text("def helper(x):\n    z = x + 1\n    return z\n")
    kernel.run("import sys; sys.path.insert(0, %r)\nimport some_library" % str(tmp_path))
    path = str(tmp_path / "some_library.py")
    front.get("setBreakpoints", {"breakpoints": [{"line": 2}], "source": {"path": path}})
    msg_id = kernel.send("some_library.helper(4)")
    thread, frame = front.stopped()
    assert frame["line"] == 2 and frame["source"]["path"] == path
    assert "z = x + 1" in front.get("source", {"source": frame["source"], "sourceReference": 0})["content"]
    front.go_on(thread)
    assert kernel.finish(msg_id).result == "5"


def test_breakpoint_in_the_code(front, kernel):
    msg_id = kernel.send("value = 1\nbreakpoint()\nvalue += 1\nvalue")
    thread, frame = front.stopped()
    assert front.variables(frame["id"], "Globals")["value"]["value"] == "1"
    front.go_on(thread)
    assert kernel.finish(msg_id).result == "2"


def test_pause(front, kernel):
    msg_id = kernel.send("import time\nwhile True:\n    time.sleep(0.01)")
    kernel.started(msg_id)
    front.get("pause", {"threadId": 1})
    thread, frame = front.stopped()
    kernel.interrupt()
    assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"


# --- interrupts and ends ---


def test_interrupt_while_stopped_ends_the_cell(front, kernel):
    for _ in range(3):
        msg_id, thread, frame = stop_in(front, TWICE, 2)
        kernel.interrupt()
        run = kernel.finish(msg_id)
        assert run.reply["ename"] == "KeyboardInterrupt"
        shown = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(run.reply["traceback"]))
        assert "pydevd" not in shown and "interrupt.py" not in shown and shown.count(", in twice") == 1, shown
        assert run.text("stderr") == ""
        assert front.event("continued")["allThreadsContinued"] is True
        assert front.get("debugInfo")["stoppedThreads"] == []
    msg_id, thread, frame = stop_in(front, TWICE, 3)  # and breakpoints still stop
    front.go_on(thread)
    thread, frame = front.stopped()
    front.go_on(thread)
    assert kernel.finish(msg_id).text() == "2 4\n"


def test_interrupt_while_a_thread_is_stopped(front, kernel):
    code = ("import threading\ndef work():\n    value = 9\n    return value\n"
            "t = threading.Thread(target=work)\nt.start()\nwhile True:\n    t.join(0.01)")
    msg_id, thread, frame = stop_in(front, code, 4)
    kernel.interrupt()
    assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"
    assert front.event("continued") is not None
    assert kernel.run("t.join(20); t.is_alive()").result == "False"


def test_a_thread_stopped_between_cells(front, kernel, tmp_path):
    code = ("import os, threading, time\ndef late():\n    while not os.path.exists(%r): time.sleep(0.01)\n"
            "    value = 1\n    return value\nt = threading.Thread(target=late)\nt.start()" % str(tmp_path / "go"))
    path = front.breakpoints(code, 5)
    assert kernel.run(code).status == "ok"
    (tmp_path / "go").touch()
    thread, frame = front.stopped()
    assert frame["line"] == 5
    msg_id = kernel.send("'next cell'")
    time.sleep(0.3)
    kernel.interrupt()
    run = kernel.finish(msg_id)
    assert run.status == "error" or run.result == "'next cell'"
    assert kernel.run("t.join(20); t.is_alive()").result == "False"


def test_processes_started_in_a_session(front, kernel):
    kernel.run("import warnings; warnings.filterwarnings('ignore', '.*fork', DeprecationWarning)")  # of Python 3.12
    code = ("import os, subprocess, sys\ndef child():\n    value = 3\n    return value\npid = os.fork()\n"
            "if pid == 0:\n    os._exit(child())\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
            "print(subprocess.run([sys.executable, '-c', 'print(7)'], capture_output=True, text=True))\n"
            "print([name for name in os.environ if name.startswith('PYDEVD')])")
    front.breakpoints(code, 4)
    run = kernel.run(code)
    assert run.status == "ok" and run.text().splitlines()[0] == "3", "a breakpoint does not stop a forked child"
    assert "stdout='7\\n', stderr=''" in run.text() and run.text().splitlines()[2] == "[]"
    assert run.text("stderr") == ""


def test_terminate_ends_the_cell_and_not_the_kernel(front, kernel):
    msg_id, thread, frame = stop_in(front, TWICE, 5)
    front.get("terminate", {"restart": False})
    assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"
    assert kernel.run("1+1").result == "2"


def test_disconnect_while_stopped_and_a_second_session(kernel):
    front = debugging.Front(kernel).start()
    msg_id, thread, frame = stop_in(front, TWICE, 5)
    front.get("disconnect", {"restart": False, "terminateDebuggee": True})
    run = kernel.finish(msg_id)
    assert run.text() == "2 4\n", "the kernel lives on, and the cell"
    info = front.get("debugInfo")
    assert info["isStarted"] is False and info["breakpoints"] == [] and info["stoppedThreads"] == []
    assert kernel.run(TWICE).text() == "2 4\n"
    for _ in range(2):
        front.start()
        msg_id, thread, frame = stop_in(front, TWICE, 3)
        front.stop()
        assert kernel.finish(msg_id).text() == "2 4\n"


def test_nothing_is_traced_after_a_session(kernel):
    hook = kernel.run("import sys; sys.breakpointhook").result
    ask = "import sys, threading; (sys.gettrace(), threading.gettrace() if hasattr(threading, 'gettrace') else None)"
    front = debugging.Front(kernel).start()
    msg_id, thread, frame = stop_in(front, TWICE, 5)
    front.stop()
    kernel.finish(msg_id)
    kernel.run("pass")
    assert ast.literal_eval(kernel.run(ask).result) == (None, None)
    assert kernel.run("sys.breakpointhook").result == hook
    names = ast.literal_eval(kernel.run("[t.name for t in threading.enumerate()]").result)
    assert not [name for name in names if name.startswith("pydevd")], names


def test_sources_of_cells(front, kernel):
    path = front.breakpoints("dumped = 1\n", 1)
    assert front.get("source", {"source": {"path": path}})["content"] == "dumped = 1\n"
    folder = pathlib.Path(path).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    kernel.run("def never_dumped(): pass")
    name = ast.literal_eval(kernel.run("never_dumped.__code__.co_filename").result)
    assert name.startswith(str(folder)) and not os.path.exists(name)
    assert "never_dumped" in front.get("source", {"source": {"path": name}})["content"]
    assert front.ask("source", {"source": {"path": "/nowhere.py"}})["success"] is False


def test_modules(front):
    body = front.get("modules")
    assert body["totalModules"] > 100
    assert any(each["name"] == "json" and each["path"].endswith("json/__init__.py") for each in body["modules"])


def test_unknown_commands_and_garbage(front, kernel):
    assert front.ask("dumpCell", {})["success"] is False
    assert front.ask("variables", {"variablesReference": "x"})["success"] is False
    assert front.ask("setBreakpoints", {"breakpoints": 3, "source": {"path": 7}})["success"] is False
    assert front.ask("evaluate", {"expression": "1/0"})["success"] is False
    assert front.get("evaluate", {"expression": "6*7"})["result"] == "42"
    assert front.ask("teleport", {})["success"] is False
    assert kernel.run("1+1").result == "2"


@pytest.mark.parametrize("how", ["shutdown", "kill"])
def test_the_end_of_the_kernel_while_stopped(fresh, how):
    front = debugging.Front(fresh).start()
    msg_id, thread, frame = stop_in(front, TWICE, 2)
    folder = pathlib.Path(frame["source"]["path"]).parent
    process = fresh.manager.provisioner.process
    if how == "kill":
        process.kill()
    else:
        message = fresh.client.session.msg("shutdown_request", {"restart": False})
        fresh.client.control_channel.send(message)
    assert process.wait(support.TIMEOUT) == (0 if how == "shutdown" else -9)
    assert folder.exists() == (how == "kill"), "the files of cells go with the kernel"
    for file in folder.glob("*"):
        file.unlink()


def test_subshells_stop_too(spec_folder):
    kernel = support.Kernel(spec_folder, test_subshell.ON)
    try:
        front = debugging.Front(kernel).start()
        for shell in (test_subshell.create(kernel), test_subshell.create(kernel)):
            front.breakpoints(TWICE, 3)
            msg_id = test_subshell.send(kernel, shell, TWICE)
            thread, frame = front.stopped()
            assert frame["line"] == 3 and front.variables(frame["id"], "Locals")["y"]["value"] == "2"
            kernel.interrupt()
            assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"
            front.event("continued")
            support.wait_until(lambda: front.get("debugInfo")["stoppedThreads"] == [], what="all threads to go on")
            msg_id = test_subshell.send(kernel, shell, TWICE)
            thread, frame = front.stopped()
            front.get("setBreakpoints", {"breakpoints": [], "source": frame["source"]})
            front.go_on(thread)
            assert kernel.finish(msg_id).text() == "2 4\n"
        front.stop()
        assert kernel.run(TWICE).text() == "2 4\n"
    finally:
        kernel.close()


def test_without_debugpy(spec_folder):
    kernel = support.Kernel(spec_folder, {"DRUPE_DEBUGGER": "0"})
    try:
        front = debugging.Front(kernel)
        for command in ("debugInfo", "initialize"):
            response = front.ask(command)
            assert response["success"] is False and "debugpy" in response["message"]
        assert kernel.run("1+1").result == "2"
    finally:
        kernel.close()
