"""What it costs Python to submit an empty kernel, beside pyopencl in the same process.

Only the enqueue is timed: batches of launches, each batch followed by an untimed wait. Prints the median over the
batches of nanoseconds per launch, and each as a ratio to pyopencl's typed call. Run: python tests/bench/submit_cost.py
"""
import statistics
import time

import numpy as np

import drupe
import drupe.array as da

BATCH, ROUNDS = 200, 60
SOURCE = "kernel void empty(global float *a, const int n, const float f) {}"


def measure(ways):
    """Median ns per call of each way; the ways take turns, so that all see the same machine."""
    times = {name: [] for name in ways}
    for number in range(ROUNDS + 5):
        for name, (call, wait) in ways.items():
            started = time.perf_counter_ns()
            for _ in range(BATCH):
                call()
            spent = time.perf_counter_ns() - started
            wait()
            if number >= 5:  # the first rounds warm up
                times[name].append(spent / BATCH)
    return {name: statistics.median(values) for name, values in times.items()}


def ours(device):
    program = drupe.Program(SOURCE, device)
    kernel, queue = program.empty, program.queue
    x = da.zeros(64, dtype="float32", device=device)
    args = (x, 64, 0.5)
    kernel(*args, global_size=64, local_size=64).wait()
    name = f"drupe {device.filter_string}"
    return {
        f"{name}, kernel(...) -> Event": (lambda: kernel(x, 64, 0.5, global_size=64, local_size=64), queue.wait),
        f"{name}, kernel(..., event=False)": (lambda: kernel(x, 64, 0.5, global_size=64, local_size=64, event=False),
                                              queue.wait),
        f"{name}, queue.submit(...)": (lambda: queue.submit(kernel, args, 64, 64), queue.wait),
    }


def ours_host():
    """The host device runs precompiled kernels: adding one element to another, into a given place."""
    x = da.ones(1, dtype="float32", device="host")
    out = da.ones(1, dtype="float32", device="host")
    queue = x.queue
    return {"drupe host:cpu:0, da.add(x, x, out=out)": (lambda: da.add(x, x, out=out), queue.wait),
            "drupe host:cpu:0, queue.barrier()": (lambda: queue.barrier(), queue.wait)}


def theirs(cl):
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
    plain = cl.Kernel(cl.Program(context, SOURCE).build(), "empty")
    typed = cl.Kernel(cl.Program(context, SOURCE).build(), "empty")
    typed.set_scalar_arg_dtypes([None, np.int32, np.float32])
    number, factor = np.int32(64), np.float32(0.5)
    for kernel in (plain, typed):
        kernel(queue, (64,), (64,), buffer, number, factor).wait()
    return {"pyopencl, typed kernel(...)": (lambda: typed(queue, (64,), (64,), buffer, 64, 0.5), queue.finish),
            "pyopencl, plain kernel(...)": (lambda: plain(queue, (64,), (64,), buffer, number, factor), queue.finish)}


def main():
    ways = ours_host()
    try:
        ways.update(ours(drupe.Device("opencl")))
    except drupe.DeviceNotFoundError as problem:
        print(problem)
    base = None
    try:
        import pyopencl

        ways.update(theirs(pyopencl))
        base = "pyopencl, typed kernel(...)"
    except ImportError:
        print("pyopencl is not installed: no figures to compare with")
    medians = measure(ways)
    print(f"{'submission of an empty kernel, enqueue only':60} {'median ns':>10} {'ratio':>8}")
    for name, median in medians.items():
        ratio = f"{median / medians[base]:8.2f}" if base else ""
        print(f"{name:60} {median:10.0f} {ratio}")


if __name__ == "__main__":
    main()
