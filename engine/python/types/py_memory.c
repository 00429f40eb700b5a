/* drupe.memory: the three USM types. They share one struct and one set of functions; only shared and host
 * memory offer the buffer protocol. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/submit/py_submit_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"
#include <stddef.h>
#include <structmember.h>

static drupe_memory *memory_of(PyObject *self)
{
    return ((drupe_py_memory *)self)->memory;
}

static drupe_queue *queue_of(PyObject *self)
{
    return drupe_memory_queue(memory_of(self));
}

static drupe_py_copy_end copy_end_of(const drupe_py_span *span)
{
    return (drupe_py_copy_end){(char *)drupe_memory_pointer(span->memory) + span->offset, span->nbytes,
                               drupe_memory_queue(span->memory), span->memory, .view.obj = NULL};
}

static drupe_py_span span_of(PyObject *self)
{
    const drupe_py_memory *memory = (drupe_py_memory *)self;
    return (drupe_py_span){memory->memory, memory->offset, memory->nbytes};
}

/* --- Copies -------------------------------------------------------------------------------------------- */

/* Copy all of `src` to the start of `dst`, and wait. Both are cleared. */
static bool copy_wait(drupe_py_state *state, drupe_queue *queue, drupe_py_copy_end *dst,
                      drupe_py_copy_end *src)
{
    drupe_event *event = NULL, *before = NULL;
    bool good = src->nbytes <= dst->nbytes;
    if (!good)
        PyErr_Format(PyExc_ValueError, "%zu bytes do not fit: the destination has %zu", src->nbytes,
                     dst->nbytes);
    /* What still writes the source on another queue comes first. */
    if (good && src->queue && src->queue != queue) {
        drupe_submission barrier = {.queue = src->queue};
        good = drupe_submit_barrier(&barrier, &before) == DRUPE_OK;
        if (!good) drupe_py_raise_on(state, src->queue);
    }
    drupe_py_waits waits = {&before, !before ? 0 : 1};
    good = good && drupe_py_copy(state, queue, &waits, dst, src, src->nbytes, &event);
    drupe_py_copy_end_clear(dst);
    drupe_py_copy_end_clear(src);
    /* An interrupted wait is safe: the queue holds a host buffer until the copy is done. */
    good = good && drupe_py_event_wait(state, event, DRUPE_FOREVER);
    drupe_event_release(event);
    drupe_event_release(before);
    return good;
}

/* Copy between memory and a host buffer, and wait. */
static bool copy_host(drupe_py_state *state, const drupe_py_span *span, PyObject *object, bool to_host)
{
    drupe_py_copy_end usm = copy_end_of(span), host;
    return drupe_py_copy_end_arg(state, object, to_host, to_host ? "the destination" : "the source", &host) &&
           copy_wait(state, usm.queue, to_host ? &host : &usm, to_host ? &usm : &host);
}

/* The other end's object may run Python code. */
static bool copy_host_held(drupe_py_state *state, const drupe_py_span *span, PyObject *object, bool to_host)
{
    drupe_park_hold();
    bool good = copy_host(state, span, object, to_host);
    drupe_park_let_go();
    return good;
}

/* --- Making -------------------------------------------------------------------------------------------- */

static bool alloc(drupe_py_state *state, drupe_queue *queue, drupe_mem_kind kind, size_t nbytes,
                  size_t alignment, drupe_py_span *span)
{
    *span = (drupe_py_span){NULL, 0, nbytes};
    if (nbytes == 0) {
        PyErr_SetString(PyExc_ValueError, "an allocation has at least 1 byte");
        return false;
    }
    if (drupe_memory_alloc(queue, kind, nbytes, alignment, &span->memory) == DRUPE_OK) return true;
    drupe_py_raise_on(state, queue);
    return false;
}

typedef struct request {
    drupe_queue *queue; /* retained; NULL: not given, and not needed yet */
    PyObject *queue_arg, *device_arg;
    drupe_mem_kind kind;
    size_t alignment;
    bool copy;
} request;

static bool request_queue(drupe_py_state *state, request *wanted, drupe_queue *fallback)
{
    wanted->queue = drupe_py_queue_arg(state, wanted->queue_arg, wanted->device_arg, fallback);
    return wanted->queue != NULL;
}

/* New memory with the bytes of `src`, which is emptied. */
static PyObject *make_copy(drupe_py_state *state, const request *wanted, drupe_py_copy_end *src)
{
    drupe_py_span fresh;
    bool good = alloc(state, wanted->queue, wanted->kind, src->nbytes, wanted->alignment, &fresh);
    if (good) {
        drupe_py_copy_end dst = copy_end_of(&fresh);
        good = copy_wait(state, wanted->queue, &dst, src);
    }
    drupe_py_copy_end_clear(src);
    if (good) return drupe_py_span_wrap(state, &fresh, NULL);
    drupe_memory_release(fresh.memory);
    return NULL;
}

/* A view of the memory behind an object, or a copy of it. `source` is taken. */
static PyObject *make_of_memory(drupe_py_state *state, request *wanted, PyObject *object,
                                drupe_py_span *source)
{
    if (!wanted->copy && drupe_memory_kind(source->memory) == wanted->kind)
        return drupe_py_span_wrap(state, source, object);
    drupe_py_copy_end end = copy_end_of(source);
    PyObject *self = NULL;
    if (!wanted->copy)
        PyErr_Format(PyExc_ValueError,
                     "the object's memory is of kind \"%s\" and cannot be viewed as \"%s\": give copy=True",
                     drupe_mem_kind_name(drupe_memory_kind(source->memory)),
                     drupe_mem_kind_name(wanted->kind));
    else if (request_queue(state, wanted, end.queue))
        self = make_copy(state, wanted, &end);
    drupe_memory_release(source->memory);
    return self;
}

static PyObject *make_of_buffer(drupe_py_state *state, const request *wanted, PyObject *object)
{
    drupe_py_copy_end host;
    bool good = drupe_py_copy_end_arg(state, object, false, "nbytes_or_obj (if it is not an integer)", &host);
    return good ? make_copy(state, wanted, &host) : NULL;
}

/* Memory of a size, on the allocation of another object, or with the bytes of a buffer. */
static PyObject *memory_make(drupe_py_state *state, PyObject *object, request *wanted)
{
    drupe_py_span span = {NULL, 0, 0};
    int found = PyLong_Check(object) ? 0 : drupe_py_interface_read(state, object, &span);
    if (found < 0) return NULL;
    if (found > 0) return make_of_memory(state, wanted, object, &span);
    if (!request_queue(state, wanted, NULL)) return NULL;
    /* NumPy's integers are buffers too, but arrays of it are sequences. */
    bool number = PyLong_Check(object) || (PyIndex_Check(object) && !PySequence_Check(object));
    if (!number) return make_of_buffer(state, wanted, object);
    size_t nbytes;
    if (!drupe_py_size(object, "nbytes", &nbytes) ||
        !alloc(state, wanted->queue, wanted->kind, nbytes, wanted->alignment, &span))
        return NULL;
    return drupe_py_span_wrap(state, &span, NULL);
}

static const drupe_py_signature new_signature =
    DRUPE_PY_SIGNATURE("MemoryUSM", 1, 1, DRUPE_PY_NAME_nbytes_or_obj, DRUPE_PY_NAME_alignment,
                       DRUPE_PY_NAME_queue, DRUPE_PY_NAME_device, DRUPE_PY_NAME_copy);

static PyObject *memory_of_type(drupe_py_state *state, const PyTypeObject *type, PyObject *const *given)
{
    drupe_mem_kind kind = type == state->types[DRUPE_PY_TYPE_MemoryUSMShared] ? DRUPE_MEM_SHARED
                          : type == state->types[DRUPE_PY_TYPE_MemoryUSMHost] ? DRUPE_MEM_HOST
                                                                              : DRUPE_MEM_DEVICE;
    request wanted = {.queue_arg = given[2], .device_arg = given[3], .kind = kind};
    if (drupe_py_given(given[1]) && !drupe_py_size(given[1], "alignment", &wanted.alignment)) return NULL;
    int copy = drupe_py_flag(given[4], 0);
    if (copy < 0) return NULL;
    wanted.copy = copy > 0;
    PyObject *self = memory_make(state, given[0], &wanted);
    drupe_py_queue_release(wanted.queue);
    return self;
}

static PyObject *memory_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[5];
    if (!drupe_py_enter(state) || !drupe_py_args_new(state, &new_signature, args, kwargs, given)) return NULL;
    return memory_of_type(state, type, given);
}

/* A call of the type, without a tuple and a dict in between. */
static PyObject *memory_call(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    drupe_py_state *state = drupe_py_state_of_type((PyTypeObject *)type);
    PyObject *given[5];
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (!drupe_py_enter(state) || !drupe_py_args(state, &new_signature, args, nargs, kwnames, given))
        return NULL;
    return memory_of_type(state, (PyTypeObject *)type, given);
}

void drupe_py_memory_init(drupe_py_state *state)
{
    for (int i = DRUPE_PY_TYPE_MemoryUSMDevice; i <= DRUPE_PY_TYPE_MemoryUSMHost; i++)
        state->types[i]->tp_vectorcall = memory_call;
}

static void memory_release(void *memory)
{
    drupe_memory_release(memory);
}

static int memory_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((drupe_py_memory *)self)->reference);
    return 0;
}

static int memory_clear(PyObject *self)
{
    Py_CLEAR(((drupe_py_memory *)self)->reference);
    return 0;
}

static void memory_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    drupe_memory *memory = memory_of(self);
    drupe_py_type type = drupe_py_memory_type(drupe_memory_kind(memory));
    Py_CLEAR(((drupe_py_memory *)self)->reference);
    if (!drupe_py_forked()) drupe_py_release_on(drupe_memory_queue(memory), memory_release, memory);
    drupe_py_free(self, type);
}

/* --- Methods ------------------------------------------------------------------------------------------- */

static PyObject *memory_from_host(PyObject *self, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_py_span span = span_of(self);
    if (!drupe_py_enter(state) || !copy_host_held(state, &span, object, false)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *memory_to_host(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("copy_to_host", 1, 0, DRUPE_PY_NAME_obj);
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_py_span span = span_of(self);
    PyObject *given[1];
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    PyObject *target = drupe_py_given(given[0])
                           ? Py_NewRef(given[0])
                           : PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)span.nbytes);
    if (target && !copy_host_held(state, &span, target, true)) Py_CLEAR(target);
    return target;
}

static PyObject *copy_from_device(PyObject *self, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_py_span span = span_of(self), other;
    if (!drupe_py_enter(state)) return NULL;
    drupe_py_copy_end src;
    bool ours = drupe_py_is_memory(state, object) || drupe_py_is(state, object, DRUPE_PY_TYPE_Array);
    int found = ours ? 0 : drupe_py_interface_read(state, object, &other);
    if (found < 0) return NULL;
    if (found > 0)
        src = copy_end_of(&other);
    else if (!drupe_py_copy_end_arg(state, object, false, "the source", &src))
        return NULL;
    drupe_py_copy_end dst = copy_end_of(&span);
    bool good = copy_wait(state, dst.queue, &dst, &src);
    if (found > 0) drupe_memory_release(other.memory);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *memory_from_device(PyObject *self, PyObject *object)
{
    drupe_park_hold();
    PyObject *result = copy_from_device(self, object);
    drupe_park_let_go();
    return result;
}

static PyObject *memory_memset(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("memset", 1, 0, DRUPE_PY_NAME_val);
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[1];
    uint8_t byte[8] = {0};
    size_t size;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    if (given[0] && !drupe_py_scalar_bytes(given[0], DRUPE_SCALAR_U8, "val", byte, &size)) return NULL;
    drupe_submission submission = {.queue = drupe_memory_queue(memory_of(self)), .label = "memset"};
    drupe_event *event = NULL;
    if (drupe_submit_fill(&submission, drupe_py_memory_pointer(self), byte, 1,
                          ((drupe_py_memory *)self)->nbytes, &event) != DRUPE_OK)
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
    drupe_queue *queue = queue_of(self);
    size_t nbytes = ((drupe_py_memory *)self)->nbytes;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)nbytes);
    drupe_event *event = NULL;
    drupe_keep keep;
    if (!bytes) return NULL;
    if (!drupe_py_keepalive_of(bytes, queue, &keep)) {
        Py_DECREF(bytes);
        return NULL;
    }
    drupe_submission submission = {.queue = queue, .sound = true, .keeps = &keep, .nkeeps = 1};
    bool good = drupe_submit_copy(&submission, PyBytes_AS_STRING(bytes), drupe_py_memory_pointer(self),
                                  nbytes, &event) == DRUPE_OK;
    if (!good)
        drupe_py_raise_on(state, queue);
    else
        good = drupe_py_event_wait(state, event, DRUPE_FOREVER);
    if (event) drupe_event_release(event);
    if (!good) Py_CLEAR(bytes);
    return bytes;
}

static PyObject *memory_accept(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return drupe_py_contents_accept(drupe_py_state_of(self), memory_of(self));
}

/* --- Buffer protocol ----------------------------------------------------------------------------------- */

static int memory_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_memory *memory = memory_of(self);
    view->obj = NULL;
    if (drupe_memory_kind(memory) == DRUPE_MEM_DEVICE) {
        PyErr_SetString(PyExc_BufferError,
                        "the host cannot address device memory. Call copy_to_host(), or allocate "
                        "MemoryUSMShared or MemoryUSMHost instead.");
        return -1;
    }
    /* The reader expects to see what was submitted before. */
    if (!drupe_py_enter(state) || !drupe_py_queue_wait(state, drupe_memory_queue(memory), DRUPE_FOREVER) ||
        !drupe_py_address_lent(state, memory) || !drupe_py_contents_good(state, memory) ||
        drupe_py_check_host(state, memory, (flags & PyBUF_WRITABLE) != 0) < 0)
        return -1;
    drupe_memory_view(memory, 1);
    if (PyBuffer_FillInfo(view, self, drupe_py_memory_pointer(self),
                          (Py_ssize_t)((drupe_py_memory *)self)->nbytes, 0, flags) == 0)
        return 0;
    drupe_memory_view(memory, -1);
    return -1;
}

static void memory_releasebuffer(PyObject *self, Py_buffer *view)
{
    (void)view;
    drupe_memory_view(memory_of(self), -1);
}

/* --- Properties ---------------------------------------------------------------------------------------- */

static Py_ssize_t memory_length(PyObject *self)
{
    return (Py_ssize_t)((drupe_py_memory *)self)->nbytes;
}

static PyObject *memory_usm_type(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(drupe_mem_kind_name(drupe_memory_kind(memory_of(self))));
}

static PyObject *memory_pointer(PyObject *self, void *closure)
{
    (void)closure;
    bool good = drupe_py_address_leaves(drupe_py_state_of(self), memory_of(self));
    return good ? PyLong_FromVoidPtr(drupe_py_memory_pointer(self)) : NULL;
}

static PyObject *memory_queue(PyObject *self, void *closure)
{
    (void)closure;
    return drupe_py_queue_wrap(drupe_py_state_of(self), drupe_queue_retain(queue_of(self)));
}

/* Of the allocation: the same for all that is made of it, wherever that lies. */
static PyObject *memory_allocation(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(memory_of(self));
}

/* To be looked at, not to be used: the memory may be parked. */
static PyObject *memory_shown(PyObject *self, void *closure)
{
    (void)closure;
    if (drupe_memory_parked(memory_of(self))) Py_RETURN_NONE;
    return PyUnicode_FromFormat("%p", drupe_py_memory_pointer(self));
}

static PyObject *memory_repr(PyObject *self)
{
    const char *where = drupe_device_filter(drupe_queue_device(queue_of(self)));
    if (drupe_memory_parked(memory_of(self)))
        return PyUnicode_FromFormat("<%s of %zu bytes of %s, parked>", Py_TYPE(self)->tp_name,
                                    ((drupe_py_memory *)self)->nbytes, where);
    return PyUnicode_FromFormat("<%s of %zu bytes on %s at %p>", Py_TYPE(self)->tp_name,
                                ((drupe_py_memory *)self)->nbytes, where, drupe_py_memory_pointer(self));
}

static PyMethodDef memory_methods[] = {
    {"copy_from_host", memory_from_host, METH_O,
     PyDoc_STR("copy_from_host($self, obj)\n--\n\nCopy the bytes of a buffer to the start of the memory, and "
               "wait.")},
    {"copy_to_host", DRUPE_PY_FAST(memory_to_host),
     PyDoc_STR(
         "copy_to_host($self, obj=None)\n--\n\n"
         "Copy all bytes to a writable buffer (a new bytearray if none is given), wait, and return it.")},
    {"copy_from_device", memory_from_device, METH_O,
     PyDoc_STR(
         "copy_from_device($self, mem)\n--\n\nCopy from other memory or a contiguous array, and wait.")},
    {"memset", DRUPE_PY_FAST(memory_memset),
     PyDoc_STR("memset($self, val=0)\n--\n\nSet every byte, and wait.")},
    {"tobytes", memory_bytes, METH_NOARGS, PyDoc_STR("tobytes($self)\n--\n\nAll bytes.")},
    {"__bytes__", memory_bytes, METH_NOARGS, PyDoc_STR("__bytes__($self)\n--\n\nAll bytes.")},
    {"accept_contents", memory_accept, METH_NOARGS, PyDoc_STR(DRUPE_PY_ACCEPT_DOC)},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef memory_members[] = {
    {"nbytes", T_PYSSIZET, offsetof(drupe_py_memory, nbytes), READONLY, "Size in bytes."},
    {"size", T_PYSSIZET, offsetof(drupe_py_memory, nbytes), READONLY, "Size in bytes."},
    {"reference_obj", T_OBJECT, offsetof(drupe_py_memory, reference), READONLY,
     "What it is a view of, or None."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef memory_getset[] = {
    {"usm_type", memory_usm_type, NULL, "\"device\", \"shared\" or \"host\".", NULL},
    {"queue", memory_queue, NULL, "The queue it was allocated with.", NULL},
    {"_pointer", memory_pointer, NULL, "The address, as an integer.", NULL},
    {"_allocation", memory_allocation, NULL, "A number that its allocation alone has.", NULL},
    {"_shown", memory_shown, NULL, "The address as text, to be shown, or None while it is parked.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define MEMORY_TYPE(type, sentence)                                                                          \
    static PyType_Slot type##_slots[] = {                                                                    \
        {Py_tp_doc,                                                                                          \
         (void *)PyDoc_STR(                                                                                  \
             #type                                                                                           \
             "(nbytes_or_obj, *, alignment=0, queue=None, device=None, copy=False)\n--\n\n" sentence)},      \
        {Py_tp_new, DRUPE_PY_FUNCTION(memory_new)},                                                          \
        {Py_tp_dealloc, DRUPE_PY_FUNCTION(memory_dealloc)},                                                  \
        {Py_tp_traverse, DRUPE_PY_FUNCTION(memory_traverse)},                                                \
        {Py_tp_clear, DRUPE_PY_FUNCTION(memory_clear)},                                                      \
        {Py_tp_repr, DRUPE_PY_FUNCTION(memory_repr)},                                                        \
        {Py_tp_methods, memory_methods},                                                                     \
        {Py_tp_members, memory_members},                                                                     \
        {Py_tp_getset, memory_getset},                                                                       \
        {Py_mp_length, DRUPE_PY_FUNCTION(memory_length)},                                                    \
        {Py_bf_getbuffer, DRUPE_PY_FUNCTION(memory_getbuffer)},                                              \
        {Py_bf_releasebuffer, DRUPE_PY_FUNCTION(memory_releasebuffer)},                                      \
        {0, NULL},                                                                                           \
    };                                                                                                       \
    DRUPE_PY_SPEC(type, "drupe.memory." #type, drupe_py_memory, Py_TPFLAGS_HAVE_GC, type##_slots)

MEMORY_TYPE(MemoryUSMDevice, "Memory on the device; the host copies to and from it.");
MEMORY_TYPE(MemoryUSMShared, "Memory that moves between host and device; it has the buffer protocol.");
MEMORY_TYPE(MemoryUSMHost, "Host memory that the device reads; it has the buffer protocol.");
