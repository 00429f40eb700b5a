"""A kernel that holds a lease of a device broker, or accounts for what it uses: the notebook's side of it.

drupe.hosted.kernel_session knows the lease and no notebooks; here are the cells that it waits for and the places where
it shows something.
"""
import contextlib
import html
import os
import uuid

from drupe import _jkernel

from . import display, execute, interrupt, jsontext

_STYLES = {"note": "#1f77b4", "warning": "#ff7f0e", "error": "#d62728"}
_parts = []  # what is to be closed: a session, an account


class Line:
    """One line of output that can be replaced: in this cell, or in the last that ran."""

    def __init__(self, server, parent):
        self._server, self._parent, self._shown = server, parent, False
        self._id = uuid.uuid4().hex

    def show(self, text, kind="note"):
        markup = '<div style="border-left:3px solid %s;padding:2px 10px;font-size:13px">%s</div>' % (
            _STYLES[kind], html.escape(text))
        content = {"data": {"text/plain": text, "text/html": markup}, "metadata": {},
                   "transient": {"display_id": self._id}}
        display.publish(self._server, "update_display_data" if self._shown else "display_data", content, self._parent)
        self._shown = True


class Notebook:
    """What a session needs of the kernel."""

    def __init__(self, server, shell):
        self._server, self._shell = server, shell
        self._last = None  # the Parent of the last cell

    def began(self, cell):
        if not cell.silent:
            self._last = cell.request.parent

    def line(self):
        """A line in the last cell; None when none has run."""
        return None if self._last is None else Line(self._server, self._last)

    def names(self):
        """The variables that cells see."""
        return self._shell.user_ns

    def tell_panel(self, facts):
        _jkernel.note_lease(None if facts is None else jsontext.dumps(facts).decode())

    def log(self, text):
        _jkernel.log(text)


def prepare(server, shell):
    """Begin what the environment asks for. What is wrong with it is told in the log: the kernel works without."""
    notebook = Notebook(server, shell)
    try:
        if os.environ.get("DRUPE_ACCOUNT"):
            from drupe.hosted import accounting

            _parts.append(accounting.start(os.environ["DRUPE_ACCOUNT"]))
        if os.environ.get("DRUPE_LEASE"):
            _begin_session(notebook)
    except Exception as error:
        _jkernel.log("the lease of this kernel is not looked after: %s: %s" % (type(error).__name__, error))


def _begin_session(notebook):
    from drupe.hosted import kernel_session

    session = kernel_session.Session
    for method in (session.enter, session.leave, session.keep_device, session.leave_device):
        interrupt.shielded(method)
    interrupt.whole(session.stand)
    one = kernel_session.start(os.environ["DRUPE_LEASE"], notebook)
    _parts.append(one)

    def before(cell):
        notebook.began(cell)
        one.enter(cell)
        one.before_code("" if cell.silent else cell.code)

    execute.Executor.before = staticmethod(before)
    execute.Executor.after = staticmethod(one.leave)


def close():
    """The kernel ends."""
    execute.Executor.before = execute.Executor.after = None
    while _parts:
        with contextlib.suppress(Exception):
            _parts.pop().close()
