"""Small helpers around devices and placement."""
from drupe._engine import Array, Device, ExecutionPlacementError

__all__ = ["ExecutionPlacementError", "device_info", "get_coerced_usm_type", "get_execution_queue",
           "intel_device_info", "validate_usm_type"]

_INTEL = ("device_id", "gpu_eu_count", "gpu_hw_threads_per_eu", "gpu_eu_simd_width", "gpu_slices",
          "gpu_subslices_per_slice", "gpu_eu_count_per_subslice", "max_mem_bandwidth", "free_memory",
          "memory_clock_rate", "memory_bus_width")
_STRENGTH = ("device", "shared", "host")


def device_info(device=None):
    """All properties of a device as a dict; None where one means nothing on it."""
    return (device if isinstance(device, Device) else Device(device)).info()


def intel_device_info(device):
    """Details of Intel's devices, as far as the driver reports them; empty for other devices."""
    if "Intel" not in (device.vendor or ""):
        return {}
    values = {name: getattr(device, name) for name in _INTEL}
    return {name: value for name, value in values.items() if value is not None}


def get_execution_queue(operands):
    """The one queue of arrays and queues, or None when they do not agree."""
    queues = [operand.queue if isinstance(operand, Array) else operand for operand in operands]
    return queues[0] if queues and all(queue == queues[0] for queue in queues) else None


def get_coerced_usm_type(usm_types):
    """The kind that a result has: device before shared before host."""
    kinds = list(usm_types)
    for kind in kinds:
        validate_usm_type(kind, allow_none=False)
    return min(kinds, key=_STRENGTH.index, default=None)


def validate_usm_type(usm_type, /, *, allow_none=True):
    """Raises TypeError or ValueError for what is no kind of memory."""
    if usm_type is None and allow_none:
        return
    if not isinstance(usm_type, str):
        raise TypeError(f"a usm_type is a string, not {usm_type!r} of type {type(usm_type).__name__}")
    if usm_type not in _STRENGTH:
        raise ValueError(f'a usm_type is "device", "shared" or "host", not {usm_type!r}')
