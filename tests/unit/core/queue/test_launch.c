/* What the backend is given: which waits by name, which events, which calls; and marks at the end of queues.
 */
#include "queue/script_bench.h"

/* --- Waits that the backend is told of -------------------------------------------------------------------
 */

/* Work that may fail for what it waits for: the next work has to wait for it by name. */
static drupe_event *fallible(drupe_event *native)
{
    drupe_event *event = script_fill(bench.queue, native);
    assert_true(script.nwaits >= 1);
    assert_ptr_equal(script.waits[0], native);
    return event;
}

static drupe_event *native_on(drupe_queue *queue)
{
    drupe_event *event;
    OK(bench_barrier(queue, NULL, NULL)); /* else the barrier has nothing before it, and is over */
    OK(bench_barrier(queue, NULL, &event));
    return event;
}

static void the_order_covers_what_cannot_fail_alone(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_event *first, *native = native_on(other), *second, *third;
    first = script_fill(bench.queue, NULL);
    OK(bench_barrier(bench.queue, first, NULL));
    assert_int_equal(script.nwaits, 0);
    assert_null(script.event); /* so it cannot fail for its wait */
    second = fallible(native);
    OK(bench_barrier(bench.queue, second, &third));
    assert_true(script.nwaits >= 1);
    assert_ptr_equal(script.waits[0], second);
    script_finish_all();
    OK(drupe_event_wait(third, LONG));
    script_release((drupe_event *[]){first, native, second, third}, 4);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_release(other);
}

/* What a look at the queue finds to be over needs no wait any more. */
static void what_turns_out_to_be_over_is_not_waited_for(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_event *native = native_on(other), *event = fallible(native);
    test_script_finish(native, true);
    test_script_finish(event, true); /* nobody has asked yet */
    OK(bench_barrier(bench.queue, event, NULL));
    assert_int_equal(script.nwaits, 0);
    assert_null(script.event);
    script_finish_all();
    script_release((drupe_event *[]){native, event}, 2);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_release(other);
}

static void a_backend_may_take_the_one_before_apart_from_waits(void **state)
{
    (void)state;
    static const struct {
        bool minds, event, at_once;
    } cases[] = {{true, false, false}, {true, true, false},  {false, false, false},
                 {false, true, false}, {false, false, true}, {true, false, true}};
    drupe_queue *other = script_queue(0);
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        drupe_event *native = native_on(other), *event = NULL, *waits[2];
        size_t count = 9;
        bench_table.takes_predecessor = cases[i].minds;
        drupe_event *before = fallible(native);
        script.at_once = cases[i].at_once;
        OK(bench_fill(bench.queue, script.memory, 1, NULL, cases[i].event ? &event : NULL));
        script.at_once = false;
        assert_ptr_equal(script.predecessor, cases[i].minds ? before : NULL);
        assert_int_equal(script.nwaits, !cases[i].minds);
        if (script.nwaits) assert_ptr_equal(script.waits[0], before);
        if (event) OK(drupe_event_waits(event, waits, 2, &count));
        if (event) assert_int_equal(count, 1); /* where its cause would be found */
        if (event) drupe_event_release(waits[0]);
        script_finish_all();
        OK(drupe_queue_wait(bench.queue, LONG));
        script_release((drupe_event *[]){native, before, event}, 3);
        script.finishes = false;
    }
    drupe_queue_release(other);
}

/* Its event is complete as the call returns, so nothing has to wait for it. */
static void what_is_over_at_once_is_not_waited_for(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_event *native = native_on(other), *event;
    script.at_once = true;
    event = script_fill(bench.queue, native);
    assert_int_equal(script.nwaits, 1);
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    script.at_once = false;
    script_silent(bench.queue);
    assert_int_equal(script.nwaits, 0);
    script_release((drupe_event *[]){native, event}, 2);
    script_finish_all();
    OK(drupe_queue_wait(other, LONG));
    drupe_queue_release(other);
}

/* A driver waits for events of its own context alone, and a GPU's may read a small source at once. */
static void core_waits_where_the_driver_cannot(void **state)
{
    (void)state;
    drupe_queue *far = bench_elsewhere(), *near = script_queue(0);
    drupe_event *native, *event;
    char here[16] = "";
    native = native_on(far);
    OK(bench_barrier(bench.queue, native, &event));
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_QUEUED);
    assert_ptr_not_equal(script.event, event);
    script_finish_all();
    OK(drupe_event_wait(event, LONG));
    script_release((drupe_event *[]){native, event}, 2);
    OK(drupe_queue_wait(bench.queue, LONG));
    script.finishes = false;
    native = native_on(near);
    bench.device->type = DRUPE_DEVICE_GPU;
    const drupe_submission s = {.queue = bench.queue, .waits = &native, .nwaits = 1};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(script.memory), here, sizeof here, &event));
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_QUEUED);
    test_script_finish(native, true);
    while (drupe_event_state_of(event) == DRUPE_EVENT_QUEUED) continue;
    assert_int_equal(script.kind, DRUPE_WORK_COPY);
    script_finish_all();
    OK(drupe_event_wait(event, LONG));
    bench.device->type = DRUPE_DEVICE_CPU;
    script_release((drupe_event *[]){native, event}, 2);
    drupe_queue_release(far);
    drupe_queue_release(near);
}

/* --- Calls -----------------------------------------------------------------------------------------------
 */

static const void *hinted;
static size_t hinted_bytes;
static uint32_t hinted_advice;

static drupe_status submit_prefetch(const drupe_submit *s, const void *pointer, size_t bytes)
{
    (void)s;
    hinted = pointer;
    hinted_bytes = bytes;
    return DRUPE_OK;
}

static drupe_status submit_advise(const drupe_submit *s, const void *pointer, size_t bytes, uint32_t advice)
{
    hinted_advice = advice;
    return submit_prefetch(s, pointer, bytes);
}

static void hints_reach_a_driver_that_takes_them(void **state)
{
    (void)state;
    const drupe_submission s = {.queue = bench.queue};
    char *at = drupe_memory_pointer(script.memory);
    bench_table.submit_prefetch = submit_prefetch;
    bench_table.submit_advise = submit_advise;
    OK(drupe_submit_prefetch(&s, at + 8, 16, NULL));
    assert_ptr_equal(hinted, at + 8);
    assert_int_equal(hinted_bytes, 16);
    OK(drupe_submit_advise(&s, at, 32, 7, NULL));
    assert_ptr_equal(hinted, at);
    assert_int_equal(hinted_bytes, 32);
    assert_int_equal(hinted_advice, 7);
    assert_int_equal(script.taken, 0); /* no barriers in their place */
    script.finishes = true;
    OK(drupe_queue_wait(bench.queue, LONG));
}

static void one_in_so_many_has_an_event(void **state)
{
    (void)state;
    for (size_t i = 0; i < 63; i++) {
        script_silent(bench.queue);
        assert_null(script.event);
    }
    script_silent(bench.queue);
    assert_non_null(script.event);
    script_silent(bench.queue);
    assert_null(script.event);
    script_finish_all();
    OK(drupe_queue_wait(bench.queue, LONG));
}

static void without_memory_for_its_event_nothing_is_launched(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_event *native = native_on(other);
    const drupe_submission s = {.queue = bench.queue, .waits = &native, .nwaits = 1, .label = "mine"};
    OK(bench_barrier(bench.queue, NULL, NULL)); /* a record is there, and no event */
    drupe_inflight_put_back(bench.queue, drupe_inflight_alone("spare", 0));
    const size_t before = script.taken;
    wrap_plan(WRAP_MALLOC, 1);
    FAILS(drupe_submit_barrier(&s, NULL), DRUPE_E_NO_MEMORY, "memory");
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    assert_int_equal(script.taken, before);
    OK(drupe_submit_barrier(&s, NULL));
    assert_int_equal(script.taken, before + 1);
    script_finish_all();
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_event_release(native);
    drupe_queue_release(other);
}

/* --- Marks and names -------------------------------------------------------------------------------------
 */

static drupe_event *mark_of(drupe_queue *queue)
{
    drupe_event *mark;
    pthread_mutex_lock(&queue->lock);
    const drupe_status status = drupe_queue_mark(queue, NULL, &mark);
    pthread_mutex_unlock(&queue->lock);
    OK(status);
    return mark;
}

/* The waiter is at this until the test lets it go on. */
static _Atomic(bool) held, at_it;
static _Atomic(drupe_event *) asked;

static drupe_status hold_waiter(drupe_event *event, drupe_event_state *state)
{
    if (event == atomic_load(&asked)) {
        atomic_store(&at_it, true);
        while (atomic_load(&held)) sched_yield();
    }
    return bench_real->event_state(event, state);
}

/* What failed and was reported proves nothing, also while the waiter has not put it away. */
static void a_mark_stands_behind_what_the_caller_failed(void **state)
{
    (void)state;
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "mine"};
    drupe_queue *other = script_queue(0);
    drupe_event *native = native_on(other), *turn, *first, *second;
    drupe_watch *watch;
    bench_table.event_state = hold_waiter;
    OK(bench_barrier(bench.queue, NULL, NULL));
    OK(drupe_submit_turn(&(drupe_submission){.queue = bench.queue}, &turn));
    atomic_store(&held, true);
    atomic_store(&at_it, false);
    OK(drupe_watch_open(NULL, NULL, &watch));
    OK(drupe_watch_add(watch, native, NULL));
    atomic_store(&asked, native); /* this thread has looked */
    drupe_deferred_kick();
    while (!atomic_load(&at_it)) sched_yield();
    OK(drupe_event_finish(turn, &error));
    assert_true(turn->turn && bench.queue->order.deferred != NULL);
    drupe_cause_report(turn->cause);
    first = mark_of(bench.queue); /* a barrier behind the turn */
    assert_ptr_equal(script.event, first);
    second = mark_of(bench.queue);
    assert_ptr_equal(second, first); /* that is launched, not deferred */
    atomic_store(&asked, NULL);
    atomic_store(&held, false);
    script_finish_all();
    OK(drupe_queue_wait(bench.queue, LONG));
    script_release((drupe_event *[]){native, turn, first, second}, 4);
    drupe_watch_close(watch, NULL);
    drupe_queue_release(other);
}

/* Of what goes on, the last that may fail is waited for by name; not what was given up. */
static void a_cancelled_queue_recalls_who_may_fail(void **state)
{
    (void)state;
    size_t left, given_up;
    drupe_queue *other = script_queue(0);
    drupe_event *native = native_on(other), *first, *over, *gate = bench_gate(), *deferred;
    OK(bench_barrier(bench.queue, NULL, NULL)); /* not fallible */
    over = script_fill(bench.queue, NULL);
    OK(bench_barrier(bench.queue, over, NULL)); /* without an event */
    first = fallible(native);
    drupe_event *last = fallible(native);
    OK(bench_barrier(bench.queue, gate, &deferred));
    test_script_finish(last, true);
    assert_int_equal(drupe_event_state_of(last), DRUPE_EVENT_COMPLETE);
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(given_up, 1);
    assert_ptr_equal(bench.queue->names.last_fallible, first); /* `last` is over */
    FAILS(drupe_event_wait(deferred, LONG), DRUPE_E_CANCELLED, "was cancelled");
    drupe_deferred_let_pass(bench.queue);
    script_release(&deferred, 1);
    OK(bench_barrier(bench.queue, gate, &deferred));
    pthread_mutex_lock(&bench.queue->lock);
    drupe_names_recall(bench.queue, UINT64_MAX);
    assert_ptr_equal(bench.queue->names.last_fallible, first);
    pthread_mutex_unlock(&bench.queue->lock);
    OK(drupe_event_finish(gate, NULL));
    script_finish_all();
    OK(drupe_queue_wait(bench.queue, LONG));
    script_release((drupe_event *[]){native, first, last, over, gate, deferred}, 6);
    drupe_queue_release(other);
}

/* --- Out-of-order queues ---------------------------------------------------------------------------------
 */

static void what_is_over_leaves_from_between(void **state)
{
    (void)state;
    drupe_event *events[3];
    for (size_t i = 0; i < 3; i++) events[i] = script_fill(bench.queue, NULL);
    test_script_finish(events[1], true);
    drupe_queue_collect(bench.queue);
    assert_int_equal(atomic_load(&bench.queue->order.count), 2);
    assert_ptr_equal(bench.queue->order.head->event, events[0]);
    assert_ptr_equal(bench.queue->order.tail->event, events[2]);
    script_finish_all();
    drupe_queue_collect(bench.queue);
    assert_null(bench.queue->order.head);
    script_release(events, 3);
}

static void behind_a_barrier_that_is_over_nothing_waits(void **state)
{
    (void)state;
    drupe_event *first, *barrier, *behind;
    first = script_fill(bench.queue, NULL);
    OK(bench_barrier(bench.queue, NULL, &barrier));
    assert_int_equal(script.nwaits, 1);
    behind = script_fill(bench.queue, NULL);
    assert_int_equal(script.nwaits, 1);
    assert_ptr_equal(script.waits[0], barrier);
    drupe_event_release(behind);
    test_script_finish(barrier, true);
    assert_int_equal(drupe_event_state_of(barrier), DRUPE_EVENT_COMPLETE); /* it is still on the list */
    behind = script_fill(bench.queue, NULL);
    assert_int_equal(script.nwaits, 0);
    script_finish_all();
    OK(drupe_queue_wait(bench.queue, LONG));
    script_release((drupe_event *[]){first, barrier, behind}, 3);
}

static void a_wait_ends_with_its_time(void **state)
{
    (void)state;
    drupe_event *events[2];
    for (size_t i = 0; i < 2; i++) events[i] = script_fill(bench.queue, NULL);
    FAILS(drupe_queue_wait(bench.queue, 0), DRUPE_E_TIMEOUT, "");
    test_script_finish(events[1], true);
    FAILS(drupe_queue_wait(bench.queue, 0), DRUPE_E_TIMEOUT, "");
    test_script_finish(events[0], true);
    OK(drupe_queue_wait(bench.queue, 0));
    script_release(events, 2);
}

/* The driver has what stands behind it. */
static void held_work_that_is_not_over_is_let_be(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *waits, *launched;
    waits = script_fill(bench.queue, gate);
    launched = script_fill(bench.queue, NULL);
    drupe_deferred_let_pass(bench.queue); /* returns */
    assert_int_equal(drupe_event_state_of(waits), DRUPE_EVENT_QUEUED);
    OK(drupe_event_finish(gate, NULL));
    script_finish_all();
    OK(drupe_queue_wait(bench.queue, LONG));
    script_release((drupe_event *[]){gate, waits, launched}, 3);
}

/* Each failure of an out-of-order queue has a reason of its own, and is told. */
static void failures_beside_each_other_are_all_told(void **state)
{
    (void)state;
    drupe_event *first = script_failure(bench.queue), *second = script_failure(bench.queue);
    drupe_failure failure, cause;
    assert_int_equal(drupe_event_wait(first, 0), DRUPE_E_INTERNAL);
    assert_int_equal(drupe_queue_wait(bench.queue, 0), DRUPE_E_INTERNAL);
    assert_true(drupe_failure_last(&failure, &cause));
    assert_int_equal(failure.submission, drupe_event_submission(second));
    OK(drupe_queue_wait(bench.queue, 0));
    drupe_memory_accept(script.memory);
    script_release((drupe_event *[]){first, second}, 2);
}

int main(void)
{
#define UNORDERED(name) cmocka_unit_test_setup_teardown(name, script_setup_unordered, script_teardown)
#define TEST(name)      cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_order_covers_what_cannot_fail_alone),
        TEST(what_turns_out_to_be_over_is_not_waited_for),
        TEST(a_backend_may_take_the_one_before_apart_from_waits),
        TEST(what_is_over_at_once_is_not_waited_for),
        TEST(core_waits_where_the_driver_cannot),
        TEST(hints_reach_a_driver_that_takes_them),
        TEST(one_in_so_many_has_an_event),
        TEST(without_memory_for_its_event_nothing_is_launched),
        TEST(a_mark_stands_behind_what_the_caller_failed),
        TEST(a_cancelled_queue_recalls_who_may_fail),
        UNORDERED(what_is_over_leaves_from_between),
        UNORDERED(behind_a_barrier_that_is_over_nothing_waits),
        UNORDERED(a_wait_ends_with_its_time),
        UNORDERED(held_work_that_is_not_over_is_let_be),
        UNORDERED(failures_beside_each_other_are_all_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
