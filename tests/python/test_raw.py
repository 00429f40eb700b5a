"""RawKernel and RawModule, the examples in texts, and what compilers' errors say of kernels of expressions."""
import doctest
import inspect
import io
import pathlib
import re

import numpy as np
import pytest
from raw_kernels import numbers, same, target  # noqa: F401

import drupe
import drupe.array as da
from drupe import ElementwiseKernel, RawKernel, RawModule, ReductionKernel

BOTH = """
#ifdef __OPENCL_VERSION__
#define GLOBAL global
#else
#define GLOBAL
#endif
"""


THINGS = (ElementwiseKernel, ReductionKernel, RawKernel, RawModule)


@pytest.mark.parametrize("thing", THINGS, ids=lambda one: one.__name__)
def test_examples_hold(thing):
    if not drupe.Device().can_compile("c") and not drupe.Device().can_compile("opencl"):
        pytest.skip("nothing compiles here")
    runner, told = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False), []
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(thing.__doc__), {"da": da, "drupe": drupe}, "", None, 0)
    assert test.examples
    runner.run(test, out=told.append)
    assert not runner.failures, "".join(told)


def test_examples_of_the_page_run(target):
    page = (pathlib.Path(__file__).parents[2] / "docs/kernels-c.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    for block in blocks:
        exec(block, names)  # noqa: S102 (our own page)
    assert len(blocks) == 3 and int(names["where"](da.asarray([1.0, 7.0, 2.0]))) == 1
    assert float(names["x"].max()) == 2


# --- What compilers say ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("make, where, shown", [
    (lambda: ElementwiseKernel("T x", "T y", "y = 1;\n  y = nothing + x"), "operation, line 2, column 7: ",
     "      y = nothing + x\n          ^"),
    (lambda: ElementwiseKernel("T x", "T y", "y = x +"), "operation, line 1, column 8: ", "    y = x +\n           ^"),
    (lambda: ElementwiseKernel("T x", "T y", "y = max(x, nothing)"), "operation, line 1, column ",
     "    y = max(x, nothing)\n"),
    (lambda: ElementwiseKernel("T x", "T y", "y = x", preamble="\nstatic int f(void) { return nothing; }"),
     "preamble, line 2, column 29: ", None),
    (lambda: ReductionKernel("T x", "T y", "nothing", "a + b", "y = a", "0"), "map_expr, line 1, column 1: ",
     "    nothing\n    ^"),
    (lambda: ReductionKernel("T x", "T y", "x", "a + nothing", "y = a", "0"), "reduce_expr, line 1, column 5: ", None),
    (lambda: ReductionKernel("T x", "T y", "x", "a + b", "y = nothing", "0"), "post_map_expr, line 1, column 5: ",
     None),
    (lambda: ReductionKernel("T x", "T y", "x", "a + b", "y = a", "nothing"), "identity, line 1, column 1: ", None),
])
def test_errors_show_what_the_user_wrote(target, make, where, shown):
    with pytest.raises(drupe.BuildError) as caught:
        make()(da.ones(3))
    text = str(caught.value)
    assert where in text and "_d.v" not in text and "of the user" not in text, text
    if shown is not None:
        assert shown in text, text
    assert text.count(where) == 1, text


def test_a_conversion_in_the_manner_of_cpp_is_explained(target):
    with pytest.raises(drupe.BuildError, match=r"The language is C: a conversion in operation is written \(T\)\(x\)"):
        ElementwiseKernel("T x", "T y", "y = T(x)")(da.ones(3))


def test_a_function_that_is_missing(target):
    with pytest.raises(drupe.BuildError, match="operation, line 1, column 5: .*no_function"):
        ElementwiseKernel("T x", "T y", "y = no_function(x)")(da.ones(3))


# --- RawKernel and RawModule ------------------------------------------------------------------------------------------

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
    ("__global__ void f(float *x) { __syncthreads(); }", "c",
     ["__global__  ->  kernel", r"barrier\(CLK_LOCAL_MEM_FENCE\)"]),
    ('extern "C" void f(float *x) {}', None, ['extern "C"']),
    ("template <class T> void f(T *x) {}", None, ["a macro for each type"]),
])
def test_cuda_is_refused(text, language, found):
    for make in (lambda: RawKernel(text, "f", language=language), lambda: RawModule(code=text, language=language)):
        with pytest.raises(drupe.UnsupportedError) as caught:
            make()
        for what in found:
            assert re.search(what, str(caught.value)), caught.value


def test_words_of_cuda_in_comments_are_none(target):
    RawKernel(SOURCE + "// __global__ void f() { threadIdx.x }\n/* __shared__ */", "scale").compile()


def test_languages():
    if not drupe.Device("host").can_compile("c"):
        pytest.skip("there is no C compiler")
    with drupe.device("host"):
        x = da.ones(4, dtype="float32")
        with pytest.raises(drupe.UnsupportedError, match="opencl:cpu"):
            RawKernel("kernel void f(global float *x) {}", "f")((1,), (1,), (x,))
        RawKernel("kernel void f(float *x) { barrier(1); }", "f")((1,), (1,), (x,)).wait()
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
