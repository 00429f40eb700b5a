"""What a kernel leaves behind on a machine of many people."""
import pathlib

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
