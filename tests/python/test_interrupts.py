"""Ctrl-C in what takes long: it comes through at once, other threads go on, and the process ends as it should."""
import os
import stat

import pytest

HEAD = """
import faulthandler, os, signal, sys, threading, time
faulthandler.enable()
signal.signal(signal.SIGINT, signal.default_int_handler)
def until(condition):
    while not condition():
        time.sleep(0.001)
def interrupt_when(condition):
    def run():
        until(condition)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=run, daemon=True).start()
import drupe, drupe.array as da
from drupe import _engine
"""


@pytest.fixture
def run(fresh):
    def in_process(text, timeout=60, **environment):
        result = fresh(HEAD + text, timeout=timeout, **environment)
        assert result.returncode == 0, f"ended with {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    return in_process


@pytest.fixture
def stuck_compiler(tmp_path):
    """A C compiler that does not come to an end, once there is a file `stuck`; it tells its process in `begun`."""
    script = tmp_path / "cc"
    script.write_text(f"""#!/bin/sh
if [ -e {tmp_path}/stuck ] && [ "$1" != --version ]; then
    echo $$ > {tmp_path}/begun.part && mv {tmp_path}/begun.part {tmp_path}/begun
    exec sleep 100
fi
exec cc "$@"
""")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def test_build_by_a_process_is_stopped(run, stuck_compiler, tmp_path):
    out = run("""
C = "kernel void one(float *x) { x[get_global_id(0)] = 1; }"
FOLDER = %r
drupe.Program(C, "host", language="c")
open(FOLDER + "/stuck", "w").close()
interrupt_when(lambda: os.path.exists(FOLDER + "/begun"))
try:
    drupe.Program(C, "host", language="c", options="-DOTHER")
except KeyboardInterrupt:
    print("interrupted")
with open(FOLDER + "/begun") as file:
    compiler = int(file.read())
def gone():
    try:
        os.kill(compiler, 0)
    except ProcessLookupError:
        return True
until(lambda: gone() and _engine._builds() == 0)
os.remove(FOLDER + "/stuck")
program = drupe.Program(C, "host", language="c", options="-DTHIRD")
x = da.zeros(3, dtype="float32", device="host")
program.one(x, global_size=3).wait()
print(x.tolist())
""" % str(tmp_path), DRUPE_CC=str(stuck_compiler))
    assert out == "interrupted\n[1.0, 1.0, 1.0]\n"


def test_end_while_a_process_builds(run, stuck_compiler, tmp_path):
    out = run("""
FOLDER = %r
open(FOLDER + "/stuck", "w").close()
C = "kernel void one(float *x) { x[get_global_id(0)] = 1; }"
threading.Thread(target=drupe.Program, args=(C, "host"), kwargs={"language": "c"}, daemon=True).start()
until(lambda: os.path.exists(FOLDER + "/begun"))
print("end")
""" % str(tmp_path), DRUPE_CC=str(stuck_compiler))
    assert out == "end\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "begun").read_text()), 0)


LONG = """
A = "#define A(x) x x x x x x x x x x\\n"
SOURCE = A + ("kernel void f(global float *x) { int i = get_global_id(0); float s = 0; float t = i; "
              "A(A(A(A(s += x[i] * s + t; t = x[i + 1] * s; )))) x[i] = s + t; }")
"""


def test_build_in_a_driver_goes_on_alone(run, opencl):
    """And the process ends while it does."""
    out = run(LONG + """
interrupt_when(lambda: _engine._builds() == 1)
try:
    drupe.Program(SOURCE, %r, cache=False)
except KeyboardInterrupt:
    print("interrupted, and", _engine._builds(), "goes on")
x = da.arange(4, device=%r)  # the driver works on
print((x + x).tolist())
""" % (opencl.filter_string, opencl.filter_string), timeout=110)
    assert out == "interrupted, and 1 goes on\n[0, 2, 4, 6]\n"


def test_an_interrupt_that_does_not_raise_leaves_the_build_alone(run, opencl):
    """The compiler in the driver has a handler of its own meanwhile, which would take its files away."""
    out = run("""
told = []
signal.signal(signal.SIGINT, lambda *about: told.append("told"))
interrupt_when(lambda: _engine._builds() == 1)
program = drupe.Program("kernel void f(global float *x) { x[get_global_id(0)] = 1; }", %r, cache=False)
until(lambda: told)
print(program.kernel_names, signal.getsignal(signal.SIGINT) is not signal.SIG_DFL)
""" % opencl.filter_string)
    assert out == "['f'] True\n"


@pytest.mark.parametrize("call", ["da.asarray(numbers, device='host')", "big.tolist()"])
def test_signals_are_heard_among_many_numbers(run, call):
    """A call that hears none leaves one for after it, however many come."""
    out = run("""
numbers, big = [1.0] * 3_000_000, da.ones(3_000_000, device="host")
big.tolist()
heard = 0
def hear(*about):
    global heard
    heard += 1
signal.signal(signal.SIGALRM, hear)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
def one():
    global heard
    heard = 0
    CALL
    return heard
until(lambda: one() > 20)
signal.setitimer(signal.ITIMER_REAL, 0)
def stop(*about):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.001)
try:
    while True:
        CALL
except KeyboardInterrupt:
    print("interrupted")
""".replace("CALL", call))
    assert out == "interrupted\n"


def test_an_interrupted_wait_leaves_the_other_threads_alone(run):
    """The queue has no other handle than the wait's, and its work ends when Python says so."""
    out = run("""
from drupe.memory import MemoryUSMShared
stall = drupe.Program('''kernel void stall(char *x, unsigned long flag)
{
    volatile char *go = (volatile char *)flag;
    while (!*go) ;
    x[0] = 7;
}''', "host", language="c").stall
flag = MemoryUSMShared(64, queue=drupe.Queue("host"))
go = memoryview(flag)
go[0] = 1
memory = MemoryUSMShared(64, queue=drupe.Queue("host"))  # nobody else has the queue
stall(memory, flag._pointer, global_size=1, event=False)
memory.tobytes()
go[0] = 0
stall(memory, flag._pointer, global_size=1, event=False)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    memoryview(memory)
    print("it did not wait")
except KeyboardInterrupt:
    print("interrupted")
go[0] = 1
print(memory.tobytes()[0])
""")
    assert out == "interrupted\n7\n"
