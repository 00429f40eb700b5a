"""Processes that run programs, so that one that crashes or does not end is told as the others are."""
import copy
import os
import pathlib
import pickle
import select
import signal
import subprocess
import sys

from kernels_shrink import as_test, shrink

SCRIPT = str(pathlib.Path(__file__).with_name("kernels.py"))
HANG = float(os.environ.get("FUZZ_HANG", "120"))  # seconds of a program, in which a C compiler may run
SHORT = 20  # of a function that is looked at by itself


class Lines:
    """What a process writes, line by line; `ended` says how it ended: "", or what went wrong."""

    def __init__(self, arguments):
        self.process = subprocess.Popen([sys.executable, SCRIPT, "--here", *arguments], stdout=subprocess.PIPE)
        self.ended = ""

    def __iter__(self):
        pending = b""
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], HANG)
            part = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not part:
                return self._end(bool(ready))
            *lines, pending = (pending + part).split(b"\n")
            yield from (line.decode() for line in lines)

    def _end(self, closed):
        if not closed:
            self.process.kill()
            self.ended = "it does not end"
        code = self.process.wait()
        if closed and code not in (0, 1):
            self.ended = "it ends by %s" % signal.Signals(-code).name if code < 0 else "it exits with %d" % code


def ends_badly(program, function, arguments):
    """Whether a function crashes its process, or does not end."""
    text = pickle.dumps((program, function))
    try:
        done = subprocess.run([sys.executable, SCRIPT, "--one", *arguments], input=text, timeout=SHORT, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode < 0


def told(program, how, arguments):
    """A text about a program that ended badly, with a test of the function that did."""
    for function in program.functions:
        if ends_badly(program, function, arguments):
            small = copy.deepcopy(function)
            shrink(small, lambda one: ends_badly(program, one, arguments))
            return "program %d, %s: %s\n\n%s\n" % (program.seed, function.name, how, as_test(program, small))
    return "program %d: %s, and each of its functions by itself is well\n" % (program.seed, how)
