/* Calls of kernels in Python: call_kernel(), call_kernel_async(), and launchers that are called.
 *
 * This is the hot path. It knows what was compiled before; everything else, all complaints among it, is left
 * to the launcher's function slow(), which is Python. */
#include "engine/python/dispatch/dispatch_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/submit/py_submit_room.h"
#include "engine/python/waits/waits_room.h"

/* --- The launch -------------------------------------------------------------------------------------------
 */

/* What a call is given. */
typedef struct request {
    PyObject *space, *wait_for;
    PyObject *const *args;
    size_t nargs;
    PyObject *tuple;      /* the same arguments, or NULL */
    drupe_py_waits waits; /* what is to be waited for, once run() has read that */
} request;

/* What becomes of it: one of the two, owned. */
typedef struct outcome {
    drupe_event *event;
    PyObject *object; /* the Event that slow() gave */
} outcome;

/* As drupe_py_launch_run() does, when the place or the number of work-items has changed. */
static inline void look(drupe_py_state *state, drupe_py_entry *entry, const request *from,
                        const drupe_py_kernel_call *call, uint32_t site)
{
    size_t items = 1;
    for (int i = 0; i < call->dims; i++) items *= call->global[i];
    if (site == 0) return;
    if (site == entry->looked && items == entry->looked_items) return;
    entry->looked = site;
    entry->looked_items = items;
    const drupe_py_launch launch = {.kernel = entry->kernel, .args = from->args, .nargs = from->nargs};
    drupe_range range = {.dims = (uint32_t)call->dims};
    memcpy(range.global, call->global, sizeof range.global);
    drupe_py_oversize_look(state, &launch, &range, site);
}

/* 1, or 0 where a value does not fit, or DRUPE_PY_AGAIN, or -1 with an exception. */
static int submit(drupe_py_state *state, drupe_py_entry *entry, const drupe_py_kernel_call *call,
                  drupe_submission *submission, drupe_event **event)
{
    drupe_py_filled filled;
    if (entry->failures && !drupe_py_settle(state, drupe_py_array_of(entry->failures))) return -1;
    /* Python code that runs meanwhile may replace the entry's. */
    drupe_py_kernel *kernel = (drupe_py_kernel *)Py_NewRef(entry->kernel);
    int result = drupe_py_plan_fill(state, entry, kernel, call, &filled);
    if (result == 1) {
        const drupe_py_launch_args args = {kernel->worded ? filled.words : NULL, filled.args, entry->nsteps};
        submission->memories = filled.memories;
        if (entry->failures) submission->effects = &entry->effects;
        if (drupe_py_launch_submit(state, submission, kernel, &filled.range, &args, event) != DRUPE_OK) {
            drupe_py_raise_on(state, submission->queue);
            result = -1;
        }
    }
    Py_DECREF(kernel);
    return result;
}

/* 1, or 0 where no entry serves the call, or DRUPE_PY_AGAIN, or -1 with an exception. */
static int launch(drupe_py_state *state, drupe_py_launcher *self, const request *from, drupe_event **event)
{
    drupe_py_kernel_call call;
    drupe_queue *own, *queue;
    const uint32_t site = drupe_py_site();
    int result = drupe_py_call_read(state, &call, from->space, from->args, from->nargs, true);
    if (result <= 0) return result;
    queue = drupe_py_call_queue(state, &call, &own);
    if (!queue) return -1;
    drupe_py_entry *entry = drupe_py_launcher_find(self, &call, queue);
    if (entry) {
        drupe_submission submission = {
            .queue = queue, .waits = from->waits.events, .nwaits = from->waits.count, .site = site};
        look(state, entry, from, &call, site);
        result = submit(state, entry, &call, &submission, event);
        drupe_py_entry_release(entry);
    }
    if (own) drupe_py_queue_release(own);
    return entry ? result : PyErr_Occurred() ? -1 : 0;
}

/* The Event that slow() gave, or None where it has added an entry. */
static PyObject *call_slow(drupe_py_state *state, drupe_py_launcher *self, const request *from)
{
    PyObject *tuple = Py_XNewRef(from->tuple), *slow = Py_NewRef(self->slow);
    if (!tuple) tuple = PyTuple_New((Py_ssize_t)from->nargs);
    for (size_t i = 0; tuple && !from->tuple && i < from->nargs; i++)
        PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, Py_NewRef(from->args[i]));
    PyObject *const args[] = {from->space, from->wait_for, tuple};
    PyObject *result = !tuple ? NULL : PyObject_Vectorcall(slow, args, 3, NULL);
    Py_DECREF(slow);
    Py_XDECREF(tuple);
    if (!result || result == Py_None || drupe_py_is(state, result, DRUPE_PY_TYPE_Event)) return result;
    PyErr_Format(PyExc_TypeError, "slow() of a launcher gives a drupe.Event or None, not %s",
                 Py_TYPE(result)->tp_name);
    Py_DECREF(result);
    return NULL;
}

/* What to wait for is read before all else: that may run Python code. It is a list or tuple from then on, so
 * that slow() can read it once more. False with an exception. */
static bool read_waits(drupe_py_state *state, request *from)
{
    PyObject *given = from->wait_for;
    bool fixed =
        given == Py_None || PyTuple_CheckExact(given) || PyList_CheckExact(given) || !Py_TYPE(given)->tp_iter;
    from->wait_for = fixed ? Py_NewRef(given) : PySequence_Tuple(given);
    if (from->wait_for && drupe_py_waits_arg(state, from->wait_for, &from->waits)) return true;
    Py_XDECREF(from->wait_for);
    return false;
}

static bool run_read(drupe_py_state *state, drupe_py_launcher *self, const request *from, outcome *to)
{
    int done;
    do done = launch(state, self, from, &to->event);
    while (done == DRUPE_PY_AGAIN);
    if (done != 0) return done > 0;
    to->object = call_slow(state, self, from);
    if (to->object != Py_None) return to->object != NULL;
    Py_CLEAR(to->object);
    do done = launch(state, self, from, &to->event);
    while (done == DRUPE_PY_AGAIN);
    if (done == 0)
        PyErr_SetString(PyExc_RuntimeError,
                        "slow() of a launcher has added no entry for the arguments that it got");
    return done > 0;
}

static bool run(drupe_py_state *state, PyObject *launcher, request *from, outcome *to)
{
    *to = (outcome){NULL, NULL};
    if (!drupe_py_enter(state) || !read_waits(state, from)) return false;
    bool good = run_read(state, (drupe_py_launcher *)launcher, from, to);
    drupe_py_waits_clear(&from->waits);
    Py_DECREF(from->wait_for);
    return good;
}

static PyObject *event_object(drupe_py_state *state, const outcome *of)
{
    return of->object ? of->object : drupe_py_event_wrap(state, of->event);
}

/* --- Being called -----------------------------------------------------------------------------------------
 */

PyObject *drupe_py_launcher_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    drupe_py_state *state = drupe_py_state_of(callable);
    if (PyVectorcall_NARGS(nargsf) != 3 || kwnames || !PyTuple_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError,
                        "a launcher takes a space, what to wait for, and a tuple of arguments");
        return NULL;
    }
    request from = {.space = args[0],
                    .wait_for = args[1],
                    .args = &PyTuple_GET_ITEM(args[2], 0),
                    .nargs = (size_t)PyTuple_GET_SIZE(args[2]),
                    .tuple = args[2]};
    outcome to;
    return run(state, callable, &from, &to) ? event_object(state, &to) : NULL;
}

/* The launcher of a kernel. New reference. */
static PyObject *launcher_arg(drupe_py_state *state, PyObject *kernel, const char *function)
{
    PyObject *launcher = PyObject_GetAttr(kernel, state->names[DRUPE_PY_NAME__launcher]);
    if (launcher && drupe_py_is(state, launcher, DRUPE_PY_TYPE_Launcher)) return launcher;
    if (launcher || PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s takes a function that @drupe.kernel decorates, not %s", function,
                     Py_TYPE(kernel)->tp_name);
    }
    Py_XDECREF(launcher);
    return NULL;
}

static PyObject *call_kernel(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (nargs < 2) {
        PyErr_SetString(PyExc_TypeError,
                        "call_kernel(kernel, space, *args) takes a kernel and a Range or NdRange");
        return NULL;
    }
    PyObject *launcher = launcher_arg(state, args[0], "call_kernel()");
    if (!launcher) return NULL;
    request from = {.space = args[1], .wait_for = Py_None, .args = args + 2, .nargs = (size_t)nargs - 2};
    outcome to;
    bool good = run(state, launcher, &from, &to);
    if (good) {
        good = drupe_py_event_wait(state, to.object ? ((drupe_py_event *)to.object)->event : to.event,
                                   DRUPE_FOREVER);
        drupe_event_release(to.event);
        Py_XDECREF(to.object);
    }
    Py_DECREF(launcher);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *call_kernel_async(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (nargs < 3) {
        PyErr_SetString(PyExc_TypeError,
                        "call_kernel_async(kernel, space, dependent_events, *args) takes a kernel, "
                        "a Range or NdRange and a sequence of events");
        return NULL;
    }
    PyObject *launcher = launcher_arg(state, args[0], "call_kernel_async()");
    if (!launcher) return NULL;
    request from = {.space = args[1], .wait_for = args[2], .args = args + 3, .nargs = (size_t)nargs - 3};
    outcome to;
    PyObject *event = run(state, launcher, &from, &to) ? event_object(state, &to) : NULL;
    PyObject *both = !event ? NULL : PyTuple_Pack(2, event, event);
    Py_XDECREF(event);
    Py_DECREF(launcher);
    return both;
}

/* --- For the module ---------------------------------------------------------------------------------------
 */

/* What users know as functions of the package. */
static PyMethodDef package_functions[] = {
    {"call_kernel", DRUPE_PY_PLACES(call_kernel),
     PyDoc_STR("call_kernel($module, kernel, space, /, *args)\n--\n\n"
               "Run a kernel over a Range or an NdRange of work-items, and wait for it.")},
    {"call_kernel_async", DRUPE_PY_PLACES(call_kernel_async),
     PyDoc_STR("call_kernel_async($module, kernel, space, dependent_events, /, *args)\n--\n\n"
               "Queue a kernel over a Range or an NdRange of work-items, to run when the events, a\n"
               "sequence, are complete. Gives the Event of its end twice, as numba-dpex does: once for\n"
               "what the host has to do then.")},
    {NULL, NULL, 0, NULL},
};

int drupe_py_call_kernel_init(PyObject *module)
{
    PyObject *package = PyUnicode_FromString("drupe");
    int result = package ? 0 : -1;
    for (PyMethodDef *def = package_functions; result == 0 && def->ml_name; def++) {
        PyObject *name = PyUnicode_FromFormat("_%s", def->ml_name);
        PyObject *function = !name ? NULL : PyCFunction_NewEx(def, module, package);
        result = !function ? -1 : PyObject_SetAttr(module, name, function);
        Py_XDECREF(function);
        Py_XDECREF(name);
    }
    Py_XDECREF(package);
    return result;
}
