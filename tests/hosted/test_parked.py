"""Kernels with leases of a real broker: a device goes to the next in line, and what lay on it comes back."""
import threading
import time

import pytest
from brokers import until
from daemon import Daemon
from test_session import lease_of, line_of

from drupe.hosted import Broker, kernel_session
from drupe.hosted.kernel_session import Session

WHOLE = {"devices": [{"id": "cpu", "kind": "cpu", "name": "Test CPU", "env": {"DRUPE_DEVICES": "host:*"}}],
         "profiles": {"whole": {"kind": "cpu", "devices": 1, "idle": 0.2}}}
SETUP = "import drupe, drupe.array as da\nx = da.arange(1_000_000, dtype='float32', device='host')\nx.queue.wait()"


@pytest.fixture
def one(tmp_path):
    """A broker with one device that kernels are to share."""
    made = Daemon(tmp_path, **WHOLE)
    yield made
    made.kill()


@pytest.fixture
def asker(one):
    with Broker(one.path) as made:
        yield made


def leased(asker, make_kernel, lease=None):
    lease = lease or asker.lease("whole")
    kernel = make_kernel(DRUPE_LEASE=lease.id, DRUPE_BROKER=asker.path)
    asker.adopt(lease.id, kernel.pid)
    return lease, kernel


def granted(asker, seconds=60):
    """Whose turn it is: the event, among those of the asker's other leases; None: nobody's within the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        event = asker.event(max(0, deadline - time.monotonic()))
        if event and event["event"] == "granted":
            return event
    return None


def state(kernel):
    return lease_of(kernel)["body"]["state"]


def test_a_device_goes_to_the_next_and_comes_back(asker, make_kernel):
    _, kernel = leased(asker, make_kernel)
    assert kernel.run(SETUP).status == "ok"
    other = asker.lease("whole", wait=True, timeout=60)
    assert state(kernel) == "parked"
    assert kernel.run("2 + 2").result == "4"
    cell = kernel.send("float(x[:1000].sum())")
    assert "you are next" in line_of(kernel, cell, "Waiting for a device")
    asker.give_back(other.id)
    assert kernel.finish(cell).result == "499500.0"
    assert "MiB came back in" in line_of(kernel, cell, "The device was with others")
    assert state(kernel) == "held"


def test_memory_whose_address_was_given_away_stays(asker, make_kernel):
    _, kernel = leased(asker, make_kernel)
    assert kernel.run(SETUP + "\nimport numpy\nview = numpy.from_dlpack(x)").status == "ok"
    ticket = asker.request("lease", want={"profile": "whole"}, wait=True)["ticket"]
    body = until(lambda: (found := lease_of(kernel)["body"])["holds"] and found, "the reason")
    assert body["state"] == "held" and "uses it: 3.8 MiB of cell [1], line 2. Delete what uses it." in body["holds"]
    assert kernel.run("del view, x").status == "ok"
    assert granted(asker)["ticket"] == ticket


def test_two_kernels_of_a_lease_park_together(asker, make_kernel, gate):
    lease, first = leased(asker, make_kernel)
    second = make_kernel(DRUPE_LEASE=lease.id, DRUPE_BROKER=asker.path)
    assert first.run(SETUP).status == "ok"
    cell = second.send(gate.wait)
    second.started(cell)
    ticket = asker.request("lease", want={"profile": "whole"}, wait=True)["ticket"]
    assert first.run("1+1").result == "2"
    assert granted(asker, 2.5) is None  # one of them works: the lease is not idle, however long the other is
    gate.open()
    assert second.finish(cell).status == "ok"
    event = granted(asker)
    assert event["ticket"] == ticket and state(first) == state(second) == "parked"
    cells = [(kernel, kernel.send(code)) for kernel, code in ((first, "float(x[1])"), (second, "import drupe"))]
    for kernel, cell in cells:
        line_of(kernel, cell, "Waiting for a device")
    asker.give_back(event["lease"])
    assert all(kernel.finish(cell).status == "ok" for kernel, cell in cells)


def test_a_kernel_that_ends_keeps_nothing_parked_by_its_siblings(asker, make_kernel):
    """One of two cannot park. Once it has ended, what the other one has parked is free."""
    lease, first = leased(asker, make_kernel)
    second = make_kernel(DRUPE_LEASE=lease.id, DRUPE_BROKER=asker.path)
    assert first.run(SETUP).status == "ok"
    assert second.run(SETUP + "\nimport numpy\nview = numpy.from_dlpack(x)").status == "ok"
    ticket = asker.request("lease", want={"profile": "whole"}, wait=True)["ticket"]
    until(lambda: state(first) == "parked" and lease_of(second)["body"]["holds"], "one that parks, one that cannot")
    second.close()
    assert granted(asker)["ticket"] == ticket


class Notebook:
    """What a session shows things in. It can be kept from doing anything else."""

    def __init__(self):
        self.goes_on, self.stands = threading.Event(), threading.Event()
        self.goes_on.set()

    def tell_panel(self, facts):
        if not self.goes_on.is_set():
            self.stands.set()
            self.goes_on.wait(60)

    def line(self):
        return None

    def names(self):
        return {}

    def log(self, text):
        raise AssertionError(text)


def test_a_session_that_was_busy_when_the_broker_was_started_again_hears_of_its_lease(one, asker, monkeypatch):
    """The next thing that it says would make a new connection, on which it had not subscribed."""
    # The devices of this process are other tests'.
    for name, result in (("work", False), ("park", ("", 0)), ("unpark", (0, 0.0)), ("opened", False)):
        monkeypatch.setattr(kernel_session.devices, name, lambda result=result: result)
    lease, notebook = asker.lease("whole"), Notebook()
    session = Session(lease.id, notebook, one.path).start()
    try:
        until(lambda: asker.list()["leases"][0]["idle"] is not None, "idle")
        notebook.goes_on.clear()
        asker.give_back(ticket=asker.request("lease", want={"profile": "whole"}, wait=True)["ticket"])  # news
        notebook.stands.wait(60)
        session.enter("a cell")
        one.kill()
        one.start()
        notebook.goes_on.set()
        with Broker(one.path) as again:
            until(lambda: again.list()["leases"][0]["idle"] is None, "busy")
            session.leave("a cell")
            ticket = again.request("lease", want={"profile": "whole"}, wait=True)["ticket"]
            assert granted(again)["ticket"] == ticket
    finally:
        notebook.goes_on.set()
        session.close()


def test_a_killed_broker_loses_nothing(one, asker, make_kernel):
    _, kernel = leased(asker, make_kernel)
    assert kernel.run(SETUP).status == "ok"
    other = asker.lease("whole", wait=True, timeout=60)
    cell = kernel.send("float(x[7])")
    line_of(kernel, cell, "Waiting for a device")
    one.kill()
    one.start()
    with Broker(one.path) as again:
        again.give_back(other.id)
    assert kernel.finish(cell).result == "7.0"
