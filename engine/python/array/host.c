/* Host data: buffers and what nested.c gathers to a device, and elements back.
 *
 * Where it can be, data is copied within the call. Else small data is copied into a bytes object first, so
 * that nothing waits and the caller may change the original at once; large buffers are read in place, and the
 * call waits until the device has them. NumPy is reached through the buffer protocol, and imported only to
 * make its arrays. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"

#define STAGE_MAX   (64u * 1024u)
#define ELEMENT_MAX 16 /* bytes */

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

/* Queue the copy from `host`; `keepalive` (taken) keeps it valid. `sound`: as in drupe_submission. */
static bool upload(drupe_py_state *state, const drupe_array *array, const void *host, bool sound,
                   drupe_py_keepalive *keepalive)
{
    drupe_keep keep = drupe_py_keepalive_keep(keepalive);
    drupe_py_keepalive_watch(array->queue);
    if (drupe_array_from_host(array, host, sound, &keep) == DRUPE_OK) return true;
    drupe_py_raise_on(state, array->queue);
    return false;
}

/* The same from a bytes object, which is taken. */
static bool upload_bytes(drupe_py_state *state, const drupe_array *array, PyObject *bytes)
{
    if (drupe_array_from_host_now(array, PyBytes_AS_STRING(bytes))) {
        Py_DECREF(bytes);
        return true;
    }
    drupe_py_keepalive *keepalive = drupe_py_keepalive_new();
    if (!keepalive) {
        Py_DECREF(bytes);
        return false;
    }
    keepalive->owner = bytes;
    return upload(state, array, PyBytes_AS_STRING(bytes), true, keepalive);
}

/* Wait for everything queued so far. */
static bool settle(drupe_py_state *state, drupe_queue *queue)
{
    drupe_event *event = NULL;
    drupe_submission barrier = {.queue = queue};
    if (drupe_queue_quiet(queue)) {
        drupe_py_collect(queue); /* it is watched for what has been uploaded */
        return true;
    }
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
    const bool is_complex = format[0] == 'Z'; /* of NumPy; Python 3.14 has letters of its own, F and D */
    if (is_complex) format++;
    if (format[0] == '\0' || format[1] != '\0') return DRUPE_DTYPE_NONE;
    const char letter = format[0], kind = letter == '?'              ? 'b'
                                          : strchr("bhilqn", letter) ? 'i'
                                          : strchr("BHILQN", letter) ? 'u'
                                          : strchr("efd", letter)    ? 'f'
                                          : strchr("FD", letter)     ? 'c'
                                                                     : '\0';
    if (is_complex && kind != 'f') return DRUPE_DTYPE_NONE;
    return drupe_py_dtype_of_kind(is_complex ? 'c' : kind, (size_t)view->itemsize);
}

/* Dates of NumPy show their bytes. */
static bool is_date(PyObject *object)
{
    const char *name = Py_TYPE(object)->tp_name;
    return strcmp(name, "numpy.datetime64") == 0 || strcmp(name, "numpy.timedelta64") == 0;
}

static bool view_check(PyObject *object, const Py_buffer *view)
{
    if (format_dtype(view) == DRUPE_DTYPE_NONE || is_date(object)) {
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

/* Whether the bytes of the view are those of an array of this type. */
static bool has_bytes_of(const Py_buffer *view, drupe_dtype dtype)
{
    return PyBuffer_IsContiguous(view, 'C') != 0 &&
           (dtype != DRUPE_BOOL || drupe_py_are_truths(view->buf, (size_t)view->len));
}

/* Whether they may be read by this thread, which reads what is small in any case. */
static bool read_here(const drupe_py_state *state, const Py_buffer *view)
{
    return view->len <= (Py_ssize_t)STAGE_MAX || drupe_py_owner_sound(state, view->obj);
}

bool drupe_py_array_upload(drupe_py_state *state, PyObject *self, drupe_py_keepalive *keepalive)
{
    const Py_buffer *view = &keepalive->view;
    const drupe_array *array = drupe_py_array_of(self);
    const bool fit = has_bytes_of(view, array->dtype), here = read_here(state, view);
    if (fit && here && drupe_array_from_host_now(array, view->buf)) {
        drupe_py_keepalive_free(keepalive);
        return true;
    }
    if (fit && view->len > (Py_ssize_t)STAGE_MAX)
        return upload(state, array, view->buf, here, keepalive) && settle(state, array->queue);
    PyObject *bytes = buffer_bytes(view);
    drupe_py_keepalive_free(keepalive);
    if (!bytes) return false;
    if (array->dtype == DRUPE_BOOL)
        truths((uint8_t *)PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    return upload_bytes(state, array, bytes);
}

/* Whether the view has the elements of the array, type by type and axis by axis. */
static bool alike(const drupe_array *array, const Py_buffer *view)
{
    bool same = format_dtype(view) == array->dtype && view->ndim == array->ndim;
    for (int i = 0; same && i < array->ndim; i++) same = (size_t)view->shape[i] == array->shape[i];
    return same;
}

/* Whether it shows memory of the array, as `x[1:] = np.asarray(x)[:-1]` has it. */
static bool shows(const Py_buffer *view, const drupe_array *array)
{
    const uintptr_t base = (uintptr_t)drupe_memory_pointer(array->memory), first = (uintptr_t)view->buf;
    return first < base + drupe_memory_size(array->memory) && base < first + (size_t)view->len;
}

/* Queue the copy of a large view, which is taken, and wait. */
static bool put_large(drupe_py_state *state, const drupe_array *array, Py_buffer *view)
{
    drupe_py_keepalive *keepalive = drupe_py_keepalive_new();
    if (!keepalive) {
        PyBuffer_Release(view);
        return false;
    }
    const bool sound = read_here(state, view);
    drupe_py_view_move(&keepalive->view, view);
    return upload(state, array, keepalive->view.buf, sound, keepalive) && settle(state, array->queue);
}

int drupe_py_array_put(drupe_py_state *state, const drupe_array *array, PyObject *object)
{
    Py_buffer view;
    int put = 0;
    if (!PyObject_CheckBuffer(object) || PyBytes_Check(object) || is_date(object)) return 0;
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) < 0) {
        PyErr_Clear();
        return 0;
    }
    const bool fit = alike(array, &view) && has_bytes_of(&view, array->dtype) && !shows(&view, array);
    if (fit && read_here(state, &view) && drupe_array_from_host_now(array, view.buf))
        put = 1;
    else if (fit && view.len > (Py_ssize_t)STAGE_MAX && drupe_array_contiguous(array))
        return put_large(state, array, &view) ? 1 : -1;
    PyBuffer_Release(&view);
    return put;
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

/* --- Anything ------------------------------------------------------------------------------------------ */

static PyObject *from_nested(drupe_py_state *state, PyObject *object, drupe_queue *queue, drupe_mem_kind kind,
                             drupe_dtype dtype)
{
    int ndim = 0;
    size_t shape[DRUPE_MAX_DIMS];
    PyObject *bytes = drupe_py_nested_bytes(state, object, queue, &dtype, &ndim, shape);
    PyObject *self = !bytes ? NULL : array_new(state, queue, kind, dtype, ndim, shape);
    if (!self || drupe_py_array_of(self)->size == 0)
        Py_XDECREF(bytes);
    else if (!upload_bytes(state, drupe_py_array_of(self), bytes))
        Py_CLEAR(self);
    return self;
}

PyObject *drupe_py_array_from(drupe_py_state *state, PyObject *object, drupe_queue *queue,
                              drupe_mem_kind kind, drupe_dtype dtype)
{
    if (PyBytes_Check(object)) { /* of what nobody knows whether it is text */
        drupe_py_refuse(drupe_py_call("drupe._foreign", "element", "(Os)", object, "bytes"));
        return NULL;
    }
    if (PyObject_CheckBuffer(object)) return from_buffer(state, object, object, queue, kind, dtype);
    PyObject *array = drupe_py_array_by_method(object);
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
    if (!drupe_py_settle(state, array)) return false;
    if (drupe_array_to_host_now(array, host)) return true;
    drupe_keep keep;
    if (!drupe_py_keepalive_of(owner, array->queue, &keep)) return false;
    if (drupe_array_to_host(array, host, &keep, &event) != DRUPE_OK) {
        drupe_py_raise_on(state, array->queue);
        return false;
    }
    bool good = drupe_py_event_wait(state, event, DRUPE_FOREVER);
    drupe_event_release(event);
    return good;
}

PyObject *drupe_py_array_item(drupe_py_state *state, const drupe_array *array)
{
    if (array->size != 1) {
        PyErr_Format(PyExc_TypeError, "only an array of one element is a Python number, and this one has %zu",
                     array->size);
        return NULL;
    }
    if (!drupe_py_enter(state)) return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, ELEMENT_MAX);
    PyObject *result = NULL;
    if (bytes && fetch(state, array, PyBytes_AS_STRING(bytes), bytes))
        result = drupe_py_element(array->dtype, (const uint8_t *)PyBytes_AS_STRING(bytes));
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
        PyObject *item =
            drupe_py_go_on(self->state, &self->seen) ? drupe_py_element(array->dtype, self->next) : NULL;
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
