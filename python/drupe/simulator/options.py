"""How kernels are simulated."""
import contextvars
import dataclasses
from typing import Optional


@dataclasses.dataclass(frozen=True)
class Options:
    """How kernels are simulated: what is looked for, and in what order work-items run.

    races: find data races. uninitialized: report reads of local and private memory that nobody has written. seed:
    shuffle the order of groups and of work-items; the same number gives the same order. sub_group_size: work-items of
    a sub-group. progress: show a bar when it takes long.

    >>> Options(races=True).seed is None
    True
    """
    races: bool = False
    uninitialized: bool = False
    seed: Optional[int] = None
    sub_group_size: int = 32
    progress: bool = True

    def __post_init__(self):
        size = self.sub_group_size
        if not isinstance(size, int) or size < 1 or size & (size - 1):
            raise ValueError("sub_group_size is a power of two, not %r" % (size,))


_options = contextvars.ContextVar("drupe simulator", default=Options())


def chosen(given):
    """The options in force here, with those that are given by name."""
    options = _options.get()
    if not given:
        return options
    unknown = set(given) - {field.name for field in dataclasses.fields(Options)}
    if unknown:
        raise TypeError("call_kernel() has no option %r; it has %s"
                        % (min(unknown), ", ".join(field.name for field in dataclasses.fields(Options))))
    return dataclasses.replace(options, **given)


class options:
    """Set options for all kernels that are simulated in a block.

        with drupe.simulator.options(races=True, seed=1):
            kernel_api.call_kernel(histogram, Range(1000), values, counts)

    What it does not name stays as it is. docs/simulator.md tells of each option; Options lists them."""

    def __init__(self, **given):
        self._given, self._tokens = given, []
        chosen(given)

    def __enter__(self):
        self._tokens.append(_options.set(chosen(self._given)))
        return _options.get()

    def __exit__(self, kind, error, traceback):
        _options.reset(self._tokens.pop())
