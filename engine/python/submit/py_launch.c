/* A kernel launch: Python objects become typed arguments by what the compiler told about the kernel.
 *
 * This is the hot path: argument information was fetched when the kernel was made, values live on the stack,
 * and text for messages is only put together after a failure. Nothing has to be kept alive: the engine copies
 * values and retains USM. The usual arguments (arrays of the right type, small ints, floats) are taken by
 * quick_args(), which leaves whatever else comes, and every complaint, to one_arg(). */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/notebook/notebook_room.h"
#include "engine/python/submit/py_submit_room.h"

#define STACK_ARGS 24u
#define VALUE_MAX  128u  /* a long16 */
#define POINTS_TO  0x80u /* of a form: a pointer to the scalar type that the rest of it is */

typedef union launch_value {
    void *pointer;
    uint8_t bytes[VALUE_MAX];
    double alignment;
} launch_value;

/* The queue of the USM arguments so far, and which argument it came from. */
typedef struct launch_target {
    drupe_queue *queue;
    size_t index;
} launch_target;

/* Prefix the exception that is set with the kernel, the argument's number, name and declared type. */
static bool arg_fail(const drupe_py_launch *launch, size_t index)
{
    const drupe_arg_info *info = index < launch->kernel->nparams ? &launch->kernel->params[index] : NULL;
    PyObject *exception = drupe_py_exception_take();
    const char *name = info != NULL && info->name[0] != '\0' ? info->name : "?";
    const char *type = info != NULL && info->type_name[0] != '\0' ? info->type_name : "type unknown";
    PyErr_Format((PyObject *)Py_TYPE(exception), "kernel '%s', argument %zu ('%s', %s): %S",
                 drupe_kernel_name(launch->kernel->kernel), index, name, type, exception);
    Py_DECREF(exception);
    return false;
}

static bool target_join(drupe_py_state *state, const drupe_py_launch *launch, launch_target *target,
                        drupe_queue *queue, size_t index)
{
    if (!target->queue) *target = (launch_target){queue, index};
    if (target->queue == queue || launch->queue) return true;
    drupe_py_raise_text(
        state, DRUPE_E_PLACEMENT,
        "kernel '%s': arguments %zu (on %s) and %zu (on %s) live on different queues. Bring them "
        "together with to_device(), or name the queue with queue= and order the work with "
        "wait_for=.",
        drupe_kernel_name(launch->kernel->kernel), target->index,
        drupe_device_filter(drupe_queue_device(target->queue)), index,
        drupe_device_filter(drupe_queue_device(queue)));
    return false;
}

/* Does an array's type match what the kernel's pointer points to? */
static bool element_matches(drupe_dtype dtype, const drupe_arg_info *info)
{
    const drupe_scalar_type scalar = info->scalar;
    if (scalar == DRUPE_SCALAR_UNKNOWN) return true;
    if (dtype == DRUPE_BOOL) return scalar == DRUPE_SCALAR_U8 || scalar == DRUPE_SCALAR_I8;
    if (dtype == DRUPE_COMPLEX64) return scalar == DRUPE_SCALAR_F32 && info->lanes == 2;
    if (dtype == DRUPE_COMPLEX128) return scalar == DRUPE_SCALAR_F64 && info->lanes == 2;
    return drupe_py_scalar_of(dtype) == scalar;
}

static bool array_arg(const drupe_py_launch *launch, const drupe_array *array, const drupe_arg_info *info,
                      size_t index, void **pointer)
{
    if (info && !element_matches(array->dtype, info)) {
        PyErr_Format(PyExc_TypeError, "the array's elements are %s, and the kernel's are %s; use astype()",
                     drupe_dtype_name(array->dtype), drupe_py_scalar_name(info->scalar));
        return arg_fail(launch, index);
    }
    if (!drupe_array_contiguous(array)) {
        PyErr_SetString(PyExc_ValueError,
                        "the array is a strided view, and a kernel needs its elements side by "
                        "side; pass drupe.array.asarray(x, copy=True)");
        return arg_fail(launch, index);
    }
    *pointer = drupe_array_pointer(array);
    return true;
}

/* 1: `arg` refers to USM or NULL, 0: the object is neither, -1: exception. */
static int pointer_arg(drupe_py_state *state, const drupe_py_launch *launch, PyObject *object,
                       const drupe_arg_info *info, size_t index, launch_target *target, launch_value *value,
                       drupe_arg *arg)
{
    drupe_queue *queue = NULL;
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) {
        const drupe_array *array = drupe_py_array_of(object);
        if (!drupe_py_settle(state, array) || !array_arg(launch, array, info, index, &value->pointer))
            return -1;
        queue = array->queue;
    } else if (drupe_py_is_memory(state, object)) {
        drupe_memory *memory = ((drupe_py_memory *)object)->memory;
        value->pointer = drupe_py_memory_pointer(object);
        queue = drupe_memory_queue(memory);
    } else if (object == Py_None) {
        value->pointer = NULL;
    } else {
        return 0;
    }
    *arg = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), value};
    return !queue || target_join(state, launch, target, queue, index) ? 1 : -1;
}

/* The bytes of a buffer (bytes, a ctypes value, a NumPy scalar) as the value. `size` 0: any. */
static bool bytes_arg(PyObject *object, size_t size, launch_value *value, drupe_arg *arg)
{
    if (PyBytes_Check(object)) {
        *arg = (drupe_arg){DRUPE_ARG_VALUE, (size_t)PyBytes_GET_SIZE(object), PyBytes_AS_STRING(object)};
    } else {
        Py_buffer view;
        if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0) return false;
        *arg = (drupe_arg){DRUPE_ARG_VALUE, (size_t)view.len, value};
        if ((size_t)view.len <= VALUE_MAX) memcpy(value->bytes, view.buf, (size_t)view.len);
        PyBuffer_Release(&view);
        if (arg->size > VALUE_MAX) {
            PyErr_Format(PyExc_ValueError, "a value of %zu bytes is passed as bytes(value)", arg->size);
            return false;
        }
    }
    if (size == 0 || arg->size == size) return true;
    PyErr_Format(PyExc_ValueError, "%zu bytes are needed, and %zu were given", size, arg->size);
    return false;
}

/* A number as the value, or a component of it. */
static bool number_bytes(PyObject *object, const drupe_arg_info *info, const char *what, void *bytes,
                         size_t *size)
{
    if (info->either_sign) {
        if (drupe_py_scalar_bytes(object, (drupe_scalar_type)(info->scalar + 1), what, bytes, size))
            return true;
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
        PyErr_Clear();
    }
    return drupe_py_scalar_bytes(object, info->scalar, what, bytes, size);
}

/* A vector such as float4 from a sequence of its components, or from bytes. */
static bool vector_arg(PyObject *object, const drupe_arg_info *info, launch_value *value, drupe_arg *arg)
{
    size_t size = drupe_py_scalar_size(info->scalar), written;
    uint32_t stored = info->lanes == 3 ? 4 : info->lanes; /* OpenCL stores three as four */
    PyObject *components = PyObject_CheckBuffer(object) ? NULL : PySequence_Tuple(object);
    memset(value->bytes, 0, sizeof value->bytes);
    if (!components) {
        if (PyErr_Occurred()) return false;
        return bytes_arg(object, size * stored, value, arg);
    }
    bool good = PyTuple_GET_SIZE(components) == (Py_ssize_t)info->lanes && info->lanes <= 16;
    if (!good) PyErr_Format(PyExc_ValueError, "%u components are needed", (unsigned)info->lanes);
    for (uint32_t i = 0; good && i < info->lanes; i++)
        good = number_bytes(PyTuple_GET_ITEM(components, i), info, "a component", value->bytes + i * size,
                            &written);
    Py_DECREF(components);
    *arg = (drupe_arg){DRUPE_ARG_VALUE, size * stored, value};
    return good;
}

/* A ctypes number counts as the Python number in it. New reference, NULL without an exception if it is none.
 */
static PyObject *ctypes_value(PyObject *object)
{
    if (PyNumber_Check(object) || !PyObject_HasAttrString((PyObject *)Py_TYPE(object), "_type_")) return NULL;
    PyObject *value = PyObject_GetAttrString(object, "value");
    if (!value) PyErr_Clear();
    return value;
}

static bool value_arg(PyObject *object, const drupe_arg_info *info, launch_value *value, drupe_arg *arg)
{
    if (info->scalar == DRUPE_SCALAR_UNKNOWN) return bytes_arg(object, 0, value, arg);
    if (info->lanes > 1) return vector_arg(object, info, value, arg);
    *arg = (drupe_arg){DRUPE_ARG_VALUE, 0, value};
    if (PyLong_CheckExact(object) || PyFloat_CheckExact(object))
        return number_bytes(object, info, "the value", value->bytes, &arg->size);
    PyObject *number = ctypes_value(object);
    bool good = number_bytes(!number ? object : number, info, "the value", value->bytes, &arg->size);
    Py_XDECREF(number);
    return good;
}

static bool local_arg(drupe_py_state *state, PyObject *object, drupe_arg *arg)
{
    if (!drupe_py_is(state, object, DRUPE_PY_TYPE_LocalMemory)) {
        PyErr_Format(PyExc_TypeError, "local memory is passed as drupe.LocalMemory(nbytes), not as %s",
                     Py_TYPE(object)->tp_name);
        return false;
    }
    *arg = (drupe_arg){DRUPE_ARG_LOCAL, ((drupe_py_local *)object)->nbytes, NULL};
    return true;
}

/* Without argument information the object alone decides. */
static bool untyped_arg(drupe_py_state *state, PyObject *object, launch_value *value, drupe_arg *arg)
{
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_LocalMemory)) return local_arg(state, object, arg);
    if (!PyLong_Check(object) && !PyFloat_CheckExact(object) && PyObject_CheckBuffer(object))
        return bytes_arg(object, 0, value, arg);
    PyErr_Format(PyExc_TypeError,
                 "the device does not report the type of this argument: pass USM memory, an array, or a "
                 "number of a definite type such as numpy.int32(5) or ctypes.c_float(0.5), not %s",
                 Py_TYPE(object)->tp_name);
    return false;
}

static bool one_arg(drupe_py_state *state, const drupe_py_launch *launch, size_t index, launch_target *target,
                    launch_value *value, drupe_arg *arg)
{
    PyObject *object = launch->args[index];
    const drupe_arg_info *info = launch->kernel->typed ? &launch->kernel->params[index] : NULL;
    if (!info || info->kind == DRUPE_ARG_POINTER) {
        int done = pointer_arg(state, launch, object, info, index, target, value, arg);
        if (done != 0) return done > 0;
        if (!info) return untyped_arg(state, object, value, arg) || arg_fail(launch, index);
        PyErr_Format(PyExc_TypeError,
                     "USM memory (drupe.memory), a drupe.array.Array or None is needed, not %s%s",
                     Py_TYPE(object)->tp_name,
                     PyObject_CheckBuffer(object) ? "; copy host data with drupe.array.asarray()" : "");
        return arg_fail(launch, index);
    }
    bool good =
        info->kind == DRUPE_ARG_LOCAL ? local_arg(state, object, arg) : value_arg(object, info, value, arg);
    return good || arg_fail(launch, index);
}

/* --- The usual arguments ---------------------------------------------------------------------------------
 */

uint8_t drupe_py_launch_form(const drupe_arg_info *info)
{
    if (info->kind == DRUPE_ARG_POINTER) return (uint8_t)(POINTS_TO | (unsigned)info->scalar);
    return (uint8_t)(info->kind == DRUPE_ARG_VALUE && info->lanes == 1 ? info->scalar : DRUPE_SCALAR_UNKNOWN);
}

/* What drupe_submit_words() takes. */
typedef struct launch_words {
    drupe_queue *queue; /* of the arrays, or NULL */
    drupe_memory *memories[STACK_ARGS];
    uint64_t words[STACK_ARGS];
} launch_words;

static inline bool quick_usm(launch_words *all, size_t index, drupe_queue *queue, drupe_memory *memory,
                             void *pointer)
{
    if (!all->queue) all->queue = queue;
    all->memories[index] = memory;
    all->words[index] = (uintptr_t)pointer;
    return all->queue == queue;
}

static inline bool quick_pointer(const drupe_py_state *state, PyObject *object, unsigned scalar,
                                 launch_words *all, size_t index)
{
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) {
        const drupe_array *array = drupe_py_array_of(object);
        if (array->node) return false; /* it is settled where the arguments are taken one by one */
        bool flat = array->ndim == 1 && array->strides[0] == 1;
        if (array->size == 0 || (!flat && !drupe_array_contiguous(array))) return false;
        if (scalar != DRUPE_SCALAR_UNKNOWN && drupe_py_scalar_of(array->dtype) != (drupe_scalar_type)scalar)
            return false;
        return quick_usm(all, index, array->queue, array->memory, drupe_array_pointer(array));
    }
    if (!drupe_py_is_memory(state, object)) return false;
    drupe_memory *memory = ((drupe_py_memory *)object)->memory;
    return quick_usm(all, index, drupe_memory_queue(memory), memory, drupe_py_memory_pointer(object));
}

/* All arguments, or none. */
static inline bool quick_args(const drupe_py_state *state, const drupe_py_launch *launch, launch_words *all)
{
    const uint8_t *forms = launch->kernel->forms;
    all->queue = NULL;
    for (size_t i = 0; i < launch->nargs; i++) {
        bool taken = forms[i] & POINTS_TO
                         ? quick_pointer(state, launch->args[i], forms[i] & ~POINTS_TO, all, i)
                         : drupe_py_quick_number(launch->args[i], forms[i], &all->words[i]);
        if (!taken) return false;
    }
    return true;
}

/* --- Ranges -------------------------------------------------------------------------------------------- */

static bool range_parse(const drupe_py_launch *launch, drupe_range *range)
{
    *range = (drupe_range){.dims = 1};
    if (!drupe_py_given(launch->global_size)) {
        PyErr_Format(PyExc_TypeError, "kernel '%s' needs global_size=, the number of work-items",
                     drupe_kernel_name(launch->kernel->kernel));
        return false;
    }
    int dims = drupe_py_sizes(launch->global_size, "global_size", range->global, 3);
    if (dims == 0) PyErr_SetString(PyExc_ValueError, "global_size needs 1 to 3 entries");
    if (dims <= 0) return false;
    range->dims = (uint32_t)dims;
    if (!drupe_py_given(launch->local_size)) return true;
    int locals = drupe_py_sizes(launch->local_size, "local_size", range->local, 3);
    if (locals < 0) return false;
    if (locals == dims) return true;
    PyErr_Format(PyExc_ValueError, "local_size has %d dimensions and global_size %d", locals, dims);
    return false;
}

/* Whether it can never come to mean another size. */
static bool is_fixed(PyObject *object)
{
    if (!drupe_py_given(object) || PyLong_CheckExact(object)) return true;
    if (!PyTuple_CheckExact(object)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(object, i))) return false;
    return true;
}

/* `own` has room for it. NULL: an exception is set. */
static const drupe_range *range_arg(const drupe_py_launch *launch, drupe_range *own)
{
    drupe_py_last_call *last = &launch->kernel->last;
    if (launch->global_size == last->global_size && launch->local_size == last->local_size &&
        launch->global_size)
        return &last->range;
    if (!range_parse(launch, own)) return NULL;
    last->looked = 0;
    if (!is_fixed(launch->global_size) || !is_fixed(launch->local_size)) return own;
    last->range = *own;
    last->warm_on = 0;
    Py_XSETREF(last->global_size, Py_NewRef(launch->global_size));
    Py_XSETREF(last->local_size, Py_XNewRef(launch->local_size));
    return own;
}

/* --- The launch ---------------------------------------------------------------------------------------- */

static inline drupe_status submit_now(const drupe_submission *submission, const drupe_py_kernel *kernel,
                                      const drupe_range *range, const drupe_py_launch_args *args,
                                      drupe_event **event)
{
    if (args->words) return drupe_submit_words(submission, kernel->kernel, range, args->words, event);
    return drupe_submit_kernel(submission, kernel->kernel, range, args->args, args->count, event);
}

/* May compile: on this thread, or later on the driver's, where only an event tells that work has not begun.
 */
static drupe_status submit_first(const drupe_submission *submission, const drupe_py_kernel *kernel,
                                 const drupe_range *range, const drupe_py_launch_args *args,
                                 drupe_event **event)
{
    drupe_event *own = NULL, **wanted = event;
    drupe_park_hold(); /* the arguments are addresses */
    void *shown = submission->nwaits > 0
                      ? NULL
                      : drupe_py_launching(drupe_kernel_name(kernel->kernel), submission->queue);
    if (shown && !event) wanted = &own;
    PyThreadState *thread = drupe_py_site_leave();
    drupe_status status = submit_now(submission, kernel, range, args, wanted);
    if (shown) drupe_py_launched(shown, status == DRUPE_OK ? *wanted : NULL);
    drupe_py_site_return(thread);
    drupe_park_let_go();
    drupe_event_release(own);
    return status;
}

/* Whether nothing has to be compiled for it. */
static inline bool is_warm(drupe_py_state *state, const drupe_queue *queue, drupe_py_kernel *kernel,
                           const drupe_range *range)
{
    drupe_py_last_call *last = &kernel->last;
    uint32_t number = drupe_queue_number(queue);
    bool again = range == &last->range;
    if (again && last->warm_on == number) return true;
    /* Some drivers compile a kernel again for each local size when it is first launched. */
    uint64_t key = (uint64_t)(uintptr_t)kernel->kernel ^ ((uint64_t)range->local[0] << 48) ^
                   ((uint64_t)range->local[1] << 40) ^ ((uint64_t)range->local[2] << 32);
    /* A second queue's launch may have to wait for one on the first. */
    key ^= number * UINT64_C(0x9e3779b97f4a7c15);
    bool warm = drupe_py_warm(state, key);
    if (warm && again) last->warm_on = number;
    return warm;
}

static inline drupe_status submit_paced(drupe_py_state *state, drupe_submission *submission,
                                        drupe_py_kernel *kernel, const drupe_range *range,
                                        const drupe_py_launch_args *args, drupe_event **event)
{
    const drupe_range kept = *range; /* the GIL may be given up */
    bool warm = is_warm(state, submission->queue, kernel, range);
    /* Or the engine would have to find out who holds the GIL. */
    if (warm && !submission->site) submission->site = drupe_py_site();
    DRUPE_TRY(drupe_queue_pace(submission->queue));
    return warm ? submit_now(submission, kernel, &kept, args, event)
                : submit_first(submission, kernel, &kept, args, event);
}

drupe_status drupe_py_launch_submit(drupe_py_state *state, drupe_submission *submission,
                                    drupe_py_kernel *kernel, const drupe_range *range,
                                    const drupe_py_launch_args *args, drupe_event **event)
{
    return submit_paced(state, submission, kernel, range, args, event);
}

static inline bool submit(drupe_py_state *state, drupe_submission *submission, const drupe_py_launch *launch,
                          const drupe_range *range, const drupe_py_launch_args *args, drupe_event **event)
{
    drupe_status status = submit_paced(state, submission, launch->kernel, range, args, event);
    if (status == DRUPE_OK) return true;
    if (status != DRUPE_E_INVALID || !drupe_py_wrong_device(state, launch, submission->queue))
        drupe_py_raise_on(state, submission->queue);
    return false;
}

static bool launch_with(drupe_py_state *state, const drupe_py_launch *launch, const drupe_range *range,
                        launch_value *values, drupe_arg *args, drupe_event **event)
{
    launch_target target = {NULL, 0};
    for (size_t i = 0; i < launch->nargs; i++)
        if (!one_arg(state, launch, i, &target, &values[i], &args[i])) return false;
    drupe_py_waits waits;
    if (!drupe_py_waits_arg(state, launch->wait_for, &waits)) return false;
    drupe_submission submission = {.waits = waits.events, .nwaits = waits.count};
    submission.queue = launch->queue ? launch->queue : target.queue ? target.queue : launch->kernel->queue;
    const drupe_py_launch_args all = {.args = args, .count = launch->nargs};
    bool good = submit(state, &submission, launch, range, &all, event);
    drupe_py_waits_clear(&waits);
    return good;
}

static bool count_check(const drupe_py_launch *launch)
{
    const drupe_py_kernel *kernel = launch->kernel;
    if (!kernel->counted || launch->nargs == kernel->nparams) return true;
    bool sized = launch->nargs < kernel->nparams || drupe_py_given(launch->global_size);
    PyErr_Format(PyExc_TypeError, "kernel '%s' takes %zu argument%s, and %zu %s given%s",
                 drupe_kernel_name(kernel->kernel), kernel->nparams, kernel->nparams == 1 ? "" : "s",
                 launch->nargs, launch->nargs == 1 ? "was" : "were",
                 sized ? "" : "; the number of work-items is passed as global_size=");
    return false;
}

/* Arguments of any kind, any number of them. */
static bool launch_all(drupe_py_state *state, const drupe_py_launch *launch, const drupe_range *range,
                       drupe_event **event)
{
    if (launch->nargs <= STACK_ARGS) {
        launch_value values[STACK_ARGS];
        drupe_arg args[STACK_ARGS];
        return launch_with(state, launch, range, values, args, event);
    }
    launch_value *values = PyMem_Calloc(launch->nargs, sizeof *values);
    drupe_arg *args = PyMem_Calloc(launch->nargs, sizeof *args);
    bool good = values && args;
    if (good)
        good = launch_with(state, launch, range, values, args, event);
    else
        PyErr_NoMemory();
    PyMem_Free(values);
    PyMem_Free(args);
    return good;
}

/* The conversion of one argument may run Python code, when the address of another is known. */
static bool launch_any(drupe_py_state *state, const drupe_py_launch *launch, const drupe_range *range,
                       drupe_event **event)
{
    drupe_park_hold();
    bool good = launch_all(state, launch, range, event);
    drupe_park_let_go();
    return good;
}

bool drupe_py_launch_run(drupe_py_state *state, const drupe_py_launch *launch, drupe_event **event)
{
    drupe_range own;
    launch_words all;
    /* May run Python code, which may launch the kernel with another range. */
    const uint32_t site = drupe_py_site();
    const drupe_range *range = count_check(launch) ? range_arg(launch, &own) : NULL;
    if (!range) return false;
    if (site != launch->kernel->last.looked) {
        launch->kernel->last.looked = site;
        drupe_py_oversize_look(state, launch, range, site);
    }
    if (!launch->kernel->worded || drupe_py_given(launch->wait_for) || !quick_args(state, launch, &all)) {
        if (range != &own) own = *range; /* Python code may launch the kernel once more meanwhile */
        return launch_any(state, launch, &own, event);
    }
    drupe_submission submission = {.memories = all.memories, .site = site};
    submission.queue = launch->queue ? launch->queue : all.queue ? all.queue : launch->kernel->queue;
    const drupe_py_launch_args args = {.words = all.words};
    return submit(state, &submission, launch, range, &args, event);
}
