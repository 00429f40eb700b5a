"""drupe.hosted.park(): everything comes back, wherever that is; what stands in the way is told."""
import gc
import inspect
import random
import threading

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import _engine, hosted, memory as dm

KERNEL_C = """\
kernel void add(global float *a, global const float *b, const int n)
{
    const int i = get_global_id(0);
    if (i < n) a[i] += b[i];
}
"""


@drupe.kernel
def scaled(item, a, out, by):
    i = item.get_id(0)
    out[i] = a[i] * by + 1


@pytest.fixture(autouse=True)
def nothing_stays_parked():
    yield
    hosted.unpark()
    gc.collect()


def parked(device, **options):
    """Park it once what it does is over."""
    for queue in _engine._queues():
        queue.wait()  # what is pending is submitted
    report = hosted.park(device, **options)
    assert report.ok, str(report)
    assert hosted.is_parked(device)
    assert dm.pool(device).reserved == 0
    return report


def same(x, expected):
    np.testing.assert_array_equal(x.asnumpy(), expected)


# --- What comes back -----------------------------------------------------------------------------------------------

def test_arrays_and_views(device):
    x = da.arange(30000, dtype="float64", device=device)
    views = [x[3:], x[::-2], x.reshape(100, 300).T, x[29999:]]
    numbers = np.arange(30000.0)
    theirs = [numbers[3:], numbers[::-2], numbers.reshape(100, 300).T, numbers[29999:]]
    for _ in range(3):
        report = parked(device)
        assert report.nbytes >= 240000 and report.pieces >= 1 and report.freed >= report.nbytes
        for ours, expected in zip(views, theirs):
            same(ours, expected)
        assert not hosted.is_parked(device)
        x += 1
        numbers += 1
        views[1][5:] *= 2
        theirs[1][5:] *= 2
        same(x, numbers)


def test_memory_of_every_kind(device):
    pieces = [kind(1000, device=device) for kind in (dm.MemoryUSMDevice, dm.MemoryUSMShared, dm.MemoryUSMHost)]
    for i, one in enumerate(pieces):
        one.copy_from_host(bytes((i + k) % 256 for k in range(1000)))
    parked(device)
    assert all("parked" in repr(one) for one in pieces)
    for i, one in enumerate(pieces):
        assert one.tobytes() == bytes((i + k) % 256 for k in range(1000))
    parked(device)
    pieces[1].copy_from_device(pieces[0])
    pieces[2].memset(7)
    assert pieces[1].tobytes() == pieces[0].tobytes() and set(pieces[2].tobytes()) == {7}


def test_programs_and_kernels_in_c(opencl):
    program = drupe.Program(KERNEL_C, opencl)
    a, b = da.zeros(1000, dtype="float32", device=opencl), da.ones(1000, dtype="float32", device=opencl)
    memory = dm.MemoryUSMDevice(4000, device=opencl)
    memory.memset(0)
    for turn in range(1, 4):
        program.add(a, b, 1000, global_size=1000)
        program.add(memory, a, np.int32(1000), global_size=1000)
        parked(opencl)
        same(a, np.full(1000, turn, "float32"))
    parked(opencl)
    program.add(a, b, 1000, global_size=1000).wait()
    same(a, np.full(1000, 4, "float32"))
    assert np.frombuffer(memory.tobytes(), "float32")[999] == 1 + 2 + 3


def test_kernels_in_python(device):
    a, out = da.arange(5000, dtype="float32", device=device), da.empty(5000, dtype="float32", device=device)
    drupe.call_kernel(scaled, drupe.Range(5000), a, out, np.float32(2))
    for by in (3, 4):
        parked(device)
        drupe.call_kernel(scaled, drupe.Range(5000), a, out, np.float32(by))
        parked(device)
        same(out, np.arange(5000, dtype="float32") * by + 1)


def test_pending_arrays_and_fused_loops(device):
    x, numbers = da.arange(50000, dtype="float64", device=device), np.arange(50000.0)
    for turn in range(8):
        x = x * 0.5 + turn
        numbers = numbers * 0.5 + turn
        y = x - 1
        if turn % 2:
            parked(device)
        else:
            hosted.park(device)  # parks, or has submitted what was pending
        assert y.pending is None
        z = y * y
        same(y, numbers - 1)
    same(z, (numbers - 1) ** 2)
    same(x, numbers)


def test_several_queues(device):
    queues = [drupe.Queue(device), drupe.Queue(device), drupe.Queue(device, in_order=False)]
    arrays = [da.full(4000, i, dtype="int64", queue=queue) for i, queue in enumerate(queues)]
    for turn in range(3):
        parked(device)
        for i, one in enumerate(arrays):
            one += turn
            assert int(one[3999]) == i + sum(range(turn + 1))


def test_in_checked_mode(device):
    with drupe.checked():
        x = da.arange(1000, dtype="int32", device=device)
        device.queue.wait()
        parked(device)
        same(x + 1, np.arange(1, 1001, dtype="int32"))
        parked(device)
        y = x[10:20]
        y[...] = 5
        assert int(x.sum()) == 499500 - sum(range(10, 20)) + 50
    parked(device)
    assert int(x[999]) == 999


def test_memory_that_others_lent_stays(device):
    if not drupe.Device("host") == device:
        pytest.skip("memory of this process is the host device's")
    numbers = np.arange(1000.0)
    x = da.from_dlpack(numbers)
    y = x + 1
    parked(device)
    numbers[0] = 7
    assert float(x[0]) == 7 and float(y[0]) == 1


def test_the_device_forgets_where_that_is_asked_for(device):
    pool, x = dm.pool(device), da.arange(9000, device=device)
    pool.wipe = "free"
    try:
        parked(device)
        same(x, np.arange(9000))
    finally:
        pool.wipe = None


def test_what_is_dropped_meanwhile(device):
    before = dm.pool(device).count
    x, y = da.ones(5000, device=device), da.zeros(5000, device=device)
    parked(device)
    del x
    assert dm.pool(device).count == before + 1
    assert float(y.sum()) == 0


# --- What stands in the way ----------------------------------------------------------------------------------------

def refused(device, part):
    for report in (hosted.parkable(device), hosted.park(device)):
        assert not report.ok and not report, str(report)
        assert part in str(report)
    assert not hosted.is_parked(device)
    return report


def test_views_of_the_host_come_back():
    device = drupe.Device("host")
    x, y = da.ones(1000, device=device), da.zeros(1000, device=device)
    line = inspect.currentframe().f_lineno - 1
    for view in (memoryview, np.asarray, np.from_dlpack):
        seen = view(x)
        report = refused(device, "delete the views")
        assert [(one.nbytes, one.line) for one in report.holders] == [(x.nbytes, line)]
        assert f"line {line} of test_parking.py" in str(report)
        part = seen[3:]
        del seen
        assert not hosted.parkable(device).ok  # the part of it is there still
        del part
        assert hosted.parkable(device).ok
        parked(device)
        assert float(x.sum()) == 1000 and float(y.sum()) == 0


def test_views_of_memory_come_back(device):
    memory = dm.MemoryUSMShared(100, device=device)
    view = memoryview(memory)
    view[3] = 5
    refused(device, "100 B")
    view.release()
    parked(device)
    assert memoryview(memory)[3] == 5


@pytest.mark.parametrize("leave", [lambda x: x._pointer, lambda x: x.usm_data._pointer,
                                   lambda x: x.__sycl_usm_array_interface__,
                                   lambda x: x.usm_data.__sycl_usm_array_interface__])
def test_addresses_that_left(device, leave):
    x = da.ones(1000, device=device)
    leave(x)
    refused(device, "given away")
    y = x + 1
    del x
    parked(device)
    assert float(y[0]) == 2


def test_what_another_process_shares():
    memory = dm.MemoryUSMShared(8192, device="host", alignment=4096)
    handle = dm.IPCMemoryHandle(memory)
    refused(drupe.Device("host"), "another process")
    del memory, handle


def test_looking_gives_no_address_away(device):
    memory, x = dm.MemoryUSMShared(100, device=device), da.ones(50000, device=device)
    for _ in range(2):
        parked(device)
        assert "parked" in repr(memory)
        assert "parked" in memory._repr_mimebundle_()["text/html"]
        repr(dm.pool(device)), repr(dm.report())
        assert x.shape == (50000,) and x.usm_data._allocation == x[3:].usm_data._allocation
        assert hosted.is_parked(device)
        assert float(x[7]) == 1
        repr(memory), memory._repr_mimebundle_(), str(x), x.tolist(), x.asnumpy()


def test_work_that_is_not_over(device):
    opened, queue = threading.Event(), drupe.Queue(device)
    x = da.zeros(1000, queue=queue)
    queue.host_task(opened.wait)
    x += 1
    report = refused(device, "not over")
    assert report.unfinished >= 1
    opened.set()
    queue.wait()
    parked(device)
    assert float(x[0]) == 1


class Parks:
    """A number that parks the device when it is asked for."""

    def __init__(self, device):
        self.device, self.report = device, None

    def __index__(self):
        self.report = hosted.park(self.device)
        return 1000

    __int__ = __index__


def test_in_the_middle_of_a_call(opencl):
    program = drupe.Program(KERNEL_C, opencl)
    a, b = da.zeros(1000, dtype="float32", device=opencl), da.ones(1000, dtype="float32", device=opencl)
    program.add(a, b, 1000, global_size=1000).wait()
    number = Parks(opencl)
    program.add(a, b, number, global_size=1000)
    assert "under way" in str(number.report)
    same(a, np.full(1000, 2, "float32"))
    memory, count = dm.MemoryUSMDevice(4000, device=opencl), Parks(opencl)
    opencl.queue.copy(memory, b, count)
    assert "under way" in str(count.report)


# --- Kept, and no room -----------------------------------------------------------------------------------------------

def test_kept_until_it_is_asked_back(device):
    x, memory = da.ones(1000, device=device), dm.MemoryUSMShared(100, device=device)
    parked(device, automatic=False)
    for use in (lambda: x + 1, x.sum, x.asnumpy, lambda: float(x[3]), lambda: x._pointer, memory.tobytes,
                lambda: memoryview(memory), lambda: memory.memset(1), lambda: da.zeros(3, device=device),
                lambda: device.queue.memcpy(memory, b"123", 3)):
        with pytest.raises(drupe.BusyError, match="parked"):
            use()
    assert hosted.is_parked(device)
    report = hosted.unpark(device)
    assert report.ok and report.pieces >= 2 and "came back" in str(report)  # tests before this one may have left some
    assert float(x.sum()) == 1000


def test_no_room_to_come_back_to(device):
    x, y = da.ones(1 << 17, device=device), da.full(1 << 17, 2, device=device)
    pool = dm.pool(device)
    parked(device)
    pool.limit = 3 << 19
    try:
        with pytest.raises(drupe.DeviceMemoryError, match="as before"):
            hosted.unpark(device)
        with pytest.raises(drupe.DeviceMemoryError, match="as before"):
            x.asnumpy()
        assert hosted.is_parked(device) and pool.reserved == 0
    finally:
        pool.limit = None
    same(x + y, np.full(1 << 17, 3.0))


# --- Threads -------------------------------------------------------------------------------------------------------

def test_beside_other_threads(device):
    rounds, wrong, stop = [0, 0, 0], [], threading.Event()

    def work(k):
        x = da.zeros(40000, device=device)
        memory = dm.MemoryUSMDevice(64, device=device)
        try:
            while not stop.is_set():
                x += 1
                y = (x * 2 + 1)[::2]
                memory.memset(rounds[k] % 256)
                rounds[k] += 1
                if float(y[7]) != rounds[k] * 2 + 1 or memory.tobytes()[5] != (rounds[k] - 1) % 256:
                    wrong.append((k, rounds[k]))
        except BaseException as problem:  # the test's own thread tells
            wrong.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    count, tries = 0, 0
    while (count < 5 and tries < 3000 or min(rounds) < 5) and not wrong:
        tries += 1
        if hosted.park(device).ok:
            count += 1
            seen = list(rounds)
            while rounds == seen and not wrong and any(thread.is_alive() for thread in threads):
                stop.wait(0.001)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


# --- Random programs -------------------------------------------------------------------------------------------------

STEPS = [
    lambda m, x, n: m.negative(x),
    lambda m, x, n: x * 3 - n.randint(1, 5),
    lambda m, x, n: m.minimum(x, 1000) + 1,
    lambda m, x, n: x[n.randint(0, 3):] if x.shape[0] > 40 else x + 1,
    lambda m, x, n: x[::-1],
    lambda m, x, n: x[::2] if x.shape[0] > 80 else x - 1,
    lambda m, x, n: m.sort(x),
    lambda m, x, n: m.cumsum(x % 1000),
    lambda m, x, n: m.concatenate([x, x[:5]]),
    lambda m, x, n: m.where(x > 3, x, 2),
    lambda m, x, n: x % 1000 + m.sum(x % 7),
]
SIZES = (50, 3000, 70000)


def run(module, numbers, make, park):
    names = [make(size) for size in SIZES]
    for _ in range(60):
        at = numbers.randrange(len(names))
        kind = numbers.randrange(len(STEPS) + 3)
        if kind < len(STEPS):
            names[at] = STEPS[kind](module, names[at], numbers)
        elif kind == len(STEPS):
            names[at] = module.asarray(names[at], copy=True)
            names[at][numbers.randrange(10):] += 2
        elif kind == len(STEPS) + 1:
            names.append(names[at])
        elif len(names) > 3:
            del names[at]
        if numbers.random() < 0.4:
            park(names, numbers.random())
    return names


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(device, seed):
    tries = []

    def park(names, chance):
        if chance < 0.7:
            device.queue.wait()
        tries.append(hosted.park(device).ok)
        if chance > 0.9:
            hosted.unpark(device)

    ours = run(da, random.Random(seed), lambda size: da.arange(size, dtype="int64", device=device), park)
    theirs = run(np, random.Random(seed), lambda size: np.arange(size, dtype="int64"), lambda names, chance: None)
    assert len(ours) == len(theirs) and sum(tries) > 3
    for one, expected in zip(ours, theirs):
        same(one, expected)
