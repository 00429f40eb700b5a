"""Writes the code of the modules that a start imports into one file: see start_imports.py, which reads it.

The file: the size of the index and of the whole in eight bytes each, the index, and the code of each module as its .pyc
has it. The index is marshal's: ([(folder, when it changed)], {name: (offset, size, source, cached, is a package, the
source's state)}, {(is of bytes, pattern, flags): arguments of _sre.compile()}).
"""
import contextlib
import importlib.util
import marshal
import os
import sys
from importlib.machinery import SourceFileLoader

from . import start_imports

_LARGEST = 64 << 20  # bytes of code
_MOST = 8  # files


def write(store, names):
    """Store the modules of these names, and what the store has of expressions, in its file. Nothing is written where
    that cannot be: the next kernel starts all the same."""
    place = os.path.dirname(store.path)
    with contextlib.suppress(OSError, ValueError):
        os.makedirs(place, mode=0o700, exist_ok=True)
        if start_imports.is_private(os.stat(place)) and os.access(place, os.W_OK):
            _write_file(store, _modules(store, names))
            _tidy(place)


def clear():
    """Remove what is stored for all interpreters and environments. How many bytes that were."""
    place, freed = start_imports.folder(), 0
    with contextlib.suppress(OSError):
        for entry in os.scandir(place) if place else ():
            with contextlib.suppress(OSError):
                size = entry.stat(follow_symlinks=False).st_size
                os.unlink(entry.path)
                freed += size
    return freed


def _modules(store, names):
    """[(name, code, source, cached, is a package, the source's state)]."""
    found, size = [], 0
    for name in names:
        one = None
        with contextlib.suppress(Exception):  # what stands for a module in sys.modules may be anything
            one = _module(store, name)
        size += len(one[1]) if one else 0
        if one and size < _LARGEST:
            found.append(one)
    return found


def _module(store, name):
    """None: it cannot be stored, or was found by others than Python's finder: they would be asked again."""
    module = sys.modules.get(name)
    spec = None if type(module) is start_imports.LateModule else getattr(module, "__spec__", None)
    if spec is None or type(spec.loader) is not SourceFileLoader or spec.name != name or not spec.cached:
        return None
    package = spec.submodule_search_locations is not None
    if "." not in name and start_imports.place_of(spec.origin, package) not in store.paths:
        return None
    facts, code = os.stat(spec.origin), _code(spec.cached, spec.origin)
    return (name, code, spec.origin, spec.cached, package, start_imports.state_of(facts)) if code else None


def _tidy(place):
    """Remove the files that have not been written for longest, those of environments that are gone among them."""
    files = sorted((one.stat().st_mtime_ns, one.path) for one in os.scandir(place))
    for _, path in files[:-_MOST]:
        os.unlink(path)


def _code(cached, source):
    """What the .pyc has behind its head, if that names this source; see PEP 552. None: it does not."""
    try:
        with open(cached, "rb") as file:
            head, code = file.read(16), file.read()
    except OSError:
        return None
    facts = os.stat(source)
    wanted = importlib.util.MAGIC_NUMBER + bytes(4)
    wanted += (int(facts.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little")
    wanted += (facts.st_size & 0xFFFFFFFF).to_bytes(4, "little")
    return code if head == wanted else None


def _write_file(store, modules):
    folders = {*store.paths, *(os.path.dirname(one[2]) for one in modules),
               *(start_imports.place_of(one[2], one[4]) for one in modules)}
    index, at = {}, 0
    for name, code, *facts in modules:
        index[name] = (at, len(code), *facts)
        at += len(code)
    known = [(one, start_imports.changed_at(one)) for one in sorted(folders)]
    expressions = {key: (int(made[0]), [int(word) for word in made[1]], *made[2:])
                   for key, made in store.expressions.items()}  # named constants are more than numbers
    listed = marshal.dumps((known, index, expressions))
    head = len(listed).to_bytes(8, "little") + (start_imports.HEAD + len(listed) + at).to_bytes(8, "little")
    fresh = "%s.%s" % (store.path, os.urandom(8).hex())
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(head + listed)
            out.writelines(code for _, code, *_ in modules)
        os.replace(fresh, store.path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise
