"""Programs that were written for other systems: `import dpctl` and the like, answered by modules of this package.

    drupe.compat.enable()       from here on; kernels of Drupe do so when they start
    drupe.compat.disable()      not any more; in a notebook also %config Drupe.compat = False
    python -m drupe.compat program.py      run a program with them

An installed library always wins, and installed libraries find what they found without Drupe: docs/compat.md.
"""
import os

__all__ = ["NotProvided", "disable", "enable", "is_enabled", "names"]


class NotProvided(NotImplementedError):
    """Something that the other system has and Drupe does not. The message says what to write instead."""


class _AbsentName(NotProvided, AttributeError):
    """The same of a name of a module or class, so that hasattr() says no."""


_AbsentName.__name__ = _AbsentName.__qualname__ = "NotProvided"  # what is shown


def enable():
    """Answer imports of the program's own code from now on."""
    from drupe.compat import _finder

    _finder.enable()


def disable():
    """Answer no more imports; modules that were answered are as if they had never been there."""
    from drupe.compat import _finder

    _finder.disable()


def is_enabled():
    """Whether imports are answered."""
    from drupe.compat import _finder

    return _finder.is_enabled()


def names():
    """The names that are answered, and the modules that answer them."""
    from drupe.compat import _provided

    return _provided.present()


def enable_at_start():
    """What a kernel does when it starts: enable(), unless DRUPE_COMPAT=0. Another value that cannot be understood is
    told by drupe.jupyter.features."""
    if os.environ.get("DRUPE_COMPAT") != "0":
        enable()


def __getattr__(name):
    """The package for another system, such as drupe.compat.numba_cuda."""
    import importlib

    if not name.startswith("_"):
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_absent = {}  # package: {name: what to write instead}, for the finder


def absent(module, reasons):
    """A function for a module's __getattr__ to end with: raises what tells of a name that is not there. `reasons` has
    the names of the other system that Drupe does not provide, each with a sentence that says what to write instead."""
    _absent[module] = reasons
    shown = module.removeprefix("drupe.compat.").replace("numba_cuda", "numba.cuda")

    def missing(name):
        if name in reasons:
            raise _AbsentName(f"Drupe does not provide {shown}.{name}. {reasons[name]}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return missing
