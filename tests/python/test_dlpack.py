"""DLPack, both ways: with NumPy, and with a producer and a consumer made of ctypes."""
import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

import drupe
import drupe.array as da

pytestmark = pytest.mark.usefixtures("arrays_are_dropped")
DTYPES = list(da.__array_namespace_info__().dtypes())
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


def some(dtype, shape=(2, 3)):
    """Elements that are exact in every type."""
    return (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)


def shares(x, a):
    return np.shares_memory(np.asarray(x), a)


# --- A producer and a consumer of DLPack without a library ------------------------------------------------------

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Plain(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
rename = ctypes.pythonapi.PyCapsule_SetName
rename.restype, rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
USED, USED_VERSIONED = b"used_dltensor", b"used_dltensor_versioned"


class Producer:
    """What PyTorch's tensors are to a consumer; `deleted` counts the calls of its deleter."""

    def __init__(self, values, *, versioned=True, flags=0, device=1, strides=True, **changes):
        self.values, self.deleted, self.asked = values, 0, None
        self.device, self.modern = device, versioned
        size = values.itemsize
        self.shape = (ctypes.c_int64 * max(values.ndim, 1))(*values.shape)
        self.strides = (ctypes.c_int64 * max(values.ndim, 1))(*[s // size for s in values.strides])
        tensor = Tensor(values.ctypes.data, device, 0, values.ndim, CODES[np.dtype(values.dtype).kind], 8 * size, 1,
                        self.shape, self.strides if strides else None, 0)
        for name, value in changes.items():
            setattr(tensor, name, value)
        self.deleter = DELETER(self.delete)
        function = ctypes.cast(self.deleter, ctypes.c_void_p)
        self.managed = Versioned(1, 3, None, function, flags, tensor) if versioned else Plain(tensor, None, function)

    lent = []  # a tensor keeps what it needs until it is deleted

    def delete(self, managed):
        self.deleted += 1
        self.lent.remove(self)

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **options):
        self.asked = options
        if not self.modern and options:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.lent.append(self)
        return new_capsule(ctypes.addressof(self.managed), b"dltensor_versioned" if self.modern else b"dltensor", None)


def consume(capsule, versioned=True):
    """The tensor of a capsule, and what tells its producer that it is not needed any more."""
    name = b"dltensor_versioned" if versioned else b"dltensor"
    address = pointer_of(capsule, name)
    managed = (Versioned if versioned else Plain).from_address(address)
    rename(capsule, USED_VERSIONED if versioned else USED)
    return managed, lambda: DELETER(managed.deleter)(address)


# --- DLPack: export ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("versioned", [True, False])
def test_a_capsule_describes_the_array(device, dtype, versioned):
    values = some(dtype, (3, 4))
    x = da.asarray(values, device=device)[::2, 1:]
    managed, release = consume(x.__dlpack__(max_version=(1, 0)) if versioned else x.__dlpack__(), versioned)
    tensor = managed.tensor
    assert (tensor.device, tensor.number) == x.__dlpack_device__() == (1, 0)
    assert (tensor.code, tensor.bits, tensor.lanes) == (CODES[values.dtype.kind], 8 * values.itemsize, 1)
    assert tensor.shape[:2] == [2, 3] and tensor.strides[:2] == [8, 1] and tensor.ndim == 2
    assert tensor.data + tensor.byte_offset == x._pointer
    if versioned:
        assert (managed.major, managed.minor, managed.flags) == (1, 3, 0)
    release()


def test_memory_lives_until_the_consumer_lets_go(device):
    x = da.full((1000,), 7, dtype="int32", device=device)
    managed, release = consume(x.__dlpack__(max_version=(1, 0)))
    used = drupe.memory.Pool(device).used
    seen = np.ctypeslib.as_array((ctypes.c_int32 * 1000).from_address(managed.tensor.data))
    del x
    gc.collect()
    others = [da.zeros(1000, dtype="int32", device=device) for _ in range(20)]
    for other in others:
        other.queue.wait()
    assert (seen == 7).all()
    del others, other
    thread = threading.Thread(target=release)  # ctypes gives up the GIL in it
    thread.start()
    thread.join()
    gc.collect()
    assert drupe.memory.Pool(device).used < used


def test_a_capsule_that_nobody_takes(device):
    x = da.ones(1000, device=device)
    used = drupe.memory.Pool(device).used
    for version in (None, (1, 0), (2, 5), (0, 8)):
        capsule = x.__dlpack__(max_version=version)
        assert ("versioned" in repr(capsule)) == (version is not None and version[0] > 0)
        del capsule
    del x
    gc.collect()
    assert drupe.memory.Pool(device).used < used


def test_numpy_shares_memory_by_dlpack(device):
    x = da.arange(12, device=device).reshape(3, 4)
    a = np.from_dlpack(x)
    assert a.tolist() == x.tolist() and shares(x, a)
    x *= 2
    x.queue.wait()
    assert a.tolist() == x.tolist()
    if a.flags.writeable:  # NumPy 1 makes all read-only
        a[1, 1] = -5
        assert int(x[1, 1]) == -5 and int((x + 1)[1, 1]) == -4


def test_what_an_export_is_asked_for(device):
    x = da.ones(3, device=device)
    managed, release = consume(x.__dlpack__(max_version=(1, 3), copy=True, dl_device=(1, 0)))
    assert managed.flags == 2 and managed.tensor.data != x._pointer
    release()
    managed, release = consume(x.__dlpack__(max_version=(1, 3), copy=False))
    assert managed.flags == 0 and managed.tensor.data == x._pointer
    release()
    with pytest.raises(BufferError, match=r"not to \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="pair"):
        x.__dlpack__(dl_device="cpu")
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(TypeError):
        x.__dlpack__(None)


@pytest.fixture
def gate(device):
    """A queue with work that has not begun until the event is set."""
    queue, opened = drupe.Queue(device), threading.Event()
    yield queue, opened
    opened.set()
    queue.wait()


@pytest.mark.parametrize("export", [lambda x: x.__dlpack__(), memoryview, np.asarray, np.from_dlpack, bytes])
def test_an_export_waits_for_the_work(device, gate, export):
    queue, opened = gate
    x = da.zeros(4, device=queue)
    queue.host_task(lambda: opened.wait(20))
    x += 1
    timer = threading.Timer(0.05, opened.set)
    timer.start()
    export(x)
    assert opened.is_set() and x.tolist() == [1] * 4
    timer.join()


# --- DLPack: import ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("versioned", [True, False])
def test_tensors_come_in(device, dtype, versioned):
    producer = Producer(some(dtype, (4, 6))[::2, ::3], versioned=versioned)
    x = da.from_dlpack(producer, device=device)
    assert x.dtype == dtype and x.shape == (2, 2) and x.tolist() == producer.values.tolist() and x.device == device
    assert (x + x).tolist() == (producer.values + producer.values).tolist()
    del x
    gc.collect()
    drupe.Queue(device).wait()
    assert producer.deleted == 1


def test_host_memory_is_shared():
    a = np.arange(6.).reshape(2, 3)
    x = da.from_dlpack(a, device="host")
    assert x.usm_type == "host" and shares(x, a) and x.device == drupe.Device("host")
    x += 1
    x[:, 0] = da.sum(x, axis=1)
    x.queue.wait()
    assert a.tolist() == [[6, 2, 3], [15, 5, 6]]
    a[0, 0] = 100
    assert float(x.max()) == 100
    back = da.from_dlpack(a[:, ::-1], device="host")  # negative strides
    assert back.tolist() == a[:, ::-1].tolist() and shares(back, a)


def test_memory_of_others_may_overlap():
    a = np.arange(100, dtype="float64")
    parts = [da.from_dlpack(part, device="host") for part in (a[40:60], a[10:50], a, a[50:], a[1::2], a[40:60])]
    for part in parts:
        part += 1
    parts[0].queue.wait()
    want = np.arange(100.)
    for part in (slice(40, 60), slice(10, 50), slice(None), slice(50, None), slice(1, None, 2), slice(40, 60)):
        want[part] += 1
    assert a.tolist() == want.tolist()
    while parts:  # in an order of their own
        parts.pop(len(parts) // 2)
        gc.collect()
        assert all(shares(part, a) for part in parts)
    total = da.sum(da.from_dlpack(a, device="host"))
    assert float(total) == a.sum()


def test_an_assignment_between_queues_that_share_bytes():
    a = np.arange(1_000_000.)
    x, y = da.from_dlpack(a[:-1], device=drupe.Queue("host")), da.from_dlpack(a[1:], device=drupe.Queue("host"))
    for _ in range(3):  # large enough to be copied by several threads
        y[:] = x
    y.queue.wait()
    assert (a[3:] == np.arange(1_000_000 - 3.)).all() and (a[:3] == 0).all()


@pytest.mark.parametrize("length", [50, 40_000])
def test_overlapping_memory_is_read_before_it_is_written(length):
    for steps in slice(None), slice(None, None, -1):
        numbers = np.arange(float(length))
        first, second = da.from_dlpack(numbers[:-1]), da.from_dlpack(numbers[1:])  # 8 bytes on: other memory
        wanted = numbers[:-1][steps].copy()
        second[...] = first[steps]
        assert np.array_equal(second.asnumpy(), wanted)
        wanted = wanted + numbers[:-1][steps]
        second += first[steps]
        assert np.array_equal(second.asnumpy(), wanted)
        places = np.arange(length - 1)[::-1].copy()
        wanted = numbers[:-1].copy()
        second[da.asarray(places)] = first
        assert np.array_equal(second.asnumpy()[::-1], wanted)


def test_the_producer_is_kept_while_work_is_under_way():
    opened, queue = threading.Event(), drupe.Queue("host")
    a = np.ones(1000)
    alive = weakref.ref(a)
    x = da.from_dlpack(a, device=queue)
    y = da.zeros(1000, device=queue)
    queue.host_task(lambda: opened.wait(20))
    y += x
    del a, x
    gc.collect()
    assert alive() is not None
    opened.set()
    queue.wait()
    assert y.tolist() == [1] * 1000
    drupe._engine._live()
    gc.collect()
    assert alive() is None


def test_temporaries_of_shared_memory_are_not_overwritten():
    a = np.ones(100_000)
    y = da.from_dlpack(a, device="host") + 1
    y += 1
    y.queue.wait()
    assert (a == 1).all() and float(y.sum()) == 300_000


def test_an_array_of_ours_comes_back_as_itself(device):
    x = da.arange(10, device=device)
    y = da.from_dlpack(np.from_dlpack(x), device=device)
    if device.has_aspect_usm_system_allocations:
        assert y.usm_data.nbytes == x.usm_data.nbytes and y._pointer == x._pointer
    assert y.tolist() == x.tolist()
    z = da.from_dlpack(x)
    z += 1
    assert x.tolist() == list(range(1, 11)) and da.from_dlpack(x, copy=True)._pointer != x._pointer
    assert da.from_dlpack(x, device=device).queue == x.queue


def test_copies_are_made_when_asked_for(device):
    a = np.arange(4.)
    x = da.from_dlpack(a, device=device, copy=True)
    x += 1
    x.queue.wait()
    assert a.tolist() == [0, 1, 2, 3] and x.usm_type == "device"
    if device.has_aspect_usm_system_allocations:
        assert shares(da.from_dlpack(a, device=device, copy=False), a)
    else:
        with pytest.raises(BufferError, match="copy=False"):
            da.from_dlpack(a, device=device, copy=False)
    if str(device.device_type) == "cpu":
        assert shares(da.from_dlpack(a), a) == shares(da.from_dlpack(a, copy=None), a)


def test_asarray_shares_where_it_may_not_copy(device):
    a = np.arange(6.).reshape(2, 3)
    if not device.has_aspect_usm_system_allocations:
        with pytest.raises(ValueError, match="copy=False"):
            da.asarray(a, device=device, copy=False)
        return
    x = da.asarray(a, device=device, copy=False)
    assert shares(x, a) and shares(da.asarray(a.T, "float64", device=device, copy=False), a)
    assert shares(da.asarray(memoryview(a), device=device, copy=False, usm_type="host"), a)
    assert not shares(da.asarray(a, device=device), a) and not shares(da.asarray(a, device=device, copy=True), a)
    frozen = np.arange(3.)
    frozen.setflags(write=False)
    for wrong, options in ((a, {"dtype": "float32"}), (a, {"usm_type": "device"}), ([1, 2], {}), (frozen, {}),
                           (a.astype(">f8"), {}), (a.view("S8"), {}), (3.5, {}), (b"12345678", {})):
        with pytest.raises(ValueError, match="copy=False"):
            da.asarray(wrong, device=device, copy=False, **options)


def test_read_only_tensors_are_copied():
    producer = Producer(np.arange(3.), flags=1)
    x = da.from_dlpack(producer, device="host")
    x += 1
    x.queue.wait()
    assert producer.values.tolist() == [0, 1, 2] and x.tolist() == [1, 2, 3]
    with pytest.raises(BufferError, match="read-only"):
        da.from_dlpack(producer, device="host", copy=False)
    del x
    assert producer.deleted == 2


def test_bools_are_zero_or_one():
    values = np.array([0, 1, 2], "uint8").view("bool")
    x = da.from_dlpack(Producer(values), device="host")
    assert x.tolist() == [False, True, True] and int(da.sum(x)) == 2
    assert shares(da.from_dlpack(np.array([True, False, False, True])[::2], device="host"), np.zeros(1)) is False


@pytest.mark.parametrize("values", [np.array(3.), np.empty((0, 3)), np.ones((2, 0)), np.ones((1, 1, 1, 1))])
def test_odd_shapes(device, values):
    x = da.from_dlpack(Producer(values), device=device)
    assert x.shape == values.shape and x.tolist() == values.tolist()
    assert np.from_dlpack(x).shape == np.asarray(x).shape == values.shape
    assert da.from_dlpack(Producer(values, strides=False), device=device).tolist() == values.tolist()


@pytest.mark.parametrize("changes, words", [
    ({"lanes": 2}, "2 lanes"), ({"code": 4, "bits": 16}, "code 4 with 16 bits"), ({"ndim": 1000}, "1000"),
    ({"ndim": -1}, "dimensions"), ({"code": 99}, "code 99")])
def test_tensors_that_are_no_arrays(device, changes, words):
    producer = Producer(np.ones(3), **changes)
    with pytest.raises(BufferError, match=words):
        da.from_dlpack(producer, device=device)
    assert producer.deleted == 1


def test_producers_that_cannot_serve(device):
    newer = Producer(np.ones(3))
    newer.managed.major = 2
    with pytest.raises(BufferError, match=r"2\.3"):
        da.from_dlpack(newer)
    assert newer.deleted == 0  # the capsule has it still, whose destructor is the producer's affair
    with pytest.raises(TypeError, match="asarray"):
        da.from_dlpack([1, 2])
    elsewhere = Producer(np.ones(3), device=2)
    with pytest.raises(BufferError, match="copy=False"):
        da.from_dlpack(elsewhere, copy=False)
    with pytest.raises(BufferError, match="type 2"):
        da.from_dlpack(elsewhere)
    assert elsewhere.asked["dl_device"] == (1, 0)
    with pytest.raises(BufferError, match="another device"):
        da.from_dlpack(Producer(np.ones(3), device=2, versioned=False))
    used = Producer(np.ones(3)).__dlpack__()
    rename(used, USED_VERSIONED)
    with pytest.raises(ValueError):
        drupe._engine._dlpack_import(used, device, -1)


def test_memory_cannot_be_shared_with_two_contexts():
    a = np.ones(8)
    x = da.from_dlpack(a, device="host")
    other = drupe.Queue(drupe.Context("host"), "host")
    y = da.from_dlpack(a, device=other)
    assert not shares(y, a) and shares(x, a)
    with pytest.raises(BufferError):
        da.from_dlpack(a[2:], device=other, copy=False)
    with pytest.raises(drupe.DeviceError, match="somebody else"):
        drupe.memory.IPCMemoryHandle(x.usm_data)


def test_memory_that_the_host_cannot_address(fresh, opencl):
    """The form for GPUs stands for such a device. Its capsule is of unified shared memory; a copy is in host memory,
    also where no device here has any."""
    text = """
        import numpy, drupe, drupe.array as da
        x = da.arange(5, dtype="int32", device="opencl")
        kind, number = x.__dlpack_device__()
        assert kind == 14, kind
        class Holder:
            def __init__(self, **options): self.capsule = x.__dlpack__(**options)
            def __dlpack__(self, **options): return self.capsule
            def __dlpack_device__(self): return (1, 0)
        assert "versioned" in repr(x.__dlpack__(max_version=(1, 3)))
        assert da.from_dlpack(x).tolist() == [0, 1, 2, 3, 4]
        assert numpy.from_dlpack(Holder(dl_device=(1, 0), max_version=(1, 3))).tolist() == [0, 1, 2, 3, 4]
        try:
            x.__dlpack__(dl_device=(1, 0), copy=False)
        except BufferError as error:
            print(error)
    """
    for devices in ("opencl:*", "opencl:*;host:*"):
        done = fresh(text, DRUPE_FORM="gpu", DRUPE_DEVICES=devices)
        assert done.returncode == 0, done.stderr
        assert "copy=False, but the host cannot address the memory of" in done.stdout
