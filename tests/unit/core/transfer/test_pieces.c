/* A copy in pieces, step by step: the device and the threads do what the test says, when it says so.
 *
 * Without threads the one that runs the copy makes all of it, so that everything happens in a fixed order. */
#include "core/transfer/transfer_room.h"
#include "core_bench.h"
#include "test_script.h"
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#define CHUNK ((size_t)128 << 10) /* that a thread takes at a time */
#define SIZE  (5 * CHUNK)         /* to the device: pieces of 2, 2 and 1 */

/* --- The device ------------------------------------------------------------------------------------------
 */

static struct {
    void (*on_submit)(void);
    void (*on_state)(drupe_event_state *state);
    void (*on_flush)(void);
    unsigned submits, states, waits, flushes, unpins;
    unsigned slow;     /* so many looks find a piece under way */
    unsigned timeouts; /* so many waits end without a result */
    drupe_status state, flush;
    bool no_event;
} device;

static drupe_loss loss;

static drupe_status submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes)
{
    (void)s;
    device.submits++;
    if (device.on_submit) device.on_submit();
    memcpy(dst, src, bytes);
    return DRUPE_OK;
}

static drupe_status event_state(drupe_event *event, drupe_event_state *state)
{
    (void)event;
    *state = device.states++ < device.slow ? DRUPE_EVENT_RUNNING : DRUPE_EVENT_COMPLETE;
    if (device.on_state) device.on_state(state);
    return device.state == DRUPE_OK ? DRUPE_OK : drupe_error_set(device.state, "A piece is lost.");
}

static drupe_status event_wait(drupe_event *event, uint64_t timeout_ns)
{
    (void)event, (void)timeout_ns;
    return device.waits++ < device.timeouts ? drupe_error_set(DRUPE_E_TIMEOUT, "Later.") : DRUPE_OK;
}

static drupe_status queue_flush(drupe_queue *queue)
{
    (void)queue;
    device.flushes++;
    return device.flush == DRUPE_OK ? DRUPE_OK : drupe_error_set(device.flush, "Not flushed.");
}

static drupe_status mem_pin(drupe_context *context, size_t size, void **pointer)
{
    (void)context;
    *pointer = aligned_alloc(4096, size);
    return DRUPE_OK;
}

static void mem_unpin(drupe_context *context, void *pointer)
{
    (void)context;
    device.unpins++;
    free(pointer);
}

drupe_status __real_drupe_event_next(drupe_queue *queue, uint64_t number, drupe_inflight *entry,
                                     drupe_event **event);
drupe_status __wrap_drupe_event_next(drupe_queue *queue, uint64_t number, drupe_inflight *entry,
                                     drupe_event **event);
drupe_status __wrap_drupe_event_next(drupe_queue *queue, uint64_t number, drupe_inflight *entry,
                                     drupe_event **event)
{
    if (!device.no_event) return __real_drupe_event_next(queue, number, entry, event);
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No event.");
}

/* --- Time ------------------------------------------------------------------------------------------------
 */

/* STANDING: nobody comes late, and a nap takes no time; HELD: the same with naps; FLYING: everybody is late.
 */
static enum { USUAL, STANDING, HELD, FLYING } clock_mode;
static _Atomic(uint64_t) flown;
static unsigned naps, long_naps;
static _Atomic(unsigned) held_naps;

uint64_t __real_drupe_now_ns(void);
uint64_t __wrap_drupe_now_ns(void);
uint64_t __wrap_drupe_now_ns(void)
{
    if (clock_mode == FLYING) return __real_drupe_now_ns() + atomic_fetch_add(&flown, SECOND);
    return clock_mode == USUAL ? __real_drupe_now_ns() : SECOND;
}

int __real_nanosleep(const struct timespec *span, struct timespec *left);
int __wrap_nanosleep(const struct timespec *span, struct timespec *left);
int __wrap_nanosleep(const struct timespec *span, struct timespec *left)
{
    if (clock_mode == HELD) atomic_fetch_add(&held_naps, 1);
    if (clock_mode != STANDING) return __real_nanosleep(span, left);
    *(span->tv_nsec < 1000000 ? &naps : &long_naps) += 1;
    return 0;
}

/* --- Threads ---------------------------------------------------------------------------------------------
 */

static struct {
    drupe_job *job;
    void (*run)(drupe_job *job), (*faulted)(drupe_job *job);
} posted[4];
static unsigned nposted;

void __wrap_drupe_worker_post(drupe_job *job, void (*run)(drupe_job *), void (*fail)(drupe_job *),
                              const char *what);
void __wrap_drupe_worker_post(drupe_job *job, void (*run)(drupe_job *), void (*fail)(drupe_job *),
                              const char *what)
{
    assert_string_equal(what, "copy");
    assert_true(nposted < DRUPE_COUNT_OF(posted));
    posted[nposted].job = job;
    posted[nposted].run = run;
    posted[nposted++].faulted = fail;
}

/* One that stands for a worker. */
struct stand_in {
    pthread_t thread;
    _Atomic(int) busy;
    unsigned index;      /* of its job */
    unsigned lock;       /* the lock before which it stops; 0: none */
    const char *fault;   /* with which it ends in its first chunk */
    sem_t there, go;     /* it has stopped; it may go on */
    bool stops_in_chunk; /* before it faults there */
};
static _Thread_local struct stand_in *self;

static void stop(struct stand_in *here)
{
    sem_post(&here->there);
    while (sem_wait(&here->go) != 0) continue;
}

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (self && self->lock && --self->lock == 0) stop(self);
    return __real_pthread_mutex_lock(lock);
}

void __real_drupe_copy_past_caches(void *dst, const void *src, size_t bytes);
void __wrap_drupe_copy_past_caches(void *dst, const void *src, size_t bytes);
void __wrap_drupe_copy_past_caches(void *dst, const void *src, size_t bytes)
{
    if (self && self->fault) {
        if (self->stops_in_chunk) stop(self);
        assert_int_equal(atomic_load(posted[self->index].job->busy), 1);
        drupe_error_set(DRUPE_E_CHECK, "%s", self->fault);
        posted[self->index].faulted(posted[self->index].job);
        pthread_exit(NULL);
    }
    __real_drupe_copy_past_caches(dst, src, bytes);
}

static void *worker(void *user)
{
    self = user;
    posted[self->index].job->busy = &self->busy;
    posted[self->index].run(posted[self->index].job);
    return NULL;
}

static void begin(struct stand_in *one, unsigned index)
{
    one->index = index;
    sem_init(&one->there, 0, 0);
    sem_init(&one->go, 0, 0);
    assert_int_equal(pthread_create(&one->thread, NULL, worker, one), 0);
}

static void await_stop(struct stand_in *one)
{
    while (sem_wait(&one->there) != 0) continue;
}

static void end(struct stand_in *one)
{
    sem_post(&one->go);
    pthread_join(one->thread, NULL);
    sem_destroy(&one->there);
    sem_destroy(&one->go);
}

/* --- Copies ----------------------------------------------------------------------------------------------
 */

static struct {
    drupe_staged_copy *copy;
    char *from, *to;
    pthread_t thread;
    drupe_status status;
    drupe_error error;
} copying;

static void drop(void)
{
    if (copying.copy) drupe_staged_copy_release(copying.copy);
    free(copying.from);
    free(copying.to);
    memset(&copying, 0, sizeof copying);
}

static int setup(void **state)
{
    (void)state;
    test_script_reset();
    test_script_tables[0].submit_copy = submit_copy;
    test_script_tables[0].event_state = event_state;
    test_script_tables[0].event_wait = event_wait;
    test_script_tables[0].mem_pin = mem_pin;
    test_script_tables[0].mem_unpin = mem_unpin;
    memset(&device, 0, sizeof device);
    loss = (drupe_loss){.error = {.status = DRUPE_E_DEVICE_LOST, .text = "Gone."}};
    clock_mode = USUAL;
    naps = long_naps = nposted = 0;
    return bench_open("host", 0);
}

static int teardown(void **state)
{
    atomic_store(&bench.device->loss, NULL);
    clock_mode = USUAL;
    drop();
    return bench_teardown(state);
}

static void prepare(bool ring, unsigned threads, bool to_device)
{
    void *pinned = NULL;
    copying.from = malloc(SIZE);
    copying.to = calloc(1, SIZE);
    for (size_t i = 0; i < SIZE; i++) copying.from[i] = (char)(i * 7 + i / 1000);
    if (ring) OK(mem_pin(bench.context, DRUPE_RING, &pinned));
    const drupe_work work = {.kind = DRUPE_WORK_COPY, .dst = copying.to, .src = copying.from, .bytes = SIZE};
    copying.copy = drupe_staged_copy_new(pinned, threads, bench.queue, to_device, &work);
    assert_non_null(copying.copy);
    drupe_pieces *pieces = (drupe_pieces *)(void *)copying.copy;
    pieces->hurry(pieces);
    assert_int_equal(nposted, threads);
}

/* By the calling thread, since no other comes: time flies. */
static drupe_status run_alone(bool to_device)
{
    prepare(true, 0, to_device);
    clock_mode = FLYING;
    return drupe_staged_copy_run(copying.copy);
}

static void *run_copy(void *unused)
{
    copying.status = drupe_staged_copy_run(copying.copy);
    copying.error = *drupe_error_last();
    return unused;
}

static void expect_copied(void)
{
    assert_memory_equal(copying.from, copying.to, SIZE);
    assert_non_null(bench.context->ring); /* for the next copy */
}

static void one_thread_may_make_all_of_it(void **state)
{
    (void)state;
    device.slow = 3;
    OK(run_alone(false)); /* there is nothing to copy until the device has done its part */
    expect_copied();
    drop();
    device.slow = device.submits = 0;
    prepare(true, 1, true);
    clock_mode = FLYING;
    OK(drupe_staged_copy_run(copying.copy));
    expect_copied();
    assert_int_equal(device.submits, 3);
    /* A thread that comes now leaves at once. */
    memset(copying.to, 0, SIZE);
    struct stand_in late = {0};
    begin(&late, 0);
    end(&late);
    for (size_t i = 0; i < SIZE; i++) assert_int_equal(copying.to[i], 0);
}

static void what_a_queue_says_to_a_flush_is_not_the_copys(void **state)
{
    (void)state;
    static const struct {
        drupe_status answer;
        bool flushes;
    } cases[] = {{DRUPE_OK, true}, {DRUPE_E_INTERNAL, true}, {DRUPE_OK, false}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        test_script_tables[0].queue_flush = cases[i].flushes ? queue_flush : NULL;
        device.flush = cases[i].answer;
        device.flushes = 0;
        drupe_error_set(DRUPE_E_BUSY, "The caller's error.");
        OK(run_alone(true));
        assert_string_equal(drupe_error_last()->text, "The caller's error.");
        assert_int_equal(device.flushes, cases[i].flushes ? 3 : 0);
        expect_copied();
        drop();
    }
}

/* --- A device that fails ---------------------------------------------------------------------------------
 */

static void lose(void)
{
    atomic_store(&bench.device->loss, &loss);
}

static void fall_silent(void)
{
    loss.silent = true;
    lose();
}

static void lose_at_work(drupe_event_state *state)
{
    (void)state;
    lose();
}

static void fail_well(drupe_event_state *state)
{
    drupe_error_set(DRUPE_E_INTERNAL, "A piece is lost.");
    *state = DRUPE_EVENT_FAILED;
}

static void no_more_events(drupe_event_state *state)
{
    (void)state;
    device.no_event = true;
}

/* What fails with the first piece, and how often the device is looked at and waited for. */
static const struct failing {
    void (*on_submit)(void);
    void (*on_state)(drupe_event_state *state);
    unsigned slow, timeouts;
    bool lost; /* its driver says so */
    drupe_status status;
    const char *text;
    unsigned looks, waits;
} failures[] = {
    /* It is lost with its first piece: the second is not sent. */
    {.on_submit = lose, .status = DRUPE_E_DEVICE_LOST, .text = "Gone.", .looks = 1},
    /* Its driver is asked no more. */
    {.on_submit = fall_silent, .status = DRUPE_E_DEVICE_LOST, .text = "Gone."},
    /* What it has begun may have no end. */
    {.on_state = lose_at_work, .slow = 9, .status = DRUPE_E_DEVICE_LOST, .text = "Gone.", .looks = 1},
    {.on_state = fail_well, .status = DRUPE_E_INTERNAL, .text = "A piece", .looks = 1, .waits = 1},
    /* Its buffers are in use until it is done with them. */
    {.lost = true, .timeouts = 3, .status = DRUPE_E_INTERNAL, .text = "A piece", .looks = 1, .waits = 4},
    {.on_state = no_more_events, .status = DRUPE_E_NO_MEMORY, .text = "No event", .looks = 1},
};

static void a_device_that_fails_fails_the_copy(void **state)
{
    for (size_t i = 0; i < DRUPE_COUNT_OF(failures); i++) {
        const struct failing *one = &failures[i];
        device.on_submit = one->on_submit;
        device.on_state = one->on_state;
        device.slow = one->slow;
        device.timeouts = one->timeouts;
        if (one->lost) device.state = DRUPE_E_INTERNAL;
        FAILS(run_alone(true), one->status, one->text);
        assert_int_equal(device.submits, 1);
        assert_int_equal(device.states, one->looks);
        assert_int_equal(device.waits, one->waits);
        assert_int_equal(pthread_mutex_trylock(&bench.queue->lock), 0);
        pthread_mutex_unlock(&bench.queue->lock);
        assert_non_null(bench.context->ring);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
}

/* Looked at often, then now and then, at last rarely. */
static void end_rarely(drupe_event_state *state)
{
    if (!long_naps) {
        *state = DRUPE_EVENT_RUNNING;
        return;
    }
    clock_mode = FLYING;
    device.on_state = NULL;
}

static void a_device_that_is_busy_elsewhere_is_left_alone(void **state)
{
    (void)state;
    device.on_state = end_rarely;
    prepare(true, 0, false);
    clock_mode = STANDING;
    OK(drupe_staged_copy_run(copying.copy));
    assert_int_equal(long_naps, 1);
    assert_in_range(naps, 900, 1100);
    expect_copied();
}

/* --- Threads that meet -----------------------------------------------------------------------------------
 */

/* Two see the same bytes; one is stopped and finds that the other took them. */
static void bytes_are_taken_once(void **state)
{
    (void)state;
    struct stand_in slow = {.lock = 2}, quick = {0};
    prepare(false, 2, true);
    clock_mode = HELD;
    pthread_create(&copying.thread, NULL, run_copy, NULL);
    begin(&slow, 0);
    await_stop(&slow);
    begin(&quick, 1);
    pthread_join(copying.thread, NULL);
    end(&quick);
    memset(copying.from, 0, SIZE);
    end(&slow);
    assert_int_equal(copying.status, DRUPE_OK);
    for (size_t i = 0; i < SIZE; i++) assert_int_equal(copying.to[i], (char)(i * 7 + i / 1000));
}

/* The first fault is that of the copy; nothing is taken after it. */
static void threads_that_fault_fail_the_copy(void **state)
{
    (void)state;
    struct stand_in slow = {.lock = 2}, second = {.fault = "The second.", .stops_in_chunk = true},
                    first = {.fault = "The first."};
    prepare(true, 3, true);
    clock_mode = HELD;
    pthread_create(&copying.thread, NULL, run_copy, NULL);
    begin(&slow, 0);
    await_stop(&slow);
    begin(&second, 1);
    await_stop(&second);
    begin(&first, 2);
    end(&first);
    /* The copy has failed, and waits for the chunk that is under way. */
    const unsigned before = atomic_load(&held_naps);
    while (atomic_load(&held_naps) < before + 2) sched_yield();
    end(&second);
    pthread_join(copying.thread, NULL);
    end(&slow);
    assert_int_equal(copying.status, DRUPE_E_CHECK);
    assert_string_equal(copying.error.text, "The first.");
    assert_int_equal(device.submits, 0);
    assert_non_null(bench.context->ring);
}

/* --- Rings -----------------------------------------------------------------------------------------------
 */

/* A context keeps one. What it has too much goes to the driver, unless that is silent. */
static void a_context_keeps_one_ring(void **state)
{
    (void)state;
    drupe_device *part, *members[2] = {bench.device, NULL};
    drupe_context *context;
    void *rings[3];
    OK(drupe_device_select("host:cpu:0.0", &part));
    members[1] = part;
    OK(drupe_context_open(members, 2, &context));
    for (size_t i = 0; i < 3; i++) OK(mem_pin(context, 4096, &rings[i]));
    drupe_ring_give_back(context, rings[0]);
    assert_int_equal(device.unpins, 0);
    drupe_ring_give_back(context, rings[1]);
    assert_int_equal(device.unpins, 1);
    loss.silent = true;
    lose();
    drupe_ring_give_back(context, rings[2]);
    assert_int_equal(device.unpins, 1);
    free(rings[1]);
    atomic_store(&bench.device->loss, NULL);
    drupe_context_release(context);
    assert_int_equal(device.unpins, 2);
    drupe_device_release(part);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_thread_may_make_all_of_it),
        TEST(what_a_queue_says_to_a_flush_is_not_the_copys),
        TEST(a_device_that_fails_fails_the_copy),
        TEST(a_device_that_is_busy_elsewhere_is_left_alone),
        TEST(bytes_are_taken_once),
        TEST(threads_that_fault_fail_the_copy),
        TEST(a_context_keeps_one_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
