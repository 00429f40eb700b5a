"""What a debugger shows of values while nothing is stopped: a tree of variables, and rich representations."""
import json
import re
import reprlib

from . import jsontext

FIRST_REFERENCE = 1 << 30  # debugpy counts from 1; from here on references are ours
_CHILDREN_MOST = 1000
_HIDDEN = re.compile(r"_+|_i+\d*|_\d+|_[od]h|__\w+__")
_ATOMS = (int, float, complex, str, bytes, bytearray, bool, type(None), type(Ellipsis), range, slice)

_repr = reprlib.Repr()
_repr.maxlevel = 4
_repr.maxdict = _repr.maxlist = _repr.maxtuple = _repr.maxset = _repr.maxfrozenset = _repr.maxdeque = 20
_repr.maxstring = _repr.maxother = _repr.maxlong = 1000


def hidden(shell, name):
    """Whether IPython, not the user, has put this name into the namespace."""
    return name in shell.user_ns_hidden or _HIDDEN.fullmatch(name) is not None


def text_of(value):
    """repr() of bounded length, whatever the value does."""
    try:
        return _repr.repr(value)
    except Exception as error:
        return "<%s in repr of %s>" % (type(error).__name__, type(value).__name__)


class Tree:
    """Values by reference, valid until the next tree is made."""

    def __init__(self):
        self._values = []

    def globals(self, shell):
        """The user's variables."""
        names = [(name, value) for name, value in list(shell.user_ns.items()) if not _of_ipython(shell, name, value)]
        return [self._variable(name, value, name) for name, value in names]

    def children(self, reference, start=0, count=0):
        """What the value with this reference holds; None when there is no such reference."""
        at = reference - FIRST_REFERENCE
        if not 0 <= at < len(self._values):
            return None
        value, path = self._values[at]
        found = _children(value)[start:start + count if count else None]
        return [self._variable(name, child, path + suffix) for name, child, suffix in found]

    def _variable(self, name, value, path):
        reference = 0
        if not isinstance(value, _ATOMS) and _has_children(value):
            reference = FIRST_REFERENCE + len(self._values)
            self._values.append((value, path))
        return {
            "name": name,
            "value": text_of(value),
            "type": type(value).__name__,
            "evaluateName": path,
            "variablesReference": reference,
        }


def _of_ipython(shell, name, value):
    if name in shell.user_ns_hidden:
        return shell.user_ns_hidden[name] is value or _HIDDEN.fullmatch(name) is not None
    return _HIDDEN.fullmatch(name) is not None


def _has_children(value):
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return len(value) > 0
    return not isinstance(value, type) and not callable(value)


def _children(value):
    """Triples: name, value, what to append to an expression for it."""
    try:
        if isinstance(value, dict):
            items = list(value.items())[:_CHILDREN_MOST]
            return [(text_of(key), child, "[%s]" % text_of(key)) for key, child in items]
        if isinstance(value, (list, tuple)):
            return [(str(at), child, "[%d]" % at) for at, child in enumerate(value[:_CHILDREN_MOST])]
        if isinstance(value, (set, frozenset)):
            return [(str(at), child, "") for at, child in zip(range(_CHILDREN_MOST), list(value))]
        return _attributes(value)
    except Exception as error:
        return [("error", "%s: %s" % (type(error).__name__, error), "")]


def _attributes(value):
    found = []
    for name in dir(value):
        if name.startswith("__"):
            continue
        try:
            child = getattr(value, name)
        except Exception as error:
            child = "%s: %s" % (type(error).__name__, error)
        if not callable(child):
            found.append((name, child, "." + name))
    return found


def rich(shell, value):
    """The mime bundle of a value and its metadata."""
    data, metadata = shell.display_formatter.format(value)
    return {"data": data, "metadata": {key: extra for key, extra in metadata.items() if key in data}}


def failure(text):
    """A bundle that says why there is none."""
    return {"data": {"text/plain": text}, "metadata": {}}


def rich_text(value):
    """The same as JSON text: what debugpy evaluates at a frame."""
    from IPython import get_ipython

    return jsontext.dumps(rich(get_ipython(), value)).decode("utf-8")


def rich_of_text(text):
    """The bundle from repr() of rich_text(); from that of an exception, when evaluating failed."""
    import ast

    try:
        return json.loads(ast.literal_eval(text))
    except ValueError:
        return failure(text)
