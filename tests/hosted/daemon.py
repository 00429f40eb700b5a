"""A broker of the tests' own, with devices that nobody has: leases are about names and masks, not about hardware."""
import os
import pathlib
import pwd

from brokers import Broker, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICES = [{"id": f"gpu{index}", "kind": "gpu", "name": f"Test GPU {index}", "memory": 8 << 30,
            "env": {"DRUPE_DEVICES": "host:*", "CUDA_VISIBLE_DEVICES": str(index)}, "nodes": [f"/dev/dri/card{index}"]}
           for index in range(2)]
CPU = {"id": "cpu", "kind": "cpu", "name": "Test CPU", "parts": 4, "memory": 16 << 30,
       "env": {"DRUPE_DEVICES": "host:*", "DRUPE_HOST_THREADS": "{parts}"}}
PROFILES = {"one-gpu": {"title": "One GPU", "kind": "gpu", "devices": 1},
            "two-gpus": {"title": "Two GPUs", "kind": "gpu", "devices": 2},
            "half-cpu": {"title": "Half of the processor", "kind": "cpu", "parts": 2},
            "three-gpus": {"title": "Three GPUs", "kind": "gpu", "devices": 3}}


class Daemon(Broker):
    """A drupe-broker with these devices. It can be killed and started again on the same state."""

    def __init__(self, folder, **configuration):
        super().__init__(folder, {"devices": [*DEVICES, CPU], "profiles": PROFILES,
                                  "admins": [pwd.getpwuid(os.geteuid()).pw_name], **configuration})

    def free(self, count=2):
        """Wait until this many GPUs are free."""
        from drupe.hosted import Broker as Client
        from drupe.hosted import view

        def there():
            with Client(self.path) as broker:
                devices = view.devices(broker.list())
            return sum(one.free for one in devices if one.kind == "gpu") == count

        until(there, f"{count} free devices")
