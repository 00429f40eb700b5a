"""Extensions over drupe/ext.h take the queues, events, arrays and memory of drupe.compat.dpctl as they are."""
import gc
import pathlib

import numpy as np
import pytest
from drupe import ext
from drupe.compat import dpctl
from drupe.compat.dpctl import memory
from drupe.compat.dpctl import tensor as dpt

FOLDER = pathlib.Path(__file__).parents[2] / "notebooks/extension"


@pytest.fixture(scope="module")
def solver():
    return ext.build(FOLDER / "solver.c", libraries=["openblas"])


def test_the_slides_gemv():
    gemv = ext.build(FOLDER / "gemv.c", libraries=["openblas"]).gemv
    rng = np.random.default_rng(5)
    a, x = rng.random((30, 20)), rng.random(20)
    queue = dpctl.SyclQueue("host", property="in_order")
    y = dpt.zeros(30, sycl_queue=queue)
    event = gemv(dpt.asarray(a, sycl_queue=queue), dpt.asarray(x, sycl_queue=queue), y)
    dpctl.SyclEvent.wait_for([event])
    np.testing.assert_allclose(dpt.asnumpy(y), a @ x)
    with pytest.raises(TypeError, match="must be a drupe.array.Array or USM memory, not drupe.Queue"):
        gemv(queue, queue, y)


def test_events_by_hand(solver):
    """Out of order: nothing but the events orders these calls."""
    queue = dpctl.SyclQueue("host")
    x, y, r = (dpt.asarray(np.full(1000, value), sycl_queue=queue) for value in (1.0, 2.0, 0.0))
    queue.wait()
    done = dpctl.SyclEvent()
    for _step in range(20):
        _, done = solver.axpby_inplace(queue, 1.0, x, 1.0, y, depends=[dpctl.SyclEvent(done)])
    host, done = solver.sub(queue, y, x, r, depends=(done, dpctl.SyclEvent()))
    assert solver.dot_blocking(queue, r, x, depends=[done]) == 1000 * 21.0
    dpctl.SyclEvent(host).wait()
    with pytest.raises(ValueError, match="exec_queue"):
        solver.sub(dpctl.SyclQueue("host"), y, x, r)


def test_what_a_call_works_on_is_kept(solver):
    queue = dpctl.SyclQueue("host")
    x = dpt.ones(100_000, sycl_queue=queue)
    y = dpt.zeros(100_000, sycl_queue=queue)
    queue.wait()
    host, done = solver.axpby_inplace(queue, 3.0, x, 0.0, y)
    x._drupe = None  # the wrapper no longer has it, and the call does
    del x
    gc.collect()
    dpctl.SyclEvent.wait_for([host, done])
    assert float(dpt.sum(y)) == 300_000


def test_memory_is_bytes():
    source = """
    #include <drupe/ext.h>
    static PyObject *about(PyObject *self, PyObject *object)
    {
        drupe_ext_array array;
        return drupe_ext->array_of(object, &array) < 0 ? NULL : Py_BuildValue("nC", (Py_ssize_t)array.size, array.type);
    }
    static PyMethodDef methods[] = {{"about", about, METH_O, NULL}, {0}};
    static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "about_memory", NULL, -1, methods};
    PyMODINIT_FUNC PyInit_about_memory(void)
    {
        return drupe_ext_import() < 0 ? NULL : PyModule_Create(&module);
    }
    """
    about = ext.build(source, name="about_memory").about
    assert about(memory.MemoryUSMShared(24)) == (24, "u") and about(dpt.ones(3, dtype="f4")) == (3, "f")
