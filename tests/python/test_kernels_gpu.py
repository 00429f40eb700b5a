"""Kernels for GPUs of what is a loop of the host elsewhere, run on a GPU, or on a CPU in the form for GPUs. Host copies
are forbidden, so that a call that would use them fails."""
import pytest

START = """
import numpy as np, drupe, drupe.array as da
da.allow_host_copies(False)
device = min((d for d in drupe.devices() if d.filter_string.startswith("opencl")),
             key=lambda d: not d.filter_string.startswith("opencl:gpu"))
rng = np.random.default_rng(5)
def put(x): return da.asarray(x, device=device)
def same(got, want):
    got, want = da.asnumpy(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape, got.dtype, want.dtype)
    np.testing.assert_array_equal(got, want)
def near(got, want):
    np.testing.assert_allclose(da.asnumpy(got), want, rtol=1e-4, atol=1e-3)
def fails(error, words, call):
    try:
        da.asnumpy(call())
    except drupe.DeviceError as e:
        assert words in str(e) and isinstance(e.__cause__ or e, error), e
    else:
        raise AssertionError(words)
"""

CASES = {
    "reductions": """
        for shape in (7,), (70001,), (3, 1001), (1001, 3), (300, 17), (4000, 8), (2, 9000), (3, 5, 7):
            x = rng.random(shape, dtype=np.float32)
            for a, h in (put(x), x), (put(x)[..., 1:], x[..., 1:]), (put(x)[..., ::2], x[..., ::2]):
                for axis in None, 0, -1:
                    near(da.sum(a, axis=axis), h.sum(axis=axis))
                    same(da.max(a, axis=axis), h.max(axis=axis))
        small = rng.integers(-99, 99, (70, 1003), dtype=np.int8)
        same(da.sum(put(small), axis=1), small.sum(axis=1, dtype=np.int64))
        same(da.sum(put(small)[:, 3:]), small[:, 3:].sum(dtype=np.int64))
    """,
    "products": """
        for dtype in "i4", "f4", "?", "c8":
            for m, k, n in (1, 1, 1), (33, 17, 65), (16, 16, 16), (100, 3, 7), (3, 0, 2):
                a, b = (rng.integers(0, 9, shape).astype(dtype) for shape in ((m, k), (k, n)))
                same(put(a) @ put(b), a @ b)
                same(put(a.T.copy()).T @ put(b), a @ b)
    """,
    "places": """
        for dtype in "f4", "u1", "c8":
            x = rng.integers(0, 90, (3, 2003)).astype(dtype)
            if dtype != "u1": x[1, 700] = x[1, 900] = np.nan
            for f, g in (da.argmax, np.argmax), (da.argmin, np.argmin):
                for axis in None, 0, 1: same(f(put(x), axis=axis), g(x, axis=axis))
        x = rng.integers(0, 9, 70014)
        same(da.argmax(put(x)), x.argmax())
        for shape in (2, 5001, 7), (3, 20001):
            y = x[:np.prod(shape)].reshape(shape)
            same(da.argmax(put(y), axis=1), y.argmax(axis=1))
        same(da.argmin(put(x.reshape(-1, 1)), axis=0), x.reshape(-1, 1).argmin(axis=0))
    """,
    "indices": """
        for dtype in "u1", "f2", "c16":
            x = rng.integers(0, 99, 500).astype(dtype)
            i = rng.integers(-500, 500, (7, 33))
            same(put(x)[put(i)], x[i])
        x = rng.random((20, 30, 4))
        i, j = rng.integers(0, 20, 50), rng.integers(-30, 30, 50)
        same(put(x)[put(i), put(j)], x[i, j])
        same(put(x)[:, put(j)], x[:, j])
        same(put(x)[put(i)][:, ::-1][put(i)], x[i][:, ::-1][i])
        same(da.take(put(x), put(j), axis=1), np.take(x, j, axis=1))
        k = rng.integers(0, 20, (5, 30, 4))
        same(da.take_along_axis(put(x), put(k), axis=0), np.take_along_axis(x, k, axis=0))
        a, h = put(x), x.copy()
        a[put(i), put(j)] = put(np.arange(50.0)[:, None] * np.ones(4)); h[i, j] = np.arange(50.0)[:, None]
        same(a, h)  # of equal positions the last one counts
        a[:, put(j)] = put(rng.random(50)[:, None]) * 0 + 3; h[:, j] = 3
        a[put(i)] = 7; h[i] = 7
        same(a, h)
    """,
    "strays": """
        x = put(np.arange(5.0))
        fails(IndexError, "index 7 is out of bounds for axis 0 with size 5", lambda: x[put(np.array([0, 7]))])
        y = put(np.zeros((3, 4)))
        fails(IndexError, "index -5 is out of bounds for axis 1 with size 4",
              lambda: y[put(np.array([0, 1])), put(np.array([3, -5]))])
        def assign():
            x[put(np.array([0, 1, 5]))] = 9
            return x
        fails(IndexError, "index 5 is out of bounds for axis 0 with size 5", assign)
        x.accept_contents()
        same(x, np.arange(5.0))
        lost = x[put(np.array([9]))]
        fails(IndexError, "index 9 is out of bounds", lambda: lost)
        fails(IndexError, "index 9 is out of bounds", lambda: lost + 1)  # it never becomes a result
    """,
    "masks": """
        for shape in (5,), (70003,), (300, 41), (3, 4, 5):
            m = rng.random(shape) > 0.6
            x = rng.random(shape)
            same(put(x)[put(m)], x[m])
            for got, want in zip(da.nonzero(put(m)), np.nonzero(m)): same(got, want)
            a, h, v = put(x), x.copy(), rng.random(m.sum())
            a[put(m)] = put(v); h[m] = v
            a[put(~m)] = 0; h[~m] = 0
            same(a, h)
        x, m = rng.random((50, 6)), rng.random(50) > 0.5
        same(put(x)[put(m)], x[m])
        def assign():
            a = put(x)
            a[put(m)] = put(np.ones((int(m.sum()) + 1, 6)))
            return a
        fails(ValueError, "values were assigned to the", assign)
    """,
    "running": """
        for shape, axis in ((9,), 0), ((70001,), 0), ((3, 5001), 1), ((3000, 7), 0), ((4, 100, 3), 1):
            x = rng.integers(-5, 9, shape, dtype=np.int32)
            a = da.cumulative_sum(put(x), axis=axis, include_initial=True)
            want = np.cumsum(x, axis=axis, dtype=np.int64)
            same(a, np.concatenate([np.zeros_like(np.take(want, [0], axis)), want], axis=axis))
            near(da.cumulative_prod(put(x * 0.01 + 1), axis=axis), np.cumprod(x * 0.01 + 1, axis=axis))
        x = rng.random(5000).astype("c8")
        near(da.cumulative_sum(put(x)), np.cumsum(x))
    """,
    "searches": """
        for dtype in "f4", "i8":
            x, v = np.sort(rng.integers(0, 500, 999).astype(dtype)), rng.integers(-9, 510, (30, 40)).astype(dtype)
            if dtype == "f4": x[-3:] = v[3, 3] = np.nan
            for side in "left", "right":
                same(da.searchsorted(put(x), put(v), side=side), np.searchsorted(x, v, side=side))
            same(da.isin(put(v), put(x[::2])), np.isin(v, x[::2]))
            same(da.isin(put(v), put(x[::2]), invert=True), np.isin(v, x[::2], invert=True))
    """,
    "sorts": """
        for dtype in "b1", "i1", "f2", "f8":
            for shape in (1,), (5003,), (3, 4099):
                x = rng.integers(-100, 100, shape).astype(dtype)
                if x.dtype.kind == "f": x.ravel()[3::97] = np.nan; x.ravel()[4::97] = -0.0
                order = np.argsort(x, axis=-1, kind="stable")
                same(da.argsort(put(x)), order)
                np.testing.assert_array_equal(da.asnumpy(da.sort(put(x))), np.sort(x, axis=-1))
        x = rng.integers(0, 50, (900, 3))
        same(da.argsort(put(x), axis=0, descending=True), np.argsort(-x, axis=0, kind="stable"))
        x = rng.integers(0, 9, 3001) + 1j * rng.integers(0, 9, 3001)
        x[5::50] += np.nan; x[7::50] += complex(0, np.nan); x[9::50] = complex(np.nan, np.nan)
        same(da.argsort(put(x.astype("c8"))), np.argsort(x.astype("c8"), kind="stable"))
    """,
    "distinct": """
        for dtype in "u1", "f8":
            x = rng.integers(0, 40, (7, 501)).astype(dtype)
            if dtype == "f8": x[3, ::50] = np.nan
            equal_nan = {"equal_nan": False} if dtype == "f8" else {}
            want = np.unique(x, return_index=True, return_inverse=True, return_counts=True, **equal_nan)
            got = da.unique_all(put(x))
            for a, b in zip(got, want): same(a, b.reshape(a.shape))
    """,
    "random": """
        theirs = np.random.Generator(np.random.Philox(3))
        ours = da.random.default_rng(3, device=device)
        for dtype in "f4", "f8":
            for size in 1, 2, 3, 1, 4, 5, 10, 1001, 7, 4096:
                same(ours.random(size, dtype=dtype), theirs.random(size, dtype=dtype))
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_kernels(fresh, opencl, name):
    lines = CASES[name].splitlines()
    result = fresh(START + "\n".join(line[8:] for line in lines), DRUPE_FORM="gpu")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("group, call", ((4, "argmax"), (32, "argsort")))
def test_devices_with_small_groups(fresh, opencl, group, call):
    """PoCL says that a group holds so few work-items. Sorts take 16 at least."""
    lines = [f"assert device.max_work_group_size == {group}",
             "x = rng.permuted(np.arange(37 * 70, dtype='i4').reshape(37, 70), axis=1)",
             "same(put(x) @ put(x).T, x @ x.T)", f"same(da.{call}(put(x), axis=1), np.{call}(x, axis=1))"]
    result = fresh(START + "\n".join(lines), DRUPE_FORM="gpu", POCL_MAX_WORK_GROUP_SIZE=str(group))
    assert result.returncode == 0, result.stdout + result.stderr
