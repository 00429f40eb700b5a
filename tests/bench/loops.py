"""./dev bench loops: what a user writes, as the user writes it, beside NumPy in the same turns; on a GPU beside CuPy.

Every program runs in a process of its own, so that its peak of memory is its own. The contestants of a program take
turns. Before the arrays are made each process runs the program once with small ones, so that nothing is built or
loaded while the clock runs. Ratios are what to compare. --write puts the tables into RESULTS.md; --device takes the
device to measure beside `host`: "opencl:gpu" makes the section for GPUs.
"""
import argparse
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import time

import report as page

ARRAY = 8 * 10 ** 6  # bytes of one array of 10**6 float64, the unit in which memory is compared
ONE_GIB, UPLOAD = 1 << 30, 256 << 20
SMALL = 1000
NUMPY, CUPY = "numpy", "cupy"

# name: (the names that it begins with, the loop's line, its end, rounds, dtype, bytes of an array)
LOOPS = {
    "scale": ("x", "x = x*0.5+1", "float(x[0])", 200, "float64", ARRAY),
    "waves": ("xy", "y = xp.sin(y)*xp.exp(-x)", "float(y[0])", 100, "float64", ARRAY),
}
# Of what is large every result is looked at: nobody need compute one that is dropped unseen.
GPU_LOOPS = {
    "gpu scale": ("x", "x = x*0.5+1", "float(x[0])", 200, "float32", ARRAY),
    "gpu waves": ("xy", "y = xp.sin(y)*xp.exp(-x)", "float(y[0])", 100, "float32", ARRAY),
    "a+b": ("ab", "c = a+b; float(c[0])", "", 20, "float32", ONE_GIB),
    "add out": ("abc", "xp.add(a, b, out=c); float(c[0])", "", 20, "float32", ONE_GIB),
    "a*2+b": ("ab", "c = a*2+b; float(c[0])", "", 20, "float32", ONE_GIB),
}
TIMEIT = "2*x+1"
PATIENCE = 300  # seconds for one program, most of which take two


# --- one program, in a process of its own -------------------------------------------------------------------


def peak_bytes():
    """The most memory that this process has had, since forget_peak()."""
    try:
        status = pathlib.Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) << 10
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def forget_peak():
    """What building kernels took and gave back is no part of it, where the system lets a process forget."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass
    return peak_bytes()


class Arrays:
    """One library on one device: how arrays are made there, and what waits for them."""

    def __init__(self, where):
        self.options = {}
        if where == NUMPY:
            import numpy
            self.xp, self.wait = numpy, lambda: None
        elif where == CUPY:
            import cupy
            self.xp, self.wait = cupy, cupy.cuda.Device().synchronize
        else:
            import drupe
            import drupe.array
            device = drupe.Device(where)
            self.xp, self.options = drupe.array, {"device": device}
            self.wait = drupe.array.zeros(1, device=device).queue.wait

    def names(self, size, dtype, wanted):
        """The names of a program, each an array of `size` bytes. None has numbers that grow slow to compute with."""
        count = size // (8 if dtype == "float64" else 4)
        made = {name: self.xp.full(count, 0.25 * (1 + place), dtype=dtype, **self.options)
                for place, name in enumerate(wanted)}
        self.wait()
        return {"xp": self.xp, **made}


def run_loop(arrays, wanted, line, end, rounds, dtype, size, settle):
    """As a cell of a notebook: its names are global, and a value that is replaced is dropped. `settle`: one round goes
    before the loop, in which the driver is asked for memory; how long that takes is told apart."""
    cell = compile("for k in range(%d):\n    %s\n%s\n" % (rounds, line, end), "cell", "exec")
    exec(cell, arrays.names(SMALL, dtype, wanted))
    arrays.wait()
    before, names = forget_peak(), arrays.names(size, dtype, wanted)
    first = 0
    if settle:
        begun = time.perf_counter()
        exec(line, names)
        arrays.wait()
        first = time.perf_counter() - begun
        exec(line, names)
        arrays.wait()
    begun = time.perf_counter()
    exec(cell, names)
    arrays.wait()
    return {"seconds": (time.perf_counter() - begun) / rounds, "peak": peak_bytes() - before, "first": first}


def run_timeit(arrays, shrink):
    """%timeit of an expression: what it says, and what one takes until the device is done with all of them."""
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell
    HistoryManager.enabled = False
    shell = InteractiveShell.instance()
    shell.user_ns.update(arrays.names(SMALL, "float64", "x"))
    shell.run_line_magic("timeit", "-n 100 -r 2 -q " + TIMEIT)
    arrays.wait()
    before = forget_peak()
    shell.user_ns.update(arrays.names(ARRAY, "float64", "x"))
    begun = time.perf_counter()
    said = shell.run_line_magic("timeit", "-o -q %s%s" % ("-n 10 -r 1 " if shrink > 1 else "", TIMEIT))
    arrays.wait()
    taken = time.perf_counter() - begun
    # What timeit runs to find its number of loops: 1, 10, 100 and so on, that number included.
    sought = 0 if shrink > 1 else sum(10 ** power for power in range(len(str(said.loops))))
    count = said.loops * said.repeat + sought
    return {"seconds": said.average, "peak": peak_bytes() - before, "done": taken / count}


def run_upload(arrays):
    import numpy
    host = numpy.ones(UPLOAD // 4, numpy.float32)
    make = arrays.xp.asarray
    make(host[:SMALL], **arrays.options)
    arrays.wait()
    before, times = forget_peak(), []
    for _ in range(10):
        begun = time.perf_counter()
        made = make(host, **arrays.options)
        arrays.wait()
        times.append(time.perf_counter() - begun)
        del made
    return {"seconds": statistics.median(times), "peak": peak_bytes() - before}


def keep_the_machine():
    """A program that takes all memory fails alone: it gets half of what is free, and is the first to be killed."""
    free = int(pathlib.Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) << 10
    resource.setrlimit(resource.RLIMIT_DATA, (free // 2, free // 2))
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000")


def child(name, where, shrink):
    """One program; a line of JSON on stdout."""
    keep_the_machine()
    if name == "timeit":  # what is dropped before anybody needs it never runs: there would be nothing to measure
        os.environ["DRUPE_FUSE"] = "0"
    arrays = Arrays(where)
    if name == "timeit":
        found = run_timeit(arrays, shrink)
    elif name == "upload":
        found = run_upload(arrays)
    else:
        wanted, line, end, rounds, dtype, size = {**LOOPS, **GPU_LOOPS}[name]
        found = run_loop(arrays, wanted, line, end, max(rounds // shrink, 1), dtype, size, name in GPU_LOOPS)
    print(json.dumps(found))


# --- all of them --------------------------------------------------------------------------------------------


def sample(name, where, shrink):
    """What one process of a contestant found; None if it failed, which is told."""
    try:
        done = subprocess.run([sys.executable, __file__, "--child", name, where, "--shrink", str(shrink)],
                              capture_output=True, text=True, timeout=PATIENCE)
        problem = (done.stderr.strip() or "ended with %d" % done.returncode).splitlines()[-1]
    except subprocess.TimeoutExpired:
        done, problem = None, "not done after %d s" % PATIENCE
    if done is None or done.returncode:
        print("%s on %s: %s" % (name, where, problem), file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def turns(names, contestants, rounds, shrink):
    """{program: {contestant: {figure: median}}}; the contestants of a program alternate."""
    found = {}
    for name in names:
        samples = {where: [] for where in contestants}
        for number in range(rounds):
            for where in contestants if number % 2 == 0 else reversed(contestants):
                samples[where].append(sample(name, where, shrink))
        found[name] = {where: {figure: statistics.median(one[figure] for one in taken) for figure in taken[0]}
                       for where, taken in samples.items() if all(taken)}
    return found


def milliseconds(seconds):
    return "%.0f" % (seconds * 1e3) if seconds >= 0.1 else "%.3g" % (seconds * 1e3)


def loop_rows(found, shrink):
    """The loops beside NumPy: time of a whole loop and memory, each with what tells it from NumPy's."""
    rows = [["program", "on", "ms", "/ numpy", "peak, MB", "arrays above numpy's peak"]]

    def add(title, where, seconds, base, peak, base_peak):
        rows.append([title, where, milliseconds(seconds), "%.2f" % (seconds / base) if base else "",
                     "%.1f" % (peak / 1e6), "%+.1f" % ((peak - base_peak) / ARRAY) if base else ""])

    for name, contestants in found.items():
        base = contestants.get(NUMPY, {})
        for where, one in contestants.items():
            if name == "timeit":
                title, count = "%%timeit " + TIMEIT, 1
            else:
                line, rounds = LOOPS[name][1], LOOPS[name][3]
                count = max(rounds // shrink, 1)
                title = "for k in range(%d): %s" % (count, line)
            add(title, where, one["seconds"] * count, base.get("seconds", 0) * count, one["peak"],
                base.get("peak", 0))
            if name == "timeit" and where != NUMPY:
                rows.append(["the same, until the device is done", where, milliseconds(one["done"]),
                             "%.2f" % (one["done"] / base["done"]) if base else "", "", ""])
    return rows


def gpu_rows(found, device):
    """The section for GPUs: a step of a loop beside CuPy's, the sum beside the same into a given place."""
    into = found.get("add out", {}).get(device, {}).get("seconds")
    rows = [["float32", "on", "first, ms", "ms", "GB/s", "/ cupy", "/ da.add(a, b, out=c)"]]
    for name, contestants in found.items():
        text, size, moved = describe(name)
        base = contestants.get(CUPY, {}).get("seconds")
        for where, one in contestants.items():
            seconds = one["seconds"]
            first = one.get("first", 0)
            rows.append(["%s, %s" % (text, size), where, milliseconds(first) if first else "", milliseconds(seconds),
                         "%.0f" % (moved / seconds / 1e9),
                         "%.2f" % (seconds / base) if base else "",
                         "%.2f" % (seconds / into) if into and name == "a+b" else ""])
    return rows


def describe(name):
    """How a program of the GPU's section is named, its size, and the bytes that one step of it has to move."""
    if name == "upload":
        return "xp.asarray(numpy array)", "256 MiB", UPLOAD
    _, line, _, _, _, size = GPU_LOOPS[name]
    return line.partition(";")[0], "1 GiB" if size == ONE_GIB else "8 MB", (2 if name == "gpu scale" else 3) * size


def can(*statement):
    return subprocess.run([sys.executable, "-c", *statement], capture_output=True).returncode == 0


def head_line(names, load):
    return "%d processors, Python %s, numpy %s%s, load average before: %.2f." % (
        len(os.sched_getaffinity(0)), platform.python_version(), __import__("numpy").__version__, names, load)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="opencl:cpu", help="what is measured beside host")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each contestant of a program")
    parser.add_argument("--shrink", type=int, default=1, help="make the loops so many times shorter")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parser.add_argument("--child", nargs=2, metavar=("PROGRAM", "WHERE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*options.child, options.shrink)
    load, gpu = os.getloadavg()[0], "gpu" in options.device
    present = can("import drupe, sys; drupe.Device(sys.argv[1])", options.device)
    if not present:
        print("no device %s: left out" % options.device, file=sys.stderr)
    if gpu:
        cupy = can("import cupy; cupy.zeros(1)")
        if not cupy:
            print("no cupy: the GPU has no peer", file=sys.stderr)
        contestants = [options.device] * present + [CUPY] * cupy
        rows = gpu_rows(turns([*GPU_LOOPS, "upload"], contestants, options.rounds, options.shrink), options.device)
    else:
        contestants = [NUMPY, "host"] + [options.device] * present
        rows = loop_rows(turns([*LOOPS, "timeit"], contestants, options.rounds, options.shrink), options.shrink)
    head = head_line(", " + options.device, load)
    print(head + "\n\n" + page.terminal(rows))
    if options.write:
        page.write("loops, GPU" if gpu else "loops, CPU", head + "\n\n" + page.markdown(rows))
    return None


if __name__ == "__main__":
    main()
