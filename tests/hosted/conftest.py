"""Kernels that hold a lease of a broker of the test's own."""
import json
import os
import sys

import fake_broker
import pytest
import support

os.environ.setdefault("DRUPE_CACHE", "0")


@pytest.fixture(scope="session")
def spec_folder(tmp_path_factory):
    """A folder with the kernelspec `drupe` of the interpreter that runs the tests."""
    root = tmp_path_factory.mktemp("kernels")
    spec = {"argv": [sys.executable, "-m", "drupe", "-f", "{connection_file}"], "display_name": "Drupe",
            "language": "python", "interrupt_mode": "message",
            "env": {"IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))}}
    (root / "drupe").mkdir()
    (root / "drupe" / "kernel.json").write_text(json.dumps(spec))
    return root


@pytest.fixture
def broker(tmp_path):
    opened = fake_broker.FakeBroker(tmp_path / "broker.sock")
    yield opened
    opened.close()


@pytest.fixture
def make_kernel(spec_folder):
    """Start kernels with variables of the test's own."""
    opened = []

    def make(**environment):
        opened.append(support.Kernel(spec_folder, environment))
        return opened[-1]

    yield make
    for kernel in opened:
        kernel.close()


@pytest.fixture
def leased(make_kernel, broker):
    """A kernel with the lease 7."""
    kernel = make_kernel(DRUPE_LEASE="7", DRUPE_BROKER=broker.path)
    broker.wait("subscribe")
    return kernel


@pytest.fixture
def gate(tmp_path):
    """For cells that are to wait."""
    return support.Gate(tmp_path / "gate")
