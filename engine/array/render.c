/* Program texts: definitions, then the shape file, which is one kernel.
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
    drupe_text_printf(text, "#define TI%d %s\n#define TC%d %s\n", index, stored->cl, index, compute->cl);
    drupe_text_printf(text, "#define LOAD%d(x) ((TC%d)%s(x))\n", index, index, truth ? "CAST_BOOL" : "");
    drupe_text_printf(text, "#define TRUTH%d(x) %s\n", index,
                      stored->kind == KIND_BOOL ? "min(x, (uchar)1)" : "(x)");
}

static const dtype_row *input_type(const kernel_key *key, int i)
{
    const drupe_dtype compute = (drupe_dtype)key->compute;
    return drupe_dtype_row(key->shape == SHAPE_MAP ? drupe_op_input(drupe_op_row(key->op), compute, (size_t)i)
                                                   : compute);
}

static void define_types(drupe_text *text, const kernel_key *key)
{
    const dtype_row *compute = drupe_dtype_row((drupe_dtype)key->compute);
    drupe_text_printf(text, "#define TC %s\n#define TS _%s\n", compute->cl, compute->suffix);
    drupe_text_printf(text, "#define TO %s\n", drupe_dtype_row((drupe_dtype)key->out)->cl);
    for (int i = 0; i < DRUPE_KERNEL_INPUTS; i++)
        if (key->in[i] != DRUPE_DTYPE_NONE)
            define_input(text, input_type(key, i), i, (drupe_dtype)key->in[i]);
    drupe_text_printf(text, "#define LOAD(x) ((TC)%s(x))\n", compute->kind == KIND_BOOL ? "CAST_BOOL" : "");
    drupe_text_printf(text, "#define STORE(x) ((TO)%s(x))\n", key->out == DRUPE_BOOL ? "CAST_BOOL" : "");
    drupe_text_printf(text, "#define LOWEST %s\n#define HIGHEST %s\n", compute->lowest, compute->highest);
    drupe_text_printf(text, "#if HAS_FP64\n#define TW %s\n#else\n#define TW TC\n#endif\n",
                      key->compute == DRUPE_FLOAT32 ? "double" : compute->cl);
}

/* What map.cl asks for beside the types. */
static void define_map(drupe_text *text, const kernel_key *key, const op_row *row)
{
    const int kind = drupe_dtype_row((drupe_dtype)key->compute)->kind;
    const bool strided = key->layout == LAYOUT_STRIDED;
    static const char *const inputs[] = {"", "a", "a, b", "a, b, c"};
    drupe_text_printf(text, "#define ARITY %d\n#define OP(%s) (%s)\n", row->arity, inputs[row->arity],
                      row->expression[kind]);
    drupe_text_printf(text, "#define STRIDED %d\n#define CONSTANTS %d\n#define VECTOR %d\n", strided,
                      strided ? 0 : key->layout, !strided && row->vector && kind == KIND_FLOAT);
    if (row->vector_limit) drupe_text_printf(text, "#define VECTOR_LIMIT %s\n", row->vector_limit);
}

static void define_reduction(drupe_text *text, const kernel_key *key, const op_row *row)
{
    const int kind = drupe_dtype_row((drupe_dtype)key->compute)->kind;
    drupe_text_printf(text, "#define OP(a, b) (%s)\n#define IDENTITY %s\n", row->expression[kind],
                      row->identity);
    drupe_text_printf(text, "#define COLUMN %d\n#define STRIDED %d\n", key->shape == SHAPE_COLUMN,
                      key->layout == LAYOUT_STRIDED);
}

drupe_status drupe_render_program(const drupe_target *target, const kernel_key *key, drupe_text *text)
{
    const int kind = drupe_dtype_row((drupe_dtype)key->compute)->kind;
    char name[64];
    drupe_render_name(target, key, name, sizeof(name));
    drupe_text_printf(text,
                      "#define FORM_GPU %d\n#define HAS_FP64 %d\n#define DRUPE_CHECKED %d\n#define NAME %s\n",
                      target->gpu_form, target->fp64, target->checked, name);
    append_lines(text, source_params_h);
    append_lines(text, source_dialect_h);
    append_lines(text, source_numeric_h);
    define_types(text, key);
    switch (key->shape) {
    case SHAPE_MATMUL:
        drupe_text_printf(text, "#define MULTIPLY(r, x, y) %s\n", drupe_multiply_text(kind));
        append_lines(text, source_matmul_cl);
        break;
    case SHAPE_SEQUENCE:
        drupe_text_printf(text, "#define SEQUENCE(start, step, i) %s\n", drupe_sequence_text(kind));
        append_lines(text, source_sequence_cl);
        break;
    case SHAPE_MAP:
        define_map(text, key, drupe_op_row(key->op));
        append_lines(text, source_map_cl);
        break;
    default: define_reduction(text, key, drupe_op_row(key->op)); append_lines(text, source_reduce_cl);
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
