"""Fourier transforms: drupe.array.fft."""
from drupe.array import fft as _fft

__all__ = list(_fft.__all__)
globals().update({name: getattr(_fft, name) for name in __all__})
