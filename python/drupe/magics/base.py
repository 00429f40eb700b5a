"""How a magic is written: derive from Magic, declare its options, return what is to be shown.

    class Hello(Magic):
        \"""Greet somebody.

        More about it.\"""

        name = "hello"
        options = (Option("who", nargs="?", help="whom", complete="device"),
                   Option("-n", "--number", type=int, default=1, metavar="N", help="how often"))
        examples = (("%hello", "greets the device in use"), ("%hello -n 2 gpu", "greets a GPU twice"))

        def line(self, options):
            return Greeting(options.who, options.number)        # a Result: shown, or bound with -o, or printed as JSON

and add a line to drupe.magics.NAMES. Bad input raises UsageError, which is shown as one line. `-h`, `-o NAME`, `-q` and
`--json` come by themselves, so does completion: of options, of `choices`, and of values whose option has `complete`:
"device", "file", "folder", "name" (of a variable), or a function of (magic, the word's beginning) that gives words.

A cell magic has `cell(options, body)`; one around Python code has `around(options)`, a context manager that is entered
before the cell's code and left when it has ended, in whatever way (its kind in NAMES is "body"). `self.show(result,
options)` shows a result there.
"""
import argparse
import ast
import contextlib
import difflib
import importlib
import inspect
import io
import json
import linecache
import re
import shlex
import sys
import textwrap
import threading

from IPython.core.error import UsageError
from IPython.display import display
from IPython.utils.text import DollarFormatter

from drupe import magics

WIDTH = 80  # of text, in characters, unless settings say otherwise
_width = [WIDTH]
_LINE = object()
_PARTS = re.compile(r"\{([\d+]+|numa|L[1-4]_cache)\}")


def columns(number=None):
    """How wide texts are, in characters: %config Drupe.columns. A number sets it."""
    if number is not None:
        _width[:] = [number]
    return _width[0]


class Option:
    """What argparse's add_argument() takes, and `complete`: what values there are."""

    def __init__(self, *names, complete=None, **settings):
        self.names = names
        self.complete = complete
        self.settings = settings
        self.help = settings.get("help", "")
        self.positional = not names[0].startswith("-")
        self.takes_value = self.positional or settings.get("action", "store") in ("store", "append", "extend")
        self.metavar = settings.get("metavar") or names[-1].lstrip("-").upper()
        self.choices = settings.get("choices")

    @property
    def title(self):
        if self.positional:
            return self.metavar
        return ", ".join(self.names) + (" " + self.metavar if self.takes_value else "")

    @property
    def usage(self):
        if not self.positional:
            return "[%s]" % (self.names[0] + (" " + self.metavar if self.takes_value else ""))
        count = self.settings.get("nargs")
        return {None: "%s", "?": "[%s]", "*": "[%s ...]", "+": "%s ..."}[count] % self.metavar


def variable_name(text):
    """The type of options that name a variable."""
    if not text.isidentifier():
        raise argparse.ArgumentTypeError("%r is no name for a variable" % text)
    return text


HELP = Option("-h", "--help", action="store_true", help="show this")
COMMON = (
    Option("-o", "--output", metavar="NAME", type=variable_name, complete="name", help="bind the result to a variable"),
    Option("-q", "--quiet", action="store_true", help="show nothing"),
    Option("--json", action="store_true", help="print the result as JSON"),
    HELP,
)


class Result:
    """What a magic shows: the same as text, as HTML and as plain data."""

    def text(self, columns=WIDTH):
        raise NotImplementedError

    def html(self):
        """HTML that sanitizers leave as it is; None: the text stands for it."""
        return None

    def data(self):
        """What --json prints: dicts, lists, text and numbers."""
        raise NotImplementedError

    def __repr__(self):
        return self.text(columns())

    def _repr_html_(self):
        return self.html()


class Help(Result):
    """The help of a magic."""

    def __init__(self, magic):
        self._magic = magic

    def text(self, columns=WIDTH):
        return self._magic.help_text(columns)

    def html(self):
        from drupe.magics import render

        return render.help_html(self._magic)


class _Parser(argparse.ArgumentParser):
    """Of one magic; complains in one line."""

    def __init__(self, magic):
        super().__init__(prog=magic.title, add_help=False, allow_abbrev=False)
        self._magic = magic

    def error(self, message):
        raise UsageError("%s: %s (%s -h explains it)" % (self.prog, one_line(message), self.prog))


class Magic:
    """A magic of a shell; see the top of the file."""

    name = ""
    options = ()
    examples = ()  # (what is typed, what it does)
    common = COMMON
    tail = None  # an Option for the rest of the line behind the options, as it is typed: options.rest
    _ipython_magic_no_var_expand = True  # IPython would take the 2 in host:cpu:0{2}.1 for an expression

    def __init__(self, shell):
        self.shell = shell
        kinds = magics.NAMES[self.name][0]
        self.around_code = "body" in kinds
        self.titles = [sign + self.name for sign, kind in (("%", "line"), ("%%", "cell"), ("%%", "body"))
                       if kind in kinds.split()]
        self.title = self.titles[0]
        taken = {name for option in self.options for name in option.names}
        self.all_options = [*self.options, *filter(None, (_left(option, taken) for option in self.common))]
        self.parser = None
        self.__doc__ = self.help_text()
        self.__wrapped__ = type(self)  # for ??

    # --- what a magic defines ---

    def line(self, options):
        """The Result of the line magic, or None."""
        raise UsageError("%s is a cell magic: it is the first line of a cell" % self.title)

    def cell(self, options, body):
        """The Result of the cell magic, or None; around code the value of its last expression."""
        with self.around(options):
            return run_body(self.shell, body)

    def around(self, options):
        """A context manager for the code of a cell."""
        raise UsageError("%s is no cell magic" % self.title)

    # --- what happens when it is used ---

    def __call__(self, line, cell=_LINE):
        """`cell` is None where the code of the cell follows."""
        __tracebackhide__ = True
        try:
            return self._run(line, cell)
        except BaseException as error:
            traceback = _foreign(error.__traceback__)
            ours = type(error).__module__ == "drupe" or isinstance(error, KeyboardInterrupt)
            if traceback is None and ours:  # our frames say nothing
                lines = ["\x1b[31m%s\x1b[39m: %s" % (type(error).__name__, error)]
                error._render_traceback_ = getattr(error, "_render_traceback_", lambda: lines)
            raise error.with_traceback(traceback)

    def _run(self, line, cell):
        options = self.parse(line)
        if options.help:
            self.show(Help(self))
        elif cell is _LINE:
            self._answer(self.line, options)
        elif cell is None:
            _show_as_typed(self.shell, "%%%%%s %s" % (self.name, line))
            _enter(self.shell, self.around(options))
        elif self.around_code:
            return self.cell(options, cell)
        else:
            self._answer(self.cell, options, cell)
        return None

    def _answer(self, call, options, *more):
        with _silence() if getattr(options, "quiet", False) else contextlib.nullcontext():
            self.show(call(options, *more), options)

    def show(self, result, options=None):
        """Show a result in the way that was asked for. Nothing happens for None."""
        if result is None:
            return
        if options is not None and getattr(options, "output", None):
            self.shell.user_ns[options.output] = result
        if options is not None and getattr(options, "json", False):
            print(json.dumps(result.data(), ensure_ascii=False))
        elif options is None or not getattr(options, "quiet", False):
            display(result)

    # --- arguments ---

    def parse(self, line):
        """The namespace of the options in a line. UsageError for what is not understood."""
        if self.parser is None:
            self.parser = self._make_parser()
        if self.tail is None:
            words, rest = _split(self._expanded(line), self.title), ""
        else:
            words, rest = self._leading(line)
        if any(word in HELP.names for word in words):
            return argparse.Namespace(help=True)
        options, unknown = self.parser.parse_known_args(self._joined(words))
        if unknown:
            self.parser.error(self._unknown(unknown[0]))
        options.rest = rest
        return options

    def _expanded(self, line):
        """The line with the values of $name and {expression}, as in IPython's magics; {2} and {2+1} are parts of a
        device."""
        if "$" not in line and "{" not in line:
            return line
        try:
            return DollarFormatter().vformat(_PARTS.sub(r"{{\1}}", line), (), dict(self.shell.user_ns))
        except Exception:
            return line

    def _joined(self, words):
        """The words with options and their values in one, since argparse takes no value that begins with -."""
        result, left = [], list(words)
        while left:
            word = left.pop(0)
            option = self.find_option(word) if word.startswith("-") else None
            if option is not None and option.takes_value and word in option.names and left:
                word = option.names[-1] + "=" + left.pop(0)
            result.append(word)
        return result

    def _make_parser(self):
        parser = _Parser(self)
        for option in self.all_options:
            settings = {**option.settings, "help": None}
            parser.add_argument(*option.names, **settings)
        return parser

    def _unknown(self, word):
        known = [name for option in self.all_options if not option.positional for name in option.names]
        close = difflib.get_close_matches(word.partition("=")[0], known, 1) if word.startswith("-") else []
        return "%s is not understood%s" % (word, "; did you mean %s?" % close[0] if close else "")

    def find_option(self, word):
        """The option that a word of a line names, or None."""
        for option in self.all_options:
            for name in () if option.positional else option.names:
                short = len(name) == 2 and option.takes_value and word.startswith(name)
                if word == name or word.startswith(name + "=") or short:
                    return option
        return None

    def _leading(self, line):
        """The words that are options at the line's beginning, and the rest."""
        words, rest = [], line.lstrip()
        while rest.startswith("-"):
            word = rest.split(None, 1)[0]
            option = self.find_option(word)
            if word == "--":
                return words, rest[2:].lstrip()
            if option is None:
                if _looks_like_option(word):
                    self.parser.error(self._unknown(word))
                break
            count = 2 if option.takes_value and word in option.names else 1
            more, rest = _cut(rest, count, self.title)
            words += more
        return words, rest

    # --- help ---

    @property
    def summary(self):
        """The first line of its description, and the rest."""
        first, _, more = inspect.cleandoc(type(self).__doc__ or "").partition("\n")
        return first, more.strip()

    @property
    def usages(self):
        ends = [option.usage for option in self.all_options if option is not HELP]
        ends += [self.tail.usage] if self.tail else []
        return [" ".join([title, *ends]) for title in self.titles]

    def help_text(self, columns=WIDTH):
        lines = [line for usage in self.usages for line in
                 textwrap.wrap(usage, columns, subsequent_indent="    ", break_on_hyphens=False)]
        first, more = self.summary
        lines += ["", *textwrap.wrap(first, columns)]
        for paragraph in more.split("\n\n") if more else ():
            lines += ["", *_wrapped(paragraph, columns)]
        shown = [option for option in (*self.all_options, *([self.tail] if self.tail else ()))]
        width = max(len(option.title) for option in shown) + 4
        lines.append("")
        for option in shown:
            head = "  " + option.title.ljust(width - 2)
            lines += textwrap.wrap(option.help, columns, initial_indent=head, subsequent_indent=" " * width)
        lines += ["", "Examples:"]
        for typed, meaning in self.examples:
            lines += ["", *("    " + line for line in typed.splitlines())]
            lines += textwrap.wrap(meaning, columns, initial_indent=" " * 8, subsequent_indent=" " * 8)
        return "\n".join(lines)


def _wrapped(paragraph, columns):
    """The lines of a paragraph; one whose lines are indented stays as it is."""
    lines = paragraph.splitlines()
    return lines if any(line.startswith(" ") for line in lines) else textwrap.wrap(paragraph, columns)


def _foreign(traceback):
    """A traceback from the first frame on that is not of these magics, nor of who interrupts them; or None."""
    first = traceback
    while first is not None and first.tb_frame.f_globals.get("__name__", "").startswith(
            ("drupe.magics.", "drupe.jupyter.interrupt")):
        first = first.tb_next
    return first


def _left(option, taken):
    """An option that all magics have, without the names that this one uses for something else."""
    names = [name for name in option.names if name not in taken]
    return Option(*names, complete=option.complete, **option.settings) if len(names) < len(option.names) and names \
        else option if names else None


def _looks_like_option(word):
    return word.startswith("--") or (len(word) > 1 and word[1].isalpha())


def one_line(text):
    """A message in one line."""
    return " ".join(str(text).split())


# --- Words of a line ---------------------------------------------------------------------------------------

def _lexer(text):
    lexer = shlex.shlex(io.StringIO(text), posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    return lexer


def _split(line, title):
    try:
        return list(_lexer(line))
    except ValueError as error:
        raise UsageError("%s: %s" % (title, str(error).lower())) from None


def _cut(text, count, title):
    """The first `count` words of a text, and what follows."""
    lexer = _lexer(text)
    try:
        words = [word for word in (lexer.get_token() for _ in range(count)) if word is not None]
    except ValueError as error:
        raise UsageError("%s: %s" % (title, str(error).lower())) from None
    return words, text[lexer.instream.tell():].lstrip()


@contextlib.contextmanager
def _silence():
    """Builds that take long show nothing while this lasts."""
    from drupe import _engine

    before = _engine._quiet(True)
    try:
        yield
    finally:
        _engine._quiet(before)


# --- Python code in a cell magic ---------------------------------------------------------------------------

def run_body(shell, body):
    """Run the code of a cell inside a cell magic; the value of its last expression, or None."""
    tree = ast.parse(shell.transform_cell(body), "<cell>")
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    name = shell.compile.cache(body)
    exec(compile(tree, name, "exec"), shell.user_ns)
    value = None if last is None else eval(compile(last, name, "eval"), shell.user_ns)
    return None if body.rstrip().endswith(";") else value


def body_code(shell, body, name):
    """The code of a body, and that of its last expression or None, at the lines of the running cell of %%name."""
    raw = running_code(shell) or body
    shown = raw.replace("%%" + name, "# %%" + name, 1)  # tracebacks show what parses
    place = shell.compile.cache(shown, shell.execution_count, raw_code=raw)
    tree = ast.parse("\n" * first_line(shell, name) + shell.transform_cell(body), place)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    return compile(tree, place, "exec"), None if last is None else compile(last, place, "eval")


_open = {}  # by thread whose cell stands in a cell magic: [context manager, cells that run inside of it]
_hooked = None  # the shell that tells of its cells


def _enter(shell, manager):
    """Enter a context that lasts to the end of the cell which this thread runs."""
    global _hooked
    if _hooked is not shell:
        shell.events.register("pre_execute", _inner_begins)
        shell.events.register("post_execute", _cell_ended)
        _hooked = shell
    _leave()
    manager.__enter__()
    _open[threading.get_ident()] = [manager, 0]


def _inner_begins():
    entry = _open.get(threading.get_ident())
    if entry is not None:
        entry[1] += 1


def _cell_ended():
    entry = _open.get(threading.get_ident())
    if entry is not None and entry[1] > 0:
        entry[1] -= 1
    else:
        _leave()


def _leave():
    entry = _open.pop(threading.get_ident(), None)
    if entry is not None:
        entry[0].__exit__(None, None, None)


def _show_as_typed(shell, text):
    """Tracebacks of the cell that calls this are to show its first line as it was typed, not the call that it
    became."""
    frame = sys._getframe()
    while frame is not None and frame.f_globals is not shell.user_ns:
        frame = frame.f_back
    lines = [] if frame is None else linecache.getlines(frame.f_code.co_filename)
    if frame is not None and "run_cell_magic" in "".join(lines[frame.f_lineno - 1:frame.f_lineno]):
        lines[frame.f_lineno - 1] = text.rstrip() + "\n"


def running_code(shell):
    """The text of the running cell, as it was typed."""
    cell = sys.modules.get("drupe.jupyter.cell")
    running = cell.current() if cell is not None else None
    return running.code if running is not None else (shell.history_manager.input_hist_raw or [""])[-1]


def first_line(shell, name):
    """How many lines of the running cell stand before the body of a cell magic: its own, and those above."""
    for number, line in enumerate(running_code(shell).splitlines()):
        if line.lstrip().startswith("%%" + name):
            return number + 1
    return 1


# --- Loading -----------------------------------------------------------------------------------------------

def load(shell, name):
    """The magic of this name, which from now on stands in the shell's table itself."""
    kinds, place = magics.NAMES[name]
    module, _, attribute = place.partition(":")
    magic = getattr(importlib.import_module("drupe.magics." + module), attribute)(shell)
    table = shell.magics_manager.magics
    for kind in kinds.replace("body", "cell").split():
        if isinstance(table[kind].get(name), magics.Lazy):
            table[kind][name] = magic
    return magic


def find(shell, name):
    """The magic of this name, loaded, or None when it is none of ours."""
    for kind in ("line", "cell"):
        found = shell.magics_manager.magics[kind].get(name)
        if isinstance(found, magics.Lazy):
            return load(shell, name)
        if isinstance(found, Magic):
            return found
    return None
