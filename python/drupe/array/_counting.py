"""Counts of elements in bins, and lines through points."""
import math
import operator

from drupe import _engine

_ops = _engine.operations


def bincount(x, /, weights=None, minlength=0):
    """How often each number is among the non-negative integers of the one-dimensional x, as int64; or the sums of their
    weights, as float64. The result is max(x) + 1 long, and `minlength` at least. Waits.

    >>> bincount(asarray([1, 3, 1])).tolist()
    [0, 2, 0, 1]
    """
    if x.ndim != 1 or x.dtype.kind == "f" or x.dtype.kind == "c":
        raise ValueError("bincount takes integers in one dimension")
    bins = operator.index(minlength)
    if bins < 0:
        raise ValueError("bincount: minlength must not be negative")
    if x.size:
        if x.dtype.kind != "b" and _ops["min"](x).item() < 0:
            raise ValueError("bincount takes no negative numbers")
        bins = max(bins, int(_ops["max"](x.astype("int64")).item()) + 1)
    return _engine._bincount(x, weights, bins)


def digitize(x, bins, /, right=False):
    """In which of the bins between neighbours of `bins` (monotonic, one dimension) each element lies, as int64: i where
    bins[i-1] <= x < bins[i], or with `right` bins[i-1] < x <= bins[i]; falling bins the other way round. Waits.

    >>> digitize(asarray([0.5, 2.0]), asarray([0.0, 1.0, 2.0])).tolist()
    [1, 3]
    """
    from drupe.array._sets import searchsorted

    if bins.ndim != 1:
        raise ValueError("digitize: bins have one dimension")
    rising = bins.size < 2 or _ops["all"](bins[1:] >= bins[:-1]).item()
    if not rising and not _ops["all"](bins[1:] <= bins[:-1]).item():
        raise ValueError("digitize: bins must rise or fall throughout")
    if rising:
        return searchsorted(bins, x, side="left" if right else "right")
    return bins.size - searchsorted(bins[::-1], x, side="left" if right else "right")


def histogram_bin_edges(x, /, bins=10, range=None):
    """The edges of the bins of histogram(), as float64.

    x: numbers, an array of any shape. bins: how many, or edges, which are returned, or the name of a rule: "auto",
    "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges". range: (low, high), None for the extremes of x. Waits
    for those, and for what a rule asks of x. ValueError: an unknown rule, a range that falls, edges that do not rise.

    >>> histogram_bin_edges(asarray([0.0, 4.0]), 2).tolist()
    [0.0, 2.0, 4.0]
    >>> histogram_bin_edges(asarray([0.0, 1.0, 3.0, 4.0]), "sqrt").tolist()
    [0.0, 2.0, 4.0]
    """
    if not isinstance(bins, str) and (isinstance(bins, _engine.Array) or hasattr(bins, "__len__")):
        edges = bins if isinstance(bins, _engine.Array) else _engine.asarray(bins, queue=x.queue)
        if edges.ndim != 1 or (edges.size > 1 and not _ops["all"](edges[1:] >= edges[:-1]).item()):
            raise ValueError("histogram: edges of bins have one dimension and rise")
        return edges
    count = 1 if isinstance(bins, str) else operator.index(bins)
    if count < 1:
        raise ValueError("histogram: there must be one bin at least")
    low, high = (float(end) for end in _extent(x)) if range is None else (float(end) for end in range)
    if not low <= high or not math.isfinite(high - low):
        raise ValueError(f"histogram: the range from {low} to {high} must be finite and not fall")
    if low == high:
        low, high = low - 0.5, high + 0.5
    if isinstance(bins, str):
        from drupe.array import _bin_rules

        count = _bin_rules.count(bins, x, low, high, range is not None)
    from drupe.array import linspace

    return linspace(low, high, count + 1, queue=x.queue)


def _extent(x):
    return (_ops["min"](x).item(), _ops["max"](x).item()) if x.size else (0.0, 1.0)


def histogram(x, /, bins=10, range=None, density=None, weights=None):
    """How many elements lie in each bin, and the edges of the bins: a tuple of two arrays.

    `bins`: how many there are, equal, from the least to the largest element or over `range` (low, high); or their edges
    in one dimension, or the name of a rule, as histogram_bin_edges() takes it. The last bin has its upper edge. The
    counts are int64; with `weights` of x's shape they are sums of those, and with `density` divided so that the
    integral is 1, both in float64. Waits. TypeError: weights beside a rule.

    >>> [part.tolist() for part in histogram(asarray([1.0, 2.0, 2.5, 3.0]), 2)]
    [[1, 3], [1.0, 2.0, 3.0]]
    """
    from drupe.array._sets import searchsorted

    edges = histogram_bin_edges(x, bins, range)
    if weights is not None and isinstance(bins, str):
        raise TypeError("histogram: rules for the number of bins know no weights: give a number or edges")
    if weights is not None and weights.shape != x.shape:
        raise ValueError("histogram: weights have the shape of x")
    if edges.size < 2:
        return _engine.empty((0,), dtype="int64", queue=x.queue), edges
    x = x.reshape(-1)
    weights = weights if weights is None else weights.reshape(-1)
    count = edges.size - 1
    # A place behind the last edge, which belongs to the last bin when the element is that edge.
    places = searchsorted(edges, x, side="right") - 1
    places = _ops["where"](x == edges[-1], count - 1, places)
    counts = _engine._bincount(places, weights, count)
    if density:
        widths = edges[1:] - edges[:-1]
        counts = counts / widths / _ops["sum"](counts)
    return counts, edges


def interp(x, xp, fp, /, left=None, right=None, period=None):
    """What lies at each x (an array or a number) on the lines through the points (xp, fp), as float64 of x's shape.

    xp and fp have one dimension and the same size, and xp rises. In front of the first point it is `left`, fp[0] unless
    given, and behind the last one `right`. NaN at NaN. period: a number after which all repeats: the points may have
    any order then, and left and right are not looked at. ValueError: no points, or a period of 0.

    >>> interp(asarray([0.5, 9.0]), asarray([0.0, 1.0]), asarray([10.0, 20.0])).tolist()
    [15.0, 20.0]
    """
    from drupe.array._sets import _beside

    if not isinstance(x, _engine.Array):
        x = _beside(fp, x)
    if not fp.size:
        raise ValueError("interp: there must be one point at least")
    if period is not None:
        x, xp, fp, left, right = _periodic(x, xp, fp, abs(period))
    left = fp[0].item() if left is None else left
    right = fp[-1].item() if right is None else right
    return _engine._interp(x, xp, fp, left, right)


def _periodic(x, xp, fp, period):
    """Arguments of interp(), with the points in order, and one more at both ends."""
    from drupe.array import concat, take
    from drupe.array._order import argsort

    if period == 0:
        raise ValueError("interp: period must not be 0")
    x, xp = _ops["remainder"](x, float(period)), _ops["remainder"](xp, float(period))
    order = argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    return x, concat([xp[-1:] - period, xp, xp[:1] + period]), concat([fp[-1:], fp, fp[:1]]), None, None
