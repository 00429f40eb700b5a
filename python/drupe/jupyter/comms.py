"""Comms: channels between an object here and one in the front-end, through the two hooks of the package `comm`.

Imported together with `comm` (see shims.py), so that a kernel without widgets does not pay for it.
"""
import os

import comm
from comm.base_comm import BaseComm
from comm.base_comm import CommManager as BaseCommManager

from drupe import _jkernel

from .interrupt import call_interruptibly, shielded


class Comm(BaseComm):
    """A comm whose messages leave as outputs of the caller's cell."""

    kernel = None  # get_ipython().kernel

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        content = {"data": {} if data is None else data, "comm_id": self.comm_id, **keys}
        self.kernel.send_response(None, msg_type, content, metadata=metadata, buffers=buffers)


class CommManager(BaseCommManager):
    """All comms of the process; there is one manager, whoever asks for it."""

    _only = None

    def __new__(cls, *unused, **ignored):
        if CommManager._only is None:
            CommManager._only = super().__new__(cls)
        return CommManager._only

    def __init__(self, *unused, **ignored):
        if "comms" not in self.__dict__:
            super().__init__()

    def comm_open(self, stream, ident, msg):
        answer(self, "comm_open", msg)

    def comm_msg(self, stream, ident, msg):
        answer(self, "comm_msg", msg)

    def comm_close(self, stream, ident, msg):
        answer(self, "comm_close", msg)


def create_comm(*args, **kwargs):
    """A new comm; without `primary=False` the front-end is asked to open its side."""
    return Comm(*args, **kwargs)


def get_comm_manager():
    """The manager of this process."""
    return CommManager()


def install(kernel):
    """Set the hooks."""
    Comm.kernel = kernel
    comm.create_comm = create_comm
    comm.get_comm_manager = get_comm_manager


def info(content):
    """The comms of a target, or all, for comm_info_reply."""
    target = content.get("target_name")
    return {
        comm_id: {"target_name": one.target_name}
        for comm_id, one in list(comm.get_comm_manager().comms.items())
        if target is None or one.target_name == target
    }


def _identifier(message):
    comm_id = message["content"].get("comm_id")
    if not isinstance(comm_id, str) or not comm_id:
        raise ValueError("%s needs a comm_id" % message["header"].get("msg_type"))
    return comm_id


def _open(manager, message):
    comm_id = _identifier(message)
    target = message["content"].get("target_name")
    handler = manager.targets.get(target) if isinstance(target, str) else None
    if comm_id in manager.comms:
        raise ValueError("there is a comm %r already" % comm_id)
    if handler is None:  # nobody here listens: say so, or the front-end waits
        Comm.kernel.send_response(None, "comm_close", {"comm_id": comm_id, "data": {}})
        return
    opened = comm.create_comm(comm_id=comm_id, primary=False, target_name=target)
    manager.register_comm(opened)
    try:
        call_interruptibly(handler, opened, message)
    except BaseException:
        opened.close()
        raise


def _deliver(manager, message):
    one = manager.comms.get(_identifier(message))
    if one is not None:
        call_interruptibly(one.handle_msg, message)


def _close(manager, message):
    one = manager.comms.pop(_identifier(message), None)
    if one is not None:
        one._closed = True
        call_interruptibly(one.handle_close, message)


_HANDLERS = {"comm_open": _open, "comm_msg": _deliver, "comm_close": _close}


@shielded
def answer(manager, kind, message):
    """Let the handler of a comm message run. Its error is shown as output of the message and returned."""
    pid, shell = os.getpid(), Comm.kernel.shell
    error = None
    try:
        _HANDLERS[kind](manager, message)
    except BaseException as caught:
        error = caught
        shell.showtraceback((type(error), error, error.__traceback__))
    if os.getpid() != pid:
        _jkernel.flush_stdio()
        os._exit(int(error is not None))  # a forked child is no kernel
    return error
