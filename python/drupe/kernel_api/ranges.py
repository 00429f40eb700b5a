"""How many work-items a kernel has: the engine's classes."""
from drupe._engine import NdRange, Range

__all__ = ["NdRange", "Range"]
