/* Pending arrays, seen from outside: the operations that one waits for. */
#include "array/node.h"
#include "drupe/array_pending.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(DRUPE_LOOK_INPUTS >= DRUPE_KERNEL_INPUTS, "all inputs are listed");

typedef struct looking {
    drupe_look *look;
    drupe_node *nodes[DRUPE_LOOK_OPERATIONS]; /* those of the look, in its order */
    struct {
        const drupe_node *node;
        unsigned input;
    } arrays[DRUPE_LOOK_OPERATIONS * DRUPE_LOOK_INPUTS];
} looking;

/* --- Which -------------------------------------------------------------------------------------------- */

static bool is_computed(const drupe_node *node)
{
    return node->state <= NODE_SETTLING;
}

static int place_of(const looking *l, const drupe_node *node)
{
    for (int i = 0; i < l->look->noperations; i++)
        if (l->nodes[i] == node) return i;
    return -1;
}

/* The node and what it takes, last first. */
static void collect(looking *l, drupe_node *node)
{
    drupe_look *look = l->look;
    l->nodes[look->noperations++] = node;
    for (int i = 0; i < look->noperations; i++) {
        for (unsigned k = 0; k < l->nodes[i]->nin; k++) {
            drupe_node *input = l->nodes[i]->in[k].node;
            if (!input || !is_computed(input) || place_of(l, input) >= 0) continue;
            if (look->noperations == DRUPE_LOOK_OPERATIONS)
                look->more = true;
            else
                l->nodes[look->noperations++] = input;
        }
    }
}

/* Whether all that the node takes stands in front of `end`. */
static bool is_next(const looking *l, const drupe_node *node, int end)
{
    for (unsigned k = 0; k < node->nin; k++)
        if (place_of(l, node->in[k].node) >= end) return false;
    return true;
}

/* In the order of the calls, as far as that is known: the list has it, of what no thread is submitting. */
static void sort(looking *l)
{
    const int count = l->look->noperations;
    int end = 0;
    const pending_list *list = drupe_pending_list(l->nodes[0]->queue);
    const drupe_node *listed = list ? list->first : NULL;
    while (end < count) {
        int found = -1;
        for (int i = count; found < 0 && i-- > end;)
            if (l->nodes[i]->state == NODE_SETTLING && is_next(l, l->nodes[i], end)) found = i;
        for (; found < 0 && listed; listed = listed->next)
            if (place_of(l, listed) >= end) found = place_of(l, listed);
        if (found < 0) return;
        drupe_node *node = l->nodes[found];
        memmove(l->nodes + end + 1, l->nodes + end, (size_t)(found - end) * sizeof node);
        l->nodes[end++] = node;
    }
}

/* --- Kernels ------------------------------------------------------------------------------------------ */

/* The list as it was before a plan was made of it. */
static void put_back(pending_list *list, drupe_node *const *nodes, unsigned count)
{
    list->first = list->last = NULL;
    list->count = count;
    for (unsigned i = 0; i < count; i++) {
        drupe_node *node = nodes[i];
        node->state = NODE_PENDING;
        node->output = false;
        node->references--;
        node->before = list->last;
        node->next = NULL;
        *(list->last ? &list->last->next : &list->first) = node;
        list->last = node;
    }
}

/* Make the plan that settling would make, and look at it. */
static void find_kernels(looking *l)
{
    pending_plan plan;
    drupe_node *nodes[DRUPE_COUNT_OF(plan.nodes)];
    pending_list *list = drupe_pending_list(l->nodes[0]->queue);
    unsigned count = 0;
    int numbers[DRUPE_COUNT_OF(plan.nodes)];
    for (int i = 0; i < l->look->noperations; i++) l->look->operations[i].kernel = -1;
    if (!list || list->settling || list->count > DRUPE_COUNT_OF(nodes)) return;
    for (drupe_node *node = list->first; node; node = node->next) nodes[count++] = node;
    drupe_plan_make(list, NULL, &plan);
    put_back(list, nodes, count);
    /* Others of the plan are none of ours, so that ours are numbered anew. */
    for (int k = 0; k < plan.kernels; k++) numbers[k] = -1;
    for (int i = 0; i < plan.count; i++) {
        if (place_of(l, plan.nodes[i]) < 0) continue;
        int *number = &numbers[plan.nodes[i]->kernel];
        if (*number < 0 || drupe_fuse_settings()->steps) *number = l->look->kernels++;
        l->look->operations[place_of(l, plan.nodes[i])].kernel = *number;
    }
}

/* --- What of them ------------------------------------------------------------------------------------- */

static int array_index(looking *l, drupe_node *node, unsigned i)
{
    drupe_look *look = l->look;
    for (int k = 0; k < look->narrays; k++) {
        const drupe_node *other = l->arrays[k].node;
        const unsigned input = l->arrays[k].input;
        if (node->in[i].node ? other->in[input].node == node->in[i].node
                             : !other->in[input].node && other->ndim == node->ndim &&
                                   drupe_node_input_same(node, i, other, input))
            return k;
    }
    const int k = look->narrays++;
    l->arrays[k].node = node;
    l->arrays[k].input = i;
    look->arrays[k] = (drupe_look_array){.dtype = node->in[i].dtype, .ndim = node->ndim};
    for (int d = 0; d < node->ndim; d++)
        look->arrays[k].shape[d] = node_strides(node, i)[d] ? (size_t)node->axes[d] : 1;
    return k;
}

static void describe(looking *l, int at)
{
    drupe_node *node = l->nodes[at];
    drupe_look_operation *one = &l->look->operations[at];
    one->name = drupe_op_row(node->op)->name;
    one->dtype = node->dtype;
    one->ndim = node->ndim;
    for (int d = 0; d < node->ndim; d++) one->shape[d] = (size_t)node->axes[d];
    one->stored = node->arrays > 0;
    drupe_origin_text(&node->origin, one->place, sizeof one->place);
    one->ninputs = (int)node->nin;
    for (unsigned i = 0; i < node->nin; i++) {
        drupe_look_input *in = &one->inputs[i];
        const int value = node->in[i].node ? place_of(l, node->in[i].node) : -1;
        if (value >= 0)
            *in = (drupe_look_input){.source = DRUPE_LOOK_VALUE, .index = value};
        else if (node->in[i].node || node->in[i].memory)
            *in = (drupe_look_input){.source = DRUPE_LOOK_ARRAY, .index = array_index(l, node, i)};
        else
            *in = (drupe_look_input){.source = DRUPE_LOOK_NUMBER, .scalar = node->in[i].scalar};
    }
}

drupe_status drupe_array_look(const drupe_array *array, drupe_look **look)
{
    *look = NULL;
    if (!array->node) return DRUPE_OK;
    looking *l = calloc(1, sizeof *l);
    drupe_look *made = calloc(1, sizeof *made);
    if (!l || !made) {
        free(l);
        free(made);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for the list of an expression.");
    }
    l->look = made;
    drupe_pending_lock();
    const bool waits = array->node && is_computed(array->node);
    if (waits) {
        collect(l, array->node);
        sort(l);
        find_kernels(l);
        for (int i = 0; i < made->noperations; i++) describe(l, i);
    }
    drupe_pending_unlock();
    free(l);
    if (waits)
        *look = made;
    else
        free(made);
    return DRUPE_OK;
}
