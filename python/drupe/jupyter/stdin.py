"""input() and getpass.getpass() through the front-end.

Both are replaced once, for the life of the kernel: its own standard input is closed, so the originals are of no use
to anybody, and a program that puts in its own `input` keeps it beyond the cell, as anywhere else.
"""
import builtins
import sys
import time

from IPython.core.error import StdinNotImplementedError

from . import jsontext, late
from .cell import current

_TURN_PAUSE = 0.05  # seconds


class Stdin:
    """Asks the client of the caller's cell."""

    def __init__(self, server):
        self._server = server
        self._turn = {}  # holds whose turn it is, of the cells that ask from several threads

    def install(self):
        builtins.input = self.input
        late.after_import("getpass", lambda: setattr(sys.modules["getpass"], "getpass", self.getpass))

    def input(self, prompt="", /):
        """Read a line from the front-end."""
        return self._ask(str(prompt), False)

    def getpass(self, prompt="Password: ", stream=None, *, echo_char=None):
        """Read a line from the front-end, which hides what is typed; `echo_char`: it decides what it shows instead."""
        if echo_char is not None and not (len(echo_char) == 1 and echo_char.isascii() and echo_char.isprintable()):
            raise ValueError("'echo_char' must be a single printable ASCII character")
        return self._ask(str(prompt), True)

    def _ask(self, prompt, password):
        cell = current()
        if cell is None:
            raise StdinNotImplementedError("input() asks for a cell that runs, and this one has ended: clients take no "
                                           "question for it any more")
        if not cell.allow_stdin:
            raise StdinNotImplementedError("this front-end does not answer input(): it did not allow stdin for the "
                                           "cell")
        turn = object()
        try:
            while self._turn.setdefault("", turn) is not turn:  # one question at a time: clients keep no two apart
                time.sleep(_TURN_PAUSE)
                _look_for_end(cell)
            self._server.input_ask(cell.request, jsontext.dumps({"prompt": prompt, "password": password}))
            content = self._server.input_wait()
            while content is None:
                _look_for_end(cell)
                content = self._server.input_wait()
        finally:
            if self._turn.get("") is turn:
                del self._turn[""]
        value = jsontext.loads(content).get("value", "")
        if value == "\x04":
            raise EOFError
        return value if isinstance(value, str) else str(value)


def _look_for_end(cell):
    """A thread may outlive its cell."""
    if current() is not cell:
        raise EOFError("the cell has ended before an answer came")
