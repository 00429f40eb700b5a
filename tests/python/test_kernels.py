"""Kernels in Python, compiled: every name that they are written with, on each device, beside the simulator."""
import collections

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import kernel_api as kapi
from drupe.kernel_api import (AddressSpace, AtomicRef, LocalAccessor, MemoryOrder, MemoryScope, NdRange, PrivateArray,
                              Range, atomic_fence, group_barrier)

SPACES = {1: ((12,), (4,)), 2: ((6, 8), (3, 4)), 3: ((4, 6, 4), (2, 3, 2))}
Box = collections.namedtuple("Box", "low high")


def placed(one, queue):
    """An argument with its arrays on the device."""
    if isinstance(one, tuple):
        items = [placed(item, queue) for item in one]
        return type(one)(*items) if hasattr(one, "_fields") else tuple(items)
    return da.asarray(one, queue=queue) if isinstance(one, np.ndarray) else one


def compiled(queue, function, space, *args):
    """What the arrays hold behind a launch."""
    given = [placed(one, queue) for one in args]
    drupe.call_kernel(drupe.kernel(function), space, *given)
    return [one.asnumpy() for one in given if isinstance(one, da.Array)]


def both(queue, function, space, *args):
    """What the arrays hold behind a launch, and behind a simulation, which must be the same."""
    mine = [one.copy() if isinstance(one, np.ndarray) else one for one in args]
    kapi.call_kernel(function, space, *mine)
    theirs = compiled(queue, function, space, *args)
    for got, want in zip(theirs, [one for one in mine if isinstance(one, np.ndarray)]):
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=want.dtype.kind in "fc")
    return theirs


# --- Where a work-item is -----------------------------------------------------------------------------------

@pytest.mark.parametrize("dims", SPACES)
def test_items(dims, queue):
    def one(item, out):
        n = item.get_linear_id()
        out[n, 0] = item.get_id(0)
        out[n, 1] = item.get_id(item.dimensions - 1)
        out[n, 2] = item.get_range(0) * 100 + item.get_range(item.dimensions - 1)
        out[n, 3] = item.get_linear_range()
        out[n, 4] = item.dimensions

    size = SPACES[dims][0]
    (out,) = both(queue, one, Range(*size), np.zeros((int(np.prod(size)), 5), "int64"))
    assert out[-1].tolist() == [size[0] - 1, size[-1] - 1, size[0] * 100 + size[-1], np.prod(size), dims]
    assert out[1, 1] == 1  # the last dimension runs fastest


@pytest.mark.parametrize("dims", SPACES)
def test_nd_items(dims, queue):
    def one(item, out):
        n, last = item.get_global_linear_id(), item.dimensions - 1
        out[n, 0] = item.get_global_id(0) * 100 + item.get_global_id(last)
        out[n, 1] = item.get_local_id(0) * 100 + item.get_local_id(last)
        out[n, 2] = item.get_local_linear_id()
        out[n, 3] = item.get_global_range(0) * 100 + item.get_global_range(last)
        out[n, 4] = item.get_local_range(0) * 100 + item.get_local_range(last)
        out[n, 5] = item.get_global_linear_range() * 100 + item.get_local_linear_range()
        out[n, 6] = item.get_group().get_group_linear_id()
        out[n, 7] = item.dimensions

    size, local = SPACES[dims]
    (out,) = both(queue, one, NdRange(size, local), np.zeros((int(np.prod(size)), 8), "int64"))
    assert out[-1, 2] == np.prod(local) - 1 and out[-1, 5] == np.prod(size) * 100 + np.prod(local)


@pytest.mark.parametrize("dims", SPACES)
def test_groups(dims, queue):
    def one(item, out):
        group = item.get_group()
        n, last = group.get_group_linear_id(), group.dimensions - 1
        if group.leader:
            out[n, 0] = group.get_group_id(0) * 100 + group.get_group_id(last)
            out[n, 1] = group.get_group_range(0) * 100 + group.get_group_range(last)
            out[n, 2] = group.get_group_linear_range()
            out[n, 3] = group.get_local_range(0) * 100 + group.get_local_range(last)
            out[n, 4] = group.get_local_linear_range()
            out[n, 5] = group.dimensions

    size, local = SPACES[dims]
    count = int(np.prod(size) // np.prod(local))
    (out,) = both(queue, one, NdRange(size, local), np.zeros((count, 6), "int64"))
    assert out[:, 2].tolist() == [count] * count and out[-1, 4] == np.prod(local)


def test_the_older_spelling(queue):
    def one(out, sizes):
        i = kapi.get_global_id(0)
        out[i] = kapi.get_local_id(0) * 100 + kapi.get_group_id(0)
        kapi.barrier(kapi.CLK_GLOBAL_MEM_FENCE)
        sizes[0], sizes[1], sizes[2] = kapi.get_global_size(0), kapi.get_local_size(0), kapi.get_num_groups(0)
        kapi.atomic.add(sizes, 3, 1)
        kapi.atomic.max(sizes, 4, i)
        kapi.atomic.sub(sizes, 5, 2)

    out, sizes = both(queue, one, NdRange((12,), (4,)), np.zeros(12, "int64"), np.zeros(6, "int64"))
    assert out[7] == 301 and sizes.tolist() == [12, 4, 3, 12, 11, -24]


# --- Launching ----------------------------------------------------------------------------------------------

def test_launches_in_brackets(queue):
    """call_kernel, and the ways to write it with brackets."""
    @drupe.kernel
    def add(item, a, b):
        a[item.get_id(0)] += b[item.get_id(0)]

    @drupe.kernel
    def old(a, b):
        i = kapi.get_global_id(0)
        a[i] += b[i]

    a, b = da.zeros(8, dtype="int32", queue=queue), da.arange(8, dtype="int32", queue=queue)
    add[Range(8)](a, b)
    add[8](a, b)
    add[8, kapi.DEFAULT_LOCAL_SIZE](a, b)
    old[8, 4](a, b)
    old[(8,), (2,)](a, b)
    drupe.call_kernel(add, Range(8), a, b)
    assert a.tolist() == [6 * i for i in range(8)]


def test_call_kernel_async_has_dependencies_and_an_event(device):
    @drupe.kernel
    def double(item, a):
        a[item.get_id(0)] = 2 * a[item.get_id(0)] + 1

    queue = drupe.Queue(device, in_order=False)
    a = da.zeros(1000, dtype="int64", queue=queue)
    events = []
    for _ in range(10):
        task, event = drupe.call_kernel_async(double, Range(1000), events, a)
        assert isinstance(event, drupe.Event) and isinstance(task, drupe.Event)
        events = [event]
    events[0].wait()
    assert set(a.tolist()) == {2**10 - 1}


def test_device_func_is_called_by_kernels_and_by_python(queue):
    @drupe.device_func
    def weighted(a, b, weight=0.5):
        return a * weight + b * (1 - weight)

    def one(item, a, out):
        i = item.get_id(0)
        out[i] = weighted(a[i], 1.0) + weighted(b=a[i], a=2.0, weight=0.25)

    (_, out) = both(queue, one, Range(6), np.arange(6.0), np.zeros(6))
    assert out.tolist() == [weighted(a, 1.0) + weighted(2.0, a, 0.25) for a in range(6)]


def test_range_and_ndrange_are_names_of_drupe():
    assert drupe.Range is Range and drupe.NdRange is NdRange
    assert Range(2, 3).get(1) == 3 and NdRange((2, 4), (1, 2)).local_range == (1, 2)


FACTOR = 3


def test_globals_and_closures_are_constants(queue, monkeypatch):
    offset, table = np.float32(0.5), (1, 2.5, np.int8(7))

    @drupe.kernel
    def scaled(item, a):
        i = item.get_id(0)
        a[i] = i * FACTOR + offset + table[1] + table[i % 2 * 2]

    a = da.zeros(3, dtype="float32", queue=queue)
    drupe.call_kernel(scaled, Range(3), a)
    assert a.tolist() == [4, 13, 10]
    monkeypatch.setitem(globals(), "FACTOR", 100)
    drupe.call_kernel(scaled, Range(3), a)
    assert a.tolist() == [4, 110, 204]


def test_functions_that_are_defined_again(queue, monkeypatch):
    monkeypatch.setitem(globals(), "step", lambda x: x)

    def first(x):
        return x + 1

    def second(x):
        return x * 10

    @drupe.kernel
    def walk(item, a):
        a[item.get_id(0)] = step(a[item.get_id(0)])  # noqa: F821 (a global that the test makes)

    a = da.ones(2, dtype="int64", queue=queue)
    for function in (first, second):
        monkeypatch.setitem(globals(), "step", function)
        drupe.call_kernel(walk, Range(2), a)
    assert a.tolist() == [20, 20]


def test_asserts(queue):
    @drupe.kernel
    def positive(item, a):
        i = item.get_id(0)
        assert a[i] >= 0, "a root of a negative number"
        a[i] = 1

    a = da.asarray([4, 9, -1, 16], queue=queue)
    with pytest.raises(Exception, match="positive") as caught:
        drupe.call_kernel(positive, Range(4), a)
    assert "assert a[i] >= 0" in str(caught.value) and "2" in str(caught.value)
    drupe.call_kernel(positive, Range(2), a)
    assert a.tolist()[:2] == [1, 1] and a.tolist()[2] == -1


# --- Memory -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dims", SPACES)
def test_local_accessor_and_group_barrier(dims, queue):
    """Each group turns its elements around."""
    def turn(item, x, part):
        n, count = item.get_local_linear_id(), item.get_local_linear_range()
        part[n] = x[item.get_global_linear_id()]
        group_barrier(item.get_group(), MemoryScope.WORK_GROUP)
        x[item.get_global_linear_id()] = part[count - 1 - n]

    size, local = SPACES[dims]
    x = np.arange(np.prod(size), dtype="int32")
    (turned,) = both(queue, turn, NdRange(size, local), x, LocalAccessor(int(np.prod(local)), np.int32))
    if dims == 1:
        assert turned.tolist() == [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8]


def test_local_memory_of_two_dimensions_and_of_the_kernels_own(queue):
    def transpose(item, a, out, tile):
        i, j = item.get_global_id(0), item.get_global_id(1)
        y, x = item.get_local_id(0), item.get_local_id(1)
        own = kapi.local.array((4, 4), np.float32)
        tile[y, x] = a[i, j]
        own[x, y] = a[i, j] * 2
        group_barrier(item.get_group())
        out[i, j] = tile[x, y] + own[y, x]

    a = np.arange(64, dtype="float32").reshape(8, 8)
    _, out = both(queue, transpose, NdRange((8, 8), (4, 4)), a, np.zeros_like(a), LocalAccessor((4, 4), np.float32))
    assert out[1, 2] == a[2, 1] * 3


def test_barriers_in_loops(queue):
    def scan(item, x, part):
        n, i = item.get_local_id(0), item.get_global_id(0)
        part[n] = x[i]
        step = 1
        while step < item.get_local_range(0):
            group_barrier(item.get_group())
            before = part[n - step] if n >= step else 0
            group_barrier(item.get_group())
            part[n] += before
            step *= 2
        x[i] = part[n]

    (x,) = both(queue, scan, NdRange(32, 16), np.ones(32, "int64"), LocalAccessor(16, np.int64))
    assert x.tolist() == 2 * list(range(1, 17))


def test_private_array(queue):
    def sort(item, x):
        i = item.get_id(0)
        mine = PrivateArray(5, x.dtype)
        counts = PrivateArray((2, 3), np.int32, fill_zeros=True)
        for k in range(5):
            mine[k] = x[i, k]
            counts[k % 2, -1] += 1
        for k in range(1, 5):
            j = k
            while j > 0 and mine[j - 1] > mine[j]:
                mine[j - 1], mine[j] = mine[j], mine[j - 1]
                j -= 1
        for k in range(5):
            x[i, k] = mine[k] + counts[0, 2] + counts[1, 1]

    x = np.random.default_rng(1).integers(0, 100, (7, 5))
    (got,) = both(queue, sort, Range(7), x)
    assert np.array_equal(got, np.sort(x, axis=1) + 3)


# --- Atomic operations --------------------------------------------------------------------------------------

TYPES = ("int32", "uint32", "int64", "uint64", "float32", "float64")


@pytest.mark.parametrize("dtype", TYPES)
def test_atomic_ref_has_every_operation(dtype, queue):
    def one(item, x, out):
        kind = x.dtype.type
        out[0] = AtomicRef(x, 0).fetch_add(kind(3))
        out[1] = AtomicRef(x, 1).fetch_sub(kind(3))
        out[2] = AtomicRef(x, 2).fetch_min(kind(3))
        out[3] = AtomicRef(x, 3).fetch_max(kind(30))
        out[4] = AtomicRef(x, 4).exchange(kind(40))
        out[5] = AtomicRef(x, 5, MemoryOrder.ACQUIRE).load()
        AtomicRef(x, 6, memory_order=MemoryOrder.RELEASE, memory_scope=MemoryScope.SYSTEM).store(kind(50))
        expected = PrivateArray(2, x.dtype)
        expected[0], expected[1] = 17, 10
        out[6] = AtomicRef(x, 7, MemoryOrder.SEQ_CST, MemoryScope.DEVICE, AddressSpace.GLOBAL).compare_exchange(
            expected, kind(60), 0)
        out[7] = AtomicRef(x, 7, MemoryOrder.ACQ_REL).compare_exchange(expected, kind(70))
        out[8] = expected[0]

    x = np.arange(10, 18).astype(dtype)
    x, out = both(queue, one, Range(1), x, np.zeros(9, dtype))
    assert x.tolist() == [13, 8, 3, 30, 40, 15, 50, 60]
    assert out.tolist() == [10, 11, 12, 13, 14, 15, 1, 0, 60]


@pytest.mark.parametrize("dtype", [one for one in TYPES if "int" in one])
def test_atomic_ref_of_integers(dtype, queue):
    def one(item, x, out):
        kind = x.dtype.type
        out[0] = AtomicRef(x, 0).fetch_and(kind(6))
        out[1] = AtomicRef(x, 1).fetch_or(kind(8))
        out[2] = AtomicRef(x, 2).fetch_xor(kind(5))

    x, out = both(queue, one, Range(1), np.array([3, 3, 3], dtype), np.zeros(3, dtype))
    assert x.tolist() == [2, 11, 6] and out.tolist() == [3, 3, 3]


@pytest.mark.parametrize("dtype", TYPES)
def test_atomics_of_many_work_items(dtype, queue):
    def count(item, x, places):
        i = item.get_id(0)
        before = AtomicRef(x, i % 3).fetch_add(x.dtype.type(1))
        places[int(before) * 3 + i % 3] = 1
        AtomicRef(x, 3).fetch_max(x.dtype.type(i))

    x, places = compiled(queue, count, Range(3000), np.zeros(4, dtype), np.zeros(3000, "int32"))
    assert x.tolist() == [1000, 1000, 1000, 2999] and places.all()  # each value was given once


def test_atomics_of_local_memory_and_fences(queue):
    def count(item, x, out, counts):
        n = item.get_local_id(0)
        if n < 4:
            counts[n] = 0
        atomic_fence(MemoryOrder.ACQ_REL, MemoryScope.WORK_GROUP)
        group_barrier(item.get_group())
        AtomicRef(counts, x[item.get_global_id(0)]).fetch_add(1)
        group_barrier(item.get_group())
        if n < 4:
            AtomicRef(out, n).fetch_add(counts[n])

    x = np.random.default_rng(2).integers(0, 4, 256).astype("int32")
    _, out = compiled(queue, count, NdRange(256, 32), x, np.zeros(4, "int32"), LocalAccessor(4, np.int32))
    assert out.tolist() == np.bincount(x, minlength=4).tolist()


def test_what_an_atomic_ref_is_of(queue):
    def ask(item, x, out, part):
        ref = AtomicRef(x, 1, MemoryOrder.ACQ_REL, MemoryScope.WORK_GROUP)
        out[0], out[1], out[2] = ref.memory_order, ref.memory_scope, ref.address_space
        out[3] = AtomicRef(part, 0, MemoryOrder.RELAXED).address_space
        ref.fetch_add(1)

    x, out = compiled(queue, ask, NdRange(1, 1), np.zeros(2, "int32"), np.zeros(4, "int32"), LocalAccessor(2, np.int32))
    assert out.tolist() == [MemoryOrder.ACQ_REL, MemoryScope.WORK_GROUP, AddressSpace.GLOBAL, AddressSpace.LOCAL]
    assert x.tolist() == [0, 1]

    def consume(item, x):
        AtomicRef(x, 0, MemoryOrder.CONSUME_UNSUPPORTED).fetch_add(1)

    with pytest.raises(drupe.KernelError, match="ACQUIRE"):
        compiled(queue, consume, Range(1), np.zeros(2, "int32"))


# --- Arguments ----------------------------------------------------------------------------------------------

def test_tuples_and_named_tuples(queue):
    def one(item, x, pair, box, nested):
        i = item.get_id(0)
        a, b = pair
        (c, (d, e)), f = nested
        x[i] = a * 1000 + b * 100 + box.low + box[1] + c + d[i] + e * f

    (x,) = both(queue, one, Range(3), np.zeros(3), (1, 2.5), Box(np.float32(0.5), 7),
                ((3, (np.arange(3.0), True)), np.int16(20)))
    assert x.tolist() == [1280.5, 1281.5, 1282.5]


def test_strided_arrays(queue):
    def copy(item, a, b, c):
        i, j = item.get_id(0), item.get_id(1)
        c[i, j] = a[i, j] * 100 + b[i, -j - 1]

    a = da.reshape(da.arange(24, dtype="int64", queue=queue), (4, 6))
    out = da.zeros((3, 12), dtype="int64", queue=queue)
    drupe.call_kernel(drupe.kernel(copy), Range(3, 4), a.T[::2], a[1:, ::-1][:, 1:5], out[:, 1::3])
    plain = np.arange(24).reshape(4, 6)
    expected = np.zeros((3, 12), "int64")
    expected[:, 1::3] = plain.T[::2] * 100 + plain[1:, ::-1][:, 1:5][:, ::-1]
    assert np.array_equal(out.asnumpy(), expected)


def test_arrays_without_dimensions(queue):
    def add(item, total, x):
        if item.get_id(0) == 0:
            total[()] = total[()] + x[1] + total.ndim + total.size

    total, _ = both(queue, add, Range(2), np.array(1.5), np.array([1.0, 2.0]))
    assert total.shape == () and total == 4.5


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                                   "float16", "float32", "float64", "complex64", "complex128"])
def test_elements_and_numbers_of_each_type(dtype, queue):
    """Arrays and NumPy scalars of each type, and Python's numbers beside them."""
    def one(item, x, out, number):
        i = item.get_id(0)
        out[i] = x[i] + number
        x[i] = number

    number = np.dtype(dtype).type(3)
    x = np.arange(5).astype(dtype)
    got, out = both(queue, one, Range(5), x, np.zeros(5, dtype), number)
    assert (got == number).all() and np.array_equal(out, x + number)


@pytest.mark.parametrize("number", [True, 7, -2.5, 1 - 2j], ids=lambda one: type(one).__name__)
def test_numbers_of_python(number, queue):
    def one(item, x, out, n):
        i = item.get_id(0)
        out[i] = x[i] * n

    x = np.arange(1, 5).astype("float32")
    kind = "complex64" if isinstance(number, complex) else "float32"
    _, out = both(queue, one, Range(4), x, np.zeros(4, kind), number)
    assert np.array_equal(out, (x * number).astype(kind))
