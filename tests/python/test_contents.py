"""Memory that is given back and used again at once, and results that did not come about."""
import threading

import numpy as np
import pytest
import testwork

import drupe
import drupe.array as da
import drupe.memory as dm
from drupe import _engine

N = 100_000
MIB = 1 << 20


@pytest.fixture
def pool(queue):
    pool = dm.pool(queue.device)
    for one in _engine._queues():  # what earlier tests have left in flight
        one._idle(0.02)
    pool.trim()
    return pool


@pytest.fixture
def gate(queue):
    """The queue stands still until the gate is opened."""
    opened = threading.Event()
    task = queue.host_task(opened.wait)
    yield opened
    opened.set()
    task.wait()


def failing(queue):
    """Work that fails after what stands behind it was submitted."""
    opened = threading.Event()

    def fail():
        opened.wait()
        raise RuntimeError("boom")

    queue.host_task(fail)
    return opened


def fail_and_hear(queue, opened):
    opened.set()
    with pytest.raises(drupe.DeviceError, match="boom"):
        queue.wait()


# --- Used again at once ----------------------------------------------------------------------------------------------


def test_a_loop_holds_a_handful_of_arrays(queue, pool, gate):
    x = da.ones(N, queue=queue)
    before = pool.reserved
    for _ in range(200):
        x = x * 0.5 + 1
    assert pool.reserved - before <= 4 * 2 * N * 8, "each temporary is new memory"
    assert pool.used + pool.in_flight <= pool.reserved
    gate.set()
    assert float(x[0]) == 2.0


def test_dropped_results_take_no_memory(queue, pool, gate):
    x = da.ones(N, queue=queue)
    before = pool.reserved
    for _ in range(300):
        2 * x + 1
    assert pool.reserved - before <= 4 * 2 * N * 8


def test_figures_tell_held_in_flight_and_reserve(queue, pool, gate):
    before = pool.in_flight
    x = da.ones(N, queue=queue)
    with da.eager():
        y = x + 1
    held = pool.used
    del x
    assert pool.in_flight >= before + N * 8 and pool.used <= held - N * 8
    gate.set()
    queue.wait()
    assert pool.in_flight <= before and pool.reserve >= N * 8
    assert float(y.sum()) == 2.0 * N


def test_host_data_in_a_loop(queue, pool):
    host = np.arange(N, dtype=np.float64)
    total = da.zeros(N, queue=queue)
    for k in range(50):
        total = total + da.asarray(host * k, queue=queue)
    assert np.array_equal(total.asnumpy(), host * sum(range(50)))


def test_products_of_matrices_in_a_loop(queue):
    rng = np.random.default_rng(1)
    a = rng.random((60, 60))
    x, want = da.asarray(a, queue=queue), a
    for _ in range(40):
        x = x @ da.asarray(a, queue=queue)
        x = x / float(60)
        want = want @ a / 60
    assert np.allclose(x.asnumpy(), want)


def test_two_queues_that_share(queue):
    other = drupe.Queue(queue.device)
    x = da.ones(N, queue=queue)
    y = da.ones(N, queue=other)
    for _ in range(50):
        x = x * 0.5 + 1
        y = y * 0.5 + x.to_device(other)
    want_x = want_y = np.ones(3)
    for _ in range(50):
        want_x = want_x * 0.5 + 1
        want_y = want_y * 0.5 + want_x
    assert np.array_equal(y[:3].asnumpy(), want_y)


def test_an_address_leaves_when_nothing_else_uses_the_bytes(queue):
    x = da.ones(N, queue=queue)
    for _ in range(20):
        x = x + 1
    address = x.__sycl_usm_array_interface__["data"][0]
    assert address and float(x[0]) == 21.0


def test_large_products_are_few_ahead():
    """%timeit of one would queue minutes of them: of products with 2**27 multiply-adds less than forty may wait."""
    queue = drupe.Queue("host")
    x = da.ones((512, 512), device=queue)
    x @ x  # opens the library
    most = 0
    for _ in range(60):
        y = x @ x
        most = max(most, queue.pending)
    assert 1 < most < 40
    small = x[:16, :16] @ x[:16, :16]
    assert float(y[0, 0]) == 512 and float(small[0, 0]) == 16


def test_products_of_seconds_are_few_ahead():
    """Each may take longer than other work is waited for."""
    queue = drupe.Queue("host")
    x = da.ones((2048, 2048), device=queue)
    queue.wait()
    tasks = [testwork.task(queue, 1.5) for _ in range(3)]  # in the place of such products
    y = x @ x
    assert tasks[1].done and queue.pending <= 2
    assert float(y[0, 0]) == 2048


def test_large_products_behind_a_gate_of_the_caller_do_not_wait():
    """What nobody else can end is not waited for."""
    queue, gate = drupe.Queue("host"), _engine._event_open("gate")
    x = da.ones((1024, 1024), device=queue)
    queue.barrier(wait_for=[gate])
    results = [x @ x for _ in range(12)]
    assert queue.pending >= 12
    gate._finish()
    assert float(results[-1][0, 0]) == 1024


def test_run_ahead_is_bounded_by_bytes(queue, pool):
    other = drupe.Queue(queue.device)
    limit = pool.limit
    pool.limit = pool.reserved + 1024 * MIB
    try:
        most, before = 0, pool.in_flight
        for _ in range(60):
            memory = dm.MemoryUSMDevice(8 * MIB, queue=queue)
            testwork.task(queue, 0.002)
            queue.memset_async(memory, 1)
            other.memset_async(memory, 2)
            del memory  # of two queues: nobody may take it in order
            most = max(most, pool.in_flight - before)
        assert most <= 160 * MIB, "an eighth of what is free, and a little"
        assert pool.reserved <= pool.limit
    finally:
        other.wait()
        queue.wait()
        pool.limit = limit


# --- What did not come about -----------------------------------------------------------------------------------------


def test_what_stands_behind_a_failure_is_not_read(queue):
    old = da.full(N, 123456.0, queue=queue)
    old.asnumpy()
    del old
    opened = failing(queue)
    x = da.full(N, 7.0, queue=queue)
    y = x * 2
    fail_and_hear(queue, opened)
    for read in (x.asnumpy, lambda: float(x[0]), lambda: float(y.sum()), x.copy, lambda: x + 1, lambda: x @ x):
        with pytest.raises(drupe.DeviceError, match="boom"):
            read()
    assert float((da.ones(N, queue=queue) + 1).sum()) == 2.0 * N


def test_what_was_in_place_holds_its_earlier_value(queue):
    x = da.ones(N, queue=queue)
    opened = failing(queue)
    x += 1
    fail_and_hear(queue, opened)
    with pytest.raises(drupe.DeviceError, match="It holds its earlier value"):
        x.asnumpy()
    x.accept_contents()
    assert float(x.sum()) == N


def test_what_is_written_whole_is_good_again(queue):
    opened = failing(queue)
    x = da.full(N, 7.0, queue=queue)
    part = x[: N // 2]
    fail_and_hear(queue, opened)
    part[:] = 1
    with pytest.raises(drupe.DeviceError, match="boom"):
        x.asnumpy()
    x[:] = 3
    assert float(x.sum()) == 3.0 * N
    da.add(x, 1, out=x)
    assert float(part[0]) == 4.0


def test_memory_tells_too(queue):
    memory = dm.MemoryUSMDevice(1024, queue=queue)
    opened = failing(queue)
    queue.memset_async(memory, 7)
    fail_and_hear(queue, opened)
    with pytest.raises(drupe.DeviceError, match="boom"):
        memory.tobytes()
    memory.accept_contents()
    assert len(memory.tobytes()) == 1024
    memory.memset(5)
    assert memory.tobytes() == b"\5" * 1024


def test_another_thread_that_is_told_first(queue):
    """One thread hears of the failure; the other one's sums are not made of what was there before."""
    opened = failing(queue)
    values = []
    ready, told = threading.Event(), threading.Event()

    def work():
        x = da.full(N, 1.0, queue=queue)
        y = x * 2
        ready.set()
        told.wait()
        try:
            values.append(float(y.sum()))
        except drupe.DeviceError as error:
            values.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    fail_and_hear(queue, opened)
    told.set()
    thread.join()
    assert len(values) == 1 and "boom" in str(values[0])


def test_sharing_with_another_process_waits_for_every_queue():
    """Its bytes move to other pages, and what another queue writes meanwhile would go to those left behind."""
    device = drupe.Device("host")
    if not dm.IPCMemoryHandle.is_available(device):
        pytest.skip("no memory by name here")
    memory = dm.MemoryUSMDevice(4 * MIB, device=device, alignment=4096)
    flags = dm.MemoryUSMShared(8, device=device)
    memory.memset(0)
    flags.memset(0)
    program = drupe.Program("""kernel void fill(int *x, int n, volatile int *flags) {
        flags[0] = 1;
        while (!flags[1]);
        for (int i = 0; i < n; i++) x[i] = 7;
    }""", device, language="c")
    view = memoryview(flags).cast("B").cast("i")
    event = program.fill(memory, MIB, flags, global_size=1, queue=drupe.Queue(device))
    while not view[0]:
        pass
    told = []
    sharing = threading.Thread(target=lambda: told.append((dm.IPCMemoryHandle(memory), event.done)))
    sharing.start()
    sharing.join(0.2)  # who does not wait is through by then
    view[1] = 1
    sharing.join()
    event.wait()
    assert told[0][1], "shared while another queue's work was to write it"
    assert memory.tobytes() == b"\7\0\0\0" * MIB


def test_an_address_does_not_wait_for_what_came_later(queue):
    """Work that the program itself has to let go on stands behind the memory's, and is not waited for."""
    a = da.ones(1 << 16, queue=queue)
    queue.wait()
    t = a * 2
    del t
    x = a * 3
    gate = _engine._event_open("gate")
    queue.barrier(wait_for=[gate])
    try:
        assert x._pointer
    finally:
        gate._finish()
    assert float(x[0]) == 3.0
