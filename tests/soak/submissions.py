"""Soak 5: ten million submissions. Memory and latency stay flat: the last million costs what the second did."""
import os
import random
import statistics
import time

import drupe
import drupe.array as da

SLOWER_MOST = 1.5  # at the end of the run, beside its beginning
MEMORY_MOST = 32 << 20  # growth after the first tenth
BATCH = 1000


def _memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def _fifth(values):
    return sorted(values)[len(values) // 5]


def _ways(numbers):
    """Calls that submit one thing each, on the devices that there are."""
    ways, queues = [], []
    for filter_string in ("host", "opencl"):
        try:
            device = drupe.Device(filter_string)
        except drupe.DeviceNotFoundError:
            continue
        x, y = (da.ones(16, dtype="float32", device=device) for _ in range(2))
        queue = x.queue
        queues.append(queue)
        ways += [lambda x=x, y=y: da.add(x, x, out=y), queue.barrier, lambda q=queue: q.barrier(wait_for=[q.barrier()]),
                 lambda q=queue, x=x, y=y: q.copy(x, y), lambda q=queue, y=y: q.fill(y, b"\0")]
    numbers.shuffle(ways)
    return ways, queues


def run(count, seed):
    numbers = random.Random(seed)
    ways, queues = _ways(numbers)
    tenth = max(count // 10, BATCH)
    problems, sums, memory = [], [], []
    for part in range(10):
        times = []
        for batch in range(tenth // BATCH):
            call = ways[batch % len(ways)]
            started = time.perf_counter_ns()
            for _ in range(BATCH):
                call()
            times.append((time.perf_counter_ns() - started) / BATCH)
            for queue in queues:
                queue.wait()
        # Of each way its own, since they differ, and of its batches the first fifth, which had the processor.
        costs = [_fifth(times[way::len(ways)]) for way in range(min(len(ways), len(times)))]
        sums.append(sum(costs))
        memory.append(_memory())
        print("  %d submissions: %.0f ns each, %.1f MiB" % (
            (part + 1) * tenth, sums[-1] / len(costs), memory[-1] / (1 << 20)), flush=True)
    if memory[-1] - memory[0] > MEMORY_MOST:
        problems.append("memory grew by %.1f MiB" % ((memory[-1] - memory[0]) / (1 << 20)))
    begin, end = statistics.median(sums[1:4]), statistics.median(sums[-3:])
    if end > SLOWER_MOST * begin:
        problems.append("a submission took %.0f ns at the end and %.0f at the beginning" % (
            end / len(ways), begin / len(ways)))
    return problems
