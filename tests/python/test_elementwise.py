"""The elementwise functions of drupe.array against NumPy's: values, special cases, types, and calls through NumPy."""
import inspect
import itertools
import operator

import numpy as np
import pytest
from element_types import COMPLEX, FLOATS, INTEGERS, ONE_OF_EACH_KIND, TYPES, close, on

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


def same(x, expected, rtol=0.0, signs=True):
    got = x.asnumpy()
    assert got.dtype == expected.dtype and got.shape == expected.shape, (got.dtype, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=0)
    if got.dtype.kind == "f" and signs:  # zeros too; a NaN has no sign that counts
        told = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[told], np.signbit(expected)[told])


@pytest.fixture(params=FLOATS)
@np.errstate(all="ignore")
def floats(request, device):
    if request.param == "float16" and device.backend != "host" and "float16" not in on(device.filter_string):
        pytest.skip("one type of each kind")
    a = np.array(SPECIAL).astype(request.param)
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
    # Of two equal zeros NumPy's nextafter() gives the first among halves, and the standard the second.
    signs = not (name == "nextafter" and a.dtype == np.float16)
    same(getattr(da, name)(y, z), numpys(name)(a, b), rtol=6 * np.finfo(a.dtype).eps, signs=signs)


@pytest.mark.every_type("uint16")
@pytest.mark.parametrize("name", ["abs", "ceil", "floor", "isfinite", "isinf", "isnan", "round", "trunc"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_stay_integers(device, name, dtype):
    a = np.array([np.iinfo(dtype).min, 0, 3, np.iinfo(dtype).max], dtype)
    expected = a if name == "round" else numpys(name)(a)  # NumPy's rint() makes floats of integers
    same(getattr(da, name)(da.asarray(a, device=device)), expected)


@pytest.mark.every_type("uint8")
@pytest.mark.parametrize("name", FUNCTIONS + PAIRS)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint64"])
@np.errstate(all="ignore")
def test_integers_become_the_default_float(device, name, dtype):
    a = np.array([1, 2, 0], dtype)
    x = da.asarray(a, device=device)
    if name in PAIRS:
        same(getattr(da, name)(x, x[::-1]), numpys(name)(a.astype(float), a[::-1].astype(float)), rtol=1e-15)
    else:
        same(getattr(da, name)(x), numpys(name)(a.astype(float)), rtol=1e-15)


@pytest.mark.every_type
@pytest.mark.parametrize("symbol", ["and_", "or_", "xor", "lshift", "rshift"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(device, symbol, dtype):
    function = getattr(operator, symbol)
    a = np.array([5, -3 if dtype[0] == "i" else 9, 0, np.iinfo(dtype).min, np.iinfo(dtype).max, 1], dtype)
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


# --- Every type -------------------------------------------------------------------------------------------------

REFUSES = {"c": "ceil floor trunc maximum minimum less less_equal greater greater_equal floor_divide remainder atan2 "
                "copysign hypot logaddexp nextafter signbit bitwise_and bitwise_or bitwise_xor bitwise_invert "
                "bitwise_left_shift bitwise_right_shift max min",
           "f": "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift",
           "iu": "signbit reciprocal", "b": "negative positive subtract floor_divide remainder sign ceil floor trunc "
                                           "round real imag conj pow reciprocal signbit bitwise_left_shift "
                                           "bitwise_right_shift"}
OF_ONE = FUNCTIONS + EXACT + ["logical_not", "angle", "real", "imag", "conj", "reciprocal", "bitwise_invert", "signbit"]
OF_TWO = PAIRS + ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "maximum", "minimum",
                  "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
                  "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
                  "bitwise_right_shift"]


def numbers(dtype, seed=0):
    """Plain numbers of a type, small enough for all functions."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(40) < 0.5
    if dtype in INTEGERS:
        return random.integers(0 if dtype[0] == "u" else -5, 9, 40).astype(dtype)
    a = random.normal(0, 2, 40)
    return (a + 1j * random.normal(0, 2, 40) if dtype in COMPLEX else a).astype(dtype)


def tolerance(name, dtype):
    """In units of the last place."""
    if dtype.kind not in "fc":
        return 0
    return 2 if dtype == np.float16 else 12 if dtype.kind == "c" or name in ("pow", "angle") else 6


def compare(name, x, a):
    """A function of these arrays, or of nothing where the types are refused."""
    kind = np.result_type(*a).kind
    function = getattr(da, name)
    if any(kind in kinds and name in refused.split() for kinds, refused in REFUSES.items()):
        with pytest.raises(drupe.DeviceError, match="does not take"):
            function(*x)
        return
    if kind in "biu" and name in FUNCTIONS + PAIRS + ["angle"]:
        a = [part.astype(float) for part in a]  # which NumPy does for large integers only
    expected = np.asarray(numpys(name)(*a))
    if kind in "iu" and name == "round":
        expected = a[0]
    if kind == "b" and name == "square":
        expected = a[0]
    close(function(*x), expected, tolerance(name, expected.dtype))


@pytest.mark.every_type("float16", "complex64")
@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.parametrize("dtype", TYPES)
@np.errstate(all="ignore")
def test_functions_of_one(device, name, dtype):
    if dtype in COMPLEX and name in ("sign",) and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return  # which was another function of complex numbers
    a = numbers(dtype)
    compare(name, [da.asarray(a, device=device)], [a])


@pytest.mark.every_type("uint16", "float16", "complex64")
@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("dtype", TYPES)
@np.errstate(all="ignore")
def test_functions_of_a_pair(device, name, dtype):
    a, b = numbers(dtype), numbers(dtype, 1)
    if name == "pow" and dtype in INTEGERS:
        b = np.abs(b)
    if name == "pow" and dtype in FLOATS:
        a = np.abs(a)
    compare(name, [da.asarray(a, device=device), da.asarray(b, device=device)], [a, b])


@pytest.mark.every_type("uint16", "float16", "complex64")
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean"])
@pytest.mark.parametrize("dtype", TYPES)
@np.errstate(all="ignore")
def test_reductions_of_every_type(device, name, dtype):
    a = numbers(dtype)[:12].reshape(3, 4)
    x = da.asarray(a, device=device)
    for axis in (None, 0, 1):
        if dtype in COMPLEX and name in ("max", "min"):
            with pytest.raises(drupe.DeviceError, match="does not take complex"):
                getattr(da, name)(x, axis=axis)
            continue
        expected = np.asarray(getattr(np, name)(a, axis=axis))
        scale = 0 if expected.dtype.kind not in "fc" else np.abs(a.astype(expected.dtype)).sum() * 2 + 1
        got = getattr(x, name)(axis=axis)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-2 if dtype == "float16" else 1e-5,
                                   atol=scale * np.finfo(expected.dtype).eps if scale else 0)


@pytest.mark.parametrize("pair", [*itertools.combinations(ONE_OF_EACH_KIND, 2)], ids="-".join)
@pytest.mark.parametrize("name", ["add", "multiply", "divide", "equal", "pow"])
@np.errstate(all="ignore")
def test_kinds_that_meet(device, pair, name):
    if device.backend != "host" and name != "add" and pair[1] != "complex64":
        return  # programs of the same casts
    a, b = numbers(pair[0]), numbers(pair[1], 1)
    if name == "pow":
        a, b = np.abs(a), np.abs(b)
    compare(name, [da.asarray(a, device=device), da.asarray(b, device=device)], [a, b])


# --- Complex numbers --------------------------------------------------------------------------------------------

PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
OF_COMPLEX = [name for name in FUNCTIONS + ["abs", "angle", "sign", "square", "conj", "negative", "reciprocal",
                                            "isfinite", "isinf", "isnan", "round", "logical_not"]]


def parts(a):
    return np.stack([a.real, a.imag])


def alike(got, expected, ulps):
    """Both parts, with infinities and NaN where NumPy has them. The standard of C leaves signs of some zeros and
    infinities open; a part that is zero beside a large one may be small instead."""
    got, expected = got.asnumpy(), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, expected)
        return
    size = np.abs(parts(expected)).max(axis=0) if expected.dtype.kind == "c" else np.abs(expected)
    size = np.where(np.isfinite(size), size, 0)
    for g, e in zip(parts(got), parts(expected), strict=True):
        np.testing.assert_array_equal(np.isnan(g), np.isnan(e))
        np.testing.assert_array_equal(np.isinf(g), np.isinf(e))
        finite = np.isfinite(e)
        near = np.abs(g - e)[finite] <= (ulps * np.finfo(e.dtype).eps * size + 1e-40)[finite]
        assert near.all(), (g[finite][~near], e[finite][~near])


@pytest.mark.every_type
@pytest.mark.parametrize("name", OF_COMPLEX)
@pytest.mark.parametrize("dtype", COMPLEX)
@np.errstate(all="ignore")
def test_special_complex_numbers(device, name, dtype):
    real, imag = np.meshgrid(PARTS, PARTS)
    a = np.empty(real.shape, dtype)
    a.real, a.imag = real, imag
    expected = numpys(name)(a)
    if name == "expm1":  # where NumPy has NaN, and the standard what follows from exp()
        expected = np.where(np.isfinite(a), expected, np.exp(a) - a.dtype.type(1))
    if name in ("square", "reciprocal"):  # Annex G of C knows infinities where NumPy has NaN
        a, expected = (part[np.isfinite(a) & (a != 0)] for part in (a, expected))
    alike(getattr(da, name)(da.asarray(a, device=device)), expected, 8)


@pytest.mark.every_type
@pytest.mark.parametrize("symbol", ["add", "sub", "mul", "truediv", "eq", "ne"])
@pytest.mark.parametrize("dtype", COMPLEX)
@np.errstate(all="ignore")
def test_special_pairs_of_complex_numbers(device, symbol, dtype):
    real, imag = np.meshgrid(PARTS, PARTS)
    numbers = np.empty(real.size, dtype)
    numbers.real, numbers.imag = real.ravel(), imag.ravel()
    a, b = (part.copy() for part in np.broadcast_arrays(numbers[:, None], numbers))
    function = getattr(operator, symbol)
    got, expected = function(da.asarray(a, device=device), da.asarray(b, device=device)), function(a, b)
    if symbol in ("mul", "truediv"):  # Annex G of C recovers infinities that NumPy loses
        plain = np.isfinite(a) & np.isfinite(b) & (b != 0)
        got, expected = da.asarray(got.asnumpy()[plain]), expected[plain]
    alike(got, expected, 4)


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
    same(da.clip(x, *limits), expected.astype(a.dtype), signs=a.dtype != np.float16)  # of a zero at a limit of zero
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
    for call, words in ((lambda: np.spacing(x), r"numpy\.spacing\(\) .*no such function.*drupe\.array\.asnumpy\(x\)"),
                        (lambda: np.add.at(x, 0, 1), r"numpy\.add\.at\(\) .*drupe\.array\.asnumpy\(x\)"),
                        (lambda: np.i0(x), r"numpy\.i0\(\) .*drupe\.array\.asnumpy\(x\)"),
                        (lambda: np.linalg.tensorinv(x), r"numpy\.linalg\.tensorinv\(\) .*asnumpy\(x\)"),
                        (lambda: np.sin(x, where=a > 0), r"numpy\.sin\(\) .*where=.*where\(\)"),
                        (lambda: np.hypot(x, a), r"hypot: .*drupe\.array\.asarray\(x\)")):
        with pytest.raises(TypeError, match=words):
            call()


def test_signatures():
    assert str(inspect.signature(da.where)) == "(condition, x1, x2, /, *, out=None)"
    assert str(inspect.signature(da.atan2)) == "(x1, x2, /, *, out=None)"
    assert str(inspect.signature(da.clip)) == "(x, /, min=None, max=None, *, out=None)"


def test_tanh_at_complex_infinity(device):
    """By the array API the imaginary part is a zero of x's sign there; C99 and NumPy take the sign of the sine of the
    double angle."""
    for y in (1.0, 2.0, 3.0, 1e154):
        for sign in (1, -1):
            x = da.asarray([complex(np.inf, sign * y), complex(-np.inf, sign * y)], device=device)
            out = da.asnumpy(da.tanh(x))
            assert (out == [1, -1]).all() and (np.signbit(out.imag) == (sign < 0)).all()
