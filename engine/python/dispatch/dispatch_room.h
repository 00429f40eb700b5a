/* The room of dispatch: calls of kernels that are written in Python.
 *
 * Owns: nothing; a launcher owns its entries. Locks: the GIL. Threads: any. */
#ifndef DRUPE_PYTHON_DISPATCH_ROOM_H
#define DRUPE_PYTHON_DISPATCH_ROOM_H

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

/* --- For the module ------------------------------------------------------------------------------------- */

void drupe_py_ranges_init(drupe_py_state *state);
extern PyType_Spec drupe_py_Range_spec, drupe_py_NdRange_spec;

#endif
