"""./dev bench fusion: what a user writes in whole expressions and programs, beside NumPy; expressions beside compilers.

Each contestant computes in a process of its own, and the contestants of a row take turns. What counts is the best of
all their runs. Values are compared with NumPy's, and a run has ended when the device is done. "Unfused" is the same
with DRUPE_FUSE=0. First runs are told apart. Memory is the process's peak in the first run, above what it had before
the arrays were made. --write puts the tables into RESULTS.md.
"""
import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile

import numpy

import expressions
import fusion_calls
import fusion_child
import loops
import report as page
import whole

PATIENCE = 600  # seconds for one process
ARRAY = 8 * 10**6  # bytes of an array of the loop
TOLERANCE = {"expressions": 1e-5, "jacobi": 1e-9, "loop": 1e-9, "small": 0, "libraries": 1e-6}
JACOBI = "Jacobi by slices, 2,000 x 2,000, 20 rounds"
LOOP = "x = x*0.5+1, 1,000 rounds, 1e6, printed each tenth"
TITLES = {"Jacobi": JACOBI, "loop": LOOP}


class Differ(Exception):
    pass


def environment(contestant):
    """Of a contestant's process."""
    mine = dict(os.environ)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # set for old libraries: NumPy's own chooses well by itself
        mine.pop(name, None)
    mine.pop("DRUPE_FUSE", None)
    if contestant.endswith(" unfused"):
        mine["DRUPE_FUSE"] = "0"
    if contestant.partition(" ")[0] not in expressions.PEERS:
        mine["SCIPY_ARRAY_API"] = "1"
    return mine


def sample(job, contestant, wanted, small):
    """({title: figures}, {name: values}) of one process; None if it failed, which is told."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, fusion_child.__file__, job, contestant, folder, wanted, "small" if small else ""]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False,
                                  env=environment(contestant))
        except subprocess.TimeoutExpired:
            print("%s %s on %s: not done after %d s" % (job, wanted, contestant, PATIENCE), file=sys.stderr)
            return None
        if done.returncode:
            problem = (done.stderr.strip() or "ended with %d" % done.returncode).splitlines()[-1]
            print("%s %s on %s: %s" % (job, wanted, contestant, problem), file=sys.stderr)
            return None
        with numpy.load(os.path.join(folder, "values.npz")) as file:
            return json.loads(done.stdout.splitlines()[-1]), dict(file)


def compare(expected, found, tolerance, who):
    for name in expected.keys() & found.keys():
        a, b = expected[name], found[name]
        if a.shape != b.shape or not numpy.allclose(a, b, rtol=tolerance, atol=tolerance * max(1, abs(a).max()),
                                                    equal_nan=True):
            raise Differ("%s: the values of %s are not NumPy's" % (name, who))


def turns(job, contestants, wanted, rounds, small, tolerance):
    """{title: {contestant: {figure: the best}}}; the contestants alternate."""
    found, expected = {}, None
    for number in range(rounds):
        for contestant in contestants if number % 2 == 0 or expected is None else reversed(contestants):
            taken = sample(job, contestant, wanted, small)
            if taken is None:
                continue
            figures, values = taken
            if contestant == "numpy" and expected is None:
                expected = values
            elif expected is not None and not (small and tolerance > 1e-3):  # chance needs many draws
                compare(expected, values, tolerance, contestant)
            for title, one in figures.items():
                best = found.setdefault(title, {}).setdefault(contestant, one)
                for figure in one:
                    best[figure] = min(best[figure], one[figure])
    return found


# --- tables -------------------------------------------------------------------------------------------------


def shown(seconds):
    return "%.4g" % (seconds * 1e3)


def ratio(one, other, contestants, figure="seconds"):
    if one not in contestants or other not in contestants or not contestants[other][figure]:
        return None
    return contestants[one][figure] / contestants[other][figure]


def text_of(value, form="%.2f"):
    return "" if value is None else form % value


def met(good):
    return "met" if good else "missed"


def mean_of(values):
    return math.exp(sum(math.log(one) for one in values) / len(values))


def expression_table(found, where):
    """Each expression on all contestants: the goal is four times NumPy and the fastest of the compilers."""
    names = [*expressions.PEERS, where, where + " unfused"]
    rows = [["expression, 1e7", *(name + ", ms" for name in names), "/ numpy", "/ the fastest peer", "goal", ""]]
    for title, of in found.items():
        peers = [of[name]["seconds"] for name in expressions.PEERS if name in of]
        theirs = [of[name]["seconds"] for name in expressions.PEERS if name in of and not name.startswith("numpy")]
        if where not in of:
            continue
        times = ratio("numpy", where, of)
        against = min(theirs or peers) / of[where]["seconds"]
        rows.append([title, *(shown(of[name]["seconds"]) if name in of else "" for name in names), text_of(times),
                     text_of(against), "4, 1.0", met(times and times >= 4 and against >= 1)])
    return rows


def beside_numpy(found, where, kept):
    """(title, its figures, times as fast as NumPy, what fusion brings) of what both have; `kept` gets the last two."""
    for title, of in found.items():
        if where not in of or "numpy" not in of:
            continue
        times, brings = ratio("numpy", where, of), ratio(where + " unfused", where, of)
        kept["times"].append(times)
        kept["brings"].append(brings or 1)
        yield title, of, times, brings


def program_table(found, where, goals):
    """Programs beside NumPy: how many times as fast, what fusion brings, and the memory. `goals`: {title: (times,
    the most memory as a function of NumPy's)}, where None is no goal."""
    rows = [["program", "numpy, ms", where + ", ms", "times as fast", "first, ms", "unfused, ms", "fusion brings",
             "numpy's peak, MB", "peak, MB", "goal", ""]]
    kept = {"times": [], "brings": []}
    for title, of, times, brings in beside_numpy(found, where, kept):
        goal, most = goals(title)
        room = most(of["numpy"]["peak"]) if most else math.inf
        good = met(times >= goal and of[where]["peak"] <= room) if goal else ""
        rows.append([TITLES.get(title, title), shown(of["numpy"]["seconds"]), shown(of[where]["seconds"]),
                     text_of(times), shown(of[where]["first"]), shown(of[where + " unfused"]["seconds"])
                     if where + " unfused" in of else "", text_of(brings), text_of(of["numpy"]["peak"] / 1e6, "%.1f"),
                     text_of(of[where]["peak"] / 1e6, "%.1f"),
                     "" if not goal else "%g" % goal if room == math.inf else "%g, %.1f MB" % (goal, room / 1e6), good])
    return rows, kept


def mean_row(kept, width, goal, label):
    """The geometric means under a table."""
    if not kept["times"]:
        return []
    times = mean_of(kept["times"])
    row = [label, "", "", text_of(times), "", "", text_of(mean_of(kept["brings"]))]
    return [row + [""] * (width - len(row) - 2) + ["%g" % goal, met(times >= goal)]]


def simple_table(found, where, head, factor, goal):
    """Rows without memory: the libraries' functions, and small additions."""
    rows = [[head[0], "numpy, " + head[1], "%s, %s" % (where, head[1]), "times as fast", "first, " + head[1],
             "unfused, " + head[1], "fusion brings", "goal", ""]]
    kept = {"times": [], "brings": []}
    for title, of, times, brings in beside_numpy(found, where, kept):
        unfused = of.get(where + " unfused")
        wanted = goal(title)
        rows.append([title, *("%.4g" % (of[name]["seconds"] * factor) for name in ("numpy", where)), text_of(times),
                     "%.4g" % (of[where]["first"] * factor), "%.4g" % (unfused["seconds"] * factor) if unfused else "",
                     text_of(brings), text_of(wanted), met(times >= wanted) if wanted else ""])
    return rows, kept


# --- all of them --------------------------------------------------------------------------------------------


class Run:
    def __init__(self, options):
        self.where, self.only, self.rounds, self.small = options.device, options.only, options.rounds, options.small
        self.sections = options.sections.split(",") if options.sections else list(fusion_child.JOBS)
        self.host = options.device == "host"
        self.tables = []

    def turns(self, job, titles, contestants=None, wanted=None, tolerance=None):
        if job not in self.sections or not any(self.only in title for title in titles):
            return {}
        contestants = contestants or ["numpy", self.where, self.where + " unfused"]
        print("%s %s ..." % (job, wanted or ""), file=sys.stderr)
        return turns(job, contestants, self.only if wanted is None else wanted, self.rounds, self.small,
                     TOLERANCE[job] if tolerance is None else tolerance)

    def expressions(self):
        titles = [title + ", " + dtype for title in expressions.EXPRESSIONS for dtype in ("float64", "float32")]
        peers = [name for name in expressions.PEERS
                 if loops.can("import importlib, sys; importlib.import_module(sys.argv[1])", name.partition(" ")[0])]
        found = self.turns("expressions", titles, [*peers, self.where, self.where + " unfused"])
        if found:
            self.tables.append(expression_table(found, self.where))

    def programs(self):
        """The two loops and the twenty programs."""
        found = {**self.turns("jacobi", [JACOBI], wanted="Jacobi"), **self.turns("loop", [LOOP], wanted="loop")}
        if found:
            goals = {"Jacobi": (3, None), "loop": (3, lambda peak: peak + 2 * ARRAY)}
            self.tables.append(program_table(found, self.where, goals.get)[0])
        found = {}
        for title, (*_, tolerance) in whole.PROGRAMS.items():
            found |= self.turns("programs", [title], wanted=title, tolerance=tolerance)
        if found:
            goal = 1.0 if self.host else 0.7
            rows, kept = program_table(found, self.where, lambda _: (goal, lambda peak: 1.2 * peak))
            self.tables.append(rows + mean_row(kept, len(rows[0]), 2, "geometric mean of %d" % len(kept["times"])))

    def others(self):
        found = self.turns("small", ["x + y, %d element%s" % (size, "s" * (size > 1)) for size in fusion_child.SIZES])
        if found:
            self.tables.append(simple_table(found, self.where, ("statement", "us"), 1e6, lambda _: None)[0])
        found = self.turns("libraries", fusion_calls.titles())
        if found:
            rows, kept = simple_table(found, self.where, ("function, 1e6 elements", "ms"), 1e3, lambda _: None)
            self.tables.append(rows + mean_row(kept, len(rows[0]), 1.5, "geometric mean of %d" % len(kept["times"])))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="host", help="host or opencl:cpu")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each contestant of a row")
    parser.add_argument("--only", default="", help="rows with this text in their title")
    parser.add_argument("--sections", default="", help="of %s, with commas" % ", ".join(fusion_child.JOBS))
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: the processor time of all threads, where others use the machine, too")
    parser.add_argument("--small", action="store_true", help="small arrays, to see whether it runs")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    options = parser.parse_args()
    os.environ["DRUPE_BENCH_CLOCK"] = options.clock
    load = os.getloadavg()[0]
    run = Run(options)
    try:
        run.expressions()
        run.programs()
        run.others()
    except Differ as problem:
        raise SystemExit(str(problem)) from None
    head = loops.head_line(", " + options.device + (", processor time" if options.clock == "cpu" else ""), load)
    print("\n\n".join([head, *(page.terminal(one) for one in run.tables)]))
    if options.write:
        page.write("fusion, " + options.device, "\n\n".join([head, *(page.markdown(one) for one in run.tables)]))


if __name__ == "__main__":
    main()
