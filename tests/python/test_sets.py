"""Searches in sorted arrays, and arrays as sets, against NumPy's."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ordered import DTYPES, REAL, arrays, one_of_each_kind, quick, same

import drupe.array as da

def both(a, device):
    return da.asarray(a, device=device), a


@given(a=arrays(REAL, max_dims=1, max_side=70), data=st.data())
@quick
def test_searchsorted(device, a, data):
    values = data.draw(arrays([a.dtype.name], max_dims=2, max_side=8))
    side = data.draw(st.sampled_from(["left", "right"]))
    x = da.asarray(np.sort(a), device=device)
    same(da.searchsorted(x, da.asarray(values, device=device), side=side), np.searchsorted(np.sort(a), values, side))
    sorter = np.argsort(a, kind="stable")
    got = da.searchsorted(da.asarray(a, device=device), da.asarray(values, device=device), side=side,
                          sorter=da.asarray(sorter, device=device))
    same(got, np.searchsorted(a, values, side, sorter))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1000, 30_001])
def test_searchsorted_of_many(device, n):
    a = np.sort(np.random.default_rng(1).integers(0, n, n))
    values = np.random.default_rng(2).integers(-1, n + 1, 20_000)
    x, v = da.asarray(a, device=device), da.asarray(values, device=device)
    for side in ("left", "right"):
        same(da.searchsorted(x, v, side=side), np.searchsorted(a, values, side))


def test_searchsorted_of_numbers_and_other_types(device):
    x, a = both(np.array([1, 3, 5]), device)
    same(da.searchsorted(x, 3), np.int64(1))
    same(da.searchsorted(x, 3.5), np.int64(2))
    same(da.searchsorted(x, da.asarray([0.5, 5.5], device=device)), np.searchsorted(a, [0.5, 5.5]))
    same(da.searchsorted(x[:0], x), np.zeros(3, int))
    same(da.searchsorted(x, x[:0]), np.zeros(0, int))


def test_searchsorted_refused(device):
    x = da.asarray([1.0, 2.0], device=device)
    with pytest.raises(ValueError, match="side"):
        da.searchsorted(x, x, side="middle")
    with pytest.raises(ValueError, match="one dimension"):
        da.searchsorted(x.reshape((1, 2)), x)
    with pytest.raises(TypeError, match="sorter holds integers"):
        da.searchsorted(x, x, sorter=x)
    with pytest.raises(TypeError, match="asarray"):
        da.searchsorted(x, np.ones(2))
    got = da.searchsorted(x, x, sorter=da.asarray([0, 2], device=device))
    with pytest.raises(Exception, match="sorter holds 2"):
        got.asnumpy()


@given(a=arrays(REAL))
@quick
def test_unique(device, a):
    x = da.asarray(a, device=device)
    values, indices, inverse, counts = np.unique(a, True, True, True, equal_nan=False)
    every = da.unique_all(x)
    same(every.indices, indices.astype("int64"))
    same(every.inverse_indices, inverse.reshape(a.shape).astype("int64"))
    same(every.counts, counts.astype("int64"))
    for got in (every, da.unique_counts(x), da.unique_inverse(x)):
        np.testing.assert_array_equal(got.values.asnumpy(), values)
    np.testing.assert_array_equal(da.unique_values(x).asnumpy(), values)
    np.testing.assert_array_equal(da.unique(x).asnumpy(), np.unique(a))
    got = da.unique(x, return_index=True, return_counts=True)
    expected = np.unique(a, return_index=True, return_counts=True)
    assert len(got) == 3
    same(got[1], expected[1].astype("int64"))
    same(got[2], expected[2].astype("int64"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distinct", [1, 5, 60_000])
def test_unique_of_many(device, dtype, distinct):
    one_of_each_kind(device, dtype)
    a = np.random.default_rng(1).integers(0, distinct, 80_000).astype(dtype)
    every = da.unique_all(da.asarray(a, device=device))
    values, indices, inverse, counts = np.unique(a, True, True, True)
    same(every.values, values)
    same(every.indices, indices)
    same(every.inverse_indices, inverse.reshape(a.shape))
    same(every.counts, counts)


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float64", "complex64"])
@pytest.mark.parametrize("shape, axis", [((40, 3), 0), ((3, 40), 1), ((4, 5, 6), -1), ((30, 2, 1), 0), ((1, 3), 0),
                                         ((5, 0), 0), ((0, 3), 0), ((0, 3), 1)])
def test_unique_parts_along_an_axis(device, shape, axis, dtype):
    a = np.random.default_rng(3).integers(0, 2, shape).astype(dtype)
    x = da.asarray(a, device=device)
    wanted = np.unique(a, True, True, True, axis=axis)
    for got, expected in zip(da.unique(x, True, True, True, axis=axis), wanted):
        same(got, expected.reshape(-1) if got.ndim == 1 else expected)
    same(da.unique(x, axis=axis), wanted[0])
    assert len(da.unique(x, return_counts=True, axis=axis)) == 2


def test_unique_parts_with_nan(device):
    """Parts with a NaN are none like another; they come last."""
    a = np.array([[np.nan, 1], [0.0, 2], [np.nan, 1], [-0.0, 2], [0, np.nan]])
    values, inverse = da.unique(da.asarray(a, device=device), return_inverse=True, axis=0)
    np.testing.assert_array_equal(values.asnumpy(), [[0, 2], [0, np.nan], [np.nan, 1], [np.nan, 1]])
    same(inverse, np.array([2, 0, 3, 0, 1]))


def test_unique_names_and_refusals(device):
    x = da.asarray([2, 1, 2], device=device)
    assert da.unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")
    assert da.unique_counts(x)._fields == ("values", "counts")
    assert da.unique_inverse(x)._fields == ("values", "inverse_indices")
    same(da.unique(x, axis=0), np.array([1, 2]))
    with pytest.raises(IndexError, match="axis"):
        da.unique(x.reshape((1, 3)), axis=2)
    same(da.unique_values(x[:0]), np.zeros(0, int))


@given(a=arrays(REAL), data=st.data())
@quick
def test_isin(device, a, data):
    b = data.draw(arrays([a.dtype.name], max_dims=2, max_side=6))
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    for invert in (False, True):
        same(da.isin(x, y, invert=invert), np.isin(a, b, invert=invert))


def test_isin_of_numbers(device):
    x, a = both(np.array([[1, 2], [3, 1]]), device)
    same(da.isin(x, 1), np.isin(a, 1))
    same(da.isin(3, x), np.isin(3, a))
    same(da.isin(x, 1.5, invert=True), np.isin(a, 1.5, invert=True))
    same(da.isin(x, x[:0], invert=True), np.ones((2, 2), bool))


def test_operations_of_sets(device):
    a, b = np.array([[5, 1, 3], [3, 9, 1]]), np.array([3, 4, 9, 3])
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    for name in ("intersect1d", "setdiff1d", "setxor1d", "union1d"):
        same(getattr(da, name)(x, y), getattr(np, name)(a, b))
        same(getattr(da, name)(x, y.astype("float64")), getattr(np, name)(a, b.astype("float64")))
    p, q = np.array([4, 1, 2]), np.array([2, 7, 4])
    for name in ("intersect1d", "setdiff1d", "setxor1d"):
        got = getattr(da, name)(da.asarray(p, device=device), da.asarray(q, device=device), assume_unique=True)
        same(got, getattr(np, name)(p, q, assume_unique=True))
