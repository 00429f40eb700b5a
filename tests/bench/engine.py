"""./dev bench engine: what the engine costs, beside its peers in the same process and the same turns.

Builds the C programs beside this file with CMake, which needs no network. Peers that are not there are left out.
Ratios are what to compare. --write puts the tables into RESULTS.md; --device takes the OpenCL device to measure:
"opencl:gpu" makes the section for GPUs.
"""
import argparse
import ctypes
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import numpy as np
import report as page
from engine_report import PEER, Report
from submit_cost import BATCH, ours, ours_host, theirs, timed, turns, warmed

import drupe
import drupe.array as da
from drupe.memory import MemoryUSMDevice

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
SMALL = 4096
LARGE = 64 << 20
HUGE = 512 << 20  # to a GPU, where the ends of a copy weigh


def build(folder):
    """The C programs; None where they cannot be built."""
    options = ["-DDRUPE_BENCH=ON", "-DDRUPE_KERNEL=OFF", "-DDRUPE_PYTHON=OFF", "-DPython_EXECUTABLE=" + sys.executable]
    try:
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, *options], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", folder, "-j2"], check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as problem:
        print("the C programs are left out: %s" % problem, file=sys.stderr)
        return None
    return pathlib.Path(folder) / "tests" / "bench"


class Peer:
    """The same driver calls from C, in this process."""

    def __init__(self, built, gpu, size):
        self.library = ctypes.CDLL(str(built / "peer_opencl.so"))
        for name in ("enqueue", "wait", "copy", "pinned_copy", "memcpy"):
            getattr(self.library, "peer_" + name).restype = ctypes.c_double
        self.library.peer_open.argtypes = [ctypes.c_int, ctypes.c_size_t]
        self.library.peer_copy.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
        self.library.peer_pinned_copy.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
        self.library.peer_memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        failed = self.library.peer_open(gpu, size)
        if failed:
            raise OSError("step %d of opening the driver failed" % failed)

    def call(self, name, *arguments):
        spent = getattr(self.library, "peer_" + name)(*arguments)
        if spent < 0:
            raise OSError("peer_%s answers %d" % (name, spent))
        return spent


def open_peer(built, gpu):
    try:
        return Peer(built, gpu, HUGE if gpu else LARGE) if built else None
    except OSError as problem:
        print("no C peer: %s" % problem, file=sys.stderr)
        return None


def python_peers(device):
    try:
        import pyopencl
        return theirs(pyopencl, device)
    except Exception as problem:  # not installed, or no driver
        print("no pyopencl: %s" % problem, file=sys.stderr)
        return {}


def submission(report, device, peer, rounds):
    ways = {**ours_host(), **ours(device), **python_peers(device)}
    if peer:
        ways[PEER] = warmed(lambda: peer.call("enqueue", BATCH) / BATCH)
    report.submission(turns(ways, 4 * rounds))


def waiting(report, device, peer, rounds):
    program = drupe.Program("kernel void empty(global float *a, const int n, const float f) {}", device)
    kernel, queue = program.empty, program.queue
    x = da.zeros(64, dtype="float32", device=device)
    y = da.ones(1, dtype="float32", device="host")
    z = da.ones(64, dtype="float32", device="host")

    def launch():
        kernel(x, 64, 0.5, global_size=64, local_size=64)
        queue.wait()

    def one_item():
        da.add(y, y, out=y)
        y.queue.wait()

    def host_task():
        drupe.Event.wait(z.queue.barrier())

    ways = {"drupe, opencl": timed(launch, 20), "drupe, host": timed(one_item, 20),
            "drupe, host, event": timed(host_task, 20)}
    if peer:
        ways["C"] = lambda: peer.call("wait", 20) / 20
    report.waiting(turns(ways, rounds))


def allocation(report, device, rounds):
    ways = {}
    for name, queue in (("opencl", da.zeros(1, device=device).queue), ("host", da.zeros(1, device="host").queue)):
        ways["Python, " + name] = timed(lambda q=queue: MemoryUSMDevice(SMALL, queue=q), 200)
    report.allocation(turns(ways, rounds))


def copies(report, device, peer, rounds):
    """Large copies, in bytes per nanosecond; host memory that has been touched."""
    ways = {}
    a, b = np.ones(LARGE, np.uint8), np.ones(LARGE, np.uint8)
    for name, where in (("opencl", device), ("host", drupe.Device("host"))):
        memory = MemoryUSMDevice(LARGE, queue=da.zeros(1, device=where).queue)
        ways[name + ", to device"] = timed(lambda m=memory: m.copy_from_host(a), 2)
        ways[name + ", from device"] = timed(lambda m=memory: m.copy_to_host(b), 2)
    if peer:
        ways["memcpy"] = lambda: peer.call("memcpy", b.ctypes.data, a.ctypes.data, LARGE, 2) / 2
        ways["C, to device"] = lambda: peer.call("copy", a.ctypes.data, 1, LARGE, 2) / 2
        ways["C, from device"] = lambda: peer.call("copy", b.ctypes.data, 0, LARGE, 2) / 2
        if "gpu" in device.filter_string:
            ways.update(pinned_ways(peer, LARGE))
    else:
        ways["memcpy"] = timed(lambda: np.copyto(b, a), 2)
    report.copies(turns(ways, max(5, rounds // 10), warm=2), LARGE)


def pinned_ways(peer, size):
    return {"C, pinned, to device": lambda: peer.call("pinned_copy", 1, size, 2) / 2,
            "C, pinned, from device": lambda: peer.call("pinned_copy", 0, size, 2) / 2}


def huge_copies(report, device, peer, rounds):
    """The same, of so many bytes that only the rate counts; to a GPU and back."""
    if not peer or "gpu" not in device.filter_string:
        return
    host = np.ones(HUGE, np.uint8)
    memory = MemoryUSMDevice(HUGE, queue=da.zeros(1, device=device).queue)
    ways = {"opencl, to device": timed(lambda: memory.copy_from_host(host), 2),
            "opencl, from device": timed(lambda: memory.copy_to_host(host), 2), **pinned_ways(peer, HUGE)}
    report.pinned_copies(turns(ways, max(5, rounds // 10), warm=2), HUGE)


def core_of(processor):
    """What a processor shares with its siblings; itself where the system does not tell."""
    folder = pathlib.Path("/sys/devices/system/cpu/cpu%d/topology" % processor)
    try:
        return (folder / "physical_package_id").read_text(), (folder / "core_id").read_text()
    except OSError:
        return processor


def two_cores():
    """Two of the processors that this process may use, of different cores where there are some."""
    first, *others = sorted(os.sched_getaffinity(0))
    apart = [one for one in others if core_of(one) != core_of(first)]
    return {first, *(apart or others)[:1]}


def programs(report, built, device, tasks):
    """The C programs, one after the other: lines of names and numbers."""
    def run(*command, processors=None):
        limit = (lambda: os.sched_setaffinity(0, processors)) if processors else None
        return subprocess.run([str(built / command[0]), *command[1:]], check=True, capture_output=True, text=True,
                              preexec_fn=limit).stdout

    def run_tasks(processors):
        lines = run("engine_tasks", str(tasks), "7", processors=processors).splitlines()
        return [dict(zip(words[::2], map(float, words[1::2]))) for words in map(str.split, lines)]

    report.costs(dict(line.split() for line in run("engine_costs", "host").splitlines()), "host")
    report.costs(dict(line.split() for line in run("engine_costs", device.filter_string).splitlines()), "opencl")
    all_processors, two = os.sched_getaffinity(0), two_cores()
    report.tasks(run_tasks(two), "%d core%s" % (len(two), "s" if len(two) > 1 else ""), 2)
    if len(all_processors) > len(two):
        report.tasks(run_tasks(all_processors), "all %d processors" % len(all_processors))
    report.trace(run("trace_cost").splitlines())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--built", help="folder of C programs that are built already; none: without them")
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--tasks", type=int, default=1000000)
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        built = build(folder) if options.built is None else pathlib.Path(options.built)
        built = None if options.built == "none" else built
        device = drupe.Device(options.device)
        report = Report("%s (%s)" % (device.name, device.filter_string), load, platform.python_version())
        peer = open_peer(built, int("gpu" in device.filter_string))
        submission(report, device, peer, options.rounds)
        waiting(report, device, peer, options.rounds)
        allocation(report, device, options.rounds)
        copies(report, device, peer, options.rounds)
        huge_copies(report, device, peer, options.rounds)
        if built:
            programs(report, built, device, options.tasks)
    print(report.text())
    if options.write:
        page.write("engine, GPU" if "gpu" in device.filter_string else "engine, CPU", report.text().rstrip())


if __name__ == "__main__":
    main()
