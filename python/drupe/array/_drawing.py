"""What random generators are made of: state, uniform numbers, integers, orders, and the engine's distributions."""
import math
import operator

from drupe import _engine
from drupe.array._axes import one_axis

ops = _engine.operations
_UNIFORM, _INTEGERS, _PERMUTATION, _SAMPLE, _LAW = range(5)  # drupe_random_what
# drupe_random_law_name
_NORMAL, _EXPONENTIAL, _GAMMA, _BETA, VONMISES, _POISSON, _BINOMIAL, ZIPF, HYPERGEOMETRIC = range(9)
_SIGN = 1 << 63


def shape_of(size):
    """A shape from size=, or None."""
    if size is None:
        return None
    if isinstance(size, (tuple, list)):
        return tuple(operator.index(n) for n in size)
    return (operator.index(size),)


def _signed(word):
    return word - 2 * _SIGN if word & _SIGN else word


def is_array(x):
    return isinstance(x, _engine.Array)


def _take(x, index, axis):
    """The elements at the places of an integer array of any shape along an axis."""
    from drupe.array import take
    taken = take(x, index.reshape(-1), axis=axis)
    return taken.reshape(x.shape[:axis] + index.shape + x.shape[axis + 1:])


def check(name, x, good, rule):
    """Refuse a parameter that is a number and not `good`; elements of arrays give NaN instead."""
    if not hasattr(x, "__len__") and not good(x):
        raise ValueError(f"{name} must be {rule}, and {x} is not")


def positive(x):
    return x > 0


def not_negative(x):
    return x >= 0


def probability(x):
    return 0 <= x <= 1


def _laid_out(x, shape):
    """x with an element for each of a shape, in C order."""
    if x.shape != shape:
        x = _engine.broadcast_to(x, shape)
    return x if x.is_contiguous else x.copy()


def _extremes(dtype):
    """The least and the largest number of an integer type, or bool."""
    bits = 8 * dtype.itemsize
    return {"b": (0, 1), "u": (0, 2**bits - 1), "i": (-2**(bits - 1), 2**(bits - 1) - 1)}[dtype.kind]


def _limit(name, x, less, wide, least, most, dtype):
    """A limit of integers, number or array, less 1 if it is not among them; checked. Arrays become `wide`."""
    if not is_array(x):
        x = math.floor(x) - less
        outside = not least <= x <= most
    elif x.dtype.kind not in "biu":
        raise TypeError(f"{name} must be integers, not {x.dtype}")
    else:
        lower, upper = max(least + less, _extremes(x.dtype)[0]), min(most + less, _extremes(x.dtype)[1])
        outside = ops["any"]((x < lower) | (x > upper)).item()
        x = x.astype(wide, copy=False)
        x = x - 1 if less else x
    if outside:
        raise ValueError(f"{name} is out of bounds for {dtype}")
    return x


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


class Drawing:
    """A Generator without the distributions that are made of others."""

    def __init__(self, seed, queue):
        self._seed = seed
        self._state = _engine.empty(13, "int64", queue=queue)
        self._write([*seed.key(), 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0])

    def _write(self, words):
        if len(words) != 13:
            raise ValueError("the state of a Philox generator has 2 words of key, 4 of counter and 4 of buffer")
        most = [2 * _SIGN - 1] * 10 + [4, 1, 2**32 - 1]  # the engine trusts these
        if not all(0 <= word <= top for word, top in zip(words, most)):
            raise ValueError("in the state of a Philox generator words are from 0 to 2**64 - 1, buffer_pos is from 0 "
                             "to 4, has_uint32 0 or 1, and uinteger below 2**32")
        self._state[...] = _engine.asarray([_signed(word) for word in words], "int64", queue=self._state.queue)

    def __repr__(self):
        return f"Generator(Philox) on {self.device.filter_string}"

    def __reduce__(self):
        from drupe.array.random import restored
        return restored, (self._seed.entropy, self._seed.spawn_key, self._seed.n_children_spawned,
                          self.bit_generator.state, self.device.filter_string)

    @property
    def queue(self):
        """The Queue whose work the numbers are.

        >>> rng = da.random.default_rng(1)
        >>> rng.random(2).queue == rng.queue
        True
        """
        return self._state.queue

    @property
    def device(self):
        """The Device that the numbers are for.

        >>> da.random.default_rng(1, device="host").device.filter_string
        'host:cpu:0'
        """
        return self._state.device

    @property
    def bit_generator(self):
        """The generator's state, seed and position: an object with the members state, seed_seq, advance() and spawn()
        of numpy.random.Philox.

        >>> da.random.default_rng(1).bit_generator.state["buffer_pos"]
        4
        """
        return _BitGenerator(self)

    def spawn(self, n_children):
        """So many independent generators on the same queue, as numpy.random.Generator.spawn() makes them.

        >>> rng = da.random.default_rng(1)
        >>> len(rng.spawn(3))
        3
        """
        return [type(self)(seed, self.queue) for seed in self._seed.spawn(operator.index(n_children))]

    # --- What the engine draws ---------------------------------------------------------------------------------------

    def _float(self, dtype):
        """The type of floats: float64 unless given, float32 where there is none."""
        if dtype is None:
            return "float64" if self.device.has_aspect_fp64 else "float32"
        if (dtype := _engine.DType(dtype)) not in ("float32", "float64"):
            raise TypeError(f"random numbers are float32 or float64, not {dtype}")
        return dtype

    def _draw(self, what, dtype, shape, x=0, y=0, z=0, law=0):
        return _engine._random(self._state, what, law, dtype, shape, x, y, z)

    def _law(self, law, dtype, size, *parameters):
        """A distribution of the engine; parameters broadcast to the shape."""
        from drupe.array import broadcast_shapes
        parameters = [p if is_array(p) or not hasattr(p, "__len__") else self._placed(p) for p in parameters]
        common = broadcast_shapes(*[p.shape for p in parameters if is_array(p)])
        shape = shape_of(size)
        if shape is None:
            shape = common
        elif broadcast_shapes(shape, common) != shape:
            raise ValueError(f"parameters of shape {common} do not broadcast to size {shape}")
        given = [_laid_out(p.astype("float64", copy=False), shape) if is_array(p) else float(p) for p in parameters]
        return self._draw(_LAW, dtype, shape, *given, law=law)

    def _placed(self, x):
        return x if is_array(x) else _engine.asarray(x, queue=self.queue)

    def _spread(self, size, *parameters):
        """The shape of a result whose parameters are applied to standard numbers."""
        from drupe.array import broadcast_shapes
        common = broadcast_shapes(*[p.shape for p in parameters if is_array(p)])
        shape = shape_of(size)
        if shape is not None and broadcast_shapes(shape, common) != shape:
            raise ValueError(f"parameters of shape {common} do not broadcast to size {shape}")
        return common if shape is None else shape

    def _exponentials(self, size, *parameters):
        return self.standard_exponential(self._spread(size, *parameters))

    def _inner(self, size, *parameters):
        """Uniform numbers above 0: the one of 2^53 that is 0 becomes half of the next one."""
        return ops["maximum"](self.random(self._spread(size, *parameters)), 2.0**-54)

    def _parameters(self, *parameters):
        return [self._placed(p) if hasattr(p, "__len__") and not is_array(p) else p for p in parameters]

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
        """Numbers of [0, 1), as NumPy's of the same seed. dtype: float64 (53 random bits) or float32 (24).

        >>> da.random.default_rng(42).random(2).tolist()
        [0.08607763073528474, 0.14155732377913233]
        """
        dtype = out.dtype if out is not None and dtype is None else self._float(dtype)
        size = out.shape if out is not None and size is None else size
        return self._given(self._draw(_UNIFORM, dtype, shape_of(size) or () if size is not None else ()), out)

    def uniform(self, low=0.0, high=1.0, size=None):
        """Numbers of [low, high), as NumPy's of the same seed.

        >>> rng = da.random.default_rng(1)
        >>> rng.uniform(-1, 1, size=(2, 3)).shape
        (2, 3)
        """
        low, high = self._parameters(low, high)
        x = self.random(self._spread(size, low, high))
        return x * (high - low) + low

    def integers(self, low, high=None, size=None, dtype="int64", endpoint=False):
        """Integers of low ... high - 1, or with endpoint=True ... high; with one limit from 0 on. As NumPy's of the
        same seed. dtype: an integer type or bool.

        low, high: integers, or arrays of them with limits for each element; then the call waits, to check them. size: a
        shape, None for that of the limits. ValueError for limits that the type cannot hold, and for none.

        >>> da.random.default_rng(42).integers(1, 6, size=8, endpoint=True).tolist()
        [6, 1, 1, 1, 3, 2, 2, 6]
        """
        low, high = (0, low) if high is None else (low, high)
        dtype = _engine.DType(dtype)
        if dtype.kind not in "biu":
            raise TypeError(f"Unsupported dtype {dtype} for integers")
        if any(is_array(x) or hasattr(x, "__len__") for x in (low, high)):
            return self._integers_each(*self._parameters(low, high), size, dtype, endpoint)
        low, high = math.floor(low), math.floor(high) - (not endpoint)
        least, most = _extremes(dtype)
        if low < least:
            raise ValueError(f"low is out of bounds for {dtype}")
        if high > most:
            raise ValueError(f"high is out of bounds for {dtype}")
        if low > high:
            raise ValueError("low > high" if endpoint else "low >= high")
        return self._draw(_INTEGERS, dtype, shape_of(size) or () if size is not None else (), low, high - low)

    def _integers_each(self, low, high, size, dtype, endpoint):
        """integers() with arrays of limits, which are brought to int64, or to uint64 where that is the type."""
        least, most = _extremes(dtype)
        wide = "uint64" if dtype == "uint64" else "int64"
        low = _limit("low", low, 0, wide, least, most, dtype)
        top = _limit("high", high, not endpoint, wide, least, most, dtype)
        if ops["any"](low > top).item():
            raise ValueError("low > high" if endpoint else "low >= high")
        shape = self._spread(size, low, top)
        low, spread = (_laid_out(x, shape) if is_array(x) else x for x in (low, top - low))
        return self._draw(_INTEGERS, dtype, shape, low, spread)

    def bytes(self, length):
        """So many random bytes, as NumPy's of the same seed; waits.

        >>> rng = da.random.default_rng(1)
        >>> len(rng.bytes(5))
        5
        """
        length = operator.index(length)
        words = self.integers(0, 2**32 - 1, size=(length - 1) // 4 + 1, dtype="uint32", endpoint=True).tolist()
        return b"".join(word.to_bytes(4, "little") for word in words)[:length]

    # --- Orders and choices ------------------------------------------------------------------------------------------

    def permutation(self, x, axis=0):
        """The integers below x in random order, or the elements of x along an axis in random order, as a copy.

        >>> da.random.default_rng(1).permutation(5).tolist()
        [0, 3, 4, 1, 2]
        """
        if not is_array(x) and hasattr(x, "__index__"):
            return self._draw(_PERMUTATION, "int64", (operator.index(x),))
        x = self._placed(x)
        axis = one_axis(axis, x.ndim)
        return _take(x, self._draw(_PERMUTATION, "int64", (x.shape[axis],)), axis)

    def shuffle(self, x, axis=0):
        """Bring the elements of x along an axis into random order, in place.

        >>> rng = da.random.default_rng(1)
        >>> x = da.arange(4)
        >>> rng.shuffle(x)
        >>> sorted(x.tolist())
        [0, 1, 2, 3]
        """
        if not is_array(x):
            raise TypeError(f"shuffle changes an array of drupe.array, not {type(x).__name__}")
        x[...] = self.permutation(x, axis)

    def permuted(self, x, axis=None, out=None):
        """A copy of x, each line along the axis in a random order of its own; None: all elements in one.

        >>> rng = da.random.default_rng(1)
        >>> x = da.asarray([[1, 2, 3], [1, 2, 3]])
        >>> [sorted(row) for row in rng.permuted(x, axis=1).tolist()]
        [[1, 2, 3], [1, 2, 3]]
        """
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

        ValueError for a sample that is larger than what it is taken from, and for probabilities that are none.

        >>> rng = da.random.default_rng(1)
        >>> len(set(rng.choice(10, 4, replace=False).tolist()))
        4
        """
        population = self._placed(a) if is_array(a) or hasattr(a, "__len__") else operator.index(a)
        axis = one_axis(axis, population.ndim) if is_array(population) else 0
        n = population.shape[axis] if is_array(population) else population
        shape = shape_of(size) or () if size is not None else ()
        count = math.prod(shape)
        if n <= 0 and count:
            raise ValueError("a cannot be empty unless no samples are taken" if is_array(population)
                             else "a must be a positive integer unless no samples are taken")
        if p is not None:
            index = self._weighted(n, shape, count, replace, self._weights(p, n))
        elif replace:
            index = self._draw(_INTEGERS, "int64", shape, 0, max(n - 1, 0))
        elif count > n:
            raise ValueError("Cannot take a larger sample than population when replace is False")
        else:
            index = self._sample(n, count, shuffle).reshape(shape)
        return _take(population, index, axis) if is_array(population) else index

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
        """Normal numbers of mean 0 and deviation 1, by the ziggurat. dtype: float64 or float32.

        >>> rng = da.random.default_rng(1)
        >>> rng.standard_normal((2, 3), dtype="float32").dtype
        drupe.array.float32
        """
        dtype = out.dtype if out is not None and dtype is None else self._float(dtype)
        return self._given(self._law(_NORMAL, dtype, out.shape if out is not None and size is None else size), out)

    def standard_exponential(self, size=None, dtype=None, method="zig", out=None):
        """Exponential numbers of mean 1. method: "zig", the ziggurat, or "inv", the logarithm of uniform numbers, as
        NumPy's of the same seed. dtype: float64 or float32. ValueError: another method.

        >>> rng = da.random.default_rng(1)
        >>> bool((rng.standard_exponential(100) > 0).all())
        True
        """
        dtype = out.dtype if out is not None and dtype is None else self._float(dtype)
        size = out.shape if out is not None and size is None else size
        if method == "inv":
            return self._given(-ops["log1p"](-self.random(size, dtype)), out)
        if method != "zig":
            raise ValueError(f'standard_exponential: method is "zig" or "inv", not {method!r}')
        return self._given(self._law(_EXPONENTIAL, dtype, size), out)

    def standard_gamma(self, shape, size=None, dtype="float64", out=None):
        """Gamma numbers of a shape and scale 1, by Marsaglia's and Tsang's method.

        >>> rng = da.random.default_rng(1)
        >>> rng.standard_gamma([0.5, 2.0]).shape
        (2,)
        """
        check("shape", shape, not_negative, "at least 0")
        x = self._law(_GAMMA, "float64", out.shape if out is not None and size is None else size, shape)
        return self._given(x if out is not None or dtype == "float64" else x.astype(self._float(dtype)), out)

    def beta(self, a, b, size=None):
        """Beta numbers, from two gamma numbers.

        >>> rng = da.random.default_rng(1)
        >>> bool((rng.beta(2, 3, 100) < 1).all())
        True
        """
        check("a", a, positive, "above 0")
        check("b", b, positive, "above 0")
        return self._law(_BETA, "float64", size, a, b)

    def poisson(self, lam=1.0, size=None):
        """Poisson numbers, int64: by multiplication below a mean of 10, by transformed rejection above.

        >>> rng = da.random.default_rng(1)
        >>> rng.poisson(0.0, 3).tolist()
        [0, 0, 0]
        """
        check("lam", lam, not_negative, "at least 0")
        check("lam", lam, lambda x: x < 9.2e18, "below 9.2e18")
        return self._law(_POISSON, "int64", size, lam)

    def binomial(self, n, p, size=None):
        """How many of n trials of probability p succeed, int64.

        >>> rng = da.random.default_rng(1)
        >>> rng.binomial(5, 1.0, 3).tolist()
        [5, 5, 5]
        """
        check("n", n, not_negative, "at least 0")
        check("p", p, probability, "between 0 and 1")
        return self._law(_BINOMIAL, "int64", size, n, p)
