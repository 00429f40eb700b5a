"""SyclContext."""
from drupe import _engine
from drupe.compat.dpctl._errors import SyclContextCreationError, raises
from drupe.compat.dpctl._sycl_device import SyclDevice
from drupe.compat.dpctl._wrapping import Wrapped, delegate, refuse_capsule

__all__ = ["SyclContext", "SyclContextCreationError"]


class SyclContext(Wrapped):
    """The context of a device (a SyclDevice, a filter, or the best one) or of a list of devices."""

    def __init__(self, arg=None):
        refuse_capsule(arg, SyclContextCreationError)
        if isinstance(arg, (SyclContext, _engine.Context)):
            self._drupe = getattr(arg, "_drupe", arg)
        elif isinstance(arg, (list, tuple)):
            if not all(isinstance(one, SyclDevice) for one in arg):
                raise TypeError("a SyclContext is made of a list of SyclDevice objects")
            with raises(SyclContextCreationError):
                self._drupe = _engine.Context([one._drupe for one in arg])
        elif arg is None or isinstance(arg, (str, SyclDevice)):
            self._drupe = SyclDevice(arg)._drupe.context
        else:
            raise TypeError("a SyclContext is made of a SyclDevice, a list of them or a filter, not of "
                            f"{type(arg).__name__}")

    @property
    def device_count(self):
        """How many devices it has."""
        return len(self._drupe.devices)

    @property
    def sycl_platform(self):
        """The SyclPlatform of its devices."""
        return SyclDevice._of(self._drupe.devices[0]).sycl_platform

    def get_devices(self):
        """Its devices."""
        return [SyclDevice._of(one) for one in self._drupe.devices]

    def __repr__(self):
        names = ", ".join(one.name for one in self.get_devices())
        return f"<dpctl.SyclContext for {self.device_count} devices [{names}] at {id(self):#x}>"


delegate(SyclContext, "atomic_memory_order_capabilities atomic_fence_order_capabilities "
         "atomic_memory_scope_capabilities atomic_fence_scope_capabilities", _engine.Context)
