/* The room of arrays: drupe.array in C, which is data types, arrays, and operations as callable objects.
 *
 * Owns: the one object of each data type and of each operation, in the module's state. Locks: the GIL.
 * Threads: any. */
#ifndef DRUPE_PYTHON_ARRAY_ROOM_H
#define DRUPE_PYTHON_ARRAY_ROOM_H

#include "engine/python/objects/objects_room.h"
#include <structmember.h>

/* --- Data types (dtype.c) ------------------------------------------------------------------------------ */

/* A DType, a name such as "float32" or "<f4", a NumPy type, or bool, int, float. NULL and None leave *dtype
 * alone. */
bool drupe_py_dtype_arg(drupe_py_state *state, PyObject *object, drupe_dtype *dtype);
/* The one DType object of a type. New reference. */
PyObject *drupe_py_dtype_object(drupe_py_state *state, drupe_dtype dtype);
/* 'b', 'i' or 'f', as NumPy has it. */
static inline char drupe_py_dtype_kind(drupe_dtype dtype)
{
    return dtype == DRUPE_BOOL ? 'b' : dtype < DRUPE_FLOAT32 ? 'i' : 'f';
}
/* float64, or float32 on a device without double precision. */
drupe_dtype drupe_py_dtype_float(drupe_queue *queue);

/* --- Arrays (array_new.c) ------------------------------------------------------------------------------ */

/* An Array that takes over `array`, which is left empty; also on failure. */
PyObject *drupe_py_array_wrap(drupe_py_state *state, drupe_array *array);
static inline drupe_array *drupe_py_array_of(PyObject *object)
{
    return &((drupe_py_array *)object)->array;
}
drupe_mem_kind drupe_py_array_kind(const drupe_array *array);
/* shape= : the number of dimensions, or -1. */
int drupe_py_shape_arg(PyObject *object, size_t shape[DRUPE_MAX_DIMS]);
/* A tuple of a number for each axis; that of the sizes. */
PyObject *drupe_py_axes_tuple(int ndim, const ptrdiff_t *numbers);
PyObject *drupe_py_shape_tuple(const drupe_array *array);
/* The number of one axis, or -1; it is added to the bits of `axes`. */
int drupe_py_axis_arg(PyObject *object, int ndim, uint32_t *axes);
/* axis= of a reduction: None is all axes. */
bool drupe_py_axes_arg(PyObject *object, int ndim, uint32_t *axes);

/* --- Operands (operand.c) ------------------------------------------------------------------------------ */

/* A Python or NumPy scalar. 1 if it is one, 0 if it is not (no exception), -1 with an exception. */
int drupe_py_scalar_arg(drupe_py_state *state, PyObject *object, drupe_scalar *scalar);
/* An array (borrowed) or a scalar; 1, 0 and -1 as above. */
int drupe_py_operand_arg(drupe_py_state *state, PyObject *object, drupe_operand *operand);
/* The exception for what is no operand: advises asarray() for arrays of others. */
void drupe_py_operand_refuse(PyObject *object, const char *function);
/* Raise TypeError with this text (taken), which drupe/_foreign.py has made; NULL passes its exception on. */
void drupe_py_refuse(PyObject *text);

/* Run an operation. `out` NULL: a new Array; else an Array that receives the result and is returned. */
PyObject *drupe_py_apply(drupe_py_state *state, drupe_op op, const drupe_operand *operands, size_t count,
                         PyObject *out);
/* The same, where operand `spent` is dropped afterwards: a new Array may take its memory. `count`: none is.
 */
PyObject *drupe_py_apply_over(drupe_py_state *state, drupe_op op, const drupe_operand *operands, size_t count,
                              size_t spent, PyObject *out);
PyObject *drupe_py_reduce(drupe_py_state *state, drupe_op op, PyObject *array, PyObject *axis,
                          PyObject *dtype, PyObject *keepdims);
/* `result` (taken; NULL passes its exception on), or, where `out` is given, that with its elements assigned. */
PyObject *drupe_py_into(drupe_py_state *state, PyObject *result, PyObject *out);
/* drupe_array_assign(), without the GIL when it is the first of its kind. False with an exception. */
bool drupe_py_assign(drupe_py_state *state, const drupe_array *array, const drupe_operand *value);
PyObject *drupe_py_matmul(drupe_py_state *state, PyObject *a, PyObject *b);
/* Before the first product or factorisation (py_linalg.c): drupe/array/_providers.py suggests libraries. Runs
 * Python code then. False with an exception. */
bool drupe_py_providers_find(void);

/* --- Making and fetching (make.c, host.c) -------------------------------------------------------------- */

/* An array on `queue` of what Python has: a scalar, a nested sequence, or anything with the buffer protocol.
 * dtype NONE = that of the data. */
PyObject *drupe_py_array_from(drupe_py_state *state, PyObject *object, drupe_queue *queue,
                              drupe_mem_kind kind, drupe_dtype dtype);
/* A new array with the elements of `array`, cast and copied to where it is wanted. */
PyObject *drupe_py_array_convert(drupe_py_state *state, const drupe_array *array, drupe_queue *queue,
                                 drupe_mem_kind kind, drupe_dtype dtype);
/* The same, where `array` is. */
static inline PyObject *drupe_py_array_cast(drupe_py_state *state, const drupe_array *array,
                                            drupe_dtype dtype)
{
    return drupe_py_array_convert(state, array, array->queue, drupe_py_array_kind(array), dtype);
}
/* The only element as a Python scalar. */
PyObject *drupe_py_array_item(drupe_py_state *state, const drupe_array *array);
/* A list of lists, or a scalar for no dimensions. */
PyObject *drupe_py_array_list(drupe_py_state *state, const drupe_array *array);
PyObject *drupe_py_array_numpy(drupe_py_state *state, const drupe_array *array);

/* --- The parts of the type Array ----------------------------------------------------------------------- */

/* The parts of the type Array, which number.c puts together. */

/* array.c, attribute.c */
void drupe_py_array_dealloc(PyObject *self);
PyObject *drupe_py_array_repr(PyObject *self);
PyObject *drupe_py_array_str(PyObject *self);
extern PyMethodDef drupe_py_array_methods[];
extern PyMemberDef drupe_py_array_members[];
extern PyGetSetDef drupe_py_array_getset[];

/* index.c */
Py_ssize_t drupe_py_array_length(PyObject *self);
PyObject *drupe_py_array_subscript(PyObject *self, PyObject *key);
int drupe_py_array_subscript_set(PyObject *self, PyObject *key, PyObject *value);
/* Element `index` of the first axis; IndexError ends an iteration. */
PyObject *drupe_py_array_row(PyObject *self, Py_ssize_t index);

/* --- For the module ------------------------------------------------------------------------------------ */

int drupe_py_dtypes_init(PyObject *module, drupe_py_state *state);     /* 0, or -1 with an exception */
int drupe_py_operations_init(PyObject *module, drupe_py_state *state); /* the same */
extern PyMethodDef drupe_py_array_functions[], drupe_py_linalg_functions[], drupe_py_make_functions[];
extern PyType_Spec drupe_py_DType_spec, drupe_py_Array_spec, drupe_py_Operation_spec;

#endif
