/* Settling: what is pending on a queue becomes submissions. */
#include "array/node.h"
#include "drupe/park.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLICE_NS    UINT64_C(1000000) /* between looks at whether another thread is done */
#define REST_NS     20000
#define CIRCLE_MOST 100 /* threads that wait one for the other; of more none is missed for long */

/* --- One at a time ---------------------------------------------------------------------------------------
 */

static bool is_own(const pending_list *list)
{
    return list->settling && pthread_equal(list->settler, pthread_self());
}

/* Whether this thread settles the list, or who does waits for this thread, perhaps by way of others. Needs
 * the lock. */
static bool is_circular(const pending_list *list)
{
    for (int steps = 0; list && steps < CIRCLE_MOST; steps++) {
        if (is_own(list)) return true;
        list = list->settling && list->awaits ? drupe_pending_list(list->awaits) : NULL;
    }
    return false;
}

/* What this thread settles waits for that queue; NULL: for none. Needs the lock. */
static void await(const drupe_queue *queue)
{
    for (pending_list *list = drupe_pending_lists(); list; list = list->next)
        if (is_own(list)) list->awaits = queue;
}

/* A pause is over at once while the queue has nothing to do, and the other thread may build kernels. */
static drupe_status pause_some(drupe_queue *queue)
{
    const uint64_t before = drupe_now_ns();
    const drupe_status status = drupe_queue_pause(queue, SLICE_NS);
    if (drupe_now_ns() - before < REST_NS) nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    return status;
}

/* Begin to settle the list, once no other thread does. Needs the lock, which is given up meanwhile. NULL:
 * nothing is pending any more, or this thread is at it already, or the other one waits for this one: then
 * `*circular`. */
static pending_list *begin(drupe_queue *queue, drupe_status *status, bool *circular)
{
    pending_list *list = drupe_pending_list(queue);
    while (list && list->settling) {
        *circular = is_circular(list);
        if (*circular) return NULL;
        await(queue);
        drupe_pending_unlock();
        *status = pause_some(queue);
        drupe_pending_lock();
        await(NULL);
        if (*status == DRUPE_E_CANCELLED) return NULL;
        *status = DRUPE_OK;
        list = drupe_pending_list(queue);
    }
    if (!list) return NULL;
    list->settling = true;
    list->settler = pthread_self();
    list->bytes = 0;
    return list;
}

/* --- The end of a kernel's nodes --------------------------------------------------------------------------
 */

/* False: there is no memory for that. It stays pending, and fails again. */
static bool node_fail(drupe_node *node)
{
    node->error = malloc(sizeof *node->error);
    if (!node->error) return false;
    *node->error = *drupe_error_last();
    node->state = NODE_FAILED;
    return true;
}

/* Whether trying again may help. */
static bool is_passing(drupe_status status)
{
    return status == DRUPE_E_CANCELLED || status == DRUPE_E_NO_MEMORY || status == DRUPE_E_BUSY;
}

/* What has become memory is memory to those that take it. */
static void input_settled(node_input *in, drupe_node **gone)
{
    drupe_node *node = in->node;
    if (!node || node->state != NODE_SETTLED) return;
    in->memory = drupe_memory_retain(node->memory);
    drupe_memory_postpone(in->memory, 1);
    in->node = NULL;
    if (--node->references) return;
    node->next = *gone;
    *gone = node;
}

/* Back into the list, ahead of what has come since. */
static void put_back(pending_list *list, drupe_node *node)
{
    node->state = NODE_PENDING;
    node->output = false;
    node->before = NULL;
    node->next = list->first;
    *(list->first ? &list->first->before : &list->last) = node;
    list->first = node;
    list->count++;
}

/* What was not submitted is pending again. Needs the lock, which is given up. */
static void finish(pending_list *list, pending_plan *plan)
{
    drupe_node *gone = NULL;
    for (int i = plan->count; i-- > 0;)
        if (plan->nodes[i]->state == NODE_SETTLING) put_back(list, plan->nodes[i]);
    for (int i = 0; i < plan->count; i++)
        if (plan->nodes[i]->state >= NODE_SETTLED) drupe_node_let_inputs(plan->nodes[i], &gone);
    for (drupe_node *node = list->first; node; node = node->next)
        for (unsigned k = 0; k < node->nin; k++) input_settled(&node->in[k], &gone);
    for (int i = 0; i < plan->count; i++) {
        drupe_node *node = plan->nodes[i];
        if (--node->references) continue;
        if (node->state == NODE_PENDING) drupe_pending_list_remove(list, node);
        node->next = gone;
        gone = node;
    }
    list->settling = false;
    list->plan = NULL;
    drupe_queue_postpone(list->queue, list->first != NULL);
    drupe_pending_list_tidy(list);
    drupe_nodes_free(gone);
}

/* --- All of it -------------------------------------------------------------------------------------------
 */

/* Whether a node that this kernel takes has failed; then that is the thread's error. */
static bool takes_failed(const pending_plan *plan, int from, int to)
{
    for (int i = from; i < to; i++) {
        const drupe_node *node = plan->nodes[i];
        for (unsigned k = 0; k < node->nin; k++) {
            if (!node->in[k].node || node->in[k].node->state != NODE_FAILED) continue;
            drupe_error_restore(node->in[k].node->error);
            return true;
        }
    }
    return false;
}

/* `keep`: only the outputs are settled. All else was computed for a reduction, and is pending as before.
 * False: a failure could not be noted. */
static bool kernel_done(const pending_plan *plan, int from, int to, drupe_status status, bool keep)
{
    bool noted = true;
    drupe_pending_lock();
    for (int i = from; i < to; i++) {
        if (status == DRUPE_OK && keep && !plan->nodes[i]->output) continue;
        if (status == DRUPE_OK)
            plan->nodes[i]->state = NODE_SETTLED;
        else
            noted = node_fail(plan->nodes[i]) && noted;
    }
    drupe_pending_unlock();
    return noted;
}

static drupe_status run(const pending_plan *plan, const pending_target *target)
{
    for (int from = 0, to; from < plan->count; from = to) {
        for (to = from + 1; to < plan->count && plan->nodes[to]->kernel == plan->nodes[from]->kernel;) to++;
        const bool failed = takes_failed(plan, from, to);
        drupe_status status = failed ? drupe_error_last()->status : drupe_fuse_submit(plan, from, to, target);
        if (status != DRUPE_OK && is_passing(status)) return status;
        const bool wanted = target && target->node->kernel == plan->nodes[from]->kernel;
        const bool noted =
            kernel_done(plan, from, to, status, wanted && target->reduction && !target->node->output);
        if (status != DRUPE_OK && (wanted || !noted)) return status;
        if (wanted) *target->done = true;
        if (wanted && target->then) DRUPE_TRY(target->then(target->user));
    }
    return DRUPE_OK;
}

/* What one plan holds of it. `rest`: of what was pending at first, how many are left; 0 at first, and when
 * there is nothing to be done any more. */
static drupe_status settle_some(drupe_queue *queue, const pending_target *target, unsigned *rest,
                                bool *circular)
{
    pending_plan plan;
    drupe_status status = DRUPE_OK;
    drupe_pending_lock();
    pending_list *list = begin(queue, &status, circular);
    if (!list) {
        *rest = 0;
        drupe_pending_unlock();
        return status;
    }
    const unsigned all = *rest ? *rest : list->count;
    drupe_plan_make(list, target, &plan);
    list->plan = &plan;
    *rest = all > (unsigned)plan.count ? all - (unsigned)plan.count : 0;
    /* Another thread may have settled it, or it is behind what fits the plan. */
    if (target && (*target->done || target->node->state != NODE_SETTLING)) target = NULL;
    if (target && !target->reduction && !drupe_plan_lets(&plan, list, target)) {
        target->node->output = true;
        target = NULL;
    }
    drupe_pending_unlock();
    drupe_queue_retain(queue); /* it may go with the last node */
    const drupe_origin *before = drupe_origin_enter(NULL);
    drupe_park_hold(); /* kernels are described by addresses before their results have memory */
    status = run(&plan, target);
    drupe_park_let_go();
    drupe_error kept = *drupe_error_last();
    drupe_origin_enter(before);
    drupe_pending_lock();
    finish(list, &plan);
    drupe_queue_release(queue);
    if (status != DRUPE_OK) drupe_error_restore(&kept);
    return status;
}

static drupe_status settle(drupe_queue *queue, const pending_target *target, bool *circular)
{
    unsigned rest = 0;
    *circular = false;
    drupe_status status = settle_some(queue, target, &rest, circular);
    while (status == DRUPE_OK && rest) status = settle_some(queue, target, &rest, circular);
    return status;
}

drupe_status drupe_pending_settle(drupe_queue *queue, const pending_target *target)
{
    bool circular;
    if (drupe_pending_forked()) DRUPE_TRY(drupe_queue_pace(queue)); /* tells so */
    drupe_queue_retain(queue);                                      /* it may be that of the nodes alone */
    const drupe_status status = settle(queue, target, &circular);
    drupe_queue_release(queue);
    return status;
}

/* --- One array ------------------------------------------------------------------------------------------ */

drupe_status drupe_array_settle(const drupe_array *array)
{
    drupe_array *own =
        (drupe_array *)(uintptr_t)array; /* the same array, seen after its values were asked for */
    for (int tries = 0; own->node; tries++) {
        drupe_pending_lock();
        if (own->node && own->node->state >= NODE_SETTLED) return drupe_node_take_values(own);
        drupe_pending_unlock();
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
        if (in[i].array && in[i].array->node) DRUPE_TRY(drupe_array_settle(in[i].array));
    return DRUPE_OK;
}

/* --- For core ------------------------------------------------------------------------------------------- */

static bool node_reads(const drupe_node *node, const drupe_memory *memory)
{
    for (unsigned i = 0; i < node->nin; i++)
        if (node->in[i].memory == memory) return true;
    return false;
}

static bool reads(const pending_list *list, const drupe_memory *memory)
{
    for (const drupe_node *node = list->first; node; node = node->next)
        if (node_reads(node, memory)) return true;
    for (int i = 0; list->plan && i < list->plan->count; i++)
        if (node_reads(list->plan->nodes[i], memory)) return true;
    return false;
}

/* A queue, retained, that holds work back: which reads the memory, unless that is NULL. */
static drupe_queue *find_queue(const drupe_memory *memory)
{
    drupe_queue *queue = NULL;
    drupe_pending_lock();
    for (pending_list *list = drupe_pending_lists(); list && !queue; list = list->next) {
        if (is_own(list)) continue;
        if (!memory || reads(list, memory)) queue = drupe_queue_retain(list->queue);
    }
    drupe_pending_unlock();
    return queue;
}

static drupe_status settle_readers(drupe_memory *memory)
{
    drupe_queue *queue;
    drupe_status status = DRUPE_OK;
    /* Where two threads wait for each other their order is not known, and one goes on. */
    for (bool circular = false; status == DRUPE_OK && !circular && (queue = find_queue(memory));) {
        status = settle(queue, NULL, &circular);
        drupe_queue_release(queue);
    }
    return status;
}

static drupe_status settle_queue(drupe_queue *queue)
{
    return drupe_pending_settle(queue, NULL);
}

static const drupe_postponer postponer = {settle_queue, settle_readers};

void drupe_pending_open(void)
{
    drupe_postpone_by(&postponer);
}

drupe_status drupe_array_settle_all(void)
{
    return settle_readers(NULL);
}
