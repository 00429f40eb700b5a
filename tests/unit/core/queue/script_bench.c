#include "script_bench.h"
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

struct script_bench script;

/* The bench's own lock is none of those that a test may act at. */
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_sched_yield(void);
int __wrap_sched_yield(void);

/* --- The backend -----------------------------------------------------------------------------------------
 */

/* What the backend has: core itself submits barriers that no test sees. Without references, of which there
 * are as many as in the program. */
static drupe_event *given[2048];
static size_t ngiven;
static pthread_mutex_t given_lock = PTHREAD_MUTEX_INITIALIZER;

static void note(const drupe_submit *s, drupe_work_kind kind)
{
    script.kind = kind;
    script.nwaits = s->nwaits;
    for (size_t i = 0; i < s->nwaits && i < DRUPE_COUNT_OF(script.waits); i++) script.waits[i] = s->waits[i];
    script.predecessor = s->predecessor;
    script.event = s->event;
    script.taken++;
}

static drupe_status take(const drupe_submit *s, drupe_work_kind kind)
{
    __real_pthread_mutex_lock(&given_lock);
    note(s, kind);
    const drupe_status status = script.refuses;
    const bool over = status == DRUPE_OK && script.at_once && s->done;
    const bool goes_on = status == DRUPE_OK && !over && s->event;
    if (goes_on) {
        atomic_fetch_add(&test_script.unfinished, 1);
        assert_true(ngiven < DRUPE_COUNT_OF(given));
        given[ngiven++] = s->event;
    }
    pthread_mutex_unlock(&given_lock);
    if (status != DRUPE_OK) return drupe_error_set(status, "The script refuses.");
    if (over) *s->done = true;
    if (goes_on && script.finishes) test_script_finish(s->event, true);
    return DRUPE_OK;
}

static void event_close(drupe_event *event)
{
    __real_pthread_mutex_lock(&given_lock);
    for (size_t i = ngiven; i-- > 0;) {
        if (given[i] == event) given[i] = given[--ngiven];
    }
    pthread_mutex_unlock(&given_lock);
}

static drupe_status submit_kernel(const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range,
                                  const drupe_arg *args, size_t nargs)
{
    (void)kernel, (void)range, (void)args, (void)nargs;
    return take(s, DRUPE_WORK_KERNEL);
}

static drupe_status submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes)
{
    (void)dst, (void)src, (void)bytes;
    return take(s, DRUPE_WORK_COPY);
}

static drupe_status submit_fill(const drupe_submit *s, void *dst, const void *pattern, size_t pattern_size,
                                size_t bytes)
{
    (void)dst, (void)pattern, (void)pattern_size, (void)bytes;
    return take(s, DRUPE_WORK_FILL);
}

static drupe_status submit_barrier(const drupe_submit *s)
{
    return take(s, DRUPE_WORK_BARRIER);
}

void script_finish_all(void)
{
    __real_pthread_mutex_lock(&given_lock);
    script.finishes = true;
    for (size_t i = 0; i < ngiven; i++) test_script_finish(given[i], true);
    ngiven = 0;
    pthread_mutex_unlock(&given_lock);
}

/* --- The bench -------------------------------------------------------------------------------------------
 */

static void begin(drupe_device_type type)
{
    test_script_reset();
    test_script.backends[0].devices[0].type = type;
    bench_take_table();
    script = (struct script_bench){0};
    script_told = (struct script_told){0};
    bench_table.submit_kernel = submit_kernel;
    bench_table.submit_copy = submit_copy;
    bench_table.submit_fill = submit_fill;
    bench_table.submit_barrier = submit_barrier;
    bench_table.event_close = event_close;
    ngiven = 0;
}

static int setup(uint32_t flags)
{
    const int result = bench_open("host", flags);
    assert_int_equal(result, 0);
    script.memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    return result;
}

int script_setup(void **state)
{
    (void)state;
    begin(DRUPE_DEVICE_CPU);
    return setup(DRUPE_QUEUE_DEFAULT);
}

int script_setup_unordered(void **state)
{
    (void)state;
    begin(DRUPE_DEVICE_CPU);
    return setup(DRUPE_QUEUE_OUT_OF_ORDER);
}

int script_setup_gpu(void **state)
{
    (void)state;
    begin(DRUPE_DEVICE_GPU);
    return setup(DRUPE_QUEUE_DEFAULT);
}

drupe_status script_strict(drupe_queue *queue, uint32_t flags)
{
    if (drupe_context_device(drupe_queue_context(queue), 0) != drupe_queue_device(queue))
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "Not in this context.");
    return bench_real->queue_open(queue, flags);
}

int script_setup_part(void **state)
{
    (void)state;
    begin(DRUPE_DEVICE_CPU);
    setenv("DRUPE_DEVICES", "host:0.0", 1);
    bench_table.queue_open = script_strict;
    return setup(DRUPE_QUEUE_DEFAULT);
}

void script_over(void)
{
    wrap_plan(WRAP_NOTHING, 0);
    drupe_library_observe(NULL);
    script_at_yield(NULL);
    script_at_lock(NULL, NULL);
    script.refuses = DRUPE_OK;
    bench_table.event_state = bench_real->event_state;
    bench_table.event_wait = bench_real->event_wait;
    bench_table.queue_wait = bench_real->queue_wait;
    script_finish_all();
}

int script_teardown(void **state)
{
    script_over();
    drupe_memory_release(script.memory);
    return bench_teardown(state);
}

int script_teardown_lost(void **state)
{
    (void)state;
    (void)script_take_failures();
    drupe_memory_release(script.memory);
    drupe_queue_release(bench.queue);
    drupe_context_release(bench.context);
    drupe_device_release(bench.device);
    (void)drupe_library_close(0);
    return 0;
}

int script_run_apart(const struct CMUnitTest *tests, size_t count)
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

drupe_queue *script_queue(uint32_t flags)
{
    drupe_queue *queue;
    OK(drupe_queue_open(bench.context, bench.device, flags, &queue));
    return queue;
}

drupe_event *script_fill(drupe_queue *queue, drupe_event *wait)
{
    drupe_event *event;
    OK(bench_fill(queue, script.memory, 1, wait, &event));
    return event;
}

void script_silent(drupe_queue *queue)
{
    OK(bench_fill(queue, script.memory, 1, NULL, NULL));
}

void script_end(drupe_event *event)
{
    test_script_finish(event, true);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
}

drupe_event *script_failure(drupe_queue *queue)
{
    const drupe_submission s = {.queue = queue, .label = "culprit"};
    drupe_event *event;
    OK(drupe_submit_fill(&s, drupe_memory_pointer(script.memory), "x", 1, 64, &event));
    test_script_finish(event, false);
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_FAILED);
    return event;
}

size_t script_take_failures(void)
{
    drupe_failure failure;
    size_t count = 0;
    while (drupe_failure_take(&failure)) count++;
    drupe_memory_accept(script.memory);
    return count;
}

static uint64_t nargs;

static drupe_status kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value)
{
    const drupe_status status = bench_real->kernel_number(kernel, key, value);
    if (key == DRUPE_KERNEL_ARG_COUNT) *value = nargs;
    return status;
}

drupe_kernel *script_kernel(uint32_t count)
{
    const drupe_source source = {.language = DRUPE_LANG_OPENCL_C, .bytes = "x", .size = 1};
    setenv("DRUPE_CACHE", "0", 1);
    nargs = count;
    bench_table.kernel_number = kernel_number;
    OK(drupe_program_open(bench.context, bench.device, &source, NULL, &bench.program));
    OK(drupe_kernel_open(bench.program, "scripted", &bench.add));
    return bench.add;
}

void script_release(drupe_event **events, size_t count)
{
    for (size_t i = 0; i < count; i++) drupe_event_release(events[i]);
}

drupe_phase script_poll(drupe_event *event)
{
    return drupe_event_poll_locked(event);
}

/* --- Checked mode ----------------------------------------------------------------------------------------
 */

struct script_told script_told;

static drupe_status answer(drupe_status status)
{
    return status == DRUPE_OK ? status : drupe_error_set(status, "Checked mode says no.");
}

static drupe_status check_submission(const drupe_submit_info *info, const drupe_inflight *entry,
                                     const drupe_work *work)
{
    (void)info, (void)entry, (void)work;
    script_told.submissions++;
    return answer(script_told.submission_answer);
}

static void check_event(const drupe_event *event)
{
    (void)event;
    script_told.events++;
}

static void check_queue(const drupe_queue *queue, uint64_t number)
{
    (void)queue;
    script_told.queues++;
    script_told.number = number;
}

static void check_closed(const drupe_queue *queue)
{
    (void)queue;
    script_told.closed++;
}

static void check_skipped(uint64_t number)
{
    (void)number;
    script_told.skipped++;
}

static void check_dropped(uint64_t number)
{
    (void)number;
    script_told.dropped++;
}

static drupe_status check_memory(void)
{
    script_told.memory++;
    return answer(script_told.memory_answer);
}

const drupe_checker script_checker = {.submission = check_submission,
                                      .event = check_event,
                                      .queue = check_queue,
                                      .closed = check_closed,
                                      .skipped = check_skipped,
                                      .dropped = check_dropped,
                                      .memory = check_memory};

/* --- Meetings --------------------------------------------------------------------------------------------
 */

typedef void (*act)(void);

static _Atomic(act) at_yield, at_lock;
static _Atomic(pthread_mutex_t *) awaited; /* with `at_lock`; NULL: any */

void script_at_yield(void (*to_do)(void))
{
    atomic_store(&at_yield, to_do);
}

void script_at_lock(pthread_mutex_t *lock, void (*to_do)(void))
{
    atomic_store(&awaited, lock);
    atomic_store(&at_lock, to_do);
}

static drupe_event *watched;
static int countdown;
static act at_look;

static drupe_status event_state(drupe_event *event, drupe_event_state *state)
{
    const drupe_status status = bench_real->event_state(event, state);
    const drupe_error kept = *drupe_error_last();
    if (event == watched && --countdown == 0) at_look();
    drupe_error_restore(&kept);
    return status;
}

void script_at_look(drupe_event *event, int time, void (*to_do)(void))
{
    watched = event;
    countdown = time;
    at_look = to_do;
    bench_table.event_state = event_state;
}

int __wrap_sched_yield(void)
{
    const act now = atomic_exchange(&at_yield, NULL);
    if (now) now();
    return __real_sched_yield();
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    const pthread_mutex_t *const wanted = atomic_load(&awaited);
    const act now = !wanted || wanted == mutex ? atomic_exchange(&at_lock, NULL) : NULL;
    if (now) now();
    return __real_pthread_mutex_lock(mutex);
}
