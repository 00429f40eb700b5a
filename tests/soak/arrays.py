"""Soak 6: random programs of array operations against NumPy, on every device, several queues in and out of order,
and several threads that share inputs. Arrays are dropped as often as they are made, so that memory goes from one to the
next all the time. A difference is told as the shortest program that was found to make it.

COUNT is of steps. The environment chooses further: SOAK_DEVICES (such as "host" or "opencl:cpu"), SOAK_THREADS,
SOAK_TYPES=all (of devices whose kernels are built when they are used), SOAK_PARK=5 (its memory is moved to the host and
back before every fifth line, where nothing stands in the way), and what Drupe itself reads, such as
DRUPE_FORM=gpu and DRUPE_LAYERS=check."""
import os
import random
import threading
import time

import numpy as np

import drupe
import drupe.array as da

import arrays_whole  # noqa: F401 (adds steps)
from arrays_numpy import values
from arrays_program import PARK, Different, Run, shorten
from arrays_steps import HELD, TYPES, Steps

LENGTH = 1000  # lines of a program
MOST_PROBLEMS = 10
DEVICES = os.environ.get("SOAK_DEVICES", "host opencl:cpu opencl:gpu").split()
THREADS = int(os.environ.get("SOAK_THREADS", "2"))


def devices():
    found = []
    for name in DEVICES:
        try:
            found.append(drupe.Device(name))
        except drupe.DeviceNotFoundError:
            pass
    return found


def make_shared(queue, seed):
    """Inputs that all threads read: each name's array and NumPy's."""
    shared = {}
    for number, dtype in enumerate(("float64", "int32", "bool", "float32")):
        a = values(dtype, (4, 5), seed + number)
        a.flags.writeable = False
        shared["s%d" % number] = (da.asarray(a, queue=queue), a)
    return shared


class Counts:
    def __init__(self):
        self.lock, self.steps, self.refused, self.programs, self.problems = threading.Lock(), 0, 0, 0, []
        self.parked = 0


def text_of(lines):
    return "\n      ".join(str(line) for line in lines)


def one_program(device, seed, counts, queue, shared):
    """Steps of one thread's program, which has the shared queue and others of its own."""
    numbers = random.Random(seed)
    queues = [queue, drupe.Queue(device), drupe.Queue(device, in_order=False)][:numbers.choice((1, 2, 3, 3))]
    # Each combination of types is a program to build, so there are few types where programs are built.
    every = device.backend == "host" or os.environ.get("SOAK_TYPES") == "all"
    dtypes = TYPES if every else random.Random(seed % 3).sample(TYPES, 3)
    run, lines = Run(queues, shared), []
    steps = Steps(run, numbers, dtypes, range(len(queues)), dict.fromkeys(shared, 0))
    try:
        for _ in range(LENGTH):
            line = steps.line()
            if line is None:
                continue
            lines.append(line)
            if line.text.startswith("drop "):
                run.drop(line.text[5:])
            elif line.text.startswith("check "):
                run.check(line.text[6:])
            elif run.step(line) is not None and line.name:
                steps.kept(line)
                held = [name for name in run.numpy.names if name[0] == "v" and name[1:].isdigit()]
                if len(held) > HELD:
                    lines.append(type(line)("drop " + numbers.choice(held)))
                    run.drop(lines[-1].text[5:])
        run.check_all()
    except Different as error:
        return problem(device, seed, lines, str(error), queues, shared)
    except Exception as error:
        return problem(device, seed, lines, "%s: %s" % (type(error).__name__, error), queues, shared)
    finally:
        with counts.lock:
            counts.steps += len(lines)
            counts.programs += 1
            counts.refused += run.refused
            counts.parked += run.parked
    return None


def problem(device, seed, lines, text, queues, shared):
    shorter = shorten(lines, queues, shared)
    if shorter is None:
        return "%s, program %d: %s; not again. The last lines:\n      %s" % (
            device.filter_string, seed, text, text_of(lines[-25:]))
    lines, text = shorter
    return "%s, program %d: %s\n      %s" % (device.filter_string, seed, text, text_of(lines))


def work(count, first, stride, counts, places):
    with np.errstate(all="ignore"):
        seed = first
        while counts.steps < count and len(counts.problems) < MOST_PROBLEMS:
            device, queue, shared = places[seed % len(places)]
            found = one_program(device, seed, counts, queue, shared)
            if found:
                with counts.lock:
                    counts.problems.append(found)
            seed += stride


def run(count, seed):
    counts, started = Counts(), time.perf_counter()
    places = []
    for device in devices():
        queue = da.empty(1, device=device).queue
        places.append((device, queue, make_shared(queue, seed % 1000)))
    threads = [threading.Thread(target=work, args=(count, seed + i, THREADS, counts, places)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    print("  %d steps of %d programs on %d devices, %d threads, in %.1f s: %.0f steps a second; NumPy refused %d" % (
        counts.steps, counts.programs, len(places), THREADS, seconds, counts.steps / seconds, counts.refused))
    if PARK:
        print("  parked %d times" % counts.parked)
    return counts.problems
