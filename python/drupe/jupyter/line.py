"""One shell, main or beside it: its requests are answered one after the other, on the loop of its thread."""
import functools
import threading

from drupe import _jkernel

from . import execute, jsontext
from .cell import current as current_cell
from .interrupt import call_interruptibly, shielded

_COMMS = ("comm_open", "comm_msg", "comm_close")  # have no reply
_one_at_a_time = threading.RLock()  # IPython's completer, inspector and history are not made for two threads


class Line:
    """Takes requests from `source` and has them answered. All its cells share `context`."""

    _lines = {}  # by thread

    before_cell = None  # what to call then

    def __init__(self, source, server, shell, interrupts, loop, context):
        self.loop = loop
        self.interrupts = interrupts
        self._source = source
        self._server = server
        self._shell = shell
        self._context = context
        failed = functools.partial(_reply_error, shell)  # no method of ours: a subshell goes when nobody refers to it
        self._executor = execute.Executor(server, shell, interrupts, loop, context, failed)
        self._lines[threading.get_ident()] = self

    @classmethod
    def current(cls):
        """The line of the calling thread, or None."""
        return cls._lines.get(threading.get_ident())

    @classmethod
    def of_caller(cls):
        """The line of the calling thread, else that of the cell which the thread works for, or None."""
        cell = current_cell()
        return cls.current() or (cls._lines.get(cell.thread) if cell is not None else None)

    def open(self):
        # Through call_soon(): a reader's handle cannot be entered again, and a cell may run the loop in itself.
        self.loop.add_reader(self._source.fileno(), self.loop.call_soon, self._on_ready)
        self.loop.call_soon(self._on_ready)

    def close(self):
        self.loop.remove_reader(self._source.fileno())
        self._lines.pop(threading.get_ident(), None)

    @property
    def finished(self):
        """Whether no request will follow. While a cell awaits there is one more to come: its reply."""
        return bool(self._server.shutdown)

    @shielded
    def _on_ready(self):
        """Answer one request, then give tasks a turn before the next."""
        if self.finished:
            self.loop.stop()
            return
        self.interrupts.pending = False
        request = self._source.dispatch()
        if request is None:
            if self.finished:
                self.loop.stop()
            return
        self.loop.call_soon(self._on_ready)
        if request.type == "execute_request":
            if self.before_cell is not None:
                self.before_cell()
            self._context.run(self._answer, request, self._executor.execute)
        else:
            self._context.copy().run(self._answer, request, self._answer_other)

    @shielded
    def serve_one(self):
        """For user code, on any of its threads: answer one request in the middle of it, but run no cell. Whether there
        was one."""
        request = self._source.dispatch()
        if request is None:
            return False
        if request.type == "execute_request":  # the caller is no cell, so one was free to start
            if self.before_cell is not None:
                self.before_cell()
            self.loop.call_soon_threadsafe(self._answer, request, self._executor.execute, context=self._context)
        else:
            self._context.copy().run(self._answer, request, self._answer_other)
        return True

    @shielded
    def _answer(self, request, handler):
        """Whatever goes wrong in answering becomes an error reply: every request gets one."""
        try:
            handler(request)
        except BaseException as error:
            _reply_error(self._shell, request, error)

    def _answer_other(self, request):
        from . import requests

        _jkernel.cell.set(request.parent)
        if request.type in _COMMS or request.type == "comm_info_request":
            content = call_interruptibly(requests.answer, self._shell, self._server, request)
        else:
            with _one_at_a_time:
                content = call_interruptibly(requests.answer, self._shell, self._server, request)
        _reply(request, content)


def _reply(request, content):
    try:
        if content is None or request.type in _COMMS:
            request.reply(b"{}", b"", _jkernel.REPLY_NONE)
        else:
            request.reply(jsontext.dumps(content))
    except ValueError:
        pass  # it was replied to before the error


def _reply_error(shell, request, error):
    request.parent.cell = None
    content = {"status": "error", "execution_count": shell.execution_count}
    content.update(jsontext.error_content(error, [jsontext.error_line(error)]))
    _reply(request, content)
