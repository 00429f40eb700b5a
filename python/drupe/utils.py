"""Small helpers around devices and placement."""
from drupe._engine import Array, Device, ExecutionPlacementError

__all__ = ["ExecutionPlacementError", "device_info", "get_coerced_usm_type", "get_execution_queue"]

_STRENGTH = ("device", "shared", "host")


def device_info(device=None):
    """All properties of a device as a dict; None where one means nothing on it."""
    return (device if isinstance(device, Device) else Device(device)).info()


def get_execution_queue(operands):
    """The one queue of arrays and queues, or None when they do not agree."""
    queues = [operand.queue if isinstance(operand, Array) else operand for operand in operands]
    return queues[0] if queues and all(queue == queues[0] for queue in queues) else None


def get_coerced_usm_type(usm_types):
    """The kind that a result has: device before shared before host."""
    kinds = list(usm_types)
    for kind in kinds:
        if kind not in _STRENGTH:
            raise ValueError(f'a usm_type is "device", "shared" or "host", not {kind!r}')
    return min(kinds, key=_STRENGTH.index, default=None)
