/* Reductions.
 *
 * Reduced and kept axes are merged apart. One merged reduced axis is one launch, or two where the outputs
 * are too few to occupy the device: then the extent is split, and the partial results are reduced in turn.
 * Several merged reduced axes are reduced one after the other, the one with the nearest neighbours first,
 * which reads everything once and leaves little for the others. */
#include "array/node.h"
#include <string.h>

/* Elements per work-item or split, below which another one does not pay. */
#define GRAIN_CPU     16384
#define GRAIN_GPU     4096
#define GRAIN_COLUMN  32
#define GRAIN_MEMBER  16
#define BRIEF_ITEMS   131072 /* elements that the host's own kernels reduce while a worker would wake up */
#define SHORT_ROW     16     /* rows shorter than this are better run through column-wise */
#define COLUMN_BLOCK  256    /* outputs that a CPU's work-item runs through at once, roughly */
#define HOST_COLUMNS  4096   /* the host's own kernels: whole rows, which lie one after the other in memory */
#define COLUMN_NARROW 8
#define JOINED_ROW    256 /* elements of a row that is reduced by the kernel that computes it */
#define COMBINE_ROWS  64  /* partial results of a GPU's column that a group is worth */

typedef struct reduction {
    drupe_target *target;
    int op;
    drupe_dtype compute;
} reduction;

/* --- Axes ----------------------------------------------------------------------------------------------- */

typedef struct split_axes {
    drupe_layout kept, reduced;
    uint32_t nearest; /* the original axes that make up the reduced layout's last one */
    ptrdiff_t offset; /* elements: where the reduced axes begin once they run forwards */
} split_axes;

static ptrdiff_t magnitude(ptrdiff_t stride)
{
    return stride < 0 ? -stride : stride;
}

static void add_axis(drupe_layout *l, size_t length, ptrdiff_t stride)
{
    l->noperands = 1;
    l->shape[l->ndim] = length;
    l->strides[0][l->ndim++] = stride;
}

/* Merge like drupe_layout_simplify(), and find which original axes end up in the last one. The order of the
 * reduced elements does not matter, so they may run forwards and by stride. */
static void simplify_reduced(const drupe_array *in, uint32_t axes, split_axes *s)
{
    drupe_layout *r = &s->reduced;
    for (int d = 0; d < in->ndim; d++)
        if (axes >> d & 1 && in->shape[d] != 1) add_axis(r, in->shape[d], in->strides[d]);
    drupe_layout_simplify(r);
    s->offset = r->offsets[0];
    s->nearest = 0;
    if (r->ndim == 0) return;
    const ptrdiff_t low = r->strides[0][r->ndim - 1],
                    high = r->ndim > 1 ? r->strides[0][r->ndim - 2] : PTRDIFF_MAX;
    for (int d = 0; d < in->ndim; d++) {
        const ptrdiff_t stride = magnitude(in->strides[d]);
        if (axes >> d & 1 && in->shape[d] != 1 && stride >= low && stride < high) s->nearest |= 1u << d;
    }
}

static void split(const drupe_array *in, uint32_t axes, split_axes *s)
{
    memset(s, 0, sizeof(*s));
    for (int d = 0; d < in->ndim; d++)
        if (!(axes >> d & 1) && in->shape[d] != 1) add_axis(&s->kept, in->shape[d], in->strides[d]);
    drupe_layout_merge(&s->kept);
    simplify_reduced(in, axes, s);
}

/* --- One merged axis ------------------------------------------------------------------------------------ */

typedef struct reduce_step {
    int shape; /* SHAPE_ROW or SHAPE_COLUMN */
    drupe_reduce_params p;
} reduce_step;

static void choose_shape(const split_axes *s, reduce_step *step)
{
    drupe_reduce_params *p = &step->p;
    const int last = s->kept.ndim - 1;
    const size_t inner = last >= 0 ? s->kept.shape[last] : 1;
    const ptrdiff_t near = last >= 0 ? magnitude(s->kept.strides[0][last]) : PTRDIFF_MAX;
    const bool columns_near = near < magnitude((ptrdiff_t)p->stride) && inner >= COLUMN_NARROW;
    const bool rows_short = p->extent < SHORT_ROW && inner >= COLUMN_BLOCK;
    step->shape = p->extent > 1 && (columns_near || rows_short) ? SHAPE_COLUMN : SHAPE_ROW;
}

/* Whether it is over in a moment: then one work-item does it, which may run on the submitting thread. */
static bool is_brief(const drupe_target *t, const reduce_step *step)
{
    const drupe_reduce_params *p = &step->p;
    const drupe_i64 near = step->shape == SHAPE_COLUMN ? p->strides[p->ndim - 1] : p->stride;
    return t->builtin && near == 1 && p->extent >= 64 && p->outputs * p->extent <= BRIEF_ITEMS;
}

static drupe_i64 splits_of(const reduce_step *step, drupe_i64 tasks, drupe_i64 wanted, drupe_i64 grain)
{
    if (tasks >= wanted || step->p.extent < 2 * grain) return 1;
    const drupe_i64 most = step->p.extent / grain, splits = (wanted + tasks - 1) / tasks;
    return splits < most ? splits : most;
}

/* On a GPU: as many groups as it can hold twice, so that none of its units is left without work early, and
 * for rows as few work-items to each as leaves them GRAIN_MEMBER elements. */
static void choose_gpu(const drupe_target *t, reduce_step *step)
{
    drupe_reduce_params *p = &step->p;
    const drupe_i64 groups = (drupe_i64)t->units * 16;
    p->team = 1;
    if (step->shape == SHAPE_COLUMN) {
        p->splits = splits_of(step, p->outputs, groups * (drupe_i64)t->group, GRAIN_COLUMN);
        return;
    }
    p->splits = splits_of(step, p->outputs, groups, GRAIN_GPU);
    const drupe_i64 each = p->extent / p->splits;
    while (p->team < (drupe_i32)t->group && p->team * GRAIN_MEMBER < each) p->team *= 2;
    /* Few short rows: more work-items hide more of the memory's latency. */
    while (p->team < (drupe_i32)t->group && p->team < each && p->outputs * p->splits * p->team < groups * 64)
        p->team *= 2;
}

/* How often to split the extent so that every compute unit has work. */
static void choose_splits(const drupe_target *t, reduce_step *step)
{
    drupe_reduce_params *p = &step->p;
    const drupe_i64 wanted = (drupe_i64)t->units * (t->builtin ? 4 : 2);
    if (t->gpu_form) {
        choose_gpu(t, step);
    } else if (is_brief(t, step)) {
        p->splits = 1;
    } else if (step->shape == SHAPE_COLUMN) {
        const drupe_i64 inner = p->shape[p->ndim - 1] > 0 ? p->shape[p->ndim - 1] : 1;
        const drupe_i64 most = t->builtin ? HOST_COLUMNS : COLUMN_BLOCK, block = inner < most ? inner : most;
        p->splits =
            splits_of(step, p->outputs / inner * ((inner + block - 1) / block), wanted, GRAIN_CPU / block);
    } else {
        p->splits = splits_of(step, p->outputs, wanted, GRAIN_CPU);
    }
}

/* What a step reads and writes: the place of its elements in memory, for checked mode, and where it begins.
 */
typedef struct step_end {
    drupe_access access;
    void *pointer;
    drupe_memory *memory; /* borrowed */
    drupe_dtype dtype;
    bool covers; /* it is all of that memory */
} step_end;

static step_end end_of(const reduction *r, const drupe_array *array, bool writes, ptrdiff_t offset)
{
    char *pointer = drupe_array_pointer(array);
    step_end end = {.pointer = pointer + offset * (ptrdiff_t)drupe_dtype_size(array->dtype),
                    .memory = array->memory,
                    .dtype = array->dtype,
                    .covers = drupe_array_covers(array)};
    if (r->target->checked) end.access = drupe_layout_access(array, writes);
    return end;
}

static void range_of(const drupe_target *t, const reduce_step *step, drupe_range *range)
{
    const size_t tasks = (size_t)(step->p.outputs * step->p.splits),
                 each = (size_t)(step->p.extent / step->p.splits + 1);
    if (t->gpu_form)
        drupe_target_range(t, tasks * (size_t)step->p.team, 1, range);
    else
        drupe_target_range(t, tasks * each, is_brief(t, step) ? 2 * BRIEF_ITEMS : GRAIN_CPU, range);
}

static drupe_status step_submit(const reduction *r, const reduce_step *step, drupe_queue *queue, step_end out,
                                step_end in)
{
    drupe_range range;
    drupe_reduce_params p = step->p;
    drupe_target *t = r->target;
    kernel_parts key = {
        step->shape, r->op, 0, (int32_t)r->compute, (int32_t)out.dtype, {(int32_t)in.dtype, -1, -1}};
    p.in_dtype = (drupe_i32)in.dtype;
    p.out_dtype = (drupe_i32)out.dtype;
    if (t->builtin)
        key.out = key.in[0] = -1;
    else if (step->shape == SHAPE_COLUMN || p.stride != 1)
        key.layout = LAYOUT_STRIDED;
    range_of(t, step, &range);
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof(void *), &out.pointer},
                              {DRUPE_ARG_POINTER, sizeof(void *), &in.pointer},
                              {DRUPE_ARG_VALUE, sizeof(p), &p}};
    const drupe_access accesses[] = {out.access, in.access};
    const size_t elements[] = {drupe_dtype_size(out.dtype), drupe_dtype_size(in.dtype)};
    struct drupe_memory *const memories[] = {out.memory, in.memory, NULL};
    const drupe_effects effects = {.reads = 2, .writes = 1, .replaces = out.covers};
    const drupe_submission s = {.queue = queue,
                                .ordered = true,
                                .accesses = accesses,
                                .naccesses = out.access.bytes ? 2 : 0,
                                .memories = memories,
                                .effects = &effects};
    kernel_recipe recipe;
    drupe_recipe_make(&key, &recipe);
    return drupe_target_submit(t, &recipe, &s, &range, args, 3, elements);
}

/* Reduce the partial results that a split step left: see drupe_reduce_params for their order. */
static drupe_status step_combine(const reduction *r, const reduce_step *first, const drupe_array *partial,
                                 const drupe_array *out)
{
    /* Many partial results of few outputs are too much for a work-item to each of these. */
    const bool rows = r->target->gpu_form && first->p.splits >= COMBINE_ROWS;
    reduce_step last = {.shape = rows ? SHAPE_ROW : first->shape};
    drupe_reduce_params *p = &last.p;
    p->outputs = first->p.outputs;
    p->extent = first->p.splits;
    p->splits = 1;
    p->ndim = 1;
    p->shape[0] = p->outputs;
    p->stride = first->shape == SHAPE_COLUMN ? p->outputs : 1;
    p->strides[0] = first->shape == SHAPE_COLUMN ? 1 : p->extent;
    p->team = 1;
    while (r->target->gpu_form && last.shape == SHAPE_ROW && p->team < (drupe_i32)r->target->group &&
           p->team < p->extent)
        p->team *= 2;
    return step_submit(r, &last, partial->queue, end_of(r, out, true, 0), end_of(r, partial, false, 0));
}

/* Whether the first elements tell the only result of any() or all(), which is there then. They are looked at
 * by the submitting thread itself where nothing is before them. */
static drupe_status look_first(const reduction *r, const reduce_step *step, const drupe_array *in,
                               const drupe_array *out, ptrdiff_t offset, bool *known)
{
    const int final = r->op == DRUPE_OP_ANY ? 1 : r->op == DRUPE_OP_ALL ? 0 : -1;
    reduce_step first = *step;
    *known = false;
    if (final < 0 || !r->target->builtin || r->target->checked || step->p.outputs != 1 || step->p.splits == 1)
        return DRUPE_OK;
    if (drupe_queue_pending(in->queue)) return DRUPE_OK;
    first.p.extent = GRAIN_CPU / 2;
    first.p.splits = 1;
    DRUPE_TRY(step_submit(r, &first, in->queue, end_of(r, out, true, 0), end_of(r, in, false, offset)));
    *known = !drupe_queue_pending(in->queue) && *(const uint8_t *)drupe_array_pointer(out) == final;
    return DRUPE_OK;
}

static void plan_step(const drupe_target *target, const split_axes *s, size_t outputs, reduce_step *step)
{
    *step = (reduce_step){0};
    drupe_reduce_params *p = &step->p;
    p->outputs = (drupe_i64)outputs;
    p->extent = s->reduced.ndim ? (drupe_i64)s->reduced.shape[0] : 1;
    p->stride = s->reduced.ndim ? s->reduced.strides[0][0] : 1;
    p->ndim = s->kept.ndim;
    for (int d = 0; d < s->kept.ndim; d++) {
        p->shape[d] = (drupe_i64)s->kept.shape[d];
        p->strides[d] = s->kept.strides[0][d];
    }
    choose_shape(s, step);
    choose_splits(target, step);
}

static drupe_status reduce_axis(const reduction *r, const split_axes *s, const drupe_array *in,
                                drupe_array *out)
{
    bool known;
    reduce_step step;
    plan_step(r->target, s, out->size, &step);
    const drupe_reduce_params *p = &step.p;
    const step_end from = end_of(r, in, false, s->offset);
    if (p->splits == 1) return step_submit(r, &step, in->queue, end_of(r, out, true, 0), from);
    DRUPE_TRY(look_first(r, &step, in, out, s->offset, &known));
    if (known) return DRUPE_OK;
    drupe_array partial = {0};
    const size_t count = (size_t)(p->outputs * p->splits);
    DRUPE_TRY(drupe_array_result(in->queue, DRUPE_MEM_DEVICE, r->compute, 1, &count, &partial));
    drupe_status status = step_submit(r, &step, in->queue, end_of(r, &partial, true, 0), from);
    if (status == DRUPE_OK) status = step_combine(r, &step, &partial, out);
    drupe_array_clear(&partial);
    return status;
}

/* --- Of expressions --------------------------------------------------------------------------------------
 */

typedef struct combination {
    const reduction *r;
    const reduce_step *first;
    const drupe_array *partial, *out;
} combination;

static drupe_status combine(const void *user)
{
    const combination *c = user;
    return step_combine(c->r, c->first, c->partial, c->out);
}

/* Whether the kernel "fused" has such rows or columns, and is quicker with them. Columns are neighbours, or
 * rows that are too short to be run through by themselves. Those pay only where they need not be stored as
 * well. */
static bool joins(const reduce_step *step, bool spent)
{
    const drupe_reduce_params *p = &step->p;
    if (step->shape == SHAPE_ROW) return p->stride == 1 && p->extent >= JOINED_ROW;
    const drupe_i64 near = p->strides[p->ndim - 1];
    return near == 1 || (spent && p->stride == 1 && near == p->extent && p->ndim == 1 && p->splits == 1 &&
                         p->extent < 128);
}

/* Have the kernel that computes a pending array reduce it at the same time. False: that cannot be, and `in`
 * is to be settled. */
static bool reduce_pending(const reduction *r, const drupe_array *in, uint32_t axes, bool spent,
                           const drupe_array *out, drupe_status *status)
{
    split_axes s;
    reduce_step step;
    drupe_array partial = {0};
    drupe_range range;
    bool done = false;
    *status = DRUPE_OK;
    if (!drupe_array_pending(in) || in->node->across || !in->size || !out->size ||
        !(r->target->builtin && !r->target->checked && !drupe_fuse_settings()->steps))
        return false;
    split(in, axes, &s);
    if (s.kept.ndim > DRUPE_KERNEL_DIMS || s.reduced.ndim != 1) return false;
    plan_step(r->target, &s, out->size, &step);
    const drupe_reduce_params *p = &step.p;
    if (!joins(&step, spent)) return false;
    const size_t count = (size_t)(p->outputs * p->splits);
    if (p->splits > 1)
        *status = drupe_array_result_known(in->queue, DRUPE_MEM_DEVICE, r->compute, 1, &count, &partial);
    if (*status != DRUPE_OK) return true;
    const drupe_array *to = p->splits > 1 ? &partial : out;
    drupe_fused_reduction joined = {
        .op = r->op, .column = step.shape == SHAPE_COLUMN, .compute = (drupe_i32)r->compute, .params = *p};
    joined.params.in_dtype = (drupe_i32)in->dtype;
    joined.params.out_dtype = (drupe_i32)to->dtype;
    range_of(r->target, &step, &range);
    const combination after = {r, &step, &partial, out};
    const pending_target target = {.node = in->node,
                                   .spent = spent,
                                   .array = to,
                                   .reduction = &joined,
                                   .range = &range,
                                   .then = p->splits > 1 ? combine : NULL,
                                   .user = &after,
                                   .done = &done};
    *status = drupe_pending_settle(in->queue, &target);
    drupe_array_clear(&partial);
    return done || *status != DRUPE_OK;
}

/* --- The whole ------------------------------------------------------------------------------------------ */

static void result_shape(const drupe_array *in, uint32_t axes, bool keepdims, int *ndim, size_t *shape)
{
    *ndim = 0;
    for (int d = 0; d < in->ndim; d++) {
        if (!(axes >> d & 1))
            shape[(*ndim)++] = in->shape[d];
        else if (keepdims)
            shape[(*ndim)++] = 1;
    }
}

/* The extreme of nothing is no value, though the kernels start from one. */
static drupe_status fill_identity(const reduction *r, const drupe_array *out)
{
    const char *identity = drupe_op_row(r->op)->identity;
    if (identity[0] != '0' && identity[0] != '1')
        return drupe_error_set(DRUPE_E_INVALID, "%s of no elements has no value",
                               drupe_op_name((drupe_op)r->op));
    drupe_scalar scalar = {.kind = DRUPE_SCALAR_KIND_INT, .i = identity[0] == '1'};
    return drupe_array_assign(out, &(drupe_operand){.scalar = scalar});
}

static drupe_status reduce_into(const reduction *r, const drupe_array *in, uint32_t axes, drupe_array *out)
{
    split_axes s;
    split(in, axes, &s);
    if (s.kept.ndim > DRUPE_KERNEL_DIMS) { /* side by side, kept axes alternate with reduced ones at most */
        drupe_array packed = {0};
        DRUPE_TRY(drupe_array_contiguous_as(in, in->dtype, &packed));
        const drupe_status status = reduce_into(r, &packed, axes, out);
        drupe_array_clear(&packed);
        return status;
    }
    if (s.reduced.ndim <= 1) return reduce_axis(r, &s, in, out);
    drupe_array partial = {0};
    int ndim;
    size_t shape[DRUPE_MAX_DIMS];
    result_shape(in, s.nearest, true, &ndim, shape);
    DRUPE_TRY(drupe_array_result(in->queue, DRUPE_MEM_DEVICE, r->compute, ndim, shape, &partial));
    drupe_status status = reduce_into(r, in, s.nearest, &partial);
    if (status == DRUPE_OK) status = reduce_into(r, &partial, axes, out);
    drupe_array_clear(&partial);
    return status;
}

/* Of equal elements one is enough for these operations, and along a broadcast axis all are equal: such a view
 * may be larger than anybody could wait for. */
static drupe_array without_repeats(drupe_op op, const drupe_array *in, uint32_t axes)
{
    drupe_array once = *in;
    const bool one_is_enough =
        op == DRUPE_OP_MAX || op == DRUPE_OP_MIN || op == DRUPE_OP_ANY || op == DRUPE_OP_ALL;
    for (int d = 0; one_is_enough && in->size && d < in->ndim; d++) {
        if (!(axes >> d & 1) || in->strides[d] != 0) continue;
        once.size /= in->shape[d];
        once.shape[d] = 1;
    }
    return once;
}

drupe_status drupe_array_reduce(drupe_op op, const drupe_array *in, uint32_t axes, bool keepdims,
                                drupe_dtype dtype, drupe_array *out)
{
    return drupe_array_reduce_over(op, in, axes, keepdims, dtype, false, out);
}

drupe_status drupe_array_reduce_over(drupe_op op, const drupe_array *in, uint32_t axes, bool keepdims,
                                     drupe_dtype dtype, bool spent, drupe_array *out)
{
    reduction r = {.op = (int)op};
    op_types types;
    int ndim;
    size_t shape[DRUPE_MAX_DIMS];
    if ((int)op < 0 || op >= DRUPE_OP_COUNT || drupe_op_kind_of(op) != DRUPE_OP_REDUCTION)
        return drupe_error_set(DRUPE_E_INVALID, "%s is no reduction", drupe_op_name(op));
    if ((uint64_t)axes >> in->ndim)
        return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "an array of %d dimensions has no such axis", in->ndim);
    DRUPE_TRY(drupe_target_get(in->queue, &r.target));
    DRUPE_TRY(drupe_op_types((int)op, &(drupe_operand){.array = in}, 1, r.target->fp64, &types));
    if (dtype != DRUPE_DTYPE_NONE && types.compute != DRUPE_BOOL) drupe_reduce_types((int)op, dtype, &types);
    r.compute = types.compute;
    if (dtype == DRUPE_DTYPE_NONE) dtype = types.result;
    if (!drupe_op_row((int)op)->expression[drupe_dtype_row(r.compute)->kind])
        return drupe_error_set(DRUPE_E_INVALID, "%s is not computed in %s", drupe_op_name(op),
                               drupe_dtype_name(r.compute));
    result_shape(in, axes, keepdims, &ndim, shape);
    DRUPE_TRY(drupe_array_result(in->queue, drupe_array_kind(in), dtype, ndim, shape, out));
    drupe_status status;
    if (reduce_pending(&r, in, axes, spent, out, &status)) {
        if (status != DRUPE_OK) drupe_array_clear(out);
        return status;
    }
    status = drupe_array_settle(in);
    if (status != DRUPE_OK) {
        drupe_array_clear(out);
        return status;
    }
    const drupe_array once = without_repeats(op, in, axes);
    if (out->size) status = in->size ? reduce_into(&r, &once, axes, out) : fill_identity(&r, out);
    if (status != DRUPE_OK) drupe_array_clear(out);
    return status;
}
