/* Queues, events, submissions that need no program. */
#include "walk.h"
#include <time.h>

static drupe_status nothing(void *user)
{
    (void)user;
    return DRUPE_OK;
}

static drupe_status refuse(void *user)
{
    (void)user;
    return drupe_error_set(DRUPE_E_INVALID, "The host function refuses, as planned.");
}

static drupe_status open_all(struct walker *w)
{
    GO(walk_open(w));
    GO(drupe_queue_open(w->context, w->device, DRUPE_QUEUE_PROFILING, &w->timed));
    GO(drupe_device_queue(w->device, &w->aside));
    drupe_queue *same = drupe_queue_retain(w->aside);
    bool right = drupe_queue_device(same) == w->device && drupe_queue_context(same) != NULL &&
                 drupe_queue_flags_of(same) == 0 && !drupe_queue_last(same) &&
                 drupe_queue_pending(same) == 0 && drupe_queue_number(same) != drupe_queue_number(w->timed);
    drupe_queue_release(same);
    drupe_queue *listed[16];
    drupe_event *blockers[4];
    size_t nlisted = drupe_queue_list(listed, COUNT(listed));
    for (size_t i = 0; i < nlisted; i++) drupe_queue_release(listed[i]);
    right = right && nlisted >= 2 && drupe_queue_blockers(w->queue, blockers, COUNT(blockers)) == 0;
    (void)drupe_queue_profile(drupe_queue_profile(false));
    void *handle;
    drupe_status status = drupe_queue_native(w->queue, &handle);
    if (status != DRUPE_E_UNSUPPORTED) GO(status);
    REFUSED(drupe_queue_open(w->context, w->device, 1u << 30, &same), DRUPE_E_INVALID);
    return right ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static drupe_status times(struct walker *w)
{
    drupe_times measured;
    GO(walk_open(w));
    GO(drupe_queue_open(w->context, w->device, DRUPE_QUEUE_PROFILING, &w->timed));
    drupe_submission s = {.queue = w->timed};
    GO(drupe_submit_barrier(&s, &w->events[0]));
    GO(drupe_event_wait(w->events[0], LONG));
    drupe_status status = drupe_event_times(w->events[0], &measured);
    if (status != DRUPE_E_UNSUPPORTED) GO(status);
    drupe_event *same = drupe_event_retain(w->events[0]);
    bool right = drupe_event_queue(same) == w->timed && drupe_event_state_of(same) == DRUPE_EVENT_COMPLETE &&
                 drupe_event_error(same) == NULL;
    drupe_event_release(same);
    GO(drupe_queue_wait(w->timed, LONG));
    return right ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* Fill, copy there and back, on two queues that wait for each other. */
static drupe_status move(struct walker *w)
{
    GO(walk_open_memory(w));
    GO(drupe_queue_open(w->context, w->device, 0, &w->aside));
    size_t size = ELEMENTS * sizeof(double);
    w->bytes[0] = malloc(size);
    w->bytes[1] = calloc(1, size);
    if (!w->bytes[0] || !w->bytes[1]) return DRUPE_E_NO_MEMORY;
    memset(w->bytes[0], 7, size);
    void *a = drupe_memory_pointer(w->memory[0]), *b = drupe_memory_pointer(w->memory[1]);
    drupe_submission s = {.queue = w->queue}, behind = {.queue = w->aside};
    GO(drupe_submit_copy(&s, a, w->bytes[0], size, &w->events[0]));
    behind.waits = &w->events[0];
    behind.nwaits = 1;
    GO(drupe_submit_copy(&behind, b, a, size, &w->events[1]));
    s.waits = &w->events[1];
    s.nwaits = 1;
    GO(drupe_submit_copy(&s, w->bytes[1], b, size, &w->events[2]));
    GO(drupe_event_wait(w->events[2], LONG));
    if (memcmp(w->bytes[0], w->bytes[1], size) != 0) return DRUPE_E_INTERNAL;
    s.nwaits = 0;
    s.sound = true;
    bool quiet = drupe_queue_quiet(w->queue);
    bool copied = drupe_copy_at_once(&s, a, w->bytes[0], 64, NULL); /* where the device is the host */
    if (copied && (!quiet || memcmp(a, w->bytes[0], 64) != 0)) return DRUPE_E_INTERNAL;
    GO(drupe_submit_fill(&s, a, "abcd", 4, 4096, &w->events[3]));
    GO(drupe_submit_prefetch(&s, b, size, &w->events[4]));
    GO(drupe_submit_advise(&s, b, size, 0, &w->events[5]));
    REFUSED(drupe_submit_copy(&s, a, b, 2 * size, NULL), DRUPE_E_OUT_OF_RANGE);
    GO(drupe_queue_wait(w->queue, LONG));
    drupe_queue_collect(w->queue);
    return DRUPE_OK;
}

/* Without events: references are dropped when a marker is over. */
static drupe_status silent(struct walker *w)
{
    GO(walk_open_memory(w));
    drupe_submission s = {.queue = w->queue};
    for (int i = 0; i < 70; i++) {
        GO(drupe_queue_pace(w->queue));
        GO(drupe_queue_pace_heavy(w->queue, 1e9));
        drupe_keep keep = {malloc(8), free};
        s.keeps = &keep;
        s.nkeeps = 1;
        GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[i % 2]), "x", 1, 64, NULL));
    }
    GO(drupe_queue_wait(w->queue, LONG));
    return DRUPE_OK;
}

static drupe_status host_functions(struct walker *w)
{
    GO(walk_open(w));
    GO(drupe_queue_open(w->context, w->device, 0, &w->aside));
    drupe_submission s = {.queue = w->queue}, behind = {.queue = w->aside};
    GO(drupe_submit_host(&s, nothing, w, &w->events[0]));
    behind.waits = &w->events[0];
    behind.nwaits = 1;
    GO(drupe_submit_barrier(&behind, &w->events[1]));
    GO(drupe_submit_host(&behind, nothing, w, NULL));
    GO(drupe_event_wait(w->events[1], LONG));
    GO(drupe_queue_wait(w->aside, LONG));
    return DRUPE_OK;
}

static void leave(void *object)
{
    (void)object;
}

/* Where it is left to the caller, nothing has happened. */
static drupe_status host_call(struct walker *w)
{
    _Alignas(16) char bytes[16] = "bytes";
    drupe_status status = DRUPE_OK;
    GO(walk_open_memory(w));
    const drupe_submission s = {.queue = w->queue};
    const drupe_host_call call = {.fn = nothing,
                                  .bytes = bytes,
                                  .size = sizeof bytes,
                                  .memories = w->memory,
                                  .nmemories = 1,
                                  .name = "call of the scene",
                                  .object = w,
                                  .hold = leave,
                                  .drop = leave};
    if (drupe_submit_host_call(&s, &call, &w->events[0], &status)) GO(status);
    if (w->events[0]) GO(drupe_event_wait(w->events[0], LONG));
    return DRUPE_OK;
}

/* A failure of the scene's own: what stands behind it does not run, and the queue works again. */
static drupe_status failures(struct walker *w)
{
    drupe_failure failure;
    GO(walk_open(w));
    drupe_submission s = {.queue = w->queue, .label = "refusing"};
    GO(drupe_submit_host(&s, refuse, w, &w->events[0]));
    GO(drupe_submit_barrier(&s, &w->events[1]));
    REFUSED(drupe_event_wait(w->events[1], LONG), DRUPE_E_DEPENDENCY);
    REFUSED(drupe_event_wait(w->events[0], LONG), DRUPE_E_INVALID);
    if (!drupe_event_error(w->events[0])) return DRUPE_E_INTERNAL;
    if (drupe_event_submission(w->events[0]) >= drupe_event_submission(w->events[1])) return DRUPE_E_INTERNAL;
    drupe_status status = drupe_queue_wait(w->queue, LONG); /* the failure, unless it was reported above */
    if (status != DRUPE_OK && status != DRUPE_E_INVALID) return walk_heard(status, "drupe_queue_wait");
    GO(drupe_submit_host(&s, refuse, w, NULL));
    for (int i = 0; i < 2000 && drupe_queue_pending(w->queue); i++) {
        if (drupe_queue_idle(w->queue, SECOND)) drupe_queue_collect(w->queue);
    }
    if (drupe_failure_take(&failure)) free(failure.cell);
    return DRUPE_OK;
}

static drupe_status out_of_order(struct walker *w)
{
    GO(walk_open_memory(w));
    GO(drupe_queue_open(w->context, w->device, DRUPE_QUEUE_OUT_OF_ORDER | DRUPE_QUEUE_PRIORITY_LOW,
                        &w->aside));
    drupe_submission s = {.queue = w->aside};
    GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[0]), "a", 1, 4096, &w->events[0]));
    GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[1]), "b", 1, 4096, &w->events[1]));
    s.waits = w->events;
    s.nwaits = 2;
    GO(drupe_submit_copy(&s, drupe_memory_pointer(w->memory[1]), drupe_memory_pointer(w->memory[0]), 4096,
                         &w->events[2]));
    size_t count;
    drupe_event *waits[4] = {NULL};
    drupe_status status = drupe_event_waits(w->events[2], waits, COUNT(waits), &count);
    for (size_t i = 0; i < COUNT(waits); i++) drupe_event_release(waits[i]);
    GO(status);
    s.nwaits = 0;
    GO(drupe_submit_barrier(&s, &w->events[3]));
    GO(drupe_event_wait(w->events[3], LONG));
    GO(drupe_queue_wait(w->aside, LONG));
    return DRUPE_OK;
}

static void wake(void *user)
{
    (void)user;
}

/* Device work behind an event of the caller's, both watched. */
static drupe_status watched(struct walker *w)
{
    GO(walk_open(w));
    GO(drupe_watch_open(wake, w, &w->watch));
    GO(drupe_event_open("of the scene", 0, &w->events[0]));
    drupe_submission s = {.queue = w->queue, .waits = w->events, .nwaits = 1};
    GO(drupe_submit_host(&s, nothing, w, &w->events[1]));
    for (int i = 0; i < 2; i++) GO(drupe_watch_add(w->watch, w->events[i], NULL));
    GO(drupe_event_finish(w->events[0], NULL));
    GO(drupe_event_wait(w->events[1], LONG));
    drupe_event *over;
    void *user;
    for (int i = 0, left = 2; i < 2000 && left && drupe_watch_fd(w->watch) >= 0; i++) {
        bool taken = drupe_watch_take(w->watch, &over, &user);
        if (taken) drupe_event_release(over);
        left -= taken;
        drupe_queue_collect(w->queue);
    }
    GO(drupe_event_open("that fails", 0, &w->events[2]));
    const drupe_error bad = {.status = DRUPE_E_INVALID, .text = "The event of the scene fails, as planned."};
    GO(drupe_event_finish(w->events[2], &bad));
    REFUSED(drupe_event_wait(w->events[2], LONG), DRUPE_E_INVALID);
    return DRUPE_OK;
}

/* Work of the caller's own, with its place on the queue. */
static drupe_status turns(struct walker *w)
{
    drupe_event *come = NULL;
    void *user;
    GO(walk_open(w));
    GO(drupe_watch_open(NULL, NULL, &w->watch));
    drupe_submission s = {.queue = w->queue};
    GO(drupe_submit_turn(&s, &w->turn));
    GO(drupe_submit_barrier(&s, &w->events[0]));
    GO(drupe_watch_turn(w->watch, w->turn, w));
    for (time_t end = time(NULL) + 30; time(NULL) < end && !come;) {
        if (!drupe_watch_take(w->watch, &come, &user)) drupe_queue_collect(w->queue);
    }
    drupe_event_release(come);
    GO(drupe_event_finish(w->turn, NULL));
    GO(drupe_event_wait(w->events[0], LONG));
    return DRUPE_OK;
}

static drupe_status cancelled(struct walker *w)
{
    size_t left, given_up;
    GO(walk_open_memory(w));
    GO(drupe_event_open(NULL, 0, &w->events[0]));
    drupe_submission s = {.queue = w->queue, .waits = w->events, .nwaits = 1};
    GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[0]), "x", 1, 64, &w->events[1]));
    GO(drupe_queue_cancel(w->queue, &left, &given_up));
    GO(drupe_event_finish(w->events[0], NULL));
    REFUSED(drupe_event_wait(w->events[1], LONG), DRUPE_E_CANCELLED);
    GO(drupe_queue_wait(w->queue, LONG));
    return DRUPE_OK;
}

static bool accept(const drupe_failure *failure, void *user)
{
    (void)user;
    return failure->error.status != DRUPE_OK;
}

static drupe_status told(struct walker *w)
{
    drupe_failure own, cause;
    GO(walk_open(w));
    drupe_submission s = {.queue = w->queue, .label = "refusing"};
    GO(drupe_submit_host(&s, refuse, w, &w->events[0]));
    GO(drupe_submit_barrier(&s, &w->events[1]));
    REFUSED(drupe_event_wait(w->events[1], LONG), DRUPE_E_DEPENDENCY);
    (void)drupe_failure_last(&own, &cause);
    if (!drupe_event_failure(w->events[0], &own, &cause)) return DRUPE_E_INTERNAL;
    if (drupe_failure_take_for(accept, w, &own)) free(own.cell);
    static drupe_failure_note notes[2];
    size_t count = drupe_failures_read(0, notes, COUNT(notes));
    if (count == 0 || notes[0].id == 0 || notes[0].failure.cell) return DRUPE_E_INTERNAL;
    return DRUPE_OK;
}

const walk_scene walk_queue_scenes[] = {{"queues", open_all, false},
                                        {"times", times, false},
                                        {"move", move, false},
                                        {"silent", silent, false},
                                        {"host functions", host_functions, false},
                                        {"host call", host_call, false},
                                        {"failures", failures, false},
                                        {"out of order", out_of_order, false},
                                        {"watched", watched, false},
                                        {"told", told, false},
                                        {"turns", turns, false},
                                        {"cancelled", cancelled, false},
                                        {NULL, NULL, false}};
