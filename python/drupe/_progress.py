"""drupe.progress(): a bar for device work.

In a notebook it is a display that is updated, elsewhere a line that is written again; front-ends that know no updates,
such as jupyter console, do not name the cell in their requests and get the line. A thread draws, so that the bar moves
while the program waits or computes.
"""
import os
import sys
import threading
import time

from drupe import _engine
from drupe._html import FILL, GOOD, GREY, LIMIT, Html, element, escape, named
from drupe._units import seconds

_FIRST = _PAUSE = 0.5  # seconds before the bar appears, and between two drawings
_WIDTH = 24
_SLICE = 0.05


class _Line:
    """A line of text that the next one takes the place of."""

    def __init__(self, stream, always):
        self.stream, self.always, self.width = stream, always, 0

    def draw(self, state, last):
        if self.stream is None or not (last or self.always):
            return
        text = state.text()
        try:
            self.stream.write(("\r" if self.width else "") + text.ljust(self.width) + ("\n" if last else ""))
            self.stream.flush()
        except (OSError, ValueError):  # it was closed
            self.stream = None
        self.width = len(text)


class _Display:
    """A display in a notebook's cell."""

    def __init__(self):
        self.id = None

    def draw(self, state, last):
        from IPython.display import display

        bundle = {"text/plain": state.text(), "text/html": str(state.html())}
        update, self.id = self.id is not None, self.id or os.urandom(16).hex()
        display(bundle, raw=True, display_id=self.id, update=update, metadata=named(self.id))


def _painter():
    parents = sys.modules.get("drupe.jupyter.parents")
    message = parents.current_message() if parents is not None else None
    if message is None:
        return _Line(sys.stderr, sys.stderr is not None and sys.stderr.isatty())
    return _Display() if (message.get("metadata") or {}).get("cellId") else _Line(sys.stdout, True)


class _State:
    """What the bar says."""

    def __init__(self, label, done, total, elapsed, word=""):
        self.label, self.done, self.total, self.elapsed, self.word = label, done, total, elapsed, word

    @property
    def share(self):
        return self.done / self.total if self.total else 1.0

    def figures(self):
        counted = "%d/%d" % (self.done, self.total) if self.total > 1 else ""
        took = seconds(self.elapsed)
        if not self.word and self.total > 1:
            left = self.elapsed / self.done * (self.total - self.done) if self.done else None
            took += " < " + (seconds(left) if left is not None else "?")
        rate = "%.3g/s" % (self.done / self.elapsed) if self.done and self.total > 1 and self.elapsed > 0 else ""
        return "  ".join(part for part in (counted, took, rate, self.word) if part)

    def text(self):
        if self.total <= 1:
            return "%s  %s" % (self.label, self.figures() + ("" if self.word else "  running"))
        full = int(self.share * _WIDTH)
        bar = "#" * full + "-" * (_WIDTH - full)
        return "%s  %3d %% [%s]  %s" % (self.label, int(100 * self.share), bar, self.figures())

    def html(self):
        colour = LIMIT if self.word.startswith("failed") else GREY if self.word == "interrupted" else \
            GOOD if self.word == "done" else FILL
        share = 1.0 if self.total <= 1 and self.word else self.share
        bar = element("div", element("div", "", "width:%.1f%%;height:10px;border-radius:2px;background-color:%s"
                                     % (100 * share, colour)),
                      "display:inline-block;width:240px;height:10px;border-radius:2px;border:1px solid #8888;"
                      "margin:0 10px;vertical-align:middle", title="%d %%" % int(100 * share))
        return element("div", Html(element("span", escape(self.label)) + bar + element("span", escape(self.figures()))),
                       "font-size:13px;white-space:nowrap")


class Progress:
    """The progress of a queue's work or of events: drawn from its making on until the work is over, if that takes
    longer than half a second. wait() waits for it and raises what failed, `with` does so at its end, `await` without
    blocking the event loop; iterating gives events as they end."""

    def __init__(self, work, label=None):
        self._queue = work if isinstance(work, _engine.Queue) else None
        self._events = [] if self._queue is not None else _events_of(work)
        self._label = label if label is not None else self._named()
        self._began, self._total, self._word, self._drawn = time.monotonic(), 0, "", False
        self._over, self._lock = threading.Event(), threading.Lock()
        self._painter = _painter()
        self._counts()
        threading.Thread(target=self._draw_on, name="drupe-progress", daemon=True).start()

    def _named(self):
        if self._queue is not None:
            return "queue %d on %s" % (self._queue.number, self._queue.device.filter_string)
        if len(self._events) == 1:
            record = _engine._trace_one(self._events[0]._submission())
            return record["label"] if record is not None else "event"
        return "%d events" % len(self._events)

    # --- drawing ---

    def _counts(self):
        if self._queue is None:
            return sum(event.done for event in self._events), len(self._events)
        pending = self._queue.pending
        self._total = max(self._total, pending)
        return self._total - pending, self._total

    def _is_over(self):
        if self._queue is not None:
            return self._queue._idle(0)
        return all(event.done for event in self._events)

    def _draw(self, last=False):
        done, total = self._counts()
        self._painter.draw(_State(self._label, done, total, time.monotonic() - self._began, self._word), last)
        self._drawn = True

    def _draw_on(self):
        pause = _FIRST
        while not self._over.wait(pause):
            # What goes on for minutes, perhaps for ever, changes slowly.
            pause = min(max(_PAUSE, (time.monotonic() - self._began) / 100), 10 * _PAUSE)
            with self._lock:
                if self._word:
                    return
                if self._is_over():
                    break
                self._draw()
        self._end(self._ending())

    def _ending(self):
        failed = sum(event.status == "failed" for event in self._events)
        return "failed" if failed == 1 == len(self._events) else "failed: %d" % failed if failed else "done"

    def _end(self, word):
        self._over.set()
        with self._lock:
            if self._word:
                return
            self._word = word
            if self._drawn:
                self._draw(last=True)

    # --- waiting ---

    def wait(self, timeout=None):
        """Wait until the work is over; raises what failed, and WaitTimeoutError after `timeout` seconds."""
        try:
            if self._queue is not None:
                self._queue.wait(timeout)
            else:
                _engine.Event.wait_for(self._events, timeout)
        except _engine.WaitTimeoutError:
            raise
        except _engine.DeviceError:
            self._end("failed" if self._queue is not None else self._ending())
            raise
        except BaseException:
            self._end("interrupted")
            raise
        self._end("done")

    def __iter__(self):
        if self._queue is not None:
            raise TypeError("the work of a queue has no parts to iterate over: give its events, or call wait()")
        return self._completed()

    def _completed(self):
        left = list(self._events)
        try:
            while left:
                over = [event for event in left if event.done]
                for event in over:
                    left.remove(event)
                    event.wait()
                    yield event
                if left and not over:
                    try:
                        left[0].wait(_SLICE)
                    except _engine.WaitTimeoutError:
                        pass
                    except _engine.DeviceError:
                        if not left[0].done:
                            raise
        finally:
            self._end("interrupted" if left else self._ending())

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.wait()
        else:
            self._end("interrupted")

    def __await__(self):
        return self._awaited().__await__()

    async def _awaited(self):
        try:
            for event in self._events if self._queue is None else [self._queue.barrier()]:
                await event
        except BaseException as error:
            self._end("failed" if isinstance(error, _engine.DeviceError) else "interrupted")
            raise
        self._end("done")

    def __len__(self):
        return len(self._events)

    def __repr__(self):
        done, total = self._counts()
        state = _State(self._label, done, total, time.monotonic() - self._began, self._word)
        return "<drupe.progress %s>" % state.text()


def _events_of(work):
    events = [work] if isinstance(work, _engine.Event) else list(work) if hasattr(work, "__iter__") else None
    if events is None or not all(isinstance(event, _engine.Event) for event in events):
        raise TypeError("progress() takes a Queue, an Event or a sequence of Events, not %s" % type(work).__name__)
    return events


def progress(work, label=None):
    """Show a bar for the work of a queue, or for events, from now on: drupe.progress(queue), drupe.progress(events,
    "sweep").wait(), for event in drupe.progress(events), with drupe.progress(queue), await drupe.progress(events)."""
    return Progress(work, label)
