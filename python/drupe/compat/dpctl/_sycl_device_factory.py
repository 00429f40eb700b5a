"""Lists of devices, and choosing one."""
from drupe import _engine, enums
from drupe.compat.dpctl import _selection
from drupe.compat.dpctl._sycl_device import SyclDevice

__all__ = ["get_composite_devices", "get_devices", "get_num_devices", "has_accelerator_devices", "has_cpu_devices",
           "has_gpu_devices", "select_accelerator_device", "select_cpu_device", "select_default_device",
           "select_device_with_aspects", "select_gpu_device"]

_ASPECTS = sorted(name[len("has_aspect_"):] for name in dir(_engine.Device) if name.startswith("has_aspect_"))


def _word(value, enumeration):
    if not isinstance(value, str):
        raise TypeError(f"a member of {enumeration.__name__} or its word is expected, not {type(value).__name__}")
    return enumeration(str(value).removeprefix(enumeration.__name__ + "."))


def of_type(found, device_type):
    """Those of a type: a member of device_type, or its word."""
    word = _word(device_type, enums.device_type)
    if word == "automatic":
        return found[:1]
    return [one for one in found if word in ("all", one.device_type)]


def get_devices(backend="all", device_type="all"):
    """The devices of a backend and a type, best first."""
    word = _word(backend, enums.backend_type)
    found = [one for one in _selection.devices() if word in ("all", one.backend)]
    return [SyclDevice._of(one) for one in of_type(found, device_type)]


def get_num_devices(backend="all", device_type="all"):
    """How many there are."""
    return len(get_devices(backend, device_type))


def get_composite_devices():
    """Devices made of components: there are none."""
    return []


def has_cpu_devices():
    """Whether there is a CPU device."""
    return bool(get_devices(device_type="cpu"))


def has_gpu_devices():
    """Whether there is a GPU."""
    return bool(get_devices(device_type="gpu"))


def has_accelerator_devices():
    """Whether there is an accelerator."""
    return bool(get_devices(device_type="accelerator"))


def select_default_device():
    """The best device; in a `with drupe.device(...)` block, that one."""
    return SyclDevice()


def select_cpu_device():
    """The best CPU."""
    return SyclDevice("cpu")


def select_gpu_device():
    """The best GPU."""
    return SyclDevice("gpu")


def select_accelerator_device():
    """The best accelerator."""
    return SyclDevice("accelerator")


def _aspects(words):
    words = [words] if isinstance(words, str) else list(words or ())
    for word in words:
        if word not in _ASPECTS:
            raise AttributeError(f"there is no aspect {word!r}; aspects are {', '.join(_ASPECTS)}")
    return ["has_aspect_" + word for word in words]


def select_device_with_aspects(required_aspects, excluded_aspects=None):
    """The device with the highest score that has all aspects of the first list and none of the second."""
    required, excluded = _aspects(required_aspects), _aspects(excluded_aspects)
    for one in get_devices():
        if all(getattr(one, name) for name in required) and not any(getattr(one, name) for name in excluded):
            return one
    raise ValueError(f"no device has the aspects {required_aspects!r} and lacks {excluded_aspects or ()!r}")
