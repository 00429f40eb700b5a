"""Expressions that wait to be computed, and all that may happen meanwhile: nobody may see a difference to computing each
operation at once."""
import ctypes
import pathlib
import sys
import threading

import faulty
import numpy as np
import pytest

import drupe
import drupe.array as da
import drupe.memory as dm
from drupe import ext

N = 40_000  # elements: enough for operations to wait
SIZE = N * 8
MIB = 1 << 20
EXAMPLE = pathlib.Path(__file__).parents[2] / "notebooks/extension/gemv.c"
ALL = {"DRUPE_FUSE_ABOVE": "0"}


class Work:
    """What was submitted to a queue since the last look, without copies from and to the program."""

    def __init__(self, queue):
        self.queue, self.last = queue, 0
        self.new()

    def new(self):
        records = drupe.trace(after=self.last)
        self.last = records[-1]["id"] if records else self.last
        return [record["label"] for record in records
                if record["queue"] == self.queue.number and record["operation"] == "kernel"]


@pytest.fixture
def work(queue):
    return Work(queue)


@pytest.fixture
def values():
    return np.arange(N, dtype=np.float64) - N // 3


@pytest.fixture
def x(queue, values):
    made = da.asarray(values, queue=queue)
    queue.wait()
    return made


@pytest.fixture
def run(fresh):
    """Run a text in a process of its own where all that can wait does, and what it prints."""
    def in_process(text, timeout=100, **environment):
        result = fresh("import numpy as np\nimport drupe, drupe.array as da\n" + text, timeout=timeout,
                       **{**ALL, **environment})
        assert result.returncode == 0, f"ended with {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    return in_process


def same(x, a):
    got = x.asnumpy()
    assert got.dtype == a.dtype and got.shape == a.shape
    assert got.tobytes() == np.ascontiguousarray(a).tobytes()


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


# --- Numbers ---------------------------------------------------------------------------------------------------------


def test_broadcasting(x, values):
    s, a = x.reshape(200, 200), values.reshape(200, 200)
    row, column = s[:1] * 2 + 1, s[:, :1] - 1
    arow, acolumn = a[:1] * 2 + 1, a[:, :1] - 1
    same(row * column + s, arow * acolumn + a)
    same(s - (column - row[0, 0]), a - (acolumn - arow[0, 0]))


def test_zero_sizes_and_no_axes(run):
    assert run("""if True:
        x = da.zeros((0, 5), device="host") * 2 + 1
        print((x - x).shape, float((x + 1).sum()))
        y = da.asarray(3.0, device="host")
        z = y * 2 + 1
        print(z.shape, float(z), float(z + y), (da.ones((3, 1), device="host") * z + x[:0, :1].sum()).tolist())
    """) == "(0, 5) 0.0\n() 7.0 10.0 [[7.0], [7.0], [7.0]]\n"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_wrap(queue, dtype):
    limits = np.iinfo(dtype)
    a = np.resize(np.array([limits.max, limits.min, 1, 3, limits.max // 2 + 1], dtype), N)
    x = da.asarray(a, queue=queue)
    y, b = (x * x + x) // 3 - x, (a * a + a) // a.dtype.type(3) - a
    same(y, b)
    same(((x + x) > x) * x, ((a + a) > a) * a)


def test_halves_are_rounded_after_each_operation(queue):
    a = np.linspace(0.001, 30, N).astype("float16")
    x = da.asarray(a, queue=queue)
    same((x * x + x) * x - x / 3, (a * a + a) * a - a / a.dtype.type(3))
    same((x + 2048) - 2048, (a + a.dtype.type(2048)) - a.dtype.type(2048))


def test_casts_round_in_between(queue, values):
    x = da.asarray(values * 1.1, queue=queue)
    a = values * 1.1
    same(x.astype("float32").astype("float64") * 3, a.astype("float32").astype("float64") * 3)
    same((x.astype("int8") + 100).astype("int32"), (a.astype("int64").astype("int8") + np.int8(100)).astype("int32"))
    same(x.astype("bool").astype("float32") + 1, a.astype("bool").astype("float32") + 1)


def test_no_contraction(queue):
    """x*y + z is rounded twice."""
    a = np.random.default_rng(1).random((3, N))
    x, y, z = (da.asarray(one, queue=queue) for one in a)
    same(x * y + z, a[0] * a[1] + a[2])
    same(z - x * y, a[2] - a[0] * a[1])


def test_reductions_give_the_same_bits(run):
    text = """if True:
        import hashlib
        a = np.random.default_rng(3).standard_normal((317, 211)) * 100
        for dtype in ("float64", "float32", "int32"):
            x = da.asarray(a.astype(dtype), device="host")
            for axis in (None, 0, 1):
                for f in (da.sum, da.max, da.min, da.prod, da.any, da.mean, da.var):
                    y = f(x * 2 + 1, axis=axis)
                    print(hashlib.md5(y.asnumpy().tobytes()).hexdigest())
                    z = x * 2 + 1
                    y = f(z, axis=axis)
                    print(hashlib.md5((y + f(z, axis=axis)).asnumpy().tobytes() + z.asnumpy().tobytes()).hexdigest())
    """
    told = [run(text), run(text, DRUPE_FUSE="0"), run(text, DRUPE_FUSE="steps"), run(text, DRUPE_FUSE_MOST="1")]
    assert told[0].count("\n") == 126 and told[1:] == told[:1] * 3


def test_a_reduction_of_what_was_settled_meanwhile(run):
    """Its kernel is over: it must not be taken for one of those that are pending now."""
    assert run("""if True:
        queue = drupe.Queue("host")
        x = da.arange(30, dtype="int32", queue=queue) * 1
        queue.wait()
        other = da.full(30, 1000, dtype="int32", queue=queue) + da.arange(30, dtype="int32", queue=queue)
        print(int(da.max(x)), int(da.max(other)), int(x.sum()))
    """) == "29 1029 435\n"


# --- Errors ----------------------------------------------------------------------------------------------------------


def test_errors_come_at_the_call(work, x):
    y = x * 2
    other = drupe.Queue(x.queue.device)
    for wrong, error in [(lambda: y + x[:7], ValueError), (lambda: y & 1, (TypeError, ValueError)),
                         (lambda: y + da.ones(N, queue=other), drupe.ExecutionPlacementError),
                         (lambda: y[N], IndexError), (lambda: da.add(y, 1, out=da.ones(3, queue=x.queue)), ValueError)]:
        with pytest.raises(error) as caught:
            wrong()
        assert caught.traceback[-1].path == pathlib.Path(__file__) or caught.traceback[-2].path == pathlib.Path(__file__)


def test_a_refused_kernel_is_the_error_of_all_outputs(fresh):
    result = fresh("""if True:
        import numpy as np, drupe, drupe.array as da, fault_layer
        queue = drupe.Queue("host")
        x = da.asarray(np.arange(30.0), queue=queue)
        queue.wait()
        y = x * 2 + 1
        z = y * 3
        fault_layer.plan("submit_kernel:1=INTERNAL,submit_kernel:2=INTERNAL")
        for one in (y, z, y, z):
            try:
                one.asnumpy()
                print("values")
            except drupe.DeviceError as error:
                print(type(error).__name__)
        fault_layer.plan(None)
        print((x + 1).tolist()[3])
        try:
            print((z + 1).tolist())
        except drupe.DeviceError as error:
            print(type(error).__name__)
    """, **ALL, **faulty.environment())
    assert result.stdout.split() == ["InternalError"] * 4 + ["4.0", "InternalError"], result


def test_a_late_failure_marks_all_outputs(queue, x):
    opened = threading.Event()

    def fail():
        opened.wait()
        raise RuntimeError("boom")

    queue.host_task(fail)
    y = x * 2 + 1
    z = y * 3
    same_time = da.sum(z)
    z.shape  # noqa: B018 (needs no values)
    opened.set()
    with pytest.raises(drupe.DeviceError, match="boom"):
        queue.wait()
    for one in (y, z, same_time):
        with pytest.raises(drupe.DeviceError, match="boom"):
            one.asnumpy()
        with pytest.raises(drupe.DeviceError, match="boom"):
            (one + 1).asnumpy()
    assert float((x + 1)[0]) == float(x[0]) + 1


def test_memory_that_comes_back(queue, x, values):
    """A MemoryError loses nothing: the same array has its values once there is room."""
    pool = dm.pool(queue.device)
    y = x * 2
    z = y + 1
    pool.trim()
    held = da.empty(N, queue=queue)
    y2 = x - 1
    told = 0
    try:
        pool.limit = max(pool.reserved, 1)
        pool.trim()
        pool.limit = max(pool.reserved, 1)
        for one in (z, y, y2):
            try:
                one.asnumpy()
            except drupe.DeviceMemoryError as error:
                assert "limit is" in str(error)
                told += 1
    finally:
        pool.limit = None
    del held
    same(z, values * 2 + 1)
    same(y, values * 2)
    same(y2, values - 1)
    assert told


@pytest.mark.parametrize("call", range(1, 12))
def test_every_failing_allocation_is_survived(fresh, call):
    result = fresh(f"""if True:
        import numpy as np, drupe, drupe.array as da, fault_layer
        queue = drupe.Queue("host")
        a = np.arange(40000.0)
        x = da.asarray(a, queue=queue)
        queue.wait()
        def all():
            y = x * 2 + 1
            z = y * 3
            t = z.reshape(200, 200)[:1] * 2 + y.reshape(200, 200)
            return y, z, t, da.sum(t * 2, axis=0)
        fault_layer.plan("any:{call}+=NO_MEMORY")
        told = []
        try:
            told = all()
        except drupe.DeviceError as error:
            assert "NO_MEMORY" in error.status or isinstance(error, MemoryError), error
        for one in told:
            try:
                one.asnumpy()
            except drupe.DeviceError as error:
                assert isinstance(error, MemoryError), error
        fault_layer.plan(None)
        told = told or all()
        b = a * 2 + 1
        c = b * 3
        d = c.reshape(200, 200)[:1] * 2 + b.reshape(200, 200)
        for one, other in zip(told, (b, c, d)):
            assert np.array_equal(one.asnumpy(), other)
        assert np.allclose(told[3].asnumpy(), (d * 2).sum(0))
        print("good", fault_layer.made() >= 0)
    """, **faulty.environment())
    assert result.stdout.split() == ["good", "True"], result


def test_an_interrupt_while_it_waits_for_memory(run):
    assert run("""if True:
        import signal, threading
        import drupe.memory as dm
        queue = drupe.Queue("host")
        pool = dm.pool(queue.device)
        def ring(number, frame):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, ring)
        x = da.asarray(np.arange(1 << 17, dtype="float64"), queue=queue)
        queue.wait()
        opened = threading.Event()
        queue.host_task(opened.wait)
        y = x * 2 + 1
        pool.limit = pool.reserved + 1
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            y.asnumpy()
        except (KeyboardInterrupt, drupe.DeviceMemoryError) as error:
            print("stopped")
        signal.setitimer(signal.ITIMER_REAL, 0)
        opened.set()
        pool.limit = None
        try:
            queue.wait()
            y.asnumpy()
        except drupe.CancelledError:
            y = x * 2 + 1  # it was submitted, and the interrupt cancelled it
        print(np.array_equal(y.asnumpy(), np.arange(1 << 17) * 2.0 + 1))
    """) == "stopped\nTrue\n"


# --- Order, threads, processes ---------------------------------------------------------------------------------------


def test_a_barrier_and_events_of_an_unordered_queue(device, values):
    queue = drupe.Queue(device, in_order=False)
    work = Work(queue)
    x = da.asarray(values, queue=queue)
    y = x * 2 + 1
    event = queue.barrier()
    assert len(work.new()) == 1
    x[:] = 0
    z = x + y
    event.wait()
    same(y, values * 2 + 1)
    same(z, values * 2 + 1)


def test_tasks_of_the_host_stand_behind(queue, work, x):
    y = x * 2
    told = []
    queue.host_task(told.append, (1,))
    assert len(work.new()) == 1
    queue.wait()
    assert told == [1] and float(y[0]) == 2 * float(x[0])


def test_a_wait_and_the_end_of_checks_settle(queue, work, x):
    y = x * 2
    queue.wait()
    assert len(work.new()) == 1
    assert float(y[3]) == 2 * float(x[3])


def test_checked_mode_computes_at_once():
    queue = drupe.Queue("host")
    work = Work(queue)
    x = da.ones(N, queue=queue)
    with drupe.checked():
        y = x * 2
        z = y + 1
        assert len(work.new()) >= 2
    w = x * 2
    assert work.new() == []
    with drupe.checked():
        v = w + 1
        assert float(v[0]) == 3.0
    assert float(z[0]) == 3.0 and float(w[0]) == 2.0


def test_switched_off(run):
    text = """if True:
        queue = drupe.Queue("host")
        x = da.ones(50_000, queue=queue)
        queue.wait()
        before = drupe.trace()[-1]["id"]
        y = x * 2 + 1
        print(len([r for r in drupe.trace(after=before) if r["operation"] == "kernel"]), float(y[0]))
    """
    assert run(text, DRUPE_FUSE="0") == "2 3.0\n"
    assert run(text) == "0 3.0\n"


def test_small_arrays_of_the_host_are_computed_at_once():
    queue = drupe.Queue("host")
    x, work = da.ones(100, queue=queue), Work(queue)
    y = x * 2
    assert len(work.new()) == 1 and float(y[0]) == 2.0


def test_threads_that_share_arrays(queue, values):
    """All of them take the same pending arrays, and each has some of its own."""
    x = da.asarray(values, queue=queue)
    wrong, start = [], threading.Barrier(4)

    def work(k):
        start.wait()
        for i in range(30):
            y = shared[i % len(shared)] * k + i
            z = y - shared[(i + k) % len(shared)]
            if i % 3 == 0:
                float(da.sum(z))
            expected = (values * (i % 8 + 1) * k + i) - values * ((i + k) % 8 + 1)
            if not np.array_equal(z.asnumpy(), expected):
                wrong.append((k, i))

    shared = [x * (i + 1) for i in range(8)]
    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_threads_with_queues_of_their_own_and_little_memory(device):
    """Each settles its own; a thread that waits for memory lets the others go on."""
    wrong = []

    def work(k):
        queue = drupe.Queue(device)
        x = da.full(N, float(k), queue=queue)
        for i in range(40):
            x = x * 0.5 + k
        if not np.allclose(x.asnumpy(), 2 * k, atol=1e-6):
            wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_a_child_process_has_none_of_it(run):
    assert run("""if True:
        import os, threading, time
        queue = drupe.Queue("host")
        x = da.asarray(np.arange(30.0), queue=queue)
        queue.wait()
        y = x * 2 + 1
        def busy():
            while not done:
                z = da.ones(30, queue=other) * 2 + 1
                z.asnumpy()
        other, done = drupe.Queue("host"), []
        thread = threading.Thread(target=busy)
        thread.start()
        ended = []
        for k in range(20):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    y.asnumpy()
                except drupe.DeviceError as problem:
                    status = 0 if "fork" in str(problem) else 2
                try:
                    y + 1
                    status = 3
                except drupe.DeviceError:
                    pass
                del y, x
                os._exit(status)
            for _ in range(1000):
                found, code = os.waitpid(pid, os.WNOHANG)
                if found:
                    break
                time.sleep(0.01)
            else:
                os.kill(pid, 9)
                print("a child hangs")
                os.waitpid(pid, 0)
            ended.append(os.waitstatus_to_exitcode(code))
        done.append(1)
        thread.join()
        print(set(ended), float(y[1]))
    """) == "{0} 3.0\n"


def test_the_end_of_a_process_with_pending_arrays(run):
    assert run("""if True:
        x = da.ones(30, device="host")
        y = x * 2 + 1
        z = [y + k for k in range(20)]
        class Late:
            def __del__(self):
                global y
                y = None
        late = Late()
        print("end")
    """) == "end\n"


def test_a_queue_that_only_pending_work_has(run):
    assert run("""if True:
        import gc
        def make():
            queue = drupe.Queue("host")
            return da.asarray(np.arange(30.0), queue=queue) * 2 + 1
        x = make()
        gc.collect()
        print(float(x[3]))
        y = make()
        del y
        print(drupe._engine._live()["Queue"] <= 2)
    """) == "7.0\nTrue\n"


def test_signals_in_a_loop_lose_nothing(run):
    assert run("""if True:
        import signal
        def ring(number, frame):
            rung.append(number)
        rung = []
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        x, a = da.asarray(np.arange(100.0), device="host"), np.arange(100.0)
        for k in range(3000):
            x, a = x * 0.5 + 1, a * 0.5 + 1
            if k % 7 == 0:
                x += 1
                a += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(np.array_equal(x.asnumpy(), a), len(rung) > 0)
    """) == "True True\n"


def test_nothing_is_left_behind(arrays_are_dropped, queue, values):
    for _ in range(5):
        x = da.asarray(values, queue=queue)
        y = x * 2 + 1
        z = y * x
        del x, y
        z += 1
        float(da.sum(z * 2))
        del z
