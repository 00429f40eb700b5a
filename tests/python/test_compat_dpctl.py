"""dpctl's names with dpctl's rules: devices, queues, events, programs. compat_dpctl.toml lists the names."""
import ctypes
import struct

import drupe
import numpy
import pytest
from drupe.compat import NotProvided, dpctl
from drupe.compat.dpctl import _diagnostics, enum_types, memory, program, utils

SOURCE = """
kernel void places(global int *x, int v, local int *s) {
    s[get_local_id(0)] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    size_t at = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
    x[at] = s[0] * 1000 + get_global_id(0) * 100 + get_global_id(1) * 10 + get_global_id(2);
}
typedef struct { int a; float b; } pair;
kernel void pairs(global float *x, pair s) { x[get_global_id(0)] = s.a + s.b; }
kernel void numbers(global double *x, char a, uchar b, short c, ushort d, int e, uint f, long g, ulong h, float i,
                    double j) { x[0] = a + b + c + d + e + f + g + h + i + j; }
"""


@pytest.fixture
def queue(opencl):
    return dpctl.SyclQueue(opencl.filter_string, property="enable_profiling")


@pytest.fixture
def kernels(queue):
    return program.create_program_from_source(queue, SOURCE)


# --- Devices ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text", ["cpu", "cpu:0", "0", "gpu,cpu", "opencl:cpu:0", "opencl", "OpenCL:CPU", "host",
                                  "host:cpu:0"])
def test_filters_that_are_accepted(text, opencl):
    device = dpctl.SyclDevice(text)
    gpu = any(one.is_gpu for one in dpctl.get_devices())  # what a filter without "cpu" finds first
    assert device.is_cpu is not (gpu and text in ("0", "gpu,cpu", "opencl"))
    assert device == dpctl.SyclDevice(device.filter_string) == dpctl.SyclDevice(device)
    assert device.backend == ("host" if "host" in text else "opencl")


@pytest.mark.parametrize("text", ["-1", "opencl:gpu:-1", "cuda:cpu:0", "abc", "cpu:opencl", "cpu:7", "", "0:0",
                                  "level_zero"])
def test_filters_that_are_refused(text):
    with pytest.raises(dpctl.SyclDeviceCreationError):
        dpctl.SyclDevice(text)
    with pytest.raises(dpctl.SyclQueueCreationError):
        dpctl.SyclQueue(text)


@pytest.mark.parametrize("argument", [1, 2.5, [], object()])
def test_what_is_no_device(argument):
    with pytest.raises(ValueError):
        dpctl.SyclDevice(argument)
    with pytest.raises(TypeError):
        dpctl.SyclQueue(argument)


def test_opencl_comes_before_host(opencl):
    """Programs written for dpctl are in OpenCL C, which `host` does not take."""
    found = dpctl.get_devices()
    assert [one.backend for one in found].index("host") == len(found) - 1
    assert dpctl.select_default_device() == dpctl.SyclDevice() == found[0]
    assert dpctl.SyclDevice("host").default_selector_score < dpctl.SyclDevice("opencl").default_selector_score
    with drupe.device("host"):
        assert dpctl.select_default_device() == dpctl.SyclDevice("host")


def test_lists():
    everything = dpctl.get_devices(backend="all", device_type=dpctl.device_type.all)
    assert len(everything) == dpctl.get_num_devices() == len(drupe.devices())
    assert set(dpctl.get_devices(dpctl.backend_type.host)) == {dpctl.SyclDevice("host")}
    assert dpctl.get_devices(device_type="automatic") == everything[:1]
    assert dpctl.get_composite_devices() == []
    for backend in ("nothing", 3):
        with pytest.raises((ValueError, TypeError)):
            dpctl.get_devices(backend)


def test_selectors():
    kinds = {"cpu": (dpctl.has_cpu_devices, dpctl.select_cpu_device),
             "gpu": (dpctl.has_gpu_devices, dpctl.select_gpu_device),
             "accelerator": (dpctl.has_accelerator_devices, dpctl.select_accelerator_device)}
    for kind, (has, select) in kinds.items():
        if has():
            assert select().device_type == kind and dpctl.get_num_devices(device_type=kind) > 0
        else:
            with pytest.raises(dpctl.SyclDeviceCreationError):
                select()
    assert dpctl.select_device_with_aspects("cpu") == dpctl.select_cpu_device()
    assert dpctl.select_device_with_aspects(["cpu", "fp64"], excluded_aspects=["gpu"]).has_aspect_fp64
    with pytest.raises(AttributeError):
        dpctl.select_device_with_aspects("nonsense")
    with pytest.raises(ValueError):
        dpctl.select_device_with_aspects(["cpu", "gpu"])


@pytest.mark.parametrize("value, expected", [("host", ["host"]), ("opencl:cpu", ["opencl"]), ("*:cpu:1", ["host"]),
                                             ("host,opencl", ["opencl", "host"]), ("level_zero:gpu", []),
                                             ("", ["opencl", "host"])])
def test_environment(fresh, opencl, value, expected):
    """ONEAPI_DEVICE_SELECTOR, and SYCL_DEVICE_FILTER, its older form."""
    show = "from drupe.compat import dpctl; print(*(one.backend for one in dpctl.get_devices()))"
    result = fresh(show, SYCL_DEVICE_FILTER=value)
    gpus = sum(one.is_gpu for one in dpctl.get_devices()) if value in ("host,opencl", "") else 0
    assert result.stdout.split() == ["opencl"] * gpus + expected, result.stderr
    if value == "host":
        assert fresh(show, ONEAPI_DEVICE_SELECTOR="!opencl:*").stdout.split() == ["host"]


def test_every_property_of_a_device():
    """Those of Drupe's device, but for what dpctl's differ in."""
    device = dpctl.SyclDevice("host")
    for name in dir(type(device)):
        if isinstance(getattr(type(device), name), property) and hasattr(drupe.Device, name):
            value = getattr(device, name)
            if name not in ("default_selector_score", "sycl_platform", "parent_device"):
                assert value == getattr(drupe.Device("host"), name), name
    assert device.sycl_platform.backend == "host" and device.parent_device is None and device.composite_device is None


def test_a_device(capsys):
    device = dpctl.SyclDevice("host")
    device.print_device_info()
    assert device.name in capsys.readouterr().out and device.name in repr(device)
    assert device.__name__ == "SyclDevice" and isinstance(device.addressof_ref(), int)
    assert device.get_filter_string(include_backend=False) == f"cpu:{device.get_filter_string(False)[-1]}"
    assert dpctl.SyclDevice(device.get_filter_string(True, False)) == device
    assert dpctl.get_devices()[device.get_device_id()] == device
    assert device.can_compile("opencl") == device.can_compile("ocl") and device.component_devices() == []
    assert len({device, dpctl.SyclDevice("host")}) == 1 and device != dpctl.SyclQueue("host") and device != 3
    peers = device.can_access_peer(device, value="access_supported")
    assert isinstance(peers, bool)
    for change in (device.enable_peer_access, device.disable_peer_access):
        with pytest.raises(TypeError):
            change("host")


def test_sub_devices():
    device = dpctl.SyclDevice("host")
    parts = device.create_sub_devices(partition=1)
    assert len(parts) == device.max_compute_units and all(one.max_compute_units == 1 for one in parts)
    assert parts[0].parent_device == device == parts[0].get_unpartitioned_parent_device()
    assert parts[0].get_device_id() == device.get_device_id()
    with pytest.raises(TypeError):
        parts[0].filter_string
    with pytest.raises(TypeError):
        parts[0].get_filter_string()
    for wrong in (device.max_compute_units + 1, "L4_cache", [1, 1000]):
        with pytest.raises(dpctl.SyclSubDeviceCreationError):
            device.create_sub_devices(partition=wrong)
    with pytest.raises(ValueError):
        device.create_sub_devices(partition="nonsense")
    queue = dpctl.SyclQueue(parts[0])
    assert queue.sycl_device == parts[0]
    with pytest.raises(ValueError, match="sub-device"):
        dpctl.get_device_cached_queue(parts[0])


def test_platforms(capsys):
    platform = dpctl.SyclPlatform("host")
    assert platform == dpctl.SyclDevice("host").sycl_platform and platform in dpctl.get_platforms()
    assert platform.get_devices() == platform.get_devices(device_type="cpu") == [dpctl.SyclDevice("host")]
    assert platform.get_composite_devices() == [] and platform.get_devices("gpu") == []
    assert platform.default_context.get_devices() == [dpctl.SyclDevice("host")]
    assert platform.vendor and platform.version and platform.name in repr(platform) and platform.backend == "host"
    platform.print_platform_info(verbosity=2)
    dpctl.lsplatform(verbosity=1)
    assert capsys.readouterr().out.count(platform.name) == 2
    assert dpctl.SyclPlatform().get_devices()[0] == dpctl.SyclDevice()
    assert len({platform, dpctl.SyclPlatform(platform)}) == 1
    for wrong in (3, "abc", "host:gpu"):
        with pytest.raises(ValueError):
            dpctl.SyclPlatform(wrong)


def test_contexts(opencl):
    device = dpctl.SyclDevice("host")
    context = dpctl.SyclContext(device)
    assert context == dpctl.SyclContext("host") == dpctl.SyclContext(context) == dpctl.SyclQueue(device).sycl_context
    assert context.device_count == 1 and context.get_devices() == [device]
    assert context.sycl_platform == device.sycl_platform
    assert device.name in repr(context) and isinstance(context.addressof_ref(), int)
    assert context.atomic_memory_order_capabilities == device.atomic_memory_order_capabilities
    assert context.atomic_fence_order_capabilities == device.atomic_fence_order_capabilities
    assert context.atomic_memory_scope_capabilities == device.atomic_memory_scope_capabilities
    assert context.atomic_fence_scope_capabilities == device.atomic_fence_scope_capabilities
    parts = device.create_sub_devices(partition=1)
    shared = dpctl.SyclContext(parts)
    assert shared.device_count == len(parts)
    assert dpctl.SyclQueue(shared, parts[-1]).sycl_context == shared
    with pytest.raises(dpctl.SyclContextCreationError):
        dpctl.SyclContext([device, dpctl.SyclDevice("opencl")])
    with pytest.raises(dpctl.SyclContextCreationError):
        dpctl.SyclContext([])
    with pytest.raises(dpctl.SyclQueueCreationError) as raised:
        dpctl.SyclQueue(context, dpctl.SyclDevice("opencl"))
    assert isinstance(raised.value.drupe_error, drupe.InvalidArgumentError) and raised.value.__cause__ is None
    for wrong in (3, ["host"]):
        with pytest.raises(TypeError):
            dpctl.SyclContext(wrong)


def test_members_of_enumerations():
    assert [one.name for one in dpctl.device_type] == "all accelerator automatic cpu custom gpu".split()
    assert dpctl.backend_type.opencl.value == 5 and dpctl.backend_type("level_zero").name == "level_zero"
    for name in enum_types.__all__:
        assert getattr(dpctl, name) is getattr(enum_types, name)
    for name in ("event_status_type global_mem_cache_type local_mem_type partition_property fp_config memory_order "
                 "memory_scope").split():
        assert len(getattr(dpctl, name)) > 2


# --- Queues ----------------------------------------------------------------------------------------------------------

def test_queues(capsys):
    queue = dpctl.SyclQueue("host", property=("in_order", "enable_profiling"))
    assert queue.is_in_order and queue.has_enable_profiling and "in_order" in repr(queue)
    assert not dpctl.SyclQueue("host").is_in_order and not dpctl.SyclQueue("host", property="default").is_in_order
    assert queue.backend == dpctl.backend_type.host and queue.name == queue.sycl_device.name
    assert queue.driver_version == queue.sycl_device.driver_version
    assert queue.get_sycl_device() == queue.sycl_device and queue.get_sycl_context() == queue.sycl_context
    assert dpctl.SyclQueue(queue) == queue and queue != dpctl.SyclQueue("host")
    assert len({queue, dpctl.SyclQueue(queue)}) == 1
    assert isinstance(queue.addressof_ref(), int) and queue.__name__ == "SyclQueue"
    queue.print_device_info()
    assert queue.name in capsys.readouterr().out
    with pytest.raises(ValueError):
        dpctl.SyclQueue(property="nonsense")
    with pytest.raises(TypeError):
        dpctl.SyclQueue("host", "host")
    with pytest.raises(TypeError):
        dpctl.SyclQueue("host", "host", "host")


def test_capsules_are_refused():
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    one = capsule(8, b"SyclQueueRef", None)
    with pytest.raises(dpctl.SyclQueueCreationError, match="no SYCL"):
        dpctl.SyclQueue(one)
    with pytest.raises(dpctl.SyclDeviceCreationError, match="no SYCL"):
        dpctl.SyclDevice(one)
    for obj in (dpctl.SyclQueue("host"), dpctl.SyclContext("host"), dpctl.SyclEvent()):
        with pytest.raises(NotProvided, match="drupe/ext.h"):
            obj._get_capsule()


def test_the_device_of_a_block():
    assert not dpctl.is_in_device_context() and dpctl.get_current_queue().sycl_device == dpctl.SyclDevice()
    for which in ("host", dpctl.SyclDevice("host"), dpctl.get_device_cached_queue("host")):
        with dpctl.device_context(which) as queue:
            assert dpctl.is_in_device_context() and queue == dpctl.get_current_queue()
            assert dpctl.SyclDevice() == queue.sycl_device == dpctl.SyclDevice("host")
            assert drupe.Device() == drupe.Device("host")
    assert not dpctl.is_in_device_context()
    with pytest.raises(NotProvided):
        dpctl.device_context(dpctl.SyclQueue("host"))


def test_cached_queues():
    device = dpctl.SyclDevice("host")
    queue = dpctl.get_device_cached_queue(device)
    own = device.sycl_platform.default_context, device
    assert queue == dpctl.get_device_cached_queue("host") == dpctl.get_device_cached_queue(own)
    parts = device.create_sub_devices(partition=1)
    pair = dpctl.SyclContext(parts), parts[0]
    assert dpctl.get_device_cached_queue(pair) == dpctl.get_device_cached_queue(pair) != queue
    for wrong in (3, (device, device), None):
        with pytest.raises(TypeError):
            dpctl.get_device_cached_queue(wrong)


@pytest.mark.parametrize("whole, groups", [([5], [5]), ([2, 5], [1, 5]), ([2, 3, 5], [1, 3, 5]), ([3, 4], [1, 4])])
def test_ranges_in_the_order_of_sycl(queue, kernels, whole, groups):
    """The last dimension is get_global_id(0)."""
    kernel = kernels.get_sycl_kernel("places")
    out = memory.MemoryUSMShared(4 * int(numpy.prod(whole)), queue=queue)
    queue.submit(kernel, [out, ctypes.c_int(7), dpctl.LocalAccessor("i4", (5,))], whole, groups).wait()
    found = numpy.ndarray(whole, buffer=out, dtype="i4")
    places = numpy.indices(whole)[::-1]
    expected = 7000 + sum(place * weight for place, weight in zip(places, (100, 10, 1)))
    assert (found == expected).all()


def test_submissions(queue, kernels):
    kernel = kernels.get_sycl_kernel("pairs")
    out = memory.MemoryUSMShared(16, queue=queue)
    pair = dpctl.RawKernelArg(struct.pack("if", 3, 0.5))
    first = queue.submit_async(kernel, [out, pair], [4], None, [dpctl.SyclEvent()])
    last = queue.submit_barrier([first])
    last.wait()
    assert numpy.frombuffer(out, "f4").tolist() == [3.5] * 4
    assert first.profiling_info_submit <= first.profiling_info_start <= first.profiling_info_end
    assert first.execution_status == dpctl.event_status_type.complete and first.backend == dpctl.backend_type.opencl
    assert first in last.get_wait_list() or last.get_wait_list() == []
    kept = queue._submit_keep_args_alive([out], [last])
    dpctl.SyclEvent.wait_for([first, last, kept])
    dpctl.SyclEvent.wait_for(kept)
    queue.wait()
    numbers = kernels.get_sycl_kernel("numbers")
    values = [ctypes.c_char(b"\xff"), ctypes.c_uint8(4), ctypes.c_short(3), ctypes.c_ushort(4), ctypes.c_int(5),
              ctypes.c_uint(6), ctypes.c_longlong(7), ctypes.c_ulonglong(8), ctypes.c_float(9), ctypes.c_double(10.5)]
    queue.submit(numbers, [out, *values], [1]).wait()
    assert numpy.frombuffer(out, "f8")[0] == 55.5


def test_submissions_that_are_refused(queue, kernels):
    kernel, out = kernels.get_sycl_kernel("pairs"), memory.MemoryUSMShared(16, queue=queue)
    pair = dpctl.RawKernelArg(bytes(8))
    for wrong in (3, 2.5, 1j, numpy.float32(1), numpy.zeros(4), None):
        with pytest.raises(TypeError):
            queue.submit(kernel, [out, wrong], [4])
    for wrong in ([], [1, 1, 1, 1]):
        with pytest.raises(dpctl.SyclKernelInvalidRangeError):
            queue.submit(kernel, [out, pair], wrong)
    with pytest.raises(ValueError):
        queue.submit(kernel, [out, pair], [4], [2, 2])
    with pytest.raises(dpctl.SyclKernelSubmitError, match="does not divide"):
        queue.submit(kernel, [out, pair], [7], [3])
    with pytest.raises(dpctl.SyclKernelSubmitError, match="not be 0"):
        queue.submit(kernel, [out, pair], [4], [0])
    with pytest.raises(TypeError):
        queue.submit("pairs", [out, pair], [4])
    with pytest.raises(TypeError):
        queue.submit(kernel, [out, pair], [4], None, [3])
    with pytest.raises(TypeError):
        queue.submit(kernel, [out, pair], [4], None, dpctl.SyclEvent())
    with pytest.raises(TypeError):
        queue.submit(kernel, [out], [4])


def test_arguments_of_kernels():
    assert dpctl.WorkGroupMemory.is_available() and dpctl.RawKernelArg.is_available()
    data = ctypes.create_string_buffer(b"1234", 4)
    arg = dpctl.RawKernelArg(4, ctypes.addressof(data))
    data.raw = b"5678"
    assert "b'1234'" in repr(arg)
    assert "64" in repr(dpctl.LocalAccessor("f8", (2, 2, 2))) and "12" in repr(dpctl.WorkGroupMemory("u2", 6))
    assert repr(dpctl.WorkGroupMemory(3)) == "WorkGroupMemory(3)"
    for wrong in (lambda: dpctl.LocalAccessor("c8", (1,)), lambda: dpctl.LocalAccessor("f4", (1, 1, 1, 1)),
                  lambda: dpctl.LocalAccessor("f4", (-1,)), lambda: dpctl.WorkGroupMemory(-1)):
        with pytest.raises(ValueError):
            wrong()
    for wrong in (dpctl.WorkGroupMemory, lambda: dpctl.WorkGroupMemory("zz", 1), dpctl.RawKernelArg,
                  lambda: dpctl.RawKernelArg(3)):
        with pytest.raises(TypeError):
            wrong()
    from drupe.compat.dpctl._sycl_queue import kernel_arg_type
    assert kernel_arg_type.dpctl_int8.value == 1 and len(kernel_arg_type) == 14


def test_copies(device):
    queue = dpctl.SyclQueue(device.filter_string)
    one, other = memory.MemoryUSMShared(32, queue=queue), memory.MemoryUSMDevice(32, queue=queue)
    assert queue.memcpy(one, bytes(range(32)), 32) is None and bytes(one) == bytes(range(32))
    event = queue.memcpy_async(other, one, 32, [dpctl.SyclEvent()])
    assert isinstance(event, dpctl.SyclEvent)
    event.wait()
    assert bytes(other) == bytes(range(32))
    assert queue.memset(one, 7) is None and bytes(one) == b"\7" * 32
    queue.memset_async(one, 9, 4, [event]).wait()
    assert bytes(one) == b"\t" * 4 + b"\7" * 28
    for letter, size in (("u1", 1), ("i2", 2), ("f", 4), ("f4", 4), ("d", 8), ("q", 8), ("c16", 16), ("D", 16)):
        queue.memset(one, 0)
        assert queue.copy(one, other, 2, dtype=letter) is None
        assert bytes(one) == bytes(range(2 * size)) + bytes(32 - 2 * size)
    queue.copy_async(one, other, 8, [event], "f4").wait()
    assert bytes(one) == bytes(other)
    assert queue.prefetch(one) is None and queue.prefetch(one, 8) is None and queue.mem_advise(one, 8, 0) is None
    for wrong in ("z", "f3", 3, None):
        with pytest.raises(ValueError):
            queue.copy(one, other, 1, dtype=wrong)
    with pytest.raises(ValueError):
        queue.memcpy(one, other, -1)
    with pytest.raises(ValueError):
        queue.memcpy(one, other, 33)
    with pytest.raises(TypeError):
        queue.memcpy(one, 3, 1)


def test_events():
    event = dpctl.SyclEvent()
    event.wait()
    assert event.execution_status == dpctl.event_status_type.complete and event.get_wait_list() == []
    assert dpctl.SyclEvent(event) == event and isinstance(event.addressof_ref(), int) and event.backend is None
    for wrong in (lambda: dpctl.SyclEvent(3), lambda: dpctl.SyclEvent.wait_for([3])):
        with pytest.raises(TypeError):
            wrong()


def test_a_timer(device):
    queue = dpctl.SyclQueue(device.filter_string, property="enable_profiling")
    timer = dpctl.SyclTimer(time_scale=1e3, device_timer="order_manager")
    mem = memory.MemoryUSMDevice(1 << 20, queue=queue)
    with timer(queue):
        for value in range(4):
            queue.memset_async(mem, value)
    host, on_device = timer.dt
    assert host > 0 and on_device >= 0 and isinstance(timer.dt, dpctl.HostDeviceDuration)
    assert (timer.dt.host_dt, timer.dt.device_dt) == (host, on_device)
    with pytest.raises(ValueError, match="enable_profiling"):
        timer(dpctl.SyclQueue(device.filter_string))
    with pytest.raises(TypeError):
        timer(3)
    with pytest.raises(ValueError):
        dpctl.SyclTimer(device_timer="nonsense")


# --- Programs --------------------------------------------------------------------------------------------------------

def test_programs(queue, kernels):
    assert kernels.has_sycl_kernel("pairs") and not kernels.has_sycl_kernel("nothing") and "pairs" in repr(kernels)
    kernel = kernels.get_sycl_kernel("places")
    assert kernel.get_function_name() == "places" and kernel.get_num_args() == kernel.num_args == 3
    assert kernel.work_group_size > 0 and kernel.preferred_work_group_size_multiple > 0 and "places" in repr(kernel)
    for name in ("private_mem_size", "max_num_sub_groups", "max_sub_group_size", "compile_num_sub_groups",
                 "compile_sub_group_size"):
        assert getattr(kernel, name) is None or getattr(kernel, name) >= 0
    assert isinstance(kernels, program.SyclKernelBundle) and isinstance(kernel, program.SyclKernel)
    assert program.SyclProgram is program.SyclKernelBundle
    built = program.create_kernel_bundle_from_source(queue, "kernel void f(global int *x) { x[0] = N; }", copts="-DN=5")
    out = memory.MemoryUSMShared(4, queue=queue)
    queue.submit(built.get_sycl_kernel("f"), [out], [1]).wait()
    assert numpy.frombuffer(out, "i4")[0] == 5
    for error in (program.SyclKernelBundleCompilationError, program.SyclProgramCompilationError):
        with pytest.raises(error, match="line 1"):
            program.create_program_from_source(queue, "kernel void f(global int *x) { nonsense }")
    with pytest.raises(LookupError):
        kernels.get_sycl_kernel("nothing")
    for obj in (kernel, kernels):
        with pytest.raises(NotProvided):
            obj.addressof_ref()


def test_programs_that_are_refused(queue):
    with pytest.raises(program.SyclKernelBundleCompilationError, match="OpenCL C"):
        program.create_program_from_source(dpctl.SyclQueue("host"), SOURCE)
    for make in (program.create_kernel_bundle_from_spirv, program.create_program_from_spirv):
        with pytest.raises((program.SyclProgramCompilationError, ValueError)):
            make(queue, b"no module")
    with pytest.raises(TypeError):
        program.create_program_from_source("opencl", SOURCE)
    assert not program.is_sycl_source_compilation_available()
    with pytest.raises(NotProvided, match="OpenCL C"):
        program.create_kernel_bundle_from_sycl_source(queue, "")


def test_constants_of_programs():
    one = program.SpecializationConstant(3, "int32", 5)
    assert one.id == 3 and one.size == 4 and one == program.SpecializationConstant(3, "i4", 5)
    assert hash(one) == hash(program.SpecializationConstant(3, "i4", 5)) and one.addressof_ref()
    with pytest.raises(ValueError):
        utils.parse_spirv_specializations(b"no module")
    assert utils.SpecializationConstantInfo._fields == ("spec_id", "dtype", "name", "itemsize", "default_value")


# --- Helpers ---------------------------------------------------------------------------------------------------------

def test_placement():
    one, other = dpctl.SyclQueue("host"), dpctl.SyclQueue("host")
    assert utils.get_execution_queue((one, dpctl.SyclQueue(one))) == one
    assert utils.get_execution_queue([one, other]) is None and utils.get_execution_queue(()) is None
    for wrong in ((one, 3), one):
        with pytest.raises(TypeError):
            utils.get_execution_queue(wrong)
    assert utils.get_coerced_usm_type(["host", "shared"]) == "shared"
    with pytest.raises(ValueError):
        utils.validate_usm_type("nonsense")
    assert issubclass(utils.ExecutionPlacementError, Exception)
    assert set(utils.intel_device_info(dpctl.SyclDevice("host"))) <= {"free_memory"}  # where that is known
    with pytest.raises(TypeError):
        utils.intel_device_info("host")
    with utils.onetrace_enabled():
        pass


def test_order_of_work():
    queue, foreign = dpctl.SyclQueue("host"), dpctl.SyclQueue("host")
    utils.SequentialOrderManager.clear()
    order = utils.SequentialOrderManager[queue]
    assert order is utils.SequentialOrderManager[dpctl.SyclQueue(queue)] and order.num_host_task_events == 0
    gate = drupe.Event.from_future(future := __import__("concurrent.futures").futures.Future())
    waits = dpctl.SyclEvent(foreign._drupe.barrier([gate]))
    order.add_event_pair([waits], waits)
    assert order.num_host_task_events == 1 and order.host_task_events == [waits]
    assert waits in order.submitted_events and order.num_submitted_events >= 1
    after = queue.submit_barrier(order.submitted_events)
    assert after.execution_status != dpctl.event_status_type.complete
    future.set_result(None)
    order.wait()
    after.wait()
    assert order.num_host_task_events == 0 and order.num_submitted_events == 0
    with pytest.raises(TypeError):
        order.add_event_pair(3, waits)
    with pytest.raises(TypeError):
        utils.SequentialOrderManager["host"]


def test_diagnostics():
    with _diagnostics.syclinterface_diagnostics(verbosity="error"):
        pass
    for options in ({"verbosity": "nonsense"}, {"log_dir": "/nowhere/at/all"}):
        with pytest.raises(ValueError), _diagnostics.syclinterface_diagnostics(**options):
            pass


def test_what_extensions_are_told():
    with pytest.raises(NotProvided, match="drupe/ext.h"):
        dpctl.get_include()
    with pytest.raises(NotProvided, match="device_context"):
        dpctl.set_global_queue
    assert dpctl.__version__ and not hasattr(dpctl, "nothing") and set(dpctl.__all__) <= set(dir(dpctl))
