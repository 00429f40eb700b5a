"""Fixtures of the tests of the device broker's Python side."""
import subprocess
import sys

import pytest
from daemon import Daemon


@pytest.fixture
def daemon(tmp_path, monkeypatch):
    made = Daemon(tmp_path)
    monkeypatch.setenv("DRUPE_BROKER", made.socket)
    yield made
    made.kill()


@pytest.fixture
def broker(daemon):
    from drupe.hosted import Broker

    with Broker(daemon.socket) as made:
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
