"""The spelling before items: functions that ask for the place of the work-item that calls them.

Dimensions count as everywhere: the last one runs fastest.
"""
import builtins
import operator
import sys

from drupe.kernel_api._running import running
from drupe.kernel_api.enums import MemoryOrder, MemoryScope
from drupe.kernel_api.items import NdItem
from drupe.kernel_api.memory import AtomicRef, _second, _shape

CLK_LOCAL_MEM_FENCE = 1
CLK_GLOBAL_MEM_FENCE = 2
DEFAULT_LOCAL_SIZE = ()  # kernel[global_size, DEFAULT_LOCAL_SIZE](...): the size of groups is chosen


def _item(name, grouped=False):
    item = running(name).item
    if grouped and not isinstance(item, NdItem):
        raise TypeError("%s needs work-groups, and this kernel is launched over a Range: launch it over an "
                        "NdRange(global_size, local_size)" % name)
    return item


def get_global_id(dim):
    """The work-item's place among all, in a dimension.

    c[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)]
    """
    item = _item("get_global_id()")
    return item.get_global_id(dim) if isinstance(item, NdItem) else item.get_id(dim)


def get_local_id(dim):
    """The work-item's place in its group, in a dimension.

    part[get_local_id(0)] = a[get_global_id(0)]
    """
    return _item("get_local_id()", True).get_local_id(dim)


def get_group_id(dim):
    """The group's place among all groups, in a dimension.

    if get_local_id(0) == 0: sums[get_group_id(0)] = part[0]
    """
    return _item("get_group_id()", True).get_group().get_group_id(dim)


def get_global_size(dim):
    """The number of all work-items in a dimension.

    for i in range(get_global_id(0), n, get_global_size(0)): ...
    """
    item = _item("get_global_size()")
    return item.get_global_range(dim) if isinstance(item, NdItem) else item.get_range(dim)


def get_local_size(dim):
    """The size of a group in a dimension.

    stride = get_local_size(0) // 2
    """
    return _item("get_local_size()", True).get_local_range(dim)


def get_num_groups(dim):
    """The number of groups in a dimension.

    last = get_group_id(0) == get_num_groups(0) - 1
    """
    return _item("get_num_groups()", True).get_group().get_group_range(dim)


def barrier(flags=CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE):
    """Wait until all work-items of the group are here.

    flags: the memory that is in order then, CLK_LOCAL_MEM_FENCE or CLK_GLOBAL_MEM_FENCE; their sum for both.

    barrier(CLK_LOCAL_MEM_FENCE)
    """
    group = _item("barrier()", True).get_group()
    running("barrier()").barrier("barrier()", group, flags & CLK_LOCAL_MEM_FENCE, flags & CLK_GLOBAL_MEM_FENCE,
                                 sys._getframe(1))


class local:
    """local.array(shape, dtype): memory that the work-items of a group share."""

    @staticmethod
    def array(shape, dtype):
        """An array that all work-items of the group share, made inside of a kernel.

        part = local.array(64, numpy.float32)
        """
        _item("local.array()", True)
        return running("local.array()").local_array(_shape(shape), dtype, sys._getframe(1))


class private:
    """private.array(shape, dtype): memory that one work-item has for itself."""

    @staticmethod
    def array(shape, dtype):
        """An array that one work-item has for itself, made inside of a kernel.

        sums = private.array(4, numpy.float64)
        """
        return running("private.array()").private_array(_shape(shape), dtype, False, sys._getframe(1))


def _ref(array, index):
    return AtomicRef(array, index, MemoryOrder.RELAXED, MemoryScope.DEVICE)


class atomic:
    """atomic.add(array, index, value) and others: operations on one element, one work-item after the other."""

    @staticmethod
    def add(array, index, value):
        """Add value to array[index]; gives what was there before.

        atomic.add(counts, bin, 1)
        """
        return _ref(array, index)._do("update", operator.add, value, sys._getframe(1))

    @staticmethod
    def sub(array, index, value):
        """Subtract value from array[index]; gives what was there before.

        left = atomic.sub(tickets, 0, 1)
        """
        return _ref(array, index)._do("update", operator.sub, value, sys._getframe(1))

    @staticmethod
    def min(array, index, value):
        """Write value if it is smaller; gives what was there before.

        atomic.min(lowest, 0, x)
        """
        return _ref(array, index)._do("update", builtins.min, value, sys._getframe(1))

    @staticmethod
    def max(array, index, value):
        """Write value if it is larger; gives what was there before.

        atomic.max(highest, 0, x)
        """
        return _ref(array, index)._do("update", builtins.max, value, sys._getframe(1))

    @staticmethod
    def exch(array, index, value):
        """Write value; gives what was there before.

        turn = atomic.exch(lock, 0, 1)
        """
        return _ref(array, index)._do("update", _second, value, sys._getframe(1))

    @staticmethod
    def cas(array, index, expected, value):
        """Write value if array[index] is `expected`; gives what was there before.

        owner = atomic.cas(table, slot, -1, key)
        """
        return _ref(array, index)._exchange(expected, value, sys._getframe(1))
