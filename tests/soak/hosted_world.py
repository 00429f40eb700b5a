"""The machine of the soak of hosted kernels: drupe-broker with devices that nobody has, and hubs whose people use them.

A hub is a process of its own (hosted_hub.py), as a user of its own where that is allowed. It starts kernels by
drupe.hosted.provisioner, and tells by lines of JSON what happens.
"""
import collections
import contextlib
import json
import os
import pathlib
import pwd
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "hosted"))

from brokers import ANSWER_MOST, program  # noqa: E402

HOUR = 15.0  # seconds of a run that stand for an hour
IDLE = 5 * HOUR / 60  # after so long a kernel that is idle gives its device up
FIRST_UID = 64100  # of the hubs' users: nobody's
GIB = 1 << 30
PROFILES = {"gpu": {"kind": "gpu"}, "two-gpus": {"kind": "gpu", "devices": 2}, "processor": {"kind": "cpu"},
            "half": {"kind": "cpu", "parts": 2}, "quarter": {"kind": "cpu", "parts": 1},
            "share": {"kind": "accelerator", "memory": 3 * GIB}, "large": {"kind": "accelerator", "memory": 6 * GIB},
            "timed": {"kind": "gpu", "seconds": HOUR * 2 / 3}}


def _device(name, kind, parts=1, memory=0):
    """SOAK_USE names the parts in the environment: a cell that computes locks them."""
    names = [f"{name}.{part}" for part in range(parts)]
    made = {"id": name, "kind": kind, "name": f"Soak {name}", "parts": parts, "memory": memory,
            "env": {"DRUPE_DEVICES": "host:*", "SOAK_USE": ",".join(names)}}
    if parts > 1:
        made["part_env"] = [{"SOAK_USE": one} for one in names]
    return made


DEVICES = [_device("gpu0", "gpu"), _device("gpu1", "gpu"), _device("cpu0", "cpu", 4), _device("acc0", "accelerator",
                                                                                             memory=8 * GIB)]


def alive(pid):
    """Whether a process lives; one that has ended and waits for its parent does not."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


class Service:
    """The broker, with what can happen to it. Times are those of time.monotonic()."""

    def __init__(self, folder):
        self.folder, self.path = folder, str(folder / "broker.sock")
        self.config = folder / "broker.json"
        profiles = {name: {**one, "idle": IDLE, "title": name} for name, one in PROFILES.items()}
        self.config.write_text(json.dumps({
            "devices": DEVICES, "profiles": profiles, "socket": self.path, "state": str(folder / "state"),
            "admins": [pwd.getpwuid(os.geteuid()).pw_name], "warning": HOUR / 6, "patience": HOUR / 3,
            "accounting": str(folder / "accounts")}))
        self.process = self._socket = None
        self.up_since = None  # since when it answers
        self.disturbed = -1e9  # when it was away last
        self.stopped_until = self.down_until = None

    def start(self):
        self.down_until = None
        with open(self.folder / "broker.log", "ab") as log:
            self.process = subprocess.Popen([program(), "--config", str(self.config)], stderr=log,
                                            stdin=subprocess.DEVNULL)

    def kill(self, how, seconds):
        """End it; it is started again after so many seconds."""
        self.process.send_signal(how)
        self.process.wait()
        self._away()
        self.stopped_until, self.down_until = None, time.monotonic() + seconds

    def stop(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        self._away()
        self.stopped_until = time.monotonic() + seconds

    def tear(self, lease):
        """What a broker leaves that dies while it writes: the begin of a line, of a lease that goes on."""
        with open(self.folder / "state" / "journal", "a") as journal:
            journal.write(json.dumps({"end": lease})[:-1] if lease else '{"put":{"id":"torn')

    def _away(self):
        self.up_since, self.disturbed = None, time.monotonic()
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def tend(self, now):
        """Start it again, or let it go on, when that time has come."""
        if self.down_until is not None and now >= self.down_until:
            self.start()
        if self.stopped_until is not None and now >= self.stopped_until:
            self.stopped_until = None
            self.process.send_signal(signal.SIGCONT)
        if self.up_since is None:
            self.disturbed = now

    @property
    def steady(self):
        return self.down_until is None and self.stopped_until is None

    def list(self):
        """The broker's list; None while it is away."""
        if not self.steady:
            return None
        if self.process.poll() is not None:
            raise AssertionError(f"the broker has ended with status {self.process.returncode}")
        try:
            if self._socket is None:
                made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                made.settimeout(20)
                made.connect(self.path)
                self._socket = made
            self._socket.send(b'{"op": "list"}')
            answer = json.loads(self._socket.recv(ANSWER_MOST))
        except (FileNotFoundError, ConnectionRefusedError):
            return None  # it is on its way
        if self.up_since is None:
            self.up_since = time.monotonic()
        return answer

    def accounted(self):
        """The leases that have ended."""
        return {json.loads(line)["lease"] for line in (self.folder / "accounts").read_text().splitlines()}

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        if self._socket is not None:
            self._socket.close()


class Hub:
    """A hub and its user. It is killed and started again; its number stays."""

    def __init__(self, number, folder, seed, broker):
        self.number, self.broker = number, broker
        self.folder = folder / f"u{number}"
        self.folder.mkdir()
        self.uid = FIRST_UID + number if os.geteuid() == 0 else None
        if self.uid is not None:
            os.chown(self.folder, self.uid, self.uid)
        self.seed, self.process = seed, None
        self.lives = 0
        self.active = set()  # numbers of its sessions
        self.start()

    def start(self):
        self.lives += 1
        self._rest = b""
        options = {"seed": self.seed, "folder": str(self.folder), "broker": self.broker, "life": self.lives,
                   "locks": str(self.folder.parent / "locks"), "specs": str(self.folder.parent / "kernels")}
        other = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        environment = {**os.environ, "HOME": str(self.folder), "TMPDIR": str(self.folder), "DRUPE_CACHE": "0",
                       "IPYTHONDIR": str(self.folder / "ipython"), "PYTHONDONTWRITEBYTECODE": "1"}
        for name in ("XDG_RUNTIME_DIR", "DRUPE_LEASE", "DRUPE_BROKER", "JPY_PARENT_PID"):
            environment.pop(name, None)
        with open(self.folder.parent / "hubs.log", "ab") as log:
            self.process = subprocess.Popen([sys.executable, str(HERE / "hosted_hub.py"), json.dumps(options)],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                            cwd=self.folder, env=environment, **other)
        os.set_blocking(self.process.stdout.fileno(), False)

    def tell(self, **command):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()

    def heard(self):
        """The lines that have come, as objects."""
        with contextlib.suppress(BlockingIOError):
            while got := os.read(self.process.stdout.fileno(), 65536):
                self._rest += got
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        """Its sessions are over: it ends by itself."""
        self.process.stdin.close()
        self.process.wait(60)

    def kernels(self):
        """The kernels that it, or an earlier life of it, has started: whether each ends with it, by its pid."""
        found = {}
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (path / "cmdline").read_bytes().decode(errors="replace")
                if f"{self.folder}/s" in words and alive(path.name):
                    found[int(path.name)] = b"JPY_PARENT_PID=" in (path / "environ").read_bytes()
        return found


class Trace:
    """What happened last."""

    def __init__(self):
        self.begin = time.monotonic()
        self.lines = collections.deque(maxlen=80)
        self.counts = collections.Counter()

    def add(self, what, /, **more):
        self.counts[what] += 1
        words = " ".join(f"{name}={value}" for name, value in more.items())
        self.lines.append(f"{time.monotonic() - self.begin:8.2f}  {what} {words}")
