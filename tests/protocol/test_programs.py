"""Programs in a notebook: opened from the cache in advance; a failed build leaves nothing on stderr."""
import time

import pytest

import support

USE = """
import drupe, drupe.program
import drupe.array as da
x = da.ones(10, dtype="float32", device="opencl:cpu")
def hits():
    return drupe.program.cache_info()["hits"]
"""


@pytest.fixture
def notebook(spec_folder, tmp_path):
    """A kernel of a notebook, with a cache of the test's own."""
    kernels = []

    def start(name, **environment):
        settings = {"DRUPE_CACHE": "1", "DRUPE_CACHE_DIR": str(tmp_path), "JPY_SESSION_NAME": name, **environment}
        kernels.append(support.Kernel(spec_folder, settings))
        run = kernels[-1].run(USE, timeout=60)
        if run.status != "ok":
            pytest.skip("no OpenCL device for CPUs on this machine")
        return kernels[-1]

    yield start
    for kernel in kernels:
        kernel.close()


def hits_in(kernel, seconds, wanted):
    limit = time.monotonic() + seconds
    while (hits := int(kernel.run("hits()", timeout=60).result)) < wanted and time.monotonic() < limit:
        time.sleep(0.3)
    return hits


def test_programs_of_the_last_time_are_opened_while_the_kernel_idles(notebook, tmp_path):
    first = notebook("a.ipynb")
    assert first.run("(x + x).sum(); x == x; drupe._engine._cache_flush(120)", timeout=180).status == "ok"
    limit = time.monotonic() + 60
    while not list(tmp_path.glob("programs/*.note")) and time.monotonic() < limit:
        time.sleep(0.1)
    first.close()
    again = notebook("a.ipynb")
    assert again.run("x == x", timeout=60).status == "ok"
    assert hits_in(again, 60, 3) >= 3
    off = notebook("a.ipynb", DRUPE_WARM="0")
    assert off.run("x == x", timeout=60).status == "ok"
    other = notebook("b.ipynb")
    assert other.run("x == x", timeout=60).status == "ok"
    time.sleep(1)
    assert hits_in(off, 0, 9) == hits_in(other, 0, 9) == 1


def test_a_failed_build_leaves_nothing_on_stderr(notebook):
    kernel = notebook("c.ipynb")
    run = kernel.run('drupe.Program("kernel void f() { nonsense; }", "opencl:cpu")', timeout=60)
    assert run.status == "error" and run.reply["ename"] == "BuildError"
    assert "nonsense" in run.reply["evalue"]
    time.sleep(0.5)
    assert not [m for m in kernel.log if m["msg_type"] == "stream"]
