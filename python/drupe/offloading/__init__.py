"""Functions for NumPy that run on devices: @drupe.offload, drupe.prange, drupe.vectorize; docs/offload.md."""
