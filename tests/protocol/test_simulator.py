"""Simulated kernels in a notebook: JupyterLab's debugger stops in a work-item, errors show the user's frames, Ctrl-C
ends them."""
import re

import debugging
import pytest

pytest.importorskip("debugpy")
pytest.importorskip("greenlet")

REVERSE = """import numpy
from drupe import kernel_api as kapi
def reverse(item, a, part):
    i = item.get_local_id(0)
    part[i] = a[item.get_global_id(0)]
    kapi.group_barrier(item.get_group())
    other = part[3 - i]
    a[item.get_global_id(0)] = other
a = numpy.arange(8)
kapi.call_kernel(reverse, kapi.NdRange(8, 4), a, kapi.LocalAccessor(4, int))
print(a)"""


@pytest.fixture
def front(kernel):
    front = debugging.Front(kernel).start()
    yield front
    front.stop()
    kernel.run("%reset -f")


def test_a_breakpoint_behind_a_barrier(front, kernel):
    front.breakpoints(REVERSE, {"line": 7, "condition": "item.get_global_id(0) in (1, 6)"})
    msg_id = kernel.send(REVERSE)
    for place in ("1, 1 of group 0", "6, 2 of group 1"):
        thread, frame = front.stopped()
        assert (frame["name"], frame["line"]) == ("reverse", 7)
        found = front.variables(frame["id"], "Locals")
        assert found["item"]["value"] == "<NdItem %s>" % place and "other" not in found
        frame = front.step("next", thread)
        assert frame["line"] == 8 and front.variables(frame["id"], "Locals")["item"] == found["item"] | {
            "variablesReference": front.variables(frame["id"], "Locals")["item"]["variablesReference"]}
        front.go_on(thread)
    run = kernel.finish(msg_id)
    assert run.status == "ok" and run.text() == "[3 2 1 0 7 6 5 4]\n" and run.text("stderr") == ""


def test_a_step_over_a_barrier_stays_in_the_work_item(front, kernel):
    front.breakpoints(REVERSE, {"line": 6, "condition": "item.get_global_id(0) == 5"})
    msg_id = kernel.send(REVERSE)
    thread, frame = front.stopped()
    assert frame["line"] == 6
    frame = front.step("next", thread)
    assert frame["line"] == 7 and front.variables(frame["id"], "Locals")["i"]["value"] == "1"
    front.go_on(thread)
    assert kernel.finish(msg_id).text() == "[3 2 1 0 7 6 5 4]\n"


def test_run_group_stops_at_a_work_item(front, kernel):
    code = REVERSE.replace("kapi.call_kernel(reverse, kapi.NdRange(8, 4), a, kapi.LocalAccessor(4, int))",
                           "from drupe import simulator\nprint(simulator.run_group(reverse, kapi.NdRange(8, 4), 1, "
                           "[a, kapi.LocalAccessor(4, int)], stop_at=6, line=7))")
    front.breakpoints(code)
    msg_id = kernel.send(code)
    thread, frame = front.stopped()
    assert (frame["name"], frame["line"]) == ("reverse", 7)
    assert front.variables(frame["id"], "Locals")["item"]["value"] == "<NdItem 6, 2 of group 1>"
    frame = front.step("next", thread)
    assert (frame["name"], frame["line"]) == ("reverse", 8)
    front.go_on(thread)
    run = kernel.finish(msg_id)
    assert run.status == "ok" and run.text() == "True\n[0 1 2 3 7 6 5 4]\n"
    assert run.text("stderr") == ""


def test_an_error_shows_the_users_frames(kernel):
    run = kernel.run(REVERSE.replace("3 - i", "4 - i"))
    text = re.sub("\x1b\\[[0-9;]*m", "", "\n".join(run.of("error")[0]["traceback"]))
    assert run.status == "error" and run.of("error")[0]["ename"] == "IndexError"
    assert run.of("error")[0]["evalue"] == "part[4 - i] is part[4], which is out of bounds: part has the shape (4,)"
    assert "site-packages/drupe" not in text and "work-item 0 (0 of group 0) of the kernel reverse, line 7" in text


def test_ctrl_c_ends_it_at_once_and_keeps_what_was_written(kernel):
    msg_id = kernel.send("""import numpy
from drupe import kernel_api as kapi
def endless(item, a):
    a[item.get_global_id(0)] = 1
    kapi.group_barrier(item.get_group())
    if item.get_global_id(0) == 1:
        print("on", flush=True)
    while item.get_global_id(0) == 1:
        pass
a = numpy.zeros(4, int)
kapi.call_kernel(endless, kapi.NdRange(4, 4), a)""")
    kernel.told(msg_id, "on")
    kernel.interrupt()
    run = kernel.finish(msg_id)
    (error,) = run.of("error")
    assert error["ename"] == "KeyboardInterrupt" and "work-item 1" in "\n".join(error["traceback"])
    run = kernel.run("import gc, greenlet; gc.collect()\n"
                     "found = [o for o in gc.get_objects() if type(o) is greenlet.greenlet and not o.dead]\n"
                     "print(a, sum(one.parent is not None for one in found))")
    assert run.text() == "[1 1 1 1] 0\n"
