"""Between dpctl's arrays and Drupe's: a function of drupe.array is called with what stands behind the arguments, and
its results are put into dpctl's classes."""
from drupe import _engine
from drupe.compat.dpctl._sycl_queue import SyclQueue

_ORDERS = ("C", "F", "A", "K")


def array_behind(x, what="an array"):
    """The Array behind a usm_ndarray."""
    if isinstance(x, _engine.Array):
        return x
    found = getattr(x, "_drupe", None)
    if not isinstance(found, _engine.Array):
        raise TypeError(f"{what} is a dpctl.tensor.usm_ndarray, not {type(x).__name__}")
    return found


def behind(obj):
    """What stands behind an argument: also in lists, tuples and slices."""
    found = getattr(obj, "_drupe", None)
    if found is not None:
        return found
    if type(obj) in (list, tuple):
        return type(obj)(map(behind, obj))
    if isinstance(obj, slice):
        return slice(behind(obj.start), behind(obj.stop), behind(obj.step))
    return obj


def ahead(result):
    """A result of drupe.array as dpctl's."""
    if isinstance(result, _engine.Array):
        from drupe.compat.dpctl.tensor._usmarray import usm_ndarray

        return usm_ndarray._of(result)
    if isinstance(result, _engine.DType):
        return result.dtype
    if isinstance(result, _engine.Queue):
        return SyclQueue._of(result)
    if isinstance(result, tuple):
        parts = map(ahead, result)
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return list(map(ahead, result)) if isinstance(result, list) else result


def call(function, *args, **options):
    """function(...) of drupe.array on dpctl's arguments."""
    return ahead(function(*map(behind, args), **{name: behind(value) for name, value in options.items()}))


def ordered(result, order):
    """An Array whose elements lie as `order` wants. Those of results lie row by row, which "K" and "A" leave."""
    if order not in _ORDERS:
        raise ValueError(f"order is one of {', '.join(_ORDERS)}, not {order!r}")
    return result if order != "F" or result.ndim < 2 else _engine.asarray(result, order="F")


def target(out, of=None):
    """The Array behind out=, which may be written, or None."""
    if out is None:
        return None
    found = array_behind(out, "out")
    if not getattr(out, "_writable", True):
        raise ValueError("the output array is read-only")
    return found


def put_into(result, out):
    """A result in out=, which has its shape and type; else the result itself."""
    if out is None:
        return ahead(result)
    found = target(out)
    if found.shape != result.shape:
        raise ValueError(f"out has the shape {found.shape}, and the result {result.shape}")
    if found.dtype != result.dtype:
        raise ValueError(f"out has the type {found.dtype}, and the result {result.dtype}")
    found[...] = result
    return out
