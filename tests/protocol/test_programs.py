"""A failed build leaves nothing on stderr."""
import time

import pytest


def test_a_failed_build_leaves_nothing_on_stderr(fresh):
    if fresh.run("import drupe; drupe.Device('opencl:cpu')", timeout=60).status != "ok":
        pytest.skip("no OpenCL device for CPUs on this machine")
    run = fresh.run('drupe.Program("kernel void f() { nonsense; }", "opencl:cpu")', timeout=60)
    assert run.status == "error" and run.reply["ename"] == "BuildError"
    assert "nonsense" in run.reply["evalue"]
    time.sleep(0.5)
    assert not [m for m in fresh.log if m["msg_type"] == "stream"]
