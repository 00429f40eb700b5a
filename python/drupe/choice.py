"""Choosing devices: the device of a `with` block, lists by backend and type, the best device of a kind."""
from drupe import enums
from drupe._engine import Context, Device, DeviceNotFoundError, Queue, _chosen_device, devices

__all__ = ["device", "get_composite_devices", "get_device_cached_queue", "get_devices", "get_num_devices",
           "has_accelerator_devices", "has_cpu_devices", "has_gpu_devices", "select_accelerator_device",
           "select_cpu_device", "select_default_device", "select_device_with_aspects", "select_gpu_device"]

_ASPECTS = sorted(name[len("has_aspect_"):] for name in dir(Device) if name.startswith("has_aspect_"))
_queues = {}  # of contexts that are not their device's own


class device:  # noqa: N801 (reads as a word of the language in `with drupe.device("gpu"):`)
    """`with drupe.device(which):` makes a device the default one of the block, for arrays, queues and programs.

    `which` is a Device or a filter. The choice holds for this thread or task, and what it starts with a copy of its
    context; a subshell has its own. Blocks may stand inside each other, and a block may be entered again."""

    def __init__(self, which=None):
        self.device = which if isinstance(which, Device) else Device(which)
        self._tokens = []

    def __enter__(self):
        self._tokens.append(_chosen_device.set(self.device))
        return self.device

    def __exit__(self, *_exception):
        _chosen_device.reset(self._tokens.pop())

    def __repr__(self):
        return f"drupe.device({self.device.filter_string!r})"


def get_devices(backend="all", device_type="all"):
    """The devices of a backend and a type, best first; both may be a member of the enumeration or its word."""
    from drupe.platforms import _of_type

    word = enums.backend_type(backend)
    return _of_type(devices(None if word == "all" else str(word)), device_type)


def get_num_devices(backend="all", device_type="all"):
    """How many there are."""
    return len(get_devices(backend, device_type))


def get_composite_devices():
    """Devices made of components: no backend has them."""
    return []


def select_default_device():
    """The device of the `with drupe.device(...)` block, else the best of the machine."""
    return Device()


def select_cpu_device():
    """The best CPU."""
    return Device("cpu")


def select_gpu_device():
    """The best GPU."""
    return Device("gpu")


def select_accelerator_device():
    """The best accelerator."""
    return Device("accelerator")


def has_cpu_devices():
    """Whether there is a CPU device."""
    return bool(devices("cpu"))


def has_gpu_devices():
    """Whether there is a GPU."""
    return bool(devices("gpu"))


def has_accelerator_devices():
    """Whether there is an accelerator."""
    return bool(devices("accelerator"))


def _aspects(words):
    words = [words] if isinstance(words, str) else list(words or ())
    for word in words:
        if word not in _ASPECTS:
            raise ValueError(f"there is no aspect {word!r}; aspects are {', '.join(_ASPECTS)}")
    return ["has_aspect_" + word for word in words]


def select_device_with_aspects(required_aspects, excluded_aspects=None):
    """The best device that has all aspects of the first list and none of the second, by default_selector_score."""
    required, excluded = _aspects(required_aspects), _aspects(excluded_aspects)
    found = [one for one in devices() if all(getattr(one, name) for name in required)
             and not any(getattr(one, name) for name in excluded)]
    if found:
        return max(found, key=lambda one: one.default_selector_score)
    error = DeviceNotFoundError(f"No device has the aspects {required_aspects!r} and lacks {excluded_aspects or ()!r}.")
    error.status, error.hint = "NOT_FOUND", "drupe.devices() lists the devices, and info() what they have."
    raise error


def get_device_cached_queue(key):
    """The cached queue of a device, a filter, or a pair (context, device): equal at each call."""
    if isinstance(key, tuple):
        if len(key) != 2 or not isinstance(key[0], Context) or not isinstance(key[1], Device):
            raise TypeError("a key is a drupe.Device, a filter, or a pair (drupe.Context, drupe.Device)")
        context, one = key
        if context == one.context:
            return one.queue
        if key not in _queues:
            _queues.setdefault(key, Queue(one, context))
        return _queues[key]
    return (key if isinstance(key, Device) else Device(key)).queue
