"""The solvers of notebooks/extension: functions of an extension that take depends= and give pairs of events, called by
programs that are written as those for dpctl are."""
import json
import pathlib
import re

import numpy as np
import pytest

import drupe
import drupe as dpctl
import drupe.array as dpt
from drupe import ext

FOLDER = pathlib.Path(__file__).parents[2] / "notebooks/extension"
TYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture(scope="module")
def solver():
    return ext.build(FOLDER / "solver.c", libraries=["openblas"])


@pytest.fixture(params=["in_order", "out_of_order"])
def q(request):
    return dpctl.SyclQueue("host", property=request.param)


def values(dtype, *shape):
    rng = np.random.default_rng(3)
    real = rng.random(shape)
    return (real + 1j * rng.random(shape) if dtype.startswith("complex") else real).astype(dtype)


def test_the_notebook_solves_its_system(solver, monkeypatch, capsys):
    monkeypatch.chdir(FOLDER)
    names = {}
    for cell in json.loads((FOLDER / "solver.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    for x, y, rounds, slower in names["found"].values():
        np.testing.assert_allclose(x, names["expected"])
        np.testing.assert_allclose(y, names["expected"])
        assert rounds <= 32 < slower < 2000
    said = capsys.readouterr().out
    assert said.count("correct: True") == 2 and "xvec is not an array of exec_queue" in said
    assert names["cg_solve"](names["A"], dpt.zeros_like(names["b"]))[1] == 0


@pytest.mark.parametrize("dtype", TYPES)
def test_functions(solver, q, dtype):
    a, x, y = values(dtype, 5, 7), values(dtype, 7), values(dtype, 7)[::-1].copy()
    A, v, w = (dpt.asarray(each, sycl_queue=q) for each in (a, x, y))
    r = dpt.empty(5, dtype=dtype, sycl_queue=q)
    d = dpt.empty_like(v)
    q.wait()
    close = {"rtol": 1e-5 if np.dtype(dtype).itemsize in (4, 8) and dtype != "float64" else 1e-12}
    host, done = solver.gemv(q, A, v, r, depends=[dpctl.SyclEvent()])
    dpctl.SyclEvent.wait_for([host])
    assert done.execution_status == dpctl.event_status_type.complete
    np.testing.assert_allclose(dpt.asnumpy(r), a @ x, **close)
    solver.sub(q, v, w, d)[1].wait()
    np.testing.assert_allclose(dpt.asnumpy(d), x - y)
    solver.axpby_inplace(exec_queue=q, a=-2, x=v, b=0.5, y=w, depends=[])[1].wait()
    np.testing.assert_allclose(dpt.asnumpy(w), -2 * x + np.asarray(0.5, dtype) * y, **close)
    product, square = solver.dot_blocking(q, v, d), solver.norm_squared_blocking(q, v)
    assert type(square) is float and type(product) is (complex if dtype.startswith("complex") else float)
    np.testing.assert_allclose(product, np.vdot(x, x - y), rtol=1e-4)
    np.testing.assert_allclose(square, np.vdot(x, x).real, rtol=1e-5)


def test_work_waits_for_what_it_depends_on(solver):
    q = dpctl.SyclQueue("host", property="out_of_order")
    x, y = dpt.ones(3, sycl_queue=q), dpt.ones(3, sycl_queue=q)
    q.wait()
    gate = drupe._engine._event_open("gate")
    host, done = solver.axpby_inplace(q, 2, x, 3, y, depends=[gate])
    later = solver.sub(q, y, x, x, depends=[done])
    assert not (host.done or done.done or later[0].done or later[1].done)
    gate._finish()
    dpctl.SyclEvent.wait_for([*later])
    assert x.tolist() == [4, 4, 4] and host.done


def test_what_is_refused(solver):
    q = dpctl.SyclQueue("host")
    A, x, y = dpt.ones((3, 2), sycl_queue=q), dpt.ones(2, sycl_queue=q), dpt.ones(3, sycl_queue=q)
    for call, error, text in [
            (lambda: solver.gemv(q, A, y, x), ValueError, "(m, n) @ (n,) -> (m,)"),
            (lambda: solver.gemv(q, A, x), TypeError, "resvec"),
            (lambda: solver.sub(q, x, y, x), ValueError, "in2 and in1 have different lengths"),
            (lambda: solver.sub(q, x, dpt.ones(2, dtype="f", sycl_queue=q), x), TypeError, "in2 must have elements"),
            (lambda: solver.sub(drupe.queue("host"), x, x, x), ValueError, "in1 is not an array of exec_queue"),
            (lambda: solver.dot_blocking(q, dpt.arange(2, sycl_queue=q), x), TypeError, "elements must be float32"),
            (lambda: solver.axpby_inplace(q, 1j, x, 1, x), TypeError, "a and b must be real"),
            (lambda: solver.norm_squared_blocking(q, [1.0]), TypeError, "drupe.array.Array"),
            (lambda: solver.norm_squared_blocking(q, x, depends=[1]), TypeError, "vent")]:
        with pytest.raises(error, match=re.escape(text)):
            call()


def test_opencl_memory_that_the_host_shares(solver, opencl):
    q = dpctl.SyclQueue(opencl)
    try:
        x = dpt.full(1000, 2.0, dtype="float32", usm_type="shared", sycl_queue=q)
    except drupe.UnsupportedError:
        pytest.skip("no shared memory")
    y = dpt.zeros_like(x)
    solver.axpby_inplace(q, 3, x, 1, y)
    assert float((y + 1).sum()) == 7000 and solver.norm_squared_blocking(q, y) == 36000


def test_names_of_dpctl(device, capsys):
    q = dpctl.SyclQueue(device, property="enable_profiling")
    q.print_device_info()
    assert device.name in capsys.readouterr().out
    made = [dpt.asarray([1, 2, 3], dtype="d", usm_type="device", sycl_queue=q), dpt.zeros(3, sycl_queue=q),
            dpt.ones(3, sycl_queue=q), dpt.empty(3, usm_type="device", sycl_queue=q), dpt.full(3, 7, sycl_queue=q),
            dpt.arange(3, sycl_queue=q), dpt.linspace(0, 1, 3, sycl_queue=q)]
    made += [dpt.copy(made[0]), dpt.empty_like(made[0][1:]), dpt.zeros_like(made[0], sycl_queue=q)]
    for x in made:
        assert x.sycl_queue == q and x.sycl_device == q.sycl_device == device and x.sycl_context == q.sycl_context
        assert x.usm_type == "device"
    assert made[5].tolist() == [0, 1, 2] and made[6].tolist() == [0, 0.5, 1]
    place = made[0].device
    assert place.sycl_queue == q and place.queue == device.sycl_queue == drupe.queue(device) and place == device
    assert place.sycl_device == device and place.sycl_context == place.sycl_queue.sycl_context
    timer = dpctl.SyclTimer()
    with timer(q):
        made[0] += 1
    assert timer.dt.host_dt > 0 and made[0].tolist() == [2, 3, 4]
    dpctl.SyclEvent.wait_for([dpctl.SyclEvent(), q.submit_barrier()])
    classes = {"Context": "Context", "Device": "Device", "Event": "Event", "Kernel": "Kernel", "Platform": "Platform",
               "Queue": "Queue", "Timer": "Timer"}
    assert all(getattr(dpctl, "Sycl" + theirs) is getattr(drupe, ours) for theirs, ours in classes.items())
    with pytest.raises(TypeError, match="multiple values for argument 'queue'|sycl_queue"):
        dpt.zeros(3, queue=q, sycl_queue=q)


def test_the_device_of_an_array_stands_for_its_queue(device):
    """As libraries write it, which combine the result with x and know nothing of queues."""
    x = dpt.ones(3, queue=drupe.Queue(device))
    for made in (dpt.asarray([1, 2, 3], device=x.device), dpt.eye(3, device=x.device),
                 dpt.ones(3, device=device).to_device(x.device), dpt.from_dlpack(np.ones(3), device=x.device)):
        assert made.queue == x.queue and (made + x).queue == x.queue
    assert x.to_device(x.device) is x and x.to_device(device).queue == drupe.queue(device)
    with drupe.device(x.device):
        assert dpt.zeros(3).queue == drupe.queue(device)
    place, queue = x.device, x.queue
    del x
    assert dpt.zeros(3, device=place).queue == queue


@pytest.mark.parametrize("code", "?bBhHiIlLqQefdFD")
def test_codes_of_types(code):
    assert dpt.zeros(1, dtype=code, device="host").dtype == np.dtype(code)
    assert dpt.DType(np.dtype(code).str) == np.dtype(code)


@pytest.mark.parametrize("code", ["", "g", "O", "dd", "f3", "x"])
def test_codes_of_other_types(code):
    with pytest.raises(TypeError, match="is no data type"):
        dpt.DType(code)
