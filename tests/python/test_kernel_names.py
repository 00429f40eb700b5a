"""What names of a kernel stand for when they are assigned again; functions that end without a value."""
import types

import pytest

import drupe
import drupe.array as da

settings = types.ModuleType("settings")
settings.factor = 2


def test_a_closure_that_is_assigned_again():
    by = 3

    @drupe.kernel
    def scale(item, x):
        x[item.get_id(0)] *= by

    x = da.ones(4)
    for by in (3, 5, 5):
        drupe.call_kernel(scale, drupe.Range(4), x)
    assert x.tolist() == [75.0] * 4


def test_a_modules_name_that_is_assigned_again(monkeypatch):
    @drupe.kernel
    def scale(item, x):
        x[item.get_id(0)] *= settings.factor

    x = da.ones(4)
    drupe.call_kernel(scale, drupe.Range(4), x)
    monkeypatch.setattr(settings, "factor", 10)
    drupe.call_kernel(scale, drupe.Range(4), x)
    assert x.tolist() == [20.0] * 4


def test_an_offload_function_sees_it_as_well():
    by = 3

    @drupe.offload
    def scale(x):
        for i in drupe.prange(len(x)):
            x[i] *= by

    x = da.ones(4)
    for by in (3, 5):
        scale(x)
    assert x.tolist() == [15.0] * 4


def test_a_function_that_may_end_without_a_value():
    def early(x):
        if x > 1:
            return 1.0
        x = x + 1

    @drupe.kernel
    def k(item, x):
        x[item.get_id(0)] = early(x[0])

    with pytest.raises(drupe.KernelError, match="DK016: early.. may come to its end without a value"):
        drupe.call_kernel(k, drupe.Range(4), da.ones(4))


def test_one_array_in_two_orders_is_refused():
    @drupe.kernel
    def k(item, a):
        a[...] = a.T

    with pytest.raises(drupe.KernelError, match="DK012: This reads and writes one array"):
        drupe.call_kernel(k, drupe.Range(1), da.ones((3, 3)))
