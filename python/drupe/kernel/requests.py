"""Every request except execute_request: a table from message type to a function that returns the reply's content."""
from . import introspect, jsontext


def _comm_info(shell, content):
    target = content.get("target_name")
    comms = getattr(shell.kernel.comm_manager, "comms", {})
    found = {
        comm_id: {"target_name": comm.target_name}
        for comm_id, comm in comms.items()
        if target is None or comm.target_name == target
    }
    return {"status": "ok", "comms": found}


_REPLIES = {
    "complete_request": introspect.complete,
    "inspect_request": introspect.inspect,
    "is_complete_request": introspect.is_complete,
    "history_request": introspect.history,
    "comm_info_request": _comm_info,
}


def answer(shell, server, request):
    """The content of the reply, or None for a message that has none: comms, and types we do not know."""
    kind = request.type
    content = jsontext.loads(request.content)
    if kind in _REPLIES:
        return _REPLIES[kind](shell, content)
    if kind == "comm_open":
        # Nobody here listens for it: say so, or the front-end waits.
        closed = {"comm_id": content.get("comm_id", ""), "data": {}}
        server.publish(request.parent, "comm_close", jsontext.dumps(closed))
    return None
