/* Arguments of the kernels for GPUs of what is a loop of the host elsewhere; rules as in params.h. */
#ifndef DRUPE_PARAMS_GPU_H
#define DRUPE_PARAMS_GPU_H

/* Output o of `outer` * inner, element i of its n: in[(o / inner * n + i) * inner + o % inner]. With splits
 * the places go to out[s * outputs + o]; `listed`: i counts places that such a launch found. */
typedef struct drupe_arg_params {
    drupe_i64 outputs, extent, n, inner, splits;
    drupe_i32 team, listed;
} drupe_arg_params;

/* An index space as in math/gather.h, for one index array, or for two that are folded. */
typedef struct drupe_index_params {
    drupe_i64 count, base; /* positions of the index space */
    drupe_i64 wanted;      /* a scatter does nothing unless the report's first word is this */
    drupe_i64 length[2], step[2];
    drupe_i32 ndim, points, mode, claimed; /* claimed: of equal positions the last one counts */
    drupe_i64 shape[DRUPE_KERNEL_DIMS], at[DRUPE_KERNEL_DIMS], other[DRUPE_KERNEL_DIMS];
    drupe_i64 index[2][DRUPE_KERNEL_DIMS];
} drupe_index_params;

/* A mask of n bytes in blocks; `room`: how many positions there is room for, in each of ndim rows. */
typedef struct drupe_mask_params {
    drupe_i64 n, block, room;
    drupe_i32 ndim, reserved;
    drupe_i64 shape[DRUPE_KERNEL_DIMS];
} drupe_mask_params;

/* Rows [outer][n][inner] in chunks of `chunk` elements. */
typedef struct drupe_scan_params {
    drupe_i64 outer, n, inner, chunk, chunks;
    drupe_i32 initial, reserved;
} drupe_scan_params;

/* The places of m values among n sorted elements. */
typedef struct drupe_search_params {
    drupe_i64 n, m;
    drupe_i32 right, absent;
} drupe_search_params;

/* Rows of n elements in tiles. */
typedef struct drupe_sort_params {
    drupe_i64 rows, n, tiles;
    drupe_i32 shift, descending;
    drupe_i32 placed,
        part; /* part: of complex numbers, 0 the imaginary one, 1 the real one, 2 which are NaN */
} drupe_sort_params;

typedef struct drupe_unique_params {
    drupe_i64 n;
    drupe_i32 equal_nan, reserved;
} drupe_unique_params;

/* Stacks of `count` products, in `splits` parts of `chunk` steps along k, the last one of what is left.
 * `along`: neighbours in memory lie along k. */
typedef struct drupe_product_params {
    drupe_i64 m, n, k;
    drupe_i64 a_row, a_column, b_row, b_column, a_stack, b_stack;
    drupe_i64 count, splits, chunk;
    drupe_i32 a_along, b_along;
    drupe_i32 team, reserved; /* work-items to a row, a power of 2, where b is a vector */
} drupe_product_params;

typedef struct drupe_random_params {
    drupe_i64 n;
    drupe_i32 wide, reserved;
} drupe_random_params;

#endif
