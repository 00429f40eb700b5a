"""What gcc makes of kernels on host: a loop over functions of mathematics is to be vector code."""
import os
import platform
import shutil
import subprocess
import sys

import pytest

KERNEL = """
import math
import drupe, drupe.array as da
@drupe.kernel
def waves(item, x, y):
    i = item.get_id(0)
    y[i] = math.{value}
with drupe.device("host"):
    n = 30_000_000  # large enough to wait for the C compiler
    x = da.full(1, 0.5)
    y = da.empty(1)
    shown = waves.inspect(drupe.Range(n), x, y)
    assert "C compiler" in repr(shown)
"""


@pytest.mark.parametrize("value", ["sin(x[i])", "exp(x[i])", "atan2(x[i], 1.5 - x[i]) + math.sin(x[i])"])
def test_functions_of_mathematics(value, tmp_path):
    gcc = shutil.which("gcc")
    if gcc is None or platform.machine() != "x86_64":
        pytest.skip("there is no gcc, or it makes no vectors of these")
    told, compiler, script = (tmp_path/one for one in ("told", "compiler", "waves.py"))
    compiler.write_text("#!/bin/sh\nexec %s -fopt-info-vec=%s \"$@\"\n" % (gcc, told))
    compiler.chmod(0o755)
    script.write_text(KERNEL.format(value=value))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "DRUPE_CC": str(compiler), "DRUPE_CACHE": "0"})
    assert done.returncode == 0, done.stderr
    assert "loop vectorized" in told.read_text()
