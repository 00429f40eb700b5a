"""Soak 2: random interrupts, by message and by SIGINT, at random points of random cells and between them. After each
round the kernel must answer, with the state it had."""
import collections
import os
import random
import signal
import tempfile
import time

from client import Failure, Process

# (code, whether it ends only by an interrupt)
_CELLS = (
    ("while True: pass", True),
    ("for i in range(3000): str(i)", False),
    ("import time; time.sleep(60)", True),
    ("import threading; threading.Lock().acquire() and threading.Event().wait(60)", True),
    ("lock = __import__('threading').Lock(); lock.acquire(); lock.acquire()", True),
    ("input('forever?')", True),
    ("import subprocess; subprocess.run(['sleep', '60'])", True),
    ("!sleep 60", True),
    ("import numpy as np; np.linalg.svd(np.ones((60, 60)));", False),
    ("import numpy as np\nwhile True: np.sort(np.arange(1000.0))", True),
    ("import asyncio; await asyncio.sleep(60)", True),
    ("import asyncio\nwhile True: await asyncio.sleep(0)", True),
    ("import asyncio; await asyncio.gather(*[asyncio.sleep(60) for i in range(5)])", True),
    ("import importlib, json, email.message; importlib.reload(json); importlib.reload(email.message);", False),
    ("compile('x = ' + ' + '.join(['1'] * 2000), 'x', 'exec');", False),
    ("def deep(n): return deep(n - 1) if n else 1/0\ndeep(50)", False),
    ("print('x' * 1000)\n" * 20, False),
    ("from IPython.display import display\nfor i in range(50): display(i)", False),
    ("try:\n    while True: pass\nfinally:\n    done = 1", True),
    ("with open('/dev/null', 'w') as f:\n    while True: f.write('x')", True),
    ("import queue; queue.Queue().get()", True),
    ("from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(1) as p: p.submit(sum, [1]).result()",
     False),
    ("%timeit -n1 -r1 sum(range(1000))", False),
    ("1/0", False),
    ("pass", False),
    ("counted", False),
)


class Soak:
    """One kernel under interrupts."""

    def __init__(self, process, seed):
        self.process = process
        self.client = process.client()
        self.client.input_value = None  # nobody types
        self.rng = random.Random(seed)
        self.interrupts = 0
        self.broken = 0  # cells that ended by KeyboardInterrupt
        self.others = collections.Counter()  # endless cells that ended by another error
        self.code = None

    def interrupt(self):
        self.interrupts += 1
        if self.rng.random() < 0.5:
            os.kill(self.process.pid, signal.SIGINT)
        else:
            self.client.send("control", "interrupt_request", {})

    def round(self):
        """One cell with interrupts at random moments; after it, everything must be in order."""
        code, endless = self.rng.choice(_CELLS)
        self.code = code
        if self.rng.random() < 0.2:
            self.interrupt()  # between cells
        msg_id = self.client.execute(code)
        for _ in range(self.rng.randrange(1, 4)):
            self._pause()
            self.interrupt()
        answer = self._until_done(msg_id, endless)
        if answer.reply["status"] == "error" and answer.reply["ename"] == "KeyboardInterrupt":
            self.broken += 1
        elif endless and answer.reply["status"] != "error":
            raise Failure("%r ended with %r" % (code, answer.reply))
        elif endless:  # a library that an interrupt hits in its own clean-up may fail in another way
            self.others[answer.reply["ename"]] += 1
        if self.rng.random() < 0.1:
            self.check()

    def _pause(self):
        time.sleep(self.rng.choice((0, 0, 0.0005, 0.002, 0.01, 0.03)) * self.rng.random() * 2)

    def _until_done(self, msg_id, endless):
        """Interrupts may come before the cell begins and be spent there: an endless cell gets more until it ends."""
        answer = self.client.answers[msg_id]
        deadline, since = time.monotonic() + 60, time.monotonic()
        while not (answer.idle and answer.reply is not None):
            if time.monotonic() > deadline:
                raise Failure("%r does not end" % self.code)
            if endless and time.monotonic() - since > 0.25:
                self.interrupt()
                since = time.monotonic()
            self.client.take(0.02)
        del self.client.answers[msg_id]
        return answer

    def check(self):
        """Answering, counting, printing, with streams and signal handlers in place."""
        self.client.ask("control", "kernel_info_request", {})
        deadline = time.monotonic() + 30
        while True:  # an interrupt that is still on its way may hit the check itself
            answer = self.client.run("counted += 1; print('alive'); assert _soak_ok()")
            if answer.reply["status"] == "ok" and answer.text == "alive\n":
                break
            if answer.reply.get("ename") != "KeyboardInterrupt" or time.monotonic() > deadline:
                raise Failure("after %r: %r" % (self.code, answer.reply))
        first, second = (self.client.run("pass").reply["execution_count"] for _ in range(2))
        if second != first + 1:
            raise Failure("the counter went from %d to %d" % (first, second))


_SETUP = """
import asyncio, numpy, signal, sys, threading  # numpy bears no interrupt while it is imported
counted = 0
_soak_streams = sys.stdout, sys.stderr
_soak_handler = signal.getsignal(signal.SIGINT)
def _soak_ok():
    return ((sys.stdout, sys.stderr) == _soak_streams and signal.getsignal(signal.SIGINT) == _soak_handler
            and asyncio.get_event_loop().is_running() and threading.current_thread() is threading.main_thread())
"""


def run(count, seed):
    with tempfile.TemporaryDirectory() as folder:
        process = Process(folder)
        try:
            soak = Soak(process, seed)
            soak.client.run(_SETUP)
            before = process.threads(), process.descriptors()
            rounds = 0
            while soak.interrupts < count:
                soak.round()
                rounds += 1
                if rounds % 500 == 0:
                    print("  %d cells, %d interrupts" % (rounds, soak.interrupts), flush=True)
            soak.check()
            time.sleep(0.5)
            after = process.threads(), process.descriptors()
            print("  %d interrupts over %d cells, %d ended by them; threads %d to %d, descriptors %d to %d"
                  % (soak.interrupts, rounds, soak.broken, before[0], after[0], len(before[1]), len(after[1])))
            left = {number: target for number, target in after[1].items() if before[1].get(number) != target}
            print("  opened since: %s" % (left or "none"))
            print("  endless cells that ended by another error: %s" % (dict(soak.others) or "none"))
            soak.client.close()
        except Failure as failure:
            return ["%s (after %d interrupts; the kernel is %s)" % (
                failure, soak.interrupts, "alive" if process.alive() else "gone: %s" % process.process.poll())]
        finally:
            process.stop()
    # numpy's threads come with their first use
    few = after[0] <= before[0] + 8 and len(after[1]) <= len(before[1]) + 4
    return [] if few else ["threads or descriptors were left over"]
