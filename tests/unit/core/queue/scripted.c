#include "scripted.h"
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

drupe_backend scripted_table;
const drupe_backend *scripted_real;
static drupe_memory *memory;

/* --- The bench -------------------------------------------------------------------------------------------
 */

static _Atomic(bool) at_once, no_barriers;

static drupe_status launched(const drupe_submit *s, drupe_status status)
{
    if (status == DRUPE_OK && s->event && at_once) test_script_finish(s->event, true);
    return status;
}

static drupe_status submit_fill(const drupe_submit *s, void *dst, const void *pattern, size_t pattern_size,
                                size_t bytes)
{
    return launched(s, scripted_real->submit_fill(s, dst, pattern, pattern_size, bytes));
}

static drupe_status submit_barrier(const drupe_submit *s)
{
    if (no_barriers) return drupe_error_set(DRUPE_E_INTERNAL, "No barriers.");
    return launched(s, scripted_real->submit_barrier(s));
}

void scripted_at_once(bool now)
{
    at_once = now;
}

void scripted_refuse_barriers(bool now)
{
    no_barriers = now;
}

static void begin(drupe_device_type type)
{
    test_script_reset();
    test_script.backends[0].devices[0].type = type;
    assert_true(drupe_slot_count() > 0);
    scripted_real = drupe_slot_at(0)->base;
    scripted_table = *scripted_real;
    scripted_table.submit_fill = submit_fill;
    scripted_table.submit_barrier = submit_barrier;
    at_once = no_barriers = false;
    drupe_slot_at(0)->base = &scripted_table;
}

static int setup(uint32_t flags)
{
    bench = (struct bench){0}; /* no program */
    OK(drupe_device_select("host", &bench.device));
    OK(drupe_device_context(bench.device, &bench.context));
    OK(drupe_queue_open(bench.context, bench.device, flags, &bench.queue));
    memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    return 0;
}

int scripted_setup(void **state)
{
    (void)state;
    begin(DRUPE_DEVICE_CPU);
    return setup(0);
}

int scripted_setup_unordered(void **state)
{
    (void)state;
    begin(DRUPE_DEVICE_CPU);
    return setup(DRUPE_QUEUE_OUT_OF_ORDER);
}

int scripted_setup_gpu(void **state)
{
    (void)state;
    begin(DRUPE_DEVICE_GPU);
    return setup(0);
}

drupe_status scripted_strict(drupe_queue *queue, uint32_t flags)
{
    if (drupe_context_device(drupe_queue_context(queue), 0) != drupe_queue_device(queue))
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "Not in this context.");
    return scripted_real->queue_open(queue, flags);
}

int scripted_setup_part(void **state)
{
    (void)state;
    begin(DRUPE_DEVICE_CPU);
    setenv("DRUPE_DEVICES", "host:0.0", 1);
    scripted_table.queue_open = scripted_strict;
    return setup(0);
}

static drupe_status state_at_the_end(drupe_event *event, drupe_event_state *state)
{
    (void)event;
    *state = DRUPE_EVENT_COMPLETE;
    return DRUPE_OK;
}

static drupe_status wait_at_the_end(drupe_event *event, uint64_t timeout_ns)
{
    (void)event, (void)timeout_ns;
    return DRUPE_OK;
}

static drupe_status queue_at_the_end(drupe_queue *queue, uint64_t timeout_ns)
{
    (void)queue, (void)timeout_ns;
    return DRUPE_OK;
}

void scripted_over(void)
{
    wrap_plan(WRAP_NOTHING, 0);
    scripted_refuse_barriers(false);
    scripted_at_yield(NULL);
    scripted_at_lock(NULL, NULL);
    scripted_table.event_state = state_at_the_end;
    scripted_table.event_wait = wait_at_the_end;
    scripted_table.queue_wait = queue_at_the_end;
}

int scripted_teardown(void **state)
{
    scripted_over();
    drupe_memory_release(memory);
    const int result = bench_teardown(state);
    drupe_slot_at(0)->base = scripted_real;
    return result;
}

int scripted_run_apart(const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;
    for (size_t i = 0; i < count; i++) {
        int status = 1;
        const pid_t child = fork();
        if (child == 0) {
            const struct CMUnitTest one[] = {tests[i]};
            exit(cmocka_run_group_tests(one, NULL, NULL));
        }
        failed += child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }
    return failed;
}

/* --- Work ------------------------------------------------------------------------------------------------
 */

drupe_event *scripted_fill(drupe_queue *queue, drupe_event *wait)
{
    drupe_event *event;
    OK(bench_fill(queue, memory, 1, wait, &event));
    return event;
}

void scripted_silent(drupe_queue *queue)
{
    OK(bench_fill(queue, memory, 1, NULL, NULL));
}

static uint64_t nargs;

static drupe_status kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value)
{
    const drupe_status status = scripted_real->kernel_number(kernel, key, value);
    if (key == DRUPE_KERNEL_ARG_COUNT) *value = nargs;
    return status;
}

drupe_kernel *scripted_kernel(uint32_t count)
{
    const drupe_source source = {.language = DRUPE_LANG_OPENCL_C, .bytes = "x", .size = 1};
    setenv("DRUPE_CACHE", "0", 1);
    nargs = count;
    scripted_table.kernel_number = kernel_number;
    OK(drupe_program_open(bench.context, bench.device, &source, NULL, &bench.program));
    OK(drupe_kernel_open(bench.program, "scripted", &bench.add));
    return bench.add;
}

void scripted_end(drupe_event *event)
{
    test_script_finish(event, true);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
}

size_t scripted_take_failures(void)
{
    drupe_failure failure;
    size_t count = 0;
    while (drupe_failure_take(&failure)) count++;
    drupe_memory_accept(memory);
    return count;
}

drupe_phase scripted_poll(drupe_event *event)
{
    return drupe_event_poll_locked(event);
}

/* --- Meetings --------------------------------------------------------------------------------------------
 */

typedef void (*act)(void);

static _Atomic(act) at_yield, at_lock;
static _Atomic(pthread_mutex_t *) awaited; /* with `at_lock`; NULL: any */

void scripted_at_yield(void (*to_do)(void))
{
    atomic_store(&at_yield, to_do);
}

void scripted_at_lock(pthread_mutex_t *lock, void (*to_do)(void))
{
    atomic_store(&awaited, lock);
    atomic_store(&at_lock, to_do);
}

static drupe_event *watched;
static int countdown;
static act at_look;

static drupe_status event_state(drupe_event *event, drupe_event_state *state)
{
    const drupe_status status = scripted_real->event_state(event, state);
    const drupe_error kept = *drupe_error_last();
    if (event == watched && --countdown == 0) at_look();
    drupe_error_restore(&kept);
    return status;
}

void scripted_at_look(drupe_event *event, int time, void (*to_do)(void))
{
    watched = event;
    countdown = time;
    at_look = to_do;
    scripted_table.event_state = event_state;
}

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

int __wrap_sched_yield(void)
{
    const act now = atomic_exchange(&at_yield, NULL);
    if (now) now();
    return __real_sched_yield();
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    const pthread_mutex_t *const wanted = atomic_load(&awaited);
    const act now = !wanted || wanted == lock ? atomic_exchange(&at_lock, NULL) : NULL;
    if (now) now();
    return __real_pthread_mutex_lock(lock);
}
