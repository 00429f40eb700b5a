"""Programs that were written for numba.cuda, run by drupe.compat.numba_cuda on each device."""
import math

import numpy as np
import pytest

import drupe
from drupe.compat import _numbas
from drupe.compat import numba_cuda as cuda

pytestmark = pytest.mark.usefixtures("chosen")
float32, int32, void = (_numbas.types()[name] for name in ("float32", "int32", "void"))
TILE = 16


# --- Programs -----------------------------------------------------------------------------------------------

@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


def test_saxpy(device):
    x, y = np.random.default_rng(1).random((2, 1000), "float32")
    want = (2.5 * x.astype(float) + y).astype("float32")
    saxpy[8, 128](2.5, x, y)
    assert np.array_equal(y, want)  # in float64, as Numba does it, and rounded once


@cuda.jit
def smooth(a, out):
    x, y = cuda.grid(2)
    if 0 < x < a.shape[0] - 1 and 0 < y < a.shape[1] - 1:
        out[x, y] = (a[x, y] + a[x - 1, y] + a[x + 1, y] + a[x, y - 1] + a[x, y + 1]) / 5


def test_stencil(device):
    a = np.random.default_rng(2).random((37, 53))
    given, out = cuda.to_device(a), cuda.to_device(np.zeros_like(a))
    smooth[(5, 7), (8, 8)](given, out)
    want = np.zeros_like(a)
    want[1:-1, 1:-1] = (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) / 5
    assert np.array_equal(out.copy_to_host(), want)


@cuda.jit("void(float32[:, :], float32[:, :], float32[:, :])")
def product(a, b, c):
    part_a = cuda.shared.array((TILE, TILE), float32)
    part_b = cuda.shared.array(shape=(TILE, TILE), dtype=float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for i in range((a.shape[1] + TILE - 1) // TILE):
        part_a[y, x] = 0
        part_b[y, x] = 0
        if row < a.shape[0] and x + i * TILE < a.shape[1]:
            part_a[y, x] = a[row, x + i * TILE]
        if column < b.shape[1] and y + i * TILE < b.shape[0]:
            part_b[y, x] = b[y + i * TILE, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += part_a[y, k] * part_b[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def test_tiled_product(device):
    rng = np.random.default_rng(3)
    a, b = rng.random((40, 50), "float32"), rng.random((50, 60), "float32")
    c = np.zeros((40, 60), "float32")
    product[(4, 3), (TILE, TILE)](a, b, c)
    assert np.allclose(c, a @ b, rtol=1e-5)


@cuda.jit
def total_of(a, out):
    part = cuda.shared.array(128, np.float64)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    s = cuda.blockDim.x // 2
    while s > 0:
        if t < s:
            part[t] += part[t + s]
        cuda.syncthreads()
        s //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


def test_reduction(device):
    a, out = np.random.default_rng(4).random(1000), np.zeros(1)
    total_of[8, 128](a, out)
    assert out[0] == pytest.approx(a.sum(), rel=1e-13)


@cuda.jit
def histogram(values, low, width, counts):
    start, step = cuda.grid(1), cuda.gridsize(1)
    for i in range(start, values.shape[0], step):
        k = int((values[i] - low) / width)
        if 0 <= k < counts.shape[0]:
            cuda.atomic.add(counts, k, 1)


def test_histogram(device):
    values = np.random.default_rng(5).normal(size=5000)
    counts = cuda.to_device(np.zeros(16, "int32"))
    histogram[4, 64](cuda.to_device(values), -4.0, 0.5, counts)
    assert np.array_equal(counts.copy_to_host(), np.histogram(values, 16, (-4, 4))[0])


@cuda.jit("uint32(float64, float64, uint32)", device=True)
def escapes(x, y, most):
    c, z = complex(x, y), 0j
    for i in range(most):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag >= 4:
            return i
    return most


@cuda.jit
def mandelbrot(image, most):
    start_x, start_y = cuda.grid(2)
    grid_x = cuda.gridDim.x * cuda.blockDim.x
    grid_y = cuda.gridDim.y * cuda.blockDim.y
    for x in range(start_x, image.shape[1], grid_x):
        for y in range(start_y, image.shape[0], grid_y):
            image[y, x] = escapes(-2 + x * 3 / image.shape[1], -1 + y * 2 / image.shape[0], most)


def test_mandelbrot(device):
    image = np.zeros((40, 60), "uint8")
    mandelbrot[(2, 2), (16, 8)](image, 50)
    c = (-2 + np.arange(60) * 3 / 60)[None, :] + 1j * (-1 + np.arange(40) * 2 / 40)[:, None]
    z, want = np.zeros_like(c), np.full(c.shape, 50)
    for i in range(50):
        z = np.where(abs(z) < 1e6, z * z + c, z)
        want[(z.real**2 + z.imag**2 >= 4) & (want == 50)] = i
    assert (image == want).mean() > 0.999 and image[20, 40] == 50


# --- Where a thread is --------------------------------------------------------------------------------------

@cuda.jit
def places(out):
    x, y, z = cuda.grid(3)
    if x < out.shape[0] and y < out.shape[1] and z < out.shape[2]:
        for at, one in enumerate((cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z, cuda.blockIdx.x,
                                  cuda.blockIdx.y, cuda.blockIdx.z, cuda.blockDim.x, cuda.blockDim.y, cuda.blockDim.z,
                                  cuda.gridDim.x, cuda.gridDim.y, cuda.gridDim.z, cuda.gridsize(3)[1])):
            out[x, y, z, at] = one


@pytest.mark.parametrize("blocks, threads", [((2, 3, 2), (4, 2, 1)), ((2, 3), (4, 2)), (5, 8), ((1, 2), 4),
                                             ((1, 1, 3), (2,))])
def test_places(device, blocks, threads, monkeypatch):
    full = [tuple([*(one if isinstance(one, tuple) else (one,)), 1, 1][:3]) for one in (blocks, threads)]
    shape = tuple(b * t for b, t in zip(*full))
    out = np.full((*shape, 13), -1)
    places[blocks, threads](out)
    for index in np.ndindex(*shape):
        thread = tuple(i % t for i, t in zip(index, full[1]))
        block = tuple(i // t for i, t in zip(index, full[1]))
        assert out[index].tolist() == [*thread, *block, *full[1], *full[0], shape[1]]
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    simulated = np.full_like(out, -1)
    places[blocks, threads](simulated)
    assert np.array_equal(simulated, out)


def test_x_runs_fastest(device):
    """Neighbours in x are neighbours among a block's threads: the order in which a tile is written counts on it."""
    @cuda.jit
    def order(out):
        part = cuda.shared.array((2, 4), int32)
        part[cuda.threadIdx.y, cuda.threadIdx.x] = cuda.threadIdx.x + cuda.threadIdx.y * cuda.blockDim.x
        cuda.syncthreads()
        if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
            for y in range(2):
                for x in range(4):
                    out[y, x] = part[y, x]

    out = np.zeros((2, 4), "int32")
    order[1, (4, 2)](out)
    assert out.ravel().tolist() == list(range(8))


# --- Memory -------------------------------------------------------------------------------------------------

def test_dynamic_shared_memory(device, monkeypatch):
    @cuda.jit
    def reverse(a):
        part = cuda.shared.array(0, float32)
        again = cuda.shared.array(0, dtype=np.float32)
        t = cuda.threadIdx.x
        part[t] = a[t]
        cuda.syncthreads()
        a[t] = again[part.size - 1 - t]

    for count in (32, 64):
        a = np.arange(count, dtype="float32")
        reverse[1, count, 0, 4 * count](a)
        assert a.tolist() == list(range(count - 1, -1, -1))
    with pytest.raises(drupe.KernelError, match=r"this one gives 0(.|\n)*kernel\[blocks, threads, stream, bytes\]"):
        reverse[1, 32](a)
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    b = np.arange(16, dtype="float32")
    reverse[1, 16, 0, 64](b)
    assert b.tolist() == list(range(15, -1, -1))


WEIGHTS = np.array([[1.0, 2.0], [3.0, 4.0]])


@cuda.jit(device=True)
def weight(i):
    return WEIGHTS[i, 1]


def test_constant_arrays_and_local_arrays(device):
    offsets = np.arange(4)

    @cuda.jit
    def weighted(out):
        kept = cuda.const.array_like(WEIGHTS)
        own = cuda.local.array(2, np.float64)
        i = cuda.grid(1)
        own[0] = kept[i % 2, 0]
        own[1] = weight(i % 2)
        out[i] = own[0] * 10 + own[1] + offsets[i]

    out = np.zeros(4)
    weighted[1, 4](out)
    assert out.tolist() == [12, 35, 14, 37]
    offsets += 100
    weighted[1, 4](out)
    assert out.tolist() == [12, 35, 14, 37]  # what the first launch saw counts, as in Numba


# --- Atomic operations --------------------------------------------------------------------------------------

def test_atomics(device, monkeypatch):
    @cuda.jit
    def all_of_them(out, seen):
        i = cuda.grid(1)
        cuda.atomic.add(out, 0, i)
        cuda.atomic.sub(out, 1, 1)
        cuda.atomic.max(out, 2, i)
        cuda.atomic.min(out, 3, i)
        cuda.atomic.or_(out, 4, 1 << (i % 8))
        cuda.atomic.and_(out, 5, ~(1 << (i % 8)))
        cuda.atomic.xor(out, 6, 1)
        cuda.atomic.inc(out, 7, 9)
        cuda.atomic.dec(out, 8, 9)
        cuda.atomic.cas(out, 9, 0, i + 1)
        cuda.atomic.nanmax(out, 10, i)
        seen[cuda.atomic.add(out, 11, 1)] = 1
        if i == 0:
            cuda.atomic.exch(out, 12, 77)

    def run():
        out = np.zeros(13, "int64")
        out[3], out[5] = 1000, 0x1ff
        seen = np.zeros(64, "int64")
        all_of_them[2, 32](out, seen)
        assert seen.tolist() == [1] * 64 and 1 <= out[9] <= 64
        return np.delete(out, 9).tolist()

    want = [sum(range(64)), -64, 63, 0, 0xff, 0x100, 0, 64 % 10, 6, 63, 64, 77]
    assert run() == want
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert run() == want


def test_compare_and_swap_and_nans(device):
    @cuda.jit
    def once(lock, winner, low, high):
        i = cuda.grid(1)
        if cuda.atomic.compare_and_swap(lock, -1, i) == -1:
            winner[0] += 1
        cuda.atomic.nanmin(low, 0, i + 0.5)
        cuda.atomic.nanmax(high, 0, i + 0.5 if i != 3 else math.nan)

    lock, winner = np.full(1, -1, "int32"), np.zeros(1, "int32")
    low, high = np.full(1, np.nan), np.full(1, np.nan)
    once[1, 64](lock, winner, low, high)
    assert 0 <= lock[0] < 64 and winner[0] == 1 and low[0] == 0.5 and high[0] == 63.5


# --- Barriers -----------------------------------------------------------------------------------------------

def test_votes_of_a_block(device, monkeypatch):
    @cuda.jit
    def vote(a, out):
        t = cuda.threadIdx.x
        count = cuda.syncthreads_count(a[t] > 2)
        every = cuda.syncthreads_and(a[t] >= 0)
        none = cuda.syncthreads_or(a[t] > 100)
        cuda.threadfence()
        cuda.threadfence_block()
        out[t] = count * 100 + every * 10 + none

    def run():
        out = np.zeros(8, "int64")
        vote[1, 8](np.arange(8), out)
        assert out.tolist() == [510] * 8

    run()
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    run()


def test_numbers(device, monkeypatch):
    @cuda.jit
    def bits(a, out):
        out[0] = cuda.popc(a[0])
        out[1] = cuda.clz(a[0])
        out[2] = cuda.ffs(a[0])
        out[3] = cuda.brev(a[0])
        out[4] = cuda.ffs(a[1])
        out[5] = cuda.fma(2.0, 3.0, 4.0)
        out[6] = cuda.selp(a[0] > 1, 5, 6)
        out[7] = round(cuda.cbrt(27.0))

    def run():
        out = np.zeros(8, "int64")
        bits[1, 1](np.array([0b10110000, 0], "uint32"), out)
        assert out.tolist() == [3, 24, 5, int(f"{0b10110000:032b}"[::-1], 2), 0, 10, 5, 3]

    run()
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    run()


# --- Random numbers -----------------------------------------------------------------------------------------

def test_random_numbers_are_numbas(device):
    """The bits that Numba's own functions give for these seeds."""
    from drupe.compat.numba_cuda import random

    @cuda.jit
    def draw(states, out, raw):
        i = cuda.grid(1)
        out[i, 0] = random.xoroshiro128p_uniform_float32(states, i)
        out[i, 1] = random.xoroshiro128p_uniform_float64(states, i)
        out[i, 2] = random.xoroshiro128p_normal_float32(states, i)
        out[i, 3] = random.xoroshiro128p_normal_float64(states, i)
        raw[i] = random.xoroshiro128p_next(states, i)

    states = random.create_xoroshiro128p_states(3, seed=12, subsequence_start=2)
    assert states.copy_to_host().tolist() == [[3599334688472742781, 15290004863056118633],
                                              [13437901869812936448, 483322739427040145],
                                              [1076895518758965014, 11469199702699644879]]
    out, raw = np.zeros((3, 4)), np.zeros(3, "uint64")
    draw[1, 3](states, out, raw)
    assert raw.tolist() == [2447212028809924598, 3032872275719167036, 3559100491014246362]
    assert out[:, :2].tolist() == [[0.023993149399757385, 0.9061506930178657], [0.7546710968017578, 0.7113603189435163],
                                   [0.6801251769065857, 0.7389511686566322]]
    normal = [[2.730489492416382, 0.7356485288843865], [-0.5170868039131165, -0.22484553516883216],
              [-0.6929090619087219, -0.33470587642430116]]
    assert np.allclose(out[:, 2:], normal, rtol=1e-6)


# --- The simulator ------------------------------------------------------------------------------------------

def test_simulated(monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    a, b = np.random.default_rng(6).random((2, 16, 16), "float32")
    c = np.zeros((16, 16), "float32")
    product[1, (TILE, TILE)](a, b, c)
    assert np.allclose(c, a @ b, rtol=1e-5)
    out = np.zeros(1)
    total_of[2, 128](np.arange(200.0), out)
    assert out[0] == 19900
    seen = []

    @cuda.jit
    def look(d):
        seen.append(int(d[cuda.grid(1)]))

    look[1, 3](cuda.to_device(np.arange(3)))
    assert seen == [0, 1, 2]
