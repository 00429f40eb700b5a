/* Objects of Python around those of the engine. */
#include "engine/python/objects/objects_room.h"
#include "engine/python/waits/waits_room.h"

static PyObject *wrap(drupe_py_state *state, drupe_py_type type, void *engine)
{
    PyObject *self = drupe_py_new(state, type);
    if (self) ((drupe_py_wrapped *)self)->engine = engine;
    return self;
}

PyObject *drupe_py_device_wrap(drupe_py_state *state, drupe_device *device)
{
    PyObject *self = wrap(state, DRUPE_PY_TYPE_Device, device);
    if (!self) drupe_device_release(device);
    return self;
}

PyObject *drupe_py_context_wrap(drupe_py_state *state, drupe_context *context)
{
    PyObject *self = wrap(state, DRUPE_PY_TYPE_Context, context);
    if (!self) drupe_context_release(context);
    return self;
}

PyObject *drupe_py_queue_wrap(drupe_py_state *state, drupe_queue *queue)
{
    PyObject *self = wrap(state, DRUPE_PY_TYPE_Queue, queue);
    if (!self) drupe_py_queue_release(queue);
    return self;
}

PyObject *drupe_py_event_wrap(drupe_py_state *state, drupe_event *event)
{
    PyObject *self = wrap(state, DRUPE_PY_TYPE_Event, event);
    if (!self) drupe_event_release(event);
    return self;
}

PyObject *drupe_py_same(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(other) != Py_TYPE(self)) Py_RETURN_NOTIMPLEMENTED;
    bool same = ((drupe_py_wrapped *)self)->engine == ((drupe_py_wrapped *)other)->engine;
    return PyBool_FromLong(same == (op == Py_EQ));
}

Py_hash_t drupe_py_same_hash(PyObject *self)
{
    const void *engine = ((drupe_py_wrapped *)self)->engine;
#if PY_VERSION_HEX >= 0x030D0000
    return Py_HashPointer(engine);
#else
    return _Py_HashPointer(engine);
#endif
}

PyObject *drupe_py_address(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return PyLong_FromVoidPtr(((drupe_py_wrapped *)self)->engine);
}

drupe_py_type drupe_py_memory_type(drupe_mem_kind kind)
{
    switch (kind) {
    case DRUPE_MEM_SHARED: return DRUPE_PY_TYPE_MemoryUSMShared;
    case DRUPE_MEM_HOST: return DRUPE_PY_TYPE_MemoryUSMHost;
    default: return DRUPE_PY_TYPE_MemoryUSMDevice;
    }
}

PyObject *drupe_py_span_wrap(drupe_py_state *state, const drupe_py_span *span, PyObject *reference)
{
    PyObject *self = drupe_py_new(state, drupe_py_memory_type(drupe_memory_kind(span->memory)));
    if (!self) {
        drupe_memory_release(span->memory);
        return NULL;
    }
    drupe_py_memory *memory = (drupe_py_memory *)self;
    memory->memory = span->memory;
    memory->offset = span->offset;
    memory->nbytes = span->nbytes;
    memory->reference = Py_XNewRef(reference);
    return self;
}

PyObject *drupe_py_memory_wrap(drupe_py_state *state, drupe_memory *memory)
{
    return drupe_py_span_wrap(state, &(drupe_py_span){memory, 0, drupe_memory_size(memory)}, NULL);
}

bool drupe_py_append(PyObject **list, PyObject *item)
{
    if (*list && (!item || PyList_Append(*list, item) < 0)) Py_CLEAR(*list);
    Py_XDECREF(item);
    return *list != NULL;
}

PyObject *drupe_py_tuple(PyObject *list)
{
    PyObject *tuple = !list ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}
