"""What a failed submission tells: the same whether it is refused, waited for or stood behind."""
import pickle

import pytest

drupe = pytest.importorskip("drupe")
from drupe import _engine  # noqa: E402

KNOWN = ("status", "native_code", "native_name", "backend", "device", "hint", "label", "kernel", "queue", "operation",
         "arguments", "submission", "cell", "line", "file", "source", "cause")


@pytest.fixture
def queue():
    return drupe.Queue("host")


def here():
    import sys
    return sys._getframe(1).f_lineno


def test_every_error_can_be_asked_for_everything():
    with pytest.raises(drupe.DeviceError) as caught:
        drupe.Device("opencl:gpu:999")
    assert all(hasattr(caught.value, name) for name in KNOWN)
    assert caught.value.kernel is None and caught.value.cause is None and caught.value.line is None


def test_a_failure_names_the_line_that_submitted_it(queue):
    event = _engine._task(queue, 0, "the bearing broke"); line = here()  # noqa: E702
    with pytest.raises(drupe.InternalError) as caught:
        event.wait()
    error = caught.value
    assert (error.line, error.file) == (line, __file__) and error.cell is None
    assert error.source.startswith("event = _engine._task(") and error.source in str(error)
    assert str(error).startswith("'task' on host:cpu:0 failed: the bearing broke\nSubmitted by line %d of " % line)
    assert error.label == "task" and error.operation == "host function" and error.device == "host:cpu:0"
    assert error.kernel is None and error.queue > 0 and error.submission > 0 and error.native_code == 0


def submitted_in_a_helper(queue):
    return queue.barrier()


def test_a_dependent_carries_the_first_cause(queue):
    _engine._task(queue, 0.05, "the first")
    event = submitted_in_a_helper(queue)
    with pytest.raises(drupe.DependencyError) as caught:
        event.wait()
    error = caught.value
    assert error.operation == "barrier" and error.label == "barrier"
    assert "The first cause is 'task' on host:cpu:0.\nSubmitted by line " in str(error)
    assert isinstance(error.cause, drupe.InternalError) and error.__cause__ is error.cause
    assert error.cause.label == "task" and error.cause.submission < error.submission
    assert error.line == submitted_in_a_helper.__code__.co_firstlineno + 1 and error.cause.line != error.line
    assert event.error.cause.label == "task"  # asked again, it is told again


def test_the_packages_own_code_is_not_the_place(queue):
    import drupe.array as da
    x = da.ones(8, device="host")
    _engine._task(x.queue, 0.05, "first")
    y = da.asarray(x, copy=True) + 1; line = here()  # noqa: E702
    with pytest.raises(drupe.InternalError):
        y.queue.wait()
    assert any(record["line"] == line for record in drupe.trace())


def test_arguments_of_a_copy(queue):
    memory = drupe.memory.MemoryUSMDevice(800, queue=queue)
    other = drupe.memory.MemoryUSMDevice(800, queue=queue)
    _engine._task(queue, 0.05, "first")
    event = queue.copy(memory, other)
    with pytest.raises(drupe.DependencyError) as caught:
        event.wait()
    assert caught.value.operation == "copy"
    assert caught.value.arguments == "800 bytes from device memory of 800 bytes to device memory of 800 bytes"


def test_arguments_of_a_kernel():
    try:
        program = drupe.Program("kernel void scale(global float *x, int n, float s, local float *t)"
                                "{ x[get_global_id(0)] *= s * n; }", device="opencl:cpu")
    except drupe.DeviceError:
        pytest.skip("no OpenCL device for CPUs on this machine")
    import drupe.array as da
    x = da.ones(64, dtype="float32", device="opencl:cpu")
    _engine._task(x.queue, 0.05, "first")
    event = program.scale(x, 3, 0.5, drupe.LocalMemory(32), global_size=64, local_size=16)
    with pytest.raises(drupe.DependencyError) as caught:
        event.wait()
    assert caught.value.kernel == "scale" and caught.value.operation == "kernel"
    memory, rest = caught.value.arguments.split(" of ", 1)
    assert memory.startswith("x = ") and memory.endswith(" memory")
    assert rest == "256 bytes, n = 3, s = 0.5, t = 32 bytes of local memory; 64 work-items in groups of 16"
    with pytest.raises(drupe.InvalidArgumentError) as caught:  # refused at once: its own line is in the traceback
        program.scale(x, 3, 0.5, drupe.LocalMemory(32), global_size=64, local_size=7)
    assert "Called with" not in str(caught.value) and caught.value.kernel == "scale"
    assert "in groups of 7" in caught.value.arguments


def test_errors_travel_between_processes(queue):
    event = _engine._task(queue, 0, "far away")
    with pytest.raises(drupe.InternalError) as caught:
        event.wait()
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is drupe.InternalError and str(copy) == str(caught.value) and copy.line == caught.value.line


# --- the trace ---


def test_the_trace_tells_what_was_done(queue):
    before = drupe.trace()[-1]["id"] if drupe.trace() else 0
    memory = drupe.memory.MemoryUSMDevice(64, queue=queue)
    queue.fill(memory, 0); line = here()  # noqa: E702
    _engine._task(queue, 0, "broken")
    with pytest.raises(drupe.InternalError):
        queue.wait()
    records = [record for record in drupe.trace(after=before) if record["queue"] == queue.number]
    fill = next(record for record in records if record["operation"] == "fill")
    task = next(record for record in records if record["label"] == "task")
    assert fill["bytes"] == 64 and fill["line"] == line and fill["file"] == __file__ and fill["device"] == "host:cpu:0"
    assert fill["status"] == "complete" and fill["seen"] >= fill["submitted"]
    assert fill["started"] is None and fill["ended"] is None  # not a profiling queue: not known, and not made up
    assert task["status"] == "failed"
    assert [record["id"] for record in records] == sorted(record["id"] for record in records)
    assert [r["id"] for r in drupe.trace(limit=2)] == [r["id"] for r in drupe.trace()[-2:]]


def test_the_trace_of_a_profiling_queue_has_device_times():
    queue = drupe.Queue("host", profiling=True)
    memory = drupe.memory.MemoryUSMDevice(64, queue=queue)
    event = queue.fill(memory, 0)
    event.wait()
    record = next(r for r in drupe.trace() if r["queue"] == queue.number and r["operation"] == "fill")
    assert record["ended"] >= record["started"] > 0
    assert (record["started"], record["ended"]) == (event.times.started, event.times.ended)


def test_thousands_of_places(queue, fresh):
    """The table of places is bounded: what is forgotten has no line, and nothing grows."""
    result = fresh("""
import drupe, sys
from drupe import _engine
queue = drupe.Queue("host")
codes = [compile("\\n" * i + "queue.barrier()", "<made>", "exec") for i in range(5000)]
def counts():
    return [sys.getrefcount(code) for code in codes]
before = counts()
for code in codes:
    exec(code)
del code
queue.wait()
held = sum(counts()) - sum(before)
assert 0 < held <= 2048, held
lines = [record["line"] for record in drupe.trace() if record["file"] == "<made>"]
assert lines[-1] == 5000 and 0 < len(lines) <= 2048
import atexit
atexit._run_exitfuncs()
assert counts() == before
""")
    assert result.returncode == 0, result.stderr
