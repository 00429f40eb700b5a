"""The hub of docs/hosting.md, section 2, as it stands there: accounts log in by PAM with their own passwords."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import urllib.error

import hub as hubs
import pytest
from brokers import until
from daemon import ROOT, Daemon

from drupe.hosted.run import unreachable

GROUP, ADMIN = "dhpeople", "dhcarol"
PASSWORDS = {"dhdora": "dora's plum", "dhemil": "emil's pear", "dhfred": "fred's fig", ADMIN: "carol's quince"}


def lacking():
    if os.geteuid() != 0 or not shutil.which("useradd") or not shutil.which("chpasswd"):
        return "accounts are made by root, with useradd"
    if not pathlib.Path("/etc/pam.d/login").exists():
        return "this machine has no PAM"
    if not hubs.PROXY.exists() or not shutil.which("node"):
        return "the hub's proxy is not installed: ./dev hosted-test installs it"
    if unreachable(sys.executable):
        return f"other accounts may not enter {unreachable(sys.executable)}"
    return None


pytestmark = pytest.mark.skipif(lacking() is not None, reason=str(lacking()))
pytest.importorskip("jupyterhub", reason="./dev hosted-test installs JupyterHub")


@pytest.fixture(scope="module")
def accounts():
    made = {}
    try:
        subprocess.run(["groupadd", GROUP], check=True)
        for name, password in PASSWORDS.items():
            made[name] = hubs.Account(name)
            subprocess.run(["chpasswd"], input=f"{name}:{password}\n", text=True, check=True)
            if name != "dhfred":
                subprocess.run(["usermod", "--append", "--groups", GROUP, name], check=True)
        yield made
    finally:
        for account in made.values():
            account.remove()
        subprocess.run(["groupdel", GROUP], check=False)


class DocumentedHub:
    """`jupyterhub --config FILE` with the file of the page, whose paths, port and names are the test's own."""

    def __init__(self, folder):
        self.port = hubs.free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.run = pathlib.Path(f"/run/drupe-hub-{self.port}")
        self.log = folder / "hub.log"
        page = (ROOT / "docs/hosting.md").read_text()
        text = re.search(r"### 2\. JupyterHub with local accounts.*?```python\n(.*?)```", page, re.S)[1]
        for there, here in (("/run/drupe-hub", str(self.run)), ("/srv/drupe-hub", str(folder / "state")),
                            ("http://127.0.0.1:8000", self.address), ('"users"', f'"{GROUP}"'),
                            ('"carol"', f'"{ADMIN}"')):
            assert there in text
            text = text.replace(there, here)
        config = folder / "jupyterhub_config.py"
        config.write_text(text)
        proxy = folder / "bin/configurable-http-proxy"
        proxy.parent.mkdir()
        proxy.symlink_to(hubs.PROXY)
        path = f"{proxy.parent}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["jupyterhub", "--config", config], stdout=log, stderr=log, cwd=folder,
                                            env={**os.environ, "PATH": path})
        until(lambda: "JupyterHub is now running" in self.log.read_text() or self.process.poll() is not None, "the hub")
        assert self.process.poll() is None, self.log.read_text()

    def stop(self):
        """At once: test_hub.py has a hub end in order."""
        for pid in [self.process.pid, *hubs.children(self.process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(60)
        shutil.rmtree(self.run, ignore_errors=True)


@pytest.fixture(scope="module")
def hub(accounts, tmp_path_factory):
    daemon = Daemon(tmp_path_factory.mktemp("broker"))
    before = os.environ.get("DRUPE_BROKER")
    os.environ["DRUPE_BROKER"] = daemon.path
    made = None
    try:
        made = DocumentedHub(tmp_path_factory.mktemp("hub"))
        yield made
    finally:
        if made:
            made.stop()
        daemon.kill()
        os.environ.pop("DRUPE_BROKER") if before is None else os.environ.update(DRUPE_BROKER=before)


def test_accounts_log_in_with_their_own_passwords(hub, accounts):
    hub.admin = hubs.Person(hub, ADMIN, PASSWORDS[ADMIN])
    people = [hubs.Person(hub, name, PASSWORDS[name]) for name in ("dhdora", "dhemil")]
    for person in people:
        person.spawn("one-gpu")
    for person in people:
        until(person.ready, "the server")
    masks = set()
    for person in people:
        for pid in (person.server_pid(), person.kernel()):
            ids = re.search(r"^Uid:(.*)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]
            assert set(ids.split()) == {accounts[person.name].run("id", "-u").strip()}
        environment = hubs.environment(pid)
        assert environment["HOME"] == f"/home/{person.name}" and environment["USER"] == person.name
        masks.add(environment["CUDA_VISIBLE_DEVICES"])
    assert masks == {"0", "1"}
    assert {one["name"]: one["admin"] for one in hub.admin.get("/hub/api/users")} == {
        "dhdora": False, "dhemil": False, ADMIN: True}
    with pytest.raises(urllib.error.HTTPError) as refused:
        people[0].get("/hub/api/users")
    assert refused.value.code == 403


def test_others_stay_outside(hub):
    """Another's password, and the right one of an account that is in none of the groups."""
    for name, password, why in (("dhdora", PASSWORDS["dhemil"], "PAM Authentication failed ('dhdora'"),
                                ("dhfred", PASSWORDS["dhfred"], "User 'dhfred' not allowed")):
        with pytest.raises((urllib.error.HTTPError, StopIteration)):
            hubs.Person(hub, name, password)
        assert why in hub.log.read_text()
