/* Queues, events, waiting and failure. */
#include "base/base.h"
#include "stand_in.h"
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define B      (&drupe_backend_opencl)
#define SECOND UINT64_C(1000000000)

/* A kernel that computes for a while, in `rounds` dependent steps. */
static const char slow_text[] = "kernel void slow(global uint *a, uint rounds) {\n"
                                "    uint x = a[get_global_id(0)];\n"
                                "    for (uint i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;\n"
                                "    a[get_global_id(0)] = x;\n"
                                "}\n";

typedef struct slow_work {
    fixture b;
    drupe_program *program;
    drupe_kernel *kernel;
    uint32_t *data;
} slow_work;

static void slow_open(slow_work *w, const char *words, bool profiling)
{
    if (profiling) {
        fixture_open_profiling(&w->b, words);
    } else {
        fixture_open(&w->b, words);
    }
    assert_int_equal(try_program(w->b.context, w->b.device, slow_text, NULL, NULL, &w->program), DRUPE_OK);
    assert_int_equal(try_kernel(w->program, "slow", &w->kernel), DRUPE_OK);
    assert_int_equal(B->mem_alloc(w->b.context, w->b.device, DRUPE_MEM_DEVICE, 64 * sizeof(uint32_t), 64,
                                  (void **)&w->data),
                     DRUPE_OK);
    drupe_submit s = {.queue = w->b.queue};
    assert_int_equal(B->submit_fill(&s, w->data, "\1", 1, 64 * sizeof(uint32_t)), DRUPE_OK);
}

static void slow_close(slow_work *w)
{
    B->mem_free(w->b.context, w->b.device, DRUPE_MEM_DEVICE, w->data);
    close_kernel(w->kernel);
    close_program(w->program);
    fixture_close(&w->b);
}

static void slow_submit(slow_work *w, uint32_t rounds, drupe_event *const *waits, size_t nwaits,
                        drupe_event *event)
{
    drupe_submit s = {.queue = w->b.queue, .waits = waits, .nwaits = nwaits, .event = event};
    drupe_range range = {.dims = 1, .global = {1}};
    drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof(void *), &w->data},
                        {DRUPE_ARG_VALUE, sizeof rounds, &rounds}};
    assert_int_equal(B->submit_kernel(&s, w->kernel, &range, args, 2), DRUPE_OK);
}

/* Rounds that keep the device busy for a good part of a second. */
#define LONG_ROUNDS 300000000u

/* Skips the test on devices that run work on the submitting thread: nothing is ever in flight there. */
static void need_background_work(slow_work *w)
{
    drupe_event *event = make_event(w->b.queue);
    drupe_event_state at;
    slow_submit(w, LONG_ROUNDS / 3, NULL, 0, event);
    assert_int_equal(B->event_state(event, &at), DRUPE_OK);
    assert_int_equal(B->event_wait(event, DRUPE_FOREVER), DRUPE_OK);
    close_event(event);
    if (at != DRUPE_EVENT_COMPLETE) return;
    slow_close(w);
    skip();
}

static void event_waits(void **state)
{
    (void)state;
    need_memory();
    static const char *const words[] = {"", "silent"};
    assert_int_equal(setenv("DRUPE_PROFILE", "0", 1), 0); /* or the driver may keep times for nothing */
    for (size_t i = 0; i < DRUPE_COUNT_OF(words); i++) {
        slow_work w;
        drupe_event_state at;
        slow_open(&w, words[i], false);
        need_background_work(&w);
        drupe_event *event = make_event(w.b.queue);
        slow_submit(&w, LONG_ROUNDS, NULL, 0, event);
        assert_error(B->event_wait(event, 0), DRUPE_E_TIMEOUT, "not finished");
        assert_error(B->event_wait(event, SECOND / 1000), DRUPE_E_TIMEOUT, "not finished");
        assert_int_equal(B->event_state(event, &at), DRUPE_OK);
        assert_true(at < DRUPE_EVENT_COMPLETE);
        assert_int_equal(B->event_wait(event, DRUPE_FOREVER), DRUPE_OK);
        assert_int_equal(B->event_state(event, &at), DRUPE_OK);
        assert_int_equal(at, DRUPE_EVENT_COMPLETE);
        drupe_times times;
        assert_error(B->event_times(event, &times), DRUPE_E_UNSUPPORTED, "");
        close_event(event);
        slow_close(&w);
    }
    assert_int_equal(unsetenv("DRUPE_PROFILE"), 0);
}

static void queue_waits_in_slices(void **state)
{
    (void)state;
    need_memory();
    slow_work w;
    slow_open(&w, "fills", false); /* any word, to have the shim count */
    need_background_work(&w);
    void *shim = dlopen(OPENCL_SHIM, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(shim);
    unsigned *markers = dlsym(shim, "shim_marker_count"), slices = 0;
    wait_idle(w.b.queue);
    *markers = 0;
    slow_submit(&w, LONG_ROUNDS, NULL, 0, NULL);
    drupe_status status;
    while ((status = B->queue_wait(w.b.queue, SECOND / 200)) == DRUPE_E_TIMEOUT) slices++;
    assert_int_equal(status, DRUPE_OK);
    assert_true(slices > 1);
    /* On a CPU the kernel has an event of its own, which serves. */
    unsigned expected = B->device_type(w.b.device) == DRUPE_DEVICE_CPU ? 0 : 1;
    assert_int_equal(*markers, expected);
    wait_idle(w.b.queue); /* idle: no further marker */
    assert_int_equal(*markers, expected);
    slow_close(&w);
    dlclose(shim);
}

static void barriers(void **state)
{
    (void)state;
    need_memory();
    slow_work w;
    slow_open(&w, "", false);
    need_background_work(&w);
    drupe_event *first = make_event(w.b.queue), *second = make_event(w.b.queue);
    drupe_submit s = {.queue = w.b.queue, .event = first};
    drupe_event_state at;
    slow_submit(&w, LONG_ROUNDS, NULL, 0, NULL);
    assert_int_equal(B->submit_barrier(&s), DRUPE_OK);
    s.event = second;
    assert_int_equal(B->submit_barrier(&s), DRUPE_OK);
    s.event = NULL;
    assert_int_equal(B->submit_barrier(&s), DRUPE_OK);
    assert_int_equal(B->event_state(second, &at), DRUPE_OK);
    assert_true(at < DRUPE_EVENT_COMPLETE);
    close_event(first); /* what they share is not lost with one of them */
    assert_int_equal(B->event_wait(second, DRUPE_FOREVER), DRUPE_OK);
    assert_int_equal(B->event_state(second, &at), DRUPE_OK);
    assert_int_equal(at, DRUPE_EVENT_COMPLETE);
    wait_idle(w.b.queue);
    close_event(second);
    drupe_event *idle = make_event(w.b.queue); /* nothing before it */
    s.event = idle;
    assert_int_equal(B->submit_barrier(&s), DRUPE_OK);
    assert_int_equal(B->event_wait(idle, DRUPE_FOREVER), DRUPE_OK);
    close_event(idle);
    slow_close(&w);
}

static void times_in_order(void **state)
{
    (void)state;
    need_memory();
    slow_work w;
    slow_open(&w, "", true);
    drupe_event *first = make_event(w.b.queue), *second = make_event(w.b.queue);
    slow_submit(&w, 1000, NULL, 0, first);
    slow_submit(&w, 1000, NULL, 0, second);
    assert_int_equal(B->event_wait(second, DRUPE_FOREVER), DRUPE_OK);
    drupe_times a = {0}, b = {0};
    if (info_number(w.b.device, DRUPE_INFO_HAS_PROFILING)) {
        assert_int_equal(B->event_times(first, &a), DRUPE_OK);
        assert_int_equal(B->event_times(second, &b), DRUPE_OK);
        assert_true(a.queued <= a.submitted && a.submitted <= a.started && a.started <= a.ended);
        assert_true(a.ended <= b.started && b.started <= b.ended);
    }
    close_event(first);
    close_event(second);
    slow_close(&w);
}

static void waits_across_queues(void **state)
{
    (void)state;
    need_memory();
    slow_work w;
    slow_open(&w, "", false);
    drupe_queue *other;
    assert_int_equal(try_queue(w.b.context, w.b.device, 0, &other), DRUPE_OK);
    drupe_event *events[40];
    for (int i = 0; i < 40; i++) { /* more than fit the list on the stack */
        events[i] = make_event(w.b.queue);
        slow_submit(&w, i ? 1 : LONG_ROUNDS / 10, NULL, 0, events[i]);
    }
    uint32_t got[64] = {0}, expected = 0x01010101u;
    for (uint32_t i = 0; i < LONG_ROUNDS / 10 + 39; i++) expected = expected * 1664525u + 1013904223u;
    drupe_event *copied = make_event(other);
    drupe_submit s = {.queue = other, .waits = events, .nwaits = 40, .event = copied};
    assert_int_equal(B->submit_copy(&s, got, w.data, sizeof got), DRUPE_OK);
    assert_int_equal(B->event_wait(copied, DRUPE_FOREVER), DRUPE_OK);
    assert_int_equal(got[0], expected);
    slow_submit(&w, 1, (drupe_event *[]){copied, events[0]}, 2, NULL); /* one foreign, one of its own queue */
    wait_idle(w.b.queue);
    for (int i = 0; i < 40; i++) close_event(events[i]);
    close_event(copied);
    close_queue(other);
    slow_close(&w);
}

static void notifications(void **state)
{
    (void)state;
    need_memory();
    slow_work w;
    slow_open(&w, "", false);
    need_background_work(&w);
    drupe_event *event = make_event(w.b.queue), *dropped = make_event(w.b.queue);
    atomic_store(&stand_in_notified, 0);
    slow_submit(&w, LONG_ROUNDS / 10, NULL, 0, event);
    slow_submit(&w, LONG_ROUNDS / 10, NULL, 0, dropped);
    assert_int_equal(B->event_notify(event), DRUPE_OK);
    assert_int_equal(B->event_notify(dropped), DRUPE_OK);
    close_event(dropped); /* never told, and nothing of it is touched later */
    for (uint64_t end = drupe_deadline(30 * SECOND);
         !atomic_load(&stand_in_notified) && drupe_now_ns() < end;) {
        drupe_cpu_relax();
    }
    assert_int_equal(atomic_load(&stand_in_notified), 1);
    wait_idle(w.b.queue);
    assert_int_equal(B->event_notify(event), DRUPE_OK); /* over already: at once */
    assert_int_equal(atomic_load(&stand_in_notified), 2);
    close_event(event);
    slow_close(&w);
}

static void failures(void **state)
{
    (void)state;
    need_memory();
    static const char *const words[] = {"fault", "fault silent"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(words); i++) {
        slow_work w;
        drupe_event_state at;
        slow_open(&w, words[i], false);
        drupe_event *event = make_event(w.b.queue);
        slow_submit(&w, 10, NULL, 0, event);
        assert_int_equal(B->event_wait(event, 60 * SECOND), DRUPE_OK); /* over, though not well */
        drupe_error_set(DRUPE_E_INVALID, "something else");
        assert_int_equal(B->event_state(event, &at), DRUPE_OK);
        assert_int_equal(at, DRUPE_EVENT_FAILED);
        assert_error(drupe_error_last()->status, DRUPE_E_DEVICE_LOST, "memory outside of its arrays");
        assert_int_equal(drupe_error_last()->native, -9999);
        assert_error(B->queue_wait(w.b.queue, 60 * SECOND), DRUPE_E_DEVICE_LOST, "event status -9999");
        assert_int_equal(B->queue_wait(w.b.queue, 60 * SECOND), DRUPE_OK); /* told once */
        close_event(event);
        slow_close(&w);
    }
}

/* --- Signals -------------------------------------------------------------------------------------------- */

static void on_signal(int number)
{
    (void)number;
}

static void handlers_stay(void **state)
{
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
    struct sigaction ours = {.sa_handler = on_signal}, before[DRUPE_COUNT_OF(numbers)], now;
    for (size_t i = 0; i < DRUPE_COUNT_OF(numbers); i++) sigaction(numbers[i], &ours, &before[i]);
    need_memory();
    slow_work w;
    slow_open(&w, "", false);
    slow_submit(&w, 1, NULL, 0, NULL);
    wait_idle(w.b.queue);
    bool kept = true;
    for (size_t i = 0; i < DRUPE_COUNT_OF(numbers); i++) {
        sigaction(numbers[i], &before[i], &now);
        kept = kept && now.sa_handler == on_signal;
    }
    slow_close(&w);
    assert_true(kept);
}

/* Stands first in the process: a driver's libraries take the signals once, when they are first used. */
const struct CMUnitTest signal_tests[] = {cmocka_unit_test(handlers_stay), {0}};

/* A driver may hang when such a queue goes while its last command ends. Who gives it up does not wait. */
static void unordered_queues_are_finished_first(void **state)
{
    (void)state;
    fixture b;
    fixture_open(&b, "plain");
    void *shim = dlopen(OPENCL_SHIM, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(shim);
    unsigned *early = dlsym(shim, "shim_early_releases");
    int *thread = dlsym(shim, "shim_release_thread");
    *early = 0;
    *thread = 0;
    for (int i = 0; i < 3; i++) {
        drupe_queue *queue;
        assert_int_equal(try_queue(b.context, b.device, DRUPE_QUEUE_OUT_OF_ORDER, &queue), DRUPE_OK);
        drupe_submit s = {.queue = queue};
        assert_int_equal(B->submit_barrier(&s), DRUPE_OK);
        wait_idle(queue);
        close_queue(queue);
    }
    fixture_close(&b); /* unloading waits for them */
    int released_by = *thread;
    assert_int_equal(*early, 0);
    dlclose(shim);
    if (!released_by) skip(); /* the driver has no such queues */
    assert_int_not_equal(released_by, (int)syscall(SYS_gettid));
}

const struct CMUnitTest queue_tests[] = {cmocka_unit_test(event_waits),
                                         cmocka_unit_test(queue_waits_in_slices),
                                         cmocka_unit_test(barriers),
                                         cmocka_unit_test(times_in_order),
                                         cmocka_unit_test(waits_across_queues),
                                         cmocka_unit_test(notifications),
                                         cmocka_unit_test(failures),
                                         cmocka_unit_test(unordered_queues_are_finished_first),
                                         {0}};
