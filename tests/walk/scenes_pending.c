/* Arrays that are pending, and work that is held back. */
#include "drupe/array_pending.h"
#include "drupe/postpone.h"
#include "walk.h"

#define SIDE 200 /* so that there are enough elements */

static const size_t shape[2] = {SIDE, SIDE};
static const drupe_scalar two = {.kind = DRUPE_SCALAR_KIND_INT, .i = 2};

/* arrays[i] of 0, 1, 2, ... */
static drupe_status numbered(struct walker *w, int i)
{
    const size_t whole = SIDE * SIDE;
    const drupe_scalar zero = {.kind = DRUPE_SCALAR_KIND_INT}, one = {.kind = DRUPE_SCALAR_KIND_INT, .i = 1};
    drupe_array flat;
    GO(drupe_array_empty(w->queue, DRUPE_MEM_DEVICE, DRUPE_FLOAT32, 2, shape, &w->arrays[i]));
    drupe_array_view(&w->arrays[i], &flat);
    drupe_status status = drupe_array_reshape(&flat, 1, &whole);
    if (status == DRUPE_OK) status = drupe_array_sequence(&flat, zero, one);
    drupe_array_clear(&flat);
    GO(status);
    return DRUPE_OK;
}

static drupe_status doubled(struct walker *w, int from, int to)
{
    GO(drupe_array_apply(DRUPE_OP_MULTIPLY, (drupe_operand[2]){{.array = &w->arrays[from]}, {.scalar = two}},
                         2, &w->arrays[to]));
    return DRUPE_OK;
}

static drupe_status added(struct walker *w, int a, int b, int to)
{
    const drupe_operand in[2] = {{.array = &w->arrays[a]}, {.array = &w->arrays[b]}};
    GO(drupe_array_apply(DRUPE_OP_ADD, in, 2, &w->arrays[to]));
    return DRUPE_OK;
}

/* Whether the last element of arrays[i] is so many times the last one of those that are numbered. */
static drupe_status last_is(struct walker *w, int i, float times)
{
    static float values[SIDE * SIDE];
    drupe_event *event = NULL;
    GO(drupe_array_settle(&w->arrays[i]));
    GO(drupe_array_to_host(&w->arrays[i], values, NULL, &event));
    const drupe_status status = drupe_event_wait(event, LONG);
    drupe_event_release(event);
    GO(status);
    return values[SIDE * SIDE - 1] == times * (SIDE * SIDE - 1) ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* Nodes that are shared, kept and dropped; reductions; what is written in place and into others. */
static drupe_status expressions(struct walker *w)
{
    drupe_look *look;
    GO(walk_open(w));
    GO(numbered(w, 0));
    GO(doubled(w, 0, 1));
    GO(added(w, 1, 0, 2)); /* 3 */
    if (!drupe_array_pending(&w->arrays[2]) || drupe_array_kind(&w->arrays[2]) != DRUPE_MEM_DEVICE)
        return DRUPE_E_INTERNAL;
    GO(drupe_array_look(&w->arrays[2], &look));
    const bool seen = look && look->noperations == 2 && look->narrays == 1 && look->kernels == 1;
    free(look);
    if (!seen) return DRUPE_E_INTERNAL;
    GO(drupe_array_cast(&w->arrays[2], DRUPE_INT32, &w->arrays[3]));
    GO(drupe_array_reduce(DRUPE_OP_SUM, &w->arrays[2], 2, false, DRUPE_DTYPE_NONE, &w->arrays[4]));
    GO(drupe_array_reduce_over(DRUPE_OP_MAX, &w->arrays[2], 3, false, DRUPE_DTYPE_NONE, false,
                               &w->arrays[5]));
    drupe_array_clear(&w->arrays[4]);
    drupe_array_clear(&w->arrays[3]);
    GO(added(w, 2, 1, 3)); /* 5 */
    GO(added(w, 3, 2, 3)); /* 8, in place of what is pending */
    GO(drupe_array_assign(&w->arrays[0], &(drupe_operand){.array = &w->arrays[3]}));
    GO(last_is(w, 0, 8));
    GO(last_is(w, 2, 3));
    GO(added(w, 2, 0, 0)); /* 11, where one operand is */
    GO(last_is(w, 0, 11));
    GO(last_is(w, 3, 8));
    return drupe_array_pending(&w->arrays[0]) ? DRUPE_E_INTERNAL : DRUPE_OK;
}

/* A long chain, whose list is full now and then, and one that is dropped. */
static drupe_status chains(struct walker *w)
{
    GO(walk_open(w));
    GO(numbered(w, 0));
    GO(doubled(w, 0, 1));
    drupe_array_view(&w->arrays[1], &w->arrays[2]);
    for (int k = 0; k < 60; k++) {
        GO(added(w, 2, 0, 3));
        drupe_array_clear(&w->arrays[2]);
        w->arrays[2] = w->arrays[3];
        drupe_array_none(&w->arrays[3]);
    }
    GO(last_is(w, 2, 62));
    GO(doubled(w, 0, 3));
    GO(doubled(w, 3, 4));
    drupe_array_clear(&w->arrays[4]);
    drupe_array_clear(&w->arrays[3]);
    drupe_array_eager(1);
    drupe_status status = doubled(w, 0, 4);
    drupe_array_eager(-1);
    GO(status);
    drupe_array_fuse(1);
    status = doubled(w, 4, 5);
    drupe_array_fuse(-1);
    GO(status);
    if (!drupe_array_pending(&w->arrays[5])) return DRUPE_E_INTERNAL;
    return drupe_array_pending(&w->arrays[4]) ? DRUPE_E_INTERNAL : last_is(w, 4, 2);
}

/* What has to notice what is held back. */
static drupe_status noticed(struct walker *w)
{
    drupe_origin here;
    char place[64];
    const float seven = 7;
    GO(walk_open(w));
    GO(drupe_queue_open(w->context, w->device, 0, &w->aside));
    GO(numbered(w, 0));
    GO(doubled(w, 0, 1));
    if (drupe_memory_exposed(w->arrays[0].memory)) return DRUPE_E_INTERNAL;
    if (drupe_memory_only(w->arrays[0].memory, 1, w->queue))
        return DRUPE_E_INTERNAL; /* the node has it, too */
    const drupe_submission there = {.queue = w->aside};
    GO(drupe_submit_fill(&there, drupe_array_pointer(&w->arrays[0]), &seven, sizeof seven,
                         SIDE * SIDE * sizeof seven, &w->events[0]));
    if (drupe_array_pending(&w->arrays[1])) return DRUPE_E_INTERNAL;
    GO(drupe_event_wait(w->events[0], LONG));
    GO(doubled(w, 0, 2));
    GO(drupe_queue_wait(w->queue, LONG));
    if (drupe_array_pending(&w->arrays[2])) return DRUPE_E_INTERNAL;
    GO(doubled(w, 1, 3));
    GO(doubled(w, 2, 4));
    GO(drupe_array_settle_all());
    if (drupe_array_pending(&w->arrays[3]) || drupe_array_pending(&w->arrays[4])) return DRUPE_E_INTERNAL;
    drupe_origin_here(&here);
    drupe_origin_text(&here, place, sizeof place);
    const drupe_origin *before = drupe_origin_enter(&here);
    drupe_status status = doubled(w, 3, 5);
    drupe_origin_enter(before);
    drupe_origin_release(&here);
    GO(status);
    GO(drupe_postponed_flush(w->queue));
    if (drupe_array_pending(&w->arrays[5])) return DRUPE_E_INTERNAL;
    drupe_array_clear(&w->arrays[5]);
    GO(doubled(w, 3, 5));
    GO(drupe_queue_pause(w->queue, 1000));
    drupe_memory_postpone(w->arrays[0].memory, 1); /* work of nobody */
    drupe_memory_postpone(w->arrays[0].memory, -1);
    drupe_queue_postpone(w->queue, true);
    return DRUPE_OK; /* arrays[5] is dropped while it is pending */
}

const walk_scene walk_pending_scenes[] = {{"expressions", expressions, true},
                                          {"chains", chains, true},
                                          {"noticed", noticed, true},
                                          {NULL, NULL, false}};
