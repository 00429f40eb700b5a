"""Kernels as trees, with arguments and what they must make of them: for golden texts, and run on every target."""
from dataclasses import dataclass, field

import numpy as np
from trees import assign, call, for_, gid, global_, i64, if_, kernel, lid, load, op, store, var

from drupe.compiler import tree
from drupe.compiler.tree import (Atomic, Barrier, Break, Buffer, Call, Cast, Check, Const, Continue, Do, Fence,
                                 Function,
                                 Param, Point, Print, Query, Return, Select, Unary, While)


@dataclass
class Case:
    function: Function
    args: list
    size: tuple
    local: tuple = None
    want: dict = field(default_factory=dict)  # place of an argument → its elements behind the run
    failure: tuple = None  # code, line, work-item, two values
    printed: str = ""


def f32(value):
    return Const("float32", value)


def v32(name):
    return var(name, "float32")


X = np.arange(30, dtype="float32")


def axpy():
    """c[i] = a*x[i] + y[i], with a test as people write it."""
    x, y = global_("x", "float32", True), global_("y", "float32")
    body = [assign("i", gid()), if_(op(">=", var("i"), var("n")), [Return(2)]),
            store(y, var("i"), op("+", op("*", v32("a"), load(x, var("i"))), load(y, var("i"))), 3)]
    return Case(kernel("axpy", [("a", "float32"), x, y, ("n", "int64")], body, locals={"i": "int64"}),
                [3.0, X, np.ones(30, "float32"), 28], (30,),
                want={2: np.where(np.arange(30) < 28, 3 * X + 1, 1).astype("float32")})


def transpose():
    a, b = global_("a", "int16", True), global_("b", "int16")
    at = op("+", op("*", gid(0), var("columns")), gid(1))
    there = op("+", op("*", gid(1), Query("int64", "global_size", 0)), gid(0))
    made = np.arange(35, dtype="int16").reshape(5, 7)
    return Case(kernel("transpose", [a, b, ("columns", "int64")], [store(b, there, load(a, at))], dims=2),
                [made, np.zeros((7, 5), "int16"), 7], (5, 7), want={1: made.T})


def cube():
    """Three dimensions, and each place asked for."""
    out = global_("out", "int64")
    place = op("+", op("*", op("+", op("*", gid(0), Query("int64", "global_size", 1)), gid(1)),
                       Query("int64", "global_size", 2)), gid(2))
    body = [store(out, place, op("+", op("+", op("*", gid(0), i64(100)), op("*", gid(1), i64(10))), gid(2)))]
    want = np.add.outer(np.add.outer(np.arange(4) * 100, np.arange(3) * 10), np.arange(5))
    return Case(kernel("cube", [out], body, dims=3), [np.zeros((4, 3, 5), "int64")], (4, 3, 5), want={0: want})


def scalars():
    """Arguments of all kinds, and names that C has otherwise."""
    out, kind = global_("int", "float64"), {"f": "complex64"}
    body = [assign("double", op("+", Cast("float64", var("half", "float16")), var("const", "float64"))),
            assign("f", call("mul", var("z", "complex64"), Const("complex64", 2 - 1j))),
            if_(var("flag", "bool"), [assign("double", op("+", var("double", "float64"), Cast("float64", var("a",
                "uint8"))))]),
            store(out, 0, var("double", "float64")),
            store(out, 1, Cast("float64", call("real", var("f", "complex64"), kind="float32"))),
            store(out, 2, Cast("float64", call("imag", var("f", "complex64"), kind="float32"))),
            store(out, 3, Cast("float64", var("drupe_g0", "int32"))), store(out, 4, Cast("float64", var("é",
                "uint64")))]
    params = [out, ("half", "float16"), ("const", "float64"), ("z", "complex64"), ("flag", "bool"), ("a", "uint8"),
              ("drupe_g0", "int32"), ("é", "uint64")]
    return Case(kernel("exp", params, body, locals={"double": "float64", **kind}),
                [np.zeros(5), 1.5, 0.25, 1 + 2j, True, 7, -4, 1 << 40], (1,), want={0: [8.75, 4, 3, -4, 2.0**40]})


def loops():
    """Loops of all kinds: what Python makes of their variables, break, continue and else."""
    out, k = global_("out", "int64"), var("k")
    total = var("total")
    body = [assign("i", gid()), assign("total", i64(0)), assign("k", i64(-1)),
            for_("j", 0, var("i"), [assign("total", op("+", total, op("*", var("j"), var("j"))))]),
            for_("k", 0, 10, [assign("k", op("*", k, i64(2))), if_(op(">", k, var("i")), [Break(5)]),
                              assign("total", op("+", total, k))], 3, [assign("total", op("+", total, i64(1000)))]),
            for_("m", op("-", var("i"), i64(1)), -1, [if_(op("==", op("%", var("m"), i64(2)), i64(0)), [Continue(6)]),
                                                      assign("total", op("+", total, var("m")))], -1),
            While(7, op("&&", op("<", total, i64(100)), op(">", var("i"), i64(20))), [assign("total", op("*", total,
                i64(2)))]),
            for_("total2", 0, total, [assign("total", op("+", total, i64(1)))], 7),
            store(out, var("i"), op("+", op("*", total, i64(100)), k))]

    def one(i):
        total, k = 0, -1
        for j in range(i):
            total += j * j
        for k in range(0, 10, 3):
            k *= 2
            if k > i:
                break
            total += k
        else:
            total += 1000
        for m in range(i - 1, -1, -1):
            if m % 2 == 0:
                continue
            total += m
        while total < 100 and i > 20:
            total *= 2
        for _ in range(0, total, 7):
            total += 1
        return total * 100 + k

    names = dict.fromkeys(("i", "total", "k", "j", "m", "total2"), "int64")
    return Case(kernel("loops", [out], body, locals=names), [np.zeros(30, "int64")], (30,),
                want={0: [one(i) for i in range(30)]})


def device_functions():
    """Functions of C: places and failures reach into them."""
    x = global_("x", "int64")
    inner = Function("clamp", [Param("v", "int64"), Param("x", "int64", x)], {}, [], [
        Check(21, op("<", var("v"), i64(25)), 1, [var("v")]),
        if_(op("<", var("v"), i64(3)), [Return(22, i64(3))]), Return(23, op("+", var("v"), gid()))], "int64")
    outer = Function("twice", [Param("v", "int64"), Param("x", "int64", x)], {"w": "int64"}, [], [
        assign("w", Call("int64", "clamp", [var("v"), x], inner)), Return(32, op("*", var("w"), i64(2)))], "int64")
    body = [if_(op(">", Call("int64", "twice", [gid(), x], outer), i64(8)), [store(x, gid(), i64(-1))],
                [store(x, gid(), Call("int64", "twice", [gid(), x], outer))])]
    want = [6, 6, 6, *[-1] * 22, *range(25, 30)]
    return Case(kernel("device_functions", [x], body), [np.arange(30)], (30,), want={0: want}, failure=(1, 21, None,
        None, 0))


def checks():
    """An index outside of its array ends the work-item."""
    a, b = global_("a", "float32", True), global_("b", "float32")
    body = [for_("j", 0, 3, [Check(4, op("<", op("+", gid(1), var("j")), var("n")), 2, [op("+", gid(1), var("j")),
        var("n")]),
                             store(b, op("+", op("*", gid(0), i64(5)), gid(1)), load(a, op("+", gid(1), var("j"))))])]
    want = np.tile(np.array([2, 3, 4, 4, 4], "float32"), (2, 1))
    return Case(kernel("checks", [a, b, ("n", "int64")], body, locals={"j": "int64"}, dims=2),
                [X, np.zeros((2, 5), "float32"), 5], (2, 5), want={1: want}, failure=(2, 4, (3, 8, 4, 9), 5, 5))


def reduction():
    a, out, s = global_("a", "float32", True), global_("out", "float32"), Buffer("s", "float32", "local")
    lid_, d = var("lid"), var("d")
    body = [assign("lid", lid()), store(s, lid_, load(a, gid())), assign("d", op("//", Query("int64", "local_size",
        0), i64(2))),
            Barrier(3), While(4, op(">", d, i64(0)), [
                if_(op("<", lid_, d), [store(s, lid_, op("+", load(s, lid_), load(s, op("+", lid_, d))))]),
                Barrier(6), assign("d", op("//", d, i64(2)))]),
            if_(op("==", lid_, i64(0)), [store(out, Query("int64", "group_id", 0), load(s, 0))])]
    return Case(kernel("reduction", [a, out, s], body, locals={"lid": "int64", "d": "int64"}, grouped=True),
                [np.arange(64, dtype="float32"), np.zeros(4, "float32"), 64], (64,), (16,),
                want={1: np.arange(64).reshape(4, 16).sum(1)})


def matmul():
    """Tiles in local memory of fixed size, and a sum that lives across barriers."""
    a, b, c = global_("a", "float32", True), global_("b", "float32", True), global_("c", "float32")
    left, right = Buffer("left", "float32", "local", 16), Buffer("right", "float32", "local", 16)
    n, t, k, acc = var("n"), var("t"), var("k"), v32("acc")

    def at(i, j, width):
        return op("+", op("*", i, width), j)

    four = i64(4)
    body = [assign("acc", f32(0.0)), for_("t", 0, op("//", n, four), [
        store(left, at(lid(0), lid(1), four), load(a, at(gid(0), at(t, lid(1), four), n))),
        store(right, at(lid(0), lid(1), four), load(b, at(at(t, lid(0), four), gid(1), n))), Barrier(5),
        for_("k", 0, 4, [assign("acc", op("+", acc, op("*", load(left, at(lid(0), k, four)), load(right, at(k,
            lid(1), four)))))]),
        Barrier(7)]), store(c, at(gid(0), gid(1), n), acc)]
    x = np.arange(64, dtype="float32").reshape(8, 8) % 7
    return Case(kernel("matmul", [a, b, c, ("n", "int64")], body, locals={"acc": "float32", "t": "int64", "k": "int64"},
                       buffers=[left, right], dims=2, grouped=True),
                [x, x.T.copy(), np.zeros((8, 8), "float32"), 8], (8, 8), (4, 4), want={2: x @ x.T})


def histogram():
    """Atomic operations on local and global memory, behind an early return."""
    a, out, s = global_("a", "uint8", True), global_("out", "int32"), Buffer("bins", "int32", "local", 8)
    i, one = var("i"), Const("int32", 1)
    body = [store(s, lid(), Const("int32", 0)), Barrier(2), assign("i", gid()),
            if_(op("<", i, var("n")), [Do(4, Atomic("int32", "add", s, Cast("int64", load(a, i)), [one]))]), Barrier(5),
            Do(6, Atomic("int32", "add", out, lid(), [load(s, lid())], 5))]
    given = (np.arange(64) * 5 % 8).astype("uint8")
    return Case(kernel("histogram", [a, out, ("n", "int64")], body, locals={"i": "int64"}, buffers=[s], grouped=True),
                [given, np.zeros(8, "int32"), 60], (64,), (8,), want={1: np.bincount(given[:60], minlength=8)})


def atomics():
    """All operations of a type, in one order of the results for any order of the work-items."""
    x, y, s = global_("x", "float32"), global_("y", "uint64"), Buffer("s", "int64", "local", 4)
    one = op("+", gid(), i64(1))
    body = [if_(op("==", lid(), i64(0)), [store(s, at, i64(at)) for at in range(4)]), Barrier(2),
            Do(3, Atomic("float32", "add", x, i64(0), [Cast("float32", one)])),
            Do(3, Atomic("float32", "max", x, i64(1), [Cast("float32", gid())])),
            Do(3, Atomic("float32", "min", x, i64(2), [Unary("float32", "-", Cast("float32", gid()))], 4)),
            Do(4, Atomic("uint64", "or", y, i64(0), [Call("uint64", "shl", [Const("uint64", 1), Cast("uint64",
                gid())])])),
            Do(4, Atomic("uint64", "sub", y, i64(1), [Const("uint64", 2)], 3)),
            Do(4, Atomic("uint64", "xor", y, i64(2), [Cast("uint64", gid())])),
            Do(4, Atomic("void", "store", y, op("+", gid(), i64(4)), [Cast("uint64", gid())], 3)),
            assign("old", Atomic("uint64", "compare_exchange", y, i64(3), [Const("uint64", 7), Const("uint64", 9)])),
            if_(op("==", var("old", "uint64"), Const("uint64", 7)), [Do(5, Atomic("float32", "exchange", x, i64(3),
                [f32(5)]))]),
            Do(6, Atomic("int64", "add", s, i64(0), [gid()])), Do(6, Atomic("int64", "max", s, i64(1), [gid()])),
            Do(6, Atomic("int64", "and", s, i64(2), [i64(6)])), Fence(6, 5, 3), Barrier(6),
            if_(op("==", lid(), i64(0)), [Do(7, Atomic("uint64", "add", y, i64(24), [Cast("uint64", op("+", load(s,
                0), op(
                "+", Atomic("int64", "load", s, i64(1), []), load(s, 2))))]))])]
    yy = np.zeros(25, "uint64")
    yy[3] = 7
    total = np.arange(16).sum()
    want = np.array([(1 << 16) - 1, 2**64 - 32, 0, 9, *range(16), 0, 0, 0, 0, total + 7 + 15 + 4], "uint64")
    return Case(kernel("atomics", [x, y], body, locals={"old": "uint64"}, buffers=[s], grouped=True),
                [np.zeros(4, "float32"), yy, ], (16,), (8,), want={0: [136, 15, -15, 5], 1: want})


def private_arrays():
    """Arrays of a work-item, views into them and into global memory, across a barrier."""
    a, out = global_("a", "float64", True), global_("out", "float64")
    p, q = Buffer("p", "float64", "private", 4, zeroed=True), Buffer("q", "uint8", "private", 3, zeroed=True)
    row, part, s = Buffer("row", "float64", "global", None, True), Buffer("part", "float64", "private"), Buffer("s",
        "float64", "local")
    body = [Point(1, row, a, op("*", gid(), i64(4))), for_("j", 0, 4, [store(p, var("j"), load(row, var("j")))]),
            store(s, lid(), load(p, 3)), Barrier(3), Point(4, part, p, Select("int64", op("<", lid(), i64(2)),
                i64(0), i64(2))),
            store(part, 1, load(s, op("%", op("+", lid(), i64(1)), Query("int64", "local_size")))), Barrier(5),
            store(q, 1, Const("uint8", 3)), assign("t", Const("float64", 0.0)),
            for_("j", 0, 4, [assign("t", op("+", op("*", var("t", "float64"), Const("float64", 2.0)), load(p,
                var("j"))))]),
            store(out, gid(), op("+", op("+", var("t", "float64"), load(row, 0)), Cast("float64", load(q, 1))))]
    given = np.arange(32, dtype="float64").reshape(8, 4)
    rows = given.copy()
    for i in range(8):
        rows[i, 1 if i % 4 < 2 else 3] = given[i // 4 * 4 + (i + 1) % 4, 3]
    want = rows @ [8.0, 4, 2, 1] + given[:, 0] + 3
    return Case(kernel("private_arrays", [a, out, s], body, locals={"j": "int64", "t": "float64"}, buffers=[p, q,
        row, part],
                       grouped=True), [given, np.zeros(8), 32], (8,), (4,), want={1: want})


def early_returns():
    """Work-items that end before barriers: the host goes on without them."""
    out, s = global_("out", "int64"), Buffer("s", "int64", "local", 4)
    body = [store(s, lid(), i64(-1)), Barrier(2), if_(op("==", op("%", gid(), i64(3)), i64(0)), [Return(3)]),
            store(s, lid(), gid()), for_("k", 0, 3, [
                Barrier(5), if_(op("==", gid(), i64(5)), [for_("j", 0, 2, [if_(op("==", var("j"), i64(1)),
                    [Return(6)])])]),
                assign("t", load(s, op("%", op("+", lid(), var("k")), i64(4)))), Barrier(7),
                store(s, lid(), op("+", var("t"), i64(10)))]),
            Check(8, op("!=", gid(), i64(7)), 1), Barrier(8), store(out, gid(), load(s, lid()))]
    want, s = np.full(8, -5), 0
    for group in range(2):
        s = [-1] * 4
        alive = [i for i in range(4) if (group * 4 + i) % 3]
        for i in alive:
            s[i] = group * 4 + i
        for k in range(3):
            alive = [i for i in alive if group * 4 + i != 5]
            t = {i: s[(i + k) % 4] for i in alive}
            for i in alive:
                s[i] = t[i] + 10
        for i in alive:
            if group * 4 + i != 7:
                want[group * 4 + i] = s[i]
    return Case(kernel("early_returns", [out], body, locals={"k": "int64", "j": "int64", "t": "int64"}, buffers=[Buffer(
        "s", "int64", "local", 4)], grouped=True), [np.full(8, -5)], (8,), (4,), want={0: want}, failure=(1, 8, 7, 0,
            0))


def prints():
    body = [if_(op("==", gid(), i64(1)), [
        Print(2, ["50% of \"it\": ", gid(), " ", Const("float32", 0.1), " ", Const("bool", True), " ",
            Const("complex128", 1 - 2.5j),
                  " ", Const("uint64", 2**64 - 1), " é\\"])])]
    x = global_("x", "int8")
    return Case(kernel("prints", [x], [*body, store(x, gid(), Const("int8", -128))]), [np.zeros(3, "int8")], (3,),
                want={0: [-128] * 3}, printed="50% of \"it\": 1 0.1 True (1-2.5j) 18446744073709551615 é\\\n")


def stored_types():
    """Elements of all types that are stored otherwise than computed."""
    a, b, c, d = global_("a", "float16"), global_("b", "bool"), global_("c", "complex128"), global_("d", "int8")
    half = load(a, gid())
    wide = op("*", Cast("float32", half), f32(1.1))
    body = [assign("h", Cast("float16", wide)), store(a, gid(), var("h", "float16")),
            store(b, gid(), op("<", Cast("float32", var("h", "float16")), f32(2.0))),
            store(c, gid(), call("add", load(c, gid()), Cast("complex128", var("h", "float16")))),
            store(d, gid(), op("*", load(d, gid()), Const("int8", 3), wraps=True))]
    given = np.arange(9).astype("float16") / np.float16(3)
    h = (given.astype("float32") * np.float32(1.1)).astype("float16")
    z, small = np.arange(9) * (1 + 1j), np.arange(9).astype("int8") * np.int8(20)
    return Case(kernel("stored_types", [a, b, c, d], body, locals={"h": "float16"}),
                [given.copy(), np.zeros(9, "bool"), z.copy(), small.copy()], (9,),
                want={0: h, 1: h < 2, 2: z + h.astype("complex128"), 3: small * np.int8(3)})


ALL = {one.__name__: one for one in (axpy, transpose, cube, scalars, loops, device_functions, checks, reduction, matmul,
                                     histogram, atomics, private_arrays, early_returns, prints, stored_types)}
assert tree.QUERIES
