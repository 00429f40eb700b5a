"""The elementwise functions of drupe.array against NumPy's: values, special cases, types, and calls through NumPy."""
import inspect
import operator

import numpy as np
import pytest

import drupe
import drupe.array as da

NUMPY = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
         "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
         "bitwise_right_shift": "right_shift", "pow": "power", "round": "rint"}
FUNCTIONS = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p",
             "log2", "sin", "sinh", "sqrt", "tan", "tanh"]
EXACT = ["abs", "ceil", "floor", "isfinite", "isinf", "isnan", "negative", "positive", "round", "sign", "square",
         "trunc"]
PAIRS = ["atan2", "copysign", "hypot", "logaddexp", "nextafter"]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.5, 3.5, -2.5, 1e-30, 700.0, 1e30, 0.75]


def numpys(name):
    return getattr(np, NUMPY.get(name, name))


def same(x, expected, rtol=0.0):
    got = x.asnumpy()
    assert got.dtype == expected.dtype and got.shape == expected.shape, (got.dtype, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=0)
    if got.dtype.kind == "f":  # zeros too; a NaN has no sign that counts
        told = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[told], np.signbit(expected)[told])


@pytest.fixture(params=["float32", "float64"])
def floats(request, device):
    a = np.array(SPECIAL, request.param)
    return da.asarray(a, device=device), a


@pytest.mark.parametrize("name", FUNCTIONS)
@np.errstate(all="ignore")
def test_functions(floats, name):
    x, a = floats
    same(getattr(da, name)(x), numpys(name)(a), rtol=6 * np.finfo(a.dtype).eps)


@pytest.mark.parametrize("name", EXACT + ["reciprocal", "signbit"])
@np.errstate(all="ignore")
def test_exact_functions(floats, name):
    x, a = floats
    same(getattr(da, name)(x), numpys(name)(a))


@pytest.mark.parametrize("name", PAIRS)
@np.errstate(all="ignore")
def test_functions_of_two(floats, name):
    x, a = floats
    a, b = np.meshgrid(a, a)
    y, z = da.asarray(a, device=x.device), da.asarray(b, device=x.device)
    same(getattr(da, name)(y, z), numpys(name)(a, b), rtol=6 * np.finfo(a.dtype).eps)


@pytest.mark.parametrize("name", ["abs", "ceil", "floor", "isfinite", "isinf", "isnan", "round", "trunc"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_stay_integers(device, name, dtype):
    a = np.array([-7, 0, 3, np.iinfo(dtype).max], dtype)
    expected = a if name == "round" else numpys(name)(a)  # NumPy's rint() makes floats of integers
    same(getattr(da, name)(da.asarray(a, device=device)), expected)


@pytest.mark.parametrize("name", FUNCTIONS + PAIRS)
@np.errstate(all="ignore")
def test_integers_become_the_default_float(device, name):
    a = np.array([1, 2, 0], "int32")
    x = da.asarray(a, device=device)
    if name in PAIRS:
        same(getattr(da, name)(x, x[::-1]), numpys(name)(a.astype(float), a[::-1].astype(float)), rtol=1e-15)
    else:
        same(getattr(da, name)(x), numpys(name)(a.astype(float)), rtol=1e-15)


@pytest.mark.parametrize("symbol", ["and_", "or_", "xor", "lshift", "rshift"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_bits(device, symbol, dtype):
    function = getattr(operator, symbol)
    a = np.array([5, -3, 0, np.iinfo(dtype).min, np.iinfo(dtype).max, 1], dtype)
    b = np.array([3, 1, 63, 31, 2, 64], dtype) if "shift" in symbol else a[::-1].copy()
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    with np.errstate(all="ignore"):
        same(function(x, y), function(a, b))
        same(function(x, 2), function(a, np.array(2, dtype)))
        same(function(3, da.asarray(b, device=device)), function(np.array(3, dtype), b))
    same(~x, ~a)
    in_place = getattr(operator, "i" + symbol.strip("_"))
    z = x.copy()
    assert in_place(z, 1) is z
    same(z, function(a, np.array(1, dtype)))


def test_bits_of_floats_are_refused(device):
    x = da.ones(3, device=device)
    for wrong in (lambda: x & 1, lambda: ~x, lambda: x << 1, lambda: da.asarray([True], device=device) >> True):
        with pytest.raises(drupe.DeviceError, match="does not take"):
            wrong()


def test_logical_xor(device):
    a, b = np.array([0, 2, 0, -1]), np.array([0.0, 0.0, np.nan, 3.0])
    same(da.logical_xor(da.asarray(a, device=device), da.asarray(b, device=device)), np.logical_xor(a, b))


def test_where(device):
    condition, a, b = np.array([[True], [False]]), np.arange(3.0, dtype="float32"), np.array([[7], [8]])
    c, x, y = (da.asarray(v, device=device) for v in (condition, a, b))
    same(da.where(c, x, y), np.where(condition, a, b))
    same(da.where(c, x, 5), np.where(condition, a, np.float32(5)))
    same(da.where(c, 1, 2.5), np.where(condition, 1.0, 2.5))
    same(da.where(c, True, False), np.where(condition, True, False))
    same(da.where(y[:, 0] > 7, 3, y[:, 0]), np.array([7, 3]))
    same(da.where(x, x, -1.0), np.where(a, a, np.float32(-1)))  # a number is true where it is not zero
    with pytest.raises(TypeError, match="where"):
        da.where(True, 1, 2)
    with pytest.raises(ValueError, match="broadcast"):
        da.where(c, x, da.ones(4, device=device))
    out = da.empty((2, 3), device=device)
    assert da.where(c, x, 0.0, out=out) is out
    same(out, np.where(condition, a.astype(float), 0.0))


@pytest.mark.parametrize("limits", [(None, None), (0, None), (None, 2.0), (-1, 1), (2, -2)])
def test_clip(floats, limits):
    x, a = floats
    expected = a if limits == (None, None) else np.clip(a, *limits)
    same(da.clip(x, *limits), expected.astype(a.dtype))
    low = da.full(a.shape, -0.5, dtype=a.dtype.name, device=x.device)
    same(da.clip(x, min=low, max=2), np.clip(a, np.asarray(-0.5, a.dtype), np.asarray(2, a.dtype)))


def test_numpys_functions_stay_on_the_device(device):
    a = np.array([0.25, -0.5, 0.75])
    x = da.asarray(a, device=device)
    for call in (np.sin, np.arcsin, np.absolute, np.isnan, np.floor, np.sum, np.mean, lambda v: np.arctan2(v, 2.0),
                 lambda v: np.where(v > 0, v, 0.0), lambda v: np.clip(v, -0.25, 0.5), lambda v: np.power(v, 2),
                 lambda v: np.sum(v, axis=0, keepdims=True), lambda v: np.mean(v, 0), lambda v: np.flip(v, 0),
                 lambda v: np.roll(v, 1, 0), lambda v: np.stack([v, v], 1), lambda v: np.broadcast_arrays(v, v)[1],
                 lambda v: np.expand_dims(v, 0), lambda v: np.concatenate((v, v), 0),
                 lambda v: np.tril(v[None]), lambda v: np.std(v, ddof=1)):
        got, expected = call(x), call(a)
        assert type(got) is da.Array and got.device == x.device
        np.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-15)
    out = da.empty_like(x)
    assert np.add(x, x, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), a + a)
    for call, words in ((lambda: np.spacing(x), r"numpy\.spacing\(\) .*no such function: drupe\.array\.asnumpy\(x\)"),
                        (lambda: np.add.reduce(x), r"numpy\.add\.reduce\(\) .*drupe\.array\.asnumpy\(x\)"),
                        (lambda: np.median(x), r"numpy\.median\(\) .*drupe\.array\.asnumpy\(x\)"),
                        (lambda: np.linalg.norm(x), r"numpy\.norm\(\) .*drupe\.array\.asnumpy\(x\)"),
                        (lambda: np.sin(x, where=a > 0), r"numpy\.sin\(\) .*drupe\.array\.asnumpy\(x\)"),
                        (lambda: np.hypot(x, a), r"hypot: .*drupe\.array\.asarray\(x\)")):
        with pytest.raises(TypeError, match=words):
            call()


def test_signatures():
    assert str(inspect.signature(da.where)) == "(condition, x1, x2, /, *, out=None)"
    assert str(inspect.signature(da.atan2)) == "(x1, x2, /, *, out=None)"
    assert str(inspect.signature(da.clip)) == "(x, /, min=None, max=None, *, out=None)"
