"""What became of a kernel for one set of types and one device: all that a launch needs, and nothing of the passes."""
import collections
from dataclasses import dataclass

# What a kernel is compiled for. `kinds`: the types of its arguments; `language`: "opencl" or "c99"; `dialect`: a
# dialects.Dialect or None.
Target = collections.namedtuple("Target", "kinds dims grouped checked language fp64 device_name dialect")


@dataclass
class Text:
    """`text` is a program with one kernel, `name`; `params` says for each of its C parameters, in order, what the
    launch passes there, as tuples: ("pointer", path) ("shape", path, dim) ("stride", path, dim) ("value", path, dtype)
    ("local", path) ("global_size", dim) ("local_size", dim) ("chunk",) ("failures",). `form` is how it is launched:
    "host_range", "host_groups", "range" or "groups". `room` is how many bytes the LocalAccessors and the work-items of
    a group may take, `item_bytes` those of a work-item; None: any number."""
    text: str
    name: str
    params: tuple
    form: str
    room: "int | None" = None
    item_bytes: int = 0


class Variant:
    """`cost`: operations of a work-item; `grain`: how many work-items a chunk has at least, on the host; `failures`:
    whether it has checks; `written`: (path, name) of each array that it may write; `watched`: (globals or cell, name,
    object) that were compiled in; `sources`: what has line(number), of each function in it. `lowered` gives its
    tree.Function. `kernel` is replaced when the better tier is there."""

    def __init__(self, text, *, cost, grain, failures, written, watched, sources, lowered):
        self.text, self.cost, self.grain, self.failures, self.written = text, cost, grain, failures, written
        self.watched, self.sources, self._lowered, self._function = watched, sources, lowered, None
        self.kernel = self.program = self.tier = self.problem = self.device = None

    @property
    def function(self):
        """The lowered tree. Where the disk cache had the text, the passes run for it now."""
        if self._function is None:
            self._function = self._lowered()
        return self._function

    def source_line(self, number):
        """A line of the user's source, of the kernel or of a function that it calls."""
        return next((text for text in (one.line(number) for one in self.sources) if text), "")
