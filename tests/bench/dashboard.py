"""What it costs to see what the devices do: the recorder, and a live dashboard in a cell.

    python tests/bench/dashboard.py [--rounds N] [--seconds S] [--write]

Submissions are additions of arrays of 16 elements. In each round three short turns follow each other in random order in
one process: one with what is measured, two without. Compared within a round are the processor time of the submitting
thread, the time by the clock, and the time by the clock until the work is done. The median of these ratios counts;
between which two values it lies, 19 times of 20, is told with it, and what the same sums make of the two turns
without. Before each turn a part of one is not timed: starting and stopping is not what is measured. Turns are short,
because what other programs do then spoils few of them. The frames of a live dashboard, two a second, fall between its
turns: a thread draws them, and what that takes of a processor is a row of its own.

On an OpenCL device a submitter that meets the driver's workers at the queue now wakes one and now waits for one, and
what it costs to submit becomes a matter of luck, by a factor of two. So a turn goes by 256 submissions there: while
they are timed, a kernel before them on the queue holds the driver's only worker busy, as any long kernel does; then it
ends, they run, and are waited for. The time until the work is done has both parts.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import report
from client import Kernel, count, stream_text

WAYS = ("processor", "clock", "done")

SHARED = "WAYS = %r" % (WAYS,) + r"""
import ctypes, gc, json, os, random, statistics, sys, time
import drupe, drupe.array as da
from drupe import _engine

RECORDING = ("drupe-recorder",)

def threads_time(names):
    total = 0
    for task in os.listdir("/proc/self/task"):
        if open(f"/proc/self/task/{task}/comm").read().strip() in names:
            total += int(open(f"/proc/self/task/{task}/schedstat").read().split()[0]) / 1e9
    return total

def memory():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

# A kernel that ends when it is told to, in front of what is submitted next.
class Gate:
    number = 256
    SOURCE = "kernel void gate(global volatile int *open) { while (!*open) ; }"

    def __init__(self, queue):
        self.queue, self.kernel = queue, drupe.Program(self.SOURCE, queue.device)["gate"]
        self.memory = drupe.memory.MemoryUSMShared(64, queue=queue)
        self.state = ctypes.c_int.from_address(self.memory._pointer)

    def shut(self, x):
        self.state.value = 0
        self.kernel(self.memory, global_size=1, local_size=1, queue=self.queue, event=False)
        for _ in range(32):
            y = x + x

    def open(self):
        self.state.value = 1

class Open:
    number = 8192

    def shut(self, x):
        pass

    def open(self):
        pass

def part(x, gate, number):
    begun = time.perf_counter_ns()
    gate.shut(x)
    timed = time.perf_counter_ns(), time.thread_time_ns()
    for _ in range(number):
        y = x + x
    spent = time.thread_time_ns() - timed[1], time.perf_counter_ns() - timed[0]
    gate.open()
    x.queue.wait()
    return *spent, time.perf_counter_ns() - begun

# Nanoseconds a submission: of this thread's processor time, by the clock, until it is done, and of the recorder's
# processor time.
def turn(x, gate, parts, number):
    for _ in range(max(1, parts // 4)):
        part(x, gate, number)
    begun = threads_time(RECORDING)
    spent = [sum(times) / parts / number for times in zip(*(part(x, gate, number) for _ in range(parts)))]
    return spent + [(threads_time(RECORDING) - begun) / parts / number * 1e9]

# The median in percent above 1, and those two between which it lies 19 times of 20.
def middle(ratios):
    ratios, count = sorted(ratios), len(ratios)
    away = round(0.98 * count ** 0.5)
    return [100 * (ratios[max(0, min(count - 1, at))] - 1) for at in (count // 2, count // 2 - away, count // 2 + away)]

def turns(x, gate, seconds, rounds, switch):
    number, found = gate.number, []
    parts = max(4096 // number, int(1e9 * seconds / turn(x, gate, 8, number)[2] / number), 1)
    for _ in range(rounds):
        times = {}
        for name in random.sample(("on", "off", "again"), 3):
            switch(name == "on")
            times[name] = turn(x, gate, parts, number)
        found.append(times)
    switch(False)
    result = {"off": statistics.median(one["off"][0] for one in found),
              "recorder": statistics.median(one["on"][3] for one in found)}
    for way, name in enumerate(WAYS):
        result[name] = middle([2 * one["on"][way] / (one["off"][way] + one["again"][way]) for one in found])
        result[name + ", nothing"] = middle([one["off"][way] / one["again"][way] for one in found])
    return result

def devices(seconds, rounds, switch):
    found = {}
    for filter in ("host", "opencl:cpu"):
        if drupe.devices(filter):
            queue = drupe.Queue(filter)
            found[filter] = turns(da.ones(16, queue=queue), Open() if filter == "host" else Gate(queue), seconds,
                                  rounds, switch)
    return found
"""

# A recorder that was started long ago has its memory: so has one that is started again here. PoCL has one worker: see
# the top of the file.
STEADY = {"POCL_MAX_PTHREAD_COUNT": "1", "MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
          "MALLOC_TOP_PAD_": str(1 << 24)}

RECORDER = SHARED + r"""
def switch(on):
    (_engine._view_start if on else _engine._view_stop)()

print(json.dumps(devices(0.02, ROUNDS, switch)))
"""

LIVE = SHARED + r"""
live = 0

def switch(on):
    global live
    if live:
        _engine._live_close(live)
    live = 0
    if on:
        live = _engine._live_open("dashboard")
    else:
        _engine._view_stop()

result = devices(TURN, ROUNDS, switch)
_engine._view_start()
print(json.dumps(result))
"""

OPEN = SHARED + r"""
x = da.ones(16, queue=drupe.Queue("host"))
NAMES = ("drupe-recorder", "drupe-live")
get_ipython().run_line_magic("dashboard", "")
"""

# Ten thousand submissions a second, in bursts as a program with other things to do makes them.
LOAD = r"""
begun, spent = time.perf_counter(), threads_time(NAMES)
while time.perf_counter() - begun < SECONDS:
    for _ in range(100):
        y = x + x
    x.queue.wait()
    time.sleep(0.01)
print(json.dumps({"share": (threads_time(NAMES) - spent) / (time.perf_counter() - begun)}))
"""

TIMED = SHARED + r"""
def timed(call):
    best = 1e9
    for _ in range(5):
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return best * 1e3

def record():
    view = _engine._view()
    view.text("dashboard")
    view.html("dashboard")

_engine._view_start()
"""

MILLION = TIMED + r"""
x = da.ones(16, queue=drupe.Queue("host"))
turn(x, Open(), 1, 1000)
gc.collect()
before = memory()
first = _engine._view().data()["cells"][-1]
begun, spent = time.perf_counter(), threads_time(RECORDING)
for _ in range(1000000):
    y = x + x
seconds = time.perf_counter() - begun
share = (threads_time(RECORDING) - spent) / seconds
x.queue.wait()
frame = timed(lambda: _engine._view(spans=400).html("dashboard"))
whole = timed(lambda: _engine._view().json())
cell = _engine._view().data()["cells"][-1]
print(json.dumps({"counted": sum(cell["count"]) - sum(first["count"]), "missed": cell["missed"] - first["missed"],
                  "frame": frame, "record": timed(record), "json": whole, "before": before, "after": memory(),
                  "rate": 1e6 / seconds, "share": share}))
"""


def process(text, environment=None):
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def in_kernel(options, folder):
    """The figures of live dashboards: submissions beside one, and what one costs and sends."""
    with Kernel("drupe", folder, settings=STEADY) as kernel:
        kernel.ready()
        for socket in (kernel.shell, kernel.iopub):
            socket.rcvtimeo = 600000
        live = LIVE.replace("ROUNDS", str(max(4, options.rounds * 4 // 5))).replace("TURN", str(options.turn))
        beside = json.loads(stream_text(kernel.execute(live)[2])[0])
        kernel.execute(OPEN)
        _, _, seen = kernel.execute(LOAD.replace("SECONDS", str(options.seconds)))
        cost = json.loads(stream_text(seen)[0])
        cost["messages"] = sum(count(seen, kind) for kind in ("display_data", "update_display_data")) / options.seconds
    return beside, cost


def rows_of(alone, beside, cost, million):
    rows = [["", "measured", "goal"]]

    def add(what, measured, goal=""):
        rows.append([what, measured, goal])

    def more(middle):
        return "%+.1f %% (%+.1f to %+.1f)" % tuple(middle)

    for title, figures in (("the recorder", alone), ("recorder and live dashboard", beside)):
        for device, one in figures.items():
            add("submission beside %s, %s" % (title, device), "%s; by the clock %s; without it %.0f ns"
                % (more(one["processor"]), more(one["clock"]), one["off"]), "at most 2 % more")
            add("the same, until the work is done", more(one["done"]))
            add("these three, nothing changed", "; ".join(more(one[way + ", nothing"]) for way in WAYS), "0")
            add("the recorder's processor time meanwhile", "%.0f ns a submission" % one["recorder"])
    add("live dashboard, 10,000 submissions a second: processor", "%.2f %%" % (100 * cost["share"]), "at most 1 %")
    add("the same: messages", "%.1f a second" % cost["messages"], "at most 10")
    add("a million submissions: counted, missed", "{:,}, {:,}".format(million["counted"], million["missed"]))
    add("the same: view and HTML of a dashboard", "%.1f ms" % million["frame"], "at most 100 ms")
    add("the same: view, text and HTML of all spans", "%.1f ms" % million["record"], "at most 100 ms")
    add("the same: view and JSON of all spans", "%.1f ms" % million["json"])
    add("the same: memory of the process before, after", "%.0f, %.0f MiB" % (million["before"], million["after"]),
        "bounded")
    add("the recorder while %.0f,000 a second are submitted" % (million["rate"] / 1000),
        "%.1f %% of a processor" % (100 * million["share"]))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200, help="of the recorder; of a live dashboard four fifths")
    parser.add_argument("--turn", type=float, default=0.1, help="seconds of a turn beside a live dashboard")
    parser.add_argument("--seconds", type=float, default=20, help="of the dashboard's own cost")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    alone = process(RECORDER.replace("ROUNDS", str(options.rounds)), STEADY)
    million = process(MILLION)
    with tempfile.TemporaryDirectory() as folder:
        beside, cost = in_kernel(options, pathlib.Path(folder))
    rows = rows_of(alone, beside, cost, million)
    print(report.terminal(rows))
    if options.write:
        head = "%d processors, Python %s, load average before: %.2f." % (
            os.cpu_count(), sys.version.split()[0], load)
        report.write("dashboard", head + "\n\n" + report.markdown(rows))


if __name__ == "__main__":
    main()
