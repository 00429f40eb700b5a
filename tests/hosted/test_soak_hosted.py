"""The soak of a machine that many share, for some seconds and with the same choices each time: ./dev soak hosted."""
import os
import pathlib
import subprocess
import sys

from brokers import program

SOAK = pathlib.Path(__file__).parents[1] / "soak" / "hosted.py"


def test_a_short_soak():
    done = subprocess.run([sys.executable, str(SOAK), "--sessions", "8", "--seed", "18", "--hubs", "2", "--pause", "3"],
                          capture_output=True, text=True, env={**os.environ, "DRUPE_TEST_BROKER": program()})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all well" in done.stdout
