"""Streams and offload arrays: transfers, creation, arithmetic against NumPy, memory by the byte."""
import copy
import gc
import operator
import pathlib
import shutil
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import drupe
from drupe import native
from drupe.native import OffloadArray, OffloadError, Stream

HERE = pathlib.Path(__file__).parent
TYPES = ("int64", "float64", "complex128")


@pytest.fixture
def stream(device):
    return native.stream(device)


def brought(array):
    """The device part, fetched anew."""
    array.array = np.empty(array.shape, array.dtype, array.order)
    array.update_host()
    array.stream.sync()
    return array.array


# --- Creation ----------------------------------------------------------------------------------------------

def test_stream_of_a_device_is_its_default_queue(device):
    stream = native.stream(device)
    assert stream.queue == drupe.queue(device) and stream.get_device() == device and stream.device == device
    queue = drupe.Queue(device)
    assert native.stream(queue=queue).queue == queue
    with pytest.raises(TypeError, match="either device or queue"):
        Stream(device, queue=queue)
    assert device.filter_string in repr(stream)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", TYPES)
def test_bind_update_device_update_host(stream, order, dtype):
    mine = np.asarray(np.arange(12).reshape(3, 4) + 1, dtype, order)
    copied = mine.copy(order="A")
    array = stream.bind(mine)
    assert array.array is mine and array.shape == (3, 4) and array.dtype == dtype and array.order == order
    assert array.size == 12 and array.ndim == 2 and array.nbytes == mine.nbytes and len(array) == 3
    assert array.device == stream.get_device() and array.stream is stream and array.base is None
    stream.sync()
    mine[...] = 0
    assert array.update_host() is array
    stream.sync()
    np.testing.assert_array_equal(mine, copied)
    mine[...] = 5
    assert array.update_device() is None
    stream.sync()
    mine[...] = 0
    array.update_host()
    stream.sync()
    assert (mine == 5).all()
    np.testing.assert_array_equal(drupe.array.asnumpy(array.device_array()), mine)


@pytest.mark.parametrize("order", "CF")
def test_host_part_that_lies_the_other_way_is_copied_as_it_lies(stream, order):
    mine = np.arange(12.0).reshape(3, 4)
    array = stream.bind(np.array(mine, order=order))
    array.array = np.array(mine, order="CF"[order == "C"])
    array.update_device()
    stream.sync()
    there = np.asarray(array.device_array().asnumpy()).ravel(order)
    assert there.tolist() == array.array.ravel("K").tolist()
    array.array[...] = 0
    array.update_host()
    stream.sync()
    assert np.array_equal(array.array, mine)


def test_update_of_nothing_and_of_what_does_not_fit(stream):
    array = stream.bind(np.empty(0))
    array.update_device()
    assert array.update_host() is array
    array = stream.bind(np.ones(4))
    array.array = np.ones(5)
    with pytest.raises(ValueError, match="40 bytes"):
        array.update_device()
    array.array = np.ones(4)
    array.array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        array.update_host()
    stream.sync()


def test_updates_behind_work_in_flight(stream):
    queue, host = stream.queue, np.arange(1000.0)
    array, gate = stream.bind(host), threading.Event()
    stream.sync()
    queue.host_task(gate.wait)
    more = array + 1
    array.update_device()  # behind that
    host_then = host.copy()
    more.update_host()
    assert queue.pending > 0
    gate.set()
    stream.sync()
    np.testing.assert_array_equal(more.array, host_then + 1)


def test_parts_and_streams_that_are_none(stream):
    array = stream.bind(np.ones(4))
    with pytest.raises(TypeError, match="no arguments"):
        array.update_device(1)
    with pytest.raises(TypeError, match="no arguments"):
        stream.sync(timeout=1)
    array.array = np.ones(8)[::2]
    with pytest.raises(ValueError, match="contiguous"):
        array.update_device()
    array.array = "text"
    with pytest.raises(TypeError, match="the host part must be .* not str"):
        array.update_device()
    del array.array
    with pytest.raises(AttributeError, match="no host part"):
        array.update_host()
    array.array = np.ones(4)
    array.stream = object()
    with pytest.raises(TypeError, match="a stream of drupe.native"):
        array.update_device()
    with pytest.raises(TypeError, match="a stream of drupe.native"):
        Stream.__new__(Stream).sync()
    with pytest.raises(AttributeError, match="no host part"):
        OffloadArray.__new__(OffloadArray).update_device()
    stream.sync()


def test_a_mapped_file_is_a_host_part(stream, tmp_path):
    """Its pages may be gone by the time of the copy: then the copy fails, and not the thread that queued it."""
    mapped = np.memmap(tmp_path / "part", "float64", "w+", shape=2000)
    mapped[:] = range(2000)
    array = stream.bind(mapped)
    stream.sync()
    mapped[:] = 0
    array.update_host()
    stream.sync()
    assert mapped.tolist() == list(range(2000))


class Kept(np.ndarray):
    """An array that knows when it goes."""


def test_arrays_and_streams_go_with_their_last_reference(device):
    class Mine(OffloadArray):
        pass

    def use():
        stream = Stream(queue=drupe.Queue(device))
        array = Mine(4, float, stream=stream)
        array.me = stream.me = [array, stream]  # circles
        host = np.ones(4).view(Kept)
        other = stream.bind(host)
        other.update_host()
        stream.sync()
        return [weakref.ref(one) for one in (array, host, other, stream)]

    gone = use()
    gc.collect()
    assert [one() for one in gone] == [None] * 4


def test_copies_of_the_objects_share_what_they_have(stream):
    array = stream.bind(np.arange(4.0))
    array.mine = stream.mine = "more"
    twin, other = copy.copy(array), copy.copy(stream)
    assert twin.array is array.array and twin.stream is stream and other.queue == stream.queue
    assert twin.mine == other.mine == "more" and twin.shape == (4,) and twin.base is None
    array.array[:] = 5
    array.update_device()
    stream.sync()
    twin.array[:] = 0
    assert twin.update_host() is twin
    other.sync()
    assert array.array.tolist() == [5] * 4
    for one in (array, stream):
        with pytest.raises(TypeError, match="cannot pickle"):
            copy.deepcopy(one)


def test_a_class_that_makes_its_instances_itself(stream):
    class Mine(OffloadArray):
        def __new__(cls, shape, *more, **options):
            return super().__new__(cls)

    array = Mine((4,), float, stream=stream).fill(2)
    twice = array + array
    assert type(twice) is Mine and type(array.reshape(2, 2)) is Mine
    twice.update_host()
    stream.sync()
    assert twice.array.tolist() == [4] * 4


def test_a_device_part_that_is_host_memory_is_let_go_of(stream):
    array = stream.bind(np.arange(4.0))
    array._device = held = bytearray(8)
    with pytest.raises(ValueError, match="the host part has 32 bytes and the device part 8"):
        array.update_device()
    held.append(0)  # BufferError while somebody has its buffer


@pytest.mark.skipif(sys.version_info < (3, 12), reason="buffers are released by methods from 3.12 on")
def test_who_releases_a_host_part_sees_its_shape(device):
    seen = []

    class Mine(bytearray):
        def __release_buffer__(self, view):
            seen.append((view.shape, view.strides))

    stream, gate = Stream(queue=drupe.Queue(device)), threading.Event()
    array = stream.bind(np.ones(4))
    array.array = Mine(32)
    stream.queue.host_task(gate.wait)
    array.update_device()
    gate.set()
    stream.sync()
    assert set(seen) == {((32,), (1,))}


def test_bind_without_a_transfer_and_copy(stream):
    mine = np.arange(5.0)
    array = stream.bind(mine, update_device=False)
    array.update_device()
    other = stream.copy(mine)
    mine[0] = 9
    stream.sync()
    assert other.array is not mine and other.array[0] == 0
    assert brought(other)[0] == 0
    with pytest.raises(ValueError, match="numpy.ndarray"):
        stream.bind([1, 2])
    with pytest.raises(ValueError, match="numpy.ndarray"):
        stream.copy(3)
    with pytest.raises(ValueError, match="strided"):
        stream.bind(np.zeros(10)[::2])


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("name, value", [("zeros", 0), ("ones", 1), ("bcast", 7)])
def test_filled_arrays(stream, name, value, order):
    make = getattr(stream, name)
    arguments = (value,) if name == "bcast" else ()
    for dtype in ("float64", "int64", "complex128", "float32", "int32"):
        array = make(*arguments, (2, 3), dtype=dtype, order=order)
        assert (array.array == value).all() and array.array.dtype == dtype
        assert array.array.flags[order + "_CONTIGUOUS"]
        assert (brought(array) == value).all()
    assert make(*arguments, 4).shape == (4,) and make(*arguments, 4).dtype == float
    device_only = make(*arguments, 4, update_host=False)
    device_only.array[...] = 3
    stream.sync()
    assert (device_only.array == 3).all() and (brought(device_only) == value).all()
    for other in (array, array.array):
        like = getattr(stream, name + "_like")(*arguments, other)
        assert like.shape == other.shape and like.dtype == other.dtype and like.order == order
        assert (brought(like) == value).all()


def test_empty(stream):
    array = stream.empty((2, 2), dtype="int64", order="F")
    stream.sync()
    first = array.array.copy()
    np.testing.assert_array_equal(brought(array), first)
    assert stream.empty(3, update_host=False).shape == (3,)
    assert stream.empty_like(array).order == "F" and stream.empty_like(np.zeros((4, 5), np.int32)).shape == (4, 5)
    assert stream.zeros(0).size == 0 and brought(stream.zeros((0, 3))).shape == (0, 3)


def test_offload_array_by_itself(device):
    array = OffloadArray((2, 3), "float64", "F", device=device)
    assert array.array.shape == (2, 3) and array.stream.get_device() == device
    assert OffloadArray(4, float, alloc_arr=False, device=device).array is None
    bare = OffloadArray(4, float, alloc_arr=False, device=device).fill(2)
    bare.update_host()
    bare.stream.sync()
    assert (bare.array == 2).all()
    with pytest.raises(ValueError, match="order"):
        OffloadArray(4, float, "K")
    assert "shape (2, 3)" in repr(array) and str(bare) == str(bare.array)


# --- Elements ----------------------------------------------------------------------------------------------

def test_fill_and_zero_and_one(stream):
    array = stream.empty((3, 2), update_host=False)
    assert (brought(array.fill(4.5)) == 4.5).all()
    assert (brought(array.zero()) == 0).all() and (brought(array.one()) == 1).all()
    assert (brought(array.zero(-1)) == -1).all() and (brought(array.one(3)) == 3).all()
    source = np.arange(6.0).reshape(3, 2)
    assert array.fillfrom(source) is array
    np.testing.assert_array_equal(brought(array), source)
    fortran = stream.empty((3, 2), order="F", update_host=False).fillfrom(array)
    np.testing.assert_array_equal(brought(fortran), source)
    with pytest.raises(ValueError, match="shape"):
        array.fillfrom(np.zeros(3))


@pytest.mark.parametrize("order", "CF")
def test_setting_elements(stream, order):
    mine = np.asarray(np.arange(12.0).reshape(3, 4), order=order)
    array = stream.copy(mine)
    expected = mine.copy()
    for index, value in ((0, 5), (slice(1, 3), np.ones((2, 4))), ((slice(None), 2), [7, 8, 9]), ((2, 3), -1.5)):
        array[index] = value
        expected[index] = value
        np.testing.assert_array_equal(brought(array), expected)
    array[:] = stream.ones((3, 4), order="F")
    assert (brought(array) == 1).all()
    line = stream.zeros(5)
    line.__setslice__(1, 3, [4, 5])
    assert list(brought(line)) == [0, 4, 5, 0, 0]


@pytest.mark.parametrize("order", "CF")
def test_reshape_ravel_reverse(stream, order):
    mine = np.asarray(np.arange(12.0).reshape(3, 4), order=order)
    array = stream.bind(mine)
    shaped = array.reshape(4, 3)
    np.testing.assert_array_equal(brought(shaped), mine.reshape(4, 3, order=order))
    assert shaped.base is array and array.reshape((2, -1)).shape == (2, 6) and array.ravel().shape == (12,)
    np.testing.assert_array_equal(brought(array.ravel()), mine.ravel(order))
    shaped.fill(3)  # one memory
    assert (brought(array) == 3).all()
    for wrong in ((5,), (-1, -1), (5, -1)):
        with pytest.raises(ValueError, match="shape|one size"):
            array.reshape(*wrong)
    assert list(brought(stream.bind(np.arange(4.0)).reverse())) == [3, 2, 1, 0]
    with pytest.raises(TypeError, match="without dimensions"):
        len(stream.zeros(()))


# --- Arithmetic --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow])
def test_operators(stream, function, dtype):
    a, b = np.asarray([1, 2, 3, 4], dtype), np.asarray([3, 2, 1, 2], dtype)
    x, y = stream.bind(a), stream.bind(b)
    two = np.int64(2) if dtype == "int64" else np.float64(2)
    for mine, theirs in ((x, y), (x, b), (a, y), (x, 2), (2, y), (x, two)):
        plain = [one.array if isinstance(one, OffloadArray) else one for one in (mine, theirs)]
        result = function(mine, theirs)
        expected = function(*plain)
        assert isinstance(result, OffloadArray) and result.dtype == expected.dtype and result.base is None
        np.testing.assert_allclose(brought(result), expected)
    with pytest.raises(TypeError):
        function(x, "text")


@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
def test_operators_of_two_dimensions(stream, orders):
    a = np.asarray(np.arange(6.0).reshape(2, 3), order=orders[0])
    b = np.asarray(np.arange(6.0).reshape(2, 3) * 10, order=orders[1])
    result = stream.bind(a) + stream.bind(b)
    assert result.shape == (2, 3) and result.order == orders[0]
    np.testing.assert_array_equal(brought(result), a + b)
    np.testing.assert_array_equal(brought(stream.bind(a) * b), a * b)


@pytest.mark.parametrize("dtype", TYPES)
def test_in_place(stream, dtype):
    a, b = np.asarray([1, 2, 3], dtype), np.asarray([5, 7, 9], dtype)
    x = same = stream.copy(a)
    x += stream.bind(b)
    x -= 1
    x *= b
    assert x is same
    np.testing.assert_array_equal(brought(x), (a + b - 1) * b)
    with pytest.raises(TypeError):
        x += "text"


def test_abs_and_negative(stream):
    a = np.array([-1.0, 2, -3])
    x = stream.bind(a)
    np.testing.assert_array_equal(brought(abs(x)), abs(a))
    np.testing.assert_array_equal(brought(x.abs()), abs(a))
    np.testing.assert_array_equal(brought(-x), -a)
    z = stream.bind(np.array([3 + 4j]))
    assert abs(z).dtype == float and brought(abs(z))[0] == 5


def test_assign_stream(stream, device):
    x = stream.bind(np.arange(4.0))
    y = x * 2
    other = native.stream(queue=drupe.Queue(device))
    y.assign_stream(other)
    assert y.stream is other and list(brought(y + 1)) == [1, 3, 5, 7]


# --- Memory by the byte ------------------------------------------------------------------------------------

def test_transfers_with_offsets(stream):
    source = np.arange(10.0)
    first, second = stream.allocate_device_memory(80), stream.allocate_device_memory(160, alignment=256, sticky=True)
    assert first.nbytes == 80 and stream.translate_device_pointer(first) == int(first) and int(second) % 256 == 0
    stream.transfer_host2device(source, first, 40, offset_host=40)
    stream.transfer_host2device(source.ctypes.data, first, 40, offset_device=40)
    stream.transfer_device2device(first, second, 80, offset_device_dst=80)
    stream.transfer_device2device(second, second, 8, offset_device_src=80, offset_device_dst=0)
    target = np.zeros(12)
    stream.transfer_device2host(second, target, 80, offset_device=80, offset_host=16)
    stream.transfer_device2host(second, target.ctypes.data, 8)
    stream.sync()
    assert list(target) == [5, 0, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
    stream.transfer_host2device(source, first, 0)
    stream.deallocate_device_memory(first)
    assert "deallocated" in repr(first) and "160 bytes" in repr(second)


@pytest.mark.parametrize("arguments, why", [
    ((81,), "bytes 0 to 81 lie outside of its 80"), ((8, 0, 73), "device memory.*outside"), ((8, 80, 0), "host memory"),
    ((-1,), "negative"), ((8, -8, 0), "negative"), ((8, 0, -8), "negative")])
def test_transfers_are_checked(stream, arguments, why):
    source, pointer = np.zeros(10), stream.allocate_device_memory(80)
    with pytest.raises(ValueError, match=why):
        stream.transfer_host2device(source, pointer, *arguments)
    nbytes, host, device = (*arguments, 0, 0)[:3]
    with pytest.raises(ValueError, match=why):
        stream.transfer_device2host(pointer, source, nbytes, device, host)
    if host == 0:
        with pytest.raises(ValueError, match=why.replace("device memory", "source|target")):
            stream.transfer_device2device(pointer, stream.allocate_device_memory(80), nbytes, device)


def test_memory_that_is_gone_or_none(stream):
    pointer = stream.allocate_device_memory(8)
    stream.deallocate_device_memory(pointer)
    for call in (lambda: stream.deallocate_device_memory(pointer), lambda: int(pointer),
                 lambda: stream.transfer_host2device(np.zeros(1), pointer, 8)):
        with pytest.raises(OffloadError, match="deallocated"):
            call()
    with pytest.raises(TypeError, match="allocate_device_memory"):
        stream.transfer_host2device(np.zeros(1), 4096, 8)
    with pytest.raises(ValueError, match="at least 1 byte"):
        stream.allocate_device_memory(0)
    with pytest.raises(ValueError, match="power of two"):
        stream.allocate_device_memory(8, alignment=3)
    with pytest.raises(ValueError, match="strided"):
        stream.transfer_host2device(np.zeros(4)[::2], stream.allocate_device_memory(8), 8)


# --- Kernels -----------------------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler")
    target = tmp_path_factory.mktemp("stream") / "libstream.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-DVERSION=1", str(HERE / "native_functions.c"), "-o", str(target),
                    "-lm"], check=True)
    return native.load(target)


def test_invoke(stream, library):
    if stream.device.device_type != "cpu" and stream.device.device_type.name != "cpu":
        pytest.skip("functions of the host")
    x, y = stream.bind(np.arange(6.0).reshape(2, 3)), stream.ones((2, 3))
    event = stream.invoke(library.axpy_plain, 6, 2.0, x, y)
    assert isinstance(event, drupe.Event)
    y.update_host()
    stream.sync()
    np.testing.assert_array_equal(y.array, 1 + 2 * x.array)
    plain = np.ones(6)
    stream.invoke_kernel(library.axpy_plain, 6, 2.0, x, plain)  # it has ended
    np.testing.assert_array_equal(plain, 1 + 2 * np.arange(6.0))
    pointer = stream.allocate_device_memory(48)
    stream.transfer_host2device(np.ones(6), pointer, 48)
    stream.invoke(library.axpy_plain, 6, 3.0, x, pointer)
    stream.transfer_device2host(pointer, plain, 48)
    stream.sync()
    np.testing.assert_array_equal(plain, 1 + 3 * np.arange(6.0))
    stream.deallocate_device_memory(pointer)
    with pytest.raises(OffloadError, match="deallocated"):
        stream.invoke(library.axpy_plain, 6, 3.0, x, pointer)
    with pytest.raises(TypeError, match="function of a library"):
        stream.invoke(len, x)
    with pytest.raises(TypeError, match="argument 3"):
        stream.invoke(library.axpy_plain, 6, 3.0, object(), plain)


@pytest.mark.parametrize("order", ["C", "F"])
def test_operands_of_fewer_dimensions(order):
    stream = native.stream("host")
    a, row = np.asarray(np.arange(9.0).reshape(3, 3), order=order), np.array([10.0, 20.0, 30.0])
    for other in (row, stream.bind(row), row.reshape(3, 1), stream.bind(row.reshape(3, 1))):
        plain = other if isinstance(other, np.ndarray) else other.array
        x = stream.bind(a.copy(order))
        for result, expected in ((x + other, a + plain), (x - other, a - plain)):
            result.update_host()
            stream.sync()
            np.testing.assert_array_equal(result.array, expected)
        x += other
        x.update_host()
        stream.sync()
        np.testing.assert_array_equal(x.array, a + plain)
    if order == "F":
        with pytest.raises(ValueError, match="takes no operand of 3"):
            stream.bind(a) + np.ones((2, 3, 3))
