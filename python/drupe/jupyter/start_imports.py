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
import _frozen_importlib_external as _bootstrap_external
import _imp
import _thread
import marshal
import os
import sys
from importlib.machinery import SOURCE_SUFFIXES, ModuleSpec, PathFinder, SourceFileLoader

FORMAT = 2
HEAD = 16  # bytes: the size of the index, and of the whole file
_ModuleType = type(sys)

# Each with the extension module without which its import fails, as whoever imports it wants to know at once.
LATE = {"asyncio.sslproto": None, "asyncio.staggered": None, "bz2": "_bz2", "ipaddress": None, "logging.handlers": None,
        "lzma": "_lzma", "ntpath": None, "platform": None, "ssl": "_ssl", "tempfile": None}


# --- Late modules --------------------------------------------------------------------------------------------------

_waiting = {}  # by module, how it will be executed
_STARTING = frozenset(("__cached__", "__class__", "__file__", "__loader__", "__name__", "__package__", "__path__",
                       "__spec__", "__warningregistry__"))  # what imports, and loops over all modules, ask for
# After the start an import asks for __spec__. Then whoever imports the module has it whole, as extensions in C that
# look into its dictionary and picklers that look at its type expect.
_STARTED = _STARTING - {"__spec__"}
_quiet = _STARTED


class LateModule(_ModuleType):
    """A module that has not been executed."""

    def __getattribute__(self, name):
        if name not in _quiet:
            execute(self)
        return _ModuleType.__getattribute__(self, name)  # super() would want the class that it had

    def __setattr__(self, name, value):
        execute(self)
        _ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name):
        execute(self)
        _ModuleType.__delattr__(self, name)


class _Execution:
    """Of a late module. Threads wait for it, since functions of half a module would miss what they use."""

    def __init__(self, loader):
        self.loader, self.lock, self.began = loader, _thread.RLock(), False


def execute(module):
    """The late module, if it is one."""
    execution = _waiting.get(module)
    if execution is None:
        return
    with execution.lock:
        if execution.began:
            return  # by another thread, and it is over; or by this one: what the module asks of itself is there or not
        content = _ModuleType.__getattribute__(module, "__dict__")
        before = dict(content)
        try:
            execution.began = True
            execution.loader.exec_module(module)
        except BaseException:  # an interrupt, too: the next who asks gets a whole module
            content.clear()
            content.update(before)
            execution.began = False
            raise
    module.__class__ = _ModuleType
    _waiting.pop(module, None)


class _LateLoader:
    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return LateModule(spec.name)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = getattr(self._loader, "plain", self._loader)
        _waiting[module] = _Execution(self._loader)


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
    facts = (FORMAT, sys.implementation.cache_tag, sys.hexversion, _bootstrap_external.MAGIC_NUMBER, sys.flags.optimize,
             sys.prefix, sys.pycache_prefix, paths)
    return _imp.source_hash(FORMAT, repr(facts).encode()).hex()  # importlib.util's, whose import would take 2 ms


def is_private(facts):
    """Whether nobody but this user (and root) could have written it."""
    return facts.st_uid == os.geteuid() and not facts.st_mode & 0o022


def state_of(facts):
    """What tells another content of a source. Archives and copies keep the time of its change, and versions of one size
    are many: "1.2.3", "1.2.4"; nobody can set the time at which the file itself changed."""
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size


def changed_at(path):
    """When the folder changed, in nanoseconds; None: it is not there."""
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return None


def place_of(source, package):
    """The folder in which a module is looked for that has this source."""
    folder = os.path.dirname(source)
    return os.path.dirname(folder) if package else folder


def _python_looks():
    """Whether Python's own hooks are the first that look through the folders of sys.path: others make other modules of
    files. Behind them are those of names that are no folders, as of packages that are installed where they are made."""
    for hook in sys.path_hooks:
        if getattr(hook, "__qualname__", "") != "zipimporter":
            loaders = [cell.cell_contents for cell in getattr(hook, "__closure__", None) or ()]
            return any(type(one) is tuple and (SourceFileLoader, SOURCE_SUFFIXES) in one for one in loaders)
    return False


class Store:
    """The stored modules: `index` by name, each (offset, size, source, cached, is a package, the source's state);
    `expressions`, see Expressions. Empty when there is no file that can be used. `paths`: sys.path as the start sees
    it. `stale`: something of it has changed."""

    def __init__(self):
        self.index, self.expressions, self._file = {}, {}, None
        self.path, self.paths, self.stale = None, tuple(sys.path), False
        self._lock = _thread.allocate_lock()  # a thread that reads the file while it is closed could read another one
        place = folder()
        if place is None or not all(isinstance(one, str) and one.startswith("/") for one in self.paths):
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

    def _is_first(self, name, folders, place):
        """Whether a module is looked for in `place` before all others; `folders`: its package's."""
        if not _python_looks():
            return False
        if folders is not None:
            return next(iter(folders), None) == place
        if tuple(one for one in sys.path if one in self.paths) != self.paths or place not in self.paths:
            return False
        fresh = [one for one in sys.path[:sys.path.index(place)] if one not in self.paths]  # the notebook's folder
        other = PathFinder.find_spec(name, fresh) if fresh else None
        return other is None or other.loader is None

    def find(self, name, folders):
        """The specification of a module; None: it is not stored, or its source has changed, or another is first."""
        entry = self.index.get(name)
        if entry is None:
            return None
        offset, size, source, cached, package, state = entry  # the offset is behind the index
        if not self._is_first(name, folders, place_of(source, package)):
            return None
        try:
            if state_of(os.stat(source)) != state:
                raise FileNotFoundError
        except OSError:
            self.stale = True
            return None
        loader = _StoredLoader(SourceFileLoader(name, source), self, offset, size)
        spec = ModuleSpec(name, loader, origin=source, is_package=package)
        if package:
            spec.submodule_search_locations.append(os.path.dirname(source))
        spec.has_location, spec.cached = True, cached
        return spec

    def code(self, offset, size):
        """A module's code; None: it cannot be had, as after the start."""
        try:
            with self._lock:
                data = os.pread(self._file, size, self._begin + offset) if self._file is not None else b""
            return marshal.loads(data)
        except (OSError, ValueError, EOFError, TypeError):
            return None

    def close(self):
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None


class _StoredLoader:
    """Executes a module's stored code. The module has Python's own loader, `plain`, then."""

    def __init__(self, plain, store, offset, size):
        self.plain, self._store, self._where = plain, store, (offset, size)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.plain
        code = self._store.code(*self._where)
        if code is None:
            self.plain.exec_module(module)
        else:
            _imp._fix_co_filename(code, self.plain.path)  # it may have been compiled elsewhere
            exec(code, module.__dict__)


# --- Regular expressions -------------------------------------------------------------------------------------------


class Expressions:
    """Stands in for the compiler of `re`: `known` has the arguments of _sre.compile() by whether the pattern is
    of bytes, pattern and flags. What is not known is compiled, and known then."""

    def __init__(self, known):
        import re

        self.known, self._keys = known, {}  # _keys: by thread, what it compiles
        self._compiler = compiler = getattr(re, "_compiler", None)
        if hasattr(compiler, "compile") and hasattr(compiler, "_sre"):  # as in CPython 3.11 to 3.15
            self._compile, self._sre = compiler.compile, compiler._sre
            compiler.compile, compiler._sre = self.compile, self
        else:
            self._compiler = None

    def compile(self, pattern, flags=0, *made):
        """As the compiler's, and as the engine's, which the compiler calls."""
        thread = _thread.get_ident()
        before = self._keys.get(thread)
        if made:
            if before is not None and before[1] is pattern:
                self.known[before] = flags, *made
            return self._sre.compile(pattern, flags, *made)
        if type(pattern) not in (str, bytes):
            return self._compile(pattern, flags)
        key = type(pattern) is bytes, pattern, int(flags)
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
        if self._compiler is not None:
            self._compiler.compile, self._compiler._sre = self._compile, self._sre


# --- The start -----------------------------------------------------------------------------------------------------


class _Finder:
    """Stands before the finder that looks through sys.path, behind all that others have installed."""

    def __init__(self):
        self.store = Store()

    def find_spec(self, name, path=None, target=None):
        spec = self.store.find(name, path)
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
    global _quiet
    finder = _Finder()
    _quiet = _STARTING
    places = [place for place, one in enumerate(sys.meta_path) if one is PathFinder]
    if places:
        sys.meta_path.insert(places[0], finder)
    expressions = Expressions(finder.store.expressions)

    def end():
        """The shell stands. Returns a function that stores what was imported, for a quiet moment; None: it is stored,
        or nothing is to be."""
        global _quiet
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        _quiet = _STARTED
        expressions.close()
        finder.store.close()
        store, names = finder.store, tuple(sys.modules)
        if store.path is None or (store.index and not store.stale) or not _python_looks():
            return None

        def write():
            from . import start_store

            start_store.write(store, names)

        return write

    return end
