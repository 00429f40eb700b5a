"""Arrays against NumPy: operations, broadcasting, slices, reductions, in place, assignments."""
import operator
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from element_types import arrays, on
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import drupe
import drupe.array as da

COMMON = dict(max_examples=40, deadline=None, derandomize=True,
              suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
COMPARISON = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt,
              ">=": operator.ge}


if np.lib.NumpyVersion(np.__version__) < "2.0.0":
    np._set_promotion_state("weak")  # the rules of NumPy 2, which the values are compared with


def a_type(data, device):
    return data.draw(st.sampled_from(on(device.filter_string)))


def one(data, device, max_dims=4, min_side=0):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=max_dims, min_side=min_side, max_side=5))
    return data.draw(arrays(a_type(data, device), shape))


def pair(data, device):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=5)).input_shapes
    return tuple(data.draw(arrays(a_type(data, device), shape)) for shape in shapes)


def same(x, expected, rtol=0.0, dtype=True):
    got = x.asnumpy()
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    if dtype:
        assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)


def rounding(*given):
    """What products and quotients of the types given may differ by from NumPy's, relatively."""
    dtype = np.result_type(*given)
    return 4 * np.finfo(dtype).eps if dtype.kind == "c" else 0.0


def compute(function, *args, **options):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*args, **options)


@settings(**COMMON)
@given(data=st.data(), name=st.sampled_from(sorted(ARITHMETIC)))
def test_arithmetic(device, data, name):
    a, b = pair(data, device)
    assume(not (name == "-" and a.dtype == b.dtype == bool))
    expected = compute(ARITHMETIC[name], a, b)
    scale = np.abs(expected).max(initial=1.0)  # of a sum of products, which is all that may be rounded otherwise
    same(ARITHMETIC[name](da.asarray(a, device=device), da.asarray(b, device=device)), expected,
         rounding(a, b) * scale)


@settings(**COMMON)
@given(data=st.data(), name=st.sampled_from(sorted(COMPARISON)))
def test_comparison(device, data, name):
    a, b = pair(data, device)
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    if "c" in (a.dtype.kind, b.dtype.kind) and name not in ("==", "!="):
        with pytest.raises(drupe.DeviceError, match=r"does not take complex.*abs\(x\) first"):
            COMPARISON[name](x, y)
    else:
        same(COMPARISON[name](x, y), COMPARISON[name](a, b))


@settings(**COMMON)
@given(data=st.data())
def test_division(device, data):
    a, b = pair(data, device)
    b = np.where(b == 0, np.ones((), b.dtype), b)
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    same(x / y, compute(operator.truediv, a, b), rtol=1e-3 if np.float16 in (a.dtype, b.dtype) else 1e-6)
    if "c" in (a.dtype.kind, b.dtype.kind):
        with pytest.raises(drupe.DeviceError, match="does not take complex"):
            x // y
    elif np.float16 not in (a.dtype, b.dtype) and (a.dtype != bool or b.dtype != bool):
        expected = compute(operator.floordiv, a, b)
        remainder = compute(operator.mod, a, b)
        exact = expected.dtype.kind in "iu"
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
@given(data=st.data(), name=st.sampled_from(sorted(ARITHMETIC)), swapped=st.booleans(),
       scalar=st.one_of(st.booleans(), st.integers(-50, 50), st.floats(-50, 50, width=32), st.integers(-300, 300),
                        st.just(2**63), st.builds(complex, st.integers(-9, 9), st.integers(-9, 9))))
def test_scalars_are_weak(device, data, scalar, name, swapped):
    a = one(data, device)
    assume(not (name == "-" and a.dtype == bool and isinstance(scalar, bool)))
    assume(a.dtype.kind not in "fc" or abs(scalar) < 2**63)  # rounded
    x, function = da.asarray(a, device=device), ARITHMETIC[name]
    try:
        expected = compute(function, *((scalar, a) if swapped else (a, scalar)))
    except OverflowError:
        with pytest.raises(OverflowError, match="does not fit"):
            function(*((scalar, x) if swapped else (x, scalar)))
        return
    scale = np.abs(expected).max(initial=1.0)
    same(function(*((scalar, x) if swapped else (x, scalar))), expected, rounding(expected) * scale)


@settings(**COMMON)
@given(data=st.data())
def test_unary(device, data):
    a = one(data, device)
    x = da.asarray(a, device=device)
    if a.dtype.kind in "iu":
        same(~x, ~a)
    if a.dtype != bool:
        same(-x, -a)
        same(+x, +a)
    else:
        same(~x, ~a)
        same(x & x, a & a)
        same(x | ~x, a | ~a)
        same(x ^ x, a ^ a)
    same(abs(x), abs(a), np.finfo(a.dtype).eps * 1500 if a.dtype.kind == "c" else 0)
    same(da.square(x), a * a, rounding(a) * 1e6)
    same(da.logical_not(x), np.logical_not(a))


@settings(**COMMON)
@given(data=st.data(), name=st.sampled_from(["sqrt", "exp", "log", "sin", "cos"]))
def test_functions(device, data, name):
    a = one(data, device)
    if a.dtype.kind != "c":
        a = np.abs(a % (50 if a.dtype != np.float16 else 10) if a.dtype != bool else a)
    else:
        a = a / 300  # of which the exponential is finite, and precise
    a = a + (name == "log") * (np.ones((), a.dtype))
    x = da.asarray(a, device=device)
    expected = compute(getattr(np, name), a.astype("float64") if a.dtype.kind in "biu" else a)
    got = getattr(da, name)(x)
    same(got, expected, rtol={2: 4e-3, 4: 2e-5, 8: 1e-12}[expected.real.itemsize])


@settings(**COMMON)
@given(data=st.data(), name=st.sampled_from(sorted(ARITHMETIC)))
def test_in_place(device, data, name):
    a, b = pair(data, device)
    assume(np.broadcast_shapes(a.shape, b.shape) == a.shape)
    assume(not (name == "-" and a.dtype == b.dtype == bool))
    x, y, expected = da.asarray(a, device=device), da.asarray(b, device=device), a.copy()
    before = x
    in_place = {"+": operator.iadd, "-": operator.isub, "*": operator.imul}[name]
    if not np.can_cast(np.result_type(a, b), a.dtype, "same_kind"):
        with pytest.raises(drupe.DeviceError, match=str(a.dtype)):
            in_place(x, y)
        same(x, a)
        return
    x = in_place(x, y)
    expected = compute(in_place, expected, b)
    assert x is before
    narrow = a.dtype.kind in "fc" and b.dtype != a.dtype  # NumPy computes in the wider type
    rtol = {2: 2e-3, 4: 2e-6, 8: 1e-15}[a.real.itemsize] * np.abs(expected).max(initial=1.0) if narrow else 0
    same(x, expected, rtol or rounding(a) * np.abs(expected).max(initial=1.0))


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
    a = one(data, device, min_side=1)
    axis = data.draw(st.one_of(st.none(), st.sampled_from([()] + list(range(-a.ndim, a.ndim)))))
    if data.draw(st.booleans()) and a.ndim > 1:
        axis = (0, -1)
    if name == "prod":
        a = (a % 3).astype(a.dtype) if a.dtype.kind not in "bc" else (a / 500).astype(a.dtype)
    x = da.asarray(a, device=device)
    if name in ("max", "min") and a.dtype.kind == "c":
        with pytest.raises(drupe.DeviceError, match="does not take complex"):
            getattr(x, name)(axis=axis, keepdims=keepdims)
        return
    expected = compute(getattr(np, name), a.astype("float32") if a.dtype == np.float16 else a, axis=axis,
                       keepdims=keepdims)
    if a.dtype == np.float16:  # which Drupe adds in float32, as the standard wants it
        expected = compute(np.asarray(expected).astype, bool if name in ("all", "any") else a.dtype)
    got = getattr(x, name)(axis=axis, keepdims=keepdims)
    if name in ("max", "min", "all", "any"):
        same(got, expected)
    else:
        assert got.dtype == expected.dtype
        same(got, expected, rtol={2: 2e-3, 4: 1e-3, 8: 1e-10}.get(a.real.itemsize, 0) if a.dtype.kind in "fc" else 0)
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
    with pytest.raises(IndexError, match="at most 32 dimensions"):
        da.ones((), device=device)[(None,) * 33]


def test_reduction_arguments(device):
    x = da.ones((2, 3), dtype="int32", device=device)
    assert x.sum().dtype == "int64" and x.sum(dtype="float32").dtype == "float32"
    for wrong, error in ((dict(axis=2), IndexError), (dict(axis=(0, 0)), ValueError), (dict(axis=1.5), TypeError),
                         (dict(dtype="nonsense"), TypeError), (dict(axes=1), TypeError)):
        with pytest.raises(error):
            x.sum(**wrong)
    assert float(da.mean(x)) == 1 and da.mean(x, axis=0, keepdims=True).shape == (1, 3)


def in_range(a, target):
    """The numbers of `a`, where they are floats, in the range of integers that they are cast to."""
    if a.dtype.kind == "f" and target.kind in "iu":
        limits = np.iinfo(target)
        return np.asarray(np.clip(a, limits.min, limits.max if limits.max < 1000 else None)).astype(a.dtype)
    return a


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
@given(data=st.data())
def test_slices(device, data):
    a = one(data, device)
    index = data.draw(index_of(a.shape))
    x = da.asarray(a, device=device)
    same(x[index], a[index])
    same(x[index] + x[index], compute(operator.add, a[index], a[index]))
    again = data.draw(index_of(a[index].shape))
    same(x[index][again], a[index][again])


@settings(**COMMON)
@given(data=st.data())
def test_assignments(device, data):
    a, other = one(data, device), a_type(data, device)
    index = data.draw(index_of(a.shape))
    value = data.draw(arrays(other, a[index].shape))
    assume(value.dtype.kind != "c" or a.dtype.kind in "bc")
    value = in_range(value, a.dtype)
    x, expected = da.asarray(a, device=device), a.copy()
    x[index] = da.asarray(value, device=device)
    expected[index] = value
    same(x, expected)
    x[index] = value
    same(x, expected)


@settings(**COMMON)
@given(data=st.data())
def test_casts(device, data):
    a, target = one(data, device), np.dtype(a_type(data, device))
    assume(a.dtype.kind != "c" or target.kind in "bc")
    a = in_range(a, target)
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
    for wrong in (lambda: x + "a", lambda: x + None, lambda: object() + x, lambda: da.exp("a"),
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
    for call, words in ((lambda: np.ones(3) + x, r"operator \+.*drupe\.array\.asarray\(x\)"),
                        (lambda: np.ones(3) < x, r"operator >.*drupe\.array\.asarray\(x\)"),
                        (lambda: np.ones(3).__iadd__(x), r"operator \+.*drupe\.array\.asarray\(x\)")):
        with pytest.raises(TypeError, match=words):
            call()


def test_arrays_without_dimensions_are_numbers_in_a_list(device):
    got = da.asarray([np.array(3.), 4], device=device)
    assert got.asnumpy().tolist() == [3., 4.]
    got = da.asarray([[np.array(3), 2], [1, memoryview(np.array(4))]], device=device)
    assert got.dtype == da.int64 and got.asnumpy().tolist() == [[3, 2], [1, 4]]
    assert da.asarray([np.array(1j), 4], device=device).tolist() == [1j, 4]
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


def test_more_axes_than_a_kernel_has(device):
    """Twenty axes that do not merge: every second element of each, in another order than in memory."""
    rng = np.random.default_rng(4)
    host = rng.integers(0, 100, (2,) * 18).transpose([*range(17, -1, -1)])
    x = da.permute_dims(da.asarray(np.ascontiguousarray(host.transpose([*range(17, -1, -1)])), device=device),
                        tuple(range(17, -1, -1)))
    assert (da.asnumpy(x[(slice(None, None, -1),) * 18] + x) == host[(slice(None, None, -1),) * 18] + host).all()
    odd = tuple(range(0, 18, 2))
    assert (da.asnumpy(da.sum(x, axis=odd)) == host.sum(axis=odd)).all()
    wide = x.reshape((2,) * 18 + (1,) * 14)
    assert wide.ndim == 32 and int(da.sum(wide)) == host.sum() and da.max(wide, axis=31).ndim == 31
