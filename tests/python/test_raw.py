"""Raw kernels, and kernels of expressions, as CuPy and PyOpenCL spell them: against NumPy, and what they refuse."""
import doctest
import inspect
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ordered import one_of_each_kind, quick

import drupe
import drupe.array as da
from drupe import ElementwiseKernel, RawKernel, RawModule, ReductionKernel

TYPES = ("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64").split()
BOTH = """
#ifdef __OPENCL_VERSION__
#define GLOBAL global
#else
#define GLOBAL
#endif
"""


@pytest.fixture
def target(device):
    """A device on which programs are built, the default one of the test."""
    if not device.can_compile("c" if device.filter_string.startswith("host") else "opencl"):
        pytest.skip("nothing compiles for this device")
    with drupe.device(device):
        yield device


@pytest.fixture(params=["host", "opencl:cpu", "opencl:gpu", "opencl:cpu as a GPU"])
def formed(request, monkeypatch):
    """The devices, and CPUs behind OpenCL once more with work divided as on GPUs."""
    name, _, gpu = request.param.partition(" as a ")
    try:
        device = drupe.Device(name)
    except drupe.DeviceNotFoundError as error:
        pytest.skip(str(error))
    if not device.can_compile("c" if name == "host" else "opencl"):
        pytest.skip("nothing compiles for this device")
    if gpu:
        monkeypatch.setenv("DRUPE_FORM", "gpu")
    with drupe.device(device):
        yield device


def same(x, expected):
    got, expected = x.asnumpy(), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got, expected)


def close(x, expected, rtol=1e-5):
    got, expected = x.asnumpy(), np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got, expected, rtol=rtol)


def numbers(dtype, *shape, seed=3):
    return np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)


@pytest.mark.parametrize("thing", [ElementwiseKernel, ReductionKernel, RawKernel, RawModule], ids=lambda one: one.__name__)
def test_examples_hold(thing):
    if not drupe.Device().can_compile("c") and not drupe.Device().can_compile("opencl"):
        pytest.skip("nothing compiles here")
    runner, told = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False), []
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(thing.__doc__), {"da": da, "drupe": drupe}, "", None, 0)
    assert test.examples
    runner.run(test, out=told.append)
    assert not runner.failures, "".join(told)


# --- ElementwiseKernel, as CuPy has it -------------------------------------------------------------------------

COMBINE = ElementwiseKernel("T x, S y", "T z, bool less", "z = x * 2 + 1; less = x < y", "combine")
FLAT = ElementwiseKernel("T x, T y", "int64 z", "z = i * 100 + (int)x * 10 + (int)y", "flat")


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type(target, dtype):
    one_of_each_kind(target, dtype)
    a = numbers(dtype, 37)
    if dtype.startswith("float"):
        a = (a / 7).astype(dtype)
    z, less = COMBINE(da.asarray(a), 3)
    same(less, a < 3)
    if dtype == "bool":
        same(z, np.ones(37, bool))
    else:
        same(z, (a.astype("float32") * 2 + 1).astype(dtype) if dtype == "float16" else a * a.dtype.type(2) + a.dtype.type(1))


def test_small_integers_wrap(target):
    same(ElementwiseKernel("T x", "T y", "y = x + 1")(da.asarray([255, 7], dtype="uint8")), np.array([0, 8], "uint8"))


def test_float16_is_rounded_as_numpy_does(target):
    with np.errstate(over="ignore", under="ignore"):
        a = np.concatenate([np.random.default_rng(1).standard_normal(500) * 10.0**np.arange(-10, 10).repeat(25),
                            [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65520, 6e-8, 2.9e-8]]).astype("float32")
        half = a.astype("float16")
    with np.errstate(over="ignore"):
        same(ElementwiseKernel("T x", "float16 y", "y = x")(da.asarray(a)), half)
    same(ElementwiseKernel("T x", "float32 y", "y = x")(da.asarray(half)), half.astype("float32"))


@st.composite
def _operands(draw):
    """Two arrays that broadcast with each other, and what is done with them: axes in another order, steps, new axes."""
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=5, min_side=0))
    found = []
    for seed, shape in enumerate(shapes.input_shapes):
        steps = tuple(draw(st.sampled_from([1, 1, 2, -1])) for _ in shape)
        order = draw(st.permutations(range(len(shape))))
        base = tuple(shape[axis] * abs(steps[axis]) for axis in range(len(shape)))
        found.append((tuple(base[axis] for axis in order), tuple(int(np.argsort(order)[axis]) for axis in range(len(order))),
                      tuple(slice(None, None, step) for step in steps), seed))
    return found


def _views(operands, make):
    views = []
    for base, order, key, seed in operands:
        whole = make(numbers("int32", *base, seed=seed))
        views.append(whole.transpose(order)[key] if base else whole)
    return views


@quick
@given(_operands())
def test_broadcasting_and_strides(target, operands):
    a, b = _views(operands, lambda a: a)
    x, y = _views(operands, da.asarray)
    shape = np.broadcast_shapes(a.shape, b.shape)
    index = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    same(FLAT(x, y), index * 100 + a.astype("int64") * 10 + b)
    if 0 not in shape:
        wide = da.zeros((*shape[:-1], shape[-1] * 2) if shape else (), dtype="int64")
        out = wide[..., ::-2] if shape else wide
        assert FLAT(x, y, out) is out
        same(out, index * 100 + a.astype("int64") * 10 + b)


def test_order_of_memory_does_not_matter(target):
    """Where the operation does not ask for the index, the work follows memory; results stay where they belong."""
    a = numbers("float64", 4, 5, 6)
    x = da.asarray(a)
    add = ElementwiseKernel("T x, T y", "T z", "z = x - 2 * y")
    same(add(x.T, x.T), a.T - 2 * a.T)
    same(add(x.T, x.transpose(2, 1, 0)[::-1]), a.T - 2 * a.T[::-1])
    out = da.zeros((4, 5, 6)).T
    add(x.T, 1, out)
    same(out, a.T - 2.0)


def test_strided_operands_are_not_copied(target):
    x = da.asarray(numbers("float32", 30, 40))
    add = ElementwiseKernel("T x", "T y", "y = x + 1", "add_one")
    add(x.T[::2]).asnumpy()
    before = max((one["id"] for one in drupe.trace()), default=0)
    add(x.T[::2])
    target.queue.wait()
    assert [one["label"] for one in drupe.trace() if one["id"] > before and one["operation"] == "kernel"] == ["add_one"]


def test_many_dimensions(target):
    """More than a kernel is told of: operands are copied, and a strided output gets its values."""
    a = numbers("int32", *[3] * 9)
    x = da.asarray(a)
    key = (slice(None, None, 2),) * 9
    out = da.zeros((3,) * 9, dtype="int32")
    result = ElementwiseKernel("T x, T y", "T z", "z += x + y")(x[key], x[key], out[key])
    same(result, 2 * a[key])
    same(out[key], 2 * a[key])
    assert int(out.sum()) == 2 * a[key].sum()


def test_outputs(target):
    x = da.arange(4.0)
    split = ElementwiseKernel("T x", "T a, int32 b", "a = -x; b = x * 2")
    first, second = split(x)
    same(first, -np.arange(4.0))
    same(second, np.arange(4, dtype="int32") * 2)
    given_a, given_b = da.zeros(4), da.zeros(4, dtype="int32")
    assert split(x, given_a, given_b)[0] is given_a
    assert isinstance(ElementwiseKernel("T x", "T y", "y = x", return_tuple=True)(x), tuple)
    assert ElementwiseKernel("T x", "T y", "y = x + 5", no_return=True)(x, given_a) is None
    same(given_a, np.arange(4.0) + 5)
    ElementwiseKernel("T x", "T y", "y += x")(x, x)
    same(x, np.arange(4.0) * 2)
    with pytest.raises(ValueError, match=r"output y has the shape \(3,\), and the operands have \(4,\)"):
        ElementwiseKernel("T x", "T y", "y = x")(x, da.zeros(3))
    fill = ElementwiseKernel("", "T y", "y = i", "numbered")
    same(fill(da.zeros(3, dtype="int16")), np.arange(3, dtype="int16"))


def test_raw_arrays_and_size(target):
    a = np.arange(12, dtype="float32")
    x = da.asarray(a)
    turned = ElementwiseKernel("raw T x", "T y", "y = x[x.size() - 1 - i]", "turned")
    same(turned(x, size=12), a[::-1])
    same(turned(x[::3], size=4), a[::3][::-1])
    around = ElementwiseKernel("T x, raw T y, int32 k", "T z", "z = x + y[(i + k) % n]")
    same(around(x, x, 5), a + np.roll(a, -5))
    scatter = ElementwiseKernel("T x, raw int64 where", "raw T y", "y[where[i]] = x")
    wide = da.zeros(24, dtype="float32")
    scatter(x, da.asarray(np.arange(11, -1, -1)), wide[::2])  # a strided raw output
    same(wide[::2], a[::-1])
    assert float(wide[1::2].sum()) == 0
    with pytest.raises(ValueError, match="give size="):
        turned(x)
    with pytest.raises(ValueError, match="size= is for kernels whose arrays are all raw"):
        around(x, x, 1, size=3)
    with pytest.raises(ValueError, match="output y is raw"):
        scatter(x, da.arange(12))


def test_what_stands_around_the_operation(target):
    kernel = ElementwiseKernel("T x", "T y", "if (x > 2) continue; y = twice(x) + start + n", "around",
                               preamble="static T twice(T x) { return 2 * x; }", loop_prep="T start = 100",
                               after_loop="start = 0", options=("-DUNUSED=1",))
    out = da.full(5, -1.0)
    kernel(da.arange(5.0), out)
    same(out, np.array([105.0, 107, 109, -1, -1]))
    assert "twice" in kernel.cached_code and len(kernel.cached_codes) == 1
    kernel(da.arange(5, dtype="float32"))
    with pytest.raises(ValueError, match="2 programs"):
        kernel.cached_code
    assert (kernel.nin, kernel.nout, kernel.nargs, kernel.name) == (1, 1, 2, "around")


def test_functions_of_both_languages(target):
    a = np.array([-2.5, -1, 0.25, 4])
    for dtype in ("float32", "float64"):
        x = da.asarray(a.astype(dtype))
        got = ElementwiseKernel("T x", "T a, T b, T c, T d", "a = max(x, 0) + min(x, 1.5f); b = abs(x); "
                                "c = sqrtf(abs(x)) + fabsf(x); d = clamp(x, (T)-1, (T)1) + rsqrt((T)4)")(x)
        for one, expected in zip(got, (np.maximum(a, 0) + np.minimum(a, 1.5), abs(a), np.sqrt(abs(a)) + abs(a),
                                       np.clip(a, -1, 1) + 0.5)):
            close(one, expected.astype(dtype), 1e-6)
    x = da.asarray([-5, 7], dtype="int64")
    same(ElementwiseKernel("T x", "T y", "y = abs(x) * max(x, -1)")(x), np.array([-5, 49]))
    same(ElementwiseKernel("T x", "T y", "uint8_t k = 255; float32 f = 0.5; y = x + k + (T)(2 * f) + M_PI")(
        da.zeros(2, dtype="float64")), np.full(2, 256 + np.pi))


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32"])
def test_atomic_additions(target, dtype):
    index = numbers("int32", 20_000)
    y = da.zeros(9, dtype=dtype)
    ElementwiseKernel("int32 x", "raw T y", "atomicAdd(&y[x], 2)")(da.asarray(index), y)
    same(y, (2 * np.bincount(index, minlength=9)).astype(dtype))
    if dtype == "int32":
        low, high = da.full(1, 50, dtype=dtype), da.zeros(1, dtype=dtype)
        ElementwiseKernel("T x", "raw T a, raw T b", "atomicMin(&a[0], x); atomicMax(&b[0], x)")(da.asarray(index), low, high)
        assert (int(low[0]), int(high[0])) == (0, 8)


def test_types_come_from_the_arrays(target):
    add = ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    single, double = da.ones(2, dtype="float32"), da.ones(2)
    assert add(single, 2).dtype == da.float32
    assert add(single, np.float64(2)).dtype == da.float32
    assert add(da.ones(2, dtype="int8"), np.int64(2)).dtype == da.int8
    with pytest.raises(TypeError, match=r"y is an array of float64, and x, of the same type T, is one of float32; "
                                        r"give y.astype\('float32'\)"):
        add(single, double)
    with pytest.raises(TypeError, match="z, of the same type T, is one of float64"):
        add(single, single, double)
    with pytest.raises(TypeError, match="x is an array of float64, and the kernel takes float32"):
        ElementwiseKernel("float32 x", "T y", "y = x")(double, single)
    with pytest.raises(TypeError, match="no argument tells the type 'S' of z"):
        ElementwiseKernel("T x", "S z", "z = x")(single)
    with pytest.raises(TypeError, match="y is of type int64, and 2.5 is no integer"):
        add(da.arange(2), 2.5)
    with pytest.raises(OverflowError):
        add(da.zeros(2, dtype="int8"), 300)
    assert ElementwiseKernel("S a", "S y", "y = a")(np.float32(4), size=2).dtype == da.float32
    assert ElementwiseKernel("S a, S b", "S y", "y = a + b")(4, 2.5, size=1).dtype == da.float64
    assert ElementwiseKernel("unsigned char x", "float y", "y = x")(da.ones(1, dtype="uint8")).dtype == da.float32


@pytest.mark.parametrize("call, kind, what", [
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")(x.asnumpy()), TypeError, r"x is a NumPy array. .*asarray\(x\)"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")([1, 2]), TypeError, "x is a list"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")("a"), TypeError, "not str"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")(), TypeError, "takes 1 arguments, or 2 with its outputs"),
    (lambda x: ElementwiseKernel("raw T x", "T y", "y = x[i]")(3, x), TypeError, "x is a raw array"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")(x.astype("complex64")), NotImplementedError, "x.real and x.imag"),
    (lambda x: ElementwiseKernel("complex64 x", "T y", "y = x"), NotImplementedError, "x.real and x.imag"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")(2j), NotImplementedError, "x.real and x.imag"),
    (lambda x: ElementwiseKernel("raw T x", "float y", "y = x[0]")(x.astype("float16"), size=1), NotImplementedError,
     "raw array of float16"),
    (lambda x: ElementwiseKernel("T i", "T y", "y = i"), ValueError, "'i' is reserved: i is the index"),
    (lambda x: ElementwiseKernel("T _x", "T y", "y = 1"), ValueError, "'_x' is reserved"),
    (lambda x: ElementwiseKernel("T x", "T x", "x = 1"), ValueError, "two parameters of the name 'x'"),
    (lambda x: ElementwiseKernel("floot x", "T y", "y = x"), ValueError, "'floot' is no type.* float32.*RawKernel"),
    (lambda x: ElementwiseKernel("x", "T y", "y = x"), ValueError, "'x' is no parameter"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = (x"), ValueError, r"operation: '\(' is not closed"),
    (lambda x: ElementwiseKernel("T x", "T y", "return"), ValueError, "continue"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x", "a name"), ValueError, "'a name' is no name of a kernel"),
    (lambda x: ElementwiseKernel("raw T x", "T y", "y = x.shape()[0]"), NotImplementedError, "x.shape is C"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = threadIdx.x"), NotImplementedError, r"threadIdx.x  ->  get_local_id\(0\)"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x", options="--use_fast_math"), ValueError, "-cl-fast-relaxed-math"),
    (lambda x: ElementwiseKernel(7, "float *x", "x[i] = 1"), TypeError, "drupe.Queue.*not int"),
])
def test_refused(target, call, kind, what):
    with pytest.raises(kind, match=what):
        call(da.ones(2))


def test_queues(target):
    one, two = drupe.Queue(target), drupe.Queue(target)
    add = ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    x, y = da.ones(3, queue=one), da.ones(3, queue=two)
    with pytest.raises(drupe.ExecutionPlacementError, match="x is on .* and y on"):
        add(x, y)
    two.wait()
    assert add(x, y, queue=one).queue == one
    free = drupe.Queue(target, in_order=False)
    x = da.zeros(50_000, queue=free)
    for _ in range(5):
        x = da.sqrt(add(add(x, x), 4)) - 2
    same(x, np.zeros(50_000))
    wide = da.zeros((40, 2), dtype="float32", queue=two)
    put = ElementwiseKernel(one, "float *x, float a", "x[i] = a + i", "put")
    put(wide[:, 0], 3, queue=one).wait()  # a copy, a kernel on another queue, and a copy back
    same(wide, np.stack([np.arange(40, dtype="float32") + 3, np.zeros(40, "float32")], axis=1))


# --- ElementwiseKernel, as PyOpenCL has it -----------------------------------------------------------------------

def test_the_spelling_of_pyopencl(target):
    combine = ElementwiseKernel(target.context, "float a, __global const float *x, float b, const float *y, float *z",
                                "z[i] = a * x[i] + b * y[i]", "combine")
    a, b = numbers("float32", 100), numbers("float32", 100, seed=4)
    x, y, z = da.asarray(a), da.asarray(b), da.zeros(100, dtype="float32")
    event = combine(2, x, 0.5, y, z)
    assert isinstance(event, drupe.Event)
    event.wait()
    same(z, 2 * a + np.float32(0.5) * b)
    combine(1, x, 0, y, z, wait_for=[event], slice=slice(0, 10))
    same(z[:10], a[:10])
    whole = da.zeros((10, 20), dtype="float32")
    combine(1, x[:50].reshape(10, 5), 3, y[:50].reshape(10, 5), whole[:, ::4])  # strided: written back
    same(whole[:, ::4], (a[:50] + 3 * b[:50]).reshape(10, 5))
    assert float(whole[:, 1::4].sum()) == 0
    columns = da.asarray(a[:50].reshape(10, 5)).T
    turned = da.zeros((10, 5), dtype="float32").T
    ElementwiseKernel(target, "const float *x, float *z", "z[i] = x[i] + i")(columns, turned)
    same(turned, (a[:50].reshape(10, 5) + np.arange(50, dtype="float32").reshape(10, 5)).T)


def test_details_of_the_spelling_of_pyopencl(target):
    class VectorArg:
        dtype, name = np.dtype("int32"), "x"

    class ScalarArg:
        dtype, name = np.int32, "a"

    x = da.arange(5, dtype="int32")
    ElementwiseKernel(target.queue, [VectorArg(), ScalarArg()],
                      "if (i == 2) PYOPENCL_ELWISE_CONTINUE; x[i] = x[n - 1 - i] * 0 + a", "put")(x, 7).wait()
    same(x, np.array([7, 7, 2, 7, 7], "int32"))
    with pytest.raises(TypeError, match="kernel takes int32"):
        ElementwiseKernel(target.queue, "int *x", "x[i] = 1")(da.ones(3))
    with pytest.raises(TypeError, match="a is a number, and an array was given"):
        ElementwiseKernel(target.queue, "int *x, int a", "x[i] = a")(x, x)
    with pytest.raises(NotImplementedError, match="range="):
        ElementwiseKernel(target.queue, "int *x", "x[i] = 1")(x, range=slice(0, 2))
    with pytest.raises(ValueError, match="no pointer"):
        ElementwiseKernel(target.queue, "int a", "a = 1")
    with pytest.raises(NotImplementedError, match="complex"):
        ElementwiseKernel(target.queue, "cfloat_t *a", "a[i] = 1")
    with pytest.raises(ValueError, match="'float4' is no type"):
        ElementwiseKernel(target.queue, "float4 *a", "a[i] = 1")


# --- What compilers say ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("make, where, shown", [
    (lambda: ElementwiseKernel("T x", "T y", "y = 1;\n  y = nothing + x"), "operation, line 2, column 7: ",
     "      y = nothing + x\n          ^"),
    (lambda: ElementwiseKernel("T x", "T y", "y = x +"), "operation, line 1, column 8: ", "    y = x +\n           ^"),
    (lambda: ElementwiseKernel("T x", "T y", "y = max(x, nothing)"), "operation, line 1, column ",
     "    y = max(x, nothing)\n"),
    (lambda: ElementwiseKernel("T x", "T y", "y = x", preamble="\nstatic int f(void) { return nothing; }"),
     "preamble, line 2, column 29: ", None),
    (lambda: ReductionKernel("T x", "T y", "nothing", "a + b", "y = a", "0"), "map_expr, line 1, column 1: ", "    nothing\n    ^"),
    (lambda: ReductionKernel("T x", "T y", "x", "a + nothing", "y = a", "0"), "reduce_expr, line 1, column 5: ", None),
    (lambda: ReductionKernel("T x", "T y", "x", "a + b", "y = nothing", "0"), "post_map_expr, line 1, column 5: ", None),
    (lambda: ReductionKernel("T x", "T y", "x", "a + b", "y = a", "nothing"), "identity, line 1, column 1: ", None),
])
def test_errors_show_what_the_user_wrote(target, make, where, shown):
    with pytest.raises(drupe.BuildError) as caught:
        make()(da.ones(3))
    text = str(caught.value)
    assert where in text and "_d.v" not in text and "drupe:" not in text, text
    if shown is not None:
        assert shown in text, text
    assert text.count(where) == 1, text


def test_a_conversion_in_the_manner_of_cpp_is_explained(target):
    with pytest.raises(drupe.BuildError, match=r"The language is C: a conversion in operation is written \(T\)\(x\)"):
        ElementwiseKernel("T x", "T y", "y = T(x)")(da.ones(3))


def test_a_function_that_is_missing(target):
    with pytest.raises(drupe.BuildError, match="operation, line 1, column 5: .*no_function"):
        ElementwiseKernel("T x", "T y", "y = no_function(x)")(da.ones(3))


# --- ReductionKernel -----------------------------------------------------------------------------------------------

TOTAL = ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
LARGEST = ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", "", "largest")


@pytest.mark.parametrize("size", [1, 31, 33, 5_000, 200_001])
def test_reductions_of_all(formed, size):
    a = numbers("int64", size)
    x = da.asarray(a)
    same(TOTAL(x), a.sum())
    same(TOTAL(x[::-3]), a[::-3].sum())
    same(LARGEST(x * 3), a.max() * 3)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (1, 2), (2, 0), ()])
def test_reductions_along_axes(formed, axis):
    a = numbers("int64", 7, 20, 70)
    x = da.asarray(a)
    for keepdims in (False, True):
        same(TOTAL(x, axis=axis, keepdims=keepdims), a.sum(axis=axis, keepdims=keepdims))
    same(TOTAL(x[:, ::-1, ::2], axis=axis), a[:, ::-1, ::2].sum(axis=axis))
    same(LARGEST(x.T, axis=axis), a.T.max(axis=axis))


@pytest.mark.parametrize("shape", [(3, 50_000), (300, 400)])
def test_reductions_in_chunks(formed, shape):
    a = numbers("int64", *shape)
    x = da.asarray(a)
    for axis in (0, 1):
        same(TOTAL(x, axis=axis), a.sum(axis=axis))
        same(TOTAL(x.T, axis=axis), a.T.sum(axis=axis))


def test_operands_of_a_reduction_are_broadcast(formed):
    a, b = numbers("float64", 40, 90), numbers("float64", 90, seed=5)
    dot = ReductionKernel("T x, T y, T k", "T z", "x * y + k", "a + b", "z = a", "0", "dot")
    close(dot(da.asarray(a), da.asarray(b), 2), (a * b + 2).sum())
    close(dot(da.asarray(a), da.asarray(b), 2, axis=1), (a * b + 2).sum(1))
    close(dot(da.asarray(a), da.asarray(b), 2, axis=0), (a * b + 2).sum(0))
    close(dot(da.asarray(a), 1, da.asarray(b), axis=0), (a + b).sum(0))


@pytest.mark.parametrize("dtype", ["bool", "float16", "uint8", "int32", "float64"])
def test_reductions_of_types(target, dtype):
    a = numbers(dtype, 50, 40)
    same(LARGEST(da.asarray(a), axis=1), a.max(axis=1))
    some = ReductionKernel("T x", "bool y, int32 k", "x > 7", "a || b", "y = a; k = a ? 5 : 0", "false", "some")
    found, five = some(da.asarray(a), axis=0)
    if dtype == "bool":
        assert not found.asnumpy().any()
    else:
        same(found, (a > 7).any(axis=0))
        same(five, np.where((a > 7).any(axis=0), 5, 0).astype("int32"))


BEST = """
typedef struct { T value; long at; } best;
static best make(T value, long at) { best one; one.value = value; one.at = at; return one; }
static best better(best a, best b) { return a.value > b.value || (a.value == b.value && a.at < b.at) ? a : b; }
"""


def test_a_type_of_the_preamble(formed):
    largest = ReductionKernel("T x", "int64 y", "make(x, _J)", "better(a, b)", "y = a.at", "", "largest_at", "best",
                              preamble=BEST)
    a = np.random.default_rng(1).permutation(6_000).reshape(60, 100).astype("float32")
    x = da.asarray(a)
    same(largest(x), a.argmax())
    same(largest(x, axis=0), a.argmax(0))
    same(largest(x, axis=1), a.argmax(1))
    same(largest(x.T), a.T.argmax())
    big = ReductionKernel("T x", "T y", "make(x)", "a", "y = a.v[0]", "", reduce_type="big",
                          preamble="typedef struct { T v[100]; } big; static big make(T x) { big b; b.v[0] = x; return b; }")
    with pytest.raises(drupe.UnsupportedError, match="big, the reduce_type of .* is larger than 64 bytes"):
        big(x)


def test_details_of_reductions(target):
    a = numbers("float64", 30, 8)
    x = da.asarray(a)
    mean = ReductionKernel("T x", "T y", "x", "a + b", "y = a / (_in_ind.size() / _out_ind.size())", "0", "mean")
    close(mean(x, axis=0), a.mean(0))
    weighted = ReductionKernel("T x, raw T w, T a", "T y", "x * w[_J % w.size()]", "a + b", "y = a * w[0]", "0")
    close(weighted(x, x[0] + 1, 3, axis=0), (a * np.resize(a[0] + 1, 30)[:, None]).sum(0) * (a[0, 0] + 1))
    out = da.zeros((8, 2))
    assert TOTAL(x, axis=0, out=out[:, 1]) is not None
    close(out[:, 1], a.sum(0))
    given_out = da.zeros(())
    assert TOTAL(x, given_out) is given_out and float(given_out) == a.sum()
    narrow = ReductionKernel("T x", "float32 y", "x", "a + b", "y = a", "0", reduce_type="double")
    assert narrow(x).dtype == da.float32
    assert ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", 0)(x).shape == ()
    same(TOTAL(da.zeros((0, 3)), axis=0), np.zeros(3))
    same(TOTAL(da.zeros((0, 3)), axis=1), np.zeros(0))
    same(ReductionKernel("T x", "T y", "x", "min(a, b)", "y = a", float("inf"))(da.zeros(0)), np.inf)
    with pytest.raises(ValueError, match="largest has no identity"):
        LARGEST(da.zeros(0))
    with pytest.raises(ValueError, match="no axis 2"):
        TOTAL(x, axis=2)
    with pytest.raises(ValueError, match="comes twice"):
        TOTAL(x, axis=(0, -2))
    with pytest.raises(ValueError, match="output y has the shape"):
        TOTAL(x, axis=0, out=da.zeros(3))
    with pytest.raises(ValueError, match="leave out the word raw"):
        ReductionKernel("raw T x", "T y", "x[0]", "a + b", "y = a")(x)


def test_reductions_of_many_dimensions(formed):
    a = numbers("int64", *[3] * 10)
    view, other = (da.asarray(a)[(slice(None, None, 2),) * 10] for _ in range(2))
    both = ReductionKernel("T x, T y", "T z", "x + y", "a + b", "z = a", "0")
    expected = 2 * a[(slice(None, None, 2),) * 10]
    same(both(view, other, axis=(1, 3, 5, 7)), expected.sum((1, 3, 5, 7)))
    same(both(view, other), expected.sum())


def test_reductions_as_pyopencl_spells_them(formed):
    a, b = numbers("float32", 3_000), numbers("float32", 3_000, seed=6)
    x, y = da.asarray(a), da.asarray(b)
    dot = ReductionKernel(formed.context, np.float32, neutral="0", reduce_expr="a + b", map_expr="x[i] * y[i]",
                          arguments="__global float *x, __global float *y")
    close(dot(x, y), (a * b).sum())
    result, event = dot(x, y, return_event=True, queue=formed.queue)
    event.wait()
    assert float(result) == float(dot(x[:], y, wait_for=[event]))
    close(dot(x[::2], y[::2]), (a[::2] * b[::2]).sum())
    close(dot(x, y, slice=slice(5, 50)), (a[5:50] * b[5:50]).sum())
    out = da.zeros((), dtype="float32")
    assert dot(x, y, out=out) is out and float(out) == float(result)
    least = ReductionKernel(formed.queue, "int32", "INT_MAX", "min(a, b)", arguments="const int *in",
                            preamble="#define INT_MAX 0x7fffffff" if formed.filter_string.startswith("host") else "")
    same(least(da.asarray(np.arange(5, 400, dtype="int32")[::-1])), np.int32(5))
    count = ReductionKernel(formed.queue, "int64", 0, "a + b", "x[i] > i % n ? 1 : 0", "const float *x")
    same(count(x), np.int64((a > np.arange(3_000)).sum()))
    assert count(da.zeros(0, dtype="float32")).tolist() == 0


# --- Raw kernels -----------------------------------------------------------------------------------------------------

SOURCE = BOTH + """
kernel void scale(GLOBAL float *x, float by, int n)
{
    size_t i = get_global_id(0);
    if (i < (size_t)n) x[i] *= by;
}
kernel void where(GLOBAL int *out)
{
    out[get_global_id(0) + get_global_size(0) * get_global_id(1)] =
        1000 * get_group_id(1) + 100 * get_local_id(1) + 10 * get_group_id(0) + get_local_id(0);
}
"""


def test_raw_kernels(target):
    scale = RawKernel(SOURCE, "scale", options=("-DUNUSED",))
    a = numbers("float32", 100)
    x = da.asarray(a)
    event = scale((4,), (32,), (x, 2.5, 100))
    assert isinstance(event, drupe.Event)
    same(x, a * np.float32(2.5))
    scale(13, 8, (x, np.float32(2), 50), wait_for=event)
    same(x, a * np.float32(2.5) * np.where(np.arange(100) < 50, 2, 1).astype("float32"))
    assert isinstance(scale(x.queue, (100,), None, x, 0, 100), drupe.Event)
    assert float(x.sum()) == 0
    assert scale.name == "scale" and scale.code == SOURCE and scale.options == ("-DUNUSED",)
    assert scale.max_threads_per_block >= 1 and set(scale.attributes) >= {"local_size_bytes", "shared_size_bytes"}
    assert scale.language in ("c", "opencl") and isinstance(scale.kernel, drupe.Kernel)


def test_grid_and_block(target):
    y, x = np.mgrid[:6, :8]
    expected = (1000 * (y // 3) + 100 * (y % 3) + 10 * (x // 2) + x % 2).astype("int32")
    where = RawKernel(SOURCE, "where")
    for launch in (lambda out: where((4, 2), (2, 3), (out,)), lambda out: where((4, 2, 1), (2, 3), (out,)),
                   lambda out: where(out.queue, (8, 6), (2, 3), out),
                   lambda out: where(out.queue, (4, 2), (2, 3), out, g_times_l=True)):
        out = da.zeros((6, 8), dtype="int32")
        launch(out)
        same(out, expected)


def test_refused_launches(target):
    scale, x = RawKernel(SOURCE, "scale"), da.ones(4, dtype="float32")
    with pytest.raises(TypeError, match=r"kernel\(grid, block, \(x, y\)\), not Array"):
        scale((1,), (4,), x)
    with pytest.raises(TypeError, match="float32|float"):
        scale((1,), (4,), (da.ones(4), 1.0, 4))
    with pytest.raises(ValueError, match="sizes are 1 at least"):
        scale((0,), (4,), (x, 1.0, 4))
    with pytest.raises(ValueError, match="one to three sizes"):
        scale((1, 1, 1, 1), (4,), (x, 1.0, 4))
    with pytest.raises(ValueError, match="does not divide"):
        scale(x.queue, (4,), (3,), x, 1.0, 4)
    with pytest.raises(AttributeError, match="no kernel 'missing'; it has scale, where"):
        RawKernel(SOURCE, "missing")((1,), (1,), ())
    with pytest.raises(NotImplementedError, match="global_offset"):
        scale(x.queue, (4,), None, x, 1.0, 4, global_offset=(1,))
    with pytest.raises(ValueError, match="local parameter"):
        scale((1,), (4,), (x, 1.0, 4), shared_mem=64)


def test_local_memory(opencl):
    text = """
        kernel void turn(global float *x, local float *part, int add)
        {
            part[get_local_id(0)] = x[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            x[get_global_id(0)] = part[get_local_size(0) - 1 - get_local_id(0)] + add;
        }
    """
    turn = RawKernel(text, "turn")
    x = da.arange(8, dtype="float32", device=opencl)
    turn((2,), (4,), (x, 10), shared_mem=4 * 4)
    same(x, np.array([13, 12, 11, 10, 17, 16, 15, 14], "float32"))
    turn((2,), (4,), (x, drupe.LocalMemory(16), -10))
    same(x, np.arange(8, dtype="float32"))
    with pytest.raises(ValueError, match="'part' of turn has an argument"):
        turn((2,), (4,), (x, drupe.LocalMemory(16), 1), shared_mem=16)


@pytest.mark.parametrize("text, language, found", [
    ("__global__ void f(float *x) { int i = blockDim.x * blockIdx.x + threadIdx.x; x[i] = blockIdx.y; }", None,
     [r"blockDim.x \* blockIdx.x \+ threadIdx.x  ->  get_global_id\(0\)", r"blockIdx.y  ->  get_group_id\(1\)"]),
    ("__global__ void f(float *x) { __shared__ float p[4]; __syncthreads(); }", "opencl",
     ["__shared__  ->  local", r"barrier\(CLK_LOCAL_MEM_FENCE\)", "__global__  ->  kernel", "global float"]),
    ("__global__ void f(float *x) { __syncthreads(); }", "c", ["__global__  ->  kernel", "use an OpenCL device"]),
    ('extern "C" void f(float *x) {}', None, ['extern "C"']),
    ("template <class T> void f(T *x) {}", None, ["a macro for each type"]),
])
def test_cuda_is_refused(text, language, found):
    for make in (lambda: RawKernel(text, "f", language=language), lambda: RawModule(code=text, language=language)):
        with pytest.raises(drupe.UnsupportedError) as caught:
            make()
        for what in found:
            assert __import__("re").search(what, str(caught.value)), caught.value


def test_words_of_cuda_in_comments_are_none(target):
    RawKernel(SOURCE + "// __global__ void f() { threadIdx.x }\n/* __shared__ */", "scale").compile()


def test_languages():
    if not drupe.Device("host").can_compile("c"):
        pytest.skip("there is no C compiler")
    with drupe.device("host"):
        x = da.ones(4, dtype="float32")
        with pytest.raises(drupe.UnsupportedError, match="opencl:cpu"):
            RawKernel("kernel void f(global float *x) {}", "f")((1,), (1,), (x,))
        with pytest.raises(drupe.UnsupportedError, match=r"no barrier\(\)"):
            RawKernel("kernel void f(float *x) { barrier(1); }", "f")((1,), (1,), (x,))
        with pytest.raises(ValueError, match="'cuda'"):
            RawKernel("kernel void f(float *x) {}", "f", language="cuda")
        with pytest.raises(drupe.BuildError, match="line 1, column 36"):
            RawKernel("kernel void f(float *x) {   x[0] = nothing; }", "f").compile()
        log = io.StringIO()
        RawKernel("kernel void f(float *x) { x[0] = 1; }", "f").compile(log)


def test_modules(target, tmp_path):
    path = tmp_path / "kernels.cl"
    path.write_text(SOURCE)
    for module in (RawModule(code=SOURCE), RawModule(path=path)):
        scale, where = module.get_function("scale"), module.get_function("where")
        x, out = da.ones(4, dtype="float32"), da.zeros(1, dtype="int32")
        scale((1,), (4,), (x, 3, 4))
        where((1,), (1,), (out,))
        same(x, np.full(4, 3, "float32"))
        module.compile()
    with pytest.raises(drupe.UnsupportedError, match="templates"):
        RawModule(code=SOURCE, name_expressions=("f<int>",))
    with pytest.raises(drupe.UnsupportedError, match="no addresses of variables"):
        module.get_global("x")
    with pytest.raises(drupe.UnsupportedError, match="jitify"):
        RawModule(code=SOURCE, jitify=True)
    with pytest.raises(TypeError, match="either code= or path="):
        RawModule()
    (tmp_path / "a.cubin").write_bytes(b"\x7fELF....")
    with pytest.raises(drupe.UnsupportedError, match="compiled for CUDA"):
        RawModule(path=tmp_path / "a.cubin")


def test_one_program_for_each_device(target):
    module = RawModule(code=SOURCE)
    x = da.ones(4, dtype="float32")
    for name in ("scale", "scale"):
        module.get_function(name)((1,), (4,), (x, 3, 4))
    assert len(module._source._cache.items()) == 1
    with drupe.device("host"):
        if drupe.Device("host").can_compile("c"):
            module.get_function("scale")((1,), (4,), (da.ones(4, dtype="float32"), 3, 4))
    assert len(module._source._cache.items()) == (1 if target == drupe.Device("host") else 2)
