"""The engine's tables: what was measured, as ratios to the peers, beside what is wanted."""
import statistics

from submit_cost import paired

TYPED, PLAIN = "pyopencl, typed kernel(...)", "pyopencl, plain kernel(...)"
PEER = "C, the same driver calls"


def tenth(times):
    """The first tenth: what it costs when nothing else has the processor."""
    return sorted(times)[len(times) // 10]


def tenths(ours, theirs):
    """The ratio of the first tenths: on a busy machine single turns are stretched at random, on a quiet one it is the
    same as the ratio of the medians."""
    return tenth(ours) / tenth(theirs)


class Report:
    def __init__(self, device, load, version):
        self.head = "%s, Python %s, load average before: %.2f." % (device, version, load)
        self.goals, self.figures = [], []

    def figure(self, name, times, peer=None):
        ratio = "%.2f" % tenths(times, peer) if peer else ""
        self.figures.append((name, statistics.median(times), tenth(times), ratio))

    def goal(self, name, value, unit, wanted, most=True, note=""):
        met = value <= wanted if most else value >= wanted
        self.goals.append((name, "%.3g %s" % (value, unit), "%s %g" % ("<=" if most else ">=", wanted),
                           "met" if met else "missed", note))

    def note(self, name, value, unit="x"):
        """What tells more about a goal, and is none."""
        self.goals.append((name, "%.3g %s" % (value, unit), "", "", ""))

    def submission(self, times):
        driver = times.get(PEER)
        for name, values in times.items():
            self.figure(name, values, driver or times.get(TYPED))
        name = next(name for name in times if "kernel(...) -> Event" in name and name.startswith("drupe"))
        if driver:
            above = [a - b for a, b in zip(times[name], driver)]
            self.goal("submission above the driver's own enqueue: kernel(...) - C", statistics.median(above) / 1000,
                      "us", 0.5)
        for peer, words, wanted in ((TYPED, "typed arguments", 0.4), (PLAIN, "plain scalars", 0.1)):
            theirs = times.get(peer)
            if theirs and driver:
                self.goal("the same / pyopencl's call, %s: (kernel(...) - C) / pyopencl" % words,
                          paired(above, theirs), "x", wanted)
                self.note("overhead to overhead, %s: (kernel(...) - C) / (pyopencl - C)" % words,
                          statistics.median(above) / statistics.median(a - b for a, b in zip(theirs, driver)))
                self.note("the driver's share of pyopencl's call, %s: C / pyopencl" % words, paired(driver, theirs))
            if theirs:
                self.note("whole call to whole call, %s: kernel(...) / pyopencl" % words, paired(times[name], theirs))

    def waiting(self, times):
        for name, values in times.items():
            self.figure("empty kernel and wait: " + name, values, times.get("C"))
        if "C" in times:
            self.goal("empty kernel and queue.wait() / C", tenths(times["drupe, opencl"], times["C"]), "x", 1.1)
        self.goal("host / OpenCL, the same", tenths(times["drupe, host"], times["drupe, opencl"]), "x", 0.3)

    def allocation(self, times):
        for name, values in times.items():
            self.figure("allocation and free, warm pool: " + name, values)
            self.goal("allocation and free from " + name, tenth(values) / 1000, "us", 0.5)

    def copies(self, times, size):
        for name, values in times.items():
            self.figure("copy of %d MiB: %s" % (size >> 20, name), values, times["memcpy"])
        for way in ("to device", "from device"):
            if "C, pinned, " + way in times:
                self.pinned(times, way, size)
            else:
                self.goal("copies, opencl, %s, of memcpy" % way, 1 / tenths(times["opencl, " + way], times["memcpy"]),
                          "x", 0.95, most=False)
            self.goal("copies, host, %s, of memcpy" % way, 1 / tenths(times["host, " + way], times["memcpy"]), "x",
                      0.95, most=False)

    def pinned(self, times, way, size):
        ratio = 1 / tenths(times["opencl, " + way], times["C, pinned, " + way])
        self.goal("copies of %d MiB, %s, of the driver's pinned rate" % (size >> 20, way), ratio, "x", 0.9, most=False)

    def pinned_copies(self, times, size):
        for way in ("to device", "from device"):
            for name in ("opencl, " + way, "C, pinned, " + way):
                self.figure("copy of %d MiB: %s" % (size >> 20, name), times[name], times["C, pinned, " + way])
            self.pinned(times, way, size)

    def costs(self, values, where):
        names = {"alloc_free": ("allocation and free, from C", 0.5),
                 "event_wait": ("barrier, event, wait, release, from C", 0.2),
                 "wait_finished": ("wait on a finished event, from C", 0.2)}
        for key, (name, wanted) in names.items():
            self.goal("%s, %s" % (name, where), float(values[key]) / 1000, "us", wanted)

    def tasks(self, rounds, where, wanted=None):
        rate = statistics.median(one["tasks_per_s"] for one in rounds) / 1e6
        unit = "M/s (%.0f ns of CPU each)" % statistics.median(one["cpu_ns"] for one in rounds)
        name = "random graph of tiny tasks, " + where
        if wanted:
            self.goal(name, rate, unit, wanted, most=False)
        else:
            self.note(name, rate, unit)
        assert all(one["wrong"] == 0 for one in rounds), "tasks ran before what they wait for"

    def trace(self, lines):
        for line in lines:
            name, text = line.split(":", 1)
            self.goal("trace ring, " + name, float(text.split("difference")[1].split()[0]), "ns", 80)

    def text(self):
        lines = [self.head, "", "| goal | measured | wanted | |", "|---|---|---|---|"]
        lines += ["| %s | %s | %s | %s |" % row[:4] for row in self.goals]
        lines += ["", "| ns | median (first tenth) | ratio to the peer, of the first tenths |", "|---|---|---|"]
        lines += ["| %s | %.0f (%.0f) | %s |" % row for row in self.figures]
        return "\n".join(lines) + "\n"
