"""The shell: IPython's InteractiveShell wired to the kernel. Its class name is what rich, tqdm and others look for."""
import asyncio
import contextlib
import os
import sys
import threading

from IPython.core import page
from IPython.core.autocall import ZMQExitAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.error import UsageError
from IPython.core.events import EventManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.payload import PayloadManager
from traitlets import Any, CBool, Instance, Type, default, observe

from drupe import _jkernel

from . import display, elsewhere, jsontext, late, parents, tracebacks
from .cell import current, file_name, note_number
from .interrupt import cut_traceback, interruptible, patient, shielded, whole

interruptible(InteractiveShell.run_code)
patient(EventManager.trigger)

_HISTORY_DELAY = 1.0  # seconds
_HISTORY_MOST = 1000  # cells that wait to be written

_ENVIRONMENT = {
    "TERM": "xterm-color",
    "CLICOLOR": "1",
    "FORCE_COLOR": "1",
    "CLICOLOR_FORCE": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
}


class CellCompiler(CachingCompiler):
    """Names cells as debuggers do; tracebacks show In[n] all the same."""

    _lock = threading.RLock()  # warnings of the compiler call what the user has set for them

    def get_code_name(self, raw_code, transformed_code, number):
        try:
            name = file_name(raw_code)
            _jkernel.note_cell(name, number)
            return name
        except (RuntimeError, UnicodeEncodeError):  # the kernel is closing; the text is not a front-end's
            return super().get_code_name(raw_code, transformed_code, number)

    @contextlib.contextmanager
    def extra_flags(self, flags):
        """Held while a statement is compiled: the flags are the compiler's, and cells of other shells use it too."""
        with self._lock, super().extra_flags(flags):
            yield


class ZMQInteractiveShell(InteractiveShell):
    """Output, tracebacks and payloads go to the front-end."""

    compiler_class = Type(CellCompiler)

    displayhook_class = Type(display.KernelDisplayHook)
    display_pub_class = Type(display.KernelDisplayPublisher)
    kernel = Any()
    server = Any()
    interrupts = Any()
    modules_at_start = ()  # names of what was imported before the first cell
    readline_use = CBool(False)
    autoindent = CBool(False)
    exiter = Instance(ZMQExitAutocall)
    keepkernel_on_exit = None
    _next_count = 1
    _history_timer = None

    def __init__(self, *args, **kwargs):
        self._counting = threading.Lock()
        self._main_thread = threading.get_ident()
        super().__init__(*args, **kwargs)
        late.after_import("pdb", _import_debugger)
        late.after_import("IPython.core.debugger", _replace_pdb)
        self.displayhook.server = self.display_pub.server = self.server
        self.config.IPKernelApp.connection_file = self.server.connection_file  # older programs, tqdm too, look for it

    @property
    def execution_count(self):
        """The number of the caller's cell, or of the next one where none runs."""
        cell = current()
        return self._next_count if cell is None else cell.shown_count

    @execution_count.setter
    def execution_count(self, value):
        cell = current()
        if cell is None:
            self._next_count = value
            return
        # Upwards: IPython counts the cell. Its place is taken, and cells beside it may have taken the next ones.
        counted = value > cell.shown_count
        cell.shown_count = value
        self._next_count = max(self._next_count, value) if counted else value

    def count_cell(self, cell):
        """Give the cell its number. One that is not stored does not use it up."""
        with self._counting:
            cell.count = cell.shown_count = self._next_count
            if cell.store_history and cell.code and not cell.code.isspace():
                self._next_count += 1
            note_number(cell)

    @default("exiter")
    def _default_exiter(self):
        return ZMQExitAutocall(self)

    @default("banner1")
    def _default_banner1(self):
        return ""

    def init_environment(self):
        os.environ.update(_ENVIRONMENT)

    def init_virtualenv(self):
        """The kernelspec chose the interpreter; nothing to repair."""

    def init_hooks(self):
        super().init_hooks()
        self.set_hook("show_in_pager", page.as_hook(self.payloadpage_page), 99)

    def init_history(self):
        super().init_history()
        if self.history_manager.db_cache_size == 0:
            self.history_manager.db_cache_size = _HISTORY_MOST

    def save_history_later(self):
        """Have the history written when its thread does not compete with a cell and its reply for the interpreter:
        that would make every round trip wait for the database."""
        if self._history_timer is None:
            loop = self.kernel.io_loop
            if threading.get_ident() == self._main_thread:
                self._history_timer = loop.call_later(_HISTORY_DELAY, self._save_history)
            else:
                self._history_timer = loop.call_soon_threadsafe(loop.call_later, _HISTORY_DELAY, self._save_history)

    @shielded
    def _save_history(self):
        self._history_timer = None
        manager = self.history_manager
        if manager is not None and manager.db_input_cache:
            getattr(manager, "_restart_thread_if_stopped", lambda: None)()
            if manager.save_flag is not None:
                manager.save_flag.set()

    def init_completer(self):
        """It is made when it is first asked for: a third of what the shell costs, and whoever runs a whole notebook
        needs none."""
        self._completer, self._when_completing = None, []
        self._completer_whole, self._completer_lock = False, threading.RLock()

    @property
    def Completer(self):
        if not self._completer_whole:
            with self._completer_lock:  # other threads wait until it is whole; this one asks for it while it makes it
                if self._completer is None:
                    self._make_completer()
        return self._completer

    @whole
    def _make_completer(self):
        before = list(self.configurables)
        try:
            super().init_completer()
        except BaseException:
            self._completer, self.configurables[:] = None, before  # whoever asks next has it made
            raise
        while self._when_completing:
            try:
                self._when_completing.pop(0)(self)
            except Exception:
                self.log.warning("what was to be done to the completer failed", exc_info=True)
        self._completer_whole = True

    @Completer.setter
    def Completer(self, value):
        self._completer = value

    def when_completing(self, action):
        """Call `action` with the shell when there is a completer: now, or later."""
        with self._completer_lock:
            if not self._completer_whole:
                self._when_completing.append(action)
                return
        action(self)

    def init_traceback_handlers(self, custom_exceptions):
        super().init_traceback_handlers(custom_exceptions)
        tracebacks.leave_out_ours(self.InteractiveTB)

    def init_payload(self):
        self.payload_manager = CellPayloads(parent=self)
        self.configurables.append(self.payload_manager)

    def init_display_formatter(self):
        self.display_formatter = display.KernelDisplayFormatter(parent=self)
        self.configurables.append(self.display_formatter)

    def init_data_pub(self):
        """There is no data publisher."""

    @interruptible
    async def run_code(self, code_obj, result=None, *, async_=False):
        """Run one statement of a cell. An interrupt that came before it, or could not break it, is delivered here."""
        cell = current()
        interrupts = self.interrupts if cell is None else cell.interrupts
        if not interrupts.take_pending():
            failed = await super().run_code(code_obj, result, async_=async_)
            if failed or not interrupts.take_late():
                return failed
        error = KeyboardInterrupt()
        if result is not None:
            result.error_in_exec = error
        self.showtraceback((KeyboardInterrupt, error, None))
        return True

    def payloadpage_page(self, text, start=0, screen_lines=0, pager_cmd=None):
        data = text if isinstance(text, dict) else {"text/plain": text}
        self.payload_manager.write_payload({"source": "page", "data": data, "start": max(0, start)})

    def set_next_input(self, text, replace=False):
        payload = {"source": "set_next_input", "text": text, "replace": replace}
        self.payload_manager.write_payload(payload)

    def ask_exit(self):
        """exit() and quit(): the kernel ends once the cell is replied to."""
        self.exit_now = not self.keepkernel_on_exit
        payload = {"source": "ask_exit", "keepkernel": bool(self.keepkernel_on_exit)}
        self.payload_manager.write_payload(payload)

    @observe("exit_now")
    def _leave_without_cell(self, change):
        if change.new and current() is None:
            self.server.leave(False)

    def _get_exc_info(self, exc_tuple=None):
        kind, error, traceback = super()._get_exc_info(exc_tuple)
        error = interruption(current(), error)
        adapter = sys.modules.get("drupe.jupyter.debug_adapter")
        if adapter is not None and isinstance(error, KeyboardInterrupt):
            adapter.cut_traceback(traceback)
        cut_traceback(error)
        return (type(error) if isinstance(error, KeyboardInterrupt) else kind), error, traceback

    def showtraceback(self, exc_tuple=None, filename=None, tb_offset=None, exception_only=False, **kwargs):
        """Show an error as an error, whatever becomes of its traceback. At a shutdown it is one line: making a
        traceback would hold the end up."""
        try:
            kind, error, traceback = self._get_exc_info(exc_tuple)
        except ValueError:
            return super().showtraceback(exc_tuple)  # says that there is none
        if tracebacks.by_formatter(sys._getframe(1)):
            _fail_unshown(current(), error)
        if self.server.shutdown:
            self._showtraceback(kind, error, [jsontext.error_line(error)])
        elif exception_only or issubclass(kind, (SyntaxError, UsageError)):
            super().showtraceback(exc_tuple, filename, tb_offset, exception_only, **kwargs)
        else:
            self._showtraceback(kind, error, tracebacks.lines(self, kind, error, traceback, tb_offset))
            if self.call_pdb:
                self.debugger(force=True)
        return None

    def _format_exception_for_storage(self, exception, *args, **kwargs):
        """What was shown is what IPython keeps; it would make the whole traceback a second time."""
        cell = current()
        lines = [] if cell is None else cell.traceback or []
        return jsontext.error_content(exception, lines)

    def _showtraceback(self, etype, evalue, stb):
        lines, cell = list(stb), current()
        if cell is not None:
            cell.traceback = lines
        if elsewhere.show(self.server, cell, evalue):
            return
        if not display.publish(self.server, "error", jsontext.error_content(evalue, lines)):
            sys.stderr.write("\n".join(lines) + "\n")  # a forked child has only its descriptors

    def _tee(self, channel):
        """Output is not kept in the history manager: the front-end keeps it, and a long-running cell must not grow."""
        return _Nothing()

    def enable_gui(self, gui=None):
        if gui not in (None, "inline", "asyncio"):
            raise UsageError(
                "Drupe has no %r event loop: use %%matplotlib inline, or run the program in a terminal" % gui
            )

    def system_piped(self, cmd):
        """`!cmd`: its output is the cell's, its exit status goes to `_exit_code`."""
        command = self.var_expand(cmd, depth=1).strip()
        if command[-1:] == "&":
            raise UsageError("! waits for its command; start one in the background with subprocess.Popen")
        from .command import run

        self.user_ns["_exit_code"] = run(command)

    system = system_piped

    def init_magics(self):
        from drupe import compat
        from drupe import magics as device_magics

        from . import magics

        super().init_magics()
        self.register_magics(magics.KernelMagics)
        device_magics.register(self)
        compat.enable_at_start()

    def get_parent(self):
        """The request that the caller works for, as a message."""
        return parents.current_message()

    def set_parent(self, message):
        """From here on, what this thread or task puts out belongs to `message`."""
        parents.set_parent(message)

    set_thread_parent = staticmethod(parents.set_thread_parent)
    reset_thread_parent = staticmethod(parents.reset_thread_parent)
    parent_header = property(get_parent, lambda self, message: parents.set_parent(message))


class CellPayloads(PayloadManager):
    """Payloads go into the reply to the cell that writes them; without a cell there is no reply to take them."""

    @property
    def _payload(self):
        cell = current()
        return [] if cell is None else cell.payloads

    @_payload.setter
    def _payload(self, payloads):
        cell = current()
        if cell is not None:
            cell.payloads = payloads


def _import_debugger():
    import IPython.core.debugger  # noqa: F401


def _replace_pdb():
    """breakpoint() and pdb.set_trace() as well end on Ctrl-C, instead of asking again for ever."""
    import pdb

    from IPython.core import debugger

    pdb.Pdb = debugger.Pdb = debugger.InterruptiblePdb
    pdb.set_trace = debugger.set_trace


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *unused):
        return False


def _fail_unshown(cell, error):
    """An object that the cell shows has no representation: IPython goes on, and the cell has failed all the same. One
    that a thread shows fails nobody's."""
    if cell is None or cell.thread != threading.get_ident() or cell.answering:
        return
    result = cell.exec_result
    if result is not None:
        result.error_in_exec = error if result.error_in_exec is None else result.error_in_exec
    elif cell.error is None:  # after its code, as figures are
        cell.error = error


def interruption(cell, error):
    """`error`, or KeyboardInterrupt when it is the cancellation by which Ctrl-C ended what the cell awaited."""
    if cell is not None and cell.interrupted and isinstance(error, asyncio.CancelledError):
        return KeyboardInterrupt().with_traceback(error.__traceback__)
    return error
