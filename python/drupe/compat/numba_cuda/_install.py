"""drupe.compat.numba_cuda(): this package in the place of numba.cuda."""
import importlib
import importlib.util
import sys

_NAME = "numba.cuda"
_before = {}  # modules that were taken out of sys.modules


def install(on=True):
    """Take the place of numba.cuda, or give it back; gives the module of Drupe."""
    ours = importlib.import_module("drupe.compat.numba_cuda")
    if not on:
        _uninstall(ours)
    elif sys.modules.get(_NAME) is not ours:
        if _is_installed():
            _replace(importlib.import_module("numba"), ours)
        else:
            from drupe import compat

            compat.enable()  # an import finds it then
    return ours


def _is_installed():
    """Whether there is a Numba, which is none that Drupe answers for."""
    there = sys.modules.get("numba")
    if there is not None:
        return getattr(there, "__file__", None) is not None and not there.__name__.startswith("drupe.")
    spec = importlib.util.find_spec("numba")
    return spec is not None and spec.origin is not None and not spec.origin.startswith("drupe.")


def _below(name):
    return name == _NAME or name.startswith(_NAME + ".")


def _replace(numba, ours):
    _before.update({name: sys.modules.pop(name) for name in list(sys.modules) if _below(name)})
    sys.modules[_NAME] = numba.cuda = ours
    sys.modules[_NAME + ".random"] = importlib.import_module("drupe.compat.numba_cuda.random")


def _uninstall(ours):
    numba = sys.modules.get("numba")
    if sys.modules.get(_NAME) is not ours or numba is None:
        return
    for name in [one for one in sys.modules if _below(one)]:
        del sys.modules[name]
    del numba.cuda
    sys.modules.update(_before)
    if _NAME in _before:
        numba.cuda = _before[_NAME]
    _before.clear()
