/* Between recipes and their parts. See recipe.h. */
#include "array/array_room.h"

_Static_assert(OP_TABLE_COUNT <= UINT8_MAX && DRUPE_DTYPE_COUNT < RECIPE_ANY,
               "each has a byte, or its low bits");
_Static_assert(3 + DRUPE_KERNEL_INPUTS + 2 <= RECIPE_MOST, "one operation fits");

static uint8_t type_byte(int32_t dtype)
{
    return dtype == DRUPE_DTYPE_NONE ? RECIPE_ANY : (uint8_t)dtype;
}

static int32_t type_of(uint8_t byte)
{
    return (byte & RECIPE_ANY) == RECIPE_ANY ? DRUPE_DTYPE_NONE : byte & RECIPE_ANY;
}

static size_t inputs_of(const kernel_parts *parts)
{
    switch (parts->shape) {
    case SHAPE_MAP: return (size_t)drupe_op_row(parts->op)->arity;
    case SHAPE_SEQUENCE: return 0;
    case SHAPE_MATMUL: return 2;
    default: return 1;
    }
}

void drupe_recipe_make(const kernel_parts *parts, kernel_recipe *recipe)
{
    const bool strided = parts->layout == LAYOUT_STRIDED;
    uint8_t *to = recipe->bytes;
    *to++ = (uint8_t)parts->shape;
    *to++ = strided;
    *to++ = type_byte(parts->out);
    for (size_t i = 0, count = inputs_of(parts); i < count; i++) {
        if (!strided && parts->layout >> i & 1)
            *to++ = RECIPE_CONSTANT;
        else
            *to++ = RECIPE_INPUT | type_byte(parts->in[i]);
    }
    *to++ = RECIPE_OPERATION | type_byte(parts->compute);
    *to++ = (uint8_t)parts->op;
    recipe->size = (uint8_t)(to - recipe->bytes);
}

void drupe_recipe_read(const kernel_recipe *recipe, kernel_parts *parts)
{
    const uint8_t *from = recipe->bytes, *operation = from + recipe->size - 2;
    *parts = (kernel_parts){.shape = from[0],
                            .op = operation[1],
                            .layout = from[1] ? LAYOUT_STRIDED : 0,
                            .compute = type_of(operation[0]),
                            .out = type_of(from[2])};
    for (int i = 0; i < DRUPE_KERNEL_INPUTS; i++) {
        const uint8_t *leaf = from + 3 + i;
        parts->in[i] = leaf < operation ? type_of(*leaf) : DRUPE_DTYPE_NONE;
        if (leaf >= operation || *leaf != RECIPE_CONSTANT) continue;
        parts->in[i] =
            (int32_t)drupe_op_input(drupe_op_row(parts->op), (drupe_dtype)parts->compute, (size_t)i);
        parts->layout |= 1 << i;
    }
}
