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

#define DOC(text, example) PyDoc_STR(text "\n\n" example)

PyMemberDef drupe_py_array_members[] = {
    {"ndim", T_INT, offsetof(drupe_py_array, array.ndim), READONLY,
     DOC("Number of axes: 0 to 32.", ">>> zeros((2, 3)).ndim\n2")},
    {"size", T_PYSSIZET, offsetof(drupe_py_array, array.size), READONLY,
     DOC("Number of elements; 1 without axes.", ">>> zeros((2, 3)).size, zeros(()).size\n(6, 1)")},
    {"_offset", T_PYSSIZET, offsetof(drupe_py_array, array.offset), READONLY,
     "Elements in front of the first one in `usm_data`."},
    {NULL, 0, 0, 0, NULL},
};

PyGetSetDef drupe_py_array_getset[] = {
    {"shape", get_shape, NULL, DOC("Sizes of the axes, as a tuple.", ">>> zeros((2, 3)).shape\n(2, 3)"),
     NULL},
    {"strides", get_strides, NULL,
     DOC("Elements from one to the next along each axis, as a tuple. NumPy counts bytes.",
         ">>> zeros((2, 3)).strides, zeros((2, 3)).T.strides\n((3, 1), (1, 3))"),
     NULL},
    {"dtype", get_dtype, NULL,
     DOC("Data type of the elements, a DType.", ">>> asarray([1, 2]).dtype == 'int64'\nTrue"), NULL},
    {"itemsize", get_itemsize, NULL, DOC("Bytes of an element.", ">>> asarray([1, 2]).itemsize\n8"), NULL},
    {"nbytes", get_nbytes, NULL,
     DOC("Bytes of all elements: size times itemsize.", ">>> asarray([1, 2]).nbytes\n16"), NULL},
    {"T", get_transposed, NULL,
     DOC("A view with the axes reversed.", ">>> zeros((2, 3, 4)).T.shape\n(4, 3, 2)"), NULL},
    {"real", get_real, set_real,
     DOC("A view of the real parts; of real numbers the array itself. It can be assigned to.",
         ">>> x = asarray([1 + 2j])\n>>> x.real = 5\n>>> x.real.tolist(), x.tolist()\n([5.0], [(5+2j)])"),
     NULL},
    {"imag", get_imag, set_imag,
     DOC("A view of the imaginary parts; of real numbers a new array of zeros. It can be assigned to; "
         "TypeError: the\nelements are real numbers.",
         ">>> asarray([1 + 2j]).imag.tolist()\n[2.0]"),
     NULL},
    {"queue", get_queue, NULL,
     DOC("The Queue that its work goes to.", ">>> x = zeros(2)\n>>> (x + 1).queue == x.queue\nTrue"), NULL},
    {"device", get_device, NULL,
     DOC("The Device that it lives on. As device= it stands for the array's queue, too.",
         ">>> x = zeros(2, device='host')\n>>> x.device.filter_string\n'host:cpu:0'"),
     NULL},
    {"usm_type", get_usm_type, NULL,
     DOC("The kind of its memory: \"device\", \"shared\" or \"host\".",
         ">>> zeros(2, usm_type='shared').usm_type\n'shared'"),
     NULL},
    {"usm_data", get_usm_data, NULL,
     DOC("The memory behind it: the whole allocation, of which a view may use a part.",
         ">>> x = zeros(8)\n>>> x.usm_data.nbytes >= x.nbytes\nTrue"),
     NULL},
    {"is_contiguous", get_contiguous, NULL,
     DOC("Whether the elements lie side by side in C order.",
         ">>> zeros((2, 3)).is_contiguous, zeros((2, 3)).T.is_contiguous\n(True, False)"),
     NULL},
    {"pending", drupe_py_array_pending, NULL,
     DOC("None, or the Recipe of an array whose values nobody has needed yet: what would be computed. Does "
         "not wait.",
         ">>> x = zeros(100_000)\n>>> y = 2*x + 1\n>>> len(y.pending.operations), x.pending\n(2, None)"),
     NULL},
    {"_pointer", get_pointer, NULL, "The address of the first element, as an integer.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
