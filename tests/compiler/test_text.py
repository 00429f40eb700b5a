"""Texts of kernels: golden ones, and what they do on every target."""
import os
import pathlib

import cases
import numpy as np
import pytest
import trees
from trees import gid, global_, i64, if_, kernel, lid, load, op, store

import drupe
from drupe.compiler import text, tree
from drupe.compiler.messages import KernelError
from drupe.compiler.tree import Barrier, Buffer, Const, Do, Return, SubGroup

GOLDEN = pathlib.Path(__file__).parent / "golden"
ENDINGS = {"c99": ".c.txt", "opencl": ".cl.txt"}


@pytest.mark.parametrize("dialect", ENDINGS)
@pytest.mark.parametrize("name", cases.ALL)
def test_golden_texts(name, dialect):
    """DRUPE_RENEW=1 writes them anew; read the difference."""
    made = text.render(cases.ALL[name]().function, dialect, lambda line: "line %d" % line)
    path = GOLDEN / (name + ENDINGS[dialect])
    shown = "%s\n/* %s\n%s */\n" % (made.text, made.form, "\n".join(map(repr, made.params)))
    if os.environ.get("DRUPE_RENEW"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("target", trees.TARGETS)
@pytest.mark.parametrize("name", cases.ALL)
def test_what_they_do(name, target, tmp_path, capfd):
    case = cases.ALL[name]()
    if target.startswith("opencl") and name == "early_returns":
        pytest.skip("OpenCL has no barriers that some have returned before")
    failures = trees.run(case.function, case.args, case.size, case.local, target=target, folder=tmp_path)
    for at, want in case.want.items():
        assert np.array_equal(case.args[at], np.asarray(want).reshape(case.args[at].shape)), at
    assert capfd.readouterr().out == case.printed
    for got, want in zip(failures, case.failure or (0,) * 5):  # which work-item fails first is not known
        assert want is None or got in np.atleast_1d(want), failures


@pytest.mark.parametrize("name", cases.ALL)
def test_calls_of_many_sizes(name, tmp_path):
    """However the chunks or groups are handed out."""
    for chunk, parts in ((1, 1), (4, 2), (1000, 3)):
        case = cases.ALL[name]()
        trees.run(case.function, case.args, case.size, case.local, target="tcc" if trees.shutil.which("tcc") else "gcc",
                  folder=tmp_path, chunk=chunk, parts=parts)
        for at, want in case.want.items():
            assert np.array_equal(case.args[at], np.asarray(want).reshape(case.args[at].shape))


@pytest.mark.skipif(not drupe.Device("host").can_compile("c"), reason="there is no C compiler")
def test_in_the_engine():
    """The engine takes a text as it is, with its table."""
    import drupe.array as da

    case = cases.axpy()
    made = text.render(case.function, "c99")
    program = drupe.Program(made.text, "host", language="c", options="-drupe-table")
    assert made.form == "host_range" and [one[0] for one in made.params] == [
        "global_size", "chunk", "value", "pointer", "pointer", "value"]
    x, y = (da.asarray(one, device="host") for one in case.args[1:3])
    program.axpy(30, 4, 3.0, x, y, 28, global_size=8).wait()
    assert np.array_equal(y.asnumpy(), case.want[2])


def sub_group(op_, kind="int32", *more):
    x = global_("x", kind)
    value = SubGroup(kind, op_, [load(x, tree.Query("int64", "global_id", 0)), *more])
    return kernel("f", [x], [store(x, tree.Query("int64", "global_id", 0), value), Barrier(1, 2, "sub"),
                             store(x, 0, tree.Cast(kind, tree.Query("int64", "sub_group_local_id")))], grouped=True)


def test_sub_groups():
    made = text.render(sub_group("shuffle_up", "int32", Const("int64", 2)), "opencl").text
    for part in ("cl_khr_subgroups : enable", "cl_khr_subgroup_shuffle_relative : enable", "sub_group_shuffle_up(x[",
                 "(uint)2", "sub_group_barrier(CLK_LOCAL_MEM_FENCE);", "get_sub_group_local_id()"):
        assert part in made
    assert "sub_group_reduce_add(" in text.render(sub_group("reduce_add"), "opencl").text
    with pytest.raises(KernelError, match="DK018: The device has no sub-groups"):
        text.render(sub_group("reduce_add"), "c99")


def test_what_the_host_refuses():
    s = Buffer("s", "float64", "local", 200000)
    body = [store(s, lid(), Const("float64", 1.0)), Barrier(1), store(s, lid(), Const("float64", 1.0))]
    with pytest.raises(KernelError, match="DK018.* KiB"):
        text.render(kernel("f", [], body, buffers=[s], grouped=True), "c99")
    p = Buffer("p", "float64", "private", 200)
    body = [store(p, lid(), Const("float64", 1.0)), Barrier(1), store(p, lid(), Const("float64", 1.0))]
    with pytest.raises(KernelError, match="DK018.* KiB"):
        text.render(kernel("f", [], body, buffers=[p], grouped=True), "c99")
    p = Buffer("p", "float32", "private", (1 << 18) + 1)
    with pytest.raises(KernelError, match="DK018: A work-item needs 1025 KiB of private memory"):
        text.render(kernel("f", [], [store(p, gid(), Const("float32", 1.0))], buffers=[p]), "c99")
    inner = tree.Function("inner", [], body=[if_(op("<", lid(), i64(3)), [Return(1)]), Barrier(2)])
    outer = kernel("f", [], [Do(1, tree.Call("void", "inner", [], inner))], grouped=True)
    with pytest.raises(KernelError, match="DK020.*inner"):
        text.render(outer, "c99")
    assert "barrier(CLK_LOCAL_MEM_FENCE);" in text.render(outer, "opencl").text


def test_names():
    from drupe.compiler.cnames import Names

    names = Names()
    assert [names.of(one) for one in ("x", "int", "float4", "i64", "drupe_g0", "x", "naïve", "M_PI", "exp")] == [
        "x", "py_int", "py_float4", "py_i64", "py_drupe_g0", "x", "nau00efve", "py_M_PI", "exp"]
    assert names.of("exp", 1, function=True) == "py_exp" and names.of("x", 2) == "x_2" and names.own("x") == "x2"


def test_constants():
    class Printed(text.Function):
        def __init__(self):
            self.texts = {}
            self.program = text.Program(kernel("f", [], []), None)

    printed = Printed()
    for kind, value, want in (("float32", 0.1, "0.1f"), ("float32", 1e30, "1e+30f"), ("float32", 3.4028234663852886e38,
                              "3.40282347e+38f"), ("float64", 0.1, "0.1"), ("float64", 2, "2.0"), ("float64", -0.0,
                                  "-0.0"),
                              ("float32", 16777216, "16777216.0f"), ("float64", float("-inf"), "-drupe_inf_float64()"),
                              ("int64", -2**63, "(-9223372036854775807L - 1)"), ("int32", -2**31, "(-2147483647 - 1)"),
                              ("uint64", 2**64 - 1, "18446744073709551615UL"), ("bool", True, "1"), ("int8", -3, "-3")):
        assert printed.expr(Const(kind, value)) == want
    for value in np.random.default_rng(1).integers(0, 0x7f800000, 500, dtype="uint32").view("float32"):
        assert np.float32(printed.expr(Const("float32", float(value)))[:-1]) == value
