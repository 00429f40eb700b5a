"""Device work in cells: Ctrl-C in a wait, also after a driver's compiler took the signal; late failures."""
import time

import pytest

SETUP = '''
import drupe
import drupe.array as da
program = drupe.Program("""
    kernel void spin%d(global float *out, const int rounds)
    {
        float x = 1;
        for (int i = 0; i < rounds; i++) x = x * 1.000001f + 0.5f;
        out[0] = x;
    }
""", device="opencl:cpu")
out = da.zeros(1, dtype="float32", device=program.device)
spin = program["spin%d"]
spin(out, 1000, global_size=1).wait()
'''
LONG = "event = spin(out, 1_500_000_000, global_size=1)\nprint('waiting', flush=True)\n"


@pytest.fixture
def opencl(kernel):
    if kernel.run("import drupe; assert drupe.devices('opencl:cpu')", timeout=60).status != "ok":
        pytest.skip("no OpenCL device for CPUs on this machine")
    return kernel


def interrupted_wait(kernel, code):
    msg_id = kernel.send(code)
    kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "waiting" in m["content"]["text"]
                      and m["parent_header"].get("msg_id") == msg_id, 60)
    time.sleep(0.2)
    kernel.interrupt()
    run = kernel.finish(msg_id, 20)
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert kernel.run("event.wait(); 1+1", timeout=60).result == "2"  # the work itself was not harmed


@pytest.mark.parametrize("wait", ["event.wait()", "event.queue.wait()", "float(out.sum())"])
def test_a_device_wait_is_broken(opencl, wait):
    assert opencl.run(SETUP % (1, 1), timeout=60).status == "ok"
    interrupted_wait(opencl, LONG + wait)


def test_a_device_wait_is_broken_after_the_compiler_took_the_signal(opencl):
    """The program is compiled in the cell that is interrupted: its text is new, so no cache answers."""
    unique = time.time_ns() % 1_000_000_007
    interrupted_wait(opencl, SETUP % (unique, unique) + LONG + "event.wait()")


def test_a_late_failure_fails_its_cell(kernel):
    run = kernel.run("import drupe, time\nfrom drupe import _engine\n"
                     "event = _engine._task(drupe.Queue('host'), 0.01, 'the bearing broke')\ntime.sleep(0.3)")
    assert run.status == "error" and "the bearing broke" in run.reply["evalue"]
    assert "the bearing broke" in run.of("error")[0]["evalue"]
    assert kernel.run("1+1").result == "2"


def test_a_failure_after_its_cell_is_shown_there_and_raised_in_the_next(kernel):
    first = kernel.run("import drupe, threading\nfrom drupe import _engine\n"
                       "event = _engine._task(drupe.Queue('host'), 0.3, 'too late')")
    assert first.status == "ok"
    second = kernel.run("import time; time.sleep(0.6)")
    assert second.status == "error" and "too late" in second.reply["evalue"]
    shown = kernel.wait_iopub(lambda m: m["msg_type"] == "error" and m["parent_header"].get("msg_id") == first.id)
    assert "too late" in shown["content"]["evalue"]
