/* Times are true: what a view says of work against what the work itself has noted.
 *
 * The host device, and a CPU device of OpenCL where there is one, whose host functions core runs. Nothing
 * here knows how long anything takes: what is compared is order and containment, up to what two readings of
 * the clock are apart. */
#include "view/view_room.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OK(call) assert_int_equal((call), DRUPE_OK)
#define HAIR     UINT64_C(20000) /* ns: each look reckons ticks into the clock's time anew */
#define QUEUES   4u
#define WORKS    200u
#define SIZE     4096u
#define FILLS    (WORKS + 2 * QUEUES) /* each of SIZE bytes of its own, since queues run side by side */
#define PATIENCE UINT64_C(60000000000)

typedef struct work {
    uint64_t before, from, to, id; /* ticks, two of them noted by the function itself; submission */
    uint64_t clock;                /* the time at `to` */
    uint32_t spin, queue;
    size_t waits[2], nwaits; /* indices */
    drupe_event *event;
} work;

static struct {
    drupe_device *device;
    drupe_queue *queues[QUEUES]; /* the last is without order */
    drupe_memory *memory;
} bench;

static int open_bench(const char *filter)
{
    drupe_context *context;
    if (drupe_device_select(filter, &bench.device) != DRUPE_OK) return 1;
    OK(drupe_device_context(bench.device, &context));
    for (uint32_t i = 0; i < QUEUES; i++)
        OK(drupe_queue_open(context, bench.device, i == QUEUES - 1 ? DRUPE_QUEUE_OUT_OF_ORDER : 0,
                            &bench.queues[i]));
    drupe_context_release(context);
    OK(drupe_memory_alloc(bench.queues[0], DRUPE_MEM_DEVICE, FILLS * SIZE, 0, &bench.memory));
    OK(drupe_view_start());
    return 0;
}

static int open_host(void **state)
{
    (void)state;
    return open_bench("host");
}

static int open_opencl(void **state)
{
    *state = open_bench("opencl:cpu") ? &bench : NULL;
    return 0;
}

static int close_bench(void **state)
{
    (void)state;
    drupe_view_stop();
    for (uint32_t i = 0; i < QUEUES; i++) drupe_queue_release(bench.queues[i]);
    drupe_memory_release(bench.memory);
    drupe_device_release(bench.device);
    memset(&bench, 0, sizeof bench);
    return drupe_library_close(DRUPE_FOREVER) == 0 ? 0 : -1;
}

static drupe_view *take_when_over(void)
{
    for (uint64_t deadline = drupe_deadline(PATIENCE); drupe_now_ns() < deadline; sched_yield()) {
        drupe_view *view = NULL;
        uint64_t waiting = 0;
        OK(drupe_view_take(NULL, &view));
        for (size_t i = 0; i < view->ncells; i++) waiting += view->cells[i].waiting;
        if (waiting == 0) return view;
        drupe_view_release(view);
    }
    fail_msg("something is not over");
    return NULL;
}

static const drupe_view_span *span_of(const drupe_view *view, uint64_t id)
{
    for (size_t i = 0; i < view->nspans; i++)
        if (view->spans[i].id == id) return &view->spans[i];
    fail_msg("submission %llu has no span", (unsigned long long)id);
    return NULL;
}

static uint32_t below(uint32_t *seed, uint32_t most)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % most;
}

/* --- What ran --------------------------------------------------------------------------------------------
 */

static drupe_status note(void *user)
{
    work *one = user;
    one->from = drupe_ticks();
    for (volatile uint32_t i = 0; i < one->spin; i++) {}
    one->to = drupe_ticks();
    one->clock = drupe_now_ns();
    return DRUPE_OK;
}

static void submit_fill(const drupe_submission *s, size_t number, drupe_event **event)
{
    char *memory = drupe_memory_pointer(bench.memory);
    OK(drupe_submit_fill(s, memory + number * SIZE, "x", 1, SIZE, event));
}

static void submit(work *works, size_t i, uint32_t *seed)
{
    work *one = &works[i];
    drupe_event *waits[2];
    one->queue = below(seed, QUEUES);
    one->spin = below(seed, 3) ? below(seed, 200) : below(seed, 20000);
    for (; i > 0 && one->nwaits < 2 && below(seed, 3) == 0; one->nwaits++)
        one->waits[one->nwaits] = i - 1 - below(seed, i < 20 ? (uint32_t)i : 20);
    for (size_t k = 0; k < one->nwaits; k++) waits[k] = works[one->waits[k]].event;
    drupe_submission s = {.queue = bench.queues[one->queue], .waits = waits, .nwaits = one->nwaits};
    /* Work of the device between, which is none of ours. */
    if (below(seed, 4) == 0) submit_fill(&s, i, NULL);
    one->before = drupe_ticks();
    OK(drupe_submit_host(&s, note, one, &one->event));
    one->id = drupe_event_submission(one->event);
}

/* What two looks may differ by: a clock that is being set right does not go as evenly as the counter. */
static uint64_t hair_of(const work *works, const drupe_ticks_scale *scale)
{
    uint64_t most = 0;
    for (size_t i = 0; i < WORKS; i++) {
        uint64_t reckoned = drupe_ticks_ns_by(scale, works[i].to), clock = works[i].clock;
        uint64_t apart = reckoned > clock ? reckoned - clock : clock - reckoned;
        if (apart > most) most = apart;
    }
    return HAIR + 2 * most;
}

static void expect_true_times(const drupe_view *view, const work *works)
{
    const drupe_view_span *last[QUEUES] = {NULL};
    const drupe_ticks_scale scale = drupe_ticks_scale_now();
    const uint64_t hair = hair_of(works, &scale);
    for (size_t i = 0; i < WORKS; i++) {
        const work *one = &works[i];
        const drupe_view_span *span = span_of(view, one->id);
        assert_true(span->exact);
        assert_int_equal(span->count, 1);
        assert_int_equal(span->busy_ns, span->end_ns - span->start_ns);
        assert_true(drupe_ticks_ns_by(&scale, one->before) <= span->start_ns + hair);
        assert_true(span->start_ns <= drupe_ticks_ns_by(&scale, one->from) + hair);
        assert_true(drupe_ticks_ns_by(&scale, one->to) <= span->end_ns + hair);
        for (size_t k = 0; k < one->nwaits; k++)
            assert_true(span_of(view, works[one->waits[k]].id)->end_ns <= span->start_ns + hair);
        if (one->queue != QUEUES - 1 && last[one->queue])
            assert_true(last[one->queue]->end_ns <= span->start_ns + hair);
        last[one->queue] = span;
    }
}

static void spans_hold_what_ran(void **state)
{
    if (*state) skip();
    for (uint32_t round = 1; round <= 3; round++) {
        uint32_t seed = round;
        work *works = calloc(WORKS, sizeof *works);
        assert_non_null(works);
        for (size_t i = 0; i < WORKS; i++) submit(works, i, &seed);
        for (uint32_t i = 0; i < QUEUES; i++) OK(drupe_queue_wait(bench.queues[i], DRUPE_FOREVER));
        drupe_view *view = take_when_over();
        expect_true_times(view, works);
        drupe_view_release(view);
        for (size_t i = 0; i < WORKS; i++) drupe_event_release(works[i].event);
        free(works);
    }
}

/* --- What goes on ----------------------------------------------------------------------------------------
 */

typedef struct gate {
    _Atomic(bool) begun, open;
    bool fails;
} gate;

static drupe_status pass(void *user)
{
    gate *one = user;
    atomic_store(&one->begun, true);
    while (!atomic_load(&one->open)) sched_yield();
    return one->fails ? drupe_error_set(DRUPE_E_INTERNAL, "as asked") : DRUPE_OK;
}

static drupe_event *submit_gate(gate *one)
{
    drupe_submission s = {.queue = bench.queues[0]};
    drupe_event *event;
    OK(drupe_submit_host(&s, pass, one, &event));
    return event;
}

static void running_and_waiting_are_told_apart(void **state)
{
    gate gates[3] = {{.open = false}};
    drupe_event *events[3];
    drupe_view *view = NULL;
    uint64_t ids[3];
    if (*state) skip();
    for (size_t i = 0; i < 3; i++) {
        events[i] = submit_gate(&gates[i]);
        ids[i] = drupe_event_submission(events[i]);
    }
    while (!atomic_load(&gates[0].begun)) sched_yield();
    OK(drupe_view_take(NULL, &view));
    const drupe_view_cell *cell = &view->cells[0];
    assert_int_equal(cell->open[DRUPE_VIEW_RUNNING], 1);
    assert_int_equal(cell->open[DRUPE_VIEW_WAITING], 2);
    assert_int_equal(cell->open[DRUPE_VIEW_SUBMITTED], 0);
    const drupe_view_span *running = span_of(view, ids[0]), *waiting = span_of(view, ids[1]);
    assert_int_equal(running->state, DRUPE_VIEW_RUNNING);
    assert_int_equal(waiting->state, DRUPE_VIEW_WAITING);
    assert_int_equal(waiting->count, 2);
    assert_int_equal(waiting->busy_ns, 0);
    drupe_view_release(view);
    atomic_store(&gates[0].open, true);
    while (!atomic_load(&gates[1].begun)) sched_yield();
    OK(drupe_view_take(NULL, &view));
    assert_int_equal(span_of(view, ids[1])->state, DRUPE_VIEW_RUNNING);
    assert_int_equal(span_of(view, ids[2])->state, DRUPE_VIEW_WAITING);
    drupe_view_release(view);
    for (size_t i = 1; i < 3; i++) atomic_store(&gates[i].open, true);
    OK(drupe_queue_wait(bench.queues[0], DRUPE_FOREVER));
    view = take_when_over();
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(span_of(view, ids[i])->state, DRUPE_VIEW_OVER);
        drupe_event_release(events[i]);
    }
    drupe_view_release(view);
}

/* Work that failed ran at a time that is known; what stood behind it never ran, and took none. */
static void failures_have_times(void **state)
{
    gate first = {.fails = true}, second = {.open = true};
    if (*state) skip();
    drupe_event *events[2] = {submit_gate(&first), submit_gate(&second)};
    while (!atomic_load(&first.begun)) sched_yield();
    uint64_t before = drupe_now_ns();
    atomic_store(&first.open, true);
    assert_int_not_equal(drupe_queue_wait(bench.queues[0], DRUPE_FOREVER), DRUPE_OK);
    drupe_view *view = take_when_over();
    const drupe_view_span *failed = span_of(view, drupe_event_submission(events[0])),
                          *skipped = span_of(view, drupe_event_submission(events[1]));
    assert_int_equal(failed->status, DRUPE_TRACE_FAILED);
    assert_true(failed->exact && failed->start_ns <= before + HAIR && failed->end_ns + HAIR >= before);
    assert_int_equal(skipped->status, DRUPE_TRACE_SKIPPED);
    assert_int_equal(skipped->busy_ns, 0);
    assert_false(atomic_load(&second.begun));
    drupe_view_release(view);
    for (size_t i = 0; i < 2; i++) drupe_event_release(events[i]);
}

/* --- Times of a driver -----------------------------------------------------------------------------------
 */

static uint64_t fill(uint32_t queue, uint32_t round, drupe_event **event)
{
    drupe_submission s = {.queue = bench.queues[queue]};
    submit_fill(&s, WORKS + 2 * queue + round, event);
    return drupe_event_submission(*event);
}

/* DRUPE_PROFILE=0: the driver does not tell. Then profiling is switched on under queues that are in use. */
static void queues_get_times_later(void **state)
{
    drupe_event *events[QUEUES][2];
    drupe_times times;
    uint64_t ids[QUEUES][2];
    if (*state) skip();
    for (uint32_t i = 0; i < QUEUES; i++) ids[i][0] = fill(i, 0, &events[i][0]);
    assert_false(drupe_queue_profile(true));
    for (uint32_t i = 0; i < QUEUES; i++) {
        assert_true(drupe_queue_flags_of(bench.queues[i]) & DRUPE_QUEUE_PROFILING);
        ids[i][1] = fill(i, 1, &events[i][1]);
    }
    for (uint32_t i = 0; i < QUEUES; i++) {
        OK(drupe_queue_wait(bench.queues[i], DRUPE_FOREVER));
        assert_int_equal(drupe_event_times(events[i][0], &times), DRUPE_E_UNSUPPORTED);
        OK(drupe_event_times(events[i][1], &times));
        assert_true(times.started <= times.ended);
    }
    drupe_view *view = take_when_over();
    for (uint32_t i = 0; i < QUEUES; i++) {
        const drupe_view_span *before = span_of(view, ids[i][0]), *after = span_of(view, ids[i][1]);
        assert_false(before->exact);
        assert_int_equal(before->busy_ns, 0);
        assert_true(after->exact);
        /* It lies before what stands behind it on its queue. */
        if (i < QUEUES - 1) assert_true(before->end_ns <= after->start_ns);
    }
    assert_true(view->cells[0].untimed[DRUPE_VIEW_COPIES] >= QUEUES);
    drupe_view_release(view);
    assert_true(drupe_queue_profile(false));
    for (uint32_t i = 0; i < QUEUES; i++) {
        drupe_event_release(events[i][0]);
        drupe_event_release(events[i][1]);
    }
}

#define HOST(name)   cmocka_unit_test_setup_teardown(name, open_host, close_bench)
#define OPENCL(name) cmocka_unit_test_setup_teardown(name, open_opencl, close_bench)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST(spans_hold_what_ran),
        HOST(running_and_waiting_are_told_apart),
        HOST(failures_have_times),
        OPENCL(spans_hold_what_ran),
        OPENCL(running_and_waiting_are_told_apart),
        OPENCL(failures_have_times),
        OPENCL(queues_get_times_later),
    };
    setenv("DRUPE_PROFILE", "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
