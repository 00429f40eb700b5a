/* What an iterative solver of linear equations is made of, as functions on arrays:
 *
 *     gemv(exec_queue, A, x, y)               y = A x
 *     sub(exec_queue, x, y, r)                r = x - y
 *     axpby_inplace(exec_queue, a, x, b, y)   y = a x + b y
 *     norm_squared_blocking(exec_queue, r)    the sum of |r[i]|^2
 *     dot_blocking(exec_queue, x, y)          the sum of conj(x[i]) y[i]
 *
 * Each takes depends=, a list of events that its work waits for. The first three return at once, with two
 * events: the second is complete when the work is done, the first when the arrays need not be kept any more.
 * The other two wait and return a number. Elements are float32, float64, complex64 or complex128, of one type
 * in a call. */
#include <complex.h>
#include <drupe/ext.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, CAPACITY = 3 };
void cblas_sgemv(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
void cblas_dgemv(int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
void cblas_cgemv(int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *,
                 int);
void cblas_zgemv(int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *,
                 int);

/* One call: the arrays in the order of its arguments, and the numbers. */
typedef struct work {
    drupe_ext_array arrays[CAPACITY];
    double complex a, b;
    double complex result; /* of the functions that wait */
    atomic_int owners;     /* the engine, and the caller that reads `result` */
} work;

typedef struct type {
    char kind;
    int itemsize;
    drupe_ext_function gemv, sub, axpby, norm, dot;
} type;

/* The loops, which run on a thread of the engine. conj() and the squares are those of complex numbers; for
 * real types the compiler leaves the imaginary parts out. */
#define LOOPS(NAME, T, CONJ)                                                                                 \
    static drupe_status sub_##NAME(void *user)                                                               \
    {                                                                                                        \
        const drupe_ext_array *arrays = ((work *)user)->arrays;                                              \
        const T *x = arrays[0].data, *y = arrays[1].data;                                                    \
        T *r = arrays[2].data;                                                                               \
        for (size_t i = 0; i < arrays[2].size; i++) r[i] = x[i] - y[i];                                      \
        return DRUPE_OK;                                                                                     \
    }                                                                                                        \
    static drupe_status axpby_##NAME(void *user)                                                             \
    {                                                                                                        \
        const work *w = user;                                                                                \
        const T a = (T)w->a, b = (T)w->b, *x = w->arrays[0].data;                                            \
        T *y = w->arrays[1].data;                                                                            \
        for (size_t i = 0; i < w->arrays[1].size; i++) y[i] = a * x[i] + b * y[i];                           \
        return DRUPE_OK;                                                                                     \
    }                                                                                                        \
    static drupe_status dot_##NAME(void *user)                                                               \
    {                                                                                                        \
        work *w = user;                                                                                      \
        const T *x = w->arrays[0].data, *y = w->arrays[1].data;                                              \
        T sum = 0;                                                                                           \
        for (size_t i = 0; i < w->arrays[0].size; i++) sum += CONJ(x[i]) * y[i];                             \
        w->result = sum;                                                                                     \
        return DRUPE_OK;                                                                                     \
    }                                                                                                        \
    static drupe_status norm_##NAME(void *user)                                                              \
    {                                                                                                        \
        work *w = user;                                                                                      \
        w->arrays[1] = w->arrays[0];                                                                         \
        return dot_##NAME(user);                                                                             \
    }

/* y = A x. BLAS takes the numbers 1 and 0 by value for real types, and by address for complex ones. */
#define PRODUCT(NAME, T, FUNCTION, ONE, ZERO)                                                                \
    static drupe_status gemv_##NAME(void *user)                                                              \
    {                                                                                                        \
        const drupe_ext_array *arrays = ((work *)user)->arrays;                                              \
        int rows = (int)arrays[0].shape[0], columns = (int)arrays[0].shape[1];                               \
        FUNCTION(ROW_MAJOR, NO_TRANSPOSE, rows, columns, ONE, arrays[0].data, columns, arrays[1].data, 1,    \
                 ZERO, arrays[2].data, 1);                                                                   \
        return DRUPE_OK;                                                                                     \
    }

#define SAME(x) (x)
LOOPS(f4, float, SAME)
LOOPS(f8, double, SAME)
LOOPS(c8, float complex, conjf)
LOOPS(c16, double complex, conj)
PRODUCT(f4, float, cblas_sgemv, 1.0F, 0.0F)
PRODUCT(f8, double, cblas_dgemv, 1.0, 0.0)
PRODUCT(c8, float complex, cblas_cgemv, &(float complex){1}, &(float complex){0})
PRODUCT(c16, double complex, cblas_zgemv, &(double complex){1}, &(double complex){0})

#define TYPE(kind, size, NAME)                                                                               \
    {                                                                                                        \
        kind, size, gemv_##NAME, sub_##NAME, axpby_##NAME, norm_##NAME, dot_##NAME                           \
    }
static const type types[] = {TYPE('f', 4, f4), TYPE('f', 8, f8), TYPE('c', 8, c8), TYPE('c', 16, c16)};

/* --- Arguments ------------------------------------------------------------------------------------------ */

static const type *type_of(const drupe_ext_array *array)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].kind == array->type && types[i].itemsize == array->itemsize) return &types[i];
    PyErr_SetString(PyExc_TypeError, "elements must be float32, float64, complex64 or complex128");
    return NULL;
}

/* The arrays of a call: vectors of one length and type, the first one a matrix where `matrix` is true. All
 * belong to the queue. NULL with an exception. */
static const type *arrays_read(PyObject *exec_queue, PyObject *const *objects, const char *const *names,
                               int count, int matrix, drupe_ext_array *arrays)
{
    drupe_queue *queue = drupe_ext->queue_of(exec_queue);
    if (queue == NULL || drupe_ext->array_of(objects[0], &arrays[0]) < 0) return NULL;
    const type *found = type_of(&arrays[0]);
    for (int i = 0; i < count && found; i++) {
        int ndim = i == 0 && matrix ? 2 : 1;
        if (drupe_ext->array_like(objects[i], names[i], found->kind, found->itemsize, ndim, 1, &arrays[i]) <
            0)
            return NULL;
        if (arrays[i].queue != queue)
            return PyErr_Format(PyExc_ValueError, "%s is not an array of exec_queue", names[i]), NULL;
        if (!matrix && arrays[i].size != arrays[0].size)
            return PyErr_Format(PyExc_ValueError, "%s and %s have different lengths", names[i], names[0]),
                   NULL;
    }
    return found;
}

static void work_drop(void *user)
{
    work *w = user;
    if (atomic_fetch_sub(&w->owners, 1) == 1) free(w);
}

static work *work_copy(const work *from, int owners)
{
    work *w = malloc(sizeof *w);
    if (w == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *w = *from;
    atomic_init(&w->owners, owners);
    return w;
}

/* --- Work that nobody waits for ------------------------------------------------------------------------- */

/* The pair (host task, computation). The engine keeps the arrays until the work is over; the first event
 * tells when it has let them go. */
static PyObject *submit(const char *label, drupe_ext_function function, const work *from,
                        PyObject *const *objects, size_t count, PyObject *depends)
{
    work *w = work_copy(from, 1);
    if (w == NULL) return NULL;
    drupe_queue *queue = from->arrays[0].queue;
    PyObject *computation =
        drupe_ext->submit_host(queue, label, function, w, work_drop, objects, count, depends);
    if (computation == NULL) return NULL;
    PyObject *host = drupe_ext->keep_alive(queue, objects, count, computation);
    PyObject *pair = host == NULL ? NULL : PyTuple_Pack(2, host, computation);
    Py_XDECREF(host);
    Py_DECREF(computation);
    return pair;
}

static PyObject *py_gemv(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"exec_queue", "Amatrix", "xvec", "resvec", "depends", NULL};
    static const char *const names[] = {"Amatrix", "xvec", "resvec"};
    PyObject *queue, *objects[3], *depends = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO|O:gemv", words, &queue, &objects[0], &objects[1],
                                     &objects[2], &depends))
        return NULL;
    work w = {0};
    const type *found = arrays_read(queue, objects, names, 3, 1, w.arrays);
    if (found == NULL) return NULL;
    if (w.arrays[0].shape[1] != w.arrays[1].size || w.arrays[0].shape[0] != w.arrays[2].size ||
        w.arrays[0].size == 0)
        return PyErr_Format(PyExc_ValueError, "resvec = Amatrix @ xvec needs (m, n) @ (n,) -> (m,)");
    return submit("gemv", found->gemv, &w, objects, 3, depends);
}

static PyObject *py_sub(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"exec_queue", "in1", "in2", "out", "depends", NULL};
    static const char *const names[] = {"in1", "in2", "out"};
    PyObject *queue, *objects[3], *depends = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO|O:sub", words, &queue, &objects[0], &objects[1],
                                     &objects[2], &depends))
        return NULL;
    work w = {0};
    const type *found = arrays_read(queue, objects, names, 3, 0, w.arrays);
    return found == NULL ? NULL : submit("sub", found->sub, &w, objects, 3, depends);
}

static PyObject *py_axpby_inplace(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"exec_queue", "a", "x", "b", "y", "depends", NULL};
    static const char *const names[] = {"x", "y"};
    PyObject *queue, *objects[2], *depends = NULL;
    Py_complex a, b;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ODODO|O:axpby_inplace", words, &queue, &a, &objects[0],
                                     &b, &objects[1], &depends))
        return NULL;
    work w = {.a = a.real + a.imag * I, .b = b.real + b.imag * I};
    const type *found = arrays_read(queue, objects, names, 2, 0, w.arrays);
    if (found == NULL) return NULL;
    if (found->kind == 'f' && (a.imag != 0 || b.imag != 0))
        return PyErr_Format(PyExc_TypeError, "a and b must be real, as the elements of x are");
    return submit("axpby_inplace", found->axpby, &w, objects, 2, depends);
}

/* --- Numbers, which are waited for ---------------------------------------------------------------------- */

/* Run function and wait. False with an exception; an interrupted wait leaves the work to the engine. */
static int wait_for_number(const char *label, drupe_ext_function function, const work *from,
                           PyObject *const *objects, size_t count, PyObject *depends, double complex *number)
{
    work *w = work_copy(from, 2);
    if (w == NULL) return 0;
    PyObject *done = NULL, *event = drupe_ext->submit_host(from->arrays[0].queue, label, function, w,
                                                           work_drop, objects, count, depends);
    if (event) done = PyObject_CallMethod(event, "wait", NULL);
    int good = done != NULL;
    if (good) *number = w->result;
    Py_XDECREF(done);
    Py_XDECREF(event);
    work_drop(w);
    return good;
}

static PyObject *py_norm_squared_blocking(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"exec_queue", "r", "depends", NULL};
    static const char *const names[] = {"r"};
    PyObject *queue, *object, *depends = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:norm_squared_blocking", words, &queue, &object,
                                     &depends))
        return NULL;
    work w = {0};
    double complex number;
    const type *found = arrays_read(queue, &object, names, 1, 0, w.arrays);
    if (found == NULL ||
        !wait_for_number("norm_squared_blocking", found->norm, &w, &object, 1, depends, &number))
        return NULL;
    return PyFloat_FromDouble(creal(number));
}

static PyObject *py_dot_blocking(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"exec_queue", "v1", "v2", "depends", NULL};
    static const char *const names[] = {"v1", "v2"};
    PyObject *queue, *objects[2], *depends = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:dot_blocking", words, &queue, &objects[0],
                                     &objects[1], &depends))
        return NULL;
    work w = {0};
    double complex number;
    const type *found = arrays_read(queue, objects, names, 2, 0, w.arrays);
    if (found == NULL || !wait_for_number("dot_blocking", found->dot, &w, objects, 2, depends, &number))
        return NULL;
    if (found->kind == 'f') return PyFloat_FromDouble(creal(number));
    return PyComplex_FromDoubles(creal(number), cimag(number));
}

#define FUNCTION(name, text)                                                                                 \
    {                                                                                                        \
#name, (PyCFunction)(void (*)(void))py_##name, METH_VARARGS | METH_KEYWORDS, text                    \
    }
static PyMethodDef methods[] = {
    FUNCTION(gemv, "gemv(exec_queue, Amatrix, xvec, resvec, depends=[]): resvec = Amatrix @ xvec."),
    FUNCTION(sub, "sub(exec_queue, in1, in2, out, depends=[]): out = in1 - in2."),
    FUNCTION(axpby_inplace, "axpby_inplace(exec_queue, a, x, b, y, depends=[]): y = a*x + b*y."),
    FUNCTION(norm_squared_blocking, "norm_squared_blocking(exec_queue, r, depends=[]): the sum of |r|**2."),
    FUNCTION(dot_blocking, "dot_blocking(exec_queue, v1, v2, depends=[]): the sum of conj(v1) * v2."),
    {0}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "solver", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_solver(void)
{
    return drupe_ext_import() < 0 ? NULL : PyModule_Create(&module);
}
