"""Displays that move: %dashboard, %events --live and %memory --live, while Python is stuck and otherwise."""
import collections
import os
import re
import time

import debugging
import pytest
import support

PATIENCE = 60
TRACE = "application/vnd.drupe.trace+json"
SETUP = """
import ctypes, time
import drupe, drupe.array as da
if "door" in globals() and not door.done():
    door.set_result(1)
x = da.ones(1 << 18, dtype="float32")
x.queue.wait()

def submit(count):
    y = x
    with da.eager():
        for _ in range(count):
            y = y + x
    return y
"""
# The device has work that cannot end before its door is opened.
GATED = "import concurrent.futures\ndoor = concurrent.futures.Future()\n" \
    "x.queue.barrier(wait_for=[drupe.Event.from_future(door)])\ny = submit(%d)\n"


class Stuck(support.Stuck):
    """With the frames that it has shown."""

    def frames(self):
        return frames(self.kernel.of_parent(self.id))

    def wait_frames(self, enough):
        """Wait until `enough(frames)` holds for those of the cell."""
        def there():
            self.kernel.poll(0.05)
            return enough(self.frames())
        support.wait_until(there, PATIENCE, "enough frames while Python is stuck")


def stuck(kernel, path, code):
    return support.stuck(kernel, path, code, Stuck)


ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def own(fresh):
    """A kernel that the test may end."""
    assert fresh.run(SETUP).status == "ok"
    return fresh


@pytest.fixture
def engine(kernel):
    assert kernel.run("%reset -f out\n%dashboard off\n" + SETUP).status == "ok"
    kernel.log.clear()
    return kernel


def frames(messages):
    """The displays and their updates, as (msg_type, display id, data)."""
    return [(message["msg_type"], message["content"].get("transient", {}).get("display_id"), message["content"]["data"])
            for message in messages if message["msg_type"] in ("display_data", "update_display_data")]


def is_live(data):
    return ">live<" in data["text/html"]


def settled(kernel, silence=1.5):
    """Wait until no message has come for so long; the whole log."""
    seen, since, end = len(kernel.log), time.monotonic(), time.monotonic() + support.TIMEOUT
    while time.monotonic() - since < silence:
        assert time.monotonic() < end, "messages go on and on"
        kernel.poll(0.05)
        if len(kernel.log) != seen:
            seen, since = len(kernel.log), time.monotonic()
    return kernel.log


def recorded(kernel):
    """Wait until the last frame is a record, then for silence; the whole log."""
    def static():
        kernel.poll(0.05)
        return not is_live(frames(kernel.log)[-1][2])
    support.wait_until(static, PATIENCE, "the record")
    return settled(kernel)


def test_a_dashboard_moves_while_python_is_stuck(own, tmp_path):
    with stuck(own, tmp_path, "%dashboard\n" + GATED % 200) as cell:
        cell.wait_frames(lambda shown: len({data["text/html"] for _, _, data in shown[1:]}) >= 5)
        assert all(is_live(data) for _, _, data in cell.frames()[1:])
        run = cell.free()
    assert run.status == "ok"
    shown = frames(run.messages)
    kinds = [kind for kind, _, _ in shown]
    assert kinds[0] == "display_data" and set(kinds[1:]) == {"update_display_data"}
    assert len({name for _, name, _ in shown}) == 1 and shown[0][1].startswith("drupe-")
    for _, _, data in shown:
        assert set(data) == {"text/plain", "text/html", TRACE}
        assert data[TRACE]["version"] == 1 and len(data[TRACE]["spans"]) <= 500
        assert len(data["text/html"]) < 60 << 10
    own.run("door.set_result(1)\ny.queue.wait()", timeout=60)
    log = recorded(own)
    last = frames(log)[-1][2]
    assert not is_live(last) and "busy" in last["text/plain"] and "kernels" in last["text/plain"]
    about = [(is_live(message["content"]["data"]), message["content"]["metadata"][TRACE]) for message in log
             if message["msg_type"] == "update_display_data"]  # what JupyterLab's panel is told of a frame
    assert about and all(told == {"kind": "dashboard", **({"live": True} if live else {})} for live, told in about)
    before = len(log)
    own.run("pass")
    assert not [message for message in settled(own)[before:] if message["msg_type"] == "update_display_data"]


def test_at_most_two_frames_a_second(engine, tmp_path):
    start = time.monotonic()
    with stuck(engine, tmp_path, "%dashboard\n" + GATED % 500) as cell:
        cell.wait_frames(lambda shown: len(shown) >= 6)
        run = cell.free()
    seconds = time.monotonic() - start
    assert len(frames(run.messages)) <= 2 * seconds + 3


def test_the_record_of_a_cell_is_static(engine):
    """What clients have that stop listening when a cell is over, as nbclient does."""
    run = engine.run("%dashboard\ny = submit(30)\ny.queue.wait()\nusers = 1")
    assert run.status == "ok"
    _, _, last = frames(run.messages)[-1]
    assert not is_live(last) and "30 kernels" in last["text/plain"]
    run = engine.run("y = submit(12)\ny.queue.wait()")
    (_, name, last), = frames(run.messages)[-1:]
    assert "42 kernels" in last["text/plain"] and not is_live(last)
    assert name == frames(engine.log)[0][1]


def test_off_leaves_it(engine):
    engine.run("%dashboard")
    engine.run("%dashboard off")
    before = len(settled(engine))
    engine.run("submit(50).queue.wait()")
    assert not frames(settled(engine)[before:])
    assert engine.run("print(drupe._engine._live_show())").text() == "[]\n"


def test_a_cell_that_runs_again_ends_its_display(engine):
    def run(code, cell):
        message = engine.client.session.msg("execute_request", {
            "code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
            "stop_on_error": True}, metadata={"cellId": cell})
        engine.client.shell_channel.send(message)
        return engine.finish(message["header"]["msg_id"])

    run("%dashboard", "a")
    run("%dashboard", "b")
    assert len(eval(engine.run("print(drupe._engine._live_show())").text())) == 2
    run("pass", "a")
    assert len(eval(engine.run("print(drupe._engine._live_show())").text())) == 1
    run("%dashboard", "b")
    assert len(eval(engine.run("print(drupe._engine._live_show())").text())) == 1


def test_two_displays(engine, tmp_path):
    def counts(shown):
        return sorted(collections.Counter(name for _, name, _ in shown).values())

    with stuck(engine, tmp_path, "%dashboard\n%memory --live\n" + GATED % 500) as cell:
        # the memory does not change that often
        cell.wait_frames(lambda shown: len(counts(shown)) == 2 and counts(shown)[0] >= 2 and counts(shown)[1] >= 4)
        run = cell.free()
    assert len(counts(frames(run.messages))) == 2
    engine.run("door.set_result(1)\ny.queue.wait()", timeout=60)
    settled(engine)
    # That of the memory is over with its cell.
    assert len(eval(engine.run("print(drupe._engine._live_show())").text())) == 1


def test_many_displays_end_the_oldest(engine):
    for _ in range(6):
        engine.run("%dashboard")
    assert len(eval(engine.run("print(drupe._engine._live_show())").text())) == 4


def test_interrupt_while_live(own):
    msg_id = own.send("%dashboard\n" + GATED % 300 + "y.queue.wait()")
    own.wait_iopub(lambda m: m["msg_type"] == "update_display_data", what="a frame")
    own.interrupt()
    run = own.finish(msg_id, timeout=60)
    assert run.status == "error" and run.reply["ename"] == "KeyboardInterrupt"
    assert own.run("1 + 1").result == "2"


def test_restart_while_live(own, tmp_path):
    cell = Stuck(own, tmp_path / "pipe", "%dashboard\n" + GATED % 200)
    cell.wait_frames(lambda shown: len(shown) >= 2)
    own.manager.restart_kernel(now=True)
    own.client.wait_for_ready(timeout=60)
    own.log.clear()
    assert own.run("1 + 1").result == "2"
    assert not frames(settled(own))


def test_shutdown_in_peace_leaves_a_record(own):
    own.run("%dashboard\ny = submit(10)\ny.queue.wait()")
    own.client.shutdown()
    support.wait_until(lambda: not own.manager.is_alive(), timeout=60, what="the end of the kernel")
    recorded(own)


def test_a_client_that_reads_nothing(engine, tmp_path):
    """Its socket is full of what was printed; the others go on."""
    stalled = support.Raw(engine.manager, most=1)
    try:
        code = "%dashboard\nfor i in range(2000): print('x' * 2000)\n" + GATED % 500
        with stuck(engine, tmp_path, code) as cell:
            cell.wait_frames(lambda shown: len(shown) >= 3)
            assert cell.free().status == "ok"
        assert engine.run("2 + 2").result == "4"
    finally:
        stalled.close()


def test_events_live_shows_its_cell_alone(engine, tmp_path):
    engine.run("submit(5).queue.wait()")
    with stuck(engine, tmp_path, "%%events --live\ny = submit(900)\n") as cell:
        cell.wait_frames(lambda shown: len({data["text/html"] for _, _, data in shown}) >= 3)
        run = cell.free()
    assert run.status == "ok"
    shown = frames(run.messages)
    text = shown[-1][2]["text/plain"]
    assert "900 kernels" in text and "not over" not in text and not is_live(shown[-1][2])
    assert engine.run("print(drupe._engine._live_show())").text() == "[]\n"


def test_plain_events_and_their_export(engine, tmp_path):
    engine.run("submit(20).queue.wait()")
    cell = int(engine.run("print(drupe._engine._cell())").text())
    path = tmp_path / "trace.json"
    run = engine.run("%%events --cell %d -o seen --export %s" % (cell - 1, path))
    assert run.status == "ok", run.reply
    (_, name, data), = frames(run.messages)
    assert name is None and "20 kernels" in data["text/plain"].splitlines()[0]
    assert '"traceEvents"' in path.read_text()
    assert engine.run("print(type(seen).__name__, 'add' in repr(seen))").text() == "View True\n"
    assert "20 kernels" in engine.run("%events --last --table").of("display_data")[0]["data"]["text/plain"]
    for bad in ("%events --cell 5:2", "%events --cell x", "%events --gantt --table", "%events --last --cell 3",
                "%events --export /nowhere/x.json", "%dashboard sideways", "%dashboard --hz 50", "%memory --top 0",
                "%memory --cells --leaks", "%memory --diff nothing", "%memory --live host", "%memory warpdrive"):
        run = engine.run(bad)
        assert run.status == "error" and run.reply["ename"] == "UsageError", bad
        assert len(run.text("stderr").strip().splitlines()) == 1, bad


def test_events_around_a_cell_wait_for_it(engine):
    run = engine.run("%%events --table\ny = submit(300)\nint(y[0].item() > 0)")
    assert run.result == "1"
    (_, _, data), = frames(run.messages)
    assert "not over" not in data["text/plain"] and "add" in data["text/plain"]
    run = engine.run("%%events --table\n\nraise RuntimeError('mine')")
    assert run.status == "error" and run.reply["ename"] == "RuntimeError"
    text = ANSI.sub("", "\n".join(run.reply["traceback"]))
    assert "1 %%events --table" in text and "----> 3 raise" in text and "run_cell_magic" not in text, text


def test_queues_that_exist_get_times(engine):
    try:
        engine.run("old = drupe.Queue('host')")
        assert engine.run("%config Drupe.profile = True").text() == "", "nothing is left as it is"
        assert engine.run("old.has_enable_profiling").result == "True"
        text = engine.run("%%events\nda.ones(9, queue=old).queue.wait()").of("display_data")[0]["data"]["text/plain"]
        assert "Hatched" not in text and "unknown" not in text, text
    finally:
        engine.run("%config Drupe.profile = False")


def test_the_footer_stands_under_cells_that_used_a_device(engine):
    assert engine.run("%config Drupe.footer = True").status == "ok"
    run = engine.run("y = submit(25)\ny.queue.wait()")
    (kind, name, data), = frames(run.messages)
    assert kind == "display_data" and name is None
    time = r"[\d.]+ [m\u00b5]?s"
    assert re.match(rf"{time} wall \u00b7 CPU {time} busy \([\d.]+ %\) \u00b7 25 kernels", data["text/plain"])
    assert not frames(engine.run("1 + 1").messages)
    # What goes on after the cell says so, and changes once when it is over.
    engine.run("import testwork; from drupe import _engine; gate = _engine._event_open('gate')\n"
               "queue = drupe.Queue('host')")
    run = engine.run("task = testwork.task(queue, 0.0, None, [gate])")
    (kind, name, data), = frames(run.messages)
    assert kind == "display_data" and name and "1 waiting" in data["text/plain"], data
    engine.run("%config Drupe.footer = False\ngate._finish()")
    engine.wait_iopub(lambda message: message["msg_type"] == "update_display_data", what="the line of what is over")
    (update,) = [data for _, one, data in frames(settled(engine)) if one == name][1:]
    assert "waiting" not in update["text/plain"] and "running" not in update["text/plain"], update
    # Work may end between Python's look at it and this one: then the line is shown all the same, once.
    engine.run("queue.wait(); done = submit(5); done.queue.wait()\n"
               "from drupe.magics import views; cell = views.current()")
    run = engine.run("number = _engine._live_open('footer', first_cell=cell, last_cell=cell); print(number > 0)")
    assert run.text() == "True\n" and len(frames(run.messages)) == 1, run.messages
    engine.run("%config Drupe.footer = True")
    engine.run("%config Drupe.footer = False")
    assert not frames(engine.run("submit(5).queue.wait()").messages)


def test_memory_by_variable_and_leaks(engine):
    engine.run("big = da.zeros(1 << 20)\nboxes = {'a': [da.ones(1000)]}\nview = big[5:]")
    text = engine.run("%memory --by variable").of("display_data")[0]["data"]["text/plain"]
    lines = text.splitlines()
    assert lines[2].split()[:4] == ["8.00", "MiB", "1", "big"] and "shared with view" in lines[2]
    assert "boxes" in text
    engine.run("big + 1")
    engine.run("def f(inner):\n    raise ValueError(inner.shape)\nf(da.ones(1 << 18))")
    text = engine.run("%memory --leaks").of("display_data")[0]["data"]["text/plain"]
    assert "Out[" in text and "traceback: inner in f()" in text and "big" not in text.split("\n", 1)[1]
    engine.run("%devtime nosuch")  # frames of IPython are in its traceback, whose self leads to everything
    assert "self" not in engine.run("%memory --leaks").of("display_data")[0]["data"]["text/plain"]
    engine.run("f(da.ones(1 << 18))")
    text = engine.run("%memory --leaks --free-traceback").of("display_data")[0]["data"]["text/plain"]
    assert "The traceback of ValueError is forgotten: 2.00 MiB given back." in text
    assert "inner" not in text and "Out[" in text
    assert engine.run("%memory --free-traceback").of("display_data")[0]["data"]["text/plain"] == \
        "There is no traceback to forget."
    engine.run("f(da.ones(1 << 18))")
    run = engine.run("%memory --free-traceback --timeline")  # a picture has no lines of its own
    assert run.text() == "The traceback of ValueError is forgotten: 2.00 MiB given back.\n" and frames(run.messages)


def test_memory_snapshots(engine):
    engine.run("%memory --snapshot before")
    engine.run("more = da.zeros(1 << 20)\nmore.queue.wait()")
    text = engine.run("%memory --diff before").of("display_data")[0]["data"]["text/plain"]
    assert text.startswith("+8.00 MiB since before") and "+1" in text and "cell [" in text
    engine.run("del more")
    assert "\u00b10 B since before" in engine.run("%memory --diff before").of("display_data")[0]["data"]["text/plain"]
    data = engine.run("%memory").of("display_data")[0]["data"]
    assert "host:cpu:0" in data["text/plain"] and "peak" in data["text/html"]
    for form in ("%memory --cells", "%memory --timeline", "%memory host --by place", "%memory --cells --json"):
        assert engine.run(form).status == "ok", form


def test_a_console_gets_a_table_at_the_end(engine):
    """Terminals show no updates: what has moved is printed once more."""
    run = engine.run("%%events --live\ny = submit(40)\n", allow_stdin=True)
    assert run.status == "ok" and "40 kernels" in run.text() and "device time" in run.text()
    engine.run("%dashboard", allow_stdin=True)
    assert "25 kernels" in engine.run("submit(25).queue.wait()", allow_stdin=True).text()
    assert engine.run("1 + 1", allow_stdin=True).text() == ""


def test_what_is_shown_is_shown_once_more_when_a_page_was_loaded_anew(engine):
    front = debugging.Front(engine)
    run = engine.run("%dashboard")
    name = frames(run.messages)[0][1]
    engine.run("submit(3).queue.wait()")
    seen = len(recorded(engine))
    assert front.get("drupe/refresh")["open"] == 1
    again = [one["content"] for one in settled(engine)[seen:] if one["msg_type"] == "update_display_data"]
    assert len(again) == 1 and again[0]["transient"] == {"display_id": name}
    assert "3 kernels" in again[0]["data"]["text/plain"] and not is_live(again[0]["data"])
    assert all(one["metadata"]["drupe"] == {"display": name} for one in (run.of("display_data")[0], again[0]))
    engine.run("%dashboard off")
    seen = len(settled(engine))
    assert front.get("drupe/refresh")["open"] == 0
    assert not frames(settled(engine)[seen:])
