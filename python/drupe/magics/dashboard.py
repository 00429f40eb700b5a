"""%dashboard: what the devices are doing now."""
from drupe.magics import views
from drupe.magics.base import Magic, Option


class Dashboard(Magic):
    """Watch the devices in the output of this cell: how busy they are, their memory, a timeline of what they do.

    It moves while cells run, also while Python is stuck in a call, and rests when nothing happens. It stays until
    `%dashboard off` or until its cell runs again; its last state is saved with the notebook. In a terminal, which shows
    no updates, it is printed after each cell that used a device."""

    name = "dashboard"
    options = (Option("switch", nargs="?", choices=("on", "off"), default="on", metavar="on|off",
                      help="off: leave all displays as they are"),
               Option("--hz", type=float, metavar="N", help="at most so many frames a second, 2 at most"))
    examples = (("%dashboard", "watch what the following cells do"),
                ("%dashboard off", "the displays stay as they are"))

    def line(self, options):
        from drupe.magics import live

        if options.hz is not None and not 0.01 <= options.hz <= 2:
            self.parser.error("--hz is from 0.01 to 2")
        if options.switch == "off":
            live.close()
            options.quiet = True
            return views.View("dashboard") if options.output or options.json else None
        if options.quiet or options.json:
            return views.View("dashboard")
        handle = live.open_view(self.shell, "dashboard", options.hz, first=views.current())
        if handle is None:
            return views.View("dashboard")
        if options.output:
            self.shell.user_ns[options.output] = handle
        return None
