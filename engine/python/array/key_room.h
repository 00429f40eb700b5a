/* Keys of arrays, taken apart: what the files of indexing share. */
#ifndef DRUPE_PYTHON_KEY_ROOM_H
#define DRUPE_PYTHON_KEY_ROOM_H

#include "engine/python/array/py_array_room.h"

#define KEY_PARTS_MAX (3 * DRUPE_MAX_DIMS)

/* What integers, slices, ... and None do: what happens to every axis, and where axes of size 1 come in. */
typedef struct index_plan {
    drupe_slice slices[DRUPE_MAX_DIMS];
    int inserted[DRUPE_MAX_DIMS]; /* positions in the result, ascending */
    int ninserted;
    int axis;     /* the next axis of the array */
    int out_axis; /* the next axis of the result */
} index_plan;

/* One item of a key that names axes. False with an exception. */
bool drupe_py_plan_integer(index_plan *plan, const drupe_array *array, PyObject *item);
bool drupe_py_plan_slice(index_plan *plan, const drupe_array *array, PyObject *item);
bool drupe_py_plan_new(index_plan *plan);
/* The next `count` axes as they are. */
void drupe_py_plan_rest(index_plan *plan, const drupe_array *array, int count);
/* The view that a complete plan gives; empty on failure. */
bool drupe_py_plan_view(drupe_py_state *state, const drupe_array *array, const index_plan *plan,
                        drupe_array *view);
/* IndexError for what is no part of a key. Returns false. */
bool drupe_py_key_refuse(PyObject *item);
bool drupe_py_key_too_many(const drupe_array *array, int named);
/* Whether a key, or an item of one, is an array, a list, a bool or the like. */
bool drupe_py_key_advanced(drupe_py_state *state, PyObject *key);

/* x[key] and x[key] = value for such keys. */
PyObject *drupe_py_index_get(PyObject *self, PyObject *key);
bool drupe_py_index_set(PyObject *self, PyObject *key, PyObject *value);

/* Where a mask is true, an array of the shape (mask.ndim, count), which is the caller's to clear. Waits for
 * the count. */
bool drupe_py_positions(drupe_py_state *state, const drupe_array *mask, drupe_array *positions);
/* The elements that a mask of the first axes picks. Waits for their count. */
PyObject *drupe_py_mask_pick(drupe_py_state *state, const drupe_array *array, const drupe_array *mask);

#endif
