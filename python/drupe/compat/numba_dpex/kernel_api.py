"""What kernels are written with. call_kernel() of this module simulates, that of numba_dpex compiles."""
from drupe.compat import absent
from drupe.kernel_api import (AddressSpace, AtomicRef, Group, Item, LocalAccessor, MemoryOrder, MemoryScope, NdItem,
                              NdRange, PrivateArray, Range, atomic_fence, call_kernel, group_barrier)

__all__ = ["AddressSpace", "AtomicRef", "Group", "Item", "LocalAccessor", "MemoryOrder", "MemoryScope", "NdItem",
           "NdRange", "PrivateArray", "Range", "atomic_fence", "call_kernel", "group_barrier"]

__getattr__ = absent(__name__, {
    "SubGroup": "numba-dpex has no sub-groups; drupe.kernel_api has.",
    "reduce_over_group": "numba-dpex has no such function; drupe.kernel_api has it for sub-groups.",
})
