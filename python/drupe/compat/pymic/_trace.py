"""PYMIC_DEBUG: lines about what happens. PYMIC_TRACE=1: every call with its time and its place, told when the process
ends; PYMIC_TRACE_STACKS says how much of the place: none, compact, full. All are read when the module is imported."""
import atexit
import functools
import os
import sys
import time
import traceback


def _number(name):
    try:
        return int(os.environ.get(name, "") or 0)
    except ValueError:
        return 0


LEVEL, TRACING = _number("PYMIC_DEBUG"), _number("PYMIC_TRACE") > 0
STACKS = os.environ.get("PYMIC_TRACE_STACKS", "compact").lower()
_calls = {}  # name: [(seconds, arguments in words, place)]


def debug(level, text, *values):
    """A line on stderr, where PYMIC_DEBUG asks for this level."""
    if level <= LEVEL:
        print("PYMIC: " + text % values, file=sys.stderr)


def traced(function):
    """The function itself, or one that notes its calls."""
    if not TRACING:
        return function

    @functools.wraps(function)
    def noting(*arguments, **keywords):
        began = time.perf_counter()
        try:
            return function(*arguments, **keywords)
        finally:
            words = ", ".join([_short(one) for one in arguments[1:]]
                              + ["%s=%s" % (name, _short(one)) for name, one in keywords.items()])
            _calls.setdefault(function.__name__, []).append((time.perf_counter() - began, words, _place()))

    return noting


def _short(value):
    shape = getattr(value, "shape", None)
    if shape is not None and not callable(shape) and hasattr(value, "dtype"):
        return "%s%s" % (value.dtype, list(shape))
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return value[0]  # a kernel
    return repr(value) if isinstance(value, (int, float, complex, str, type(None))) else type(value).__name__


def _place():
    if STACKS == "none":
        return []
    here = os.path.dirname(os.path.abspath(__file__))
    frames = [one for one in traceback.extract_stack() if os.path.dirname(os.path.abspath(one.filename)) != here]
    shown = frames if STACKS == "full" else frames[-1:]
    return ["%s:%d in %s" % (one.filename, one.lineno, one.name) for one in shown]


def report(file=None):
    """Tell what was noted."""
    file = file or sys.stderr
    for name, calls in sorted(_calls.items()):
        print("PYMIC: %s: %d calls, %.6f s" % (name, len(calls), sum(one[0] for one in calls)), file=file)
        for seconds, words, place in calls:
            print("PYMIC:   %.6f s %s(%s)" % (seconds, name, words), file=file)
            for line in place:
                print("PYMIC:     " + line, file=file)


if TRACING:
    atexit.register(report)
