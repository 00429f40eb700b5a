"""The library of native_functions.c, for tests of native functions."""
import pathlib
import shutil
import subprocess

CC = shutil.which("cc") or shutil.which("gcc")


def build(path, version=1):
    source = pathlib.Path(__file__).parent / "native_functions.c"
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-DVERSION=%d" % version, str(source), "-o", str(path),
                    "-lm"], check=True)
    return path
