/* The room of the runtime: the state of the module drupe._engine (its types, its exceptions, the names it
 * compares), its instances, and the rules of all rooms of this folder.
 *
 * Owns: drupe_py_state, of which each member is written by the file that makes what it holds; the count of
 * instances. Locks: the GIL is the lock of all rooms here, where a header says nothing else. Threads: any
 * that holds it.
 *
 * Rules of this folder: every function is called with the GIL held unless it says otherwise; a function that
 * returns NULL, false or -1 has set a Python exception; PyObject results are new references; wrapping
 * functions *take* the engine reference they are given, also when they fail. The GIL is given up in waits, in
 * builds and in large host copies. A submission costs little more than giving it up and keeps it, but for the
 * first of its kind, for which a program may have to be built.
 *
 * The rule of references: *what is used after Python code may have run is owned by the function that uses
 * it.* It is owned if it is retained here, or belongs to an argument of the call that Python made, which its
 * caller keeps. Python code may run wherever an object is dropped that is not known to be a str or an int, in
 * `__index__`, `__eq__` and other methods of objects, in looking up attributes, in making an exception, in
 * signal handlers, in waits, in calls that need memory (which may wait for some), and on other threads
 * wherever the GIL is given up. It may drop any queue, memory or event and change any dict or list. So an
 * entry of those is retained before anything else is done (tools/lint.py looks for functions that borrow),
 * and the engine, which is in the middle of its own affairs when it lets go of what work kept, never runs
 * Python code itself: drupe_py_keepalive_drain() of the room of waits does, and what calls that says so.
 * Tests have all kinds of things dropped there: drupe._engine._stress(). */
#ifndef DRUPE_PYTHON_RUNTIME_ROOM_H
#define DRUPE_PYTHON_RUNTIME_ROOM_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "drupe/drupe.h"
#include "engine/python/runtime/names.h"

typedef enum drupe_py_name {
#define DRUPE_PY_NAME_ENUM(name) DRUPE_PY_NAME_##name,
    DRUPE_PY_NAMES(DRUPE_PY_NAME_ENUM)
#undef DRUPE_PY_NAME_ENUM
        DRUPE_PY_NAME_COUNT
} drupe_py_name;

/* The heap types. Each has a PyType_Spec drupe_py_<type>_spec in the file that implements it. */
#define DRUPE_PY_TYPES(X)                                                                                    \
    X(Device)                                                                                                \
    X(Context)                                                                                               \
    X(Queue)                                                                                                 \
    X(Event)                                                                                                 \
    X(MemoryUSMDevice)                                                                                       \
    X(MemoryUSMShared)                                                                                       \
    X(MemoryUSMHost)                                                                                         \
    X(LocalMemory)                                                                                           \
    X(Program)                                                                                               \
    X(Kernel)                                                                                                \
    X(DType)                                                                                                 \
    X(Array)                                                                                                 \
    X(Operation)                                                                                             \
    X(Range)                                                                                                 \
    X(NdRange)                                                                                               \
    X(Launcher)                                                                                              \
    X(NativeLibrary)                                                                                         \
    X(NativeFunction)                                                                                        \
    X(Stream)                                                                                                \
    X(OffloadArray)                                                                                          \
    X(View)

typedef enum drupe_py_type {
#define DRUPE_PY_TYPE_ENUM(type) DRUPE_PY_TYPE_##type,
    DRUPE_PY_TYPES(DRUPE_PY_TYPE_ENUM)
#undef DRUPE_PY_TYPE_ENUM
        DRUPE_PY_TYPE_COUNT
} drupe_py_type;

/* A function in a slot: C knows no conversion from functions to `void *`, only one by way of an integer. */
#define DRUPE_PY_FUNCTION(function) ((void *)(uintptr_t)(function))
/* The function of a method that takes a vectorcall, and its flags. */
#define DRUPE_PY_FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS
/* The same of one without keywords. */
#define DRUPE_PY_PLACES(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL
/* The same of one that takes a tuple and a dict. */
#define DRUPE_PY_KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS
/* How our types are made: none can be changed, and only those with BASETYPE have subclasses. `more`: further flags. */
#define DRUPE_PY_SPEC(type, full_name, instance, more, table)                                                \
    PyType_Spec drupe_py_##type##_spec = {                                                                   \
        .name = full_name,                                                                                   \
        .basicsize = sizeof(instance),                                                                       \
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | (more),                                     \
        .slots = table,                                                                                      \
    }

#define DRUPE_PY_WARM_SLOTS 1024u /* a power of two */
#define DRUPE_PY_SPARES     32

typedef struct drupe_py_state {
    /* Objects, each owned, or NULL: the module's tp_traverse and tp_clear take all up to `spares`. */
    PyTypeObject *types[DRUPE_PY_TYPE_COUNT];
    PyTypeObject *times;    /* the struct sequence EventTimes */
    PyObject *device_error; /* the base of all; the others by status */
    PyObject *errors[DRUPE_STATUS_COUNT];
    PyObject *names[DRUPE_PY_NAME_COUNT];
    PyObject *dtypes[DRUPE_DTYPE_COUNT];
    PyObject *handlers;                       /* dict: number of a queue to its on_error */
    PyObject *numpy_generic;                  /* numpy.generic once numpy was seen, else NULL */
    PyObject *numpy_types[DRUPE_DTYPE_COUNT]; /* its types of scalars, numpy.int8 and so on, from then on */
    PyObject *local_accessor; /* the class of kernels' local memory once the dispatch was told, else NULL */
    PyObject *chosen;         /* the ContextVar of `with drupe.device(...)` */
    PyObject *enums;          /* the module drupe.enums once it was needed, else NULL */
    PyObject *unread;         /* what share.c raised last of a view that could not be given, or NULL */
    PyObject *look;           /* a Python function that does nothing: see interrupted() of wait.c */
    PyObject *spares[DRUPE_PY_SPARES];  /* memory of Events that are gone, for the next ones */
    const void *unread_of;              /* the Array of `unread`; never followed */
    int nspares;                        /* -1: the module is cleared, none are kept */
    uint64_t warm[DRUPE_PY_WARM_SLOTS]; /* what was submitted before: see drupe_py_warm() */
} drupe_py_state;

/* By an instance of one of our types that cannot be subclassed, so that the type is the defining class. */
static inline drupe_py_state *drupe_py_state_of(PyObject *self)
{
    return (drupe_py_state *)PyType_GetModuleState(Py_TYPE(self));
}

/* For a tp_dealloc: NULL, without an error, when the interpreter ends and the type has lost its module. */
static inline drupe_py_state *drupe_py_state_left(PyObject *self)
{
    return !((PyHeapTypeObject *)Py_TYPE(self))->ht_module ? NULL : drupe_py_state_of(self);
}

static inline drupe_py_state *drupe_py_state_of_type(PyTypeObject *type)
{
    return (drupe_py_state *)PyType_GetModuleState(type);
}

static inline drupe_py_state *drupe_py_state_of_module(PyObject *module)
{
    return (drupe_py_state *)PyModule_GetState(module);
}

/* For operators: one of the two is ours. Never fails when that holds. */
drupe_py_state *drupe_py_state_of_pair(PyObject *a, PyObject *b);

static inline bool drupe_py_is(const drupe_py_state *state, PyObject *object, drupe_py_type type)
{
    return Py_TYPE(object) == state->types[type];
}

/* A zeroed instance, counted as alive, and tracked if its type has HAVE_GC. */
PyObject *drupe_py_new(drupe_py_state *state, drupe_py_type type);
/* The same of a type whose instances have a number of items. */
PyObject *drupe_py_new_of(drupe_py_state *state, drupe_py_type type, Py_ssize_t items);
/* The last step of every tp_dealloc: uncount, free, drop the type. The object was untracked before, if it was
 * tracked. */
void drupe_py_free(PyObject *self, drupe_py_type type);
/* tp_traverse of types that hold no other Python objects. */
int drupe_py_traverse(PyObject *self, visitproc visit, void *arg);

/* Add a type to the module: 0, or -1 with an exception. `kept` receives a reference, unless it is NULL. */
int drupe_py_type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **kept);
/* The module whose instances these are; before the first one. */
void drupe_py_instances_open(struct PyModuleDef *def);
/* How many of a type live. */
Py_ssize_t drupe_py_instances(drupe_py_type type);
/* Free the memory of Events that are gone, and keep none from now on. */
void drupe_py_spares_clear(drupe_py_state *state);

/* --- call.c -------------------------------------------------------------------------------------------- */

/* Import a module and call a function of it, with the arguments that a format of Py_BuildValue() makes: a
 * tuple, such as "(Os)". Runs Python code. */
PyObject *drupe_py_call(const char *module, const char *function, const char *format, ...);
/* A str; what is no UTF-8 is replaced. */
PyObject *drupe_py_text(const char *utf8);
/* The same; None for NULL and "". */
PyObject *drupe_py_text_or_none(const char *utf8);
/* None for 0. */
PyObject *drupe_py_number_or_none(uint64_t number);
/* A list of what `make` gives of each of `count` records, which are `size` bytes apart. Runs no Python code.
 */
PyObject *drupe_py_list(const void *records, size_t count, size_t size,
                        PyObject *(*make)(const void *record));

#endif
