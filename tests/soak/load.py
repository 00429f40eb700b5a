"""Soak 4: a million requests behind one cell that fails. Memory stays bounded, control answers meanwhile, and every
request gets one reply and one idle: what had been taken in when the cell failed is aborted, the rest runs."""
import collections
import tempfile
import time

import zmq
from client import Failure, Process

MEMORY_MOST = 512 << 20  # growth
_MIB = 1 << 20


class _Control:
    """A control socket of its own: how long an answer takes, whatever else is under way."""

    def __init__(self, process, client):
        self.client = client
        self.socket = client.context.socket(zmq.DEALER)
        self.socket.connect("tcp://127.0.0.1:%d" % process.info["control_port"])

    def ask(self):
        _, frames = self.client.frames("kernel_info_request", {})
        started = time.perf_counter()
        self.socket.send_multipart(frames)
        if not self.socket.poll(20000):
            raise Failure("control does not answer")
        self.socket.recv_multipart()
        return time.perf_counter() - started


class _Soak:
    def __init__(self, process):
        self.process = process
        self.client = process.client(queue=1000)
        self.control = _Control(process, self.client)
        self.statuses = collections.Counter()
        self.times, self.memory, self.looked = [], 0, 0.0

    def send(self, count):
        """All requests; while the kernel takes no more, what comes back is read."""
        cell = {"code": "pass", "silent": True}
        for _ in range(count):
            _, frames = self.client.frames("execute_request", cell)
            while True:
                try:
                    self.client.sockets["shell"].send_multipart(frames, zmq.NOBLOCK)
                    break
                except zmq.Again:
                    self.step(0.01)

    def step(self, timeout):
        """Read a batch; now and then ask control and look at the memory."""
        self.client.take(timeout)
        answers = self.client.answers
        for msg_id in [m for m, a in answers.items() if a.idle and a.reply is not None]:
            self.statuses[answers.pop(msg_id).reply["status"]] += 1
        if time.monotonic() - self.looked > 0.1:
            self.looked = time.monotonic()
            self.times.append(self.control.ask())
            self.memory = max(self.memory, self.process.memory())

    def collect(self, count):
        deadline = time.monotonic() + 60
        while sum(self.statuses[name] for name in ("ok", "aborted", "error")) < count:
            before = sum(self.statuses.values())
            self.step(0.05)
            if sum(self.statuses.values()) > before:
                deadline = time.monotonic() + 60
            elif time.monotonic() > deadline:
                raise Failure("only %s of %d replies" % (dict(self.statuses), count))


def run(count, seed):
    with tempfile.TemporaryDirectory() as folder:
        process = Process(folder)
        try:
            soak = _Soak(process)
            soak.client.run("pass")
            before, started = process.memory(), time.monotonic()
            soak.client.execute("import time; time.sleep(5); 1/0", stop_on_error=True)
            soak.send(count)
            soak.collect(count + 1)
            soak.client.run("pass")
            after, seconds = process.memory(), time.monotonic() - started
            soak.client.close()
        except Failure as failure:
            return [str(failure)]
        finally:
            process.stop()
    soak.times.sort()
    print("  %s in %.0f s; memory grew by %.0f MiB at most, %.0f MiB in the end; control answered after %.1f ms "
          "(median), %.1f ms (worst of %d)" % (dict(soak.statuses), seconds, (soak.memory - before) / _MIB,
                                     (after - before) / _MIB,
                                     soak.times[len(soak.times) // 2] * 1e3, soak.times[-1] * 1e3, len(soak.times)))
    problems = []
    if soak.memory - before > MEMORY_MOST:
        problems.append("memory grew by %.0f MiB" % ((soak.memory - before) / _MIB))
    if soak.statuses["error"] != 1:
        problems.append("the failed cell was not answered as such")
    return problems
