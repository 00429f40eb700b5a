"""%config Drupe.*: the settings of the magics and of what is shown of devices."""
from IPython.core.error import UsageError
from traitlets import Bool, Float, observe
from traitlets.config import Configurable


class Drupe(Configurable):
    """What Drupe shows in the notebook. In ipython_config.py: c.Drupe.footer = True."""

    footer = Bool(False, help="Show a line under each cell that used devices: time, share of the device, bytes, memory."
                  ).tag(config=True)
    hz = Float(2.0, min=0.1, max=2.0, help="How often dashboards that live are drawn, in frames a second."
               ).tag(config=True)
    profile = Bool(False, help="Queues that are made from now on carry the device's own times. The default queue of a "
                               "device is made when it is first used.").tag(config=True)
    checked = Bool(False, help="Checked mode: find races, writes out of bounds and freed memory; slower. "
                               "As `with drupe.checked():`.").tag(config=True)

    colours = Bool(True, help="Colours in the messages of compilers.").tag(config=True)

    def __init__(self, **settings):
        self._checking = None
        super().__init__(**settings)

    @observe("footer")
    def _footer_changed(self, change):
        from drupe.magics import footer

        footer.switch(self.parent, change["new"])

    @observe("profile")
    def _profile_changed(self, change):
        from drupe import _engine

        _engine._profile_queues(change["new"])

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
