"""A crash is reported in the cell that it ended, and the process dies by its signal all the same."""
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys

import pytest
import support

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the handlers are for Linux")

LINK = """
from drupe import _jkernel
class Link(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("size", "version")] + [(name, ctypes.c_void_p) for name in (
        "cell_retain", "cell_release", "publish", "set_cell_check", "set_fault_claim", "set_crash_notes", "set_usage")]
get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
link = Link.from_address(get(_jkernel.link, b"drupe._jkernel.link"))
def register(what, function):
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(getattr(link, what))(ctypes.cast(function, ctypes.c_void_p))
"""


class Crash:
    """What a crashing cell left behind."""

    def __init__(self, kernel, code, meanwhile=None):
        self.id = kernel.client.execute(code)
        if meanwhile is not None:
            meanwhile(self.id)
        self.signal = -support.wait_until(lambda: kernel.poll() or exit_code(kernel), what="the end of the process")
        for _ in range(20):  # a busy machine's client hears of it late
            kernel.poll(0.2)
            self.messages = kernel.of_parent(self.id)
            if self.of("error"):
                break

    def of(self, msg_type):
        return [message["content"] for message in self.messages if message["msg_type"] == msg_type]

    def text(self, name):
        return "".join(content["text"] for content in self.of("stream") if content["name"] == name)

    @property
    def report(self):
        (content,) = self.of("error")
        assert content["ename"] == "KernelCrash"
        assert content["traceback"][0] == "KernelCrash: " + content["evalue"]
        return content["evalue"]

    @property
    def lines(self):
        (content,) = self.of("error")
        return "\n".join(content["traceback"])


def exit_code(kernel):
    return kernel.manager.provisioner.process.poll()


def restarted(kernel):
    """The stderr text of the next kernel's first two cells."""
    kernel.manager.restart_kernel(now=True)
    kernel.client.wait_for_ready(timeout=support.TIMEOUT)
    kernel.log.clear()
    first, second = kernel.run("print('first')"), kernel.run("print('second')")
    assert first.text() == "first\n" and second.text("stderr") == ""
    types = [message["msg_type"] for message in first.messages]
    assert "stream" not in types[:types.index("execute_input")]
    return first.text("stderr")


def test_null_pointer(fresh, faults):
    crash = Crash(fresh, faults + "print('before')\ndef f():\n    C.fault_null()\nf()")
    assert crash.signal == signal.SIGSEGV
    assert crash.report.startswith("SIGSEGV in the main thread: address 0x10 is not mapped")
    assert "Cell In[1], line 6, in <module>\n  Cell In[1], line 5, in f\n" in crash.lines
    assert "faults.so + 0x" in crash.lines and "in fault_null" in crash.lines
    lead, details = crash.lines.split("\nDetails:\n")
    what, where, then = lead.split("\n")  # what happened, where, and what to do; the rest follows
    assert what.startswith("KernelCrash: SIGSEGV") and where == "Where: Cell In[1], line 5, in f"
    assert "ends with SIGSEGV" in then and "drupe.checked" not in then  # no device has done anything
    assert "in fault_null" in details and "Cell In[1], line 6" in details
    assert "interactiveshell.py" not in crash.lines
    assert crash.text("stdout") == "before\n"
    types = [message["msg_type"] for message in support.pieces(crash.messages)]
    assert types == ["status", "execute_input", "stream", "error"]
    notice = restarted(fresh)
    assert notice == "The previous kernel ended by SIGSEGV while cell [1] ran, as reported there.\n"


def test_advice_after_device_work(fresh, faults):
    crash = Crash(fresh, faults + "import drupe.array as da\nfloat(da.ones(1000, device='host').sum())\nC.fault_null()")
    what, where, then = crash.lines.split("\nDetails:\n")[0].split("\n")
    assert "the last device operation: #3 'to_host' on host:cpu:0" in where and "with drupe.checked():" in then


@pytest.mark.parametrize("code, number, text", [
    pytest.param("C.fault_divide(0)", signal.SIGFPE, "SIGFPE in the main thread: integer division by zero at 0x",
                 marks=pytest.mark.skipif(platform.machine() != "x86_64", reason="it is no fault there")),
    ("C.fault_illegal()", signal.SIGILL, "SIGILL in the main thread: an instruction that the processor does not know"),
    ("os.abort()", signal.SIGABRT, "SIGABRT in the main thread: abort() was called"),
    ("C.fault_recursion(0)", signal.SIGSEGV, "the stack is full"),
    ("C.fault_threads(20)", signal.SIGSEGV, "address 0x10 is not mapped"),
    ("C.fault_thread(); time.sleep(60)", signal.SIGSEGV, 'SIGSEGV in thread "'),
    ("t = threading.Thread(target=C.fault_null); t.start(); t.join()", signal.SIGSEGV, 'SIGSEGV in thread "'),
    ("t = threading.Thread(target=C.fault_recursion, args=(0,)); t.start(); t.join()", signal.SIGSEGV,
     "the stack is full"),
])
def test_signals(fresh, faults, code, number, text):
    crash = Crash(fresh, faults + code)
    assert crash.signal == number
    assert text in crash.report
    if "Thread(" in code:
        assert "in fault_" in crash.lines and "/threading.py" in crash.lines


def test_what_c_says_stays(fresh, faults):
    """The text of assert() and of the allocator, and what printf() holds back, come before the report."""
    crash = Crash(fresh, faults + "print('one')\nos.write(1, b'two\\n')\nC.fault_assert(0)")
    assert crash.signal == signal.SIGABRT
    assert crash.text("stdout") == "one\ntwo\n"
    assert "the bearing holds" in crash.text("stderr") and "Fatal Python error" not in crash.text("stderr")
    assert crash.messages[-1]["msg_type"] == "error"


def test_inside_printf(fresh, faults):
    crash = Crash(fresh, faults + "C.fault_in_stdio()")
    assert crash.signal == signal.SIGSEGV and crash.report
    assert crash.text("stdout") == "half a line"


def test_heap_damage(fresh, faults, tmp_path):
    """The allocator's lock is held by the thread that crashed. By then the io thread has sent the text."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def open_gate(msg_id):
        fresh.wait_iopub(lambda message: message["parent_header"].get("msg_id") == msg_id
                         and message["msg_type"] == "stream" and message["content"]["text"].endswith("x\n"))
        gate.write_text("go")

    fresh.run("for i in range(2000):\n    print('line', i)")
    crash = Crash(fresh, faults + "print('x' * 100000)\nopen(%r).read()\nC.fault_double_free()" % str(gate), open_gate)
    assert crash.signal == signal.SIGABRT and crash.report
    assert len(crash.text("stdout")) == 100001
    assert "double free" in crash.text("stderr")


def test_heap_damage_while_sending(fresh, faults, tmp_path):
    """The allocator's lock is taken while the io thread has text to send and memory to release: it needs neither."""
    gate = tmp_path / "gate"
    code = faults + """
import subprocess
end, full = os.pipe()
os.set_blocking(full, False)
try:
    while True: os.write(full, b"y" * 4096)
except BlockingIOError: pass
os.set_blocking(full, True)
subprocess.Popen(["sh", "-c", "while [ ! -e '%s' ]; do sleep 0.01; done; cat > /dev/null"], stdin=end)
os.dup2(full, 2)  # here the allocator says what it has found, with its lock taken, and now has to wait
for i in range(20):
    print("x" * 100000)
C.fault_double_free()""" % gate

    def open_gate(msg_id):
        fresh.wait_iopub(lambda message: message["parent_header"].get("msg_id") == msg_id
                         and message["msg_type"] == "stream" and message["content"]["text"].endswith("x\n"))
        gate.touch()

    crash = Crash(fresh, code, open_gate)
    assert crash.signal == signal.SIGABRT and crash.report
    assert "in fault_double_free" in crash.lines
    assert crash.text("stdout") == ("x" * 100000 + "\n") * 20
    notice = restarted(fresh)
    assert "SIGABRT" in notice and "while cell [1] ran, as reported there" in notice


def test_much_output_before(fresh, faults):
    crash = Crash(fresh, faults + "for i in range(20000):\n    print(i)\nC.fault_null()")
    assert crash.report
    assert crash.text("stdout") == "".join("%d\n" % i for i in range(20000))


def test_after_the_cell(fresh, faults):
    """A crash while nothing runs goes to the cell that ran last."""
    crash = Crash(fresh, faults + "threading.Timer(0.5, C.fault_null).start()")
    assert crash.signal == signal.SIGSEGV and crash.report
    assert "No cell was running" in crash.lines
    assert "after cell [1] had ended" in restarted(fresh)


def test_forked_child(fresh, faults):
    result = fresh.run(faults + """
import multiprocessing
child = os.fork()
if child == 0:
    C.fault_null()
print(os.WTERMSIG(os.waitpid(child, 0)[1]))
process = multiprocessing.get_context("fork").Process(target=os.abort)
process.start(); process.join()
print(process.exitcode)""")
    assert result.status == "ok" and result.text() == "11\n-6\n" and result.of("error") == []
    assert fresh.run("1 + 1").result == "2"


@pytest.mark.parametrize("which", range(3))
def test_own_threads(fresh, faults, which):
    """A fault in the io, control or heartbeat thread: reported too."""
    code = faults + """
names = {int(t): open("/proc/self/task/%s/comm" % t).read().strip() for t in os.listdir("/proc/self/task")}
own = sorted(t for t, name in names.items() if t != os.getpid() and name == names[os.getpid()])[:3]
C.fault_signal_thread(own[WHICH], signal.SIGSEGV)
time.sleep(60)""".replace("WHICH", str(which))
    crash = Crash(fresh, code)
    assert crash.signal == signal.SIGSEGV
    assert "a thread of the kernel's own" in crash.report
    notice = restarted(fresh)
    assert notice == "The previous kernel ended by SIGSEGV while cell [1] ran, as reported there.\n"


def test_stuck_in_time(fresh, faults):
    """Device notes that hang and an io thread that is stopped: two seconds at most, and the next kernel tells."""
    code = faults + LINK + """
register("set_crash_notes", C.notes_hanging)
names = {int(t): open("/proc/self/task/%s/comm" % t).read().strip() for t in os.listdir("/proc/self/task")}
for thread, name in names.items():
    if name == names[os.getpid()] and thread != os.getpid():
        C.stop_thread(thread)
time.sleep(0.1)
C.fault_null()"""
    crash = Crash(fresh, code)
    assert crash.signal == signal.SIGSEGV and crash.of("error") == []
    notice = restarted(fresh)
    assert "The previous kernel crashed while cell [1] ran: SIGSEGV in the main thread: address 0x10" in notice
    assert "in fault_null" in notice and "Cell In[1]" in notice


def test_notes(fresh, faults):
    crash = Crash(fresh, faults + LINK + "register('set_crash_notes', C.notes_plain)\nC.fault_null()")
    assert "Last device operations:\n  1. twice on host:cpu:0, 16 items" in crash.lines
    assert restarted(fresh) == ("The previous kernel ended by SIGSEGV while cell [1] ran, as reported there.\n"
                                "Last device operations:\n  1. twice on host:cpu:0, 16 items\n")


def test_an_alarm_clock_of_the_user(fresh, faults):
    """Its signals are not taken for those that tell the report to hurry."""
    crash = Crash(fresh, faults + "import signal\nsignal.signal(signal.SIGALRM, lambda *_: None)\n"
                                  "signal.setitimer(signal.ITIMER_REAL, .001, .001)\nprint('y' * (4 << 20))\n"
                                  "C.fault_null()")
    assert crash.signal == signal.SIGSEGV
    assert crash.report.startswith("SIGSEGV in the main thread: address 0x10 is not mapped")
    assert "Cell In[1], line " in crash.lines and "in fault_null" in crash.lines


def test_a_crash_in_the_report(fresh, faults):
    code = faults + LINK + ("register('set_crash_notes', C.notes_crashing)\n"
                            "register('set_fault_claim', C.claim_crashing)\n")
    crash = Crash(fresh, code + "C.fault_null()")
    assert crash.signal == signal.SIGSEGV
    assert "address 0x10" in crash.report and "in fault_null" in crash.lines


def test_a_claimed_fault(fresh, faults):
    result = fresh.run(faults + LINK + "register('set_fault_claim', C.claim_worker)\nC.fault_worker()\n"
                       "worker = ctypes.c_int.in_dll(C, 'worker_id')\nwhile not worker.value: time.sleep(0.01)")
    assert result.status == "ok"
    parked = "'State:\\tS' in open('/proc/self/task/%d/status' % worker.value).read()"
    support.wait_until(lambda: fresh.run(parked).result == "True", what="the thread to be parked")
    crash = Crash(fresh, "C.fault_null()")  # on the main thread: not claimed
    assert crash.signal == signal.SIGSEGV and crash.report


def test_a_handler_in_front(fresh, faults):
    """A driver's handler stays where it is, and what it passes on is reported with everything."""
    assert fresh.run(faults + "C.driver_install()").status == "ok"
    assert fresh.run("C.driver_in_front()").result == "1"
    crash = Crash(fresh, "C.fault_null()")
    assert crash.signal == signal.SIGSEGV
    assert "address 0x10 is not mapped" in crash.report and "Cell In[3], line 1" in crash.lines


@pytest.mark.parametrize("code, traceback", [
    ("faulthandler.disable()", False),
    ("faulthandler.enable(open(path, 'w'))", False),
    ("faulthandler.disable(); faulthandler.enable(open(path, 'w'))", False),
    ("faulthandler.is_enabled()", True),
])
def test_faulthandler_of_the_user(fresh, faults, tmp_path, code, traceback):
    path = str(tmp_path / "trace")
    crash = Crash(fresh, faults + "import faulthandler\npath = %r\n%s\nC.fault_null()" % (path, code))
    assert crash.signal == signal.SIGSEGV and "SIGSEGV in the main thread" in crash.report
    assert ("Cell In[1], line 6" in crash.lines) == traceback
    if "enable(" in code:
        assert "Fatal Python error: Segmentation fault" in open(path).read()


def start_raw(spec_folder, tmp_path, environment):
    """A kernel whose terminal is a file; returns the process, its output file and its connection file."""
    argv = json.loads((spec_folder / "drupe" / "kernel.json").read_text())["argv"]
    connection = tmp_path / "connection.json"
    connection.touch(0o600)
    ports = {name + "_port": 0 for name in ("shell", "iopub", "stdin", "control", "hb")}
    connection.write_text(json.dumps({**ports, "ip": "127.0.0.1", "transport": "tcp", "key": "k",
                                      "signature_scheme": "hmac-sha256"}))
    output = open(tmp_path / "terminal", "wb+")
    argv = [part.replace("{connection_file}", str(connection)) for part in argv]
    process = subprocess.Popen(argv, stdout=output, stderr=output, env={**os.environ, **environment})
    return process, output, connection


@pytest.mark.parametrize("how", ["start", "exit"])
def test_start_and_end(spec_folder, tmp_path, how):
    """A crash while the shell is made, or in the exit hooks: dead by the signal at once, nothing on the terminal."""
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    code = "import os, atexit\n" + ("os.abort()" if how == "start" else "atexit.register(os.abort)")
    (startup / "crash.py").write_text(code)
    process, output, connection = start_raw(spec_folder, tmp_path, {"IPYTHONDIR": str(tmp_path / "ipython")})
    try:
        if how == "exit":
            from jupyter_client import BlockingKernelClient

            support.wait_until(lambda: json.loads(connection.read_text())["shell_port"], what="the ports")
            client = BlockingKernelClient(connection_file=str(connection))
            client.load_connection_file()
            client.start_channels()
            client.wait_for_ready(timeout=support.TIMEOUT)
            client.execute("", reply=True, timeout=support.TIMEOUT)  # the hook is there: a kernel is ready before that
            client.shutdown()
            client.stop_channels()
        assert process.wait(support.TIMEOUT) == -signal.SIGABRT
    finally:
        process.kill()
    output.seek(0)
    assert output.read() == b""


def test_the_record(fresh, faults):
    """It is private, there while the kernel runs, and gone after a clean end."""
    path = fresh.manager.connection_file + ".drupe-state"
    assert os.stat(path).st_mode & 0o777 == 0o600
    fresh.manager.shutdown_kernel()
    assert not os.path.exists(path)


def test_killed(fresh):
    fresh.run("1")
    assert restarted(fresh) == ""  # killed, but no cell was running
    busy = fresh.client.execute("import time; time.sleep(60)")
    fresh.started(busy)
    os.kill(fresh.pid, signal.SIGKILL)
    fresh.manager.provisioner.process.wait()
    notice = restarted(fresh)
    assert notice.startswith("The previous kernel ended without a report while cell [3] ran: it was killed")
    assert "device operations" not in notice


def test_killed_while_a_device_works(fresh):
    """The next kernel tells what the devices had to do."""
    fresh.run("import testwork; from drupe import _engine; import drupe, time; queue = drupe.Queue('host')")
    gate = "gate = _engine._event_open('gate'); task = testwork.task(queue, 0.0, None, [gate])"
    fresh.client.execute(gate + "\ntime.sleep(60)")
    record = pathlib.Path(fresh.manager.connection_file + ".drupe-state")
    support.wait_until(lambda: b"not known to be over" in record.read_bytes(), what="a note of the task")
    os.kill(fresh.pid, signal.SIGKILL)
    fresh.manager.provisioner.process.wait()
    first, heading, *_, last = restarted(fresh).splitlines()
    assert "while cell [2] ran" in first and heading.startswith("Last device operations, as of "), (first, heading)
    assert "'task' on host:cpu:0" in last and "cell [2], line 1" in last and "not known to be over" in last, last


def fake_proc(folder, kills):
    """What DRUPE_TEST_PROC stands for: a memory cgroup of version 2 with a limit of 3 GiB."""
    group = folder / "mount" / "job"
    group.mkdir(parents=True, exist_ok=True)
    (folder / "self").mkdir(exist_ok=True)
    (folder / "self" / "cgroup").write_text("0::/job\n")
    (folder / "self" / "mountinfo").write_text("30 24 0:26 / %s rw - cgroup2 cgroup2 rw\n" % (folder / "mount"))
    (group / "memory.max").write_text("%d\n" % (3 << 30))
    (group / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 3\noom_kill %d\n" % kills)


def test_out_of_memory(spec_folder, tmp_path):
    fake_proc(tmp_path, 4)
    kernel = support.Kernel(spec_folder, {"DRUPE_TEST_PROC": str(tmp_path)})
    try:
        busy = kernel.client.execute("import time; time.sleep(60)")
        kernel.started(busy)
        fake_proc(tmp_path, 5)
        os.kill(kernel.pid, signal.SIGKILL)
        kernel.manager.provisioner.process.wait()
        assert restarted(kernel) == ("The previous kernel was ended by the system for lack of memory "
                                     "while cell [1] ran. "
                                     "The limit is 3.00 GiB. Its variables are lost.\n")
    finally:
        kernel.close()


def test_asked_to_end_is_no_news(fresh):
    """A cell that cannot be broken makes the watchdog end the process: the user asked for it."""
    busy = fresh.client.execute("import ctypes; ctypes.PyDLL(None).usleep(60000000)")
    fresh.started(busy)
    fresh.manager.restart_kernel()
    fresh.client.wait_for_ready(timeout=support.TIMEOUT)
    fresh.log.clear()
    assert fresh.run("print(1)").text("stderr") == ""
