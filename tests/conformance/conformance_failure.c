/* What a failure stops, what it says, and that it is said once. */
#include "conformance.h"
#include <stdio.h>

#define N 100

static void queue_spreads(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    struct gate gate;
    gate_init(&gate);
    gate.result = DRUPE_E_OUT_OF_RANGE;
    drupe_event *cause = submit_gate(b->queue, &gate), *behind, *last;
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, &behind));
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, NULL));
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, &last));
    gate_open(&gate);
    FAILS(drupe_event_wait(last, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    assert_non_null(strstr(drupe_error_last()->text, "'gate'"));
    assert_non_null(strstr(drupe_error_last()->text, "'test_mad'"));
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    FAILS(drupe_event_wait(cause, DRUPE_FOREVER), DRUPE_E_OUT_OF_RANGE, PLANNED);
    assert_int_equal(drupe_event_state_of(behind), DRUPE_EVENT_FAILED);
    assert_int_equal(drupe_event_error(behind)->status, DRUPE_E_DEPENDENCY);
    /* Reported by the waits: the queue works again and has nothing more to say. */
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    expect_u64(b->queue, pair.a, 1, N);
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, NULL));
    expect_u64(b->queue, pair.a, 2, N);
    drupe_event *events[] = {cause, behind, last};
    for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    drop_pair(pair);
    gate_destroy(&gate);
}

/* A failure on `first` stops what waits for it on `second`, and what stands behind that. */
static void spread_across(struct bench *first, struct bench *second)
{
    drupe_queue *queue;
    OK(drupe_queue_open(second->context, second->device, 0, &queue));
    struct pair pair = new_pair(queue, N);
    struct gate gate;
    gate_init(&gate);
    gate.result = DRUPE_E_INVALID;
    drupe_event *cause = submit_gate(first->queue, &gate), *waiting, *behind;
    OK(submit_mad(second, queue, pair.a, pair.a, N, 1, 1, &cause, 1, &waiting));
    drupe_submission s = {.queue = queue, .label = "the last copy"};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(pair.b), drupe_memory_pointer(pair.a), N * 8, NULL));
    OK(drupe_submit_copy(&s, drupe_memory_pointer(pair.b), drupe_memory_pointer(pair.a), N * 8, &behind));
    gate_open(&gate);
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    assert_non_null(strstr(drupe_error_last()->text, "'the last copy'"));
    assert_non_null(strstr(drupe_error_last()->text, "'gate'"));
    assert_non_null(strstr(drupe_error_last()->text, drupe_device_filter(first->device)));
    FAILS(drupe_event_wait(waiting, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    FAILS(drupe_event_wait(cause, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    OK(drupe_queue_wait(first->queue, DRUPE_FOREVER));
    expect_u64(queue, pair.a, 1, N);
    expect_u64(queue, pair.b, 2, N);
    drupe_event *events[] = {cause, waiting, behind};
    for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    drop_pair(pair);
    drupe_queue_release(queue);
    gate_destroy(&gate);
}

static void wait_spreads(struct suite *suite)
{
    spread_across(&suite->bench, &suite->bench);
}

static void wait_spreads_across_contexts(struct suite *suite)
{
    spread_across(&suite->bench, use_other(suite));
}

static void wait_spreads_across_backends(struct suite *suite)
{
    struct bench *remote = use_remote(suite);
    spread_across(&suite->bench, remote);
    spread_across(remote, &suite->bench);
}

static void reported_once(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    drupe_event *cause = submit_failure(b->queue, "first");
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, NULL));
    FAILS(drupe_queue_wait(b->queue, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_failure failure;
    assert_false(drupe_failure_take(&failure));
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 5, 0, NULL, 0, NULL));
    expect_u64(b->queue, pair.a, 5, N);
    /* The event keeps its own error for whoever asks. */
    FAILS(drupe_event_wait(cause, 0), DRUPE_E_INVALID, PLANNED);
    drupe_event_release(cause);
    drop_pair(pair);
}

/* Submitting to a queue in trouble succeeds; the work fails. */
static void behind_a_known_failure(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    drupe_event *cause = submit_failure(b->queue, "first"), *after;
    while (drupe_event_state_of(cause) != DRUPE_EVENT_FAILED) {}
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, &after));
    assert_int_equal(drupe_event_state_of(after), DRUPE_EVENT_FAILED);
    assert_int_equal(drupe_event_error(after)->status, DRUPE_E_DEPENDENCY);
    FAILS(drupe_queue_wait(b->queue, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    expect_u64(b->queue, pair.a, 1, N);
    /* A wait for a failed event stops the work, though its error was reported. */
    drupe_event *dependent;
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, &after, 1, &dependent));
    FAILS(drupe_event_wait(dependent, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    expect_u64(b->queue, pair.a, 1, N);
    drupe_event *events[] = {cause, after, dependent};
    for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    drop_pair(pair);
}

/* What was submitted before a failure was reported does not run, also when its turn comes afterwards. */
static void behind_a_reported_failure(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    for (int round = 0; round < 30; round++) {
        drupe_event *cause = submit_failure(b->queue, "first"), *behind;
        OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, NULL));
        OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, &behind));
        FAILS(drupe_event_wait(cause, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
        FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
        OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
        expect_u64(b->queue, pair.a, 1, N);
        drupe_event_release(cause);
        drupe_event_release(behind);
    }
    drop_pair(pair);
}

/* The failure is reported and the queue works on, while much that stands behind it has yet to be found to
 * have failed, too: what names that fails. */
static void behind_one_that_fails_alone(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    for (int round = 0; round < 20; round++) {
        drupe_event *cause = submit_failure(b->queue, "first"), *behind, *dependent;
        for (int i = 0; i < 900; i++) OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, NULL));
        OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, &behind));
        FAILS(drupe_event_wait(cause, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
        OK(submit_mad(b, b->queue, pair.b, pair.b, N, 1, 1, &behind, 1, &dependent));
        FAILS(drupe_event_wait(dependent, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
        OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
        drupe_event *events[] = {cause, behind, dependent};
        for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    }
    expect_u64(b->queue, pair.a, 1, N);
    expect_u64(b->queue, pair.b, 2, N);
    drop_pair(pair);
}

/* Work that was submitted after a failure had been told, and waits for it, does not run: that is news, told
 * once, by whatever looks first. */
static void behind_an_old_failure(struct suite *suite, uint32_t flags)
{
    struct bench *b = &suite->bench;
    drupe_queue *second;
    OK(drupe_queue_open(b->context, b->device, flags, &second));
    struct pair pair = new_pair(second, N);
    drupe_event *cause = submit_failure(b->queue, "first"), *waiting, *again;
    drupe_failure own, first;
    FAILS(drupe_queue_wait(b->queue, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    OK(submit_mad(b, second, pair.a, pair.a, N, 1, 1, &cause, 1, NULL));
    FAILS(drupe_queue_wait(second, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, "'first'");
    assert_non_null(strstr(drupe_error_last()->text, PLANNED));
    assert_true(drupe_failure_last(&own, &first));
    assert_string_equal(own.label, "test_mad");
    assert_string_equal(first.label, "first");
    OK(drupe_queue_wait(second, DRUPE_FOREVER));
    OK(submit_mad(b, second, pair.a, pair.a, N, 1, 1, &cause, 1, &waiting));
    assert_true(drupe_failure_take(&own));
    assert_int_equal(own.error.status, DRUPE_E_DEPENDENCY);
    assert_false(drupe_failure_take(&own));
    /* All name the first one, however long it goes on. */
    OK(submit_mad(b, second, pair.a, pair.a, N, 1, 1, &waiting, 1, &again));
    FAILS(drupe_event_wait(again, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, "'first'");
    assert_null(strstr(strstr(drupe_error_last()->text, "therefore") + 1, "therefore"));
    FAILS(drupe_event_wait(waiting, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    assert_false(drupe_failure_take(&own));
    OK(drupe_queue_wait(second, DRUPE_FOREVER));
    expect_u64(second, pair.a, 1, N);
    drupe_event *events[] = {cause, waiting, again};
    for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    drop_pair(pair);
    drupe_queue_release(second);
}

static void behind_an_old_failure_in_order(struct suite *suite)
{
    behind_an_old_failure(suite, 0);
}

static void behind_an_old_failure_unordered(struct suite *suite)
{
    behind_an_old_failure(suite, DRUPE_QUEUE_OUT_OF_ORDER);
}

/* The same where its turn is yet to come, because what stands before it is held. */
static void behind_an_old_failure_held(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *second;
    OK(drupe_queue_open(b->context, b->device, 0, &second));
    struct pair pair = new_pair(second, N);
    drupe_event *cause = submit_failure(b->queue, "first"), *behind;
    FAILS(drupe_queue_wait(b->queue, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    drupe_event *closed;
    OK(drupe_event_open(NULL, 0, &closed));
    OK(submit_mad(b, second, pair.a, pair.a, N, 1, 1, &closed, 1, NULL));
    OK(submit_mad(b, second, pair.a, pair.a, N, 1, 1, &cause, 1, NULL));
    OK(submit_mad(b, second, pair.a, pair.a, N, 1, 1, NULL, 0, &behind));
    OK(drupe_event_finish(closed, NULL));
    FAILS(drupe_queue_wait(second, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, "'first'");
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    OK(drupe_queue_wait(second, DRUPE_FOREVER));
    expect_u64(second, pair.a, 2, N); /* the first of the three ran */
    drupe_event_release(cause);
    drupe_event_release(closed);
    drupe_event_release(behind);
    drop_pair(pair);
    drupe_queue_release(second);
}

static void take(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *second;
    OK(drupe_queue_open(b->context, b->device, 0, &second));
    struct pair pair = new_pair(second, N);
    drupe_event *one = submit_failure(b->queue, "one");
    while (drupe_event_state_of(one) != DRUPE_EVENT_FAILED) {}
    OK(submit_mad(b, second, pair.a, pair.a, N, 1, 1, &one, 1, NULL));
    drupe_event *two = submit_failure(second, "never runs");
    drupe_failure failure;
    assert_true(drupe_failure_take(&failure));
    assert_string_equal(failure.label, "one");
    assert_string_equal(failure.device, drupe_device_filter(b->device));
    assert_int_equal(failure.error.status, DRUPE_E_INVALID);
    assert_non_null(strstr(failure.error.text, PLANNED));
    assert_true(failure.submission > 0);
    /* The dependents have no news. */
    while (drupe_event_state_of(two) != DRUPE_EVENT_FAILED) {}
    assert_false(drupe_failure_take(&failure));
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    OK(drupe_queue_wait(second, DRUPE_FOREVER));
    expect_u64(second, pair.a, 1, N);
    drupe_event_release(one);
    drupe_event_release(two);
    drop_pair(pair);
    drupe_queue_release(second);
}

static void take_is_in_order(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queues[3];
    drupe_event *events[3];
    char label[16];
    for (int i = 0; i < 3; i++) {
        OK(drupe_queue_open(b->context, b->device, 0, &queues[i]));
        snprintf(label, sizeof label, "number %d", i);
        events[i] = submit_failure(queues[i], label);
        while (drupe_event_state_of(events[i]) != DRUPE_EVENT_FAILED) {}
    }
    drupe_failure failure;
    for (int i = 0; i < 3; i++) {
        assert_true(drupe_failure_take(&failure));
        snprintf(label, sizeof label, "number %d", i);
        assert_string_equal(failure.label, label);
    }
    assert_false(drupe_failure_take(&failure));
    for (int i = 0; i < 3; i++) {
        drupe_event_release(events[i]);
        drupe_queue_release(queues[i]);
    }
}

/* --- Records -------------------------------------------------------------------------------------------- */

/* What is told of work that failed, and of work that stands behind it. */
static void records(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    struct gate gate;
    gate_init(&gate);
    gate.result = DRUPE_E_OUT_OF_RANGE;
    drupe_event *cause = submit_gate(b->queue, &gate), *behind;
    OK(submit_mad(b, b->queue, pair.a, pair.b, N, 7, 1, NULL, 0, &behind));
    gate_open(&gate);
    drupe_failure own, first;
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    assert_true(drupe_failure_last(&own, &first));
    assert_string_equal(own.label, "test_mad");
    assert_int_equal(own.error.status, DRUPE_E_DEPENDENCY);
    assert_int_equal(own.kind, DRUPE_WORK_KERNEL);
    assert_int_equal(own.queue, drupe_queue_number(b->queue));
    assert_non_null(strstr(own.arguments, " memory of 800 bytes"));
    assert_non_null(strstr(own.arguments, "7"));
    assert_non_null(strstr(own.arguments, " work-items"));
    assert_string_equal(first.label, "gate");
    assert_int_equal(first.error.status, DRUPE_E_OUT_OF_RANGE);
    assert_true(first.submission < own.submission && first.submission > 0);
    /* The last error is another one now, and no submission's. */
    assert_int_equal(drupe_error_set(DRUPE_E_BUSY, "Something else."), DRUPE_E_BUSY);
    assert_false(drupe_failure_last(&own, &first));
    assert_true(drupe_event_failure(cause, &own, &first));
    assert_string_equal(own.label, "gate");
    assert_int_equal(first.error.status, DRUPE_OK);
    drupe_event_release(cause);
    drupe_event_release(behind);
    drop_pair(pair);
    gate_destroy(&gate);
}

/* A submission that is refused has its record too, with what was given. */
static void records_of_refusals(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    drupe_failure own, cause;
    drupe_submission s = {.queue = b->queue, .site = 4711};
    char *target = drupe_memory_pointer(pair.a);
    FAILS(drupe_submit_copy(&s, target, drupe_memory_pointer(pair.b), N * 8 + 1, NULL), DRUPE_E_OUT_OF_RANGE,
          "");
    assert_true(drupe_failure_last(&own, &cause));
    assert_int_equal(own.kind, DRUPE_WORK_COPY);
    assert_int_equal(own.site, 4711);
    assert_string_equal(own.label, "copy");
    assert_string_equal(own.device, drupe_device_filter(b->device));
    assert_non_null(strstr(own.arguments, "801 bytes from "));
    assert_int_equal(cause.error.status, DRUPE_OK);
    FAILS(drupe_submit_copy(&s, target, target + 8, 16, NULL), DRUPE_E_INVALID, "overlap");
    assert_true(drupe_failure_last(&own, &cause));
    assert_non_null(strstr(own.arguments, "16 bytes from device memory of 800 bytes + 8 to device memory"));
    drop_pair(pair);
}

/* --- Cells ---------------------------------------------------------------------------------------------- */

static _Atomic(int) cells_held;
static pthread_t cell_thread;
static _Atomic(int) wrong_thread;
static int cell;

static void *cell_retain(void)
{
    if (!pthread_equal(pthread_self(), cell_thread)) wrong_thread++;
    cells_held++;
    return &cell;
}

static void cell_release(void *released)
{
    if (!released) return;
    if (!pthread_equal(pthread_self(), cell_thread)) wrong_thread++;
    cells_held--;
}

/* Every submission holds its cell until it is over; a failure hands its cell over; no other thread is used.
 */
static void cells(struct suite *suite)
{
    static const drupe_observer observer = {.cell_retain = cell_retain, .cell_release = cell_release};
    struct bench *b = &suite->bench, *other = use_other(suite);
    struct pair pair = new_pair(b->queue, N);
    cell_thread = pthread_self();
    drupe_library_observe(&observer);
    struct gate gate;
    gate_init(&gate);
    drupe_event *foreign = submit_gate(other->queue, &gate);
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, &foreign, 1, NULL));
    for (int i = 0; i < 10; i++) OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, NULL));
    assert_int_equal(cells_held, 12);
    gate_open(&gate);
    drupe_event *cause = submit_failure(b->queue, "bad");
    drupe_event_release(submit_failure(other->queue, "never looked at"));
    while (drupe_event_state_of(cause) != DRUPE_EVENT_FAILED) {}
    drupe_failure failure;
    do {
        while (!drupe_failure_take(&failure)) {}
        assert_ptr_equal(failure.cell, &cell);
        cell_release(failure.cell);
    } while (strcmp(failure.label, "bad") != 0);
    drupe_event_release(cause);
    drupe_event_release(foreign);
    drop_pair(pair);
    bench_close(&suite->bench);
    bench_close(&suite->other);
    assert_int_equal(drupe_library_close(20ull * SECOND), 0);
    drupe_library_observe(NULL);
    assert_int_equal(cells_held, 0);
    assert_int_equal(wrong_thread, 0);
    gate_destroy(&gate);
}

static _Atomic(int) offers, agreed, shares;
static _Atomic(bool) agrees;

static void *late_retain(void)
{
    shares++;
    return &cell;
}

static void *late_share(void *shared)
{
    shares++;
    return shared;
}

static void late_release(void *released)
{
    if (released) shares--;
}

static bool late_failed(const drupe_failure *failure)
{
    if (failure->cell == &cell && strcmp(failure->label, "gate") == 0) offers++;
    bool answer = agrees;
    if (answer) agreed++;
    return answer;
}

/* Failures are offered while nobody looks, until they are shown, and stay to be taken. */
static void offered_late(struct suite *suite)
{
    static const drupe_observer observer = {.cell_retain = late_retain,
                                            .cell_release = late_release,
                                            .cell_share = late_share,
                                            .failed = late_failed};
    struct bench *b = &suite->bench;
    offers = agreed = shares = 0;
    agrees = false;
    drupe_library_observe(&observer);
    struct gate gate, more;
    gate_init(&gate);
    gate_init(&more);
    gate.result = DRUPE_E_INVALID;
    drupe_event_release(submit_gate(b->queue, &gate));
    drupe_queue *second;
    OK(drupe_queue_open(b->context, b->device, 0, &second));
    drupe_event *unfinished = submit_gate(second, &more);
    drupe_failures_watch();
    gate_open(&gate);
    while (offers < 3) {}
    agrees = true;
    while (!agreed) {}
    drupe_failure failure;
    assert_true(drupe_failure_take(&failure));
    assert_true(failure.shown);
    assert_ptr_equal(failure.cell, &cell);
    late_release(failure.cell);
    gate_open(&more);
    OK(drupe_event_wait(unfinished, DRUPE_FOREVER));
    assert_false(drupe_failure_take(&failure));
    assert_int_equal(agreed, 1);
    drupe_event_release(unfinished);
    drupe_queue_release(second);
    bench_close(&suite->bench);
    assert_int_equal(drupe_library_close(20ull * SECOND), 0);
    drupe_library_observe(NULL);
    assert_int_equal(shares, 0);
    gate_destroy(&gate);
    gate_destroy(&more);
}

/* One look offers all of them, also those that were submitted before another one that failed first. */
static void offered_by_age(struct suite *suite)
{
    (void)suite;
    static const drupe_observer observer = {.cell_retain = late_retain,
                                            .cell_release = late_release,
                                            .cell_share = late_share,
                                            .failed = late_failed};
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = PLANNED};
    drupe_event *older, *newer;
    drupe_failure failure;
    offers = agreed = shares = 0;
    agrees = true;
    drupe_library_observe(&observer);
    OK(drupe_event_open("gate", 0, &older));
    OK(drupe_event_open("gate", 0, &newer));
    OK(drupe_event_finish(newer, &error));
    OK(drupe_event_finish(older, &error));
    white_box_offer_failures();
    assert_int_equal(offers, 2);
    while (drupe_failure_take(&failure)) late_release(failure.cell);
    drupe_event_release(older);
    drupe_event_release(newer);
    drupe_library_observe(NULL);
    assert_int_equal(shares, 0);
}

const conformance_case cases_failure[] = {
    {"queue_spreads", queue_spreads},
    {"wait_spreads", wait_spreads},
    {"wait_spreads_across_contexts", wait_spreads_across_contexts},
    {"wait_spreads_across_backends", wait_spreads_across_backends},
    {"reported_once", reported_once},
    {"behind_a_known_failure", behind_a_known_failure},
    {"behind_a_reported_failure", behind_a_reported_failure},
    {"behind_one_that_fails_alone", behind_one_that_fails_alone},
    {"behind_an_old_failure", behind_an_old_failure_in_order},
    {"behind_an_old_failure_unordered", behind_an_old_failure_unordered},
    {"behind_an_old_failure_held", behind_an_old_failure_held},
    {"take", take},
    {"take_is_in_order", take_is_in_order},
    {"records", records},
    {"records_of_refusals", records_of_refusals},
    {"cells", cells},
    {"offered_late", offered_late},
    {"offered_by_age", offered_by_age},
    {NULL, NULL},
};
