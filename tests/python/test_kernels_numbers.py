"""Numbers in compiled kernels: functions of mathematics in all types of floats, casts, and Python's own."""
import cmath
import linecache
import math

import numpy as np
import pytest

import drupe
import drupe.array as da

FLOATS = ("float16", "float32", "float64")
ULPS = {"float16": 1, "float32": 5, "float64": 5}
LOOSE = 16  # what OpenCL allows these
# math's name → NumPy's function, and values of its domain.
EVERYWHERE = np.linspace(-3, 3, 41)
MATH = {
    "acos": (np.arccos, np.linspace(-1, 1, 41)), "acosh": (np.arccosh, np.linspace(1, 9, 41)),
    "asin": (np.arcsin, np.linspace(-1, 1, 41)), "asinh": (np.arcsinh, EVERYWHERE), "atan": (np.arctan, EVERYWHERE),
    "atanh": (np.arctanh, np.linspace(-0.9, 0.9, 41)), "ceil": (np.ceil, EVERYWHERE), "cos": (np.cos, EVERYWHERE),
    "cosh": (np.cosh, EVERYWHERE), "cbrt": (np.cbrt, EVERYWHERE), "degrees": (np.degrees, EVERYWHERE),
    "erf": (np.vectorize(math.erf), EVERYWHERE), "erfc": (np.vectorize(math.erfc), EVERYWHERE),
    "exp": (np.exp, EVERYWHERE), "exp2": (np.exp2, EVERYWHERE), "expm1": (np.expm1, EVERYWHERE),
    "fabs": (np.fabs, EVERYWHERE), "floor": (np.floor, EVERYWHERE),
    "gamma": (np.vectorize(math.gamma), np.linspace(0.5, 5, 41)),
    "isfinite": (np.isfinite, np.array([0, np.inf, np.nan])), "isinf": (np.isinf, np.array([0, -np.inf, np.nan])),
    "isnan": (np.isnan, np.array([0, np.inf, np.nan])), "lgamma": (np.vectorize(math.lgamma), np.linspace(3, 9, 41)),
    "log": (np.log, np.linspace(2, 9, 41)), "log10": (np.log10, np.linspace(2, 9, 41)),
    "log1p": (np.log1p, np.linspace(0, 9, 41)), "log2": (np.log2, np.linspace(3, 9, 41)),
    "radians": (np.radians, EVERYWHERE), "sin": (np.sin, EVERYWHERE), "sinh": (np.sinh, EVERYWHERE),
    "sqrt": (np.sqrt, np.linspace(0, 9, 41)), "tan": (np.tan, np.linspace(-1.5, 1.5, 41)),
    "tanh": (np.tanh, EVERYWHERE), "trunc": (np.trunc, EVERYWHERE),
}
NUMPYS = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
          "atanh": "arctanh"}


def written(lines, head):
    """A kernel of these lines, whose source is known."""
    text = head + "".join("    %s\n" % line for line in lines)
    name = "<kernel %d>" % len(linecache.cache)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names = {"math": math, "cmath": cmath, "np": np}
    exec(compile(text, name, "exec"), names)
    return drupe.kernel(names["k"])


def near(got, exact, dtype, ulps, what):
    """Within some units in the last place of what is exact, rounded."""
    with np.errstate(all="ignore"):
        right = np.asarray(exact).astype(dtype)
        unit = np.spacing(np.abs(right)).astype("float64")
        good = np.abs(got.astype("float64") - right.astype("float64")) <= ulps * unit
        good |= (got == right) | (np.isnan(got) & np.isnan(right))
    assert good.all(), (what, got[~good], right[~good])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("module", ["math", "np"])
def test_functions_of_one_float(module, dtype, queue):
    """In one kernel; math computes in the type of its argument."""
    names = [one for one in MATH if hasattr(math, one)]
    names = [one for one in names if module == "math" or hasattr(np, NUMPYS.get(one, one))]
    count = 41
    lines = ["i = item.get_id(0)"] + ["out[%d, i] = %s.%s(x[%d, i])" % (
        at, module, one if module == "math" else NUMPYS.get(one, one), at) for at, one in enumerate(names)]
    kernel = written(lines, "def k(item, x, out):\n")
    x = np.array([np.resize(MATH[one][1], count) for one in names]).astype(dtype)
    out = da.zeros((len(names), count), dtype=dtype, queue=queue)
    drupe.call_kernel(kernel, drupe.Range(count), da.asarray(x, queue=queue), out)
    for got, values, name in zip(out.asnumpy(), x, names):
        ulps = LOOSE if name in ("erf", "erfc", "gamma", "lgamma") and dtype != "float16" else ULPS[dtype]
        near(got, MATH[name][0](values.astype("float64")), dtype, ulps, (module, name))


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_two_floats(dtype, queue):
    lines = ["i = item.get_id(0)", "out[0, i] = math.atan2(x[i], y[i])", "out[1, i] = math.hypot(x[i], y[i])",
             "out[2, i] = math.fmod(x[i], y[i])", "out[3, i] = math.copysign(x[i], y[i])",
             "out[4, i] = math.pow(abs(x[i]), y[i])", "out[5, i] = math.ldexp(x[i], i % 5 - 2)",
             "out[6, i] = np.arctan2(x[i], y[i])", "out[7, i] = x[i] // y[i]", "out[8, i] = x[i] % y[i]",
             "out[9, i] = np.maximum(x[i], y[i]) - np.fmin(x[i], y[i])"]
    kernel = written(lines, "def k(item, x, y, out):\n")
    x, y = np.linspace(-3, 3, 40).astype(dtype), np.linspace(0.7, 2.5, 40).astype(dtype)
    out = da.zeros((10, 40), dtype=dtype, queue=queue)
    drupe.call_kernel(kernel, drupe.Range(40), da.asarray(x, queue=queue), da.asarray(y, queue=queue), out)
    a, b = x.astype("float64"), y.astype("float64")
    exact = [np.arctan2(a, b), np.hypot(a, b), np.fmod(a, b), np.copysign(a, b), np.abs(a)**b,
             np.ldexp(a, np.arange(40) % 5 - 2), np.arctan2(a, b), x // y, x % y, np.maximum(x, y) - np.fmin(x, y)]
    for at, (got, want) in enumerate(zip(out.asnumpy(), exact)):
        near(got, want, dtype, (LOOSE if at == 4 else ULPS[dtype]) if at in (0, 1, 4, 6) else 0, lines[at + 1])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions_of_complex_numbers(dtype, queue):
    names = ["exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt"]
    lines = ["i = item.get_id(0)"] + ["out[%d, i] = cmath.%s(z[i])" % pair for pair in enumerate(names)]
    lines += ["out[9, i] = abs(z[i])", "out[10, i] = cmath.phase(z[i])", "out[11, i] = z[i].conjugate() * z[i].imag",
              "out[12, i] = z[i] ** 2 / complex(1.5, i)"]
    kernel = written(lines, "def k(item, z, out):\n")
    z = (np.linspace(-2, 2, 30) + 1j * np.linspace(0.3, 3, 30)).astype(dtype)
    out = da.zeros((13, 30), dtype=dtype, queue=queue)
    drupe.call_kernel(kernel, drupe.Range(30), da.asarray(z, queue=queue), out)
    exact = [getattr(np, name)(z) for name in names] + [np.abs(z), np.angle(z), np.conj(z) * z.imag,
                                                        z**2 / (1.5 + 1j * np.arange(30))]
    for got, want, line in zip(out.asnumpy(), exact, lines[1:]):
        assert np.allclose(got, want, rtol=2e-5 if dtype == "complex64" else 1e-13), line


def test_constants_of_mathematics(queue):
    kernel = written(["out[0], out[1], out[2] = math.pi, math.e, math.tau", "out[3], out[4] = math.inf, -np.inf",
                      "out[5], out[6] = np.nan, np.euler_gamma", "out[7] = np.pi * x[0]"], "def k(item, x, out):\n")
    out = da.zeros(8, dtype="float64", queue=queue)
    drupe.call_kernel(kernel, drupe.Range(1), da.ones(1, dtype="float32", queue=queue), out)
    want = [math.pi, math.e, math.tau, math.inf, -math.inf, math.nan, np.euler_gamma, np.float32(math.pi)]
    assert np.array_equal(out.asnumpy(), want, equal_nan=True)


TYPES = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
         "float64", "complex64", "complex128")


@pytest.mark.parametrize("name", TYPES)
def test_casts(name, queue):
    """By the types of NumPy, by astype(), by the type of an array."""
    lines = ["i = item.get_id(0)", "a[i] = np.%s(x[i])" % name, "b[i] = x[i].astype(np.%s)" % name,
             "c[i] = a.dtype.type(x[i])"]
    kernel = written(lines, "def k(item, x, a, b, c):\n")
    x = np.array([0, 1, 2, 100, -3, -100] if "uint" not in name else [0, 1, 2, 100, 50, 60], "float32")
    got = [da.zeros(6, dtype=name.rstrip("_"), queue=queue) for _ in "abc"]
    drupe.call_kernel(kernel, drupe.Range(6), da.asarray(x, queue=queue), *got)
    for one in got:
        assert np.array_equal(one.asnumpy(), x.astype(name.rstrip("_")))


def test_types_of_python(queue):
    """int(), float(), bool(), complex(), round(), abs(), divmod(), pow(), min(), max(), sum(), len()"""
    lines = ["i = item.get_id(0)", "v = x[i]", "q, r = divmod(i - 3, 4)",
             "out[i, 0] = int(v) + round(v) * 10 + bool(v) * 100",
             "out[i, 1] = float(i) / 2 + abs(v) + complex(v, 1).real",
             "out[i, 2] = q * 100 + r + pow(i, 3)",
             "out[i, 3] = min(v, i, 2.5) + max(i, 3) * 10 + sum((i, v, 1)) + len(x)",
             "out[i, 4] = (-7) // (i + 1) + (-7) % (i + 1) + (i << 3) + (-i >> 1) + (i ^ 5 | 8 & ~i)"]
    kernel = written(lines, "def k(item, x, out):\n")
    x = np.array([-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 1e6])
    out = da.zeros((8, 5), dtype="float64", queue=queue)
    drupe.call_kernel(kernel, drupe.Range(8), da.asarray(x, queue=queue), out)
    for i, v in enumerate(x):
        q, r = divmod(i - 3, 4)
        assert out.asnumpy()[i].tolist() == [
            int(v) + round(v) * 10 + bool(v) * 100, i / 2 + abs(v) + v, q * 100 + r + i**3,
            min(v, i, 2.5) + max(i, 3) * 10 + i + v + 1 + 8,
            (-7) // (i + 1) + (-7) % (i + 1) + (i << 3) + (-i >> 1) + (i ^ 5 | 8 & ~i)], i


def test_a_python_number_takes_the_elements_type(queue):
    """2.5 * x of a float32 is a float32, of an int32 a float64; integers of arrays wrap."""
    lines = ["i = item.get_id(0)", "f[i] = f[i] * 0.1 + 1", "wide[i] = n[i] * 0.1", "n[i] = n[i] * 3 + 100",
             "b[i] += 200", "h[i] = h[i] * 3 / 7"]
    kernel = written(lines, "def k(item, f, n, wide, b, h):\n")
    f, n = np.arange(5, dtype="float32"), np.array([1, 2**30, -2**31, 7, 2**31 - 1], "int32")
    b, h = np.arange(100, 105).astype("uint8"), np.linspace(1, 2, 5).astype("float16")
    given = [da.asarray(one, queue=queue) for one in (f, n, np.zeros(5), b, h)]
    drupe.call_kernel(kernel, drupe.Range(5), *given)
    with np.errstate(over="ignore"):
        want = [f * np.float32(0.1) + 1, n * np.int32(3) + np.int32(100), n * 0.1, b + np.uint8(200),
                h * np.float16(3) / np.float16(7)]
    for got, right in zip(given, want):
        assert np.array_equal(got.asnumpy(), right) and got.asnumpy().dtype == right.dtype
