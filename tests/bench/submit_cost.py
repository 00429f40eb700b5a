"""What it costs Python to submit an empty kernel, beside pyopencl in the same process.

Only the enqueue is timed: batches of launches, each batch followed by an untimed wait. All contestants launch the same
kernel with the same values on an in-order queue of their own on the same device, and drop the event, if there is one,
at once. The calls stand in timeit's loop, so that no function of the measuring is in the time. Contestants take turns
in an order that is drawn anew for each round, and each has a batch that does not count before the one that does,
because whoever follows a slow one finds cold caches and sleeping workers of the driver. Prints the median of
nanoseconds per launch, and the median over the rounds of the ratio to pyopencl's typed call.
Run: python tests/bench/submit_cost.py
"""
import random
import statistics
import time
import timeit

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


def timed(call, count):
    def turn():
        started = time.perf_counter_ns()
        for _ in range(count):
            call()
        return (time.perf_counter_ns() - started) / count
    return turn


def batches(statement, names, wait, count=BATCH):
    """What one execution of the statement takes, in batches; then it is waited for."""
    timer = timeit.Timer(statement, globals=names)

    def turn():
        spent = timer.timeit(count) * 1e9 / count
        wait()
        return spent
    return warmed(turn)


def warmed(turn):
    """The second of two turns: the first one brings the caches and the driver's workers into the state of its own."""
    def second():
        turn()
        return turn()
    return second


def paired(ours, theirs):
    """The median over the rounds of what one of us took by what the other one took in the same round."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


def ours(device):
    program = drupe.Program(SOURCE, device)
    kernel, queue = program.empty, program.queue
    x = da.zeros(64, dtype="float32", device=device)
    names = {"kernel": kernel, "queue": queue, "x": x, "args": (x, 64, 0.5)}
    kernel(x, 64, 0.5, global_size=64, local_size=64).wait()
    name = f"drupe {device.filter_string}"
    calls = {"kernel(...) -> Event": "kernel(x, 64, 0.5, global_size=64, local_size=64)",
             "kernel(..., event=False)": "kernel(x, 64, 0.5, global_size=64, local_size=64, event=False)",
             "queue.submit(...)": "queue.submit(kernel, args, 64, 64)"}
    return {f"{name}, {call}": batches(statement, names, queue.wait) for call, statement in calls.items()}


def ours_host():
    """The host device runs precompiled kernels: adding one element to another, into a given place."""
    x = da.ones(1, dtype="float32", device="host")
    names = {"da": da, "x": x, "out": da.ones(1, dtype="float32", device="host"), "queue": x.queue}
    return {f"drupe host:cpu:0, {call}": batches(call, names, x.queue.wait)
            for call in ("da.add(x, x, out=out)", "queue.barrier()")}


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
    names = {"queue": queue, "number": np.int32(64), "factor": np.float32(0.5)}
    for kernel, memory in ((plain, buffer), (typed, buffer), (shared, svm)):
        kernel(queue, (64,), (64,), memory, names["number"], names["factor"]).wait()
    ways = {"pyopencl, typed kernel(...)": (typed, buffer, "64, 0.5"),
            "pyopencl, typed kernel(...), SVM": (shared, svm, "64, 0.5"),
            "pyopencl, plain kernel(...)": (plain, buffer, "number, factor")}
    return {name: batches(f"kernel(queue, (64,), (64,), memory, {values})",
                          {**names, "kernel": kernel, "memory": memory}, queue.finish)
            for name, (kernel, memory, values) in ways.items()}


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
    times = turns(ways, ROUNDS)
    print(f"{'submission of an empty kernel, enqueue only':60} {'median ns':>10} {'ratio':>8}")
    for name, values in times.items():
        ratio = f"{paired(values, times[base]):8.2f}" if base else ""
        print(f"{name:60} {statistics.median(values):10.0f} {ratio}")


if __name__ == "__main__":
    main()
