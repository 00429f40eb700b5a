"""Results and rich output: execute_result, display_data, update_display_data, clear_output."""
import contextlib
import io
import sys
import threading
import tokenize

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter
from traitlets import Bool

from drupe import _jkernel

from . import jsontext, parents
from .cell import current


def publish(server, msg_type, content, parent=None, metadata=None, buffers=None):
    """Publish for `parent`, by default the cell that the caller works for. False when the kernel is closing."""
    if parent is None:
        parent = _jkernel.cell.get(None)
    extra = jsontext.dumps(metadata) if metadata else b""
    return server.publish(parent, msg_type, jsontext.dumps(content), extra, buffers or None)


def _ends_with_semicolon(source):
    """Comments and blank lines may follow. IPython has this under several names."""
    skipped = (tokenize.ENDMARKER, tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT)
    try:
        tokens = [one for one in tokenize.generate_tokens(io.StringIO(source).readline) if one.type not in skipped]
    except (tokenize.TokenError, SyntaxError):
        return False
    return bool(tokens) and tokens[-1].string == ";"


def waiting_at_most(seconds=None):
    """A block in which the texts of arrays wait so long in all for work on a device; by default as displays do."""
    if "drupe._engine" not in sys.modules:
        return contextlib.nullcontext()
    from drupe.array import _text

    return _text.waiting_at_most(seconds)


class KernelDisplayFormatter(DisplayFormatter):
    """Makes the forms of what is displayed. Arrays, also those inside of other objects, share the moment that a display
    waits for values."""

    def format(self, obj, include=None, exclude=None):
        with waiting_at_most():
            return super().format(obj, include=include, exclude=exclude)


class _Sender(parents.Hooks, parents.Parented):
    """What the display hook and the publisher share."""

    server = None
    session = property(lambda self: self.shell.kernel.session)
    pub_socket = property(lambda self: self.shell.kernel.iopub_socket)

    def _send(self, msg_type, content, buffers=None):
        metadata = None
        if self._hooks:
            message = self._through_hooks(self.session.msg(msg_type, content, parents.current_message()))
            if message is None:
                return
            msg_type, content, metadata = message["msg_type"], message["content"], message.get("metadata")
        publish(self.server, msg_type, content, None, metadata, buffers)


class KernelDisplayHook(_Sender, DisplayHook):
    """Turns the value of a cell's last expression into execute_result."""

    topic = None

    @property
    def prompt_count(self):
        cell = current()
        return self.shell.execution_count if cell is None else cell.count

    @property
    def exec_result(self):
        cell = current()
        return None if cell is None else cell.exec_result

    @exec_result.setter
    def exec_result(self, result):
        cell = current()
        if cell is not None:
            cell.exec_result = result

    def quiet(self):
        """A cell whose last expression ends with a semicolon shows nothing."""
        cell = current()
        return cell is not None and ";" in cell.source and _ends_with_semicolon(cell.source)

    def write_output_prompt(self):
        """The front-end draws the prompt."""

    def write_format_data(self, format_dict, md_dict=None):
        content = {"execution_count": self.prompt_count, "data": format_dict, "metadata": md_dict or {}}
        self._send("execute_result", content)

    def finish_displayhook(self):
        self._is_active = False


class KernelDisplayPublisher(_Sender, DisplayPublisher):
    """Publishes display() as messages."""

    topic = b"display_data"
    store_display_history = Bool(False, help="Whether history_manager.outputs gets what is displayed.").tag(config=True)

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, buffers=None, **unused):
        metadata = {} if metadata is None else metadata
        transient = {} if transient is None else transient
        self._validate_data(data, metadata)
        if update and "display_id" not in transient:
            raise ValueError("an update needs the display_id of what it updates")
        if self.store_display_history:
            self._store(data)
        content = {"data": data, "metadata": metadata, "transient": transient}
        self._send("update_display_data" if update else "display_data", content, buffers)

    def _store(self, data):
        try:
            from IPython.core.history import HistoryOutput
        except ImportError:
            return  # IPython before 9 keeps no outputs
        cell = current()
        count = self.shell.execution_count if cell is None else cell.count
        self.shell.history_manager.outputs.setdefault(count, []).append(HistoryOutput("display_data", data))

    def clear_output(self, wait=False):
        self._send("clear_output", {"wait": bool(wait)})
