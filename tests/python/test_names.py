"""Names of the checklist that no other test goes through: what objects are to Python's own functions, small helpers."""
import ctypes
import sys

import numpy
import pytest

import drupe
import drupe.array as da
import drupe.memory as dm
from drupe import program as programs
from drupe import utils
from drupe.memory import MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared


def test_modules(queue):
    assert drupe.__version__.count(".") == 2
    assert drupe.memory is dm and drupe.utils is utils
    assert drupe.program.Program is drupe.Program is programs.Program
    pair = drupe.HostDeviceDuration(0.5, 0.25)
    assert list(pair) == [pair.host_dt, pair.device_dt] == [0.5, 0.25]


def test_commands(fresh):
    """What `python -m` tells of devices and of the folder of headers."""
    result = fresh("""
        import runpy, sys
        import drupe
        sys.argv = ["drupe", "devices"]
        try:
            runpy.run_module("drupe", run_name="__main__", alter_sys=False)
        except SystemExit as end:
            assert not end.code
        print(len(drupe.devices()), drupe.get_include())
    """)
    assert result.returncode == 0, result.stderr
    assert "host:cpu:0" in result.stdout and result.stdout.rstrip().endswith("include")


MEMBERS = {
    "device_type": "all accelerator automatic cpu custom gpu",
    "backend_type": "all cuda hip level_zero opencl host",
    "event_status_type": "unknown_status submitted running complete",
    "global_mem_cache_type": "indeterminate none read_only read_write",
    "local_mem_type": "none local global_mem",
    "partition_property": "no_partition partition_equally partition_by_counts partition_by_affinity_domain",
    "fp_config": ("denorm inf_nan round_to_nearest round_to_zero round_to_inf fma correctly_rounded_divide_sqrt "
                  "soft_float"),
    "memory_order": "relaxed acquire release acq_rel seq_cst",
    "memory_scope": "work_item sub_group work_group device system",
}


def test_members_of_enumerations():
    for enumeration in (drupe.device_type, drupe.backend_type, drupe.event_status_type, drupe.global_mem_cache_type,
                        drupe.local_mem_type, drupe.partition_property, drupe.fp_config, drupe.memory_order,
                        drupe.memory_scope):
        words = MEMBERS.pop(enumeration.__name__).split()
        assert [one.name for one in enumeration] == words and list(enumeration) == words
        assert [one.value for one in enumeration] == list(range(1, len(words) + 1))
    assert not MEMBERS


def test_protocols(device, capsys):
    """hash, eq and repr of all objects; what memory is to len, bytes, sys.getsizeof."""
    eq, queue = (lambda a, b: a == b and not a != b), drupe.Queue(device)
    other = drupe.Queue(device)
    for one, same, stranger in ((device, drupe.Device(device.filter_string), 5),
                                (device.platform, device.sycl_platform, device),
                                (device.context, device.sycl_platform.default_context, drupe.Context(device)),
                                (queue, queue, other)):
        assert eq(one, same) and hash(one) == hash(same) and repr(one) == repr(same)
        assert not eq(one, stranger) and one != stranger
        assert "drupe" in repr(one) or "Platform" in repr(one)
    assert queue.backend == other.device.backend == device.backend
    event = queue.barrier()
    assert isinstance(event.addressof_ref(), int) and event.addressof_ref() != queue.barrier().addressof_ref()
    queue.print_device_info()
    assert device.name in capsys.readouterr().out
    for number, cls in enumerate((MemoryUSMDevice, MemoryUSMShared, MemoryUSMHost), 1):
        memory = cls(48, queue=queue)
        memory.memset(3)
        kind = cls.__name__[len("MemoryUSM"):].lower()
        assert len(memory) == memory.nbytes == memory.size == 48 and bytes(memory) == b"\3" * 48
        assert sys.getsizeof(memory) >= 48 and kind in repr(memory).lower() and "48" in repr(memory)
        assert memory.get_usm_type() == kind and memory.get_usm_type_enum() == number
        assert memory.context == queue.context and isinstance(memory._pointer, int) and memory._pointer % 8 == 0


def test_capabilities_of_a_context(device):
    context = drupe.Context(device)
    assert context.atomic_fence_order_capabilities == device.atomic_fence_order_capabilities
    assert context.atomic_memory_scope_capabilities == device.atomic_memory_scope_capabilities


def test_submit_async(opencl):
    program = drupe.Program("kernel void put(global int *x, int v) { x[get_global_id(0)] = v; }", opencl)
    queue = program.queue
    x = da.zeros(16, dtype="int32", queue=queue)
    first = queue.submit_async(program.put, [x, 5], [16])
    queue.submit_async(program.put, [x, ctypes.c_int(7)], [8], [4], [first]).wait()
    assert x.asnumpy().tolist() == [7] * 8 + [5] * 8


def test_bytes_of_a_structure(opencl):
    """A structure goes as its bytes, from any object that has a buffer."""
    program = drupe.Program("""
        typedef struct { int a; float b; } pair;
        kernel void put(global float *x, pair p) { x[0] = p.a; x[1] = p.b; }
    """, opencl)

    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_float)]

    x = da.zeros(2, dtype="float32", queue=program.queue)
    for value in (Pair(3, 0.5), bytes(Pair(3, 0.5)), numpy.array((3, 0.5), dtype="i4,f4")[()]):
        x[:] = 0
        program.put(x, value, global_size=1).wait()
        assert x.asnumpy().tolist() == [3, 0.5]


def test_memory_opened_by_its_name():
    memory = dm.MemoryUSMDevice(8192, device="host")
    assert dm.IPCMemoryHandle.is_available("host")
    handle = dm.IPCMemoryHandle(memory)
    view = dm.IPCMemoryHandle.open(handle.to_bytes(), "host", 100)
    assert isinstance(view, dm.MemoryIPCDevice) and len(view) == 100 and not view.is_closed
    dm.IPCMemoryHandle.close_mapping(view)
    assert view.is_closed
    with pytest.raises((ValueError, drupe.DeviceError), match="closed"):
        view.tobytes()
    handle.close()


def test_information_about_constants():
    info = programs.SpecializationConstantInfo(3, "int32", "count", 4, 41)
    assert info.spec_id == 3 and info.itemsize == 4 and info.default_value == 41
    one, same, other = (programs.SpecializationConstant(n, "int32", 5) for n in (1, 1, 2))
    assert one == same != other and hash(one) == hash(same) and one.size == 4
    eq = programs.SpecializationConstant.__eq__
    assert eq(one, same) is True and eq(one, 5) is NotImplemented


def test_placement_helpers(device):
    queue = drupe.Queue(device)
    x, y = da.ones(4, queue=queue), da.ones(4, queue=drupe.Queue(device))
    assert utils.get_execution_queue([x, queue]) == queue and utils.get_execution_queue([]) is None
    assert utils.get_execution_queue([x, y]) is None
    with pytest.raises(utils.ExecutionPlacementError):
        x + y
    assert utils.get_coerced_usm_type(["host", "shared"]) == "shared" and utils.get_coerced_usm_type([]) is None
    with pytest.raises(ValueError, match="'gpu'"):
        utils.get_coerced_usm_type(["gpu"])
    assert utils.validate_usm_type("shared") is None and utils.validate_usm_type(None) is None
    with pytest.raises(ValueError, match="'gpu'"):
        utils.validate_usm_type("gpu")
    with pytest.raises(TypeError, match="int"):
        utils.validate_usm_type(5)
    with pytest.raises(TypeError, match="None"):
        utils.validate_usm_type(None, allow_none=False)
    told = utils.intel_device_info(device)
    assert isinstance(told, dict) and (told == {} or "Intel" in device.vendor) and None not in told.values()
