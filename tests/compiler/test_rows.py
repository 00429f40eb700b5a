"""Loads that are made once for a row of work-items: which ones, and that nothing else comes of it."""
import linecache
import os
import random

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import kernel_api
from drupe.compiler import rows

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


def into_one_element(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    out[i, 0] += a[i]*b[j]


def into_one_element_at_last(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    most = out[i, n]
    if most < a[i]*b[j]:
        out[i, n] = a[i]*b[j]


LOADS = {outer: 2, by_number: 2, in_branches: 0, behind_a_store: 0, assigned_again: 0, behind_an_end: 0, by_another: 1,
         whole_number: 0, columns: 0, into_one_element: 1, into_one_element_at_last: 0}


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


def chain(item, a, b, out, n):
    i, j = item.get_id(0), item.get_id(1)
    t = i*3 ^ i
    u = t*3 ^ t
    v = u*3 ^ u
    w = v*3 ^ v
    x = w*3 ^ w
    y = x*3 ^ x
    z = y*3 ^ y
    out[i, j] = a[(z*3 ^ z) % 6]*b[j] + a[(t*3 ^ t) % 6]


def test_a_chain_of_variables_does_not_grow():
    """An index is written in terms of places and parameters, where a variable that is used twice is there twice."""
    made, args, expected = drupe.kernel(chain), arguments(drupe.Device("host").queue), arguments()
    text = made.inspect(drupe.Range(*SHAPE), *args).text
    assert len(text) < 6000 and text.count("read once for a row") == 1
    kernel_api.call_kernel(made, drupe.Range(*SHAPE), *expected)
    drupe.call_kernel(made, drupe.Range(*SHAPE), *args)
    assert np.array_equal(args[2].asnumpy(), expected[2])


class Random:
    """The text of a kernel of random statements over a row, a column, a table of whole numbers and its own elements."""

    def __init__(self, seed):
        self.numbers, self.names, self.stored = random.Random(seed), ["n"], 0

    def index(self, size):
        one = self.numbers.choice(["i", "j", "n", "i + j", "k[i % 6]", "k[n]", *self.names])
        return self.numbers.choice(["int(%s) %% %d" % (one, size), "-1", "2"])

    def value(self, depth=0):
        pick = self.numbers.choice
        leaf = pick(["a[%s]" % self.index(6), "b[%s]" % self.index(5), "a[i]", "b[j]", "out[i, j]",
                     "t[%s, %s]" % (self.index(6), self.index(5)), pick(self.names), "0.5", "i", "j"])
        if depth > 2 or self.numbers.random() < 0.3:
            return leaf
        one, other = self.value(depth + 1), self.value(depth + 1)
        return pick(["(%s + %s)" % (one, other), "(%s*%s)" % (one, other), "max(%s, %s)" % (one, other),
                     "(%s if %s > 1 else %s)" % (one, leaf, other), "((%s > 0 and %s < 3) + %s)" % (one, other, leaf)])

    def statement(self):
        name = self.numbers.choice(["u", "v", "w"])
        kind = self.numbers.random()
        if kind < 0.5 or name not in self.names:
            text = ["%s = float(%s)" % (name, self.value())]
            self.names = list(dict.fromkeys([*self.names, name]))
        elif kind < 0.6:
            text = ["%s += %s" % (name, self.value())]
        elif kind < 0.7:
            text = ["if %s > 0:" % self.value(), "    %s = float(%s)" % (name, self.value())]
        elif kind < 0.75:
            text = ["if %s > 90:" % self.value(), "    return"]
        elif kind < 0.85:
            text = ["for m in range(3):", "    %s = max(%s, %s)" % (name, name, self.value())]
        else:
            text = ["out[i, j] = %s" % self.value()]
        return text

    def text(self):
        lines = [line for _ in range(self.numbers.randint(1, 7)) for line in self.statement()]
        lines.append("out[i, j] += %s" % self.value())
        return "def k(item, a, b, t, k, out, n):\n    i, j = item.get_id(0), item.get_id(1)\n" + "".join(
            "    %s\n" % line for line in lines)


def results_of(text, name):
    """What the kernel leaves in `out`, and how many loads it makes for a row."""
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    names = {}
    exec(compile(text, name, "exec"), names)
    queue, numbers = drupe.Device("host").queue, np.random.default_rng(3)
    args = [da.asarray(one, queue=queue) for one in (
        numbers.normal(size=6), numbers.normal(size=5), numbers.normal(size=SHAPE), numbers.integers(0, 6, 6),
        numbers.normal(size=SHAPE))]
    made = drupe.kernel(names["k"])
    count = made.inspect(drupe.Range(*SHAPE), *args, 3).text.count("read once for a row")
    drupe.call_kernel(made, drupe.Range(*SHAPE), *args, 3)
    return args[-1].asnumpy(), count


def test_random_kernels_do_the_same_without_it(monkeypatch):
    counts = 0
    for seed in range(int(os.environ.get("ROWS_FROM", "0")), int(os.environ.get("ROWS_TO", "60"))):
        text = Random(seed).text()
        got, count = results_of(text, "<rows %d>" % seed)
        with monkeypatch.context() as plain:
            plain.setattr(rows, "loads", lambda *_args: [])
            expected, none = results_of(text, "<plain %d>" % seed)
        assert none == 0 and np.array_equal(got, expected, equal_nan=True), text
        counts += count
    assert counts > 60
