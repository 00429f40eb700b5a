"""Calls of kernels in Python, the part that is C: what the compiled kernel is given."""
import itertools

import numpy as np
import pytest
from dispatching import ADD, Kernel, call, floats, local, program, programs  # noqa: F401

import drupe
import drupe.array as da
from drupe import NdRange, Range, _engine


# --- Plans ------------------------------------------------------------------------------------------------------------

def test_shapes_strides_and_sizes(program, queue):
    plan = (("pointer", (1, 0)), ("shape", (0,), 1), ("stride", (0,), 0), ("stride", (0,), 1), ("global_size", 1))
    kernel = Kernel(program.numbers, plan)
    x, out = da.zeros((6, 5), dtype="float32", queue=queue), da.zeros(4, dtype="int64", queue=queue)
    for view, expected in ((x[::2, 1:4], [3, 10, 1]), (x[:, ::-2], [3, 5, -2]), (x.T[:, :2], [2, 1, 5])):
        call(kernel, Range(1, 1), view, (out,))
        assert out.tolist() == [*expected, 1]
    call(kernel, Range(1, 1), x, (out,))
    assert out.tolist() == [5, 5, 1, 1]
    assert len(kernel.misses) == 2


def test_strided_arrays_begin_at_their_first_element(program, queue):
    kernel = Kernel(program.store_int64, (("pointer", (0,)), ("value", (1,), "int64")))
    x = da.zeros(6, dtype="int64", queue=queue)
    call(kernel, Range(1), x[1::2], 5)
    call(kernel, Range(1), x[::-1], 7)
    assert x.tolist() == [0, 5, 0, 0, 0, 7]


NUMBERS = {"b": [True, False], "i": [0, 5, -7], "u": [0, 5, 250], "f": [0.5, -2.0, float("inf")], "c": [1 + 2j, -0.5j]}


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                                   "float32", "float64", "complex64", "complex128"])
def test_values(program, queue, dtype):
    if dtype in ("float64", "complex128") and not queue.device.has_aspect_fp64:
        pytest.skip("the device has no double precision")
    parts = [f"{dtype}.re", f"{dtype}.im"] if dtype.startswith("c") else [dtype]
    kernel = Kernel(program[f"store_{dtype}"], (("pointer", (0,)), *(("value", (1,), part) for part in parts)))
    values = list(NUMBERS[np.dtype(dtype).kind])
    if np.dtype(dtype).kind in "iu":
        values += [np.iinfo(dtype).max, np.iinfo(dtype).min, True]
    if np.dtype(dtype).kind in "fc":
        values += [3, True, 0.1]
    for value in itertools.chain(values, map(np.dtype(dtype).type, values)):
        out = da.zeros(1, dtype=dtype, queue=queue)
        call(kernel, Range(1), out, value)
        assert out.asnumpy().tobytes() == np.array([value], dtype=dtype).tobytes(), value
        again = da.zeros(1, dtype=dtype, queue=queue)
        assert call(kernel, Range(1), again, value) and again.asnumpy().tobytes() == out.asnumpy().tobytes()


def test_values_of_other_types_are_converted(program, queue):
    out = da.zeros(1, dtype="float32", queue=queue)
    kernel = Kernel(program.store_float32, (("pointer", (0,)), ("value", (1,), "float32")))
    for value in (np.float16(0.1), np.float64(0.1), np.int8(-3), 2 ** 80 + 0.0, 1e300):
        call(kernel, Range(1), out, value)
        with np.errstate(over="ignore"):
            assert out.asnumpy()[0] == np.float32(value)


@pytest.mark.parametrize("dtype, value", [("int32", 2 ** 31), ("uint32", -1), ("uint8", 256), ("int64", 2 ** 63),
                                          ("int64", -2 ** 70), ("int8", np.int64(200)),
                                          ("uint64", 2 ** 64)])
def test_values_that_do_not_fit_are_slow(program, queue, dtype, value):
    kernel = Kernel(program[f"store_{dtype}"], (("pointer", (0,)), ("value", (1,), dtype)))
    out = da.zeros(1, dtype=dtype, queue=queue)
    small = type(value)(1)
    call(kernel, Range(1), out, small)
    with pytest.raises(RuntimeError, match="has added no entry for the arguments"):
        call(kernel, Range(1), out, value)
    assert len(kernel.misses) == 2 and call(kernel, Range(1), out, small)


@pytest.mark.parametrize("shape", [(1,), (5,), (1000,), (3, 7), (40, 50)])
def test_ranges_have_the_users_order(program, queue, shape):
    rows, columns = (*shape, 1)[:2] if len(shape) == 1 else shape
    if len(shape) == 1:
        rows, columns = 1, shape[0]
    kernel = Kernel(program.places, (("pointer", (0,)), ("global_size", 0), ("global_size", 1)))
    out = da.zeros(rows * columns + 1, dtype="int64", queue=queue)
    call(kernel, Range(rows, columns), out)
    assert out.tolist() == [1] * (rows * columns) + [1000 * rows + columns]


def test_ranges_are_rounded_up_to_a_local_size(programs, opencl):
    kernel = Kernel(programs(opencl).places, (("pointer", (0,)), ("global_size", 0), ("global_size", 1)), local=(8, 2))
    for rows, columns, sizes in ((3, 7, 4008), (4, 8, 4008), (5, 9, 6016)):
        out = da.zeros(rows * columns + 1, dtype="int64", device=opencl)
        call(kernel, Range(rows, columns), out)
        assert out.tolist() == [1] * (rows * columns) + [sizes]
    assert len(kernel.misses) == 1 and kernel._launcher.entries[0]["local"] == (8, 2)


def test_groups(opencl):
    text = """kernel void f(global long *out, long g0, long g1, long l0, long l1)
              { if (get_local_id(0) + get_local_id(1)) return;
              long at = 6 * (get_group_id(1) * get_num_groups(0) + get_group_id(0));
              out[at] = get_local_size(1); out[at + 1] = get_local_size(0);
              out[at + 2] = g0; out[at + 3] = g1; out[at + 4] = l0; out[at + 5] = l1; }"""
    plan = (("pointer", (0,)), ("global_size", 0), ("global_size", 1), ("local_size", 0), ("local_size", 1))
    kernel = Kernel(drupe.Program(text, opencl).f, plan, "groups")
    out = da.zeros(6 * 6, dtype="int64", device=opencl)
    call(kernel, NdRange((4, 6), (2, 2)), out)
    assert out.tolist() == [2, 2, 4, 6, 2, 2] * 6


@pytest.mark.parametrize("grain", [1, 7, 4096])
@pytest.mark.parametrize("rows, columns", [(1, 1), (10, 10), (7, 1001), (300, 300)])
def test_chunks_of_the_host(programs, rows, columns, grain):
    device = drupe.Device("host")
    plan = (("pointer", (0,)), ("global_size", 0), ("global_size", 1), ("chunk",))
    kernel = Kernel(programs(device).chunks, plan, "host_range", grain=grain)
    total = rows * columns
    out = da.zeros(total + 2, dtype="int64", device=device)
    call(kernel, Range(rows, columns), out)
    *counts, chunk, chunks = out.tolist()
    assert counts == [1] * total
    assert chunk >= grain and (chunk <= 64 or chunk % 64 == 0) and chunks == -(-total // chunk)
    assert chunks <= 8 * device.max_compute_units


def test_groups_of_the_host(programs):
    device = drupe.Device("host")
    plan = (("pointer", (0,)), ("global_size", 0), ("local_size", 1), ("local_size", 0))
    kernel = Kernel(programs(device).chunks, plan, "host_groups")
    out = da.zeros(40, dtype="int64", device=device)
    call(kernel, NdRange((6, 8), (2, 4)), out)  # 6 groups; the kernel's rows, columns and chunk are 6, 4 and 2
    assert out.tolist()[24:26] == [2, 6]


@pytest.mark.parametrize("space", [Range(0), Range(3, 0), Range(0, 5, 2), NdRange(0, 4), NdRange((8, 0), (2, 2))])
@pytest.mark.parametrize("where", ["host", "opencl"])
def test_empty_spaces(programs, where, space):
    try:
        device = drupe.Device(where)
    except drupe.DeviceNotFoundError as problem:
        pytest.skip(str(problem))
    grouped = type(space) is NdRange
    form = {True: "host_groups", False: "host_range"}[grouped] if where == "host" else "groups" if grouped else "range"
    local = {"local": (4,) * space.ndim} if form == "range" else {}
    kernel = Kernel(programs(device).add, ADD, form, **local)
    a = da.asarray([1, 2], dtype="float32", device=device)
    for _ in range(2):
        event = kernel._launcher(space, None, (a, a, a))
        event.wait()
        assert event.queue == a.queue and a.tolist() == [1, 2]
    assert len(kernel.misses) == 1


def test_empty_arrays(program, queue):
    kernel = Kernel(program.numbers, (("pointer", (1,)), ("shape", (0,), 0), *(("global_size", 0),) * 3))
    empty, out = floats(queue, 1, 2)[2:], da.zeros(4, dtype="int64", queue=queue)
    call(kernel, Range(1), empty, out)
    assert out.tolist() == [0, 1, 1, 1]
    kernel = Kernel(program.add, ADD)
    a = floats(queue, 1)
    call(kernel, Range(0), empty, empty, a)
    call(kernel, Range(0), empty, a, a)
    assert a.tolist() == [1] and len(kernel.misses) == 1


@pytest.mark.parametrize("count", [12, 13, 24, 25, 64])
def test_many_parameters(device, count):
    host = device.backend == "host"
    names = [f"p{i}" for i in range(count - 1)]
    text = (f"kernel void f({'' if host else 'global'} long *out, {', '.join(f'long {name}' for name in names)})\n"
            "{" + " ".join(f"out[{i}] = {name};" for i, name in enumerate(names)) + "}")
    kernel = Kernel(drupe.Program(text, device, language="c" if host else "opencl").f,
                    (("pointer", (0,)), *(("value", (1, i), "int64") for i in range(count - 1))))
    out = da.zeros(count - 1, dtype="int64", device=device)
    for numbers in (tuple(range(count - 1)), tuple(range(100, count + 99))):
        call(kernel, Range(1), out, numbers)
        assert out.tolist() == list(numbers)


@pytest.mark.parametrize("plan, text", [
    (ADD[:2], "a plan of 2 parameters for the kernel 'add', which has 3"),
    ((*ADD[:2], ("pointer", (3,))), "no argument has the path"),
    ((*ADD[:2], ("pointer", (2, 0))), "no argument has the path"),
    ((*ADD[:2], ("pointer", ())), "no argument has the path"),
    ((*ADD[:2], ("pointer",)), "it is not known, or has another number of parts"),
    ((*ADD[:2], ("address", (2,))), "it is not known"),
    ((*ADD[:2], "pointer"), "it is not known"),
    ((*ADD[:2], ("value", (2,), "float32")), "it is no number"),
    ((*ADD[:2], ("local", (2,))), "it is no LocalAccessor"),
    ((*ADD[:2], ("shape", (2,), 1)), "it has no such dimension"),
    ((*ADD[:2], ("stride", (2,), -1)), "it has no such dimension"),
    ((*ADD[:2], ("global_size", 1)), "there is no such dimension"),
    ((*ADD[:2], ("local_size", 0)), "there is no such dimension of a group"),
    ((*ADD[:2], ("chunk",)), "only a host_range has chunks"),
    ((*ADD[:2], ("failures",)), "failures= is missing"),
    ((*ADD[:2], ("global_size", 0)), "the kernel's parameter 2"),
    ((*ADD[:2], ("value", (3, 0), "int64")), "the kernel's parameter 2"),
    ((*ADD[:2], ("value", (3, 0), "int128")), "no such type"),
    ((*ADD[:2], ("value", (3, 0), "float32.re")), "no such type"),
    ((*ADD[:2], ("value", (3, 0), "complex64")), "no such type"),
    ((*ADD[:2], ("pointer", (3, 0))), "it is no array"),
])
def test_plans_that_do_not_fit(program, queue, plan, text):
    a = floats(queue, 1)
    extra = () if "path" in text else ((7,),)
    launcher = _engine._Launcher(None, print)
    with pytest.raises(ValueError, match=text):
        launcher.add((a, a, a, *extra), Range(1), program.add, plan, "range", ())
    assert launcher.entries == []


@pytest.mark.parametrize("change, error, text", [
    ({"kernel": 3}, TypeError, "kernel must be a drupe.Kernel, not int"),
    ({"form": "square"}, ValueError, "there is no form 'square'"),
    ({"form": "groups"}, ValueError, "the form 'groups' is not one of a Range"),
    ({"space": NdRange(4, 4)}, ValueError, "the form 'range' is not one of an NdRange"),
    ({"space": 4}, ValueError, "does not know these arguments"),
    ({"args": []}, TypeError, "the arguments and the plan are tuples"),
    ({"plan": list(ADD)}, TypeError, "the arguments and the plan are tuples"),
    ({"watched": [({}, "x")]}, TypeError, "what is watched is"),
    ({"watched": [({}, 1, 2)]}, TypeError, "what is watched is"),
    ({"watched": [(1, "x", 2)]}, TypeError, "what is watched is"),
    ({"watched": 3}, TypeError, "not iterable"),
    ({"local": (2, 2)}, ValueError, "does not fit the form"),
    ({"local": (0,)}, ValueError, "does not fit the form"),
    ({"form": "host_range", "local": 4}, ValueError, "does not fit the form"),
    ({"grain": -1}, ValueError, "negative"),
    ({"room": -1}, ValueError, "negative"),
    ({"item_bytes": "8"}, TypeError, "not str"),
    ({"failures": 3}, TypeError, "failures must be"),
])
def test_entries_that_cannot_be(program, queue, change, error, text):
    a = floats(queue, 1)
    launcher = _engine._Launcher(None, print)
    with pytest.raises(error, match=text):
        launcher.add(**{"args": (a, a, a), "space": Range(1), "kernel": program.add, "plan": ADD, "form": "range",
                        "watched": (), **change})
    assert launcher.entries == []


# --- Local memory -----------------------------------------------------------------------------------------------------


def test_local_memory(opencl, local):
    text = """kernel void reverse(global const int *in, global int *out, local int *part, long n)
              { int i = get_local_id(0); part[i] = in[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);
                out[get_global_id(0)] = part[n - 1 - i]; }"""
    plan = (("pointer", (0,)), ("pointer", (1,)), ("local", (2,)), ("shape", (2,), 1))
    kernel = Kernel(drupe.Program(text, opencl).reverse, plan, "groups")
    x = da.arange(8, dtype="int32", device=opencl)
    out = da.zeros(8, dtype="int32", device=opencl)
    for size in (4, 2, 8):
        call(kernel, NdRange(8, size), x, out, local((1, size), "int32"))
        assert out.tolist() == np.arange(8).reshape(-1, size)[:, ::-1].ravel().tolist()
    assert len(kernel.misses) == 1
    assert kernel._launcher.entries[0]["signature"][2] == ("local", "int32", 2)
    assert not call(kernel, NdRange(8, 4), x, out, local((1, 4), "float32"))
    assert [one["signature"][2] for one in kernel._launcher.entries] == [("local", "float32", 2), ("local", "int32", 2)]


def test_local_memory_of_the_host_is_told_in_bytes(programs, local):
    plan = (("pointer", (0,)), ("local", (1,)), ("shape", (1,), 0), ("shape", (1,), 1), ("local_size", 0))
    kernel = Kernel(programs(drupe.Device("host")).numbers, plan, "host_groups")
    out = da.zeros(4, dtype="int64", device="host")
    for shape in ((4, 3), (2, 8)):
        call(kernel, NdRange(2, 2), out, local(shape, "float64"))
        assert out.tolist() == [8 * shape[0] * shape[1], *shape, 2]
    assert len(kernel.misses) == 1


def test_local_memory_that_is_odd(programs, local):
    plan = (("pointer", (0,)), ("local", (1,)), *(("local_size", 0),) * 3)
    kernel = Kernel(programs(drupe.Device("host")).numbers, plan, "host_groups")
    out, one = da.zeros(4, dtype="int64", device="host"), local((4,), "int32")
    call(kernel, NdRange(2, 2), out, one)
    one._nbytes = -1
    with pytest.raises(RuntimeError, match="no entry"):
        call(kernel, NdRange(2, 2), out, one)
    for name, value in (("_dtype", "nothing"), ("shape", None)):
        odd = local((4,), "int32")
        setattr(odd, name, value)
        with pytest.raises(ValueError, match="does not know"):
            call(kernel, NdRange(2, 2), out, odd)
    del odd._dtype
    with pytest.raises(ValueError, match="does not know"):
        call(kernel, NdRange(2, 2), out, odd)
    with pytest.raises(TypeError, match="LocalAccessor is a class, not int"):
        _engine._local_accessor(3)
