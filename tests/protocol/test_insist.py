"""Two interrupts that do not end a cell: it is told what holds on, and what ends it."""
import time

import pytest

END = "Kernel > Restart ends it"


def insist(kernel, msg_id):
    """Interrupt twice; what the cell says then."""
    kernel.interrupt()
    time.sleep(0.05)
    kernel.interrupt()
    told = kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "Interrupted twice" in m["content"]["text"])
    assert told["parent_header"]["msg_id"] == msg_id and told["content"]["name"] == "stderr"
    (line,) = told["content"]["text"].splitlines()
    assert END in line
    return line


def begun(kernel, code):
    msg_id = kernel.send(code)
    kernel.told(msg_id, "begun")
    return msg_id


# A cell that is interrupted before it comes to what holds on goes there all the same.
AGAIN = """while True:
    try:
        print('begun', flush=True)
        %s
    except BaseException: pass"""


def test_a_c_function_that_keeps_the_interpreter(fresh):
    line = insist(fresh, begun(fresh, AGAIN % "sum(range(10**13))"))
    assert "at Cell In[1], line 4, in <module>" in line and "in C code of the interpreter" in line


def test_a_c_function_of_a_library(fresh, faults):
    line = insist(fresh, begun(fresh, faults + AGAIN % "ctypes.PyDLL(C._name).fault_spin()"))
    assert "at Cell In[1], line 6, in <module>" in line and "in fault_spin() of faults.so" in line


def test_a_loop_that_swallows_it(fresh):
    line = insist(fresh, begun(fresh, "import time\n" + AGAIN % "while True: time.sleep(0.01)"))
    assert "at Cell In[1], line 5, in <module>" in line
    for _ in range(3):
        fresh.interrupt()
    time.sleep(0.5)
    fresh.poll(0.1)
    assert sum("Interrupted twice" in str(message["content"]) for message in fresh.log) == 1, "it is said once"


@pytest.mark.parametrize("start", ["await stubborn()", "await asyncio.create_task(stubborn())",
                                   "await asyncio.gather(stubborn())"])
def test_a_task_that_swallows_its_cancellation(fresh, gate, start):
    msg_id = begun(fresh, "import asyncio, os\nasync def stubborn():\n    while True:\n        try:\n"
                          "            print('begun', flush=True)\n"
                          "            while not os.path.exists(%r): await asyncio.sleep(0.01)\n            return\n"
                          "        except BaseException: pass\n%s" % (gate.path, start))
    line = insist(fresh, msg_id)
    assert "at Cell In[1], line 6, in stubborn" in line and "CancelledError" in line
    gate.open()
    assert fresh.reply(msg_id)["content"]["status"] in ("ok", "error")
    assert fresh.run("1 + 1").result == "2"


def test_one_that_ends_is_not_spoken_of(kernel):
    """Between the two interrupts and the look the cell has ended, or another one runs."""
    for _ in range(3):
        msg_id = begun(kernel, "import time\ntry:\n    print('begun', flush=True)\n    time.sleep(60)\n"
                               "except KeyboardInterrupt: print('once', flush=True)\ntime.sleep(60)")
        kernel.interrupt()
        kernel.told(msg_id, "once")
        kernel.interrupt()
        assert kernel.finish(msg_id).reply["ename"] == "KeyboardInterrupt"
        kernel.run("time.sleep(0.5)")
    kernel.poll(0.1)
    assert not any("Interrupted twice" in str(message["content"]) for message in kernel.log)


def test_a_program_that_took_the_place_away(fresh):
    """It is told without the place."""
    fresh.run("import faulthandler, signal; faulthandler.unregister(signal.SIGRTMAX - 1)")
    line = insist(fresh, begun(fresh, AGAIN % "sum(range(10**13))"))
    assert line.startswith("Interrupted twice, and the cell goes on")
