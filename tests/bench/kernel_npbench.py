"""./dev bench kernels --npbench FOLDER: twelve kernels of npbench beside its own versions for NumPy and numba.

Sizes, data, and the versions of the others come from FOLDER, a checkout of github.com/spcl/npbench; ours are in
npbench_programs.py. A contestant computes a kernel in a process of its own, and contestants take turns. numba's time
is that of the fastest of npbench's versions for its nopython mode, with fastmath, that gives the right values: all of
them run in the first round, the fastest in the others. The first run is not among the times. Inputs are copied before
each run, outside of the clock. The results of the first run and of the last one are compared with those of NumPy.
"""
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy

SIZES = ("S", "M")
NUMBAS = ("n", "np", "npr")  # npbench's names: nopython; with parallel=True; with prange() as well
PATIENCE = 600  # seconds for one process
BEST_OF, FEWEST, MOST = 0.6, 2, 200  # seconds and runs of one size in one process
LONG = 2  # seconds of a first run, behind which there is one more
RTOL, ATOL, NORM = 1e-5, 1e-8, 1e-5  # as npbench compares


# --- A kernel of the checkout -------------------------------------------------------------------------------

class Kernel:
    """What npbench knows of one of its kernels."""

    def __init__(self, folder, name):
        self.info = json.loads((folder / "bench_info" / (name + ".json")).read_text(encoding="utf-8"))["benchmark"]
        self.home = folder / "npbench" / "benchmarks" / self.info["relative_path"]

    def module(self, ending=""):
        name = self.info["module_name"] + ending
        spec = importlib.util.spec_from_file_location(name, self.home / (name + ".py"))
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    def has(self, version):
        return (self.home / ("%s_%s.py" % (self.info["module_name"], version))).is_file()

    def function(self, version):
        return getattr(self.module("_" + version), self.info["func_name"])

    def data(self, size):
        """{name: value} of everything that the kernel of a size is given."""
        values, init = dict(self.info["parameters"][size]), self.info.get("init")
        if init:
            made = getattr(self.module(), init["func_name"])(*(values[one] for one in init["input_args"]))
            values.update(zip(init["output_args"], made if isinstance(made, tuple) else [made]))
        return values

    def arguments(self, values):
        """The arguments of one run."""
        return {name: values[name].copy() if name in self.info["array_args"] else values[name]
                for name in self.info["input_args"]}

    def results(self, returned, arguments):
        """What is compared: what the kernel has returned, and the arrays that it has written."""
        found = [] if returned is None else list(returned) if isinstance(returned, tuple) else [returned]
        return [numpy.asarray(one) for one in (*found, *(arguments[name] for name in self.info["output_args"]))]


# --- One contestant, in a process of its own ---------------------------------------------------------------

def contestant(kernel, name, version):
    """(function, what waits until it is as fast as it gets)."""
    if version == "numpy" or version.startswith("numba_"):
        return kernel.function(version), lambda: None
    import drupe
    import npbench_programs

    drupe.device(drupe.Device(version)).__enter__()
    made = npbench_programs.PROGRAMS[name]
    return made, lambda: settle(made)


def settle(made):
    """Wait for the better tier of a program's loops; the quick one is in the first run."""
    for loop in made._rewritten().loops:
        for kernel, _piece in loop.kernels.values():
            for variant in kernel.variants.values():
                while variant.tier == "quick" and getattr(variant, "problem", None) is None:
                    time.sleep(0.01)


def measure(kernel, size, function, ready, reference):
    """{first, best, error}: seconds, and how far from NumPy's results; NumPy's own are put into `reference`."""
    values, best, spent, count = kernel.data(size), math.inf, 0.0, 0

    def run():
        arguments = kernel.arguments(values)
        begun = time.perf_counter()
        returned = function(*arguments.values())
        took = time.perf_counter() - begun
        return took, kernel.results(returned, arguments)

    first, results = run()
    if not reference.exists():
        numpy.savez(reference, *results)
    expected = list(numpy.load(reference).values())
    worst = error(expected, results)
    ready()
    while count < (1 if first > LONG else FEWEST) or (spent < BEST_OF and count < MOST):
        took, results = run()
        best, spent, count = min(best, took), spent + took, count + 1
    worst = max(worst, error(expected, results))
    return {"first": first, "best": best, "error": worst[0], "norm": worst[1]}


def error(expected, results):
    """(how many times the allowed difference of an element, the relative difference by norms), the largest ones."""
    if [one.shape for one in expected] != [one.shape for one in results]:
        return math.inf, math.inf
    by_element, by_norm = 0.0, 0.0
    for right, value in zip(expected, results):
        same = right == value
        apart = numpy.where(same, 0, numpy.abs(value - right))
        by_element = max(by_element, (apart/(ATOL + RTOL*numpy.abs(right))).max())
        by_norm = max(by_norm, numpy.linalg.norm(apart)/(numpy.linalg.norm(right) or 1))
    return tuple(math.inf if math.isnan(one) else float(one) for one in (by_element, by_norm))


def child(folder, name, version, scratch):
    kernel = Kernel(pathlib.Path(folder), name)
    function, ready = contestant(kernel, name, version)
    print(json.dumps({size: measure(kernel, size, function, ready, pathlib.Path(scratch, size + ".npz"))
                      for size in SIZES}))


# --- The table ----------------------------------------------------------------------------------------------

def sample(folder, name, version, scratch):
    """{size: what measure() gives}; None where the contestant fails."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # the checkout stays as it is
    done = subprocess.run([sys.executable, __file__, folder, name, version, scratch], capture_output=True, text=True,
                          timeout=PATIENCE, env=environment, check=False)
    if done.returncode:
        print("%s, %s: %s" % (name, version, (done.stderr.strip() or "failed").splitlines()[-1]), file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


class Row:
    """The times of all contestants for one kernel: {(contestant, size): times}."""

    def __init__(self, folder, name, device):
        self.folder, self.name, self.device = folder, name, device
        self.kernel = Kernel(pathlib.Path(folder), name)
        self.found = {}

    def measure(self, rounds):
        numbas = ["numba_" + one for one in NUMBAS if self.kernel.has("numba_" + one)]
        with tempfile.TemporaryDirectory() as scratch:
            for _ in range(rounds):
                for version in ("numpy", *numbas, self.device):
                    self._add(version, sample(self.folder, self.name, version, scratch))
                numbas = sorted({self.numba(size) for size in SIZES} - {None})

    def _add(self, version, times):
        for size, new in (times or {}).items():
            old = self.found.setdefault((version, size), new)
            old.update({name: (max if name in ("error", "norm") else min)(old[name], new[name])
                        for name in ("best", "error", "norm")})

    def judged(self, times):
        """"" of wrong results, else by which of npbench's rules they are right: elements, or norms, where a kernel may
        say what it allows, as one whose bodies move chaotically does."""
        allowed = self.kernel.info.get("norm_error", NORM)
        if times["error"] <= 1:
            return "rtol 1e-5"
        return "norm %.1g, %g allowed" % (times["norm"], allowed) if times["norm"] < allowed else ""

    def numba(self, size):
        """The fastest of numba's versions that is right."""
        right = {version: times["best"] for (version, of), times in self.found.items()
                 if of == size and version.startswith("numba_") and self.judged(times)}
        return min(right, key=right.get) if right else None

    def times(self, version, size):
        return self.found.get((version, size), dict.fromkeys(("best", "first", "error", "norm"), math.inf))


def shown(row, size):
    """The texts of a row of the table, and NumPy's time / ours."""
    ours, numpys = row.times(row.device, size), row.times("numpy", size)
    version = row.numba(size)
    theirs = row.times(version, size)["best"]
    by_numpy, by_numba = numpys["best"]/ours["best"], theirs/ours["best"]
    valid = row.judged(ours)
    met = valid and (by_numba >= 1 or version is None)
    texts = ["%.4g" % (one*1e3) for one in (numpys["best"], theirs, ours["best"], ours["first"])]
    return [row.name, size, texts[0], texts[1] if version else "", version or "none is right", *texts[2:],
            "%.2f" % by_numpy, "%.2f" % by_numba if version else "", "1.0", valid or "wrong",
            "met" if met else "missed"], by_numpy


def table(folder, device, rounds, names=None):
    """The rows of the table; `names`: kernels, all if there are none."""
    import npbench_programs

    folder = str(pathlib.Path(folder).resolve())
    rows = [["npbench", "size", "NumPy, ms", "numba, ms", "numba's version", device + ", ms", "first, ms",
             "NumPy's time / ours", "numba's time / ours", "goal", "results", ""]]
    ratios = []
    for name in names or npbench_programs.PROGRAMS:
        print("npbench:", name, "...", file=sys.stderr)
        row = Row(folder, name, device)
        row.measure(rounds)
        for size in SIZES:
            texts, ratio = shown(row, size)
            rows.append(texts)
            ratios.append(ratio)
    mean = math.exp(sum(map(math.log, ratios))/len(ratios))
    rows.append(["geometric mean", *[""]*6, "%.2f" % mean, "", "3", "", "met" if mean >= 3 else "missed"])
    return rows


if __name__ == "__main__":
    child(*sys.argv[1:])
