"""One of the processes of fusion.py: runs programs, each of several threads, and tells what every line came to. They
come on stdin and answers go to stdout, pickled. What computes them is chosen by the environment."""
import contextlib
import faulthandler
import hashlib
import importlib
import os
import pickle
import pkgutil
import random
import signal
import struct
import sys
import threading
import traceback

import numpy as np

import drupe
import drupe.array as da
import drupe.memory as dm

from arrays_program import Different, sides

try:
    import fault_layer
except ImportError:  # see SOAK_FAULTS of fusion.py
    pass

OUTSIDE = (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError, AttributeError, NameError, Different,
           drupe.DeviceError)
ONCE_MORE = 50  # interrupts of one line
ARMED = set()  # not empty while an interrupt is wanted

C_TEXT = """
kernel void twice(void *x, void *y, int n) { for (int i = 0; i < n; i++) ((char *)y)[i] = ((char *)x)[i]; }
kernel void ones(void *x, int n) { for (int i = 0; i < n; i++) ((char *)x)[i] = 1; }
"""


def digest(x):
    """What an array is, as some bytes that are equal only where all of its bits are; NaNs are all the same one."""
    if isinstance(x, tuple):
        return b"".join(digest(one) for one in x)
    if not isinstance(x, da.Array):
        return repr(x).encode()
    a = np.array(x.asnumpy(), copy=True)
    if a.dtype.kind in "fc" and a.size:
        flat = a.reshape(-1).view(a.real.dtype)
        flat[np.isnan(flat)] = np.nan
    return hashlib.blake2b(("%s%s" % (a.dtype, a.shape)).encode() + a.tobytes(), digest_size=12).digest()


class Extra:
    """What lines do besides calling functions of drupe.array; arrays_fused.py has NumPy's side."""

    def __init__(self, queues, kernels):
        self.queues, self.kernels = queues, kernels

    def wait(self, x):
        x.queue.wait()

    def barrier(self, x):
        return x.queue.barrier() and None

    def hosttask(self, x):
        """A task of the host between what is before and what comes after."""
        x.queue.host_task(lambda: None)

    def peek(self, x):
        """Properties that need no values."""
        str(x.pending)
        return (x.shape, x.dtype, len(x.shape), x.size)

    def words(self, x):
        return repr(x) and None

    def exposed(self, x):
        """From here on others may write it."""
        return x.usm_data is None

    def cleared(self, x):
        """By the queue, past the array."""
        y = x.copy()
        x.queue.fill(y.usm_data, 0, event=False) if y.size else None
        x[...] = y

    def doubled(self, x):
        """By a kernel of the program, which reads the array and writes another."""
        y = da.zeros_like(x)
        if x.size and self.kernels is not None:
            self.kernels.twice(x, y, np.int32(x.nbytes), global_size=1)
            self.ordered(x.queue)
            return y
        return x.copy()

    def ordered(self, queue):
        """Where kernels of the program have no order among themselves: what comes next is behind the last one."""
        if not queue.is_in_order:
            queue.barrier()

    def oned(self, x):
        """A kernel of the program writes an array of bytes that is there."""
        if x.size and self.kernels is not None:
            self.kernels.ones(x, np.int32(x.nbytes), global_size=1)
        else:
            x[...] = 1

    def eagerly(self, function):
        with da.eager():
            return function()

    def fusing(self, function, x):
        return drupe.fuse(function)(x)

    def scalar(self, x):
        return x.reshape(-1)[0].item() if x.size else None


class Thread:
    def __init__(self, lines, queues, shared, kernels):
        self.lines, self.results = lines, [None] * len(lines)
        self.side, _ = sides(queues, shared)
        extra = Extra(queues, kernels)
        for name in vars(Extra):
            if name[0] != "_":
                setattr(self.side.names["xp"], name, getattr(extra, name))
        self.interrupts = None

    def one(self, line):
        if line.text.startswith("drop "):
            self.side.names.pop(line.text[5:], None)
            return None
        if line.text.startswith("check "):
            name = line.text[6:]
            return digest(self.side.names[name]) if name in self.side.names else None
        x = self.side.run(line, line.code())
        if not line.name:
            return None
        self.side.names[line.name] = x
        return None if isinstance(x, da.Array) else digest(x)

    def step(self, line):
        try:
            return self.one(line)
        except OUTSIDE as error:
            return type(error).__name__

    def interrupted(self, line):
        """A line that may be done again, with an interrupt after some microseconds."""
        for _ in range(ONCE_MORE):
            try:
                try:
                    ARMED.add(1)
                    signal.setitimer(signal.ITIMER_REAL, self.interrupts.random() ** 3 * 1e-3 + 1e-6)
                    return self.step(line)
                finally:
                    ARMED.clear()  # Python may call the handler later than the signal comes
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                continue
        return self.step(line)

    def run(self):
        try:
            for i, line in enumerate(self.lines):
                again = self.interrupts and (line.name or line.text.startswith("check "))
                if again and self.interrupts.random() < 0.2:
                    self.results[i] = self.interrupted(line)
                else:
                    self.results[i] = self.step(line)
            names = self.side.names
            ends = sorted(name for name in names if name[0] == "v" and name[1:].isdigit())
            self.results.append([(name, self.step(Check(name))) for name in ends])
        except BaseException:
            self.results.append(traceback.format_exc())
        self.side = None


class Check:
    def __init__(self, name):
        self.text, self.name = "check " + name, ""


def program(message, device, kernels):
    """The results of each of its threads' lines."""
    pool = dm.pool(device)
    if message["room"]:
        pool.trim()
        pool.limit = pool.reserved + (message["room"] << 20)
    try:
        return run_threads(message, device, kernels)
    finally:
        if message["faults"]:
            fault_layer.plan(None)
        pool.limit = None


def run_threads(message, device, kernels):
    shared_queue = drupe.Queue(device, in_order=message["in_order"])
    queues = [shared_queue, drupe.Queue(device), drupe.Queue(device, in_order=False)]
    shared = {name: (da.asarray(a, queue=shared_queue) * 1, a) for name, a in message["shared"].items()}
    threads = [Thread(lines, queues[:message["queues"]], shared, kernels) for lines in message["threads"]]
    if message["interrupts"]:
        threads[0].interrupts = random.Random(message["interrupts"])
    others = [threading.Thread(target=thread.run) for thread in threads[1:]]
    if message["faults"]:
        fault_layer.plan(message["faults"])
    for one in others:
        one.start()
    threads[0].run()
    for one in others:
        one.join()
    return [thread.results for thread in threads]


def interrupt(number, frame):
    if ARMED:
        raise KeyboardInterrupt


def main():
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    signal.signal(signal.SIGALRM, interrupt)
    sys.setswitchinterval(1e-5)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    device = drupe.Device(sys.argv[1])
    for module in pkgutil.walk_packages(drupe.array.__path__, "drupe.array."):
        importlib.import_module(module.name)  # an interrupt of an import may leave its lock behind
    np.random.default_rng()
    kernels = None
    if device.backend == "host":
        with contextlib.suppress(drupe.BuildError):
            kernels = drupe.Program(C_TEXT, "host", language="c")
    while True:
        head = sys.stdin.buffer.read(8)
        if len(head) < 8:
            return
        message = pickle.loads(sys.stdin.buffer.read(struct.unpack("Q", head)[0]))
        with np.errstate(all="ignore"):
            body = pickle.dumps(program(message, device, kernels))
        answers.write(struct.pack("Q", len(body)) + body)
        answers.flush()


if __name__ == "__main__":
    main()
