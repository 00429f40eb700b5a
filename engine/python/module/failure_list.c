/* The engine's log of failures as dictionaries. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

static PyObject *note_dict(const void *record)
{
    const drupe_failure_note *note = record;
    const drupe_failure *failure = &note->failure;
    const drupe_error *error = &failure->error;
    char location[160];
    (void)drupe_py_site_text(failure->site, failure->cell_number, location, sizeof location);
    PyObject *all = drupe_py_failure_record(failure, drupe_py_operation_name(failure->kind));
    PyObject *more =
        Py_BuildValue("{s:K,s:K,s:K,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:K}", "id", note->id, "unix",
                      note->unix_ns / 1000000, "at", note->at_ns, "place", drupe_py_text_or_none(location),
                      "device", drupe_py_text_or_none(failure->device), "name",
                      drupe_py_text_or_none(drupe_status_name(error->status)), "error",
                      drupe_py_text_or_none(drupe_py_error_name(error->status)), "text",
                      drupe_py_text_or_none(error->text), "native", drupe_py_text_or_none(error->native_name),
                      "hint", drupe_py_text_or_none(drupe_py_failure_hint(failure)), "dependents",
                      (unsigned long long)note->dependents);
    if (!all || !more || PyDict_Update(all, more) < 0) Py_CLEAR(all);
    Py_XDECREF(more);
    return all;
}

static PyObject *module_failures(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"after", NULL};
    unsigned long long after = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|K:_failures", names, &after)) return NULL;
    if (!drupe_py_enter(drupe_py_state_of_module(module))) return NULL;
    drupe_trace_update();
    drupe_py_keepalive_collect();
    drupe_failure_note *notes = malloc(DRUPE_FAILURE_NOTES * sizeof *notes);
    if (!notes) return PyErr_NoMemory();
    size_t count = drupe_failures_read(after, notes, DRUPE_FAILURE_NOTES);
    PyObject *list = drupe_py_list(notes, count, sizeof *notes, note_dict);
    free(notes);
    return list;
}

PyMethodDef drupe_py_failure_functions[] = {
    {"_failures", DRUPE_PY_KEYWORDS(module_failures),
     PyDoc_STR("_failures(after=0)\n--\n\n"
               "The latest failures of submitted work, oldest first, as dictionaries: those\n"
               "with an `id` above `after`, reported or not. `unix` is ms since 1970, `at` ns\n"
               "of CLOCK_MONOTONIC, `error` the name of the exception's class, `name` that of\n"
               "the status, `dependents` how many submissions did not run because of it. What\n"
               "is not known is None.")},
    {NULL, NULL, 0, NULL},
};
