"""drupe/view, drupe/errors, drupe/hello and drupe/refresh: debug_requests that C answers, whatever Python does."""
import contextlib
import time

import debugging
import pytest
import support
import test_subshell

# Holds the GIL for three seconds.
WORK = ("import drupe, drupe.array as da\nx = da.ones(1000, device='host')\n"
        "for _ in range(100): y = x + x\ny.queue.wait()")


@pytest.fixture
def front(fresh):
    return debugging.Front(fresh)


def cells(body):
    return {cell["number"]: cell for cell in body["cells"]}


def test_without_an_engine(fresh, front):
    fresh.run("1")
    for command in ("drupe/view", "drupe/hello", "drupe/errors", "drupe/refresh", "drupe/nonsense"):
        response = front.ask(command)
        assert not response["success"] and "no device" in response["message"] and response["command"] == command
    assert fresh.run("import sys; [name for name in sys.modules if name.split('.')[0] in ('debugpy', 'drupe._engine')]"
                     ).result == "[]"


def test_what_a_cell_did(fresh, front):
    assert fresh.run("import drupe").status == "ok"
    assert fresh.run(WORK).status == "ok"
    hello = front.get("drupe/hello")
    assert hello["version"] == 1 and hello["engine"]
    body = front.get("drupe/view")
    assert body["version"] == 1 and body["whole"] and body["from"] <= body["to"] <= body["now"]
    assert abs(body["unix"] - time.time() * 1000) < 60000
    cell = cells(body)[2]
    assert not cell["running"] and 0 < cell["began"] < cell["ended"] and cell["missed"] == 0
    assert cell["count"][0] == 100 and cell["count"][1] == 1 and cell["waiting"] == 0
    assert 0 < cell["busy"] <= cell["ended"] - cell["began"] + 10**9
    assert cell["memory"][2] >= cell["memory"][0]
    lanes = {(lane["queue"], lane["kind"]) for lane in body["lanes"]}
    assert {kind for _, kind in lanes} == {"kernels", "copies"}
    spans = [span for span in body["spans"] if span[7] == 2]
    assert sum(span[4] for span in spans) == 101 and all(span[1] <= span[2] for span in spans)
    assert any("line 3" in body["places"][span[12]] for span in spans if span[12] >= 0)
    device, = body["devices"]
    assert device["filter"] == "host:cpu:0" and sum(device["used"]) > 0 and device["samples"]
    assert body["colours"][1] == cell["colour"]


def test_only_what_changed(fresh, front):
    fresh.run(WORK)
    first = front.get("drupe/view")
    again = front.get("drupe/view", {"after": first["serial"]})
    assert not again["whole"] and again["spans"] == []
    fresh.run("z = x + x\nz.queue.wait()")
    more = front.get("drupe/view", {"after": first["serial"]})
    assert [span[7] for span in more["spans"]] == [2] and more["serial"] > first["serial"]
    few = front.get("drupe/view", {"spans": 5, "firstCell": 1, "lastCell": 1})
    assert len(few["spans"]) <= 5 and sum(span[4] for span in few["spans"]) == 101
    assert [cell["number"] for cell in few["cells"]] == [1]
    assert front.get("drupe/view", {"since": more["now"]})["spans"] == []


@pytest.mark.parametrize("channel", ["control", "shell"])
def test_while_the_gil_is_held(fresh, channel, tmp_path):
    fresh.run(WORK)
    raw = support.Raw(fresh.manager)
    with contextlib.closing(raw), support.stuck(fresh, tmp_path) as cell:
        def ask(seq):
            return raw.send(channel, "debug_request", {"type": "request", "seq": seq, "command": "drupe/view"})

        def runs():
            ask(0)
            return raw.receive(channel)["content"]["body"]["cells"][-1]["running"]

        support.wait_until(runs, what="the cell's code, which begins behind its execute_input")
        asked = [ask(n) for n in range(5)]
        replies = [raw.receive(channel) for _ in asked]
        assert [reply["parent_header"]["msg_id"] for reply in replies] == asked
        assert all(reply["content"]["success"] for reply in replies)
        assert replies[-1]["content"]["body"]["cells"][-1]["running"]
        # For others than ourselves the kernel stays busy: who asks is told so again after each answer.
        assert raw.status_of(asked[-1])[:2] == ["busy", "idle"]
        fresh.poll()
        states = [m for m in fresh.log if m["msg_type"] == "status"]
        assert states[-1]["content"]["execution_state"] == "busy" or \
            states[-1]["parent_header"]["msg_type"] == "debug_request"
        assert cell.free().status == "ok"


@pytest.mark.parametrize("arguments, about", [
    ({"after": -1}, "after"), ({"after": "x"}, "after"), ({"spans": 10**9}, "spans"), ({"spans": 1.5}, "spans"),
    ({"firstCell": None}, "firstCell"), ({"lastCell": 2**40}, "lastCell"), ({"since": [1]}, "since"),
    ({"since": {"a": 1}}, "since"), ({"after": True}, "after")])
def test_bad_arguments(fresh_engine, arguments, about):
    response = debugging.Front(fresh_engine).ask("drupe/view", arguments)
    assert not response["success"] and about in response["message"] and "whole number" in response["message"]


@pytest.fixture(scope="module")
def fresh_engine(spec_folder):
    kernel = support.Kernel(spec_folder)
    try:
        assert kernel.run("import drupe; drupe.Queue('host')").status == "ok"
        yield kernel
    finally:
        kernel.close()


def test_hostile_requests(fresh_engine):
    front = debugging.Front(fresh_engine)
    long = "drupe/" + "x" * 100000
    for command in ("drupe/", "drupe/view ", "drupe/\u00e4\"\\", long):
        response = front.ask(command)
        assert not response["success"] and "drupe/view" in response["message"] and response["command"] == command
    for content in ({"command": "drupe/view", "arguments": [1]}, {"command": "drupe/view", "arguments": "x"},
                    {"command": "drupe/view", "arguments": 7, "seq": "x"}):
        message = fresh_engine.client.session.msg("debug_request", content)
        fresh_engine.client.control_channel.send(message)
        response = front.reply(message["header"]["msg_id"])
        assert not response["success"] and "object" in response["message"]
    assert front.get("drupe/view", {"unknown": 1, "after": 0})["version"] == 1
    assert not front.ask("drupe/errors", {"after": "x"})["success"]


def test_errors(fresh_engine):
    front = debugging.Front(fresh_engine)
    before = front.get("drupe/errors")["latest"]
    fresh_engine.run("import testwork\n"
                     "event = testwork.task(drupe.Queue('host'), 0, 'the \"bearing\" broke')")
    fresh_engine.run("try: event.wait()\nexcept drupe.DeviceError: pass")
    body = front.get("drupe/errors", {"after": before})
    error, = body["errors"]
    assert "bearing" in error["text"] and error["id"] == body["latest"] and error["device"] == "host:cpu:0"
    assert error["cell"] > 0 and "cell [" in error["place"] and error["label"] == "task" and error["unix"] > 0
    assert front.get("drupe/errors", {"after": body["latest"]}) == {"errors": [], "latest": body["latest"]}


def test_the_debugger_is_left_alone(fresh, front):
    fresh.run(WORK)
    front.get("drupe/view")
    assert not front.get("debugInfo")["isStarted"]
    assert fresh.run("import sys; 'debugpy' in sys.modules").result == "False"
    with contextlib.suppress(AssertionError):  # without debugpy there is no debugger to try
        front.start()
        assert front.get("drupe/view")["version"] == 1
        front.stop()


def test_after_a_restart(fresh, front):
    fresh.run(WORK)
    assert front.get("drupe/view")["cells"]
    fresh.manager.restart_kernel()
    fresh.client.wait_for_ready(timeout=support.TIMEOUT)
    fresh.run("1")
    assert not front.ask("drupe/view")["success"]
    fresh.run("import drupe; drupe.Queue('host')")
    assert sum(sum(cell["count"]) for cell in front.get("drupe/view")["cells"]) == 0


def test_cells_of_subshells(spec_folder):
    kernel = support.Kernel(spec_folder, environment=test_subshell.ON)
    try:
        front = debugging.Front(kernel)
        assert kernel.run("import drupe, drupe.array as da, threading, time\nx = da.ones(100, device='host')\n"
                          "gate = threading.Event()").status == "ok"
        shell = test_subshell.create(kernel)
        main = kernel.send("gate.wait(60); a = x + x; a.queue.wait()")
        kernel.started(main)
        other = test_subshell.send(kernel, shell, "b = x + x; b.queue.wait(); gate.set()")
        kernel.finish(main)
        kernel.wait_idle(other)
        seen = cells(front.get("drupe/view"))
        assert [seen[number]["count"][0] for number in (2, 3)] == [1, 1]
        assert not seen[2]["running"] and not seen[3]["running"]
        assert seen[2]["began"] < seen[3]["began"] < seen[3]["ended"]
    finally:
        kernel.close()


def test_a_forked_child_is_silent(fresh, front):
    fresh.run(WORK)
    run = fresh.run("""
import os
child = os.fork()
if child == 0:
    from drupe import _engine
    try:
        _engine._view()
    except drupe.DeviceError as problem:
        os._exit(7 if 'forked' in str(problem) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert run.text() == "7\n"
    assert front.get("drupe/view")["version"] == 1


def test_a_kernel_with_a_recorder_ends_in_time(fresh):
    fresh.run(WORK + "\nimport threading\n"
              "threading.Thread(target=lambda: [x + x for _ in range(10**9)], daemon=True).start()")
    started = time.monotonic()
    fresh.manager.shutdown_kernel()
    assert not fresh.manager.is_alive() and time.monotonic() - started < 20
