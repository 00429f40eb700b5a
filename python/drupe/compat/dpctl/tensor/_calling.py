"""Between dpctl's arrays and Drupe's: a function of drupe.array is called with what stands behind the arguments, and
its results are put into dpctl's classes."""
import numbers

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


def operand(other, array):
    """What computes with an Array: another one, a number, or None for anything else. A scalar of NumPy has a type of
    its own in dpctl, unlike a number of Python, so it becomes an Array beside the other one."""
    found = behind(other)
    if isinstance(found, _engine.Array):
        return found
    if getattr(found, "shape", None) == () and hasattr(found, "dtype"):
        return _engine.asarray(found, queue=array.queue, usm_type=array.usm_type)
    return found if isinstance(found, numbers.Number) else None


def operands(*given):
    """Operands of a function, where one at least is an Array; what is none of them stays, and is refused there."""
    found = [behind(one) for one in given]
    array = next((one for one in found if isinstance(one, _engine.Array)), None)
    if array is None:
        return found
    made = [operand(one, array) for one in found]
    return [one if new is None else new for one, new in zip(found, made)]


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


def view(function, x, *args, **options):
    """The same of a function that gives views, which are read-only where the array is; a copy is not."""
    result = call(function, x, *args, **options)
    if not getattr(x, "_writable", True):
        base = x._drupe.usm_data._pointer
        for one in result if isinstance(result, (list, tuple)) else (result,):
            one._writable = one._drupe.usm_data._pointer != base
    return result


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
