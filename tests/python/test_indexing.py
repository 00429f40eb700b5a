"""Indexing by arrays and masks, and the functions of it, against NumPy."""
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drupe
import drupe.array as da

I = np.array  # noqa: E741
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
KINDS = [["bool"], INTEGERS[::2], INTEGERS[1::2], ["float16", "float64", "float32"], ["complex64", "complex128"]]
BASE = np.arange(60.).reshape(3, 4, 5)


def to_device(key, device):
    """A key with the arrays of NumPy copied."""
    if isinstance(key, tuple):
        return tuple(to_device(k, device) for k in key)
    return da.asarray(key, device=device) if isinstance(key, np.ndarray) else key


def same(x, expected):
    assert x.shape == expected.shape and x.dtype.name == expected.dtype.name
    np.testing.assert_array_equal(x.asnumpy(), expected)


def check(a, x, key, device):
    """Reading, and writing an array, a broadcast row and a number."""
    picked, on_device = a[key], to_device(key, device)
    same(x[on_device], picked)
    numbers = np.arange(picked.size).reshape(picked.shape).astype(a.dtype)
    for value in (numbers, np.ones((1,) * picked.ndim, a.dtype), 1):
        b, y = a.copy(), da.asarray(a, device=device)
        b[key] = value
        y[on_device] = da.asarray(value, device=device) if isinstance(value, np.ndarray) else value
        same(y, b)


KEYS = [
    I([0, 2]), I([[0, 2], [-1, 1]]), [0, 2], [], I(1), I([], dtype="int64"), True, False, BASE > 30,
    BASE[:, 0, 0] > 3, BASE[:, :, 0] > 3, BASE < 0, (I([0, 1]), I([1, 3])), (I([0, 1]), slice(None), I([1, 3])),
    (I([2]), Ellipsis, I([1, 3])), (slice(None), I([1, 3]), 0), (0, slice(None), I([1, 3])), (Ellipsis, I([1, 3])),
    (slice(None), [0, 1], [[1], [2]]), (None, I([0, 1]), Ellipsis, I([1, 3])),
    (I([0, 1]), Ellipsis, None, I([1, 3]), I([1, 1])), (slice(None), BASE[0] > 7),
    (slice(None), BASE[0, :, 0] > 2, 1), (BASE[:, 0, 0] > 3, I([1, 2])), (BASE[:, 0, 0] > 3, 0),
    (BASE[:, 0, 0] > 3, slice(1, 3)), (BASE[:, 0, 0] > 3, slice(None), I([1, 2])), (0, BASE[0, :, 0] > 2),
    (0, BASE[0] > 2), (slice(None, None, 2), BASE[0, :, 0] > 2, slice(None, None, -2)), (True, I([0, 1])),
    (slice(None), True), (I([0]), False), (slice(None), None, I([1, 0, 1]), I([0, 0, 0])),
    (I([[0], [1]]), I([[2, 3]]), slice(1, 4, 2)), (I(0), I(1), I(2)), (I(0), slice(1, 3), I(2)),
    (BASE[:, 0, 0] > 3, I(2)), (I([0, 0, 1]), I([3, 3, 3]), I([4, 4, 0])), ([True, False, True], 1),
    (np.int32(1), I([2, 2])), ((0, 1), I([2, 2]))]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_key(device, key):
    check(BASE, da.asarray(BASE, device=device), key, device)


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_key_of_a_view(device, key):
    """A view with all kinds of strides is written where it is."""
    b = np.arange(2 * 60 * 2.).reshape(10, 4, 6)
    y = da.asarray(b, device=device)
    np.testing.assert_array_equal(b.T[::-1, :, ::2].shape, (6, 4, 5))
    a, x = b.T[:3, :, ::-2], da.permute_dims(y, (2, 1, 0))[:3, :, ::-2]
    on_device = to_device(key, device)
    same(x[on_device], a[key])
    value = -1. - np.arange(a[key].size).reshape(a[key].shape)
    a[key] = value
    x[on_device] = da.asarray(value, device=device)
    same(y, b)


@pytest.mark.parametrize("types", KINDS, ids=lambda types: types[-1])
def test_every_type(device, types):
    """OpenCL builds a program for each type, which takes long: there it is one type of each kind."""
    for dtype in types if device.filter_string.startswith("host") else types[-1:]:
        a = (np.arange(40).reshape(8, 5) % 3).astype(dtype)
        for key in (I([3, 3, -8]), a != 0, (slice(None), I([1, 4])), a[:, 0] == 1):
            check(a, da.asarray(a, device=device), key, device)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_type_of_index(device, dtype):
    index = I([2, 0 if dtype[0] == "u" else -3], dtype=dtype)
    x = da.asarray(BASE, device=device)
    same(x[index], BASE[index])
    same(x[da.asarray(index, device=device)], BASE[index])
    same(da.repeat(x, da.asarray(index[:1], device=device), axis=0), np.repeat(BASE, 2, axis=0))


def test_more_index_arrays_than_one_call_takes(device):
    a = np.arange(3**7).reshape((3,) * 7)
    x = da.asarray(a, device=device)
    key = tuple(np.random.default_rng(d).integers(-3, 3, (4, 1) if d % 2 else (5,)) for d in range(7))
    check(a, x, key, device)
    back = (slice(None, None, -1),) * 7
    same(x[back][to_device(key, device)], a[back][key])
    late = da.asarray([3], device=device)
    with pytest.raises(drupe.DeviceError, match="index 3 is out of bounds for axis 6 with size 3"):
        x[(late * 0,) * 6 + (late,)].asnumpy()


# --- Random keys -----------------------------------------------------------------------------------------------------

@st.composite
def arrays_and_keys(draw):
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=4)))
    common = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    key, axis = [], 0
    while axis < len(shape) and draw(st.integers(0, 9)) < 9:
        kind, length = draw(st.sampled_from("issnaaam")), shape[axis]
        if kind == "n":
            key.append(None)
            continue
        if kind == "i" and length:
            key.append(draw(st.integers(-length, length - 1)))
        elif kind == "a" and (length or 0 in common):
            own = tuple(draw(st.sampled_from([n, 1])) if n else n for n in common[draw(st.integers(0, len(common))):])
            flat = draw(st.lists(st.integers(-length, max(length - 1, 0)), min_size=int(np.prod(own)),
                                 max_size=int(np.prod(own))))
            key.append(np.array(flat, dtype=draw(st.sampled_from(["int8", "int32", "int64"]))).reshape(own))
        elif kind == "m" and not any(getattr(k, "dtype", None) == bool for k in key):
            ndim = draw(st.integers(1, len(shape) - axis))
            size = int(np.prod(shape[axis:axis + ndim]))
            flat = draw(st.lists(st.booleans(), min_size=size, max_size=size))
            key.append(np.array(flat, dtype=bool).reshape(shape[axis:axis + ndim]))
            axis += ndim - 1
        else:
            step = draw(st.sampled_from([1, 1, 2, -1, -2]))
            key.append(slice(draw(st.none() | st.integers(-6, 6)), draw(st.none() | st.integers(-6, 6)), step))
        axis += 1
    if draw(st.booleans()):
        key.append(Ellipsis)
    return shape, tuple(key)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(case=arrays_and_keys(), dtype=st.sampled_from(["int32", "float64"]), seed=st.integers(0, 99))
def test_random_keys(device, case, dtype, seed):
    shape, key = case
    a = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    x = da.asarray(a, device=device)
    try:
        expected = a[key]
    except IndexError:  # index arrays and a mask that do not broadcast together
        with pytest.raises(IndexError):
            x[to_device(key, device)]
        return
    same(x[to_device(key, device)], expected)
    value = np.random.default_rng(seed).integers(100, 200, expected.shape).astype("int64")
    value = value[(slice(None, 1),) * (value.ndim and seed % 2)]
    b = a.copy()
    b[key] = value
    x[to_device(key, device)] = da.asarray(value, device=device)
    same(x, b)


# --- Many elements: several processors ------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(3)
    return rng.normal(size=300_000), rng.integers(-300_000, 300_000, 200_000), rng.normal(size=200_000)


def test_many(device, many):
    a, index, values = many
    x, i = da.asarray(a, device=device), da.asarray(index, device=device)
    same(x[i], a[index])
    same(x[x > 0.5], a[a > 0.5])
    same(da.nonzero(x > 1)[0], np.nonzero(a > 1)[0])
    x[i % 1000] = da.asarray(values, device=device)  # each one many times: the last one stays
    a = a.copy()
    a[index % 1000] = values
    same(x, a)
    picked = -a[a < 0]
    x[x < 0] = da.asarray(picked, device=device)
    same(x, np.abs(a))


def test_many_rows(device, many):
    a, index = many[0].reshape(-1, 30), many[1][:9000] % 10_000
    x, i = da.asarray(a, device=device), da.asarray(index, device=device)
    same(x[i], a[index])
    same(x[:, i[:70] % 30], a[:, index[:70] % 30])
    same(x[x[:, 0] > 0], a[a[:, 0] > 0])
    same(da.argwhere(x > 0), np.argwhere(a > 0))
    b = a.copy()
    b[index] = a[:9000]
    x[i] = da.asarray(a[:9000], device=device)
    same(x, b)
    b[:, index[:40] % 30] = a[:, :1]
    x[:, i[:40] % 30] = da.asarray(a[:, :1], device=device)
    same(x, b)


# --- Assignment -----------------------------------------------------------------------------------------------------

def test_values_are_cast(device):
    for key in (I([0, 2]), I([True, False, True])):
        for value in (2.75, True, [1.5, -2.5], np.array([7., 8.])):
            a, x = np.arange(3), da.arange(3, device=device)
            a[key] = value
            x[to_device(key, device)] = value
            same(x, a)


def test_an_array_and_its_own_elements(device):
    x, a = da.arange(6, device=device), np.arange(6)
    x[x] = x[::-1]
    a[a] = a[::-1].copy()
    same(x, a)
    x[x > 2], a[a > 2] = x[:3], a[:3].copy()
    same(x, a)
    y, b = da.asarray([True, False, True], device=device), I([True, False, True])
    y[y], b[b] = da.asarray([False, True], device=device), I([False, True])
    same(y, b)


def test_numbers_by_a_mask_do_not_wait(device):
    queue, go = drupe.Queue(device), threading.Event()
    x = da.zeros(10, queue=queue)
    queue.wait()
    queue.host_task(go.wait)
    x[x == 0] = 3
    x[x > 5] = float("nan")
    x[da.asarray([True] * 5 + [False] * 5, queue=queue)] = da.asarray([1., 2., 3., 4., 5.], queue=queue)
    go.set()
    same(x, I([1., 2., 3., 4., 5., 3., 3., 3., 3., 3.]))


# --- Errors ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("key, text", [
    ((I([0]), I([0]), I([0])), "too many indices"), (I([[True]] * 3), "axis 0 has 2 elements, and the mask has 3"),
    (I([0.5]), "of float64"), ((I([0, 1]), I([0, 1, 2])), "one shape"), ([[True, False]], "axis 0 has 2"),
    ((I([0]), ..., ...), "one ellipsis"), ((I([0]), "a"), "not with str"), ((I([0]), 3), "bounds for axis 1"),
    (np.zeros((2, 3, 1), bool), "too many indices")])
def test_errors_at_once(device, key, text):
    x = da.zeros((2, 3), device=device)
    with pytest.raises(IndexError, match=text):
        x[to_device(key, device)]
    with pytest.raises(IndexError, match=text):
        x[to_device(key, device)] = 1
    same(x, np.zeros((2, 3)))


def test_values_that_do_not_fit(device):
    x = da.zeros((2, 3), device=device)
    for key, value in ((I([0, 1]), np.ones(2)), (x.asnumpy() == 0, np.ones((2, 3))), (I([True, False]), np.ones(4))):
        with pytest.raises(ValueError):
            x[to_device(key, device)] = da.asarray(value, device=device)
    same(x, np.zeros((2, 3)))


@pytest.mark.parametrize("index", [5, -6, 2**62, -2**63])
def test_out_of_bounds_is_told_late(device, index):
    x, i = da.arange(5., device=device), da.asarray([0, index], device=device)
    queue = x.queue
    y = x[i]
    text = f"index {index} is out of bounds for axis 0 with size 5"
    reads = [y.asnumpy, lambda: float(y[0]), lambda: str(y), lambda: (y == 1).tolist(), lambda: da.sum(y * 2).item(),
             lambda: da.nonzero(y)]
    if y.__dlpack_device__()[0] == 1:  # memory that the host can address
        reads.append(lambda: np.asarray(y))
    for read in reads:
        with pytest.raises(IndexError, match=text) as caught:
            read()
        assert type(caught.value) is drupe.OutOfRangeError
    same(x, np.arange(5.))  # nothing else is lost
    x[i] = 9.
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 0"):
        queue.wait()
    same(x, np.arange(5.))  # the loops of the host look at all indices first


def test_a_failed_assignment_leaves_what_was_there(device):
    """Once the failure was told, as after an exception of NumPy's; until then whoever reads fails with it."""
    x, y = da.arange(5., device=device), da.zeros((2, 3), device=device).T
    bad = da.asarray([0, 7], device=device)
    for put in (lambda: x.__setitem__(bad, 9.), lambda: y.__setitem__(bad, 9.),
                lambda: x.__setitem__(da.asarray([True] * 5, device=device), da.asarray([1., 2.], device=device))):
        put()
        with pytest.raises((IndexError, ValueError), match="out of bounds|2 values were assigned"):
            da.sum(x).item() + da.sum(y).item()
        same(x, np.arange(5.))
        same(y, np.zeros((3, 2)))
        same(x * 2, np.arange(5.) * 2)
    # What did not run because of it is told of as ever.
    x[bad] = 9.
    x += 1
    with pytest.raises(IndexError, match="out of bounds"):
        x.queue.wait()
    with pytest.raises(drupe.DeviceError, match="It holds its earlier value"):
        x.asnumpy()
    x.accept_contents()
    same(x, np.arange(5.))


def test_wrong_number_of_values_is_told_late(device):
    x = da.zeros(5, device=device)
    x[da.asarray([True, True, True, False, False], device=device)] = da.asarray([1., 2.], device=device)
    with pytest.raises(ValueError, match="2 values were assigned to the 3 elements where the mask is true"):
        x.queue.wait()
    same(x, np.zeros(5))


def test_an_axis_without_elements(device):
    x = da.zeros((0, 3), device=device)
    with pytest.raises(IndexError, match="axis 0 has no elements"):
        x[da.asarray([0], device=device)]
    same(x[da.asarray([], dtype="int64", device=device)], np.zeros((0, 3)))
    with pytest.raises(IndexError, match="no elements"):
        da.take(x, da.asarray([0], device=device), axis=0, mode="wrap")


def test_queues_must_be_the_same(device):
    other = drupe.Queue(device)
    x, i = da.zeros(3, device=device), da.asarray([0], queue=other)
    for key in (i, i == 0, da.asarray([True, False, True], queue=other)):
        with pytest.raises((drupe.ExecutionPlacementError, IndexError)):
            x[key]


# --- Functions ------------------------------------------------------------------------------------------------------

def test_take(device):
    x = da.asarray(BASE, device=device)
    index = I([[0, 2], [-1, 1]])
    i = da.asarray(index, device=device)
    for axis in (0, 1, -1, None):
        same(da.take(x, i, axis=axis), np.take(BASE, index, axis=axis))
    for mode in ("wrap", "clip"):
        wide = index * 7
        same(da.take(x, da.asarray(wide, device=device), axis=1, mode=mode), np.take(BASE, wide, axis=1, mode=mode))
    same(da.take(x, 1, axis=0), BASE[1])
    same(da.take(x, [], axis=0), np.take(BASE, I([], dtype=int), axis=0))
    with pytest.raises(ValueError, match="mode is"):
        da.take(x, i, axis=0, mode="bounce")
    with pytest.raises(TypeError, match="asarray"):
        da.take(BASE, i)
    with pytest.raises(IndexError):
        da.take(x, i, axis=3)


def test_take_and_put_along_axis(device):
    for axis in (0, 1, 2, -1, None):
        index = BASE.argsort(axis=axis)[::-1] % 3
        x, i = da.asarray(BASE, device=device), da.asarray(index, device=device)
        same(da.take_along_axis(x, i, axis=axis), np.take_along_axis(BASE, index, axis))
        b, cut = BASE.copy(), (slice(None),) * ((axis or 0) % 3) + (slice(0, 2),)
        np.put_along_axis(b, index[cut], -1. - index[cut], axis)
        da.put_along_axis(x, i[cut], -1. - i[cut], axis=axis)
        same(x, b)
    one = I([[[3]]])
    same(da.take_along_axis(x, da.asarray(one, device=device), axis=2), np.take_along_axis(x.asnumpy(), one, 2))
    wide = da.asarray(BASE[:, :1], device=device)
    same(da.take_along_axis(wide, da.asarray(index.reshape(BASE.shape), device=device), axis=2),
         np.take_along_axis(BASE[:, :1], index.reshape(BASE.shape), 2))
    with pytest.raises(ValueError, match="number of dimensions"):
        da.take_along_axis(x, i.reshape(-1), axis=0)


@pytest.mark.parametrize("values", [5, [1, 2], [1, 2, 3, 4, 5, 6], []])
def test_put(device, values):
    for view in (slice(None), slice(None, None, 2)):
        b = np.arange(24).reshape(4, 6)
        y = da.asarray(b, device=device)
        np.put(b[:, view], [0, -1, 3, 0], values)
        da.put(y[:, view], [0, -1, 3, 0], values)
        same(y, b if view == slice(None) else y.asnumpy())
        if view == slice(None):
            np.put(b, [30, -50], 7, mode="clip")
            da.put(y, [30, -50], 7, mode="clip")
            same(y, b)


def test_put_into_a_view(device):
    b = np.arange(24).reshape(4, 6)
    y = da.asarray(b, device=device)
    b[:, ::2].flat[[0, 5, -1]] = [7, 8, 9]
    da.put(y[:, ::2], [0, 5, -1], [7, 8, 9])
    same(y, b)


def test_nonzero_and_its_like(device):
    for a in (BASE % 3, BASE > 20, np.zeros((2, 3)), np.zeros((0, 3)), np.arange(5), np.ones((2, 3))[:, ::2]):
        x = da.asarray(a, device=device)
        for got, expected in zip(da.nonzero(x), np.nonzero(a), strict=True):
            same(got, expected)
        for got, expected in zip(da.where(x), np.where(a), strict=True):
            same(got, expected)
        same(da.flatnonzero(x), np.flatnonzero(a))
        same(da.argwhere(x), np.argwhere(a))
    same(da.argwhere(da.asarray(3, device=device)), np.argwhere(3))
    with pytest.raises(ValueError, match="one dimension at least"):
        da.nonzero(da.asarray(3, device=device))


def test_extract_compress_and_place(device):
    x = da.asarray(BASE, device=device)
    same(da.extract(x > 7, x), np.extract(BASE > 7, BASE))
    for axis, condition in ((0, [True, False, True]), (1, [False, True]), (None, [0, 1, 1]), (2, [1, 0, 0, 2, 0])):
        same(da.compress(condition, x, axis=axis), np.compress(condition, BASE, axis=axis))
    for values in (7., [1., 2.], list(range(90))):
        b, y = BASE.copy(), x.copy()
        np.place(b, BASE > 7, values)
        da.place(y, x > 7, values)
        same(y, b)
    with pytest.raises(ValueError, match="no values"):
        da.place(x, x > 7, [])


def test_repeat_by_an_array(device):
    x = da.asarray(BASE, device=device)
    for axis, repeats in ((0, [2, 0, 1]), (1, [1, 2, 3, 4]), (2, [2]), (None, list(range(60))), (0, [0, 0, 0])):
        same(da.repeat(x, da.asarray(repeats, device=device), axis=axis), np.repeat(BASE, repeats, axis))
        same(da.repeat(x, repeats, axis=axis), np.repeat(BASE, repeats, axis))
    with pytest.raises(ValueError, match="must not be negative, and -1 is"):
        da.repeat(x, [1, -1, 1], axis=0)
    with pytest.raises(ValueError, match="do not fit"):
        da.repeat(x, [1, 2], axis=0)
    with pytest.raises(TypeError, match="integers"):
        da.repeat(x, da.ones(3, device=device), axis=0)


def test_choose_and_select(device):
    a = I([[0, 1, 2], [2, 2, 0]])
    x, choices = da.asarray(a, device=device), [np.arange(3), np.full((2, 1), 7), np.arange(6).reshape(2, 3)]
    same(da.choose(x, [da.asarray(c, device=device) for c in choices]), np.choose(a, choices))
    same(da.choose(x * 2, [da.asarray(c, device=device) for c in choices], mode="clip"),
         np.choose(a * 2, choices, mode="clip"))
    same(da.select([x < 1, x > 1], [x, x * 10], -1), np.select([a < 1, a > 1], [a, a * 10], -1))


@pytest.mark.parametrize("obj", [0, -1, slice(1, 3), slice(None, None, 2), slice(0, 0), [0, -1], [], I([1, 1])],
                         ids=repr)
@pytest.mark.parametrize("axis", [1, None])
def test_delete(device, obj, axis):
    same(da.delete(da.asarray(BASE, device=device), obj, axis=axis), np.delete(BASE, obj, axis))


def test_delete_by_a_mask(device):
    a = np.arange(5)
    x = da.asarray(a, device=device)
    same(da.delete(x, x > 2), np.delete(a, a > 2))


@pytest.mark.parametrize("obj, values", [(0, 7), (-1, [7, 8]), (3, 9.5), ([0, 2], [7, 8]), ([2, 0, 2], [7, 8, 9]),
                                         ([1], [4]), (slice(0, 2), 5)], ids=repr)
def test_insert(device, obj, values):
    a = np.arange(4)
    same(da.insert(da.asarray(a, device=device), obj, values), np.insert(a, obj, values))


def test_insert_along_an_axis(device):
    x = da.asarray(BASE, device=device)
    for obj, values in ((1, 7.), (1, np.arange(5.)), ([0, 2], 3.), ([2], np.ones((3, 1, 5))), ([3, 1], np.arange(5.))):
        expected = np.insert(BASE, obj, values, axis=1)
        same(da.insert(x, obj, da.asarray(values, device=device), axis=1), expected)


def test_iteration_and_scalars_still_are_views(device):
    x = da.zeros((3, 2), device=device)
    x[1][np.int64(0)] = 5
    assert x.tolist() == [[0, 0], [5, 0], [0, 0]]
    y = x[da.asarray([1], device=device)]
    y[:] = 7
    assert x.tolist() == [[0, 0], [5, 0], [0, 0]]


def test_methods(device):
    a = BASE.copy()
    x = da.asarray(a, device=device)
    same(x.take([1, 0], 1), a.take([1, 0], 1))
    same(x.take([70], mode="wrap"), a.take([70], mode="wrap"))
    same(np.take(x, da.asarray([1, 0], device=device), 1), a.take([1, 0], 1))
    same(x.compress([False, True], 0), a.compress([False, True], 0))
    for got, expected in zip(x.nonzero(), a.nonzero(), strict=True):
        same(got, expected)
    a.put([3, 4], 99)
    x.put([3, 4], 99)
    same(x, a)
    choices = [5, da.asarray([6, 7], device=device)]
    same(da.asarray([1, 0], device=device).choose(choices), I([1, 0]).choose([5, [6, 7]]))


def test_a_mask_with_an_empty_axis_picks_nothing(device):
    """The array API: a mask's axis is as long as the array's, or empty."""
    x = da.ones((2, 3), device=device)
    assert x[da.zeros((0, 0), dtype="bool", device=device)].shape == (0,)
    assert x[da.zeros((2, 0), dtype="bool", device=device)].shape == (0,)
    assert x[da.zeros((0,), dtype="bool", device=device)].shape == (0, 3)
    x[da.zeros((0, 0), dtype="bool", device=device)] = 5
    assert x.tolist() == [[1.0] * 3] * 2
    with pytest.raises(IndexError, match="axis 1 has 3 elements, and the mask has 1 there"):
        x[da.zeros((0, 1), dtype="bool", device=device)]
