"""Random programs of arrays as lines of text, each run twice: with drupe.array and with NumPy.

A line is an expression whose value gets a name (`v7 = xp.sin(v3)`), or a statement that writes into a name. Both sides
hold the same names, `xp` is drupe.array or arrays_numpy, and `q` makes arrays. So a program that differs is shortened
by leaving lines out: one whose names are gone is skipped on both sides."""
import dataclasses
import os
import pickle
import types

import numpy as np

import drupe
import drupe.array as da
from drupe import hosted

import arrays_numpy

LARGEST = 1 << 20  # elements of a result: larger ones are not kept, or products of products need all memory
PARK = int(os.environ.get("SOAK_PARK", "0"))  # the device is parked before each so many lines; 0: never
BOUND = 1e6  # of floats: what grows beyond is not kept


class Different(Exception):
    """A device's result is not NumPy's."""


@dataclasses.dataclass
class Line:
    """`ulps` and `scale`: how far a result may be from NumPy's, as ulps * eps * (|element| + scale), where `scale` is
    an expression of NumPy's side. A result with a tolerance is read at once and replaces NumPy's, or errors would
    grow."""
    text: str
    name: str = ""  # that gets the value; without one the text is a statement
    writes: str = ""  # the name that a statement writes into
    ulps: float = 0.0
    scale: str = "0"
    queue: int = 0
    view: bool = False  # the value shares memory with another

    def __str__(self):
        return "%s = %s" % (self.name, self.text) if self.name else self.text

    def code(self):
        return compile(self.text, "<line>", "eval" if self.name else "exec")


def describe(got, a, good):
    where = np.unravel_index(int(np.argmin(good)), a.shape)
    return "element %s of %s %s is %r and not %r (%d of %d differ)" % (
        tuple(int(i) for i in where), a.dtype, a.shape, got[where], a[where], a.size - np.count_nonzero(good), a.size)


def compare(x, a, ulps=0.0, scale=0.0):
    """NumPy's array of a device's, which may be so far from `a`."""
    if not isinstance(x, da.Array):
        raise Different("%r instead of an array" % (x,))
    got, a = np.asarray(x.asnumpy()), np.asarray(a)
    if got.dtype != a.dtype or got.shape != a.shape:
        raise Different("%s %s instead of %s %s" % (got.dtype, got.shape, a.dtype, a.shape))
    good = got == a
    if not good.all():
        if a.dtype.kind in "fc":
            good |= np.isnan(got) & np.isnan(a)
            if ulps and not good.all():
                wide = np.promote_types(a.dtype, "float64")
                far, size = np.abs(got.astype(wide) - a.astype(wide)), np.abs(a.astype(wide))
                least = np.finfo(a.dtype).smallest_normal  # below it an ulp is no longer relative
                good |= far <= ulps * np.finfo(a.dtype).eps * (size + scale) + least
        if not good.all():
            raise Different(describe(got, a, good))
    return got


class Side:
    """The names of one side."""

    def __init__(self, xp, make, shared):
        self.names = {"xp": xp, "q": make, "np": np, "da": da, "inf": np.inf, "nan": np.nan, "top": arrays_numpy.top,
                      **shared}

    def run(self, line, code):
        if not line.name:
            exec(code, self.names)
            return self.names[line.writes]
        return eval(code, self.names)


def lost(x, at):
    """Read and write by an index out of bounds."""
    for name, read in (("read", lambda: x[at].asnumpy()), ("sum", lambda: da.sum(x[at]).item())):
        try:
            read()
        except IndexError:
            continue
        raise Different("%s of %r is no IndexError" % (name, at))
    x[at] = 1
    try:
        x.asnumpy()
    except IndexError:
        pass
    else:
        raise Different("a failed write is no IndexError for who reads")
    x.accept_contents()
    try:
        x.queue.wait()
    except IndexError:
        pass


def pickled(x):
    return pickle.loads(pickle.dumps(x)).to_device(x.queue)


def reachable(x):
    """Whether the host can address the elements; else exports are refused."""
    return x.device.device_type != "gpu" and os.environ.get("DRUPE_FORM") != "gpu"


def exported(x):
    """By DLPack and the buffer protocol, as NumPy takes them, and a capsule that nobody takes."""
    capsule = x.__dlpack__()
    del capsule
    if not reachable(x):
        return da.from_dlpack(x).copy()
    return da.asarray(np.from_dlpack(x) if x.dtype.kind != "b" else np.asarray(x), queue=x.queue)


def viewed(x):
    """A NumPy view of a copy that is gone, if the device's memory is the host's."""
    view = np.asarray(x.copy()) if reachable(x) else x.asnumpy()
    return da.asarray(view, queue=x.queue)


def maker(queues):
    """q(queue, values) on the device."""
    return lambda queue, a: da.asarray(a, queue=queues[queue])


def sides(queues, shared):
    """Drupe's and NumPy's, for queues and pairs of arrays that both know."""
    device = types.SimpleNamespace(**{name: getattr(da, name) for name in da.__all__})
    device.values, device.indices = arrays_numpy.values, arrays_numpy.indices
    device.lost, device.pickled, device.exported, device.viewed = lost, pickled, exported, viewed
    device.move = lambda x, queue: x.to_device(queues[queue])
    return (Side(device, maker(queues), {name: x for name, (x, _) in shared.items()}),
            Side(arrays_numpy, lambda queue, a: np.array(a), {name: a for name, (_, a) in shared.items()}))


# What both sides raise for a line that makes no sense; another class on Drupe's side alone is a difference.
ERRORS = (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError, AttributeError, drupe.DeviceError)


class Run:
    """A program as it runs. step() returns NumPy's value, or None where the line was skipped or failed on both."""

    def __init__(self, queues, shared):
        self.device, self.numpy = sides(queues, shared)
        self.queues = queues
        self.refused = self.lines = self.parked = 0

    def step(self, line):
        code, scale = line.code(), 0.0
        try:
            if line.ulps:
                scale = float(eval(line.scale, self.numpy.names))
            a = self.numpy.run(line, code)
        except NameError:
            return None
        except ERRORS as error:
            self.refused += 1
            try:
                self.device.run(line, code)
            except ERRORS:
                return None
            if isinstance(error, IndexError):
                raise Different("no error, and NumPy says %r" % error) from None
            return None
        self.park()
        try:
            x = self.device.run(line, code)
        except drupe.DeviceMemoryError:
            raise
        except ERRORS as error:
            raise Different("%s: %s" % (type(error).__name__, error)) from error
        if not line.name:
            if line.ulps:
                a[...] = compare(x, a, line.ulps, scale)
            return a
        return self._kept(line, x, a, scale)

    def park(self):
        """Now and then, and sooner or later with success: work of other threads stands in the way."""
        self.lines += 1
        if not PARK or self.lines % PARK:
            return
        for queue in self.queues:
            queue._idle(None)
        self.parked += hosted.park(self.queues[0].device).ok

    def _kept(self, line, x, a, scale):
        if isinstance(a, tuple):
            if not isinstance(x, tuple) or len(x) != len(a):
                raise Different("%r instead of %d arrays" % (x, len(a)))
            for one, other in zip(x, a):
                compare(one, other, line.ulps, scale)
            return None
        a = np.asarray(a)
        if line.ulps:
            a = np.array(compare(x, a, line.ulps, scale))
        if a.size > LARGEST or grown(a):
            return None
        if not line.view:
            a = np.asarray(a, order="C")  # Drupe makes no others
        self.device.names[line.name], self.numpy.names[line.name] = x, a
        return a

    def drop(self, name):
        self.device.names.pop(name, None)
        self.numpy.names.pop(name, None)

    def check(self, name):
        if name in self.numpy.names:
            compare(self.device.names[name], self.numpy.names[name])

    def check_all(self):
        for name in [name for name in self.numpy.names if name[0] == "v" and name[1:].isdigit()]:
            try:
                self.check(name)
            except Different as error:
                raise Different("%s: %s" % (name, error)) from None


def grown(a):
    """Whether numbers are too large, or no numbers, so that what follows cannot be compared."""
    if a.dtype.kind not in "fc" or not a.size:
        return False
    size = np.abs(a[np.isfinite(a)])
    large = size.size and size.max() > (6e4 if a.dtype == np.float16 else BOUND)
    return bool(large or a.dtype.kind == "c" and size.size < a.size)


# --- Shortening -----------------------------------------------------------------------------------------------

def fails(lines, queues, shared):
    """The text of the difference that lines alone make, or None."""
    run = Run(queues, shared)
    try:
        for line in lines:
            if line.text.startswith("drop "):
                run.drop(line.text[5:])
            elif line.text.startswith("check "):
                run.check(line.text[6:])
            else:
                run.step(line)
        run.check_all()
    except (Different, drupe.DeviceError) as error:
        return str(error)
    return None


def shorten(lines, queues, shared):
    """Fewer lines that still differ, and how; None where the program does not differ again."""
    text = fails(lines, queues, shared)
    if text is None:
        return None
    size = max(1, len(lines) // 2)
    while True:
        at = 0
        while at < len(lines):
            fewer = lines[:at] + lines[at + size:]
            again = fails(fewer, queues, shared) if fewer else None
            if again is None:
                at += size
            else:
                lines, text = fewer, again
        if size == 1:
            return lines, text
        size = max(1, size // 2)
