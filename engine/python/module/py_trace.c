/* drupe.trace(): the ring of the latest submissions as dictionaries. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

static PyObject *record_dict(const void *record)
{
    const drupe_trace_record *one = record;
    int line = 0;
    PyObject *file = drupe_py_site_file(one->site, &line);
    return Py_BuildValue(
        "{s:K,s:s,s:N,s:N,s:I,s:N,s:N,s:N,s:K,s:N,s:K,s:N,s:N,s:N,s:O,s:s}", "id", one->id, "operation",
        drupe_py_operation_name((drupe_work_kind)one->kind), "label", drupe_py_text(one->label), "device",
        drupe_py_text(one->device), "queue", one->queue, "cell", drupe_py_number_or_none(one->cell), "file",
        file, "line", drupe_py_number_or_none((uint64_t)line), "bytes", one->bytes, "items",
        drupe_py_number_or_none(one->items), "submitted", one->submitted_ns, "seen",
        drupe_py_number_or_none(one->seen_ns), "started", drupe_py_number_or_none(one->started_ns), "ended",
        drupe_py_number_or_none(one->ended_ns), "own_clock", one->own_clock ? Py_True : Py_False, "status",
        drupe_trace_status_name((drupe_trace_status)one->status));
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
    PyObject *list = drupe_py_list(records + skipped, count - skipped, sizeof *records, record_dict);
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
    {"trace", DRUPE_PY_KEYWORDS(module_trace),
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
