"""The operator ** beside NumPy's: powers that are a square, a root, the same or a reciprocal are exact."""
import numpy as np
import pytest

import drupe.array as da

NUMBERS = [-np.inf, -3.7, -1.0, -0.0, 0.0, 0.1, 1.0, 2.5, 1e200, np.inf, np.nan]
PARTS = [-3.7, -1.0, 0.5, 2.0, 7.0]
EXPONENTS = [2, 2.0, 0.5, 1, 1.0, -1, -1.0, 0, 3, np.float32(2), True]
# Integers to a power that is none get a float type, which depends on the device.
CASES = [(dtype, exponent) for dtype in ("int8", "uint8", "int32", "uint64") for exponent in (0, 1, 2, 3)]
CASES += [(dtype, exponent) for dtype in ("float16", "float32", "float64", "complex64", "complex128")
          for exponent in EXPONENTS]


def values(dtype):
    kind = np.dtype(dtype).kind
    if kind in "iu":
        return np.arange(1, 12).astype(dtype) * np.dtype(dtype).type(23)
    with np.errstate(all="ignore"):
        return np.asarray(NUMBERS if kind == "f" else np.add.outer(PARTS, np.multiply(PARTS, 1j))).astype(dtype)


@pytest.mark.parametrize("dtype, exponent", CASES)
def test_powers_are_numpys(device, dtype, exponent):
    x = values(dtype)
    with np.errstate(all="ignore"):
        expected = x ** (float(exponent) if isinstance(exponent, np.floating) else exponent)
    found = da.asarray(x, device=device) ** exponent
    assert found.dtype == expected.dtype.name
    rtol = {"float16": 1e-3, "float32": 1e-6, "complex64": 1e-5}.get(dtype, 1e-12)
    np.testing.assert_allclose(da.asnumpy(found), expected, rtol=rtol)


def test_squares_have_the_bits_of_products(device):
    dtype = "float64" if device.has_aspect_fp64 else "float32"
    x = da.asarray(np.random.default_rng(2).normal(size=10001).astype(dtype), device=device)
    assert np.array_equal(da.asnumpy(x ** 2), da.asnumpy(x * x))
    assert np.array_equal(da.asnumpy((x + 1) ** 2), da.asnumpy((x + 1) * (x + 1)))  # over memory that ends
    kept = da.asnumpy(x)
    x **= 2
    assert np.array_equal(da.asnumpy(x), kept * kept)


def test_powers_of_numbers_and_of_arrays_stay(device):
    x = da.asarray([1, 2, 3], dtype="float32", device=device)
    assert (2 ** x).tolist() == [2, 4, 8] and (x ** da.asarray([2, 2, 0], device=device)).tolist() == [1, 4, 1]
    assert (da.asarray([True, False], device=device) ** da.asarray([2, 2], device=device)).tolist() == [1, 0]
