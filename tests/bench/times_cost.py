"""What it costs to have a driver keep the times of each submission: queues with and without, in the same process.

An empty kernel is submitted and waited for, one by one (`each`) and 300 together (`together`). The queues take turns in
an order that is drawn anew for each round, each with a batch that does not count before the one that does. Prints
processor time of the whole process, the driver's threads included, for a submission with its completion, in
nanoseconds, and the median over the rounds of the ratio: what other programs do then moves it less than a clock.
Run: python tests/bench/times_cost.py [DEVICE]
"""
import os
import random
import statistics
import sys
import time

os.environ["DRUPE_PROFILE"] = "0"  # a plain queue has none

import numpy as np  # noqa: E402

import drupe  # noqa: E402

BATCH, ROUNDS = 300, 80
SOURCE = "kernel void empty(global float *a, const int n, const float f) {}"


def each(queue, kernel, args):
    for _ in range(BATCH):
        queue.submit(kernel, args, [1]).wait()


def together(queue, kernel, args):
    for _ in range(BATCH):
        queue.submit(kernel, args, [1])
    queue.wait()


def spent(work, *args):
    started = time.process_time_ns()
    work(*args)
    return (time.process_time_ns() - started) / BATCH


def main():
    device = drupe.Device(sys.argv[1] if len(sys.argv) > 1 else "opencl")
    kernel = drupe.Program(SOURCE, device).empty
    queues = {"plain": drupe.Queue(device), "with times": drupe.Queue(device, profiling=True)}
    draw = random.Random(1)
    for work in (each, together):
        figures = {name: [] for name in queues}
        for _ in range(ROUNDS):
            order = list(queues)
            draw.shuffle(order)
            for name in order:
                memory = drupe.memory.MemoryUSMDevice(1024, queue=queues[name])
                args = [memory, np.int32(1), np.float32(1)]
                spent(work, queues[name], kernel, args)
                figures[name].append(spent(work, queues[name], kernel, args))
        plain, timed = (figures[name] for name in queues)
        ratio = statistics.median(b / a for a, b in zip(plain, timed))
        print("%s: plain %.0f ns, with times %.0f ns, ratio %.3f"
              % (work.__name__, statistics.median(plain), statistics.median(timed), ratio))


if __name__ == "__main__":
    main()
