"""What a Jupyter server takes for idle: cells and work of devices keep a kernel, what moves by itself does not. A
server ends idle kernels here after seconds; a second kernel, idle for a shorter time than the one in question, shows
that its time has come. `./dev hosted-test` runs this."""
import json
import os

import pytest
from brokers import until

servers = pytest.importorskip("servers")
pytest.importorskip("jupyter_server")

IDLE = 8  # seconds, more than a slow machine needs to start a kernel
CULLING = ("--MappingKernelManager.cull_idle_timeout=%d" % IDLE, "--MappingKernelManager.cull_interval=1",
           "--MappingKernelManager.cull_connected=True")
SETUP = ("import drupe, threading, os, time, testwork\nfrom drupe import _engine\nqueue = drupe.Queue('host')\n"
         "def gated(path):\n"
         "    hold = _engine._event_open('hold')\n"
         "    def wait():\n"
         "        while not os.path.exists(path): time.sleep(0.02)\n"
         "        hold._finish()\n"
         "    threading.Thread(target=wait, daemon=True).start()\n"
         "    return testwork.task(queue, 0, None, [hold])\n")

pytestmark = pytest.mark.skipif(not os.environ.get("DRUPE_TEST_HUB"), reason="./dev hosted-test runs it")


@pytest.fixture
def serve(tmp_path):
    """Start a server that ends idle kernels."""
    opened = []

    def start(**environment):
        opened.append(servers.Server(tmp_path / "server", *CULLING, application="jupyter_server", **environment))
        return opened[-1]

    yield start
    for server in opened:
        server.close()


class Culled:
    """A kernel of the server, and a client of it that speaks to the kernel itself."""

    def __init__(self, server):
        from jupyter_client import BlockingKernelClient

        self.server = server
        self.id = server.rest("api/kernels", "POST", {"name": "drupe"})["id"]
        path = server.folder / "runtime" / ("kernel-%s.json" % self.id)
        self.client = BlockingKernelClient(connection_file=str(path))
        self.client.load_connection_file()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=servers.TIMEOUT)

    def run(self, code):
        reply = self.client.execute_interactive(code, timeout=servers.TIMEOUT, output_hook=lambda message: None)
        assert reply["content"]["status"] == "ok", reply["content"]

    @property
    def model(self):
        return next((one for one in self.server.rest("api/kernels") if one["id"] == self.id), None)

    @property
    def state(self):
        return self.model["execution_state"] if self.model else "gone"

    def ask(self, command):
        """As the panel does. Whether the kernel answered."""
        content = {"type": "request", "seq": 1, "command": command, "arguments": {"after": 0}}
        message = self.client.session.msg("debug_request", content)
        self.client.control_channel.send(message)
        try:
            return self.client.get_control_msg(timeout=5)["content"]["success"]
        except Exception:
            return False

    def close(self):
        self.client.stop_channels()


def test_work_of_a_device_keeps_a_kernel_after_its_cell(serve, tmp_path):
    server = serve(DRUPE_BUSY_DEVICE="1")
    kernel = Culled(server)
    go = tmp_path / "go"
    kernel.run(SETUP + "event = gated(%r)" % str(go))
    until(lambda: kernel.state == "busy", "busy without a cell")
    other = Culled(server)
    other.run("1+1")
    until(lambda: other.state == "gone", "the idle kernel to be culled")
    assert kernel.state == "busy"
    kernel.run("x = 1")  # the idle of another request is not the end of it
    until(lambda: kernel.state == "busy", "busy after another cell")
    go.touch()
    until(lambda: kernel.state == "idle", "idle after the work")
    until(lambda: kernel.state == "gone", "the kernel to be culled when its work is over")
    kernel.close(), other.close()


def test_a_long_cell_is_activity_as_long_as_it_lasts(serve, tmp_path):
    """A hub looks at the last activity of the server alone: a cell that says nothing for hours would be none."""
    server = serve(DRUPE_BUSY_DEVICE="1", DRUPE_BUSY_PERIOD="1")
    kernel = Culled(server)
    go = tmp_path / "go"
    cell = kernel.client.execute("import os, time\nwhile not os.path.exists(%r): time.sleep(0.02)" % str(go))
    until(lambda: kernel.state == "busy", "the cell")
    for _ in range(2):
        before = kernel.model["last_activity"]
        until(lambda: kernel.model["last_activity"] > before, "activity in a cell that prints nothing")
    go.touch()
    assert kernel.client.get_shell_msg(timeout=servers.TIMEOUT)["parent_header"]["msg_id"] == cell
    until(lambda: kernel.state == "idle", "the end of the cell")
    last = kernel.model["last_activity"]
    until(lambda: kernel.state == "gone" or kernel.model["last_activity"] != last, "the kernel to be culled")
    assert kernel.state == "gone"
    kernel.close()


def test_without_the_policy_work_is_not_told(serve, tmp_path):
    server = serve(DRUPE_BUSY_DEVICE="0", DRUPE_LEASE="7", DRUPE_BROKER=str(tmp_path / "none"))
    kernel = Culled(server)
    kernel.run(SETUP + "event = gated(%r)" % str(tmp_path / "never"))
    until(lambda: kernel.state == "gone", "the kernel to be culled")
    kernel.close()


def test_dashboards_and_panels_do_not_keep_a_kernel(serve):
    """An open dashboard that has moved, and a panel that asks four times a second."""
    server = serve(DRUPE_BUSY_DEVICE="1")
    kernel = Culled(server)
    kernel.run("%dashboard\nimport drupe.array as da\nfloat(da.ones(100_000, device='host').sum())")
    answers = 0

    def gone():
        nonlocal answers
        answers += kernel.ask("drupe/view")
        return kernel.state == "gone"

    until(gone, "the kernel to be culled")
    assert answers > IDLE
    kernel.close()


def test_a_notebook_does_not_wait_for_the_work(spec_folder, tmp_path, monkeypatch):
    """Clients take the idle of their own request: a busy of nobody's does not hold them up."""
    import nbclient
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    monkeypatch.setenv("DRUPE_BUSY_DEVICE", "1")
    go = tmp_path / "go"
    code = [SETUP + "event = gated(%r)" % str(go), "time.sleep(1.5)", "2 + 2"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in code])
    manager = AsyncKernelManager(kernel_name="drupe", kernel_spec_manager=KernelSpecManager(
        kernel_dirs=[str(spec_folder)], ensure_native_kernel=False))
    nbclient.NotebookClient(book, km=manager, timeout=60).execute()
    assert book.cells[2].outputs[0]["data"]["text/plain"] == "4" and not go.exists()


def test_a_console_does_not_wait_for_the_work(data_folder, tmp_path, monkeypatch):
    from test_console import Console

    monkeypatch.setenv("DRUPE_BUSY_DEVICE", "1")
    (tmp_path / "setup.py").write_text(SETUP + "event = gated(%r)" % str(tmp_path / "go"))
    console = Console(data_folder)
    try:
        console.run("exec(open(%r).read())" % str(tmp_path / "setup.py"))
        console.run("time.sleep(1.5)")  # the kernel has said busy by now
        assert "4" in console.run("2 + 2")
    finally:
        console.close()


def test_a_busy_has_no_parent_and_ends(make_kernel, tmp_path):
    kernel = make_kernel(DRUPE_BUSY_DEVICE="1")
    go = tmp_path / "go"

    def of_nobody(state):
        return kernel.wait_iopub(lambda message: message["msg_type"] == "status" and not message["parent_header"]
                                 and message["content"]["execution_state"] == state, what=state)

    kernel.run(SETUP + "event = gated(%r)" % str(go))
    of_nobody("busy")
    run = kernel.run("1+1")
    kernel.wait_iopub(lambda message: message in kernel.log[kernel.log.index(run.messages[-1]) + 1:]
                      and message["content"].get("execution_state") == "busy", what="busy behind the idle")
    kernel.log.clear()
    go.touch()
    of_nobody("idle")
    assert json.dumps([one["content"] for one in kernel.log if one["msg_type"] == "error"]) == "[]"
