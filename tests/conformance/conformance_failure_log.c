/* The log of failures: what it keeps, and how much. */
#include "conformance.h"

static drupe_failure_note notes[DRUPE_FAILURE_NOTES];

/* The id of the last failure that the log has, by asking for what comes after what is known. */
static uint64_t latest(uint64_t after)
{
    size_t count;
    while ((count = drupe_failures_read(after, notes, COUNT(notes))) > 0) after = notes[count - 1].id;
    return after;
}

static void keeps(struct suite *suite)
{
    struct bench *b = &suite->bench;
    uint64_t before = latest(0);
    struct gate gate;
    gate_init(&gate);
    gate.result = DRUPE_E_INVALID;
    drupe_event *cause = submit_gate(b->queue, &gate), *behind;
    drupe_submission s = {.queue = b->queue, .label = "behind"};
    OK(drupe_submit_barrier(&s, &behind));
    gate_open(&gate);
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    /* Reported and released, and still known; with what did not run because of it. */
    drupe_event_release(behind);
    drupe_event_release(cause);
    assert_int_equal(drupe_failures_read(before, notes, COUNT(notes)), 1);
    const drupe_failure_note *note = &notes[0];
    assert_int_equal(note->id, before + 1);
    assert_int_equal(note->dependents, 1);
    assert_true(note->at_ns <= drupe_now_ns() && note->unix_ns > note->at_ns);
    assert_int_equal(note->failure.error.status, DRUPE_E_INVALID);
    assert_string_equal(note->failure.label, "gate");
    assert_string_equal(note->failure.device, drupe_device_filter(b->device));
    assert_null(note->failure.cell);
    gate_destroy(&gate);
}

static void is_bounded(struct suite *suite)
{
    (void)suite;
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = PLANNED};
    uint64_t before = latest(0);
    for (size_t i = 0; i < DRUPE_FAILURE_NOTES + 3; i++) {
        drupe_event *event;
        OK(drupe_event_open("one of many", 0, &event));
        OK(drupe_event_finish(event, &error));
        drupe_event_release(event);
    }
    assert_int_equal(drupe_failures_read(0, notes, COUNT(notes)), DRUPE_FAILURE_NOTES);
    assert_int_equal(notes[0].id, before + 4);
    assert_int_equal(notes[DRUPE_FAILURE_NOTES - 1].id, before + 3 + DRUPE_FAILURE_NOTES);
    assert_int_equal(drupe_failures_read(before + DRUPE_FAILURE_NOTES, notes, 2), 2);
    assert_int_equal(notes[0].id, before + DRUPE_FAILURE_NOTES + 1);
    assert_int_equal(drupe_failures_read(latest(0), notes, 2), 0);
    assert_int_equal(drupe_failures_read(UINT64_MAX, notes, 2), 0);
    assert_int_equal(drupe_failures_read(0, NULL, 0), 0);
    drupe_failure failure;
    while (drupe_failure_take(&failure)) continue;
}

const conformance_case cases_failure_log[] = {
    {"log_keeps", keeps},
    {"log_is_bounded", is_bounded},
    {NULL, NULL},
};
