/* Memory that an Array and others have in common: the buffer protocol, and arrays over memory of others.
 *
 * What a view, or an array over memory of others, is good for: after it was made, the host's reads and writes
 * of the elements are plain ones. Work that is queued later reads and writes the same bytes, so whoever looks
 * at them waits for the queue first, and does not write what queued work reads. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

/* --- Before the address leaves ------------------------------------------------------------------------- */

bool drupe_py_array_settled(drupe_py_state *state, const drupe_array *array, bool writes)
{
    drupe_memory *memory = array->memory;
    if (array->size == 0) return drupe_py_enter(state);
    return drupe_py_enter(state) && drupe_py_queue_wait(state, array->queue, DRUPE_FOREVER) &&
           (!drupe_memory_in_use(memory) || drupe_py_memory_idle(memory)) && /* by work of other queues */
           drupe_py_address_lent(state, memory) && drupe_py_contents_good(state, memory) &&
           drupe_py_check_host(state, memory, writes) == 0;
}

/* --- Views of the host --------------------------------------------------------------------------------- */

/* The format of the module struct, and for complex numbers that of NumPy. */
static char *format_of(drupe_dtype dtype)
{
    static char *const rows[][5] = {
        /* bytes: 1, 2, 4, 8, 16 */
        ['b' - 'b'] = {"?", NULL, NULL, NULL, NULL}, ['c' - 'b'] = {NULL, NULL, NULL, "Zf", "Zd"},
        ['f' - 'b'] = {NULL, "e", "f", "d", NULL},   ['i' - 'b'] = {"b", "h", "i", "l", NULL},
        ['u' - 'b'] = {"B", "H", "I", "L", NULL},
    };
    return rows[drupe_dtype_kind(dtype) - 'b'][__builtin_ctzll(drupe_dtype_size(dtype))];
}

/* Elements that lie on top of each other, as those of broadcast_to() do. */
static bool overlaps_itself(const drupe_array *array)
{
    for (int d = 0; d < array->ndim; d++)
        if (array->strides[d] == 0 && array->shape[d] > 1) return true;
    return false;
}

static bool view_refuse(const char *text)
{
    PyErr_SetString(PyExc_BufferError, text);
    return false;
}

static bool view_allowed(const drupe_array *array, const Py_buffer *view, int flags)
{
    if (!drupe_array_host_reaches(array)) {
        PyErr_Format(PyExc_BufferError,
                     "the host cannot address the memory of %s: copy the elements, with x.asnumpy() or "
                     "drupe.array.asnumpy(x)",
                     drupe_device_filter(drupe_queue_device(array->queue)));
        return false;
    }
    if (flags & PyBUF_WRITABLE && view->readonly)
        return view_refuse(
            "elements of a broadcast view lie on top of each other and are not written through "
            "a buffer: take x.copy()");
    bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || !strided) {
        if (!PyBuffer_IsContiguous(view, 'C'))
            return view_refuse("the elements do not lie side by side in C order: take x.copy()");
    } else if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS) {
        if (!PyBuffer_IsContiguous(view, 'F'))
            return view_refuse("the elements do not lie side by side in Fortran's order: take x.T.copy().T");
    } else if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS) {
        if (!PyBuffer_IsContiguous(view, 'A'))
            return view_refuse("the elements do not lie side by side: take x.copy()");
    }
    return true;
}

/* What a view has until it is released. */
typedef struct lent {
    drupe_memory *memory; /* retained; NULL while there is none, and without elements */
    Py_ssize_t numbers[]; /* shape and strides */
} lent;

/* All of the view but the address, with shape and strides in memory that is to be freed. */
static bool view_fill(const drupe_array *array, Py_buffer *view)
{
    lent *one = malloc(sizeof *one + (size_t)array->ndim * 2 * sizeof *one->numbers);
    size_t size = drupe_dtype_size(array->dtype);
    if (!one) {
        PyErr_NoMemory();
        return false;
    }
    one->memory = NULL;
    Py_ssize_t *numbers = one->numbers;
    for (int d = 0; d < array->ndim; d++) {
        numbers[d] = (Py_ssize_t)array->shape[d];
        numbers[array->ndim + d] = array->strides[d] * (Py_ssize_t)size;
    }
    *view = (Py_buffer){.len = (Py_ssize_t)(array->size * size),
                        .itemsize = (Py_ssize_t)size,
                        .readonly = overlaps_itself(array),
                        .ndim = array->ndim,
                        .format = format_of(array->dtype),
                        .shape = array->ndim ? numbers : NULL,
                        .strides = array->ndim ? numbers + array->ndim : NULL,
                        .internal = one};
    return true;
}

/* What the consumer has not asked for is not given. */
static void view_narrow(Py_buffer *view, int flags)
{
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) view->strides = NULL;
    if ((flags & PyBUF_ND) != PyBUF_ND) {
        view->shape = NULL;
        view->ndim = 1;
    }
    if ((flags & PyBUF_FORMAT) != PyBUF_FORMAT) view->format = NULL;
}

/* Remember a copy of the exception that is set: the exception itself will have a traceback, which keeps the
 * variables of its functions. */
static void unread_note(drupe_py_state *state, PyObject *self)
{
    PyObject *exception = drupe_py_exception_take();
    PyObject *copy = drupe_py_call("copy", "copy", "(O)", exception);
    PyErr_Clear(); /* then NumPy is told less */
    if (copy && PyExceptionInstance_Check(copy)) PyException_SetCause(copy, PyException_GetCause(exception));
    PyObject *before = state->unread;
    state->unread = copy;
    state->unread_of = self;
    Py_XDECREF(before);
    (void)drupe_py_raise_object(exception);
}

bool drupe_py_array_unread(drupe_py_state *state, PyObject *self)
{
    PyObject *exception = state->unread;
    bool own = exception && state->unread_of == self;
    state->unread = NULL;
    state->unread_of = NULL;
    if (own)
        (void)drupe_py_raise_object(exception);
    else
        Py_XDECREF(exception);
    return own;
}

int drupe_py_array_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    drupe_py_state *state = drupe_py_state_of(self);
    const drupe_array *array = drupe_py_array_of(self);
    bool writes = (flags & PyBUF_WRITABLE) != 0;
    if (drupe_py_array_unread(state, self)) PyErr_Clear(); /* of an earlier call */
    view->obj = NULL;
    if (!drupe_py_enter(state) || !drupe_py_settle(state, array)) return -1;
    if (!view_fill(array, view)) return -1;
    bool allowed = view_allowed(array, view, flags);
    if (!allowed || !drupe_py_array_settled(state, array, writes)) {
        if (allowed) unread_note(state, self);
        free(view->internal);
        view->internal = NULL;
        view->obj = NULL;
        return -1;
    }
    view_narrow(view, flags);
    if (array->size) ((lent *)view->internal)->memory = drupe_memory_retain(array->memory);
    if (array->size) drupe_memory_view(array->memory, 1);
    view->buf = drupe_array_pointer(array);
    view->obj = Py_NewRef(self);
    return 0;
}

void drupe_py_array_releasebuffer(PyObject *self, Py_buffer *view)
{
    lent *one = view->internal;
    (void)self;
    if (one && one->memory) drupe_memory_view(one->memory, -1);
    if (one) drupe_memory_release(one->memory);
    free(one);
    view->internal = NULL;
}

/* --- Memory of others ---------------------------------------------------------------------------------- */

/* Bytes from the lowest element to behind the highest. */
static void view_range(const Py_buffer *view, char **low, size_t *bytes)
{
    Py_ssize_t down = 0, up = view->itemsize;
    for (int d = 0; d < view->ndim; d++) {
        Py_ssize_t reach = (view->shape[d] - 1) * view->strides[d];
        *(reach < 0 ? &down : &up) += reach;
    }
    *low = (char *)view->buf + down;
    *bytes = (size_t)(up - down);
}

/* Whether its elements can be an array's as they lie: not those that nobody may write, which arrays can. */
static bool is_sharable(const Py_buffer *view, drupe_dtype dtype)
{
    bool good = !view->readonly && (uintptr_t)view->buf % drupe_dtype_size(dtype) == 0;
    for (int d = 0; good && d < view->ndim; d++) good = view->strides[d] % view->itemsize == 0;
    return good;
}

PyObject *drupe_py_array_borrow(drupe_py_state *state, drupe_queue *queue, drupe_dtype dtype,
                                drupe_py_keepalive *keepalive)
{
    const Py_buffer *view = &keepalive->view;
    char *low;
    size_t bytes, shape[DRUPE_MAX_DIMS];
    ptrdiff_t strides[DRUPE_MAX_DIMS];
    drupe_memory *memory;
    drupe_array array;
    if (view->len == 0 || !is_sharable(view, dtype)) return NULL;
    view_range(view, &low, &bytes);
    if (dtype == DRUPE_BOOL && !drupe_py_are_truths((uint8_t *)low, bytes)) return NULL;
    for (int d = 0; d < view->ndim; d++) {
        shape[d] = (size_t)view->shape[d];
        strides[d] = view->strides[d] / view->itemsize;
    }
    const char *first = view->buf;
    int ndim = view->ndim;
    /* The engine may let go of it at once, where it has the memory already. */
    drupe_keep keep = drupe_py_keepalive_keep(keepalive);
    if (drupe_memory_borrow(queue, low, bytes, &keep, &memory) != DRUPE_OK) return NULL;
    drupe_py_keepalive_watch(queue);
    size_t offset = (size_t)(first - (char *)drupe_memory_pointer(memory)) / drupe_dtype_size(dtype);
    drupe_status status = drupe_array_over(memory, queue, dtype, ndim, shape, strides, offset, &array);
    drupe_memory_release(memory);
    return status == DRUPE_OK ? drupe_py_array_wrap(state, &array) : drupe_py_raise_on(state, queue);
}

/* --- Over memory objects ------------------------------------------------------------------------------- */

/* One number for each axis, or None for C order: *strides becomes NULL then. */
static bool strides_arg(PyObject *object, int ndim, ptrdiff_t room[DRUPE_MAX_DIMS], ptrdiff_t **strides)
{
    *strides = object == Py_None ? NULL : room;
    if (!*strides) return true;
    PyObject *all = PySequence_Tuple(object);
    if (all && PyTuple_GET_SIZE(all) != ndim)
        PyErr_Format(PyExc_ValueError, "strides have %zd numbers, and the shape %d", PyTuple_GET_SIZE(all),
                     ndim);
    for (int d = 0; all && !PyErr_Occurred() && d < ndim; d++)
        room[d] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(all, d), PyExc_OverflowError);
    Py_XDECREF(all);
    return !PyErr_Occurred();
}

PyObject *drupe_py_array_over(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *object, *type, *shape_object, *strides_object, *queue_object;
    Py_ssize_t offset;
    size_t shape[DRUPE_MAX_DIMS];
    ptrdiff_t room[DRUPE_MAX_DIMS], *strides;
    drupe_dtype dtype;
    drupe_array array;
    if (!PyArg_ParseTuple(args, "OOOOnO:_array_over", &object, &type, &shape_object, &strides_object,
                          &offset, &queue_object) ||
        !drupe_py_enter(state) || !drupe_py_dtype_arg(state, type, &dtype))
        return NULL;
    if (!drupe_py_is_memory(state, object))
        return PyErr_Format(PyExc_TypeError, "memory of drupe.memory is expected, not %s",
                            Py_TYPE(object)->tp_name);
    int ndim = drupe_py_shape_arg(shape_object, shape);
    if (ndim < 0 || !strides_arg(strides_object, ndim, room, &strides)) return NULL;
    const drupe_py_memory *memory = (drupe_py_memory *)object;
    size_t size = drupe_dtype_size(dtype);
    if (offset < 0 || memory->offset % size != 0)
        return PyErr_Format(PyExc_ValueError,
                            offset < 0 ? "the offset is negative"
                                       : "the memory does not begin at a multiple of the elements' size");
    drupe_queue *queue = drupe_py_queue_arg(state, queue_object, NULL, NULL);
    if (!queue) return NULL;
    drupe_status status = drupe_array_over(memory->memory, queue, dtype, ndim, shape, strides,
                                           memory->offset / size + (size_t)offset, &array);
    PyObject *result =
        status == DRUPE_OK ? drupe_py_array_wrap(state, &array) : drupe_py_raise_on(state, queue);
    drupe_py_queue_release(queue);
    return result;
}
