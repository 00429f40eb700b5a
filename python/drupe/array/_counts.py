"""The distributions of integers: how many of something there are."""
import math

from drupe import _engine
from drupe.array._drawing import (HYPERGEOMETRIC, ZIPF, Drawing, check, is_array, not_negative, ops, positive,
                                  probability, shape_of)

_MOST = 9.2e18  # of an int64, as a float


def _whole(x):
    """Floats as int64, cut to what that holds."""
    return ops["minimum"](x, _MOST).astype("int64")


class Counting(Drawing):
    """A Generator without the distributions of real numbers that are made of others."""

    def geometric(self, p, size=None):
        """How many trials of probability p the first success takes, int64. For a number p of 1/3 and more as NumPy's of
        the same seed.

        p: numbers above 0 and up to 1. size: a shape, None for that of p. ValueError: p is no probability, or 0.

        >>> rng = da.random.default_rng(1)
        >>> rng.geometric(1.0, 3).tolist()
        [1, 1, 1]
        """
        (p,) = self._parameters(p)
        check("p", p, lambda x: 0 < x <= 1, "above 0 and at most 1")
        if is_array(p):
            return _whole(ops["floor"](self._exponentials(size, p) / -ops["log1p"](-p)) + 1.0)
        rate = -math.log1p(-p) if p < 1 else math.inf
        if p >= 1 / 3:
            return _whole(ops["maximum"](ops["ceil"](ops["log1p"](-self.random(size)) / -rate), 1.0))
        return _whole(ops["floor"](self._exponentials(size) / rate) + 1.0)

    def negative_binomial(self, n, p, size=None):
        """How many failures come before n successes of probability p, int64.

        n: numbers above 0. p: numbers above 0 and up to 1. size: a shape, None for that of the parameters. ValueError:
        a parameter is none of these.

        >>> rng = da.random.default_rng(1)
        >>> rng.negative_binomial(3, 1.0, 2).tolist()
        [0, 0]
        """
        n, p = self._parameters(n, p)
        check("n", n, positive, "above 0")
        check("p", p, lambda x: 0 < x <= 1, "above 0 and at most 1")
        return self.poisson(self.gamma(n, (1.0 - p) / p, size))

    def logseries(self, p, size=None):
        """Integers k >= 1 whose probability is -p^k / (k log(1 - p)), int64: by Kemp's method, from two uniform numbers
        each. NumPy's by law, not by number.

        p: numbers of 0 and more, below 1. size: a shape, None for that of p. ValueError: p is none of these; elements
        of arrays are not checked.

        >>> rng = da.random.default_rng(1)
        >>> rng.logseries(0.0, 3).tolist()
        [1, 1, 1]
        """
        (p,) = self._parameters(p)
        check("p", p, lambda x: 0 <= x < 1, "at least 0 and below 1")
        shape = self._spread(size, p)
        v, u = 1.0 - self.random(shape), 1.0 - self.random(shape)
        rate = ops["log1p"](-p) if is_array(p) else math.log1p(-p)
        q = -ops["expm1"](u * rate)
        far = ops["floor"](1.0 + ops["log"](v) / ops["log"](q))
        near = ops["where"](v >= q, 1.0, 2.0).astype(v.dtype)
        return _whole(ops["where"](v >= p, 1.0, ops["where"](v <= q * q, far, near)))

    def zipf(self, a, size=None):
        """Integers k >= 1 whose probability goes as k^-a, int64: by Devroye's rejection. NumPy's by law, not by number.

        a: numbers above 1. size: a shape, None for that of a. ValueError: a is 1 or less; among elements of an array
        that gives -1.

        >>> rng = da.random.default_rng(1)
        >>> rng.zipf(2000.0, 3).tolist()
        [1, 1, 1]
        """
        check("a", a, lambda x: x > 1, "above 1")
        return self._law(ZIPF, "int64", size, a)

    def hypergeometric(self, ngood, nbad, nsample, size=None):
        """How many good ones there are among nsample that are taken from ngood good and nbad bad ones, int64: one by
        one up to 10, else by the ratio of uniforms. NumPy's by law, not by number.

        ngood, nbad, nsample: integers; ngood + nbad is at most 10^9, and nsample at most that. size: a shape, None for
        that of the parameters. ValueError: they are none of these; among elements of arrays that gives -1.

        >>> rng = da.random.default_rng(1)
        >>> rng.hypergeometric(3, 0, 2, size=4).tolist()
        [2, 2, 2, 2]
        """
        for name, x in (("ngood", ngood), ("nbad", nbad), ("nsample", nsample)):
            check(name, x, not_negative, "at least 0")
        if not any(hasattr(x, "__len__") for x in (ngood, nbad, nsample)):
            if ngood + nbad > 10**9:
                raise ValueError("hypergeometric: ngood + nbad must be at most 10**9")
            if nsample > ngood + nbad:
                raise ValueError("hypergeometric: nsample must be at most ngood + nbad")
        return self._law(HYPERGEOMETRIC, "int64", size, ngood, nbad, nsample)

    def multinomial(self, n, pvals, size=None):
        """How often each of k things happens in n trials, int64, along a new last axis of k elements: one binomial
        number for each thing but the last. NumPy's by law, not by number.

        n: integers. pvals: the probabilities along the last axis; the last of them is what the others leave. size: a
        shape for the axes in front, None for that of n and of pvals without its last axis. Waits for the sum of pvals.
        ValueError: n is negative, or pvals are no probabilities.

        >>> rng = da.random.default_rng(1)
        >>> rng.multinomial(5, [0.0, 1.0, 0.0], size=2).tolist()
        [[0, 5, 0], [0, 5, 0]]
        """
        from drupe.array import clip, concat, cumulative_sum, flip
        n, p = self._parameters(n, pvals)
        if not is_array(p) or p.ndim == 0 or p.shape[-1] == 0:
            raise ValueError("multinomial: pvals must have one dimension at least, and one element in the last one")
        check("n", n, not_negative, "at least 0")
        p = p.astype("float64")
        if not ops["all"]((p >= 0) & (p <= 1)).item():
            raise ValueError("multinomial: pvals must be from 0 to 1")
        others = ops["sum"](p[..., :-1], axis=-1, keepdims=True)
        if ops["any"](others > 1 + 1e-12).item():
            raise ValueError("multinomial: pvals without the last must not add up to more than 1")
        p = concat([p[..., :-1], ops["maximum"](1.0 - others, 0.0)], axis=-1)
        tails = flip(cumulative_sum(flip(p, axis=-1), axis=-1), axis=-1)
        chances = clip(p / ops["where"](tails > 0, tails, 1.0), 0.0, 1.0)
        shape, k = self._spread(size, n, p[..., 0]), p.shape[-1]
        left = _engine.full(shape, 0, "int64", queue=self.queue) + n
        return self._shared_out(left, k, lambda i, left: self.binomial(left, chances[..., i], shape))

    def multivariate_hypergeometric(self, colors, nsample, size=None, method="marginals"):
        """How many of each color there are among nsample that are taken from colors[i] of each, int64, along a new last
        axis: one hypergeometric number for each color but the last. NumPy's by law, not by number.

        colors: integers in one dimension, at most 10^9 together. nsample: an integer, at most their sum. size: a shape
        for the axes in front. method: NumPy's "marginals" or "count", which are one here. Waits if colors is an array.
        ValueError: negative numbers, a sample larger than what it is taken from.

        >>> rng = da.random.default_rng(1)
        >>> rng.multivariate_hypergeometric([3, 0, 2], 5).tolist()
        [3, 0, 2]
        """
        colors = colors.tolist() if hasattr(colors, "tolist") else list(colors)
        if method not in ("marginals", "count"):
            raise ValueError(f'multivariate_hypergeometric: method is "marginals" or "count", not {method!r}')
        if not all(isinstance(x, int) and x >= 0 for x in colors) or sum(colors) > 10**9:
            raise ValueError("multivariate_hypergeometric: colors must be integers in one dimension, none negative, "
                             "and at most 10**9 together")
        if not 0 <= nsample <= sum(colors):
            raise ValueError("multivariate_hypergeometric: nsample must be from 0 to the sum of colors")
        shape = shape_of(size) or ()
        if not colors:
            return _engine.zeros((*shape, 0), "int64", queue=self.queue)
        left = _engine.full(shape, nsample, "int64", queue=self.queue)
        return self._shared_out(left, len(colors), lambda i, left: self.hypergeometric(
            colors[i], sum(colors[i + 1:]), left, shape))

    def _shared_out(self, left, k, draw):
        """What draw(i, left) gives of what is left to each of k but the last, who gets the rest; as a new last axis."""
        out = _engine.empty((*left.shape, k), "int64", queue=self.queue)
        for i in range(k - 1):
            drawn = draw(i, left)
            out[..., i] = drawn
            left = left - drawn
        out[..., k - 1] = left
        return out
