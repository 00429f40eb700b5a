"""Programs as trainings for numba-dpex have them: k-means, neighbours, pair counts, reductions, in older spellings."""
import math

import numpy as np

from drupe.compat import dpctl, dpnp
from drupe.compat import numba_dpex as dpex
from drupe.compat.dpctl import memory
from drupe.compat.numba_dpex import kernel_api as kapi

K = 5


@dpex.kernel
def nearest_cluster(points, clusters, centers, count):
    i = dpex.get_global_id(0)
    dtype = centers.dtype
    least = dtype.type(-1)
    for c in range(count):
        dx = points[i, 0] - centers[c, 0]
        dy = points[i, 1] - centers[c, 1]
        distance = np.sqrt(dx * dx + dy * dy)
        if least > distance or least == -1:
            least = distance
            clusters[i] = c


@dpex.kernel
def sum_clusters(points, clusters, sums, counts):
    i = dpex.get_global_id(0)
    c = clusters[i]
    dpex.atomic.add(sums, (c, 0), points[i, 0])
    dpex.atomic.add(sums, (c, 1), points[i, 1])
    dpex.atomic.add(counts, c, 1)


def test_k_means(device):
    points = np.random.default_rng(1).random((500, 2))
    centers, want = points[:8].copy(), points[:8].copy()
    clusters = np.ones(500, "int32")
    with dpctl.device_context(device.filter_string):
        for _ in range(3):
            sums, counts = np.zeros((8, 2)), np.zeros(8, "int32")
            nearest_cluster[500, dpex.DEFAULT_LOCAL_SIZE](points, clusters, centers, 8)
            sum_clusters[500, dpex.DEFAULT_LOCAL_SIZE](points, clusters, sums, counts)
            centers = sums / counts[:, None]
    for _ in range(3):
        nearest = ((points[:, None] - want[None]) ** 2).sum(2).argmin(1)
        want = np.array([points[nearest == c].mean(0) for c in range(8)])
    assert np.array_equal(clusters, nearest) and np.allclose(centers, want)


@dpex.kernel(access_types={"read_only": ["train", "labels", "test"], "write_only": ["found"]})
def classify(train, labels, test, votes, found):
    i = dpex.get_global_id(0)
    queue = dpex.private.array(shape=(K, 2), dtype=dpex.float64)
    for j in range(K):
        queue[j, 0] = math.inf
        queue[j, 1] = -1
    for j in range(train.shape[0]):
        distance = 0.0
        for k in range(train.shape[1]):
            difference = train[j, k] - test[i, k]
            distance += difference * difference
        distance = math.sqrt(distance)
        place = K - 1
        if distance < queue[place, 0]:
            while place > 0 and distance < queue[place - 1, 0]:
                queue[place, 0] = queue[place - 1, 0]
                queue[place, 1] = queue[place - 1, 1]
                place -= 1
            queue[place, 0] = distance
            queue[place, 1] = labels[j]
    mine = votes[i]
    for j in range(K):
        mine[int(queue[j, 1])] += 1
    most, best = 0, 0
    for c in range(mine.shape[0]):
        if mine[c] > most:
            most = mine[c]
            best = c
    found[i] = best


def test_neighbours(device):
    rng = np.random.default_rng(2)
    train, labels, test = rng.random((200, 3)), rng.integers(0, 4, 200), rng.random((40, 3))
    found, votes = np.zeros(40, "int64"), np.zeros((40, 4))
    with dpctl.device_context(device.filter_string):
        classify[40, dpex.DEFAULT_LOCAL_SIZE](train, labels, test, votes, found)
    near = np.argsort(((test[:, None] - train[None]) ** 2).sum(2), 1)[:, :K]
    assert found.tolist() == [np.bincount(labels[one], minlength=4).argmax() for one in near]


@dpex.kernel
def count_pairs(item: kapi.NdItem, x, weights, bins, out, part):
    lane, i = item.get_local_id(0), item.get_global_id(0)
    for b in range(lane, bins.shape[0], item.get_local_range(0)):
        part[b] = 0
    kapi.group_barrier(item.get_group(), kapi.MemoryScope.WORK_GROUP)
    for j in range(x.shape[0]):
        distance = abs(x[i] - x[j])
        for b in range(bins.shape[0] - 1, -1, -1):
            if distance > bins[b]:
                break
            mine = kapi.AtomicRef(part, b, memory_order=kapi.MemoryOrder.RELAXED,
                                  memory_scope=kapi.MemoryScope.WORK_GROUP, address_space=kapi.AddressSpace.LOCAL)
            mine.fetch_add(weights[i] * weights[j])
    kapi.group_barrier(item.get_group())
    for b in range(lane, bins.shape[0], item.get_local_range(0)):
        kapi.AtomicRef(out, b).fetch_add(part[b])


def test_pair_counts(queue):
    rng = np.random.default_rng(3)
    x, weights, bins = rng.random(64), rng.random(64), np.array([0.1, 0.2, 0.5, 1])
    out = dpnp.zeros(4, sycl_queue=queue)
    given = (dpnp.asarray(one, sycl_queue=queue) for one in (x, weights, bins))
    dpex.call_kernel(count_pairs, dpex.NdRange(dpex.Range(64), dpex.Range(16)), *given, out,
                     kapi.LocalAccessor(4, out.dtype))
    distances = abs(x[:, None] - x[None])
    assert np.allclose(out.asnumpy(), [(weights[:, None] * weights)[distances <= b].sum() for b in bins])


@dpex.kernel
def halve(a, size, stride):
    i = dpex.get_global_id(0)
    if i + stride < size:
        a[i] += a[i + stride]


def test_a_reduction_over_memory_of_dpctl(device):
    shared = memory.MemoryUSMShared(8 * 100, queue=dpctl.SyclQueue(device.filter_string))
    a = np.ndarray(100, buffer=shared, dtype="f8")
    a[:] = np.arange(100)
    size = 100
    with dpctl.device_context(device.filter_string):
        while size > 1:
            stride = (size + 1) // 2
            halve[stride, dpex.DEFAULT_LOCAL_SIZE](a, size, stride)
            size = stride
    assert a[0] == 4950


def test_array_expressions_and_loops(device):
    @dpex.dpjit
    def scaled(a, b):
        c = a + 2 * b
        for i in dpex.prange(c.shape[0]):
            c[i] = c[i] - a[i]
        return c

    with dpctl.device_context(device.filter_string):
        a, b = dpnp.arange(50.0), dpnp.ones(50)
        got = scaled(a, b)
    assert isinstance(got, dpnp.ndarray) and got.device == device and (got.asnumpy() == 2).all()
