/* The module's state, its types and its functions. */
#include <stdbool.h>
#include <stdio.h>

#include "jkernel/pyexec/pyexec.h"

static PyObject *py_flush_stdio(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS fflush(stdout);
    fflush(stderr);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *py_log(PyObject *module, PyObject *text)
{
    (void)module;
    const char *line = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    if (line) {
        jk_server_note(line);
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "log() takes a line of text");
    }
    return line ? Py_NewRef(Py_None) : NULL;
}

static PyObject *py_line_buffer_stdio(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    setvbuf(stdout, NULL, _IOLBF, 0);
    Py_RETURN_NONE;
}

static PyObject *py_guard_thread(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    jk_thread_signal_stack();
    Py_RETURN_NONE;
}

static PyObject *py_leaving(PyObject *module, PyObject *value)
{
    static char call[32]; /* one thread ends the process */
    int overflow;
    long status = PyLong_AsLongAndOverflow(value, &overflow);
    (void)module;
    if (status == -1 && PyErr_Occurred()) return NULL;
    if (overflow || status != (int)status) Py_RETURN_NONE; /* os._exit() refuses it */
    snprintf(call, sizeof call, "os._exit(%d)", (int)status);
    jk_server_leaving(call, (int)status);
    Py_RETURN_NONE;
}

/* Whether `frame`, at this instruction, is the innermost one of the thread. */
static bool thread_is_at(unsigned long ident, PyObject *frame, int instruction)
{
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    while (thread && thread->thread_id != ident) thread = PyThreadState_Next(thread);
    PyFrameObject *inner = thread ? PyThreadState_GetFrame(thread) : NULL;
    bool same = inner && (PyObject *)inner == frame && PyFrame_GetLasti(inner) == instruction;
    Py_XDECREF(inner);
    return same;
}

static PyObject *py_interrupt_thread(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long ident = 0;
    PyObject *frame = NULL;
    int instruction = 0;
    if (!PyArg_ParseTuple(args, "kOi:interrupt_thread", &ident, &frame, &instruction)) return NULL;
    if (!thread_is_at(ident, frame, instruction)) Py_RETURN_FALSE;
    return PyBool_FromLong(PyThreadState_SetAsyncExc(ident, PyExc_KeyboardInterrupt) > 0);
}

static PyObject *py_cell_name(PyObject *module, PyObject *code)
{
    (void)module;
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(code, &size);
    if (!text) return NULL;
    jk_server *server = jk_kernel_enter();
    if (!server) {
        PyErr_SetString(PyExc_RuntimeError, "the kernel is closed");
        return NULL;
    }
    char name[JK_CELL_NAME_SIZE];
    jk_server_cell_name(server, (jk_bytes){text, (size_t)size}, name);
    jk_kernel_leave();
    return PyUnicode_DecodeFSDefault(name);
}

static PyMethodDef functions[] = {
    {"run_cell_check", jk_link_run_check, METH_NOARGS, "Raise the device errors that are known by now."},
    {"note_lease", jk_link_note_lease, METH_O,
     "What the panel is told of this kernel's lease: a JSON object as text, or None."},
    {"flush_stdio", py_flush_stdio, METH_NOARGS, "Write out what C's stdout and stderr hold."},
    {"line_buffer_stdio", py_line_buffer_stdio, METH_NOARGS, "Let C's stdout write every line at once."},
    {"log", py_log, METH_O,
     "log(line, /)\n--\n\nAppend a line to the file named by DRUPE_LOG, if there is one."},
    {"note_cell", jk_link_note_cell, METH_VARARGS,
     "note_cell(name, number)\n--\n\nThe file name that stands for In[number] in crash reports."},
    {"guard_thread", py_guard_thread, METH_NOARGS, "Let a full stack of this thread be reported."},
    {"leaving", py_leaving, METH_O,
     "os._exit() is called with this status: does not return in a kernel that serves."},
    {"sigint_adopt", jk_sigint_adopt, METH_NOARGS, "Guard the SIGINT handler that Python has installed."},
    {"sigint_seen", jk_sigint_seen, METH_NOARGS,
     "The Python-level handler runs: 1 for a signal, 2 for sigint_again(), 3 for both."},
    {"sigint_again", jk_sigint_again, METH_NOARGS,
     "Run it once more in a millisecond; whether that is possible."},
    {"sigint_reassert", jk_sigint_reassert, METH_NOARGS, "Take SIGINT back; whether something had taken it."},
    {"interrupt_thread", py_interrupt_thread, METH_VARARGS,
     "interrupt_thread(ident, frame, lasti)\n--\n\nRaise KeyboardInterrupt in a thread that is still there; "
     "whether "
     "it is."},
    {"workers_open", jk_workers_open, METH_NOARGS,
     "The shell stands: C threads may serve requests in Python."},
    {"workers_close", jk_workers_close, METH_O,
     "workers_close(timeout_ms)\n--\n\nStop those threads; whether all have ended."},
    {"cell_name", py_cell_name, METH_O, "The file name by which debuggers know a cell with this text."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, type) < 0) Py_CLEAR(type);
    return type;
}

static int add_types(PyObject *module, jk_state *state)
{
    PyTypeObject *server = add_type(module, &jk_server_spec), *stream = add_type(module, &jk_stream_spec);
    state->request_type = add_type(module, &jk_request_spec);
    state->parent_type = add_type(module, &jk_parent_spec);
    state->subshell_type = add_type(module, &jk_subshell_spec);
    bool all = server && stream && state->request_type && state->parent_type && state->subshell_type;
    Py_XDECREF(server); /* the module has them */
    Py_XDECREF(stream);
    return all ? 0 : -1;
}

int jk_state_exec(PyObject *module)
{
    jk_state *state = PyModule_GetState(module);
    if (add_types(module, state) < 0 || PyModule_AddFunctions(module, functions) < 0) return -1;
    state->cell_var = PyContextVar_New("drupe_cell", NULL);
    if (!state->cell_var || PyModule_AddObjectRef(module, "cell", state->cell_var) < 0) return -1;
    PyObject *link = jk_link_capsule(state->cell_var, state->parent_type);
    if (!link) return -1;
    int failed = PyModule_AddObjectRef(module, "link", link);
    Py_DECREF(link);
    if (failed || PyModule_AddIntConstant(module, "REPLY_ABORT_QUEUED", JK_REPLY_ABORT_QUEUED) < 0 ||
        PyModule_AddIntConstant(module, "REPLY_NONE", JK_REPLY_NONE) < 0) {
        return -1;
    }
    return PyModule_AddStringConstant(module, "__version__", DRUPE_VERSION);
}

int jk_state_traverse(PyObject *module, visitproc visit, void *arg)
{
    jk_state *state = PyModule_GetState(module);
    Py_VISIT(state->request_type);
    Py_VISIT(state->parent_type);
    Py_VISIT(state->subshell_type);
    Py_VISIT(state->cell_var);
    return 0;
}

int jk_state_clear(PyObject *module)
{
    jk_state *state = PyModule_GetState(module);
    jk_link_clear();
    Py_CLEAR(state->request_type);
    Py_CLEAR(state->parent_type);
    Py_CLEAR(state->subshell_type);
    Py_CLEAR(state->cell_var);
    return 0;
}

void jk_state_free(void *module)
{
    jk_state_clear(module);
}
