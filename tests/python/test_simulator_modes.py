"""What the simulator finds: data races, memory that nobody has written, barriers to which not all come; and that it
finds nothing where there is nothing."""
import random
import traceback

import numpy
import pytest

from drupe import kernel_api as kapi
from drupe import simulator
from drupe.kernel_api import (AtomicRef, LocalAccessor, MemoryOrder, MemoryScope, NdRange, PrivateArray, Range,
                              atomic_fence, call_kernel, group_barrier)
from drupe.simulator import BarrierDivergenceError, DataRaceError, UninitializedMemoryError

pytest.importorskip("greenlet")

SEEDS = (None, 1, 2)
GROUP, DEVICE = MemoryScope.WORK_GROUP, MemoryScope.DEVICE
RELAXED, ACQUIRE, _, RELEASE, ACQ_REL, _ = MemoryOrder


def line_of(function, text):
    code = function.__code__
    with open(code.co_filename) as file:
        return next(number for number, line in enumerate(file, 1) if number >= code.co_firstlineno and text in line)


def local(n, dtype=int):
    return LocalAccessor(n, dtype)


# --- Kernels, with their fault (their `fault` is true) and without -------------------------------------------

def histogram(item, values, counts, fault):
    if fault:
        counts[values[item.get_id(0)]] += 1
    else:
        AtomicRef(counts, values[item.get_id(0)]).fetch_add(1)


def scan(item, a, part, fault):
    i, n, stride = item.get_local_id(0), item.get_local_range(0), 1
    part[i] = a[i]
    group_barrier(item.get_group())
    while stride < n:
        add = part[i - stride] if i >= stride else 0
        if not fault:
            group_barrier(item.get_group())
        part[i] += add
        group_barrier(item.get_group())
        stride *= 2
    a[i] = part[i]


def shift(item, a, fault):
    i = item.get_id(0)
    if fault or i == 0:
        a[i] = a[i - 1]


def two_groups(item, a, fault):
    """A barrier orders the work-items of one group only."""
    i = item.get_global_id(0)
    a[i] = i
    group_barrier(item.get_group())
    other = (i + 4 if fault else i ^ 1) % 8
    a[8 + i] = a[other]


def local_fence(item, a, fault):
    """barrier(CLK_LOCAL_MEM_FENCE) does not order global memory."""
    i = item.get_global_id(0)
    a[i] = i
    kapi.barrier(kapi.CLK_LOCAL_MEM_FENCE if fault else kapi.CLK_GLOBAL_MEM_FENCE)
    a[8 + i] = a[i ^ 1]


def sub_groups(item, part, fault):
    """A sub-group's barrier orders that sub-group."""
    i = item.get_local_id(0)
    part[i] = i
    group_barrier(item.get_sub_group())
    assert part[(i + 2) % 4 if fault else i ^ 1] >= -10**18


def plain_and_atomic(item, a, fault):
    AtomicRef(a, 0).fetch_add(1)
    if not fault:
        group_barrier(item.get_group())
    if item.get_local_id(0) == 1:
        a[1] = a[0]


def narrow_scope(item, a, fault):
    AtomicRef(a, 0, memory_scope=GROUP if fault else DEVICE).fetch_add(1)


def message(item, data, flag, fault):
    """Message passing: the flag is released and acquired."""
    i = item.get_global_id(0)
    if i == 0:
        data[0] = 42
        AtomicRef(flag, 0, RELAXED if fault else RELEASE).store(1)
    elif i == 7 and AtomicRef(flag, 0, ACQUIRE).load() == 1:
        data[1] = data[0]


def message_by_fences(item, data, flag, fault):
    i = item.get_global_id(0)
    if i == 0:
        data[0] = 42
        if not fault:
            atomic_fence(RELEASE, DEVICE)
        AtomicRef(flag, 0).store(1)
    elif i == 7 and AtomicRef(flag, 0).load() == 1:
        atomic_fence(ACQUIRE, DEVICE)
        data[1] = data[0]


def message_of_a_scope(item, data, flag, fault):
    """A release to the work-group is none to another group."""
    i = item.get_global_id(0)
    if i == 0:
        data[0] = 42
        atomic_fence(ACQ_REL, GROUP if fault else DEVICE)
        AtomicRef(flag, 0).fetch_add(1)
    elif i == 7 and AtomicRef(flag, 0, ACQ_REL).load() == 1:
        data[1] = data[0]


def last_group(item, a, partial, count, out, fault):
    """The last group to come adds what all have left: an update goes on with the releases before it."""
    i, group = item.get_local_id(0), item.get_group()
    if i == 0:
        partial[group.get_group_id(0)] = a[item.get_global_id(0)]
        before = AtomicRef(count, 0, RELAXED if fault else ACQ_REL).fetch_add(1)
        if before == group.get_group_range(0) - 1:
            out[0] = 0
            for k in range(group.get_group_range(0)):
                out[0] += partial[k]


def written_twice(item, a, fault):
    a[0 if fault else item.get_id(0)] = 7


def rows(item, a, fault):
    row = a[item.get_id(0) // (2 if fault else 1)]
    for k in range(len(row)):
        row[k] += 1


def whole_rows(item, a, fault):
    a[item.get_id(0) // (2 if fault else 1)] = 3


def aliases(item, a, b, fault):
    """The same memory under two names."""
    b[item.get_id(0)] = a[item.get_id(0) + (0 if fault else 9)]


def ints(*shape):
    return numpy.zeros(shape, int)


def _alias():
    memory = numpy.zeros(18, int)
    return memory, memory[1:9]


RACES = [(histogram, Range(8), lambda: (numpy.arange(8) % 3, ints(3)), "counts["),
         (scan, NdRange(8, 8), lambda: (ints(8), local(8)), "part["),
         (shift, Range(8), lambda: (ints(8),), "a["),
         (two_groups, NdRange(8, 4), lambda: (ints(16),), "a["),
         (local_fence, NdRange(8, 4), lambda: (ints(16),), "a["),
         (sub_groups, NdRange(8, 4), lambda: (local(4),), "part["),
         (plain_and_atomic, NdRange(4, 4), lambda: (ints(2),), "a[0]"),
         (narrow_scope, NdRange(8, 4), lambda: (ints(1),), "a[0]"),
         (message, NdRange(8, 4), lambda: (ints(2), ints(1)), "data[0]"),
         (message_by_fences, NdRange(8, 4), lambda: (ints(2), ints(1)), "data[0]"),
         (message_of_a_scope, NdRange(8, 4), lambda: (ints(2), ints(1)), "data[0]"),
         (last_group, NdRange(8, 2), lambda: (ints(8), ints(4), ints(1), ints(1)), "partial["),
         (written_twice, Range(8), lambda: (ints(8),), "a[0]"),
         (rows, Range(4), lambda: (ints(4, 3),), "a["),
         (whole_rows, Range(4), lambda: (ints(4, 3),), "a["),
         (aliases, Range(8), _alias, "[")]
ORDERED = (message, message_by_fences, message_of_a_scope)  # these meet only if the flag is set first


@pytest.mark.parametrize("kernel, space, args, element", RACES, ids=lambda value: getattr(value, "__name__", ""))
def test_races_are_found_and_nothing_else(kernel, space, args, element):
    for seed in SEEDS:
        call_kernel(kernel, space, *args(), False, races=True, seed=seed, sub_group_size=2)
        call_kernel(kernel, space, *args(), True, seed=seed, sub_group_size=2)  # nobody looks
        if seed is not None and kernel in ORDERED:
            continue
        with pytest.raises(DataRaceError) as caught:
            call_kernel(kernel, space, *args(), True, races=True, seed=seed, sub_group_size=2)
        assert str(caught.value).startswith("a data race on ") and element in str(caught.value).splitlines()[0]
        frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert frames[1:] == [kernel.__name__]


def test_both_sides_of_a_race_are_named():
    with pytest.raises(DataRaceError) as caught:
        call_kernel(scan, NdRange(8, 8), ints(8), local(8), True, races=True)
    first, second = caught.value.accesses
    assert (first.work_item, first.what, first.file, first.line) == (
        "work-item 0 (0 of group 0)", "writes", __file__, line_of(scan, "part[i] += add"))
    assert (second.work_item, second.what, second.line) == (
        "work-item 1 (1 of group 0)", "reads", line_of(scan, "add = part"))
    text = str(caught.value)
    assert "a data race on part[0], an element of local memory" in text
    assert "work-item 0 (0 of group 0) writes it in line %d:  part[i] += add" % first.line in text
    assert "work-item 1 (1 of group 0) reads it in line %d:  add = part[i - stride]" % second.line in text
    assert "Put group_barrier(item.get_group()) between the two" in text
    assert "work-item 1 (1 of group 0) of the kernel scan" in caught.value.__notes__[0]


@pytest.mark.parametrize("kernel, space, args, remedy", [
    (histogram, Range(8), lambda: (ints(8), ints(1)), "Work-items of a Range meet at no barrier"),
    (two_groups, NdRange(8, 4), lambda: (ints(16),), "Work-items of different groups meet at no barrier"),
    (narrow_scope, NdRange(8, 4), lambda: (ints(1),), "use MemoryScope.DEVICE")])
def test_the_remedy_fits(kernel, space, args, remedy):
    with pytest.raises(DataRaceError, match=remedy):
        call_kernel(kernel, space, *args(), True, races=True)


def test_races_of_arrays_of_devices(device):
    import drupe.array as da

    values, counts = da.arange(8, dtype="int64", device=device) % 3, da.zeros(3, dtype="int64", device=device)
    with pytest.raises(DataRaceError, match=r"counts\[0\]"):
        call_kernel(histogram, Range(8), values, counts, True, races=True)
    assert counts.tolist() == [1, 1, 1]  # until it was found
    call_kernel(histogram, Range(8), values, counts, False, races=True)
    assert counts.tolist() == [4, 4, 3]


def test_local_arrays_in_the_source_have_their_names():
    def kernel(a, fault):
        tile = kapi.local.array((2, 2), int)
        tile[0, 1 if fault else kapi.get_local_id(0)] = 1
    call_kernel(kernel, NdRange(4, 2), ints(1), False, races=True)
    with pytest.raises(DataRaceError, match=r"a data race on tile\[0, 1\], an element of local memory"):
        call_kernel(kernel, NdRange(4, 2), ints(1), True, races=True)


def test_watched_arrays_are_as_arrays():
    seen = []

    def kernel(item, a, part):
        seen.append((a.shape, a.ndim, a.size, a.dtype, len(a), a.itemsize, a.nbytes, a.T.shape, str(a), repr(a)))
        seen.append([float(x) for x in a[1]] + [a[1, -1], a[1][1:][0], a.T[0, 1]])
        part[...] = a[0]
        a[1, 1:] = part[1:]
        a[0, 0] = numpy.asarray(part).sum()
    a = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    expected = (a.shape, 2, 6, a.dtype, 2, 4, 24, (3, 2), str(a), repr(a))
    call_kernel(kernel, NdRange(1, 1), a, local(3, float), races=True, uninitialized=True)
    assert seen == [expected, [3, 4, 5, 5, 4, 3]] and a.tolist() == [[3, 1, 2], [3, 1, 2]]


# --- Against a plain search ----------------------------------------------------------------------------------

class Step:
    """What a work-item does: accesses of elements, then a barrier of its group or of its sub-group, or none."""

    def __init__(self, rng, elements):
        self.accesses = {}  # lane → [(element, what)]
        for lane in range(8):
            if rng.random() < 0.5:
                self.accesses[lane] = [(rng.randrange(elements), rng.choice(("read", "read", "write", "atomic")))]
        self.barrier = rng.choice(("group", "sub"))


def perform(item, a, steps):
    me = item.get_global_id(0)
    for step in steps:
        for element, what in step.accesses.get(me, ()):
            if what == "read":
                a[element]
            elif what == "write":
                a[element] = 1
            else:
                AtomicRef(a, element).fetch_add(1)
        group_barrier(item.get_group() if step.barrier == "group" else item.get_sub_group())


def has_race(steps):
    """By trying all pairs: those of one group are ordered by a group's barrier between them, those of one sub-group by
    any."""
    done = [(lane, at, element, what) for at, step in enumerate(steps) for lane, accesses in step.accesses.items()
            for element, what in accesses]
    for one, first, element, what in done:
        for other, second, same, how in done:
            if one >= other or element != same or "write" not in (what, how) and (
                    what == how or "atomic" not in (what, how)):
                continue
            between = [step.barrier for step in steps[min(first, second):max(first, second)]]
            ordered = one // 4 == other // 4 and ("group" in between or (between and one // 2 == other // 2))
            if not ordered:
                return True
    return False


def test_random_programs():
    rng, found = random.Random(17), [0, 0]
    for _ in range(400):
        steps = [Step(rng, rng.choice((3, 30, 60))) for _ in range(rng.randrange(1, 6))]
        expected = has_race(steps)
        found[expected] += 1
        try:
            call_kernel(perform, NdRange(8, 4), ints(60), tuple(steps), races=True, seed=rng.randrange(9),
                        sub_group_size=2)
        except DataRaceError:
            assert expected, [(step.accesses, step.barrier) for step in steps]
        else:
            assert not expected, [(step.accesses, step.barrier) for step in steps]
    assert min(found) > 50  # both kinds were tried


# --- Memory that nobody has written --------------------------------------------------------------------------

def fills_local(item, part, fault):
    i = item.get_local_id(0)
    if not fault or i != 2:
        part[i] = 1
    group_barrier(item.get_group())
    assert part[(i + 1) % 4] == 1 or fault


def fills_private(item, part, fault):
    own = PrivateArray((2, 2), numpy.float32, fill_zeros=item.get_local_id(0) > 2)
    if not fault:
        own[1] = 2
    own[1, 1] += 1


def adds_atomically(item, part, fault):
    if not fault and item.get_local_id(0) == 0:
        AtomicRef(part, 0).store(0)
    group_barrier(item.get_group())
    AtomicRef(part, 0).fetch_add(1)


@pytest.mark.parametrize("kernel, element", [(fills_local, "part[2]"), (fills_private, "own[1, 1]"),
                                             (adds_atomically, "part[0]")])
@pytest.mark.parametrize("races", [False, True])
def test_memory_that_nobody_has_written(kernel, element, races):
    for seed in SEEDS:
        call_kernel(kernel, NdRange(8, 4), local(4, float), False, uninitialized=True, races=races, seed=seed)
        call_kernel(kernel, NdRange(8, 4), local(4, float), True, seed=seed)  # nobody looks
        with pytest.raises(UninitializedMemoryError) as caught:
            call_kernel(kernel, NdRange(8, 4), local(4, float), True, uninitialized=True, races=races, seed=seed)
        kind = "private" if kernel is fills_private else "local"
        assert str(caught.value).startswith("%s is read, and nobody has written it: %s memory" % (element, kind))
        assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:] == [kernel.__name__]


def test_what_a_group_has_written_is_not_of_the_next_one():
    def kernel(item, part):
        if item.get_group().get_group_id(0) == 0:
            part[0] = 1
        return part[0]
    with pytest.raises(UninitializedMemoryError) as caught:
        call_kernel(kernel, NdRange(2, 1), local(1), uninitialized=True)
    assert "work-item 1 (0 of group 1)" in caught.value.__notes__[0]


# --- Barriers to which not all come --------------------------------------------------------------------------

def diverging(item, how):
    i = item.get_local_id(0)
    if how == "ended" and i >= 2:
        return
    if how == "branches":
        if i < 2:
            group_barrier(item.get_group())
        else:
            group_barrier(item.get_group())  # another one
    if how == "kinds" and i < 2:
        group_barrier(item.get_sub_group())
    if how == "functions" and i == 3:
        kapi.reduce_over_group(item.get_group(), i, "add")
    for _ in range(i if how == "loop" else 1):
        group_barrier(item.get_group())  # the main one


@pytest.mark.parametrize("how, parts", [
    ("ended", ["work-items 0, 1 wait at group_barrier() in line {main}", "work-items 2, 3 have ended"]),
    ("branches", ["work-items 2, 3 wait at group_barrier() in line {another}", "work-items 0, 1 wait at"]),
    ("kinds", ["work-items 0, 1 wait at group_barrier() of a sub-group",
               "work-items 2, 3 wait at group_barrier() in line"]),
    ("functions", ["work-items 0, 1, 2 wait at group_barrier() in line {main}",
                   "work-item 3 waits at reduce_over_group()"]),
    ("loop", ["work-items 1, 2, 3 wait at group_barrier() in line {main}", "work-item 0 has ended"])])
@pytest.mark.parametrize("seed", SEEDS)
def test_barriers_to_which_not_all_come(how, parts, seed):
    lines = {"main": line_of(diverging, "# the main one"), "another": line_of(diverging, "# another one")}
    with pytest.raises(BarrierDivergenceError) as caught:
        call_kernel(diverging, NdRange(8, 4), how, seed=seed)
    text = str(caught.value)
    assert "work-items of group %s do not come to the same barrier" % ("0" if seed is None else "") in text or seed
    assert "put it outside of the `if`" in text
    for part in parts:
        assert part.format(**lines) in text, text
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:] == ["diverging"]
    call_kernel(diverging, NdRange(8, 4), "all", seed=seed)


def test_a_barrier_in_one_function_called_from_two_places():
    def meet(item):
        group_barrier(item.get_group())

    def kernel(item, fault):
        if fault and item.get_local_id(0) == 1:
            meet(item)
        else:
            meet(item)
    call_kernel(kernel, NdRange(4, 4), False)
    with pytest.raises(BarrierDivergenceError, match="work-items 0, 2, 3 wait"):
        call_kernel(kernel, NdRange(4, 4), True)
    with pytest.raises(BarrierDivergenceError, match="work-item 1 waits at .* in line %d, called in line %d:" % (
            line_of(meet, "group_barrier"), line_of(kernel, "meet(item)"))):
        call_kernel(kernel, NdRange(4, 4), True)


def test_many_work_items_are_counted():
    def kernel(item):
        if item.get_local_id(0) < 20:
            group_barrier(item.get_group())
    with pytest.raises(BarrierDivergenceError, match=r"work-items 0, 1, 2, 3, 4, 5, 6, 7, ... \(20 of them\) wait"):
        call_kernel(kernel, NdRange(64, 64))


def test_errors_are_of_one_kind():
    for kind in (DataRaceError, BarrierDivergenceError, UninitializedMemoryError):
        assert issubclass(kind, simulator.SimulatorError) and issubclass(kind, RuntimeError)
        assert kind.__module__ == "drupe.simulator"
