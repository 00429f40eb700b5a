"""What became of an offload function, for a notebook and for a terminal."""
import ast
import copy

from drupe import _html
from drupe.compiler import show
from drupe.compiler.messages import KernelError
from drupe.offloading import loops

_DIMS = ("", "", " of two dimensions", " of three dimensions")


class Report:
    """`text`: the function without the loops that were cut out of it; `loops`: (line, what the user wrote, what it is)
    for each loop; `kernels`: {name: [drupe.kernel ...]}, whose inspect() tells more."""

    def __init__(self, whole):
        self.name, self.text = whole.source.name, _text(whole.node)
        self.kernels = {loop.name: [kernel for kernel, _piece in loop.kernels.values()] for loop in whole.loops}
        outer = [loop.stmt for loop in whole.loops if _is_whole(loop)]
        inner = {node for stmt in outer for node in ast.walk(stmt)} - set(outer)
        found = [(loop.stmt, _of_loop(loop)) for loop in whole.loops if loop.stmt not in inner]
        found += [(stmt, "stays Python: %s." % reason) for stmt, reason in whole.kept]
        self.loops = sorted((stmt.lineno, _first_line(stmt), what) for stmt, what in found)

    def _lines(self):
        return ["line %d, `%s`: %s" % one for one in self.loops] or ["It has no loops that were cut out."]

    def __repr__(self):
        return "\n".join([self.name, *("  " + one for one in self._lines()), "", self.text])

    def _repr_mimebundle_(self, include=None, exclude=None):
        lines = "".join(_html.element("li", _html.escape(one), "margin:1px 0") for one in self._lines())
        markup = (_html.element("b", _html.escape(self.name)) +
                  _html.element("ul", lines, "font-size:13px;margin:2px 0") + show.source_html(self.text, "python"))
        head = "\n".join([self.name, *("  " + one for one in self._lines())])
        return {"text/plain": head + "\n\n" + show.source_ansi(self.text, "python"), "text/html": markup}


def _text(node):
    node = copy.deepcopy(node)
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id in ("drupe_range", "drupe_numpy"):
            one.id = one.id.removeprefix("drupe_")
    return ast.unparse(node) + "\n"


def _first_line(stmt):
    return ast.unparse(stmt).split("\n", 1)[0]


def _compiled(loop):
    return sum(len(kernel.variants) for kernel, _piece in loop.kernels.values())


def _is_whole(loop):
    """Whether the loops within it are parts of its kernel."""
    return _compiled(loop) and not loop.notes


def _of_loop(loop):
    """What a loop is."""
    compiled = _compiled(loop)
    times = "compiled for %d set%s of types" % (compiled, "" if compiled == 1 else "s") if compiled else \
        "not compiled yet"
    if hasattr(loop, "found"):
        text = "a parallel loop%s, the kernel %s, %s" % (_DIMS[loop.dims], loop.name, times)
        if loop.found.reductions:
            text += "; reductions: " + ", ".join("%s (%s)" % (one.name, one.op) for one in loop.found.reductions)
        return text + "."
    if loop.notes:
        error = loop.notes[-1]
        where = "" if error.line is None else " (line %d)" % error.line
        return "stays Python%s, because it cannot be a kernel%s: %s" % (
            " for some types" if compiled else "", where, error.cause if isinstance(error, KernelError) else error)
    return "a serial loop, the kernel %s with one work-item, %s%s." % (
        loop.name, times, "; of fewer than %d rounds it stays Python" % loops.FEW if loop.counted else "")
