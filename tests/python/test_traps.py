"""Known traps of drivers: poor devices, missing parts, interrupts at bad moments."""
import glob
import os
import pathlib

import pytest

POOR = """
    import drupe, drupe.array as da
    device = drupe.Device("opencl:cpu")
    assert "llvmpipe" in device.name, device.name
    queue = drupe.Queue(device)
    queue.barrier().wait()
    needs = [lambda: da.arange(4, dtype="float64", device=device)]
    if device.has_aspect_usm_shared_allocations:
        x = da.arange(4, dtype="float32", device=device)
        assert float((x * 2 + 1).sum()) == 16
    else:
        needs += [lambda: da.zeros(4, device=device), lambda: drupe.memory.MemoryUSMShared(64, queue=queue)]
    for need in needs:
        try:
            need()
        except drupe.UnsupportedError as problem:
            assert "opencl:cpu:0" in str(problem), problem
        else:
            raise AssertionError("a poor device did it")
    program = drupe.Program("kernel void f(int a, local int *b) { b[get_local_id(0)] = a; }", device=device)
    program["f"](3, drupe.LocalMemory(64), global_size=4).wait()
    try:
        drupe.Program("kernel void f(global double *a) { a[0] = 1.5; }", device=device)
    except drupe.BuildError as problem:
        assert "double" in str(problem)
    print(da.arange(5, device="host").sum())
"""


def test_a_poor_device(fresh):
    """Mesa's llvmpipe has no float64; an old one no shared virtual memory. DRUPE_TEST_RUSTICL: another .icd file."""
    found = os.environ.get("DRUPE_TEST_RUSTICL") or glob.glob("/etc/OpenCL/vendors/rusticl.icd")
    if not found:
        pytest.skip("needs rusticl (Debian: apt-get install mesa-opencl-icd)")
    icd = found if isinstance(found, str) else found[0]
    done = fresh(POOR, RUSTICL_ENABLE="llvmpipe", OCL_ICD_VENDORS=icd)
    assert done.returncode == 0 and done.stdout == "10\n", done.stderr


@pytest.mark.parametrize("environment, text", [
    ({"DRUPE_OPENCL_LIBRARY": "/no/such/library.so"}, "library.so"),
    ({"OCL_ICD_VENDORS": "/no/such/folder"}, "install"),
])
def test_no_driver(fresh, environment, text):
    done = fresh("""
        import drupe
        try:
            drupe.Device("opencl")
        except drupe.DeviceNotFoundError as problem:
            print(problem)
        assert drupe.devices("opencl") == [] and drupe.Device().filter_string == "host:cpu:0"
        print(drupe.array.arange(5).sum())
    """, **environment)
    assert done.returncode == 0 and done.stdout.endswith("10\n"), done.stderr
    assert "No device matches 'opencl'" in done.stdout and text in done.stdout, done.stdout


INTERRUPTS = pathlib.Path(__file__).parents[1] / "soak" / "device.py"


def test_hundreds_of_interrupts(device, fresh):
    """In waits, builds and copies. ./dev soak device does ten thousand."""
    text = f"import sys; sys.path.insert(0, {str(INTERRUPTS.parent)!r}); import device\n"
    done = fresh(text + f"print(device.interrupt({device.filter_string!r}, 300, 7))")
    assert done.returncode == 0 and done.stdout == "[]\n", done.stdout + done.stderr[-3000:]


def test_a_fault_with_more_than_one_driver(opencl, fresh, tmp_path):
    """Loaders sort drivers by their devices, which starts PoCL's workers while platforms are only counted."""
    found = glob.glob("/etc/OpenCL/vendors/*pocl*.icd")
    if not found:
        pytest.skip("needs PoCL (Debian: apt-get install pocl-opencl-icd)")
    for name in ("one.icd", "two.icd"):
        (tmp_path / name).write_text(pathlib.Path(found[0]).read_text())
    done = fresh("""
        import drupe
        import drupe.array as da
        drupe.contain_faults()
        program = drupe.Program("kernel void wild(global int *out, ulong at) { *(global volatile int *)at = out[0]; }",
                                device="opencl:cpu")
        out = da.zeros(16, dtype="int32", device=program.device)
        try:
            program.wild(out, 0x1234000, global_size=1).wait()
        except drupe.DeviceLostError as error:
            print("'wild' on opencl:cpu:0 failed" in str(error), "SIGSEGV at address 0x1234000" in str(error))
        """, OCL_ICD_VENDORS=str(tmp_path))
    assert done.stdout == "True True\n", done
