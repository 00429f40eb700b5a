/* Use Drupe's devices from an extension module of your own, written in C.
 *
 *     #include <drupe/ext.h>              compile with -I and drupe.get_include(); nothing to link
 *     drupe_ext_import()                  once, in your PyInit function
 *     drupe_ext->array_of(object, ...)    what an array is: its pointer, shape, type and queue
 *     drupe_ext->submit_host(...)         queue a C function of yours; gives the Event to return
 *
 * A function that Python calls reads its arguments with array_of(), queues the work with submit_host() (or
 * gives the native queue to a vendor's library and ends with keep_alive()), and returns the drupe.Event at
 * once. The arrays stay alive until the work is done; the queue keeps the order with everything else that
 * uses it.
 *
 * Rules. All functions are called with the GIL held, except error_set() and what else says so. Those that
 * return an int give 0, or -1 with a Python exception; those that return a PyObject give a new reference, or
 * NULL with an exception. Arguments are borrowed. The table is frozen: functions are only ever added at its
 * end, `size` tells how far it goes; a change of meaning raises `version`, and import refuses another version
 * than the compiled one.
 */
#ifndef DRUPE_EXT_H
#define DRUPE_EXT_H

#include <drupe/status.h>
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#define DRUPE_EXT_CAPSULE  "drupe._engine.ext"
#define DRUPE_EXT_VERSION  1u
#define DRUPE_EXT_MAX_DIMS 32

typedef struct drupe_queue drupe_queue;

/* Kinds of USM, as in drupe/memory.h. */
enum { DRUPE_EXT_DEVICE, DRUPE_EXT_SHARED, DRUPE_EXT_HOST };

/* What an Array or a USM memory object is. Everything in it is borrowed from the object. */
typedef struct drupe_ext_array {
    void *data;                            /* element [0, ..., 0]; a device address */
    drupe_queue *queue;                    /* where its work goes */
    int kind;                              /* DRUPE_EXT_DEVICE, ... */
    int host;                              /* nonzero: functions of submit_host() may follow the pointer */
    char type;                             /* 'b' bool, 'i' signed, 'u' unsigned, 'f' float, 'c' complex */
    int itemsize;                          /* bytes of an element */
    int ndim;                              /* memory objects are one-dimensional arrays of 'u', 1 byte */
    size_t size;                           /* number of elements */
    size_t shape[DRUPE_EXT_MAX_DIMS];      /* elements */
    ptrdiff_t strides[DRUPE_EXT_MAX_DIMS]; /* elements, may be 0 or negative */
} drupe_ext_array;

/* Runs without the GIL on a thread of the engine; must not call Python or wait for its own queue. A result
 * other than DRUPE_OK fails the event: leave the reason with error_set(). */
typedef drupe_status (*drupe_ext_function)(void *user);

typedef struct drupe_ext_api {
    uint32_t size;    /* sizeof(drupe_ext_api) of the engine that made it */
    uint32_t version; /* DRUPE_EXT_VERSION */

    /* Fill `array` from a drupe.array.Array or a USM memory object; TypeError for anything else. */
    int (*array_of)(PyObject *object, drupe_ext_array *array);
    /* The same, and refuse what has another type, number of dimensions (-1: any) or is not in C order; with
     * `host` also what the host may not address. The exception names the argument by `name`. */
    int (*array_like)(PyObject *object, const char *name, char type, int itemsize, int ndim, int host,
                      drupe_ext_array *array);
    /* A new Array with undefined content in C order; its pointer is then to be had with array_of(). */
    PyObject *(*array_new)(drupe_queue *queue, int kind, char type, int itemsize, int ndim,
                           const size_t *shape);

    /* The queue of a Queue, Array, USM memory object, or the default one of a Device, filter or None. Valid
     * as long as `object`, or its device, lives. */
    drupe_queue *(*queue_of)(PyObject *object);
    PyObject *(*queue_object)(drupe_queue *queue);
    /* 0 and the driver's own handle: a cl_command_queue on "opencl". Work given to it runs behind what was
     * submitted before. UnsupportedError where there is none ("host"). */
    int (*queue_native)(drupe_queue *queue, void **handle);
    const char *(*queue_backend)(drupe_queue *queue); /* "host", "opencl"; static; needs no GIL */

    /* Queue function(user). `label` names the work in messages. `release(user)`, which may be NULL, is called
     * when the work is over, run or not, and also when this call fails; like the function it must not need
     * the GIL. The `nkeep` objects at `keep` live until then. `wait_for` is an Event, a sequence of them, or
     * NULL. */
    PyObject *(*submit_host)(drupe_queue *queue, const char *label, drupe_ext_function function, void *user,
                             void (*release)(void *user), PyObject *const *keep, size_t nkeep,
                             PyObject *wait_for);
    /* Queue a copy between USM pointers, or USM and host memory of a kept object. */
    PyObject *(*submit_copy)(drupe_queue *queue, void *dst, const void *src, size_t bytes,
                             PyObject *const *keep, size_t nkeep, PyObject *wait_for);
    /* An Event for everything on the queue so far, native work included; the objects live until it is
     * complete. */
    PyObject *(*keep_alive)(drupe_queue *queue, PyObject *const *keep, size_t nkeep, PyObject *wait_for);

    /* Record why a function fails and return `status`. Any thread, without the GIL. */
    drupe_status (*error_set)(drupe_status status, const char *text);
    /* Raise the calling thread's last engine error; always NULL. */
    PyObject *(*error_raise)(void);
} drupe_ext_api;

/* The table, once drupe_ext_import() gave 0. One per file that includes this header. */
static const drupe_ext_api *drupe_ext __attribute__((unused));

/* Import the engine and its table. 0, or -1 with ImportError. */
static inline int drupe_ext_import(void)
{
    PyObject *engine = PyImport_ImportModule("drupe._engine");
    if (engine == NULL) return -1;
    PyObject *capsule = PyObject_GetAttrString(engine, "ext");
    Py_DECREF(engine);
    if (capsule == NULL) return -1;
    const drupe_ext_api *api = (const drupe_ext_api *)PyCapsule_GetPointer(capsule, DRUPE_EXT_CAPSULE);
    Py_DECREF(capsule); /* the module keeps it, and is never unloaded */
    if (api == NULL) return -1;
    if (api->version == DRUPE_EXT_VERSION && api->size >= sizeof(drupe_ext_api)) {
        drupe_ext = api;
        return 0;
    }
    PyErr_Format(
        PyExc_ImportError,
        "this extension was compiled for another version of drupe (interface %u of %zu bytes; installed: "
        "interface %u of %u bytes). Compile it again.",
        DRUPE_EXT_VERSION, sizeof(drupe_ext_api), api->version, api->size);
    return -1;
}

#endif
