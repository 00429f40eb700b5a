"""What the passes read besides the types of arguments: sources of functions, and what names and attributes are.

A *step* reads one of these from a function or object that is known by its number, and gives a *fact*: lists, texts and
numbers, which are equal where the passes would do the same. `steps_of()` tells the steps of passes that have run, with
their facts; a Reader takes the same steps in another process. So there is one piece of code for both.
"""
import enum
import inspect
import linecache
import struct
import sys
import types as pytypes

from drupe.compiler import types
from drupe.compiler.names import STEADY, looked_up, may_change, watched
from drupe.compiler.source import Lines

# Where functions and types are looked for that do not know where they are from.
_HOMES = ("builtins", "math", "cmath", "numpy", "drupe.array", "drupe.kernel_api", "scipy.special")
_OWN_WAYS = ("__eq__", "__ne__", "__hash__", "__bool__", "__int__", "__index__", "__trunc__", "__len__", "__iter__",
             "__getattribute__", "__class__", "__name__")


class Inexact(Exception):
    """An object that no fact tells exactly."""


class Reader:
    """Begins with a kernel's function, the thing number 0, and the types of its arguments, whose facts `kinds` are.
    `watched`: of a Variant; `lines`: the sources by their places among those of a Variant; `found`: the values of
    attributes by (id of their owner, name). Raises Inexact."""

    def __init__(self, function, kinds):
        self.things, self.numbers, self.watched, self.lines, self.found = [], {}, [], {}, {}
        self._add(function)
        self.kinds = [self._kind(one) for one in kinds]

    def _add(self, thing):
        self.numbers[id(thing)] = len(self.things)
        self.things.append(thing)

    def take(self, step):
        """The fact of a step."""
        what, number, *rest = step
        return _STEPS[what](self, self.things[number], *rest)

    # --- Steps ---

    def source(self, function, place, lines, all_lines, numbered):
        """`all_lines`: also those behind it, which end it; `numbered`: whether the number of its first line counts."""
        first, text = function.__code__.co_firstlineno, _text_of(function)
        begin = first - 1
        self.lines[place] = Lines(first, text[begin:begin + lines])
        return [function.__name__, first if numbered else None, len(text) <= begin + all_lines,
                "".join(text[begin:begin + all_lines]),
                [self.fact(one) for one in function.__defaults__ or () if function is not self.things[0]]]

    def name(self, function, name):
        owner, value = looked_up(function, name)
        self.watched.append(watched(function, name, owner, value))
        return self.fact(value)

    def attribute(self, thing, name):
        value = self.found[id(thing), name] = getattr(thing, name)
        if may_change(thing):
            self.watched.append((vars(thing), name, value))
        return self.fact(value)

    # --- Facts ---

    def _kind(self, kind):
        if isinstance(kind, types.Tuple):
            return ["tuple", self._class_of_tuple(kind.cls), [self._kind(one) for one in kind.items]]
        if isinstance(kind, types.Scalar):
            return [kind.name, kind.weak]
        return [kind.dtype, kind.ndim, kind.layout, kind.space]

    def _class_of_tuple(self, kind):
        return None if kind is tuple else self.fact(kind)

    def fact(self, value):
        """What an object is to the passes. Raises Inexact."""
        plain = plain_fact(value)
        if plain is not None:
            return plain
        if isinstance(value, tuple) and not _has_own_ways(type(value)):
            return ["items", self._class_of_tuple(type(value)), [self.fact(one) for one in value]]
        if id(value) in self.numbers:
            return ["same", self.numbers[id(value)]]
        self._add(value)
        if _has(value, "_lowered_call", "_lowered_attribute", "_is_range") or type(value).__module__.startswith(
                ("numba.", "drupe.compat._numbas")) or _has_own_ways(type(value)):
            raise Inexact(value)
        if isinstance(value, pytypes.ModuleType) and not hasattr(value, "_device_function"):
            return ["module", value.__name__]
        steady = steady_name(value)
        if steady is not None:
            return ["steady", *steady]
        if _has(value, "dtype", "_cut") or hasattr(value, "__wrapped__") and not hasattr(value, "_device_function"):
            raise Inexact(value)
        return self._of_the_user(value)

    def _of_the_user(self, value):
        if isinstance(value, type):
            return _class(value)
        if hasattr(value, "_device_function"):  # a function can have one, too
            return ["device function", type(value).__name__, value.__name__, self.fact(value._device_function)]
        if isinstance(value, pytypes.FunctionType):
            return ["function", value.__name__]
        if isinstance(value, enum.Enum):
            return ["member", self.fact(type(value)), value._name_, self.fact(value._value_), *_mixed_in(value)]
        raise Inexact(value)


_STEPS = {"source": Reader.source, "name": Reader.name, "attribute": Reader.attribute}


def plain_fact(value):
    """The fact of a number, a text, a dtype and the like, which are known by their value; None of anything else."""
    kind = type(value)
    if value is None or value is Ellipsis or kind in (bool, int, str):
        return [kind.__name__, None if value is Ellipsis else value]
    if kind in (float, complex):
        return [kind.__name__, struct.pack("<2d", value.real, value.imag).hex()]
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if issubclass(kind, numpy.generic) and numpy.dtype(kind).type is kind and value.dtype.name in types.NAMES:
        return ["numpy", kind.__name__, value.dtype.name, value.tobytes().hex()]
    if isinstance(value, numpy.dtype) and value.isbuiltin == 1:
        return ["dtype", value.str, value.num]  # int64 and longlong are two
    return None


def steady_name(value):
    """(module, name) of a function or class of a module whose names nobody assigns to; None of anything else, such as
    what somebody has put there nevertheless."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(name, str):
        return None
    first, *rest = name.split(".")
    for home in _homes(value):
        module = sys.modules.get(home) if isinstance(home, str) else None
        if module is not None and _is_steady(home):
            found = vars(module).get(first)
            for part in rest:
                found = getattr(found, part, None)
            if found is value:
                return home, name
    return None


def _homes(value):
    """Names of modules that it may be from. What is written in Python can be called as something there is."""
    if isinstance(value, pytypes.FunctionType):
        return (value.__module__,) if _is_steady(value.__globals__.get("__name__")) else ()
    if isinstance(value, type):
        return (value.__module__,)
    made_by_users = not _is_steady(type(value).__module__) or _has(value, "__func__", "pyfunc", "_device_function")
    return () if made_by_users else (getattr(value, "__module__", None), *_HOMES)


def _is_steady(module):
    return isinstance(module, str) and module.partition(".")[0] in (*STEADY, "builtins")


def _has(value, *names):
    return any(hasattr(value, name) for name in names)


def _has_own_ways(kind):
    """Whether a class of the user's says what its objects are equal to, or what else the passes ask of an object."""
    return any(name in vars(one) for one in kind.__mro__ if not _is_steady(one.__module__) and one.__module__ != "enum"
               for name in _OWN_WAYS)


def _mixed_in(member):
    """The number or text that a member of an enumeration is, which need not be its value."""
    base = next((one for one in (int, float, str) if isinstance(member, one)), None)
    plain = {None: None, int: int.__int__, float: float.__float__, str: str.__str__}[base]
    return [] if base is None else [plain_fact(plain(member))]


def _class(kind):
    """The fact of a class of the user's: a named tuple, an enumeration, or one that only holds names."""
    for one in kind.__mro__:
        ours = one in (object, tuple, int, str, float) or not _is_steady(one.__module__)
        if type(one) not in (type, type(enum.Enum)) or not ours:
            raise Inexact(kind)
    return ["class", kind.__module__, kind.__name__, [[one.__module__, one.__qualname__] for one in kind.__mro__],
            list(getattr(kind, "_fields", ()))]


def _text_of(function):
    """All lines of a function's file or cell, as they are now."""
    name = function.__code__.co_filename
    linecache.checkcache(name)
    return linecache.getlines(name, function.__globals__)


# --- After the passes --------------------------------------------------------------------------------------

def steps_of(made, kinds):
    """[step, fact] of all that the passes read which made this tree.Function, in an order in which each thing is known
    before something is read from it. Raises Inexact, also where something has changed since."""
    reader, steps = Reader(made.sources[0].function, kinds), []
    todo = [*made.parsed.items(), *{(id(owner), name): (owner, name) for owner, name, _found in made.read}.values()]
    while ready := {id(owner) for owner, _read in todo}.intersection(reader.numbers):
        for owner, read in todo:
            if id(owner) in ready:
                steps += [[step, reader.take(step)] for step in _of(made, reader.numbers[id(owner)], read)]
        todo = [one for one in todo if id(one[0]) not in ready]
    of_ours = all(isinstance(read, str) and (plain_fact(owner) or steady_name(owner)) for owner, read in todo)
    if not of_ours or _identities(reader.watched) != _identities(made.watched) or not all(
            _is_same(found, reader.found.get((id(owner), name), found)) for owner, name, found in made.read):
        raise Inexact(todo)
    return steps


def _is_same(value, now):
    plain = plain_fact(value)
    return value is now or plain is not None and plain == plain_fact(now)


def _of(made, number, read):
    """The steps of an attribute, by its name, or of a function, by its Source and Names."""
    if isinstance(read, str):
        return [["attribute", number, read]]
    source, names = read
    return [["source", number, made.sources.index(source), *_extent(source), made.failures],
            *(["name", number, name] for name in names.constants)]


def _identities(watched):
    return {(id(owner), name, id(value)) for owner, name, value in watched}


def _extent(source):
    """How many lines a function has, and how many with those behind it that tell where it ends."""
    text, begin = _text_of(source.function), source.first - 1
    last = end = begin + len(source._lines)
    while end < len(text) and (end == last or text[end - 1].strip()[:1] in ("", "#", "\\")):
        end += 1
    same = text[begin:last] == source._lines == inspect.getblock(text[begin:end])
    if not same or source.name != source.function.__name__:
        raise Inexact(source.function)
    return last - begin, end - begin
