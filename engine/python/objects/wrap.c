/* Objects of Python around those of the engine. */
#include "engine/python/objects/objects_room.h"
#include "engine/python/waits/waits_room.h"

PyObject *drupe_py_device_wrap(drupe_py_state *state, drupe_device *device)
{
    PyObject *self = drupe_py_new(state, DRUPE_PY_TYPE_Device);
    if (!self)
        drupe_device_release(device);
    else
        ((drupe_py_device *)self)->device = device;
    return self;
}

PyObject *drupe_py_context_wrap(drupe_py_state *state, drupe_context *context)
{
    PyObject *self = drupe_py_new(state, DRUPE_PY_TYPE_Context);
    if (!self)
        drupe_context_release(context);
    else
        ((drupe_py_context *)self)->context = context;
    return self;
}

PyObject *drupe_py_queue_wrap(drupe_py_state *state, drupe_queue *queue)
{
    PyObject *self = drupe_py_new(state, DRUPE_PY_TYPE_Queue);
    if (!self)
        drupe_py_queue_release(queue);
    else
        ((drupe_py_queue *)self)->queue = queue;
    return self;
}

PyObject *drupe_py_event_wrap(drupe_py_state *state, drupe_event *event)
{
    PyObject *self = drupe_py_new(state, DRUPE_PY_TYPE_Event);
    if (!self)
        drupe_event_release(event);
    else
        ((drupe_py_event *)self)->event = event;
    return self;
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
