/* The room of arrays: drupe.array in C, which is data types, arrays, and operations as callable objects.
 *
 * Owns: the one object of each data type and of each operation, in the module's state. Locks: the GIL.
 * Threads: any. */
#ifndef DRUPE_PYTHON_ARRAY_ROOM_H
#define DRUPE_PYTHON_ARRAY_ROOM_H

#include "drupe/array_pending.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/waits/waits_room.h"
#include <structmember.h>

/* --- Data types (dtype.c) ------------------------------------------------------------------------------ */

/* A DType, a name such as "float32" or "<f4", a NumPy type, or bool, int, float, complex. NULL and None leave
 * *dtype alone. */
bool drupe_py_dtype_arg(drupe_py_state *state, PyObject *object, drupe_dtype *dtype);
/* The one DType object of a type. New reference. */
PyObject *drupe_py_dtype_object(drupe_py_state *state, drupe_dtype dtype);
/* The type of such a kind with so many bytes; NONE, without an exception, if there is none. */
drupe_dtype drupe_py_dtype_of_kind(char kind, size_t itemsize);
/* float64 and complex128, or float32 and complex64 on a device without double precision. */
drupe_dtype drupe_py_dtype_float(drupe_queue *queue);
drupe_dtype drupe_py_dtype_complex(drupe_queue *queue);
/* The type of an array of such numbers: uint64 where one of them is above int64. */
drupe_dtype drupe_py_dtype_of_scalar(const drupe_scalar *scalar, drupe_queue *queue);

/* --- Elements (element.c) ------------------------------------------------------------------------------ */

/* A number as the bytes of a type; floats are cut for integers. OutOfRangeError for what an integer type
 * cannot hold, TypeError for a complex number where the type is real. */
bool drupe_py_element_store(drupe_py_state *state, const drupe_scalar *scalar, drupe_dtype dtype,
                            uint8_t *bytes);
/* The number that the bytes are, or that a scalar is. New reference. */
PyObject *drupe_py_element(drupe_dtype dtype, const uint8_t *bytes);
PyObject *drupe_py_number(const drupe_scalar *scalar);

/* --- Arrays (array_new.c) ------------------------------------------------------------------------------ */

/* Raise TypeError with this text (taken), which drupe/_foreign.py has made; NULL passes its exception on. */
void drupe_py_refuse(PyObject *text);
/* An Array that takes over `array`, which is left empty; also on failure. */
PyObject *drupe_py_array_wrap(drupe_py_state *state, drupe_array *array);
/* A tuple of `count` Arrays, with None for what is empty. Takes all of them, also on failure. */
PyObject *drupe_py_arrays_wrap(drupe_py_state *state, drupe_array *arrays, int count);
/* What a call that made `array` (taken) returns: an Array, or the exception of its status. `thread`: what
 * drupe_py_site_leave() or drupe_py_index_begin() gave before the call; the GIL is held afterwards. */
PyObject *drupe_py_array_made(drupe_py_state *state, PyThreadState *thread, drupe_status status,
                              drupe_queue *queue, drupe_array *array);
static inline drupe_array *drupe_py_array_of(PyObject *object)
{
    return &((drupe_py_array *)object)->array;
}
/* Have the values of an array that is pending submitted, before anything but its attributes is used; an
 * operand of an operation, a reduction or an assignment may stay pending. False with an exception. */
bool drupe_py_settle(drupe_py_state *state, const drupe_array *array);
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
/* The array (borrowed) of an Array; NULL with that exception. */
const drupe_array *drupe_py_array_arg(drupe_py_state *state, PyObject *object, const char *function);
/* The same, or NULL for None. False with an exception. */
bool drupe_py_array_arg_or_none(drupe_py_state *state, PyObject *object, const char *function,
                                const drupe_array **array);
/* Arguments by place of a function of the module: `count` of them, of which the first `arrays` are Arrays.
 * The state, in a process that may use devices; NULL with an exception. */
drupe_py_state *drupe_py_array_args(PyObject *module, const char *function, PyObject *const *args,
                                    Py_ssize_t nargs, Py_ssize_t count, Py_ssize_t arrays);

/* Run an operation. `out` NULL: a new Array; else an Array that receives the result and is returned. */
PyObject *drupe_py_apply(drupe_py_state *state, drupe_op op, const drupe_operand *operands, size_t count,
                         PyObject *out);
/* The same, where operand `spent` is dropped afterwards: a new Array may take its memory. `count`: none is.
 */
PyObject *drupe_py_apply_over(drupe_py_state *state, drupe_op op, const drupe_operand *operands, size_t count,
                              size_t spent, PyObject *out);
PyObject *drupe_py_reduce(drupe_py_state *state, drupe_op op, PyObject *array, PyObject *axis,
                          PyObject *dtype, PyObject *keepdims);
/* `result` (taken; NULL passes its exception on), or, where `out` is given, that with its elements assigned.
 */
PyObject *drupe_py_into(drupe_py_state *state, PyObject *result, PyObject *out);
/* drupe_array_assign(), without the GIL when it is the first of its kind. False with an exception. */
bool drupe_py_assign(drupe_py_state *state, const drupe_array *array, const drupe_operand *value);
/* Around a call that indexes `array` by `other` (or puts that there; may be NULL): the first of its kind runs
 * without the GIL. What it uses must be owned by the caller. */
PyThreadState *drupe_py_index_begin(drupe_py_state *state, const drupe_array *array,
                                    const drupe_array *other);
void drupe_py_index_end(PyThreadState *thread);
/* After drupe_py_providers_find(). */
PyObject *drupe_py_matmul(drupe_py_state *state, PyObject *a, PyObject *b, PyObject *out);
/* Before the first product or factorisation (py_linalg.c): drupe/array/_providers.py suggests libraries. Runs
 * Python code then. False with an exception. */
bool drupe_py_providers_find(void);

/* --- Making and fetching (make.c, host.c, nested.c) ---------------------------------------------------- */

#define DRUPE_PY_LOOK_EVERY 16384u /* elements; some milliseconds */
/* Now and then among many elements: signals are looked for, and other threads get the GIL. */
static inline bool drupe_py_go_on(const drupe_py_state *state, size_t *seen)
{
    return ++*seen % DRUPE_PY_LOOK_EVERY != 0 || !drupe_py_interrupted(state);
}
/* What an object's __array__() gives, as NumPy asks for it (a new reference, which has a buffer); NULL
 * without an exception if it has no such method. Runs Python code. */
PyObject *drupe_py_array_by_method(PyObject *object);
/* The elements of nested sequences side by side in a bytes object (a new reference), and their shape. *dtype
 * NONE: it becomes that of the data, on the device of `queue`. */
PyObject *drupe_py_nested_bytes(drupe_py_state *state, PyObject *object, drupe_queue *queue,
                                drupe_dtype *dtype, int *ndim, size_t shape[DRUPE_MAX_DIMS]);

/* An array on `queue` of what Python has: a scalar, a nested sequence, or anything with the buffer protocol.
 * dtype NONE = that of the data. */
PyObject *drupe_py_array_from(drupe_py_state *state, PyObject *object, drupe_queue *queue,
                              drupe_mem_kind kind, drupe_dtype dtype);
/* A new array with the elements of `array`, cast and copied to where it is wanted. */
PyObject *drupe_py_array_convert(drupe_py_state *state, const drupe_array *array, drupe_queue *queue,
                                 drupe_mem_kind kind, drupe_dtype dtype);
/* The same, where `array` is. */
PyObject *drupe_py_array_cast(drupe_py_state *state, const drupe_array *array, drupe_dtype dtype);
/* The only element as a Python scalar. */
PyObject *drupe_py_array_item(drupe_py_state *state, const drupe_array *array);
/* A list of lists, or a scalar for no dimensions. */
PyObject *drupe_py_array_list(drupe_py_state *state, const drupe_array *array);
PyObject *drupe_py_array_numpy(drupe_py_state *state, const drupe_array *array);

/* Whether every byte of a bool is 0 or 1, as C and kernels that the user writes take it for granted. */
bool drupe_py_are_truths(const uint8_t *bytes, size_t count);
/* Copy the elements of `keepalive`, a view that is filled, to the Array, which has as many. Taken, also on
 * failure. */
bool drupe_py_array_upload(drupe_py_state *state, PyObject *self, drupe_py_keepalive *keepalive);
/* Write the elements of an object with a buffer of the same type and shape to `array`, which is not pending,
 * without an array in between. 1: they are there, or on their way; -1: an exception is set; 0: nothing has
 * happened, and drupe_py_array_from() says what is the matter. May run Python code. */
int drupe_py_array_put(drupe_py_state *state, const drupe_array *array, PyObject *object);

/* --- Sharing memory with others (share.c, dlpack.c) ---------------------------------------------------- */

/* Before others get the address of the elements: wait for the work on them. False with an exception, that of
 * work that failed among them. */
bool drupe_py_array_settled(drupe_py_state *state, const drupe_array *array, bool writes);
/* _array_over(memory, dtype, shape, strides, offset, queue): an Array over a Memory, in elements of the
 * type. */
PyObject *drupe_py_array_over(PyObject *module, PyObject *args);
/* An Array over memory of others, as `keepalive` (taken, if it succeeds) has it: its view holds that, and
 * says where the elements are. NULL without an exception where the memory cannot be shared: it has to be
 * copied. */
PyObject *drupe_py_array_borrow(drupe_py_state *state, drupe_queue *queue, drupe_dtype dtype,
                                drupe_py_keepalive *keepalive);
int drupe_py_array_getbuffer(PyObject *self, Py_buffer *view, int flags);
void drupe_py_array_releasebuffer(PyObject *self, Py_buffer *view);
/* Whether the array's last getbuffer() has failed; its exception is set again then. NumPy drops it, and calls
 * __array__() next. */
bool drupe_py_array_unread(drupe_py_state *state, PyObject *self);

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
/* An iterator over the first axis. */
PyObject *drupe_py_array_iter(PyObject *self);
/* Element `index` of the first axis; IndexError ends an iteration. */
PyObject *drupe_py_array_row(PyObject *self, Py_ssize_t index);

/* --- py_pending.c ----------------------------------------------------------------------------------------
 */

/* x.pending: None, or a Recipe of drupe/array/_recipe.py. */
PyObject *drupe_py_array_pending(PyObject *self, void *closure);

/* --- For the module ------------------------------------------------------------------------------------ */

int drupe_py_dtypes_init(PyObject *module, drupe_py_state *state);     /* 0, or -1 with an exception */
int drupe_py_operations_init(PyObject *module, drupe_py_state *state); /* the same */
extern PyMethodDef drupe_py_array_functions[], drupe_py_make_functions[], drupe_py_order_functions[];
extern PyMethodDef drupe_py_index_functions[], drupe_py_dlpack_functions[], drupe_py_numeric_functions[];
extern PyMethodDef drupe_py_linalg_functions[], drupe_py_pending_functions[];
extern PyType_Spec drupe_py_DType_spec, drupe_py_Array_spec, drupe_py_Operation_spec;

#endif
