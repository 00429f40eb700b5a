"""The things that the manuals of other Python bindings of devices show first, written with Drupe's names."""
import concurrent.futures
import gc
import sys
import threading

import numpy
import pytest
import testwork

import drupe
import drupe.array as da
from drupe import _engine
from drupe.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, as_usm_memory

KINDS = (MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost)

SOURCE = """
kernel void axpy(global const float *x, global float *y, float a)
{
    y[get_global_id(0)] += a * x[get_global_id(0)];
}
kernel void reverse(global const int *in, global int *out, local int *part)
{
    int lid = get_local_id(0), size = get_local_size(0), base = get_group_id(0) * size;
    part[lid] = in[base + lid];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[base + lid] = part[size - 1 - lid];
}
"""


# --- Choosing a device ------------------------------------------------------------------------------------------

def test_select_by_filter_and_by_kind():
    assert drupe.Device() == drupe.select_default_device()
    for device in drupe.devices():
        assert drupe.Device(device.filter_string) == device
        assert hash(drupe.Device(device.filter_string)) == hash(device)
    assert drupe.select_cpu_device().is_cpu
    assert drupe.has_cpu_devices() and drupe.get_num_devices() == len(drupe.devices())
    with pytest.raises(drupe.DeviceNotFoundError):
        drupe.Device("cpu:99")


def test_the_list_of_platforms(capsys):
    drupe.lsplatform()
    printed = capsys.readouterr().out
    assert "host" in printed
    for platform in drupe.get_platforms():
        assert platform.name and all(device in drupe.devices() for device in platform.get_devices())


def test_sub_devices_share_the_parents_context(device):
    try:
        parts = device.create_sub_devices(partition=1)
    except drupe.DeviceError as error:
        pytest.skip(str(error))
    assert sum(part.max_compute_units for part in parts) <= device.max_compute_units
    queues = [drupe.Queue(part) for part in parts]
    assert all(part.parent_device == device for part in parts)
    arrays = [da.arange(100, queue=queue) for queue in queues]
    assert [int(da.sum(array)) for array in arrays] == [4950] * len(parts)


# --- Memory -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", KINDS)
def test_usm_round_trip(queue, kind):
    data = bytes(range(256)) * 4
    memory = kind(len(data), queue=queue)
    memory.copy_from_host(data)
    assert memory.tobytes() == bytes(memory.copy_to_host()) == data
    target = bytearray(len(data))
    memory.copy_to_host(target)
    assert target == data and len(memory) == memory.nbytes == len(data)
    other = MemoryUSMDevice(len(data), queue=queue)
    other.copy_from_device(memory)
    assert other.tobytes() == data


@pytest.mark.parametrize("kind", KINDS[1:])
def test_shared_memory_is_a_buffer(queue, kind):
    memory = kind(64, queue=queue)
    view = numpy.asarray(memory).view("float64")
    view[:] = numpy.arange(8)
    assert numpy.frombuffer(memory.tobytes()).tolist() == list(range(8))
    assert memoryview(memory).nbytes == 64


def test_the_interface_of_usm_arrays_goes_both_ways(queue):
    array = da.arange(10, dtype="int32", queue=queue)

    class Other:
        __sycl_usm_array_interface__ = array.__sycl_usm_array_interface__
        keep = array

    memory = as_usm_memory(array)
    assert memory._pointer == Other.__sycl_usm_array_interface__["data"][0]
    assert MemoryUSMDevice(Other()).tobytes() == numpy.arange(10, dtype="int32").tobytes()


# --- Kernels ----------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def program(opencl):
    return drupe.Program(SOURCE, opencl)


def test_submit_with_ranges_and_dependencies(program):
    queue = program.queue
    x = da.arange(64, dtype="float32", queue=queue)
    y = da.ones(64, dtype="float32", queue=queue)
    first = queue.submit(program.axpy, [x, y, 2.0], [64])
    second = queue.submit(program.axpy, [x, y, numpy.float32(1)], [64], [16], wait_for=[first])
    drupe.Event.wait_for([first, second])
    assert numpy.allclose(y.asnumpy(), 1 + 3 * numpy.arange(64))


def test_local_memory(program):
    queue = program.queue
    given = da.arange(32, dtype="int32", queue=queue)
    taken = da.zeros(32, dtype="int32", queue=queue)
    queue.submit(program.reverse, [given, taken, drupe.LocalMemory(8 * 4)], [32], [8]).wait()
    assert taken.asnumpy().reshape(4, 8)[:, ::-1].ravel().tolist() == list(range(32))


def test_profiling_of_a_kernel(program):
    queue = drupe.Queue(program.device, program.context, profiling=True)
    x = da.ones(1024, dtype="float32", queue=queue)
    event = queue.submit(program.axpy, [x, da.ones(1024, dtype="float32", queue=queue), 1.0], [1024])
    event.wait()
    times = event.times
    assert times.submitted <= times.started <= times.ended and times.duration == times.ended - times.started
    assert event.profiling_info_end - event.profiling_info_start == times.duration


def test_timer(queue):
    queue = drupe.Queue(queue.device, profiling=True)
    timer = drupe.Timer()
    with timer(queue):
        da.sum(da.arange(1000, queue=queue))
    host, device = timer.dt
    assert host > 0 and device >= 0


# --- Lives ------------------------------------------------------------------------------------------------------

OBJECTS = {
    "device": lambda device: drupe.Device(device.filter_string),
    "context": lambda device: drupe.Context(device),
    "queue": lambda device: drupe.Queue(device),
    "event": lambda device: drupe.Queue(device).barrier(),
    "memory": lambda device: MemoryUSMDevice(64, queue=device.queue),
    "array": lambda device: da.ones((3, 4), device=device) * 2,
    "error": lambda device: _failure(device),
    "exported": lambda device: da.ones(4, device=device).__sycl_usm_array_interface__,
    "attributes": lambda device: (device.name, device.context.devices, device.queue.device, device.info()),
}


def _failure(device):
    try:
        MemoryUSMDevice(1 << 60, queue=device.queue)
    except drupe.DeviceError as error:
        return str(error)
    raise AssertionError("it was not refused")


@pytest.mark.parametrize("name", OBJECTS)
def test_reference_counts(device, name):
    """Making and dropping an object many times leaves the numbers of objects and references as they were."""
    make, times = OBJECTS[name], 400
    for _ in range(times):
        make(device)
    device.queue.wait()
    gc.collect()
    live, blocks, used = _engine._live(), sys.getallocatedblocks(), drupe.memory.pool(device).used
    counts = [sys.getrefcount(thing) for thing in (device, None, type(device))]
    for _ in range(times):
        make(device)
    device.queue.wait()
    gc.collect()
    assert _engine._live() == live
    assert drupe.memory.pool(device).used == used
    assert sys.getallocatedblocks() - blocks < times / 2
    after = [sys.getrefcount(thing) for thing in (device, None, type(device))]
    assert abs(after[0] - counts[0]) < 3 and abs(after[1] - counts[1]) < times / 2 and abs(after[2] - counts[2]) < 3


def test_a_fresh_process_leaves_nothing(fresh, device):
    """Everything at once, then the module's own count of what is alive: nothing, and no word on the terminal."""
    result = fresh(f"""
        import gc, numpy, drupe, drupe.array as da
        from drupe import _engine
        from drupe.memory import MemoryUSMDevice
        before = dict(_engine._live())
        def work(filter):
            queue = drupe.Queue(filter)
            x = da.asarray(numpy.arange(1000.0), queue=queue)
            events = [queue.fill(MemoryUSMDevice(100, queue=queue), 3) for _ in range(50)]
            assert da.sum(x * x).asnumpy() == (numpy.arange(1000.0) ** 2).sum()
            events.append(queue.copy(MemoryUSMDevice(8, queue=queue), bytes(8), wait_for=events))
            try:
                MemoryUSMDevice(1 << 60, queue=queue)
            except drupe.DeviceError:
                pass
            queue.wait()
        for _ in range(3):
            work({device.filter_string!r})
        gc.collect()
        assert drupe.memory.pool({device.filter_string!r}).used == 0
        left = {{name: count - before.get(name, 0) for name, count in _engine._live().items()}}
        singles = ("Device", "Context", "Queue")
        assert not any(count for name, count in left.items() if name not in singles), left
        print("clean")
    """)
    assert (result.returncode, result.stdout, result.stderr) == (0, "clean\n", "")


def test_free_in_flight(device):
    """Everything that work uses is dropped at once; the result is right and the memory comes back."""
    queue = drupe.Queue(device)
    used = drupe.memory.pool(device).used
    result = MemoryUSMDevice(8 * 4096, queue=queue)
    for round_ in range(30):
        testwork.task(queue, 0.002)
        queue.copy(result, numpy.full(4096, round_, dtype="int64"))
        x = da.full(4096, round_, dtype="int64", queue=queue) + 1
        queue.copy(result, x)
        del x
    gc.collect()
    assert set(numpy.frombuffer(result.tobytes(), dtype="int64")) == {30}
    queue.wait()
    del result
    gc.collect()
    assert drupe.memory.pool(device).used == used


def test_a_queue_is_dropped_with_work_in_flight(device):
    memory = MemoryUSMDevice(4096, queue=device.queue)
    for value in range(20):
        queue = drupe.Queue(device, device.context)
        testwork.task(queue, 0.001)
        event = queue.fill(memory, value)
        del queue
        event.wait()
        assert memory.tobytes() == bytes([value]) * 4096


def test_threads(device):
    """Eight threads make, use and drop objects of their own and of all."""
    shared = drupe.Queue(device)
    failures, ready = [], threading.Barrier(8)

    def work(number):
        ready.wait()
        for i in range(20):
            own = drupe.Queue(device, device.context)
            x = da.full(500, number, dtype="int64", queue=shared)
            memory = MemoryUSMDevice(4000, queue=own)
            event = own.copy(memory, x, wait_for=[shared.barrier()])
            del x
            total = numpy.frombuffer(memory.tobytes(), dtype="int64").sum() if i % 2 else None
            event.wait()
            if total is not None and total != 500 * number:
                failures.append((number, i, total))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, number) for number in range(8)]:
            future.result(timeout=120)
    assert not failures
    shared.wait()
