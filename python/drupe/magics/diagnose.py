"""What a compiler says about a cell, shown at the cell's lines."""
import re

from drupe.magics import render, settings

_POSITION = re.compile(r"(\S*?):?(?<!\d)(\d+):(\d+):(?!\d+:)\s*")
_SEVERITY = re.compile(r"\s*\b(fatal error|error|warning|note|remark):\s*", re.IGNORECASE)
_COLOURS = {"error": "31", "fatal error": "31", "warning": "35"}
_FILE = re.compile(r"\.(h|hh|hpp|clh|inc)$")
_MOST = 20


class Diagnostic:
    """One message: `line` and `column` of the cell (None when it is about something else), `severity`, `message`."""

    def __init__(self, line, column, severity, message, source):
        self.line = line
        self.column = column
        self.severity = severity
        self.message = message
        self._source = source  # lines of the cell

    @property
    def head(self):
        place = "" if self.line is None else "line %d, column %d: " % (self.line, self.column)
        return place + self.severity + ": " + self.message

    def _marked(self):
        """(number, text, whether it is the line) of the lines to show, and the caret's place."""
        lines = [(number, self._source[number - 1].expandtabs(4), number == self.line)
                 for number in range(max(1, self.line - 1), self.line + 1)
                 if number == self.line or self._source[number - 1].strip()]
        before = self._source[self.line - 1][:self.column - 1].expandtabs(4)
        return lines, len(before)

    def text(self, colours=True):
        def paint(code, text):
            return "\x1b[%sm%s\x1b[39m" % (code, text) if colours else text

        lines = [paint(_COLOURS.get(self.severity, "36"), self.head)]
        if self.line is not None:
            shown, caret = self._marked()
            for number, text, marked in shown:
                front = ("----> %d" if marked else "      %d") % number
                lines.append(paint("32", front) + " " * max(1, 12 - len(front)) + text)
            lines.append(" " * (12 + caret) + paint("31", "^"))
        return "\n".join(lines)

    def html(self):
        parts = [render.element("div", render.escape(self.head), "font-weight:bold")]
        if self.line is not None:
            shown, caret = self._marked()
            text = "\n".join(["%4d  %s" % (number, line) for number, line, _ in shown] + [" " * (6 + caret) + "^"])
            parts.append(render.element("pre", render.escape(text), "margin:0"))
        return render.element("div", "".join(parts), "border-left:3px solid %s;padding:2px 10px;margin:4px 0" % (
            render.LIMIT if "error" in self.severity else "#b279a2"))

    def data(self):
        return {"line": self.line, "column": self.column, "severity": self.severity, "message": self.message}


def read(log, source):
    """The messages of a compiler's log. `source` is what it compiled, with lines numbered as in the cell."""
    lines, found, seen = source.splitlines(), [], set()
    for text in log.splitlines():
        severity, position = _SEVERITY.search(text), _POSITION.search(text)
        if severity is None:
            continue
        line = column = None
        message = text[severity.end():]
        if position is not None:
            line, column = int(position[2]), int(position[3])
            message = text[max(severity.end(), position.end()):].strip()
            if not 0 < line <= len(lines) or _FILE.search(position[1]):
                message, line, column = text[position.start():].strip(), None, None
        one = Diagnostic(line, column, severity[1].lower(), message, lines)
        if one.head not in seen:
            seen.add(one.head)
            found.append(one)
    return found


def marked(error, source, shell):
    """The BuildError of a cell, in one line, and shown with its lines."""
    found = read(getattr(error, "log", ""), source)
    errors = [one for one in found if "error" in one.severity]
    colours = settings.of(shell).colours and getattr(shell, "colors", "") not in ("NoColor", "nocolor")
    log = [line for line in getattr(error, "log", "").splitlines() if line.strip()] or [str(error)]
    summary = errors[0].head if errors else " ".join(log[0].split())
    summary += " (and %d more)" % (len(errors) - 1) if len(errors) > 1 else ""
    shown = [one.text(colours) for one in found[:_MOST]] if errors else log[:_MOST]
    if len(found) > _MOST:
        shown.append("... and %d more" % (len(found) - _MOST))
    name = type(error).__name__
    head = ("\x1b[31m%s\x1b[39m" if colours else "%s") % name + ": the cell does not compile for %s" % (
        getattr(error, "device", None) or "the device")
    lines = "\n".join([head, *shown]).split("\n")
    error.args = (summary,)
    error.diagnostics = found
    error._render_traceback_ = lambda: lines
    return error
