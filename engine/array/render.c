/* Program texts: definitions, then the shape file, which is one kernel.
 *
 * Element types are those as stored; casts are part of the loads, so that no combination of types needs a
 * kernel of its own before it is used. */
#include "array/fused_room.h"
#include "array/kernel_room.h"
#include "generated/sources.inc"
#include <stdio.h>
#include <string.h>

static void append_lines(drupe_text *text, const char *const *lines)
{
    for (; *lines; lines++) drupe_text_printf(text, "%s", *lines);
}

void drupe_render_lines(drupe_text *text, int which)
{
    static const char *const *const texts[] = {[TEXT_DIALECT] = source_dialect_h,
                                               [TEXT_FUSED] = source_fused_cl,
                                               [TEXT_NUMERIC] = source_numeric_h,
                                               [TEXT_HALF] = source_half_h,
                                               [TEXT_COMPLEX] = source_complex_cl};
    append_lines(text, texts[which]);
}

const char *drupe_render_value(const dtype_row *row)
{
    return drupe_dtype_row(row->compute)->cl;
}

/* A byte of a bool that is not 0 is true, whoever wrote it: what comes from one or goes to one is compared.
 */
void drupe_render_cast(drupe_text *text, const char *name, const dtype_row *from, const dtype_row *to)
{
    const bool part = from->kind == KIND_COMPLEX && to->kind != KIND_COMPLEX;
    const char *x = from->kind == KIND_BOOL ? "((x) != 0)" : part ? "((x).s0)" : "(x)";
    drupe_text_printf(text, "#define %s(x) ", name);
    if (to->kind == KIND_BOOL && part)
        drupe_text_printf(text, "((uchar)any((x) != 0))\n");
    else if (to->kind == KIND_BOOL)
        drupe_text_printf(text, "((uchar)((x) != 0))\n");
    else if (to->kind == KIND_COMPLEX && from->kind == KIND_COMPLEX)
        drupe_text_printf(text, "convert_%s(x)\n", to->cl);
    else if (to->kind == KIND_COMPLEX)
        drupe_text_printf(text, "((%s)((%s)%s, 0))\n", to->cl, drupe_dtype_row(to->real)->cl, x);
    else if (to->kind == KIND_UINT && to->size == 8 && from->kind >= KIND_FLOAT)
        drupe_text_printf(text, "FLOAT_TO_U64(%s)\n", x);
    else if (from->kind >= KIND_FLOAT && to->kind < KIND_FLOAT)
        drupe_text_printf(text, "((%s)(%s)%s)\n", to->cl, to->size < 4 ? "int" : "long", x);
    else
        drupe_text_printf(text, "((%s)%s)\n", drupe_render_value(to), x);
}

/* How operand `k`, 0 being the output, is reached in memory, where it is of a type. */
static void define_memory(drupe_text *text, int k, const dtype_row *stored)
{
    const char *how = stored->compute != stored - drupe_dtype_row((drupe_dtype)0) ? "HALF" : "PLAIN";
    if (k == 0)
        drupe_text_printf(text, "#define WRITE0 WRITE_%s\n#define PUT_WIDE0 PUT_WIDE_%s\n", how, how);
    else
        drupe_text_printf(
            text, "#define READ%d READ_%s\n#define READ_WIDE%d READ_WIDE_%s\n#define ZERO%d ((%s)(0))\n", k,
            how, k, how, k, drupe_render_value(stored));
}

static void define_constant(drupe_text *text, const char *name, const dtype_row *compute)
{
    if (compute->kind == KIND_COMPLEX)
        drupe_text_printf(text, "#define %s(bytes) vload2(0, (const %s *)(bytes))\n", name,
                          drupe_dtype_row(compute->real)->cl);
    else
        drupe_text_printf(text, "#define %s(bytes) (*(const %s *)(bytes))\n", name, compute->cl);
}

static void define_input(drupe_text *text, const dtype_row *compute, int index, drupe_dtype dtype)
{
    const dtype_row *stored = drupe_dtype_row(dtype);
    char name[32];
    drupe_text_printf(text, "#define TI%d %s\n#define TV%d %s\n#define TC%d %s\n", index, stored->cl, index,
                      drupe_render_value(stored), index, compute->cl);
    snprintf(name, sizeof(name), "LOAD%d", index);
    drupe_render_cast(text, name, stored, compute);
    snprintf(name, sizeof(name), "CONSTANT_OF%d", index);
    define_constant(text, name, compute);
    define_memory(text, index + 1, stored);
    drupe_text_printf(text, "#define TRUTH%d(x) %s\n", index,
                      stored->kind == KIND_BOOL ? "min(x, (uchar)1)" : "(x)");
}

static const dtype_row *input_type(const kernel_parts *key, int i)
{
    const drupe_dtype compute = (drupe_dtype)key->compute;
    return drupe_dtype_row(key->shape == SHAPE_MAP ? drupe_op_input(drupe_op_row(key->op), compute, (size_t)i)
                                                   : compute);
}

const dtype_row *drupe_render_result(const op_row *row, const dtype_row *compute)
{
    switch (row->result) {
    case RESULT_BOOL: return drupe_dtype_row(DRUPE_BOOL);
    case RESULT_REAL:
    case RESULT_FLOAT_REAL: return drupe_dtype_row(compute->real);
    default: return compute;
    }
}

static const dtype_row *result_type(const kernel_parts *key)
{
    const dtype_row *compute = drupe_dtype_row((drupe_dtype)key->compute);
    return key->shape == SHAPE_MAP ? drupe_render_result(drupe_op_row(key->op), compute) : compute;
}

/* The arithmetic of the compute type alone: every line more costs each build. */
static void append_arithmetic(drupe_text *text, const kernel_parts *key, const dtype_row *compute)
{
    static const char *const unsigned_types[] = {[1] = "uchar", [2] = "ushort", [4] = "uint", [8] = "ulong"};
    drupe_text_printf(
        text, "#define KIND_INT %d\n#define KIND_UINT %d\n#define KIND_FLOAT %d\n#define KIND_COMPLEX %d\n",
        compute->kind == KIND_INT, compute->kind == KIND_UINT, compute->kind == KIND_FLOAT,
        compute->kind == KIND_COMPLEX);
    if (compute->kind == KIND_INT || compute->kind == KIND_UINT)
        drupe_text_printf(text, "#define TUNSIGNED %s\n#define TWRAP %s\n", unsigned_types[compute->size],
                          compute->size < 4 ? "uint" : unsigned_types[compute->size]);
    if (key->shape == SHAPE_MAP && key->op == OP_NEXTAFTER_HALF) append_lines(text, source_half_h);
    append_lines(text, compute->kind == KIND_COMPLEX ? source_complex_cl : source_numeric_h);
}

static void define_types(drupe_text *text, const kernel_parts *key)
{
    const dtype_row *compute = drupe_dtype_row((drupe_dtype)key->compute);
    const dtype_row *out = drupe_dtype_row((drupe_dtype)key->out), *result = result_type(key);
    drupe_text_printf(text, "#define TC %s\n#define TS _%s\n#define TREAL %s\n#define TR %s\n", compute->cl,
                      compute->suffix, drupe_dtype_row(compute->real)->cl, result->cl);
    drupe_text_printf(text, "#define TO %s\n#define TV %s\n", out->cl, drupe_render_value(out));
    define_memory(text, 0, out);
    define_constant(text, "CONSTANT_OF", compute);
    for (int i = 0; i < DRUPE_KERNEL_INPUTS; i++)
        if (key->in[i] != DRUPE_DTYPE_NONE)
            define_input(text, input_type(key, i), i, (drupe_dtype)key->in[i]);
    if (key->shape == SHAPE_MATMUL) {
        define_memory(text, 1, compute);
        define_memory(text, 2, compute);
    }
    drupe_render_cast(text, "LOAD", compute, compute);
    if (result->kind == KIND_COMPLEX || result->kind == KIND_BOOL) {
        drupe_render_cast(text, "STORE", result, out);
    } else { /* C may compute in a wider type */
        drupe_render_cast(text, "STORE_TYPED", result, out);
        drupe_text_printf(text, "#define STORE(x) STORE_TYPED(((TR)(x)))\n");
    }
    drupe_text_printf(text, "#define LOWEST %s\n#define HIGHEST %s\n", compute->lowest, compute->highest);
    drupe_text_printf(text, "#if HAS_FP64\n#define TW %s\n#else\n#define TW TC\n#endif\n",
                      key->compute == DRUPE_FLOAT32 ? "double" : compute->cl);
    append_arithmetic(text, key, compute);
}

/* What map.cl asks for beside the types. */
static void define_map(drupe_text *text, const kernel_parts *key, const op_row *row)
{
    const int kind = drupe_dtype_row((drupe_dtype)key->compute)->kind;
    const bool strided = key->layout == LAYOUT_STRIDED;
    bool plain = drupe_dtype_row((drupe_dtype)key->out)->kind != KIND_COMPLEX;
    for (int i = 0; i < row->arity; i++)
        plain = plain && drupe_dtype_row((drupe_dtype)key->in[i])->kind != KIND_COMPLEX;
    static const char *const inputs[] = {"", "a", "a, b", "a, b, c"};
    drupe_text_printf(text, "#define ARITY %d\n#define OP(%s) (%s)\n", row->arity, inputs[row->arity],
                      row->expression[kind]);
    drupe_text_printf(text, "#define STRIDED %d\n#define CONSTANTS %d\n#define VECTOR %d\n", strided,
                      strided ? 0 : key->layout, !strided && row->vector && kind == KIND_FLOAT && plain);
    drupe_text_printf(text, "#define QUADS %d\n", plain);
    if (row->vector_limit) drupe_text_printf(text, "#define VECTOR_LIMIT %s\n", row->vector_limit);
}

/* What combines two elements, and what it starts from. */
static void define_combination(drupe_text *text, const op_row *row, int kind)
{
    drupe_text_printf(text, "#define OP(a, b) (%s)\n", row->expression[kind]);
    drupe_text_printf(text,
                      kind == KIND_COMPLEX ? "#define IDENTITY ((TC)(%s, 0))\n" : "#define IDENTITY %s\n",
                      row->identity);
}

static void define_reduction(drupe_text *text, const kernel_parts *key, const op_row *row, bool checked)
{
    define_combination(text, row, drupe_dtype_row((drupe_dtype)key->compute)->kind);
    drupe_text_printf(text, "#define COLUMN %d\n#define STRIDED %d\n", key->shape == SHAPE_COLUMN,
                      key->layout == LAYOUT_STRIDED);
    const dtype_row *in = drupe_dtype_row((drupe_dtype)key->in[0]);
    const bool wide =
        !checked && key->layout != LAYOUT_STRIDED && in->kind != KIND_COMPLEX && key->in[0] != DRUPE_FLOAT16;
    drupe_text_printf(text, "#define WIDE %d\n", wide ? 16 / (int)in->size : 1);
}

/* Kernels for GPUs that are no operation's. */
static const struct {
    const char *name;
    const char *const *lines;
} others[] = {
    [SHAPE_ARG] = {"arg", source_arg_gpu_cl},          [SHAPE_INDEX] = {"index", source_index_gpu_cl},
    [SHAPE_MASK] = {"mask", source_mask_gpu_cl},       [SHAPE_SCAN] = {"scan", source_scan_gpu_cl},
    [SHAPE_SEARCH] = {"search", source_search_gpu_cl}, [SHAPE_SORT] = {"sort", source_sort_gpu_cl},
    [SHAPE_UNIQUE] = {"unique", source_unique_gpu_cl}, [SHAPE_RANDOM] = {"random", source_random_gpu_cl},
    [SHAPE_PRODUCT] = {"matmul", source_matmul_gpu_cl}};

/* Keys by which a type is sorted: 0 unsigned, 1 with a sign, 2 floats, 3 pairs of floats. */
static void define_key(drupe_text *text, const dtype_row *row)
{
    const int kind = row->kind == KIND_COMPLEX ? 3 : row->kind == KIND_FLOAT ? 2 : row->kind == KIND_INT;
    const int size = (int)(kind == 3 ? row->size / 2 : row->size);
    drupe_text_printf(text, "#define KEY_KIND %d\n#define KEY_BITS %d\n#define KEY_BYTES %d\n", kind,
                      8 * size, size == 8 ? 8 : 4);
}

/* A tile: as deep as keeps two of them below 19 KiB of local memory, two of which a group of 256 loads.
 * Vectors of 16 bytes are what local memory is fastest with. */
static void define_product(drupe_text *text, const kernel_parts *key, size_t side)
{
    const dtype_row *row = drupe_dtype_row((drupe_dtype)key->compute);
    const int each = key->op & ~PRODUCT_FAR, size = (int)row->size, vector = size < 16 ? 16 / size : 1;
    const int run = row->kind == KIND_COMPLEX ? 1 : vector < each ? vector : each;
    const int deep = each == 8 ? (size < 8 ? 16 : 8) : (size < 16 ? 64 : 32) / (each ? each : 1);
    drupe_text_printf(text, "#define MULTIPLY(r, x, y) %s\n", drupe_multiply_text(row->kind));
    drupe_text_printf(text, "#define SIDE %zu\n#define EACH %d\n#define DEEP %d\n#define RUN %d\n", side,
                      each, deep, run);
    drupe_text_printf(text, run > 1 ? "#define LINE %s%d\n" : "#define LINE %s\n", row->cl, run);
    drupe_text_printf(text, "#define OFFSET %s\n", key->op & PRODUCT_FAR ? "i64" : "i32");
}

static void render_other(drupe_text *text, const drupe_target *target, const kernel_parts *key)
{
    append_lines(text, source_params_gpu_h);
    drupe_text_printf(text, "#define VARIANT %d\n", key->op);
    if (key->shape == SHAPE_SCAN) {
        const int op = key->op & SCAN_PRODUCT ? DRUPE_OP_PROD : DRUPE_OP_SUM;
        define_combination(text, drupe_op_row(op), drupe_dtype_row((drupe_dtype)key->compute)->kind);
        drupe_text_printf(text, "#define SUMS %d\n#define COLUMN %d\n", (key->op & SCAN_SUMS) != 0,
                          (key->op & SCAN_COLUMN) != 0);
    }
    if (key->shape == SHAPE_SORT) define_key(text, drupe_dtype_row((drupe_dtype)key->in[0]));
    if (key->shape == SHAPE_PRODUCT) define_product(text, key, drupe_product_side(target));
    if (key->shape == SHAPE_RANDOM)
        drupe_text_printf(text, "#define WORD_BYTES %d\n", (int)drupe_dtype_size((drupe_dtype)key->out));
    append_lines(text, others[key->shape].lines);
}

drupe_status drupe_render_program(const drupe_target *target, const kernel_recipe *recipe, drupe_text *text)
{
    kernel_parts parts, *const key = &parts;
    drupe_recipe_read(recipe, key);
    const int kind = drupe_dtype_row((drupe_dtype)key->compute)->kind;
    char name[64];
    drupe_render_name(target, recipe, name, sizeof(name));
    drupe_text_printf(text,
                      "#define FORM_GPU %d\n#define HAS_FP64 %d\n#define DRUPE_CHECKED %d\n#define NAME %s\n",
                      target->gpu_form, target->fp64, target->checked, name);
    const size_t side = drupe_product_side(target),
                 group = key->shape == SHAPE_PRODUCT ? side * side : target->group;
    if (target->gpu_form) drupe_text_printf(text, "#define GROUP %zu\n", group);
    append_lines(text, source_params_h);
    append_lines(text, source_dialect_h);
    define_types(text, key);
    if (key->shape >= SHAPE_ARG) {
        render_other(text, target, key);
        return drupe_text_check(text);
    }
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
    default:
        define_reduction(text, key, drupe_op_row(key->op), target->checked);
        append_lines(text, target->gpu_form ? source_reduce_gpu_cl : source_reduce_cl);
    }
    return drupe_text_check(text);
}

void drupe_render_name(const drupe_target *target, const kernel_recipe *recipe, char *name, size_t size)
{
    kernel_parts parts, *const key = &parts;
    if (recipe->bytes[0] == SHAPE_FUSED) {
        snprintf(name, size, "fused");
        return;
    }
    drupe_recipe_read(recipe, key);
    const char *suffix = drupe_dtype_row((drupe_dtype)key->compute)->suffix;
    const op_row *row = drupe_op_row(key->op);
    if (key->shape >= SHAPE_ARG) {
        snprintf(name, size, "%s%d_%s", others[key->shape].name, key->op, suffix);
        return;
    }
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
