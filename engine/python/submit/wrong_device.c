/* A launch that was refused because its kernel is for one device and its arguments are on another: core
 * speaks of contexts, which a notebook has never seen. This says what to type. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/submit/py_submit_room.h"

/* The shortest filter that selects the device: "opencl" where it is the first choice there. Borrowed. */
static const char *short_name(drupe_device *device)
{
    drupe_device *best = NULL;
    drupe_error kept = *drupe_error_last();
    const char *name = drupe_device_filter(device);
    if (drupe_device_select(drupe_device_backend(device), &best) == DRUPE_OK && best == device)
        name = drupe_device_backend(device);
    drupe_device_release(best);
    drupe_error_restore(&kept);
    return name;
}

/* The queue of an array or of memory, or NULL. */
static drupe_queue *queue_of(const drupe_py_state *state, PyObject *object)
{
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) return drupe_py_array_of(object)->queue;
    return drupe_py_is_memory(state, object) ? drupe_memory_queue(((drupe_py_memory *)object)->memory) : NULL;
}

static bool raise_argument(drupe_py_state *state, const drupe_py_launch *launch, size_t index,
                           drupe_device *own, drupe_device *other)
{
    const drupe_py_kernel *kernel = launch->kernel;
    bool array = drupe_py_is(state, launch->args[index], DRUPE_PY_TYPE_Array);
    const char *name = short_name(own), *argument = kernel->typed ? kernel->params[index].name : "";
    drupe_py_raise_text(state, DRUPE_E_PLACEMENT,
                        "kernel '%s' was compiled for %s, and argument %zu%s%s%s is on %s. %s%s%s `%%device "
                        "%s` in a notebook, or `with drupe.device(\"%s\"):`, makes what follows there.",
                        drupe_kernel_name(kernel->kernel), drupe_device_filter(own), index,
                        argument[0] != '\0' ? " ('" : "", argument, argument[0] != '\0' ? "')" : "",
                        drupe_device_filter(other), array ? "Pass x.to_device(\"" : "Use memory of ", name,
                        array ? "\")." : ".", name, name);
    return true;
}

/* Devices of one context share its memory. Contexts of one device are told apart by who makes them: core's
 * message speaks to them. */
static bool apart(const drupe_queue *one, const drupe_queue *other)
{
    return drupe_queue_context(one) != drupe_queue_context(other) &&
           drupe_device_root(drupe_queue_device(one)) != drupe_device_root(drupe_queue_device(other));
}

bool drupe_py_wrong_device(drupe_py_state *state, const drupe_py_launch *launch, drupe_queue *queue)
{
    drupe_device *own = drupe_device_root(drupe_queue_device(launch->kernel->queue));
    for (size_t i = 0; i < launch->nargs; i++) {
        drupe_queue *where = queue_of(state, launch->args[i]);
        if (where && apart(where, launch->kernel->queue))
            return raise_argument(state, launch, i, own, drupe_queue_device(where));
    }
    if (drupe_device_root(drupe_queue_device(queue)) == own) return false;
    drupe_py_raise_text(
        state, DRUPE_E_PLACEMENT,
        "kernel '%s' was compiled for %s, and queue= is one of %s. Leave queue= out, or compile "
        "the program for %s.",
        drupe_kernel_name(launch->kernel->kernel), drupe_device_filter(own),
        drupe_device_filter(drupe_queue_device(queue)), drupe_device_filter(drupe_queue_device(queue)));
    return true;
}
