"""How arrays print: NumPy's formatting of the elements, and where they live.

Only what is shown is copied from the device: of a large array, its edges.
"""
import contextlib
import contextvars
import operator
import sys
import time
from functools import reduce
from itertools import product

EDGE = 3
LIMIT = 1000
DISPLAY = 0.05  # seconds that a display waits for values, however many arrays it shows
LOOK = 0.003  # that a look waits which did not ask for work to be over
_PIECES = 128  # most copies for what is shown without a kernel


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
    from drupe import _repr

    return _repr.outline(x) if _repr.waits(x) else None


def _nested(get, shape, index=()):
    """Lists of lists of this shape; `get` takes an index."""
    if len(index) == len(shape):
        return get(index)
    return [_nested(get, shape, (*index, i)) for i in range(shape[len(index)])]


def _pieces(x):
    """The elements as lists, copied in contiguous pieces, so that no kernel has to gather them; None: there would be
    too many pieces."""
    from drupe.array import permute_dims

    if x.is_contiguous:
        return x.tolist()
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    if order != [*range(x.ndim)]:
        lists = _pieces(permute_dims(x, tuple(order)))
        places = operator.itemgetter(*order)
        return lists and _nested(lambda index: reduce(operator.getitem, places(index), lists), x.shape)
    row = x[(0,) * (x.ndim - 1)]
    if (x.size // row.size if row.is_contiguous else x.size) > _PIECES:
        return None
    return [_pieces(part) for part in x]


def _edges(x, fetch):
    """The elements that are shown, as a NumPy array, and whether some are left out. `fetch` gives those of a part."""
    import numpy

    if x.size <= LIMIT:
        return numpy.array(fetch(x), x.dtype.name), False
    # One element more than NumPy shows at both edges of an axis, so that it puts an ellipsis between them.
    parts = [[slice(None)] if n <= 2 * EDGE + 1 else [slice(0, EDGE + 1), slice(n - EDGE, n)] for n in x.shape]
    shape = [sum(len(range(*part.indices(n))) for part in both) for both, n in zip(parts, x.shape)]
    shown = numpy.empty(shape, x.dtype.name)
    for corner in product(*parts):
        target = tuple(slice(-EDGE, None) if part.start else slice(0, len(range(*part.indices(n))))
                       for part, n in zip(corner, x.shape))
        shown[target] = fetch(x[corner])
    return shown, True


def _format(x, prefix, fetch=operator.methodcaller("asnumpy")):
    import numpy

    shown, cut = _edges(x, fetch)
    with numpy.printoptions(threshold=0 if cut else LIMIT, edgeitems=EDGE):
        return numpy.array2string(shown, separator=", ", prefix=prefix)


def _joined(parts, ndim, indent):
    return "[" + (",\n" + " " * indent if ndim > 1 else ", ").join(map(str, parts)) + "]"


def _plain(x, indent=1):
    """For a Python without NumPy: the elements or, of a large array, its edges."""
    if x.size <= LIMIT:
        return _joined(x.tolist(), x.ndim, indent) if x.ndim else str(x.tolist())
    return _plain_edges(x, indent)


def _plain_edges(x, indent):
    if x.shape[0] <= 2 * EDGE:
        parts = x.tolist() if x.ndim == 1 else [_plain_edges(row, indent + 1) for row in x]
    elif x.ndim == 1:
        parts = [*x[:EDGE].tolist(), "...", *x[-EDGE:].tolist()]
    else:
        first, last = ([_plain_edges(row, indent + 1) for row in part] for part in (x[:EDGE], x[-EDGE:]))
        parts = [*first, "...", *last]
    return _joined(parts, x.ndim, indent)


def _values(x, prefix):
    try:
        return _format(x, prefix)
    except ImportError:
        return _plain(x, 1 + len(prefix))


def at_hand(x, prefix=""):
    """The elements as text, or None: where a kernel would have to gather them. NumPy is not imported for it, which
    takes far longer than anything that is shown here."""
    if x.size == 0 or x.size > LIMIT and (x.ndim > 3 or not x.is_contiguous):
        return None
    if x.size <= LIMIT and (lists := _pieces(x)) is None:
        return None
    if "numpy" in sys.modules:
        return _format(x, prefix, _pieces if x.size > LIMIT else lambda _: lists)
    if x.size > LIMIT:
        return _plain(x, 1 + len(prefix))
    return _joined(lists, x.ndim, 1 + len(prefix)) if x.ndim else str(lists)


def array_repr(x):
    outline = _outline(x)
    return outline or whole(x, _values(x, "array(") if x.size or x.ndim <= 1 else "[]")


def whole(x, values):
    """The text of an array with these values."""
    shape = "" if x.size or x.ndim <= 1 else f", shape={x.shape}"
    tail = f"{shape}, dtype={x.dtype}, device='{x.device.filter_string}')"
    room = 88 - len(values.rpartition("\n")[2])
    return f"array({values}{tail}" if len(tail) <= room else f"array({values},\n      {tail[2:]}"


def array_str(x):
    return _outline(x) or _values(x, "")
