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


def subshells_on():
    """Whether this kernel serves subshells: only when asked to, they move widget callbacks to other threads."""
    return os.environ.get("DRUPE_SUBSHELLS") == "1"


def _has_debugpy():
    # What importlib.util.find_spec() does, without the milliseconds of importing it.
    return any(finder.find_spec("debugpy", None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
