"""%%offload: run the body of a cell on a device, with arrays moved there and back."""
import argparse
import time

from drupe._units import size
from drupe.magics import render
from drupe.magics.base import WIDTH, Magic, Option, Result, UsageError, body_code, one_line
from drupe.magics.device import SELECTOR, choose


def _variables(text):
    names = [one for one in text.split(",") if one]
    for one in names:
        if not one.isidentifier():
            raise argparse.ArgumentTypeError("%r is no name for a variable" % one)
    return names


def _complete(magic, start):
    """Names of variables, behind the last comma."""
    before, comma, last = start.rpartition(",")
    names = sorted(one for one in magic.shell.user_ns if one.startswith(last) and not one.startswith("_"))
    return [(before + comma + one, "instance") for one in names]


class Offload(Magic):
    """Run the cell with its arrays on a device.

    Variables of --in and --inout are arrays of the device while the code runs, and NumPy's again afterwards; np.sin(x)
    and the like compute there. Those of --out and --inout come back as NumPy arrays, into the array that the variable
    had before, if type and shape are the same. With --async nothing waits: the copies back are queued, and -o NAME
    binds what has wait(), to be called before the arrays are used."""

    name = "offload"
    options = (
        Option("--in", dest="given", metavar="NAMES", action="append", default=[], type=_variables, complete=_complete,
               help="variables that go to the device, with commas"),
        Option("--out", dest="wanted", metavar="NAMES", action="append", default=[], type=_variables,
               complete=_complete, help="variables that come back"),
        Option("--inout", dest="both", metavar="NAMES", action="append", default=[], type=_variables,
               complete=_complete, help="variables that do both"),
        Option("-d", "--device", metavar="SEL", complete="device", help=SELECTOR.help.partition(",")[0]),
        Option("--async", dest="asynchronous", action="store_true", help="do not wait for the arrays to come back"),
    )
    examples = (
        ("%%offload --in a,b --out c\nc = np.sqrt(a) @ b", "computes c on the default device"),
        ("%%offload -d gpu --inout x --async -o event\nx += 1", "event.wait() before x is used"),
    )

    def cell(self, options, body):
        if not body.strip():
            raise UsageError("%s: the cell has no code" % self.title)
        both = sum(options.both, [])
        given, wanted = sum(options.given, []) + both, sum(options.wanted, []) + both
        device = choose(options.device)
        code = body_code(self.shell, body, self.name)
        move = _Move(self, device, list(dict.fromkeys(given)), list(dict.fromkeys(wanted)))
        began = time.perf_counter()
        value = move.run(code, options.asynchronous)
        if value is not None and not options.quiet and not body.rstrip().endswith(";"):
            self.shell.displayhook(value)
        return Moved(move, time.perf_counter() - began)


class _Move:
    """Arrays on their way."""

    def __init__(self, magic, device, given, wanted):
        import numpy

        self.numpy = numpy
        self.title, self.names, self.device = magic.title, magic.shell.user_ns, device
        self.given, self.wanted = given, wanted
        self.before = {name: self.names[name] for name in dict.fromkeys(given + wanted) if name in self.names}
        self.went = self.came = 0  # bytes
        self.event = None
        self._late = []  # (array, what it gets): arrays whose elements do not lie side by side
        for name in given:
            if name not in self.before:
                raise UsageError("%s: there is no variable %r" % (self.title, name))

    def _there(self):
        """Arrays for the names that go to the device."""
        from drupe import array

        made = {}
        for name in self.given:
            value = self.before[name]
            if isinstance(value, array.Array):
                made[name] = value.to_device(self.device)
                continue
            try:
                plain = self.numpy.asarray(value)
                made[name] = array.asarray(plain, device=self.device, copy=True)
            except (TypeError, ValueError) as error:
                raise UsageError("%s: %s is no array for a device: %s" % (self.title, name, one_line(error))) from None
            self.went += plain.nbytes
        return made

    def run(self, code, asynchronous):
        """Run the code; the value of its last expression."""
        import drupe

        self.names.update(self._there())
        made = {}
        try:
            with drupe.device(self.device):
                exec(code[0], self.names)
                value = None if code[1] is None else eval(code[1], self.names)
            made = {name: self._wanted(name) for name in self.wanted}
        finally:
            for name in self.given:
                self.names[name] = self.before[name]
        events = [self._back(name, one) for name, one in made.items()]
        self.event = self.device.queue.barrier(wait_for=[one for one in events if one is not None])
        if not asynchronous:
            self.wait()
        return value

    def wait(self):
        """Wait until all is back."""
        self.event.wait()
        while self._late:
            there, brought = self._late.pop()
            there[...] = brought

    def _wanted(self, name):
        if name not in self.names:
            raise UsageError("%s: the code has set no variable %r" % (self.title, name))
        return self.names[name]

    def _back(self, name, value):
        """Queue the copy of an array to the host; its event, or None."""
        from drupe import array

        if not isinstance(value, array.Array):
            self.names[name] = value
            return None
        there = self.before.get(name)
        fits = (isinstance(there, self.numpy.ndarray) and there.shape == tuple(value.shape)
                and there.dtype == value.dtype.name and there.flags.writeable)
        direct = fits and there.flags.c_contiguous
        target = there if direct else self.numpy.empty(tuple(value.shape), value.dtype.name)
        if fits and not direct:
            self._late.append((there, target))
        self.names[name] = there if fits else target
        self.came += target.nbytes
        if not target.nbytes:
            return None
        if not value.flags.c_contiguous:
            value = array.asarray(value, copy=True)
        return value.queue.copy(target.reshape(-1).view(self.numpy.uint8), value)


class Moved(Result):
    """What %%offload did: `event`, `device`, `seconds`, bytes that `went` and `came`."""

    def __init__(self, move, seconds):
        self.event, self.device, self.seconds = move.event, move.device, seconds
        self._move = move
        self.went, self.came = move.went, move.came
        self._given, self._wanted = move.given, move.wanted

    def wait(self):
        """Wait until the arrays have come back."""
        self._move.wait()

    def text(self, columns=WIDTH):
        parts = [self.device.filter_string]
        if self._given:
            parts.append("%s there (%s)" % (", ".join(self._given), size(self.went)))
        if self._wanted:
            parts.append("%s back (%s)" % (", ".join(self._wanted), size(self.came)))
        parts.append(render.seconds(self.seconds))
        return "; ".join(parts)

    def data(self):
        return {"device": self.device.filter_string, "in": self._given, "out": self._wanted, "bytes_in": self.went,
                "bytes_out": self.came, "seconds": self.seconds}
