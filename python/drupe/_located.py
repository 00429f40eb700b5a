"""Failures of work that was submitted elsewhere, with a traceback that ends at the line that submitted it."""
import ast
import itertools


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
