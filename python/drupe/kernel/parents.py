"""The request that outputs belong to, as the message that libraries know and as the Parent that C knows."""
import datetime

from drupe import _jkernel

from . import jsontext


def message_of(parent, content=None, metadata=None, buffers=()):
    """The request behind `parent` as a message; made once. `parent.message` may hold (content, metadata) before."""
    message = parent.message
    if not isinstance(message, dict):
        if content is None:
            content, metadata = message or ({}, {})
        header = jsontext.loads(parent.header)
        message = parent.message = {
            "header": header,
            "msg_id": header.get("msg_id"),
            "msg_type": header.get("msg_type"),
            "parent_header": {},
            "metadata": metadata,
            "content": content,
            "buffers": list(buffers),
        }
    return message


def current_message():
    """The request that the caller works for; empty when there is none."""
    parent = _jkernel.cell.get(None)
    if parent is None:
        return {"header": {}, "parent_header": {}, "metadata": {}, "content": {}, "buffers": []}
    return message_of(parent)


def _json_value(value):
    return value.isoformat() if isinstance(value, datetime.datetime) else value


def parent_of(message):
    """The Parent for outputs of `message`, a request or its header. None when it is neither."""
    header = message.get("header", message) if isinstance(message, dict) else None
    if not isinstance(header, dict) or not header.get("msg_id"):
        return None
    current = _jkernel.cell.get(None)
    if current is not None and message_of(current)["msg_id"] == header["msg_id"]:
        return current
    parent = _jkernel.Parent(jsontext.dumps({key: _json_value(value) for key, value in header.items()}))
    parent.message = {"parent_header": {}, "metadata": {}, "content": {}, "buffers": [], **message, "header": header,
                      "msg_id": header["msg_id"], "msg_type": header.get("msg_type")}
    return parent


def set_parent(message):
    """From here on, what this thread or task puts out belongs to `message`."""
    parent = parent_of(message)
    if parent is not None:
        _jkernel.cell.set(parent)
