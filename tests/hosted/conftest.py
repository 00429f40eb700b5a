"""Brokers, processes and kernels for the tests of what a machine needs that many share."""
import json
import os
import subprocess
import sys

import fake_broker
import pytest
import support
from daemon import Daemon

os.environ.setdefault("DRUPE_CACHE", "0")


@pytest.fixture
def daemon(tmp_path, monkeypatch):
    made = Daemon(tmp_path)
    monkeypatch.setenv("DRUPE_BROKER", made.path)
    yield made
    made.kill()


@pytest.fixture
def broker(daemon):
    from drupe.hosted import Broker

    with Broker(daemon.path) as made:
        yield made


@pytest.fixture
def sleeper():
    """Processes that do nothing until they are killed."""
    started = []

    def start():
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


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


@pytest.fixture(scope="session")
def data_folder(spec_folder):
    """For JUPYTER_PATH, so that clients which start kernels by name find this `drupe`."""
    folder = spec_folder.parent / (spec_folder.name + "-data")
    folder.mkdir()
    (folder / "kernels").symlink_to(spec_folder)
    return folder


@pytest.fixture
def fake(tmp_path):
    """A broker that does what the test says."""
    opened = fake_broker.FakeBroker(tmp_path / "broker.sock")
    yield opened
    opened.close()


@pytest.fixture
def make_kernel(spec_folder, tmp_path):
    """Start kernels with variables of the test's own. They know the kernels of their lease by a folder, which is the
    test's own as well, because tests that run beside this one have leases of the same number."""
    opened = []

    def make(**environment):
        opened.append(support.Kernel(spec_folder, {"XDG_RUNTIME_DIR": str(tmp_path), **environment}))
        return opened[-1]

    yield make
    for kernel in opened:
        kernel.close()


@pytest.fixture
def leased(make_kernel, fake):
    """A kernel with the lease 7."""
    kernel = make_kernel(DRUPE_LEASE="7", DRUPE_BROKER=fake.path)
    fake.wait("subscribe")
    return kernel


@pytest.fixture
def gate(tmp_path):
    """For cells that are to wait."""
    return support.Gate(tmp_path / "gate")
