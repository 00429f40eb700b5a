"""Who is answered, and how.

Two finders. The one at the end of sys.meta_path answers a name that nobody else knows, where the program's own code
imports it. What it found is in sys.modules, where everybody would find it: from then on imports of installed libraries
are refused by a guard before builtins.__import__ (and before two functions of importlib), with the error they had
before; where the library is installed by now, Drupe gives way to it. From then on a finder at the front maps what is
below such a module (`dpctl.memory`), since the usual finders would look into the module's folder and load its files a
second time, under another name.

A module keeps the name that it has in drupe.compat: what is pickled is found without any finder.
"""
import builtins
import functools
import importlib
import importlib.util
import os
import sys
import types
from importlib.machinery import ModuleSpec

from drupe.compat import _absent, _provided

_PARTS = ("site-packages", "dist-packages")
# Modules whose frames may stand between an import statement and a finder.
_MACHINERY = ("importlib", "_frozen_importlib", "_frozen_importlib_external", "importlib._bootstrap",
              "importlib._bootstrap_external", "importlib.util", "drupe.jupyter.late", __name__,
              # These import what whoever calls them names: help("dpctl"), timeit.timeit("import dpctl").
              "_sitebuiltins", "pickle", "pkgutil", "pydoc", "timeit", "unittest.mock")
_DEBUGGER = ("_pydev", "pydev")

_answered = {}  # name, dotted or not: the module in drupe.compat. Those below it are not in it
_parents = set()  # packages made here because a dotted name needs one
_told = set()


# --- Who imports -----------------------------------------------------------------------------------------------------

@functools.cache
def _places():
    """Folders whose files are no program of the user's: the standard library and Drupe."""
    found = [os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    return tuple({form(path) + os.sep for path in found for form in (os.path.abspath, os.path.realpath)})


@functools.cache
def _is_installed(file):
    path = os.path.abspath(file)
    return path.startswith(_places()) or any(part in _PARTS for part in path.split(os.sep))


def _tells(names):
    """Whether globals tell who imports: by a file, or since they are those of __main__."""
    name = names.get("__name__")
    return name == "__main__" or (isinstance(name, str) and isinstance(names.get("__file__"), str)
                                  and name not in _MACHINERY and not name.startswith(_DEBUGGER))


def _is_program(names):
    """Whether code with these globals belongs to the program: a cell, __main__, or a file that is not installed."""
    return names["__name__"] == "__main__" or not _is_installed(names["__file__"])


def _importer():
    """The globals of the first frame that is not part of the machinery of imports. Text that somebody runs in a
    dictionary of its own counts for who runs it."""
    frame, before = sys._getframe(2), getattr(builtins.__import__, "__code__", None)
    while frame is not None:
        if _tells(frame.f_globals) and frame.f_code is not before:  # which somebody has put before __import__
            return frame.f_globals
        frame = frame.f_back
    return None


def _asked_by_program(names=None):
    """`names` are the globals of the import statement, where they are known."""
    if not _tells(names or {}):
        names = _importer()
    return names is not None and _is_program(names)


# --- Finders ---------------------------------------------------------------------------------------------------------

class _Loader:
    """Gives a module of drupe.compat under another name."""

    def __init__(self, target):
        self._target = target
        self._spec = None

    def create_module(self, spec):
        if spec.name in _provided.PROVIDED:
            _answer(spec.name, self._target)
        module = importlib.import_module(self._target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self._spec  # importlib has given it the one of the other name


class _ParentLoader:
    """A package in which nothing is but what is answered: `numba` for `numba.cuda`, where there is no Numba."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        below = [name for name in _provided.present() if name.startswith(module.__name__ + ".")]

        def __getattr__(name):
            raise AttributeError(f"{module.__name__} is not installed; Drupe answers only {', '.join(below)}")

        module.__getattr__ = __getattr__
        _parents.add(module.__name__)
        _guard()


def _spec(name, target):
    return ModuleSpec(name, _Loader(target), origin=target)


def _root(name):
    """The answered name that `name` is or is below of."""
    while name and name not in _answered:
        name = name.rpartition(".")[0]
    return name


class _Last:
    """At the end of sys.meta_path: names that nobody else knows."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("drupe.compat."):
            package, _, word = name.rpartition(".")
            if word in _absent.get(package, ()):  # `from dpctl import word` comes by here
                raise ImportError(f"Drupe does not provide {name[len('drupe.compat.'):]}. {_absent[package][word]}",
                                  name=name)
            return None
        present = _provided.present() if name.partition(".")[0] in _TOPS else ()
        if name in present and _asked_by_program():
            return _spec(name, present[name])
        if any(one.startswith(name + ".") for one in present) and _asked_by_program():
            return ModuleSpec(name, _ParentLoader(), is_package=True)
        return None


class _First:
    """At the front of sys.meta_path: what is below an answered name."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        root = _root(name.rpartition(".")[0])
        if not root or sys.modules.get(root) is not sys.modules.get(_answered[root]):
            return None
        below = _answered[root] + name[len(root):]
        try:
            return _spec(name, below) if importlib.util.find_spec(below) is not None else None
        except ImportError as error:  # by _Last, of what is absent: as a module it is not there
            raise ModuleNotFoundError(str(error), name=name) from None


_TOPS = frozenset(name.partition(".")[0] for name in _provided.PROVIDED)
_last, _first = _Last(), _First()


def _answer(name, target):
    _answered[name] = target
    _guard()
    if name not in _told:
        _told.add(name)
        print(f"{name} is answered by Drupe ({target}); {_provided.page(name)} says what differs", file=sys.stderr)


# --- Installed libraries ---------------------------------------------------------------------------------------------

def _is_ours(name):
    root = _root(name)
    if root:  # and nobody has put another module in its place
        return sys.modules.get(root) in (None, sys.modules.get(_answered[root]))
    return name.partition(".")[0] in _parents


def _is_there_now(name):
    """Whether a library is installed that was not when its name was answered."""
    top = name.partition(".")[0]
    if top in _answered or top in _parents:
        name, path = top, None
    else:  # below a package of somebody else
        name, path = _root(name), getattr(sys.modules.get(top), "__path__", None)
    return any(finder.find_spec(name, path) is not None for finder in list(sys.meta_path)
               if finder not in (_first, _last) and hasattr(finder, "find_spec"))


def _give_way(top):
    """Leave the names below `top` to the library that is installed by now."""
    _withdraw(lambda name: name.partition(".")[0] == top)
    print(f"{top} is installed by now: imports find it from here on, and what came from Drupe stays Drupe's",
          file=sys.stderr)


def _refused(name, fromlist=(), names=None):
    """The name of an import that an installed library must not have, or None."""
    if not isinstance(name, str) or name.partition(".")[0] not in _TOPS:
        return None
    asked = [name, *(f"{name}.{one}" for one in fromlist or () if isinstance(one, str))]
    ours = next((one for one in asked if _is_ours(one)), None)
    if ours is None or _asked_by_program(names):
        return None
    if _is_there_now(ours):
        _give_way(ours.partition(".")[0])
        return None
    return ours


def _missing(name):
    """The error that an import has without Drupe: of the first part of a name that is not there."""
    top = name.partition(".")[0]
    name = top if top in _parents else _root(name) or name
    return ModuleNotFoundError(f"No module named {name!r}", name=name)


def _wrap(owner, word, refuse):
    """Put before owner.word what asks refuse(name, *args) first, for names that are answered: what that gives is the
    result, but for Ellipsis."""
    from drupe import _engine

    usual = getattr(owner, word)
    before = functools.update_wrapper(_engine._ImportGuard(usual, _TOPS, refuse), usual)
    _wrapped.append((owner, word, before, usual))
    setattr(owner, word, before)


def _refuse_import(name, globals=None, locals=None, fromlist=(), level=0):
    refused = _refused(name, fromlist, globals) if level == 0 else None
    if refused is None:
        return ...
    if refused != name and not _is_ours(name):
        package, _, word = refused.rpartition(".")
        raise ImportError(f"cannot import name {word!r} from {package!r}", name=package)
    raise _missing(name)


def _refuse_module(name, package=None):
    if _refused(name) is None:
        return ...
    raise _missing(name)


def _refuse_spec(name, package=None):
    return ... if _refused(name) is None else None


_wrapped = []


def _guard():
    """From the first answer on."""
    if _first not in sys.meta_path:
        sys.meta_path.insert(0, _first)
    if not _wrapped:
        _wrap(builtins, "__import__", _refuse_import)
        _wrap(importlib, "import_module", _refuse_module)
        _wrap(importlib.util, "find_spec", _refuse_spec)


def _unguard():
    """Where somebody else has come before these functions since, they stay, and ask nothing of anybody: no name is
    answered any more."""
    for owner, word, before, usual in _wrapped:
        if getattr(owner, word) is before:
            setattr(owner, word, usual)
    _wrapped.clear()


# --- The switch ------------------------------------------------------------------------------------------------------

def is_enabled():
    """Whether imports are answered."""
    return _last in sys.meta_path


def enable():
    """Answer imports."""
    if not is_enabled():
        sys.meta_path.append(_last)


def _forget(name):
    """Take a module out of sys.modules, and out of the package it stands in."""
    module = sys.modules.pop(name)
    package, _, word = name.rpartition(".")
    holder = sys.modules.get(package)
    if isinstance(holder, types.ModuleType) and not holder.__name__.startswith("drupe.compat") \
            and vars(holder).get(word) is module:
        delattr(holder, word)


def _withdraw(chosen):
    """Take answered names back for which chosen(name) holds: they are as if they had never been there."""
    for name in [one for one in sys.modules if chosen(one) and _is_ours(one)]:
        module = sys.modules[name]
        if name.partition(".")[0] in _parents or getattr(module, "__name__", "").startswith("drupe.compat."):
            _forget(name)
    for name in filter(chosen, list(_answered)):
        del _answered[name]
    _parents.difference_update(list(filter(chosen, _parents)))


def disable():
    """Answer no more."""
    for finder in (_last, _first):
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
    _withdraw(lambda name: True)
    _unguard()
