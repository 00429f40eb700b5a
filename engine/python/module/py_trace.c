/* drupe.trace(): the ring of the latest submissions as dictionaries. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

/* Takes `value`; NULL and 0-like values are given as None by the callers. */
static bool put(PyObject *record, const char *name, PyObject *value)
{
    bool done = value && PyDict_SetItemString(record, name, value) == 0;
    Py_XDECREF(value);
    return done;
}

static PyObject *number(uint64_t value)
{
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *number_or_none(uint64_t value)
{
    if (value == 0) Py_RETURN_NONE;
    return number(value);
}

static PyObject *text(const char *utf8)
{
    return PyUnicode_DecodeUTF8(utf8, (Py_ssize_t)strlen(utf8), "replace");
}

static bool put_location(PyObject *record, uint32_t site)
{
    int offset = 0, line = 0;
    PyCodeObject *code = drupe_py_site_code(site, &offset);
    if (code) line = PyCode_Addr2Line(code, offset);
    PyObject *file = Py_NewRef(!code ? Py_None : code->co_filename);
    Py_XDECREF((PyObject *)code);
    return put(record, "file", file) && put(record, "line", number_or_none(line > 0 ? (uint64_t)line : 0));
}

static PyObject *record_dict(const drupe_trace_record *one)
{
    PyObject *record = PyDict_New();
    if (!record) return NULL;
    if (put(record, "id", number(one->id)) &&
        put(record, "operation", text(drupe_py_operation_name((drupe_work_kind)one->kind))) &&
        put(record, "label", text(one->label)) && put(record, "device", text(one->device)) &&
        put(record, "queue", number(one->queue)) && put(record, "cell", number_or_none(one->cell)) &&
        put_location(record, one->site) && put(record, "bytes", number(one->bytes)) &&
        put(record, "items", number_or_none(one->items)) &&
        put(record, "submitted", number(one->submitted_ns)) &&
        put(record, "seen", number_or_none(one->seen_ns)) &&
        put(record, "started", number_or_none(one->started_ns)) &&
        put(record, "ended", number_or_none(one->ended_ns)) &&
        put(record, "own_clock", Py_NewRef(one->own_clock ? Py_True : Py_False)) &&
        put(record, "status", text(drupe_trace_status_name((drupe_trace_status)one->status))))
        return record;
    Py_DECREF(record);
    return NULL;
}

static PyObject *records_list(const drupe_trace_record *records, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *record = record_dict(&records[i]);
        if (!record)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, record);
    }
    return list;
}

static PyObject *module_trace(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"after", "limit", NULL};
    unsigned long long after = 0;
    Py_ssize_t limit = DRUPE_TRACE_RECORDS;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Kn:trace", names, &after, &limit)) return NULL;
    if (!drupe_py_enter(drupe_py_state_of_module(module))) return NULL;
    if (limit < 0) {
        PyErr_SetString(PyExc_ValueError, "limit must not be negative");
        return NULL;
    }
    drupe_trace_update();
    drupe_py_keepalive_collect();
    drupe_trace_record *records = malloc(DRUPE_TRACE_RECORDS * sizeof *records);
    if (!records) return PyErr_NoMemory();
    size_t count = drupe_trace_read(after, records, DRUPE_TRACE_RECORDS);
    size_t skipped = count > (size_t)limit ? count - (size_t)limit : 0;
    PyObject *list = records_list(records + skipped, count - skipped);
    free(records);
    return list;
}

static PyObject *module_trace_one(PyObject *module, PyObject *number)
{
    drupe_trace_record one;
    uint64_t id = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred() || !drupe_py_enter(drupe_py_state_of_module(module))) return NULL;
    if (id == 0 || drupe_trace_read(id - 1, &one, 1) == 0 || one.id != id) Py_RETURN_NONE;
    return record_dict(&one);
}

PyMethodDef drupe_py_trace_functions[] = {
    {"_trace_one", module_trace_one, METH_O,
     PyDoc_STR("_trace_one(id)\n--\n\nOne record of trace(), or None when it is not there any more.")},
    {"trace", (PyCFunction)(void (*)(void))module_trace, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("trace(after=0, limit=8192)\n--\n\n"
               "The latest submissions of all queues, oldest first, as dictionaries: those with\n"
               "an `id` above `after`, and the last `limit` of them. Times are in ns of\n"
               "CLOCK_MONOTONIC: `submitted`, and `seen`, when the engine found the work to be\n"
               "over (None: not yet), which is later than its end. `started` and `ended` are\n"
               "when it ran, where that is known: of work of the host device, of host functions,\n"
               "and on queues with times; these are of the device's clock if `own_clock` says\n"
               "so. `status` is \"pending\",\n"
               "\"complete\", \"passed\" (over; it had no event that could tell a failure),\n"
               "\"failed\", \"skipped\" or \"cancelled\". `cell`, `file` and `line` say who submitted\n"
               "it.")},
    {NULL, NULL, 0, NULL},
};
