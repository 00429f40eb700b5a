"""Comparisons of whole arrays, with NumPy's names. The results are arrays: nothing waits before a truth is asked."""
from drupe import _engine
from drupe.array._arguments import need

_ops = _engine.operations


def isclose(x1, x2, /, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether both are equal within a tolerance: |x1 - x2| <= atol + rtol*|x2|.

    x1, x2: arrays or numbers that broadcast, one array at least. equal_nan: whether NaN is close to NaN. Returns bools
    of their common shape.

    >>> da.isclose(da.asarray([1.0, 2.0]), da.asarray([1.0 + 1e-9, 2.1])).tolist()
    [True, False]
    """
    if not isinstance(x1, _engine.Array):
        need("isclose", x2)
        x1 = _engine.asarray(x1, queue=x2.queue)
    need("isclose", x1)
    if not isinstance(x2, _engine.Array):
        x2 = _engine.asarray(x2, queue=x1.queue)
    equal = x1 == x2
    if x1.dtype.kind == x2.dtype.kind == "b":
        return equal
    default = _engine.empty(0, queue=x1.queue).dtype
    x1, x2 = (x if x.dtype.kind in "fc" else x.astype(default) for x in (x1, x2))
    near = _ops["less_equal"](_ops["abs"](x1 - x2), _ops["abs"](x2) * rtol + atol)
    near = _ops["logical_and"](near, _ops["isfinite"](x2))
    close = _ops["logical_or"](equal, near)
    if equal_nan:
        close = _ops["logical_or"](close, _ops["logical_and"](_ops["isnan"](x1), _ops["isnan"](x2)))
    return close


def allclose(x1, x2, /, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements of both are equal within a tolerance, as isclose() has it.

    x1, x2: arrays or numbers that broadcast, one array at least. Returns a bool in an array without dimensions, whose
    truth, bool() or `if`, waits.

    >>> bool(da.allclose(da.asarray([1.0, 2.0]), da.asarray([1.0, 2.0 + 1e-9])))
    True
    """
    return _ops["all"](isclose(x1, x2, rtol, atol, equal_nan))


def array_equal(x1, x2, /, equal_nan=False):
    """Whether both have the same shape and equal elements.

    x1, x2: arrays, or what asarray() takes, one array at least. equal_nan: whether NaN is equal to NaN. Returns a bool
    in an array without dimensions, whose truth waits.

    >>> bool(da.array_equal(da.asarray([1, 2]), da.asarray([1, 2])))
    True
    """
    x1, x2 = _pair("array_equal", x1, x2)
    if x1.shape != x2.shape:
        return _engine.full((), False, queue=x1.queue)
    return _all_equal(x1, x2, equal_nan)


def array_equiv(x1, x2, /):
    """Whether both broadcast with each other and have equal elements then.

    x1, x2: arrays, or what asarray() takes, one array at least. Returns a bool in an array without dimensions.

    >>> bool(da.array_equiv(da.asarray([1, 1]), da.asarray(1)))
    True
    """
    from drupe.array import broadcast_shapes

    x1, x2 = _pair("array_equiv", x1, x2)
    try:
        broadcast_shapes(x1.shape, x2.shape)
    except ValueError:
        return _engine.full((), False, queue=x1.queue)
    return _all_equal(x1, x2, False)


def _pair(function, x1, x2):
    if not isinstance(x1, _engine.Array):
        need(function, x2)
        return _engine.asarray(x1, queue=x2.queue), x2
    return x1, x2 if isinstance(x2, _engine.Array) else _engine.asarray(x2, queue=x1.queue)


def _all_equal(x1, x2, equal_nan):
    equal = x1 == x2
    if equal_nan and x1.dtype.kind in "fc" and x2.dtype.kind in "fc":
        equal = _ops["logical_or"](equal, _ops["logical_and"](_ops["isnan"](x1), _ops["isnan"](x2)))
    return _ops["all"](equal)
