"""ReductionKernel, as CuPy and PyOpenCL spell it: against NumPy, also with work divided as on GPUs."""
import numpy as np
import pytest
from raw_kernels import close, formed, numbers, same, target  # noqa: F401

import drupe
import drupe.array as da
from drupe import ReductionKernel

TOTAL = ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
LARGEST = ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", "", "largest")


@pytest.mark.parametrize("size", [1, 33, 5_000, 200_001])
def test_reductions_of_all(formed, size):
    a = numbers("int64", size)
    x = da.asarray(a)
    same(TOTAL(x), a.sum())
    same(TOTAL(x[::-3]), a[::-3].sum())
    same(LARGEST(x * 3), a.max() * 3)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (2, 0), ()])
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


@pytest.mark.parametrize("dtype", ["bool", "float16", "uint8"])
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
    big = ReductionKernel("T x", "T y", "make(x)", "a", "y = a.v[0]", "", reduce_type="big",
                          preamble="typedef struct { T v[100]; } big;"
                                   "static big make(T x) { big b; b.v[0] = x; return b; }")
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
