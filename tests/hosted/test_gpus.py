"""The broker with this machine's real GPUs: each process has what it leased, and no others. Skipped without a GPU."""
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from daemon import CPU, PROFILES, Daemon

import drupe
import drupe.array as da

hosted = pytest.importorskip("drupe.hosted", reason="this build has no hub")
devices = pytest.importorskip("drupe.hosted.devices", reason="this build has no hub")

WORK = """
import json, sys
import drupe, drupe.array as da
gpus = drupe.devices("gpu")
sums = [float(da.sum(da.full(1 << 20, number + 1.0, dtype="float32", device=one))) for number, one in enumerate(gpus)]
print(json.dumps({"pci": [one.pci_address for one in gpus], "sums": sums}), flush=True)
input()
"""


@pytest.fixture(scope="module")
def gpus():
    """The entries of the broker's configuration for the GPUs, and complaints about those that are left out."""
    complaints = []
    found = [one for one in devices.entries(complain=complaints.append) if one["kind"] == "gpu"]
    if not found and not complaints:
        pytest.skip("there is no GPU")
    assert not complaints
    return found


@pytest.fixture
def gpu_daemon(gpus, tmp_path):
    with Daemon(tmp_path, devices=[*gpus, CPU], profiles=PROFILES) as made:
        yield made


class Worker:
    """A process with the masks of a lease, which it holds."""

    def __init__(self, broker, lease):
        self.lease = lease
        clean = {name: value for name, value in os.environ.items() if name not in devices.MASKS}
        self.process = subprocess.Popen([sys.executable, "-c", WORK], env={**clean, **lease.env}, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        broker.adopt(lease.id, self.process.pid)
        self.saw = json.loads(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.communicate()


def pieces(found):
    """The PCI address of each piece of hardware, once however many drivers offer it."""
    return sorted(set(found["pci"]))


def test_the_configuration_names_each_gpu_once(gpus):
    names = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True)
    if names.returncode == 0:
        assert [one["env"]["CUDA_VISIBLE_DEVICES"] for one in gpus] == names.stdout.split()
    assert len({json.dumps(one["env"], sort_keys=True) for one in gpus}) == len(gpus)
    for one in gpus:
        assert all(os.path.exists(node) for node in one["nodes"]), one["nodes"]


def test_each_process_has_the_gpu_of_its_lease(gpus, gpu_daemon):
    with hosted.Broker(gpu_daemon.path) as broker:
        workers = [Worker(broker, broker.lease("one-gpu")) for _gpu in gpus]
        seen = [pieces(one.saw) for one in workers]
        assert all(len(one) == 1 for one in seen)
        assert len({one[0] for one in seen}) == len(gpus)
        assert all(one.saw["sums"] == [float(1 << 20)*(at + 1) for at in range(len(one.saw["pci"]))] for one in workers)
        with pytest.raises(hosted.BrokerError):
            broker.lease("one-gpu")
        first = workers.pop(0)
        begun = time.monotonic()
        first.kill()
        lease = broker.lease("one-gpu", wait=True, timeout=30)
        assert time.monotonic() - begun < 2
        workers.append(Worker(broker, lease))
        assert pieces(workers[-1].saw) == seen[0]
        for one in workers:
            one.kill()
        gpu_daemon.free(len(gpus))


def test_a_lease_of_all_gpus(gpus, gpu_daemon):
    with hosted.Broker(gpu_daemon.path) as broker:
        worker = Worker(broker, broker.lease(kind="gpu", devices=len(gpus)))
        assert len(pieces(worker.saw)) == len(gpus)
        worker.kill()


def device_of(lease):
    """The leased GPU, as a process without masks sees it."""
    uuid = lease.env.get("CUDA_VISIBLE_DEVICES", "").removeprefix("GPU-")
    found = drupe.devices("gpu")
    return next((one for one in found if uuid and devices.plain(one.uuid) == uuid), found[0])


def test_a_gpu_is_parked_and_handed_on(gpus, gpu_daemon, capsys):
    """1 GiB in use goes to the host, another process gets the device, and everything comes back."""
    with hosted.Broker(gpu_daemon.path) as broker:
        own = [broker.lease("one-gpu") for _gpu in gpus][0]
        device = device_of(own)
        x = da.arange(1 << 28, dtype="float32", device=device)
        x.queue.wait()
        begun = time.monotonic()
        report = hosted.park(device)
        assert report, str(report)
        broker.parked(own.id)
        next_one = broker.lease("one-gpu", wait=True, timeout=30)
        took = time.monotonic() - begun
        worker = Worker(broker, next_one)
        assert pieces(worker.saw) == [device.pci_address]
        worker.kill()
        assert broker.resume(own.id, timeout=30).devices
        back = hosted.unpark(device)
        assert np.array_equal(x[::1 << 20].asnumpy(), np.arange(0, 1 << 28, 1 << 20, dtype="float32"))
        assert not hosted.is_parked(device)
    with capsys.disabled():
        print("\n1 GiB: parked and handed on in %.2f s, back in %.2f s" % (took, back.seconds))
