"""A Docker engine of the tests' own: its images, containers and networks are apart from this machine's, and go with it.

Debian's dockerd and docker are used, with a base image made by debootstrap, because there may be no registry. `docker
compose` is the plugin where there is one, otherwise Debian's docker-compose. The engine sets up no firewall: containers
reach each other and, by what is published, 127.0.0.1; images are built in the host's network.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import image
from brokers import until
from daemon import ROOT

WORK = ROOT / "build/docker"
PROGRAMS = {"dockerd": "docker.io", "docker": "docker.io", "debootstrap": "debootstrap"}  # and their packages
BASE = "debian:bookworm-slim"  # what the Dockerfiles begin with
BRIDGE, ADDRESS = "drupe-test0", "10.219.77.1/24"  # instead of docker0, which may be that of the machine's own engine
FORWARD = pathlib.Path("/proc/sys/net/ipv4/ip_forward")
# Stands before docker in PATH. What a build needs from the network comes as it comes to this machine.
WRAPPER = """#!/bin/sh
case $1 in
build) shift && set -- build --network host "$@" ;;
compose) [ -z "{compose}" ] || {{ shift && exec "{compose}" "$@"; }} ;;
esac
exec "{docker}" "$@"
"""


def lacking():
    """Why no engine can be started here, or None."""
    if os.environ.get("DRUPE_TEST_HUB") != "1":
        return "the long tests run by ./dev hosted-test"
    if os.geteuid() != 0:
        return "containers were not seen: dockerd and debootstrap need root"
    if packages() and not may_install():
        return f"containers were not seen: this machine has no {' and no '.join(packages())}; " \
               "./dev hosted-test docker installs what is missing on a Debian"
    return None


def packages():
    """Those that are missing."""
    return sorted({package for name, package in PROGRAMS.items() if not shutil.which(name)})


def may_install():
    return os.environ.get("DRUPE_TEST_DOCKER") == "1" and shutil.which("apt-get") is not None


def compose_program():
    """Empty for the plugin of docker, else the path of docker-compose, else None."""
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return ""
    return shutil.which("docker-compose")


class Engine:
    """dockerd with everything below build/docker and a folder for its sockets."""

    def __init__(self):
        self.run = pathlib.Path(tempfile.mkdtemp(prefix="drupe-docker-"))
        self.socket = self.run / "docker.sock"
        self.keep = os.environ.get("DRUPE_TEST_KEEP") == "1"
        self.forward, self.bridges = FORWARD.read_text(), []
        WORK.mkdir(parents=True, exist_ok=True)
        image.WORK = WORK
        self.log = WORK / "log"
        self.log.write_bytes(b"")
        self.environment = {**os.environ, "DOCKER_HOST": f"unix://{self.socket}",
                            "DRUPE_DOCKER_SOCKET": str(self.socket),
                            "PATH": f"{self.run}:{os.environ['PATH']}"}
        self.process = self.compose = None

    def start(self):
        """None, or why there is no engine."""
        image.install(*packages())
        command = ["nice", "dockerd", "--data-root", WORK / "data", "--exec-root", self.run / "exec", "--pidfile",
                   self.run / "pid", "-H", f"unix://{self.socket}", "--iptables=false", "--ip6tables=false",
                   "--ip-forward=false", "--bridge", BRIDGE]
        self._clear()  # what a run that was killed has left
        subprocess.run(["ip", "link", "add", "name", BRIDGE, "type", "bridge"], check=True)
        subprocess.run(["ip", "address", "add", ADDRESS, "dev", BRIDGE], check=True)
        subprocess.run(["ip", "link", "set", BRIDGE, "up"], check=True)
        with open(WORK / "dockerd.log", "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._wrap()
        until(lambda: self.process.poll() is not None or self._answers(), "dockerd")
        if self.process.poll() is None:
            return None
        told = (WORK / "dockerd.log").read_text(errors="replace").splitlines()
        return "containers were not seen: dockerd does not run here: " + (told[-1] if told else "it says nothing")

    def _answers(self):
        done = subprocess.run(["docker", "version"], env=self.environment, capture_output=True, check=False)
        return done.returncode == 0

    def _wrap(self):
        self.compose = compose_program()
        if self.compose is None and may_install():
            image.install("docker-compose")
            self.compose = compose_program()
        wrapper = self.run / "docker"
        wrapper.write_text(WRAPPER.format(docker=shutil.which("docker"), compose=self.compose or ""))
        wrapper.chmod(0o755)

    def docker(self, *arguments, **options):
        """What a command of docker prints."""
        done = subprocess.run([self.run / "docker", *map(str, arguments)], env=self.environment, capture_output=True,
                              text=True, check=False, cwd=ROOT, **options)
        assert done.returncode == 0, f"docker {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}"[-3000:]
        return done.stdout.strip()

    def tried(self, container, *command, user=None, options=()):
        """(status, what was printed) of a command in a container."""
        who = ["--user", user] if user else []
        done = subprocess.run([self.run / "docker", "exec", *who, *options, container, *command], env=self.environment,
                              capture_output=True, text=True, check=False)
        return done.returncode, (done.stdout + done.stderr).strip()

    def inspect(self, container):
        return json.loads(self.docker("inspect", container))[0]

    def running(self):
        return set(self.docker("ps", "--format", "{{.Names}}").split())

    def there(self):
        """All containers, also those that have ended."""
        return set(self.docker("ps", "--all", "--format", "{{.Names}}").split())

    def typed(self, line, **changes):
        """Run a line as an administrator types it; its output goes to build/docker/log."""
        with open(self.log, "ab") as log:
            log.write(f"\n$ {line}\n".encode())
            log.flush()
            done = subprocess.run(["bash", "-c", line], env={**self.environment, **changes}, cwd=ROOT, check=False,
                                  stdout=log, stderr=log)
        assert done.returncode == 0, f"{line}\n" + self.log.read_text(errors="replace")[-3000:]

    def base(self):
        """The image that the Dockerfiles begin with, with this machine's settings of apt, pip and npm."""
        if self.docker("images", "--quiet", BASE):
            return
        folder = WORK / "base"
        shutil.rmtree(folder, ignore_errors=True)
        image.bootstrap("bookworm", folder)
        for here, there in image.setting_files():
            (folder / there[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, folder / there[1:])
        tar = subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE)
        self.docker("import", "--change", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "-",
                    BASE, stdin=tar.stdout)
        tar.stdout.close()
        assert tar.wait() == 0
        shutil.rmtree(folder)

    def close(self):
        """End all containers, then the engine; nothing of it stays on the machine."""
        with contextlib.suppress(AssertionError):
            containers = self.docker("ps", "--all", "--quiet").split()
            if containers:
                self.docker("rm", "--force", *containers)
            self.bridges = [f"br-{one}" for one in self.docker("network", "ls", "--quiet").split()]
            self.docker("network", "prune", "--force")
            self.docker("image", "prune", "--force")
            volumes = self.docker("volume", "ls", "--quiet").split()
            if volumes:
                self.docker("volume", "rm", *volumes)
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self._clear()
        FORWARD.write_text(self.forward)
        shutil.rmtree(self.run, ignore_errors=True)
        for name in ("base", "host") if self.keep else ("base", "host", "data"):
            shutil.rmtree(WORK / name, ignore_errors=True)

    def _clear(self):
        for name in (*self.bridges, BRIDGE):
            subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)
        for line in pathlib.Path("/proc/mounts").read_text().splitlines():
            point = line.split()[1]
            if point.startswith((f"{WORK}/", f"{self.run}/")):
                subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)


def blocks(heading):
    """The commands of docker/README.md under a heading: a list of lines for each block."""
    text = (ROOT / "docker/README.md").read_text()
    part = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert part, f"docker/README.md has no heading {heading}"
    found = re.findall(r"^```\n(.*?)^```", part[1], re.M | re.S)
    return [re.sub(r"\\\n\s*", "", block).splitlines() for block in found]

