"""python -m drupe.hosted hub: a broker and JupyterHub on this machine, until Ctrl-C. `./dev hub` runs it."""
import argparse
import ctypes
import json
import os
import pathlib
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE = 90  # seconds for JupyterHub to answer
MOST_RESTARTS = 20  # of a broker that ends
PR_SET_PDEATHSIG = 1
CONFIG = """\
import os
from drupe.hosted.local import PasswordAuthenticator, configure
configure(c, {run!r}, {state!r}, {address!r}, {proxy!r})
c.JupyterHub.authenticator_class = PasswordAuthenticator
c.PasswordAuthenticator.password = os.environ.pop("DRUPE_HUB_PASSWORD")
c.PasswordAuthenticator.admin_password = os.environ.pop("DRUPE_HUB_ADMIN_PASSWORD")
c.Authenticator.admin_users = {{{admin!r}}}
"""


class HubError(Exception):
    """Why the hub does not start, and what to do."""


def end_with_us():
    """For processes that must not outlive this one, however it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def run_folder(port):
    """For sockets: short, and known by the port, so that a second hub of the same port is refused."""
    if os.geteuid() == 0:
        return pathlib.Path("/run") / f"drupe-hub-{port}"
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return pathlib.Path(base) / f"drupe-hub-{os.geteuid()}-{port}"


def find_broker(named):
    here = os.path.join(os.path.dirname(sys.executable), "drupe-broker")
    for path in [named] if named else [here, "drupe-broker"]:
        found = shutil.which(path)
        if found:
            return found
    raise HubError(f"there is no program {named or 'drupe-broker'}; name it by --broker")


def find_proxy(named):
    """The command that starts configurable-http-proxy."""
    if named and named.endswith((".js", ".mjs")) or named and "node_modules" in named:
        node = shutil.which("node") or shutil.which("nodejs")
        if node is None or not os.path.exists(named):
            raise HubError(f"the proxy needs node and {named}; ./dev hub installs both")
        return [node, named]
    found = shutil.which(named or "configurable-http-proxy")
    if found is None:
        raise HubError("there is no configurable-http-proxy: install it by npm, or name it by --proxy")
    return [found]


def broker_configuration(path, run, state, admin):
    """What drupe-broker reads: the file of --config with what is missing added, or this machine's devices."""
    from drupe.hosted import devices

    if path:
        configuration = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    else:
        found = devices.entries(complain=lambda line: print("drupe:", line, file=sys.stderr))
        configuration = devices.configuration(found)
    configuration.setdefault("admins", [admin])
    configuration.setdefault("accounting", str(state / "accounting.jsonl"))
    return {**configuration, "socket": str(run / "broker.sock"), "state": str(state / "broker")}


def unreachable(path):
    """The folder on the way to a file that other accounts may not enter, or None."""
    for folder in reversed(pathlib.Path(os.path.abspath(path)).parents):
        if not folder.stat().st_mode & 0o001:
            return folder
    return None


class Hub:
    """The processes of a hub: started one after the other, ended in the reverse order."""

    def __init__(self, options):
        self.options = options
        self.address = f"http://127.0.0.1:{options.port}"
        self.run, self.state = run_folder(options.port), pathlib.Path(options.folder).resolve()
        self.admin = pwd.getpwuid(os.geteuid()).pw_name
        self.passwords = secrets.token_urlsafe(9), secrets.token_urlsafe(18)
        if os.geteuid() != 0:
            self.passwords = self.passwords[0], self.passwords[0]  # of one and the same person
        self.children = []  # in the order of their starts
        self.broker = self.log = None
        self.restarts = 0

    def start(self):
        from drupe.hosted.local import make_folders

        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", self.options.port))
            except OSError as error:
                raise HubError(f"port {self.options.port} cannot be had: {error}. Choose another by --port") from error
        try:
            make_folders(self.run, self.state)
        except (OSError, ValueError) as error:
            raise HubError(str(error)) from error
        self.log = open(self.state / "hub.log", "wb")
        self._start_broker()
        self._start_hub()

    def _start_broker(self):
        configuration = broker_configuration(self.options.config, self.run, self.state, self.admin)
        path = self.state / "broker.json"
        path.write_text(json.dumps(configuration, indent=1) + "\n", encoding="utf-8")
        self._run_broker()
        from drupe.hosted.client import Broker, BrokerError

        os.environ["DRUPE_BROKER"] = configuration["socket"]

        def answers():
            try:
                with Broker(configuration["socket"]) as broker:
                    return broker.hello()
            except BrokerError:
                return None

        self._until(answers, "the broker")

    def _run_broker(self):
        self.broker = self._child([find_broker(self.options.broker), "--config", str(self.state / "broker.json")])

    def _start_hub(self):
        proxy = find_proxy(self.options.proxy)
        config = self.state / "jupyterhub_config.py"
        config.write_text(CONFIG.format(run=str(self.run), state=str(self.state), address=self.address, proxy=proxy,
                                        admin=self.admin), encoding="utf-8")
        self._child([sys.executable, "-m", "jupyterhub", "--config", str(config)], DRUPE_HUB_PASSWORD=self.passwords[0],
                    DRUPE_HUB_ADMIN_PASSWORD=self.passwords[1])

        def answers():
            try:
                with urllib.request.urlopen(self.address + "/hub/health", timeout=5) as answer:
                    return answer.status == 200
            except OSError:
                return False

        self._until(answers, "JupyterHub")

    def _child(self, command, **environment):
        """Ctrl-C reaches this process alone, which then ends its children in order."""
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                 env={**os.environ, **environment}, cwd=self.state, start_new_session=True,
                                 preexec_fn=end_with_us)
        self.children.append(child)
        return child

    def _until(self, ready, what):
        deadline = time.monotonic() + PATIENCE
        while not ready():
            if any(child.poll() is not None for child in self.children) or time.monotonic() > deadline:
                tail = (self.state / "hub.log").read_text(errors="replace").splitlines()[-15:]
                raise HubError("\n".join([f"{what} does not start; the end of {self.state / 'hub.log'}:", *tail]))
            time.sleep(0.05)

    def tell(self):
        lines = [f"JupyterHub runs at {self.address}", ""]
        if os.geteuid() == 0:
            lines += [f"  log in as any account of this machine, password  {self.passwords[0]}",
                      f"  to see everybody's leases, as {self.admin}, password  {self.passwords[1]}"]
        else:
            lines += [f"  log in as {self.admin}, password  {self.passwords[0]}"]
        lines += ["", f"Devices, leases and the queue: {self.address}/hub/devices",
                  f"Log: {self.state / 'hub.log'}. Ctrl-C ends the hub and its servers."]
        folder = unreachable(sys.executable) if os.geteuid() == 0 else None
        if folder:
            lines.append(f"Other accounts cannot start servers: they may not enter {folder} (chmod o+x {folder}).")
        print("\n".join(lines), flush=True)

    def wait(self):
        """Until JupyterHub ends, which it does not by itself. A broker that ends is started again, with its leases."""
        while all(child.poll() is None for child in self.children if child is not self.broker):
            if self.broker.poll() is not None and self.restarts < MOST_RESTARTS:
                self.restarts += 1
                print(f"the broker has ended ({self.broker.returncode}) and is started again", flush=True)
                self.children.remove(self.broker)
                self._run_broker()
                self.children.insert(0, self.children.pop())
            time.sleep(0.2)
        raise HubError(f"JupyterHub has ended; {self.state / 'hub.log'} tells why")

    def stop(self):
        for child in reversed(self.children):
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(60)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
        self.children = []
        if self.log:
            self.log.close()
            shutil.rmtree(self.run, ignore_errors=True)


def main(argv):
    parser = argparse.ArgumentParser(prog="python -m drupe.hosted hub", description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="of the address on 127.0.0.1 (default: 8000)")
    parser.add_argument("--folder", default="drupe-hub", help="for the database, the log, the accounting")
    parser.add_argument("--config", help="a broker's configuration instead of this machine's devices")
    parser.add_argument("--broker", help="the program drupe-broker")
    parser.add_argument("--proxy", help="configurable-http-proxy")
    hub = Hub(parser.parse_args(argv))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also where a shell has SIGINT ignored, by its `&`
    try:
        hub.start()
        hub.tell()
        hub.wait()
    except KeyboardInterrupt:
        print("\nending", flush=True)
    except HubError as error:
        sys.stderr.write(f"drupe: {error}\n")
        return 1
    finally:
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)  # the end is under way
        hub.stop()
    return 0
