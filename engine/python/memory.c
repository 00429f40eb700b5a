/* drupe.memory: the three USM types. They share one struct and one set of functions; only shared and host
 * memory offer the buffer protocol. */
#include "error.h"
#include "submit.h"
#include "wait.h"
#include <stdlib.h>

static drupe_memory *memory_of(PyObject *self)
{
    return ((drupe_py_memory *)self)->memory;
}

static drupe_py_type type_of_kind(drupe_mem_kind kind)
{
    switch (kind) {
    case DRUPE_MEM_SHARED: return DRUPE_PY_TYPE_MemoryUSMShared;
    case DRUPE_MEM_HOST: return DRUPE_PY_TYPE_MemoryUSMHost;
    default: return DRUPE_PY_TYPE_MemoryUSMDevice;
    }
}

bool drupe_py_is_memory(const drupe_py_state *state, PyObject *object)
{
    return drupe_py_is(state, object, DRUPE_PY_TYPE_MemoryUSMDevice) ||
           drupe_py_is(state, object, DRUPE_PY_TYPE_MemoryUSMShared) ||
           drupe_py_is(state, object, DRUPE_PY_TYPE_MemoryUSMHost);
}

PyObject *drupe_py_memory_wrap(drupe_py_state *state, drupe_memory *memory)
{
    PyObject *self = drupe_py_new(state, type_of_kind(drupe_memory_kind(memory)));
    if (self == NULL)
        drupe_memory_release(memory);
    else
        ((drupe_py_memory *)self)->memory = memory;
    return self;
}

/* --- Making -------------------------------------------------------------------------------------------- */

static drupe_memory *alloc(drupe_py_state *state, drupe_queue *queue, drupe_mem_kind kind, size_t nbytes,
                           size_t alignment)
{
    drupe_memory *memory = NULL;
    if (nbytes == 0) {
        PyErr_SetString(PyExc_ValueError, "an allocation has at least 1 byte");
        return NULL;
    }
    if (drupe_memory_alloc(queue, kind, nbytes, alignment, &memory) == DRUPE_OK) return memory;
    drupe_py_raise_on(state, queue);
    return NULL;
}

/* Copy between memory and a host buffer, and wait. */
static bool copy_host(drupe_py_state *state, drupe_memory *memory, PyObject *object, bool to_host)
{
    drupe_queue *queue = drupe_memory_queue(memory);
    drupe_py_place usm = {drupe_memory_pointer(memory), drupe_memory_size(memory), queue, NULL}, host;
    if (!drupe_py_place_arg(state, object, to_host, to_host ? "the destination" : "the source", &host))
        return false;
    size_t nbytes = to_host ? usm.nbytes : host.nbytes;
    bool good = nbytes <= (to_host ? host.nbytes : usm.nbytes);
    drupe_event *event = NULL;
    if (!good)
        PyErr_Format(PyExc_ValueError, "%zu bytes do not fit: the destination has %zu", nbytes,
                     to_host ? host.nbytes : usm.nbytes);
    else
        good =
            drupe_py_copy(state, queue, NULL, to_host ? &host : &usm, to_host ? &usm : &host, nbytes, &event);
    drupe_py_place_clear(&host);
    /* An interrupted wait is safe: the queue holds the host buffer until the copy is done. */
    if (good) good = drupe_py_event_wait(state, event, DRUPE_FOREVER);
    if (event != NULL) drupe_event_release(event);
    return good;
}

/* The allocation behind an object with __sycl_usm_array_interface__, retained; NULL without an exception when
 * it has none. */
static drupe_memory *memory_of_interface(drupe_py_state *state, PyObject *object)
{
    PyObject *interface = PyObject_GetAttr(object, state->names[DRUPE_PY_NAME___sycl_usm_array_interface__]);
    if (interface == NULL) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
        return NULL;
    }
    drupe_memory *memory = NULL;
    PyObject *data = PyDict_Check(interface) ? PyDict_GetItemString(interface, "data") : NULL;
    if (data != NULL && PyTuple_Check(data) && PyTuple_GET_SIZE(data) >= 1) {
        void *pointer = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
        if (!PyErr_Occurred()) memory = drupe_memory_find(pointer);
    }
    if (memory == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError,
                        "the object's __sycl_usm_array_interface__ does not point into memory "
                        "that this process allocated with drupe");
    Py_DECREF(interface);
    return memory;
}

/* Memory of a size, on the allocation of another object, or with the bytes of a buffer. */
static drupe_memory *memory_make(drupe_py_state *state, PyObject *object, drupe_queue *queue,
                                 drupe_mem_kind kind, size_t alignment)
{
    size_t nbytes = 0;
    drupe_memory *memory = PyLong_Check(object) ? NULL : memory_of_interface(state, object);
    if (memory != NULL) {
        if (drupe_memory_kind(memory) == kind) return memory;
        PyErr_Format(
            PyExc_ValueError,
            "the object's memory is of kind \"%s\" and cannot be viewed as \"%s\": allocate and copy",
            drupe_mem_kind_name(drupe_memory_kind(memory)), drupe_mem_kind_name(kind));
        drupe_memory_release(memory);
        return NULL;
    }
    if (PyErr_Occurred()) return NULL;
    /* NumPy's integers are buffers too, but arrays of it are sequences. */
    if (PyIndex_Check(object) && !PySequence_Check(object))
        return drupe_py_size(object, "nbytes", &nbytes) ? alloc(state, queue, kind, nbytes, alignment) : NULL;
    drupe_py_place host;
    if (!drupe_py_place_arg(state, object, false, "nbytes_or_obj (if it is not an integer)", &host))
        return NULL;
    nbytes = host.nbytes;
    drupe_py_place_clear(&host);
    memory = alloc(state, queue, kind, nbytes, alignment);
    if (memory != NULL && !copy_host(state, memory, object, false)) {
        drupe_memory_release(memory);
        return NULL;
    }
    return memory;
}

static PyObject *memory_new_kind(PyTypeObject *type, PyObject *args, PyObject *kwargs, drupe_mem_kind kind)
{
    static const drupe_py_signature signature = {
        "MemoryUSM",
        1,
        1,
        4,
        {DRUPE_PY_NAME_nbytes_or_obj, DRUPE_PY_NAME_alignment, DRUPE_PY_NAME_queue, DRUPE_PY_NAME_device}};
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[4];
    size_t alignment = 0;
    if (!drupe_py_enter(state) || !drupe_py_args_new(state, &signature, args, kwargs, given)) return NULL;
    if (drupe_py_given(given[1]) && !drupe_py_size(given[1], "alignment", &alignment)) return NULL;
    drupe_queue *queue = drupe_py_queue_arg(state, given[2], given[3], NULL);
    if (queue == NULL) return NULL;
    drupe_memory *memory = memory_make(state, given[0], queue, kind, alignment);
    drupe_queue_release(queue);
    return memory == NULL ? NULL : drupe_py_memory_wrap(state, memory);
}

static PyObject *memory_new_device(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return memory_new_kind(type, args, kwargs, DRUPE_MEM_DEVICE);
}

static PyObject *memory_new_shared(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return memory_new_kind(type, args, kwargs, DRUPE_MEM_SHARED);
}

static PyObject *memory_new_host(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return memory_new_kind(type, args, kwargs, DRUPE_MEM_HOST);
}

static void memory_release(void *memory)
{
    drupe_memory_release(memory);
}

static void memory_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    drupe_memory *memory = memory_of(self);
    drupe_py_type type = type_of_kind(drupe_memory_kind(memory));
    if (!drupe_py_forked()) drupe_py_release_on(drupe_memory_queue(memory), memory_release, memory);
    drupe_py_free(self, type);
}

/* --- Copies -------------------------------------------------------------------------------------------- */

static PyObject *memory_from_host(PyObject *self, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of(self);
    if (!drupe_py_enter(state) || !copy_host(state, memory_of(self), object, false)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *memory_to_host(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = {"copy_to_host", 1, 0, 1, {DRUPE_PY_NAME_obj}};
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[1];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    PyObject *target =
        drupe_py_given(given[0])
            ? Py_NewRef(given[0])
            : PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)drupe_memory_size(memory_of(self)));
    if (target != NULL && !copy_host(state, memory_of(self), target, true)) Py_CLEAR(target);
    return target;
}

static PyObject *memory_from_device(PyObject *self, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_memory *memory = memory_of(self);
    if (!drupe_py_enter(state)) return NULL;
    drupe_py_place dst = {drupe_memory_pointer(memory), drupe_memory_size(memory), drupe_memory_queue(memory),
                          NULL},
                   src;
    if (!drupe_py_place_arg(state, object, false, "the source", &src)) return NULL;
    drupe_event *event = NULL, *before = NULL;
    bool good = src.nbytes <= dst.nbytes;
    if (!good) PyErr_Format(PyExc_ValueError, "%zu bytes do not fit into %zu", src.nbytes, dst.nbytes);
    /* What still writes the source on another queue comes first. */
    if (good && src.queue != NULL && src.queue != dst.queue) {
        drupe_submission barrier = {.queue = src.queue};
        good = drupe_submit_barrier(&barrier, &before) == DRUPE_OK;
        if (!good) drupe_py_raise_on(state, src.queue);
    }
    drupe_py_waits waits = {&before, before == NULL ? 0 : 1};
    if (good) good = drupe_py_copy(state, dst.queue, &waits, &dst, &src, src.nbytes, &event);
    drupe_py_place_clear(&src);
    if (good) good = drupe_py_event_wait(state, event, DRUPE_FOREVER);
    if (event != NULL) drupe_event_release(event);
    if (before != NULL) drupe_event_release(before);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *memory_memset(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = {"memset", 1, 0, 1, {DRUPE_PY_NAME_val}};
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[1];
    uint8_t byte[8] = {0};
    size_t size;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    if (given[0] != NULL && !drupe_py_scalar_bytes(given[0], DRUPE_SCALAR_U8, "val", byte, &size))
        return NULL;
    drupe_memory *memory = memory_of(self);
    drupe_submission submission = {.queue = drupe_memory_queue(memory), .label = "memset"};
    drupe_event *event = NULL;
    if (drupe_submit_fill(&submission, drupe_memory_pointer(memory), byte, 1, drupe_memory_size(memory),
                          &event) != DRUPE_OK)
        return drupe_py_raise_on(state, submission.queue);
    bool good = drupe_py_event_wait(state, event, DRUPE_FOREVER);
    drupe_event_release(event);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *memory_bytes(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of(self);
    if (!drupe_py_enter(state)) return NULL;
    drupe_memory *memory = memory_of(self);
    drupe_queue *queue = drupe_memory_queue(memory);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)drupe_memory_size(memory));
    if (bytes == NULL) return NULL;
    drupe_event *event = NULL;
    drupe_submission submission = {.queue = queue};
    bool good = drupe_submit_copy(&submission, PyBytes_AS_STRING(bytes), drupe_memory_pointer(memory),
                                  drupe_memory_size(memory), &event) == DRUPE_OK;
    if (!good)
        drupe_py_raise_on(state, queue);
    else
        good = drupe_py_event_wait_holding(state, event, bytes);
    if (event != NULL) drupe_event_release(event);
    if (!good) Py_CLEAR(bytes);
    return bytes;
}

/* --- Buffer protocol ----------------------------------------------------------------------------------- */

static int memory_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_memory *memory = memory_of(self);
    view->obj = NULL;
    if (!drupe_py_enter(state)) return -1;
    /* The reader expects to see what was submitted before. */
    if (!drupe_py_queue_wait(state, drupe_memory_queue(memory), DRUPE_FOREVER)) return -1;
    return PyBuffer_FillInfo(view, self, drupe_memory_pointer(memory), (Py_ssize_t)drupe_memory_size(memory),
                             0, flags);
}

static int memory_refuse_buffer(PyObject *self, Py_buffer *view, int flags)
{
    (void)self;
    (void)flags;
    view->obj = NULL;
    PyErr_SetString(PyExc_BufferError,
                    "the host cannot address device memory. Call copy_to_host(), or allocate "
                    "MemoryUSMShared or MemoryUSMHost instead.");
    return -1;
}

/* --- Properties ---------------------------------------------------------------------------------------- */

static Py_ssize_t memory_length(PyObject *self)
{
    return (Py_ssize_t)drupe_memory_size(memory_of(self));
}

static PyObject *memory_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(drupe_memory_size(memory_of(self)));
}

static PyObject *memory_usm_type(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(drupe_mem_kind_name(drupe_memory_kind(memory_of(self))));
}

static PyObject *memory_get_usm_type(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return memory_usm_type(self, NULL);
}

static PyObject *memory_pointer(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(drupe_memory_pointer(memory_of(self)));
}

static PyObject *memory_queue(PyObject *self, void *closure)
{
    (void)closure;
    drupe_queue *queue = drupe_memory_queue(memory_of(self));
    return drupe_py_queue_wrap(drupe_py_state_of(self), drupe_queue_retain(queue));
}

static PyObject *memory_device(PyObject *self, void *closure)
{
    (void)closure;
    drupe_device *device = drupe_queue_device(drupe_memory_queue(memory_of(self)));
    return drupe_py_device_wrap(drupe_py_state_of(self), drupe_device_retain(device));
}

static PyObject *memory_interface(PyObject *self, void *closure)
{
    (void)closure;
    return Py_BuildValue("{s:(n),s:s,s:(N,O),s:O,s:i,s:i,s:N}", "shape", memory_length(self), "typestr",
                         "|u1", "data", memory_pointer(self, NULL), Py_False, "strides", Py_None, "offset", 0,
                         "version", 1, "syclobj", memory_queue(self, NULL));
}

static PyObject *memory_repr(PyObject *self)
{
    drupe_memory *memory = memory_of(self);
    return PyUnicode_FromFormat(
        "<%s of %zu bytes on %s at %p>", Py_TYPE(self)->tp_name, drupe_memory_size(memory),
        drupe_device_filter(drupe_queue_device(drupe_memory_queue(memory))), drupe_memory_pointer(memory));
}

static PyMethodDef memory_methods[] = {
    {"copy_from_host", memory_from_host, METH_O,
     PyDoc_STR("copy_from_host($self, obj)\n--\n\nCopy the bytes of a buffer to the start of the memory, and "
               "wait.")},
    {"copy_to_host", (PyCFunction)(void (*)(void))memory_to_host, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR(
         "copy_to_host($self, obj=None)\n--\n\n"
         "Copy all bytes to a writable buffer (a new bytearray if none is given), wait, and return it.")},
    {"copy_from_device", memory_from_device, METH_O,
     PyDoc_STR(
         "copy_from_device($self, mem)\n--\n\nCopy from other memory or a contiguous array, and wait.")},
    {"memset", (PyCFunction)(void (*)(void))memory_memset, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("memset($self, val=0)\n--\n\nSet every byte, and wait.")},
    {"tobytes", memory_bytes, METH_NOARGS, PyDoc_STR("tobytes($self)\n--\n\nAll bytes.")},
    {"__bytes__", memory_bytes, METH_NOARGS, PyDoc_STR("__bytes__($self)\n--\n\nAll bytes.")},
    {"get_usm_type", memory_get_usm_type, METH_NOARGS,
     PyDoc_STR("get_usm_type($self)\n--\n\n\"device\", \"shared\" or \"host\".")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef memory_getset[] = {
    {"nbytes", memory_nbytes, NULL, "Size in bytes.", NULL},
    {"size", memory_nbytes, NULL, "Size in bytes.", NULL},
    {"usm_type", memory_usm_type, NULL, "\"device\", \"shared\" or \"host\".", NULL},
    {"queue", memory_queue, NULL, "The queue it was allocated with.", NULL},
    {"device", memory_device, NULL, "The device of that queue.", NULL},
    {"_pointer", memory_pointer, NULL, "The address, as an integer.", NULL},
    {"__sycl_usm_array_interface__", memory_interface, NULL, "The description other libraries read.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define MEMORY_TYPE(type, kind, sentence, getbuffer)                                                         \
    static PyType_Slot type##_slots[] = {                                                                    \
        {Py_tp_doc, (void *)PyDoc_STR(                                                                       \
                        #type "(nbytes_or_obj, *, alignment=0, queue=None, device=None)\n--\n\n" sentence)}, \
        {Py_tp_new, DRUPE_PY_FUNCTION(memory_new_##kind)},                                                   \
        {Py_tp_dealloc, DRUPE_PY_FUNCTION(memory_dealloc)},                                                  \
        {Py_tp_traverse, DRUPE_PY_FUNCTION(drupe_py_traverse)},                                              \
        {Py_tp_repr, DRUPE_PY_FUNCTION(memory_repr)},                                                        \
        {Py_tp_methods, memory_methods},                                                                     \
        {Py_tp_getset, memory_getset},                                                                       \
        {Py_mp_length, DRUPE_PY_FUNCTION(memory_length)},                                                    \
        {Py_bf_getbuffer, DRUPE_PY_FUNCTION(getbuffer)},                                                     \
        {0, NULL},                                                                                           \
    };                                                                                                       \
    PyType_Spec drupe_py_##type##_spec = {                                                                   \
        .name = "drupe.memory." #type,                                                                       \
        .basicsize = sizeof(drupe_py_memory),                                                                \
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,                         \
        .slots = type##_slots,                                                                               \
    }

MEMORY_TYPE(MemoryUSMDevice, device, "Memory on the device; the host copies to and from it.",
            memory_refuse_buffer);
MEMORY_TYPE(MemoryUSMShared, shared, "Memory that moves between host and device; it has the buffer protocol.",
            memory_getbuffer);
MEMORY_TYPE(MemoryUSMHost, host, "Host memory that the device reads; it has the buffer protocol.",
            memory_getbuffer);

/* --- Pools --------------------------------------------------------------------------------------------- */

static PyObject *pool_stats(PyObject *module, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    drupe_device *device = drupe_py_enter(state) ? drupe_py_device_arg(state, object) : NULL;
    if (device == NULL) return NULL;
    drupe_pool_stats stats;
    drupe_pool_stats_of(device, &stats);
    drupe_device_release(device);
    return Py_BuildValue("{s:K,s:K,s:K,s:K}", "used", (unsigned long long)stats.used, "reserved",
                         (unsigned long long)stats.reserved, "peak", (unsigned long long)stats.peak, "count",
                         (unsigned long long)stats.count);
}

static PyObject *pool_trim(PyObject *module, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    drupe_device *device = drupe_py_enter(state) ? drupe_py_device_arg(state, object) : NULL;
    if (device == NULL) return NULL;
    size_t given_back = drupe_pool_trim(device);
    drupe_device_release(device);
    return PyLong_FromSize_t(given_back);
}

PyMethodDef drupe_py_memory_functions[] = {
    {"_pool_stats", pool_stats, METH_O, PyDoc_STR("The memory figures of a device.")},
    {"_pool_trim", pool_trim, METH_O, PyDoc_STR("Give free blocks of a device back; the bytes given back.")},
    {NULL, NULL, 0, NULL},
};
