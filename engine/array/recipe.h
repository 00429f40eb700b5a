/* What a kernel is: a short string of bytes, in which equal kernels are equal.
 *
 * First the iteration: its shape, whether by strides, and the type of the output. Then the expression,
 * operands before what is done with them: inputs by their types, constants, and operations with the type that
 * they are computed in. Kernels are found by their recipes; their names and programs are made from them.
 * Today an expression has one operation. */
#ifndef DRUPE_ARRAY_RECIPE_H
#define DRUPE_ARRAY_RECIPE_H

#include "drupe/array.h"
#include "generated/drupe_params.h"
#include "generated/drupe_params_gpu.h"
#include "generated/ops_table.inc"

typedef enum kernel_shape {
    SHAPE_MAP,
    SHAPE_SEQUENCE,
    SHAPE_ROW,
    SHAPE_COLUMN,
    SHAPE_MATMUL,
    /* For GPUs, of what are loops of the host elsewhere. Their op is the variant: see the files *_gpu.cl. */
    SHAPE_ARG,
    SHAPE_INDEX,
    SHAPE_MASK,
    SHAPE_SCAN,
    SHAPE_SEARCH,
    SHAPE_SORT,
    SHAPE_UNIQUE,
    SHAPE_RANDOM,
    SHAPE_PRODUCT,
    SHAPE_FUSED /* of the host: one kernel, which is told what to do. Else there are many: fused_room.h */
} kernel_shape;
#define SCAN_PRODUCT 1 /* bits of a scan's variant */
#define SCAN_SUMS    2
#define SCAN_COLUMN  4
#define PRODUCT_FAR                                                                                          \
    1 /* a bit of a product's variant; the others are EACH of matmul_gpu.cl, which is even                   \
       */
#define LAYOUT_STRIDED 8 /* else the bits of constant inputs */

#define RECIPE_MOST 31
typedef struct kernel_recipe {
    uint8_t size, bytes[RECIPE_MOST];
} kernel_recipe;

/* The bytes of a recipe: the low bits of the first three are a type, RECIPE_ANY where kernels take all. */
#define RECIPE_INPUT     0x40
#define RECIPE_CONSTANT  0x60
#define RECIPE_OPERATION 0x80 /* and the operation's number in the next byte */
#define RECIPE_ANY       0x1f

/* The parts of a recipe of one operation. A type is DRUPE_DTYPE_NONE where kernels take all, and of inputs
 * that there are none of; of a constant it is the type that the input is computed in. */
typedef struct kernel_parts {
    int32_t shape, op, layout;
    int32_t compute, out, in[DRUPE_KERNEL_INPUTS];
} kernel_parts;
void drupe_recipe_make(const kernel_parts *parts, kernel_recipe *recipe);
void drupe_recipe_read(const kernel_recipe *recipe, kernel_parts *parts);

#endif
