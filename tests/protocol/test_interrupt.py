"""Ctrl-C: in everything that can be running, by message and by signal, and when nothing is."""
import os
import random
import signal
import threading
import time

import pytest
import support

WAYS = ["message", "signal"]

# The loop says so: by then the cell awaits.
AWAITING = "import asyncio\nasyncio.get_running_loop().call_soon(print, 'begun')\n"


def strike(kernel, how):
    kernel.interrupt() if how == "message" else kernel.sigint()


def interrupted(kernel, code, how="message", wait=0.3, begun=None):
    """`begun`: what the cell prints right before it comes to what is to be broken."""
    msg_id = kernel.send(code)
    kernel.started(msg_id)
    if begun:
        kernel.told(msg_id, begun)
    time.sleep(wait)
    strike(kernel, how)
    return kernel.finish(msg_id)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("code", [
    "import time; time.sleep(60)",
    "while True: pass",
    "import threading; threading.Event().wait(60)",
    "import subprocess; subprocess.run(['sleep', '60'])",
    "import asyncio; await asyncio.sleep(60)",
    "import asyncio\nasync def spin():\n    while True: pass\nawait spin()",
    "import asyncio\nasync def spin():\n    while True: pass\nawait asyncio.create_task(spin())",
    "import asyncio\nasync def wait():\n    await asyncio.sleep(60)\nawait asyncio.gather(wait(), wait())",
])
def test_what_runs_is_broken(kernel, code, how):
    run = interrupted(kernel, code, how)
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert run.of("error")[0]["ename"] == "KeyboardInterrupt"
    assert "interrupt.py" not in "\n".join(run.reply["traceback"]), "it ends in the code that was interrupted"
    assert kernel.run("1+1").result == "2"


@pytest.mark.parametrize("code", ["!sleep 60", "import os; os.system('sleep 60'); None"])
def test_shell_commands_are_broken(kernel, code):
    started = time.monotonic()
    interrupted(kernel, code)
    assert time.monotonic() - started < 30
    assert kernel.run("1+1").result == "2"


@pytest.mark.parametrize("code", ["!sleep 60", "import subprocess; subprocess.run(['sleep', '60'])"])
def test_commands_that_are_broken_while_they_start_leave_nothing_open(kernel, code):
    """The interrupt comes at a random moment of starting the process, whose pipes and terminal must not stay open."""
    rng = random.Random(11)
    folder = "/proc/%d/fd" % kernel.pid

    def opened():
        targets = [support.link_target(os.path.join(folder, name)) for name in os.listdir(folder)]
        return sum(target.startswith(("pipe:", "/dev/ptmx", "/dev/pts")) for target in targets)

    interrupted(kernel, code)  # what it imports is there now
    before = opened()
    for _ in range(40):
        msg_id = kernel.send(code)
        kernel.started(msg_id)
        time.sleep(rng.random() * 0.012)
        kernel.interrupt()
        run = kernel.finish(msg_id, 30)
        assert run.reply.get("ename") == "KeyboardInterrupt", "\n".join(run.reply.get("traceback", ["it ended"]))
    support.wait_until(lambda: opened() <= before, what="no more descriptors than before")


def test_an_interrupt_right_after_busy_is_not_lost(kernel):
    for _ in range(20):
        msg_id = kernel.send("import time; time.sleep(20)")
        kernel.started(msg_id)
        kernel.interrupt()
        assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"


def test_a_cell_may_catch_it_and_is_interrupted_again(kernel):
    msg_id = kernel.send("import time\ntry:\n    print('begun', flush=True)\n    time.sleep(60)\n"
                         "except KeyboardInterrupt:\n    print('caught')\ntime.sleep(60)")
    kernel.told(msg_id, "begun")
    kernel.interrupt()
    kernel.told(msg_id, "caught")
    kernel.interrupt()
    assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"


def test_an_awaiting_cell_may_catch_it(kernel):
    run = interrupted(kernel, AWAITING + "try:\n    await asyncio.sleep(60)\nexcept asyncio.CancelledError:\n"
                              "    print('caught')\nawait asyncio.sleep(0.01)\n'went on'", begun="begun")
    assert run.text() == "begun\ncaught\n" and run.result == "'went on'"


def test_what_a_cell_awaits_is_cleaned_up(kernel):
    run = interrupted(kernel, "import asyncio\nasync def inner():\n    try:\n        print('begun')\n"
                              "        await asyncio.sleep(60)\n    finally:\n        print('cleaned up')\n"
                              "await asyncio.wait_for(inner(), 60)", begun="begun")
    assert run.reply["ename"] == "KeyboardInterrupt" and run.text() == "begun\ncleaned up\n"


def test_a_cancelled_cell_is_not_an_interrupted_one(kernel):
    run = kernel.run("import asyncio\nasyncio.get_running_loop().call_later(0.1, asyncio.current_task().cancel)\n"
                     "await asyncio.sleep(60)")
    assert run.reply["ename"] == "CancelledError"
    assert kernel.run("1+1").result == "2"


def test_a_second_one_while_the_first_cancels(fresh):
    """In the middle of what wakes the cancelled cell up."""
    fresh.run("import asyncio, os, signal, sys\nloop = asyncio.get_running_loop()\nreal, left = loop.call_soon, [1]\n"
              "def call_soon(callback, *args, **more):\n"
              "    if left and sys._getframe(1).f_code.co_name == '_cancel':\n"
              "        left.pop()\n        signal.raise_signal(signal.SIGINT)\n"
              "    return real(callback, *args, **more)\nloop.call_soon = call_soon")
    run = interrupted(fresh, AWAITING + "await asyncio.sleep(60)", begun="begun")
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert fresh.run("del loop.call_soon\nlen(left)").result == "0"


@pytest.mark.parametrize("how", WAYS)
def test_when_idle_it_is_harmless(kernel, how):
    kernel.run("kept = 1")
    for _ in range(20):
        strike(kernel, how)
    assert kernel.run("kept").result == "1"


def test_it_aborts_the_queued_cells(kernel):
    first = kernel.send("import time; time.sleep(60)")
    queued = kernel.send("1")
    kernel.started(first)
    kernel.arrived()
    kernel.interrupt()
    assert kernel.finish(first).reply["ename"] == "KeyboardInterrupt"
    assert kernel.finish(queued).status == "aborted"


@pytest.mark.parametrize("theft", [
    "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)",
    "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])",
    # What a compiler in a driver does: behind Python's back.
    "import ctypes; ctypes.CDLL(None).signal(2, ctypes.c_void_p(0))",
    "import ctypes; ctypes.CDLL(None).signal(2, ctypes.c_void_p(1))",
])
def test_a_stolen_handler_is_taken_back(kernel, theft):
    kernel.run(theft)
    kernel.sigint()
    time.sleep(0.1)
    assert interrupted(kernel, "import time; time.sleep(60)").reply["ename"] == "KeyboardInterrupt"


def test_a_background_task_that_never_yields_can_be_broken(kernel):
    run = kernel.run("import asyncio\nasync def stuck():\n    print('begun', flush=True)\n    while True: pass\n"
                     "task = asyncio.create_task(stuck())")
    kernel.told(run.id, "begun")
    kernel.interrupt()
    assert kernel.run("task.done()").result == "True"


def test_children_in_other_sessions_are_left_alone(kernel):
    kernel.run("import subprocess; child = subprocess.Popen(['sleep', '60'], start_new_session=True)")
    interrupted(kernel, "import time; time.sleep(60)")
    assert kernel.run("child.poll() is None").result == "True"
    kernel.run("child.kill(); child.wait()")


def test_a_numpy_call_is_broken_when_it_returns(kernel):
    run = interrupted(kernel, "import numpy\na = numpy.random.default_rng(1).random((300, 300))\nprint('begun')\n"
                              "while True: a @ a", begun="begun")
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert kernel.run("a.shape").result == "(300, 300)"


def test_waiting_for_a_program_in_a_group_of_its_own(kernel):
    """It asked to be left alone; the wait for it is broken all the same."""
    run = interrupted(kernel, "import subprocess\nchild = subprocess.Popen(['sleep', '60'], process_group=0)\n"
                              "print('begun')\nchild.wait()", begun="begun")
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert kernel.run("child.poll() is None").result == "True"
    kernel.run("child.kill(); child.wait()")


def test_a_lock_and_a_queue(kernel):
    for code in ("import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
                 "import queue; queue.Queue().get()", "import os; r, w = os.pipe(); os.read(r, 1)",
                 "import select; select.select([], [], [], 60)"):
        assert interrupted(kernel, code).reply["ename"] == "KeyboardInterrupt"


def test_twice_at_once_breaks_one_cell(kernel):
    late = 0  # a second one that the system delivers when the next cell runs breaks that, rightly
    for how in WAYS * 5:
        msg_id = kernel.send("import time; time.sleep(60)")
        kernel.started(msg_id)
        time.sleep(0.05)
        strike(kernel, how)
        strike(kernel, how)
        assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"
        time.sleep(0.05)
        run = kernel.run("1+1")
        late += run.reply.get("ename") == "KeyboardInterrupt"
        assert late <= 2 and (run.reply["status"] == "error" or run.result == "2"), run.reply
        assert kernel.run("1+1").result == "2"


def test_one_between_cells_breaks_none(kernel):
    for number in range(30):
        assert kernel.run("%d" % number).result == "%d" % number
        kernel.sigint()
        time.sleep(0.01)


def test_one_between_cells_leaves_the_next_cells_children_alone(kernel):
    kernel.run("import subprocess")
    for _ in range(60):
        kernel.client.control_channel.send(kernel.client.session.msg("interrupt_request", {}))
        run = kernel.run("subprocess.run(['sleep', '0.02']).returncode")
        assert run.reply.get("ename") == "KeyboardInterrupt" or run.result == "0", run.reply


def test_a_storm_while_starting_and_while_ending(spec_folder):
    kernel = support.Kernel.__new__(support.Kernel)
    done = threading.Event()

    def storm():
        while not done.is_set():
            manager = getattr(kernel, "manager", None)
            process = getattr(getattr(manager, "provisioner", None), "process", None)
            if process is not None and process.poll() is None:
                os.kill(process.pid, signal.SIGINT)
            time.sleep(0.002)

    blocked = signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the moment between fork and exec
    thread = threading.Thread(target=storm)
    thread.start()
    try:
        kernel.__init__(spec_folder)
        assert kernel.manager.is_alive()
        assert kernel.ask("kernel_info_request", {})["status"] == "ok"
        kernel.client.shutdown()
        assert kernel.manager.provisioner.process.wait(support.TIMEOUT) == 0
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGINT, blocked)
        kernel.close()


def test_an_import_that_is_broken_leaves_imports_to_others(fresh, tmp_path):
    """The lock of all imports is not left taken, whenever Ctrl-C comes."""
    for number in range(200):
        (tmp_path / ("small%d.py" % number)).write_text("")
    fresh.run("import sys, threading; sys.path.insert(0, %r)" % str(tmp_path))
    for round_ in range(20):
        msg_id = fresh.send("import importlib\nwhile True:\n    for i in range(100):\n        name = 'small%d' % i\n"
                            "        sys.modules.pop(name, None)\n        importlib.import_module(name)")
        fresh.started(msg_id)
        time.sleep(0.003 * round_)
        fresh.sigint()
        assert fresh.finish(msg_id).reply["ename"] == "KeyboardInterrupt"
    run = fresh.run("t = threading.Thread(target=__import__, args=('small150',)); t.start(); t.join(10); t.is_alive()")
    assert run.result == "False"


def test_random_interrupts_leave_the_kernel_alive(fresh):
    """Three hundred, whatever it is doing: computing, printing, failing, awaiting, replying, idling."""
    chance = random.Random(7)
    codes = ["sum(range(20000))", "print('x' * 100)", "1/0", "import asyncio; await asyncio.sleep(0.003)",
             "import time; time.sleep(0.003)", "display('d')", "def f(): return f\nf", "!true" , "%who"]
    pending = []
    for number in range(300):
        if chance.random() < 0.7:
            pending.append(fresh.send(chance.choice(codes[:7] if number % 50 else codes), stop_on_error=False))
        time.sleep(chance.random() * 0.004)
        os.kill(fresh.pid, signal.SIGINT)
        if len(pending) > 5:
            fresh.reply(pending.pop(0), 30)
    for msg_id in pending:
        assert fresh.finish(msg_id, 30).status in ("ok", "error")
    run = fresh.run("print('alive'); 6*7")
    assert run.text() == "alive\n" and run.result == "42"
    assert interrupted(fresh, "import time; time.sleep(60)").reply["ename"] == "KeyboardInterrupt"


def test_an_interrupted_cell_keeps_nothing_alive(kernel):
    """Its error, and with it the variables of what it ran, goes when Python lets go of the last error."""
    run = interrupted(kernel, "import gc, time, weakref\nclass Big: pass\ndef hold():\n    global seen\n"
                              "    big = Big()\n"
                              "    seen = weakref.ref(big)\n    print('begun')\n    time.sleep(60)\nhold()",
                      begun="begun")
    assert run.reply["ename"] == "KeyboardInterrupt"
    kernel.run("1/0")
    assert kernel.run("gc.collect(); seen() is None").result == "True"


def test_none_is_lost_behind_a_question(fresh, gate):
    """SIGINT asks the main thread, too, what it is at. While it is held back, there is room for one of them only."""
    msg_id = fresh.send("""
import os, signal, threading, time
def strike():
    go.wait()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for _ in range(2):
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
go, asked = threading.Event(), False
threading.Thread(target=strike).start()
while not asked:
    try:
        go.set()
        while signal.SIGINT not in signal.sigpending(): time.sleep(0.01)
        for _ in range(3): time.sleep(0.01)
        asked = True
    except KeyboardInterrupt: pass
print('begun', flush=True)
%s
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
print('to its end')
""" % gate.wait)
    fresh.told(msg_id, "begun")
    fresh.interrupt()
    gate.open()
    run = fresh.finish(msg_id)
    assert run.reply["ename"] == "KeyboardInterrupt" and run.text() == "begun\n"
    assert fresh.run("time.sleep(0.7); 1 + 1").result == "2", "and it is one"
