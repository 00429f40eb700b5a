/* drupe._engine._NativeFunction: a function of a library, and a call of it. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/native/py_native_room.h"
#include "engine/python/waits/waits_room.h"
#include <stddef.h>
#include <structmember.h>

static drupe_py_native_function *function_of(PyObject *self)
{
    return (drupe_py_native_function *)self;
}

/* --- Calling ------------------------------------------------------------------------------------------- */

enum { GIVEN_QUEUE, GIVEN_WAIT_FOR, GIVEN_EVENT, GIVEN_RESULT };

/* The keywords of the last call stand where they stood: names of a call are a constant of its code. */
static bool keywords_find(const drupe_py_state *state, drupe_py_native_function *self,
                          PyObject *const *values, PyObject *kwnames, PyObject **given)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("a native function", 0, 0, DRUPE_PY_NAME_queue, DRUPE_PY_NAME_wait_for,
                           DRUPE_PY_NAME_event, DRUPE_PY_NAME_result);
    if (kwnames && kwnames == self->keywords) {
        for (int i = 0; i < DRUPE_PY_NATIVE_KEYWORDS; i++)
            given[i] = self->at[i] < 0 ? NULL : values[self->at[i]];
        return true;
    }
    if (!kwnames) {
        for (int i = 0; i < DRUPE_PY_NATIVE_KEYWORDS; i++) given[i] = NULL;
        return true;
    }
    if (!drupe_py_args(state, &signature, values, 0, kwnames, given)) return false;
    for (int i = 0; i < DRUPE_PY_NATIVE_KEYWORDS; i++) {
        self->at[i] = -1;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++)
            if (given[i] && values[k] == given[i] &&
                PyUnicode_Compare(PyTuple_GET_ITEM(kwnames, k), state->names[signature.names[i]]) == 0)
                self->at[i] = (signed char)k;
    }
    Py_XSETREF(self->keywords, Py_NewRef(kwnames));
    return true;
}

/* That of the library, or the default one, retained. */
static drupe_queue *usual_queue(drupe_py_state *state, const drupe_py_native_function *self)
{
    drupe_queue *own = ((drupe_py_native_library *)self->library)->queue;
    drupe_queue *queue = own ? drupe_queue_retain(own) : drupe_py_queue_arg(state, NULL, NULL, NULL);
    if (!queue || drupe_device_kind(drupe_queue_device(queue)) == DRUPE_DEVICE_CPU) return queue;
    drupe_py_raise_text(
        state, DRUPE_E_UNSUPPORTED,
        "%s() runs on the host, and the default device is %s: pass arrays that the host can reach, "
        "or name the queue with queue=drupe.queue(\"host\").",
        drupe_native_function_name(self->function), drupe_device_filter(drupe_queue_device(queue)));
    drupe_py_queue_release(queue);
    return NULL;
}

static bool submit(drupe_py_native_call *call, drupe_queue *queue, PyObject *wait_for, uint32_t site,
                   drupe_event **event)
{
    drupe_py_waits waits = {NULL, 0};
    drupe_keep keeps[DRUPE_NATIVE_MOST + 1];
    if (drupe_py_given(wait_for) && !drupe_py_waits_arg(call->state, wait_for, &waits)) return false;
    for (size_t i = 0; i < call->nkeepalives; i++) keeps[i] = drupe_py_keepalive_keep(call->keepalives[i]);
    const drupe_submission submission = {.queue = queue,
                                         .waits = waits.events,
                                         .nwaits = waits.count,
                                         .keeps = keeps,
                                         .nkeeps = call->nkeepalives,
                                         .site = site};
    if (call->nkeepalives) drupe_py_keepalive_watch(queue);
    call->nkeepalives = 0; /* taken */
    const drupe_native_call native = {.function = call->function->function,
                                      .args = call->args,
                                      .count = call->count,
                                      .result = call->result,
                                      .result_memory = call->result_memory};
    const drupe_status status = drupe_native_submit(&submission, &native, event);
    if (status != DRUPE_OK) drupe_py_raise_on(call->state, queue);
    drupe_py_waits_clear(&waits);
    return status == DRUPE_OK;
}

/* A call that has its arguments. Where it works on memory of Python objects, it is over on return. */
static PyObject *run(drupe_py_native_call *call, drupe_queue *queue, PyObject *wait_for, bool want,
                     uint32_t site)
{
    drupe_event *event = NULL;
    const bool awaited = call->borrows;
    if (!submit(call, queue, wait_for, site, want || awaited ? &event : NULL)) return NULL;
    if (awaited) {
        drupe_park_let_go(); /* the addresses are the submission's now, and the wait may be long */
        const bool good = drupe_py_event_wait(call->state, event, DRUPE_FOREVER);
        drupe_park_hold();
        if (!good) {
            drupe_event_release(event);
            return NULL;
        }
    }
    if (want) return drupe_py_event_wrap(call->state, event);
    drupe_event_release(event);
    Py_RETURN_NONE;
}

/* On the queue that was given, or that of the arguments, which have it; else the usual one. */
static PyObject *run_placed(drupe_py_native_call *call, PyObject *wait_for, bool want, uint32_t site)
{
    if (call->queue) return run(call, call->queue, wait_for, want, site);
    drupe_queue *queue = usual_queue(call->state, call->function);
    PyObject *result = queue ? run(call, queue, wait_for, want, site) : NULL;
    drupe_py_queue_release(queue);
    return result;
}

/* Python code may run when one address is known, and another is not. */
static PyObject *run_any(drupe_py_native_call *call, PyObject *const *args, size_t nargs,
                         PyObject *const *given, bool want, uint32_t site)
{
    PyObject *result = NULL;
    drupe_park_hold();
    if (drupe_py_native_read(call, args, nargs) &&
        (!drupe_py_given(given[GIVEN_RESULT]) || drupe_py_native_result(call, given[GIVEN_RESULT])))
        result = run_placed(call, given[GIVEN_WAIT_FOR], want, site);
    drupe_park_let_go();
    drupe_py_native_clear(call);
    return result;
}

/* The queue that arrays decide, where only looking at them tells; borrowed. */
static drupe_queue *queue_ahead(drupe_py_state *state, PyObject *const *args, size_t nargs)
{
    for (size_t i = 0; i < nargs; i++)
        if (drupe_py_is(state, args[i], DRUPE_PY_TYPE_Array)) return drupe_py_array_of(args[i])->queue;
    return NULL;
}

static PyObject *function_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    drupe_py_state *state = drupe_py_state_of(callable);
    drupe_py_native_function *self = function_of(callable);
    const size_t nargs = (size_t)PyVectorcall_NARGS(nargsf);
    PyObject *given[DRUPE_PY_NATIVE_KEYWORDS];
    drupe_py_native_call call; /* clearing all of it would take as long as to read the arguments */
    if (!drupe_py_enter(state) || !keywords_find(state, self, args + nargs, kwnames, given)) return NULL;
    call.state = state;
    call.function = self;
    call.queue = NULL;
    call.queue_given = call.borrows = false;
    call.count = call.queue_arg = call.nkeepalives = call.nowned = 0;
    call.result = NULL;
    call.result_memory = NULL;
    if (drupe_py_given(given[GIVEN_QUEUE])) {
        if (!drupe_py_is(state, given[GIVEN_QUEUE], DRUPE_PY_TYPE_Queue)) {
            PyErr_Format(PyExc_TypeError, "queue must be a drupe.Queue, not %s",
                         Py_TYPE(given[GIVEN_QUEUE])->tp_name);
            return NULL;
        }
        call.queue = ((drupe_py_queue *)given[GIVEN_QUEUE])->queue;
        call.queue_given = true;
    }
    const int want = drupe_py_flag(given[GIVEN_EVENT], 1);
    const uint32_t site = drupe_py_site();
    drupe_queue *ahead = call.queue ? call.queue : queue_ahead(state, args, nargs);
    if (want < 0) return NULL;
    if (ahead && drupe_queue_pace(ahead) != DRUPE_OK) return drupe_py_raise_on(state, ahead);
    const bool plain = !drupe_py_given(given[GIVEN_WAIT_FOR]) && !drupe_py_given(given[GIVEN_RESULT]);
    if (plain && drupe_py_native_quick(&call, args, nargs)) return run_placed(&call, NULL, want != 0, site);
    return run_any(&call, args, nargs, given, want != 0, site);
}

/* --- Making -------------------------------------------------------------------------------------------- */

static bool dtype_named(const char *name, drupe_dtype *dtype)
{
    *dtype = name ? drupe_dtype_find(name) : DRUPE_DTYPE_NONE;
    if (!name || *dtype != DRUPE_DTYPE_NONE) return true;
    PyErr_Format(PyExc_ValueError, "there is no type '%s'", name);
    return false;
}

/* (text, pointer, const, dtype or None, whether any bytes do, least, factors) */
static bool param_read(PyObject *item, drupe_py_native_param *param)
{
    const char *text, *dtype;
    int pointer, reads_only, bytes;
    unsigned long long least;
    PyObject *factors;
    if (!PyArg_ParseTuple(item, "sppzpKO!:parameter", &text, &pointer, &reads_only, &dtype, &bytes, &least,
                          &PyTuple_Type, &factors) ||
        !dtype_named(dtype, &param->dtype))
        return false;
    param->pointer = pointer;
    param->reads_only = reads_only;
    param->any = pointer && !dtype;
    param->bytes = bytes;
    param->least = least;
    PyOS_snprintf(param->text, sizeof param->text, "%s", text);
    const Py_ssize_t count = PyTuple_GET_SIZE(factors);
    if (count > DRUPE_PY_NATIVE_FACTORS || (!pointer && !dtype)) {
        PyErr_SetString(PyExc_ValueError, "a parameter is not understood");
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        param->factors[i] = (uint8_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(factors, i));
    param->nfactors = (uint8_t)count;
    return !PyErr_Occurred();
}

static bool factors_check(const drupe_py_native_function *self)
{
    for (size_t i = 0; i < self->count; i++)
        for (size_t k = 0; k < self->params[i].nfactors; k++) {
            const size_t factor = self->params[i].factors[k];
            if (factor < self->count && !self->params[factor].pointer) continue;
            PyErr_SetString(PyExc_ValueError, "a size names no parameter that is an integer");
            return false;
        }
    return true;
}

/* (result or None, parameters) */
static bool declaration_read(drupe_py_native_function *self, PyObject *declaration)
{
    const char *result;
    PyObject *params;
    if (!PyTuple_Check(declaration)) {
        PyErr_SetString(PyExc_TypeError, "a declaration is a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(declaration, "zO!:declaration", &result, &PyTuple_Type, &params) ||
        !dtype_named(result, &self->result))
        return false;
    const Py_ssize_t count = PyTuple_GET_SIZE(params);
    self->declared = true;
    self->params = PyMem_Calloc((size_t)count + 1, sizeof *self->params);
    if (!self->params) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!param_read(PyTuple_GET_ITEM(params, i), &self->params[i])) return false;
    self->count = (size_t)count;
    return factors_check(self);
}

static bool function_open(drupe_py_state *state, drupe_py_native_function *self, const char *name)
{
    drupe_native_param params[DRUPE_NATIVE_MOST];
    const drupe_native_signature signature = {self->result, params, self->count};
    for (size_t i = 0; i < self->count && i < DRUPE_NATIVE_MOST; i++)
        params[i] = (drupe_native_param){self->params[i].pointer, self->params[i].dtype};
    const drupe_status status =
        drupe_native_function_open(((drupe_py_native_library *)self->library)->library, name,
                                   self->declared ? &signature : NULL, &self->function);
    if (status == DRUPE_OK) return true;
    if (status == DRUPE_E_NOT_FOUND)
        PyErr_SetString(PyExc_AttributeError, drupe_error_last()->text);
    else
        drupe_py_raise(state, NULL);
    return false;
}

static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *library, *declaration;
    const char *name;
    if (!drupe_py_enter(state) ||
        !PyArg_ParseTuple(args, "O!sO:_NativeFunction", state->types[DRUPE_PY_TYPE_NativeLibrary], &library,
                          &name, &declaration))
        return NULL;
    if (kwargs && PyDict_GET_SIZE(kwargs))
        return PyErr_Format(PyExc_TypeError, "_NativeFunction takes no keywords");
    PyObject *self = drupe_py_new(state, DRUPE_PY_TYPE_NativeFunction);
    if (!self) return NULL;
    function_of(self)->vectorcall = function_call;
    function_of(self)->library = Py_NewRef(library);
    function_of(self)->result = DRUPE_DTYPE_NONE;
    if ((declaration == Py_None || declaration_read(function_of(self), declaration)) &&
        function_open(state, function_of(self), name))
        return self;
    Py_DECREF(self);
    return NULL;
}

/* --- The type ------------------------------------------------------------------------------------------ */

static int function_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(function_of(self)->library);
    return drupe_py_traverse(self, visit, arg);
}

static int function_clear(PyObject *self)
{
    (void)self; /* a library has no references to functions: no cycle goes through here alone */
    return 0;
}

static void function_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (!drupe_py_forked()) {
        PyThreadState *thread = PyEval_SaveThread(); /* the library's destructors may run, and want the GIL */
        drupe_native_function_release(function_of(self)->function);
        PyEval_RestoreThread(thread);
    }
    PyMem_Free(function_of(self)->params);
    Py_XDECREF(function_of(self)->keywords);
    Py_XDECREF(function_of(self)->library);
    drupe_py_free(self, DRUPE_PY_TYPE_NativeFunction);
}

static PyObject *function_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(drupe_native_function_name(function_of(self)->function));
}

static PyObject *function_declared(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(function_of(self)->declared);
}

static PyObject *function_arguments(PyObject *self, void *closure)
{
    (void)closure;
    const drupe_py_native_function *function = function_of(self);
    if (!function->declared) Py_RETURN_NONE;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < function->count; i++)
        drupe_py_append(&list, PyUnicode_FromString(function->params[i].text));
    return drupe_py_tuple(list);
}

static PyObject *function_repr(PyObject *self)
{
    const drupe_py_native_function *function = function_of(self);
    PyObject *arguments = function_arguments(self, NULL), *joined = NULL, *comma = PyUnicode_FromString(", ");
    if (arguments && comma)
        joined = arguments == Py_None ? PyUnicode_FromString("...") : PyUnicode_Join(comma, arguments);
    PyObject *result = !joined ? NULL
                               : PyUnicode_FromFormat("<native function %s(%U) of %S>",
                                                      drupe_native_function_name(function->function), joined,
                                                      ((drupe_py_native_library *)function->library)->path);
    Py_XDECREF(arguments);
    Py_XDECREF(joined);
    Py_XDECREF(comma);
    return result;
}

static PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(drupe_py_native_function, vectorcall), READONLY, NULL},
    {"library", T_OBJECT, offsetof(drupe_py_native_function, library), READONLY, "The library that has it."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef function_getset[] = {
    {"__name__", function_name, NULL, "The function's name.", NULL},
    {"name", function_name, NULL, "The function's name.", NULL},
    {"declared", function_declared, NULL, "Whether its parameters are known.", NULL},
    {"arguments", function_arguments, NULL,
     "The parameters as they were declared; None without a declaration.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot function_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("A function of a shared library. function(*args, queue=None, wait_for=(),\n"
                                  "event=True, result=None) queues a call of it and gives its Event.")},
    {Py_tp_new, DRUPE_PY_FUNCTION(function_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(function_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(function_traverse)},
    {Py_tp_clear, DRUPE_PY_FUNCTION(function_clear)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(function_repr)},
    {Py_tp_call, DRUPE_PY_FUNCTION(PyVectorcall_Call)},
    {Py_tp_members, function_members},
    {Py_tp_getset, function_getset},
    {0, NULL},
};

DRUPE_PY_SPEC(NativeFunction, "drupe._engine._NativeFunction", drupe_py_native_function,
              Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, function_slots);
