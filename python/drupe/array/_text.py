"""How arrays print: NumPy's formatting of the elements, and where they live.

Only what is shown is copied from the device: of a large array, its edges.
"""
import contextlib
import contextvars
from itertools import product

EDGE = 3
LIMIT = 1000

_quick = contextvars.ContextVar("drupe_quick_texts", default=False)


@contextlib.contextmanager
def waiting_for_nothing():
    """In this block arrays whose values would be waited for are texts without values: who points at a name did not ask
    for work to be over."""
    token = _quick.set(True)
    try:
        yield
    finally:
        _quick.reset(token)


def _outline(x):
    """The text without values, where it is due."""
    if not _quick.get():
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
