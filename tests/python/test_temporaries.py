"""`2*x + 1` is computed in the product's memory, where nobody can see it; a loop is not far ahead of its device."""
import asyncio
import functools
import operator
import sys
import threading

import numpy as np
import pytest

import drupe
import drupe.array as da
import drupe.memory as dm

N = 20_000
SIZE = N * 8
# From 3.14 on a reference count does not tell what a stack owns.
takes = pytest.mark.skipif(sys.version_info >= (3, 14), reason="temporary values are not known there")


@pytest.fixture
def x(queue):
    made = da.asarray(np.arange(N, dtype=np.float64), queue=queue)
    queue.wait()
    return made


@pytest.fixture
def pool(queue):
    return dm.pool(queue.device)


def arrays_needed(pool, function):
    """How many arrays there were at most beside those from before."""
    function()  # kernels are built
    before = pool.used
    pool.reset_peak()
    result = function()
    peak = pool.peak
    del result
    return (peak - before) // SIZE


def in_a_loop(x):
    for k in range(3):
        if k != 1:
            y = 2 * x + 1
        else:
            continue
    return y


def in_try(x):
    try:
        with open("/dev/null") as _:
            return [0, (x * 3) - 1][1]
    finally:
        pass


def in_a_generator(x):
    def make():
        for factor in (2, 3):
            yield x * factor + 1
    return list(make())[0]


def in_a_coroutine(x):
    async def make():
        await asyncio.sleep(0)
        return x * 2 + 1
    return asyncio.run(make())


def in_arguments(x):
    return (lambda a, b, *rest, **more: more["c"])(1, x.dtype, *(2, 3), c=x * 2 + 1)


def in_a_choice(x):
    return (x * 2 + 1 if x is not None and x.ndim == 1 else None) or 3 if x is None else -(x * 2) + 5


FORMS = {
    "scalars": (lambda x: 2 * x + 1, 1),
    "the second operand": (lambda x: 1 - x * 2, 1),
    "both": (lambda x: (x + 1) * (x - 1), 2),
    "a chain": (lambda x: ((x + 1) * 2 - x) / 3 + x, 1),
    "in a loop": (in_a_loop, 2),  # `y` is held while its successor is made
    "in try and with": (in_try, 1),
    "in arguments": (in_arguments, 1),
    "in a choice": (in_a_choice, 2),
    "in a comprehension": (lambda x: [k * x + 1 for k in range(2)][1], 2),
}


@takes
@pytest.mark.parametrize("form", FORMS)
def test_takes_the_memory(pool, x, form):
    function, most = FORMS[form]
    expected = function(x.asnumpy())
    assert np.array_equal(function(x).asnumpy(), expected)
    assert arrays_needed(pool, lambda: function(x)) == most
    assert np.array_equal(x.asnumpy(), np.arange(N))


@pytest.mark.parametrize("form", [in_a_generator, in_a_coroutine], ids=lambda form: form.__name__)
def test_frames_that_are_left(x, form):
    assert np.array_equal(form(x).asnumpy(), form(x.asnumpy()))


@takes
def test_only_what_fits(pool, x):
    assert arrays_needed(pool, lambda: (x * 2)[::2] + 1) == 1  # half of one, beside a whole
    assert arrays_needed(pool, lambda: (x * 2) > 3) == 1
    small = da.arange(10, dtype="int32", queue=x.queue)
    assert np.array_equal(((small + 1) / 2).asnumpy(), (np.arange(10) + 1) / 2)
    column = da.reshape(small, (10, 1))
    assert ((column + 1) * small).shape == (10, 10)


# --- What somebody can still see ------------------------------------------------------------------------------

def test_variables_stay(x):
    kept = x * 2
    assert float((kept + 1)[1]) == 3 and float(kept[1]) == 2
    assert float(((named := x * 3) + 1)[1]) == 4 and float(named[1]) == 3
    box = [x * 4]
    assert float((box[0] + 1)[1]) == 5 and float(box[0][1]) == 4


def test_views_of_variables_stay(x):
    for view in (lambda: x[:], lambda: da.reshape(x, (N,)), lambda: x.T):
        assert float((view() + 1)[5]) == 6
    assert np.array_equal(x.asnumpy(), np.arange(N))


def test_views_of_a_temporary_value_stay(x):
    views = []

    def keep(made):
        views.append(made[1:])
        return made

    assert float((keep(x * 2) + 100)[1]) == 102
    assert float(views[0][0]) == 2


def test_memory_of_a_temporary_value_stays(x):
    memories = []

    def keep(made):
        memories.append(made.usm_data)
        return made

    assert float((keep(x * 2) + 100)[1]) == 102
    assert np.frombuffer(memories[0].copy_to_host(), np.float64)[1] == 2


def test_one_reference_of_a_callable(x):
    """The only reference is another object's, whose call is no binary operation."""
    added = functools.partial(operator.add, x * 2)
    assert [float(added(1)[1]) for _ in range(3)] == [3, 3, 3]


def test_one_reference_of_an_array_of_objects(x):
    """NumPy's operator runs ours, with references that its array holds."""
    objects = np.empty(1, object)
    objects[0] = x * 2
    for _ in range(3):
        assert float((objects + 1)[0][1]) == 3
        assert float((1 - objects)[0][1]) == -1
    assert float(objects[0][1]) == 2


def test_what_lay_on_the_stack_before(x):
    """The stack above the operands of NumPy's operator still has the pair that ours is run with."""
    def store(a, b, c, made, one):
        objects[0] = made

    objects = np.empty(1, object)
    for form in range(3):
        if form == 0:
            store(0, 0, 0, x * 2, 1)
        elif form == 1:
            (lambda made, one: store(0, 0, 0, made, one))(x * 2, 1)
        else:
            operator.setitem(*(objects, 0, x * 2))
        first = objects + 1
        second = objects + 1
        assert float(first[0][1]) == float(second[0][1]) == 3
        assert float(objects[0][1]) == 2


def test_a_result_that_did_not_come_about(queue, x):
    """It does not say that it holds an earlier value, which was the product's."""
    opened = threading.Event()

    def fail():
        opened.wait()
        raise ValueError("as planned")

    task = queue.host_task(fail)
    result = x * 2 + 1
    opened.set()
    with pytest.raises(drupe.DeviceError):
        queue.wait()
    with pytest.raises(drupe.DependencyError, match="It holds no result"):
        result.asnumpy()
    del task


# --- How far a loop is ahead ------------------------------------------------------------------------------------

MANY = 700
KERNEL = {"host": ("c", "kernel void slow(double *out, int rounds)"),
          "opencl": ("opencl", "kernel void slow(global double *out, int rounds)")}
BODY = """
{
    double value = out[get_global_id(0)];
    for (int i = 0; i < rounds; i++) value = value * 0.5 + 1;
    out[get_global_id(0)] = value;
}
"""


def most_pending(queue, submit):
    submit()
    queue.wait()
    most = 0
    for _ in range(MANY):
        submit()
        most = max(most, queue.pending)
    queue.wait()
    return most


@pytest.fixture
def big(queue):
    return da.full(100_000, 0.5, dtype="float64", queue=queue)


def test_array_operations_wait_for_the_device(queue, big):
    assert most_pending(queue, lambda: da.sin(big)) < 600


def test_operations_in_place_wait_for_the_device(queue, big):
    assert most_pending(queue, lambda: da.sin(big, out=big)) < 600


def test_kernels_wait_for_the_device(queue, big):
    language, head = KERNEL[queue.device.backend]
    slow = drupe.Program(head + BODY, device=queue.device, language=language).slow
    assert most_pending(queue, lambda: slow(big[:1], 200_000, global_size=1)) < 600


def test_work_behind_the_programs_own_does_not_wait(queue, big):
    """What is oldest is the program's to end, so waiting for it would be for ever."""
    gate = threading.Event()
    task = queue.host_task(gate.wait)
    for _ in range(MANY):
        da.add(big, 1, out=big)
    gate.set()
    queue.wait()
    assert float(big[0]) == 0.5 + MANY
    del task


@pytest.mark.parametrize("function", [lambda x: da.stack([x, x]), lambda x: da.concat([x, x]),
                                      lambda x: da.concat([da.roll(x, 5), x])])
def test_functions_that_copy_use_memory_again_at_once(queue, x, pool, function):
    """A loop of them needs what one of them needs, however far it is ahead of the device."""
    function(x)
    queue.wait()
    gate = threading.Event()
    task = queue.host_task(gate.wait)
    before = pool.in_flight
    for _ in range(20):
        made = function(x)
    flying = pool.in_flight - before
    gate.set()
    task.wait()
    values = da.asnumpy(made.reshape(-1))
    assert values.size == 2 * N and np.array_equal(values[N:], da.asnumpy(x))
    assert flying <= 8 * SIZE
