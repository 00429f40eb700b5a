"""Python code that the engine runs may do anything: also let go of what the engine is at work with.

What was freed is overwritten (MALLOC_PERTURB_), so that using it ends the process; the build with AddressSanitizer says
more. `_stress` has a function called at every point where the engine drops Python objects.
"""
import pytest

POISON = {"MALLOC_PERTURB_": "165", "PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


@pytest.fixture
def poisoned(fresh):
    def run(text, *before, **environment):
        result = fresh("import faulthandler\nfaulthandler.enable()\n" + text, **{**POISON, **environment})
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
    from drupe import _engine
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
            elif what == 8: _engine._task(get("queue"), 0, "broken").wait()
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
