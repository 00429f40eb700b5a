"""The list that drupe.devices() gives."""


class DeviceList(list):
    """Devices, which a notebook shows as a table."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        from drupe import _repr

        return _repr.mimebundle(self)

    def _repr_pretty_(self, printer, cycle):
        """IPython shows lists as text its own way, whatever a bundle says, unless there is this method. Inside of other
        objects it is a list as any."""
        whole = len(getattr(printer, "stack", ())) == 1 and not cycle
        printer.text(self._repr_mimebundle_()["text/plain"] if whole else repr(self))
