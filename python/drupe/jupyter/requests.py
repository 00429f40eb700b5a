"""Every request except execute_request: a table from message type to a function that returns the reply's content."""
import sys

from . import introspect, jsontext
from .interrupt import shielded
from .parents import message_of


def _comm_info(shell, content):
    if "comm" not in sys.modules:  # nobody has opened one
        return {"status": "ok", "comms": {}}
    from . import comms

    return {"status": "ok", "comms": comms.info(content)}


_REPLIES = {
    "complete_request": introspect.complete,
    "inspect_request": introspect.inspect,
    "is_complete_request": introspect.is_complete,
    "history_request": introspect.history,
    "comm_info_request": _comm_info,
}


@shielded
def _answer_comm(shell, request):
    import comm  # noqa: F401  sets the hooks

    from . import comms

    try:
        message = message_of(
            request.parent, jsontext.loads(request.content), jsontext.loads(request.metadata), request.buffers
        )
        message["parent_header"] = jsontext.loads(request.parent_header)
    except ValueError:
        shell.showtraceback()
        return
    comms.answer(comm.get_comm_manager(), request.type, message)


def answer(shell, server, request):
    """The content of the reply, or None for a message that has none: comms, and types we do not know."""
    kind = request.type
    if kind in ("comm_open", "comm_msg", "comm_close"):
        return _answer_comm(shell, request)
    if kind not in _REPLIES:
        return None
    content = jsontext.loads(request.content)
    request.parent.message = (content, jsontext.loads(request.metadata))
    return _REPLIES[kind](shell, content)
