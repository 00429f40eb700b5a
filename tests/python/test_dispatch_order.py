"""Calls of kernels in Python, the part that is C: order, failures, references, threads."""
import gc
import sys
import threading

import pytest
from dispatching import ADD, Kernel, Local, Pair, better, call, floats, local, program, programs  # noqa: F401

import drupe
import drupe.array as da
from drupe import Range, _engine


# --- Events, order, failures ------------------------------------------------------------------------------------------

class Turn:
    """A host task on a queue of its own that ends when it is told to."""

    def __init__(self, device, error=None):
        self.go, self.error = threading.Event(), error
        self.event = drupe.Queue(device).host_task(self.run)

    def run(self):
        assert self.go.wait(5)
        if self.error:
            raise self.error


@pytest.mark.parametrize("form", [lambda event: event, lambda event: [event], lambda event: (event,),
                                  lambda event: (one for one in [event])], ids=["event", "list", "tuple", "generator"])
def test_wait_for(program, device, queue, form):
    kernel = Kernel(program.add, ADD)
    a = floats(queue, 1)
    for misses in (1, 1):
        turn = Turn(device)
        event = kernel._launcher(Range(1), form(turn.event), (a, a, a))
        assert not event.done and len(event.get_wait_list()) == 1
        turn.go.set()
        event.wait()
        assert len(kernel.misses) == misses
    assert a.tolist() == [4]


@pytest.mark.parametrize("odd", [3, [3], "text", [None]])
def test_what_cannot_be_waited_for(program, queue, odd):
    kernel = Kernel(program.add, ADD)
    a = floats(queue, 1)
    for _ in range(2):
        with pytest.raises(TypeError, match="drupe.Event"):
            kernel._launcher(Range(1), odd, (a, a, a))
        call(kernel, Range(1), a, a, a)
    assert a.tolist() == [4]


def test_what_did_not_run_is_marked(program, device, queue):
    kernel = Kernel(program.add, ADD)
    a, b, c = (floats(queue, 1, 2) for _ in range(3))
    call(kernel, Range(2), a, b, c)
    turn = Turn(device, ValueError("no"))
    event = kernel._launcher(Range(2), [turn.event], (a, b, c))
    turn.go.set()
    with pytest.raises(drupe.DependencyError):
        event.wait()
    with pytest.raises(drupe.DependencyError):
        c.tolist()
    with pytest.raises(drupe.DependencyError):
        call(kernel, Range(2), c, b, a)  # it reads what was not written
    assert b.tolist() == [1, 2]  # a const pointer


def test_the_record_of_failures_stays_good(device, queue):
    """A kernel that did not run has noted nothing: the next one runs."""
    at = "" if device.backend == "host" else "global"
    program = drupe.Program(f"kernel void f({at} long *x, {at} long *failures) {{ x[0]++; failures[1] = x[0]; }}",
                            device, language="opencl" if at else "c")
    record = da.zeros(5, dtype="int64", queue=queue)
    kernel = Kernel(program.f, (("pointer", (0,)), ("failures",)), failures=record)
    x, y = (da.zeros(1, dtype="int64", queue=queue) for _ in range(2))
    call(kernel, Range(1), x)
    assert record.tolist() == [0, 1, 0, 0, 0]
    turn = Turn(device, ValueError("no"))
    event = kernel._launcher(Range(1), [turn.event], (x,))
    turn.go.set()
    with pytest.raises(drupe.DependencyError):
        event.wait()
    with pytest.raises(drupe.DependencyError):
        x.tolist()
    y += 6
    call(kernel, Range(1), y)
    assert record.tolist() == [0, 7, 0, 0, 0] and kernel._launcher.entries[0]["failures"] is record


def test_pending_arrays(program, queue):
    n = 100_000
    kernel = Kernel(program.add, ADD)
    x, c = da.ones(n, dtype="float32", queue=queue), da.zeros(n, dtype="float32", queue=queue)
    for _ in range(3):
        a, b = x * 2 + 1, x - 3
        assert a.pending is not None
        call(kernel, Range(n), a, b, c)
        assert a.pending is None and float(da.max(c)) == float(da.min(c)) == 1
        d = c * 2
        call(kernel, Range(n), a, b, d)
        assert float(da.max(d)) == float(da.min(d)) == 1
    assert len(kernel.misses) == 1


def test_a_context_of_its_own(program, device):
    """A kernel of another context is the engine's to refuse."""
    other = drupe.Queue(drupe.Context([device]), device)
    kernel = Kernel(program.add, ADD)
    a = floats(other, 1)
    if other.context == program.queue.context:
        pytest.skip("this device has one context")
    with pytest.raises(drupe.InvalidArgumentError, match="context"):
        call(kernel, Range(1), a, a, a)


# --- What is kept, and by whom ----------------------------------------------------------------------------------------

def test_references(program, queue, local):
    names = {"x": object()}
    one = local((4,), "int32")
    pair, number = Pair(2 ** 70, floats(queue, 5)), 2.5
    a = floats(queue, 1)
    kernel = Kernel(program.add, ADD, watched=[(names, "x", names["x"])])
    held = (a, one, pair, pair[1], number, names["x"], kernel, kernel._launcher, program.add, Range(3))
    space, waits = Range(1), []

    def run():
        for _ in range(20):
            _engine._call_kernel_async(kernel, space, waits, a, a, a, one, pair, number)
            _engine._call_kernel(kernel, space, a, a, a, one, pair, number)
            kernel._launcher(space, waits, (a, a, a, one, pair, number))
            with pytest.raises(ValueError):
                kernel._launcher(space, waits, (a, a, a, "odd"))
        queue.wait()
        kernel.misses.clear()

    run()
    gc.collect()
    before = [sys.getrefcount(each) for each in (*held, space, waits)]
    live = _engine._live()
    run()
    gc.collect()
    assert [sys.getrefcount(each) for each in (*held, space, waits)] == before
    assert _engine._live() == live


def test_they_end(program, queue):
    gc.collect()
    before = _engine._live()["_Launcher"]
    names = {"x": []}
    kernel = Kernel(program.add, ADD, watched=[(names, "x", names["x"])])
    names["x"].append(kernel)  # a circle through the entries
    names["kernel"] = kernel
    counts = [sys.getrefcount(program.add)]
    a = floats(queue, 1)
    call(kernel, Range(1), a, a, a)
    counts.append(sys.getrefcount(program.add))
    assert _engine._live()["_Launcher"] == before + 1
    del kernel, names
    gc.collect()
    counts.append(sys.getrefcount(program.add))
    assert _engine._live()["_Launcher"] == before and counts == [counts[0], counts[0] + 1, counts[0] - 1]


def test_threads(program, device):
    """Entries come and go while others launch."""
    new, stop, problems = better(device), threading.Event(), []
    made = [program.add, new.add]

    def slow(space, wait_for, args):
        """An entry may be gone before the launcher looks, so the kernel is launched here."""
        launcher.add(args, space, made[0], ADD, "range", ())
        return made[0](*args[:3], global_size=64, wait_for=() if wait_for is None else wait_for)

    launcher = _engine._Launcher(None, slow)

    def work():
        try:
            a = floats(drupe.Queue(device), *range(64))
            for i in range(300):
                event = launcher(Range(64), None, (a, a, a, *range(i % 5)))
            event.wait()
        except Exception as problem:  # told by the main thread
            problems.append(problem)

    def change():
        try:
            while not stop.is_set():
                launcher.replace(made[0], made[1])
                launcher.entries
                made.reverse()
                launcher.clear()
        except Exception as problem:
            problems.append(problem)

    workers = [threading.Thread(target=work) for _ in range(3)]
    changer = threading.Thread(target=change)
    for one in (*workers, changer):
        one.start()
    for one in workers:
        one.join()
    stop.set()
    changer.join()
    assert not problems


def test_python_code_in_the_middle_of_a_call(fresh):
    """A LocalAccessor whose attributes change everything that the call is at work with."""
    result = fresh("""
        import gc
        import drupe, drupe.array as da
        from drupe import _engine, NdRange

        class Local:
            _dtype, _nbytes = "int32", 16
            steps = 0
            @property
            def shape(self):
                Local.steps += 1
                launcher.clear()
                x.__iadd__(1)
                gc.collect()
                [bytearray(100) for _ in range(1000)]
                if Local.steps % 3 == 0:
                    add(real)
                return (4,)

        def add(args, *more):
            held, Local.shape = Local.shape, (4,)
            launcher.add(args, space, kernel, plan, form, ())
            Local.shape = held

        def slow(space, wait_for, args):
            add(args)
            return kernel(args[0], 1, 2, global_size=1)

        _engine._local_accessor(Local)
        device = drupe.Device("host")
        if device.can_compile("c"):
            n = 200_000
            kernel = drupe.Program("kernel void f(float *x, long a, long b) { x[0] = a + b; }", device, language="c").f
            plan, form, space = (("pointer", (0,)), ("local", (1,)), ("shape", (1,), 0)), "host_groups", NdRange(2, 2)
            launcher = _engine._Launcher(None, slow)
            x = da.zeros(n, dtype="float32", device=device)
            real = (x, Local())
            for _ in range(30):
                launcher(space, None, real).wait()
            print(Local.steps > 30)
    """, MALLOC_PERTURB_="165", PYTHONMALLOC="malloc")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout in ("True\n", "")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("name", ["shape", "_dtype", "_nbytes"])
def test_what_is_no_complaint_about_an_argument_passes(programs, name, error):
    """An interrupt that a LocalAccessor's attributes happen to raise, after so many looks at them."""
    looks = iter(range(-2, 100) if name == "shape" else range(100))

    class Odd:
        shape, _dtype, _nbytes = (4,), "int32", 16

    def get(self):
        if next(looks) == 1:
            raise error("now")
        return vars(Local)[name].__get__(Local((4,), "int32"))

    setattr(Odd, name, property(get))
    _engine._local_accessor(Odd)
    plan = (("pointer", (0,)), ("local", (1,)), *(("local_size", 0),) * 3)
    kernel = Kernel(programs(drupe.Device("host")).numbers, plan, "host_groups")
    out, space, problems = da.zeros(4, dtype="int64", device="host"), drupe.NdRange(2, 2), []
    for _ in range(4):
        try:
            call(kernel, space, out, Odd())
        except error as problem:
            problems.append(str(problem))
    assert problems == ["now"] and call(kernel, space, out, Odd())


def test_ctrl_c_ends_a_wait(fresh):
    result = fresh("""
        import _thread, threading
        import drupe, drupe.array as da
        from drupe import _engine, Range
        go, device = threading.Event(), drupe.Device("host")
        if not device.can_compile("c"):
            raise SystemExit
        kernel = drupe.Program("kernel void f(float *x) { x[0] = 5; }", device, language="c").f

        class K:
            pass

        K._launcher = _engine._Launcher(K, lambda space, wait_for, args: K._launcher.add(
            args, space, kernel, (("pointer", (0,)),), "range", ()))
        x = da.zeros(1, dtype="float32", device=device)
        x.queue.host_task(lambda: (_thread.interrupt_main(), go.wait()))
        try:
            _engine._call_kernel(K, Range(1), x)
        except KeyboardInterrupt as end:
            go.set()
            print(end)
    """)
    assert result.returncode == 0, result.stderr
    assert "the wait for host:cpu:0 was given up" in result.stdout or not result.stdout
