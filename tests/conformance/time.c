/* Profiling times and timeouts. */
#include "conformance.h"

static void check_times(const struct suite *suite, drupe_event *event, const char *label)
{
    drupe_times t;
    OK(drupe_event_times(event, &t));
    if (t.queued == 0 && strcmp(label, "barrier") == 0 && known_gap(suite, "barrier_times")) return;
    if (t.queued == 0) fail_msg("'%s' has no time", label);
    assert_true(t.queued <= t.submitted);
    assert_true(t.submitted <= t.started);
    assert_true(t.started <= t.ended);
}

static void times(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queue;
    if (!drupe_device_number(b->device, DRUPE_INFO_HAS_PROFILING, 0)) skip_known(suite, "times");
    OK(drupe_queue_open(b->context, b->device, DRUPE_QUEUE_PROFILING, &queue));
    assert_int_equal(drupe_queue_flags_of(queue), DRUPE_QUEUE_PROFILING);
    drupe_memory *m = new_memory(queue, DRUPE_MEM_DEVICE, 1u << 20);
    drupe_event *events[5];
    drupe_submission s = {.queue = queue};
    uint64_t value = 3;
    OK(drupe_submit_fill(&s, drupe_memory_pointer(m), &value, 8, 1u << 20, &events[0]));
    OK(submit_spin(b, queue, m, 32, 100000, &events[1]));
    OK(submit_mad(b, queue, m, m, 10, 1, 1, NULL, 0, &events[2]));
    OK(drupe_submit_copy(&s, &value, drupe_memory_pointer(m), 8, &events[3]));
    OK(drupe_submit_barrier(&s, &events[4]));
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    static const char *const labels[] = {"fill", "test_spin", "test_mad", "copy", "barrier"};
    for (size_t i = 0; i < 5; i++) check_times(suite, events[i], labels[i]);
    drupe_times spin, next;
    OK(drupe_event_times(events[1], &spin));
    OK(drupe_event_times(events[2], &next));
    assert_true(spin.ended <= next.started);
    assert_true(spin.ended > spin.started);
    for (size_t i = 0; i < 5; i++) drupe_event_release(events[i]);
    drupe_memory_release(m);
    drupe_queue_release(queue);
}

static void no_times(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_submission s = {.queue = b->queue};
    drupe_event *event;
    drupe_times t;
    OK(drupe_submit_barrier(&s, &event));
    OK(drupe_event_wait(event, DRUPE_FOREVER));
    FAILS(drupe_event_times(event, &t), DRUPE_E_UNSUPPORTED, "profiling");
    drupe_event_release(event);
    drupe_queue *queue;
    OK(drupe_queue_open(b->context, b->device, DRUPE_QUEUE_PROFILING, &queue));
    struct gate gate;
    gate_init(&gate);
    drupe_event *stopped = submit_gate(queue, &gate);
    FAILS(drupe_event_times(stopped, &t), DRUPE_E_BUSY, "not finished");
    gate.result = DRUPE_E_INVALID;
    gate_open(&gate);
    FAILS(drupe_event_wait(stopped, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    FAILS(drupe_event_times(stopped, &t), DRUPE_E_UNSUPPORTED, "failed");
    drupe_event_release(stopped);
    drupe_queue_release(queue);
    gate_destroy(&gate);
}

static void timeouts(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct gate gate;
    gate_init(&gate);
    drupe_event *stopped = submit_gate(b->queue, &gate), *behind;
    drupe_submission s = {.queue = b->queue};
    OK(drupe_submit_barrier(&s, &behind));
    static const uint64_t limits[] = {0, 1, 1000, 3000000};
    for (size_t i = 0; i < COUNT(limits); i++) {
        uint64_t before = drupe_now_ns();
        FAILS(drupe_event_wait(behind, limits[i]), DRUPE_E_TIMEOUT, "");
        FAILS(drupe_queue_wait(b->queue, limits[i]), DRUPE_E_TIMEOUT, "");
        assert_true(drupe_now_ns() - before >= limits[i]);
        assert_int_not_equal(drupe_event_state_of(behind), DRUPE_EVENT_COMPLETE);
        assert_null(drupe_event_error(behind));
    }
    assert_true(drupe_queue_pending(b->queue) >= 2);
    gate_open(&gate);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    OK(drupe_event_wait(behind, 0));
    assert_int_equal(drupe_queue_pending(b->queue), 0);
    drupe_event_release(stopped);
    drupe_event_release(behind);
    gate_destroy(&gate);
    FAILS(drupe_event_wait(NULL, 0), DRUPE_E_INVALID, "event");
    FAILS(drupe_queue_wait(NULL, 0), DRUPE_E_INVALID, "queue");
}

const conformance_case cases_time[] = {
    {"times", times},
    {"no_times", no_times},
    {"timeouts", timeouts},
    {NULL, NULL},
};
