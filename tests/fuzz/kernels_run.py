"""What a program does: as plain Python over NumPy's arrays, and compiled."""
import linecache
import textwrap
import warnings

import numpy as np

import drupe
import drupe.array as da
from drupe import _engine, kernel_api
from drupe.compiler import build, launch

from kernels_program import ITEMS

# What Python's numbers raise and those of kernels do not: nothing is compared then.
ARITHMETIC = (ArithmeticError, ValueError)
_made = 0


def defined(text, name=None):
    """The names that a text defines; the source of its functions is known."""
    global _made
    _made += 1
    filename = "<%s %d>" % (name or "program", _made % 64)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    names = {"__name__": "fuzz"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the text looks like is nobody's fault
        exec(compile(text, filename, "exec"), names)
    return names


def calls_of(names, calls):
    """For each call, such as "f(i, x, w[0, i])", a function that gives its arguments for a work-item."""
    return [eval("lambda i: (%s,)" % call.partition("(")[2].rpartition(")")[0], names) for call in calls]


def in_python(functions, calls, items=ITEMS):
    """Run the functions for each work-item; gives {number of the function: set of work-items where Python raised}."""
    failed = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for at, (function, call) in enumerate(zip(functions, calls)):
            for i in range(items):
                try:
                    function(*call(i))
                except ARITHMETIC:
                    failed.setdefault(at, set()).add(i)
    return failed


def _unknown(*_args):
    raise AssertionError("the launcher does not know the arguments that it was told of")


class Target:
    """A device, and the tier of its compiler: "quick" or "best" on host, and "driver"."""

    def __init__(self, device="host", tier="best"):
        self.queue = drupe.Queue(device)
        self.host = self.queue.device.backend.name == "host"
        self.tier = tier if self.host else "driver"

    def __str__(self):
        return "%s (%s)" % (self.queue.device.filter_string, self.tier)

    def run(self, function, arguments, items=ITEMS, group=None):
        """Launch a function over so many work-items; gives what arrays hold then. Raises what the compiler raises."""
        given = tuple(self.on_device(one) for one in arguments)
        kernel = launch.Kernel(function)
        kernel._launcher = _engine._Launcher(kernel, _unknown)
        kinds = tuple(launch.type_of(one, "#")[0] for one in given)
        variant = build.compile(kernel, kinds, 1, group is not None, self.queue.device)
        self.build(kernel, variant)
        space = drupe.Range(items) if group is None else drupe.NdRange(items, group)
        launch._add(kernel, variant, space, given)
        kernel._launcher(space, None, given).wait()
        return [one.asnumpy() if isinstance(one, da.Array) else one for one in given]

    def build(self, kernel, variant):
        if not self.host:
            return build.make(kernel, variant, self.queue, 0)
        options = "-drupe-table" + (" -drupe-quick" if self.tier == "quick" else "")
        program = drupe.Program(variant.text.text, queue=self.queue, language="c", options=options)
        variant.program, variant.kernel = program, program[variant.text.name]

    def on_device(self, value):
        if not isinstance(value, np.ndarray):
            return value
        if value.flags.c_contiguous:
            return da.asarray(value.copy(), queue=self.queue)
        if value.flags.f_contiguous:
            return da.asarray(value.T.copy(), queue=self.queue).T
        wide = np.zeros((value.shape[0], 2 * value.shape[1]), value.dtype)
        wide[:, ::2] = value
        return da.asarray(wide, queue=self.queue)[:, ::2]


# --- Comparing ---------------------------------------------------------------------------------------------

def same(got, expected, ulps=0):
    """Where the bits of two arrays agree, NaN with NaN; with `ulps`, where floats are near each other."""
    if expected.dtype.kind == "c":
        return same(got.real, expected.real, ulps) & same(got.imag, expected.imag, ulps)
    if expected.dtype.kind != "f":
        return got == expected
    whole = "i%d" % expected.dtype.itemsize
    good = got.copy().view(whole) == expected.copy().view(whole)
    good |= np.isnan(got) & np.isnan(expected)
    if ulps:
        with np.errstate(all="ignore"):
            good |= np.abs(got - expected) <= ulps * np.spacing(np.abs(expected))
            good |= got == expected
    return good


def simulated(kernel, arguments, group, items=ITEMS):
    """Run a kernel of work-groups as plain Python; whether Python raised what kernels do not."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            kernel_api.call_kernel(kernel, drupe.NdRange(items, group), *arguments)
        except ARITHMETIC:
            return True
    return False


def check(target, text, call, *, group=None, **arguments):
    """Compile functions and call one for each work-item; the arrays must hold then what plain Python writes. `group`:
    work-items of a group, if it is a kernel of groups."""
    kernel = "def k(item, %s):\n    i = item.get_%sid(0)\n    %s\n" % (", ".join(arguments), "global_" if group else "",
                                                                    call)
    head = "import collections\nimport math\nimport numpy as np\nfrom drupe import kernel_api as kapi\n"
    names = defined("%s%s\n%s" % (head, textwrap.dedent(text), kernel))
    mine = {name: one.copy() if isinstance(one, np.ndarray) else one for name, one in arguments.items()}
    if group:
        failed = simulated(names["k"], mine.values(), group)
    else:
        failed = in_python([names[call.partition("(")[0]]], calls_of({**names, **mine}, [call]))
    assert not failed, "Python raised: %r" % failed
    for (name, expected), got in zip(mine.items(), target.run(names["k"], list(arguments.values()), group=group)):
        if isinstance(expected, np.ndarray):
            assert same(got, expected).all(), "%s: %r instead of %r" % (name, got, expected)
