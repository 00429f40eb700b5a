/* The instances of the types, and how to make them from engine objects. */
#ifndef DRUPE_PYTHON_OBJECTS_H
#define DRUPE_PYTHON_OBJECTS_H

#include "args.h"

typedef struct drupe_py_device {
    PyObject_HEAD drupe_device *device; /* retained */
    drupe_queue *queue;                 /* retained, once an extension module has asked for it, or NULL */
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

/* drupe._shown.function(self, argument). */
PyObject *drupe_py_shown(PyObject *self, const char *function, PyObject *argument);
/* What a notebook shows of an object: a method of its class. */
PyObject *drupe_py_mimebundle(PyObject *self, PyObject *args, PyObject *kwargs);
#define DRUPE_PY_MIMEBUNDLE                                                                                  \
    {                                                                                                        \
        "_repr_mimebundle_", (PyCFunction)(void (*)(void))drupe_py_mimebundle, METH_VARARGS | METH_KEYWORDS, \
            PyDoc_STR("What a notebook shows. Waits for nothing.")                                           \
    }

typedef struct drupe_py_program {
    PyObject_HEAD drupe_program *program; /* retained */
    drupe_queue *queue;                   /* retained: for kernels without USM arguments */
    PyObject *log;                        /* str */
    PyObject *options;                    /* str */
    PyObject *kernels;                    /* dict: name to Kernel */
} drupe_py_program;

#define DRUPE_PY_KERNEL_KEYWORDS 5

/* What a kernel remembers of its last call, because most calls are like the one before. Objects are kept, so
 * that they are known by their address. */
typedef struct drupe_py_recall {
    PyObject *keywords;                       /* the tuple of names, or NULL */
    signed char at[DRUPE_PY_KERNEL_KEYWORDS]; /* where each keyword stands in it, -1: nowhere */
    PyObject *global_size, *local_size;       /* ints, or tuples of ints, or NULL */
    drupe_range range;                        /* what they make */
    uint32_t warm_on; /* the queue for which that is warm: see drupe_py_warm(); 0: none */
    uint32_t looked;  /* the place whose launch over that drupe_py_reach_look() has seen; 0: none */
} drupe_py_recall;

typedef struct drupe_py_kernel {
    PyObject_HEAD vectorcallfunc vectorcall;
    drupe_kernel *kernel;   /* retained */
    drupe_queue *queue;     /* retained: the program's */
    drupe_arg_info *params; /* PyMem; nparams of them; kind POINTER and so on as the compiler told */
    uint8_t *forms;         /* PyMem; the same in short, for launch.c */
    size_t nparams;
    bool typed;   /* false: the backend has no argument information, nparams may be 0 */
    bool counted; /* the number of arguments is known */
    bool worded;  /* drupe_kernel_words() */
    drupe_py_recall last;
} drupe_py_kernel;

typedef struct drupe_py_dtype {
    PyObject_HEAD drupe_dtype dtype;
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
/* 1: found, 0: the object has no such attribute, -1: an exception is set. */
int drupe_py_interface_read(drupe_py_state *state, PyObject *object, drupe_py_span *span);

bool drupe_py_is_memory(const drupe_py_state *state, PyObject *object);

#endif
