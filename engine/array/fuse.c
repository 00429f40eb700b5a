/* One kernel of some nodes: its description, its memory, its submission.
 *
 * On devices that run the precompiled loops, the kernel "fused" interprets the description. On others a
 * kernel is printed and built for it in the background; until that is there its steps are launched one by
 * one. */
#include "array/fused_room.h"
#include "array/node.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAIN_CPU 16384 /* elements for which starting another work-item pays */
/* What the steps of all elements may cost to be done while a worker would wake up, in light steps of 8 bytes.
 */
#define BRIEF_COST 160000.0
#define HEAVY      5.0 /* times a light step: a function, a division of integers */

typedef struct fusion {
    const pending_plan *plan;
    int from, to;                 /* nodes of the plan */
    const pending_target *target; /* NULL unless its node is among them */
    drupe_target *device;
    drupe_queue *queue;
    drupe_fused *fused;
    drupe_memory *memories[DRUPE_FUSED_OPERANDS]; /* by operand; borrowed from nodes */
    uint64_t replaces;                            /* by operand */
} fusion;

/* --- Operands ------------------------------------------------------------------------------------------- */

static drupe_fused_operand *add_operand(fusion *f, drupe_memory *memory, size_t offset, drupe_dtype dtype,
                                        const ptrdiff_t *strides, bool output)
{
    drupe_fused *fused = f->fused;
    const int ndim = f->plan->nodes[f->from]->ndim;
    f->memories[fused->noperands] = memory;
    drupe_fused_operand *operand = &fused->operands[fused->noperands++];
    operand->base = (char *)drupe_memory_pointer(memory) + offset * drupe_dtype_size(dtype);
    operand->dtype = (drupe_i32)dtype;
    operand->output = output;
    for (int d = 0; d < ndim; d++) operand->strides[d] = strides[d];
    return operand;
}

/* The operand that an input is, which may be there already. */
static int find_operand(const fusion *f, const drupe_memory *memory, const drupe_fused_operand *wanted)
{
    const size_t bytes = sizeof(drupe_i64) * (size_t)f->plan->nodes[f->from]->ndim;
    for (int k = 0; k < f->fused->noperands; k++) {
        const drupe_fused_operand *one = &f->fused->operands[k];
        if (f->memories[k] == memory && !one->output && one->base == wanted->base &&
            one->dtype == wanted->dtype && memcmp(one->strides, wanted->strides, bytes) == 0)
            return k;
    }
    return -1;
}

static drupe_fused_ref operand_ref(fusion *f, drupe_node *node, unsigned i)
{
    const node_input *in = &node->in[i];
    drupe_memory *memory = in->node ? in->node->memory : in->memory;
    (void)add_operand(f, memory, in->offset, in->dtype, node_strides(node, i), false);
    const int last = --f->fused->noperands;
    const int found = find_operand(f, memory, &f->fused->operands[last]);
    if (found < 0) f->fused->noperands++;
    return (drupe_fused_ref){FUSED_OPERAND, (uint8_t)(found < 0 ? last : found)};
}

/* --- Steps ---------------------------------------------------------------------------------------------- */

static drupe_fused_ref input_ref(fusion *f, drupe_node *node, unsigned i)
{
    const node_input *in = &node->in[i];
    if (in->node && in->node->kernel == node->kernel && in->node->state == NODE_SETTLING)
        return (drupe_fused_ref){FUSED_STEP, (uint8_t)in->node->step};
    if (in->node || in->memory) return operand_ref(f, node, i);
    drupe_fused_constant *constant = &f->fused->constants[f->fused->nconstants];
    memcpy(constant->value, in->value, sizeof constant->value);
    constant->dtype = (drupe_i32)in->dtype;
    return (drupe_fused_ref){FUSED_CONSTANT, (uint8_t)f->fused->nconstants++};
}

static void add_step(fusion *f, drupe_node *node)
{
    node->step = f->fused->nsteps++;
    drupe_fused_step *step = &f->fused->steps[node->step];
    *step = (drupe_fused_step){.op = (uint8_t)node->op,
                               .compute = (uint8_t)node->types.compute,
                               .dtype = (uint8_t)node->dtype,
                               .store = -1};
    for (unsigned i = 0; i < node->nin; i++) step->in[i] = input_ref(f, node, i);
}

/* Where the values of each step are kept, until the last step that takes them. */
static void choose_slots(drupe_fused *fused)
{
    int last[DRUPE_FUSED_STEPS], until[DRUPE_FUSED_SLOTS];
    for (int s = 0; s < fused->nsteps; s++) {
        last[s] = s;
        for (int i = 0; i < drupe_op_row(fused->steps[s].op)->arity; i++)
            if (fused->steps[s].in[i].source == FUSED_STEP) last[fused->steps[s].in[i].index] = s;
    }
    for (int s = 0; s < fused->nsteps; s++) {
        int slot = 0;
        while (slot < fused->nslots && until[slot] >= s) slot++;
        if (slot == fused->nslots) fused->nslots++;
        until[slot] = last[s];
        fused->steps[s].slot = (uint8_t)slot;
    }
}

/* --- Outputs -------------------------------------------------------------------------------------------- */

/* The last step that takes this operand. */
static int last_use(const drupe_fused *fused, int operand)
{
    int last = -1;
    for (int s = 0; s < fused->nsteps; s++)
        for (int i = 0; i < drupe_op_row(fused->steps[s].op)->arity; i++)
            if (fused->steps[s].in[i].source == FUSED_OPERAND && fused->steps[s].in[i].index == operand)
                last = s;
    return last;
}

/* References of the kernel's nodes to the memory. */
static uint32_t references_of(const fusion *f, const drupe_memory *memory)
{
    uint32_t count = 0;
    for (int n = f->from; n < f->to; n++) {
        const drupe_node *node = f->plan->nodes[n];
        for (unsigned i = 0; i < node->nin; i++) count += node->in[i].memory == memory;
    }
    return count;
}

/* Whether the values of the step may take the place of an input, of which nobody needs anything then. */
static bool may_replace(const fusion *f, int operand, const drupe_node *node)
{
    const drupe_fused_operand *in = &f->fused->operands[operand];
    drupe_memory *memory = f->memories[operand];
    const size_t size = drupe_dtype_size(node->dtype);
    if (in->output || drupe_dtype_size((drupe_dtype)in->dtype) != size ||
        drupe_memory_kind(memory) != node->kind || drupe_memory_size(memory) != node->size * size ||
        in->base != (char *)drupe_memory_pointer(memory))
        return false;
    ptrdiff_t expected = 1;
    for (int d = node->ndim - 1; d >= 0; d--) {
        if (node->axes[d] != 1 && in->strides[d] != expected) return false;
        expected *= node->axes[d];
    }
    for (int k = 0; k < f->fused->noperands; k++)
        if (k != operand && f->memories[k] == memory) return false;
    return last_use(f->fused, operand) <= node->step &&
           drupe_memory_only(memory, references_of(f, memory), f->queue);
}

static drupe_status output_memory(fusion *f, drupe_node *node)
{
    /* What a reduction alone has used is still to be had. */
    const bool once = !f->target || !f->target->reduction;
    for (int k = 0; once && k < f->fused->noperands; k++) {
        if (!may_replace(f, k, node)) continue;
        node->memory = drupe_memory_retain(f->memories[k]);
        return DRUPE_OK;
    }
    const drupe_origin *before = drupe_origin_enter(&node->origin);
    const drupe_status status = drupe_memory_alloc_result(
        f->queue, node->kind, node->size * drupe_dtype_size(node->dtype), &node->memory);
    drupe_origin_enter(before);
    return status;
}

static drupe_status add_outputs(fusion *f)
{
    ptrdiff_t strides[DRUPE_KERNEL_DIMS];
    for (int n = f->from; n < f->to; n++) {
        drupe_node *node = f->plan->nodes[n];
        drupe_fused_step *step = &f->fused->steps[node->step];
        if (!node->output) continue;
        DRUPE_TRY(output_memory(f, node));
        ptrdiff_t stride = 1;
        for (int d = node->ndim - 1; d >= 0; d--) {
            strides[d] = stride;
            stride *= node->axes[d];
        }
        step->store = (int8_t)f->fused->noperands;
        f->replaces |= UINT64_C(1) << f->fused->noperands;
        (void)add_operand(f, node->memory, 0, node->dtype, strides, true);
    }
    return DRUPE_OK;
}

/* The target is the output of a step that copies, unless its node has no other place; or that of a reduction.
 */
static void add_target(fusion *f)
{
    const pending_target *target = f->target;
    if (!target) return;
    if (target->reduction) {
        f->fused->reduction = *target->reduction;
        f->fused->reduction.step = target->node->step;
        f->fused->reduction.out = drupe_array_pointer(target->array);
        return;
    }
    const drupe_array *array = target->array;
    drupe_fused_step *step = &f->fused->steps[target->node->step];
    if (step->store >= 0) {
        drupe_fused_step *copy = &f->fused->steps[f->fused->nsteps++];
        *copy = (drupe_fused_step){.op = OP_COPY,
                                   .compute = (uint8_t)drupe_copy_type(array->dtype, array->dtype),
                                   .dtype = (uint8_t)array->dtype,
                                   .in = {{FUSED_STEP, (uint8_t)target->node->step}}};
        step = copy;
    }
    step->store = (int8_t)f->fused->noperands;
    if (drupe_array_covers(array)) f->replaces |= UINT64_C(1) << f->fused->noperands;
    (void)add_operand(f, array->memory, array->offset, array->dtype, array->strides, true);
}

/* --- The index space -------------------------------------------------------------------------------------
 */

static void drop_axis(drupe_fused *fused, int axis)
{
    for (int d = axis; d + 1 < fused->ndim; d++) {
        fused->shape[d] = fused->shape[d + 1];
        for (int k = 0; k < fused->noperands; k++)
            fused->operands[k].strides[d] = fused->operands[k].strides[d + 1];
    }
    fused->ndim--;
}

static bool is_mergeable(const drupe_fused *fused, int d)
{
    for (int k = 0; k < fused->noperands; k++)
        if (fused->operands[k].strides[d] != fused->operands[k].strides[d + 1] * fused->shape[d + 1])
            return false;
    return true;
}

static void simplify(drupe_fused *fused)
{
    for (int d = fused->ndim - 1; d >= 0; d--)
        if (fused->shape[d] == 1) drop_axis(fused, d);
    for (int d = fused->ndim - 2; d >= 0; d--) {
        if (!is_mergeable(fused, d)) continue;
        fused->shape[d + 1] *= fused->shape[d];
        drop_axis(fused, d);
    }
    bool flat = fused->ndim <= 1;
    for (int k = 0; flat && k < fused->noperands; k++)
        flat = fused->ndim == 0 || fused->operands[k].strides[0] == 1;
    if (flat) fused->ndim = 0;
}

static drupe_status describe(fusion *f)
{
    const drupe_node *first = f->plan->nodes[f->from];
    drupe_fused *fused = f->fused;
    fused->n = (drupe_i64)first->size;
    fused->ndim = first->ndim;
    for (int d = 0; d < first->ndim; d++) fused->shape[d] = first->axes[d];
    fused->reduction.op = -1;
    for (int n = f->from; n < f->to; n++) add_step(f, f->plan->nodes[n]);
    DRUPE_TRY(add_outputs(f));
    add_target(f);
    choose_slots(fused);
    simplify(fused);
    return DRUPE_OK;
}

/* --- Submission ------------------------------------------------------------------------------------------
 */

/* How many work-items; what is over in a moment is one, which may run on the submitting thread. */
static void host_range(const fusion *f, drupe_range *range)
{
    const drupe_fused *fused = f->fused;
    double cost = 0;
    for (int s = 0; s < fused->nsteps; s++) {
        const drupe_dtype compute = (drupe_dtype)fused->steps[s].compute;
        const double weight = drupe_op_light(fused->steps[s].op, compute) ? 1.0 : HEAVY;
        cost += weight * (double)drupe_dtype_size(compute) / 8.0;
    }
    const bool brief = cost * (double)fused->n <= BRIEF_COST;
    drupe_target_range(f->device, (size_t)fused->n, brief ? (size_t)fused->n : GRAIN_CPU, range);
}

static drupe_status submit_host(fusion *f, const char *label)
{
    const kernel_recipe recipe = {.size = 1, .bytes = {SHAPE_FUSED}};
    void *pointers[DRUPE_FUSED_POINTERS] = {NULL};
    drupe_memory *memories[DRUPE_FUSED_POINTERS + 2] = {NULL};
    drupe_fused *const fused = f->fused;
    drupe_arg args[DRUPE_FUSED_POINTERS + 1] = {{DRUPE_ARG_VALUE, sizeof fused, &fused}};
    drupe_effects effects = {.replaces = f->replaces << 1};
    drupe_range range;
    for (int k = 0; k < DRUPE_FUSED_POINTERS; k++)
        args[k + 1] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &pointers[k]};
    for (int k = 0; k < f->fused->noperands; k++) {
        pointers[k] = drupe_memory_pointer(f->memories[k]);
        memories[k + 1] = f->memories[k];
        *(f->fused->operands[k].output ? &effects.writes : &effects.reads) |= UINT64_C(2) << k;
    }
    if (f->fused->reduction.op >= 0) {
        pointers[DRUPE_FUSED_OPERANDS] = f->fused->reduction.out;
        memories[DRUPE_FUSED_OPERANDS + 1] = f->target->array->memory;
        effects.writes |= UINT64_C(2) << DRUPE_FUSED_OPERANDS;
        if (drupe_array_covers(f->target->array)) effects.replaces |= UINT64_C(2) << DRUPE_FUSED_OPERANDS;
    }
    const drupe_keep keep = {f->fused, free};
    const drupe_submission s = {.queue = f->queue,
                                .ordered = true,
                                .keeps = &keep,
                                .nkeeps = 1,
                                .label = label,
                                .memories = memories,
                                .effects = &effects};
    drupe_kernel *kernel;
    if (f->fused->reduction.op >= 0)
        range = *f->target->range;
    else
        host_range(f, &range);
    const drupe_status status = drupe_target_kernel(f->device, &recipe, &kernel);
    if (status != DRUPE_OK) return status; /* the caller has `fused` still */
    f->fused = NULL;
    return drupe_submit_kernel(&s, kernel, &range, args, DRUPE_FUSED_POINTERS + 1, NULL);
}

static drupe_status submit_printed(const fusion *f, const char *label, bool *launched)
{
    drupe_effects effects = {.replaces = f->replaces};
    for (int k = 0; k < f->fused->noperands; k++)
        *(f->fused->operands[k].output ? &effects.writes : &effects.reads) |= UINT64_C(1) << k;
    const drupe_submission s = {.queue = f->queue, .ordered = true, .label = label, .effects = &effects};
    return drupe_fused_launch(f->device, f->fused, &s, f->memories, launched);
}

/* From where the last operation is: that of a target is the call that this thread is in. */
static drupe_status submit_named(fusion *f, bool *launched)
{
    char label[DRUPE_FUSE_LABEL];
    drupe_origin here = {0, NULL}, *last = &f->plan->nodes[f->to - 1]->origin;
    if (f->target) {
        drupe_origin_here(&here);
        last = &here;
    }
    drupe_fuse_label(f->plan, f->from, f->to, f->fused, last, label);
    const drupe_origin *before = drupe_origin_enter(last);
    *launched = true;
    const drupe_status status =
        f->device->builtin ? submit_host(f, label) : submit_printed(f, label, launched);
    drupe_origin_enter(before);
    drupe_origin_release(&here);
    return status;
}

/* --- One by one ------------------------------------------------------------------------------------------
 */

/* Memory over the node's index space, without strides; borrowed. */
static void over_space(const fusion *f, const drupe_node *node, drupe_memory *memory, drupe_dtype dtype,
                       drupe_array *array)
{
    drupe_array_none(array);
    array->memory = memory;
    array->queue = f->queue;
    array->dtype = dtype;
    array->ndim = node->ndim;
    array->size = node->size;
    for (int d = 0; d < node->ndim; d++) array->shape[d] = (size_t)node->axes[d];
}

/* What the step takes as an array; borrowed. */
static void as_array(const fusion *f, drupe_node *node, unsigned i, drupe_array *array)
{
    const node_input *in = &node->in[i];
    over_space(f, node, in->node ? in->node->memory : in->memory, in->dtype, array);
    array->offset = in->offset;
    memcpy(array->strides, node_strides(node, i), (size_t)node->ndim * sizeof *array->strides);
}

static void values_of(const fusion *f, const drupe_node *node, drupe_array *array)
{
    over_space(f, node, node->memory, node->dtype, array);
    drupe_layout_c_order(array->ndim, array->shape, array->strides);
}

static drupe_status launch_node(const fusion *f, drupe_node *node)
{
    drupe_array arrays[DRUPE_KERNEL_INPUTS], out;
    drupe_operand in[DRUPE_KERNEL_INPUTS];
    for (unsigned i = 0; i < node->nin; i++) {
        const bool constant = !node->in[i].node && !node->in[i].memory;
        if (!constant) as_array(f, node, i, &arrays[i]);
        in[i] = (drupe_operand){.array = constant ? NULL : &arrays[i], .scalar = node->in[i].scalar};
    }
    const bool targeted = f->target && f->target->node == node;
    if (targeted && !node->output)
        return drupe_map_launch(f->device, node->op, &node->types, f->target->array, in, node->nin);
    DRUPE_TRY(drupe_memory_alloc_result(f->queue, node->kind, node->size * drupe_dtype_size(node->dtype),
                                        &node->memory));
    values_of(f, node, &out);
    DRUPE_TRY(drupe_map_launch(f->device, node->op, &node->types, &out, in, node->nin));
    if (!targeted) return DRUPE_OK;
    return drupe_copy_launch(f->device, f->target->array, &(drupe_operand){.array = &out});
}

/* Memory of values that no node behind `n` takes. */
static void let_spent(const fusion *f, int n)
{
    for (int i = f->from; i <= n; i++) {
        drupe_node *node = f->plan->nodes[i];
        bool needed = node->output || !node->memory;
        for (int k = n + 1; !needed && k < f->to; k++)
            for (unsigned j = 0; j < f->plan->nodes[k]->nin; j++)
                needed |= f->plan->nodes[k]->in[j].node == node;
        if (needed) continue;
        drupe_memory_release(node->memory);
        node->memory = NULL;
    }
}

static drupe_status submit_steps(const fusion *f)
{
    drupe_status status = DRUPE_OK;
    for (int n = f->from; status == DRUPE_OK && n < f->to; n++) {
        const drupe_origin *before = drupe_origin_enter(&f->plan->nodes[n]->origin);
        status = launch_node(f, f->plan->nodes[n]);
        drupe_origin_enter(before);
        if (status == DRUPE_OK) let_spent(f, n);
    }
    return status;
}

/* What the nodes got is taken back: nothing was submitted. */
static void undo(const fusion *f)
{
    for (int n = f->from; n < f->to; n++) {
        drupe_memory_release(f->plan->nodes[n]->memory);
        f->plan->nodes[n]->memory = NULL;
    }
}

/* As one kernel. `*launched` false: there is none, and nothing has happened. */
static drupe_status submit_one(fusion *f, bool *launched)
{
    f->fused = calloc(1, sizeof *f->fused);
    if (!f->fused) return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for an expression.");
    drupe_status status = describe(f);
    if (status == DRUPE_OK) status = submit_named(f, launched);
    free(f->fused);
    f->fused = NULL;
    if (!*launched) undo(f);
    return status;
}

drupe_status drupe_fuse_submit(const pending_plan *plan, int from, int to, const pending_target *target)
{
    drupe_node *last = plan->nodes[to - 1];
    fusion f = {.plan = plan, .from = from, .to = to, .queue = last->queue};
    if (target && target->node->kernel == last->kernel) f.target = target;
    DRUPE_TRY(drupe_target_get(f.queue, &f.device));
    const bool reduces = f.target && f.target->reduction;
    bool launched = false;
    drupe_status status = DRUPE_OK;
    if ((to - from > 1 || reduces) && !drupe_fuse_settings()->steps) status = submit_one(&f, &launched);
    if (status == DRUPE_OK && !launched) status = submit_steps(&f);
    if (status != DRUPE_OK) undo(&f);
    return status;
}
