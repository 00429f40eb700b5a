"""The list that drupe.devices() gives."""


class DeviceList(list):
    """Devices, which a notebook shows as a table."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        from drupe import _shown

        return _shown.mimebundle(self)
