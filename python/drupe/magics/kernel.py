"""%%kernel: a cell that defines kernels in Python, with what becomes of them beside it."""
import inspect
import textwrap

from drupe.magics import render
from drupe.magics.base import WIDTH, Magic, Option, Result, UsageError, body_code, one_line

_STAGES = ("names", "types", "tree", "text")


class Kernel(Magic):
    """Run the cell, and show each kernel in Python that it defines beside what became of it.

    A kernel is compiled for the types of its arguments: those of its last launch in the cell, or those that --args
    gives, a Range or NdRange first. --stage shows one pass of the compiler alone."""

    name = "kernel"
    options = (
        Option("-a", "--args", metavar="CODE", help="the arguments to compile for, as Python code"),
        Option("--stage", metavar="STAGE", choices=_STAGES, help="one of names, types, tree, text"),
    )
    examples = (
        ('%%kernel -a "drupe.Range(8), x"\n@drupe.kernel\ndef twice(item, x):\n    x[item.get_id(0)] *= 2',
         "the source, and the C that it becomes for this x"),
        ("%%kernel --stage types\n@drupe.kernel\ndef one(item, x):\n    x[item.get_id(0)] = 1\n"
         "drupe.call_kernel(one, drupe.Range(8), x)", "the types of its variables, as it was launched"),
    )

    def cell(self, options, body):
        if not body.strip():
            raise UsageError("%s: the cell has no code" % self.title)
        from drupe.compiler.launch import Kernel as PythonKernel

        names = self.shell.user_ns
        before = {name: value for name, value in names.items() if isinstance(value, PythonKernel)}
        code, last = body_code(self.shell, body, self.name)
        exec(code, names)
        if last is not None:
            value = eval(last, names)
            if value is not None and not options.quiet and not body.rstrip().endswith(";"):
                self.shell.displayhook(value)
        made = {name: value for name, value in list(names.items())
                if isinstance(value, PythonKernel) and before.get(name) is not value and not name.startswith("_")}
        if not made:
            raise UsageError("%s: the cell defines no kernel; write @drupe.kernel above a function" % self.title)
        arguments = self._arguments(options.args)
        return Kernels([self._inspected(name, one, arguments, options.stage) for name, one in made.items()])

    def _arguments(self, text):
        if text is None:
            return ()
        try:
            code = compile("(%s,)" % text, "<--args>", "eval")
        except SyntaxError as error:
            raise UsageError("%s: --args: %s" % (self.title, one_line(error))) from None
        return eval(code, self.shell.user_ns)

    def _inspected(self, name, kernel, arguments, stage):
        """(name, source, what inspect() gives or a sentence)."""
        try:
            source = textwrap.dedent(inspect.getsource(kernel.__wrapped__))
        except (OSError, TypeError):
            source = ""
        if not arguments and not kernel.variants:
            return name, source, "not compiled yet: launch it in the cell, or say for which arguments by --args"
        return name, source, kernel.inspect(*arguments, stage=stage)


class Kernels(Result):
    """The kernels of a cell: `inspections` by name."""

    def __init__(self, kernels):
        self._kernels = kernels
        self.inspections = {name: shown for name, _source, shown in kernels if type(shown) is not str}

    def text(self, columns=WIDTH):
        parts = []
        for name, _source, shown in self._kernels:
            sentence = type(shown) is str
            parts += textwrap.wrap("%s: %s" % (name, shown), columns) if sentence else [repr(shown)]
        return "\n".join(parts)

    def html(self):
        rows = []
        for name, source, shown in self._kernels:
            if hasattr(shown, "_repr_mimebundle_"):
                right = shown._repr_mimebundle_()["text/html"]
            else:
                said = "%s: %s" % (name, shown) if type(shown) is str else repr(shown)
                right = render.element("pre", render.escape(said), "margin:0")
            left = render.element("pre", render.escape(source), "margin:0")
            cells = [render.element("td", part, "vertical-align:top;text-align:left;padding:2px 10px")
                     for part in (left, right)]
            rows.append(render.element("tr", "".join(cells), ""))
        return render.element("table", "".join(rows), "border-collapse:collapse;font-size:13px;margin:0")

    def data(self):
        return {"kernels": [{"name": name, "source": source, "shown": shown if type(shown) is str else repr(shown)}
                            for name, source, shown in self._kernels]}
