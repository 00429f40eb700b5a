"""drupe.array.fft against numpy.fft."""
import doctest

import numpy as np
import pytest

import drupe.array as da
from drupe.array import fft

COMPLEX = ("fft", "ifft", "irfft", "hfft")
REAL = ("fft", "ifft", "rfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "irfftn", "fft2", "ifft2", "irfft2")


def numbers(shape, dtype, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return (x * 10).astype(dtype)


def assert_near(ours, theirs, single=False):
    """Relative to the whole, as errors of transforms are."""
    ours = ours.asnumpy()
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    error = np.linalg.norm((ours - theirs).reshape(-1))
    assert error <= 10 * np.finfo(np.float32 if single else float).eps * np.linalg.norm(theirs.reshape(-1))


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_along_each_axis(device, name, dtype):
    x = numbers((5, 12, 7), dtype)
    for axis in (0, 1, -1):
        for n in (None, 1, 6, 13):
            ours = getattr(fft, name)(da.asarray(x, device=device), n=n, axis=axis)
            assert_near(ours, getattr(np.fft, name)(x, n=n, axis=axis), dtype == "complex64")


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
def test_of_real_numbers(device, name, dtype):
    x = numbers((4, 9, 10), dtype)
    for axis in (0, 1, -1):
        for n in (None, 1, 7, 16):
            ours = getattr(fft, name)(da.asarray(x, device=device), n=n, axis=axis)
            assert_near(ours, getattr(np.fft, name)(x, n=n, axis=axis), dtype == "float32")


@pytest.mark.parametrize("n", [1, 2, 47, 53, 101, 256, 1000, 2039, 4096, 30030, 65536, 100003, 1 << 18])
def test_long_lines(device, n):
    x, y = numbers(n, complex), numbers(n, float)
    assert_near(fft.fft(da.asarray(x, device=device)), np.fft.fft(x))
    assert_near(fft.ifft(da.asarray(x, device=device)), np.fft.ifft(x))
    assert_near(fft.rfft(da.asarray(y, device=device)), np.fft.rfft(y))
    assert_near(fft.irfft(fft.rfft(da.asarray(y, device=device)), n=n), y)
    assert_near(fft.ifft(fft.fft(da.asarray(y, device=device))).real, y)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes(device, name):
    x = numbers((6, 8, 5), complex)
    d = da.asarray(x, device=device)
    ours, theirs = getattr(fft, name), getattr(np.fft, name)
    assert_near(ours(d), theirs(x))
    assert_near(ours(d, axes=(0, 2)), theirs(x, axes=(0, 2)))
    assert_near(ours(d, s=(4, 9), axes=(2, 0)), theirs(x, s=(4, 9), axes=(2, 0)))
    assert (d.asnumpy() == x).all()  # what was given is as it was


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward", None])
def test_norms(device, norm):
    x = numbers((6, 10), complex)
    for name in (*COMPLEX, "fftn", "ifftn", "irfftn"):
        assert_near(getattr(fft, name)(da.asarray(x, device=device), norm=norm), getattr(np.fft, name)(x, norm=norm))
    for name in (*REAL, "rfftn", "rfft2"):
        assert_near(getattr(fft, name)(da.asarray(x.real, device=device), norm=norm),
                    getattr(np.fft, name)(x.real, norm=norm))


def test_strided_and_empty(device):
    x = numbers((8, 6, 10), complex)
    d = da.asarray(x, device=device)
    assert_near(fft.fft(d[::2, ::-1, 1::3], axis=0), np.fft.fft(x[::2, ::-1, 1::3], axis=0))
    assert_near(fft.rfft(d.real[1], axis=0), np.fft.rfft(x.real[1], axis=0))
    assert fft.fft(da.zeros((0, 4), device=device)).shape == (0, 4)
    assert (fft.fft(da.zeros((2, 0), device=device), n=3).asnumpy() == np.zeros((2, 3), complex)).all()


def test_frequencies(device):
    for n in (1, 2, 7, 8):
        for d in (1.0, 0.3):
            assert (fft.fftfreq(n, d=d, device=device).asnumpy() == np.fft.fftfreq(n, d)).all()
            assert (fft.rfftfreq(n, d=d, device=device).asnumpy() == np.fft.rfftfreq(n, d)).all()
    assert fft.fftfreq(4, dtype=da.float32, device=device).dtype == "float32"


def test_shifts(device):
    x = numbers((5, 6), float)
    d = da.asarray(x, device=device)
    for axes in (None, 0, (1,), (0, -1)):
        assert (fft.fftshift(d, axes=axes).asnumpy() == np.fft.fftshift(x, axes)).all()
        assert (fft.ifftshift(d, axes=axes).asnumpy() == np.fft.ifftshift(x, axes)).all()


@pytest.mark.parametrize("wrong, error, text", [
    (lambda x: fft.fft(x, n=0), ValueError, r"Invalid number of FFT data points \(0\)"),
    (lambda x: fft.irfft(x[:1, :1]), ValueError, r"data points \(0\)"),
    (lambda x: fft.fft(x, norm="none"), ValueError, 'should be "backward", "ortho" or "forward"'),
    (lambda x: fft.fft(x, axis=2), IndexError, "axis 2 is out of bounds"),
    (lambda x: fft.fftn(x, s=(2,), axes=(0, 1)), ValueError, "different lengths"),
    (lambda x: fft.rfft(x), TypeError, "does not take complex128: use fft"),
    (lambda x: fft.ihfft(x), TypeError, "does not take complex128"),
    (lambda x: fft.fft(x.asnumpy()), TypeError, r"asarray\(x\)"),
    (lambda x: fft.rfftn(x.real, axes=()), ValueError, "at least 1 axis"),
    (lambda x: fft.fftfreq(0), ValueError, "data points"),
    (lambda x: fft.fftfreq(3, dtype="int32"), ValueError, "floating-point numbers, not int32")])
def test_errors(device, wrong, error, text):
    with pytest.raises(error, match=text):
        wrong(da.asarray(numbers((3, 4), complex), device=device))


def test_nan_stays_in_its_line(device):
    x = numbers((20, 16), float)
    x[3, 5] = np.nan
    result = fft.rfft(da.asarray(x, device=device)).asnumpy()
    assert np.isnan(result[3]).all() and not np.isnan(np.delete(result, 3, 0)).any()


def test_examples_hold():
    finder = doctest.DocTestFinder(recurse=True)
    examples = [test for test in finder.find(fft, globs={"da": da}) if test.examples]
    assert {test.name.rpartition(".")[2] for test in examples} >= set(fft.__all__) - {"Generator", "SeedSequence"}
    for test in examples:
        assert not doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed, test.name
