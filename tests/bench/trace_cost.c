/* What the trace ring costs a submission: the same submissions over a backend that does nothing, in turns
 * with the ring and without. The linker puts the switch in front of core's functions (--wrap), so that
 * the engine itself has none. Prints the medians of the turns in nanoseconds. */
#include "core/queue/launch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS 401
#define EACH  2000

static bool tracing;

void __real_drupe_trace_begin(const drupe_trace_queue *queue, const drupe_subject *what,
                              const drupe_trace_work *work);
void __wrap_drupe_trace_begin(const drupe_trace_queue *queue, const drupe_subject *what,
                              const drupe_trace_work *work);
void __real_drupe_trace_end(uint64_t number, drupe_trace_status status);
void __wrap_drupe_trace_end(uint64_t number, drupe_trace_status status);
void __real_drupe_trace_end_at(uint64_t number, drupe_trace_status status, uint64_t now);
void __wrap_drupe_trace_end_at(uint64_t number, drupe_trace_status status, uint64_t now);
void __real_drupe_trace_end_at_once(uint64_t number);
void __wrap_drupe_trace_end_at_once(uint64_t number);

void __wrap_drupe_trace_begin(const drupe_trace_queue *queue, const drupe_subject *what,
                              const drupe_trace_work *work)
{
    if (tracing) __real_drupe_trace_begin(queue, what, work);
}

void __wrap_drupe_trace_end(uint64_t number, drupe_trace_status status)
{
    if (tracing) __real_drupe_trace_end(number, status);
}

void __wrap_drupe_trace_end_at_once(uint64_t number)
{
    if (tracing) __real_drupe_trace_end_at_once(number);
}

void __wrap_drupe_trace_end_at(uint64_t number, drupe_trace_status status, uint64_t now)
{
    if (tracing) __real_drupe_trace_end_at(number, status, now);
}

/* --- A backend that does nothing ------------------------------------------------------------------------ */

static drupe_status load(void **state)
{
    *state = NULL;
    return DRUPE_OK;
}

static void unload(void *state)
{
    (void)state;
}

static drupe_status device_count(void *state, uint32_t *count)
{
    (void)state;
    *count = 1;
    return DRUPE_OK;
}

static drupe_status device_open(void *state, uint32_t index, drupe_device *device)
{
    (void)state;
    (void)index;
    (void)device;
    return DRUPE_OK;
}

static void device_close(drupe_device *device)
{
    (void)device;
}

static drupe_device_type device_type(drupe_device *device)
{
    (void)device;
    return DRUPE_DEVICE_CPU;
}

static drupe_status device_info(drupe_device *device, drupe_info key, uint64_t number[3], drupe_text *text)
{
    (void)device;
    (void)key;
    (void)number;
    (void)text;
    return DRUPE_E_UNSUPPORTED;
}

static drupe_status context_open(drupe_context *context)
{
    (void)context;
    return DRUPE_OK;
}

static void context_close(drupe_context *context)
{
    (void)context;
}

static drupe_status queue_open(drupe_queue *queue, uint32_t flags)
{
    (void)queue;
    (void)flags;
    return DRUPE_OK;
}

static void queue_close(drupe_queue *queue)
{
    (void)queue;
}

static drupe_status queue_wait(drupe_queue *queue, uint64_t timeout_ns)
{
    (void)queue;
    (void)timeout_ns;
    return DRUPE_OK;
}

static void event_close(drupe_event *event)
{
    (void)event;
}

static drupe_status event_state(drupe_event *event, drupe_event_state *state)
{
    (void)event;
    *state = DRUPE_EVENT_COMPLETE;
    return DRUPE_OK;
}

static drupe_status event_wait(drupe_event *event, uint64_t timeout_ns)
{
    (void)event;
    (void)timeout_ns;
    return DRUPE_OK;
}

static drupe_status submit_barrier(const drupe_submit *s)
{
    (void)s;
    return DRUPE_OK;
}

static drupe_status submit_host(const drupe_submit *s, drupe_host_fn fn, void *user)
{
    (void)s;
    (void)fn;
    (void)user;
    return DRUPE_OK;
}

static const drupe_backend nothing = {
    .name = "nothing",
    .load = load,
    .unload = unload,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .device_type = device_type,
    .device_info = device_info,
    .context_open = context_open,
    .context_close = context_close,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .queue_wait = queue_wait,
    .event_close = event_close,
    .event_state = event_state,
    .event_wait = event_wait,
    .submit_barrier = submit_barrier,
    .submit_host = submit_host,
};

const drupe_backend *const drupe_backends[] = {&nothing, NULL};
const char *const drupe_backends_absent[] = {NULL};

drupe_status drupe_layer_apply(const drupe_backend *base, size_t slot, const drupe_backend **backend)
{
    (void)slot;
    *backend = base;
    return DRUPE_OK;
}

/* --- Measuring ------------------------------------------------------------------------------------------ */

static void need(drupe_status status)
{
    if (status == DRUPE_OK) return;
    fprintf(stderr, "%s\n", drupe_error_last()->text);
    exit(1);
}

static drupe_status function(void *user)
{
    (void)user;
    return DRUPE_OK;
}

/* Nanoseconds a submission. With an event it is a host function: the record of a barrier is made at once. */
static double turn(drupe_queue *queue, bool with_events)
{
    drupe_submission s = {.queue = queue, .label = NULL, .site = 1};
    uint64_t before = drupe_now_ns();
    for (int i = 0; i < EACH; i++) {
        drupe_event *event = NULL;
        need(with_events ? drupe_submit_host(&s, function, NULL, &event) : drupe_submit_barrier(&s, NULL));
        drupe_event_release(event);
    }
    need(drupe_queue_wait(queue, DRUPE_FOREVER));
    drupe_queue_collect(queue);
    return (double)(drupe_now_ns() - before) / EACH;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(drupe_queue *queue, bool with_events)
{
    double times[2][TURNS];
    for (int i = 0; i < 2 * TURNS; i++) {
        tracing = i % 2;
        times[i % 2][i / 2] = turn(queue, with_events);
    }
    for (int i = 0; i < 2; i++) qsort(times[i], TURNS, sizeof(double), compare);
    double without = times[0][TURNS / 2], with = times[1][TURNS / 2];
    printf(
        "%s: without the ring %.1f ns, with it %.1f ns, difference %.1f ns (of the quickest turns %.1f ns)\n",
        with_events ? "submission with an event" : "submission without an event", without, with,
        with - without, times[1][0] - times[0][0]);
}

int main(void)
{
    drupe_device *device;
    drupe_queue *queue;
    need(drupe_device_select("nothing", &device));
    need(drupe_device_queue(device, &queue));
    measure(queue, false);
    measure(queue, true);
    drupe_queue_release(queue);
    drupe_device_release(device);
    return drupe_library_close(0) == 0 ? 0 : 1;
}
