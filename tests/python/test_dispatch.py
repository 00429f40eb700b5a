"""Calls of kernels in Python, the part that is C: which kernel serves a call."""
import sys

import numpy as np
import pytest
from dispatching import ADD, Kernel, Other, Pair, better, call, floats, program, programs  # noqa: F401

import drupe
import drupe.array as da
from drupe import NdRange, Range, _engine


# --- Calls ------------------------------------------------------------------------------------------------------------

def test_the_first_call_is_slow(program, queue):
    kernel = Kernel(program.add, ADD)
    a, b, c = floats(queue, 1, 2, 3), floats(queue, 10, 20, 30), floats(queue, 0, 0, 0)
    assert not call(kernel, Range(3), a, b, c)
    assert c.tolist() == [11, 22, 33]
    assert kernel.misses == [(Range(3), None, (a, b, c))]
    assert call(kernel, Range(2), c, b, a)  # the sizes of arrays and spaces do not matter
    assert a.tolist() == [21, 42, 3]
    both = _engine._call_kernel_async(kernel, Range(3), [], a, b, c)
    assert type(both) is tuple and both[0] is both[1] and type(both[0]) is drupe.Event
    both[1].wait()
    assert c.tolist() == [31, 62, 33]
    event = kernel._launcher(Range(3), None, (c, c, a))
    event.wait()
    assert a.tolist() == [62, 124, 66] and len(kernel.misses) == 1
    assert event.queue == queue


def test_what_is_told_of_entries(program, queue):
    kernel = Kernel(program.add, ADD, watched=(), grain=5)
    a = floats(queue, 1, 2)
    call(kernel, Range(2), a, a, a)
    one, = kernel._launcher.entries
    assert one["kernel"] is program.add and one["plan"] == ADD and one["form"] == "range" and one["grain"] == 5
    assert one["signature"] == (("array", "float32", 1, "contiguous"),) * 3 and one["device"] == queue.device
    assert (one["space"], one["dims"], one["watched"], one["local"]) == ("Range", 1, (), None)
    one["kernel"] = None
    assert kernel._launcher.entries[0]["kernel"] is program.add
    assert kernel._launcher.owner is kernel and kernel._launcher.slow == kernel.slow
    kernel._launcher.clear()
    assert kernel._launcher.entries == [] and not call(kernel, Range(2), a, a, a)


def test_where_work_comes_from(program, queue):
    kernel = Kernel(program.add, ADD)
    a = floats(queue, 1, 2)
    call(kernel, Range(2), a, a, a)
    line = sys._getframe().f_lineno + 1
    event = _engine._call_kernel_async(kernel, Range(2), [], a, a, a)[1]
    event.wait()
    record = [one for one in drupe.trace() if one["queue"] == queue.number][-1]
    assert record["label"] == "add" and record["operation"] == "kernel"
    assert record["file"] == __file__ and record["line"] == line


@pytest.mark.parametrize("function, args, text", [
    ("_call_kernel", (), "takes a kernel and a Range"),
    ("_call_kernel_async", (None, Range(1)), "takes a kernel, a Range or NdRange and a sequence"),
    ("_call_kernel", (len, Range(1)), "takes a function that @drupe.kernel decorates, not builtin_function"),
    ("_call_kernel_async", (type("K", (), {"_launcher": 3}), Range(1), []), "decorates, not type"),
])
def test_what_is_no_call(function, args, text):
    with pytest.raises(TypeError, match=text):
        getattr(_engine, function)(*args)


def test_a_kernel_whose_attributes_fail():
    class Odd:
        @property
        def _launcher(self):
            raise KeyError("odd")

    with pytest.raises(KeyError, match="odd"):
        _engine._call_kernel(Odd(), Range(1))


@pytest.mark.parametrize("args", [(), (Range(1), None), (Range(1), None, []), (Range(1), None, (), 4)])
def test_what_launchers_refuse(args):
    with pytest.raises(TypeError, match="a launcher takes a space, what to wait for, and a tuple"):
        _engine._Launcher(None, print)(*args)


def test_names_of_functions():
    for name in ("call_kernel", "call_kernel_async"):
        function = getattr(_engine, f"_{name}")
        assert (function.__name__, function.__module__) == (name, "drupe") and function.__doc__


# --- Signatures -------------------------------------------------------------------------------------------------------

def variants(queue):
    """Arguments of which each two need kernels of their own."""
    x = da.zeros((4, 4), dtype="float32", queue=queue)
    yield from ((x,), (x[0],), (x[:, 0],), (x[:, :2],), (x[0].reshape((1, 4, 1)),), (x[0, 0],))
    yield from ((da.zeros(4, dtype=name, queue=queue),) for name in ("int32", "uint32", "bool", "int8"))
    yield from ((x, number) for number in (True, 1, 1.0, 1j))
    names = "bool_ int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128"
    yield from ((x, getattr(np, name)(1)) for name in names.split())
    yield from ((x, 1, 2), (x, (1, 2)), (x, (1,), 2), (x, ((1,), 2)), (x, (1, (2,))), (x, Pair(1, 2)), (x, Other(1, 2)),
                (x, ()), (x, Pair((), 1)), (x, (x[0], 1)), (x, Range(2)))


def test_each_kind_of_call_has_an_entry(program, queue):
    plan = (("pointer", (0,)), *(("global_size", 0),) * 4)
    kernel = Kernel(program.numbers, plan)
    calls = list(variants(queue))
    for args in calls:
        assert not call(kernel, Range(1), *args), args
    assert len(kernel._launcher.entries) == len(calls)
    for args in reversed(calls):
        assert call(kernel, Range(1), *args), args
    told = [one["signature"] for one in kernel._launcher.entries]
    assert len(set(told)) == len(calls)
    assert told[0] == (("array", "float32", 2, "contiguous"),)  # the one that was used last comes first
    assert told[2] == (("array", "float32", 1, "strided"),) and told[-1][1] == (Range, (int,))


def test_equal_calls(program, queue):
    kernel = Kernel(program.numbers, (("pointer", (0,)), *(("value", (1, 1), "int64"),) * 4))
    for pair in (Pair(1, 2), Pair(-3, 2 ** 40), Pair(2.5, -7)):
        x = da.zeros(4, dtype="int64", queue=queue)
        call(kernel, Range(1), x, pair)
        assert x.tolist() == [pair.y] * 4
    assert len(kernel.misses) == 2  # an int and a float as the first one


def test_spaces_have_entries_of_their_own(programs, opencl):
    x = da.zeros(1, dtype="int64", device=opencl)
    for spaces in ((Range(1), Range(1, 1), Range(1, 1, 1)), (NdRange(1, 1), NdRange((1, 1), (1, 1)))):
        form = "range" if type(spaces[0]) is Range else "groups"
        kernel = Kernel(programs(opencl).numbers, (("pointer", (0,)), *(("global_size", 0),) * 4), form)
        for space in spaces * 2:
            call(kernel, space, da.zeros(4, dtype="int64", device=opencl))
        assert [one["dims"] for one in kernel._launcher.entries] == [space.ndim if type(space) is Range else
                                                                    space.global_range.ndim for space in spaces][::-1]
        assert len(kernel.misses) == len(spaces)
    assert x.tolist() == [0]


class Number(int):
    pass


@pytest.mark.parametrize("odd", [Number(3), "text", None, np.zeros(3), [1, 2], np.float128(1), (1, [2]), Number],
                         ids=str)
def test_what_the_fast_way_does_not_know(program, queue, odd):
    kernel = Kernel(program.add, ADD)
    a = floats(queue, 1)
    with pytest.raises(ValueError, match="a launcher does not know these arguments"):
        call(kernel, Range(1), a, a, a, odd)
    assert kernel.misses[-1][2][-1] is odd and kernel._launcher.entries == []


def test_spaces_that_it_does_not_know(program, queue):
    kernel = Kernel(program.add, ADD)
    a = floats(queue, 1)
    for space in (1, (1,), None):
        with pytest.raises(ValueError, match="does not know"):
            call(kernel, space, a, a, a)
        assert kernel.misses.pop()[0] == space


def test_arrays_of_two_queues(program, device):
    kernel = Kernel(program.add, ADD)
    a, b = (floats(drupe.Queue(device), 1, 2) for _ in range(2))
    call(kernel, Range(2), a, a, a)
    call(kernel, Range(2), b, b, b)
    assert len(kernel.misses) == 1 and a.tolist() == b.tolist() == [2, 4]
    with pytest.raises(drupe.ExecutionPlacementError, match=f"different queues, of {device.filter_string} and of"):
        call(kernel, Range(2), a, b, a)


def test_each_device_has_entries_of_its_own(programs):
    devices = [one for one in drupe.devices() if one.backend != "host" or one.can_compile("c")]
    made = []

    def slow(space, wait_for, args):
        made.append(args[0].device)
        launcher.add(args, space, programs(args[0].device).add, ADD, "range", ())

    launcher = _engine._Launcher(None, slow)
    for device in devices * 2:
        a = da.asarray([1, 2], dtype="float32", device=device)
        launcher(Range(2), None, (a, a, a)).wait()
        assert a.tolist() == [2, 4]
    assert made == devices


def test_calls_without_arrays_are_of_the_chosen_device(programs, device):
    made = []

    def slow(space, wait_for, args):
        made.append(drupe.Device())
        launcher.add(args, space, program.empty, (("value", (0,), "int32"),), "range", ())

    language = "c" if device.backend == "host" else "opencl"
    program = drupe.Program("kernel void empty(int n) {}", device, language=language)
    launcher = _engine._Launcher(None, slow)
    for _ in range(2):
        with drupe.device(device):
            event = launcher(Range(3), None, (7,))
        event.wait()
        assert event.queue.device == device
    assert made == [device]


def test_few_entries_are_kept(program, queue):
    kernel = Kernel(program.numbers, (("pointer", (0,)), *(("global_size", 0),) * 4))
    x = da.zeros(4, dtype="int64", queue=queue)
    for count in range(80):
        call(kernel, Range(1), x, *range(count))
    assert [len(one["signature"]) for one in kernel._launcher.entries] == list(range(80, 16, -1))
    assert not call(kernel, Range(1), x) and call(kernel, Range(1), x, *range(79))
    with pytest.raises(ValueError, match="96 in all"):
        call(kernel, Range(1), x, *range(96))
    assert not call(kernel, Range(1), x, *range(95))


def test_an_entry_takes_the_place_of_an_equal_one(program, queue):
    kernel = Kernel(program.add, ADD)
    a = floats(queue, 1)
    for _ in range(3):
        kernel.slow(Range(1), None, (a, a, a))
    assert len(kernel._launcher.entries) == 1


# --- What is watched --------------------------------------------------------------------------------------------------

def test_watched_globals(program, queue):
    names = {"scale": 3, "offset": 1.5}
    kernel = Kernel(program.add, ADD)
    kernel.entry = (program.add, ADD, "range", [(names, "scale", names["scale"]), (names, "offset", names["offset"])])
    a = floats(queue, 1)
    assert not call(kernel, Range(1), a, a, a) and call(kernel, Range(1), a, a, a)
    names["other"] = 4
    assert call(kernel, Range(1), a, a, a)
    old = names["scale"]
    names["scale"] = object()
    with pytest.raises(RuntimeError, match="no entry"):  # slow() adds the entry for what was
        call(kernel, Range(1), a, a, a)
    del names["scale"]
    with pytest.raises(RuntimeError, match="no entry"):
        call(kernel, Range(1), a, a, a)
    names["scale"] = old
    assert call(kernel, Range(1), a, a, a) and len(kernel._launcher.entries) == 1
    names["scale"] = 2 ** 70
    kernel.entry = (program.add, ADD, "range", [(names, "scale", names["scale"])])
    assert not call(kernel, Range(1), a, a, a) and call(kernel, Range(1), a, a, a)
    assert len(kernel._launcher.entries) == 2
    names["scale"] = old
    assert call(kernel, Range(1), a, a, a)


def test_names_that_have_no_value_are_watched(program, queue):
    names, value = {}, object()
    kernel = Kernel(program.add, ADD, watched=[(names, "max", NotImplemented)])
    a = floats(queue, 1)
    assert not call(kernel, Range(1), a, a, a) and call(kernel, Range(1), a, a, a)
    names["max"] = value
    with pytest.raises(RuntimeError, match="no entry"):
        call(kernel, Range(1), a, a, a)
    del names["max"]
    assert call(kernel, Range(1), a, a, a) and len(kernel._launcher.entries) == 1


def test_watched_cells(program, queue):
    value = object()

    def inner():
        return value

    cell = inner.__closure__[0]
    kernel = Kernel(program.add, ADD, watched=((cell, "value", value),))
    a = floats(queue, 1)
    assert not call(kernel, Range(1), a, a, a) and call(kernel, Range(1), a, a, a)
    old, cell.cell_contents = value, None
    with pytest.raises(RuntimeError, match="no entry"):
        call(kernel, Range(1), a, a, a)
    cell.cell_contents = old
    assert call(kernel, Range(1), a, a, a)


# --- Kernels that take the place of others ----------------------------------------------------------------------------


def test_replace(program, device, queue):
    kernel, new = Kernel(program.add, ADD), better(device)
    a, b, c = (floats(queue, 1, 2) for _ in range(3))
    call(kernel, Range(2), a, b, c)
    call(kernel, Range(1, 2), a, b, c)
    assert kernel._launcher.replace(program.add, new.add) == 2 and kernel._launcher.replace(program.add, new.add) == 0
    assert call(kernel, Range(2), a, b, c) and c.tolist() == [3, 6]
    assert {one["kernel"] for one in kernel._launcher.entries} == {new.add}
    for other in (new.other, new.fewer):
        with pytest.raises(ValueError, match="has other parameters than the one that it replaces"):
            kernel._launcher.replace(new.add, other)
    for pair in ((new.add, 3), (3, new.add), (new.add,)):
        with pytest.raises(TypeError):
            kernel._launcher.replace(*pair)


# --- slow() -----------------------------------------------------------------------------------------------------------

class Refused(Exception):
    pass


def test_errors_of_slow_pass(program, queue):
    def slow(space, wait_for, args):
        raise Refused(space, wait_for, args)

    class Holder:
        _launcher = _engine._Launcher(None, slow)

    a = floats(queue, 1)
    for call_it in (lambda: Holder._launcher(Range(2), [], (a, 5)),
                    lambda: _engine._call_kernel_async(Holder, Range(2), [], a, 5),
                    lambda: _engine._call_kernel(Holder, Range(2), a, 5)):
        with pytest.raises(Refused) as caught:
            call_it()
        assert caught.value.args[0] == Range(2) and caught.value.args[2] == (a, 5)


def test_slow_may_launch_it_itself(program, queue):
    a, events = floats(queue, 1, 2), []

    def slow(space, wait_for, args):
        events.append(program.add(*args, global_size=space[0], wait_for=wait_for))
        return events[-1]

    class Holder:
        _launcher = _engine._Launcher(None, slow)

    assert Holder._launcher(Range(2), None, (a, a, a)) is events[-1]
    assert _engine._call_kernel_async(Holder, Range(2), events, a, a, a) == (events[-1], events[-1])
    assert _engine._call_kernel(Holder, Range(2), a, a, a) is None
    assert events[-1].done and a.tolist() == [8, 16] and len(events) == 3


@pytest.mark.parametrize("result", [3, "text", ()])
def test_slow_that_gives_something_else(result):
    class Holder:
        _launcher = _engine._Launcher(None, lambda space, wait_for, args: result)

    for function in (_engine._call_kernel, lambda *args: _engine._call_kernel_async(*args, [])):
        with pytest.raises(TypeError, match="gives a drupe.Event or None, not"):
            function(Holder, Range(1))


def test_slow_that_adds_nothing():
    launcher = _engine._Launcher(None, lambda space, wait_for, args: None)
    with pytest.raises(RuntimeError, match="has added no entry"):
        launcher(Range(1), None, ())
