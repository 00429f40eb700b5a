"""drupe._engine._view(): what the recorder saw, and Chrome's trace format."""
import json
import time

import pytest
import testwork

import drupe
from drupe import _engine
from drupe.magics import perfetto


@pytest.fixture
def recorder():
    _engine._view_start()
    yield _engine
    _engine._view_stop()


def settled(**wish):
    """A view of work that is over: this process waited for it, the recorder may not have looked yet."""
    deadline = time.monotonic() + 60
    while True:
        view = _engine._view(**wish)
        if not any(cell["waiting"] for cell in view.data()["cells"]) or time.monotonic() > deadline:
            return view


def work(device, queue=None):
    import drupe.array as da

    queue = queue or drupe.Queue(device)
    x = da.ones(1000, queue=queue)
    for _ in range(20):
        y = x + x
    queue.wait()
    return queue, y


def test_needs_a_recorder():
    _engine._view_stop()
    with pytest.raises(drupe.UnsupportedError, match="recorder"):
        _engine._view()


def test_bad_arguments(recorder):
    with pytest.raises(ValueError, match="negative"):
        _engine._view(spans=-1)
    with pytest.raises(TypeError):
        _engine._view(first_cell="1")
    view = _engine._view()
    with pytest.raises(ValueError, match="dashboard"):
        view.text("nonsense")
    with pytest.raises(TypeError):
        type(view)()
    assert _engine._view_colour(1).startswith("#") and len(_engine._view_colour(1)) == 7


def test_data(recorder, device):
    queue, y = work(device)
    data = settled().data()
    number = max(lane["queue"] for lane in data["lanes"])
    lanes = [n for n, lane in enumerate(data["lanes"]) if lane["queue"] == number]
    spans = [span for span in data["spans"] if span[0] in lanes]
    assert {data["lanes"][n]["kind"] for n in lanes} == {"kernels", "copies"}
    assert sum(span[4] for span in spans) == 21
    assert all(data["from"] <= span[1] <= span[2] <= data["to"] <= data["now"] for span in spans)
    assert all(span[3] == (span[2] - span[1] if span[10] else 0) for span in spans if span[4] == 1)
    by_start = [(span[0], span[1]) for span in data["spans"]]
    assert by_start == sorted(by_start)
    seen = next(one for one in data["devices"] if one["filter"] == queue.device.filter_string)
    assert seen["used"][0] > 0 and seen["total"] > 0 and 0 <= seen["busy"] <= 1 and not seen["lost"]
    for kind in ("events", "table", "memory", "dashboard", "footer"):
        assert recorder._view().text(kind) and recorder._view().html(kind)
    del y


def test_queues_with_times_are_exact(recorder, device):
    queue = drupe.Queue(device, property="enable_profiling")
    _, y = work(None, queue)
    data = settled().data()
    number = max(lane["queue"] for lane in data["lanes"])
    kernels = next(n for n, lane in enumerate(data["lanes"]) if lane["queue"] == number and lane["kind"] == "kernels")
    spans = [span for span in data["spans"] if span[0] == kernels]
    assert sum(span[4] for span in spans) == 20
    exact = [span for span in spans if span[10]]
    assert exact and all(span[2] >= span[1] for span in exact)
    assert all(a[2] <= b[1] for a, b in zip(exact, exact[1:])), "one after the other on an in-order queue"
    del y


def test_chrome(recorder, device):
    """The rules of the Trace Event format that Perfetto's importer holds to."""
    queue, y = work(device)
    trace = json.loads(perfetto.text(settled().data()))
    assert trace["displayTimeUnit"] == "ns"
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C"}
    named = {}
    for event in events:
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and event["name"]
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index") and event["args"]
            named[event["name"], event["pid"], event["tid"]] = event["args"]
        else:
            assert isinstance(event["ts"], (int, float)) and event["ts"] >= 0
    tracks = {}
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["cat"] in ("kernel", "copy", "host")
            assert {"id", "cell", "submissions", "bytes", "items", "status", "exact", "place"} == set(event["args"])
            assert ("thread_name", event["pid"], event["tid"]) in named
            assert ("process_name", event["pid"], 0) in named
            tracks.setdefault((event["pid"], event["tid"]), []).append(event)
        if event["ph"] == "C":
            assert set(event["args"]) == {"device", "shared", "host"}
            assert all(isinstance(value, int) for value in event["args"].values())
    for track in tracks.values():  # what overlaps on a thread must be nested, and ours are disjoint
        for a, b in zip(track, track[1:]):
            assert round(a["ts"] * 1000) + round(a["dur"] * 1000) <= round(b["ts"] * 1000)
    assert any(named["process_name", pid, 0]["name"].startswith(queue.device.filter_string) for pid, _ in tracks)
    assert any("add" in event["name"] for track in tracks.values() for event in track)
    del y


def test_chrome_keeps_apart_what_runs_at_the_same_time(recorder):
    """Tasks without an order get as many threads as it takes: spans of one never overlap. What waits is one span."""
    queue, gate = drupe.Queue("host", in_order=False), _engine._event_open("gate")
    tasks = [testwork.task(queue, 0.0, None, [gate]) for _ in range(5)]
    waiting = [event for event in json.loads(perfetto.text(_engine._view().data()))["traceEvents"]
               if event["ph"] == "X" and event["name"] == "task (waiting)"]
    assert len(waiting) == 1 and waiting[0]["args"]["submissions"] == 5 and waiting[0]["args"]["status"] == "waiting"
    assert waiting[0]["args"]["exact"] is False and waiting[0]["dur"] > 0
    gate._finish()
    for task in tasks:
        task.wait()
    tracks, names = {}, {}
    for event in json.loads(perfetto.text(settled().data()))["traceEvents"]:
        if event["ph"] == "X" and event["name"] == "task":
            assert event["args"]["exact"] is True
            tracks.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
        elif event["name"] == "thread_name":
            names[event["tid"]] = event["args"]["name"]
    assert len({names[tid] for tid in tracks}) == len(tracks), names
    for spans in tracks.values():
        assert all(a[1] <= b[0] + 0.001 for a, b in zip(sorted(spans), sorted(spans)[1:])), spans


def test_hostile_labels(recorder):
    """Labels come from kernels and are cut inside of letters; what is no text stays out of JSON and HTML."""
    queue = drupe.Queue("host")
    for label in ('"\\\n\t\x01</script>&', "\u00e4" * 40, "\U0001f600" * 20, "x" * 500, ""):
        try:
            testwork.task(queue, 0, label)
            queue.wait()
        except drupe.DeviceError:
            pass
    view = settled()
    assert view.data()["labels"] and json.loads(perfetto.text(view.data()))
    assert "<script" not in view.html("dashboard")


def test_only_what_changed(recorder):
    queue, y = work("host")
    first = settled().data()
    assert first["whole"]
    again = _engine._view(after=first["serial"]).data()
    assert not again["whole"] and not again["spans"] and again["serial"] == first["serial"]
    work(None, queue)
    more = settled(after=first["serial"]).data()
    assert sum(span[4] for span in more["spans"]) == 21 and more["serial"] > first["serial"]
    del y


def test_exit_with_a_recorder(fresh):
    done = fresh("import drupe, drupe.array as da\nfrom drupe import _engine\n_engine._view_start()\n"
                 "x = da.ones(10, device='host')\nfor _ in range(10000): y = x + x\nview = _engine._view()\n"
                 "print('end')")
    assert done.returncode == 0 and done.stdout == "end\n" and done.stderr == ""


def test_default_queues_with_times(fresh):
    text = """
import os
os.environ["DRUPE_PROFILE"] = "1"
import drupe, drupe.array as da
from drupe import _engine
_engine._view_start()
x = da.ones(10, device="host")
y = x + x
x.queue.wait()
spans = _engine._view().data()["spans"]
assert spans and all(span[10] for span in spans), spans
"""
    done = fresh(text)
    assert done.returncode == 0, done.stderr


def test_a_device_without_memory(fresh):
    text = """
import drupe
from drupe import _engine
_engine._view_start()
drupe.Queue("host").barrier().wait()
devices = _engine._view().data()["devices"]
assert [(one["filter"], one["backend"], one["used"]) for one in devices] == [("host:cpu:0", "host", [0, 0, 0])], devices
"""
    done = fresh(text)
    assert done.returncode == 0, done.stderr
