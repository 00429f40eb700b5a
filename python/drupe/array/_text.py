"""How arrays print: NumPy's formatting of the elements, and where they live.

Only what is shown is copied from the device: of a large array, its edges.
"""
import contextlib
import contextvars
import time
from itertools import product

EDGE = 3
LIMIT = 1000
DISPLAY = 0.05  # seconds that a display waits for values, however many arrays it shows
LOOK = 0.003  # that a look waits which did not ask for work to be over


class Patience:
    """How long may still be waited for values: what shows several arrays shares one."""

    def __init__(self, seconds=None):
        self.left = DISPLAY if seconds is None else seconds

    def idle(self, queue):
        """Whether the work of a queue is over, found out in what is left of the time."""
        began = time.monotonic()
        try:
            return queue._idle(self.left)
        finally:
            self.left = max(0.0, self.left - (time.monotonic() - began))


_patience = contextvars.ContextVar("drupe_patience", default=None)


@contextlib.contextmanager
def waiting_at_most(seconds=None):
    """In this block arrays whose values would have to be waited for longer are texts without values. Inside of another
    such block its time counts."""
    if _patience.get() is not None:
        yield
        return
    token = _patience.set(Patience(seconds))
    try:
        yield
    finally:
        _patience.reset(token)


def patience():
    """What the blocks around have left; None without any."""
    return _patience.get()


def _outline(x):
    """The text without values, where it is due."""
    if _patience.get() is None:
        return None
    from drupe import _shown

    return _shown.outline(x) if _shown.waits(x) else None


def _edges(x):
    """The elements that are shown, as a NumPy array, and whether some are left out."""
    import numpy

    if x.size <= LIMIT:
        return x.asnumpy(), False
    # One element more than NumPy shows at both edges of an axis, so that it puts an ellipsis between them.
    parts = [[slice(None)] if n <= 2 * EDGE + 1 else [slice(0, EDGE + 1), slice(n - EDGE, n)] for n in x.shape]
    shape = [sum(len(range(*part.indices(n))) for part in both) for both, n in zip(parts, x.shape)]
    shown = numpy.empty(shape, x.dtype.name)
    for corner in product(*parts):
        target = tuple(slice(-EDGE, None) if part.start else slice(0, len(range(*part.indices(n))))
                       for part, n in zip(corner, x.shape))
        shown[target] = x[corner].asnumpy()
    return shown, True


def _format(x, prefix):
    import numpy

    shown, cut = _edges(x)
    with numpy.printoptions(threshold=0 if cut else LIMIT, edgeitems=EDGE):
        return numpy.array2string(shown, separator=", ", prefix=prefix)


def _plain(x):
    """For a Python without NumPy."""
    return str(x.tolist()) if x.size <= LIMIT else f"[{x[(0,) * x.ndim].item()}, ...]"


def _values(x, prefix):
    try:
        return _format(x, prefix)
    except ImportError:
        return _plain(x)


def array_repr(x):
    outline = _outline(x)
    if outline:
        return outline
    values = _values(x, "array(") if x.size or x.ndim <= 1 else "[]"
    shape = "" if x.size or x.ndim <= 1 else f", shape={x.shape}"
    tail = f"{shape}, dtype={x.dtype}, device='{x.device.filter_string}')"
    room = 88 - len(values.rpartition("\n")[2])
    return f"array({values}{tail}" if len(tail) <= room else f"array({values},\n      {tail[2:]}"


def array_str(x):
    return _outline(x) or _values(x, "")
