/* The table for other people's extension modules: drupe/ext.h. */
#include "drupe/ext.h"
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include "engine/python/submit/py_submit_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

static drupe_py_state *the_state; /* of the one module, which is never unloaded */

_Static_assert((int)DRUPE_EXT_DEVICE == (int)DRUPE_MEM_DEVICE &&
                   (int)DRUPE_EXT_SHARED == (int)DRUPE_MEM_SHARED &&
                   (int)DRUPE_EXT_HOST == (int)DRUPE_MEM_HOST,
               "the header repeats the kinds");
_Static_assert(DRUPE_EXT_MAX_DIMS == DRUPE_MAX_DIMS, "the header repeats the most dimensions");

/* --- What an object is --------------------------------------------------------------------------------- */

/* NONE, with an exception, for a type that arrays do not have. */
static drupe_dtype dtype_of(char type, int itemsize)
{
    const drupe_dtype dtype = drupe_py_dtype_of_kind(type, (size_t)itemsize);
    if (dtype != DRUPE_DTYPE_NONE) return dtype;
    PyErr_Format(PyExc_ValueError, "there are no arrays of type '%c' with %d bytes per element", type,
                 itemsize);
    return DRUPE_DTYPE_NONE;
}

/* On the host device, functions in the queue's order may touch device memory as kernels do. */
static bool functions_reach(const drupe_memory *memory)
{
    return drupe_memory_host_accessible(memory) ||
           strcmp(drupe_device_backend(drupe_queue_device(drupe_memory_queue(memory))), "host") == 0;
}

/* `name`: the argument, for the exception. */
static int array_named(PyObject *object, const char *name, drupe_ext_array *array)
{
    drupe_py_state *state = the_state;
    if (!drupe_py_enter(state)) return -1;
    if (drupe_py_is_memory(state, object)) {
        drupe_memory *memory = ((drupe_py_memory *)object)->memory;
        if (!drupe_py_address_leaves(state, memory)) return -1;
        size_t size = ((drupe_py_memory *)object)->nbytes;
        *array = (drupe_ext_array){.data = drupe_py_memory_pointer(object),
                                   .queue = drupe_memory_queue(memory),
                                   .kind = (int)drupe_memory_kind(memory),
                                   .host = functions_reach(memory),
                                   .type = 'u',
                                   .itemsize = 1,
                                   .ndim = 1,
                                   .size = size,
                                   .shape = {size},
                                   .strides = {1}};
        return 0;
    }
    if (!drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) {
        PyObject *behind = drupe_py_behind(state, object); /* which the object keeps */
        Py_DECREF(behind);
        if (behind != object) return array_named(behind, name, array);
        PyErr_Format(PyExc_TypeError, "%s must be a drupe.array.Array or USM memory, not %s", name,
                     Py_TYPE(object)->tp_name);
        return -1;
    }
    const drupe_array *given = drupe_py_array_of(object);
    if (!drupe_py_settle(state, given)) return -1;
    if (given->memory && !drupe_py_address_leaves(state, given->memory)) return -1;
    *array = (drupe_ext_array){.data = drupe_array_pointer(given),
                               .queue = given->queue,
                               .kind = (int)drupe_py_array_kind(given),
                               .host = !given->memory || functions_reach(given->memory),
                               .type = drupe_dtype_kind(given->dtype),
                               .itemsize = (int)drupe_dtype_size(given->dtype),
                               .ndim = given->ndim,
                               .size = given->size};
    memcpy(array->shape, given->shape, sizeof given->shape);
    memcpy(array->strides, given->strides, sizeof given->strides);
    return 0;
}

static int ext_array_of(PyObject *object, drupe_ext_array *array)
{
    return array_named(object, "the argument", array);
}

static bool in_c_order(const drupe_ext_array *array)
{
    ptrdiff_t step = 1;
    for (int axis = array->ndim; axis-- > 0;) {
        if (array->shape[axis] > 1 && array->strides[axis] != step) return array->size == 0;
        step *= (ptrdiff_t)array->shape[axis];
    }
    return true;
}

static int ext_array_like(PyObject *object, const char *name, char type, int itemsize, int ndim, int host,
                          drupe_ext_array *array)
{
    if (array_named(object, name, array) < 0) return -1;
    if (array->type != type || array->itemsize != itemsize)
        PyErr_Format(PyExc_TypeError,
                     "%s must have elements of type '%c%d', not '%c%d': convert it with astype()", name, type,
                     itemsize, array->type, array->itemsize);
    else if (ndim >= 0 && array->ndim != ndim)
        PyErr_Format(PyExc_ValueError, "%s must have %d dimensions, not %d", name, ndim, array->ndim);
    else if (!in_c_order(array))
        PyErr_Format(PyExc_ValueError,
                     "%s is a strided view: make it contiguous with drupe.array.asarray(x, copy=True) first",
                     name);
    else if (host && !array->host)
        PyErr_Format(PyExc_ValueError,
                     "%s lies in device memory, which host code may not address: make it with "
                     "usm_type=\"shared\", or use the device \"host\"",
                     name);
    else
        return 0;
    return -1;
}

static PyObject *ext_array_new(drupe_queue *queue, int kind, char type, int itemsize, int ndim,
                               const size_t *shape)
{
    drupe_array array = {0};
    if (!drupe_py_enter(the_state)) return NULL;
    drupe_dtype dtype = dtype_of(type, itemsize);
    if (dtype == DRUPE_DTYPE_NONE) return NULL;
    if (drupe_array_empty(queue, (drupe_mem_kind)kind, dtype, ndim, shape, &array) != DRUPE_OK)
        return drupe_py_raise_on(the_state, queue);
    return drupe_py_array_wrap(the_state, &array);
}

/* --- Queues -------------------------------------------------------------------------------------------- */

/* The default queue of a drupe.Device (borrowed), which keeps it: that of a part of a device goes with its
 * last reference. The result is borrowed. */
static drupe_queue *queue_kept(PyObject *object)
{
    drupe_py_device *device = (drupe_py_device *)object;
    if (!device->queue) device->queue = drupe_py_queue_arg(the_state, NULL, object, NULL);
    return device->queue;
}

/* That of the device chosen by `with`, which keeps the object, or of one of the library's, which keeps the
 * queue. */
static drupe_queue *queue_named(PyObject *filter)
{
    PyObject *chosen = NULL;
    if (!drupe_py_given(filter) && PyContextVar_Get(the_state->chosen, NULL, &chosen) < 0) return NULL;
    bool device = chosen && drupe_py_is(the_state, chosen, DRUPE_PY_TYPE_Device);
    drupe_queue *queue = device ? queue_kept(chosen) : drupe_py_queue_arg(the_state, NULL, filter, NULL);
    if (!device) drupe_py_queue_release(queue);
    Py_XDECREF(chosen);
    return queue;
}

static drupe_queue *ext_queue_of(PyObject *object)
{
    drupe_py_state *state = the_state;
    drupe_ext_array array;
    if (!drupe_py_enter(state)) return NULL;
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Queue)) return ((drupe_py_queue *)object)->queue;
    if (drupe_py_is_memory(state, object) || drupe_py_is(state, object, DRUPE_PY_TYPE_Array))
        return ext_array_of(object, &array) < 0 ? NULL : array.queue;
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Device)) return queue_kept(object);
    PyObject *behind = drupe_py_behind(state, object); /* which the object keeps */
    Py_DECREF(behind);
    return behind != object ? ext_queue_of(behind) : queue_named(object);
}

static PyObject *ext_queue_object(drupe_queue *queue)
{
    return drupe_py_queue_wrap(the_state, drupe_queue_retain(queue));
}

static int ext_queue_native(drupe_queue *queue, void **handle)
{
    if (!drupe_py_enter(the_state)) return -1;
    if (drupe_queue_native(queue, handle) == DRUPE_OK) return 0;
    drupe_py_raise_on(the_state, queue);
    return -1;
}

static const char *ext_queue_backend(drupe_queue *queue)
{
    return drupe_device_backend(drupe_queue_device(queue));
}

/* --- Submissions --------------------------------------------------------------------------------------- */

/* What a submission keeps: Python objects, and the caller's own. */
typedef struct kept {
    drupe_py_waits waits;
    drupe_keep *keeps;
    size_t count;
} kept;

static void kept_drop(kept *all)
{
    for (size_t i = 0; i < all->count; i++) all->keeps[i].release(all->keeps[i].object);
    PyMem_Free(all->keeps);
    drupe_py_waits_clear(&all->waits);
}

/* On failure nothing is kept, and `own` is still the caller's. */
static bool kept_gather(PyObject *const *objects, size_t count, PyObject *wait_for, const drupe_keep *own,
                        kept *all)
{
    *all = (kept){.count = 0};
    all->keeps = PyMem_Calloc(count + 1, sizeof *all->keeps);
    if (!all->keeps) {
        PyErr_NoMemory();
        return false;
    }
    bool good = drupe_py_waits_arg(the_state, wait_for, &all->waits);
    while (good && all->count < count) {
        drupe_py_keepalive *keepalive = drupe_py_keepalive_new();
        good = keepalive != NULL;
        if (!good) break;
        keepalive->owner = drupe_py_behind(the_state, objects[all->count]); /* whatever the other has later */
        all->keeps[all->count++] = drupe_py_keepalive_keep(keepalive);
    }
    if (!good) {
        kept_drop(all);
        return false;
    }
    if (own) all->keeps[all->count++] = *own;
    return true;
}

static drupe_submission submission_of(drupe_queue *queue, const kept *all, const char *label)
{
    if (all->count > 0) drupe_py_keepalive_watch(queue);
    return (drupe_submission){.queue = queue,
                              .waits = all->waits.events,
                              .nwaits = all->waits.count,
                              .keeps = all->keeps,
                              .nkeeps = all->count,
                              .label = label};
}

/* The Event, or the exception. The keeps were taken by the submission, also when it failed. */
static PyObject *submitted(drupe_queue *queue, kept *all, drupe_status status, drupe_event *event)
{
    PyObject *result =
        status == DRUPE_OK ? drupe_py_event_wrap(the_state, event) : drupe_py_raise_on(the_state, queue);
    all->count = 0;
    kept_drop(all);
    return result;
}

PyObject *drupe_py_submit_host(drupe_queue *queue, const char *label, drupe_ext_function function, void *user,
                               void (*release)(void *user), PyObject *const *keep, size_t nkeep,
                               PyObject *wait_for)
{
    drupe_keep own = {user, release};
    drupe_event *event = NULL;
    kept all;
    if (!drupe_py_enter(the_state) || !kept_gather(keep, nkeep, wait_for, !release ? NULL : &own, &all)) {
        if (release) release(user);
        return NULL;
    }
    drupe_submission submission = submission_of(queue, &all, label);
    drupe_status status = drupe_submit_host(&submission, function, user, &event);
    return submitted(queue, &all, status, event);
}

static PyObject *ext_submit_copy(drupe_queue *queue, void *dst, const void *src, size_t bytes,
                                 PyObject *const *keep, size_t nkeep, PyObject *wait_for)
{
    drupe_event *event = NULL;
    kept all;
    if (!drupe_py_enter(the_state) || !kept_gather(keep, nkeep, wait_for, NULL, &all)) return NULL;
    drupe_submission submission = submission_of(queue, &all, NULL);
    drupe_status status = bytes == 0 ? drupe_submit_barrier(&submission, &event)
                                     : drupe_submit_copy(&submission, dst, src, bytes, &event);
    return submitted(queue, &all, status, event);
}

static PyObject *ext_keep_alive(drupe_queue *queue, PyObject *const *keep, size_t nkeep, PyObject *wait_for)
{
    drupe_event *event = NULL;
    kept all;
    if (!drupe_py_enter(the_state) || !kept_gather(keep, nkeep, wait_for, NULL, &all)) return NULL;
    drupe_submission submission = submission_of(queue, &all, "keep_alive");
    drupe_status status = drupe_submit_barrier(&submission, &event);
    return submitted(queue, &all, status, event);
}

/* --- Errors -------------------------------------------------------------------------------------------- */

static drupe_status ext_error_set(drupe_status status, const char *text)
{
    return drupe_error_set(status, "%s", text);
}

static PyObject *ext_error_raise(void)
{
    return drupe_py_raise(the_state, NULL);
}

int drupe_py_ext_init(PyObject *module, drupe_py_state *state)
{
    static const drupe_ext_api api = {
        .size = sizeof api,
        .version = DRUPE_EXT_VERSION,
        .array_of = ext_array_of,
        .array_like = ext_array_like,
        .array_new = ext_array_new,
        .queue_of = ext_queue_of,
        .queue_object = ext_queue_object,
        .queue_native = ext_queue_native,
        .queue_backend = ext_queue_backend,
        .submit_host = drupe_py_submit_host,
        .submit_copy = ext_submit_copy,
        .keep_alive = ext_keep_alive,
        .error_set = ext_error_set,
        .error_raise = ext_error_raise,
    };
    the_state = state;
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&api, DRUPE_EXT_CAPSULE, NULL);
    if (!capsule) return -1;
    int result = PyModule_AddObjectRef(module, "ext", capsule);
    Py_DECREF(capsule);
    return result;
}
