/* drupe.Context: what owns memory and programs for a list of devices. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"

#define DEVICES_MAX 64

static drupe_context *context_of(PyObject *self)
{
    return ((drupe_py_context *)self)->context;
}

/* One device or a sequence of them, each retained. The count, or -1. */
static int devices_arg(drupe_py_state *state, PyObject *object, drupe_device **devices)
{
    if (!object || object == Py_None || PyUnicode_Check(object) ||
        drupe_py_is(state, object, DRUPE_PY_TYPE_Device))
        return !(devices[0] = drupe_py_device_arg(state, object)) ? -1 : 1;
    PyObject *sequence = PySequence_Tuple(object);
    if (!sequence) return -1;
    Py_ssize_t given = PyTuple_GET_SIZE(sequence);
    int count = 0;
    if (given > DEVICES_MAX)
        PyErr_Format(PyExc_ValueError, "a context takes at most %d devices", DEVICES_MAX);
    while (given <= DEVICES_MAX && count < given) {
        devices[count] = drupe_py_device_arg(state, PyTuple_GET_ITEM(sequence, count));
        if (!devices[count]) break;
        count++;
    }
    Py_DECREF(sequence);
    if (count == given) return count;
    while (count > 0) drupe_device_release(devices[--count]);
    return -1;
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("Context", 1, 0, DRUPE_PY_NAME_devices);
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[1];
    drupe_device *devices[DEVICES_MAX];
    drupe_context *context = NULL;
    if (!drupe_py_enter(state) || !drupe_py_args_new(state, &signature, args, kwargs, given)) return NULL;
    int count = devices_arg(state, given[0], devices);
    if (count < 0) return NULL;
    drupe_status status = drupe_context_open(devices, (size_t)count, &context);
    if (status != DRUPE_OK) drupe_py_raise(state, count > 0 ? devices[0] : NULL);
    for (int i = 0; i < count; i++) drupe_device_release(devices[i]);
    return status == DRUPE_OK ? drupe_py_context_wrap(state, context) : NULL;
}

static void context_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (!drupe_py_forked()) drupe_context_release(context_of(self));
    drupe_py_free(self, DRUPE_PY_TYPE_Context);
}

static PyObject *context_devices(PyObject *self, void *closure)
{
    (void)closure;
    drupe_py_state *state = drupe_py_state_of(self);
    size_t count = drupe_context_device_count(context_of(self));
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < count; i++) {
        drupe_device *device = drupe_context_device(context_of(self), i);
        drupe_py_append(&list, drupe_py_device_wrap(state, drupe_device_retain(device)));
    }
    return list;
}

static PyObject *context_device_count(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(drupe_context_device_count(context_of(self)));
}

static PyObject *context_repr(PyObject *self)
{
    PyObject *devices = context_devices(self, NULL);
    PyObject *text = !devices ? NULL : PyUnicode_FromFormat("<drupe.Context of %R>", devices);
    Py_XDECREF(devices);
    return text;
}

static PyMethodDef context_methods[] = {
    {"addressof_ref", drupe_py_address, METH_NOARGS,
     PyDoc_STR("addressof_ref($self)\n--\n\nThe address of the engine's context, for extensions in C.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef context_getset[] = {
    {"devices", context_devices, NULL, "The devices of the context.", NULL},
    {"device_count", context_device_count, NULL, "How many there are.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot context_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR("Context(devices=None)\n--\n\n"
                       "Owns memory and programs for one device or a list of devices of one platform.")},
    {Py_tp_new, DRUPE_PY_FUNCTION(context_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(context_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(drupe_py_traverse)},
    {Py_tp_richcompare, DRUPE_PY_FUNCTION(drupe_py_same)},
    {Py_tp_hash, DRUPE_PY_FUNCTION(drupe_py_same_hash)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(context_repr)},
    {Py_tp_methods, context_methods},
    {Py_tp_getset, context_getset},
    {0, NULL},
};

DRUPE_PY_SPEC(Context, "drupe.Context", drupe_py_context, Py_TPFLAGS_HAVE_GC, context_slots);
