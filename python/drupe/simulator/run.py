"""A kernel while it is simulated: its work-items, one after the other, and what they ask for."""
import itertools
import math
import operator
import os
import random
from sys import gettrace, settrace

from drupe.kernel_api.enums import AddressSpace
from drupe.kernel_api.items import Group, Item, NdItem, SubGroup, plain
from drupe.kernel_api.ranges import NdRange, Range
from drupe.simulator import races, traces
from drupe.simulator.errors import Access, DataRaceError, UninitializedMemoryError
from drupe.simulator.group import GroupRun
from drupe.simulator.memory import Memory, Watched, assigned_name, unwritten
from drupe.simulator.progress import Bar

_CHUNK = 256  # work-items between two looks at the clock


class Run:
    """What is the same for all work-items, and which of them runs now.

    item: the work-item that runs. group: its GroupRun, or None over a Range. start: what is called for a work-item."""

    def __init__(self, function, space, arguments, takes_item, options, stop):
        self.function, self.space, self.arguments, self.options = function, space, arguments, options
        self.takes_item, self.item, self.group, self.workers, self.places = takes_item, None, None, [], {}
        self.random = random.Random(options.seed) if options.seed is not None else None
        self.watches = options.races or options.uninitialized
        self.bar = Bar(function.__name__, options.progress)
        self.start = function if stop is None else stop.around(self, function)
        if options.races:
            cells = races.Races(self, "global")
            arguments.watched(lambda array, name: Memory(self, array, name, "global", cells, None).watched())

    # --- Running ---

    def all(self, part=None):
        """Run all work-items; of the group `part` alone, if it is given."""
        import numpy

        with numpy.errstate(all="ignore"):  # integers wrap and floats become infinite without a word, as on devices
            if isinstance(self.space, NdRange):
                self._groups(part)
            else:
                self._items(part)
        self.bar.end("done")

    def order(self, things):
        """In the order in which they run: as they are, or shuffled."""
        if self.random is None:
            return things
        things = list(things)
        self.random.shuffle(things)
        return things

    def _items(self, part):
        traces.no_lines()
        extent, start, args, bar = tuple(self.space), self.start, self.arguments.values, self.bar
        indices = iter(self.order(itertools.product(*map(range, extent))) if part is None else (part,))
        bar.total = math.prod(extent)
        while chunk := tuple(itertools.islice(indices, _CHUNK)):
            for item in self._chunk(extent, chunk):
                self.item = item
                if self.takes_item:
                    start(item, *args)
                else:
                    start(*args)
                trace = gettrace()  # of a debugger in Python: a method
                if hasattr(trace, "__self__"):
                    settrace(None)
                    traces.behind(trace)
            bar.advance(len(chunk))

    def _chunk(self, extent, indices):
        items = [Item(extent, index) for index in indices]
        if self.watches:
            for item in items:
                item._clocks = races.Clocks(item, (item.get_linear_id(), 0, 0))
        return items

    def _groups(self, part):
        traces.no_lines()
        whole, size = self.space.global_range, self.space.local_range
        counts = Range(*(n // m for n, m in zip(whole, size)))
        locals_ = [Item(tuple(size), index) for index in itertools.product(*map(range, size))]
        places = self.order(itertools.product(*map(range, counts))) if part is None else (part,)
        self.bar.total = math.prod(whole)
        for place in places:
            group = Group(whole, size, counts, place)
            self.group = GroupRun(self, group, self._members(group, locals_))
            self.group.all(self.arguments.of_group(self._local))
            self.bar.advance(len(locals_))

    def _members(self, group, locals_):
        extent, sub_size = tuple(self.space.global_range), self.options.sub_group_size
        base = [i * n for i, n in zip(group._index, self.space.local_range)]
        number = group.get_group_linear_id() if self.watches else None
        members = []
        for lane, local in enumerate(locals_):
            item = NdItem(Item(extent, tuple(map(operator.add, base, local._index))), local, group)
            item._lane, item._sub_size = lane, sub_size
            if number is not None:
                item._clocks = races.Clocks(item, (number, lane // sub_size, lane))
            members.append(item)
        return members

    def close(self):
        """End the greenlets of work-items that have not ended."""
        trace, interrupt = gettrace(), None
        if hasattr(trace, "__self__") and self.workers:
            settrace(None)  # a debugger would stop where they end
        for worker in self.workers:
            for _ in range(3):  # the user's code may catch what ends it
                if worker.dead:
                    break
                try:
                    worker.throw()
                except KeyboardInterrupt as error:
                    interrupt = error
                except BaseException:  # of the user's `finally`, while the run ends for a reason of its own
                    pass
        if hasattr(trace, "__self__") and self.workers:
            settrace(trace)
        self.workers.clear()
        self.bar.end("interrupted")
        if interrupt is not None:
            raise interrupt

    # --- What a work-item asks for ---

    def meet(self, what, group, value, combine, frame):
        """Wait until all of the group are here, and give what combine() makes of their values for this one."""
        return self._group_of(what, group).meet(what, isinstance(group, SubGroup), value, combine, frame)

    def barrier(self, what, group, local, global_, frame):
        """Wait until all of the group are here."""
        clocks = (lambda items: races.barrier([one._clocks for one in items], local, global_)) if self.watches else None
        self._group_of(what, group).meet(what, isinstance(group, SubGroup), None, None, frame, clocks)

    def _group_of(self, what, group):
        if self.group is None or (isinstance(group, Group) and group is not self.item._group):
            raise ValueError("%s takes the group of the work-item that calls it: item.get_group()" % what)
        return self.group

    def fence(self, order, scope):
        """atomic_fence()"""
        if self.watches:
            races.fence(self.item._clocks, order, scope)

    def _local(self, shape, dtype, name):
        """Local memory of the group that is about to run."""
        array = unwritten(shape, dtype)
        if not self.watches:
            return array
        cells = races.Races(self, "local") if self.options.races else None
        return Memory(self, array, name, "local", cells, set() if self.options.uninitialized else None).watched()

    def local_array(self, shape, dtype, frame):
        """local.array(): all work-items of a group get one array for one place in the source."""
        key = traces.place(frame, self.places)
        array = self.group.arrays.get(key)
        if array is None:
            array = self.group.arrays[key] = self._local(shape, dtype, assigned_name(frame) or "local array")
        return array

    def private_array(self, shape, dtype, zeros, frame):
        """PrivateArray()"""
        array = unwritten(shape, dtype)
        if zeros:
            array.fill(0)
        if not self.options.uninitialized or zeros:
            return array
        return Memory(self, array, assigned_name(frame) or "private array", "private", None, set()).watched()

    # --- Atomic operations ---

    def one_element(self, array, index):
        """IndexError, TypeError: there is no such element."""
        data = getattr(array, "_data", array)
        places = index if isinstance(index, tuple) else (index,)
        if len(places) != getattr(data, "ndim", None):
            raise TypeError("an atomic operation works on one element of an array: give it the array and an index for "
                            "each of its dimensions")
        message = traces.outside(self.name_of(array), data.shape, index)
        if message:
            raise IndexError(message)

    def name_of(self, array):
        """The name of the parameter that an array came by, or `array`."""
        if isinstance(array, Watched):
            return array._memory.name
        named = zip(self.arguments.names, self.arguments.values)
        return next((name for name, value in named if value is array), "array")

    def space_of(self, array):
        """The address space of an array."""
        if isinstance(array, Watched):
            return AddressSpace[array._memory.kind.upper()]
        known = any(value is array or getattr(array, "base", None) is value for value in self.arguments.values)
        return AddressSpace.GLOBAL if known else AddressSpace.GENERIC

    def atomic(self, ref, kind, operation, value, frame, integers):
        """An operation on an element; gives what was there before. kind: load, store, update or exchange."""
        array, index = ref._ref, ref._index
        data = getattr(array, "_data", array)
        if integers and data.dtype.kind not in "iu":
            raise TypeError("this atomic operation takes integers, and the elements are %s" % data.dtype)
        old = data[index]
        new = old if operation is None else operation(old, data.dtype.type(value))
        if isinstance(array, Watched):
            kind = "load" if kind == "exchange" and new is old else kind  # nothing was exchanged
            array._memory.atomic(int(array._keys[index]), frame, kind, ref.memory_order, ref.memory_scope)
        if operation is not None:
            data[index] = new
        return old

    # --- What was found ---

    def who(self, item):
        """A work-item as messages name it."""
        if isinstance(item, Item):
            return "work-item %s" % plain(item._index)
        return "work-item %s (%s of group %s)" % (plain(item._global._index), plain(item._local._index),
                                                  plain(item._group._index))

    def unwritten_read(self, memory, key):
        raise UninitializedMemoryError("%s is read, and nobody has written it: %s memory has no values at first"
                                       % (memory.element(key), memory.kind))

    def race(self, memory, key, first, second):
        sides, lines = [], []
        for one in (first, second):
            file, line, text = traces.where(one.code, one.at)
            sides.append(Access(self.who(one.item), one.what, file, line))
            there = "" if file == self.function.__code__.co_filename else " of %s" % os.path.basename(file)
            lines.append("  %s %s it in line %d%s:  %s" % (sides[-1].work_item, one.what, line, there, text))
        error = DataRaceError("a data race on %s, an element of %s memory: nothing orders\n%s\n%s" % (
            memory.element(key), memory.kind, "\n".join(lines), _remedy(first, second)))
        error.accesses = tuple(sides)
        raise error


def _remedy(first, second):
    if first.scope is not None and second.scope is not None:
        return "The scope of one leaves out the other: use MemoryScope.DEVICE."
    if first.clock.group != second.clock.group:
        return "Work-items of %s meet at no barrier: let each write elements of its own, or use an AtomicRef." % (
            "different groups" if isinstance(first.item, NdItem) else "a Range")
    return "Put group_barrier(item.get_group()) between the two, or use an AtomicRef for both."
