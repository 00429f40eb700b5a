"""Faults of device work cost the work, however many there are."""
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "soak"))
import faults  # noqa: E402


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler")
@pytest.mark.parametrize("threads", [1, 2, 16, 100])
def test_as_often_as_you_like(threads):
    """As a soak it is 10,000 launches: ./dev soak faults."""
    assert faults.problems_of(300, threads) == []


@pytest.mark.parametrize("elements", [16, 1000, 30000, 1000000])
@pytest.mark.parametrize("device", ["host", "opencl:cpu"])
def test_a_million_work_items_past_the_end(fresh, device, elements):
    """They meet memory of the device and pages that fault, not what the C library keeps beside its blocks."""
    if device == "host" and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler")
    result = fresh(f"""
        import sys
        import drupe, drupe.array as da
        device, elements = {device!r}, {elements}
        if not drupe.devices(device):
            print("skip")
            sys.exit()
        drupe.contain_faults()
        text = "kernel void past(%sfloat *x) {{ x[get_global_id(0)] = 1; }}"
        if device == "host":
            program = drupe.Program(text % "", device, language="c")
        else:
            program = drupe.Program(text % "global ", device)
        arrays = [da.ones(elements, dtype="float32", device=device) for _ in range(8)]
        program.past(arrays[0], global_size=elements).wait()
        kept = []
        try:
            program.past(arrays[3], global_size=elements + 1000000).wait()
        except drupe.DeviceLostError as error:
            print("SIGSEGV" in str(error))
        for i in range(1000):
            kept.append(bytearray(100 * i))
        del kept, arrays
        print(float(da.sum(da.ones(10, device="host"))))
    """)
    if result.stdout == "skip\n":
        pytest.skip(f"there is no {device}")
    assert result.returncode == 0 and result.stdout == "True\n10.0\n", result.stdout + result.stderr
