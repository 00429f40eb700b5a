/* Precompiled kernels: functions of this process that the driver calls. */
#include "backends/builtin.h"
#include "base/parallel.h"
#include "stand_in.h"
#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define B     (&drupe_backend_opencl)
#define ITEMS 64

typedef struct wish {
    int64_t begin, step;
    char more[32];
} wish;

static _Atomic(int) ran;

/* out[i] = begin + i * step, an element per work-item. */
static void count_up(size_t begin, size_t end, size_t size, const void *const *args)
{
    int64_t *out = *(int64_t *const *)args[0];
    const wish *w = args[1];
    (void)size;
    assert(size == ITEMS || size == 1);
    for (size_t i = begin; i < end; i++) out[i] = w->begin + (int64_t)i * w->step;
    atomic_fetch_add(&ran, (int)(end - begin));
}

/* Runs until the test opens it. */
static _Atomic(bool) gate_open;

static void gate(size_t begin, size_t end, size_t size, const void *const *args)
{
    (void)begin, (void)end, (void)size, (void)args;
    while (!atomic_load(&gate_open)) sched_yield();
}

static const drupe_builtin kernels[] = {{"count_up", 2, count_up}, {"gate", 0, gate}};

const drupe_builtin *drupe_builtin_find(const char *name)
{
    for (size_t i = 0; i < 2; i++)
        if (strcmp(name, kernels[i].name) == 0) return &kernels[i];
    return NULL;
}

typedef struct precompiled {
    fixture b;
    drupe_program *program;
    drupe_kernel *kernel, *gate;
} precompiled;

/* Skips the test where the driver calls no functions. */
static void open_precompiled(precompiled *p)
{
    const drupe_source source = {.language = DRUPE_LANG_BUILTIN, .options = "inline"};
    fixture_open(&p->b, "");
    if (!(info_number(p->b.device, DRUPE_INFO_LANGUAGES) & DRUPE_LANG_BUILTIN)) {
        fixture_close(&p->b);
        skip();
    }
    assert_int_equal(try_source(p->b.context, p->b.device, &source, NULL, &p->program), DRUPE_OK);
    assert_int_equal(try_kernel(p->program, "count_up", &p->kernel), DRUPE_OK);
    assert_int_equal(try_kernel(p->program, "gate", &p->gate), DRUPE_OK);
}

static void close_precompiled(precompiled *p)
{
    close_kernel(p->gate);
    close_kernel(p->kernel);
    close_program(p->program);
    drupe_parallel_stop();
    fixture_close(&p->b);
}

static drupe_status launch(const precompiled *p, drupe_event *event, int64_t *out, wish w, size_t items)
{
    const drupe_submit submit = {.queue = p->b.queue, .event = event};
    const drupe_range range = {.dims = 1, .global = {items}, .local = {1}};
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof out, &out}, {DRUPE_ARG_VALUE, sizeof w, &w}};
    return B->submit_kernel(&submit, p->kernel, &range, args, 2);
}

static drupe_status launch_gate(const precompiled *p)
{
    const drupe_submit submit = {.queue = p->b.queue};
    const drupe_range range = {.dims = 1, .global = {2}, .local = {1}};
    return B->submit_kernel(&submit, p->gate, &range, NULL, 0);
}

/* Each work-item runs once, in the queue's order, and arguments are those of the call. */
static void work_items(void **state)
{
    (void)state;
    precompiled p;
    int64_t *out;
    open_precompiled(&p);
    assert_int_equal(
        B->mem_alloc(p.b.context, p.b.device, DRUPE_MEM_SHARED, ITEMS * sizeof *out, 64, (void **)&out),
        DRUPE_OK);
    atomic_store(&ran, 0);
    for (int64_t k = 1; k <= 20; k++)
        assert_int_equal(launch(&p, NULL, out, (wish){k, 10 * k, "x"}, ITEMS), DRUPE_OK);
    assert_int_equal(launch(&p, NULL, out, (wish){-5, 0, ""}, 1), DRUPE_OK);
    wait_idle(p.b.queue);
    assert_int_equal(atomic_load(&ran), 20 * ITEMS + 1);
    assert_int_equal(out[0], -5);
    for (int64_t i = 1; i < ITEMS; i++) assert_int_equal(out[i], 20 + 200 * i);
    B->mem_free(p.b.context, p.b.device, DRUPE_MEM_SHARED, out);
    close_precompiled(&p);
}

/* As of any command: its end can be waited for, and has times. */
static void events(void **state)
{
    (void)state;
    precompiled p;
    int64_t *out;
    drupe_event_state phase;
    open_precompiled(&p);
    close_queue(p.b.queue);
    assert_int_equal(try_queue(p.b.context, p.b.device, DRUPE_QUEUE_PROFILING, &p.b.queue), DRUPE_OK);
    assert_int_equal(
        B->mem_alloc(p.b.context, p.b.device, DRUPE_MEM_SHARED, ITEMS * sizeof *out, 64, (void **)&out),
        DRUPE_OK);
    drupe_event *event = make_event(p.b.queue);
    assert_int_equal(launch(&p, event, out, (wish){1, 1, ""}, ITEMS), DRUPE_OK);
    assert_int_equal(B->event_wait(event, UINT64_C(60000000000)), DRUPE_OK);
    assert_int_equal(out[ITEMS - 1], ITEMS);
    assert_int_equal(B->event_state(event, &phase), DRUPE_OK);
    assert_int_equal(phase, DRUPE_EVENT_COMPLETE);
    drupe_times times;
    assert_int_equal(B->event_times(event, &times), DRUPE_OK);
    assert_true(times.ended >= times.started && times.started > 0);
    close_event(event);
    wait_idle(p.b.queue);
    B->mem_free(p.b.context, p.b.device, DRUPE_MEM_SHARED, out);
    close_precompiled(&p);
}

/* A single work-item runs within the call where nothing is before it, and the backend says so. */
static void small_work(void **state)
{
    (void)state;
    precompiled p;
    int64_t *out;
    open_precompiled(&p);
    assert_int_equal(
        B->mem_alloc(p.b.context, p.b.device, DRUPE_MEM_SHARED, ITEMS * sizeof *out, 64, (void **)&out),
        DRUPE_OK);
    bool done = false;
    drupe_event *event = make_event(p.b.queue);
    const wish w = {7, 0, ""};
    const drupe_range one = {.dims = 1, .global = {1}, .local = {1}},
                      many = {.dims = 1, .global = {ITEMS}, .local = {1}};
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof out, &out}, {DRUPE_ARG_VALUE, sizeof w, &w}};
    const drupe_submit submit = {.queue = p.b.queue, .event = event, .done = &done};
    assert_int_equal(B->submit_kernel(&submit, p.kernel, &one, args, 2), DRUPE_OK);
    assert_true(done);
    assert_int_equal(out[0], 7);
    drupe_event_state phase;
    assert_int_equal(B->event_state(event, &phase), DRUPE_OK);
    assert_int_equal(phase, DRUPE_EVENT_COMPLETE);
    assert_int_equal(B->event_wait(event, 0), DRUPE_OK);
    close_event(event);
    /* Behind work that is not over, and with more than one work-item, it is a command like others. */
    done = false;
    const drupe_submit second = {.queue = p.b.queue, .done = &done};
    assert_int_equal(B->submit_kernel(&second, p.kernel, &many, args, 2), DRUPE_OK);
    assert_false(done);
    atomic_store(&gate_open, false);
    const drupe_submit third = {.queue = p.b.queue, .done = &done};
    assert_int_equal(launch_gate(&p), DRUPE_OK);
    assert_int_equal(B->submit_kernel(&third, p.kernel, &one, args, 2), DRUPE_OK);
    assert_false(done);
    atomic_store(&gate_open, true);
    wait_idle(p.b.queue);
    /* With what has been waited for it is idle again. */
    assert_int_equal(B->submit_kernel(&third, p.kernel, &one, args, 2), DRUPE_OK);
    assert_true(done);
    B->mem_free(p.b.context, p.b.device, DRUPE_MEM_SHARED, out);
    close_precompiled(&p);
}

static void refusals(void **state)
{
    (void)state;
    static char large[4096];
    precompiled p;
    drupe_kernel *none;
    drupe_arg_info info;
    void *bytes;
    uint64_t number;
    size_t size;
    open_precompiled(&p);
    assert_error(try_kernel(p.program, "count_down", &none), DRUPE_E_NOT_FOUND, "count_down");
    assert_error(B->program_binary(p.program, &bytes, &size), DRUPE_E_UNSUPPORTED, "no binary");
    assert_error(B->kernel_arg(p.kernel, 0, &info), DRUPE_E_UNSUPPORTED, "arguments");
    assert_int_equal(B->kernel_number(p.kernel, DRUPE_KERNEL_ARG_COUNT, &number), DRUPE_OK);
    assert_int_equal(number, 2);
    assert_int_equal(B->kernel_number(p.kernel, DRUPE_KERNEL_MAX_NUM_SUB_GROUPS, &number),
                     DRUPE_E_UNSUPPORTED);
    const drupe_submit submit = {.queue = p.b.queue};
    drupe_range range = {.dims = 2, .global = {4, 4}, .local = {1, 1}};
    drupe_arg args[] = {{DRUPE_ARG_VALUE, 8, large}, {DRUPE_ARG_VALUE, sizeof large, large}};
    assert_error(B->submit_kernel(&submit, p.kernel, &range, args, 2), DRUPE_E_UNSUPPORTED,
                 "one-dimensional");
    range = (drupe_range){.dims = 1, .global = {4}, .local = {1}};
    assert_error(B->submit_kernel(&submit, p.kernel, &range, args, 2), DRUPE_E_INVALID, "count_up");
    args[1] = (drupe_arg){DRUPE_ARG_LOCAL, 8, NULL};
    assert_error(B->submit_kernel(&submit, p.kernel, &range, args, 2), DRUPE_E_INVALID, "count_up");
    close_precompiled(&p);
}

const struct CMUnitTest builtin_tests[] = {cmocka_unit_test(work_items),
                                           cmocka_unit_test(events),
                                           cmocka_unit_test(small_work),
                                           cmocka_unit_test(refusals),
                                           {0}};
