"""A device kernel that faults costs its device, or a worker of `host`, and neither Python nor its variables."""
import json
import platform

import pytest
from test_crash import exit_code
from test_ends import Left

WILD = '''
import drupe, numpy as np
import drupe.array as da
program = drupe.Program("""
    kernel void fine(global int *out) { out[get_global_id(0)] = (int)get_global_id(0); }
    // From 0x200000 on a megabyte is below all programs; where a heap may begin, one in some hundred does.
    kernel void wild(global int *out, ulong where)
    {
        *(global volatile int *)(where + 4 * get_global_id(0)) = out[0];
    }
    kernel void divide(global int *out, int by) { out[get_global_id(0)] = 7 / by; }
""", device="opencl:cpu")
out = da.zeros(16, dtype="int32", device=program.device)
program["fine"](out, global_size=16).wait()
variable = list(range(5))
'''


HOST = """
import ctypes, drupe, struct
import drupe.array as da
kernel = drupe.Program(None, language="builtin", device="host")["sequence_f64"]
bad = None, struct.pack("qqddddii", 1 << 20, 1, 0.0, 0, 1.0, 0, 11, 0)  # no array
variable = 7
"""


@pytest.fixture
def opencl(fresh):
    if fresh.run("import drupe; assert drupe.devices('opencl:cpu')", timeout=60).status != "ok":
        pytest.skip("no OpenCL device for CPUs on this machine")
    assert fresh.run(WILD, timeout=120).status == "ok"
    return fresh


@pytest.mark.parametrize("items", [1, 262144])  # one worker faults, or all of them
@pytest.mark.parametrize("wait", [True, False])
def test_a_wild_address_on_an_opencl_cpu(opencl, items, wait):
    code = f"event = program['wild'](out, 0x200000, global_size={items})\n"
    code += "event.wait()" if wait else "import time\nwhile not event.done: time.sleep(0.01)"
    run = opencl.run(code, timeout=60)
    assert run.status == "error" and run.reply["ename"] == "DeviceLostError"
    message = run.reply["evalue"]
    assert "wild" in message and "opencl:cpu:0" in message and "SIGSEGV at address 0x2" in message
    assert "restart" in message and "'host'" in message
    after = opencl.run("out.accept_contents()\n"
                       "print(variable, int(da.arange(5, device='host').sum()), np.asarray(da.asnumpy(out))[:3])")
    assert after.status == "ok" and after.text() == "[0, 1, 2, 3, 4] 10 [0 1 2]\n"
    later = opencl.run("program['fine'](out, global_size=16)")
    assert later.reply["ename"] == "DeviceLostError" and "is lost" in later.reply["evalue"]
    assert opencl.run("da.zeros(3, device='opencl:cpu')").reply["ename"] == "DeviceLostError"
    assert opencl.run("drupe.Device('host').queue.wait(); 1 + 1").result == "2"
    opencl.manager.shutdown_kernel()  # in time, or the client kills it and the fixture complains


@pytest.mark.parametrize("wait", [True, False])
def test_the_kernel_that_faulted_is_blamed(opencl, wait):
    """Not what was submitted before it and is not known to be over."""
    code = ("for _ in range(3):\n    program['fine'](out, global_size=16)\n"
            "program['wild'](out, 0x200000, global_size=1)")
    code += ".wait()" if wait else "\nprogram['fine'](out, global_size=16)\nout.queue.wait()"
    run = opencl.run(code, timeout=60)
    assert run.status == "error" and run.reply["ename"] == "DeviceLostError"
    first = run.reply["evalue"].splitlines()[0]
    assert "'wild' on opencl:cpu:0 failed" in first and "line 3" in first and "'fine'" not in first, first
    opencl.manager.shutdown_kernel()


def test_a_lost_device_is_listed_and_shown(opencl):
    assert opencl.run("program['wild'](out, 0x200000, global_size=1).wait()", timeout=60).status == "error"
    for code in ("%devices", "%devices -v", "program.device"):
        run = opencl.run(code, timeout=60)
        assert run.status == "ok", run.reply
        (shown,) = run.of("execute_result" if code == "program.device" else "display_data")
        for text in (shown["data"]["text/plain"], shown["data"]["text/html"]):
            assert "opencl:cpu:0" in text and "lost until a restart" in text
    devices = json.loads(opencl.run("%devices --json", timeout=60).text())
    assert [one["filter"] for one in devices if one["lost"]] == ["opencl:cpu:0"]
    opencl.manager.shutdown_kernel()


# What a work-group needs on a thread's stack is told apart by the sum, so that no compiler leaves it out.
DEEP = '''
deep = drupe.Program("""
    kernel void private_array(global int *out, int n)
    {
        int room[40000000];
        for (int i = 0; i < 40000000; i++) room[i] = out[(i + n) % 16];
        for (int i = 0; i < n; i++) room[0] += room[i * 7919 % 40000000];
        out[get_global_id(0)] = room[0];
    }
    kernel void larger_array(global int *out, int n)
    {
        int room[80000000]; // it begins within the guard below the stack, and writes to nobody's memory
        for (int i = 0; i < 80000000; i++) room[i] = out[(i + n) % 16];
        for (int i = 0; i < n; i++) room[0] += room[i * 7919 % 80000000];
        out[get_global_id(0)] = room[0];
    }
    kernel void group(global int *out, int n)
    {
        int room[2048], item = get_local_id(0);
        for (int i = 0; i < 2048; i++) room[i] = item + i;
        barrier(CLK_GLOBAL_MEM_FENCE);
        int sum = 0;
        for (int i = 0; i < n; i++) sum += room[(i + item) % 2048];
        if (item == 5) out[0] = sum;
    }
""", device="opencl:cpu")
recursion = drupe.Program("""
    int deeper(int n, global int *out);
    int deeper(int n, global int *out)
    {
        volatile int room[64];
        room[n & 63] = n;
        return n < 0 ? 0 : deeper(n + 1, out) + room[(n + 1) & 63];
    }
    kernel void endless(global int *out) { out[0] = deeper(1, out); }
""", device="opencl:cpu")
'''


def test_a_work_group_of_eight_mebibytes_has_its_stack(opencl):
    assert opencl.run(DEEP.split("recursion")[0], timeout=60).status == "ok"
    run = opencl.run("deep.group(out, 10, global_size=1024, local_size=1024).wait(); int(da.asnumpy(out)[0])",
                     timeout=60)
    assert run.status == "ok" and run.result == str(sum((i + 5) % 2048 + 5 for i in range(10)))


@pytest.mark.parametrize("launch", ["deep.private_array(out, 1, global_size=1)",
                                    "deep.larger_array(out, 1, global_size=1)",
                                    "recursion.endless(out, global_size=1)"])
def test_a_full_stack_of_a_driver_costs_the_device(opencl, launch):
    if opencl.run(DEEP, timeout=60).status != "ok":
        pytest.skip("the driver builds no such program")
    run = opencl.run(launch + ".wait()", timeout=120)
    if run.status == "ok":
        pytest.skip("the driver has room for it")
    assert run.reply["ename"] == "DeviceLostError" and "SIGSEGV" in run.reply["evalue"], run.reply["evalue"]
    after = opencl.run("out.accept_contents()\n"
                       "print(variable, int(da.arange(5, device='host').sum()), np.asarray(da.asnumpy(out))[:3])")
    assert after.status == "ok" and after.text() == "[0, 1, 2, 3, 4] 10 [0 1 2]\n"
    opencl.manager.shutdown_kernel()  # in time, though a thread that writes the cache may be in the driver


def test_division_by_zero_stays_the_drivers_business(opencl):
    """PoCL hides a division by zero in its kernels."""
    assert opencl.run("program['divide'](out, 0, global_size=16).wait(); 1 + 1", timeout=60).result == "2"


@pytest.mark.parametrize("wait", [True, False])
def test_a_kernel_of_the_host_device(fresh, wait):
    assert fresh.run(HOST, timeout=60).status == "ok"
    for _ in range(3):
        run = fresh.run("event = kernel(*bad, global_size=64)\n" +
                        ("event.wait()" if wait else "import time\nwhile not event.done: time.sleep(0.01)"))
        assert run.status == "error" and run.reply["ename"] == "DeviceLostError"
        assert "SIGSEGV at address 0x" in run.reply["evalue"] and "works on" in run.reply["evalue"]
        assert fresh.run("print(variable, int(da.arange(1000, device='host').sum()))").text() == "7 499500\n"


@pytest.mark.parametrize("name", ["host", "opencl:cpu"])
def test_a_host_task_in_c(fresh, faults, name):
    """On `host` a worker of the device runs it, elsewhere one of the engine."""
    if fresh.run(f"import drupe; assert drupe.devices({name!r})", timeout=60).status != "ok":
        pytest.skip(f"no device {name} on this machine")
    assert fresh.run(faults + f"import drupe\nqueue = drupe.Queue({name!r})\nvariable = 7").status == "ok"
    for function, text in (("fault_null", "SIGSEGV at address 0x10"), ("fault_illegal", "SIGILL")):
        run = fresh.run(f"queue.host_task(C.{function}).wait()", timeout=60)
        assert run.status == "error" and run.reply["ename"] == "DeviceLostError"
        assert text in run.reply["evalue"] and f"'{function}'" in run.reply["evalue"]
        assert fresh.run("event = queue.barrier(); event.wait(); print(variable, event.done)").text() == "7 True\n"


CHECKED = """
with drupe.checked() as mode:
    small = da.zeros(100, device="host")
    {work}
"""


@pytest.mark.parametrize("what, work", [
    ("wrote 0 bytes behind the end",
     "kernel(small, struct.pack('qqddddii', 101, 1, 0, 0, 1, 0, 11, 0), global_size=1)"),
    ("read 0 bytes behind the end", "negative(larger, small, head, global_size=1)"),
    ("wrote 4000 bytes before the start",
     "kernel(small, struct.pack('qqddddii', 2, -500, 0, 0, 1, 0, 11, 0), global_size=1)"),
])
def test_the_ends_of_checked_memory_fault(fresh, what, work):
    """The memory and its line are named, the kernel and its line too; `host` works on."""
    assert fresh.run(HOST, timeout=60).status == "ok"
    assert fresh.run("larger = da.zeros(200, device='host')\n"
                     "negative = drupe.Program(None, language='builtin', device='host')['negative_f64']\n"
                     "head = struct.pack('q48x6i', 101, 11, 11, 0, 0, 0, 0)").status == "ok"
    run = fresh.run(CHECKED.format(work=work + ".wait()"), timeout=60)
    assert run.status == "error" and run.reply["ename"] == "CheckError"
    text = run.reply["evalue"]
    if "x86_64" not in platform.machine():
        what = what.split(" ", 1)[1]
    assert what in text and "the 800 bytes of device memory that cell [" in text
    assert "], line 2 allocated" in text and "], line 3" in text and "works on" in text
    assert fresh.run("print(variable, int(da.sum(da.ones(9, device='host'))))").text() == "7 9\n"


def test_exit_is_told_while_threads_stand(opencl):
    """The process then ends ahead of the driver's handlers, and so ahead of the kernel's."""
    assert opencl.run("program['wild'](out, 0x200000, global_size=262144).wait()", timeout=60).status == "error"
    left = Left(opencl, "import ctypes\nctypes.CDLL(None).puts(b'just before')\nctypes.CDLL(None).exit(3)")
    assert exit_code(opencl) == 3 and left.text("stdout") == "just before\n"
    assert left.report == "exit(3) was called in the main thread"
