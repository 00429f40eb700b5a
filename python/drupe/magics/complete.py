"""Completion of the lines of magics: options, their values, devices, files, variables. Asks no driver."""
import os
import re
import sys

from drupe.magics import base

_LINE = re.compile(r"[ \t]*(?:[\w \t,]+=[ \t]*)?%%?(\w+)[ \t]+(.*)\Z", re.DOTALL)
_LAST_WORD = re.compile(r"(?:[^\s\"']|\"[^\"]*\"?|'[^']*'?)*\Z")
_DEVICE_WORDS = ("host", "opencl", "cpu", "gpu", "accelerator")


def complete(shell, line):
    """What may follow a line up to the cursor: (the end of it that is replaced, [(text, kind), ...])."""
    match = _LINE.match(line)
    if match is None:
        return "", ()
    magic = base.find(shell, match[1])
    if magic is None:
        return "", ()
    return _complete_arguments(magic, match[2])


def _complete_arguments(magic, text):
    word = _LAST_WORD.search(text)[0]
    before = text[:len(text) - len(word)].split()
    if magic.tail is not None and _in_tail(magic, before, word):
        return _python(magic.shell, text)
    option, value, left = _wanted(magic, before, word)
    if option is not None:
        return value, _values(magic, option, value)
    if left and word.startswith("-"):
        names = [name for one in magic.all_options if not one.positional for name in one.names]
        return word, [(name, "param") for name in sorted(names, key=_order) if name.startswith(word)]
    return "", ()


def _in_tail(magic, before, word):
    """Whether the word belongs to the code behind the options."""
    wants = False
    for one in before:
        option = magic.find_option(one) if one.startswith("-") else None
        if not wants and option is None:
            return True
        wants = not wants and option.takes_value and one in option.names
    return not wants and not word.startswith("-")


def _python(shell, text):
    """Names of Python: IPython completes them in its own magics only."""
    name = re.search(r"[\w.]*\Z", text)[0]
    if not name or name[0].isdigit():
        return "", ()
    try:
        found = shell.Completer.attr_matches(name) if "." in name else shell.Completer.global_matches(name)
    except Exception:  # what __dir__ of somebody's object raises
        return "", ()
    return name, [(one, "instance") for one in found]


def _order(name):
    return name.lstrip("-").lower(), len(name)


def _wanted(magic, before, word):
    """The option whose value the word is, the part of the word that is the value, and whether an option may stand
    here."""
    count, wants = 0, None
    for one in before:
        if wants is not None:
            wants = None
            continue
        option = magic.find_option(one) if one.startswith("-") else None
        if option is not None and option.takes_value and one in option.names:
            wants = option
        elif not one.startswith("-"):
            count += 1
    if wants is not None:
        return wants, word, False
    option = magic.find_option(word) if word.startswith("-") else None
    if option is not None and option.takes_value and word not in option.names:
        start = word.index("=") + 1 if word.startswith("--") else 2
        return option, word[start:], False
    if word.startswith("-"):
        return None, "", True
    places = [one for one in magic.options if one.positional]
    if places and (count < len(places) or places[-1].settings.get("nargs") in ("*", "+")):
        return places[min(count, len(places) - 1)], word, True
    return None, "", True


def _values(magic, option, start):
    if option.choices:
        return [(str(one), "param") for one in option.choices if str(one).startswith(start)]
    if callable(option.complete):
        return [(one, "param") for one in option.complete(magic, start) if one.startswith(start)]
    return _KINDS[option.complete](magic, start) if option.complete else []


def _devices(_magic, start):
    """Devices by filter. Only those that are open already: looking for others would open drivers."""
    done, _, last = start.rpartition(",")
    done += "," if done else ""
    words = list(_DEVICE_WORDS)
    engine = sys.modules.get("drupe._engine")
    if engine is not None:
        known = engine._known_devices()
        words = [*dict.fromkeys(part for one in known for part in _beginnings(one.filter_string)), *words]
    return [(done + one, "device") for one in dict.fromkeys(words) if one.startswith(last.lower())]


def _beginnings(filter_string):
    """opencl:cpu:0 -> itself, opencl:cpu, opencl."""
    parts = filter_string.split(":")
    return [":".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _paths(_magic, start, folders_only=False):
    quote = start[:1] if start[:1] in "\"'" else ""
    typed = start[len(quote):]
    head, tail = os.path.split(typed)
    try:
        entries = sorted(os.scandir(os.path.expanduser(head) or "."), key=lambda one: one.name)
    except OSError:
        return []
    found = []
    for one in entries:
        if not one.name.startswith(tail) or (one.name.startswith(".") and not tail):
            continue
        folder = one.is_dir()
        if folder or not folders_only:
            mark = quote or ("'" if re.search(r"[\s\"'\\]", one.name) else "")
            found.append((mark + os.path.join(head, one.name) + ("/" if folder else mark), "path"))
    return found


def _names(magic, start):
    names = sorted(one for one in magic.shell.user_ns if one.startswith(start) and not one.startswith("_"))
    return [(one, "instance") for one in names]


_KINDS = {"device": _devices, "file": _paths, "folder": lambda magic, start: _paths(magic, start, True), "name": _names}
