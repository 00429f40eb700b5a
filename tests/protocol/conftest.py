"""Kernels for the tests: installed drupe, its own kernelspec folder, its own IPython profile."""
import signal
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest

os.environ.setdefault("DRUPE_CACHE", "0")  # what is tested is built; tests of the cache switch it on
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import support

# A kernel that was started with them ignored, as by nohup or in the background of a script, goes on ignoring them.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(scope="session")
def spec_folder(tmp_path_factory):
    """A folder with the kernelspecs `drupe` and `drupe-kernel`, for the interpreter that runs the tests."""
    root = tmp_path_factory.mktemp("kernels")
    spec = {
        "argv": [sys.executable, "-m", "drupe", "-f", "{connection_file}"],
        "display_name": "Python 3 (Drupe)",
        "language": "python",
        "interrupt_mode": "message",
        "metadata": {"supported_encryption": ["curve"]},
        "env": {"IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))},
    }
    program = [str(pathlib.Path(sysconfig.get_path("scripts")) / "drupe-kernel"), "--python", sys.executable]
    for name, start in (("drupe", spec["argv"][:3]), ("drupe-kernel", program)):
        (root / name).mkdir()
        (root / name / "kernel.json").write_text(json.dumps({**spec, "argv": [*start, "-f", "{connection_file}"]}))
    return root


@pytest.fixture(scope="session")
def data_folder(spec_folder):
    """For JUPYTER_PATH, so that clients which start kernels by name find this `drupe`."""
    folder = spec_folder.parent / (spec_folder.name + "-data")
    folder.mkdir()
    (folder / "kernels").symlink_to(spec_folder)
    return folder


@pytest.fixture
def fresh(spec_folder):
    """A kernel of the test's own."""
    kernel = support.Kernel(spec_folder)
    yield kernel
    kernel.close()


@pytest.fixture(scope="module")
def shared(spec_folder):
    kernel = support.Kernel(spec_folder)
    yield kernel
    kernel.close()


@pytest.fixture
def kernel(shared):
    """The module's kernel, which a test must leave alive."""
    shared.poll(0)
    shared.log.clear()
    yield shared
    assert shared.manager.is_alive(), "the kernel died in this test"


@pytest.fixture
def gate(tmp_path):
    """For cells that are to wait."""
    return support.Gate(tmp_path / "gate")


@pytest.fixture
def raw(kernel):
    client = support.Raw(kernel.manager)
    yield client
    client.close()


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    """The start of a cell that has tests/protocol/faults.c as the library `C`."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = os.path.join(os.path.dirname(__file__), "faults.c")
    subprocess.run([*compiler.split(), "-shared", "-fPIC", "-O1", "-w", "-o", str(library), source, "-lpthread"],
                   check=True)
    return "import ctypes, os, signal, sys, threading, time\nC = ctypes.CDLL(%r)\n" % str(library)
