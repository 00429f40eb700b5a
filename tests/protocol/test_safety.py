"""A kernel on a machine of many people: what it shows of others, and what it leaves behind."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
import support

SHIM = pathlib.Path(__file__).parents[2] / "build/tests/tests/unit/opencl/libopencl_shim.so"


@pytest.mark.skipif(not SHIM.exists(), reason="the C tests are not built, which have a driver that poses as a GPU's")
@pytest.mark.parametrize("hub", [True, False])
def test_a_gpu_is_scrubbed_when_the_kernel_ends(spec_folder, tmp_path, hub):
    """Local memory, and what a variable holds to the end."""
    log = tmp_path / "log"
    kernel = support.Kernel(spec_folder, {"DRUPE_LOG": str(log), "DRUPE_OPENCL_LIBRARY": str(SHIM),
                                          "OPENCL_SHIM_WORDS": "gpu", "JUPYTERHUB_API_TOKEN": "a-token" if hub else ""})
    run = kernel.run("import drupe.memory as dm\nheld = dm.MemoryUSMDevice(5 << 20, device='opencl:gpu')", timeout=60)
    assert run.status == "ok", run.reply
    kernel.manager.shutdown_kernel()
    kernel.close()
    assert ("local memory of opencl:gpu:0 overwritten" in log.read_text()) == hub
    assert "was not overwritten" not in log.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start another user's process")
def test_nothing_of_others_is_shown(spec_folder):
    """Neither in reports of devices and memory, nor by the doctor, nor in figures of usage."""
    other = subprocess.Popen([sys.executable, "-c", "import time; x = b'x' * (300 << 20); print(1, flush=True); "
                              "time.sleep(1000)", "work-of-alice"], user=1954321, group=1954321, extra_groups=[],
                             stdout=subprocess.PIPE)
    kernel = support.Kernel(spec_folder, {"JUPYTERHUB_API_TOKEN": "a-token"})
    try:
        other.stdout.read(1)
        texts = []
        for cell in ("%devices -v -a", "import drupe.doctor; drupe.doctor.main([])",
                     "import drupe.array as da\nheld = da.ones(1000)\n%memory", "%dashboard"):
            texts.append(json.dumps(kernel.run(cell, timeout=120).messages, default=str))
        assert "host" in texts[0]
        raw = support.Raw(kernel.manager)
        raw.send("control", "usage_request")
        usage = raw.receive("control")["content"]
        raw.close()
        texts.append(json.dumps(usage))
        for text in texts:
            assert "work-of-alice" not in text and "1954321" not in text
        assert usage["kernel_memory"] < 300 << 20  # it has the kernel's own and its children's
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
        kernel.close()
