"""Data races, found by vector clocks: two accesses of an element race if one of them at least writes, not both are
atomic, and neither happens before the other.

A work-item's clock counts the stretches between its barriers and its releases. What it knows of others is a dict of
numbers: accesses of a work-item, a sub-group or a group before that number happened before. Its keys are tuples
(group,), (group, sub-group) and (group, sub-group, work-item). A barrier gives all who meet one number and what any of
them knows; an atomic operation hands knowledge on as C++ says: a release leaves it at the element, an acquire takes it.

There is one clock for global and one for local memory, because barrier(CLK_LOCAL_MEM_FENCE) orders the latter only.

Of accesses that nothing orders, a cell keeps those of two groups, two work-items each: whoever races with one that was
left out races with one that was kept, unless acquires order just those.
"""
from drupe.kernel_api.enums import MemoryOrder, MemoryScope

KINDS = ("global", "local")
_ACQUIRES = (MemoryOrder.ACQUIRE, MemoryOrder.ACQ_REL, MemoryOrder.SEQ_CST)
_RELEASES = (MemoryOrder.RELEASE, MemoryOrder.ACQ_REL, MemoryOrder.SEQ_CST)


class Clock:
    """What a work-item knows, for one kind of memory. `known` is shared and never changed."""
    __slots__ = ("work", "sub", "group", "time", "known")

    def __init__(self, work):
        self.work, self.sub, self.group = work, work[:2], work[:1]
        self.time, self.known = 0, {}

    def knows(self, access):
        """Whether an access of another work-item happened before."""
        known, clock = self.known, access.clock
        time = access.time
        return time < known.get(clock.group, 0) or time < known.get(clock.sub, 0) or time < known.get(clock.work, 0)

    def learn(self, known):
        """Know what `known` says, too."""
        self.known = merged(self.known, known)

    def release(self):
        """What others know who acquire it; later accesses are not among that."""
        self.time += 1
        return merged(self.known, {self.work: self.time})


def merged(first, second):
    """What both know, together."""
    if first is second or not second:
        return first
    together = dict(first)
    for key, time in second.items():
        if time > together.get(key, 0):
            together[key] = time
    return together


class Clocks:
    """The clocks of a work-item, and what its fences have left for later atomic operations."""
    __slots__ = ("item", "narrow", "global_", "local", "fenced", "seen")

    def __init__(self, item, work):
        self.item, self.narrow = item, work[:1]
        self.global_, self.local = Clock(work), Clock(work)
        self.fenced, self.seen = None, {}

    def both(self):
        return self.global_, self.local


def barrier(clocks, local, global_):
    """All of `clocks` meet; the memory of the two kinds, where true, is in order behind that."""
    group, sub = clocks[0].narrow, clocks[0].local.sub
    # A sub-group's barrier says nothing of the other work-items of the group.
    unit = group if any(one.local.sub != sub for one in clocks) else sub
    for wanted, kind in ((global_, "global_"), (local, "local")):
        if not wanted:
            continue
        members = [getattr(one, kind) for one in clocks]
        time = max(one.time for one in members) + 1
        known = members[0].known
        for one in members[1:]:
            known = merged(known, one.known)
        known = {key: value for key, value in known.items() if key[:len(unit)] != unit}
        known[unit] = time
        for one in members:
            one.time, one.known = time, known


class Access:
    """One access of an element. what: "reads", "writes", or an atomic operation's name."""
    __slots__ = ("clock", "time", "item", "what", "code", "at", "writes", "scope")

    def __init__(self, clock, item, what, frame, writes, scope=None):
        self.clock, self.time, self.item, self.what = clock, clock.time, item, what
        self.code, self.at = frame.f_code, frame.f_lasti
        self.writes, self.scope = writes, scope


class _Cell:
    __slots__ = ("write", "reads", "atomics", "released")

    def __init__(self):
        self.write, self.reads, self.atomics, self.released = None, [], [], {}


def _keep(kept, access):
    """Note an access among those that nothing orders."""
    clock = access.clock
    kept[:] = [one for one in kept if one.writes > access.writes or not (one.clock is clock or clock.knows(one))]
    mine = [one for one in kept if one.clock.group == clock.group]
    if len(mine) >= 2:
        kept.remove(min(mine, key=lambda one: (one.writes, one.time)))
    elif not mine and len({one.clock.group for one in kept}) >= 2:
        return
    kept.append(access)


class Races:
    """The cells of some memory: that of all global arrays, or that of one local one."""

    def __init__(self, run, kind):
        self.run, self.kind, self.cells = run, "global_" if kind == "global" else kind, {}

    def _cell(self, key):
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = _Cell()
        clocks = self.run.item._clocks
        return cell, getattr(clocks, self.kind), clocks

    def _against(self, memory, key, access, others):
        clock = access.clock
        for other in others:
            if other is not None and other.clock is not clock and not clock.knows(other):
                self.run.race(memory, key, other, access)

    def read(self, memory, key, frame):
        cell, clock, clocks = self._cell(key)
        access = Access(clock, clocks.item, "reads", frame, False)
        self._against(memory, key, access, (cell.write, *(one for one in cell.atomics if one.writes)))
        _keep(cell.reads, access)

    def write(self, memory, key, frame):
        cell, clock, clocks = self._cell(key)
        access = Access(clock, clocks.item, "writes", frame, True)
        self._against(memory, key, access, (cell.write, *cell.reads, *cell.atomics))
        cell.write, cell.reads, cell.atomics, cell.released = access, [], [], {}

    def atomic(self, memory, key, frame, kind, order, scope):
        cell, clock, clocks = self._cell(key)
        writes = kind != "load"
        access = Access(clock, clocks.item, "%s atomically" % ("writes" if writes else "reads"), frame, writes, scope)
        self._against(memory, key, access, (cell.write, *(cell.reads if writes else ())))
        apart = [one for one in cell.atomics if (one.writes or writes) and _apart(one, access)]
        self._against(memory, key, access, apart)
        _keep(cell.atomics, access)
        _synchronize(cell, clocks, kind, order, scope)


def _apart(first, second):
    """Whether the scope of one of two atomic operations leaves the other out."""
    narrowest = min(first.scope, second.scope)
    if narrowest >= MemoryScope.DEVICE:
        return False
    one, other = first.clock, second.clock
    if narrowest == MemoryScope.WORK_GROUP:
        return one.group != other.group
    return one.sub != other.sub if narrowest == MemoryScope.SUB_GROUP else one.work != other.work


def _unit(clocks, scope):
    """Whom a scope reaches: a key of clocks, () for all."""
    if scope >= MemoryScope.DEVICE:
        return ()
    clock = clocks.local
    return {MemoryScope.WORK_GROUP: clock.group, MemoryScope.SUB_GROUP: clock.sub}.get(scope, clock.work)


def _synchronize(cell, clocks, kind, order, scope):
    """What an atomic operation takes from the element, and what it leaves there.

    `released` has for each reach of a release, and its work-item, what the clocks knew."""
    reach, mine = _unit(clocks, scope), clocks.local.work
    if kind != "store":
        for (theirs, work), known in list(cell.released.items()):
            if _reaches(theirs, mine) and _reaches(reach, work):
                if order in _ACQUIRES:
                    _learn(clocks, known)
                else:
                    _add(clocks.seen, work, known)
    if kind == "load":
        return
    if kind == "store":
        cell.released = {}  # an update goes on with what was released before; a store does not
    if order in _RELEASES:
        _add(cell.released, (reach, mine), _release(clocks))
    elif clocks.fenced is not None:
        fence_reach, known = clocks.fenced
        _add(cell.released, (max(reach, fence_reach, key=len), mine), known)


def _reaches(unit, work):
    """Whether a work-item is among those whom a scope reaches."""
    return work[:len(unit)] == unit


def _learn(clocks, known):
    for clock, one in zip(clocks.both(), known):
        clock.learn(one)


def _release(clocks):
    return [clock.release() for clock in clocks.both()]


def _add(table, key, known):
    before = table.get(key)
    table[key] = known if before is None else [merged(one, other) for one, other in zip(before, known)]


def fence(clocks, order, scope):
    """atomic_fence(): later atomic operations release what came before, and what earlier ones have seen is acquired."""
    reach = _unit(clocks, scope)
    if order in _ACQUIRES:
        for work, known in clocks.seen.items():
            if _reaches(reach, work):
                _learn(clocks, known)
    if order in _RELEASES:
        clocks.fenced = reach, _release(clocks)
