/* drupe.Kernel and drupe.LocalMemory. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/submit/py_submit_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"
#include <stddef.h>
#include <structmember.h>

static drupe_py_kernel *kernel_of(PyObject *self)
{
    return (drupe_py_kernel *)self;
}

/* --- Making -------------------------------------------------------------------------------------------- */

/* Fetch what the compiler told about the arguments. A backend that tells nothing leaves the kernel untyped.
 */
static bool params_load(drupe_py_state *state, drupe_py_kernel *self)
{
    uint64_t count = 0;
    drupe_status status = drupe_kernel_number(self->kernel, DRUPE_KERNEL_ARG_COUNT, &count);
    if (status == DRUPE_E_UNSUPPORTED) return true;
    if (status != DRUPE_OK) {
        drupe_py_raise_on(state, self->queue);
        return false;
    }
    self->counted = self->typed = true;
    self->params = PyMem_Calloc((size_t)count + 1, sizeof *self->params);
    self->forms = PyMem_Calloc((size_t)count + 1, sizeof *self->forms);
    if (!self->params || !self->forms) {
        PyErr_NoMemory();
        return false;
    }
    self->nparams = (size_t)count;
    for (size_t i = 0; i < self->nparams && self->typed; i++) {
        status = drupe_kernel_arg(self->kernel, i, &self->params[i]);
        if (status == DRUPE_OK) self->forms[i] = drupe_py_launch_form(&self->params[i]);
        if (status == DRUPE_E_UNSUPPORTED) self->typed = false;
        if (status == DRUPE_OK || status == DRUPE_E_UNSUPPORTED) continue;
        drupe_py_raise_on(state, self->queue);
        return false;
    }
    return true;
}

static PyObject *kernel_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);

PyObject *drupe_py_kernel_open(drupe_py_state *state, drupe_program *program, drupe_queue *queue,
                               const char *name)
{
    drupe_kernel *kernel = NULL;
    drupe_status status;
    PyThreadState *thread = PyEval_SaveThread();
    status = drupe_kernel_open(program, name, &kernel);
    PyEval_RestoreThread(thread);
    if (status != DRUPE_OK) return drupe_py_raise_on(state, queue);
    drupe_py_kernel *self = (drupe_py_kernel *)drupe_py_new(state, DRUPE_PY_TYPE_Kernel);
    if (!self) {
        drupe_kernel_release(kernel);
        return NULL;
    }
    self->vectorcall = kernel_call;
    self->kernel = kernel;
    self->queue = drupe_queue_retain(queue);
    self->worded = drupe_kernel_words(kernel);
    if (params_load(state, self)) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void kernel_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (!drupe_py_forked()) drupe_kernel_release(kernel_of(self)->kernel);
    drupe_py_queue_release(kernel_of(self)->queue);
    PyMem_Free(kernel_of(self)->params);
    PyMem_Free(kernel_of(self)->forms);
    Py_XDECREF(kernel_of(self)->last.keywords);
    Py_XDECREF(kernel_of(self)->last.global_size);
    Py_XDECREF(kernel_of(self)->last.local_size);
    drupe_py_free(self, DRUPE_PY_TYPE_Kernel);
}

/* --- Calling ------------------------------------------------------------------------------------------- */

/* The keywords of the last call stand where they stood: names of a call are a constant of its code. */
static inline bool keywords_again(const drupe_py_last_call *last, PyObject *const *values, PyObject *kwnames,
                                  PyObject **given)
{
    if (kwnames != last->keywords || !kwnames) return false;
    for (int i = 0; i < DRUPE_PY_KERNEL_KEYWORDS; i++)
        given[i] = last->at[i] < 0 ? NULL : values[last->at[i]];
    return true;
}

static bool keywords_find(const drupe_py_state *state, drupe_py_kernel *self, PyObject *const *values,
                          PyObject *kwnames, PyObject **given)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("kernel", 0, 0, DRUPE_PY_NAME_global_size, DRUPE_PY_NAME_local_size,
                           DRUPE_PY_NAME_queue, DRUPE_PY_NAME_wait_for, DRUPE_PY_NAME_event);
    if (!drupe_py_args(state, &signature, values, 0, kwnames, given)) return false;
    if (!kwnames) return true;
    for (int i = 0; i < DRUPE_PY_KERNEL_KEYWORDS; i++) self->last.at[i] = -1;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++)
        for (int i = 0; i < DRUPE_PY_KERNEL_KEYWORDS; i++)
            if (PyUnicode_Compare(PyTuple_GET_ITEM(kwnames, k), state->names[signature.names[i]]) == 0)
                self->last.at[i] = (signed char)k;
    Py_XSETREF(self->last.keywords, Py_NewRef(kwnames));
    return true;
}

/* Every positional argument is the kernel's; keywords say where and how. */
static PyObject *kernel_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    drupe_py_state *state = drupe_py_state_of(callable);
    drupe_py_kernel *self = kernel_of(callable);
    size_t nargs = (size_t)PyVectorcall_NARGS(nargsf);
    PyObject *given[DRUPE_PY_KERNEL_KEYWORDS];
    if (!drupe_py_enter(state)) return NULL;
    if (!keywords_again(&self->last, args + nargs, kwnames, given) &&
        !keywords_find(state, self, args + nargs, kwnames, given))
        return NULL;
    int want = drupe_py_flag(given[4], 1);
    if (want < 0) return NULL;
    drupe_py_launch launch = {self, NULL, args, nargs, given[0], given[1], given[3]};
    if (drupe_py_given(given[2])) {
        if (!drupe_py_is(state, given[2], DRUPE_PY_TYPE_Queue)) {
            PyErr_Format(PyExc_TypeError, "queue must be a drupe.Queue, not %s", Py_TYPE(given[2])->tp_name);
            return NULL;
        }
        launch.queue = ((drupe_py_queue *)given[2])->queue;
    }
    drupe_event *event = NULL;
    if (!drupe_py_launch_run(state, &launch, want ? &event : NULL)) return NULL;
    if (!event) Py_RETURN_NONE;
    return drupe_py_event_wrap(state, event);
}

/* --- Properties ---------------------------------------------------------------------------------------- */

static PyObject *kernel_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(drupe_kernel_name(kernel_of(self)->kernel));
}

static PyObject *kernel_num_args(PyObject *self, void *closure)
{
    (void)closure;
    if (!kernel_of(self)->counted) Py_RETURN_NONE;
    return PyLong_FromSize_t(kernel_of(self)->nparams);
}

static PyObject *kernel_number(PyObject *self, void *closure)
{
    drupe_py_state *state = drupe_py_state_of(self);
    uint64_t value = 0;
    if (!drupe_py_enter(state)) return NULL;
    drupe_status status =
        drupe_kernel_number(kernel_of(self)->kernel, (drupe_kernel_key)(intptr_t)closure, &value);
    if (status == DRUPE_E_UNSUPPORTED) Py_RETURN_NONE;
    if (status != DRUPE_OK) return drupe_py_raise_on(state, kernel_of(self)->queue);
    return PyLong_FromUnsignedLongLong(value);
}

/* (name, type, kind) per argument, or None when the backend does not tell. */
static PyObject *kernel_arguments(PyObject *self, void *closure)
{
    (void)closure;
    static const char *const kinds[] = {"pointer", "value", "local"};
    const drupe_py_kernel *kernel = kernel_of(self);
    if (!kernel->typed) Py_RETURN_NONE;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < kernel->nparams; i++) {
        const drupe_arg_info *info = &kernel->params[i];
        drupe_py_append(&list, Py_BuildValue("(sss)", info->name, info->type_name, kinds[info->kind]));
    }
    return drupe_py_tuple(list);
}

static PyObject *kernel_repr(PyObject *self)
{
    return drupe_py_call("drupe._program", "kernel_text", "(O)", self);
}

static PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(drupe_py_kernel, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef kernel_getset[] = {
    {"name", kernel_name, NULL, "The function's name.", NULL},
    {"__name__", kernel_name, NULL, "The function's name.", NULL},
    {"num_args", kernel_num_args, NULL, "Number of arguments; None if the backend does not report it.", NULL},
    {"arguments", kernel_arguments, NULL,
     "(name, type, kind) of each argument, kind being \"pointer\", \"value\" or \"local\";\n"
     "None if the backend does not report them.",
     NULL},
    {"work_group_size", kernel_number, NULL, "Most work-items of a work-group.",
     (void *)(intptr_t)DRUPE_KERNEL_WORK_GROUP_SIZE},
    {"preferred_work_group_size_multiple", kernel_number, NULL, "Choose work-group sizes as multiples of it.",
     (void *)(intptr_t)DRUPE_KERNEL_PREFERRED_MULTIPLE},
    {"private_mem_size", kernel_number, NULL, "Bytes of private memory of a work-item.",
     (void *)(intptr_t)DRUPE_KERNEL_PRIVATE_MEM_SIZE},
    {"local_mem_size", kernel_number, NULL, "Bytes of local memory of a work-group.",
     (void *)(intptr_t)DRUPE_KERNEL_LOCAL_MEM_SIZE},
    {"max_num_sub_groups", kernel_number, NULL,
     "Most sub-groups of a work-group; None, as for the next ones, if the driver does not report it.",
     (void *)(intptr_t)DRUPE_KERNEL_MAX_NUM_SUB_GROUPS},
    {"max_sub_group_size", kernel_number, NULL, "Most work-items of a sub-group.",
     (void *)(intptr_t)DRUPE_KERNEL_MAX_SUB_GROUP_SIZE},
    {"compile_num_sub_groups", kernel_number, NULL, "Sub-groups that the kernel was written for; 0 = any.",
     (void *)(intptr_t)DRUPE_KERNEL_COMPILE_NUM_SUB_GROUPS},
    {"compile_sub_group_size", kernel_number, NULL,
     "Work-items of a sub-group that the kernel was written for; 0 = any.",
     (void *)(intptr_t)DRUPE_KERNEL_COMPILE_SUB_GROUP_SIZE},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR("A kernel of a program. kernel(*args, global_size=, local_size=None, queue=None,\n"
                       "wait_for=(), event=True) queues it and gives its Event (None with event=False,\n"
                       "which is cheaper). Sizes are in work-items, dimension 0 varying fastest.\n"
                       "Numbers are converted to the declared types; pointers take USM memory and\n"
                       "arrays, whose queue is used unless one is given.")},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(kernel_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(drupe_py_traverse)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(kernel_repr)},
    {Py_tp_call, DRUPE_PY_FUNCTION(PyVectorcall_Call)},
    {Py_tp_members, kernel_members},
    {Py_tp_getset, kernel_getset},
    {0, NULL},
};

DRUPE_PY_SPEC(Kernel, "drupe.Kernel", drupe_py_kernel,
              Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_VECTORCALL,
              kernel_slots);

/* --- LocalMemory --------------------------------------------------------------------------------------- */

static PyObject *local_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("LocalMemory", 1, 1, DRUPE_PY_NAME_nbytes);
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[1];
    size_t nbytes;
    if (!drupe_py_args_new(state, &signature, args, kwargs, given) ||
        !drupe_py_size(given[0], "nbytes", &nbytes))
        return NULL;
    if (nbytes == 0) {
        PyErr_SetString(PyExc_ValueError, "local memory has at least 1 byte");
        return NULL;
    }
    PyObject *self = drupe_py_new(state, DRUPE_PY_TYPE_LocalMemory);
    if (self) ((drupe_py_local *)self)->nbytes = nbytes;
    return self;
}

static void local_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    drupe_py_free(self, DRUPE_PY_TYPE_LocalMemory);
}

static PyObject *local_repr(PyObject *self)
{
    return PyUnicode_FromFormat("drupe.LocalMemory(%zu)", ((drupe_py_local *)self)->nbytes);
}

static PyMemberDef local_members[] = {
    {"nbytes", T_PYSSIZET, offsetof(drupe_py_local, nbytes), READONLY, "Size in bytes."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot local_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR("LocalMemory(nbytes)\n--\n\n"
                       "Passed for a __local pointer of a kernel: memory that a work-group shares.")},
    {Py_tp_new, DRUPE_PY_FUNCTION(local_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(local_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(drupe_py_traverse)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(local_repr)},
    {Py_tp_members, local_members},
    {0, NULL},
};

DRUPE_PY_SPEC(LocalMemory, "drupe.LocalMemory", drupe_py_local, Py_TPFLAGS_HAVE_GC, local_slots);
