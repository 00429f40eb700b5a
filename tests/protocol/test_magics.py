"""The magics of Drupe, as front-ends see them."""
import json
import re
import subprocess
import sys
import time

import pytest
import support

from drupe import magics
from drupe.magics import diagnose, opencl


def shown(run):
    """The bundle that a magic displayed. On a busy machine a build or a launch takes long enough to tell of itself."""
    bundles = [content["data"] for content in run.of("display_data")]
    notices = "building ", "preparing the first launch "
    (bundle,) = [one for one in bundles if not one["text/plain"].startswith(notices)]
    return bundle


def refused(run):
    """The line of a UsageError."""
    assert run.status == "error" and run.reply["ename"] == "UsageError" and not run.of("error")
    text = run.text("stderr")
    assert text.startswith("UsageError: ") and text.count("\n") == 1, text
    return text


def completions(kernel, code):
    reply = kernel.ask("complete_request", {"code": code, "cursor_pos": len(code)})
    assert code[reply["cursor_start"]:] == code[reply["cursor_start"]:reply["cursor_end"]]
    return [code[:reply["cursor_start"]] + one for one in reply["matches"]]


def test_nothing_is_loaded_before_it_is_used(fresh):
    loaded = "import sys; [name for name in sys.modules if name.startswith('drupe.')]"
    assert "%devices" in fresh.run("%lsmagic").result and "'drupe.magics.base'" not in fresh.run(loaded).result
    assert completions(fresh, "%devi") == ["%device", "%%device", "%devices"]
    assert "'drupe.magics.base'" not in fresh.run(loaded).result
    assert completions(fresh, "%devices op") == ["%devices opencl"]  # no driver is opened for it
    assert "'drupe._engine'" not in fresh.run(loaded).result
    fresh.run("%devices host")
    assert "'drupe.magics.devices'" in fresh.run(loaded).result


def test_options_that_all_have(kernel):
    assert shown(kernel.run("%devices host"))["text/plain"].startswith("device ")
    printed = kernel.run("%devices host --json").text()
    assert json.loads(printed)[0]["filter"] == "host:cpu:0" and printed.count("\n") == 1
    run = kernel.run("%devices host -q -o found")
    assert not run.of("display_data") and kernel.run("found.devices[0].filter_string").result == "'host:cpu:0'"
    for code in ("%devices -h", "%devices host --help", "%%devices?", "%device -h"):
        assert kernel.run(code).status == "ok"
    help_text = shown(kernel.run("%devices host -h"))
    assert "Examples:" in help_text["text/plain"] and "<table" in help_text["text/html"]


@pytest.mark.parametrize("code, says", [
    ("%devices --jsn", "did you mean --json?"),
    ("%devices nonsense", "nonsense"),
    ("%devices 'host", "no closing quotation"),
    ("%devices -o 1x", "is no name"),
    ("%devices -o", "expected one argument"),
    ("%devices host cpu", "cpu is not understood"),
    ("%%device\n1", "needs a device"),
    ("%%device zürich\n1", "zürich"),
])
def test_errors_are_one_line(kernel, code, says):
    assert says in refused(kernel.run(code))


def test_completion(kernel):
    kernel.run("import drupe; drupe.devices(); some_name = 1")
    assert {"%devices --json", "%devices -o", "%devices --help"} <= set(completions(kernel, "%devices -"))
    assert "%devices gpu,host:cpu:0" in completions(kernel, "%devices gpu,host:")
    assert "%devices -o some_name" in completions(kernel, "%devices -o some_n")
    assert completions(kernel, "%devices --output=some_n") == ["%devices --output=some_name"]


def test_inspection(kernel):
    for code in ("%devices", "%%device", "%devices?"):
        reply = kernel.ask("inspect_request", {"code": code, "cursor_pos": 4, "detail_level": 0})
        assert reply["found"] and reply["data"]["text/plain"].count("\n    %") >= 2, reply
        assert "text/html" in reply["data"]


HERE = "\nimport drupe.array\nstr(drupe.array.ones(2).device.filter_string)"


def test_the_device_of_a_cell(kernel):
    support.need_parts(kernel)
    assert kernel.run("%%device host" + HERE).result == "'host:cpu:0'"
    before = kernel.run(HERE).result
    kernel.run("part = 0; where = 'host'")
    kernel.run("%device $where:cpu:0{1}.{part}")
    try:
        assert ":0.0" in kernel.run(HERE).result and ":0.0" in shown(kernel.run("%device"))["text/plain"]
        assert kernel.run("%%device host\nimport asyncio\nawait asyncio.sleep(0)" + HERE).result == "'host:cpu:0'"
        failed = kernel.run("\n%%device host\n\n1/0")
        assert failed.reply["ename"] == "ZeroDivisionError" and "line 3" in "".join(failed.reply["traceback"])
        assert ":0.0" in kernel.run(HERE).result  # left after the failure
        assert kernel.run("%%device host\n%%time" + HERE).result == "'host:cpu:0'"
        assert kernel.run("%%time\n%%device host" + HERE).result == "'host:cpu:0'"
        assert ":0.0" in kernel.run(HERE).result
        inner = kernel.run("%%device host\n_ = get_ipython().run_cell('1')" + HERE)
        assert "'host:cpu:0'" in [content["data"]["text/plain"] for content in inner.of("execute_result")]
    finally:
        kernel.run("%device host")
    assert kernel.run("from drupe._engine import _chosen_device; _chosen_device.set(None)" + HERE).result == before


@pytest.mark.parametrize("line, body", [
    ("%devices", ""), ("%device host", ""), ("%events", ""), ("%memory", ""), ("%dashboard off", ""), ("%queue", ""),
    ("%deverrors", ""), ("%devtime 1 + 1", ""), ("%%device host", "\n2"), ("%%devtime", "\n1 + 1"), ("%%events", "\n1"),
    ("%%opencl -d opencl:cpu", "\nkernel void f() {}"), ("%%cl_kernel -d opencl:cpu", "\nkernel void f() {}")])
def test_every_magic_gives_its_result_as_json_and_as_an_object(kernel, line, body):
    """As docs/magics.md says. An example of each is in its help, twice."""
    name, _, rest = line.partition(" ")
    run = kernel.run("%s --json %s%s" % (name, rest, body), timeout=60)
    assert run.status == "ok", run.reply
    json.loads(run.text())
    output = "--output" if "cl_kernel" in name else "-o"
    run = kernel.run("%s %s got_it %s%s" % (name, output, rest, body), timeout=60)
    assert run.status == "ok", run.reply
    assert kernel.run("got_it is not None; del got_it").status == "ok"
    assert shown(kernel.run(name + " -h" + body))["text/plain"].count("\n    " + name) >= 1


# --- %devices ---------------------------------------------------------------------------------------------------

def test_devices(kernel):
    support.need_parts(kernel)
    text = shown(kernel.run("%devices -v"))
    assert "host:cpu:0*" in text["text/plain"] and "Drupe host" in text["text/plain"] and "0 B of" in text["text/html"]
    assert "matches 'custom'" in shown(kernel.run("%devices custom"))["text/plain"]
    kernel.run("import drupe; part = drupe.Device('host:cpu:0{1}.0')")
    (part,) = json.loads(kernel.run("%devices host:cpu:0{1}.0 --json").text())
    assert part["part"] and part["used"] is None
    assert "n/a" in shown(kernel.run("%devices host:cpu:0{1}.0"))["text/plain"]


def test_without_a_compiler_the_package_is_named(spec_folder):
    kernel = support.Kernel(spec_folder, {"DRUPE_OPENCL_LIBRARY": "/nowhere/libOpenCL.so"})
    try:
        said = refused(kernel.run("%%opencl -d cpu\nkernel void f() {}", timeout=60))
        assert "host:cpu:0 does not compile OpenCL C" in said and "pocl" in said
    finally:
        kernel.close()


def test_hidden_devices_name_what_hides_them(spec_folder):
    kernel = support.Kernel(spec_folder, {"DRUPE_DEVICES": "!host:*"})
    try:
        text = shown(kernel.run("%devices"))["text/plain"]
        assert "DRUPE_DEVICES=!host:* may hide devices" in text and "\nhost:cpu:0" not in text
        run = kernel.run("%devices --all -o all", timeout=60)
        assert "hidden by DRUPE_DEVICES=!host:*" in shown(run)["text/html"]
        assert "(host:cpu:0)" in shown(run)["text/plain"]
        assert kernel.run("[one['mask'] for one in all.hidden]").result == "['DRUPE_DEVICES']"
    finally:
        kernel.close()


def test_without_a_driver_it_says_what_the_doctor_says(spec_folder):
    kernel = support.Kernel(spec_folder, {"DRUPE_OPENCL_LIBRARY": "/nowhere/libOpenCL.so"})
    try:
        text = " ".join(shown(kernel.run("%devices", timeout=60))["text/plain"].split())
        assert "only the built-in device is here" in text and "DRUPE_OPENCL_LIBRARY" in text
    finally:
        kernel.close()


# --- %%opencl ---------------------------------------------------------------------------------------------------

@pytest.fixture
def compiler(kernel):
    if "opencl:cpu" not in kernel.run("import drupe; [one.filter_string for one in drupe.devices()]").result:
        pytest.skip("no OpenCL device on this machine")
    return kernel


TWICE = "kernel void twice(global float *a, int n) { a[get_global_id(0)] *= n; }"


def test_kernels_become_functions(compiler):
    run = compiler.run("%%opencl -d opencl:cpu -n program -o built\n// Größe\n" + TWICE, timeout=120)
    assert run.status == "ok" and "twice(float* a, int n)" in shown(run)["text/plain"]
    compiler.run("import drupe.array as da; x = da.ones(8, dtype='float32', device='opencl:cpu')")
    assert compiler.run("twice(x, 3, global_size=8).wait(); float(x.sum())").result == "24.0"
    assert compiler.run("program.kernel_names, built.program is program").result == "(['twice'], True)"
    never = "kernel void never(global int *a) { a[0] = N; }"
    (kernel,) = json.loads(compiler.run("%%opencl -a --json -DN=4 --check\n" + never, timeout=120).text())["kernels"]
    assert kernel["name"] == "never" and kernel["work_group"] > 0
    assert compiler.run("never").reply["ename"] == "NameError"
    table = shown(compiler.run("%%opencl -a\n" + TWICE, timeout=120))
    assert "registers" in table["text/plain"] and "n/a" in table["text/plain"] and "<table" in table["text/html"]


def test_arrays_on_another_device_are_told_what_to_type(spec_folder):
    """Arrays are made on `host`, and kernels of OpenCL C are for the driver."""
    kernel = support.Kernel(spec_folder)
    try:
        if "opencl:cpu" not in kernel.run("import drupe; [one.filter_string for one in drupe.devices()]").result:
            pytest.skip("no OpenCL device on this machine")
        if kernel.run("drupe.Device().backend.name").result != "'host'":
            pytest.skip("arrays are made on an OpenCL device by default")
        built = shown(kernel.run("%%opencl\n" + TWICE, timeout=120))
        hint = 'Arrays are made on host:cpu:0 by default: pass x.to_device("opencl"), or type'
        assert hint in built["text/plain"].replace("\n", " ") and "%device opencl first." in built["text/html"]
        kernel.run("import drupe.array as da\nx = da.ones(8, dtype='float32')\nm = drupe.memory.MemoryUSMDevice(64)")
        for call, more in (("twice(x, 3, global_size=8)", 'Pass x.to_device("opencl").'),
                           ("twice(m, 3, global_size=8)", "Use memory of opencl."),
                           ("twice(x, 3, global_size=8, queue=drupe.Queue('opencl'))", 'Pass x.to_device("opencl").')):
            reply = kernel.run(call).reply
            assert reply["ename"] == "ExecutionPlacementError" and "context" not in reply["evalue"], reply["evalue"]
            assert ("kernel 'twice' was compiled for opencl:cpu:0, and argument 0 ('a') is on host:cpu:0. %s "
                    "`%%device opencl` in a notebook" % more) in reply["evalue"]
        assert "queue= is one of host:cpu:0" in kernel.run(
            "twice(x.to_device('opencl'), 3, global_size=8, queue=x.queue)").reply["evalue"]
        assert kernel.run("y = x.to_device('opencl')\ntwice(y, 3, global_size=8)\nfloat(y.sum())").result == "24.0"
        kernel.run("%device opencl")
        run = kernel.run("x = da.ones(8, dtype='float32')\ntwice(x, 3, global_size=8)\nfloat(x.sum())")
        assert run.result == "24.0"
        assert "Arrays are made" not in shown(kernel.run("%%opencl\n" + TWICE, timeout=120))["text/plain"]
    finally:
        kernel.close()


def test_a_filter_means_the_device_that_compiles(compiler):
    for selector in ("cpu", "gpu,cpu"):
        run = compiler.run("%%opencl -d " + selector + "\n" + TWICE, timeout=120)
        assert "kernel for opencl:cpu" in shown(run)["text/plain"], run.text("stderr")


@pytest.mark.parametrize("head, line", [("%%opencl", 4), ("\n\n%%opencl -d opencl:cpu -D N=1", 6), ("%%cl_kernel", 4)])
def test_compile_errors_stand_at_the_cells_lines(compiler, head, line):
    run = compiler.run(head + "\n\nkernel void f(global int *a) {\n    a[0] = ö + N1;\n}", timeout=120)
    (error,) = run.of("error")
    assert error["ename"] == "BuildError" and "line %d, column" % line in error["evalue"], error
    text = "\n".join(error["traceback"])
    assert "----> %d" % line in text and "a[0] = " in text and "base.py" not in text
    source = next(one for one in text.splitlines() if "a[0] = " in one).replace("\x1b[32m", "").replace("\x1b[39m", "")
    caret = next(one for one in text.splitlines() if "^" in one).replace("\x1b[31m", "").index("^")
    assert source[caret:].startswith("ö") or source[caret - 1:].startswith("ö"), text


def test_warnings_are_shown(compiler):
    run = compiler.run("%%opencl -o built\n#warning look here\nkernel void f(global int *a) { a[0] = 1; }", timeout=120)
    assert run.status == "ok"
    if compiler.run("built.program.build_log").result != "''":  # some drivers keep warnings to themselves
        assert "line 2" in shown(run)["text/plain"] and "look here" in shown(run)["text/html"]


@pytest.mark.parametrize("log", [
    "error: /tmp/x/tempfile.cl:3:5: use of undeclared identifier 'b'\n",  # PoCL
    "<kernel>:3:5: error: use of undeclared identifier 'b'\n    b = 1;\n    ^\n1 error generated.\n",  # NVIDIA, AMD
    "1:3:5: error: use of undeclared identifier 'b'\n    b = 1;\n    ^\nerror: Compiler frontend failed\n",  # Intel
])
def test_logs_of_compilers(log):
    first, *_ = diagnose.read(log, "\nkernel void f() {\n\tb = 1;\n}")
    assert (first.line, first.column, first.severity) == (3, 5, "error")
    assert first.message == "use of undeclared identifier 'b'" and "----> 3" in first.text()
    assert "b = 1;" in first.html()


def test_a_message_about_an_included_file_is_not_the_cells():
    (one,) = diagnose.read("./inc/a.h:3:5: warning: odd\n", "1\n2\n3\n4")
    assert one.line is None and one.head == "warning: ./inc/a.h:3:5: warning: odd"


def test_registers_in_the_log_of_nvidias_compiler():
    log = ("ptxas info    : Compiling entry function 'twice' for 'sm_90'\n"
           "ptxas info    : Function properties for twice\n"
           "ptxas         .     0 bytes stack frame\nptxas info    : Used 12 registers, 376 bytes cmem[0]\n")
    assert opencl._registers(log * 2) == {"twice": 12} and not diagnose.read(log, "")


def test_pyopencl_options(compiler):
    code = '%%cl_kernel -o "-DK=3 -cl-mad-enable"\nkernel void k3(global int *a) { a[0] = K; }'
    run = compiler.run(code, timeout=120)
    assert run.status == "ok" and "k3(int* a)" in shown(run)["text/plain"]


@pytest.mark.parametrize("code, says", [
    ("%%opencl -d host\nkernel void f() {}", "host:cpu:0 does not compile OpenCL C; -d opencl:"),
    ("%%opencl\n \n\n", "has no code"),
    ("%%opencl -D 'a b'\nkernel void f() {}", "without blanks"),
    ("%%opencl --save /nowhere/at/all\nkernel void f() {}", "cannot write"),
    ("%%opencl -n 1\nkernel void f() {}", "is no name"),
])
def test_refusals_of_opencl(compiler, code, says):
    assert says in refused(compiler.run(code, timeout=120))


def test_a_program_is_saved(compiler, tmp_path):
    path = tmp_path / "grüße.bin"
    assert compiler.run("%%%%opencl -f --save '%s'\n%s" % (path, TWICE), timeout=120).status == "ok"
    assert compiler.run("import drupe.program; drupe.program.load(%r, 'opencl:cpu').kernel_names" % str(path)).result \
        == "['twice']"
    assert completions(compiler, "%%%%opencl --save %s/gr" % tmp_path) == ["%%%%opencl --save %s" % path]


# --- %devtime ---------------------------------------------------------------------------------------------------

HOST = "import drupe, drupe.array as da\nx = da.ones(1000, device='host')"


def test_devtime(kernel):
    kernel.run(HOST)
    run = kernel.run("%devtime -n 20 -r 3 -o t x + 1", timeout=60)
    text = shown(run)["text/plain"]
    assert text.startswith("device ") and "3 runs of 20 loops" in text and "by the device's clock" in text, text
    assert kernel.run("t.exact, len(t.runs), t.submissions, t.runs[0].wall >= t.runs[0].host").result \
        == "(True, 3, 1.0, True)"
    kernel.run("q = drupe.Queue('host', profiling=True); m = drupe.memory.MemoryUSMDevice(1 << 20, queue=q)")
    data = json.loads(kernel.run("%devtime -n 5 -r 2 --json q.fill(m, 0)", timeout=60).text())
    assert data["exact"] and 0 < data["device"] <= data["wall"] and 0 <= data["overlap"] <= 1
    assert all(0 < one["device"] for one in data["runs"])


def test_devtime_tells_the_devices_time_from_the_hosts(kernel):
    """Work that takes two milliseconds is submitted in much less, and is not over earlier."""
    kernel.run("import ctypes; C = ctypes.CDLL(None); nap = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(\n"
               "    ('usleep', C))\nq = drupe.Queue('host', profiling=True); two = ctypes.c_void_p(2000)")
    data = json.loads(kernel.run("%devtime -n 5 -r 3 --json q.host_task(nap, user=two)", timeout=60).text())
    assert data["exact"] and data["device"] >= 2e-3 and data["wall"] >= 2e-3 and data["submissions"] == 1, data


def test_devtime_of_a_cell(kernel):
    kernel.run(HOST + "\nmade = 0")
    setup = "y = x + 1; globals().__setitem__('made', made + 1)"
    run = kernel.run("%%devtime -n 4 -r 2 -w 1 -o t " + setup + "\nz = y + 1\nz = z * 2")
    assert "2 submissions a loop" in shown(run)["text/plain"], run.messages
    assert kernel.run("made").result == "3"  # the setup runs once in every run
    assert kernel.run("z").reply["ename"] == "NameError"
    assert "nothing was submitted" in shown(kernel.run("%devtime -n 3 sum(range(10))"))["text/plain"]
    assert not kernel.run("%devtime -q -o u x + 1").of("display_data") and kernel.run("u.loops > 1").result == "True"
    function = "def inside(local):\n    get_ipython().run_line_magic('devtime', '-n 2 -r 1 local + 1')\ninside(x)"
    assert kernel.run(function).status == "ok"


@pytest.mark.parametrize("code, says", [
    ("%devtime", "needs a statement"),
    ("%devtime await x", "takes no await"),
    ("%devtime x =", "invalid syntax"),
    ("%devtime -n 0 x", "invalid positive number"),
    ("%devtime --loop 3 x", "did you mean --loops"),
    ("%%devtime\n  \n\n", "has no code"),
])
def test_refusals_of_devtime(kernel, code, says):
    assert says in refused(kernel.run(code))


def test_exceptions_in_devtime(kernel):
    (error,) = kernel.run("\n%%devtime\n1\n\n1/0").of("error")
    text = "\n".join(error["traceback"])
    assert error["ename"] == "ZeroDivisionError" and "line 5" in text and "devtime.py" not in text, text


def test_an_interrupt_during_devtime(kernel):
    sent = kernel.send("print('begun', flush=True)\n%devtime __import__('time').sleep(0.01)")
    kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "begun" in m["content"]["text"], what="its beginning")
    kernel.interrupt()
    assert kernel.finish(sent).reply["ename"] == "KeyboardInterrupt"
    assert kernel.run("import gc; gc.isenabled()").result == "True"


STRIKE = """
import drupe, os, signal, sys, threading, time
from drupe import _engine
behind = drupe.queue('host').barrier(wait_for=[_engine._event_open('gate')])
def strike():
    frame = None
    while frame is None:
        time.sleep(0.01)
        frame = sys._current_frames()[threading.main_thread().ident]
        while frame is not None and frame.f_code.co_name != '_answer':
            frame = frame.f_back
    os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=strike)
"""


def test_an_interrupt_in_a_magic_shows_no_frames_of_ours(fresh):
    assert fresh.run("%queue -h").status == "ok"  # loaded: it is to be struck while it waits
    assert fresh.run(STRIKE).status == "ok"
    reply = fresh.run("thread.start()\n%queue finish").reply
    assert reply["ename"] == "KeyboardInterrupt" and "_answer" not in "\n".join(reply["traceback"])
    assert "base.py" not in "\n".join(reply["traceback"]), reply


# --- %queue, %deverrors, %config -----------------------------------------------------------------------------------

GATE = """
import concurrent.futures, drupe
future = concurrent.futures.Future()
gate = drupe.Event.from_future(future)
first, second = drupe.Queue('host'), drupe.Queue('host', profiling=True)
memory = drupe.memory.MemoryUSMDevice(64, queue=first)
one = first.fill(memory, 1, wait_for=[gate])
two = second.barrier(wait_for=[one])
first.number, second.number
"""


def test_queue(kernel):
    first, second = eval(kernel.run(GATE).result)
    found = {one["number"]: one for one in json.loads(kernel.run("%queue --json -d host").text())}
    assert found[first]["depth"] == 1 and found[first]["waits_for"] == [{"queue": None, "status": "queued"}]
    assert found[second]["waits_for"][0]["queue"] == first and found[second]["profiling"]
    text = shown(kernel.run("%queue"))
    assert "the host" in text["text/plain"] and "fill (cell [" in text["text/plain"]
    assert "1 submission given up" in shown(kernel.run("%%queue cancel %d" % second))["text/plain"]
    assert "%%queue cancel %d" % second in completions(kernel, "%queue cancel ")
    kernel.run("future.set_result(1)")
    assert kernel.run("%%queue finish %d -q" % first).status == "ok"
    assert not any(one["depth"] for one in json.loads(kernel.run("%queue --json").text()))
    assert completions(kernel, "%queue fi") == ["%queue finish"]
    assert "invalid choice" in refused(kernel.run("%queue flush")) and "there is no queue 999" in refused(
        kernel.run("%queue cancel 999"))
    kernel.run("del first, second, memory, one, two")


def test_deverrors(fresh):
    assert shown(fresh.run("%deverrors"))["text/plain"] == "no failures"
    fresh.run("import drupe\nq = drupe.Queue('host')\ndef bad():\n    raise ValueError('grüße')")
    failed = fresh.run("q.host_task(bad)\nq.wait()")
    assert failed.status == "error"
    text = shown(fresh.run("%deverrors"))
    assert "cell [3], line 1" in " ".join(text["text/plain"].split()) and "grüße" in text["text/html"]
    (found,) = json.loads(fresh.run("%deverrors --json --last 1").text())
    assert found["cell"] == 3 and found["device"] == "host:cpu:0"
    raised = fresh.run("%deverrors --raise")
    assert raised.of("error")[0]["evalue"].startswith("cell [3], line 1") and "base.py" not in str(raised.of("error"))
    assert fresh.run("%deverrors --clear").status == "ok"
    assert shown(fresh.run("%deverrors -o e"))["text/plain"] == "no failures" and fresh.run("e.failures").result == "[]"
    assert "from 1 on" in refused(fresh.run("%deverrors --last 0"))


def test_settings(fresh):
    assert completions(fresh, "%config Dru") == ["%config Drupe"]
    assert "%config Drupe.profile" in completions(fresh, "%config Drupe.")
    assert "Drupe.footer" in fresh.run("%config Drupe").text()
    fresh.run("import drupe\n%config Drupe.profile = True")
    assert fresh.run("drupe.Queue('host').has_enable_profiling").result == "True"
    fresh.run("%config Drupe.profile = False\nq = drupe.Queue('host')")
    assert fresh.run("q.has_enable_profiling").result == "False"
    assert not fresh.run("%config Drupe.profile = True").text(), "nothing is left as it is"
    assert fresh.run("q.has_enable_profiling, q.host_task(lambda: None).times.ended > 0").result == "(True, True)"
    fresh.run("%config Drupe.profile = False\n%config Drupe.checked = True")
    assert fresh.run("drupe.Queue('host').has_enable_profiling").result == "False"
    assert fresh.run("%config Drupe.checked = False").status == "ok"
    assert "IPCompleter" in fresh.run("%config").text()


def test_settings_of_the_profile(spec_folder, tmp_path):
    profile, spec = tmp_path / "profile_default", tmp_path / "kernels/drupe/kernel.json"
    profile.mkdir()
    (profile / "ipython_kernel_config.py").write_text("c.Drupe.profile = True\n")
    spec.parent.mkdir(parents=True)
    known = json.loads((spec_folder / "drupe/kernel.json").read_text())
    spec.write_text(json.dumps({**known, "env": {"IPYTHONDIR": str(tmp_path)}}))
    kernel = support.Kernel(tmp_path / "kernels")
    try:
        assert kernel.run("import drupe; drupe.Queue('host').has_enable_profiling").result == "True"
    finally:
        kernel.close()


def test_events_of_cells_that_are_not_there(fresh):
    assert "no cell has used a device yet" in refused(fresh.run("%events --cell 99"))
    for _ in range(2):
        fresh.run("import drupe; q = drupe.Queue('host'); q.host_task(print); q.wait()")
    fresh.run("1 + 1")
    fresh.run("q.host_task(print); q.wait()")
    refusal = refused(fresh.run("%events --cell 99"))
    assert "no cell of 99 is remembered" in refusal and "cells that used a device: 2-3, 5" in refusal
    assert "1 host function" in shown(fresh.run("%events --cell 5"))["text/plain"]
    assert fresh.run("%events --cell 1:9").status == "ok"


def test_events_tell_states_and_shares(fresh):
    """A function that runs, one that waits behind it; then both are over, and the table has the share that it took."""
    fresh.run("import ctypes, drupe; C = ctypes.CDLL(None); gate = (ctypes.c_char * 64)(); C.sem_init(gate, 0, 0)\n"
              "wait = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(('sem_wait', C)); q = drupe.Queue('host')\n"
              "from drupe.magics import views")
    fresh.run("a, b = (q.host_task(wait, user=ctypes.addressof(gate)) for _ in range(2))")
    fresh.run("while 'running' not in views.View('events', 2, 2).text(): pass")
    text = shown(fresh.run("%events --cell 2"))["text/plain"]
    assert "1 running" in text and "1 waiting" in text, text
    fresh.run("[C.sem_post(gate) for _ in range(2)]; q.wait()")
    table = shown(fresh.run("%events --cell 2 --table"))["text/plain"]
    assert "busy 0 %" not in table.splitlines()[0] and "running" not in table, table


# --- Elsewhere ------------------------------------------------------------------------------------------------------

def test_in_a_plain_ipython():
    """%load_ext drupe, in a shell that is not ours."""
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "drupe")
shell.run_line_magic("load_ext", "drupe")
run = lambda code: shell.run_cell(code, store_history=True).result
run("import drupe.array as da")
run("%devices host")
assert str(run("%%device host\\nda.ones(2).device.filter_string")) == "host:cpu:0"
assert run("%%device host\\n6 * 7") == 42
run("%devtime -n 2 -r 1 -o t da.ones(2, device='host') + 1")
assert run("t.submissions") >= 1
run("%queue"); run("%deverrors")
print("done")
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout.rstrip().endswith("done") and "host:cpu:0" in result.stdout, result.stdout + result.stderr


# --- Every magic, as text and as HTML ---------------------------------------------------------------------------------

EVERY = ("%devices -v", "%device", "%queue", "%deverrors", "%devtime -n 2 -r 2 drupe.array.ones(3, device='host')",
         *("%%%s -h" % name for name in ("devices", "device", "queue", "deverrors", "devtime")),
         *("%%%%%s -h\n" % name for name in ("opencl", "cl_kernel", "device", "devtime", "native", "offload",
                                            "kernel")))


@pytest.mark.parametrize("code", EVERY)
def test_text_fits_a_terminal_and_html_passes_sanitizers(kernel, code):
    kernel.run("import drupe.array")
    data = shown(kernel.run(code))
    assert max(map(len, data["text/plain"].splitlines())) <= 80, data["text/plain"]
    html = data.get("text/html", "")
    assert not re.search(r"<(svg|style|script)|var\(|hsl\(|gradient|javascript:|\son\w+=", html), html
    assert html.count("<div") == html.count("</div>") and html.count("<td") == html.count("</td>")


@pytest.mark.parametrize("name", [name for name, (kinds, _) in sorted(magics.NAMES.items())])
def test_every_magic_has_help_with_two_examples(kernel, name):
    sign = "%" if "line" in magics.NAMES[name][0].split() else "%%"
    code = sign + name
    reply = kernel.ask("inspect_request", {"code": code, "cursor_pos": len(code), "detail_level": 0})
    text, html = reply["data"]["text/plain"], reply["data"]["text/html"]
    assert re.sub(r"\x1b\[[0-9;]*m", "", text).startswith("Docstring:\n" + code) and "-h, --help" in text
    assert len(re.findall(r"\n    %", text.partition("Examples:")[2])) == 2, text
    assert html.count("<pre") >= 3 and "--help" in html
    assert completions(kernel, code + " --hel") == [code + " --help"]
    assert sign + name in completions(kernel, sign + name)


QUIET = (
    "%%cl_kernel -q\nkernel void silent(global int *a) { a[0] = 1; }", "%dashboard -q", "%dashboard off -q",
    "%deverrors -q", "%deverrors --clear -q", "%device host -q", "%%device host -q\nx = da.ones(8)", "%devices -q -v",
    "%devices -q -l", "%devtime -q -n 1 -r 1 x + 1", "%%devtime -q -n 1 -r 1 y = 1\nx + y", "%events -q",
    "%events -q --table", "%events --live -q", "%%events -q\nx += 1", "%%events --live -q\nx += 1", "%memory -q",
    "%memory --cells -q", "%memory --by place -q", "%memory --leaks -q", "%memory --free-traceback -q",
    "%%kernel -q\n@drupe.kernel\ndef quiet(item, x):\n    x[item.get_id(0)] = 1",
    "%%native -q\nvoid silent(void) { }", "%%offload -q --in x --out y\ny = x + 1\ny", "%memory --timeline -q",
    "%memory --live -q", "%memory --snapshot s -q", "%memory --diff s -q", "%queue -q",
    "%queue finish -q",
)


def test_quiet_magics_show_nothing_at_all(compiler):
    """Neither results nor displays that move, nor, below, what a long build says of itself."""
    compiler.run("import drupe.array as da\nx = da.ones(8, device='host')")
    named = {re.match(r"%+(\w+)", code)[1] for code in QUIET} | {"opencl"}
    assert named == set(magics.NAMES)
    said = {"stream", "display_data", "update_display_data", "execute_result", "error"}
    for code in QUIET:
        run = compiler.run(code)
        assert run.status == "ok" and not said & set(run.types), (code, run.types, run.text("stderr"))
    assert refused(compiler.run("%devices nonsense -q"))
    size, seconds = 500, 0
    while seconds < 1 and size <= 64000:
        lines = "\n".join("x = x * %d.5f + sin(x) * cos(x + %d);" % (i, time.time_ns() % 99991) for i in range(size))
        run = compiler.run("%%%%opencl -q -f -d opencl:cpu -o built\nkernel void f(global float *a) { float x = a[0];\n"
                         "%s\na[0] = x; }" % lines, timeout=120)
        assert run.status == "ok" and not said & set(run.types), run.types
        seconds, size = float(compiler.run("built.seconds").result), 2 * size
    assert seconds >= 1
