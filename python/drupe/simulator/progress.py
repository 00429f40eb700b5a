"""A bar for simulations that take long. It is drawn between two work-items, so none moves while a debugger waits."""
import sys
import time

_FIRST = _PAUSE = 0.5  # seconds before the bar appears, and between two drawings


class Bar:
    """How far a run is. advance() is called every few work-items, end() at last."""
    __slots__ = ("label", "total", "_done", "_began", "_next", "_painter", "_shown")

    def __init__(self, label, shown):
        self.label, self.total, self._shown = "simulating " + label, 0, shown
        self._done, self._painter, self._began = 0, None, time.monotonic()
        self._next = self._began + _FIRST

    def advance(self, count):
        """So many more work-items have ended."""
        self._done += count
        now = time.monotonic()
        if now < self._next or not self._shown:
            return
        self._next = now + _PAUSE
        if self._painter is None and sys.gettrace() is None and self._done < self.total:
            from drupe._progress import _painter

            painter = _painter()
            self._shown = getattr(painter, "always", True)  # not where lines are only added to a file
            self._painter = painter if self._shown else None
        self._draw("")

    def end(self, word):
        """Draw the last state, if the bar was drawn; a second call does nothing."""
        if self._painter is not None:
            self._draw(word)
            self._painter, self._shown = None, False

    def _draw(self, word):
        if self._painter is not None:
            from drupe._progress import _State

            state = _State(self.label, self._done, self.total, time.monotonic() - self._began, word)
            self._painter.draw(state, bool(word))
