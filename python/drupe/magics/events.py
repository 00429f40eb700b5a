"""%events and %%events: what the devices did, when."""
import contextlib
import pathlib
import time

from drupe.magics import views
from drupe.magics.base import Magic, Option, UsageError

PATIENCE = 10.0  # seconds for work that a cell leaves behind


class Events(Magic):
    """What the devices did: a timeline of each queue, and where the time went.

    Kernels and copies have lanes of their own; the colour is the cell's. As a cell magic it shows the work of its cell,
    for whose end it waits, ten seconds at most. A full bar is work that ran then. A hatched one stands for work that
    ran at some time between its two ends; the driver does not report when. %config Drupe.profile = True records exact
    times.

    Cells are numbers, 7, or ranges, 2:5 (both included), 3: and -3: (the last three)."""

    name = "events"
    options = (Option("--cell", metavar="CELLS", help="of these cells; without it, of all that is remembered"),
               Option("--last", action="store_true", help="of the last cell that used a device"),
               Option("--gantt", action="store_true", help="as a timeline (this is what you get)"),
               Option("--table", action="store_true", help="one line per kernel or kind of copy"),
               Option("--live", action="store_true", help="move while this cell and its work run"),
               Option("--export", metavar="FILE.json", complete="file",
                      help="write Chrome's trace format, which ui.perfetto.dev opens"))
    examples = (("%events --cell -3:", "the timeline of the last three cells"),
                ("%%events --live --export trace.json\nwork()", "watch this cell, then write a file for Perfetto"))

    def line(self, options):
        current = views.current()
        views.submit()
        if options.live and not (options.quiet or options.json):
            return self._live(options, current)
        first, last = self._cells(options, current)
        return self._finish(views.View(_kind(options), first, last), options)

    @contextlib.contextmanager
    def around(self, options):
        if options.cell or options.last:
            raise UsageError("%%events shows its own cell: --cell and --last are for %events")
        current = views.current()
        views.take(current, current)
        handle = self._open(options, current) if options.live and not options.quiet else None
        try:
            yield
            views.submit()
        finally:
            settle(current)
            self._show_end(options, current, handle)

    def _show_end(self, options, current, handle):
        from drupe.magics import live

        view = self._finish(views.View(_kind(options), current, current), options)
        if handle is None:
            self.show(view, options)
            return
        handle.close()
        if options.output:
            self.shell.user_ns[options.output] = view
        if options.json:
            self.show(view, options)
        elif live.is_console(self.shell):
            print(view)

    def _cells(self, options, current):
        if options.cell and options.last:
            raise UsageError("--cell and --last exclude each other")
        if options.cell:
            return self._known(options.cell, *views.cell_range(options.cell, current))
        if not options.last:
            return 0, 0
        before = [number for number in views.worked(views.take()) if number < current]
        if not before:
            raise UsageError("no cell has used a device yet")
        return before[-1], before[-1]

    def _known(self, text, first, last):
        """What is asked for by number has to be there: a picture of nothing would look like a cell that did nothing."""
        view = views.take()
        worked = views.worked(view)
        there = {cell["number"] for cell in view.data()["cells"]} - {0}
        if any(first <= number <= last for number in there | set(worked)):
            return first, last
        numbers = [number for number in worked if number]
        raise UsageError("no cell of %s is remembered; %s" % (text, "cells that used a device: %s" % _ranges(numbers)
                                                              if numbers else "no cell has used a device yet"))

    def _open(self, options, current):
        from drupe.magics import live

        return live.open_view(self.shell, _kind(options), first=current, last=current)

    def _live(self, options, current):
        handle = self._open(options, current)
        if handle is None:
            return views.View(_kind(options), current, current)
        if options.output:
            self.shell.user_ns[options.output] = handle
        return None

    def _finish(self, view, options):
        if options.export:
            try:
                pathlib.Path(options.export).expanduser().write_text(view.chrome(), encoding="utf-8")
            except OSError as error:
                raise UsageError("%s cannot be written: %s" % (options.export, error.strerror)) from None
        return view


def _ranges(numbers):
    """ "2, 5-7" of increasing numbers."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(first) if first == last else "%d-%d" % (first, last) for first, last in parts)


def _kind(options):
    if options.gantt and options.table:
        raise UsageError("--gantt and --table exclude each other")
    return "table" if options.table else "events"


def settle(cell, patience=PATIENCE):
    """Wait until the work of a cell is over, or for so many seconds."""
    pause, end = 0.001, time.monotonic() + patience
    while any(one["waiting"] for one in views.take(cell, cell).data()["cells"]) and time.monotonic() < end:
        time.sleep(pause)
        pause = min(0.05, 2 * pause)
