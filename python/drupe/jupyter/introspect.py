"""complete, inspect, is_complete, history: replies from IPython's own machinery."""
import contextlib
import re
import sys

from IPython.core.completer import provisionalcompleter, rectify_completions
from IPython.utils.tokenutil import token_at_cursor

from drupe import magics

from . import jsontext, kinds

_TYPES_KEY = "_jupyter_types_experimental"
_MOST = 2**62  # what a column of the history's database holds


def _text(content, name, default=""):
    value = content.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise TypeError("%s must be text, not %s" % (name, type(value).__name__))
    return jsontext.well_formed(value)


def _integer(content, name, default=None):
    value = content.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _MOST:
        raise TypeError("%s must be an integer, not %r" % (name, value))
    return value


def _position(content):
    """The code and a cursor inside it, counted in code points; at the end when the client does not say."""
    code = _text(content, "code")
    position = content.get("cursor_pos")
    if not isinstance(position, int) or isinstance(position, bool):
        position = len(code)
    return code, max(0, min(position, len(code)))


def complete(shell, content):
    code, position = _position(content)
    with provisionalcompleter():
        found = list(rectify_completions(code, shell.Completer.completions(code, position)))
    metadata = {}
    if shell.kernel.use_experimental_completions:
        metadata[_TYPES_KEY] = [
            {"start": one.start, "end": one.end, "text": one.text, "type": kind, "signature": one.signature}
            for one, kind in zip(found, kinds.kinds(shell, code, found))
        ]
    return {
        "status": "ok",
        "matches": [one.text for one in found],
        "cursor_start": found[0].start if found else position,
        "cursor_end": found[0].end if found else position,
        "metadata": metadata,
    }


def inspect(shell, content):
    code, position = _position(content)
    detail = 1 if content.get("detail_level") == 1 else 0
    omitted = content.get("omit_sections")
    omitted = [one for one in omitted if isinstance(one, str)] if isinstance(omitted, (list, tuple)) else ()
    reply = {"status": "ok", "found": False, "data": {}, "metadata": {}}
    name = token_at_cursor(code, position)
    try:
        with _quick_texts():
            data = shell.object_inspect_mime(name, detail_level=detail, omit_sections=omitted)
    except KeyError:
        return reply
    if name.lstrip("%") in magics.NAMES and not detail and shell._object_find(name).ismagic:
        data["text/html"] = magics.help_html(shell, name.lstrip("%")) or data["text/html"]
    elif "text/html" in data:
        data["text/html"] = _fitting(data["text/html"])
    reply.update(found=True, data=data)
    return reply


def _quick_texts():
    """Front-ends ask about what the cursor is on: that must not wait for a device."""
    if "drupe._engine" not in sys.modules:
        return contextlib.nullcontext()
    from drupe.array import _text

    return _text.waiting_at_most(_text.LOOK)


def _fitting(html):
    """IPython's HTML without headings as large as a page's title, and without a background that only suits a light
    theme."""
    html = re.sub(r"^<h1>(.*)</h1>$", r"<strong>\1</strong>", html, flags=re.MULTILINE)
    return re.sub(r'(<div class="highlight") style="background:[^"]*"', r"\1", html)


def is_complete(shell, content):
    status, indent = shell.check_complete(_text(content, "code"))
    return {"status": status, "indent": indent} if status == "incomplete" else {"status": status}


def history(shell, content):
    manager = shell.history_manager
    raw, output = content.get("raw") is not False, bool(content.get("output", False))
    kind, count = _text(content, "hist_access_type", "tail"), _integer(content, "n")
    if count is not None and count < 0:
        raise ValueError("n must not be negative")
    if kind == "tail":
        found = manager.get_tail(10 if count is None else count, raw=raw, output=output, include_latest=True)
    elif kind == "range":
        session, start, stop = (_integer(content, name) for name in ("session", "start", "stop"))
        found = manager.get_range(session or 0, start or 1, stop, raw=raw, output=output)
    elif kind == "search":
        pattern, unique = _text(content, "pattern") or "*", bool(content.get("unique", False))
        found = manager.search(pattern, raw=raw, output=output, n=count, unique=unique)
    else:
        raise ValueError("hist_access_type must be tail, range or search, not %r" % (kind,))
    # IPython calls its own session 0 in one of the three; clients compare numbers.
    return {"status": "ok", "history": [(session or manager.session_number, *rest) for session, *rest in found]}
