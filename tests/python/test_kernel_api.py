"""What kernels are written with, as the simulator runs it: every name, and what it says outside of a kernel."""
import doctest
import inspect
import math
import operator
import pickle

import numpy
import pytest

import drupe
from drupe import kernel_api as kapi
from drupe.kernel_api import (AddressSpace, AtomicRef, Group, Item, LocalAccessor, MemoryOrder, MemoryScope, NdItem,
                              NdRange, PrivateArray, Range, SubGroup, call_kernel)

# The checklist of numba_dpex.kernel_api: names, and of classes what they have.
CHECKLIST = {
    "call_kernel": "", "group_barrier": "", "atomic_fence": "",
    "Range": "get size ndim dim0 dim1 dim2",
    "NdRange": "global_range local_range get_global_range get_local_range __eq__",
    "Item": "get_id get_linear_id get_range get_linear_range dimensions",
    "NdItem": "get_global_id get_global_linear_id get_local_id get_local_linear_id get_global_range get_local_range "
              "get_global_linear_range get_local_linear_range get_group dimensions get_sub_group",
    "Group": "get_group_id get_group_linear_id get_group_range get_group_linear_range get_local_range "
             "get_local_linear_range leader dimensions",
    "LocalAccessor": "__getitem__ __setitem__ shape dtype ndim size", "PrivateArray": "",
    "AtomicRef": "fetch_add fetch_sub fetch_min fetch_max fetch_and fetch_or fetch_xor load store exchange "
                 "compare_exchange ref memory_order memory_scope address_space",
    "SubGroup": "get_local_id get_local_linear_id get_local_range get_local_linear_range get_max_local_range "
                "get_group_id get_group_linear_id get_group_range get_group_linear_range leader dimensions",
    "MemoryOrder": "RELAXED ACQUIRE CONSUME_UNSUPPORTED RELEASE ACQ_REL SEQ_CST",
    "MemoryScope": "WORK_ITEM SUB_GROUP WORK_GROUP DEVICE SYSTEM",
    "AddressSpace": "PRIVATE GLOBAL CONSTANT LOCAL GENERIC",
    "group_broadcast": "", "shift_group_left": "", "shift_group_right": "", "permute_group_by_xor": "",
    "select_from_group": "", "reduce_over_group": "", "exclusive_scan_over_group": "", "inclusive_scan_over_group": "",
    "any_of_group": "", "all_of_group": "",
    "get_global_id": "", "get_local_id": "", "get_group_id": "", "get_global_size": "", "get_local_size": "",
    "get_num_groups": "", "barrier": "", "CLK_LOCAL_MEM_FENCE": "", "CLK_GLOBAL_MEM_FENCE": "",
    "DEFAULT_LOCAL_SIZE": "",
    "local": "array", "private": "array", "atomic": "add sub min max exch cas",
}


def ask(space, *functions):
    """What functions of the item give, of each work-item: a list for each."""
    found = [[] for _ in functions]

    def kernel(item):
        for function, values in zip(functions, found):
            values.append(function(item))
    call_kernel(kernel, space)
    return found[0] if len(found) == 1 else found


# --- Names ---------------------------------------------------------------------------------------------------

def test_the_checklist_is_there():
    assert set(CHECKLIST) == set(kapi.__all__)
    for name, members in CHECKLIST.items():
        for member in members.split():
            assert hasattr(getattr(kapi, name), member), (name, member)


@pytest.mark.parametrize("name", [name for name in CHECKLIST if callable(getattr(kapi, name))])
def test_every_name_has_a_text_and_an_example(name):
    thing = getattr(kapi, name)
    parts = CHECKLIST[name].split() if name in ("local", "private", "atomic") else ()
    for text in [inspect.getdoc(getattr(thing, member)) for member in parts] or [inspect.getdoc(thing)]:
        assert name in text.partition("\n\n")[2], text
    text = inspect.getdoc(thing)
    for line in text.splitlines():
        assert len(line) <= 120
    example = doctest.DocTestParser().get_doctest(text, {**vars(kapi), "numpy": numpy}, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example)
    assert runner.failures == 0
    for member in CHECKLIST[name].split():
        one = getattr(thing, member)
        assert member.startswith("__") or not callable(one) or one.__doc__, (name, member)


def test_numbers_of_enumerations():
    assert [int(one) for one in MemoryOrder] == [0, 1, 2, 3, 4, 5]
    assert [int(one) for one in MemoryScope] == [int(one) for one in AddressSpace] == [0, 1, 2, 3, 4]
    assert MemoryOrder.SEQ_CST == 5 and MemoryScope.DEVICE == 3 and AddressSpace.LOCAL == 3


def test_outside_of_a_kernel():
    group, array = Group(Range(4), Range(2), Range(2), (0,)), numpy.zeros(3)
    for call in (lambda: kapi.get_global_id(0), lambda: kapi.get_local_size(0), lambda: kapi.barrier(),
                 lambda: kapi.group_barrier(group), lambda: AtomicRef(array, 0), lambda: PrivateArray(3, float),
                 lambda: kapi.local.array(3, float), lambda: kapi.private.array(3, float),
                 lambda: kapi.atomic.add(array, 0, 1), lambda: kapi.reduce_over_group(group, 1, "add"),
                 lambda: kapi.atomic_fence(MemoryOrder.ACQ_REL, MemoryScope.DEVICE)):
        with pytest.raises(RuntimeError, match="is used inside a kernel, which call_kernel"):
            call()
    with pytest.raises(TypeError, match="has elements inside of a kernel only"):
        LocalAccessor(3, float)[0]
    with pytest.raises(TypeError, match="takes a group, from item.get_group"):
        kapi.group_barrier(3)


# --- Ranges --------------------------------------------------------------------------------------------------

def test_ranges():
    one, three = Range(5), Range(2, 3, 4)
    assert isinstance(three, tuple) and three == (2, 3, 4) and three.size() == 24 and three.get(1) == 3
    assert (three.ndim, three.dim0, three.dim1, three.dim2) == (3, 2, 3, 4)
    assert (one.ndim, one.dim0, one.dim1, one.dim2) == (1, 5, -1, -1)
    assert repr(three) == "Range(2, 3, 4)" and repr(one) == "Range(5)" and Range(0).size() == 0
    assert pickle.loads(pickle.dumps(three)) == three and hash(one) == hash(Range(5))
    for wrong, error in (((2.5,), TypeError), ((-1,), ValueError), ((), TypeError), ((1, 2, 3, 4), TypeError),
                         ((2**40, 2**40), OverflowError)):
        with pytest.raises(error):
            Range(*wrong)


def test_nd_ranges():
    ndrange = NdRange(Range(8, 6), (4, 3))
    assert ndrange.global_range == ndrange.get_global_range() == (8, 6) and isinstance(ndrange.local_range, Range)
    assert ndrange.local_range == ndrange.get_local_range() == (4, 3)
    assert ndrange == NdRange((8, 6), (4, 3)) and ndrange != NdRange((8, 6), (4, 2)) and ndrange != 3
    assert hash(ndrange) == hash(NdRange((8, 6), (4, 3))) and pickle.loads(pickle.dumps(ndrange)) == ndrange
    assert NdRange(8, 4).global_range == (8,) and "NdRange" in repr(ndrange)
    with pytest.raises(ValueError, match="does not divide global_size, 10; round that up to 12"):
        NdRange(10, 4)
    with pytest.raises(ValueError, match="dimension"):
        NdRange((8, 8), 4)
    with pytest.raises(ValueError, match="local_size is 0"):
        NdRange(8, 0)


# --- Where a work-item is ------------------------------------------------------------------------------------

def test_items_the_last_dimension_runs_fastest():
    ids, linear, ranges = ask(Range(2, 3), lambda item: (item.get_id(0), item.get_id(1)), Item.get_linear_id,
                              lambda item: (item.get_range(0), item.get_range(1), item.get_linear_range(),
                                            item.dimensions))
    assert ids == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] and linear == list(range(6))
    assert set(ranges) == {(2, 3, 6, 2)}


def test_nd_items_and_groups():
    space = NdRange((4, 6), (2, 3))
    found = {}

    def kernel(item):
        group = item.get_group()
        place = item.get_global_id(0), item.get_global_id(1)
        found[place] = (item.get_global_linear_id(), item.get_local_id(0), item.get_local_id(1),
                        item.get_local_linear_id(), group.get_group_id(0), group.get_group_id(1),
                        group.get_group_linear_id(), group.leader)
        assert (item.get_global_range(0), item.get_global_range(1), item.get_global_linear_range()) == (4, 6, 24)
        assert (item.get_local_range(0), item.get_local_range(1), item.get_local_linear_range()) == (2, 3, 6)
        assert (group.get_group_range(0), group.get_group_range(1), group.get_group_linear_range()) == (2, 2, 4)
        assert (group.get_local_range(0), group.get_local_range(1), group.get_local_linear_range()) == (2, 3, 6)
        assert item.dimensions == group.dimensions == 2
    call_kernel(kernel, space)
    assert found == {(i, j): (i * 6 + j, i % 2, j % 3, i % 2 * 3 + j % 3, i // 2, j // 3, i // 2 * 2 + j // 3,
                              (i % 2, j % 3) == (0, 0)) for i in range(4) for j in range(6)}


def test_places_that_are_made_by_hand():
    group = Group(Range(8), Range(4), Range(2), [1])
    item = NdItem(Item(Range(8), [6]), Item(Range(4), [2]), group)
    assert item.get_local_linear_id() == 2 and item.get_global_linear_id() == 6 and not group.leader
    group.leader = True
    assert group.leader and item.get_sub_group().get_local_id() == 2
    assert repr(item) == "<NdItem 6, 2 of group 1>" and repr(group) == "<Group 1 of 2>"
    assert repr(Item(Range(4, 5), (2, 3))) == "<Item (2, 3) of (4, 5)>"
    assert repr(SubGroup(5, 8, 4)) == "<SubGroup 1 of 2>"


def test_a_wrong_method_or_dimension_is_explained():
    with pytest.raises(AttributeError, match="launched over a Range gets an Item, which has no get_group"):
        ask(Range(3), lambda item: item.get_group())
    with pytest.raises(AttributeError, match="no get_id: it has get_global_id"):
        ask(NdRange(4, 2), lambda item: item.get_id(0))
    with pytest.raises(AttributeError, match="an Item has no attribute 'nonsense'"):
        ask(Range(3), lambda item: item.nonsense)
    with pytest.raises(IndexError, match=r"get_id\(1\): the kernel runs over 1 dimension, which count from 0"):
        ask(Range(3), lambda item: item.get_id(1))
    with pytest.raises(IndexError, match=r"get_local_range\(2\): the kernel runs over 2 dimensions"):
        ask(NdRange((4, 4), (2, 2)), lambda item: item.get_local_range(2))


def test_the_older_spelling():
    out = numpy.zeros((6, 8), int)

    def kernel(out):
        place = [kapi.get_global_id(0), kapi.get_local_id(0), kapi.get_group_id(0), kapi.get_global_size(0),
                 kapi.get_local_size(0), kapi.get_num_groups(0)]
        for k in range(6):
            out[k, place[0]] = place[k]
    call_kernel(kernel, NdRange(8, 4), out)
    assert out.tolist() == [list(range(8)), [0, 1, 2, 3] * 2, [0] * 4 + [1] * 4, [8] * 8, [4] * 8, [2] * 8]

    def flat(a):
        a[kapi.get_global_id(0)] = kapi.get_global_size(0)
    a = numpy.zeros(3, int)
    call_kernel(flat, Range(3), a)
    assert a.tolist() == [3, 3, 3]
    for function in (kapi.get_local_id, kapi.get_group_id, kapi.get_local_size, kapi.get_num_groups):
        with pytest.raises(TypeError, match="needs work-groups, and this kernel is launched over a Range"):
            call_kernel(lambda a: function(0), Range(3), a)
    with pytest.raises(TypeError, match="needs work-groups"):
        call_kernel(lambda a: kapi.barrier(), Range(3), a)


# --- Memory --------------------------------------------------------------------------------------------------

def test_local_accessors():
    part = LocalAccessor((8, 4), numpy.float32)
    assert (part.shape, part.dtype, part.ndim, part.size, part._nbytes) == ((8, 4), numpy.float32, 2, 32, 128)
    assert LocalAccessor(3, "int16").shape == (3,) and LocalAccessor(3, drupe.array.int16)._nbytes == 6
    assert LocalAccessor((), float).size == 1
    with pytest.raises(ValueError, match="no negative sizes"):
        LocalAccessor(-3, float)
    with pytest.raises(TypeError):
        LocalAccessor(2.5, float)

    def kernel(item, a, part):
        i = item.get_local_id(0)
        part[i] = a[item.get_global_id(0)]
        kapi.group_barrier(item.get_group())
        a[item.get_global_id(0)] = part[part.size - 1 - i] + len(part) - part.shape[0]
    a = numpy.arange(12)
    call_kernel(kernel, NdRange(12, 4), a, LocalAccessor(4, int))
    assert a.tolist() == [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8]
    with pytest.raises(TypeError, match="part is a LocalAccessor.*launched over a Range: launch it over an NdRange"):
        call_kernel(kernel, Range(12), a, LocalAccessor(4, int))


def test_local_arrays_are_shared_by_place_in_the_source():
    def kernel(a):
        i = kapi.get_local_id(0)
        part, other = kapi.local.array(4, numpy.int64), kapi.local.array((2, 2), numpy.int64)
        part[i] = a[kapi.get_global_id(0)]
        other[i // 2, i % 2] = 100
        kapi.barrier(kapi.CLK_LOCAL_MEM_FENCE)
        a[kapi.get_global_id(0)] = part[3 - i] + other[1, 1]
    a = numpy.arange(8)
    call_kernel(kernel, NdRange(8, 4), a)
    assert a.tolist() == [103, 102, 101, 100, 107, 106, 105, 104]
    with pytest.raises(TypeError, match="local.array.. needs work-groups"):
        call_kernel(lambda a: kapi.local.array(3, float), Range(3), a)


@pytest.mark.parametrize("make", [PrivateArray, kapi.private.array])
def test_private_arrays_belong_to_one_work_item(make):
    seen = []

    def kernel(item, a):
        i = item.get_global_id(0)
        own = make((2, 3), numpy.int32)
        seen.append(own[1, 2])
        own[1, 2] = i
        kapi.group_barrier(item.get_group())
        a[i] = own[1, 2] + own[1][2] + own.ndim
    a = numpy.zeros(4, int)
    call_kernel(kernel, NdRange(4, 4), a)
    assert a.tolist() == [2, 4, 6, 8] and set(seen) == {numpy.int32(0xCDCDCDCD - 2**32)}


def test_private_arrays_of_zeros_and_without_values():
    def kernel(item, out):
        assert math.isnan(PrivateArray(2, float)[0]) and numpy.isnan(PrivateArray(2, "complex64")[1].imag)
        assert PrivateArray(2, dtype=numpy.uint8)[0] == 0xCD and PrivateArray(1, bool)[0] and PrivateArray((), int).size
        out[item.get_id(0)] = PrivateArray(3, float, fill_zeros=True)[2]
    out = numpy.ones(2)
    call_kernel(kernel, Range(2), out)
    assert out.tolist() == [0, 0]


# --- Atomics -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("method, given, before, after", [
    ("fetch_add", 3, 5, 8), ("fetch_sub", 3, 5, 2), ("fetch_min", 3, 5, 3), ("fetch_min", 9, 5, 5),
    ("fetch_max", 9, 5, 9), ("fetch_max", 3, 5, 5), ("fetch_and", 6, 5, 4), ("fetch_or", 6, 5, 7),
    ("fetch_xor", 6, 5, 3), ("exchange", 7, 5, 7), ("store", 7, None, 7), ("load", None, 5, 5)])
@pytest.mark.parametrize("races", [False, True])
def test_operations_of_atomic_refs(method, given, before, after, races):
    found = []

    def kernel(item, a):
        ref = AtomicRef(a, (1, 2))
        found.append(getattr(ref, method)(*(() if given is None else (given,))))
        found.append(ref.ref)
    a = numpy.full((2, 3), 5, numpy.int32)
    call_kernel(kernel, Range(1), a, races=races)
    assert found == [before, after] and a[1, 2] == after and a.sum() == 25 + after


def test_integers_of_atomics_wrap_and_keep_their_type():
    found = []

    def kernel(item, a):
        found.append(AtomicRef(a, 0).fetch_add(2.0))
    a = numpy.array([2**31 - 1], numpy.int32)
    call_kernel(kernel, Range(1), a)
    assert a[0] == -2**31 + 1 and type(found[0]) is numpy.int32


@pytest.mark.parametrize("races", [False, True])
def test_compare_exchange(races):
    def kernel(item, a, expected, done):
        i = item.get_id(0)
        done[i] = AtomicRef(a, 0).compare_exchange(expected[i], 10 + i, 1)
    a, expected, done = numpy.array([4]), numpy.array([[0, 4], [0, 4]]), numpy.zeros(2, bool)
    call_kernel(kernel, Range(2), a, expected, done, races=races)
    assert a[0] == 10 and done.tolist() == [True, False] and expected.tolist() == [[0, 4], [0, 10]]


def test_what_an_atomic_ref_is_of():
    seen = []

    def kernel(item, a, part):
        for array in (a, part):
            ref = AtomicRef(array, 1, MemoryOrder.ACQ_REL, memory_scope=MemoryScope.WORK_GROUP)
            seen.append((ref.memory_order, ref.memory_scope, ref.address_space))
        seen.append(AtomicRef(a, 0, address_space=AddressSpace.GLOBAL).address_space)
    call_kernel(kernel, NdRange(1, 1), numpy.zeros(3), LocalAccessor(2, float), races=True)
    assert seen == [(4, 2, AddressSpace.GLOBAL), (4, 2, AddressSpace.LOCAL), AddressSpace.GLOBAL]


@pytest.mark.parametrize("use, error, message", [
    (lambda a: AtomicRef(a, 3), IndexError, r"a\[3\] is out of bounds: a has the shape \(3,\)"),
    (lambda a: AtomicRef(a, (0, 0)), TypeError, "an index for each of its dimensions"),
    (lambda a: AtomicRef(3, 0), TypeError, "one element of an array"),
    (lambda a: AtomicRef(a, 0).fetch_and(1), TypeError, "takes integers, and the elements are float64"),
    (lambda a: AtomicRef(a, 0, MemoryOrder.CONSUME_UNSUPPORTED), ValueError, "use MemoryOrder.ACQUIRE"),
    (lambda a: AtomicRef(a, 0, 17), ValueError, "memory_order is a MemoryOrder, not 17"),
    (lambda a: AtomicRef(a, 0, 0, "all"), ValueError, "memory_scope is a MemoryScope, not 'all'")])
def test_what_atomics_refuse(use, error, message):
    with pytest.raises(error, match=message):
        call_kernel(lambda item, a: use(a) and None, Range(1), numpy.zeros(3))


def test_atomics_of_the_older_spelling():
    found = []

    def kernel(a):
        for name, value in (("add", 3), ("sub", 1), ("max", 9), ("min", 2), ("exch", 6)):
            found.append(getattr(kapi.atomic, name)(a, (0, 1), value))
        found.append(kapi.atomic.cas(a, (0, 1), 6, 8))
        found.append(kapi.atomic.cas(a, (0, 1), 6, 1))
    a = numpy.full((1, 2), 5)
    call_kernel(kernel, Range(1), a)
    assert found == [5, 8, 7, 9, 2, 6, 8] and a.tolist() == [[5, 8]]


# --- Groups together -----------------------------------------------------------------------------------------

def together(function, count=8, local=8, sub=4, dtype=int, whole=False, **options):
    """What function(group, number) gives each work-item."""
    out = numpy.zeros(count, dtype)

    def kernel(item, out):
        group = item.get_group() if whole else item.get_sub_group()
        out[item.get_global_id(0)] = function(group, item.get_global_id(0))
    call_kernel(kernel, NdRange(count, local), out, sub_group_size=sub, **options)
    return out.tolist()


def test_sub_groups():
    def asked(*methods):
        return [together(lambda group, i: getattr(group, method)(), count=12, local=6) for method in methods]
    lanes, ranges, numbers, most, counts = asked("get_local_id", "get_local_range", "get_group_id",
                                                 "get_max_local_range", "get_group_range")
    assert lanes == [0, 1, 2, 3, 0, 1] * 2 and ranges == [4, 4, 4, 4, 2, 2] * 2 and numbers == [0, 0, 0, 0, 1, 1] * 2
    assert most == [4] * 12 and counts == [2] * 12
    assert asked("get_local_linear_id", "get_local_linear_range", "get_group_linear_id", "get_group_linear_range") == [
        lanes, ranges, numbers, counts]
    assert together(lambda group, i: group.leader and group.dimensions) == [1, 0, 0, 0, 1, 0, 0, 0]
    assert together(lambda group, i: group.get_local_range(0), sub=32) == [8] * 8


FUNCTIONS = [
    (lambda group, i: kapi.group_broadcast(group, i, 2), [2, 2, 2, 2, 6, 6, 6, 6]),
    (lambda group, i: kapi.group_broadcast(group, i), [0, 0, 0, 0, 4, 4, 4, 4]),
    (lambda group, i: kapi.select_from_group(group, i, (i + 1) % 4), [1, 2, 3, 0, 5, 6, 7, 4]),
    (lambda group, i: kapi.shift_group_left(group, i), [1, 2, 3, 3, 5, 6, 7, 7]),
    (lambda group, i: kapi.shift_group_left(group, i, 2), [2, 3, 2, 3, 6, 7, 6, 7]),
    (lambda group, i: kapi.shift_group_right(group, i, 1), [0, 0, 1, 2, 4, 4, 5, 6]),
    (lambda group, i: kapi.permute_group_by_xor(group, i, 3), [3, 2, 1, 0, 7, 6, 5, 4]),
    (lambda group, i: kapi.reduce_over_group(group, i, "add"), [6] * 4 + [22] * 4),
    (lambda group, i: kapi.reduce_over_group(group, i), [6] * 4 + [22] * 4),
    (lambda group, i: kapi.reduce_over_group(group, i, min), [0] * 4 + [4] * 4),
    (lambda group, i: kapi.reduce_over_group(group, i, numpy.maximum), [3] * 4 + [7] * 4),
    (lambda group, i: kapi.inclusive_scan_over_group(group, i, "plus"), [0, 1, 3, 6, 4, 9, 15, 22]),
    (lambda group, i: kapi.exclusive_scan_over_group(group, i, operator.add), [0, 0, 1, 3, 0, 4, 9, 15]),
    (lambda group, i: kapi.inclusive_scan_over_group(group, 7 - i, "min"), [7, 6, 5, 4, 3, 2, 1, 0]),
    (lambda group, i: kapi.exclusive_scan_over_group(group, i, "max") > i - 2, [0, 1, 1, 1, 0, 1, 1, 1]),
    (lambda group, i: kapi.any_of_group(group, i == 5), [0, 0, 0, 0, 1, 1, 1, 1]),
    (lambda group, i: kapi.all_of_group(group, i < 5), [1, 1, 1, 1, 0, 0, 0, 0]),
]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
@pytest.mark.parametrize("how", ["sub-groups", "groups", "shuffled"])
def test_functions_of_groups(number, how):
    """A work-group of four does what a sub-group of four does."""
    function, expected = FUNCTIONS[number]
    options = {"groups": {"local": 4, "whole": True}, "shuffled": {"seed": 7}}.get(how, {})
    assert together(function, **options) == expected


def test_values_keep_their_type():
    seen = []

    def kernel(item, a):
        x = a[item.get_local_id(0)]
        for value in (kapi.reduce_over_group(item.get_group(), x), kapi.exclusive_scan_over_group(item.get_group(), x),
                      kapi.group_broadcast(item.get_group(), x)):
            seen.append(type(value))
    call_kernel(kernel, NdRange(2, 2), numpy.ones(2, numpy.float32))
    assert set(seen) == {numpy.float32}


@pytest.mark.parametrize("op, dtype, first", [
    ("min", numpy.uint8, 255), ("max", numpy.int16, -2**15), ("add", float, 0), ("max", numpy.float32, -math.inf),
    ("min", float, math.inf)])
def test_the_first_of_an_exclusive_scan(op, dtype, first):
    out = numpy.ones(4, dtype)

    def kernel(item, out):
        i = item.get_local_id(0)
        out[i] = kapi.exclusive_scan_over_group(item.get_group(), out[i], op)
    call_kernel(kernel, NdRange(4, 4), out)
    assert out[0] == first


def test_a_number_that_is_not_one_wins():
    assert numpy.isnan(together(lambda group, i: kapi.reduce_over_group(group, math.nan if i == 3 else i, "max"),
                                dtype=float)[:4]).all()


def test_what_functions_of_groups_refuse():
    with pytest.raises(ValueError, match='the operation of reduce_over_group.. is "add", "min" or "max", not \'mul\''):
        together(lambda group, i: kapi.reduce_over_group(group, i, "mul"))
    with pytest.raises(IndexError, match="the group has 4 work-items, and none has the number 9"):
        together(lambda group, i: kapi.select_from_group(group, i, 9))
    other = Group(Range(8), Range(8), Range(1), (0,))
    with pytest.raises(ValueError, match="the group of the work-item that calls it"):
        together(lambda group, i: kapi.group_barrier(other))
    with pytest.raises(ValueError, match="the group of the work-item"):
        ask(Range(3), lambda item: kapi.group_barrier(other))


def test_a_barrier_of_sub_groups():
    """Each sub-group goes through its own three barriers, however far the others are."""
    order = []

    def kernel(item):
        sub = item.get_sub_group()
        for step in range(3 if sub.get_group_id() == 0 else 1):
            kapi.group_barrier(sub, MemoryScope.SUB_GROUP)
            order.append((sub.get_group_id(), step, sub.get_local_id()))
        kapi.group_barrier(item.get_group())
        assert len(order) == 8
    call_kernel(kernel, NdRange(4, 4), sub_group_size=2)
    for group, steps in ((0, 3), (1, 1)):
        assert [one[1] for one in order if one[0] == group] == [step for step in range(steps) for _ in range(2)]
