"""Displays that move: opened here, kept up to date by C. Nothing of this is loaded before one is opened."""
from drupe import _engine

MOST = 4  # displays; the oldest stops when there are more

_open = {}  # number of a display: its kind, and the id of the notebook's cell that it is in, or None
_others = set()  # numbers of displays that change once
_shells = []


class Handle:
    """A display that is kept up to date until it is closed."""

    def __init__(self, number):
        self._number = number

    @property
    def is_open(self):
        return self._number in _open

    def close(self):
        """Leave it as it is now."""
        close(self._number)

    def __repr__(self):
        return "<display %d, %s>" % (self._number, "live" if self.is_open else "closed")


def request(shell):
    """The request that this cell is, as a message; {} outside of a kernel."""
    kernel = getattr(shell, "kernel", None)
    return (kernel.get_parent() if kernel is not None else None) or {}


def cell_id(shell):
    """What the notebook calls the cell that runs, or None."""
    return request(shell).get("metadata", {}).get("cellId")


def is_console(shell):
    """Whether the front-end is one for terminals, which shows no updates: it takes input and has no cells."""
    return bool(request(shell).get("content", {}).get("allow_stdin")) and cell_id(shell) is None


def open_view(shell, kind, hz=None, first=0, last=0):
    """Open a display in the cell that runs; a Handle, or None where there is no kernel of Drupe."""
    from drupe.magics import settings

    chosen = settings.of(shell)
    number = _engine._live_open(kind, hz=chosen.hz if hz is None else hz, first_cell=first, last_cell=last,
                                columns=chosen.columns)
    if not number:
        return None
    _open[number] = kind, cell_id(shell)
    for old in list(_open)[:-MOST]:
        close(old)
    _hook(shell)
    return Handle(number)


def open_footer(shell, cell):
    """The line under a cell, which changes when the cell's work is over; whether there is one."""
    from drupe.magics import base

    return attend(shell, _engine._live_open("footer", first_cell=cell, last_cell=cell, columns=base.columns()))


def attend(shell, number):
    """A display that changes once by itself: it is asked at the end of cells. Whether there is one."""
    if number:
        _others.add(number)
        _hook(shell)
    return bool(number)


def _hook(shell):
    if shell not in _shells:
        _shells.append(shell)
        shell.events.register("pre_run_cell", lambda *info: _cell_begins(shell))
        shell.events.register("post_run_cell", lambda *result: _cell_ended(shell))


def close(number=None):
    """Leave a display, or all, as it is now."""
    for one in list(_open) if number is None else [number]:
        _open.pop(one, None)
        _engine._live_close(one)


def _cell_begins(shell):
    """A cell that runs again has a new output: what was in the old one ends."""
    current = cell_id(shell) if _open else None
    for number in [number for number, (_, cell) in _open.items() if cell is not None and cell == current]:
        close(number)


def _cell_ended(shell):
    """Bring what is shown up to date before the cell is over: some clients listen no longer."""
    if not _open and not _others:
        return
    kinds = dict.fromkeys(kind for kind, _ in _open.values())
    alive = _engine._live_show()
    _others.intersection_update(alive)
    if kinds and is_console(shell):
        _print(kinds)
    for number in [number for number in _open if number not in alive]:
        del _open[number]


def _print(kinds):
    """For terminals: what the cell has done, if it used a device."""
    from drupe.magics import views

    cell = views.current()
    if cell in views.worked(views.take(cell, cell, spans=1)):
        for kind in kinds:
            print(views.View(kind, cell, cell))
