"""./dev bench arrays: operations on arrays beside NumPy and SciPy, on a GPU beside CuPy, in the same process and turns.

Each row is one statement, run with `xp` (the library), `linalg`, `fft`, and the names that its preparation makes.
Values are compared before anything is timed. A statement is repeated until a sample takes a fiftieth of a second, the
contestants take turns, and what counts is the median of the samples' ratios. A device's statement has ended when its
queue has: the rows called "submitted" alone leave that out. Nothing is fused (DRUPE_FUSE=0): a result that is
replaced before anybody needs it would never be computed. --write puts the tables into RESULTS.md.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import report as page

os.environ["DRUPE_FUSE"] = "0"  # before drupe is imported

SAMPLE = 0.02  # seconds that a sample takes at least

# title, what makes its names (of NumPy; arrays go to the device), the statement, the goal: NumPy's time over ours
X7 = "x = rng.normal(size=10**7); y = rng.normal(size=10**7)"
ROWS = [
    ("x + y, 1 element, submitted", "x = rng.normal(size=1); y = x.copy()", "x + y", "0.6 us"),
    ("x + y, 1 element", "x = rng.normal(size=1); y = x.copy()", "x + y", 1 / 3),
    ("x + y, 1,000 elements", "x = rng.normal(size=1000); y = x.copy()", "x + y", 1 / 1.5),
    ("x + y, 1e5 float64", "x = rng.normal(size=10**5); y = x.copy()", "x + y", 1.0),
    ("x + y, 1e7 float64", X7, "x + y", 1.6),
    ("x * y, 1e7 float32", "x = rng.normal(size=10**7).astype('f4'); y = x.copy()", "x * y", 1.6),
    ("xp.sqrt(x), 1e7 float64", "x = rng.random(10**7)", "xp.sqrt(x)", 1.6),
    ("xp.exp(x), 1e7 float64", X7, "xp.exp(x)", 1.6),
    *[(f"xp.{name}(x), {text}", f"x = rng.normal(size={shape})", f"xp.{name}(x{axis})", 1.5)
      for name in ("sum", "mean", "max", "min", "argmax")
      for text, shape, axis in (("1e7", "10**7", ""), ("axis 0 of 4,000 x 2,500", "(4000, 2500)", ", axis=0"),
                                ("axis 1 of 4,000 x 2,500", "(4000, 2500)", ", axis=1"),
                                ("rows of 3", "(3000000, 3)", ", axis=1"))],
    ("xp.any(x), 1e7 bool, none", "x = numpy.zeros(10**7, bool)", "xp.any(x)", 1.5),
    ("xp.any(x), 1e7 bool, the first", "x = numpy.zeros(10**7, bool); x[0] = True", "xp.any(x)", 1.0),
    ("xp.all(x), 1e7 bool, all", "x = numpy.ones(10**7, bool)", "xp.all(x)", 1.5),
    ("argsort, stable, 1e7 float64", X7, "xp.argsort(x, stable=True)", 1.5),
    ("sort, 1e7 float64", X7, "xp.sort(x)", 1.5),
    ("sort, 1e7 int64", "x = rng.integers(0, 10**9, 10**7)", "xp.sort(x)", 1.5),
    ("unique, 1e7 int64", "x = rng.integers(0, 10**6, 10**7)", "xp.unique_values(x)", 1.5),
    ("x[mask], 1e7 float64", X7 + "; m = x > 0", "x[m]", 1.2),
    ("take, 1e7 float64", X7 + "; i = rng.integers(0, 10**7, 10**7)", "xp.take(x, i)", 1.2),
    ("cumulative_sum, 1e7 float64", X7, "xp.cumulative_sum(x)", 1.2),
    ("searchsorted, 1e6 in 1e6", "x = numpy.sort(rng.normal(size=10**6)); y = rng.normal(size=10**6)",
     "xp.searchsorted(x, y)", 1.2),
    ("matmul 500^2", "x = rng.normal(size=(500, 500)); y = x.copy()", "x @ y", 0.97),
    ("matmul 2,000^2", "x = rng.normal(size=(2000, 2000)); y = x.copy()", "x @ y", 0.97),
    ("solve 1,000^2", "x = rng.normal(size=(1000, 1000)); y = rng.normal(size=(1000, 1000))", "linalg.solve(x, y)",
     0.97),
    ("svd 1,000^2", "x = rng.normal(size=(1000, 1000))", "linalg.svd(x)", 0.97),
    ("eigh 1,000^2", "x = rng.normal(size=(1000, 1000)); x = x + x.T", "linalg.eigh(x)", 0.97),
    ("fft 2^20, SciPy's", "x = rng.normal(size=2**20) + 0j", "fft.fft(x)", 1.0),
    ("fft2 2,048^2, SciPy's", "x = rng.normal(size=(2048, 2048)) + 0j", "fft.fftn(x)", 1.0),
    ("transposed copy 2,048^2", "x = rng.normal(size=(2048, 2048))", "xp.asarray(x.T, copy=True, **order)", 2.0),
]
# On an OpenCL CPU device: 4e6 elements, none slower than NumPy by half as much again.
SIMPLE = "abs negative square sqrt exp log sin cos tanh floor isnan logical_not sign expm1 log1p atan".split()
PAIRS = "add subtract multiply divide equal less maximum pow atan2 logical_and hypot floor_divide remainder".split()
OPENCL = [(f"xp.{name}(x), 4e6 float64", "x = rng.random(4*10**6) + 0.5", f"xp.{name}(x)", 1 / 1.5) for name in SIMPLE]
OPENCL += [(f"xp.{name}(x, y), 4e6 float64", "x = rng.random(4*10**6) + 0.5; y = rng.random(4*10**6) + 0.5",
            f"xp.{name}(x, y)", 1 / 1.5) for name in PAIRS]
OPENCL += [(f"xp.{name}(x{axis}), 2,000^2 float64", "x = rng.normal(size=(2000, 2000))", f"xp.{name}(x{axis})",
            1 / 1.5) for name in ("sum", "max", "mean") for axis in ("", ", axis=0", ", axis=1")]
GPU = [(f"xp.{name}(x{axis}), 1 GiB {dtype}, {text}", (shape, dtype), f"xp.{name}(x{axis})", 1.0)
       for name in ("sum", "max") for dtype in ("float32", "float64")
       for text, shape, axis in (("all", (1 << 18, 1024), ""), ("axis 0", (1 << 18, 1024), ", axis=0"),
                                 ("axis 1", (1 << 18, 1024), ", axis=1"))]
# What a first hour calls, once each, with nothing in any cache.
FIFTY = """x+y; x-y; x*y; x/y; x**2; -x; abs(x); x>y; x==y; x<0.5; xp.sqrt(x); xp.exp(x); xp.log(x); xp.sin(x)
xp.cos(x); xp.tanh(x); xp.maximum(x,y); xp.where(x>y,x,y); xp.clip(x,0.1,0.9); xp.floor(x); xp.isnan(x); x.sum()
x.mean(); x.max(); x.min(); x.std(); xp.argmax(x); xp.cumulative_sum(x); xp.sort(x); xp.argsort(x)
xp.unique_values(i); x[m]; x[i]; x[2:9]; x[::2]+1; x.reshape(10,-1).sum(axis=0); x.reshape(10,-1).T.copy()
xp.concat([x,y]); xp.stack([x,y]); xp.zeros(9); xp.arange(9); xp.linspace(0,1,9); x.astype('float32'); i//3; i%7
x@y; xp.outer(x[:9],y[:9]); x.all(); xp.any(m); xp.diff(x)"""


# --- contestants --------------------------------------------------------------------------------------------


class Numpy:
    """NumPy, with SciPy's transforms, or CuPy."""

    def __init__(self, module="numpy"):
        import importlib
        self.xp = importlib.import_module(module)
        self.linalg = self.xp.linalg
        try:
            self.fft = importlib.import_module("scipy.fft" if module == "numpy" else "cupy.fft")
        except ImportError:
            self.fft = self.xp.fft
        self.order = {"order": "C"}
        self.wait = self.xp.cuda.Device().synchronize if module == "cupy" else lambda: None

    def array(self, value):
        return value

    def host(self, value):
        return value.get() if hasattr(value, "get") else value


class Drupe:
    def __init__(self, where):
        import drupe
        import drupe.array
        self.device = drupe.Device(where)
        self.xp = drupe.array
        self.linalg, self.fft = getattr(self.xp, "linalg", None), getattr(self.xp, "fft", None)
        self.order = {}
        self.wait = self.xp.zeros(1, device=self.device).queue.wait

    def array(self, value):
        return self.xp.asarray(value, device=self.device)

    def host(self, value):
        return value.asnumpy() if isinstance(value, self.xp.Array) else value


def names_of(contestant, prepared):
    arrays = {name: contestant.array(value) for name, value in prepared.items()}
    contestant.wait()
    return {"xp": contestant.xp, "linalg": contestant.linalg, "fft": contestant.fft, "order": contestant.order,
            **arrays}


def prepare(text):
    import numpy
    names = {"numpy": numpy, "rng": numpy.random.default_rng(7)}
    exec(text, names)
    return {name: value for name, value in names.items() if isinstance(value, numpy.ndarray)}


def flat(contestant, value):
    """The arrays of a result, as NumPy's."""
    parts = value if isinstance(value, tuple) else (value,)
    return [contestant.host(part) for part in parts]


def same(title, ours, theirs):
    import numpy
    if title.startswith(("svd", "eigh")):  # whose vectors have signs of their own
        ours, theirs = [ours[title.startswith("svd")]], [theirs[title.startswith("svd")]]
    for a, b in zip(ours, theirs):
        if not numpy.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True):
            raise SystemExit(f"{title}: the results differ")


def sample(code, names, wait, count):
    begun = time.perf_counter()
    for _ in range(count):
        exec(code, names)
    if wait:
        wait()
    return (time.perf_counter() - begun) / count


def repeats(code, names, wait):
    """How many times fill a sample, by ever more of them: a few calls from cold say nothing about those that follow."""
    count = 1
    while count < 100000:
        whole = sample(code, names, wait, count) * count
        if whole >= SAMPLE / 2:
            return max(1, round(count * SAMPLE / whole))
        count = min(100000, count * 10, int(count * SAMPLE / whole) + 1)
    return count


def compiled(statement):
    return compile("_ = " + statement, "row", "exec")


def measure(row, ours, theirs, rounds):
    """(seconds of ours, of theirs, the median of their ratios); None for what is not there."""
    title, text, statement, _ = row
    submitted = title.endswith("submitted")
    prepared = {} if isinstance(text, tuple) else prepare(text)
    all_names, counts = [], []
    code, plain = compiled(statement), compiled(statement.replace(", stable=True", ", kind='stable'")
                                                .replace("xp.unique_values", "xp.unique")
                                                .replace("xp.cumulative_sum", "xp.cumsum"))
    pairs = [(one, code if isinstance(one, Drupe) else plain) for one in (ours, theirs)]
    for one, each in pairs:
        names = names_of(one, prepared)
        if isinstance(text, tuple):
            where = {"device": one.device} if isinstance(one, Drupe) else {}
            names["x"] = one.xp.full(text[0], 0.5, dtype=text[1], **where)
        exec(each, names)
        one.wait()
        all_names.append(names)
        counts.append(repeats(each, names, one.wait))
    same(title, flat(ours, all_names[0]["_"]), flat(theirs, all_names[1]["_"]))
    found = [[], []]
    for number in range(rounds):
        for k in (0, 1) if number % 2 else (1, 0):
            one, each = pairs[k]
            found[k].append(sample(each, all_names[k], None if submitted else one.wait, counts[k]))
            one.wait()
    ratios = [b / a for a, b in zip(*found)]
    return statistics.median(found[0]), statistics.median(found[1]), statistics.median(ratios)


def table(rows, where, peer, rounds):
    ours, theirs = Drupe(where), Numpy(peer)
    out = [["statement", where + ", ms", peer + ", ms", "times as fast", "goal", ""]]
    for row in rows:
        try:
            taken, other, ratio = measure(row, ours, theirs, rounds)
        except (AttributeError, TypeError, NotImplementedError) as error:
            out.append([row[0], "not there", "", "", "", str(error)[:60]])
            continue
        goal = row[3]
        if isinstance(goal, str):
            met, goal = taken * 1e6 <= float(goal.split()[0]), "<= " + goal
        else:
            met, goal = ratio >= goal, "%.2f" % goal
        out.append([row[0], "%.4g" % (taken * 1e3), "%.4g" % (other * 1e3), "%.2f" % ratio, goal,
                    "met" if met else "missed"])
    return out


# --- first uses ---------------------------------------------------------------------------------------------


def first_uses(where):
    """In a process of its own with empty caches: how long each of the fifty calls takes the first time."""
    import numpy
    one = Drupe(where)
    rng = numpy.random.default_rng(3)
    names = names_of(one, {"x": rng.random(1000), "y": rng.random(1000), "m": rng.random(1000) > 0.5,
                           "i": rng.integers(0, 1000, 1000)})
    times = []
    for statement in FIFTY.replace("\n", "; ").split("; "):
        begun = time.perf_counter()
        exec(compiled(statement), names)
        one.wait()
        times.append((time.perf_counter() - begun, statement))
    print(json.dumps(times))


def fresh_uses(where):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "DRUPE_CACHE_DIR": folder + "/d", "POCL_CACHE_DIR": folder + "/p"}
        done = subprocess.run([sys.executable, __file__, "--first", where], capture_output=True, text=True,
                              env=environment, timeout=600)
    if done.returncode:
        raise SystemExit(done.stderr)
    times = sorted(json.loads(done.stdout.splitlines()[-1]), reverse=True)
    total = sum(taken for taken, _ in times)
    rows = [["first use, nothing cached, " + where, "ms", "goal", ""],
            *([f"{place}: {statement}", "%.1f" % (taken * 1e3), "30", "met" if taken <= 0.03 else "missed"]
              for place, (taken, statement) in zip(("the slowest", "the next"), times)),
            ["all %d" % len(times), "%.0f" % (total * 1e3), "2000", "met" if total <= 2 else "missed"]]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="host", help="host, opencl:cpu or opencl:gpu")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each contestant")
    parser.add_argument("--only", default="", help="rows with this text in their title")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parser.add_argument("--first", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first:
        return first_uses(options.first)
    # Set on some machines for old libraries: NumPy's own chooses well by itself.
    if os.environ.pop("OPENBLAS_CORETYPE", None) or os.environ.pop("OPENBLAS_L2_SIZE", None):
        os.execv(sys.executable, [sys.executable, *sys.argv])
    gpu = "gpu" in options.device
    rows = GPU if gpu else ROWS if options.device == "host" else OPENCL
    rows = [row for row in rows if options.only in row[0]]
    load = os.getloadavg()[0]
    tables = [table(rows, options.device, "cupy" if gpu else "numpy", options.rounds)] if rows else []
    if not options.only and not gpu and options.device != "host":
        tables.append(fresh_uses(options.device))
    head = "%d processors, Python %s, numpy %s, %s, load average before: %.2f." % (
        len(os.sched_getaffinity(0)), platform.python_version(), __import__("numpy").__version__, options.device, load)
    print("\n\n".join([head, *(page.terminal(one) for one in tables)]))
    if options.write:
        page.write("arrays, " + options.device, "\n\n".join([head, *(page.markdown(one) for one in tables)]))
    return None


if __name__ == "__main__":
    main()
