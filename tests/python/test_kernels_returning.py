"""Work-items that return before a barrier to which others come: on every device they count as having come there."""
import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe.kernel_api import NdRange, group_barrier, local


def odd_ones(item, a, out, n):
    part = local.array(8, np.float64)
    t = item.get_local_id(0)
    part[t] = a[item.get_global_id(0)]
    if t % 2 == 0:
        return
    group_barrier(item.get_group())
    for k in range(n):
        before = part[8 - t]
        group_barrier(item.get_group())
        part[t] = before + k
        group_barrier(item.get_group())
    out[item.get_global_id(0)] = part[t]


def in_a_loop(item, a, out, n):
    part = local.array(8, np.float64)
    i, t = item.get_global_id(0), item.get_local_id(0)
    part[t] = 0
    for k in range(n):
        group_barrier(item.get_group())
        if t == k and t > 0:
            for m in range(5):
                if m == 2:
                    out[i] = -m
                    return
                part[t] += 1
        part[t] += a[i]
    group_barrier(item.get_group())
    out[i] = part[t]


def halving(item, a, out, n):
    part = local.array(8, np.float64)
    t, s = item.get_local_id(0), item.get_local_range(0) // 2
    if n == 0:
        return
    part[t] = a[item.get_global_id(0)]
    if part[t] < 0:
        if t != 0:
            part[t] = 0
            out[item.get_global_id(0)] = -1
            return
    group_barrier(item.get_group())
    while s > 0:
        if t < s:
            part[t] += part[t + s]
        group_barrier(item.get_group())
        if s == n:
            break
        s //= 2
    out[item.get_global_id(0)] = part[t]


def one_after_the_other(item, a, out, n):
    i = item.get_global_id(0)
    if i % 2 == 1:
        return
    out[i] = 1
    if i % 4 == 2:
        return
    out[i] = 2
    for k in range(n):
        if i % 8 == 4 and k == 0:
            if a[i] > 0:
                return
            out[i] += 3
        if k == 1:
            return
        out[i] += 4
    group_barrier(item.get_group())
    out[i] += 10


def in_the_last_round(item, a, out, n):
    i = item.get_global_id(0)
    for k in range(n):
        if k == n - 1 and i % 2 == 1:
            return
    else:
        out[i] = 7
    while a[i] > 0:
        if i % 4 == 2:
            return
        break
    else:
        out[i] += 1
    group_barrier(item.get_group())
    out[i] += 10


def with_an_argument_assigned(item, a, out, n):
    i = item.get_global_id(0)
    if i % 2 == 1:
        n = 0
    if n == 0:
        return
    out[i] = a[i]
    group_barrier(item.get_group())
    out[i] += 1


def in_one_of_the_groups(item, a, out, n):
    i, t = item.get_global_id(0), item.get_local_id(0)
    if a[i] > 2:
        return
    if item.get_group().get_group_id(0) == 0:
        group_barrier(item.get_group())
    else:
        if a[i] > 0:
            if t == 3:
                out[i] = 5
    out[i] += n + 1


def expected(function, a, n):
    out, kernel = np.zeros(16), drupe.kernel(function)
    given, result = da.asarray(a, device="host"), da.asarray(out, device="host")
    drupe.call_kernel(kernel, NdRange(16, 8), given, result, n)
    return result.asnumpy()


def test_expected():
    a = np.arange(16.0)
    assert expected(odd_ones, a, 0).tolist() == [0 if i % 2 == 0 else i for i in range(16)]
    assert expected(odd_ones, a, 1).tolist()[1:8:2] == [7, 5, 3, 1]
    assert expected(in_a_loop, a, 3).tolist()[:4] == [0, -2, -2, 9]
    assert expected(halving, a, 1).tolist()[::8] == [28, 92] and expected(halving, a, 0).tolist() == [0] * 16
    assert expected(one_after_the_other, a, 0).tolist()[:5] == [12, 0, 1, 0, 12]
    assert expected(in_the_last_round, a, 3).tolist()[:4] == [18, 0, 7, 0]
    assert expected(with_an_argument_assigned, a, 1).tolist()[:4] == [1, 0, 3, 0]
    assert expected(in_one_of_the_groups, a, 0).tolist() == [1] * 3 + [0] * 13
    b = a - 2.5
    assert expected(halving, b, 1).tolist()[1:3] == [-1, -1]


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("function", [odd_ones, in_a_loop, halving, one_after_the_other, in_the_last_round,
                                      with_an_argument_assigned, in_one_of_the_groups])
def test_returns(function, n, opencl):
    a = np.arange(16.0) - 2.5
    out = da.zeros(16, device=opencl)
    drupe.call_kernel(drupe.kernel(function), NdRange(16, 8), da.asarray(a, device=opencl), out, n)
    assert out.asnumpy().tolist() == expected(function, a, n).tolist()


def test_barriers_to_which_it_is_not_known_who_comes(opencl):
    @drupe.kernel
    def by_an_element(item, a):
        if item.get_local_id(0) == 3:
            return
        if a[0] > 0:
            group_barrier(item.get_group())
        a[item.get_global_id(0)] = 1

    with pytest.raises(drupe.KernelError, match=r"(?s)DK020.*return before the barriers.*leave `return` out"):
        drupe.call_kernel(by_an_element, NdRange(16, 8), da.zeros(16, device=opencl))


# --- Checks that fail before a barrier ----------------------------------------------------------------------

@drupe.device_func
def careful(a, i):
    if a[i] > 100:
        return 0.0
    return a[i] * 2


def neighbours(item, a, out):
    i = item.get_global_id(0)
    out[i] = a[i + 1]
    group_barrier(item.get_group())
    out[i] += 1


def by_a_function(item, a, out):
    i = item.get_global_id(0)
    out[i] = careful(a, i)
    if careful(a, i + 1) >= 0:
        out[i] += 1
    else:
        out[i] -= 1
    for k in range(int(careful(a, i + 2))):
        out[i] += 1
    group_barrier(item.get_group())
    out[i] += 100


def in_rounds(item, a, out):
    i, t = item.get_global_id(0), item.get_local_id(0)
    for k in range(4):
        group_barrier(item.get_group())
        for m in range(3):
            out[i] += a[i + k * m]
        group_barrier(item.get_group())
        if t < 4:
            out[i] += a[i]


@pytest.mark.parametrize("function", [neighbours, by_a_function, in_rounds])
def test_checks(function, device):
    kernel = drupe.kernel(checked=True)(function)
    a, out = np.arange(16.0), da.zeros(16, device=device)
    long = da.asarray(np.arange(32.0), device=device)
    drupe.call_kernel(kernel, NdRange(16, 8), long, out)
    want = da.zeros(16, device="host")
    drupe.call_kernel(drupe.kernel(function), NdRange(16, 8), da.asarray(np.arange(32.0), device="host"), want)
    assert out.asnumpy().tolist() == want.asnumpy().tolist()
    with pytest.raises(drupe.HostTaskError, match="the index .* outside of a dimension of 16 elements, in work-item"):
        drupe.call_kernel(kernel, NdRange(16, 8), da.asarray(a, device=device), out)


def test_work_items_that_failed_do_nothing_more(device):
    @drupe.kernel
    def asserting(item, a, out):
        i = item.get_global_id(0)
        out[i] = 1
        assert a[i] != 5
        out[i] = 2
        group_barrier(item.get_group())
        out[i] = 3

    out = da.zeros(8, device=device)
    with pytest.raises(drupe.HostTaskError, match="work-item 5"):
        drupe.call_kernel(asserting, NdRange(8, 8), da.asarray(np.arange(8.0), device=device), out)
    assert out.asnumpy().tolist() == [3, 3, 3, 3, 3, 1, 3, 3]


def test_checks_before_barriers_to_which_it_is_not_known_who_comes(opencl):
    @drupe.kernel
    def asserting(item, a):
        assert a[item.get_global_id(0)] == 0
        if a[0] == 0:
            group_barrier(item.get_group())

    with pytest.raises(drupe.KernelError, match=r"(?s)DK020.*end at a check before the barriers.*leave the check out"):
        drupe.call_kernel(asserting, NdRange(16, 8), da.zeros(16, device=opencl))
