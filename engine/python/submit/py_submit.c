/* What Queue submits: copies, fills, barriers and kernels.
 *
 * The engine itself keeps the USM of a submission alive. Only host buffers need a hold of ours. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/submit/py_submit_room.h"

static drupe_queue *queue_of(PyObject *self)
{
    return ((drupe_py_queue *)self)->queue;
}

/* --- Ends of copies ------------------------------------------------------------------------------------- */

void drupe_py_copy_end_clear(drupe_py_copy_end *end)
{
    if (end->view.obj) PyBuffer_Release(&end->view);
    end->view.obj = NULL;
}

static bool host_end(PyObject *object, int flags, const char *what, drupe_py_copy_end *end)
{
    if (!PyObject_CheckBuffer(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be USM memory, a drupe.array.Array or a %sbuffer, not %s",
                     what, flags & PyBUF_WRITABLE ? "writable " : "", Py_TYPE(object)->tp_name);
        return false;
    }
    if (PyObject_GetBuffer(object, &end->view, flags) < 0) return false;
    end->pointer = end->view.buf;
    end->nbytes = (size_t)end->view.len;
    return true;
}

bool drupe_py_copy_end_host(PyObject *object, bool writable, const char *what, drupe_py_copy_end *end)
{
    *end = (drupe_py_copy_end){.view.obj = NULL};
    return host_end(object, PyBUF_ANY_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0), what, end);
}

/* What a submission keeps of it, which has it from now on. False: MemoryError. */
static bool end_keep(drupe_py_copy_end *end, drupe_keep *keeps, size_t *nkeeps)
{
    if (!end->view.obj) return true;
    drupe_py_keepalive *keepalive = drupe_py_keepalive_new();
    if (!keepalive) return false;
    drupe_py_view_move(&keepalive->view, &end->view);
    keeps[(*nkeeps)++] = drupe_py_keepalive_keep(keepalive);
    return true;
}

bool drupe_py_copy_end_arg(drupe_py_state *state, PyObject *object, bool writable, const char *what,
                           drupe_py_copy_end *end)
{
    end->memory = NULL;
    end->queue = NULL;
    end->view.obj = NULL;
    if (drupe_py_is_memory(state, object)) {
        const drupe_py_memory *memory = (drupe_py_memory *)object;
        end->pointer = drupe_py_memory_pointer(object);
        end->nbytes = memory->nbytes;
        end->memory = memory->memory;
        end->queue = drupe_memory_queue(memory->memory);
        return true;
    }
    if (!drupe_py_is(state, object, DRUPE_PY_TYPE_Array))
        return host_end(object, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE, what, end);
    const drupe_array *array = drupe_py_array_of(object);
    if (!drupe_py_settle(state, array)) return false;
    if (!drupe_array_contiguous(array)) {
        PyErr_Format(PyExc_ValueError,
                     "%s is a strided view: its elements do not lie side by side. Make it contiguous with "
                     "drupe.array.asarray(x, copy=True) first, or assign with x[...] = y.",
                     what);
        return false;
    }
    end->pointer = drupe_array_pointer(array);
    end->nbytes = array->size * drupe_dtype_size(array->dtype);
    end->memory = array->memory;
    end->queue = array->queue;
    return true;
}

static bool end_sound(const drupe_py_state *state, const drupe_py_copy_end *end)
{
    return !end->view.obj || drupe_py_owner_sound(state, end->view.obj);
}

bool drupe_py_copy(drupe_py_state *state, drupe_queue *queue, const drupe_py_waits *waits,
                   drupe_py_copy_end *dst, drupe_py_copy_end *src, size_t nbytes, drupe_event **event)
{
    drupe_keep keeps[2];
    drupe_memory *const memories[2] = {dst->memory, src->memory};
    drupe_submission submission = {.queue = queue,
                                   .keeps = keeps,
                                   .memories = memories,
                                   .sound = end_sound(state, dst) && end_sound(state, src)};
    if (waits) {
        submission.waits = waits->events;
        submission.nwaits = waits->count;
    }
    if (drupe_copy_at_once(&submission, dst->pointer, src->pointer, nbytes, event)) return true;
    if (!end_keep(dst, keeps, &submission.nkeeps) || !end_keep(src, keeps, &submission.nkeeps)) {
        if (submission.nkeeps > 0) drupe_py_keepalive_free(keeps[0].object);
        return false;
    }
    if (submission.nkeeps > 0) drupe_py_keepalive_watch(queue);
    drupe_status status = drupe_submit_copy(&submission, dst->pointer, src->pointer, nbytes, event);
    if (status != DRUPE_OK) drupe_py_raise_on(state, queue);
    return status == DRUPE_OK;
}

/* --- Methods of Queue ---------------------------------------------------------------------------------- */

/* What a method returns: an Event, or None when none was wanted. Takes `event`. */
static PyObject *event_or_none(drupe_py_state *state, bool submitted, drupe_event *event)
{
    if (!submitted) return NULL;
    if (!event) Py_RETURN_NONE;
    return drupe_py_event_wrap(state, event);
}

static bool fits(const drupe_py_copy_end *dst, const drupe_py_copy_end *src, size_t nbytes)
{
    if (nbytes <= dst->nbytes && (!src || nbytes <= src->nbytes)) return true;
    PyErr_Format(PyExc_ValueError, "cannot write %zu bytes: the destination has %zu and the source %zu bytes",
                 nbytes, dst->nbytes, !src ? nbytes : src->nbytes);
    return false;
}

/* nbytes=, which may not exceed that end. */
static bool nbytes_arg(PyObject *object, const drupe_py_copy_end *dst, size_t *nbytes)
{
    *nbytes = dst->nbytes;
    if (drupe_py_given(object) && !drupe_py_size(object, "nbytes", nbytes)) return false;
    return fits(dst, NULL, *nbytes);
}

/* nbytes in elements of a dtype. */
static bool scaled(drupe_py_state *state, PyObject *dtype_object, bool given, size_t *nbytes)
{
    drupe_dtype dtype = DRUPE_DTYPE_NONE;
    if (!drupe_py_dtype_arg(state, dtype_object, &dtype)) return false;
    if (dtype == DRUPE_DTYPE_NONE || !given) return true;
    if (!__builtin_mul_overflow(*nbytes, drupe_dtype_size(dtype), nbytes)) return true;
    PyErr_SetString(PyExc_OverflowError, "the copy is too large");
    return false;
}

static bool copy_size(drupe_py_state *state, PyObject *object, PyObject *dtype, const drupe_py_copy_end *dst,
                      const drupe_py_copy_end *src, size_t *nbytes)
{
    bool given = drupe_py_given(object);
    *nbytes = src->nbytes;
    if (given && !drupe_py_size(object, "nbytes", nbytes)) return false;
    return scaled(state, dtype, given, nbytes) && fits(dst, src, *nbytes);
}

/* The destination, the source, nbytes, what to wait for; a dtype and event= where the names have them. */
static PyObject *copy(PyObject *self, const drupe_py_signature *names, PyObject *const *args,
                      Py_ssize_t nargs, PyObject *kwnames)
{
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[6] = {NULL};
    drupe_py_waits waits;
    if (!drupe_py_enter(state) || !drupe_py_args(state, names, args, nargs, kwnames, given)) return NULL;
    int want = drupe_py_flag(given[5], 1);
    if (want < 0 || !drupe_py_waits_arg(state, given[3], &waits)) return NULL;
    drupe_py_copy_end dst, src;
    dst.view.obj = src.view.obj = NULL;
    drupe_event *event = NULL;
    size_t nbytes = 0;
    drupe_park_hold(); /* Python code may run when one address is known, and the other is not */
    bool good = drupe_py_copy_end_arg(state, given[0], true, "the destination", &dst) &&
                drupe_py_copy_end_arg(state, given[1], false, "the source", &src) &&
                copy_size(state, given[2], given[4], &dst, &src, &nbytes) &&
                drupe_py_copy(state, queue_of(self), &waits, &dst, &src, nbytes, want ? &event : NULL);
    drupe_park_let_go();
    drupe_py_copy_end_clear(&dst);
    drupe_py_copy_end_clear(&src);
    drupe_py_waits_clear(&waits);
    return event_or_none(state, good, event);
}

PyObject *drupe_py_queue_copy(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature names =
        DRUPE_PY_SIGNATURE("copy", 4, 2, DRUPE_PY_NAME_dst, DRUPE_PY_NAME_src, DRUPE_PY_NAME_nbytes,
                           DRUPE_PY_NAME_wait_for, DRUPE_PY_NAME_dtype, DRUPE_PY_NAME_event);
    return copy(self, &names, args, nargs, kwnames);
}

PyObject *drupe_py_queue_memcpy_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                      PyObject *kwnames)
{
    static const drupe_py_signature names =
        DRUPE_PY_SIGNATURE("memcpy_async", 4, 2, DRUPE_PY_NAME_dest, DRUPE_PY_NAME_src, DRUPE_PY_NAME_count,
                           DRUPE_PY_NAME_dEvents);
    return copy(self, &names, args, nargs, kwnames);
}

/* The pattern to fill with: a number of a dtype, a byte, or the bytes themselves. */
static bool pattern_arg(drupe_py_state *state, PyObject *value, PyObject *dtype_object, uint8_t pattern[16],
                        size_t *size)
{
    drupe_dtype dtype = DRUPE_DTYPE_NONE;
    if (!drupe_py_dtype_arg(state, dtype_object, &dtype)) return false;
    if (dtype == DRUPE_BOOL) {
        int truth = PyObject_IsTrue(value);
        pattern[0] = truth > 0;
        *size = 1;
        return truth >= 0;
    }
    if (dtype != DRUPE_DTYPE_NONE && drupe_dtype_kind(dtype) == 'c') {
        drupe_scalar scalar;
        *size = drupe_dtype_size(dtype);
        int found = drupe_py_scalar_arg(state, value, &scalar);
        if (found == 0)
            PyErr_Format(PyExc_TypeError, "the fill value must be a number, not %s", Py_TYPE(value)->tp_name);
        return found > 0 && drupe_py_element_store(state, &scalar, dtype, pattern);
    }
    if (dtype != DRUPE_DTYPE_NONE)
        return drupe_py_scalar_bytes(value, drupe_py_scalar_of(dtype), "the fill value", pattern, size);
    if (!PyBytes_Check(value))
        return drupe_py_scalar_bytes(value, DRUPE_SCALAR_U8, "the fill value", pattern, size);
    Py_ssize_t length = PyBytes_GET_SIZE(value);
    if (length != 1 && length != 2 && length != 4 && length != 8 && length != 16) {
        PyErr_Format(PyExc_ValueError, "a fill pattern has 1, 2, 4, 8 or 16 bytes, not %zd", length);
        return false;
    }
    memcpy(pattern, PyBytes_AS_STRING(value), (size_t)length);
    *size = (size_t)length;
    return true;
}

static PyObject *fill_end(PyObject *self, drupe_py_copy_end *end, const uint8_t *pattern, size_t size,
                          size_t nbytes, PyObject *waits_object, bool want)
{
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_py_waits waits;
    drupe_event *event = NULL;
    if (!drupe_py_waits_arg(state, waits_object, &waits)) {
        return NULL;
    }
    drupe_keep keep;
    drupe_submission submission = {
        .queue = queue_of(self), .waits = waits.events, .nwaits = waits.count, .keeps = &keep};
    bool good = end_keep(end, &keep, &submission.nkeeps);
    if (good) {
        good = drupe_submit_fill(&submission, end->pointer, pattern, size, nbytes, want ? &event : NULL) ==
               DRUPE_OK;
        if (!good) drupe_py_raise_on(state, queue_of(self));
    }
    drupe_py_waits_clear(&waits);
    return event_or_none(state, good, event);
}

PyObject *drupe_py_queue_fill(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("fill", 4, 2, DRUPE_PY_NAME_mem, DRUPE_PY_NAME_value, DRUPE_PY_NAME_nbytes,
                           DRUPE_PY_NAME_wait_for, DRUPE_PY_NAME_dtype, DRUPE_PY_NAME_event);
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[6];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    int want = drupe_py_flag(given[5], 1);
    uint8_t pattern[16];
    size_t size = 0, nbytes = 0;
    drupe_py_copy_end end = {.view.obj = NULL};
    if (want < 0 || !pattern_arg(state, given[1], given[4], pattern, &size)) return NULL;
    PyObject *result = NULL;
    drupe_park_hold();
    if (drupe_py_copy_end_arg(state, given[0], true, "the memory to fill", &end) &&
        nbytes_arg(given[2], &end, &nbytes))
        result = fill_end(self, &end, pattern, size, nbytes, given[3], want);
    drupe_park_let_go();
    drupe_py_copy_end_clear(&end);
    return result;
}

/* A count of 0 means all, as in dpctl. */
static bool count_arg(PyObject *object, const drupe_py_copy_end *end, size_t *nbytes)
{
    size_t count = 0;
    if (drupe_py_given(object) && !drupe_py_size(object, "count", &count)) return false;
    *nbytes = count == 0 ? end->nbytes : count;
    return fits(end, NULL, *nbytes);
}

/* --- Hints ---------------------------------------------------------------------------------------------- */

PyObject *drupe_py_queue_hint(PyObject *self, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *memory, *count, *advice, *waits_object;
    drupe_py_copy_end end = {.view.obj = NULL};
    drupe_py_waits waits;
    drupe_event *event = NULL;
    size_t nbytes = 0, number = 0;
    if (!drupe_py_enter(state) ||
        !PyArg_ParseTuple(args, "OOOO:_hint", &memory, &count, &advice, &waits_object) ||
        (advice != Py_None && !drupe_py_size(advice, "advice", &number)))
        return NULL;
    if (number > UINT32_MAX) return PyErr_Format(PyExc_OverflowError, "advice is a number of 32 bits");
    if (!drupe_py_waits_arg(state, waits_object, &waits)) return NULL;
    drupe_park_hold();
    bool good =
        drupe_py_copy_end_arg(state, memory, false, "the memory", &end) && count_arg(count, &end, &nbytes);
    if (good) {
        drupe_submission submission = {.queue = queue_of(self), .waits = waits.events, .nwaits = waits.count};
        drupe_status status =
            advice == Py_None
                ? drupe_submit_prefetch(&submission, end.pointer, nbytes, &event)
                : drupe_submit_advise(&submission, end.pointer, nbytes, (uint32_t)number, &event);
        good = status == DRUPE_OK;
        if (!good) drupe_py_raise_on(state, queue_of(self));
    }
    drupe_park_let_go();
    drupe_py_copy_end_clear(&end);
    drupe_py_waits_clear(&waits);
    return event_or_none(state, good, event);
}

/* --- Barriers and kernels ------------------------------------------------------------------------------- */

PyObject *drupe_py_queue_barrier(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("barrier", 1, 0, DRUPE_PY_NAME_wait_for);
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[1];
    drupe_py_waits waits;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given) ||
        !drupe_py_waits_arg(state, given[0], &waits))
        return NULL;
    drupe_submission submission = {.queue = queue_of(self), .waits = waits.events, .nwaits = waits.count};
    drupe_event *event = NULL;
    drupe_status status = drupe_submit_barrier(&submission, &event);
    if (status != DRUPE_OK) drupe_py_raise_on(state, queue_of(self));
    drupe_py_waits_clear(&waits);
    return event_or_none(state, status == DRUPE_OK, event);
}

PyObject *drupe_py_queue_keep_alive(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                    PyObject *kwnames)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("_submit_keep_args_alive", 2, 2, DRUPE_PY_NAME_args, DRUPE_PY_NAME_dEvents);
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[2];
    drupe_py_waits waits;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given) ||
        !drupe_py_waits_arg(state, given[1], &waits))
        return NULL;
    drupe_event *event = NULL;
    drupe_py_keepalive *keepalive = drupe_py_keepalive_new();
    drupe_status status = DRUPE_OK;
    if (keepalive) {
        keepalive->owner = Py_NewRef(given[0]);
        drupe_keep keep = drupe_py_keepalive_keep(keepalive);
        drupe_submission submission = {.queue = queue_of(self),
                                       .waits = waits.events,
                                       .nwaits = waits.count,
                                       .keeps = &keep,
                                       .nkeeps = 1,
                                       .label = "keep_alive"};
        drupe_py_keepalive_watch(queue_of(self));
        status = drupe_submit_copy(&submission, NULL, NULL, 0, &event);
        if (status != DRUPE_OK) drupe_py_raise_on(state, queue_of(self));
    }
    drupe_py_waits_clear(&waits);
    return event_or_none(state, keepalive != NULL && status == DRUPE_OK, event);
}

PyObject *drupe_py_queue_submit(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("submit", 5, 2, DRUPE_PY_NAME_kernel, DRUPE_PY_NAME_args,
                           DRUPE_PY_NAME_global_size, DRUPE_PY_NAME_local_size, DRUPE_PY_NAME_wait_for,
                           DRUPE_PY_NAME_event, DRUPE_PY_NAME_gS, DRUPE_PY_NAME_lS, DRUPE_PY_NAME_dEvents);
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[9];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    int want = drupe_py_flag(given[5], 1);
    if (want < 0) return NULL;
    if (!drupe_py_is(state, given[0], DRUPE_PY_TYPE_Kernel)) {
        PyErr_Format(PyExc_TypeError, "submit() takes a drupe.Kernel, such as program.add, not %s",
                     Py_TYPE(given[0])->tp_name);
        return NULL;
    }
    /* The names that dpctl has for the same. */
    for (int i = 0; i < 3; i++)
        if (!given[2 + i]) given[2 + i] = given[6 + i];
    if (!given[2]) {
        PyErr_SetString(PyExc_TypeError, "submit() is missing required argument 'global_size'");
        return NULL;
    }
    /* A tuple of our own: other threads may change a list while the GIL is given up. */
    PyObject *arguments = PySequence_Tuple(given[1]);
    if (!arguments) return NULL;
    drupe_py_launch launch = {(drupe_py_kernel *)given[0],
                              queue_of(self),
                              &PyTuple_GET_ITEM(arguments, 0),
                              (size_t)PyTuple_GET_SIZE(arguments),
                              given[2],
                              given[3],
                              given[4]};
    drupe_event *event = NULL;
    bool good = drupe_py_launch_run(state, &launch, want ? &event : NULL);
    Py_DECREF(arguments);
    return event_or_none(state, good, event);
}
