"""The engine's end of the link, against a stand-in for the kernel: a capsule made with ctypes."""

KERNEL = """
import ctypes, json, sys, time, types

published, retained = [], [0]
current = [None]
VOID = ctypes.c_void_p

class Link(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("version", ctypes.c_uint32), ("cell_retain", ctypes.CFUNCTYPE(VOID)),
                ("cell_release", ctypes.CFUNCTYPE(None, VOID)),
                ("publish", ctypes.CFUNCTYPE(ctypes.c_int, VOID, ctypes.c_char_p, VOID, ctypes.c_size_t)),
                ("set_cell_check", ctypes.CFUNCTYPE(None, VOID, VOID)), ("set_fault_claim", VOID)]

check = [None, None]

def cell_retain():
    if current[0]:
        retained[0] += 1
    return current[0]

def cell_release(cell):
    if cell:
        retained[0] -= 1

def publish(cell, msg_type, content, size):
    published.append((cell, msg_type.decode(), json.loads(ctypes.string_at(content, size))))
    return 0

def set_cell_check(function, user):
    check[:] = [ctypes.PYFUNCTYPE(ctypes.c_int, VOID)(function) if function else None, user]

types_ = dict(Link._fields_)
link = Link(ctypes.sizeof(Link), VERSION, types_["cell_retain"](cell_retain), types_["cell_release"](cell_release),
            types_["publish"](publish), types_["set_cell_check"](set_cell_check), None)
ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = [VOID, ctypes.c_char_p, VOID]
import drupe
kernel = types.ModuleType("drupe._jkernel")
kernel.link = ctypes.pythonapi.PyCapsule_New(ctypes.addressof(link), b"drupe._jkernel.link", None)
sys.modules["drupe._jkernel"] = drupe._jkernel = kernel

import testwork; from drupe import _engine

def end_of_cell():
    check[0](check[1])   # raises what the check set

def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
"""


def run(fresh, text, version=1):
    result = fresh(KERNEL.replace("VERSION", str(version)) + text)
    assert result.returncode == 0, result.stderr
    return result


def test_a_cells_own_failure_is_raised_in_it(fresh):
    run(fresh, """
assert check[0] is not None
current[0] = 0x1000
end_of_cell()
event = testwork.task(drupe.queue("host"), 0, 'the "bearing" broke\\n\\u00e4')
until(lambda: event.done)
try:
    end_of_cell()
except drupe.InternalError as problem:
    text = str(problem)
    assert text.startswith("'task' on host:cpu:0 failed (") and 'the "bearing" broke' in text, text
    assert "Submitted by line " in text, text
    assert problem.label == "task" and problem.device == "host:cpu:0"
else:
    raise AssertionError("not raised")
end_of_cell()
assert not published
drupe.queue("host").wait()
assert retained[0] == 0, retained
""")


def test_a_failure_of_another_cell_is_shown_there_too(fresh):
    run(fresh, """
current[0] = 0x1000
gate = _engine._event_open("gate")
first = testwork.task(drupe.queue("host"), 0, 'late "quoted" \\\\ news\\n\\u00e4\\u2028', [gate])
queue = drupe.Queue("host")
second = testwork.task(queue, 0, "second", [gate])
end_of_cell()
current[0] = 0x2000
gate._finish()
until(lambda: first.done and second.done)
try:
    end_of_cell()
except drupe.InternalError as problem:
    assert "whose output shows this error too" in str(problem) and len(problem.__notes__) == 1
    both = str(problem) + problem.__notes__[0]
    assert "second" in both and "quoted" in both
else:
    raise AssertionError("not raised")
assert [cell for cell, _, _ in published] == [0x1000, 0x1000]
content = next(content for _, _, content in published if "quoted" in content["evalue"])
assert published[0][1] == "error" and content["ename"] == "InternalError"
assert "Submitted by line " in content["evalue"] and "this error too" not in content["evalue"]
assert 'late "quoted"' in content["evalue"] and content["evalue"] in "\\n".join(content["traceback"])
assert set(content) == {"ename", "evalue", "traceback"}
del first, second, gate
end_of_cell()
""")


def test_what_was_waited_for_is_not_raised_again(fresh):
    run(fresh, """
current[0] = 0x1000
event = testwork.task(drupe.queue("host"), 0, "seen")
try:
    event.wait()
except drupe.DeviceError:
    pass
end_of_cell()
assert not published
""")


def test_references_are_dropped_at_the_end_of_a_cell(fresh):
    run(fresh, """
import numpy
source = numpy.zeros(10)
count = sys.getrefcount(source)
memory = drupe.memory.MemoryUSMDevice(80, device="host")
memory.queue.copy(memory, source, event=False)
until(lambda: memory.queue.pending == 0)
end_of_cell()
assert sys.getrefcount(source) == count
""")


def test_a_kernel_of_another_version(fresh):
    result = fresh(KERNEL.replace("VERSION", "99"))
    assert result.returncode == 1 and "different versions" in result.stderr
