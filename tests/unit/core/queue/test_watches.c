/* Watches where something is missing, or where others meddle: no descriptor, no thread, what is watched while
 * the waiter looks, and a descriptor that somebody else has read or written. */
#include "queue/script_bench.h"
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool no_descriptor;
int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);

int __wrap_eventfd(unsigned count, int flags)
{
    if (!no_descriptor) return __real_eventfd(count, flags);
    errno = EMFILE;
    return -1;
}

static drupe_watch *open_watch(void)
{
    drupe_watch *watch;
    OK(drupe_watch_open(NULL, NULL, &watch));
    return watch;
}

/* Work that the driver has. */
static drupe_event *native(void)
{
    drupe_event *event = script_fill(bench.queue, NULL);
    return event;
}

/* The user of the next one that is over. */
static void *take(drupe_watch *watch)
{
    drupe_event *event;
    void *user;
    while (!drupe_watch_take(watch, &event, &user)) sched_yield();
    drupe_event_release(event);
    return user;
}

static void without_a_descriptor_nothing_is_opened(void **state)
{
    (void)state;
    drupe_watch *watch;
    no_descriptor = true;
    const drupe_status status = drupe_watch_open(NULL, NULL, &watch);
    no_descriptor = false;
    FAILS(status, DRUPE_E_NO_MEMORY, "No file descriptor is left");
    assert_null(watch);
}

static void without_a_thread_nothing_is_watched(void **state)
{
    (void)state;
    drupe_watch *watch = open_watch();
    drupe_event *event = native();
    wrap_plan(WRAP_THREAD, 1); /* it would be the waiter's */
    FAILS(drupe_watch_add(watch, event, NULL), DRUPE_E_NO_MEMORY, "thread");
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    OK(drupe_watch_add(watch, event, &script));
    test_script_finish(event, true);
    assert_ptr_equal(take(watch), &script);
    drupe_watch_close(watch, NULL);
    drupe_event_release(event);
}

static _Atomic(int) flushes;

static drupe_status queue_flush(drupe_queue *queue)
{
    (void)queue;
    atomic_fetch_add(&flushes, 1);
    return DRUPE_OK;
}

static void what_is_watched_is_flushed(void **state)
{
    (void)state;
    bench_table.queue_flush = queue_flush;
    drupe_watch *watch = open_watch();
    drupe_event *event = native();
    atomic_store(&flushes, 0);
    OK(drupe_watch_add(watch, event, NULL));
    assert_int_equal(atomic_load(&flushes), 1);
    test_script_finish(event, true);
    (void)take(watch);
    drupe_watch_close(watch, NULL);
    drupe_event_release(event);
}

static int given_back;

static void count_release(void *user)
{
    (void)user;
    given_back++;
}

static void the_last_watch_may_be_closed_first(void **state)
{
    (void)state;
    drupe_watch *first = open_watch(), *second = open_watch();
    drupe_event *event = native();
    OK(drupe_watch_add(first, event, &script));
    for (size_t i = 0; i < 3; i++) OK(drupe_watch_add(second, event, NULL));
    given_back = 0;
    drupe_watch_close(second, count_release);
    assert_int_equal(given_back, 3);
    test_script_finish(event, true);
    assert_ptr_equal(take(first), &script); /* it is served on */
    drupe_watch_close(first, NULL);
    drupe_event_release(event);
}

/* The waiter is at this event until the test names another one. */
static _Atomic(drupe_event *) holds_at;
static _Atomic(bool) at_it;
static _Thread_local bool is_test;

static drupe_status hold_waiter(drupe_event *event, drupe_event_state *state)
{
    if (!is_test && atomic_load(&holds_at) == event) {
        atomic_store(&at_it, true);
        while (atomic_load(&holds_at) == event) sched_yield();
    }
    return bench_real->event_state(event, state);
}

static void hold(drupe_event *event)
{
    atomic_store(&at_it, false);
    atomic_store(&holds_at, event);
    drupe_deferred_kick();
    while (event && !atomic_load(&at_it)) sched_yield();
}

/* Who watched first is told first, also of what was watched while the waiter looked. */
static void what_is_watched_during_a_look_comes_behind(void **state)
{
    (void)state;
    is_test = true;
    bench_table.event_state = hold_waiter;
    drupe_watch *watch = open_watch();
    drupe_event *first = native(), *second = native();
    int marks[2];
    OK(drupe_watch_add(watch, first, &marks[0]));
    hold(first);
    OK(drupe_watch_add(watch, second, &marks[1]));
    hold(second); /* in the next look, which goes backwards */
    test_script_finish(second, true);
    test_script_finish(first, true);
    hold(NULL);
    assert_ptr_equal(take(watch), &marks[0]);
    assert_ptr_equal(take(watch), &marks[1]);
    drupe_watch_close(watch, NULL);
    script_release((drupe_event *[]){first, second}, 2);
}

/* For who waits for its end its turn is not enough. */
static void a_turn_that_has_come_is_not_over(void **state)
{
    (void)state;
    drupe_watch *watch = open_watch();
    drupe_event *turn, *taken;
    void *user;
    int marks[2];
    OK(drupe_submit_turn(&(drupe_submission){.queue = bench.queue}, &turn));
    OK(drupe_watch_add(watch, turn, &marks[0]));
    OK(drupe_watch_turn(watch, turn, &marks[1]));
    assert_ptr_equal(take(watch), &marks[1]);
    assert_int_equal(drupe_event_state_of(turn), DRUPE_EVENT_RUNNING);
    assert_false(drupe_watch_take(watch, &taken, &user));
    OK(drupe_event_finish(turn, NULL));
    assert_ptr_equal(take(watch), &marks[0]);
    drupe_watch_close(watch, NULL);
    drupe_event_release(turn);
}

static void others_may_read_and_write_the_descriptor(void **state)
{
    (void)state;
    drupe_watch *watch = open_watch();
    struct pollfd fd = {.fd = drupe_watch_fd(watch), .events = POLLIN};
    drupe_event *event = native();
    uint64_t told, most = UINT64_MAX - 1;
    /* It is full already. */
    assert_int_equal(write(fd.fd, &most, sizeof most), sizeof most);
    OK(drupe_watch_add(watch, event, &script));
    test_script_finish(event, true);
    assert_ptr_equal(take(watch), &script);
    assert_int_equal(poll(&fd, 1, 0), 0);
    /* Somebody else has read it. */
    OK(drupe_watch_add(watch, event, &event));
    assert_int_equal(poll(&fd, 1, 60000), 1);
    assert_int_equal(read(fd.fd, &told, sizeof told), sizeof told);
    assert_int_equal(told, 1);
    assert_ptr_equal(take(watch), &event);
    assert_int_equal(poll(&fd, 1, 0), 0);
    drupe_watch_close(watch, NULL);
    drupe_event_release(event);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_a_descriptor_nothing_is_opened),
        TEST(without_a_thread_nothing_is_watched),
        TEST(what_is_watched_is_flushed),
        TEST(the_last_watch_may_be_closed_first),
        TEST(what_is_watched_during_a_look_comes_behind),
        TEST(a_turn_that_has_come_is_not_over),
        TEST(others_may_read_and_write_the_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
