/* Watches, cancelling an in-order queue, and what has to be over before memory is used out of order. */
#include "core_bench.h"
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

static _Atomic(int) wakes;

static void wake(void *user)
{
    (void)user;
    atomic_fetch_add(&wakes, 1);
}

static bool readable(drupe_watch *watch, int timeout_ms)
{
    struct pollfd fd = {.fd = drupe_watch_fd(watch), .events = POLLIN};
    return poll(&fd, 1, timeout_ms) == 1;
}

static void *take_one(drupe_watch *watch)
{
    drupe_event *event;
    void *user;
    assert_true(readable(watch, 60000));
    assert_true(drupe_watch_take(watch, &event, &user));
    drupe_event_release(event);
    return user;
}

static int released;

static void release_user(void *user)
{
    (void)user;
    released++;
}

static void finished_events_are_taken_in_order(void **state)
{
    (void)state;
    drupe_watch *watch;
    drupe_event *gates[3], *event;
    void *user;
    int marks[3];
    atomic_store(&wakes, 0);
    OK(drupe_watch_open(wake, NULL, &watch));
    for (size_t i = 0; i < 3; i++) {
        gates[i] = bench_gate();
        OK(drupe_watch_add(watch, gates[i], &marks[i]));
    }
    OK(drupe_watch_add(watch, gates[0], &marks[2])); /* the same event again */
    assert_false(drupe_watch_take(watch, &event, &user));
    assert_false(readable(watch, 0));
    bench_open_gate(gates[1]);
    assert_ptr_equal(take_one(watch), &marks[1]);
    assert_false(readable(watch, 0));
    bench_open_gate(gates[0]);
    assert_ptr_equal(take_one(watch), &marks[0]); /* who watched first is told first */
    assert_ptr_equal(take_one(watch), &marks[2]);
    assert_false(drupe_watch_take(watch, &event, &user));
    bench_open_gate(gates[2]);
    assert_ptr_equal(take_one(watch), &marks[2]);
    assert_false(drupe_watch_take(watch, &event, &user));
    while (atomic_load(&wakes) < 3) sched_yield(); /* told after it can be taken */
    FAILS(drupe_watch_add(watch, NULL, NULL), DRUPE_E_INVALID, "no event");
    drupe_watch_close(watch, NULL);
    drupe_watch_close(NULL, NULL);
}

static void work_of_devices_is_watched(void **state)
{
    (void)state;
    drupe_watch *watch;
    drupe_event *gate = bench_gate(), *events[20], *failure;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    OK(drupe_watch_open(NULL, NULL, &watch));
    for (size_t i = 0; i < 20; i++) {
        OK(bench_fill(bench.queue, memory, 1, i ? NULL : gate, &events[i]));
        OK(drupe_watch_add(watch, events[i], &events[i]));
    }
    failure = bench_failure(bench.queue, "watched", NULL);
    OK(drupe_watch_add(watch, failure, &failure));
    bench_open_gate(gate);
    for (size_t i = 0; i < 20; i++) assert_ptr_equal(take_one(watch), &events[i]);
    assert_ptr_equal(take_one(watch), &failure);
    FAILS(drupe_event_wait(failure, 0), DRUPE_E_INVALID, PLANNED);
    for (size_t i = 0; i < 20; i++) drupe_event_release(events[i]);
    drupe_event_release(failure);
    drupe_watch_close(watch, NULL);
    drupe_memory_release(memory);
}

static void turns_are_handed_out(void **state)
{
    (void)state;
    const drupe_submission s = {.queue = bench.queue};
    drupe_watch *watch;
    drupe_event *gate = bench_gate(), *held, *turn, *given;
    void *user;
    int mark;
    OK(drupe_watch_open(NULL, NULL, &watch));
    OK(bench_barrier(bench.queue, gate, &held));
    OK(drupe_submit_turn(&s, &turn));
    OK(drupe_watch_turn(watch, turn, &mark));
    assert_false(readable(watch, 0));
    bench_open_gate(gate);
    assert_true(readable(watch, 60000));
    assert_true(drupe_watch_take(watch, &given, &user));
    assert_ptr_equal(given, turn);
    assert_ptr_equal(user, &mark);
    assert_int_equal(drupe_event_state_of(turn), DRUPE_EVENT_RUNNING);
    OK(drupe_event_finish(turn, NULL));
    OK(drupe_event_wait(turn, 0));
    drupe_event_release(given);
    drupe_event_release(turn);
    drupe_event_release(held);
    drupe_watch_close(watch, NULL);
}

static void closing_gives_users_back(void **state)
{
    (void)state;
    drupe_watch *first, *second;
    drupe_event *gate = bench_gate(), *done = bench_gate();
    OK(drupe_watch_open(NULL, NULL, &first));
    OK(drupe_watch_open(NULL, NULL, &second));
    OK(drupe_watch_add(first, gate, NULL));
    OK(drupe_watch_add(first, done, NULL));
    OK(drupe_watch_add(second, gate, NULL));
    OK(drupe_event_finish(done, NULL));
    assert_true(readable(first, 60000));
    released = 0;
    drupe_watch_close(first, release_user); /* the one that was opened first is not the head of the list */
    assert_int_equal(released, 2);
    drupe_watch_close(second, release_user);
    assert_int_equal(released, 3);
    drupe_event_release(done);
    bench_open_gate(gate);
}

/* --- Cancelling ------------------------------------------------------------------------------------------
 */

struct job {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool entered, open;
};

static drupe_status run_job(void *user)
{
    struct job *job = user;
    pthread_mutex_lock(&job->lock);
    job->entered = true;
    pthread_cond_broadcast(&job->changed);
    while (!job->open) pthread_cond_wait(&job->changed, &job->lock);
    pthread_mutex_unlock(&job->lock);
    return DRUPE_OK;
}

static drupe_event *submit_job(struct job *job)
{
    const drupe_submission s = {.queue = bench.queue};
    drupe_event *event;
    OK(drupe_submit_host(&s, run_job, job, &event));
    pthread_mutex_lock(&job->lock);
    while (!job->entered) pthread_cond_wait(&job->changed, &job->lock);
    pthread_mutex_unlock(&job->lock);
    return event;
}

static void open_job(struct job *job)
{
    pthread_mutex_lock(&job->lock);
    job->open = true;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

#define JOB                                                                                                  \
    {                                                                                                        \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                               \
    }

static void what_runs_goes_on_and_the_rest_is_given_up(void **state)
{
    (void)state;
    struct job job = JOB;
    size_t left, given_up;
    drupe_event *runs = submit_job(&job), *held[3], *after;
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    memset(drupe_memory_pointer(a), 9, 64);
    for (size_t i = 0; i < 3; i++) OK(bench_fill(bench.queue, a, 1, NULL, &held[i]));
    OK(bench_fill(bench.queue, a, 1, NULL, NULL));
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(left, 1);
    assert_int_equal(given_up, 4);
    OK(bench_barrier(bench.queue, NULL, &after));
    FAILS(drupe_memory_contents(a), DRUPE_E_CANCELLED, "");
    open_job(&job);
    FAILS(drupe_event_wait(held[2], LONG), DRUPE_E_CANCELLED, "was cancelled");
    OK(drupe_event_wait(runs, LONG));
    OK(drupe_event_wait(after, LONG));
    OK(drupe_queue_wait(bench.queue, LONG));
    bench_expect_bytes(a, 9, 64);
    for (size_t i = 0; i < 3; i++) drupe_event_release(held[i]);
    drupe_event_release(runs);
    drupe_event_release(after);
    drupe_memory_release(a);
}

static void an_idle_queue_has_nothing_to_cancel(void **state)
{
    (void)state;
    size_t left = 7, given_up = 7;
    drupe_event *event;
    OK(bench_barrier(bench.queue, NULL, &event));
    OK(drupe_event_wait(event, LONG));
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(left + given_up, 0);
    FAILS(drupe_queue_cancel(NULL, &left, &given_up), DRUPE_E_INVALID, "no queue");
    drupe_event_release(event);
}

/* What waits for another queue of its context stands with the driver, and does not begin any more. */
static void what_a_driver_has_waits_no_longer(void **state)
{
    (void)state;
    struct job job = JOB;
    size_t left, given_up;
    drupe_queue *other;
    drupe_event *runs = submit_job(&job), *blocked, *behind;
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    OK(bench_fill(bench.queue, a, 1, NULL, &blocked));
    OK(drupe_queue_open(bench.context, bench.device, 0, &other));
    OK(bench_fill(other, a, 2, blocked, &behind));
    OK(drupe_queue_cancel(other, &left, &given_up));
    assert_int_equal(left, 0);
    assert_int_equal(given_up, 1);
    open_job(&job);
    FAILS(drupe_event_wait(behind, LONG), DRUPE_E_CANCELLED, "");
    OK(drupe_event_wait(blocked, LONG));
    bench_expect_bytes(a, 1, 64);
    drupe_event *all[] = {runs, blocked, behind};
    for (size_t i = 0; i < 3; i++) drupe_event_release(all[i]);
    drupe_memory_release(a);
    drupe_queue_release(other);
}

/* --- Memory out of order ---------------------------------------------------------------------------------
 */

static drupe_memory *handed_on(drupe_event *gate, bool with_event, drupe_event **event)
{
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096), *next;
    const void *at = drupe_memory_pointer(memory);
    OK(bench_fill(bench.queue, memory, 1, gate, with_event ? event : NULL));
    drupe_memory_release(memory);
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 4096, &next));
    assert_ptr_equal(drupe_memory_pointer(next), at);
    return next;
}

static void another_queue_waits_for_memory_that_was_handed_on(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *first, *event;
    drupe_queue *other;
    drupe_memory *next = handed_on(gate, true, &first);
    OK(drupe_queue_open(bench.context, bench.device, 0, &other));
    OK(bench_fill(other, next, 2, NULL, &event));
    assert_int_equal(drupe_event_wait(event, 0), DRUPE_E_TIMEOUT);
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    bench_expect_bytes(next, 2, 4096);
    OK(drupe_queue_wait(bench.queue, LONG));
    bench_expect_bytes(next, 2, 4096);
    drupe_event_release(first);
    drupe_event_release(event);
    drupe_memory_release(next);
    drupe_queue_release(other);
}

static void silent_work_is_proven_over_by_what_stands_behind(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *before, *behind;
    drupe_memory *next = handed_on(gate, false, NULL);
    OK(drupe_memory_before_use(next, &before));
    assert_non_null(before);
    assert_int_equal(drupe_event_wait(before, 0), DRUPE_E_TIMEOUT);
    OK(bench_barrier(bench.queue, NULL, &behind));
    bench_open_gate(gate);
    OK(drupe_event_wait(behind, LONG));
    OK(drupe_event_wait(before, LONG));
    drupe_event_release(before);
    OK(drupe_memory_before_use(next, &before));
    assert_null(before);
    bench_expect_bytes(next, 1, 4096);
    drupe_event_release(behind);
    drupe_memory_release(next);
}

int main(void)
{
#define TEST(name)                                                                                           \
    cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown),                                      \
        cmocka_unit_test_setup_teardown(name, bench_setup_poor, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(finished_events_are_taken_in_order),
        TEST(work_of_devices_is_watched),
        TEST(turns_are_handed_out),
        TEST(closing_gives_users_back),
        TEST(what_runs_goes_on_and_the_rest_is_given_up),
        TEST(an_idle_queue_has_nothing_to_cancel),
        TEST(what_a_driver_has_waits_no_longer),
        TEST(another_queue_waits_for_memory_that_was_handed_on),
        TEST(silent_work_is_proven_over_by_what_stands_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
