"""Expressions that became one kernel, in what notebooks show of kernels: whose cell and lines they are."""
import re

X = "import os; os.environ[\"DRUPE_FUSE_IDLE\"] = \"0\"\nimport drupe, drupe.array as da\n" \
    "x = da.ones(1_000_000, device='host'); x.queue.wait()"
# A page in the middle of the array that cannot be read any more, of which Drupe does not know.
SPOILED = """
import ctypes
def maps():
    return [line.split()[0].split("-") for line in open("/proc/self/maps")]
known = maps()
import os; os.environ["DRUPE_FUSE_IDLE"] = "0"
import drupe, drupe.array as da
x = da.ones(40_000_000, device="host"); x.queue.wait()
fresh = [(int(end, 16) - int(begin, 16), int(begin, 16)) for begin, end in maps() if [begin, end] not in known]
size, begin = max(fresh)
page = ctypes.c_void_p((begin + size // 2) & ~0xffff)
protect = ctypes.CDLL(None, use_errno=True).mprotect
size
"""


def test_the_timeline_and_the_pending_array(kernel):
    assert kernel.run(X).status == "ok"
    run = kernel.run("y = da.sqrt(x)\nz = y*x\n\nz.pending")
    assert run.result.startswith("Pending: 2 operations, which would run as 1 kernel on host:cpu:0:")
    cell = int(re.search(r"sqrt\(a\).*cell \[(\d+)\], line 1: kept, as a variable has it", run.result)[1])
    assert f"cell [{cell}], line 2: the array" in run.result
    assert kernel.run("z.pending, y.pending").result == "(None, None)"  # the end of the cell had them computed
    run = kernel.run(f"%events --cell {cell} --table")
    text = run.of("display_data")[0]["data"]["text/plain"]
    assert "sqrt, mu…: lines 1-2" in text and "1 kernel" in text, text
    last = kernel.run("[one for one in drupe.trace() if ',' in (one['label'] or '')][-1]['line']")
    assert last.result == "2"


def test_magics(kernel):
    assert kernel.run(X).status == "ok"
    run = kernel.run("%%events --table\ny = da.exp(x)\ny = y*2 + x\n")
    text = run.of("display_data")[0]["data"]["text/plain"]
    assert re.search(r"(…|add): lines 2-3", text), text
    for code in ("%%devtime -n 3 -r 2 -w 0 -o t\ny = da.exp(x)\ny = y*2 + x\n",
                 "%devtime -n 3 -r 2 -w 0 -o t da.exp(x)*2"):
        run = kernel.run(code)
        assert run.status == "ok" and kernel.run("t.submissions, t.device > 0").result == "(1.0, True)"
        assert kernel.run("[x['label'] for x in drupe.trace()[-6:]].count('exp, multiply' + %r)" % (
            ", add: lines 2-3" if "y" in code else "")).result == "6"


def test_all_lines_are_in_the_message_of_a_failure(fresh):
    assert int(fresh.run(SPOILED).result) >= 320_000_000
    assert fresh.run("protect(page, 4096, 0)").result == "0"
    run = fresh.run("y = da.sqrt(x)\ny = y*2\n\nz = y + 1\nfloat(z[0])")
    assert run.status == "error" and "'sqrt, multiply, add: lines 1-2, 4' on host:cpu:0" in run.reply["evalue"]
    assert re.search(r"Submitted by cell \[3\], line 4", run.reply["evalue"]), run.reply["evalue"]
    assert fresh.run("protect(page, 4096, 3)").result == "0"
    assert fresh.run("float((x + 1)[0])").result == "2.0"
