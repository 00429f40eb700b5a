"""The loops of ./dev bench kernels, written as kernels of Drupe, for numba and for jax: the same loops, where a library
has them.

A row is a function of a contestant's Place that gives (compute, result): compute() does the work once and waits for it,
result() is what is compared.
"""
import math

import numpy

POINTS, DIMS = 3000, 3
OPTIONS = 10**7
BODIES = 4096
CLUSTERS, ROUNDS = 10, 10
SIZE = 10**7
BINS = 256
SIDE, TILE = 768, 16
LANES = 16  # sums that a work-item has under way


def inputs():
    """What all contestants compute from."""
    random = numpy.random.default_rng(17)
    return {"points": random.random((POINTS, DIMS)), "price": random.uniform(10, 50, OPTIONS),
            "strike": random.uniform(10, 50, OPTIONS), "time": random.uniform(1, 2, OPTIONS),
            "flat": random.random((10**6, 2)), "numbers": random.random(SIZE), "bodies": random.random((BODIES, 3)),
            "left": random.random((SIDE, SIDE), dtype="float32"), "right": random.random((SIDE, SIDE), dtype="float32"),
            "bins": random.integers(0, BINS, SIZE, dtype="int32"), "whole": random.integers(0, 9, SIZE)}


# --- Drupe -------------------------------------------------------------------------------------------------

class Drupe:
    """Kernels on one device."""

    def __init__(self, device, data):
        import drupe
        import drupe.array
        from drupe import kernel_api

        self.drupe, self.array, self.api = drupe, drupe.array, kernel_api
        self.default = drupe.device(drupe.Device(device))
        self.default.__enter__()
        self.data = data
        self.kernels = _kernels(drupe, kernel_api)
        self.queue = drupe.queue()

    def to(self, name):
        return self.array.asarray(self.data[name])

    def run(self, name, space, *args):
        self.drupe.call_kernel_async(self.kernels[name], space, [], *args)

    def pairwise(self):
        x, out = self.to("points"), self.array.empty((POINTS, POINTS))
        space = self.drupe.Range(POINTS, POINTS)
        return self._timed(lambda: self.run("pairwise", space, x, out)), out.asnumpy

    def black_scholes(self):
        args = [self.to(name) for name in ("price", "strike", "time")]
        call, put = self.array.empty(OPTIONS), self.array.empty(OPTIONS)
        space = self.drupe.Range(OPTIONS)
        return self._timed(lambda: self.run("black_scholes", space, *args, 0.1, 0.2, call, put)), \
            lambda: call.asnumpy() + put.asnumpy()

    def k_means(self):
        points = self.to("flat")
        n = points.shape[0]
        centres, sums = self.array.empty((CLUSTERS, 2)), self.array.zeros((CLUSTERS, 2))
        counts, owner = self.array.zeros(CLUSTERS, dtype="int32"), self.array.empty(n, dtype="int32")
        start = points[:CLUSTERS]
        groups = 64

        def compute():
            centres[...] = start
            for _ in range(ROUNDS):
                sums[...], counts[...] = 0, 0
                self.run("assign", self.drupe.Range(n), points, centres, owner)
                self.run("add_up", self.drupe.Range(groups), points, owner, sums, counts, groups)
                self.run("divide", self.drupe.Range(CLUSTERS), sums, counts, centres)
        return self._timed(compute), centres.asnumpy

    def sum(self):
        x, groups, local = self.to("numbers"), 64, 16
        parts, total = self.array.empty(groups), self.array.empty(1)
        space = self.drupe.NdRange(groups * local, local)
        part = self.api.LocalAccessor(local, numpy.float64)

        def compute():
            self.run("sum", space, x, parts, part)
            self.run("sum", self.drupe.NdRange(local, local), parts, total, part)
        return self._timed(compute), total.asnumpy

    def scan(self):
        x, out, blocks = self.to("whole"), self.array.empty(SIZE, dtype="int64"), 256
        sums = self.array.empty(blocks, dtype="int64")

        def compute():
            self.run("scan_sums", self.drupe.Range(blocks), x, sums, blocks)
            self.run("scan_few", self.drupe.Range(1), sums)
            self.run("scan_rest", self.drupe.Range(blocks), x, sums, out, blocks)
        return self._timed(compute), out.asnumpy

    def histogram(self):
        x, out = self.to("bins"), self.array.zeros(BINS, dtype="int32")

        def compute():
            out[...] = 0
            self.run("histogram", self.drupe.Range(64), x, out)
        return self._timed(compute), out.asnumpy

    def n_body(self):
        x, out = self.to("bodies"), self.array.empty((BODIES, 3))
        return self._timed(lambda: self.run("n_body", self.drupe.Range(BODIES), x, out)), out.asnumpy

    def matmul(self):
        a, b, c = self.to("left"), self.to("right"), self.array.empty((SIDE, SIDE), dtype="float32")
        space = self.drupe.NdRange((SIDE, SIDE), (TILE, TILE))
        tiles = [self.api.LocalAccessor((TILE, TILE), numpy.float32) for _ in range(2)]
        return self._timed(lambda: self.run("matmul", space, a, b, c, *tiles)), c.asnumpy

    def _timed(self, compute):
        def run():
            compute()
            self.queue.wait()
        return run


def _kernels(drupe, api):
    """The kernels by their names."""
    made = {}

    def kernel(function):
        made[function.__name__] = drupe.kernel(function)

    @kernel
    def pairwise(item, x, out):
        i, j = item.get_id(0), item.get_id(1)
        total = 0.0
        for k in range(x.shape[1]):
            d = x[i, k] - x[j, k]
            total += d * d
        out[i, j] = math.sqrt(total)

    @kernel
    def black_scholes(item, price, strike, time, rate, volatility, call, put):
        i = item.get_id(0)
        p, s, t = price[i], strike[i], time[i]
        spread = t * volatility * volatility * 2
        a, b = math.log(p / s), -rate * t
        y = 1 / math.sqrt(spread)
        w1, w2 = (a - b + 0.25 * spread) * y, (a - b - 0.25 * spread) * y
        d1, d2 = 0.5 + 0.5 * math.erf(w1), 0.5 + 0.5 * math.erf(w2)
        discounted = math.exp(b) * s
        call[i] = p * d1 - discounted * d2
        put[i] = call[i] - p + discounted

    @kernel
    def assign(item, points, centres, owner):
        i = item.get_id(0)
        best, nearest = math.inf, 0
        for c in range(centres.shape[0]):
            dx, dy = points[i, 0] - centres[c, 0], points[i, 1] - centres[c, 1]
            d = dx * dx + dy * dy
            if d < best:
                best, nearest = d, c
        owner[i] = nearest

    @kernel
    def add_up(item, points, owner, sums, counts, groups):
        n = points.shape[0]
        size = (n + groups - 1) // groups
        mine = api.PrivateArray((CLUSTERS, 2), numpy.float64, fill_zeros=True)
        many = api.PrivateArray(CLUSTERS, numpy.int32, fill_zeros=True)
        begin = item.get_id(0) * size
        for i in range(begin, min(begin + size, n)):
            c = owner[i]
            mine[c, 0] += points[i, 0]
            mine[c, 1] += points[i, 1]
            many[c] += 1
        for c in range(CLUSTERS):
            api.AtomicRef(sums, (c, 0)).fetch_add(mine[c, 0])
            api.AtomicRef(sums, (c, 1)).fetch_add(mine[c, 1])
            api.AtomicRef(counts, c).fetch_add(many[c])

    @kernel
    def divide(item, sums, counts, centres):
        c = item.get_id(0)
        if counts[c] > 0:
            centres[c, 0] = sums[c, 0] / counts[c]
            centres[c, 1] = sums[c, 1] / counts[c]

    @kernel
    def sum(item, x, out, part):
        mine, sums = item.get_local_id(0), api.PrivateArray(LANES, numpy.float64, fill_zeros=True)
        size = (x.size // LANES + item.get_global_range(0) - 1) // item.get_global_range(0)
        begin = item.get_global_id(0) * size
        for i in range(begin, min(begin + size, x.size // LANES)):
            for k in range(LANES):
                sums[k] += x[i * LANES + k]
        total = 0.0
        for k in range(LANES):
            total += sums[k]
        part[mine] = total
        step = item.get_local_range(0) // 2
        while step > 0:
            api.group_barrier(item.get_group())
            if mine < step:
                part[mine] += part[mine + step]
            step //= 2
        if mine == 0:
            out[item.get_group().get_group_id(0)] = part[0]

    @kernel
    def scan_sums(item, x, sums, blocks):
        block, size = item.get_id(0), (x.size + blocks - 1) // blocks
        total = 0
        for i in range(block * size, min((block + 1) * size, x.size)):
            total += x[i]
        sums[block] = total

    @kernel
    def scan_few(item, sums):
        total = 0
        for i in range(sums.size):
            here = sums[i]
            sums[i] = total
            total += here

    @kernel
    def scan_rest(item, x, sums, out, blocks):
        block, size = item.get_id(0), (x.size + blocks - 1) // blocks
        total = sums[block]
        for i in range(block * size, min((block + 1) * size, x.size)):
            total += x[i]
            out[i] = total

    @kernel
    def histogram(item, x, out):
        counts = api.PrivateArray(BINS, numpy.int32, fill_zeros=True)
        size = (x.size + item.get_range(0) - 1) // item.get_range(0)
        begin = item.get_id(0) * size
        for i in range(begin, min(begin + size, x.size)):
            counts[x[i]] += 1
        for k in range(BINS):
            if counts[k] > 0:
                api.AtomicRef(out, k).fetch_add(counts[k])

    @kernel
    def n_body(item, x, out):
        i = item.get_id(0)
        px, py, pz = x[i, 0], x[i, 1], x[i, 2]
        ax, ay, az = 0.0, 0.0, 0.0
        for j in range(x.shape[0]):
            dx, dy, dz = x[j, 0] - px, x[j, 1] - py, x[j, 2] - pz
            d = dx * dx + dy * dy + dz * dz + 0.01
            f = 1 / (d * math.sqrt(d))
            ax += dx * f
            ay += dy * f
            az += dz * f
        out[i, 0], out[i, 1], out[i, 2] = ax, ay, az

    @kernel
    def matmul(item, a, b, c, left, right):
        i, j = item.get_global_id(0), item.get_global_id(1)
        li, lj = item.get_local_id(0), item.get_local_id(1)
        total = 0.0
        for t in range(a.shape[1] // TILE):
            left[li, lj] = a[i, t * TILE + lj]
            right[li, lj] = b[t * TILE + li, j]
            api.group_barrier(item.get_group())
            for k in range(TILE):
                total += left[li, k] * right[k, lj]
            api.group_barrier(item.get_group())
        c[i, j] = total

    return made


ROWS = {"pairwise distances, 3,000 points": "pairwise", "Black-Scholes, 1e7": "black_scholes",
        "k-means, 1e6 points, 10 rounds": "k_means", "sum of 1e7": "sum", "scan of 1e7": "scan",
        "histogram of 1e7 with atomics": "histogram", "n bodies, 4,096": "n_body",
        "tiled matrix product, 768": "matmul"}
