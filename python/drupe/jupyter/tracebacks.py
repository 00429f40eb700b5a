"""The lines of an error that is shown in a cell: IPython's, or plain ones where IPython would print raw text, which
no client knows for an error.

They show the user's frames: what stands between those and an error inside of Drupe helps nobody to mend it. %xmode
Verbose shows them.
"""
import linecache
import os
import traceback as standard

import IPython

from . import jsontext

_HERE = os.path.dirname(__file__) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_IPYTHON = os.path.dirname(IPython.__file__) + os.sep
_WHOLE = ("Verbose", "Docs")  # modes of IPython's formatter that show frames of this package
_BARE = "Minimal"  # the one that shows none


def leave_out_ours(formatter):
    """Have IPython's formatter of tracebacks leave frames of this package out, where others are left."""
    records_of = formatter.get_records

    def get_records(*args, **kwargs):
        return _of_users(formatter, records_of(*args, **kwargs))

    formatter.get_records = get_records
    entries_of = formatter._extract_tb  # %xmode Plain

    def extract(*args, **kwargs):
        entries = entries_of(*args, **kwargs)
        if not entries:
            return entries
        start = 0  # those that run a cell, of which IPython takes as many away as it counts
        while start < len(entries) and entries[start].filename.startswith((_HERE, _IPYTHON)):
            start += 1
        return standard.StackSummary.from_list(entries[:start] + _of_users(formatter, entries[start:]))

    formatter._extract_tb = extract


def _of_users(formatter, frames):
    folders = (_IPYTHON,) if formatter.mode in _WHOLE else (_IPYTHON, _PACKAGE)
    return [one for one in frames if not (getattr(one, "filename", None) or "").startswith(folders)] or frames


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
                return _as_lines(error._render_traceback_())
            return shell.InteractiveTB.structured_traceback(kind, error, traceback, tb_offset=offset)
    except (Exception, KeyboardInterrupt):
        pass  # IPython's needs far more memory than plain ones
    try:
        return _plain(shell, kind, error, frames_of_others(traceback, (_HERE, _IPYTHON)))
    except (Exception, KeyboardInterrupt):
        pass  # from CPython 3.13 on these need as much
    try:
        return _bare_lines(shell, error, frames_of_others(traceback, (_HERE, _IPYTHON)))
    except (Exception, KeyboardInterrupt):
        return [jsontext.error_line(error)]


def _as_lines(rendered):
    """What an error's own `_render_traceback_()` has returned."""
    if isinstance(rendered, str):
        return rendered.split("\n")
    if isinstance(rendered, (list, tuple)):
        return [str(line) for line in rendered]
    raise TypeError("_render_traceback_() returns a list of lines")


def _of_several(error):
    """Whether a group of exceptions is shown with it, whose members IPython does not show."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, BaseExceptionGroup):
            return True
        seen.add(id(error))
        error = error.__context__ if error.__cause__ is None and not error.__suppress_context__ else error.__cause__
    return False


def _plain(shell, kind, error, traceback):
    whole = standard.TracebackException(kind, error, traceback)
    bare = shell.InteractiveTB.mode == _BARE
    for part in _parts(whole):
        part.stack[:] = _of_users(shell.InteractiveTB, part.stack)
        for frame in part.stack:  # whose lines are read already
            frame.filename = cell_name(shell, frame.filename) or frame.filename
        if bare:
            part.stack = None
    return "".join(whole.format(chain=not bare)).rstrip("\n").split("\n")


def _bare_lines(shell, error, traceback):
    """Where it happened, without looking into the lines."""
    found = ["Traceback (most recent call last):"]
    while traceback is not None:
        code, number = traceback.tb_frame.f_code, traceback.tb_lineno
        where = cell_name(shell, code.co_filename) or code.co_filename
        found.append('  File "%s", line %d, in %s' % (where, number, code.co_name))
        found.append("    " + linecache.getline(code.co_filename, number).strip())
        traceback = traceback.tb_next
    return [*found, jsontext.error_line(error)]


def _parts(whole):
    """The error, those that it comes from and the members of groups."""
    rest = [whole]
    while rest:
        part = rest.pop()
        yield part
        rest += [below for below in (part.__cause__, part.__context__, *(part.exceptions or ())) if below is not None]
