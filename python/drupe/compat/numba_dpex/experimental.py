"""Where call_kernel(), kernel and device_func stood before they were in numba_dpex itself."""
from drupe.compat.numba_dpex import call_kernel, call_kernel_async, device_func, kernel

__all__ = ["call_kernel", "call_kernel_async", "device_func", "kernel"]
