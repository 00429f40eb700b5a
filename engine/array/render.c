/* Program texts: definitions, then one inclusion of the shape file per operation of the family and layout.
 *
 * Element types are those as stored; casts are part of the loads, so that no combination of types needs a
 * kernel of its own before it is used. */
#include "array/array_room.h"
#include "generated/sources.inc"
#include <stdio.h>
#include <string.h>

static void append_lines(drupe_text *text, const char *const *lines)
{
    for (; *lines; lines++) drupe_text_printf(text, "%s", *lines);
}

/* A byte of a bool that is not 0 is true, whoever wrote it: what comes from one or goes to one is compared.
 */
static void define_input(drupe_text *text, const dtype_row *compute, int index, drupe_dtype dtype)
{
    const dtype_row *stored = drupe_dtype_row(dtype);
    const bool truth = compute->kind == KIND_BOOL || stored->kind == KIND_BOOL;
    drupe_text_printf(text, "#define TI%d %s\n", index, stored->cl);
    drupe_text_printf(text, "#define LOAD%d(x) ((TC)%s(x))\n", index, truth ? "CAST_BOOL" : "");
    drupe_text_printf(text, "#define TRUTH%d(x) %s\n", index,
                      stored->kind == KIND_BOOL ? "min(x, (uchar)1)" : "(x)");
}

static void define_types(drupe_text *text, const kernel_key *key)
{
    const dtype_row *compute = drupe_dtype_row((drupe_dtype)key->compute);
    drupe_text_printf(text, "#define TC %s\n#define TS _%s\n", compute->cl, compute->suffix);
    drupe_text_printf(text, "#define TO %s\n", drupe_dtype_row((drupe_dtype)key->out)->cl);
    for (int i = 0; i < DRUPE_KERNEL_INPUTS; i++)
        if (key->in[i] != DRUPE_DTYPE_NONE) define_input(text, compute, i, (drupe_dtype)key->in[i]);
    drupe_text_printf(text, "#define LOAD(x) ((TC)%s(x))\n", compute->kind == KIND_BOOL ? "CAST_BOOL" : "");
    drupe_text_printf(text, "#define STORE(x) ((TO)%s(x))\n", key->out == DRUPE_BOOL ? "CAST_BOOL" : "");
    drupe_text_printf(text, "#define LOWEST %s\n#define HIGHEST %s\n", compute->lowest, compute->highest);
    drupe_text_printf(text, "#if HAS_FP64\n#define TW %s\n#else\n#define TW TC\n#endif\n",
                      key->compute == DRUPE_FLOAT32 ? "double" : compute->cl);
}

/* One kernel: `defines` is the shape file's parameters beside NAME and OP. */
static void append_kernel(drupe_text *text, const drupe_target *target, kernel_key key, const char *defines,
                          const char *const *shape)
{
    char name[64];
    drupe_render_name(target, &key, name, sizeof(name));
    drupe_text_printf(text, "#define NAME %s\n%s", name, defines);
    append_lines(text, shape);
    drupe_text_printf(text, "#undef NAME\n#undef STRIDED\n#undef CONSTANTS\n#undef COLUMN\n#undef VECTOR\n");
}

static void append_map(drupe_text *text, const drupe_target *target, kernel_key key, const op_row *row)
{
    const int layouts = 1 << row->arity;
    char defines[96];
    if (row->vector_limit) drupe_text_printf(text, "#define VECTOR_LIMIT %s\n", row->vector_limit);
    /* All inputs constant is no kernel but a fill. */
    for (int layout = 0; layout < layouts - 1; layout++) {
        key.layout = layout;
        snprintf(defines, sizeof(defines), "#define STRIDED 0\n#define CONSTANTS %d\n#define VECTOR %d\n",
                 layout, row->vector && drupe_dtype_row((drupe_dtype)key.compute)->kind == KIND_FLOAT);
        append_kernel(text, target, key, defines, source_map_cl);
    }
    key.layout = LAYOUT_STRIDED;
    append_kernel(text, target, key, "#define STRIDED 1\n#define CONSTANTS 0\n#define VECTOR 0\n",
                  source_map_cl);
    drupe_text_printf(text, "#undef VECTOR_LIMIT\n");
}

static void append_reduction(drupe_text *text, const drupe_target *target, kernel_key key)
{
    key.shape = SHAPE_ROW;
    key.layout = 0;
    append_kernel(text, target, key, "#define COLUMN 0\n#define STRIDED 0\n", source_reduce_cl);
    key.layout = LAYOUT_STRIDED;
    append_kernel(text, target, key, "#define COLUMN 0\n#define STRIDED 1\n", source_reduce_cl);
    key.shape = SHAPE_COLUMN;
    append_kernel(text, target, key, "#define COLUMN 1\n#define STRIDED 1\n", source_reduce_cl);
}

static void append_family(drupe_text *text, const drupe_target *target, kernel_key key)
{
    const op_row *wanted = drupe_op_row(key.op);
    const int kind = drupe_dtype_row((drupe_dtype)key.compute)->kind;
    for (int op = 0; op < OP_TABLE_COUNT; op++) {
        const op_row *row = drupe_op_row(op);
        if (row->family != wanted->family || row->arity != wanted->arity || !row->expression[kind]) continue;
        key.op = op;
        if (row->kind == DRUPE_OP_REDUCTION) {
            drupe_text_printf(text, "#define OP(a, b) (%s)\n#define IDENTITY %s\n", row->expression[kind],
                              row->identity);
            append_reduction(text, target, key);
            drupe_text_printf(text, "#undef IDENTITY\n");
        } else {
            drupe_text_printf(text, "#define ARITY %d\n#define OP(%s) (%s)\n", row->arity,
                              row->arity == 1 ? "a" : "a, b", row->expression[kind]);
            append_map(text, target, key, row);
            drupe_text_printf(text, "#undef ARITY\n");
        }
        drupe_text_printf(text, "#undef OP\n");
    }
}

drupe_status drupe_render_program(const drupe_target *target, const kernel_key *key, drupe_text *text)
{
    const int kind = drupe_dtype_row((drupe_dtype)key->compute)->kind;
    drupe_text_printf(text, "#define FORM_GPU %d\n#define HAS_FP64 %d\n#define DRUPE_CHECKED %d\n",
                      target->gpu_form, target->fp64, target->checked);
    append_lines(text, source_params_h);
    append_lines(text, source_dialect_h);
    append_lines(text, source_numeric_h);
    define_types(text, key);
    if (key->shape == SHAPE_MATMUL) {
        drupe_text_printf(text, "#define MULTIPLY(r, x, y) %s\n", drupe_multiply_text(kind));
        append_kernel(text, target, *key, "", source_matmul_cl);
    } else if (key->shape == SHAPE_SEQUENCE) {
        drupe_text_printf(text, "#define SEQUENCE(start, step, i) %s\n", drupe_sequence_text(kind));
        append_kernel(text, target, *key, "", source_sequence_cl);
    } else {
        append_family(text, target, *key);
    }
    return drupe_text_check(text);
}

void drupe_render_name(const drupe_target *target, const kernel_key *key, char *name, size_t size)
{
    const char *suffix = drupe_dtype_row((drupe_dtype)key->compute)->suffix;
    const op_row *row = drupe_op_row(key->op);
    switch (key->shape) {
    case SHAPE_MATMUL: snprintf(name, size, "matmul_%s", suffix); break;
    case SHAPE_SEQUENCE: snprintf(name, size, "sequence_%s", suffix); break;
    case SHAPE_COLUMN: snprintf(name, size, "%s_%s_by_column", row->name, suffix); break;
    case SHAPE_ROW:
        snprintf(name, size, "%s_%s_by_row%s", row->name, suffix,
                 key->layout && !target->builtin ? "_strided" : "");
        break;
    default:
        if (target->builtin)
            snprintf(name, size, "%s_%s", row->name, suffix);
        else if (key->layout == LAYOUT_STRIDED)
            snprintf(name, size, "%s_%s_strided", row->name, suffix);
        else
            snprintf(name, size, "%s_%s_flat%d", row->name, suffix, key->layout);
    }
    const size_t length = strlen(name);
    if (target->builtin && target->checked) snprintf(name + length, size - length, DRUPE_BUILTIN_CHECKED);
}
