"""%%native and %%offload, as front-ends see them."""
import json
import re
import shutil

import pytest
from test_magics import completions, refused, shown

CC = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(not CC, reason="there is no C compiler")
AXPY = """
#include <stddef.h>
static double factor(double a) { return a; }
/* y += a*x { */
void axpy(long n, double a, const double x[n], double *y)
{
    for (long i = 0; i < n; i++) y[i] += factor(a) * x[i];
}
"""


@pytest.fixture(scope="module")
def kernel(spec_folder):
    import support

    kernel = support.Kernel(spec_folder)
    kernel.run("import drupe, drupe.array as da, numpy as np")
    yield kernel
    kernel.close()


# --- %%native ----------------------------------------------------------------------------------------------

@needs_compiler
def test_functions_of_a_cell(kernel):
    data = shown(kernel.run("%%native -n lib" + AXPY, timeout=60))
    text = data["text/plain"]
    assert text.startswith("1 function in C, built in ")
    assert "axpy(long n, double a, const double x[n], double *y)" in text and "factor" not in text
    assert "axpy(long n" in data["text/html"]
    kernel.run("x, y = da.ones(4, device='host'), da.zeros(4, device='host')\nevent = axpy(4, 3.0, x, y)")
    assert kernel.run("y.tolist()").result == "[3.0, 3.0, 3.0, 3.0]"
    assert kernel.run("lib.axpy is axpy and type(event) is drupe.Event").result == "True"
    run = kernel.run("axpy(5, 1.0, x, y)")
    assert run.reply["ename"] == "ValueError" and "axpy(), argument 3 (const double x[n])" in run.reply["evalue"]


@needs_compiler
def test_options_of_native(kernel, tmp_path):
    (tmp_path / "ours.h").write_text("#define THREE 3\n")
    path = tmp_path / "libkept.so"
    printed = kernel.run("%%%%native --json -D FOUR=4 -I %s -O '-O3 -DFIVE=5' -l m --save %s\n#include <ours.h>\n"
                         "#include <math.h>\nvoid f(int *x) { *x = THREE + FOUR + FIVE + (int)sqrt(4.0); }"
                         % (tmp_path, path), timeout=60).text()
    assert json.loads(printed)["functions"] == [{"name": "f", "arguments": ["int *x"]}]
    assert json.loads(printed)["not_bound"] == {}
    run = kernel.run("%%native\n#include <stdio.h>\nvoid tell(FILE *file, int n) { }", timeout=60)
    assert "tell is not bound: the declaration" in shown(run)["text/plain"]
    assert kernel.run("z = np.zeros(1, np.int32); f(z); int(z[0])").result == "14"
    assert kernel.run("from drupe import native; native.load(%r, 'host').f(z); int(z[0])" % str(path)).result == "14"
    kernel.run("%%native --check -o built\nvoid not_bound(void) { }", timeout=60)
    assert kernel.run("'not_bound' in globals(), built.functions").result == "(False, {})"


@needs_compiler
@pytest.mark.parametrize("head, line", [("%%native", 4), ("\n\n%%native -D N=1", 6)])
def test_mistakes_are_shown_at_their_lines(kernel, head, line):
    run = kernel.run(head + "\nvoid f(int *x)\n{\n    *x = absent;\n}", timeout=60)
    assert run.status == "error" and run.reply["ename"] == "BuildError"
    assert run.reply["evalue"].startswith("line %d, column 10: error: " % line)
    traceback = "\n".join(run.reply["traceback"])
    assert "absent;" in traceback and "----> %d" % line in traceback and "does not compile for the host" in traceback


@needs_compiler
def test_warnings_and_symbols_that_nobody_has(kernel):
    run = kernel.run("%%native -o built\nvoid g(int *x) { int unused; *x = 1; }", timeout=60)
    assert "line 2" in shown(run)["text/plain"] and "unused" in shown(run)["text/plain"]
    assert kernel.run("[one.severity for one in built.diagnostics]").result == "['warning']"
    run = kernel.run("%%native -l no_such_library\nvoid h(void) { }", timeout=60)
    assert run.reply["ename"] == "BuildError" and "cannot find -lno_such_library" in run.reply["evalue"]
    run = kernel.run("%%native\nvoid nowhere(void);\nvoid h(void) { nowhere(); }", timeout=60)
    assert run.status == "error"


@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="there is no C++ compiler")
def test_cplusplus(kernel):
    run = kernel.run('%%native -x c++\n#include <algorithm>\nextern "C" {\nvoid order(long n, double *x) '
                     '{ std::sort(x, x + n); }\n}\nextern "C" void first(const double *x, double *y) { *y = *x; }',
                     timeout=120)
    assert run.status == "ok", run.text("stderr")
    assert kernel.run("v = np.array([3., 1., 2.]); w = np.zeros(1); order(3, v); first(v, w); v.tolist(), w[0].item()"
                      ).result == "([1.0, 2.0, 3.0], 1.0)"
    assert 'extern "C"' in shown(kernel.run("%%native -x c++\nvoid hidden(int) { }", timeout=120))["text/plain"]


def test_fortran(kernel):
    code = ("%%native -x fortran\nsubroutine twice(n, x)\n  integer(8), intent(in) :: n\n  real(8) :: x(n)\n"
            "  x = 2*x\nend subroutine")
    if not shutil.which("gfortran"):
        assert "there is no compiler for Fortran: install one" in refused(kernel.run(code))
        return
    assert kernel.run(code, timeout=120).status == "ok"
    assert kernel.run("v = np.ones(3); twice(3, v); v.tolist()").result == "[2.0, 2.0, 2.0]"


@needs_compiler
def test_fault_names_the_function_and_the_notebook_lives(kernel):
    kernel.run("%%native\nvoid wild(double *x) { *(volatile double *)16 = 1; }", timeout=60)
    run = kernel.run("before = 42\nwild(da.ones(1, device='host')).wait()")
    assert run.status == "error" and run.reply["ename"] == "DeviceLostError" and "wild" in run.reply["evalue"]
    assert kernel.run("before").result == "42"
    kernel.run("wild(da.ones(1, device='host'))")  # nobody waits: the cell still says so
    assert kernel.run("before").result == "42"


@pytest.mark.parametrize("code, says", [
    ("%%native\n \n", "has no code"), ("%%native -x pascal\nvoid f(void) {}", "invalid choice"),
    ("%%native -D 'a b'\nvoid f(void) {}", "without blanks"), ("%%native -n 1\nvoid f(void) {}", "is no name"),
    ("%%offload --in a-b\n1", "is no name"),
    ("%%offload\n\n", "has no code"), ("%%offload --in absent\n1", "there is no variable 'absent'"),
    ("%%offload --out absent\n1", "has set no variable 'absent'"), ("%%offload -d nonsense\n1", "nonsense")])
def test_refusals(kernel, code, says):
    assert re.search(says, refused(kernel.run(code)))


# --- %%offload ---------------------------------------------------------------------------------------------

def test_arrays_move_there_and_back(kernel):
    kernel.run("a, b, c = np.arange(4.), np.ones(4), np.zeros(4)\nsame = c")
    run = kernel.run("%%offload -d host --in a,b --out c -o moved\n"
                     "kinds = type(a).__name__, a.device.filter_string\nc = np.sqrt(a) + b")
    assert shown(run)["text/plain"].startswith("host:cpu:0; a, b there (64 B); c back (32 B); ")
    assert kernel.run("c.tolist() == [1., 2., 2**.5 + 1, 3**.5 + 1], c is same, type(a) is np.ndarray, kinds, "
                      "moved.came").result == "(True, True, True, ('Array', 'host:cpu:0'), 32)"
    assert kernel.run("%%offload --inout a -q\na *= 10").status == "ok"
    assert kernel.run("a.tolist()").result == "[0.0, 10.0, 20.0, 30.0]"
    run = kernel.run("%%offload --in a\nfloat(a.sum())")
    assert run.result == "60.0"
    kernel.run("%%offload --in a --out d -q\nd = a.reshape(2, 2).T")
    assert kernel.run("d.tolist()").result == "[[0.0, 20.0], [10.0, 30.0]]"


def test_offload_asynchronously(kernel):
    kernel.run("%%offload --inout b --async -o moved -q\nb = b + 5")
    assert kernel.run("moved.wait(); b.tolist()").result == "[6.0, 6.0, 6.0, 6.0]"
    printed = kernel.run("%%offload --in b --out e --json\ne = b * 2").text()
    told = json.loads(printed)
    assert told["in"] == ["b"] and told["out"] == ["e"] and told["bytes_out"] == 32


def test_arrays_whose_rows_do_not_lie_side_by_side_are_filled(kernel):
    kernel.run("w = np.zeros((4, 6)); columns = same = np.asfortranarray(w[:2, :3]); strided = before = w[::2, ::2]")
    kernel.run("%%offload --inout columns,strided\ncolumns += 1\nstrided = strided + 2")
    assert kernel.run("columns is same, columns.tolist(), strided is before, w[::2].tolist()").result == (
        "(True,\n [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],\n True,\n [[2.0, 0.0, 2.0, 0.0, 2.0, 0.0], "
        "[2.0, 0.0, 2.0, 0.0, 2.0, 0.0]])")
    kernel.run("%%offload --inout strided --async -o moved -q\nstrided += 1")
    kernel.run("moved.wait()")
    assert kernel.run("strided is before, float(w.sum())").result == "(True, 18.0)"


def test_error_in_the_body_shows_its_line_and_restores(kernel):
    run = kernel.run("%%offload --in a\nx = 1\ny = a + missing")
    assert run.reply["ename"] == "NameError"
    traceback = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(run.reply["traceback"]))
    assert "missing" in traceback and "-> 3" in traceback and "_Move" not in traceback
    assert kernel.run("type(a) is np.ndarray").result == "True"
    run = kernel.run("%%offload --in a\nx = (")
    assert run.reply["ename"] == "SyntaxError"


# --- %%kernel ----------------------------------------------------------------------------------------------

ONE = "@drupe.kernel\ndef one(item, x):\n    i = item.get_id(0)\n    x[i] = 1\n"


def test_kernel_is_shown_beside_its_inspection(kernel):
    kernel.run("x = da.zeros(8, device='host')")
    text = shown(kernel.run("%%kernel\n" + ONE))["text/plain"].replace("\n", " ")
    assert text.startswith("one: not compiled yet: launch it in the cell, or say for which arguments by --args")
    data = shown(kernel.run("%%kernel -o seen\n" + ONE + "drupe.call_kernel(one, drupe.Range(8), x)", timeout=60))
    assert "float64" in data["text/plain"] and "def one" in data["text/html"] and "variables" in data["text/html"]
    assert kernel.run("list(seen.inspections), x.tolist()[0]").result == "(['one'], 1.0)"
    data = shown(kernel.run("%%kernel --stage types -a 'drupe.Range(8), x'\n" + ONE, timeout=60))
    assert "i: int64" in data["text/plain"].splitlines() and "def one" in data["text/html"]
    assert "defines no kernel" in refused(kernel.run("%%kernel\n1"))
    assert "--args" in refused(kernel.run("%%kernel -a '('\n" + ONE))
    run = kernel.run("%%kernel\n" + ONE + "missing")
    assert run.reply["ename"] == "NameError"


def test_completion(kernel):
    assert completions(kernel, "%%offload --in sam") == ["%%offload --in same"]
    assert completions(kernel, "%%offload --in a,sam") == ["%%offload --in a,same"]
    assert completions(kernel, "%%offload --asy") == ["%%offload --async"]
    assert completions(kernel, "%%native --lan") == ["%%native --language"]
    assert "%%native -x fortran" in completions(kernel, "%%native -x f")
