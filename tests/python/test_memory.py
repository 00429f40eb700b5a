"""USM memory: the three kinds, copies, buffers and pools."""
import numpy as np
import pytest
import testwork

import drupe
import drupe.array as da
from drupe import memory as dm

KINDS = {"device": dm.MemoryUSMDevice, "shared": dm.MemoryUSMShared, "host": dm.MemoryUSMHost}


@pytest.fixture(params=sorted(KINDS))
def kind(request):
    return request.param


def test_allocate(queue, kind):
    memory = KINDS[kind](100, queue=queue)
    assert memory.nbytes == memory.size == len(memory) == 100
    assert memory.usm_type == memory.get_usm_type() == kind
    assert memory.queue == queue and memory.device == queue.device
    assert memory._pointer % 64 == 0
    assert "100 bytes" in repr(memory) and queue.device.filter_string in repr(memory)


def test_alignment(queue, kind):
    memory = KINDS[kind](100, alignment=4096, queue=queue)
    assert memory._pointer % 4096 == 0
    with pytest.raises(drupe.InvalidArgumentError, match="power of two"):
        KINDS[kind](100, alignment=48, queue=queue)


def test_places(device, kind):
    assert KINDS[kind](4, device=device).queue == device.queue
    assert KINDS[kind](4, device=device.filter_string).device == device
    with pytest.raises(TypeError, match="either device or queue"):
        KINDS[kind](4, device=device, queue=device.queue)
    with pytest.raises(TypeError, match="queue must be a drupe.Queue"):
        KINDS[kind](4, queue="cpu")


def test_copies(queue, kind):
    memory = KINDS[kind](8, queue=queue)
    memory.copy_from_host(b"12345678")
    assert bytes(memory) == memory.tobytes() == b"12345678"
    assert memory.copy_to_host() == bytearray(b"12345678")
    target = np.zeros(2, dtype=np.float32)
    assert memory.copy_to_host(target) is target
    assert target.tobytes() == b"12345678"
    memory.copy_from_host(np.arange(1, dtype=np.float32))
    assert memory.tobytes() == bytes(4) + b"5678"
    memory.memset(7)
    assert memory.tobytes() == b"\7" * 8
    memory.memset()
    assert memory.tobytes() == bytes(8)
    for other in KINDS.values():
        source = other(b"abcdefgh", queue=queue)
        memory.copy_from_device(source)
        assert memory.tobytes() == b"abcdefgh"


def test_copy_between_devices(kind):
    everything = [KINDS[kind](str(number).encode() * 64, device=one)
                  for number, one in enumerate(drupe.devices())]
    for source in everything:
        for name in KINDS:
            for one in drupe.devices():
                target = KINDS[name](64, device=one)
                target.copy_from_device(source)
                assert target.tobytes() == source.tobytes()


def test_copy_waits_for_the_other_queue(device):
    writer, reader = drupe.Queue(device), drupe.Queue(device)
    source, target = dm.MemoryUSMDevice(bytes(64), queue=writer), dm.MemoryUSMDevice(64, queue=reader)
    testwork.task(writer, 0.2)
    writer.fill(source, 9)
    target.copy_from_device(source)
    assert target.tobytes() == b"\t" * 64


def test_buffers(queue, kind):
    memory = KINDS[kind](np.arange(4, dtype=np.int32), queue=queue)
    if kind == "device":
        with pytest.raises(BufferError, match="copy_to_host"):
            memoryview(memory)
        return
    view = np.frombuffer(memory, dtype=np.int32)
    assert view.tolist() == [0, 1, 2, 3]
    view[2] = 77
    assert np.frombuffer(memory.tobytes(), np.int32)[2] == 77
    assert not memoryview(memory).readonly


def test_a_view_keeps_the_memory(queue):
    memory = dm.MemoryUSMShared(4096, queue=queue)
    memory.memset(5)
    view = np.frombuffer(memory, dtype=np.uint8)
    del memory
    for _ in range(20):
        dm.MemoryUSMShared(4096, queue=queue).memset(6)
    assert set(view) == {5}


def test_a_view_waits_for_the_queue(queue):
    memory = dm.MemoryUSMShared(64, queue=queue)
    memory.memset(1)
    testwork.task(queue, 0.1)
    queue.fill(memory, 2, event=False)
    assert set(memoryview(memory).tolist()) == {2}


def test_size_errors(queue, kind):
    with pytest.raises(ValueError, match="at least 1 byte"):
        KINDS[kind](0, queue=queue)
    with pytest.raises(ValueError, match="negative"):
        KINDS[kind](-1, queue=queue)
    with pytest.raises(TypeError):
        KINDS[kind](1.5, queue=queue)
    with pytest.raises(ValueError, match="do not fit"):
        KINDS[kind](4, queue=queue).copy_from_host(bytes(5))
    with pytest.raises(ValueError, match="do not fit"):
        KINDS[kind](4, queue=queue).copy_to_host(bytearray(3))
    with pytest.raises(TypeError, match="copy_from_host|source must be"):
        KINDS[kind](4, queue=queue).copy_from_host(5)


def test_out_of_memory(queue, kind):
    with pytest.raises(dm.USMAllocationError, match="bytes") as caught:
        KINDS[kind](1 << 50, queue=queue)
    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, drupe.DeviceMemoryError)
    assert "trim" in caught.value.hint
    assert KINDS[kind](16, queue=queue).nbytes == 16


def test_interface(queue, kind):
    memory = KINDS[kind](16, queue=queue)
    interface = memory.__sycl_usm_array_interface__
    assert interface["shape"] == (16,) and interface["typestr"] == "|u1" and interface["version"] == 1
    assert interface["data"] == (memory._pointer, False) and interface["syclobj"] == queue
    again = KINDS[kind](memory)
    assert again._pointer == memory._pointer
    assert dm.as_usm_memory(memory) is memory


def test_memory_of_an_array(device):
    x = da.arange(4, dtype="int32", device=device, usm_type="shared")
    behind = dm.as_usm_memory(x)
    assert behind._pointer == x._pointer and isinstance(behind, dm.MemoryUSMShared)
    with pytest.raises(ValueError, match='of kind "shared"'):
        dm.MemoryUSMHost(x)
    with pytest.raises(TypeError, match="no USM memory"):
        dm.as_usm_memory([1, 2])


def test_pool(device):
    pool = dm.pool(device)
    before = pool.used
    held = [dm.MemoryUSMDevice(1 << 16, device=device) for _ in range(4)]
    assert pool.used >= before + (4 << 16) and pool.peak >= pool.used and pool.reserved >= pool.used
    assert pool.count >= 4 and device.filter_string in repr(pool)
    del held
    assert pool.used == before
    assert pool.trim() >= 0 and pool.reserved >= pool.used
