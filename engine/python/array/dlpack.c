/* DLPack, both ways.
 *
 * Source of the layouts and rules: DLPack 1.3 (dlpack.h) and the Python array API's "Data interchange
 * mechanisms". drupe/array/_exchange.py decides what is exported and from whom; here tensors become capsules
 * and capsules arrays.
 *
 * An exported tensor has a reference to the memory alone, which any thread may drop, with or without the GIL:
 * a deleter touches nothing of Python. An imported one is held by a capsule of our own, which calls the
 * producer's deleter; it travels as other keepalives do, so that only threads of Python, with the GIL, come
 * to that call. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

#define MAJOR     1u
#define MINOR     3u
#define READ_ONLY UINT64_C(1)
#define IS_COPIED UINT64_C(2)
#define ON_CPU    1 /* device types */
#define PINNED    3 /* host memory all the same: that of CUDA and of ROCm */
#define PINNED_R  11

typedef struct tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* elements; NULL strides: in C order */
    uint64_t byte_offset;
} tensor;

typedef struct plain {
    tensor tensor;
    void *manager;
    void (*deleter)(struct plain *self);
} plain;

typedef struct versioned {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(struct versioned *self);
    uint64_t flags;
    tensor tensor;
} versioned;

static const char plain_name[] = "dltensor", plain_used[] = "used_dltensor";
static const char versioned_name[] = "dltensor_versioned", versioned_used[] = "used_dltensor_versioned";
static const char holder_name[] = "drupe.dlpack", holder_versioned[] = "drupe.dlpack_versioned";

/* --- Types --------------------------------------------------------------------------------------------- */

/* By the kind of a data type. */
static const struct {
    char kind;
    uint8_t code;
} codes[] = {{'i', 0}, {'u', 1}, {'f', 2}, {'c', 5}, {'b', 6}};

static uint8_t code_of(drupe_dtype dtype)
{
    size_t i = 0;
    while (codes[i].kind != drupe_dtype_kind(dtype)) i++;
    return codes[i].code;
}

static drupe_dtype dtype_of(const tensor *from)
{
    for (int i = 0; from->lanes == 1 && i < DRUPE_DTYPE_COUNT; i++) {
        drupe_dtype dtype = (drupe_dtype)i;
        if (code_of(dtype) == from->code && 8 * drupe_dtype_size(dtype) == from->bits) return dtype;
    }
    return DRUPE_DTYPE_NONE;
}

/* --- Export -------------------------------------------------------------------------------------------- */

typedef struct exported {
    union {
        plain plain;
        versioned versioned;
    } as;
    drupe_memory *memory; /* retained */
    int64_t numbers[2 * DRUPE_MAX_DIMS];
} exported;

static void export_free(exported *self)
{
    if (self->memory) drupe_memory_view(self->memory, -1);
    drupe_memory_release(self->memory);
    free(self);
}

static void plain_delete(plain *self)
{
    export_free(self->manager);
}

static void versioned_delete(versioned *self)
{
    export_free(self->manager);
}

static exported *export_new(const drupe_array *array, bool is_versioned, bool copied, int kind, int number)
{
    exported *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->memory = drupe_memory_retain(array->memory);
    if (self->memory) drupe_memory_view(self->memory, 1);
    for (int d = 0; d < array->ndim; d++) {
        self->numbers[d] = (int64_t)array->shape[d];
        self->numbers[DRUPE_MAX_DIMS + d] = array->strides[d];
    }
    tensor one = {.data = drupe_array_pointer(array),
                  .device_type = kind,
                  .device_id = number,
                  .ndim = array->ndim,
                  .code = code_of(array->dtype),
                  .bits = (uint8_t)(8 * drupe_dtype_size(array->dtype)),
                  .lanes = 1,
                  .shape = self->numbers,
                  .strides = self->numbers + DRUPE_MAX_DIMS};
    if (is_versioned)
        self->as.versioned = (versioned){MAJOR, MINOR, self, versioned_delete, copied ? IS_COPIED : 0, one};
    else
        self->as.plain = (plain){one, self, plain_delete};
    return self;
}

/* Of a capsule that nobody has taken the tensor of. */
static void export_drop(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, plain_name)) {
        plain *self = PyCapsule_GetPointer(capsule, plain_name);
        if (self->deleter) self->deleter(self);
    } else if (PyCapsule_IsValid(capsule, versioned_name)) {
        versioned *self = PyCapsule_GetPointer(capsule, versioned_name);
        if (self->deleter) self->deleter(self);
    }
}

static PyObject *module_export(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *object;
    int is_versioned, copied, kind, number;
    if (!PyArg_ParseTuple(args, "O!ppii:_dlpack_export", state->types[DRUPE_PY_TYPE_Array], &object,
                          &is_versioned, &copied, &kind, &number))
        return NULL;
    const drupe_array *array = drupe_py_array_of(object);
    if (!drupe_py_enter(state) || !drupe_py_settle(state, array)) return NULL;
    if (kind == ON_CPU && !drupe_array_host_reaches(array)) {
        PyErr_Format(PyExc_BufferError, "the host cannot address the memory of %s",
                     drupe_device_filter(drupe_queue_device(array->queue)));
        return NULL;
    }
    if (!drupe_py_array_settled(state, array, true)) return NULL;
    exported *self = export_new(array, is_versioned, copied, kind, number);
    if (!self) return PyErr_NoMemory();
    PyObject *capsule =
        PyCapsule_New(self, is_versioned ? versioned_name : plain_name, export_drop); /* `as` comes first */
    if (!capsule) export_free(self);
    return capsule;
}

static PyObject *module_reaches(PyObject *module, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state)) return NULL;
    const drupe_array *array = drupe_py_array_arg(state, object, "_host_reaches");
    return array ? PyBool_FromLong(drupe_array_host_reaches(array)) : NULL;
}

/* --- Import -------------------------------------------------------------------------------------------- */

/* Of a holder: the producer may let go. */
static void holder_drop(PyObject *holder)
{
    drupe_py_saved saved = drupe_py_error_save();
    if (PyCapsule_IsValid(holder, holder_name)) {
        plain *from = PyCapsule_GetPointer(holder, holder_name);
        if (from->deleter) from->deleter(from);
    } else {
        versioned *from = PyCapsule_GetPointer(holder, holder_versioned);
        if (from->deleter) from->deleter(from);
    }
    drupe_py_error_restore(saved);
}

static void refuse(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    PyErr_FormatV(PyExc_BufferError, format, list);
    va_end(list);
}

/* A holder that has taken the capsule's tensor. Borrowed from it: the tensor, and its flags. */
static PyObject *take(PyObject *capsule, const tensor **from, uint64_t *flags)
{
    PyObject *holder;
    *flags = 0;
    if (PyCapsule_IsValid(capsule, versioned_name)) {
        versioned *given = PyCapsule_GetPointer(capsule, versioned_name);
        if (given->major != MAJOR) {
            refuse("the producer gives a tensor of DLPack %u.%u, and drupe.array knows 1.x", given->major,
                   given->minor);
            return NULL;
        }
        *from = &given->tensor;
        *flags = given->flags;
        holder = PyCapsule_New(given, holder_versioned, NULL);
        if (holder && PyCapsule_SetName(capsule, versioned_used) < 0) Py_CLEAR(holder);
    } else {
        plain *given = PyCapsule_GetPointer(capsule, plain_name); /* else an error, which says what it is */
        if (!given) return NULL;
        *from = &given->tensor;
        holder = PyCapsule_New(given, holder_name, NULL);
        if (holder && PyCapsule_SetName(capsule, plain_used) < 0) Py_CLEAR(holder);
    }
    if (holder) (void)PyCapsule_SetDestructor(holder, holder_drop); /* it is a capsule */
    return holder;
}

static bool tensor_check(const tensor *from, drupe_dtype *dtype)
{
    *dtype = dtype_of(from);
    if (from->device_type != ON_CPU && from->device_type != PINNED && from->device_type != PINNED_R) {
        refuse("the elements are on a device of DLPack's type %d, and drupe.array takes those in host memory "
               "(type 1): copy them there first",
               (int)from->device_type);
    } else if (*dtype == DRUPE_DTYPE_NONE) {
        refuse("drupe.array has no data type for elements of DLPack's code %d with %d bits and %d lanes: "
               "convert them first",
               (int)from->code, (int)from->bits, (int)from->lanes);
    } else if (from->ndim < 0 || from->ndim > DRUPE_MAX_DIMS) {
        refuse("an array has at most %d dimensions, and this has %d", DRUPE_MAX_DIMS, (int)from->ndim);
    }
    return !PyErr_Occurred();
}

/* The elements as a view that owns the holder (taken). `strides` is for the view, in bytes. */
static void view_fill(const tensor *from, uint64_t flags, PyObject *holder, size_t size, Py_ssize_t *strides,
                      Py_buffer *view)
{
    Py_ssize_t next = (Py_ssize_t)size, count = 1;
    for (int d = from->ndim - 1; d >= 0; d--) {
        strides[d] = from->strides ? (Py_ssize_t)from->strides[d] * (Py_ssize_t)size : next;
        next *= (Py_ssize_t)from->shape[d];
        count *= (Py_ssize_t)from->shape[d];
    }
    *view = (Py_buffer){.buf = (char *)from->data + from->byte_offset,
                        .obj = holder,
                        .len = count * (Py_ssize_t)size,
                        .itemsize = (Py_ssize_t)size,
                        .readonly = (flags & READ_ONLY) != 0,
                        .ndim = from->ndim,
                        .shape = (Py_ssize_t *)from->shape,
                        .strides = strides};
}

/* copy: 0, 1, or -1 (if needed). Takes the keepalive. */
static PyObject *array_of_view(drupe_py_state *state, drupe_queue *queue, drupe_dtype dtype,
                               drupe_py_keepalive *keepalive, int copy)
{
    const Py_buffer *view = &keepalive->view;
    PyObject *self = NULL;
    bool readonly = view->readonly, is_empty = view->len == 0;
    if (copy <= 0) self = drupe_py_array_borrow(state, queue, dtype, keepalive);
    if (self || PyErr_Occurred()) return self;
    if (copy == 0 && !is_empty) {
        refuse(readonly
                   ? "the elements are read-only, and arrays can be written: leave copy=False out"
                   : "%s cannot share these elements with their producer, which are in memory of its own "
                     "or not aligned: leave copy=False out, or take the device \"host\"",
               drupe_device_filter(drupe_queue_device(queue)));
        drupe_py_keepalive_free(keepalive);
        return NULL;
    }
    size_t shape[DRUPE_MAX_DIMS];
    for (int d = 0; d < view->ndim; d++) shape[d] = (size_t)view->shape[d];
    drupe_array array = {0};
    if (drupe_array_result(queue, DRUPE_MEM_DEVICE, dtype, view->ndim, shape, &array) == DRUPE_OK)
        self = drupe_py_array_wrap(state, &array);
    else
        drupe_py_raise_on(state, queue);
    if (!self || is_empty)
        drupe_py_keepalive_free(keepalive);
    else if (!drupe_py_array_upload(state, self, keepalive))
        Py_CLEAR(self);
    return self;
}

static PyObject *import(drupe_py_state *state, PyObject *capsule, drupe_queue *queue, int copy)
{
    const tensor *from = NULL;
    uint64_t flags;
    drupe_dtype dtype;
    Py_ssize_t strides[DRUPE_MAX_DIMS];
    PyObject *holder = take(capsule, &from, &flags);
    drupe_py_keepalive *keepalive = NULL;
    if (holder && tensor_check(from, &dtype)) keepalive = drupe_py_keepalive_new();
    if (!keepalive) {
        Py_XDECREF(holder);
        return NULL;
    }
    view_fill(from, flags, holder, drupe_dtype_size(dtype), strides, &keepalive->view);
    return array_of_view(state, queue, dtype, keepalive, copy);
}

static PyObject *module_import(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *capsule, *device;
    int copy;
    if (!drupe_py_enter(state) ||
        !PyArg_ParseTuple(args, "O!Oi:_dlpack_import", &PyCapsule_Type, &capsule, &device, &copy))
        return NULL;
    drupe_queue *queue = drupe_py_queue_arg(state, NULL, device, NULL);
    PyObject *self = queue ? import(state, capsule, queue, copy) : NULL;
    drupe_py_queue_release(queue);
    return self;
}

PyMethodDef drupe_py_dlpack_functions[] = {
    {"_dlpack_export", module_export, METH_VARARGS,
     PyDoc_STR(
         "_dlpack_export(x, versioned, copied)\n--\n\nThe elements of x, once the work on them is over, "
         "as a capsule of DLPack.")},
    {"_dlpack_import", module_import, METH_VARARGS,
     PyDoc_STR("_dlpack_import(capsule, device, copy)\n--\n\nAn array of the tensor of a capsule of DLPack; "
               "copy is 0, 1, or -1 for \"if needed\".")},
    {"_host_reaches", module_reaches, METH_O,
     PyDoc_STR("_host_reaches(x)\n--\n\nWhether the host can address the elements.")},
    {NULL, NULL, 0, NULL},
};
