"""From a failure on a device to a debugger: the work-group that failed runs again, on the inputs as they were.

%debug comes here when the last error was a kernel's. What the kernel may have written is taken from copies where there
are some (%config Drupe.replay = True, checked mode); otherwise it is said which inputs may differ.
"""
import sys

from drupe.simulator import calls


def of_error(error):
    """The launch (compiler/guard.py) whose failure an error tells, and the failure, which may be None; or None."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        launch = getattr(error, "launch", None)
        if launch is not None:
            return launch, error
        found = _of_fault(error)
        if found is not None:
            return found, None
        error = error.__cause__ or error.__context__
    return None


def _of_fault(error):
    """The launch of the kernel that an error of a device names: a fault does not tell its work-item."""
    guard = sys.modules.get("drupe.compiler.guard")
    if guard is None or not type(error).__module__.startswith("drupe"):
        return None
    return next((launch for name, launch in guard.recent.items() if "'%s'" % name in str(error)), None)


def told(launch):
    """What is to be said of the inputs; None if they are those that the kernel had."""
    names = launch.kernel.py_func.__code__.co_varnames
    skipped = launch.kernel.py_func.__code__.co_argcount - len(launch.args)
    lost = [names[at + skipped] for at in sorted(launch.changed - launch.copied)]
    if not lost:
        return None
    return "%s may differ from what the kernel had: it may write there, and no copy was made. " \
           "%%config Drupe.replay = True makes copies from the next launch on." % " and ".join(lost)


def arguments(launch):
    """The arguments on the host: what the replay writes is not seen outside."""
    return tuple(_on_host(one) for one in launch.args)


def _on_host(value):
    if isinstance(value, tuple):
        items = [_on_host(one) for one in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value.asnumpy().copy() if hasattr(value, "asnumpy") else value


def group_of(space, work_item):
    """The group that a work-item belongs to; over a Range the work-item itself."""
    local = getattr(space, "local_range", None)
    return tuple(work_item) if local is None else tuple(i // n for i, n in zip(work_item, local))


def run(launch, failure=None, *, stop=False, hook=None):
    """Run what failed again: the work-group of `failure`, or all where the work-item is not known. What is found
    is raised, from the frame of the kernel. With `stop` a debugger (or `hook`) stops in the failure's line.
    Returns whether it has stopped."""
    args = arguments(launch)
    if failure is None:
        calls.call_kernel(launch.kernel, launch.space, *args)
        return False
    where = {"stop_at": failure.work_item, "line": failure.line, "hook": hook} if stop else {}
    return calls.run_group(launch.kernel, launch.space, group_of(launch.space, failure.work_item), args, **where)
