/* Closing, reopening, forking. */
#include "conformance.h"
#include <sys/wait.h>
#include <unistd.h>

/* What the caller still holds keeps working, and is counted. */
static void leaks_are_counted(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *m = new_memory(b->queue, kind_or_device(b, DRUPE_MEM_SHARED), 800);
    fill_u64(b->queue, m, 1, 100);
    drupe_event *event;
    drupe_submission s = {.queue = b->queue};
    OK(drupe_submit_barrier(&s, &event));
    bench_close(b);
    assert_true(drupe_library_close(20ull * SECOND) > 0);
    if (drupe_memory_host_accessible(m)) memset(drupe_memory_pointer(m), 0, 800);
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    drupe_event_release(event);
    assert_true(drupe_library_close(20ull * SECOND) > 0);
    drupe_memory_release(m);
    assert_int_equal(drupe_library_close(20ull * SECOND), 0);
    bench_open(b, suite->fixture, NULL);
    m = new_memory(b->queue, DRUPE_MEM_DEVICE, 800);
    fill_u64(b->queue, m, 9, 100);
    expect_u64(b->queue, m, 9, 100);
    drupe_memory_release(m);
}

/* Closing gives up after its time; what is stuck is a leak, not a hang. */
static void close_gives_up(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct gate gate;
    gate_init(&gate);
    drupe_event *stopped = submit_gate(b->queue, &gate);
    assert_true(drupe_library_close(1000000) > 0);
    gate_open(&gate);
    OK(drupe_event_wait(stopped, DRUPE_FOREVER));
    drupe_event_release(stopped);
    gate_destroy(&gate);
}

/* Exit codes of the child tell which step went wrong. */
static int in_child(struct bench *b, drupe_memory *m)
{
    drupe_submission s = {.queue = b->queue};
    drupe_device *device;
    drupe_event *event;
    uint64_t value = 0;
    if (drupe_submit_fill(&s, drupe_memory_pointer(m), &value, 8, 80, &event) != DRUPE_E_UNAVAILABLE)
        return 1;
    if (!strstr(drupe_error_last()->text, "fork")) return 2;
    if (drupe_device_select(NULL, &device) != DRUPE_E_UNAVAILABLE) return 3;
    if (drupe_queue_wait(b->queue, DRUPE_FOREVER) != DRUPE_E_UNAVAILABLE) return 4;
    if (drupe_memory_find(drupe_memory_pointer(m))) return 5;
    drupe_failure failure;
    if (drupe_failure_take(&failure)) return 6;
    drupe_memory *more;
    if (drupe_memory_alloc(b->queue, DRUPE_MEM_HOST, 8, 0, &more) != DRUPE_E_UNAVAILABLE) return 7;
    /* Letting go is allowed and does nothing. */
    drupe_memory_release(m);
    bench_close(b);
    return drupe_library_close(DRUPE_FOREVER) == 0 ? 0 : 8;
}

static void forked_child(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 80);
    fill_u64(b->queue, m, 1, 10);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(in_child(b, m));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    expect_u64(b->queue, m, 1, 10);
    drupe_memory_release(m);
}

const conformance_case cases_library[] = {
    {"leaks_are_counted", leaks_are_counted},
    {"close_gives_up", close_gives_up},
    {"forked_child", forked_child},
    {NULL, NULL},
};
