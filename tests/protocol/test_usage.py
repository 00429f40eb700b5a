"""usage_request: answered in C whatever Python does, with the limits of the control groups."""
import contextlib
import importlib.util
import json
import os
import time
import urllib.error
import urllib.request

import psutil
import pytest
import support



def ask(raw, channel="control"):
    asked = raw.send(channel, "usage_request")
    reply = raw.receive(channel)
    assert reply["msg_type"] == "usage_reply" and reply["parent_header"]["msg_id"] == asked
    assert raw.status_of(asked)[:2] == ["busy", "idle"]
    return reply["content"]


@pytest.mark.parametrize("channel", ["control", "shell"])
def test_members(kernel, raw, channel):
    content = ask(raw, channel)
    assert content["hostname"] == os.uname().nodename and content["pid"] == kernel.pid
    assert content["cpu_count"] == len(os.sched_getaffinity(0)) or content["cpu_count"] >= 1
    process = psutil.Process(kernel.pid)
    resident = sum(p.memory_info().rss for p in [process, *process.children(recursive=True)])
    assert 0.2 * resident < content["kernel_memory"] <= 1.1 * resident
    memory = content["host_virtual_memory"]
    assert {"active", "available", "free", "inactive", "percent", "total", "used", "wired"} <= set(memory)
    assert 0 < memory["available"] <= memory["total"] <= psutil.virtual_memory().total
    assert 0 < memory["percent"] < 100
    assert content["devices"] == []


def test_cpu_and_children(fresh):
    raw = support.Raw(fresh.manager)
    try:
        first = ask(raw)
        assert "host_cpu_percent" not in first and first["kernel_cpu"] == 0
        run = fresh.run("import subprocess, sys\nblock = bytearray(100 << 20)\n"
                        "child = subprocess.Popen([sys.executable, '-c', 'b = bytearray(100 << 20); input()'], "
                        "stdin=-1,"
                        " stdout=-1)\nsum(range(30000000))")
        assert run.status == "ok"

        def grown():
            content = ask(raw)
            time.sleep(0.25)
            return content["kernel_memory"] - first["kernel_memory"] > 180 << 20 and content

        support.wait_until(grown, what="the child's memory")
        fresh.run("child.communicate(b'\\n')\ntotal = sum(range(30000000))")
        assert ask(raw)["kernel_cpu"] > 0
        assert ask(raw).get("host_cpu_percent", 1) > 0
    finally:
        raw.close()


def test_while_python_is_stuck(fresh, tmp_path):
    raw = support.Raw(fresh.manager)
    with contextlib.closing(raw):
        fresh.run("1")
        with support.stuck(fresh, tmp_path) as cell:
            assert ask(raw)["pid"] == fresh.pid
            assert cell.free().status == "ok"


def test_devices(fresh):
    raw = support.Raw(fresh.manager)
    try:
        fresh.run("import drupe\nmemory = drupe.memory.MemoryUSMDevice(1 << 20, device='host')")
        (device,) = ask(raw)["devices"]
        assert device["backend"] == "host" and device["filter"] == "host:cpu:0" and device["name"]
        assert device["memory_used"] == 1 << 20 and device["memory_total"] > 1 << 30
        fresh.run("del memory")
        assert ask(raw)["devices"][0]["memory_used"] == 0
    finally:
        raw.close()


def version_2(folder):
    """Nested groups: the outer one has the smaller memory limit, the inner one the smaller share of CPUs."""
    outer, inner = folder / "mount" / "pod", folder / "mount" / "pod" / "box"
    inner.mkdir(parents=True)
    (folder / "self" / "cgroup").write_text("0::/pod/box\n")
    (folder / "self" / "mountinfo").write_text("30 24 0:26 / %s rw - cgroup2 cgroup2 rw\n" % (folder / "mount"))
    (outer / "memory.max").write_text("%d\n" % (1 << 30))
    (inner / "memory.max").write_text("max\n")
    (inner / "memory.high").write_text("%d\n" % (2 << 30))
    (outer / "memory.current").write_text("%d\n" % (700 << 20))
    (outer / "memory.stat").write_text("anon 1\nactive_anon 300000000\ninactive_anon 5\nactive_file 7\n"
                                       "inactive_file %d\nfile 11\nshmem 13\nunevictable 17\n" % (200 << 20))
    (outer / "cpu.max").write_text("max 100000\n")
    (inner / "cpu.max").write_text("50000 100000\n")
    (inner / "cpu.stat").write_text("usage_usec 1000\n")


def version_1(folder):
    """As in a container that sees its own group as the mount's root."""
    for name in ("memory", "cpu"):
        (folder / name).mkdir(parents=True)
    (folder / "self" / "cgroup").write_text("4:memory:/docker/77\n3:cpu,cpuacct:/docker/77\n0::/\n")
    (folder / "self" / "mountinfo").write_text(
        "33 24 0:28 /docker/77 %s rw - cgroup cgroup rw,memory\n34 24 0:29 /docker/77 %s rw - cgroup cgroup "
        "rw,cpu,cpuacct\n" % (folder / "memory", folder / "cpu"))
    (folder / "memory" / "memory.limit_in_bytes").write_text("%d\n" % (1 << 30))
    (folder / "memory" / "memory.usage_in_bytes").write_text("%d\n" % (700 << 20))
    (folder / "memory" / "memory.stat").write_text("inactive_file 1\ntotal_active_anon 300000000\ntotal_active_file 7\n"
                                                   "total_inactive_anon 5\ntotal_inactive_file %d\n" % (200 << 20))
    (folder / "cpu" / "cpu.cfs_quota_us").write_text("50000\n")
    (folder / "cpu" / "cpu.cfs_period_us").write_text("100000\n")


@pytest.mark.parametrize("write", [version_2, version_1])
def test_limits(spec_folder, tmp_path, write):
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text("MemTotal: 16777216 kB\nMemFree: 8388608 kB\nMemAvailable: 12582912 kB\n")
    write(tmp_path)
    kernel = support.Kernel(spec_folder, {"DRUPE_TEST_PROC": str(tmp_path)})
    try:
        raw = support.Raw(kernel.manager)
        content = ask(raw)
        raw.close()
        memory = content["host_virtual_memory"]
        assert memory["total"] == 1 << 30 and memory["used"] == 500 << 20
        assert memory["available"] == (1 << 30) - (500 << 20) and memory["free"] == (1 << 30) - (700 << 20)
        assert memory["percent"] == 48.8
        assert memory["active"] == 300000007 and memory["inactive"] == 5 + (200 << 20)
        assert content["cpu_count"] == 1
    finally:
        kernel.close()


@pytest.mark.skipif(not importlib.util.find_spec("jupyter_resource_usage"), reason="needs jupyter-resource-usage")
def test_jupyter_resource_usage(spec_folder, tmp_path):
    """The server extension asks the kernel and passes on what it says."""
    import signal
    import subprocess
    import sys

    runtime = tmp_path / "runtime"
    environment = {**os.environ, "JUPYTER_RUNTIME_DIR": str(runtime), "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    argv = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--port=0",
            "--IdentityProvider.token=t",
            "--ServerApp.jpserver_extensions={'jupyter_resource_usage': True}", "--ServerApp.root_dir=" + str(tmp_path),
            "--KernelSpecManager.kernel_dirs=" + str(spec_folder), "--KernelSpecManager.ensure_native_kernel=False"]
    server = subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        info = json.loads(support.wait_until(
            lambda: next((p.read_text() for p in runtime.glob("jpserver-*.json")), None), 60, "the server"))

        def listens():
            try:
                return call("api")
            except urllib.error.URLError:
                return None

        def call(path, data=None):
            request = urllib.request.Request(info["url"] + path, data, {"Authorization": "token t"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())

        support.wait_until(listens, 60, "the server to listen")
        kernel = call("api/kernels", json.dumps({"name": "drupe"}).encode())
        usage = call("api/metrics/v1/kernel_usage/get_usage/" + kernel["id"])["content"]
        assert usage["pid"] > 0 and usage["kernel_memory"] > 1 << 20 and usage["host_virtual_memory"]["total"] > 0
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(support.TIMEOUT)
