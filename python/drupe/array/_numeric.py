"""Functions with NumPy's names that combine elements of an array with each other."""
import math

from drupe import _engine
from drupe.array._arguments import need
from drupe.array._axes import one_axis, some_axes

_ops = _engine.operations


def _real(x):
    return x if x.dtype.kind in "fc" else x.astype(_engine.empty(0, queue=x.queue).dtype)


def average(x, /, axis=None, weights=None, returned=False, *, keepdims=False):
    """Mean over the axes, of elements that count as often as their weights say.

    x: an array of any numeric type. axis: one, several or None for all. weights: an array of x's shape, or with one
    dimension along a single axis, or None. returned: whether the sums of the weights are wanted, too: a tuple then.
    Returns floating-point numbers; NaN where the weights add up to 0.

    >>> da.average(da.asarray([1.0, 2.0]), weights=da.asarray([3.0, 1.0])).item()
    1.25
    """
    from drupe.array import mean

    need("average", x)
    if weights is None:
        found = mean(x, axis=axis, keepdims=keepdims)
        if not returned:
            return found
        return found, _engine.full_like(found, x.size / found.size if found.size else 0)
    need("average", weights)
    if weights.shape != x.shape:
        if axis is None or isinstance(axis, (tuple, list)) or weights.ndim != 1 or \
                weights.shape[0] != x.shape[one_axis(axis, x.ndim)]:
            raise ValueError(f"average: weights of shape {weights.shape} fit neither the array's shape {x.shape} nor "
                             "one of its axes")
        weights = weights.reshape((-1,) + (1,) * (x.ndim - 1 - one_axis(axis, x.ndim)))
    weights = _engine.broadcast_to(_real(weights), x.shape)
    total = _ops["sum"](weights, axis=axis, keepdims=keepdims)
    found = _ops["sum"](x * weights, axis=axis, keepdims=keepdims) / total
    return (found, total.astype(found.dtype, copy=False)) if returned else found


def ptp(x, /, axis=None, *, keepdims=False):
    """Distance between the largest and the smallest element over the axes.

    x: an array of a real type, not empty. axis: one, several or None for all.

    >>> da.ptp(da.asarray([3, 9, 4])).item()
    6
    """
    need("ptp", x)
    return _ops["subtract"](_ops["max"](x, axis=axis, keepdims=keepdims), _ops["min"](x, axis=axis, keepdims=keepdims))


def reduce_hypot(x, /, axis=None, *, dtype=None, keepdims=False):
    """Root of the sum of squares over the axes.

    x: an array of a real type. axis: one, several or None for all. dtype: of the result, or None for the default float
    or x's own floating-point type. Large numbers do not overflow on the way.

    >>> da.reduce_hypot(da.asarray([3.0, 4.0])).item()
    5.0
    """
    need("reduce_hypot", x)
    x = _real(x) if dtype is None else x.astype(dtype, copy=False)
    if x.size == 0:
        return _ops["sum"](x, axis=axis, keepdims=keepdims)
    largest = _ops["max"](_ops["abs"](x), axis=axis, keepdims=True)
    scale = _ops["where"](_ops["logical_and"](largest > 0, _ops["isfinite"](largest)), largest, 1.0)
    root = _ops["sqrt"](_ops["sum"](_ops["square"](x / scale), axis=axis, keepdims=True)) * scale
    return root if keepdims else _without(root, axis)


def logsumexp(x, /, axis=None, *, dtype=None, keepdims=False):
    """Logarithm of the sum of exponentials over the axes, without overflow on the way.

    x: an array of a real type. axis: one, several or None for all. dtype: of the result, or None for the default float
    or x's own floating-point type.

    >>> da.logsumexp(da.asarray([1000.0, 1000.0])).item()
    1000.6931471805599
    """
    need("logsumexp", x)
    x = _real(x) if dtype is None else x.astype(dtype, copy=False)
    if x.size == 0:
        return _ops["log"](_ops["sum"](x, axis=axis, keepdims=keepdims))
    largest = _ops["max"](x, axis=axis, keepdims=True)
    finite = _ops["where"](_ops["isfinite"](largest), largest, 0.0)
    total = _ops["log"](_ops["sum"](_ops["exp"](x - finite), axis=axis, keepdims=True)) + finite
    return total if keepdims else _without(total, axis)


def _without(x, axis):
    axes = some_axes(axis, x.ndim)
    return x.reshape(tuple(n for a, n in enumerate(x.shape) if a not in axes))


def ediff1d(x, /, to_end=None, to_begin=None):
    """Differences of neighbours in the flattened array, with other numbers before and behind them.

    x, to_end, to_begin: arrays. Returns an array with one dimension.

    >>> da.ediff1d(da.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    from drupe.array import concat, diff

    need("ediff1d", x)
    parts = [diff(x.reshape(-1)) if x.size else x.reshape(-1)]
    for extra, place in ((to_begin, 0), (to_end, len(parts) + 1)):
        if extra is not None:
            extra = extra if isinstance(extra, _engine.Array) else _engine.asarray(extra, queue=x.queue)
            parts.insert(place, extra.reshape(-1).astype(x.dtype, copy=False))
    return parts[0] if len(parts) == 1 else concat(parts)


def gradient(f, /, *varargs, axis=None, edge_order=1):
    """Slope along each axis: central differences inside, one-sided ones at the edges.

    f: an array, of two elements at least along each axis. varargs: the distance of neighbours: nothing for 1, a number
    for all axes, or for each axis a number or an array with the coordinates. axis: one, several or None for all.
    edge_order: 1 or 2, of the differences at the edges. Returns an array of f's shape, or a tuple of them for several
    axes. ValueError: too few elements, distances that do not fit.

    >>> da.gradient(da.asarray([1.0, 2.0, 4.0])).tolist()
    [1.0, 1.5, 2.0]
    """
    need("gradient", f)
    given = axis is not None
    axes = [one_axis(a, f.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))] if given else \
        list(range(f.ndim))
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is 1 or 2, not {edge_order!r}")
    if len(varargs) not in (0, 1, len(axes)):
        raise ValueError(f"gradient: {len(varargs)} distances for {len(axes)} axes")
    distances = [1.0] * len(axes) if not varargs else list(varargs) * (len(axes) if len(varargs) == 1 else 1)
    f = _real(f)
    slopes = tuple(_slope(f, a, h, edge_order) for a, h in zip(axes, distances))
    return slopes[0] if len(axes) == 1 else slopes


def _slope(f, axis, h, edge_order):
    length, whole = f.shape[axis], (slice(None),) * axis
    if length < edge_order + 1:
        raise ValueError(f"gradient needs {edge_order + 1} elements at least along each axis, and axis {axis} has "
                         f"{length}")

    def at(start, stop=None):
        return f[(*whole, slice(start, stop))]

    out = _engine._written_like(f)
    first, last, inside = (*whole, slice(0, 1)), (*whole, slice(-1, None)), (*whole, slice(1, -1))
    if not isinstance(h, _engine.Array) and not hasattr(h, "__len__"):
        out[inside] = (at(2) - at(0, -2)) / (2.0 * h)
        if edge_order == 1:
            out[first] = (at(1, 2) - at(0, 1)) / h
            out[last] = (at(-1) - at(-2, -1)) / h
        else:
            out[first] = (at(0, 1) * -1.5 + at(1, 2) * 2.0 - at(2, 3) * 0.5) / h
            out[last] = (at(-1) * 1.5 - at(-2, -1) * 2.0 + at(-3, -2) * 0.5) / h
        return out
    x = h if isinstance(h, _engine.Array) else _engine.asarray(h, queue=f.queue)
    if x.ndim != 1 or x.shape[0] != length:
        raise ValueError(f"gradient: coordinates of shape {x.shape} for an axis of size {length}")
    d = (x[1:] - x[:-1]).astype(f.dtype).reshape((-1,) + (1,) * (f.ndim - 1 - axis))
    a, b = d[:-1], d[1:]
    out[inside] = at(0, -2) * (-b / (a * (a + b))) + at(1, -1) * ((b - a) / (a * b)) + at(2) * (a / (b * (a + b)))
    if edge_order == 1:
        out[first] = (at(1, 2) - at(0, 1)) / d[:1]
        out[last] = (at(-1) - at(-2, -1)) / d[-1:]
    else:
        a, b = d[:1], d[1:2]
        out[first] = at(0, 1) * (-(2.0 * a + b) / (a * (a + b))) + at(1, 2) * ((a + b) / (a * b)) + \
            at(2, 3) * (-a / (b * (a + b)))
        a, b = d[-2:-1], d[-1:]
        out[last] = at(-3, -2) * (b / (a * (a + b))) + at(-2, -1) * (-(b + a) / (a * b)) + \
            at(-1) * ((2.0 * b + a) / (b * (a + b)))
    return out


def trapezoid(y, /, x=None, dx=1.0, axis=-1):
    """Integral along an axis by the rule of trapezoids.

    y: an array. x: the coordinates, an array with one dimension or of y's shape, or None for neighbours at a distance
    of dx. Returns an array without that axis.

    >>> da.trapezoid(da.asarray([1.0, 2.0, 3.0])).item()
    4.0
    """
    need("trapezoid", y)
    axis = one_axis(axis, y.ndim)
    whole = (slice(None),) * axis
    if x is not None:
        need("trapezoid", x)
        if x.ndim == 1:
            dx = (x[1:] - x[:-1]).reshape((-1,) + (1,) * (y.ndim - 1 - axis))
        else:
            dx = x[(*whole, slice(1, None))] - x[(*whole, slice(None, -1))]
    middle = (_real(y)[(*whole, slice(1, None))] + _real(y)[(*whole, slice(None, -1))]) / 2.0
    return _ops["sum"](middle * dx, axis=axis)


def polyval(p, x, /):
    """The polynomial with the coefficients p, the highest power first, at each element of x.

    p: an array with one dimension, or a sequence of numbers. x: an array of any shape. Returns an array of x's shape.

    >>> da.polyval([1, 0, 2], da.asarray([0, 1, 3])).tolist()
    [2, 3, 11]
    """
    need("polyval", x)
    coefficients = [p[i] for i in range(len(p))]
    if not coefficients:
        return _engine.zeros_like(x)
    total = _engine.zeros_like(x)
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


def _window(function, x1, x2):
    for x in (x1, x2):
        if x.ndim != 1 or x.size == 0:
            raise ValueError(f"{function} takes arrays with one dimension that are not empty, not of shape {x.shape}")


def convolve(x1, x2, /, mode="full"):
    """Sums of products of x1 with x2 reversed and moved along it.

    x1, x2: arrays with one dimension, not empty. mode: "full" (n + m - 1 numbers), "same" (as many as the longer one
    has) or "valid" (only where both overlap wholly). ValueError: another mode or shape. The shorter one decides how
    much work this is: an operation for each of its elements.

    >>> da.convolve(da.asarray([1, 2, 3]), da.asarray([0, 1])).tolist()
    [0, 1, 2, 3]
    """
    need("convolve", x1, x2)
    _window("convolve", x1, x2)
    long_, short = (x1, x2) if x1.size >= x2.size else (x2, x1)
    return _cut(_products(long_, short), long_.size, short.size, mode, "convolve")


def correlate(x1, x2, /, mode="valid"):
    """Sums of products of x1 with x2 moved along it.

    x1, x2: arrays with one dimension, not empty. mode: "valid", "same" or "full", as convolve() has them. Of complex
    numbers x2 is conjugated. ValueError: another mode or shape.

    >>> da.correlate(da.asarray([1, 2, 3]), da.asarray([0, 1]), "full").tolist()
    [1, 2, 3, 0]
    """
    need("correlate", x1, x2)
    _window("correlate", x1, x2)
    x2 = _ops["conj"](x2) if x2.dtype.kind == "c" else x2
    if x1.size >= x2.size:
        return _cut(_products(x1, x2[::-1]), x1.size, x2.size, mode, "correlate")
    if mode == "same":  # NumPy's begins elsewhere when the second is longer
        start = x1.size // 2
        return _products(x2[::-1], x1)[start:start + x2.size]
    return _cut(_products(x2[::-1], x1), x2.size, x1.size, mode, "correlate")


def _products(long_, short):
    from drupe.array import result_type

    n, m = long_.size, short.size
    out = _engine.zeros(n + m - 1, result_type(long_, short), queue=long_.queue, usm_type=long_.usm_type)
    for i in range(m):
        part = out[i:i + n]
        part += long_ * short[i]
    return out


def _cut(full, n, m, mode, function):
    if mode == "full":
        return full
    if mode == "same":
        start = (m - 1) // 2
        return full[start:start + n]
    if mode == "valid":
        return full[m - 1:n]
    raise ValueError(f'{function}: mode is "full", "same" or "valid", not {mode!r}')


def apply_along_axis(function, axis, x, /, *args, **options):
    """What a function makes of each part of x along an axis: function(part, ...) of arrays with one dimension.

    x: an array of one dimension at least. The function's results have one shape; their axes take the place of the axis.
    It is called once for each part, so that operations on whole arrays are much faster. ValueError: no parts.

    >>> da.apply_along_axis(da.max, 1, da.asarray([[1, 5], [4, 2]])).tolist()
    [5, 4]
    """
    from drupe.array import moveaxis, stack

    need("apply_along_axis", x)
    axis = one_axis(axis, x.ndim)
    last = moveaxis(x, axis, -1)
    outer = last.shape[:-1]
    rows = last.reshape((math.prod(outer), last.shape[-1]))
    if rows.shape[0] == 0:
        raise ValueError("apply_along_axis: an empty array has no parts to call the function with")
    results = [function(rows[i], *args, **options) for i in range(rows.shape[0])]
    results = [r if isinstance(r, _engine.Array) else _engine.asarray(r, queue=x.queue) for r in results]
    inner = results[0].shape
    whole = stack(results).reshape(outer + inner)
    return moveaxis(whole, tuple(range(len(outer), whole.ndim)), tuple(range(axis, axis + len(inner))))


def unwrap(x, /, discont=None, *, axis=-1, period=2 * math.pi):
    """Angles without jumps: where neighbours are further apart than half a period, whole periods are added.

    x: an array of a real type. discont: the smallest jump that is taken away, half a period without it. Returns an
    array of x's shape.

    >>> da.unwrap(da.asarray([0.0, 3.0, 6.0, 2.5]), period=6.0).tolist()
    [0.0, 3.0, 6.0, 8.5]
    """
    from drupe.array import concat, cumulative_sum, diff

    need("unwrap", x)
    axis = one_axis(axis, x.ndim)
    x = _real(x)
    apart = diff(x, axis=axis)
    half = period / 2
    shifted = _ops["remainder"](apart + half, period) - half
    shifted = _ops["where"](_ops["logical_and"](shifted == -half, apart > 0), half, shifted)
    correction = shifted - apart
    correction = _ops["where"](_ops["abs"](apart) < (half if discont is None else max(discont, half)), 0.0, correction)
    first = x[(slice(None),) * axis + (slice(0, 1),)]
    rest = x[(slice(None),) * axis + (slice(1, None),)] + cumulative_sum(correction, axis=axis)
    return concat([first, rest], axis=axis)

