/* The trace ring, written and read without any device: what a record says, who may still write it, and who
 * is woken. */
#include "trace_records.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEVER (60 * UINT64_C(1000000000))

/* --- Between two steps of a call -------------------------------------------------------------------------
 */

static _Thread_local void (*on_ticks)(void);         /* before the next look at the clock */
static _Thread_local void (*on_wait)(bool for_ever); /* before a thread sleeps */

uint64_t __real_drupe_ticks(void);
uint64_t __wrap_drupe_ticks(void);
uint64_t __wrap_drupe_ticks(void)
{
    void (*act)(void) = on_ticks;
    on_ticks = NULL;
    if (act) act();
    return __real_drupe_ticks();
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long words[6];
    va_list list;
    va_start(list, number);
    for (size_t i = 0; i < DRUPE_COUNT_OF(words); i++) words[i] = va_arg(list, long);
    va_end(list);
    void (*act)(bool) = on_wait;
    if (number == SYS_futex && words[1] == FUTEX_WAIT_PRIVATE) {
        on_wait = NULL;
        if (act) act(words[3] == 0);
    }
    return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

static drupe_trace_record record_of(uint64_t number)
{
    drupe_trace_record record;
    assert_true(drupe_trace_one(number, &record));
    return record;
}

/* The first one: the ring is not full yet. */
static void a_young_trace_is_read_from_its_beginning(void **state)
{
    (void)state;
    drupe_trace_record records[3];
    char text[512];
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL};
    assert_int_equal(drupe_trace_latest(), 0);
    assert_int_equal(drupe_trace_text(text, sizeof text, 9), 0);
    for (size_t i = 0; i < 2; i++) begin("fill", &work);
    assert_int_equal(drupe_trace_read(0, records, 3), 2);
    assert_int_equal(records[0].id, 1);
    assert_int_equal(records[1].id, 2);
    const size_t size = drupe_trace_text(text, sizeof text - 1, 9);
    text[size] = '\0';
    assert_int_equal(strncmp(text, "#1 'fill'", 9), 0);
    assert_non_null(strstr(text, "\n#2 'fill'"));
    assert_false(drupe_trace_one(3, &records[0])); /* not made yet */
}

static void a_record_says_what_was_submitted(void **state)
{
    (void)state;
    const drupe_trace_work work = {.kind = DRUPE_WORK_COPY, .bytes = 1000, .items = 5, .told = true};
    const uint64_t before = drupe_now_ns(), number = begin("my copy", &work);
    const drupe_trace_record record = record_of(number);
    assert_int_equal(record.id, number);
    assert_string_equal(record.label, "my copy");
    assert_string_equal(record.device, "scripted:cpu:0");
    assert_int_equal(record.queue, 3);
    assert_int_equal(record.site, 17);
    assert_int_equal(record.cell, 4);
    assert_int_equal(record.kind, DRUPE_WORK_COPY);
    assert_int_equal(record.bytes, 1000);
    assert_int_equal(record.items, 5);
    assert_int_equal(record.status, DRUPE_TRACE_PENDING);
    assert_int_equal(record.seen_ns, 0);
    assert_true(record.told && record.ordered);
    /* The two clocks are compared now and then. */
    assert_in_range(record.submitted_ns, before - 10000000, drupe_now_ns() + 10000000);
}

static void labels_have_names_or_are_copied(void **state)
{
    (void)state;
    char label[100];
    memset(label, 'x', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    drupe_trace_work work = {.kind = DRUPE_WORK_KERNEL};
    const uint64_t cut = begin(label, &work);
    work.name = drupe_trace_name("scale");
    assert_int_equal(drupe_trace_name("scale"), work.name);
    const uint64_t named = begin("ignored", &work);
    work = (drupe_trace_work){.kind = DRUPE_WORK_HOST, .ticks = drupe_ticks()};
    const uint64_t host = begin(drupe_label_host, &work), barrier = begin(drupe_label_barrier, &work);
    assert_int_equal(strlen(record_of(cut).label), 55);
    assert_string_equal(record_of(named).label, "scale");
    assert_string_equal(record_of(host).label, "host function");
    assert_string_equal(record_of(barrier).label, "barrier");
}

static void the_first_end_counts(void **state)
{
    (void)state;
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL};
    const uint64_t number = begin("fill", &work);
    bool gone = true;
    assert_false(drupe_trace_over(number, &gone));
    assert_false(gone);
    drupe_trace_prefetch(number);
    drupe_trace_end(number, DRUPE_TRACE_FAILED);
    drupe_trace_end_at(number, DRUPE_TRACE_COMPLETE, drupe_ticks());
    drupe_trace_end_at_once(number);
    assert_int_equal(record_of(number).status, DRUPE_TRACE_FAILED);
    const drupe_trace_record record = record_of(number);
    assert_true(record.seen_ns >= record.submitted_ns);
    assert_true(drupe_trace_over(number, &gone));
    assert_false(gone);
}

static void an_end_before_the_beginning_is_the_beginning(void **state)
{
    (void)state;
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL, .ticks = drupe_ticks()};
    const uint64_t number = begin("fill", &work);
    drupe_trace_end_at(number, DRUPE_TRACE_COMPLETE, work.ticks - 1000); /* another processor's counter */
    const drupe_trace_record record = record_of(number);                 /* read once: the scale changes */
    assert_int_equal(record.seen_ns, record.submitted_ns);
}

/* The end is stored without its highest byte, which a machine that runs for most of a year counts up. */
static void an_end_may_have_another_highest_byte(void **state)
{
    (void)state;
    const uint64_t high = UINT64_C(2) << 56;
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL, .ticks = high - 1000};
    const uint64_t number = begin("fill", &work);
    drupe_trace_end_at(number, DRUPE_TRACE_COMPLETE, high + 1000);
    const drupe_trace_record record = record_of(number);
    assert_true(record.seen_ns > record.submitted_ns);
    assert_true(record.seen_ns - record.submitted_ns < 1000000000);
}

static void work_done_at_once_ran_meanwhile(void **state)
{
    (void)state;
    const drupe_trace_work work = {.kind = DRUPE_WORK_KERNEL};
    const uint64_t number = begin("f", &work);
    drupe_trace_end_at_once(number);
    const drupe_trace_record record = record_of(number);
    assert_int_equal(record.status, DRUPE_TRACE_COMPLETE);
    assert_true(record.told);
    assert_int_equal(record.started_ns, record.submitted_ns);
    assert_int_equal(record.ended_ns, record.seen_ns);
}

static void a_barrier_is_over_when_it_is_made(void **state)
{
    (void)state;
    const uint64_t number = drupe_inflight_next();
    queue.unordered = true;
    drupe_trace_barrier(&queue, number, 5, 6);
    const drupe_trace_record record = record_of(number);
    assert_int_equal(record.kind, DRUPE_WORK_BARRIER);
    assert_string_equal(record.label, "barrier");
    assert_int_equal(record.status, DRUPE_TRACE_COMPLETE);
    assert_int_equal(record.site, 5);
    assert_int_equal(record.cell, 6);
    assert_false(record.ordered);
}

static void a_skipped_number_is_over_and_has_no_record(void **state)
{
    (void)state;
    drupe_trace_record record;
    bool gone;
    const uint64_t number = drupe_inflight_next();
    assert_false(drupe_trace_over(number, &gone));
    assert_true(gone); /* not written yet */
    drupe_trace_skip(number);
    assert_false(drupe_trace_one(number, &record));
    assert_true(drupe_trace_over(number, &gone));
    assert_false(gone);
}

/* --- When it ran -----------------------------------------------------------------------------------------
 */

static void who_runs_it_tells_when(void **state)
{
    (void)state;
    uint64_t began, over;
    const drupe_trace_work work = {.kind = DRUPE_WORK_HOST, .told = true};
    const uint64_t number = begin(drupe_label_host, &work);
    assert_false(drupe_trace_ran(number, &began, &over));
    assert_int_equal(record_of(number).started_ns, 0);
    drupe_core_began(number);
    assert_true(drupe_trace_ran(number, &began, &over));
    assert_int_equal(over, 0);
    drupe_core_began(number); /* the first counts */
    drupe_core_ran(number);
    const drupe_trace_record record = record_of(number);
    assert_true(record.started_ns && record.ended_ns >= record.started_ns);
    assert_true(drupe_trace_ran(number, &began, &over));
    assert_true(began && over >= began);
    drupe_core_began(0);
    drupe_core_ran(0);
}

static void devices_have_clocks_of_their_own(void **state)
{
    (void)state;
    const drupe_times times = {.started = 12345, .ended = 23456};
    const drupe_trace_work work = {.kind = DRUPE_WORK_KERNEL};
    const uint64_t number = begin("f", &work);
    drupe_core_began(number);
    drupe_core_ran(number);
    drupe_trace_times(number, &times);
    assert_true(record_of(number).own_clock);
    assert_int_equal(record_of(number).started_ns, 12345);
    assert_int_equal(record_of(number).ended_ns, 23456);
}

/* --- A whole ring later ----------------------------------------------------------------------------------
 */

static void nobody_writes_what_belongs_to_a_later_one(void **state)
{
    (void)state;
    const drupe_times times = {.started = 1, .ended = 2};
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL};
    const uint64_t old = drupe_inflight_next(), number = old + DRUPE_TRACE_RECORDS;
    uint64_t began, over;
    bool gone;
    while (drupe_inflight_latest() < number - 1) drupe_trace_skip(drupe_inflight_next());
    assert_int_equal(begin("later", &work), number);
    drupe_core_began(number);
    /* A thread that has slept meanwhile: */
    const drupe_subject late = {.number = old, .label = "old"};
    drupe_trace_begin(&queue, &late, &work);
    drupe_trace_barrier(&queue, old, 0, 0);
    drupe_trace_skip(old);
    drupe_trace_times(old, &times);
    drupe_trace_end(old, DRUPE_TRACE_FAILED);
    drupe_core_began(old);
    drupe_core_ran(old);
    const drupe_trace_record record = record_of(number);
    assert_string_equal(record.label, "later");
    assert_int_equal(record.status, DRUPE_TRACE_PENDING);
    assert_false(record.own_clock);
    assert_int_equal(record.ended_ns, 0);
    assert_false(drupe_trace_ran(old, &began, &over));
    assert_false(drupe_trace_over(old, &gone));
    assert_true(gone);
}

/* --- Threads that meet -----------------------------------------------------------------------------------
 */

static uint64_t meeting; /* the number of the record that is being written */

static void skip_a_ring_later(void)
{
    drupe_trace_skip(meeting + DRUPE_TRACE_RECORDS);
}

static void begin_a_ring_later(void)
{
    drupe_core_began(meeting + DRUPE_TRACE_RECORDS);
}

/* Who comes a whole ring later finds it half written and gives up: the record stays whole. */
static void a_record_is_written_by_one(void **state)
{
    (void)state;
    bool gone;
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL};
    meeting = drupe_inflight_latest() + 1;
    on_ticks = skip_a_ring_later;
    assert_int_equal(begin("mine", &work), meeting);
    assert_null(on_ticks);
    assert_string_equal(record_of(meeting).label, "mine");
    assert_false(drupe_trace_over(meeting + DRUPE_TRACE_RECORDS, &gone));
    assert_true(gone);
}

static void a_beginning_is_told_by_one(void **state)
{
    (void)state;
    uint64_t began, over;
    const drupe_trace_work work = {.kind = DRUPE_WORK_HOST, .told = true};
    meeting = begin(drupe_label_host, &work);
    on_ticks = begin_a_ring_later;
    drupe_core_began(meeting);
    assert_null(on_ticks);
    assert_true(drupe_trace_ran(meeting, &began, &over));
    assert_false(drupe_trace_ran(meeting + DRUPE_TRACE_RECORDS, &began, &over));
}

static void readers_get_the_latest_ring_in_order(void **state)
{
    (void)state;
    static drupe_trace_record records[DRUPE_TRACE_RECORDS + 10];
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL};
    uint64_t last = 0;
    for (size_t i = 0; i < DRUPE_TRACE_RECORDS + 100; i++) {
        if (i % 2 == 0)
            last = begin("fill", &work);
        else
            drupe_trace_skip(drupe_inflight_next());
    }
    const size_t count = drupe_trace_read(0, records, DRUPE_COUNT_OF(records));
    assert_int_equal(count, DRUPE_TRACE_RECORDS / 2);
    assert_int_equal(records[count - 1].id, last);
    for (size_t i = 1; i < count; i++) assert_int_equal(records[i].id, records[i - 1].id + 2);
    assert_int_equal(drupe_trace_read(last - 2, records, 1), 1);
    assert_int_equal(records[0].id, last);
    assert_int_equal(drupe_trace_read(last + 1000, records, 1), 0);
    assert_int_equal(drupe_trace_read(drupe_trace_latest(), records, 1), 0);
}

/* --- Those who follow ------------------------------------------------------------------------------------
 */

static void who_waits_is_woken_by_a_number(void **state)
{
    (void)state;
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL};
    /* What has been made already is not waited for. */
    drupe_trace_await(drupe_trace_latest(), NEVER);
    /* A call before the wait ends it. */
    drupe_trace_wake();
    drupe_trace_await(drupe_trace_latest() + 1, NEVER);
    /* The time is over. */
    drupe_trace_await(drupe_trace_latest() + 1, 1);
    begin("fill", &work); /* wakes nobody */
    drupe_trace_await(drupe_trace_latest(), DRUPE_FOREVER);
}

static uint64_t awaited;
static bool for_ever;

static void submit_awaited(bool endless)
{
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL};
    for_ever = endless;
    assert_int_equal(begin("fill", &work), awaited);
}

/* What is submitted when the thread has looked for the last time keeps it from sleeping. */
static void a_submission_before_the_sleep_is_heard(void **state)
{
    (void)state;
    static const uint64_t times[] = {NEVER, DRUPE_FOREVER};
    for (size_t i = 0; i < DRUPE_COUNT_OF(times); i++) {
        awaited = drupe_trace_latest() + 1;
        on_wait = submit_awaited;
        drupe_trace_await(awaited, times[i]);
        assert_null(on_wait);
        assert_int_equal(for_ever, times[i] == DRUPE_FOREVER);
        assert_int_equal(drupe_trace_latest(), awaited);
    }
}

static _Atomic(int) followed;

static void *follow(void *unused)
{
    drupe_trace_await(drupe_trace_latest() + 2, NEVER);
    atomic_fetch_add(&followed, 1);
    return unused;
}

/* However the two meet, the thread comes back. */
static void a_submission_wakes_another_thread(void **state)
{
    (void)state;
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL};
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, follow, NULL), 0);
        while (atomic_load(&followed) == i) {
            begin("fill", &work);
            sched_yield();
        }
        pthread_join(thread, NULL);
    }
}

/* What a crash has left in the ring may point anywhere. */
static void numbers_that_no_table_has_are_nothing(void **state)
{
    (void)state;
    const drupe_trace_work work = {.kind = DRUPE_WORK_KERNEL, .name = 30000};
    const drupe_trace_queue stray = {.number = 3, .device = 255};
    const drupe_subject what = {.number = drupe_inflight_next(), .label = "ignored"};
    drupe_trace_begin(&stray, &what, &work);
    assert_string_equal(record_of(what.number).label, "");
    assert_string_equal(record_of(what.number).device, "");
}

static void statuses_have_names(void **state)
{
    (void)state;
    assert_string_equal(drupe_trace_status_name(DRUPE_TRACE_PENDING), "pending");
    assert_string_equal(drupe_trace_status_name(DRUPE_TRACE_CANCELLED), "cancelled");
    assert_string_equal(drupe_trace_status_name((drupe_trace_status)99), "unknown");
}

/* The last one: the tables stay full. */
static void tables_of_names_have_an_end(void **state)
{
    (void)state;
    char name[80];
    uint32_t last = 1, devices = 1;
    for (size_t i = 0; i < 1100; i++) {
        snprintf(name, sizeof name, "kernel_%zu", i);
        last = drupe_trace_name(name);
    }
    assert_int_equal(last, 0);
    for (size_t i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "device:%zu", i);
        devices = drupe_trace_device(name);
    }
    assert_int_equal(devices, 0);
    assert_int_not_equal(drupe_trace_name("kernel_0"), 0);
    /* Without a number the name is copied. */
    const drupe_trace_work work = {.kind = DRUPE_WORK_KERNEL, .name = drupe_trace_name("kernel_1099")};
    assert_string_equal(record_of(begin("kernel_1099", &work)).label, "kernel_1099");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(a_young_trace_is_read_from_its_beginning),
        TEST(a_record_says_what_was_submitted),
        TEST(labels_have_names_or_are_copied),
        TEST(the_first_end_counts),
        TEST(an_end_before_the_beginning_is_the_beginning),
        TEST(an_end_may_have_another_highest_byte),
        TEST(work_done_at_once_ran_meanwhile),
        TEST(a_barrier_is_over_when_it_is_made),
        TEST(a_skipped_number_is_over_and_has_no_record),
        TEST(who_runs_it_tells_when),
        TEST(devices_have_clocks_of_their_own),
        TEST(nobody_writes_what_belongs_to_a_later_one),
        TEST(a_record_is_written_by_one),
        TEST(a_beginning_is_told_by_one),
        TEST(readers_get_the_latest_ring_in_order),
        TEST(who_waits_is_woken_by_a_number),
        TEST(a_submission_before_the_sleep_is_heard),
        TEST(a_submission_wakes_another_thread),
        TEST(numbers_that_no_table_has_are_nothing),
        TEST(statuses_have_names),
        TEST(tables_of_names_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
