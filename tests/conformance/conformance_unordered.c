/* Out-of-order queues: what waits and barriers order, and what a failure stops. */
#include "conformance.h"
#include <sched.h>
#include <semaphore.h>

#define N 64

static drupe_queue *open_unordered(struct bench *bench)
{
    drupe_queue *queue;
    OK(drupe_queue_open(bench->context, bench->device, DRUPE_QUEUE_OUT_OF_ORDER, &queue));
    assert_int_equal(drupe_queue_flags_of(queue), DRUPE_QUEUE_OUT_OF_ORDER);
    return queue;
}

static drupe_memory *filled(struct bench *bench, uint64_t value)
{
    drupe_memory *memory = new_memory(bench->queue, DRUPE_MEM_DEVICE, N * 8);
    fill_u64(bench->queue, memory, value, N);
    OK(drupe_queue_wait(bench->queue, DRUPE_FOREVER));
    return memory;
}

static void release_events(drupe_event **events, size_t count)
{
    for (size_t i = 0; i < count; i++) drupe_event_release(events[i]);
}

static void waits_order(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queue = open_unordered(b);
    drupe_memory *memory = filled(b, 1), *other = filled(b, 7);
    drupe_event *last = NULL, *noise = NULL;
    uint64_t value = 1;
    for (uint64_t i = 0; i < 40; i++) {
        drupe_event *next, *more;
        OK(submit_mad(b, queue, memory, memory, N, 3, i, &last, last ? 1 : 0, &next));
        OK(submit_mad(b, queue, other, other, i % 2 ? N : 0, 1, 0, &noise, noise ? 1 : 0, &more));
        drupe_event_release(last);
        drupe_event_release(noise);
        last = next;
        noise = more;
        value = value * 3 + i;
    }
    OK(drupe_event_wait(last, DRUPE_FOREVER));
    expect_u64(b->queue, memory, value, N);
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    expect_u64(b->queue, other, 7, N);
    assert_int_equal(drupe_queue_pending(queue), 0);
    drupe_event_release(last);
    drupe_event_release(noise);
    drupe_memory_release(memory);
    drupe_memory_release(other);
    drupe_queue_release(queue);
}

/* What is not ordered overtakes what is held; a barrier and what follows it do not. */
static void overtakes_held(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queue = open_unordered(b);
    drupe_memory *memory = filled(b, 5), *free_memory = filled(b, 1);
    drupe_event *opened, *held, *free_event, *barrier, *behind;
    OK(drupe_event_open("signal", 0, &opened));
    OK(submit_mad(b, queue, memory, memory, N, 2, 0, &opened, 1, &held));
    OK(submit_mad(b, queue, free_memory, free_memory, N, 1, 1, NULL, 0, &free_event));
    OK(drupe_event_wait(free_event, DRUPE_FOREVER));
    assert_int_equal(drupe_event_state_of(held), DRUPE_EVENT_QUEUED);
    drupe_submission s = {.queue = queue};
    OK(drupe_submit_barrier(&s, &barrier));
    OK(submit_mad(b, queue, memory, memory, N, 1, 1, NULL, 0, &behind));
    FAILS(drupe_event_wait(behind, 30000000), DRUPE_E_TIMEOUT, "");
    FAILS(drupe_queue_wait(queue, 1000000), DRUPE_E_TIMEOUT, "");
    assert_int_equal(drupe_queue_pending(queue), 3);
    OK(drupe_event_finish(opened, NULL));
    OK(drupe_event_wait(behind, DRUPE_FOREVER));
    assert_int_equal(drupe_event_state_of(held), DRUPE_EVENT_COMPLETE);
    assert_int_equal(drupe_event_state_of(barrier), DRUPE_EVENT_COMPLETE);
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    expect_u64(b->queue, memory, 11, N);
    expect_u64(b->queue, free_memory, 2, N);
    drupe_event *events[] = {opened, held, free_event, barrier, behind};
    release_events(events, COUNT(events));
    drupe_memory_release(memory);
    drupe_memory_release(free_memory);
    drupe_queue_release(queue);
}

static void failure_dooms_dependents(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queue = open_unordered(b);
    drupe_memory *memory = filled(b, 5), *free_memory = filled(b, 1);
    drupe_event *opened, *failing, *dependent, *free_event, *barrier, *behind, *after;
    OK(drupe_event_open(NULL, 0, &opened));
    struct gate gate;
    gate_init(&gate);
    gate.result = DRUPE_E_OUT_OF_RANGE;
    failing = submit_gate(queue, &gate);
    OK(submit_mad(b, queue, memory, memory, N, 2, 0, &failing, 1, &dependent));
    gate_open(&gate);
    OK(submit_mad(b, queue, free_memory, free_memory, N, 1, 1, NULL, 0, &free_event));
    drupe_submission s = {.queue = queue};
    OK(drupe_submit_barrier(&s, &barrier));
    OK(submit_mad(b, queue, memory, memory, N, 1, 1, NULL, 0, &behind));
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    assert_non_null(strstr(drupe_error_last()->text, "'gate'"));
    FAILS(drupe_event_wait(barrier, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    FAILS(drupe_event_wait(dependent, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    OK(drupe_event_wait(free_event, DRUPE_FOREVER));
    FAILS(drupe_event_wait(failing, DRUPE_FOREVER), DRUPE_E_OUT_OF_RANGE, PLANNED);
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    /* Reported: the queue works again, behind the barrier too. */
    OK(submit_mad(b, queue, memory, memory, N, 1, 1, NULL, 0, &after));
    OK(drupe_event_wait(after, DRUPE_FOREVER));
    expect_u64(b->queue, memory, 6, N);
    expect_u64(b->queue, free_memory, 2, N);
    drupe_event *events[] = {opened, failing, dependent, free_event, barrier, behind, after};
    release_events(events, COUNT(events));
    drupe_memory_release(memory);
    drupe_memory_release(free_memory);
    drupe_queue_release(queue);
    gate_destroy(&gate);
}

/* A barrier that is submitted when the failure is over already. */
static void barrier_behind_old_failure(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queue = open_unordered(b);
    drupe_event *failing = submit_failure(queue, "early"), *free_event, *barrier, *behind;
    drupe_failure failure;
    while (drupe_event_state_of(failing) != DRUPE_EVENT_FAILED) drupe_queue_collect(queue);
    drupe_submission s = {.queue = queue};
    drupe_memory *memory = filled(b, 1);
    OK(submit_mad(b, queue, memory, memory, N, 1, 1, NULL, 0, &free_event));
    OK(drupe_event_wait(free_event, DRUPE_FOREVER));
    OK(drupe_submit_barrier(&s, &barrier));
    OK(submit_mad(b, queue, memory, memory, N, 1, 1, NULL, 0, &behind));
    assert_int_equal(drupe_event_error(barrier)->status, DRUPE_E_DEPENDENCY);
    assert_int_equal(drupe_event_error(behind)->status, DRUPE_E_DEPENDENCY);
    assert_true(drupe_failure_take(&failure));
    assert_string_equal(failure.label, "early");
    assert_false(drupe_failure_take(&failure));
    OK(submit_mad(b, queue, memory, memory, N, 1, 1, NULL, 0, NULL));
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    expect_u64(b->queue, memory, 3, N);
    drupe_event *events[] = {failing, free_event, barrier, behind};
    release_events(events, COUNT(events));
    drupe_memory_release(memory);
    drupe_queue_release(queue);
}

static void failures_of_their_own(struct suite *suite)
{
    drupe_queue *queue = open_unordered(&suite->bench);
    drupe_event *first = submit_failure(queue, "first"), *second = submit_failure(queue, "second");
    FAILS(drupe_queue_wait(queue, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    FAILS(drupe_queue_wait(queue, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    drupe_failure failure;
    assert_false(drupe_failure_take(&failure));
    drupe_event_release(first);
    drupe_event_release(second);
    drupe_queue_release(queue);
}

static void waits_across_contexts(struct suite *suite)
{
    struct bench *b = &suite->bench, *other = use_other(suite);
    drupe_queue *queue = open_unordered(b), *foreign = open_unordered(other);
    drupe_memory *memory = filled(b, 1), *theirs = filled(other, 10);
    struct gate gate;
    gate_init(&gate);
    drupe_event *start = submit_gate(foreign, &gate), *far, *near;
    OK(submit_mad(other, foreign, theirs, theirs, N, 1, 1, &start, 1, &far));
    drupe_submission s = {.queue = queue, .waits = &far, .nwaits = 1};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(memory), drupe_memory_pointer(theirs), N * 8, &near));
    gate_open(&gate);
    OK(drupe_event_wait(near, DRUPE_FOREVER));
    expect_u64(b->queue, memory, 11, N);
    drupe_event *events[] = {start, far, near};
    release_events(events, COUNT(events));
    drupe_queue_release(queue);
    drupe_queue_release(foreign);
    drupe_memory_release(memory);
    drupe_memory_release(theirs);
    gate_destroy(&gate);
}

static void cancels_what_is_held(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queue = open_unordered(b);
    drupe_memory *memory = filled(b, 1), *apart = filled(b, 1);
    drupe_event *opened, *held, *behind, *free_event, *after;
    size_t left, given_up;
    OK(drupe_event_open(NULL, 0, &opened));
    OK(submit_mad(b, queue, memory, memory, N, 2, 0, &opened, 1, &held));
    OK(submit_mad(b, queue, memory, memory, N, 3, 0, &held, 1, &behind));
    OK(submit_mad(b, queue, apart, apart, N, 1, 4, NULL, 0, &free_event));
    OK(drupe_event_wait(free_event, DRUPE_FOREVER));
    OK(drupe_queue_cancel(queue, &left, &given_up));
    assert_int_equal(left, 0);
    assert_int_equal(given_up, 2);
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_CANCELLED, "cancelled");
    FAILS(drupe_event_wait(held, DRUPE_FOREVER), DRUPE_E_CANCELLED, "cancelled");
    OK(drupe_event_finish(opened, NULL));
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    OK(submit_mad(b, queue, memory, memory, N, 1, 1, NULL, 0, &after));
    OK(drupe_event_wait(after, DRUPE_FOREVER));
    expect_u64(b->queue, memory, 2, N);
    expect_u64(b->queue, apart, 5, N);
    drupe_event *events[] = {opened, held, behind, free_event, after};
    release_events(events, COUNT(events));
    drupe_memory_release(memory);
    drupe_memory_release(apart);
    drupe_queue_release(queue);
}

static void count_release(void *object)
{
    ++*(size_t *)object;
}

static drupe_status nothing(void *user)
{
    (void)user;
    return DRUPE_OK;
}

/* References go while work is submitted and at the end, whatever the order. */
static void many_are_dropped(struct suite *suite)
{
    drupe_queue *queue = open_unordered(&suite->bench);
    enum { MANY = 3000 };
    size_t released = 0;
    drupe_event *last = NULL;
    for (size_t i = 0; i < MANY; i++) {
        drupe_keep keep = {&released, count_release};
        drupe_submission s = {
            .queue = queue, .waits = &last, .nwaits = last ? 1 : 0, .keeps = &keep, .nkeeps = 1};
        drupe_event *next = NULL;
        if (i % 7 == 0)
            OK(drupe_submit_host(&s, nothing, NULL, &next));
        else
            OK(drupe_submit_barrier(&s, i % 3 ? NULL : &next));
        if (!next) continue;
        drupe_event_release(last);
        last = next;
    }
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    drupe_queue_collect(queue);
    assert_int_equal(released, MANY);
    drupe_event_release(last);
    drupe_queue_release(queue);
}

/* What overtakes deferred work is dropped, though that stands before it and between; the deferred stays. */
static void overtakers_are_dropped(struct suite *suite)
{
    drupe_queue *queue = open_unordered(&suite->bench);
    enum { MANY = 40 };
    size_t released[2] = {0, 0};
    drupe_event *opened;
    OK(drupe_event_open("signal", 0, &opened));
    for (size_t i = 0; i < MANY; i++) {
        drupe_keep keep = {&released[i % 2], count_release};
        drupe_submission s = {
            .queue = queue, .waits = &opened, .nwaits = i % 2 == 0, .keeps = &keep, .nkeeps = 1};
        OK(drupe_submit_host(&s, nothing, NULL, NULL));
    }
    while (released[1] < MANY / 2) {
        drupe_queue_collect(queue);
        sched_yield();
    }
    assert_int_equal(released[0], 0);
    assert_int_equal(drupe_queue_pending(queue), MANY / 2);
    OK(drupe_event_finish(opened, NULL));
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    drupe_queue_collect(queue);
    assert_int_equal(released[0], MANY / 2);
    drupe_event_release(opened);
    drupe_queue_release(queue);
}

/* --- Host functions that wait for each other ------------------------------------------------------------ */

enum { PARTNERS = 12 };

struct meeting {
    sem_t turns[PARTNERS + 1];
    size_t next;
};

struct partner {
    struct meeting *meeting;
    size_t number;
};

/* Each waits for the one that is submitted after it. */
static drupe_status meet(void *user)
{
    struct partner *partner = user;
    while (sem_wait(&partner->meeting->turns[partner->number + 1]) != 0) {}
    sem_post(&partner->meeting->turns[partner->number]);
    return DRUPE_OK;
}

static void host_functions_meet(struct suite *suite)
{
    drupe_queue *queue = open_unordered(&suite->bench);
    struct meeting meeting = {.next = 0};
    struct partner partners[PARTNERS];
    for (size_t i = 0; i <= PARTNERS; i++) assert_int_equal(sem_init(&meeting.turns[i], 0, 0), 0);
    drupe_queue *queues[PARTNERS];
    for (size_t i = 0; i < PARTNERS; i++) {
        partners[i] = (struct partner){&meeting, i};
        OK(drupe_queue_open(suite->bench.context, suite->bench.device, 0, &queues[i]));
        drupe_submission s = {.queue = queues[i]};
        OK(drupe_submit_host(&s, meet, &partners[i], NULL));
    }
    sem_post(&meeting.turns[PARTNERS]);
    for (size_t i = 0; i < PARTNERS; i++) {
        OK(drupe_queue_wait(queues[i], 20ull * SECOND));
        drupe_queue_release(queues[i]);
    }
    for (size_t i = 0; i <= PARTNERS; i++) sem_destroy(&meeting.turns[i]);
    drupe_queue_release(queue);
}

static void priorities(struct suite *suite)
{
    struct bench *b = &suite->bench;
    static const uint32_t flags[] = {DRUPE_QUEUE_PRIORITY_LOW, DRUPE_QUEUE_PRIORITY_HIGH,
                                     DRUPE_QUEUE_PRIORITY_HIGH | DRUPE_QUEUE_OUT_OF_ORDER};
    drupe_queue *queue;
    for (size_t i = 0; i < COUNT(flags); i++) {
        drupe_memory *memory = filled(b, 1);
        OK(drupe_queue_open(b->context, b->device, flags[i], &queue));
        OK(submit_mad(b, queue, memory, memory, N, 2, 1, NULL, 0, NULL));
        OK(drupe_queue_wait(queue, DRUPE_FOREVER));
        expect_u64(b->queue, memory, 3, N);
        drupe_memory_release(memory);
        drupe_queue_release(queue);
    }
    FAILS(
        drupe_queue_open(b->context, b->device, DRUPE_QUEUE_PRIORITY_LOW | DRUPE_QUEUE_PRIORITY_HIGH, &queue),
        DRUPE_E_INVALID, "not both");
}

const conformance_case cases_unordered[] = {
    {"unordered_waits_order", waits_order},
    {"unordered_overtakes_held", overtakes_held},
    {"unordered_failure_dooms_dependents", failure_dooms_dependents},
    {"unordered_barrier_behind_old_failure", barrier_behind_old_failure},
    {"unordered_failures_of_their_own", failures_of_their_own},
    {"unordered_waits_across_contexts", waits_across_contexts},
    {"unordered_cancels_what_is_held", cancels_what_is_held},
    {"unordered_many_are_dropped", many_are_dropped},
    {"unordered_overtakers_are_dropped", overtakers_are_dropped},
    {"host_functions_meet", host_functions_meet},
    {"queue_priorities", priorities},
    {NULL, NULL},
};
