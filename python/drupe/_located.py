"""Failures of work that was submitted elsewhere, with a traceback that ends at the line that submitted it."""
import ast
import itertools
import linecache
import sys

_AROUND = 3  # lines before and after
_LINE_MOST = 200  # bytes


def source(file, line):
    """The text of a line as the user wrote it, or None."""
    return linecache.getline(file, line).strip() or None if line > 0 else None


def locate(error, code, offset):
    """Raise `error` as if by the instruction at `offset` of `code`, so that whoever shows its traceback shows that
    line; the submitting frame itself is gone, or at another line by now."""
    line, end_line, column, end_column = next(itertools.islice(code.co_positions(), offset // 2, None))
    where = {"lineno": line, "end_lineno": end_line, "col_offset": column or 0, "end_col_offset": end_column or 0}
    statement = ast.Raise(ast.Name("error", ast.Load(), **where), None, **where)
    scope = {"error": error}
    try:
        exec(compile(ast.Module([statement], []), code.co_filename, "exec"), scope)
    except type(error):
        error.__traceback__ = error.__traceback__.tb_next
    scope.clear()


def joined(errors):
    """One of the errors, to which the others are notes: the first that no other cell shows, if there is one."""
    one = next((error for error in errors if not hasattr(error, "_shown_in")), errors[0])
    for other in errors:
        if other is not one:
            try:
                for note in (str(other), *getattr(other, "__notes__", ())):
                    one.add_note(note)
            except Exception:  # of its __str__: the others are told all the same
                one.add_note(type(other).__name__)
    return one


def coloured():
    """The setting of IPython's that %colors changes."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "colors", "nocolor").lower() != "nocolor"


def _cut(text):
    text = text.rstrip("\r\n")
    if len(text) <= _LINE_MOST and text.isascii():
        return text
    written = text.encode(errors="replace")
    return text if len(written) <= _LINE_MOST else written[:_LINE_MOST].decode(errors="ignore") + "..."


def excerpt(path, line, cell, name, colours):
    """The lines around one of a file, with an arrow at it, as IPython shows them; None where there is no source. `cell`
    is the number of the cell whose code it is; where that is 0, the file is called `name`."""
    lines = linecache.getlines(path)
    if not 0 < line <= len(lines):
        return None
    cyan, green, end = ("\33[36m", "\33[32m", "\33[39m") if colours else ("", "", "")
    first, rest = ("Cell", f"In[{cell}], line {line}") if cell else ("File", f"{name}:{line}")
    shown = [f"{cyan}{first}{green} {rest}{end}\n"]
    for number in range(max(1, line - _AROUND), min(line + _AROUND, len(lines)) + 1):
        place = f"> {number}".rjust(7, "-") if number == line else f"{number:>7}"
        shown.append(f"{green}{place}{end} {_cut(lines[number - 1])}\n")
    return "".join(shown)
