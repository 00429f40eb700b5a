"""%config Drupe.*: the settings of the magics and of what is shown of devices."""
from IPython.core.error import UsageError
from traitlets import Bool, Float, Int, observe
from traitlets.config import Configurable

from drupe.magics.base import WIDTH


class _Answers(Bool):
    """Whether imports are answered. It has no value of its own: a program may call drupe.compat.disable(), too."""

    def get(self, obj, cls=None):
        from drupe import compat

        return compat.is_enabled()

    def set(self, obj, value):
        from drupe import compat

        (compat.enable if self._validate(obj, value) else compat.disable)()


class Drupe(Configurable):
    """What Drupe shows in the notebook. In ipython_config.py: c.Drupe.footer = True."""

    footer = Bool(False, help="Show a line under each cell that used devices: time, share of the device, bytes, memory."
                  ).tag(config=True)
    hz = Float(2.0, min=0.1, max=2.0, help="How often live dashboards are drawn, in frames a second."
               ).tag(config=True)
    columns = Int(WIDTH, min=60, max=240, help="How wide texts are, in characters: for consoles, which do not "
                                               "report their width.").tag(config=True)
    profile = Bool(False, help="Queues record exact times from the next submission on, including queues that "
                               "exist already.").tag(config=True)
    checked = Bool(False, help="Checked mode: find races, writes out of bounds and freed memory; slower. "
                               "As `with drupe.checked():`.").tag(config=True)

    replay = Bool(False, help="Kernels in Python can be run again, in the simulator, by %debug after a failure: what "
                              "they may write is copied before each launch.").tag(config=True)
    compat = _Answers(help="Drupe answers what programs for dpctl, numba-dpex and the like import, where it is not "
                           "installed.").tag(config=True)
    colours = Bool(True, help="Colours in the messages of compilers.").tag(config=True)

    def __init__(self, **settings):
        self._checking = None
        super().__init__(**settings)

    @observe("footer")
    def _footer_changed(self, change):
        from drupe.magics import footer

        footer.switch(self.parent, change["new"])

    @observe("columns")
    def _columns_changed(self, change):
        from drupe.magics import base

        base.columns(change["new"])

    @observe("profile")
    def _profile_changed(self, change):
        from drupe import _engine

        _engine._profile_queues(change["new"])
        without = [one for one in _engine._queues() if not one.has_enable_profiling] if change["new"] else []
        if without:
            print("Without times of the device, as before: %s. Either their native handle is in use elsewhere, or the "
                  "driver keeps no times. Create what uses them again on drupe.Queue(device), or set this before a "
                  "device is used."
                  % ", ".join("queue %d on %s" % (one.number, one.device.filter_string) for one in without))

    @observe("replay")
    def _replay_changed(self, change):
        from drupe.compiler import careful

        careful.set_replay(change["new"])

    @observe("checked")
    def _checked_changed(self, change):
        import drupe

        if change["new"]:
            self._checking = drupe.checked()
            self._checking.__enter__()
        elif self._checking is not None:
            checking, self._checking = self._checking, None
            try:
                checking.__exit__(None, None, None)
            except drupe.CheckError as error:
                raise UsageError(str(error)) from None


def of(shell):
    """The settings of a shell; from the first call on %config knows them."""
    for one in shell.configurables:
        if isinstance(one, Drupe):
            return one
    made = Drupe(parent=shell)
    shell.configurables.append(made)
    return made
