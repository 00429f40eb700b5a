/* How events of a driver end while several threads look at them: one writes down the failure, the others wait
 * for that; of two that see the end, one is faster. */
#include "queue/script_bench.h"
#include <semaphore.h>

/* --- Two threads that look at the same time --------------------------------------------------------------
 */

static drupe_event *watched;

static void interfere(drupe_event *event, int time, void (*what)(void))
{
    watched = event;
    script_at_look(event, time, what);
}

static void settle_watched(void)
{
    assert_true(drupe_phase_over(script_poll(watched)));
}

static void the_first_to_see_a_failure_tells_it(void **state)
{
    (void)state;
    drupe_event *event = script_fill(bench.queue, NULL);
    test_script_finish(event, false);
    interfere(event, 2, settle_watched); /* asked as it is, then in its turn on the queue */
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_INTERNAL, "The script says no");
    assert_int_equal(script_take_failures(), 0);
    drupe_event_release(event);
}

static void a_wait_that_another_thread_settles_is_the_cause(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_failure own, cause;
    drupe_event *first = script_fill(bench.queue, NULL), *second = script_fill(other, first);
    test_script_finish(second, false);
    test_script_finish(first, false);
    interfere(first, 1, settle_watched); /* asked as a wait of the other */
    FAILS(drupe_event_wait(second, LONG), DRUPE_E_DEPENDENCY, "The script says no");
    assert_true(drupe_failure_last(&own, &cause));
    assert_true(cause.submission == drupe_event_submission(first));
    assert_int_equal(script_take_failures(), 0);
    drupe_event_release(first);
    drupe_event_release(second);
    script.finishes = true;
    drupe_queue_release(other);
}

/* A driver may fail a whole chain at once, and the last is looked at first. */
static void waits_settle_before_what_waits_for_them(void **state)
{
    (void)state;
    drupe_queue *queues[3] = {bench.queue};
    drupe_event *events[3];
    for (size_t i = 0; i < 3; i++) {
        if (i) queues[i] = script_queue(0);
        events[i] = script_fill(queues[i], i ? events[i - 1] : NULL);
    }
    for (size_t i = 3; i-- > 0;) test_script_finish(events[i], false);
    FAILS(drupe_event_wait(events[2], LONG), DRUPE_E_DEPENDENCY, "The script says no");
    FAILS(drupe_event_wait(events[0], LONG), DRUPE_E_INTERNAL, "The script says no");
    FAILS(drupe_event_wait(events[1], LONG), DRUPE_E_DEPENDENCY, "'fill' on host:cpu:0 (submission ");
    assert_int_equal(script_take_failures(), 0);
    for (size_t i = 0; i < 3; i++) drupe_event_release(events[i]);
    script.finishes = true;
    for (size_t i = 1; i < 3; i++) drupe_queue_release(queues[i]);
}

static int timed; /* times that a driver was asked for */

static drupe_status event_times(drupe_event *event, drupe_times *times)
{
    timed++;
    return bench_real->event_times(event, times);
}

static void find_end(void (*meanwhile)(void), bool by_queue)
{
    drupe_queue *queue;
    bench_table.event_times = event_times;
    queue = script_queue(DRUPE_QUEUE_PROFILING);
    drupe_event *event = script_fill(queue, NULL);
    test_script_finish(event, true);
    timed = 0;
    interfere(event, 1, meanwhile);
    if (by_queue)
        drupe_queue_collect(queue);
    else
        OK(drupe_event_wait(event, LONG));
    assert_int_equal(timed, 1); /* by who found the end */
    assert_int_equal(drupe_queue_pending(queue), 0);
    if (!by_queue) drupe_event_release(event);
    drupe_queue_release(queue);
}

static void an_end_is_found_once(void **state)
{
    (void)state;
    find_end(settle_watched, false);
}

static void settle_and_release(void)
{
    settle_watched();
    drupe_event_release(watched);
}

/* The count of references tells the queue that nobody else can end the event; but somebody just has. */
static void an_end_is_found_once_though_its_finder_is_gone(void **state)
{
    (void)state;
    find_end(settle_and_release, true);
}

static bool good;

static void finish_watched(void)
{
    test_script_finish(watched, good);
}

static void what_ends_between_two_looks_runs_until_the_next(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        drupe_event *event = script_fill(bench.queue, NULL);
        good = i == 0;
        interfere(event, 1, finish_watched); /* behind the first answer */
        assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_RUNNING);
        assert_int_equal(drupe_event_state_of(event), good ? DRUPE_EVENT_COMPLETE : DRUPE_EVENT_FAILED);
        drupe_event_release(event);
    }
    assert_int_equal(script_take_failures(), 1);
}

static drupe_status wait_in_vain(drupe_event *event, uint64_t timeout_ns)
{
    (void)timeout_ns;
    test_script_finish(event, true);
    if (good) return drupe_error_set(DRUPE_E_TIMEOUT, "Not yet.");
    assert_int_equal(script_poll(event), DRUPE_PHASE_COMPLETE);
    return drupe_error_set(DRUPE_E_INTERNAL, "The driver cannot wait.");
}

static void what_ends_as_the_wait_does_is_over(void **state)
{
    (void)state;
    bench_table.event_wait = wait_in_vain;
    for (int i = 0; i < 2; i++) {
        drupe_event *event = script_fill(bench.queue, NULL);
        good = i == 0;
        OK(drupe_event_wait(event, 0));
        drupe_event_release(event);
    }
}

static drupe_status fails_silently(drupe_event *event, drupe_event_state *state)
{
    const drupe_error none = {.status = DRUPE_OK};
    (void)event;
    *state = DRUPE_EVENT_FAILED;
    return drupe_error_restore(&none);
}

static void a_failure_without_a_reason_gets_one(void **state)
{
    (void)state;
    drupe_event *event = script_fill(bench.queue, NULL);
    bench_table.event_state = fails_silently;
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_INTERNAL, "a failure without a reason");
    drupe_event_release(event);
}

/* --- While a failure is written down ---------------------------------------------------------------------
 *
 * The second of two submissions has failed, and a thread that found out is held in the driver, which it asks
 * for the reason. */

static struct {
    drupe_queue *other;
    drupe_event *before, *failed, *waits; /* `waits` for `failed`, on the other queue */
    pthread_t thread;
    sem_t entered, go;
    bool let_go;
} held;

static drupe_status hold_settling(drupe_event *event, drupe_event_state *state)
{
    if (event == held.failed && drupe_event_phase(event) == DRUPE_PHASE_SETTLING) {
        sem_post(&held.entered);
        while (sem_wait(&held.go) != 0) continue;
    }
    return bench_real->event_state(event, state);
}

static void let_go(void)
{
    held.let_go = true;
    sem_post(&held.go);
}

static void *look(void *unused)
{
    (void)unused;
    (void)drupe_event_state_of(held.failed);
    return NULL;
}

static void it_is_said_to_run(void)
{
    assert_int_equal(drupe_event_state_of(held.failed), DRUPE_EVENT_RUNNING);
    let_go();
}

static void who_waits_gets_the_reason(void)
{
    FAILS(drupe_event_wait(held.failed, LONG), DRUPE_E_INTERNAL, "The script says no");
}

static void what_waits_for_it_fails_behind_it(void)
{
    FAILS(drupe_event_wait(held.waits, LONG), DRUPE_E_DEPENDENCY, "The script says no");
}

static void what_is_submitted_behind_it_does_not_run(void)
{
    drupe_event *event = script_fill(bench.queue, held.failed);
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, "The script says no");
    drupe_event_release(event);
}

static void cancel_nothing(drupe_queue *queue, uint64_t begun)
{
    (void)queue;
    (void)begun;
    fail_msg("there is nothing that the driver could give up");
}

static void it_is_not_given_up(void)
{
    size_t left, given_up;
    test_script_finish(held.before, true);
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(left, 1);
    assert_int_equal(given_up, 0);
    let_go();
}

static void others_wait_for_the_thread_that_writes(void **state)
{
    static void (*const looks[])(void) = {it_is_said_to_run, who_waits_gets_the_reason,
                                          what_waits_for_it_fails_behind_it,
                                          what_is_submitted_behind_it_does_not_run, it_is_not_given_up};
    (void)state;
    bench_table.event_state = hold_settling;
    bench_table.queue_cancel = cancel_nothing;
    held.other = script_queue(0);
    for (size_t i = 0; i < DRUPE_COUNT_OF(looks); i++) {
        sem_init(&held.entered, 0, 0);
        sem_init(&held.go, 0, 0);
        held.let_go = false;
        held.before = script_fill(bench.queue, NULL);
        held.failed = script_fill(bench.queue, NULL);
        held.waits = script_fill(held.other, held.failed);
        test_script_finish(held.failed, false);
        test_script_finish(held.waits, false);
        assert_int_equal(pthread_create(&held.thread, NULL, look, NULL), 0);
        while (sem_wait(&held.entered) != 0) continue;
        script_at_yield(let_go); /* who has to wait yields */
        looks[i]();
        assert_true(held.let_go);
        script_at_yield(NULL);
        pthread_join(held.thread, NULL);
        assert_int_equal(drupe_event_state_of(held.failed), DRUPE_EVENT_FAILED);
        assert_int_equal(drupe_event_state_of(held.waits), DRUPE_EVENT_FAILED);
        (void)script_take_failures();
        test_script_finish(held.before, true);
        script.finishes = true;
        OK(drupe_queue_wait(bench.queue, LONG));
        OK(drupe_queue_wait(held.other, LONG));
        script.finishes = false;
        drupe_event_release(held.before);
        drupe_event_release(held.failed);
        drupe_event_release(held.waits);
        sem_destroy(&held.entered);
        sem_destroy(&held.go);
    }
    drupe_queue_release(held.other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_first_to_see_a_failure_tells_it),
        TEST(a_wait_that_another_thread_settles_is_the_cause),
        TEST(waits_settle_before_what_waits_for_them),
        TEST(an_end_is_found_once),
        TEST(an_end_is_found_once_though_its_finder_is_gone),
        TEST(what_ends_between_two_looks_runs_until_the_next),
        TEST(what_ends_as_the_wait_does_is_over),
        TEST(a_failure_without_a_reason_gets_one),
        TEST(others_wait_for_the_thread_that_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
