"""%devices: what this machine has."""
from drupe import listing
from drupe.magics import render
from drupe.magics.base import Magic, Option, Result, UsageError, one_line
from drupe.magics.device import SELECTOR


class Devices(Magic):
    """The devices of this machine: type, units, memory in use."""

    name = "devices"
    options = (SELECTOR,)
    examples = (("%devices", "all devices"), ("%devices opencl -o found", "those of OpenCL; found.devices is a list"))

    def line(self, options):
        import drupe

        try:
            found = drupe.devices(options.device)
        except drupe.DeviceError as error:
            raise UsageError(one_line(error)) from None
        return Listing(found)


class Listing(Result):
    """Devices as a table; `devices` has the objects."""

    def __init__(self, devices):
        self.devices = devices
        self._rows = [(one.filter_string, one.max_compute_units, listing.size(one.global_mem_size), one.name)
                      for one in devices]

    def text(self, columns=80):
        return render.table_text(("device", "units", "memory", "name"), self._rows, columns, right=(1, 2), flexible=3)

    def html(self):
        return render.table_html(("device", "units", "memory", "name"), self._rows, right=(1, 2))

    def data(self):
        return [{"filter": one.filter_string, "units": one.max_compute_units, "memory": one.global_mem_size,
                 "name": one.name} for one in self.devices]
