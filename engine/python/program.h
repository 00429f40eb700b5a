/* What program.c, program_log.c and kernel.c share. */
#ifndef DRUPE_PYTHON_PROGRAM_H
#define DRUPE_PYTHON_PROGRAM_H

#include "objects.h"

/* A Kernel of a program, for `queue` (borrowed) unless its arguments say otherwise. */
PyObject *drupe_py_kernel_open(drupe_py_state *state, drupe_program *program, drupe_queue *queue,
                               const char *name);

/* The compiler's messages as text for people: each one that carries a line number is followed by that line of
 * the source and a mark under its column. `log` may be NULL. New str. */
PyObject *drupe_py_log_explain(const char *log, const char *source, size_t source_size);

#endif
