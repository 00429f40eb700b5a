"""Programs and kernels: building, typed arguments, launches and their errors."""
import ctypes
import inspect
import shutil
import types

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import _program, _repr
from drupe.memory import MemoryUSMDevice, MemoryUSMShared

SOURCE = """\
kernel void add(global float *a, global const float *b, const int n)
{
    const int i = get_global_id(0);
    if (i < n) a[i] += b[i];
}
kernel void store(global long *out, char a, uchar b, short c, ushort d, int e, uint f, long g, ulong h)
{
    out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f; out[6] = g; out[7] = (long)h;
}
kernel void reals(global double *out, float a, double b, float4 v)
{
    out[0] = a; out[1] = b; out[2] = v.x; out[3] = v.w;
}
kernel void turn(global int *out, local int *shared_part)
{
    const int i = get_local_id(0), n = get_local_size(0);
    shared_part[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = shared_part[n - 1 - i];
}
kernel void place(global int *out)
{
    out[get_global_id(0) + get_global_size(0) * get_global_id(1)] = 10 * get_global_id(1) + get_global_id(0);
}
kernel void any_type(global void *out) { ((global int *)out)[0] = 5; }
kernel void empty(void) {}
"""


@pytest.fixture(scope="module")
def program(opencl):
    return drupe.Program(SOURCE, opencl)


def ones(program, n=8, dtype="float32"):
    return da.ones(n, dtype=dtype, device=program.device)


def test_build(program):
    assert sorted(program.kernel_names) == ["add", "any_type", "empty", "place", "reals", "store", "turn"]
    assert isinstance(program.build_log, str)
    assert program.add is program["add"] and "add" in dir(program)
    assert program.device.filter_string in repr(program)
    assert program.context == program.device.context and program.queue == program.device.queue
    assert drupe.program.build("kernel void f(void) {}", program.device).f.num_args == 0


def test_kernel_information(program):
    kernel = program.add
    assert kernel.name == kernel.__name__ == "add" and kernel.num_args == 3
    assert [(name, kind) for name, _, kind in kernel.arguments] == [("a", "pointer"), ("b", "pointer"), ("n", "value")]
    assert kernel.arguments[0][1].startswith("float") and kernel.arguments[2][1] == "int"
    assert kernel.work_group_size >= 1 and kernel.preferred_work_group_size_multiple >= 1
    assert kernel.private_mem_size is None or kernel.private_mem_size >= 0
    assert kernel.local_mem_size is None or kernel.local_mem_size >= 0
    assert "add(" in repr(kernel) and callable(kernel)


def test_launch(program):
    a, b = ones(program), ones(program) * 2
    event = program.add(a, b, 8, global_size=8)
    assert isinstance(event, drupe.Event)
    event.wait()
    assert a.tolist() == [3.0] * 8
    assert program.add(a, b, 8, global_size=(8,), local_size=4, event=False) is None
    assert a.tolist() == [5.0] * 8
    a.queue.submit(program.add, (a, b, 4), 8, wait_for=event).wait()
    assert a.tolist() == [7.0] * 4 + [5.0] * 4
    assert a.queue.submit(program.add, [a, b, 0], [8], [8], event=False) is None
    a.queue.wait()


def test_launch_on_memory_and_queues(program):
    queue = drupe.Queue(program.device, profiling=True)
    a, b = (MemoryUSMShared(np.full(4, value, np.float32), queue=queue) for value in (1, 2))
    event = program.add(a, b, 4, global_size=4)
    assert event.queue == queue and event.times.duration >= 0
    assert np.frombuffer(a, np.float32).tolist() == [3] * 4
    other = drupe.Queue(program.device)
    assert program.add(a, b, 4, global_size=4, queue=other, wait_for=[event]).queue == other
    other.wait()
    assert program.empty(global_size=1).queue == program.queue


def test_range_order_is_opencl(program):
    out = da.zeros((2, 3), dtype="int32", device=program.device)
    program.place(out, global_size=(3, 2)).wait()
    assert out.tolist() == [[0, 1, 2], [10, 11, 12]]


def test_local_memory(program):
    out = da.zeros(8, dtype="int32", device=program.device)
    local = drupe.LocalMemory(4 * 4)
    assert local.nbytes == 16 and repr(local) == "drupe.LocalMemory(16)"
    program.turn(out, local, global_size=8, local_size=4).wait()
    assert out.tolist() == [3, 2, 1, 0] * 2


LIMITS = ((-128, 127), (0, 255), (-2**15, 2**15 - 1), (0, 2**16 - 1), (-2**31, 2**31 - 1), (0, 2**32 - 1),
          (-2**63, 2**63 - 1), (0, 2**64 - 1))


@pytest.mark.parametrize("which", (0, 1))
def test_integers_have_their_whole_range(program, which):
    out = da.zeros(8, dtype="int64", device=program.device)
    values = [limits[which] for limits in LIMITS]
    program.store(out, *values, global_size=1).wait()
    assert out.tolist()[:7] == values[:7]
    assert out.tolist()[7] % 2**64 == values[7]


def test_integers_outside_are_refused(program):
    out = da.zeros(8, dtype="int64", device=program.device)
    for index, (low, high) in enumerate(LIMITS):
        for value in (low - 1, high + 1):
            args = [0] * 8
            args[index] = value
            with pytest.raises(OverflowError, match=f"'store', argument {index + 1} .*does not fit"):
                program.store(out, *args, global_size=1)


def test_kinds_of_numbers(program):
    out = da.zeros(8, dtype="int64", device=program.device)
    program.store(out, True, np.uint8(2), np.int64(3), ctypes.c_ushort(4), ctypes.c_int(5), 6, np.int16(7),
                  ctypes.c_ulonglong(8), global_size=1).wait()
    assert out.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    reals = da.zeros(4, device=program.device)
    program.reals(reals, 1, np.float32(0.5), (1, 2, 3, 4.5), global_size=1).wait()
    assert reals.tolist() == [1.0, 0.5, 1.0, 4.5]
    vector = np.arange(4, dtype=np.float32)
    program.reals(reals, ctypes.c_float(2.5), True, vector, global_size=1).wait()
    assert reals.tolist() == [2.5, 1.0, 0.0, 3.0]
    program.reals(reals, 0, 0, vector.tobytes(), global_size=1).wait()


@pytest.mark.parametrize("wrong, error, text", [
    ((1.5, 2.0, "x"), TypeError, r"argument 0 \('a', float\*\).*USM memory"),
    (("A", "B", 1.5), TypeError, r"argument 2 \('n', int\).*integer.*float"),
    (("A", "B", 2**40), OverflowError, "does not fit into int"),
    (("A", "B", "8"), TypeError, "not str"),
    (("A", "B", None), TypeError, "not NoneType"),
    (("A", "B"), TypeError, "takes 3 arguments, and 2 were given"),
    (("A", "B", 1, 2), TypeError, "takes 3 arguments, and 4 were given$"),
    (("A", "D", 1), TypeError, r"argument 1 \('b', float\*\).*elements are float64.*astype"),
    (("A", "S", 1), ValueError, "strided view"),
    (("A", "N", 1), TypeError, r"ndarray.*asarray"),
])
def test_wrong_arguments(program, wrong, error, text):
    stand_ins = {"A": ones(program), "B": ones(program), "D": ones(program, dtype="float64"),
                 "S": ones(program, 16)[::2], "N": np.ones(8, np.float32)}
    args = [stand_ins.get(item, item) if isinstance(item, str) else item for item in wrong]
    with pytest.raises(error, match="kernel 'add'.*" + text):
        program.add(*args, global_size=8)
    program.add(stand_ins["A"], stand_ins["B"], 8, global_size=8).wait()


def test_a_size_among_the_arguments_is_told_its_keyword(program):
    """As in kernel(x, 8): what a new user types."""
    x, y = ones(program), ones(program)
    with pytest.raises(TypeError, match="takes 3 arguments, and 4 were given; .* passed as global_size=$"):
        program.add(x, y, 8, 8)


def test_wrong_special_arguments(program):
    out = da.zeros(8, dtype="int32", device=program.device)
    with pytest.raises(TypeError, match="drupe.LocalMemory"):
        program.turn(out, 16, global_size=8)
    with pytest.raises(ValueError, match="at least 1 byte"):
        drupe.LocalMemory(0)
    reals = da.zeros(4, device=program.device)
    with pytest.raises(ValueError, match="4 components"):
        program.reals(reals, 0, 0, (1, 2), global_size=1)
    with pytest.raises(ValueError, match="16 bytes"):
        program.reals(reals, 0, 0, b"12345", global_size=1)
    with pytest.raises(OverflowError, match="does not fit into float"):
        program.reals(reals, 1e300, 0, (1, 2, 3, 4), global_size=1)
    with pytest.raises(TypeError, match="must be a number"):
        program.reals(reals, np.ones(1), 0, (1, 2, 3, 4), global_size=1)
    program.any_type(out, global_size=1).wait()
    assert out.tolist()[0] == 5


def test_wrong_ranges(program):
    with pytest.raises(TypeError, match="needs global_size="):
        program.empty()
    with pytest.raises(ValueError, match="at most 3"):
        program.empty(global_size=(1, 1, 1, 1))
    with pytest.raises(ValueError, match="1 to 3"):
        program.empty(global_size=())
    with pytest.raises(ValueError, match="dimensions"):
        program.empty(global_size=8, local_size=(2, 2))
    with pytest.raises(drupe.DeviceError, match="divide"):
        program.empty(global_size=8, local_size=3)
    with pytest.raises(ValueError, match="negative"):
        program.empty(global_size=-1)
    with pytest.raises(drupe.DeviceError, match="local size"):
        program.empty(global_size=(4, 4), local_size=(0, 3))
    with pytest.raises(drupe.DeviceError, match="work-groups|work-items"):
        program.empty(global_size=2**32, local_size=1)
    with pytest.raises(drupe.DeviceError):
        program.empty(global_size=(2**31, 2**31), local_size=(1, 1))
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'; there are: global_size, local_size"):
        program.empty(size=1)


def test_how_a_kernel_is_called(program):
    ours = "global_size, local_size=None, queue=None, wait_for=(), event=True)"
    names = "out, a, b, v, /, *" if program.reals.arguments is not None else "*arguments"
    assert str(inspect.signature(program.reals)) == f"({names}, {ours}"
    odd = types.SimpleNamespace(arguments=(("in", "int*", "pointer"), (None, "int", "value")))  # for Python
    assert str(_repr.call_signature(odd)) == f"(argument0, argument1, /, *, {ours}"
    assert str(_repr.call_signature(types.SimpleNamespace(arguments=None))) == f"(*arguments, {ours}"


def test_calls_unlike_the_one_before(program):
    """A kernel remembers its last call; what differs must count."""
    out = da.zeros(16, dtype="int32", device=program.device)

    def reached(*args, **kwargs):
        out[...] = -1
        out.queue.wait()
        event = program.place(*args, **kwargs)
        if event is not None:
            event.wait()
        return int((out.asnumpy() != -1).sum())

    sizes = [4]
    assert reached(out, global_size=sizes) == 4 and reached(out, global_size=sizes) == 4
    sizes[0] = 8
    assert reached(out, global_size=sizes) == 8
    for _ in range(2):
        assert reached(out, global_size=4, local_size=2) == 4
        assert reached(out, local_size=2, global_size=6) == 6
        assert reached(out, global_size=(2, 2)) == 4 and reached(out, global_size=16, event=False) == 16
        assert reached(out, **{"event": False, "global_size": 3}) == 3
        assert reached(out, global_size=12, queue=drupe.Queue(program.device), wait_for=()) == 12
        with pytest.raises(TypeError, match="global_size"):
            program.place(out)
        with pytest.raises(TypeError, match="unexpected keyword"):
            program.place(out, global_size=3, lacal_size=1)
    other, long = ones(program), da.zeros(16, dtype="int64", device=program.device)
    for wrong in (other, long, out[::2], 5, None):
        assert reached(out, global_size=16) == 16
        if wrong is not None:
            with pytest.raises((TypeError, ValueError), match="argument 0"):
                program.place(wrong, global_size=16)
    assert reached(out[8:], global_size=8) == 8 and int(out[0]) == -1 and int(out[8]) == 0


def test_placement(program):
    a = ones(program)
    b = da.ones(8, dtype="float32", queue=drupe.Queue(program.device))
    with pytest.raises(drupe.ExecutionPlacementError, match="arguments 0 .* and 1 .*to_device"):
        program.add(a, b, 8, global_size=8)
    program.add(a, b, 8, global_size=8, queue=a.queue, wait_for=b.queue.barrier()).wait()
    assert a.tolist() == [2.0] * 8
    with pytest.raises(drupe.DeviceError):
        program.add(da.ones(8, dtype="float32", device="host"), da.ones(8, dtype="float32", device="host"), 8,
                    global_size=8)
    with pytest.raises(drupe.DeviceError):
        drupe.queue("host").submit(program.add, (a, a, 8), 8)


def test_no_such_kernel(program):
    with pytest.raises(AttributeError, match="'minus'.*add"):
        program.minus
    with pytest.raises(KeyError, match="minus"):
        program["minus"]
    with pytest.raises(TypeError, match="named by a str"):
        program[3]
    assert not hasattr(program, "_repr_html_")
    with pytest.raises(TypeError, match="drupe.Kernel"):
        program.queue.submit("add", (), 1)


BROKEN = """\
kernel void good(global float *a) { a[0] = 1; }

kernel void bad(global float *a)
{
\tconst int i = get_global_id(0);
\ta[i] = undefined_name;
}
"""


def test_build_error_shows_the_line(opencl):
    with pytest.raises(drupe.BuildError) as caught:
        drupe.Program(BROKEN, opencl)
    message = str(caught.value)
    assert "undefined_name" in caught.value.log
    assert "line 6" in message and "a[i] = undefined_name;" in message and opencl.filter_string in message
    lines = message.splitlines()
    marked = next(number for number, line in enumerate(lines) if line.strip() == "^")
    assert lines[marked - 1][lines[marked].index("^"):].startswith("undefined_name")
    assert drupe.Program(BROKEN.replace("undefined_name", "1"), opencl).bad.num_args == 1


@pytest.mark.parametrize("log, source, told", [
    ("", "x", ""),
    ("no position: 3:4\n\nmore", "x", "no position: 3:4\n\nmore\n"),
    ("/tmp/a-b.cl:2:5: error: bad\r\n", "one\n\ttwo x\n", "line 2, column 5: error: bad\n    \ttwo x\n    \t   ^\n"),
    ("error: C:/a.cl:1:2:bad", "abc", "line 1, column 2: error: bad\n    abc\n     ^\n"),
    ("a:1:2: bad\n  abc\n   ^", "abc", "line 1, column 2: bad\n  abc\n   ^\n"),  # the compiler shows the line itself
    ("a:9:1: bad", "abc", "a:9:1: bad\n"),
    ("a:0:1: bad", "abc", "a:0:1: bad\n"),
    ("a:1:0: bad", "abc", "line 1, column 0: bad\n    abc\n    ^\n"),
    ("a:1:99: bad", "abc", "line 1, column 99: bad\n    abc\n       ^\n"),
    ("a:1:5: bad", "/*é*/", "line 1, column 5: bad\n    /*é*/\n       ^\n"),
    ("a:1:1: bad", "\nabc", "line 1, column 1: bad\n    \n    ^\n"),
], ids=lambda value: repr(value)[:20])
def test_messages_are_explained(log, source, told):
    assert _program.explain(log, source) == told


def test_options(opencl):
    program = drupe.Program("kernel void f(global int *a) { a[0] = N; }", opencl, options="-DN=42")
    out = da.zeros(1, dtype="int32", device=opencl)
    program.f(out, global_size=1).wait()
    assert out.tolist() == [42]


def test_contexts(opencl):
    context = drupe.Context(opencl)
    program = drupe.Program("kernel void f(global int *a) { a[0] = 3; }", context=context)
    assert program.context == context and program.queue.context == context
    memory = MemoryUSMDevice(4, queue=program.queue)
    program.f(memory, global_size=1).wait()
    assert memory.tobytes()[0] == 3


def test_source_errors(opencl):
    with pytest.raises(TypeError, match="str or bytes"):
        drupe.Program(5, opencl)
    with pytest.raises(ValueError, match="language must be"):
        drupe.Program("", opencl, language="fortran")
    with pytest.raises(TypeError, match="either context or queue"):
        drupe.Program("", queue=opencl.queue, context=opencl.context)
    with pytest.raises(TypeError, match="missing required argument 'source'"):
        drupe.Program()
    with pytest.raises(drupe.UnsupportedError, match="opencl"):
        drupe.Program("kernel void f(void) {}", "host")


GROUPED = """
kernel void sums(double *x, double *out) {
    local double part[4];
    size_t l = get_local_id(0);
    part[l] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0) out[get_group_id(0)] = part[0] + part[1] + part[2] + part[3];
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_kernels_in_c_say_how_their_groups_are_given():
    x, out = da.ones(8, dtype="float64", device="host"), da.zeros(2, dtype="float64", device="host")
    with pytest.raises(drupe.BuildError, match=r"options=\"-drupe-groups=64\""):
        drupe.Program(GROUPED, device="host", language="c")
    with pytest.raises(drupe.UnsupportedError, match="drupe.RawKernel"):
        drupe.Program("kernel void f(int *x, local int *y) { }", device="host", language="c")
    program = drupe.Program(GROUPED, device="host", language="c", options="-drupe-groups=4")
    with pytest.raises(drupe.InvalidArgumentError, match="Leave the local size out"):
        program.sums(x, out, global_size=8, local_size=4)
    program.sums(x, out, global_size=8)
    assert out.tolist() == [4, 4]
