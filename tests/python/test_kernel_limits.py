"""Kernels in Python at the edges of what the host has for them: local memory, and numbers that C leaves open."""
import linecache
import time

import numpy as np
import pytest
from raw_kernels import target  # noqa: F401

import drupe
import drupe.array as da
from drupe import NdRange, Range, call_kernel, kernel_api
from drupe.compiler.messages import KernelError
from drupe.kernel_api import AtomicRef, LocalAccessor, PrivateArray, group_barrier

HALF = (1 << 19) // 8  # float64 in half of what a group may have


@pytest.fixture
def host():
    device = drupe.Device("host")
    if not device.can_compile("c"):
        pytest.skip("there is no C compiler on this machine")
    return device


@drupe.kernel
def at_the_end(item, a, part):
    at = part.shape[0] - 1 - item.get_local_id(0)
    part[at] = a[item.get_global_id(0)]
    group_barrier(item.get_group())
    a[item.get_global_id(0)] += part[at]


@drupe.kernel
def over_a_barrier(item, a):
    i = item.get_local_id(0)
    x = a[i % a.shape[0]]
    group_barrier(item.get_group())
    if i < a.shape[0]:
        a[i] = x + i


def test_local_memory_of_the_host_has_an_end(host):
    a = da.arange(64, dtype="float64", device=host)
    for _time in range(2):
        call_kernel(at_the_end, NdRange(64, 8), a, LocalAccessor(HALF, "float64"))
        for size in (3 * HALF, 1 << 40, 1 << 61, 1 << 70):
            with pytest.raises(KernelError, match=r"DK018.*A group of 8 work-items needs \d+ KiB .* host has 1024 KiB"):
                call_kernel(at_the_end, NdRange(64, 8), a, LocalAccessor(size, "float64"))
    assert a.tolist() == [4 * i for i in range(64)]


def test_work_items_that_keep_variables_count(host):
    a = da.arange(4, dtype="float64", device=host)
    call_kernel(over_a_barrier, NdRange(10000, 10000), a)
    for size in (10 ** 6, 1 << 61, 1 << 62):
        with pytest.raises(KernelError, match=f"DK018.*A group of {size} work-items needs"):
            call_kernel(over_a_barrier, NdRange(size, size), a)
    assert a.tolist() == [0, 2, 4, 6]


def test_local_memory_has_elements(target):
    a = da.arange(64, dtype="float32", device=target)
    with pytest.raises(KernelError, match="DK018.*has no elements"):
        call_kernel(at_the_end, NdRange(64, 8), a, LocalAccessor(0, "float32"))


@drupe.kernel
def exchange(item, a, out):
    expected = PrivateArray(1, a.dtype)
    expected[0] = a[1]
    out[0] = AtomicRef(a, 0).compare_exchange(expected, 7)


@drupe.kernel
def exchange_local(item, a, out, part):
    part[0] = a[0]
    expected = PrivateArray(1, a.dtype)
    expected[0] = a[1]
    out[0] = AtomicRef(part, 0).compare_exchange(expected, 7)
    a[0] = part[0]


@pytest.mark.parametrize("old, expected", [(3, 3), (3, 4), (0.0, -0.0), (float("nan"), float("nan"))])
def test_floats_are_exchanged_by_bits(target, old, expected):
    bits = [np.array(one, dtype="float32").tobytes() for one in (old, expected)]
    for kernel, more in ((exchange, ()), (exchange_local, (LocalAccessor(1, "float32"),))):
        a, out = da.asarray([old, expected], dtype="float32", device=target), da.zeros(1, dtype="int32", device=target)
        call_kernel(kernel, NdRange(1, 1), a, out, *more)
        assert out.tolist() == [bits[0] == bits[1]]
        assert np.float32(a[0]).tobytes() == (np.float32(7).tobytes() if out[0] else bits[0])
    a, out = np.array([old, expected], dtype="float32"), np.zeros(1, dtype="int32")
    kernel_api.call_kernel(exchange, NdRange(1, 1), a, out)
    assert out.tolist() == [bits[0] == bits[1]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_tiers_wrap_negative_floats(host, dtype):
    numbers = [-1.0, -200.25, -3e9, 0.0, 5e9, 2.0 ** 63, 1.5 * 2.0 ** 63]

    @drupe.kernel
    def wrap(item, a, b):
        b[item.get_id(0)] = a[item.get_id(0)]
    a = da.asarray(numbers * 8, dtype=dtype, device=host)
    expected = [int(one) % (1 << 64) for one in a.asnumpy()]
    for _tier in range(2):
        b = da.zeros(a.size, dtype="uint64", device=host)
        call_kernel(wrap, Range(a.size), a, b)
        assert b.tolist() == expected
        (variant,) = wrap.variants.values()
        while variant.tier == "quick" and variant.problem is None:
            time.sleep(0.01)


def test_too_many_parameters(host):
    names = ["a%d" % at for at in range(40)]
    text = "def many(item, %s):\n    a0[-1] = %s\n" % (", ".join(names), " + ".join(one + "[-1]" for one in names))
    linecache.cache["<many>"] = (len(text), None, text.splitlines(True), "<many>")
    space = {}
    exec(compile(text, "<many>", "exec"), space)
    arrays = [da.ones(2, device=host) for _ in names]
    with pytest.raises(KernelError, match=r"DK018: .* passes 64 pointers and numbers to a kernel.* needs 82"):
        call_kernel(drupe.kernel(space["many"]), Range(1), *arrays)
