#!/usr/bin/env python3
"""Many kernels on one machine: 64 of a kind, each asked 10 times a second, for a minute.

Requests leave by the clock, whether the ones before were answered or not, and a delay counts from the time at which a
request was due. One ROUTER socket asks all kernels and one SUB socket hears them, so that the client stays small; its
own processor time is printed beside the kernels'. One kind after the other; nothing here passes or fails."""
import argparse
import os
import pathlib
import tempfile
import time

import zmq

import client
import report

BATCH = 4  # kernels that start at once
DRAIN = 60  # seconds for answers after the last request


class Crowd:
    """The kernels of one kind and the two sockets to all of them."""

    def __init__(self, name, count, folder):
        self.context = zmq.Context()
        self.kernels = []
        self.silent = 0  # kernels that did not come up and were replaced
        while len(self.kernels) < count:
            batch = [client.Kernel(name, folder, self.context) for _ in range(min(BATCH, count - len(self.kernels)))]
            self.kernels += [kernel for kernel in batch if self._started(kernel)]
            if self.silent > count:
                self.close()
                raise SystemExit("the kernels of %s do not start" % name)
        self.shell = self._socket(zmq.ROUTER)
        self.iopub = self._socket(zmq.SUB)
        self.iopub.subscribe(b"")
        self.names = [b"k%d" % i for i in range(count)]
        for routing_id, kernel in zip(self.names, self.kernels):
            self.shell.setsockopt(zmq.CONNECT_ROUTING_ID, routing_id)
            self.shell.connect("tcp://127.0.0.1:%d" % kernel.ports["shell_port"])
            self.iopub.connect("tcp://127.0.0.1:%d" % kernel.ports["iopub_port"])

    def _started(self, kernel):
        try:
            kernel.ready()
            kernel.execute("1+1")
        except zmq.Again:
            self.silent += 1
            print("one did not answer and is replaced", flush=True)
            kernel.close()
            return False
        kernel.disconnect()
        return True

    def _socket(self, kind):
        socket = self.context.socket(kind)
        socket.linger = 0
        socket.rcvhwm = socket.sndhwm = 0
        return socket

    def close(self):
        for kernel in self.kernels:
            kernel.close()
        self.context.destroy(linger=0)

    def cpu(self):
        return sum(kernel.cpu() for kernel in self.kernels)


class Load:
    """The requests of one run and what became of them."""

    def __init__(self, crowd):
        self.crowd = crowd
        self.due = {}  # id -> time at which it was due, while its reply or its idle is missing
        self.missing = {}  # id -> how many of the two
        self.delays, self.errors, self.sent = [], 0, 0
        self.poller = zmq.Poller()
        self.poller.register(crowd.shell, zmq.POLLIN)
        self.poller.register(crowd.iopub, zmq.POLLIN)

    def ask(self, index, due):
        messages = self.crowd.kernels[index].messages
        frames, msg_id = messages.request("execute_request", client.execute_content("pass"))
        self.crowd.shell.send_multipart([self.crowd.names[index], *frames])
        self.due[msg_id], self.missing[msg_id] = due, 2
        self.sent += 1

    def _arrived(self, frames, of_shell):
        header, parent, _, content = client.parts(frames)
        if not of_shell and not (b'"idle"' in content and b'"status"' in header):
            return
        answers = parent.partition(b'"msg_id"')[2].split(b'"')  # nothing: a new subscriber is told the state
        msg_id = answers[1] if len(answers) > 1 else None
        if msg_id not in self.due:
            return
        if of_shell and b'"ok"' not in content:
            self.errors += 1
        self.missing[msg_id] -= 1
        if self.missing[msg_id] == 0:
            del self.missing[msg_id]
            self.delays.append(time.perf_counter() - self.due.pop(msg_id))

    def listen(self, until):
        """Take what arrives, for at least one look."""
        while True:
            ready = dict(self.poller.poll(max(0, round(1000 * (until - time.perf_counter())))))
            for socket in ready:
                for _ in range(100):
                    try:
                        self._arrived(socket.recv_multipart(zmq.DONTWAIT), socket is self.crowd.shell)
                    except zmq.Again:
                        break
            if time.perf_counter() >= until - 0.0005:
                return

    def run(self, rate, seconds):
        count = len(self.crowd.kernels)
        begun = time.perf_counter()
        for number in range(int(rate * seconds) * count):
            due = begun + number / (rate * count)
            self.listen(due)
            self.ask(number % count, due)
        end = time.perf_counter() + DRAIN
        while self.due and time.perf_counter() < end:
            self.listen(time.perf_counter() + 0.1)
        return time.perf_counter() - begun


def measure(name, count, rate, seconds):
    with tempfile.TemporaryDirectory() as folder:
        crowd = Crowd(name, count, pathlib.Path(folder))
        try:
            time.sleep(2)  # the history of the first cell is written
            load, cpu, own = Load(crowd), crowd.cpu(), time.process_time()
            memory = sum(kernel.memory()[0] for kernel in crowd.kernels)
            took = load.run(rate, seconds)
            return {"cpu": crowd.cpu() - cpu, "own": time.process_time() - own, "took": took, "sent": load.sent,
                    "errors": load.errors + len(load.due), "delays": load.delays, "memory": memory}
        finally:
            crowd.close()


def rows(found):
    head = ["", "requests", "errors", "delay p50 (p99), ms", "took, s", "CPU, s", "CPU a request, ms",
            "client's CPU, s",
            "PSS of all, MiB"]
    table = [head]
    for name, got in found.items():
        table.append([name, "%d" % got["sent"], "%d" % got["errors"], report.cell(got["delays"], "ms"),
                      "%.1f" % got["took"], "%.1f" % got["cpu"], "%.2f" % (1000 * got["cpu"] / got["sent"]),
                      "%.1f" % got["own"], "%.0f" % got["memory"]])
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=64)
    parser.add_argument("--rate", type=float, default=10, help="requests a second to each (default 10)")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", action="append", metavar="KERNEL", help="leave the other kernels out")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args()
    found = {}
    print("load before: %.2f" % os.getloadavg()[0])
    for name in client.available():
        if not options.only or name in options.only:
            print("%d x %s" % (options.kernels, name), flush=True)
            found[name] = measure(name, options.kernels, options.rate, options.seconds)
    print(report.terminal(rows(found)))
    text = report.markdown(rows(found))
    if "drupe" in found and "ipykernel" in found:
        ratio = found["drupe"]["cpu"] / found["ipykernel"]["cpu"]
        line = "CPU of all: %.2f x ipykernel (wanted <= 0.5 x); errors %d" % (ratio, found["drupe"]["errors"])
        print(line)
        text += "\n\n" + line + "."
    if options.write:
        report.write("many kernels", text)


if __name__ == "__main__":
    main()
