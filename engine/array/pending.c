/* Nodes: how they are made, held and dropped, and which operations are worth one. */
#include "array/node.h"
#include "drupe/array_pending.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Elements below which an operation is submitted at once: measured, see docs/internals/recipes.md. */
#define ABOVE_HOST 32768
/* What expressions keep alive that nobody else has: so many times the result that is being added, and some.
 */
#define ELEMENT_MOST 16 /* bytes */
#define KEPT_TIMES 2
#define KEPT_BYTES ((size_t)1 << 20)

static struct {
    pthread_mutex_t lock;
    pending_list *lists; /* of queues with nodes */
    pthread_once_t once;
    bool off;     /* DRUPE_FUSE=0 */
    bool steps;   /* DRUPE_FUSE=steps: what is pending is launched one by one; for tests */
    bool patient; /* DRUPE_FUSE_IDLE=0: what is pending waits until somebody needs it, however long; for tests
                   */
    bool forked;  /* this process is a child of one that had settings */
    size_t above; /* DRUPE_FUSE_ABOVE, for tests */
    unsigned most;
} pending = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static _Thread_local int eager, fusing; /* so many eager() and fuse() are open on this thread */

/* Threads that settle are not there in a forked child, which may only be told so, and drop its arrays. */
static void fork_child(void)
{
    for (pending_list *list = pending.lists; list; list = list->next) {
        list->settling = false;
        list->plan = NULL;
    }
    pending.forked = true;
    pthread_mutex_unlock(&pending.lock);
}

static void read_settings(void)
{
    drupe_pending_open();
    (void)pthread_atfork(drupe_pending_lock, drupe_pending_unlock, fork_child);
    const char *fuse = getenv("DRUPE_FUSE"), *above = getenv("DRUPE_FUSE_ABOVE"),
               *most = getenv("DRUPE_FUSE_MOST");
    const char *idle = getenv("DRUPE_FUSE_IDLE");
    pending.patient = idle && strcmp(idle, "0") == 0;
    pending.off = fuse && strcmp(fuse, "0") == 0;
    pending.steps = fuse && strcmp(fuse, "steps") == 0;
    pending.above = above ? (size_t)strtoull(above, NULL, 10) : ABOVE_HOST;
    pending.most = most ? (unsigned)strtoul(most, NULL, 10) : DRUPE_PENDING_MOST;
    if (pending.most < 1 || pending.most > DRUPE_PENDING_MOST) pending.most = DRUPE_PENDING_MOST;
}

bool drupe_pending_forked(void)
{
    return pending.forked;
}

bool drupe_pending_by_steps(void)
{
    return pending.steps;
}

bool drupe_pending_joins(const drupe_target *target)
{
    return target->builtin && !pending.steps && !target->checked;
}

void drupe_array_eager(int by)
{
    eager += by;
}

void drupe_array_fuse(int by)
{
    fusing += by;
}

void drupe_pending_lock(void)
{
    pthread_mutex_lock(&pending.lock);
}

pthread_mutex_t *drupe_pending_mutex(void)
{
    return &pending.lock;
}

void drupe_pending_unlock(void)
{
    pthread_mutex_unlock(&pending.lock);
}

/* --- Lists ---------------------------------------------------------------------------------------------- */

pending_list *drupe_pending_list(const drupe_queue *queue)
{
    pending_list *list = pending.lists;
    while (list && list->queue != queue) list = list->next;
    return list;
}

pending_list *drupe_pending_lists(void)
{
    return pending.lists;
}

static pending_list *list_for(drupe_queue *queue)
{
    pending_list *list = drupe_pending_list(queue);
    if (list) return list;
    list = calloc(1, sizeof *list);
    if (!list) return NULL;
    list->queue = queue;
    list->next = pending.lists;
    pending.lists = list;
    return list;
}

void drupe_pending_list_tidy(pending_list *list)
{
    if (list->first || list->settling) return;
    drupe_queue_postpone(list->queue, false);
    pending_list **link = &pending.lists;
    while (*link != list) link = &(*link)->next;
    *link = list->next;
    free(list);
}

static void list_add(pending_list *list, drupe_node *node)
{
    node->before = list->last;
    node->next = NULL;
    *(list->last ? &list->last->next : &list->first) = node;
    list->last = node;
    list->count++;
    drupe_queue_postpone(list->queue, true);
    if (!pending.patient) drupe_idle_tell(list);
}

void drupe_pending_list_remove(pending_list *list, drupe_node *node)
{
    *(node->before ? &node->before->next : &list->first) = node->next;
    *(node->next ? &node->next->before : &list->last) = node->before;
    node->next = node->before = NULL;
    list->count--;
}

/* --- Nodes ---------------------------------------------------------------------------------------------- */

/* Give up what it takes. The nodes among that are added to `gone` once nobody has them. */
void drupe_node_let_inputs(drupe_node *node, drupe_node **gone)
{
    for (unsigned i = 0; i < node->nin; i++) {
        node_input *in = &node->in[i];
        if (in->memory) {
            drupe_memory_postpone(in->memory, -1);
            drupe_memory_release(in->memory);
            in->memory = NULL;
        }
        drupe_node *other = in->node;
        in->node = NULL;
        if (!other || --other->references) continue;
        if (other->state == NODE_PENDING) {
            pending_list *list = drupe_pending_list(other->queue);
            drupe_pending_list_remove(list, other);
        }
        other->next = *gone;
        *gone = other;
    }
}

static void node_free(drupe_node *node)
{
    drupe_memory_release(node->memory);
    drupe_queue_release(node->queue);
    drupe_origin_release(&node->origin);
    free(node->error);
    free(node);
}

/* Those in the list, which nobody has, and those that only they have. Needs the lock, which is given up. */
void drupe_nodes_free(drupe_node *gone)
{
    drupe_node *dead = NULL;
    while (gone) {
        drupe_node *node = gone;
        gone = node->next;
        drupe_node_let_inputs(node, &gone);
        node->next = dead;
        dead = node;
    }
    for (drupe_node *node = dead; node; node = node->next) {
        pending_list *list = drupe_pending_list(node->queue);
        if (list) drupe_pending_list_tidy(list);
    }
    pthread_mutex_unlock(&pending.lock);
    while (dead) {
        drupe_node *next = dead->next;
        node_free(dead);
        dead = next;
    }
}

void drupe_node_hold(drupe_node *node)
{
    if (!node) return;
    pthread_mutex_lock(&pending.lock);
    node->references++;
    node->arrays++;
    pthread_mutex_unlock(&pending.lock);
}

static void unlink_node(drupe_node *node, drupe_node **gone)
{
    node->arrays--;
    if (--node->references) return;
    if (node->state == NODE_PENDING) drupe_pending_list_remove(drupe_pending_list(node->queue), node);
    node->next = *gone;
    *gone = node;
}

void drupe_node_drop(drupe_node *node)
{
    drupe_node *gone = NULL;
    if (!node) return;
    pthread_mutex_lock(&pending.lock);
    unlink_node(node, &gone);
    drupe_nodes_free(gone);
}

/* What is settled is an array like any other. Needs the lock, which is given up. */
static drupe_status take_values(drupe_array *array)
{
    drupe_node *node = array->node, *gone = NULL;
    if (node->state == NODE_FAILED) {
        drupe_error error = *node->error;
        pthread_mutex_unlock(&pending.lock);
        drupe_error_restore(&error);
        return error.status;
    }
    array->memory = drupe_memory_retain(node->memory);
    array->node = NULL;
    unlink_node(node, &gone);
    drupe_nodes_free(gone);
    return DRUPE_OK;
}

drupe_status drupe_array_settle(const drupe_array *array)
{
    drupe_array *own =
        (drupe_array *)(uintptr_t)array; /* the same array, seen after its values were asked for */
    for (int tries = 0; own->node; tries++) {
        pthread_mutex_lock(&pending.lock);
        if (own->node && own->node->state >= NODE_SETTLED) return take_values(own);
        pthread_mutex_unlock(&pending.lock);
        if (tries == 2)
            return drupe_error_set(DRUPE_E_BUSY,
                                   "This array is being computed by the call that was interrupted "
                                   "for this one, so it has no values yet.");
        DRUPE_TRY(drupe_pending_settle(own->queue, NULL));
    }
    return DRUPE_OK;
}

drupe_status drupe_operands_settle(const drupe_operand *in, size_t nin)
{
    for (size_t i = 0; i < nin; i++)
        if (in[i].array) DRUPE_TRY(drupe_array_settle(in[i].array));
    return DRUPE_OK;
}

bool drupe_array_pending(const drupe_array *array)
{
    if (!array->node) return false;
    pthread_mutex_lock(&pending.lock);
    const bool waits = array->node && array->node->state <= NODE_SETTLING;
    pthread_mutex_unlock(&pending.lock);
    return waits;
}

drupe_mem_kind drupe_array_kind(const drupe_array *array)
{
    return array->node ? array->node->kind : drupe_memory_kind(array->memory);
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

static bool is_wanted(const drupe_target *target, const drupe_operand *in, size_t nin, int ndim, size_t size)
{
    pthread_once(&pending.once, read_settings);
    if (pending.off || eager || target->checked || !size || (size < pending.above && !fusing) ||
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
    return list->count >= pending.most || (!fusing && list->bytes > most && kept_bytes(list) > most);
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
    pthread_mutex_lock(&pending.lock);
    pending_list *list = list_for(node->queue);
    full = list && is_full(list, bytes);
    if (full) {
        pthread_mutex_unlock(&pending.lock);
        DRUPE_TRY(drupe_pending_settle(node->queue, NULL));
        pthread_mutex_lock(&pending.lock);
        list = list_for(node->queue);
    }
    if (!list) {
        pthread_mutex_unlock(&pending.lock);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for an expression.");
    }
    for (unsigned i = 0; i < node->nin; i++) {
        if (!in[i].array) continue;
        take_array(node, i, in[i].array);
        if (node->in[i].memory) list->bytes += drupe_memory_size(node->in[i].memory);
    }
    node->references = node->arrays = 1;
    list_add(list, node);
    pthread_mutex_unlock(&pending.lock);
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
    if (node) node_free(node);
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

/* Whether some other work that is pending reads the memory of `out`, or reads it in another way. Needs the
 * lock. */
static bool is_read(const drupe_array *out, const drupe_node *last)
{
    const pending_list *list = drupe_pending_list(out->queue);
    for (const drupe_node *node = list ? list->first : NULL; node; node = node->next) {
        for (unsigned i = 0; i < node->nin; i++) {
            const node_input *in = &node->in[i];
            if (in->memory != out->memory) continue;
            if (node != last || in->offset != out->offset || in->dtype != out->dtype ||
                node->ndim != out->ndim)
                return true;
            for (int d = 0; d < out->ndim; d++)
                if (out->shape[d] > 1 && node_strides((drupe_node *)(uintptr_t)node, i)[d] != out->strides[d])
                    return true;
        }
    }
    return false;
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
    pthread_mutex_lock(&pending.lock);
    const bool shared = node->arrays > 1;
    pthread_mutex_unlock(&pending.lock);
    return shared;
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
    pthread_mutex_lock(&pending.lock);
    const bool read = is_read(out, node);
    pthread_mutex_unlock(&pending.lock);
    drupe_array values;
    drupe_array_none(&values);
    become(&values, result);
    if (!read) {
        bool done = false;
        const pending_target there = {.node = result, .spent = true, .array = out, .done = &done};
        *status = drupe_pending_settle(out->queue, &there);
        if (done || *status != DRUPE_OK) {
            drupe_array_clear(&values);
            return true;
        }
    }
    *status = drupe_array_settle(&values);
    if (*status == DRUPE_OK) *status = drupe_array_assign(out, &(drupe_operand){.array = &values});
    drupe_array_clear(&values);
    return true;
}
