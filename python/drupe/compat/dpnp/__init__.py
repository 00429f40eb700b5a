"""dpnp over drupe.array: NumPy's functions on arrays of devices.

    import dpnp as np

    x = np.linspace(0, 1, 1000, device="gpu")
    print(np.sin(x).sum())

Names that drupe.array has are drupe.array's own, with NumPy's names of arguments; dpnp.ndarray is its class of arrays.
docs/compat-dpnp.md says what differs.
"""
import importlib

from drupe.compat import absent
from drupe.compat.dpnp import _names

__version__ = "0.19.0"
__all__ = _names.ALL

_missing = absent(__name__, _names.ABSENT)


def __getattr__(name):
    value = _found(name)
    globals()[name] = value
    return value


def _found(name):
    if name in _names.MODULES:
        return importlib.import_module(__name__ + "." + name)
    if name in _names.TYPES:
        return getattr(importlib.import_module("numpy"), _names.TYPES[name])
    for module in ("_helpers", "_written"):
        if name in _names.OWN[module]:
            return getattr(importlib.import_module(__name__ + "." + module), name)
    if name not in _names.SAME and name != "__array_namespace_info__":
        return _missing(name)
    found = getattr(importlib.import_module("drupe.array"), name)
    calls = importlib.import_module(__name__ + "._calls")
    found = calls.as_numpys(found, getattr(importlib.import_module("numpy"), name, None))
    return calls.placed(found) if name in _names.PLACED else found


def __dir__():
    return __all__
