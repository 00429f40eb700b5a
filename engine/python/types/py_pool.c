/* Pools, holders of memory, and memory of other processes, for drupe.memory. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdio.h>
#include <stdlib.h>

#define KINDS 3

/* --- Pools --------------------------------------------------------------------------------------------- */

/* That of a drupe.Device, which the caller keeps. */
static drupe_device *device_of(PyObject *module, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state)) return NULL;
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Device)) return ((drupe_py_device *)object)->device;
    PyErr_Format(PyExc_TypeError, "a drupe.Device is expected, not %s", Py_TYPE(object)->tp_name);
    return NULL;
}

static PyObject *use_dict(const drupe_pool_use *use)
{
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K}", "used", (unsigned long long)use->used, "in_flight",
                         (unsigned long long)use->flying, "reserved", (unsigned long long)use->reserved,
                         "peak", (unsigned long long)use->peak, "count", (unsigned long long)use->count);
}

static PyObject *pool_stats(PyObject *module, PyObject *object)
{
    drupe_device *device = device_of(module, object);
    if (!device) return NULL;
    drupe_pool_stats stats;
    drupe_py_collect_all(); /* what is over is in flight no more */
    drupe_pool_stats_of(device, &stats);
    PyObject *kinds = PyDict_New();
    for (int i = 0; kinds && i < KINDS; i++) {
        PyObject *use = use_dict(&stats.kinds[i]);
        if (!use || PyDict_SetItemString(kinds, drupe_mem_kind_name((drupe_mem_kind)i), use) < 0)
            Py_CLEAR(kinds);
        Py_XDECREF(use);
    }
    return Py_BuildValue("{sKsKsKsKsKsKsIsN}", "used", (unsigned long long)stats.used, "in_flight",
                         (unsigned long long)stats.flying, "reserved", (unsigned long long)stats.reserved,
                         "peak", (unsigned long long)stats.peak, "count", (unsigned long long)stats.count,
                         "limit", (unsigned long long)stats.limit, "wipe", (unsigned)stats.wipe, "by_kind",
                         kinds);
}

static PyObject *pool_trim(PyObject *module, PyObject *object)
{
    drupe_device *device = device_of(module, object);
    if (!device) return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    size_t given_back = drupe_pool_trim(device);
    PyEval_RestoreThread(thread);
    return PyLong_FromSize_t(given_back);
}

static PyObject *pool_reset_peak(PyObject *module, PyObject *object)
{
    drupe_device *device = device_of(module, object);
    if (!device) return NULL;
    drupe_pool_reset_peak(device);
    Py_RETURN_NONE;
}

static PyObject *pool_limit(PyObject *module, PyObject *args)
{
    PyObject *object, *amount;
    size_t bytes = 0;
    if (!PyArg_ParseTuple(args, "OO", &object, &amount)) return NULL;
    if (drupe_py_given(amount) && !drupe_py_size(amount, "limit", &bytes)) return NULL;
    if (drupe_py_given(amount) && bytes == 0) {
        PyErr_SetString(PyExc_ValueError,
                        "limit is a number of bytes above 0, or None for no limit of your own");
        return NULL;
    }
    drupe_device *device = device_of(module, object);
    if (!device) return NULL;
    drupe_pool_set_limit(device, bytes);
    Py_RETURN_NONE;
}

static PyObject *pool_wipe(PyObject *module, PyObject *args)
{
    PyObject *object;
    unsigned when;
    if (!PyArg_ParseTuple(args, "OI", &object, &when)) return NULL;
    drupe_device *device = device_of(module, object);
    if (!device) return NULL;
    if (drupe_pool_set_wipe(device, when) != DRUPE_OK)
        return drupe_py_raise(drupe_py_state_of_module(module), device);
    Py_RETURN_NONE;
}

/* --- Holders ------------------------------------------------------------------------------------------- */

/* (filter, kind, bytes, count, cell, file, line, function, place); cell to function None where not known. */
PyObject *drupe_py_holder_tuple(const drupe_holder *holder)
{
    int offset = 0, line = 0;
    PyCodeObject *code = drupe_py_site_code(holder->site, &offset);
    PyObject *file = Py_None, *function = Py_None;
    if (code) {
        line = PyCode_Addr2Line(code, offset);
        file = code->co_filename;
        function = code->co_name;
    }
    char location[96];
    if (drupe_py_site_text(holder->site, holder->cell, location, sizeof location) == 0)
        strcpy(location, "unknown");
    PyObject *result = Py_BuildValue(
        "(ssKKNONOs)", holder->filter, drupe_mem_kind_name(holder->kind), (unsigned long long)holder->bytes,
        (unsigned long long)holder->count, drupe_py_number_or_none(holder->cell), file,
        drupe_py_number_or_none(line > 0 ? (uint64_t)line : 0), function, location);
    Py_XDECREF((PyObject *)code);
    return result;
}

/* A malloc'ed list; another thread may allocate between the two questions, so there is some room. */
static drupe_holder *holders_list(drupe_device *device, bool merge, size_t *count)
{
    size_t capacity = drupe_memory_holders(device, merge, NULL, 0) + 16;
    drupe_holder *list = calloc(capacity, sizeof *list);
    if (!list) {
        PyErr_NoMemory();
        return NULL;
    }
    *count = drupe_memory_holders(device, merge, list, capacity);
    if (*count > capacity) *count = capacity;
    return list;
}

static PyObject *holders(PyObject *module, PyObject *args)
{
    PyObject *object;
    int merge;
    if (!PyArg_ParseTuple(args, "Op", &object, &merge)) return NULL;
    drupe_device *device = NULL;
    if (object != Py_None && !(device = device_of(module, object))) return NULL;
    size_t count = 0;
    drupe_holder *list = holders_list(device, merge != 0, &count);
    PyObject *result = !list ? NULL : PyList_New(0);
    for (size_t i = 0; result && i < count; i++) drupe_py_append(&result, drupe_py_holder_tuple(&list[i]));
    free(list);
    return result;
}

#define LOGGED_MOST 8

void drupe_py_holders_log(void (*log)(const char *line))
{
    drupe_holder list[LOGGED_MOST];
    size_t count = drupe_memory_holders(NULL, true, list, LOGGED_MOST);
    for (size_t i = 0; i < count && i < LOGGED_MOST; i++) {
        char line[256], location[96];
        if (drupe_py_site_text(list[i].site, list[i].cell, location, sizeof location) == 0)
            strcpy(location, "unknown");
        snprintf(line, sizeof line,
                 "at the end: %llu bytes of %s memory on %.80s in %llu allocations, made at: %s",
                 (unsigned long long)list[i].bytes, drupe_mem_kind_name(list[i].kind), list[i].filter,
                 (unsigned long long)list[i].count, location);
        log(line);
    }
}

/* --- Between processes --------------------------------------------------------------------------------- */

static PyObject *ipc_export(PyObject *module, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state)) return NULL;
    if (!drupe_py_is_memory(state, object)) {
        PyErr_Format(PyExc_TypeError, "USM memory is expected, not %s", Py_TYPE(object)->tp_name);
        return NULL;
    }
    const drupe_py_memory *memory = (drupe_py_memory *)object;
    if (memory->offset != 0) {
        PyErr_SetString(PyExc_ValueError, "memory from the middle of an allocation cannot be shared between "
                                          "processes: share the whole allocation");
        return NULL;
    }
    /* Not that of one queue: any may use it. */
    if (!drupe_py_memory_idle(memory->memory)) return NULL;
    unsigned char handle[DRUPE_IPC_BYTES];
    drupe_status status = drupe_memory_export(memory->memory, handle);
    if (status != DRUPE_OK) return drupe_py_raise_on(state, drupe_memory_queue(memory->memory));
    return PyBytes_FromStringAndSize((char *)handle, (Py_ssize_t)sizeof handle);
}

static PyObject *ipc_import(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    const unsigned char *handle;
    Py_ssize_t size, nbytes;
    PyObject *queue_object;
    if (!PyArg_ParseTuple(args, "y#On", &handle, &size, &queue_object, &nbytes) || !drupe_py_enter(state))
        return NULL;
    if (size != DRUPE_IPC_BYTES || nbytes < 0) {
        PyErr_SetString(PyExc_ValueError, "these bytes are not a handle of memory");
        return NULL;
    }
    drupe_queue *queue = drupe_py_queue_arg(state, queue_object, NULL, NULL);
    if (!queue) return NULL;
    drupe_memory *memory = NULL;
    drupe_status status = drupe_memory_import(queue, handle, (size_t)nbytes, &memory);
    if (status != DRUPE_OK) drupe_py_raise_on(state, queue);
    drupe_py_queue_release(queue);
    return status == DRUPE_OK ? drupe_py_memory_wrap(state, memory) : NULL;
}

PyMethodDef drupe_py_pool_functions[] = {
    {"_pool_stats", pool_stats, METH_O, PyDoc_STR("The memory figures of a device.")},
    {"_pool_trim", pool_trim, METH_O, PyDoc_STR("Give free blocks of a device back; the bytes given back.")},
    {"_pool_reset_peak", pool_reset_peak, METH_O, PyDoc_STR("Begin a new peak.")},
    {"_pool_limit", pool_limit, METH_VARARGS, PyDoc_STR("Set a device's limit in bytes, or None.")},
    {"_pool_wipe", pool_wipe, METH_VARARGS,
     PyDoc_STR("Set when a device's memory is overwritten: 1, 2 or both.")},
    {"_holders", holders, METH_VARARGS, PyDoc_STR("What holds memory of a device (None: of all).")},
    {"_ipc_export", ipc_export, METH_O, PyDoc_STR("The name of an allocation.")},
    {"_ipc_import", ipc_import, METH_VARARGS, PyDoc_STR("Memory by a name, a queue and a number of bytes.")},
    {NULL, NULL, 0, NULL},
};
