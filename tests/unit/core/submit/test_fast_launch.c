/* White-box: what the fast launch does by itself, what it leaves to the steps, and who keeps the memory. */
#include "core/submit/submit_room.h"
#include "core_ends.h"
#include "walk/wrap.h"
#include <semaphore.h>

static drupe_memory *ours, *other;
static drupe_queue *second;
static drupe_submission s;

/* --- The backend: `host`, whose launches are over when the test wants it ---------------------------------
 */

static enum { HELD, OVER, REFUSED } mode; /* of launches: with the real ones, at once, never */
static drupe_backend playing;
static const drupe_backend *real;
static unsigned launched;

static drupe_status play_kernel(const drupe_submit *submit, drupe_kernel *kernel, const drupe_range *range,
                                const drupe_arg *args, size_t nargs)
{
    drupe_submit held = *submit;
    bool unseen = false;
    launched++;
    if (mode == REFUSED) return drupe_error_set(DRUPE_E_INTERNAL, PLANNED);
    if (mode == OVER && submit->done) {
        *submit->done = true;
        return DRUPE_OK;
    }
    if (submit->done) held.done = &unseen;
    return real->submit_kernel(&held, kernel, range, args, nargs);
}

static drupe_status play_barrier(const drupe_submit *submit)
{
    drupe_submit held = *submit;
    bool unseen = false;
    if (submit->done) held.done = &unseen;
    return real->submit_barrier(&held);
}

static int setup(void **state)
{
    drupe_library_observe(&bench_observer);
    if (bench_setup(state) != 0) return -1;
    OK(drupe_queue_open(bench.context, bench.device, 0, &second));
    ours = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    other = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    s = (drupe_submission){.queue = bench.queue};
    /* The fast path does not ask for limits: the first launch does. */
    (void)drupe_device_number(bench.device, DRUPE_INFO_MAX_PARAMETER_SIZE, 0);
    real = bench.queue->base.slot->backend;
    playing = *real;
    playing.submit_kernel = play_kernel;
    playing.submit_barrier = play_barrier;
    bench.queue->base.slot->backend = &playing;
    mode = HELD;
    launched = 0;
    return 0;
}

static int teardown(void **state)
{
    bench.queue->base.slot->backend = real;
    drupe_memory_release(ours);
    drupe_memory_release(other);
    drupe_queue_release(second);
    const int result = bench_teardown(state);
    drupe_library_observe(NULL);
    return result;
}

/* --- Launches ------------------------------------------------------------------------------------------- */

/* out[i] = i, four times. */
static drupe_status launch(void *out, drupe_memory *const *hints, drupe_event **event)
{
    const drupe_range range = {.dims = 1, .global = {4}};
    const drupe_arg arg = {DRUPE_ARG_POINTER, sizeof out, &out};
    drupe_submission hinted = s;
    hinted.memories = hints;
    return drupe_submit_kernel(&hinted, bench.gid, &range, &arg, 1, event);
}

static drupe_status launch_on(drupe_memory *memory)
{
    return launch(drupe_memory_pointer(memory), &memory, NULL);
}

/* out[i] = in[i] * 1 + 2, eight times; `add` may lack. */
static drupe_status launch_mad(drupe_memory *out, drupe_memory *in, drupe_memory *const *hints,
                               const uint64_t *add)
{
    static const uint64_t n = 8, mul = 1;
    const drupe_range range = {.dims = 1, .global = {4}};
    void *to = drupe_memory_pointer(out), *from = drupe_memory_pointer(in);
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof to, &to},
                              {DRUPE_ARG_POINTER, sizeof from, &from},
                              {DRUPE_ARG_VALUE, 8, &n},
                              {DRUPE_ARG_VALUE, 8, &mul},
                              {DRUPE_ARG_VALUE, 8, add}};
    drupe_submission hinted = s;
    hinted.memories = hints;
    return drupe_submit_kernel(&hinted, bench.mad, &range, args, 5, NULL);
}

static unsigned uses(const drupe_memory *memory)
{
    return (unsigned)(atomic_load(&((drupe_memory *)memory)->uses) & DRUPE_USES_COUNT);
}

#define EXPECT_USES(of_ours, of_other)                                                                       \
    do {                                                                                                     \
        assert_int_equal(uses(ours), of_ours);                                                               \
        assert_int_equal(uses(other), of_other);                                                             \
    } while (0)

static void expect_numbers(const drupe_memory *memory)
{
    const uint64_t *at = drupe_memory_pointer(memory);
    for (uint64_t i = 0; i < 4; i++) assert_int_equal(at[i], i);
}

static void wait_for(drupe_event *event)
{
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
}

static void stopped(drupe_event *event, const char *part)
{
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, part);
    drupe_event_release(event);
}

/* --- Who keeps the memory ------------------------------------------------------------------------------- */

static void count(void *counter)
{
    ++*(int *)counter;
}

static void ignore(void *memory)
{
    assert_ptr_equal(memory, ours);
}

static drupe_keep keep_kernel(void)
{
    return (drupe_keep){drupe_kernel_retain(bench.gid), drupe_kernel_drop};
}

/* A launch behind a submission that keeps these. */
static void keep_and_launch(const drupe_keep *keeps, size_t nkeeps)
{
    const drupe_submission before = {.queue = bench.queue, .keeps = keeps, .nkeeps = nkeeps};
    OK(drupe_submit_barrier(&before, NULL));
    OK(launch_on(ours));
}

static void the_same_launch_takes_over_what_the_last_one_keeps(void **state)
{
    (void)state;
    static const uint64_t two = 2;
    int dropped = 0;
    OK(launch_on(ours)); /* nothing is before it */
    EXPECT_USES(1, 0);
    OK(launch_on(ours));
    EXPECT_USES(1, 0);
    OK(launch_on(other));
    EXPECT_USES(1, 1);
    OK(launch_on(ours)); /* as many, but others */
    EXPECT_USES(2, 1);
    OK(launch_mad(ours, other, (drupe_memory *[5]){ours, other}, &two)); /* more of them */
    EXPECT_USES(3, 2);
    OK(launch_on(ours));
    EXPECT_USES(4, 2);
    /* The same object, which the last one keeps in another way. */
    keep_and_launch((drupe_keep[]){{ours, ignore}, keep_kernel()}, 2);
    EXPECT_USES(5, 2);
    /* The same ones, and one more. */
    keep_and_launch((drupe_keep[]){drupe_memory_keep(ours, bench.queue), keep_kernel(), {&dropped, count}},
                    3);
    EXPECT_USES(7, 2);
    /* What is over at once, or refused, leaves them where they are. */
    mode = OVER;
    OK(launch_on(ours));
    EXPECT_USES(7, 2);
    OK(launch(drupe_memory_pointer(other), NULL, NULL)); /* its own */
    EXPECT_USES(7, 2);
    mode = REFUSED;
    FAILS(launch_on(ours), DRUPE_E_INTERNAL, PLANNED);
    EXPECT_USES(7, 2);
    assert_int_equal(dropped, 0);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    EXPECT_USES(0, 0);
    assert_int_equal(dropped, 1);
    const drupe_keep own = {&dropped, count};
    s.keeps = &own;
    s.nkeeps = 1;
    mode = HELD;
    OK(launch(drupe_memory_pointer(ours), NULL, NULL)); /* keeps are for the steps */
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    assert_int_equal(dropped, 2);
}

static void hints_are_no_more_than_that(void **state)
{
    (void)state;
    static const uint64_t two = 2;
    drupe_event *event;
    memset(drupe_memory_pointer(other), 7, 64);
    OK(launch(drupe_memory_pointer(ours), &other, &event)); /* a wrong one */
    EXPECT_USES(1, 0);
    wait_for(event);
    expect_numbers(ours);
    bench_expect_bytes(other, 7, 64);
    drupe_queue_collect(bench.queue);
    OK(launch_mad(ours, other, (drupe_memory *[5]){NULL, other}, &two)); /* what is not known is looked for */
    EXPECT_USES(1, 1);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    FAILS(launch_mad(ours, other, (drupe_memory *[5]){ours, other}, NULL), DRUPE_E_INVALID,
          "4 of 'test_mad' has no");
    FAILS(launch_mad(ours, other, NULL, NULL), DRUPE_E_INVALID, "has no value");
    EXPECT_USES(0, 0);
}

/* --- What is left to the steps -------------------------------------------------------------------------- */

static void memory_without_a_result_is_not_read(void **state)
{
    (void)state;
    drupe_event *failure = bench_failure(bench.queue, "before", NULL);
    OK(bench_fill(bench.queue, ours, 1, NULL, NULL)); /* does not run */
    assert_int_equal(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INVALID);
    drupe_event_release(failure);
    FAILS(launch_on(ours), DRUPE_E_DEPENDENCY, "'before'");
    FAILS(launch(drupe_memory_pointer(ours), NULL, NULL), DRUPE_E_DEPENDENCY, "'before'");
    assert_int_equal(launched, 0);
    drupe_memory_accept(ours);
    OK(launch_on(ours));
    OK(drupe_queue_wait(bench.queue, LONG));
    expect_numbers(ours);
}

static drupe_memory *still_used(drupe_event *gate)
{
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096), *again;
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    drupe_memory_release(memory);
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 4096, &again));
    return again;
}

static void memory_that_another_queue_still_uses_is_waited_for(void **state)
{
    (void)state;
    drupe_event *gates[] = {bench_gate(), bench_gate()}, *waits[] = {NULL, gates[1]}, *hinted, *found;
    drupe_memory *next = still_used(gates[0]);
    s.queue = second;
    s.waits = waits;
    s.nwaits = 2;
    OK(launch(drupe_memory_pointer(next), &next, &hinted));
    OK(launch(drupe_memory_pointer(next), NULL, &found));
    assert_int_equal(launched, 0);
    bench_open_gate(gates[1]);
    assert_int_equal(drupe_event_wait(hinted, 1000), DRUPE_E_TIMEOUT); /* for that of the memory */
    bench_open_gate(gates[0]);
    wait_for(hinted);
    wait_for(found);
    expect_numbers(next);
    drupe_memory_release(next);
}

static void what_is_wrong_is_said_by_the_steps(void **state)
{
    (void)state;
    drupe_event *event;
    drupe_memory *gone = bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096);
    void *there = drupe_memory_pointer(gone);
    drupe_memory_release(gone);
    FAILS(launch(there, NULL, &event), DRUPE_E_INVALID, "memory that is not allocated");
    assert_null(event);
    s.nwaits = 1;
    FAILS(launch_on(ours), DRUPE_E_INVALID, "list of events is missing");
    s.nwaits = 0;
    s.queue = NULL;
    FAILS(launch_on(ours), DRUPE_E_INVALID, "needs a queue");
    assert_int_equal(launched, 0);
}

static void a_launch_waits_behind_what_is_deferred(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *event;
    OK(bench_barrier(bench.queue, gate, NULL));
    OK(launch(drupe_memory_pointer(ours), &ours, &event));
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_QUEUED);
    assert_int_equal(launched, 0);
    bench_open_gate(gate);
    wait_for(event);
    expect_numbers(ours);
}

static drupe_status fail_when_told(void *user)
{
    sem_wait(user);
    return drupe_error_set(DRUPE_E_INVALID, PLANNED);
}

static void a_launch_does_not_run_behind_what_fails(void **state)
{
    (void)state;
    sem_t told;
    drupe_event *failure, *event;
    assert_int_equal(sem_init(&told, 0, 0), 0);
    memset(drupe_memory_pointer(ours), 7, 64);
    OK(drupe_submit_host(&s, fail_when_told, &told, &failure));
    OK(launch(drupe_memory_pointer(ours), &ours, &event)); /* it may fail yet */
    sem_post(&told);
    stopped(event, PLANNED);
    bench_expect_bytes(ours, 7, 64);
    assert_int_equal(drupe_event_wait(failure, LONG), DRUPE_E_INVALID);
    drupe_event_release(failure);
    sem_destroy(&told);
    drupe_memory_accept(ours);
    /* It has failed, and nobody was told. */
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "a reason"};
    drupe_cause *cause = drupe_cause_new(&error, NULL, bench.queue, drupe_inflight_latest());
    drupe_queue_set_cause(bench.queue, cause, drupe_inflight_latest());
    OK(launch(drupe_memory_pointer(ours), &ours, &event));
    stopped(event, "a reason");
    drupe_cause_release(cause);
    bench_expect_bytes(ours, 7, 64);
}

static void fail_its_writer(void)
{
    drupe_event *failure = bench_failure(second, "writer", NULL), *event;
    OK(bench_fill(second, ours, 1, NULL, &event));
    while (drupe_event_state_of(event) != DRUPE_EVENT_FAILED) continue;
    drupe_marks_settle();
    drupe_event_release(failure);
    drupe_event_release(event);
}

static void what_loses_its_contents_meanwhile_is_not_read(void **state)
{
    (void)state;
    drupe_event *event;
    bench_meanwhile = fail_its_writer;
    OK(launch(drupe_memory_pointer(ours), &ours, &event));
    assert_null(bench_meanwhile);
    assert_int_equal(launched, 0);
    stopped(event, "'writer'");
}

static void kernels_with_many_operands_go_on_elsewhere(void **state)
{
    (void)state;
    enum { MANY = DRUPE_INFLIGHT_REFS + 1 };
    void *at = drupe_memory_pointer(ours);
    drupe_arg args[MANY];
    const drupe_range range = {.dims = 1, .global = {4}};
    for (size_t i = 0; i < MANY; i++) args[i] = (drupe_arg){DRUPE_ARG_POINTER, sizeof at, &at};
    mode = OVER;
    bench.gid->nargs = MANY;
    OK(drupe_submit_kernel(&s, bench.gid, &range, args, MANY, NULL));
    bench.gid->nargs = 1;
    assert_int_equal(launched, 1);
    EXPECT_USES(0, 0);
}

static void other_queues_take_launches_in_their_own_way(void **state)
{
    (void)state;
    drupe_queue *queue;
    OK(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_OUT_OF_ORDER, &queue));
    s.queue = queue;
    OK(launch_on(ours));
    assert_non_null(queue->order.tail->event); /* each has one there */
    OK(drupe_queue_wait(queue, LONG));
    expect_numbers(ours);
    drupe_queue_release(queue);
    OK(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_PROFILING, &queue));
    s.queue = queue;
    s.site = 7;
    mode = OVER; /* it is not asked: it would have no times */
    OK(launch_on(other));
    assert_non_null(queue->order.tail->event);
    assert_int_equal(queue->order.tail->what.site, 7);
    OK(drupe_queue_wait(queue, LONG));
    expect_numbers(other);
    drupe_queue_release(queue);
}

static void in_checked_mode_each_launch_is_looked_at(void **state)
{
    (void)state;
    drupe_check_begin();
    OK(launch_on(ours));
    s.queue = second;
    FAILS(launch_on(ours), DRUPE_E_CHECK, "Race: 'test_gid'");
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(launch_on(ours));
    OK(drupe_queue_wait(second, LONG));
    drupe_check_end();
}

/* --- Words, and no memory ------------------------------------------------------------------------------- */

static void words_are_arguments(void **state)
{
    (void)state;
    static drupe_form form = {DRUPE_ARG_POINTER, 0};
    const drupe_range range = {.dims = 1, .global = {4}};
    const uint64_t word = (uintptr_t)drupe_memory_pointer(ours);
    drupe_event *event;
    bench.gid->forms = &form;
    bench.gid->worded = true;
    OK(drupe_submit_words(&s, bench.gid, &range, &word, &event));
    wait_for(event);
    expect_numbers(ours);
    bench.gid->worded = false;
    bench.gid->forms = NULL;
    FAILS(drupe_submit_words(&s, bench.gid, &range, &word, &event), DRUPE_E_INVALID, "as words");
    assert_null(event);
}

static void a_launch_without_memory_for_it_leaves_nothing(void **state)
{
    (void)state;
    drupe_event *event;
    mode = OVER;
    wrap_plan(WRAP_MALLOC, 1); /* the record; the steps try again */
    OK(launch_on(ours));
    assert_int_equal(wrap_made(), 1);
    assert_int_equal(launched, 1);
    wrap_plan(WRAP_MALLOC, 1); /* the event: the record is there by now */
    assert_int_equal(launch(drupe_memory_pointer(ours), &ours, &event), DRUPE_E_NO_MEMORY);
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    assert_null(event);
    assert_int_equal(launched, 1);
    EXPECT_USES(0, 0);
    assert_int_equal(drupe_queue_pending(bench.queue), 0);
}

/* The last one: a device is lost for the process. */
static void a_lost_device_takes_no_launch(void **state)
{
    (void)state;
    drupe_failure failure;
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "It went away."};
    drupe_core_device_lost(bench.device, &error, false);
    FAILS(launch_on(ours), DRUPE_E_DEVICE_LOST, "It went away.");
    assert_int_equal(launched, 0);
    EXPECT_USES(0, 0);
    while (drupe_failure_take(&failure)) continue;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_same_launch_takes_over_what_the_last_one_keeps),
        TEST(hints_are_no_more_than_that),
        TEST(memory_without_a_result_is_not_read),
        TEST(memory_that_another_queue_still_uses_is_waited_for),
        TEST(what_is_wrong_is_said_by_the_steps),
        TEST(a_launch_waits_behind_what_is_deferred),
        TEST(a_launch_does_not_run_behind_what_fails),
        TEST(what_loses_its_contents_meanwhile_is_not_read),
        TEST(kernels_with_many_operands_go_on_elsewhere),
        TEST(other_queues_take_launches_in_their_own_way),
        TEST(in_checked_mode_each_launch_is_looked_at),
        TEST(words_are_arguments),
        TEST(a_launch_without_memory_for_it_leaves_nothing),
        TEST(a_lost_device_takes_no_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
