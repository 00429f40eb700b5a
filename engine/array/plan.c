/* From a list of nodes to kernels.
 *
 * What has one index space and needs no values that come from another one goes into one kernel: a node's
 * level is how often the shape changes on the longest way to it, since an operand that is broadcast is
 * computed at its own size, by a kernel before. Nodes of one level and shape are taken in the order of the
 * calls, and cut where a kernel would have more operands, constants or values at a time than it can. */
#include "array/node.h"
#include <string.h>

/* The kernel that is being filled. */
typedef struct cut {
    int number, nodes, leaves, constants;
    const node_input *inputs[DRUPE_FUSED_OPERANDS];
    const drupe_node *of[DRUPE_FUSED_OPERANDS]; /* whose input */
} cut;

static bool same_space(const drupe_node *a, const drupe_node *b)
{
    return a->ndim == b->ndim && memcmp(a->axes, b->axes, (size_t)a->ndim * sizeof *a->axes) == 0;
}

bool drupe_node_input_same(const drupe_node *a, size_t i, const drupe_node *b, size_t k)
{
    const node_input *one = &a->in[i], *other = &b->in[k];
    if (one->memory != other->memory || one->offset != other->offset || one->dtype != other->dtype)
        return false;
    const ptrdiff_t *strides = a->axes + (1 + i) * (size_t)a->ndim;
    return memcmp(strides, b->axes + (1 + k) * (size_t)b->ndim, (size_t)a->ndim * sizeof *strides) == 0;
}

/* --- Levels ----------------------------------------------------------------------------------------------
 */

/* Whether the values of an input come from a kernel of their own, as they are broadcast. */
static bool is_other_space(const drupe_node *node, const drupe_node *input)
{
    return !same_space(node, input);
}

static void find_levels(const pending_plan *plan, const pending_target *target)
{
    for (int i = 0; i < plan->count; i++) {
        drupe_node *node = plan->nodes[i];
        node->level = node->uses = node->takers = 0;
        node->kernel = -1;
        node->output = false;
        for (unsigned k = 0; k < node->nin; k++) {
            drupe_node *input = node->in[k].node;
            if (!input || input->state != NODE_SETTLING) continue;
            input->uses++;
            input->takers++;
            const int level = input->level + is_other_space(node, input);
            if (level > node->level) node->level = level;
        }
    }
    /* Others than those of the plan may take it: arrays, and nodes that came too late for it. */
    for (int i = 0; i < plan->count; i++) {
        drupe_node *node = plan->nodes[i];
        const unsigned own = target && target->node == node && target->spent ? 1 : 0;
        node->output = node->references - 1 - (unsigned)node->takers > own;
    }
}

/* By level, and among those by shape; in the order of the calls otherwise. */
static void sort_nodes(pending_plan *plan)
{
    drupe_node *sorted[DRUPE_COUNT_OF(plan->nodes)];
    bool taken[DRUPE_COUNT_OF(plan->nodes)] = {false};
    int count = 0;
    for (int level = 0; count < plan->count; level++) {
        for (int i = 0; i < plan->count; i++) {
            if (taken[i] || plan->nodes[i]->level != level) continue;
            for (int k = i; k < plan->count; k++) {
                if (taken[k] || plan->nodes[k]->level != level || !same_space(plan->nodes[i], plan->nodes[k]))
                    continue;
                taken[k] = true;
                sorted[count++] = plan->nodes[k];
            }
        }
    }
    memcpy(plan->nodes, sorted, (size_t)count * sizeof *sorted);
}

/* --- Cutting ---------------------------------------------------------------------------------------------
 */

/* Whether it is memory for the kernel: not computed by it. */
static bool is_leaf(const cut *c, const node_input *in)
{
    return in->memory || (in->node && in->node->kernel != c->number);
}

static int leaf_of(const cut *c, const drupe_node *node, unsigned i)
{
    for (int k = 0; k < c->leaves; k++) {
        if (node->in[i].node
                ? c->inputs[k]->node == node->in[i].node
                : c->inputs[k]->memory &&
                      drupe_node_input_same(node, i, c->of[k], (size_t)(c->inputs[k] - c->of[k]->in)))
            return k;
    }
    return -1;
}

/* How many values of the kernel are needed behind its latest node. */
static int alive(const pending_plan *plan, const cut *c, int end)
{
    int count = 0;
    for (int i = 0; i < end; i++) {
        const drupe_node *node = plan->nodes[i];
        if (node->kernel == c->number && (node->uses > 0 || node->output || node->arrays)) count++;
    }
    return count;
}

static bool add(const pending_plan *plan, cut *c, int at)
{
    drupe_node *node = plan->nodes[at];
    const cut before = *c;
    node->kernel = c->number;
    c->nodes++;
    for (unsigned i = 0; i < node->nin; i++) {
        const node_input *in = &node->in[i];
        if (!in->node && !in->memory) c->constants++;
        if (!is_leaf(c, in) || leaf_of(c, node, i) >= 0) continue;
        if (c->leaves == DRUPE_FUSED_OPERANDS - 1) goto full;
        c->inputs[c->leaves] = in;
        c->of[c->leaves++] = node;
    }
    /* Those that it takes for the last time are still needed while it is computed, so that is checked first.
     */
    const int values = alive(plan, c, at + 1);
    if (c->constants > DRUPE_FUSED_CONSTANTS || c->nodes > DRUPE_FUSED_STEPS || values >= DRUPE_FUSED_SLOTS)
        goto full;
    for (unsigned i = 0; i < node->nin; i++)
        if (node->in[i].node && node->in[i].node->state == NODE_SETTLING) node->in[i].node->uses--;
    if (c->leaves + alive(plan, c, at + 1) <= DRUPE_FUSED_OPERANDS) return true;
    for (unsigned i = 0; i < node->nin; i++)
        if (node->in[i].node && node->in[i].node->state == NODE_SETTLING) node->in[i].node->uses++;
full:
    node->kernel = -1;
    *c = before;
    return false;
}

static void cut_kernels(pending_plan *plan)
{
    cut c = {.number = 0};
    for (int i = 0; i < plan->count; i++) {
        const drupe_node *before = i ? plan->nodes[i - 1] : NULL;
        const bool next =
            before && (before->level != plan->nodes[i]->level || !same_space(before, plan->nodes[i]));
        if (next) c = (cut){.number = c.number + 1};
        if (add(plan, &c, i)) continue;
        c = (cut){.number = c.number + 1};
        (void)add(plan, &c, i); /* one alone always fits */
    }
    plan->kernels = c.number + 1;
}

/* Those that another kernel takes, too. */
static void find_outputs(const pending_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        const drupe_node *node = plan->nodes[i];
        for (unsigned k = 0; k < node->nin; k++) {
            drupe_node *input = node->in[k].node;
            if (input && input->state == NODE_SETTLING && input->kernel != node->kernel) input->output = true;
        }
    }
}

/* --- Targets ---------------------------------------------------------------------------------------------
 */

static bool is_view(const drupe_node *node, unsigned i, const drupe_array *array)
{
    const node_input *in = &node->in[i];
    if (in->offset != array->offset || in->dtype != array->dtype || node->ndim != array->ndim) return false;
    const ptrdiff_t *strides = node->axes + (1 + i) * (size_t)node->ndim;
    for (int d = 0; d < array->ndim; d++)
        if (array->shape[d] > 1 && strides[d] != array->strides[d]) return false;
    return true;
}

/* A kernel reads an element before it stores to it. So those before the target's may read its memory in any
 * way, and the target's own one element by element. */
static bool lets_target(const drupe_node *node, const pending_target *target)
{
    const int number = target->node->kernel;
    if (node->kernel >= 0 && node->kernel < number) return true;
    for (unsigned i = 0; i < node->nin; i++)
        if (node->in[i].memory == target->array->memory &&
            (node->kernel != number || !is_view(node, i, target->array)))
            return false;
    return true;
}

bool drupe_plan_lets(const pending_plan *plan, const pending_list *list, const pending_target *target)
{
    bool lets = true;
    for (int i = 0; lets && i < plan->count; i++) lets = lets_target(plan->nodes[i], target);
    for (const drupe_node *node = list->first; lets && node; node = node->next)
        for (unsigned i = 0; i < node->nin; i++) lets &= node->in[i].memory != target->array->memory;
    return lets;
}

void drupe_plan_make(pending_list *list, const pending_target *target, pending_plan *plan)
{
    plan->count = plan->kernels = 0;
    while (list->first && plan->count < (int)DRUPE_COUNT_OF(plan->nodes)) {
        drupe_node *node = list->first;
        drupe_pending_list_remove(list, node);
        node->state = NODE_SETTLING;
        node->references++;
        plan->nodes[plan->count++] = node;
    }
    find_levels(plan, target);
    sort_nodes(plan);
    cut_kernels(plan);
    find_outputs(plan);
}
