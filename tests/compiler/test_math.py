"""Functions of mathematics for kernels (clib/c99_math*.c): accuracy, ends, vector code, the same bits of all builds."""
import ctypes
import math
import pathlib
import platform
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

CLIB = pathlib.Path(__file__).resolve().parents[2] / "python" / "drupe" / "compiler" / "clib"
HEAD = """typedef unsigned u32; typedef unsigned long long u64; typedef float f32; typedef double f64;
"""
TYPES = ("float64", "float32")
# Largest errors in units of the last place (float64, float32), and ranges from which arguments are drawn.
FUNCTIONS = {
    "exp": ((1.1, 0.9), (-20, 20)), "exp2": ((1.1, 0.9), (-20, 20)), "expm1": ((2.2, 2.0), (-3, 3)),
    "log": ((1, 1), (0.01, 100)), "log2": ((1.3, 1.02), (0.01, 100)), "log10": ((1.2, 1), (0.01, 100)),
    "log1p": ((1, 1), (-0.9, 10)),
    "sin": ((1.3, 0.6), (-30, 30)), "cos": ((1.3, 0.6), (-30, 30)), "tan": ((3, 0.6), (-30, 30)),
    "asin": ((2, 2), (-1, 1)), "acos": ((2, 2), (-1, 1)), "atan": ((2, 2), (-10, 10)), "atan2": ((2.5, 2.5), (-5, 5)),
    "sinh": ((2, 2), (-5, 5)), "cosh": ((2, 2), (-5, 5)), "tanh": ((1.3, 1), (-3, 3)),
    "asinh": ((2, 2), (-10, 10)), "acosh": ((2.5, 2.5), (1, 50)), "atanh": ((2.5, 2.5), (-0.99, 0.99)),
    "pow": ((1.2, 0.6), (0.1, 10)), "cbrt": ((1, 1), (-100, 100)), "hypot": ((1.3, 0.6), (-5, 5)),
    "erf": ((1.1, 0.9), (-3, 3)), "erfc": ((4, 4), (-3, 6)), "rsqrt": ((1.5, 1.5), (0.1, 10)),
    "gamma": ((8, 8), (0.1, 30)), "lgamma": ((8, 8), (0.1, 30)),
}
OF_TWO = ("pow", "atan2", "hypot")
FROM_LIBM = ("gamma", "lgamma")
EXACT = {"gamma": "tgammal(x)", "rsqrt": "1 / sqrtl(x)"}
ALL = [f"{name}_{dtype}" for dtype in TYPES for name in FUNCTIONS]
GCC = ("gcc", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra", "-Werror")
BUILDS = {
    "vectors": (*GCC, "-O3", "-march=native", "-fopt-info-vec"), "plain": (*GCC, "-O0"), "tcc": ("tcc",),
    "fma vectors": (*GCC, "-O3", "-march=native", "-DDRUPE_FMA"), "fma plain": (*GCC, "-O0", "-DDRUPE_FMA"),
    "fma tcc": ("tcc", "-DDRUPE_FMA"),
}


def text_of(names):
    """The blocks of these functions, those that they need first."""
    blocks, done, parts = {}, set(), []
    for path in sorted(CLIB.glob("c99_math*.c")):
        for part in re.split(r"^//:", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
            head, _, text = part.partition("\n")
            name, _, needs = head.partition(":")
            blocks[name.strip()] = needs.split(), text

    def add(name):
        if name not in done:
            done.add(name)
            for need in blocks[name][0]:
                add(need)
            parts.append(blocks[name][1])

    for name in names:
        add(name)
    return "".join(parts)


def loops():
    """A C function per function: a loop over arrays, on one line; if_sin has a condition in it."""
    lines = [HEAD + text_of(ALL), "#if defined(__TINYC__)\n#define IVDEP\n#else",
             '#define IVDEP _Pragma("GCC ivdep")\n#endif']
    for name in ALL:
        type_ = "f64" if name.endswith("64") else "f32"
        call = "x[i], z[i]" if name.split("_")[0] in OF_TWO else "x[i]"
        lines.append(f"void v_{name}(const {type_} *x, const {type_} *z, {type_} *y, long n) "
                     f"{{ (void)z; IVDEP for (long i = 0; i < n; i++) y[i] = drupe_{name}({call}); }}")
    lines.append("void if_sin(const f64 *x, f64 *y, long n) "
                 "{ IVDEP for (long i = 0; i < n; i++) if (x[i] > 0) y[i] = drupe_sin_float64(x[i]); }")
    return "\n".join(lines) + "\n"


def references():
    """Errors in units of the last place, by the long double functions of libm."""
    lines = ["""#include <math.h>
typedef float f32; typedef double f64;
static double error_of(long double exact, long double got, int digits, int least, int most)
{
    if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (got == 0 || isinf(exact) || exact == 0) {
        if (!signbit(got) != !signbit(exact)) return INFINITY;
        if (isinf(exact) || exact == 0) return got == exact ? 0 : INFINITY;
    }
    if (isinf(got)) got = copysignl(ldexpl(1, most + 1), got);
    if (fabsl(exact) > ldexpl(1, most + 1)) exact = copysignl(ldexpl(1, most + 1), exact);
    int e = ilogbl(exact);
    return fabsl(got - exact) / ldexpl(1, (e < least ? least : e > most ? most : e) - digits + 1);
}"""]
    for name in ALL:
        base, dtype = name.split("_")
        exact = EXACT.get(base, f"{base}l(x, z[i])" if base in OF_TWO else f"{base}l(x)")
        c, limits = ("f64", "53, -1022, 1023") if dtype == "float64" else ("f32", "24, -126, 127")
        lines.append(f"void r_{name}(const {c} *v, const {c} *z, const {c} *y, f64 *e, long n) {{ (void)z; "
                     f"for (long i = 0; i < n; i++) {{ long double x = v[i]; e[i] = "
                     f"error_of({exact}, y[i], {limits}); }} }}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """{name of a build: library}, and which functions gcc has made vector code of."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("math")
    (folder / "loops.c").write_text(loops())
    (folder / "references.c").write_text(references())
    jobs = {name: (*command, folder / "loops.c") for name, command in BUILDS.items() if shutil.which(command[0])}
    jobs["references"] = ("gcc", "-std=gnu11", "-O1", folder / "references.c")

    def build(job):
        name, command = job
        library = folder / f"{name.replace(' ', '_')}.so"
        done = subprocess.run([*command, "-shared", "-fPIC", "-o", library, "-lm"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return name, ctypes.CDLL(str(library)), done.stderr

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(build, jobs.items()))
    lines = (folder / "loops.c").read_text().splitlines()
    messages = next(message for name, _, message in found if name == "vectors")
    vectors = {re.search(r"void (\w+)", lines[int(line) - 1])[1]
               for line in re.findall(r"loops\.c:(\d+):\d+: optimized: loop vectorized", messages)}
    return {name: library for name, library, _ in found}, vectors


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def call(library, name, x, z=None):
    y = np.empty_like(x)
    getattr(library, f"v_{name}")(pointer(x), pointer(x if z is None else z), pointer(y), ctypes.c_long(len(x)))
    return y


def arguments(name, dtype):
    """Bit patterns, a range, tiny and huge numbers, numbers about 1."""
    random, dtype = np.random.default_rng(17), np.dtype(dtype)
    low, high = FUNCTIONS[name][1]
    bits = np.dtype(f"u{dtype.itemsize}")

    def draw():
        return np.concatenate([
            random.integers(0, np.iinfo(bits).max, 4000, bits, endpoint=True).view(dtype),
            random.uniform(low, high, 16000).astype(dtype),
            (random.uniform(low, high, 4000) * 2.0 ** random.uniform(-30, 12, 4000)).astype(dtype),
            (1 + random.uniform(-1, 1, 2000) * 2.0 ** random.uniform(-40, -1, 2000)).astype(dtype)])
    x, z = draw(), None
    if name in OF_TWO:
        z = draw()
        z[8000:12000] = np.random.default_rng(18).permutation(x[8000:12000])
    if name == "pow":  # results of all sizes
        with np.errstate(all="ignore"):
            z[12000:16000] = (random.uniform(-1.01, 1.01, 4000) * np.finfo(dtype).maxexp / np.log2(x[12000:16000]))
    return x, z


@pytest.mark.parametrize("name", ALL)
def test_the_error_is_small(built, name):
    libraries, _ = built
    base, dtype = name.split("_")
    x, z = arguments(base, dtype)
    for build in ("vectors", "fma vectors"):
        y, errors = call(libraries[build], name, x, z), np.empty(len(x))
        getattr(libraries["references"], f"r_{name}")(
            pointer(x), pointer(x if z is None else z), pointer(y), pointer(errors), ctypes.c_long(len(x)))
        at = errors.argmax()
        assert errors[at] <= FUNCTIONS[base][0][TYPES.index(dtype)], (build, x[at], z is not None and z[at], y[at])


@pytest.mark.parametrize("name", ALL)
def test_all_builds_give_the_same_bits(built, name):
    libraries, _ = built
    base, dtype = name.split("_")
    x, z = arguments(base, dtype)
    for first, *others in (("vectors", "plain", "tcc"), ("fma vectors", "fma plain", "fma tcc")):
        y = call(libraries[first], name, x, z)
        for other in others:
            if other in libraries:
                again = call(libraries[other], name, x, z)
                differ = (y.view(f"u{y.itemsize}") != again.view(f"u{y.itemsize}")) & ~(np.isnan(y) & np.isnan(again))
                assert not differ.any(), (other, x[differ][:3], y[differ][:3], again[differ][:3])


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="not known how wide vectors are")
def test_loops_become_vector_code(built):
    _, vectors = built
    assert {f"v_{name}" for name in ALL if name.split("_")[0] not in FROM_LIBM} <= vectors


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs stores under a mask")
def test_a_loop_with_a_condition_around_sin_becomes_vector_code(built):
    assert "if_sin" in built[1]


INF, NAN = math.inf, math.nan
ENDS = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)],
    "exp2": [(0.0, 1.0), (INF, INF), (-INF, 0.0), (10.0, 1024.0), (-3.0, 0.125), (-149.0, 2.0 ** -149), (1e4, INF)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (1e4, INF), (-1e4, -1.0)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF)],
    "log2": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (8.0, 3.0), (2.0 ** -149, -149.0)],
    "log10": [(1.0, 0.0), (0.0, -INF), (-1.0, NAN), (INF, INF), (10.0, 1.0), (1000.0, 3.0), (1e10, 10.0)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN), (INF, INF)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)], "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN)], "acos": [(1.0, 0.0), (1.5, NAN), (-INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e4, INF)],
    "cosh": [(0.0, 1.0), (INF, INF), (-INF, INF), (1e4, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (50.0, 1.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-INF, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (27.0, 3.0), (-8.0, -2.0), (2.0 ** -147, 2.0 ** -49)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (10.0, 1.0)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (-20.0, 2.0), (50.0, 0.0)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (4.0, 0.5)],
    "gamma": [(0.0, INF), (-0.0, -INF), (-2.0, NAN), (INF, INF), (5.0, 24.0)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-3.0, INF), (-INF, INF)],
    "hypot": [((0.0, -0.0), 0.0), ((INF, NAN), INF), ((NAN, -INF), INF), ((3.0, -4.0), 5.0), ((1.0, NAN), NAN)],
    "pow": [((NAN, 0.0), 1.0), ((1.0, NAN), 1.0), ((INF, -0.0), 1.0), ((-1.0, INF), 1.0), ((-1.0, -INF), 1.0),
            ((0.0, -3.0), INF), ((-0.0, -3.0), -INF), ((-0.0, -2.0), INF), ((-0.0, 3.0), -0.0), ((-0.0, 0.5), 0.0),
            ((0.5, INF), 0.0), ((0.5, -INF), INF), ((2.0, INF), INF), ((-2.0, -INF), 0.0), ((-INF, 3.0), -INF),
            ((-INF, -3.0), -0.0), ((-INF, 2.5), INF), ((INF, -1.0), 0.0), ((-2.0, 0.5), NAN), ((-2.0, 3.0), -8.0),
            ((-1.0, 16777215.0), -1.0), ((-1.0, 1e30), 1.0), ((NAN, 1.0), NAN), ((2.0, NAN), NAN), ((0.0, NAN), NAN),
            ((3.0, 5.0), 243.0), ((2.0, -149.0), 2.0 ** -149), ((1e30, 1e30), INF), ((-1e30, 3e30), INF)],
    "atan2": [((0.0, 0.0), 0.0), ((-0.0, 0.0), -0.0), ((0.0, 1.0), 0.0), ((-0.0, 1.0), -0.0), ((1.0, INF), 0.0),
              ((-1.0, INF), -0.0), ((NAN, 1.0), NAN), ((1.0, NAN), NAN), ((INF, NAN), NAN)],
}
# Of these the value is that of libm, rounded.
NEAR_PI = {
    "atan2": [((0.0, -0.0), math.pi), ((-0.0, -1.0), -math.pi), ((1.0, 0.0), math.pi / 2), ((-INF, 1.0), -math.pi / 2),
              ((1.0, -INF), math.pi), ((INF, INF), math.pi / 4), ((-INF, -INF), -3 * math.pi / 4)],
    "atan": [(INF, math.pi / 2), (-INF, -math.pi / 2)], "asin": [(1.0, math.pi / 2), (-1.0, -math.pi / 2)],
    "acos": [(-1.0, math.pi), (0.0, math.pi / 2)],
    "sin": [(1e22, math.sin(1e22)), (2.0 ** 100, math.sin(2.0 ** 100))], "cos": [(2.0 ** 100, math.cos(2.0 ** 100))],
    "tan": [(2.0 ** 100, math.tan(2.0 ** 100))],
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_ends(built, name, dtype):
    libraries, _ = built
    for cases in (ENDS.get(name, []), NEAR_PI.get(name, [])):
        if dtype == "float32":
            cases = [case for case in cases if case[0] != 1e22]
        for given, expected in [*cases, *([] if name in OF_TWO else [(NAN, NAN)])]:
            given = [np.full(35, value, dtype) for value in (given if isinstance(given, tuple) else (given,))]
            for build in ("vectors", "plain"):
                y = call(libraries[build], f"{name}_{dtype}", *given)
                wanted = np.full(35, expected, dtype)
                assert np.array_equal(y, wanted, equal_nan=True), (given[0][0], given[-1][0], y[0], expected)
                assert math.isnan(expected) or (np.signbit(y) == np.signbit(wanted)).all(), (given[0][0], y[0])


@pytest.mark.parametrize("name", ("sin", "cos", "tan"))
def test_one_huge_angle_among_small_ones(built, name):
    x = np.linspace(-3, 3, 67)
    x[40] = 1e300
    y = call(built[0]["vectors"], f"{name}_float64", x)
    assert y[40] == getattr(math, name)(1e300)
    assert np.allclose(np.delete(y, 40), getattr(np, name)(np.delete(x, 40)), rtol=1e-15, atol=0)


def test_angles_close_to_multiples_of_half_pi(built):
    """Where the reduction loses most digits: the closest doubles to n pi / 2."""
    x = np.array([321307.9594422229, 413441.44719405076, 642615.9188844458, 14461176.67027838, math.pi, 11 * math.pi])
    for name in ("sin", "cos", "tan"):
        y, errors = call(built[0]["vectors"], f"{name}_float64", x), np.empty(len(x))
        check = getattr(built[0]["references"], f"r_{name}_float64")
        check(pointer(x), pointer(x), pointer(y), pointer(errors), ctypes.c_long(len(x)))
        assert errors.max() < 1
