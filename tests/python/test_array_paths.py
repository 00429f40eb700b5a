"""Arrays on the host device, at the sizes and layouts where its kernels take different ways."""
import math
import time

import numpy as np
import pytest

import drupe
import drupe.array as da

TYPES = ("bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
HOST = drupe.Device("host")


def put(value):
    return da.asarray(value, device=HOST)


def some(shape, dtype, seed=5):
    values = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 90, shape)
    made = values.astype(dtype)
    return made + (1j * values[..., ::-1]).astype(dtype) if made.dtype.kind == "c" else made


def same(got, wanted):
    np.testing.assert_array_equal(got.asnumpy(), wanted)


# --- Operands that lie across ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (67, 131), (3, 700), (700, 5), (130, 64)])
def test_transposed_copy(dtype, shape):
    values = some(shape, dtype)
    x = put(values)
    same(da.asarray(x.T, copy=True), values.T)
    same(da.asarray(x[::-1, ::2].T, copy=True), values[::-1, ::2].T)
    same(da.asarray(x[1:, ::-1].T, copy=True), values[1:, ::-1].T)
    target = da.zeros(shape[::-1], dtype=x.dtype, device=HOST)
    target[...] = x.T
    same(target, values.T)


@pytest.mark.parametrize("axes", [(2, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2)])
def test_permuted_copy(axes):
    for dtype in ("u1", "f8"):
        values = some((13, 37, 21), dtype)
        same(da.asarray(da.permute_dims(put(values), axes), copy=True), values.transpose(axes))
        same(da.asarray(da.permute_dims(put(values)[:, ::-2], axes), copy=True), values[:, ::-2].transpose(axes))


@pytest.mark.parametrize("dtype", ("i1", "u2", "f4", "f8", "c16"))
def test_transposed_operands(dtype):
    values, other = some((61, 83), dtype), some((83, 61), dtype, 6)
    x, y = put(values), put(other)
    same(x.T + y, values.T + other)
    same(y - x.T, other - values.T)
    same(x.T + x.T[:1], values.T + values.T[:1])
    same(x.T * 3, values.T * np.array(3, dtype))
    same(x.T == y, values.T == other)
    same(da.where(x.T == y, x.T, y), np.where(values.T == other, values.T, other))
    same(da.astype(x.T, da.complex128), values.T.astype("c16"))
    out = da.zeros((61, 83), dtype=x.dtype, device=HOST)
    turned = out.T
    turned += y  # the output itself lies across
    same(out, other.T)


def test_transposed_large():
    """In several shares, the last of them smaller."""
    values = some((1030, 517), "f8")
    x = put(values)
    same(da.asarray(x.T, copy=True), values.T)
    same(x.T + 1, values.T + 1)


# --- Reductions -----------------------------------------------------------------------------------------------

SHAPES = [(4001, 77), (7, 9001), (70001, 8), (300, 4099), (3, 5), (40000, 3)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_reduced(dtype, shape):
    values = some(shape, dtype)
    x = put(values)
    for axis in (None, 0, 1):
        if dtype not in ("f2", "f4", "c8"):  # whose sums are rounded in another order
            same(da.sum(x, axis=axis), np.sum(values, axis=axis))
        same(da.any(x, axis=axis), np.any(values, axis=axis))
        same(da.all(x, axis=axis), np.all(values, axis=axis))
        if values.dtype.kind == "c":
            continue
        for name in ("max", "min", "argmax", "argmin"):
            same(getattr(da, name)(x, axis=axis), getattr(np, name)(values, axis=axis))


@pytest.mark.parametrize("dtype", ("f2", "f4", "f8"))
@pytest.mark.parametrize("shape", [(400, 1030), (30, 9000), (5, 20), (70, 2)])
def test_nan_wins(dtype, shape):
    rng = np.random.default_rng(2)
    for row, column in ((0, 0), (shape[0] - 1, shape[1] - 1), (shape[0] // 2, shape[1] // 3)):
        values = rng.normal(size=shape).astype(dtype)
        values[row, column] = np.nan
        x = put(values)
        for name in ("max", "min", "argmax", "argmin"):
            for axis in (None, 0, 1):
                same(getattr(da, name)(x, axis=axis), getattr(np, name)(values, axis=axis))


def test_first_of_equals():
    values = np.full((37, 5000), -np.inf)
    values[:, 4990:4996] = 2.5
    x = put(values)
    assert da.argmax(x).item() == 4990 and da.argmin(x).item() == 0
    same(da.argmax(x, axis=1), np.argmax(values, axis=1))
    same(da.argmax(x, axis=0), np.argmax(values, axis=0))


@pytest.mark.parametrize("place", (0, 1, 40_000, 1_999_999, None))
def test_any_all(place):
    values = np.zeros(2_000_000, bool)
    if place is not None:
        values[place] = True
    x = put(values)
    for _ in range(3):
        assert da.any(x).item() is (place is not None)
        assert da.all(~x).item() is (place is None)
    assert da.any(x[::-1]).item() is (place is not None)


def test_any_of_bytes():
    """What is not 0 is true, whoever wrote it."""
    values = np.zeros(300_000, "u1")
    values[[7, 299_000]] = 4, 200
    x = put(values.view(bool))
    assert da.any(x).item() is True and da.all(x).item() is False
    assert da.max(x).item() is True and da.min(x).item() is False


def test_any_stops():
    values = np.zeros(30_000_000, bool)
    first = values.copy()
    first[0] = True
    taken = []
    for x in (put(values), put(first)):
        da.any(x).item()
        samples = []
        for _ in range(5):
            begun = time.process_time()
            da.any(x).item()
            samples.append(time.process_time() - begun)
        taken.append(min(samples))
    assert taken[1] < taken[0] / 3


@pytest.mark.parametrize("dtype", ("f4", "f8", "c16"))
def test_sums_are_as_good_as_pairwise(dtype):
    rng = np.random.default_rng(9)
    for values in (rng.random(1_000_003) * 1e6, np.full(3_000_001, 0.1)):
        values = values.astype(dtype)
        exact = math.fsum(values.real.astype("f8"))
        ours = abs(da.sum(put(values)).item().real - exact)
        theirs = abs(float(np.sum(values).real) - exact)
        assert ours <= max(theirs, 2 * abs(exact) * np.finfo(dtype).eps)


# --- Work that is over in a moment ------------------------------------------------------------------------------


def test_small_failures_arrive_later():
    """A small function of the host that fails within the call is told of like any other."""
    x, bad = put(np.arange(4.0)), put(np.array([0, 9]))
    y = da.take(x, bad)  # the call itself does not fail
    with pytest.raises(Exception, match="9"):
        y.asnumpy()
    same(da.take(x, put(np.array([3, 1]))), [3.0, 1.0])


@pytest.mark.parametrize("size", (131_071, 131_072, 131_073, 262_147))
def test_around_the_limit(size):
    values = some(size, "f8")
    x = put(values)
    same(x + x, values + values)
    assert da.sum(x).item() == values.sum()
    assert da.max(x).item() == values.max()
