"""Offload functions: loops over prange(), reductions, errors, and what is known of variables."""
import ast
import collections
import math
import textwrap

import numpy as np
import pytest

import drupe
from drupe import prange
from drupe.compiler.messages import KernelError
from drupe.offloading import flow, loops

TABLE = np.array([3.0, 1.0, 2.0, 5.0])
SCALE = 3


@pytest.fixture(autouse=True)
def place(device):
    with drupe.device(device):
        yield device


# --- Parallel loops ---------------------------------------------------------------------------------------

def test_pairwise_distances():
    @drupe.offload
    def distances(a, b):
        d = np.empty((len(a), len(b)))
        for i in drupe.prange(len(a)):
            for j in range(len(b)):
                s = 0.0
                for k in range(a.shape[1]):
                    s += (a[i, k] - b[j, k])**2
                d[i, j] = math.sqrt(s)
        return d

    a, b = np.random.default_rng(1).random((20, 3)), np.random.default_rng(2).random((31, 3))
    found = distances(a, b)
    assert type(found) is np.ndarray
    assert np.allclose(found, np.sqrt(((a[:, None] - b)**2).sum(-1)), rtol=1e-14)


def test_ranges_of_all_kinds():
    @drupe.offload
    def fill(x, start, stop, step):
        for i in prange(start, stop, step):
            x[i] += 10*i + 1

    for bounds in ((0, 10, 1), (3, 9, 2), (9, 2, -3), (-4, 4, 1), (5, 5, 1), (7, 3, 1)):
        x, expected = np.zeros(10), np.zeros(10)
        for i in range(*bounds):
            expected[i] += 10*i + 1
        fill(x, *bounds)
        assert np.array_equal(x, expected), bounds


def test_nests_are_one_kernel():
    @drupe.offload
    def nest(x, n):
        for i in prange(1, n):
            for j in prange(x.shape[1]):
                for k in prange(0, x.shape[2], 2):
                    if j == 1:
                        continue
                    x[i, j, k] = 100*i + 10*j + k

    x, expected = np.zeros((4, 3, 5), "int32"), np.zeros((4, 3, 5), "int32")
    for i in range(1, 4):
        for j in (0, 2):
            for k in range(0, 5, 2):
                expected[i, j, k] = 100*i + 10*j + k
    nest(x, 4)
    assert np.array_equal(x, expected)
    assert [loop.dims for loop in nest._whole.loops] == [3]


def test_an_inner_loop_that_adds_to_one_element_is_a_loop():
    """Numba runs inner loops over prange() one round after the other, and programs are written for that."""
    @drupe.offload
    def sums(x, w, rows, most, product):
        for i in prange(len(x)):
            for j in prange(x.shape[1]):
                rows[i] += x[i, j]*w[j]
        for i in prange(len(x)):
            for j in prange(x.shape[1]):
                most[i] = max(most[i], x[i, j])
        for i in prange(len(x)):
            for j in prange(x.shape[1]):
                for k in prange(len(x)):
                    product[i, k] += x[i, j]*x[k, j]
        for i in prange(len(x)):
            for j in prange(x.shape[1]):
                k = j
                x[i, k] += 1

    x, w = np.random.default_rng(1).integers(0, 9, (40, 130)), np.arange(130)
    rows, most, product = np.zeros(40, int), np.zeros(40, int), np.zeros((40, 40), int)
    expected = x + 1, x@w, x.max(axis=1), x@x.T
    sums(x, w, rows, most, product)
    for one, other in zip((x, rows, most, product), expected):
        assert np.array_equal(one, other)
    assert [loop.dims for loop in sums._whole.loops] == [1, 1, 1, 2]


def test_an_inner_loop_whose_range_depends_is_a_loop():
    @drupe.offload
    def triangle(x):
        for i in prange(len(x)):
            for j in prange(i + 1):
                x[i, j] = i*j

    x = np.ones((7, 7))
    triangle(x)
    i, j = np.indices((7, 7))
    assert np.array_equal(x, np.where(j <= i, i*j, 1.0))
    assert [loop.dims for loop in triangle._whole.loops] == [1]


def test_a_loop_that_leaves_nothing():
    @drupe.offload
    def nothing(n):
        for i in prange(n):
            t = i*2
            if t > 3:
                t = 0
        return n

    assert nothing(5) == 5

    @drupe.offload
    def counting(n):
        i = 0
        while i < n:
            i += 1
        return n

    assert counting(3) == 3


def test_what_a_body_assigns_belongs_to_the_round():
    @drupe.offload
    def body(x, y, mode):
        t = -1.0
        for i in prange(len(x)):
            t = x[i]*2
            u, v = t, t + 1
            if mode == "add":
                y[i] = u + v
            else:
                y[i] = u - v
        t = 5.0
        return t

    x, y = np.arange(100.0), np.zeros(100)
    assert body(x, y, "add") == 5.0 and np.array_equal(y, 4*x + 1)
    assert body(x, y, "other") == 5.0 and np.array_equal(y, -np.ones(100))


def test_tuples_objects_functions_and_outer_arrays():
    Pair = collections.namedtuple("Pair", "by more")

    class Settings:
        def __init__(self, by, offset):
            self.by, self.offset = by, offset

    def helper(x, y):
        return x*y + SCALE

    inner = np.array([10.0, 20.0])

    @drupe.offload
    def body(x, y, pair, settings):
        first, second = pair
        for i in prange(len(x)):
            y[i] = helper(x[i], settings.by) + settings.offset + pair.by*TABLE[i % 4] + second + inner[i % 2]
        return first

    x, y = np.arange(50.0), np.zeros(50)
    assert body(x, y, Pair(2.0, 7), Settings(3, 0.5)) == 2.0
    assert np.array_equal(y, x*3 + SCALE + 0.5 + 2.0*TABLE[np.arange(50) % 4] + 7 + inner[np.arange(50) % 2])


def test_an_array_outside_may_be_written():
    counts = np.zeros(5, "int64")

    @drupe.offload
    def note(x):
        for i in prange(5):
            counts[i] += x[i]

    note(np.arange(5))
    note(np.arange(5))
    assert counts.tolist() == [0, 2, 4, 6, 8]


def test_memory_of_a_round():
    @drupe.offload
    def body(x, y):
        for i in prange(len(x)):
            t = np.zeros(4, dtype=np.float32)
            for k in range(4):
                t[k] += x[i]*k
            y[i] = t[0] + t[3]

    x, y = np.arange(30, dtype="float32"), np.zeros(30, "float32")
    body(x, y)
    assert np.array_equal(y, 3*x)


def test_a_global_that_changes_is_noticed():
    @drupe.offload
    def scale(x):
        for i in prange(len(x)):
            x[i] *= SCALE

    global SCALE
    x = np.ones(5)
    scale(x)
    before = SCALE
    try:
        SCALE = 7
        scale(x)
    finally:
        SCALE = before
    assert x.tolist() == [21.0]*5


# --- Reductions --------------------------------------------------------------------------------------------

SIZES = (0, 1, 7, 1000, 100_003)


@pytest.fixture(params=["blocks", "strided"])
def mode(request, monkeypatch):
    monkeypatch.setattr(loops, "_mode", lambda device: request.param)
    monkeypatch.setattr(loops, "_WORTH", 500)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "complex64", "uint8"])
def test_sums(mode, dtype):
    @drupe.offload
    def total(x):
        s = 0
        for i in prange(len(x)):
            s += x[i]
        return s

    for n in SIZES:
        x = (np.random.default_rng(n).random(n)*100).astype(dtype)
        found = total(x)
        assert np.allclose(found, x.sum(dtype=x.dtype), rtol=1e-5), n
        assert found == total(x)
        assert n == 0 or type(found) is x.dtype.type


def test_several_reductions_in_one_loop(mode):
    @drupe.offload
    def many(x, s, p):
        low, high = x[0], x[0]
        for i in prange(len(x)):
            s -= x[i]
            p = p*(1 + x[i]/len(x))
            low = min(low, x[i])
            high = np.maximum(x[i], high)
        return s, p, low, high

    for n in SIZES[1:]:
        x = np.random.default_rng(n).random(n)
        assert np.allclose(many(x, 10.0, 2.0), (10 - x.sum(), 2*np.prod(1 + x/n), x.min(), x.max()), rtol=1e-10)


def test_flags_and_bits(mode):
    @drupe.offload
    def flags(x):
        some, every, bits, mask, odd = False, True, 0, -1, 0
        for i in prange(len(x)):
            some |= x[i] == 77
            every = every and x[i] < 500
            bits |= x[i]
            mask &= x[i] | 64
            odd ^= x[i]
        return some, every, bits, mask, odd

    for n in SIZES[1:]:
        x = np.random.default_rng(n).integers(0, 400, n)
        found = flags(x)
        assert [bool(one) for one in found[:2]] == [77 in x, True]
        assert found[2:] == (np.bitwise_or.reduce(x), np.bitwise_and.reduce(x | 64), np.bitwise_xor.reduce(x))


def test_conditions_skips_and_strides(mode):
    @drupe.offload
    def count(x, start):
        n, s = 0, 0.0
        for i in prange(start, len(x), 3):
            if x[i] < 0.5:
                continue
            n += 1
            s += x[i]*i
        return n, s

    for size in SIZES:
        x = np.random.default_rng(size).random(size)
        where = np.arange(2, size, 3)
        where = where[x[where] >= 0.5]
        n, s = count(x, 2)
        assert n == len(where) and math.isclose(s, (x[where]*where).sum(), rel_tol=1e-12)


def test_reductions_of_nests(mode):
    @drupe.offload
    def total(x):
        s, most = 0.0, -math.inf
        for i in prange(x.shape[0]):
            for j in prange(x.shape[1]):
                s += x[i, j]*j
                most = max(most, x[i, j])
        return s, most

    for shape in ((1, 1), (30, 41), (500, 7), (3, 1000)):
        x = np.random.default_rng(3).random(shape)
        assert np.allclose(total(x), ((x*np.arange(shape[1])).sum(), x.max()), rtol=1e-12)


def test_whole_arrays_are_reduced(mode):
    @drupe.offload
    def sums(x, w):
        total, squares, count = np.zeros(x.shape[1]), np.ones((2, x.shape[1])), 0
        for i in prange(len(x)):
            total += x[i]*w
            squares += x[i]*x[i]
            count += 1
        return total, squares, count

    for n in (1, 5, 3000):
        x = np.random.default_rng(n).random((n, 4))
        total, squares, count = sums(x, 2.0)
        assert np.allclose(total, 2*x.sum(0)) and np.allclose(squares, [1 + (x*x).sum(0)]*2) and count == n


def test_a_reduction_without_arrays():
    @drupe.offload
    def pi(n):
        s = 0.0
        for i in prange(n):
            x = (i + 0.5)/n
            s += 4/(1 + x*x)
        return s/n

    assert math.isclose(pi(100_000), math.pi, rel_tol=1e-9) and type(pi(1000)) is float


def test_the_same_result_in_every_run():
    @drupe.offload
    def total(x):
        s = 0.0
        for i in prange(len(x)):
            s += x[i]
        return s

    x = np.random.default_rng(5).random(300_000)
    assert len({total(x) for _ in range(20)}) == 1


# --- Errors ------------------------------------------------------------------------------------------------

def _break(x):
    for i in prange(len(x)):
        if x[i] > 0:
            break


def _return(x):
    for i in prange(len(x)):
        return i


def _behind(x):
    t = 0
    for i in prange(len(x)):
        t = x[i]
    return t


def _index_behind(x):
    for i in prange(len(x)):
        x[i] = 0
    return i


def _carried(x):
    last = 0
    for i in prange(len(x)):
        x[i] = last
        last = i


def _read(x):
    s = 0.0
    for i in prange(len(x)):
        s += x[i]
        x[i] = s


def _two(x):
    s = 1.0
    for i in prange(len(x)):
        s += x[i]
        s *= x[i]
    return s


def _caught(x):
    for i in prange(len(x)):
        try:
            x[i] = 0
        except ValueError:
            pass


def _unknown(x):
    for i in prange(len(x)):
        x[i] = not_there  # noqa: F821


def _listed(x):
    for i in prange(len(x)):
        x[i] = sum([1, 2])


def _maximum(x):
    most = np.zeros(3)
    for i in prange(len(x)):
        most = np.maximum(most, x[i])
    return most


@pytest.mark.parametrize("function, code, line, what", [
    (_break, "DK022", 3, "no break"), (_return, "DK022", 2, "return"), (_behind, "DK023", 3, "'t' is read behind"),
    (_index_behind, "DK023", 1, "'i' is read behind"), (_carried, "DK023", 3, "'last' is read"),
    (_read, "DK023", 4, "'s' is read"), (_two, "DK023", 4, "one operation"), (_caught, "DK002", 2, "try"),
    (_unknown, "DK004", 2, "not_there"), (_listed, "DK003", 2, "list"), (_maximum, "DK023", 3, "whole array")])
def test_errors_are_at_the_users_line(function, code, line, what):
    with pytest.raises(KernelError, match=what) as caught:
        drupe.offload(function)(np.zeros((4, 3)) if function is _maximum else np.zeros(4))
    assert caught.value.code == code and caught.value.line == function.__code__.co_firstlineno + line
    assert caught.value.filename == __file__ and "of %s()" % function.__name__ in str(caught.value)
    assert "^" in str(caught.value)


def test_lines_of_an_indented_function_with_blank_ones():
    @drupe.offload
    def f(x):

        for i in prange(len(x)):

            x[i] = not_there  # noqa: F821

    with pytest.raises(KernelError) as caught:
        f(np.zeros(3))
    assert caught.value.line == f.py_func.__code__.co_firstlineno + 5


def test_without_source():
    space = {}
    exec("def f(x):\n    return x", space)
    with pytest.raises(KernelError, match="DK001"):
        drupe.offload(space["f"])(np.zeros(3))
    with pytest.raises(TypeError, match="takes a function"):
        drupe.offload(3)


def test_prange_elsewhere_is_range():
    assert prange(2, 9, 3) == range(2, 9, 3) and list(prange(np.int64(2))) == [0, 1]


def test_arguments_that_cannot_go():
    @drupe.offload
    def f(x):
        for i in prange(len(x)):
            x[i] = 0

    with pytest.raises(KernelError, match="'x' cannot go to a device"):
        f(np.array([None, "a"], dtype=object))
    with pytest.raises(KernelError, match="read-only"):
        x = np.zeros(3)
        x.setflags(write=False)
        f(x)


# --- Flow --------------------------------------------------------------------------------------------------

def _flow(text):
    body = ast.parse(textwrap.dedent(text)).body
    line = loop_line(text)
    loop = next(one for stmt in body for one in ast.walk(stmt) if isinstance(one, ast.For) and one.lineno == line)
    return flow.Liveness(body).after[loop], flow.Assigned((), body).before[loop]


def loop_line(text):
    return next(at for at, line in enumerate(textwrap.dedent(text).splitlines(), 1) if "# here" in line)


@pytest.mark.parametrize("text, live, assigned", [
    ("for i in x:  # here\n    a = i\nb = a", {"a"}, set()),
    ("a = 1\nfor i in x:  # here\n    a = i\na = 2\nb = a", set(), {"a"}),
    ("for t in y:\n    for i in x:  # here\n        a = i\n    if t: a = 0\n", {"t", "x"}, {"t"}),
    ("while c:\n    b = a\n    for i in x:  # here\n        a = i\n", {"a", "c", "x"}, {"b"}),
    ("if c:\n    a = 1\nelse:\n    a = b = 2\nfor i in x:  # here\n    pass\n", set(), {"a"}),
    ("try:\n    for i in x:  # here\n        a = i\nexcept E:\n    b = a\n", {"a", "E"}, set()),
    ("with c as a:\n    b = 1\nfor i in x:  # here\n    pass\nelse:\n    d = b", {"b"}, {"a", "b"}),
    ("while True:\n    a = 1\n    if c: break\n    for i in x:  # here\n        pass\n    continue\nd = e",
     {"c", "x", "e"}, {"a"}),
])
def test_what_is_read_and_what_has_a_value(text, live, assigned):
    found = _flow(text)
    assert found[0] == live and set(found[1]) == assigned
