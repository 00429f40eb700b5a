"""JupyterHub with real accounts: leases, the queue, what is killed, what each may see. ./dev hosted-test runs it."""
import os
import signal
import time
import urllib.error

import hub as hubs
import pytest
from brokers import until

from drupe.hosted import Broker

pytestmark = pytest.mark.skipif(hubs.possible() is not None, reason=str(hubs.possible()))
NAMES = ("dhanna", "dhbert", "dhcleo")
BACK = 2.0  # seconds within which a lease ends with its process


@pytest.fixture(scope="module")
def accounts():
    made = []
    try:
        for name in NAMES:
            made.append(hubs.Account(name))
        yield made
    finally:
        for account in made:
            account.remove()


@pytest.fixture(scope="module")
def hub(tmp_path_factory, accounts):
    made = hubs.Hub(tmp_path_factory.mktemp("hub"))
    try:
        made.admin = hubs.Person(made, "root", made.admin_password)
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def everybody(hub, accounts):
    return [hubs.Person(hub, account.name, hub.password) for account in accounts]


@pytest.fixture
def people(hub, everybody):
    """Three who have nothing, before and after."""
    yield everybody
    for person in everybody:
        person.leave()


@pytest.fixture
def broker(hub):
    with Broker(hub.broker_socket) as made:
        yield made


def leases(broker):
    return {lease["lease"]: lease for lease in broker.list()["leases"]}


def test_two_have_devices_of_their_own_and_the_third_waits(hub, people, broker):
    first, second, third = people
    for person in (first, second):
        person.spawn("one-gpu")
        until(person.ready, "the server")
    masks = [hubs.environment(person.kernel())["CUDA_VISIBLE_DEVICES"] for person in (first, second)]
    assert sorted(masks) == ["0", "1"]
    held = leases(broker).values()
    assert {lease["pid"] for lease in held} == {person.server_pid() for person in (first, second)}
    assert {lease["user"] for lease in held} == {first.name, second.name}

    third.spawn("one-gpu")
    until(lambda: broker.list()["queue"] == 1, "the third's place in the queue")
    assert third.server()["pending"] == "spawn"
    assert "Waiting for a device: number 1 in the queue" in next(iter_progress(third))
    first.stop()
    until(third.ready, "the third's server")
    assert hubs.environment(third.kernel())["CUDA_VISIBLE_DEVICES"] == masks[0]


def iter_progress(person):
    """The messages of the page that a user sees meanwhile."""
    path = f"/hub/api/users/{person.name}/server/progress"
    with person.opener.open(person.hub.address + path, timeout=60) as answer:
        for line in answer:
            if b"Waiting" in line:
                yield line.decode()


def test_no_port_is_open_but_the_hubs(hub, people):
    people[0].spawn("half-cpu")
    until(people[0].ready, "the server")
    kernel = people[0].kernel()
    assert hubs.environment(kernel)["DRUPE_HOST_THREADS"] == "2"
    pids = [hub.process.pid, *hubs.children(hub.process.pid)]
    assert kernel in pids
    assert hubs.listening(pids) == {hub.port}


def test_a_killed_kernel_returns_its_lease(hub, people, broker, accounts):
    """Of a kernel that has a lease of its own, beside its server's."""
    person = people[0]
    accounts[0].run(hubs.sys.executable, "-m", "drupe.hosted", "kernelspec", "--profile", "one-gpu")
    person.spawn("half-cpu")
    until(person.ready, "the server")
    pid = person.kernel("drupe-lease")
    lease = until(lambda: next((one for one in leases(broker).values() if one["pid"] == pid), None), "its lease")
    assert lease["user"] == person.name and lease["label"].startswith("kernel ")
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    until(lambda: lease["lease"] not in leases(broker), "the lease's end")
    assert time.monotonic() - killed < BACK


def test_a_killed_server_returns_its_lease(hub, people, broker):
    person = people[0]
    person.spawn("two-gpus")
    until(person.ready, "the server")
    lease = until(lambda: next(iter(leases(broker))), "the lease")
    os.kill(person.server_pid(), signal.SIGKILL)
    killed = time.monotonic()
    until(lambda: lease not in leases(broker), "the lease's end")
    assert time.monotonic() - killed < BACK
    until(lambda: not person.server(), "the hub's notice", 120)


def test_leases_survive_the_broker(hub, people, broker):
    first, second = people[:2]
    first.spawn("one-gpu")
    until(first.ready, "the server")
    before = leases(broker)
    pid = hub.broker_process()
    os.kill(pid, signal.SIGKILL)
    until(lambda: pid not in hubs.children(hub.process.pid), "the broker's end")

    def again():
        try:
            return leases(broker)
        except Exception as error:
            assert "broker" in str(error)
            return None

    after = until(again, "the broker")
    assert after.keys() == before.keys()
    assert all(lease["pid"] == before[name]["pid"] for name, lease in after.items())
    second.spawn("one-gpu")
    until(second.ready, "the second's server")
    assert len({tuple(one["id"] for one in lease["devices"]) for lease in leases(broker).values()}) == 2
    os.kill(first.server_pid(), signal.SIGKILL)  # the new broker watches the old holder
    until(lambda: len(leases(broker)) == 1, "the first's lease's end")


def test_the_page_of_profiles(people):
    page = people[0].page("/hub/spawn")
    assert "Half of the processor" in page and 'value="one-gpu"' in page
    three = page[page.index('value="three-gpus"'):]
    assert "not on this machine" in three and "disabled" in three[:60]


def test_what_each_may_see(hub, people):
    first, second = people[:2]
    first.spawn("one-gpu")
    until(first.ready, "the server")
    assert "drupe-devices" in second.page("/hub/devices")
    own, others, all_of_them = first.events(), second.events(), hub.admin.events()
    assert [lease["user"] for lease in own["leases"]] == ["you"]
    assert [(lease["user"], lease["label"]) for lease in others["leases"]] == [("other users", "")]
    assert first.name not in str(others) and "Test GPU" in others["leases"][0]["devices"]
    assert [lease["user"] for lease in all_of_them["leases"]] == [first.name]
    assert "1 free" not in own["summary"] and own["summary"].startswith("3 devices · 2 free")
    with pytest.raises(urllib.error.HTTPError) as refused:
        hubs.urllib.request.urlopen(hub.address + "/hub/devices/events", timeout=60)
    assert refused.value.code == 403


def test_who_may_come_in(hub):
    for name, password in ((NAMES[0], "wrong"), ("root", hub.password), ("nobody", hub.password), (NAMES[0], "")):
        with pytest.raises((urllib.error.HTTPError, StopIteration)):
            hubs.Person(hub, name, password)


def test_ctrl_c_ends_everything(hub, everybody):
    """The last one: the hub is gone after it."""
    everybody[0].spawn("one-gpu")
    until(everybody[0].ready, "the server")
    everybody[0].kernel()
    pids = hubs.children(hub.process.pid)
    assert hub.stop() == 0
    until(lambda: not [pid for pid in pids if os.path.exists(f"/proc/{pid}") and hubs.command(pid)], "the end of all")
    assert not os.path.exists(f"/run/drupe-hub-{hub.port}")


def test_a_hub_in_the_background_ends_by_sigterm(tmp_path):
    made = hubs.Hub(tmp_path, background=True)
    pids = hubs.children(made.process.pid)
    made.process.send_signal(signal.SIGINT)
    assert made.stop(signal.SIGTERM) == 0
    until(lambda: not [pid for pid in pids if os.path.exists(f"/proc/{pid}") and hubs.command(pid)], "the end of all")
