"""complete, inspect, is_complete, history: replies from IPython's own machinery."""
from IPython.core.completer import provisionalcompleter, rectify_completions
from IPython.utils.tokenutil import token_at_cursor

_TYPES_KEY = "_jupyter_types_experimental"


def _position(content):
    """The code and a cursor inside it."""
    code = str(content.get("code", ""))
    position = content.get("cursor_pos")
    if not isinstance(position, int):
        position = len(code)
    return code, max(0, min(position, len(code)))


def complete(shell, content):
    code, position = _position(content)
    with provisionalcompleter():
        found = list(rectify_completions(code, shell.Completer.completions(code, position)))
    types = [
        {"start": one.start, "end": one.end, "text": one.text, "type": one.type, "signature": one.signature}
        for one in found
    ]
    return {
        "status": "ok",
        "matches": [one.text for one in found],
        "cursor_start": found[0].start if found else position,
        "cursor_end": found[0].end if found else position,
        "metadata": {_TYPES_KEY: types},
    }


def inspect(shell, content):
    code, position = _position(content)
    detail = 1 if content.get("detail_level") == 1 else 0
    reply = {"status": "ok", "found": False, "data": {}, "metadata": {}}
    try:
        data = shell.object_inspect_mime(
            token_at_cursor(code, position), detail_level=detail, omit_sections=content.get("omit_sections") or ()
        )
    except KeyError:
        return reply
    if not shell.enable_html_pager:
        data.pop("text/html", None)
    reply.update(found=True, data=data)
    return reply


def is_complete(shell, content):
    status, indent = shell.check_complete(str(content.get("code", "")))
    return {"status": status, "indent": indent} if status == "incomplete" else {"status": status}


def history(shell, content):
    manager = shell.history_manager
    raw, output = bool(content.get("raw", True)), bool(content.get("output", False))
    kind, count = content.get("hist_access_type", "tail"), content.get("n")
    if kind == "tail":
        found = manager.get_tail(10 if count is None else count, raw=raw, output=output, include_latest=True)
    elif kind == "range":
        session, start, stop = content.get("session") or 0, content.get("start") or 0, content.get("stop")
        found = manager.get_range(session, start, stop, raw=raw, output=output)
    elif kind == "search":
        pattern, unique = content.get("pattern") or "*", bool(content.get("unique", False))
        found = manager.search(pattern, raw=raw, output=output, n=count, unique=unique)
    else:
        raise ValueError("hist_access_type must be tail, range or search, not %r" % (kind,))
    # IPython calls its own session 0 in one of the three; clients compare numbers.
    return {"status": "ok", "history": [(session or manager.session_number, *rest) for session, *rest in found]}
