"""dpctl, answered by Drupe: devices, queues, events, USM memory, programs and arrays under the names of dpctl 0.21 and
of its development branch. docs/compat-dpctl.md tells what differs and what is refused.

The objects are Drupe's, each in a class with dpctl's rules: ranges in SYCL's order, queues out of order unless they are
asked to be in order, copies that wait. `_drupe` of an object is what stands behind it.
"""
import importlib

from drupe.compat import absent

_NAMES = {name: module for module, names in {
    "_sycl_context": "SyclContext",
    "_sycl_device": "SyclDevice",
    "_sycl_device_factory": "get_composite_devices get_devices get_num_devices has_accelerator_devices has_cpu_devices "
                            "has_gpu_devices select_accelerator_device select_cpu_device select_default_device "
                            "select_device_with_aspects select_gpu_device",
    "_sycl_event": "SyclEvent",
    "_sycl_platform": "SyclPlatform get_platforms lsplatform",
    "_sycl_queue": "LocalAccessor RawKernelArg SyclQueue WorkGroupMemory",
    "_sycl_queue_manager": "device_context get_current_queue get_device_cached_queue is_in_device_context",
    "_sycl_timer": "HostDeviceDuration SyclTimer",
    "_errors": "SyclContextCreationError SyclDeviceCreationError SyclKernelInvalidRangeError SyclKernelSubmitError "
               "SyclQueueCreationError SyclSubDeviceCreationError",
    "enum_types": "backend_type device_type event_status_type fp_config global_mem_cache_type local_mem_type "
                  "memory_order memory_scope partition_property",
}.items() for name in names.split()}
_MODULES = ("_diagnostics", "enum_types", "memory", "program", "tensor", "utils")

__all__ = sorted([*_NAMES, "enum_types", "get_include", "memory", "program", "tensor", "utils"])
__version__ = "0.21.1"  # whose interface this is
_missing = absent(__name__, {
    "get_current_device_type": "Write dpctl.get_current_queue().sycl_device.device_type.",
    "get_current_backend": "Write dpctl.get_current_queue().backend.",
    "set_global_queue": "Give the queue itself to what uses it, or write `with dpctl.device_context(which):`.",
    "has_host_device": "The device `host` of Drupe is a CPU: has_cpu_devices() tells of it.",
    "select_host_device": "The device `host` of Drupe is a CPU: write SyclDevice('host').",
})


def __getattr__(name):
    if name in _NAMES:
        value = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _missing(name)


def __dir__():
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))


def get_include():
    """Refused: extensions written in C++ over dpctl's headers are written over drupe/ext.h instead."""
    from drupe.compat import NotProvided

    raise NotProvided("Drupe has no SYCL, so dpctl's headers (dpctl4pybind11.hpp, dpctl_capi.h) cannot be answered. "
                      "Write the extension over drupe/ext.h, in C: drupe.get_include() is its folder, "
                      "drupe.ext.build() compiles it, and docs/compat-dpctl.md shows how, by a gemv")
