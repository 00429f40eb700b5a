"""A kernel on a machine of many people: what it shows of others, and what it leaves behind."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest
import support

SHIM = pathlib.Path(__file__).parents[2] / "build/tests/tests/unit/opencl/libopencl_shim.so"


@pytest.mark.skipif(not SHIM.exists(), reason="the C tests are not built, which have a driver that poses as a GPU's")
@pytest.mark.parametrize("hub", [True, False])
def test_a_gpu_is_scrubbed_when_the_kernel_ends(spec_folder, tmp_path, hub):
    """Local memory, and what a variable holds to the end."""
    log = tmp_path / "log"
    kernel = support.Kernel(spec_folder, {"DRUPE_LOG": str(log), "DRUPE_OPENCL_LIBRARY": str(SHIM),
                                          "OPENCL_SHIM_WORDS": "gpu", "JUPYTERHUB_API_TOKEN": "a-token" if hub else ""})
    run = kernel.run("import drupe.memory as dm\nheld = dm.MemoryUSMDevice(5 << 20, device='opencl:gpu')", timeout=60)
    assert run.status == "ok", run.reply
    kernel.manager.shutdown_kernel()
    kernel.close()
    assert ("local memory of opencl:gpu:0 overwritten" in log.read_text()) == hub
    assert "was not overwritten" not in log.read_text()
    assert not log.stat().st_mode & 0o077


only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start another user's process")
STRANGER = 1954321
TRY = """
import os, socket, sys

def refused(what, function, *arguments):
    try:
        function(*arguments)
        print(what, "is open")
    except PermissionError:
        pass

def connect(path):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)

pid, file, handle, *sockets = sys.argv[1:]
os.stat(file)  # it is its own mode that counts here, not that of its folder
refused("the connection file", open, file)
for path in sockets:
    refused(path, connect, path)
for name in ("environ", "mem", "maps"):
    refused(name, open, f"/proc/{pid}/{name}", "rb")
refused("the process", os.kill, int(pid), 15)
refused("its priority", os.setpriority, os.PRIO_PROCESS, int(pid), 19)

import drupe.memory
try:
    drupe.memory.IPCOpenMemHandle(bytes.fromhex(handle), "host")
    print("its device memory is open")
except drupe.DeviceError:
    pass
print("done")
"""


def as_stranger(*arguments, **options):
    return subprocess.Popen([sys.executable, *arguments], user=STRANGER, group=STRANGER, extra_groups=[], cwd="/",
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


@only_root
def test_another_user_reaches_nothing(spec_folder):
    """Neither what the kernel says, nor its memory, nor its process. The folder lets everybody in."""
    with tempfile.TemporaryDirectory(prefix="dk") as folder:
        os.chmod(folder, 0o755)
        kernel = support.Kernel(spec_folder, {"JUPYTERHUB_API_TOKEN": "a-token"}, transport="ipc",
                                ip=os.path.join(folder, "k"))
        try:
            run = kernel.run("import drupe.memory as dm\nheld = dm.MemoryUSMDevice(b'secret' * 10000, device='host')\n"
                             "dm.IPCGetMemHandle(held).hex()", timeout=60)
            info = kernel.manager.get_connection_info()
            sockets = ["%s-%s" % (info["ip"], info[port]) for port in info if port.endswith("_port")]
            assert len(sockets) == 5 and all(map(os.path.exists, sockets))
            home = pathlib.Path(folder, "home")
            home.mkdir()
            os.chown(home, STRANGER, STRANGER)
            handle = run.result.strip("'")
            other = as_stranger("-c", TRY, str(kernel.pid), kernel.manager.connection_file, handle, *sockets,
                                env={**os.environ, "HOME": str(home), "DRUPE_DEVICES": "host"})
            text, _ = other.communicate(timeout=120)
            assert text == "done\n"
            assert kernel.run("held.tobytes().count(b'secret')").result == "10000"
        finally:
            kernel.close()


@only_root
def test_nothing_of_others_is_shown(spec_folder):
    """Neither in reports of devices and memory, nor by the doctor, nor in figures of usage."""
    other = as_stranger("-c", "import time; x = b'x' * (300 << 20); print(1, flush=True); time.sleep(1000)",
                        "work-of-alice")
    kernel = support.Kernel(spec_folder, {"JUPYTERHUB_API_TOKEN": "a-token"})
    try:
        other.stdout.read(1)
        texts = []
        for cell in ("%devices -v -a", "import drupe.doctor; drupe.doctor.main([])",
                     "import drupe.array as da\nheld = da.ones(1000)\n%memory", "%dashboard"):
            texts.append(json.dumps(kernel.run(cell, timeout=120).messages, default=str))
        assert "host" in texts[0]
        raw = support.Raw(kernel.manager)
        raw.send("control", "usage_request")
        usage = raw.receive("control")["content"]
        raw.close()
        texts.append(json.dumps(usage))
        for text in texts:
            assert "work-of-alice" not in text and str(STRANGER) not in text
        assert usage["kernel_memory"] < 300 << 20  # it has the kernel's own and its children's
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
        kernel.close()
