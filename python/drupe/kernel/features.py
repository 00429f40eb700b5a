"""What kernel_info announces as supported_features: decided before the sockets are bound, so it must be quick."""
import os
import sys


def supported():
    """The names for Server(..., features=...)."""
    found = []
    if _has_debugpy() and os.environ.get("DRUPE_DEBUGGER") != "0":
        found.append("debugger")
    if subshells_on():
        found.append("kernel subshells")
    return found


def problems():
    """What is wrong in the variables that only the kernel reads, a line each."""
    lines = ["%s=%s cannot be understood and counts as not set: write 0 or 1" % (name, os.environ[name])
             for name in ("DRUPE_DEBUGGER", "DRUPE_SUBSHELLS") if os.environ.get(name, "") not in ("", "0", "1")]
    path = os.environ.get("DRUPE_LOG")
    if path:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
        except OSError as error:
            lines.append("DRUPE_LOG=%s cannot be written (%s): there is no log" % (path, error.strerror))
    return lines


def subshells_on():
    """Whether this kernel serves subshells: only when asked to, they move widget callbacks to other threads."""
    return os.environ.get("DRUPE_SUBSHELLS") == "1"


def _has_debugpy():
    # What importlib.util.find_spec() does, without the milliseconds of importing it.
    return any(finder.find_spec("debugpy", None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
