"""Results at the extremes: right, as NumPy has them, or an error, never a wrong number and never a crash."""
import itertools
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drupe
import drupe.array as da
import drupe.memory as dm

if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    np._set_promotion_state("weak")  # the rules of NumPy 2, which the values are compared with

COMMON = dict(max_examples=60, deadline=None, derandomize=True,
              suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
INTEGERS = ("int32", "int64")
FLOATS = ("float32", "float64")


def identical(got, expected, signs=True):
    """Equal in shape, type and values, NaN beside NaN, and zeros of one sign."""
    got, expected = got.asnumpy() if isinstance(got, da.Array) else got, np.asarray(expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)
    if signs and got.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]))


def numpy_of(function, *args, **options):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*args, **options)


# --- mean -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype, value", [("int64", 2**62), ("int64", -2**63), ("int64", 2**63 - 1),
                                          ("int32", 2**31 - 1), ("bool", True)])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_the_mean_of_integers_does_not_wrap(device, dtype, value, axis):
    a = np.full((4, 40), value, dtype)
    got = da.mean(da.asarray(a, device=device), axis=axis)
    assert got.dtype == "float64"
    np.testing.assert_allclose(got.asnumpy(), a.mean(axis=axis), rtol=1e-15)


# --- powers of integers ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_to_a_negative_power(device, dtype):
    x = da.asarray(np.array([1, 2, -3], dtype), device=device)
    negative = da.asarray(np.array([3, 0, -2], dtype), device=device)
    bools = da.asarray([True, False, True], device=device)
    out = da.zeros(3, dtype=dtype, device=device)
    for wrong in (lambda: x ** -1, lambda: da.pow(x, -2), lambda: x ** negative, lambda: 2 ** negative,
                  lambda: x[:0] ** -1, lambda: da.pow(x, negative, out=out), lambda: da.pow(x, -1, out=out),
                  lambda: x ** negative.reshape((3, 1)), lambda: bools ** negative,
                  lambda: x.__ipow__(negative), lambda: x.__ipow__(-1)):
        with pytest.raises(ValueError, match="no power of -"):
            wrong()
    assert x.tolist() == [1, 2, -3] and out.tolist() == [0, 0, 0]
    assert (x ** 3).tolist() == [1, 8, -27] and (x ** abs(negative)).tolist() == [1, 1, 9]
    assert (x ** negative[:0, None]).shape == (0, 3) and (x ** bools).tolist() == [1, 1, -3]
    np.testing.assert_allclose((x ** -1.0).asnumpy(), [1, 0.5, -1 / 3])
    np.testing.assert_allclose((da.astype(x, "float64") ** negative).asnumpy(), [1, 1, 1 / 9])


# --- bools of other bytes than 0 and 1 ------------------------------------------------------------------------

BYTES = np.array([2, 0, 255, 1, 128, 0, 7] * 9, np.uint8)  # long enough for vectors


def odd_bools(device, entry):
    """An array of bool whose bytes are BYTES, by the way that they come in."""
    if entry == "numpy":
        return da.asarray(BYTES.view(bool), device=device)
    if entry == "large":
        return da.asarray(np.resize(BYTES, 1 << 18).view(bool), device=device)[:BYTES.size]
    x = da.zeros(BYTES.size, dtype="bool", device=device)
    if entry == "memory":
        x.usm_data.copy_from_host(BYTES.tobytes())
    else:
        dm.as_usm_memory(x).copy_from_host(BYTES.tobytes())
    return x


@pytest.mark.parametrize("entry", ["numpy", "large", "memory", "interface"])
def test_every_byte_but_zero_is_true(device, entry):
    x, truth = odd_bools(device, entry), BYTES != 0
    ones = da.ones(BYTES.size, dtype="bool", device=device)
    for view, kept in ((slice(None), truth), (slice(None, None, -2), truth[::-2])):
        y, o = x[view], ones[view]
        assert int(y.sum()) == kept.sum() and int(y.prod()) == 0 and int(y[:1].prod()) == 1
        for got, expected in (
                (y, kept), (y == True, kept), (y == o, kept), (y != o, ~kept), (~y, ~kept), (y & o, kept),  # noqa: E712
                (o & y, kept), (y | False, kept), (y ^ o, ~kept), (y < o, ~kept), (y >= o, kept),
                (da.maximum(y, y), kept), (y.copy(), kept), (y.astype("bool"), kept), (da.logical_not(y), ~kept)):
            identical(got, expected)
            assert got.asnumpy().view(np.uint8).max() <= 1 and got.tolist() == expected.tolist()
        for dtype in ("int32", "int64", "float32", "float64"):
            identical(y.astype(dtype), kept.astype(dtype))
            identical(y + da.ones(1, dtype=dtype, device=device), kept.astype(dtype) + 1)
        identical(da.sqrt(y), np.sqrt(kept.astype("float64")))
        identical(y * 3, kept * 3)
        assert bool(y.max()) is True and bool(y.any()) is True and bool(y.all()) is False
    assert x.max().asnumpy().view(np.uint8) == 1
    square = x[:49].reshape((7, 7))
    identical(da.matmul(square, square), truth[:49].reshape(7, 7) @ truth[:49].reshape(7, 7))
    identical(square.sum(axis=0), truth[:49].reshape(7, 7).sum(axis=0))
    identical(da.broadcast_to(x[:, None], (63, 40)).sum(axis=0), np.full(40, truth.sum()))
    x[:3] = False
    assert int(x.sum()) == truth.sum() - 2


# --- shapes and types -----------------------------------------------------------------------------------------

def test_negative_axes_of_permute_dims(device):
    a = np.arange(24).reshape(2, 3, 4)
    x = da.asarray(a, device=device)
    for axes in itertools.product(range(-3, 3), repeat=3):
        if len({axis % 3 for axis in axes}) == 3:
            identical(da.permute_dims(x, axes), a.transpose(axes))
        else:
            with pytest.raises(ValueError, match="given twice"):
                da.permute_dims(x, axes)
    for wrong in ((0, 1, 3), (-4, 0, 1)):
        with pytest.raises(IndexError, match="out of bounds"):
            da.permute_dims(x, wrong)
    with pytest.raises(ValueError, match="entries"):
        da.permute_dims(x, (0, 1))
    identical(da.permute_dims(x[0, 0], -1), a[0, 0])


@pytest.mark.parametrize("axis", [0, -1, 2, -3, (0,), (0, 1), (1, 0), (0, -1), (-1, -2), (1, 3), (), (0, 2, 4)])
def test_expand_dims(device, axis):
    a = np.arange(6).reshape(2, 3)
    x = da.asarray(a, device=device)
    identical(da.expand_dims(x, axis=axis), np.expand_dims(a, axis))
    if axis not in (2, -3, (1, 3), (0, 2, 4)):  # which one element has not
        identical(da.expand_dims(x[0, 0], axis=axis), np.expand_dims(a[0, 0], axis))
    identical(da.squeeze(da.expand_dims(x, axis=axis), axis), a)


def test_wrong_axes(device):
    x = da.ones((1, 1), device=device)
    for wrong in (3, -4, (0, 4), (-5, 0)):
        with pytest.raises(IndexError, match="out of bounds"):
            da.expand_dims(x, axis=wrong)
    for function in (lambda axis: da.expand_dims(x, axis=axis), lambda axis: da.squeeze(x, axis)):
        with pytest.raises(ValueError, match="given twice"):
            function((0, 0))
        with pytest.raises(TypeError):
            function(0.5)
    with pytest.raises(IndexError):
        da.squeeze(x, -3)
    with pytest.raises((IndexError, ValueError), match="at most"):
        da.expand_dims(x, axis=tuple(range(40)))


@pytest.mark.parametrize("items, expected", [
    (("bool", True), "bool"), (("bool", 1), "int64"), (("bool", 1.0), "float64"), (("int32", True), "int32"),
    (("int32", 2**40), "int32"), (("int32", 1.5), "float64"), (("int64", 1.5), "float64"),
    (("float32", 1), "float32"), (("float32", 1.5), "float32"), ((1, "int32", 2.5, "int64"), "float64"),
    ((True, 1, "float32"), "float32"), (("int32", np.int64(5)), "int32"), (("int32", np.float32(5)), "float64"),
    (("int32", np.bool_(True)), "int32"), (("int32", "float32"), "float64"), ((float, 1), "float64"),
    (("uint8", 3), "uint8"), (("uint8", "int8"), "int16"), (("float16", 1j), "complex64"), (("bool", 2j), "complex128"),
    (("float64", np.complex64(1)), "complex128"), (("float32", "complex64", 2.5), "complex64"),
    (("uint32", np.uint64(2**63)), "uint32")])
def test_result_type_of_numbers(device, items, expected):
    assert da.result_type(*items) == expected
    arrays = [da.ones(2, dtype=item, device=device) if isinstance(item, str) else item for item in items]
    assert da.result_type(*arrays) == expected


def test_result_type_needs_a_type():
    for wrong in ((), (1,), (True, 2.5)):
        with pytest.raises(ValueError, match="at least"):  # as in NumPy; SciPy catches it
            da.result_type(*wrong)


# --- special values -------------------------------------------------------------------------------------------

def specials(dtype):
    info = np.finfo(dtype)
    positive = [0.0, float(info.tiny), 0.5, 1.0, 1.5, 2.0, 3.0, 7.25, 1e10, float(info.max), np.inf]
    return np.array([*positive, *[-value for value in positive], np.nan], dtype)


def edges(dtype):
    if dtype == "bool":
        return np.array([False, True])
    if dtype in FLOATS:
        return specials(dtype)
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 3, 7, info.max - 1, info.max], dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "divide", "multiply", "add", "subtract", "maximum",
                                  "minimum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_special_values_of_two_floats(device, dtype, name):
    values = specials(dtype)
    a, b = (part.copy() for part in np.broadcast_arrays(values[:, None], values))
    expected = numpy_of(getattr(np, name), a, b)
    if name == "floor_divide":  # NumPy follows Python where an operand is infinite, not the array API
        infinite = np.isinf(a) | np.isinf(b)
        expected = np.where(infinite, numpy_of(lambda a, b: np.floor(a / b), a, b), expected)
    function = getattr(da, name)
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    signs = name not in ("maximum", "minimum")  # of zeros: either of two equal numbers
    identical(function(x, y), expected, signs)
    identical(function(x[:, ::-1], y[:, ::-1]), expected[:, ::-1], signs)
    identical(function(x[:, :1], y[0]), expected, signs)
    for i, value in enumerate(values.tolist()):
        identical(function(x[:, 0], value), expected[:, i], signs)
        identical(function(value, y[0]), expected[i], signs)


@pytest.mark.parametrize("pair", list(itertools.product(("bool", *INTEGERS), repeat=2)), ids="-".join)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "multiply", "add", "subtract", "maximum", "minimum",
                                  "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "divide"])
def test_limits_of_integers(device, pair, name):
    a, b = (part.copy() for part in np.broadcast_arrays(edges(pair[0])[:, None], edges(pair[1])))
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    if pair == ("bool", "bool") and name in ("floor_divide", "remainder", "subtract"):
        with pytest.raises(ValueError, match="does not take bool"):
            getattr(da, name)(x, y)
        return
    identical(getattr(da, name)(x, y), numpy_of(getattr(np, name), a, b))


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", ["abs", "negative", "positive", "square", "sqrt", "logical_not"])
def test_limits_of_one(device, dtype, name):
    a = edges(dtype)
    x = da.asarray(a, device=device)
    if dtype == "bool" and name in ("negative", "positive", "square"):
        return  # the first two are refused; the square of a bool is int8 in NumPy, a type that there is not
    expected = numpy_of(getattr(np, name), a)
    if dtype == "bool" and name == "sqrt":
        expected = expected.astype("float64")  # NumPy has float16 there
    got = getattr(da, name)(x)
    if name == "sqrt" and dtype == "float32":
        np.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-6)
    else:
        identical(got, expected)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
def test_reductions_at_the_limits(device, dtype, name):
    a = edges(dtype)
    for values in (a, a[:1], a[-2:], a[::-1], np.tile(a, 9), a[:0], a[:-1]):
        x = da.asarray(np.ascontiguousarray(values), device=device)
        if values.size == 0 and name in ("max", "min"):
            with pytest.raises(ValueError, match="no elements"):
                getattr(da, name)(x)
            continue
        expected = numpy_of(getattr(np, name), values)
        got = getattr(da, name)(x)
        if dtype == "float32" and name in ("sum", "prod"):
            # What overflows depends on the order; both are infinite or not a number then.
            assert np.isfinite(got.asnumpy()) == np.isfinite(expected) and got.dtype == dtype
        elif dtype == "float64" and name in ("sum", "prod"):
            assert np.isfinite(got.asnumpy()) == np.isfinite(expected)
        else:
            identical(got, expected, signs=False)


def test_numbers_that_just_fit(device):
    least = -2.0**63
    assert da.full(2, least, dtype="int64", device=device).tolist() == [-2**63] * 2
    assert da.asarray([least, 1], dtype="int64", device=device).tolist() == [-2**63, 1]
    for wrong in (2.0**63, float(np.nextafter(least, -np.inf)), np.nan, np.inf):
        with pytest.raises(ValueError):
            da.full(2, wrong, dtype="int64", device=device)
        with pytest.raises(ValueError):
            da.asarray([wrong], dtype="int64", device=device)


@pytest.mark.parametrize("ends", [(-1, 1, 4), (-7, 2, 5), (0, 10, 11), (5, -5, 4), (-0.5, 0.5, 3), (3, 3, 2)])
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_of_integers_rounds_down(device, ends, dtype, endpoint):
    identical(da.linspace(*ends, dtype=dtype, endpoint=endpoint, device=device),
              np.linspace(*ends, dtype=dtype, endpoint=endpoint))


# --- sizes ----------------------------------------------------------------------------------------------------

LARGE = [0, 1, 2, 3, 7, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**33, 2**60, 2**61 - 1, 2**61, 2**61 + 1,
         2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1]
REFUSED = (MemoryError, OverflowError, ValueError)


def test_a_view_of_more_than_all_memory(device):
    x = da.ones(1, device=device)
    for shape in ((16,) * 13 + (8,) * 3, (2**61,), (2**31, 2**31), (2**32, 2**32, 2**32), (2**63 - 1,)):
        with pytest.raises(MemoryError, match=r"2\*\*62 bytes"):
            da.broadcast_to(x, shape)
        with pytest.raises(MemoryError, match=r"2\*\*62 bytes"):
            da.empty(shape, device=device)
    large = da.broadcast_to(x, (2**59,))
    assert large.size == 2**59 and large.nbytes == 2**62 and large[-1].item() == 1.0


def test_an_extreme_over_broadcast_axes(device):
    """Where only one of several axes repeats, the others count."""
    a = np.array([[3, -5, 2], [1, 9, -7]])
    x = da.asarray(a, device=device)
    wide, expected = da.broadcast_to(x[:, None], (2, 1000, 3)), np.broadcast_to(a[:, None], (2, 1000, 3))
    for name in ("max", "min", "any", "all", "sum"):
        for axis in (None, 0, 1, 2, (0, 1), (1, 2), (0, 2)):
            for keepdims in (False, True):
                identical(getattr(da, name)(wide, axis=axis, keepdims=keepdims),
                          np.asarray(getattr(np, name)(expected, axis=axis, keepdims=keepdims)))
    with pytest.raises(ValueError, match="no power of -7"):
        2 ** da.broadcast_to(x[:, None], (2, 2**40, 3))


@pytest.mark.parametrize("dtype", ["bool", "int32", "float64"])
def test_what_huge_views_refuse(device, dtype):
    x = da.broadcast_to(da.ones(1, dtype=dtype, device=device), (2**29, 2**30))
    size = x.itemsize * 2**59
    assert x.nbytes == size and x.size == 2**59
    for wrong in (x.copy, x.tolist, x.asnumpy, lambda: x + 1, lambda: x == x, lambda: x.reshape(-1).copy(),
                  lambda: x.astype("float64" if dtype != "float64" else "int64"), lambda: x.to_device(device).copy(),
                  lambda: da.concat([x, x]), lambda: da.matmul(x[:, :4], x[:4]), lambda: x[::-1, ::2].tolist(),
                  lambda: da.zeros_like(x), lambda: x.T.copy()):
        with pytest.raises(REFUSED):
            wrong()
    assert repr(x).startswith("array([[")
    for name in ("max", "min", "any", "all"):
        assert getattr(x, name)().item() == 1 and getattr(x[:3], name)(axis=1).tolist() == [1, 1, 1]
    assert x[5, 7].item() == 1 and x[::2**28, ::2**29].tolist() == [[1, 1], [1, 1]]
    assert x.reshape((2**30, 2**29)).shape == (2**30, 2**29)


@settings(**{**COMMON, "max_examples": 300})
@given(shape=st.lists(st.sampled_from(LARGE), max_size=5), dtype=st.sampled_from(["bool", "int32", "float64"]),
       other=st.lists(st.sampled_from([-1, *LARGE]), max_size=4))
def test_random_sizes(device, shape, dtype, other):
    one = da.ones(1, dtype=dtype, device=device)
    try:
        x = da.broadcast_to(one, tuple(shape))
    except REFUSED:
        return
    size = 1
    for length in shape:
        size *= length
    assert x.shape == tuple(shape) and x.size == size and x.nbytes == size * x.itemsize
    for attempt in (lambda: x.reshape(tuple(other)), lambda: da.broadcast_to(x, tuple(other)), lambda: x.T,
                    lambda: x[::-1], lambda: x[..., None]):
        try:
            view = attempt()
        except (*REFUSED, IndexError):
            continue
        expected = 1
        for length in view.shape:
            expected *= length
        assert view.size == expected and view.nbytes == expected * x.itemsize
    if size > 2**40:
        for attempt in (x.copy, x.tolist, x.asnumpy, lambda: x + 1, lambda: da.empty(shape, device=device)):
            with pytest.raises(REFUSED):
                attempt()
        assert len(repr(x)) < 10000
    elif size < 2**20:
        identical(x.copy(), np.ones(shape, dtype))
        assert int(x.sum()) == size


def test_a_sequence_without_end_is_interrupted(fresh):
    result = fresh("""
        import signal, drupe.array as da
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            da.asarray(range(2**40), device="host")
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert result.stdout == "interrupted\n", result.stderr


@pytest.mark.parametrize("wrong", [2**62, 2**63 - 1, 2**63, 2**64, -1])
def test_sizes_of_memory(device, wrong):
    for make in (lambda: dm.MemoryUSMDevice(wrong, device=device), lambda: da.empty(wrong, device=device),
                 lambda: da.arange(wrong, device=device) if wrong > 0 else da.zeros(wrong, device=device),
                 lambda: da.linspace(0, 1, wrong, device=device), lambda: da.ones(1, device=device).reshape(wrong, 4)):
        with pytest.raises((*REFUSED, drupe.UnsupportedError)):
            make()
