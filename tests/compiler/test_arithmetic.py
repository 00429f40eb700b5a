"""Operators, casts and functions of the library against NumPy, for all types and in both dialects."""
import numpy as np
import pytest
import trees
from trees import assign, call, gid, global_, i64, kernel, load, op, store, var

from drupe.compiler import tree, types

FLOATS = ("float16", "float32", "float64")
COUNT = 600


def sample(kind, seed=1, special=True):
    """Numbers of all sizes, the extremes among them."""
    rng = np.random.default_rng(seed)
    if kind == "bool":
        return rng.integers(0, 2, COUNT).astype("bool")
    if kind in types.INTEGERS:
        info = np.iinfo(kind)
        wide = rng.integers(info.min, info.max, COUNT, dtype=kind, endpoint=True)
        small = np.clip(rng.integers(-20, 20, COUNT), info.min, info.max).astype(kind)
        out = np.where(rng.random(COUNT) < 0.5, wide, small)
        out[:5] = [info.min, info.max, 0, 1, info.max - 1]
        return rng.permutation(out)
    if kind in types.COMPLEX:
        real = types.real_of(kind)
        with np.errstate(all="ignore"):
            return (sample(real, seed, False) + 1j * sample(real, seed + 7, False)).astype(kind)
    scale = 10.0 ** rng.integers(-6 if kind == "float16" else -20, 4 if kind == "float16" else 18, COUNT)
    out = np.where(rng.random(COUNT) < 0.4, np.round(rng.normal(size=COUNT) * 9), rng.normal(size=COUNT) * scale)
    if special:
        out[:7] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]
    with np.errstate(all="ignore"):
        return rng.permutation(out).astype(kind)


def computed(outputs, inputs, target, folder):
    """`outputs`: (name, type, function of the inputs' trees); what a kernel of all of them makes of the arrays."""
    buffers = {name: global_(name, array.dtype.name, True) for name, array in inputs.items()}
    loads = {name: load(buffer, var("i")) for name, buffer in buffers.items()}
    results = {name: np.zeros(COUNT, kind) for name, kind, _ in outputs}
    made = {name: global_("o_" + name, kind) for name, kind, _ in outputs}
    body = [assign("i", gid())] + [store(made[name], var("i"), function(**loads)) for name, _, function in outputs]
    function = kernel("arithmetic", [*buffers.values(), *made.values()], body, locals={"i": "int64"})
    trees.run(function, [*inputs.values(), *results.values()], (COUNT,), target=target, folder=folder, chunk=100)
    return results


def same(got, want, what, ulps=0):
    """Equal, NaN for NaN; `ulps` units in the last place may lie between floats."""
    assert got.dtype == want.dtype, what
    if got.dtype.kind == "c":
        for part in ("real", "imag"):
            same(getattr(got, part), getattr(want, part), what, ulps)
        return
    if got.dtype.kind == "f":
        with np.errstate(all="ignore"):
            near = np.abs(got - want) <= ulps * np.spacing(np.abs(want)) if ulps else got == want
        good = near | (got == want) | (np.isnan(got) & np.isnan(want))
        if not ulps:
            good &= (np.signbit(got) == np.signbit(want)) | np.isnan(want)
    else:
        good = got == want
    bad = np.flatnonzero(~good)
    assert not len(bad), "%s: at %d %r, not %r" % (what, bad[0], got[bad[0]], want[bad[0]])


def check(outputs, inputs, wanted, target, folder, ulps=0):
    results = computed(outputs, inputs, target, folder)
    for name, kind, _function in outputs:
        with np.errstate(all="ignore"):
            want = np.asarray(wanted[name]).astype(kind)
        same(results[name], want, name, ulps)


@pytest.mark.parametrize("target", trees.TARGETS)
@pytest.mark.parametrize("kind", types.INTEGERS)
def test_integers(kind, target, tmp_path):
    a, b = sample(kind), sample(kind, 2)
    n = np.random.default_rng(3).integers(0, 7, COUNT).astype(kind)
    bits = 8 * types.SIZES[kind]
    k = np.random.default_rng(4).integers(-3 if kind in types.SIGNED else 0, bits + 3, COUNT).astype(kind)
    three = tree.Const(kind, 3)
    outputs, wanted = [], {}

    def add(name, function, want, result=kind):
        outputs.append((name, result, function))
        wanted[name] = want

    def wraps(sign):
        return lambda a, b, **_: op(sign, a, b, wraps=True)

    with np.errstate(all="ignore"):
        for name, sign, want in (("add", "+", a + b), ("sub", "-", a - b), ("mul", "*", a * b)):
            add(name, wraps(sign), want)
        add("chain", lambda a, b, n, **_: op("-", op("*", op("+", a, three, wraps=True), b, wraps=True),
                                             op("-", n, a, wraps=True), wraps=True), (a + kind_of(kind,
                                                 3)) * b - (n - a))
        for name, sign, want in (("and", "&", a & b), ("or", "|", a | b), ("xor", "^", a ^ b)):
            add(name, lambda a, b, sign=sign, **_: op(sign, a, b), want)
        for name, sign, want in (("lt", "<", a < b), ("ge", ">=", a >= b), ("eq", "==", a == b), ("ne", "!=", a != b)):
            add(name, lambda a, b, sign=sign, **_: op(sign, a, b), want, "bool")
        add("invert", lambda a, **_: tree.Unary(kind, "~", a), ~a)
        add("inverted_less", lambda a, b, **_: op("<", tree.Unary(kind, "~", a), b), ~a < b, "bool")
        add("left3", lambda a, **_: op("<<", a, three), a << kind_of(kind, 3))
        add("right3", lambda a, **_: op(">>", a, three), a >> kind_of(kind, 3))
        for name, args, want in (
                ("floordiv", "ab", a // b), ("mod", "ab", a % b), ("pow", "an", a ** n), ("shl", "ak", a << k),
                ("shr", "ak", a >> k), ("neg", "a", -a), ("abs", "a", np.abs(a)), ("minimum", "ab", np.minimum(a, b)),
                ("maximum", "ab", np.maximum(a, b)), ("popcount", "a", np.bitwise_count(a)),
                ("gcd", "ab", np.gcd(a, b))):
            add(name, lambda name=name, args=args, **given: call(name, *(given[one] for one in args)), want)
        power = np.array([0 if x not in (1, -1) else x for x in a.tolist()])
        if kind in types.SIGNED:
            add("pow_minus", lambda a, n, **_: call("pow", a, op("-", tree.Const(kind, -1), n)),
                np.where(n % 2 == 1, np.abs(power), power))
    check(outputs, {"a": a, "b": b, "n": n, "k": k}, wanted, target, tmp_path)


def kind_of(kind, value):
    return np.dtype(kind).type(value)


@pytest.mark.parametrize("target", trees.TARGETS)
@pytest.mark.parametrize("kind", types.NAMES)
def test_casts(kind, target, tmp_path):
    values = sample(kind, special=False)
    names = [one for one in types.NAMES if kind not in types.COMPLEX or one in types.COMPLEX]
    outputs, wanted = [], {}
    with np.errstate(all="ignore"):
        for name in names:
            if kind in FLOATS and name in types.INTEGERS:  # what does not fit is left open
                least = 0 if name == "uint64" else -2e9
                values = np.where((values > 2e9) | (values < least), kind_of(kind, 7), values)
            outputs.append(("to_" + name, name, lambda a, name=name: tree.Cast(name, a)))
        for name in names:
            wanted["to_" + name] = values.astype(name)
    check(outputs, {"a": values.astype(kind)}, wanted, target, tmp_path)


@pytest.mark.parametrize("target", trees.TARGETS)
def test_all_of_float16(target, tmp_path):
    """Each of its values there and back, and the ties between them."""
    every = np.arange(1 << 16).astype("uint16").view("float16")
    finite = every[np.isfinite(every)].astype("float64")
    with np.errstate(all="ignore"):
        step = np.spacing(every[np.isfinite(every)]).astype("float64")
    for kind in ("float32", "float64"):
        near = np.concatenate([finite + sign * step * part for sign in (1, -1) for part in (0.5, 0.499, 0.501)] + [
            [65519.99, 65520.0, 1e9, -1e9, np.inf, np.nan, 1e-12]]).astype(kind)
        a, b = global_("a", kind, True), global_("b", "float16")
        c, d = global_("c", "float16", True), global_("d", kind)
        body = [store(b, gid(), tree.Cast("float16", load(a, gid()))), store(d, gid(), tree.Cast(kind, load(c, gid())))]
        back, halves = np.zeros(len(near), kind), np.zeros(len(near), "float16")
        given = np.resize(every, len(near))
        trees.run(kernel("halves", [a, b, c, d], body), [near, halves, given, back], (len(near),), target=target,
                  folder=tmp_path, chunk=1000)
        with np.errstate(all="ignore"):
            same(halves, near.astype("float16"), "to")
            same(back, given.astype(kind), "from")


@pytest.mark.parametrize("target", trees.TARGETS)
@pytest.mark.parametrize("kind", FLOATS)
def test_floats(kind, target, tmp_path):
    a, b = sample(kind), sample(kind, 2)
    outputs, wanted = [], {}
    wide = "float32" if kind == "float16" else kind

    def add(name, function, want, result=kind):
        outputs.append((name, result, function))
        wanted[name] = want

    def by(sign):
        def function(a, b):
            if kind != "float16":
                return op(sign, a, b)
            return tree.Cast(kind, op(sign, tree.Cast(wide, a), tree.Cast(wide, b)))
        return function

    def function(name, count):
        def made(a, b):
            done = call(name, *(tree.Cast(wide, one) for one in (a, b)[:count]))
            return tree.Cast(kind, done)
        return made

    with np.errstate(all="ignore"):
        for name, sign, want in (("add", "+", a + b), ("sub", "-", a - b), ("mul", "*", a * b), ("div", "/", a / b)):
            add(name, by(sign), want)
        for name, sign, want in (("lt", "<", a < b), ("ne", "!=", a != b), ("ge", ">=", a >= b)):
            add(name, lambda a, b, sign=sign: op(sign, a, b), want, "bool")
        add("neg", lambda a, b: tree.Unary(kind, "-", a), -a)
        add("choice", lambda a, b: tree.Select(kind, op("<", a, b), a, tree.Const(kind, -1.5)),
            np.where(a < b, a, kind_of(kind, -1.5)))
        add("both", lambda a, b: op("||", op("&&", op("<", a, b), op(">", a, tree.Const(kind, 0.0))),
                                    tree.Unary("bool", "!", op("==", b, b))), ((a < b) & (a > 0)) | np.isnan(b), "bool")
        one = [("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("rint", np.rint), ("fabs", np.abs),
               ("sqrt", np.sqrt), ("abs", np.abs), ("neg", np.negative)]
        two = [("minimum", np.minimum), ("maximum", np.maximum), ("fmin", np.fmin), ("fmax", np.fmax), ("fmod",
            np.fmod),
               ("copysign", np.copysign)]
        two += [("floordiv", np.floor_divide), ("mod", np.mod)] if kind != "float16" else []
        for count, listed in ((1, one), (2, two)):
            for name, numpys in listed:
                add("f_" + name, function(name, count), numpys(*(a, b)[:count]))
        for name in ("isnan", "isinf", "isfinite", "signbit"):
            add(name, lambda a, b, name=name: call(name, tree.Cast(wide, a), kind="bool"), getattr(np, name)(a), "bool")
        if kind != "float16":
            add("next", function("nextafter", 2), np.nextafter(a, b))
            n = np.arange(COUNT) % 60 - 30
            add("ldexp", lambda a, b: call("ldexp", a, op("-", op("%", gid(), i64(60)), i64(30)), kind=kind),
                np.ldexp(a, n))
    results = computed(outputs, {"a": a, "b": b}, target, tmp_path)
    for name, result, _function in outputs:
        if name in ("f_minimum", "f_maximum", "f_fmin", "f_fmax"):
            results[name], wanted[name] = (one + kind_of(kind, 0) for one in (results[name], wanted[name]))
        same(results[name], wanted[name].astype(result), name)


@pytest.mark.parametrize("target", trees.TARGETS)
@pytest.mark.parametrize("kind", ("float32", "float64"))
def test_functions_of_mathematics(kind, target, tmp_path):
    """Roughly: that each is the function of its name. Tests of the functions themselves are elsewhere."""
    from math import erf, erfc, gamma, lgamma

    x = np.random.default_rng(5).uniform(0.05, 0.95, COUNT).astype(kind)
    y = np.random.default_rng(6).uniform(0.5, 3, COUNT).astype(kind)
    names = {"cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
             "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
             "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
             "asinh": np.arcsinh, "atanh": np.arctanh, "erf": np.vectorize(erf), "erfc": np.vectorize(erfc),
             "gamma": np.vectorize(gamma), "rsqrt": lambda v: 1 / np.sqrt(v)}
    outputs = [(name, kind, lambda x, y, name=name: call(name, x)) for name in names]
    wanted = {name: function(x.astype("float64")) for name, function in names.items()}
    outputs.append(("lgamma", kind, lambda x, y: op("+", call("lgamma", x), tree.Const(kind, 4.0))))
    wanted["lgamma"] = np.vectorize(lgamma)(x.astype("float64")) + 4
    outputs += [("acosh", kind, lambda x, y: call("acosh", op("+", x, tree.Const(kind, 1.0))))]
    wanted["acosh"] = np.arccosh(x + kind_of(kind, 1))
    for name, function in {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}.items():
        outputs.append((name, kind, lambda x, y, name=name: call(name, x, y)))
        wanted[name] = function(x, y)
    outputs.append(("fma", kind, lambda x, y: call("fma", x, y, x)))
    wanted["fma"] = x.astype("longdouble") * y + x
    check(outputs, {"x": x, "y": y}, wanted, target, tmp_path, ulps=16)


@pytest.mark.parametrize("target", trees.TARGETS)
@pytest.mark.parametrize("kind", types.COMPLEX)
def test_complex(kind, target, tmp_path):
    rng = np.random.default_rng(8)
    a, b = ((rng.normal(size=COUNT) + 1j * rng.normal(size=COUNT)).astype(kind) * kind_of(kind, 2) for _ in "ab")
    b[:50] = np.round(b[:50].real)
    b[50:100] = a[50:100]
    real = types.real_of(kind)
    one = tree.Const(kind, 1.5 - 2j)
    outputs = [("add", kind, lambda a, b: call("add", a, b)), ("sub", kind, lambda a, b: call("sub", a, one)),
               ("mul", kind, lambda a, b: call("mul", a, b)), ("div", kind, lambda a, b: call("div", a, b)),
               ("neg", kind, lambda a, b: call("neg", a)), ("conj", kind, lambda a, b: call("conj", a)),
               ("real", real, lambda a, b: call("real", a, kind=real)),
               ("imag", real, lambda a, b: call("imag", a, kind=real)),
               ("eq", "bool", lambda a, b: call("eq", a, b, kind="bool")),
               ("ne", "bool", lambda a, b: call("ne", a, b, kind="bool")),
               ("swapped", kind, lambda a, b: call("complex", call("imag", a, kind=real), call("real", a, kind=real),
                                                   kind=kind)),
               ("choice", kind, lambda a, b: tree.Select(kind, call("eq", a, b, kind="bool"), one, b))]
    with np.errstate(all="ignore"):
        wanted = {"add": a + b, "sub": a - kind_of(kind, 1.5 - 2j), "mul": a * b, "div": a / b, "neg": -a,
                  "conj": a.conj(), "real": a.real, "imag": a.imag, "eq": a == b, "ne": a != b,
                  "swapped": a.imag + 1j * a.real, "choice": np.where(a == b, kind_of(kind, 1.5 - 2j), b)}
    results = computed(outputs, {"a": a, "b": b}, target, tmp_path)
    for name, result, _function in outputs:
        got, want = results[name], wanted[name].astype(result)
        if name in ("mul", "div"):  # NumPy may contract
            assert np.allclose(got, want, rtol=1e-5 if kind == "complex64" else 1e-13, equal_nan=True), name
        else:
            same(got, want, name)


@pytest.mark.parametrize("target", trees.TARGETS)
@pytest.mark.parametrize("kind", types.COMPLEX)
def test_functions_of_complex(kind, target, tmp_path):
    rng = np.random.default_rng(9)
    a = (rng.normal(size=COUNT) * 3 + 3j * rng.normal(size=COUNT)).astype(kind)
    b = rng.integers(-5, 6, COUNT) + rng.integers(0, 2, COUNT) * 0.5j
    b = b.astype(kind)
    a[:6] = [0, 1, -1, 1j, -1j, 2]
    real = types.real_of(kind)
    names = {name: getattr(np, name) for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt")}
    outputs = [(name, kind, lambda a, b, name=name: call(name, a)) for name in names]
    outputs += [("abs", real, lambda a, b: call("abs", a, kind=real)),
                ("angle", real, lambda a, b: call("angle", a, kind=real)), ("pow", kind, lambda a, b: call("pow", a,
                    b))]
    with np.errstate(all="ignore"):
        wanted = {name: function(a) for name, function in names.items()}
        wanted.update(abs=np.abs(a), angle=np.angle(a), pow=np.where(a == 0, 0, a ** b))
    results = computed(outputs, {"a": a, "b": b}, target, tmp_path)
    for name, result, _function in outputs:
        got, want = results[name], wanted[name].astype(result)
        if name == "pow":
            got, want = got[a != 0], want[a != 0]
        near = np.isclose(got, want, rtol=2e-4 if kind == "complex64" else 1e-11,
            atol=1e-6 if kind == "complex64" else 1e-14)
        bad = np.flatnonzero(~(near | (got == want)))
        assert not len(bad), (name, a[bad[0]], b[bad[0]], got[bad[0]], want[bad[0]])
