"""What the work-items of a group, or of a sub-group, do together."""
import builtins
import math
import sys

from drupe.kernel_api._running import running
from drupe.kernel_api.enums import MemoryOrder, MemoryScope
from drupe.kernel_api.items import Group, SubGroup

_WORDS = {"add": "add", "plus": "add", "sum": "add", "min": "min", "minimum": "min", "amin": "min", "max": "max",
          "maximum": "max", "amax": "max"}


def _group(name, group):
    if not isinstance(group, (Group, SubGroup)):
        raise TypeError("%s takes a group, from item.get_group(), or a sub-group, from item.get_sub_group(), not %s"
                        % (name, type(group).__name__))
    return running(name)


def group_barrier(group, fence_scope=MemoryScope.WORK_GROUP):
    """Wait until all work-items of the group are here. What they wrote before, to local and global memory, the others
    read behind it.

    group: item.get_group(), or item.get_sub_group() for that part alone. All work-items come to the same barrier, or
    none. fence_scope: for whom memory is in order then.

    @drupe.kernel
    def neighbours(item, a, part):
        i = item.get_local_id(0)
        part[i] = a[item.get_global_id(0)]
        group_barrier(item.get_group())
        a[item.get_global_id(0)] = part[i] + part[i - 1]
    """
    _group("group_barrier()", group).barrier("group_barrier()", group, True, True, sys._getframe(1))


def atomic_fence(memory_order, memory_scope):
    """Order the memory accesses before it and behind it, for those who meet by atomic operations.

    @drupe.kernel
    def publish(item, data, ready):
        data[0] = 42
        atomic_fence(MemoryOrder.RELEASE, MemoryScope.DEVICE)
        AtomicRef(ready, 0).store(1)
    """
    running("atomic_fence()").fence(MemoryOrder(memory_order), MemoryScope(memory_scope))


def _meet(name, group, value, combine):
    return _group(name, group).meet(name, group, value, combine, sys._getframe(2))


def _exchange(name, group, x, number, place, own=False):
    """The x of the work-item at place(lane, number); `own`: one's own where there is none."""
    def combine(given):
        taken = []
        for lane, (_, number) in enumerate(given):
            at = place(lane, number)
            if not 0 <= at < len(given):
                if not own:
                    raise IndexError("the group has %d work-items, and none has the number %d" % (len(given), at))
                at = lane
            taken.append(given[at][0])
        return taken
    return _group(name, group).meet(name, group, (x, number), combine, sys._getframe(2))


def group_broadcast(group, x, local_id=0):
    """The x of one work-item of the group, whose number in it is local_id, for all of them.

    first = group_broadcast(item.get_sub_group(), x, 0)
    """
    return _exchange("group_broadcast()", group, x, local_id, lambda lane, at: at)


def select_from_group(group, x, remote_local_id):
    """The x of the work-item whose number in the group is remote_local_id, which may differ from one to the next.

    other = select_from_group(sub_group, x, (sub_group.get_local_id() + 1) % sub_group.get_local_range())
    """
    return _exchange("select_from_group()", group, x, remote_local_id, lambda lane, at: at)


def shift_group_left(group, x, delta=1):
    """The x of the work-item `delta` places further on; of the last ones, which have none there, their own.

    difference = shift_group_left(item.get_sub_group(), x) - x
    """
    return _exchange("shift_group_left()", group, x, delta, lambda lane, by: lane + by, True)


def shift_group_right(group, x, delta=1):
    """The x of the work-item `delta` places before; of the first ones, which have none there, their own.

    difference = x - shift_group_right(item.get_sub_group(), x)
    """
    return _exchange("shift_group_right()", group, x, delta, lambda lane, by: lane - by, True)


def permute_group_by_xor(group, x, mask):
    """The x of the work-item whose number differs in the bits of mask.

    pair = permute_group_by_xor(item.get_sub_group(), x, 1)
    """
    return _exchange("permute_group_by_xor()", group, x, mask, lambda lane, by: lane ^ by, True)


def _operation(name, op):
    word = _WORDS.get(op if isinstance(op, str) else getattr(op, "__name__", None))
    if word is None:
        raise ValueError('the operation of %s is "add", "min" or "max", not %r' % (name, op))
    return word


def _apply(word, a, b):
    if word == "add":
        return a + b
    # A float that is not a number wins, as in numpy.minimum.
    if a != a or b != b:
        return a if a != a else b
    return min(a, b) if word == "min" else max(a, b)


def _identity(word, x):
    """What changes nothing, in the type of x."""
    kind = getattr(x, "dtype", None)
    if word == "add":
        return type(x)(0) if kind is None else kind.type(0)
    if kind is None:
        if isinstance(x, (builtins.bool, builtins.int)):
            return 2**63 - 1 if word == "min" else -2**63
        return math.inf if word == "min" else -math.inf
    import numpy

    if kind.kind in "iu":
        return kind.type(numpy.iinfo(kind).max if word == "min" else numpy.iinfo(kind).min)
    return kind.type(math.inf if word == "min" else -math.inf)


def reduce_over_group(group, x, op="add"):
    """The sum, the smallest or the largest x of the group, for all of its work-items.

    op: "add", "min" or "max", or a function of that name: operator.add, min, max, numpy.minimum ...

    total = reduce_over_group(item.get_sub_group(), x, "add")
    """
    word = _operation("reduce_over_group()", op)

    def combine(given):
        result = given[0]
        for x in given[1:]:
            result = _apply(word, result, x)
        return [result] * len(given)
    return _meet("reduce_over_group()", group, x, combine)


def _scan(word, given, exclusive):
    result, found = _identity(word, given[0]), []
    for number, x in enumerate(given):
        if exclusive:
            found.append(result)
        result = x if number == 0 else _apply(word, result, x)
        if not exclusive:
            found.append(result)
    return found


def exclusive_scan_over_group(group, x, op="add"):
    """The sum (smallest, largest) of the x of those before; the first one gets 0 (the largest number, the smallest).

    place = exclusive_scan_over_group(item.get_sub_group(), count, "add")
    """
    word = _operation("exclusive_scan_over_group()", op)
    return _meet("exclusive_scan_over_group()", group, x, lambda given: _scan(word, given, True))


def inclusive_scan_over_group(group, x, op="add"):
    """The sum (smallest, largest) of the x of those before and its own.

    running = inclusive_scan_over_group(item.get_sub_group(), x, "add")
    """
    word = _operation("inclusive_scan_over_group()", op)
    return _meet("inclusive_scan_over_group()", group, x, lambda given: _scan(word, given, False))


def any_of_group(group, x):
    """Whether x is true for one work-item of the group at least.

    if any_of_group(item.get_sub_group(), changed): ...
    """
    return _meet("any_of_group()", group, x, lambda given: [builtins.any(given)] * len(given))


def all_of_group(group, x):
    """Whether x is true for all work-items of the group.

    if all_of_group(item.get_sub_group(), done): ...
    """
    return _meet("all_of_group()", group, x, lambda given: [builtins.all(given)] * len(given))
