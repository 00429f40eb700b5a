"""Python code that the engine runs may do anything: also let go of what the engine is at work with.

What was freed is overwritten (MALLOC_PERTURB_), so that using it ends the process; the build with AddressSanitizer says
more. `_stress` has a function called at every point where the engine drops Python objects.
"""
import os
import subprocess
import sys

import pytest

POISON = {"MALLOC_PERTURB_": "165", "PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


@pytest.fixture
def poisoned(fresh):
    def run(text, *before, **environment):
        result = fresh("import faulthandler\nfaulthandler.enable()\n" + text, **{**POISON, **environment})
        assert result.returncode == 0, f"ended with {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    return run


@pytest.fixture
def poisoned_script(tmp_path):
    def run(text, *arguments):
        script = tmp_path / "script.py"
        script.write_text(text)
        result = subprocess.run([sys.executable, script, *map(str, arguments)], capture_output=True, text=True,
                                env={**os.environ, **POISON}, timeout=110, check=False)
        assert result.returncode == 0, f"ended with {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout

    return run


def test_a_queue_that_goes_while_its_work_is_collected(poisoned):
    """What the work kept waits when it is dropped, and so comes again to the queues that are being looked at."""
    assert poisoned("""if True:
        import drupe
        from drupe.memory import MemoryUSMDevice
        other = drupe.Queue("host")
        memory = MemoryUSMDevice(1 << 16, queue=other)  # of another queue, so that it does not hold the first
        dropped, reused = 0, []
        class Kept(bytearray):
            def __del__(self):
                global dropped
                dropped += 1
                other.barrier().wait()
                reused.extend(bytearray(size) for size in range(512, 4096, 16))  # what was freed is theirs now
        for _ in range(20):
            queue = drupe.Queue("host")
            gate = drupe._engine._event_open("gate")
            for _ in range(3):
                last = queue.copy(memory, Kept(1 << 16), wait_for=gate)
            gate._finish()
            number = queue.number
            while not last.done:
                pass
            del last, queue, gate
            other.barrier().wait()
        other.wait()
        other.barrier().wait()
        assert dropped == 60, dropped
        assert not any(map(any, reused)), "written to after it was freed"
        print("good")
    """) == "good\n"


@pytest.mark.parametrize("entry", ["shape", "strides"])
def test_an_interface_that_changes_while_it_is_read(poisoned, entry):
    out = poisoned("""if True:
        from drupe.memory import MemoryUSMDevice
        memory = MemoryUSMDevice(4096, device="host")
        base = memory.__sycl_usm_array_interface__["data"][0]
        class Index:
            def __index__(self):
                entries.clear()
                fill = [bytes(8 * 41 + 24) for _ in range(100)]
                return 1
        class Object: pass
        entries = {"typestr": "|u1", "data": (base, False), "version": 1}
        ones = [1 + (i > 50) for i in range(40)]  # a tuple of constants would belong to the code, too
        if ENTRY == "shape":
            entries["shape"] = tuple([Index()] + ones[1:])
        else:
            entries.update(shape=tuple(ones), offset=Index(), strides=tuple(ones))
        thing = Object()
        thing.__sycl_usm_array_interface__ = entries
        try:
            print(MemoryUSMDevice(thing).nbytes)
        except ValueError as error:
            print(error)
    """.replace("ENTRY", repr(entry)))
    assert out == "1\n"


SOURCE = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <drupe/ext.h>
static PyObject *queue_of(PyObject *self, PyObject *device)
{
    drupe_queue *queue = drupe_ext->queue_of(device);
    return queue ? drupe_ext->queue_object(queue) : NULL;
}
static PyMethodDef methods[] = {{"queue_of", queue_of, METH_O, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "queues", "", -1, methods};
PyMODINIT_FUNC PyInit_queues(void) { return drupe_ext_import() < 0 ? NULL : PyModule_Create(&module); }
"""


def test_the_queue_of_a_part_of_a_device(poisoned, tmp_path):
    (tmp_path / "queues.c").write_text(SOURCE)
    assert poisoned("""if True:
        import drupe, drupe.ext, drupe.array as da
        queues = drupe.ext.build(PATH)
        part = drupe.Device("host").create_sub_devices(1)[0]
        assert queues.queue_of(part) == queues.queue_of(part)
        first = queues.queue_of(part).number
        assert da.ones(1, device=part).queue.number == first
        with drupe.device(part):
            assert queues.queue_of(None).number == first
        assert queues.queue_of("host") == queues.queue_of(drupe.Device("host"))
        assert drupe._engine._queues
        print("good")
    """.replace("PATH", repr(str(tmp_path / "queues.c")))) == "good\n"


def test_dropping_wherever_python_may_run(poisoned):
    """At each of these points queues, memory and events go that calls further up are at work with."""
    assert poisoned(WALK) == "good\n"


WALK = """if True:
    import gc, random, sys, drupe, drupe.array as da
    import testwork; from drupe import _engine
    from drupe.memory import MemoryUSMDevice, MemoryUSMShared
    chance, held, deep, points = random.Random(1), {}, 0, 0
    class Kept(bytearray):
        def __del__(self):
            if other is not None:
                other.barrier().wait()
    other = drupe.Queue("host")
    def stress():
        global deep, points
        points += 1
        if deep < 3:
            deep += 1
            if held and chance.random() < 0.5:
                held.pop(chance.choice(list(held)), None)
            if points % 50 == 0:
                gc.collect()
            if chance.random() < 0.1:
                other.barrier().wait()
            deep -= 1
    _engine._stress(stress)
    def new():
        held["queue"] = drupe.Queue("host", in_order=chance.random() < 0.7)
        held["memory"] = MemoryUSMShared(4096, queue=held.get("queue") or other)
        held["array"] = da.ones(500, dtype="float32", queue=held.get("queue") or other)
        held["kept"] = Kept(4096)
    def get(name):
        while name not in held:
            new()
        return held.pop(name) if chance.random() < 0.5 else held.get(name) or get(name)
    for _ in range(400):
        what = chance.randrange(10)
        try:
            if what == 0: get("queue").copy(get("memory"), get("kept"))
            elif what == 1: get("queue").copy(get("kept"), get("memory"), event=False)
            elif what == 2: get("memory").copy_from_host(get("kept"))
            elif what == 3: memoryview(get("memory")).release()
            elif what == 4: held["array"] = get("array") + get("array") * 2
            elif what == 5: get("array").tolist()
            elif what == 6: get("queue").wait()
            elif what == 7: held["event"] = get("queue").barrier(wait_for=[get("queue").barrier()])
            elif what == 8: testwork.task(get("queue"), 0, "broken").wait()
            elif what == 9: get("queue").fill(get("memory"), 3).wait()
        except (drupe.DeviceError, KeyError, ValueError):
            pass
    _engine._stress(None)
    held.clear()
    other.wait()
    assert points > 400
    other = None
    print("good")
"""


SCHEDULE = """
import concurrent.futures, faulthandler, gc, os, random, signal, sys, threading
faulthandler.enable()
faulthandler.dump_traceback_later(100, exit=True)
import drupe, drupe.array as da
import testwork; from drupe import _engine
from drupe.memory import MemoryUSMDevice, MemoryUSMShared

SEED, STEPS, THREADS, WHERE = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
C = "kernel void twice(float *x, int n) { int i = get_global_id(0); if (i < n) x[i] = x[i] * 2 + 1; }"
CL = C.replace("float *", "global float *")
program = drupe.Program(C, WHERE, language="c") if WHERE == "host" else drupe.Program(CL, WHERE)
other = drupe.Queue(WHERE)  # for whatever is dropped while a host task runs: none of its own
tasks = drupe.Queue(WHERE)
shared = [drupe.Queue(WHERE), drupe.Queue(WHERE, in_order=False), drupe.Device(WHERE).queue]
drawer, wrong = {}, []  # what threads leave for each other, and take away while others use it
ending = False

class Kept(bytearray):
    def __del__(self):
        if not ending:
            other.barrier().wait()
            drawer.pop(len(drawer) % 7, None)

class Cycle:  # found by the collector alone
    def __init__(self, *things):
        self.things, self.me = things, self

    def __del__(self):
        if not ending:
            tasks.host_task(len, (self.things,))

def step(chance):
    queue = chance.choice(shared) if chance.random() < 0.5 else drupe.Queue(WHERE, in_order=chance.random() < 0.7)
    what, key = chance.randrange(18), chance.randrange(7)
    if what < 3:
        queue = drupe.Queue(WHERE)  # nobody cancels there
    if what == 0:
        n = chance.choice([3, 100, 5000])
        if float((da.arange(n, dtype="float64", queue=queue) * 2 + 1).sum()) != n * n:
            wrong.append("sum")
    elif what == 1:
        x = da.ones(256, dtype="float32", queue=queue)
        event = drawer[key] = program.twice(x, 256, global_size=256)
        if chance.random() < 0.5:
            event.wait()
            if x.tolist()[:2] != [3, 3]:
                wrong.append("twice")
    elif what == 2:
        memory = MemoryUSMShared(chance.choice([64, 4096, 100_000]), queue=queue)
        memory.copy_from_host(bytes(64))
        memoryview(memory)[:4] = b"abcd"
        if memory.tobytes()[:4] != b"abcd":
            wrong.append("memory")
        drawer[key] = memory
    elif what == 3:
        size = chance.choice([10, 70_000, 300_000])
        drawer[key] = queue.copy(MemoryUSMDevice(size, queue=queue), Kept(size))
    elif what == 4:
        queue.cancel()
    elif what == 5:
        queue.barrier().add_done_callback(lambda event: drawer.pop(key, None))
    elif what == 6:
        drawer[key] = queue.host_task(lambda: (drawer.pop(key, None), other.barrier().wait()))
    elif what == 7:
        thing = drawer.pop(key, None)
        if isinstance(thing, drupe.Event):
            try:
                thing.wait(chance.choice([0, 0.001, 0.01]))
            except drupe.WaitTimeoutError:
                pass
    elif what == 8:
        gate = _engine._event_open("gate")
        drawer[key] = queue.barrier(wait_for=[gate, other.barrier()])
        gate._finish()
    elif what == 9:
        Cycle(queue, Kept(100), MemoryUSMDevice(100, queue=queue), drawer.get(key))
    elif what == 10:
        gc.collect(chance.randrange(3))
    elif what == 11:
        drawer[key] = testwork.task(queue, chance.choice([0, 0, 0.001]), chance.choice([None, None, "broken"]))
    elif what == 12:
        queue.wait()
    elif what == 13:
        _engine._queues() if hasattr(_engine, "_queues") else None
        drupe.trace(limit=10), repr(queue), queue.pending, queue._blockers()
    elif what == 14:
        x = da.asarray(list(range(1000)), queue=queue)
        drawer[key] = x[::2] + 1
    elif what == 15:
        part = drupe.Device("host").create_sub_devices(1)[0]
        drawer[key] = (da.ones(100, device=part) + 1).sum()
    elif what == 16:
        future = executor.submit(len, ())
        drawer[key] = queue.barrier(wait_for=drupe.Event.from_future(future))
    elif what == 17:
        drawer.clear()

def work(number):
    chance = random.Random(SEED * 1000 + number)
    for _ in range(STEPS):
        try:
            step(chance)
        except drupe.DeviceError:
            pass
        except Exception as error:
            wrong.append(repr(error))

def stand_still():
    try:
        drupe.Queue(WHERE).barrier(wait_for=_engine._event_open("never")).wait()
    except drupe.DeviceError:
        pass

def interrupt(number, frame):
    if frame.f_code is stand_still.__code__:  # not in what is dropped meanwhile, which would swallow it
        raise KeyboardInterrupt

executor = concurrent.futures.ThreadPoolExecutor(2)
executor.submit(len, ()).result()
if len(sys.argv) > 5:
    calls = random.Random(SEED)
    _engine._stress(lambda: gc.collect(0) if calls.random() < 0.1 else None)
signal.signal(signal.SIGALRM, interrupt)
threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
interrupted = 0
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
while any(thread.is_alive() for thread in threads):
    try:
        stand_still()
    except KeyboardInterrupt:
        interrupted += 1
signal.setitimer(signal.ITIMER_REAL, 0)
_engine._stress(None)
ending = True
drawer.clear()
executor.shutdown()
print("wrong:", wrong[:5], "interrupted:", interrupted > 0)
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_threads_at_random(poisoned_script, seed, device):
    """They submit, wait, cancel and drop each other's things, while collections run and waits are interrupted."""
    where = "host" if device.backend == "host" else device.filter_string
    assert poisoned_script(SCHEDULE, seed, 60, 4, where, "stress") == "wrong: [] interrupted: True\n"
