"""The imports of the kernel's start, which are most of what a start costs. Three things make them cheaper, all only
until the shell stands:

- The code of all modules that a start imports is *stored* in one file of the cache's folder (start_store.py writes it).
  Python would look for each in several folders, and look at its source, open and read its .pyc. A module is taken from
  there only while its source and the folders that it could have been found in are as they were.
- So are the regular expressions that these modules compile, in the form that the engine of `re` executes.
- Modules that others import and few use are *late*: executed when the first of their names is asked for.

Modules are complete either way: they have the loaders, files and sources that they always have. Nothing is imported
here that Python has not imported anyway.
"""
import _imp
import _thread
import marshal
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

FORMAT = 1
HEAD = 16  # bytes: the size of the index, and of the whole file
_ModuleType = type(sys)

# Each with the extension module without which its import fails, as whoever imports it wants to know at once.
LATE = {"asyncio.sslproto": None, "asyncio.staggered": None, "bz2": "_bz2", "ipaddress": None, "logging.handlers": None,
        "lzma": "_lzma", "ntpath": None, "platform": None, "ssl": "_ssl", "tempfile": None}


# --- Late modules --------------------------------------------------------------------------------------------------

_executing = _thread.RLock()  # no module of LATE uses one at its import that imports it: nothing waits in a circle
_ABSENT = ("__cached__", "__file__", "__path__", "__warningregistry__")  # what is asked of every module there is


class LateModule(_ModuleType):
    """A module that has not been executed."""

    def __getattr__(self, name):
        if name in _ABSENT:
            raise AttributeError("module %r has no attribute %r" % (self.__name__, name))
        _execute(self)
        return _ModuleType.__getattribute__(self, name)

    def __setattr__(self, name, value):
        if not (name.startswith("__") and name.endswith("__")):
            _execute(self)
        _ModuleType.__setattr__(self, name, value)  # super() would want the class that it had

    def __delattr__(self, name):
        _execute(self)
        _ModuleType.__delattr__(self, name)

    def __dir__(self):
        _execute(self)
        return _ModuleType.__dir__(self)


def _execute(module):
    with _executing:
        loader = module.__spec__.loader
        if not isinstance(loader, _LateLoader) or loader.began:
            return
        loader.began = True  # what it asks itself for while it is executed is there or not
        try:
            module.__spec__.loader = module.__loader__ = loader.loader
            loader.loader.exec_module(module)
        except BaseException:
            module.__spec__.loader, loader.began = loader, False
            raise
        module.__class__ = _ModuleType


class _LateLoader:
    def __init__(self, loader):
        self.loader, self.began = loader, False

    def create_module(self, spec):
        return LateModule(spec.name)

    def exec_module(self, module):
        pass


# --- Stored modules ------------------------------------------------------------------------------------------------


def folder():
    """The cache's folder for it; None: there is to be none."""
    if os.environ.get("DRUPE_CACHE", "").lower() in ("0", "off"):
        return None
    own, base = os.environ.get("DRUPE_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME", "")
    if own:
        return os.path.join(own, "start")
    if base.startswith("/"):
        return os.path.join(base, "drupe", "start")
    home = os.environ.get("HOME", "")
    return os.path.join(home, ".cache", "drupe", "start") if home.startswith("/") else None


def _file_name(paths):
    """Other interpreters, environments and paths have other files."""
    facts = FORMAT, sys.implementation.cache_tag, sys.hexversion, sys.flags.optimize, sys.prefix, paths
    return _imp.source_hash(FORMAT, repr(facts).encode()).hex()  # importlib.util's, whose import would take 2 ms


def is_private(facts):
    """Whether nobody but this user (and root) could have written it."""
    return facts.st_uid == os.geteuid() and not facts.st_mode & 0o022


def changed_at(path):
    """When the folder changed, in nanoseconds; None: it is not there."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


class Store:
    """The stored modules: `index` by name, each (offset, size, source, cached, is a package, the source's time and
    size); `expressions`, see Expressions. Empty when there is no file that can be used. `paths`: sys.path as the start
    sees it."""

    def __init__(self):
        self.index, self.expressions, self._file = {}, {}, None
        self.path, self.paths = None, tuple(sys.path)
        place = folder()
        if place is None:
            return
        self.path = os.path.join(place, _file_name(self.paths))
        try:
            if is_private(os.stat(place)):
                self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                self.index, self.expressions = self._read()
        except (OSError, ValueError, EOFError, TypeError):
            pass  # not there, or cut off

    def _read(self):
        facts, head = os.fstat(self._file), os.pread(self._file, HEAD, 0)
        size = int.from_bytes(head[:8], "little")
        if not is_private(facts) or len(head) < HEAD or int.from_bytes(head[8:], "little") != facts.st_size:
            return {}, {}
        self._begin = HEAD + size
        folders, index, expressions = marshal.loads(os.pread(self._file, size, HEAD))
        good = all(changed_at(path) == when for path, when in folders)
        return (index, expressions) if good else ({}, {})

    def find(self, name):
        """The specification of a module; None: it is not stored, or its source has changed."""
        entry = self.index.get(name)
        if entry is None:
            return None
        offset, size, source, cached, package, changed, length = entry  # the offset is behind the index
        try:
            facts = os.stat(source)
        except OSError:
            return None
        if facts.st_mtime_ns != changed or facts.st_size != length:
            return None
        loader = _StoredLoader(SourceFileLoader(name, source), self, offset, size)
        spec = ModuleSpec(name, loader, origin=source, is_package=package)
        if package:
            spec.submodule_search_locations.append(os.path.dirname(source))
        spec.has_location, spec.cached = True, cached
        return spec

    def code(self, offset, size):
        """A module's code; None: it cannot be had, as after the start."""
        if self._file is None:
            return None
        try:
            return marshal.loads(os.pread(self._file, size, self._begin + offset))
        except (OSError, ValueError, EOFError, TypeError):
            return None

    def close(self):
        if self._file is not None:
            os.close(self._file)
            self._file = None


class _StoredLoader:
    """Executes a module's stored code. The module has Python's own loader, `plain`, then."""

    def __init__(self, plain, store, offset, size):
        self._plain, self._store, self._where = plain, store, (offset, size)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._plain
        code = self._store.code(*self._where)
        if code is None:
            self._plain.exec_module(module)
        else:
            exec(code, module.__dict__)


# --- Regular expressions -------------------------------------------------------------------------------------------


class Expressions:
    """Stands in for the compiler of `re`: `known` has the arguments of _sre.compile() by pattern and flags. What is not
    known is compiled, and known then."""

    def __init__(self, known):
        import re._compiler as compiler

        self.known, self._keys = known, {}  # _keys: by thread, what it compiles
        self._compiler, self._compile, self._sre = compiler, compiler.compile, compiler._sre
        compiler.compile, compiler._sre = self.compile, self

    def compile(self, pattern, flags=0, *made):
        """As the compiler's, and as the engine's, which the compiler calls."""
        thread = _thread.get_ident()
        before = self._keys.get(thread)
        if made:
            if before is not None and before[0] is pattern:
                self.known[before] = flags, *made
            return self._sre.compile(pattern, flags, *made)
        key = pattern, int(flags)
        made = self.known.get(key)
        if made is not None:
            return self._sre.compile(pattern, *made)
        self._keys[thread] = key
        try:
            return self._compile(pattern, flags)
        finally:
            self._keys[thread] = before  # a warning of the compiler's may compile others

    def __getattr__(self, name):
        return getattr(self._sre, name)

    def close(self):
        self._compiler.compile, self._compiler._sre = self._compile, self._sre


# --- The start -----------------------------------------------------------------------------------------------------


class _Finder:
    """Stands before the finder that looks through sys.path, behind all that others have installed."""

    def __init__(self):
        self.store = Store()

    def find_spec(self, name, path=None, target=None):
        spec = self.store.find(name)
        if name not in LATE or (LATE[name] and not _is_there(LATE[name])):
            return spec
        if spec is None:
            spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _LateLoader(spec.loader)
        return spec


def _is_there(name):
    return name in sys.builtin_module_names or PathFinder.find_spec(name) is not None


def begin():
    """From here on imports are the start's. Returns what ends it."""
    finder = _Finder()
    places = [place for place, one in enumerate(sys.meta_path) if one is PathFinder]
    if places:
        sys.meta_path.insert(places[0], finder)
    expressions = Expressions(finder.store.expressions)

    def end():
        """The shell stands. Returns a function that stores what was imported, for a quiet moment; None: it is stored,
        or nothing is to be."""
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        expressions.close()
        finder.store.close()
        store, names = finder.store, tuple(sys.modules)
        if store.index or store.path is None:
            return None

        def write():
            from . import start_store

            start_store.write(store, names)

        return write

    return end
