"""What building a program costs: the first time on a machine, later with the driver's own cache, from Drupe's cache.

Every sample is a process of its own. With pyopencl installed, its build of the same text is measured beside.
    python tests/bench/programs.py [--device FILTER] [--runs N]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

TEXT = "\n".join(
    f"kernel void k{i}(global float *x, float f, ulong n) {{ for (size_t i = get_global_id(0); i < n; "
    f"i += get_global_size(0)) x[i] = sin(x[i]) * f + {i}; }}" for i in range(4))

DRUPE = """
import json, os, sys, time
import drupe, drupe.memory
device = drupe.Device(sys.argv[1])
queue = device.queue
def now(): return time.perf_counter() * 1e3
x = drupe.memory.MemoryUSMDevice(4096, queue=queue)
queue.wait()
a = now()
program = drupe.Program(sys.argv[2], queue=queue)
b = now()
program.k0(x, 1.0, 1024, global_size=64, local_size=64); queue.wait()
c = now()
import drupe.array as da
d = now()
y = da.ones(1000, dtype="float32", device=device)
(y + y); queue.wait()
e = now()
if sys.argv[3] == "fill":
    drupe._engine._cache_flush(600)
print(json.dumps({"build": b - a, "launch": c - b, "array": e - d, "hits": drupe._engine._cache_info()["hits"]}))
"""

PEER = """
import json, sys, time
import numpy, pyopencl as cl
device = next(d for p in cl.get_platforms() for d in p.get_devices() if d.name.strip() == sys.argv[1])
context = cl.Context([device])
queue = cl.CommandQueue(context)
def now(): return time.perf_counter() * 1e3
x = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4096)
a = now()
program = cl.Program(context, sys.argv[2]).build()
b = now()
program.k0(queue, (64,), (64,), x, numpy.float32(1), numpy.uint64(1024)).wait()
print(json.dumps({"build": b - a, "launch": now() - b}))
"""


def sample(text, arguments, folder, **environment):
    """One process, whose drivers keep their own caches under `folder`."""
    os.makedirs(folder, exist_ok=True)
    settings = {**os.environ, "POCL_CACHE_DIR": folder, "CUDA_CACHE_PATH": folder, "XDG_CACHE_HOME": folder,
                **environment}
    result = subprocess.run([sys.executable, "-c", text, *arguments], env=settings, capture_output=True, text=True,
                            check=False)
    if result.returncode:
        raise RuntimeError(result.stderr)
    return json.loads(result.stdout)


def median(samples):
    return {name: statistics.median(one[name] for one in samples) for name in samples[0]}


def measure(device, name, runs):
    """Rows of (label, figures)."""
    rows = []
    with tempfile.TemporaryDirectory() as root:
        def folder(label):
            return os.path.join(root, label)

        arguments, off = [device, TEXT, ""], {"DRUPE_CACHE": "0"}
        on = {"DRUPE_CACHE": "1", "DRUPE_CACHE_DIR": folder("drupe")}
        rows.append(("first build on the machine",
                     median([sample(DRUPE, arguments, folder(f"cold{i}"), **off) for i in range(runs)])))
        rows.append(("later, the driver's own cache",
                     median([sample(DRUPE, arguments, folder("cold0"), **off) for _ in range(runs)])))
        sample(DRUPE, [device, TEXT, "fill"], folder("cold0"), **on)
        rows.append(("later, Drupe's cache",
                     median([sample(DRUPE, arguments, folder("cold0"), **on) for _ in range(runs)])))
        try:
            import pyopencl
            peer = {"PYOPENCL_NO_CACHE": "0"}
        except ImportError:
            return rows
        del pyopencl
        rows.append(("pyopencl, first",
                     median([sample(PEER, [name, TEXT], folder(f"peer{i}"), **peer) for i in range(runs)])))
        rows.append(("pyopencl, later (its own cache)",
                     median([sample(PEER, [name, TEXT], folder("peer0"), **peer) for _ in range(runs)])))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    import drupe

    device = drupe.Device(options.device)
    print(f"{device.name}, driver {device.driver_version}; milliseconds, medians of {options.runs} processes")
    rows = measure(device.filter_string, device.name.strip(), options.runs)
    base = rows[0][1]
    print(f"{'':32} {'build':>9} {'1st launch':>10} {'1st x + y':>10} {'build+launch, share of the first':>33}")
    for label, row in rows:
        share = (row["build"] + row["launch"]) / (base["build"] + base["launch"])
        array = f"{row['array']:10.1f}" if "array" in row else " " * 10
        print(f"{label:32} {row['build']:9.1f} {row['launch']:10.1f} {array} {share:33.3f}")


if __name__ == "__main__":
    main()
