/* A parser for calls with few names: keywords are interned, so the first comparison by pointer nearly always
 * decides. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/objects/objects_room.h"
#include <math.h>

/* Index of a name in the signature, or -1. */
static int name_find(const drupe_py_signature *signature, drupe_py_name name)
{
    for (int i = 0; i < signature->count; i++)
        if (signature->names[i] == name) return i;
    return -1;
}

/* Index of the keyword among the signature's names, or -1. Programs written for dpctl call the queue
 * sycl_queue. */
static int keyword_find(const drupe_py_state *state, const drupe_py_signature *signature, PyObject *keyword)
{
    for (int i = 0; i < signature->count; i++)
        if (state->names[signature->names[i]] == keyword) return i;
    for (int i = 0; i < signature->count; i++)
        if (PyUnicode_Compare(state->names[signature->names[i]], keyword) == 0) return i;
    bool dpctl = PyUnicode_Compare(state->names[DRUPE_PY_NAME_sycl_queue], keyword) == 0;
    return dpctl ? name_find(signature, DRUPE_PY_NAME_queue) : -1;
}

/* The names there are help more than a guess at the one that was meant. */
static void keyword_refuse(const drupe_py_state *state, const drupe_py_signature *signature,
                           PyObject *keyword)
{
    PyObject *names = PyUnicode_FromString("");
    for (int i = 0; i < signature->count && names; i++) {
        PyObject *more =
            PyUnicode_FromFormat("%U%s%U", names, i > 0 ? ", " : "", state->names[signature->names[i]]);
        Py_SETREF(names, more);
    }
    if (!names) return;
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'; there are: %U",
                 signature->function, keyword, names);
    Py_DECREF(names);
}

static inline bool keyword_set(const drupe_py_state *state, const drupe_py_signature *signature,
                               PyObject *keyword, PyObject *value, PyObject **out)
{
    int index = keyword_find(state, signature, keyword);
    if (index < 0) {
        keyword_refuse(state, signature, keyword);
        return false;
    }
    if (out[index]) {
        PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", signature->function,
                     keyword);
        return false;
    }
    out[index] = value;
    return true;
}

static bool positional_set(const drupe_py_signature *signature, PyObject *const *args, Py_ssize_t nargs,
                           PyObject **out)
{
    for (int i = 0; i < signature->count; i++) out[i] = NULL;
    if (nargs > signature->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional argument%s (%zd given)",
                     signature->function, signature->positional, signature->positional == 1 ? "" : "s",
                     nargs);
        return false;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) out[i] = args[i];
    return true;
}

static bool required_check(const drupe_py_state *state, const drupe_py_signature *signature, PyObject **out)
{
    for (int i = 0; i < signature->required; i++) {
        if (out[i]) continue;
        PyErr_Format(PyExc_TypeError, "%s() missing required argument '%U' (position %d)",
                     signature->function, state->names[signature->names[i]], i + 1);
        return false;
    }
    return true;
}

bool drupe_py_args(const drupe_py_state *state, const drupe_py_signature *signature, PyObject *const *args,
                   Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
{
    if (!positional_set(signature, args, nargs, out)) return false;
    Py_ssize_t nkeywords = !kwnames ? 0 : PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t i = 0; i < nkeywords; i++)
        if (!keyword_set(state, signature, PyTuple_GET_ITEM(kwnames, i), args[nargs + i], out)) return false;
    return required_check(state, signature, out);
}

bool drupe_py_args_new(const drupe_py_state *state, const drupe_py_signature *signature, PyObject *args,
                       PyObject *kwargs, PyObject **out)
{
    if (!positional_set(signature, &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), out)) return false;
    PyObject *keyword, *value;
    Py_ssize_t position = 0;
    while (kwargs && PyDict_Next(kwargs, &position, &keyword, &value)) /* borrowed, as `args` is */
        if (!keyword_set(state, signature, keyword, value, out)) return false;
    return required_check(state, signature, out);
}

bool drupe_py_size(PyObject *object, const char *what, size_t *size)
{
    Py_ssize_t value = PyLong_CheckExact(object) ? PyLong_AsSsize_t(object)
                                                 : PyNumber_AsSsize_t(object, PyExc_OverflowError);
    if (value == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s must be an integer, not %s", what, Py_TYPE(object)->tp_name);
        return false;
    }
    if (value < 0) {
        PyErr_Format(PyExc_ValueError, "%s must not be negative, and %zd is", what, value);
        return false;
    }
    *size = (size_t)value;
    return true;
}

int drupe_py_sizes(PyObject *object, const char *what, size_t *sizes, int capacity)
{
    if (PyLong_CheckExact(object) || (PyIndex_Check(object) && !PySequence_Check(object)))
        return drupe_py_size(object, what, sizes) ? 1 : -1;
    if (!PySequence_Check(object) || PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be an integer or a sequence of integers, not %s", what,
                     Py_TYPE(object)->tp_name);
        return -1;
    }
    PyObject *sequence = PySequence_Tuple(object);
    if (!sequence) return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(sequence);
    if (count > capacity) {
        PyErr_Format(PyExc_ValueError, "%s may have at most %d entries, and %zd were given", what, capacity,
                     count);
        count = -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!drupe_py_size(PyTuple_GET_ITEM(sequence, i), what, &sizes[i])) count = -1;
    Py_DECREF(sequence);
    return (int)count;
}

int drupe_py_flag(PyObject *object, int fallback)
{
    return drupe_py_given(object) ? PyObject_IsTrue(object) : fallback;
}

bool drupe_py_timeout(PyObject *object, uint64_t *timeout_ns)
{
    *timeout_ns = DRUPE_FOREVER;
    if (!drupe_py_given(object)) return true;
    if (!PyNumber_Check(object)) {
        PyErr_Format(PyExc_TypeError, "timeout is a number of seconds or None, not %s",
                     Py_TYPE(object)->tp_name);
        return false;
    }
    double seconds = PyFloat_AsDouble(object);
    if (seconds == -1.0 && PyErr_Occurred()) return false;
    if (!(seconds >= 0)) {
        PyErr_SetString(PyExc_ValueError,
                        "timeout is in seconds and must not be negative; None waits for ever");
        return false;
    }
    if (seconds < 1e9) *timeout_ns = (uint64_t)(seconds * 1e9);
    return true;
}

bool drupe_py_mem_kind(PyObject *object, drupe_mem_kind *kind)
{
    static const drupe_mem_kind kinds[] = {DRUPE_MEM_DEVICE, DRUPE_MEM_SHARED, DRUPE_MEM_HOST};
    if (!drupe_py_given(object)) return true;
    for (size_t i = 0; PyUnicode_Check(object) && i < sizeof kinds / sizeof *kinds; i++)
        if (PyUnicode_CompareWithASCIIString(object, drupe_mem_kind_name(kinds[i])) == 0) {
            *kind = kinds[i];
            return true;
        }
    PyErr_Format(PyExc_ValueError, "usm_type must be \"device\", \"shared\" or \"host\", not %R", object);
    return false;
}

drupe_device *drupe_py_device_arg(drupe_py_state *state, PyObject *object)
{
    drupe_device *device = NULL;
    const char *filter = NULL;
    if (object && drupe_py_is(state, object, DRUPE_PY_TYPE_Device))
        return drupe_device_retain(((drupe_py_device *)object)->device);
    if (!drupe_py_given(object)) {
        PyObject *chosen = NULL;
        if (PyContextVar_Get(state->chosen, NULL, &chosen) < 0) return NULL;
        if (chosen && drupe_py_is(state, chosen, DRUPE_PY_TYPE_Device))
            device = drupe_device_retain(((drupe_py_device *)chosen)->device);
        Py_XDECREF(chosen);
        if (device) return device;
    } else {
        if (!PyUnicode_Check(object)) {
            PyErr_Format(
                PyExc_TypeError,
                "a device is named by a drupe.Device or a filter such as \"opencl:cpu:0\", not by %s",
                Py_TYPE(object)->tp_name);
            return NULL;
        }
        filter = PyUnicode_AsUTF8(object);
        if (!filter) return NULL;
        if (filter[0] == '\0') {
            drupe_py_raise_text(state, DRUPE_E_INVALID,
                                "the device filter is empty. Write a backend, a type, a number or a mix of "
                                "them, such as \"gpu\", \"host\" or \"opencl:cpu:0\".");
            return NULL;
        }
    }
    /* The first look at a vendor's devices opens its library, which takes a while. */
    drupe_status status;
    PyThreadState *thread = PyEval_SaveThread();
    status = drupe_device_select(filter, &device);
    PyEval_RestoreThread(thread);
    if (status == DRUPE_OK) return device;
    drupe_py_raise(state, NULL);
    return NULL;
}

/* The queue that an object stands for by itself; borrowed, NULL when it stands for none. x.device stands for
 * that of x: libraries make arrays to combine with x by device=x.device, and know nothing of queues. */
static drupe_queue *queue_of(const drupe_py_state *state, PyObject *object)
{
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Device)) return ((drupe_py_device *)object)->array_queue;
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Queue)) return ((drupe_py_queue *)object)->queue;
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) return ((drupe_py_array *)object)->array.queue;
    return NULL;
}

drupe_queue *drupe_py_queue_arg(drupe_py_state *state, PyObject *queue, PyObject *device,
                                drupe_queue *fallback)
{
    drupe_queue *found = NULL;
    if (drupe_py_given(queue)) {
        if (!drupe_py_is(state, queue, DRUPE_PY_TYPE_Queue)) {
            PyErr_Format(PyExc_TypeError, "queue must be a drupe.Queue, not %s", Py_TYPE(queue)->tp_name);
            return NULL;
        }
        found = ((drupe_py_queue *)queue)->queue;
        if (drupe_py_given(device)) {
            PyErr_SetString(PyExc_TypeError, "give either device or queue: a queue has its device already");
            return NULL;
        }
    } else if (drupe_py_given(device)) {
        found = queue_of(state, device);
    } else {
        found = fallback;
    }
    if (found) return drupe_queue_retain(found);
    drupe_device *chosen = drupe_py_device_arg(state, device);
    if (!chosen) return NULL;
    drupe_status status = drupe_device_queue(chosen, &found);
    if (status != DRUPE_OK) drupe_py_raise(state, chosen);
    drupe_device_release(chosen);
    return status == DRUPE_OK ? found : NULL;
}

void drupe_py_waits_clear(drupe_py_waits *waits)
{
    for (size_t i = 0; i < waits->count; i++) drupe_event_release(waits->events[i]);
    PyMem_Free(waits->events);
    *waits = (drupe_py_waits){NULL, 0};
}

PyObject *drupe_py_behind(const drupe_py_state *state, PyObject *object)
{
    PyObject *found = PyObject_GetAttr(object, state->names[DRUPE_PY_NAME__drupe]);
    if (found) return found;
    PyErr_Clear();
    return Py_NewRef(object);
}

static bool waits_add(drupe_py_state *state, PyObject *object, drupe_py_waits *waits)
{
    bool direct = drupe_py_is(state, object, DRUPE_PY_TYPE_Event);
    PyObject *event = direct ? Py_NewRef(object) : drupe_py_behind(state, object);
    bool good = direct || drupe_py_is(state, event, DRUPE_PY_TYPE_Event);
    if (good)
        waits->events[waits->count++] = drupe_event_retain(((drupe_py_event *)event)->event);
    else
        PyErr_Format(PyExc_TypeError, "wait_for takes a drupe.Event or a sequence of them, not %s",
                     Py_TYPE(object)->tp_name);
    Py_DECREF(event);
    return good;
}

bool drupe_py_waits_arg(drupe_py_state *state, PyObject *object, drupe_py_waits *waits)
{
    *waits = (drupe_py_waits){NULL, 0};
    if (!drupe_py_given(object) || (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == 0) ||
        (PyList_CheckExact(object) && PyList_GET_SIZE(object) == 0))
        return true;
    bool one = drupe_py_is(state, object, DRUPE_PY_TYPE_Event);
    PyObject *events = one ? PyTuple_Pack(1, object) : PySequence_Tuple(object);
    if (!events) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(object)->tp_iter)
            PyErr_Format(PyExc_TypeError, "what to wait for is a drupe.Event or a sequence of them, not %s",
                         Py_TYPE(object)->tp_name);
        return false;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(events);
    waits->events = PyMem_New(drupe_event *, (size_t)count);
    bool good = waits->events != NULL;
    if (!good) PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < count; i++)
        good = waits_add(state, PyTuple_GET_ITEM(events, i), waits);
    Py_DECREF(events);
    if (!good) drupe_py_waits_clear(waits);
    return good;
}
