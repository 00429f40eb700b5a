"""OffloadError."""
from drupe.native._stream import OffloadError

__all__ = ["OffloadError"]
