/* The attributes of Array. None of them waits. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"
#include <stddef.h>

static const drupe_array *array_of(PyObject *self)
{
    return drupe_py_array_of(self);
}

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    return drupe_py_shape_tuple(array_of(self));
}

static PyObject *get_strides(PyObject *self, void *closure)
{
    (void)closure;
    return drupe_py_axes_tuple(array_of(self)->ndim, array_of(self)->strides);
}

static PyObject *get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return drupe_py_dtype_object(drupe_py_state_of(self), array_of(self)->dtype);
}

static PyObject *get_itemsize(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(drupe_dtype_size(array_of(self)->dtype));
}

static PyObject *get_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(array_of(self)->size * drupe_dtype_size(array_of(self)->dtype));
}

static PyObject *get_transposed(PyObject *self, void *closure)
{
    (void)closure;
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_array view = {0};
    if (!drupe_py_settle(state, array_of(self))) return NULL;
    drupe_array_view(array_of(self), &view);
    if (drupe_array_permute(&view, NULL) == DRUPE_OK) return drupe_py_array_wrap(state, &view);
    drupe_array_clear(&view);
    return drupe_py_raise_on(state, array_of(self)->queue);
}

/* A view of the real parts (part 0) or the imaginary parts (1) of complex numbers. */
static PyObject *part_view(PyObject *self, size_t part)
{
    drupe_array view = {0};
    if (!drupe_py_settle(drupe_py_state_of(self), array_of(self))) return NULL;
    drupe_array_view(array_of(self), &view);
    view.dtype = drupe_dtype_real(view.dtype);
    view.offset = 2 * view.offset + part;
    for (int i = 0; i < view.ndim; i++) view.strides[i] *= 2;
    return drupe_py_array_wrap(drupe_py_state_of(self), &view);
}

static bool is_complex(PyObject *self)
{
    return drupe_dtype_kind(array_of(self)->dtype) == 'c';
}

static PyObject *get_real(PyObject *self, void *closure)
{
    (void)closure;
    return is_complex(self) ? part_view(self, 0) : Py_NewRef(self);
}

static PyObject *get_imag(PyObject *self, void *closure)
{
    (void)closure;
    if (is_complex(self)) return part_view(self, 1);
    return drupe_py_call("drupe._engine", "zeros_like", "(O)", self);
}

/* x.real += 1 assigns too, which is a view of what it changed. */
static int part_set(PyObject *view, PyObject *value)
{
    if (!value) PyErr_SetString(PyExc_AttributeError, "the parts of complex numbers cannot be deleted");
    const int result = !view || !value ? -1 : drupe_py_array_subscript_set(view, Py_Ellipsis, value);
    Py_XDECREF(view);
    return result;
}

static int set_real(PyObject *self, PyObject *value, void *closure)
{
    return part_set(get_real(self, closure), value);
}

static int set_imag(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    if (is_complex(self)) return part_set(part_view(self, 1), value);
    PyErr_Format(PyExc_TypeError, "numbers of type %s have no imaginary parts that could be set",
                 drupe_dtype_name(array_of(self)->dtype));
    return -1;
}

static PyObject *get_queue(PyObject *self, void *closure)
{
    (void)closure;
    return drupe_py_queue_wrap(drupe_py_state_of(self), drupe_queue_retain(array_of(self)->queue));
}

static PyObject *get_device(PyObject *self, void *closure)
{
    (void)closure;
    drupe_queue *queue = array_of(self)->queue;
    PyObject *device =
        drupe_py_device_wrap(drupe_py_state_of(self), drupe_device_retain(drupe_queue_device(queue)));
    if (device) ((drupe_py_device *)device)->array_queue = drupe_queue_retain(queue);
    return device;
}

static PyObject *get_usm_type(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(drupe_mem_kind_name(drupe_py_array_kind(array_of(self))));
}

static PyObject *get_usm_data(PyObject *self, void *closure)
{
    (void)closure;
    if (!drupe_py_settle(drupe_py_state_of(self), array_of(self))) return NULL;
    return drupe_py_memory_wrap(drupe_py_state_of(self), drupe_memory_retain(array_of(self)->memory));
}

static PyObject *get_pointer(PyObject *self, void *closure)
{
    (void)closure;
    if (!drupe_py_settle(drupe_py_state_of(self), array_of(self))) return NULL;
    if (!drupe_py_address_leaves(drupe_py_state_of(self), array_of(self)->memory)) return NULL;
    return PyLong_FromVoidPtr(drupe_array_pointer(array_of(self)));
}

static PyObject *get_contiguous(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(drupe_array_contiguous(array_of(self)));
}

PyMemberDef drupe_py_array_members[] = {
    {"ndim", T_INT, offsetof(drupe_py_array, array.ndim), READONLY, "Number of axes."},
    {"size", T_PYSSIZET, offsetof(drupe_py_array, array.size), READONLY, "Number of elements."},
    {"_offset", T_PYSSIZET, offsetof(drupe_py_array, array.offset), READONLY,
     "Elements in front of the first one in `usm_data`."},
    {NULL, 0, 0, 0, NULL},
};

PyGetSetDef drupe_py_array_getset[] = {
    {"shape", get_shape, NULL, "Sizes of the axes.", NULL},
    {"strides", get_strides, NULL, "Elements from one to the next along each axis.", NULL},
    {"dtype", get_dtype, NULL, "Data type of the elements.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"T", get_transposed, NULL, "A view with the axes reversed.", NULL},
    {"real", get_real, set_real, "A view of the real parts; of real numbers the array itself.", NULL},
    {"imag", get_imag, set_imag, "A view of the imaginary parts; of real numbers a new array of zeros.",
     NULL},
    {"queue", get_queue, NULL, "The queue its work goes to.", NULL},
    {"device", get_device, NULL, "The device it lives on. As device= it stands for the array's queue, too.",
     NULL},
    {"usm_type", get_usm_type, NULL, "\"device\", \"shared\" or \"host\".", NULL},
    {"usm_data", get_usm_data, NULL, "The memory behind it, the whole allocation.", NULL},
    {"is_contiguous", get_contiguous, NULL, "Whether the elements lie side by side in C order.", NULL},
    {"_pointer", get_pointer, NULL, "The address of the first element, as an integer.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
