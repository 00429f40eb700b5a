"""What the simulator finds in a kernel."""
from typing import NamedTuple


class Access(NamedTuple):
    """One side of a data race: who, what, and where in the user's source."""
    work_item: str
    what: str
    file: str
    line: int


class SimulatorError(RuntimeError):
    """A kernel does what no device promises to do in one way."""


class DataRaceError(SimulatorError):
    """Two work-items access an element, one of them at least writes, and nothing orders the two.

    accesses: both sides, the earlier one of this run first; a file, a line and a work-item each."""
    accesses = ()


class BarrierDivergenceError(SimulatorError):
    """Some work-items of a group wait at a barrier to which the others do not come."""


class UninitializedMemoryError(SimulatorError):
    """A work-item reads local or private memory that nobody has written."""


for _one in (Access, SimulatorError, DataRaceError, BarrierDivergenceError, UninitializedMemoryError):
    _one.__module__ = "drupe.simulator"  # where they are public
