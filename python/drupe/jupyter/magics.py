"""Magics that need a front-end where a terminal has an editor, a pager and a screen."""
import linecache
import os
import shlex
import subprocess
import sys

from IPython.core import page
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class


@magics_class
class KernelMagics(Magics):
    """%edit, %clear, %less, %more, %man, %connect_info, %subshell, %qtconsole, %autosave; %autoawait with a check."""

    _last_edit = None  # the argument of the last %edit

    @line_magic
    def edit(self, line=""):
        """Have the front-end open a file, or the source of an object or of input cells, in its editor.

        %edit FILE        the file
        %edit -n 12 FILE  at a line
        %edit NAME        the file in which NAME is defined
        %edit 3-5         input cells, in a temporary file (-r: as typed)
        %edit -p          what was edited last
        """
        from IPython.core.macro import Macro
        from IPython.core.magics.code import CodeMagics, InteractivelyDefined, MacroToEdit

        options, argument = self.parse_options(line, "prxn:")
        if "p" in options:
            if self._last_edit is None:
                raise UsageError("%edit -p: nothing was edited before")
            argument = self._last_edit
            options.pop("p")
        self._last_edit = argument
        if isinstance(self.shell.user_ns.get(argument), Macro):
            raise UsageError("%%edit cannot take a macro back: change %s with %%macro" % argument)
        find = CodeMagics._find_edit_target
        try:
            target = find(self.shell, argument, options, ["", ""])
        except InteractivelyDefined as cell:
            target = find(self.shell, str(cell.index), options, ["", ""])
        except MacroToEdit:
            raise UsageError("%edit cannot take a macro back: change it with %macro") from None
        if target is None or target[0] is None:
            return
        filename, number = target[:2]
        source = [] if os.path.exists(filename) else linecache.getlines(filename)
        if source:  # the name of a cell: no such file need exist
            filename = self.shell.mktempfile("".join(source))
        payload = {"source": "edit_magic", "filename": os.path.abspath(filename), "line_number": int(number or 0)}
        self.shell.payload_manager.write_payload(payload)

    ed = line_magic("ed")(edit)

    @line_magic
    def clear(self, line=""):
        """Clear the output of the cell."""
        self.shell.display_pub.clear_output(wait=False)

    @line_magic
    def less(self, line=""):
        """Show a file in the pager; Python files in colour."""
        name = os.path.expanduser(line.strip().strip("\"'"))
        if not name:
            raise UsageError("%less needs the name of a file")
        try:
            with open(name, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError as error:
            raise UsageError("cannot read %s: %s" % (name, error.strerror)) from None
        page.page(self.shell.pycolorize(text) if name.endswith(".py") else text)

    more = line_magic("more")(less)

    @line_magic
    def man(self, line=""):
        """Show a manual page in the pager."""
        try:
            command = ["man", *shlex.split(line)]
        except ValueError as error:
            raise UsageError("%%man: %s" % error) from None
        if len(command) < 2:
            raise UsageError("%man needs the name of a manual page")
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                                  check=False, env={**os.environ, "MANPAGER": "cat", "PAGER": "cat", "TERM": "dumb"})
        except OSError:
            raise UsageError("the program man is not installed") from None
        if done.returncode:
            raise UsageError(done.stderr.strip() or "no manual page for %s" % line)
        page.page(_without_overstrikes(done.stdout))

    @line_magic
    def connect_info(self, line=""):
        """How to connect other clients to this kernel; prints the connection file with its key."""
        path = os.path.abspath(self.shell.kernel.connection_file)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise UsageError("cannot read the connection file %s: %s" % (path, error.strerror)) from None
        print("%s\n\nOn this machine, connect with\n    jupyter console --existing %s\n"
              "Elsewhere, put the text above into a file and name that. Whoever has the key can run code here."
              % (text.rstrip(), shlex.quote(path)))

    @line_magic
    def subshell(self, line=""):
        """Tell which shell, of which thread, runs this cell."""
        from . import subshells

        print(subshells.describe())

    @line_magic
    def autoawait(self, line=""):
        """Whether cells may await at their top level, and what runs their coroutines.

        %autoawait           tell it
        %autoawait True      they may (also: on, 1); False, off, 0: they may not
        %autoawait asyncio   the kernel's loop runs them; trio, curio: one of these does
        %autoawait NAME      the function NAME of the notebook runs a coroutine and gives its result
        """
        from IPython.core.magics.basic import AsyncMagics

        from . import loops

        loops.check(line.strip())
        AsyncMagics(self.shell).autoawait(line)

    @line_magic
    def qtconsole(self, line=""):
        """Open a Qt console on this kernel."""
        start_qtconsole(os.path.abspath(self.shell.kernel.connection_file), shlex.split(line))

    @line_magic
    def autosave(self, line=""):
        """Explain where the saving interval is set: notebooks are saved by the front-end, and none of today's lets a
        kernel change when."""
        try:
            int(line)
        except ValueError:
            raise UsageError("%%autosave takes a number of seconds, not %r" % line) from None
        print("The front-end saves notebooks by its own settings; in JupyterLab: Settings > Document Manager.")


def start_qtconsole(connection_file, arguments):
    """Start qtconsole on a connection file. The process."""
    from importlib.util import find_spec

    if find_spec("qtconsole") is None:
        raise UsageError("qtconsole is not installed: pip install qtconsole, or use jupyter console --existing %s"
                         % connection_file)
    command = [sys.executable, "-m", "qtconsole", "--existing", connection_file, *arguments]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            start_new_session=True)


def _without_overstrikes(text):
    """Bold and underlined characters as plain ones: `x BACKSPACE x` and `_ BACKSPACE x`."""
    result = []
    for character in text:
        if character != "\b":
            result.append(character)
        elif result:
            result.pop()
    return "".join(result)
