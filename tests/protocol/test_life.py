"""Start, shutdown, restart, the parent's death, and the commands of python -m drupe."""
import json
import os
import subprocess
import sys
import time

import psutil
import pytest
import support


def drupe(*arguments, **environment):
    return subprocess.run([sys.executable, "-m", "drupe", *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


def wait_gone(pid, timeout=support.TIMEOUT):
    def gone():
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    support.wait_until(gone, timeout, "process %d to end" % pid)


def test_shutdown_runs_the_exit_hooks_and_ends_with_0(fresh, tmp_path):
    fresh.run("import atexit, pathlib\natexit.register(pathlib.Path(%r).write_text, 'ran')" % str(tmp_path / "hook"))
    fresh.client.shutdown()
    assert fresh.manager.provisioner.process.wait(support.TIMEOUT) == 0
    assert (tmp_path / "hook").read_text() == "ran"


def test_shutdown_breaks_a_running_cell(fresh):
    msg_id = fresh.send("import time; time.sleep(600)")
    fresh.started(msg_id)
    fresh.client.shutdown()
    assert fresh.manager.provisioner.process.wait(support.TIMEOUT) == 0


def test_shutdown_breaks_an_awaiting_cell_and_its_tasks(fresh, tmp_path):
    msg_id = fresh.send("import asyncio, pathlib\nasync def t():\n    try:\n        print('begun')\n"
                        "        await asyncio.sleep(600)\n"
                        "    finally:\n        pathlib.Path(%r).write_text('cleaned')\n"
                        "task = asyncio.create_task(t())\nawait asyncio.sleep(600)" % str(tmp_path / "f"))
    fresh.told(msg_id, "begun")
    fresh.client.shutdown()
    assert fresh.manager.provisioner.process.wait(support.TIMEOUT) == 0
    assert (tmp_path / "f").read_text() == "cleaned"


def test_threads_do_not_hold_up_the_end(fresh):
    fresh.run("import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()")
    fresh.client.shutdown()
    assert fresh.manager.provisioner.process.wait(support.TIMEOUT) == 0


def test_shutdown_on_the_shell_channel(fresh):
    message = fresh.client.session.msg("shutdown_request", {"restart": False})
    fresh.client.shell_channel.send(message)
    assert fresh.reply(message["header"]["msg_id"])["content"]["status"] == "ok"
    assert fresh.manager.provisioner.process.wait(support.TIMEOUT) == 0


def test_restart(fresh):
    fresh.run("kept = 1")
    old = fresh.pid
    fresh.manager.restart_kernel()
    assert fresh.pid != old
    wait_gone(old)
    fresh.client.wait_for_ready(timeout=support.TIMEOUT)
    assert fresh.run("'kept' in globals()").result == "False"
    assert fresh.run("1").reply["execution_count"] == 2


def test_the_kernel_ends_with_its_parent(spec_folder, tmp_path):
    """A launcher that is killed leaves no kernel behind."""
    launcher = subprocess.Popen(
        [sys.executable, "-c",
         "import sys, time\nsys.path.insert(0, %r)\nimport support\n"
         "k = support.Kernel(%r)\nprint(k.pid, flush=True)\ntime.sleep(600)"
         % (os.path.dirname(support.__file__), str(spec_folder))],
        stdout=subprocess.PIPE, text=True)
    pid = int(launcher.stdout.readline())
    assert psutil.pid_exists(pid)
    launcher.kill()
    launcher.wait()
    wait_gone(pid)


def test_the_kernel_ends_with_a_parent_that_it_has_not_seen(tmp_path):
    """A launcher that is killed at once; DRUPE_LOCAL_PARENT says that it is not merely out of sight."""
    launcher = subprocess.Popen([sys.executable, "-c", ""])
    launcher.wait()
    parent = str(launcher.pid)
    kernels = []
    for name, other in (("near", {"DRUPE_LOCAL_PARENT": parent}), ("far", {}), ("older", {"DRUPE_LOCAL_PARENT": "3"})):
        path = tmp_path / f"{name}.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps({"transport": "ipc", "ip": str(tmp_path / name), "key": "k" * 32,
                                    "signature_scheme": "hmac-sha256", "shell_port": 1, "iopub_port": 2,
                                    "stdin_port": 3, "control_port": 4, "hb_port": 5}))
        kernels.append(subprocess.Popen([sys.executable, "-m", "drupe", "-f", str(path)], stdin=subprocess.DEVNULL,
                                        env={**os.environ, "JPY_PARENT_PID": parent, **other}))
    try:
        kernels[0].wait(support.TIMEOUT)
        assert [kernel.poll() for kernel in kernels[1:]] == [None, None]
    finally:
        for kernel in kernels:
            kernel.kill()
            kernel.wait()


def test_shutdown_ends_what_the_kernel_started(fresh, tmp_path):
    """Also in sessions of their own. Whoever is to outlive the kernel detaches twice, as a daemon does."""
    run = fresh.run("import os, subprocess\n"
                    "plain = subprocess.Popen(['sleep', '600'])\n"
                    "own = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
                    "subprocess.run(['sh', '-c', 'setsid sleep 600 >/dev/null 2>&1 & echo $! > %s'], check=True)\n"
                    "(plain.pid, own.pid, int(open(%r).read()))" % (tmp_path / "pid", str(tmp_path / "pid")))
    plain, own, daemon = (int(part) for part in run.result.strip("()").split(","))
    fresh.client.shutdown()
    assert fresh.manager.provisioner.process.wait(support.TIMEOUT) == 0
    wait_gone(plain)
    wait_gone(own)
    assert psutil.Process(daemon).status() != psutil.STATUS_ZOMBIE
    os.kill(daemon, 9)


def test_shutdown_ends_who_ignores_it(fresh, tmp_path):
    """SIGTERM is for those that clean up. Also where the process between, which does not ignore it, has gone first."""
    deaf = "import os, pathlib, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" \
           "pathlib.Path(%r).write_text(str(os.getpid())); time.sleep(600)"
    paths = [str(tmp_path / name) for name in ("child", "grandchild")]
    fresh.run("import os, subprocess, sys, time\n"
              "subprocess.Popen([sys.executable, '-c', %r])\n"
              "subprocess.Popen([sys.executable, '-c', 'import subprocess, sys; subprocess.run(sys.argv[1:])', "
              "sys.executable, '-c', %r], start_new_session=True)\n"
              "while not all(os.path.exists(path) and open(path).read() for path in %r): time.sleep(0.01)"
              % (deaf % paths[0], deaf % paths[1], paths))
    fresh.client.shutdown()
    assert fresh.manager.provisioner.process.wait(support.TIMEOUT) == 0
    for path in paths:
        wait_gone(int(open(path).read()))


def test_a_parent_that_is_dead_before_the_start(tmp_path):
    """A process that JPY_PARENT_PID names and nobody finds may live in another namespace: the kernel serves, and ends
    with the process that started it."""
    from jupyter_client import BlockingKernelClient
    from jupyter_client.connect import write_connection_file
    path, _ = write_connection_file(str(tmp_path / "c.json"))
    dead = subprocess.Popen(["true"])
    dead.wait()
    starter = subprocess.Popen(
        [sys.executable, "-c",
         "import subprocess, sys, time\n"
         "print(subprocess.Popen([sys.executable, '-m', 'drupe', '-f', %r]).pid, flush=True)\n"
         "time.sleep(600)" % path],
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, "JPY_PARENT_PID": str(dead.pid), "IPYTHONDIR": str(tmp_path)})
    pid = int(starter.stdout.readline())
    client = BlockingKernelClient(connection_file=path)
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=support.TIMEOUT)  # it has seen who its parent is
    client.stop_channels()
    assert psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    starter.kill()
    starter.wait()
    wait_gone(pid)


def test_nothing_is_printed_on_the_terminal(tmp_path):
    from jupyter_client.connect import write_connection_file
    path, _ = write_connection_file(str(tmp_path / "c.json"))
    process = subprocess.Popen([sys.executable, "-m", "drupe", "-f", path], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env={**os.environ, "IPYTHONDIR": str(tmp_path)})
    time.sleep(2)
    assert process.poll() is None
    process.terminate()
    assert process.communicate(timeout=support.TIMEOUT)[0] == b""


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"transport": "pigeon"}'])
def test_a_bad_connection_file_is_one_clear_line(tmp_path, content):
    path = tmp_path / "connection.json"
    if content is not None:
        path.write_text(content)
        path.chmod(0o600)
    done = drupe("-f", str(path))
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("drupe: ") and done.stderr.count("\n") == 1


def test_a_broken_profile_does_not_stop_the_kernel(tmp_path):
    profile = tmp_path / "profile_default"
    (profile / "startup").mkdir(parents=True)
    (profile / "ipython_config.py").write_text("this is not Python (")
    (profile / "startup" / "00.py").write_text("started = 'from the startup file'\n1/0")
    spec = {"argv": [sys.executable, "-m", "drupe", "-f", "{connection_file}"], "display_name": "d",
            "language": "python", "interrupt_mode": "message"}
    folder = tmp_path / "specs" / "drupe"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(spec))
    kernel = support.Kernel(tmp_path / "specs", {"IPYTHONDIR": str(tmp_path)})
    try:
        assert kernel.run("started").result == "'from the startup file'"
    finally:
        kernel.close()


def test_version_and_help():
    version = drupe("--version")
    assert version.returncode == 0 and version.stdout.split()[0] == "drupe"
    assert version.stdout.split()[1].count(".") == 2
    for arguments in ((), ("--help",)):
        done = drupe(*arguments)
        assert done.returncode == 0 and done.stdout.startswith("usage: python -m drupe COMMAND")
    wrong = drupe("--frobnicate")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1


@pytest.mark.parametrize("where", ["prefix", "user"])
def test_install(tmp_path, where):
    if where == "prefix":
        done, root = drupe("install", "--prefix", str(tmp_path)), tmp_path / "share" / "jupyter"
    else:
        done, root = drupe("install", "--user", "--name", "mine", JUPYTER_DATA_DIR=str(tmp_path)), tmp_path
    assert done.returncode == 0, done.stderr
    folder = root / "kernels" / ("drupe" if where == "prefix" else "mine")
    spec = json.loads((folder / "kernel.json").read_text())
    assert spec["argv"] == [sys.executable, "-m", "drupe", "-f", "{connection_file}"]
    assert spec["display_name"] == "Python 3 (Drupe)" and spec["language"] == "python"
    assert spec["interrupt_mode"] == "message" and spec["kernel_protocol_version"] == "5.6.0"
    assert spec["metadata"]["supported_encryption"] == ["curve"]
    assert spec["metadata"]["interpreter"] == {"path": sys.executable}
    assert {"logo-32x32.png", "logo-64x64.png", "logo-svg.svg"} <= {path.name for path in folder.iterdir()}


def test_install_says_what_is_wrong(tmp_path):
    bad = drupe("install", "--name", "no spaces")
    assert bad.returncode == 2 and bad.stderr.count("\n") == 1
    (tmp_path / "file").write_text("")
    blocked = drupe("install", "--prefix", str(tmp_path / "file"))
    assert blocked.returncode == 1 and blocked.stderr.startswith("drupe: ") and blocked.stderr.count("\n") == 1


def test_the_first_cell_is_announced_before_python_is_ready(spec_folder, tmp_path):
    """A client takes the idle of what it asked earlier for the end of its cell, unless busy comes at once."""
    startup = tmp_path / "profile_default" / "startup"
    startup.mkdir(parents=True)
    go = tmp_path / "go"
    (startup / "wait.py").write_text("import os, time\nwhile not os.path.exists(%r): time.sleep(0.01)" % str(go))
    spec = json.loads((spec_folder / "drupe" / "kernel.json").read_text())
    spec["env"]["IPYTHONDIR"] = str(tmp_path)  # a kernelspec's environment wins over the client's
    (tmp_path / "kernels" / "drupe").mkdir(parents=True)
    (tmp_path / "kernels" / "drupe" / "kernel.json").write_text(json.dumps(spec))
    kernel = support.Kernel(tmp_path / "kernels")
    try:
        first, second = kernel.send("print('first')"), kernel.send("print('second')")
        kernel.wait_iopub(lambda m: m["msg_type"] == "status" and m["parent_header"].get("msg_id") == first)
        asked = kernel.client.kernel_info()
        kernel.wait_idle(asked)
        kernel.wait_iopub(lambda m: kernel.log[-1]["parent_header"].get("msg_id") == first)  # busy is said again
        states = [m["content"]["execution_state"] for m in kernel.of_parent(first)]
        assert states == ["busy", "busy"] and kernel.of_parent(second) == []
        go.touch()
        run = kernel.finish(first, 60)
        assert run.types == ["status", "status", "execute_input", "stream", "status"]
        assert kernel.finish(second).types == ["status", "execute_input", "stream", "status"]
    finally:
        kernel.close()
