/* The disk cache, for drupe.compiler.cached, drupe.program and the command `python -m drupe cache`. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include "engine/python/types/types_room.h"
#include <stdlib.h>

static PyObject *cache_info(PyObject *module, PyObject *ignored)
{
    drupe_cache_info info;
    (void)module, (void)ignored;
    PyThreadState *thread = PyEval_SaveThread();
    drupe_cache_info_get(&info);
    PyEval_RestoreThread(thread);
    return Py_BuildValue("{s:O,s:N,s:N,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "on", info.on ? Py_True : Py_False,
                         "folder", PyUnicode_DecodeFSDefault(info.folder), "reason",
                         drupe_py_text(info.reason), "entries", info.entries, "bytes", info.bytes, "limit",
                         info.limit, "hits", info.hits, "misses", info.misses, "stored", info.stored,
                         "rejected", info.rejected);
}

static bool entry_add(const drupe_cache_entry *entry, void *list)
{
    PyObject *item = Py_BuildValue("{s:N,s:N,s:K,s:L,s:O}", "name", PyUnicode_DecodeFSDefault(entry->name),
                                   "device", drupe_py_text(entry->device), "bytes", entry->bytes, "used",
                                   (long long)entry->used, "valid", entry->valid ? Py_True : Py_False);
    bool good = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return good;
}

static PyObject *cache_entries(PyObject *module, PyObject *ignored)
{
    PyObject *list = PyList_New(0);
    (void)ignored;
    if (!list) return NULL;
    drupe_status status = drupe_cache_each(entry_add, list);
    if (status == DRUPE_OK && !PyErr_Occurred()) return list;
    Py_DECREF(list);
    return PyErr_Occurred() ? NULL : drupe_py_raise(drupe_py_state_of_module(module), NULL);
}

static PyObject *cache_clear(PyObject *module, PyObject *ignored)
{
    uint64_t bytes = 0;
    (void)ignored;
    if (drupe_cache_clear(&bytes) != DRUPE_OK) return drupe_py_raise(drupe_py_state_of_module(module), NULL);
    return PyLong_FromUnsignedLongLong(bytes);
}

/* In slices, between which Ctrl-C is looked for. */
static PyObject *cache_flush(PyObject *module, PyObject *timeout)
{
    uint64_t left;
    const uint64_t slice = UINT64_C(50000000);
    drupe_status status = DRUPE_E_TIMEOUT;
    if (!drupe_py_timeout(timeout, &left)) return NULL;
    while (status == DRUPE_E_TIMEOUT) {
        uint64_t now = left < slice ? left : slice;
        PyThreadState *thread = PyEval_SaveThread();
        status = drupe_cache_flush(now);
        PyEval_RestoreThread(thread);
        if (PyErr_CheckSignals() < 0) return NULL;
        if (left != DRUPE_FOREVER) left -= now;
        if (left == 0) break;
    }
    if (status != DRUPE_OK) return drupe_py_raise(drupe_py_state_of_module(module), NULL);
    Py_RETURN_NONE;
}

static PyObject *cache_is_on(PyObject *module, PyObject *ignored)
{
    (void)module, (void)ignored;
    return PyBool_FromLong(drupe_cache_is_on());
}

static PyObject *cache_find(PyObject *module, PyObject *key)
{
    char *text;
    Py_ssize_t length;
    void *bytes;
    size_t size;
    (void)module;
    if (PyBytes_AsStringAndSize(key, &text, &length) < 0) return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    bool found = drupe_cache_bytes_find(text, (size_t)length, &bytes, &size);
    PyEval_RestoreThread(thread);
    if (!found) Py_RETURN_NONE;
    PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
    free(bytes);
    return result;
}

static PyObject *cache_add(PyObject *module, PyObject *args)
{
    PyObject *key, *bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "SS:_cache_add", &key, &bytes)) return NULL;
    drupe_cache_bytes_add(PyBytes_AS_STRING(key), (size_t)PyBytes_GET_SIZE(key), PyBytes_AS_STRING(bytes),
                          (size_t)PyBytes_GET_SIZE(bytes));
    Py_RETURN_NONE;
}

PyMethodDef drupe_py_cache_functions[] = {
    {"_cache_is_on", cache_is_on, METH_NOARGS, PyDoc_STR("_cache_is_on()\n--\n\nWhether it is used.")},
    {"_cache_find", cache_find, METH_O,
     PyDoc_STR("_cache_find(key)\n--\n\nThe bytes that were added for these bytes, or None.")},
    {"_cache_add", cache_add, METH_VARARGS,
     PyDoc_STR("_cache_add(key, bytes)\n--\n\nHave bytes written to the disk cache.")},
    {"_cache_info", cache_info, METH_NOARGS,
     PyDoc_STR("_cache_info()\n--\n\nThe disk cache: where, how large, what this process used of it.")},
    {"_cache_entries", cache_entries, METH_NOARGS,
     PyDoc_STR("_cache_entries()\n--\n\nThe entries, those used last first.")},
    {"_cache_clear", cache_clear, METH_NOARGS,
     PyDoc_STR("_cache_clear()\n--\n\nRemove all entries; the bytes that freed.")},
    {"_cache_flush", cache_flush, METH_O,
     PyDoc_STR("_cache_flush(timeout)\n--\n\nWrite what waits to be written.")},
    {NULL, NULL, 0, NULL},
};
