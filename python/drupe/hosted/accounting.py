"""What this process used of its devices: seconds, memory, bytes moved, as JSON lines and as Prometheus metrics.

DRUPE_ACCOUNT names a file, to which all processes append, or a folder, in which each has a file of its own. A line
holds sums since the start of the process; so the last line of a session says all, and one that was killed lacks a
minute. "seconds" is time in which the device is known to have worked for this process, "maybe_seconds" time beside that
in which it may have: when the work of a device without profiling ran is not known.

A process writes this itself, and under its own name: it is a record for its user. What a user is charged for is the
account of the broker, which sees how long a lease was held.
"""
import json
import os
import pathlib
import pwd
import sys
import threading
import time

from .siblings import process_name

PERIOD = 60.0  # seconds between two lines
_NANO = 1e9
_FIELDS = (("seconds", "busyNs", _NANO), ("maybe_seconds", "maybeNs", _NANO), ("peak", "peak", 1),
           ("moved", "moved", 1), ("kernels", "kernels", 1))
_HELP = {
    "seconds": ("drupe_device_seconds_total", "counter", "Seconds in which the device is known to have worked."),
    "maybe_seconds": ("drupe_device_maybe_seconds_total", "counter", "Seconds beside these in which it may have."),
    "peak": ("drupe_device_memory_peak_bytes", "gauge", "The most memory that was in use at a time."),
    "used": ("drupe_device_memory_used_bytes", "gauge", "Memory in use."),
    "moved": ("drupe_device_moved_bytes_total", "counter", "Bytes of copies and fills."),
    "kernels": ("drupe_device_kernels_total", "counter", "Kernels that ran."),
}


def user():
    """The user's name: the hub's, else the system's."""
    if os.environ.get("JUPYTERHUB_USER"):
        return os.environ["JUPYTERHUB_USER"]
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def devices():
    """The sums of each device that this process has used: [{"device", "name", "seconds", ...}]."""
    engine = sys.modules.get("drupe._engine")
    if engine is None:
        return []
    engine._view_start()
    view = json.loads(engine._view(spans=1).json())
    return [{"device": one["filter"], "name": one["name"], "used": sum(one["used"]),
             **{name: one[key] / unit if unit != 1 else one[key] for name, key, unit in _FIELDS}}
            for one in view["devices"]]


def metrics():
    """What this process used of its devices, as text for Prometheus."""
    labels = {"user": user(), "session": process_name(), "lease": os.environ.get("DRUPE_LEASE", "")}
    found, lines = devices(), []
    for name, (metric, kind, about) in _HELP.items():
        lines += ["# HELP %s %s" % (metric, about), "# TYPE %s %s" % (metric, kind)]
        for one in found:
            marked = {**labels, "device": one["device"]}
            marks = ",".join('%s="%s"' % (key, _escaped(value)) for key, value in marked.items())
            lines.append("%s{%s} %s" % (metric, marks, repr(one[name])))
    return "\n".join(lines) + "\n"


def _escaped(value):
    return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Account:
    """Appends lines until it is closed."""

    def __init__(self, place, period=PERIOD):
        self._place = pathlib.Path(place)
        self._period = period
        self._pid = os.getpid()
        self._began = time.time()
        self._last = None
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="drupe-account", daemon=True)

    def start(self):
        self._path()  # a place that cannot be written is told now
        self._thread.start()
        return self

    def close(self):
        self._over.set()
        self.write(final=True)

    def _run(self):
        while not self._over.wait(self._period):
            try:
                self.write()
            except Exception as error:
                print("drupe: the account is not written: %s" % error, file=sys.__stderr__)
                return

    def _path(self):
        if self._place.is_dir():
            return self._place / ("%s-%s.jsonl" % (user().replace("/", "_"), process_name()))
        if not self._place.parent.is_dir():
            raise FileNotFoundError("DRUPE_ACCOUNT=%s cannot be written: there is no folder %s"
                                    % (self._place, self._place.parent))
        return self._place

    def write(self, final=False):
        """Append a line, if anything has changed since the last."""
        if os.getpid() != self._pid:
            return  # a forked child has used nothing
        with self._lock:
            found = devices()
            if found == self._last and not final:
                return
            self._last = found
            line = {"user": user(), "session": process_name(), "lease": os.environ.get("DRUPE_LEASE") or None,
                    "began": round(self._began, 3), "now": round(time.time(), 3), "final": final,
                    "seconds": sum(one["seconds"] for one in found),
                    "maybe_seconds": sum(one["maybe_seconds"] for one in found),
                    "moved": sum(one["moved"] for one in found), "devices": found}
            _append(self._path(), json.dumps(line) + "\n")


def _append(path, line):
    """In one call, so that lines of several processes do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def start(place):
    """Account for this process from now on."""
    return Account(place).start()
