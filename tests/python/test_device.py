"""Devices, contexts, sub-devices and queues."""
import pytest

import drupe


def test_there_is_always_a_device():
    found = drupe.devices()
    assert any(one.backend == "host" for one in found)
    assert drupe.Device() in found
    assert drupe.Device("host").filter_string == "host:cpu:0"


def test_list_by_filter(device):
    assert device in drupe.devices(device.filter_string)
    assert device in drupe.devices("cpu" if device.is_cpu else "gpu")
    assert drupe.devices(device.backend + ":custom") == []


@pytest.mark.parametrize("text", ["host", "HOST:CPU", "host:cpu:0", "cpu", "0", "gpu,cpu", "host:0"])
def test_filters(text):
    assert drupe.Device(text).filter_string


@pytest.mark.parametrize("text", ["abc", "-1", "host:gpu:-1", "", "host:cpu:0:0"])
def test_bad_filters(text):
    with pytest.raises(drupe.InvalidArgumentError, match="filter"):
        drupe.Device(text)


def test_no_such_device_names_what_there_is():
    with pytest.raises(drupe.DeviceNotFoundError, match="host:cpu:0") as caught:
        drupe.Device("host:cpu:99")
    assert isinstance(caught.value, LookupError) and isinstance(caught.value, drupe.DeviceError)
    assert caught.value.status == "NOT_FOUND"
    assert "drupe.devices()" in caught.value.hint
    assert drupe.Device("host").is_cpu


@pytest.mark.parametrize("wrong", [1, 1.5, object(), b"host"])
def test_not_a_filter(wrong):
    with pytest.raises(TypeError, match="filter such as"):
        drupe.Device(wrong)


def test_identity(device):
    again = drupe.Device(device.filter_string)
    assert again == device and hash(again) == hash(device) and drupe.Device(device) == device
    assert not again != device
    assert device != "device" and len({again, device}) == 1
    assert device.filter_string in repr(device) and device.name in repr(device)


def test_properties(device):
    assert device.name and device.vendor and device.driver_version
    assert device.backend in ("host", "opencl")
    assert device.device_type in ("cpu", "gpu")
    assert [device.is_cpu, device.is_gpu, device.is_accelerator].count(True) == 1
    assert device.max_compute_units >= 1
    assert device.global_mem_size >= device.max_mem_alloc_size > 0
    assert len(device.max_work_item_sizes) == 3
    assert device.has_aspect_cpu is device.is_cpu
    assert device.has_aspect_fp64 in (True, False)
    assert device.has_aspect_usm_device_allocations is True
    assert device.default_selector_score > 0
    assert device.parent_device is None


def test_sub_devices(device):
    if not device.partition_max_sub_devices:
        with pytest.raises(drupe.DeviceError):
            device.create_sub_devices(1)
        return
    parts = device.create_sub_devices(partition=1)
    assert len(parts) == device.max_compute_units
    assert all(part.max_compute_units == 1 and part.parent_device == device for part in parts)
    assert parts[0] != parts[1] and parts[0].filter_string != device.filter_string
    counted = device.create_sub_devices([1] * 2)
    assert [part.max_compute_units for part in counted] == [1, 1]
    with drupe_error():
        parts[0].create_sub_devices(2)
    queue = drupe.Queue(parts[1])
    queue.barrier().wait()
    assert queue.device == parts[1]


def drupe_error():
    return pytest.raises(drupe.DeviceError, match=r"\d")


@pytest.mark.parametrize("wrong, error", [(0, ValueError), (-1, ValueError), ([1, 0], ValueError), ("1", ValueError),
                                          (1.5, TypeError), ([1.5], TypeError), ([10**9], drupe.DeviceError)])
def test_bad_partitions(device, wrong, error):
    with pytest.raises(error):
        device.create_sub_devices(wrong)


def test_context(device):
    context = drupe.Context(device)
    assert context.devices == [device] and context.device_count == 1
    assert context != device.context and device.context == device.context
    assert hash(device.context) == hash(device.context)
    queue = drupe.Queue(device, context)
    assert queue.context == context
    assert drupe.Context([device]).devices == drupe.Context(device.filter_string).devices
    assert device.filter_string in repr(context)


def test_context_refuses_strangers(device):
    other = [one for one in drupe.devices() if one.backend != device.backend]
    if other:
        with pytest.raises(drupe.DeviceError):
            drupe.Context([device, other[0]])
        with pytest.raises(drupe.DeviceError):
            drupe.Queue(other[0], drupe.Context(device))
    with pytest.raises(TypeError):
        drupe.Queue(device, "context")


def test_queues(device):
    default = drupe.queue(device)
    assert default == device.queue == drupe.queue(device.filter_string)
    assert hash(default) == hash(device.queue)
    own = drupe.Queue(device)
    assert own != default and own != drupe.Queue(device)
    assert own.device == device and own.context == device.context and own.backend == device.backend
    assert own.is_in_order and not own.has_enable_profiling
    assert drupe.Queue(device, profiling=True).has_enable_profiling
    assert drupe.Queue(device, property="enable_profiling").has_enable_profiling
    assert drupe.Queue(device, property=("in_order", "enable_profiling")).has_enable_profiling
    assert device.filter_string in repr(own)
    drupe.synchronize(device)


def test_queue_property_errors(device):
    with pytest.raises(ValueError, match="in_order"):
        drupe.Queue(device, property="fast")
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        drupe.Queue(device, speed=1)
    with pytest.raises(TypeError, match="at most 2 positional"):
        drupe.Queue(device, None, True)
