"""Where a work-item is: Item, NdItem, Group and SubGroup. The last dimension runs fastest, as in SYCL."""
import math

from drupe.kernel_api._running import here


def linear(index, extent):
    """The number of an index in a range, counted with the last dimension fastest."""
    number = 0
    for i, n in zip(index, extent):
        number = number * n + i
    return number


def plain(index):
    """An index as people write it: a number where there is one dimension."""
    return str(index[0]) if len(index) == 1 else "(%s)" % ", ".join(map(str, index))


def _at(values, dim, asked):
    try:
        return values[dim]
    except IndexError:
        raise IndexError("%s(%s): the kernel runs over %d dimension%s, which count from 0"
                         % (asked, dim, len(values), "" if len(values) == 1 else "s")) from None


class Item:
    """What a kernel that is launched over a Range gets first: where its work-item is.

    extent: the Range; index: the work-item's place in it.

    >>> item = Item(Range(4, 5), (2, 3))
    >>> item.get_id(0), item.get_id(1), item.get_linear_id(), item.get_linear_range()
    (2, 3, 13, 20)
    """
    __slots__ = ("_extent", "_index", "_clocks")

    def __init__(self, extent, index):
        self._extent = extent
        self._index = index

    def get_id(self, idx):
        """The work-item's place in a dimension."""
        try:
            return self._index[idx]
        except IndexError:
            return _at(self._index, idx, "get_id")

    def get_linear_id(self):
        """The work-item's number among all, counted with the last dimension fastest."""
        return linear(self._index, self._extent)

    def get_range(self, idx):
        """The size of a dimension."""
        return _at(self._extent, idx, "get_range")

    def get_linear_range(self):
        """The number of all work-items."""
        return math.prod(self._extent)

    @property
    def dimensions(self):
        """The number of dimensions."""
        return len(self._extent)

    def __getattr__(self, name):
        if not name.startswith("_") and hasattr(NdItem, name):
            raise AttributeError("a kernel that is launched over a Range gets an Item, which has no %s: launch it over "
                                 "an NdRange(global_size, local_size) for an NdItem" % name)
        raise AttributeError("an Item has no attribute %r" % name)

    def __repr__(self):
        return "<Item %s of %s>" % (plain(self._index), plain(self._extent))


class NdItem:
    """What a kernel that is launched over an NdRange gets first: where its work-item is, among all and in its group.

    global_item, local_item: Items of the two ranges; group: its Group.

    >>> group = Group(Range(8), Range(4), Range(2), (1,))
    >>> item = NdItem(Item(Range(8), (6,)), Item(Range(4), (2,)), group)
    >>> item.get_global_id(0), item.get_local_id(0), item.get_group().get_group_id(0)
    (6, 2, 1)
    """
    __slots__ = ("_global", "_local", "_group", "_lane", "_sub_size", "_clocks")

    def __init__(self, global_item, local_item, group):
        self._global = global_item
        self._local = local_item
        self._group = group
        self._lane = None
        self._sub_size = None

    def get_global_id(self, idx):
        """The work-item's place among all, in a dimension."""
        try:
            return self._global._index[idx]
        except IndexError:
            return _at(self._global._index, idx, "get_global_id")

    def get_global_linear_id(self):
        """The work-item's number among all, counted with the last dimension fastest."""
        return self._global.get_linear_id()

    def get_local_id(self, idx):
        """The work-item's place in its group, in a dimension."""
        try:
            return self._local._index[idx]
        except IndexError:
            return _at(self._local._index, idx, "get_local_id")

    def get_local_linear_id(self):
        """The work-item's number in its group, counted with the last dimension fastest."""
        return self._local.get_linear_id() if self._lane is None else self._lane

    def get_global_range(self, idx):
        """The number of all work-items in a dimension."""
        return _at(self._global._extent, idx, "get_global_range")

    def get_local_range(self, idx):
        """The size of a group in a dimension."""
        return _at(self._local._extent, idx, "get_local_range")

    def get_global_linear_range(self):
        """The number of all work-items."""
        return self._global.get_linear_range()

    def get_local_linear_range(self):
        """The number of a group's work-items."""
        return self._local.get_linear_range()

    def get_group(self):
        """The work-item's Group."""
        return self._group

    def get_sub_group(self):
        """The work-item's SubGroup."""
        return SubGroup(self.get_local_linear_id(), self.get_local_linear_range(), self._sub_size or 32)

    @property
    def dimensions(self):
        """The number of dimensions."""
        return len(self._global._extent)

    def __getattr__(self, name):
        if not name.startswith("_") and hasattr(Item, name):
            raise AttributeError("a kernel that is launched over an NdRange gets an NdItem, which has no %s: it has %s"
                                 % (name, name.replace("get_", "get_global_")))
        raise AttributeError("an NdItem has no attribute %r" % name)

    def __repr__(self):
        return "<NdItem %s, %s of group %s>" % (plain(self._global._index), plain(self._local._index),
                                                plain(self._group._index))


class Group:
    """The work-group of a work-item: those who share local memory and meet at barriers.

    >>> group = Group(Range(8, 8), Range(4, 2), Range(2, 4), (1, 2))
    >>> group.get_group_id(1), group.get_group_linear_id(), group.get_local_linear_range()
    (2, 6, 8)
    """
    __slots__ = ("_global", "_local", "_groups", "_index", "_leads", "_number")

    def __init__(self, global_range, local_range, group_range, index):
        self._global, self._local, self._groups, self._index = global_range, local_range, group_range, index
        self._leads = False
        self._number = None

    def get_group_id(self, dim):
        """The group's place among all groups, in a dimension."""
        return _at(self._index, dim, "get_group_id")

    def get_group_linear_id(self):
        """The group's number among all, counted with the last dimension fastest."""
        return linear(self._index, self._groups)

    def get_group_range(self, dim):
        """The number of groups in a dimension."""
        return _at(self._groups, dim, "get_group_range")

    def get_group_linear_range(self):
        """The number of all groups."""
        return math.prod(self._groups)

    def get_local_range(self, dim):
        """The size of a group in a dimension."""
        return _at(self._local, dim, "get_local_range")

    def get_local_linear_range(self):
        """The number of a group's work-items."""
        return math.prod(self._local)

    @property
    def leader(self):
        """True for one work-item of the group, the first one."""
        run = here.run
        item = run.item if run is not None else None
        if isinstance(item, NdItem) and item._group is self:
            return item.get_local_linear_id() == 0
        return self._leads

    @leader.setter
    def leader(self, value):
        self._leads = bool(value)

    @property
    def dimensions(self):
        """The number of dimensions."""
        return len(self._groups)

    def __repr__(self):
        return "<Group %s of %s>" % (plain(self._index), plain(self._groups))


class SubGroup:
    """The sub-group of a work-item: a part of its work-group that the device runs in step. It has one dimension.

    lane: the work-item's number in its group; count: of the group's work-items; most: the size of a sub-group, of which
    the last one of a group may be smaller.

    >>> sub_group = SubGroup(37, 40, 32)
    >>> sub_group.get_group_id(), sub_group.get_local_id(), sub_group.get_local_range(), sub_group.get_max_local_range()
    (1, 5, 8, 32)
    """
    __slots__ = ("_lane", "_count", "_most")

    def __init__(self, lane, count, most):
        self._lane, self._count, self._most = lane, count, most

    def get_local_id(self, dim=0):
        """The work-item's number in its sub-group."""
        return self._lane % self._most

    def get_local_linear_id(self):
        """The work-item's number in its sub-group."""
        return self._lane % self._most

    def get_local_range(self, dim=0):
        """The number of the sub-group's work-items."""
        return min(self._most, self._count - self._lane // self._most * self._most)

    def get_local_linear_range(self):
        """The number of the sub-group's work-items."""
        return self.get_local_range()

    def get_max_local_range(self, dim=0):
        """The number of work-items of the largest sub-group."""
        return min(self._most, self._count)

    def get_group_id(self, dim=0):
        """The sub-group's number in its work-group."""
        return self._lane // self._most

    def get_group_linear_id(self):
        """The sub-group's number in its work-group."""
        return self._lane // self._most

    def get_group_range(self, dim=0):
        """The number of sub-groups of the work-group."""
        return -(-self._count // self._most)

    def get_group_linear_range(self):
        """The number of sub-groups of the work-group."""
        return -(-self._count // self._most)

    @property
    def leader(self):
        """True for one work-item of the sub-group, the first one."""
        return self._lane % self._most == 0

    @property
    def dimensions(self):
        """The number of dimensions: 1."""
        return 1

    def __repr__(self):
        return "<SubGroup %d of %d>" % (self.get_group_id(), self.get_group_range())
