"""A line under each cell that used a device: %config Drupe.footer = True."""
from IPython.display import display

from drupe.magics import views

_hooks = {}  # shell: what is registered


def switch(shell, on):
    """Show the line under the cells of a shell from now on, or no longer."""
    if on and shell not in _hooks:
        _hooks[shell] = _show
        shell.events.register("post_run_cell", _show)
        views.take(1, 1, spans=1)  # starts the recorder
    elif not on and shell in _hooks:
        shell.events.unregister("post_run_cell", _hooks.pop(shell))


def _show(result):
    """The line of the cell that has just run, if it used a device."""
    cell = views.current()
    if cell and cell in views.worked(views.take(cell, cell, spans=1)):
        display(views.View("footer", cell, cell, cell=cell))
