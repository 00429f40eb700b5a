"""Copies between host and device: which thread makes them, in which order, and what becomes of bad addresses."""
import shutil

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import _engine

CPUS = [one.filter_string for one in drupe.devices() if one.device_type.name == "cpu"]
SMALL = 1 << 16


@pytest.fixture(params=CPUS)
def idle(request):
    queue = drupe.Queue(request.param)
    yield queue
    queue.wait()


@pytest.mark.parametrize("count", [1, SMALL])
def test_small_copies_are_over_at_once_where_nothing_is_before_them(idle, count):
    x, source, back = da.zeros(count, dtype="uint8", queue=idle), np.ones(count, np.uint8), np.zeros(count, np.uint8)
    idle.wait()
    for _ in range(20):
        assert idle.copy(x, source).done and idle.copy(back, x).done
        assert np.array_equal(back, source)
        source += 1


def test_small_copies_keep_their_place(idle):
    x, back = da.zeros(SMALL, dtype="uint8", queue=idle), np.zeros(SMALL, np.uint8)
    idle.wait()
    gate = _engine._event_open("gate")
    idle.barrier(wait_for=[gate])
    to, from_ = idle.copy(x, np.ones(SMALL, np.uint8)), idle.copy(back, x)
    assert not to.done and not from_.done and not back.any()
    gate._finish()
    from_.wait()
    assert back.all()


def test_small_copies_wait_for_other_queues(idle):
    x, back = da.zeros(SMALL, dtype="uint8", queue=idle), np.zeros(SMALL, np.uint8)
    idle.wait()
    other, gate = drupe.Queue(idle.device), _engine._event_open("gate")
    other.barrier(wait_for=[gate])
    written = other.fill(x, 7)
    read = idle.copy(back, x, wait_for=[written])
    assert not read.done and not back.any()
    gate._finish()
    read.wait()
    assert (back == 7).all()


@pytest.mark.parametrize("count", [1 << 20, (1 << 20) + 3, (1 << 22) + 1, (1 << 24) + 5])
def test_large_copies_are_whole_and_keep_their_place(idle, count):
    source, back = np.arange(count, dtype=np.uint32).astype(np.uint8), np.zeros(count, np.uint8)
    x = da.zeros(count, dtype="uint8", queue=idle)
    idle.copy(x, source)
    x += 1
    idle.copy(back, x).wait()
    source += 1
    assert np.array_equal(back, source)


def test_copies_of_a_profiling_queue_have_times(idle):
    queue = drupe.Queue(idle.device, profiling=True)
    x = da.zeros(SMALL, dtype="uint8", queue=queue)
    event = queue.copy(x, np.ones(SMALL, np.uint8))
    event.wait()
    assert event.profiling_info_end >= event.profiling_info_start > 0


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.parametrize("count", [1 << 18, 1 << 21])
def test_who_waits_for_a_copy_helps(fresh, count):
    done = fresh("""
        import numpy as np, drupe, drupe.array as da
        flag = da.zeros(1, dtype="int32", device="host")
        opened, n = np.asarray(flag), %d
        gate = drupe.Program("kernel void gate(int *f) { while (!__atomic_load_n(f, __ATOMIC_ACQUIRE)) {} }",
                             device="host", language="c").gate
        queue, back = drupe.Queue("host"), np.zeros(n, np.uint8)
        target = da.zeros(n, dtype="uint8", queue=queue)
        queue.wait()
        held = gate(flag, global_size=1)  # on the only worker
        while held.status != "running":
            pass
        queue.copy(target, np.ones(n, np.uint8)).wait(timeout=60)
        queue.copy(back, target)
        queue.wait(timeout=60)
        assert back.all()
        opened[0] = 1
        held.wait()
        print("helped")
    """ % count, DRUPE_HOST_THREADS="1")
    assert done.stdout == "helped\n", done.stderr


@pytest.mark.parametrize("owner", ["4096", "(ctypes.c_char * n).from_address(4096)"])
def test_copy_from_nowhere_fails_by_itself(fresh, owner):
    done = fresh("""
        import ctypes, drupe
        from drupe import native
        drupe.contain_faults()
        stream, n = native.stream("host"), 1 << 20
        there = stream.allocate_device_memory(n)
        stream.transfer_host2device(%s, there, n)
        try:
            stream.sync()  # which does not help here
        except (drupe.DeviceLostError, native.OffloadError) as error:
            print("failed")
    """ % owner)
    assert done.stdout == "failed\n", done.stderr


@pytest.mark.parametrize("device", CPUS)
@pytest.mark.parametrize("view", ["np.frombuffer(mapped, np.uint8)", "np.asarray(np.memmap(file, np.uint8))[1:]",
                                  "np.frombuffer(memoryview(mapped), np.uint8)[::1]"])
@pytest.mark.parametrize("ends", ["there, view", "view, there"])
def test_array_of_a_file_that_got_shorter_fails_the_copy_alone(fresh, device, view, ends):
    done = fresh("""
        import mmap, tempfile, numpy as np, drupe, drupe.array as da
        drupe.contain_faults()
        file, n = tempfile.TemporaryFile(), 300000
        file.truncate(n)
        mapped = mmap.mmap(file.fileno(), n)
        view = %s
        queue = drupe.Queue(%r)
        there = da.zeros(view.size, dtype="uint8", queue=queue)
        queue.wait()
        file.truncate(0)
        try:
            queue.copy(%s).wait()
        except drupe.DeviceLostError:
            print("failed")
    """ % (view, device, ends))
    assert done.stdout == "failed\n", done.stderr


@pytest.mark.parametrize("work", ["copy(there, lent)", "copy(lent, there)", "fill(lent, 7)"])
def test_array_over_a_file_that_got_shorter_fails_alone(fresh, work):
    done = fresh("""
        import mmap, tempfile, numpy as np, drupe, drupe.array as da
        drupe.contain_faults()
        file, n = tempfile.TemporaryFile(), 100000
        file.truncate(n)
        lent = da.from_dlpack(np.frombuffer(mmap.mmap(file.fileno(), n), np.uint8), copy=False)
        queue, there = lent.queue, da.zeros(n, dtype="uint8", queue=lent.queue)
        queue.wait()
        file.truncate(0)
        try:
            queue.%s.wait()
        except drupe.DeviceLostError:
            print("failed")
    """ % work, DRUPE_DEVICES="host:*")
    assert done.stdout == "failed\n", done.stderr
