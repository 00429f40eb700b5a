/* What only the host backend promises: workers, inline work, truthful information. */
#include "base/base.h"
#include "drupe/memory.h"
#include "drupe/program.h"
#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ITEMS 64

static void ok(drupe_status status)
{
    if (status != DRUPE_OK) fail_msg("%s: %s", drupe_status_name(status), drupe_error_last()->text);
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("DRUPE_HOST_THREADS");
    return drupe_library_close(1000000000u) == 0 ? 0 : -1;
}

/* Whoever asks for this device never pays for a vendor's library. */
static void no_vendor_library(void **state)
{
    (void)state;
    static const char *const filters[] = {"host", "cpu", "host:cpu:0", "0", "cpu:0"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(filters); i++) {
        drupe_device *device;
        ok(drupe_device_select(filters[i], &device));
        assert_string_equal(drupe_device_filter(device), "host:cpu:0");
        drupe_device_release(device);
    }
    assert_null(dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NOLOAD));
}

static drupe_kernel *open_kernel(drupe_device *device, const char *name, const char *options)
{
    drupe_context *context;
    drupe_program *program;
    drupe_kernel *kernel;
    drupe_source source = {.language = DRUPE_LANG_BUILTIN, .options = options};
    ok(drupe_device_context(device, &context));
    ok(drupe_program_open(context, device, &source, NULL, &program));
    ok(drupe_kernel_open(program, name, &kernel));
    drupe_program_release(program);
    drupe_context_release(context);
    return kernel;
}

/* Queue a launch of test_worker: `out` receives the thread of each item. */
static void submit_worker(drupe_queue *queue, drupe_kernel *kernel, uint64_t *out, size_t items)
{
    uint64_t rounds = 20000;
    drupe_arg args[] = {{DRUPE_ARG_POINTER, 0, &out}, {DRUPE_ARG_VALUE, sizeof rounds, &rounds}};
    drupe_range range = {.dims = 1, .global = {items}};
    drupe_submission s = {.queue = queue};
    ok(drupe_submit_kernel(&s, kernel, &range, args, 2, NULL));
}

/* The different values among `count`, at most 16. */
static size_t distinct(const uint64_t *values, size_t count, uint64_t *set)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < found && set[k] != values[i]) k++;
        if (k == found && found < 16) set[found++] = values[i];
    }
    return found;
}

static void sub_devices_share_no_worker(void **state)
{
    (void)state;
    setenv("DRUPE_HOST_THREADS", "4", 1);
    drupe_device *device, *subs[3];
    ok(drupe_device_select("host", &device));
    assert_int_equal(drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 0), 4);
    uint32_t counts[] = {1, 2, 1};
    drupe_partition partition = {DRUPE_SPLIT_COUNTS, 3, counts, DRUPE_DOMAIN_NONE};
    size_t count;
    ok(drupe_device_split(device, &partition, subs, 3, &count));
    drupe_kernel *kernel = open_kernel(device, "test_worker", NULL);
    drupe_queue *queues[3];
    drupe_memory *memory[3];
    uint64_t sets[3][16], sizes[3];
    for (size_t i = 0; i < 3; i++) {
        ok(drupe_device_queue(subs[i], &queues[i]));
        ok(drupe_memory_alloc(queues[i], DRUPE_MEM_HOST, ITEMS * 8, 0, &memory[i]));
    }
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < 3; i++) {
            /* One item as well: it must not run on the submitting thread. */
            submit_worker(queues[i], kernel, drupe_memory_pointer(memory[i]), ITEMS);
            submit_worker(queues[i], kernel, drupe_memory_pointer(memory[i]), 1);
        }
    }
    for (size_t i = 0; i < 3; i++) {
        ok(drupe_queue_wait(queues[i], DRUPE_FOREVER));
        sizes[i] = distinct(drupe_memory_pointer(memory[i]), ITEMS, sets[i]);
        assert_true(sizes[i] >= 1 && sizes[i] <= counts[i]);
        for (size_t k = 0; k < sizes[i]; k++) assert_int_not_equal(sets[i][k], (uint64_t)gettid());
    }
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < i; j++) {
            for (size_t k = 0; k < sizes[i]; k++) {
                for (size_t l = 0; l < sizes[j]; l++) assert_int_not_equal(sets[i][k], sets[j][l]);
            }
        }
        drupe_memory_release(memory[i]);
        drupe_queue_release(queues[i]);
        drupe_device_release(subs[i]);
    }
    drupe_kernel_release(kernel);
    drupe_device_release(device);
}

static drupe_status note_thread(void *user)
{
    *(pid_t *)user = gettid();
    return DRUPE_OK;
}

/* One item on an idle queue runs at once on this thread, if the engine vouches for its arguments; more items
 * and host functions do not. */
static void small_work_is_inline(void **state)
{
    (void)state;
    drupe_device *device;
    drupe_queue *queue;
    drupe_memory *memory;
    ok(drupe_device_select("host", &device));
    ok(drupe_device_queue(device, &queue));
    ok(drupe_memory_alloc(queue, DRUPE_MEM_HOST, ITEMS * 8, 0, &memory));
    drupe_kernel *kernel = open_kernel(device, "test_worker", "inline"), *plain;
    uint64_t *threads = drupe_memory_pointer(memory);
    submit_worker(queue, kernel, threads, 1);
    assert_int_equal(threads[0], (uint64_t)gettid());
    plain = open_kernel(device, "test_worker", NULL);
    submit_worker(queue, plain, threads, 1);
    ok(drupe_queue_wait(queue, DRUPE_FOREVER));
    assert_int_not_equal(threads[0], (uint64_t)gettid());
    drupe_kernel_release(plain);
    submit_worker(queue, kernel, threads, ITEMS);
    ok(drupe_queue_wait(queue, DRUPE_FOREVER));
    for (size_t i = 0; i < ITEMS; i++) assert_int_not_equal(threads[i], (uint64_t)gettid());
    pid_t thread = 0;
    drupe_submission s = {.queue = queue};
    ok(drupe_submit_host(&s, note_thread, &thread, NULL));
    ok(drupe_queue_wait(queue, DRUPE_FOREVER));
    assert_int_not_equal(thread, gettid());
    assert_int_not_equal(thread, 0);
    drupe_kernel_release(kernel);
    drupe_memory_release(memory);
    drupe_queue_release(queue);
    drupe_device_release(device);
}

/* --- The scheduler -------------------------------------------------------------------------------------- */

#define CHAINS 7
#define LENGTH 2000

struct tally {
    _Atomic(unsigned) *counter;
    unsigned expected;
    _Atomic(unsigned) *wrong;
};

static drupe_status count_up(void *user)
{
    const struct tally *tally = user;
    if (atomic_fetch_add(tally->counter, 1) != tally->expected) atomic_fetch_add(tally->wrong, 1);
    return DRUPE_OK;
}

/* Each queue counts by itself; every tenth function also waits for another queue's latest. */
static void many_functions(void **state)
{
    (void)state;
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queues[CHAINS];
    drupe_event *latest[CHAINS] = {NULL};
    _Atomic(unsigned) counters[CHAINS], wrong;
    struct tally *tallies = calloc(CHAINS * LENGTH, sizeof *tallies);
    assert_non_null(tallies);
    atomic_init(&wrong, 0);
    ok(drupe_device_select("host", &device));
    ok(drupe_device_context(device, &context));
    for (size_t q = 0; q < CHAINS; q++) {
        atomic_init(&counters[q], 0);
        ok(drupe_queue_open(context, device, q % 2 ? DRUPE_QUEUE_PROFILING : 0, &queues[q]));
    }
    for (unsigned i = 0; i < CHAINS * LENGTH; i++) {
        size_t q = i % CHAINS;
        tallies[i] = (struct tally){&counters[q], i / CHAINS, &wrong};
        drupe_submission s = {.queue = queues[q], .waits = &latest[(q + i / 10) % CHAINS]};
        s.nwaits = i % 10 == 0;
        drupe_event *event;
        ok(drupe_submit_host(&s, count_up, &tallies[i], &event));
        drupe_event_release(latest[q]);
        latest[q] = event;
    }
    for (size_t q = 0; q < CHAINS; q++) {
        ok(drupe_queue_wait(queues[q], DRUPE_FOREVER));
        assert_int_equal(atomic_load(&counters[q]), LENGTH);
        drupe_event_release(latest[q]);
        drupe_queue_release(queues[q]);
    }
    assert_int_equal(atomic_load(&wrong), 0);
    free(tallies);
    drupe_context_release(context);
    drupe_device_release(device);
}

struct meeting {
    _Atomic(unsigned) present;
    unsigned guests;
};

/* Over when all guests are there, or after a time in which a crew that grows has long grown. */
static drupe_status meet(void *user)
{
    struct meeting *meeting = user;
    atomic_fetch_add(&meeting->present, 1);
    uint64_t deadline = drupe_deadline(UINT64_C(20000000000));
    while (atomic_load(&meeting->present) < meeting->guests) {
        if (drupe_now_ns() > deadline) return drupe_error_set(DRUPE_E_TIMEOUT, "Nobody comes.");
        sched_yield();
    }
    return DRUPE_OK;
}

/* More functions than there are processors wait for each other. */
static void functions_meet(void **state)
{
    (void)state;
    enum { GUESTS = 12 };
    setenv("DRUPE_HOST_THREADS", "2", 1);
    struct meeting meeting = {.guests = GUESTS};
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queues[GUESTS];
    ok(drupe_device_select("host", &device));
    ok(drupe_device_context(device, &context));
    for (size_t i = 0; i < GUESTS; i++) {
        ok(drupe_queue_open(context, device, 0, &queues[i]));
        drupe_submission s = {.queue = queues[i]};
        ok(drupe_submit_host(&s, meet, &meeting, NULL));
    }
    for (size_t i = 0; i < GUESTS; i++) {
        ok(drupe_queue_wait(queues[i], DRUPE_FOREVER));
        drupe_queue_release(queues[i]);
    }
    drupe_context_release(context);
    drupe_device_release(device);
}

static drupe_status nothing(void *user)
{
    (void)user;
    return DRUPE_OK;
}

/* While functions are quick one worker runs them all; those that are not still find each other. */
static void slow_behind_quick(void **state)
{
    (void)state;
    enum { GUESTS = 6, ROUNDS = 40, QUICK = 500 };
    setenv("DRUPE_HOST_THREADS", "4", 1);
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queues[GUESTS];
    ok(drupe_device_select("host", &device));
    ok(drupe_device_context(device, &context));
    for (size_t i = 0; i < GUESTS; i++) ok(drupe_queue_open(context, device, 0, &queues[i]));
    for (size_t round = 0; round < ROUNDS; round++) {
        struct meeting meeting = {.guests = GUESTS};
        for (size_t i = 0; i < QUICK; i++) {
            drupe_submission s = {.queue = queues[i % GUESTS]};
            ok(drupe_submit_host(&s, nothing, NULL, NULL));
        }
        if (round % 2) ok(drupe_queue_wait(queues[0], DRUPE_FOREVER));
        for (size_t i = 0; i < GUESTS; i++) {
            drupe_submission s = {.queue = queues[i]};
            ok(drupe_submit_host(&s, meet, &meeting, NULL));
        }
        for (size_t i = 0; i < GUESTS; i++) ok(drupe_queue_wait(queues[i], DRUPE_FOREVER));
    }
    for (size_t i = 0; i < GUESTS; i++) drupe_queue_release(queues[i]);
    drupe_context_release(context);
    drupe_device_release(device);
}

static void information(void **state)
{
    (void)state;
    drupe_device *device;
    ok(drupe_device_select("host", &device));
    char text[256];
    ok(drupe_device_info(device, DRUPE_INFO_VERSION, text, sizeof text, NULL));
    assert_non_null(strstr(text, "(test)"));
    ok(drupe_device_info(device, DRUPE_INFO_NAME, text, sizeof text, NULL));
    assert_true(strlen(text) > 0);
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    uint64_t units = drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 0);
    assert_true(units >= 1 && units <= (uint64_t)CPU_COUNT(&set));
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_true(drupe_device_number(device, DRUPE_INFO_GLOBAL_MEM_SIZE, 0) <= memory);
    uint64_t languages = drupe_device_number(device, DRUPE_INFO_LANGUAGES, 0);
    assert_true(languages & DRUPE_LANG_BUILTIN);
    assert_int_equal(languages & (DRUPE_LANG_OPENCL_C | DRUPE_LANG_SPIRV), 0);
    assert_int_equal(!(languages & DRUPE_LANG_C), !(languages & DRUPE_LANG_BINARY));
    assert_int_equal(drupe_device_score(device), 550);
    assert_string_equal(drupe_device_filter(device), "host:cpu:0");
    drupe_device_release(device);
}

/* A wrong number of threads is told, not ignored. */
static void thread_count(void **state)
{
    static const char *const values[] = {"0", "-3", "many", "2x", "99999", " 2", "1025"};
    drupe_device *device;
    ok(drupe_device_select("host", &device));
    uint64_t usual = drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 0);
    drupe_device_release(device);
    size_t count;
    for (size_t i = 0; i < DRUPE_COUNT_OF(values); i++) {
        assert_int_equal(teardown(state), 0);
        setenv("DRUPE_HOST_THREADS", values[i], 1);
        assert_int_equal(drupe_device_select("host", &device), DRUPE_E_INVALID);
        assert_non_null(strstr(drupe_error_last()->text, "DRUPE_HOST_THREADS="));
        assert_non_null(strstr(drupe_error_last()->text, "from 1 to 1024"));
        assert_int_equal(drupe_device_list(NULL, NULL, 0, &count), DRUPE_E_INVALID);
    }
    setenv("DRUPE_HOST_THREADS", "", 1);
    ok(drupe_device_select("host", &device));
    assert_int_equal(drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 0), usual);
    drupe_device_release(device);
}

static void unusable_launches(void **state)
{
    (void)state;
    drupe_device *device;
    drupe_queue *queue;
    ok(drupe_device_select("host", &device));
    ok(drupe_device_queue(device, &queue));
    drupe_kernel *kernel = open_kernel(device, "test_gid", NULL);
    void *null = NULL;
    drupe_arg arg = {DRUPE_ARG_POINTER, 0, &null};
    drupe_submission s = {.queue = queue};
    drupe_range flat = {.dims = 2, .global = {2, 2}}, shifted = {.dims = 1, .global = {2}, .offset = {1}};
    assert_int_equal(drupe_submit_kernel(&s, kernel, &flat, &arg, 1, NULL), DRUPE_E_UNSUPPORTED);
    assert_int_equal(drupe_submit_kernel(&s, kernel, &shifted, &arg, 1, NULL), DRUPE_E_UNSUPPORTED);
    arg = (drupe_arg){DRUPE_ARG_LOCAL, 8, NULL};
    drupe_range range = {.dims = 1, .global = {2}};
    assert_int_equal(drupe_submit_kernel(&s, kernel, &range, &arg, 1, NULL), DRUPE_E_OUT_OF_RANGE);
    /* Refused work leaves nothing behind. */
    assert_int_equal(drupe_queue_pending(queue), 0);
    ok(drupe_queue_wait(queue, DRUPE_FOREVER));
    drupe_kernel_release(kernel);
    drupe_queue_release(queue);
    drupe_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(no_vendor_library, teardown),
        cmocka_unit_test_teardown(sub_devices_share_no_worker, teardown),
        cmocka_unit_test_teardown(small_work_is_inline, teardown),
        cmocka_unit_test_teardown(many_functions, teardown),
        cmocka_unit_test_teardown(functions_meet, teardown),
        cmocka_unit_test_teardown(slow_behind_quick, teardown),
        cmocka_unit_test_teardown(information, teardown),
        cmocka_unit_test_teardown(thread_count, teardown),
        cmocka_unit_test_teardown(unusable_launches, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
