"""%deverrors: what failed on devices."""
import datetime

from drupe._repr import place
from drupe.magics import render
from drupe.magics.base import WIDTH, Magic, Option, Result, UsageError

_cleared = 0  # the last failure that was cleared


class DevErrors(Magic):
    """The failures of device work: which cell and line submitted it, what failed where, what to do.

    The last 128 are remembered, told or not; work that was cancelled, or did not run because of another failure, is
    no failure of its own."""

    name = "deverrors"
    options = (
        Option("--last", metavar="N", type=int, help="only the last N"),
        Option("--raise", dest="raises", action="store_true", help="raise the latest as an exception"),
        Option("--clear", action="store_true", help="forget them"),
    )
    examples = (("%deverrors", "all failures, the latest last"), ("%deverrors --last 1 --raise", "raises the latest"))

    def line(self, options):
        from drupe import _engine

        global _cleared
        found = _engine._failures(_cleared)
        if options.last is not None:
            if options.last < 1:
                raise UsageError("%deverrors --last takes a number from 1 on")
            found = found[-options.last:]
        if options.clear:
            _cleared = _engine._failures()[-1]["id"] if found else _cleared
            return None
        if options.raises and found:
            raise _exception(found[-1])
        return Failures(found)


def _exception(failure):
    import drupe

    kind = getattr(drupe, failure["error"] or "", None) or drupe.DeviceError
    error = kind(": ".join(filter(None, (place(failure), failure["text"]))))
    error.status, error.hint = failure["name"], failure["hint"]
    return error


def _time(failure):
    return datetime.datetime.fromtimestamp(failure["unix"] / 1000).strftime("%H:%M:%S")


class Failures(Result):
    """Failures; `failures` has a dict for each."""

    def __init__(self, failures):
        self.failures = failures

    def _what(self, one):
        where = " on " + one["device"] if one["device"] else ""
        where += ", queue %d" % one["queue"] if one["queue"] else ""
        more = one["dependents"]
        behind = "; %s behind it did not run" % render.count(more, "submission") if more else ""
        return "%s%s: %s%s" % (one["label"] or one["operation"] or "work", where, one["error"] or one["name"], behind)

    def text(self, columns=WIDTH):
        import textwrap

        if not self.failures:
            return "no failures"
        lines = []
        for one in self.failures:
            lines += textwrap.wrap("%s  %s  %s" % (_time(one), place(one) or "no cell", self._what(one)), columns,
                                   subsequent_indent=" " * 10)
            for text in (one["text"], one["arguments"] and "arguments: " + one["arguments"], one["hint"]):
                lines += textwrap.wrap(text or "", columns, initial_indent=" " * 10, subsequent_indent=" " * 10)
        return "\n".join(lines)

    def html(self):
        if not self.failures:
            return render.note_html("no failures")
        parts = []
        for one in self.failures:
            when = render.element("span", render.escape("  " + _time(one)), "color:" + render.GREY)
            where = render.element("b", render.escape(place(one) or "no cell"))
            head = render.element("div", where + render.escape("  " + self._what(one)) + when)
            body = [render.element("div", render.escape(one["text"] or ""))]
            if one["arguments"]:
                body.append(render.element("div", render.element("code", render.escape(one["arguments"]))))
            if one["hint"]:
                body.append(render.element("div", render.escape(one["hint"]), "color:" + render.GREY))
            parts.append(render.element("div", head + "".join(body),
                                        "border-left:3px solid %s;padding:2px 10px;margin:6px 0" % render.LIMIT))
        return render.element("div", "".join(parts), "font-size:13px")

    def data(self):
        return self.failures
