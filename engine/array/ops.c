/* The generated tables, and the questions that a look into them answers. */
#include "array/array_room.h"
#include <string.h>

#define OP_TABLE_ROWS
#include "generated/ops_table.inc"

const op_row *drupe_op_row(int op)
{
    return op >= 0 && op < OP_TABLE_COUNT ? &op_rows[op] : NULL;
}

const dtype_row *drupe_dtype_row(drupe_dtype dtype)
{
    return &dtype_rows[dtype];
}

const char *drupe_multiply_text(int kind)
{
    return multiply_texts[kind];
}

const char *drupe_sequence_text(int kind)
{
    return sequence_texts[kind];
}

static bool valid_dtype(drupe_dtype dtype)
{
    return (int)dtype >= 0 && dtype < DRUPE_DTYPE_COUNT;
}

size_t drupe_dtype_size(drupe_dtype dtype)
{
    return valid_dtype(dtype) ? dtype_rows[dtype].size : 0;
}

const char *drupe_dtype_name(drupe_dtype dtype)
{
    return valid_dtype(dtype) ? dtype_rows[dtype].name : "no type";
}

char drupe_dtype_kind(drupe_dtype dtype)
{
    return valid_dtype(dtype) ? dtype_rows[dtype].typestr[0] : '?';
}

drupe_dtype drupe_dtype_real(drupe_dtype dtype)
{
    return valid_dtype(dtype) ? dtype_rows[dtype].real : DRUPE_DTYPE_NONE;
}

drupe_dtype drupe_dtype_find(const char *name)
{
    if (!name) return DRUPE_DTYPE_NONE;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const char *orders = "<=|";
#else
    const char *orders = ">=|";
#endif
    const char *typestr = *name && strchr(orders, *name) ? name + 1 : name;
    for (int i = 0; i < DRUPE_DTYPE_COUNT; i++)
        if (strcmp(name, dtype_rows[i].name) == 0 || strcmp(typestr, dtype_rows[i].typestr) == 0)
            return (drupe_dtype)i;
    return strcmp(name, "?") == 0 ? DRUPE_BOOL : DRUPE_DTYPE_NONE;
}

drupe_dtype drupe_dtype_promote(drupe_dtype a, drupe_dtype b)
{
    if (!valid_dtype(a) || !valid_dtype(b)) return DRUPE_DTYPE_NONE;
    return (drupe_dtype)dtype_promotion[a][b];
}

static bool public_op(drupe_op op)
{
    return (int)op >= 0 && op < DRUPE_OP_COUNT;
}

const char *drupe_op_name(drupe_op op)
{
    return public_op(op) ? op_rows[op].name : "no operation";
}

drupe_op_kind drupe_op_kind_of(drupe_op op)
{
    return public_op(op) ? op_rows[op].kind : DRUPE_OP_ELEMENTWISE;
}

int drupe_op_arity(drupe_op op)
{
    return public_op(op) ? op_rows[op].arity : 0;
}
