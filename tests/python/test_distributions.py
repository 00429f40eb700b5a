"""The distributions of drupe.array.random that are made of others, against NumPy's: the same numbers where uniform
numbers become one each, the same law elsewhere."""
import doctest
import inspect
import math
import warnings

import numpy as np
import pytest

import drupe.array as da
from drupe.array import _counts, random

N = 20_000


def pair(seed, device):
    return random.default_rng(seed, device=device), np.random.Generator(np.random.Philox(seed))


@pytest.mark.parametrize("draw", [
    lambda g: g.laplace(1, 2, 5000), lambda g: g.logistic(1, 2, 5000), lambda g: g.gumbel(1, 2, (50, 100)),
    lambda g: g.triangular(-1, 0.5, 3, 5000), lambda g: g.geometric(0.5, 5000), lambda g: g.geometric(1.0, 50),
    lambda g: g.standard_exponential(5000, method="inv"), lambda g: g.uniform(-2, 5, 5000)])
def test_numbers_are_numpys(device, draw):
    ours, theirs = pair(5, device)
    wanted = draw(theirs)
    got = draw(ours).asnumpy()
    assert got.dtype == wanted.dtype and np.allclose(got, wanted, rtol=1e-13, atol=1e-14)
    assert ours.random().item() == theirs.random()  # as many words were taken


def distance(a, b):
    """Of Kolmogorov and Smirnov, between two samples."""
    every = np.unique(np.concatenate([a, b]))
    return np.abs(np.searchsorted(np.sort(a), every, "right") - np.searchsorted(np.sort(b), every, "right")).max() / N


@pytest.mark.parametrize("draw", [
    lambda g: g.wald(2, 3, N), lambda g: g.wald(1e6, 1e-3, N), lambda g: g.wald(1e-3, 1e6, N),
    lambda g: g.vonmises(0, 0, N), lambda g: g.vonmises(0.5, 1e-9, N), lambda g: g.vonmises(0, 1e-6, N),
    lambda g: g.vonmises(3, 0.7, N), lambda g: g.vonmises(-1, 4, N), lambda g: g.vonmises(40, 4, N),
    lambda g: g.vonmises(0, 900, N), lambda g: g.vonmises(1, 1e7, N),
    lambda g: g.noncentral_chisquare(3, 2.5, N), lambda g: g.noncentral_chisquare(0.3, 40, N),
    lambda g: g.noncentral_chisquare(3, 0, N), lambda g: g.noncentral_f(3, 5, 2, N),
    lambda g: g.logseries(0.3, N), lambda g: g.logseries(0.999, N), lambda g: g.logseries(0, N),
    lambda g: np.minimum(g.zipf(1.1, N), 10**9), lambda g: g.zipf(2, N), lambda g: g.zipf(20, N),
    lambda g: g.zipf(1.0001, N) % 97, lambda g: g.geometric(0.01, N), lambda g: g.negative_binomial(3, 0.1, N),
    lambda g: g.hypergeometric(5, 7, 4, N), lambda g: g.hypergeometric(7, 5, 9, N),
    lambda g: g.hypergeometric(9, 2, 0, N),
    lambda g: g.hypergeometric(0, 20, 12, N), lambda g: g.hypergeometric(200, 300, 100, N),
    lambda g: g.hypergeometric(300, 200, 420, N), lambda g: g.hypergeometric(300, 200, 100, N),
    lambda g: g.hypergeometric(20, 10**6, 5 * 10**5, N), lambda g: g.hypergeometric(4 * 10**8, 5 * 10**8, 10**7, N),
    lambda g: g.multinomial(30, [0.2, 0.5, 0.3], N)[:, 0], lambda g: g.multinomial(30, [0.2, 0.5, 0.3], N)[:, 2],
    lambda g: g.multivariate_hypergeometric([20, 30, 5], 25, N)[:, 1],
    lambda g: g.multivariate_hypergeometric([20, 30, 5], 25, N)[:, 2],
    lambda g: g.dirichlet([0.02, 0.05, 0.01], N)[:, 1], lambda g: g.dirichlet([0.02, 0.05], N)[:, 1],
    lambda g: g.multivariate_normal([1, 2], [[2, 1], [1, 3]], N)[:, 1],
    lambda g: g.multivariate_normal([1, 2], [[2, 1], [1, 3]], N, method="eigh").sum(1),
    lambda g: g.multivariate_normal([1, 2], [[2, 1], [1, 3]], N, method="cholesky").sum(1),
    lambda g: g.multivariate_normal([1, 2], [[1, 1], [1, 1]], N).sum(1)])
def test_laws_are_numpys(device, draw):
    ours, theirs = pair(12, device)
    got, wanted = np.asarray(draw(ours).asnumpy()), draw(theirs)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    assert distance(got, wanted) < 1.95 * math.sqrt(2 / N)  # exceeded once of a thousand


def test_chances_of_counts(device):
    g = random.default_rng(3, device=device)
    zeta = sum(k**-2.5 for k in range(1, 200_000))
    laws = ((g.hypergeometric(40, 60, 30, N), [math.comb(40, k) * math.comb(60, 30 - k) / math.comb(100, 30)
                                               for k in range(22)]),
            (g.hypergeometric(4, 6, 5, N), [math.comb(4, k) * math.comb(6, 5 - k) / 252 for k in range(5)]),
            (g.zipf(2.5, N), [0] + [k**-2.5 / zeta for k in range(1, 12)]),
            (g.logseries(0.7, N), [0] + [-0.7**k / k / math.log(0.3) for k in range(1, 12)]))
    for x, chances in laws:
        counts = np.bincount(x.asnumpy(), minlength=len(chances))
        for k, chance in enumerate(chances):
            assert abs(counts[k] - N * chance) < 4.5 * math.sqrt(N * chance) + 1


def test_parts_add_up(device):
    g = random.default_rng(4, device=device)
    x = g.multinomial([3, 0, 100], [0.1, 0.0, 0.6, 0.3], (50, 3)).asnumpy()
    assert x.shape == (50, 3, 4) and (x.sum(-1) == [3, 0, 100]).all() and (x >= 0).all() and not x[..., 1].any()
    x = g.multinomial(10, [[1.0, 0.0], [0.0, 1.0]]).asnumpy()
    assert (x == [[10, 0], [0, 10]]).all()
    x = g.multivariate_hypergeometric(da.asarray([5, 0, 7, 9], device=device), 20, (40, 2)).asnumpy()
    assert x.shape == (40, 2, 4) and (x.sum(-1) == 20).all() and (x <= [5, 0, 7, 9]).all() and (x >= 0).all()
    assert g.multivariate_hypergeometric([], 0, 3).shape == (3, 0) and g.multinomial(3, [1.0]).tolist() == [3]
    x = g.dirichlet([1e-4, 1e-4, 1e-5], 1000).asnumpy()
    assert np.allclose(x.sum(-1), 1) and np.isfinite(x).all()


def test_parameters_that_are_arrays(device):
    g = random.default_rng(5, device=device)
    good, bad = da.asarray([10, 1000, 0], device=device), da.asarray([[10], [500]], device=device)
    x = g.hypergeometric(good, bad, 8, (2000, 2, 3)).asnumpy()
    wanted = 8 * np.array([10, 1000, 0]) / (np.array([10, 1000, 0]) + [[10], [500]])
    assert np.allclose(x.mean(0), wanted, atol=0.15)
    assert g.hypergeometric(3, 1, da.asarray([2, 9], device=device)).tolist()[1] == -1
    assert g.zipf(da.asarray([1.0, 2000.0], device=device)).tolist() == [-1, 1]
    assert math.isnan(g.vonmises(0, da.asarray([-1.0], device=device)).item())
    assert g.wald([1.0, 2.0], [[3.0]]).shape == (1, 2) and g.logseries([0.0, 0.0]).tolist() == [1, 1]
    assert g.noncentral_f(2, [3.0, 4.0], 1, (5, 2)).shape == (5, 2)
    for call in (lambda: g.zipf([2.0, 3.0], 3), lambda: g.hypergeometric(good, bad, 8, 3)):
        with pytest.raises(ValueError, match="broadcast"):
            call()


# --- Integers with limits for each element ---------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_between_arrays_are_numpys(device, dtype):
    ours, theirs = pair(7, device)
    least, most = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    wide = "uint64" if dtype == "uint64" else "int64"
    lows = np.array([least, 0, 0, least], wide)
    highs = np.array([most, 1, most // 2, least], wide)
    for low, high in ((lows, highs), (lows[:3], int(most)), (int(least), highs), (lows[:3, None], highs[:1])):
        def limits(x):
            return da.asarray(x, device=device) if isinstance(x, np.ndarray) else x
        for size in (None, (500, 3, 3) if np.ndim(low) > 1 else (500, np.size(low) if np.ndim(low) else 4)):
            if size and np.ndim(low) > 1:
                size = (500, 3, 1)
            wanted = theirs.integers(low, high, size, dtype=dtype, endpoint=True)
            got = ours.integers(limits(low), limits(high), size, dtype=dtype, endpoint=True).asnumpy()
            assert got.dtype == wanted.dtype and got.shape == wanted.shape and (got == wanted).all()
    assert ours.random().item() == theirs.random()


def test_integers_between_arrays_without_their_end(device):
    ours, theirs = pair(8, device)
    wanted = theirs.integers([1, 5, -3], [[10], [1000]], (200, 2, 3))
    assert (ours.integers([1, 5, -3], [[10], [1000]], (200, 2, 3)).asnumpy() == wanted).all()
    assert (ours.integers([3, 4]).asnumpy() == theirs.integers([3, 4])).all()
    assert (ours.integers(0, np.array([2**63 - 1])).asnumpy() == theirs.integers(0, np.array([2**63 - 1]))).all()


@pytest.mark.parametrize("args, options, error, text", [
    (([0, 5], [1, 5]), {}, ValueError, "low >= high"), (([0, 5], 4), {"endpoint": True}, ValueError, "low > high"),
    ((0, [5, 300]), {"dtype": "int8"}, ValueError, "high is out of bounds for int8"),
    (([-1, 0], 4), {"dtype": "uint8"}, ValueError, "low is out of bounds for uint8"),
    (([-1, 0], 4), {"dtype": "uint64"}, ValueError, "low is out of bounds for uint64"),
    (([0.5], 4), {}, TypeError, "low must be integers, not float64"),
    ((0, [1, 2], 3), {}, ValueError, "broadcast")])
def test_limits_refused(device, args, options, error, text):
    with pytest.raises(error, match=text):
        random.default_rng(1, device=device).integers(*args, **options)


@pytest.mark.parametrize("wrong, text", [
    (lambda g: g.wald(0, 1), "mean must be above 0"), (lambda g: g.wald(1, -1), "scale must be above 0"),
    (lambda g: g.vonmises(0, -1), "kappa must be at least 0"), (lambda g: g.zipf(1), "a must be above 1"),
    (lambda g: g.logseries(1), "p must be at least 0 and below 1"),
    (lambda g: g.noncentral_chisquare(0, 1), "df must be above 0"),
    (lambda g: g.noncentral_f(1, 1, -1), "nonc must be at least 0"),
    (lambda g: g.hypergeometric(1, 1, 3), "nsample must be at most"), (lambda g: g.hypergeometric(-1, 1, 0), "ngood"),
    (lambda g: g.hypergeometric(10**9, 1, 0), r"10\*\*9"), (lambda g: g.multinomial(-1, [1.0]), "n must be at least 0"),
    (lambda g: g.multinomial(1, [0.6, 0.6, 0]), "more than 1"), (lambda g: g.multinomial(1, [-0.1, 1]), "from 0 to 1"),
    (lambda g: g.multinomial(1, []), "one element"), (lambda g: g.multinomial(1, 0.5), "one dimension"),
    (lambda g: g.multivariate_hypergeometric([1, -1], 0), "none negative"),
    (lambda g: g.multivariate_hypergeometric([1, 1], 3), "nsample"),
    (lambda g: g.multivariate_hypergeometric([1, 1], 1, method="x"), "method"),
    (lambda g: g.dirichlet([0.0, 1.0]), "alpha must be above 0"),
    (lambda g: g.standard_exponential(3, method="x"), "method"),
    (lambda g: g.multivariate_normal([0], [[1]], method="x"), "method"),
    (lambda g: g.multivariate_normal([0, 0], [[1, 2], [2, 1]], check_valid="raise"), "positive-semidefinite")])
def test_refusals(device, wrong, text):
    with pytest.raises(ValueError, match=text):
        wrong(random.default_rng(1, device=device))


def test_covariances_that_are_none(device):
    g = random.default_rng(1, device=device)
    cov = [[1.0, 2.0], [2.0, 1.0]]
    for method in ("svd", "eigh"):
        with pytest.warns(RuntimeWarning, match="positive-semidefinite"):
            g.multivariate_normal([0.0, 0.0], cov, method=method)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert g.multivariate_normal([0.0, 0.0], cov, 3, "ignore", method=method).shape == (3, 2)


def test_generators_have_numpys_methods():
    names = [name for name in dir(np.random.Generator) if name[0] != "_"]
    assert not [name for name in names if not hasattr(random.Generator, name)]
    for name in names:
        ours = getattr(random.Generator, name)
        if callable(ours):
            assert len(inspect.getdoc(ours)) > 60, name


def test_examples_hold():
    examples = [test for test in doctest.DocTestFinder().find(_counts, globs={"da": da}) if test.examples]
    assert len(examples) == 7
    for test in examples:
        assert not doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed, test.name
