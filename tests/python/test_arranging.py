"""Functions of drupe.array that arrange elements or combine operations, against NumPy's; what types can do."""
import inspect

import numpy as np
import pytest

import drupe
import drupe.array as da

DTYPES = ("bool", "int32", "int64", "float32", "float64")


def same(x, expected, rtol=0.0):
    got = x.asnumpy()
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)


def both(device, *shape, dtype="float64"):
    a = (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 7 % 11 - 3).astype(dtype)
    return da.asarray(a, device=device), a


@pytest.mark.parametrize("shapes", [(), ((3,),), ((2, 1), (3,)), ((4, 1, 2), (1, 3, 1), ()), ((0,), (1,)),
                                    ((5, 0), (1, 1))])
def test_broadcasting(device, shapes):
    assert da.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)
    pairs = [both(device, *shape) for shape in shapes]
    for x, a in zip(da.broadcast_arrays(*[x for x, _ in pairs]), np.broadcast_arrays(*[a for _, a in pairs])):
        same(x, a)


def test_shapes_that_do_not_broadcast(device):
    for wrong in (((2,), (3,)), ((0,), (2,)), ((2, 3), (3, 2))):
        with pytest.raises(ValueError, match="broadcast"):
            da.broadcast_shapes(*wrong)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
def test_flip(device, axis):
    x, a = both(device, 2, 3, 4)
    same(da.flip(x, axis=axis), np.flip(a, axis))


@pytest.mark.parametrize("source, destination", [(0, -1), (2, 0), ((0, 1), (-1, 0)), ((), ()), ((2, 0, 1), (0, 1, 2))])
def test_moveaxis(device, source, destination):
    x, a = both(device, 2, 3, 4)
    same(da.moveaxis(x, source, destination), np.moveaxis(a, source, destination))


@pytest.mark.parametrize("shift, axis", [(1, None), (-5, None), (2, 0), (-1, 1), ((1, 2), (0, 1)), (7, (0, 1)), (0, 0),
                                         ((1, 1), (0, 0))])
def test_roll(device, shift, axis):
    x, a = both(device, 3, 4)
    same(da.roll(x, shift, axis=axis), np.roll(a, shift, axis))
    same(da.roll(x[:, :0], 1, axis=1), a[:, :0])


@pytest.mark.parametrize("repeats", [0, 1, 3])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_repeat(device, repeats, axis):
    x, a = both(device, 2, 3)
    same(da.repeat(x, repeats, axis=axis), np.repeat(a, repeats, axis))


@pytest.mark.parametrize("repetitions", [(2,), (2, 1), (1, 2, 3), (0, 2), ()])
def test_tile(device, repetitions):
    x, a = both(device, 2, 3)
    same(da.tile(x, repetitions), np.tile(a, repetitions))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unstack(device, axis):
    x, a = both(device, 2, 3, 2)
    parts = da.unstack(x, axis=axis)
    assert type(parts) is tuple and len(parts) == a.shape[axis]
    for i, part in enumerate(parts):
        same(part, np.take(a, i, axis))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sizes", [(), (3,), (2, 3), (2, 3, 4)])
def test_meshgrid(device, indexing, sizes):
    pairs = [both(device, size) for size in sizes]
    found = da.meshgrid(*[x for x, _ in pairs], indexing=indexing)
    for x, a in zip(found, np.meshgrid(*[a for _, a in pairs], indexing=indexing), strict=True):
        same(x, a)


@pytest.mark.parametrize("n, m, k", [(3, None, 0), (2, 4, 1), (4, 2, -1), (3, 3, 9), (0, 2, 0)])
def test_eye(device, n, m, k):
    same(da.eye(n, m, k=k, device=device), np.eye(n, m, k))
    same(da.eye(n, m, k=k, dtype="int32", device=device), np.eye(n, m, k, "int32"))
    same(da.eye(n, m, k=k, dtype=bool, device=device), np.eye(n, m, k, bool))


@pytest.mark.parametrize("k", [0, 1, -2, 9])
@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles(device, k, dtype):
    x, a = both(device, 2, 3, 4, dtype=dtype)
    same(da.tril(x, k=k), np.tril(a, k))
    same(da.triu(x, k=k), np.triu(a, k))


@pytest.mark.parametrize("axis, n", [(-1, 1), (0, 1), (1, 2), (0, 0), (-1, 5)])
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_diff(device, axis, n, dtype):
    x, a = both(device, 3, 4, dtype=dtype)
    same(da.diff(x, axis=axis, n=n), np.diff(a, n, axis))
    if n:
        same(da.diff(x, axis=1, n=n, prepend=x[:, :1], append=x), np.diff(a, n, 1, a[:, :1], a))


def test_deviation_of_halves(device):
    """Their variance may be infinite in float16 where its root is not."""
    a = np.array([-500, 500, -500, 500], "float16")
    same(da.std(da.asarray(a, device=device)), np.asarray(500, "float16"))


@pytest.mark.parametrize("axis", [None, 0, (0, 1), -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_statistics(device, axis, dtype):
    x, a = both(device, 3, 4, dtype=dtype)
    for keepdims in (False, True):
        same(da.count_nonzero(x, axis=axis, keepdims=keepdims),
             np.asarray(np.count_nonzero(a, axis, keepdims=keepdims)))
        for correction in (0, 1, 2.5):
            rtol = 1e-6 if dtype == "float32" else 1e-14
            same(da.var(x, axis=axis, correction=correction, keepdims=keepdims),
                 np.var(a, axis, ddof=correction, keepdims=keepdims), rtol)
            same(da.std(x, axis=axis, correction=correction, keepdims=keepdims),
                 np.std(a, axis, ddof=correction, keepdims=keepdims), rtol)
    y, b = both(device, 4, dtype=dtype)
    if dtype != "bool":
        same(da.vecdot(x, y), (a * b).sum(-1, dtype=dtype), 1e-6)


@pytest.mark.filterwarnings("ignore")
def test_a_variance_of_nothing(device):
    assert np.isnan(float(da.var(da.ones(1, device=device), correction=1)))
    assert np.isnan(float(da.var(da.empty(0, device=device))))


def test_wrong_arguments(device):
    x, _ = both(device, 2, 3)
    for wrong, error in ((lambda: da.flip(x, axis=2), IndexError), (lambda: da.moveaxis(x, 0, (0, 1)), ValueError),
                         (lambda: da.moveaxis(x, (0, 0), (0, 1)), ValueError), (lambda: da.repeat(x, -1), ValueError),
                         (lambda: da.repeat(x, da.ones(6, dtype="float32", device=device)), TypeError),
                         (lambda: da.tile(x, (-1,)), ValueError), (lambda: da.unstack(x, axis=2), IndexError),
                         (lambda: da.meshgrid(x), ValueError), (lambda: da.meshgrid(x[0], indexing="yx"), ValueError),
                         (lambda: da.tril(x[0]), ValueError), (lambda: da.diff(x, n=-1), ValueError),
                         (lambda: da.roll(x, (1, 2), axis=0), ValueError), (lambda: da.vecdot(x, x[:, :2]), ValueError),
                         (lambda: da.vecdot(x, x, axis=0), ValueError), (lambda: da.concat([x], axis=2), IndexError)):
        with pytest.raises(error):
            wrong()


@pytest.mark.parametrize("name", DTYPES)
def test_limits_of_types(name):
    dtype = getattr(da, name)
    for numpys, ours in ((np.finfo, da.finfo), (np.iinfo, da.iinfo)):
        if dtype.kind == ("f" if ours is da.finfo else "i"):
            expected, found = numpys(name), ours(dtype)
            for key in ("bits", "max", "min") + (("eps", "smallest_normal") if ours is da.finfo else ()):
                assert getattr(found, key) == getattr(expected, key), key
            assert found.dtype == dtype and name in repr(found)
            assert ours(da.ones(2, dtype=dtype)).bits == found.bits
        else:
            with pytest.raises(ValueError, match=name):
                ours(dtype)


def test_kinds_of_types():
    of = {kind: [name for name in DTYPES if da.isdtype(getattr(da, name), kind)]
          for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
                       "numeric")}
    assert of == {"bool": ["bool"], "signed integer": ["int32", "int64"], "unsigned integer": [],
                  "complex floating": [], "integral": ["int32", "int64"],
                  "real floating": ["float32", "float64"], "numeric": list(DTYPES[1:])}
    assert da.isdtype(da.int32, ("bool", da.int32)) and not da.isdtype(da.int32, da.int64)
    with pytest.raises(ValueError, match="kind"):
        da.isdtype(da.int32, "float")


def test_casts_that_keep_values():
    for a in DTYPES:
        for b in DTYPES:
            assert da.can_cast(getattr(da, a), b) == (np.promote_types(a, b) == b), (a, b)
    assert da.can_cast(da.ones(1, dtype="int32"), da.int64)


def test_what_the_namespace_tells(device):
    info = da.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True and info.capabilities()["max dimensions"] == 32
    with drupe.device(device):
        assert info.default_device() == da.empty(0).device
    assert device in info.devices()
    assert info.default_dtypes(device=device)["integral"] == da.int64
    assert info.default_dtypes(device=device)["real floating"] == da.empty(0, device=device).dtype
    assert {"int32", "int64"} < set(info.dtypes(device=device, kind="integral"))
    assert {"bool", "int64", "float32"} < set(info.dtypes(device=device))
