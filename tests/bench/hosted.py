#!/usr/bin/env python3
"""One machine, many people: kernels that start at once, what they cost while nobody uses them, and the broker.

All kernels of a kind are started in one go, as after a lecture's "now open the notebook"; each is asked for
kernel_info and for 1+1 at once. The kinds take turns. Then all rest, and their processor time and memory are looked at;
what the broker does is measured by hosted_broker.py. Nothing here passes or fails."""
import argparse
import json
import os
import pathlib
import resource
import statistics
import sys
import tempfile
import time

import zmq

import client
import report

LOST = 120  # seconds until a kernel that has not answered counts as lost
RECONNECT = 100  # ms, as servers' sockets have it: 300 that try all the time would take a processor from the kernels
CACHED = 6  # seconds until the first kernel of its kind has stored what makes a start faster
SETTLE = 5  # seconds: the history of the first cell is written then
LEASES, WAIT = 10_000, 2  # of the broker: a second; ms
HANDED = 1  # s, until the next in line has the device of a parked session
GOALS = {"start": 0.35, "cpu": 0.35, "memory": 0.65}  # x ipykernel


class Crowd:
    """The kernels of one kind, started at once."""

    def __init__(self, name, count, folder):
        self.context = zmq.Context()
        self.context.set(zmq.MAX_SOCKETS, 8 * count + 64)
        self.kernels = []
        self.begun = time.perf_counter()
        for _ in range(count):
            self.kernels.append(client.Kernel(name, folder, self.context, reconnect=RECONNECT))

    def first_answers(self):
        """Seconds until the last kernel_info_reply, until the last result; how many kernels did not give both."""
        waiting, info, result = {}, [], []
        poller = zmq.Poller()
        for kernel in self.kernels:
            for kind, content in (("kernel_info_request", {}), ("execute_request", client.execute_content("1+1"))):
                frames, _ = kernel.messages.request(kind, content)
                kernel.shell.send_multipart(frames)
            waiting[kernel.shell] = 2
            poller.register(kernel.shell, zmq.POLLIN)
        while waiting and time.perf_counter() - self.begun < LOST:
            for socket, _ in poller.poll(1000):
                header, _, _, content = client.parts(socket.recv_multipart())
                if b"kernel_info_reply" not in header and b'"ok"' not in content:
                    continue
                (info if b"kernel_info_reply" in header else result).append(time.perf_counter() - self.begun)
                waiting[socket] -= 1
                if waiting[socket] == 0:
                    poller.unregister(socket)
                    del waiting[socket]
        return max(info, default=0), max(result, default=0), len(waiting)

    def cpu(self):
        return sum(kernel.cpu() for kernel in self.kernels if kernel.process.poll() is None)

    def memory(self):
        return sum(kernel.memory()[0] for kernel in self.kernels if kernel.process.poll() is None)

    def close(self):
        for kernel in self.kernels:
            kernel.close()
        self.context.destroy(linger=0)


def measure_start(name, count, rest=None):
    """What a crowd's start takes; with `rest`, seconds, also what it costs while nobody asks for anything."""
    with tempfile.TemporaryDirectory() as folder:
        crowd = Crowd(name, count, pathlib.Path(folder))
        try:
            info, start, lost = crowd.first_answers()
            found = {"lost": lost, "info": info, "start": start, "spent": crowd.cpu()}
            if rest is not None:
                time.sleep(SETTLE)
                before, begun = crowd.cpu(), time.perf_counter()
                time.sleep(rest)
                found["cpu"] = (crowd.cpu() - before) / (time.perf_counter() - begun)
                found["memory"] = crowd.memory()
            return found
        finally:
            crowd.close()


def measure(names, count, rounds, rest):
    """By kernel. Crowds take turns, since a shared machine is faster at one time than at another: medians, but `lost`
    is of all rounds."""
    for name in names:  # as on a machine in use: caches are there
        with tempfile.TemporaryDirectory() as folder, client.Kernel(name, pathlib.Path(folder)) as first:
            first.ready()
            time.sleep(CACHED)
    found = {name: [] for name in names}
    for left in reversed(range(rounds)):
        for name, starts in found.items():
            print("%d x %s" % (count, name), flush=True)
            starts.append(measure_start(name, count, None if left else rest))
    return {name: {**starts[-1], "lost": sum(one["lost"] for one in starts),
                   **{key: statistics.median(one[key] for one in starts) for key in ("info", "start", "spent")}}
            for name, starts in found.items()}


def rows(found, count):
    table = [["%d kernels" % count, "lost", "all kernel_info, s", "all 1+1, s", "CPU of the start, s",
              "CPU at rest, ms a second", "PSS of all, MiB"]]
    for name, got in found.items():
        table.append([name, str(got["lost"]), "%.2f" % got["info"], "%.2f" % got["start"], "%.1f" % got["spent"],
                      "%.1f" % (1000 * got["cpu"]), "%.0f" % got["memory"]])
    return table


def each(got, name, count):
    """Of one kernel that answered. Those that were lost hold little, and never had an answer that took time: the
    start is that of the last one that answered."""
    return got[name] if name == "start" else got[name] / max(1, count - got["lost"])


def goals(found, count):
    """Rows: what was promised of the kernels, beside ipykernel's. None of ours may be lost."""
    ours, theirs = found.get("drupe"), found.get("ipykernel")
    table = [["goal", "measured", "wanted", ""]]
    if not ours or not theirs or ours["lost"] or theirs["lost"] == count:
        return table
    titles = {"start": "all kernels have answered 1+1", "cpu": "processor time at rest",
              "memory": "memory at rest, PSS"}
    for name, limit in GOALS.items():
        peer = each(theirs, name, count)
        ratio = each(ours, name, count) / peer if peer else 0
        table.append([titles[name], "%.2f x ipykernel" % ratio, "<= %g x" % limit,
                      "met" if ratio <= limit else "missed"])
    return table


def broker_rows(options):
    """Rows of hosted_broker.py; None: the broker is not built, or was left out."""
    if options.kernels_only or not options.broker_built:
        return None
    import hosted_broker

    titles = {"one": "one connection", "many": "1,000 connections"}
    table = [["broker", "leases and returns a second", "p50, ms", "p99, ms", "wanted", ""]]
    for name, got in hosted_broker.measure().items():
        met = got["leases_a_second"] >= LEASES and got["p99_ms"] <= WAIT
        wanted = [">= %d, p99 <= %g ms" % (LEASES, WAIT), "met" if met else "missed"] if name == "many" else ["", ""]
        table.append([titles[name], "%.0f" % got["leases_a_second"], "%.3f" % got["p50_ms"], "%.3f" % got["p99_ms"],
                      *wanted])
    return table


def parking_rows(options):
    """Rows of hosted_parking.py; None: the broker is not built, or was left out."""
    if options.kernels_only or not options.broker_built:
        return None
    import hosted_parking

    table = [["1 GiB of a session that is idle", "median of 5, s", "most, s", "wanted", ""]]
    for device in ("host", "opencl:cpu"):
        handed, back = hosted_parking.measure(device)
        table.append(["%s: the next in line has the device" % device, "%.2f" % statistics.median(handed),
                      "%.2f" % max(handed), "<= %g s" % HANDED, "met" if max(handed) <= HANDED else "missed"])
        table.append(["%s: the session has it back, with a sum of it" % device, "%.2f" % statistics.median(back),
                      "%.2f" % max(back), "", ""])
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3, help="starts of each kind (default 3)")
    parser.add_argument("--seconds", type=float, default=20, help="at rest (default 20)")
    parser.add_argument("--only", action="append", metavar="KERNEL", help="leave the other kernels out")
    parser.add_argument("--kernels-only", action="store_true", help="leave the broker out")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    options = parser.parse_args()
    options.broker_built = (pathlib.Path(sys.executable).parent / "drupe-broker").exists()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    head = "%d processors, load average before: %.2f." % (os.cpu_count(), os.getloadavg()[0])
    print(head)
    names = [name for name in ("drupe", "ipykernel")
             if name in client.available() and (not options.only or name in options.only)]
    found = measure(names, options.kernels, options.rounds, options.seconds)
    tables = [rows(found, options.kernels), goals(found, options.kernels)]
    tables += [broker_rows(options) or [], parking_rows(options) or []]
    tables = [table for table in tables if len(table) > 1]
    for table in tables:
        print(report.terminal(table) + "\n")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found))
    if options.write:
        report.write("hosted", "\n\n".join([head, *map(report.markdown, tables)]))


if __name__ == "__main__":
    main()
