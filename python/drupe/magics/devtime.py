"""%devtime and %%devtime: how long work takes on a device, apart from how long it takes to submit.

A run submits the statement `loops` times. It waits for all queues after each ten milliseconds, not after each loop: so
submitting overlaps with the work, as in programs, and what waits does not fill the memory. What the host did to submit,
and all of it, are read from the host's clock. The device's part is the union of what its own clock says of each
submission, where the queues carry times; else only its limits are known."""
import ast
import gc
import math
import statistics
import time

from drupe.magics import render
from drupe.magics.base import WIDTH, Magic, Option, Result, UsageError, first_line, one_line, running_code

_ENOUGH = 0.1  # seconds that a run takes at least
_MOST_LOOPS = 1000000
_RECORDS = 8192  # submissions that the trace remembers
_NAMED = 4  # labels that are shown
_AHEAD = 0.01  # seconds of work that are submitted without a wait
# What a statement computes is submitted in each loop, though nobody needs the values: that is what is timed.
_FUNCTION = """def _drupe_timed(_drupe_next, _drupe_submit):
    _drupe_setup
    while _drupe_loops := _drupe_next():
        for _drupe_i in range(_drupe_loops):
            _drupe_submit()
            _drupe_value = None
"""


def _count(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_count.__name__ = "positive number"


class DevTime(Magic):
    """Time device work: device time apart from host time, after a warm-up.

    The statement is submitted many times, then all queues are waited for; it need not wait itself. The cell form times
    the cell, and the code in its first line is the setup, which every run executes once. Where the times of
    work are known (the host device, PoCL, queues with profiling=True, or after %config Drupe.profile = True) the
    device's time is what it worked; elsewhere the host's clock is read until all is done."""

    name = "devtime"
    options = (
        Option("-n", "--loops", metavar="N", type=_count, help="submissions of the statement in a run; chosen so that "
                                                               "a run takes 0.1 s or more unless given"),
        Option("-r", "--runs", metavar="R", type=_count, default=7, help="how many runs (7)"),
        Option("-w", "--warmup", metavar="W", type=int, default=1, help="runs before those that count (1)"),
        Option("--setup", metavar="CODE", default="", help="code that every run executes once, untimed"),
    )
    tail = Option("statement", nargs="?", metavar="STATEMENT", help="what is timed; of the cell form: the setup")
    examples = (
        ("%devtime twice(x, global_size=x.size)", "times a kernel"),
        ("%%devtime -o t x = drupe.array.ones(1000000)\ny = x + 1\nz = y * y",
         "times two operations on an array that each run makes anew; t.device is the time in seconds"),
    )
    needs_local_scope = True

    def __call__(self, line, *cell, local_ns=None):
        __tracebackhide__ = True
        self._locals = local_ns
        return super().__call__(line, *cell)

    def line(self, options):
        if not options.rest:
            raise UsageError("%devtime needs a statement to time (%devtime -h explains it)")
        return self._time(options, options.rest, options.setup, _line_of(self.shell, options.rest))

    def cell(self, options, body):
        if not body.strip():
            raise UsageError("%%devtime: the cell has no code")
        setup = "\n".join(one for one in (options.setup, options.rest) if one)
        return self._time(options, body, setup, first_line(self.shell, self.name) + 1)

    def _time(self, options, statement, setup, line):
        inner = self._compile(statement, setup, line)
        clock = _Clock(inner)
        loops = options.loops or 1
        for _ in range(options.warmup):
            clock.run(loops)
        spent = clock.run(loops).wall if options.loops is None else _ENOUGH
        while spent < _ENOUGH and loops < _MOST_LOOPS:
            loops = _more(loops, spent)
            spent = clock.run(loops).wall
        return TimeResult(loops, [clock.run(loops) for _ in range(options.runs)])

    def _compile(self, statement, setup, line):
        """The timed function, with the statement as code of the running cell."""
        shell = self.shell
        raw = running_code(shell) or statement
        shown = raw.replace("%%devtime", "# %%devtime", 1)  # tracebacks show what parses
        name = shell.compile.cache(shown, shell.execution_count, raw_code=raw)
        try:
            body = ast.parse("\n" * (line - 1) + shell.transform_cell(statement), name).body
            before = ast.parse("\n" * (line - 1) + shell.transform_cell(setup), name).body
            tree = ast.parse(_FUNCTION, name)
            function = tree.body[0]
            loop = function.body[1].body[0].body
            if body and isinstance(body[-1], ast.Expr):
                body[-1] = ast.copy_location(ast.Assign(loop[1].targets, body[-1].value), body[-1])
            loop[0:0] = body
            function.body[0:1] = before
            code = compile(ast.fix_missing_locations(tree), name, "exec")
        except SyntaxError as error:
            raise _refusal(error) from None
        names = shell.user_ns
        if self._locals is not None and self._locals is not names:
            names = {**names, **self._locals}
        found = {}
        exec(code, names, found)
        return found["_drupe_timed"]


def _refusal(error):
    if "await" in str(error) or "async" in str(error):
        return UsageError("%devtime takes no await: it waits for the queues itself")
    return UsageError("%%devtime: %s" % one_line(error.msg))


def _more(loops, spent):
    """More loops, a round number, towards a run that takes long enough."""
    wanted = max(2 * loops, min(100 * loops, math.ceil(1.2 * loops * _ENOUGH / max(spent, 1e-9))))
    scale = 10 ** int(math.log10(wanted))
    return next(step * scale for step in (1, 2, 5, 10) if step * scale >= wanted)


def _line_of(shell, statement):
    """The line of the running cell with the magic."""
    for number, line in enumerate(running_code(shell).splitlines()):
        if "%devtime" in line and line.rstrip().endswith(statement.rstrip()):
            return number + 1
    return 1


class Run:
    """One run: seconds of `host` (submitting), `wall` (all) and `device` (None: only the host's clock is known) for all
    its loops, how many submissions it made, and their `labels`, each once, in the order of the first ones."""

    def __init__(self, host, wall, device, submissions, labels=()):
        self.host = host
        self.wall = wall
        self.device = device
        self.submissions = submissions
        self.labels = list(labels)


class _Clock:
    """Runs the timed function."""

    def __init__(self, function):
        from drupe import _engine

        self._engine = _engine
        self._function = function
        self._ahead = 1  # loops that are submitted without a wait
        self._last = 0  # the last submission before what counts

    def _settle(self):
        for queue in self._engine._queues():
            queue.wait()

    def _begin(self):
        """The setup is over: what comes now counts."""
        self._settle()
        latest = self._engine.trace(0, 1)
        self._last = latest[-1]["id"] if latest else 0
        gc.disable()
        self._began = time.perf_counter()

    def _end_part(self):
        """So many loops were submitted: wait for them."""
        self._host += time.perf_counter() - self._part
        self._settle()
        spent = time.perf_counter() - self._part
        if spent < _AHEAD / 2:
            self._ahead *= 2
        elif spent > 2 * _AHEAD:
            self._ahead = max(1, self._ahead // 2)

    def _next(self):
        """How many loops to submit now; 0: the run is over."""
        if self._part is None:
            self._begin()
        else:
            self._end_part()
        now = min(self._left, self._ahead)
        self._left -= now
        self._part = time.perf_counter()
        return now

    def run(self, loops):
        self._left, self._part, self._host = loops, None, 0.0
        collecting = gc.isenabled()
        try:
            self._function(self._next, self._engine._settle_all)
        finally:
            if collecting:
                gc.enable()
        return self._result(self._host, self._part - self._began)

    def _result(self, host, wall):
        seen = self._engine.trace(self._last)
        records = [one for one in seen if one["operation"] not in ("barrier", "mark")]
        total = len(records)
        if len(seen) > _RECORDS // 2 and seen[0]["id"] > self._last + 1:  # the ring has come round
            total = round(total * (seen[-1]["id"] - self._last) / (seen[-1]["id"] - seen[0]["id"] + 1))
        labels = dict.fromkeys(one["label"] for one in records)
        if not records or any(not one["ended"] for one in records):
            return Run(host, wall, 0.0 if not records else None, total, labels)
        busy = _union((one["device"], one["own_clock"], one["started"], one["ended"]) for one in records)
        return Run(host, wall, busy * 1e-9 * total / len(records), total, labels)


def _union(spans):
    """Time with work, summed over devices, and over the clocks of one."""
    busy, where, until = 0, None, 0
    for device, clock, start, end in sorted(spans):
        if (device, clock) != where:
            where, until = (device, clock), 0
        busy += max(0, end - max(start, until))
        until = max(until, end)
    return busy


class TimeResult(Result):
    """What %devtime found. `device`, `host` and `wall` are seconds of one loop, on average over the runs; `runs` has
    the figures of each run; `labels` names what ran. `exact`: the device's clock was read; else `device` is the host's
    time until the queues were empty, an upper limit."""

    def __init__(self, loops, runs):
        self.loops = loops
        self.runs = runs
        self.exact = all(one.device is not None for one in runs)
        self.labels = list(dict.fromkeys(label for one in runs for label in one.labels))
        self.submissions = statistics.fmean(one.submissions / loops for one in runs)
        self.timings = [(one.device if self.exact and self.submissions else one.wall) / loops for one in runs]
        self.device = statistics.fmean(self.timings)
        self.stdev = statistics.pstdev(self.timings)
        self.best, self.worst = min(self.timings), max(self.timings)
        self.host = statistics.fmean(one.host / loops for one in runs)
        self.wall = statistics.fmean(one.wall / loops for one in runs)

    @property
    def overlap(self):
        """The share of the device's time in which the host submitted, 0 to 1; None when that is not known."""
        if not self.exact or not self.device:
            return None
        return max(0.0, min(1.0, (self.host + self.device - self.wall) / self.device))

    @property
    def _bound(self):
        """Whether the host is what takes the time, so that the device's part cannot be told by the host's clock."""
        return not self.exact and self.host > 0.9 * self.wall

    def _lines(self):
        spread = "%s ± %s" % (render.seconds(self.device), render.seconds(self.stdev))
        runs = "%s of %s, best %s" % (render.count(len(self.runs), "run"), render.count(self.loops, "loop"),
                                      render.seconds(self.best))
        shown = "%.3g" % self.submissions
        submissions = "%s submission%s a loop" % (shown, "" if shown == "1" else "s")
        if not self.submissions:
            return [("device", "nothing was submitted to a device", ""), ("host", render.seconds(self.host), runs)]
        overlap = "" if self.overlap is None else "; overlap %.0f %%" % (100 * self.overlap)
        return [("device", ("at most " if self._bound else "") + spread, runs),
                ("host", render.seconds(self.host), "to submit; " + submissions),
                ("total", render.seconds(self.wall), "until all is done" + overlap),
                ("ran", self._ran, "")]

    @property
    def _ran(self):
        more = len(self.labels) - _NAMED
        return "; ".join(self.labels[:_NAMED]) + ("; and %d more" % more if more > 0 else "")

    @property
    def _clock(self):
        if not self.submissions:
            return "by the host's clock"
        return "by the device's clock" if self.exact else \
            "by the host's clock around a wait; profiling=True on a queue gives the device's"

    def text(self, columns=WIDTH):
        lines = self._lines()
        width = max(len(value) for _, value, note in lines if note)
        return "\n".join("%-7s %s" % (title, value.ljust(width) + "  " + note if note
                                      else render.cut(value, columns - 8))
                         for title, value, note in lines) + "\n" + self._clock

    def html(self):
        style = "text-align:left;padding:1px 10px;white-space:nowrap"
        rows = "".join(render.element("tr", render.element("td", render.escape(title), style)
                                      + render.element("td", render.escape(value),
                                                       style + ("" if i else ";font-weight:bold"))
                                      + render.element("td", render.escape(note), style + ";color:" + render.GREY),
                                      render.PLAIN)
                       for i, (title, value, note) in enumerate(self._lines()) if title != "ran")
        ran = render.note_html("ran: " + self._ran) if self.labels else ""
        return render.element("div", render.element("table", rows, render.TABLE) + ran
                              + render.note_html(self._clock))

    def data(self):
        return {"loops": self.loops, "exact": self.exact, "device": self.device, "stdev": self.stdev, "best": self.best,
                "worst": self.worst, "host": self.host, "wall": self.wall, "overlap": self.overlap,
                "submissions": self.submissions,
                "labels": self.labels,
                "runs": [{"host": one.host, "wall": one.wall, "device": one.device, "submissions": one.submissions}
                         for one in self.runs]}
