/* Functions that make arrays. They share one idea of where an array goes: dtype, device, usm_type and queue.
 */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"
#include <math.h>

/* --- Where and what ------------------------------------------------------------------------------------ */

typedef struct make_target {
    drupe_queue *queue; /* retained */
    drupe_mem_kind kind;
    drupe_dtype dtype; /* NONE: not given */
} make_target;

static void target_clear(make_target *target)
{
    drupe_py_queue_release(target->queue);
    target->queue = NULL;
}

/* The four keywords in the order dtype, device, usm_type, queue. `like` (may be NULL) supplies what is not
 * given. */
static bool target_arg(drupe_py_state *state, PyObject *const *given, const drupe_array *like,
                       make_target *target)
{
    *target = (make_target){NULL, DRUPE_MEM_DEVICE, DRUPE_DTYPE_NONE};
    if (like) {
        target->kind = drupe_py_array_kind(like);
        target->dtype = like->dtype;
    }
    if (!drupe_py_dtype_arg(state, given[0], &target->dtype) || !drupe_py_mem_kind(given[2], &target->kind))
        return false;
    target->queue = drupe_py_queue_arg(state, given[3], given[1], !like ? NULL : like->queue);
    return target->queue != NULL;
}

/* `written`: all elements are submitted to be written at once. */
static bool empty_make(drupe_py_state *state, const make_target *target, int ndim, const size_t *shape,
                       bool written, drupe_array *array)
{
    memset(array, 0, sizeof *array);
    drupe_dtype dtype =
        target->dtype == DRUPE_DTYPE_NONE ? drupe_py_dtype_float(target->queue) : target->dtype;
    drupe_status status = written ? drupe_array_result(target->queue, target->kind, dtype, ndim, shape, array)
                                  : drupe_array_empty(target->queue, target->kind, dtype, ndim, shape, array);
    if (status == DRUPE_OK) return true;
    drupe_py_raise_on(state, target->queue);
    return false;
}

/* Fill and wrap `array`, which is taken. `value` NULL: leave the elements undefined. */
static PyObject *filled_wrap(drupe_py_state *state, drupe_array *array, const drupe_scalar *value)
{
    if (value && array->size > 0) {
        drupe_operand operand = {.array = NULL, .scalar = *value};
        if (!drupe_py_assign(state, array, &operand)) {
            drupe_array_clear(array);
            return NULL;
        }
    }
    return drupe_py_array_wrap(state, array);
}

/* --- empty, zeros, ones, full and their likes ---------------------------------------------------------- */

/* `first` names what comes before the four keywords: shape or x, and fill_value for full(). */
static PyObject *make_filled(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                             const char *function, bool like, const drupe_scalar *value)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    bool full = !value && function[0] == 'f';
    drupe_py_signature signature = {.function = function, .required = full ? 2 : 1};
    signature.names[signature.count++] = like ? DRUPE_PY_NAME_x : DRUPE_PY_NAME_shape;
    if (full) signature.names[signature.count++] = DRUPE_PY_NAME_fill_value;
    int rest = signature.count;
    signature.positional = rest + 1;
    signature.names[signature.count++] = DRUPE_PY_NAME_dtype;
    signature.names[signature.count++] = DRUPE_PY_NAME_device;
    signature.names[signature.count++] = DRUPE_PY_NAME_usm_type;
    signature.names[signature.count++] = DRUPE_PY_NAME_queue;
    PyObject *given[6];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;

    drupe_scalar fill = {DRUPE_SCALAR_KIND_INT, 0, 0};
    if (full) {
        int found = drupe_py_scalar_arg(state, given[1], &fill);
        if (found == 0)
            PyErr_Format(PyExc_TypeError, "fill_value must be a number, not %s", Py_TYPE(given[1])->tp_name);
        if (found <= 0) return NULL;
        value = &fill;
    }
    size_t shape[DRUPE_MAX_DIMS];
    const drupe_array *model = NULL;
    int ndim = 0;
    if (like) {
        if (!drupe_py_is(state, given[0], DRUPE_PY_TYPE_Array)) {
            drupe_py_operand_refuse(given[0], function);
            return NULL;
        }
        model = drupe_py_array_of(given[0]);
        ndim = model->ndim;
        memcpy(shape, model->shape, (size_t)ndim * sizeof *shape);
    } else if ((ndim = drupe_py_shape_arg(given[0], shape)) < 0) {
        return NULL;
    }
    make_target target;
    if (!target_arg(state, given + rest, model, &target)) return NULL;
    if (full && target.dtype == DRUPE_DTYPE_NONE && fill.kind != DRUPE_SCALAR_KIND_FLOAT)
        target.dtype = fill.kind == DRUPE_SCALAR_KIND_BOOL ? DRUPE_BOOL : DRUPE_INT64;
    drupe_array array;
    PyObject *result = empty_make(state, &target, ndim, shape, value != NULL, &array)
                           ? filled_wrap(state, &array, value)
                           : NULL;
    target_clear(&target);
    return result;
}

static const drupe_scalar zero = {DRUPE_SCALAR_KIND_BOOL, 0, 0}, one = {DRUPE_SCALAR_KIND_BOOL, 1, 1};

#define MAKER(name, like, value)                                                                             \
    static PyObject *make_##name(PyObject *module, PyObject *const *args, Py_ssize_t nargs,                  \
                                 PyObject *kwnames)                                                          \
    {                                                                                                        \
        return make_filled(module, args, nargs, kwnames, #name, like, value);                                \
    }

MAKER(empty, false, NULL)
MAKER(zeros, false, &zero)
MAKER(ones, false, &one)
MAKER(full, false, NULL)
MAKER(empty_like, true, NULL)
MAKER(zeros_like, true, &zero)
MAKER(ones_like, true, &one)
MAKER(full_like, true, NULL)

/* --- Sequences ----------------------------------------------------------------------------------------- */

static bool number_arg(drupe_py_state *state, PyObject *object, const char *what, drupe_scalar *scalar)
{
    int found = drupe_py_scalar_arg(state, object, scalar);
    if (found == 0)
        PyErr_Format(PyExc_TypeError, "%s must be a number, not %s", what, Py_TYPE(object)->tp_name);
    if (found > 0 && scalar->kind == DRUPE_SCALAR_KIND_BOOL) {
        scalar->kind = DRUPE_SCALAR_KIND_INT;
        scalar->f = (double)scalar->i;
    }
    return found > 0;
}

static double as_double(const drupe_scalar *scalar)
{
    return scalar->kind == DRUPE_SCALAR_KIND_FLOAT ? scalar->f : (double)scalar->i;
}

/* Elements of [start, stop) by step. */
static bool arange_count(const drupe_scalar *start, const drupe_scalar *stop, const drupe_scalar *step,
                         size_t *count)
{
    double width = as_double(step);
    if (width == 0 || !isfinite(width)) {
        PyErr_SetString(PyExc_ValueError, "arange: step must be finite and not zero");
        return false;
    }
    bool integers = start->kind == DRUPE_SCALAR_KIND_INT && stop->kind == DRUPE_SCALAR_KIND_INT &&
                    step->kind == DRUPE_SCALAR_KIND_INT;
    *count = 0;
    if (integers && (step->i > 0 ? stop->i <= start->i : stop->i >= start->i)) return true;
    /* Neighbours beyond 2^53 are one double. */
    double length = integers ? 1 : ceil((as_double(stop) - as_double(start)) / width);
    if (!(length > 0)) {
        if (!isnan(length)) return true;
        PyErr_SetString(PyExc_ValueError, "arange: start and stop must be finite");
        return false;
    }
    if (length > 9e18) {
        PyErr_SetString(PyExc_OverflowError, "arange: the array would be too long");
        return false;
    }
    if (integers) {
        /* Unsigned differences: exact, and no overflow. */
        uint64_t distance =
            step->i > 0 ? (uint64_t)stop->i - (uint64_t)start->i : (uint64_t)start->i - (uint64_t)stop->i;
        uint64_t stride = step->i > 0 ? (uint64_t)step->i : 0 - (uint64_t)step->i;
        *count = (size_t)((distance - 1) / stride + 1);
    } else {
        *count = (size_t)length;
    }
    return true;
}

/* Takes `target`. */
static PyObject *sequence_make(drupe_py_state *state, make_target *target, size_t count, drupe_scalar start,
                               drupe_scalar step)
{
    drupe_array array;
    PyObject *result = NULL;
    if (empty_make(state, target, 1, &count, true, &array)) {
        drupe_status status = DRUPE_OK;
        if (count > 0) {
            /* The first of its kind may build a program. */
            PyThreadState *thread = drupe_py_site_leave();
            status = drupe_array_sequence(&array, start, step);
            drupe_py_site_return(thread);
        }
        if (status == DRUPE_OK) {
            result = drupe_py_array_wrap(state, &array);
        } else {
            drupe_py_raise_on(state, target->queue);
            drupe_array_clear(&array);
        }
    }
    target_clear(target);
    return result;
}

static PyObject *make_arange(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = {"arange",
                                                 4,
                                                 1,
                                                 7,
                                                 {DRUPE_PY_NAME_start, DRUPE_PY_NAME_stop, DRUPE_PY_NAME_step,
                                                  DRUPE_PY_NAME_dtype, DRUPE_PY_NAME_device,
                                                  DRUPE_PY_NAME_usm_type, DRUPE_PY_NAME_queue}};
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *given[7];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    drupe_scalar start = {DRUPE_SCALAR_KIND_INT, 0, 0}, stop, step = {DRUPE_SCALAR_KIND_INT, 1, 1};
    bool one_limit = !drupe_py_given(given[1]);
    if (!number_arg(state, given[one_limit ? 0 : 1], "stop", &stop) ||
        (!one_limit && !number_arg(state, given[0], "start", &start)) ||
        (drupe_py_given(given[2]) && !number_arg(state, given[2], "step", &step)))
        return NULL;
    size_t count;
    make_target target;
    if (!arange_count(&start, &stop, &step, &count) || !target_arg(state, given + 3, NULL, &target))
        return NULL;
    bool integers = start.kind == DRUPE_SCALAR_KIND_INT && stop.kind == DRUPE_SCALAR_KIND_INT &&
                    step.kind == DRUPE_SCALAR_KIND_INT;
    if (target.dtype == DRUPE_DTYPE_NONE && integers) target.dtype = DRUPE_INT64;
    return sequence_make(state, &target, count, start, step);
}

/* Rounded down, as NumPy does for integers: a cast alone would cut. Takes `floats`. */
static PyObject *whole(drupe_py_state *state, PyObject *floats)
{
    const drupe_operand operands[] = {{.array = drupe_py_array_of(floats)},
                                      {.array = NULL, .scalar = {DRUPE_SCALAR_KIND_INT, 1, 1}}};
    PyObject *result = drupe_py_apply(state, DRUPE_OP_FLOOR_DIVIDE, operands, 2, floats);
    Py_DECREF(floats);
    return result;
}

/* The last element is `stop` itself, which start + i*step may miss by rounding. */
static bool linspace_end(drupe_py_state *state, PyObject *result, size_t count, const drupe_scalar *stop)
{
    drupe_array last;
    memset(&last, 0, sizeof last);
    drupe_array_view(drupe_py_array_of(result), &last);
    drupe_slice slice = {(ptrdiff_t)count - 1, 1, 1, false};
    drupe_operand operand = {.array = NULL, .scalar = *stop};
    bool good = drupe_array_slice(&last, &slice) == DRUPE_OK;
    if (good)
        good = drupe_py_assign(state, &last, &operand);
    else
        drupe_py_raise_on(state, last.queue);
    drupe_array_clear(&last);
    return good;
}

static PyObject *make_linspace(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = {
        "linspace",
        3,
        3,
        8,
        {DRUPE_PY_NAME_start, DRUPE_PY_NAME_stop, DRUPE_PY_NAME_num, DRUPE_PY_NAME_dtype,
         DRUPE_PY_NAME_device, DRUPE_PY_NAME_usm_type, DRUPE_PY_NAME_queue, DRUPE_PY_NAME_endpoint}};
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *given[8];
    drupe_scalar start, stop;
    size_t count;
    make_target target;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    if (!number_arg(state, given[0], "start", &start) || !number_arg(state, given[1], "stop", &stop) ||
        !drupe_py_size(given[2], "num", &count))
        return NULL;
    int endpoint = drupe_py_flag(given[7], 1);
    if (endpoint < 0 || !target_arg(state, given + 3, NULL, &target)) return NULL;
    /* Computed in floats, and cast at the end where integers are wanted. */
    drupe_dtype wanted = target.dtype;
    if (wanted != DRUPE_FLOAT32) target.dtype = drupe_py_dtype_float(target.queue);
    size_t steps = endpoint ? (count > 1 ? count - 1 : 1) : (count > 0 ? count : 1);
    start = (drupe_scalar){DRUPE_SCALAR_KIND_FLOAT, 0, as_double(&start)};
    stop = (drupe_scalar){DRUPE_SCALAR_KIND_FLOAT, 0, as_double(&stop)};
    drupe_scalar step = {DRUPE_SCALAR_KIND_FLOAT, 0, (stop.f - start.f) / (double)steps};
    PyObject *result = sequence_make(state, &target, count, start, step);
    if (result && endpoint && count > 1 && !linspace_end(state, result, count, &stop)) Py_CLEAR(result);
    if (!result || wanted == DRUPE_DTYPE_NONE || drupe_py_array_of(result)->dtype == wanted) return result;
    if ((wanted == DRUPE_INT32 || wanted == DRUPE_INT64) && !(result = whole(state, result))) return NULL;
    const drupe_array *array = drupe_py_array_of(result);
    PyObject *cast = drupe_py_array_convert(state, array, array->queue, drupe_py_array_kind(array), wanted);
    Py_DECREF(result);
    return cast;
}

/* --- asarray and asnumpy ------------------------------------------------------------------------------- */

/* An array that is one already: itself where it fits, unless a copy is asked for. copy is 0, 1 or -1 (if
 * needed). */
static PyObject *asarray_array(drupe_py_state *state, PyObject *object, const make_target *target, int copy)
{
    const drupe_array *array = drupe_py_array_of(object);
    bool fits = target->queue == array->queue && target->dtype == array->dtype &&
                target->kind == drupe_py_array_kind(array);
    if (fits && copy <= 0) return Py_NewRef(object);
    if (copy == 0) {
        PyErr_SetString(PyExc_ValueError, "copy=False, but another device, usm_type or dtype needs a copy");
        return NULL;
    }
    return drupe_py_array_convert(state, array, target->queue, target->kind, target->dtype);
}

static PyObject *make_asarray(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = {"asarray",
                                                 2,
                                                 1,
                                                 6,
                                                 {DRUPE_PY_NAME_obj, DRUPE_PY_NAME_dtype,
                                                  DRUPE_PY_NAME_device, DRUPE_PY_NAME_usm_type,
                                                  DRUPE_PY_NAME_queue, DRUPE_PY_NAME_copy}};
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *given[6];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    bool is_array = drupe_py_is(state, given[0], DRUPE_PY_TYPE_Array);
    make_target target;
    int copy = drupe_py_given(given[5]) ? PyObject_IsTrue(given[5]) : -1;
    if (copy == -1 && PyErr_Occurred()) return NULL;
    if (!target_arg(state, given + 1, is_array ? drupe_py_array_of(given[0]) : NULL, &target)) return NULL;
    PyObject *result = NULL;
    if (is_array)
        result = asarray_array(state, given[0], &target, copy);
    else if (copy == 0)
        PyErr_SetString(PyExc_ValueError, "copy=False, but host data has to be copied to the device");
    else
        result = drupe_py_array_from(state, given[0], target.queue, target.kind, target.dtype);
    target_clear(&target);
    return result;
}

static PyObject *make_asnumpy(PyObject *module, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state)) return NULL;
    if (!drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) {
        PyErr_Format(PyExc_TypeError, "asnumpy() takes a drupe.array.Array, not %s",
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    return drupe_py_array_numpy(state, drupe_py_array_of(object));
}

#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS
#define TARGET_DOC     "dtype=None, *, device=None, usm_type=None, queue=None)\n--\n\n"

PyMethodDef drupe_py_make_functions[] = {
    {"empty", FAST(make_empty), PyDoc_STR("empty(shape, " TARGET_DOC "A new array with undefined elements.")},
    {"zeros", FAST(make_zeros), PyDoc_STR("zeros(shape, " TARGET_DOC "A new array of zeros.")},
    {"ones", FAST(make_ones), PyDoc_STR("ones(shape, " TARGET_DOC "A new array of ones.")},
    {"full", FAST(make_full), PyDoc_STR("full(shape, fill_value, " TARGET_DOC "A new array of one value.")},
    {"empty_like", FAST(make_empty_like),
     PyDoc_STR("empty_like(x, " TARGET_DOC "Undefined, shaped and placed as x.")},
    {"zeros_like", FAST(make_zeros_like),
     PyDoc_STR("zeros_like(x, " TARGET_DOC "Zeros, shaped and placed as x.")},
    {"ones_like", FAST(make_ones_like),
     PyDoc_STR("ones_like(x, " TARGET_DOC "Ones, shaped and placed as x.")},
    {"full_like", FAST(make_full_like),
     PyDoc_STR("full_like(x, fill_value, " TARGET_DOC "One value, shaped and placed as x.")},
    {"arange", FAST(make_arange),
     PyDoc_STR("arange(start, stop=None, step=1, " TARGET_DOC
               "Numbers from start (0 if one limit is given) to "
               "before stop.")},
    {"linspace", FAST(make_linspace),
     PyDoc_STR(
         "linspace(start, stop, num, *, dtype=None, device=None, usm_type=None, queue=None, endpoint=True)\n"
         "--\n\nNumbers evenly spaced from start to stop.")},
    {"asarray", FAST(make_asarray),
     PyDoc_STR(
         "asarray(obj, dtype=None, *, device=None, usm_type=None, queue=None, copy=None)\n--\n\n"
         "An array of a number, nested sequences, or anything with the buffer protocol or __array__(),\n"
         "such as NumPy arrays and tables of pandas.")},
    {"asnumpy", make_asnumpy, METH_O, PyDoc_STR("asnumpy(x, /)\n--\n\nA copy in NumPy; waits.")},
    {NULL, NULL, 0, NULL},
};
