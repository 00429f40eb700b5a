"""What notebooks show of objects: text and HTML with the same facts, waiting for a moment at most."""
import html
import re
import threading
import types

import pytest
import testwork

import drupe
import drupe.array as da
from drupe import _engine, _repr
from drupe.array import _text

TAGS = {"div", "span", "b", "table", "tr", "td", "th", "pre"}
LABELS = re.compile(r"[-=#]{2,}")  # bars are drawn differently


def facts(bundle):
    """The words of both forms, after a look at the HTML with the rules of front-ends' sanitizers."""
    text, markup = bundle["text/plain"], bundle["text/html"]
    assert {name.lower() for name in re.findall(r"<\s*/?\s*([A-Za-z0-9]+)", markup)} <= TAGS
    assert not re.search(r"var\(|hsl|gradient|url\(|expression|<!--|on\w+=", markup)
    assert set(re.findall(r" (\w+)=\"", markup)) <= {"style", "title"}
    plain = html.unescape(re.sub(r"<[^>]*>", " ", markup))
    return set(re.findall(r"[\w.:/+-]+", LABELS.sub(" ", text))), set(re.findall(r"[\w.:/+-]+", plain))


@pytest.fixture
def gate():
    event = _engine._event_open("gate")
    yield event
    event._finish()


def timed(device):
    return drupe.Queue(device, profiling=True).barrier().times


def shown_objects(device):
    queue = drupe.Queue(device)
    objects = [queue.device, queue.device.platform, queue.context, queue, timed(device),
               drupe.memory.pool(device), queue.barrier(), drupe.Event(), da.arange(7, device=queue),
               da.zeros((3, 4, 5), device=queue), da.zeros((), device=queue), da.zeros((0, 3), device=queue),
               da.zeros((500, 3), device=queue)[::2], da.arange(12, device=queue).reshape(3, 4).T,
               da.ones((40, 50, 60), device=queue), drupe.memory.MemoryUSMDevice(5000, queue=queue)]
    if queue.device.backend.name == "opencl":
        source = "kernel void add(global float *out, const int n, local char *s) { out[0] = n < 3 && n > 1; }"
        program = drupe.Program(source, queue=queue, options="-DX=1")
        objects += [program, program.add]
    return queue, objects


def test_text_and_html_say_the_same(device):
    queue, objects = shown_objects(device)
    for one in objects:
        queue.wait()
        bundle = one._repr_mimebundle_(include=None, exclude=None)
        text, markup = facts(bundle)
        text -= {":", "..."}
        assert text and text <= markup | {word.rstrip(":") for word in markup} | {word + ":" for word in markup}, bundle
        assert "<object" not in bundle["text/plain"]
        assert repr(one)


def test_what_is_told(device):
    queue, objects = shown_objects(device)
    queue.wait()
    told = {type(one).__name__: one._repr_mimebundle_()["text/plain"] for one in reversed(objects)}
    assert queue.device.filter_string in told["Device"] and queue.device.name.strip() in told["Device"]
    assert queue.device.filter_string in told["Platform"] and queue.device.platform_name.strip() in told["Platform"]
    assert told["Context"].startswith("Context 1 device\n") and queue.device.filter_string in told["Context"]
    assert told["EventTimes"].startswith("Times ran ") and " ns\n" in told["EventTimes"]
    assert "in order" in told["Queue"] and "nothing waits" in told["Queue"]
    where = queue.device.filter_string
    assert told["Array"] == f"Array 7: int64, {where}, 56 B of device memory\n  [0, 1, 2, 3, 4, 5, 6]"
    assert "barrier" in told["Event"] and "complete" in told["Event"]
    if "Kernel" in told:
        assert "add(float* out, int n, char* s)" in told["Kernel"] and "-DX=1" in told["Program"]


def plain(x):
    """What a cell shows of an array whose values nobody has to wait for."""
    x.queue.wait()
    return x._repr_mimebundle_()["text/plain"]


def test_a_number_takes_a_line(device):
    x = da.asarray(2.5, device=device)
    assert plain(x) == f"Scalar 2.5: float64, {x.device.filter_string}"


def test_nothing_is_said_twice(device):
    for x in (da.arange(7, device=device), da.zeros((3, 4), dtype="float32", device=device),
              da.ones(5000, device=device)):
        for form in (plain(x), x._repr_mimebundle_()["text/html"]):
            assert form.count(str(x.dtype)) == form.count(x.device.filter_string) == 1, form


def test_large_numbers_have_separators(device):
    bundle = da.zeros((1_000_000, 2), dtype="bool", device=device)._repr_mimebundle_()
    assert "Array 1,000,000 × 2: bool" in bundle["text/plain"] and "1000000" not in bundle["text/html"]
    memory = drupe.memory.MemoryUSMDevice(1_000_000, device=device)
    assert "1,000,000" in memory._repr_mimebundle_()["text/plain"]


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[:, ::-1], lambda x: x[::2, 1:], lambda x: x[1],
                                  lambda x: x.reshape(2, 3, 2).T], ids=range(5))
def test_values_of_small_views_are_shown(device, view):
    """Nothing has to be computed for them."""
    import numpy

    x = view(da.arange(12, device=device).reshape(3, 4))
    expected = view(numpy.arange(12).reshape(3, 4))
    text = plain(x)
    body = "\n".join(line[2:] for line in text.split("\n")[1:] if not line.startswith("  layout"))
    assert body == numpy.array2string(expected, separator=", "), text


def test_no_kernel_runs_for_a_display(device):
    x = da.arange(12, device=device).reshape(3, 4).T
    x.queue.wait()
    before = drupe.trace(limit=1)[-1]["id"]
    assert "[ 0,  4,  8]" in plain(x)
    assert not [one for one in drupe.trace(after=before) if one["operation"] == "kernel"]


def test_pictures_of_rows_are_flat():
    from drupe._html import box

    for n in (2, 7, 10**6):
        assert int(re.search(r"height:(\d+)px;border", box((n,)))[1]) <= 12
    assert "1,000,000" in box((10**6,))


def test_lists_and_memory_have_html(device):
    held = drupe.memory.MemoryUSMDevice(1 << 20, device=device)
    listed = drupe.devices()
    assert listed == list(listed) and isinstance(listed, list) and repr(listed) == repr(list(listed))
    for one, word in ((listed, "host:cpu:0"), (drupe.get_devices("host"), "host:cpu:0"), (held, "1.00 MiB"),
                      (drupe.memory.report(), "1.00 MiB")):
        text, markup = facts(one._repr_mimebundle_())
        assert word.split()[0] in text & markup


def test_nothing_is_waited_for_long(device, gate):
    """The gate opens only afterwards: whatever waited would wait for ever."""
    queue, objects = shown_objects(device)
    x = da.arange(7, device=queue)
    event = queue.barrier(wait_for=[gate])
    y = x + 1
    assert "not over" in y._repr_mimebundle_()["text/plain"] and "not over" in queue._repr_mimebundle_()["text/plain"]
    assert _repr.brief(da.zeros((3, 0), device=device)).startswith("array([], shape=(3, 0), dtype=float64")
    assert _repr.brief(y) == f"array(shape=(7,), dtype=int64, device='{queue.device.filter_string}')"
    for one in (*objects, event):
        facts(one._repr_mimebundle_())
    assert repr(event).startswith("<drupe.Event 'barrier' on ") and "complete" not in repr(event)
    gate._finish()
    event.wait()
    queue.wait()
    assert "[1, 2, 3" in y._repr_mimebundle_()["text/plain"] and "array([1, 2, 3" in _repr.brief(y)


@pytest.fixture
def patience(monkeypatch):
    """What was left of a display's time at each of its waits; `asked` is set at the first."""
    waits, asked, idle = [], threading.Event(), _text.Patience.idle

    def spied(self, queue):
        waits.append(self.left)
        asked.set()
        return idle(self, queue)

    monkeypatch.setattr(_text.Patience, "idle", spied)
    return types.SimpleNamespace(waits=waits, asked=asked)


@pytest.mark.parametrize("show", [lambda x: x._repr_mimebundle_()["text/plain"], _repr.brief],
                         ids=["displayed", "in a list"])
def test_a_display_waits_for_work_that_ends_soon(queue, gate, patience, monkeypatch, show):
    """Here soon is a minute, and the work ends once it is waited for: with the GIL that would never be."""
    monkeypatch.setattr(_text, "DISPLAY", 60)
    queue.barrier(wait_for=[gate])
    x = da.arange(3, device=queue)
    opener = threading.Thread(target=lambda: (patience.asked.wait(), gate._finish()))
    opener.start()
    try:
        assert "[0, 1, 2]" in show(x)
    finally:
        patience.asked.set()
        opener.join()


def test_what_shows_several_arrays_waits_once(queue, gate, patience):
    """In a list of IPython's, and in the block around a display of the kernel's."""
    queue.barrier(wait_for=[gate])
    xs = [da.arange(3, device=queue) for _ in range(20)]
    printer = types.SimpleNamespace()
    assert all("shape=(3,)" in _repr.brief(x, printer) for x in xs)
    assert len(patience.waits) == 20 and sum(patience.waits) < 0.051
    patience.waits.clear()
    with _text.waiting_at_most():
        assert all("shape=(3,)" in repr(x) and "shape=(3,)" in str(x) for x in xs)
        assert "not over" in xs[0]._repr_mimebundle_()["text/plain"]
    assert len(patience.waits) == 41 and sum(patience.waits) < 0.051


def test_a_look_does_not_import_numpy(fresh):
    result = fresh("""
        import sys, drupe, drupe.array as da
        x = da.arange(5, dtype="float32", device="host")
        assert "[0.0, 1.0, 2.0" in x._repr_mimebundle_()["text/plain"], x._repr_mimebundle_()
        y = da.arange(6, device="host").reshape(2, 3).T
        assert y._repr_mimebundle_()["text/plain"].endswith("  [[0, 3],\\n   [1, 4],\\n   [2, 5]]")
        x = da.zeros(5000, device="host")
        x.queue.wait()  # a busy machine may need longer than a look waits
        assert "[0.0, 0.0, 0.0, ..., 0.0, 0.0, 0.0]" in x._repr_mimebundle_()["text/plain"]
        print("numpy" in sys.modules)
        """)
    assert result.stdout == "False\n", result


def test_failures_are_shown_and_stay_to_be_reported(device):
    queue = drupe.Queue(device)
    event = testwork.task(queue, 0.0, "the <bearing> broke")
    while not event.done:
        pass
    bundle = event._repr_mimebundle_()
    assert "failed" in bundle["text/plain"] and "&lt;bearing&gt; broke" in bundle["text/html"]
    queue._repr_mimebundle_()
    with pytest.raises(drupe.InternalError):
        queue.wait()


def test_times_of_a_profiling_queue(device):
    queue = drupe.Queue(device, property="enable_profiling")
    event = queue.memset(drupe.memory.MemoryUSMDevice(4096, queue=queue), 1) or queue.barrier()
    queue.wait()
    assert re.search(r"queued .* submitted .* ran ", event._repr_mimebundle_()["text/plain"])


def test_it_never_raises(monkeypatch, device):
    def broken(device):
        raise RuntimeError("gone")

    queue = drupe.Queue(device)
    x = da.arange(3, device=queue)
    monkeypatch.setattr(_repr, "_pending", broken)
    assert queue._repr_mimebundle_()["text/plain"].startswith("<drupe.Queue object at")
    assert x._repr_mimebundle_() and _repr.brief(x)


def test_large_and_hostile_names(device):
    queue = drupe.Queue(device)
    event = testwork.task(queue, 0.0)
    event.wait()
    assert _repr._event(event).text().count("\n") < 10
    from drupe._html import Card, box

    card = Card("Thing", "<script>alert(1)</script>", rows=[("a", "x" * 5000), ("b", '"><svg onload=1>')])
    assert "<script" not in card.html() and "<svg" not in card.html()
    assert all(box(shape) for shape in ((1,), (10**9,), (1, 10**9), (2, 3, 4, 5), (0, 0)))


def test_a_list_of_devices_is_a_table_as_text_too():
    from IPython.lib import pretty

    found = drupe.devices()
    assert pretty.pretty(found) == found._repr_mimebundle_()["text/plain"] and "platform" in pretty.pretty(found)
    assert pretty.pretty([found]) == repr([found])


def test_a_platform_whose_device_is_lost_has_its_name(monkeypatch):
    def lost(self):
        raise drupe.DeviceLostError("lost")

    platform = drupe.Device("host").platform
    monkeypatch.setattr(drupe.Platform, "get_devices", lost)
    assert platform._repr_mimebundle_()["text/plain"] == f"Platform {platform.name}: host, lost until a restart"
