"""Forked children: they print into the cell, never touch the kernel's sockets, and hold none of its ports."""
import os
import signal
import socket

import psutil
import pytest
import support


def ports(kernel):
    info = kernel.manager.get_connection_info()
    return [info[name + "_port"] for name in ("shell", "iopub", "stdin", "control", "hb")]


def bound(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(kernel, tmp_path, method):
    """Results, output and a failure of workers, however they are started."""
    (tmp_path / "worker_module.py").write_text(
        "import os, sys\n"
        "def square(x):\n    print('square', x, flush=True)\n    return x * x\n"
        "def fail():\n    os.write(2, b'failing\\n')\n    raise ValueError('in the child')\n")
    run = kernel.run("import multiprocessing, sys\nsys.path.insert(0, %r)\nimport worker_module as w\n"
                     "context = multiprocessing.get_context(%r)\n"
                     "with context.Pool(2) as pool: print(pool.map(w.square, range(4)))\n"
                     "p = context.Process(target=w.fail); p.start(); p.join(); print(p.exitcode)\n"
                     "queue = context.Queue(); q = context.Process(target=queue.put, args=({'a': 1},))\n"
                     "q.start(); print(queue.get(timeout=20)); q.join()" % (str(tmp_path), method), timeout=60)
    assert run.status == "ok", run.reply
    assert "[0, 1, 4, 9]\n" in run.text() and "{'a': 1}\n" in run.text()
    assert run.text().count("square") == 4  # two children may write at the same time
    assert "failing" in run.text("stderr") and "ValueError: in the child" in run.text("stderr")
    assert kernel.run("1+1").result == "2"


def test_lines_of_forked_children_stay_whole(kernel):
    """print() writes its pieces one by one; several children write at the same time."""
    run = kernel.run("import multiprocessing\n"
                     "def lines(n):\n    for i in range(300): print('line', n, i, 'end')\n"
                     "with multiprocessing.get_context('fork').Pool(4) as pool: pool.map(lines, range(4))", timeout=60)
    expected = ["line %d %d end" % (n, i) for n in range(4) for i in range(300)]
    assert sorted(run.text().splitlines()) == sorted(expected)


def test_a_process_pool(kernel):
    run = kernel.run("import concurrent.futures as c, multiprocessing\n"
                     "with c.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('fork')) as p:\n"
                     "    print(list(p.map(abs, [-1, -2, -3])))", timeout=60)
    assert run.text("stdout") == "[1, 2, 3]\n"


def test_a_child_prints_after_its_cell(kernel):
    run = kernel.run("import os, time\npid = os.fork()\n"
                     "if pid == 0:\n    time.sleep(0.5); print('late child', flush=True); os._exit(0)\n"
                     "print('parent')")
    assert run.text() == "parent\n"
    kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "late child" in m["content"]["text"], what="the child")
    kernel.run("os.waitpid(pid, 0)")


def test_fork_while_threads_print(kernel):
    """A lock that a thread held at the fork must not stop the child."""
    run = kernel.run("import os, threading\n"
                     "go_on = True\n"
                     "def noise():\n    while go_on: print('n', end='')\n"
                     "threads = [threading.Thread(target=noise) for _ in range(3)]\n"
                     "for t in threads: t.start()\n"
                     "codes = []\n"
                     "for i in range(60):\n"
                     "    pid = os.fork()\n"
                     "    if pid == 0:\n        print('child', flush=True); os._exit(7)\n"
                     "    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
                     "go_on = False\n"
                     "for t in threads: t.join()\n"
                     "print(); print(codes == [7] * 60)", timeout=60)
    assert run.text().endswith("\nTrue\n") and run.text().count("child") == 60


@pytest.mark.parametrize("how", ["fork", "daemon"])
def test_a_child_that_outlives_the_kernel_holds_no_port(fresh, how):
    """A restarted kernel needs its old ports; clients of a dead one must see that it is dead."""
    taken = ports(fresh)
    code = ("import os, time\npid = os.fork()\n"
            "if pid == 0:\n"
            "    if %r == 'daemon':\n        os.setsid()\n        if os.fork(): os._exit(0)\n"
            "    open(%r, 'w').write(str(os.getpid())); time.sleep(600); os._exit(0)\n")
    path = "/tmp/drupe-outlive-%d" % os.getpid()
    try:
        fresh.run(code % (how, path))
        child = psutil.Process(int(support.wait_until(
            lambda: os.path.exists(path) and open(path).read(), what="the child")))
        own = [c for c in child.net_connections(kind="inet") if c.laddr and c.laddr.port in taken]
        assert own == [], "the child holds the kernel's sockets"
        os.kill(fresh.pid, signal.SIGKILL)
        fresh.manager.provisioner.process.wait(support.TIMEOUT)
        for port in taken:
            support.wait_until(lambda port=port: not bound(port), what="port %d to be free" % port)
        assert child.is_running()
        fresh.manager.restart_kernel(now=True)
        fresh.client.wait_for_ready(timeout=support.TIMEOUT)
        assert fresh.run("1+1").result == "2"
    finally:
        if os.path.exists(path):
            os.kill(int(open(path).read()), signal.SIGKILL)
            os.unlink(path)


def test_a_child_does_not_answer_for_the_kernel(kernel, raw):
    """What the child does to the kernel's objects has no effect outside of it."""
    run = kernel.run("import os, sys\nfrom IPython.display import display\nfrom IPython import get_ipython\n"
                     "pid = os.fork()\n"
                     "if pid == 0:\n"
                     "    display('from the child'); get_ipython().kernel.send_response(None, 'display_data', {})\n"
                     "    sys.stdout.flush(); sys.exit(3)\n"
                     "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    assert run.text().splitlines()[-1] == "3" and run.of("display_data") == []
    assert run.types.count("status") == 2
    raw.send("control", "kernel_info_request")
    assert raw.receive("control")["content"]["status"] == "ok"


def test_a_child_that_ignores_the_end_is_killed(fresh):
    """Of the kernel's own group; what called setsid() asked to be left alone."""
    run = fresh.run("import subprocess, sys\n"
                    "code = 'import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); "
                    "time.sleep(600)'\n"
                    "p = subprocess.Popen([sys.executable, '-c', code]); print(p.pid)")
    child = psutil.Process(int(run.text().split()[0]))
    assert child.is_running()
    fresh.manager.shutdown_kernel()
    support.wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 10, "the child to end")
