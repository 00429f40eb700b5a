"""Expressions that wait to be computed give the same numbers, fail as they would, and keep the order of calls: across
threads, processes, interrupts and failures."""
import pathlib
import sys
import threading

import faulty
import numpy as np
import pytest
from waiting import ALL, N, Work, run, same, values, work, x  # run, values, work and x are fixtures

import drupe
import drupe.array as da
import drupe.memory as dm


# --- Numbers ---------------------------------------------------------------------------------------------------------


def test_broadcasting(x, values):
    s, a = x.reshape(200, 200), values.reshape(200, 200)
    row, column = s[:1] * 2 + 1, s[:, :1] - 1
    arow, acolumn = a[:1] * 2 + 1, a[:, :1] - 1
    same(row * column + s, arow * acolumn + a)
    same(s - (column - row[0, 0]), a - (acolumn - arow[0, 0]))


def test_zero_sizes_and_no_axes(run):
    assert run("""if True:
        x = da.zeros((0, 5), device="host") * 2 + 1
        print((x - x).shape, float((x + 1).sum()))
        y = da.asarray(3.0, device="host")
        z = y * 2 + 1
        print(z.shape, float(z), float(z + y), (da.ones((3, 1), device="host") * z + x[:0, :1].sum()).tolist())
    """) == "(0, 5) 0.0\n() 7.0 10.0 [[7.0], [7.0], [7.0]]\n"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_wrap(queue, dtype):
    limits = np.iinfo(dtype)
    a = np.resize(np.array([limits.max, limits.min, 1, 3, limits.max // 2 + 1], dtype), N)
    x = da.asarray(a, queue=queue)
    y, b = (x * x + x) // 3 - x, (a * a + a) // a.dtype.type(3) - a
    same(y, b)
    same(((x + x) > x) * x, ((a + a) > a) * a)


def test_halves_are_rounded_after_each_operation(queue):
    a = np.linspace(0.001, 30, N).astype("float16")
    x = da.asarray(a, queue=queue)
    same((x * x + x) * x - x / 3, (a * a + a) * a - a / a.dtype.type(3))
    same((x + 2048) - 2048, (a + a.dtype.type(2048)) - a.dtype.type(2048))


def test_casts_round_in_between(queue, values):
    x = da.asarray(values * 1.1, queue=queue)
    a = values * 1.1
    same(x.astype("float32").astype("float64") * 3, a.astype("float32").astype("float64") * 3)
    same((x.astype("int8") + 100).astype("int32"), (a.astype("int64").astype("int8") + np.int8(100)).astype("int32"))
    same(x.astype("bool").astype("float32") + 1, a.astype("bool").astype("float32") + 1)


def test_no_contraction(queue):
    """x*y + z is rounded twice."""
    a = np.random.default_rng(1).random((3, N))
    x, y, z = (da.asarray(one, queue=queue) for one in a)
    same(x * y + z, a[0] * a[1] + a[2])
    same(z - x * y, a[2] - a[0] * a[1])


def test_reductions_give_the_same_bits(run):
    text = """if True:
        import hashlib
        a = np.random.default_rng(3).standard_normal((317, 211)) * 100
        for dtype in ("float64", "float32", "int32"):
            x = da.asarray(a.astype(dtype), device="host")
            for axis in (None, 0, 1):
                for f in (da.sum, da.max, da.min, da.prod, da.any, da.mean, da.var):
                    y = f(x * 2 + 1, axis=axis)
                    print(hashlib.md5(y.asnumpy().tobytes()).hexdigest())
                    z = x * 2 + 1
                    y = f(z, axis=axis)
                    print(hashlib.md5((y + f(z, axis=axis)).asnumpy().tobytes() + z.asnumpy().tobytes()).hexdigest())
    """
    told = [run(text), run(text, DRUPE_FUSE="0"), run(text, DRUPE_FUSE="steps"), run(text, DRUPE_FUSE_MOST="1")]
    assert told[0].count("\n") == 126 and told[1:] == told[:1] * 3


def test_a_reduction_of_what_was_settled_meanwhile(run):
    """Its kernel is over: it must not be taken for one of those that are pending now."""
    assert run("""if True:
        queue = drupe.Queue("host")
        x = da.arange(30, dtype="int32", queue=queue) * 1
        queue.wait()
        other = da.full(30, 1000, dtype="int32", queue=queue) + da.arange(30, dtype="int32", queue=queue)
        print(int(da.max(x)), int(da.max(other)), int(x.sum()))
    """) == "29 1029 435\n"


# --- Errors ----------------------------------------------------------------------------------------------------------


def test_errors_come_at_the_call(work, x):
    y = x * 2
    other = drupe.Queue(x.queue.device)
    for wrong, error in [(lambda: y + x[:7], ValueError), (lambda: y & 1, (TypeError, ValueError)),
                         (lambda: y + da.ones(N, queue=other), drupe.ExecutionPlacementError),
                         (lambda: y[N], IndexError), (lambda: da.add(y, 1, out=da.ones(3, queue=x.queue)), ValueError)]:
        with pytest.raises(error) as caught:
            wrong()
        assert pathlib.Path(__file__) in [entry.path for entry in caught.traceback[-2:]]


def test_a_refused_kernel_is_the_error_of_all_outputs(fresh):
    result = fresh("""if True:
        import numpy as np, drupe, drupe.array as da, fault_layer
        queue = drupe.Queue("host")
        x = da.asarray(np.arange(30.0), queue=queue)
        queue.wait()
        y = x * 2 + 1
        z = y * 3
        fault_layer.plan("submit_kernel:1=INTERNAL,submit_kernel:2=INTERNAL")
        for one in (y, z, y, z):
            try:
                one.asnumpy()
                print("values")
            except drupe.DeviceError as error:
                print(type(error).__name__)
        fault_layer.plan(None)
        print((x + 1).tolist()[3])
        try:
            print((z + 1).tolist())
        except drupe.DeviceError as error:
            print(type(error).__name__)
    """, **ALL, **faulty.environment())
    assert result.stdout.split() == ["InternalError"] * 4 + ["4.0", "InternalError"], result


def test_a_late_failure_marks_all_outputs(queue, x):
    dropped = da.asarray(np.arange(N, dtype=np.float64), queue=queue)
    queue.wait()
    opened = threading.Event()

    def fail():
        opened.wait()
        raise RuntimeError("boom")

    queue.host_task(fail)
    y = x * 2 + 1
    z = y * 3
    in_its_place = (dropped - 1) * 2
    del dropped
    same_time = da.sum(z)
    z.shape  # noqa: B018 (needs no values)
    opened.set()
    with pytest.raises(drupe.DeviceError, match="boom"):
        queue.wait()
    for one in (y, z, same_time, in_its_place):
        with pytest.raises(drupe.DeviceError, match="boom"):
            one.asnumpy()
        with pytest.raises(drupe.DeviceError, match="boom"):
            (one + 1).asnumpy()
    assert float((x + 1)[0]) == float(x[0]) + 1


def test_memory_that_comes_back(queue, x, values):
    """A MemoryError loses nothing: the same array has its values once there is room."""
    pool = dm.pool(queue.device)
    y = x * 2
    z = y + 1
    pool.trim()
    held = da.empty(N, queue=queue)
    y2 = x - 1
    told = 0
    try:
        pool.limit = max(pool.reserved, 1)
        pool.trim()
        pool.limit = max(pool.reserved, 1)
        for one in (z, y, y2):
            try:
                one.asnumpy()
            except drupe.DeviceMemoryError as error:
                assert "limit is" in str(error)
                told += 1
    finally:
        pool.limit = None
    del held
    same(z, values * 2 + 1)
    same(y, values * 2)
    same(y2, values - 1)
    assert told


@pytest.mark.parametrize("call", range(1, 12))
def test_every_failing_allocation_is_survived(fresh, call):
    result = fresh(f"""if True:
        import numpy as np, drupe, drupe.array as da, fault_layer
        queue = drupe.Queue("host")
        a = np.arange(40000.0)
        x = da.asarray(a, queue=queue)
        queue.wait()
        def all():
            y = x * 2 + 1
            z = y * 3
            t = z.reshape(200, 200)[:1] * 2 + y.reshape(200, 200)
            return y, z, t, da.sum(t * 2, axis=0)
        fault_layer.plan("any:{call}+=NO_MEMORY")
        told = []
        try:
            told = all()
        except drupe.DeviceError as error:
            assert "NO_MEMORY" in error.status or isinstance(error, MemoryError), error
        for one in told:
            try:
                one.asnumpy()
            except drupe.DeviceError as error:
                assert isinstance(error, MemoryError), error
        fault_layer.plan(None)
        told = told or all()
        b = a * 2 + 1
        c = b * 3
        d = c.reshape(200, 200)[:1] * 2 + b.reshape(200, 200)
        for one, other in zip(told, (b, c, d)):
            assert np.array_equal(one.asnumpy(), other)
        assert np.allclose(told[3].asnumpy(), (d * 2).sum(0))
        print("good", fault_layer.made() >= 0)
    """, **faulty.environment())
    assert result.stdout.split() == ["good", "True"], result


def test_an_interrupt_while_it_waits_for_memory(run):
    assert run("""if True:
        import signal, threading
        import drupe.memory as dm
        queue = drupe.Queue("host")
        pool = dm.pool(queue.device)
        def ring(number, frame):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, ring)
        x = da.asarray(np.arange(1 << 17, dtype="float64"), queue=queue)
        queue.wait()
        opened = threading.Event()
        queue.host_task(opened.wait)
        y = x * 2 + 1
        pool.limit = pool.reserved + 1
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            y.asnumpy()
        except (KeyboardInterrupt, drupe.DeviceMemoryError) as error:
            print("stopped")
        signal.setitimer(signal.ITIMER_REAL, 0)
        opened.set()
        pool.limit = None
        try:
            queue.wait()
            y.asnumpy()
        except drupe.CancelledError:
            y = x * 2 + 1  # it was submitted, and the interrupt cancelled it
        print(np.array_equal(y.asnumpy(), np.arange(1 << 17) * 2.0 + 1))
    """) == "stopped\nTrue\n"


# --- Order, threads, processes ---------------------------------------------------------------------------------------


def test_a_barrier_and_events_of_an_unordered_queue(device, values):
    queue = drupe.Queue(device, in_order=False)
    work = Work(queue)
    x = da.asarray(values, queue=queue)
    y = x * 2 + 1
    event = queue.barrier()
    assert len(work.new()) == 1
    x[:] = 0
    z = x + y
    event.wait()
    same(y, values * 2 + 1)
    same(z, values * 2 + 1)


def test_tasks_of_the_host_stand_behind(queue, work, x):
    y = x * 2
    told = []
    queue.host_task(told.append, (1,))
    assert len(work.new()) == 1
    queue.wait()
    assert told == [1] and float(y[0]) == 2 * float(x[0])


def test_a_wait_and_the_end_of_checks_settle(queue, work, x):
    y = x * 2
    queue.wait()
    assert len(work.new()) == 1
    assert float(y[3]) == 2 * float(x[3])


def test_checked_mode_computes_at_once():
    queue = drupe.Queue("host")
    work = Work(queue)
    x = da.ones(N, queue=queue)
    with drupe.checked():
        y = x * 2
        z = y + 1
        assert len(work.new()) >= 2
    w = x * 2
    assert work.new() == []
    with drupe.checked():
        v = w + 1
        assert float(v[0]) == 3.0
    assert float(z[0]) == 3.0 and float(w[0]) == 2.0


def test_switched_off(run):
    text = """if True:
        queue = drupe.Queue("host")
        x = da.ones(50_000, queue=queue)
        queue.wait()
        before = drupe.trace()[-1]["id"]
        y = x * 2 + 1
        print(len([r for r in drupe.trace(after=before) if r["operation"] == "kernel"]), float(y[0]))
    """
    assert run(text, DRUPE_FUSE="0") == "2 3.0\n"
    assert run(text) == "0 3.0\n"


def test_small_arrays_of_the_host_are_computed_at_once():
    queue = drupe.Queue("host")
    x, work = da.ones(100, queue=queue), Work(queue)
    y = x * 2
    assert len(work.new()) == 1 and float(y[0]) == 2.0


def test_threads_that_share_arrays(queue, values):
    """All of them take the same pending arrays, and each has some of its own."""
    x = da.asarray(values, queue=queue)
    wrong, start = [], threading.Barrier(4)

    def work(k):
        start.wait()
        for i in range(30):
            y = shared[i % len(shared)] * k + i
            z = y - shared[(i + k) % len(shared)]
            if i % 3 == 0:
                float(da.sum(z))
            expected = (values * (i % 8 + 1) * k + i) - values * ((i + k) % 8 + 1)
            if not np.array_equal(z.asnumpy(), expected):
                wrong.append((k, i))

    shared = [x * (i + 1) for i in range(8)]
    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_threads_with_queues_of_their_own_and_little_memory(device):
    """Each settles its own; a thread that waits for memory lets the others go on."""
    wrong = []

    def work(k):
        queue = drupe.Queue(device)
        x = da.full(N, float(k), queue=queue)
        for i in range(40):
            x = x * 0.5 + k
        if not np.allclose(x.asnumpy(), 2 * k, atol=1e-6):
            wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("idle", ["0", "1"])
def test_a_child_process_has_none_of_it(run, idle):
    assert run("""if True:
        import os, threading, time
        queue = drupe.Queue("host")
        x = da.asarray(np.arange(30.0), queue=queue)
        queue.wait()
        y = x * 2 + 1
        def busy():
            while not done:
                z = da.ones(30, queue=other) * 2 + 1
                z.asnumpy()
        other, done = drupe.Queue("host"), []
        thread = threading.Thread(target=busy)
        thread.start()
        ended = []
        for k in range(20):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    y.asnumpy()
                except drupe.DeviceError as problem:
                    status = 0 if "fork" in str(problem) else 2
                try:
                    y + 1
                    status = 3
                except drupe.DeviceError:
                    pass
                del y, x
                os._exit(status)
            for _ in range(1000):
                found, code = os.waitpid(pid, os.WNOHANG)
                if found:
                    break
                time.sleep(0.01)
            else:
                os.kill(pid, 9)
                print("a child hangs")
                os.waitpid(pid, 0)
            ended.append(os.waitstatus_to_exitcode(code))
        done.append(1)
        thread.join()
        print(set(ended), float(y[1]))
    """, DRUPE_FUSE_IDLE=idle) == "{0} 3.0\n"


def test_what_nobody_asks_for_is_computed_once_the_queue_idles(run):
    assert run("""if True:
        import time
        queue = drupe.Queue("host")
        x = da.asarray(np.arange(30.0), queue=queue)
        queue.wait()
        last = drupe.trace()[-1]["id"]
        results = []
        for k in range(20):
            y = x * 2 + k
            if k % 2:
                results.append((y, k))
            until = time.monotonic() + 10
            while k % 2 and not any(r["operation"] == "kernel" for r in drupe.trace(after=last)):
                assert time.monotonic() < until
                y.shape
            last = drupe.trace()[-1]["id"]
        print(all(np.array_equal(y.asnumpy(), np.arange(30.0) * 2 + k) for y, k in results))
    """, DRUPE_FUSE_IDLE="1") == "True\n"


def test_an_idle_queue_whose_work_fails_tells_who_reads(fresh):
    result = fresh("""if True:
        import time
        import numpy as np, drupe, drupe.array as da, fault_layer
        queue = drupe.Queue("host")
        x = da.asarray(np.arange(30.0), queue=queue)
        queue.wait()
        fault_layer.plan("submit_kernel:1+=INTERNAL")
        y = x * 2 + 1
        until = time.monotonic() + 10
        while not fault_layer.made() and time.monotonic() < until:
            pass
        fault_layer.plan(None)
        try:
            print(y.tolist())
        except drupe.InternalError:
            print("told")
        print((x + 1).tolist()[2])
    """, DRUPE_FUSE_IDLE="1", **ALL, **faulty.environment())
    assert result.stdout.split() == ["told", "3.0"], result


def test_the_end_of_a_process_with_pending_arrays(run):
    assert run("""if True:
        x = da.ones(30, device="host")
        y = x * 2 + 1
        z = [y + k for k in range(20)]
        class Late:
            def __del__(self):
                global y
                y = None
        late = Late()
        print("end")
    """) == "end\n"


def test_a_queue_that_only_pending_work_has(run):
    assert run("""if True:
        import gc
        def make():
            queue = drupe.Queue("host")
            return da.asarray(np.arange(30.0), queue=queue) * 2 + 1
        x = make()
        gc.collect()
        print(float(x[3]))
        y = make()
        del y
        print(drupe._engine._live()["Queue"] <= 2)
    """) == "7.0\nTrue\n"


def test_signals_in_a_loop_lose_nothing(run):
    assert run("""if True:
        import signal
        def ring(number, frame):
            rung.append(number)
        rung = []
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        x, a = da.asarray(np.arange(100.0), device="host"), np.arange(100.0)
        for k in range(3000):
            x, a = x * 0.5 + 1, a * 0.5 + 1
            if k % 7 == 0:
                x += 1
                a += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(np.array_equal(x.asnumpy(), a), len(rung) > 0)
    """) == "True True\n"


def test_nothing_is_left_behind(arrays_are_dropped, queue, values):
    for _ in range(5):
        x = da.asarray(values, queue=queue)
        y = x * 2 + 1
        z = y * x
        del x, y
        z += 1
        float(da.sum(z * 2))
        del z
