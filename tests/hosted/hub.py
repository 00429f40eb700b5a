"""A hub of the tests' own, and people who use it: accounts made by useradd, sessions that log in by the page."""
import contextlib
import http.cookiejar
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

from brokers import until
from daemon import CPU, DEVICES, PROFILES, ROOT

PROXY = ROOT / "build/proxy/node_modules/configurable-http-proxy/bin/configurable-http-proxy"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Account:
    """A real account, for as long as a test needs it."""

    def __init__(self, name):
        self.name = name
        subprocess.run(["useradd", "--create-home", name], check=True, capture_output=True)

    def run(self, *command):
        done = subprocess.run(["setpriv", f"--reuid={self.name}", f"--regid={self.name}", "--init-groups", "env",
                               f"HOME=/home/{self.name}", *command], capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, path, text):
        """A file in the home of this account."""
        self.run("sh", "-c", 'mkdir -p "$(dirname "$HOME/$1")" && printf %s "$2" >"$HOME/$1"', "sh", path, text)

    def remove(self):
        subprocess.run(["pkill", "-KILL", "-u", self.name], check=False)
        until(lambda: subprocess.run(["userdel", "--remove", self.name], capture_output=True).returncode in (0, 6, 12),
              f"the removal of {self.name}")


class Hub:
    """`python -m drupe.hosted hub` with two GPUs that nobody has, or a configuration of the test's own. In the
    background, as a shell's `&` starts it, it ignores Ctrl-C."""

    def __init__(self, folder, configuration=None, background=False):
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        config = folder / "devices.json"
        config.write_text(json.dumps(configuration or {"devices": [*DEVICES, CPU], "profiles": PROFILES}))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "drupe.hosted", "hub", "--port", str(self.port), "--folder", str(folder / "hub"),
             "--config", str(config), "--proxy", str(PROXY)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN if background else signal.SIG_DFL))
        self.said = ""
        while "Ctrl-C ends" not in self.said:
            line = self.process.stdout.readline()
            assert line, self.said
            self.said += line
        self.password, self.admin_password = re.findall(r"password  (\S+)", self.said)
        self.broker_socket = f"/run/drupe-hub-{self.port}/broker.sock"

    def log(self):
        return (self.folder / "hub" / "hub.log").read_text(errors="replace")

    def broker_process(self):
        """The pid of the hub's own broker."""
        return next(pid for pid in children(self.process.pid) if "drupe-broker" in command(pid))

    def stop(self, how=signal.SIGINT):
        """Ctrl-C, or another signal; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(120)
        self.process.stdout.close()
        return status


def children(pid):
    """All processes below one."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            text = path.read_text()
            parents.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    found, todo = [], [pid]
    while todo:
        below = parents.get(todo.pop(), [])
        found += below
        todo += below
    return found


def command(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def environment(pid):
    text = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode()
    return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)


def listening(pids):
    """The TCP ports on which these processes listen."""
    inodes = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(link)))
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


class Person:
    """A browser without a picture: cookies, forms, and the API with a token of its own."""

    def __init__(self, hub, name, password):
        self.hub, self.name, self.token = hub, name, None
        self.cookies = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.page("/hub/login")
        self.landed = self.form("/hub/login?next=%2Fhub%2Fhome", username=name, password=password)
        self.token = self.post(f"/hub/api/users/{name}/tokens", {})["token"]

    def page(self, path):
        with self.opener.open(self.hub.address + path, timeout=60) as answer:
            return answer.read().decode()

    def xsrf(self):
        return next(cookie.value for cookie in self.cookies if cookie.name == "_xsrf" and cookie.path == "/hub/")

    def form(self, path, **fields):
        """Send a form; where that led."""
        data = urllib.parse.urlencode({"_xsrf": self.xsrf(), **fields}).encode()
        with self.opener.open(self.hub.address + path, data, timeout=60) as answer:
            return answer.geturl()

    def post(self, path, body, method="POST"):
        headers = {"Authorization": f"token {self.token}"} if self.token else {"X-XSRFToken": self.xsrf()}
        headers["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.hub.address + path, data, headers, method=method)
        with (urllib.request.urlopen(request, timeout=60) if self.token else self.opener.open(request)) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def get(self, path):
        return self.post(path, None, "GET")

    def spawn(self, profile):
        self.page("/hub/spawn")
        return self.form(f"/hub/spawn/{self.name}", profile=profile)

    def server(self):
        return self.get(f"/hub/api/users/{self.name}")["servers"].get("", {})

    def ready(self):
        return self.server().get("ready")

    def stop(self):
        with contextlib.suppress(urllib.error.HTTPError):
            self.post(f"/hub/api/users/{self.name}/server", None, "DELETE")
        until(lambda: not self.server(), "the end of the server")

    def leave(self):
        """Stop the server, if there is one, which may still be coming or going."""
        if self.server():
            until(lambda: not self.server().get("pending"), "a server that is no longer pending")
            self.stop()

    def kernel(self, name="drupe"):
        """Start a kernel; its pid, once it runs."""
        before = set(children(self.server_pid()))
        self.post(f"/user/{self.name}/api/kernels", {"name": name})
        return until(lambda: next((pid for pid in set(children(self.server_pid())) - before
                                   if "-f " in command(pid)), None), "the kernel")

    def server_pid(self):
        return self.hub_admin().get(f"/hub/api/users/{self.name}")["servers"][""]["state"]["pid"]

    def hub_admin(self):
        return self.hub.admin

    def events(self):
        """The first thing that the page "Devices" hears."""
        with self.opener.open(self.hub.address + "/hub/devices/events", timeout=60) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    return json.loads(line[6:])
        raise AssertionError("no event came")


def possible():
    """Why there can be no hub of real accounts here, or None."""
    if os.environ.get("DRUPE_TEST_HUB") != "1":
        return "the long tests run by ./dev hosted-test"
    if os.geteuid() != 0 or not shutil.which("useradd"):
        return "accounts are made by root, with useradd"
    return None
