"""Kernels for GPUs, beside a copy of the same array and, where it is installed, CuPy:

    .venv/bin/python tests/bench/kernels_gpu.py [--device opencl:gpu] [--only TEXT] [--mib 1024]

GB/s count what has to be read and written at least; "/ copy" is that beside the copy's. Matrix
products count two operations to a multiplication. Nothing is fused: a result that is replaced before anybody needs it
would never be computed."""
import argparse
import importlib
import importlib.util
import os
import statistics
import time

os.environ["DRUPE_FUSE"] = "0"  # before drupe is imported

import drupe
import drupe.array as da
import numpy as np


def rows(mib):
    """(title, arrays by name, statement, CuPy's if it is another one, bytes that have to move)."""
    for dtype in ("float32", "float64"):
        size, whole = np.dtype(dtype).itemsize, mib << 20
        side = int((whole / size) ** 0.5)
        square = {"x": ((side, side), dtype)}
        yield f"copy {dtype}", square, "xp.copy(x)", None, 2 * whole
        for name in ("sum", "max"):
            for axis in ("None", "0", "1"):
                yield f"{name} {dtype} axis {axis}", square, f"xp.{name}(x, axis={axis})", None, whole
        for length in (4, 16, 100, 1000):
            short = {"x": ((whole // size // length, length), dtype)}
            yield f"sum {dtype} rows of {length}", short, "xp.sum(x, axis=1)", None, whole
        yield f"sum {dtype} columns of 8", {"x": ((whole // size // 8, 8), dtype)}, "xp.sum(x, axis=0)", None, whole
        yield f"argmax {dtype}", square, "xp.argmax(x)", None, whole
        yield f"argmax {dtype} axis 0", square, "xp.argmax(x, axis=0)", None, whole
        yield f"argmax {dtype} axis 1", square, "xp.argmax(x, axis=1)", None, whole
        n = 10**7
        flat, index = {"x": ((n,), dtype)}, {"x": ((n,), dtype), "i": ((n,), "index")}
        yield f"x[i] {dtype} 1e7", index, "x[i]", None, n * (8 + 2 * size)
        yield f"x[i] = y {dtype} 1e7", {**index, "y": ((n,), dtype)}, "x.__setitem__(i, y)", None, n * (8 + 2 * size)
        yield f"x[mask] {dtype} 1e7", {**flat, "m": ((n,), "mask")}, "x[m]", None, n * (1 + size)
        yield f"nonzero {dtype} 1e7", {"m": ((n,), "mask")}, "xp.nonzero(m)", None, n * 5
        yield (f"cumulative_sum {dtype} 1e7", flat, "xp.cumulative_sum(x)", "xp.cumsum(x)", 2 * n * size)
        yield f"sort {dtype} 1e7", flat, "xp.sort(x)", None, 2 * n * size
        yield f"argsort {dtype} 1e7", flat, "xp.argsort(x)", None, n * (8 + size)
        yield f"unique {dtype} 1e7", flat, "xp.unique_values(x)", "xp.unique(x)", 2 * n * size
        searched = {"s": ((10**6,), "sorted " + dtype), **flat}
        yield f"searchsorted {dtype} 1e7 in 1e6", searched, "xp.searchsorted(s, x)", None, n * (8 + size)


def products():
    """(title, shapes by name, dtype, statement, operations)."""
    for dtype in ("float32", "float64", "complex64"):
        work = 8 if dtype == "complex64" else 2
        for n in (500, 1000, 2000, 4096):
            yield f"matmul {dtype} {n:,}^2", {"x": (n, n), "y": (n, n)}, dtype, "xp.matmul(x, y)", work * n**3
        n = 4096
        transposed = "xp.matmul(x, y.T)"
        yield f"matmul {dtype} {n:,}^2, transposed", {"x": (n, n), "y": (n, n)}, dtype, transposed, work * n**3
        yield f"matmul {dtype} {n:,}^2, vector", {"x": (n, n), "y": (n,)}, dtype, "xp.matmul(x, y)", work * n**2
        yield f"matmul {dtype} vector, {n:,}^2", {"x": (n,), "y": (n, n)}, dtype, "xp.matmul(x, y)", work * n**2
        shapes = {"x": (1000, 64, 64), "y": (1000, 64, 64)}
        yield f"matmul {dtype} 1,000 of 64^2", shapes, dtype, "xp.matmul(x, y)", work * 1000 * 64**3
        shapes = {"x": (100, 10**6), "y": (10**6, 100)}
        yield f"matmul {dtype} 100^2 of 1e6", shapes, dtype, "xp.matmul(x, y)", work * 100**2 * 10**6


def made(shape, kind):
    rng = np.random.default_rng(1)
    if kind == "index":
        return rng.integers(0, shape[0], shape)
    if kind == "mask":
        return rng.random(shape) > 0.5
    if kind.startswith("sorted"):
        return np.sort(rng.random(shape)).astype(kind.split()[1])
    n = int(np.prod(shape))
    return np.resize(rng.random(min(n, 10**6 + 3)).astype(kind), n).reshape(shape)


def measure(statement, names, wait, rounds=7):
    """Seconds of one run: the median of rounds that are long enough to be told apart."""
    code = compile("_ = " + statement, "row", "exec")

    def taken(count):
        begun = time.perf_counter()
        for _ in range(count):
            exec(code, names)
        wait()
        return (time.perf_counter() - begun) / count

    taken(1)
    count = max(2, min(200, int(0.05 / taken(1))))
    return statistics.median(taken(count) for _ in range(rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="opencl:gpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--mib", type=int, default=1024)
    options = parser.parse_args()
    cupy = importlib.import_module("cupy") if importlib.util.find_spec("cupy") else None
    device, copies = drupe.Device(options.device), {}
    print(device)

    def compare(values, statement, theirs=None):
        """Seconds of ours, and a text of CuPy's where it is installed."""
        ours = {name: da.asarray(value, device=device) for name, value in values.items()}
        seconds = measure(statement, {"xp": da, **ours}, next(iter(ours.values())).queue.wait)
        del ours
        if not cupy:
            return seconds, ""
        names = {"xp": cupy, **{name: cupy.asarray(value) for name, value in values.items()}}
        other = measure(theirs or statement, names, cupy.cuda.Device().synchronize)
        del names
        cupy.get_default_memory_pool().free_all_blocks()
        return seconds, f"   CuPy {other * 1e3:9.3f} ms: {other / seconds:5.2f} times as fast"

    for title, shapes, dtype, statement, operations in products():
        if options.only not in title:
            continue
        seconds, beside = compare({name: made(shape, dtype) for name, shape in shapes.items()}, statement)
        print(f"{title:32s} {seconds * 1e3:9.3f} ms {operations / seconds / 1e12:8.2f} TFLOP/s{beside}", flush=True)
    for title, wanted, statement, theirs, moved in rows(options.mib):
        if options.only not in title and not title.startswith("copy"):
            continue
        values = {name: made(*what) for name, what in wanted.items()}
        seconds, beside = compare(values, statement, theirs)
        rate = moved / seconds / 1e9
        dtype = "float64" if "float64" in title else "float32"
        copies.setdefault(dtype, rate)
        line = f"{title:32s} {seconds * 1e3:9.3f} ms {rate:8.0f} GB/s {rate / copies[dtype]:6.2f} / copy{beside}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
