"""A Jupyter server of the tests' own, with the drupe that is installed beside it."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NODE = os.environ.get("DRUPE_NODE_MODULES", str(ROOT / "build" / "clients" / "node_modules"))
TIMEOUT = 120
PR_SET_PDEATHSIG = 1


def scenarios(script):
    """The names of the scenarios in a script for node."""
    return re.findall(r'^scenario\("([^"]+)"', (HERE / script).read_text(encoding="utf-8"), re.MULTILINE)


def run_scenario(script, scenario, timeout=600, **environment):
    """Run one scenario of a script in node; it must succeed."""
    process = subprocess.Popen(["node", str(HERE / script), scenario], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, env={**os.environ, "NODE_PATH": NODE, **environment}, preexec_fn=end_with_us)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise AssertionError("no end within %d s: %s" % (timeout, stop(process))) from None
    finally:
        stop(process)
    assert process.returncode == 0, output


def stop(process):
    """End a scenario that has not ended, and its browser; what it had to say."""
    if process.poll() is not None:
        return ""
    process.terminate()  # then it closes its browser itself
    try:
        return process.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def end_with_us():
    """For processes that must not outlive the tests, however these end."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Server:
    """A Jupyter server: its folder, its address and its REST interface."""

    def __init__(self, folder, *options, application="jupyterlab", **environment):
        self.folder = folder
        self.notebooks = folder / "notebooks"
        self.token = secrets.token_hex(8)
        self.environment = {**os.environ, "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
                            "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
                            "IPYTHONDIR": str(folder / "ipython"), **environment}
        for name in ("config", "data", "runtime"):
            self.environment["JUPYTER_%s_DIR" % name.upper()] = str(folder / name)
        self.notebooks.mkdir(parents=True)
        quiet = folder / "config" / "labconfig" / "page_config.json"
        quiet.parent.mkdir(parents=True)
        quiet.write_text(json.dumps({"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}))
        timing = folder / "settings" / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
        timing.parent.mkdir(parents=True)
        timing.write_text(json.dumps({"recordTiming": True}))
        self._subshell_kernelspec()
        root = ["--allow-root"] if os.geteuid() == 0 else []
        self.log = open(folder / "server.log", "wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", application, "--no-browser", "--ip=127.0.0.1", "--port=0", *root,
             "--IdentityProvider.token=" + self.token, "--ServerApp.root_dir=" + str(self.notebooks),
             "--MultiKernelManager.default_kernel_name=drupe",
             # A kernel that dies in its first seconds gets other ports otherwise, and its clients wait at the old ones.
             "--KernelRestarter.random_ports_until_alive=False", *options],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True,
            preexec_fn=end_with_us)
        self.url = self._wait()

    def _subshell_kernelspec(self):
        spec = {"argv": ["python", "-m", "drupe", "-f", "{connection_file}"], "display_name": "Subshells",
                "language": "python", "interrupt_mode": "message", "env": {"DRUPE_SUBSHELLS": "1"}}
        folder = self.folder / "data" / "kernels" / "drupe-subshells"
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(spec))

    def _wait(self):
        info = self.folder / "runtime" / ("jpserver-%d.json" % self.process.pid)
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                url = json.loads(info.read_text())["url"]
                self.url = url
                self.rest("api/status")
                return url
            except (OSError, ValueError):
                time.sleep(0.05)
        raise AssertionError("the server does not start:\n" + (self.folder / "server.log").read_text())

    def rest(self, path, method="GET", body=None):
        """A REST call; the decoded answer."""
        return self.call(path, method, body)[1]

    def call(self, path, method="GET", body=None):
        """A REST call; the answer's status and headers, and what it holds."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Authorization": "token " + self.token}, method=method)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            text = answer.read()
            return answer, json.loads(text) if text else None

    def node(self, script, scenario, timeout=600, **environment):
        """Run one scenario of a script with this server."""
        run_scenario(script, scenario, timeout, DRUPE_URL=self.url, DRUPE_TOKEN=self.token,
                     DRUPE_NOTEBOOKS=str(self.notebooks), DRUPE_PICTURES=str(pictures()), **environment)

    def close(self):
        try:
            for kernel in self.rest("api/kernels"):
                self.rest("api/kernels/" + kernel["id"], "DELETE")
            self.process.terminate()
            self.process.wait(TIMEOUT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.log.close()


def pictures():
    folder = ROOT / "build" / "screens"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
