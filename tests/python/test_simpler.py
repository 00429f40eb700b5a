"""Operators whose operation is a simpler one, beside NumPy's: powers that are a square, a root, the same or a
reciprocal, and divisions of integers."""
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


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_divisions_of_integers(device, dtype):
    """By numbers and by arrays, of all signs, at the ends of the type; powers of two are shifts."""
    info, random = np.iinfo(dtype), np.random.default_rng(6)
    ends = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2 + 1, 0, 1, 2, 3, 100]
    a = np.concatenate([np.array(ends, dtype), random.integers(info.min, info.max, 500, dtype, endpoint=True)])
    b = np.concatenate([random.permutation(a)[:255], random.integers(1, 100, 255).astype(dtype)])
    b[(b == 0) | (b == np.array(-1).astype(dtype))] = 7
    a[:40] = b[:40] * np.arange(40).astype(dtype)  # exact ones
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    assert np.array_equal(da.asnumpy(x // y), a // b) and np.array_equal(da.asnumpy(x % y), a % b)
    numbers = [1, 2, 3, 7, 10, 16, 64, 100, info.max, info.max // 2 + 1] + ([-2, -16, -3] if info.min else [])
    for number in numbers:
        assert np.array_equal(da.asnumpy(x // number), a // number), number
        assert np.array_equal(da.asnumpy(x % number), a % number), number
    assert (x // 16).dtype == (x % 16).dtype == dtype
    with pytest.raises(OverflowError):
        x // (2 * (info.max + 1))
    x //= 4
    assert np.array_equal(da.asnumpy(x), a // 4)
