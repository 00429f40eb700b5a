"""Three expressions, written once, as NumPy, numexpr, numba, jax and drupe.array compute them: for fusion.py.

maker(contestant, title, arrays) gives a function without arguments that computes the expression over the contestant's
arrays and waits for the result. "numpy out", "numexpr out" and "numba out" write into an array made beforehand.
"""
import ast
import os

import numpy

TAIL = ("0.39894228*exp(-0.5*{d}*{d})*{k}"
        "*(0.31938153+{k}*(-0.35656378+{k}*(1.78147794+{k}*(-1.82125598+{k}*1.33027443))))")
# title: (the names of its arrays, the statements before it, the expression)
EXPRESSIONS = {
    "2*x*x+3*x-1": ("x", [], "2*x*x+3*x-1"),
    "sqrt(x*x+y*y)*0.5+exp(-z)": ("xyz", [], "sqrt(x*x+y*y)*0.5+exp(-z)"),
    "Black-Scholes": ("skt", [
        "root = 0.3*sqrt(t)",
        "d1 = (log(s/k)+0.075*t)/root",
        "d2 = d1-root",
        "k1 = 1/(1+0.2316419*abs(d1))",
        "k2 = 1/(1+0.2316419*abs(d2))",
        "tail1 = " + TAIL.format(d="d1", k="k1"),
        "tail2 = " + TAIL.format(d="d2", k="k2"),
        "n1 = where(d1 > 0, 1-tail1, tail1)",
        "n2 = where(d2 > 0, 1-tail2, tail2)"], "s*n1-k*exp(-0.03*t)*n2"),
}
FUNCTIONS = ("sqrt", "exp", "log", "abs", "where")
PEERS = ("numpy", "numpy out", "numexpr", "numexpr out", "numba", "numba out", "jax")


def arrays(title, count, dtype):
    rng = numpy.random.default_rng(4)
    if title == "Black-Scholes":
        made = {"s": rng.uniform(80, 120, count), "k": rng.uniform(80, 120, count), "t": rng.uniform(0.2, 2, count)}
    else:
        made = {name: rng.random(count) for name in EXPRESSIONS[title][0]}
    return {name: value.astype(dtype) for name, value in made.items()}


def source(title, last="return {}", out=False):
    names, statements, expression = EXPRESSIONS[title]
    lines = ["def compute(%s):" % ", ".join([*names, *["out"] * out]), *statements, last.format(expression)]
    return "\n    ".join(lines)


class Typed(ast.NodeTransformer):
    """Every number becomes a name whose value has the arrays' type, for compilers that take a literal for a double."""

    def __init__(self, dtype):
        self.type, self.values = numpy.dtype(dtype).type, {}

    def visit_Constant(self, node):
        name = "c%d" % len(self.values)
        self.values[name] = self.type(node.value)
        return ast.copy_location(ast.Name(name, ast.Load()), node)


class Inlined(ast.NodeTransformer):
    """Names of statements become their expressions."""

    def __init__(self, title):
        self.of = {}
        for statement in EXPRESSIONS[title][1]:
            name, _, text = statement.partition(" = ")
            self.of[name] = self.visit(ast.parse(text, mode="eval").body)

    def visit_Name(self, node):
        return self.of.get(node.id, node)


def function_of(title, xp):
    """The expression as a user of `xp` writes it."""
    names = {name: getattr(xp, name) for name in FUNCTIONS}
    exec(source(title), names)
    return names["compute"]


def numexpr_maker(title, given, dtype, out):
    import numexpr
    numexpr.set_num_threads(len(os.sched_getaffinity(0)))
    typed = Typed(dtype)
    text = ast.unparse(typed.visit(Inlined(title).visit(ast.parse(EXPRESSIONS[title][2], mode="eval"))))
    place = {"out": numpy.empty_like(next(iter(given.values())))} if out else {}
    return lambda: numexpr.evaluate(text, local_dict={**given, **typed.values}, **place)


def numba_maker(title, given, dtype, out):
    import numba
    typed = Typed(dtype)
    tree = typed.visit(ast.parse(source(title, "out[:] = {}" if out else "return {}", out)))
    names = {**{name: getattr(numpy, name) for name in FUNCTIONS}, **typed.values}
    exec(compile(ast.fix_missing_locations(tree), "numba", "exec"), names)
    compute = numba.njit(parallel=True)(names["compute"])
    values = list(given.values())
    if not out:
        return lambda: compute(*values)
    place = numpy.empty_like(values[0])

    def into():
        compute(*values, place)
        return place
    return into


def jax_maker(title, given):
    import jax
    jax.config.update("jax_enable_x64", True)
    compute = jax.jit(function_of(title, jax.numpy))
    values = [jax.numpy.asarray(value) for value in given.values()]
    return lambda: compute(*values).block_until_ready()


# --- NumPy with all places made beforehand ------------------------------------------------------------------


def polynomial_out(np, out, work, x):
    np.multiply(x, 2, out=out)
    np.multiply(out, x, out=out)
    np.multiply(x, 3, out=work[0])
    np.add(out, work[0], out=out)
    np.subtract(out, 1, out=out)


def distance_out(np, out, work, x, y, z):
    np.multiply(x, x, out=out)
    np.multiply(y, y, out=work[0])
    np.add(out, work[0], out=out)
    np.sqrt(out, out=out)
    np.multiply(out, 0.5, out=out)
    np.negative(z, out=work[0])
    np.exp(work[0], out=work[0])
    np.add(out, work[0], out=out)


def normal_out(np, out, work, mask, d):
    a, b = work
    np.abs(d, out=a)
    np.multiply(a, 0.2316419, out=a)
    np.add(a, 1, out=a)
    np.divide(1, a, out=a)
    np.multiply(a, 1.33027443, out=out)
    for factor in (-1.82125598, 1.78147794, -0.35656378, 0.31938153):
        np.add(out, factor, out=out)
        np.multiply(out, a, out=out)
    np.multiply(d, d, out=b)
    np.multiply(b, -0.5, out=b)
    np.exp(b, out=b)
    np.multiply(b, 0.39894228, out=b)
    np.multiply(out, b, out=out)
    np.subtract(1, out, out=b)
    np.greater(d, 0, out=mask)
    np.copyto(out, b, where=mask)


def black_scholes_out(np, out, work, s, k, t):
    root, d, n, mask = work[0], work[1], work[2], work[5]
    np.sqrt(t, out=root)
    np.multiply(root, 0.3, out=root)
    np.divide(s, k, out=d)
    np.log(d, out=d)
    np.multiply(t, 0.075, out=n)
    np.add(d, n, out=d)
    np.divide(d, root, out=d)
    normal_out(np, n, work[3:5], mask, d)
    np.multiply(s, n, out=out)
    np.subtract(d, root, out=d)
    normal_out(np, n, work[3:5], mask, d)
    np.multiply(t, -0.03, out=root)
    np.exp(root, out=root)
    np.multiply(root, k, out=root)
    np.multiply(root, n, out=root)
    np.subtract(out, root, out=out)


OUT = dict(zip(EXPRESSIONS, (polynomial_out, distance_out, black_scholes_out)))


def numpy_out_maker(title, given):
    first = next(iter(given.values()))
    out, work = numpy.empty_like(first), [*(numpy.empty_like(first) for _ in range(5)), numpy.empty(first.shape, bool)]

    def into():
        OUT[title](numpy, out, work, *given.values())
        return out
    return into


def maker(contestant, title, given, dtype, place=None):
    """What computes once. `place` is the library that a contestant which is no peer belongs to (fusion_child.Place)."""
    name, _, out = contestant.partition(" ")
    if contestant == "numpy out":
        return numpy_out_maker(title, given)
    if name in ("numexpr", "numba"):
        return {"numexpr": numexpr_maker, "numba": numba_maker}[name](title, given, dtype, bool(out))
    if name == "jax":
        return jax_maker(title, given)
    compute, values = function_of(title, place.xp), [place.array(value) for value in given.values()]

    def settled():
        result = compute(*values)
        place.wait()
        return result
    return settled
