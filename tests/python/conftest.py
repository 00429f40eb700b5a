"""Every test that takes `device` runs on each device of this machine that arrays work on."""
import gc
import importlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap

import element_types
import pytest
from native_build import build

os.environ.setdefault("DRUPE_CACHE", "0")  # what is tested is built; tests of the cache switch it on
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # SciPy reads it when it is imported, whoever imports it first
os.environ.setdefault("DRUPE_FUSE_IDLE", "0")  # what waits to be computed does so however slow the machine is

import drupe  # noqa: E402

# Jobs in the background of a shell start with SIGINT ignored, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

if os.environ.get("DRUPE_TEST_STRESS"):  # collections wherever the engine may run Python code; beside a sanitizer
    _points = itertools.count()
    importlib.import_module("drupe._engine")._stress(lambda: gc.collect(0) if next(_points) % 10 == 0 else None)

FILTERS = ("host", "opencl:cpu", "opencl:gpu")


def _present():
    found = []
    for text in FILTERS:
        try:
            found.append(drupe.Device(text).filter_string)
        except drupe.DeviceNotFoundError:
            pass
    return found


PRESENT = _present()
OPENCL = [name for name in PRESENT if name.startswith("opencl")]


@pytest.fixture(params=PRESENT)
def device(request):
    return drupe.Device(request.param)


@pytest.fixture(scope="session")
def opencl():
    if not OPENCL:
        pytest.skip("no OpenCL device on this machine")
    return drupe.Device(OPENCL[0])


@pytest.fixture
def queue(device):
    return drupe.Queue(device)


@pytest.fixture
def fresh():
    """Run Python text in a process of its own; its output and exit code."""
    def run(text, timeout=120, **environment):
        result = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True,
                                timeout=timeout, env={**os.environ, **environment}, check=False)
        return result

    return run

@pytest.fixture
def chosen(request):
    """Work goes to the device of the test, where it has one."""
    if "device" not in request.fixturenames:
        yield
        return
    with drupe.device(request.getfixturevalue("device").filter_string):
        yield


@pytest.fixture(scope="session")
def native_functions(tmp_path_factory):
    """The path of a library of native_functions.c."""
    return build(tmp_path_factory.mktemp("native") / "libfunctions.so")


@pytest.fixture
def arrays_are_dropped():
    """A test leaves no Array; the list has what it may leave."""
    engine = importlib.import_module("drupe._engine")
    before, kept = engine._live()["Array"], []
    yield kept
    if engine._live()["Array"] > before:
        gc.collect()
    assert engine._live()["Array"] - len(kept) <= before  # fewer: a failed test had kept some


def pytest_configure(config):
    config.addinivalue_line("markers", "every_type: takes a type of elements; see element_types.py")


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if not element_types.keeps(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if element_types.keeps(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A device without shared or host memory (a GPU with coarse-grain SVM only) cannot run what needs it."""
    try:
        return (yield)
    except drupe.UnsupportedError as error:
        if "has no memory of kind" in str(error):
            pytest.skip(str(error))
        raise
