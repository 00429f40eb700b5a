/* The engine's end of the link to the Jupyter kernel, and what happens at the interpreter's exit.
 *
 * Failures that nobody waited for are looked for after the code of every cell. Each is raised in the cell
 * that is ending, so that no notebook run ends well over it, and one that another cell caused is also shown
 * there. */
#include "drupe/view.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include "engine/python/notebook/notebook_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/submit/py_submit_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLOSE_NS      UINT64_C(1000000000)
#define CRASH_RECORDS 32
#define KEPT_RECORDS  8
#define KEPT_SIZE     1000

bool drupe_py_claims_faults(void)
{
    return DRUPE_LINK_HAS(drupe_py_link, set_fault_claim);
}

/* --- Failures ------------------------------------------------------------------------------------------ */

/* Show the failure in the output of its own cell; false when that is not possible any more. Any thread,
 * without the GIL. */
static bool failure_publish(const drupe_failure *failure)
{
    char *json = malloc(DRUPE_PY_FAILURE_JSON);
    if (!json) return false;
    size_t size = drupe_py_failure_json(failure, DRUPE_PY_OWN_CELL, json, DRUPE_PY_FAILURE_JSON);
    bool shown = drupe_py_link->publish(failure->cell, "error", json, size) == 0;
    free(json);
    return shown;
}

/* For the engine's own thread: a cell that runs is told by its own check, and handlers run in checks only. */
static bool failure_observed(const drupe_failure *failure)
{
    return !drupe_py_handlers() && !drupe_py_cell_runs(failure->cell) && failure_publish(failure);
}

/* Failures of cells that run in other shells are theirs. */
static bool failure_for(const drupe_failure *failure, void *current)
{
    return failure->cell == current || !drupe_py_cell_runs(failure->cell);
}

/* The exception that the cell is to be failed with, which its queue's handler may take instead: then what the
 * handler raised, or NULL. */
static PyObject *failure_raised(drupe_py_state *state, const drupe_failure *failure, void *current)
{
    bool own = failure->cell == current, none = !failure->cell, good = false;
    drupe_py_reader reader = none ? DRUPE_PY_NO_CELL : own ? DRUPE_PY_OWN_CELL : DRUPE_PY_OTHER_CELL;
    PyObject *exception = drupe_py_failure_object(state, failure, NULL, reader);
    if (drupe_py_handle(state, failure->queue, exception, &good))
        return good ? NULL : drupe_py_exception_take();
    /* The kernel shows one line, which leads to the cell that shows all of it. */
    const bool elsewhere = !own && !none && (failure->shown || failure_publish(failure));
    if (exception && elsewhere)
        drupe_py_error_put(exception, Py_BuildValue("{s:I}", "_shown_in", failure->cell_number));
    PyErr_Clear();
    return exception;
}

/* One exception for all, or NULL for an empty list. */
static PyObject *failures_joined(PyObject *failures)
{
    Py_ssize_t count = PyList_GET_SIZE(failures);
    PyObject *one = count < 2 ? NULL : drupe_py_call("drupe._located", "joined", "(O)", failures);
    PyErr_Clear();
    return one || count == 0 ? one : PySequence_GetItem(failures, 0);
}

/* Takes the exception, which may be NULL. */
static void failure_add(PyObject *failures, PyObject *exception)
{
    if (exception && PyList_Append(failures, exception) < 0) PyErr_Clear();
    Py_XDECREF(exception);
}

static int cell_check(void *user)
{
    drupe_py_state *state = drupe_py_state_of_module(user);
    drupe_failure failure;
    if (!state || drupe_py_forked()) return 0;
    PyObject *failures = PyList_New(0);
    if (!failures) return -1;
    if (drupe_array_settle_all() != DRUPE_OK) {
        drupe_py_raise_on(state, NULL);
        failure_add(failures, drupe_py_exception_take());
    }
    drupe_py_keepalive_collect();
    drupe_py_excerpts_prepare();
    void *current = drupe_py_link->cell_retain();
    while (drupe_failure_take_for(failure_for, current, &failure)) {
        PyObject *exception = failure_raised(state, &failure, current);
        drupe_py_link->cell_release(failure.cell);
        failure_add(failures, exception);
    }
    drupe_py_launches_tell(current);
    drupe_py_link->cell_release(current);
    drupe_failures_watch();
    drupe_py_keepalive_drain();
    PyObject *joined = failures_joined(failures);
    Py_DECREF(failures);
    if (!joined) return 0;
    (void)drupe_py_raise_object(joined);
    return -1;
}

/* --- Exit ---------------------------------------------------------------------------------------------- */

/* What nobody asked for goes where exceptions go that cannot be raised. */
static void failures_print(drupe_py_state *state, PyObject *module)
{
    drupe_failure failure;
    while (drupe_failure_take(&failure)) {
        bool shown = failure.shown;
        if (failure.cell && drupe_py_link) {
            if (!shown) shown = failure_publish(&failure);
            drupe_py_link->cell_release(failure.cell);
        }
        if (shown) continue;
        PyObject *exception = drupe_py_failure_object(state, &failure, NULL, DRUPE_PY_WAITER);
        if (!exception) continue;
        (void)drupe_py_raise_object(exception);
        PyErr_WriteUnraisable(module);
    }
}

/* Callbacks that are due run, and host tasks that have not begun are given up. */
static void events_end(void)
{
    PyObject *name = PyUnicode_FromString("drupe._events");
    PyObject *module = !name ? NULL : PyImport_GetModule(name);
    PyObject *result = !module ? NULL : PyObject_CallMethod(module, "end", NULL);
    if (PyErr_Occurred()) PyErr_WriteUnraisable(module);
    Py_XDECREF(result);
    Py_XDECREF(module);
    Py_XDECREF(name);
}

static PyObject *engine_shutdown(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyThreadState *thread = PyEval_SaveThread();
    if (!drupe_py_forked()) drupe_live_stop();
    drupe_view_listen(NULL);
    drupe_py_answer_close();
    PyEval_RestoreThread(thread);
    if (!drupe_py_used() || drupe_py_forked()) Py_RETURN_NONE;
    if (drupe_py_link) drupe_py_link->set_cell_check(NULL, NULL);
    if (drupe_py_claims_faults()) drupe_py_link->set_fault_claim(NULL);
    if (DRUPE_LINK_HAS(drupe_py_link, set_usage)) drupe_py_link->set_usage(NULL);
    if (DRUPE_LINK_HAS(drupe_py_link, set_crash_notes)) drupe_py_link->set_crash_notes(NULL);
    events_end();
    drupe_py_notices_close();
    if (DRUPE_LINK_HAS(drupe_py_link, log)) drupe_py_holders_log(drupe_py_link->log);
    thread = PyEval_SaveThread();
    drupe_builds_end(CLOSE_NS);
    drupe_library_settle(CLOSE_NS);
    PyEval_RestoreThread(thread);
    drupe_py_keepalive_collect();
    failures_print(state, module);
    thread = PyEval_SaveThread();
    drupe_array_forget();
    drupe_library_scrub();
    (void)drupe_library_close(0);
    PyEval_RestoreThread(thread);
    drupe_py_site_clear();
    drupe_py_excerpts_clear();
    drupe_py_keepalive_drain();
    Py_RETURN_NONE;
}

static PyMethodDef shutdown_method = {
    "_shutdown", engine_shutdown, METH_NOARGS,
    PyDoc_STR("Wait at most a second for all queues and close the devices. Called at exit.")};

static int exit_register(PyObject *module)
{
    PyObject *result =
        drupe_py_call("atexit", "register", "(N)", PyCFunction_NewEx(&shutdown_method, module, NULL));
    Py_XDECREF(result);
    return !result ? -1 : 0;
}

/* --- Crashes ------------------------------------------------------------------------------------------- */

static size_t crash_notes(char *text, size_t size)
{
    return drupe_trace_text(text, size, CRASH_RECORDS);
}

/* For the kernel that comes after one that was killed. */
static void keep_notes(void)
{
    char text[KEPT_SIZE];
    drupe_py_link->keep_notes(text, drupe_trace_text(text, sizeof text, KEPT_RECORDS));
}

/* --- The log of programs without the kernel, which has its own ----------------------------------------- */

static int log_file = -1;

static void log_open(void)
{
    const char *path = getenv("DRUPE_LOG");
    if (path && path[0] != '\0') log_file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* One write a line, so that threads and processes do not mix. */
static void log_line(const char *line)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char text[1500], date[32];
    struct tm parts;
    time_t now = time(NULL);
    pthread_once(&once, log_open);
    if (log_file < 0 || !gmtime_r(&now, &parts)) return;
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    PyOS_snprintf(text, sizeof text, "%s [%ld] %s\n", date, (long)getpid(), line);
    /* A log that cannot be written is no reason to fail. */
    if (write(log_file, text, strlen(text)) < 0) return;
}

/* --- Joining ------------------------------------------------------------------------------------------- */

int drupe_py_link_init(PyObject *module, drupe_py_state *state)
{
    static drupe_observer observer = {
        .log = log_line, .site = drupe_py_site_ask, .site_text = drupe_py_site_text, .pause = drupe_py_pause};
    drupe_py_pause_open(state);
    if (drupe_py_site_init(module) < 0 || exit_register(module) < 0) return -1;
    drupe_library_observe(&observer);
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *kernel = PyDict_GetItemString(modules, "drupe._jkernel"); /* borrowed, and not used */
    if (!kernel) return 0;
    const drupe_link *link = PyCapsule_Import(DRUPE_LINK_CAPSULE, 0);
    if (!link) {
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
    drupe_py_link = link;
    if (drupe_py_claims_faults()) {
        drupe_fault_contain();
        link->set_fault_claim(drupe_py_fault_claim);
    }
    observer.cell_retain = drupe_py_site_cell;
    observer.cell_release = link->cell_release;
    if (DRUPE_LINK_HAS(link, cell_number)) observer.cell_number = link->cell_number;
    if (DRUPE_LINK_HAS(link, cell_share)) observer.cell_share = link->cell_share;
    if (DRUPE_LINK_HAS(link, log)) observer.log = link->log;
    if (DRUPE_LINK_HAS(link, exiting)) observer.exiting = link->exiting;
    if (DRUPE_LINK_HAS(link, cell_running)) observer.failed = failure_observed;
    observer.building = drupe_py_building;
    observer.built = drupe_py_built;
    if (DRUPE_LINK_HAS(link, text_cell)) observer.printing = link->text_cell;
    drupe_library_observe(&observer);
    if (DRUPE_LINK_HAS(link, set_usage)) link->set_usage(drupe_py_usage);
    if (DRUPE_LINK_HAS(link, set_crash_notes)) link->set_crash_notes(crash_notes);
    if (DRUPE_LINK_HAS(link, keep_notes)) drupe_view_listen(keep_notes);
    drupe_py_answer_open();
    /* The module lives until the interpreter ends: the kernel calls back into it. */
    link->set_cell_check(cell_check, Py_NewRef(module));
    return 0;
}
