"""execute_request: one cell from its code to its reply.

A plain cell runs to its end here. A cell that awaits becomes a task of the kernel's loop; the server holds back
further cells until it has replied. All cells share one context, so a context variable set in a cell is seen by the
next; tasks and threads get copies and keep the cell that started them.
"""
import asyncio
import functools
import os
import sys
import threading

from drupe import _jkernel

from . import display, insist, jsontext, loops, streams, tracebacks
from .cell import Cell
from .interrupt import call_interruptibly, patient, shielded
from .shell import interruption


class Executor:
    """Runs cells, one at a time. `before` and `after`, if set, are called with each cell: what `before` raises fails
    the cell, whose code does not run then; `after` is called in every case. `failed(request, error)` replies when a
    cell that has awaited could not be answered."""

    before = after = None

    def __init__(self, server, shell, interrupts, loop, context, failed):
        self._server = server
        self._shell = shell
        self._interrupts = interrupts
        self._loop = loop
        self._context = context
        self._failed = failed
        self._pid = os.getpid()
        self.task = None  # of the cell that awaits

    @shielded
    def execute(self, request):
        """Run the cell of `request` and reply, now or when it has awaited. Called in the cells' context."""
        cell = Cell(request)
        self._begin(cell)
        if self.before is not None:
            self._guard(cell, self.before)
        if cell.error is None:
            self._start(cell)
        if cell.asynchronous:
            cell.task = self.task = self._loop.create_task(self._run_task(cell), context=self._context)
            cell.task.add_done_callback(functools.partial(self._settle, cell), context=self._context)
        else:
            self._finish(cell)

    def _begin(self, cell):
        self._interrupts.reassert()
        cell.interrupts = self._interrupts
        cell.begin()
        self._shell.count_cell(cell)
        if not cell.silent:
            content = {"code": cell.code, "execution_count": cell.count}
            display.publish(self._server, "execute_input", content)

    def _guard(self, cell, function):
        """Run a part of the cell that Ctrl-C may break; whatever escapes fails the cell and is shown in it."""
        try:
            return call_interruptibly(function, cell)
        except BaseException as error:
            self._fail(cell, error)

    def _fail(self, cell, error):
        if cell.error is None:
            cell.error = interruption(cell, error)
        try:
            self._shell.showtraceback((type(error), error, tracebacks.frames_of_others(error.__traceback__)))
        except BaseException as second:
            cell.traceback = [jsontext.error_line(second)]
            display.publish(self._server, "error", jsontext.error_content(error, cell.traceback))

    # --- running the code ---

    @shielded
    def _start(self, cell):
        """Run a plain cell; make the coroutine of one that awaits. Inside, run_code() of the shell is interruptible."""
        try:
            self._prepare(cell)
            if cell.runner is not None:
                cell.asynchronous = False
                cell.result = loops.run(cell)
            elif not cell.asynchronous:
                cell.result = _drive(cell.coroutine)
        except BaseException as error:
            self._fail(cell, error)

    @patient
    def _prepare(self, cell):
        shell, problem = self._shell, None
        try:
            code = shell.transform_cell(cell.code)
        except Exception:
            code, problem = cell.code, sys.exc_info()
        cell.source = code
        cell.asynchronous = ("await" in code or "async" in code) and shell.should_run_async(
            cell.code, transformed_cell=code, preprocessing_exc_tuple=problem
        )
        if cell.asynchronous:
            cell.runner = loops.foreign_runner(shell)
        cell.coroutine = shell.run_cell_async(
            cell.code,
            store_history=cell.store_history,
            silent=cell.silent,
            transformed_cell=code,
            preprocessing_exc_tuple=problem,
            cell_id=cell.id,
        )

    @shielded
    async def _run_task(self, cell):
        try:
            # Not earlier, and for this task only: one that is cancelled before its first step never runs, and would
            # never reply.
            self._interrupts.awaiting = functools.partial(self._cancel, cell)
            self._interrupts.insisting = functools.partial(insist.note, self._server, self._shell, self._loop, cell)
            cell.result = await cell.coroutine
        except BaseException as error:
            self._fail(cell, error)
        self._interrupts.awaiting = self._interrupts.insisting = cell.task = None
        try:
            self._finish(cell)
        except BaseException as error:
            self._failed(cell.request, error)

    @shielded
    def _settle(self, cell, task):
        """Reply for a task that was cancelled before its first step: nothing of it has run."""
        if cell.task is task:
            cell.coroutine.close()
            self._fail(cell, asyncio.CancelledError())
            cell.task = None
            self._finish(cell)

    @shielded  # a second Ctrl-C that broke it would lose the wake-up of what is cancelled: the cell would never end
    def _cancel(self, cell):
        """Ctrl-C while the cell awaits. As under asyncio.run(), what it awaits is cancelled, and what comes out of it
        is KeyboardInterrupt."""
        if cell.task is not None:
            cell.interrupted = True
            cell.task.cancel()

    # --- after the code ---

    @shielded
    def _finish(self, cell):
        if os.getpid() != self._pid:
            error = self._error_of_result(cell) if cell.error is None else cell.error
            _jkernel.flush_stdio()
            os._exit(_exit_code(error))  # a forked child is no kernel
        self._guard(cell, self._after)
        self._guard(cell, _run_cell_check)
        if self.after is not None:
            self.after(cell)
        streams.finish()
        if cell.error is None:
            cell.error = self._error_of_result(cell)
        content = self._reply_content(cell)
        cell.end()
        self.task = None
        self._interrupts.pending = False
        self._interrupts.reassert()
        self._server.set_execution_count(self._shell.execution_count)
        abort = cell.error is not None and cell.stop_on_error and not cell.silent
        flags = _jkernel.REPLY_ABORT_QUEUED if abort else 0
        metadata = {"started": cell.started, "status": content["status"]}
        cell.request.reply(jsontext.dumps(content), jsontext.dumps(metadata), flags)
        self._shell.save_history_later()
        if self._shell.exit_now:
            # The main shell waits for the client to ask; behind a subshell it would go on with its cells meanwhile.
            self._server.leave(threading.current_thread() is threading.main_thread())

    def _after(self, cell):
        """What IPython's own run_cell() does after the code, and figures wait for."""
        self._shell.events.trigger("post_execute")
        if not cell.silent:
            self._shell.events.trigger("post_run_cell", cell.result)
        streams.flush_others()

    def _error_of_result(self, cell):
        if cell.result is None:
            return None
        for error in (cell.result.error_in_exec, cell.result.error_before_exec):
            if error is not None:  # an exception may be false
                return interruption(cell, error)
        return None

    def _reply_content(self, cell):
        cell.answering = True
        if cell.error is None:
            content = {"status": "ok", "user_expressions": self._guard(cell, self._user_expressions)}
        if cell.error is not None:
            content = {"status": "error", "user_expressions": {}}
            content.update(jsontext.error_content(cell.error, cell.traceback or []))
        content["execution_count"] = cell.count
        content["payload"] = cell.payloads
        return content

    def _user_expressions(self, cell):
        if not isinstance(cell.user_expressions, dict):
            raise TypeError("user_expressions must be an object of expressions")
        return self._shell.user_expressions(cell.user_expressions) if cell.user_expressions else {}


def _drive(coroutine):
    """Run a coroutine that awaits nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("this cell awaits where it cannot: switch %autoawait on")


def _exit_code(error):
    """What a program that ends like this returns."""
    if isinstance(error, SystemExit):
        return error.code & 0xFF if isinstance(error.code, int) else int(error.code is not None)
    return int(error is not None)


def _run_cell_check(cell):
    _jkernel.run_cell_check()
