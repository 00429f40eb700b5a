"""What random programs have found (tests/fuzz/kernels.py): functions that must do compiled what they do in Python."""
import numpy as np
import pytest
from kernels_run import Target, check

import drupe

TARGETS = {"quick": ("host", "quick"), "best": ("host", "best"), "opencl": ("opencl:cpu", "driver")}


@pytest.fixture(scope="module", params=TARGETS)
def target(request):
    try:
        return Target(*TARGETS[request.param])
    except drupe.DeviceNotFoundError:
        pytest.skip("there is no OpenCL CPU device")


def outputs(**types):
    return {name: np.zeros(20, dtype) for name, dtype in types.items()}


X = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 7.0, 1e-3, -9.25, 3.0, 0.5, 2.0, -1.0, 5.5, 4.0, -3.0,
              100.0, 0.1, -0.1])
N = np.array([0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100, 127, -128, 5, -5, 10, -10, 64, -64, 99], "int8")


def test_or_and_of_three_give_one_of_them(target):
    check(target, """
    def f(i, n, o, p, q):
        o[i] = 0 or i - 7 or 5
        p[i] = i and 2.5 and 0.25
        q[i] = n[i] and n[3] or n[i] and n[4]
    """, "f(i, n, o, p, q)", n=N, **outputs(o="int64", p="float64", q="int8"))


def test_or_and_of_bools_keep_their_kind(target):
    check(target, """
    def f(i, n, o):
        o[i] = ((n[i] > 2) and (n[i] < 50)) + np.int8(1)
    """, "f(i, n, o)", n=N, **outputs(o="int8"))


def test_constants_of_float16_and_float32_are_rounded(target):
    check(target, """
    def f(i, x, o, p, q):
        o[i] = float(np.float16(0.1))
        p[i] = np.float32(0.1) + 1e39 * np.float32(1)
        q[i] = x[i] * 0.3333
    """, "f(i, x, o, p, q)", x=X.astype("float16"), **outputs(o="float64", p="float32", q="float16"))


def test_reciprocal(target):
    check(target, """
    def f(i, n, x, o, p, q):
        o[i] = np.reciprocal(n[i] | np.int8(1))
        p[i] = np.reciprocal(x[i])
        q[i] = np.reciprocal(np.int8(7)) << 0
    """, "f(i, n, x, o, p, q)", n=N, x=X, **outputs(o="int8", p="float64", q="int8"))


def test_fmod_of_integers_is_an_integer(target):
    check(target, """
    def f(i, n, m, o, p, q, r):
        o[i] = np.fmod(n[i], n[19 - i])
        p[i] = np.fmod(m[i], np.uint32(3)) & 1
        q[i] = np.fmod(i - 10, 3)
        r[i] = np.fmod(n[i], 0.3)
    """, "f(i, n, m, o, p, q, r)", n=N, m=N.astype("uint32"), **outputs(o="int8", p="uint32", q="int64", r="float64"))


def test_sign(target):
    check(target, """
    def f(i, x, n, o, p):
        o[i] = np.sign(x[i])
        p[i] = np.sign(n[i])
    """, "f(i, x, n, o, p)", x=X, n=N, **outputs(o="float64", p="int8"))


def test_functions_of_numpy_make_pythons_numbers_strong(target):
    check(target, """
    def f(i, n, x, o, p, q):
        o[i] = np.absolute(i - 300) + n[i]
        p[i] = np.sqrt(2.0) * x[i]
        q[i] = math.sqrt(2.0) * x[i]
    """, "f(i, n, x, o, p, q)", n=N, x=X.astype("float32"), **outputs(o="int64", p="float64", q="float32"))


def test_functions_of_two_operands_compute_in_their_common_type(target):
    check(target, """
    def f(i, n, o):
        o[i] = np.copysign(n[i], -0.1) + np.fmod(np.uint8(1), 0.1)
    """, "f(i, n, o)", n=N, **outputs(o="float64"))


def test_the_least_int64(target):
    check(target, """
    def f(i, o, p, q):
        o[i] = np.int64(-9223372036854775808)
        p[i] = np.uint64(2**63)
        q[i] = (1 << 63) - 1 - i
    """, "f(i, o, p, q)", **outputs(o="int64", p="uint64", q="int64"))


def test_a_constant_that_is_not_reached_may_not_fit(target):
    check(target, """
    def f(i, o):
        v = -2.5
        o[i] = np.uint32(v) if 0.0 <= v <= 100.0 else np.uint32(1)
    """, "f(i, o)", **outputs(o="uint32"))


def test_loops_over_tuples_hold_loops_with_break(target):
    check(target, """
    def f(i, o):
        total = 0
        for start in (1, i, 3):
            for k in range(start, 10):
                if k > 5:
                    break
                total += k
        o[i] = total
    """, "f(i, o)", **outputs(o="int64"))


def test_the_tuple_of_a_loop_is_made_before_it(target):
    check(target, """
    def f(i, x, o):
        v = x[i]
        for w in (2.0, v, v):
            v = v * 0.5 + w
        o[i] = v
    """, "f(i, x, o)", x=X, **outputs(o="float64"))


def test_slices_that_overlap(target):
    w = np.arange(120.0).reshape(20, 6)
    check(target, """
    def f(i, w):
        w[2:5] = w[:3]
        w[i % 3:i % 3 + 3] = w[1:4]
        w[:4] = w[1:5]
    """, "f(i, w[i])", w=w)


def test_equal_branches(target):
    """libtcc 0.9.27 computes `(a ? 0 : 0) ? b : c` wrongly."""
    check(target, """
    def f(i, x, o):
        o[i] = 5 if (0 if x[i] < 2 else 0) else 7
    """, "f(i, x, o)", x=X, **outputs(o="int64"))


def test_products_of_complex_numbers_are_rounded_once_each(target):
    x = np.where(np.isfinite(X), X, 1.7)
    z = (x[::-1] * 3.3 + 1j * x)[7:].copy()
    check(target, """
    def f(i, z, o):
        total = 0.0
        for k in range(len(z)):
            total += z[k] * z[i % 13]
        o[i] = total
    """, "f(i, z, o)", z=z, **outputs(o="complex128"))


def test_parts_of_bools(target):
    check(target, """
    def f(i, n, o, p):
        o[i] = (i > 3).real - (i > 5).conjugate() + (i > 2).imag
        p[i] = np.uint64(2) ^ (n[i] > 0).conjugate()
    """, "f(i, n, o, p)", n=N, **outputs(o="int64", p="uint64"))


def test_operations_of_numpy_on_bools(target):
    check(target, """
    def f(i, n, o, p, q):
        o[i] = np.square(n[i] > 3)
        p[i] = np.rint(n[i])
        q[i] = np.float_power(np.float32(2), np.float32(i % 4))
    """, "f(i, n, o, p, q)", n=N, **outputs(o="int8", p="float16", q="float64"))


def test_operands_are_computed_from_the_left_to_the_right(target):
    check(target, """
    def h(r, a):
        r[0] += a
        return r[0]


    def later(r, a):
        r[0] += a
        if a > 3:
            return r[1]
        return r[0]


    def f(i, w, o):
        r = w[i]
        o[i, 0] = r[0] - h(r, 2.0)
        o[i, 1] = r[0] * later(r, 3.0)
        o[i, 2] = i < 3 < later(r, 1.0)
        o[i, 3] += h(o[i], 1.0)
        a, b = r[0], h(r, 0.5)
        o[i, 4] = max(r[0], h(r, a), b)
        r[int(h(r, 1.0)) % 3] = r[0]
    """, "f(i, w, o)", w=np.arange(60.0).reshape(20, 3), o=np.ones((20, 5)))


def test_names_that_the_compiler_might_have(target):
    check(target, """
    def h(x):
        if x < 0:
            return x
        x_given = 2.0
        return x * x_given


    def f(i, x, o):
        x_shape0, _t1, f1_i, f1_t1, double = 3.0, 4.0, 5.0, 6.0, 7.0
        t = (x_shape0, _t1)
        t_0, größe = 8.0, 9.0
        o[i] = x_shape0 + _t1 + f1_i + f1_t1 + double + t[0] * t_0 + h(x[i - 1]) + größe
    """, "f(i, x, o)", x=X, **outputs(o="float64"))


def test_private_arrays_in_loops_over_tuples(target):
    check(target, """
    def f(i, o):
        for k in (1, 2, 3):
            v = np.zeros(3)
            for j in range(2):
                u = np.zeros(2)
                u[j] += k
                v[j] += u[0] + u[1]
            o[i] += v[0] * k + v[1]
    """, "f(i, o)", **outputs(o="float64"))


def test_the_else_of_an_empty_loop(target):
    check(target, """
    def f(i, o):
        for k in range(i):
            pass
        else:
            o[i] = 3
    """, "f(i, o)", **outputs(o="int64"))


def test_constants_that_are_compared(target):
    """libtcc 0.9.27 computes what stands behind `1 ||` wrongly, if there are conditions in a condition."""
    check(target, """
    def f(i, n, o, p):
        v = np.uint32(2) not in (np.uint32(2), n[(2 if n[i] > np.uint64(2) else 0) % 3 - 5])
        o[i] = 2 + v
        p[i] = (np.int8(3) == np.int8(3)) | (n[i] > 3) | bool(np.float32(0.0))
    """, "f(i, n, o, p)", n=N, **outputs(o="int16", p="bool"))


def test_floats_of_integers_that_were_floats(target):
    """GCC takes them for trunc(), of which -0.5 is -0.0, and 0.0 - float(0) for -0.0."""
    check(target, """
    def f(i, x, o, p, q):
        v = x[-2]
        o[i] = (np.int64(v) if -9.0 <= v <= 9.0 else np.int64(1)) * 2.0
        p[i] = 0.0 - (i - 3)
        n = int(x[i]) if -9.0 <= x[i] <= 9.0 else 7
        q[i] = np.int32(n) / np.float64(3) + complex(2.0, 0.0).real * math.floor(v)
    """, "f(i, x, o, p, q)", x=np.where(np.arange(20) % 2, -0.25, X), **outputs(o="float64", p="float64", q="float64"))
