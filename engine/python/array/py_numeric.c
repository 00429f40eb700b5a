/* What drupe.array.fft and drupe.array.random are made of: two functions, whose arguments Python has
 * arranged. */
#include "drupe/array_fft.h"
#include "drupe/array_random.h"
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

static bool count_check(const char *function, Py_ssize_t nargs, Py_ssize_t wanted)
{
    if (nargs == wanted) return true;
    PyErr_Format(PyExc_TypeError, "%s() takes %zd positional arguments (%zd given)", function, wanted, nargs);
    return false;
}

static const drupe_array *array_arg(drupe_py_state *state, PyObject *object, const char *function)
{
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array))
        return drupe_py_settle(state, drupe_py_array_of(object)) ? drupe_py_array_of(object) : NULL;
    drupe_py_operand_refuse(object, function);
    return NULL;
}

/* Wraps what a call of the engine made, or raises its error. */
static PyObject *finish(drupe_py_state *state, drupe_status status, drupe_queue *queue, drupe_array *result)
{
    return status == DRUPE_OK ? drupe_py_array_wrap(state, result) : drupe_py_raise_on(state, queue);
}

static PyObject *numeric_fft(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state) || !count_check("_fft", nargs, 7)) return NULL;
    const drupe_array *in = array_arg(state, args[0], "fft");
    if (!in) return NULL;
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
    drupe_py_site_return(thread);
    return finish(state, status, in->queue, &result);
}

/* A number, or an array of float64. */
static bool parameter_arg(drupe_py_state *state, PyObject *object, const drupe_array **array, double *number)
{
    *array = drupe_py_is(state, object, DRUPE_PY_TYPE_Array) ? drupe_py_array_of(object) : NULL;
    *number = *array ? 0 : PyFloat_AsDouble(object);
    return *array ? drupe_py_settle(state, *array) : !PyErr_Occurred();
}

static PyObject *numeric_random(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state) || !count_check("_random", nargs, 7)) return NULL;
    const drupe_array *generator = array_arg(state, args[0], "random");
    if (!generator) return NULL;
    const long what = PyLong_AsLong(args[1]), law = PyLong_AsLong(args[2]);
    drupe_random_request request = {.what = (drupe_random_what)what, .law = (drupe_random_law_name)law};
    drupe_dtype dtype = DRUPE_FLOAT64;
    size_t shape[DRUPE_MAX_DIMS];
    const int ndim = PyErr_Occurred() || !drupe_py_dtype_arg(state, args[3], &dtype)
                         ? -1
                         : drupe_py_shape_arg(args[4], shape);
    if (ndim < 0) return NULL;
    if (request.what == DRUPE_RANDOM_LAW) {
        for (int i = 0; i < 2; i++)
            if (!parameter_arg(state, args[5 + i], &request.arrays[i], &request.numbers[i])) return NULL;
    } else {
        request.low = PyLong_AsUnsignedLongLongMask(args[5]);
        request.range = PyLong_AsUnsignedLongLongMask(args[6]);
        if (PyErr_Occurred()) return NULL;
    }
    drupe_array result = {0};
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = drupe_array_random(generator, &request, dtype, ndim, shape, &result);
    drupe_py_site_return(thread);
    return finish(state, status, generator->queue, &result);
}

PyMethodDef drupe_py_numeric_functions[] = {
    {"_fft", (PyCFunction)(void (*)(void))numeric_fft, METH_FASTCALL,
     PyDoc_STR("_fft(x, axis, n, result, inverse, scale, spent): see drupe/array_fft.h.")},
    {"_random", (PyCFunction)(void (*)(void))numeric_random, METH_FASTCALL,
     PyDoc_STR("_random(state, what, law, dtype, shape, x, y): see drupe/array_random.h.")},
    {NULL, NULL, 0, NULL},
};
