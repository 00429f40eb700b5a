"""The kernel's life in Python: set up the shell, serve requests from one asyncio loop, go down.

The sockets are bound and kernel_info is answered by C before this module is imported.
"""
import asyncio
import atexit
import contextvars
import os
import sys
import threading

from drupe import _jkernel

from . import interrupt

_WORKERS_GRACE = 200  # ms for the kernel's threads in Python
_STORE_AFTER = 5.0  # seconds after the start, when nothing runs


class Kernel:
    """Takes requests from the server and has them answered."""

    def __init__(self, server):
        from . import facade, stdin

        self._server = server
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._interrupts = interrupt.Interrupts(self._loop)
        self._interrupts.install()
        self._context = contextvars.copy_context()  # shared by all cells
        self._facade = facade.IPythonKernel.instance(server=server, loop=self._loop, serve_one=_serve_one)
        self._stdin = stdin.Stdin(server)

    def prepare(self, options):
        """Import IPython and make the shell, which takes the command line's `options`."""
        from . import application, features, late, leaving, line, shims, start_imports, streams, threads

        streams.install(self._server)
        leaving.install()
        threads.install()
        late.after_import("subprocess", interrupt.keep_popen_whole)
        interrupt.whole(start_imports.execute)
        shims.install(self._facade)
        self._context.run(self._make_shell, application, options)
        self._stdin.install()
        self._line = line.Line(self._server, self._server, self._shell, self._interrupts, self._loop, self._context)
        if os.environ.get("DRUPE_LEASE") or os.environ.get("DRUPE_ACCOUNT"):
            from . import leased

            leased.prepare(self._server, self._shell)
        if features.subshells_on():
            from . import subshells

            subshells.prepare(self._server, self._shell, self._interrupts, self._context, self._line)

    def _make_shell(self, application, options):
        app = application.IPKernelApp.instance(server=self._server, kernel=self._facade, interrupts=self._interrupts)
        app.initialize(options)
        self._shell = app.shell
        self._server.set_execution_count(app.shell.execution_count)

    def later(self, task):
        """Have the task done at a quiet moment, if there is one."""
        if task is not None:
            self._loop.call_later(_STORE_AFTER, task)

    def serve(self):
        """Run the loop until the server says shutdown."""
        self._shell.modules_at_start = tuple(sys.modules)
        _jkernel.workers_open()
        self._line.open()
        while not self._server.shutdown:  # a cell may stop the loop
            interrupt.run_forever(self._loop)
        self._line.close()

    def close(self):
        """End tasks, run the exit hooks while output still arrives, close the sockets. Returns whether Python may be
        finalized: no thread of the kernel is left in it."""
        ended = _jkernel.workers_close(_WORKERS_GRACE)
        interrupt.run_until_complete(self._loop, interrupt.end_tasks(self._loop))
        if "drupe.jupyter.leased" in sys.modules:
            sys.modules["drupe.jupyter.leased"].close()
        self._loop.close()
        atexit._run_exitfuncs()
        self._interrupts.ignore()
        self._server.close()
        return ended


def _serve_one():
    from .line import Line

    line = Line.of_caller()
    return line is not None and line.serve_one()


def run(server, options=(), end_of_start=lambda: None):
    """Serve until shutdown. Returns the exit code. `end_of_start` is start_imports', called when the shell stands."""
    try:
        server.capture()
        kernel = Kernel(server)
        kernel.prepare(list(options))
        kernel.later(end_of_start())
    except BaseException as error:
        server.close()
        sys.__stderr__.write("drupe: the kernel cannot start: %s: %s\n" % (type(error).__name__, error))
        return 1
    kernel.serve()
    ended = kernel.close()
    others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
    if others or not ended or "pydevd" in sys.modules:
        os._exit(0)  # threads that do not end, and debugpy's hundreds of modules, must not hold the launcher up
    return 0
