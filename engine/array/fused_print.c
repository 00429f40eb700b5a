/* Texts of fused kernels.
 *
 * First the words of the language, then each operation as a function in the type that it is computed in, with
 * the expressions of the one-operation kernels, then `element`, which takes the operands' elements and
 * constants through all steps, and the kernel, which goes through the index space. What is written names no
 * language: fused.cl and dialect.h say what the words are in OpenCL C, and others could say it for another.
 */
#include "array/fused_room.h"
#include <stdio.h>
#include <string.h>

typedef struct printer {
    drupe_text *text;
    const drupe_target *target;
    const drupe_fused *f;
    fused_form form;
    const char *index; /* the type of numbers of elements */
} printer;

static const dtype_row *type_of(int dtype)
{
    return drupe_dtype_row((drupe_dtype)dtype);
}

static int number_of(const dtype_row *row)
{
    return (int)(row - drupe_dtype_row((drupe_dtype)0));
}

static const dtype_row *stored_type(const printer *p, int operand)
{
    return type_of(p->f->operands[operand].dtype);
}

static const char *memory_word(const dtype_row *stored)
{
    return stored->size == 2 && stored->kind == KIND_FLOAT ? "HALF" : "PLAIN";
}

/* --- Operations as functions ---------------------------------------------------------------------------- */

static const char *expression_of(const drupe_fused_step *step)
{
    return drupe_op_row(step->op)->expression[type_of(step->compute)->kind];
}

/* Helpers are reached as T(name). */
static bool needs_helpers(const printer *p, int compute)
{
    for (int i = 0; i < p->f->nsteps; i++)
        if ((compute < 0 || p->f->steps[i].compute == compute) &&
            strstr(expression_of(&p->f->steps[i]), "T("))
            return true;
    return false;
}

static void print_helpers(const printer *p, const dtype_row *row)
{
    static const char *const unsigned_types[] = {[1] = "uchar", [2] = "ushort", [4] = "uint", [8] = "ulong"};
    const char *own = unsigned_types[row->size < 8 ? row->size : 8];
    const char *wrap = row->size < 4 ? "uint" : own;
    switch (row->kind) {
    case KIND_INT:
        drupe_text_printf(p->text, "NUMERIC_QUOTIENT(TS, TC, TC)\nNUMERIC_INT(TS, TC, %s, %s)\n", own, wrap);
        break;
    case KIND_UINT:
        drupe_text_printf(p->text, "NUMERIC_QUOTIENT(TS, TC, TC)\nNUMERIC_UINT(TS, TC, %s)\n", wrap);
        break;
    case KIND_FLOAT: drupe_text_printf(p->text, "NUMERIC_FLOAT(TS, TC)\n"); break;
    case KIND_COMPLEX: drupe_render_lines(p->text, TEXT_COMPLEX); break;
    default: break;
    }
}

static void print_function(const printer *p, const drupe_fused_step *step)
{
    const op_row *row = drupe_op_row(step->op);
    const dtype_row *compute = type_of(step->compute), *result = drupe_render_result(row, compute);
    drupe_text_printf(p->text, "#define TR %s\nINLINED TR %s_%s(", result->cl, row->name, compute->suffix);
    for (int k = 0; k < row->arity; k++)
        drupe_text_printf(p->text, "%s%s %c", k ? ", " : "",
                          type_of(drupe_op_input(row, (drupe_dtype)step->compute, (size_t)k))->cl, 'a' + k);
    drupe_text_printf(p->text,
                      result->kind == KIND_BOOL      ? ")\n{\nreturn (TR)((%s) != 0);\n}\n#undef TR\n"
                      : result->kind == KIND_COMPLEX ? ")\n{\nreturn %s;\n}\n#undef TR\n"
                                                     : ")\n{\nreturn (TR)(%s);\n}\n#undef TR\n",
                      expression_of(step));
}

static bool is_first(const drupe_fused *f, int i)
{
    for (int k = 0; k < i; k++)
        if (f->steps[k].op == f->steps[i].op && f->steps[k].compute == f->steps[i].compute) return false;
    return true;
}

static void print_functions(const printer *p)
{
    const drupe_fused *f = p->f;
    for (int compute = 0; compute < DRUPE_DTYPE_COUNT; compute++) {
        const dtype_row *row = type_of(compute);
        bool begun = false;
        for (int i = 0; i < f->nsteps; i++) {
            if (f->steps[i].compute != compute || !is_first(f, i)) continue;
            if (!begun) {
                drupe_text_printf(p->text, "#define TC %s\n#define TS _%s\n#define TREAL %s\n", row->cl,
                                  row->suffix, type_of(row->real)->cl);
                if (needs_helpers(p, compute)) print_helpers(p, row);
            }
            begun = true;
            print_function(p, &f->steps[i]);
        }
        if (begun) drupe_text_printf(p->text, "#undef TC\n#undef TS\n#undef TREAL\n");
    }
}

/* --- Casts ---------------------------------------------------------------------------------------------- */

/* Whether a value needs more than to be taken as another type: loaded bools are any bytes. */
static bool needs_cast(const dtype_row *from, const dtype_row *to, bool loaded)
{
    if (from == to) return loaded && to->kind == KIND_BOOL;
    return type_of(from->compute) != type_of(to->compute) || to->kind == KIND_BOOL;
}

/* The type of what a step takes; NULL of a constant, which is of the type that is wanted. */
static const dtype_row *source_type(const printer *p, drupe_fused_ref ref)
{
    if (ref.source == FUSED_CONSTANT) return NULL;
    return ref.source == FUSED_STEP ? type_of(p->f->steps[ref.index].dtype) : stored_type(p, ref.index);
}

static const dtype_row *input_type(const drupe_fused_step *step, int k)
{
    return type_of(drupe_op_input(drupe_op_row(step->op), (drupe_dtype)step->compute, (size_t)k));
}

static void print_cast(const printer *p, const dtype_row *from, const dtype_row *to, bool *known)
{
    char name[32];
    bool *own = &known[number_of(from) * DRUPE_DTYPE_COUNT + number_of(to)];
    if (*own) return;
    *own = true;
    snprintf(name, sizeof(name), "cast_%s_%s", from->suffix, to->suffix);
    drupe_render_cast(p->text, name, from, to);
}

static void print_casts(const printer *p)
{
    bool known[DRUPE_DTYPE_COUNT * DRUPE_DTYPE_COUNT] = {false};
    for (int i = 0; i < p->f->nsteps; i++) {
        const drupe_fused_step *step = &p->f->steps[i];
        const op_row *row = drupe_op_row(step->op);
        const dtype_row *result = drupe_render_result(row, type_of(step->compute));
        for (int k = 0; k < row->arity; k++) {
            const dtype_row *from = source_type(p, step->in[k]), *to = input_type(step, k);
            if (from && needs_cast(from, to, step->in[k].source == FUSED_OPERAND))
                print_cast(p, from, to, known);
        }
        if (needs_cast(result, type_of(step->dtype), false))
            print_cast(p, result, type_of(step->dtype), known);
    }
}

/* --- One element ---------------------------------------------------------------------------------------- */

static void print_ref(const printer *p, const drupe_fused_step *step, int k)
{
    static const char names[] = {[FUSED_OPERAND] = 'x', [FUSED_CONSTANT] = 'c', [FUSED_STEP] = 'v'};
    const drupe_fused_ref ref = step->in[k];
    const dtype_row *from = source_type(p, ref), *to = input_type(step, k);
    if (k) drupe_text_printf(p->text, ", ");
    if (from && needs_cast(from, to, ref.source == FUSED_OPERAND))
        drupe_text_printf(p->text, "cast_%s_%s(%c%d)", from->suffix, to->suffix, names[ref.source],
                          ref.index);
    else
        drupe_text_printf(p->text, "%c%d", names[ref.source], ref.index);
}

/* r is the result of the operation, v the value of the step. */
static void print_step(const printer *p, int i)
{
    const drupe_fused_step *step = &p->f->steps[i];
    const op_row *row = drupe_op_row(step->op);
    const dtype_row *compute = type_of(step->compute), *own = type_of(step->dtype);
    const dtype_row *result = drupe_render_result(row, compute);
    const char *type = drupe_render_value(own);
    drupe_text_printf(p->text, "const %s r%d = %s_%s(", result->cl, i, row->name, compute->suffix);
    for (int k = 0; k < row->arity; k++) print_ref(p, step, k);
    drupe_text_printf(p->text, ");\nconst %s v%d = %s", type, i,
                      own->size == 2 && own->kind == KIND_FLOAT ? "HALVED" : "");
    if (needs_cast(result, own, false))
        drupe_text_printf(p->text, "(cast_%s_%s(r%d));\n", result->suffix, own->suffix, i);
    else
        drupe_text_printf(p->text, "(r%d);\n", i);
    if (step->store >= 0) drupe_text_printf(p->text, "*y%d = v%d;\n", step->store, i);
}

/* A list with an entry for each operand and constant, and ", " between them. `words`: of an input, an output,
 * and a constant; each takes the number. */
static void print_parameters(const printer *p)
{
    const char *between = "";
    for (int k = 0; k < p->f->noperands; k++) {
        const bool output = p->f->operands[k].output;
        drupe_text_printf(p->text, "%s%s%s %s%d", between, output ? "" : "const ",
                          drupe_render_value(stored_type(p, k)), output ? "*y" : "x", k);
        between = ", ";
    }
    for (int k = 0; k < p->f->nconstants; k++)
        drupe_text_printf(p->text, "%sconst %s c%d", between, type_of(p->f->constants[k].dtype)->cl, k);
}

static void print_element(const printer *p)
{
    drupe_text_printf(p->text, "INLINED void element(");
    print_parameters(p);
    drupe_text_printf(p->text, ")\n{\n");
    for (int i = 0; i < p->f->nsteps; i++) print_step(p, i);
    drupe_text_printf(p->text, "}\n");
}

/* --- The index space ------------------------------------------------------------------------------------ */

/* Must be as fused_launch.c fills it. */
static void print_struct(const printer *p)
{
    const drupe_fused *f = p->f;
    drupe_text_printf(p->text, "typedef struct {\ni64 n, rows, each;\n");
    if (f->nconstants) drupe_text_printf(p->text, "u64 constants[%d];\n", 2 * f->nconstants);
    if (f->ndim)
        drupe_text_printf(p->text, "%s shape[%d], strides[%d][%d];\n", p->index, f->ndim, f->noperands,
                          f->ndim);
    drupe_text_printf(p->text, "} fused_params;\n");
}

/* The call for what x0, y1 ... are; with `lane` for element k of them. */
static void print_call(const printer *p, bool lanes)
{
    const char *between = "";
    drupe_text_printf(p->text, "element(");
    for (int k = 0; k < p->f->noperands; k++) {
        const bool output = p->f->operands[k].output;
        const bool lane = lanes && (output || p->form.along[k] != FUSED_BROADCAST);
        drupe_text_printf(p->text, "%s%s%d%s", between, output ? "&y" : "x", k, lane ? "[k]" : "");
        between = ", ";
    }
    for (int k = 0; k < p->f->nconstants; k++) drupe_text_printf(p->text, "%sc%d", between, k);
    drupe_text_printf(p->text, ");\n");
}

/* Where an operand's element j of a row is; rows have their offsets o0, o1 ... */
static void place_of(const printer *p, int k, const char *j, char place[64])
{
    if (p->f->ndim == 0)
        snprintf(place, 64, "%s", j);
    else if (p->form.along[k] == FUSED_NEIGHBOURS)
        snprintf(place, 64, "o%d + %s", k, j);
    else if (p->form.along[k] == FUSED_BROADCAST)
        snprintf(place, 64, "o%d", k);
    else
        snprintf(place, 64, "o%d + %s * s%d", k, j, k);
}

/* Load what lies ahead of a row's loop: what is the same all along it. */
static void print_row_loads(const printer *p)
{
    for (int k = 0; k < p->f->noperands; k++) {
        const dtype_row *row = stored_type(p, k);
        if (p->f->operands[k].output || p->form.along[k] != FUSED_BROADCAST) continue;
        drupe_text_printf(p->text, "const %s x%d = READ_%s(p%d, o%d);\n", drupe_render_value(row), k,
                          memory_word(row), k, k);
    }
}

/* Element j alone. */
static void print_single(const printer *p, const char *j)
{
    char place[64];
    for (int k = 0; k < p->f->noperands; k++) {
        const dtype_row *row = stored_type(p, k);
        const bool output = p->f->operands[k].output;
        if (!output && p->form.along[k] == FUSED_BROADCAST) continue;
        place_of(p, k, j, place);
        if (output)
            drupe_text_printf(p->text, "%s y%d;\n", drupe_render_value(row), k);
        else
            drupe_text_printf(p->text, "const %s x%d = READ_%s(p%d, %s);\n", drupe_render_value(row), k,
                              memory_word(row), k, place);
    }
    print_call(p, false);
    for (int k = 0; k < p->f->noperands; k++) {
        if (!p->f->operands[k].output) continue;
        place_of(p, k, j, place);
        drupe_text_printf(p->text, "WRITE_%s(p%d, %s, y%d);\n", memory_word(stored_type(p, k)), k, place, k);
    }
}

static void print_pack_move(const printer *p, int k, const char *word, const char *j)
{
    const dtype_row *row = stored_type(p, k), *real = type_of(row->real);
    const bool pair = row->kind == KIND_COMPLEX, output = p->f->operands[k].output;
    char place[64];
    place_of(p, k, j, place);
    drupe_text_printf(p->text, "%s_%s(%d, %s, %c%d, (GLOBAL %s%s *)p%d, %s(%s))\n", word, memory_word(row),
                      p->form.width * (pair ? 2 : 1), pair ? real->cl : drupe_render_value(row),
                      output ? 'y' : 'x', k, output ? "" : "const ", pair ? real->cl : row->cl, k,
                      pair ? "2 * " : "", place);
}

/* The same element by element, each `step` behind the one before. */
static void print_spread_move(const printer *p, int k, const char *j)
{
    const bool output = p->f->operands[k].output;
    char place[64], at[32];
    snprintf(at, sizeof(at), "(%s + k * step)", j);
    place_of(p, k, at, place);
    drupe_text_printf(p->text, "UNROLL\nfor (int k = 0; k < %d; k++) ", p->form.lanes);
    if (output)
        drupe_text_printf(p->text, "{ WRITE_%s(p%d, %s, y%d[k]); }\n", memory_word(stored_type(p, k)), k,
                          place, k);
    else
        drupe_text_printf(p->text, "x%d[k] = READ_%s(p%d, %s);\n", k, memory_word(stored_type(p, k)), k,
                          place);
}

static void print_move(const printer *p, int k, const char *j)
{
    if (p->form.width > 1)
        print_pack_move(p, k, p->f->operands[k].output ? "GIVE" : "TAKE", j);
    else
        print_spread_move(p, k, j);
}

/* As many elements as there are lanes, from j on. All are loaded before one is stored, to have the loads
 * under way together; what an output shares with an input is the same elements. */
static void print_pack(const printer *p, const char *j)
{
    for (int k = 0; k < p->f->noperands; k++) {
        const bool output = p->f->operands[k].output;
        if (!output && p->form.along[k] == FUSED_BROADCAST) continue;
        drupe_text_printf(p->text, "%s %c%d[%d];\n", drupe_render_value(stored_type(p, k)),
                          output ? 'y' : 'x', k, p->form.lanes);
        if (!output) print_move(p, k, j);
    }
    drupe_text_printf(p->text, "UNROLL\nfor (int k = 0; k < %d; k++) ", p->form.lanes);
    print_call(p, true);
    for (int k = 0; k < p->f->noperands; k++)
        if (p->f->operands[k].output) print_move(p, k, j);
}

/* The offsets of the row that `rest` is the number of. */
static void print_row(const printer *p)
{
    const drupe_fused *f = p->f;
    for (int k = 0; k < f->noperands; k++) drupe_text_printf(p->text, "%s o%d = 0;\n", p->index, k);
    for (int d = f->ndim - 2; d >= 0; d--) {
        drupe_text_printf(p->text, "{\n");
        if (d > 0)
            drupe_text_printf(
                p->text,
                "const %s next = rest / p.shape[%d], at = rest - next * p.shape[%d];\nrest = next;\n",
                p->index, d, d);
        for (int k = 0; k < f->noperands; k++)
            drupe_text_printf(p->text, "o%d += %s * p.strides[%d][%d];\n", k, d > 0 ? "at" : "rest", k, d);
        drupe_text_printf(p->text, "}\n");
    }
    print_row_loads(p);
}

/* From element i on, as long as it is below `n`: packs, and what is left. */
static void print_line(const printer *p, const char *i, const char *n)
{
    const int lanes = p->form.lanes, width = p->form.width;
    if (width > 1)
        drupe_text_printf(p->text, "for (; %s + %d <= %s; %s += %d * step) {\n", i, width, n, i, width);
    else if (lanes > 1)
        drupe_text_printf(p->text, "for (; %s + %d * step < %s; %s += %d * step) {\n", i, lanes - 1, n, i,
                          lanes);
    if (lanes > 1) {
        print_pack(p, i);
        drupe_text_printf(p->text, "}\n");
    }
    if (width > 1) return;
    drupe_text_printf(p->text, "for (; %s < %s; %s += step) {\n", i, n, i);
    print_single(p, i);
    drupe_text_printf(p->text, "}\n");
}

static void print_flat(const printer *p)
{
    const char *index = p->index;
    const int width = p->form.width;
    if (!p->target->gpu_form) {
        drupe_text_printf(p->text, "SPAN(begin, end, p.n);\nfor (i64 i = begin; i < end; i++) {\n");
        print_single(p, "i");
        drupe_text_printf(p->text, "}\n");
        return;
    }
    drupe_text_printf(p->text, "const %s n = p.n, step = ITEMS(0);\n%s i = %d * (%s)ITEM(0);\n", index, index,
                      width, index);
    print_line(p, "i", "n");
    if (width == 1) return;
    drupe_text_printf(p->text, "i = n / %d * %d + ITEM(0);\nif (i < n) {\n", width, width);
    print_single(p, "i");
    drupe_text_printf(p->text, "}\n");
}

static void print_inner_strides(const printer *p)
{
    for (int k = 0; k < p->f->noperands; k++)
        if (p->form.along[k] == FUSED_STRIDED)
            drupe_text_printf(p->text, "const %s s%d = p.strides[%d][%d];\n", p->index, k, k, p->f->ndim - 1);
}

/* Rows are the second dimension of work-items, so that no element has a division of its own. Those of one
 * group lie together: what they share of an operand is in its cache. */
static void print_rows(const printer *p)
{
    const char *index = p->index;
    print_inner_strides(p);
    drupe_text_printf(
        p->text,
        "const %s length = p.shape[%d], rows = p.rows, step = ITEMS(0), below = PLACES(1);\n"
        "%s row = TEAM(1) * below * p.each + PLACE(1);\n"
        "for (int each = p.each; each > 0 && row < rows; each--, row += below) {\n%s rest = row;\n",
        index, p->f->ndim - 1, index, index);
    print_row(p);
    drupe_text_printf(p->text, "%s j = %d * (%s)ITEM(0);\n", index, p->form.width, index);
    print_line(p, "j", "length");
    drupe_text_printf(p->text, "}\n");
}

/* Each work-item has a part of the rows laid end to end. */
static void print_spans(const printer *p)
{
    const char *index = p->index;
    print_inner_strides(p);
    drupe_text_printf(p->text,
                      "SPAN(begin, end, p.n);\nconst i64 length = p.shape[%d];\nwhile (begin < end) {\n"
                      "%s rest = begin / length;\n"
                      "const %s first = begin %% length, last = min(length, first + end - begin);\n",
                      p->f->ndim - 1, index, index);
    print_row(p);
    drupe_text_printf(p->text, "for (%s j = first; j < last; j++) {\n", index);
    print_single(p, "j");
    drupe_text_printf(p->text, "}\nbegin += last - first;\n}\n");
}

static void print_kernel(const printer *p, const char *name)
{
    const drupe_fused *f = p->f;
    drupe_text_printf(p->text, "%s %s(", p->target->gpu_form && f->ndim ? "KERNEL_OF_ROWS" : "KERNEL", name);
    for (int k = 0; k < f->noperands; k++)
        drupe_text_printf(p->text, "GLOBAL %s%s *p%d, ", f->operands[k].output ? "" : "const ",
                          stored_type(p, k)->cl, k);
    drupe_text_printf(p->text, "const fused_params p)\n{\n");
    for (int k = 0; k < f->nconstants; k++) {
        const dtype_row *row = type_of(f->constants[k].dtype);
        const bool pair = row->kind == KIND_COMPLEX;
        drupe_text_printf(p->text, "const %s c%d = %s(%s, p.constants + %d);\n", row->cl, k,
                          pair ? "CONSTANT_PAIR" : "CONSTANT", type_of(row->real)->cl, 2 * k);
    }
    if (f->ndim == 0)
        print_flat(p);
    else if (p->target->gpu_form)
        print_rows(p);
    else
        print_spans(p);
    drupe_text_printf(p->text, "}\n");
}

drupe_status drupe_fused_print(const drupe_target *target, const drupe_fused *f, drupe_text *text)
{
    printer printing = {.text = text, .target = target, .f = f}, *const p = &printing;
    fused_recipe recipe;
    char name[FUSED_NAME_SIZE];
    bool halves = false;
    drupe_fused_form(target, f, &p->form);
    drupe_fused_recipe(f, &p->form, &recipe);
    drupe_fused_name(&recipe, name);
    p->index = p->form.wide ? "i64" : "i32";
    drupe_text_printf(
        text,
        "#define FORM_GPU %d\n#define HAS_FP64 %d\n#define DRUPE_CHECKED 0\n#define KIND_INT 0\n"
        "#define KIND_UINT 0\n#define KIND_FLOAT 0\n",
        target->gpu_form, target->fp64);
    if (target->gpu_form) drupe_text_printf(text, "#define GROUP %zu\n", target->group);
    drupe_render_lines(text, TEXT_DIALECT);
    drupe_render_lines(text, TEXT_FUSED);
    if (needs_helpers(p, -1)) drupe_render_lines(text, TEXT_NUMERIC);
    for (int i = 0; i < f->nsteps; i++) halves = halves || f->steps[i].op == OP_NEXTAFTER_HALF;
    if (halves) drupe_render_lines(text, TEXT_HALF);
    print_functions(p);
    print_casts(p);
    print_element(p);
    print_struct(p);
    print_kernel(p, name);
    return drupe_text_check(text);
}
