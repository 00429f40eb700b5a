"""The host's side of programs for numba.cuda: arrays, launches, streams, what is refused, and the place of Numba."""
import textwrap
import threading

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe.compat import _numbas
from drupe.compat import numba_cuda as cuda

pytestmark = pytest.mark.usefixtures("chosen")
float32, void = (_numbas.types()[name] for name in ("float32", "void"))


# --- Arrays -------------------------------------------------------------------------------------------------

@cuda.jit
def shift(a, b):
    i = cuda.grid(1)
    if i < a.size:
        b[i] = a[i] + 1


def test_arrays_of_numpy_are_copied_in_and_back(device):
    a = np.arange(4.0)
    shift[1, 4](a, a)  # two copies: what the second one holds comes back last
    assert a.tolist() == [1, 2, 3, 4]
    whole = np.zeros((4, 4))
    shift[1, 4](a, whole[:, 1])
    assert whole[:, 1].tolist() == [2, 3, 4, 5] and whole.sum() == 14
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    shift[1, 4](frozen, a)
    assert a.tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="writes into 'b', and the array that it was given is read-only"):
        shift[1, 4](a, frozen)
    b = np.zeros(4)
    shift[1, 4](cuda.In(a), cuda.InOut(b))
    assert b.tolist() == [2, 3, 4, 5]
    shift[1, 4](a, cuda.Out(b))
    shift[1, 4](a, cuda.In(b))
    assert b.tolist() == [2, 3, 4, 5]
    c = da.zeros(4)
    shift[1, 4](da.asarray(a), c)
    assert c.asnumpy().tolist() == [2, 3, 4, 5]


def test_device_arrays(device):
    a = np.arange(24.0).reshape(4, 6)
    given = cuda.to_device(a, stream=cuda.stream())
    assert given.shape == (4, 6) and given.dtype == a.dtype and given.strides == a.strides and given.size == 24
    assert given.nbytes == a.nbytes and given.ndim == 2 and len(given) == 4 and given.is_c_contiguous()
    assert cuda.is_cuda_array(given) and not cuda.is_cuda_array(a) and cuda.to_device(given) is given
    assert np.array_equal(given.copy_to_host(), a) and np.array_equal(np.asarray(given), a)
    into = np.zeros_like(a)
    assert given.copy_to_host(into) is into and np.array_equal(into, a)
    assert np.array_equal(given.T.copy_to_host(), a.T) and given.T.is_f_contiguous()
    assert np.array_equal(given.reshape(6, 4).copy_to_host(), a.reshape(6, 4))
    assert np.array_equal(given.ravel()[3:9].copy_to_host(), a.ravel()[3:9])
    assert [one.copy_to_host().tolist() for one in given.ravel()[:5].split(2)] == [[0, 1], [2, 3], [4]]
    assert given[1, 2] == 8 and isinstance(given[1, 2], np.float64)
    assert np.array_equal(given[1].copy_to_host(), a[1])
    given[0] = 7
    given[1, :2] = np.array([1.5, 2.5])
    assert given.copy_to_host()[0].tolist() == [7] * 6 and given[1, 1] == 2.5
    given.copy_to_device(a + 1)
    assert np.array_equal(given.copy_to_host(), a + 1)
    other = cuda.device_array_like(given)
    other.copy_to_device(given)
    assert np.array_equal(other.copy_to_host(), a + 1)
    columns = cuda.device_array((3, 2), np.float32, order="F")
    assert columns.dtype == np.float32 and columns.is_f_contiguous()
    assert da.from_dlpack(other).sum() == (a + 1).sum()
    with pytest.raises(ValueError, match="one shape and dtype"):
        given.copy_to_device(np.zeros(3))
    with pytest.raises(AttributeError, match="from_dlpack"):
        given.__cuda_array_interface__  # noqa: B018


def test_memory_of_the_host(device):
    @cuda.jit
    def twice(a):
        i = cuda.grid(1)
        if i < a.size:
            a[i] *= 2

    pinned = cuda.pinned_array(4, np.float32)
    pinned[:] = 1
    with cuda.pinned(pinned):
        given = cuda.to_device(pinned)
    twice[1, 4](given)
    given.copy_to_host(pinned)
    assert pinned.tolist() == [2] * 4
    mapped = cuda.mapped_array(4, np.float64)
    mapped[:] = 3
    twice[1, 4](mapped)
    cuda.synchronize()
    assert mapped.tolist() == [6] * 4
    managed = cuda.managed_array(4, np.int32)
    managed[:] = 1
    twice[1, 4](managed)
    cuda.synchronize()
    assert managed.tolist() == [2] * 4


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


# --- Launches -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("value, kinds, want", [
    (1, "float64 int64", 2**53 + 1), (np.int32(1), "float64 int64", 2**53 + 1), (1, "float64 int32", 2**53),
    (1.0, "float32 float64", 2**53), (2**31, "int32 int64", 2**53 + 2**31)])
def test_the_nearest_signature_counts(value, kinds, want):
    @cuda.jit(["void(int64[:], %s)" % one for one in kinds.split()])
    def added(out, x):
        out[0] = x + 2**53  # a float64 does not hold one more

    out = np.zeros(1, np.int64)
    added[1, 1](out, value)
    assert out[0] == want


def test_signatures_convert_numbers(device):
    @cuda.jit([void(float32[:], float32), "void(float64[:], float64)"])
    def fill(out, x):
        out[cuda.grid(1)] = x

    single, double = np.zeros(2, "float32"), np.zeros(2)
    fill[1, 2](single, 0.1)
    fill[1, 2](double, 1)
    assert single[0] == np.float32(0.1) and double.tolist() == [1, 1]
    with pytest.raises(TypeError, match="was declared for"):
        fill[1, 2](np.zeros(2, "int32"), 1.0)


def test_signatures_of_device_functions(device):
    @cuda.jit("float32(float32)", device=True)
    def third(x):
        return x / 3

    @cuda.jit
    def one(out):
        out[0] = third(1)

    out = np.zeros(1)
    one[1, 1](out)
    assert out[0] == np.float32(1) / np.float32(3) and third(1) == np.float32(1) / np.float32(3)


def test_streams_and_events(device):
    stream, over = cuda.stream(), []
    a, b = cuda.to_device(np.zeros(1000), stream), cuda.device_array(1000, stream=stream)
    start, end = cuda.event(), cuda.event(timing=True)
    start.record(stream)
    with stream.auto_synchronize():
        shift[8, 128, stream](a, b)
        shift[8, 128, stream, 0](b, a)
        end.record(stream)
        end.wait(stream)
        stream.add_callback(lambda *given: over.append(given), "arg")
    end.synchronize()
    assert end.query() and cuda.event_elapsed_time(start, end) >= 0 and start.elapsed_time(end) < 60e3
    assert (a.copy_to_host(stream=stream) == 2).all()
    shift.forall(1000, stream=cuda.default_stream())(a, b)
    shift.forall(1000, tpb=32)(b, a)
    cuda.synchronize()
    assert (a.copy_to_host() == 4).all()
    with pytest.raises(RuntimeError, match="recorded"):
        cuda.event().elapsed_time(end)
    with pytest.raises(TypeError, match="what cuda.stream"):
        shift[1, 1, "text"](a, b)


def test_callbacks_of_streams(device):
    called, given = threading.Event(), []
    stream = cuda.stream()
    stream.add_callback(lambda *args: (given.extend(args), called.set()), 5)
    assert called.wait(60) and given == [stream, 0, 5]


def test_devices(device):
    assert cuda.is_available() and len(cuda.gpus) >= 1 and cuda.gpus[0].id == 0
    now = cuda.get_current_device()
    assert now.name == device.name and now.MULTIPROCESSOR_COUNT >= 1 and now.MAX_THREADS_PER_BLOCK >= 64
    assert now.WARP_SIZE == cuda.warpsize == 32
    free, total = cuda.current_context().get_memory_info()
    assert 0 < total and 0 <= free <= total
    with cuda.gpus[len(cuda.gpus) - 1] as last:
        assert cuda.get_current_device() == last
        assert cuda.to_device(np.zeros(3))._array.device == last._engine
    assert cuda.get_current_device() == now
    with pytest.raises(IndexError, match="none of them"):
        cuda.select_device(99)
    with pytest.raises(AttributeError, match="compiled for any"):
        now.compute_capability  # noqa: B018


def test_a_kernel_without_arrays(device, capfd):
    @cuda.jit
    def hello(n):
        print("hello", cuda.grid(1) + n)

    hello[1, 2](5)
    cuda.synchronize()
    assert sorted(capfd.readouterr().out.split("\n")) == ["", "hello 5", "hello 6"]


TABLE = np.arange(4.0)


def test_what_a_kernel_finds_wrong(device):
    """An assert, and an index that is out of bounds, name the thread; its block can run again."""
    from drupe.simulator import replay

    @cuda.jit(boundscheck=True)
    def look(a, n):
        x, y = cuda.grid(2)
        assert a[y, x] != 7
        a[y, x + n] = TABLE[x]

    for value, n, says in ((7, 0, "an assertion does not hold"), (0, 1, "the index 4 is outside")):
        a = np.zeros((2, 4))
        a[1, 3] = value
        where = r"%s.*in work-item \(3, [01]\), line \d+ of look" % says
        with pytest.raises(drupe.HostTaskError, match=where) as found:
            look[(2, 1), (2, 2)](a, n)
        launch, failure = replay.of_error(found.value)
        with pytest.raises(AssertionError if value else IndexError):
            replay.run(launch, failure)


# --- What is refused ----------------------------------------------------------------------------------------

def test_refused(device):
    a = np.zeros(4)
    with pytest.raises(ValueError, match=r"saxpy\[blocks, threads\]"):
        saxpy(1, a, a)
    with pytest.raises(ValueError, match="a launch is written"):
        saxpy[1]
    for geometry, says in (((0, 1), "sizes above 0"), ((1, (1, 1, 1, 1)), "1 to 3 dimensions"), ((1, 1.5), "an int")):
        with pytest.raises((ValueError, TypeError), match=says):
            saxpy[geometry]
    with pytest.raises(drupe.KernelError, match="takes 3 arguments"):
        saxpy[1, 1](a)
    with pytest.raises(TypeError, match="no option 'colour'"):
        cuda.jit(colour=1)
    with pytest.raises(NotImplementedError, match="link"):
        cuda.jit(link=["a.cu"])
    with pytest.raises(TypeError, match="give nothing back"):
        cuda.jit("float32(float32)")(saxpy.py_func)
    for name in ("shfl_sync", "cg", "laneid", "libdevice", "cudadrv", "reduce"):
        with pytest.raises(AttributeError, match=f"does not provide numba.cuda.{name}"):
            getattr(cuda, name)

    @cuda.jit
    def warps(a):
        cuda.syncwarp()
        a[0] = 1

    if list(device.sub_group_sizes or ()) != [32] or "cl_khr_subgroups" not in device.extensions:
        with pytest.raises(drupe.KernelError, match="no barriers of warps of 32 threads(.|\n)*syncthreads"):
            warps[1, 32](a)

    @cuda.jit
    def constants(a):
        TABLE[0] = a[0]

    with pytest.raises(drupe.KernelError, match="DK021: constants.* writes into a global array(.|\n)*as an argument"):
        constants[1, 1](a)

    @cuda.jit
    def two(a):
        b = cuda.shared.array(0, np.float32)
        c = cuda.shared.array(0, np.int32)
        a[0] = b[0] + c[0]

    with pytest.raises(drupe.KernelError, match="would be the same bytes"):
        two[1, 1, 0, 64](a)


# --- Names --------------------------------------------------------------------------------------------------

NAMES = """jit grid gridsize threadIdx blockIdx blockDim gridDim syncthreads syncwarp syncthreads_count syncthreads_and
syncthreads_or threadfence threadfence_block threadfence_system shared local const atomic to_device device_array
device_array_like pinned_array pinned_array_like mapped_array mapped_array_like managed_array pinned mapped
is_cuda_array as_cuda_array stream default_stream legacy_default_stream per_thread_default_stream external_stream event
event_elapsed_time synchronize is_available detect gpus list_devices select_device get_current_device current_context
close defer_cleanup In Out InOut popc clz ffs brev fma cbrt selp warpsize""".split()


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    assert getattr(cuda, name) is not None and name in dir(cuda)


# --- In the place of Numba ----------------------------------------------------------------------------------

PROGRAM = """
    import numba, numba.cuda
    import numpy as np
    from numba import cuda, float32, njit, prange
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def draw(states, out):
        part = cuda.shared.array(32, float32)
        part[cuda.threadIdx.x] = xoroshiro128p_uniform_float32(states, cuda.grid(1))
        cuda.syncthreads()
        out[cuda.grid(1)] = part[31 - cuda.threadIdx.x]

    @njit(parallel=True)
    def total(a):
        s = 0.0
        for i in prange(len(a)):
            s += a[i]
        return s

    @njit("f4(f4)")
    def third(x):
        return x / 3

    out = np.zeros(32, "float32")
    draw[1, 32](create_xoroshiro128p_states(32, 1), out)
    assert 0 < out.min() < out.max() < 1
    assert abs(total(out) - out.astype(float).sum()) < 1e-12
    assert numba.cuda is cuda
"""


@pytest.fixture
def run(fresh, tmp_path):
    """Run text in a process of its own, as a program in a file."""
    def started(text):
        (tmp_path / "program.py").write_text(textwrap.dedent(text))
        return fresh("import runpy\nrunpy.run_path(%r, run_name='__main__')" % str(tmp_path / "program.py"))

    return started


def test_where_numba_is_not_installed(run):
    found = run("""
    import sys
    from importlib.machinery import PathFinder

    class Without(PathFinder):
        @classmethod
        def find_spec(cls, name, path=None, target=None):
            return None if name == "numba" else PathFinder.find_spec(name, path, target)

    sys.meta_path = [Without if one is PathFinder else one for one in sys.meta_path]
    import drupe.compat
    drupe.compat.enable()
    assert drupe.compat.numba_cuda().__name__ == "drupe.compat.numba_cuda"
    """ + PROGRAM + """
    assert third(1) == np.float32(1) / np.float32(3) and type(third(1)) is np.float32
    assert cuda.__name__ == "drupe.compat.numba_cuda" and not hasattr(numba, "stencil")
    print("ran")
    """)
    assert found.stdout == "ran\n", found.stderr
    assert "numba is answered by Drupe" in found.stderr


def test_where_numba_has_no_part_for_cuda(run):
    pytest.importorskip("numba")
    found = run("""
    import sys
    from importlib.machinery import PathFinder

    class Without(PathFinder):
        @classmethod
        def find_spec(cls, name, path=None, target=None):
            return None if name == "numba.cuda" else PathFinder.find_spec(name, path, target)

    sys.meta_path = [Without if one is PathFinder else one for one in sys.meta_path]
    import drupe.compat
    drupe.compat.enable()
    """ + PROGRAM + """
    @cuda.jit("void(float32[:])")
    def by_third(a):
        a[cuda.grid(1)] = third(a[cuda.grid(1)])

    by_third[1, 32](out)
    assert type(third).__module__.startswith("numba.") and 0 < out.max() < 1 / 3
    print("ran")
    """)
    assert found.stdout == "ran\n", found.stderr
    assert "numba.cuda is answered by Drupe" in found.stderr and "numba is answered" not in found.stderr


def test_in_the_place_of_an_installed_one(run):
    pytest.importorskip("numba")
    found = run("""
    import numba.cuda
    import drupe
    theirs = numba.cuda
    ours = drupe.compat.numba_cuda()
    """ + PROGRAM + """
    assert cuda is ours and drupe.compat.numba_cuda() is ours
    drupe.compat.numba_cuda(install=False)
    import numba.cuda
    assert numba.cuda is theirs
    print("ran")
    """)
    assert found.stdout == "ran\n", found.stderr


@pytest.mark.parametrize("text, says", [
    ("cuda.shfl_sync(1, 2, 0)", "DK011.*no attribute 'shfl_sync'.*Devices differ in their warps"),
    ("cuda.popc(a)", r"DK012.*popc\(\) takes numbers in a kernel, and this is"),
    ("cuda.selp(a, 1, 2)", r"DK012.*selp\(\) takes numbers"),
    ("cuda.grid('x')", r"DK012.*grid\(\) takes numbers"),
    ("cuda.syncthreads(1)", r"DK008.*syncthreads\(\) takes no arguments"),
    ("cuda.threadfence(3)", r"DK008.*threadfence\(\) takes no arguments"),
    ("cuda.shared.array(shape=4, dtype=np.int8, colour=2)", r"DK008.*takes a shape and a dtype")])
def test_wrong_arguments_in_kernels(text, says, tmp_path):
    names = {"cuda": cuda, "np": np}
    (tmp_path / "one.py").write_text("def one(a):\n    %s\n" % text)
    exec(compile((tmp_path / "one.py").read_text(), str(tmp_path / "one.py"), "exec"), names)
    with pytest.raises(drupe.KernelError, match="(?s)" + says) as caught:
        cuda.jit(names["one"])[1, 4](np.zeros(4))
    assert "    %s" % text in str(caught.value) and "^^^^" in str(caught.value)


def test_a_tuple_with_an_array_that_is_read_only():
    @cuda.jit
    def both(pair, out):
        out[0] = pair[0][0] + pair[1][0]

    @cuda.jit
    def second(pair):
        pair[1][0] = 5

    fixed, out = np.full(2, 3.0), np.zeros(2)
    fixed.flags.writeable = False
    both[1, 1]((fixed, fixed), out)
    assert out[0] == 6
    second[1, 1]((fixed, out))
    assert out[0] == 5
    with pytest.raises(ValueError, match="the array that it was given is read-only"):
        second[1, 1]((out, fixed))
