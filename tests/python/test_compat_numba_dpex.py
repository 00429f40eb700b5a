"""Programs that were written for numba-dpex, run by drupe.compat.numba_dpex."""
import math
import operator

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe.compat import numba_dpex as dpex
from drupe.compat.numba_dpex import kernel_api as kapi

MODULE = """kernel device_func dpjit prange call_kernel call_kernel_async Range NdRange none void boolean bool_ b1
int32 i4 int64 i8 uint32 u4 uint64 u8 float32 f4 float_ float64 f8 double get_global_id get_local_id get_group_id
get_global_size get_local_size get_num_groups barrier atomic local private func DEFAULT_LOCAL_SIZE CLK_LOCAL_MEM_FENCE
CLK_GLOBAL_MEM_FENCE kernel_api offload_to_sycl_device""".split()
ABSENT = """DpctlSyclQueue DpctlSyclEvent DpnpNdArray IntEnumLiteral KernelDispatcherType NdRangeType RangeType
USMNdArray usm_ndarray""".split()
API = {
    "call_kernel": "", "group_barrier": "", "atomic_fence": "",
    "Range": "get size ndim dim0 dim1 dim2",
    "NdRange": "global_range local_range get_global_range get_local_range __eq__",
    "Item": "get_id get_linear_id get_range get_linear_range dimensions",
    "NdItem": """get_global_id get_global_linear_id get_local_id get_local_linear_id get_global_range get_local_range
        get_global_linear_range get_local_linear_range get_group dimensions""",
    "Group": """get_group_id get_group_linear_id get_group_range get_group_linear_range get_local_range
        get_local_linear_range leader dimensions""",
    "LocalAccessor": "__getitem__ __setitem__",
    "PrivateArray": "",
    "AtomicRef": """fetch_add fetch_sub fetch_min fetch_max fetch_and fetch_or fetch_xor load store exchange
        compare_exchange ref memory_order memory_scope address_space""",
    "MemoryOrder": "RELAXED=0 ACQUIRE=1 CONSUME_UNSUPPORTED=2 RELEASE=3 ACQ_REL=4 SEQ_CST=5",
    "MemoryScope": "WORK_ITEM=0 SUB_GROUP=1 WORK_GROUP=2 DEVICE=3 SYSTEM=4",
    "AddressSpace": "PRIVATE=0 GLOBAL=1 CONSTANT=2 LOCAL=3 GENERIC=4",
}


@pytest.mark.parametrize("name", MODULE)
def test_names(name):
    assert getattr(dpex, name) is not None and name in dpex.__all__


@pytest.mark.parametrize("name", ABSENT)
def test_absent_names_say_what_to_write(name):
    with pytest.raises(AttributeError, match="does not provide numba_dpex.*leave it out"):
        getattr(dpex, name)


@pytest.mark.parametrize("name", API)
def test_names_of_kernel_api(name):
    owner = getattr(kapi, name)
    assert owner is getattr(drupe.kernel_api, name)  # of which each member has a test: checklist.toml
    for member in API[name].split():
        member, _, value = member.partition("=")
        assert hasattr(owner, member)
        assert not value or getattr(owner, member) == int(value)


def test_call_kernel(queue):
    @dpex.kernel
    def add(item: kapi.Item, a, b, c):
        i = item.get_id(0)
        c[i] = a[i] + b[i]

    a, b = da.arange(1000, dtype="float32", queue=queue), da.ones(1000, dtype="float32", queue=queue)
    c = da.zeros(1000, dtype="float32", queue=queue)
    assert dpex.call_kernel(add, dpex.Range(1000), a, b, c) is None
    assert np.array_equal(c.asnumpy(), np.arange(1000, dtype="float32") + 1)


def test_call_kernel_async(queue):
    @dpex.kernel
    def increase(item, a):
        a[item.get_id(0)] += 1

    a = da.zeros(100, queue=queue)
    pair = dpex.call_kernel_async(increase, dpex.Range(100), [], a)
    pair = dpex.call_kernel_async(increase, dpex.Range(100), [pair[1]], a)
    pair[1].wait()
    pair[0].wait()
    assert (a.asnumpy() == 2).all()


@dpex.device_func
def weight(x, y):
    return x * 2 + y


def test_local_memory_barriers_and_private_arrays(queue):
    @dpex.kernel
    def rows(item: kapi.NdItem, a, out, part):
        i = item.get_local_id(1)
        group = item.get_group()
        part[i] = a[item.get_global_id(0), item.get_global_id(1)]
        kapi.group_barrier(group)
        kept = kapi.PrivateArray(2, np.float64, fill_zeros=True)
        for k in range(item.get_local_range(1)):
            kept[k % 2] += part[k]
        out[item.get_global_id(0), item.get_global_id(1)] = weight(kept[0], kept[1])

    a = np.random.default_rng(1).random((6, 16))
    out = da.zeros((6, 16), queue=queue)
    dpex.call_kernel(rows, dpex.NdRange((6, 16), (1, 8)), da.asarray(a, queue=queue), out,
                     kapi.LocalAccessor(8, np.float64))
    groups = a.reshape(6, 2, 8)
    want = groups[:, :, ::2].sum(2) * 2 + groups[:, :, 1::2].sum(2)
    assert np.allclose(out.asnumpy(), np.repeat(want, 8, axis=1))


def test_atomics(queue):
    @dpex.kernel
    def count(item, values, counts):
        kapi.AtomicRef(counts, values[item.get_id(0)]).fetch_add(1)

    values = np.random.default_rng(2).integers(0, 10, 1000)
    counts = da.zeros(10, dtype="int64", queue=queue)
    dpex.call_kernel(count, dpex.Range(1000), da.asarray(values, queue=queue), counts)
    assert np.array_equal(counts.asnumpy(), np.bincount(values, minlength=10))


def test_simulated():
    def add(item, a):
        a[item.get_id(0)] += item.get_range(0)

    a = np.zeros(4)
    kapi.call_kernel(dpex.kernel(add), kapi.Range(4), a)
    assert a.tolist() == [4] * 4


# --- The older spelling -------------------------------------------------------------------------------------

def test_older_spelling_takes_arrays_of_numpy(device):
    @dpex.kernel
    def add(a, b, c):
        i = dpex.get_global_id(0)
        j = dpex.get_global_id(1)
        c[i, j] = a[i, j] + b[i, j]

    a, b, c = np.arange(64.0).reshape(8, 8), np.ones((8, 8)), np.zeros((8, 8))
    with dpex.offload_to_sycl_device(device.filter_string):
        add[(8, 8), dpex.DEFAULT_LOCAL_SIZE](a, b, c)
    assert np.array_equal(c, a + 1)
    d = np.zeros((8, 8))
    with dpex.offload_to_sycl_device(device.filter_string):
        add[(8, 8), (2, 4)](a, a, d)
    assert np.array_equal(d, 2 * a)


def test_each_argument_has_a_copy_of_its_own(device):
    @dpex.kernel
    def shift(a, b):
        i = dpex.get_global_id(0)
        b[i] = a[i] + 1

    a = np.arange(8.0)
    with drupe.device(device.filter_string):
        shift[8, dpex.DEFAULT_LOCAL_SIZE](a, a)  # b is copied back last
    assert a.tolist() == list(range(1, 9))


def test_older_local_memory_and_atomics(device):
    @dpex.kernel
    def sums(a, total):
        part = dpex.local.array(shape=8, dtype=dpex.float32)
        mine = dpex.private.array(1, dpex.float32)
        i = dpex.get_local_id(0)
        mine[0] = a[dpex.get_global_id(0)]
        part[i] = mine[0]
        dpex.barrier(dpex.CLK_LOCAL_MEM_FENCE)
        if i == 0:
            s = dpex.float32(0)
            for k in range(dpex.get_local_size(0)):
                s += part[k]
            dpex.atomic.add(total, 0, s)

    a, total = np.arange(64, dtype="float32"), np.zeros(1, dtype="float32")
    with drupe.device(device.filter_string):
        sums[64, 8](a, total)
    assert total[0] == a.sum()


# --- Signatures ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("signature", [
    "void(float32[:], float32, int32)", dpex.void(dpex.float32[:], dpex.float32, dpex.i4),
    (dpex.float32[:], dpex.float32, dpex.int32), ["(f8[:], f8, i4)", "void(f4[::1], f4, i4)"]])
def test_signatures(signature, queue):
    @dpex.kernel(signature)
    def scale(item, a, by, more):
        a[item.get_id(0)] *= by + more

    a = da.ones(4, dtype="float32", queue=queue)
    dpex.call_kernel(scale, dpex.Range(4), a, 0.1, 0)
    assert a.asnumpy().tolist() == [np.float32(0.1)] * 4
    with pytest.raises(TypeError, match="was declared for .* and was given .int64"):
        dpex.call_kernel(scale, dpex.Range(4), da.ones(4, dtype="int64", queue=queue), 0.1, 0)
    with pytest.raises(TypeError, match="was declared for"):
        dpex.call_kernel(scale, dpex.Range(4), a, 0.1, 0.5)


@pytest.mark.parametrize("signature, says", [("float32(float32[:])", "kernels give nothing back"),
                                             ("void(text)", "the type 'text'"),
                                             ("void float32", "a signature is a text")])
def test_wrong_signatures(signature, says):
    with pytest.raises(TypeError, match=says):
        dpex.kernel(signature)(test_wrong_signatures)


def test_numbas_types_in_kernels(queue):
    numba = pytest.importorskip("numba")

    @numba.njit
    def twice(x):
        return x + x

    @dpex.kernel(numba.void(numba.float32[:], numba.float64))
    def one(item, a, x):
        a[item.get_id(0)] = numba.float32(twice(x))

    a = da.zeros(3, dtype="float32", queue=queue)
    dpex.call_kernel(one, dpex.Range(3), a, 0.1)
    assert a.asnumpy()[0] == np.float32(0.2)


# --- Numbers ------------------------------------------------------------------------------------------------

TYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64 complex64 complex128".split()
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
         "%": operator.mod, "**": operator.pow, "<<": operator.lshift, "&": operator.and_}


@pytest.mark.parametrize("sign", SIGNS)
def test_types_of_operations_are_numbas(sign, tmp_path):
    """What Numba finds for two elements, Drupe finds."""
    typing = pytest.importorskip("numba.core.registry").cpu_target.typing_context
    numba = pytest.importorskip("numba")
    from drupe.compiler import dialects, kernels
    from drupe.compiler.messages import KernelError
    from drupe.compiler.types import Array

    typing.refresh()
    names = {}
    exec(compile(f"def one(item, a, b):\n    x = a[0] {sign} b[0]\n", str(tmp_path / "one.py"), "exec"), names)
    (tmp_path / "one.py").write_text(f"def one(item, a, b):\n    x = a[0] {sign} b[0]\n")
    compared = 0
    for a in TYPES:
        for b in TYPES:
            both = [getattr(numba.types, "boolean" if one == "bool" else one) for one in (a, b)]
            try:
                want = str(typing.resolve_function_type(SIGNS[sign], tuple(both), {}).return_type)
            except Exception:
                want = None
            try:
                made = kernels.lower(names["one"], (Array(a, 1), Array(b, 1)), dims=1, grouped=False,
                                     dialect=dialects.Dialect())
                found = made.variables["x"].name
            except KernelError:
                continue  # refused, as by Numba or not: never another type
            if (sign, a, b) == ("**", "bool", "int32"):
                continue  # float32 there, and int64 for all other integers
            assert found == want, (a, sign, b)
            compared += 1
    assert compared >= 64


def test_python_numbers_are_numbas(queue):
    """A float of Python is a float64, also beside a float32; integers compute in 64 bits."""
    @dpex.kernel
    def one(item, x, n, out, whole):
        i = item.get_id(0)
        out[0] = 0.1 * x[i]
        s = 0.0
        for k in range(3):
            s += x[k]
        out[1] = s
        whole[0] = n[0] << 1
        whole[1] = n[0] + 1
        whole[2] = n[1] * n[1]

    x, n = np.array([0.1, 0.2, 0.3], "float32"), np.array([0xffffffff, 0x10000], "uint32")
    out, whole = da.zeros(2, queue=queue), da.zeros(3, dtype="int64", queue=queue)
    dpex.call_kernel(one, dpex.Range(1), da.asarray(x, queue=queue), da.asarray(n, queue=queue), out, whole)
    assert out.asnumpy().tolist() == [0.1 * float(x[0]), float(x[0]) + float(x[1]) + float(x[2])]
    assert whole.asnumpy().tolist() == [0x1fffffffe, 0x100000000, 1 << 32]


def test_one_operand_is_as_numba_has_it(queue):
    """~ of a bool is `not`; unsigned integers are negated and inverted in their own size, and then have 64 bits."""
    @dpex.kernel
    def one(item, u, b, n, out):
        i = item.get_id(0)
        out[0] = ~u[i]
        out[1] = -u[i]
        out[2] = +u[i]
        out[3] = 5 if ~b[i] else 7
        out[4] = 5 if ~(n[i] > 3) else 7
        out[5] = ~n[i]
        out[6] = -n[i]
        out[7] = -b[i]
        out[8] = (~u[i] >> 4) + (u[i] << 8)

    given = [da.asarray(np.array([value], kind), queue=queue) for value, kind in (
        (16, "uint8"), (True, "bool"), (-128, "int8"))]
    out = da.zeros(9, dtype="int64", queue=queue)
    dpex.call_kernel(one, dpex.Range(1), *given, out)
    assert out.asnumpy().tolist() == [239, 240, 16, 7, 5, 127, 128, -1, 14 + 4096]


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_functions_of_bytes_are_of_float32(queue, kind):
    @dpex.kernel
    def one(item, n, out):
        i = item.get_id(0)
        out[i] = np.sqrt(n[i])

    out = da.zeros(1, queue=queue)
    dpex.call_kernel(one, dpex.Range(1), da.asarray(np.array([3], kind), queue=queue), out)
    assert out.asnumpy()[0] == np.sqrt(np.float32(3))


def test_uint16_beside_float32(queue):
    """Numba computes in float64, but one of the two, chosen, is a float32."""
    @dpex.kernel
    def one(item, n, x, out):
        i = item.get_id(0)
        out[0] = n[i] / x[i]
        out[1] = (n[i] if x[i] > 1 else x[i]) * np.float32(0.1)
        out[2] = n[i] - 0.1 * x[i]

    out = da.zeros(3, queue=queue)
    dpex.call_kernel(one, dpex.Range(1), da.asarray(np.array([2], "uint16"), queue=queue),
                     da.asarray(np.array([1.5], "float32"), queue=queue), out)
    assert out.asnumpy().tolist() == [2 / 1.5, float(np.float32(2) * np.float32(0.1)), 2 - 0.1 * 1.5]


def test_types_of_functions_are_numbas(queue):
    """float() leaves a float32 what it is, and math.floor() of a kernel gives a float."""
    @dpex.kernel
    def one(item, x, n, out):
        out[0] = float(x[0]) * float(x[0])
        out[1] = (int(n[0]) + n[0]) / 2
        out[2] = math.floor(x[0]) * x[0] + math.ceil(-x[0]) + math.trunc(x[0])
        out[3] = math.pow(x[0], 3) + max(x[0], 0)
        out[4] = round(x[0]) * x[0]
        out[5] = x[0] ** 3

    x, n = np.array([1.1], "float32"), np.array([2**31 - 1], "int32")
    out = da.zeros(6, queue=queue)
    dpex.call_kernel(one, dpex.Range(1), da.asarray(x, queue=queue), da.asarray(n, queue=queue), out)
    f, wide = x[0], float(x[0])
    assert out.asnumpy()[:5].tolist() == [f * f, 2**31 - 1, f * f / f - 1 + 1, wide**3 + wide, wide]
    assert out.asnumpy()[5] == pytest.approx(wide**3, rel=1e-6) and out.asnumpy()[5] == np.float32(out.asnumpy()[5])


# --- dpjit --------------------------------------------------------------------------------------------------

@dpex.dpjit
def distances(a, b, d):
    for i in dpex.prange(a.shape[0]):
        for j in range(b.shape[0]):
            s = 0.0
            for k in range(a.shape[1]):
                s += (a[i, k] - b[j, k]) ** 2
            d[i, j] = np.sqrt(s)


def test_dpjit(queue):
    a = np.random.default_rng(3).random((20, 3))
    given = da.asarray(a, queue=queue)
    d = da.empty((20, 20), queue=queue)
    distances(given, given, d)
    assert np.allclose(d.asnumpy(), np.sqrt(((a[:, None] - a[None]) ** 2).sum(2)))


def test_dpjit_reduces_as_numba(queue):
    @dpex.dpjit(fastmath=True)
    def total(a):
        s = 0.0
        for i in dpex.prange(len(a)):
            s += a[i]
        return s

    a = np.full(10, 0.1, "float32")
    got = total(da.asarray(a, queue=queue))
    assert got == pytest.approx(10 * float(a[0]), rel=1e-15)  # a float64: that of a float32 has other digits


# --- What is refused ----------------------------------------------------------------------------------------

def test_refused(queue):
    def nothing(item, a):
        pass

    with pytest.raises(TypeError, match="no option 'colour'"):
        dpex.kernel(colour=1)
    with pytest.raises(TypeError, match="checked=True"):
        dpex.kernel(boundscheck=True)
    with pytest.raises(TypeError, match="takes no signature"):
        dpex.dpjit("f8(f8)")
    with pytest.raises(TypeError, match="launched over work-items"):
        dpex.kernel(nothing)(1)
    with pytest.raises(drupe.KernelError, match="array of NumPy"):
        dpex.call_kernel(dpex.kernel(nothing), dpex.Range(3), np.zeros(3))
    with pytest.raises(drupe.KernelError, match="given no array"):
        dpex.call_kernel(dpex.kernel(nothing), dpex.Range(3), 1)
    with pytest.raises(AttributeError, match="Write @dpjit"):
        dpex.njit  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        dpex.nonsense  # noqa: B018


# --- With dpctl ---------------------------------------------------------------------------------------------

def test_with_dpctl(device):
    """Arrays, events and contexts of dpctl, as programs use them together."""
    from drupe.compat import dpctl
    from drupe.compat.dpctl import tensor as dpt

    @dpex.kernel
    def add(item, a, b, c):
        i = item.get_id(0)
        c[i] = a[i] + b[i]

    @dpex.kernel
    def older(a, b):
        b[dpex.get_global_id(0)] = a[dpex.get_global_id(0)] * 2

    queue = dpctl.SyclQueue(device.filter_string)
    a = dpt.arange(16, dtype="f8", sycl_queue=queue)
    c = dpt.zeros(16, dtype="f8", sycl_queue=queue)
    dpex.call_kernel(add, dpex.Range(16), a, a, c)
    assert dpt.asnumpy(c).tolist() == list(range(0, 32, 2))
    _host, event = dpex.call_kernel_async(add, dpex.Range(16), [], a, c, c)
    _host, event = dpex.call_kernel_async(add, dpex.Range(16), [event], a, c, c)
    assert isinstance(event, dpctl.SyclEvent)
    dpctl.SyclEvent.wait_for([event])
    assert dpt.asnumpy(c).tolist() == list(range(0, 64, 4))
    assert total_of(a) == 120
    x, y = np.arange(4.0), np.zeros(4)
    with dpctl.device_context(device.filter_string):
        older[4, dpex.DEFAULT_LOCAL_SIZE](x, y)
    assert y.tolist() == [0, 2, 4, 6]


@dpex.dpjit
def total_of(a):
    s = 0.0
    for i in dpex.prange(a.shape[0]):
        s += a[i]
    return s
