"""What programs that were written for pyMIC import as pymic or pyMIC: docs/compat-pymic.md.

Devices are the processors of this machine: `host`, and CPUs behind OpenCL."""
from drupe.compat.pymic.offload_error import OffloadError
from drupe.compat.pymic.offload_array import OffloadArray
from drupe.compat.pymic.offload_device import OffloadDevice, number_of_devices
from drupe.compat.pymic.offload_library import OffloadLibrary
from drupe.compat.pymic.offload_stream import OffloadStream

__all__ = ["OffloadArray", "OffloadDevice", "OffloadError", "OffloadLibrary", "OffloadStream", "devices",
           "number_of_devices"]


def __getattr__(name):
    if name == "devices":  # drivers are opened when it is first asked for
        from drupe.compat.pymic import offload_device

        return offload_device.devices
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
