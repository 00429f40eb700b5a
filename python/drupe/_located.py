"""Failures of work that was submitted elsewhere, with a traceback that ends at the line that submitted it."""
import ast
import itertools
import linecache


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
            for note in (str(other), *getattr(other, "__notes__", ())):
                one.add_note(note)
    return one
