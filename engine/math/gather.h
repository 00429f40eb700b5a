/* Elements picked by arrays of indices, and elements put where such arrays say.
 *
 * Elements are bytes here: 1, 2, 4, 8 or 16 of them. All steps are in elements. Each index is an int64; a
 * negative one counts from the end of its axis. No index leads outside of its axis: that is found before any
 * memory is touched, and the status says which index it is.
 *
 * Threads: from any; several processors share the work by drupe_parallel(). */
#ifndef DRUPE_MATH_GATHER_H
#define DRUPE_MATH_GATHER_H

#include "drupe/array_index.h"

#define DRUPE_GATHER_ARRAYS 5 /* index arrays at a time */

/* Every element of the result, or of what is assigned, by its position in an index space. */
typedef struct drupe_gather {
    size_t element; /* bytes of one */
    ptrdiff_t base; /* from the address of the indexed array to its element [0, ..., 0] */
    int ndim,
        points; /* of the index space; how many of its axes, the first ones, lead through index arrays */
    int arrays;
    drupe_index_mode mode;
    size_t shape[DRUPE_MAX_DIMS];
    ptrdiff_t at[DRUPE_MAX_DIMS];                         /* steps in the indexed array */
    ptrdiff_t other[DRUPE_MAX_DIMS];                      /* in the result, or in what is assigned */
    ptrdiff_t index[DRUPE_GATHER_ARRAYS][DRUPE_MAX_DIMS]; /* in the index arrays */
    int64_t length[DRUPE_GATHER_ARRAYS];                  /* of the axis that each array indexes */
    ptrdiff_t step[DRUPE_GATHER_ARRAYS];                  /* along that axis, in the indexed array */
    int axis[DRUPE_GATHER_ARRAYS];                        /* its number in errors */
} drupe_gather;

/* Once all but `points` is set: drop axes of length 1, bring those of index arrays to the front, merge. */
void drupe_gather_prepare(drupe_gather *g);

/* to[other] = from[at] everywhere. DRUPE_E_OUT_OF_RANGE: `to` is undefined. */
drupe_status drupe_gather_run(const drupe_gather *g, const void *from, const int64_t *const *indices,
                              void *to) DRUPE_MUST_CHECK;

/* to[at] = from[other] everywhere; of positions that are the same the last one in C order wins.
 * DRUPE_E_OUT_OF_RANGE: nothing is written. */
drupe_status drupe_scatter_run(const drupe_gather *g, void *to, const int64_t *const *indices,
                               const void *from) DRUPE_MUST_CHECK;

/* The position in the indexed array for each point, which several index arrays are replaced by: `to` takes
 * one number for each position of the index space, in C order; all of its axes are points. */
drupe_status drupe_gather_fold(const drupe_gather *g, const int64_t *const *indices,
                               int64_t *to) DRUPE_MUST_CHECK;

#endif
