"""The application: the user's IPython profile, configuration files and the options of the command line.

It has the name and the traits of ipykernel's, so that `c.IPKernelApp` in ipython_kernel_config.py and the options in
kernelspecs mean the same. What cannot mean the same is in WITHOUT_EFFECT, with the reason.
"""
import contextlib
import gc
import logging
import os
import shutil

from IPython.core.application import BaseIPythonApplication, base_aliases, base_flags
from IPython.core.formatters import PlainTextFormatter
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.profiledir import ProfileDir
from IPython.core.shellapp import InteractiveShellApp, shell_aliases, shell_flags
from traitlets import Any, Bool, Dict, Instance, Integer, Undefined, Unicode
from traitlets.config.configurable import Configurable

from drupe import _jkernel

from . import display, facade
from .shell import ZMQInteractiveShell

_FILE = "the connection file tells it"
_OURS = "the kernel's streams, sockets and hooks are written in C and cannot be exchanged"
_NEVER = "the kernel writes nothing to the terminal"

_OF_KERNELS = {
    "_execute_sleep": "the kernel never waits after a cell: its output is in order with its reply",
    "_poll_interval": "the kernel waits for messages and does not poll",
    "_darwin_app_nap": "it is for macOS",
    "stop_on_error_timeout": "the kernel reads what was sent before it aborts what is queued",
}

# Options that are taken and change nothing: by class and trait, with the reason. None stands for all traits.
WITHOUT_EFFECT = {
    "IPKernelApp": {
        **dict.fromkeys(("ip", "transport", "hb_port", "shell_port", "iopub_port", "stdin_port"), _FILE),
        "control_port": _FILE,
        **dict.fromkeys(("kernel_class", "outstream_class", "displayhook_class"), _OURS),
        "no_stdout": _NEVER,
        "no_stderr": _NEVER,
        "quiet": _NEVER,
        "capture_fd_output": "what C code writes is always shown in its cell",
        "parent_handle": "the variable JPY_PARENT_PID counts",
        "interrupt": "it is for Windows",
    },
    "Kernel": _OF_KERNELS,
    "IPythonKernel": {**_OF_KERNELS, "help_links": "kernel_info is answered before Python has read the configuration"},
    "Session": {None: _FILE},
}


class FromConnectionFile(Any):
    """What the connection file says, whatever an option says."""

    def __init__(self, key, **options):
        super().__init__(**options)
        self._key = key
        self.default_value = Undefined
        self.tag(config=True)

    def default(self, obj=None):
        return None if obj is None else obj.get_connection_info().get(self._key)

    def get(self, obj, cls=None):
        return self.default(obj)


class _NoProfile(Exception):
    """The profile that is asked for is not there and cannot be made. IPython has told it in the log."""


class Session(Configurable):
    """The options of jupyter_client's class, which most kernels take: the connection file tells them here."""

    session = Unicode().tag(config=True)
    username = Unicode().tag(config=True)
    key = Any().tag(config=True)
    keyfile = Unicode().tag(config=True)
    signature_scheme = Unicode().tag(config=True)


class _Log(logging.Handler):
    """The kernel's log, and for warnings the front-end's: a message that belongs to no cell."""

    def __init__(self, server):
        super().__init__()
        self._server = server

    def emit(self, record):
        try:
            text = self.format(record)
            for line in text.splitlines():
                _jkernel.log(line)
            if record.levelno >= logging.WARNING:
                display.publish(self._server, "stream", {"name": "stderr", "text": text + "\n"}, _jkernel.Parent(b"{}"))
        except Exception:
            self.handleError(record)


class IPKernelApp(BaseIPythonApplication, InteractiveShellApp):
    """Reads the user's IPython profile and the options: configuration files, extensions, startup files. Shares the
    configuration file of ipykernel, ipython_kernel_config.py."""

    name = "ipython-kernel"
    description = "The Jupyter kernel Drupe: its options are those of IPython and ipykernel."
    server = Any()
    kernel = Any()
    interrupts = Any()
    shell = Instance(InteractiveShell, allow_none=True)
    classes = [facade.IPythonKernel, ZMQInteractiveShell, ProfileDir, Session, HistoryManager, PlainTextFormatter]

    connection_file = Unicode(help="The file that tells ports and key.").tag(config=True)
    ip = FromConnectionFile("ip")
    transport = FromConnectionFile("transport")
    hb_port = FromConnectionFile("hb_port")
    shell_port = FromConnectionFile("shell_port")
    iopub_port = FromConnectionFile("iopub_port")
    stdin_port = FromConnectionFile("stdin_port")
    control_port = FromConnectionFile("control_port")
    kernel_class = Any().tag(config=True)
    outstream_class = Any("ipykernel.iostream.OutStream").tag(config=True)
    displayhook_class = Any("ipykernel.displayhook.ZMQDisplayHook").tag(config=True)
    no_stdout = Bool(False).tag(config=True)
    no_stderr = Bool(False).tag(config=True)
    quiet = Bool(True).tag(config=True)
    capture_fd_output = Bool(True).tag(config=True)
    parent_handle = Integer(0).tag(config=True)
    interrupt = Integer(0).tag(config=True)
    trio_loop = Bool(False, help="Cells await under trio, as after %autoawait trio.").tag(config=True)

    aliases = Dict({
        **base_aliases,
        "ip": "IPKernelApp.ip",
        "hb": "IPKernelApp.hb_port",
        "shell": "IPKernelApp.shell_port",
        "iopub": "IPKernelApp.iopub_port",
        "stdin": "IPKernelApp.stdin_port",
        "control": "IPKernelApp.control_port",
        "f": "IPKernelApp.connection_file",
        "connection-file": "IPKernelApp.connection_file",
        "transport": "IPKernelApp.transport",
        **shell_aliases,
        "ident": "Session.session",
        "user": "Session.username",
        "keyfile": "Session.keyfile",
    })
    flags = Dict({
        **base_flags,
        "no-stdout": ({"IPKernelApp": {"no_stdout": True}}, "No effect: " + _NEVER + "."),
        "no-stderr": ({"IPKernelApp": {"no_stderr": True}}, "No effect: " + _NEVER + "."),
        "trio-loop": ({"IPKernelApp": {"trio_loop": True}}, "Cells await under trio."),
        **shell_flags,
        "secure": ({"Session": {"keyfile": ""}}, "No effect: " + _FILE + "."),
        "no-secure": ({"Session": {"keyfile": ""}}, "No effect: " + _FILE + "."),
    })

    def _classes_with_config_traits(self, classes=None):
        """Only who reads options or a configuration needs the completer's, which takes long to import."""
        if classes is None:
            self._add_completer()
        return super()._classes_with_config_traits(classes)

    def _add_completer(self):
        from IPython.core.completer import IPCompleter

        if IPCompleter not in self.classes:
            self.classes.append(IPCompleter)

    def get_default_logging_config(self):
        """The kernel's log in place of the terminal."""
        config = super().get_default_logging_config()
        if self.server is not None:
            level = logging.getLevelName(self.log_level)
            config["handlers"]["console"] = {"()": _Log, "server": self.server, "formatter": "console", "level": level}
        return config

    def parse_command_line(self, argv=None):
        """Most kernels have no options; traitlets would build its parser all the same."""
        self.extra_args = []
        if argv:
            from . import options

            self.cli_config, self.extra_args = options.parse(self, argv)
            self.update_config(self.cli_config)

    def update_config(self, config):
        if config:
            from . import options

            options.leave_out_bad(self, config)
        super().update_config(config)

    def init_crash_handler(self):
        """A crash of the shell is a reply, not a file."""

    @classmethod
    def launch_instance(cls, argv=None, **kwargs):
        raise RuntimeError("this process is a kernel already: start another one in a process of its own")

    def get_connection_info(self, session=False):
        """The connection file as a dict; empty where it cannot be read. There is no Session to give in place of the
        key."""
        import json

        with contextlib.suppress(OSError, ValueError), open(self.connection_file, encoding="utf-8") as file:
            return json.load(file)
        return {}

    @property
    def ports(self):
        return [self.shell_port, self.iopub_port, self.stdin_port, self.control_port, self.hb_port]

    @property
    def session(self):
        return self.kernel.session

    @property
    def abs_connection_file(self):
        return self.connection_file

    @property
    def connection_dir(self):
        return os.path.dirname(self.connection_file)

    def exit(self, exit_status=0):
        """Bad configuration must not end the kernel."""
        if self._in_init_profile_dir:
            raise _NoProfile

    def init_profile_dir(self):
        """A new profile gets a README; where it cannot be written (a full disk), do without. A profile that is not
        there is the default one."""
        try:
            super().init_profile_dir()
        except OSError as error:
            self.log.warning("the profile is incomplete: %s", error)
            with _unfailing_copy():
                super().init_profile_dir()
        except _NoProfile:
            if self.profile == "default" and "ProfileDir" not in self.config:
                raise RuntimeError("no profile can be made in %s: set IPYTHONDIR" % self.ipython_dir) from None
            self.log.warning("the default profile is taken instead")
            self.config.pop("ProfileDir", None)
            self.profile = "default"
            self.init_profile_dir()

    def _tell_what_has_no_effect(self):
        for section, reasons in WITHOUT_EFFECT.items():
            for name in self.config[section] if section in self.config else ():
                reason = reasons.get(name, reasons.get(None))
                if reason is not None:
                    self.log.warning("%s.%s has no effect in this kernel: %s", section, name, reason)

    def _await_under_trio(self):
        try:
            self.shell.run_line_magic("autoawait", "trio")
        except Exception as error:
            self.log.warning("IPKernelApp.trio_loop: %s", error)

    def initialize(self, argv=None):
        with _told_once(self.log):
            super().initialize(argv or [])
            self._tell_what_has_no_effect()
            self.connection_file = self.server.connection_file
            self.kernel.parent, self.kernel.profile_dir = self, self.profile_dir
            self.kernel.config = self.config
            self.init_path()
            self.shell = self.kernel.shell = ZMQInteractiveShell.instance(
                parent=self.kernel,
                profile_dir=self.profile_dir,
                server=self.server,
                kernel=self.kernel,
                interrupts=self.interrupts,
            )
        self.shell.configurables.append(self)
        if os.environ.get("JPY_SESSION_NAME"):  # the path of the notebook, from Jupyter Server
            self.shell.user_ns["__session__"] = os.environ["JPY_SESSION_NAME"]
        _collect_from_now_on()
        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        if self.trio_loop:
            self._await_under_trio()
        self.init_gui_pylab()
        self.init_extensions()
        self.init_code()


def _explain():
    """For --help-all and %config."""
    for cls in (IPKernelApp, facade.Kernel, facade.IPythonKernel, Session):
        for name, reason in WITHOUT_EFFECT[cls.__name__].items():
            for trait in cls.class_own_traits() if name is None else (name,):
                getattr(cls, trait).help = "No effect: %s." % reason


_explain()


def show(argv):
    """`--help-all`, `--show-config`, `--show-config-json`: without a kernel. Returns the exit code."""
    app = IPKernelApp()
    app._add_completer()
    if "--help-all" in argv:
        app.print_help(True)
        return 0
    BaseIPythonApplication.initialize(app, argv)
    app.start_show_config()
    return 0


@contextlib.contextmanager
def _told_once(log):
    """Each warning only the first time: traitlets checks the whole configuration again for every source and object."""
    told = set()

    def is_new(record):
        text = record.getMessage()
        if record.levelno < logging.WARNING or text not in told:
            told.add(text)
            return True
        return False

    log.addFilter(is_new)
    try:
        yield
    finally:
        log.removeFilter(is_new)


def _collect_from_now_on():
    """End of the start, which ran without garbage collection: what it made stays, so it counts as old at once."""
    gc.freeze()
    gc.unfreeze()
    gc.enable()


@contextlib.contextmanager
def _unfailing_copy():
    def copy(source, target, **options):
        with contextlib.suppress(OSError):
            return original(source, target, **options)

    original, shutil.copy = shutil.copy, copy
    try:
        yield
    finally:
        shutil.copy = original
