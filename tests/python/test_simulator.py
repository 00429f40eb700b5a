"""Kernels as plain Python: results, barriers, order, errors, the bar, speed."""
import collections
import io
import itertools
import re
import sys
import threading
import time
import traceback
import types
import warnings

import numpy
import pytest
from simulating import double, failure, line_of, no_greenlets_are_left, reverse, running_greenlets  # noqa: F401

import drupe
import drupe.array as da
from drupe import kernel_api as kapi
from drupe import simulator
from drupe.kernel_api import AtomicRef, LocalAccessor, NdRange, PrivateArray, Range, call_kernel


def tree_sum(item, a, sums, part):
    i = item.get_local_id(0)
    part[i] = a[item.get_global_id(0)]
    stride = item.get_local_range(0) // 2
    while stride > 0:
        kapi.group_barrier(item.get_group())
        if i < stride:
            part[i] += part[i + stride]
        stride //= 2
    if i == 0:
        sums[item.get_group().get_group_id(0)] = part[0]


# --- Results -------------------------------------------------------------------------------------------------

def test_ranges_of_each_dimension():
    for shape in ((7,), (3, 4), (2, 3, 4), (0,), (3, 0)):
        seen = []

        def kernel(item, a):
            place = tuple(item.get_id(dim) for dim in range(item.dimensions))
            a[place] += item.get_linear_id()
            seen.append(place)
        a = numpy.zeros(shape, int)
        assert call_kernel(kernel, Range(*shape), a) is None
        assert a.tolist() == numpy.arange(a.size).reshape(shape).tolist()
        assert seen == list(itertools.product(*map(range, shape)))  # the last dimension runs fastest


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_barriers_and_local_memory(seed):
    a = numpy.arange(64, dtype=numpy.float32)
    call_kernel(reverse, NdRange(64, 16), a, LocalAccessor(16, a.dtype), seed=seed)
    assert a.tolist() == numpy.arange(64).reshape(4, 16)[:, ::-1].ravel().tolist()
    sums = numpy.zeros(4)
    call_kernel(tree_sum, NdRange(64, 16), a, sums, LocalAccessor(16, float), seed=seed)
    assert sums.tolist() == [120, 376, 632, 888]


@pytest.mark.parametrize("seed", [None, 5])
def test_tiled_matrix_product(seed):
    def kernel(item, a, b, c, left, right):
        i, j = item.get_global_id(0), item.get_global_id(1)
        u, v = item.get_local_id(0), item.get_local_id(1)
        total = 0
        for tile in range(a.shape[1] // 4):
            left[u, v] = a[i, tile * 4 + v]
            right[u, v] = b[tile * 4 + u, j]
            kapi.group_barrier(item.get_group())
            for k in range(4):
                total += left[u, k] * right[k, v]
            kapi.group_barrier(item.get_group())
        c[i, j] = total
    rng = numpy.random.default_rng(3)
    a, b, c = rng.integers(-9, 9, (8, 12)), rng.integers(-9, 9, (12, 4)), numpy.zeros((8, 4), int)
    tile = LocalAccessor((4, 4), int)
    call_kernel(kernel, NdRange((8, 4), (4, 4)), a, b, c, tile, LocalAccessor((4, 4), int), seed=seed)
    assert (c == a @ b).all()


def test_a_barrier_in_a_function_and_in_some_groups_only():
    def meet(item):
        kapi.group_barrier(item.get_group())

    def kernel(item, a, part):
        i = item.get_local_id(0)
        part[i] = item.get_global_id(0)
        if item.get_group().get_group_id(0) % 2:
            meet(item)
            a[item.get_global_id(0)] = part[1 - i]
    a = numpy.zeros(8, int)
    call_kernel(kernel, NdRange(8, 2), a, LocalAccessor(2, int))
    assert a.tolist() == [0, 0, 3, 2, 0, 0, 7, 6]


def test_many_barriers_and_all_phases_are_apart():
    """Nobody is more than one barrier ahead of anybody."""
    for seed in (None, 3):
        steps = [0] * 8

        def kernel(item):
            i = item.get_local_id(0)
            for step in range(50):
                steps[i] += 1
                assert max(steps) - min(steps) <= 1
                kapi.group_barrier(item.get_group())
        call_kernel(kernel, NdRange(8, 8), seed=seed)
        assert steps == [50] * 8


def test_local_memory_is_new_for_each_group():
    seen = []

    def kernel(item, part):
        seen.append(numpy.isnan(part[0]))
        part[0] = 1
    call_kernel(kernel, NdRange(6, 1), LocalAccessor(1, float))
    assert seen == [True] * 6


def test_numbers_stay_what_they_are():
    seen = []

    def kernel(item, *args):
        seen.extend(map(type, args))
    given = (1, 2.5, True, 1j, numpy.float32(1), numpy.int8(3), None)
    call_kernel(kernel, Range(1), *given)
    assert seen == list(map(type, given))


def test_integers_wrap_without_a_word_also_behind_barriers():
    def kernel(item, a):
        kapi.group_barrier(item.get_group())
        a[item.get_local_id(0)] = a[0] * a[0] + numpy.uint32(1)
    a = numpy.full(4, 2**31 + 1, numpy.uint32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call_kernel(kernel, NdRange(4, 4), a)
    assert a[3] != 0 and a.dtype == numpy.uint32


Pair = collections.namedtuple("Pair", "first rest")


def test_tuples_and_named_tuples(device):
    def kernel(item, pair, scale, part):
        i = item.get_global_id(0)
        pair.first[i] = pair.rest[0][i] * scale[0] + pair.rest[1]
        part[0] = 1
    out, given = da.zeros(4, dtype="int64", device=device), da.arange(4, dtype="int64", device=device)
    call_kernel(kernel, NdRange(4, 2), Pair(out, (given, 7)), (10,), LocalAccessor(1, int))
    assert out.tolist() == [7, 17, 27, 37]


def test_kernels_under_a_decorator():
    def wrapped(**names):
        return types.SimpleNamespace(**names)
    for kernel in (wrapped(py_func=double), wrapped(__wrapped__=double), double):
        a = numpy.arange(3)
        call_kernel(kernel, Range(3), a)
        assert a.tolist() == [0, 2, 4]


def test_what_is_refused():
    for kernel, space, args, error, message in (
            (double, 5, (), TypeError, "a Range or an NdRange, not int"),
            (len, Range(5), ([],), TypeError, "a kernel is a Python function"),
            (double, Range(5), (), TypeError, r"double\(item, a\) takes 1 argument beside the item, and 0 are given"),
            (double, Range(5), (1, 2, 3), TypeError, "and 3 are given"),
            (double, Range(5), ([1, 2],), TypeError, "a is a list, which no kernel takes: pass an array or a tuple"),
            (double, Range(5), ((1, {}),), TypeError, r"a\[1\] is a dict")):
        with pytest.raises(error, match=message) as caught:
            call_kernel(kernel, space, *args)
        assert len(traceback.extract_tb(caught.value.__traceback__)) == 1  # no frame of ours
    with pytest.raises(TypeError, match="no option 'race'; it has races"):
        call_kernel(double, Range(1), numpy.zeros(1), race=True)


# --- Arrays of devices ---------------------------------------------------------------------------------------

def test_arrays_of_devices_are_copied_there_and_back(device):
    def kernel(item, a, b, c):
        i, j = item.get_id(0), item.get_id(1)
        c[i, j] = a[i, j] + b[j, i]
    queue = drupe.Queue(device)
    a = da.arange(12, dtype="int32", queue=queue).reshape(3, 4)
    b = da.ones((4, 3), dtype="int32", queue=queue)
    c = da.zeros((3, 8), dtype="int32", queue=queue)
    call_kernel(kernel, Range(3, 4), a, b, c[:, ::2])
    assert c.asnumpy()[:, ::2].tolist() == (numpy.arange(12).reshape(3, 4) + 1).tolist()
    assert not c.asnumpy()[:, 1::2].any() and b.tolist() == [[1] * 3] * 4


def test_arrays_that_share_memory_do_so_in_the_kernel(device):
    def kernel(item, a, b, c):
        i = item.get_id(0)
        b[i] = a[i] + 1
        c[0] += 1
    a = da.zeros(6, dtype="int32", device=device)
    c = da.zeros(1, dtype="int32", device=device)
    call_kernel(kernel, Range(5), a[:-1], a[1:], c)
    assert a.tolist() == [0, 1, 2, 3, 4, 5] and c.tolist() == [5]
    b = da.arange(6, dtype="int32", device=device)
    call_kernel(kernel, Range(3), b, b[::-1], c)
    assert b.tolist() == [0, 1, 2, 3, 2, 1]


def test_only_what_changed_is_copied_back(device):
    queue = drupe.Queue(device)
    a, out = da.arange(4, queue=queue), da.zeros(4, dtype="int64", queue=queue)
    queue.wait()
    def kernel(item, a, out):
        out[item.get_id(0)] = a[item.get_id(0)]
    written = []

    class Watching(simulator.calls.Arguments):
        def back(self):
            for key, (array, name) in self._devices.items():
                if self._hosts[key].tobytes() != self._before[key]:
                    written.append(name)
            super().back()
    simulator.calls.Arguments, kept = Watching, simulator.calls.Arguments
    try:
        call_kernel(kernel, Range(4), a, out)
    finally:
        simulator.calls.Arguments = kept
    assert written == ["out"] and out.tolist() == [0, 1, 2, 3]


def test_what_was_written_before_an_error_is_copied_back(device):
    def kernel(item, out):
        out[item.get_id(0)] = 1
        assert item.get_id(0) < 2, "no more"
    out = da.zeros(4, dtype="int32", device=device)
    with pytest.raises(AssertionError, match="no more"):
        call_kernel(kernel, Range(4), out)
    assert out.tolist() == [1, 1, 1, 0]


# --- Greenlets -----------------------------------------------------------------------------------------------

def test_greenlets_are_for_barriers_only(fresh):
    result = fresh("""
        import sys, numpy
        from drupe import kernel_api as kapi
        def plain(item, a): a[item.get_global_id(0)] = 1
        def meets(item, a): kapi.group_barrier(item.get_group())
        kapi.call_kernel(plain, kapi.NdRange(64, 8), numpy.zeros(64))
        assert "greenlet" not in sys.modules
        kapi.call_kernel(meets, kapi.NdRange(64, 8), numpy.zeros(64))
        assert "greenlet" in sys.modules
    """)
    assert result.returncode == 0, result.stderr


def test_without_greenlet(fresh):
    result = fresh("""
        import sys, numpy
        sys.modules["greenlet"] = None
        from drupe import kernel_api as kapi
        def meets(item, a): kapi.group_barrier(item.get_group())
        kapi.call_kernel(lambda item, a: None, kapi.NdRange(64, 8), numpy.zeros(64))
        kapi.call_kernel(meets, kapi.NdRange(64, 8), numpy.zeros(64))
    """)
    assert "ImportError: a kernel with barriers is simulated with the package greenlet, which is not installed: " \
           "pip install greenlet" in result.stderr


def test_no_work_item_begins_twice():
    """The first work-item is not run for trial."""
    begun = []

    def kernel(item):
        begun.append(item.get_global_id(0))
        kapi.group_barrier(item.get_group())
    call_kernel(kernel, NdRange(12, 4))
    assert begun == list(range(12))


# --- Order ---------------------------------------------------------------------------------------------------

def order_of(space, **options):
    seen = []

    def kernel(item):
        seen.append(item.get_linear_id() if isinstance(item, kapi.Item) else item.get_global_linear_id())
        if not isinstance(item, kapi.Item):
            kapi.group_barrier(item.get_group())
    call_kernel(kernel, space, **options)
    return seen


def test_a_seed_shuffles_work_items_and_groups():
    assert order_of(Range(20)) == list(range(20))
    one, same, other = (order_of(Range(20), seed=seed) for seed in (1, 1, 2))
    assert one == same != other and sorted(one) == sorted(other) == list(range(20)) != one
    grouped = order_of(NdRange(20, 5), seed=1)
    groups = [i // 5 for i in grouped]
    assert grouped == order_of(NdRange(20, 5), seed=1) and groups == sorted(groups, key=groups.index)
    assert [group for group, _ in itertools.groupby(groups)] != [0, 1, 2, 3]
    assert any(grouped[at:at + 5] != sorted(grouped[at:at + 5]) for at in range(0, 20, 5))


def test_each_phase_is_shuffled():
    phases = [[], []]

    def kernel(item):
        phases[0].append(item.get_local_id(0))
        kapi.group_barrier(item.get_group())
        phases[1].append(item.get_local_id(0))
    call_kernel(kernel, NdRange(16, 16), seed=4)
    assert phases[0] != phases[1] and sorted(phases[0]) == sorted(phases[1]) == list(range(16))
    assert phases[1][0] != phases[0][0]  # nor does the one that began first go on first


def test_options_of_a_block():
    assert simulator.Options() == simulator.Options(False, False, None, 32, True)
    with simulator.options(seed=1, sub_group_size=8) as found:
        assert (found.seed, found.sub_group_size, found.races) == (1, 8, False)
        assert order_of(Range(20)) == order_of(Range(20), seed=1)
        with simulator.options(seed=None):
            assert order_of(Range(20)) == list(range(20))
    assert order_of(Range(20)) == list(range(20))
    with pytest.raises(ValueError, match="sub_group_size is a power of two, not 3"):
        simulator.options(sub_group_size=3)


def test_threads_simulate_at_once():
    found, meet = {}, threading.Barrier(3)

    def work(number):
        def kernel(item, a):
            i = kapi.get_global_id(0)
            if i == 3:
                meet.wait(60)
            kapi.group_barrier(item.get_group())
            a[kapi.get_global_id(0)] += number
        a = numpy.zeros(8, int)
        call_kernel(kernel, NdRange(8, 4), a)
        found[number] = a.tolist()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [number] * 8 for number in range(3)}


def test_a_kernel_within_a_kernel():
    def inner(item, a):
        a[item.get_id(0)] += 1

    def outer(item, a):
        call_kernel(inner, Range(2), a)
        a[2 + kapi.get_global_id(0)] = 5
    a = numpy.zeros(4, int)
    call_kernel(outer, Range(2), a)
    assert a.tolist() == [2, 2, 5, 5]


# --- Errors --------------------------------------------------------------------------------------------------

def divide(x):
    return 1 // (x - 5)


def test_an_error_has_the_users_frames_and_names_the_work_item():
    def kernel(item, a):
        a[item.get_id(0)] = divide(item.get_id(0))
    error, frames, note = failure(kernel, Range(8), numpy.zeros(8, int))
    assert isinstance(error, ZeroDivisionError) and frames == ["kernel", "divide"] and error.__context__ is None
    assert note == "in work-item 5 of the kernel kernel, line %d" % line_of(divide, "1 //")


@pytest.mark.parametrize("who", [0, 5])
def test_an_error_behind_a_barrier(who):
    """Work-item 0 waits on the caller's stack, the others do in greenlets."""
    ended = []

    def kernel(item, a):
        try:
            kapi.group_barrier(item.get_group())
            if item.get_global_id(0) == who:
                divide(5)
            kapi.group_barrier(item.get_group())
        finally:
            ended.append(item.get_global_id(0))
    error, frames, note = failure(kernel, NdRange(16, 8), numpy.zeros(8))
    assert isinstance(error, ZeroDivisionError) and frames == ["kernel", "divide"] and error.__context__ is None
    assert note.startswith("in work-item %d (%d of group 0) of the kernel kernel" % (who, who))
    assert sorted(ended) == list(range(8)) and running_greenlets() == 0


def test_device_functions_run_as_plain_python():
    class Function:  # as @drupe.device_func makes one
        def __init__(self, function):
            self.py_func = function

        def __call__(self, *args):
            return self.py_func(*args)
    function = drupe.device_func(divide) if hasattr(drupe, "device_func") else Function(divide)

    def kernel(item, a):
        a[item.get_id(0)] = function(item.get_id(0) + 2)
    a = numpy.zeros(3, int)
    call_kernel(kernel, Range(3), a)
    assert a.tolist() == [-1, -1, -1]
    error, frames, _ = failure(kernel, Range(4), numpy.zeros(4, int))
    assert frames[0] == "kernel" and frames[-1] == "divide"


BOUNDS = [
    ("a[i + 1] = 0", r"a\[i \+ 1\] is a\[4\], which is out of bounds: a has the shape \(4,\)"),
    ("x = b[1][i]", r"b\[1\]\[i\] is b\[1\]\[3\], which is out of bounds: b\[1\] has the shape \(3,\)"),
    ("b[0, i] += 1", r"b\[0, i\] is b\[0, 3\], which is out of bounds: b has the shape \(2, 3\), and axis 1 ends at 2"),
    ("x = b[item.get_id(0) % 2, -i - 1]", r"is b\[1, -4\], which is out of bounds: b has the shape \(2, 3\)"),
    ("x = a[len(a)]", r"a\[len\(a\)\]: index 4 is out of bounds for axis 0 with size 4; a has the shape \(4,\)"),
    ("x = b[0, 0, i]", r"b\[0, 0, i\] is b\[0, 0, 0\], which has 3 indices: b has the shape \(2, 3\)"),
    ("AtomicRef(a, i + 1).fetch_add(1)", r"a\[4\] is out of bounds: a has the shape \(4,\)"),
    ("x = part[i + 9]", r"part\[i \+ 9\] is part\[9\], which is out of bounds: part has the shape \(5,\)")]


@pytest.mark.parametrize("races", [False, True])
@pytest.mark.parametrize("statement, message", BOUNDS)
def test_an_index_out_of_bounds(statement, message, races, tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text("def kernel(item, a, b):\n    part = PrivateArray(5, float)\n    part[4] = 0\n"
                    "    i = item.get_id(0)\n    %s\n" % statement)
    names = {"AtomicRef": AtomicRef, "PrivateArray": PrivateArray}
    exec(compile(path.read_text(), str(path), "exec"), names)
    error, frames, note = failure(names["kernel"], Range(4), numpy.zeros(4), numpy.zeros((2, 3)), races=races)
    assert type(error) is IndexError and re.search(message, str(error)), str(error)
    assert frames == ["kernel"] and re.fullmatch(r"in work-item \d of the kernel kernel, line 5", note)


def test_negative_indices_count_from_the_end():
    def kernel(item, a):
        a[-1 - item.get_id(0)] = item.get_id(0)
    a = numpy.zeros(4, int)
    call_kernel(kernel, Range(4), a)
    assert a.tolist() == [3, 2, 1, 0]


# --- Progress ------------------------------------------------------------------------------------------------

class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("space, meets", [(Range(2000), False), (NdRange(2000, 10), True)])
def test_a_bar_when_it_takes_long(monkeypatch, space, meets):
    from drupe.simulator import progress

    def slow(item):
        if meets:
            kapi.group_barrier(item.get_group())
    for first, stream, options in ((1000, Terminal(), {}), (0, io.StringIO(), {}), (0, Terminal(), {"progress": False}),
                                   (0, Terminal(), {})):
        monkeypatch.setattr(progress, "_FIRST", first)
        monkeypatch.setattr(progress, "_PAUSE", first)
        monkeypatch.setattr(sys, "stderr", stream)
        call_kernel(slow, space, **options)
        if (first, options) != (0, {}) or not stream.isatty():
            assert not stream.getvalue()
    text = stream.getvalue()
    assert "simulating slow" in text and text.rstrip().endswith("done") and "2000/2000" in text and text.count("\r") > 3


# --- Speed ---------------------------------------------------------------------------------------------------

def test_speed_is_told():
    """Of this machine as busy as it is, to be read with -s: no limit is set here."""
    n = 20000
    for name, kernel, space, args in (("without barriers", double, Range(n), (numpy.ones(n),)),
                                      ("with barriers", reverse, NdRange(n, 50),
                                       (numpy.ones(n), LocalAccessor(50, float)))):
        began = time.process_time()
        call_kernel(kernel, space, *args)
        print("%s: %.2f million work-items a second" % (name, n / (time.process_time() - began) / 1e6))
        assert not numpy.isnan(args[0]).any()
