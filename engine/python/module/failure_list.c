/* The engine's log of failures as dictionaries. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

/* Takes `value`. */
static bool put(PyObject *record, const char *name, PyObject *value)
{
    bool done = value && PyDict_SetItemString(record, name, value) == 0;
    Py_XDECREF(value);
    return done;
}

static PyObject *text_or_none(const char *utf8)
{
    if (utf8[0] == '\0') Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(utf8, (Py_ssize_t)strlen(utf8), "replace");
}

static PyObject *number_or_none(uint64_t value)
{
    if (value == 0) Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(value);
}

static bool put_location(PyObject *record, const drupe_failure *failure)
{
    char location[160];
    int offset = 0, line = 0;
    PyCodeObject *code = drupe_py_site_code(failure->site, &offset);
    if (code) line = PyCode_Addr2Line(code, offset);
    PyObject *file = Py_NewRef(!code ? Py_None : code->co_filename);
    Py_XDECREF((PyObject *)code);
    (void)drupe_py_site_text(failure->site, failure->cell_number, location, sizeof location);
    return put(record, "place", text_or_none(location)) && put(record, "file", file) &&
           put(record, "line", number_or_none(line > 0 ? (uint64_t)line : 0));
}

static PyObject *note_dict(const drupe_failure_note *note)
{
    const drupe_failure *failure = &note->failure;
    const drupe_error *error = &failure->error;
    PyObject *record = PyDict_New();
    if (!record) return NULL;
    if (put(record, "id", PyLong_FromUnsignedLongLong(note->id)) &&
        put(record, "unix", PyLong_FromUnsignedLongLong(note->unix_ns / 1000000)) &&
        put(record, "at", PyLong_FromUnsignedLongLong(note->at_ns)) &&
        put(record, "cell", number_or_none(failure->cell_number)) && put_location(record, failure) &&
        put(record, "operation", text_or_none(drupe_py_operation_name(failure->kind))) &&
        put(record, "label", text_or_none(failure->label)) &&
        put(record, "device", text_or_none(failure->device)) &&
        put(record, "queue", number_or_none(failure->queue)) &&
        put(record, "submission", number_or_none(failure->submission)) &&
        put(record, "name", text_or_none(drupe_status_name(error->status))) &&
        put(record, "error", text_or_none(drupe_py_error_name(error->status))) &&
        put(record, "text", text_or_none(error->text)) &&
        put(record, "native", text_or_none(error->native_name)) &&
        put(record, "arguments", text_or_none(failure->arguments)) &&
        put(record, "hint", text_or_none(drupe_py_failure_hint(failure))) &&
        put(record, "dependents", PyLong_FromUnsignedLongLong(note->dependents)))
        return record;
    Py_DECREF(record);
    return NULL;
}

static PyObject *notes_list(const drupe_failure_note *notes, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *record = note_dict(&notes[i]);
        if (!record)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, record);
    }
    return list;
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
    PyObject *list = notes_list(notes, count);
    free(notes);
    return list;
}

PyMethodDef drupe_py_failure_functions[] = {
    {"_failures", (PyCFunction)(void (*)(void))module_failures, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("_failures(after=0)\n--\n\n"
               "The latest failures of submitted work, oldest first, as dictionaries: those\n"
               "with an `id` above `after`, reported or not. `unix` is ms since 1970, `at` ns\n"
               "of CLOCK_MONOTONIC, `error` the name of the exception's class, `name` that of\n"
               "the status, `dependents` how many submissions did not run because of it. What\n"
               "is not known is None.")},
    {NULL, NULL, 0, NULL},
};
