"""%debug behind the failure of a kernel in Python: its work-group runs again in the simulator, and stops there."""
import sys

from drupe.simulator import replay


def debug(usual):
    """Of the last error: a replay where it is a kernel's failure, and otherwise `usual`, IPython's debugger."""
    __tracebackhide__ = True
    found = replay.of_error(getattr(sys, "last_value", None))
    return usual(force=True) if found is None else _again(usual, *found)


def _again(usual, launch, failure):
    _tell(launch, failure)
    if failure is not None and _stops_elsewhere():
        replay.run(launch, failure, stop=True)
        return None
    try:
        replay.run(launch, failure)
    except Exception as error:  # what the device found, found again
        print("%s: %s" % (type(error).__name__, error))
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        if hasattr(sys, "last_exc"):  # from CPython 3.12 on, where IPython's debugger prefers it
            sys.last_exc = error
    else:
        print("The simulator found nothing wrong with these inputs.")
        return None
    return usual(force=True)


def _tell(launch, failure):
    what = "all of %s()" % launch.kernel.__name__
    if failure is not None:
        item = failure.work_item
        what = "the work-group of work-item %s of %s()" % (item if len(item) > 1 else item[0], launch.kernel.__name__)
    print("Running %s again, in the simulator." % what)
    differ = replay.told(launch)
    if differ:
        print(differ)


def _stops_elsewhere():
    """Whether a front-end's debugger is on: it stops at the line, and cannot look at what is over."""
    debugpy = sys.modules.get("debugpy")
    return debugpy is not None and debugpy.is_client_connected()
