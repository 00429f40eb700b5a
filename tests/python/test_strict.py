"""drupe.array beside array_api_strict, which has what the standard has and nothing else: the same types and values."""
import importlib
import importlib.util

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import drupe.array as da

pytestmark = [pytest.mark.skipif(importlib.util.find_spec("array_api_strict") is None, reason="needs array-api-strict"),
              pytest.mark.filterwarnings("ignore")]
QUICK = settings(max_examples=12, deadline=None, derandomize=True, database=None,
                 suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
WHOLE = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
REAL, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
NUMBERS = [*WHOLE, *REAL, *COMPLEX]
ALL = ["bool", *NUMBERS]

# Names of functions, by what they take.
UNARY = {
    "acos asin atanh acosh": REAL,
    "asinh atan cos cosh exp expm1 log log10 log1p log2 sin sinh sqrt tan tanh": [*REAL, *COMPLEX],
    "ceil floor round trunc": [*WHOLE, *REAL], "abs negative positive sign square": NUMBERS,
    "conj imag real": COMPLEX, "isfinite isinf isnan": NUMBERS, "signbit reciprocal": REAL, "logical_not": ["bool"],
    "bitwise_invert": ["bool", *WHOLE]}
BINARY = {
    "add multiply subtract equal not_equal": NUMBERS, "divide": [*REAL, *COMPLEX],
    "atan2 copysign hypot logaddexp nextafter": REAL,
    "floor_divide remainder less less_equal greater greater_equal maximum minimum": [*WHOLE, *REAL], "pow": REAL,
    "bitwise_and bitwise_or bitwise_xor": ["bool", *WHOLE], "logical_and logical_or logical_xor": ["bool"]}
REDUCTIONS = {
    "sum prod": NUMBERS, "max min": [*WHOLE, *REAL], "mean": REAL, "all any count_nonzero": ALL, "std var": REAL,
    "cumulative_sum cumulative_prod": NUMBERS, "sort argsort argmax argmin": [*WHOLE, *REAL]}
SHAPES = {  # and the arguments behind the array
    "flip": (), "permute_dims": ((1, 0),), "reshape": ((-1,),), "roll": (2,), "tile": ((2, 1),), "expand_dims": (1,),
    "matrix_transpose": (), "tril": (), "triu": (), "repeat": (2,), "unique_values": (), "unique_counts": (),
    "nonzero": (), "diff": ()}


def rows(table):
    return [(name, dtypes) for names, dtypes in table.items() for name in names.split()]


def arrays(dtype, shape=None):
    """Numbers that no operation takes out of its type."""
    if dtype == "bool":
        elements = st.booleans()
    elif dtype in WHOLE:
        elements = st.integers(1, 5)
    elif dtype in REAL:
        elements = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.5, -0.5, -2.0, np.inf, -np.inf, np.nan])
    else:
        elements = st.sampled_from([0.5 + 1j, 1.0 - 0.25j, 2j, 1.5 + 0j, -0.75 + 0.5j])
    return hnp.arrays(dtype, shape or hnp.array_shapes(min_dims=2, max_dims=2, max_side=4), elements=elements)


def strict():
    return importlib.import_module("array_api_strict")


def same(ours, theirs):
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            same(one, other)
        return
    theirs = np.asarray(theirs)
    assert ours.dtype == theirs.dtype.name and ours.shape == theirs.shape
    tolerance = 1e-5 if theirs.dtype.name in ("float32", "complex64") else 1e-12
    np.testing.assert_allclose(da.asnumpy(ours), theirs, rtol=tolerance, atol=tolerance)


def both(name, *values, more=(), **options):
    ours = getattr(da, name)(*[da.asarray(x, device="host") for x in values], *more, **options)
    same(ours, getattr(strict(), name)(*[strict().asarray(x) for x in values], *more, **options))


@pytest.mark.parametrize("name, dtypes", rows(UNARY))
def test_of_one(name, dtypes):
    @QUICK
    @given(st.sampled_from(dtypes).flatmap(arrays))
    def check(x):
        both(name, x)

    check()


@pytest.mark.parametrize("name, dtypes", rows(BINARY))
def test_of_two(name, dtypes):
    """Of types that the standard promotes, and shapes that broadcast."""
    @QUICK
    @given(st.data())
    def check(data):
        first, second = data.draw(st.sampled_from(dtypes)), data.draw(st.sampled_from(dtypes))
        if first != second:
            try:
                strict().result_type(getattr(strict(), first), getattr(strict(), second))
            except TypeError:
                second = first
        shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3)).input_shapes
        both(name, *[data.draw(arrays(dtype, shape or (1,))) for dtype, shape in zip((first, second), shapes)])

    check()


@pytest.mark.parametrize("name, dtypes", rows(REDUCTIONS))
def test_along_axes(name, dtypes):
    @QUICK
    @given(st.sampled_from(dtypes).flatmap(arrays), st.sampled_from([0, 1, -1]))
    def check(x, axis):
        if x.dtype.kind == "f":
            x = np.where(np.isfinite(x), x, x.dtype.type(3))
        both(name, x, axis=axis)

    check()


@pytest.mark.parametrize("name", SHAPES)
def test_of_shapes(name):
    @QUICK
    @given(st.sampled_from(ALL[1:]).flatmap(arrays))
    def check(x):
        both(name, np.nan_to_num(x) if x.dtype.kind == "f" else x, more=SHAPES[name])

    check()


@QUICK
@given(st.sampled_from([*WHOLE, *REAL]).flatmap(arrays), st.data())
def test_indices(x, data):
    index = data.draw(hnp.basic_indices(x.shape, allow_ellipsis=True))
    same(da.asarray(x, device="host")[index], np.asarray(x[index]))


@pytest.mark.parametrize("first", ALL)
@pytest.mark.parametrize("second", ALL)
def test_promotion(first, second):
    """Where the standard has a common type it is the same here; there are more here."""
    try:
        expected = strict().result_type(getattr(strict(), first), getattr(strict(), second))
    except TypeError:
        return
    assert da.result_type(first, second) == str(expected).rpartition(".")[2]
