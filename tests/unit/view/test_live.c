/* Displays that are shown now and then: how often, by whom, and that closing them is safe at any time. */
#include "base/base.h"
#include "drupe/live.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define MS       UINT64_C(1000000)
#define DEADLINE (20000 * MS)

/* What a display has seen. */
typedef struct seen {
    atomic_int shown, asked, last, released, inside, clashes;
    atomic_uint_fast64_t first_ns, latest_ns, slow_ns;
    atomic_bool same, over, busy;
} seen;

static void nap(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / (1000 * MS)), .tv_nsec = (long)(ns % (1000 * MS))};
    nanosleep(&time, NULL);
}

static uint64_t computed_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

static void compute(uint64_t ns)
{
    uint64_t end = computed_ns() + ns;
    while (computed_ns() < end) {}
}

static drupe_live_answer show(void *user, drupe_live_reason reason)
{
    seen *one = user;
    if (atomic_fetch_add(&one->inside, 1) != 0) atomic_fetch_add(&one->clashes, 1);
    if (reason == DRUPE_LIVE_LAST) atomic_fetch_add(&one->last, 1);
    if (reason == DRUPE_LIVE_ASKED) atomic_fetch_add(&one->asked, 1);
    if (atomic_load(&one->busy))
        compute(5 * MS);
    else
        nap(atomic_load(&one->slow_ns));
    uint64_t now = drupe_now_ns(), none = 0;
    atomic_compare_exchange_strong(&one->first_ns, &none, now);
    atomic_store(&one->latest_ns, now);
    atomic_fetch_add(&one->shown, 1);
    atomic_fetch_sub(&one->inside, 1);
    if (atomic_load(&one->over)) return DRUPE_LIVE_OVER;
    return atomic_load(&one->same) ? DRUPE_LIVE_SAME : DRUPE_LIVE_SHOWN;
}

static void release(void *user)
{
    atomic_fetch_add(&((seen *)user)->released, 1);
}

static uint64_t open_one(seen *one, uint64_t period_ns)
{
    drupe_live_source source = {show, release, one};
    uint64_t id = 0;
    assert_int_equal(drupe_live_open(&source, period_ns, &id), DRUPE_OK);
    assert_true(id != 0);
    return id;
}

static void wait_for(atomic_int *count, int least)
{
    uint64_t end = drupe_now_ns() + DEADLINE;
    while (atomic_load(count) < least && drupe_now_ns() < end) nap(MS);
    assert_true(atomic_load(count) >= least);
}

static void shown_by_itself(void **state)
{
    (void)state;
    seen one = {0};
    uint64_t id = open_one(&one, 20 * MS), listed[2];
    assert_int_equal(drupe_live_list(listed, 2), 1);
    assert_true(listed[0] == id);
    wait_for(&one.shown, 3);
    assert_int_equal(atomic_load(&one.asked), 0);
    drupe_live_close(id);
    wait_for(&one.released, 1); /* later, if it was just being shown and took long */
    assert_int_equal(atomic_load(&one.last), 1);
    assert_int_equal(drupe_live_list(NULL, 0), 0);
    drupe_live_close(id);
    drupe_live_show(id);
    assert_int_equal(atomic_load(&one.released), 1);
}

/* All together no more than ten a second and a few that were saved up. */
static void not_too_often(void **state)
{
    (void)state;
    enum { MANY = 8 };
    seen all[MANY] = {{0}};
    uint64_t start = drupe_now_ns();
    for (int i = 0; i < MANY; i++) (void)open_one(&all[i], MS);
    for (int i = 0; i < MANY; i++) wait_for(&all[i].shown, 2);
    drupe_live_stop();
    double seconds = (double)(drupe_now_ns() - start) / 1e9;
    int sum = 0;
    for (int i = 0; i < MANY; i++) {
        sum += atomic_load(&all[i].shown) - atomic_load(&all[i].last);
        assert_int_equal(atomic_load(&all[i].released), 1);
        assert_int_equal(atomic_load(&all[i].clashes), 0);
    }
    if ((double)sum > 10.0 * seconds + 6.0) fail_msg("%d in %.2f s", sum, seconds);
}

/* What has nothing new costs no turn, and what takes long is asked seldom. */
static void cheap(void **state)
{
    (void)state;
    seen slow = {0};
    atomic_store(&slow.busy, true);
    atomic_store(&slow.same, true);
    (void)open_one(&slow, MS);
    wait_for(&slow.shown, 2);
    uint64_t length = atomic_load(&slow.latest_ns) - atomic_load(&slow.first_ns);
    assert_true(length >= 100 * 5 * MS);
    drupe_live_stop();
}

static void over_is_forgotten(void **state)
{
    (void)state;
    seen one = {0};
    atomic_store(&one.over, true);
    (void)open_one(&one, MS);
    wait_for(&one.released, 1);
    assert_int_equal(atomic_load(&one.shown), 1);
    assert_int_equal(drupe_live_list(NULL, 0), 0);
    drupe_live_stop();
}

/* Closing one that is stuck does not wait for it; it is shown for the last time when it comes back. */
static void stuck_ones_are_closed_later(void **state)
{
    (void)state;
    seen one = {.slow_ns = 3000 * MS};
    uint64_t id = open_one(&one, MS);
    wait_for(&one.inside, 1);
    uint64_t start = drupe_now_ns();
    drupe_live_close(id);
    assert_true(drupe_now_ns() - start < 2500 * MS || atomic_load(&one.released) == 1);
    atomic_store(&one.slow_ns, 0);
    wait_for(&one.released, 1);
    assert_int_equal(atomic_load(&one.last), 1);
    assert_int_equal(atomic_load(&one.clashes), 0);
    drupe_live_stop();
}

static void *trouble(void *user)
{
    seen *all = user;
    for (int i = 0; i < 200; i++) {
        uint64_t id = open_one(&all[i % 4], MS / 10);
        drupe_live_show(i % 3 ? id : 0);
        if (i % 7 == 0) drupe_live_close(0);
        drupe_live_close(id);
    }
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    static seen all[4][4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, trouble, all[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    drupe_live_stop();
    int released = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) released += atomic_load(&all[i][j].released);
    assert_int_equal(released, 4 * 200);
    assert_int_equal(drupe_live_list(NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shown_by_itself),
        cmocka_unit_test(not_too_often),
        cmocka_unit_test(cheap),
        cmocka_unit_test(over_is_forgotten),
        cmocka_unit_test(stuck_ones_are_closed_later),
        cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
