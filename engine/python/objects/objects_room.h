/* The room of objects: what the instances of our types are made of, how they are made from objects of the
 * engine, and how arguments become values of C.
 *
 * Owns: nothing; an instance owns what it holds. Locks: the GIL. Threads: any. */
#ifndef DRUPE_PYTHON_OBJECTS_ROOM_H
#define DRUPE_PYTHON_OBJECTS_ROOM_H

#include "engine/python/runtime/runtime_room.h"

/* --- Instances: wrap.c, interface.c --------------------------------------------------------------------- */

/* How a Device, a Context, a Queue and an Event begin. */
typedef struct drupe_py_wrapped {
    PyObject_HEAD void *engine;
} drupe_py_wrapped;
/* tp_richcompare and tp_hash of them: the same object of the engine is the same; and its address, a method.
 */
PyObject *drupe_py_same(PyObject *self, PyObject *other, int op);
Py_hash_t drupe_py_same_hash(PyObject *self);
PyObject *drupe_py_address(PyObject *self, PyObject *ignored);

typedef struct drupe_py_device {
    PyObject_HEAD drupe_device *device; /* retained */
    drupe_queue *queue;                 /* retained, once an extension module has asked for it, or NULL */
    drupe_queue *array_queue;           /* retained: of the array whose `device` this is, else NULL */
} drupe_py_device;

typedef struct drupe_py_context {
    PyObject_HEAD drupe_context *context; /* retained */
} drupe_py_context;

typedef struct drupe_py_queue {
    PyObject_HEAD drupe_queue *queue; /* retained */
} drupe_py_queue;

typedef struct drupe_py_event {
    PyObject_HEAD drupe_event *event; /* retained */
} drupe_py_event;

typedef struct drupe_py_memory {
    PyObject_HEAD drupe_memory *memory; /* retained */
    size_t offset, nbytes;              /* which bytes of it */
    PyObject *reference;                /* what it is a view of, or NULL */
} drupe_py_memory;

static inline void *drupe_py_memory_pointer(PyObject *self)
{
    const drupe_py_memory *memory = (drupe_py_memory *)self;
    return (char *)drupe_memory_pointer(memory->memory) + memory->offset;
}

typedef struct drupe_py_local {
    PyObject_HEAD size_t nbytes;
} drupe_py_local;

typedef struct drupe_py_program {
    PyObject_HEAD drupe_program *program; /* retained */
    drupe_queue *queue;                   /* retained: for kernels without USM arguments */
    PyObject *log;                        /* str */
    PyObject *options;                    /* str */
    PyObject *kernels;                    /* dict: name to Kernel */
} drupe_py_program;

#define DRUPE_PY_KERNEL_KEYWORDS 5

/* What a kernel remembers of its last call, because most calls are like the one before. Objects are kept, so
 * that they are known by their address. Without the keywords a launch takes 8 % longer, without the sizes one
 * of two dimensions 18 % (150 ns on the host device). */
typedef struct drupe_py_last_call {
    PyObject *keywords;                       /* the tuple of names, or NULL */
    signed char at[DRUPE_PY_KERNEL_KEYWORDS]; /* where each keyword stands in it, -1: nowhere */
    PyObject *global_size, *local_size;       /* ints, or tuples of ints, or NULL */
    drupe_range range;                        /* what they make */
    uint32_t warm_on; /* the queue for which that is warm: see drupe_py_warm(); 0: none */
    uint32_t looked;  /* the site whose launch over that drupe_py_oversize_look() has seen; 0: none */
} drupe_py_last_call;

typedef struct drupe_py_kernel {
    PyObject_HEAD vectorcallfunc vectorcall;
    drupe_kernel *kernel;   /* retained */
    drupe_queue *queue;     /* retained: the program's */
    drupe_arg_info *params; /* PyMem; nparams of them; kind POINTER and so on as the compiler told */
    uint8_t *forms;         /* PyMem; the same in short, for py_launch.c */
    size_t nparams;
    bool typed;   /* false: the backend has no argument information, nparams may be 0 */
    bool counted; /* the number of arguments is known */
    bool worded;  /* drupe_kernel_words() */
    drupe_py_last_call last;
} drupe_py_kernel;

typedef struct drupe_py_dtype {
    PyObject_HEAD drupe_dtype dtype;
    const char *name;
    Py_ssize_t itemsize;
    char kind, typestr[8]; /* as NumPy has them */
} drupe_py_dtype;

typedef struct drupe_py_array {
    PyObject_HEAD drupe_array array;
} drupe_py_array;

/* Wrap what an engine function gave. The reference is taken, also on failure. */
PyObject *drupe_py_device_wrap(drupe_py_state *state, drupe_device *device);
PyObject *drupe_py_context_wrap(drupe_py_state *state, drupe_context *context);
PyObject *drupe_py_queue_wrap(drupe_py_state *state, drupe_queue *queue);
PyObject *drupe_py_event_wrap(drupe_py_state *state, drupe_event *event);
PyObject *drupe_py_memory_wrap(drupe_py_state *state, drupe_memory *memory);

/* What an object with __sycl_usm_array_interface__ covers. */
typedef struct drupe_py_span {
    drupe_memory *memory; /* retained */
    size_t offset, nbytes;
} drupe_py_span;
/* The type of a Memory of this kind. */
drupe_py_type drupe_py_memory_type(drupe_mem_kind kind);
/* A Memory of the span, whose memory is *taken*; `reference` (borrowed, may be NULL) is what it is a view of.
 */
PyObject *drupe_py_span_wrap(drupe_py_state *state, const drupe_py_span *span, PyObject *reference);
/* 1: found, 0: the object has no such attribute, -1: an exception is set. */
int drupe_py_interface_read(drupe_py_state *state, PyObject *object, drupe_py_span *span);

bool drupe_py_is_memory(const drupe_py_state *state, PyObject *object);

/* Append to a list what is *taken*: a new reference, or NULL with an exception, which lets the list go. */
bool drupe_py_append(PyObject **list, PyObject *item);
/* The tuple of a list that is *taken*; NULL: an exception is set. */
PyObject *drupe_py_tuple(PyObject *list);

/* --- py_args.c ----------------------------------------------------------------------------------------- */

/* Arguments: a hand-written parser for fast calls, and the conversions that many functions share. */

#define DRUPE_PY_ARGS_MAX 10

typedef struct drupe_py_signature {
    const char *function; /* for messages */
    int positional;       /* how many may be given by position */
    int required;         /* how many, from the left, must be given */
    int count;            /* names in use */
    drupe_py_name names[DRUPE_PY_ARGS_MAX];
} drupe_py_signature;
#define DRUPE_PY_SIGNATURE(function, positional, required, ...)                                              \
    {                                                                                                        \
        function, positional, required, sizeof((drupe_py_name[]){__VA_ARGS__}) / sizeof(drupe_py_name),      \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

/* Sort a vectorcall into `out`, one borrowed object or NULL per name. */
bool drupe_py_args(const drupe_py_state *state, const drupe_py_signature *signature, PyObject *const *args,
                   Py_ssize_t nargs, PyObject *kwnames, PyObject **out);
/* The same for tp_new, where arguments come as a tuple and a dict (which may be NULL). */
bool drupe_py_args_new(const drupe_py_state *state, const drupe_py_signature *signature, PyObject *args,
                       PyObject *kwargs, PyObject **out);

static inline bool drupe_py_given(PyObject *object)
{
    return object != NULL && object != Py_None;
}

/* A size, named `what` in the message; negative values are refused. */
bool drupe_py_size(PyObject *object, const char *what, size_t *size);
/* An int or a sequence of ints; at most `capacity` of them. The count, or -1. */
int drupe_py_sizes(PyObject *object, const char *what, size_t *sizes, int capacity);
/* Truth of an optional argument. -1 on error. */
int drupe_py_flag(PyObject *object, int fallback);
/* Seconds to nanoseconds; NULL and None mean DRUPE_FOREVER. */
bool drupe_py_timeout(PyObject *object, uint64_t *timeout_ns);
/* "device", "shared", "host"; NULL and None leave *kind alone. */
bool drupe_py_mem_kind(PyObject *object, drupe_mem_kind *kind);

/* A Device, a filter string or None: the device of `with drupe.device(...)`, else the default one. Retained.
 */
drupe_device *drupe_py_device_arg(drupe_py_state *state, PyObject *object);
/* What device= and queue= select together: the queue given, else the default queue of the device given (a
 * Device, filter, Queue or array), else `fallback` (borrowed, may be NULL), else the default device's queue.
 * Retained. */
drupe_queue *drupe_py_queue_arg(drupe_py_state *state, PyObject *queue, PyObject *device,
                                drupe_queue *fallback);

/* The events to wait for: an Event or a sequence of them. `events` is PyMem memory to be freed by
 * drupe_py_waits_clear(); the events are retained. */
typedef struct drupe_py_waits {
    drupe_event **events;
    size_t count;
} drupe_py_waits;
bool drupe_py_waits_arg(drupe_py_state *state, PyObject *object, drupe_py_waits *waits);
/* The object of ours behind one of drupe.compat, or the object itself; new reference. No exception. */
PyObject *drupe_py_behind(const drupe_py_state *state, PyObject *object);
void drupe_py_waits_clear(drupe_py_waits *waits);

/* --- sound.c ------------------------------------------------------------------------------------------- */

/* Whether all of an object's memory is sure to be there: not what ctypes made of an address, or a file that
 * is mapped and may be shorter by now. */
bool drupe_py_owner_sound(const drupe_py_state *state, PyObject *owner);

/* --- scalar.c ------------------------------------------------------------------------------------------ */

/* A Python number as `size` bytes of a scalar type, with range checks; `what` names it in messages. `bytes`
 * has room for 8. */
bool drupe_py_scalar_bytes(PyObject *object, drupe_scalar_type type, const char *what, void *bytes,
                           size_t *size);
/* "int", "float" and so on, as OpenCL C writes it. */
const char *drupe_py_scalar_name(drupe_scalar_type type);
/* In bytes; 0 of an unknown one. */
size_t drupe_py_scalar_size(drupe_scalar_type type);
/* UNKNOWN of a complex type. */
drupe_scalar_type drupe_py_scalar_of(drupe_dtype dtype);

/* --- device_info.c ------------------------------------------------------------------------------------- */

/* Properties of devices as Python objects. */

/* A property: str, int, bool, a tuple of ints, a member of an enumeration of drupe.enums or a tuple of them;
 * None where it means nothing on the device. */
PyObject *drupe_py_info_value(drupe_py_state *state, drupe_device *device, drupe_info key);
/* The member of that name of an enumeration of drupe.enums. */
PyObject *drupe_py_word(drupe_py_state *state, const char *enumeration, const char *word);

#endif
