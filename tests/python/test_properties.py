"""Every property of every device: it is there, and it has its type."""
import json
import pickle
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import drupe
from drupe import enums, utils

DEVICES = [one.filter_string for one in drupe.devices()]
ASPECTS = """cpu gpu accelerator custom fp16 fp64 atomic64 image online_compiler online_linker queue_profiling
    usm_device_allocations usm_host_allocations usm_shared_allocations usm_system_allocations
    usm_atomic_host_allocations usm_atomic_shared_allocations host_debuggable emulated is_component is_composite
    ext_oneapi_ipc_memory"""
NUMBERS = """vendor_id default_selector_score max_work_item_dims max_compute_units max_work_group_size
    max_num_sub_groups global_mem_size local_mem_size max_mem_alloc_size global_mem_cache_size
    global_mem_cache_line_size mem_base_addr_align address_bits max_parameter_size image_2d_max_width
    image_2d_max_height image_3d_max_width image_3d_max_height image_3d_max_depth image_max_buffer_size
    max_read_image_args max_write_image_args max_samplers max_clock_frequency profiling_timer_resolution
    partition_max_sub_devices free_memory device_id platform_index languages sub_group_size gpu_slices
    gpu_subslices_per_slice gpu_eu_count_per_subslice gpu_eu_count gpu_hw_threads_per_eu gpu_eu_simd_width
    max_mem_bandwidth memory_clock_rate memory_bus_width"""
TYPES = {
    **{"has_aspect_" + name: bool for name in ASPECTS.split()},
    **{name: int for name in NUMBERS.split()},
    **{f"{how}_vector_width_{of}": int for how in ("preferred", "native")
       for of in "char short int long float double half".split()},
    **dict.fromkeys("name vendor driver_version version backend_version filter_string platform_name platform_vendor "
                    "extensions il_version uuid pci_address compute_capability".split(), str),
    **dict.fromkeys("is_cpu is_gpu is_accelerator is_available sub_group_independent_forward_progress "
                    "error_correction_support".split(), bool),
    **dict.fromkeys("max_work_item_sizes max_work_item_sizes1d max_work_item_sizes2d max_work_item_sizes3d "
                    "sub_group_sizes".split(), (int,)),
    **{f"{of}_fp_config": (enums.fp_config,) for of in ("half", "single", "double")},
    **{f"atomic_{of}_order_capabilities": (enums.memory_order,) for of in ("memory", "fence")},
    **{f"atomic_{of}_scope_capabilities": (enums.memory_scope,) for of in ("memory", "fence")},
    "backend": enums.backend_type, "device_type": enums.device_type, "platform": drupe.Platform,
    "sycl_platform": drupe.Platform, "parent_device": drupe.Device, "composite_device": drupe.Device,
    "local_mem_type": enums.local_mem_type, "global_mem_cache_type": enums.global_mem_cache_type,
    "partition_properties": (enums.partition_property,),
    "partition_affinity_domains": (enums.partition_affinity_domain,),
    "partition_type_property": enums.partition_property,
    "partition_type_affinity_domain": enums.partition_affinity_domain,
}
# What each device knows of itself; everything else may be None.
ALWAYS = """name vendor driver_version version backend_version backend device_type filter_string platform is_cpu is_gpu
    is_available default_selector_score max_work_item_dims max_work_item_sizes max_compute_units max_work_group_size
    global_mem_size max_mem_alloc_size local_mem_size local_mem_type mem_base_addr_align address_bits
    max_parameter_size single_fp_config half_fp_config has_aspect_fp64 has_aspect_image
    has_aspect_usm_device_allocations has_aspect_is_composite partition_max_sub_devices partition_properties
    partition_affinity_domains partition_type_property partition_type_affinity_domain""".split()


@pytest.fixture(params=DEVICES)
def any_device(request):
    return drupe.Device(request.param)


def well_typed(value, kind):
    if isinstance(kind, tuple):
        return isinstance(value, tuple) and all(type(item) is kind[0] for item in value)
    return type(value) is kind


def check_all(device):
    for name, kind in TYPES.items():
        value = getattr(device, name)
        assert value is None and name not in ALWAYS or well_typed(value, kind), (name, value)


def test_every_property_has_its_type(any_device):
    check_all(any_device)
    for part in any_device.create_sub_devices(1)[:1] if any_device.partition_max_sub_devices else ():
        check_all(part)


def test_there_are_no_properties_beside_them():
    names = {name for name in dir(drupe.Device) if not name.startswith("_")
             and not callable(getattr(drupe.Device, name))}
    assert names - set(TYPES) == {"context", "queue", "sycl_context", "sycl_device", "sycl_queue", "usm_device",
                                  "usm_host", "usm_shared"}


def test_info_has_every_property(any_device):
    info = any_device.info()
    assert set(TYPES) - set(info) == {"platform", "sycl_platform", "parent_device", "composite_device"}
    assert utils.device_info(any_device).keys() == info.keys()
    for name, value in info.items():
        if name != "free_memory":
            assert getattr(any_device, name) == value, name
    json.dumps(info)


def test_what_means_nothing_is_none():
    host = drupe.Device("host")
    assert host.image_2d_max_width is None and host.max_samplers is None and host.has_aspect_image is False
    assert host.sub_group_sizes is None and host.max_num_sub_groups is None and host.uuid is None
    assert host.max_work_item_sizes2d is None and host.max_work_item_sizes1d == (1,)
    assert host.local_mem_type == "global_mem" and host.local_mem_size == 256 << 10 and host.half_fp_config == ()
    assert host.native_vector_width_half is None and host.native_vector_width_float >= 4
    assert host.partition_type_property == "no_partition"


def test_free_memory_is_asked_each_time():
    """It moves with what the machine does; here 16 MiB are taken at a time."""
    host = drupe.Device("host")
    seen, held = {host.free_memory}, []
    while len(seen) < 2 and len(held) < 64:
        held.append(bytes(range(256)) * (1 << 16))
        seen.add(host.free_memory)
    assert len(seen) > 1 and all(0 < free <= host.global_mem_size for free in seen)


def test_relations_between_properties(any_device):
    assert any_device.max_mem_alloc_size <= any_device.global_mem_size
    assert any_device.has_aspect_cpu is any_device.is_cpu and any_device.has_aspect_gpu is any_device.is_gpu
    assert (any_device.device_type == "cpu") is any_device.is_cpu
    assert bool(any_device.double_fp_config) is any_device.has_aspect_fp64
    assert len(any_device.max_work_item_sizes) == 3
    divisible = any_device.partition_max_sub_devices > 1
    assert bool(any_device.partition_properties) is divisible
    assert ("partition_by_affinity_domain" in any_device.partition_properties) is bool(
        any_device.partition_affinity_domains)


def test_words_are_the_engines(any_device):
    """A word that the engine has and Python lacks would be an AttributeError in the walk above; all are read here."""
    text = (Path(__file__).parents[2] / "engine/include/drupe/device_words.h").read_text()
    lists = dict(re.findall(r"#define DRUPE_WORDS_(\w+)\(X\)(.*?)\n\n", text, re.S))
    named = re.findall(r"X\(\w+, (\w+), DRUPE_WORDS_(\w+)\)", text)
    assert len(named) == 7
    for name, key in named:
        words = re.findall(r"X\(\w+, (\w+)\)", lists[key])
        assert list(getattr(enums, name).__members__) == words


def test_enumerations_are_strings():
    word = enums.device_type.gpu
    assert word == "gpu" and hash(word) == hash("gpu") and f"{word}" == str(word) == "gpu" and word.name == "gpu"
    assert enums.device_type("gpu") is word is enums.device_type(6) and enums.device_type.all.value == 1
    assert pickle.loads(pickle.dumps(word)) is word and word is drupe.device_type.gpu
    assert [one.name for one in enums.backend_type] == ["all", "cuda", "hip", "level_zero", "opencl", "host"]
    with pytest.raises(ValueError, match="one of all, accelerator.*not 'tpu'"):
        enums.device_type("tpu")
    with pytest.raises(ValueError, match="99"):
        enums.device_type(99)


CLINFO = {"CL_DEVICE_NAME": "name", "CL_DRIVER_VERSION": "driver_version",
          "CL_DEVICE_MAX_COMPUTE_UNITS": "max_compute_units", "CL_DEVICE_MAX_WORK_GROUP_SIZE": "max_work_group_size",
          "CL_DEVICE_LOCAL_MEM_SIZE": "local_mem_size", "CL_DEVICE_MEM_BASE_ADDR_ALIGN": "mem_base_addr_align",
          "CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE": "global_mem_cache_line_size", "CL_DEVICE_VENDOR": "vendor",
          "CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT": "preferred_vector_width_float",
          "CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR": "native_vector_width_char",
          "CL_DEVICE_IMAGE3D_MAX_DEPTH": "image_3d_max_depth", "CL_DEVICE_ADDRESS_BITS": "address_bits",
          "CL_DEVICE_PROFILING_TIMER_RESOLUTION": "profiling_timer_resolution"}


def test_clinfo_says_the_same(opencl):
    """A second opinion, where the program is installed."""
    if shutil.which("clinfo") is None:
        pytest.skip("clinfo is not installed")
    text = subprocess.run(["clinfo", "--raw"], capture_output=True, text=True, timeout=60, check=False).stdout
    lines = re.findall(r"^(\S+)\s+(CL_\w+)\s+(.*?)\s*$", text, re.M)
    place = next(place for place, key, value in lines if key == "CL_DEVICE_NAME" and value == opencl.name)
    told = {key: value for where, key, value in lines if where == place and key in CLINFO}
    assert told.keys() == CLINFO.keys()
    for key, value in told.items():
        number = re.match(r"0x[0-9a-f]+|\d+", value)
        ours = getattr(opencl, CLINFO[key])
        assert ours == (int(number[0], 0) if isinstance(ours, int) else value), key
