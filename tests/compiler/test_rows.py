"""Loads that are made once for a row of work-items: which ones, and that nothing else comes of it."""
import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import kernel_api

pytestmark = pytest.mark.skipif(not drupe.Device("host").can_compile("c"), reason="there is no C compiler")
SHAPE = 6, 5


def outer(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[i]*b[j] + a[n - 2]


def by_number(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    k = i + n*2
    out[i, j] = b[j] - a[k % 6] + a[-1]


def in_branches(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = (a[i + 100] if n > 7 else b[j]) + (a[i] if b[j] > 0 and a[i] > 1 else n)


def behind_a_store(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = b[j] + n
    out[i, j] += a[i]


def assigned_again(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    at = i
    value = a[at]
    at = j
    out[i, j] = value + a[at] + b[at] + n


def behind_an_end(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    if i >= n:
        return
    out[i, j] = a[i] + b[j]


def by_another(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[int(b[n])] + b[j]


def whole_number(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    n += j
    out[i, j] = a[n % 6] + b[j]


def columns(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    out[i, j] = a[j] + b[j] + n


LOADS = {outer: 2, by_number: 2, in_branches: 0, behind_a_store: 0, assigned_again: 0, behind_an_end: 0, by_another: 1,
         whole_number: 0, columns: 0}


def arguments(queue=None):
    arrays = np.arange(1., 7), np.arange(-2., 3), np.zeros(SHAPE)
    return [*(arrays if queue is None else (da.asarray(one, queue=queue) for one in arrays)), 3]


@pytest.mark.parametrize("function, count", LOADS.items())
def test_once_for_a_row(function, count):
    made = drupe.kernel(function)
    queue, space = drupe.Device("host").queue, drupe.Range(*SHAPE)
    args, expected = arguments(queue), arguments()
    assert made.inspect(space, *args).text.count("read once for a row") == count
    kernel_api.call_kernel(made, space, *expected)
    drupe.call_kernel(made, space, *args)
    assert np.array_equal(args[2].asnumpy(), expected[2])


def test_of_three_dimensions():
    @drupe.kernel
    def cube(item, a, b, out):
        i, j, k = item.get_id(0), item.get_id(1), item.get_id(2)
        out[i, j, k] = a[i, j]*b[k] + a[j, i]

    queue = drupe.Device("host").queue
    a, b = np.arange(9.).reshape(3, 3), np.arange(4.)
    args = [da.asarray(one, queue=queue) for one in (a, b, np.zeros((3, 3, 4)))]
    assert cube.inspect(drupe.Range(3, 3, 4), *args).text.count("read once for a row") == 2
    drupe.call_kernel(cube, drupe.Range(3, 3, 4), *args)
    assert np.array_equal(args[2].asnumpy(), a[:, :, None]*b + a.T[:, :, None])


def test_an_array_that_is_written_too():
    """What other work-items of the same launch write is seen or not; here it makes no difference."""
    @drupe.offload
    def shortest(path):
        for k in range(len(path)):
            for i in drupe.prange(len(path)):
                for j in drupe.prange(len(path)):
                    path[i, j] = min(path[i, j], path[i, k] + path[k, j])

    path = np.random.default_rng(1).integers(1, 100, (40, 40))
    np.fill_diagonal(path, 0)
    expected = path.copy()
    for k in range(40):
        np.minimum(expected, expected[:, k, None] + expected[k], out=expected)
    shortest(path)
    assert np.array_equal(path, expected)


def test_loads_are_not_made_where_there_is_no_work():
    """An empty Range reads nothing, not even what it could read before its first work-item."""
    made = drupe.kernel(outer)
    queue = drupe.Device("host").queue
    empty = [da.zeros(0, queue=queue), da.zeros(5, queue=queue), da.zeros((0, 5), queue=queue)]
    drupe.call_kernel(made, drupe.Range(0, 5), *empty, 2)
    queue.wait()
