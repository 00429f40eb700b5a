"""JupyterHub's hooks with a real broker, of a spawner that is none; what pages show to whom."""
import asyncio
import logging

import pytest

from drupe.hosted import Broker, docker_host_config, hub, post_stop_hook, pre_spawn_hook, profiles, session, view


class Spawner:
    """What the hooks use of one."""

    def __init__(self, profile=None, user="dhanna"):
        self.user_options = {"profile": [profile]} if profile else {}
        self.user = type("User", (), {"name": user})
        self.name, self.pid, self.environment, self.log = "", 0, {"KEPT": "1"}, logging.getLogger("spawner")


def held(broker):
    return broker.list()["leases"]


def test_a_server_has_a_lease_that_ends_with_it(broker, daemon, sleeper):
    async def scene():
        spawner, process = Spawner("two-gpus"), sleeper()
        await pre_spawn_hook(spawner)
        assert spawner.environment["CUDA_VISIBLE_DEVICES"] == "0,1" and spawner.environment["KEPT"] == "1"
        [lease] = held(broker)
        assert lease["user"] == "dhanna" and lease["lease"] == spawner.environment["DRUPE_LEASE"]
        spawner.pid = process.pid
        await spawner.drupe.adopting
        assert held(broker)[0]["pid"] == process.pid
        process.kill()
        daemon.free(2)
        await post_stop_hook(spawner)
        assert spawner.environment == {"KEPT": "1"}
        await pre_spawn_hook(spawner)  # again, and then no process: the hook returns it
        await post_stop_hook(spawner)
        assert held(broker) == []

    asyncio.run(scene())


def test_without_a_choice_it_is_the_first_profile(broker):
    async def scene():
        spawner = Spawner()
        await pre_spawn_hook(spawner)
        assert held(broker)[0]["profile"] == "one-gpu"
        await post_stop_hook(spawner)

    asyncio.run(scene())


def test_servers_have_names_of_any_kind(broker):
    async def scene(name):
        spawner = Spawner()
        spawner.name = name
        await pre_spawn_hook(spawner)
        [lease] = held(broker)
        await post_stop_hook(spawner)
        return lease["label"]

    assert asyncio.run(scene("second")) == "server second"
    assert asyncio.run(scene("\U0001f4c8" * 100)) == "server " + "\U0001f4c8" * 30  # 128 bytes at most
    assert asyncio.run(scene("a\nb")) == "server a?b"


def test_a_refusal_is_told_to_the_user(broker, daemon, monkeypatch):
    async def refused(profile):
        spawner = Spawner(profile)
        with pytest.raises(Exception) as told:
            await pre_spawn_hook(spawner)
        assert spawner.environment == {"KEPT": "1"} and spawner.drupe is None
        return getattr(told.value, "jupyterhub_message", str(told.value))

    assert "no profile of this name" in asyncio.run(refused("nothing"))
    broker.lease("two-gpus")
    monkeypatch.setenv("DRUPE_LEASE_WAIT", "0")
    assert "no device became free within 0 s" in asyncio.run(refused("one-gpu"))
    monkeypatch.setenv("DRUPE_LEASE_WAIT", "long")
    assert "DRUPE_LEASE_WAIT is a number of seconds" in asyncio.run(refused("one-gpu"))


def test_what_a_container_gets(broker):
    async def scene(profile):
        spawner = Spawner(profile)
        await pre_spawn_hook(spawner)
        config = docker_host_config(spawner)
        await post_stop_hook(spawner)
        return config

    assert asyncio.run(scene("two-gpus")) == {"devices": ["/dev/dri/card0:/dev/dri/card0:rw",
                                                          "/dev/dri/card1:/dev/dri/card1:rw"]}
    assert asyncio.run(scene("half-cpu")) == {"cpu_period": 100_000, "cpu_quota": 200_000}
    assert docker_host_config(Spawner()) == {}


def test_containers_hold_leases_by_their_process(broker, sleeper):
    process = sleeper()

    class Docker(Spawner):
        object_id = "container"

        asked = 0

        async def docker(self, method, container):
            assert (method, container) == ("inspect_container", "container")
            self.asked += 1
            if self.asked == 1:
                raise OSError("Docker is restarted")
            return {"State": {"Pid": process.pid}}

    async def scene():
        spawner = Docker("one-gpu")
        await pre_spawn_hook(spawner)
        await spawner.drupe.adopting
        assert held(broker)[0]["pid"] == process.pid
        assert await hub.server_pid(spawner) == process.pid

    asyncio.run(scene())


def test_a_broker_that_is_away_when_the_server_starts(broker, daemon, sleeper, caplog, monkeypatch):
    monkeypatch.setattr(session, "PATIENCE", 0.2)

    async def scene():
        spawner, process = Spawner("one-gpu"), sleeper()
        await pre_spawn_hook(spawner)
        daemon.kill()
        spawner.pid = process.pid
        while "does not hold its lease yet" not in caplog.text:
            await asyncio.sleep(0.01)
        daemon.start()
        await spawner.drupe.adopting
        with Broker(daemon.path) as again:
            assert held(again)[0]["pid"] == process.pid

    asyncio.run(scene())


def test_a_user_sees_sums_of_others(broker, daemon):
    broker.lease("one-gpu", user="dhbert", label="the secret project")
    broker.lease("half-cpu", user="dhanna")
    broker.lease(kind="cpu", parts=1, user="dhbert")
    with Broker(daemon.path) as other:
        other.watch()
        assert other.request("lease", want={"profile": "two-gpus"}, user="dhbert", wait=True)["waiting"] == 1
        assert other.event(60)["event"] == "changed"
        seen = {"state": broker.list(), "load": {"cpu": 0.5}, "time": 0}
        own, everything = view.page(seen, "dhanna", False), view.page(seen, "dhanna", True)
    assert "dhbert" not in str(own) and "secret" not in str(own)
    assert [row["user"] for row in own["leases"]] == ["you", "other users"]
    others = own["leases"][1]["devices"]
    assert others.startswith("Test GPU") and "1 of 4 parts of Test CPU" in others
    assert (own["queue"], own["waiting"]) == ([], 1)
    cpu = next(one for one in own["devices"] if one["id"] == "cpu")
    assert (cpu["mine"], cpu["others"], sorted(cpu["strip"]), cpu["load"]) == (2, 1, ["-", "m", "m", "o"], 0.5)
    assert sorted(row["user"] for row in everything["leases"]) == ["dhbert", "dhbert", "you"]
    assert everything["queue"][0]["user"] == "dhbert" and everything["queue"][0]["wants"] == "two-gpus"


def test_shares_of_memory_are_drawn_as_shares(broker):
    broker.lease(kind="gpu", memory=1 << 30, user="dhanna")
    page = view.page({"state": broker.list(), "load": {}, "time": 0}, "dhanna", False)
    gpu = next(one for one in page["devices"] if one["memory"]["shared"])
    assert gpu["memory"]["mine"] == 1 << 30 and gpu["state"] == "partly in use"
    assert page["leases"][0]["devices"].startswith("1.00 GiB of Test GPU")


def test_cards_of_profiles(broker):
    state, offered = broker.list(), broker.profiles()
    offered[0]["title"] = "<b>One</b>"
    text = profiles.form(state, offered, "half-cpu")
    assert "<b>" not in text and text.count("free now") == 3 and text.count("not on this machine") == 1
    assert 'value="half-cpu" required checked' in text and 'value="three-gpus" required disabled' in text
    broker.lease("one-gpu")
    text = profiles.form(broker.list(), offered)
    assert text.count("in use: you would wait") == 1 and "there are only 2" in text
    assert "role=\"radiogroup\"" in text and "&lt;" in profiles.unavailable("<x>")


def test_the_state_on_a_terminal(broker):
    broker.lease("half-cpu", label="work")
    text = "\n".join(view.lines(broker.list()))
    assert "partly in use" in text and "2 of 4 parts of Test CPU" in text and text.endswith("0 wait")
