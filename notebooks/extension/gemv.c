#include <drupe/ext.h>
#include <stdlib.h>

void cblas_dgemv(int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };

typedef struct work {
    drupe_ext_array a, x, y;
} work;

static drupe_status work_run(void *user) /* on a thread of the engine */
{
    const work *w = user;
    int rows = (int)w->a.shape[0], columns = (int)w->a.shape[1];
    cblas_dgemv(ROW_MAJOR, NO_TRANSPOSE, rows, columns, 1.0, w->a.data, columns, w->x.data, 1, 0.0, w->y.data,
                1);
    return DRUPE_OK;
}

static PyObject *gemv(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3) return PyErr_Format(PyExc_TypeError, "gemv(a, x, y) takes three arrays");
    work w;
    if (drupe_ext->array_like(args[0], "a", 'f', 8, 2, 1, &w.a) < 0 ||
        drupe_ext->array_like(args[1], "x", 'f', 8, 1, 1, &w.x) < 0 ||
        drupe_ext->array_like(args[2], "y", 'f', 8, 1, 1, &w.y) < 0)
        return NULL;
    if (w.a.shape[1] != w.x.size || w.a.shape[0] != w.y.size || w.a.size == 0)
        return PyErr_Format(PyExc_ValueError, "y = a @ x needs (m, n) @ (n,) -> (m,)");
    work *copy = malloc(sizeof w);
    if (copy == NULL) return PyErr_NoMemory();
    *copy = w;
    return drupe_ext->submit_host(w.y.queue, "gemv", work_run, copy, free, args, 3, NULL);
}

static PyMethodDef methods[] = {
    {"gemv", (PyCFunction)(void (*)(void))gemv, METH_FASTCALL, "gemv(a, x, y): y = a @ x; gives the Event."},
    {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "gemv", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_gemv(void)
{
    return drupe_ext_import() < 0 ? NULL : PyModule_Create(&module);
}
