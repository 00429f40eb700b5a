"""Stopping at a line of one work-item."""
import sys
import threading

from drupe.simulator.traces import no_lines, skip_ours


class Stop:
    """Where to stop: the work-item at the place `index` among all, in a line of the kernel's file, or in the first one.

    met: whether it has come there. hook: what is called with the frame then; None for a debugger."""

    def __init__(self, index, line, hook):
        self.index, self.line, self.met = index, line, False
        self._hook = hook

    def around(self, run, function):
        """What runs a work-item in place of the kernel's function."""
        code = function.__code__

        def start(*args):
            __tracebackhide__ = True
            no_lines()
            item = run.item
            if self.met or getattr(item, "_index", None) != self.index and \
                    getattr(getattr(item, "_global", None), "_index", None) != self.index:
                return function(*args)
            before = sys.gettrace()
            _settrace(self._tracer(run, item, code.co_filename, before))
            try:
                return function(*args)
            finally:
                if not self.met:
                    _settrace(before)
        return start

    def _tracer(self, run, item, file, before):
        def in_frame(frame, event, arg):
            if event != "line" or self.met or self.line not in (None, frame.f_lineno):
                return in_frame
            self.met = True
            _settrace(before)
            frame.f_trace = None
            return self._stop(frame, event, arg)

        def tracer(frame, event, arg):
            if self.met or run.item is not item or frame.f_code.co_filename != file:
                return None
            return in_frame
        return tracer

    def _stop(self, frame, event, arg):
        if self._hook is not None:
            self._hook(frame)
            return None
        return debug(frame, event, arg)


def _settrace(function):
    """sys.settrace(). pydevd puts a function in its place that warns: what is set here is gone again at the stop."""
    holder = getattr(sys.modules.get("pydevd_tracing"), "TracingFunctionHolder", None)
    (getattr(holder, "_original_tracing", None) or sys.settrace)(function)


def debug(frame, event="line", arg=None):
    """Start a debugger at a frame, as breakpoint() would in it: JupyterLab's if it is on, else IPython's or pdb."""
    debugpy = sys.modules.get("debugpy")
    if debugpy is not None and debugpy.is_client_connected():
        return _debugpy(frame, event, arg)
    debugger = _debugger()
    skip_ours(debugger)
    debugger.set_trace(frame)
    return debugger.trace_dispatch(frame, event, arg)  # the line itself, and not only the next one


def _debugger():
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and getattr(shell, "debugger_cls", None) is not None:
        return shell.debugger_cls()
    import pdb

    return pdb.Pdb()


def _debugpy(frame, event, arg):
    """Stop in the debugger of a front-end, at this line: what debugpy.breakpoint() does stops at the next one."""
    import pydevd
    from _pydevd_bundle.pydevd_comm_constants import CMD_SET_BREAK

    pydevd.settrace(suspend=False, trace_only_current_thread=True, patch_multiprocessing=False)
    debugger, thread = pydevd.get_global_debugger(), threading.current_thread()
    debugger.set_trace_for_frame_and_parents(thread.ident, frame)
    debugger.set_suspend(thread, CMD_SET_BREAK)
    debugger.do_wait_suspend(thread, frame, event, arg)
    return frame.f_trace
