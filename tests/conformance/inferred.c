/* Devices where a kernel that is complete answers for those before it. What a driver is asked is counted by
 * the shim that plays such a device (tests/unit/opencl/shim.c), which also plays the fault of a kernel. */
#include "conformance.h"
#include <dlfcn.h>
#include <stdio.h>

#define N       64
#define KERNELS 256

static const char gone_source[] = "kernel void gone(global ulong *p) { p[1ul << 40] = 1; }";

/* What the shim has counted, or NULL without it. */
static _Atomic(unsigned) *asked(void)
{
    const char *path = getenv("DRUPE_OPENCL_LIBRARY");
    void *shim = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *count = shim ? dlsym(shim, "shim_ask_count") : NULL;
    if (shim) dlclose(shim);
    return count;
}

static bool is_gpu(const struct suite *suite)
{
    return drupe_device_kind(suite->bench.device) == DRUPE_DEVICE_GPU;
}

static void launch_many(struct bench *b, drupe_memory *memory, drupe_event **events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        OK(submit_mad(b, b->queue, memory, memory, N, 1, 1, NULL, 0, &events[i]));
}

static void release_all(drupe_event **events, size_t count)
{
    for (size_t i = 0; i < count; i++) drupe_event_release(events[i]);
}

/* Kernels are looked over; a copy among them, and what waits by name, is asked for itself. */
static void inferred(struct suite *suite)
{
    struct bench *b = &suite->bench;
    _Atomic(unsigned) *count = asked();
    drupe_event *events[KERNELS], *copied, *named;
    uint64_t bytes[N];
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, sizeof bytes);
    fill_u64(b->queue, memory, 0, N);
    unsigned before = count ? *count : 0;
    launch_many(b, memory, events, KERNELS / 2);
    drupe_submission s = {.queue = b->queue};
    OK(drupe_submit_copy(&s, bytes, drupe_memory_pointer(memory), sizeof bytes, &copied));
    OK(submit_mad(b, b->queue, memory, memory, N, 1, 0, &copied, 1, &named));
    launch_many(b, memory, events + KERNELS / 2, KERNELS / 2);
    OK(drupe_event_wait(events[KERNELS - 1], DRUPE_FOREVER));
    unsigned waited = count ? *count : 0;
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    for (size_t i = 0; i < KERNELS; i++)
        assert_int_equal(drupe_event_state_of(events[i]), DRUPE_EVENT_COMPLETE);
    assert_int_equal(drupe_event_state_of(copied), DRUPE_EVENT_COMPLETE);
    assert_int_equal(drupe_event_state_of(named), DRUPE_EVENT_COMPLETE);
    /* While it was waited for the one event was asked again and again. */
    if (count && is_gpu(suite)) assert_true(*count - waited < KERNELS / 4);
    if (count) assert_true(*count >= before);
    for (size_t i = 0; i < N; i++) assert_int_equal(bytes[i], KERNELS / 2);
    expect_u64(b->queue, memory, KERNELS, N);
    release_all(events, KERNELS);
    drupe_event_release(copied);
    drupe_event_release(named);
    drupe_memory_release(memory);
}

static void submit_gone(struct bench *b, drupe_memory *memory, drupe_event **event)
{
    drupe_source source = {
        .language = DRUPE_LANG_OPENCL_C, .bytes = gone_source, .size = strlen(gone_source)};
    drupe_program *program;
    drupe_kernel *kernel;
    OK(drupe_program_open(b->context, b->device, &source, NULL, &program));
    OK(drupe_kernel_open(program, "gone", &kernel));
    void *pointer = drupe_memory_pointer(memory);
    drupe_arg arg = {.kind = DRUPE_ARG_POINTER, .value = &pointer};
    drupe_submission s = {.queue = b->queue};
    drupe_range range = {.dims = 1, .global = {1}};
    OK(drupe_submit_kernel(&s, kernel, &range, &arg, 1, event));
    drupe_kernel_release(kernel);
    drupe_program_release(program);
}

/* The end of the device: what was complete stays so, the kernel that left its memory has the blame, and what
 * stands behind it has not run. DRUPE_TEST_GONE says that the process may lose its device. */
static void fault_on_a_gpu(struct suite *suite)
{
    struct bench *b = &suite->bench;
    if (!is_gpu(suite) || !getenv("DRUPE_TEST_GONE")) skip();
    drupe_event *before[40], *after[40], *gone;
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    fill_u64(b->queue, memory, 0, N);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER)); /* its event is asked while the device can answer */
    launch_many(b, memory, before, 40);
    OK(drupe_event_wait(before[39], DRUPE_FOREVER));
    submit_gone(b, memory, &gone);
    drupe_submission s = {.queue = b->queue};
    size_t count = 0; /* until the loss is noticed */
    while (count < 40 && drupe_submit_barrier(&s, &after[count]) == DRUPE_OK) count++;
    FAILS(drupe_queue_wait(b->queue, DRUPE_FOREVER), DRUPE_E_DEVICE_LOST, "outside of its arrays");
    for (size_t i = 0; i < 40; i++) assert_int_equal(drupe_event_state_of(before[i]), DRUPE_EVENT_COMPLETE);
    drupe_failure own, cause;
    assert_true(drupe_event_failure(gone, &own, &cause));
    assert_string_equal(own.label, "gone");
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(drupe_event_state_of(after[i]), DRUPE_EVENT_FAILED);
        assert_true(drupe_event_failure(after[i], &own, &cause));
        assert_string_equal(cause.label, "gone");
    }
    drupe_event_release(gone);
    release_all(before, 40);
    release_all(after, count);
    drupe_memory_release(memory);
}

/* What was complete, but asked for by nobody, is failed by the driver, too: the first of it stands for the
 * rest. */
static void fault_unseen(struct suite *suite)
{
    struct bench *b = &suite->bench;
    if (!is_gpu(suite) || !getenv("DRUPE_TEST_GONE")) skip();
    drupe_event *before[40], *gone;
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    launch_many(b, memory, before, 40);
    OK(drupe_event_wait(before[19], DRUPE_FOREVER));
    submit_gone(b, memory, &gone);
    FAILS(drupe_queue_wait(b->queue, DRUPE_FOREVER), DRUPE_E_DEVICE_LOST, "outside of its arrays");
    size_t first = 0;
    while (first < 40 && drupe_event_state_of(before[first]) == DRUPE_EVENT_COMPLETE) first++;
    assert_uint_in_range(first, 20, 40);
    drupe_failure own, cause;
    assert_true(drupe_event_failure(first < 40 ? before[first] : gone, &own, &cause));
    bool told = strstr(own.error.text, "does not report which kernel") != NULL;
    assert_int_equal(told, first < 40);
    drupe_event_release(gone);
    release_all(before, 40);
    drupe_memory_release(memory);
}

const conformance_case cases_inferred[] = {
    {"leap", inferred},
    {"gone", fault_on_a_gpu},
    {"unseen", fault_unseen},
    {NULL, NULL},
};
