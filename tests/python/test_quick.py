"""Two tiers of C on the host device: the quick compiler gives the bits of the C compiler, and works without it."""
import itertools
import os
import pathlib

import numpy as np
import pytest

import drupe
import drupe.array as da

TABLE, QUICK = "-drupe-table", "-drupe-table -drupe-quick"


def table(name, run, *params):
    """A text with one kernel: `run` is its loop, parameters are (name, type, scalar, is a pointer)."""
    rows = "".join('{%d, %d, 0, sizeof(%s), "%s", "%s"}, ' % (pointer, scalar, type, name, type)
                   for name, type, scalar, pointer in params)
    values = "".join(f"    {type} {name} = *({type} const *)args[{i}];\n"
                     for i, (name, type, scalar, pointer) in enumerate(params, 1))
    return (f"static void drupe_run_{name}(drupe_size_ begin, drupe_size_ end, drupe_size_ n,\n"
            f"  const void *const *args)\n{{\n{values}{run}\n}}\n"
            f"static const drupe_param_ drupe_params_{name}[] = {{{rows}{{0, 0, 0, 0, 0, 0}}}};\n"
            f"const drupe_entry_ drupe_entries_[] = {{\n"
            f'    {{"{name}", {len(params)}, drupe_params_{name}, drupe_run_{name}}}, {{0, 0, 0, 0}}}};\n')


def each(statement):
    return f"    for (drupe_size_ i = begin; i < end; i++) {{ {statement} }}"


SCALE = table("scale", each("x[i] *= by;"), ("x", "double *", 11, 1), ("by", "double", 11, 0))


def build(text, options=QUICK):
    return drupe.Program(text, "host", language="c", options=options)


def is_there():
    try:
        build(SCALE)
    except drupe.UnsupportedError:
        return False
    return True


if not is_there():
    pytest.skip("there is no quick compiler", allow_module_level=True)
COMPILER = drupe.Device("host").can_compile("c")
TIERS = [pytest.param(TABLE, marks=pytest.mark.skipif(not COMPILER, reason="there is no C compiler")), QUICK]


@pytest.mark.parametrize("options", TIERS)
def test_launches(options):
    program = build(SCALE, options)
    assert program.kernel_names == ["scale"]
    assert list(program.scale.arguments) == [("x", "double *", "pointer"), ("by", "double", "value")]
    x = da.arange(5000, dtype="float64", device="host")
    program.scale(x, 3, global_size=5000).wait()
    assert np.array_equal(x.asnumpy(), 3.0 * np.arange(5000))
    with pytest.raises(TypeError, match="double"):
        program.scale(da.zeros(3, dtype="float32", device="host"), 1.0, global_size=3)


# --- The same bits -----------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.5, 1e-310, 5e-324, 1.7e308, -1e300, 2.0**53 + 1, 9.3e18, 1.9e19, -9.3e18,
           2.0**31, 2.0**32 - 1, 65504.0, 1e-40, 3.4e38, float("inf"), float("-inf"), float("nan")]
FUNCTIONS = ("acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor log log10 log1p "
             "log2 rint sin sinh sqrt tan tanh tgamma trunc").split()
PAIRS = "atan2 copysign fmax fmin fmod hypot nextafter pow".split()


def both(text, *arrays, size):
    """What the kernel leaves in its first argument, in both tiers, as bytes."""
    results = []
    for options in (TABLE, QUICK):
        given = [da.asarray(one, device="host") for one in arrays]
        program = build(text, options)
        getattr(program, program.kernel_names[0])(*given, global_size=size).wait()
        results.append(given[0].asnumpy())
    return results


def same_but_for_nans(expected, got):
    """A NaN is a NaN: its sign and payload are the processor's affair."""
    same = expected.view(f"u{expected.itemsize}") == got.view(f"u{got.itemsize}")
    wrong = ~(same | (np.isnan(expected) & np.isnan(got)))
    assert not wrong.any(), (np.flatnonzero(wrong)[:5], expected[wrong][:5], got[wrong][:5])


@pytest.mark.skipif(not COMPILER, reason="there is no C compiler")
@pytest.mark.parametrize("type, scalar, end", [("float", 10, "f"), ("double", 11, "")])
def test_mathematics(type, scalar, end):
    """Functions, also of constants, which a compiler could compute better; products are not contracted into sums."""
    rng = np.random.default_rng(1)
    dtype = "float32" if end else "float64"
    with np.errstate(all="ignore"):
        plain = np.concatenate([SPECIAL, rng.normal(size=200), np.exp(rng.normal(size=200) * 20)]).astype(dtype)
        x, y = (np.array(one) for one in zip(*itertools.product(plain[::3], plain[::3])))
    declared = "".join(f"{type} {name}{end}({type}) __attribute__((const));\n" for name in FUNCTIONS)
    declared += "".join(f"{type} {name}{end}({type}, {type}) __attribute__((const));\n" for name in PAIRS)
    for name in FUNCTIONS:
        text = declared + table("f", each(f"out[i] = {name}{end}(x[i]) * x[i] + {name}{end}(({type})0.7);"),
                                ("out", type + " *", scalar, 1), ("x", type + " *", scalar, 1))
        same_but_for_nans(*both(text, np.zeros(len(plain), dtype), plain, size=len(plain)))
    calls = [f"{name}{end}(x[i], y[i])" for name in PAIRS]
    calls += [f"pow{end}(x[i], 2)", f"pow{end}(x[i], -1)", f"pow{end}(({type})1.3, y[i])", "x[i] * y[i] + x[i]",
              "x[i] - y[i] * 3", "x[i] / y[i]", "-x[i]", "x[i] * 0 + y[i]"]
    for call in calls:
        text = declared + table("f", each(f"out[i] = {call};"), *((name, type + " *", scalar, 1)
                                                                  for name in ("out", "x", "y")))
        same_but_for_nans(*both(text, np.zeros(len(x), dtype), x, y, size=len(x)))


@pytest.mark.skipif(not COMPILER, reason="there is no C compiler")
@pytest.mark.parametrize("type, scalar, dtype", [("float", 10, "float32"), ("double", 11, "float64")])
def test_comparisons(type, scalar, dtype):
    """With what is not a number, and turned round by an if, a loop and a conditional expression."""
    with np.errstate(all="ignore"):
        plain = np.array(SPECIAL, dtype)
    x, y = (np.array(one) for one in zip(*itertools.product(plain, plain)))
    tests = [f"x[i] {sign} y[i]" for sign in ("<", "<=", ">", ">=", "==", "!=")] + ["x[i]", "x[i] != x[i]"]
    tests += [f"!({one})" for one in tests] + ["x[i] < y[i] && !(y[i] < 1)", "!(x[i] < 0) || y[i] >= x[i]"]
    statements = "".join(f"out[i] |= (long long)({one}) << {2 * k}; if ({one}) out[i] |= 1ll << {2 * k + 1};"
                         f" out[i] += ({one}) ? 3 : 0;" for k, one in enumerate(tests))
    text = table("f", each(statements), ("out", "long long *", 7, 1), ("x", type + " *", scalar, 1),
                 ("y", type + " *", scalar, 1))
    expected, got = both(text, np.zeros(len(x), "int64"), x, y, size=len(x))
    assert np.array_equal(expected, got)


INTEGERS = {"signed char": (1, "int8"), "unsigned char": (2, "uint8"), "short": (3, "int16"),
            "unsigned short": (4, "uint16"), "int": (5, "int32"), "unsigned": (6, "uint32"), "long long": (7, "int64"),
            "unsigned long long": (8, "uint64")}


@pytest.mark.skipif(not COMPILER, reason="there is no C compiler")
@pytest.mark.parametrize("type", INTEGERS)
def test_integers(type):
    """Casts between all types, where the value fits; what wraps, computed unsigned; shifts and divisions."""
    scalar, dtype = INTEGERS[type]
    info, rng = np.iinfo(dtype), np.random.default_rng(2)
    x = np.concatenate([np.array([info.min, info.max, 0, 1, info.max // 2, info.min // 3], dtype),
                        rng.integers(info.min, info.max, 100, dtype, endpoint=True)])
    y = np.roll(x, 7)
    by = {"signed char": "(int)"}.get(type, "")  # docs/internals/programs.md: what libtcc gets wrong
    terms = [f"(unsigned long long)({other}){by}x[i]" for other in INTEGERS]
    divisor = "(y[i] == 0 || y[i] == -1 ? 3 : y[i])"
    terms += ["(float)x[i] == (double)x[i]", "(unsigned long long)x[i] * (unsigned long long)y[i]", f"x[i] / {divisor}",
              f"x[i] % {divisor}", "x[i] >> (y[i] & 7)", "(unsigned long long)x[i] << (y[i] & 63)", "x[i] < y[i]",
              "(x[i] ^ y[i]) | (~x[i] & y[i])"]
    doubles = ["(double)x[i]", "(float)x[i]"]
    statement = "unsigned long long h = 17; " + "".join(f"h = h * 1099511628211ull + (unsigned long long)({one}); "
                                                         for one in terms)
    statement += "union { double d; unsigned long long u; } c; " + "".join(
        f"c.d = {one}; h = h * 1099511628211ull + c.u; " for one in doubles) + "out[i] = h;"
    text = table("f", each(statement), ("out", "unsigned long long *", 8, 1), ("x", type + " *", scalar, 1),
                 ("y", type + " *", scalar, 1))
    expected, got = both(text, np.zeros(len(x), "uint64"), x, y, size=len(x))
    assert np.array_equal(expected, got)


@pytest.mark.skipif(not COMPILER, reason="there is no C compiler")
def test_floats_become_integers():
    """Of all types, where the value fits."""
    x = np.array([0.0, -0.0, 0.9, 1.5, 100.7, 127.0, 3e4, 2e9, 4e9, 9e18, 1.8e19, 2.0**63], "float64")
    fits = {"unsigned char": 6, "short": 7, "int": 8, "unsigned": 9, "long long": 10, "unsigned long long": 12}
    statement = "unsigned long long h = 17; " + "".join(
        f"if (i < {count}) h = h * 31 + (unsigned long long)({type})x[i] + ({type})(float)x[i]; "
        for type, count in fits.items())
    text = table("f", each(statement + "out[i] = h;"), ("out", "unsigned long long *", 8, 1), ("x", "double *", 11, 1))
    expected, got = both(text, np.zeros(len(x), "uint64"), x, size=len(x))
    assert np.array_equal(expected, got)


@pytest.mark.skipif(not COMPILER, reason="there is no C compiler")
def test_the_language():
    """What texts are made of beside expressions: structs as values, tables, loops, strings of cases."""
    text = """
        typedef struct { float re, im; } c64;
        typedef struct { double re, im; } c128;
        static inline c64 mul(c64 a, c64 b)
        { c64 r = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; return r; }
        static c128 wide(c64 a) { return (c128){a.re, a.im}; }
        static double pick(int k) { switch (k) { case 0: return 1; case 1: case 2: return 2.5; default: return k; } }
        static const double weights[4] = {0.25, [2] = 1.5, 3e-3};
        static int count;
        #define TWICE(x) __extension__ ({ __typeof__(x) v_ = (x); v_ + v_; })
        """ + table("f", """
        c64 sum = {0, 1};
        for (drupe_size_ i = begin; i < end; i++) {
            double own[8] = {1, 2, 3};
            int k = 0;
            do { own[k % 8] += weights[k & 3] * (double)i; } while (++k < 11);
            if (i % 5 == 3) goto out;
            for (k = 0; k < 4; k++) { if (k == 2) continue; own[7] += pick((int)(i + k) % 6); }
            sum = mul((c64){(float)i * 0.01f, 0.5f}, (c64){own[2] > 30 ? 1 : 0, (float)own[3]});
        out:
            x[i] = wide(sum).re - TWICE(wide(sum).im) + own[7] + (_Bool)own[1] + sizeof own;
            sum = (c64){0, 1};
        }
        count++;""", ("x", "double *", 11, 1))
    expected, got = both(text, np.zeros(300), size=300)
    assert np.array_equal(expected, got) and len(set(got.tolist())) > 200


@pytest.mark.parametrize("options", TIERS)
@pytest.mark.parametrize("bits, dtype, scalar", [(32, "uint32", 6), (64, "uint64", 8)])
def test_atomics(options, bits, dtype, scalar):
    type = {32: "unsigned", 64: "unsigned long long"}[bits]
    text = table("f", each(f"""
        drupe_add{bits}_(x, 3);
        {type} seen = drupe_load{bits}_(x + 1), before;
        while ((before = drupe_cas{bits}_(x + 1, seen, seen + i)) != seen) seen = before;
        if (drupe_swap{bits}_(x + 2, i) >= 20000) drupe_add{bits}_(x + 3, 1);
        drupe_store{bits}_(x + 4, 7);
        drupe_fence_();"""), ("x", type + " *", scalar, 1))
    x = da.zeros(6, dtype=dtype, device="host")
    build(text, options).f(x, global_size=20000).wait()
    got = x.asnumpy().tolist()
    assert got[:2] == [60000, 20000 * 19999 // 2] and got[2] < 20000 and got[3:] == [0, 7, 0]


@pytest.mark.parametrize("options", TIERS)
def test_memory_of_the_stack(options):
    text = "void *alloca(drupe_size_);\n" + table("f", each("""
        int *own = alloca((i % 50 + 1) * sizeof *own);
        for (drupe_size_ k = 0; k <= i % 50; k++) own[k] = (int)k;
        x[i] = 0;
        for (drupe_size_ k = 0; k <= i % 50; k++) x[i] += own[k];"""), ("x", "int *", 5, 1))
    x = da.zeros(1000, dtype="int32", device="host")
    build(text, options).f(x, global_size=1000).wait()
    ends = np.arange(1000) % 50
    assert np.array_equal(x.asnumpy(), ends * (ends + 1) // 2)


@pytest.mark.parametrize("options", TIERS)
def test_prints(options, capfd):
    text = "int dprintf(int, const char *, ...);\n" + table("f", each(
        'dprintf(1, "%d of %.3f, %lld %s\\n", (int)i, 1.5f * x[i], 1ll << 40, "words");'), ("x", "double *", 11, 1))
    build(text, options).f(da.ones(1, device="host"), global_size=1).wait()
    assert capfd.readouterr().out == "0 of 1.500, 1099511627776 words\n"


# --- Mistakes ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", TIERS)
@pytest.mark.parametrize("text, what", [
    (SCALE.replace("*= by", "*= nothing"), "nothing"),
    (SCALE.replace("*= by", "*= exp(by)"), "implicit declaration"),
    ("#define by there\n" + SCALE.replace("*= by", "*= by ;;; }"), "error"),
    ("int x;", "drupe_kernels_|no table of kernels"),
    (SCALE.replace('"scale", 2', '"scale", 65'), "more than 64"),
])
def test_mistakes(options, text, what):
    with pytest.raises(drupe.BuildError, match=what) as caught:
        build(text, options)
    assert caught.value.log


def test_nothing_is_written_to_the_terminal(capfd):
    with pytest.raises(drupe.BuildError):
        build("#warning something\n" + SCALE + "int x = nothing;")
    build("#warning something\n" + SCALE)
    assert capfd.readouterr() == ("", "")


def test_what_it_does_not_take():
    with pytest.raises(drupe.InvalidArgumentError, match="-drupe-table"):
        build(SCALE, "-drupe-quick")
    with pytest.raises(drupe.InvalidArgumentError, match="-lm"):
        build(SCALE, QUICK + " -lm")
    with pytest.raises(drupe.UnsupportedError, match="200"):
        build(SCALE.replace("{\n", "{ char large[200000]; large[begin] = 1;\n", 1))
    with pytest.raises(drupe.UnsupportedError, match="no binary"):
        build(SCALE).binary


def test_numbers_have_points_everywhere(fresh):
    result = fresh(f"""
        import locale, drupe, drupe.array as da
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"):
            try:
                locale.setlocale(locale.LC_ALL, name)
            except locale.Error:
                pass
        x = da.ones(1, device="host")
        text = {SCALE.replace("by;", "1.75;")!r}
        drupe.Program(text, "host", language="c", options={QUICK!r}).scale(x, 1, global_size=1).wait()
        print(x.item())
    """)
    assert result.stdout.split() == ["1.75"], result.stderr


# --- The machine -------------------------------------------------------------------------------------------

TRY = f"""
import drupe, drupe.array as da
x = da.ones(4, dtype="float64", device="host")
try:
    drupe.Program({SCALE!r}, "host", language="c", options={QUICK!r}).scale(x, 5, global_size=4).wait()
    print(x.asnumpy().tolist())
except Exception as error:
    print(type(error).__name__, error)
print(drupe.Device("host").can_compile("c"), drupe.program.cache_info()["entries"])
"""


def test_without_a_c_compiler(fresh):
    result = fresh(TRY, DRUPE_CC="/nowhere/cc")
    assert result.stdout.splitlines() == ["[5.0, 5.0, 5.0, 5.0]", "False 0"], result.stderr


def test_the_disk_cache_is_left_alone(fresh, tmp_path):
    ask = "drupe._engine._cache_flush(60)\nprint(drupe.program.cache_info()['entries'])"
    result = fresh(TRY + ask, DRUPE_CACHE="1", DRUPE_CACHE_DIR=str(tmp_path / "cache"))
    assert result.stdout.split("\n")[0] == "[5.0, 5.0, 5.0, 5.0]" and result.stdout.split()[-1] == "0", result


@pytest.mark.parametrize("chosen, why", [
    ("0", "DRUPE_QUICK is 0"), ("/nowhere/quick.so", "/nowhere/quick.so: cannot open"),
    ("libm.so.6", r"libm.so.6 has no drupe_quick_compiler_1()")])
def test_without_the_library(fresh, chosen, why):
    result = fresh(TRY, DRUPE_QUICK=chosen)
    assert result.stdout.startswith("UnsupportedError There is no quick compiler of C: " + why), result
    assert result.stdout.splitlines()[1].split()[0] == str(COMPILER)


def test_another_library(fresh):
    (library,) = pathlib.Path(drupe.__file__).parent.glob("drupe-quick*.so")
    result = fresh(TRY, DRUPE_QUICK=os.fspath(library))
    assert result.stdout.startswith("[5.0, 5.0, 5.0, 5.0]"), result


def test_a_fault_is_contained(fresh):
    result = fresh(f"""
        import drupe, drupe.array as da
        drupe.contain_faults()
        x = da.ones(4, dtype="float64", device="host")
        bad = {table("bad", each("*(volatile int *)16 = (int)x[i];"), ("x", "double *", 11, 1))!r}
        try:
            drupe.Program(bad, "host", language="c", options={QUICK!r}).bad(x, global_size=1).wait()
        except drupe.DeviceError as error:
            print(type(error).__name__, "'bad'" in str(error), "0x10" in str(error))
        x.accept_contents()
        drupe.Program({SCALE!r}, "host", language="c", options={QUICK!r}).scale(x, 3, global_size=4).wait()
        print(x.asnumpy().tolist())
    """)
    assert result.stdout.splitlines() == ["DeviceLostError True True", "[3.0, 3.0, 3.0, 3.0]"], result
