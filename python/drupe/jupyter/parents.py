"""The request that outputs belong to, as the message that libraries know and as the Parent that C knows."""
import contextvars
import datetime
import threading
import weakref

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


class _Token:
    """What set_thread_parent() has replaced. Tokens of one context are a chain, which holds its newest one weakly: what
    nobody keeps can never be undone, nor what was set before it."""

    __slots__ = ("__weakref__", "before", "below", "over")

    def __init__(self, below, before):
        self.below = below
        self.before = before
        self.over = False


def _no_token():
    """As a weak reference whose token is gone."""


_tokens = contextvars.ContextVar("drupe_tokens", default=_no_token)


def set_thread_parent(message):
    """The same until reset_thread_parent(token) undoes it. The token."""
    token = _Token(_tokens.get()(), _jkernel.cell.get(None))
    _tokens.set(weakref.ref(token))
    set_parent(message)
    return token


def reset_thread_parent(token):
    """Undo a set_thread_parent() of this thread or task. Libraries give the tokens of stdout and stderr back in the
    order in which they got them: what was set last counts until it is undone as well."""
    token.over = True
    top = _tokens.get()()
    while top is not None and top.over:
        _jkernel.cell.set(top.before)
        top = top.below
    _tokens.set(_no_token if top is None else weakref.ref(top))


class Hooks:
    """A mixin: functions by which a thread sees, changes or swallows the messages that it sends from here."""

    @property
    def _hooks(self):
        local = self.__dict__.get("_local") or self.__dict__.setdefault("_local", threading.local())  # for all threads
        return local.__dict__.setdefault("hooks", [])

    def register_hook(self, hook):
        """Pass each message of this thread, {"msg_type", "content"}, through `hook`, which returns it or None."""
        self._hooks.append(hook)

    def unregister_hook(self, hook):
        if hook not in self._hooks:
            return False
        self._hooks.remove(hook)
        return True

    def _through_hooks(self, message):
        for hook in tuple(self._hooks):  # one may take itself away
            message = hook(message)
            if message is None:
                break
        return message


class Parented:
    """A mixin: whose outputs are whose, by ipykernel's names. There it is told of each stream; here one context
    variable holds for all of them."""

    set_parent = staticmethod(set_parent)
    set_thread_parent = staticmethod(set_thread_parent)
    reset_thread_parent = staticmethod(reset_thread_parent)
    parent_header = property(lambda self: current_message()["header"], lambda self, header: set_parent(header))
