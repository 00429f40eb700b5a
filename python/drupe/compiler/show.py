"""kernel.inspect(): what became of a function, for a notebook and for a terminal."""
import re

from drupe import _html
from drupe._units import size
from drupe.compiler import describe, types
from drupe.compiler.messages import KernelError

_TIERS = {"quick": "quick tier (libtcc)", "best": "C compiler", "driver": "the driver's compiler"}
_OURS = re.compile(r"\.(shape|stride)\d+$|\.(given|offset)$")
STAGES = ("names", "types", "tree", "text")
_CELL = "padding:1px 10px;text-align:left"
_NAME = _CELL + ";vertical-align:top;color:" + _html.GREY
_MONO = ("font-family:monospace;margin:2px 0 8px 0;padding:6px 8px;border:%s;overflow:auto;font-size:12px;"
         "line-height:1.35" % _html.LINE)


def inspect(kernel, args, stage):
    """What Kernel.inspect() gives."""
    if stage is not None and stage not in STAGES:
        raise ValueError("stage is one of %s, not %r" % (", ".join(map(repr, STAGES)), stage))
    variant = _variant(kernel, args)
    shown = Inspection(kernel, variant)
    return shown if stage is None else Stage(stage, shown.stage(stage))


def _variant(kernel, args):
    from drupe.compiler import launch

    if args:
        space, *rest = args
        names = launch._parameter_names(kernel, rest)
        found = [launch.type_of(value, name) for value, name in zip(rest, names)]
        queues = [queue for _kind, queue in found if queue is not None]
        if not queues:
            raise KernelError("DK007", "inspect() was given no array, so the device is not known.",
                              "inspect(drupe.Range(n), a, b, c): the arguments of a launch")
        return launch.variant_for(kernel, tuple(kind for kind, _queue in found), launch.space_of(space), queues[0])
    if not kernel.variants:
        raise KernelError("DK007", "%s() was not compiled yet: its arguments decide the types." % kernel.__name__,
                          "inspect(drupe.Range(n), a, b, c): the arguments of a launch")
    return list(kernel.variants.values())[-1]


class Inspection:
    """`arguments` and `variables`: {name: type}; `text`: the generated source; `tree`: the lowered tree as text;
    `local_memory` and `private_memory` in bytes."""

    def __init__(self, kernel, variant):
        self._kernel, self._variant = kernel, variant
        function = variant.function
        self.name, self.device, self.tier = kernel.__qualname__, variant.device, variant.tier
        self.text, self.tree = variant.text.text, describe.describe(function)
        self.arguments = _arguments(kernel, variant)
        self.variables = {name: kind for name, kind in function.locals.items() if not _is_ours(name)}
        memory = {"local": 0, "private": 0}
        for one in function.buffers:
            if isinstance(one.size, int):
                memory[one.space] += one.size * types.SIZES[one.type]
        self.local_memory, self.private_memory = memory["local"], memory["private"]
        self.constants = {name: value for _owner, name, value in function.watched if types.of_number(value)}

    def stage(self, stage):
        """One of the passes as text."""
        if stage == "names":
            rows = [("variable", name) for name in sorted(self.variables)]
            rows += [("constant", "%s = %r" % pair) for pair in sorted(self.constants.items())]
            return "\n".join("%-9s %s" % row for row in rows) + "\n"
        if stage == "types":
            return "".join("%s: %s\n" % pair for pair in (*self.arguments.items(), *self.variables.items()))
        return self.tree if stage == "tree" else self.text

    def facts(self):
        """(what, text) of the line above the source."""
        tier = _TIERS.get(self.tier, "")
        rows = [("device", "%s, %s" % (self.device.filter_string, tier)),
                ("arguments", ", ".join("%s: %s" % pair for pair in self.arguments.items())),
                ("variables", ", ".join("%s: %s" % pair for pair in self.variables.items()) or "none")]
        if self.constants:
            rows.append(("constants", ", ".join("%s = %r" % pair for pair in self.constants.items())))
        rows.append(("memory", "%s local, %s private arrays" % (size(self.local_memory), size(self.private_memory))))
        if self._variant.form == "range" and self._variant.local:
            rows.append(("work-group", " × ".join(map(str, self._variant.local)) + " work-items"))
        return rows

    def _body(self):
        """The kernel's own function in the generated source: what the user wrote."""
        begin = re.search(r"^.*\bvoid (py_)?%s\(" % re.escape(self._kernel.__name__), self.text, re.MULTILINE)
        end = self.text.find("\n}\n", begin.start()) if begin else -1
        return self.text if end < 0 else self.text[begin.start():end + 3]

    def __repr__(self):
        lines = ["%s" % self.name] + ["  %-10s %s" % row for row in self.facts()]
        return "\n".join(lines) + "\n\n" + self._body()

    def _repr_mimebundle_(self, include=None, exclude=None):
        rows = "".join(_html.element("tr", _html.element("td", _html.escape(what), _NAME) +
                                     _html.element("td", _html.escape(text), _CELL), _html.PLAIN)
                       for what, text in self.facts())
        markup = (_html.element("b", _html.escape(self.name)) +
                  _html.element("table", rows, "border-collapse:collapse;font-size:13px;margin:2px 0") +
                  source_html(self._body()))
        head = "\n".join(["%s" % self.name] + ["  %-10s %s" % row for row in self.facts()])
        return {"text/plain": head + "\n\n" + source_ansi(self._body()), "text/html": markup}


class Stage(str):
    """What one pass gave, as text that prints itself."""

    def __new__(cls, stage, text):
        self = super().__new__(cls, text)
        self.stage = stage
        return self

    def __repr__(self):
        return str(self)


def _is_ours(name):
    """A variable that the compiler made."""
    return name.startswith((".", "drupe_")) or ".." in name or bool(_OURS.search(name))


def _arguments(kernel, variant):
    names = kernel.py_func.__code__.co_varnames[:kernel.py_func.__code__.co_argcount]
    kinds = variant.kinds
    return {name: str(kind) for name, kind in zip(names[len(names) - len(kinds):], kinds)}


def _style():
    """Colours that read on light and dark ground; None where Pygments is absent."""
    try:
        from pygments import style, token
    except ImportError:
        return None
    colours = {token.Keyword: "bold #3f8ae0", token.Number: _html.GOOD, token.String: _html.GOOD,
               token.Comment: _html.GREY, token.Comment.Preproc: "noitalic " + _html.GREY, token.Name.Function: "bold",
               token.Name.Builtin: "#3f8ae0"}
    return type("Style", (style.Style,), {"styles": colours})


def _highlighted(text, formatter, language):
    """The source in colours; None where Pygments is absent."""
    try:
        import pygments
        from pygments import formatters, lexers
    except ImportError:
        return None
    name, options = formatter
    return pygments.highlight(text, lexers.get_lexer_by_name(language), getattr(formatters, name)(**options))


def source_html(text, language="c"):
    """A source text in colours, for notebooks."""
    inside = _highlighted(text, ("HtmlFormatter", {"nowrap": True, "noclasses": True, "style": _style()}), language)
    return _html.element("pre", _html.Html(inside) if inside else _html.escape(text), _MONO)


def source_ansi(text, language="c"):
    """A source text in colours, for terminals."""
    return _highlighted(text, ("TerminalFormatter", {}), language) or text
