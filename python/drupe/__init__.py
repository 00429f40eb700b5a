"""Devices from Python: find them, give them memory and work, compute on them.

    import drupe
    drupe.devices()                        what this machine has
    with drupe.device("gpu"):              the device of what follows
    queue = drupe.Queue("gpu")             a new queue; drupe.queue("gpu") is the device's default one
    import drupe.array as da               arrays on a device
    import drupe.memory, drupe.program     memory by the byte, kernels from source text
    import drupe.native                    functions of shared libraries as kernels
    import drupe.kernel_api, drupe.simulator   what kernels in Python are written with, and running them as plain Python
    drupe.compat.enable()                  `import dpctl` and the like, answered by Drupe; kernels begin with it

Importing drupe loads nothing else; the engine comes with the first name that needs it.
"""
import importlib

__version__ = "0.1.0"

_CLASSES = ("Context", "Device", "Event", "EventTimes", "Kernel", "LocalMemory", "NdRange", "Program", "Queue", "Range")
_ERRORS = ("BuildError", "BusyError", "CancelledError", "CheckError", "DependencyError", "DeviceError",
           "DeviceLostError", "DeviceMemoryError", "DeviceNotFoundError", "DriverUnavailableError",
           "ExecutionPlacementError", "HostTaskError", "InternalError", "InvalidArgumentError", "LinAlgError",
           "OutOfRangeError", "UnsupportedError", "WaitTimeoutError")
_ENGINE = frozenset(_CLASSES + _ERRORS + ("contain_faults", "devices", "trace"))
# Names that are written in Python, by the module they live in.
_WRITTEN = {name: module for module, names in {
    "_progress": ("progress",),
    "array._fusing": ("fuse",),
    "checking": ("checked",),
    "choice": ("device", "get_composite_devices", "get_device_cached_queue", "get_devices", "get_num_devices",
               "has_accelerator_devices", "has_cpu_devices", "has_gpu_devices", "select_accelerator_device",
               "select_cpu_device", "select_default_device", "select_device_with_aspects", "select_gpu_device"),
    "compiler.launch": ("call_kernel", "call_kernel_async", "device_func", "kernel"),
    "compiler.messages": ("KernelError",),
    "enums": ("backend_type", "device_type", "event_status_type", "fp_config", "global_mem_cache_type",
              "local_mem_type", "memory_order", "memory_scope", "partition_affinity_domain", "partition_property"),
    "offloading.function": ("offload", "prange"),
    "offloading.vectorize": ("vectorize",),
    "platforms": ("Platform", "get_platforms", "lsplatform"),
    "raw": ("ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel"),
    "timer": ("HostDeviceDuration", "Timer"),
}.items() for name in names}
# What dpctl calls these classes: `import drupe as dpctl` runs programs that were written for it.
_DPCTL = {"SyclContext": "Context", "SyclDevice": "Device", "SyclEvent": "Event", "SyclKernel": "Kernel",
          "SyclPlatform": "Platform", "SyclQueue": "Queue", "SyclTimer": "Timer"}
_MODULES = frozenset(("array", "compat", "ext", "hosted", "kernel_api", "memory", "native", "program", "simulator",
                      "utils"))

__all__ = sorted(_ENGINE | _MODULES | set(_WRITTEN) | {"get_include", "queue", "synchronize", "wait_for"})


def __getattr__(name):
    if name in _ENGINE:
        value = getattr(importlib.import_module("drupe._engine"), name)
        globals()[name] = value
        return value
    if name in _WRITTEN:
        value = getattr(importlib.import_module("drupe." + _WRITTEN[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module("drupe." + name)
    if name in _DPCTL:
        return __getattr__(_DPCTL[name])
    hint = ". It is a command: python -m drupe doctor" if name == "doctor" else ""
    raise AttributeError(f"module 'drupe' has no attribute {name!r}{hint}")


def __dir__():
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))


def get_include():
    """The folder of drupe/ext.h, for extension modules in C; drupe.ext.build() compiles one."""
    return importlib.import_module("drupe.ext").get_include()


def load_ipython_extension(shell):
    """%load_ext drupe: the magics, in any IPython."""
    importlib.import_module("drupe.magics").register(shell)


def queue(device=None):
    """The default queue of a device: the same one at each call, and the one that arrays on the device use."""
    return importlib.import_module("drupe._engine").Device(device).queue


def synchronize(device=None):
    """Wait for the default queue of a device; raises the first error that was not reported yet."""
    queue(device).wait()


def wait_for(events, timeout=None):
    """Wait for one event or for all of a sequence; raises the first error."""
    importlib.import_module("drupe._engine").Event.wait_for(events, timeout)
