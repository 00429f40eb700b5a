/* drupe._engine._Stream and _OffloadArray: what the classes of drupe.native begin with. A transfer of a few
 * bytes takes as long as a call of Python, so these calls are C: sync(), update_device() and update_host().
 *
 * Unlike our other types they have subclasses, so a method is told its state by the class that defines it. */
#include "engine/python/native/py_native_room.h"
#include <stddef.h>
#include <structmember.h>

typedef struct offload_stream {
    PyObject_HEAD PyObject *queue;
} offload_stream;

typedef struct offload_array {
    PyObject_HEAD PyObject *stream, *array, *device;
} offload_array;

static bool no_arguments(const char *method, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs == 0 && (!kwnames || PyTuple_GET_SIZE(kwnames) == 0)) return true;
    PyErr_Format(PyExc_TypeError, "%s() takes no arguments", method);
    return false;
}

/* --- Streams -------------------------------------------------------------------------------------------- */

/* The drupe.Queue of a stream; new reference. */
static PyObject *queue_of(const drupe_py_state *state, PyObject *stream)
{
    PyTypeObject *type = state->types[DRUPE_PY_TYPE_Stream];
    PyObject *queue = stream && PyObject_TypeCheck(stream, type) ? ((offload_stream *)stream)->queue : NULL;
    if (queue && drupe_py_is(state, queue, DRUPE_PY_TYPE_Queue)) return Py_NewRef(queue);
    PyErr_Format(PyExc_TypeError, "a stream of drupe.native with a drupe.Queue is needed, not %s",
                 stream ? Py_TYPE(stream)->tp_name : "nothing");
    return NULL;
}

static PyObject *stream_sync(PyObject *self, PyTypeObject *type, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    (void)args;
    drupe_py_state *state = drupe_py_state_of_type(type);
    if (!drupe_py_enter(state) || !no_arguments("sync", nargs, kwnames)) return NULL;
    PyObject *queue = queue_of(state, self);
    if (!queue) return NULL;
    bool good = drupe_py_queue_wait(state, ((drupe_py_queue *)queue)->queue, DRUPE_FOREVER);
    Py_DECREF(queue);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static int stream_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((offload_stream *)self)->queue);
    return drupe_py_traverse(self, visit, arg);
}

static int stream_clear(PyObject *self)
{
    Py_CLEAR(((offload_stream *)self)->queue);
    return 0;
}

static void stream_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)stream_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef stream_members[] = {
    {"queue", T_OBJECT_EX, offsetof(offload_stream, queue), 0, "The drupe.Queue that does its work."},
    {NULL, 0, 0, 0, NULL},
};

/* A method that is told the class that defines it. */
#define METHOD(function) (PyCFunction)(void (*)(void))(function), METH_METHOD | METH_FASTCALL | METH_KEYWORDS

static PyMethodDef stream_methods[] = {
    {"sync", METHOD(stream_sync),
     PyDoc_STR("sync($self)\n--\n\n"
               "Wait for all that was asked of the stream; raises the first error.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot stream_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("What drupe.native.Stream begins with.")},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(stream_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(stream_traverse)},
    {Py_tp_clear, DRUPE_PY_FUNCTION(stream_clear)},
    {Py_tp_members, stream_members},
    {Py_tp_methods, stream_methods},
    {0, NULL},
};

DRUPE_PY_SPEC(Stream, "drupe._engine._Stream", offload_stream, Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
              stream_slots);

/* --- Arrays --------------------------------------------------------------------------------------------- */

/* Queue a copy of all bytes of one part to the other. Both lie side by side in the same order. */
static bool transfer(drupe_py_state *state, PyObject *queue, PyObject *device, PyObject *array,
                     bool to_device)
{
    drupe_py_copy_end usm, host;
    if (!drupe_py_copy_end_host(array, !to_device, "the host part", &host)) return false;
    /* From here on no Python code runs: the address of the device part stays good. */
    bool good = drupe_py_copy_end_arg(state, device, to_device, "the device part", &usm);
    drupe_py_copy_end *dst = to_device ? &usm : &host, *src = to_device ? &host : &usm;
    if (good && src->nbytes > dst->nbytes) {
        PyErr_Format(PyExc_ValueError, "the host part has %zu bytes and the device part %zu", host.nbytes,
                     usm.nbytes);
        good = false;
    }
    good = good && drupe_py_copy(state, ((drupe_py_queue *)queue)->queue, NULL, dst, src, src->nbytes, NULL);
    drupe_py_copy_end_clear(&usm);
    drupe_py_copy_end_clear(&host);
    return good;
}

static bool update(drupe_py_state *state, PyObject *self, bool to_device)
{
    const offload_array *own = (offload_array *)self;
    if (!own->array || !own->device) {
        PyErr_Format(PyExc_AttributeError, "the array has no %s part", !own->array ? "host" : "device");
        return false;
    }
    PyObject *queue = queue_of(state, own->stream);
    if (!queue) return false;
    PyObject *array = Py_NewRef(own->array), *device = Py_NewRef(own->device);
    bool good = transfer(state, queue, device, array, to_device);
    Py_DECREF(device);
    Py_DECREF(array);
    Py_DECREF(queue);
    return good;
}

static PyObject *update_device(PyObject *self, PyTypeObject *type, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    (void)args;
    drupe_py_state *state = drupe_py_state_of_type(type);
    if (!drupe_py_enter(state) || !no_arguments("update_device", nargs, kwnames) ||
        !update(state, self, true))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *update_host(PyObject *self, PyTypeObject *type, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    (void)args;
    drupe_py_state *state = drupe_py_state_of_type(type);
    if (!drupe_py_enter(state) || !no_arguments("update_host", nargs, kwnames)) return NULL;
    if (((offload_array *)self)->array == Py_None) {
        PyObject *made = PyObject_CallMethodNoArgs(self, state->names[DRUPE_PY_NAME__make_host]);
        if (!made) return NULL;
        Py_DECREF(made);
    }
    return update(state, self, false) ? Py_NewRef(self) : NULL;
}

static int array_traverse(PyObject *self, visitproc visit, void *arg)
{
    const offload_array *own = (offload_array *)self;
    Py_VISIT(own->stream);
    Py_VISIT(own->array);
    Py_VISIT(own->device);
    return drupe_py_traverse(self, visit, arg);
}

static int array_clear(PyObject *self)
{
    offload_array *own = (offload_array *)self;
    Py_CLEAR(own->stream);
    Py_CLEAR(own->array);
    Py_CLEAR(own->device);
    return 0;
}

static void array_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)array_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef array_members[] = {
    {"stream", T_OBJECT_EX, offsetof(offload_array, stream), 0, "The stream that its work is queued on."},
    {"array", T_OBJECT_EX, offsetof(offload_array, array), 0, "The host part, a NumPy array, or None."},
    {"_device", T_OBJECT_EX, offsetof(offload_array, device), 0, "The device part, an array of drupe.array."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef array_methods[] = {
    {"update_device", METHOD(update_device),
     PyDoc_STR("update_device($self)\n--\n\n"
               "Queue the copy from the host part to the device part. The host part is not to be\n"
               "written until sync().")},
    {"update_host", METHOD(update_host),
     PyDoc_STR("update_host($self)\n--\n\n"
               "Queue the copy from the device part to the host part, which holds it after\n"
               "sync(). The array itself.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot array_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("What drupe.native.OffloadArray begins with.")},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(array_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(array_traverse)},
    {Py_tp_clear, DRUPE_PY_FUNCTION(array_clear)},
    {Py_tp_members, array_members},
    {Py_tp_methods, array_methods},
    {0, NULL},
};

DRUPE_PY_SPEC(OffloadArray, "drupe._engine._OffloadArray", offload_array,
              Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, array_slots);
