"""Random numbers, with the names of numpy.random.

default_rng(seed) gives a Generator whose numbers are made by Philox4x64-10. random(), uniform(), integers(), bytes(),
permutations and choices are, number for number, those of

    numpy.random.Generator(numpy.random.Philox(seed))

on every device, in whatever pieces they are drawn. Distributions that are made of one uniform number each (laplace,
logistic, gumbel, triangular, and exponential numbers by method "inv") are so up to rounding. The others are NumPy's by
law but not by number: they take two words of the generator per draw as the key of streams of their own, so that many
are made at a time.

The state of a generator lives on its queue, and drawing is work of that queue: nothing waits. Two threads that draw
from one generator get different numbers. `size` is the shape of the result; None is the shape that the parameters
broadcast to, () when all are numbers: an Array, not a number of Python. Parameters are numbers or arrays on the
generator's queue.

>>> rng = da.random.default_rng(42)
>>> rng.random(2).tolist()
[0.08607763073528474, 0.14155732377913233]
"""
import inspect
import threading

from drupe import _engine
from drupe.array._distributions import Generator
from drupe.array._seeding import SeedSequence

__all__ = ["Generator", "SeedSequence", "choice", "default_rng", "normal", "permutation", "rand", "randint", "randn",
           "random", "seed", "shuffle", "standard_normal", "uniform"]


def restored(entropy, spawn_key, n_children, state, device):
    """The generator that was pickled, on the default queue of its device."""
    generator = Generator(SeedSequence(entropy, spawn_key=spawn_key, n_children_spawned=n_children),
                          _engine.empty(0, device=device).queue)
    generator.bit_generator.state = state
    return generator


def default_rng(seed=None, *, device=None, queue=None, sycl_queue=None):
    """A Generator on a device or queue, the default one unless given.

    seed: a non-negative integer, a sequence of them, a SeedSequence (NumPy's too), or None for one of the system's; a
    Generator is returned as it is. The same seed gives the same numbers on every device, those of
    numpy.random.Generator(numpy.random.Philox(seed)). sycl_queue: queue, as dpctl calls it.

    >>> da.random.default_rng(42)
    Generator(Philox) on ...
    """
    if isinstance(seed, Generator):
        return seed
    if not isinstance(seed, SeedSequence):
        if hasattr(seed, "spawn_key"):
            seed = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, n_children_spawned=seed.n_children_spawned)
        else:
            seed = SeedSequence(seed)
    return Generator(seed, _engine.empty(0, device=device, queue=sycl_queue if queue is None else queue).queue)


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
    further devices that they use are children of it, in the order of their first use.

    >>> da.random.seed(42)
    >>> da.random.rand(2).tolist() == da.random.default_rng(42).random(2).tolist()
    True
    """
    global _root
    with _lock:
        _root = SeedSequence(seed)
        _defaults.clear()


def random(size=None):
    """Numbers of [0, 1) from the generator that all functions of this module share.

    size: the shape, None for no dimensions. The numbers are float64.

    >>> da.random.random((2, 3)).shape
    (2, 3)
    """
    return _default().random(size)


def rand(*shape):
    """Numbers of [0, 1), with the shape as arguments.

    The numbers are float64. ValueError for a negative size.

    >>> da.random.rand(2, 3).shape
    (2, 3)
    """
    return _default().random(shape)


def randn(*shape):
    """Standard normal numbers, with the shape as arguments.

    The numbers are float64. ValueError for a negative size.

    >>> da.random.randn(2, 3).shape
    (2, 3)
    """
    return _default().standard_normal(shape)


def randint(low, high=None, size=None, dtype="int64"):
    """Integers of low ... high - 1; see Generator.integers().

    size: the shape. dtype: an integer type. ValueError for limits that the type cannot hold, and for none.

    >>> da.random.randint(3, 4, size=2).tolist()
    [3, 3]
    """
    return _default().integers(low, high, size, dtype)


def uniform(low=0.0, high=1.0, size=None):
    """See Generator.uniform().

    The generator is the one that all functions of this module share.

    >>> da.random.uniform(2.0, 3.0, 4).shape
    (4,)
    """
    return _default().uniform(low, high, size)


def normal(loc=0.0, scale=1.0, size=None):
    """See Generator.normal().

    The generator is the one that all functions of this module share.

    >>> da.random.normal(3.0, 0.0, 2).tolist()
    [3.0, 3.0]
    """
    return _default().normal(loc, scale, size)


def standard_normal(size=None):
    """See Generator.standard_normal().

    The generator is the one that all functions of this module share.

    >>> da.random.standard_normal(4).shape
    (4,)
    """
    return _default().standard_normal(size)


def choice(a, size=None, replace=True, p=None):
    """See Generator.choice().

    The generator is the one that all functions of this module share.

    >>> da.random.choice(5, 3).shape
    (3,)
    """
    return _default().choice(a, size, replace, p)


def permutation(x):
    """See Generator.permutation().

    The generator is the one that all functions of this module share.

    >>> sorted(da.random.permutation(4).tolist())
    [0, 1, 2, 3]
    """
    return _default().permutation(x)


def shuffle(x):
    """See Generator.shuffle().

    The generator is the one that all functions of this module share.

    >>> x = da.arange(4)
    >>> da.random.shuffle(x)
    >>> sorted(x.tolist())
    [0, 1, 2, 3]
    """
    _default().shuffle(x)


# --- The distributions as functions ----------------------------------------------------------------------------------


def _shared(name):
    """A method of Generator as a function of the generator that all functions of this module share."""
    method = getattr(Generator, name)

    def function(*args, **options):
        return getattr(_default(), name)(*args, **options)

    signature = inspect.signature(method)
    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
    function.__doc__ = inspect.getdoc(method).replace(">>> rng = da.random.default_rng(1)\n", "").replace(
        "rng.", "da.random.")
    return function


_SHARED = ("beta", "binomial", "bytes", "chisquare", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel",
           "hypergeometric", "laplace", "logistic", "lognormal", "logseries", "multinomial",
           "multivariate_hypergeometric", "multivariate_normal", "negative_binomial", "noncentral_chisquare",
           "noncentral_f", "pareto", "poisson", "power", "rayleigh", "standard_cauchy", "standard_exponential",
           "standard_gamma", "standard_t", "triangular", "vonmises", "wald", "weibull", "zipf")
globals().update({name: _shared(name) for name in _SHARED})
random_sample = ranf = sample = random
__all__ = sorted([*__all__, *_SHARED, "random_sample", "ranf", "sample"])


_GENERATOR = "Generators are made by default_rng(seed), and all are Philox."
_INSTEAD = {"RandomState": _GENERATOR, "BitGenerator": _GENERATOR, "MT19937": _GENERATOR, "PCG64": _GENERATOR,
            "PCG64DXSM": _GENERATOR, "SFC64": _GENERATOR, "Philox": _GENERATOR,
            "get_state": "Read default_rng(seed).bit_generator.state of a generator of your own.",
            "set_state": "Set default_rng(seed).bit_generator.state of a generator of your own.",
            "random_integers": "Take randint(low, high + 1)."}


def __getattr__(name):
    """Say what there is instead of a name that is known from NumPy."""
    hint = _INSTEAD.get(name, "")
    raise AttributeError(f"module 'drupe.array.random' has no attribute {name!r}" + (hint and ". " + hint))
