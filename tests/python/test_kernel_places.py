"""Where kernels in Python run: their arrays say it."""
import pytest

import drupe
import drupe.array as da


@drupe.kernel
def add(item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] + b[i]


def test_a_kernel_runs_where_its_arrays_are(queue):
    a, b, c = (da.full(5, value, queue=queue) for value in (1.0, 2.0, 0.0))
    drupe.call_kernel(add, drupe.Range(5), a, b, c)
    assert c.tolist() == [3.0] * 5 and c.queue == queue


def test_arrays_in_two_places_are_refused(device):
    here, there = da.ones(5, device=device), da.ones(5, queue=drupe.Queue(device))
    for _ in range(2):
        with pytest.raises(drupe.ExecutionPlacementError, match=r"on different queues .*to_device"):
            drupe.call_kernel(add, drupe.Range(5), here, here, there)
        drupe.call_kernel(add, drupe.Range(5), here, here, here)  # the second time with a variant that is known
    assert here.tolist() == [4.0] * 5


def test_a_variable_that_the_round_before_has_given_a_value():
    @drupe.kernel
    def changes(item, x, out):
        total = 0.0
        for k in range(x.size):
            if k > 0:
                total += abs(x[k] - before)
            before = x[k]
        out[0] = total

    x, out = da.asarray([1.0, 4.0, 2.0]), da.zeros(1)
    drupe.call_kernel(changes, drupe.Range(1), x, out)
    assert out[0] == 5
