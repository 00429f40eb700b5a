"""The client against a real broker: leases, the queue, holders, threads, and what it says when something is wrong."""
import asyncio
import json
import subprocess
import sys
import threading

import pytest
from brokers import program, until

from drupe.hosted import Broker, BrokerError, devices


def test_nothing_heavy_is_imported():
    """A hub has no devices, and need not load what computes on them."""
    code = ("import sys, drupe.hosted; drupe.hosted.Broker; "
            "print([name for name in ('drupe._engine', 'numpy', 'jupyterhub', 'tornado') if name in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_leases_have_masks_of_their_own(broker):
    first, second = broker.lease("one-gpu"), broker.lease(kind="gpu")
    assert {lease.env["CUDA_VISIBLE_DEVICES"] for lease in (first, second)} == {"0", "1"}
    assert first.env["DRUPE_LEASE"] == first.id and first.ends is None
    assert first.title.startswith("Test GPU")
    with pytest.raises(BrokerError) as refused:
        broker.lease("one-gpu")
    assert refused.value.code == "busy"
    broker.give_back(first.id)
    assert broker.lease("one-gpu").env["CUDA_VISIBLE_DEVICES"] == first.env["CUDA_VISIBLE_DEVICES"]


def test_parts_are_counted(broker):
    lease = broker.lease("half-cpu")
    assert lease.env["DRUPE_HOST_THREADS"] == "2"
    assert len(lease.devices[0]["parts"]) == 2
    assert broker.lease(kind="cpu", parts=1).env["DRUPE_HOST_THREADS"] == "1"
    with pytest.raises(BrokerError, match="."):
        broker.lease("half-cpu")


def test_what_can_never_be_had_is_refused(broker):
    with pytest.raises(BrokerError) as refused:
        broker.lease("three-gpus", wait=True, timeout=0)
    assert refused.value.code != "busy" and len(str(refused.value).split()) > 3
    with pytest.raises(BrokerError, match="no profile of this name"):
        broker.lease("no-such-profile")


def test_a_lease_that_waits_is_granted(broker, daemon):
    held = [broker.lease("one-gpu") for _ in range(2)]
    places, got = [], []
    with Broker(daemon.path) as other:
        thread = threading.Thread(target=lambda: got.append(other.lease("one-gpu", wait=True, timeout=60,
                                                                        waiting=lambda place, _: places.append(place))))
        thread.start()
        until(lambda: places, "a place in the queue")
        assert places == [1] and not got
        broker.give_back(held[1].id)
        thread.join(60)
    assert got[0].env["CUDA_VISIBLE_DEVICES"] == held[1].env["CUDA_VISIBLE_DEVICES"]


def test_who_gives_up_leaves_the_queue(broker):
    held = broker.lease("two-gpus")
    with pytest.raises(BrokerError) as late:
        broker.lease("one-gpu", wait=True, timeout=0)
    assert late.value.code == "timeout" and "0 s" in str(late.value)
    broker.give_back(held.id)
    assert len(broker.lease("two-gpus").devices) == 2  # nothing went to the ticket that was given up


def test_another_thread_gives_up(broker):
    """By the same connection, at which the waiting thread reads."""
    held = broker.lease("two-gpus")
    tickets, said = [], []

    def wait():
        try:
            broker.lease("one-gpu", wait=True, waiting=lambda _, ticket: tickets.append(ticket))
        except BrokerError as error:
            said.append(error.code)

    thread = threading.Thread(target=wait)
    thread.start()
    broker.give_up(until(lambda: tickets, "a ticket")[0])
    thread.join(60)
    assert said == ["given-up"] and broker.list()["queue"] == 0
    broker.give_back(held.id)
    broker.give_up(tickets[0])  # nothing is left to give up


def test_a_wait_that_the_broker_ends(broker, daemon, sleeper):
    """The process that was to hold the lease ends first."""
    broker.lease("two-gpus")
    process, said = sleeper(), []

    def wait():
        try:
            broker.lease("one-gpu", wait=True, holder=process.pid, timeout=60, waiting=lambda *_: process.kill())
        except BrokerError as error:
            said.append((error.code, str(error)))

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(60)
    assert said == [("gone", "the wait has ended: holder exited")]


@pytest.mark.parametrize("when", ["waits", "granted"])
def test_who_is_interrupted_waits_no_more(broker, daemon, when):
    """The broker would grant it to this process, which would not know."""
    held = broker.lease("two-gpus")

    def interrupt(_place, _ticket):
        if when == "granted":
            broker.give_back(held.id)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broker.lease("one-gpu", wait=True, waiting=interrupt)
    assert broker.list()["queue"] == 0
    if when == "waits":
        broker.give_back(held.id)
    daemon.free(2)


def test_figures(broker):
    broker.lease("one-gpu")
    assert "drupe_broker_leases 1\n" in broker.metrics()


def test_a_task_that_is_cancelled_keeps_no_lease(broker, daemon):
    from drupe.hosted.session import Session

    async def scene():
        held = broker.lease("two-gpus")
        session, places = Session(), []
        task = asyncio.create_task(session.ask(places.append, profile="one-gpu", wait=True))
        while not places:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        until(lambda: broker.list()["queue"] == 0, "the place that is given up")
        broker.give_back(held.id)
        await session.end()
        hasty = asyncio.create_task(Session().ask(profile="one-gpu", wait=True))
        await asyncio.sleep(0)  # it has asked, and hears no answer any more
        hasty.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hasty
        daemon.free(2)
        session = Session()
        late = asyncio.create_task(session.ask(profile="one-gpu", wait=True))
        await asyncio.sleep(0)
        until(lambda: session.lease is not None, "the lease, of which the loop has not heard")
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        daemon.free(2)

    asyncio.run(scene())


def test_a_lease_ends_with_its_holder(broker, daemon, sleeper):
    process = sleeper()
    lease = broker.lease("two-gpus")
    broker.adopt(lease.id, process.pid)
    broker.close()  # a lease does not end with a connection
    with pytest.raises(BrokerError):
        broker.lease("one-gpu")
    process.kill()
    daemon.free(2)


def test_events_of_a_lease(broker, daemon, sleeper):
    process = sleeper()
    lease = broker.lease("one-gpu", holder=process.pid)
    with Broker(daemon.path) as other:
        other.subscribe(lease.id)
        process.kill()
        event = other.event(60)
        assert (event["event"], event["lease"]) == ("ended", lease.id) and event["why"]
        assert other.event(0) is None


def test_threads_share_a_connection(broker):
    """Answers go to those who asked, also while another thread waits for its turn; no device is leased twice."""
    held, twice, lock = set(), [], threading.Lock()

    def work():
        for _ in range(20):
            lease = broker.lease("one-gpu", wait=True, timeout=60)
            name = lease.env["CUDA_VISIBLE_DEVICES"]
            with lock:
                twice.append(name in held)
                held.add(name)
            broker.hello()
            with lock:
                held.remove(name)
            broker.give_back(lease.id)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert twice == [False] * 120


def test_a_broker_that_was_killed_keeps_its_leases(broker, daemon):
    lease = broker.lease("one-gpu")
    daemon.kill()
    with pytest.raises(BrokerError) as gone:
        broker.hello()
    assert gone.value.code in ("unreachable", "closed") and daemon.path in str(gone.value)
    daemon.start()
    assert [one["lease"] for one in broker.list()["leases"]] == [lease.id]
    broker.give_back(lease.id)
    assert len(broker.lease("two-gpus").devices) == 2


def test_there_is_no_broker(tmp_path, monkeypatch):
    with pytest.raises(BrokerError, match="there is no such socket. Start drupe-broker"):
        Broker(str(tmp_path / "nothing.sock")).hello()
    monkeypatch.setenv("DRUPE_BROKER", "/elsewhere/broker.sock")
    assert Broker().path == "/elsewhere/broker.sock"


def test_a_request_that_is_too_long(broker):
    with pytest.raises(BrokerError, match="16384 bytes"):
        broker.lease("x" * 20_000)


def test_the_command_tells_the_state(broker, daemon):
    lease = broker.lease("one-gpu", label="an experiment")
    done = subprocess.run([sys.executable, "-m", "drupe.hosted", "status"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert lease.devices[0]["id"] in done.stdout and "an experiment" in done.stdout
    daemon.kill()
    done = subprocess.run([sys.executable, "-m", "drupe.hosted", "status"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("drupe: cannot reach the broker")


# --- This machine's devices, as a configuration ----------------------------------------------------------------


def test_the_devices_of_this_machine(tmp_path):
    done = subprocess.run([sys.executable, "-m", "drupe.hosted", "devices", "--profiles"], capture_output=True,
                          text=True)
    made = json.loads(done.stdout)
    assert [one["id"] for one in made["devices"]].count("cpu") == 1
    path = tmp_path / "broker.json"
    path.write_text(done.stdout)
    checked = subprocess.run([program(), "--config", str(path), "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    cpu = made["devices"][0]
    if cpu["parts"] > 1:  # a part is one thread of `host`
        env = {**cpu["env"], **cpu["part_env"][-1], "DRUPE_HOST_THREADS": "1"}
        units = [one["units"] for one in devices.seen(**env)]
        assert units and set(units) == {1}


class Machine:
    """Two NVIDIA GPUs, one of Intel's and a processor, behind drivers that follow the variables of their makers."""

    def __init__(self, follows=True, uuids=True):
        self.follows, self.uuids = follows, uuids
        self.gpus = [self.device("NVIDIA", "NVIDIA Corporation", 1), self.device("NVIDIA", "NVIDIA Corporation", 2),
                     self.device("Arc", "Intel(R) Corporation", 3)]

    @staticmethod
    def device(name, vendor, slot):
        return {"backend": "opencl", "type": "gpu", "name": name, "vendor": vendor, "units": 8, "memory": 8 << 30,
                "uuid": f"{slot:032x}", "pci": f"0000:0{slot}:00.0"}

    def ask(self, **masks):
        found = [dict(one) for one in self.gpus]
        if self.follows and "CUDA_VISIBLE_DEVICES" in masks:
            found = [one for one in found if one["name"] != "NVIDIA"
                     or "GPU-" + devices.plain(one["uuid"]) in masks["CUDA_VISIBLE_DEVICES"].split(",")]
        if self.follows and "ZE_AFFINITY_MASK" in masks:
            arcs = [one for one in found if one["name"] == "Arc"]
            found = [one for one in found if one["name"] != "Arc"
                     or str(arcs.index(one)) in masks["ZE_AFFINITY_MASK"].split(",")]
        found.insert(0, {"backend": "host", "type": "cpu", "name": "CPU", "vendor": "x", "units": 4, "memory": 1 << 30,
                         "uuid": None, "pci": None})
        numbers = {}
        for one in found:
            one["number"] = numbers[one["backend"]] = numbers.get(one["backend"], -1) + 1
            one["uuid"] = devices.plain(one["uuid"]) if self.uuids else None
        if "DRUPE_DEVICES" in masks:
            names = masks["DRUPE_DEVICES"].split(";")
            found = [one for one in found
                     if {f"{one['backend']}:{what}" for what in (one["number"], one["uuid"], "*")} & {*names}]
        return found


def test_masks_of_gpus(tmp_path):
    cpu, first, second, arc = devices.entries(Machine().ask, tmp_path)
    assert cpu["parts"] == 4 and cpu["env"]["DRUPE_HOST_THREADS"] == "{parts}"
    assert first["env"]["CUDA_VISIBLE_DEVICES"] == "GPU-00000000-0000-0000-0000-000000000001"
    assert second["env"]["CUDA_VISIBLE_DEVICES"].endswith("2") and second["env"]["DRUPE_DEVICES"].endswith("2")
    assert arc["env"]["ZE_AFFINITY_MASK"] == "0" and arc["env"]["ONEAPI_DEVICE_SELECTOR"] == "level_zero:*"
    assert [one["id"] for one in (first, second, arc)] == ["gpu0", "gpu1", "gpu2"]


@pytest.mark.parametrize("follows", (True, False))
@pytest.mark.parametrize("uuids", (True, False))
def test_masks_of_several_gpus_show_all_of_them(tmp_path, follows, uuids):
    machine = Machine(follows, uuids)
    found = devices.entries(machine.ask, tmp_path)[1:]
    for some in ([0, 1], [0, 2], [1, 2], [0, 1, 2]):
        shown = machine.ask(**devices.joined([found[at]["env"] for at in some]))
        assert [one["pci"] for one in shown] == [machine.gpus[at]["pci"] for at in some]


LISTING = """\
GPU 0: NVIDIA H100 (UUID: GPU-00000000-0000-0000-0000-000000000001)
  MIG 3g.40gb     Device  0: (UUID: MIG-aaaaaaaa-0000-0000-0000-000000000001)
  MIG 1g.10gb     Device  1: (UUID: MIG-bbbbbbbb-0000-0000-0000-000000000001)
GPU 1: NVIDIA L40 (UUID: GPU-00000000-0000-0000-0000-000000000002)
"""


class DividedMachine(Machine):
    """The first of its GPUs is divided: a process sees the instance that the variable names, or the first one."""

    def ask(self, **masks):
        wanted = masks.get("CUDA_VISIBLE_DEVICES", "MIG-aaaaaaaa").split(",")[0]
        first = dict(self.gpus[0], memory=(40 if "aaaaaaaa" in wanted else 10) << 30)
        shown = Machine(uuids=False)
        shown.follows = False
        shown.gpus = [first if "MIG" in wanted else self.gpus[1], self.gpus[2]]
        return shown.ask(**masks)


def test_instances_of_a_divided_gpu_are_devices(tmp_path):
    said = []
    cpu, arc, *found = devices.entries(DividedMachine().ask, tmp_path, said.append, lambda: LISTING)
    assert not said and (cpu["kind"], arc["name"]) == ("cpu", "Arc")
    assert [(one["id"], one["name"], one["memory"] >> 30) for one in found] == [
        ("gpu1", "NVIDIA H100 MIG 3g.40gb", 40), ("gpu2", "NVIDIA H100 MIG 1g.10gb", 10), ("gpu3", "NVIDIA L40", 8)]
    assert [one["env"]["CUDA_VISIBLE_DEVICES"][:6] for one in found] == ["MIG-aa", "MIG-bb", "GPU-00"]
    assert {one["env"]["DRUPE_DEVICES"] for one in found} == {"opencl:0"}
    assert len(devices.entries(Machine().ask, tmp_path, listing=lambda: "GPU 0: NVIDIA H100 (UUID: GPU-1)\n")) == 4


def test_an_instance_that_cannot_be_shown_is_left_out(tmp_path):
    machine, said = DividedMachine(), []

    def ask(**masks):
        return machine.ask() if "bbbbbbbb" in masks.get("CUDA_VISIBLE_DEVICES", "") and "DRUPE_DEVICES" in masks \
            else machine.ask(**masks)

    def fail(**masks):
        if "bbbbbbbb" in masks.get("CUDA_VISIBLE_DEVICES", ""):
            raise RuntimeError("the driver does not start")
        return machine.ask(**masks)

    assert len(devices.entries(fail, tmp_path, listing=lambda: LISTING)) == 4
    found = devices.entries(ask, tmp_path, said.append, lambda: LISTING)
    assert said == ["NVIDIA H100 MIG 1g.10gb is left out: no mask makes it the only one visible"]
    assert [one["id"] for one in found] == ["cpu", "gpu0", "gpu1", "gpu2"]


def test_masks_of_drivers_that_follow_none(tmp_path):
    """They have no UUIDs either: the number that DRUPE_DEVICES names is another one when the driver hides nothing."""
    _, first, second, arc = devices.entries(Machine(follows=False, uuids=False).ask, tmp_path)
    assert [one["env"]["DRUPE_DEVICES"] for one in (first, second, arc)] == ["opencl:0", "opencl:1", "opencl:2"]


def test_what_no_mask_can_show_alone_is_left_out(tmp_path):
    machine, said = Machine(), []
    machine.gpus[1] = dict(machine.gpus[0], pci="0000:09:00.0")  # the same UUID: nothing tells the two apart
    found = devices.entries(lambda **masks: machine.ask(), tmp_path, said.append)
    assert [one["id"] for one in found] == ["cpu"] and len(said) == 3 and "left out" in said[0]


def test_device_files(tmp_path):
    for path in ("sys/bus/pci/devices/0000:03:00.0/drm/renderD128", "sys/bus/pci/devices/0000:03:00.0/drm/card0",
                 "proc/driver/nvidia/gpus/0000:01:00.0", "dev"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0/information").write_text("Model: x\nDevice Minor: \t 3\n")
    (tmp_path / "dev/nvidiactl").touch()
    machine = Machine()
    assert devices.nodes(machine.gpus[0], tmp_path) == ["/dev/nvidia3", "/dev/nvidiactl"]
    assert devices.nodes(machine.gpus[2], tmp_path) == ["/dev/dri/card0", "/dev/dri/renderD128"]
