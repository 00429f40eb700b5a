"""What a failed submission tells: the same whether it is refused, waited for or stood behind."""
import pickle

import faulty
import pytest
import testwork

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
    line = here() + 2
    with pytest.raises(drupe.DeviceError) as caught:
        drupe.Device("opencl:gpu:999")
    assert all(hasattr(caught.value, name) for name in KNOWN)
    assert caught.value.kernel is None and caught.value.cause is None and caught.value.operation is None
    assert caught.value.line == line


def test_a_failure_names_the_line_that_submitted_it(queue):
    event = testwork.task(queue, 0, "the bearing broke"); line = here()  # noqa: E702
    with pytest.raises(drupe.InternalError) as caught:
        event.wait()
    error = caught.value
    assert (error.line, error.file) == (line, __file__) and error.cell is None
    assert error.source.startswith("event = testwork.task(") and error.source in str(error)
    place = "line %d of test_errors.py" % line
    assert str(error).startswith(f"'task' on host:cpu:0 failed ({place}): the bearing broke\nSubmitted by {place}:\n")
    assert error.label == "task" and error.operation == "host function" and error.device == "host:cpu:0"
    assert error.kernel is None and error.queue > 0 and error.submission > 0 and error.native_code == 0


def submitted_in_a_helper(queue):
    return queue.barrier()


def test_a_dependent_carries_the_first_cause(queue):
    testwork.task(queue, 0.05, "the first")
    event = submitted_in_a_helper(queue)
    with pytest.raises(drupe.DependencyError) as caught:
        event.wait()
    error = caught.value
    assert error.operation == "barrier" and error.label == "barrier"
    first, rest = str(error).split("\n", 1)
    place = "line %d of test_errors.py" % error.cause.line
    assert first == f"'task' on host:cpu:0 failed ({place}): the first; 'barrier' therefore did not run."
    assert "The first cause is 'task' on host:cpu:0.\nSubmitted by line " in rest
    assert isinstance(error.cause, drupe.InternalError) and error.__cause__ is error.cause
    assert error.cause.label == "task" and error.cause.submission < error.submission
    assert error.line == submitted_in_a_helper.__code__.co_firstlineno + 1 and error.cause.line != error.line
    assert event.error.cause.label == "task"  # asked again, it is told again


def test_what_numpy_would_have_raised_comes_first(device):
    import drupe.array as da
    x, i = da.arange(10., device=device), da.asarray([1, 12], device=device)
    y = da.take(x, i); line = here()  # noqa: E702
    with pytest.raises(IndexError) as caught:
        (y * 2).asnumpy()
    expected = "index 12 is out of bounds for axis 0 with size 10 ('take' on %s, line %d of test_errors.py); "
    assert str(caught.value).startswith(expected % (device.filter_string, line))
    assert str(caught.value).split("\n")[0].endswith(" therefore did not run.")


def test_the_packages_own_code_is_not_the_place(queue):
    import drupe.array as da
    x = da.ones(8, device="host")
    testwork.task(x.queue, 0.05, "first")
    y = da.asarray(x, copy=True) + 1; line = here()  # noqa: E702
    with pytest.raises(drupe.InternalError):
        y.queue.wait()
    assert any(record["line"] == line for record in drupe.trace())


def test_arguments_of_a_copy(queue):
    memory = drupe.memory.MemoryUSMDevice(800, queue=queue)
    other = drupe.memory.MemoryUSMDevice(800, queue=queue)
    testwork.task(queue, 0.05, "first")
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
    testwork.task(x.queue, 0.05, "first")
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
    event = testwork.task(queue, 0, "far away")
    with pytest.raises(drupe.InternalError) as caught:
        event.wait()
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is drupe.InternalError and str(copy) == str(caught.value) and copy.line == caught.value.line


# --- the trace ---


def test_the_trace_tells_what_was_done(queue):
    before = drupe.trace()[-1]["id"] if drupe.trace() else 0
    memory = drupe.memory.MemoryUSMDevice(64, queue=queue)
    queue.fill(memory, 0); line = here()  # noqa: E702
    testwork.task(queue, 0, "broken")
    with pytest.raises(drupe.InternalError):
        queue.wait()
    records = [record for record in drupe.trace(after=before) if record["queue"] == queue.number]
    fill = next(record for record in records if record["operation"] == "fill")
    task = next(record for record in records if record["label"] == "task")
    assert fill["bytes"] == 64 and fill["line"] == line and fill["file"] == __file__ and fill["device"] == "host:cpu:0"
    assert fill["status"] == "complete" and fill["seen"] >= fill["submitted"]
    assert fill["submitted"] <= fill["started"] <= fill["ended"] <= fill["seen"] and not fill["own_clock"]
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


# --- giving up, and handlers ---


def test_cancel_gives_up_what_has_not_started(queue):
    memory = drupe.memory.MemoryUSMDevice(64, queue=queue)
    for seconds in (0.3, 3, 30):  # until it goes on for longer than this machine needs to cancel
        gate = testwork.task(queue, seconds)
        events = [queue.fill(memory, 7) for _ in range(3)]
        if queue.cancel() >= 2:
            break
    after = queue.fill(memory, 9)
    gate.wait()
    after.wait()
    assert bytes(memory.copy_to_host())[:1] == b"\x09"
    with pytest.raises(drupe.CancelledError) as caught:
        events[-1].wait()
    assert str(caught.value).startswith("'fill' on host:cpu:0 was cancelled before it started.\nSubmitted by line ")
    assert caught.value.operation == "fill" and caught.value.cause is None
    queue.wait()
    assert queue.cancel() == 0


def test_an_interrupted_wait_says_what_goes_on(fresh):
    result = fresh("""
import _thread, threading, time
import drupe
import testwork
queue = drupe.Queue("host")
testwork.task(queue, 4.0)  # it still goes on when the interrupt comes, on a busy machine too
last = [queue.barrier() for i in range(3)][-1]
try:
    threading.Timer(0.3, _thread.interrupt_main).start()
    queue.wait()
except KeyboardInterrupt as stop:
    text = str(stop)
else:
    raise AssertionError("not interrupted")
assert text.startswith("the wait for host:cpu:0 was given up."), text
assert "not started: 3 cancelled" in text and "go on: 1." in text, text
queue.wait()
try:
    last.wait()
except drupe.CancelledError:
    pass
else:
    raise AssertionError("not cancelled")
""")
    assert result.returncode == 0, result.stderr


def test_a_handler_takes_the_error_instead(queue):
    seen = []
    assert queue.on_error is None
    queue.on_error = seen.append
    testwork.task(queue, 0, "handled")
    queue.wait()
    assert len(seen) == 1
    first, _, _ = str(seen[0]).partition("\n")
    assert first == f"'task' on host:cpu:0 failed (line {seen[0].line} of test_errors.py): handled"
    assert type(seen[0]) is drupe.InternalError and seen[0].queue == queue.number
    queue.wait()
    assert len(seen) == 1
    queue.on_error = None
    testwork.task(queue, 0, "raised")
    with pytest.raises(drupe.InternalError):
        queue.wait()
    with pytest.raises(TypeError):
        queue.on_error = 5


def test_an_error_in_a_handler_is_raised(queue):
    def handler(error):
        raise RuntimeError("in the handler") from error
    queue.on_error = handler
    testwork.task(queue, 0, "handled badly")
    with pytest.raises(RuntimeError, match="in the handler"):
        queue.wait()


def test_an_error_in_a_handler_tells_of_what(queue):
    queue.on_error = lambda error: 1 / 0
    testwork.task(queue, 0, "handled badly")
    with pytest.raises(ZeroDivisionError) as caught:
        queue.wait()
    assert isinstance(caught.value.__context__, drupe.DeviceError) and "handled badly" in str(caught.value.__context__)
    assert caught.traceback[-1].name == "<lambda>"


def test_a_handler_goes_with_its_queue():
    import sys
    queue = drupe.Queue("host")
    handler = [].append
    count = sys.getrefcount(handler)
    queue.on_error = handler
    del queue
    assert sys.getrefcount(handler) == count


def test_the_log(fresh, tmp_path):
    log = tmp_path / "log"
    result = fresh("""
import drupe
import testwork
queue = drupe.Queue("host")
try:
    testwork.task(queue, 0, "noted").wait()
except drupe.DeviceError:
    pass
""", DRUPE_LOG=str(log))
    assert result.returncode == 0 and result.stderr == ""
    opened, failed = log.read_text().splitlines()
    assert opened.endswith("backend host: opened")
    assert "failure: 'task' on host:cpu:0, submission 1, " in failed and failed.endswith("noted")
    assert log.stat().st_mode & 0o777 == 0o600


def test_queues_that_go_while_an_exception_is_raised(queue):
    queue.on_error = print
    for handler in (None, print):
        def opened():
            other = drupe.Queue("host")
            other.on_error = handler
            return other

        with pytest.raises(ZeroDivisionError):
            [opened(), 1 / 0]  # the list that was begun is dropped with the exception set
    queue.on_error = None


def test_the_log_keeps_what_failed_and_counts_what_did_not_run(queue):
    before = max((note["id"] for note in _engine._failures()), default=0)
    testwork.task(queue, 0.01, "the bearing broke"); line = here()  # noqa: E702
    behind = [queue.barrier() for _ in range(3)]
    for event in behind:
        with pytest.raises(drupe.DependencyError):
            event.wait()
    (note,) = _engine._failures(before)
    assert note["id"] == before + 1 and note["label"] == "task" and note["device"] == "host:cpu:0"
    assert note["name"] == "INTERNAL" and note["error"] == "InternalError" and note["text"] == "the bearing broke"
    assert note["line"] == line and note["file"] == __file__ and note["place"] == f"line {line} of test_errors.py"
    assert note["cell"] is None and note["dependents"] == 3 and note["queue"] > 0 and note["unix"] > 1e12
    assert _engine._failures(note["id"]) == _engine._failures(2**64 - 1) == []


def test_work_without_an_event_is_named_as_far_as_it_is_known(fresh, opencl):
    """The driver says only that something on the queue went wrong: what all suspects share is told."""
    result = fresh("""
        import drupe, drupe.array as da
        queue = drupe.Queue("opencl:cpu")
        x = da.zeros(16, device=queue)
        queue.wait()
        def fails(count):
            x.accept_contents()
            for _ in range(count):
                x.__iadd__(1)
            try:
                queue.wait()
            except drupe.DeviceError as error:
                return error
        one, many = fails(1), fails(70)
        assert one.label != "work without an event" and one.line == 9 == many.line, (one, one.line)
        assert many.label.startswith("one of ") and many.label.endswith(" submissions"), many  # some may be over
        x.accept_contents()
        x += 1
        x -= 1
        print(fails(0).line)
        """, DRUPE_PROFILE="0", **faulty.environment("queue_wait:2+=NO_MEMORY"))
    assert result.stdout == "None\n", result


def test_errors_of_calls_that_submit_nothing_have_their_place(opencl):
    """Allocations and builds: what was asked for, by which line, on which queue."""
    import drupe.memory as dm

    queue = drupe.Queue("host")
    with pytest.raises(drupe.DeviceMemoryError) as caught:
        dm.MemoryUSMDevice(1 << 50, queue=queue)
    error = caught.value
    assert (error.operation, error.queue, error.device) == ("allocation", queue.number, "host:cpu:0")
    assert error.file == __file__ and error.source == "dm.MemoryUSMDevice(1 << 50, queue=queue)"
    with pytest.raises(drupe.BuildError) as caught:
        drupe.Program("kernel void f( {", device=opencl)
    error = caught.value
    assert (error.operation, error.queue, error.kernel) == ("build", None, None)
    assert error.source == 'drupe.Program("kernel void f( {", device=opencl)' and error.line > 0
