"""Kernels in Python, with the types of their arguments: for golden tests of the passes."""
import collections
import math

import numpy as np

import drupe
from drupe import kernel_api as kapi
from drupe.compiler.types import COMPLEX_, FLOAT, INT, Array, Scalar, Tuple

ALL = {}  # name → (function, types of arguments, dimensions, whether it has groups)
TILE = 8
WEIGHTS = (0.25, 0.5, 0.25)
SCALE = np.float32(1.5)
Box = collections.namedtuple("Box", "low high")


def array(dtype, ndim=1, layout="C", space="global"):
    return Array(dtype, ndim, layout, space)


def case(*types, dims=1, grouped=False):
    def add(function):
        ALL[function.__name__] = (function, types, dims, grouped)
        return function
    return add


@case(*[array("float32")] * 3)
def vector_add(item, a, b, c):
    i = item.get_id(0)
    c[i] = a[i] + b[i]


@case(array("float32", 2), array("float32", 2), array("float32", 2, "A"), dims=2)
def matmul(item, a, b, c):
    i = item.get_id(0)
    j = item.get_id(1)
    acc = 0.0
    for k in range(a.shape[1]):
        acc += a[i, k] * b[k, j]
    c[i, j] = acc


@case(*[array("float32", 2)] * 3, array("float32", 2, space="local"), array("float32", 2, space="local"), dims=2,
      grouped=True)
def tiled_matmul(item, a, b, c, rows, columns):
    i, j = item.get_global_id(0), item.get_global_id(1)
    y, x = item.get_local_id(0), item.get_local_id(1)
    acc = 0.0
    for tile in range(a.shape[1] // TILE):
        rows[y, x] = a[i, tile * TILE + x]
        columns[y, x] = b[tile * TILE + y, j]
        kapi.group_barrier(item.get_group())
        for k in range(TILE):
            acc += rows[y, k] * columns[k, x]
        kapi.group_barrier(item.get_group())
    c[i, j] = acc


def distance(p, q):
    total = 0.0
    for k in range(len(p)):
        d = p[k] - q[k]
        total += d * d
    return math.sqrt(total)


@case(array("float64", 2), array("float64", 2), dims=2)
def pairwise_distance(item, points, out):
    i = item.get_id(0)
    j = item.get_id(1)
    out[i, j] = distance(points[i], points[j])


@case(array("int64"), array("int64"), INT)
def swap_arrays(item, a, b, n):
    i = item.get_id(0)
    source, target = a, b
    while n > 0:
        target[i] = source[i - 1] * 2
        source, target = target, source
        n -= 1


@case(array("float32", 2, "A"), array("float32", 2), INT)
def slices(item, a, out, n):
    i = item.get_id(0)
    row = out[i]
    row[:] = 0
    part = a[i, 1:n]
    for k in range(0, len(part), 2):
        row[k] = part[k] + part[-1]
    row[-2:] = a[:2, i]


@case(array("float64"), Tuple((FLOAT, Tuple((INT, Scalar("float32")))), Box), array("float64"))
def named_tuple(item, x, box, out):
    i = item.get_id(0)
    value = min(max(x[i], box.low), box.high[1])
    middle = Box(value, box.high[0])
    out[i] = middle.low + middle[1]


@drupe.device_func
def clamped(x, least=-1):
    if x < least:
        return least
    if x > 1:
        return 1.0
    return x


@case(array("float32"), array("int32"))
def device_functions(item, x, n):
    i = item.get_id(0)
    x[i] = clamped(x[i]) + clamped(n[i], least=0)


@case(array("int32"), array("int64"))
def atomics(item, data, counts):
    i = item.get_id(0)
    counter = kapi.AtomicRef(counts, data[i] % 16)
    before = counter.fetch_add(1)
    if before > 100:
        kapi.AtomicRef(counts, -1, memory_order=kapi.MemoryOrder.ACQ_REL).fetch_max(before)


def closure(factor, offset):
    def closures(item, x):
        i = item.get_id(0)
        total = offset
        for weight in WEIGHTS:
            total += weight * x[i] * SCALE
        x[i] = total / factor
    return closures


case(array("float32"))(closure(4, 0.5))


@case(array("uint64"), array("int32"), array("bool"), FLOAT)
def comparisons(item, a, b, out, limit):
    i = item.get_id(0)
    out[i] = 0 <= b[i] < a[i] != 7 or not (limit > b[i] >= -limit) and a[i] in (1, 3, b[0])


@case(array("int64"), array("int64"))
def lower_bounds(item, a, out):
    i = item.get_id(0)
    left, count = i, a.size
    while left > 0 and a[left - 1] == a[i]:
        left -= 1
    for k in range(1, count):
        out[i] += a[k - 1] + a[(i + k) % count] - a[-k] + a[i // 2]
    out[left] = -count // 2 % 7


@case(array("uint8"), array("int8"), array("float16"), array("complex64"))
def small_types(item, a, b, h, z):
    i = item.get_id(0)
    total = a[i] + b[i]
    total <<= 2
    h[i] = h[i] * 0.1 + total % 7
    z[i] = z[i].conjugate() * 2j + np.complex64(total // a[i])
    a[i] += 200


@case(array("float64"), INT, COMPLEX_)
def loops(item, x, n, z):
    i = item.get_id(0)
    for k in range(n, 0, -1):
        for j in range(k):
            if x[j] < 0:
                break
            if x[j] == k:
                continue
            x[i] += j
        else:
            x[i] -= z.real
            return
    found = i if x[i] > 0 and n else -1
    x[found] = n or k


@case(array("float32"))
def private_arrays(item, x):
    i = item.get_id(0)
    window = kapi.PrivateArray((3, 2), np.float32, fill_zeros=True)
    for k in range(3):
        window[k, 0], window[k, 1] = x[i - k], k
    x[i] = window[0, 0] * window[-1, 1]
    assert x[i] >= 0, "x is not negative"


@case(array("int32"), array("int32"), dims=1, grouped=True)
def group_sum(item, x, out):
    group = item.get_group()
    lid = item.get_local_id(0)
    sums = kapi.local.array(64, np.int32)
    sums[lid] = x[item.get_global_id(0)]
    step = group.get_local_range(0) // 2
    while step > 0:
        kapi.group_barrier(group)
        if lid < step:
            sums[lid] += sums[lid + step]
        step //= 2
    if group.leader:
        out[group.get_group_id(0)] = sums[0]
