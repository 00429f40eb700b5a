"""./dev bench kernels: kernels in Python beside numba and jax: loops, what compiling and calling cost, the simulator.

Each contestant computes in a process of its own; the contestants of a row take turns, and the best of all their runs
counts. Values are compared. --npbench FOLDER runs kernels of npbench (github.com/spcl/npbench, fetched by hand) as
drupe.offload functions, too. --write puts the tables into RESULTS.md.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy

import kernel_peers
import kernel_rows
import loops
import report as page

PATIENCE = 300  # seconds for one process
CHILD = "child"
SECTIONS = ("loops", "compile", "call", "simulator", "npbench")
BEST_OF = 0.8  # seconds for the repetitions of one row


# --- One contestant of one row ------------------------------------------------------------------------------

def child(contestant, row, path):
    data = kernel_rows.inputs()
    made = kernel_peers.CONTESTANTS.get(contestant, kernel_rows.Drupe)(contestant, data)
    compute, result = getattr(made, row)()
    begun = time.perf_counter()
    compute()
    first, best, spent, count = time.perf_counter() - begun, float("inf"), 0.0, 0
    if contestant not in kernel_peers.CONTESTANTS:
        settle(made)
    while count < 3 or (spent < BEST_OF and count < 200):
        begun = time.perf_counter()
        compute()
        took = time.perf_counter() - begun
        best, spent, count = min(best, took), spent + took, count + 1
    numpy.save(path, numpy.asarray(result(), dtype="float64"))
    print(json.dumps({"first": first, "best": best}))


def settle(made):
    """Wait for the better tier, which is measured; the quick one is in the first run."""
    for kernel in made.kernels.values():
        for variant in kernel.variants.values():
            while variant.tier == "quick" and variant.problem is None:
                time.sleep(0.01)


def sample(contestant, row):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "values.npy")
        done = subprocess.run([sys.executable, __file__, CHILD, contestant, row, path], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        if done.returncode:
            print("%s on %s: %s" % (row, contestant, (done.stderr.strip() or "failed").splitlines()[-1]),
                  file=sys.stderr)
            return None
        return json.loads(done.stdout.splitlines()[-1]), numpy.load(path)


def loop_table(options):
    rows = [["loop", options.device + ", ms", "first, ms", "numba, ms", "jax, ms", "numba's time / ours",
             "jax's time / ours", "goal", ""]]
    for title, row in kernel_rows.ROWS.items():
        if options.only not in title:
            continue
        print(title, "...", file=sys.stderr)
        best, first, values = {}, {}, {}
        for _ in range(options.rounds):
            for contestant in (options.device, *kernel_peers.CONTESTANTS):
                if contestant == "jax" and not hasattr(kernel_peers.Jax, row):
                    continue
                found = sample(contestant, row)
                if found:
                    best[contestant] = min(best.get(contestant, 9e9), found[0]["best"])
                    first.setdefault(contestant, found[0]["first"])
                    values[contestant] = found[1]
        compare(title, values, options.device)
        rows.append(loop_row(title, best, first, options.device, "jax" in best))
    return rows


def loop_row(title, best, first, device, has_jax):
    def ms(name):
        return "%.4g" % (best[name] * 1e3) if name in best else ""

    def times(name):
        return best[name] / best[device] if name in best and device in best else None

    good = [times("numba") is None or times("numba") >= 1, not has_jax or (times("jax") or 0) >= 0.9]
    return [title, ms(device), "%.4g" % (first[device] * 1e3) if device in first else "", ms("numba"), ms("jax"),
            *("" if times(name) is None else "%.2f" % times(name) for name in ("numba", "jax")),
            "1.0, 0.9" if has_jax else "1.0", "met" if device in best and all(good) else "missed"]


def compare(title, values, device):
    for name, value in values.items():
        if device in values and not numpy.allclose(value, values[device], rtol=1e-4, atol=1e-6):
            raise SystemExit("%s: the values of %s and %s differ" % (title, name, device))


# --- Compiling ----------------------------------------------------------------------------------------------

_COMPILE = """
import json, math, os, sys, time
import drupe, drupe.array as da
from drupe.compiler import build, launch
@drupe.kernel
def twenty(item, a, b, out, n):
    i = item.get_id(0)
    x, y = a[i], b[i]
    total = 0.0
    for k in range(n):
        d = x - y * k
        if d < 0:
            d = -d
        elif d > 10:
            d = 10.0
        total += d * d
        x = x * 0.5 + 1
    s = math.sqrt(total + 1)
    t = math.exp(-s)
    if t > 0.5 and i % 2 == 0:
        total = total + t
    else:
        total = total - t
    for k in range(3):
        total += k * s
    out[i] = total
device, tier = sys.argv[1:3]
with drupe.device(device):
    a, b, out = da.ones(64), da.ones(64), da.zeros(64)
    out.queue.wait()
    build._PATIENT = 0 if tier == "best" else 1 << 60
    @drupe.kernel
    def warm(item, a):
        a[item.get_id(0)] = math.sqrt(a[item.get_id(0)])
    drupe.call_kernel(warm, drupe.Range(64), out)  # the compiler's own modules
    times = []
    for _ in range(1 if tier == "driver" else 5):
        twenty.clear()
        begun = time.perf_counter()
        drupe.call_kernel(twenty, drupe.Range(64), a, b, out, 4)
        times.append(time.perf_counter() - begun)
print(json.dumps(min(times)))
time.sleep(float(sys.argv[3]))  # binaries are written when nothing has happened for half a second
"""


def compile_table(options):
    rows = [["from the call to the end of a kernel of 20 lines", "ms", "goal", ""]]
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "twenty.py")  # a file: the compiler reads the function's source
        with open(script, "w", encoding="utf-8") as file:
            file.write(_COMPILE)
        cold = {"DRUPE_CACHE": "0", "POCL_CACHE_DIR": os.path.join(folder, "pocl")}
        kept = {"DRUPE_CACHE_DIR": os.path.join(folder, "ours"), "POCL_CACHE_DIR": os.path.join(folder, "pocl2")}
        for title, device, tier, more, goal in (
                ("opencl:cpu, nothing cached", "opencl:cpu", "driver", cold, 400),
                ("opencl:cpu, from the disk cache", "opencl:cpu", "driver", kept, 3),
                ("host, quick tier", "host", "quick", {"DRUPE_CACHE": "0"}, 10),
                ("host, C compiler", "host", "best", {"DRUPE_CACHE": "0"}, 250)):
            print(title, "...", file=sys.stderr)
            for stay in ("3", "0") if more is kept else "0":
                done = subprocess.run([sys.executable, script, device, tier, stay], text=True,
                                      capture_output=True, env={**os.environ, **more}, timeout=PATIENCE, check=False)
            if done.returncode:
                print(title + ": " + (done.stderr.strip() or "failed").splitlines()[-1], file=sys.stderr)
                continue
            took = json.loads(done.stdout.splitlines()[-1]) * 1e3
            rows.append([title, "%.3g" % took, "%g" % goal, "met" if took <= goal else "missed"])
    return rows


# --- Calling ------------------------------------------------------------------------------------------------

def call_table(options):
    """A call beside one of drupe.Kernel, whose cost above the driver's enqueue `./dev bench submit` tells."""
    import drupe
    import drupe.array as da

    @drupe.kernel
    def add(item, a, b, c):
        i = item.get_id(0)
        c[i] = a[i] + b[i]

    rows = [["call, not waited for", "us", "drupe.Kernel's, us", "above it, us", "goal", ""]]
    for device in ("host", "opencl:cpu"):
        try:
            place = drupe.Device(device)
        except drupe.DeviceError:
            continue
        with drupe.device(place):
            n = 64
            a, b, c = da.ones(n), da.ones(n), da.empty(n)
            drupe.call_kernel(add, drupe.Range(n), a, b, c)
            kernel = list(add.variants.values())[-1].kernel
            plain = (lambda: kernel(n, n, a, b, c, global_size=1)) if device == "host" else \
                (lambda: kernel(n, a, b, c, global_size=128, local_size=128))
            ours = shortest(lambda: drupe.call_kernel_async(add, drupe.Range(n), [], a, b, c), a.queue)
            theirs = shortest(plain, a.queue)
            rows.append(["call_kernel_async(add, Range(n), [], a, b, c), %s" % device, "%.3f" % (ours * 1e6),
                         "%.3f" % (theirs * 1e6), "%.3f" % ((ours - theirs) * 1e6), "1.0",
                         "met" if (ours - theirs) * 1e6 <= 1.0 else "missed"])
    return rows


def shortest(function, queue, count=200):
    best = float("inf")
    for _ in range(30):
        begun = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, (time.perf_counter() - begun) / count)
        queue.wait()
    return best


def simulator_table(options):
    from drupe import NdRange, Range, kernel_api

    def plain(item, a):
        i = item.get_id(0)
        a[i] = i

    def scanned(item, a, part):
        i, n = item.get_local_id(0), item.get_local_range(0)
        part[i] = a[item.get_global_id(0)]
        kernel_api.group_barrier(item.get_group())
        a[item.get_global_id(0)] = part[n - 1 - i]

    rows = [["the simulator", "million work-items a second", "goal", ""]]
    a, count = numpy.zeros(100_000), 100_000
    for title, goal, run in (
            ("without barriers", 0.5, lambda: kernel_api.call_kernel(plain, Range(count), a)),
            ("with a barrier and local memory", 0.1, lambda: kernel_api.call_kernel(
                scanned, NdRange(count, 100), a, kernel_api.LocalAccessor(100, numpy.float64)))):
        best = float("inf")
        for _ in range(5):
            begun = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - begun)
        rate = count / best / 1e6
        rows.append([title, "%.2f" % rate, "%g" % goal, "met" if rate >= goal else "missed"])
    return rows


def npbench_table(options):
    import kernel_npbench

    return kernel_npbench.table(options.npbench, options.device, options.rounds)


def main():
    if sys.argv[1:2] == [CHILD]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="host", help="host or opencl:cpu")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each contestant of a row")
    parser.add_argument("--only", default="", help="loops with this text in their title")
    parser.add_argument("--sections", default="", help="of %s, with commas" % ", ".join(SECTIONS))
    parser.add_argument("--npbench", metavar="FOLDER", help="a checkout of npbench")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    wanted = options.sections.split(",") if options.sections else SECTIONS
    tables = {"loops": loop_table, "compile": compile_table, "call": call_table, "simulator": simulator_table,
              "npbench": npbench_table}
    made = [tables[name](options) for name in wanted if name != "npbench" or options.npbench]
    head = loops.head_line(", " + options.device, load)
    print("\n\n".join([head, *(page.terminal(one) for one in made)]))
    if options.write:
        page.write("kernels, " + options.device, "\n\n".join([head, *(page.markdown(one) for one in made)]))


if __name__ == "__main__":
    main()
