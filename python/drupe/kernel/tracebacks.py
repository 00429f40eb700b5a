"""The lines of an error that is shown in a cell: IPython's, or plain ones where IPython would print raw text, which
no client knows for an error."""
import os
import traceback as standard

import IPython

from . import jsontext

_HERE = os.path.dirname(__file__) + os.sep
_IPYTHON = os.path.dirname(IPython.__file__) + os.sep


def by_formatter(frame):
    """Whether this frame, which shows an error, caught what an object's representation has raised."""
    return frame.f_globals.get("__name__") == "IPython.core.formatters"


def cell_name(shell, filename):
    """`Cell In[3]` for the name that the code of a cell is compiled under, else None."""
    number = shell.compile._filename_map.get(filename)
    return None if number is None else "Cell In[%d]" % number


def frames_of_others(traceback, folders=(_HERE,)):
    """Without the frames of the kernel at its start. A device's error that the check at the cell's end has found has
    no others."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(folders):
        traceback = traceback.tb_next
    return traceback


def lines(shell, kind, error, traceback, offset):
    """The traceback as the user has chosen it (%xmode)."""
    try:
        if not _of_several(error):
            if hasattr(error, "_render_traceback_"):
                return error._render_traceback_()
            return shell.InteractiveTB.structured_traceback(kind, error, traceback, tb_offset=offset)
    except (Exception, KeyboardInterrupt):
        pass  # IPython's needs far more memory than plain ones
    try:
        return _plain(shell, kind, error, frames_of_others(traceback, (_HERE, _IPYTHON)))
    except (Exception, KeyboardInterrupt):
        return [jsontext.error_line(error)]


def _of_several(error):
    """Whether a group of exceptions is in it, whose members IPython does not show."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, BaseExceptionGroup):
            return True
        seen.add(id(error))
        error = error.__context__
    return False


def _plain(shell, kind, error, traceback):
    whole = standard.TracebackException(kind, error, traceback)
    _name_cells(shell, whole)
    return "".join(whole.format()).rstrip("\n").split("\n")


def _name_cells(shell, part):
    """`Cell In[3]` instead of the names that the code of cells is compiled under. The lines are read already."""
    if part is None:
        return
    for frame in part.stack:
        frame.filename = cell_name(shell, frame.filename) or frame.filename
    for below in (part.__cause__, part.__context__, *(part.exceptions or ())):
        _name_cells(shell, below)
