"""The loops of kernel_rows.py for numba (njit, parallel) and, where it has them, jax."""
import math

import numpy

from kernel_rows import BINS, BODIES, CLUSTERS, OPTIONS, POINTS, ROUNDS, SIDE, SIZE, TILE


class Numba:
    """Loops that numba compiles for all cores."""

    def __init__(self, _device, data):
        self.data, self.loops = data, _loops()

    def pairwise(self):
        out = numpy.empty((POINTS, POINTS))
        return lambda: self.loops["pairwise"](self.data["points"], out), lambda: out

    def black_scholes(self):
        call, put = numpy.empty(OPTIONS), numpy.empty(OPTIONS)
        args = [self.data[name] for name in ("price", "strike", "time")]
        return lambda: self.loops["black_scholes"](*args, 0.1, 0.2, call, put), lambda: call + put

    def k_means(self):
        kept = []
        return lambda: kept.append(self.loops["k_means"](self.data["flat"])), lambda: kept[-1]

    def sum(self):
        kept = []
        return lambda: kept.append(self.loops["total"](self.data["numbers"])), lambda: numpy.array([kept[-1]])

    def scan(self):
        out = numpy.empty(SIZE, dtype="int64")
        return lambda: self.loops["scan"](self.data["whole"], out), lambda: out

    def histogram(self):
        out = numpy.zeros(BINS, dtype="int32")
        return lambda: self.loops["histogram"](self.data["bins"], out), lambda: out

    def n_body(self):
        out = numpy.empty((BODIES, 3))
        return lambda: self.loops["n_body"](self.data["bodies"], out), lambda: out

    def matmul(self):
        out = numpy.empty((SIDE, SIDE), dtype="float32")
        return lambda: self.loops["matmul"](self.data["left"], self.data["right"], out), lambda: out


def _loops():
    import numba
    from numba import prange

    made = {}

    def njit(function):
        made[function.__name__] = numba.njit(parallel=True)(function)

    @njit
    def pairwise(x, out):
        for i in prange(x.shape[0]):
            for j in range(x.shape[0]):
                total = 0.0
                for k in range(x.shape[1]):
                    d = x[i, k] - x[j, k]
                    total += d * d
                out[i, j] = math.sqrt(total)

    @njit
    def black_scholes(price, strike, time, rate, volatility, call, put):
        for i in prange(price.size):
            p, s, t = price[i], strike[i], time[i]
            spread = t * volatility * volatility * 2
            a, b = math.log(p / s), -rate * t
            y = 1 / math.sqrt(spread)
            w1, w2 = (a - b + 0.25 * spread) * y, (a - b - 0.25 * spread) * y
            d1, d2 = 0.5 + 0.5 * math.erf(w1), 0.5 + 0.5 * math.erf(w2)
            discounted = math.exp(b) * s
            call[i] = p * d1 - discounted * d2
            put[i] = call[i] - p + discounted

    @njit
    def k_means(points):
        n, parts = points.shape[0], 64
        centres = points[:CLUSTERS].copy()
        owner = numpy.empty(n, numpy.int32)
        for _ in range(ROUNDS):
            sums, counts = numpy.zeros((parts, CLUSTERS, 2)), numpy.zeros((parts, CLUSTERS))
            for i in prange(n):
                best, nearest = math.inf, 0
                for c in range(CLUSTERS):
                    dx, dy = points[i, 0] - centres[c, 0], points[i, 1] - centres[c, 1]
                    d = dx * dx + dy * dy
                    if d < best:
                        best, nearest = d, c
                owner[i] = nearest
            size = (n + parts - 1) // parts
            for part in prange(parts):
                for i in range(part * size, min((part + 1) * size, n)):
                    c = owner[i]
                    sums[part, c, 0] += points[i, 0]
                    sums[part, c, 1] += points[i, 1]
                    counts[part, c] += 1
            for c in range(CLUSTERS):
                if counts[:, c].sum() > 0:
                    centres[c, 0] = sums[:, c, 0].sum() / counts[:, c].sum()
                    centres[c, 1] = sums[:, c, 1].sum() / counts[:, c].sum()
        return centres

    @njit
    def total(x):
        result = 0.0
        for i in prange(x.size):
            result += x[i]
        return result

    @njit
    def scan(x, out):
        blocks = 256
        size, sums = (x.size + blocks - 1) // blocks, numpy.zeros(blocks, numpy.int64)
        for block in prange(blocks):
            here = 0
            for i in range(block * size, min((block + 1) * size, x.size)):
                here += x[i]
            sums[block] = here
        before = 0
        for block in range(blocks):
            here = sums[block]
            sums[block] = before
            before += here
        for block in prange(blocks):
            here = sums[block]
            for i in range(block * size, min((block + 1) * size, x.size)):
                here += x[i]
                out[i] = here

    @njit
    def histogram(x, out):
        parts = 64
        counts, size = numpy.zeros((parts, BINS), numpy.int32), (x.size + parts - 1) // parts
        for part in prange(parts):
            for i in range(part * size, min((part + 1) * size, x.size)):
                counts[part, x[i]] += 1
        for k in range(BINS):
            out[k] = counts[:, k].sum()

    @njit
    def n_body(x, out):
        for i in prange(x.shape[0]):
            ax, ay, az = 0.0, 0.0, 0.0
            for j in range(x.shape[0]):
                dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                d = dx * dx + dy * dy + dz * dz + 0.01
                f = 1 / (d * math.sqrt(d))
                ax += dx * f
                ay += dy * f
                az += dz * f
            out[i, 0], out[i, 1], out[i, 2] = ax, ay, az

    @njit
    def matmul(a, b, c):
        n = a.shape[0]
        for ti in prange(n // TILE):
            tile = numpy.empty((TILE, TILE), numpy.float32)
            for tj in range(n // TILE):
                tile[:, :] = 0
                for t in range(n // TILE):
                    for i in range(TILE):
                        for k in range(TILE):
                            left = a[ti * TILE + i, t * TILE + k]
                            for j in range(TILE):
                                tile[i, j] += left * b[t * TILE + k, tj * TILE + j]
                c[ti * TILE:(ti + 1) * TILE, tj * TILE:(tj + 1) * TILE] = tile

    return made


class Jax:
    """Whole-array programs that jax compiles."""

    def __init__(self, _device, data):
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.np = jax, jax.numpy
        self.data = data

    def to(self, name):
        return self.np.asarray(self.data[name])

    def pairwise(self):
        np = self.np
        return self._timed(lambda x: np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1)), self.to("points"))

    def black_scholes(self):
        np, erf = self.np, self.jax.scipy.special.erf

        def prices(p, s, t):
            rate, volatility = 0.1, 0.2
            spread = t * volatility * volatility * 2
            a, b = np.log(p / s), -rate * t
            y = 1 / np.sqrt(spread)
            w1, w2 = (a - b + 0.25 * spread) * y, (a - b - 0.25 * spread) * y
            d1, d2 = 0.5 + 0.5 * erf(w1), 0.5 + 0.5 * erf(w2)
            discounted = np.exp(b) * s
            call = p * d1 - discounted * d2
            return call, call - p + discounted
        compute, result = self._timed(prices, *(self.to(name) for name in ("price", "strike", "time")))
        return compute, lambda: sum(numpy.asarray(one) for one in result(raw=True))

    def k_means(self):
        np, jax = self.np, self.jax

        def one(_, centres):
            points = self.to("flat")
            owner = ((points[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
            sums = jax.ops.segment_sum(points, owner, CLUSTERS)
            counts = jax.ops.segment_sum(np.ones(points.shape[0]), owner, CLUSTERS)
            return np.where(counts[:, None] > 0, sums / counts[:, None], centres)
        return self._timed(lambda start: jax.lax.fori_loop(0, ROUNDS, one, start), self.to("flat")[:CLUSTERS])

    def _timed(self, function, *args):
        compiled, kept = self.jax.jit(function), []

        def run():
            kept[:] = [self.jax.block_until_ready(compiled(*args))]

        def result(raw=False):
            return kept[0] if raw else numpy.asarray(kept[0])
        return run, result


CONTESTANTS = {"numba": Numba, "jax": Jax}
