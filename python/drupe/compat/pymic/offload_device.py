"""OffloadDevice, `devices` and number_of_devices()."""
from drupe import _engine
from drupe.compat.pymic import _trace
from drupe.compat.pymic.offload_library import OffloadLibrary
from drupe.compat.pymic.offload_stream import OffloadStream
from drupe.compat.pymic.offload_error import OffloadError

# What pyMIC had as methods of devices before it had streams.
_OF_STREAM = frozenset(("bind", "copy", "empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "bcast",
                        "bcast_like", "invoke", "invoke_kernel", "sync"))


def _processors():
    """The devices that functions of a library can work for, the built-in one first."""
    found = [one for one in _engine.devices() if one.device_type == "cpu"]
    return sorted(found, key=lambda one: one.backend != "host")


class OffloadDevice:
    """A device by its number."""

    def __init__(self, device_id):
        found = _processors()
        if not isinstance(device_id, int) or not 0 <= device_id < len(found):
            raise OffloadError("there is no device %r; there are %d" % (device_id, len(found)))
        self.device_id = device_id
        self.drupe_device = found[device_id]
        self.queue = self.drupe_device.queue
        self.default_stream = OffloadStream(self)
        self._libraries = []

    def get_default_stream(self):
        """The device's default stream."""
        return self.default_stream

    def create_stream(self):
        """A new stream, which runs beside the others."""
        return OffloadStream(self, _engine.Queue(self.drupe_device))

    def load_library(self, *libraries, **kwargs):
        """The OffloadLibrary of a file, or a list of those of several."""
        if kwargs:
            raise TypeError("load_library() takes no keywords: %s" % ", ".join(kwargs))
        while len(libraries) == 1 and isinstance(libraries[0], (tuple, list)):
            libraries = libraries[0]
        if not libraries:
            raise ValueError("load_library() needs the name of a library")
        loaded = [OffloadLibrary(one, self) for one in libraries]
        self._libraries += loaded
        return loaded[0] if len(loaded) == 1 else loaded

    load_library = _trace.traced(load_library)

    def find_kernel(self, name):
        """The kernel of this name in the libraries that the device has loaded, the latest first."""
        for library in reversed(self._libraries):
            try:
                return getattr(library, name)
            except AttributeError:
                pass
        raise OffloadError("no library of %s has a kernel %r" % (self, name))

    def __getattr__(self, name):
        if name in _OF_STREAM:
            return getattr(self.default_stream, name)
        raise AttributeError("%r has no attribute %r" % (type(self).__name__, name))

    def __eq__(self, other):
        return isinstance(other, OffloadDevice) and self.device_id == other.device_id

    def __hash__(self):
        return hash(self.device_id)

    def __repr__(self):
        return "OffloadDevice(%d)" % self.device_id

    def __str__(self):
        return "target(%s)" % self.drupe_device.filter_string


def number_of_devices():
    """How many devices there are."""
    return len(globals().get("devices") or __getattr__("devices"))


def __getattr__(name):
    if name == "devices":
        made = {number: OffloadDevice(number) for number in range(len(_processors()))}
        return globals().setdefault("devices", made)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
