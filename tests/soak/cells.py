"""Soak 1: many cells of every kind. The kernel may grow as a bare InteractiveShell grows over the same cells, and by
5 MiB more; no thread and no descriptor is left; every reply and idle comes; the last cells are as quick as the
first."""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from client import Failure, Process
from mix import steps

GROWTH_MOST = 5 << 20
_MIB = 1 << 20


def _setup(client):
    """A comm target, as a widget library has it."""
    code = ("from comm import get_comm_manager\n"
            "def _opened(comm, message):\n"
            "    comm.on_msg(lambda m: comm.send({'echo': m['content']['data']}))\n"
            "get_comm_manager().register_target('soak', _opened)\n")
    if client.run(code, silent=True).reply["status"] != "ok":
        raise Failure("the comm target cannot be registered")
    client.finish(client.send("shell", "comm_open", {"comm_id": "soak", "target_name": "soak", "data": {}}),
                  reply=False)


def _expect(code, answer):
    """What the outcome of a cell must be."""
    fails = code.startswith(("1/0", "undefined_", "this is", "raise "))
    if (answer.reply["status"] == "error") != fails:
        raise Failure("%r ended with %r" % (code, answer.reply))
    if code.startswith("print('line'") and answer.text != "line %s\n" % code.split(", ")[1].rstrip(")"):
        raise Failure("%r brought %r" % (code, answer.text))
    if code.startswith("x = input") and answer.text != "typed\n":
        raise Failure("%r brought %r" % (code, answer.text))


def _step(client, step):
    """Do one step; its seconds when it was a cell."""
    if step[0] == "ask":
        client.ask("shell", *step[1:])
    elif step[0] == "comm":
        content = {"comm_id": "soak", "data": {"n": step[1]}}
        answer = client.finish(client.send("shell", "comm_msg", content), reply=False)
        if not answer.of("comm_msg"):
            raise Failure("a comm message was not answered")
    else:
        started = time.perf_counter()
        answer = client.run(step[1], **step[2])
        seconds = time.perf_counter() - started
        _expect(step[1], answer)
        return seconds


def _peer(folder, count, seed, history, warm):
    home = pathlib.Path(folder) / "bare"
    done = subprocess.run([sys.executable, str(pathlib.Path(__file__).with_name("bare.py")), str(folder), str(count),
                           str(seed), str(int(history)), str(warm)], capture_output=True, text=True, check=True,
                          env={**os.environ, "IPYTHONDIR": str(home)})
    first, last = done.stdout.split()
    return int(last) - int(first)


def _kernel(folder, count, seed, history, warm):
    process = Process(folder)
    try:
        client = process.client()
        _setup(client)
        times, seen = [], {}
        for step in steps(count, seed, history):
            seconds = _step(client, step)
            if seconds is None:
                continue
            times.append(seconds)
            if len(times) == warm:
                seen["warm"] = process.memory(), process.threads(), len(process.descriptors())
            if len(times) % 10000 == 0:
                print("  %d cells, %.1f MiB" % (len(times), process.memory() / _MIB), flush=True)
        seen["end"] = process.memory(), process.threads(), len(process.descriptors())
        if client.ask("control", "kernel_info_request", {})["status"] != "ok":
            raise Failure("control does not answer")
        client.close()
        return times, seen
    finally:
        process.stop()


def run(count, seed):
    problems, warm = [], min(5000, count // 10)
    for history in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            cells = count if history else count // 4
            print("cells: %d, history %s" % (cells, "on" if history else "off"), flush=True)
            times, seen = _kernel(folder, cells, seed, history, warm)
            peer = _peer(folder, cells, seed, history, warm)
        growth = seen["end"][0] - seen["warm"][0]
        tenth = len(times) // 10
        first, last = statistics.median(times[warm:warm + tenth]), statistics.median(times[-tenth:])
        print("  growth %.2f MiB, bare shell %.2f MiB; threads %d to %d, descriptors %d to %d; "
              "cell %.2f ms, later %.2f ms"
              % (growth / _MIB, peer / _MIB, seen["warm"][1], seen["end"][1], seen["warm"][2], seen["end"][2],
                 first * 1e3, last * 1e3), flush=True)
        if growth - peer > GROWTH_MOST:
            problems.append("memory grew by %.2f MiB more than the bare shell's" % ((growth - peer) / _MIB))
        if seen["end"][1] > seen["warm"][1] or seen["end"][2] > seen["warm"][2]:
            problems.append("threads or descriptors were left over")
        if last > 2 * first + 0.001:
            problems.append("cells became slower")
    return problems
