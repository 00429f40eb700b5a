"""Random numbers, with the names of numpy.random.

default_rng(seed) gives a Generator whose numbers are made by Philox4x64-10. random(), uniform(), integers(), bytes(),
permutations and choices are, number for number, those of

    numpy.random.Generator(numpy.random.Philox(seed))

on every device, in whatever pieces they are drawn. The other distributions are NumPy's by law but not by number: they
take two words of the generator per draw as the key of streams of their own, so that many are made at a time.

The state of a generator lives on its queue, and drawing is work of that queue: nothing waits. Two threads that draw
from one generator get different numbers. `size` is the shape of the result; None is the shape that the parameters
broadcast to, () when all are numbers: an Array, not a number of Python. Parameters are numbers or arrays on the
generator's queue.

>>> rng = drupe.array.random.default_rng(42)
>>> rng.random(3)
"""
import math
import operator
import threading

from drupe import _engine
from drupe.array._axes import one_axis
from drupe.array._seeding import SeedSequence

__all__ = ["Generator", "SeedSequence", "choice", "default_rng", "normal", "permutation", "rand", "randint", "randn",
           "random", "seed", "shuffle", "standard_normal", "uniform"]

_ops = _engine.operations
_UNIFORM, _INTEGERS, _PERMUTATION, _SAMPLE, _LAW = range(5)  # drupe_random_what
_NORMAL, _EXPONENTIAL, _GAMMA, _BETA, _POISSON, _BINOMIAL = range(6)  # drupe_random_law_name
_SIGN = 1 << 63


def _shape(size):
    """A shape from size=, or None."""
    if size is None:
        return None
    if isinstance(size, (tuple, list)):
        return tuple(operator.index(n) for n in size)
    return (operator.index(size),)


def _signed(word):
    return word - 2 * _SIGN if word & _SIGN else word


def _is_array(x):
    return isinstance(x, _engine.Array)


def _take(x, index, axis):
    """The elements at the places of an integer array of any shape along an axis."""
    from drupe.array import take
    taken = take(x, index.reshape(-1), axis=axis)
    return taken.reshape(x.shape[:axis] + index.shape + x.shape[axis + 1:])


def _check(name, x, good, rule):
    """Refuse a parameter that is a number and not `good`; elements of arrays give NaN instead."""
    if not _is_array(x) and not good(x):
        raise ValueError(f"{name} must be {rule}, and {x} is not")


def _positive(x):
    return x > 0


def _not_negative(x):
    return x >= 0


def _probability(x):
    return 0 <= x <= 1


class _BitGenerator:
    """The Philox generator behind a Generator: numpy.random.Philox's `state`, `advance` and `seed_seq`."""

    def __init__(self, generator):
        self._generator = generator

    @property
    def state(self):
        """A dict in the form of numpy.random.Philox().state, whose words are integers of Python; waits. It can be set,
        also to a dict of NumPy's."""
        words = [word & (2 * _SIGN - 1) for word in self._generator._state.tolist()]
        return {"bit_generator": "Philox", "state": {"counter": tuple(words[2:6]), "key": tuple(words[:2])},
                "buffer": tuple(words[6:10]), "buffer_pos": words[10], "has_uint32": words[11], "uinteger": words[12]}

    @state.setter
    def state(self, value):
        if not isinstance(value, dict) or value.get("bit_generator") != "Philox":
            raise ValueError("state must be for a Philox generator: a dict as this property gives it")
        words = [*value["state"]["key"], *value["state"]["counter"], *value["buffer"], value["buffer_pos"],
                 value["has_uint32"], value["uinteger"]]
        self._generator._write([int(word) for word in words])

    @property
    def seed_seq(self):
        """The SeedSequence that the key comes from."""
        return self._generator._seed

    def advance(self, delta):
        """Move on as if `delta` blocks of four words had been drawn; what is left of a block is dropped. Waits."""
        state = self.state
        counter = sum(word << 64 * i for i, word in enumerate(state["state"]["counter"]))
        counter = (counter + operator.index(delta)) % 2**256
        state["state"]["counter"] = tuple(counter >> 64 * i & 2**64 - 1 for i in range(4))
        self.state = {**state, "buffer": (0, 0, 0, 0), "buffer_pos": 4, "has_uint32": 0, "uinteger": 0}
        return self

    def spawn(self, n_children):
        """Bit generators of `n_children` new generators."""
        return [child.bit_generator for child in self._generator.spawn(n_children)]


class Generator:
    """A source of random numbers on one queue; made by default_rng()."""

    def __init__(self, seed, queue):
        self._seed = seed
        self._state = _engine.empty(13, "int64", queue=queue)
        self._write([*seed.key(), 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0])

    def _write(self, words):
        if len(words) != 13:
            raise ValueError("the state of a Philox generator has 2 words of key, 4 of counter and 4 of buffer")
        self._state[...] = _engine.asarray([_signed(word) for word in words], "int64", queue=self._state.queue)

    def __repr__(self):
        return f"Generator(Philox) on {self.device.filter_string}"

    def __reduce__(self):
        return _restored, (self._seed.entropy, self._seed.spawn_key, self._seed.n_children_spawned,
                           self.bit_generator.state, self.device.filter_string)

    @property
    def queue(self):
        """The queue whose work the numbers are."""
        return self._state.queue

    @property
    def device(self):
        """The device that the numbers are for."""
        return self._state.device

    @property
    def bit_generator(self):
        """The generator's state, seed and position: see numpy.random.Philox."""
        return _BitGenerator(self)

    def spawn(self, n_children):
        """So many independent generators on the same queue, as numpy.random.Generator.spawn() makes them."""
        return [Generator(seed, self.queue) for seed in self._seed.spawn(operator.index(n_children))]

    # --- What the engine draws ---------------------------------------------------------------------------------------

    def _float(self, dtype):
        """The type of floats: float64 unless given, float32 where there is none."""
        if dtype is None:
            return "float64" if self.device.has_aspect_fp64 else "float32"
        if (dtype := _engine.DType(dtype)) not in ("float32", "float64"):
            raise TypeError(f"random numbers are float32 or float64, not {dtype}")
        return dtype

    def _draw(self, what, dtype, shape, x=0, y=0, law=0):
        return _engine._random(self._state, what, law, dtype, shape, x, y)

    def _law(self, law, dtype, size, *parameters):
        """A distribution of the engine; parameters broadcast to the shape."""
        from drupe.array import broadcast_shapes
        parameters = [p if _is_array(p) or not hasattr(p, "__len__") else self._placed(p) for p in parameters]
        common = broadcast_shapes(*[p.shape for p in parameters if _is_array(p)])
        shape = _shape(size)
        if shape is None:
            shape = common
        elif broadcast_shapes(shape, common) != shape:
            raise ValueError(f"parameters of shape {common} do not broadcast to size {shape}")
        given = [_engine.broadcast_to(p, shape).astype("float64").copy() if _is_array(p) else float(p)
                 for p in parameters]
        return self._draw(_LAW, dtype, shape, *(given + [0.0, 0.0])[:2], law=law)

    def _placed(self, x):
        return x if _is_array(x) else _engine.asarray(x, queue=self.queue)

    def _spread(self, size, *parameters):
        """The shape of a result whose parameters are applied to standard numbers."""
        from drupe.array import broadcast_shapes
        common = broadcast_shapes(*[p.shape for p in parameters if _is_array(p)])
        shape = _shape(size)
        if shape is not None and broadcast_shapes(shape, common) != shape:
            raise ValueError(f"parameters of shape {common} do not broadcast to size {shape}")
        return common if shape is None else shape

    def _parameters(self, *parameters):
        return [self._placed(p) if hasattr(p, "__len__") and not _is_array(p) else p for p in parameters]

    @staticmethod
    def _given(result, out):
        if out is None:
            return result
        if out.shape != result.shape:
            raise ValueError(f"out has shape {out.shape}, and the numbers have {result.shape}")
        out[...] = result
        return out

    # --- Uniform numbers ---------------------------------------------------------------------------------------------

    def random(self, size=None, dtype=None, out=None):
        """Numbers of [0, 1), as NumPy's of the same seed. dtype: float64 (53 random bits) or float32 (24)."""
        dtype = out.dtype if out is not None and dtype is None else self._float(dtype)
        size = out.shape if out is not None and size is None else size
        return self._given(self._draw(_UNIFORM, dtype, _shape(size) or () if size is not None else ()), out)

    def uniform(self, low=0.0, high=1.0, size=None):
        """Numbers of [low, high), as NumPy's of the same seed."""
        low, high = self._parameters(low, high)
        x = self.random(self._spread(size, low, high))
        return x * (high - low) + low

    def integers(self, low, high=None, size=None, dtype="int64", endpoint=False):
        """Integers of low ... high - 1, or with endpoint=True ... high; with one limit from 0 on. As NumPy's of the
        same seed. dtype: an integer type or bool. ValueError for limits that the type cannot hold, and for none."""
        low, high = (0, low) if high is None else (low, high)
        dtype = _engine.DType(dtype)
        if dtype.kind not in "biu":
            raise TypeError(f"Unsupported dtype {dtype} for integers")
        if _is_array(low) or _is_array(high):
            raise TypeError("integers: low and high are numbers here; scale what random() gives for arrays of limits")
        low, high = math.floor(low), math.floor(high) - (not endpoint)
        bits = 8 * dtype.itemsize
        least, most = {"b": (0, 1), "u": (0, 2**bits - 1), "i": (-2**(bits - 1), 2**(bits - 1) - 1)}[dtype.kind]
        if low < least:
            raise ValueError(f"low is out of bounds for {dtype}")
        if high > most:
            raise ValueError(f"high is out of bounds for {dtype}")
        if low > high:
            raise ValueError("low > high" if endpoint else "low >= high")
        return self._draw(_INTEGERS, dtype, _shape(size) or () if size is not None else (), low, high - low)

    def bytes(self, length):
        """So many random bytes, as NumPy's of the same seed; waits."""
        length = operator.index(length)
        words = self.integers(0, 2**32 - 1, size=(length - 1) // 4 + 1, dtype="uint32", endpoint=True).tolist()
        return b"".join(word.to_bytes(4, "little") for word in words)[:length]

    # --- Orders and choices ------------------------------------------------------------------------------------------

    def permutation(self, x, axis=0):
        """The integers below x in random order, or the elements of x along an axis in random order, as a copy."""
        if not _is_array(x) and hasattr(x, "__index__"):
            return self._draw(_PERMUTATION, "int64", (operator.index(x),))
        x = self._placed(x)
        axis = one_axis(axis, x.ndim)
        return _take(x, self._draw(_PERMUTATION, "int64", (x.shape[axis],)), axis)

    def shuffle(self, x, axis=0):
        """Bring the elements of x along an axis into random order, in place."""
        if not _is_array(x):
            raise TypeError(f"shuffle changes an array of drupe.array, not {type(x).__name__}")
        x[...] = self.permutation(x, axis)

    def permuted(self, x, *, axis=None, out=None):
        """A copy of x, each line along the axis in a random order of its own; None: all elements in one."""
        from drupe.array import argsort, take_along_axis
        x = self._placed(x)
        if axis is None:
            return self._given(self.permutation(x.reshape(-1)).reshape(x.shape), out)
        axis = one_axis(axis, x.ndim)
        # Orders from random keys: 53 bits each, so that no two keys of a line are the same but once in a lifetime.
        return self._given(take_along_axis(x, argsort(self.random(x.shape), axis=axis), axis=axis), out)

    def choice(self, a, size=None, replace=True, p=None, axis=0, shuffle=True):
        """Elements of a along an axis, or integers below a, taken at random; as NumPy's of the same seed unless
        probabilities are given without replacement. p: the probability of each; they add up to 1.

        ValueError for a sample that is larger than what it is taken from, and for probabilities that are none."""
        population = self._placed(a) if _is_array(a) or hasattr(a, "__len__") else operator.index(a)
        axis = one_axis(axis, population.ndim) if _is_array(population) else 0
        n = population.shape[axis] if _is_array(population) else population
        shape = _shape(size) or () if size is not None else ()
        count = math.prod(shape)
        if n <= 0 and count:
            raise ValueError("a cannot be empty unless no samples are taken" if _is_array(population)
                             else "a must be a positive integer unless no samples are taken")
        if p is not None:
            index = self._weighted(n, shape, count, replace, self._weights(p, n))
        elif replace:
            index = self._draw(_INTEGERS, "int64", shape, 0, max(n - 1, 0))
        elif count > n:
            raise ValueError("Cannot take a larger sample than population when replace is False")
        else:
            index = self._sample(n, count, shuffle).reshape(shape)
        return _take(population, index, axis) if _is_array(population) else index

    def _sample(self, n, count, shuffle):
        if n > 10000 and count > n // (50 if shuffle else 20):
            return self._draw(_SAMPLE, "int64", (count,), n, 2)
        return self._draw(_SAMPLE, "int64", (count,), n, bool(shuffle))

    def _weights(self, p, n):
        p = self._placed(p).astype("float64")
        if p.ndim != 1 or p.shape[0] != n:
            raise ValueError("p must be 1-dimensional" if p.ndim != 1 else "a and p must have same size")
        values = p.tolist()
        if not all(value >= 0 for value in values):
            raise ValueError("Probabilities are not non-negative")
        if abs(math.fsum(values) - 1) > 1.5e-8:
            raise ValueError("Probabilities do not sum to 1")
        return p

    def _weighted(self, n, shape, count, replace, p):
        from drupe.array import argsort, cumulative_sum, searchsorted
        if replace:
            total = cumulative_sum(p)
            return searchsorted(total / total[-1], self.random(shape), side="right")
        if sum(value > 0 for value in p.tolist()) < count:
            raise ValueError("Fewer non-zero entries in p than size")
        # The smallest of exponential numbers divided by the weights are a sample: Efraimidis and Spirakis, 2006.
        return argsort(self.standard_exponential(n) / p)[:count].reshape(shape)

    # --- Distributions of the engine ---------------------------------------------------------------------------------

    def standard_normal(self, size=None, dtype=None, out=None):
        """Normal numbers of mean 0 and deviation 1, by the ziggurat. dtype: float64 or float32."""
        dtype = out.dtype if out is not None and dtype is None else self._float(dtype)
        return self._given(self._law(_NORMAL, dtype, out.shape if out is not None and size is None else size), out)

    def standard_exponential(self, size=None, dtype=None, method="zig", out=None):
        """Exponential numbers of mean 1, by the ziggurat; `method` is not looked at."""
        dtype = out.dtype if out is not None and dtype is None else self._float(dtype)
        return self._given(self._law(_EXPONENTIAL, dtype, out.shape if out is not None and size is None else size), out)

    def standard_gamma(self, shape, size=None, dtype="float64", out=None):
        """Gamma numbers of a shape and scale 1, by Marsaglia's and Tsang's method."""
        _check("shape", shape, _not_negative, "at least 0")
        x = self._law(_GAMMA, "float64", out.shape if out is not None and size is None else size, shape)
        return self._given(x if out is not None or dtype == "float64" else x.astype(self._float(dtype)), out)

    def beta(self, a, b, size=None):
        """Beta numbers, from two gamma numbers."""
        _check("a", a, _positive, "above 0")
        _check("b", b, _positive, "above 0")
        return self._law(_BETA, "float64", size, a, b)

    def poisson(self, lam=1.0, size=None):
        """Poisson numbers, int64: by multiplication below a mean of 10, by transformed rejection above."""
        _check("lam", lam, _not_negative, "at least 0")
        _check("lam", lam, lambda x: x < 9.2e18, "below 9.2e18")
        return self._law(_POISSON, "int64", size, lam)

    def binomial(self, n, p, size=None):
        """How many of n trials of probability p succeed, int64."""
        _check("n", n, _not_negative, "at least 0")
        _check("p", p, _probability, "between 0 and 1")
        return self._law(_BINOMIAL, "int64", size, n, p)

    # --- Distributions made of these ---------------------------------------------------------------------------------

    def normal(self, loc=0.0, scale=1.0, size=None):
        """Normal numbers of mean `loc` and deviation `scale`."""
        loc, scale = self._parameters(loc, scale)
        _check("scale", scale, _not_negative, "at least 0")
        return self.standard_normal(self._spread(size, loc, scale)) * scale + loc

    def _exponentials(self, size, *parameters):
        return self.standard_exponential(self._spread(size, *parameters))

    def exponential(self, scale=1.0, size=None):
        """Exponential numbers of mean `scale`."""
        (scale,) = self._parameters(scale)
        _check("scale", scale, _not_negative, "at least 0")
        return self._exponentials(size, scale) * scale

    def gamma(self, shape, scale=1.0, size=None):
        """Gamma numbers of a shape and scale."""
        shape, scale = self._parameters(shape, scale)
        _check("scale", scale, _not_negative, "at least 0")
        return self.standard_gamma(shape, self._spread(size, shape, scale)) * scale

    def lognormal(self, mean=0.0, sigma=1.0, size=None):
        """Numbers whose logarithm is normal."""
        return _ops["exp"](self.normal(mean, sigma, size))

    def laplace(self, loc=0.0, scale=1.0, size=None):
        """Laplace numbers: differences of two exponential ones."""
        loc, scale = self._parameters(loc, scale)
        _check("scale", scale, _not_negative, "at least 0")
        shape = self._spread(size, loc, scale)
        return (self.standard_exponential(shape) - self.standard_exponential(shape)) * scale + loc

    def logistic(self, loc=0.0, scale=1.0, size=None):
        """Logistic numbers."""
        loc, scale = self._parameters(loc, scale)
        _check("scale", scale, _not_negative, "at least 0")
        return _ops["log"](_ops["expm1"](self._exponentials(size, loc, scale))) * scale + loc

    def gumbel(self, loc=0.0, scale=1.0, size=None):
        """Gumbel numbers, of the largest of many."""
        loc, scale = self._parameters(loc, scale)
        _check("scale", scale, _not_negative, "at least 0")
        return loc - _ops["log"](self._exponentials(size, loc, scale)) * scale

    def weibull(self, a, size=None):
        """Weibull numbers of shape a and scale 1."""
        (a,) = self._parameters(a)
        _check("a", a, _positive, "above 0")
        return self._exponentials(size, a) ** (1.0 / a)

    def pareto(self, a, size=None):
        """Numbers of the Pareto distribution that begins at 0 (Lomax's), of shape a."""
        (a,) = self._parameters(a)
        _check("a", a, _positive, "above 0")
        return _ops["expm1"](self._exponentials(size, a) / a)

    def power(self, a, size=None):
        """Numbers of [0, 1] whose density is a x^(a - 1)."""
        (a,) = self._parameters(a)
        _check("a", a, _positive, "above 0")
        return _ops["exp"](-self._exponentials(size, a) / a)

    def rayleigh(self, scale=1.0, size=None):
        """Rayleigh numbers."""
        (scale,) = self._parameters(scale)
        _check("scale", scale, _not_negative, "at least 0")
        return _ops["sqrt"](self._exponentials(size, scale) * 2.0) * scale

    def triangular(self, left, mode, right, size=None):
        """Numbers from left to right whose density rises up to `mode` and falls behind it."""
        left, mode, right = self._parameters(left, mode, right)
        if not any(_is_array(x) for x in (left, mode, right)) and not (left <= mode <= right and left < right):
            raise ValueError("triangular: left <= mode <= right and left < right are required")
        u = self.random(self._spread(size, left, mode, right))
        rising = u * (right - left) < mode - left
        low = left + _ops["sqrt"](u * ((right - left) * (mode - left)))
        high = right - _ops["sqrt"]((1.0 - u) * ((right - left) * (right - mode)))
        return rising.astype(u.dtype) * (low - high) + high

    def geometric(self, p, size=None):
        """How many trials of probability p the first success takes, int64."""
        (p,) = self._parameters(p)
        _check("p", p, lambda x: 0 < x <= 1, "above 0 and at most 1")
        if not _is_array(p):
            rate = -math.log1p(-p) if p < 1 else math.inf
        else:
            rate = -_ops["log1p"](-p)
        trials = _ops["floor"](self._exponentials(size, p) / rate) + 1.0
        return _ops["minimum"](trials, 9.2e18).astype("int64")

    def negative_binomial(self, n, p, size=None):
        """How many failures come before n successes of probability p, int64."""
        n, p = self._parameters(n, p)
        _check("n", n, _positive, "above 0")
        _check("p", p, lambda x: 0 < x <= 1, "above 0 and at most 1")
        return self.poisson(self.gamma(n, (1.0 - p) / p, size))

    def chisquare(self, df, size=None):
        """Sums of the squares of df normal numbers."""
        (df,) = self._parameters(df)
        _check("df", df, _positive, "above 0")
        return self.standard_gamma(df / 2.0, size) * 2.0

    def f(self, dfnum, dfden, size=None):
        """Ratios of two chi-square numbers, each divided by its degrees of freedom."""
        dfnum, dfden = self._parameters(dfnum, dfden)
        shape = self._spread(size, dfnum, dfden)
        return self.chisquare(dfnum, shape) / dfnum / (self.chisquare(dfden, shape) / dfden)

    def standard_t(self, df, size=None):
        """Student's t of df degrees of freedom."""
        (df,) = self._parameters(df)
        shape = self._spread(size, df)
        return self.standard_normal(shape) / _ops["sqrt"](self.chisquare(df, shape) / df)

    def standard_cauchy(self, size=None):
        """Cauchy numbers: ratios of two normal ones."""
        return self.standard_normal(size) / self.standard_normal(size)

    def dirichlet(self, alpha, size=None):
        """Vectors of positive numbers that add up to 1: gamma numbers of shapes alpha, divided by their sum."""
        alpha = self._placed(alpha)
        if alpha.ndim != 1:
            raise ValueError("alpha must be 1-dimensional")
        x = self.standard_gamma(alpha, (_shape(size) or ()) + alpha.shape)
        return x / _ops["sum"](x, axis=-1, keepdims=True)

    def multivariate_normal(self, mean, cov, size=None):
        """Normal vectors of a mean (n elements) and a covariance (n x n, positive definite), which is taken apart by
        Cholesky's method. ValueError where that fails or shapes do not match."""
        from drupe.array import linalg
        mean, cov = self._parameters(mean, cov)
        if mean.ndim != 1 or cov.ndim != 2 or cov.shape != mean.shape * 2:
            raise ValueError("mean must be 1-dimensional, and cov square and as long")
        factor = linalg.cholesky(cov.astype("float64"))
        n = mean.shape[0]
        shape = (_shape(size) or ()) + (n,)
        x = self.standard_normal((math.prod(shape[:-1]), n))
        return (_engine.matmul(x, _engine.permute_dims(factor, (1, 0))) + mean).reshape(shape)


def _restored(entropy, spawn_key, n_children, state, device):
    generator = Generator(SeedSequence(entropy, spawn_key=spawn_key, n_children_spawned=n_children),
                          _engine.empty(0, device=device).queue)
    generator.bit_generator.state = state
    return generator


def default_rng(seed=None, *, device=None, queue=None):
    """A Generator on a device or queue, the default one unless given.

    seed: a non-negative integer, a sequence of them, a SeedSequence (NumPy's too), or None for one of the system's; a
    Generator is returned as it is. The same seed gives the same numbers on every device, those of
    numpy.random.Generator(numpy.random.Philox(seed))."""
    if isinstance(seed, Generator):
        return seed
    if not isinstance(seed, SeedSequence):
        if hasattr(seed, "spawn_key"):
            seed = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, n_children_spawned=seed.n_children_spawned)
        else:
            seed = SeedSequence(seed)
    return Generator(seed, _engine.empty(0, device=device, queue=queue).queue)


# --- One generator for each queue, behind functions of the module ---------------------------------------------------

_lock = threading.Lock()
_defaults = {}  # queue: Generator, all from one seed
_root = SeedSequence()


def _default():
    queue = _engine.empty(0).queue
    with _lock:
        if queue not in _defaults:
            _defaults[queue] = Generator(_root if not _defaults else _root.spawn(1)[0], queue)
        return _defaults[queue]


def seed(seed=None):
    """Begin again with a seed: the functions of this module then give the numbers of default_rng(seed). Generators of
    further devices that they use are children of it, in the order of their first use."""
    global _root
    with _lock:
        _root = SeedSequence(seed)
        _defaults.clear()


def random(size=None):
    """Numbers of [0, 1) from the generator that all functions of this module share."""
    return _default().random(size)


def rand(*shape):
    """The same, with the shape as arguments."""
    return _default().random(shape)


def randn(*shape):
    """Standard normal numbers, with the shape as arguments."""
    return _default().standard_normal(shape)


def randint(low, high=None, size=None, dtype="int64"):
    """Integers of low ... high - 1; see Generator.integers()."""
    return _default().integers(low, high, size, dtype)


def uniform(low=0.0, high=1.0, size=None):
    """See Generator.uniform()."""
    return _default().uniform(low, high, size)


def normal(loc=0.0, scale=1.0, size=None):
    """See Generator.normal()."""
    return _default().normal(loc, scale, size)


def standard_normal(size=None):
    """See Generator.standard_normal()."""
    return _default().standard_normal(size)


def choice(a, size=None, replace=True, p=None):
    """See Generator.choice()."""
    return _default().choice(a, size, replace, p)


def permutation(x):
    """See Generator.permutation()."""
    return _default().permutation(x)


def shuffle(x):
    """See Generator.shuffle()."""
    _default().shuffle(x)
