"""%debug behind the failure of a kernel in Python: its work-group runs again in the simulator, and stops there."""
import sys


class Debug:
    """IPython's %debug; after an error that a kernel in Python has made, a replay of it."""

    def __init__(self, shell, usual):
        self._shell, self._usual = shell, usual
        self.__doc__ = usual.__doc__

    def __call__(self, line="", *args, **options):
        __tracebackhide__ = True
        from drupe.simulator import replay

        found = None if line.strip() else replay.of_error(getattr(sys, "last_value", None))
        if found is None:
            return self._usual(line, *args, **options)
        launch, failure = found
        self._tell(launch, failure)
        if failure is not None and self._stops_elsewhere():
            replay.run(launch, failure, stop=True)
            return None
        try:
            replay.run(launch, failure)
        except Exception as error:  # what the device found, found again
            sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
            print("%s: %s" % (type(error).__name__, error))
            return self._usual("")
        print("The simulator found nothing wrong with these inputs.")
        return None

    def _tell(self, launch, failure):
        from drupe.simulator import replay

        what = "all of %s()" % launch.kernel.__name__
        if failure is not None:
            item = failure.work_item
            what = "the work-group of work-item %s of %s()" % (item if len(item) > 1 else item[0], launch.kernel.__name__)
        print("Running %s again, in the simulator." % what)
        differ = replay.told(launch)
        if differ:
            print(differ)

    @staticmethod
    def _stops_elsewhere():
        """Whether a front-end's debugger is on: it stops at the line, and cannot look at what is over."""
        debugpy = sys.modules.get("debugpy")
        return debugpy is not None and debugpy.is_client_connected()
