"""How clients reach the kernel: Unix sockets, encryption, registration with a launcher."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest
import support
import zmq
from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session

PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


def write_private(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(0o600)
    return path


def start(path, **environment):
    return subprocess.Popen([sys.executable, "-m", "drupe", "-f", str(path)], stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "IPYTHONDIR": str(path.parent / "ipython"), **environment})


def refusal(path, **environment):
    """The one line with which the kernel refuses to start."""
    process = start(path, **environment)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 1 and text.startswith("drupe: ") and text.count("\n") == 1, text
    return text


def connect(path):
    client = BlockingKernelClient(connection_file=str(path))
    client.load_connection_file()
    client.hb_channel.time_to_dead = support.TIMEOUT  # else a busy machine's kernel is dead after a second
    client.start_channels()
    client.wait_for_ready(timeout=support.TIMEOUT)
    return client


def answers(client):
    """Run a cell through the client."""
    reply = client.execute_interactive("6*7", timeout=support.TIMEOUT, output_hook=lambda message: None)
    return reply["content"]["status"] == "ok"


def stop(client, process):
    client.shutdown()
    client.stop_channels()
    assert process.wait(timeout=20) == 0


# --- Unix sockets --------------------------------------------------------------------------------------------

@pytest.fixture
def short(tmp_path_factory):
    """A folder whose path leaves room in a socket's."""
    import tempfile
    with tempfile.TemporaryDirectory(prefix="dk") as folder:
        yield pathlib.Path(folder)


def ipc_paths(info):
    return [pathlib.Path("%s-%s" % (info["ip"], info[port])) for port in PORTS]


def ipc_file(folder, ports=(1, 2, 3, 4, 5)):
    info = {"transport": "ipc", "ip": str(folder / "k"), "key": "a-key", "signature_scheme": "hmac-sha256"}
    info.update(zip(PORTS, ports))
    return write_private(folder / "kernel.json", info), info


def test_ipc_with_jupyter_client(spec_folder, short, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(short))
    kernel = support.Kernel(spec_folder, transport="ipc")
    try:
        paths = ipc_paths(kernel.manager.get_connection_info())
        assert kernel.run("print('over a file'); 6*7").result == "42"
        for path in paths:
            assert stat.S_ISSOCK(path.stat().st_mode) and stat.S_IMODE(path.stat().st_mode) == 0o600
        raw = support.Raw(kernel.manager)
        raw.send("control", "connect_request")
        content = raw.receive("control")["content"]
        assert sorted(content[port] for port in PORTS) == [1, 2, 3, 4, 5]
        raw.close()
        kernel.manager.restart_kernel()
        kernel.client.wait_for_ready(timeout=support.TIMEOUT)
        assert kernel.run("1+1").result == "2"
        kernel.run("import os; os.chdir('/')")
        kernel.client.shutdown()
        assert kernel.manager.provisioner.process.wait(timeout=20) == 0
        assert not [path for path in paths if path.exists()], "sockets are left behind"
    finally:
        kernel.close()


def test_ipc_ports_of_0_are_chosen(short):
    path, info = ipc_file(short, [0] * 5)
    write_private(short / "k-2", "in the way")  # somebody else's: stays
    process = start(path)
    support.wait_until(lambda: json.loads(path.read_text())["hb_port"], what="the chosen ports")
    chosen = json.loads(path.read_text())
    assert sorted(chosen[port] for port in PORTS) == [1, 3, 4, 5, 6]
    client = connect(path)
    assert answers(client)
    stop(client, process)
    assert (short / "k-2").read_text() == "in the way"
    assert sorted(p.name for p in short.glob("k-*")) == ["k-2"]


def test_ipc_sockets_of_a_dead_kernel_are_replaced(short):
    path, info = ipc_file(short)
    for leftover in ipc_paths(info):
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(leftover))
        dead.close()
    process = start(path)
    client = connect(path)
    assert answers(client)
    stop(client, process)


def test_ipc_somebody_listens_or_something_else_is_there(short):
    path, info = ipc_file(short)
    alive = socket.socket(socket.AF_UNIX)
    alive.bind(info["ip"] + "-3")
    alive.listen()
    assert "another program has this port" in refusal(path)
    other = socket.socket(socket.AF_UNIX)
    other.connect(info["ip"] + "-3")  # it was left alone
    other.close()
    alive.close()
    os.unlink(info["ip"] + "-3")
    write_private(pathlib.Path(info["ip"] + "-3"), "precious")
    assert "not a socket" in refusal(path)
    assert pathlib.Path(info["ip"] + "-3").read_text() == "precious"
    assert sorted(p.name for p in short.glob("k-*")) == ["k-3"], "sockets of a failed start are left behind"


def test_ipc_path_too_long(short):
    path, info = ipc_file(short)
    write_private(path, {**info, "ip": str(short / ("x" * 100))})
    assert "Unix sockets allow" in refusal(path)


# --- Encryption ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("transport", ["tcp", "ipc"])
@pytest.mark.parametrize("policy", ["auto", "required"])
def test_curve_with_jupyter_client(spec_folder, short, monkeypatch, transport, policy):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(short))
    kernel = support.Kernel(spec_folder, transport=transport, transport_encryption=policy)
    try:
        info = kernel.manager.get_connection_info()
        assert len(info["curve_secretkey"]) == 40
        assert kernel.run("6*7").result == "42"
        # The C library sends a signal to every thread for that; the heartbeat goes on.
        assert kernel.run("import os; os.setegid(os.getegid())").status == "ok"
        beat = kernel.manager.connect_hb()
        beat.send(b"beat")
        assert beat.poll(support.TIMEOUT * 1000) and beat.recv() == b"beat"
        beat.close(linger=0)
        stranger = zmq.Context()
        for name, kind in (("shell", zmq.DEALER), ("control", zmq.DEALER), ("iopub", zmq.SUB), ("hb", zmq.REQ)):
            link = stranger.socket(kind)
            link.linger = 0
            # A refused handshake takes the link's pipe away, and a send without one would wait for ever.
            link.sndtimeo = 300
            if kind == zmq.SUB:
                link.subscribe(b"")
            link.connect("%s://%s%s%d" % (transport, info["ip"], "-" if transport == "ipc" else ":",
                                          info[name + "_port"]))
            with contextlib.suppress(zmq.Again):
                if kind == zmq.DEALER:
                    session = Session(key=info["key"].encode() if isinstance(info["key"], str) else info["key"])
                    session.send(link, "kernel_info_request")
                elif kind == zmq.REQ:
                    link.send(b"ping")
            assert not link.poll(300), "%s answers without keys" % name
        stranger.destroy(linger=0)
        kernel.manager.restart_kernel()
        kernel.client.wait_for_ready(timeout=support.TIMEOUT)
        assert kernel.run("1+1").result == "2"
        assert kernel.manager.get_connection_info()["curve_secretkey"] == info["curve_secretkey"]
    finally:
        kernel.close()


def test_with_curve_a_new_client_says_nothing_to_the_others(tmp_path, gate):
    """libzmq sends what it sends to all: who knows that its cell runs is not told so again. Nobody here asks for
    kernel_info, whose idle would come in between."""
    public, secret = zmq.curve_keypair()
    path = tmp_path / "connection.json"
    write_connection_file(str(path), key=b"k", curve_publickey=public, curve_secretkey=secret)
    process = start(path)
    clients = [BlockingKernelClient(connection_file=str(path)) for _ in range(2)]

    def join(client):
        client.load_connection_file()
        client.start_channels(stdin=False, hb=False)
        until(client, "iopub_welcome")

    def until(client, *last):
        """The messages up to a welcome, or to a status."""
        seen = []
        while not seen or seen[-1][-len(last):] != last:
            message = client.get_iopub_msg(timeout=support.TIMEOUT)
            state = message["content"].get("execution_state")
            seen.append((message["msg_type"], state) if state else (message["msg_type"],))
        return seen

    try:
        one, other = clients
        join(one)
        one.execute(gate.wait)
        until(one, "execute_input")
        join(other)
        gate.open()
        assert until(one, "status", "idle") == [("iopub_welcome",), ("status", "idle")]
    finally:
        gate.open()
        for client in clients:
            client.stop_channels()
        process.kill()
        process.wait()


def test_curve_keys_that_do_not_fit(tmp_path):
    public, _ = zmq.curve_keypair()
    _, secret = zmq.curve_keypair()
    info = {"ip": "127.0.0.1", "key": "k", "curve_publickey": public.decode(), "curve_secretkey": secret.decode()}
    text = refusal(write_private(tmp_path / "c.json", {**info, **dict.fromkeys(PORTS, 0)}))
    assert "not a pair" in text and secret.decode() not in text


# --- Registration --------------------------------------------------------------------------------------------

class Launcher:
    """The launcher's side of the handshake."""

    def __init__(self, folder, transport="tcp", **fields):
        self.session = Session(key=b"launch-key")
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.ROUTER)
        self.socket.linger = 0
        if transport == "tcp":
            ip, port = "127.0.0.1", self.socket.bind_to_random_port("tcp://127.0.0.1")
        else:
            ip, port = str(folder / "r"), 1
            self.socket.bind("ipc://%s-1" % ip)
        self.file = {"kernel_id": "an/id", "transport": transport, "registration_ip": ip, "registration_port": port,
                     "signature_scheme": "hmac-sha256", "key": "launch-key", **fields}
        self.path = write_private(folder / "registration.json", self.file)

    def receive(self):
        """The identities and the content of a registration, its signature checked."""
        assert self.socket.poll(support.TIMEOUT * 1000), "no registration"
        identities, (signature, content) = self.session.feed_identities(self.socket.recv_multipart())
        assert signature == self.session.sign([content])
        return identities, json.loads(content)

    def acknowledge(self, identities, content=b"{}", signature=None):
        self.socket.send_multipart([*identities, b"<IDS|MSG>", signature or self.session.sign([content]), content])

    def close(self):
        self.context.destroy(linger=0)


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_registration(short, transport):
    launcher = Launcher(short, transport)
    before = launcher.path.read_text()
    process = start(launcher.path, JUPYTER_RUNTIME_DIR=str(short / "new" / "runtime"))
    identities, content = launcher.receive()
    assert content.pop("kernel_id") == "an/id"
    assert sorted(content) == sorted(PORTS) and all(isinstance(port, str) for port in content.values())
    launcher.acknowledge(identities, b'{"status": "fine"}')
    own = short / "new" / "runtime" / "kernel-an_id.json"
    support.wait_until(own.exists, what="the kernel's own connection file")
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert {port: str(json.loads(own.read_text())[port]) for port in PORTS} == content
    assert launcher.path.read_text() == before
    client = connect(own)
    assert answers(client)
    launcher.close()  # a launcher may
    assert answers(client)
    stop(client, process)
    assert not own.exists(), "its connection file is left behind"
    assert sorted(p.name for p in short.iterdir() if p.name != "r-1") == ["ipython", "new", "registration.json"]


def test_a_launcher_that_does_not_acknowledge(tmp_path):
    launcher = Launcher(tmp_path)
    process = start(launcher.path, JUPYTER_RUNTIME_DIR=str(tmp_path))
    identities, _ = launcher.receive()
    launcher.acknowledge(identities, signature=b"0" * 64)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 1 and text.count("\n") == 1
    assert "did not acknowledge" in text and "not signed with the key" in text and "launch-key" not in text
    assert not list(tmp_path.glob("kernel-*"))
    launcher.close()


def test_a_launcher_that_is_not_there(tmp_path):
    launcher = Launcher(tmp_path)
    launcher.close()
    started = time.monotonic()
    assert "check that it is running" in refusal(launcher.path)
    assert time.monotonic() - started > 4


# --- Connection files ----------------------------------------------------------------------------------------

def tcp_file(path, **fields):
    info = {"transport": "tcp", "ip": "127.0.0.1", "key": "a-key", "signature_scheme": "hmac-sha256",
            **dict.fromkeys(PORTS, 0)}
    return write_private(path, {**info, **fields})


def test_a_half_written_file_is_waited_for(tmp_path):
    path = tcp_file(tmp_path / "c.json")
    whole = path.read_text()
    path.write_text(whole[:40])
    process = start(path)
    time.sleep(0.3)
    path.write_text(whole)
    support.wait_until(lambda: json.loads(path.read_text() or "{}").get("hb_port"), what="the chosen ports")
    client = connect(path)
    assert answers(client)
    stop(client, process)


@pytest.mark.parametrize("fields, advice", [
    ({"transport": "pigeon"}, '"tcp" or "ipc"'),
    ({"signature_scheme": "hmac-nothing"}, "hmac-sha256"),
    ({"signature_scheme": "sha256"}, "hmac-sha256"),
    ({"ip": "203.0.113.9"}, 'check "ip"'),
    ({"ip": "no such place"}, 'check "ip"'),
    ({"shell_port": "99999"}, "0 to 65535"),
    ({"curve_publickey": "x"}, "40 characters"),
])
def test_files_that_are_refused(tmp_path, fields, advice):
    text = refusal(tcp_file(tmp_path / "c.json", **fields))
    assert advice in text and "a-key" not in text


def test_a_port_that_is_taken(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        text = refusal(tcp_file(tmp_path / "c.json", control_port=other.getsockname()[1]))
    assert "another program has this port" in text and "control" in text


def test_a_port_that_becomes_free_is_taken(tmp_path):
    other = socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen()
    path = tcp_file(tmp_path / "c.json", control_port=str(other.getsockname()[1]))  # as text, too
    process = start(path)
    time.sleep(0.4)
    other.close()
    support.wait_until(lambda: json.loads(path.read_text() or "{}").get("hb_port"), what="the chosen ports")
    client = connect(path)
    assert answers(client)
    stop(client, process)


def test_a_file_that_others_may_read(tmp_path):
    path = tcp_file(tmp_path / "c.json")
    path.chmod(0o644)
    assert "chmod 600" in refusal(path)
    # What Jupyter's own programs are told where the file system keeps no modes.
    process = start(path, JUPYTER_ALLOW_INSECURE_WRITES="1")
    support.wait_until(lambda: json.loads(path.read_text() or "{}").get("hb_port"), what="the chosen ports")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)


def test_without_a_key_nothing_is_signed(tmp_path):
    path = tcp_file(tmp_path / "c.json", key="")
    process = start(path)
    support.wait_until(lambda: json.loads(path.read_text() or "{}").get("hb_port"), what="the chosen ports")
    client = connect(path)
    assert answers(client)
    stop(client, process)
