"""The device broker as a program: real sockets, real processes, real users."""
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time

import brokers
import pytest
from brokers import Broker, Refused, until

ALICE, BOB, CAROL = 54321, 54322, 54323  # users without accounts

MACHINE = {
    "devices": [
        {"id": "gpu0", "kind": "gpu", "memory": 16 << 30, "env": {"CUDA_VISIBLE_DEVICES": "0"}, "nodes": ["/dev/null"]},
        {"id": "gpu1", "kind": "gpu", "memory": 16 << 30, "env": {"CUDA_VISIBLE_DEVICES": "1"}},
        {"id": "cpu", "kind": "cpu", "parts": 8, "memory": 8 << 30, "env": {"DRUPE_DEVICES": "host"},
         "part_env": [{"DRUPE_DEVICES": f"host:cpu:0.{i}"} for i in range(8)]}],
    "profiles": {"gpu": {"kind": "gpu", "title": "One GPU"}, "both": {"kind": "gpu", "devices": 2},
                 "brief": {"kind": "gpu", "idle": 0.05}, "part": {"kind": "cpu", "parts": 1}},
    "quotas": {"user": {str(CAROL): {"devices": 1, "seconds": 60}}},
}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can play other users")


@pytest.fixture
def broker(tmp_path):
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:  # pytest's folders are for this user alone: others must reach the socket
        if folder.owner() == tmp_path.owner() and len(folder.parts) > 2 and not folder.stat().st_mode & 1:
            folder.chmod(folder.stat().st_mode | 0o011)
    with Broker(tmp_path, MACHINE) as started:
        yield started


def refused(code, ask, *args, **request):
    with pytest.raises(Refused) as found:
        ask(*args, **request)
    assert found.value.code == code
    assert len(str(found.value)) > 10
    return str(found.value)


# --- The program -----------------------------------------------------------------------------------------------------

def test_options(tmp_path):
    def run(*args):
        return subprocess.run([brokers.program(), *args], capture_output=True, text=True, timeout=60)

    assert "usage: drupe-broker" in run("--help").stdout
    assert run("--nonsense").returncode == 2
    assert run("--config").returncode == 2
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(json.dumps(MACHINE))
    bad.write_text('{"devices":[{"id":"a","kind":"gpu","parts":0}], "idel":3}')
    assert run("--config", str(good), "--check").returncode == 0
    done = run("--config", str(bad), "--check")
    assert done.returncode == 1
    assert "devices[0].parts: a whole number" in done.stderr and "idel: there is no such key" in done.stderr


def test_socket_and_state(broker):
    assert stat.S_IMODE(os.stat(broker.path).st_mode) == 0o666
    assert stat.S_IMODE(os.stat(broker.folder / "state").st_mode) == 0o700
    second = subprocess.run([brokers.program(), "--config", str(broker.config), "--socket", broker.path, "--state",
                             str(broker.folder / "other")], capture_output=True, text=True, timeout=60)
    assert second.returncode == 1 and "Another broker answers" in second.stderr
    third = subprocess.run([brokers.program(), "--config", str(broker.config), "--socket", broker.path + "3",
                            "--state", str(broker.folder / "state")], capture_output=True, text=True, timeout=60)
    assert third.returncode == 1 and "Another broker uses the folder" in third.stderr
    assert broker.client().ask("hello")["version"] == 1


def test_ends_in_order(broker):
    client = broker.client()
    lease = client.ask("lease", want={"profile": "gpu"})["lease"]
    assert broker.kill(signal.SIGTERM) == 0
    assert not os.path.exists(broker.path)
    broker.start()
    assert [one["lease"] for one in broker.client().ask("list")["leases"]] == [lease]


# --- Leases ----------------------------------------------------------------------------------------------------------

def test_lease_and_return(broker):
    client = broker.client()
    answer = client.ask("lease", want={"profile": "gpu"}, tag="t", label="notebook")
    assert answer["tag"] == "t" and answer["ends"] is None
    device, = answer["devices"]
    assert device == {"id": "gpu0", "kind": "gpu", "name": "gpu0", "parts": [0], "memory": 16 << 30,
                      "nodes": ["/dev/null"]}
    assert answer["env"] == {"CUDA_VISIBLE_DEVICES": "0", "DRUPE_LEASE": answer["lease"]}
    shown, = client.ask("list")["leases"]
    assert shown["pid"] == os.getpid() and shown["label"] == "notebook"
    client.ask("return", lease=answer["lease"])
    assert client.ask("list")["leases"] == []
    refused("unknown", client.ask, "return", lease=answer["lease"])


def test_parts_and_shares(broker):
    client = broker.client()
    three = client.ask("lease", want={"kind": "cpu", "parts": 3})
    assert three["devices"][0]["parts"] == [0, 1, 2]
    assert three["env"]["DRUPE_DEVICES"] == "host:cpu:0.0;host:cpu:0.1;host:cpu:0.2"
    refused("busy", client.ask, "lease", want={"kind": "cpu", "memory": 1 << 20})
    rest = client.ask("lease", want={"kind": "cpu", "parts": 5})
    refused("busy", client.ask, "lease", want={"profile": "part"})
    share = client.ask("lease", want={"kind": "gpu", "memory": 10 << 30})
    assert share["env"]["DRUPE_MEMORY_LIMIT"] == str(10 << 30)
    second = client.ask("lease", want={"kind": "gpu", "memory": 6 << 30})
    assert second["devices"][0]["id"] == share["devices"][0]["id"]  # it fills up what is begun
    refused("busy", client.ask, "lease", want={"profile": "both"})
    assert "3 are asked for" in refused("never", client.ask, "lease", want={"kind": "gpu", "devices": 3})
    refused("never", client.ask, "lease", want={"kind": "gpu", "memory": 17 << 30})
    for lease in (three, rest, share, second):
        client.ask("return", lease=lease["lease"])
    assert client.ask("lease", want={"profile": "both"})["env"]["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_waiting(broker):
    client, other = broker.client(), broker.client()
    first = client.ask("lease", want={"profile": "both"})["lease"]
    one, two = (other.ask("lease", want={"profile": "both"}, wait=True) for _ in range(2))
    assert (one["waiting"], two["waiting"]) == (1, 2)
    client.ask("return", lease=first)
    event = other.event("granted")
    assert event["ticket"] == one["ticket"] and len(event["devices"]) == 2 and event["env"]["DRUPE_LEASE"]
    other.ask("return", ticket=two["ticket"])
    assert client.ask("list")["queue"] == 0
    refused("unknown", other.ask, "return", ticket=two["ticket"])


def test_time(broker):
    client = broker.client()
    lease = client.ask("lease", want={"profile": "gpu"}, seconds=0.2)
    assert lease["ends"] > time.time() - 1
    assert client.event()["event"] == "warning"
    ended = client.event()
    assert (ended["event"], ended["lease"]) == ("ended", lease["lease"])
    assert client.ask("list")["leases"] == []


def test_watching(broker):
    client, watcher = broker.client(), broker.client()
    watcher.ask("watch")
    client.ask("lease", want={"profile": "gpu"})
    assert watcher.event() == {"event": "changed"}


def test_accounts(tmp_path):
    with Broker(tmp_path, {**MACHINE, "accounting": str(tmp_path / "accounts")}) as broker:
        client = broker.client()
        client.ask("return", lease=client.ask("lease", want={"profile": "gpu"})["lease"])
        account = json.loads((tmp_path / "accounts").read_text())
        assert account["devices"] == ["gpu0"] and account["why"] == "returned" and account["end"] >= account["start"]
        (tmp_path / "accounts").rename(tmp_path / "accounts.1")
        broker.process.send_signal(signal.SIGHUP)
        until((tmp_path / "accounts").exists)
        text = client.ask("metrics")["metrics"]
        assert 'drupe_broker_ended_total{why="returned"} 1\n' in text


# --- Holders ---------------------------------------------------------------------------------------------------------

def test_dead_client(broker):
    """Its lease goes to who waits, quickly."""
    person, client = broker.person(), broker.client()
    person.ask("lease", want={"profile": "both"})
    client.ask("lease", want={"profile": "both"}, wait=True)
    person.kill()
    began = time.monotonic()
    assert len(client.event("granted")["devices"]) == 2
    assert time.monotonic() - began < 5


def test_closed_connection(broker):
    """A lease ends with its process, not with the connection."""
    first = broker.client()
    lease = first.ask("lease", want={"profile": "gpu"})["lease"]
    first.close()
    second = broker.client()
    assert [one["lease"] for one in second.ask("list")["leases"]] == [lease]
    second.ask("return", lease=lease)


def test_adopt(broker):
    client = broker.client()
    lease = client.ask("lease", want={"profile": "gpu"})["lease"]
    with subprocess.Popen(["sleep", "1000"]) as server:
        client.ask("adopt", lease=lease, holder={"pid": server.pid})
        assert client.ask("list")["leases"][0]["pid"] == server.pid
        server.kill()
        assert client.event("ended")["why"] == "holder exited"
    refused("gone", client.ask, "lease", want={"profile": "gpu"}, holder={"pid": server.pid})
    refused("unknown", client.ask, "adopt", lease=lease)


def test_killed_broker(broker):
    """Killed, it forgets nothing; who died meanwhile holds nothing."""
    client, dead, alive = broker.client(), broker.person(), broker.person()
    mine = client.ask("lease", want={"kind": "cpu", "parts": 2})["lease"]
    dead.ask("lease", want={"profile": "gpu"})
    lives = alive.ask("lease", want={"profile": "gpu"})["lease"]
    alive.ask("parked", lease=lives)
    broker.kill()
    dead.kill()
    with open(broker.folder / "state" / "journal", "ab") as journal:
        journal.write(b'{"put":{"id":"torn')
    broker.start()
    client = broker.client()
    answer = client.ask("list")
    assert {one["lease"]: one["parked"] for one in answer["leases"]} == {mine: False, lives: True}
    assert client.ask("lease", want={"kind": "cpu", "parts": 6})["devices"][0]["parts"] == [2, 3, 4, 5, 6, 7]
    assert len(client.ask("resume", lease=lives)["devices"]) == 1
    alive.kill()
    until(lambda: len(client.ask("list")["leases"]) == 2)


def test_damaged_journal(broker):
    client = broker.client()
    client.ask("lease", want={"kind": "cpu", "parts": 2})
    kept = client.ask("lease", want={"kind": "cpu", "parts": 1})["lease"]
    broker.kill()
    journal = broker.folder / "state" / "journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"\0garbage\n", *lines[2:]]))
    broker.start()
    assert [one["lease"] for one in broker.client().ask("list")["leases"]] == [kept]
    assert list((broker.folder / "state").glob("journal.damaged-*"))
    assert "damaged" in broker.log.read_text()


# --- Parking ---------------------------------------------------------------------------------------------------------

def test_park(broker):
    holder, other = broker.client(), broker.client()
    lease = holder.ask("lease", want={"profile": "brief", "devices": 1})["lease"]
    taken = other.ask("lease", want={"profile": "gpu"})["lease"]
    holder.ask("idle", lease=lease)
    other.ask("lease", want={"profile": "both"}, wait=True)
    assert holder.event("park")["lease"] == lease
    holder.ask("parked", lease=lease)
    other.ask("return", lease=taken)
    both = other.event("granted")["lease"]
    answer = holder.ask("resume", lease=lease)
    assert answer["waiting"] == 1
    other.ask("return", lease=both)
    event = holder.event("granted")
    assert event["lease"] == lease and event["env"]["CUDA_VISIBLE_DEVICES"] in "01"
    refused("unknown", holder.ask, "resume", lease="nothing")


# --- Other users -----------------------------------------------------------------------------------------------------

@needs_root
def test_others_see_sums(broker):
    alice, bob, root = broker.person(ALICE), broker.person(BOB), broker.client()
    assert alice.ask("hello") == {"ok": True, "version": 1, "uid": ALICE, "user": str(ALICE), "admin": False}
    lease = alice.ask("lease", want={"kind": "cpu", "parts": 3}, label="secret")["lease"]
    seen = bob.ask("list")
    assert seen["leases"] == [] and seen["devices"][2]["others"] == {"parts": 3, "memory": 3 << 30}
    for hidden in ("secret", str(ALICE), lease, str(alice.pid)):
        assert hidden not in json.dumps(seen) and hidden not in bob.ask("metrics")["metrics"]
    for op in ("return", "adopt", "subscribe", "idle", "busy", "parked", "resume", "extend"):
        refused("unknown", bob.ask, op, lease=lease, seconds=5)
    refused("forbidden", bob.ask, "lease", want={"profile": "gpu"}, user=str(ALICE))
    refused("forbidden", bob.ask, "lease", want={"profile": "gpu"}, holder={"pid": alice.pid})
    refused("forbidden", bob.ask, "lease", want={"profile": "gpu"}, holder={"pid": 1})
    shown, = root.ask("list")["leases"]
    assert (shown["user"], shown["label"], shown["pid"]) == (str(ALICE), "secret", alice.pid)


@needs_root
def test_spawner(broker):
    """Root leases for alice, and her server takes it over."""
    root, alice = broker.client(), broker.person(ALICE)
    lease = root.ask("lease", want={"profile": "gpu"}, user=str(ALICE))["lease"]
    root.ask("adopt", lease=lease, holder={"pid": alice.pid})
    assert alice.ask("list")["leases"][0]["pid"] == alice.pid
    alice.ask("subscribe", lease=lease)
    alice.kill()
    assert root.event("ended")["lease"] == lease


@needs_root
def test_below_the_holder(broker):
    """In a container the kernel's user is another one than the lease's: what runs below the holder may say idle."""
    root, person = broker.client(), broker.person(BOB)
    lease = root.ask("lease", want={"profile": "gpu"}, user=str(ALICE))["lease"]
    refused("unknown", person.ask, "idle", lease=lease)  # below the spawner, which is not his
    root.ask("adopt", lease=lease, holder={"pid": person.pid})
    person.ask("idle", lease=lease)
    refused("unknown", broker.person(BOB).ask, "idle", lease=lease)


@needs_root
def test_quotas(broker):
    carol, root = broker.person(CAROL), broker.client()
    assert "quota is 1 device" in refused("quota", carol.ask, "lease", want={"profile": "both"}, wait=True)
    lease = carol.ask("lease", want={"profile": "gpu"})
    assert lease["ends"] is not None
    assert "give something back" in refused("quota", carol.ask, "lease", want={"profile": "part"})
    refused("quota", root.ask, "lease", want={"profile": "part"}, user=str(CAROL))
    carol.ask("return", lease=lease["lease"])
    assert "60 seconds" in refused("quota", carol.ask, "lease", want={"profile": "gpu"}, seconds=61)
    ends = carol.ask("lease", want={"profile": "part"}, seconds=30)
    assert carol.ask("extend", lease=ends["lease"], seconds=1000)["ends"] > ends["ends"] + 20


@needs_root
def test_group_quota(tmp_path):
    """Of all members together: who is over waits until another one gives something back."""
    import grp
    import pwd
    try:
        nobody = pwd.getpwnam("nobody")
        group = grp.getgrgid(nobody.pw_gid).gr_name
    except KeyError:
        pytest.skip("there is no user nobody with a group")
    with Broker(tmp_path, {**MACHINE, "quotas": {"group": {group: {"devices": 1}}}}) as broker:
        root = broker.client()
        first = root.ask("lease", want={"profile": "gpu"}, user="nobody")["lease"]
        assert group in refused("quota", root.ask, "lease", want={"profile": "gpu"}, user="nobody")
        root.ask("lease", want={"profile": "gpu"}, user="nobody", wait=True)
        assert root.quiet()
        root.ask("return", lease=first)
        assert root.event("granted")["devices"]


@needs_root
def test_fairness(broker):
    """Who holds least goes first, although he asked last."""
    alice, bob = broker.person(ALICE), broker.person(BOB)
    leases = [alice.ask("lease", want={"profile": "gpu"})["lease"] for _ in range(2)]
    alice.ask("lease", want={"profile": "gpu"}, wait=True)
    assert bob.ask("lease", want={"profile": "gpu"}, wait=True)["waiting"] == 1
    alice.ask("return", lease=leases[0])
    assert bob.event("granted")
    assert alice.quiet()
    alice.ask("return", lease=leases[1])
    assert alice.event("granted")


@needs_root
def test_connections_of_a_user(tmp_path):
    tmp_path.parent.parent.chmod(0o755)
    tmp_path.parent.chmod(0o755)
    tmp_path.chmod(0o755)
    with Broker(tmp_path, {**MACHINE, "limits": {"connections": 2}}) as broker:
        alice = [broker.person(ALICE) for _ in range(2)]
        for one in alice:
            one.ask("hello")
        refused_one = broker.person(ALICE)
        assert refused_one.receive()["code"] == "limit"
        assert broker.person(BOB).ask("hello")["ok"]


# --- Hostile clients -------------------------------------------------------------------------------------------------

def test_garbage(broker):
    client = broker.client()
    for packet in (b"\0", b"{", b"[]", b"{}", b"\xff" * 100, b"[" * 16000, b'{"op":' + b"1" * 16000 + b"}",
                   b'{"op":"lease","want":' + b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"}", b"x" * 16385, b"x" * 100000):
        client.send(packet)
        answer = client.receive()
        assert answer["ok"] is False and answer["code"] in ("bad", "unknown")
    assert client.ask("hello")["ok"]


def test_unread(broker):
    """A client that never reads is disconnected, and what it asked for does not stay in the broker's memory."""
    deaf, client = broker.client(), broker.client()
    deaf.socket.settimeout(0.05)
    with pytest.raises(OSError):
        while True:
            try:
                deaf.send(b'{"op":"list"}')
            except TimeoutError:  # the broker is busy with it
                client.ask("hello")
    assert 'drupe_broker_closed_total 1' in client.ask("metrics")["metrics"]
    assert client.ask("lease", want={"profile": "gpu"})["ok"]


def test_thousand_connections(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2100:
        pytest.skip(f"only {hard} open files are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2100, hard))
    config = {"devices": [{"id": f"c{i}", "kind": "cpu", "parts": 250} for i in range(4)],
              "limits": {"connections": 1100, "leases": 1100}}
    try:
        with Broker(tmp_path, config) as broker:
            clients = [broker.client() for _ in range(1000)]
            parts = set()
            for client in clients:
                device, = client.ask("lease", want={"kind": "cpu", "parts": 1})["devices"]
                parts.add((device["id"], *device["parts"]))
            assert len(parts) == 1000
            refused("busy", clients[0].ask, "lease", want={"kind": "cpu", "parts": 1})
            for client in clients:
                client.close()
            until(lambda: "drupe_broker_connections 1\n" in broker.client().ask("metrics")["metrics"]
                  or broker.clients.pop().close())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- A random schedule -----------------------------------------------------------------------------------------------

# Leases, holds, returns, closes its connection, dies. A part is locked while it is held: the system drops the lock when
# the process ends, before anybody hears of the end. So a lock that is taken already means two holders of one part.
WORKER = """
import fcntl, json, os, random, socket, sys, time
path, folder, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
r = random.Random(seed)

def connect():
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            s.connect(path)
            return s
        except OSError:  # the broker is being started again
            s.close()
            time.sleep(0.005)

def ask(**request):
    global s
    try:
        s.send(json.dumps(request).encode())
        while "event" in (answer := json.loads(s.recv(131072) or b"0") or {"lost": True}):
            pass
    except OSError:
        answer = {"lost": True}
    if "lost" in answer:  # whether it was done is not known; what was granted ends with this process
        s.close()
        s = connect()
    return answer

def locks(devices):
    held = []
    for device in devices:
        for part in device["parts"]:
            f = open(f"{folder}/{device['id']}.{part}", "w")
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                print("two holders of", device["id"], part, flush=True)
                os._exit(3)
            held.append(f)
    return held

s, held = connect(), {}
for step in range(r.randrange(20, 60)):
    time.sleep(r.random() * 0.01)  # so that others come in between
    what = r.random()
    if what < 0.5:
        want = {"kind": r.choice(["cpu", "gpu", "any"]), "parts": r.choice([0, 1, 1, 2]),
                "devices": r.choice([1, 1, 2])}
        answer = ask(op="lease", want=want, wait=r.random() < 0.3)
        if "lease" in answer:
            held[answer["lease"]] = locks(answer["devices"])
        elif "ticket" in answer and r.random() < 0.8:
            ask(op="return", ticket=answer["ticket"])
            s.close()  # it may have been granted in between: the process's end will give that back
            s = connect()
    elif what < 0.85 and held:
        lease = r.choice(list(held))
        for f in held.pop(lease):
            f.close()
        answer = ask(op=r.choice(["return", "return", "parked"]), lease=lease)
        assert answer.get("ok") or "lost" in answer, answer
    elif what < 0.9:
        s.close()
        s = connect()
    elif what < 0.93:
        os._exit(9)
os._exit(0 if r.random() < 0.5 else 9)
"""


def test_random_schedule(tmp_path):
    """At the end nothing is leased; in between never two had the same part, though the broker was killed."""
    seed = int(os.environ.get("DRUPE_SEED", time.time_ns() % 1000000))
    print("DRUPE_SEED", seed)
    config = {"devices": [{"id": "g0", "kind": "gpu", "parts": 4}, {"id": "g1", "kind": "gpu"},
                          {"id": "c", "kind": "cpu", "parts": 6}], "patience": 0.05}
    with Broker(tmp_path, config) as broker:
        running = []
        for number in range(40):
            running.append(subprocess.Popen([sys._base_executable, "-S", "-c", WORKER, broker.path, str(tmp_path),
                                             str(seed + number)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
            if len(running) > 6:
                finished(running.pop(0))
            if number in (15, 30):
                client = broker.client()
                until(lambda: sum(len(one["devices"]) for one in client.ask("list")["leases"]) > 2
                      or all(process.poll() is not None for process in running))
                broker.kill()
                broker.start()
        for process in running:
            finished(process)
        client = broker.client()
        until(lambda: client.ask("list")["leases"] == [])
        answer = client.ask("list")
        assert answer["queue"] == 0
        assert all(device["free_parts"] == device["parts"] for device in answer["devices"])


def finished(process):
    text, _ = process.communicate(timeout=60)
    assert process.returncode in (0, 9), text.decode()
