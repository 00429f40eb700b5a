"""`get_ipython().kernel`: what notebooks and libraries expect to find there.

Sockets belong to C threads, so what ipykernel calls streams and sockets are names here that tell where a message is to
go. Supported: the methods below. The handlers of requests cannot be replaced: `shell_handlers` may be read and written,
and nothing looks into it.
"""
import datetime
import functools
import itertools
import json

from traitlets import Any, Bool, Float
from traitlets.config.configurable import SingletonConfigurable

from . import display
from .parents import current_message, parent_of, set_parent


class Socket:
    """Where a message is to go: the name of a channel."""

    def __init__(self, channel):
        self.channel = channel

    def flush(self, *unused, **ignored):
        """What was sent is on its way already."""


class Session:
    """As far as libraries use it: messages to the front-end."""

    username = "kernel"

    def __init__(self, server):
        self._server = server
        self._numbers = itertools.count(1)

    @property
    def session(self):
        return self._server.session

    @property
    def msg_id(self):
        return "%s_py%d" % (self.session, next(self._numbers))

    def msg_header(self, msg_type):
        date = datetime.datetime.now(datetime.timezone.utc)
        return {"msg_id": self.msg_id, "msg_type": msg_type, "username": self.username, "session": self.session,
                "date": date, "version": "5.5"}

    def msg(self, msg_type, content=None, parent=None, header=None, metadata=None):
        header = self.msg_header(msg_type) if header is None else header
        return {"header": header, "msg_id": header["msg_id"], "msg_type": header["msg_type"],
                "parent_header": (parent or {}).get("header", parent or {}), "content": content or {},
                "metadata": metadata or {}}

    def send(self, stream, msg_or_type, content=None, parent=None, ident=None, buffers=None, track=False, header=None,
             metadata=None):
        """Publish a message on iopub, as an output of `parent` or of the caller's cell. The message."""
        if isinstance(msg_or_type, dict):
            message = msg_or_type
            buffers = message.get("buffers") if buffers is None else buffers
        else:
            message = self.msg(msg_or_type, content, parent, header, metadata)
        if isinstance(stream, Socket) and stream.channel != "iopub":
            raise NotImplementedError("Drupe lets Python send on iopub only, not on %s" % stream.channel)
        display.publish(self._server, message["msg_type"], message["content"], parent_of(message.get("parent_header")),
                        message["metadata"], buffers)
        return message


class _Identities(dict):
    """`_parent_ident`: the frames by which a reply finds its client. C sends replies, so there are none."""

    def __missing__(self, channel):
        return []


class Kernel(SingletonConfigurable):
    """The kernel as user code sees it: the names of ipykernel's class, with its options."""

    _aborting = False
    _darwin_app_nap = Bool(True).tag(config=True)
    _execute_sleep = Float(0.0005).tag(config=True)
    _poll_interval = Float(0.01).tag(config=True)
    stop_on_error_timeout = Float(0.0).tag(config=True)
    debug_just_my_code = Bool(False, help="Whether breakpoints in libraries are passed by.").tag(config=True)
    filter_internal_frames = Bool(True, help="Whether the debugger passes by the kernel's own code, and what was "
                                             "imported before the first cell.").tag(config=True)

    eventloop = shell = profile_dir = None
    int_id = -1
    processes = {}
    msg_types = ["execute_request", "complete_request", "inspect_request", "history_request", "comm_info_request",
                 "kernel_info_request", "connect_request", "shutdown_request", "is_complete_request",
                 "interrupt_request"]
    control_msg_types = [*msg_types, "debug_request", "usage_request", "create_subshell_request",
                         "delete_subshell_request", "list_subshell_request"]

    def __init__(self, server=None, loop=None, serve_one=None, **options):
        super().__init__(**options)
        self._server = server
        self._serve_one = serve_one
        self._parent_ident = _Identities(shell=[], control=[])
        self.io_loop = loop
        self.session = Session(server)
        self.iopub_socket = Socket("iopub")
        self.stdin_socket = Socket("stdin")
        self.shell_stream = self.shell_socket = Socket("shell")
        self.control_stream = self.control_socket = Socket("control")
        self.shell_handlers = dict.fromkeys((*self.msg_types, "comm_open", "comm_msg", "comm_close"))
        self.control_handlers = dict.fromkeys(self.control_msg_types)

    @functools.cached_property
    def kernel_info(self):
        """What C answers to kernel_info_request about the language."""
        return json.loads(self._server.kernel_info)

    implementation = property(lambda self: self.kernel_info["implementation"])
    implementation_version = property(lambda self: self.kernel_info["implementation_version"])
    language_info = property(lambda self: self.kernel_info["language_info"])
    banner = property(lambda self: self.kernel_info["banner"])

    @property
    def execution_count(self):
        return self.shell.execution_count if self.shell else 0

    @property
    def connection_file(self):
        return self._server.connection_file

    @property
    def ident(self):
        return self._server.session

    def get_parent(self, channel=None):
        """The request that the caller works for, as a message."""
        return current_message()

    def set_parent(self, ident, parent, channel="shell"):
        """From here on, what this thread or task puts out belongs to the request `parent`."""
        set_parent(parent)

    @property
    def _parent_header(self):
        return self.get_parent()

    def send_response(self, stream, msg_or_type, content=None, ident=None, buffers=None, track=False, header=None,
                      metadata=None, channel=None):
        """Publish a message as an output of the caller's cell."""
        if isinstance(msg_or_type, dict):
            self.session.send(stream, msg_or_type, buffers=buffers)
        else:
            display.publish(self._server, msg_or_type, content or {}, None, metadata, buffers)

    def do_one_iteration(self):
        """Serve one request that waits: a comm message, a completion, anything but a cell. May be awaited, or not."""
        self._serve_one()
        return _Done()

    def do_apply(self, *unused, **ignored):
        raise NotImplementedError("Drupe does not take the apply messages of ipyparallel")


class IPythonKernel(Kernel):
    """What belongs to IPython."""

    use_experimental_completions = Bool(True, help="Whether completions tell types and signatures.").tag(config=True)
    help_links = Any().tag(config=True)

    def _help_links_default(self):
        return self.kernel_info["help_links"]

    def do_complete(self, code, cursor_pos):
        """The content of a complete_reply."""
        from . import introspect

        return introspect.complete(self.shell, {"code": code, "cursor_pos": cursor_pos})

    def do_inspect(self, code, cursor_pos, detail_level=0, omit_sections=()):
        """The content of an inspect_reply."""
        from . import introspect

        return introspect.inspect(self.shell, {"code": code, "cursor_pos": cursor_pos, "detail_level": detail_level,
                                               "omit_sections": omit_sections})

    def do_is_complete(self, code):
        """The content of an is_complete_reply."""
        from . import introspect

        return introspect.is_complete(self.shell, {"code": code})

    def do_history(self, hist_access_type, output, raw, session=None, start=None, stop=None, n=None, pattern=None,
                   unique=False):
        """The content of a history_reply."""
        from . import introspect

        return introspect.history(self.shell, {
            "hist_access_type": hist_access_type, "output": output, "raw": raw, "session": session, "start": start,
            "stop": stop, "n": n, "pattern": pattern, "unique": unique})

    def raw_input(self, prompt=""):
        """Ask the front-end."""
        return input(prompt)

    def getpass(self, prompt=""):
        """Ask the front-end, which hides what is typed."""
        import getpass

        return getpass.getpass(prompt)

    @property
    def user_module(self):
        return self.shell.user_module

    @user_module.setter
    def user_module(self, module):
        self.shell.user_module = module

    @property
    def user_ns(self):
        return self.shell.user_ns

    @user_ns.setter
    def user_ns(self, namespace):
        self.shell.user_ns = namespace
        self.shell.init_user_ns()

    @property
    def comm_manager(self):
        import comm

        return comm.get_comm_manager()


class _Done:
    def __await__(self):
        return iter(())
