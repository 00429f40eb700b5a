"""What the devices did, as results of magics; the pictures are made in C."""
from drupe.magics.base import WIDTH, Result, UsageError

TRACE = "application/vnd.drupe.trace+json"


class View(Result):
    """What the devices did, at one moment. `kind`: "events", "table", "memory", "dashboard" or "footer"."""

    def __init__(self, kind, first=0, last=0, cell=0, device=""):
        self.kind = kind
        self._cell = cell
        self._device = device
        self._view = take(first, last)

    def text(self, columns=WIDTH):
        return self._view.text(self.kind, columns=columns, cell=self._cell, device=self._device)

    def html(self):
        return self._view.html(self.kind, cell=self._cell, device=self._device)

    def data(self):
        return self._view.data()

    def chrome(self):
        """Chrome's Trace Event format, which ui.perfetto.dev opens."""
        from drupe.magics import perfetto

        return perfetto.text(self.data())

    def _repr_mimebundle_(self, include=None, exclude=None):
        import json

        bundle = {"text/plain": repr(self), "text/html": self.html()}
        if self.kind == "footer":
            return bundle
        bundle[TRACE] = json.loads(self._view.json())
        return bundle, {TRACE: {"kind": self.kind}}


def take(first=0, last=0, spans=0):
    """What the engine remembers of some cells, both included; 0 and 0: of all."""
    from drupe import _engine

    _engine._view_start()
    return _engine._view(first_cell=first, last_cell=last, spans=spans)


def submit():
    """Have the expressions submitted that are pending: what is shown is what was asked for."""
    from drupe import _engine

    _engine._settle_all()


def current():
    """The number of the cell that runs; 0 outside of a kernel of Drupe."""
    from drupe import _engine

    return _engine._cell()


def worked(view):
    """The numbers of the cells that used a device, in order."""
    return [cell["number"] for cell in view.data()["cells"]
            if sum(cell["count"]) + cell["waiting"] + cell["missed"] > 0]


def cell_range(text, current):
    """The first and the last cell that "7", "2:5", "3:", ":4" or "-3:" (the last three) name."""
    first, colon, last = text.strip().strip("[]").partition(":")
    try:
        first = int(first) if first or not colon else 1
        last = first if not colon else int(last) if last else current
    except ValueError:
        raise UsageError("%r names no cells; cells are 7, 2:5, 3: or -3: (the last three)" % text) from None
    first, last = (number if number > 0 else max(1, current + number) for number in (first, last))
    if last < first:
        raise UsageError("%r names no cells: the last one comes before the first" % text)
    return first, last
