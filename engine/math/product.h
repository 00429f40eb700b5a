/* Products of stacks of matrices of any element type, by BLAS or by loops of our own, on several processors.
 */
#ifndef DRUPE_MATH_PRODUCT_H
#define DRUPE_MATH_PRODUCT_H

#include "drupe/array.h"
#include "math/provider.h"

/* What elements are computed as. Integers wrap, so that signed and unsigned ones of a size are one. */
typedef enum drupe_product_type {
    DRUPE_PRODUCT_BOOL,
    DRUPE_PRODUCT_INT8,
    DRUPE_PRODUCT_INT16,
    DRUPE_PRODUCT_INT32,
    DRUPE_PRODUCT_INT64,
    DRUPE_PRODUCT_FLOAT,
    DRUPE_PRODUCT_DOUBLE,
    DRUPE_PRODUCT_CFLOAT,
    DRUPE_PRODUCT_CDOUBLE,
    DRUPE_PRODUCT_TYPES
} drupe_product_type;

/* Strides are in elements; one of a stack may be 0, and all may be negative. */
typedef struct drupe_product_operand {
    const void *data; /* element [0, ..., 0] */
    ptrdiff_t row, column;
    ptrdiff_t stack[DRUPE_MAX_DIMS];
} drupe_product_operand;

typedef struct drupe_product {
    drupe_product_type type;
    size_t m, n, k; /* each 1 at least */
    int ndim;       /* of the stack */
    size_t shape[DRUPE_MAX_DIMS];
    drupe_product_operand a, b;
    void *out; /* C-contiguous: stack, m, n */
} drupe_product;

/* The type of BLAS, or DRUPE_BLAS_NONE. */
drupe_blas_type drupe_product_blas(drupe_product_type type);

/* Whether BLAS could take an operand of so many rows and columns: neighbours along one axis, rows that do not
 * overlap along the other. Operands that it cannot take are better copied before; they are computed by our
 * own loops otherwise. */
bool drupe_product_addressable(const drupe_product_operand *operand, size_t rows, size_t columns);

/* Compute it. Returns when it is done. */
void drupe_product_run(const drupe_product *product);

/* --- The loops (product_loops.h, compiled for several instruction sets) --------------------------------- */

typedef struct drupe_product_tile {
    size_t m, n, k;
    const void *a, *b;
    ptrdiff_t a_row, a_column, b_row, b_column;
    void *out; /* rows are `ld` elements apart */
    size_t ld;
} drupe_product_tile;

typedef void drupe_product_loop(const drupe_product_tile *tile);
extern drupe_product_loop *const drupe_product_baseline[DRUPE_PRODUCT_TYPES];
#if defined(__x86_64__)
extern drupe_product_loop *const drupe_product_avx2[DRUPE_PRODUCT_TYPES];
extern drupe_product_loop *const drupe_product_avx512[DRUPE_PRODUCT_TYPES];
#endif

#endif
