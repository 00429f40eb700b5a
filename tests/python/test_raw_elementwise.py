"""ElementwiseKernel, as CuPy and PyOpenCL spell it: against NumPy, and what it refuses."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ordered import one_of_each_kind, quick
from raw_kernels import close, formed, numbers, same, target  # noqa: F401

import drupe
import drupe.array as da
from drupe import ElementwiseKernel

TYPES = ("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64").split()

# --- As CuPy has it -------------------------------------------------------------------------

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
        computed = a.astype("float32") if dtype == "float16" else a
        same(z, (computed * computed.dtype.type(2) + computed.dtype.type(1)).astype(dtype))


def test_small_integers_wrap(target):
    same(ElementwiseKernel("T x", "T y", "y = x + 1")(da.asarray([255, 7], dtype="uint8")), np.array([0, 8], "uint8"))


def test_float16_is_rounded_as_numpy_does(formed):
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
        found.append((tuple(base[axis] for axis in order), tuple(map(int, np.argsort(order))),
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
def test_broadcasting_and_strides(formed, operands):
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


def test_order_of_memory_does_not_matter(formed):
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


def test_many_dimensions(formed):
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


def test_raw_arrays_and_size(formed):
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


def test_what_stands_around_the_operation(formed):
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
        extremes = ElementwiseKernel("T x", "raw T a, raw T b", "atomicMin(&a[0], x); atomicMax(&b[0], x)")
        extremes(da.asarray(index), low, high)
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
    with pytest.raises(TypeError, match="z is an array of float64, and x, .* of float32; give an output of float32"):
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


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_every_length(formed, dtype):
    """Chunks and batches end anywhere."""
    add = ElementwiseKernel("T x, T y", "T z", "z = x + y * 2", "add")
    for size in (1, 3, 255, 1025, 4097, 70_001):
        a, b = numbers(dtype, size), numbers(dtype, size, seed=5)
        same(add(da.asarray(a), da.asarray(b)), a + b * np.dtype(dtype).type(2))
    for shape in ((3, 5), (7, 33), (70, 300), (2, 9, 31)):
        a = numbers(dtype, *shape)
        same(add(da.asarray(a).T, 1), a.T + np.dtype(dtype).type(2))
        same(add(da.asarray(a)[..., ::2], da.asarray(a)[..., :1]), a[..., ::2] + a[..., :1] * np.dtype(dtype).type(2))


@pytest.mark.parametrize("call, kind, what", [
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")(x.asnumpy()), TypeError, r"x is a NumPy array. .*asarray\(x\)"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")([1, 2]), TypeError, "x is a list"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")("a"), TypeError, "not str"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")(), TypeError, "takes 1 arguments, or 2 with its outputs"),
    (lambda x: ElementwiseKernel("raw T x", "T y", "y = x[i]")(3, x), TypeError, "x is a raw array"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x")(x.astype("complex64")), NotImplementedError,
     "x.real and x.imag"),
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
    (lambda x: ElementwiseKernel("T x", "T y", "y = threadIdx.x"), NotImplementedError,
     r"threadIdx.x  ->  get_local_id\(0\)"),
    (lambda x: ElementwiseKernel("T x", "T y", "y = x", options="--use_fast_math"), ValueError,
     "-cl-fast-relaxed-math"),
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
    wide = da.zeros((40, 2), dtype="float32", queue=two)
    put = ElementwiseKernel(one, "float *x, float a", "x[i] = a + i", "put")
    put(wide[:, 0], 3, queue=one).wait()  # a copy, a kernel on another queue, and a copy back
    same(wide, np.stack([np.arange(40, dtype="float32") + 3, np.zeros(40, "float32")], axis=1))


def test_queues_out_of_order(target):
    """Kernels stand among operations on arrays as these do among themselves."""
    if target.filter_string.startswith("opencl:cpu"):
        pytest.skip("PoCL 5 aborts now and then when kernels of such a queue end")
    queue = drupe.Queue(target, in_order=False)
    add = ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    x = da.zeros(50_000, queue=queue)
    for _ in range(5):
        x = da.sqrt(add(add(x, x), 4)) - 2
    same(x, np.zeros(50_000))


def test_the_second_call_does_what_the_first_did(target):
    """It knows the arguments' types and shapes; values, and arrays of other types and shapes, are new each time."""
    scale = ElementwiseKernel("T x, float64 by", "T y", "y = x * by", "scale")
    total = drupe.ReductionKernel("T x, float64 by", "T y", "x * by", "a + b", "y = a", "0", "total")
    a = numbers("float64", 6, 4)
    for by in (2, 2.5, np.float32(3), np.int16(4), True, 2):
        for view in (np.s_[:], np.s_[::2], np.s_[1::2], np.s_[:, 1], np.s_[::-1, ::-1]):
            same(scale(da.asarray(a)[view], by), a[view] * float(by))
            same(total(da.asarray(a)[view], by), (a[view] * float(by)).sum())
    same(scale(da.asarray(a.astype("int32")), 2.5), (a * 2.5).astype("int32"))
    out = da.zeros((6, 8))
    for by in (3, 4):
        scale(da.asarray(a), by, out[:, ::2])
        same(out, np.insert(a * by, [1, 2, 3, 4], 0, axis=1))
    with pytest.raises(TypeError, match="y is an array of float32"):
        scale(da.asarray(a), 2, da.zeros((6, 4), dtype="float32"))


# --- As PyOpenCL has it -----------------------------------------------------------------------

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
