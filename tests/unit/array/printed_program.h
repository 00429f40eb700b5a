/* Fused programs that are built by hand, and their operations one by one. */
#ifndef PRINTED_PROGRAM_H
#define PRINTED_PROGRAM_H

#include "array/fused_room.h"
#include "array_fixture.h"

extern uint32_t printed_seed;
/* A number below n that follows from the seed. */
size_t printed_below(size_t n);

/* A fused program over samples, beside the same steps one by one. */
typedef struct printed {
    drupe_queue *queue;
    drupe_target *target;
    drupe_fused f;
    int ndim;
    size_t shape[DRUPE_MAX_DIMS];
    drupe_array arrays[DRUPE_FUSED_OPERANDS]; /* the operands */
    drupe_array plain[DRUPE_FUSED_OPERANDS];  /* inputs with all elements of the index space, contiguous */
    drupe_array values[DRUPE_FUSED_STEPS];    /* of the steps one by one */
    drupe_scalar scalars[DRUPE_FUSED_CONSTANTS];
} printed;
void printed_begin(printed *p, drupe_queue *queue, int ndim, const size_t *shape);
void printed_end(printed *p);
/* A sample whose values follow from the seed; `layout` is array_fixture.h's. */
drupe_fused_ref printed_input(printed *p, drupe_dtype dtype, sample_layout layout);
drupe_fused_ref printed_constant(printed *p, drupe_scalar scalar);
/* Append an operation, and do it alone. False, with nothing done, when it does not take such operands. */
bool printed_step(printed *p, int op, const drupe_fused_ref *in, drupe_fused_ref *out);
bool printed_cast(printed *p, drupe_fused_ref in, drupe_dtype dtype, drupe_fused_ref *out);
/* The step's value becomes an output; `turned`: with its axes reversed in memory. */
void printed_output(printed *p, drupe_fused_ref ref, bool turned);
/* How it is laid out: contiguous without strides where that can be. */
void printed_settle(printed *p);
/* Whether there was a kernel. */
bool printed_launch(printed *p);
/* Run it, which must be possible, and hold its outputs against the steps' values. */
void printed_compare(printed *p);

#endif
