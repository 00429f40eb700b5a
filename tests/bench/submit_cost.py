"""What it costs Python to submit an empty kernel, beside pyopencl in the same process.

Only the enqueue is timed: batches of launches, each batch followed by an untimed wait. All contestants launch the same
kernel with the same values on an in-order queue of their own on the same device, and drop the event, if there is one,
at once. They take turns in an order that is drawn anew for each round, because whoever follows a slow one finds cold
caches and sleeping workers of the driver. Prints the median of nanoseconds per launch, and the median over the rounds
of the ratio to pyopencl's typed call. Run: python tests/bench/submit_cost.py
"""
import random
import statistics
import time

import numpy as np

import drupe
import drupe.array as da

BATCH, ROUNDS = 200, 60
SOURCE = "kernel void empty(global float *a, const int n, const float f) {}"


def turns(ways, rounds, warm=5):
    """Nanoseconds per call of each way in each round; a way answers what one turn of it took."""
    times = {name: [] for name in ways}
    order, draw = list(ways), random.Random(1)
    for number in range(rounds + warm):
        draw.shuffle(order)
        for name in order:
            spent = ways[name]()
            if number >= warm:
                times[name].append(spent)
    return times


def timed(call, count, after=None):
    def turn():
        started = time.perf_counter_ns()
        for _ in range(count):
            call()
        spent = (time.perf_counter_ns() - started) / count
        if after:
            after()
        return spent
    return turn


def paired(ours, theirs):
    """The median over the rounds of what one of us took by what the other one took in the same round."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


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


def theirs(cl, device):
    """The same of pyopencl on its device of that name: with a buffer, as its users write it, and with the kind of
    memory that the engine and C use."""
    found = [one for platform in cl.get_platforms() for one in platform.get_devices() if one.name == device.name]
    context = cl.Context(found[:1])
    queue = cl.CommandQueue(context)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
    svm = cl.SVMAllocation(context, 256, 64, cl.svm_mem_flags.READ_WRITE)
    program = cl.Program(context, SOURCE).build()
    plain, typed, shared = (cl.Kernel(program, "empty") for _ in range(3))
    for kernel in (typed, shared):
        kernel.set_scalar_arg_dtypes([None, np.int32, np.float32])
    number, factor = np.int32(64), np.float32(0.5)
    for kernel, memory in ((plain, buffer), (typed, buffer), (shared, svm)):
        kernel(queue, (64,), (64,), memory, number, factor).wait()
    return {"pyopencl, typed kernel(...)": (lambda: typed(queue, (64,), (64,), buffer, 64, 0.5), queue.finish),
            "pyopencl, typed kernel(...), SVM": (lambda: shared(queue, (64,), (64,), svm, 64, 0.5), queue.finish),
            "pyopencl, plain kernel(...)": (lambda: plain(queue, (64,), (64,), buffer, number, factor), queue.finish)}


def main():
    ways, base = ours_host(), None
    try:
        device = drupe.Device("opencl")
        ways.update(ours(device))
        import pyopencl

        ways.update(theirs(pyopencl, device))
        base = "pyopencl, typed kernel(...)"
    except drupe.DeviceNotFoundError as problem:
        print(problem)
    except ImportError:
        print("pyopencl is not installed: no figures to compare with")
    times = turns({name: timed(call, BATCH, wait) for name, (call, wait) in ways.items()}, ROUNDS)
    print(f"{'submission of an empty kernel, enqueue only':60} {'median ns':>10} {'ratio':>8}")
    for name, values in times.items():
        ratio = f"{paired(values, times[base]):8.2f}" if base else ""
        print(f"{name:60} {statistics.median(values):10.0f} {ratio}")


if __name__ == "__main__":
    main()
