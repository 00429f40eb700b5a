/* The room of native functions: libraries and functions of drupe/native.h as objects, and how arguments of
 * Python become words of C.
 *
 * Files: py_native_library.c, py_native_function.c (the types), py_native_args.c (arguments), py_offload.c (what
 * streams and offload arrays begin with).
 *
 * Owns: nothing; an instance owns what it holds. Locks: the GIL. Threads: any. */
#ifndef DRUPE_PYTHON_NATIVE_ROOM_H
#define DRUPE_PYTHON_NATIVE_ROOM_H

#include "drupe/native.h"
#include "engine/python/array/py_array_room.h"
#include "engine/python/submit/py_submit_room.h"

#define DRUPE_PY_NATIVE_FACTORS 4

/* A parameter as it was declared. */
typedef struct drupe_py_native_param {
    bool pointer, reads_only;
    bool any;          /* a pointer to anything: `void *` */
    bool bytes;        /* a pointer to elements of one byte, of whatever type: `char *` */
    drupe_dtype dtype; /* of the scalar, or what the pointer points to */
    /* How many elements there have to be at least: `least` times the values of these parameters, integers. */
    uint64_t least;
    uint8_t nfactors, factors[DRUPE_PY_NATIVE_FACTORS];
    char text[48]; /* "const double *x" */
} drupe_py_native_param;

typedef struct drupe_py_native_library {
    PyObject_HEAD drupe_native_library *library; /* retained */
    drupe_queue *queue;                          /* retained: of calls without arrays, or NULL */
    PyObject *path;                              /* str */
} drupe_py_native_library;

#define DRUPE_PY_NATIVE_KEYWORDS 4

typedef struct drupe_py_native_function {
    PyObject_HEAD vectorcallfunc vectorcall;
    drupe_native_function *function; /* retained */
    PyObject *library;               /* the drupe_py_native_library */
    PyObject *keywords;              /* of the last call: a tuple of names, or NULL */
    signed char at[DRUPE_PY_NATIVE_KEYWORDS];
    bool declared;
    drupe_dtype result;            /* NONE: void, or not declared */
    drupe_py_native_param *params; /* PyMem; `count` of them */
    size_t count;
} drupe_py_native_function;

/* A call whose arguments are being read. To be cleared, also after a failure. */
typedef struct drupe_py_native_call {
    drupe_py_state *state;
    const drupe_py_native_function *function;
    drupe_native_arg args[DRUPE_NATIVE_MOST];
    size_t elements[DRUPE_NATIVE_MOST]; /* where pointers lead; SIZE_MAX: nobody can tell */
    size_t count;
    drupe_queue *queue; /* of the arrays so far, borrowed, or NULL */
    size_t queue_arg;   /* whose it is */
    bool queue_given;   /* then arrays may be of other queues */
    bool borrows;       /* it works on memory of Python objects: the caller waits for its end */
    drupe_py_keepalive *keepalives[DRUPE_NATIVE_MOST + 1];
    size_t nkeepalives;
    PyObject *owned[DRUPE_NATIVE_MOST + 1]; /* what stands for an argument */
    size_t nowned;
    void *result;
    drupe_memory *result_memory;
} drupe_py_native_call;

/* Read all arguments if they are of the usual kinds, without running Python code. False, without an
 * exception: they are not, or something is wrong, and nothing has been read. */
bool drupe_py_native_quick(drupe_py_native_call *call, PyObject *const *args, size_t nargs);
/* Read all arguments. May run Python code, and what was read before is an address: see drupe_park_hold(). */
bool drupe_py_native_read(drupe_py_native_call *call, PyObject *const *args, size_t nargs);
/* result=: an array or a buffer of one element of the declared type. */
bool drupe_py_native_result(drupe_py_native_call *call, PyObject *object);
void drupe_py_native_clear(drupe_py_native_call *call);

extern PyType_Spec drupe_py_NativeLibrary_spec, drupe_py_NativeFunction_spec, drupe_py_Stream_spec,
    drupe_py_OffloadArray_spec;

#endif
