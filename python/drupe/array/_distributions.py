"""Random generators, with the distributions that are made of uniform, normal, exponential and gamma numbers."""
import math

from drupe import _engine
from drupe.array._counts import Counting
from drupe.array._drawing import VONMISES, check, is_array, not_negative, ops, positive, shape_of


class Generator(Counting):
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
        """Laplace numbers, from one uniform number each: as NumPy's of the same seed, up to rounding.

        >>> rng = da.random.default_rng(1)
        >>> rng.laplace(1.0, 0.0, 2).tolist()
        [1.0, 1.0]
        """
        loc, scale = self._parameters(loc, scale)
        check("scale", scale, not_negative, "at least 0")
        u = self._inner(size, loc, scale)
        low = ops["log"](ops["minimum"](2.0 * u, 1.0))
        return (low - ops["log"](ops["minimum"](2.0 - 2.0 * u, 1.0))) * scale + loc

    def logistic(self, loc=0.0, scale=1.0, size=None):
        """Logistic numbers, from one uniform number each: as NumPy's of the same seed, up to rounding.

        >>> rng = da.random.default_rng(1)
        >>> rng.logistic(1.0, 0.0, 2).tolist()
        [1.0, 1.0]
        """
        loc, scale = self._parameters(loc, scale)
        check("scale", scale, not_negative, "at least 0")
        u = self._inner(size, loc, scale)
        return (ops["log"](u) - ops["log1p"](-u)) * scale + loc

    def gumbel(self, loc=0.0, scale=1.0, size=None):
        """Gumbel numbers, of the largest of many, from one uniform number each: as NumPy's of the same seed, up to
        rounding.

        >>> rng = da.random.default_rng(1)
        >>> rng.gumbel(1.0, 0.0, 2).tolist()
        [1.0, 1.0]
        """
        loc, scale = self._parameters(loc, scale)
        check("scale", scale, not_negative, "at least 0")
        return loc - ops["log"](-ops["log1p"](-self._inner(size, loc, scale))) * scale

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
        """Numbers from left to right whose density rises up to `mode` and falls behind it: as NumPy's of the same seed,
        up to rounding.

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

    def noncentral_chisquare(self, df, nonc, size=None):
        """Sums of the squares of df normal numbers, the squares of whose means add up to nonc: chi-square numbers with
        two more degrees of freedom for each event of a Poisson number of mean nonc/2. NumPy's by law, not by number.

        df: numbers above 0. nonc: numbers of 0 and more. size: a shape, None for that of the parameters. ValueError:
        they are none of these.

        >>> rng = da.random.default_rng(1)
        >>> rng.noncentral_chisquare(3, 2.5, 4).shape
        (4,)
        """
        df, nonc = self._parameters(df, nonc)
        check("df", df, positive, "above 0")
        check("nonc", nonc, not_negative, "at least 0")
        more = self.poisson(nonc / 2.0, self._spread(size, df, nonc))
        return self.standard_gamma(more + df / 2.0) * 2.0

    def noncentral_f(self, dfnum, dfden, nonc, size=None):
        """Ratios of a noncentral_chisquare() number and a chi-square one, each divided by its degrees of freedom.
        NumPy's by law, not by number.

        dfnum, dfden: numbers above 0. nonc: numbers of 0 and more. size: a shape, None for that of the parameters.
        ValueError: they are none of these.

        >>> rng = da.random.default_rng(1)
        >>> rng.noncentral_f(3, 5, 1.0, 4).shape
        (4,)
        """
        dfnum, dfden, nonc = self._parameters(dfnum, dfden, nonc)
        shape = self._spread(size, dfnum, dfden, nonc)
        return self.noncentral_chisquare(dfnum, nonc, shape) / dfnum / (self.chisquare(dfden, shape) / dfden)

    def wald(self, mean, scale, size=None):
        """Inverse Gaussian numbers, by the method of Michael, Schucany and Haas: one of the two roots of a quadratic
        equation whose coefficient is the square of a normal number. NumPy's by law, not by number.

        mean, scale: numbers above 0. size: a shape, None for that of the parameters. ValueError: they are not.

        >>> rng = da.random.default_rng(1)
        >>> bool((rng.wald(2.0, 3.0, 100) > 0).all())
        True
        """
        mean, scale = self._parameters(mean, scale)
        check("mean", mean, positive, "above 0")
        check("scale", scale, positive, "above 0")
        shape = self._spread(size, mean, scale)
        half = self.standard_normal(shape) ** 2 * (mean / scale) / 2.0
        larger = 1.0 + half + ops["sqrt"](half * (2.0 + half))  # in units of the mean; the other root is 1 / larger
        larger_is_it = self.random(shape) * (1.0 + larger) < 1.0
        return ops["where"](larger_is_it, larger, 1.0 / larger) * mean

    def vonmises(self, mu, kappa, size=None):
        """Angles around mu, from -pi to pi, of concentration kappa: by the method of Best and Fisher. NumPy's by law,
        not by number.

        mu: numbers. kappa: numbers of 0 and more. size: a shape, None for that of the parameters. ValueError: kappa is
        negative; among elements of an array that gives NaN.

        >>> rng = da.random.default_rng(1)
        >>> bool((abs(rng.vonmises(3.0, 4.0, 100)) <= da.pi).all())
        True
        """
        mu, kappa = self._parameters(mu, kappa)
        check("kappa", kappa, not_negative, "at least 0")
        angles = self._law(VONMISES, "float64", self._spread(size, mu, kappa), kappa)
        return ops["remainder"](angles + mu + math.pi, 2 * math.pi) - math.pi

    def dirichlet(self, alpha, size=None):
        """Vectors of positive numbers that add up to 1: gamma numbers of shapes alpha, divided by their sum; of small
        shapes parts of a stick, that beta numbers break off one after the other.

        alpha: numbers above 0 in one dimension; waits if it is an array. size: a shape for the axes in front.
        ValueError: more dimensions, or numbers that are not above 0.

        >>> rng = da.random.default_rng(1)
        >>> rng.dirichlet([1.0, 2.0], 5).shape
        (5, 2)
        """
        alpha = self._placed(alpha)
        if alpha.ndim != 1:
            raise ValueError("alpha must be 1-dimensional")
        values = alpha.tolist()
        if not all(value > 0 for value in values):
            raise ValueError("alpha must be above 0")
        if max(values, default=1.0) < 0.1:  # gamma numbers may all be 0
            return self._broken_stick(values, shape_of(size) or ())
        x = self.standard_gamma(alpha, (shape_of(size) or ()) + alpha.shape)
        return x / ops["sum"](x, axis=-1, keepdims=True)

    def _broken_stick(self, alpha, shape):
        out = _engine.empty((*shape, len(alpha)), "float64", queue=self.queue)
        left = _engine.ones(shape, "float64", queue=self.queue)
        for i, value in enumerate(alpha[:-1]):
            part = left * self.beta(value, math.fsum(alpha[i + 1:]), shape)
            out[..., i] = part
            left = left - part
        out[..., len(alpha) - 1] = left
        return out

    def multivariate_normal(self, mean, cov, size=None, check_valid="warn", tol=1e-8, *, method="svd"):
        """Normal vectors along a new last axis. NumPy's by law, not by number.

        mean: n numbers. cov: their covariance, n x n, symmetric and without negative eigenvalues. size: a shape for the
        axes in front. method: how cov is taken apart: "svd", "eigh", or "cholesky", which is the fastest and wants
        positive eigenvalues. check_valid: "warn", "raise" or "ignore" a cov that has negative eigenvalues beyond `tol`;
        waits but for "ignore". ValueError: shapes that do not match, or another word; LinAlgError: cholesky's.

        >>> rng = da.random.default_rng(1)
        >>> rng.multivariate_normal([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]], 5).shape
        (5, 2)
        """
        mean, cov = self._parameters(mean, cov)
        if mean.ndim != 1 or cov.ndim != 2 or cov.shape != mean.shape * 2:
            raise ValueError("mean must be 1-dimensional, and cov square and as long")
        if method not in ("svd", "eigh", "cholesky") or check_valid not in ("warn", "raise", "ignore"):
            raise ValueError('multivariate_normal: method is "svd", "eigh" or "cholesky", and check_valid "warn", '
                             '"raise" or "ignore"')
        factor = _factor(cov.astype("float64"), method, check_valid, tol)
        n = mean.shape[0]
        shape = (shape_of(size) or ()) + (n,)
        x = self.standard_normal((math.prod(shape[:-1]), n))
        return (_engine.matmul(x, _engine.permute_dims(factor, (1, 0))) + mean).reshape(shape)


def _factor(cov, method, check_valid, tol):
    """A matrix whose product with its transpose is cov."""
    from drupe.array import allclose, linalg
    if method == "cholesky":
        return linalg.cholesky(cov)
    if method == "svd":
        vectors, values, back = linalg.svd(cov)
        again = _engine.matmul(back.T * values, back)
    else:
        values, vectors = linalg.eigh(cov)
        again = _engine.matmul(vectors * ops["abs"](values), vectors.T)
    if check_valid != "ignore" and not bool(allclose(again, cov, rtol=tol, atol=tol)):
        text = "covariance is not symmetric positive-semidefinite."
        if check_valid == "raise":
            raise ValueError(text)
        import warnings
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return vectors * ops["sqrt"](ops["abs"](values))
