"""drupe.array.random: number for number NumPy's where it promises that, of the right law elsewhere."""
import doctest
import math
import pickle
import threading

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe.array import _distributions, _drawing, random

SEEDS = (0, 42, 2**40 + 7, [1, 2, 3, 4, 5], 2**130)


def pair(seed, device):
    return random.default_rng(seed, device=device), np.random.Generator(np.random.Philox(seed))


def same(ours, theirs):
    ours = ours.asnumpy()
    assert ours.dtype == theirs.dtype and ours.shape == np.shape(theirs) and (ours == theirs).all()


def test_numbers_that_mean_nothing_are_refused(device):
    """By the C function that draws, which is private but takes any numbers."""
    state = random.default_rng(1, device=device)._state
    for what, law in ((5, 0), (-1, 0), (4, 1000), (4, -1), (4, 2**31 - 1), (0, 77)):
        with pytest.raises(ValueError, match="is no kind of random numbers"):
            drupe._engine._random(state, what, law, da.float64, (3,), 1, 1, 1)
    state[11 - 1] = 9  # words taken of a block of four
    with pytest.raises(ValueError, match="9 words of a block of 4"):
        drupe._engine._random(state, 1, 0, da.int64, (3,), 0, 5, 0).asnumpy()


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_numbers_are_numpys(device, seed):
    ours, theirs = pair(seed, device)
    for size in (1, 5, (3, 7), 100_001, 2):
        same(ours.random(size), theirs.random(size))
        same(ours.random(size, dtype="float32"), theirs.random(size, dtype="float32"))
        same(ours.uniform(-2, 5, size), theirs.uniform(-2, 5, size))
    same(ours.random(), np.asarray(theirs.random()))
    assert ours.bytes(13) == theirs.bytes(13)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_are_numpys(device, dtype):
    ours, theirs = pair(7, device)
    limits = [(0, 1), (0, 2), (0, 100), (-5, 7), (0, 256), (0, 60_000), (0, 2**16), (0, 3_000_000_000), (0, 2**31 + 1),
              (0, 2**32), (0, 2**33 + 5), (-2**62, 2**62 + 3), (0, 2**63), (0, 2**64)]
    for low, high in limits:
        for size in (3, 5001):
            try:
                wanted = theirs.integers(low, high, size, dtype=dtype)
            except ValueError:
                with pytest.raises(ValueError, match="out of bounds"):
                    ours.integers(low, high, size, dtype=dtype)
                continue
            same(ours.integers(low, high, size, dtype=dtype), wanted)
    same(ours.integers(1, 6, 100, endpoint=True), theirs.integers(1, 6, 100, endpoint=True))


def test_orders_and_samples_are_numpys(device):
    ours, theirs = pair(3, device)
    for n in (0, 1, 2, 1000):
        same(ours.permutation(n), theirs.permutation(n))
    for n, count in ((100, 10), (5, 5), (100_000, 50), (20_000, 5000)):
        for shuffle in (True, False):
            same(ours.choice(n, count, replace=False, shuffle=shuffle),
                 theirs.choice(n, count, replace=False, shuffle=shuffle))
    same(ours.choice(50, (3, 4)), theirs.choice(50, (3, 4)))


def test_orders_of_arrays_are_numpys(device):
    ours, theirs = pair(4, device)
    x = np.arange(60).reshape(5, 4, 3)
    d = da.asarray(x, device=device)
    for axis in (0, 1, 2):
        same(ours.permutation(d, axis=axis), theirs.permutation(x, axis=axis))
    same(ours.choice(d, (2, 3), axis=1), theirs.choice(x, (2, 3), axis=1))
    same(ours.choice(d, 2, replace=False), theirs.choice(x, 2, replace=False))
    line, copy = np.arange(100), da.arange(100, device=device)
    theirs.shuffle(line)
    ours.shuffle(copy)
    same(copy, line)


def test_lines_in_orders_of_their_own(device):
    d = da.broadcast_to(da.arange(50, device=device), (40, 50)).copy()
    result = random.default_rng(1, device=device).permuted(d, axis=1).asnumpy()
    assert (np.sort(result, 1) == np.arange(50)).all() and len({tuple(row) for row in result}) == 40


def test_weighted_choices(device):
    rng, theirs = pair(5, device)
    p = [0.1, 0, 0.3, 0.6]
    same(rng.choice(4, 1000, p=p), theirs.choice(4, 1000, p=p))
    counts = np.bincount(np.concatenate([rng.choice(4, 2, replace=False, p=p).asnumpy() for _ in range(500)]))
    assert counts[1] == 0 and counts[3] > counts[2] > counts[0]
    for wrong, text in (([0.5, 0.6, 0, 0], "sum to 1"), ([-0.5, 1.5, 0, 0], "non-negative"), ([1.0], "same size")):
        with pytest.raises(ValueError, match=text):
            rng.choice(4, p=wrong)


def test_children_are_numpys(device):
    ours, theirs = pair(11, device)
    for child, twin in zip(ours.spawn(2) + ours.spawn(1), theirs.spawn(3)):
        same(child.random(4), twin.random(4))
    grandchild = ours.spawn(1)[0].spawn(1)[0]
    same(grandchild.random(2), theirs.spawn(1)[0].spawn(1)[0].random(2))
    same(random.default_rng(np.random.SeedSequence(5), device=device).random(3),
         np.random.Generator(np.random.Philox(np.random.SeedSequence(5))).random(3))


def test_state_comes_and_goes(device):
    ours, theirs = pair(2, device)
    ours.random(7, dtype="float32")
    theirs.random(7, dtype="float32")
    state, twin = ours.bit_generator.state, theirs.bit_generator.state
    assert state["bit_generator"] == twin["bit_generator"]
    assert [*state["state"]["counter"], *state["state"]["key"]] == [*twin["state"]["counter"], *twin["state"]["key"]]
    assert list(state["buffer"]) == list(twin["buffer"])
    assert [state[k] for k in ("buffer_pos", "has_uint32", "uinteger")] == \
        [twin[k] for k in ("buffer_pos", "has_uint32", "uinteger")]
    wanted = theirs.random(9)
    same(ours.random(9), wanted)
    ours.bit_generator.state = twin  # NumPy's own
    same(ours.random(9), wanted)
    again = pickle.loads(pickle.dumps(ours))
    same(again.random(5), ours.random(5).asnumpy())
    theirs.bit_generator.state = ours.bit_generator.state
    same(ours.random(3), theirs.random(3))
    ours.bit_generator.advance(10)
    theirs.bit_generator.advance(10)
    same(ours.random(3), theirs.random(3))


@pytest.mark.parametrize("key, value", [("buffer_pos", 5), ("buffer_pos", -1), ("has_uint32", 2), ("uinteger", 2**32),
                                        ("buffer", (0, 0, 0, 2**64))])
def test_states_that_cannot_be(device, key, value):
    generator = random.default_rng(2, device=device)
    state = generator.bit_generator.state
    with pytest.raises(ValueError, match="state of a Philox generator"):
        generator.bit_generator.state = {**state, key: value}
    assert generator.bit_generator.state == state


# --- Laws: moments and the distance of the distribution function (Kolmogorov and Smirnov), with fixed seeds ---------

N = 40_000


def normal_cdf(x):
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


@pytest.mark.parametrize("draw, cdf", [
    (lambda g: g.normal(1, 2, N), lambda x: normal_cdf((x - 1) / 2)),
    (lambda g: g.standard_normal(N, dtype="float32"), normal_cdf),
    (lambda g: g.lognormal(0.2, 0.5, N), lambda x: normal_cdf((np.log(x) - 0.2) / 0.5)),
    (lambda g: g.exponential(2, N), lambda x: 1 - np.exp(-x / 2)),
    (lambda g: g.gamma(1, 3, N), lambda x: 1 - np.exp(-x / 3)),
    (lambda g: g.gamma(3, 1, N), lambda x: 1 - np.exp(-x) * (1 + x + x * x / 2)),
    (lambda g: g.gamma(0.5, 1, N), lambda x: 2 * normal_cdf(np.sqrt(2 * x)) - 1),
    (lambda g: g.chisquare(4, N), lambda x: 1 - np.exp(-x / 2) * (1 + x / 2)),
    (lambda g: g.beta(1, 3, N), lambda x: 1 - (1 - x) ** 3),
    (lambda g: g.beta(0.5, 0.5, N), lambda x: 2 / np.pi * np.arcsin(np.sqrt(x))),
    (lambda g: g.laplace(1, 2, N), lambda x: np.where(x < 1, np.exp((x - 1) / 2) / 2, 1 - np.exp((1 - x) / 2) / 2)),
    (lambda g: g.logistic(1, 2, N), lambda x: 1 / (1 + np.exp((1 - x) / 2))),
    (lambda g: g.gumbel(1, 2, N), lambda x: np.exp(-np.exp((1 - x) / 2))),
    (lambda g: g.weibull(1.5, N), lambda x: 1 - np.exp(-x ** 1.5)),
    (lambda g: g.pareto(1.5, N), lambda x: 1 - (1 + x) ** -1.5),
    (lambda g: g.power(3, N), lambda x: x ** 3),
    (lambda g: g.rayleigh(2, N), lambda x: 1 - np.exp(-x * x / 8)),
    (lambda g: g.triangular(-1, 0.5, 3, N),
     lambda x: np.where(x < 0.5, (x + 1) ** 2 / 6, 1 - (3 - x) ** 2 / 10)),
    (lambda g: g.standard_t(1, N), lambda x: 0.5 + np.arctan(x) / np.pi),
    (lambda g: g.standard_cauchy(N), lambda x: 0.5 + np.arctan(x) / np.pi),
    (lambda g: g.f(2, 4, N), lambda x: 1 - (1 + x / 2) ** -2),
    (lambda g: g.dirichlet([1.0, 2.0], N)[:, 0], lambda x: 1 - (1 - x) ** 2)])
def test_distribution_functions(device, draw, cdf):
    x = np.sort(draw(random.default_rng(12, device=device)).asnumpy().astype(float))
    chances = cdf(x)
    distance = max((np.arange(1, N + 1) / N - chances).max(), (chances - np.arange(N) / N).max())
    assert distance < 1.95 / math.sqrt(N)  # exceeded once of a thousand


@pytest.mark.parametrize("draw, mean, variance", [
    (lambda g: g.poisson(0.3, N), 0.3, 0.3), (lambda g: g.poisson(9.5, N), 9.5, 9.5),
    (lambda g: g.poisson(1e6, N), 1e6, 1e6), (lambda g: g.binomial(10, 0.25, N), 2.5, 1.875),
    (lambda g: g.binomial(1000, 0.9, N), 900, 90), (lambda g: g.geometric(0.2, N), 5, 20),
    (lambda g: g.negative_binomial(3, 0.4, N), 4.5, 11.25), (lambda g: g.gamma(50, 2, N), 100, 200),
    (lambda g: g.gamma(0.01, 1, N), 0.01, 0.01)])
def test_moments(device, draw, mean, variance):
    x = draw(random.default_rng(8, device=device)).asnumpy().astype(float)
    assert abs(x.mean() - mean) < 4 * math.sqrt(variance / N)
    assert abs(x.var() / variance - 1) < (0.1 if mean > 0.1 else 0.4)


def test_small_counts_have_their_chances(device):
    g = random.default_rng(1, device=device)
    for x, chances in ((g.poisson(2, N), [math.exp(-2) * 2**k / math.factorial(k) for k in range(6)]),
                       (g.poisson(12, N), [math.exp(-12) * 12**k / math.factorial(k) for k in range(20)]),
                       (g.binomial(30, 0.5, N), [math.comb(30, k) / 2**30 for k in range(25)]),
                       (g.binomial(5, 0.3, N), [math.comb(5, k) * 0.3**k * 0.7**(5 - k) for k in range(6)])):
        counts = np.bincount(x.asnumpy(), minlength=len(chances))
        for k, chance in enumerate(chances):
            assert abs(counts[k] - N * chance) < 4.5 * math.sqrt(N * chance) + 1


def test_parameters_that_are_arrays(device):
    g = random.default_rng(3, device=device)
    scale = da.asarray([[1.0], [100.0]], device=device)
    x = g.exponential(scale, (2, 5000)).asnumpy()
    assert 0.9 < x[0].mean() < 1.1 and 90 < x[1].mean() < 110
    lam = da.asarray([0.0, 3.0, 50.0], device=device)
    assert g.poisson(lam).shape == (3,)
    assert np.allclose(g.poisson(lam, (3000, 3)).asnumpy().mean(0), [0, 3, 50], rtol=0.05)
    assert g.gamma([1.0, 2.0], 1.0).shape == (2,) and g.normal().shape == ()
    with pytest.raises(ValueError, match="broadcast"):
        g.poisson(lam, 4)


def test_results_do_not_depend_on_pieces_or_devices(device):
    one, other = random.default_rng(9, device=device), random.default_rng(9, device="host")
    for name, args in (("standard_normal", ()), ("poisson", (20,)), ("gamma", (0.3,)), ("binomial", (50, 0.5))):
        ours, theirs = (getattr(g, name)(*args, size=5000).asnumpy() for g in (one, other))
        assert (ours == theirs).all()


@pytest.mark.parametrize("wrong, error, text", [
    (lambda g: g.integers(5, 5), ValueError, "low >= high"), (lambda g: g.integers(0, 300, dtype="int8"), ValueError,
                                                               "high is out of bounds for int8"),
    (lambda g: g.integers(3, dtype="float32"), TypeError, "Unsupported dtype float32"),
    (lambda g: g.random(3, dtype="int32"), TypeError, "float32 or float64, not int32"),
    (lambda g: g.normal(0, -1), ValueError, "scale must be at least 0, and -1 is not"),
    (lambda g: g.binomial(5, 1.5), ValueError, "p must be between 0 and 1"),
    (lambda g: g.poisson(-1), ValueError, "lam must be at least 0"),
    (lambda g: g.beta(0, 1), ValueError, "a must be above 0"),
    (lambda g: g.choice(5, 6, replace=False), ValueError, "larger sample than population"),
    (lambda g: g.choice(0, 1), ValueError, "positive integer"),
    (lambda g: g.shuffle([1, 2]), TypeError, "array of drupe.array, not list"),
    (lambda g: random.default_rng(-1), ValueError, "must not be negative"),
    (lambda g: random.default_rng("seed"), TypeError, "integer or a sequence of integers, not str"),
    (lambda g: setattr(g.bit_generator, "state", {}), ValueError, "Philox")])
def test_errors(device, wrong, error, text):
    with pytest.raises(error, match=text):
        wrong(random.default_rng(1, device=device))


def test_out(device):
    ours, theirs = pair(6, device)
    out = da.empty((3, 4), device=device)
    assert ours.random(out=out) is out
    same(out, theirs.random((3, 4)))


def test_a_draw_that_did_not_run(device):
    """What failed before a draw leaves the generator where it was, and the next draw goes on from there."""
    queue, other = drupe.Queue(device), da.random.default_rng(3, device=device)
    generator = da.random.default_rng(3, queue=queue)
    wrong = da.arange(10, queue=queue)[da.asarray([100], queue=queue)]
    lost = generator.random(5)
    for array in wrong, lost:
        with pytest.raises(IndexError, match="100"):
            array.asnumpy()
    for draw in ("random", "standard_normal"):
        np.testing.assert_array_equal(getattr(generator, draw)(4).asnumpy(), getattr(other, draw)(4).asnumpy())
    assert generator.bit_generator.state == other.bit_generator.state


def test_functions_of_the_module(device):
    with drupe.device(device):
        random.seed(42)
        first = random.rand(2, 3)
        same(first, np.random.Generator(np.random.Philox(42)).random((2, 3)))
        assert random.randn(4).shape == (4,) and random.randint(0, 5, 3).dtype == "int64"
        assert random.normal(0, 1, 2).device == random.uniform(size=2).device == device
        random.seed(42)
        same(random.random((2, 3)), first.asnumpy())


def test_distributions_are_functions_too(device):
    """NumPy's older names, of which the newer ones are methods."""
    with drupe.device(device):
        random.seed(3)
        first = [random.beta(1, 2, 3), random.vonmises(0, 1, size=2), random.random_sample(2)]
        g = random.default_rng(3, device=device)
        for ours, wanted in zip(first, (g.beta(1, 2, 3), g.vonmises(0, 1, size=2), g.random(2))):
            same(ours, wanted.asnumpy())
    for name in set(np.random.__all__) - set(random.__all__) - {"random_integers", "get_state", "set_state"}:
        assert isinstance(getattr(np.random, name), type), name
        with pytest.raises(AttributeError, match="default_rng"):
            getattr(random, name)


def test_threads_get_different_numbers(device):
    g, drawn = random.default_rng(1, device=device), []
    threads = [threading.Thread(target=lambda: drawn.extend(g.random(100) for _ in range(20))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    numbers = np.concatenate([x.asnumpy() for x in drawn])
    assert len(np.unique(numbers)) == 8000
    assert (np.sort(numbers) == np.sort(np.random.Generator(np.random.Philox(1)).random(8000))).all()


def test_examples_hold():
    finder = doctest.DocTestFinder(recurse=True)
    examples = [test for part in (random, _drawing, _distributions) for test in finder.find(part, globs={"da": da})
                if test.examples]
    every = {getattr(random, name).__name__ for name in random.__all__}
    assert {test.name.rpartition(".")[2] for test in examples} >= every - {"Generator", "SeedSequence"}
    for test in examples:
        assert not doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed, test.name
