/* Pending arrays: results whose values nobody has needed yet.
 *
 * The result of an element-wise operation on many elements is pending: it has no memory, and nothing was
 * submitted yet, so that several operations can become one kernel. drupe_array_apply(), _reduce(), _assign()
 * (as a source), _cast(), _view() and _clear() take pending arrays; everything else wants them settled first.
 * All that is pending on a queue is settled by any other submission to it, by a wait for it, and by what
 * writes memory that it reads (drupe/postpone.h), and by itself when the queue has had nothing to do for some
 * milliseconds. Results have the bits that they would have if nothing was pending.
 *
 * Threads: as in drupe/array.h. */
#ifndef DRUPE_ARRAY_PENDING_H
#define DRUPE_ARRAY_PENDING_H

#include "drupe/array.h"

/* Have the values of a pending array submitted; it is an array like all others then. Does nothing for others.
 */
DRUPE_API drupe_status drupe_array_settle(const drupe_array *array) DRUPE_MUST_CHECK;
/* The same for all there are, of all queues. */
DRUPE_API drupe_status drupe_array_settle_all(void) DRUPE_MUST_CHECK;
DRUPE_API bool drupe_array_pending(const drupe_array *array);
/* The kind of memory that it has or will have. */
DRUPE_API drupe_mem_kind drupe_array_kind(const drupe_array *array);
/* From now on (1) operations of this thread are submitted at once, until (-1) that was taken back as often.
 */
DRUPE_API void drupe_array_eager(int by);
/* From now on (1) results of this thread are pending whatever their size, and whatever memory that keeps,
 * until (-1) that was taken back as often. drupe_array_eager() is the stronger one. */
DRUPE_API void drupe_array_fuse(int by);

/* --- What it would take to compute one: for those who show it -------------------------------------------
 */

#define DRUPE_LOOK_OPERATIONS 128 /* the most that are listed */
#define DRUPE_LOOK_INPUTS     3   /* of one operation */

typedef enum drupe_look_source { DRUPE_LOOK_VALUE, DRUPE_LOOK_ARRAY, DRUPE_LOOK_NUMBER } drupe_look_source;

typedef struct drupe_look_input {
    drupe_look_source source;
    int index;           /* VALUE: of the operation; ARRAY: among the arrays */
    drupe_scalar scalar; /* NUMBER */
} drupe_look_input;

/* Elements in memory; the same elements in two places are one. */
typedef struct drupe_look_array {
    drupe_dtype dtype;
    int ndim;
    size_t shape[DRUPE_MAX_DIMS]; /* 1 along axes that are broadcast */
} drupe_look_array;

typedef struct drupe_look_operation {
    const char *name;  /* as drupe_op_name(); "copy" for a change of the type. Static */
    drupe_dtype dtype; /* of its values */
    int ndim;
    size_t shape[DRUPE_MAX_DIMS];
    int kernel;     /* which one would compute it, from 0; -1: not known, as a thread is submitting it */
    bool stored;    /* an array has its values, which are stored for that */
    char place[96]; /* where it was called, in the observer's words; may be "" */
    int ninputs;
    drupe_look_input inputs[DRUPE_LOOK_INPUTS];
} drupe_look_operation;

typedef struct drupe_look {
    int noperations, narrays;
    int kernels;                                            /* of these operations; 0: not known */
    bool more;                                              /* there are operations that are not listed */
    drupe_look_operation operations[DRUPE_LOOK_OPERATIONS]; /* behind those whose values they take; the last
                                                             * one makes the array */
    drupe_look_array arrays[DRUPE_LOOK_OPERATIONS * DRUPE_LOOK_INPUTS];
} drupe_look;

/* The operations that the array waits for, as they would be submitted if that was now. *look becomes NULL
 * where the array is not pending; else free() it. Submits nothing. Any thread. */
DRUPE_API drupe_status drupe_array_look(const drupe_array *array, drupe_look **look) DRUPE_MUST_CHECK;

#endif
