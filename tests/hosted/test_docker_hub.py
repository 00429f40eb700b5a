"""docker/README.md as it is typed: images by a Docker engine, its hub, and what containers enforce.

An engine of the tests' own is started; ./dev hosted-test docker installs what it needs. DRUPE_TEST_KEEP=1 leaves the
images for the next run.
"""
import contextlib
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import time
import urllib.request

import docker_engine
import hub as hubs
import pytest
from brokers import until
from daemon import ROOT
from notebooks import Notebook

from drupe.hosted import Broker

pytestmark = [pytest.mark.skipif(docker_engine.lacking() is not None, reason=str(docker_engine.lacking())),
              pytest.mark.timeout(1800)]
PASSWORD = "ripe and sweet"
HARDENED = "--cap-drop ALL --security-opt no-new-privileges --read-only --tmpfs /tmp --tmpfs /home/drupe:uid=1000,exec"
STARTS = 120  # seconds for a server in a container, whose files the disk may have to read
BACK = 2.0  # seconds within which a lease ends with its container
# Device files that are not among those that containers get: their numbers, and a group for each.
NODES = {"/dev/drupe-test-0": ("10:229", 44100), "/dev/drupe-test-1": ("10:237", 44101)}
CELL = """
import drupe.array, numpy, os
a = drupe.array.asarray(numpy.arange(1000, dtype="float32"))
print(float((a * 2).sum()), os.environ.get("DRUPE_HOST_THREADS"), len(drupe.devices()) > 0)
"""


@pytest.fixture(scope="module")
def engine():
    made = docker_engine.Engine()
    try:
        why = made.start()
        if why:
            pytest.skip(why)
        made.base()
        yield made
    finally:
        made.close()


def lines(heading, first):
    """The lines of README's blocks under a heading that begin so."""
    return [line for block in docker_engine.blocks(heading) for line in block if line.startswith(first)]


@pytest.fixture(scope="module")
def person_image(engine):
    [line] = [line for line in lines("For one person", "docker build") if "Dockerfile " in line]
    engine.typed(line)


def answers(address):
    with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5) as answer:
        return answer.status == 200
    return False


# --- One person ----------------------------------------------------------------------------------------------------

def lab(engine, line, name):
    """Start it as it is typed, on a port of the test's; (process, address, token)."""
    port = hubs.free_port()
    line = line.replace("127.0.0.1:8888", f"127.0.0.1:{port}").replace("docker run", f"docker run --name {name}")
    process = subprocess.Popen(["bash", "-c", "exec " + line], env=engine.environment, cwd=ROOT, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = ""
    while "http://127.0.0.1:8888/lab?token=" not in said:
        got = process.stdout.readline()
        assert got, said
        said += got
    address = f"http://127.0.0.1:{port}"
    until(lambda: answers(address + "/api"), "JupyterLab", STARTS)
    return process, address, said.rpartition("token=")[2].split()[0]


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_one_person_runs_a_cell(engine, person_image, hardened):
    [line] = [one for one in lines("For one person", "docker run") if one.endswith(" drupe:0.1.0")]
    if hardened:
        assert HARDENED in (ROOT / "docker/README.md").read_text()
        line = line.replace("docker run", f"docker run {HARDENED}")
    name = f"one-{hardened}".lower()
    process, address, token = lab(engine, line, name)
    try:
        notebook = Notebook(address, token)
        assert notebook.run(CELL).split()[0] == "999000.0"
        assert notebook.run("%%bash\nid -u; grep CapEff /proc/self/status").split() == [
            "1000", "CapEff:", "0000000000000000"]
        if hardened:
            assert "Read-only file system" in engine.tried(name, "touch", "/etc/x", user="0")[1]
            assert "Read-only file system" in engine.tried(name, "touch", "/opt/drupe/x", user="0")[1]
        notebook.close()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    finally:
        with contextlib.suppress(AssertionError):
            engine.docker("rm", "--force", name)
        process.communicate(timeout=60)
    until(lambda: name not in engine.there(), "--rm")


@pytest.mark.parametrize("maker", ["nvidia", "intel"])
def test_images_for_gpus(engine, person_image, maker):
    """There is no such GPU here, so the driver shows none; what matters is that it loads."""
    [line] = [one for one in lines("For one person", "docker build") if f"Dockerfile.{maker}" in one]
    engine.typed(line)
    run = ["run", "--rm", f"drupe-{maker}:0.1.0"]
    assert "host:cpu" in engine.docker(*run, "python", "-m", "drupe", "devices")
    assert engine.docker(*run, "id", "-u") == "1000"
    icd = engine.docker(*run, "cat", f"/etc/OpenCL/vendors/{maker}.icd")
    if maker == "intel":
        assert "not found" not in engine.docker(*run, "ldd", icd)
        engine.docker(*run, "python", "-c", f"import ctypes; ctypes.CDLL({icd!r})")
    else:
        assert icd == "libnvidia-opencl.so.1"  # the host's, which NVIDIA's toolkit mounts


# --- A hub -----------------------------------------------------------------------------------------------------------

class Visitor(hubs.Person):
    """Somebody with a server in a container."""

    def container(self):
        return f"jupyter-{self.name}"

    def start(self, profile):
        self.spawn(profile)
        until(self.ready, f"the server of {self.name}", STARTS)

    def notebook(self):
        return Notebook(f"{self.hub.address}/user/{self.name}", self.token)


class DockerHub:
    """The hub of docker/compose.yaml, and its broker as the host sees it."""

    address = "http://127.0.0.1:8000"

    def __init__(self, engine):
        self.engine = engine
        self.configuration = ROOT / "docker/broker.json"
        assert not self.configuration.exists(), "docker/broker.json is somebody's: move it away"

    def up(self):
        for line in docker_engine.blocks("A hub")[0]:
            if "compose" in line:
                assert line.startswith("DRUPE_HUB_PASSWORD=… ") and line.endswith(" up")
                line = line.replace("…", f"'{PASSWORD}'") + " --detach"
            self.engine.typed(line)
        self.answers()

    def answers(self):
        until(lambda: answers(self.address + "/hub/health"), "the hub", STARTS)

    def typed(self, what):
        self.engine.typed(f"docker compose -f docker/compose.yaml {what}", DRUPE_HUB_PASSWORD=PASSWORD)

    def container(self, service):
        return next(name for name in self.engine.running() if service in name and "docker" in name)

    def pid(self, service):
        return self.engine.inspect(self.container(service))["State"]["Pid"]

    def broker(self):
        folder = self.engine.docker("volume", "inspect", "--format", "{{.Mountpoint}}", "drupe-broker")
        return Broker(f"{folder}/broker.sock")

    def leases(self):
        with self.broker() as broker:
            return {lease["lease"]: lease for lease in broker.list()["leases"]}

    def waiting(self):
        with self.broker() as broker:
            return broker.list()["queue"]

    def lease_of(self, person):
        return next((lease for lease in self.leases().values() if lease["user"] == person.name), None)

    def held(self, person):
        """The lease, once the container's first process holds it."""
        pid = self.engine.inspect(person.container())["State"]["Pid"]
        return until(lambda: (lease := self.lease_of(person)) and lease["pid"] == pid and lease, "the lease's holder")

    def use(self, configuration):
        """Another configuration of the broker, which starts anew with it."""
        self.configuration.write_text(json.dumps(configuration))
        self.typed("restart broker")
        until(lambda: {one["id"] for one in self.devices()} == {one["id"] for one in configuration["devices"]}, "it")

    def devices(self):
        with contextlib.suppress(Exception), self.broker() as broker:
            return broker.list()["devices"]
        return []


@pytest.fixture(scope="module")
def hub(engine, person_image):
    if engine.compose is None:
        pytest.skip("the hub of containers was not seen: this machine has neither docker compose nor docker-compose")
    made = DockerHub(engine)
    try:
        made.up()
        yield made
    finally:
        for service in ("hub", "broker"):
            with contextlib.suppress(AssertionError, StopIteration):
                engine.typed(f"docker logs {made.container(service)}")
        with contextlib.suppress(AssertionError):
            made.typed("down")
        made.configuration.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def everybody(hub):
    return [Visitor(hub, name, PASSWORD) for name in ("anna", "bert", "cleo")]


@pytest.fixture
def people(hub, everybody):
    """Three who have nothing, before and after."""
    yield everybody
    for person in everybody:
        person.leave()
    until(lambda: not hub.leases(), "the end of all leases")


def test_two_have_a_container_each_and_the_third_waits(hub, people):
    first, second, third = people
    offered = first.page("/hub/spawn")
    assert 'value="cpu-part"' in offered and "drupe-profile" in offered
    with hub.broker() as broker:
        [cpu] = broker.list()["devices"]
        parts = next(one for one in broker.profiles() if one["name"] == "cpu-part")["parts"]
    crowd = [first, second][:cpu["parts"] // parts]
    for person in crowd:
        person.start("cpu-part")
        notebook = person.notebook()
        assert notebook.run(CELL).split() == ["999000.0", str(parts), "True"]
        notebook.close()
    assert {hub.held(person)["user"] for person in crowd} == {person.name for person in crowd}
    assert {person.container() for person in crowd} <= hub.engine.running()
    third.spawn("cpu-part")
    until(lambda: hub.waiting() == 1, "the third's place in the queue")
    assert third.server()["pending"] == "spawn" and third.container() not in hub.engine.running()
    assert "number 1 in the queue" in progress(third)
    first.stop()
    assert first.container() not in hub.engine.there()
    until(third.ready, "the third's server", STARTS)
    assert third.notebook().run(CELL).split()[0] == "999000.0"


def progress(person):
    """What the page of a user who waits says."""
    path = f"/hub/api/users/{person.name}/server/progress"
    with person.opener.open(person.hub.address + path, timeout=60) as answer:
        return next(line.decode() for line in answer if b"Waiting" in line)


def test_processors_are_limited_by_the_lease(hub, people):
    person = people[0]
    person.start("sub-device")
    quota = "cd /sys/fs/cgroup; cat cpu.max 2>/dev/null || cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us"
    found = [int(one) for one in hub.engine.tried(person.container(), "sh", "-c", quota)[1].split()]
    assert found[0] == found[1]  # one processor's time


def test_a_killed_container_returns_its_lease(hub, people):
    person = people[0]
    person.start("cpu-part")
    lease = hub.held(person)["lease"]
    os.kill(hub.engine.inspect(person.container())["State"]["Pid"], signal.SIGKILL)
    killed = time.monotonic()
    until(lambda: lease not in hub.leases(), "the lease's end")
    assert time.monotonic() - killed < BACK
    until(lambda: person.container() not in hub.engine.there(), "its removal")
    until(lambda: not person.server(), "the hub's notice", 120)


def test_leases_survive_the_brokers_container(hub, people):
    first, second = people[:2]
    first.start("sub-device")
    before = hub.held(first)
    old = hub.pid("broker")
    os.kill(old, signal.SIGKILL)

    def again():
        with contextlib.suppress(Exception):
            return hub.pid("broker") not in (0, old) and hub.leases()
        return None

    after = until(again, "the broker's new container")
    assert {name: lease["pid"] for name, lease in after.items()} == {before["lease"]: before["pid"]}
    second.start("sub-device")
    assert len(hub.leases()) == 2
    os.kill(before["pid"], signal.SIGKILL)  # the new broker watches the old holder
    until(lambda: hub.lease_of(first) is None, "the first's lease's end")


def test_servers_and_leases_survive_the_hubs_container(hub, people):
    person = people[0]
    person.start("cpu-part")
    before, old = hub.held(person), hub.pid("hub")
    notebook = person.notebook()
    notebook.run("x = 42")
    os.kill(old, signal.SIGKILL)
    until(lambda: "hub" in str(hub.engine.running()) and hub.pid("hub") not in (0, old), "the hub's new process")
    hub.answers()
    assert hub.lease_of(person) == before or hub.lease_of(person)["pid"] == before["pid"]
    until(person.ready, "the server")
    assert person.notebook().run("print(6 * 7)") == "42"
    person.stop()
    assert hub.lease_of(person) is None


def test_who_logs_out_leaves_nothing(hub, people):
    person = people[2]
    person.start("cpu-part")
    hub.held(person)
    person.page("/hub/logout")
    until(lambda: person.container() not in hub.engine.there(), "the container's removal")
    until(lambda: hub.lease_of(person) is None, "the lease's end")


# --- What containers enforce --------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def gpus(hub, everybody):
    """Two "GPUs", whose device files are real ones of this machine."""
    taken = {one.name for one in pathlib.Path("/sys/dev/char").iterdir()}
    if not {number for number, _ in NODES.values()} <= taken:
        pytest.skip("device files were not seen: this machine lacks /dev/fuse or /dev/loop-control")
    try:
        for node, (number, group) in NODES.items():
            os.mknod(node, stat.S_IFCHR | 0o660, os.makedev(*map(int, number.split(":"))))
            os.chown(node, 0, group)
            os.chmod(node, 0o660)
        devices = [{"id": f"gpu{index}", "kind": "gpu", "name": f"Test GPU {index}", "memory": 1 << 30,
                    "env": {"DRUPE_DEVICES": "host:*"}, "nodes": [node]} for index, node in enumerate(NODES)]
        hub.use({"devices": devices, "profiles": {"one-gpu": {"title": "One GPU", "kind": "gpu", "devices": 1}}})
        yield
    finally:
        for node in NODES:
            pathlib.Path(node).unlink(missing_ok=True)


OPEN = """
import os
try:
    os.close(os.open({node!r}, os.O_RDWR))
    print("open")
except OSError as error:
    print(type(error).__name__)
"""
MAKE = """
import os, stat
try:
    os.mknod("/tmp/own", stat.S_IFCHR | 0o666, os.makedev({number}))
    print("made")
except OSError as error:
    print(type(error).__name__)
"""
JOIN = "import os, sys\nopen(sys.argv[1] + '/cgroup.procs', 'w').write(str(os.getpid()))\n"


def control_group(pid):
    """The folder of the control group that decides on device files."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "devices" in controllers.split(","):
            return f"/sys/fs/cgroup/devices{path}"
        if not controllers and pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
            return f"/sys/fs/cgroup{path}"
    raise AssertionError("no control group has device files")


def test_a_container_opens_the_device_files_of_its_lease_only(hub, people, gpus):
    first, second = people[:2]
    for person in (first, second):
        person.start("one-gpu")
    own = {person: hub.held(person)["devices"][0]["nodes"][0] for person in (first, second)}
    assert set(own.values()) == set(NODES)
    for person, node in own.items():
        other = next(one for one in NODES if one != node)
        notebook = person.notebook()
        assert notebook.run(OPEN.format(node=node)) == "open"
        assert notebook.run(OPEN.format(node=other)) == "FileNotFoundError"
        made = MAKE.format(number=NODES[other][0].replace(":", ", "))
        assert notebook.run(made) == "PermissionError"
        # Root inside has no capability to make it, either.
        assert hub.engine.tried(person.container(), "python", "-c", made, user="0") == (0, "PermissionError")
        nodes_that_others_made(hub, person, notebook, node, other)
        notebook.close()


def nodes_that_others_made(hub, person, notebook, node, other):
    """Were the file there for everybody, the control group would refuse to open it, root with all capabilities, too."""
    pid = hub.engine.inspect(person.container())["State"]["Pid"]
    for path, number in (("own", NODES[node][0]), ("other", NODES[other][0])):
        made = f"/proc/{pid}/root/tmp/{path}"
        os.mknod(made, stat.S_IFCHR | 0o666, os.makedev(*map(int, number.split(":"))))
        os.chmod(made, 0o666)
    assert notebook.run(OPEN.format(node="/tmp/own")) == "open"
    assert notebook.run(OPEN.format(node="/tmp/other")) == "PermissionError"
    for path, answer in ((node, "open"), (other, "PermissionError")):
        done = subprocess.run([sys.executable, "-c", JOIN + OPEN.format(node=path), control_group(pid)],
                              capture_output=True, text=True, check=True)
        assert done.stdout.strip() == answer


SEEN = """
import glob, os
print(os.path.exists("/run/drupe"), os.path.exists("/var/run/docker.sock"), os.path.exists("/host/dev"))
print(sorted({open(path + "/cmdline").read().split(chr(0))[0] for path in glob.glob("/proc/[0-9]*")}))
print(os.listdir("/home"), os.listdir("/home/drupe"))
print([line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapEff", "CapBnd", "NoNewPrivs"))])
"""


def test_containers_see_neither_the_broker_nor_each_other(hub, people, gpus):
    first, second = people[:2]
    for person in (first, second):
        person.start("one-gpu")
    assert hub.engine.tried(second.container(), "touch", "/home/drupe/secret") == (0, "")
    files, processes, homes, rights = first.notebook().run(SEEN).splitlines()
    assert files == "False False False"
    assert "drupe-broker" not in processes and "dockerd" not in processes
    assert int(hub.engine.tried(first.container(), "sh", "-c", "ls -d /proc/[0-9]* | wc -l")[1]) < 10
    assert homes.startswith("['drupe'] ") and "secret" not in homes
    assert rights == "['0000000000000000', '0000000000000000', '1']"
    host = hub.engine.inspect(first.container())["HostConfig"]
    assert not host["Privileged"] and not host["PidMode"] and host["Memory"] > 0 and host["PidsLimit"] > 0


LISTEN = """
for path in ("/proc/net/tcp", "/proc/net/tcp6"):
    for line in open(path).readlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and not fields[1].partition(":")[0].endswith("7F"):
            print(int(fields[1].rpartition(":")[2], 16))
"""
ASK = """
import urllib.request
try:
    print(urllib.request.urlopen({url!r}, timeout=60).status)
except OSError as error:
    print(error)
"""


def test_what_a_container_reaches_of_the_others(hub, people, gpus):
    """Servers and the hub, which ask for a token; neither kernels nor the interface of the proxy."""
    first, second = people[:2]
    for person in (first, second):
        person.start("one-gpu")
    assert second.notebook().run(LISTEN) == "8888"
    [network] = hub.engine.inspect(second.container())["NetworkSettings"]["Networks"].values()
    notebook = first.notebook()
    for url, answer in ((f"http://{network['IPAddress']}:8888/user/{second.name}/api/contents", "403"),
                        ("http://hub:8081/hub/api/users", "403"), ("http://hub:8001/api/routes", "refused")):
        assert answer in notebook.run(ASK.format(url=url))
