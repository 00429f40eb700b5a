"""Whoever reads an array after work on its queue has faulted hears of it, however the array is read."""
import shutil

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")

READERS = """
import numpy as np
READERS = {
    "print": str, "float": lambda y: float(y[0]), "int": lambda y: int(y[1]), "bool": lambda y: bool(y[0]),
    "item": lambda y: y[2].item(), "tolist": lambda y: y.tolist(), "sum": lambda y: float(y.sum()),
    "max": lambda y: float(y.max()), "add": lambda y: (y + 1).tolist(), "equal": lambda y: (y == 1).tolist(),
    "asarray": np.asarray, "array": np.array, "iteration": lambda y: [float(one) for one in y],
    "view": lambda y: bytes(memoryview(y)), "copy": lambda y: y.queue.copy(np.zeros(4), y).wait(),
}
"""


@pytest.mark.parametrize("event", [True, False])
def test_on_host(fresh, event):
    done = fresh(READERS + """
import drupe, drupe.array as da
drupe.contain_faults()
text = '''
kernel void bad(double *y, long n) { for (long i = 0; i < n; i++) y[i << 40] = 7; }
kernel void tell(int *flag) { *flag = 1; }
'''
program, other = drupe.Program(text, device="host", language="c"), drupe.Queue("host")
flag = da.zeros(1, dtype="int32", queue=other)
told = np.asarray(flag)
for name, read in READERS.items():
    y = da.ones(4, dtype="float64", device="host")
    program.bad(y, 4, global_size=1, event=%r)
    told[0] = 0
    program.tell(flag, global_size=1, queue=other)
    while not told[0]:  # the only worker has left the other kernel behind
        pass
    try:
        print(name, "reads", read(y))
    except (drupe.DependencyError, drupe.DeviceLostError) as error:
        assert "bad" in str(error)
        try:
            y.queue.wait()
        except (drupe.DependencyError, drupe.DeviceLostError):
            pass
    z = da.ones(4, dtype="float64", device="host")
    assert read(z) is not None or name == "copy"
""" % event, DRUPE_HOST_THREADS="1")
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize("first", ["print", "float", "sum", "asarray"])
def test_on_a_driver_for_cpus(fresh, opencl, first):
    if opencl.device_type.name != "cpu":
        pytest.skip("this driver is none for CPUs")
    done = fresh(READERS + """
import drupe, drupe.array as da
drupe.contain_faults()
text = "kernel void bad(global double *y, long n) { for (long i = 0; i < n; i++) y[i << 40] = 7; }"
device = "opencl:cpu"
y = da.ones(4, dtype="float64", device=device)
began = np.asarray(y)
drupe.Program(text, device=device).bad(y, 4, global_size=1)
while began[0] != 7:
    pass
for name in [%r, *READERS]:
    try:
        print(name, "reads", READERS[name](y))
    except (drupe.DependencyError, drupe.DeviceLostError) as error:
        assert "bad" in str(error)
y.accept_contents()
print(y.tolist()[1:])
""" % first)
    assert done.stdout == "[1.0, 1.0, 1.0]\n", done.stdout + done.stderr
