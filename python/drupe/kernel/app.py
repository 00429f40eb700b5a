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

from . import interrupt, jsontext
from .interrupt import call_interruptibly, shielded

_WITHOUT_REPLY = ("comm_open", "comm_msg", "comm_close")
_SHUTDOWN_GRACE = 0.2  # seconds for cancelled tasks to run their `finally`
_WORKERS_GRACE = 50  # ms for the kernel's threads in Python


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
        self._facade = facade.Kernel(server, self._loop, self._serve_one)
        self._stdin = stdin.Stdin(server)

    def prepare(self):
        """Import IPython and make the shell."""
        from . import execute, shell, shims, streams, threads

        streams.install(self._server)
        threads.install()
        shims.install(self._facade)
        self._context.run(self._make_shell, shell)
        self._stdin.install()
        self._executor = execute.Executor(self._server, self._shell, self._interrupts, self._loop, self._context)

    def _make_shell(self, module):
        app = module.KernelApp.instance(server=self._server, kernel=self._facade, interrupts=self._interrupts)
        app.initialize()
        self._shell = self._facade.shell = app.shell
        self._server.set_execution_count(app.shell.execution_count)

    def serve(self):
        """Run the loop until the server says shutdown."""
        self._shell.modules_at_start = tuple(sys.modules)
        _jkernel.workers_open()
        # Through call_soon(): a reader's handle cannot be entered again, and a cell may run the loop in itself.
        self._loop.add_reader(self._server.fileno(), self._loop.call_soon, self._on_ready)
        self._loop.call_soon(self._on_ready)
        while not self._server.shutdown:  # a cell may stop the loop
            interrupt.run_forever(self._loop)
        self._loop.remove_reader(self._server.fileno())

    @shielded
    def _on_ready(self):
        """Answer one request, then give tasks a turn before the next."""
        if self._server.shutdown:
            self._loop.stop()
            return
        self._interrupts.pending = False
        request = self._server.dispatch()
        if request is None:
            return
        self._loop.call_soon(self._on_ready)
        if request.type == "execute_request":
            self._context.run(self._answer, request, self._executor.execute)
        else:
            self._context.copy().run(self._answer, request, self._answer_other)

    @shielded
    def _serve_one(self):
        """For user code: answer one request in the middle of it, but run no cell. Whether there was one."""
        request = self._server.dispatch()
        if request is None:
            return False
        if request.type == "execute_request":  # the caller is no cell, so one was free to start
            self._loop.call_soon(self._answer, request, self._executor.execute, context=self._context)
        else:
            self._context.copy().run(self._answer, request, self._answer_other)
        return True

    @shielded
    def _answer(self, request, handler):
        """Whatever goes wrong in answering becomes an error reply: every request gets one."""
        try:
            handler(request)
        except BaseException as error:
            text = "%s: %s" % (type(error).__name__, error)
            content = {"status": "error", "ename": type(error).__name__, "evalue": str(error), "traceback": [text]}
            content["execution_count"] = self._shell.execution_count
            _reply(request, content)

    def _answer_other(self, request):
        from . import requests

        _jkernel.cell.set(request.parent)
        content = call_interruptibly(requests.answer, self._shell, self._server, request)
        _reply(request, content)

    def close(self):
        """End tasks, run the exit hooks while output still arrives, close the sockets. Returns whether Python may be
        finalized: no thread of the kernel is left in it."""
        ended = _jkernel.workers_close(_WORKERS_GRACE)
        interrupt.run_until_complete(self._loop, self._end_tasks())
        self._loop.close()
        atexit._run_exitfuncs()
        self._server.close()
        return ended

    async def _end_tasks(self):
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_SHUTDOWN_GRACE)
        await self._loop.shutdown_asyncgens()


def _reply(request, content):
    try:
        if content is None or request.type in _WITHOUT_REPLY:
            request.reply(b"{}", b"", _jkernel.REPLY_NONE)
        else:
            request.reply(jsontext.dumps(content))
    except ValueError:
        pass  # it was replied to before the error


def run(server):
    """Serve until shutdown. Returns the exit code."""
    try:
        server.capture()
        kernel = Kernel(server)
        kernel.prepare()
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
