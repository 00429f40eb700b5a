"""Kernels that share a lease, as those of one notebook server do. The broker knows the lease alone: it is idle when all
of them are, and its device is free when all have parked.

Each kernel keeps a file with its state in a folder of the user's own. A kernel that was killed is known by its pid and
the time at which it started.
"""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import stat
import tempfile
import time

_PROCESS = r"\d+-\d+"  # the name of one: see process_name()
_FRESH = 60.0  # seconds in which a lease may be too new for the list that was read


def started_at(pid):
    """When a process of this machine started, in clock ticks since the machine's start; None: there is no such, or it
    has ended and waits for its parent."""
    try:
        text = pathlib.Path("/proc/%d/stat" % pid).read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _lives(name):
    """Whether the process of this name lives."""
    pid, start = name.split("-")
    return started_at(int(pid)) == int(start)


def process_name():
    """A name for this process that no other has or had."""
    return "%d-%d" % (os.getpid(), started_at(os.getpid()))


def _own_folder():
    """A folder that nobody else can write, made if need be."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base and os.access(base, os.W_OK):
        places = [pathlib.Path(base, "drupe")]
    else:  # where everybody may write, somebody else may have been first
        places = [pathlib.Path(tempfile.gettempdir(), "drupe-%d" % os.getuid()),
                  pathlib.Path(os.path.expanduser("~"), ".cache", "drupe-leases")]
    for path in places:
        with contextlib.suppress(OSError):
            path.mkdir(mode=0o700, parents=path.parts[-2] == ".cache", exist_ok=True)
            found = path.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
                return path
    raise PermissionError("%s is not a folder that this user alone can write: remove it" % places[0])


def _plain(lease):
    return re.sub(r"[^A-Za-z0-9]", "_", str(lease))


class Siblings:
    """The kernels of one lease, this one among them. `broker`: the path of the socket of the broker that gave it."""

    def __init__(self, lease, broker):
        self._leases = "lease-%s-" % hashlib.sha256(os.path.abspath(broker).encode()).hexdigest()[:8]
        self._folder = _own_folder() / (self._leases + _plain(lease))
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._name = process_name()
        self._state = None

    def mark(self, state):
        """The state of this kernel: "busy", "idle" or "parked"."""
        if state == self._state:
            return
        fresh = self._folder / (self._name + ".new")
        fresh.write_text(state)
        fresh.replace(self._folder / self._name)
        self._state = state

    def others(self):
        """The states of the others that live."""
        states = []
        for path in self._folder.iterdir():
            if path.name == self._name or not re.fullmatch(_PROCESS, path.name):
                continue
            with contextlib.suppress(FileNotFoundError):
                if _lives(path.name):
                    states.append(path.read_text())
                else:
                    path.unlink()
        return states

    @contextlib.contextmanager
    def alone(self):
        """A block in which no other kernel of the lease asks for the device. Yields a function that tries to begin it:
        False while another is in its own."""
        with open(self._folder / "resume.lock", "w") as file:
            def begin():
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
                return True

            try:
                yield begin
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # a process that was forked meanwhile has the file, too

    def keep(self, env):
        """Note the environment of the devices that the lease has now."""
        fresh = self._folder / (self._name + ".env")
        fresh.write_text(json.dumps(env))
        fresh.replace(self._folder / "env")

    def kept(self):
        """That environment; None as long as the lease has its first devices."""
        with contextlib.suppress(OSError, ValueError):
            return json.loads((self._folder / "env").read_text())
        return None

    def sweep(self, leases):
        """Remove the folders of leases of this broker that are not among `leases`, those that it lists, and of which no
        kernel lives: a broker that has lost leases lists fewer, and so does one that tells each container its own."""
        known = {self._leases + _plain(lease) for lease in leases}
        for folder in self._folder.parent.glob(self._leases + "*"):
            if folder.name not in known and folder != self._folder:
                with contextlib.suppress(OSError):
                    lives = any(re.fullmatch(_PROCESS, path.name) and _lives(path.name) for path in folder.iterdir())
                    if not lives and time.time() - folder.stat().st_mtime > _FRESH:
                        shutil.rmtree(folder)

    def close(self):
        with contextlib.suppress(FileNotFoundError):
            (self._folder / self._name).unlink()
