"""A broker of the tests' own, with devices that nobody has: leases are about names and masks, not about hardware."""
import contextlib
import json
import os
import pathlib
import pwd
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 60
DEVICES = [{"id": f"gpu{index}", "kind": "gpu", "name": f"Test GPU {index}", "memory": 8 << 30,
            "env": {"DRUPE_DEVICES": "host:*", "CUDA_VISIBLE_DEVICES": str(index)}, "nodes": [f"/dev/dri/card{index}"]}
           for index in range(2)]
CPU = {"id": "cpu", "kind": "cpu", "name": "Test CPU", "parts": 4, "memory": 16 << 30,
       "env": {"DRUPE_DEVICES": "host:*", "DRUPE_HOST_THREADS": "{parts}"}}
PROFILES = {"one-gpu": {"title": "One GPU", "kind": "gpu", "devices": 1},
            "two-gpus": {"title": "Two GPUs", "kind": "gpu", "devices": 2},
            "half-cpu": {"title": "Half of the processor", "kind": "cpu", "parts": 2},
            "three-gpus": {"title": "Three GPUs", "kind": "gpu", "devices": 3}}


def program():
    """drupe-broker, installed with Drupe or built beside its tests."""
    named = os.environ.get("DRUPE_TEST_BROKER")
    places = [pathlib.Path(sys.executable).parent / "drupe-broker", ROOT / "build/tests/broker/drupe-broker"]
    for path in [named] if named else places:
        if os.access(path, os.X_OK):
            return str(path)
    raise AssertionError("drupe-broker is not built: ./dev test hosted builds it")


def until(condition, what, seconds=PATIENCE):
    """Poll until the condition holds; its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(0.01)
    return value


class Daemon:
    """A drupe-broker that can be killed and started again on the same state."""

    def __init__(self, folder, **configuration):
        self.folder, self.socket = folder, str(folder / "broker.sock")
        self.path = folder / "broker.json"
        self.path.write_text(json.dumps({"devices": [*DEVICES, CPU], "profiles": PROFILES, "socket": self.socket,
                                         "state": str(folder / "state"), "admins": [pwd.getpwuid(os.geteuid()).pw_name],
                                         **configuration}))
        self.process = None
        self.start()

    def start(self):
        from drupe.hosted import Broker, BrokerError

        self.process = subprocess.Popen([program(), "--config", str(self.path)], stdin=subprocess.DEVNULL)

        def answers():
            assert self.process.poll() is None, "the broker has ended"
            with contextlib.suppress(BrokerError), Broker(self.socket) as broker:
                return broker.hello()

        until(answers, "the broker")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def free(self, count=2):
        """Wait until this many GPUs are free."""
        from drupe.hosted import Broker, view

        def there():
            with Broker(self.socket) as broker:
                devices = view.devices(broker.list())
            return sum(one.free for one in devices if one.kind == "gpu") == count

        until(there, f"{count} free devices")
