"""Every failure of a backend reaches Python as an error of drupe's; see walk.py."""
import os
import pathlib
import subprocess
import sys

import faulty


def test_walk(device, tmp_path):
    environment = {**os.environ, **faulty.environment(), "DRUPE_CACHE": "1", "DRUPE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, str(pathlib.Path(__file__).with_name("walk.py")), device.filter_string],
                          capture_output=True, text=True, timeout=600, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "undisturbed" not in done.stdout and done.stdout.count(" runs") == 6
