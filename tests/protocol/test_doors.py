"""Two doors to one kernel: `python -m drupe` and the program drupe-kernel; and how the latter finds its Python."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import time

import psutil
import pytest
import support

PROGRAM = os.path.join(sysconfig.get_path("scripts"), "drupe-kernel")
DOORS = ["drupe", "drupe-kernel"]


@pytest.fixture(scope="module", params=DOORS)
def door(request, spec_folder):
    kernel = support.Kernel(spec_folder, name=request.param)
    kernel.door = request.param
    yield kernel
    kernel.close()


@pytest.fixture
def kernel(door):
    door.poll(0)
    door.log.clear()
    yield door
    assert door.manager.is_alive(), "the kernel died in this test"


def test_the_same_python_behind_both(kernel):
    run = kernel.run("import sys, os, numpy\nprint(sys.executable, sys.prefix, sep='\\n')\n"
                     "os.readlink('/proc/self/exe')")
    assert run.text().split() == [sys.executable, sys.prefix]
    # Where Python has a library, the program stays itself; else the interpreter has taken its place.
    own = "drupe-kernel" if kernel.door == "drupe-kernel" and has_library() else "python"
    assert pathlib.Path(eval(run.result)).name.startswith(own)
    assert kernel.run("import subprocess, sys; subprocess.run([sys.executable, '-c', 'import numpy']).returncode"
                      ).result == "0"
    # In one piece: what is written in two may be sent in two.
    types = kernel.run("import sys; sys.stdout.write('out\\n'); 6*7").types
    assert types == ["status", "execute_input", "stream", "execute_result", "status"]


def has_library():
    name = sysconfig.get_config_var("INSTSONAME") or ""
    folders = [sysconfig.get_config_var("LIBDIR"), "/usr/lib/" + str(sysconfig.get_config_var("MULTIARCH"))]
    # A static Python's INSTSONAME names an archive, and a package of its own may hold the library.
    name = name if ".so" in name else "libpython%s.so.1.0" % sysconfig.get_config_var("LDVERSION")
    return any(os.path.exists(os.path.join(str(folder), name)) for folder in folders)


@pytest.mark.parametrize("how", ["message", "signal"])
def test_interrupt(kernel, how):
    msg_id = kernel.send("import time; time.sleep(60)")
    kernel.started(msg_id)
    time.sleep(0.2)
    kernel.interrupt() if how == "message" else kernel.sigint()
    assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"
    kernel.sigint()  # idle: harmless
    assert kernel.run("1+1").result == "2"


def test_stdin(kernel):
    msg_id = kernel.send("input('name? ')", allow_stdin=True)
    request = kernel.client.get_stdin_msg(timeout=support.TIMEOUT)
    assert request["content"]["prompt"] == "name? "
    kernel.client.input("stone")
    assert kernel.finish(msg_id).result == "'stone'"


@pytest.mark.parametrize("store_history", [True, False])
def test_a_burst_never_wedges_the_shell(kernel, store_history):
    """One cell, then four cells and a completion at once: a socket that loses an edge stays silent for good."""
    for _ in range(30):
        kernel.run("pass", store_history=store_history)
        cells = [kernel.send("pass", store_history=store_history) for _ in range(4)]
        completion = kernel.client.complete("impo", 4)
        for msg_id in (*cells, completion):
            assert kernel.reply(msg_id)["content"]["status"] == "ok"
        kernel.wait_idle(completion)
        kernel.log.clear()


def test_restart_and_shutdown(kernel):
    kernel.run("kept = 1")
    old = kernel.pid
    kernel.manager.restart_kernel()
    kernel.client.wait_for_ready(timeout=support.TIMEOUT)
    assert kernel.pid != old and not psutil.pid_exists(old)
    assert kernel.run("'kept' in globals()").result == "False"


@pytest.mark.parametrize("name", DOORS)
def test_shutdown_ends_with_0(spec_folder, name):
    kernel = support.Kernel(spec_folder, name=name)
    try:
        kernel.client.shutdown()
        assert kernel.manager.provisioner.process.wait(timeout=20) == 0
    finally:
        kernel.close()


@pytest.mark.parametrize("name", DOORS)
def test_it_ends_with_its_parent(spec_folder, name):
    launcher = subprocess.Popen(
        [sys.executable, "-c",
         "import sys, time\nsys.path.insert(0, %r)\nimport support\n"
         "k = support.Kernel(%r, name=%r)\nprint(k.pid, flush=True)\ntime.sleep(600)"
         % (os.path.dirname(support.__file__), str(spec_folder), name)],
        stdout=subprocess.PIPE, text=True)
    pid = int(launcher.stdout.readline())
    assert psutil.pid_exists(pid)
    launcher.kill()
    launcher.communicate()
    support.wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE,
                       what="the kernel to end")


# --- Finding Python ------------------------------------------------------------------------------------------

def launch(*arguments, program=PROGRAM, **environment):
    bare = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    return subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          env={**bare, **environment})


def fake_python(folder, name="python3"):
    """An interpreter that only tells its name and what it was started with."""
    path = folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\necho \"$0\" \"$@\"\n")
    path.chmod(0o755)
    return path


def test_the_order_in_which_it_looks(tmp_path):
    program = tmp_path / "own" / "bin" / "drupe-kernel"
    on_path = fake_python(tmp_path / "path")
    program.parent.mkdir(parents=True)
    shutil.copy(PROGRAM, program)
    where = {"PATH": ":relative:%s:/bin:/usr/bin" % on_path.parent}

    def chosen(*arguments, **environment):
        done = launch(*arguments, "-f", "x", program=program, **where, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert chosen() == "%s -m drupe -f x\n" % on_path
    sibling = fake_python(tmp_path / "own")
    assert chosen() == "%s -m drupe -f x\n" % sibling
    conda, venv = fake_python(tmp_path / "conda"), fake_python(tmp_path / "venv", "python")
    assert chosen(CONDA_PREFIX=str(tmp_path / "conda")).startswith(str(conda))
    assert chosen(CONDA_PREFIX=str(tmp_path / "conda"), VIRTUAL_ENV=str(tmp_path / "venv")).startswith(str(venv))
    assert chosen("--python", tmp_path / "conda", VIRTUAL_ENV=str(tmp_path / "venv")).startswith(str(conda))
    assert chosen("--python=%s" % sibling, VIRTUAL_ENV=str(tmp_path / "venv")).startswith(str(sibling))
    assert chosen(VIRTUAL_ENV=str(tmp_path / "gone")).startswith(str(sibling))


def test_what_it_cannot_do_is_one_line(tmp_path):
    lonely = tmp_path / "drupe-kernel"
    shutil.copy(PROGRAM, lonely)
    broken = tmp_path / "broken" / "bin" / "python"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"\x7fELF but not much of one")
    broken.chmod(0o755)
    for done, text in ((launch("-f", "x", program=lonely, PATH=str(tmp_path)), "no Python found"),
                       (launch("--python", "/no/such", "-f", "x"), "/no/such is neither"),
                       (launch("--python"), "needs the path"), (launch("--python=", "-f", "x"), "needs the path"),
                       (launch("--python", broken, "-f", "x"), "cannot run")):
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.startswith("drupe-kernel: ") and done.stderr.count("\n") == 1 and text in done.stderr


def test_help_version_and_what_it_hands_on():
    for arguments in ((), ("--help",), ("-h",)):
        done = launch(*arguments)
        assert done.returncode == 0 and done.stdout.startswith("usage: drupe-kernel")
    assert launch("--version").stdout.split()[1].count(".") == 2
    wrong = launch("--python", sys.executable, "--frobnicate")
    assert wrong.returncode == 2 and wrong.stderr.startswith("drupe: ")
    absent = launch("--python", sys.executable, "-f", "/no/such")
    assert absent.returncode == 1 and absent.stderr.startswith("drupe: ")


def test_a_script_in_pythons_place_is_asked(tmp_path):
    """As version managers have them: the real interpreter must become sys.executable."""
    shim = fake_python(tmp_path)
    shim.write_text("#!/bin/sh\nexec %s \"$@\"\n" % sys.executable)
    done = launch("--python", shim, "install", "--prefix", tmp_path)
    assert done.returncode == 0, done.stderr
    spec = json.loads((tmp_path / "share/jupyter/kernels/drupe/kernel.json").read_text())
    assert spec["argv"][0] == sys.executable


def test_a_python_without_a_library_is_run_itself(tmp_path):
    shim = fake_python(tmp_path)
    shim.write_text("#!/bin/sh\n[ \"$1\" = -I ] && exit 1\nexec %s \"$@\"\n" % sys.executable)
    hook = tmp_path / "drupe.py"
    hook.write_text("import os, sys\nprint(os.readlink('/proc/self/exe'), *sys.argv[1:])")
    done = launch("--python", shim, "-f", "x", PYTHONPATH=str(tmp_path))
    assert done.stdout.split() == [os.path.realpath(sys.executable), "-f", "x"], done.stderr


def test_install_can_name_the_program(tmp_path):
    def install(*more):
        return subprocess.run([sys.executable, "-m", "drupe", "install", "--prefix", str(tmp_path), *more],
                              capture_output=True, text=True, timeout=60)

    assert install("--executable").returncode == 0
    spec = json.loads((tmp_path / "share/jupyter/kernels/drupe/kernel.json").read_text())
    assert spec["argv"] == [PROGRAM, "--python", sys.executable, "-f", "{connection_file}"]
    missing = install("--executable", str(tmp_path / "nothing"))
    assert missing.returncode == 1 and "--executable" in missing.stderr and missing.stderr.count("\n") == 1
