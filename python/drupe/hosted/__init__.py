"""A machine with devices that many people share.

Nothing here loads the engine before it is used.
"""
import importlib

_NAMES = {"Parking": "parking", "is_parked": "parking", "park": "parking", "parkable": "parking", "unpark": "parking"}
__all__ = sorted(_NAMES)


def __getattr__(name):
    if name not in _NAMES:
        raise AttributeError(f"module 'drupe.hosted' has no attribute {name!r}")
    value = getattr(importlib.import_module("drupe.hosted." + _NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))
