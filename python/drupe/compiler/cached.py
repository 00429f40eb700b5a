"""What the passes made of a kernel, in the disk cache: the next process launches it without them.

An entry is found by what is known without the passes, tells what they read (reads.py), and counts where all of that
is the same now. What cannot be told exactly is not kept. Objects of the user are asked, which may raise anything: then
there is no entry, and what is wrong with them is said by the passes.
"""
import importlib.util
import json
import os
import sys
import types as pytypes

from drupe import _engine
from drupe.compiler import launch, reads
from drupe.compiler.variants import Text, Variant

_FORMAT = 2


def variant(function, target):
    """The Variant of a function for a variants.Target: from the cache, or by the passes. Raises KernelError."""
    key = _key(function, target)
    found = _found(key, function, target)
    if found is None:
        from drupe.compiler import passes

        found = passes.run(function, target)
        if key is not None:
            _keep(key, found, target.kinds)
    return found


def fingerprint(folder=os.path.dirname(__file__)):
    """Other numbers when a file of the compiler is another one; None where it does not lie in files."""
    found = []
    try:
        for path in (folder, os.path.join(folder, "clib")):
            with os.scandir(path) as entries:
                found += [[one.name, *_seen(one.path)] for one in entries if one.is_file()]
    except OSError:
        return None
    return sorted(found)


def _seen(path):
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns]


_compiler = fingerprint()  # of the files that this process has loaded, or will


def _key(function, target):
    """Bytes by which an entry is found; None where there can be none."""
    plain = isinstance(function, pytypes.FunctionType) and not any(
        hasattr(function, name) for name in ("_cut", "__wrapped__"))
    if not plain or _compiler is None or not _engine._cache_is_on():
        return None
    code, dialect = function.__code__, target.dialect
    try:
        outside = [[name, _glance(function, name)] for name in (*code.co_freevars, *code.co_names)]
        reader = reads.Reader(function, target.kinds)
        return _packed([
            _FORMAT, _compiler, sys.implementation.cache_tag, sys.hexversion, target.language, target.fp64,
            target.checked, target.dims, target.grouped, reader.kinds,
            dialect and [len(dialect.arrays), {name: value for name, value in vars(dialect).items()
                                               if name != "arrays"}],
            function.__name__, code.co_code.hex(), [repr(one) for one in code.co_consts if reads.plain_fact(one)],
            outside])
    except Exception:
        return None


def _packed(facts):
    """JSON; halves of characters, which it would take together, are an error."""
    return json.dumps(facts, ensure_ascii=False).encode()


def _glance(function, name):
    """What a name may be to a function, so far that kernels which differ have entries of their own. All of it is
    looked at with the entry."""
    try:
        value = reads.looked_up(function, name)[1]
    except AttributeError:
        return None
    if isinstance(value, launch.DeviceFunction):
        value = value.py_func
    if isinstance(value, pytypes.FunctionType):
        return value.__code__.co_code.hex()
    return reads.plain_fact(value) or reads.steady_name(value)


def _numpy():
    """Other numbers when there is another NumPy, which need not be imported."""
    return _seen(os.path.join(os.path.dirname(importlib.util.find_spec("numpy").origin), "version.py"))


def _found(key, function, target):
    kept = key and _engine._cache_find(key)
    if not kept:
        return None
    try:
        reader, entry = reads.Reader(function, target.kinds), json.loads(kept)
        if entry["numpy"] and entry["numpy"] != _numpy() or any(
                reader.take(step) != fact for step, fact in entry["reads"]):
            return None
        text = Text(*map(_tuples, entry["text"]))
        _check_types(text, entry)
        return Variant(text, cost=entry["cost"], grain=entry["grain"], failures=entry["failures"],
                       written=_tuples(entry["written"]), watched=reader.watched,
                       sources=[reader.lines[at] for at in sorted(reader.lines)],
                       lowered=lambda: _lowered(function, target))
    except Exception:
        return None


def _check_types(text, entry):
    """TypeError where an entry is not what _keep() writes."""
    numbers = [entry["cost"], entry["grain"], text.item_bytes, *([] if text.room is None else [text.room])]
    for kind, values in ((str, (text.text, text.name, text.form)), (tuple, (text.params, *text.params)),
                         (int, numbers), (bool, [entry["failures"]]), (list, [entry["written"]])):
        if any(type(one) is not kind for one in values):
            raise TypeError(values)


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _lowered(function, target):
    from drupe.compiler import passes

    return passes.lowered(function, target)


def _keep(key, made, kinds):
    if fingerprint() != _compiler:  # somebody installs another Drupe: it is not known which one's passes have run
        return
    try:
        entry = {"numpy": "numpy" in sys.modules and _numpy(), "reads": reads.steps_of(made.function, kinds),
                 "text": list(vars(made.text).values()), "cost": made.cost, "grain": made.grain,
                 "failures": made.failures, "written": made.written}
        _engine._cache_add(key, _packed(entry))
    except Exception:
        pass
