"""Events, ordering, copies, fills and failures of work on queues."""
import threading
import time

import pytest
import testwork

import drupe
from drupe import _engine
from drupe.memory import MemoryUSMDevice, MemoryUSMShared


def test_event_life(queue):
    gate = _engine._event_open("gate")
    event = testwork.task(queue, 0, None, [gate])
    assert event.status in ("queued", "submitted", "running") and not event.done
    assert event.error is None and event.queue == queue
    gate._finish()
    event.wait()
    assert event.status == "complete" and event.done
    assert "complete" in repr(event)
    assert queue.pending == 0


def test_wait_with_timeout(queue):
    gate = _engine._event_open("gate")
    event = testwork.task(queue, 0, None, [gate])
    with pytest.raises(drupe.WaitTimeoutError) as caught:
        event.wait(timeout=0.01)
    assert isinstance(caught.value, TimeoutError)
    with pytest.raises(drupe.WaitTimeoutError):
        queue.wait(0.0)
    gate._finish()
    event.wait(30)
    queue.wait(timeout=30)


@pytest.mark.parametrize("wrong, error", [(-1, ValueError), (float("nan"), ValueError), ("soon", TypeError)])
def test_bad_timeouts(queue, wrong, error):
    with pytest.raises(error):
        queue.barrier().wait(wrong)


def test_waits_leave_the_gil(queue):
    gate = _engine._event_open("gate")
    event = testwork.task(queue, 0, None, [gate])
    thread = threading.Thread(target=lambda: (time.sleep(0.05), gate._finish()))
    thread.start()
    event.wait(60)  # in vain if the thread could not run meanwhile
    thread.join()


def test_order_and_dependencies(device):
    first, second = drupe.Queue(device), drupe.Queue(device)
    gate = _engine._event_open("gate")
    slow = testwork.task(first, 0, None, [gate])
    after = second.barrier(wait_for=slow)
    assert not after.done
    gate._finish()
    after.wait()
    assert slow.done
    drupe.Event.wait_for([slow, after])
    drupe.Event.wait_for(after)


def test_dependencies_across_backends(device, opencl):
    host = drupe.Queue("host")
    other = drupe.Queue(opencl)
    slow = testwork.task(host, 0.2)
    after = other.barrier(wait_for=[slow])
    after.wait()
    assert slow.done


def test_wait_for_types(queue):
    for wrong in ([1], 1, "abc", [None]):
        with pytest.raises(TypeError):
            queue.barrier(wait_for=wrong)
    with pytest.raises(TypeError, match="wait_for takes"):
        drupe.Event.wait_for([3])


def test_profiling(device):
    queue = drupe.Queue(device, profiling=True)
    memory = MemoryUSMDevice(1 << 20, queue=queue)
    event = queue.fill(memory, 1)
    times = event.times
    assert times.queued <= times.submitted <= times.started <= times.ended
    assert times.duration == times.ended - times.started
    assert event.profiling_info_submit == times.submitted
    assert event.profiling_info_start == times.started and event.profiling_info_end == times.ended
    assert type(times) is drupe.EventTimes and len(times) == 5


def test_no_times_without_profiling(queue):
    with pytest.raises(drupe.UnsupportedError, match="profiling"):
        queue.barrier().times


def test_failure_is_raised_where_it_is_waited_for(queue):
    bad = testwork.task(queue, 0.05, "the bearing broke")
    behind = queue.barrier()
    with pytest.raises(drupe.InternalError, match="the bearing broke") as caught:
        bad.wait()
    assert caught.value.device == queue.device.filter_string
    assert bad.status == "failed" and isinstance(bad.error, drupe.InternalError)
    with pytest.raises(drupe.DependencyError, match="did not run|failed"):
        behind.wait()
    queue.wait()
    queue.barrier().wait()


def test_failure_is_raised_by_the_queue(queue):
    event = testwork.task(queue, 0, "first cause")
    with pytest.raises(drupe.DeviceError, match="first cause"):
        queue.wait()
    queue.wait()
    assert event.status == "failed"


def test_failure_spreads_to_what_waits_for_it(device):
    first, second = drupe.Queue(device), drupe.Queue(device)
    bad = testwork.task(first, 0.1, "broken")
    after = second.barrier(wait_for=bad)
    with pytest.raises(drupe.DependencyError):
        after.wait()
    with pytest.raises(drupe.InternalError, match="broken"):
        bad.wait()
    for queue in (first, second):
        try:
            queue.wait()
        except drupe.DeviceError:
            pass
        queue.barrier().wait()


def test_copy_in_every_direction(queue):
    data = bytes(range(256))
    one, two = MemoryUSMDevice(256, queue=queue), MemoryUSMShared(256, queue=queue)
    queue.copy(one, data)
    queue.memcpy(two, one)
    back = bytearray(256)
    event = queue.copy(back, two)
    event.wait()
    assert bytes(back) == data
    assert queue.copy(one, bytes(10), nbytes=5, event=False) is None
    queue.wait()
    assert bytes(one) == bytes(5) + data[5:]
    queue.copy(one, b"").wait()


def test_copy_errors(queue):
    memory = MemoryUSMDevice(16, queue=queue)
    with pytest.raises(ValueError, match="17 bytes"):
        queue.copy(memory, bytes(17))
    with pytest.raises(ValueError, match="cannot write 20"):
        queue.copy(memory, bytes(16), nbytes=20)
    with pytest.raises(TypeError, match="destination must be USM"):
        queue.copy(5, memory)
    with pytest.raises((TypeError, BufferError)):
        queue.copy(b"constant", memory)
    with pytest.raises(TypeError, match="missing required argument 'src'"):
        queue.copy(memory)
    queue.wait()


def test_fill(queue):
    import numpy as np

    memory = MemoryUSMShared(64, queue=queue)
    for value, dtype in ((1.5, "float32"), (-7, "int64"), (3, np.int32), (2.25, float), (True, "bool")):
        queue.fill(memory, value, dtype=dtype).wait()
        name = getattr(drupe.array.DType(dtype), "name")
        assert (np.frombuffer(memory, name) == value).all()
    queue.fill(memory, b"abcd", nbytes=8).wait()
    assert bytes(memory)[:8] == b"abcdabcd"
    queue.fill(memory, 255).wait()
    assert set(bytes(memory)) == {255}
    assert queue.fill(memory, 0, event=False) is None
    queue.wait()


def test_fill_errors(queue):
    memory = MemoryUSMShared(64, queue=queue)
    with pytest.raises(OverflowError, match="256"):
        queue.fill(memory, 256)
    with pytest.raises(ValueError, match="1, 2, 4, 8 or 16 bytes"):
        queue.fill(memory, b"abc")
    with pytest.raises(TypeError, match="no data type"):
        queue.fill(memory, 1, dtype="complex256")
    with pytest.raises(TypeError, match="integer"):
        queue.fill(memory, 1.5, dtype="int32")
    with pytest.raises(drupe.DeviceError):
        queue.fill(memory, 1.5, nbytes=7, dtype="float32")


def test_many_threads_on_one_queue(queue):
    import numpy as np

    target = MemoryUSMShared(8 * 1000, queue=queue)
    errors = []

    def work(number):
        try:
            for _ in range(50):
                queue.fill(target, number, dtype="int64").wait()
        except Exception as problem:  # the thread's exception belongs to the test
            errors.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert set(np.frombuffer(target, "int64")) <= {0, 1, 2, 3}
