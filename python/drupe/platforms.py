"""Platforms: who offers the devices. `host` is one, and each driver of OpenCL."""
from drupe import enums
from drupe._engine import Context, Device, devices
from drupe._listed import DeviceList

__all__ = ["Platform", "get_platforms", "lsplatform"]

_contexts = {}  # of platforms with several devices


def _of_type(found, device_type):
    word = enums.device_type(device_type)
    if word == "automatic":
        return DeviceList([max(found, key=lambda one: one.default_selector_score)] if found else [])
    return DeviceList(one for one in found if word in ("all", one.device_type))


class Platform:
    """The platform of a device: of the one that a filter selects, or of the default device."""

    __slots__ = ("_first",)

    def __init__(self, arg=None):
        if isinstance(arg, Platform):
            self._first = arg._first
        else:
            self._first = arg if isinstance(arg, Device) else Device(arg)

    @property
    def name(self):
        return self._first.platform_name

    @property
    def vendor(self):
        return self._first.platform_vendor

    @property
    def version(self):
        return self._first.backend_version

    @property
    def backend(self):
        return self._first.backend

    @property
    def __name__(self):
        return "Platform"

    @property
    def default_context(self):
        """One context over all its devices, the same at each call."""
        found = self.get_devices()
        if len(found) == 1 and found[0].parent_device is None:
            return found[0].context
        if self not in _contexts:
            _contexts[self] = Context(found)
        return _contexts[self]

    def get_devices(self, device_type="all"):
        """Its devices of a type, best first."""
        return _of_type([one for one in devices(str(self.backend)) if self._key(one) == self._key(self._first)],
                        device_type)

    def get_composite_devices(self):
        """Devices made of components: no backend has them."""
        return []

    def print_platform_info(self, verbosity=0):
        """Print its name; with 1 its version, vendor and backend; with 2 its devices too."""
        print(self._text(verbosity))

    def _text(self, verbosity):
        if verbosity not in (0, 1, 2):
            raise ValueError(f"verbosity is 0, 1 or 2, not {verbosity!r}")
        if verbosity == 0:
            return f"{self.name} {self.version}"
        found = self.get_devices()
        lines = [f"Platform        {self.name}", f"    Version     {self.version}", f"    Vendor      {self.vendor}",
                 f"    Backend     {self.backend}", f"    Devices     {len(found)}"]
        for one in found if verbosity == 2 else ():
            lines += [f"        {one.filter_string:<16}{one.name}", f"        {'':<16}driver {one.driver_version}"]
        return "\n".join(lines)

    @staticmethod
    def _key(device):
        return device.backend, device.platform_index

    def _repr_mimebundle_(self, include=None, exclude=None):
        from drupe import _repr

        return _repr.mimebundle(self)

    def __eq__(self, other):
        return self._key(self._first) == self._key(other._first) if isinstance(other, Platform) else NotImplemented

    def __hash__(self):
        return hash(self._key(self._first))

    def __repr__(self):
        return f"<drupe.Platform {self.name}, {self.backend}>"


def get_platforms():
    """The platforms that have devices, best first."""
    return list(dict.fromkeys(map(Platform, devices())))


def lsplatform(verbosity=0):
    """Print the platforms: names; with verbosity 1 what they are; with 2 their devices too."""
    for platform in get_platforms():
        platform.print_platform_info(verbosity)
