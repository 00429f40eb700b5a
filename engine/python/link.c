/* The engine's end of the link to the Jupyter kernel, and what happens at the interpreter's exit.
 *
 * Failures that nobody waited for are looked for after the code of every cell. Each is raised in the cell
 * that is ending, so that no notebook run ends well over it, and one that another cell caused is also shown
 * there. The link is one per process, hence the variable of this file. */
#include "drupe_link.h"
#include "error.h"
#include "objects.h"
#include "site.h"
#include "wait.h"
#include <stddef.h>

#define CLOSE_NS      UINT64_C(1000000000)
#define CRASH_RECORDS 32

static const drupe_link *kernel_link;

/* An older kernel's table ends earlier. */
#define KERNEL_HAS(link, field)                                                                              \
    ((link) != NULL && (link)->size >= offsetof(drupe_link, field) + sizeof(link)->field &&                  \
     (link)->field != NULL)

bool drupe_py_claims_faults(void)
{
    return KERNEL_HAS(kernel_link, set_fault_claim);
}

/* --- Failures ------------------------------------------------------------------------------------------ */

static PyObject *failure_exception(drupe_py_state *state, const drupe_failure *failure, const char *whose)
{
    char prefix[256];
    PyOS_snprintf(prefix, sizeof prefix, "'%s' on %s, %s, failed: ", failure->label, failure->device, whose);
    PyObject *exception = drupe_py_error_object(state, &failure->error, failure->device, prefix);
    PyObject *label = exception == NULL ? NULL
                                        : PyUnicode_DecodeUTF8(failure->label,
                                                               (Py_ssize_t)strlen(failure->label), "replace");
    if (label != NULL) (void)PyObject_SetAttrString(exception, "label", label);
    Py_XDECREF(label);
    PyErr_Clear();
    return exception;
}

/* {"ename", "evalue", "traceback"} as UTF-8 JSON. */
static PyObject *failure_json(PyObject *exception)
{
    const char *name = Py_TYPE(exception)->tp_name;
    PyObject *json = PyImport_ImportModule("json");
    PyObject *text = json == NULL ? NULL : PyObject_Str(exception);
    PyObject *line = text == NULL ? NULL : PyUnicode_FromFormat("%s: %U", name, text);
    PyObject *content =
        line == NULL ? NULL
                     : Py_BuildValue("{s:s,s:O,s:[O]}", "ename", name, "evalue", text, "traceback", line);
    PyObject *result = content == NULL ? NULL : PyObject_CallMethod(json, "dumps", "O", content);
    Py_XDECREF(content);
    Py_XDECREF(line);
    Py_XDECREF(text);
    Py_XDECREF(json);
    return result;
}

/* Show the failure in the output of its own cell. */
static void failure_publish(drupe_py_state *state, const drupe_failure *failure)
{
    Py_ssize_t size = 0;
    PyObject *exception = failure_exception(state, failure, "submitted in this cell");
    PyObject *json = exception == NULL ? NULL : failure_json(exception);
    const char *text = json == NULL ? NULL : PyUnicode_AsUTF8AndSize(json, &size);
    if (text != NULL) (void)kernel_link->publish(failure->cell, "error", text, (size_t)size);
    Py_XDECREF(json);
    Py_XDECREF(exception);
    PyErr_Clear();
}

static void note_add(PyObject *exception, PyObject *other)
{
    PyObject *result = PyObject_CallMethod(exception, "add_note", "N", PyObject_Str(other));
    Py_XDECREF(result);
    PyErr_Clear();
}

static int cell_check(void *user)
{
    drupe_py_state *state = drupe_py_state_of_module(user);
    drupe_failure failure;
    PyObject *first = NULL;
    if (state == NULL || drupe_py_forked()) return 0;
    drupe_py_hold_collect();
    void *current = kernel_link->cell_retain();
    while (drupe_failure_take(&failure)) {
        bool own = failure.cell == current, none = failure.cell == NULL;
        PyObject *exception =
            failure_exception(state, &failure,
                              none  ? "submitted outside of a cell"
                              : own ? "submitted in this cell"
                                    : "submitted by another cell, whose output shows this error too");
        if (!own && !none) failure_publish(state, &failure);
        kernel_link->cell_release(failure.cell);
        if (first == NULL) {
            first = exception;
            continue;
        }
        if (exception != NULL) note_add(first, exception);
        Py_XDECREF(exception);
    }
    kernel_link->cell_release(current);
    if (first == NULL) return 0;
    (void)drupe_py_raise_object(first);
    return -1;
}

/* --- Exit ---------------------------------------------------------------------------------------------- */

/* What nobody asked for goes where exceptions go that cannot be raised. */
static void failures_print(drupe_py_state *state, PyObject *module)
{
    drupe_failure failure;
    while (drupe_failure_take(&failure)) {
        PyObject *exception = failure_exception(state, &failure, "which nothing waited for");
        if (failure.cell != NULL && kernel_link != NULL) kernel_link->cell_release(failure.cell);
        if (exception == NULL) continue;
        (void)drupe_py_raise_object(exception);
        PyErr_WriteUnraisable(module);
    }
}

static PyObject *engine_shutdown(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_used() || drupe_py_forked()) Py_RETURN_NONE;
    if (kernel_link != NULL) kernel_link->set_cell_check(NULL, NULL);
    if (drupe_py_claims_faults()) kernel_link->set_fault_claim(NULL);
    if (KERNEL_HAS(kernel_link, set_usage)) kernel_link->set_usage(NULL);
    if (KERNEL_HAS(kernel_link, set_crash_notes)) kernel_link->set_crash_notes(NULL);
    PyThreadState *thread = PyEval_SaveThread();
    drupe_library_settle(CLOSE_NS);
    PyEval_RestoreThread(thread);
    drupe_py_hold_collect();
    failures_print(state, module);
    thread = PyEval_SaveThread();
    drupe_array_forget();
    (void)drupe_library_close(0);
    PyEval_RestoreThread(thread);
    drupe_py_site_clear();
    drupe_py_hold_drain();
    Py_RETURN_NONE;
}

static PyMethodDef shutdown_method = {
    "_shutdown", engine_shutdown, METH_NOARGS,
    PyDoc_STR("Wait at most a second for all queues and close the devices. Called at exit.")};

static int exit_register(PyObject *module)
{
    PyObject *function = PyCFunction_NewEx(&shutdown_method, module, NULL);
    PyObject *atexit = function == NULL ? NULL : PyImport_ImportModule("atexit");
    PyObject *result = atexit == NULL ? NULL : PyObject_CallMethod(atexit, "register", "O", function);
    Py_XDECREF(atexit);
    Py_XDECREF(function);
    if (result == NULL) return -1;
    Py_DECREF(result);
    return 0;
}

/* --- Crashes ------------------------------------------------------------------------------------------- */

static size_t crash_notes(char *text, size_t size)
{
    return drupe_trace_text(text, size, CRASH_RECORDS);
}

/* --- Joining ------------------------------------------------------------------------------------------- */

int drupe_py_link_init(PyObject *module, drupe_py_state *state)
{
    (void)state;
    static drupe_observer observer = {.site = drupe_py_site_ask, .site_line = drupe_py_site_line};
    if (drupe_py_site_init(module) < 0 || exit_register(module) < 0) return -1;
    drupe_library_observe(&observer);
    PyObject *modules = PyImport_GetModuleDict();
    if (PyDict_GetItemString(modules, "drupe._jkernel") == NULL) return 0;
    const drupe_link *link = PyCapsule_Import(DRUPE_LINK_CAPSULE, 0);
    if (link == NULL) {
        /* The kernel's extension is loaded, and no kernel runs in this process. */
        PyErr_Clear();
        return 0;
    }
    if (link->version != DRUPE_LINK_VERSION || link->size < offsetof(drupe_link, set_fault_claim)) {
        PyErr_SetString(PyExc_ImportError,
                        "drupe._engine and drupe._jkernel are of different versions. Install "
                        "drupe again.");
        return -1;
    }
    kernel_link = link;
    if (drupe_py_claims_faults()) {
        drupe_fault_contain();
        link->set_fault_claim(drupe_py_fault_claim);
    }
    observer.cell_retain = link->cell_retain;
    observer.cell_release = link->cell_release;
    if (KERNEL_HAS(link, cell_number)) observer.cell_number = link->cell_number;
    drupe_library_observe(&observer);
    if (KERNEL_HAS(link, set_usage)) link->set_usage(drupe_py_usage);
    if (KERNEL_HAS(link, set_crash_notes)) link->set_crash_notes(crash_notes);
    /* The module lives until the interpreter ends: the kernel calls back into it. */
    link->set_cell_check(cell_check, Py_NewRef(module));
    return 0;
}
