"""The magics of Drupe by name. What stands behind a name is loaded when it is used, completed or inspected.

Kernels of Drupe register them at the start; other shells do with `%load_ext drupe`. base.py tells how to write one.
"""
import re
import sys

# The kinds of each magic and the class that it is. A "body" is a cell magic around the code of its cell, which then
# runs like any other cell: it may await, its last expression is shown, its lines keep their numbers.
NAMES = {
    "cl_kernel": ("cell", "opencl:ClKernel"),
    "dashboard": ("line", "dashboard:Dashboard"),
    "deverrors": ("line", "deverrors:DevErrors"),
    "device": ("line body", "device:Device"),
    "devices": ("line", "devices:Devices"),
    "devtime": ("line cell", "devtime:DevTime"),
    "events": ("line body", "events:Events"),
    "kernel": ("cell", "kernel:Kernel"),
    "memory": ("line", "memory:Memory"),
    "native": ("cell", "native:Native"),
    "offload": ("cell", "offload:Offload"),
    "opencl": ("cell", "opencl:OpenCL"),
    "queue": ("line", "queue:Queue"),
}

_FIRST_LINE = r"%%(\w+)(?:[ \t]+(.*))?\s*\Z"  # compiled when one is met: that takes half a millisecond of the start
_IMPORT = r"[ \t]*(?:import|from)[ \t]+(?:[\w.]+[ \t]*,[ \t]*)*(\w*)\Z"
_LINE = r"[ \t]*(?:[\w \t,]+=[ \t]*)?%%?(\w+)[ \t]"


class Lazy:
    """Stands in the shell's table for a magic that is not loaded. Completion and %lsmagic look at names only."""

    def __init__(self, shell, name):
        self._shell = shell
        self._name = name

    def _load(self):
        from drupe.magics import base

        return base.load(self._shell, self._name)

    def __call__(self, *args, **options):
        __tracebackhide__ = True
        return self._load()(*args, **options)

    def __getattr__(self, attribute):
        return getattr(self._load(), attribute)

    @property
    def __doc__(self):
        return self._load().__doc__


def register(shell):
    """Make the magics known to a shell, without loading any."""
    table = shell.magics_manager.magics
    if any(is_ours(one) for one in table["line"].values()):
        return
    for name, (kinds, _) in NAMES.items():
        lazy = Lazy(shell, name)
        for kind in kinds.replace("body", "cell").split():
            table[kind][name] = lazy
    table["line"]["config"] = _Config(shell, table["line"]["config"])
    shell.debugger = _debugger(shell)
    if "Drupe" in shell.config:
        shell.events.register("pre_execute", _settings_of(shell))
    shell.input_transformers_cleanup.append(_Bodies(shell))
    when_completing = getattr(shell, "when_completing", None)  # the kernel's makes its completer late
    if when_completing is None:
        _complete(shell)
    else:
        when_completing(_complete)


class _Config(Lazy):  # %config, which gets to know the settings of Drupe when it is first used
    __doc__ = Lazy.__dict__["__doc__"]

    def _load(self):
        from drupe.magics import settings

        table = self._shell.magics_manager.magics["line"]
        if table.get("config") is self:
            table["config"] = self._name
        settings.of(self._shell)
        self._shell.Completer  # which is listed once there is one
        return self._name


def _debugger(shell):
    """shell.debugger(), which %debug calls; it knows kernels in Python once one was launched."""
    usual = shell.debugger

    def debugger(force=False):
        __tracebackhide__ = True
        if not force or "drupe.compiler.guard" not in sys.modules:
            return usual(force=force)
        from drupe.magics import replay

        return replay.debug(usual)
    return debugger


def is_ours(magic):
    """Whether an entry of the shell's table is a magic of Drupe."""
    return type(magic).__module__.startswith("drupe.magics")


def help_html(shell, name):
    """The help of one of the magics as HTML; None when somebody else's has the name."""
    from drupe.magics import base, render

    magic = base.find(shell, name)
    return None if magic is None else render.help_html(magic)


def _settings_of(shell):
    def apply():
        """Before the first cell: what the configuration files say."""
        from drupe.magics import settings

        shell.events.unregister("pre_execute", apply)
        settings.of(shell)

    return apply


class _Bodies:
    """Turns the first line of a cell into a call, so that the rest is the code of the cell itself."""

    def __init__(self, shell):
        self._cells = shell.magics_manager.magics["cell"]

    def __call__(self, lines):
        first = re.match(_FIRST_LINE, lines[0]) if lines and lines[0].startswith("%%") else None
        if first is None or first[1] not in NAMES or not is_ours(self._cells.get(first[1])):
            return lines
        body = next((line for line in lines[1:] if line.strip()), "")
        helps = not body and {"-h", "--help"} & set((first[2] or "").split())  # IPython refuses cells without a body
        if not helps and (not body or body.startswith("%%") or "body" not in NAMES[first[1]][0]):
            return lines
        return [f"get_ipython().run_cell_magic({first[1]!r}, {(first[2] or '').rstrip()!r}, None)\n", *lines[1:]]


def _complete(shell):
    shell.Completer.custom_matchers.append(_matcher(shell))


def _matcher(shell):
    from IPython.core import completer

    def drupe_matcher(context):
        """Options and their values. Nothing is loaded for lines without a magic."""
        if not isinstance(context, str):
            line = context.line_with_cursor[:context.cursor_position]
        else:
            line = shell.Completer.text_until_cursor.rpartition("\n")[2]
        fragment, found = "", ()
        named = re.match(_LINE, line) if "%" in line else None
        if named and named[1] == "config":
            shell.find_line_magic("config").__doc__  # its matcher comes after this one
        elif named and named[1] in NAMES:
            from drupe.magics import complete

            fragment, found = complete.complete(shell, line)
        elif named is None and "m" in line:  # of import or from
            fragment, found = _answered(line)
        if isinstance(context, str):  # it replaces `context`, the last word of Python that the fragment ends with
            start = len(fragment) - len(context)
            return [text[start:] for text, _ in found if 0 <= start <= len(text)]
        return {"completions": [completer.SimpleCompletion(text, type=kind) for text, kind in found],
                "suppress": bool(found) and named is not None, "matched_fragment": fragment}

    decorate = getattr(completer, "completion_matcher", None)  # IPython 8.6 and later
    return drupe_matcher if decorate is None else decorate(api_version=2)(drupe_matcher)


def _answered(line):
    """The names that an import can have because Drupe answers it, where nothing of that name is installed."""
    from drupe import compat

    named = re.match(_IMPORT, line)
    if named is None or not compat.is_enabled():
        return "", ()
    return named[1], [(name, "module") for name in compat.names() if name.startswith(named[1])]
