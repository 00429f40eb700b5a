/* Nodes: how they are made, held and dropped, and which operations are worth one. */
#include "array/node.h"
#include "drupe/array_pending.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What expressions keep alive that nobody else has: so many times the result that is being added, and some.
 */
#define ELEMENT_MOST 16 /* bytes */
#define KEPT_TIMES   2
#define KEPT_BYTES   ((size_t)1 << 20)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int eager, fusing; /* so many eager() and fuse() are open on this thread */

void drupe_array_eager(int by)
{
    eager += by;
}

void drupe_array_fuse(int by)
{
    fusing += by;
}

/* --- What is worth a node --------------------------------------------------------------------------------
 */

/* Whether its neighbours in memory are not those along its last axis. */
static bool is_transposed(const drupe_array *array)
{
    ptrdiff_t near = 0;
    for (int d = array->ndim - 1; d >= 0; d--) {
        const ptrdiff_t stride = array->strides[d] < 0 ? -array->strides[d] : array->strides[d];
        if (array->shape[d] == 1 || stride == 0) continue;
        if (near > 1 && stride < near) return true;
        if (near == 0) near = stride;
    }
    return false;
}

static bool fits_operand(const drupe_array *array)
{
    if (array->node) return true;
    return !drupe_memory_exposed(array->memory) && drupe_memory_contents(array->memory) == DRUPE_OK;
}

static void open_all(void)
{
    drupe_pending_open();
    drupe_nodes_open();
}

static bool is_wanted(const drupe_target *target, const drupe_operand *in, size_t nin, int ndim, size_t size)
{
    const fuse_settings *settings = drupe_fuse_settings();
    if ((size < settings->above && !fusing) || settings->off || eager || target->checked || !size ||
        size > target->most / ELEMENT_MOST || ndim > DRUPE_KERNEL_DIMS)
        return false;
    for (size_t i = 0; i < nin; i++)
        if (in[i].array && !fits_operand(in[i].array)) return false;
    return true;
}

/* Memory that nobody but nodes of the list have. Needs the lock. */
static size_t kept_bytes(const pending_list *list)
{
    size_t bytes = 0;
    for (const drupe_node *node = list->first; node; node = node->next) {
        for (unsigned i = 0; i < node->nin; i++) {
            uint32_t count = 0;
            bool seen = false;
            drupe_memory *memory = node->in[i].memory;
            if (!memory) continue;
            for (const drupe_node *other = list->first; other; other = other->next) {
                for (unsigned k = 0; k < other->nin; k++) {
                    if (other->in[k].memory != memory) continue;
                    if (count++ == 0) seen = other != node || k != i;
                }
            }
            if (!seen && drupe_memory_only(memory, count, list->queue)) bytes += drupe_memory_size(memory);
        }
    }
    return bytes;
}

/* Whether the list has to be settled before another node joins. Needs the lock. */
static bool is_full(const pending_list *list, size_t bytes)
{
    const size_t most = KEPT_TIMES * bytes + KEPT_BYTES;
    return list->count >= drupe_fuse_settings()->most ||
           (!fusing && list->bytes > most && kept_bytes(list) > most);
}

/* --- Making ----------------------------------------------------------------------------------------------
 */

static void take_array(drupe_node *node, size_t i, const drupe_array *array)
{
    node_input *in = &node->in[i];
    ptrdiff_t *strides = node_strides(node, i);
    in->dtype = array->dtype;
    in->offset = array->offset;
    for (int d = 0; d < node->ndim; d++) strides[d] = drupe_layout_stride(array, node->ndim, d);
    if (array->node && array->node->state != NODE_SETTLED) {
        node->across = node->across || array->node->across;
        in->node = array->node;
        in->node->references++;
        return;
    }
    node->across = node->across || is_transposed(array);
    in->memory = drupe_memory_retain(array->node ? array->node->memory : array->memory);
    drupe_memory_postpone(in->memory, 1);
}

/* A node without inputs, which belongs to nobody. */
static drupe_node *node_new(int op, const op_types *types, size_t nin, drupe_mem_kind kind,
                            drupe_queue *queue, int ndim, const size_t *shape)
{
    drupe_node *node = malloc(sizeof *node + sizeof(ptrdiff_t) * (1 + nin) * (size_t)ndim);
    if (!node) return NULL;
    memset(node, 0, sizeof *node);
    node->op = op;
    node->types = *types;
    node->dtype = types->result;
    node->kind = kind;
    node->queue = drupe_queue_retain(queue);
    node->nin = (unsigned)nin;
    node->ndim = ndim;
    node->size = 1;
    for (int d = 0; d < ndim; d++) {
        node->axes[d] = (ptrdiff_t)shape[d];
        node->size *= shape[d];
    }
    drupe_origin_here(&node->origin);
    return node;
}

static drupe_status take_constants(drupe_node *node, const drupe_operand *in)
{
    for (unsigned i = 0; i < node->nin; i++) {
        if (in[i].array) continue;
        node->in[i].scalar = in[i].scalar;
        node->in[i].dtype = drupe_op_input(drupe_op_row(node->op), node->types.compute, i);
        DRUPE_TRY(drupe_op_constant(node->op, &node->types, in, i, node->in[i].value));
    }
    return DRUPE_OK;
}

/* The node's place in its queue's list, with one reference of an array. */
static drupe_status node_enter(drupe_node *node, const drupe_operand *in)
{
    const size_t bytes = node->size * drupe_dtype_size(node->dtype);
    bool full = true;
    pthread_once(&once, open_all);
    drupe_pending_lock();
    pending_list *list = drupe_pending_list_for(node->queue);
    full = list && is_full(list, bytes);
    if (full) {
        drupe_pending_unlock();
        DRUPE_TRY(drupe_pending_settle(node->queue, NULL));
        drupe_pending_lock();
        list = drupe_pending_list_for(node->queue);
    }
    if (!list) {
        drupe_pending_unlock();
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for an expression.");
    }
    for (unsigned i = 0; i < node->nin; i++) {
        if (!in[i].array) continue;
        take_array(node, i, in[i].array);
        if (node->in[i].memory) list->bytes += drupe_memory_size(node->in[i].memory);
    }
    node->references = node->arrays = 1;
    drupe_pending_list_add(list, node);
    if (!drupe_fuse_settings()->patient) drupe_idle_tell(list);
    drupe_pending_unlock();
    return DRUPE_OK;
}

static drupe_node *make_node(int op, const op_types *types, const drupe_operand *in, size_t nin,
                             drupe_mem_kind kind, drupe_queue *queue, int ndim, const size_t *shape,
                             drupe_status *status)
{
    drupe_node *node = node_new(op, types, nin, kind, queue, ndim, shape);
    *status = node ? take_constants(node, in)
                   : drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for an expression.");
    if (*status == DRUPE_OK) *status = node_enter(node, in);
    if (*status == DRUPE_OK) return node;
    if (node) drupe_node_free(node);
    return NULL;
}

/* `out` has the node's values from now on. */
static void become(drupe_array *out, drupe_node *node)
{
    out->memory = NULL;
    out->node = node;
    out->queue = drupe_queue_retain(node->queue);
    out->dtype = node->dtype;
    out->ndim = node->ndim;
    out->offset = 0;
    out->size = node->size;
    for (int d = 0; d < node->ndim; d++) out->shape[d] = (size_t)node->axes[d];
    drupe_layout_c_order(out->ndim, out->shape, out->strides);
}

static size_t size_of(int ndim, const size_t *shape)
{
    size_t size = 1;
    for (int d = 0; d < ndim; d++) size *= shape[d];
    return size;
}

bool drupe_pending_make(const drupe_target *target, int op, const op_types *types, const drupe_operand *in,
                        size_t nin, drupe_mem_kind kind, drupe_queue *queue, int ndim, const size_t *shape,
                        drupe_array *out, drupe_status *status)
{
    *status = DRUPE_OK;
    if (!is_wanted(target, in, nin, ndim, size_of(ndim, shape))) {
        *status = drupe_operands_settle(in, nin);
        return *status != DRUPE_OK;
    }
    drupe_node *node = make_node(op, types, in, nin, kind, queue, ndim, shape, status);
    if (node) become(out, node);
    return true;
}

/* --- Into arrays that are there --------------------------------------------------------------------------
 */

/* The values of `node` (taken), cast to `dtype`. */
static drupe_node *node_cast(drupe_node *node, drupe_dtype dtype, drupe_status *status)
{
    if (node->dtype == dtype) return node;
    drupe_array values;
    drupe_array_none(&values);
    become(&values, node);
    const op_types types = {dtype, drupe_copy_type(node->dtype, dtype), dtype, 0};
    const drupe_operand in = {.array = &values};
    drupe_node *cast =
        make_node(OP_COPY, &types, &in, 1, node->kind, node->queue, values.ndim, values.shape, status);
    drupe_array_clear(&values);
    return cast;
}

/* Whether rows of it lie one behind the other, as those of results do. */
static bool is_orderly(const drupe_array *out)
{
    ptrdiff_t outer = PTRDIFF_MAX;
    for (int d = 0; d < out->ndim; d++) {
        if (out->shape[d] == 1) continue;
        if (out->strides[d] <= 0 || out->strides[d] > outer) return false;
        outer = out->strides[d];
    }
    return true;
}

static bool is_shared(const drupe_node *node)
{
    drupe_pending_lock();
    const bool shared = node->arrays > 1;
    drupe_pending_unlock();
    return shared;
}

static drupe_status copy_values(const drupe_array *values, const drupe_array *out)
{
    drupe_target *target;
    DRUPE_TRY(drupe_target_get(out->queue, &target));
    return drupe_copy_launch(target, out, &(drupe_operand){.array = values});
}

bool drupe_pending_into(const drupe_target *target, int op, const op_types *types, const drupe_operand *in,
                        size_t nin, drupe_array *out, drupe_status *status)
{
    bool some = out->node != NULL;
    for (size_t i = 0; i < nin; i++) some = some || (in[i].array && in[i].array->node);
    *status = DRUPE_OK;
    if (some && out->node && is_shared(out->node)) {
        *status = drupe_array_settle(out); /* those who have the same values must see the new ones */
        if (*status != DRUPE_OK) return true;
    }
    if (some && (!is_wanted(target, in, nin, out->ndim, out->size) || (out->memory && !fits_operand(out)) ||
                 !is_orderly(out))) {
        *status = drupe_operands_settle(in, nin);
        if (*status == DRUPE_OK) *status = drupe_array_settle(out);
        some = *status != DRUPE_OK;
    }
    if (!some || *status != DRUPE_OK) return some;
    drupe_node *node =
        make_node(op, types, in, nin, drupe_array_kind(out), out->queue, out->ndim, out->shape, status);
    if (!node) return true;
    drupe_node *result = node_cast(node, out->dtype, status);
    if (!result) return true;
    if (out->node) {
        drupe_node *before = out->node;
        out->node = result; /* its list keeps the order */
        drupe_node_drop(before);
        return true;
    }
    drupe_array values;
    drupe_array_none(&values);
    become(&values, result);
    bool done = false;
    const pending_target there = {.node = result, .spent = true, .array = out, .done = &done};
    *status = drupe_pending_settle(out->queue, &there);
    if (!done && *status == DRUPE_OK) *status = drupe_array_settle(&values);
    if (!done && *status == DRUPE_OK) *status = copy_values(&values, out);
    drupe_array_clear(&values);
    return true;
}
