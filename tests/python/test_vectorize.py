"""drupe.vectorize: functions of numbers over arrays, against NumPy."""
import math

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe.compiler.messages import KernelError

FACTOR = 2


@pytest.fixture(autouse=True)
def place(device):
    with drupe.device(device):
        yield device


@drupe.vectorize
def clipped(x, most):
    return x if x < most else most


@drupe.vectorize
def collatz(n):
    steps = 0
    while n > 1:
        n = 3*n + 1 if n % 2 else n//2
        steps += 1
    return steps


def test_arrays_of_numpy_and_of_the_device(place):
    x = np.linspace(0, 2, 11)
    found = clipped(x, 1.25)
    assert type(found) is np.ndarray and np.array_equal(found, np.minimum(x, 1.25))
    found = clipped(da.asarray(x), 1.25)
    assert type(found) is da.Array and found.device == place and np.array_equal(found.asnumpy(), np.minimum(x, 1.25))
    assert np.array_equal(clipped([1, 5, 3], 4), [1, 4, 3])


def test_numbers_stay_numbers():
    assert clipped(3, 2) == 2 and type(clipped(3, 2)) is int
    assert collatz(27) == 111


@pytest.mark.parametrize("shapes", [((5,), (5,)), ((2, 3), (3,)), ((4, 1), (1, 5)), ((2, 1, 3), (4, 1)), ((), (3, 2)),
                                    ((2, 1, 3, 1), (2, 2, 1, 5)), ((0, 3), (3,)), ((2, 1, 1, 1, 3), (1, 4, 1, 2, 1))])
def test_shapes_are_broadcast(shapes):
    a, b = (np.random.default_rng(at).random(shape) for at, shape in enumerate(shapes))
    found = clipped(a, b)
    assert np.shape(found) == np.broadcast_shapes(*shapes) and np.array_equal(found, np.minimum(a, b))


def test_views():
    x = np.random.default_rng(1).random((6, 8))
    for one in (x.T, x[::2], x[:, ::-1], x[1:4, 2:5], np.asfortranarray(x)):
        assert np.array_equal(clipped(one, 0.5), np.minimum(one, 0.5))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "float32", "float64"])
def test_types_are_those_of_the_arguments(dtype):
    x = np.arange(20).astype(dtype)
    found = clipped(x, 7)
    assert found.dtype == dtype and np.array_equal(found, np.minimum(x, 7))
    assert collatz(x).dtype == "int64"


def test_loops_branches_and_returns():
    x = np.arange(1, 50)
    assert np.array_equal(collatz(x), [collatz(int(one)) for one in x])

    @drupe.vectorize
    def sign(v):
        if v > 0:
            return 1
        if v < 0:
            return -1
        return 0

    assert sign(np.array([-2.0, 0.0, 3.0])).tolist() == [-1, 0, 1]


def test_functions_and_globals(monkeypatch):
    def helper(v):
        return math.sqrt(v)*FACTOR

    @drupe.vectorize
    def f(v):
        return helper(v) + 1

    x = np.arange(10.0)
    assert np.allclose(f(x), np.sqrt(x)*2 + 1)
    monkeypatch.setitem(globals(), "FACTOR", 5)
    assert np.allclose(f(x), np.sqrt(x)*5 + 1)


def test_a_constant():
    @drupe.vectorize
    def one(v):
        return 1.5

    assert one(np.zeros(3)).tolist() == [1.5]*3 and one(np.zeros(3, "float32")).dtype == "float64"


def test_signatures():
    @drupe.vectorize(["int32(int32, int32)", "f4(f4,f4)", "float64(float64, float64)"], target="cpu", nopython=True)
    def add(a, b):
        return a + b

    for given, result in (("int32 int32", "int32"), ("int16 int32", "int32"), ("float32 float32", "float32"),
                          ("int64 float32", "float64"), ("int64 int64", "float64"), ("uint8 float32", "float32")):
        a, b = (np.arange(5).astype(one) for one in given.split())
        found = add(a, b)
        assert found.dtype == result and np.array_equal(found, 2*np.arange(5)), given
    assert add(np.arange(3, dtype="float32"), 1).dtype == "float32"
    assert type(add(1, 2)) is np.int32 and type(add(1.5, 2)) is np.float32
    with pytest.raises(TypeError, match=r"no signature for \(complex128, float64\).*float64\(float64, float64\)"):
        add(np.zeros(2, "complex128"), np.zeros(2))
    assert add.types == ["int32(int32, int32)", "float32(float32, float32)", "float64(float64, float64)"]
    assert (add.nin, add.nout) == (2, 1)


def test_a_signature_casts_within_the_kernel():
    @drupe.vectorize("float64(float64)")
    def half(a):
        return a/2

    assert half(np.arange(3)).tolist() == [0.0, 0.5, 1.0]

    @drupe.vectorize(["int16(float64)"])
    def whole(a):
        return a*2

    assert whole(np.array([1.7, -1.7])).tolist() == [3, -3] and whole(np.zeros(1)).dtype == "int16"


@pytest.mark.parametrize("wrong, what", [("float99(int32)", "float99"), ("nothing", "signature"),
                                         ("int32(int32,int32)", "takes 1 argument")])
def test_wrong_signatures(wrong, what):
    with pytest.raises(TypeError, match=what):
        drupe.vectorize([wrong])(lambda a: a)


def test_out():
    x, out = np.arange(6.0).reshape(2, 3), np.zeros((2, 3))
    assert clipped(x, 3, out=out) is out and np.array_equal(out, np.minimum(x, 3))
    whole = np.zeros((2, 6))
    clipped(x, 3, out=whole[:, ::2])
    assert np.array_equal(whole[:, ::2], out) and not whole[:, 1::2].any()
    with pytest.raises(ValueError, match="shape"):
        clipped(x, 3, out=np.zeros(4))


def test_what_there_is_not():
    for name in ("reduce", "accumulate", "outer", "at", "reduceat"):
        with pytest.raises(AttributeError, match="prange"):
            getattr(clipped, name)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        clipped(np.zeros(3))
    with pytest.raises(ValueError, match="target"):
        drupe.vectorize(target="quantum")(lambda a: a)
    with pytest.raises(ValueError, match="broadcast"):
        clipped(np.zeros(3), np.zeros(4))


def test_errors_are_at_the_users_line():
    @drupe.vectorize
    def f(a):
        values = [a, a]
        return values[0]

    with pytest.raises(KernelError, match="list") as caught:
        f(np.zeros(3))
    assert caught.value.line == f.py_func.__code__.co_firstlineno + 2


def test_in_offload_functions_and_their_loops():
    @drupe.offload
    def f(x):
        y = clipped(x, 2.0)
        for i in drupe.prange(len(x)):
            y[i] += clipped(x[i], 1.0)
        return y

    x = np.arange(5.0)
    assert np.array_equal(f(x), np.minimum(x, 2) + np.minimum(x, 1))


def test_inspect():
    @drupe.vectorize
    def f(a):
        return a*2

    f(np.zeros(3, "float32"))
    assert [shown.arguments["drupe_x0"] for shown in f.inspect()] == ["array(float32, 1d)"]


def test_functions_of_other_kinds():
    @drupe.device_func
    def doubled(x):
        return 2*x

    assert drupe.vectorize(doubled)(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
    for other in (math.sin, np.sin):
        with pytest.raises(TypeError, match="written in Python, not .*sin"):
            drupe.vectorize(other)
