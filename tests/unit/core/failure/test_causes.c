/* White-box: causes without memory for them, whose turn it is to be told, and what a cancelled queue says. */
#include "core/failure/failure_room.h"
#include "core_ends.h"
#include "walk/wrap.h"
#include <pthread.h>

static _Atomic(int) cells; /* references */
static uint64_t offered[8];
static size_t noffered;

static void cell_release(void *cell)
{
    atomic_fetch_sub((_Atomic(int) *)cell, 1);
}

static void *cell_share(void *cell)
{
    atomic_fetch_add((_Atomic(int) *)cell, 1);
    return cell;
}

static bool failed(const drupe_failure *failure)
{
    assert_true(noffered < DRUPE_COUNT_OF(offered));
    offered[noffered++] = failure->submission;
    return false;
}

static const drupe_observer observer = {
    .cell_release = cell_release, .cell_share = cell_share, .failed = failed};

static int setup(void **state)
{
    drupe_library_observe(&observer);
    noffered = 0;
    return bench_setup(state);
}

static int teardown(void **state)
{
    const int result = bench_teardown(state);
    drupe_library_observe(NULL);
    return result == 0 && atomic_load(&cells) == 0 ? 0 : -1;
}

static const drupe_error reason = {.status = DRUPE_E_INVALID, .text = "a reason"};

/* A cause on the bench's queue, in a cell or not. */
static drupe_cause *planned(const char *label, uint64_t submission, bool in_cell)
{
    static const drupe_arg_summary nothing;
    drupe_subject what = {.label = label, .summary = &nothing};
    if (in_cell) what.cell = cell_share((void *)&cells);
    return drupe_cause_new(&reason, &what, bench.queue, submission);
}

/* Take all that nobody was told of; how many there were. */
static size_t take_all(void)
{
    size_t count = 0;
    drupe_failure failure;
    for (; drupe_cause_take(NULL, NULL, &failure); count++)
        if (failure.cell) cell_release(failure.cell);
    return count;
}

/* --- No memory --------------------------------------------------------------------------------------------
 */

static uint64_t latest_note(drupe_failure_note *latest)
{
    static drupe_failure_note notes[DRUPE_FAILURE_NOTES];
    const size_t count = drupe_failures_read(0, notes, DRUPE_FAILURE_NOTES);
    if (count) *latest = notes[count - 1];
    return count ? latest->id : 0;
}

static void a_failure_without_memory_for_its_reason_counts(void **state)
{
    (void)state;
    drupe_failure_note note;
    drupe_cause *causes[2], *trouble;
    const uint64_t noted = latest_note(&note);
    for (uint64_t i = 0; i < 2; i++) {
        wrap_plan(WRAP_MALLOC, 1);
        causes[i] = planned("lost", 1, false);
        assert_int_equal(wrap_made(), 1);
        wrap_plan(WRAP_NOTHING, 0);
        assert_int_equal(causes[i]->what.error.status, DRUPE_E_NO_MEMORY);
        assert_int_equal(latest_note(&note), noted + i + 1);
        assert_non_null(strstr(note.failure.error.text, "there was no host memory to keep the reason"));
        drupe_queue_set_cause(bench.queue, causes[i], 0);
        trouble = drupe_queue_trouble(bench.queue);
        assert_ptr_equal(trouble, causes[i]); /* it is not reported, also the second time */
        drupe_cause_release(trouble);
        FAILS(drupe_queue_wait(bench.queue, LONG), DRUPE_E_DEPENDENCY, "no host memory to keep the reason");
        assert_null(drupe_queue_trouble(bench.queue));
    }
    assert_ptr_equal(causes[0], causes[1]); /* the one for all of them */
    for (size_t i = 0; i < 2; i++) drupe_cause_release(causes[i]);
    assert_int_equal(take_all(), 0);
}

static void a_queue_that_cannot_be_cancelled_works_on(void **state)
{
    (void)state;
    size_t left, given_up;
    drupe_event *gate = bench_gate(), *event;
    OK(bench_barrier(bench.queue, gate, &event));
    wrap_plan(WRAP_MALLOC, 1);
    FAILS(drupe_queue_cancel(bench.queue, &left, &given_up), DRUPE_E_NO_MEMORY, "No host memory to cancel");
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
}

/* --- Whose turn it is -------------------------------------------------------------------------------------
 */

static void of_two_causes_the_first_in_the_order_stays(void **state)
{
    (void)state;
    static const uint32_t flags[] = {DRUPE_QUEUE_DEFAULT, DRUPE_QUEUE_OUT_OF_ORDER};
    drupe_cause *late = planned("late", 20, false), *early = planned("early", 10, false), *trouble;
    for (size_t i = 0; i < 2; i++) {
        drupe_queue *queue;
        OK(drupe_queue_open(bench.context, bench.device, flags[i], &queue));
        drupe_queue_set_cause(queue, late, 20);
        drupe_queue_set_cause(queue, early, 10);
        trouble = drupe_queue_trouble(queue);
        assert_ptr_equal(trouble, i ? late : early); /* without an order: what failed first */
        drupe_cause_release(trouble);
        drupe_queue_set_cause(queue, early, 15);
        trouble = drupe_queue_trouble(queue);
        assert_ptr_equal(trouble, i ? late : early);
        drupe_cause_release(trouble);
        drupe_queue_release(queue);
    }
    drupe_cause_release(late);
    drupe_cause_release(early);
    assert_int_equal(take_all(), 2);
}

static void what_was_reported_is_passed_over(void **state)
{
    (void)state;
    drupe_cause *causes[3], *found;
    static const char *const labels[] = {"first", "second", "third"};
    for (size_t i = 0; i < 3; i++) causes[i] = planned(labels[i], i + 1, false);
    for (size_t i = 0; i < 3; i++) {
        found = drupe_cause_on(bench.queue);
        assert_ptr_equal(found, causes[i]);
        drupe_cause_release(found);
        drupe_cause_report(causes[i]);
    }
    assert_null(drupe_cause_on(bench.queue));
    for (size_t i = 0; i < 3; i++) drupe_cause_release(causes[i]);
    assert_int_equal(take_all(), 0);
}

static bool is_third(const drupe_failure *failure, void *asked)
{
    ++*(unsigned *)asked;
    return strcmp(failure->label, "third") == 0;
}

static void what_was_reported_is_not_offered_to_choose(void **state)
{
    (void)state;
    unsigned asked = 0;
    drupe_failure failure;
    drupe_cause *first = planned("first", 1, false), *second = planned("second", 2, false),
                *third = planned("third", 3, false);
    drupe_cause_report(second);
    assert_true(drupe_cause_take(is_third, &asked, &failure));
    assert_string_equal(failure.label, "third");
    assert_int_equal(asked, 2);
    drupe_cause_release(first);
    drupe_cause_release(second);
    drupe_cause_release(third);
    assert_int_equal(take_all(), 1);
}

/* In the order of submission, whatever the order of failing was. */
static void failures_with_a_cell_are_offered_oldest_first(void **state)
{
    (void)state;
    static const struct {
        uint64_t submission;
        bool in_cell, reported;
    } rows[] = {
        {30, true, false}, {20, true, false}, {10, false, false}, {15, true, true}, {40, true, false}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(rows); i++) {
        drupe_cause *cause = planned("one", rows[i].submission, rows[i].in_cell);
        if (rows[i].reported) drupe_cause_report(cause);
        drupe_cause_release(cause);
    }
    drupe_failures_offer();
    assert_int_equal(noffered, 3);
    for (size_t i = 0; i < 3; i++) assert_int_equal(offered[i], 20 + 10 * i);
    assert_int_equal(take_all(), 4);
    drupe_failures_clear();
}

/* --- What is said -----------------------------------------------------------------------------------------
 */

static void what_is_cancelled_says_so_to_those_before_it_alone(void **state)
{
    (void)state;
    size_t left, given_up;
    drupe_event *gate = bench_gate(), *held, *late;
    drupe_failure failure;
    drupe_cause *cause;
    OK(drupe_cause_cancelling(bench.queue, 1, &cause));
    drupe_cause_dependent(cause, NULL, bench.queue, &failure);
    assert_int_equal(failure.error.status, DRUPE_E_CANCELLED);
    assert_string_equal(failure.error.text, "Work on host:cpu:0 was cancelled before it started.");
    drupe_cause_release(cause);
    OK(bench_barrier(bench.queue, gate, &held));
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    OK(bench_barrier(bench.queue, held, &late)); /* it knew */
    FAILS(drupe_event_wait(late, LONG), DRUPE_E_DEPENDENCY, "'cancelled work' on host:cpu:0");
    FAILS(drupe_event_wait(held, LONG), DRUPE_E_CANCELLED, "was cancelled before it started");
    bench_open_gate(gate);
    drupe_event_release(held);
    drupe_event_release(late);
}

/* To read what cancelled work was to write has no failure as its cause. */
static void a_refusal_without_a_failure_names_none(void **state)
{
    (void)state;
    size_t left, given_up;
    drupe_failure own, cause;
    drupe_event *gate = bench_gate();
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(given_up, 1);
    bench_open_gate(gate);
    FAILS(bench_mad(bench.queue, memory, memory, 8, 1, 1, NULL, NULL), DRUPE_E_CANCELLED,
          "which was cancelled before it started");
    assert_true(drupe_failure_last(&own, &cause));
    assert_true(own.refused);
    assert_string_equal(own.label, "test_mad");
    assert_int_equal(cause.error.status, DRUPE_OK);
    drupe_memory_release(memory);
}

static void work_without_a_summary_is_told_without_one(void **state)
{
    (void)state;
    drupe_failure failure;
    const drupe_subject what = {.label = "suspects", .site = 7, .cell_number = 8, .number = 9};
    drupe_failure_describe(&failure, &reason, bench.queue, &what);
    assert_string_equal(failure.label, "suspects");
    assert_int_equal(failure.site, 7);
    assert_int_equal(failure.cell_number, 8);
    assert_int_equal(failure.submission, 9);
    assert_int_equal(failure.kind, DRUPE_WORK_BARRIER);
    assert_string_equal(failure.arguments, "");
}

static void *ask(void *known)
{
    drupe_failure own, cause;
    *(bool *)known = drupe_failure_last(&own, &cause); /* nothing was told, nor has anything failed */
    drupe_error_restore(&reason);
    *(bool *)known |= drupe_failure_last(&own, &cause);
    return NULL;
}

static void a_thread_knows_of_its_own_failures_alone(void **state)
{
    (void)state;
    bool known = true;
    pthread_t thread;
    drupe_failure own, cause, failure;
    drupe_failure_describe(&failure, &reason, bench.queue, NULL);
    drupe_failure_tell(&failure, NULL);
    drupe_error_restore(&reason);
    assert_true(drupe_failure_last(&own, &cause));
    assert_int_equal(pthread_create(&thread, NULL, ask, &known), 0);
    pthread_join(thread, NULL);
    assert_false(known);
}

static void in_the_child(void)
{
    drupe_failure_note note;
    ENDS_MUST(drupe_failures_read(0, &note, 1) == 0);
}

static void a_forked_child_has_no_log(void **state)
{
    (void)state;
    drupe_failure_note note;
    drupe_cause_release(planned("noted", 1, false));
    ends_in_child(in_the_child);
    assert_int_equal(drupe_failures_read(0, &note, 1), 1);
    assert_int_equal(take_all(), 1);
}

/* The last one: a device is lost for the process. */
static void a_lost_device_stays_lost_when_it_was_reported(void **state)
{
    (void)state;
    const drupe_error loss = {.status = DRUPE_E_DEVICE_LOST, .text = "It went away."};
    drupe_core_device_lost(bench.device, &loss, false);
    drupe_cause *cause = drupe_cause_new(&loss, NULL, bench.queue, 1), *trouble;
    drupe_queue_set_cause(bench.queue, cause, 0);
    drupe_cause_report(cause);
    trouble = drupe_queue_trouble(bench.queue);
    assert_ptr_equal(trouble, cause);
    assert_true(drupe_cause_stops(cause, UINT64_MAX, bench.queue));
    drupe_cause_release(trouble);
    drupe_cause_release(cause);
    assert_int_equal(take_all(), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_failure_without_memory_for_its_reason_counts),
        TEST(a_queue_that_cannot_be_cancelled_works_on),
        TEST(of_two_causes_the_first_in_the_order_stays),
        TEST(what_was_reported_is_passed_over),
        TEST(what_was_reported_is_not_offered_to_choose),
        TEST(failures_with_a_cell_are_offered_oldest_first),
        TEST(what_is_cancelled_says_so_to_those_before_it_alone),
        TEST(a_refusal_without_a_failure_names_none),
        TEST(work_without_a_summary_is_told_without_one),
        TEST(a_thread_knows_of_its_own_failures_alone),
        TEST(a_forked_child_has_no_log),
        TEST(a_lost_device_stays_lost_when_it_was_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
