/* The room of dispatch: calls of kernels that are written in Python.
 *
 * A call is read into a signature, which is compared with those of what was compiled before; a plan says what
 * the parameters of the compiled kernel are then. What fits nothing is left to Python.
 *
 * Owns: nothing; a launcher owns its entries. Locks: the GIL. Threads: any. */
#ifndef DRUPE_PYTHON_DISPATCH_ROOM_H
#define DRUPE_PYTHON_DISPATCH_ROOM_H

#include "engine/python/array/py_array_room.h"
#include "engine/python/objects/objects_room.h"

/* --- ranges.c ------------------------------------------------------------------------------------------- */

#define DRUPE_PY_DIMS 3

/* A Range is a tuple of 1 to DRUPE_PY_DIMS ints, whose product is at most PY_SSIZE_T_MAX. */
typedef struct drupe_py_nd_range {
    PyObject_HEAD PyObject *global_range, *local_range; /* Ranges of as many dimensions; the second divides
                                                           the first one */
} drupe_py_nd_range;

/* The sizes of a Range in its own order. Returns how many there are. Runs no Python code. */
int drupe_py_range_sizes(PyObject *range, size_t sizes[DRUPE_PY_DIMS]);

/* --- signature.c ---------------------------------------------------------------------------------------- */

#define DRUPE_PY_NODES 96 /* of a call: its arguments, and behind each tuple what is in it */

typedef enum drupe_py_node {
    DRUPE_PY_NODE_ARRAY,
    DRUPE_PY_NODE_BOOL,
    DRUPE_PY_NODE_INT,
    DRUPE_PY_NODE_FLOAT,
    DRUPE_PY_NODE_COMPLEX,
    DRUPE_PY_NODE_NUMPY, /* a scalar of NumPy's */
    DRUPE_PY_NODE_TUPLE, /* or a class derived from tuple */
    DRUPE_PY_NODE_LOCAL  /* a LocalAccessor */
} drupe_py_node;

/* What a call is made with; only the first `words` and `nodes` of the lists are set. */
typedef struct drupe_py_kernel_call {
    bool grouped; /* the space is an NdRange */
    int dims;
    size_t global[DRUPE_PY_DIMS], local[DRUPE_PY_DIMS]; /* the second one only if `grouped` */
    drupe_queue *queue;                                 /* borrowed: of the arrays, or NULL */
    drupe_queue *other;                                 /* borrowed: of one that made it refuse the call */
    size_t nodes, words;
    PyObject *objects[DRUPE_PY_NODES];
    uint64_t signature[2 * DRUPE_PY_NODES + 1]; /* equal for calls that one compiled kernel serves */
} drupe_py_kernel_call;

/* Read a call; with `settle` arrays that are pending are submitted first, which runs Python code. What it
 * finds is borrowed from the arguments. 1, or 0 for what compiled kernels do not take, or -1 with an
 * exception. */
int drupe_py_call_read(drupe_py_state *state, drupe_py_kernel_call *call, PyObject *space,
                       PyObject *const *args, size_t nargs, bool settle);
static inline drupe_py_node drupe_py_call_node(const drupe_py_kernel_call *call, size_t word)
{
    return (drupe_py_node)(call->signature[word] & 0xFF);
}
/* The node at a path: the place of an argument, then places in tuples. -1 with an exception. */
int drupe_py_call_find(PyObject *args, PyObject *path);
/* What there is to be told of an argument's signature. New reference. */
PyObject *drupe_py_call_describe(drupe_py_state *state, PyObject *object);
/* Drop an exception that says no more than that an object is not as expected. What else is set stays: a
 * Ctrl-C, or that there is no memory. Whether none is set now. */
bool drupe_py_forgive(void);
/* Whether an object is one that plans may take numbers from. */
bool drupe_py_call_number(drupe_py_state *state, PyObject *object);
/* The sizes of a LocalAccessor, at most DRUPE_MAX_DIMS. How many, or -1, as drupe_py_forgive() leaves it. */
int drupe_py_local_shape(PyObject *object, size_t *shape);

/* --- launch_plan.c -------------------------------------------------------------------------------------- */

#define DRUPE_PY_PARAMETERS 64
#define DRUPE_PY_AGAIN      2

/* How many work-items there are for the engine. */
typedef enum drupe_py_form {
    DRUPE_PY_FORM_HOST_RANGE,  /* one for each chunk of work-items */
    DRUPE_PY_FORM_HOST_GROUPS, /* one for each group */
    DRUPE_PY_FORM_RANGE,       /* as they are, rounded up to multiples of a local size */
    DRUPE_PY_FORM_GROUPS       /* as they are, in the groups that the call says */
} drupe_py_form;

/* What a parameter of a compiled kernel is. */
typedef struct drupe_py_step {
    uint8_t what;   /* launch_plan.c's */
    uint8_t index;  /* of the parameter */
    uint8_t node;   /* of the call */
    uint8_t dim;    /* of a shape, stride or size */
    uint8_t size;   /* of a value, in bytes */
    uint8_t scalar; /* drupe_scalar_type of a value that is not complex */
    int8_t dtype;   /* drupe_dtype of a value */
    uint8_t part;   /* of a complex value: 1 the real one, 2 the other one; else 0 */
} drupe_py_step;

/* A compiled kernel, and what for. Counted, because Python code that runs in a call may remove it. */
typedef struct drupe_py_entry {
    size_t references;
    drupe_py_kernel *kernel; /* this and all up to the next blank line: retained */
    drupe_device *device;
    drupe_context *context;
    PyObject *watched;  /* tuple of (dict, name, value), or (cell, name, value); NotImplemented: nothing */
    PyObject *failures; /* the Array that the kernel notes failures in, or NULL */
    PyObject *told;     /* dict: what there is to be told of it */

    drupe_py_form form;
    size_t local[DRUPE_PY_DIMS]; /* of RANGE, in the engine's order; 0: none */
    size_t grain, workers;       /* of HOST_RANGE */
    size_t room, item_bytes; /* of HOST_GROUPS: the bytes that a group's local memory and its work-items, of
                                that size, may take; SIZE_MAX: any number */
    drupe_effects effects;   /* if there are `failures` */
    uint32_t looked;         /* the site that drupe_py_oversize_look() has seen launch `looked_items` */
    size_t looked_items;
    size_t nsteps, words;
    drupe_py_step steps[DRUPE_PY_PARAMETERS];
    uint64_t signature[]; /* `words` of them */
} drupe_py_entry;

/* What the kernel is launched with. */
typedef struct drupe_py_filled {
    drupe_range range;
    drupe_memory *memories[DRUPE_PY_PARAMETERS]; /* borrowed from the call's arguments */
    uint64_t words[DRUPE_PY_PARAMETERS];
    drupe_arg args[DRUPE_PY_PARAMETERS]; /* only if the kernel is not `worded` */
} drupe_py_filled;

/* Read a plan, which fits the call, into the entry's steps. False with an exception. */
bool drupe_py_plan_read(drupe_py_state *state, drupe_py_entry *entry, PyObject *plan, PyObject *args,
                        const drupe_py_kernel_call *call);
/* 1, or 0 where a value does not fit its parameter or a group not its room, or DRUPE_PY_AGAIN where the call
 * has to be read once more, or -1 with an exception. Runs Python code before it looks at arrays. */
int drupe_py_plan_fill(drupe_py_state *state, const drupe_py_entry *entry, const drupe_py_kernel *kernel,
                       const drupe_py_kernel_call *call, drupe_py_filled *filled);

/* --- launcher_entry.c ----------------------------------------------------------------------------------- */

/* The arguments of _Launcher.add(). */
typedef struct drupe_py_addition {
    PyObject *args, *space, *kernel, *plan, *form, *watched, *local, *grain, *failures, *room, *item_bytes;
} drupe_py_addition;

drupe_py_entry *drupe_py_entry_new(drupe_py_state *state, const drupe_py_addition *given);
/* NULL-safe. Runs Python code. */
void drupe_py_entry_release(drupe_py_entry *entry);
/* The queue of a call: that of its arrays, or the default one of the chosen device, which then is the
 * caller's to release (`*own`, else NULL). NULL with an exception. */
drupe_queue *drupe_py_call_queue(drupe_py_state *state, const drupe_py_kernel_call *call, drupe_queue **own);
/* Whether it serves the call on that queue; may run Python code in odd cases, and false with an exception. */
bool drupe_py_entry_serves(const drupe_py_entry *entry, const drupe_py_kernel_call *call,
                           const drupe_queue *queue);
/* Whether both serve the same calls. */
bool drupe_py_entry_same(const drupe_py_entry *a, const drupe_py_entry *b);
/* Let it have another kernel with the same parameters. False with an exception. */
bool drupe_py_entry_replace(drupe_py_entry *entry, PyObject *kernel);

/* --- py_launcher.c -------------------------------------------------------------------------------------- */

#define DRUPE_PY_ENTRIES 64

/* _Launcher: one for each kernel in Python. */
typedef struct drupe_py_launcher {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *owner, *slow;
    size_t count;
    drupe_py_entry *entries[DRUPE_PY_ENTRIES]; /* the one that was used last comes first */
} drupe_py_launcher;

/* The entry that serves the call on that queue, retained, or NULL; then an exception may be set. May run
 * Python code in odd cases. */
drupe_py_entry *drupe_py_launcher_find(drupe_py_launcher *self, const drupe_py_kernel_call *call,
                                       const drupe_queue *queue);

/* --- call_kernel.c ---------------------------------------------------------------------------------------
 */

/* The vectorcall of a launcher. */
PyObject *drupe_py_launcher_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* --- For the module ------------------------------------------------------------------------------------- */

void drupe_py_ranges_init(drupe_py_state *state);
int drupe_py_call_kernel_init(PyObject *module); /* 0, or -1 with an exception */
extern PyType_Spec drupe_py_Range_spec, drupe_py_NdRange_spec, drupe_py_Launcher_spec;
extern PyMethodDef drupe_py_dispatch_functions[];

#endif
