/* Host data: Python's numbers, nested sequences and buffers to a device, and elements back.
 *
 * Small data is copied into a bytes object first, so that nothing waits and the caller may change the
 * original at once; large buffers are read in place, and the call waits until the device has them. NumPy is
 * reached through the buffer protocol, and imported only to make its arrays. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

#define STAGE_MAX  (64u * 1024u)
#define LOOK_EVERY 16384u /* elements; some milliseconds */

/* --- Copies to the device ------------------------------------------------------------------------------ */

/* An Array of a type, all of whose elements are submitted to be written at once. */
static PyObject *array_new(drupe_py_state *state, drupe_queue *queue, drupe_mem_kind kind, drupe_dtype dtype,
                           int ndim, const size_t *shape)
{
    drupe_array array = {0};
    if (drupe_array_result(queue, kind, dtype, ndim, shape, &array) != DRUPE_OK)
        return drupe_py_raise_on(state, queue);
    return drupe_py_array_wrap(state, &array);
}

/* Queue the copy from `host`; `keepalive` (taken) keeps it valid. */
static bool upload(drupe_py_state *state, PyObject *self, const void *host, drupe_py_keepalive *keepalive)
{
    const drupe_array *array = drupe_py_array_of(self);
    drupe_keep keep = drupe_py_keepalive_keep(keepalive);
    drupe_py_keepalive_watch(array->queue);
    if (drupe_array_from_host(array, host, &keep) == DRUPE_OK) return true;
    drupe_py_raise_on(state, array->queue);
    return false;
}

/* The same from a bytes object, which is taken. */
static bool upload_bytes(drupe_py_state *state, PyObject *self, PyObject *bytes)
{
    drupe_py_keepalive *keepalive = drupe_py_keepalive_new();
    if (!keepalive) {
        Py_DECREF(bytes);
        return false;
    }
    keepalive->owner = bytes;
    return upload(state, self, PyBytes_AS_STRING(bytes), keepalive);
}

/* Wait for everything queued so far. */
static bool settle(drupe_py_state *state, drupe_queue *queue)
{
    drupe_event *event = NULL;
    drupe_submission barrier = {.queue = queue};
    if (drupe_submit_barrier(&barrier, &event) != DRUPE_OK) {
        drupe_py_raise_on(state, queue);
        return false;
    }
    bool good = drupe_py_event_wait(state, event, DRUPE_FOREVER);
    drupe_event_release(event);
    return good;
}

/* Cast to `dtype` unless it has it. Takes `self`, which may be NULL. */
static PyObject *cast(drupe_py_state *state, PyObject *self, drupe_dtype dtype)
{
    if (!self || dtype == DRUPE_DTYPE_NONE || drupe_py_array_of(self)->dtype == dtype) return self;
    PyObject *other = drupe_py_array_cast(state, drupe_py_array_of(self), dtype);
    Py_DECREF(self);
    return other;
}

PyObject *drupe_py_array_convert(drupe_py_state *state, const drupe_array *array, drupe_queue *queue,
                                 drupe_mem_kind kind, drupe_dtype dtype)
{
    PyObject *self = array_new(state, queue, kind, dtype, array->ndim, array->shape);
    drupe_operand operand = {.array = array};
    if (!self || array->size == 0) return self;
    if (drupe_py_assign(state, drupe_py_array_of(self), &operand)) return self;
    Py_DECREF(self);
    return NULL;
}

/* --- Buffers ------------------------------------------------------------------------------------------- */

/* The element type of a struct format such as "<f", or NONE. */
static drupe_dtype format_dtype(const Py_buffer *view)
{
    const char *format = !view->format ? "B" : view->format;
    char foreign = PY_LITTLE_ENDIAN ? '>' : '<';
    if (format[0] == foreign || (format[0] == '!' && foreign == '>')) return DRUPE_DTYPE_NONE;
    if (strchr("@=<>!", format[0]) && format[0] != '\0') format++;
    if (format[0] == '\0' || format[1] != '\0') return DRUPE_DTYPE_NONE;
    switch (format[0]) {
    case '?': return DRUPE_BOOL;
    case 'f': return DRUPE_FLOAT32;
    case 'd': return DRUPE_FLOAT64;
    case 'i':
    case 'l':
    case 'q':
    case 'n': return view->itemsize == 4 ? DRUPE_INT32 : view->itemsize == 8 ? DRUPE_INT64 : DRUPE_DTYPE_NONE;
    default: return DRUPE_DTYPE_NONE;
    }
}

static bool view_check(PyObject *object, const Py_buffer *view)
{
    if (format_dtype(view) == DRUPE_DTYPE_NONE) {
        drupe_py_refuse(drupe_py_call("drupe._foreign", "elements", "(ss)", Py_TYPE(object)->tp_name,
                                      !view->format ? "B" : view->format));
        return false;
    }
    if (view->ndim <= DRUPE_MAX_DIMS) return true;
    PyErr_Format(PyExc_ValueError, "an array has at most %d dimensions, and this has %d", DRUPE_MAX_DIMS,
                 view->ndim);
    return false;
}

/* The elements side by side in a bytes object. */
static PyObject *buffer_bytes(const Py_buffer *view)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, view->len);
    if (bytes && PyBuffer_ToContiguous(PyBytes_AS_STRING(bytes), view, view->len, 'C') < 0) Py_CLEAR(bytes);
    return bytes;
}

/* Normalise the bytes of bools, of which 0 alone is false: kernels and NumPy's views may have written others.
 */
static void truths(uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) bytes[i] = bytes[i] != 0;
}

/* Whether every byte of a bool is 0 or 1, as C and kernels that the user writes take it for granted. */
bool drupe_py_are_truths(const uint8_t *bytes, size_t count)
{
    uint8_t all = 0;
    for (size_t i = 0; i < count; i++) all |= bytes[i];
    return all <= 1;
}

bool drupe_py_array_upload(drupe_py_state *state, PyObject *self, drupe_py_keepalive *keepalive)
{
    bool contiguous = PyBuffer_IsContiguous(&keepalive->view, 'C') != 0;
    bool bools = drupe_py_array_of(self)->dtype == DRUPE_BOOL;
    if (contiguous && keepalive->view.len > (Py_ssize_t)STAGE_MAX &&
        (!bools || drupe_py_are_truths(keepalive->view.buf, (size_t)keepalive->view.len)))
        return upload(state, self, keepalive->view.buf, keepalive) &&
               settle(state, drupe_py_array_of(self)->queue);
    PyObject *bytes = buffer_bytes(&keepalive->view);
    drupe_py_keepalive_free(keepalive);
    if (!bytes) return false;
    if (bools) truths((uint8_t *)PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    return upload_bytes(state, self, bytes);
}

/* The exception that is set says why `array`, which was made of `object`, has no buffer. Where its data type
 * is the reason, a TypeError says that instead. Runs Python code. */
static void unreadable(PyObject *object, PyObject *array)
{
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return;
    drupe_py_saved saved = drupe_py_error_save();
    PyObject *text = drupe_py_call("drupe._foreign", "unreadable", "(sO)", Py_TYPE(object)->tp_name, array);
    PyErr_Clear();
    drupe_py_error_restore(saved);
    if (text && text != Py_None)
        drupe_py_refuse(text);
    else
        Py_XDECREF(text);
}

/* `given`: what errors speak of. */
static PyObject *from_buffer(drupe_py_state *state, PyObject *object, PyObject *given, drupe_queue *queue,
                             drupe_mem_kind kind, drupe_dtype dtype)
{
    drupe_py_keepalive *keepalive = drupe_py_keepalive_new();
    if (!keepalive) return NULL;
    size_t shape[DRUPE_MAX_DIMS];
    PyObject *self = NULL;
    if (PyObject_GetBuffer(object, &keepalive->view, PyBUF_FULL_RO) < 0) {
        unreadable(given, object);
    } else if (view_check(given, &keepalive->view)) {
        for (int i = 0; i < keepalive->view.ndim; i++) shape[i] = (size_t)keepalive->view.shape[i];
        self = array_new(state, queue, kind, format_dtype(&keepalive->view), keepalive->view.ndim, shape);
    }
    if (!self || keepalive->view.len == 0) {
        drupe_py_keepalive_free(keepalive);
    } else if (!drupe_py_array_upload(state, self, keepalive)) {
        Py_CLEAR(self);
    }
    return cast(state, self, dtype);
}

/* --- Nested sequences ---------------------------------------------------------------------------------- */

typedef struct nest {
    drupe_py_state *state;
    int ndim;
    size_t shape[DRUPE_MAX_DIMS];
    int kind; /* the highest kind of scalar seen; -1: none */
    drupe_dtype dtype;
    uint8_t *next; /* where the next element goes */
    size_t seen;
} nest;

/* Now and then among many elements: signals are looked for, and other threads get the GIL. */
static bool go_on(const drupe_py_state *state, size_t *seen)
{
    return ++*seen % LOOK_EVERY != 0 || !drupe_py_interrupted(state);
}

static bool is_nested(PyObject *object)
{
    return PySequence_Check(object) && !PyUnicode_Check(object) && !PyBytes_Check(object);
}

/* Its one element instead of an array without dimensions, which is called a sequence as well. Steals the
 * reference. */
static PyObject *nest_scalar_of(PyObject *item)
{
    Py_buffer view;
    if (!is_nested(item) || !PyObject_CheckBuffer(item)) return item;
    if (PyObject_GetBuffer(item, &view, PyBUF_FULL_RO) != 0) {
        PyErr_Clear(); /* whoever reads its elements says more */
        return item;
    }
    int ndim = view.ndim;
    PyBuffer_Release(&view);
    if (ndim != 0) return item;
    PyObject *nowhere = PyTuple_New(0);
    PyObject *element = !nowhere ? NULL : PyObject_GetItem(item, nowhere);
    Py_XDECREF(nowhere);
    Py_DECREF(item);
    return element;
}

/* What an object's __array__() gives, as NumPy asks for it (a new reference, which has a buffer); NULL
 * without an exception if it has no such method. Runs Python code. */
static PyObject *array_by_method(PyObject *object)
{
    if (PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyType_Check(object)) return NULL;
    PyObject *method = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__array__");
    if (!method) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
        return NULL;
    }
    Py_DECREF(method);
    PyObject *array = PyObject_CallMethod(object, "__array__", NULL);
    if (!array || PyObject_CheckBuffer(array)) return array;
    PyErr_Format(PyExc_TypeError, "%s.__array__() gave %s, which is no array of NumPy",
                 Py_TYPE(object)->tp_name, Py_TYPE(array)->tp_name);
    Py_DECREF(array);
    return NULL;
}

/* What stands at a position, or the values that NumPy would be given of it: a column of a table may look
 * labels up instead of positions. New reference; runs Python code. */
static PyObject *nest_item(PyObject *sequence, Py_ssize_t i)
{
    PyObject *item = PySequence_GetItem(sequence, i);
    if (!item) {
        if (PyErr_ExceptionMatches(PyExc_KeyError)) { /* it is indexed by keys */
            PyErr_Clear();
            drupe_py_refuse(drupe_py_call("drupe._foreign", "keys", "(s)", Py_TYPE(sequence)->tp_name));
        }
        return NULL;
    }
    if (PyFloat_Check(item) || PyLong_Check(item)) return item;
    if (PyObject_CheckBuffer(item)) return nest_scalar_of(item);
    PyObject *array = array_by_method(item);
    if (!array && !PyErr_Occurred()) return item;
    Py_DECREF(item);
    return !array ? NULL : nest_scalar_of(array);
}

/* The shape, from the first element of each level. */
static bool nest_shape(nest *self, PyObject *object)
{
    PyObject *level = Py_NewRef(object);
    while (level && is_nested(level)) {
        Py_ssize_t length = PySequence_Size(level);
        if (length >= 0 && self->ndim == DRUPE_MAX_DIMS) {
            PyErr_Format(PyExc_ValueError, "an array has at most %d dimensions", DRUPE_MAX_DIMS);
            length = -1;
        }
        if (length >= 0) self->shape[self->ndim++] = (size_t)length;
        PyObject *first = length > 0 ? nest_item(level, 0) : NULL;
        Py_DECREF(level);
        if (length == 0) return true;
        level = first;
    }
    Py_XDECREF(level);
    return level != NULL;
}

/* Bytes of one scalar as the type wanted. */
static bool nest_store(nest *self, const drupe_scalar *scalar)
{
    bool is_float = scalar->kind == DRUPE_SCALAR_KIND_FLOAT;
    bool cut = is_float && drupe_py_dtype_kind(self->dtype) == 'i';
    double number = is_float ? scalar->f : (double)scalar->i;
    if (cut && !(number >= -9223372036854775808.0 && number < 9223372036854775808.0)) {
        PyErr_Format(PyExc_ValueError, "a number is not finite or too large for %s",
                     drupe_dtype_name(self->dtype));
        return false;
    }
    int64_t whole = cut ? (int64_t)number : scalar->i;
    if (self->dtype == DRUPE_INT32 && (whole < INT32_MIN || whole > INT32_MAX)) {
        PyErr_Format(PyExc_OverflowError, "%lld does not fit into int32", (long long)whole);
        return false;
    }
    uint8_t truth = is_float ? number != 0 : scalar->i != 0;
    int32_t narrow = (int32_t)whole;
    float single = (float)number;
    const void *sources[] = {[DRUPE_BOOL] = &truth,
                             [DRUPE_INT32] = &narrow,
                             [DRUPE_INT64] = &whole,
                             [DRUPE_FLOAT32] = &single,
                             [DRUPE_FLOAT64] = &number};
    memcpy(self->next, sources[self->dtype], drupe_dtype_size(self->dtype));
    self->next += drupe_dtype_size(self->dtype);
    return true;
}

static bool nest_scalar(nest *self, PyObject *object)
{
    drupe_scalar scalar;
    int found = drupe_py_scalar_arg(self->state, object, &scalar);
    if (found == 0)
        drupe_py_refuse(drupe_py_call("drupe._foreign", "element", "(Os)", object, Py_TYPE(object)->tp_name));
    if (found <= 0 || !go_on(self->state, &self->seen)) return false;
    if (self->next) return nest_store(self, &scalar);
    if ((int)scalar.kind > self->kind) self->kind = (int)scalar.kind;
    return true;
}

/* Visit all elements in order: the first time to find their kind, the second to store them. */
static bool nest_walk(nest *self, PyObject *object, int depth)
{
    if (depth == self->ndim) return nest_scalar(self, object);
    bool fits = is_nested(object);
    Py_ssize_t length = fits ? PySequence_Size(object) : 0;
    if (length < 0) return false;
    if (!fits || (size_t)length != self->shape[depth]) {
        PyErr_Format(PyExc_ValueError, "the nested sequences differ in length at depth %d: %zu is expected",
                     depth, self->shape[depth]);
        return false;
    }
    bool good = true;
    for (Py_ssize_t i = 0; good && i < length; i++) {
        PyObject *item = nest_item(object, i);
        good = item != NULL && nest_walk(self, item, depth + 1);
        Py_XDECREF(item);
        /* range(2**40) is a sequence too, of no Python code that would look. */
        if (good && i % 1024 == 1023) good = PyErr_CheckSignals() == 0;
    }
    return good;
}

static PyObject *from_nested(drupe_py_state *state, PyObject *object, drupe_queue *queue, drupe_mem_kind kind,
                             drupe_dtype dtype)
{
    nest all = {.state = state, .kind = -1, .dtype = dtype};
    if (!nest_shape(&all, object) || !nest_walk(&all, object, 0)) return NULL;
    if (dtype == DRUPE_DTYPE_NONE)
        all.dtype = all.kind == DRUPE_SCALAR_KIND_BOOL  ? DRUPE_BOOL
                    : all.kind == DRUPE_SCALAR_KIND_INT ? DRUPE_INT64
                                                        : drupe_py_dtype_float(queue);
    PyObject *self = array_new(state, queue, kind, all.dtype, all.ndim, all.shape);
    size_t size = !self ? 0 : drupe_py_array_of(self)->size;
    if (size == 0) return self;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size * drupe_dtype_size(all.dtype)));
    if (bytes) all.next = (uint8_t *)PyBytes_AS_STRING(bytes);
    if (bytes && !nest_walk(&all, object, 0)) Py_CLEAR(bytes);
    if (!bytes || !upload_bytes(state, self, bytes)) Py_CLEAR(self);
    return self;
}

PyObject *drupe_py_array_from(drupe_py_state *state, PyObject *object, drupe_queue *queue,
                              drupe_mem_kind kind, drupe_dtype dtype)
{
    if (PyObject_CheckBuffer(object)) return from_buffer(state, object, object, queue, kind, dtype);
    PyObject *array = array_by_method(object);
    if (!array) return PyErr_Occurred() ? NULL : from_nested(state, object, queue, kind, dtype);
    PyObject *result = from_buffer(state, array, object, queue, kind, dtype);
    Py_DECREF(array);
    return result;
}

/* --- Back to the host ---------------------------------------------------------------------------------- */

/* Copy all elements to C-contiguous memory of `owner`, and wait. */
static bool fetch(drupe_py_state *state, const drupe_array *array, void *host, PyObject *owner)
{
    drupe_event *event = NULL;
    if (array->size == 0) return true;
    if (drupe_array_to_host(array, host, &event) != DRUPE_OK) {
        drupe_py_raise_on(state, array->queue);
        return false;
    }
    bool good = drupe_py_event_wait_holding(state, event, owner);
    drupe_event_release(event);
    return good;
}

static PyObject *element(drupe_dtype dtype, const uint8_t *bytes)
{
    int32_t narrow;
    int64_t whole;
    float single;
    double number;
    switch (dtype) {
    case DRUPE_BOOL: return PyBool_FromLong(bytes[0] != 0);
    case DRUPE_INT32: memcpy(&narrow, bytes, sizeof narrow); return PyLong_FromLong(narrow);
    case DRUPE_INT64: memcpy(&whole, bytes, sizeof whole); return PyLong_FromLongLong(whole);
    case DRUPE_FLOAT32: memcpy(&single, bytes, sizeof single); return PyFloat_FromDouble((double)single);
    default: memcpy(&number, bytes, sizeof number); return PyFloat_FromDouble(number);
    }
}

PyObject *drupe_py_array_item(drupe_py_state *state, const drupe_array *array)
{
    if (array->size != 1) {
        PyErr_Format(PyExc_TypeError, "only an array of one element is a Python number, and this one has %zu",
                     array->size);
        return NULL;
    }
    if (!drupe_py_enter(state)) return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, 8);
    PyObject *result = NULL;
    if (bytes && fetch(state, array, PyBytes_AS_STRING(bytes), bytes))
        result = element(array->dtype, (const uint8_t *)PyBytes_AS_STRING(bytes));
    Py_XDECREF(bytes);
    return result;
}

typedef struct listing {
    const drupe_py_state *state;
    const drupe_array *array;
    const uint8_t *next; /* the next element */
    size_t seen;
} listing;

/* Lists of the axes from `axis` on. Out of the collector's sight until they are full: Python code may run. */
static PyObject *nested_list(listing *self, int axis)
{
    const drupe_array *array = self->array;
    if (axis == array->ndim) {
        PyObject *item = go_on(self->state, &self->seen) ? element(array->dtype, self->next) : NULL;
        self->next += drupe_dtype_size(array->dtype);
        return item;
    }
    PyObject *list = PyList_New((Py_ssize_t)array->shape[axis]);
    if (list) PyObject_GC_UnTrack(list);
    for (size_t i = 0; list && i < array->shape[axis]; i++) {
        PyObject *item = nested_list(self, axis + 1);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    if (list) PyObject_GC_Track(list);
    return list;
}

PyObject *drupe_py_array_list(drupe_py_state *state, const drupe_array *array)
{
    size_t nbytes = array->size * drupe_dtype_size(array->dtype);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)nbytes);
    PyObject *result = NULL;
    if (!bytes && PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Format(PyExc_MemoryError, "no host memory for the %zu bytes of %zu elements", nbytes,
                     array->size);
    if (bytes && fetch(state, array, PyBytes_AS_STRING(bytes), bytes)) {
        listing all = {.state = state, .array = array, .next = (const uint8_t *)PyBytes_AS_STRING(bytes)};
        result = nested_list(&all, 0);
    }
    Py_XDECREF(bytes);
    return result;
}

PyObject *drupe_py_array_numpy(drupe_py_state *state, const drupe_array *array)
{
    PyObject *result =
        drupe_py_call("numpy", "empty", "(Ns)", drupe_py_shape_tuple(array), drupe_dtype_name(array->dtype));
    Py_buffer view;
    if (!result || array->size == 0) return result;
    bool good = PyObject_GetBuffer(result, &view, PyBUF_WRITABLE | PyBUF_STRIDES) == 0;
    if (good) {
        good = fetch(state, array, view.buf, result);
        if (good && array->dtype == DRUPE_BOOL) truths(view.buf, array->size);
        PyBuffer_Release(&view);
    }
    if (!good) Py_CLEAR(result);
    return result;
}
