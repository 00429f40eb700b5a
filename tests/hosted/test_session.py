"""A kernel that holds a lease: what it tells the broker, and what it does when the broker asks."""
import json
import os
import time

from brokers import until


def line_of(kernel, msg_id, words):
    """Wait for a line in the output of this cell."""
    def there(message):
        return (message["msg_type"] in ("display_data", "update_display_data")
                and message["parent_header"].get("msg_id") == msg_id
                and words in message["content"]["data"].get("text/plain", ""))

    return kernel.wait_iopub(there, what="a line with %r" % words)["content"]["data"]["text/plain"]


def park(fake):
    """Have an idle kernel park; where in the broker's requests that is."""
    idle = fake.wait("idle")
    fake.event(event="park", lease="7")
    return fake.wait("parked", idle)


def lease_of(kernel):
    """What the panel is told."""
    message = kernel.client.session.msg("debug_request", {"type": "request", "seq": 1, "command": "drupe/lease",
                                                          "arguments": {}})
    kernel.client.control_channel.send(message)
    while True:
        reply = kernel.client.get_control_msg(timeout=60)
        if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
            return reply["content"]


def test_the_broker_hears_when_a_cell_begins_and_when_it_has_ended(leased, fake, gate):
    first = fake.wait("idle")
    cell = leased.send(gate.wait)
    busy = fake.wait("busy", first)
    assert "idle" not in fake.ops()[busy:]
    gate.open()
    leased.finish(cell)
    assert fake.requests[fake.wait("idle", busy)]["lease"] == "7"


def test_work_that_outlasts_its_cell_is_busy(leased, fake):
    run = leased.run("import drupe\nfrom drupe import _engine\nimport testwork\nqueue = drupe.Queue('host')\n"
                     "hold = _engine._event_open('hold')\nevent = testwork.task(queue, 0, None, [hold])")
    assert run.status == "ok"
    place = len(fake.requests)
    fake.event(event="park", lease="7")
    fake.wait("busy", place)  # said again, instead of `parked`
    assert "idle" not in fake.ops()[place:] and "parked" not in fake.ops()
    leased.run("hold._finish()")
    fake.wait("idle", place)


def test_a_warning_stands_in_the_last_cell(leased, fake):
    run = leased.run("1+1")
    fake.event(event="warning", lease="7", seconds=600)
    text = line_of(leased, run.id, "device")
    assert text == "This session's device goes back in 10 minutes. drupe.hosted.extend() asks for more."
    fake.answers["extend"] = lambda request: {"ends": 4e9}
    assert leased.run("import drupe.hosted\ndrupe.hosted.extend(60)").result == "4000000000.0"
    line_of(leased, run.id, "keeps its device")
    assert lease_of(leased)["body"]["ends"] == 4e9


def test_nothing_is_parked_during_a_cell(leased, fake, gate):
    cell = leased.send(gate.wait)
    busy = fake.wait("busy")
    fake.event(event="park", lease="7")
    fake.wait("busy", busy + 1)
    assert "parked" not in fake.ops()
    gate.open()
    assert leased.finish(cell).status == "ok"
    fake.wait("idle", busy)
    park(fake)
    assert lease_of(leased)["body"]["state"] == "parked"
    line_of(leased, cell, "The device is with others now, because they waited and this notebook was idle.")


def test_a_cell_that_may_use_a_device_waits_for_one(leased, fake):
    parked = park(fake)
    assert leased.run("x = 1 + 1\nprint(x)").text() == "2\n"
    assert "resume" not in fake.ops()
    fake.answers["resume"] = lambda request: {"waiting": 3, "ticket": 5}
    cell = leased.send("import drupe, os\nos.environ['DRUPE_DEVICES']")
    resume = fake.requests[fake.wait("resume", parked)]
    assert "2 before you" in line_of(leased, cell, "before you")
    assert lease_of(leased)["body"]["position"] == 3
    fake.event(resume["client"], event="granted", ticket=5, lease="7", devices=[{"id": "d", "name": "CPU"}],
                 env={"DRUPE_DEVICES": "host"}, ends=None)
    run = leased.finish(cell)
    assert run.result == "'host'"
    assert "The device was with others for" in line_of(leased, cell, "others")
    fake.wait("idle", parked)  # it holds a device again
    body = lease_of(leased)["body"]
    assert body["state"] == "held" and body["devices"] == ["CPU"] and body["position"] == 0


def test_ctrl_c_ends_the_wait_and_gives_the_place_up(leased, fake):
    park(fake)
    fake.answers["resume"] = lambda request: {"waiting": 1, "ticket": 9}
    cell = leased.send("import drupe")
    line_of(leased, cell, "you are next")
    leased.interrupt()
    run = leased.finish(cell)
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert fake.requests[fake.wait("return")]["ticket"] == 9
    assert leased.run("1+1").result == "2"
    fake.answers["resume"] = lambda request: {"env": {}, "devices": []}
    assert leased.run("import drupe").status == "ok"


def test_an_ended_lease_is_an_error_that_says_what_to_do(leased, fake):
    warned = leased.run("1+1")
    fake.event(event="warning", lease="7", seconds=1)
    line_of(leased, warned.id, "in 1 second.")
    run = leased.run("1+1")
    fake.event(event="ended", lease="7", why="its time is over")
    line_of(leased, warned.id, "is over.")
    line_of(leased, run.id, "has ended")
    failed = leased.run("import drupe")
    assert failed.reply["ename"] == "LeaseEnded" and "save what you need" in failed.reply["evalue"]
    assert leased.run("1+1").result == "2"
    assert lease_of(leased)["body"]["state"] == "ended"


def test_what_stays_on_the_device_of_an_ended_lease_is_told(leased, fake):
    run = leased.run("import drupe, drupe.array as da, numpy\nx = da.ones(1_000_000, dtype='float32', device='host')\n"
                     "view = numpy.from_dlpack(x)")
    fake.event(event="ended", lease="7", why="its time is over")
    told = "3.8 MiB of cell [1], line 2. Delete what uses it."
    assert "Cells that use no device still run" in line_of(leased, run.id, told)
    failed = leased.run("x + 1")
    assert failed.reply["ename"] == "LeaseEnded" and told in failed.reply["evalue"]
    until(lambda: told in lease_of(leased)["body"]["holds"], "what the panel tells")
    assert leased.run("del view").status == "ok"
    until(lambda: lease_of(leased)["body"]["holds"] == "", "the memory's way to the host")
    line_of(leased, run.id, "its time is over). Its device is another's now. Cells that use no device")
    assert "MiB" not in leased.run("x + 1").reply["evalue"]


def test_a_lease_that_ends_in_a_cell_gives_the_memory_up_behind_it(leased, fake, gate):
    assert leased.run("import drupe.array as da\nx = da.ones(1000, device='host')\nx.queue.wait()").status == "ok"
    cell = leased.send(gate.wait)
    leased.started(cell)
    fake.event(event="ended", lease="7", why="its time is over")
    line_of(leased, cell, "until the work that uses it is over")
    gate.open()
    assert leased.finish(cell).status == "ok"
    line_of(leased, cell, "Its device is another's now. Cells that use no device")
    assert leased.run("from drupe import hosted").reply["ename"] == "LeaseEnded"


def test_the_kernel_goes_on_without_a_broker_and_finds_it_again(leased, fake):
    fake.wait("idle")
    fake.close()
    assert leased.run("1+1").result == "2"
    place = len(fake.requests)
    fake.open()
    run = leased.run("2+2")
    fake.wait("subscribe", place)
    assert run.result == "4" and run.types == ["status", "execute_input", "execute_result", "status"]
    park(fake)


def test_a_cell_waits_for_a_broker_that_is_away(leased, fake):
    park(fake)
    fake.close()
    cell = leased.send("import drupe")
    line_of(leased, cell, "does not answer")
    fake.answers["resume"] = lambda request: {"env": {}, "devices": []}
    fake.open()
    assert leased.finish(cell).status == "ok"


def test_what_is_held_and_who_waits(make_kernel, fake):
    lease = {"lease": 7, "user": "ann", "devices": [{"id": "d", "name": "A GPU", "parts": [0, 1]}], "ends": None}
    own = {"ticket": 5, "user": "ann", "position": 1}
    fake.answers["list"] = lambda request: {"leases": [lease], "devices": [], "queue": 3, "waiting": [own]}
    kernel = make_kernel(DRUPE_LEASE="7", DRUPE_BROKER=fake.path)
    fake.wait("list")
    shown = kernel.run("import drupe\ndrupe.hosted.lease()").result
    assert shown == "Lease 7: A GPU, parts 0, 1, without an end; 2 wait"
    body = lease_of(kernel)["body"]
    assert body["devices"] == ["A GPU, parts 0, 1"] and body["waiting"] == 2 and body["ends"] is None


def test_a_kernel_without_a_lease_says_so(make_kernel):
    kernel = make_kernel(DRUPE_LEASE="")
    failed = kernel.run("import drupe\ndrupe.hosted.lease()")
    assert failed.reply["ename"] == "BrokerError" and "DRUPE_LEASE is not set" in failed.reply["evalue"]
    answer = lease_of(kernel)
    assert not answer["success"] and "no lease" in answer["message"]


def test_the_account_of_a_kernel(make_kernel, tmp_path):
    folder = tmp_path / "accounts"
    folder.mkdir()
    kernel = make_kernel(DRUPE_ACCOUNT=str(folder), JUPYTERHUB_USER="ann")
    run = kernel.run("import drupe, drupe.array as da\nx = da.ones(100_000, dtype='float32', device='host')\n"
                     "float((x * 2).sum())\nprint(drupe.hosted.metrics())")
    assert run.status == "ok"
    assert 'drupe_device_moved_bytes_total{user="ann",' in run.text()
    kernel.manager.shutdown_kernel()
    (file,) = folder.iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[-1]["final"] and lines[-1]["user"] == "ann" and file.name.startswith("ann-")
    (device,) = lines[-1]["devices"]
    assert device["device"] == "host:cpu:0" and device["kernels"] >= 1
    assert device["peak"] >= 400_000 and lines[-1]["moved"] >= 4
    assert lines[-1]["seconds"] + lines[-1]["maybe_seconds"] > 0


def test_another_gpu_is_not_the_one_that_memory_was_on(make_kernel, fake):
    lease = {"lease": "7", "devices": [{"id": "a", "name": "GPU A", "kind": "gpu"}],
             "env": {"CUDA_VISIBLE_DEVICES": "0"}}
    fake.answers["list"] = lambda request: {"leases": [lease], "devices": [], "queue": 0}
    kernel = make_kernel(DRUPE_LEASE="7", DRUPE_BROKER=fake.path, CUDA_VISIBLE_DEVICES="0")
    assert kernel.run("import drupe, drupe.array as da\nx = da.ones(10, device='host')\nx.queue.wait()").status == "ok"
    place = fake.wait("idle", fake.wait("busy"))
    fake.event(event="park", lease="7")
    fake.wait("parked", place)
    other = {"devices": [{"id": "b", "name": "GPU B", "kind": "gpu"}], "env": {"CUDA_VISIBLE_DEVICES": "1"}}
    fake.answers["resume"] = lambda request: other
    place = len(fake.requests)
    failed = kernel.run("float(x.sum())")
    assert failed.reply["ename"] == "DeviceMoved" and "GPU B" in failed.reply["evalue"]
    fake.wait("parked", place)  # who cannot use it does not keep it from others
    fake.answers["resume"] = lambda request: lease
    assert kernel.run("float(x.sum())").result == "10.0"


def test_a_container_finds_out_that_it_is_another_gpu(make_kernel, fake):
    """The broker lists the leases of a user, and the one in a container is another."""
    kernel = make_kernel(DRUPE_LEASE="7", DRUPE_BROKER=fake.path, CUDA_VISIBLE_DEVICES="0")
    assert kernel.run("import drupe, drupe.array as da\nx = da.ones(10, device='host')\nx.queue.wait()").status == "ok"
    place = fake.wait("idle", fake.wait("busy"))
    fake.event(event="park", lease="7")
    fake.wait("parked", place)
    other = {"devices": [{"id": "b", "name": "GPU B", "kind": "gpu"}], "env": {"CUDA_VISIBLE_DEVICES": "1"}}
    fake.answers["resume"] = lambda request: other
    assert kernel.run("float(x.sum())").reply["ename"] == "DeviceMoved"


def test_a_restarted_kernel_has_the_device_that_the_lease_got_last(make_kernel, fake):
    """It begins with the environment of its server, which has that of the first device."""
    lease = "restarted-%d" % os.getpid()
    kernel = make_kernel(DRUPE_LEASE=lease, DRUPE_BROKER=fake.path, CUDA_VISIBLE_DEVICES="0")
    idle = fake.wait("idle")
    fake.event(event="park", lease=lease)
    fake.wait("parked", idle)
    fake.answers["resume"] = lambda request: {"devices": [{"id": "b", "name": "GPU B", "kind": "gpu"}],
                                              "env": {"CUDA_VISIBLE_DEVICES": "1"}}
    look = "import os\nfrom drupe import hosted\nos.environ['CUDA_VISIBLE_DEVICES']"
    assert kernel.run(look).result == "'1'"
    again = make_kernel(DRUPE_LEASE=lease, DRUPE_BROKER=fake.path, CUDA_VISIBLE_DEVICES="0")
    assert again.run(look).result == "'1'"


def test_a_device_that_is_granted_while_the_cell_is_interrupted_goes_back(leased, fake):
    park(fake)
    fake.answers["resume"] = lambda request: {"waiting": 1, "ticket": 9}
    fake.answers["return"] = lambda request: {"ok": False, "code": "unknown", "error": "it was granted"}
    cell = leased.send("import drupe")
    line_of(leased, cell, "you are next")
    leased.interrupt()
    assert leased.finish(cell).reply["ename"] == "KeyboardInterrupt"
    fake.wait("parked", fake.wait("return"))


def test_a_lease_that_ends_ends_the_wait(leased, fake):
    park(fake)
    fake.answers["resume"] = lambda request: {"waiting": 1, "ticket": 9}
    cell = leased.send("import drupe")
    line_of(leased, cell, "you are next")
    fake.event(event="ended", lease="7", why="time is over")
    assert leased.finish(cell).reply["ename"] == "LeaseEnded"


def test_a_place_that_another_took_is_asked_for_again(leased, fake):
    parked = park(fake)
    fake.answers["resume"] = lambda request: {"waiting": 1, "ticket": 9}
    cell = leased.send("import drupe")
    first = fake.wait("resume", parked)
    fake.answers["resume"] = lambda request: {"env": {}, "devices": []}
    fake.event(fake.requests[first]["client"], event="ended", ticket=9, why="asked again")
    fake.wait("resume", first + 1)
    assert leased.finish(cell).status == "ok"


def test_a_broker_that_was_started_again_hears_of_what_is_parked(leased, fake):
    """It may have ended before it heard, and would keep the device from all others."""
    park(fake)
    fake.close()
    place = len(fake.requests)
    fake.open()
    fake.wait("parked", fake.wait("subscribe", place))


def test_the_first_cell_of_a_parked_lease_waits(make_kernel, fake):
    """Also when it comes before the broker has told."""
    listed, heard = {"leases": [{"lease": "7", "devices": [], "parked": True}], "devices": [], "queue": 0}, []

    def late(request):
        heard.append(request)
        time.sleep(1.5)
        return listed

    fake.answers["list"] = late
    fake.answers["resume"] = lambda request: {"env": {}, "devices": []}
    kernel = make_kernel(DRUPE_LEASE="7", DRUPE_BROKER=fake.path)
    assert kernel.run("import drupe").status == "ok"
    assert "resume" in fake.ops()


def test_a_folder_that_somebody_else_has_made(tmp_path, monkeypatch):
    """On a machine of many people anybody can be first in /tmp: that switches nothing off."""
    from drupe.hosted import siblings

    home, temporary = tmp_path / "home", tmp_path / "tmp"
    temporary.mkdir()
    squat = temporary / ("drupe-%d" % os.getuid())
    squat.mkdir()
    squat.chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(siblings.tempfile, "gettempdir", lambda: str(temporary))
    one = siblings.Siblings("7", "socket")
    one.mark("idle")
    assert not list(squat.iterdir()) and list(home.rglob("lease-*-7"))


def test_a_forked_process_does_not_keep_the_turn(tmp_path, monkeypatch):
    from drupe.hosted import siblings

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    one = siblings.Siblings("7", "socket")
    with one.alone() as begin:
        assert begin()
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with siblings.Siblings("7", "socket").alone() as begin:
            assert begin()
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_folders_of_leases_that_have_ended_are_removed(tmp_path, monkeypatch):
    from drupe.hosted import siblings

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    names = ("7", "8", "9")
    for name in names:
        siblings.Siblings(name, "socket").mark("idle")
    siblings.Siblings("8", "another").mark("idle")
    siblings.Siblings("alive", "socket").mark("idle")  # though the broker has forgotten it
    for path in tmp_path.glob("drupe/lease-*-[789]/*"):
        path.rename(path.parent / "1-1")  # of a process that has ended
    before = time.time() - 3600
    for path in (one for one in tmp_path.glob("drupe/lease-*") if one.name.endswith(("7", "8", "9", "alive"))):
        os.utime(path, (before, before))
    siblings.Siblings("10", "socket").mark("idle")  # after the list was read
    siblings.Siblings("7", "socket").sweep(["9"])
    assert sorted(path.name.rpartition("-")[2] for path in tmp_path.glob("drupe/lease-*")) == [
        "10", "7", "8", "9", "alive"]
    assert [path.name for path in tmp_path.glob("drupe/lease-*-8")] == [
        siblings.Siblings("8", "another")._folder.name]
