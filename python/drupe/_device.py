"""What methods of drupe.Device do; loaded with the first call of one."""
import types

from drupe import enums
from drupe._engine import UnsupportedError, devices

_LANGUAGES = {"c": 16, "host": 1, "opencl": 2, "ocl": 2, "spirv": 4, "spv": 4, "sycl": 0}  # bits of `languages`
_NO_INFO = ("parent_device", "composite_device", "platform", "sycl_platform", "context", "queue", "sycl_context",
            "sycl_device", "sycl_queue")  # objects
_PEER_VALUES = ("access_supported", "atomics_supported")
_PRINTED = (("Name", "name"), ("Driver version", "driver_version"), ("Vendor", "vendor"),
            ("Filter string", "filter_string"))


def info(device):
    return {name: getattr(device, name) for name, kind in vars(type(device)).items()
            if isinstance(kind, types.GetSetDescriptorType) and name not in _NO_INFO}


def print_device_info(device):
    for title, name in _PRINTED:
        print(f"    {title + ':':<16}{getattr(device, name)}")


def _path(device):
    """What stands behind the number in the filter of a sub-device."""
    whole = device.get_unpartitioned_parent_device()
    return device.filter_string[len(whole.filter_string):]


def get_device_id(device):
    listed = devices()
    for one in (device, device.get_unpartitioned_parent_device()):
        if one in listed:
            return listed.index(one)
    raise ValueError(f"{device!r} is no part of a device that drupe.devices() lists")


def get_filter_string(device, include_backend=True, include_device_type=True):
    listed = devices()
    if device in listed:
        whole, path = device, ""
    else:
        whole, path = device.get_unpartitioned_parent_device(), _path(device)
    if whole not in listed:
        return device.filter_string
    parts = []
    if include_backend:
        parts.append(str(device.backend))
        listed = [one for one in listed if one.backend == device.backend]
    if include_device_type:
        parts.append(str(device.device_type))
        listed = [one for one in listed if one.device_type == device.device_type]
    return ":".join([*parts, f"{listed.index(whole)}{path}"])


def _check_peer(device, peer):
    if type(peer) is not type(device):
        raise TypeError(f"a peer is a drupe.Device, not {type(peer).__name__}")


def can_access_peer(device, peer, value="access_supported"):
    _check_peer(device, peer)
    if value not in _PEER_VALUES:
        raise ValueError(f"value is one of {', '.join(_PEER_VALUES)}, not {value!r}")
    # Parts of one CPU have their memory in common; drivers offer nothing of the kind to OpenCL.
    return device.backend == peer.backend == enums.backend_type.host


def need_peer(device, peer):
    if not can_access_peer(device, peer):
        raise UnsupportedError(f"kernels of {device.filter_string} cannot use device memory of "
                               f"{peer.filter_string}; copy it with queue.copy()")


def can_compile(device, language):
    if language not in _LANGUAGES:
        raise ValueError(f"a language is one of {', '.join(sorted(_LANGUAGES))}, not {language!r}")
    return bool(device.languages & _LANGUAGES[language])
