/* What giving up a queue's work reaches, and what it leaves alone. */
#include "conformance.h"
#include <sched.h>

#define N 100

/* What runs goes on, what has not started is given up, what comes later runs, and nobody has to hear of it.
 */
static void cancelled(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    struct gate gate;
    gate_init(&gate);
    size_t left, given_up;
    OK(drupe_queue_cancel(b->queue, &left, &given_up));
    assert_int_equal(left + given_up, 0);
    drupe_event *runs = submit_gate(b->queue, &gate), *behind;
    while (drupe_event_state_of(runs) != DRUPE_EVENT_RUNNING) {}
    drupe_event_release(submit_failure(b->queue, "never runs"));
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, &behind));
    OK(drupe_queue_cancel(b->queue, &left, &given_up));
    assert_int_equal(left, 1);
    assert_int_equal(given_up, 2);
    drupe_event *after;
    OK(submit_mad(b, b->queue, pair.b, pair.b, N, 1, 1, NULL, 0, NULL));
    struct gate second;
    gate_init(&second);
    gate_open(&second);
    after = submit_gate(b->queue, &second);
    gate_open(&gate);
    OK(drupe_event_wait(runs, DRUPE_FOREVER));
    OK(drupe_event_wait(after, DRUPE_FOREVER));
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_CANCELLED, "cancelled before it started");
    drupe_failure failure;
    assert_false(drupe_failure_take(&failure));
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    expect_u64(b->queue, pair.a, 1, N);
    expect_u64(b->queue, pair.b, 3, N);
    drupe_event *events[] = {runs, behind, after};
    for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    drop_pair(pair);
    gate_destroy(&gate);
    gate_destroy(&second);
}

/* Held work is the engine's own: it is given up whatever the backend can. */
static void cancelled_behind_another_queue(struct suite *suite)
{
    struct bench *b = &suite->bench, *other = use_other(suite);
    struct pair pair = new_pair(b->queue, N);
    struct gate gate;
    gate_init(&gate);
    size_t left, given_up;
    drupe_event *foreign = submit_gate(other->queue, &gate), *held, *behind;
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, &foreign, 1, &held));
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, &behind));
    OK(drupe_queue_cancel(b->queue, &left, &given_up));
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_CANCELLED, "cancelled");
    FAILS(drupe_event_wait(held, DRUPE_FOREVER), DRUPE_E_CANCELLED, "cancelled");
    gate_open(&gate);
    OK(drupe_event_wait(foreign, DRUPE_FOREVER));
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    expect_u64(b->queue, pair.a, 1, N);
    drupe_event *events[] = {foreign, held, behind};
    for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    drop_pair(pair);
    gate_destroy(&gate);
}

/* What the backend has and has not begun, since it waits for another queue of its own, is given up too. */
static void cancelled_before_its_turn(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    struct gate gate;
    gate_init(&gate);
    size_t left, given_up;
    drupe_queue *queue;
    OK(drupe_queue_open(b->context, b->device, 0, &queue));
    drupe_event *first = submit_gate(b->queue, &gate), *waits, *behind;
    OK(submit_mad(b, queue, pair.a, pair.a, N, 1, 1, &first, 1, &waits));
    OK(submit_mad(b, queue, pair.a, pair.a, N, 1, 1, NULL, 0, &behind));
    OK(drupe_queue_cancel(queue, &left, &given_up));
    assert_int_equal(left, 0);
    assert_int_equal(given_up, 2);
    gate_open(&gate);
    FAILS(drupe_event_wait(waits, DRUPE_FOREVER), DRUPE_E_CANCELLED, "cancelled");
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_CANCELLED, "cancelled");
    drupe_failure failure;
    assert_false(drupe_failure_take(&failure));
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    expect_u64(b->queue, pair.a, 1, N);
    drupe_event *events[] = {first, waits, behind};
    for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    drop_pair(pair);
    drupe_queue_release(queue);
    gate_destroy(&gate);
}

/* Nor does work of the caller whose turn has not come, whatever core has put before it. False: the work
 * before it was over too early to see anything. */
static bool cancel_behind_a_mark(struct bench *b, uint64_t rounds)
{
    struct pair pair = new_pair(b->queue, N);
    drupe_submission s = {.queue = b->queue};
    drupe_event *turn, *behind;
    size_t left, given_up;
    OK(submit_spin(b, b->queue, pair.b, N, rounds, NULL));
    OK(drupe_submit_turn(&s, &turn));
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, &behind));
    while (!white_box_has_marker(b->queue) && drupe_event_state_of(turn) == DRUPE_EVENT_QUEUED) sched_yield();
    OK(drupe_queue_cancel(b->queue, &left, &given_up));
    bool seen = left == 1 && given_up == 2;
    if (drupe_event_state_of(turn) == DRUPE_EVENT_RUNNING) OK(drupe_event_finish(turn, NULL));
    if (seen) {
        FAILS(drupe_event_wait(turn, DRUPE_FOREVER), DRUPE_E_CANCELLED, "cancelled");
        FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_CANCELLED, "cancelled");
    }
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    if (seen) expect_u64(b->queue, pair.a, 1, N);
    drupe_event_release(turn);
    drupe_event_release(behind);
    drop_pair(pair);
    return seen;
}

static void cancelled_behind_a_mark(struct suite *suite)
{
    for (uint64_t rounds = 1000000;; rounds *= 2) {
        uint64_t began = drupe_now_ns();
        if (cancel_behind_a_mark(&suite->bench, rounds)) break;
        if (drupe_now_ns() - began > 4ull * SECOND) skip(); /* work is done while it is submitted */
    }
}

const conformance_case cases_cancel[] = {
    {"cancelled", cancelled},
    {"cancelled_behind_another_queue", cancelled_behind_another_queue},
    {"cancelled_before_its_turn", cancelled_before_its_turn},
    {"cancelled_behind_a_mark", cancelled_behind_a_mark},
    {NULL, NULL},
};
