/* drupe._engine._NativeLibrary: a shared library. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/native/py_native_room.h"
#include "engine/python/waits/waits_room.h"
#include <stddef.h>
#include <structmember.h>

#define SLICE_NS UINT64_C(20000000)
#define MOST     256 /* queues that are looked at together */

static drupe_py_native_library *library_of(PyObject *self)
{
    return (drupe_py_native_library *)self;
}

/* (path, a queue or None) */
static PyObject *library_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *path, *queue;
    if (!drupe_py_enter(state) || !PyArg_ParseTuple(args, "UO:_NativeLibrary", &path, &queue)) return NULL;
    if (kwargs && PyDict_GET_SIZE(kwargs))
        return PyErr_Format(PyExc_TypeError, "_NativeLibrary takes no keywords");
    PyObject *bytes = PyUnicode_EncodeFSDefault(path);
    PyObject *self = bytes ? drupe_py_new(state, DRUPE_PY_TYPE_NativeLibrary) : NULL;
    if (!self) {
        Py_XDECREF(bytes);
        return NULL;
    }
    library_of(self)->path = Py_NewRef(path);
    if (drupe_py_is(state, queue, DRUPE_PY_TYPE_Queue))
        library_of(self)->queue = drupe_queue_retain(((drupe_py_queue *)queue)->queue);
    /* Its constructors run, and may take long. */
    PyThreadState *thread = PyEval_SaveThread();
    const drupe_status status = drupe_native_open(PyBytes_AS_STRING(bytes), &library_of(self)->library);
    PyEval_RestoreThread(thread);
    Py_DECREF(bytes);
    if (status == DRUPE_OK) return self;
    if (status == DRUPE_E_NOT_FOUND)
        PyErr_SetString(PyExc_OSError, drupe_error_last()->text);
    else
        drupe_py_raise(state, NULL);
    Py_DECREF(self);
    return NULL;
}

/* Let work go on for a moment, on all queues there are, and drop what is over. Reports no failure. */
static void await_some(void)
{
    drupe_queue *queues[MOST];
    const size_t count = drupe_queue_list(queues, MOST);
    bool idle = true;
    PyThreadState *thread = PyEval_SaveThread();
    for (size_t i = 0; i < count && idle; i++) idle = drupe_queue_idle(queues[i], SLICE_NS);
    PyEval_RestoreThread(thread);
    for (size_t i = 0; i < count; i++) {
        drupe_py_collect(queues[i]);
        drupe_py_queue_release(queues[i]);
    }
    drupe_py_collect_all();
}

/* Its destructors run, and may take long or want the GIL. */
static drupe_status close_library(PyObject *self)
{
    PyThreadState *thread = PyEval_SaveThread();
    const drupe_status status = drupe_native_close(library_of(self)->library);
    PyEval_RestoreThread(thread);
    return status;
}

static PyObject *library_unload(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of(self);
    if (!drupe_py_enter(state)) return NULL;
    drupe_py_collect_all();
    drupe_status status = close_library(self);
    while (status == DRUPE_E_BUSY) {
        await_some();
        if (drupe_py_interrupted(state)) return NULL;
        status = close_library(self);
    }
    if (status != DRUPE_OK) return drupe_py_raise(state, NULL);
    Py_RETURN_NONE;
}

static PyObject *library_calls(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(drupe_native_calls(library_of(self)->library));
}

static int library_traverse(PyObject *self, visitproc visit, void *arg)
{
    return drupe_py_traverse(self, visit, arg);
}

static void library_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (!drupe_py_forked()) {
        PyThreadState *thread = PyEval_SaveThread(); /* as in close_library() */
        drupe_native_release(library_of(self)->library);
        PyEval_RestoreThread(thread);
    }
    drupe_py_queue_release(library_of(self)->queue);
    Py_XDECREF(library_of(self)->path);
    drupe_py_free(self, DRUPE_PY_TYPE_NativeLibrary);
}

static PyMemberDef library_members[] = {
    {"path", T_OBJECT, offsetof(drupe_py_native_library, path), READONLY, "What was opened."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef library_getset[] = {
    {"calls", library_calls, NULL, "How many calls are in flight, as far as is known.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef library_methods[] = {
    {"unload", library_unload, METH_NOARGS,
     PyDoc_STR("unload()\n--\n\nTake no more calls, wait for those in flight, and unload the library.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot library_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("A shared library; drupe.native.Library has one.")},
    {Py_tp_new, DRUPE_PY_FUNCTION(library_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(library_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(library_traverse)},
    {Py_tp_members, library_members},
    {Py_tp_getset, library_getset},
    {Py_tp_methods, library_methods},
    {0, NULL},
};

DRUPE_PY_SPEC(NativeLibrary, "drupe._engine._NativeLibrary", drupe_py_native_library, Py_TPFLAGS_HAVE_GC,
              library_slots);
