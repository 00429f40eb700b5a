"""Compilers' messages as text for people, and the texts of kernels.

Compilers agree on ":line:column: " and on little else: some put a path before it (of a temporary file that is gone by
now), some the severity, some a number. The path is dropped, everything else is kept."""
import re

_POSITION = re.compile(r":([0-9]{1,9}):([0-9]{1,9}): *")  # behind a path, which ends at the space before it


def build_failed(error, device, log, source):
    """Give the exception of a build that failed its text and its `log`; log and source are bytes."""
    error.log = log.decode(errors="replace")
    text = explain(error.log, (source or b"").decode(errors="replace"))
    error.args = (f"the program was not built for {device}:\n{text}",)


def _lines(text):
    *lines, last = (line.removesuffix("\r") for line in text.split("\n"))
    return [*lines, last] if last else lines


def explain(log, source):
    """Each message that carries a line number is followed by that line of the source and a mark under its column."""
    lines, source_lines, told = _lines(log), _lines(source), []
    for line, following in zip(lines, [*lines[1:], ""]):
        at = _POSITION.search(line)
        number = int(at[1]) if at else 0
        if not 0 < number <= len(source_lines):
            told.append(line)
            continue
        shown, column = source_lines[number - 1], int(at[2])
        before_path = line[:line.rfind(" ", 0, at.start()) + 1]
        told.append(f"line {number}, column {column}: {before_path}{line[at.end():]}")
        if not shown or shown not in following:  # some compilers show the line themselves
            before = shown.encode()[:max(column - 1, 0)].decode(errors="ignore")  # columns count bytes
            told += ["    " + shown, "    " + re.sub("[^\t]", " ", before) + "^"]
    return "".join(line + "\n" for line in told)


def kernel_text(kernel):
    arguments = ", ".join(f"{type} {name}" for name, type, _kind in kernel.arguments or ())
    return f"<drupe.Kernel {kernel.name}({arguments})>"
