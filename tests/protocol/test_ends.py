"""Ends that a cell brings about: exit(), and those that the process does not survive."""
import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
import support
from test_crash import Crash, exit_code, restarted

UNSENT = "\nIts last output, which had not been sent:\n"


def ended(kernel):
    """The exit code of a kernel that ends by itself."""
    return support.wait_until(lambda: (exit_code(kernel), True) if exit_code(kernel) is not None else None,
                              what="the end of the process")[0]


@pytest.mark.parametrize("code", ["exit", "exit()\nprint('to its end')", "quit()\nprint('to its end')",
                                  "import asyncio; await asyncio.sleep(0); exit(); print('to its end')"])
def test_exit_ends_the_kernel_after_the_reply(fresh, tmp_path, code):
    fresh.run("import atexit, pathlib\natexit.register(pathlib.Path(%r).write_text, 'ran')" % str(tmp_path / "hook"))
    run = fresh.run(code)
    assert run.status == "ok" and run.text() == ("to its end\n" if "print" in code else "")
    assert run.reply["payload"] == [{"source": "ask_exit", "keepkernel": False}]
    assert ended(fresh) == 0 and (tmp_path / "hook").read_text() == "ran"
    assert restarted(fresh) == ""


def test_exit_leaves_time_to_ask_for_the_shutdown(fresh):
    """jupyter console reads the reply only while the process lives, and asks then."""
    fresh.run("exit")
    client = fresh.client
    client.control_channel.send(client.session.msg("shutdown_request", {"restart": False}))
    reply = client.get_control_msg(timeout=10)
    assert reply["msg_type"] == "shutdown_reply" and reply["content"]["status"] == "ok"
    assert ended(fresh) == 0


def test_a_task_that_exits_ends_the_kernel(fresh, gate):
    fresh.run("import asyncio\nasync def leave():\n    %s\n    exit()\ntask = asyncio.create_task(leave())"
              % gate.awaited.replace("\n", "\n    "))
    gate.open()
    assert ended(fresh) == 0


def test_what_was_to_end_the_kernel_before(fresh):
    """A manager that restarts a dead kernel sends it a shutdown_request all the same, which waits for the ports."""
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - (
        int(pathlib.Path("/proc/%d/stat" % fresh.pid).read_text().rpartition(")")[2].split()[19])
        / os.sysconf("SC_CLK_TCK"))
    client = fresh.client
    for name in ("interrupt_request", "shutdown_request"):
        late = client.session.msg(name, {"restart": True} if "shutdown" in name else {})
        late["header"]["date"] -= datetime.timedelta(seconds=age + 0.1)
        client.control_channel.send(late)
    client.control_channel.send(client.session.msg("connect_request"))
    assert client.get_control_msg(timeout=60)["msg_type"] == "connect_reply"
    assert fresh.run("6 * 7").result == "42"
    assert exit_code(fresh) is None


def test_exit_may_keep_the_kernel(kernel):
    run = kernel.run("exit(keep_kernel=True)")
    assert run.reply["payload"] == [{"source": "ask_exit", "keepkernel": True}]
    assert kernel.run("6 * 7").result == "42"


class Left(Crash):
    """What a cell left behind that ended the process with a status."""

    @property
    def report(self):
        (content,) = self.of("error")
        assert content["ename"] == "KernelExit"
        assert content["traceback"][0] == "KernelExit: " + content["evalue"]
        return content["evalue"]


@pytest.mark.parametrize("call, code", [("os._exit(3)", "import os\n%s\nos._exit(3)"),
                                        ("exit(3)", "import ctypes\n%s\nctypes.CDLL(None).exit(3)")])
@pytest.mark.parametrize("thread", [False, True])
def test_who_leaves_says_so(fresh, call, code, thread):
    code %= "print('just before')\nimport threading"
    if thread:
        *before, last = code.split("\n")
        code = "\n".join([*before, "t = threading.Thread(target=lambda: %s); t.start(); t.join()" % last])
    left = Left(fresh, code)
    assert exit_code(fresh) == 3
    assert left.report.startswith(call + " was called in " + ('thread "' if thread else "the main thread"))
    assert left.text("stdout") == "just before\n"
    assert "Cell In[1], line 4" in left.lines and "The kernel's process ends with status 3 now" in left.lines
    assert restarted(fresh) == "The previous kernel ended by %s while cell [1] ran, as reported there.\n" % call


@pytest.mark.parametrize("thread", [False, True])
def test_exit_goes_on_behind_the_report(fresh, tmp_path, thread):
    """What stdio holds is written, and the handlers run that were registered before the kernel's own."""
    leave = "C.exit(3)"
    if thread:
        leave = "import threading\nt = threading.Thread(target=lambda: C.exit(3)); t.start(); t.join()"
    left = Left(fresh, "import ctypes\nC = ctypes.CDLL(None)\nC.fopen.restype = ctypes.c_void_p\n"
                       "file = C.fopen(%r, b'w')\nC.fputs(b'to its end\\n', ctypes.c_void_p(file))\n%s"
                       % (os.fsencode(tmp_path / "file"), leave))
    assert exit_code(fresh) == 3 and left.report.startswith("exit(3) was called in ")
    assert (tmp_path / "file").read_text() == "to its end\n"


def test_threads_that_exit_at_once(fresh):
    """One tells it, and the others do not end the process meanwhile."""
    left = Left(fresh, "import ctypes, threading\nC = ctypes.CDLL(None)\nready = threading.Barrier(8)\n"
                       "def leave():\n    ready.wait()\n    C.exit(3)\n"
                       "for _ in range(7): threading.Thread(target=leave).start()\nleave()")
    assert exit_code(fresh) == 3 and left.report.startswith("exit(3) was called in ")


LATE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static const char *path;
static int way;
__attribute__((destructor)) static void last(void)
{
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) { fputs("destroyed", file); fclose(file); }
    if (path && way == 1) for (;;) pause();
    if (path && way == 2) *(volatile int *)0 = 1;
}
void late(const char *into, int what) { path = into; way = what; }
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.parametrize("way", ["returns", "hangs", "faults"])
def test_a_destructor_runs_behind_the_report(fresh, tmp_path, way):
    """And the end comes with the status that was told, whatever it does."""
    (tmp_path / "failure_poller.c").write_text(LATE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "late.so", tmp_path / "failure_poller.c"], check=True)
    left = Left(fresh, "import ctypes\nL = ctypes.CDLL(%r)\npath = ctypes.create_string_buffer(%r)\n"
                       "L.late(path, %d)\nctypes.CDLL(None).exit(3)"
                       % (str(tmp_path / "late.so"), os.fsencode(tmp_path / "file"),
                          ["returns", "hangs", "faults"].index(way)))
    assert exit_code(fresh) == 3 and left.report.startswith("exit(3) was called in the main thread")
    assert (tmp_path / "file").read_text() == "destroyed"


def test_a_child_that_leaves_is_no_end(kernel):
    run = kernel.run("import ctypes, os\nfor leave in (os._exit, ctypes.CDLL(None).exit):\n"
                     "    child = os.fork()\n    if child == 0: leave(5)\n"
                     "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))")
    assert run.status == "ok" and run.text() == "5\n5\n" and run.of("error") == []
    assert kernel.run("os._exit('5')").reply["ename"] == "TypeError"


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGALRM, signal.SIGQUIT])
def test_a_signal_that_ends_it(fresh, number):
    crash = Crash(fresh, "import os, signal\nprint('just before')\nos.kill(os.getpid(), %d)" % number)
    assert crash.signal == number and crash.text("stdout") == "just before\n"
    assert crash.report == "%s in the main thread: raised by the program" % number.name
    assert "Cell In[1], line 3" in crash.lines
    assert restarted(fresh) == "The previous kernel ended by %s while cell [1] ran, as reported there.\n" % number.name


def test_a_signal_from_outside(fresh):
    def send(msg_id):
        fresh.told(msg_id, "begun")
        os.kill(fresh.pid, signal.SIGUSR2)

    crash = Crash(fresh, "import time\nprint('begun', flush=True)\nwhile True: time.sleep(1)", send)
    assert crash.report == "SIGUSR2 in the main thread: sent by process %d" % os.getpid()


def test_an_alarm_that_nobody_handles(fresh):
    crash = Crash(fresh, "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.001)\ntime.sleep(60)")
    assert crash.signal == signal.SIGALRM
    assert crash.report == "SIGALRM in the main thread: an alarm that the program has set, and no handler for it"


def test_such_signals_are_the_users(kernel):
    """Nobody sees that they are watched: what Python, a cell's handler and a program that is started find."""
    run = kernel.run("import os, signal, subprocess, sys\nprint(signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL)\n"
                     "signal.signal(signal.SIGUSR1, lambda *_: print('mine'))\nos.kill(os.getpid(), signal.SIGUSR1)\n"
                     "code = 'import os, signal; os.kill(os.getpid(), signal.SIGUSR2)'\n"
                     "print(subprocess.run([sys.executable, '-c', code]).returncode)")
    assert run.text() == "True\nmine\n%d\n" % -signal.SIGUSR2


def killed(kernel, code):
    """What a cell that kills its kernel has shown, and what the next kernel tells."""
    code = "import os, signal\nprint('left', flush=True)\n%s\nos.kill(os.getpid(), signal.SIGKILL)" % code
    msg_id = kernel.send(code)
    assert ended(kernel) == -signal.SIGKILL
    kernel.poll(0.2)
    messages = kernel.of_parent(msg_id)
    assert all(message["msg_type"] != "error" for message in messages)
    shown = "".join(m["content"]["text"] for m in messages if m["msg_type"] == "stream")
    return shown, restarted(kernel)


def test_what_was_printed_before_a_kill(fresh):
    """A process cannot report SIGKILL: the next kernel tells, with the text that had not left."""
    shown, notice = killed(fresh, "print('kept \N{SNOWMAN}')")
    assert notice.startswith("The previous kernel ended without a report while cell [1] ran: it was killed (SIGKILL)")
    if "kept" not in shown:  # a machine that stood still between the two lines has sent it
        assert notice.partition(UNSENT)[2] in ("kept \N{SNOWMAN}\n", "left\nkept \N{SNOWMAN}\n")


def test_much_that_was_printed_before_a_kill(fresh):
    """Its end is told, from a whole character on."""
    shown, notice = killed(fresh, "print('\N{SNOWMAN}' * 10000)")
    told = notice.partition(UNSENT)[2].strip()
    if "\N{SNOWMAN}" not in shown:
        assert set(told) == {"\N{SNOWMAN}"} and 5000 < len(told) < 10000


def test_what_has_left_is_not_told_again(fresh):
    msg_id = fresh.send("import time\nprint('seen', flush=True)\ntime.sleep(600)")
    fresh.told(msg_id, "seen")
    os.kill(fresh.pid, signal.SIGKILL)
    ended(fresh)
    assert "seen" not in restarted(fresh)
