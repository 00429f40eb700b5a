"""Arrays against NumPy: operations, broadcasting, slices, reductions, in place, assignments."""
import operator
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import drupe
import drupe.array as da

DTYPES = ("bool", "int32", "int64", "float32", "float64")
COMMON = dict(max_examples=40, deadline=None, derandomize=True,
              suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
COMPARISON = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt,
              ">=": operator.ge}


if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    np._set_promotion_state("weak")  # the rules of NumPy 2, which the values are compared with


def elements(dtype):
    if dtype == "bool":
        return st.booleans()
    if dtype.startswith("int"):
        return st.integers(-1000, 1000)
    return st.floats(-1000, 1000, width=32 if dtype == "float32" else 64, allow_subnormal=False)


def arrays(dtype, shape):
    return hnp.arrays(dtype, shape, elements=elements(dtype))


@st.composite
def one(draw, max_dims=4, min_side=0):
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=max_dims, min_side=min_side, max_side=5))
    return draw(arrays(dtype, shape))


@st.composite
def pair(draw):
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=5)).input_shapes
    return tuple(draw(arrays(draw(st.sampled_from(DTYPES)), shape)) for shape in shapes)


def same(x, expected, rtol=0.0, dtype=True):
    got = x.asnumpy()
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    if dtype:
        assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)


def compute(function, *args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*args)


@settings(**COMMON)
@given(values=pair(), name=st.sampled_from(sorted(ARITHMETIC)))
def test_arithmetic(device, values, name):
    a, b = values
    assume(not (name == "-" and a.dtype == b.dtype == bool))
    same(ARITHMETIC[name](da.asarray(a, device=device), da.asarray(b, device=device)),
         compute(ARITHMETIC[name], a, b))


@settings(**COMMON)
@given(values=pair(), name=st.sampled_from(sorted(COMPARISON)))
def test_comparison(device, values, name):
    a, b = values
    same(COMPARISON[name](da.asarray(a, device=device), da.asarray(b, device=device)), COMPARISON[name](a, b))


@settings(**COMMON)
@given(values=pair())
def test_division(device, values):
    a, b = values
    b = np.where(b == 0, np.ones((), b.dtype), b)
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    same(x / y, compute(operator.truediv, a, b), rtol=1e-6)
    if a.dtype != bool or b.dtype != bool:
        expected = compute(operator.floordiv, a, b)
        remainder = compute(operator.mod, a, b)
        exact = expected.dtype.kind == "i"
        if exact:
            same(x // y, expected)
            same(x % y, remainder)
        else:
            # Neighbouring floats may fall on either side of a whole quotient; together they give a again.
            whole, rest = (x // y).asnumpy(), (x % y).asnumpy()
            assert whole.dtype == expected.dtype
            np.testing.assert_allclose(whole * b.astype(whole.dtype) + rest, np.broadcast_to(a, whole.shape),
                                       rtol=1e-3, atol=2e-3)


@settings(**COMMON)
@given(a=one(), scalar=st.one_of(st.booleans(), st.integers(-50, 50), st.floats(-50, 50, width=32)),
       name=st.sampled_from(sorted(ARITHMETIC)), swapped=st.booleans())
def test_scalars_are_weak(device, a, scalar, name, swapped):
    assume(not (name == "-" and a.dtype == bool and isinstance(scalar, bool)))
    x, function = da.asarray(a, device=device), ARITHMETIC[name]
    if swapped:
        same(function(scalar, x), compute(function, scalar, a))
    else:
        same(function(x, scalar), compute(function, a, scalar))


@settings(**COMMON)
@given(a=one())
def test_unary(device, a):
    x = da.asarray(a, device=device)
    if a.dtype != bool:
        same(-x, -a)
        same(+x, +a)
    else:
        same(~x, ~a)
        same(x & x, a & a)
        same(x | ~x, a | ~a)
        same(x ^ x, a ^ a)
    same(abs(x), abs(a))
    same(da.square(x), a * a)
    same(da.logical_not(x), np.logical_not(a))


@settings(**COMMON)
@given(a=one(), name=st.sampled_from(["sqrt", "exp", "log", "sin", "cos"]))
def test_functions(device, a, name):
    a = np.abs(a % 50 if a.dtype != bool else a) + (name == "log") * (np.ones((), a.dtype))
    x = da.asarray(a, device=device)
    expected = compute(getattr(np, name), a.astype(x.dtype.name if x.dtype.kind == "f" else "float64"))
    got = getattr(da, name)(x)
    assert got.dtype == ("float32" if a.dtype == np.float32 else "float64")
    same(got, expected, rtol=2e-5 if got.dtype == "float32" else 1e-12, dtype=False)


@settings(**COMMON)
@given(values=pair(), name=st.sampled_from(sorted(ARITHMETIC)))
def test_in_place(device, values, name):
    a, b = values
    assume(np.broadcast_shapes(a.shape, b.shape) == a.shape)
    assume(np.can_cast(np.result_type(a, b), a.dtype, "same_kind"))
    assume(not (name == "-" and a.dtype == b.dtype == bool))
    x, y, expected = da.asarray(a, device=device), da.asarray(b, device=device), a.copy()
    before = x
    in_place = {"+": operator.iadd, "-": operator.isub, "*": operator.imul}[name]
    x = in_place(x, y)
    expected = in_place(expected, b)
    assert x is before
    same(x, expected, rtol=1e-6 if a.dtype == np.float32 and b.dtype != np.float32 else 0)


def test_in_place_does_not_change_kind(device):
    x = da.arange(3, device=device)
    with pytest.raises((TypeError, drupe.DeviceError), match="int64|cast"):
        x += 0.5
    with pytest.raises((TypeError, drupe.DeviceError)):
        x /= 2
    with pytest.raises(drupe.DeviceError):
        x += da.ones((2, 3), dtype="int64", device=device)
    assert x.tolist() == [0, 1, 2]
    x += True
    assert x.tolist() == [1, 2, 3]


def test_out(device):
    x, out = da.arange(4, device=device), da.zeros(4, dtype="float64", device=device)
    assert da.multiply(x, 3, out=out) is out and out.tolist() == [0, 3, 6, 9]
    assert da.negative(x, out=x) is x and x.tolist() == [0, -1, -2, -3]
    wide = da.arange(8, device=device)
    da.add(wide[:7], 1, out=wide[1:])
    assert wide.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    with pytest.raises(drupe.DeviceError):
        da.add(x, 1, out=da.zeros(3, device=device))
    with pytest.raises(TypeError, match="out"):
        da.add(x, 1, out=np.zeros(4))


REDUCTIONS = ["sum", "prod", "max", "min", "all", "any"]


@settings(**COMMON)
@given(data=st.data(), name=st.sampled_from(REDUCTIONS), keepdims=st.booleans())
def test_reductions(device, data, name, keepdims):
    a = data.draw(one(min_side=1))
    axis = data.draw(st.one_of(st.none(), st.sampled_from([()] + list(range(-a.ndim, a.ndim)))))
    if data.draw(st.booleans()) and a.ndim > 1:
        axis = (0, -1)
    if name == "prod":
        a = (a % 3).astype(a.dtype) if a.dtype != bool else a
    x = da.asarray(a, device=device)
    expected = getattr(np, name)(a, axis=axis, keepdims=keepdims)
    got = getattr(x, name)(axis=axis, keepdims=keepdims)
    if name in ("max", "min", "all", "any"):
        same(got, expected)
    else:
        assert got.dtype == expected.dtype
        same(got, expected, rtol=1e-3 if a.dtype == np.float32 else 1e-10)
    assert getattr(da, name)(x, axis=axis, keepdims=keepdims).tolist() == got.tolist()


@pytest.mark.parametrize("shape", [(100_000,), (300, 400), (7, 10_000), (10_000, 7), (20, 30, 40)])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_large_reductions(device, shape, dtype):
    values = (np.arange(np.prod(shape)).reshape(shape) % 1001 - 500).astype(dtype)
    x = da.asarray(values, device=device)
    for axis in (None, 0, -1):
        for name in ("sum", "max", "min"):
            np.testing.assert_allclose(getattr(x, name)(axis=axis).asnumpy(), getattr(values, name)(axis=axis),
                                       rtol=1e-4, atol=1)
    same(x[..., ::3].sum(axis=0, dtype="float64"), values[..., ::3].sum(axis=0, dtype="float64"), rtol=1e-9)
    same(x.T.sum(axis=0, dtype="float64"), values.T.sum(axis=0, dtype="float64"), rtol=1e-9)


def test_empty_reductions(device):
    x = da.zeros((0, 3), device=device)
    assert x.sum().tolist() == 0 and x.prod(axis=0).tolist() == [1, 1, 1] and x.sum(axis=1).shape == (0,)
    assert x.all().tolist() is True and x.any().tolist() is False
    for extreme in (x.max, x.min):
        with pytest.raises(ValueError, match="no elements"):
            extreme()
        assert extreme(axis=1).shape == (0,)


def test_a_broadcast_view_cannot_be_written(device):
    x = da.broadcast_to(da.asarray([1.0], device=device), (5,))
    with pytest.raises(ValueError, match="broadcast view.*copy"):
        x += 1
    with pytest.raises(ValueError, match="broadcast view.*copy"):
        x[...] = 2
    assert x.tolist() == [1.0] * 5


def test_arange_beyond_the_precision_of_doubles(device):
    x = da.arange(2**62, 2**62 + 100, device=device)
    assert x.shape == (100,) and int(x[99]) == 2**62 + 99


def test_too_many_new_axes(device):
    with pytest.raises(IndexError, match="at most 16 dimensions"):
        da.ones((), device=device)[(None,) * 17]


def test_reduction_arguments(device):
    x = da.ones((2, 3), dtype="int32", device=device)
    assert x.sum().dtype == "int64" and x.sum(dtype="float32").dtype == "float32"
    for wrong, error in ((dict(axis=2), IndexError), (dict(axis=(0, 0)), ValueError), (dict(axis=1.5), TypeError),
                         (dict(dtype="f"), TypeError), (dict(axes=1), TypeError)):
        with pytest.raises(error):
            x.sum(**wrong)
    assert float(da.mean(x)) == 1 and da.mean(x, axis=0, keepdims=True).shape == (1, 3)


@st.composite
def index_of(draw, shape):
    parts = []
    for size in shape[:draw(st.integers(0, len(shape)))]:
        if draw(st.booleans()) and size:
            parts.append(draw(st.integers(-size, size - 1)))
        else:
            parts.append(draw(st.slices(size)))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        parts.append(Ellipsis)
    return tuple(parts)


@settings(**COMMON)
@given(data=st.data(), a=one())
def test_slices(device, data, a):
    index = data.draw(index_of(a.shape))
    x = da.asarray(a, device=device)
    same(x[index], a[index])
    same(x[index] + x[index], a[index] + a[index])
    again = data.draw(index_of(a[index].shape))
    same(x[index][again], a[index][again])


@settings(**COMMON)
@given(data=st.data(), a=one(), other=st.sampled_from(DTYPES))
def test_assignments(device, data, a, other):
    index = data.draw(index_of(a.shape))
    value = data.draw(arrays(other, a[index].shape))
    x, expected = da.asarray(a, device=device), a.copy()
    x[index] = da.asarray(value, device=device)
    expected[index] = value
    same(x, expected)
    x[index] = value
    same(x, expected)


@settings(**COMMON)
@given(a=one(), target=st.sampled_from(DTYPES))
def test_casts(device, a, target):
    same(da.asarray(a, device=device).astype(target), a.astype(target))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((1, 1), (1, 1)),
                                    ((70, 90), (90, 50)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((128, 128), (128,))])
def test_matmul(device, dtype, shapes):
    random = np.random.default_rng(5)
    a, b = (random.integers(-9, 10, shape).astype(dtype) for shape in shapes)
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    same(x @ y, a @ b, rtol=1e-5)
    if a.ndim == b.ndim == 2:
        same(y.T @ x.T, b.T @ a.T, rtol=1e-5)
        same(da.matmul(x[::-1], y[:, ::-1]), a[::-1] @ b[:, ::-1], rtol=1e-5)


def test_matmul_errors(device):
    x = da.ones((2, 3), device=device)
    with pytest.raises(ValueError, match="matmul"):
        x @ x
    with pytest.raises(TypeError, match="operands are arrays"):
        x @ 3


def test_operand_errors(device):
    x = da.ones(3, device=device)
    for wrong in (lambda: x + "a", lambda: x + None, lambda: x + 1j, lambda: object() + x, lambda: da.exp("a"),
                  lambda: da.add(1, 2), lambda: da.add(x), lambda: da.add(x, x, x), lambda: da.exp(x, foo=1),
                  lambda: pow(x, 2, 3)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="broadcast"):
        x + da.ones(4, device=device)
    with pytest.raises(drupe.DeviceError, match="bool"):
        -da.ones(2, dtype="bool", device=device)
    with pytest.raises(OverflowError):
        x + 2**70


def test_special_values(device):
    a = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1.5, 2.5])
    x = da.asarray(a, device=device)
    with np.errstate(all="ignore"):
        for function in (operator.add, operator.mul, operator.truediv, operator.lt, operator.eq):
            np.testing.assert_array_equal(function(x, x[::-1]).asnumpy(), function(a, a[::-1]))
        np.testing.assert_array_equal(da.maximum(x, 0.0).asnumpy(), np.maximum(a, 0.0))
    assert np.isnan(float(x.max())) and np.isnan(float(x.sum()))


def test_the_right_side_of_an_operator_of_numpys_numbers(device):
    x = da.asarray([1., 2., 3.], device=device)
    for code in ("n + x", "n - x", "n * x", "n / x", "n // x", "n % x", "n ** x", "n < x", "n <= x", "n == x", "n != x",
                 "n > x", "n >= x"):
        for number in (np.float64(2), np.float32(2), np.int64(2), np.float64(np.nan)):
            got = eval(code, {"n": number, "x": x})
            assert type(got) is type(x)
            np.testing.assert_array_equal(got.asnumpy(), eval(code, {"n": float(number), "x": x}).asnumpy(), code)
    np.testing.assert_array_equal((np.bool_(True) & (x > 1)).asnumpy(), [False, True, True])


def test_operators_of_numpys_arrays_are_refused(device):
    x = da.asarray([1., 2., 3.], device=device)
    for call, words in ((lambda: np.asarray(x), r"drupe\.array\.asnumpy\(x\)"),
                        (lambda: np.ones(3) + x, r"operator \+.*drupe\.array\.asarray\(x\)"),
                        (lambda: np.ones(3) < x, r"operator >.*drupe\.array\.asarray\(x\)"),
                        (lambda: np.ones(3).__iadd__(x), r"operator \+.*drupe\.array\.asarray\(x\)")):
        with pytest.raises(TypeError, match=words):
            call()


def test_arrays_without_dimensions_are_numbers_in_a_list(device):
    got = da.asarray([np.array(3.), 4], device=device)
    assert got.asnumpy().tolist() == [3., 4.]
    got = da.asarray([[np.array(3), 2], [1, memoryview(np.array(4))]], device=device)
    assert got.dtype == da.int64 and got.asnumpy().tolist() == [[3, 2], [1, 4]]
    with pytest.raises(TypeError, match="real numbers"):
        da.asarray([np.array(1j), 4], device=device)
    with pytest.raises(TypeError, match="sequences of equal length"):
        da.asarray([np.array(3), [4]], device=device)  # as of [3, [4]]


def test_the_mean_is_a_method_as_other_reductions_are(device):
    values = np.arange(6.).reshape(2, 3)
    x = da.asarray(values, device=device)
    assert float(x.mean()) == 2.5
    np.testing.assert_array_equal(x.mean(0).asnumpy(), values.mean(0))
    np.testing.assert_array_equal(x.mean(axis=1, keepdims=True).asnumpy(), values.mean(axis=1, keepdims=True))
    assert float(np.mean(x)) == 2.5
    with pytest.raises(TypeError):
        x.mean(where=True)
