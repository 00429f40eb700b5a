"""A lease for each kernel, of real kernels and a real broker."""
import asyncio
import json
import os
import signal

import pytest
from brokers import until
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager, KernelManager

from drupe.hosted import Broker
from drupe.hosted.provisioner import fill, parameters
from drupe.jupyter import spec

SCHEMA = {"type": "object", "properties": {
    "profile": {"type": "string", "enum": ["one-gpu", "two-gpus", "half-cpu"], "default": "one-gpu"}}}


@pytest.fixture
def start(tmp_path, daemon):
    """Starts kernels whose kernelspec names the provisioner."""
    managers = []

    def begin(schema=None, env=(), manager=KernelManager, **config):
        folder = tmp_path / "kernels" / f"leased{len(managers)}"
        spec.install(folder)
        made = json.loads((folder / "kernel.json").read_text())
        made["metadata"]["kernel_provisioner"] = {"provisioner_name": "drupe-provisioner",
                                                  "config": {"profile": "one-gpu", "wait_seconds": 0, **config}}
        made["env"] = dict(env)
        if schema:
            made["metadata"]["parameters"] = schema
        (folder / "kernel.json").write_text(json.dumps(made))
        made = manager(kernel_name=folder.name,
                       kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(folder.parent)]))
        if manager is KernelManager:
            managers.append(made)
        return made

    yield begin
    for manager in managers:
        if manager.has_kernel:
            manager.shutdown_kernel(now=True)


def ask(manager, expression):
    """The value of an expression in the kernel."""
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        reply = client.execute("", user_expressions={"it": f"__import__('json').dumps({expression})"}, reply=True,
                               timeout=60)
        return json.loads(reply["content"]["user_expressions"]["it"]["data"]["text/plain"].strip("'"))
    finally:
        client.stop_channels()


MASK = "__import__('os').environ['CUDA_VISIBLE_DEVICES']"


def leases():
    with Broker() as broker:
        return broker.list()["leases"]


def test_kernels_have_leases_of_their_own(start, daemon):
    first, second, third = start(), start(), start()
    first.start_kernel()
    second.start_kernel()
    assert {ask(first, MASK), ask(second, MASK)} == {"0", "1"}
    assert {lease["pid"] for lease in leases()} == {manager.provisioner.pid for manager in (first, second)}
    with pytest.raises(RuntimeError, match="This kernel got no device. "):
        third.start_kernel()
    first.shutdown_kernel()
    daemon.free(1)


def test_a_killed_kernel_loses_its_lease(start, daemon):
    manager = start(profile="two-gpus")
    manager.start_kernel()
    os.kill(manager.provisioner.pid, signal.SIGKILL)
    daemon.free(2)


def test_a_restarted_kernel_keeps_its_device(start, daemon):
    """Also when others wait for it."""
    manager = start()
    manager.start_kernel()
    with Broker() as broker:
        broker.lease("one-gpu")
        mask, before = ask(manager, MASK), manager.provisioner.pid
        for now in (False, True):
            manager.restart_kernel(now=now)
            assert ask(manager, MASK) == mask
        assert manager.provisioner.pid != before
        assert manager.provisioner.pid in {lease["pid"] for lease in broker.list()["leases"]}
    os.kill(manager.provisioner.pid, signal.SIGKILL)
    daemon.free(1)
    until(lambda: not manager.is_alive(), "the kernel's end")
    manager.restart_kernel()  # with a new lease
    assert ask(manager, MASK) == mask


def test_a_kernel_that_parked_is_restarted_with_what_the_lease_has_then(start, daemon):
    """Its old device is another's."""
    manager = start(wait_seconds=60)
    manager.start_kernel()
    with Broker() as broker:
        (lease,) = broker.list()["leases"]
        broker.parked(lease["lease"])
        other = broker.lease("one-gpu")
        manager.restart_kernel()
        assert {ask(manager, MASK), other.env["CUDA_VISIBLE_DEVICES"]} == {"0", "1"}
        assert {one["lease"] for one in broker.list()["leases"]} == {lease["lease"], other.id}


def test_a_start_that_is_cancelled_leaves_neither_kernel_nor_lease(start, daemon, monkeypatch):
    launched = []

    async def adopt(session, pid):
        launched.append(pid)
        await asyncio.sleep(600)

    async def cancelled():
        task = asyncio.ensure_future(start(manager=AsyncKernelManager).start_kernel())
        while not launched:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    monkeypatch.setattr("drupe.hosted.session.Session.adopt", adopt)
    asyncio.run(cancelled())
    assert leases() == []
    assert os.waitpid(launched[0], 0)[1] == signal.SIGKILL


def test_a_kernel_waits_and_gives_up(start, daemon, caplog):
    manager = start(wait_seconds=0.2)
    with Broker() as broker:
        held = broker.lease("two-gpus")
        with pytest.raises(RuntimeError, match=r"no device became free within 0\.2 s"):
            manager.start_kernel()
        assert "waits for a device, at most 0.2 s: number 1 in the queue" in caplog.text
        broker.give_back(held.id)
    manager = start(wait_seconds=60)
    manager.start_kernel()
    assert ask(manager, MASK) in ("0", "1")


def test_a_kernel_that_cannot_be_started_returns_its_lease(start, daemon):
    manager = start()
    manager.kernel_spec.argv[0] = "/no/such/program"
    with pytest.raises(OSError):
        manager.start_kernel()
    assert leases() == []


def test_parameters_of_the_kernelspec(start, daemon):
    """Chosen values come before the schema's defaults, which come before the configuration."""
    manager = start(SCHEMA, {"CHOSEN": "it is {profile}"}, profile="two-gpus")
    manager.start_kernel()
    assert ask(manager, "__import__('os').environ['CHOSEN']") == "it is one-gpu"
    assert ask(manager, MASK) in ("0", "1")
    manager.shutdown_kernel()
    manager = start(SCHEMA)
    manager.start_kernel(custom_kernel_specs={"profile": "half-cpu"})
    assert ask(manager, "__import__('os').environ['DRUPE_HOST_THREADS']") == "2"


def test_values_are_checked():
    number = {"properties": {"parts": {"type": "integer", "minimum": 1, "maximum": 4}}}
    assert parameters(SCHEMA) == {"profile": "one-gpu"} and parameters(None) == {}
    assert parameters(number, {"parts": 3}) == {"parts": 3}
    for schema, chosen, message in ((SCHEMA, {"profile": "all"}, "one of one-gpu, two-gpus, half-cpu, not 'all'"),
                                    (SCHEMA, {"profile": 3}, "of type string"), (SCHEMA, {"x": 1}, "no parameter 'x'"),
                                    (number, {"parts": 9}, "from 1 to 4, not 9"), (number, {"parts": True}, "integer")):
        with pytest.raises(ValueError, match=message):
            parameters(schema, chosen)
    assert fill("{profile} {other}", {"profile": "a"}) == "a {other}"


def test_a_kernelspec_is_written(daemon, tmp_path):
    from drupe.hosted import __main__

    command = ["kernelspec", "--prefix", str(tmp_path), "--profile", "one-gpu", "--profile", "half-cpu"]
    assert __main__.main(command) == 0
    made = json.loads((tmp_path / "share/jupyter/kernels/drupe-lease/kernel.json").read_text())
    assert made["metadata"]["kernel_provisioner"]["config"] == {"profile": "one-gpu"}
    assert made["metadata"]["parameters"]["properties"]["profile"]["enum"] == ["one-gpu", "half-cpu"]
