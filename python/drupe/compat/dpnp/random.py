"""Random numbers: drupe.array.random. The distributions are dpnp's, the numbers for a seed are not."""
import functools

from drupe import _engine
from drupe.array import random as _random
from drupe.compat import NotProvided, absent
from drupe.compat.dpnp._calls import behind

_PLACED = ("normal", "rand", "randint", "randn", "random", "random_sample", "ranf", "sample", "seed", "standard_normal",
           "uniform")
__all__ = [*(name for name in _random.__all__ if name not in ("Generator", "SeedSequence", "default_rng")),
           "RandomState", "random_integers"]


def _on_device(function):
    """The function with device=, usm_type= and sycl_queue=."""
    @functools.wraps(function)
    def drawn(*args, device=None, usm_type="device", sycl_queue=None, **options):
        if usm_type not in (None, "device"):
            raise NotProvided("random numbers are drawn into memory of the device: leave usm_type= out")
        if sycl_queue is not None:
            raise NotProvided("a queue is given to a generator: dpnp.random.RandomState(seed, sycl_queue=queue)")
        if device is None:
            return function(*args, **options)
        from drupe.choice import device as chosen

        device = behind(device)
        with chosen(device.device if isinstance(device, _engine.Queue) else device):
            return function(*args, **options)

    return drawn


globals().update({name: (_on_device if name in _PLACED else lambda function: function)(getattr(_random, name))
                  for name in _random.__all__ if name in __all__})


def random_integers(low, high=None, size=None, **where):
    """Integers from low to high, both among them; from 1 to low where there is no high."""
    low, high = (1, low) if high is None else (low, high)
    return globals()["randint"](low, high + 1, size, **where)


class RandomState:
    """A generator of its own, on a device or a queue."""

    def __init__(self, seed=None, device=None, sycl_queue=None):
        device, queue = behind(device), behind(sycl_queue)
        if isinstance(device, _engine.Queue):
            device, queue = None, device
        self._generator = _random.default_rng(seed, device=device, queue=queue)

    def get_sycl_queue(self):
        """Its queue."""
        return self._generator.queue

    def get_sycl_device(self):
        """Its device."""
        return self._generator.device

    def _placed(self, usm_type):
        if usm_type not in (None, "device"):
            raise NotProvided("random numbers are drawn into memory of the device: leave usm_type= out")

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=None, usm_type="device"):
        """Numbers of a normal distribution."""
        self._placed(usm_type)
        found = self._generator.normal(loc, scale, size)
        return found if dtype is None else found.astype(dtype)

    def uniform(self, low=0.0, high=1.0, size=None, dtype=None, usm_type="device"):
        """Numbers between low and high."""
        self._placed(usm_type)
        found = self._generator.uniform(low, high, size)
        return found if dtype is None else found.astype(dtype)

    def randint(self, low, high=None, size=None, dtype=int, usm_type="device"):
        """Integers from low to before high."""
        self._placed(usm_type)
        return self._generator.integers(low, high, size, dtype="int64" if dtype is int else dtype)

    def random_sample(self, size=None, usm_type="device"):
        """Numbers between 0 and 1."""
        self._placed(usm_type)
        return self._generator.random(size)

    def standard_normal(self, size=None, usm_type="device"):
        """Numbers of the standard normal distribution."""
        self._placed(usm_type)
        return self._generator.standard_normal(size)

    def rand(self, *args, usm_type="device"):
        """Numbers between 0 and 1, with the sizes as arguments."""
        return self.random_sample(args or None, usm_type)

    def randn(self, *args, usm_type="device"):
        """Numbers of the standard normal distribution, with the sizes as arguments."""
        return self.standard_normal(args or None, usm_type)


__getattr__ = absent(__name__, {
    "Generator": "dpnp has no Generator; drupe.array.random has.",
    "default_rng": "dpnp has no default_rng(); drupe.array.random has.",
})
