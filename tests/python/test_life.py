"""Lives: nothing leaks, nothing is freed while the device uses it, Ctrl-C and fork leave things in order."""
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
import testwork

import drupe
import drupe.array as da
from drupe import _engine
from drupe.memory import MemoryUSMDevice, MemoryUSMShared


def interrupt_after(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


WAITS = {
    "event": lambda queue, event: event.wait(),
    "queue": lambda queue, event: queue.wait(),
    "events": lambda queue, event: drupe.Event.wait_for([event]),
    "float": lambda queue, event: float(da.ones((), queue=queue)),
    "asnumpy": lambda queue, event: da.ones(4, queue=queue).asnumpy(),
    "tolist": lambda queue, event: da.ones(4, queue=queue).tolist(),
    "large asarray": lambda queue, event: da.asarray(np.ones(1 << 16), queue=queue),
    "memory": lambda queue, event: MemoryUSMDevice(64, queue=queue).tobytes(),
    "buffer": lambda queue, event: memoryview(MemoryUSMShared(64, queue=queue)),
    "copy_to_host": lambda queue, event: MemoryUSMDevice(64, queue=queue).copy_to_host(),
    "copy_from_host": lambda queue, event: MemoryUSMDevice(64, queue=queue).copy_from_host(bytes(64)),
    "times": lambda queue, event: event.times,
}


@pytest.mark.parametrize("way", WAITS)
def test_interrupt(device, way):
    queue = drupe.Queue(device, profiling=True)
    for seconds in (1.0, 5.0, 25.0):  # on a machine that was busy elsewhere it may be over by then
        event = testwork.task(queue, seconds)
        timer = None
        try:
            with pytest.raises(KeyboardInterrupt):  # the timer starts inside: outside, its signal would end all tests
                timer = interrupt_after(0.15)
                WAITS[way](queue, event)
                time.sleep(60)
        finally:
            timer.cancel()  # where the device lacks what is waited for, it would hit another test
        left = event.status != "complete"
        timer.join()
        queue.wait()
        if left:
            break
    assert left, "the wait is not interrupted"
    assert event.status == "complete"
    assert da.arange(3, queue=queue).tolist() == [0, 1, 2]


def test_interrupt_after_the_compiler(opencl, fresh):
    """Drivers that bring a compiler may take SIGINT."""
    result = fresh(f"""
        import os, signal, threading, drupe
        import testwork
        program = drupe.Program("kernel void f(global int *a) {{ a[0] = 1; }}", {opencl.filter_string!r})
        memory = drupe.memory.MemoryUSMDevice(4, queue=program.queue)
        program.f(memory, global_size=1).wait()
        try:
            drupe.Program("kernel void f(", program.device)
        except drupe.BuildError:
            pass
        event = testwork.task(program.queue, 4.0)
        try:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            event.wait()
        except KeyboardInterrupt:
            print("interrupted", event.done)
        program.queue.wait()
        print(memory.tobytes()[0])
    """)
    assert result.stdout.split() == ["interrupted", "False", "1"], result


def test_interrupt_of_a_running_kernel(opencl):
    spin = drupe.Program("""
        kernel void spin(global float *out, const int rounds)
        {
            float x = 1;
            for (int i = 0; i < rounds; i++) x = x * 1.000001f + 0.5f;
            out[0] = x;
        }""", opencl)
    out = da.zeros(1, dtype="float32", device=opencl)
    spin.spin(out, 1000, global_size=1).wait()
    event = spin.spin(out, 400_000_000, global_size=1)
    with pytest.raises(KeyboardInterrupt):
        timer = interrupt_after(0.1)
        event.wait()
        time.sleep(60)
    timer.join()
    event.wait()
    assert float(out[0]) > 0


def test_memory_is_freed_after_the_work(queue):
    memory = MemoryUSMDevice(1 << 16, queue=queue)
    pool = drupe.memory.pool(queue.device)
    gate = _engine._event_open("gate")
    queue.barrier(wait_for=[gate])
    queue.fill(memory, 3, event=False)
    used, flying = pool.used, pool.in_flight
    del memory
    assert pool.used < used and pool.in_flight > flying
    gate._finish()
    queue.wait()
    assert pool.in_flight <= flying


def test_host_buffers_live_until_the_copy_is_done(queue):
    class Buffer(bytearray):
        pass

    gone = []
    source = np.arange(1024, dtype=np.int32)
    count = sys.getrefcount(source)
    target = MemoryUSMDevice(4096, queue=queue)
    gate = _engine._event_open("gate")
    queue.barrier(wait_for=[gate])
    event = queue.copy(target, source)
    assert sys.getrefcount(source) > count
    gate._finish()
    event.wait()
    assert sys.getrefcount(source) == count and not gone
    back = bytearray(4096)
    gate = _engine._event_open("gate")
    queue.barrier(wait_for=[gate])
    event = queue.copy(back, target)
    with pytest.raises(BufferError):
        back.append(0)
    gate._finish()
    event.wait()
    back.append(0)
    assert np.frombuffer(back[:4096], np.int32).tolist() == list(range(1024))


def test_objects_may_go_in_any_order(device):
    queue = drupe.Queue(device)
    x = da.asarray(np.arange(100_000, dtype=np.float64), queue=queue)
    event = testwork.task(queue, 0.1)
    y = (x * 2 + 1).sum()
    del queue, x, event
    assert float(y) == 100_000 * 100_000
    testwork.task(drupe.Queue(device), 0.1)
    drupe.Queue(device).barrier()


def test_dropping_a_busy_queue_leaves_the_gil(device):
    queue, ticks = drupe.Queue(device), []
    testwork.task(queue, 0.3)
    thread = threading.Thread(target=lambda: [(ticks.append(1), time.sleep(0.01)) for _ in range(8)])
    thread.start()
    del queue
    thread.join()
    assert len(ticks) == 8


LEAKS = """
    import gc, tracemalloc
    import numpy as np
    import drupe, drupe.array as da
    import testwork; from drupe import _engine
    device = drupe.Device({device!r})

    def rounds(count):
        queue = drupe.Queue(device)
        for _ in range(count):
            x = da.asarray(np.arange(50, dtype=np.float32), queue=queue)
            y = da.ones(50, dtype="float32", queue=queue)
            z = (x + y) * 2 - x / (y + 1)
            z += x
            z[1:4] = 5
            z[::2][0] = [1][0]
            float(z.sum()), z.tolist(), z.asnumpy(), repr(z), z.T, z.reshape(5, 10), z.astype("int32"), list(z[:3])
            m = drupe.memory.MemoryUSMShared(64, queue=queue)
            m.copy_from_host(bytes(64)), m.tobytes(), memoryview(m), m.__sycl_usm_array_interface__
            m.queue, m.device, x.device.context, x.device.info(), x.dtype.str, x.usm_data
            event = queue.barrier(wait_for=[queue.fill(m, 1)])
            event.wait(), event.status, event.error, event.queue
            for wrong in (lambda: drupe.Device("abc"), lambda: x + np.ones(3), lambda: x[99], lambda: da.zeros("a"),
                          lambda: x + da.ones(7, dtype="float32", queue=queue), lambda: queue.fill(m, 999),
                          lambda: da.asarray([[1], [2, 3]], queue=queue), lambda: da.asarray(["a"], queue=queue),
                          lambda: memoryview(drupe.memory.MemoryUSMDevice(4, queue=queue)),
                          lambda: drupe.memory.MemoryUSMDevice(1 << 50, queue=queue), lambda: m.copy_from_host(3),
                          lambda: queue.wait(-1), lambda: da.exp(x, foo=1), lambda: drupe.Program(5, device),
                          lambda: x.astype("complex256"), lambda: drupe.Queue(device, property="no")):
                try:
                    wrong()
                except Exception:
                    pass
                else:
                    raise AssertionError("no error")
            event = testwork.task(queue, 0, "expected")
            try:
                event.wait()
            except drupe.DeviceError:
                event.error
        queue.wait()

    rounds(30)
    gc.collect()
    live, blocks, used = _engine._live(), __import__("sys").getallocatedblocks(), drupe.memory.pool(device).used
    tracemalloc.start()
    rounds(250)  # until what is kept for the next one is all traced
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    rounds(100)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert _engine._live() == live, (_engine._live(), live)
    assert drupe.memory.pool(device).used == used
    assert grown < 20_000, grown
    print("clean")
"""


def need_shared(device):
    if not device.has_aspect_usm_shared_allocations:
        pytest.skip("%s has no shared memory" % device.filter_string)


def test_no_leaks(device, fresh):
    need_shared(device)
    result = fresh(LEAKS.format(device=device.filter_string))
    assert result.stdout.strip() == "clean", result.stderr


def test_no_leaks_in_programs(opencl, fresh):
    result = fresh(f"""
        import gc, drupe, drupe.array as da
        from drupe import _engine
        device = drupe.Device({opencl.filter_string!r})

        def rounds(count):
            for _ in range(count):
                program = drupe.Program("kernel void f(global float *a, int n) {{ a[0] = n; }}", device)
                x = da.zeros(4, dtype="float32", device=device)
                program.f(x, 3, global_size=1, event=False)
                program.f(x, 3, global_size=1).wait()
                program.queue.submit(program["f"], (x, 5), 1, wait_for=[])
                repr(program), repr(program.f), program.f.arguments, dir(program), program.kernel_names
                for wrong in (lambda: program.f(x, 1.5, global_size=1), lambda: program.f(x), lambda: program.g,
                              lambda: program.f(None, 2**99, global_size=1), lambda: program["g"]):
                    try:
                        wrong()
                    except Exception:
                        pass
                assert float(x[0]) == 5

        rounds(3)
        gc.collect()
        live, count = _engine._live(), drupe.memory.pool(device).count
        rounds(10)
        gc.collect()
        assert _engine._live() == live and drupe.memory.pool(device).count == count
        print("clean")
    """)
    assert result.stdout.strip() == "clean", result.stderr


def test_fork_gives_a_clear_error(device, fresh):
    result = fresh(f"""
        import os, sys, drupe, drupe.array as da
        x = da.ones(3, device={device.filter_string!r})
        x.queue.wait()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                x + 1
            except drupe.DeviceError as problem:
                status = 0 if "fork" in str(problem) else 2
            del x
            os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), float(x.sum()))
    """, timeout=60)
    assert result.stdout.split() == ["0", "3.0"], result


def test_fork_before_use_is_fine(fresh):
    result = fresh("""
        import os, sys
        import drupe._engine
        import drupe.array as da
        pid = os.fork()
        if pid == 0:
            sys.exit(0 if float(da.ones(3, device="host").sum()) == 3 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """, timeout=60)
    assert result.stdout.split() == ["0"], result


def test_exit_while_work_runs(device, fresh):
    started = time.monotonic()
    result = fresh(f"""
        import drupe
        import testwork
        queue = drupe.Queue({device.filter_string!r})
        testwork.task(queue, 0.3)
        event = queue.barrier()
        print("leaving")
    """, timeout=60)
    assert result.returncode == 0 and result.stdout == "leaving\n" and result.stderr == "", result
    assert time.monotonic() - started < 30


def test_exit_does_not_wait_for_long_work(device, fresh):
    """The work would take two minutes; the limit only has to tell that from not waiting."""
    result = fresh(f"""
        import drupe
        import testwork
        queue = drupe.Queue({device.filter_string!r})
        event = testwork.task(queue, 120)
    """, timeout=60)
    assert result.returncode == 0, result


def test_failures_left_behind_are_told_at_exit(device, fresh):
    result = fresh(f"""
        import time, drupe
        import testwork
        testwork.task(drupe.queue({device.filter_string!r}), 0.1, "nobody looked")
    """)
    assert result.returncode == 0
    assert "InternalError" in result.stderr and "nobody looked" in result.stderr, result


def test_globals_at_exit(device, fresh):
    need_shared(device)
    result = fresh(f"""
        import drupe, drupe.array as da, drupe.memory
        x = da.ones(1000, device={device.filter_string!r})
        y = x * 2
        memory = drupe.memory.MemoryUSMShared(64, device=x.device)
        view = memoryview(memory)
        event = x.queue.barrier()
        class Late:
            def __del__(self, x=x):
                try:
                    float(x.sum())
                except Exception:
                    pass
        late = Late()
    """)
    assert result.returncode == 0 and result.stderr == "", result


def test_objects_that_an_exception_holds_at_exit(device, fresh):
    """They go with the module, in any order; an error of a destructor would be shown as "ignored"."""
    result = fresh(f"""
        import drupe
        queue = drupe.Queue({device.filter_string!r})
        event = queue.barrier()
        look = lambda: (queue, event)
        raise ValueError("on purpose")
        """)
    told = result.stderr.strip().splitlines()
    assert told[0].startswith("Traceback") and told[-1] == "ValueError: on purpose", result.stderr


def test_threads_compute_at_once(device):
    results, errors = [], []

    def work(number):
        try:
            queue = drupe.Queue(device)
            x = da.full(1000, number, dtype="float64", queue=queue)
            for _ in range(100):
                x = x + 1
            results.append((number, float(x.sum())))
        except Exception as problem:  # the thread's exception belongs to the test
            errors.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and sorted(results) == [(n, 1000.0 * (n + 100)) for n in range(4)]
