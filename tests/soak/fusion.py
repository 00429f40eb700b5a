"""Soak 10: random programs of arrays in four processes, which are to give the same bits: one where expressions become
kernels, one where these are cut after every few operations, one where their parts run one by one, and one where each
operation runs at once. Programs have one to three threads, which share a queue and its pending work, other queues in
and out of order, kernels and tasks of their own, little memory, and interrupts, after which a line is done again.

COUNT is of steps of each process. The environment chooses further: SOAK_DEVICES (one filter; default "host"),
SOAK_LENGTH (lines of a program), SOAK_MODES (such as "fused eager"), SOAK_HANG (seconds without an answer), SOAK_FAULTS
(calls of the backends fail at random; what depends on a line that failed is not compared), and what Drupe itself
reads."""
import os
import pathlib
import pickle
import random
import re
import select
import signal
import struct
import subprocess
import sys
import time

import faulty
import numpy as np

from arrays_fused import program
from arrays_numpy import values
from arrays_steps import TYPES

MODES = {"fused": {"DRUPE_FUSE_ABOVE": "0"}, "limits": {"DRUPE_FUSE_ABOVE": "0", "DRUPE_FUSE_MOST": "3"},
         "steps": {"DRUPE_FUSE": "steps", "DRUPE_FUSE_ABOVE": "0"}, "eager": {"DRUPE_FUSE": "0"}}
CHOSEN = os.environ.get("SOAK_MODES", " ".join(MODES)).split()
DEVICE = os.environ.get("SOAK_DEVICES", "host").split()[0]
LENGTH = int(os.environ.get("SOAK_LENGTH", "300"))
HANG = float(os.environ.get("SOAK_HANG", "300"))
MOST_PROBLEMS = 10
SHORTENINGS = 400
TELL = 30  # seconds between words of how far it is
FAULTS = bool(os.environ.get("SOAK_FAULTS"))
# Of work that was submitted before, of failures that were made, and of what there is no room for. Busy is a queue whose
# later failure nobody has been told of, for what another queue asks of it.
LATE = ("CancelledError", "DependencyError", "OutOfRangeError", "DeviceMemoryError") + (
    ("InternalError", "DeviceLostError", "UnavailableError", "UnsupportedError", "NameError",
     "BusyError") if FAULTS else ())


class Gone(Exception):
    """A process has ended, or does not answer."""


class Process:
    def __init__(self, mode):
        self.mode, self.child = mode, None

    def start(self):
        child = str(pathlib.Path(__file__).with_name("fusion_child.py"))
        self.child = subprocess.Popen([sys.executable, child, DEVICE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      env={**os.environ, **MODES[self.mode],
                                            **(faulty.environment() if FAULTS else {})})

    def send(self, message):
        if self.child is None:
            self.start()
        body = pickle.dumps(message)
        try:
            self.child.stdin.write(struct.pack("Q", len(body)) + body)
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # receive() tells

    def _read(self, size):
        parts = b""
        while len(parts) < size:
            ready, _, _ = select.select([self.child.stdout], [], [], HANG)
            if not ready:
                self.child.send_signal(signal.SIGUSR1)  # where its threads are
                time.sleep(1)
                self.stop()
                raise Gone("%s does not answer" % self.mode)
            part = os.read(self.child.stdout.fileno(), size - len(parts))
            if not part:
                code = self.child.wait()
                self.child = None
                raise Gone("%s ended with %s" % (self.mode, code))
            parts += part
        return parts

    def receive(self):
        return pickle.loads(self._read(struct.unpack("Q", self._read(8))[0]))

    def stop(self):
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None


def answers(processes, message):
    """What each process says; the text where one is gone."""
    for process in processes:
        process.send(message)
    found = []
    for process in processes:
        try:
            found.append(process.receive())
        except Gone as error:
            found.append(str(error))
    return found


class Spoilt:
    """Names of a thread whose values hang on a line that failed in one of the processes, or may; views with what they
    share memory with."""

    def __init__(self):
        self.shares, self.groups = {}, set()

    def group(self, name):
        while name in self.shares:
            name = self.shares[name]
        return name

    def __contains__(self, name):
        return self.group(name) in self.groups

    def step(self, line, failed):
        """Whether the line is to be compared."""
        if line.text.startswith("check "):
            return not failed and line.text[6:] not in self
        names, target = re.findall(r"\b[vs]\d+\b", line.text), line.name or line.writes
        for name in names if line.view and target else ():
            if self.group(name) != self.group(target):
                self.shares[self.group(target)] = self.group(name)
        if target and (failed or any(name in self for name in names)):
            self.groups.add(self.group(target))
        return not failed and not any(name in self for name in [*names, *filter(None, [target])])


def thread_difference(lines, results, others):
    """The place and both results, or None. At which line an interrupt or a failure is told first is a matter of
    time."""
    spoilt = Spoilt()
    for i, (line, one, other) in enumerate(zip(lines, results, others)):
        if spoilt.step(line, one in LATE or other in LATE) and one != other:
            return i, one, other
    ends, others = dict(results[-1]), dict(others[-1])
    for name in sorted(ends.keys() | others.keys()):
        one, other = ends.get(name), others.get(name)
        if name not in spoilt and one not in LATE and other not in LATE and one != other:
            return name, one, other
    return None


def difference(found, message):
    """A text, or None where all are the same."""
    for one, mode in zip(found, CHOSEN):
        if isinstance(one, str):
            return one
        for thread in one:
            if isinstance(thread[-1], str):
                return "%s: %s" % (mode, thread[-1])
    for mode, one in zip(CHOSEN[:-1], found):
        for thread, (lines, results, others) in enumerate(zip(message["threads"], one, found[-1])):
            differs = thread_difference(lines, results, others)
            if differs:
                return "thread %d, at %s: %s has %r, and %s %r" % (
                    thread, differs[0], mode, differs[1], CHOSEN[-1], differs[2])
    return None


def without(message, thread, at, size):
    threads = list(message["threads"])
    threads[thread] = threads[thread][:at] + threads[thread][at + size:]
    return {**message, "threads": [lines for lines in threads if lines]}


def shorten(processes, message, patience):
    """A smaller program that differs, and how; None where it does not differ again."""
    def differs(one):
        for _ in range(patience):
            text = difference(answers(processes, one), one)
            if text:
                return text
        return None

    text, rest = differs(message), SHORTENINGS
    if text is None:
        return None
    if message["interrupts"]:
        again = differs({**message, "interrupts": 0})
        if again:
            message, text = {**message, "interrupts": 0}, again
    for thread in range(len(message["threads"]) - 1, -1, -1):
        if thread >= len(message["threads"]):
            continue
        size = len(message["threads"][thread])
        while size and rest > 0:
            at = 0
            while thread < len(message["threads"]) and at < len(message["threads"][thread]) and rest > 0:
                fewer, rest = without(message, thread, at, size), rest - 1
                again = differs(fewer) if fewer["threads"] else None
                if again:
                    alone = len(fewer["threads"]) < len(message["threads"])
                    message, text = fewer, again
                    if alone:
                        break
                else:
                    at += size
            size //= 2
    return message, text


def tell(seed, text, message):
    said = ["%s, program %d: %s" % (DEVICE, seed, text),
            "queues %(queues)d, in order %(in_order)r, interrupts %(interrupts)r, MiB of room %(room)r, "
            "faults %(faults)r" % message]
    for number, lines in enumerate(message["threads"]):
        said.append("thread %d:" % number)
        said += ["  %s" % line for line in lines]
    return "\n      ".join(said)


def one_program(seed):
    numbers = random.Random(seed)
    shared = {}
    for number, dtype in enumerate(("float64", "int32", "bool", "float32")):
        shared["s%d" % number] = values(dtype, (6, 5), seed % 1000 + number)
        shared["s%d" % number].flags.writeable = False
    every = DEVICE.startswith("host") or os.environ.get("SOAK_TYPES") == "all"
    dtypes = numbers.sample(TYPES, numbers.choice((2, 4, 14))) if every else random.Random(seed % 2).sample(TYPES, 2)
    queues, threads = numbers.choice((1, 1, 2, 3)), numbers.choice((1, 1, 1, 2, 2, 3))
    lines = [program(numbers, dtypes, queues, shared, LENGTH // threads) for _ in range(threads)]
    return {"threads": lines, "shared": shared, "queues": queues, "in_order": numbers.random() < 0.8,
            "interrupts": numbers.choice((0, 0, numbers.randrange(1, 1 << 30))),
            "room": numbers.choice((None,) * 7 + (1, 4, 20)),
            "faults": "random:%d:%g" % (seed, numbers.choice((0.001, 0.01, 0.1))) if FAULTS else None}


def run(count, seed):
    started, steps, programs, problems = time.perf_counter(), 0, 0, []
    told = started
    processes = [Process(mode) for mode in CHOSEN]
    with np.errstate(all="ignore"):
        while steps < count and len(problems) < MOST_PROBLEMS:
            message = one_program(seed + programs)
            text = difference(answers(processes, message), message)
            if text:
                print("  differs: program %d: %s" % (seed + programs, text), flush=True)
                tried = shorten(processes, message, 3 if message["interrupts"] or len(message["threads"]) > 1 else 1)
                problems.append(tell(seed + programs, *(reversed(tried) if tried else ("not again: " + text, message))))
            programs += 1
            steps += sum(map(len, message["threads"]))
            if time.perf_counter() > told + TELL:
                told = time.perf_counter()
                print("  %d programs, %d steps of each process, %.0f s" % (
                    programs, steps, time.perf_counter() - started), flush=True)
    for process in processes:
        process.stop()
    print("  %d steps of %d programs in each of %s, in %.1f s" % (
        steps, programs, ", ".join(CHOSEN), time.perf_counter() - started))
    return problems
