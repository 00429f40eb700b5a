/* What memory holds after failures, memory in flight, silent work, and queues of drivers with habits of their
 * own. */
#include "core/queue/launch.h"
#include "core_bench.h"
#include <sched.h>

/* A host function that the driver is at until the test lets it go on. */
static _Atomic(int) busy, go_on;

static drupe_status occupy(void *unused)
{
    (void)unused;
    atomic_store(&busy, 1);
    while (!atomic_load(&go_on)) sched_yield();
    return DRUPE_OK;
}

static void occupy_driver(drupe_queue *queue)
{
    const drupe_submission s = {.queue = queue};
    atomic_store(&busy, 0);
    atomic_store(&go_on, 0);
    OK(drupe_submit_host(&s, occupy, NULL, NULL));
    while (!atomic_load(&busy)) sched_yield();
}

/* --- Contents --------------------------------------------------------------------------------------------
 */

static void expect_contents(drupe_memory *memory, drupe_status status, const char *part)
{
    FAILS(drupe_memory_contents(memory), status, part);
}

static void contents_say_what_is_there(void **state)
{
    (void)state;
    drupe_memory *whole = bench_shared(64), *part = bench_shared(64), *own = bench_shared(64);
    drupe_event *gate = bench_gate(), *failure = bench_failure(bench.queue, "culprit", gate);
    const drupe_submission s = {.queue = bench.queue, .label = "half"};
    OK(bench_fill(bench.queue, whole, 1, NULL, NULL));
    OK(drupe_submit_fill(&s, drupe_memory_pointer(part), "x", 1, 32, NULL));
    bench_open_gate(gate);
    assert_int_equal(drupe_event_wait(failure, LONG), DRUPE_E_INVALID);
    expect_contents(whole, DRUPE_E_DEPENDENCY, "'fill', which did not run, because 'culprit' on host:cpu:0");
    assert_non_null(strstr(drupe_error_last()->text, "It holds no result."));
    expect_contents(part, DRUPE_E_DEPENDENCY, "It holds its earlier value.");
    OK(drupe_memory_contents(own));
    drupe_event_release(failure);
    drupe_memory_accept(whole);
    OK(drupe_memory_contents(whole));
    drupe_memory_release(whole);
    drupe_memory_release(part);
    drupe_memory_release(own);
}

static drupe_status fail_after_all(void *memory)
{
    *(char *)memory = 1;
    return drupe_error_set(DRUPE_E_INVALID, PLANNED);
}

static void work_that_failed_leaves_what_nobody_knows(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(64), *out = bench_shared(64);
    drupe_keep keep = drupe_memory_keep(memory, bench.queue);
    const drupe_submission s = {.queue = bench.queue, .label = "own", .keeps = &keep, .nkeeps = 1};
    drupe_failure own, cause;
    OK(drupe_submit_host(&s, fail_after_all, drupe_memory_pointer(memory), NULL));
    /* Nobody was told yet: what reads it fails in its turn, and is told why. */
    drupe_event *reads;
    OK(bench_mad(bench.queue, out, memory, 8, 1, 1, NULL, &reads));
    FAILS(drupe_event_wait(reads, LONG), DRUPE_E_DEPENDENCY, "'own'");
    assert_true(drupe_event_failure(reads, &own, &cause));
    assert_string_equal(cause.label, "own");
    expect_contents(memory, DRUPE_E_DEPENDENCY, "'own', which failed: " PLANNED);
    assert_non_null(strstr(drupe_error_last()->text, "What it holds is undefined."));
    assert_int_equal(drupe_queue_wait(bench.queue, LONG), DRUPE_OK);
    drupe_event_release(reads);
    drupe_memory_release(memory);
    drupe_memory_release(out);
}

/* Of another queue, which is in no trouble itself. */
static void who_reads_fails_with_the_first_cause(void **state)
{
    (void)state;
    drupe_queue *other;
    drupe_memory *first = bench_shared(64), *second = bench_shared(64), *out = bench_shared(64);
    drupe_event *failure = bench_failure(bench.queue, "culprit", NULL), *event;
    memset(drupe_memory_pointer(out), 0, 64);
    OK(drupe_queue_open(bench.context, bench.device, 0, &other));
    while (drupe_event_state_of(failure) != DRUPE_EVENT_FAILED) sched_yield();
    OK(bench_fill(bench.queue, first, 1, NULL, NULL));
    OK(bench_fill(bench.queue, second, 1, NULL, NULL));
    drupe_queue_collect(bench.queue);
    drupe_keep keeps[2] = {drupe_memory_keep(first, other), drupe_memory_keep(second, other)};
    const drupe_submission s = {.queue = other, .keeps = keeps, .nkeeps = 2};
    OK(drupe_submit_host(&s, fail_after_all, drupe_memory_pointer(out), &event));
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
    assert_int_equal(*(char *)drupe_memory_pointer(out), 0); /* it did not run */
    drupe_event_release(event);
    /* It was told by that: from now on such a submission is refused. */
    FAILS(bench_mad(other, out, first, 8, 1, 1, NULL, NULL), DRUPE_E_DEPENDENCY, "'culprit'");
    assert_int_equal(drupe_event_wait(failure, LONG), DRUPE_E_INVALID);
    drupe_event_release(failure);
    drupe_memory_release(first);
    drupe_memory_release(second);
    drupe_memory_release(out);
    drupe_queue_release(other);
}

static drupe_status refuse_fill(const drupe_submit *s, void *dst, const void *pattern, size_t size,
                                size_t bytes)
{
    (void)s, (void)dst, (void)pattern, (void)size, (void)bytes;
    return drupe_error_set(DRUPE_E_NO_MEMORY, "The driver refuses.");
}

/* A new result lifts the mark; one that was refused puts it back. */
static void only_a_new_result_takes_the_mark_away(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(64);
    drupe_event *failure = bench_failure(bench.queue, "culprit", NULL);
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    assert_int_equal(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INVALID);
    expect_contents(memory, DRUPE_E_DEPENDENCY, "'culprit'");
    bench_table.submit_fill = refuse_fill;
    FAILS(bench_fill(bench.queue, memory, 2, NULL, NULL), DRUPE_E_NO_MEMORY, "The driver refuses.");
    expect_contents(memory, DRUPE_E_DEPENDENCY, "'culprit'");
    bench_table.submit_fill = bench_real->submit_fill;
    OK(bench_fill(bench.queue, memory, 3, NULL, NULL));
    OK(drupe_memory_contents(memory));
    OK(drupe_queue_wait(bench.queue, LONG));
    bench_expect_bytes(memory, 3, 64);
    drupe_event_release(failure);
    drupe_memory_release(memory);
}

/* --- What a submission keeps -----------------------------------------------------------------------------
 */

static void count_release(void *object)
{
    ++*(int *)object;
}

static void a_submission_may_keep_many_things(void **state)
{
    (void)state;
    enum { MANY = 100 };
    int released = 0;
    drupe_keep keeps[MANY];
    drupe_event *gate = bench_gate();
    for (size_t i = 0; i < MANY; i++) keeps[i] = (drupe_keep){&released, count_release};
    const drupe_submission s = {
        .queue = bench.queue, .keeps = keeps, .nkeeps = MANY, .waits = &gate, .nwaits = 1};
    OK(drupe_submit_barrier(&s, NULL));
    drupe_queue_collect(bench.queue);
    assert_int_equal(released, 0);
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    assert_int_equal(released, MANY);
    const drupe_submission nowhere = {.keeps = keeps, .nkeeps = MANY};
    FAILS(drupe_submit_barrier(&nowhere, NULL), DRUPE_E_INVALID, "a queue");
    assert_int_equal(released, 2 * MANY);
}

static void many_events_may_be_waited_for(void **state)
{
    (void)state;
    enum { MANY = 40 };
    drupe_queue *queues[MANY];
    drupe_event *gate = bench_gate(), *waits[MANY], *event;
    for (size_t i = 0; i < MANY; i++) {
        OK(drupe_queue_open(bench.context, bench.device, 0, &queues[i]));
        OK(bench_barrier(queues[i], gate, &waits[i]));
    }
    const drupe_submission s = {.queue = bench.queue, .waits = waits, .nwaits = MANY};
    OK(drupe_submit_barrier(&s, &event));
    assert_int_equal(drupe_event_wait(event, 0), DRUPE_E_TIMEOUT);
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(drupe_event_state_of(waits[i]), DRUPE_EVENT_COMPLETE);
        drupe_event_release(waits[i]);
        drupe_queue_release(queues[i]);
    }
    drupe_event_release(event);
}

static void a_kernel_may_be_launched_on_several_queues(void **state)
{
    (void)state;
    drupe_queue *queues[3] = {bench.queue};
    drupe_memory *memory = bench_shared(64);
    memset(drupe_memory_pointer(memory), 0, 64);
    for (size_t i = 0; i < 3; i++) {
        if (i) OK(drupe_queue_open(bench.context, bench.device, 0, &queues[i]));
        OK(bench_mad(queues[i], memory, memory, 8, 1, 1, NULL, NULL));
        OK(drupe_queue_wait(queues[i], LONG));
    }
    assert_int_equal(*(uint64_t *)drupe_memory_pointer(memory), 3);
    for (size_t i = 1; i < 3; i++) drupe_queue_release(queues[i]);
    drupe_memory_release(memory);
}

static void hints_take_their_place(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(64);
    const drupe_submission s = {.queue = bench.queue};
    drupe_event *event;
    for (size_t i = 0; i < 2; i++) {
        OK(drupe_submit_prefetch(&s, drupe_memory_pointer(memory), 64, &event));
        OK(drupe_event_wait(event, LONG));
        drupe_event_release(event);
        OK(drupe_submit_advise(&s, drupe_memory_pointer(memory), 64, 1, &event));
        OK(drupe_event_wait(event, LONG));
        drupe_event_release(event);
        bench_table.submit_prefetch = NULL; /* they are barriers then */
        bench_table.submit_advise = NULL;
    }
    drupe_memory_release(memory);
}

/* --- Memory in flight ------------------------------------------------------------------------------------
 */

static drupe_memory *hand_on(size_t bytes)
{
    drupe_memory *memory = bench_shared(bytes), *next;
    const void *at = drupe_memory_pointer(memory);
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    drupe_memory_release(memory);
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, bytes, &next));
    assert_ptr_equal(drupe_memory_pointer(next), at);
    return next;
}

static void silent_work_ends_with_what_the_driver_has_behind_it(void **state)
{
    (void)state;
    drupe_event *behind, *before;
    occupy_driver(bench.queue);
    drupe_memory *next = hand_on(4096);
    OK(bench_barrier(bench.queue, NULL, &behind));
    OK(drupe_memory_before_use(next, &before));
    assert_ptr_equal(before, behind);
    atomic_store(&go_on, 1);
    OK(drupe_event_wait(before, LONG));
    drupe_event_release(before);
    OK(drupe_memory_before_use(next, &before));
    assert_null(before);
    drupe_event_release(behind);
    drupe_memory_release(next);
}

static void silent_work_before_what_is_held_gets_a_mark(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *held, *before;
    occupy_driver(bench.queue);
    drupe_memory *next = hand_on(4096);
    OK(bench_barrier(bench.queue, gate, &held)); /* for as long as the program likes */
    OK(drupe_memory_before_use(next, &before));
    assert_non_null(before);
    assert_ptr_not_equal(before, held);
    atomic_store(&go_on, 1);
    OK(drupe_event_wait(before, LONG));
    assert_int_equal(drupe_event_state_of(held), DRUPE_EVENT_QUEUED);
    bench_open_gate(gate);
    OK(drupe_event_wait(held, LONG));
    drupe_event_release(before);
    drupe_event_release(held);
    drupe_memory_release(next);
}

static unsigned pauses;
static drupe_status pause_answer;

static drupe_status on_pause(drupe_queue *queue, uint64_t timeout_ns)
{
    pauses++;
    atomic_store(&go_on, 1);
    if (pause_answer == DRUPE_OK) (void)drupe_queue_idle(queue, timeout_ns);
    return pause_answer;
}

static const drupe_observer pausing = {.pause = on_pause};

/* Memory that comes back to nobody in order: work of two queues uses it. */
static void fly(drupe_queue *second, size_t bytes)
{
    drupe_memory *memory = bench_shared(bytes);
    const drupe_submission here = {.queue = bench.queue}, there = {.queue = second};
    OK(drupe_submit_fill(&here, drupe_memory_pointer(memory), "x", 1, 64, NULL));
    OK(drupe_submit_fill(&there, (char *)drupe_memory_pointer(memory) + 64, "x", 1, 64, NULL));
    drupe_memory_release(memory);
}

static void who_needs_more_waits_for_what_is_in_flight(void **state)
{
    (void)state;
    const size_t piece = (size_t)24 << 20;
    drupe_queue *second;
    drupe_memory *memory;
    drupe_library_observe(&pausing);
    OK(drupe_queue_open(bench.context, bench.device, 0, &second));
    drupe_pool_set_limit(bench.device, 8 * piece);
    pauses = 0;
    occupy_driver(bench.queue);
    fly(second, piece);
    fly(second, piece);
    assert_int_equal(pauses, 0); /* 64 MiB may be in flight in any case */
    pause_answer = DRUPE_E_BUSY;
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, piece, 0, &memory));
    assert_int_equal(pauses, 1); /* this thread must not wait */
    drupe_memory_release(memory);
    drupe_pool_trim(bench.device);
    atomic_store(&go_on, 1);
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_wait(second, LONG));
    drupe_queue_collect(bench.queue);
    drupe_queue_collect(second);
    drupe_pool_trim(bench.device);
    pause_answer = DRUPE_OK;
    pauses = 0;
    occupy_driver(bench.queue);
    fly(second, piece);
    fly(second, piece);
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, piece, 0,
                          &memory)); /* the pause lets the driver go on */
    assert_true(pauses >= 1);
    drupe_memory_release(memory);
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_wait(second, LONG));
    drupe_queue_collect(second);
    drupe_queue_collect(bench.queue);
    drupe_pool_trim(bench.device);
    pause_answer = DRUPE_E_CANCELLED;
    occupy_driver(bench.queue);
    fly(second, piece);
    fly(second, piece);
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_HOST, piece, 0, &memory), DRUPE_E_CANCELLED,
          "interrupted while it waited for memory of host:cpu:0");
    atomic_store(&go_on, 1);
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_wait(second, LONG));
    drupe_library_observe(NULL);
    drupe_pool_set_limit(bench.device, 0);
    drupe_queue_release(second);
}

/* --- Habits of drivers -----------------------------------------------------------------------------------
 */

static drupe_status native(drupe_queue *queue, void **handle)
{
    *handle = queue;
    return DRUPE_OK;
}

static void the_drivers_queue_is_given_in_order(void **state)
{
    (void)state;
    void *handle;
    drupe_event *gate = bench_gate(), *event;
    bench_table.queue_native = native;
    OK(bench_barrier(bench.queue, gate, &event));
    FAILS(drupe_queue_native(bench.queue, &handle), DRUPE_E_BUSY, "would overtake it");
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_queue_native(bench.queue, &handle));
    assert_ptr_equal(handle, bench.queue);
    FAILS(drupe_queue_native(NULL, &handle), DRUPE_E_INVALID, "no queue");
    FAILS(drupe_queue_wait(NULL, 0), DRUPE_E_INVALID, "no queue");
    drupe_event_release(event);
}

static int silent_failures;
static const char *silent_text;

/* Its last event is complete a moment before it knows that all is over. */
static drupe_status queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    if (timeout_ns == 0) return drupe_error_set(DRUPE_E_TIMEOUT, "Not quite.");
    drupe_status status = bench_real->queue_wait(queue, timeout_ns);
    if (status != DRUPE_OK || silent_failures == 0) return status;
    silent_failures--;
    return drupe_error_set(DRUPE_E_INTERNAL, "%s", silent_text);
}

/* A failure that the driver tells without saying whose: of the work that had no event. */
static void silent_failures_have_suspects(void **state)
{
    (void)state;
    drupe_failure failure;
    drupe_memory *memory = bench_shared(64);
    const drupe_submission s = {.queue = bench.queue, .label = "second", .site = 8};
    static const struct {
        const char *text, *label;
        size_t count;
    } cases[] = {{"Something failed.", "one of 2 submissions", 1}, /* the host function is one */
                 {"The work 'fill' failed.", "fill", 1},
                 {"Something failed.", "one of 3 submissions", 2},
                 {"The kernel 'second' failed.", "second", 2},
                 {"Something failed.", "one of 4 submissions", 3}};
    bench_table.queue_wait = queue_wait;
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        occupy_driver(bench.queue);
        OK(drupe_memory_contents(memory));
        atomic_store(&go_on, 1);
        OK(drupe_queue_wait(bench.queue, LONG));
        silent_text = cases[i].text;
        silent_failures = 1;
        occupy_driver(bench.queue);
        for (size_t k = 0; k < cases[i].count; k++) {
            if (k == 1)
                OK(drupe_submit_fill(&s, drupe_memory_pointer(memory), "x", 1, 8, NULL));
            else
                OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
        }
        atomic_store(&go_on, 1);
        assert_int_equal(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INTERNAL);
        assert_string_equal(drupe_error_last()->text, cases[i].text);
        drupe_failure cause;
        assert_true(drupe_failure_last(&failure, &cause));
        assert_string_equal(failure.label, cases[i].label);
        OK(drupe_queue_wait(bench.queue, LONG));
        drupe_memory_accept(memory);
    }
    drupe_memory_release(memory);
}

/* A device whose completions prove those before them: they are not asked one by one. */
static _Atomic(int) states;

static drupe_status event_state(drupe_event *event, drupe_event_state *state)
{
    atomic_fetch_add(&states, 1);
    if (atomic_load(&go_on)) return bench_real->event_state(event, state);
    *state = DRUPE_EVENT_SUBMITTED; /* until the test lets it tell */
    return DRUPE_OK;
}

static void a_completion_proves_those_before_it(void **state)
{
    (void)state;
    enum { MANY = 200 };
    drupe_event *events[MANY];
    drupe_queue *queue;
    drupe_memory *memory = bench_shared(64);
    memset(drupe_memory_pointer(memory), 0, 64);
    bench_table.gpu_faults_last = true;
    bench_table.event_state = event_state;
    bench.device->type = DRUPE_DEVICE_GPU;
    OK(drupe_queue_open(bench.context, bench.device, 0, &queue));
    atomic_store(&go_on, 0);
    for (size_t i = 0; i < MANY; i++) OK(bench_mad(queue, memory, memory, 8, 1, 1, NULL, &events[i]));
    atomic_store(&states, 0);
    atomic_store(&go_on, 1);
    OK(bench_real->event_wait(events[MANY - 1], LONG)); /* the driver is done */
    drupe_queue_collect(queue);
    for (size_t i = 0; i < MANY; i++) assert_int_equal(drupe_event_state_of(events[i]), DRUPE_EVENT_COMPLETE);
    assert_true(atomic_load(&states) < MANY);
    OK(drupe_queue_wait(queue, LONG));
    assert_int_equal(*(uint64_t *)drupe_memory_pointer(memory), MANY);
    for (size_t i = 0; i < MANY; i++) drupe_event_release(events[i]);
    bench.device->type = DRUPE_DEVICE_CPU;
    drupe_queue_release(queue);
    drupe_memory_release(memory);
}

static drupe_status broken_wait(drupe_event *event, uint64_t timeout_ns)
{
    (void)event, (void)timeout_ns;
    return drupe_error_set(DRUPE_E_INTERNAL, "The driver cannot wait.");
}

/* Waiting would never end. */
static void a_driver_that_cannot_wait_fails_the_event(void **state)
{
    (void)state;
    drupe_event *event;
    bench_table.event_wait = broken_wait;
    occupy_driver(bench.queue);
    drupe_memory *memory = bench_shared(64);
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_INTERNAL, "The driver cannot wait.");
    bench_table.event_wait = bench_real->event_wait;
    atomic_store(&go_on, 1);
    (void)!drupe_queue_wait(bench.queue, LONG);
    drupe_event_release(event);
    drupe_memory_release(memory);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_setup_table, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(contents_say_what_is_there),
        TEST(work_that_failed_leaves_what_nobody_knows),
        TEST(who_reads_fails_with_the_first_cause),
        TEST(only_a_new_result_takes_the_mark_away),
        TEST(a_submission_may_keep_many_things),
        TEST(many_events_may_be_waited_for),
        TEST(a_kernel_may_be_launched_on_several_queues),
        TEST(hints_take_their_place),
        TEST(silent_work_ends_with_what_the_driver_has_behind_it),
        TEST(silent_work_before_what_is_held_gets_a_mark),
        TEST(who_needs_more_waits_for_what_is_in_flight),
        TEST(the_drivers_queue_is_given_in_order),
        TEST(silent_failures_have_suspects),
        TEST(a_completion_proves_those_before_it),
        TEST(a_driver_that_cannot_wait_fails_the_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
