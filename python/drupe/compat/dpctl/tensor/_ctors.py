"""Making arrays."""
from drupe import _engine
from drupe import array as da
from drupe.compat import NotProvided
from drupe.compat.dpctl.memory import as_usm_memory
from drupe.compat.dpctl.tensor._calling import ahead, array_behind, behind, call, ordered, view
from drupe.compat.dpctl.tensor._device import Device, normalize_queue_device
from drupe.compat.dpctl.tensor._dlpack import DLDeviceType, dldevice_to_sycl_device
from drupe.compat.dpctl.tensor._usmarray import default_float, usm_ndarray

__all__ = ["arange", "asarray", "asnumpy", "astype", "can_cast", "copy", "empty", "empty_like", "eye", "from_dlpack",
           "from_numpy", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like", "to_numpy", "tril", "triu",
           "zeros", "zeros_like"]


def _place(device, sycl_queue, usm_type="device"):
    return {"queue": normalize_queue_device(sycl_queue, device)._drupe, "usm_type": usm_type or "device"}


def _plain_order(order):
    if order not in ("C", "F"):
        raise ValueError(f"order is 'C' or 'F', not {order!r}")
    return order


def _made(function, shape, dtype, order, device, usm_type, sycl_queue, *value):
    place = _place(device, sycl_queue, usm_type)
    if dtype is None and not value:
        dtype = default_float(place["queue"].device)
    return ahead(function(shape, *map(behind, value), dtype=dtype, order=_plain_order(order), **place))


def empty(shape, *, dtype=None, order="C", device=None, usm_type="device", sycl_queue=None):
    """An array whose elements nobody has written."""
    return _made(da.empty, shape, dtype, order, device, usm_type, sycl_queue)


def zeros(shape, *, dtype=None, order="C", device=None, usm_type="device", sycl_queue=None):
    """An array of zeros."""
    return _made(da.zeros, shape, dtype, order, device, usm_type, sycl_queue)


def ones(shape, *, dtype=None, order="C", device=None, usm_type="device", sycl_queue=None):
    """An array of ones."""
    return _made(da.ones, shape, dtype, order, device, usm_type, sycl_queue)


def full(shape, fill_value, *, dtype=None, order="C", device=None, usm_type=None, sycl_queue=None):
    """An array of one value: a number, or an array that broadcasts to the shape."""
    value = behind(fill_value)
    if not isinstance(value, _engine.Array):
        return _made(da.full, shape, dtype, order, device, usm_type, sycl_queue, fill_value)
    if device is None and sycl_queue is None:
        sycl_queue = ahead(value.queue)
    result = _made(da.empty, shape, dtype or str(value.dtype), order, device, usm_type or value.usm_type, sycl_queue)
    result._drupe[...] = value
    return result


def _like(function, x, dtype, order, device, usm_type, sycl_queue, *value):
    array = array_behind(x)
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order is one of C, F, A, K, not {order!r}")
    if device is None and sycl_queue is None:
        sycl_queue = ahead(array.queue)
    place = _place(device, sycl_queue, usm_type or array.usm_type)
    columns = order == "F" or order in "AK" and array.flags["f_contiguous"] and not array.flags["c_contiguous"]
    return ahead(function(array, *map(behind, value), dtype=dtype, order="F" if columns else "C", **place))


def empty_like(x, /, *, dtype=None, order="K", device=None, usm_type=None, sycl_queue=None):
    """An array of the shape and type of another one, whose elements nobody has written."""
    return _like(da.empty_like, x, dtype, order, device, usm_type, sycl_queue)


def zeros_like(x, /, *, dtype=None, order="K", device=None, usm_type=None, sycl_queue=None):
    """Zeros of the shape and type of another array."""
    return _like(da.zeros_like, x, dtype, order, device, usm_type, sycl_queue)


def ones_like(x, /, *, dtype=None, order="K", device=None, usm_type=None, sycl_queue=None):
    """Ones of the shape and type of another array."""
    return _like(da.ones_like, x, dtype, order, device, usm_type, sycl_queue)


def full_like(x, /, fill_value, *, dtype=None, order="K", device=None, usm_type=None, sycl_queue=None):
    """One value, in the shape and type of another array."""
    return _like(da.full_like, x, dtype, order, device, usm_type, sycl_queue, fill_value)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None, usm_type="device", sycl_queue=None):
    """Numbers from start up to before stop."""
    return call(da.arange, start, stop, step, dtype=dtype, **_place(device, sycl_queue, usm_type))


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True, sycl_queue=None, usm_type="device"):
    """`num` numbers at equal distances."""
    return call(da.linspace, start, stop, num, dtype=dtype, endpoint=endpoint, **_place(device, sycl_queue, usm_type))


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, order="C", device=None, usm_type="device", sycl_queue=None):
    """Ones on a diagonal."""
    place = _place(device, sycl_queue, usm_type)
    return call(da.eye, n_rows, n_cols, k=k, dtype=dtype or default_float(place["queue"].device),
                order=_plain_order(order), **place)


def _of_interface(obj):
    """An array over the memory that an object tells of."""
    told = obj.__sycl_usm_array_interface__
    strides = told.get("strides")
    before = sum((length - 1) * -stride for length, stride in zip(told["shape"], strides or ()) if stride < 0)
    memory = as_usm_memory(obj)  # from its lowest element on
    array = usm_ndarray(told["shape"], dtype=told["typestr"], strides=strides, buffer=memory, offset=before)
    array.flags.writable = not told["data"][1]
    return array


def _by_columns(obj):
    """Whether the elements of NumPy's array lie column by column: they lie so in the copy."""
    flags = getattr(obj, "flags", None)
    return hasattr(obj, "__array_interface__") and flags["F_CONTIGUOUS"] and not flags["C_CONTIGUOUS"]


def asarray(obj, /, *, dtype=None, device=None, copy=None, usm_type=None, sycl_queue=None, order="K"):
    """An array of an array, of USM memory, of NumPy's array, or of numbers in sequences."""
    source = behind(obj)
    if not isinstance(source, _engine.Array) and hasattr(obj, "__sycl_usm_array_interface__"):
        obj = _of_interface(obj)
        source = obj._drupe
    ours = isinstance(source, _engine.Array)
    if order in ("A", "K") and not ours and _by_columns(source):
        order = "F"
    options = {"copy": copy, "dtype": dtype, "usm_type": usm_type}
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order is one of C, F, A, K, not {order!r}")
    if order in ("C", "F"):
        options["order"] = order
    if device is not None or sycl_queue is not None or not ours and not _has_arrays(source):
        options["queue"] = normalize_queue_device(sycl_queue, device)._drupe
    return _same_or(obj, da.asarray(source, **options))


def _same_or(obj, found):
    """The array that was given where nothing had to be done, else a new one."""
    return obj if isinstance(obj, usm_ndarray) and found is obj._drupe else ahead(found)


def _has_arrays(obj):
    return isinstance(obj, (list, tuple)) and any(isinstance(one, _engine.Array) or _has_arrays(one) for one in obj)


def from_numpy(np_ary, /, *, device=None, usm_type="device", sycl_queue=None):
    """A copy of NumPy's array."""
    found = da.from_numpy(np_ary, **_place(device, sycl_queue, usm_type))
    return ahead(ordered(found, "F" if _by_columns(np_ary) else "K"))


def from_dlpack(x, /, *, device=None, copy=None):
    """An array of the elements of an array of any library with __dlpack__()."""
    if isinstance(device, tuple):
        if device[0] != DLDeviceType.kDLOneAPI:
            raise NotProvided(f"from_dlpack() gives arrays on a device of SYCL, not on {device!r}: write asnumpy(x) "
                              "for an array of the host")
        device = dldevice_to_sycl_device(device)
    where = None if device is None else Device.create_device(device).sycl_queue._drupe
    return view(lambda array: da.from_dlpack(behind(array), device=where, copy=copy), x)


def to_numpy(usm_ary, /):
    """The elements in NumPy."""
    return array_behind(usm_ary).asnumpy()


def asnumpy(usm_ary):
    """The elements in NumPy."""
    return array_behind(usm_ary).asnumpy()


def copy(usm_ary, /, *, order="K"):
    """A copy."""
    array = array_behind(usm_ary)
    return ahead(ordered(da.copy(array, order=order) if order in ("C", "K") else da.copy(array), order))


def can_cast(from_, to, /, *, casting="safe"):
    """Whether values of a type, or of an array, may be converted: by NumPy's rules."""
    import numpy

    def type_of(one):
        found = behind(one)
        return numpy.dtype(str(found.dtype)) if isinstance(found, _engine.Array) else numpy.dtype(found)

    return numpy.can_cast(type_of(from_), type_of(to), casting=casting)


def astype(usm_ary, newdtype, /, *, order="K", casting="unsafe", copy=True, device=None):
    """The array with another type of elements."""
    array = original = array_behind(usm_ary)
    if not can_cast(usm_ary, newdtype or "float64", casting=casting):
        raise TypeError(f"elements of {array.dtype} do not become {newdtype} by the rule {casting!r}")
    if device is not None:
        array = array.to_device(Device.create_device(device).sycl_queue._drupe)
    if "complex" in str(array.dtype) and "complex" not in str(usm_ndarray._of(da.zeros(0, dtype=newdtype)).dtype):
        array = array.real  # the imaginary parts are left away, as dpctl does
    found = ordered(da.astype(array, newdtype, copy=copy), order)
    return usm_ary if found is original and isinstance(usm_ary, usm_ndarray) else ahead(found)


def tril(x, /, *, k=0):
    """The lower triangle of matrices."""
    return call(da.tril, x, k=k)


def triu(x, /, *, k=0):
    """The upper triangle of matrices."""
    return call(da.triu, x, k=k)


def meshgrid(*arrays, indexing="xy"):
    """Coordinates of a grid, one array for each axis."""
    return list(call(da.meshgrid, *arrays, indexing=indexing))
