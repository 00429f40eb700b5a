/* Entries of a launcher: a compiled kernel, and the calls that it serves. */
#include "engine/python/dispatch/dispatch_room.h"
#include "engine/python/errors/errors_room.h"

/* --- What serves what -------------------------------------------------------------------------------------
 */

drupe_queue *drupe_py_call_queue(drupe_py_state *state, const drupe_py_kernel_call *call, drupe_queue **own)
{
    *own = NULL;
    if (call->queue) return call->queue;
    *own = drupe_py_queue_arg(state, NULL, NULL, NULL);
    return *own;
}

/* Whether the objects that the compiler took for constants are still the same ones. */
static bool watched_holds(const drupe_py_entry *entry)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entry->watched); i++) {
        PyObject *one = PyTuple_GET_ITEM(entry->watched, i);
        PyObject *holder = PyTuple_GET_ITEM(one, 0), *now;
        if (PyCell_Check(holder))
            now = PyCell_GET(holder);
        else
            now = PyDict_GetItemWithError(holder, PyTuple_GET_ITEM(one, 1)); /* borrowed: never followed */
        if (now == PyTuple_GET_ITEM(one, 2)) continue;
        if (!now && PyTuple_GET_ITEM(one, 2) == Py_NotImplemented && !PyErr_Occurred())
            continue; /* it is to have no value */
        if (PyErr_Occurred()) (void)drupe_py_forgive();
        return false;
    }
    return true;
}

bool drupe_py_entry_serves(const drupe_py_entry *entry, const drupe_py_kernel_call *call,
                           const drupe_queue *queue)
{
    if (entry->words != call->words) return false;
    for (size_t i = 0; i < entry->words; i++)
        if (entry->signature[i] != call->signature[i]) return false;
    return entry->device == drupe_queue_device(queue) && entry->context == drupe_queue_context(queue) &&
           (PyTuple_GET_SIZE(entry->watched) == 0 || watched_holds(entry));
}

static bool same_watched(PyObject *a, PyObject *b)
{
    bool same = PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b);
    for (Py_ssize_t i = 0; same && i < PyTuple_GET_SIZE(a); i++)
        for (Py_ssize_t k = 0; same && k < 3; k++)
            same = PyTuple_GET_ITEM(PyTuple_GET_ITEM(a, i), k) == PyTuple_GET_ITEM(PyTuple_GET_ITEM(b, i), k);
    return same;
}

bool drupe_py_entry_same(const drupe_py_entry *a, const drupe_py_entry *b)
{
    return a->words == b->words && memcmp(a->signature, b->signature, a->words * sizeof *a->signature) == 0 &&
           a->device == b->device && a->context == b->context && same_watched(a->watched, b->watched);
}

/* --- Making -----------------------------------------------------------------------------------------------
 */

static bool read_form(PyObject *object, drupe_py_form *form)
{
    static const char *const words[] = {"host_range", "host_groups", "range", "groups"};
    for (int i = 0; PyUnicode_Check(object) && i < 4; i++) {
        if (PyUnicode_CompareWithASCIIString(object, words[i]) != 0) continue;
        *form = (drupe_py_form)i;
        return true;
    }
    PyErr_Format(PyExc_ValueError, "there is no form %R", object);
    return false;
}

/* The form, and what is given with it. */
static bool read_way(drupe_py_entry *entry, const drupe_py_addition *given, const drupe_py_kernel_call *call)
{
    if (!read_form(given->form, &entry->form)) return false;
    bool groups = entry->form == DRUPE_PY_FORM_GROUPS || entry->form == DRUPE_PY_FORM_HOST_GROUPS;
    if (groups != call->grouped) {
        PyErr_Format(PyExc_ValueError, "the form %R is not one of %s", given->form,
                     call->grouped ? "an NdRange" : "a Range");
        return false;
    }
    entry->grain = 1;
    entry->room = SIZE_MAX;
    if ((drupe_py_given(given->grain) && !drupe_py_size(given->grain, "grain", &entry->grain)) ||
        (drupe_py_given(given->room) && !drupe_py_size(given->room, "room", &entry->room)) ||
        (drupe_py_given(given->item_bytes) &&
         !drupe_py_size(given->item_bytes, "item_bytes", &entry->item_bytes)))
        return false;
    if (!drupe_py_given(given->local)) return true;
    int dims = drupe_py_sizes(given->local, "local", entry->local, DRUPE_PY_DIMS);
    if (dims < 0) return false;
    bool good = entry->form == DRUPE_PY_FORM_RANGE && dims == call->dims;
    for (int i = 0; good && i < dims; i++) good = entry->local[i] > 0;
    if (!good) PyErr_Format(PyExc_ValueError, "local=%R does not fit the form %R", given->local, given->form);
    return good;
}

/* A tuple of its own, whose parts are tuples. */
static PyObject *read_watched(PyObject *object)
{
    PyObject *all = PySequence_Tuple(object);
    for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(all); i++) {
        PyObject *one = PyTuple_GET_ITEM(all, i);
        bool good = PyTuple_Check(one) && PyTuple_GET_SIZE(one) == 3;
        PyObject *holder = good ? PyTuple_GET_ITEM(one, 0) : NULL;
        if (good && (PyCell_Check(holder) ||
                     (PyDict_Check(holder) && PyUnicode_CheckExact(PyTuple_GET_ITEM(one, 1)))))
            continue;
        PyErr_Format(PyExc_TypeError, "what is watched is (dict, name, value) or (cell, name, value), not %R",
                     one);
        Py_CLEAR(all);
    }
    return all;
}

static bool read_objects(drupe_py_state *state, drupe_py_entry *entry, const drupe_py_addition *given)
{
    if (!drupe_py_is(state, given->kernel, DRUPE_PY_TYPE_Kernel)) {
        PyErr_Format(PyExc_TypeError, "kernel must be a drupe.Kernel, not %s",
                     Py_TYPE(given->kernel)->tp_name);
        return false;
    }
    entry->kernel = (drupe_py_kernel *)Py_NewRef(given->kernel);
    entry->watched = read_watched(given->watched);
    if (!entry->watched || !drupe_py_given(given->failures)) return entry->watched != NULL;
    if (!drupe_py_is(state, given->failures, DRUPE_PY_TYPE_Array) ||
        !drupe_array_contiguous(drupe_py_array_of(given->failures))) {
        PyErr_SetString(PyExc_TypeError, "failures must be a drupe.array.Array without gaps");
        return false;
    }
    entry->failures = Py_NewRef(given->failures);
    return drupe_py_settle(state, drupe_py_array_of(entry->failures));
}

static bool read_place(drupe_py_state *state, drupe_py_entry *entry, const drupe_py_kernel_call *call)
{
    drupe_queue *own, *queue = drupe_py_call_queue(state, call, &own);
    if (!queue) return false;
    entry->device = drupe_device_retain(drupe_queue_device(queue));
    entry->context = drupe_context_retain(drupe_queue_context(queue));
    entry->workers = (size_t)drupe_device_number(entry->device, DRUPE_INFO_MAX_COMPUTE_UNITS, 1);
    if (entry->workers == 0) entry->workers = 1;
    drupe_py_queue_release(own);
    return true;
}

static PyObject *describe_args(drupe_py_state *state, PyObject *args)
{
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        drupe_py_append(&list, drupe_py_call_describe(state, PyTuple_GET_ITEM(args, i)));
    return drupe_py_tuple(list);
}

static PyObject *tell(drupe_py_state *state, const drupe_py_entry *entry, const drupe_py_addition *given,
                      const drupe_py_kernel_call *call)
{
    PyObject *device = drupe_py_device_wrap(state, drupe_device_retain(entry->device));
    return Py_BuildValue("{sNsNsssisOsOsOsOsnsO}", "device", device, "signature",
                         describe_args(state, given->args), "space", call->grouped ? "NdRange" : "Range",
                         "dims", call->dims, "plan", given->plan, "form", given->form, "watched",
                         entry->watched, "local", given->local ? given->local : Py_None, "grain",
                         (Py_ssize_t)entry->grain, "failures", entry->failures ? entry->failures : Py_None);
}

static bool read_all(drupe_py_state *state, drupe_py_entry *entry, const drupe_py_addition *given,
                     const drupe_py_kernel_call *call)
{
    if (!read_objects(state, entry, given) || !read_way(entry, given, call) ||
        !read_place(state, entry, call) || !drupe_py_plan_read(state, entry, given->plan, given->args, call))
        return false;
    entry->told = tell(state, entry, given, call);
    return entry->told != NULL;
}

static void refuse_call(drupe_py_state *state, const drupe_py_kernel_call *call)
{
    if (call->other)
        drupe_py_raise_text(state, DRUPE_E_PLACEMENT,
                            "the arrays live on different queues, of %s and of %s. Bring them together with "
                            "to_device().",
                            drupe_device_filter(drupe_queue_device(call->queue)),
                            drupe_device_filter(drupe_queue_device(call->other)));
    else
        PyErr_Format(PyExc_ValueError,
                     "a launcher does not know these arguments: it takes a Range or NdRange, and arrays, "
                     "numbers, LocalAccessors and tuples of them, %d in all",
                     DRUPE_PY_NODES);
}

drupe_py_entry *drupe_py_entry_new(drupe_py_state *state, const drupe_py_addition *given)
{
    drupe_py_kernel_call call;
    if (!PyTuple_Check(given->args) || !PyTuple_Check(given->plan)) {
        PyErr_SetString(PyExc_TypeError, "the arguments and the plan are tuples");
        return NULL;
    }
    int read = drupe_py_call_read(state, &call, given->space, &PyTuple_GET_ITEM(given->args, 0),
                                  (size_t)PyTuple_GET_SIZE(given->args), false);
    if (read == 0) refuse_call(state, &call);
    if (read <= 0) return NULL;
    drupe_py_entry *entry = PyMem_Calloc(1, sizeof *entry + call.words * sizeof *entry->signature);
    if (!entry) return (drupe_py_entry *)PyErr_NoMemory();
    entry->references = 1;
    entry->words = call.words;
    memcpy(entry->signature, call.signature, call.words * sizeof *entry->signature);
    if (read_all(state, entry, given, &call)) return entry;
    drupe_py_entry_release(entry);
    return NULL;
}

void drupe_py_entry_release(drupe_py_entry *entry)
{
    if (!entry || --entry->references > 0) return;
    if (!drupe_py_forked()) {
        drupe_device_release(entry->device);
        drupe_context_release(entry->context);
    }
    Py_XDECREF(entry->kernel);
    Py_XDECREF(entry->watched);
    Py_XDECREF(entry->failures);
    Py_XDECREF(entry->told);
    PyMem_Free(entry);
}

bool drupe_py_entry_replace(drupe_py_entry *entry, PyObject *kernel)
{
    drupe_py_kernel *other = (drupe_py_kernel *)kernel;
    bool same = other->nparams == entry->kernel->nparams && other->typed == entry->kernel->typed;
    for (size_t i = 0; same && other->typed && i < other->nparams; i++)
        same = other->forms[i] == entry->kernel->forms[i];
    if (!same) {
        PyErr_Format(PyExc_ValueError, "the kernel '%s' has other parameters than the one that it replaces",
                     drupe_kernel_name(other->kernel));
        return false;
    }
    Py_SETREF(entry->kernel, (drupe_py_kernel *)Py_NewRef(kernel));
    return true;
}
