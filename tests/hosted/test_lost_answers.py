"""A process that lives for long, as a hub does, holds no lease that nobody knows of: answers and requests get lost."""
import asyncio
import os
import signal
import threading

import pytest
from brokers import until

from drupe.hosted import BrokerError
from drupe.hosted.session import Session


def leases(broker):
    return broker.list()["leases"]


def stopped(daemon, session):
    """The broker takes requests and answers none, and the session does not wait for long."""
    os.kill(daemon.process.pid, signal.SIGSTOP)
    session.broker.timeout = 0.2


def test_the_lease_of_an_answer_that_came_too_late_is_returned(daemon, broker):
    session = Session(daemon.path)
    stopped(daemon, session)
    with pytest.raises(BrokerError, match="did not answer"):
        asyncio.run(session.ask(profile="one-gpu"))
    os.kill(daemon.process.pid, signal.SIGCONT)
    until(lambda: "granted_total 1" in broker.metrics(), "the grant")
    until(lambda: not leases(broker), "its return")


def test_a_lease_is_returned_when_the_broker_is_back(daemon, broker):
    session = Session(daemon.path)
    asyncio.run(session.ask(profile="one-gpu"))
    daemon.kill()
    assert asyncio.run(session.end()).code == "unreachable"
    daemon.start()
    until(lambda: not leases(broker), "the return")


def test_a_process_becomes_the_holder_when_the_broker_is_back(daemon, broker, sleeper):
    session, kernel = Session(daemon.path), sleeper()
    asyncio.run(session.ask(profile="one-gpu"))
    daemon.kill()
    starter = threading.Timer(0.5, daemon.start)
    starter.start()
    asyncio.run(session.adopt(kernel.pid))
    starter.join()
    assert [lease["pid"] for lease in leases(broker)] == [kernel.pid]
