/* How long things live. */
#include "conformance.h"
#include <sched.h>
#include <time.h>

#define N 4096

struct kept {
    _Atomic(int) released;
    pthread_t thread;
    _Atomic(int) elsewhere; /* released on another thread than that of the case */
};

static void release_kept(void *object)
{
    struct kept *kept = object;
    kept->released++;
    if (!pthread_equal(kept->thread, pthread_self())) kept->elsewhere++;
}

static void expect_once(struct kept *kept, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(kept[i].released, 1);
        assert_int_equal(kept[i].elsewhere, 0);
    }
}

static void init_kept(struct kept *kept, size_t count)
{
    memset(kept, 0, count * sizeof *kept);
    for (size_t i = 0; i < count; i++) kept[i].thread = pthread_self();
}

/* Every way a submission can go: native, with an event, held, behind a failure, refused. */
static void released_once(struct suite *suite)
{
    struct bench *b = &suite->bench, *other = use_other(suite);
    struct kept kept[40];
    init_kept(kept, 40);
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, N);
    size_t next = 0;
    drupe_event *event, *cause;
    struct gate gate;
    gate_init(&gate);
    drupe_event *foreign = submit_gate(other->queue, &gate);
    for (int i = 0; i < 30; i++) {
        drupe_keep keeps[] = {{&kept[next], release_kept}, {NULL, NULL}};
        drupe_submission s = {.queue = b->queue, .keeps = keeps, .nkeeps = 2};
        if (i == 10) s.waits = &foreign, s.nwaits = 1;
        uint64_t value = 0;
        OK(drupe_submit_fill(&s, drupe_memory_pointer(m), &value, 8, N, i % 3 ? NULL : &event));
        if (i % 3 == 0) drupe_event_release(event);
        next++;
    }
    /* Nothing held may be given back yet; collecting is harmless. */
    drupe_queue_collect(b->queue);
    for (size_t i = 10; i < 30; i++) assert_int_equal(kept[i].released, 0);
    gate_open(&gate);
    cause = submit_failure(b->queue, "failure");
    while (drupe_event_state_of(cause) != DRUPE_EVENT_FAILED) {}
    for (int i = 0; i < 5; i++, next++) {
        drupe_keep keep = {&kept[next], release_kept};
        drupe_submission s = {.queue = b->queue, .keeps = &keep, .nkeeps = 1};
        OK(drupe_submit_barrier(&s, NULL));
    }
    for (int i = 0; i < 5; i++, next++) {
        drupe_keep keep = {&kept[next], release_kept};
        drupe_submission s = {.queue = b->queue, .keeps = &keep, .nkeeps = 1};
        FAILS(drupe_submit_fill(&s, drupe_memory_pointer(m), &next, 3, N, NULL), DRUPE_E_INVALID, "pattern");
    }
    FAILS(drupe_queue_wait(b->queue, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    drupe_queue_collect(b->queue);
    drupe_queue_collect(b->queue);
    assert_int_equal(next, 40);
    expect_once(kept, 40);
    drupe_event_release(foreign);
    drupe_event_release(cause);
    drupe_memory_release(m);
    gate_destroy(&gate);
}

/* Not before the work is over, and at the latest when the queue goes. */
static void released_with_the_queue(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct kept kept[3];
    init_kept(kept, 3);
    drupe_queue *queue;
    OK(drupe_queue_open(b->context, b->device, 0, &queue));
    struct gate gate;
    gate_init(&gate);
    drupe_event *stopped = submit_gate(queue, &gate);
    for (int i = 0; i < 3; i++) {
        drupe_keep keep = {&kept[i], release_kept};
        drupe_submission s = {.queue = queue, .keeps = &keep, .nkeeps = 1};
        OK(drupe_submit_barrier(&s, NULL));
        drupe_queue_collect(queue);
    }
    for (int i = 0; i < 3; i++) assert_int_equal(kept[i].released, 0);
    gate_open(&gate);
    drupe_queue_release(queue);
    expect_once(kept, 3);
    /* The event outlives its queue, and can bring it back. */
    assert_int_equal(drupe_event_state_of(stopped), DRUPE_EVENT_COMPLETE);
    queue = drupe_queue_retain(drupe_event_queue(stopped));
    drupe_event_release(stopped);
    drupe_memory *m = new_memory(queue, DRUPE_MEM_DEVICE, N);
    fill_u64(queue, m, 3, N / 8);
    expect_u64(queue, m, 3, N / 8);
    drupe_memory_release(m);
    drupe_queue_release(queue);
    gate_destroy(&gate);
}

/* Memory and kernels may be let go right after the submission: nobody else gets the memory meanwhile. */
static void free_in_flight(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct gate gate;
    gate_init(&gate);
    drupe_memory *result = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    void *address = drupe_memory_pointer(m);
    drupe_event *stopped = submit_gate(b->queue, &gate);
    drupe_kernel *kernel;
    OK(drupe_kernel_open(b->program, "test_mad", &kernel));
    struct bench with = *b;
    with.mad = kernel;
    fill_u64(b->queue, m, 20, N);
    OK(submit_mad(&with, b->queue, result, m, N, 2, 2, NULL, 0, NULL));
    drupe_memory_release(m);
    drupe_kernel_release(kernel);
    drupe_memory *others[8];
    for (int i = 0; i < 8; i++) {
        others[i] = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
        assert_ptr_not_equal(drupe_memory_pointer(others[i]), address);
    }
    gate_open(&gate);
    expect_u64(b->queue, result, 42, N);
    for (int i = 0; i < 8; i++) drupe_memory_release(others[i]);
    drupe_memory_release(result);
    drupe_event_release(stopped);
    gate_destroy(&gate);
}

/* Work that nobody looks at gives back what it used, without any wait. */
static void silent_work_is_collected(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct kept kept[200];
    init_kept(kept, 200);
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, N);
    for (int i = 0; i < 200; i++) {
        drupe_keep keep = {&kept[i], release_kept};
        drupe_submission s = {.queue = b->queue, .keeps = &keep, .nkeeps = 1};
        uint64_t value = 0;
        OK(drupe_submit_fill(&s, drupe_memory_pointer(m), &value, 8, N, NULL));
    }
    /* Collecting never blocks, so it is repeated until the device has caught up. */
    for (int i = 0; i < 10000 && kept[199].released == 0; i++) {
        struct timespec pause = {.tv_nsec = 1000000};
        drupe_queue_collect(b->queue);
        if (kept[199].released == 0) nanosleep(&pause, NULL);
    }
    expect_once(kept, 200);
    assert_int_equal(drupe_queue_pending(b->queue), 0);
    drupe_memory_release(m);
}

/* Nor does it take any other call: those who submit look at what is over, of small work now and then. */
static void submitting_looks(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct kept kept;
    init_kept(&kept, 1);
    drupe_keep keep = {&kept, release_kept};
    struct gate gate;
    gate_init(&gate);
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_submission s = {.queue = b->queue, .keeps = &keep, .nkeeps = 1};
    uint64_t value = 0;
    drupe_event *stopped = submit_gate(b->queue, &gate);
    OK(drupe_submit_fill(&s, drupe_memory_pointer(m), &value, 8, N * 8, NULL));
    gate_open(&gate);
    for (int i = 0; i < 600000 && kept.released == 0; i++) {
        struct timespec pause = {.tv_nsec = 1000000};
        fill_u64(b->queue, m, 1, N);
        if (i % 32 == 31) nanosleep(&pause, NULL);
    }
    expect_once(&kept, 1);
    drupe_event_release(stopped);
    drupe_memory_release(m);
    gate_destroy(&gate);
}

/* Large temporaries do not pile up behind work without events: fewer submissions than the usual interval of
 * marks give them back, without any wait. */
static void large_memory_is_returned(struct suite *suite)
{
    struct bench *b = &suite->bench;
    const size_t bytes = 24u << 20;
    drupe_pool_stats stats;
    drupe_memory *small = new_memory(b->queue, DRUPE_MEM_DEVICE, 64);
    for (int i = 0; i < 20; i++) {
        drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, bytes);
        fill_u64(b->queue, m, 1, 16);
        drupe_memory_release(m);
    }
    for (int i = 0; i < 600; i++) {
        struct timespec pause = {.tv_nsec = 300000000};
        fill_u64(b->queue, small, 1, 8);
        drupe_pool_stats_of(b->device, &stats);
        if (stats.used < bytes) break;
        if (i % 8 == 7) nanosleep(&pause, NULL);
    }
    assert_true(stats.used < bytes);
    drupe_memory_release(small);
}

static void release_queue(void *queue)
{
    drupe_queue_release(queue);
}

/* What work kept may be all that kept its queue. */
static void queue_goes_while_it_is_collected(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queue = NULL;
    OK(drupe_queue_open(b->context, b->device, 0, &queue));
    drupe_keep keep = {queue, release_queue};
    drupe_submission s = {.queue = queue, .keeps = &keep, .nkeeps = 1};
    struct gate gate;
    gate_init(&gate);
    drupe_event *event, *stopped = submit_gate(queue, &gate);
    OK(drupe_submit_barrier(&s, &event));
    gate_open(&gate);
    while (drupe_event_state_of(event) != DRUPE_EVENT_COMPLETE) sched_yield();
    drupe_event_release(stopped);
    drupe_event_release(event);
    drupe_queue_collect(queue);
    gate_destroy(&gate);
}

const conformance_case cases_keep[] = {
    {"released_once", released_once},
    {"released_with_the_queue", released_with_the_queue},
    {"free_in_flight", free_in_flight},
    {"silent_work_is_collected", silent_work_is_collected},
    {"submitting_looks", submitting_looks},
    {"large_memory_is_returned", large_memory_is_returned},
    {"queue_goes_while_it_is_collected", queue_goes_while_it_is_collected},
    {NULL, NULL},
};
