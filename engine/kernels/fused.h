/* A fused kernel: some element-wise operations over one index space, each element of which is computed from
 * the first operation to the last before the next is begun, so that what lies between them needs no memory.
 *
 * The array room makes these from expressions (array/fuse.h). The host's kernel "fused" runs them block by
 * block (host_fused.h), and fused_print.c of the array room prints them as OpenCL C. Results are those of the
 * same operations one by one, bit by bit: a step's value is rounded to the type that its array would have
 * had. */
#ifndef DRUPE_KERNELS_FUSED_H
#define DRUPE_KERNELS_FUSED_H

#include "generated/drupe_params.h"

#define DRUPE_FUSED_OPERANDS  16 /* arrays, outputs and inputs */
#define DRUPE_FUSED_STEPS     64
#define DRUPE_FUSED_CONSTANTS 32
#define DRUPE_FUSED_SLOTS     16 /* values of steps that are needed at a time */

typedef enum drupe_fused_source { FUSED_OPERAND, FUSED_CONSTANT, FUSED_STEP } drupe_fused_source;

/* What a step takes. */
typedef struct drupe_fused_ref {
    uint8_t source, index; /* a drupe_fused_source, and which one of them */
} drupe_fused_ref;

/* One operation. Steps stand behind those whose values they take. */
typedef struct drupe_fused_step {
    uint8_t op;      /* its number in the table, OP_COPY among them */
    uint8_t compute; /* drupe_dtype: what it is computed in */
    uint8_t dtype;   /* drupe_dtype of its value, to which what was computed is rounded */
    uint8_t slot; /* where its value is kept, from here to the last step that takes it; may be that of a value
                   * which this step is the last to take */
    int8_t store; /* the operand that its value, which has the same type, is stored to; -1: none */
    drupe_fused_ref in[DRUPE_KERNEL_INPUTS];
} drupe_fused_step;

/* A scalar, in the type that its step's input is computed in. */
typedef struct drupe_fused_constant {
    drupe_u64 value[2];
    drupe_i32 dtype, reserved;
} drupe_fused_constant;

typedef struct drupe_fused_operand {
    char *base; /* where element [0, ..., 0] of the index space is; a device's address on such a device */
    drupe_i32 dtype, output; /* `output`: not 0 where one step stores to it; none takes it then. Its memory
                              * may be that of an input, element by element, which no later step takes */
    drupe_i64 strides[DRUPE_KERNEL_DIMS]; /* elements */
} drupe_fused_operand;

/* A reduction of a step's value, seen as a C-contiguous array of the index space: that has all its elements,
 * and `params` are those that the kernel of the reduction alone would have for it. Of rows the stride is 1;
 * of columns that of the last kept axis is 1, or each output has a row of its own behind that of the output
 * before (stride 1, strides[last] == extent, splits 1, fewer than 128 elements). The sums are made of the
 * same parts, in the same order, as by the kernel of the reduction alone. */
typedef struct drupe_fused_reduction {
    drupe_i32 op;     /* its number; -1: there is none */
    drupe_i32 column; /* not 0: as kernels "_by_column", else as "_by_row", whose `stride` is 1 */
    drupe_i32 compute, step;
    char *out;
    drupe_reduce_params params; /* in_dtype: that of the step; known: 0 at first */
} drupe_fused_reduction;

typedef struct drupe_fused {
    drupe_i64 n;    /* elements of the index space */
    drupe_i32 ndim; /* 0: all operands are contiguous, and have no strides */
    drupe_i32 noperands, nsteps, nconstants, nslots;
    drupe_i64 shape[DRUPE_KERNEL_DIMS];
    drupe_fused_operand operands[DRUPE_FUSED_OPERANDS];
    drupe_fused_step steps[DRUPE_FUSED_STEPS];
    drupe_fused_constant constants[DRUPE_FUSED_CONSTANTS];
    drupe_fused_reduction reduction;
} drupe_fused;

/* The arguments of the host's kernel "fused": a value, the address of a drupe_fused that lives until the
 * kernel is over, and so many pointers, of which it uses none: they are there for who keeps count of memory.
 */
#define DRUPE_FUSED_POINTERS (DRUPE_FUSED_OPERANDS + 1)

#endif
