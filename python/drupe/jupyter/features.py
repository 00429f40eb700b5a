"""What kernel_info says of the language and of the features: made before the sockets are bound, so it must be quick."""
import os
import sys


_INFO = """{
"implementation": "drupe", "implementation_version": "%(version)s",
"language_info": {"name": "python", "version": "%(python)s", "mimetype": "text/x-python",
 "codemirror_mode": {"name": "ipython", "version": 3}, "pygments_lexer": "ipython3",
 "nbconvert_exporter": "python", "file_extension": ".py"},
"banner": "Drupe %(version)s: Python %(python)s with devices",
"help_links": [
 {"text": "Python Reference", "url": "https://docs.python.org/%(minor)s"},
 {"text": "IPython Reference", "url": "https://ipython.readthedocs.io/en/stable/"},
 {"text": "NumPy Reference", "url": "https://numpy.org/doc/stable/reference/"}],
"supported_features": [%(features)s]}"""


def kernel_info(version):
    """The text for Server(), by hand: the module json takes milliseconds to load."""
    python = sys.version.split()[0].rstrip("+")
    return _INFO % {"version": version, "python": python, "minor": "%d.%d" % sys.version_info[:2],
                    "features": ", ".join('"%s"' % name for name in supported())}


def supported():
    """The names of the features that this kernel has."""
    found = []
    if _has_debugpy() and os.environ.get("DRUPE_DEBUGGER") != "0":
        found.append("debugger")
    if subshells_on():
        found.append("kernel subshells")
    if os.environ.get("DRUPE_LEASE"):
        found.append("drupe lease")  # the panel asks for it
    return found


def problems():
    """What is wrong in the variables that only the kernel reads, a line each."""
    lines = ["%s=%s cannot be understood and counts as not set: write 0 or 1" % (name, os.environ[name])
             for name in ("DRUPE_BUSY_DEVICE", "DRUPE_COMPAT", "DRUPE_DEBUGGER", "DRUPE_SUBSHELLS")
             if os.environ.get(name, "") not in ("", "0", "1")]
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
