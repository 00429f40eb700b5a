/* White-box: copies that are over within the call, what is in their way, and queues with nothing to wait
 * for. */
#include "core/submit/submit_room.h"
#include "core_ends.h"
#include <semaphore.h>

enum { BYTES = 4096 };
static drupe_memory *ours;
static char *target, there[BYTES], back[BYTES];
static drupe_submission s;

static int setup(void **state)
{
    if (bench_setup(state) != 0) return -1;
    ours = bench_shared(BYTES);
    target = drupe_memory_pointer(ours);
    memset(target, 0, BYTES);
    memset(there, 7, BYTES);
    memset(back, 0, BYTES);
    s = (drupe_submission){.queue = bench.queue, .sound = true};
    return 0;
}

static int teardown(void **state)
{
    drupe_memory_release(ours);
    return bench_teardown(state);
}

static bool copies(void)
{
    return drupe_copy_at_once(&s, target, there, BYTES, NULL);
}

static void finish(void)
{
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
}

/* Something is in the way; the steps make the copy all the same, where `possible`. */
static void expect_steps(bool possible)
{
    memset(target, 0, BYTES);
    assert_false(copies());
    assert_int_equal(target[0] | target[BYTES - 1], 0);
    if (!possible) return;
    OK(drupe_submit_copy(&s, target, there, BYTES, NULL));
    OK(drupe_queue_wait(s.queue, LONG));
    drupe_queue_collect(s.queue);
    assert_memory_equal(target, there, BYTES);
}

/* --- Copies that are made ------------------------------------------------------------------------------- */

static void a_copy_is_over_when_the_call_returns(void **state)
{
    (void)state;
    drupe_event *event;
    drupe_trace_record record;
    const uint64_t before = drupe_inflight_latest();
    s.site = 5;
    assert_true(drupe_copy_at_once(&s, target, there, BYTES, &event));
    assert_memory_equal(target, there, BYTES);
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    assert_ptr_equal(drupe_event_queue(event), bench.queue);
    assert_int_equal(drupe_event_submission(event), before + 1);
    OK(drupe_event_wait(event, 0));
    drupe_event_release(event);
    assert_null(bench.queue->order.head);
    assert_false(drupe_memory_in_use(ours));
    assert_true(drupe_trace_one(before + 1, &record));
    assert_int_equal(record.kind, DRUPE_WORK_COPY);
    assert_int_equal(record.status, DRUPE_TRACE_COMPLETE);
    assert_int_equal(record.bytes, BYTES);
    assert_int_equal(record.site, 5);
    assert_string_equal(record.label, "copy");
    assert_true(record.started_ns && record.started_ns <= record.ended_ns);
    /* And to the host, by name. */
    s.label = "to_host";
    assert_true(drupe_copy_at_once(&s, back, target, BYTES, NULL));
    assert_memory_equal(back, there, BYTES);
    assert_true(drupe_trace_one(before + 2, &record));
    assert_string_equal(record.label, "to_host");
    assert_true(drupe_queue_quiet(bench.queue));
}

static void both_ends_may_be_memory_of_the_device(void **state)
{
    (void)state;
    drupe_memory *other = bench_shared(BYTES);
    memset(drupe_memory_pointer(other), 9, BYTES);
    s.sound = false; /* no memory of the host is there to be lost */
    drupe_memory *const memories[] = {ours, other};
    s.memories = memories;
    assert_true(drupe_copy_at_once(&s, target, drupe_memory_pointer(other), BYTES, NULL));
    assert_memory_equal(target, drupe_memory_pointer(other), BYTES);
    /* Looked for by address, and a part of it. */
    s.memories = NULL;
    memset(target, 0, BYTES);
    assert_true(drupe_copy_at_once(&s, target + 16, (char *)drupe_memory_pointer(other) + 32, 100, NULL));
    assert_int_equal(target[15], 0);
    assert_int_equal(target[16], 9);
    assert_int_equal(target[115], 9);
    assert_int_equal(target[116], 0);
    drupe_memory_release(other);
}

static int dropped;

static void drop(void *object)
{
    assert_ptr_equal(object, &dropped);
    dropped++;
}

static void what_a_copy_keeps_is_dropped_once(void **state)
{
    (void)state;
    const drupe_keep keep = {&dropped, drop};
    dropped = 0;
    s.keeps = &keep;
    s.nkeeps = 1;
    OK(drupe_submit_copy(&s, target, there, BYTES, NULL));
    assert_int_equal(dropped, 1); /* within the call */
    assert_memory_equal(target, there, BYTES);
    FAILS(drupe_submit_copy(&s, target, there, 2 * BYTES, NULL), DRUPE_E_OUT_OF_RANGE, "8192 bytes");
    assert_int_equal(dropped, 2);
    drupe_failure failure;
    while (drupe_failure_take(&failure)) continue;
    assert_true(copies()); /* which leaves them alone */
    assert_int_equal(dropped, 2);
    /* Memory that is kept may say more, which the steps look at. */
    const drupe_keep memory = drupe_memory_keep(ours, bench.queue);
    s.keeps = &memory;
    OK(drupe_submit_copy(&s, target, there, BYTES, NULL));
    finish();
    assert_false(drupe_memory_in_use(ours));
}

/* --- What is in the way --------------------------------------------------------------------------------- */

static void arguments_that_are_wrong_are_for_the_steps(void **state)
{
    (void)state;
    static char large[(512 << 10) + 1];
    drupe_event *event = (void *)&large;
    assert_false(drupe_copy_at_once(NULL, target, there, BYTES, &event));
    assert_null(event);
    assert_false(drupe_copy_at_once(&(drupe_submission){.sound = true}, target, there, BYTES, NULL));
    assert_false(drupe_copy_at_once(&s, target, there, 0, NULL));
    assert_false(drupe_copy_at_once(&s, NULL, there, BYTES, NULL));
    assert_false(drupe_copy_at_once(&s, target, NULL, BYTES, NULL));
    assert_false(drupe_copy_at_once(&s, back, there, BYTES, NULL)); /* no memory of the device */
    assert_false(drupe_copy_at_once(&s, target, target + 1, 8, NULL));
    assert_false(drupe_copy_at_once(&s, target + 8, target, 9, NULL));
    assert_false(drupe_copy_at_once(&s, target + 1, there, BYTES, NULL)); /* past the end */
    drupe_memory *const memories[] = {ours, NULL};
    s.memories = memories;
    assert_false(drupe_copy_at_once(&s, target + 1, there, BYTES, NULL));
    assert_false(drupe_copy_at_once(&s, target + BYTES, there, 1, NULL));
    assert_false(drupe_copy_at_once(&s, target - 1, there, 1, NULL));
    s.memories = NULL;
    drupe_memory *much = bench_shared(sizeof large);
    assert_false(drupe_copy_at_once(&s, drupe_memory_pointer(much), large, sizeof large, NULL));
    drupe_memory_release(much);
    s.sound = false;
    expect_steps(true);
}

static void work_before_it_comes_first(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate();
    s.waits = &gate;
    s.nwaits = 1;
    expect_steps(false);
    s.nwaits = 0;
    OK(bench_fill(bench.queue, ours, 3, gate, NULL));
    assert_false(copies());
    assert_false(drupe_queue_quiet(bench.queue));
    OK(drupe_submit_copy(&s, target, there, BYTES, NULL)); /* behind it */
    bench_open_gate(gate);
    finish();
    assert_memory_equal(target, there, BYTES);
    assert_true(drupe_queue_quiet(bench.queue));
    assert_true(copies());
}

static void queues_of_other_kinds_take_the_steps(void **state)
{
    (void)state;
    static const uint32_t kinds[] = {DRUPE_QUEUE_OUT_OF_ORDER, DRUPE_QUEUE_PROFILING};
    for (size_t i = 0; i < DRUPE_COUNT_OF(kinds); i++) {
        OK(drupe_queue_open(bench.context, bench.device, kinds[i], &s.queue));
        expect_steps(true);
        assert_int_equal(drupe_queue_quiet(s.queue), kinds[i] == DRUPE_QUEUE_PROFILING);
        drupe_queue_release(s.queue);
    }
    s.queue = bench_elsewhere(); /* whose context does not have the memory */
    expect_steps(true);
    drupe_queue_release(s.queue);
    s.queue = bench.queue;
    bench.queue->shared = true;
    expect_steps(true);
    assert_false(drupe_queue_quiet(bench.queue));
    bench.queue->shared = false;
    drupe_check_begin();
    expect_steps(true);
    assert_false(drupe_queue_quiet(bench.queue));
    drupe_check_end();
    drupe_queue_postpone(bench.queue, true);
    expect_steps(false);
    assert_false(drupe_queue_quiet(bench.queue));
    drupe_queue_postpone(bench.queue, false);
    assert_true(copies());
}

/* Copies of host memory on a GPU, of a layer that looks on, or that are left to the driver. */
static void memory_that_is_not_the_hosts_is_copied_by_the_driver(void **state)
{
    (void)state;
    const size_t usual = bench.queue->near;
    assert_int_equal(usual, 256 << 10);
    bench.device->type = DRUPE_DEVICE_GPU;
    OK(drupe_queue_open(bench.context, bench.device, 0, &s.queue));
    bench.device->type = DRUPE_DEVICE_CPU;
    assert_int_equal(s.queue->near, 0);
    expect_steps(true);
    drupe_queue_release(s.queue);
    setenv("DRUPE_PINNED", "0", 1);
    OK(drupe_queue_open(bench.context, bench.device, 0, &s.queue));
    unsetenv("DRUPE_PINNED");
    assert_int_equal(s.queue->near, 0);
    drupe_queue_release(s.queue);
    setenv("DRUPE_HOST_SHUFFLE", "1", 1);
    OK(drupe_queue_open(bench.context, bench.device, 0, &s.queue));
    unsetenv("DRUPE_HOST_SHUFFLE");
    assert_int_equal(s.queue->near, 0);
    drupe_queue_release(s.queue);
    const drupe_backend *real = bench.device->slot->backend, layer = *real;
    bench.device->slot->backend = &layer;
    OK(drupe_queue_open(bench.context, bench.device, 0, &s.queue));
    bench.device->slot->backend = real;
    assert_int_equal(s.queue->near, 0);
    drupe_queue_release(s.queue);
    s.queue = bench.queue;
}

/* A context may have a CPU and a GPU: not all its memory is the host's. */
static void memory_of_another_device_of_the_context_takes_the_steps(void **state)
{
    (void)state;
    drupe_device other = *bench.device;
    drupe_device *const own = ours->pool->root;
    ours->pool->root = &other;
    const bool to = copies(), from = drupe_copy_at_once(&s, back, target, BYTES, NULL);
    ours->pool->root = own;
    assert_false(to || from);
    assert_true(copies());
}

/* What it would have copied was never written, or the queue has a failure to report. */
static void failures_are_looked_at_by_the_steps(void **state)
{
    (void)state;
    drupe_event *failed = bench_failure(bench.queue, "fails", NULL);
    OK(bench_fill(bench.queue, ours, 3, NULL, NULL));
    FAILS(drupe_event_wait(failed, LONG), DRUPE_E_INVALID, PLANNED);
    drupe_event_release(failed);
    assert_false(copies());
    assert_false(drupe_queue_quiet(bench.queue));
    ends_settle(bench.queue);
    /* The fill behind the failure did not run: reading is refused, writing all of it is not. */
    assert_false(drupe_copy_at_once(&s, back, target, BYTES, NULL));
    assert_int_not_equal(drupe_submit_copy(&s, back, target, BYTES, NULL), DRUPE_OK);
    ends_settle(bench.queue);
    OK(drupe_submit_copy(&s, target, there, BYTES, NULL));
    finish();
    OK(drupe_submit_copy(&s, back, target, BYTES, NULL));
    finish();
    assert_memory_equal(back, there, BYTES);
    /* It was told, and nothing stands behind it any more. */
    assert_true(drupe_queue_quiet(bench.queue));
    assert_true(copies());
}

/* The mark comes between the look at the memory and the copy. */
static void mark(void)
{
    (void)atomic_fetch_add(&drupe_marks_version, 1);
}

static void what_is_marked_meanwhile_is_looked_at_again(void **state)
{
    (void)state;
    drupe_library_observe(&bench_observer);
    bench_meanwhile = mark;
    assert_false(copies());
    assert_null(bench_meanwhile);
    assert_true(copies());
    drupe_library_observe(NULL);
}

static drupe_status copy_with_event(void)
{
    drupe_event *event;
    if (!drupe_copy_at_once(&s, target, there, BYTES, &event))
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No event for it.");
    assert_memory_equal(target, there, BYTES);
    drupe_event_release(event);
    return DRUPE_OK;
}

static void without_memory_for_its_event_nothing_is_copied(void **state)
{
    (void)state;
    ends_until(copy_with_event, "No event");
    assert_null(bench.queue->order.head);
    OK(copy_with_event());
}

/* --- Several threads ------------------------------------------------------------------------------------ */

enum { ROUNDS = 2000, LOOKS = 4000 };

static void *round_trips(void *piece)
{
    char *own = piece;
    unsigned char from[64], to[64];
    for (unsigned i = 0; i < ROUNDS; i++) {
        memset(from, (int)(i % 251), sizeof from);
        OK(drupe_submit_copy(&s, own, from, sizeof from, NULL));
        OK(drupe_submit_copy(&s, to, own, sizeof to, NULL));
        OK(drupe_queue_wait(bench.queue, LONG));
        assert_memory_equal(from, to, sizeof to);
    }
    return NULL;
}

/* Some find the queue idle, others the work of these. */
static void threads_share_a_queue(void **state)
{
    (void)state;
    pthread_t thread[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, round_trips, target + 64 * i), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        OK(drupe_submit_fill(&s, target + 1024, "x", 1, 512, NULL));
        OK(bench_barrier(bench.queue, NULL, NULL));
    }
    for (size_t i = 0; i < 3; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    finish();
    assert_int_equal(target[1024], 'x');
}

static _Atomic(unsigned) owed, looks; /* odd: there is something to wait for */

static void *look(void *wrong)
{
    bool *seen = wrong;
    for (unsigned before = 0; before < 2 * LOOKS; atomic_fetch_add(&looks, 1)) {
        before = atomic_load(&owed);
        bool quiet = drupe_queue_quiet(bench.queue);
        if (before & 1 && before == atomic_load(&owed)) *seen = *seen || quiet;
    }
    return NULL;
}

/* What was held back is counted before nothing is held back any more: a glance that sees the one after the
 * other would miss it in between. */
static void what_was_held_back_is_seen_when_it_is_let_go(void **state)
{
    (void)state;
    pthread_t thread;
    bool wrong = false;
    atomic_store(&owed, 0);
    assert_int_equal(pthread_create(&thread, NULL, look, &wrong), 0);
    for (unsigned i = 0; i < LOOKS; i++) {
        drupe_queue_postpone(bench.queue, true);
        atomic_fetch_add(&owed, 1);
        for (unsigned seen = atomic_load(&looks); atomic_load(&looks) == seen;) continue;
        atomic_store_explicit(&bench.queue->order.count, 1, memory_order_release);
        drupe_queue_postpone(bench.queue, false);
        for (unsigned seen = atomic_load(&looks) + 1; (int)(atomic_load(&looks) - seen) < 0;) continue;
        atomic_fetch_add(&owed, 1);
        atomic_store(&bench.queue->order.count, 0);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(wrong);
}

static void a_forked_child_copies_nothing(void)
{
    ENDS_MUST(!copies());
    ENDS_MUST(!drupe_queue_quiet(bench.queue));
}

static void children_are_refused(void **state)
{
    (void)state;
    ends_in_child(a_forked_child_copies_nothing);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_copy_is_over_when_the_call_returns),
        TEST(both_ends_may_be_memory_of_the_device),
        TEST(what_a_copy_keeps_is_dropped_once),
        TEST(arguments_that_are_wrong_are_for_the_steps),
        TEST(work_before_it_comes_first),
        TEST(queues_of_other_kinds_take_the_steps),
        TEST(memory_that_is_not_the_hosts_is_copied_by_the_driver),
        TEST(memory_of_another_device_of_the_context_takes_the_steps),
        TEST(failures_are_looked_at_by_the_steps),
        TEST(what_is_marked_meanwhile_is_looked_at_again),
        TEST(without_memory_for_its_event_nothing_is_copied),
        TEST(threads_share_a_queue),
        TEST(what_was_held_back_is_seen_when_it_is_let_go),
        TEST(children_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
