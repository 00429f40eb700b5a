"""debugpy's server in this process, and the socket by which we speak the Debug Adapter Protocol with it.

debugpy connects to a port of ours that takes one connection and is closed again, so no other user of the machine can
debug the kernel; who connected is known by a token. There is no adapter process between: what it adds, the kernel
does itself.
"""
import atexit
import functools
import json
import os
import socket
import sys
import threading

_RUNNING, _SUSPENDED = 1, 2  # pydevd's numbers
_PATIENCE = 20.0  # seconds for debugpy to connect; it is in this process
_ENVIRONMENT = {
    # Statements of a cell are run one by one, each in a frame of its own: stepping goes from one to the next. The
    # context is the frame of a statement: run_code() of IPython's shell, called by run_code() of ours.
    "PYDEVD_IPYTHON_COMPATIBLE_DEBUGGING": "1",
    "PYDEVD_IPYTHON_CONTEXT": "interactiveshell.py,run_code,run_code",
    # From Python 3.12 on it would use sys.monitoring, which does not stop before a cell's first statement, goes on
    # after an interrupt, and leaves frames of its own in tracebacks.
    "PYDEVD_USE_SYS_MONITORING": "0",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # else it warns of frozen modules, on stderr
}


class AdapterError(Exception):
    """debugpy cannot be used; the text says why."""


def load():
    """Import debugpy's server. Returns the module pydevd."""
    before, hook = dict(os.environ), sys.breakpointhook
    os.environ.update(_ENVIRONMENT)
    try:
        import debugpy.server  # puts pydevd where it can be imported
        import pydevd
    except Exception as error:
        raise AdapterError("debugpy cannot be imported: %s: %s" % (type(error).__name__, error))
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)
        sys.breakpointhook = hook  # debugpy's does nothing when nobody debugs
    _watch_forks()
    return pydevd


@functools.cache
def _watch_forks():
    os.register_at_fork(after_in_child=_in_child)


def _in_child():
    """A forked child has the trace functions, but nobody who lets it go on."""
    debugger = sys.modules["pydevd"].get_global_debugger()
    if debugger is not None:
        debugger.pydb_disposed = True
    sys.modules["pydevd_tracing"].restore_sys_set_trace_func()
    untrace_caller()
    threading.settrace(None)


class Adapter:
    """One debugging session's connection. Used by the debugger's thread alone."""

    def __init__(self):
        self._pydevd = load()
        if self._pydevd.get_global_debugger() is not None:
            raise AdapterError("a cell has started debugpy itself: restart the kernel to debug it from here")
        self._seq = 0
        self._data = b""
        try:
            self._open()
        except BaseException:
            self._pydevd.stoptrace()
            raise

    def _open(self):
        import debugpy

        with socket.create_server(("127.0.0.1", 0), backlog=8) as listener:
            token = os.urandom(16).hex()
            self._connect(listener.getsockname(), token)
            listener.settimeout(_PATIENCE)
            self._socket = self._accept(listener, token)
        debugpy.trace_this_thread(False)
        self._hook, sys.breakpointhook = sys.breakpointhook, debugpy.breakpoint

    def fileno(self):
        return self._socket.fileno()

    def _connect(self, address, token):
        import debugpy

        host, port = address
        self._pydevd.settrace(
            host=host,
            port=port,
            suspend=False,
            block_until_connected=True,
            wait_for_ready_to_run=False,
            client_access_token=token,
            patch_multiprocessing=False,
            notify_stdin=False,
            dont_trace_start_patterns=(os.path.dirname(os.path.abspath(debugpy.__file__)),),
        )
        atexit.unregister(self._pydevd.stoptrace)  # it waits for threads that end with the process anyway

    def _accept(self, listener, token):
        """The connection whose other end knows the token."""
        while True:
            try:
                connection = listener.accept()[0]
            except OSError as error:
                raise AdapterError("debugpy did not connect: %s" % error)
            connection.settimeout(_PATIENCE)
            try:
                if self._knows(connection, token):
                    connection.settimeout(None)
                    return connection
            except (OSError, EOFError, ValueError):
                pass
            connection.close()

    def _knows(self, connection, token):
        self._socket, self._data = connection, b""
        number = self.send("pydevdAuthorize", {"debugServerAccessToken": None})
        while True:
            for message in self.receive():
                if message.get("type") == "response" and message.get("request_seq") == number:
                    body = message.get("body")
                    return isinstance(body, dict) and body.get("clientAccessToken") == token

    def send(self, command, arguments):
        """Send a request. Returns its number, which the response repeats."""
        self._seq += 1
        message = {"type": "request", "seq": self._seq, "command": command, "arguments": arguments}
        data = json.dumps(message).encode("ascii")
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        return self._seq

    def receive(self):
        """The messages that have arrived; waits for some. EOFError when debugpy has gone."""
        data = self._socket.recv(1 << 16)
        if not data:
            raise EOFError("debugpy has closed its connection")
        self._data += data
        messages = []
        while True:
            head, separator, rest = self._data.partition(b"\r\n\r\n")
            if not separator:
                return messages
            size = _content_length(head)
            if len(rest) < size:
                return messages
            messages.append(json.loads(rest[:size]))
            self._data = rest[size:]

    def trace_caller(self):
        """Trace the calling thread, if it is not. A step that went beyond the end of the last cell is over."""
        import debugpy

        if sys.gettrace() is None:
            debugpy.trace_this_thread(True)
        info = _thread_info()
        if info is not None and info.pydev_state == _RUNNING:
            _let_run(info)

    def release_caller(self):
        """In the signal handler, which is about to raise KeyboardInterrupt: if the calling thread is stopped, it will
        not be when that has left debugpy's code. Without locks: the handler may interrupt who holds them."""
        info = _thread_info()
        if info is not None and info.pydev_state == _SUSPENDED:
            _let_run(info)

    def close(self, quickly=False):
        """End the session: nothing is traced any more. `quickly`: the process ends."""
        if not quickly:
            sys.breakpointhook = self._hook
            self._pydevd.stoptrace()
        self._socket.close()


def _thread_info():
    """What debugpy keeps of the calling thread, or None."""
    return getattr(threading.current_thread(), "additional_info", None)


def _let_run(info):
    info.pydev_original_step_cmd = info.pydev_step_cmd = -1
    info.pydev_step_stop = None
    info.pydev_state = _RUNNING


def untrace_caller():
    """Take pydevd's trace function from the calling thread: stoptrace() does it for its own thread only."""
    trace = sys.gettrace()
    module = getattr(type(trace), "__module__", "") if not hasattr(trace, "__module__") else trace.__module__
    if trace is not None and "pydevd" in str(module):
        sys.settrace(None)


def cut_traceback(traceback):
    """Drop debugpy's frames from the end of the traceback of a KeyboardInterrupt at a breakpoint, and the second entry
    of the frame that was stopped."""
    before = None
    while traceback is not None and traceback.tb_next is not None:
        if "pydevd" in os.path.basename(traceback.tb_next.tb_frame.f_code.co_filename):
            twice = before is not None and before.tb_frame is traceback.tb_frame
            (before if twice else traceback).tb_next = None
            return
        before, traceback = traceback, traceback.tb_next


def _content_length(head):
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    raise ValueError("a message without Content-Length")
