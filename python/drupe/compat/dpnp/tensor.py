"""dpnp.tensor: the functions of dpctl.tensor, which are those of drupe.array."""
import importlib
import importlib.util

from drupe import array
from drupe.utils import ExecutionPlacementError, get_coerced_usm_type, get_execution_queue, validate_usm_type

_OWN = {"ExecutionPlacementError": ExecutionPlacementError, "get_coerced_usm_type": get_coerced_usm_type,
        "get_execution_queue": get_execution_queue, "usm_ndarray": array.Array, "validate_usm_type": validate_usm_type}
__all__ = sorted({*_OWN, *array.__all__})


def __getattr__(name):
    if name in _OWN:
        return _OWN[name]
    if importlib.util.find_spec("drupe.compat.dpctl.tensor") is not None:
        found = getattr(importlib.import_module("drupe.compat.dpctl.tensor"), name)
    else:
        found = getattr(array, name)
    globals()[name] = found
    return found


def __dir__():
    return __all__
