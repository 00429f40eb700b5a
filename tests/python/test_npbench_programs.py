"""The programs of `./dev bench kernels --npbench`, at tiny sizes, beside the same written for NumPy; npbench itself is
not needed. With a checkout of it in DRUPE_NPBENCH, one row of the table, too."""
import os
import pathlib

import numpy as np
import pytest

import drupe

BENCH = pathlib.Path(__file__).parents[1]/"bench"


@pytest.fixture(autouse=True)
def place(device, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    with drupe.device(device):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def program(name):
    import npbench_programs

    return npbench_programs.PROGRAMS[name]


def close(found, expected):
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_there_are_twelve():
    import npbench_programs

    assert len(npbench_programs.PROGRAMS) == 12


def test_arc_distance(rng):
    a, b, c, d = rng.random((4, 9))
    chord = np.sin((c - a)/2)**2 + np.cos(a)*np.cos(c)*np.sin((d - b)/2)**2
    close(program("arc_distance")(a, b, c, d), 2*np.arcsin(np.sqrt(chord)))


def test_azimint_naive(rng):
    data, radius = rng.random(300), rng.random(300)
    ring = (radius/radius.max()*4).astype(int)
    close(program("azimint_naive")(data, radius, 4), [data[ring == one].mean() for one in range(4)])


def test_cavity_flow(rng):
    """One step from rest: the lid moves, and nothing else yet; then the pressure answers."""
    ny, nx, dx, dy, dt = 6, 7, 0.3, 0.4, 0.01
    u, v, p = np.zeros((3, ny, nx))
    program("cavity_flow")(nx, ny, 1, 2, u, v, dt, dx, dy, p, 1.0, 0.1)
    assert np.all(u[-1] == 1) and not u[:-1].any() and not v.any() and not p.any()
    u, p = u.copy(), p.copy()
    expected = np.zeros((ny, nx))
    b = np.zeros((ny, nx))
    ux, vy = (u[1:-1, 2:] - u[1:-1, :-2])/(2*dx), (v[2:, 1:-1] - v[:-2, 1:-1])/(2*dy)
    uy, vx = (u[2:, 1:-1] - u[:-2, 1:-1])/(2*dy), (v[1:-1, 2:] - v[1:-1, :-2])/(2*dx)
    b[1:-1, 1:-1] = (ux + vy)/dt - ux**2 - 2*uy*vx - vy**2
    for _ in range(2):
        q = expected.copy()
        expected[1:-1, 1:-1] = ((q[1:-1, 2:] + q[1:-1, :-2])*dy**2 + (q[2:, 1:-1] + q[:-2, 1:-1])*dx**2
                                - dx**2*dy**2*b[1:-1, 1:-1])/(2*(dx**2 + dy**2))
        expected[:, -1], expected[:, 0] = expected[:, -2], expected[:, 1]
        expected[0], expected[-1] = expected[1], 0
    old = u.copy()
    program("cavity_flow")(nx, ny, 1, 2, u, v, dt, dx, dy, p, 1.0, 0.1)
    close(p, expected)
    moved = 0.1*dt/dy**2 - dt/(2*dx)*(p[-2, 2:] - p[-2, :-2])
    close(u[-2, 1:-1], old[-2, 1:-1] + moved)


def test_conv2d_bias(rng):
    x, w = rng.random((2, 5, 6, 3), dtype="float32"), rng.random((2, 2, 3, 11), dtype="float32")
    bias = rng.random(11, dtype="float32")
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(1, 2))
    expected = np.einsum("nijcyx,yxcf->nijf", windows, w) + bias
    assert np.allclose(program("conv2d_bias")(x, w, bias), expected, rtol=1e-5)


def test_floyd_warshall(rng):
    path = rng.integers(1, 50, (7, 7), dtype="int32")
    expected = path.copy()
    for k in range(7):
        expected = np.minimum(expected, expected[:, k, None] + expected[k])
    program("floyd_warshall")(path)
    assert np.array_equal(path, expected)


def test_gemm(rng):
    a, b, c = rng.random((3, 4)), rng.random((4, 5)), rng.random((3, 5))
    expected = 1.5*(a @ b) + 1.2*c
    program("gemm")(np.float64(1.5), np.float64(1.2), c, a, b)
    close(c, expected)


def test_hdiff(rng):
    field, out, weight = rng.random((8, 9, 3)), np.zeros((4, 5, 3)), rng.random((4, 5, 3))
    lap = 4*field - np.roll(field, 1, 0) - np.roll(field, -1, 0) - np.roll(field, 1, 1) - np.roll(field, -1, 1)
    flow = []
    for axis in (0, 1):
        change, slope = np.diff(lap, axis=axis), np.diff(field, axis=axis)
        flow.append(np.diff(np.where(change*slope > 0, 0, change), axis=axis))
    expected = field[2:-2, 2:-2] - weight*(flow[0][1:-1, 2:-2] + flow[1][2:-2, 1:-1])
    program("hdiff")(field, out, weight)
    close(out, expected)


def test_jacobi_2d(rng):
    a, b = rng.random((2, 6, 7))
    x, y = a.copy(), b.copy()
    for _ in range(2):
        for old, new in ((x, y), (y, x)):
            new[1:-1, 1:-1] = 0.2*(old[1:-1, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:] + old[2:, 1:-1] + old[:-2, 1:-1])
    program("jacobi_2d")(3, a, b)
    close(a, x)
    close(b, y)


def test_mandelbrot1():
    last, rounds = program("mandelbrot1")(-1.75, 0.25, -1.0, 1.0, 6, 5, 20, 2.0)
    for i, y in enumerate(np.linspace(-1, 1, 5)):
        for j, x in enumerate(np.linspace(-1.75, 0.25, 6)):
            z, count = 0j, 0
            for n in range(20):
                if abs(z) < 2:
                    z, count = z*z + complex(x, y), n
            assert np.isclose(last[i, j], z) and rounds[i, j] == (0 if count == 19 else count)


def test_nbody(rng):
    mass, pos, vel, dt = rng.random((4, 1)) + 1, rng.random((4, 3)), rng.random((4, 3)), 0.01
    x, v, kinetic, potential = pos.copy(), vel - np.mean(mass*vel, axis=0)/mass.mean(), [], []

    def pull():
        apart = x[None] - x[:, None]
        return 2*np.sum(mass[None]*apart/(np.sum(apart**2, axis=2) + 0.04)[:, :, None]**1.5, axis=1)

    for step in range(4):
        if step:
            v = v + pull()*dt/2
            x = x + v*dt
            v = v + pull()*dt/2
        kinetic.append(0.5*np.sum(mass*v**2))
        potential.append(-2*sum(mass[i, 0]*mass[j, 0]/np.linalg.norm(x[i] - x[j])
                                for i in range(4) for j in range(i)))
    found = program("nbody")(mass, pos, vel, 4, 3, dt, 2.0, 0.2)
    close(found[0], kinetic)
    close(found[1], potential)
    close(pos, x)
    close(vel, v)


def test_softmax(rng):
    x = rng.random((2, 3, 4, 5), dtype="float32")
    expected = np.exp(x)/np.exp(x).sum(axis=-1, keepdims=True)
    found = program("softmax")(x)
    assert found.dtype == x.dtype and np.allclose(found, expected, rtol=1e-5)


def test_spmv(rng):
    matrix = np.where(rng.random((6, 5)) < 0.4, rng.random((6, 5)), 0)
    rows, columns = np.nonzero(matrix)
    starts = np.searchsorted(rows, np.arange(7)).astype("uint32")
    x = rng.random(5)
    close(program("spmv")(starts, columns.astype("uint32"), matrix[rows, columns], x), matrix @ x)


def test_a_row_of_the_table(device):
    """With npbench and numba: `spmv` at its own sizes."""
    folder = os.environ.get("DRUPE_NPBENCH")
    if not folder or device.backend.name != "host":
        pytest.skip("DRUPE_NPBENCH is no checkout of npbench, or another device")
    pytest.importorskip("numba")
    import kernel_npbench

    head, *rows = kernel_npbench.table(folder, "host", 1, ["spmv"])
    assert [row[:2] for row in rows[:2]] == [["spmv", "S"], ["spmv", "M"]]
    assert all(len(row) == len(head) and row[-2] == "rtol 1e-5" for row in rows[:2])
