"""numba-dpex as programs know it: kernels and parallel loops, compiled by Drupe for any device.

    import numba_dpex as dpex
    from numba_dpex import kernel_api as kapi

    @dpex.kernel
    def add(item: kapi.Item, a, b, c):
        i = item.get_id(0)
        c[i] = a[i] + b[i]

    dpex.call_kernel(add, dpex.Range(n), a, b, c)

The older spelling is there as well, also under the names numba_dppy and dppy. docs/compat-numba.md says what differs.
"""
from drupe.compat import _numbas, absent

__version__ = "0.23.0"
_TYPES = _numbas.types()
globals().update(_TYPES)

# The names, by the module of Drupe that has them; each is imported when it is asked for.
_WRITTEN = {name: module for module, names in {
    "compat.numba_dpex._kernels": ("call_kernel", "call_kernel_async", "device_func", "dpjit", "func", "kernel",
                                   "offload_to_sycl_device"),
    "kernel_api": ("CLK_GLOBAL_MEM_FENCE", "CLK_LOCAL_MEM_FENCE", "DEFAULT_LOCAL_SIZE", "NdRange", "Range", "atomic",
                   "barrier", "get_global_id", "get_global_size", "get_group_id", "get_local_id", "get_local_size",
                   "get_num_groups", "local", "private"),
    "offloading.function": ("prange",),
}.items() for name in names}
__all__ = sorted({*_WRITTEN, *_TYPES, "kernel_api"})

_NO_TYPES = "It is a part of Numba's type system. Kernels are compiled for the arguments of each launch: leave it out."
_missing = absent(__name__, {
    **dict.fromkeys(("DpctlSyclQueue", "DpctlSyclEvent", "DpnpNdArray", "IntEnumLiteral", "KernelDispatcherType",
                     "NdRangeType", "RangeType", "USMNdArray", "usm_ndarray"), _NO_TYPES),
    "config": "Options of Drupe are described in docs/kernels.md; kernel.inspect() shows what became of a kernel.",
    "get_work_dim": "The item has it: item.dimensions.",
    "mem_fence": "Write atomic_fence(MemoryOrder.ACQ_REL, MemoryScope.WORK_GROUP), or barrier().",
    "sub_group_barrier": "Write group_barrier(item.get_sub_group()) with drupe.kernel_api, where a device has "
                         "sub-groups.",
    "dpctl_iface": "Devices and queues are those of dpctl, or of drupe.",
    "vectorize": "Write @drupe.vectorize.",
    "njit": "Write @dpjit: it runs functions with loops over prange() on the arrays' device.",
    "jit": "Write @dpjit: it runs functions with loops over prange() on the arrays' device.",
})
__getattr__ = _numbas.lazy(globals(), _WRITTEN, _missing, ("kernel_api", "experimental"))


def __dir__():
    return __all__
