"""Soak 3: restart on the same ports, shutdown with work in flight, a parent that is killed. Nothing is left behind:
no process, no bound port."""
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

import psutil
from client import Failure, Process

_WORK = (
    "import time; time.sleep(600)",
    "while True: pass",
    "while True: print('x' * 1000)",
    "import asyncio; await asyncio.sleep(600)",
    "import subprocess; subprocess.run(['sleep', '600'])",
    "!sleep 600",
    "import threading, time\nfor i in range(5): threading.Thread(target=time.sleep, args=(600,)).start()",
    "import multiprocessing as m\np = m.get_context('fork').Process(target=__import__('time').sleep, args=(600,))\n"
    "p.start(); p.join()",
    "input()",
    "import ctypes; ctypes.PyDLL(None).usleep(1500000)",
    "pass",
)
_PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
GONE_WITHIN = 10.0


def _wait(condition, what):
    deadline = time.monotonic() + GONE_WITHIN
    while not condition():
        if time.monotonic() > deadline:
            raise Failure("waited %g s in vain for %s" % (GONE_WITHIN, what))
        time.sleep(0.005)


def _running(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def _check_gone(pid, children, ports):
    for child in children:
        _wait(lambda child=child: not _running(child), "process %d of kernel %d to end" % (child.pid, pid))
    for port in ports.values():
        _wait(lambda port=port: _free(port), "port %d to be free" % port)


def _shut_down(process, restart, rng):
    """Give it work, end it in the middle; seconds until it was gone."""
    client = process.client()
    work = rng.choice(_WORK)
    client.execute(work, allow_stdin=False)
    time.sleep(rng.random() * 0.15)
    children = psutil.Process(process.pid).children(recursive=True)
    started = time.monotonic()
    client.send("control", "shutdown_request", {"restart": restart})
    try:
        process.process.wait(GONE_WITHIN)
    except subprocess.TimeoutExpired:
        raise Failure("the kernel did not end in the middle of %r" % work) from None
    client.close()
    if process.process.returncode != 0:
        raise Failure("exit code %s in the middle of %r" % (process.process.returncode, work))
    return time.monotonic() - started, children


def _restarts(folder, count, rng):
    times, ports = [], None
    for _ in range(count):
        process = Process(folder, ports=ports)
        try:
            ports = {name: process.info[name] for name in _PORTS}
            seconds, children = _shut_down(process, True, rng)
            times.append(seconds)
        finally:
            process.stop()
        _check_gone(process.pid, children, {})
    _check_gone(process.pid, [], ports)
    times.sort()
    print("  %d restarts on the same ports: gone after %.0f ms (median), %.0f ms (worst)"
          % (count, times[len(times) // 2] * 1e3, times[-1] * 1e3), flush=True)


_LAUNCHER = """
import json, random, sys, time
sys.path.insert(0, %r)
from client import Process
process = Process(%r)
client = process.client()
client.execute(%r, allow_stdin=False)
time.sleep(0.2)
print(json.dumps([process.pid, process.info]), flush=True)
time.sleep(600)
"""


def _orphans(folder, count, rng):
    worst = 0.0
    for _ in range(count):
        code = _LAUNCHER % (str(pathlib.Path(__file__).parent), str(folder), rng.choice(_WORK))
        launcher = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        pid, info = json.loads(launcher.stdout.readline())
        kernel = psutil.Process(pid)
        children = kernel.children(recursive=True)
        started = time.monotonic()
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.wait()
        launcher.stdout.close()
        _check_gone(pid, [kernel, *children], {name: info[name] for name in _PORTS})
        worst = max(worst, time.monotonic() - started)
    print("  %d killed parents: everything gone after %.0f ms at most" % (count, worst * 1e3), flush=True)


def run(count, seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        try:
            _restarts(folder, count, rng)
            _orphans(folder, max(2, count // 5), rng)
        except Failure as failure:
            return [str(failure)]
    return []
