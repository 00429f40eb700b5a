/* White-box: barriers with nothing before them are over at once, and which ones are not of that kind. */
#include "core/submit/submit_room.h"
#include "core_ends.h"
#include "layers/fault_layer.h"
#include "walk/wrap.h"

static drupe_submission s;
static int dropped;

static uint32_t site_12(void)
{
    return 12;
}

static uint32_t cell_34(void *cell)
{
    return cell == &s ? 34 : 0;
}

static void *cell_retain(void)
{
    return &s;
}

static const drupe_observer observer = {.site = site_12, .cell_retain = cell_retain, .cell_number = cell_34};

static int open_with(void **state, bool layered)
{
    drupe_fault_layer(layered);
    drupe_library_observe(&observer);
    if (bench_setup(state) != 0) return -1;
    s = (drupe_submission){.queue = bench.queue};
    dropped = 0;
    return 0;
}

static int setup(void **state)
{
    return open_with(state, false);
}

static int setup_layered(void **state)
{
    return drupe_fault_plan(NULL) == DRUPE_OK ? open_with(state, true) : -1;
}

static int teardown(void **state)
{
    const int result = bench_teardown(state);
    drupe_library_observe(NULL);
    return result;
}

/* How often the backend got one during the last barrier. */
static unsigned submitted;
static const drupe_backend *real;
static drupe_backend counting; /* events know it after that */

static drupe_status count_barrier(const drupe_submit *submit)
{
    submitted++;
    return real->submit_barrier(submit);
}

/* Whether the engine made it by itself; it is over in the end. */
static bool is_made_here(void)
{
    drupe_event *event;
    drupe_slot *slot = s.queue->base.slot;
    const drupe_backend *base = slot->base, *top = slot->backend;
    real = base;
    counting = *real;
    counting.submit_barrier = count_barrier;
    slot->base = &counting;
    if (top == base) slot->backend = &counting;
    submitted = 0;
    OK(drupe_submit_barrier(&s, &event));
    const bool over = drupe_event_state_of(event) == DRUPE_EVENT_COMPLETE && submitted == 0;
    OK(drupe_event_wait(event, LONG));
    slot->base = base;
    slot->backend = top;
    drupe_event_release(event);
    return over;
}

static void with_nothing_before_it_is_over(void **state)
{
    (void)state;
    static const uint32_t sites[] = {0, 7};
    for (size_t i = 0; i < 2; i++) {
        drupe_trace_record record;
        drupe_event *event;
        s.site = sites[i];
        OK(drupe_submit_barrier(&s, &event));
        assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
        assert_int_equal(bench.queue->proof.proven, drupe_event_submission(event));
        assert_true(drupe_trace_one(drupe_event_submission(event), &record));
        assert_int_equal(record.kind, DRUPE_WORK_BARRIER);
        assert_int_equal(record.site, i ? 7 : 12);
        assert_int_equal(record.cell, 34);
        drupe_event_release(event);
    }
    assert_true(is_made_here());
    assert_int_equal(drupe_queue_pending(bench.queue), 0);
}

static void count(void *object)
{
    ++*(int *)object;
}

static void what_says_more_than_that_takes_the_steps(void **state)
{
    (void)state;
    drupe_event *event, *wait;
    drupe_queue *ours = s.queue, *queue;
    const drupe_keep keep = {&dropped, count};
    s.label = "named";
    assert_false(is_made_here());
    s.label = NULL;
    s.keeps = &keep;
    s.nkeeps = 1;
    assert_false(is_made_here());
    assert_int_equal(dropped, 1);
    s.nkeeps = 0;
    OK(drupe_submit_barrier(&s, &wait));
    s.waits = &wait;
    s.nwaits = 1;
    assert_false(is_made_here());
    s.nwaits = 0;
    drupe_event_release(wait);
    drupe_check_begin();
    assert_false(is_made_here());
    drupe_check_end();
    static const uint32_t flags[] = {DRUPE_QUEUE_OUT_OF_ORDER, DRUPE_QUEUE_PROFILING};
    for (size_t i = 0; i < 2; i++) {
        OK(drupe_queue_open(bench.context, bench.device, flags[i], &queue));
        s.queue = queue;
        assert_false(is_made_here());
        drupe_queue_release(queue);
    }
    s.queue = NULL;
    FAILS(drupe_submit_barrier(&s, &event), DRUPE_E_INVALID, "needs a queue");
    assert_null(event);
    FAILS(drupe_submit_barrier(NULL, &event), DRUPE_E_INVALID, "needs a queue");
    s.queue = ours;
    OK(drupe_submit_barrier(&s, NULL));
    assert_true(is_made_here());
}

static void layers_want_to_see_them(void **state)
{
    (void)state;
    drupe_event *event;
    OK(drupe_submit_barrier(&s, &event));
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    assert_int_equal(drupe_fault_calls("submit_barrier"), 1);
}

static void with_something_before_it_waits(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *event;
    OK(bench_barrier(bench.queue, gate, NULL));
    OK(drupe_submit_barrier(&s, &event));
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_QUEUED);
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    assert_true(is_made_here());
    bench.queue->shared = true; /* others may have given the driver work */
    assert_false(is_made_here());
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    bench.queue->shared = false;
    assert_true(is_made_here());
}

static void behind_a_failure_it_fails(void **state)
{
    (void)state;
    drupe_event *event;
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "a reason"};
    drupe_cause *cause = drupe_cause_new(&error, NULL, bench.queue, drupe_inflight_latest());
    drupe_queue_set_cause(bench.queue, cause, drupe_inflight_latest());
    OK(drupe_submit_barrier(&s, &event));
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, "a reason");
    drupe_event_release(event);
    drupe_cause_release(cause);
}

static void without_memory_for_it_the_steps_try(void **state)
{
    (void)state;
    drupe_event *event;
    const uint64_t before = drupe_inflight_latest();
    wrap_plan(WRAP_MALLOC, 1);
    OK(drupe_submit_barrier(&s, &event));
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    OK(drupe_event_wait(event, LONG));
    assert_int_equal(drupe_event_submission(event), before + 2);
    bool gone = true;
    assert_true(drupe_trace_over(before + 1, &gone)); /* a number that nobody waits for */
    assert_false(gone);
    drupe_event_release(event);
}

/* The last one: a device is lost for the process. */
static void on_a_lost_device_it_fails(void **state)
{
    (void)state;
    drupe_event *event;
    drupe_failure failure;
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "It went away."};
    drupe_core_device_lost(bench.device, &error, true);
    FAILS(drupe_submit_barrier(&s, &event), DRUPE_E_DEVICE_LOST, "It went away.");
    while (drupe_failure_take(&failure)) continue;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(with_nothing_before_it_is_over),
        TEST(what_says_more_than_that_takes_the_steps),
        cmocka_unit_test_setup_teardown(layers_want_to_see_them, setup_layered, teardown),
        TEST(with_something_before_it_waits),
        TEST(behind_a_failure_it_fails),
        TEST(without_memory_for_it_the_steps_try),
        TEST(on_a_lost_device_it_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
