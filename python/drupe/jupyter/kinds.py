"""What kind of thing a completion is, where the completer does not tell. No code of the user's runs for it: properties
and __getattr__ are not called."""
import builtins
import inspect
import keyword
import re
import sys
import types

_VAGUE = ("<unknown>", "variable", "attribute", "", None)
# On one line, each in time that grows with its length: only at the start of a word is one looked for.
_OWNER = re.compile(r"(?<![\w.])([^\W\d]\w*(?:\.[^\W\d]\w*)*)\.\Z")
_FROM = re.compile(r"[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t][(\w, \t]*\Z")
_IMPORT = re.compile(r"[ \t]*(?:import[ \t][\w., \t]*|from[ \t]+[\w.]*)\Z")
_DESCRIPTORS = (property, types.GetSetDescriptorType, types.MemberDescriptorType)
_METHODS = (staticmethod, classmethod, types.ClassMethodDescriptorType)


def kinds(shell, code, found):
    """The types of IPython's completions, as jedi would name them."""
    contexts = {}  # what stands before the completions is read once: there may be hundreds, and a long cell
    return [_kind(contexts, shell.user_ns, code, one) if one.type in _VAGUE else one.type for one in found]


def _kind(contexts, names, code, one):
    place = one.start, one.text.startswith(".")
    try:
        if place not in contexts:
            contexts[place] = _context(names, code[:one.start] + one.text[:place[1]])
        return contexts[place](one.text.lstrip("."))
    except Exception:  # what somebody's metaclass raises
        return "instance"


def _context(names, before):
    """A function that gives the type of a name which stands behind `before`."""
    line = before[before.rfind("\n") + 1:]
    imported = _FROM.match(line)
    if imported:
        module = sys.modules.get(imported[1])
        return lambda name: _of_attribute(module, name, "module")
    if _IMPORT.match(line):
        return lambda name: "module"
    if line.endswith("."):
        found = _OWNER.search(line)
        owner = _find(names, found[1]) if found else None
        return lambda name: _of_attribute(owner, name, "instance")
    return lambda name: _of_name(names, name)


def _of_name(names, name):
    if keyword.iskeyword(name):
        return "keyword"
    missing = object()
    value = names.get(name, getattr(builtins, name, missing))
    return "instance" if value is missing else _of(value)


def _find(names, path):
    """The object with a dotted name; None where that would have to be computed."""
    first, *rest = path.split(".")
    value = names.get(first, getattr(builtins, first, None))
    for name in rest:
        value = inspect.getattr_static(value, name, None)
        if isinstance(value, _DESCRIPTORS):
            return None
    return value


def _of_attribute(owner, name, otherwise):
    missing = object()
    value = missing if owner is None else inspect.getattr_static(owner, name, missing)
    return otherwise if value is missing else _of(value)


def _of(value):
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    if isinstance(value, _DESCRIPTORS):
        return "property"
    if inspect.isroutine(value) or isinstance(value, _METHODS) or callable(value):
        return "function"
    return "instance"
