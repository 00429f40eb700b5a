"""What a kernel does with its lease when the broker goes away, a cell comes at a bad moment, or another kernel dies."""
import os
import signal
import threading

import pytest
from brokers import until
from test_session import lease_of, line_of, park

SLOW = ("import os, time\nfrom drupe.hosted import kernel_session as k\nmark = k._current._siblings.mark\n"
        "def slow(state):\n    if state == 'parked':\n        open({path!r}, 'w').close()\n        time.sleep(0.5)\n"
        "    mark(state)\nk._current._siblings.mark = slow")


@pytest.fixture
def held(fake):
    """What the broker says of the lease: a dict to be changed."""
    lease = {"lease": "7", "parked": False, "devices": [], "env": {}}
    fake.answers["list"] = lambda request: {"leases": [lease], "devices": [], "queue": 0}
    return lease


def refuse_once(fake, op, code):
    """The broker refuses the next request of this kind."""
    def answer(request):
        del fake.answers[op]
        return {"ok": False, "code": code, "error": "not now"}

    fake.answers[op] = answer


def test_a_cell_that_has_the_device_again_does_not_lose_it(leased, fake, tmp_path):
    """It comes when the kernel has parked, and the broker has not heard of that yet."""
    path = tmp_path / "parks"
    assert leased.run(SLOW.format(path=str(path))).status == "ok"
    fake.wait("idle")
    fake.event(event="park", lease="7")
    until(path.exists, "the kernel to park")
    assert leased.run("import drupe").status == "ok"
    asked = fake.wait("resume")
    fake.wait("idle", asked)
    assert "parked" not in fake.ops()[asked:]


def test_what_the_broker_did_not_hear_is_said_again(fake, held, make_kernel):
    refuse_once(fake, "parked", "timeout")
    kernel = make_kernel(DRUPE_LEASE="7", DRUPE_BROKER=fake.path)
    first = park(fake)
    fake.wait("parked", first + 1)
    assert lease_of(kernel)["body"]["state"] == "parked"


def test_what_was_granted_to_an_interrupted_cell_is_given_up(leased, fake):
    place = park(fake)
    fake.answers["resume"] = lambda request: {"waiting": 1, "ticket": 9}
    cell = leased.send("import drupe")
    line_of(leased, cell, "you are next")
    refuse_once(fake, "return", "unknown")  # the ticket was granted before
    leased.interrupt()
    assert leased.finish(cell).reply["ename"] == "KeyboardInterrupt"
    fake.wait("parked", place + 1)


def test_a_device_that_cannot_be_used_is_given_up(make_kernel, fake):
    lease = {"lease": "7", "devices": [{"id": "a", "name": "GPU A", "kind": "gpu"}], "env": {"MASK": "0"}}
    fake.answers["list"] = lambda request: {"leases": [lease], "devices": [], "queue": 0}
    kernel = make_kernel(DRUPE_LEASE="7", DRUPE_BROKER=fake.path)
    assert kernel.run("import drupe, drupe.array as da\nx = da.ones(10, device='host')\nx.queue.wait()").status == "ok"
    fake.wait("idle", fake.wait("busy"))
    place = park(fake)
    fake.answers["resume"] = lambda request: {"devices": [{"id": "b", "name": "GPU B", "kind": "gpu"}],
                                              "env": {"MASK": "1"}}
    assert kernel.run("float(x.sum())").reply["ename"] == "DeviceMoved"
    fake.wait("parked", place + 1)


def test_the_first_cell_knows_that_the_lease_is_parked(fake, held, make_kernel):
    gate, held["parked"] = threading.Event(), True
    listed = fake.answers["list"]
    fake.answers["list"] = lambda request: gate.wait(60) and listed(request)
    kernel = make_kernel(DRUPE_LEASE="7", DRUPE_BROKER=fake.path)
    assert kernel.run("1 + 1").result == "2"
    cell = kernel.send("import drupe")
    kernel.started(cell)
    gate.set()
    assert kernel.finish(cell).status == "ok"
    assert "resume" in fake.ops()


def test_a_kernel_that_was_killed_keeps_nothing_busy(fake, make_kernel, gate):
    first, second = (make_kernel(DRUPE_LEASE="7", DRUPE_BROKER=fake.path) for _ in range(2))
    second.started(second.send(gate.wait))
    busy = fake.wait("busy")
    assert first.run("1 + 1").result == "2"
    os.kill(second.pid, signal.SIGKILL)
    fake.wait("idle", busy)
