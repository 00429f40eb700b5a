"""Devices as DLPack names them."""
from enum import IntEnum

from drupe.compat.dpctl._sycl_device import SyclDevice

__all__ = ["DLDeviceType", "dldevice_to_sycl_device", "sycl_device_to_dldevice"]


class DLDeviceType(IntEnum):
    """The kinds of devices of DLPack."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def dldevice_to_sycl_device(dl_dev):
    """The SyclDevice of a pair (DLDeviceType.kDLOneAPI, number)."""
    if not isinstance(dl_dev, tuple):
        raise TypeError(f"a pair of numbers is expected, not {type(dl_dev).__name__}")
    if len(dl_dev) != 2 or dl_dev[0] != DLDeviceType.kDLOneAPI:
        raise ValueError(f"a SyclDevice has the type kDLOneAPI ({int(DLDeviceType.kDLOneAPI)}), not {dl_dev!r}")
    return SyclDevice(str(dl_dev[1]))


def sycl_device_to_dldevice(dev):
    """The pair of a SyclDevice."""
    if not isinstance(dev, SyclDevice):
        raise TypeError(f"a SyclDevice is expected, not {type(dev).__name__}")
    return DLDeviceType.kDLOneAPI, dev.get_device_id()
