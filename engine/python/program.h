/* What program.c, program_log.c, spirv.c and kernel.c share. */
#ifndef DRUPE_PYTHON_PROGRAM_H
#define DRUPE_PYTHON_PROGRAM_H

#include "objects.h"

/* A Kernel of a program, for `queue` (borrowed) unless its arguments say otherwise. */
PyObject *drupe_py_kernel_open(drupe_py_state *state, drupe_program *program, drupe_queue *queue,
                               const char *name);

/* The compiler's messages as text for people: each one that carries a line number is followed by that line of
 * the source and a mark under its column. `log` may be NULL. New str. */
PyObject *drupe_py_log_explain(const char *log, const char *source, size_t source_size);

/* Values of specialisation constants: the argument specializations= for the SPIR-V `module` (a bytes object).
 */
typedef struct drupe_py_values {
    PyObject *owner; /* holds the bytes */
    drupe_spec_value *list;
    size_t count;
} drupe_py_values;
bool drupe_py_values_arg(PyObject *object, PyObject *module, drupe_py_values *values);
void drupe_py_values_clear(drupe_py_values *values);

#endif
