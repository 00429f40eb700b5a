"""Device work in cells: Ctrl-C in a wait, also after a driver's compiler took the signal; late failures."""
import re
import time

import faulty
import pytest
import support

SETUP = '''
import drupe
import drupe.array as da
program = drupe.Program("""
    kernel void spin%d(global float *out, const int rounds)
    {
        float x = 1;
        for (int i = 0; i < rounds; i++) x = x * 1.000001f + 0.5f;
        out[0] = x;
    }
""", device="opencl:cpu")
out = da.zeros(1, dtype="float32", device=program.device)
spin = program["spin%d"]
spin(out, 1000, global_size=1).wait()
'''
LONG = "event = spin(out, 1_500_000_000, global_size=1)\nprint('waiting', flush=True)\n"


@pytest.fixture
def opencl(kernel):
    if kernel.run("import drupe; assert drupe.devices('opencl:cpu')", timeout=60).status != "ok":
        pytest.skip("no OpenCL device for CPUs on this machine")
    return kernel


def interrupted_wait(kernel, code):
    msg_id = kernel.send(code)
    kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "waiting" in m["content"]["text"]
                      and m["parent_header"].get("msg_id") == msg_id, 60)
    time.sleep(0.2)
    kernel.interrupt()
    run = kernel.finish(msg_id, 20)
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert kernel.run("event.wait(); 1+1", timeout=60).result == "2"  # the work itself was not harmed


@pytest.mark.parametrize("wait", ["event.wait()", "event.queue.wait()", "float(out.sum())"])
def test_a_device_wait_is_broken(opencl, wait):
    assert opencl.run(SETUP % (1, 1), timeout=60).status == "ok"
    interrupted_wait(opencl, LONG + wait)


def test_a_device_wait_is_broken_after_the_compiler_took_the_signal(opencl):
    """The program is compiled in the cell that is interrupted: its text is new, so no cache answers."""
    unique = time.time_ns() % 1_000_000_007
    interrupted_wait(opencl, SETUP % (unique, unique) + LONG + "event.wait()")


UNTIL_DONE = "while not event.done: time.sleep(0.01)"


def test_a_late_failure_fails_its_cell(kernel):
    run = kernel.run("import drupe, time, testwork\nfrom drupe import _engine\n"
                     "event = testwork.task(drupe.Queue('host'), 0.01, 'the bearing broke')\n" + UNTIL_DONE)
    assert run.status == "error" and "the bearing broke" in run.reply["evalue"]
    assert "the bearing broke" in run.of("error")[0]["evalue"]
    assert kernel.run("1+1").result == "2"


def test_a_failure_after_its_cell_is_shown_there_and_raised_in_the_next(kernel):
    first = kernel.run("import drupe, time, testwork\nfrom drupe import _engine\nhold = _engine._event_open('hold')\n"
                       "event = testwork.task(drupe.Queue('host'), 0, 'too late', [hold])")
    assert first.status == "ok"
    second = kernel.run("hold._finish()\n" + UNTIL_DONE)
    assert second.status == "error" and "too late" in second.reply["evalue"]
    shown = kernel.wait_iopub(lambda m: m["msg_type"] == "error" and m["parent_header"].get("msg_id") == first.id)
    assert "too late" in shown["content"]["evalue"]


def errors_of(kernel, msg_id):
    kernel.poll(0.2)
    return [m["content"] for m in kernel.of_parent(msg_id) if m["msg_type"] == "error"]


def held(kernel, gate, more=""):
    """A cell after which `idle_queue` is a queue, and `hold` an event that ends once the gate is open."""
    run = kernel.run("import drupe, threading, testwork\nfrom drupe import _engine\nidle_queue = drupe.Queue('host')\n"
                     "hold = _engine._event_open('hold')\ndef release():\n    %s\n    hold._finish()\n"
                     "threading.Thread(target=release).start()\n" % gate.wait.replace("\n", "\n    ") + more)
    assert run.status == "ok", run.reply
    return run.reply["execution_count"]


def test_a_failure_while_no_cell_runs_is_shown_at_once_and_raised_once(kernel, gate):
    held(kernel, gate)
    first = kernel.run("event = testwork.task(idle_queue, 0, 'nobody looked', [hold])")
    assert first.status == "ok"
    gate.open()
    shown = kernel.wait_iopub(lambda m: m["msg_type"] == "error" and m["parent_header"].get("msg_id") == first.id)
    number = first.reply["execution_count"]
    assert shown["content"]["evalue"] == ("'task' on host:cpu:0 failed (cell [%d], line 1): nobody looked\n"
                                          "Submitted by cell [%d], line 1." % (number, number))
    second = kernel.run("1+1")
    assert second.status == "error"
    assert "Submitted by cell [%d], line 1, whose output shows this error too" % number in second.reply["evalue"]
    assert kernel.run("1+1").result == "2"
    assert len(errors_of(kernel, first.id)) == 1
    (told,) = errors_of(kernel, second.id)
    assert second.result == "2" and told["evalue"] == second.reply["evalue"]
    assert told["traceback"] == ["Work of cell [%d] failed after its end: InternalError: 'task' on host:cpu:0 failed "
                                 "(cell [%d], line 1): nobody looked" % (number, number)]


def with_id(kernel, code, cell_id, **options):
    """An execute_request of a front-end that names its cells, not waited for."""
    message = kernel.client.session.msg("execute_request", {"code": code, "silent": False, "store_history": True,
                                                            "allow_stdin": False, "stop_on_error": True, **options})
    message["metadata"] = {"cellId": cell_id}
    kernel.client.shell_channel.send(message)
    return message["header"]["msg_id"]


def test_a_failure_of_another_cell_is_one_line_that_leads_there(kernel, gate):
    """In notebooks: the result, the line, and no traceback; the reply is an error, and what is queued does not run."""
    held(kernel, gate)
    first = kernel.finish(with_id(kernel, "event = testwork.task(idle_queue, 0, 'a <b> broke', [hold])", 'one"two'))
    gate.open()
    kernel.wait_iopub(lambda m: m["msg_type"] == "error" and m["parent_header"].get("msg_id") == first.id)
    number = first.reply["execution_count"]
    second, queued = [with_id(kernel, code, "three") for code in ("import time; time.sleep(0.2)\n1+1", "print('no')")]
    queued, second = kernel.finish(queued), kernel.finish(second)
    assert second.status == "error" and second.reply["ename"] == "InternalError" and queued.status == "aborted"
    assert "a <b> broke" in second.reply["evalue"] and len(second.reply["traceback"]) > 2
    assert second.result == "2" and not second.of("error") and not second.of("stream")
    (line,) = second.of("display_data")
    assert line["data"]["text/plain"] == ("Work of cell [%d] failed after its end: InternalError: 'task' on host:cpu:0 "
                                          "failed (cell [%d], line 1): a <b> broke" % (number, number))
    assert '<a href="#cell-id=one&quot;two">cell [%d]</a>' % number in line["data"]["text/html"]
    assert "a &lt;b&gt; broke" in line["data"]["text/html"]
    assert kernel.run("import sys; raise sys.last_value").of("error")[0]["traceback"][2:]  # here it is wanted


def test_a_failure_that_no_cell_shows_comes_before_those_of_others(kernel, gate, tmp_path):
    """Work that a thread without a cell submits while none runs."""
    held(kernel, gate)
    assert kernel.run("event = testwork.task(idle_queue, 0, 'an old one', [hold])").status == "ok"
    start, made = tmp_path / "start", tmp_path / "made"
    assert kernel.run("import _thread, contextvars, pathlib, time\nheld = _engine._event_open('held')\n"
                      "own = drupe.Queue('host')\ndef submit():\n    global other\n"
                      "    while not pathlib.Path(%r).exists(): time.sleep(0.01)\n"
                      "    other = testwork.task(own, 0, 'of no cell', [held])\n    pathlib.Path(%r).touch()\n"
                      "_thread.start_new_thread(contextvars.Context().run, (submit,))" % (str(start), str(made))
                      ).status == "ok"
    start.touch()
    support.wait_until(made.exists, what="the submission")
    run = kernel.run("open(%r, 'w').close()\nwhile not event.done: time.sleep(0.01)\n"
                     "held._finish()\nwhile not other.done: time.sleep(0.01)" % gate.path)
    (shown,) = run.of("error")
    assert run.status == "error" and "of no cell" in run.reply["evalue"] and len(shown["traceback"]) > 1
    assert any("an old one" in line for line in shown["traceback"])


def test_a_cells_own_failure_comes_before_those_of_others(kernel, gate):
    held(kernel, gate)
    first = kernel.run("event = testwork.task(idle_queue, 0, 'an old one', [hold])")
    run = kernel.run("own = drupe.Queue('host')\nheld = _engine._event_open('held')\nimport time\n"
                     "new = testwork.task(own, 0, 'a new one', [held])\n"
                     "open(%r, 'w').close()\nwhile not event.done: time.sleep(0.01)\n"
                     "held._finish()\nwhile not new.done: time.sleep(0.01)" % gate.path)
    assert run.status == "error" and "a new one" in run.reply["evalue"]
    assert any("an old one" in line for line in run.reply["traceback"])
    assert run.of("error")[0]["traceback"] == run.reply["traceback"] and not run.of("display_data")
    assert "an old one" in errors_of(kernel, first.id)[0]["evalue"]


def test_a_cells_own_failure_names_all_those_of_others(kernel, gate):
    """Those that came before it, too."""
    held(kernel, gate)
    assert kernel.run("queues = [drupe.Queue('host') for name in 'abc']\n"
                      "old = [testwork.task(queue, 0, 'old ' + name, [hold]) for queue, name in zip(queues, 'abc')]"
                      ).status == "ok"
    run = kernel.run("own = drupe.Queue('host')\nheld = _engine._event_open('held')\nimport time\n"
                     "new = testwork.task(own, 0, 'a new one', [held])\nopen(%r, 'w').close()\n"
                     "while not all(event.done for event in old): time.sleep(0.01)\n"
                     "held._finish()\nwhile not new.done: time.sleep(0.01)" % gate.path)
    assert run.status == "error" and "a new one" in run.reply["evalue"]
    text = "\n".join(run.reply["traceback"])
    assert [text.count("): old " + name) for name in "abc"] == [1, 1, 1]


def late_error(kernel, gate, code):
    """The `error` under a cell that had ended, its traceback in lines; and the cell's number. The next cell takes what
    is raised for it."""
    run = kernel.run(code)
    assert run.status == "ok", run.reply
    gate.open()
    shown = kernel.wait_iopub(lambda m: m["msg_type"] == "error" and m["parent_header"].get("msg_id") == run.id)
    raised = kernel.run("1+1")
    assert raised.status == "error" and kernel.run("1+1").result == "2"
    return "\n".join(shown["content"]["traceback"]).split("\n"), run.reply["execution_count"], raised


LATE = ("text = 'eins \U0001f980 \\x1b \u00df'\n\n# before\n"
        "event = testwork.task(idle_queue, 0, 'nobody looked', [hold])\n"
        "def after():\n    return %s\n\nprint('not shown')")


def test_a_late_error_marks_the_line_that_submitted_the_work(kernel, gate):
    held(kernel, gate, "%colors NoColor")
    lines, number, raised = late_error(kernel, gate, LATE % ("'" + "x" * 400 + "'"))
    kernel.run("%colors Neutral")
    assert lines[0] == "-" * 75 and lines[1].startswith("InternalError ") and len(lines[1]) == 75
    assert lines[2:9] == [
        f"Cell In[{number}], line 4", "      1 text = 'eins \U0001f980 \\x1b \u00df'", "      2 ", "      3 # before",
        "----> 4 event = testwork.task(idle_queue, 0, 'nobody looked', [hold])", "      5 def after():",
        "      6     return '" + "x" * 188 + "..."]
    assert lines[11].startswith("InternalError: 'task' on host:cpu:0 failed (cell [%d], line 4): " % number)
    assert lines[13].startswith("Host function 'task', host:cpu:0, queue ") and len(lines) == 14
    # The exception in the next cell points to the same line.
    assert f"Cell In[{number}], line 4" in raised.reply["traceback"][2]


def test_a_late_error_has_the_colours_of_other_errors(kernel, gate):
    held(kernel, gate)
    lines, number, raised = late_error(kernel, gate, LATE % 1)
    assert "\x1b[31mInternalError\x1b[39m: 'task'" in lines[11] and "\x1b[32m----> 4\x1b[39m event" in lines[6]


def test_a_late_error_of_a_helper_marks_its_line(kernel, gate):
    held(kernel, gate)
    helper = kernel.run("# 1\n# 2\n# 3\ndef work():\n"
                        "    return testwork.task(idle_queue, 0, 'x', [hold])").reply["execution_count"]
    lines, number, raised = late_error(kernel, gate, "%colors NoColor\nevent = work()")
    kernel.run("%colors Neutral")
    assert lines[2] == f"Cell In[{helper}], line 5" and lines[6].startswith("----> 5     return testwork.task(")
    assert f"Submitted by cell [{number}], line 5 of cell [{helper}]." in lines


def test_the_error_names_cell_and_line_and_no_frames_of_the_kernel(kernel):
    helper = kernel.run("import drupe, time, testwork\nfrom drupe import _engine\ndef work(queue):\n"
                        "    return testwork.task(queue, 0.01, 'broken')")
    run = kernel.run("x = 1\nevent = work(drupe.Queue('host'))\n" + UNTIL_DONE)
    assert run.status == "error"
    assert ("Submitted by cell [%d], line 4 of cell [%d]:\n    return testwork.task(queue, 0.01, 'broken')" % (
        run.reply["execution_count"], helper.reply["execution_count"])) in run.reply["evalue"]
    (shown,) = errors_of(kernel, run.id)
    assert not any("drupe/jupyter" in line for line in shown["traceback"])


HELD = """
import dataclasses, drupe
import drupe.array as da
from drupe import _engine
from drupe.array import _text

@dataclasses.dataclass
class Pair:
    name: str
    x: object
    y: object

hold = _engine._event_open("hold")
queue = drupe.Queue("host")
queue.barrier(wait_for=[hold])
x = da.arange(3, device=queue)
"""


def test_a_display_shows_what_is_over_soon(kernel):
    """Work of a tenth of a second; a display has a minute here, so that a busy machine makes no difference."""
    setup = "import drupe, testwork, drupe.array as da\nfrom drupe import _engine\nfrom drupe.array import _text\n"
    assert kernel.run(setup + "_text.DISPLAY = 60\nqueue = drupe.Queue('host')").status == "ok"
    work = "task = testwork.task(queue, 0.1)\nx = da.arange(3, device=queue)\n"
    assert "[0, 1, 2]" in kernel.run(work + "x").result
    assert kernel.run(work + "[x, x]").result.count("array([0, 1, 2]") == 2
    assert kernel.run("_text.DISPLAY = 0.05").status == "ok"


@pytest.mark.parametrize("shown, count", [("x", 1), ("[x, x + 1]", 2), ("Pair('two', x, x)", 2),
                                          ("{'x': x, 'pair': Pair('two', x, x)}", 3)])
def test_what_holds_arrays_is_shown_without_waiting_for_long(kernel, shown, count):
    """The work ends only afterwards."""
    run = kernel.run(HELD + shown)
    assert run.status == "ok" and ("not over" in run.result or "array(shape=(3,)" in run.result)
    result = kernel.run("hold._finish()\nqueue.wait()\n" + shown).result
    assert len(re.findall(r"\[\d, \d, \d\]", result)) == count


def test_a_display_that_waits_is_broken_by_an_interrupt(kernel):
    """In a display that may wait for an hour."""
    cell = kernel.send(HELD + "_text.DISPLAY = 3600\nprint('waiting', flush=True)\nx")
    kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "waiting" in m["content"]["text"])
    kernel.interrupt()
    run = kernel.finish(cell)
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert kernel.run("_text.DISPLAY = 0.05\nhold._finish()\nqueue.wait()\nx").status == "ok"


def test_an_event_updates_itself_once(kernel):
    run = kernel.run("import drupe\nfrom drupe import _engine\ngate = _engine._event_open('gate')\n"
                     "event = drupe.Queue('host').barrier(wait_for=[gate])\nevent")
    (shown,) = run.of("display_data")
    assert not run.of("execute_result") and shown["transient"]["display_id"]
    assert "Event barrier: queued" in shown["data"]["text/plain"] and "queued" in shown["data"]["text/html"]
    assert kernel.run("gate._finish()").status == "ok"
    updated = kernel.wait_iopub(lambda m: m["msg_type"] == "update_display_data")
    assert updated["content"]["transient"] == shown["transient"] and updated["parent_header"]["msg_id"] == run.id
    assert "Event barrier: complete" in updated["content"]["data"]["text/plain"]
    over = kernel.run("event")
    assert "Event barrier: complete" in over.result and not over.of("display_data")
    kernel.poll(0.2)
    updates = [m for m in kernel.log if m["msg_type"] == "update_display_data"]
    assert sum(m["parent_header"]["msg_id"] == run.id for m in updates) == 1


@pytest.mark.parametrize("text, word, says", [("None", "complete", "ran "),
                                              ("'a <b> broke'", "failed", "a <b> broke")])
def test_an_event_updates_itself_while_python_is_stuck(kernel, text, word, says, tmp_path):
    run = kernel.run("import drupe, testwork\nfrom drupe import _engine\nqueue = drupe.Queue('host')\n"
                     "gate = testwork.task(queue, 0.5)\nevent = testwork.task(queue, 0.0, %s)\nevent" % text)
    (shown,) = run.of("display_data")
    with support.stuck(kernel, tmp_path) as cell:
        updated = kernel.wait_iopub(lambda m: m["msg_type"] == "update_display_data"
                                    and m["content"]["transient"] == shown["transient"])
        ended = cell.free()
    data = updated["content"]["data"]
    assert updated["parent_header"]["msg_id"] == run.id and "Event task: " + word in data["text/plain"], data
    assert says in data["text/plain"] and says.replace("<", "&lt;").replace(">", "&gt;") in data["text/html"], data
    assert "cell [" in data["text/plain"] and "\x01" not in data["text/plain"] + data["text/html"]
    # Once more for clients that listen to the cell which runs alone.
    again = [content for content in ended.of("update_display_data") if content["transient"] == shown["transient"]]
    assert [content["data"] for content in again] == [data]
    assert not kernel.run("pass").of("update_display_data")  # takes the failure


PROGRESS = ("import drupe\nfrom drupe import _engine\ngate = _engine._event_open('gate')\n"
            "other = _engine._event_open('other')\nother._finish()\nimport os, threading, time\n"
            "def finish():\n    while not os.path.exists(%r): time.sleep(0.01)\n    gate._finish()\n"
            "threading.Thread(target=finish).start()\nbar = drupe.progress([gate, other], 'sweep').wait()")


def test_progress_is_a_display_where_the_front_end_knows_cells(kernel, tmp_path):
    code = PROGRESS % str(tmp_path / "go")
    message = kernel.client.session.msg("execute_request", {"code": code, "silent": False, "store_history": True,
                                                            "allow_stdin": False, "stop_on_error": True})
    message["metadata"] = {"cellId": "one"}
    kernel.client.shell_channel.send(message)
    kernel.wait_iopub(lambda m: m["msg_type"] == "display_data", what="the bar")
    began = time.monotonic()
    (tmp_path / "go").touch()
    run = kernel.finish(message["header"]["msg_id"])
    (shown,), updates = run.of("display_data"), run.of("update_display_data")
    assert shown["data"]["text/plain"].startswith("sweep   50 % [") and "<div" in shown["data"]["text/html"]
    assert updates[-1]["data"]["text/plain"].endswith("done") and updates[-1]["transient"] == shown["transient"]
    assert len(updates) < 6 + 10 * (time.monotonic() - began) and run.text() == ""


def test_progress_is_a_line_elsewhere_and_can_be_interrupted(kernel, tmp_path):
    msg_id = kernel.send(PROGRESS % str(tmp_path / "go"))
    kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "sweep" in m["content"]["text"], what="the bar")
    (tmp_path / "go").touch()
    run = kernel.finish(msg_id)
    lines = run.text().split("\r")
    assert lines[0].startswith("sweep   50 % [") and lines[-1].rstrip().endswith("done") and not run.of("display_data")
    msg_id = kernel.send("gate = _engine._event_open('gate')\ndrupe.progress([gate, other], 'long').wait()")
    kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "long" in m["content"]["text"])
    kernel.interrupt()
    stopped = kernel.finish(msg_id)
    assert stopped.reply["ename"] == "KeyboardInterrupt" and stopped.text().rstrip().endswith("interrupted")
    assert kernel.run("gate._finish(); gate.wait(); 1+1").result == "2"


SLOW = '''
import drupe
body = "\\n".join("x = x * %d.5f + sin(x) * cos(x + %d);" % (i, i) for i in range(SIZE))
text = "kernel void slowly(global float *a) { float x = a[0] + %d.0f; " % (UNIQUE % 999983) + body + " a[0] = x; }"
text = "#define UNUSED kernel void unseen\\n" + text
program = drupe.Program(text, device="opencl:cpu", cache=False)
'''


def timed(kernel, code):
    """The code in a cell that took less than a quarter of a second, as it does unless the machine is busy elsewhere."""
    def once():
        run = kernel.run("import time\nbegan = time.monotonic()\n%s\ntime.monotonic() - began" % code, timeout=120)
        return float(run.result) < 0.25 and run

    return support.wait_until(once, what="a moment in which this is quick")


def test_a_long_build_is_told_and_a_short_one_is_not(opencl):
    """As much text as this machine needs half a second for; the compiler's own caches must not know it."""
    size, messages = 500, []
    while not messages and size <= 64000:
        run = opencl.run(SLOW.replace("SIZE", str(size)).replace("UNIQUE", str(time.time_ns())), timeout=120)
        assert run.status == "ok", run.reply
        messages = run.of("display_data")
        size *= 2
    (shown,), updates = messages, run.of("update_display_data")
    assert shown["data"]["text/plain"].startswith("building slowly for opencl:cpu:0 ... ")
    assert updates[-1]["data"]["text/plain"].startswith("built slowly for opencl:cpu:0 in ")
    assert updates[-1]["transient"] == shown["transient"]
    quick = timed(opencl, "drupe.Program('kernel void f(global int *a) { a[0] = 1; }', device='opencl:cpu')")
    assert not quick.of("display_data") and not quick.of("update_display_data")


def test_a_first_launch_that_compiles_is_told_and_the_next_is_not(opencl):
    """PoCL compiles for a work-group size when it is first used, in a thread of its own."""
    size, messages = 100, []
    code = "a = drupe.memory.MemoryUSMDevice(4096, device=program.device)\nprogram.slowly(a, global_size=64).wait()"
    while not messages and size <= 6400:
        build = opencl.run(SLOW.replace("SIZE", str(size)).replace("UNIQUE", str(time.time_ns())), timeout=120)
        assert build.status == "ok", build.reply
        run = opencl.run(code, timeout=120)
        assert run.status == "ok", run.reply
        messages = run.of("display_data")
        size *= 2
    (shown,), updates = messages, run.of("update_display_data")
    assert shown["data"]["text/plain"].startswith("preparing the first launch of slowly on opencl:cpu:0 ... ")
    assert updates[-1]["data"]["text/plain"].startswith("prepared the first launch of slowly on opencl:cpu:0 in ")
    assert all(update["transient"] == shown["transient"] for update in updates)
    again = timed(opencl, "program.slowly(a, global_size=64).wait()")
    assert not again.of("display_data") and not again.of("update_display_data")


WIDE = """
import drupe
import drupe.array as da
program = drupe.Program("kernel void twice(float *a, int n) { if (get_global_id(0) < n) a[get_global_id(0)] *= 2; }",
                        "host", language="c")
a = da.ones(16, dtype="float32", device="host")
memory = drupe.memory.MemoryUSMDevice(4096, device="host")
twice = program.twice
"""


def test_a_launch_far_wider_than_its_arrays_is_told_once(kernel):
    if kernel.run(WIDE).status != "ok":
        pytest.skip("no C compiler on this machine")
    run = kernel.run("for n in (16, 1_000_000, 1_000_000, 2_000_000):\n    twice(a, 16, global_size=n).wait()")
    (line,) = run.text("stderr").splitlines()
    assert line.startswith("twice (cell [%d], line 2): 1000000 work-items, and the largest array has 16 elements. "
                           % run.reply["execution_count"]) and "`with drupe.checked():`" in line
    (line,) = kernel.run("twice(memory, 16, global_size=5000, event=False)\na.queue.wait()").text("stderr").splitlines()
    assert "5000 work-items, and the largest array has 1024 elements" in line
    # The size stays and the array changes, in a second place.
    assert not kernel.run("n = 5000\nlarge = da.ones(n, dtype='float32', device='host')\n"
                          "twice(large, 16, global_size=n).wait()").text("stderr")
    assert kernel.run("twice(a, 16, global_size=n).wait()").text("stderr").count("5000 work-items") == 1


def test_a_launch_of_a_kernel_in_python_is_looked_at_too(kernel):
    """Its work-items are those of the user, whatever the device is given."""
    if kernel.run(WIDE).status != "ok":
        pytest.skip("no C compiler on this machine")
    kernel.run("""
        from drupe import _engine
        def slow(space, wait_for, args):
            plan = (("pointer", (0,)), ("value", (1,), "int32"))
            launcher.add(args, space, twice, plan, "host_range", (), grain=1 << 30)
        launcher = _engine._Launcher(None, slow)
    """)
    run = kernel.run("for n in (16, 1_000_000, 1_000_000, 2_000_000):\n"
                     "    launcher(drupe.Range(n), None, (a, 16)).wait()")
    (line,) = run.text("stderr").splitlines()
    assert line.startswith("twice (cell [%d], line 2): 1000000 work-items, and the largest array has 16 elements. "
                           % run.reply["execution_count"])
    run = kernel.run("launcher(drupe.Range(40, 3000), None, (a, 16)).wait()")
    assert run.text("stderr").count("3000 work-items") == 1


def test_launches_that_may_be_meant_are_not_told(kernel):
    """A range that was rounded up, all pairs of elements, checked mode, and what is no launch over arrays."""
    if kernel.run(WIDE).status != "ok":
        pytest.skip("no C compiler on this machine")
    run = kernel.run("twice(a, 16, global_size=1024).wait()\ntwice(memory, 16, global_size=2000).wait()\n"
                     "twice(memory, 16, global_size=(1024, 1024)).wait()\n"
                     "with drupe.checked():\n    twice(a, 16, global_size=100_000).wait()\n"
                     "drupe.Program('kernel void f(int n) {}', 'host', language='c').f(1, global_size=100_000).wait()")
    assert run.status == "ok" and not run.text("stderr"), (run.reply, run.text("stderr"))


PRINTING = r'''
import drupe, time
program = drupe.Program("""
    kernel void talk(global float *out, const int rounds, const int who)
    {
        float x = 1;
        for (int i = 0; i < rounds; i++) x = x * 1.000001f + 0.5f;
        out[0] = x;
        printf("kernel %d speaks\\n", who);
    }
""", device="opencl:cpu")
out = drupe.memory.MemoryUSMDevice(256, device=program.device)
program.talk(out, 1, 0, global_size=1).wait()
'''


def test_what_a_kernel_prints_arrives_in_the_cell_that_launched_it(opencl):
    first = opencl.run(PRINTING, timeout=60)
    assert first.status == "ok" and first.text() == "kernel 0 speaks\n"
    launch = "gate = drupe._engine._event_open('gate')\n" + "".join(
        f"last = program.talk(out, 1000, {n}, global_size=1, wait_for=[gate])\n" for n in (1, 2))
    cells = [opencl.run(launch), opencl.run("last = program.talk(out, 1000, 3, global_size=1)")]
    waiting = opencl.run("print('this cell')\ngate._finish()\nlast.wait()\nprint('waited')")
    assert waiting.status == "ok"

    def spoken(run):
        return "".join(message["content"]["text"] for message in opencl.of_parent(run.id)
                       if message["msg_type"] == "stream")

    support.wait_until(lambda: opencl.poll() or "3 speaks" in spoken(cells[1]), what="the last kernel's text")
    assert spoken(cells[0]) == "kernel 1 speaks\nkernel 2 speaks\n"
    assert spoken(cells[1]) == "kernel 3 speaks\n" and spoken(waiting) == "this cell\nwaited\n"
    # Soon the descriptor is the running cell's again.
    support.wait_until(lambda: opencl.run("import os; os.write(1, b'raw\\n'); 1").text() == "raw\n", what="raw text")


def test_an_asynchronous_failure_of_a_driver(spec_folder):
    """A kernel that fails when it lands, by plan: what it was called with is told."""
    kernel = support.Kernel(spec_folder, faulty.environment("event:1+=late"))
    try:
        made = kernel.run("import drupe\nimport drupe.array as da\nprogram = drupe.Program("
                          "'kernel void add(global float *out, float a, int n) { out[get_global_id(0)] = a + n; }',"
                          "device='opencl:cpu')\nmemory = drupe.memory.MemoryUSMDevice(256, device='opencl:cpu')",
                          timeout=60)
        if made.status != "ok":
            pytest.skip("no OpenCL device for CPUs on this machine")
        run = kernel.run("program.add(memory, 0.25, 7,\n            global_size=64)\nimport time\n"
                         "while not drupe._engine._failures(): time.sleep(0.01)\ntime.sleep(0.1)")
        assert run.status == "error" and run.reply["ename"] == "InternalError"
        first, *rest = run.reply["evalue"].split("\n")
        assert first.startswith("'add' on opencl:cpu:0 failed (cell [%d], line 1): " % run.reply["execution_count"])
        assert rest[:3] == ["Submitted by cell [%d], line 1:" % run.reply["execution_count"],
                            "    program.add(memory, 0.25, 7,",
                            "Called with: out = device memory of 256 bytes, a = 0.25, n = 7; 64 work-items."]
    finally:
        kernel.close()


def test_the_report_of_a_crash_ends_with_the_device_operations(fresh):
    fresh.run("import drupe, ctypes, testwork\nfrom drupe import _engine\nqueue = drupe.Queue('host')\n"
              "memory = drupe.memory.MemoryUSMDevice(64, queue=queue)")
    code = ("for i in range(40): queue.fill(memory, i, event=False)\nqueue.wait()\ntestwork.task(queue, 60)\n"
            "queue.fill(memory, 1)\nctypes.string_at(0)")
    msg_id = fresh.client.execute(code)
    support.wait_until(lambda: fresh.poll() or fresh.manager.provisioner.process.poll(), what="the end of the process")
    (content,) = errors_of(fresh, msg_id)
    lines = "\n".join(content["traceback"]).split("\n")
    records = [line for line in lines if line.startswith("#")]
    assert lines[lines.index(records[0]) - 1] == "Last device operations:" and 20 <= len(records) <= 32
    assert "'fill' on host:cpu:0 (queue 1), cell [2], line 1, 64 bytes: submitted " in records[0]
    assert "'task' on host:cpu:0 (queue 1), cell [2], line 3: submitted " in records[-2]
    assert records[-1].endswith("ago, not known to be over") and "line 4" in records[-1]
    # The next kernel tells the last few of them again.
    fresh.manager.restart_kernel(now=True)
    fresh.client.wait_for_ready(timeout=support.TIMEOUT)
    told = fresh.run("1").text("stderr").split("\n")
    assert told[0].startswith("The previous kernel ended by SIGSEGV while cell [2] ran") and told[-1] == ""
    assert told[1] == "Last device operations:" and told[2:-1] == records[-5:]


def test_checked_mode_names_cells_and_lines(kernel):
    assert kernel.run("import drupe\nfrom drupe.memory import MemoryUSMShared\none = drupe.Queue('host')\n"
                      "other = drupe.Queue(one.device, one.context)\nmemory = MemoryUSMShared(4096, queue=one)\n"
                      "mode = drupe.checked().__enter__()", timeout=60).status == "ok"
    first = kernel.run("a = 1\none.fill(memory, 1);")
    second = kernel.run("a = 1\nb = 2\nother.fill(memory, 2)")
    assert second.reply["ename"] == "CheckError"
    for run, line in ((first, 2), (second, 3)):
        assert f"cell [{run.reply['execution_count']}], line {line}" in second.reply["evalue"]
    assert kernel.run("one.wait(); mode.__exit__(None, None, None)").status == "ok"


FAILED = """
import concurrent.futures, drupe, drupe.array as da
future = concurrent.futures.Future()
x = da.ones(5, device=drupe.Queue("host"))
x.queue.barrier(wait_for=[drupe.Event.from_future(future)])
y = x + 1
def show(): print(y)
future.set_exception(ValueError("no data"))
try: y.queue.wait()
except drupe.DeviceError: pass
"""


@pytest.mark.parametrize("code", ["print(y)", "show()", "da.squeeze(y, 0)", "drupe.device('npu').__enter__()"])
def test_tracebacks_show_the_users_frames(kernel, code):
    assert kernel.run(FAILED).status == "ok"

    def files():
        shown = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(kernel.run(code).reply["traceback"]))
        return re.findall(r"^(?:File|Cell) .*", shown, re.MULTILINE)

    try:
        shown = files()
        assert len(shown) == (2 if code == "show()" else 1) and all(line.startswith("Cell ") for line in shown), shown
        kernel.run("%xmode Verbose")
        assert any("drupe" in line for line in files())
    finally:
        kernel.run("%xmode Context")
