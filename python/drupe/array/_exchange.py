"""Arrays of other libraries and processes: DLPack, NumPy's __array__(), pickle.

What shares memory shares it both ways: writes are seen on both sides. An export waits for the work that was queued on
the array; whoever looks at the memory after more was queued waits for the queue first."""
from drupe import _engine

_CPU, _ONE_API = 1, 14  # device types of DLPack


# --- DLPack --------------------------------------------------------------------------------------------------

def dlpack_device(x):
    """The pair that DLPack calls the array's device: host memory, or kDLOneAPI and the number of the device.

    DLPack's pointers of OpenCL are cl_mem objects, and these arrays have addresses of shared virtual memory, as the
    unified shared memory of oneAPI has. Whoever takes those asks a runtime about them, which does not know these."""
    return (_CPU, 0) if _engine._host_reaches(x) else (_ONE_API, x.device.get_device_id())


def _wanted(dl_device):
    if dl_device is None:
        return None
    try:
        kind, number = dl_device
        return int(kind), int(number)
    except (TypeError, ValueError):
        raise TypeError(f"dl_device is a pair of a device type and a number, not {dl_device!r}") from None


def _on_host(x):
    """A copy of x where the host can address it."""
    try:
        return x.to_device("host")
    except _engine.DeviceNotFoundError:  # a filter has hidden it
        pass
    for kind in ("host", "shared"):
        try:
            copy = _engine.empty_like(x, usm_type=kind)
        except _engine.UnsupportedError:
            continue
        copy[...] = x
        return copy
    return None


def dlpack(x, stream, max_version, dl_device, copy):
    """Array.__dlpack__()."""
    if stream is not None:
        raise ValueError("stream must be None: an export waits for the work on the array")
    wanted, here = _wanted(dl_device), dlpack_device(x)
    copied = bool(copy)
    if wanted not in (None, here, (_CPU, 0)):
        raise BufferError(f"x is on DLPack's device {here} and can be copied to {(_CPU, 0)}, not to {wanted}")
    versioned = max_version is not None and max_version[0] >= 1
    if here[0] != _CPU and wanted == (_CPU, 0):
        if copy is not None and not copy:
            raise BufferError(f"copy=False, but the host cannot address the memory of {x.device}")
        here, copied, on_host = wanted, True, _on_host(x)
        if on_host is None:  # no device here has memory that the host can address: NumPy has
            return x.asnumpy().__dlpack__(**({"max_version": max_version} if versioned else {}))
        x = on_host
    elif copy:
        x = x.copy()
    return _engine._dlpack_export(x, versioned, copied, *here)


def _capsule(x, elsewhere, copy):
    """The capsule of a producer that may know less than the newest version."""
    options = {"max_version": (1, 3)}
    if elsewhere:
        options["dl_device"] = (_CPU, 0)
    if copy is not None and elsewhere:
        options["copy"] = copy
    try:
        return x.__dlpack__(**options)
    except TypeError:
        if elsewhere:
            raise BufferError(f"the elements of {type(x).__name__} are on another device, and it gives no copy in host "
                              "memory: make one with its own functions first") from None
    return x.__dlpack__()


def _own(x, device, copy):
    """from_dlpack() of an array of ours."""
    if device is not None:
        moved = x.to_device(device)
        if moved is not x:
            if copy is not None and not copy:
                raise BufferError("copy=False, but another device needs a copy")
            return moved
    return x.copy() if copy else x[...]


def _import(capsule, copy):
    """On the default device if it is a CPU, else on the host: where the elements are."""
    default = _engine.empty(0).device
    shares = default.has_aspect_usm_system_allocations or copy
    device = default if str(default.device_type) == "cpu" and shares else "host"
    number = -1 if copy is None else int(bool(copy))
    try:
        return _engine._dlpack_import(capsule, device, number)
    except _engine.DeviceNotFoundError:  # a filter has hidden the host
        return _engine._dlpack_import(capsule, default, number)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array of the elements of an array of any library with __dlpack__(), such as NumPy, PyTorch and JAX.

    x: an object with __dlpack__() and __dlpack_device__(), any shape, elements of a data type of drupe.array. device: a
    Device, a filter or a Queue; None for where the elements are: the default device if that is a CPU, else the device
    "host". copy: None shares memory with x where the device can address it, and copies elsewhere; True copies; False
    never does. Shared memory is written on both sides. Work on the array is queued: wait for its queue before x is
    read, and do not write x while queued work reads it. Elements that are read-only are copied.
    BufferError: the elements cannot be taken, or not without a copy. TypeError: x has no __dlpack__().

    >>> import numpy
    >>> x = da.from_dlpack(numpy.arange(3.))
    >>> (x + 1).tolist()
    [1.0, 2.0, 3.0]
    """
    if isinstance(x, _engine.Array):
        return _own(x, device, copy)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack() takes an array with __dlpack__(), not {type(x).__name__}: asarray() takes "
                        "sequences and buffers")
    elsewhere = int(x.__dlpack_device__()[0]) not in (_CPU, 3, 11)  # host memory, that of CUDA and ROCm among it
    if elsewhere and copy is not None and not copy:
        raise BufferError(f"the elements of {type(x).__name__} are on another device, and copy=False")
    capsule = _capsule(x, elsewhere, copy)
    if device is None:
        return _import(capsule, copy)
    return _engine._dlpack_import(capsule, device, -1 if copy is None else int(bool(copy)))


def shared(obj, dtype, usm_type, queue):
    """asarray(obj, copy=False) of what is no array of ours: over the memory of a buffer, or of a producer of DLPack."""
    import numpy

    try:
        if not hasattr(obj, "__dlpack__"):
            obj = numpy.asarray(memoryview(obj))
        x = from_dlpack(obj, device=queue, copy=False)
    except (BufferError, TypeError) as error:
        raise ValueError(f"copy=False, but this has to be copied to the device: {error}") from None
    if dtype is not None and x.dtype != dtype or usm_type not in (None, "host"):
        raise ValueError("copy=False, but another dtype or usm_type needs a copy")
    return x


# --- NumPy -----------------------------------------------------------------------------------------------------

def numpys(x, dtype, copy):
    """Array.__array__(): the elements in NumPy without a copy, where the host can address them."""
    import numpy

    if not _engine._host_reaches(x):
        raise TypeError(f"an array on {x.device} is never copied to the host implicitly: pass its values, x.asnumpy() "
                        "or drupe.array.asnumpy(x)")
    view = numpy.asarray(memoryview(x))
    if dtype is not None and view.dtype != dtype:
        if copy is not None and not copy:
            raise ValueError(f"copy=False, but elements of {x.dtype} have to be copied to become {numpy.dtype(dtype)}")
        return view.astype(dtype)
    return view.copy() if copy else view


# --- Pickle ----------------------------------------------------------------------------------------------------

def restore(elements, dtype, shape, usm_type, place):
    """An array of bytes in C order, on the device that the filter names if there is one, else on the default."""
    try:
        x = _engine.empty(shape, dtype, device=place, usm_type=usm_type)
    except (_engine.DeviceNotFoundError, _engine.UnsupportedError):
        x = _engine.empty(shape, dtype)
    if x.size:
        x.usm_data.copy_from_host(elements)
    return x


def reduce(x, protocol):
    """Array.__reduce_ex__(): the elements travel as bytes, outside of the pickle where its reader wants that."""
    import pickle

    direct = protocol >= 5 and x.is_contiguous and _engine._host_reaches(x)
    values = memoryview(x if direct else x.asnumpy())
    elements = pickle.PickleBuffer(values) if protocol >= 5 else values.tobytes()
    return restore, (elements, x.dtype, x.shape, x.usm_type, x.device.filter_string)
