/* Nodes and their lists: how they are held and dropped. */
#include "array/node.h"
#include "drupe/array_pending.h"
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    pending_list *lists; /* of queues with nodes */
    bool forked;         /* this process is a child of one that had settings */
} pending = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

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

/* --- Forks ---------------------------------------------------------------------------------------------- */

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

static void watch_forks(void)
{
    (void)pthread_atfork(drupe_pending_lock, drupe_pending_unlock, fork_child);
}

void drupe_nodes_open(void)
{
    pthread_once(&pending.once, watch_forks);
}

bool drupe_pending_forked(void)
{
    return pending.forked;
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

pending_list *drupe_pending_list_for(drupe_queue *queue)
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

void drupe_pending_list_add(pending_list *list, drupe_node *node)
{
    node->before = list->last;
    node->next = NULL;
    *(list->last ? &list->last->next : &list->first) = node;
    list->last = node;
    list->count++;
    drupe_queue_postpone(list->queue, true);
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

void drupe_node_free(drupe_node *node)
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
        drupe_node_free(dead);
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

drupe_status drupe_node_take_values(drupe_array *array)
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
