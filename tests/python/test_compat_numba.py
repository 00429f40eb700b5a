"""What programs import from Numba itself, where it is not installed: types, jit, njit, prange, vectorize."""
import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe.compat import dpctl, numba
from drupe.compat.numba import float64, njit, prange

TYPES = """void none boolean bool_ b1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
complex64 complex128 i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16 intp uintp intc int_ double float_""".split()


@njit
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@njit(cache=True, fastmath=True)
def quarter(n):
    inside = 0
    for i in range(n):
        x, y = (i * 0.618) % 1, (i * 0.414) % 1
        if x * x + y * y < 1:
            inside += 1
    return 4 * inside / n


@njit
def sort(a):
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]


@njit(parallel=True)
def product(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s
    return c


@numba.jit(nopython=True)
def tables(n):
    even, squares = [], {}
    for i in range(n):
        even.append(2 * i)
        squares[i] = i * i
    return even, squares


def test_functions(device):
    a = np.random.default_rng(1).random((20, 20))
    with dpctl.device_context(device.filter_string):
        assert fibonacci(12) == 144 and tables(4) == ([0, 2, 4, 6], {0: 0, 1: 1, 2: 4, 3: 9})
        assert quarter(10) == quarter.py_func(10) and quarter(5000) == quarter.py_func(5000)
        got = product(a, a.astype("float32"))
        values = a[0].copy()
        sort(values)
    assert isinstance(got, np.ndarray) and np.allclose(got, a @ a.astype("float32"))
    assert values.tolist() == sorted(a[0])
    moved = product(da.asarray(a, device=device), da.asarray(a, device=device))
    assert moved.device == device and np.allclose(moved.asnumpy(), a @ a)


def test_a_float_of_python_is_a_float64(device):
    @njit
    def total(a):
        s = 0.0
        for i in range(len(a)):
            s += a[i]
        return s

    a = np.full(600, 0.1, "float32")
    with drupe.device(device.filter_string):
        assert total(a) == pytest.approx(600 * float(a[0]), rel=1e-12)


def test_signatures():
    @njit("f4(f4, i8)")
    def scaled(x, n):
        return x * n / 3

    @njit([float64(float64)])
    def same(x):
        return x

    assert scaled(0.1, 2) == np.float32(np.float32(0.1) * 2 / 3) and type(scaled(0.1, 2)) is np.float32
    assert type(same(3)) is np.float64
    with pytest.raises(TypeError, match="was declared for"):
        scaled(0.1, 2.5)
    with pytest.raises(TypeError, match="by name"):
        scaled(x=0.1, n=2)
    with pytest.raises(NotImplementedError, match="one signature"):
        njit(["f4(f4)", "f8(f8)"])
    with pytest.raises(TypeError, match="no option 'colour'"):
        njit(colour=1)


def test_vectorize():
    @numba.vectorize([float64(float64, float64)])
    def add(a, b):
        return a + b

    assert add(np.ones(3), 2).tolist() == [3, 3, 3]


def test_numbers_of_vectorize_are_numbas():
    @numba.vectorize
    def tenth(x):
        return x * 0.1

    @numba.vectorize
    def above(n, m):
        return n + m

    found = tenth(np.full(2, 0.3, "float32"))
    assert found.dtype == np.float64 and found[0] == float(np.float32(0.3)) * 0.1
    n = np.array([200, 250], "uint8")
    assert above(n, n).dtype == np.uint64 and above(n, n).tolist() == [400, 500]


@pytest.mark.parametrize("name", TYPES)
def test_types(name):
    found = getattr(numba, name)
    assert found == getattr(numba.types, name) or found.name == "none"
    if found.name != "none":
        assert repr(found[:, ::1]) == "array(%s, 2d, C)" % found.name and found(1).dtype == found.dtype
        assert np.zeros(2, found.dtype).dtype == found.dtype


def test_names():
    from drupe.compat import numba_cuda

    assert numba.cuda is numba_cuda and {"cuda", "types", "njit", "float32"} <= set(dir(numba))
    for name, says in (("guvectorize", "prange"), ("typed", "pip install numba"), ("stencil", "Write a loop")):
        with pytest.raises(AttributeError, match="does not provide numba.%s. .*%s" % (name, says)):
            getattr(numba, name)
    with pytest.raises(TypeError, match=r"written float64\[:\]"):
        float64[3]  # noqa: B018
