#include "script_bench.h"

struct script_bench script;

/* What the backend has, each with a reference: core itself submits barriers that no test sees. */
static drupe_event *given[2048];
static size_t ngiven;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- The backend -----------------------------------------------------------------------------------------
 */

static drupe_status take(const drupe_submit *s, drupe_work_kind kind)
{
    script.kind = kind;
    script.nwaits = s->nwaits;
    for (size_t i = 0; i < s->nwaits && i < DRUPE_COUNT_OF(script.waits); i++) script.waits[i] = s->waits[i];
    script.predecessor = s->predecessor;
    script.event = s->event;
    script.taken++;
    if (script.refuses != DRUPE_OK) return drupe_error_set(script.refuses, "The script refuses.");
    if (script.at_once && s->done) {
        *s->done = true;
        return DRUPE_OK;
    }
    if (!s->event) return DRUPE_OK;
    atomic_fetch_add(&test_script.unfinished, 1);
    pthread_mutex_lock(&lock);
    assert_true(ngiven < DRUPE_COUNT_OF(given));
    given[ngiven++] = drupe_event_retain(s->event);
    pthread_mutex_unlock(&lock);
    if (script.finishes) test_script_finish(s->event, true);
    return DRUPE_OK;
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

/* --- The bench -------------------------------------------------------------------------------------------
 */

static int setup(uint32_t flags)
{
    test_script_reset();
    assert_true(drupe_slot_count() > 0);
    script = (struct script_bench){.real = drupe_slot_at(0)->base};
    script.table = *script.real;
    script.table.submit_kernel = submit_kernel;
    script.table.submit_copy = submit_copy;
    script.table.submit_fill = submit_fill;
    script.table.submit_barrier = submit_barrier;
    drupe_slot_at(0)->base = &script.table;
    OK(drupe_device_select("host", &script.device));
    OK(drupe_device_context(script.device, &script.context));
    OK(drupe_queue_open(script.context, script.device, flags, &script.queue));
    OK(drupe_memory_alloc(script.queue, DRUPE_MEM_SHARED, 64, 0, &script.memory));
    return 0;
}

int script_setup(void **state)
{
    (void)state;
    return setup(DRUPE_QUEUE_DEFAULT);
}

int script_setup_unordered(void **state)
{
    (void)state;
    return setup(DRUPE_QUEUE_OUT_OF_ORDER);
}

void script_finish_all(void)
{
    pthread_mutex_lock(&lock);
    script.finishes = true;
    for (size_t i = 0; i < ngiven; i++) {
        test_script_finish(given[i], true);
        drupe_event_release(given[i]);
    }
    ngiven = 0;
    pthread_mutex_unlock(&lock);
}

int script_teardown(void **state)
{
    (void)state;
    drupe_failure failure;
    bool even = true;
    wrap_plan(WRAP_NOTHING, 0);
    drupe_library_observe(NULL);
    script_finish_all();
    while (drupe_failure_take(&failure)) {
        print_error("nobody took: '%s': %s\n", failure.label, failure.error.text);
        even = false;
    }
    drupe_memory_release(script.memory);
    drupe_queue_release(script.queue);
    drupe_context_release(script.context);
    drupe_device_release(script.device);
    script_finish_all();
    const size_t left = drupe_library_close(LONG);
    drupe_slot_at(0)->base = script.real;
    if (left) print_error("%zu objects are left\n", left);
    return even && left == 0 ? 0 : -1;
}

drupe_queue *script_queue(uint32_t flags)
{
    drupe_queue *queue;
    OK(drupe_queue_open(script.context, script.device, flags, &queue));
    return queue;
}

void script_ok(drupe_status status, const char *what, int line)
{
    if (status != DRUPE_OK) fail_msg("line %d: %s: %s", line, what, drupe_error_last()->text);
}

void script_fails(drupe_status status, drupe_status expected, const char *part, int line)
{
    if (status == expected && strstr(drupe_error_last()->text, part)) return;
    fail_msg("line %d: %s instead of %s, '%s' without '%s'", line, drupe_status_name(status),
             drupe_status_name(expected), drupe_error_last()->text, part);
}

/* --- Work ------------------------------------------------------------------------------------------------
 */

drupe_status script_fill(drupe_queue *queue, drupe_memory *memory, drupe_event *wait, drupe_event **event)
{
    const drupe_submission s = {.queue = queue, .waits = &wait, .nwaits = 1};
    return drupe_submit_fill(&s, drupe_memory_pointer(memory), "x", 1, drupe_memory_size(memory), event);
}

drupe_status script_barrier(drupe_queue *queue, drupe_event *wait, drupe_event **event)
{
    const drupe_submission s = {.queue = queue, .waits = &wait, .nwaits = 1};
    return drupe_submit_barrier(&s, event);
}

drupe_event *script_gate(void)
{
    drupe_event *gate;
    OK(drupe_event_open("gate", 0, &gate));
    return gate;
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

void script_forget_failures(void)
{
    drupe_failure failure;
    while (drupe_failure_take(&failure)) continue;
}

void script_release(drupe_event **events, size_t count)
{
    for (size_t i = 0; i < count; i++) drupe_event_release(events[i]);
}
