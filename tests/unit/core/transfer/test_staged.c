/* Large copies in pieces, over `host` with pinned memory: as on a CPU device, and played as on a GPU. */
#include "core/transfer/transfer_room.h"
#include "core_bench.h"
#include "walk/wrap.h"

#define MIB ((size_t)1 << 20)

static drupe_backend table; /* `host` with pinned memory */
static const drupe_backend *real;
static _Atomic(int) pins, pinned, copies, flushes;
static _Atomic(int) fail_copy, fail_state; /* countdowns; 0: never */
static drupe_status pin_answer;

static bool due(_Atomic(int) *countdown)
{
    int left = atomic_load(countdown);
    while (left && !atomic_compare_exchange_weak(countdown, &left, left - 1)) {}
    return left == 1;
}

static drupe_status mem_pin(drupe_context *context, size_t size, void **pointer)
{
    (void)context;
    if (pin_answer != DRUPE_OK) return drupe_error_set(pin_answer, "No pinned memory.");
    *pointer = aligned_alloc(4096, size);
    atomic_fetch_add(&pins, 1);
    atomic_fetch_add(&pinned, 1);
    return DRUPE_OK;
}

static void mem_unpin(drupe_context *context, void *pointer)
{
    (void)context;
    atomic_fetch_sub(&pinned, 1);
    free(pointer);
}

static drupe_status submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes)
{
    atomic_fetch_add(&copies, 1);
    if (due(&fail_copy)) return drupe_error_set(DRUPE_E_INTERNAL, "The device refuses a piece.");
    return real->submit_copy(s, dst, src, bytes);
}

static drupe_status event_state(drupe_event *event, drupe_event_state *state)
{
    if (due(&fail_state)) return drupe_error_set(DRUPE_E_INTERNAL, "The device lost a piece.");
    return real->event_state(event, state);
}

static drupe_status queue_flush(drupe_queue *queue)
{
    (void)queue;
    atomic_fetch_add(&flushes, 1);
    return drupe_error_set(DRUPE_E_INTERNAL, "A queue that cannot be flushed shows it in its events.");
}

/* --- Between the choice and the copy ---------------------------------------------------------------------
 */

static bool no_host; /* there is no device `host` to ask how many threads it has */
static enum { GOOD, NO_COPY, NO_PLACE } new_fails; /* no memory for the copy; or for its place behind it */
static unsigned nthreads;                          /* of the last copy */

drupe_status __real_drupe_device_select(const char *filter, drupe_device **device);
drupe_status __wrap_drupe_device_select(const char *filter, drupe_device **device);
drupe_status __wrap_drupe_device_select(const char *filter, drupe_device **device)
{
    return __real_drupe_device_select(no_host ? "opencl:gpu:99" : filter, device);
}

drupe_staged_copy *__real_drupe_staged_copy_new(char *ring, unsigned threads, drupe_queue *queue,
                                                bool to_device, const drupe_work *work);
drupe_staged_copy *__wrap_drupe_staged_copy_new(char *ring, unsigned threads, drupe_queue *queue,
                                                bool to_device, const drupe_work *work);
drupe_staged_copy *__wrap_drupe_staged_copy_new(char *ring, unsigned threads, drupe_queue *queue,
                                                bool to_device, const drupe_work *work)
{
    nthreads = threads;
    if (new_fails == NO_COPY) wrap_plan(WRAP_MALLOC, 1);
    drupe_staged_copy *copy = __real_drupe_staged_copy_new(ring, threads, queue, to_device, work);
    if (new_fails == NO_PLACE) wrap_plan(WRAP_MALLOC, 1);
    return copy;
}

static int open_as(void **state, drupe_device_type type)
{
    if (bench_setup(state) != 0) return -1;
    real = bench.device->slot->backend;
    table = *real;
    table.mem_pin = mem_pin;
    table.mem_unpin = mem_unpin;
    table.submit_copy = submit_copy;
    table.event_state = event_state;
    if (type == DRUPE_DEVICE_GPU) table.queue_flush = queue_flush;
    bench.device->slot->backend = &table;
    bench.device->type = type;
    /* So many threads copy, whatever the machine has. */
    drupe_info_entry *units = &bench.device->info[DRUPE_INFO_MAX_COMPUTE_UNITS];
    (void)drupe_device_number(bench.device, DRUPE_INFO_MAX_COMPUTE_UNITS, 0);
    units->number[0] = 4;
    pins = pinned = copies = flushes = fail_copy = fail_state = 0;
    pin_answer = DRUPE_OK;
    no_host = false;
    new_fails = GOOD;
    unsetenv("DRUPE_PINNED");
    return 0;
}

static int setup_cpu(void **state)
{
    return open_as(state, DRUPE_DEVICE_CPU);
}

static int setup_gpu(void **state)
{
    return open_as(state, DRUPE_DEVICE_GPU);
}

static int teardown(void **state)
{
    drupe_slot *slot = bench.device->slot;
    bench.device->type = DRUPE_DEVICE_CPU;
    const int result = bench_teardown(state);
    slot->backend = real;
    return result == 0 && atomic_load(&pinned) == 0 ? 0 : -1;
}

/* Numbers that show where a byte belongs. */
static void paint(void *bytes, size_t size)
{
    uint32_t *words = bytes;
    for (size_t i = 0; i < size / 4; i++) words[i] = (uint32_t)(i * 2654435761u);
}

static void round_trip(size_t size)
{
    const drupe_submission s = {.queue = bench.queue, .label = "large"};
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    char *from = malloc(size), *to = malloc(size);
    drupe_event *event;
    paint(from, size);
    memset(to, 0, size);
    OK(drupe_submit_copy(&s, drupe_memory_pointer(memory), from, size, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    OK(drupe_submit_copy(&s, to, drupe_memory_pointer(memory), size, &event));
    OK(drupe_event_wait(event, LONG));
    assert_memory_equal(from, to, size);
    drupe_event_release(event);
    drupe_memory_release(memory);
    free(from);
    free(to);
}

/* --- On a CPU --------------------------------------------------------------------------------------------
 */

static void threads_copy_what_is_large(void **state)
{
    (void)state;
    round_trip(MIB);
    assert_int_equal(copies, 2); /* the driver's */
    round_trip(17 * MIB + 4);
    assert_int_equal(copies, 2);
    assert_int_equal(pins, 0);
}

static void the_driver_copies_what_it_has_to(void **state)
{
    (void)state;
    setenv("DRUPE_PINNED", "0", 1);
    round_trip(17 * MIB);
    assert_int_equal(copies, 2);
    setenv("DRUPE_PINNED", "1", 1);
    round_trip(17 * MIB);
    assert_int_equal(copies, 2);
    /* The times of a copy in steps would be those of its last step. */
    drupe_queue *ours = bench.queue;
    OK(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_PROFILING, &bench.queue));
    round_trip(17 * MIB);
    assert_int_equal(copies, 4);
    drupe_queue_release(bench.queue);
    bench.queue = ours;
    /* From memory of the device to memory of the device. */
    const drupe_submission s = {.queue = bench.queue};
    drupe_memory *a = bench_memory(bench.queue, DRUPE_MEM_DEVICE, 17 * MIB), *b;
    b = bench_memory(bench.queue, DRUPE_MEM_DEVICE, 17 * MIB);
    OK(drupe_submit_copy(&s, drupe_memory_pointer(a), drupe_memory_pointer(b), 17 * MIB, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_int_equal(copies, 5);
    drupe_memory_release(a);
    drupe_memory_release(b);
    /* One thread is no more than the driver has. */
    bench.device->info[DRUPE_INFO_MAX_COMPUTE_UNITS].number[0] = 1;
    round_trip(17 * MIB);
    assert_int_equal(copies, 7);
}

static void a_copy_in_pieces_takes_its_turn(void **state)
{
    (void)state;
    const size_t size = 17 * MIB;
    const drupe_submission s = {.queue = bench.queue};
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    unsigned char *to = calloc(1, size);
    drupe_event *gate = bench_gate(), *event;
    OK(bench_fill(bench.queue, memory, 6, gate, NULL));
    OK(drupe_submit_copy(&s, to, drupe_memory_pointer(memory), size, &event));
    OK(bench_fill(bench.queue, memory, 7, NULL, NULL));
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_QUEUED);
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    for (size_t i = 0; i < size; i++) {
        if (to[i] != 6) fail_msg("byte %zu is %u", i, to[i]);
    }
    drupe_event_release(event);
    drupe_memory_release(memory);
    free(to);
}

/* One that never runs gives back what it has. */
static void a_copy_that_is_cancelled_leaves_nothing(void **state)
{
    (void)state;
    const size_t size = 17 * MIB;
    size_t left, given_up;
    const drupe_submission s = {.queue = bench.queue};
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    unsigned char *to = calloc(1, size);
    drupe_event *gate = bench_gate(), *held, *event;
    OK(bench_barrier(bench.queue, gate, &held));
    OK(drupe_submit_copy(&s, to, drupe_memory_pointer(memory), size, &event));
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(given_up, 2);
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_CANCELLED, "was cancelled");
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_int_equal(to[0], 0);
    drupe_event_release(held);
    drupe_event_release(event);
    drupe_memory_release(memory);
    free(to);
}

static void threads_copy_where_memory_is_mapped_and_shared(void **state)
{
    (void)state;
    table.mem_pin = NULL; /* the driver knows no other memory than its own */
    round_trip(17 * MIB);
    assert_int_equal(copies, 2);
    table.mem_pin = mem_pin;
    uint64_t *shared = bench.device->info[DRUPE_INFO_USM_SHARED].number;
    const uint64_t native = *shared;
    *shared = DRUPE_USM_NONE;
    round_trip(17 * MIB);
    assert_int_equal(copies, 4);
    *shared = native;
    round_trip(17 * MIB);
    assert_int_equal(copies, 4);
}

/* As many as the host device has units, twelve at most; one, where nobody can tell. */
static void the_host_device_says_how_many_threads_copy(void **state)
{
    (void)state;
    static const struct {
        unsigned units, threads;
        bool unknown;
    } cases[] = {{11, 11, false}, {13, 12, false}, {11, 1, true}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        bench.device->info[DRUPE_INFO_MAX_COMPUTE_UNITS].number[0] = cases[i].units;
        no_host = cases[i].unknown;
        round_trip(5 * MIB);
        assert_int_equal(nthreads, cases[i].threads);
    }
    no_host = false;
}

/* --- On a GPU --------------------------------------------------------------------------------------------
 */

static void pieces_pass_through_pinned_memory(void **state)
{
    (void)state;
    round_trip(3 * MIB);
    assert_int_equal(pins, 0); /* the driver's */
    round_trip(4 * MIB + 8);
    assert_int_equal(pins, 1);
    assert_true(copies > 4);
    round_trip(41 * MIB + 4);  /* more than the ring has, and past what is copied past the caches */
    assert_int_equal(pins, 1); /* the context keeps the ring */
    assert_int_equal(pinned, 1);
    assert_int_equal(flushes > 0, 1);
}

static void two_copies_have_two_rings(void **state)
{
    (void)state;
    const size_t size = 5 * MIB;
    const drupe_submission s = {.queue = bench.queue};
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, 2 * size);
    char *from = malloc(2 * size), *at = drupe_memory_pointer(memory);
    drupe_event *gate = bench_gate(), *held;
    paint(from, 2 * size);
    OK(bench_barrier(bench.queue, gate, &held));
    for (size_t i = 0; i < 2; i++) OK(drupe_submit_copy(&s, at + i * size, from + i * size, size, NULL));
    assert_int_equal(pins, 2);
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    assert_int_equal(pinned, 1); /* one is kept */
    assert_memory_equal(at, from, 2 * size);
    drupe_event_release(held);
    drupe_memory_release(memory);
    free(from);
}

static void without_pinned_memory_the_driver_copies(void **state)
{
    (void)state;
    pin_answer = DRUPE_E_NO_MEMORY;
    round_trip(5 * MIB);
    assert_int_equal(copies, 2);
    /* Memory that is not the device's own is the driver's as well. */
    pin_answer = DRUPE_OK;
    const drupe_submission s = {.queue = bench.queue};
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_HOST, 5 * MIB);
    char *from = calloc(1, 5 * MIB);
    OK(drupe_submit_copy(&s, drupe_memory_pointer(memory), from, 5 * MIB, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_int_equal(copies, 3);
    assert_int_equal(pins, 0);
    /* A submission that went well leaves the caller's error alone. */
    table.queue_flush = NULL;
    drupe_memory *device = bench_memory(bench.queue, DRUPE_MEM_DEVICE, 5 * MIB);
    pin_answer = DRUPE_E_NO_MEMORY;
    drupe_error_set(DRUPE_E_BUSY, "The caller's error.");
    OK(drupe_submit_copy(&s, drupe_memory_pointer(device), from, 5 * MIB, NULL));
    assert_string_equal(drupe_error_last()->text, "The caller's error.");
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_memory_release(device);
    drupe_memory_release(memory);
    free(from);
}

/* Then the driver makes the copy, and the caller's error is left alone. */
static void without_memory_for_pieces_the_driver_copies(void **state)
{
    (void)state;
    const bool gpu = bench.device->type == DRUPE_DEVICE_GPU;
    const size_t size = 17 * MIB;
    const drupe_submission s = {.queue = bench.queue};
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    char *from = malloc(size);
    paint(from, size);
    new_fails = NO_COPY;
    drupe_error_set(DRUPE_E_BUSY, "The caller's error.");
    OK(drupe_submit_copy(&s, drupe_memory_pointer(memory), from, size, NULL));
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    assert_string_equal(drupe_error_last()->text, "The caller's error.");
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_memory_equal(drupe_memory_pointer(memory), from, size);
    assert_int_equal(copies, 1);
    assert_int_equal(pinned, gpu); /* the context keeps the ring */
    drupe_memory_release(memory);
    free(from);
}

static void count_one(void *object)
{
    ++*(int *)object;
}

static void a_submission_without_room_gives_all_back(void **state)
{
    (void)state;
    enum { KEEPS = 15 }; /* with the device's memory, all that there is room for at first */
    const size_t size = 5 * MIB;
    int given_back = 0;
    drupe_keep keeps[KEEPS];
    for (size_t i = 0; i < KEEPS; i++) keeps[i] = (drupe_keep){&given_back, count_one};
    const drupe_submission s = {.queue = bench.queue, .keeps = keeps, .nkeeps = KEEPS};
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    char *from = calloc(1, size);
    new_fails = NO_PLACE;
    FAILS(drupe_submit_copy(&s, drupe_memory_pointer(memory), from, size, NULL), DRUPE_E_NO_MEMORY,
          "No host memory for a submission");
    wrap_plan(WRAP_NOTHING, 0);
    assert_int_equal(given_back, KEEPS);
    assert_int_equal(pinned, 1); /* the context keeps the ring */
    assert_int_equal(copies, 0);
    assert_false(drupe_memory_in_use(memory));
    drupe_memory_release(memory);
    free(from);
}

static void a_piece_that_fails_fails_the_copy(void **state)
{
    (void)state;
    const size_t size = 9 * MIB;
    const drupe_submission s = {.queue = bench.queue, .label = "large"};
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    char *here = calloc(1, size);
    for (int i = 0; i < 12; i++) {
        const bool up = i % 2, refused = i % 4 < 2;
        void *there = drupe_memory_pointer(memory);
        drupe_event *event;
        OK(drupe_queue_wait(bench.queue, LONG));
        atomic_store(refused ? &fail_copy : &fail_state, 1 + i / 4);
        OK(drupe_submit_copy(&s, up ? there : here, up ? here : there, size, &event));
        FAILS(drupe_event_wait(event, LONG), DRUPE_E_INTERNAL, "a piece");
        atomic_store(&fail_copy, 0);
        atomic_store(&fail_state, 0);
        drupe_event_release(event);
        drupe_memory_accept(memory);
    }
    drupe_memory_release(memory);
    free(here);
    round_trip(9 * MIB);
    assert_int_equal(pinned, 1); /* each gave its ring back */
}

/* Every worker is busy with something that waits for the copy: it is made all the same. */
static drupe_status wait_for(void *user)
{
    return drupe_event_wait(user, LONG);
}

static void a_copy_needs_no_threads(void **state)
{
    (void)state;
    enum { MANY = 63 }; /* all that run at a time, but the one that runs the copy */
    const size_t size = 5 * MIB;
    const drupe_submission s = {.queue = bench.queue};
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, size);
    char *from = malloc(size);
    drupe_event *gate = bench_gate(), *held, *event;
    drupe_queue *queues[MANY];
    paint(from, size);
    OK(bench_barrier(bench.queue, gate, &held));
    OK(drupe_submit_copy(&s, drupe_memory_pointer(memory), from, size, &event));
    for (size_t i = 0; i < MANY; i++) {
        OK(drupe_queue_open(bench.context, bench.device, 0, &queues[i]));
        const drupe_submission waits = {.queue = queues[i]};
        OK(drupe_submit_host(&waits, wait_for, event, NULL));
    }
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    assert_memory_equal(drupe_memory_pointer(memory), from, size);
    for (size_t i = 0; i < MANY; i++) {
        OK(drupe_queue_wait(queues[i], LONG));
        drupe_queue_release(queues[i]);
    }
    drupe_event_release(held);
    drupe_event_release(event);
    drupe_memory_release(memory);
    free(from);
}

int main(void)
{
#define CPU(name) cmocka_unit_test_setup_teardown(name, setup_cpu, teardown)
#define GPU(name) cmocka_unit_test_setup_teardown(name, setup_gpu, teardown)
    const struct CMUnitTest tests[] = {
        CPU(threads_copy_what_is_large),
        CPU(the_driver_copies_what_it_has_to),
        CPU(a_copy_in_pieces_takes_its_turn),
        CPU(a_copy_that_is_cancelled_leaves_nothing),
        CPU(threads_copy_where_memory_is_mapped_and_shared),
        CPU(without_memory_for_pieces_the_driver_copies),
        GPU(the_host_device_says_how_many_threads_copy),
        GPU(without_memory_for_pieces_the_driver_copies),
        GPU(a_submission_without_room_gives_all_back),
        GPU(pieces_pass_through_pinned_memory),
        GPU(two_copies_have_two_rings),
        GPU(without_pinned_memory_the_driver_copies),
        GPU(a_piece_that_fails_fails_the_copy),
        GPU(a_copy_needs_no_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
