"""What `np` means in an offload function: drupe.array where it has a function of that name, else NumPy.

Functions that make arrays make them on the device. Others compute there what is given arrays of a device, and are
NumPy's own for numbers.
"""
import functools
import importlib
import sys
import types

from drupe import _engine

_MAKING = frozenset("""arange array asanyarray asarray ascontiguousarray asfortranarray empty eye frombuffer
    fromfunction fromiter full geomspace identity indices linspace logspace ones tri zeros""".split())
_RANDOM = "drupe.array.random"


def is_array(thing):
    """Whether it is an array of NumPy or on a device."""
    numpy = sys.modules.get("numpy")
    return isinstance(thing, _engine.Array) or (numpy is not None and isinstance(thing, numpy.ndarray))


def _has_array(args):
    return any(isinstance(one, _engine.Array) or (isinstance(one, (tuple, list)) and _has_array(one)) for one in args)


def _either(ours, numpys):
    """NumPy's function for numbers and lists, ours for arrays of a device."""
    def function(*args, **options):
        if _has_array(args) or (options and _has_array(options.values())):
            return numpys(*args, **options)  # hands them on: see drupe._numpy
        found = numpys(*args, **options)
        return _placed(found) if is_array(found) and found.ndim else found
    function.__name__ = function.__qualname__ = getattr(numpys, "__name__", "function")
    function.__wrapped__ = numpys
    for method in ("accumulate", "at", "outer", "reduce", "reduceat"):
        if hasattr(numpys, method):
            setattr(function, method, getattr(numpys, method))
    return function


def _placed(found):
    from drupe import array

    return array.asarray(found)


class _Arrays(type):
    def __instancecheck__(cls, thing):
        return isinstance(thing, _engine.Array)


class ndarray(metaclass=_Arrays):  # noqa: N801 (it is NumPy's name)
    """What numpy.ndarray is in an offload function."""

    def __new__(cls, shape, dtype=float):
        from drupe import array

        return array.empty(shape, dtype=dtype)


class Names:
    """A module of NumPy as an offload function sees it."""

    def __init__(self, numpys, ours):
        self.__dict__.update(_numpys=numpys, _ours=ours, __name__=numpys.__name__)

    def __getattr__(self, name):
        theirs = getattr(self._numpys, name)
        found = self._instead(name, theirs)
        self.__dict__[name] = found
        return found

    def _instead(self, name, theirs):
        if isinstance(theirs, types.ModuleType):
            if theirs.__name__ in ("numpy.random", "numpy.linalg", "numpy.fft"):
                return Names(theirs, "drupe.array." + name)
            return theirs
        if name == "ndarray":
            return ndarray
        if isinstance(theirs, type) or not callable(theirs):
            return theirs
        ours = getattr(importlib.import_module(self._ours), name, None)
        if ours is not None and (name in _MAKING or self._ours == _RANDOM):
            return ours
        return _either(ours, theirs)

    def __repr__(self):
        return "<numpy on devices>"


@functools.lru_cache(maxsize=None)
def module():
    """numpy as an offload function sees it."""
    import numpy

    return Names(numpy, "drupe.array")


def instead_of(thing):
    """What stands for a module or a function of NumPy; None for anything else."""
    import numpy

    if thing is numpy:
        return module()
    for path in ("random", "linalg", "fft"):
        if thing is getattr(numpy, path):
            return getattr(module(), path)
    name = getattr(thing, "__name__", None)
    if not callable(thing) or isinstance(thing, type) or not isinstance(name, str):
        return None
    return getattr(module(), name) if getattr(numpy, name, None) is thing else None
