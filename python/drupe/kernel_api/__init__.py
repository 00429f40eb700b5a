"""What kernels in Python are written with, and call_kernel(), which simulates them.

    from drupe import kernel_api as kapi

    def add(item, a, b, c):
        i = item.get_id(0)
        c[i] = a[i] + b[i]

    kapi.call_kernel(add, kapi.Range(len(c)), a, b, c)      here: plain Python, work-item by work-item
    drupe.call_kernel(drupe.kernel(add), ...)               there: compiled, on the arrays' device

The names are those of numba_dpex.kernel_api and of SYCL. A kernel may be written in the older spelling, too, with
get_global_id(0) and barrier(CLK_LOCAL_MEM_FENCE). docs/kernels.md tells of kernels, docs/simulator.md of call_kernel().
"""
from drupe.kernel_api.enums import AddressSpace, MemoryOrder, MemoryScope
from drupe.kernel_api.groups import (all_of_group, any_of_group, atomic_fence, exclusive_scan_over_group, group_barrier,
                                     group_broadcast, inclusive_scan_over_group, permute_group_by_xor,
                                     reduce_over_group, select_from_group, shift_group_left, shift_group_right)
from drupe.kernel_api.items import Group, Item, NdItem, SubGroup
from drupe.kernel_api.memory import AtomicRef, LocalAccessor, PrivateArray
from drupe.kernel_api.older import (CLK_GLOBAL_MEM_FENCE, CLK_LOCAL_MEM_FENCE, DEFAULT_LOCAL_SIZE, atomic, barrier,
                                    get_global_id, get_global_size, get_group_id, get_local_id, get_local_size,
                                    get_num_groups, local, private)
from drupe.kernel_api.ranges import NdRange, Range
from drupe.simulator.calls import call_kernel

__all__ = ["AddressSpace", "AtomicRef", "CLK_GLOBAL_MEM_FENCE", "CLK_LOCAL_MEM_FENCE", "DEFAULT_LOCAL_SIZE", "Group",
           "Item", "LocalAccessor", "MemoryOrder", "MemoryScope", "NdItem", "NdRange", "PrivateArray", "Range",
           "SubGroup", "all_of_group", "any_of_group", "atomic", "atomic_fence", "barrier", "call_kernel",
           "exclusive_scan_over_group", "get_global_id", "get_global_size", "get_group_id", "get_local_id",
           "get_local_size", "get_num_groups", "group_barrier", "group_broadcast", "inclusive_scan_over_group", "local",
           "permute_group_by_xor", "private", "reduce_over_group", "select_from_group", "shift_group_left",
           "shift_group_right"]
