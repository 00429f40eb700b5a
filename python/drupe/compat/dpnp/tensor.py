"""dpnp.tensor: dpctl.tensor, and what dpnp adds to it."""
import importlib

_ADDED = {"broadcast_shapes": "drupe.array", **dict.fromkeys(
    ("ExecutionPlacementError", "get_coerced_usm_type", "get_execution_queue", "validate_usm_type"),
    "drupe.compat.dpctl.utils")}


def __getattr__(name):
    if name == "__all__":
        return __dir__()
    value = getattr(importlib.import_module(_ADDED.get(name, "drupe.compat.dpctl.tensor")), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*_ADDED, *importlib.import_module("drupe.compat.dpctl.tensor").__all__})
