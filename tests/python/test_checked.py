"""drupe.checked(): what it finds in a Python program, and what it must leave alone."""
import ctypes

import numpy
import pytest

import drupe
import drupe.array as da
import drupe.memory as dm


def queues():
    first = drupe.Queue("host")
    return first, drupe.Queue(first.device, first.context)


def test_a_missing_wait_is_found_and_both_lines_are_named():
    one, other = queues()
    memory = dm.MemoryUSMShared(4096, queue=one)
    with drupe.checked():
        one.fill(memory, 1)
        with pytest.raises(drupe.CheckError) as caught:
            other.fill(memory, 2)
        other.wait()
    text = str(caught.value)
    lines = [int(part.split()[0]) for part in text.replace(":", " ").split("line ")[1:]]
    assert text.count("test_checked.py") == 2 and len(lines) == 2
    assert lines[0] == lines[1] + 2
    assert "may still be writing" in text and caught.value.status == "CHECK"


def test_waits_and_one_queue_are_enough():
    one, other = queues()
    memory = dm.MemoryUSMShared(4096, queue=one)
    with drupe.checked() as mode:
        before = mode.findings
        event = one.fill(memory, 1)
        other.fill(memory, 2, wait_for=[event])
        other.wait()
        one.fill(memory, 3)
        one.fill(memory, 4)
        one.wait()
        assert bytes(memory.copy_to_host()[:1]) == b"\4"
        assert mode.findings == before


@pytest.mark.parametrize("device", ["host", "opencl:cpu"])
def test_arrays_are_left_alone(device):
    """Everything that arrays do is in order, in bounds and within what they say they touch."""
    try:
        queue = drupe.Queue(device)
    except drupe.DeviceError as error:
        pytest.skip(str(error))
    with drupe.checked() as mode:
        before = mode.findings
        host = numpy.arange(24, dtype=numpy.float64).reshape(4, 6)
        x = da.asarray(host, device=queue.device)
        y = (x * 2 + 1)[::-1, 1::2]
        assert numpy.array_equal(da.asnumpy(y), (host * 2 + 1)[::-1, 1::2])
        assert float(da.sum(x)) == host.sum()
        assert numpy.array_equal(da.asnumpy(da.sum(x, axis=0)), host.sum(axis=0))
        assert numpy.array_equal(da.asnumpy(da.matmul(x, da.permute_dims(x, (1, 0)))), host @ host.T)
        z = da.zeros(1000, device=queue.device)
        z[::3] = 7
        z += da.arange(1000, device=queue.device)
        expected = numpy.zeros(1000)
        expected[::3] = 7
        assert numpy.array_equal(da.asnumpy(z), expected + numpy.arange(1000))
        assert mode.findings == before


def test_host_memory_of_earlier_copies_may_be_used_again():
    """Temporaries of NumPy get the addresses of earlier ones; that is no race."""
    one, other = queues()
    with drupe.checked():
        memories = [dm.MemoryUSMDevice(80000, queue=queue) for queue in (one, other) * 20]
        for memory, queue in zip(memories, (one, other) * 20):
            queue.memcpy(memory, numpy.full(80000, 3, dtype=numpy.uint8))
            out = numpy.empty(80000, dtype=numpy.uint8)
            queue.memcpy(out, memory)
            queue.wait()
            assert (out == 3).all()


def test_the_host_is_told_about_work_of_other_queues():
    one, other = queues()
    memory = dm.MemoryUSMShared(4096, queue=one)
    with drupe.checked():
        event = other.fill(memory, 9)
        with pytest.raises(drupe.CheckError, match="the host would"):
            memoryview(memory)
        event.wait()
        assert memoryview(memory)[0] == 9


def test_a_write_to_freed_memory_is_found():
    one, _ = queues()
    with pytest.raises(drupe.CheckError, match="after free.* byte 16 of 256"):
        with drupe.checked():
            memory = dm.MemoryUSMHost(256, queue=one)
            address = memory._pointer
            del memory
            ctypes.memset(address + 16, 0, 1)


def test_a_write_behind_the_end_is_found_at_the_end_of_the_block():
    one, _ = queues()
    with pytest.raises(drupe.CheckError, match="Out of bounds.*behind"):
        with drupe.checked():
            memory = dm.MemoryUSMHost(100, queue=one)
            ctypes.memset(numpy.asarray(memory).ctypes.data + 100, 1, 4)
    one.wait()


def test_an_exception_of_the_block_is_not_replaced():
    one, _ = queues()
    with pytest.raises(KeyError):
        with drupe.checked():
            memory = dm.MemoryUSMHost(100, queue=one)
            ctypes.memset(numpy.asarray(memory).ctypes.data + 100, 1, 4)
            raise KeyError("mine")
    del memory


def test_opencl_kernels_by_const_and_alignment():
    try:
        queue = drupe.Queue("opencl")
    except drupe.DeviceError as error:
        pytest.skip(str(error))
    source = """kernel void twice(global const float *in, global float *out)
        { out[get_global_id(0)] = 2 * in[get_global_id(0)]; }"""
    twice = drupe.program.build(source, queue=queue).twice
    other = drupe.Queue(queue.device, queue.context)
    a, b, c = (da.zeros(64, dtype="float32", device=queue.device) for _ in range(3))
    da.asnumpy(a), da.asnumpy(b), da.asnumpy(c)
    with drupe.checked():
        queue.submit(twice, [a, b], [64])
        other.submit(twice, [a, c], [64])
        with pytest.raises(drupe.CheckError, match="'twice'.*may still be"):
            other.submit(twice, [b, a], [64])
        queue.wait()
        other.wait()
