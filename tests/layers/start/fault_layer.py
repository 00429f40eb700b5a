"""In a process of ../faulty.py: what shall fail."""
import ctypes

from drupe import _engine

_library = ctypes.PyDLL(_engine.__file__)
_library.drupe_fault_made.restype = ctypes.c_uint64


def plan(text):
    """What shall fail from now on; None: nothing."""
    if _library.drupe_fault_plan(text and text.encode()):
        raise ValueError(f"no plan: {text}")


def made():
    """How many failures the plan has made."""
    return _library.drupe_fault_made()
