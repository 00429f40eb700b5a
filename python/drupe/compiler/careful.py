"""When kernels in Python look at what they do: in checked mode, and where a failure is to be run again.

Both are asked at a launch that the launchers do not know, so a change makes them forget what they know.
"""
import os
import sys
import weakref

_state = {"checked": int("check" in os.environ.get("DRUPE_LAYERS", "").split(",")), "replay": False}
_kernels: "weakref.WeakSet" = weakref.WeakSet()


def register(kernel):
    """A kernel whose launcher is to be told."""
    _kernels.add(kernel)


def is_checked():
    """Whether kernels look at every index, if they do not say otherwise."""
    return _state["checked"] > 0


def checked(step):
    """Begin (1) or end (-1) a block of checked mode."""
    _state["checked"] += step
    _forget()


def replay():
    """Whether what a kernel may write is copied before it runs."""
    return _state["replay"]


def set_replay(on):
    """%config Drupe.replay"""
    _state["replay"] = bool(on)
    if not on and "drupe.compiler.guard" in sys.modules:
        sys.modules["drupe.compiler.guard"].recent.clear()  # it keeps arrays alive
    _forget()


def _forget():
    for kernel in list(_kernels):
        kernel._launcher.clear()
