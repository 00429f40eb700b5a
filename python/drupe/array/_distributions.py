"""Random generators, with the distributions that are made of uniform, normal, exponential and gamma numbers."""
import math

from drupe import _engine
from drupe.array._drawing import Drawing, check, is_array, not_negative, ops, positive, shape_of


class Generator(Drawing):
    """A source of random numbers on one queue; made by default_rng().

    Its state lives on that queue, and drawing is work of it. `size` is the shape of what is drawn; None is the
    shape that the parameters broadcast to. Numbers are float64 where the method does not say otherwise. A parameter is
    a number or an array. TypeError: it is no real number; ValueError: it is a number that the distribution does not
    allow. Such an element of an array gives NaN, or -1 among integers.

    >>> rng = da.random.default_rng(42)
    >>> rng.integers(10, size=3).tolist()
    [9, 0, 1]
    """

    def normal(self, loc=0.0, scale=1.0, size=None):
        """Normal numbers of mean `loc` and deviation `scale`.

        >>> rng = da.random.default_rng(1)
        >>> rng.normal(3.0, 0.0, 2).tolist()
        [3.0, 3.0]
        """
        loc, scale = self._parameters(loc, scale)
        check("scale", scale, not_negative, "at least 0")
        return self.standard_normal(self._spread(size, loc, scale)) * scale + loc

    def _exponentials(self, size, *parameters):
        return self.standard_exponential(self._spread(size, *parameters))

    def exponential(self, scale=1.0, size=None):
        """Exponential numbers of mean `scale`.

        >>> rng = da.random.default_rng(1)
        >>> rng.exponential(2.0, (2, 2)).shape
        (2, 2)
        """
        (scale,) = self._parameters(scale)
        check("scale", scale, not_negative, "at least 0")
        return self._exponentials(size, scale) * scale

    def gamma(self, shape, scale=1.0, size=None):
        """Gamma numbers of a shape and scale.

        >>> rng = da.random.default_rng(1)
        >>> rng.gamma(2.0, 0.5, 4).shape
        (4,)
        """
        shape, scale = self._parameters(shape, scale)
        check("scale", scale, not_negative, "at least 0")
        return self.standard_gamma(shape, self._spread(size, shape, scale)) * scale

    def lognormal(self, mean=0.0, sigma=1.0, size=None):
        """Numbers whose logarithm is normal.

        >>> rng = da.random.default_rng(1)
        >>> rng.lognormal(0.0, 0.0, 2).tolist()
        [1.0, 1.0]
        """
        return ops["exp"](self.normal(mean, sigma, size))

    def laplace(self, loc=0.0, scale=1.0, size=None):
        """Laplace numbers: differences of two exponential ones.

        >>> rng = da.random.default_rng(1)
        >>> rng.laplace(1.0, 0.0, 2).tolist()
        [1.0, 1.0]
        """
        loc, scale = self._parameters(loc, scale)
        check("scale", scale, not_negative, "at least 0")
        shape = self._spread(size, loc, scale)
        return (self.standard_exponential(shape) - self.standard_exponential(shape)) * scale + loc

    def logistic(self, loc=0.0, scale=1.0, size=None):
        """Logistic numbers.

        >>> rng = da.random.default_rng(1)
        >>> rng.logistic(1.0, 0.0, 2).tolist()
        [1.0, 1.0]
        """
        loc, scale = self._parameters(loc, scale)
        check("scale", scale, not_negative, "at least 0")
        return ops["log"](ops["expm1"](self._exponentials(size, loc, scale))) * scale + loc

    def gumbel(self, loc=0.0, scale=1.0, size=None):
        """Gumbel numbers, of the largest of many.

        >>> rng = da.random.default_rng(1)
        >>> rng.gumbel(1.0, 0.0, 2).tolist()
        [1.0, 1.0]
        """
        loc, scale = self._parameters(loc, scale)
        check("scale", scale, not_negative, "at least 0")
        return loc - ops["log"](self._exponentials(size, loc, scale)) * scale

    def weibull(self, a, size=None):
        """Weibull numbers of shape a and scale 1.

        >>> rng = da.random.default_rng(1)
        >>> rng.weibull(1.5, 3).shape
        (3,)
        """
        (a,) = self._parameters(a)
        check("a", a, positive, "above 0")
        return self._exponentials(size, a) ** (1.0 / a)

    def pareto(self, a, size=None):
        """Numbers of the Pareto distribution that begins at 0 (Lomax's), of shape a.

        >>> rng = da.random.default_rng(1)
        >>> rng.pareto(1.5, 3).shape
        (3,)
        """
        (a,) = self._parameters(a)
        check("a", a, positive, "above 0")
        return ops["expm1"](self._exponentials(size, a) / a)

    def power(self, a, size=None):
        """Numbers of [0, 1] whose density is a x^(a - 1).

        >>> rng = da.random.default_rng(1)
        >>> bool((rng.power(2, 100) <= 1).all())
        True
        """
        (a,) = self._parameters(a)
        check("a", a, positive, "above 0")
        return ops["exp"](-self._exponentials(size, a) / a)

    def rayleigh(self, scale=1.0, size=None):
        """Rayleigh numbers.

        >>> rng = da.random.default_rng(1)
        >>> rng.rayleigh(2.0, 3).shape
        (3,)
        """
        (scale,) = self._parameters(scale)
        check("scale", scale, not_negative, "at least 0")
        return ops["sqrt"](self._exponentials(size, scale) * 2.0) * scale

    def triangular(self, left, mode, right, size=None):
        """Numbers from left to right whose density rises up to `mode` and falls behind it.

        >>> rng = da.random.default_rng(1)
        >>> bool((abs(rng.triangular(-1, 0, 1, 100)) <= 1).all())
        True
        """
        left, mode, right = self._parameters(left, mode, right)
        if not any(is_array(x) for x in (left, mode, right)) and not (left <= mode <= right and left < right):
            raise ValueError("triangular: left <= mode <= right and left < right are required")
        u = self.random(self._spread(size, left, mode, right))
        rising = u * (right - left) < mode - left
        low = left + ops["sqrt"](u * ((right - left) * (mode - left)))
        high = right - ops["sqrt"]((1.0 - u) * ((right - left) * (right - mode)))
        return rising.astype(u.dtype) * (low - high) + high

    def geometric(self, p, size=None):
        """How many trials of probability p the first success takes, int64.

        >>> rng = da.random.default_rng(1)
        >>> rng.geometric(1.0, 3).tolist()
        [1, 1, 1]
        """
        (p,) = self._parameters(p)
        check("p", p, lambda x: 0 < x <= 1, "above 0 and at most 1")
        if not is_array(p):
            rate = -math.log1p(-p) if p < 1 else math.inf
        else:
            rate = -ops["log1p"](-p)
        trials = ops["floor"](self._exponentials(size, p) / rate) + 1.0
        return ops["minimum"](trials, 9.2e18).astype("int64")

    def negative_binomial(self, n, p, size=None):
        """How many failures come before n successes of probability p, int64.

        >>> rng = da.random.default_rng(1)
        >>> rng.negative_binomial(3, 1.0, 2).tolist()
        [0, 0]
        """
        n, p = self._parameters(n, p)
        check("n", n, positive, "above 0")
        check("p", p, lambda x: 0 < x <= 1, "above 0 and at most 1")
        return self.poisson(self.gamma(n, (1.0 - p) / p, size))

    def chisquare(self, df, size=None):
        """Sums of the squares of df normal numbers.

        >>> rng = da.random.default_rng(1)
        >>> rng.chisquare(3, 4).shape
        (4,)
        """
        (df,) = self._parameters(df)
        check("df", df, positive, "above 0")
        return self.standard_gamma(df / 2.0, size) * 2.0

    def f(self, dfnum, dfden, size=None):
        """Ratios of two chi-square numbers, each divided by its degrees of freedom.

        >>> rng = da.random.default_rng(1)
        >>> rng.f(2, 4, 3).shape
        (3,)
        """
        dfnum, dfden = self._parameters(dfnum, dfden)
        shape = self._spread(size, dfnum, dfden)
        return self.chisquare(dfnum, shape) / dfnum / (self.chisquare(dfden, shape) / dfden)

    def standard_t(self, df, size=None):
        """Student's t of df degrees of freedom.

        >>> rng = da.random.default_rng(1)
        >>> rng.standard_t(5, 3).shape
        (3,)
        """
        (df,) = self._parameters(df)
        shape = self._spread(size, df)
        return self.standard_normal(shape) / ops["sqrt"](self.chisquare(df, shape) / df)

    def standard_cauchy(self, size=None):
        """Cauchy numbers: ratios of two normal ones.

        >>> rng = da.random.default_rng(1)
        >>> rng.standard_cauchy(3).shape
        (3,)
        """
        return self.standard_normal(size) / self.standard_normal(size)

    def dirichlet(self, alpha, size=None):
        """Vectors of positive numbers that add up to 1: gamma numbers of shapes alpha, divided by their sum.

        >>> rng = da.random.default_rng(1)
        >>> rng.dirichlet([1.0, 2.0], 5).shape
        (5, 2)
        """
        alpha = self._placed(alpha)
        if alpha.ndim != 1:
            raise ValueError("alpha must be 1-dimensional")
        x = self.standard_gamma(alpha, (shape_of(size) or ()) + alpha.shape)
        return x / ops["sum"](x, axis=-1, keepdims=True)

    def multivariate_normal(self, mean, cov, size=None):
        """Normal vectors of a mean (n elements) and a covariance (n x n, positive definite), which is taken apart by
        Cholesky's method. ValueError where that fails or shapes do not match.

        >>> rng = da.random.default_rng(1)
        >>> rng.multivariate_normal([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]], 5).shape
        (5, 2)
        """
        from drupe.array import linalg
        mean, cov = self._parameters(mean, cov)
        if mean.ndim != 1 or cov.ndim != 2 or cov.shape != mean.shape * 2:
            raise ValueError("mean must be 1-dimensional, and cov square and as long")
        factor = linalg.cholesky(cov.astype("float64"))
        n = mean.shape[0]
        shape = (shape_of(size) or ()) + (n,)
        x = self.standard_normal((math.prod(shape[:-1]), n))
        return (_engine.matmul(x, _engine.permute_dims(factor, (1, 0))) + mean).reshape(shape)
