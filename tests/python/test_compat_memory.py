"""dpctl.memory: USM memory that may be inherited from, viewed, copied and pickled."""
import array
import pickle
import sys

import drupe
import numpy
import pytest
from drupe.compat import dpctl
from drupe.compat.dpctl import memory
from drupe.compat.dpctl import tensor as dpt

KINDS = {"device": memory.MemoryUSMDevice, "shared": memory.MemoryUSMShared, "host": memory.MemoryUSMHost}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def test_kinds():
    device, host = memory.MemoryUSMDevice(8), memory.MemoryUSMHost(8)
    assert device.get_usm_type() == "device" and host.get_usm_type() == "host" and not isinstance(host, type(device))


def test_what_memory_has(kind, device):
    queue = dpctl.SyclQueue(device.filter_string)
    one = KINDS[kind](64, queue=queue, alignment=32)
    assert one.nbytes == one.size == len(one) == 64 and one.reference_obj is None and one._pointer % 32 == 0
    assert one.sycl_queue == one._queue == queue and one.sycl_device == queue.sycl_device
    assert one.sycl_context == one._context == queue.sycl_context
    assert sys.getsizeof(one) > 64 and f"USM-{kind} allocation of 64 bytes" in repr(one)
    assert one.get_usm_type() == kind and one.get_usm_type_enum() == list(KINDS).index(kind) + 1
    assert one.get_usm_type(queue) == one.get_usm_type(syclobj=queue.sycl_context) == kind
    other = dpctl.SyclContext(dpctl.SyclDevice("host").create_sub_devices(partition=1))
    assert one.get_usm_type(other) == "unknown" and one.get_usm_type_enum(other) == 0
    interface = one.__sycl_usm_array_interface__
    assert interface["data"] == (one._pointer, False) and interface["shape"] == (64,) and interface["version"] == 1
    assert interface["syclobj"] == queue


def test_the_default_queue(kind):
    assert KINDS[kind](8).sycl_queue == dpctl.get_device_cached_queue(dpctl.SyclDevice())
    for wrong in ("host", 3):
        with pytest.raises(TypeError):
            KINDS[kind](8, queue=wrong)


def test_copies(kind):
    one = KINDS[kind](8)
    assert one.copy_from_host(b"abcdefgh") is None
    assert one.tobytes() == bytes(one) == b"abcdefgh" and one.copy_to_host() == bytearray(b"abcdefgh")
    target = numpy.zeros(2, "f4")
    assert one.copy_to_host(obj=target) is target and target.tobytes() == b"abcdefgh"
    for other in KINDS.values():
        copied = other(8)
        copied.copy_from_device(one)
        assert bytes(copied) == b"abcdefgh"
    one.memset(val=65)
    assert bytes(one) == b"A" * 8
    with pytest.raises(TypeError):
        one.copy_from_host(copied)
    with pytest.raises(TypeError):
        one.copy_from_device(b"abcdefgh")
    with pytest.raises(ValueError):
        one.copy_from_host(b"abcdefghi")


def test_the_buffer_protocol(kind):
    one = KINDS[kind](16)
    if kind == "device":
        with pytest.raises(TypeError):
            memoryview(one)
        return
    view = numpy.ndarray((2, 2), buffer=one, dtype="f4")
    view[:] = [[1, 2], [3, 4]]
    assert array.array("f", bytes(one)).tolist() == [1, 2, 3, 4]
    del one  # the view keeps the memory
    assert view.sum() == 10


def test_classes_that_inherit():
    class Tagged(memory.MemoryUSMShared):
        def __new__(cls, nbytes, tag):
            return super().__new__(cls, nbytes)

        def __init__(self, nbytes, tag):
            self.tag = tag

        def copy_to_host(self, obj=None):
            return self.tag, super().copy_to_host(obj)

    class Plain(memory.MemoryUSMDevice):
        pass

    one = Tagged(4, "t")
    memoryview(one)[:] = b"1234"
    assert one.copy_to_host() == ("t", bytearray(b"1234")) and isinstance(one, memory.MemoryUSMShared)
    assert isinstance(Plain(4, queue=dpctl.SyclQueue("host")), Plain) and memory.as_usm_memory(one) is one


def test_views_and_copies():
    one = memory.MemoryUSMShared(8)
    same = memory.MemoryUSMShared(one)
    assert same._pointer == one._pointer and same.reference_obj is one and same.sycl_queue == one.sycl_queue
    copied = memory.MemoryUSMDevice(one, copy=True)
    assert copied._pointer != one._pointer and copied.reference_obj is None
    with pytest.raises(ValueError, match="copy=True"):
        memory.MemoryUSMDevice(one)

    class Foreign:
        __sycl_usm_array_interface__ = {**one.__sycl_usm_array_interface__, "typestr": "<i4", "shape": (1,),
                                        "offset": 1}
    part = memory.as_usm_memory(Foreign())
    assert type(part) is memory.MemoryUSMShared and part.nbytes == 4 and part._pointer == one._pointer + 4
    for wrong in (3, b"abcd"):
        with pytest.raises(TypeError):
            memory.as_usm_memory(wrong)


def test_pickles(kind, fresh):
    one = KINDS[kind](8)
    one.copy_from_host(b"abcdefgh")
    found = pickle.loads(pickle.dumps(one))
    assert type(found) is KINDS[kind] and bytes(found) == b"abcdefgh" and found._pointer != one._pointer
    assert found.sycl_device == one.sycl_device
    text = f"import pickle; one = pickle.loads({pickle.dumps(one)!r}); print(type(one).__name__, bytes(one))"
    assert fresh(text).stdout == f"{KINDS[kind].__name__} b'abcdefgh'\n"  # no finder is needed


def test_errors(kind):
    for wrong in (0, -1):
        with pytest.raises(ValueError):
            KINDS[kind](wrong)
    with pytest.raises(memory.USMAllocationError):
        KINDS[kind](1 << 60)


def test_between_processes(fresh):
    one = memory.MemoryUSMShared(4096, queue=dpctl.SyclQueue("host"))
    one.copy_from_host(b"hello")
    with drupe.device("host"):
        if not memory.IPCMemoryHandle.is_available():
            pytest.skip("memory of this machine cannot be shared between processes")
    try:
        handle = memory.IPCMemoryHandle(one)
    except drupe.UnsupportedError:
        one = memory.MemoryUSMDevice(4096, queue=dpctl.SyclQueue("host"))
        one.copy_from_host(b"hello")
        handle = memory.IPCMemoryHandle(one)
    assert handle.to_bytes() == memory.SyclIPCGetMemHandle(one)
    result = fresh(f"""
        from drupe.compat.dpctl import memory
        for opened in (memory.IPCMemoryHandle.open, memory.SyclIPCOpenMemHandle):
            one = opened({handle.to_bytes()!r}, "host", 4096)
            assert isinstance(one, memory.MemoryIPCDevice) and isinstance(one, memory.MemoryUSMDevice)
            assert bytes(one)[:5] == b"hello" and not one.is_closed
            (memory.IPCMemoryHandle.close_mapping if opened is memory.SyclIPCOpenMemHandle
             else memory.SyclIPCCloseMemHandle)(one)
            assert one.is_closed and "closed" in repr(one)
    """)
    assert result.returncode == 0, result.stderr
    handle.close()
    with pytest.raises(ValueError):
        handle.to_bytes()
    with pytest.raises(TypeError):
        memory.IPCMemoryHandle(3)


def test_the_queue_of_a_view():
    """What views memory is on the queue that is asked for, or that the object tells of; arrays over it are, too."""
    first, second = dpctl.SyclQueue("host"), dpctl.SyclQueue("host")
    whole = memory.MemoryUSMShared(24, queue=first)
    view = memory.MemoryUSMShared(whole, queue=second)
    assert view._pointer == whole._pointer and view.sycl_queue == second
    assert memory.MemoryUSMShared(whole).sycl_queue == memory.MemoryUSMShared(view, queue=first).sycl_queue == first
    assert memory.MemoryUSMShared(view).sycl_queue == second

    class Described:
        __sycl_usm_array_interface__ = {**whole.__sycl_usm_array_interface__, "syclobj": second}

    assert memory.as_usm_memory(Described()).sycl_queue == second
    for array in (dpt.usm_ndarray(3, dtype="f8", buffer=view), dpt.asarray(Described())):
        assert array.sycl_queue == array.usm_data.sycl_queue == (array + 1).sycl_queue == second
        array[...] = 5
        second.wait()
        assert whole.tobytes()[:1] == array.usm_data.tobytes()[:1] != b"\1"
    context = dpctl.SyclContext(dpctl.SyclDevice("host").create_sub_devices(partition=1)[:1])
    with pytest.raises(ValueError, match="context"):
        memory.MemoryUSMShared(whole, queue=dpctl.SyclQueue(context, context.get_devices()[0]))
