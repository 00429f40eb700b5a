"""What the tests of sorts, searches and sets share: samples of every data type, and comparisons with NumPy."""
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import drupe.array as da

ALL = ("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128").split()
DTYPES = [name for name in ALL if name in da.__all__]
REAL = [name for name in DTYPES if not name.startswith("complex")]
FLOATS = [name for name in REAL if name.startswith("float")]

OF_EACH_KIND = ("bool", "int32", "uint8", "float64", "complex64")


def one_of_each_kind(device, dtype):
    """OpenCL builds a program for each type, so its devices meet one type of each kind; `host` meets all."""
    if not device.filter_string.startswith("host") and dtype not in OF_EACH_KIND:
        pytest.skip("OpenCL devices meet one type of each kind here")


quick = settings(deadline=None, max_examples=30, derandomize=True,
                 suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def arrays(dtypes=None, min_dims=1, max_dims=3, min_side=0, max_side=14):
    """Small arrays in which many elements are equal, among them NaNs, infinities and both zeros."""
    def elements(dtype):
        if dtype.kind == "f":
            few = st.sampled_from([0.0, -0.0, 1.0, -1.5, 2.0, float("nan"), float("inf"), -float("inf")])
            return st.one_of(few, st.integers(-9, 9).map(float))
        if dtype.kind == "c":
            part = st.sampled_from([0.0, -0.0, 1.0, -2.0, float("nan"), float("inf")])
            return st.builds(complex, part, part)
        return hnp.from_dtype(dtype)

    shapes = hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=max_side)
    types = st.sampled_from(dtypes or DTYPES).map(np.dtype)
    return types.flatmap(lambda dtype: hnp.arrays(dtype, shapes, elements=elements(dtype)))


def same(x, expected):
    """Equal in type, shape and every element; NaNs are alike, zeros have signs."""
    got = x.asnumpy()
    expected = np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind == "f":
        zero = got == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))


def close(x, expected, rtol=1e-6):
    got = x.asnumpy()
    expected = np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)
