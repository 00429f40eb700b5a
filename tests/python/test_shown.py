"""What notebooks show of objects: text and HTML with the same facts, waiting for a moment at most."""
import html
import re
import threading
import types

import pytest

import drupe
import drupe.array as da
from drupe import _engine, _shown
from drupe.array import _text

TAGS = {"div", "span", "b", "table", "tr", "td", "pre"}
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


def shown_objects(device):
    queue = drupe.Queue(device)
    objects = [queue.device, queue, drupe.memory.pool(device), queue.barrier(), drupe.Event(),
               da.arange(7, device=queue),
               da.zeros((3, 4, 5), device=queue), da.zeros((), device=queue), da.zeros((0, 3), device=queue),
               da.zeros((500, 3), device=queue)[::2]]
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
    assert "in order" in told["Queue"] and "nothing waits" in told["Queue"]
    assert "Array 7: " in told["Array"] and "array([0, 1, 2, 3, 4, 5, 6]" in told["Array"] and "int64" in told["Array"]
    assert "barrier" in told["Event"] and "complete" in told["Event"]
    if "Kernel" in told:
        assert "add(float* out, int n, char* s)" in told["Kernel"] and "-DX=1" in told["Program"]


def test_nothing_is_waited_for_long(device, gate):
    """The gate opens only afterwards: whatever waited would wait for ever."""
    queue, objects = shown_objects(device)
    x = da.arange(7, device=queue)
    event = queue.barrier(wait_for=[gate])
    y = x + 1
    assert "not over" in y._repr_mimebundle_()["text/plain"] and "not over" in queue._repr_mimebundle_()["text/plain"]
    assert _shown.brief(da.zeros((3, 0), device=device)).startswith("array([], shape=(3, 0), dtype=float64")
    assert _shown.brief(y) == f"array(shape=(7,), dtype=int64, device='{queue.device.filter_string}')"
    for one in (*objects, event):
        facts(one._repr_mimebundle_())
    assert repr(event).startswith("<drupe.Event 'barrier' on ") and "complete" not in repr(event)
    gate._finish()
    event.wait()
    queue.wait()
    assert "array([1, 2, 3" in y._repr_mimebundle_()["text/plain"] and "array([1, 2, 3" in _shown.brief(y)


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


@pytest.mark.parametrize("show", [lambda x: x._repr_mimebundle_()["text/plain"], _shown.brief],
                         ids=["displayed", "in a list"])
def test_a_display_waits_for_work_that_ends_soon(queue, gate, patience, monkeypatch, show):
    """Here soon is a minute, and the work ends once it is waited for: with the GIL that would never be."""
    monkeypatch.setattr(_text, "DISPLAY", 60)
    queue.barrier(wait_for=[gate])
    x = da.arange(3, device=queue)
    opener = threading.Thread(target=lambda: (patience.asked.wait(), gate._finish()))
    opener.start()
    try:
        assert "array([0, 1, 2]" in show(x)
    finally:
        patience.asked.set()
        opener.join()


def test_what_shows_several_arrays_waits_once(queue, gate, patience):
    """In a list of IPython's, and in the block around a display of the kernel's."""
    queue.barrier(wait_for=[gate])
    xs = [da.arange(3, device=queue) for _ in range(20)]
    printer = types.SimpleNamespace()
    assert all("shape=(3,)" in _shown.brief(x, printer) for x in xs)
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
        assert "array([0.0, 1.0, 2.0" in x._repr_mimebundle_()["text/plain"], x._repr_mimebundle_()
        x = da.zeros(5000, device="host")
        x.queue.wait()  # a busy machine may need longer than a look waits
        assert "[0.0, ...]" in x._repr_mimebundle_()["text/plain"]
        print("numpy" in sys.modules)
        """)
    assert result.stdout == "False\n", result


def test_failures_are_shown_and_stay_to_be_reported(device):
    queue = drupe.Queue(device)
    event = _engine._task(queue, 0.0, "the <bearing> broke")
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
    monkeypatch.setattr(_shown, "_pending", broken)
    assert queue._repr_mimebundle_()["text/plain"].startswith("<drupe.Queue object at")
    assert x._repr_mimebundle_() and _shown.brief(x)


def test_large_and_hostile_names(device):
    queue = drupe.Queue(device)
    event = _engine._task(queue, 0.0)
    event.wait()
    assert _shown._event(event).text().count("\n") < 10
    from drupe._html import Card, box

    card = Card("Thing", "<script>alert(1)</script>", rows=[("a", "x" * 5000), ("b", '"><svg onload=1>')])
    assert "<script" not in card.html() and "<svg" not in card.html()
    assert all(box(shape) for shape in ((1,), (10**9,), (1, 10**9), (2, 3, 4, 5), (0, 0)))
