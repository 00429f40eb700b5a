"""What kind of thing a completion is, where the completer does not tell. No code of the user's runs for it: properties
and __getattr__ are not called."""
import builtins
import inspect
import keyword
import re
import sys
import types

_VAGUE = ("<unknown>", "variable", "attribute", "", None)
_OWNER = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)\.\Z")
_FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+[(\w, \t]*\Z", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*(?:import[ \t]+[\w., \t]*|from[ \t]+[\w.]*)\Z", re.MULTILINE)
_DESCRIPTORS = (property, types.GetSetDescriptorType, types.MemberDescriptorType)
_METHODS = (staticmethod, classmethod, types.ClassMethodDescriptorType)


def kind(shell, code, one):
    """The type of a completion of IPython's, as jedi would name it."""
    if one.type not in _VAGUE:
        return one.type
    try:
        return _kind(shell.user_ns, code[:one.start] + one.text[:one.text.startswith(".")], one.text.lstrip("."))
    except Exception:  # what somebody's metaclass raises
        return "instance"


def _kind(names, before, text):
    imported = _FROM.search(before)
    if imported:
        return _of_attribute(sys.modules.get(imported[1]), text, "module")
    if _IMPORT.search(before):
        return "module"
    if before.endswith("."):
        owner = _OWNER.search(before)
        return _of_attribute(_find(names, owner[1]) if owner else None, text, "instance")
    if keyword.iskeyword(text):
        return "keyword"
    missing = object()
    value = names.get(text, getattr(builtins, text, missing))
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
