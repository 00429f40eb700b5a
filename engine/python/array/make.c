/* Functions that make arrays. They share one idea of where an array goes: dtype, device, usm_type and queue.
 */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

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

/* `order` of NumPy: whether elements are to lie column by column. `model` (may be NULL) is what the letters A
 * and K follow. */
static bool order_arg(PyObject *object, const drupe_array *model, bool *columns)
{
    *columns = false;
    char letter = 0;
    if (!drupe_py_given(object)) return true;
    if (PyUnicode_Check(object) && PyUnicode_GET_LENGTH(object) == 1)
        letter = (char)Py_TOUPPER(PyUnicode_READ_CHAR(object, 0));
    if (letter == 'F') *columns = true;
    if ((letter == 'A' || letter == 'K') && model && !drupe_array_contiguous(model)) {
        drupe_array turned = *model; /* borrowed */
        *columns = drupe_array_permute(&turned, NULL) == DRUPE_OK && drupe_array_contiguous(&turned);
    }
    if (letter == 'C' || letter == 'F' || letter == 'A' || letter == 'K') return true;
    PyErr_Format(PyExc_ValueError, "order is \"C\" (row by row) or \"F\" (column by column), not %R", object);
    return false;
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

/* Fill and wrap `array`, which is taken. `value` NULL: leave the elements undefined. `turned`: with its axes
 * reversed. */
static PyObject *filled_wrap(drupe_py_state *state, drupe_array *array, const drupe_operand *value,
                             bool turned)
{
    if (value && array->size > 0) {
        if (!drupe_py_assign(state, array, value)) {
            drupe_array_clear(array);
            return NULL;
        }
    }
    if (turned && drupe_array_permute(array, NULL) != DRUPE_OK) {
        drupe_array_clear(array);
        return drupe_py_raise(state, NULL);
    }
    return drupe_py_array_wrap(state, array);
}

/* --- empty, zeros, ones, full and their likes ---------------------------------------------------------- */

/* What full() fills with: a number, or an array without dimensions, which nothing waits for. */
static bool fill_arg(drupe_py_state *state, PyObject *object, drupe_operand *fill)
{
    const drupe_array *array =
        drupe_py_is(state, object, DRUPE_PY_TYPE_Array) ? drupe_py_array_of(object) : NULL;
    if (array && array->ndim == 0) {
        fill->array = array;
        return true;
    }
    int found = drupe_py_scalar_arg(state, object, &fill->scalar);
    if (found == 0)
        PyErr_Format(PyExc_TypeError, "fill_value must be a number, not %s", Py_TYPE(object)->tp_name);
    return found > 0;
}

static drupe_dtype fill_dtype(const drupe_operand *fill, drupe_queue *queue)
{
    return fill->array ? fill->array->dtype : drupe_py_dtype_of_scalar(&fill->scalar, queue);
}

/* Shape of the new array, and the array that it is to be like, if there is one; `other` (may be NULL) is a
 * shape instead of that one's. The number of axes, or -1. */
static int filled_shape(drupe_py_state *state, PyObject *object, PyObject *other, const char *function,
                        bool like, size_t shape[DRUPE_MAX_DIMS], const drupe_array **model)
{
    *model = NULL;
    if (!like) return drupe_py_shape_arg(object, shape);
    if (!drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) {
        drupe_py_operand_refuse(object, function);
        return -1;
    }
    *model = drupe_py_array_of(object);
    if (drupe_py_given(other)) return drupe_py_shape_arg(other, shape);
    memcpy(shape, (*model)->shape, (size_t)(*model)->ndim * sizeof *shape);
    return (*model)->ndim;
}

static void shape_turn(int ndim, size_t *shape)
{
    for (int i = 0; i < ndim / 2; i++) {
        const size_t size = shape[i];
        shape[i] = shape[ndim - 1 - i];
        shape[ndim - 1 - i] = size;
    }
}

/* Where an underscore comes first in the function's name, the caller writes all elements. */
static PyObject *make_filled(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                             const char *function, bool like, const drupe_operand *value)
{
    static const drupe_py_name rest[] = {DRUPE_PY_NAME_dtype, DRUPE_PY_NAME_device, DRUPE_PY_NAME_usm_type,
                                         DRUPE_PY_NAME_queue, DRUPE_PY_NAME_order};
    drupe_py_state *state = drupe_py_state_of_module(module);
    const bool full = !value && function[0] == 'f', written = value || full || function[0] == '_';
    bool columns;
    drupe_py_signature signature = {.function = function, .required = full ? 2 : 1};
    signature.names[signature.count++] = like ? DRUPE_PY_NAME_x : DRUPE_PY_NAME_shape;
    if (full) signature.names[signature.count++] = DRUPE_PY_NAME_fill_value;
    int first = signature.count;
    signature.positional = first + 1;
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) signature.names[signature.count++] = rest[i];
    if (like) signature.names[signature.count++] = DRUPE_PY_NAME_shape;
    PyObject *given[DRUPE_PY_ARGS_MAX];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;

    drupe_operand fill = {.array = NULL, .scalar = {.kind = DRUPE_SCALAR_KIND_INT}};
    if (full && !fill_arg(state, given[1], &fill)) return NULL;
    if (full) value = &fill;
    size_t shape[DRUPE_MAX_DIMS];
    const drupe_array *model;
    int ndim = filled_shape(state, given[0], like ? given[first + 5] : NULL, function, like, shape, &model);
    make_target target;
    if (ndim < 0 || !order_arg(given[first + 4], model, &columns) ||
        !target_arg(state, given + first, model, &target))
        return NULL;
    if (full && target.dtype == DRUPE_DTYPE_NONE) target.dtype = fill_dtype(&fill, target.queue);
    if (columns) shape_turn(ndim, shape);
    drupe_array array;
    PyObject *result = empty_make(state, &target, ndim, shape, written, &array)
                           ? filled_wrap(state, &array, value, columns)
                           : NULL;
    target_clear(&target);
    return result;
}

static const drupe_operand zero = {.scalar = {.kind = DRUPE_SCALAR_KIND_BOOL}},
                           one = {.scalar = {.kind = DRUPE_SCALAR_KIND_BOOL, .i = 1, .f = 1}};

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
MAKER(_written, false, NULL)
MAKER(_written_like, true, NULL)

/* --- Sequences ----------------------------------------------------------------------------------------- */

/* Numbers from `start` on by `step`: what arange() and linspace() of drupe/array/__init__.py are made of. */
static PyObject *make_sequence(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE(
        "_sequence", 7, 7, DRUPE_PY_NAME_count, DRUPE_PY_NAME_start, DRUPE_PY_NAME_step, DRUPE_PY_NAME_dtype,
        DRUPE_PY_NAME_device, DRUPE_PY_NAME_usm_type, DRUPE_PY_NAME_queue);
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *given[7], *result = NULL;
    drupe_scalar start, step;
    size_t count;
    make_target target;
    drupe_array array;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given) ||
        !drupe_py_size(given[0], "count", &count) || drupe_py_scalar_arg(state, given[1], &start) <= 0 ||
        drupe_py_scalar_arg(state, given[2], &step) <= 0 || !target_arg(state, given + 3, NULL, &target))
        return NULL;
    if (empty_make(state, &target, 1, &count, true, &array)) {
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
            drupe_py_raise_on(state, target.queue);
            drupe_array_clear(&array);
        }
    }
    target_clear(&target);
    return result;
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

static PyObject *none_for_null(PyObject *object)
{
    return object ? object : Py_None;
}

static PyObject *make_asarray(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE(
        "asarray", 2, 1, DRUPE_PY_NAME_obj, DRUPE_PY_NAME_dtype, DRUPE_PY_NAME_device, DRUPE_PY_NAME_usm_type,
        DRUPE_PY_NAME_queue, DRUPE_PY_NAME_copy, DRUPE_PY_NAME_order);
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *given[7];
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
        result = drupe_py_call("drupe.array._exchange", "shared", "(OOON)", given[0], none_for_null(given[1]),
                               none_for_null(given[3]),
                               drupe_py_queue_wrap(state, drupe_queue_retain(target.queue)));
    else
        result = drupe_py_array_from(state, given[0], target.queue, target.kind, target.dtype);
    target_clear(&target);
    if (result && drupe_py_given(given[6]))
        result = drupe_py_call("drupe.array._arguments", "laid_out", "(NOO)", result, given[6],
                               none_for_null(given[5]));
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

#define TARGETS         "dtype=None, *, device=None, usm_type=None, queue=None, order='C'"
#define TARGET_DOC      TARGETS ")\n--\n\n"
#define LIKE_TARGET_DOC TARGETS ", shape=None)\n--\n\n"

/* What the texts of functions that make arrays have in common. */
#define WHERE_DOC                                                                                            \
    "device: a Device or a filter, None for the default one. usm_type: \"device\", \"shared\" or "           \
    "\"host\".\n"                                                                                            \
    "queue: the Queue of the array, instead of a device. MemoryError: there is not so much memory.\n\n"
#define ORDER_DOC "order: \"C\", elements lie in memory row by row, or \"F\", column by column. "
#define SHAPE_DOC                                                                                            \
    "shape: a size, or sizes in a tuple. dtype: of the elements, None for the default float.\n" ORDER_DOC    \
    "\n" WHERE_DOC
#define LIKE_DOC                                                                                             \
    "x: an array. dtype: of the elements, None for that of x. Without device, usm_type and queue it is\n"    \
    "placed as x. " ORDER_DOC "\"K\":\nas those of x. shape: sizes, None for those of x. "                   \
    "MemoryError: there is not so much memory.\n\n"

PyMethodDef drupe_py_make_functions[] = {
    {"_written", DRUPE_PY_FAST(make__written),
     PyDoc_STR(
         "_written(shape, " TARGET_DOC
         "empty() for functions that write all elements before they give the array to anybody: it may take\n"
         "memory that work in flight still uses, since what is written comes after that.")},
    {"_written_like", DRUPE_PY_FAST(make__written_like),
     PyDoc_STR("_written_like(x, " TARGET_DOC "_written(), shaped and placed as x.")},
    {"empty", DRUPE_PY_FAST(make_empty),
     PyDoc_STR("empty(shape, " TARGET_DOC
               "A new array with undefined elements, which cannot be read.\n\n" SHAPE_DOC
               ">>> da.empty((2, 3)).shape\n(2, 3)")},
    {"zeros", DRUPE_PY_FAST(make_zeros),
     PyDoc_STR("zeros(shape, " TARGET_DOC "A new array of zeros.\n\n" SHAPE_DOC
               ">>> da.zeros(2).tolist()\n[0.0, 0.0]")},
    {"ones", DRUPE_PY_FAST(make_ones),
     PyDoc_STR("ones(shape, " TARGET_DOC "A new array of ones.\n\n" SHAPE_DOC
               ">>> da.ones(2, dtype=\"int32\").tolist()\n[1, 1]")},
    {"full", DRUPE_PY_FAST(make_full),
     PyDoc_STR("full(shape, fill_value, " TARGET_DOC "A new array of one value.\n\n"
               "shape: a size, or sizes in a tuple. fill_value: a number. dtype: of the elements, None for "
               "that of\n"
               "the number. " ORDER_DOC "\n" WHERE_DOC ">>> da.full(2, 7).tolist()\n[7, 7]")},
    {"empty_like", DRUPE_PY_FAST(make_empty_like),
     PyDoc_STR("empty_like(x, " LIKE_TARGET_DOC
               "A new array with undefined elements, shaped and placed as x.\n\n" LIKE_DOC
               ">>> da.empty_like(da.zeros((2, 3))).shape\n(2, 3)")},
    {"zeros_like", DRUPE_PY_FAST(make_zeros_like),
     PyDoc_STR("zeros_like(x, " LIKE_TARGET_DOC "Zeros, shaped and placed as x.\n\n" LIKE_DOC
               ">>> da.zeros_like(da.asarray([1, 2])).tolist()\n[0, 0]")},
    {"ones_like", DRUPE_PY_FAST(make_ones_like),
     PyDoc_STR("ones_like(x, " LIKE_TARGET_DOC "Ones, shaped and placed as x.\n\n" LIKE_DOC
               ">>> da.ones_like(da.asarray([5, 6])).tolist()\n[1, 1]")},
    {"full_like", DRUPE_PY_FAST(make_full_like),
     PyDoc_STR("full_like(x, fill_value, " LIKE_TARGET_DOC "One value, shaped and placed as x.\n\n" LIKE_DOC
               ">>> da.full_like(da.asarray([5, 6]), 3).tolist()\n[3, 3]")},
    {"_sequence", DRUPE_PY_FAST(make_sequence),
     PyDoc_STR("_sequence(count, start, step, dtype, device, usm_type, queue)\n--\n\n"
               "So many numbers from start on; of dtype None in the default float.")},
    {"asarray", DRUPE_PY_FAST(make_asarray),
     PyDoc_STR(
         "asarray(obj, dtype=None, *, device=None, usm_type=None, queue=None, copy=None, order=None)\n--\n\n"
         "An array of a number, nested sequences, or anything with the buffer protocol or __array__(),\n"
         "such as NumPy arrays and tables of pandas.\n\n"
         "dtype: of the elements, None for that of obj. copy: True for a copy always, False for none\n"
         "(ValueError where one is needed). order: \"C\", elements lie in memory row by row, or \"F\", "
         "column by\ncolumn; None and \"K\": as they are in obj, or row by row in a copy.\n" WHERE_DOC
         "TypeError: what no array is made of.\n\n>>> da.asarray([[1, 2], [3, 4]]).shape\n(2, 2)")},
    {"asnumpy", make_asnumpy, METH_O,
     PyDoc_STR(
         "asnumpy(x, /)\n--\n\nA copy in NumPy. Waits.\n\nx: an array of any shape and data type. TypeError: "
         "what is no array.\n\n>>> da.asnumpy(da.arange(3)).tolist()\n[0, 1, 2]")},
    {NULL, NULL, 0, NULL},
};
