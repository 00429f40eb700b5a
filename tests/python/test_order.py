"""Running sums, places of extremes, and sorts, against NumPy's."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ordered import DTYPES, FLOATS, REAL, arrays, close, one_of_each_kind, quick, same

import drupe.array as da


def sample(dtype, *shape, seed=1):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    a = (random.standard_normal(shape) * 20).astype("complex128" if dtype.startswith("c") else "float64")
    a = a + 1j * random.standard_normal(shape) if dtype.startswith("c") else a
    return (np.abs(a) if dtype.startswith("u") else a).astype(dtype)


def numpy_sum_type(a):
    return np.sum(a[:0]).dtype


# --- Running sums --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, axis", [((7,), 0), ((3, 5, 2), 0), ((3, 5, 2), 1), ((3, 5, 2), -1), ((4, 300), 0),
                                         ((0, 3), 0), ((2, 0), 1)])
def test_cumulative_sum(device, dtype, shape, axis):
    one_of_each_kind(device, dtype)
    a = sample(dtype, *shape)
    x = da.asarray(a, device=device)
    expected = np.cumsum(a, axis, dtype="float32").astype(a.dtype) if dtype == "float16" else np.cumsum(a, axis)
    close(da.cumulative_sum(x, axis=axis), expected.astype(numpy_sum_type(a)), 1e-3 if dtype == "float16" else 1e-5)
    got = da.cumulative_sum(x, axis=axis, include_initial=True)
    close(got, np.insert(expected, 0, 0, axis), 1e-3 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cumulative_prod(device, dtype):
    one_of_each_kind(device, dtype)
    a = (sample(dtype, 3, 6).astype("complex128" if dtype.startswith("c") else "float64") / 20 + 1).astype(dtype)
    x = da.asarray(a, device=device)
    for axis in (0, 1):
        expected = np.cumprod(a, axis)
        rtol = 1e-2 if dtype == "float16" else 1e-5
        close(da.cumulative_prod(x, axis=axis), expected, rtol)
        close(da.cumulative_prod(x, axis=axis, include_initial=True), np.insert(expected, 0, 1, axis), rtol)


def test_sums_of_long_rows_are_cut_into_parts(device):
    a = sample("float64", 300_001)
    x = da.asarray(a, device=device)
    close(da.cumulative_sum(x), np.cumsum(a), 1e-12)
    whole = (a * 5).astype("int64")
    same(da.cumsum(da.asarray(whole, device=device)), np.cumsum(whole))
    same(da.cumulative_sum(da.asarray(whole, device=device), include_initial=True)[1:], np.cumsum(whole))
    ones = np.where(np.arange(100_000) % 1000 == 0, -1, 1)
    same(da.cumprod(da.asarray(ones, device=device)), np.cumprod(ones))


def test_sums_of_which_a_part_would_overflow(device):
    a = np.where(np.arange(200_000) % 2 == 0, 1e308, -1e308)
    same(da.cumsum(da.asarray(a, device=device)), np.cumsum(a))


def test_sums_are_as_exact_as_from_left_to_right(device):
    a = (np.random.default_rng(3).random(1_000_000) - 0.3).astype("float32")
    exact = np.cumsum(a.astype("float64"))
    ours = np.abs(da.cumsum(da.asarray(a, device=device)).asnumpy() - exact).max()
    assert ours <= 1.5 * np.abs(np.cumsum(a) - exact).max()


@given(a=arrays(REAL), data=st.data())
@quick
def test_sums_of_anything(device, a, data):
    axis = data.draw(st.integers(0, a.ndim - 1))
    with np.errstate(all="ignore"):
        expected = np.cumsum(a, axis)
    close(da.cumsum(da.asarray(a, device=device), axis=axis), expected, 1e-2 if a.dtype == "float16" else 1e-5)


def test_sums_of_views_and_other_types(device):
    a = sample("float64", 6, 8)
    x = da.asarray(a, device=device)
    close(da.cumsum(x[::-1, ::2], axis=0), np.cumsum(a[::-1, ::2], 0))
    close(da.cumsum(x.T, axis=1), np.cumsum(a.T, 1))
    close(da.cumsum(x), np.cumsum(a))
    close(da.cumprod(x[:2] / 20), np.cumprod(a[:2] / 20))
    close(da.cumulative_sum(x, axis=0, dtype="float32"), np.cumsum(a, 0, dtype="float32"), 1e-5)
    same(da.cumulative_sum(da.asarray([True, True], device=device)), np.array([1, 2]))


def test_sums_refused(device):
    x = da.ones((2, 3), device=device)
    with pytest.raises(ValueError, match="axis may be left out"):
        da.cumulative_sum(x)
    with pytest.raises(ValueError, match="axis may be left out"):
        da.cumulative_prod(x[0, 0])
    with pytest.raises(IndexError, match="axis 2"):
        da.cumulative_sum(x, axis=2)
    with pytest.raises(ValueError, match="not computed in bool"):
        da.cumulative_sum(x, axis=0, dtype="bool")
    with pytest.raises(TypeError, match="asarray"):
        da.cumulative_sum(np.ones(3))


# --- Places of extremes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (700,), (2, 3, 4), (300, 3), (5, 20_000), (2, 30_000, 2)])
def test_argmax(device, dtype, shape):
    one_of_each_kind(device, dtype)
    a = sample(dtype, *shape)
    x = da.asarray(a, device=device)
    for axis in (None, *range(a.ndim)):
        same(da.argmax(x, axis=axis), a.argmax(axis))
        same(da.argmin(x, axis=axis), a.argmin(axis))
        same(da.argmax(x, axis=axis, keepdims=True), a.argmax(axis, keepdims=True))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [9, 600, 40_000])
def test_argmax_takes_the_first_nan(device, dtype, n):
    for where in ((0,), (n - 1,), (n // 2, n - 2), (3, n // 3)):
        a = sample(dtype, n)
        a[list(where)] = np.nan
        for b in (a, np.stack([a, a[::-1]]), np.stack([a, a[::-1]], axis=1)):
            x = da.asarray(b, device=device)
            for axis in (None, 0):
                same(da.argmax(x, axis=axis), b.argmax(axis))
                same(da.argmin(x, axis=axis), b.argmin(axis))


@given(a=arrays(min_side=1), data=st.data())
@quick
def test_argmax_of_anything(device, a, data):
    axis = data.draw(st.sampled_from([None, *range(a.ndim)]))
    x = da.asarray(a, device=device)
    same(da.argmax(x, axis=axis), a.argmax(axis))
    same(da.argmin(x, axis=axis), a.argmin(axis))


def test_argmax_of_views_and_none(device):
    a = sample("float64", 6, 8)
    x = da.asarray(a, device=device)
    same(da.argmax(x[::2, ::-1], axis=1), a[::2, ::-1].argmax(1))
    same(da.argmin(x.T), a.T.argmin())
    same(da.argmax(x[0, 0]), np.int64(0))
    same(da.argmax(x[:0], axis=1), a[:0].argmax(1))
    with pytest.raises(ValueError, match="argmax of no elements"):
        da.argmax(x[:0], axis=0)
    with pytest.raises(ValueError, match="argmin of no elements"):
        da.argmin(x[:0])
    with pytest.raises(IndexError, match="axis 2"):
        da.argmax(x, axis=2)


# --- Sorts ---------------------------------------------------------------------------------------------------


def stable(a, axis, descending):
    """Stable places, NaNs last, by NumPy's ascending sort."""
    if not descending:
        return np.argsort(a, axis, kind="stable")
    odd = np.isnan(a) if a.dtype.kind in "fc" else np.zeros(a.shape, bool)
    turned = np.flip(a, axis)
    places = a.shape[axis] - 1 - np.flip(np.argsort(turned, axis, kind="stable"), axis)
    count = odd.sum(axis, keepdims=True)
    if not a.size:
        return places
    rows = np.moveaxis(places, axis, -1).reshape(-1, a.shape[axis]).copy()
    source = np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis])
    for row, n, own in zip(rows, np.moveaxis(count, axis, -1).ravel(), source):
        nans = np.argsort(own, kind="stable")[len(own) - n:]
        row[:] = np.concatenate([row[n:], nans])
    shape = np.moveaxis(a, axis, -1).shape
    return np.moveaxis(rows.reshape(shape), -1, axis)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 25, 3000, 40_000])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(device, dtype, n, descending):
    one_of_each_kind(device, dtype)
    a = sample(dtype, n)
    if a.dtype.kind in "fc":
        a[n // 3::7] = np.nan
        a[n // 2::5] = 0.0
        a[n // 2::10] = -0.0
    x = da.asarray(a, device=device)
    places = stable(a, 0, descending)
    same(da.argsort(x, descending=descending), places)
    same(da.sort(x, descending=descending), a[places])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_of_extremes(device, dtype):
    kind = np.dtype(dtype).kind
    if kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        a = np.array([0, most, least, 1, most - 1, least + 1, most, least] * 9, dtype)
    elif kind == "f":
        info = np.finfo(dtype)
        a = [0.0, -0.0, info.max, info.min, np.inf, -np.inf, info.tiny, -info.tiny, np.nan, -np.nan]
        a = np.array(a * 9, dtype)
    else:
        a = np.array([1, 0, 0, 1] * 20, dtype)
    x = da.asarray(a, device=device)
    for descending in (False, True):
        places = stable(a, 0, descending)
        same(da.argsort(x, descending=descending), places)
        same(da.sort(x, descending=descending), a[places])


@given(a=arrays(), data=st.data())
@quick
def test_sort_of_anything(device, a, data):
    axis, descending = data.draw(st.integers(-a.ndim, a.ndim - 1)), data.draw(st.booleans())
    x = da.asarray(a, device=device)
    places = stable(a, axis, descending)
    same(da.argsort(x, axis=axis, descending=descending), places)
    same(da.sort(x, axis=axis, descending=descending, stable=False), np.take_along_axis(a, places, axis))


def test_sort_of_skewed_keys(device):
    random = np.random.default_rng(5)
    for a in (np.exp(random.standard_normal(100_000) * 50), np.full(50_000, 2.5), np.arange(90_000.0)[::-1],
              np.where(random.random(80_000) < 0.99, 1.0, random.random(80_000)),
              random.integers(-3, 3, 60_000) << 40, random.integers(0, 2**62, 60_000)):
        x = da.asarray(a, device=device)
        same(da.sort(x), np.sort(a))
        same(da.argsort(x), np.argsort(a, kind="stable"))


def test_sort_of_views_and_none(device):
    a = sample("int32", 6, 8, 5)
    x = da.asarray(a, device=device)
    for axis in (0, 1, 2, -1):
        same(da.sort(x[::2, ::-1], axis=axis), np.sort(a[::2, ::-1], axis))
    same(da.sort(x.T, axis=0), np.sort(a.T, 0))
    same(da.sort(x, axis=None), np.sort(a, None))
    same(da.sort(x[:0], axis=0), a[:0])
    assert da.sort(x, axis=0).is_contiguous
    with pytest.raises(ValueError, match="without dimensions"):
        da.sort(x[0, 0, 0])
    with pytest.raises(IndexError, match="axis 3"):
        da.argsort(x, axis=3)


def test_partition(device):
    a = sample("float64", 4, 50)
    x = da.asarray(a, device=device)
    got = da.partition(x, 20, axis=1).asnumpy()
    np.testing.assert_array_equal(got[:, 20], np.sort(a, 1)[:, 20])
    assert (got[:, :20] <= got[:, 20:21]).all() and (got[:, 21:] >= got[:, 20:21]).all()
    places = da.argpartition(x, (3, -1)).asnumpy()
    np.testing.assert_array_equal(np.take_along_axis(a, places, -1)[:, 3], np.sort(a)[:, 3])
    with pytest.raises(ValueError, match="kth 50"):
        da.partition(x, 50)


@pytest.mark.parametrize("mode", ["largest", "smallest"])
def test_top_k(device, mode):
    a = sample("float64", 5, 30)
    a[1, 3:9] = np.nan
    x = da.asarray(a, device=device)
    places = stable(a, 1, mode == "largest")[:, :4]
    values, indices = da.top_k(x, 4, mode=mode)
    same(values, np.take_along_axis(a, places, 1))
    same(indices, places)
    assert da.top_k(x, 0, axis=0)[0].shape == (0, 30)
    for k, wrong in ((31, mode), (-1, mode), (1, "most")):
        with pytest.raises(ValueError, match="top_k"):
            da.top_k(x, k, mode=wrong)


def test_lexsort(device):
    keys = np.random.default_rng(4).integers(0, 3, (3, 4, 20))
    x = da.asarray(keys, device=device)
    for axis in (0, -1):
        same(da.lexsort(x, axis=axis), np.lexsort(keys, axis=axis))
    same(da.lexsort([x[0, 0], x[1, 0].astype("float64")]), np.lexsort([keys[0, 0], keys[1, 0]]))
    for wrong in ([], [x[0], x[0, 0]]):
        with pytest.raises(ValueError, match="lexsort"):
            da.lexsort(wrong)
