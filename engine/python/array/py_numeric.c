/* What drupe.array.fft and drupe.array.random are made of: two functions, whose arguments Python has
 * arranged. */
#include "drupe/array_fft.h"
#include "drupe/array_random.h"
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

static PyObject *numeric_fft(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "fft", args, nargs, 7, 1);
    if (!state) return NULL;
    const drupe_array *in = drupe_py_array_of(args[0]);
    const long axis = PyLong_AsLong(args[1]), kind = PyLong_AsLong(args[3]);
    const Py_ssize_t n = PyLong_AsSsize_t(args[2]);
    const int inverse = PyObject_IsTrue(args[4]), spent = PyObject_IsTrue(args[6]);
    const double scale = PyFloat_AsDouble(args[5]);
    if (PyErr_Occurred()) return NULL;
    if (n < 1) {
        PyErr_Format(PyExc_ValueError, "Invalid number of FFT data points (%zd) specified.", n);
        return NULL;
    }
    drupe_array result = {0};
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_fft(in, (int)axis, (size_t)n, (drupe_fft_result)kind, inverse != 0,
                                          scale, spent != 0, &result);
    return drupe_py_array_made(state, thread, status, in->queue, &result);
}

/* A number, or an array of float64. */
static bool parameter_arg(drupe_py_state *state, PyObject *object, const drupe_array **array, double *number)
{
    *array = drupe_py_is(state, object, DRUPE_PY_TYPE_Array) ? drupe_py_array_of(object) : NULL;
    *number = *array ? 0 : PyFloat_AsDouble(object);
    return *array ? drupe_py_settle(state, *array) : !PyErr_Occurred();
}

/* What comes behind the shape: parameters of a law, or limits of integers. */
static bool random_parameters(drupe_py_state *state, PyObject *const *args, drupe_random_request *request)
{
    if (request->what == DRUPE_RANDOM_LAW) {
        for (int i = 0; i < DRUPE_RANDOM_PARAMETERS; i++)
            if (!parameter_arg(state, args[i], &request->arrays[i], &request->numbers[i])) return false;
        return true;
    }
    uint64_t *const limits[] = {&request->low, &request->range};
    for (int i = 0; i < 2; i++)
        if (drupe_py_is(state, args[i], DRUPE_PY_TYPE_Array)) {
            request->arrays[i] = drupe_py_array_arg(state, args[i], "random");
            if (!request->arrays[i]) return false;
        } else {
            *limits[i] = PyLong_AsUnsignedLongLongMask(args[i]);
        }
    return !PyErr_Occurred();
}

static PyObject *numeric_random(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_array_args(module, "random", args, nargs, 8, 1);
    if (!state) return NULL;
    const drupe_array *generator = drupe_py_array_of(args[0]);
    const long what = PyLong_AsLong(args[1]), law = PyLong_AsLong(args[2]);
    drupe_random_request request = {.what = (drupe_random_what)what, .law = (drupe_random_law_name)law};
    drupe_dtype dtype = DRUPE_FLOAT64;
    size_t shape[DRUPE_MAX_DIMS];
    const int ndim = PyErr_Occurred() || !drupe_py_dtype_arg(state, args[3], &dtype)
                         ? -1
                         : drupe_py_shape_arg(args[4], shape);
    if (ndim < 0 || !random_parameters(state, args + 5, &request)) return NULL;
    drupe_array result = {0};
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_random(generator, &request, dtype, ndim, shape, &result);
    return drupe_py_array_made(state, thread, status, generator->queue, &result);
}

PyMethodDef drupe_py_numeric_functions[] = {
    {"_fft", DRUPE_PY_PLACES(numeric_fft),
     PyDoc_STR("_fft(x, axis, n, result, inverse, scale, spent): see drupe/array_fft.h.")},
    {"_random", DRUPE_PY_PLACES(numeric_random),
     PyDoc_STR("_random(state, what, law, dtype, shape, x, y, z): see drupe/array_random.h.")},
    {NULL, NULL, 0, NULL},
};
