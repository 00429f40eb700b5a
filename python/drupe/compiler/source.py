"""From a function to its source: the tree of its def, with the lines and columns of the file or cell it stands in."""
import ast
import inspect
import linecache

from drupe.compiler.messages import KernelError


class Lines:
    """Lines of a file or cell, `first` being the number of the first one."""

    def __init__(self, first, lines):
        self.first, self._lines = first, lines

    def line(self, number):
        """A line of the file, without its end."""
        at = number - self.first
        return self._lines[at].rstrip() if 0 <= at < len(self._lines) else ""


class Source(Lines):
    """A function's text. `node` is its ast.FunctionDef, whose lines and columns are those of `filename`.

    A function that was made of a part of another one has `_cut`: its def, and the Source of the other. `title` is the
    name of the user's function."""

    def __init__(self, function):
        self.function, self.name = function, function.__name__
        self.title = self.name
        cut = getattr(function, "_cut", None)
        if cut is not None:
            self.node, whole = cut
            super().__init__(whole.first, whole._lines)
            self.filename, self.title = whole.filename, whole.title
            return
        code = getattr(function, "__code__", None)
        if code is None:
            raise KernelError("DK001", "%r is not a function that is written in Python." % (self.name,),
                              "Put the decorator above a def.")
        self.filename = code.co_filename
        lines = _lines(function, code)
        indent = len(lines[0]) - len(lines[0].lstrip())
        try:
            tree = ast.parse("".join(_dedented(line, indent) for line in lines))
        except SyntaxError:
            raise KernelError("DK001", "The source of %s() is not a def of its own." % self.name,
                              "Write it as a function of several lines.") from None
        self.node = next((one for one in ast.walk(tree)
                          if isinstance(one, ast.FunctionDef) and one.name == self.name), None)
        if self.node is None:
            raise KernelError("DK001", "%s is not a def: a lambda has no statements to compile." % self.name,
                              "Write it as a function: def name(...): ...")
        super().__init__(code.co_firstlineno, lines)
        self._move(tree, indent)

    def _move(self, tree, indent):
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                node.lineno += self.first - 1
                node.end_lineno += self.first - 1
                node.col_offset += indent
                node.end_col_offset += indent

    @property
    def text(self):
        return "".join(self._lines)


def _dedented(line, indent):
    """A line without the indentation of the def. Blank lines may have less, and lines of a text none."""
    if len(line) > indent and line[:indent].isspace():
        return line[indent:]
    return line.lstrip(" \t") if line.isspace() else line


def _lines(function, code):
    try:
        lines = inspect.getsourcelines(function)[0]
    except (OSError, TypeError):
        linecache.checkcache(code.co_filename)
        raise KernelError("DK001", "The source of %s() is not known: it was made by exec() or typed where nothing "
                          "keeps what is typed." % function.__name__,
                          "Write it in a cell or in a file.") from None
    if not lines:
        raise KernelError("DK001", "The source of %s() is empty." % function.__name__)
    return lines
