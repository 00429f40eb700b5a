/* Arguments that travel by value with a launch, laid out alike for OpenCL C and C99: 64-bit members first, no
 * padding. Strides count elements. gen.py hands this file on to the array room and into the program texts. */
#ifndef DRUPE_PARAMS_H
#define DRUPE_PARAMS_H

#ifdef __OPENCL_VERSION__
typedef int drupe_i32;
typedef long drupe_i64;
typedef ulong drupe_u64;
#else
#include <stdint.h>
typedef int32_t drupe_i32;
typedef int64_t drupe_i64;
typedef uint64_t drupe_u64;
#endif

#define DRUPE_KERNEL_DIMS   16
#define DRUPE_KERNEL_INPUTS 3

/* Element-wise. Operand 0 is the output, operand k+1 is input k. */
typedef struct drupe_map_head {
    drupe_i64 n;
    drupe_u64 value[DRUPE_KERNEL_INPUTS][2];   /* constant inputs: the bytes of a value of the compute type */
    drupe_i32 dtypes[DRUPE_KERNEL_INPUTS + 1]; /* as stored; read by the host's kernels only */
    drupe_i32 constants;                       /* bit k: input k is value[k] */
    drupe_i32 ndim;                            /* 0: all operands are contiguous, and the rest is absent */
} drupe_map_head;

typedef struct drupe_map_params {
    drupe_map_head head;
    drupe_i64 shape[DRUPE_KERNEL_DIMS];
    drupe_i64 strides[DRUPE_KERNEL_INPUTS + 1][DRUPE_KERNEL_DIMS];
} drupe_map_params;

/* out[i * stride] = start + i * step. */
typedef struct drupe_sequence_params {
    drupe_i64 n, stride;
    drupe_u64 start[2], step[2]; /* the bytes of values of the compute type */
    drupe_i32 dtype, reserved;
} drupe_sequence_params;

/* Output o = sum over r < extent of in[base(o) + r * stride], where base follows from the kept dimensions.
 * With splits > 1 each split of the extent gives one partial result: row kernels write out[o * splits + s],
 * column kernels out[s * outputs + o]. */
typedef struct drupe_reduce_params {
    drupe_i64 outputs, extent, stride, splits;
    drupe_i64 shape[DRUPE_KERNEL_DIMS], strides[DRUPE_KERNEL_DIMS];
    drupe_i32 ndim;                /* kept dimensions, at least 1 for column kernels */
    drupe_i32 in_dtype, out_dtype; /* as stored; read by the host's kernels only */
    drupe_i32 team;                /* work-items to an output, a power of 2; row kernels for GPUs */
    drupe_i32 known;               /* 0; host's kernels: set when the only result is known */
    drupe_i32 reserved;
} drupe_reduce_params;

/* out[m][n] = a[m][k] b[k][n]; `out` and the rows of b are contiguous, a has any strides. */
typedef struct drupe_matmul_params {
    drupe_i64 m, n, k;
    drupe_i64 a_row, a_column, b_row;
} drupe_matmul_params;

/* The last argument of an instrumented kernel: drupe/check.h's struct of the same members. Operand k may be
 * used at the elements low[k] to high[k]; operand 0 is the output. */
typedef struct drupe_kernel_bounds {
    drupe_i64 low[DRUPE_KERNEL_INPUTS + 1], high[DRUPE_KERNEL_INPUTS + 1];
    drupe_i64 index;   /* the first one outside */
    drupe_i32 operand; /* whose it is, counted from 1; 0: none */
    drupe_i32 reserved;
} drupe_kernel_bounds;

#endif
