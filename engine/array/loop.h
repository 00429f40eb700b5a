/* What files have in common whose work is a loop of the host, or kernels on GPUs: how they make a result,
 * bring inputs into the form that the loop takes, and submit it. Statuses as in drupe/status.h. */
#ifndef DRUPE_ARRAY_LOOP_H
#define DRUPE_ARRAY_LOOP_H

#include "array/array_room.h"

/* DRUPE_E_PLACEMENT unless both arrays are on one queue; `what` they are, such as "the operands of matmul".
 */
drupe_status drupe_array_same_queue(const char *what, const drupe_array *a, const drupe_array *b);
/* drupe_array_result() on the queue of `beside`, in its kind of memory. */
drupe_status drupe_array_result_beside(const drupe_array *beside, drupe_dtype dtype, int ndim,
                                       const size_t *shape, drupe_array *out);
/* Write 0 to all elements of a new array, which is cleared on failure. */
drupe_status drupe_array_zero(drupe_array *out);

#define DRUPE_LOOP_INPUTS 3
/* Work that writes one new array, whole. After a failure, which `status` keeps, the functions do nothing, so
 * that only drupe_loop_close() need be asked. */
typedef struct drupe_loop {
    drupe_array *out; /* borrowed, with elements */
    drupe_status status;
    size_t count;
    drupe_array
        in[DRUPE_LOOP_INPUTS]; /* owned: `count` arrays, contiguous in the types that the loop takes */
} drupe_loop;

void drupe_loop_open(drupe_loop *loop, drupe_array *out);
/* One more input, on the queue of `out`. */
void drupe_loop_take(drupe_loop *loop, const drupe_array *array, drupe_dtype dtype);
/* The target if the host cannot reach its memory, so that kernels do better; else, and after a failure, NULL.
 */
drupe_target *drupe_loop_remote(drupe_loop *loop);
/* drupe_array_call() with the pointers of `out` and of the inputs, in this order. */
void drupe_loop_call(drupe_loop *loop, const char *label, drupe_call_fn fn, const void *params,
                     size_t params_size);
/* The status. Lets go of the inputs, and after a failure clears `out`. */
drupe_status drupe_loop_close(drupe_loop *loop);

#endif
