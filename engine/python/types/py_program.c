/* drupe.Program: built at once, on a thread that Ctrl-C does not reach; kernels are opened on first use and
 * kept. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"
#include <stddef.h>
#include <stdlib.h>
#include <structmember.h>

#define SLICE_FIRST_NS UINT64_C(1000000)
#define SLICE_NS       UINT64_C(20000000) /* between looks for signals */

static drupe_py_program *program_of(PyObject *self)
{
    return (drupe_py_program *)self;
}

/* --- Building ------------------------------------------------------------------------------------------ */

static bool language_arg(PyObject *object, drupe_language *language)
{
    static const struct {
        const char *name;
        drupe_language language;
    } languages[] = {{"opencl", DRUPE_LANG_OPENCL_C},
                     {"spirv", DRUPE_LANG_SPIRV},
                     {"binary", DRUPE_LANG_BINARY},
                     {"builtin", DRUPE_LANG_BUILTIN},
                     {"c", DRUPE_LANG_C}};
    *language = DRUPE_LANG_OPENCL_C;
    if (!drupe_py_given(object)) return true;
    for (size_t i = 0; PyUnicode_Check(object) && i < sizeof languages / sizeof *languages; i++)
        if (PyUnicode_CompareWithASCIIString(object, languages[i].name) == 0) {
            *language = languages[i].language;
            return true;
        }
    PyErr_Format(PyExc_ValueError,
                 "language must be \"opencl\", \"c\", \"spirv\", \"binary\" or \"builtin\", not %R", object);
    return false;
}

/* The text or bytes of a program; they stay valid as long as `object` does. */
static bool source_arg(PyObject *object, drupe_source *source)
{
    if (!drupe_py_given(object) && source->language == DRUPE_LANG_BUILTIN) return true;
    Py_ssize_t size = 0;
    if (PyUnicode_Check(object)) {
        source->bytes = PyUnicode_AsUTF8AndSize(object, &size);
        if (!source->bytes) return false;
    } else if (PyBytes_Check(object)) {
        source->bytes = PyBytes_AS_STRING(object);
        size = PyBytes_GET_SIZE(object);
    } else {
        PyErr_Format(PyExc_TypeError, "source must be str or bytes, not %s", Py_TYPE(object)->tp_name);
        return false;
    }
    source->size = (size_t)size;
    return true;
}

/* `log` may be NULL. */
static void build_fail(drupe_py_state *state, drupe_device *device, const drupe_source *source,
                       const char *log)
{
    drupe_error error = *drupe_error_last();
    if (error.status != DRUPE_E_BUILD_FAILED) {
        drupe_py_raise(state, device);
        return;
    }
    const char *filter = drupe_device_filter(device);
    PyObject *exception = drupe_py_error_object(state, &error, filter, NULL);
    /* The engine's own text holds the log's first lines, so the explained log stands in its place. */
    PyObject *done = drupe_py_call("drupe._program", "build_failed", "(Osyy#)", exception, filter,
                                   !log ? error.text : log, source->bytes, (Py_ssize_t)source->size);
    if (done) {
        drupe_py_failure_locate(exception, "build", 0);
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    }
    Py_XDECREF(done);
    Py_XDECREF(exception);
}

static drupe_program *build(drupe_py_state *state, drupe_context *context, drupe_device *device,
                            const drupe_source *source, char **log)
{
    drupe_build *begun = NULL;
    drupe_program *program = NULL;
    uint64_t slice = SLICE_FIRST_NS;
    bool over = false;
    if (drupe_build_begin(context, device, source, &begun) != DRUPE_OK) {
        build_fail(state, device, source, NULL);
        return NULL;
    }
    while (!over) {
        PyThreadState *thread = PyEval_SaveThread();
        over = drupe_build_wait(begun, slice);
        PyEval_RestoreThread(thread);
        slice = SLICE_NS;
        if (!drupe_py_interrupted(state)) continue;
        drupe_build_leave(begun);
        return NULL;
    }
    if (drupe_build_take(begun, log, &program) != DRUPE_OK) build_fail(state, device, source, *log);
    return program;
}

static PyObject *program_wrap(drupe_py_state *state, drupe_program *program, drupe_queue *queue,
                              const char *options, const char *log)
{
    drupe_py_program *self = (drupe_py_program *)drupe_py_new(state, DRUPE_PY_TYPE_Program);
    if (!self) {
        drupe_program_release(program);
        return NULL;
    }
    self->program = program;
    self->queue = drupe_queue_retain(queue);
    self->kernels = PyDict_New();
    self->options = PyUnicode_FromString(!options ? "" : options);
    self->log = PyUnicode_DecodeUTF8(!log ? "" : log, !log ? 0 : (Py_ssize_t)strlen(log), "replace");
    if (self->kernels && self->options && self->log) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

/* The queue of a program's kernels: given, or a new one on the context given, or the device's default. */
static drupe_queue *program_queue(drupe_py_state *state, PyObject *queue, PyObject *device, PyObject *context)
{
    if (!drupe_py_given(context)) return drupe_py_queue_arg(state, queue, device, NULL);
    if (drupe_py_given(queue) || !drupe_py_is(state, context, DRUPE_PY_TYPE_Context)) {
        PyErr_SetString(PyExc_TypeError, drupe_py_given(queue)
                                             ? "give either context or queue: a queue has its context already"
                                             : "context must be a drupe.Context");
        return NULL;
    }
    drupe_context *opened = ((drupe_py_context *)context)->context;
    drupe_device *chosen = drupe_py_given(device) ? drupe_py_device_arg(state, device)
                                                  : drupe_device_retain(drupe_context_device(opened, 0));
    if (!chosen) return NULL;
    drupe_queue *result = NULL;
    if (drupe_queue_open(opened, chosen, DRUPE_QUEUE_DEFAULT, &result) != DRUPE_OK)
        drupe_py_raise(state, chosen);
    drupe_device_release(chosen);
    return result;
}

/* Build for the queue (taken) and wrap. */
static PyObject *program_make(drupe_py_state *state, drupe_queue *queue, const drupe_source *source)
{
    char *log = NULL;
    drupe_program *program =
        build(state, drupe_queue_context(queue), drupe_queue_device(queue), source, &log);
    PyObject *self = !program ? NULL : program_wrap(state, program, queue, source->options, log);
    free(log);
    drupe_py_queue_release(queue);
    return self;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("Program", 2, 1, DRUPE_PY_NAME_source, DRUPE_PY_NAME_device, DRUPE_PY_NAME_queue,
                           DRUPE_PY_NAME_context, DRUPE_PY_NAME_options, DRUPE_PY_NAME_language,
                           DRUPE_PY_NAME_specializations, DRUPE_PY_NAME_cache);
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[8];
    if (!drupe_py_enter(state) || !drupe_py_args_new(state, &signature, args, kwargs, given)) return NULL;
    drupe_source source = {.options = NULL};
    drupe_py_values values;
    if (!language_arg(given[5], &source.language) || !source_arg(given[0], &source)) return NULL;
    if (drupe_py_given(given[4]) && !(source.options = PyUnicode_AsUTF8(given[4]))) return NULL;
    int cache = drupe_py_flag(given[7], 1);
    if (cache < 0) return NULL;
    if (!cache) source.flags = DRUPE_SOURCE_UNCACHED;
    if (!drupe_py_values_arg(given[6], given[0], &values)) return NULL;
    source.values = values.list;
    source.nvalues = values.count;
    drupe_queue *queue = program_queue(state, given[2], given[1], given[3]);
    PyObject *self = !queue ? NULL : program_make(state, queue, &source);
    drupe_py_values_clear(&values);
    return self;
}

static int program_clear(PyObject *self)
{
    Py_CLEAR(program_of(self)->kernels);
    Py_CLEAR(program_of(self)->log);
    Py_CLEAR(program_of(self)->options);
    return 0;
}

static int program_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(program_of(self)->kernels);
    return 0;
}

static void program_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    (void)program_clear(self);
    if (!drupe_py_forked()) drupe_program_release(program_of(self)->program);
    drupe_py_queue_release(program_of(self)->queue);
    drupe_py_free(self, DRUPE_PY_TYPE_Program);
}

/* --- Kernels ------------------------------------------------------------------------------------------- */

static PyObject *kernel_get(PyObject *self, PyObject *name)
{
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_py_program *program = program_of(self);
    PyObject *kernel = PyDict_GetItemWithError(program->kernels, name); /* borrowed for this line alone */
    if (kernel) return Py_NewRef(kernel);
    const char *text = PyErr_Occurred() ? NULL : PyUnicode_AsUTF8(name);
    if (!text || !drupe_py_enter(state)) return NULL;
    kernel = drupe_py_kernel_open(state, program->program, program->queue, text);
    if (kernel && PyDict_SetItem(program->kernels, name, kernel) < 0) Py_CLEAR(kernel);
    return kernel;
}

/* Turn "no such kernel" into what Python expects of the kind of access. */
static PyObject *kernel_missing(PyObject *self, PyObject *class)
{
    if (!PyErr_ExceptionMatches(drupe_py_state_of(self)->errors[DRUPE_E_NOT_FOUND])) return NULL;
    drupe_error error = *drupe_error_last();
    PyErr_Clear();
    PyErr_SetString(class, error.text);
    return NULL;
}

static PyObject *program_getattr(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    /* Names such as _repr_html_ are asked for by front-ends and are never kernels. */
    if (PyUnicode_GET_LENGTH(name) > 0 && PyUnicode_READ_CHAR(name, 0) == '_') return NULL;
    PyErr_Clear();
    found = kernel_get(self, name);
    return found != NULL ? found : kernel_missing(self, PyExc_AttributeError);
}

static PyObject *program_get_kernel(PyObject *self, PyObject *name)
{
    if (PyUnicode_Check(name)) return kernel_get(self, name);
    PyErr_Format(PyExc_TypeError, "a kernel is named by a str, not by %s", Py_TYPE(name)->tp_name);
    return NULL;
}

static PyObject *program_subscript(PyObject *self, PyObject *name)
{
    PyObject *found = program_get_kernel(self, name);
    return found ? found : kernel_missing(self, PyExc_KeyError);
}

static PyObject *program_names(PyObject *self, void *closure)
{
    (void)closure;
    const char *names = drupe_program_kernel_names(program_of(self)->program);
    PyObject *list = PyList_New(0);
    while (names && *names != '\0') {
        size_t length = strcspn(names, ";");
        drupe_py_append(&list, PyUnicode_FromStringAndSize(names, (Py_ssize_t)length));
        names += length + (names[length] == ';');
    }
    return list;
}

/* Some drivers compile again for it. */
static PyObject *program_binary(PyObject *self, void *closure)
{
    (void)closure;
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_program *program = program_of(self)->program;
    void *bytes = NULL;
    size_t size = 0;
    if (!drupe_py_enter(state)) return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    drupe_status status = drupe_program_binary(program, &bytes, &size);
    PyEval_RestoreThread(thread);
    if (status != DRUPE_OK) return drupe_py_raise(state, drupe_program_device(program));
    PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
    free(bytes);
    return result;
}

static PyObject *program_queue_get(PyObject *self, void *closure)
{
    (void)closure;
    return drupe_py_queue_wrap(drupe_py_state_of(self), drupe_queue_retain(program_of(self)->queue));
}

static PyObject *program_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<drupe.Program for %s: %s>",
                                drupe_device_filter(drupe_program_device(program_of(self)->program)),
                                drupe_program_kernel_names(program_of(self)->program));
}

static PyObject *module_builds(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    return PyLong_FromUnsignedLong(drupe_builds());
}

PyMethodDef drupe_py_program_functions[] = {
    {"_builds", module_builds, METH_NOARGS,
     PyDoc_STR("_builds()\n--\n\nHow many programs are being built, waited for or not.")},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef program_methods[] = {
    {"get_kernel", program_get_kernel, METH_O,
     PyDoc_STR("get_kernel(name)\n--\n\nA kernel; the same object at each call.")},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef program_members[] = {
    {"build_log", T_OBJECT, offsetof(drupe_py_program, log), READONLY,
     "The compiler's messages, \"\" if there are none."},
    {"options", T_OBJECT, offsetof(drupe_py_program, options), READONLY,
     "The compiler options that it was built with."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef program_getset[] = {
    {"kernel_names", program_names, NULL, "The names of the kernels.", NULL},
    {"binary", program_binary, NULL,
     "The built program as bytes, for Program(..., language=\"binary\") on the same device and driver.",
     NULL},
    {"queue", program_queue_get, NULL,
     "The queue of kernels for which neither an argument nor queue= gives one.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR(
                    "Program(source, device=None, *, queue=None, context=None, options=\"\", "
                    "language=\"opencl\", specializations=None, cache=True)\n--\n\n"
                    "Build kernels for a device, or take them from the disk cache. A kernel named\n"
                    "add is program.add or program[\"add\"]. Raises BuildError, whose `log` holds the\n"
                    "compiler's messages.\n"
                    "\n"
                    "`language` is \"opencl\", \"spirv\", \"binary\" (what `binary` gave), or \"c\" for the\n"
                    "host device: functions `kernel void add(float *x, int n)`, which run once per\n"
                    "work-item and have get_global_id(d), get_global_size(d) and\n"
                    "get_global_offset(d). The machine's C compiler is used (DRUPE_CC names one).")},
    {Py_tp_new, DRUPE_PY_FUNCTION(program_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(program_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(program_traverse)},
    {Py_tp_clear, DRUPE_PY_FUNCTION(program_clear)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(program_repr)},
    {Py_tp_getattro, DRUPE_PY_FUNCTION(program_getattr)},
    {Py_mp_subscript, DRUPE_PY_FUNCTION(program_subscript)},
    {Py_tp_methods, program_methods},
    {Py_tp_members, program_members},
    {Py_tp_getset, program_getset},
    {0, NULL},
};

DRUPE_PY_SPEC(Program, "drupe.Program", drupe_py_program, Py_TPFLAGS_HAVE_GC, program_slots);
