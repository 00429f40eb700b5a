"""Choosing devices: filters with parts, `with drupe.device()`, selectors, platforms, peers and timers."""
import asyncio
import threading

import pytest

import drupe
import drupe.array as da


def divisible(device, ways=1):
    if device.max_compute_units < 2 or len(device.partition_properties) < ways:
        pytest.skip("the device cannot be divided")
    return device


# --- parts ------------------------------------------------------------------------------------------------

def test_parts_in_filters(device):
    divisible(device)
    name = device.filter_string
    part = drupe.Device(name + ".1")
    assert part.filter_string == name + ".1" and part.parent_device == device and part.max_compute_units == 1
    assert drupe.Device(part.filter_string) == part == drupe.Device(name.upper() + ".1")
    assert drupe.devices(part.filter_string) == [part]
    assert drupe.Queue(name + ".0").device != part
    assert part.get_unpartitioned_parent_device() == device and part.get_device_id() == device.get_device_id()
    assert part.partition_type_property == "partition_equally"


def test_every_division_has_a_filter(device):
    divisible(device, 2)
    units, name = device.max_compute_units, device.filter_string
    for how, text in ((2, f"{name}{{2}}.0"), ([1, 1], f"{name}{{1+1}}.1"), ([1], f"{name}{{1+}}.0"), (1, f"{name}.1")):
        try:
            parts = device.create_sub_devices(how)
        except drupe.UnsupportedError:
            assert how == units  # a driver may refuse a single part
            continue
        assert text in [part.filter_string for part in parts]
        assert drupe.Device(text) in parts
    for domain in device.partition_affinity_domains:
        parts = device.create_sub_devices(domain)
        assert sum(part.max_compute_units for part in parts) == units and len(parts) > 1
        assert parts[1] == drupe.Device(parts[1].filter_string)
        assert parts[0].partition_type_affinity_domain in device.partition_affinity_domains
        drupe.Queue(parts[0]).barrier().wait()


def test_a_part_dies_with_its_last_reference(device):
    divisible(device)
    part = drupe.Device(device.filter_string + ".0")
    address = part.addressof_ref()
    assert drupe.Device(part.filter_string).addressof_ref() == address
    del part
    assert drupe.devices(device.filter_string + ".0")[0].max_compute_units == 1


@pytest.mark.parametrize("text", ["host:0.99", "host:cpu:0.0.0.0", "host:0{numa}.77", "host:0{9999}.0", "host:9.0"])
def test_parts_that_are_not_there(text):
    with pytest.raises(drupe.DeviceNotFoundError, match="host:cpu:0"):
        drupe.Device(text)
    assert drupe.devices(text) == []


@pytest.mark.parametrize("text", ["host.0", "0.", ".1", "0..1", "0.-1", "0{}.1", "0{x}.1", "0{1+x}.1", "0{2}", "0{2.1",
                                  "cpu.0", "0.1x", "0{not_applicable}.0", "0{1++1}.0", "0." + "9" * 30])
def test_bad_parts(text):
    with pytest.raises(drupe.InvalidArgumentError, match="filter"):
        drupe.Device(text)


@pytest.mark.parametrize("wrong", ["not_applicable", "L5_cache", "", "NUMA"])
def test_bad_domains(device, wrong):
    with pytest.raises(ValueError, match="next_partitionable"):
        device.create_sub_devices(wrong)


def test_a_domain_that_does_not_divide(device):
    missing = {"numa", "L3_cache", "L4_cache"} - set(map(str, device.partition_affinity_domains))
    for domain in missing:
        with pytest.raises(drupe.UnsupportedError, match=domain):
            device.create_sub_devices(domain)


# --- with drupe.device() ----------------------------------------------------------------------------------

def test_a_block_has_its_device(device):
    outside = drupe.Device()
    with drupe.device(device) as chosen:
        assert chosen == device == drupe.Device() == drupe.Queue().device == drupe.queue().device
        assert da.zeros(3).device == device == drupe.select_default_device()
        with drupe.device("host"):
            assert drupe.Device() == drupe.Device("host")
        assert drupe.Device() == device
    assert drupe.Device() == outside


def test_a_block_ends_with_an_exception(device):
    outside = drupe.Device()
    with pytest.raises(ZeroDivisionError), drupe.device(device):
        1 / 0
    assert drupe.Device() == outside
    block = drupe.device(device)
    with block, block:
        assert drupe.Device() == device
    assert drupe.Device() == outside
    with pytest.raises(drupe.DeviceNotFoundError):
        drupe.device("host:cpu:7")


def test_a_block_is_of_its_thread_and_task(opencl):
    seen = {}

    def look(name):
        seen[name] = drupe.Device()

    async def task(which, name):
        with drupe.device(which):
            await asyncio.sleep(0)
            look(name)
            await asyncio.sleep(0)

    async def both():
        await asyncio.gather(task(opencl, "a"), task("host", "b"))

    outside = drupe.Device()
    with drupe.device(opencl):
        thread = threading.Thread(target=look, args=("thread",))
        thread.start()
        thread.join()
    asyncio.run(both())
    assert seen["a"] == opencl and seen["b"] == drupe.Device("host") and drupe.Device() == outside
    assert seen["thread"] in (outside, opencl)  # Python 3.14 gives threads the context of their starter


# --- selectors --------------------------------------------------------------------------------------------

def test_selectors():
    assert drupe.select_default_device() == drupe.Device() and drupe.select_cpu_device() == drupe.Device("cpu")
    assert drupe.has_cpu_devices() is True and drupe.has_gpu_devices() is bool(drupe.devices("gpu"))
    assert drupe.has_accelerator_devices() is bool(drupe.devices("accelerator"))
    if not drupe.has_accelerator_devices():
        with pytest.raises(drupe.DeviceNotFoundError):
            drupe.select_accelerator_device()
    if not drupe.has_gpu_devices():
        with pytest.raises(drupe.DeviceNotFoundError):
            drupe.select_gpu_device()


def test_the_default_has_the_best_score():
    """Among GPUs and CPUs; an accelerator is asked for by name."""
    found = [one for one in drupe.devices() if one.is_gpu or one.is_cpu]
    assert drupe.Device() == max(found, key=lambda one: one.default_selector_score)


def test_lists(device):
    assert device in drupe.get_devices(device.backend, device.device_type)
    assert drupe.get_devices(backend="all") == drupe.devices() and drupe.get_num_devices() == len(drupe.devices())
    assert drupe.get_devices(drupe.backend_type.cuda) == [] == drupe.get_composite_devices()
    assert drupe.get_devices(device_type="automatic") == [drupe.Device()]
    with pytest.raises(ValueError, match="backend_type is one of"):
        drupe.get_devices("metal")
    with pytest.raises(ValueError, match="device_type is one of"):
        drupe.get_devices("all", "tpu")


def test_aspects():
    assert drupe.select_device_with_aspects("cpu").is_cpu
    assert drupe.select_device_with_aspects(["fp64"], ["gpu"]).has_aspect_fp64
    with pytest.raises(drupe.DeviceNotFoundError, match="lacks"):
        drupe.select_device_with_aspects(["cpu"], "cpu")
    with pytest.raises(ValueError, match="no aspect 'fp128'"):
        drupe.select_device_with_aspects("fp128")


def test_cached_queues(device):
    assert drupe.get_device_cached_queue(device) == device.queue == drupe.get_device_cached_queue(device.filter_string)
    assert drupe.get_device_cached_queue((device.context, device)) == device.queue
    context = drupe.Context(device)
    queue = drupe.get_device_cached_queue((context, device))
    assert queue == drupe.get_device_cached_queue((context, device)) != device.queue and queue.context == context
    with pytest.raises(TypeError, match="a key is"):
        drupe.get_device_cached_queue((device, context))


# --- platforms --------------------------------------------------------------------------------------------

def test_platforms(device, capsys):
    platform = device.platform
    assert platform in drupe.get_platforms() and platform == drupe.Platform(device.filter_string) == drupe.Platform(
        platform) and hash(platform) == hash(device.sycl_platform)
    assert platform.name and platform.vendor and platform.version and platform.backend == device.backend
    assert device in platform.get_devices() and device in platform.get_devices(device.device_type)
    assert platform.get_devices("custom") == [] == platform.get_composite_devices()
    assert device in platform.default_context.get_devices() and platform.default_context == platform.default_context
    assert platform != "platform" and platform.__name__ == "Platform" and platform.name in repr(platform)
    assert drupe.Platform() == drupe.Device().platform
    for verbosity, part in ((0, platform.version), (1, "Devices     "), (2, device.filter_string)):
        drupe.lsplatform(verbosity)
        assert part in capsys.readouterr().out
    with pytest.raises(ValueError, match="verbosity"):
        platform.print_platform_info(3)


def test_context_of_a_platform(device):
    context = device.context
    assert context.platform == context.sycl_platform == device.platform
    assert context.get_devices() == context.devices and context.addressof_ref() != 0
    assert context.atomic_memory_order_capabilities == device.atomic_memory_order_capabilities
    assert context.atomic_fence_scope_capabilities == device.atomic_fence_scope_capabilities


# --- methods ----------------------------------------------------------------------------------------------

def test_filter_strings(device):
    for backend in (True, False):
        for kind in (True, False):
            text = device.get_filter_string(include_backend=backend, include_device_type=kind)
            assert drupe.Device(text) == device
            assert (str(device.backend) in text) is backend and (str(device.device_type) in text.split(":")) is kind
    assert drupe.devices()[device.get_device_id()] == device == drupe.Device(str(device.get_device_id()))


def test_languages(device):
    assert device.can_compile("opencl") is device.can_compile("ocl") is (device.backend == "opencl")
    assert device.can_compile("spirv") is device.can_compile("spv") and device.can_compile("sycl") is False
    assert not (device.can_compile("c") and device.can_compile("opencl"))
    with pytest.raises(ValueError, match="a language is one of"):
        device.can_compile("fortran")


def test_peers(device):
    host = drupe.Device("host")
    assert device.can_access_peer(host) is (device == host)
    if device == host:
        device.enable_peer_access(host)
        device.disable_peer_access(host)
    else:
        with pytest.raises(drupe.UnsupportedError, match="copy it"):
            device.enable_peer_access(host)
    with pytest.raises(ValueError, match="atomics_supported"):
        device.can_access_peer(host, value="fast")
    with pytest.raises(TypeError, match="peer"):
        device.can_access_peer("host")


def test_printing(device, capsys):
    device.print_device_info()
    printed = capsys.readouterr().out
    assert device.name in printed and device.filter_string in printed and device.driver_version in printed
    assert device.__name__ == "Device" and device.component_devices() == () and device.composite_device is None


# --- timers -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", [None, "queue_barrier", "order_manager"])
def test_timer(device, kind):
    queue = drupe.Queue(device, profiling=True)
    timer = drupe.Timer(device_timer=kind, time_scale=1000)
    memory = drupe.memory.MemoryUSMDevice(1 << 20, queue=queue)
    with timer(queue):
        queue.fill(memory, 1)
    first = timer.dt
    assert first.host_dt > 0 and first.device_dt >= 0 and tuple(first) == (first.host_dt, first.device_dt)
    with timer(queue):
        queue.fill(memory, 2)
    assert timer.dt.host_dt > first.host_dt and "host_dt=" in repr(timer.dt)


def test_timer_mistakes(device):
    with pytest.raises(ValueError, match="profiling"):
        drupe.Timer()(drupe.Queue(device))
    with pytest.raises(ValueError, match="no queue"), drupe.Timer():
        pass
    with pytest.raises(ValueError, match="queue_barrier"):
        drupe.Timer(device_timer="sundial")
