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


def cov(m, /, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    """Covariances of variables, one a row of m (rowvar=False: a column) and of y, if it is given, as a matrix.

    Divided by n - 1, or n if `bias`, or n - ddof. One variable gives an array without dimensions. fweights: integers,
    how often each observation counts; aweights: numbers, how much each counts; waits for their sums then. ValueError:
    weights that are not as many as observations, or negative.

    >>> cov(asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    from drupe.array import concat, mean

    if ddof is not None and ddof != int(ddof):
        raise ValueError("cov: ddof is an integer")
    rows = [_variables(part, rowvar) for part in ([m] if y is None else [m, y])]
    x = concat(rows) if len(rows) > 1 else rows[0]
    ddof = ddof if ddof is not None else 0 if bias else 1
    if fweights is not None or aweights is not None:
        weights, n = _weights(x, fweights, aweights, ddof)
        x = x - _ops["sum"](x * weights, axis=1, keepdims=True) / _ops["sum"](weights)
        other = x * weights
    else:
        n = x.shape[1] - ddof
        other = x = x - mean(x, axis=1, keepdims=True)
    other = _ops["conj"](other) if x.dtype.kind == "c" else other
    found = _engine.matmul(x, other.T) / (n if n > 0 else math.nan)
    return found.reshape(()) if found.size == 1 else found


def _weights(x, fweights, aweights, ddof):
    """How much each observation counts, and what cov() divides by."""
    parts = []
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        part = given if isinstance(given, _engine.Array) else _engine.asarray(given, queue=x.queue)
        if part.shape != x.shape[1:] or _ops["any"](part < 0).item():
            raise ValueError(f"cov: {name} are as many as observations, in one dimension, and none negative")
        if name == "fweights" and part.dtype.kind not in "biu":
            raise TypeError(f"cov: fweights are integers, not {part.dtype}")
        parts.append(part.astype(_ops["real"](x).dtype if x.dtype.kind == "c" else x.dtype))
    weights = parts[0] if len(parts) == 1 else parts[0] * parts[1]
    total = _ops["sum"](weights).item()
    if aweights is None or ddof == 0:
        return weights, total - ddof
    return weights, total - ddof * _ops["sum"](weights * parts[-1]).item() / total


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
