"""A line under each cell that used a device: %config Drupe.footer = True."""
import functools

from IPython.display import display

from drupe.magics import live, views

_hooks = {}  # shell: what is registered


def switch(shell, on):
    """Show the line under the cells of a shell from now on, or no longer."""
    if on and shell not in _hooks:
        _hooks[shell] = functools.partial(_show, shell)
        shell.events.register("post_run_cell", _hooks[shell])
        views.take(1, 1, spans=1)  # starts the recorder
    elif not on and shell in _hooks:
        shell.events.unregister("post_run_cell", _hooks.pop(shell))


def _show(shell, result):
    """The line of the cell that has just run, if it used a device. While its work goes on, it is one that the engine
    changes when that is over."""
    cell = views.current()
    view = views.take(cell, cell, spans=1) if cell else None
    if not cell or cell not in views.worked(view):
        return
    waits = any(one["waiting"] for one in view.data()["cells"])
    if waits and not live.is_console(shell) and live.open_footer(shell, cell):
        return
    display(views.View("footer", cell, cell, cell=cell))
