"""pad(): arrays with a border around them."""
import operator

from drupe import _engine
from drupe.array._arguments import need

_ops = _engine.operations
_FOLDED = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS = ("maximum", "minimum", "mean")


def _pairs(name, given, ndim):
    """What NumPy takes as widths or values of a border: a number, (before, after), or one pair for each axis."""
    if not hasattr(given, "__len__"):
        return [(given, given)] * ndim
    rows = list(given)
    if all(not hasattr(row, "__len__") for row in rows):
        if len(rows) == 1:
            return [(rows[0], rows[0])] * ndim
        if len(rows) == 2:
            return [tuple(rows)] * ndim
    rows = [tuple(row) if hasattr(row, "__len__") else (row, row) for row in rows]
    rows = [row * 2 if len(row) == 1 else row for row in rows]
    rows = rows * ndim if len(rows) == 1 else rows
    if len(rows) != ndim or any(len(row) != 2 for row in rows):
        raise ValueError(f"pad: {name} is a number, a pair, or a pair for each of {ndim} axes, not {given!r}")
    return rows


def _source(mode, place, length):
    """Which element of an axis stands at a place outside of it."""
    if mode == "edge":
        return 0 if place < 0 else length - 1
    if mode == "wrap":
        return place % length
    period = 2 * length if mode == "symmetric" else max(2 * length - 2, 1)
    place %= period
    return place if place < length else (period - 1 if mode == "symmetric" else period) - place


def _runs(sources):
    """A list of numbers as slices: (where it begins, first number, step, count), each as long as it can be."""
    begin = 0
    while begin < len(sources):
        end, step = begin + 1, None
        while end < len(sources):
            by = sources[end] - sources[end - 1]
            if by not in (-1, 0, 1) or step not in (None, by):
                break
            step, end = by, end + 1
        yield begin, sources[begin], step or 0, end - begin
        begin = end


def _fold(out, axis, before, length, after, mode):
    """Fill the border along one axis with elements from inside."""
    whole = (slice(None),) * axis
    for start, places in ((0, range(-before, 0)), (before + length, range(length, length + after))):
        for begin, first, step, count in _runs([_source(mode, place, length) + before for place in places]):
            stop = first + step * count
            chosen = slice(first, first + 1) if step == 0 else slice(first, stop if stop >= 0 else None, step)
            part = out[(*whole, chosen)]
            out[(*whole, slice(start + begin, start + begin + count))] = part


def _ramp(out, axis, before, length, after, ends):
    """Fill the border along one axis with numbers that go from the edge to the ends in equal steps."""
    whole = (slice(None),) * axis
    shape = (-1,) + (1,) * (out.ndim - axis - 1)
    default = _engine.empty(0, queue=out.queue).dtype
    for width, edge, end, place in ((before, before, ends[0], slice(0, before)),
                                    (after, before + length - 1, ends[1], slice(before + length, None))):
        if width == 0:
            continue
        steps = _engine._sequence(width, 0.0, 1.0 / width, default, None, None, out.queue)
        inner = out[(*whole, slice(edge, edge + 1))]
        inner = inner if inner.dtype.kind == "c" else inner.astype(default)
        part = end + (inner - end) * (steps if place.start == 0 else 1.0 - (steps + 1.0 / width)).reshape(shape)
        if out.dtype.kind in "iu":
            part = _ops["floor"](part)
        out[(*whole, place)] = part.astype(out.dtype)


def _statistic(out, axis, before, length, after, mode, lengths):
    """Fill the border along one axis with the maximum, minimum or mean of the elements at the edge."""
    from drupe.array import mean

    whole = (slice(None),) * axis
    for width, count, place in ((before, lengths[0], slice(0, before)),
                                (after, lengths[1], slice(before + length, None))):
        if width == 0:
            continue
        count = length if count is None else min(operator.index(count), length)
        start = before if place.start == 0 else before + length - count
        part = out[(*whole, slice(start, start + count))]
        if mode == "mean":
            part = mean(part, axis=axis, keepdims=True)
            part = _ops["round"](part) if out.dtype.kind in "iu" else part
        else:
            part = _ops["max" if mode == "maximum" else "min"](part, axis=axis, keepdims=True)
        out[(*whole, place)] = part.astype(out.dtype, copy=False)


def pad(x, pad_width, /, mode="constant", *, constant_values=0, end_values=0, stat_length=None,
        reflect_type="even"):
    """A new array with a border around the elements of x.

    x: an array of any data type. pad_width: the width of the border: a number, a pair (before, after), or a pair for
    each axis. mode: what the border holds: "constant" (constant_values), "edge" (the outermost elements), "reflect" and
    "symmetric" (the elements mirrored at the edge, without and with the outermost one), "wrap" (those of the other
    side), "linear_ramp" (from the edge to end_values), "maximum", "minimum", "mean" (of the stat_length outermost
    elements), "empty" (nothing). ValueError: another mode, negative widths, or an empty axis of which elements are
    wanted.

    >>> da.pad(da.asarray([1, 2, 3]), (2, 1), "edge").tolist()
    [1, 1, 1, 2, 3, 3]
    """
    need("pad", x)
    if mode not in ("constant", "empty", "linear_ramp", *_FOLDED, *_STATISTICS):
        raise ValueError(f"pad: there is no mode {mode!r}; there are constant, empty, linear_ramp, "
                         f"{', '.join(_FOLDED + _STATISTICS)}")
    if reflect_type != "even":
        raise ValueError('pad: reflect_type is "even"; for "odd", subtract the border from twice the edge')
    widths = [(operator.index(a), operator.index(b)) for a, b in _pairs("pad_width", pad_width, x.ndim)]
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError("pad: the widths of a border must not be negative")
    shape = tuple(a + n + b for n, (a, b) in zip(x.shape, widths))
    if mode not in ("constant", "empty") and any(n == 0 and sum(pair) for n, pair in zip(x.shape, widths)):
        raise ValueError(f'pad: an empty axis has no elements for a border of mode "{mode}"')
    out = _engine._written(shape, x.dtype, queue=x.queue, usm_type=x.usm_type)
    if mode == "empty":
        out[...] = 0  # elements that nothing has written cannot be read
    middle = tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, widths))
    out[middle] = x
    values = _pairs("constant_values", constant_values, x.ndim) if mode == "constant" else \
        _pairs("end_values", end_values, x.ndim) if mode == "linear_ramp" else \
        _pairs("stat_length", stat_length, x.ndim)
    for axis, (before, after) in enumerate(widths):
        # Of the axes that come later only the middle is there, of those before everything.
        part = out[(slice(None),) * (axis + 1) + middle[axis + 1:]]
        length, whole = x.shape[axis], (slice(None),) * axis
        if mode == "constant":
            part[(*whole, slice(0, before))] = values[axis][0]
            part[(*whole, slice(before + length, None))] = values[axis][1]
        elif mode in _FOLDED:
            _fold(part, axis, before, length, after, mode)
        elif mode == "linear_ramp":
            _ramp(part, axis, before, length, after, values[axis])
        elif mode in _STATISTICS:
            _statistic(part, axis, before, length, after, mode, values[axis])
    return out
