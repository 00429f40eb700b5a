"""SyclPlatform, and the list of platforms."""
from drupe import platforms
from drupe.compat.dpctl import _selection
from drupe.compat.dpctl._errors import SyclDeviceCreationError, raises
from drupe.compat.dpctl._sycl_context import SyclContext
from drupe.compat.dpctl._sycl_device import SyclDevice
from drupe.compat.dpctl._sycl_device_factory import of_type
from drupe.compat.dpctl._wrapping import Wrapped, delegate, refuse_capsule

__all__ = ["SyclPlatform", "get_platforms", "lsplatform"]


class SyclPlatform(Wrapped):
    """The platform of the best device, or of the one that a filter selects."""

    def __init__(self, arg=None):
        refuse_capsule(arg, ValueError)
        if isinstance(arg, SyclPlatform):
            self._drupe = arg._drupe
        elif arg is None or isinstance(arg, str):
            with raises(ValueError, SyclDeviceCreationError):
                self._drupe = SyclDevice(arg)._drupe.platform
        else:
            raise ValueError(f"a SyclPlatform is made of a filter or of another one, not of {type(arg).__name__}")

    @property
    def default_context(self):
        """One context over all its devices."""
        return SyclContext._of(self._drupe.default_context)

    def get_devices(self, device_type="all"):
        """Its devices of a type, best first."""
        found = [one for one in _selection.devices() if one.platform == self._drupe]
        return [SyclDevice._of(one) for one in of_type(found, device_type)]

    def get_composite_devices(self):
        """Devices made of components: there are none."""
        return []

    def print_platform_info(self, verbosity=0):
        """Print its name; with 1 its version, vendor and backend; with 2 its devices too."""
        self._drupe.print_platform_info(verbosity)

    def __repr__(self):
        return f"<dpctl.SyclPlatform [{self.name}, {self.vendor}, {self.version}] at {id(self):#x}>"


delegate(SyclPlatform, "name vendor version backend", platforms.Platform)


def get_platforms():
    """The platforms that have devices, best first."""
    return [SyclPlatform._of(one) for one in dict.fromkeys(one.platform for one in _selection.devices())]


def lsplatform(verbosity=0):
    """Print the platforms: names; with verbosity 1 what they are; with 2 their devices too."""
    if not isinstance(verbosity, int):
        raise TypeError(f"verbosity is 0, 1 or 2, not {verbosity!r}")
    for platform in get_platforms():
        platform.print_platform_info(verbosity)
