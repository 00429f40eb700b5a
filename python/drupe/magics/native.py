"""%%native: compile a cell of C, C++ or Fortran; its functions become functions of the notebook, which are queued."""
import argparse
import os
import re
import time

from drupe.magics import diagnose, render
from drupe.magics.base import WIDTH, Magic, Option, Result, UsageError, first_line, one_line, variable_name

_LANGUAGES = {"c": "c", "c++": "c++", "cpp": "c++", "cxx": "c++", "fortran": "fortran", "f90": "fortran"}


def _define(text):
    if not re.match(r"[A-Za-z_]\w*(\([^)\s]*\))?(=\S*)?\Z", text):
        raise argparse.ArgumentTypeError("%r is neither NAME nor NAME=VALUE without blanks; write #define in the cell"
                                         % text)
    return text


class Native(Magic):
    """Compile the cell as C, C++ or Fortran, and bind each function to a variable of its name.

    Nothing is called: function(*arguments) queues a call on the queue of its arrays, and gives an Event. What the
    definition says of its parameters is checked before each call; numbers go by value. Functions in C++ need
    extern "C". Of Fortran subroutines are bound; their parameters go by address, or by value where they say `value`.
    Errors and warnings are shown at the cell's own lines."""

    name = "native"
    options = (
        Option("-x", "--language", metavar="LANG", default="c", choices=sorted(_LANGUAGES), help="c, c++ or fortran"),
        Option("-d", "--device", metavar="SEL", complete="device", help="the device for calls without arrays"),
        Option("-n", "--name", metavar="NAME", type=variable_name, complete="name",
               help="bind the Library to a variable"),
        Option("-O", "--options", metavar="OPTS", action="append", default=[], help="options for the compiler"),
        Option("-D", "--define", metavar="K=V", action="append", default=[], type=_define, help="define a macro"),
        Option("-I", "--include", metavar="DIR", action="append", default=[], complete="folder",
               help="look for included files there"),
        Option("-l", "--library", metavar="LIB", action="append", default=[], help="link a library, such as openblas"),
        Option("--save", metavar="FILE", complete="file", help="keep the library, for drupe.native.load()"),
        Option("--check", action="store_true", help="only look for mistakes: bind nothing"),
    )
    examples = (
        ("%%native\nvoid twice(long n, double *x) { for (long i = 0; i < n; i++) x[i] *= 2; }",
         "afterwards twice(x.size, x) queues it"),
        ("%%native -n lib -O -fopenmp -l openblas\n#include <cblas.h>\n"
         "void scale(int n, double a, double *x) { cblas_dscal(n, a, x, 1); }",
         "with OpenMP and a library; lib is the drupe.native.Library"),
    )

    def cell(self, options, body):
        if not body.strip():
            raise UsageError("%s: the cell has no code" % self.title)
        language = _LANGUAGES[options.language]
        source = "\n" * first_line(self.shell, self.name) + body
        began = time.perf_counter()
        path, log = self._build(source, language, options)
        built = Built(language, source, time.perf_counter() - began, log)
        if not options.check:
            self._bind(built, path, options)
        return built

    def _build(self, source, language, options):
        import shlex

        import drupe
        from drupe.native import _compile

        words = [word for one in options.options for word in shlex.split(one)]
        words += ["-D" + one for one in options.define] + ["-I" + os.path.abspath(one) for one in options.include]
        try:
            return _compile.build(source, language, options=words, libraries=options.library,
                                  target=options.save and os.path.abspath(os.path.expanduser(options.save)))
        except drupe.BuildError as error:
            error.device = "the host"
            raise diagnose.marked(error, source, self.shell) from None
        except RuntimeError as error:
            raise UsageError("%s: %s" % (self.title, one_line(error))) from None

    def _bind(self, built, path, options):
        import drupe
        from drupe import native
        from drupe.native import _compile

        try:
            library = native.load(path, options.device)
        except (drupe.DeviceError, OSError) as error:
            raise UsageError("%s: %s" % (self.title, one_line(error))) from None
        built.library = library
        built.functions, built.left = _compile.bind(library, built.source, built.language)
        self.shell.user_ns.update(built.functions)
        if options.name:
            self.shell.user_ns[options.name] = library


class Built(Result):
    """What %%native built: `library`, `functions` by name, `seconds`, and the compiler's warnings in `diagnostics`."""

    library = None

    def __init__(self, language, source, seconds, log):
        self.language = language
        self.source = source
        self.seconds = seconds
        self.functions = {}
        self.left = {}  # why functions are not bound
        self.diagnostics = diagnose.read(log, source)

    @property
    def _head(self):
        head = "%s in %s, built in %s" % (render.count(len(self.functions), "function"), self.language.capitalize(),
                                          render.seconds(self.seconds))
        if self.library is not None and not self.functions and not self.left:
            head += '; in C++ write extern "C" before functions' if self.language == "c++" else ""
        return head

    @property
    def _signatures(self):
        return ["%s(%s)" % (name, "by address" if one.arguments is None else ", ".join(one.arguments))
                for name, one in self.functions.items()] + [
                    "%s is not bound: %s" % one for one in self.left.items()]

    def text(self, columns=WIDTH):
        return "\n".join([self._head, *("  " + one for one in self._signatures),
                          *(one.text(False) for one in self.diagnostics)])

    def html(self):
        parts = [render.element("div", render.escape(self._head), "padding:2px 0")]
        parts += [render.element("div", render.element("code", render.escape(one)), "padding:1px 12px")
                  for one in self._signatures]
        return render.element("div", "".join(parts + [one.html() for one in self.diagnostics]), "font-size:13px")

    def data(self):
        return {"language": self.language, "seconds": self.seconds,
                "functions": [{"name": name, "arguments": one.arguments} for name, one in self.functions.items()],
                "not_bound": self.left,
                "warnings": [one.data() for one in self.diagnostics]}
