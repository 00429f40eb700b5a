"""Expressions that wait to be computed, and what may happen to arrays meanwhile: nobody may see a
difference to computing them at once."""
import ctypes
import pathlib

import numpy as np
import pytest
from waiting import N, Work, run, same, values, work, x  # run, values, work and x are fixtures

import drupe
import drupe.array as da
import drupe.memory as dm
from drupe import ext

SIZE = N * 8
EXAMPLE = pathlib.Path(__file__).parents[2] / "notebooks/extension/gemv.c"


# --- What is pending, and what is never computed ---------------------------------------------------------------------


def test_an_expression_is_one_kernel(work, x, values):
    y = (x * 2 + 1) / 4 - x
    assert work.new() == []
    same(y, (values * 2 + 1) / 4 - values)
    assert len(work.new()) == 1


def test_what_is_dropped_never_runs(work, x):
    y = x * 2 + 1
    z = y - 3
    del y, z
    for _ in range(300):
        da.sin(x)
    x.queue.wait()
    assert work.new() == []


def test_what_only_a_dropped_array_took_never_runs(work, x, values):
    y = x * 2
    z = y + 1
    del z
    same(y, values * 2)
    assert [label.startswith("multiply") and "add" not in label for label in work.new()] == [True]


def test_what_a_variable_still_has_is_stored_too(work, x, values):
    y = x * 2
    z = y + 1
    same(z, values * 2 + 1)
    assert len(work.new()) == 1
    same(y, values * 2)
    assert work.new() == []


def test_what_is_taken_twice_is_computed_once(work, queue):
    a = np.full(N, 1e-3)
    x = da.asarray(a, queue=queue)
    for _ in range(20):
        x, a = x * x + x, a * a + a
    same(x, a)
    assert len(work.new()) <= 20  # of more than a million operations where each is computed as often as it is taken


def test_a_chain_of_ten_thousand(run):
    """It is cut, and freed without recursion."""
    assert run("""if True:
        x = da.ones(16, device="host")
        for _ in range(10_000):
            x = x + 1
        print(float(x[3]))
        for _ in range(10_000):
            x = -x
        del x
        print("dropped")
    """) == "10001.0\ndropped\n"


@pytest.mark.parametrize("most", [1, 2, 3, 7, 48])
def test_limits_of_a_list(run, most):
    assert run("""if True:
        a = np.arange(30.0)
        x = y = da.asarray(a, device="host")
        b = a
        held = []
        for k in range(70):
            y, b = y * 0.5 + x, b * 0.5 + a
            held.append((y, b))
        print(all(np.array_equal(one.asnumpy(), other) for one, other in held))
    """, DRUPE_FUSE_MOST=str(most)) == "True\n"


@pytest.mark.parametrize("count", [14, 15, 16, 17, 33, 50])
def test_more_operands_constants_and_values_than_a_kernel_has(queue, count):
    a = [np.arange(N, dtype=np.float64) + k for k in range(count)]
    x = [da.asarray(one, queue=queue) for one in a]
    same(sum(x[1:], x[0]), sum(a[1:], a[0]))
    terms, others = [one * 3 + k for k, one in enumerate(x)], [one * 3 + k for k, one in enumerate(a)]
    same(sum(terms[::-1], x[0]), sum(others[::-1], a[0]))
    for term, other in zip(terms, others):
        same(term, other)
    same(sum((x[0] + 2.0 * k for k in range(count)), x[0]), sum((a[0] + 2.0 * k for k in range(count)), a[0]))


def test_a_loop_keeps_few_arrays_alive(queue, x, values):
    pool = dm.pool(queue.device)
    before = pool.used
    pool.reset_peak()
    y = x
    for _ in range(500):
        y = y * 0.5 + 1
    assert float(y[5]) == pytest.approx(2.0)
    assert pool.peak - before <= 8 * SIZE


# --- Operands that are overwritten -----------------------------------------------------------------------------------


def by_kernel(x):
    queue, program = x.queue, None
    if queue.device.backend == "host":
        program = drupe.Program("kernel void put(double *x) { x[0] = 5; }", queue=queue, language="c")
    else:
        program = drupe.Program("kernel void put(global double *x) { x[0] = 5; }", queue=queue)
    program.put(x, global_size=1)


def by_a_view_of_numpy(x):
    try:
        np.asarray(x)[0] = 5
    except (TypeError, ValueError, BufferError):
        pytest.skip("NumPy cannot reach this memory")


def by_a_host_task(x):
    try:
        a = np.asarray(x)
    except (TypeError, ValueError, BufferError):
        pytest.skip("NumPy cannot reach this memory")
    x.queue.host_task(a.__setitem__, (0, 5.0))


def by_another_queue(x):
    other = drupe.Queue(x.queue.device, x.queue.context)
    other.fill(x.usm_data, 5, 8, dtype="float64", wait_for=[x.queue.barrier()]).wait()


def by_memcpy(x):
    x.queue.memcpy(x.usm_data, np.array([5.0]), 8)


def by_out(x):
    da.where(da.arange(N, dtype="int64", queue=x.queue) == 0, 5.0, x, out=x)


def set_first(x):
    x[0] = 5


def set_all(x):
    x[...] = da.concat([da.full(1, 5.0, queue=x.queue), x[1:]]) * 1


def set_by_mask(x):
    x[da.arange(N, dtype="int64", queue=x.queue) == 0] = 5


def set_by_index(x):
    x[da.asarray(np.array([0]), queue=x.queue)] = 5


def set_a_view(x):
    x.reshape(-1, 4)[:1, :1] = 5


def in_place(x):
    x += (5 - x) * (da.arange(N, dtype="float64", queue=x.queue) == 0)


def in_place_on_a_view(x):
    view = x[:1]
    view *= 0
    view += 5


def by_usm(x):
    x.usm_data.copy_from_host(np.concatenate([[5.0], x.asnumpy()[1:]]).view("uint8"))


WRITERS = [by_kernel, by_a_view_of_numpy, by_a_host_task, by_another_queue, by_memcpy, by_out, set_first, set_all,
           set_by_mask, set_by_index, set_a_view, in_place, in_place_on_a_view, by_usm]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_an_operand_that_is_overwritten(work, x, values, write):
    y = x * 2 + 1
    assert work.new() == []
    write(x)
    z = x - 1
    x.queue.wait()
    same(y, values * 2 + 1)
    values[0] = 5
    same(x, values)
    same(z, values - 1)


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_pending_array_that_is_overwritten(work, x, values, write):
    y = x * 2
    z = y + 1
    assert work.new() == []
    write(y)
    same(z, values * 2 + 1)
    expected = values * 2
    expected[0] = 5
    same(y, expected)


def test_an_operand_that_an_extension_overwrites():
    gemv = ext.build(EXAMPLE, libraries=["openblas"]).gemv
    queue = drupe.Queue("host")
    a, v = da.ones((N, 2), queue=queue), da.ones(2, queue=queue)
    out = da.full(N, 7.0, queue=queue)
    y = out + 1
    gemv(a, v, out)
    gemv(a * 2, v * 3, out2 := da.zeros(N, queue=queue))
    same(y, np.full(N, 8.0))
    same(out, np.full(N, 2.0))
    same(out2, np.full(N, 12.0))


def test_an_operand_of_another_queue(queue, x, values):
    other = drupe.Queue(queue.device, queue.context)
    moved = x.to_device(other)
    y, z = x * 2, moved * 3
    x[:] = 1
    moved[:] = 2
    same(y + z.to_device(queue), values * 2 + values * 3)


# --- Views -----------------------------------------------------------------------------------------------------------

VIEWS = {"slice": lambda a: a[7:], "backwards": lambda a: a[::-1], "transposed": lambda a: a.reshape(200, 200).T,
         "reshaped": lambda a: a.reshape(100, 400), "a new axis": lambda a: a[None], "ellipsis": lambda a: a[...],
         "an element": lambda a: a[3]}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_pending_array_shares_its_memory(x, values, view):
    y, b = x * 2 + 1, values * 2 + 1
    seen, expected = VIEWS[view](y), VIEWS[view](b)
    z = seen + 1
    y += 1
    same(z, expected + 1)
    b += 1
    if np.shares_memory(expected, b):
        same(seen, np.asarray(expected))
        seen[...] = 9
        expected[...] = 9
        same(y, b)


def test_a_pending_array_that_is_broadcast(x, values):
    y = x[:200] * 2
    wide = da.broadcast_to(y, (3, 200))
    z = wide + 1
    y[:] = 0
    same(z, np.broadcast_to(values[:200] * 2, (3, 200)) + 1)


def test_operands_that_are_views(x, values):
    s, a = x.reshape(200, 200), values.reshape(200, 200)
    same(s.T * 2 + s, a.T * 2 + a)
    same(s[::-1] - s * 2, a[::-1] - a * 2)
    same((s[1:, 1:] + s[:-1, :-1]) * s[1:, :-1], (a[1:, 1:] + a[:-1, :-1]) * a[1:, :-1])
    same((s + 1)[::-1] + s, (a + 1)[::-1] + a)
    same((s + 1).T + (s - 1), (a + 1).T + (a - 1))


def test_parts_of_complex_numbers(queue):
    a = np.arange(N) * (1 + 2j)
    x = da.asarray(a, queue=queue)
    y = x + 1
    same(y.real, (a + 1).real.copy())
    y.imag[...] = 3
    same(y, (a + 1).real + 3j)


# --- Addresses that leave --------------------------------------------------------------------------------------------


EXPOSURES = {"_pointer": lambda x: x._pointer, "usm_data": lambda x: x.usm_data,
             "interface": lambda x: x.__sycl_usm_array_interface__, "dlpack": lambda x: x.__dlpack__(),
             "asarray": np.asarray, "memoryview": memoryview}


@pytest.mark.parametrize("how", EXPOSURES)
def test_an_address_means_that_the_values_are_there(work, x, how):
    y = x * 2 + 1
    assert work.new() == []
    try:
        kept = EXPOSURES[how](y)
    except (TypeError, ValueError, BufferError):
        pytest.skip("this memory is not the host's")
    assert len(work.new()) == 1, kept
    x.queue.wait()


@pytest.mark.parametrize("how", ["_pointer", "usm_data", "asarray", "memoryview"])
def test_what_was_exposed_is_read_at_the_call(x, values, how):
    """Whoever has the address may write when the queue is done, and nobody is asked."""
    try:
        kept = EXPOSURES[how](x)
    except (TypeError, ValueError, BufferError):
        pytest.skip("this memory is not the host's")
    y = x * 2 + 1
    x.queue.wait()
    if x.queue.device.backend == "host":
        ctypes.c_double.from_address(x._pointer).value = 1e6
    z = x + 1
    same(y, values * 2 + 1)
    assert kept is not None and float(z[1]) == values[1] + 1


def test_a_view_of_numpy_that_writes_between_calls():
    queue = drupe.Queue("host")
    x = da.zeros(N, queue=queue)
    a = np.asarray(x)
    results = []
    for k in range(5):
        a[:] = k
        results.append(x + 1)
        queue.wait()
    a[:] = -1
    assert [float(y[N - 1]) for y in results] == [1, 2, 3, 4, 5]


def test_borrowed_memory():
    a = np.arange(N, dtype=np.float64)
    queue = drupe.Queue("host")
    x = da.from_dlpack(a)
    y = x * 2
    x.queue.wait()
    a[:] = 0
    assert float(y[N - 1]) == 2 * (N - 1)
    del queue


# --- In place --------------------------------------------------------------------------------------------------------


def test_in_place_on_a_pending_array(x, values):
    y = x * 2
    z = y + 1
    alias = y
    y += 3
    assert alias is y
    y *= y
    same(z, values * 2 + 1)
    same(y, (values * 2 + 3) ** 2)
    same(x, values)


def test_in_place_on_an_array_that_others_see(x, values):
    view, whole = x[1:], x[...]
    y = x + 1
    x *= 2
    x -= y
    expected = values * 2 - (values + 1)
    same(y, values + 1)
    same(x, expected)
    same(view, expected[1:])
    same(whole, expected)


def test_in_place_by_a_pending_array(x, values):
    y = x * 2
    x += y
    x += y * y
    same(y, values * 2)
    same(x, values + values * 2 + (values * 2) * (values * 2))


def test_in_place_of_another_type(queue):
    a = np.arange(N, dtype="int16")
    x = da.asarray(a, queue=queue)
    y = x * 3
    y += x.astype("int8")
    b = a * np.int16(3)
    b += a.astype("int8")
    same(y, b)
    with pytest.raises(drupe.InvalidArgumentError, match="in place"):
        y += 1.5
    same(y, b)


def test_an_array_that_the_assigned_expression_reads_is_stored_to(work, x, values):
    y = x * 1.0
    same(y, values)
    work.new()
    y[...] = x * 2 + y * 3 - y
    same(y, values * 4)
    assert len(work.new()) == 1


def test_what_reads_an_array_before_it_is_assigned_to_gets_the_old_values(x, values):
    y = x * 1.0
    y.queue.wait()
    before, short = y + 1, y[:1] * 2
    y[...] = x * 2 + y
    same(before, values + 1)
    same(short, values[:1] * 2)
    same(y, values * 3)


def test_what_reads_an_assigned_array_at_another_place_gets_the_old_values(queue):
    a = np.arange(256.0 * 256).reshape(256, 256)
    x = da.asarray(a, queue=queue)
    expected = a.T * 2 + a
    x[...] = x.T * 2 + x
    same(x, expected)
    expected = expected[:, ::-1] - expected[0] + expected
    x[...] = x[:, ::-1] - x[0] + x
    same(x, expected)
    later = (x[0] + 1) * x[:1]  # of another shape, and so by a kernel behind it
    wanted = (expected[0] + 1) * expected[:1]
    x[...] = x * 0.5 + 1
    same(later, wanted)
    x[...] = (x[0] * 2 + 1) + x
    expected = expected * 0.5 + 1
    same(x, (expected[0] * 2 + 1) + expected)


def test_assignments_that_overlap(x, values):
    for text in ("x[1:] = x[:-1] * 2", "x[:-1] = x[1:] - 1", "x[...] = x[::-1] + x", "x[1:] += x[:-1]",
                 "x[::2] = x[::-2]", "x[1:-1] = (x[:-2] + x[2:]) * 0.5", "x += x[:1]"):
        y, b = x + 0, values.copy()
        exec(text.replace("x", "y"))
        exec(text.replace("x", "b"))
        same(y, b)
        y, b = x.copy(), values.copy()
        exec(text.replace("x", "y"))
        exec(text.replace("x", "b"))
        same(y, b)


def test_the_same_memory_by_dlpack(x, values):
    """An array that was taken from another one shares its memory, and each is pending for what writes the other."""
    y = x * 2
    taken = da.from_dlpack(x)
    z = taken + 1
    taken[0] = 5
    w = taken - 1
    x[1] = 6
    same(y, values * 2)
    same(z, values + 1)
    values[0] = 5
    same(w, values - 1)
    values[1] = 6
    same(taken, values)


def test_memory_that_another_process_gets(queue, values):
    if not dm.IPCMemoryHandle.is_available(queue.device):
        pytest.skip("no memory by name here")
    x = da.asarray(values, queue=queue)
    memory, work = x.usm_data, Work(queue)
    queue.wait()
    y = x * 2
    handle = dm.IPCMemoryHandle(memory)
    assert len(work.new()) == 1
    same(y, values * 2)
    del handle
