"""Soak: interrupts at random moments of builds, waits and copies, on every device of this machine. After each the
device computes; at the end nothing hangs and nothing was lost."""
import faulthandler
import random
import signal
import threading
import time


class Interrupts:
    """SIGINT for the main thread, which takes it only while it works."""

    def __init__(self, rng):
        self.rng, self.armed, self.ended, self.taken = rng, False, False, 0
        self.main = threading.get_ident()
        self.thread = threading.Thread(target=self.send, daemon=True)

    def __enter__(self):
        self.before = signal.signal(signal.SIGINT, self.handle)
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.ended = True
        self.thread.join()
        signal.signal(signal.SIGINT, self.before)

    def send(self):
        while not self.ended:
            time.sleep(self.rng.random() * 0.01)
            signal.pthread_kill(self.main, signal.SIGINT)

    def handle(self, number, frame):
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def run(self, work, *arguments):
        try:
            self.armed = True
            work(*arguments)
            self.armed = False
        except KeyboardInterrupt:
            self.taken += 1


def interrupt(name, count, seed):
    """Problems found on one device, as lines of text."""
    import numpy as np

    import drupe
    import drupe.array as da
    import testwork

    rng = random.Random(seed)
    device = drupe.Device(name)
    queue = drupe.Queue(device)
    host = name.startswith("host")

    def work(n):
        if n % 4 == 0:
            testwork.task(queue, rng.random() * 0.02).wait()
        elif n % 4 == 1:
            da.asnumpy(da.asarray(np.arange(100000.0), queue=queue) * 2 + 1)
        elif n % 4 == 2 and not host:
            drupe.Program("kernel void f(global int *a) { a[0] = %d; }" % n, device=device)
        else:
            drupe.Event.wait_for([testwork.task(queue, 0.003), queue.barrier()])

    problems, turns = [], 0
    with Interrupts(random.Random(seed + 1)) as interrupts:
        while interrupts.taken < count:
            faulthandler.dump_traceback_later(120, exit=True)
            interrupts.run(work, turns)
            turns += 1
            if turns % 100 == 0 and float(da.arange(100, queue=queue).sum()) != 4950:
                problems.append(f"{name}: a wrong sum after turn {turns}")
    queue.wait()
    faulthandler.cancel_dump_traceback_later()
    if float(da.arange(100, queue=queue).sum()) != 4950:
        problems.append(f"{name}: a wrong sum at the end")
    return problems


def run(count, seed):
    import drupe

    problems = []
    for device in drupe.devices():
        started = time.monotonic()
        problems += interrupt(device.filter_string, count, seed)
        print("  %s: %d interrupts in %.0f s" % (device.filter_string, count, time.monotonic() - started), flush=True)
    return problems
