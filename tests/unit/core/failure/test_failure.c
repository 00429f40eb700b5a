/* Failures: first causes, who was told, what the log has, whose cell it was. */
#include "core/failure/failure_room.h"
#include "core_bench.h"

/* --- The observer's cells --------------------------------------------------------------------------------
 */

static _Atomic(int) cells; /* references */
static bool in_cell, shows, shares;
static unsigned offered;
static drupe_failure last_offered;

static void *cell_retain(void)
{
    if (!in_cell) return NULL;
    atomic_fetch_add(&cells, 1);
    return &cells;
}

static void cell_release(void *cell)
{
    if (cell) atomic_fetch_sub(&cells, 1);
}

static uint32_t cell_number(void *cell)
{
    return cell ? 42 : 0;
}

static void *cell_share(void *cell)
{
    if (!shares) return NULL;
    atomic_fetch_add(&cells, 1);
    return cell;
}

static bool failed(const drupe_failure *failure)
{
    offered++;
    last_offered = *failure;
    return shows;
}

static const drupe_observer observer = {.cell_retain = cell_retain,
                                        .cell_release = cell_release,
                                        .cell_number = cell_number,
                                        .cell_share = cell_share,
                                        .failed = failed};

static int setup(void **state)
{
    drupe_library_observe(&observer);
    in_cell = shows = false;
    shares = true;
    offered = 0;
    return bench_setup(state);
}

static int teardown(void **state)
{
    const int result = bench_teardown(state);
    drupe_library_observe(NULL);
    return result == 0 && atomic_load(&cells) == 0 ? 0 : -1;
}

/* The id of the log's latest note. */
static uint64_t latest_note(void)
{
    static drupe_failure_note notes[DRUPE_FAILURE_NOTES];
    const size_t count = drupe_failures_read(0, notes, DRUPE_FAILURE_NOTES);
    return count ? notes[count - 1].id : 0;
}

static void wait_for_failure(drupe_event *event, drupe_status status)
{
    assert_int_equal(drupe_event_wait(event, LONG), status);
    drupe_event_release(event);
}

/* --- Causes ----------------------------------------------------------------------------------------------
 */

static void dependents_name_the_first_cause(void **state)
{
    (void)state;
    drupe_failure own, cause;
    drupe_event *gate = bench_gate(), *first = bench_failure(bench.queue, "first", gate), *second, *third;
    OK(bench_barrier(bench.queue, NULL, &second));
    OK(bench_barrier(bench.queue, NULL, &third));
    bench_open_gate(gate);
    FAILS(drupe_event_wait(third, LONG), DRUPE_E_DEPENDENCY, "'first' on host:cpu:0 (submission ");
    assert_non_null(strstr(drupe_error_last()->text, PLANNED));
    assert_true(drupe_failure_last(&own, &cause));
    assert_int_equal(own.submission, drupe_event_submission(third));
    assert_string_equal(own.label, "barrier");
    assert_int_equal(cause.submission, drupe_event_submission(first));
    assert_int_equal(cause.error.status, DRUPE_E_INVALID);
    assert_true(drupe_event_failure(second, &own, &cause));
    assert_int_equal(own.submission, drupe_event_submission(second));
    assert_true(drupe_event_failure(first, &own, &cause));
    assert_int_equal(own.error.status, DRUPE_E_INVALID);
    assert_int_equal(cause.error.status, DRUPE_OK); /* it failed by itself */
    wait_for_failure(first, DRUPE_E_INVALID);
    wait_for_failure(second, DRUPE_E_DEPENDENCY);
    wait_for_failure(third, DRUPE_E_DEPENDENCY);
    /* The record belongs to that error alone. */
    drupe_error_set(DRUPE_E_DEPENDENCY, "Another.");
    assert_false(drupe_failure_last(&own, &cause));
    drupe_error_set(DRUPE_E_INVALID, "Another.");
    assert_false(drupe_failure_last(&own, &cause));
}

static void a_queue_works_again_when_its_failure_was_told(void **state)
{
    (void)state;
    drupe_event *event = bench_failure(bench.queue, "first", NULL), *next;
    FAILS(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INVALID, PLANNED);
    OK(bench_barrier(bench.queue, NULL, &next));
    OK(drupe_event_wait(next, LONG));
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_event_release(next);
    wait_for_failure(event, DRUPE_E_INVALID);
}

/* Whoever waits for work that failed, and was told of it before, has a failure of its own. */
static void history_is_a_cause_of_its_own(void **state)
{
    (void)state;
    drupe_failure own, cause;
    drupe_queue *other;
    OK(drupe_queue_open(bench.context, bench.device, 0, &other));
    drupe_event *old = bench_failure(bench.queue, "old", NULL), *late, *later;
    assert_int_equal(drupe_event_wait(old, LONG), DRUPE_E_INVALID);
    OK(bench_barrier(other, old, &late));
    OK(bench_barrier(other, late, &later));
    assert_int_equal(drupe_queue_wait(other, LONG), DRUPE_E_DEPENDENCY);
    assert_true(drupe_event_failure(late, &own, &cause));
    assert_string_equal(cause.label, "old");
    assert_true(drupe_event_failure(later, &own, &cause));
    assert_string_equal(cause.label, "old"); /* the first one, not the one between */
    /* And once more, behind one that is history itself. */
    drupe_event *last;
    OK(bench_barrier(bench.queue, late, &last));
    FAILS(drupe_event_wait(last, LONG), DRUPE_E_DEPENDENCY, "'old'");
    drupe_event_release(last);
    drupe_event_release(late);
    drupe_event_release(later);
    drupe_event_release(old);
    drupe_queue_release(other);
}

/* What stands further back may fail first, when the caller ends it before its turn. */
static void the_failure_that_stands_first_counts(void **state)
{
    (void)state;
    const drupe_submission s = {.queue = bench.queue, .label = "turn"};
    const drupe_error early = {.status = DRUPE_E_INVALID, .text = "the early one"},
                      late = {.status = DRUPE_E_INTERNAL, .text = "the late one"};
    drupe_event *gate = bench_gate(), *held, *first, *between, *second, *behind;
    OK(bench_barrier(bench.queue, gate, &held));
    OK(drupe_submit_turn(&s, &first));
    OK(bench_barrier(bench.queue, NULL, &between));
    OK(drupe_submit_turn(&s, &second));
    OK(bench_barrier(bench.queue, NULL, &behind));
    OK(drupe_event_finish(second, &late));
    OK(drupe_event_finish(first, &early));
    bench_open_gate(gate);
    OK(drupe_event_wait(held, LONG));
    FAILS(drupe_event_wait(between, LONG), DRUPE_E_DEPENDENCY, "the early one");
    assert_int_equal(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY);
    FAILS(drupe_event_wait(second, LONG), DRUPE_E_INTERNAL, "the late one");
    FAILS(drupe_event_wait(first, LONG), DRUPE_E_INVALID, "the early one");
    drupe_event *all[] = {held, first, between, second, behind};
    for (size_t i = 0; i < 5; i++) drupe_event_release(all[i]);
}

static void a_refused_submission_has_a_record(void **state)
{
    (void)state;
    drupe_failure own, cause;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64), *out;
    const drupe_submission s = {.queue = bench.queue, .site = 9};
    char byte = 0;
    FAILS(drupe_submit_fill(&s, &byte, "x", 1, 1, NULL), DRUPE_E_INVALID, "needs USM");
    assert_true(drupe_failure_last(&own, &cause));
    assert_true(own.refused);
    assert_int_equal(own.site, 9);
    assert_int_equal(own.kind, DRUPE_WORK_FILL);
    assert_int_equal(cause.error.status, DRUPE_OK);
    /* With the cause, where it would have read what was not written. */
    drupe_event *failure = bench_failure(bench.queue, "writer", NULL);
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    assert_int_equal(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INVALID);
    out = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    FAILS(bench_mad(bench.queue, out, memory, 8, 1, 1, NULL, NULL), DRUPE_E_DEPENDENCY, "'writer'");
    assert_true(drupe_failure_last(&own, &cause));
    assert_true(own.refused);
    assert_string_equal(own.label, "test_mad");
    assert_string_equal(cause.label, "writer");
    drupe_event_release(failure);
    drupe_memory_release(memory);
    drupe_memory_release(out);
}

static void a_cause_without_work_is_told(void **state)
{
    (void)state;
    drupe_failure failure;
    const drupe_error error = {.status = DRUPE_E_CHECK, .text = "Nobody did it."};
    drupe_cause_release(drupe_cause_new(&error, NULL, NULL, 0));
    drupe_cause_release(NULL);
    assert_true(drupe_failure_take(&failure));
    assert_int_equal(failure.error.status, DRUPE_E_CHECK);
    assert_string_equal(failure.label, "work without an event");
    assert_string_equal(failure.device, "");
    assert_int_equal(failure.queue, 0);
    assert_false(drupe_failure_take(&failure));
}

static void what_depends_on_it_is_told_without_a_subject(void **state)
{
    (void)state;
    drupe_failure failure;
    const drupe_error error = {.status = DRUPE_E_CHECK, .text = "Nobody did it."};
    drupe_cause *cause = drupe_cause_new(&error, NULL, NULL, 0);
    assert_ptr_equal(drupe_cause_first(cause), cause);
    drupe_cause_dependent(cause, NULL, bench.queue, &failure);
    assert_string_equal(failure.label, "work");
    assert_int_equal(failure.error.status, DRUPE_E_DEPENDENCY);
    assert_non_null(strstr(failure.error.text, "'work without an event' failed: Nobody did it; "
                                               "work on host:cpu:0 therefore did not run"));
    assert_null(drupe_cause_on(bench.queue)); /* it happened on none */
    drupe_cause_report(cause);
    drupe_cause_report(cause);
    drupe_cause_release(cause);
    assert_false(drupe_failure_take(&failure));
}

static void cancelled_work_says_that_it_was(void **state)
{
    (void)state;
    drupe_failure own, cause;
    size_t left, given_up;
    const uint64_t noted = latest_note();
    drupe_event *gate = bench_gate(), *held, *waits, *late;
    drupe_queue *other;
    OK(drupe_queue_open(bench.context, bench.device, 0, &other));
    OK(bench_barrier(bench.queue, gate, &held));
    OK(bench_barrier(other, held, &waits)); /* submitted before */
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(left, 0);
    assert_int_equal(given_up, 1);
    FAILS(drupe_event_wait(held, LONG), DRUPE_E_CANCELLED, "'barrier' on host:cpu:0 was cancelled before it");
    assert_true(drupe_failure_last(&own, &cause));
    assert_int_equal(cause.error.status, DRUPE_OK);
    FAILS(drupe_event_wait(waits, LONG), DRUPE_E_DEPENDENCY, "'cancelled work'");
    OK(bench_barrier(bench.queue, NULL, &late));
    OK(drupe_event_wait(late, LONG));
    assert_int_equal(latest_note(), noted); /* it is no failure */
    bench_open_gate(gate);
    drupe_event *all[] = {held, waits, late};
    for (size_t i = 0; i < 3; i++) drupe_event_release(all[i]);
    drupe_queue_release(other);
}

/* A lost device stays lost, however often it is reported. */
static void causes_stop_what_was_submitted_before_their_report(void **state)
{
    (void)state;
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "a reason"};
    drupe_cause *cause = drupe_cause_new(&error, NULL, bench.queue, 1), *pending;
    const uint64_t before = drupe_inflight_next();
    assert_null(drupe_queue_trouble(bench.queue));
    assert_null(drupe_queue_pending_failure(bench.queue, before));
    drupe_queue_set_cause(bench.queue, cause, before - 1);
    drupe_queue_set_cause(bench.queue, cause, before); /* the one that stands first stays */
    pending = drupe_queue_trouble(bench.queue);
    assert_ptr_equal(pending, cause);
    drupe_cause_release(pending);
    pending = drupe_queue_pending_failure(bench.queue, before);
    assert_ptr_equal(pending, cause);
    drupe_cause_release(pending);
    assert_null(drupe_queue_pending_failure(bench.queue, before - 1)); /* it stands before */
    assert_true(drupe_cause_stops(cause, before + 1000, bench.queue));
    drupe_cause_report(cause);
    assert_true(drupe_cause_stops(cause, before, bench.queue));
    assert_false(drupe_cause_stops(cause, drupe_inflight_next(), bench.queue));
    assert_null(drupe_queue_trouble(bench.queue));
    assert_null(drupe_queue_pending_failure(bench.queue, drupe_inflight_next()));
    assert_ptr_not_equal(pending = drupe_queue_pending_failure(bench.queue, before), NULL);
    drupe_cause_release(pending);
    drupe_cause_release(cause);
    /* One of a device that was lost, which this one was not. */
    const drupe_error loss = {.status = DRUPE_E_DEVICE_LOST, .text = "a loss"};
    cause = drupe_cause_new(&loss, NULL, bench.queue, 1);
    drupe_queue_set_cause(bench.queue, cause, before); /* the older one is over */
    drupe_cause_report(cause);
    assert_null(drupe_queue_trouble(bench.queue));
    drupe_cause_release(cause);
}

/* --- Taking ----------------------------------------------------------------------------------------------
 */

static bool is_second(const drupe_failure *failure, void *user)
{
    (*(unsigned *)user)++;
    return strcmp(failure->label, "second") == 0;
}

static void failures_are_taken_oldest_first_or_by_choice(void **state)
{
    (void)state;
    unsigned asked = 0;
    drupe_failure failure;
    drupe_queue *queues[3] = {bench.queue};
    drupe_event *events[3];
    static const char *const labels[] = {"first", "second", "third"};
    for (size_t i = 0; i < 3; i++) {
        if (i) OK(drupe_queue_open(bench.context, bench.device, 0, &queues[i]));
        events[i] = bench_failure(queues[i], labels[i], NULL);
        while (drupe_event_state_of(events[i]) != DRUPE_EVENT_FAILED) continue;
    }
    drupe_cause *third = drupe_cause_on(queues[2]);
    assert_non_null(third);
    assert_string_equal(third->what.label, "third");
    drupe_cause_release(third);
    assert_true(drupe_failure_take_for(is_second, &asked, &failure));
    assert_int_equal(asked, 2);
    assert_string_equal(failure.label, "second");
    assert_false(drupe_failure_take_for(is_second, &asked, &failure));
    /* The first was told by a wait, so the third is next. */
    assert_int_equal(drupe_event_wait(events[0], LONG), DRUPE_E_INVALID);
    assert_true(drupe_failure_take(&failure));
    assert_string_equal(failure.label, "third");
    assert_false(drupe_failure_take(&failure));
    for (size_t i = 0; i < 3; i++) {
        drupe_event_release(events[i]);
        if (i) drupe_queue_release(queues[i]);
    }
}

static void closing_the_library_forgets_them(void **state)
{
    (void)state;
    drupe_event *event = bench_failure(bench.queue, "forgotten", NULL);
    while (drupe_event_state_of(event) != DRUPE_EVENT_FAILED) continue;
    drupe_event_release(event);
    drupe_failures_clear();
    drupe_failure failure;
    assert_false(drupe_failure_take(&failure));
    drupe_event *next;
    OK(bench_barrier(bench.queue, NULL, &next));
    OK(drupe_event_wait(next, LONG)); /* the queue works on */
    drupe_event_release(next);
}

/* --- The log ---------------------------------------------------------------------------------------------
 */

static void the_log_counts_what_did_not_run(void **state)
{
    (void)state;
    const uint64_t before = latest_note();
    drupe_failure_note note;
    drupe_event *gate = bench_gate(), *first = bench_failure(bench.queue, "first", gate), *events[3];
    for (size_t i = 0; i < 3; i++) OK(bench_barrier(bench.queue, NULL, &events[i]));
    bench_open_gate(gate);
    for (size_t i = 0; i < 3; i++) wait_for_failure(events[i], DRUPE_E_DEPENDENCY);
    assert_int_equal(drupe_failures_read(before, &note, 1), 1);
    assert_int_equal(note.id, before + 1);
    assert_int_equal(note.dependents, 3);
    assert_string_equal(note.failure.label, "first");
    assert_true(note.at_ns && note.unix_ns);
    assert_int_equal(drupe_failures_read(note.id, &note, 1), 0);
    assert_int_equal(drupe_failures_read(before, &note, 0), 0);
    drupe_failures_note_dependent(0);
    wait_for_failure(first, DRUPE_E_INVALID);
}

static void the_log_forgets_the_oldest(void **state)
{
    (void)state;
    static drupe_failure_note notes[DRUPE_FAILURE_NOTES + 1];
    const uint64_t before = latest_note();
    drupe_failure failure = {.label = "noted", .cell = &cells};
    for (size_t i = 0; i < DRUPE_FAILURE_NOTES + 10; i++) {
        failure.submission = i;
        assert_int_equal(drupe_failures_note(&failure), before + 1 + i);
    }
    drupe_failures_note_dependent(before + 1); /* gone */
    assert_int_equal(drupe_failures_read(before, notes, DRUPE_COUNT_OF(notes)), DRUPE_FAILURE_NOTES);
    for (size_t i = 0; i < DRUPE_FAILURE_NOTES; i++) {
        assert_int_equal(notes[i].id, before + 11 + i);
        assert_int_equal(notes[i].failure.submission, 10 + i);
        assert_int_equal(notes[i].dependents, 0);
        assert_null(notes[i].failure.cell);
    }
}

/* --- Cells -----------------------------------------------------------------------------------------------
 */

static drupe_event *fail_in_cell(const char *label)
{
    in_cell = true;
    drupe_event *event = bench_failure(bench.queue, label, NULL);
    in_cell = false;
    while (drupe_event_state_of(event) != DRUPE_EVENT_FAILED) continue;
    return event;
}

static void a_failure_belongs_to_its_cell(void **state)
{
    (void)state;
    drupe_failure failure;
    drupe_event *event = fail_in_cell("mine");
    assert_true(drupe_failure_take(&failure));
    assert_ptr_equal(failure.cell, &cells);
    assert_int_equal(failure.cell_number, 42);
    cell_release(failure.cell);
    drupe_event_release(event);
}

static void failures_are_offered_until_they_are_shown(void **state)
{
    (void)state;
    drupe_failure failure;
    drupe_event *event = fail_in_cell("mine");
    const uint64_t number = drupe_event_submission(event);
    drupe_failures_offer();
    drupe_failures_offer(); /* again, as nobody has shown it */
    assert_int_equal(offered, 2);
    assert_int_equal(last_offered.submission, number);
    shares = false;
    drupe_failures_offer();
    assert_int_equal(offered, 2); /* without a cell to be shown in */
    shares = shows = true;
    drupe_failures_offer();
    drupe_failures_offer();
    assert_int_equal(offered, 3);
    assert_true(drupe_failure_take(&failure));
    assert_true(failure.shown);
    cell_release(failure.cell);
    drupe_failures_offer();
    assert_int_equal(offered, 3);
    drupe_event_release(event);
}

static void the_oldest_is_offered_first(void **state)
{
    (void)state;
    drupe_event *first = fail_in_cell("first");
    drupe_queue *ours = bench.queue;
    OK(drupe_queue_open(bench.context, bench.device, 0, &bench.queue));
    drupe_event *second = fail_in_cell("second");
    const drupe_error error = {.status = DRUPE_E_CHECK, .text = "No cell."};
    drupe_cause_release(drupe_cause_new(&error, NULL, NULL, 0));
    drupe_failures_offer();
    assert_int_equal(offered, 2);
    assert_string_equal(last_offered.label, "second");
    drupe_failure failure;
    for (size_t i = 0; i < 3; i++) {
        assert_true(drupe_failure_take(&failure));
        cell_release(failure.cell);
    }
    drupe_event_release(first);
    drupe_event_release(second);
    drupe_queue_release(bench.queue);
    bench.queue = ours;
}

/* Cells of causes that nobody took are released where the caller's functions may be called. */
static void cells_of_causes_are_put_aside(void **state)
{
    (void)state;
    drupe_event *event = fail_in_cell("mine");
    wait_for_failure(event, DRUPE_E_INVALID);
    drupe_event *next;
    OK(bench_barrier(bench.queue, NULL, &next));
    OK(drupe_event_wait(next, LONG));
    drupe_event_release(next);
    drupe_queue_collect(bench.queue);
    drupe_failures_clear();
    drupe_cause_free_deferred();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(dependents_name_the_first_cause),
        TEST(a_queue_works_again_when_its_failure_was_told),
        TEST(history_is_a_cause_of_its_own),
        TEST(the_failure_that_stands_first_counts),
        TEST(a_refused_submission_has_a_record),
        TEST(a_cause_without_work_is_told),
        TEST(what_depends_on_it_is_told_without_a_subject),
        TEST(cancelled_work_says_that_it_was),
        TEST(causes_stop_what_was_submitted_before_their_report),
        TEST(failures_are_taken_oldest_first_or_by_choice),
        TEST(closing_the_library_forgets_them),
        TEST(the_log_counts_what_did_not_run),
        TEST(the_log_forgets_the_oldest),
        TEST(a_failure_belongs_to_its_cell),
        TEST(failures_are_offered_until_they_are_shown),
        TEST(the_oldest_is_offered_first),
        TEST(cells_of_causes_are_put_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
