"""Statistics: what sorts, counts and reductions are put together to."""
import math
import operator

from drupe import _engine
from drupe.array._axes import some_axes

_ops = _engine.operations


def _float_type(x):
    """The floating-point type in which x is averaged."""
    if x.dtype.kind in "fc":
        return x.dtype
    return _engine.DType("float64" if x.device.has_aspect_fp64 else "float32")


def _where(condition, x, other):
    return _ops["where"](condition, x, other)


def _number(x, value):
    """A number as an array without dimensions, of x's type and on its queue."""
    return _engine.asarray(value, dtype=x.dtype, queue=x.queue)


def _flat_last(x, axis):
    """x with the axes (one, several, or None for all) made one, which is the last, and the shape with keepdims."""
    axes = sorted(some_axes(axis, x.ndim))
    rest = [a for a in range(x.ndim) if a not in axes]
    shape = tuple(1 if a in axes else x.shape[a] for a in range(x.ndim))
    x = _engine.permute_dims(x, (*rest, *axes))
    return x.reshape((*x.shape[:len(rest)], math.prod(x.shape[len(rest):]))), shape


# --- Places in sorted rows -------------------------------------------------------------------------------------------

# Where quantile q lies among n elements, from 0 on, as (alpha, beta) of Hyndman and Fan: q*n + alpha +
# q*(1-alpha-beta) - 1.
_CONTINUOUS = {"linear": (1, 1), "hazen": (0.5, 0.5), "weibull": (0, 0), "median_unbiased": (1 / 3, 1 / 3),
               "normal_unbiased": (3 / 8, 3 / 8), "interpolated_inverted_cdf": (0, 1)}
_METHODS = (*_CONTINUOUS, "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf",
            "closest_observation")


class _OfNumbers:
    """What places are computed with where the number of elements is a number."""

    floor, ceil, round, maximum, minimum = math.floor, math.ceil, round, max, min

    @staticmethod
    def where(condition, a, b):
        return a if condition else b


class _OfArrays:
    """The same where it is an array."""

    floor, ceil, round, where = _ops["floor"], _ops["ceil"], _ops["round"], _ops["where"]

    @staticmethod
    def maximum(a, b):
        return _ops["maximum"](a, b)

    @staticmethod
    def minimum(a, b):
        return _ops["minimum"](a, b)


def _place(q, n, method, of=_OfNumbers):
    """(place, weight of the next place) of quantile q among n elements, as NumPy's methods have them."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        at = (n - 1) * q if method == "linear" else n * q + (alpha + q * (1 - alpha - beta)) - 1
    elif method in ("inverted_cdf", "averaged_inverted_cdf"):
        at = n * q - 1
        low = of.floor(at)
        at = low + of.where(at < 0, 0.0, of.where(at > low, 1.0, 0.5 * (method[0] == "a")))
    elif method == "closest_observation":
        at = n * q - 1.5
        low = of.floor(at)
        at = low + of.where((at == low) & (low % 2 == 1), 0.0, 1.0)
    else:
        at = (n - 1) * q
        at = {"lower": of.floor, "higher": of.ceil, "nearest": of.round,
              "midpoint": lambda a: (of.floor(a) + of.ceil(a)) / 2}[method](at)
    at = of.minimum(of.maximum(at, 0), n - 1)
    low = of.floor(at)
    return low, at - low


def _between(low, high, weight):
    """The line from low to high, exact at both ends."""
    if weight == 0:
        return low
    return high - (high - low) * (1 - weight) if weight >= 0.5 else low + (high - low) * weight


def _has_nan(rows):
    """Whether sorted rows have a NaN, which is last then."""
    last = rows[..., -1]
    return last != last


def _quantile_list(q):
    """q, a number or numbers in any nesting, as (shape, numbers)."""
    if isinstance(q, _engine.Array):
        q = q.tolist()
    if not hasattr(q, "__len__"):
        return (), [float(q)]
    inner = [_quantile_list(part) for part in q]
    return (len(inner), *(inner[0][0] if inner else ())), [number for _, numbers in inner for number in numbers]


def quantile(x, q, /, axis=None, *, method="linear", keepdims=False):
    """The quantiles q (a number or numbers from 0 to 1) of the elements along the axes, None for all, in floating
    point.

    The axes of q come first in the result. A row with a NaN has NaN. `method` is one of NumPy's thirteen. No elements
    are a ValueError.

    >>> quantile(asarray([1.0, 2.0, 4.0]), [0.25, 0.5]).tolist()
    [1.5, 2.0]
    """
    return _quantiles(x, q, axis, method, keepdims, 1.0, False)


def percentile(x, q, /, axis=None, *, method="linear", keepdims=False):
    """quantile() with q from 0 to 100.

    >>> percentile(asarray([1.0, 2.0, 4.0]), 50).item()
    2.0
    """
    return _quantiles(x, q, axis, method, keepdims, 100.0, False)


def nanquantile(x, q, /, axis=None, *, method="linear", keepdims=False):
    """quantile() of the elements that are not NaN; NaN where there are none.

    >>> nanquantile(asarray([1.0, nan, 3.0]), 0.5).item()
    2.0
    """
    return _quantiles(x, q, axis, method, keepdims, 1.0, True)


def nanpercentile(x, q, /, axis=None, *, method="linear", keepdims=False):
    """nanquantile() with q from 0 to 100.

    >>> nanpercentile(asarray([1.0, nan, 3.0]), 50).item()
    2.0
    """
    return _quantiles(x, q, axis, method, keepdims, 100.0, True)


def _quantiles(x, q, axis, method, keepdims, whole, without_nan):
    if method not in _METHODS:
        raise ValueError(f"quantile: method {method!r} is not known: it is one of {', '.join(_METHODS)}")
    if x.dtype.kind == "c":
        raise TypeError("quantiles of complex numbers are not defined: take those of abs(x)")
    shape, numbers = _quantile_list(q)
    numbers = [number / whole for number in numbers]
    if not all(0 <= number <= 1 for number in numbers):
        raise ValueError(f"quantiles lie from 0 to {whole:g}")
    rows, kept = _sorted_rows(x, axis)
    pick = _pick_without_nan if without_nan else _pick
    parts = pick(rows, numbers, method)
    if keepdims:
        parts = [part.reshape(kept) for part in parts]
    if shape == ():
        return parts[0]
    from drupe.array import stack

    return stack(parts).reshape((*shape, *parts[0].shape))


def _sorted_rows(x, axis):
    """The elements of the axes as the last axis, sorted, in floating point; and the shape with keepdims."""
    rows, kept = _flat_last(x, axis)
    if rows.shape[-1] == 0:
        raise ValueError("no elements have no median or quantile")
    return _engine._sort(rows, rows.ndim - 1, False, True, False).astype(_float_type(x), copy=False), kept


def _pick(rows, numbers, method):
    n, odd, found = rows.shape[-1], _has_nan(rows), []
    for number in numbers:
        low, weight = _place(number, n, method)
        value = _between(rows[..., low], rows[..., min(low + 1, n - 1)], weight)
        found.append(_where(odd, rows[..., -1], value))
    return found


def _pick_without_nan(rows, numbers, method):
    """Each row has as many elements as it has, so the places are arrays."""
    from drupe.array import take_along_axis

    double = "float64" if rows.device.has_aspect_fp64 else "float32"
    count = _ops["sum"](rows == rows, axis=-1, keepdims=True).astype(double)
    found = []
    for number in numbers:
        low, weight = _place(number, count, method, _OfArrays)
        weight = weight.astype(rows.dtype)
        first = _ops["maximum"](low, 0)  # rows without elements have NaN there
        last = _ops["maximum"](_ops["minimum"](low + 1, count - 1), 0)
        a, b = (take_along_axis(rows, place.astype("int64"), axis=-1) for place in (first, last))
        line = _where(weight >= 0.5, b - (b - a) * (1 - weight), a + (b - a) * weight)
        found.append(_where((a == b) | (weight == 0), a, line)[..., 0])
    return found


def median(x, /, axis=None, *, keepdims=False):
    """The middle of the sorted elements along the axes, None for all, or the mean of the two in the middle.

    Of integers in floating point. A row with a NaN has NaN. No elements are a ValueError.

    >>> median(asarray([5, 1, 2])).item()
    2.0
    """
    rows, kept = _sorted_rows(x, axis)
    n = rows.shape[-1]
    middle = rows[..., n // 2] if n % 2 else (rows[..., n // 2 - 1] + rows[..., n // 2]) / 2
    middle = _where(_has_nan(rows), rows[..., -1], middle)
    return middle.reshape(kept) if keepdims else middle


def nanmedian(x, /, axis=None, *, keepdims=False):
    """median() of the elements that are not NaN; NaN where there are none.

    >>> nanmedian(asarray([5.0, nan, 1.0])).item()
    3.0
    """
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


# --- Without NaN -----------------------------------------------------------------------------------------------------


def _odd(x):
    return x != x if x.dtype.kind in "fc" else None


def _replaced(x, value):
    odd = _odd(x)
    return x if odd is None else _where(odd, _number(x, value), x)


def nansum(x, /, axis=None, *, dtype=None, keepdims=False):
    """sum() in which NaN counts as 0.

    >>> nansum(asarray([1.0, nan])).item()
    1.0
    """
    return _ops["sum"](_replaced(x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(x, /, axis=None, *, dtype=None, keepdims=False):
    """prod() in which NaN counts as 1.

    >>> nanprod(asarray([2.0, nan])).item()
    2.0
    """
    return _ops["prod"](_replaced(x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x, /, axis=None, dtype=None):
    """cumsum() in which NaN counts as 0.

    >>> nancumsum(asarray([1.0, nan, 2.0])).tolist()
    [1.0, 1.0, 3.0]
    """
    from drupe.array._order import cumsum

    return cumsum(_replaced(x, 0), axis, dtype)


def nancumprod(x, /, axis=None, dtype=None):
    """cumprod() in which NaN counts as 1.

    >>> nancumprod(asarray([1.0, nan, 2.0])).tolist()
    [1.0, 1.0, 2.0]
    """
    from drupe.array._order import cumprod

    return cumprod(_replaced(x, 1), axis, dtype)


def _nan_extreme(x, axis, keepdims, name, beyond):
    odd = _odd(x)
    if odd is None:
        return _ops[name](x, axis=axis, keepdims=keepdims)
    found = _ops[name](_where(odd, _number(x, beyond), x), axis=axis, keepdims=keepdims)
    return _where(_ops["all"](odd, axis=axis, keepdims=keepdims), _number(x, math.nan), found)


def nanmax(x, /, axis=None, *, keepdims=False):
    """max() of the elements that are not NaN; NaN where there are none.

    >>> nanmax(asarray([1.0, nan])).item()
    1.0
    """
    return _nan_extreme(x, axis, keepdims, "max", -math.inf)


def nanmin(x, /, axis=None, *, keepdims=False):
    """min() of the elements that are not NaN; NaN where there are none.

    >>> nanmin(asarray([1.0, nan])).item()
    1.0
    """
    return _nan_extreme(x, axis, keepdims, "min", math.inf)


def _nan_place(x, axis, keepdims, name, beyond, find):
    odd = _odd(x)
    if odd is None:
        return find(x, axis=axis, keepdims=keepdims)
    if _ops["any"](_ops["all"](odd, axis=axis)).item():
        raise ValueError(f"{name}: NaNs alone have no extreme")
    return find(_where(odd, _number(x, beyond), x), axis=axis, keepdims=keepdims)


def nanargmax(x, /, axis=None, *, keepdims=False):
    """argmax() of the elements that are not NaN. Waits; rows of NaNs alone are a ValueError.

    >>> nanargmax(asarray([1.0, nan, 2.0])).item()
    2
    """
    from drupe.array._order import argmax

    return _nan_place(x, axis, keepdims, "nanargmax", -math.inf, argmax)


def nanargmin(x, /, axis=None, *, keepdims=False):
    """argmin() of the elements that are not NaN. Waits; rows of NaNs alone are a ValueError.

    >>> nanargmin(asarray([nan, 1.0, 2.0])).item()
    1
    """
    from drupe.array._order import argmin

    return _nan_place(x, axis, keepdims, "nanargmin", math.inf, argmin)


def nanmean(x, /, axis=None, *, keepdims=False):
    """mean() of the elements that are not NaN; NaN where there are none.

    >>> nanmean(asarray([1.0, nan, 3.0])).item()
    2.0
    """
    from drupe.array import mean

    odd = _odd(x)
    if odd is None:
        return mean(x, axis=axis, keepdims=keepdims)
    count = _ops["sum"](_ops["logical_not"](odd), axis=axis, keepdims=keepdims).astype(x.dtype)
    return nansum(x, axis, keepdims=keepdims) / count


def nanvar(x, /, axis=None, *, correction=0.0, ddof=None, keepdims=False):
    """var() of the elements that are not NaN; NaN where no more than `correction` (NumPy's name: ddof) of them are.

    >>> nanvar(asarray([1.0, nan, 3.0])).item()
    1.0
    """
    from drupe.array import var

    correction = correction if ddof is None else ddof
    odd = _odd(x)
    if odd is None:
        return var(x, axis=axis, correction=correction, keepdims=keepdims)
    apart = _where(odd, _number(x, 0), x - nanmean(x, axis, keepdims=True))
    total = _ops["sum"](_ops["square"](apart), axis=axis, keepdims=keepdims)
    count = _ops["sum"](_ops["logical_not"](odd), axis=axis, keepdims=keepdims).astype(x.dtype) - correction
    return total / _where(count > 0, count, math.nan)


def nanstd(x, /, axis=None, *, correction=0.0, ddof=None, keepdims=False):
    """The root of nanvar().

    >>> nanstd(asarray([1.0, nan, 3.0])).item()
    1.0
    """
    return _ops["sqrt"](nanvar(x, axis, correction=correction, ddof=ddof, keepdims=keepdims))


# --- Others ----------------------------------------------------------------------------------------------------------


def cov(m, /, y=None, rowvar=True, bias=False, ddof=None):
    """Covariances of variables, one a row of m (rowvar=False: a column) and of y, if it is given, as a matrix.

    Divided by n - 1, or n if `bias`, or n - ddof. One variable gives an array without dimensions.

    >>> cov(asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    from drupe.array import concat, mean

    if ddof is not None and ddof != int(ddof):
        raise ValueError("cov: ddof is an integer")
    rows = [_variables(part, rowvar) for part in ([m] if y is None else [m, y])]
    x = concat(rows) if len(rows) > 1 else rows[0]
    n = x.shape[1] - (ddof if ddof is not None else 0 if bias else 1)
    x = x - mean(x, axis=1, keepdims=True)
    other = _ops["conj"](x) if x.dtype.kind == "c" else x
    found = _engine.matmul(x, other.T) / (n if n > 0 else math.nan)
    return found.reshape(()) if found.size == 1 else found


def _variables(m, rowvar):
    if m.ndim > 2:
        raise ValueError("cov: arrays have two dimensions at most")
    x = m.reshape((1, -1)) if m.ndim < 2 else m if rowvar or m.shape[0] == 1 else m.T
    return x.astype(_float_type(x), copy=False)


def corrcoef(x, /, y=None, rowvar=True):
    """Correlations of variables as cov() takes them, from -1 to 1, as a matrix.

    >>> corrcoef(asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    n = c.shape[0]
    spread = _ops["sqrt"](c.reshape((-1,))[::n + 1])
    if spread.dtype.kind == "c":
        spread = _ops["real"](spread)
    c = c / spread.reshape((-1, 1)) / spread
    return c if c.dtype.kind == "c" else _ops["minimum"](_ops["maximum"](c, -1.0), 1.0)


# --- Counts in bins --------------------------------------------------------------------------------------------------


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
    places = _where(x == edges[-1], count - 1, places)
    counts = _engine._bincount(places, weights, count)
    if density:
        widths = edges[1:] - edges[:-1]
        counts = counts / widths / _ops["sum"](counts)
    return counts, edges


def interp(x, xp, fp, /, left=None, right=None):
    """What lies at each x (an array or a number) on the lines through the points (xp, fp), as float64 of x's shape.

    xp and fp have one dimension and the same size, and xp rises. In front of the first point it is `left`, fp[0] unless
    given, and behind the last one `right`. NaN at NaN.

    >>> interp(asarray([0.5, 9.0]), asarray([0.0, 1.0]), asarray([10.0, 20.0])).tolist()
    [15.0, 20.0]
    """
    from drupe.array._sets import _beside

    if not isinstance(x, _engine.Array):
        x = _beside(fp, x)
    if not fp.size:
        raise ValueError("interp: there must be one point at least")
    left = fp[0].item() if left is None else left
    right = fp[-1].item() if right is None else right
    return _engine._interp(x, xp, fp, left, right)
