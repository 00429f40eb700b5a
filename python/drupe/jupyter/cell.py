"""What belongs to one execute_request while it runs. Nothing of it stands on the shell, which several cells may use
at once, each in a thread of its own; `current()` finds it from the context of the caller.
"""
import datetime
import os
import threading

from drupe import _jkernel

from . import jsontext

_NAMED_MOST = 4096
_names = {}  # number -> the front-end's name for the cell, of the latest
SEED = 0xC70F6907  # of the hash in the file names of cells: as in jkernel/server/answers/answers_room.h


class Cell:
    """One execute_request: what was asked, and what came of it."""

    count = 0  # its number: the same in execute_input, execute_result and the reply
    shown_count = 0  # what IPython finds in shell.execution_count: `count`, or one more once it has counted the cell
    source = ""  # the code as Python sees it
    coroutine = None
    asynchronous = False
    runner = None  # of a loop beside the kernel's, under which it awaits
    task = None  # that awaits the coroutine
    interrupts = None  # of the thread that runs it
    interrupted = False  # Ctrl-C has cancelled what it awaits
    insisted = False  # what does not end by that was told
    result = None  # IPython's ExecutionResult
    exec_result = None  # the one that the display hook fills: not always `result`, a cell may run others
    answering = False  # its code has ended: what is shown now is what the client asks for
    error = None  # the exception that failed the cell
    traceback = None  # the lines of the last error that was shown in it

    def __init__(self, request):
        self.request = request
        content = jsontext.loads(request.content)
        metadata = jsontext.loads(request.metadata)
        request.parent.message = (content, metadata)  # for get_parent()
        self.code = content.get("code")
        if not isinstance(self.code, str):
            raise TypeError("execute_request needs its code as text")
        self.code = jsontext.well_formed(self.code)  # the history's database takes nothing else
        self.silent = _flag(content, "silent", False)
        self.store_history = _flag(content, "store_history", True) and not self.silent
        self.user_expressions = content.get("user_expressions") or {}
        self.allow_stdin = _flag(content, "allow_stdin", False)
        self.stop_on_error = _flag(content, "stop_on_error", True)
        self.id = metadata.get("cellId") if isinstance(metadata.get("cellId"), str) else None
        self.started = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        self.payloads = []

    def begin(self):
        """Make it the current cell of this context, which passes on to its threads and tasks."""
        parent = self.request.parent
        self.thread = threading.get_ident()
        parent.silent = self.silent
        parent.cell = self
        _jkernel.cell.set(parent)

    def end(self):
        """Nobody's current cell any more; what it started keeps its parent."""
        self.request.parent.cell = None


def note_number(cell):
    """The cell has its number."""
    if cell.id is not None:
        _names.pop(cell.count, None)
        _names[cell.count] = cell.id
        while len(_names) > _NAMED_MOST:
            _names.pop(next(iter(_names)), None)


def id_of(number):
    """What the front-end calls the cell that had this number last; None when it is not known."""
    return _names.get(number)


def _flag(content, name, default):
    """A field that is missing or null means its default."""
    value = content.get(name)
    return default if value is None else bool(value)


def current():
    """The running cell that the caller works for, or None."""
    parent = _jkernel.cell.get(None)
    return None if parent is None else parent.cell


def file_name(code):
    """The file name under which a cell with this text is compiled: the one by which debuggers know it, unless the
    environment names another for all cells."""
    return os.environ.get("IPYKERNEL_CELL_NAME") or _jkernel.cell_name(code)


def folder():
    """Where the files of cells would be, with a slash."""
    return _jkernel.cell_name("").rpartition("/")[0] + "/"
