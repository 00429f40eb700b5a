"""Callbacks, awaiting, futures as events, host tasks, and queues that are not in order."""
import asyncio
import concurrent.futures
import contextvars
import ctypes
import gc
import sys
import threading
import time
import traceback
import weakref

import pytest
import testwork

import drupe
from drupe import _engine, _events
from drupe.memory import MemoryUSMDevice, MemoryUSMShared

LONG = 20  # seconds that nothing here takes


@pytest.fixture(params=["in order", "out of order"])
def any_queue(request, device):
    return drupe.Queue(device, in_order=request.param == "in order")


def until(condition):
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


# --- Queues ----------------------------------------------------------------------------------------------------------


def test_kinds_of_queues(device):
    queue = drupe.Queue(device, in_order=False, priority="high", profiling=True)
    assert not queue.is_in_order and queue.priority == "high" and queue.has_enable_profiling
    assert "out of order" in repr(queue) and "high priority" in repr(queue)
    assert drupe.Queue(device, property=("out_of_order", "priority_low")).priority == "low"
    assert drupe.Queue(device, property="in_order").is_in_order
    assert drupe.Queue(queue.context, device).context == queue.context
    for wrong in ({"priority": "urgent"}, {"property": "fast"}, {"property": 3}):
        with pytest.raises((ValueError, TypeError)):
            drupe.Queue(device, **wrong)


def test_out_of_order(device):
    queue = drupe.Queue(device, in_order=False)
    signal = concurrent.futures.Future()
    held = queue.barrier(wait_for=drupe.Event.from_future(signal))
    behind = queue.barrier()  # what follows a barrier stands behind it
    assert not behind.done and held.get_wait_list()
    other = drupe.Queue(device, in_order=False)
    future = concurrent.futures.Future()
    stopped = testwork.task(other, 0, None, [drupe.Event.from_future(future)])
    free = testwork.task(other, 0)
    free.wait(LONG)
    assert not stopped.done
    with pytest.raises(drupe.WaitTimeoutError):
        other.wait(0.01)
    future.set_result(None)
    other.wait(LONG)
    assert stopped.done
    del signal  # the future is gone with it: what waits is cancelled
    gc.collect()
    with pytest.raises(drupe.DeviceError, match="was dropped"):
        queue.wait(LONG)


def test_arrays_run_in_order_on_an_out_of_order_queue(device):
    queue = drupe.Queue(device, in_order=False)
    for _ in range(300):
        ones = drupe.array.ones(100_000, queue=queue)
        assert float((ones + ones).sum()) == 200_000
    signal = concurrent.futures.Future()
    queue.barrier(wait_for=drupe.Event.from_future(signal))
    ones = drupe.array.ones(4, queue=queue)
    ones += ones  # held, and in order all the same
    threading.Timer(0.05, signal.set_result, (None,)).start()
    assert float(ones.sum()) == 8


def test_out_of_order_failure(device):
    queue = drupe.Queue(device, in_order=False)
    bad = testwork.task(queue, 0, "broken")
    doomed = testwork.task(queue, 0, None, [bad])
    free = testwork.task(queue, 0)
    with pytest.raises(drupe.DependencyError, match="broken"):
        doomed.wait(LONG)
    free.wait(LONG)
    with pytest.raises(drupe.InternalError, match="broken"):
        bad.wait(LONG)
    queue.wait(LONG)


def test_names_of_dpctl(device):
    queue = drupe.Queue(device)
    one, two, back = MemoryUSMDevice(64, queue=queue), MemoryUSMShared(64, queue=queue), bytearray(64)
    data = bytes(range(64))
    queue.memcpy(one, data, 64)
    event = queue.memcpy_async(two, one, 64, [])
    queue.memcpy_async(back, two, 64, dEvents=[event]).wait()
    assert bytes(back) == data
    queue.memset(two, 7)
    assert set(bytes(two)) == {7}
    queue.memset_async(two, 9, 32, dEvents=()).wait()
    assert bytes(two) == bytes([9] * 32 + [7] * 32)
    queue.copy(two, one, 2, dtype="int64").wait()
    assert bytes(two)[:17] == data[:16] + b"\x09"
    queue.prefetch(two).wait()
    queue.prefetch(two, 8, wait_for=queue.barrier()).wait()
    queue.mem_advise(two, 64, 0).wait()
    queue.submit_barrier([queue.barrier()]).wait()
    queue.copy_async(two, one).wait()
    kept = bytearray(8)
    gate = _engine._event_open("gate")
    count = sys.getrefcount(kept)
    event = queue._submit_keep_args_alive(kept, [gate])
    assert sys.getrefcount(kept) == count + 1
    gate._finish()
    event.wait(LONG)
    queue.wait()
    until(lambda: sys.getrefcount(kept) == count)
    for wrong in (lambda: queue.memset(two, 256), lambda: queue.prefetch(two, 65), lambda: queue.memcpy(two, one, 65),
                  lambda: queue.prefetch(bytearray(8)), lambda: queue.mem_advise(two, 8, -1)):
        with pytest.raises((ValueError, OverflowError)):
            wrong()
    assert queue.sycl_device == queue.get_sycl_device() == queue.device
    assert queue.sycl_context == queue.get_sycl_context() == queue.context
    assert queue.name == device.name and queue.driver_version == device.driver_version
    assert isinstance(queue.addressof_ref(), int)


# --- Events ----------------------------------------------------------------------------------------------------------


def test_complete_event(queue):
    event = drupe.Event()
    assert event.done and event.status == "complete" and event.execution_status == "complete"
    assert event.queue is None and event.backend is None and event.error is None
    assert drupe.Event(event) is event and repr(event) == "<drupe.Event: complete>"
    event.wait()
    queue.barrier(wait_for=[event]).wait()
    assert event.get_wait_list() == []
    with pytest.raises(drupe.UnsupportedError):
        event.times
    with pytest.raises(TypeError, match="from_future"):
        drupe.Event(3)


def test_wait_list_and_wait_for(queue):
    gate = _engine._event_open("gate")
    slow = drupe.Queue(queue.device).barrier(wait_for=[gate])
    after = queue.barrier(wait_for=slow)
    assert [e.queue for e in after.get_wait_list()] == [slow.queue]
    with pytest.raises(drupe.WaitTimeoutError):
        drupe.wait_for([slow, after], timeout=0.01)
    gate._finish()
    drupe.wait_for([slow, after], timeout=LONG)
    drupe.wait_for(after)
    assert after.get_wait_list() == []
    with pytest.raises(TypeError):
        drupe.wait_for([1])


def test_callback_while_python_is_busy(any_queue):
    seen = []
    event = testwork.task(any_queue, 0.05)
    event.add_done_callback(lambda event: seen.append((event.status, threading.current_thread())))
    end = time.monotonic() + LONG
    while not seen and time.monotonic() < end:
        pass
    assert [status for status, _ in seen] == ["complete"]
    late = []
    event.add_done_callback(late.append)
    until(lambda: late)
    assert late == [event]


def test_callback_runs_while_the_main_thread_waits_for_it(queue):
    done = threading.Event()
    testwork.task(queue, 0.01).add_done_callback(lambda event: done.set())
    assert done.wait(LONG)


def test_callback_takes_a_lock_that_the_main_thread_holds(fresh):
    """One that came between two steps of the main thread would wait for ever for what is below it."""
    result = fresh("""
        import drupe, faulthandler, threading
        faulthandler.dump_traceback_later(15, exit=True)
        queue, lock, done = drupe.Queue("host"), threading.Lock(), threading.Event()
        def count(event):
            with lock:
                print("told")
            done.set()
        with lock:
            gate = drupe._engine._event_open("gate")
            gate.add_done_callback(count)
            gate._finish()
            queue.host_task(print, ("a host task does not stand behind it",)).wait()
        done.wait()
    """, timeout=90)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "a host task does not stand behind it\ntold\n"


def test_callbacks_come_in_order_on_one_thread(any_queue):
    seen = []
    gate = _engine._event_open("gate")
    event = any_queue.barrier(wait_for=gate)
    for number in range(50):
        event.add_done_callback(lambda event, number=number: seen.append((number, threading.current_thread().name)))
    gate._finish()
    until(lambda: len(seen) == 50)
    assert seen == [(number, "drupe-callbacks") for number in range(50)]


def test_callback_that_waits_for_what_the_next_one_does(queue):
    gate, last = _engine._event_open("gate"), _engine._event_open("last")
    done = threading.Event()
    behind = queue.barrier(wait_for=last)
    gate.add_done_callback(lambda event: (behind.wait(LONG), queue.host_task(done.set).wait(LONG)))
    gate.add_done_callback(lambda event: last._finish())
    gate._finish()
    assert done.wait(LONG) and behind.done


def test_host_task_that_waits_for_another(queue):
    seen = []
    other = drupe.Queue(queue.device)
    queue.host_task(lambda: seen.append(other.host_task(seen.append, (1,)).wait(LONG))).wait(LONG)
    assert seen == [1, None]


def test_await_while_a_callback_stands_still(queue):
    go, entered = threading.Event(), threading.Event()
    testwork.task(queue, 0).add_done_callback(lambda event: (entered.set(), go.wait(LONG)))
    assert entered.wait(LONG)

    async def main():
        await testwork.task(queue, 0.001)
        assert not go.is_set()
        go.set()

    asyncio.run(asyncio.wait_for(main(), LONG))


def test_host_task_whose_exception_cannot_be_told(queue):
    class Mute(Exception):
        def __str__(self):
            raise ValueError("not even this")

    def broken():
        raise Mute

    with pytest.raises(drupe.HostTaskError, match="Mute"):
        queue.host_task(broken).wait(LONG)
    with pytest.raises(drupe.HostTaskError, match="SystemExit"):
        queue.host_task(sys.exit).wait(LONG)
    queue.host_task(lambda: None).wait(LONG)


def test_callback_of_failed_work_and_failing_callback(queue, monkeypatch):
    told, seen = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: told.append(info.exc_value))
    event = testwork.task(queue, 0.01, "broken")
    event.add_done_callback(lambda event: 1 / 0)
    event.add_done_callback(lambda event: seen.append(str(event.error)))
    until(lambda: seen and told)
    assert "broken" in seen[0] and isinstance(told[0], ZeroDivisionError)
    with pytest.raises(drupe.DeviceError):
        queue.wait()
    with pytest.raises(TypeError, match="callback"):
        event.add_done_callback(3)


def test_callback_has_its_context(queue):
    variable, seen = contextvars.ContextVar("variable", default="none"), []
    variable.set("mine")
    testwork.task(queue, 0.01).add_done_callback(lambda event: seen.append(variable.get()))
    variable.set("other")
    until(lambda: seen)
    own = contextvars.copy_context()
    own.run(variable.set, "own")
    testwork.task(queue, 0).add_done_callback(lambda event: seen.append(variable.get()), context=own)
    until(lambda: len(seen) > 1)
    assert seen == ["mine", "own"]


def test_await(any_queue):
    async def main():
        event = testwork.task(any_queue, 0.02)
        await event
        await event  # again: it is over
        await asyncio.gather(*[testwork.task(any_queue, 0.001) for _ in range(20)])
        with pytest.raises(drupe.InternalError, match="broken"):
            await testwork.task(any_queue, 0.01, "broken")
        gate = _engine._event_open("gate")
        slow = any_queue.barrier(wait_for=[gate])
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(slow, 0.01)
        assert not slow.done  # the await was cancelled, the work was not
        gate._finish()
        await slow

    asyncio.run(main())
    any_queue.wait()


def test_await_on_several_loops(queue):
    results = []

    def loop(number):
        async def main():
            for _ in range(5):
                await testwork.task(queue, 0.002)
            results.append(number)

        asyncio.run(main())

    threads = [threading.Thread(target=loop, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert sorted(results) == [0, 1, 2]


def test_futures(queue):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        go = threading.Event()
        after = queue.barrier(wait_for=drupe.Event.from_future(pool.submit(go.wait, LONG)))
        assert not after.done
        go.set()
        after.wait(LONG)
        after = queue.barrier(wait_for=drupe.Event.from_future(pool.submit(int, "x")))
        with pytest.raises(drupe.DependencyError, match="invalid literal"):
            after.wait(LONG)
    queue.wait()
    future = concurrent.futures.Future()
    event = drupe.Event.from_future(future)
    future.cancel()
    with pytest.raises(drupe.CancelledError):
        event.wait(LONG)
    assert future.cancelled() and event.execution_status == "complete" and event.status == "failed"

    async def main():
        future = asyncio.get_running_loop().create_future()
        after = queue.barrier(wait_for=drupe.Event.from_future(future))
        asyncio.get_running_loop().call_later(0.01, future.set_result, 1)
        await after

    asyncio.run(main())
    with pytest.raises(TypeError, match="add_done_callback"):
        drupe.Event.from_future(3)


# --- Host tasks ------------------------------------------------------------------------------------------------------


def test_host_task_in_python(any_queue):
    seen = []
    first = testwork.task(any_queue, 0.05)
    event = any_queue.host_task(lambda a, b: seen.append((first.done, a, b)), (1, 2), wait_for=[first])
    after = any_queue.barrier()
    after.wait(LONG)
    assert seen == [(True, 1, 2)] and event.done and event.queue == any_queue
    any_queue.wait()


def test_host_tasks_wait_in_any_thread(queue):
    seen = []
    thread = threading.Thread(target=lambda: (queue.host_task(seen.append, (1,)).wait(LONG), seen.append(2)))
    thread.start()
    thread.join(LONG)
    assert seen == [1, 2]


def test_host_task_that_raises(queue):
    def broken():
        raise problem

    problem = ValueError("no good")
    event = queue.host_task(broken)
    behind = queue.host_task(pytest.fail, ("ran behind a failure",))
    with pytest.raises(drupe.HostTaskError, match="'broken'.*ValueError: no good.*test_events.py") as caught:
        event.wait(LONG)
    assert caught.value.__cause__ is problem
    assert [f.name for f in traceback.extract_tb(problem.__traceback__)] == ["broken"]
    with pytest.raises(drupe.DependencyError, match="no good") as caught:
        behind.wait(LONG)
    assert isinstance(caught.value.cause, drupe.HostTaskError) and caught.value.cause.__cause__ is problem
    assert event.error.__cause__ is problem  # asked again, it is told again
    queue.wait()


def test_a_future_that_raises_is_the_cause(queue):
    future = concurrent.futures.Future()
    behind = queue.barrier(wait_for=drupe.Event.from_future(future))
    future.set_exception(problem := KeyError("lost"))
    with pytest.raises(drupe.DependencyError, match="lost") as caught:
        behind.wait(LONG)
    assert caught.value.cause.__cause__ is problem


def test_exceptions_of_host_tasks_are_kept_but_not_what_their_frames_hold(queue):
    class Large:
        pass

    def broken(number):
        large = Large()  # noqa: F841
        kept.append(weakref.ref(large))
        raise ValueError(number)

    kept, events = [], []
    for number in range(40):
        events.append(queue.host_task(broken, (number,)))
        with pytest.raises(drupe.HostTaskError):
            events[-1].wait(LONG)
    gc.collect()
    assert [reference() for reference in kept[:-1]] == [None] * 39 and kept[-1]() is not None
    assert events[-2].error.__cause__.args == (38,) and events[0].error.__cause__ is None


def test_host_task_that_cannot_be_made_leaves_nothing_behind(queue, monkeypatch):
    with pytest.raises(TypeError, match=r"args must be a sequence of the function's arguments, not int: \(5,\)"):
        queue.host_task(print, 5)
    queue.wait(LONG)

    def interrupted(*work):
        raise KeyboardInterrupt

    monkeypatch.setattr(_events, "_Task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        queue.host_task(lambda: None)
    queue.wait(LONG)


def test_what_to_wait_for_is_told(queue):
    for wrong in (3, [3]):
        with pytest.raises(TypeError, match="drupe.Event"):
            drupe.wait_for(wrong)
        with pytest.raises(TypeError, match="drupe.Event"):
            queue.barrier(wait_for=wrong)


def test_host_task_in_c(queue):
    function = ctypes.CDLL(None).atoi  # of digits: what they say; 0 is success
    good, bad = ctypes.create_string_buffer(b"0"), ctypes.create_string_buffer(b"12")
    queue.host_task(function, user=good).wait(LONG)
    with pytest.raises(drupe.HostTaskError, match="returned 12"):
        queue.host_task(function, user=bad).wait(LONG)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(ctypes.cast(function, ctypes.c_void_p).value, b"int (void *)", None)
    with pytest.raises(drupe.HostTaskError, match="returned 12"):
        queue.host_task(capsule, user=ctypes.addressof(bad)).wait(LONG)
    shared = MemoryUSMShared(8, queue=queue)
    queue.memcpy(shared, b"34\0")
    with pytest.raises(drupe.HostTaskError, match="returned 34"):
        queue.host_task(function, user=shared).wait(LONG)


def test_host_task_arguments(queue):
    disguised = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda user: 0)
    with pytest.raises(TypeError, match="disguise"):
        queue.host_task(disguised)
    for wrong in (lambda: queue.host_task(3), lambda: queue.host_task(print, user=3),
                  lambda: queue.host_task(ctypes.CDLL(None).abs, (1,)),
                  lambda: queue.host_task(ctypes.CDLL(None).abs, user="text")):
        with pytest.raises(TypeError):
            wrong()


def test_nothing_is_left(queue):
    gc.collect()
    before = _engine._live()
    seen = []
    for _ in range(50):
        testwork.task(queue, 0).add_done_callback(seen.append)
        queue.host_task(seen.append, (1,))
    until(lambda: len(seen) == 100)
    queue.wait()
    seen.clear()
    gc.collect()
    until(lambda: _engine._live() == before)


def test_end_with_callbacks_pending(fresh):
    result = fresh("""
        import concurrent.futures, drupe
        import testwork
        queue = drupe.Queue("host")
        future = concurrent.futures.Future()
        queue.barrier(wait_for=drupe.Event.from_future(future)).add_done_callback(print)
        queue.host_task(print, ("never",))
        testwork.task(drupe.Queue("host"), 0.01).add_done_callback(lambda event: None)
        print("end")
    """, timeout=60)
    assert result.returncode == 0 and result.stdout == "end\n", result.stderr


def test_end_while_a_callback_stands_still(fresh):
    result = fresh("""
        import drupe, threading
        import testwork
        entered, queue = threading.Event(), drupe.Queue("host")
        testwork.task(queue, 0).add_done_callback(lambda event: (entered.set(), threading.Event().wait()))
        entered.wait()
        queue.host_task(lambda: (print("host task"), entered.clear(), threading.Event().wait()))
        queue.host_task(print, ("never",))
        drupe.Queue("host").host_task(print, ("never",))
        testwork.task(drupe.Queue("host"), 0).add_done_callback(print)
        while entered.is_set():
            pass
        print("end")
    """, timeout=60)
    assert result.returncode == 0 and result.stdout == "host task\nend\n", result.stderr


def test_callbacks_that_are_due_are_called_before_the_end(fresh):
    result = fresh("""
        import drupe
        for number in range(20):
            drupe.Event().add_done_callback(lambda event, number=number: print(number))
        gate = drupe._engine._event_open("gate")
        told = []
        gate.add_done_callback(told.append)
        gate._finish()
        while not told:
            pass
    """, timeout=60)
    assert result.returncode == 0 and result.stdout == "".join(f"{number}\n" for number in range(20)), result.stderr


def test_interrupt_waits_for_python(fresh):
    result = fresh("""
        import concurrent.futures, drupe, os, signal, threading
        queue = drupe.Queue("host")
        future = concurrent.futures.Future()
        event = queue.barrier(wait_for=drupe.Event.from_future(future))
        try:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            queue.wait()
        except KeyboardInterrupt:
            print("interrupted")
        future.set_result(None)
        try:
            event.wait()  # an interrupted wait gives up what has not begun
        except drupe.DeviceError:
            print(event.status)
        queue.barrier().wait()
    """, timeout=60)
    assert result.stdout == "interrupted\nfailed\n", result.stderr
