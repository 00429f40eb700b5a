"""Rules for the number of bins of a histogram, by the name that NumPy gives each.

Each gives the width of a bin for n numbers, 0 for one bin. Sources: Sturges 1926; Doane 1976; Scott 1979; Freedman and
Diaconis 1981; Stone 1984; Rice's rule is that of Terrell and Scott 1985."""
import math

from drupe import _engine

_ops = _engine.operations


def _extent(x):
    return _ops["max"](x).item() - _ops["min"](x).item()


def _sqrt(x, extent):
    return extent / math.sqrt(x.size)


def _sturges(x, extent):
    return extent / (math.log2(x.size) + 1)


def _rice(x, extent):
    return extent / (2 * x.size ** (1 / 3))


def _scott(x, extent):
    from drupe.array import std

    return (24 * math.sqrt(math.pi) / x.size) ** (1 / 3) * std(x).item()


def _doane(x, extent):
    from drupe.array import mean, std

    n, deviation = x.size, std(x).item()
    if n < 3 or deviation == 0:
        return 0.0
    skewness = mean(((x - mean(x)) / deviation) ** 3).item()
    expected = math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
    return extent / (1 + math.log2(n) + math.log2(1 + abs(skewness) / expected))


def _fd(x, extent):
    from drupe.array import quantile

    low, high = quantile(x, [0.25, 0.75]).tolist()
    return 2 * (high - low) / x.size ** (1 / 3)


def _auto(x, extent):
    width = _fd(x, extent)
    return min(width, _sturges(x, extent)) if width else _sturges(x, extent)


def _stone(x, extent, low, high):
    """The width of least estimated error: n numbers are left out one by one, and foretold by the others."""
    from drupe.array import linspace, sort

    n, rows = x.size, sort(x)
    if n < 2 or extent == 0:
        return 0.0
    errors = {}
    for bins in range(1, max(100, math.isqrt(n)) + 1):
        edges = linspace(low, high, bins + 1, queue=x.queue)
        # Where the bins end in the sorted numbers; the last one has its upper edge.
        places = _engine._search(rows, edges, False, None)
        places[bins] = n
        shares = (places[1:] - places[:-1]).astype(edges.dtype) / n
        errors[bins] = _ops["sum"](shares * shares)
    best = min(errors, key=lambda bins: (2 - (n + 1) * errors[bins].item()) * bins)
    return extent / best


RULES = {"auto": _auto, "doane": _doane, "fd": _fd, "rice": _rice, "scott": _scott, "sqrt": _sqrt, "stone": _stone,
         "sturges": _sturges}


def count(rule, x, low, high, limited):
    """How many bins a rule makes from low to high of the elements of x; of those between if it is `limited`. Waits."""
    if rule not in RULES:
        raise ValueError(f"histogram: there is no rule {rule!r} for the number of bins: there are {', '.join(RULES)}")
    x = x.reshape(-1)
    if limited:
        x = x[(x >= low) & (x <= high)]
    if x.size == 0:
        return 1
    whole = x.dtype.kind in "iub"
    x = x.astype("float64" if x.device.has_aspect_fp64 else "float32", copy=False)
    limits = (low, high) if rule == "stone" else ()
    width = RULES[rule](x, _extent(x), *limits)
    if whole and 0 < width < 1:
        width = 1.0  # narrower bins stay empty
    return math.ceil((high - low) / width) if width > 0 else 1
