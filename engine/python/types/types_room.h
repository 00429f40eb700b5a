/* The room of types: Device, Context, Queue, Event, Memory, Program and Kernel as Python sees them.
 *
 * Owns: the functions to be called when events are over; else an instance owns what it holds. Locks: the GIL.
 * Threads: any. */
#ifndef DRUPE_PYTHON_TYPES_ROOM_H
#define DRUPE_PYTHON_TYPES_ROOM_H

#include "engine/python/objects/objects_room.h"

/* --- py_program.c, py_spirv.c, py_kernel.c ------------------------------------------------------------- */

/* What py_program.c, py_spirv.c and py_kernel.c share. */

/* A Kernel of a program, for `queue` (borrowed) unless its arguments say otherwise. */
PyObject *drupe_py_kernel_open(drupe_py_state *state, drupe_program *program, drupe_queue *queue,
                               const char *name);

/* Values of specialisation constants: the argument specializations= for the SPIR-V `module` (a bytes object).
 */
typedef struct drupe_py_values {
    PyObject *owner; /* holds the bytes */
    drupe_spec_value *list;
    size_t count;
} drupe_py_values;
bool drupe_py_values_arg(PyObject *object, PyObject *module, drupe_py_values *values);
void drupe_py_values_clear(drupe_py_values *values);

/* --- notice.c ------------------------------------------------------------------------------------------ */

/* Python functions that are told when events are over. */

/* When `function`, called with the event, has its turn. */
typedef enum drupe_py_when { DRUPE_PY_WHEN_OVER, DRUPE_PY_WHEN_TURN } drupe_py_when;

/* Call function(event) once `event`, a drupe.Event, is over or has its turn, where _notices_run() of the
 * module is called. The function is quick and waits for nothing, not even a lock that a program may hold.
 * What it raises is shown as unraisable. */
bool drupe_py_notice_add(drupe_py_state *state, PyObject *event, drupe_py_when when, PyObject *function);
/* Give up what has not been called; work whose turn has not come is cancelled. */
void drupe_py_notices_close(void);
/* --- For the module ------------------------------------------------------------------------------------ */

void drupe_py_memory_init(drupe_py_state *state);
int drupe_py_lender_init(PyObject *module);
int drupe_py_import_guard_init(PyObject *module);
/* A line for each of the largest holders of memory, for the kernel's log. */
void drupe_py_holders_log(void (*log)(const char *line));
/* What Holder of drupe.memory is made of. */
PyObject *drupe_py_holder_tuple(const drupe_holder *holder);
extern PyMethodDef drupe_py_park_functions[], drupe_py_device_functions[], drupe_py_notice_functions[],
    drupe_py_queue_functions[], drupe_py_pool_functions[], drupe_py_program_functions[],
    drupe_py_spirv_functions[];
extern PyType_Spec drupe_py_Device_spec, drupe_py_Context_spec, drupe_py_Queue_spec, drupe_py_Event_spec,
    drupe_py_MemoryUSMDevice_spec, drupe_py_MemoryUSMShared_spec, drupe_py_MemoryUSMHost_spec,
    drupe_py_LocalMemory_spec, drupe_py_Program_spec, drupe_py_Kernel_spec;

#endif
