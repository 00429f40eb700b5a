"""%device and %%device: the default device of what follows, or of one cell."""
import contextlib

from drupe.magics.base import WIDTH, Magic, Option, Result, UsageError, one_line

SELECTOR = Option("device", nargs="?", metavar="SEL", complete="device",
                  help="backend:type:number, each part optional, such as gpu, opencl:cpu or host:cpu:0.1; several with "
                       "commas: the first that is there")


def choose(text):
    """The Device of a filter, or the default one. UsageError when there is none."""
    import drupe

    try:
        return drupe.Device(text)
    except drupe.DeviceError as error:
        raise UsageError(one_line(error)) from None


class Chosen(Result):
    """The default device."""

    def __init__(self, device):
        self.device = device

    def text(self, columns=WIDTH):
        return "%s  %s" % (self.device.filter_string, self.device.name)

    def data(self):
        return {"filter": self.device.filter_string, "name": self.device.name}


class Device(Magic):
    """Set the default device of the notebook, or of one cell; print it without an argument.

    Arrays, queues and programs that are made without naming a device are made there. In a subshell it holds for that
    subshell. A `with drupe.device(...)` block goes first."""

    name = "device"
    options = (SELECTOR,)
    examples = (("%device opencl:gpu", "what follows uses the first GPU of OpenCL"),
                ("%%device host\nx = drupe.array.arange(10)\nx.sum()", "this cell computes on the host device"))

    def line(self, options):
        if options.device is not None:
            from drupe._engine import _chosen_device

            _chosen_device.set(choose(options.device))
        return Chosen(choose(None))

    @contextlib.contextmanager
    def around(self, options):
        if options.device is None:
            raise UsageError("%%device needs a device, such as %%device gpu")
        import drupe

        with contextlib.ExitStack() as stack:
            device = choose(options.device)
            if options.output or options.json:
                self.show(Chosen(device), options)
            block = drupe.device(device)
            block.__enter__()
            stack.callback(_leave, block)
            yield


def _leave(block):
    with contextlib.suppress(ValueError):  # the cell had a context of its own, which is gone with the choice in it
        block.__exit__(None, None, None)
