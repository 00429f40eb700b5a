"""drupe.progress(): what it draws, when it draws nothing, and that it waits, iterates and raises like what it shows."""
import asyncio
import io
import time

import pytest
import testwork

import drupe
from drupe import _engine, _progress

LONG = 20


class Painter:
    def __init__(self):
        self.texts, self.html, self.last = [], [], False

    def draw(self, state, last):
        self.texts.append(state.text())
        self.html.append(state.html())
        self.last = last


@pytest.fixture
def painter(monkeypatch):
    painter = Painter()
    monkeypatch.setattr(_progress, "_painter", lambda: painter)
    return painter


@pytest.fixture
def queue():
    return drupe.Queue("host")


def until(condition):
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_nothing_is_drawn_of_what_is_short(queue, painter):
    events = [testwork.task(queue, 0.0) for _ in range(5)]
    assert drupe.progress(events).wait(LONG) is None  # at the end of a cell nothing repeats the bar
    bar = drupe.progress(queue)
    bar.wait(LONG)
    assert bar._word == "done" and painter.texts == []


def test_a_bar_of_events(queue, painter):
    gates = [_engine._event_open("gate") for _ in range(4)]
    bar = drupe.progress(gates, "sweep")
    gates[0]._finish()
    until(lambda: painter.texts)
    assert painter.texts[-1].startswith("sweep   25 % [######------------------]  1/4  ") and " < " in painter.texts[-1]
    for gate in gates[1:]:
        gate._finish()
    bar.wait(LONG)
    assert painter.last
    assert painter.texts[-1].startswith("sweep  100 % [" + "#" * 24 + "]  4/4  ")
    assert painter.texts[-1].endswith("  done")
    assert "<svg" not in painter.html[-1] and "width:100.0%" in painter.html[-1] and "4/4" in painter.html[-1]
    drawn = len(painter.texts)
    bar.wait()
    assert len(painter.texts) == drawn and "done" in repr(bar)


def test_a_plain_call_goes_on_until_the_work_is_over(queue, painter):
    gate = _engine._event_open("gate")
    queue.barrier(wait_for=[gate])
    drupe.progress(queue)
    until(lambda: painter.texts)
    gate._finish()
    until(lambda: painter.last)
    assert painter.texts[-1].endswith("  done") and "queue %d on host" % queue.number in painter.texts[0]


def test_iterating_gives_events_as_they_end(queue, painter):
    gates = [_engine._event_open("gate") for _ in range(3)]
    gates[2]._finish()
    seen = []
    for event in drupe.progress(gates):
        seen.append(gates.index(event))
        gates[1]._finish()
        if len(seen) == 2:
            gates[0]._finish()
    assert seen == [2, 1, 0]
    with pytest.raises(TypeError, match="no parts"):
        iter(drupe.progress(queue))


def test_failures_are_raised_and_shown(queue, painter):
    gate = _engine._event_open("gate")
    bad = testwork.task(queue, 0.0, "the bearing broke", [gate])
    bar = drupe.progress([bad, _engine._event_open("other")], "bearings")
    until(lambda: painter.texts)
    gate._finish()
    with pytest.raises(drupe.InternalError, match="the bearing broke"):
        bar.wait(LONG)
    assert painter.texts[-1].endswith("  failed: 1") and painter.last and "#d62728" in painter.html[-1]
    gate = _engine._event_open("gate")
    bad = testwork.task(queue, 0.0, "again", [gate])
    bar = drupe.progress(queue)
    gate._finish()
    with pytest.raises(drupe.InternalError, match="again"), bar:
        pass


def test_leaving_early_leaves_the_work_alone(queue, painter):
    gate = _engine._event_open("gate")
    event = queue.barrier(wait_for=[gate])
    with pytest.raises(KeyError), drupe.progress(queue) as bar:
        until(lambda: painter.texts)
        raise KeyError
    assert bar._word == "interrupted" and painter.last and not event.done
    with pytest.raises(drupe.WaitTimeoutError):
        drupe.progress(event).wait(0.01)
    gate._finish()
    event.wait(LONG)


def test_awaiting(queue, painter):
    async def main():
        gate = _engine._event_open("gate")
        event = queue.barrier(wait_for=[gate])
        asyncio.get_running_loop().call_later(0.05, gate._finish)
        bars = drupe.progress([event]), drupe.progress(queue)
        assert [await bar for bar in bars] == [None, None]
        return tuple(bar._word for bar in bars)

    assert asyncio.run(main()) == ("done", "done")


def test_what_it_takes():
    for wrong in (3, [3], "abc", None):
        with pytest.raises(TypeError, match="a Queue, an Event or a sequence"):
            drupe.progress(wrong)
    bar = drupe.progress([])
    bar.wait()
    assert bar._word == "done"


def test_a_line_takes_the_place_of_the_one_before():
    stream = io.StringIO()
    line = _progress._Line(stream, True)
    for done, word in ((1, ""), (2, ""), (2, "done")):
        line.draw(_progress._State("x", done, 2, 1.5, word), bool(word))
    first, second, third = stream.getvalue().split("\r")
    assert first.startswith("x   50 % [") and third.rstrip(" \n").endswith("done") and len(second) >= len(first) - 2
    quiet = _progress._Line(io.StringIO(), False)
    quiet.draw(_progress._State("x", 1, 2, 1.5), False)
    assert quiet.stream.getvalue() == ""
    stream.close()
    line.draw(_progress._State("x", 1, 2, 1.5), True)
