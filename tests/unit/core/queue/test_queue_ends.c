/* Queues at their ends: no host memory, one allocation after the other, and a forked child. */
#include "core/queue/launch.h"
#include "core_ends.h"

static drupe_memory *memory;
static drupe_queue *unordered, *far;

static bool open_more(void)
{
    return ends_good(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 256, 0, &memory)) &&
           ends_good(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_OUT_OF_ORDER, &unordered)) &&
           ends_good(drupe_queue_open(bench.context, bench.device, DRUPE_QUEUE_PROFILING, &far));
}

static void close_more(void)
{
    drupe_memory_release(memory);
    drupe_queue_release(unordered);
    drupe_queue_release(far);
    memory = NULL;
    unordered = far = NULL;
}

static drupe_status fails(void *unused)
{
    (void)unused;
    return drupe_error_set(DRUPE_E_INVALID, PLANNED);
}

static void submit_on(drupe_queue *queue)
{
    drupe_event *gate = NULL, *events[12] = {NULL}, *waits[40];
    drupe_keep keeps[30];
    drupe_submission s = {.queue = queue, .label = "a label of the caller's"};
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "mine"};
    if (!ends_good(drupe_event_open("gate", 0, &gate))) return;
    for (size_t i = 0; i < DRUPE_COUNT_OF(waits); i++) waits[i] = gate;
    for (size_t i = 0; i < DRUPE_COUNT_OF(keeps); i++) keeps[i] = drupe_memory_keep(memory, queue);
    s.waits = waits;
    s.nwaits = DRUPE_COUNT_OF(waits);
    s.keeps = keeps;
    s.nkeeps = DRUPE_COUNT_OF(keeps);
    ends_good(drupe_submit_barrier(&s, &events[0]));
    s.nkeeps = 0;
    s.nwaits = 1;
    ends_good(drupe_submit_fill(&s, drupe_memory_pointer(memory), "abcdefgh", 8, 256, &events[1]));
    ends_good(drupe_submit_host(&s, fails, NULL, &events[2]));
    ends_good(drupe_submit_turn(&s, &events[3]));
    s.nwaits = 0;
    ends_good(bench_mad(queue, memory, memory, 8, 1, 1, NULL, &events[4]));
    ends_good(drupe_submit_host(&s, bench_nothing, NULL, &events[5]));
    ends_good(bench_fill(queue, memory, 2, NULL, NULL));
    ends_good(bench_barrier(queue, events[2], &events[6]));
    if (events[3]) ends_good(drupe_event_finish(events[3], &error));
    (void)!drupe_event_finish(gate, NULL);
    ends_settle(queue);
    for (size_t i = 0; i < DRUPE_COUNT_OF(events); i++) drupe_event_release(events[i]);
    drupe_event_release(gate);
    drupe_memory_accept(memory);
}

static void submissions(void)
{
    if (open_more()) {
        submit_on(bench.queue);
        submit_on(unordered);
        submit_on(far);
    }
    close_more();
}

static void watching_and_cancelling(void)
{
    drupe_watch *watch = NULL;
    drupe_event *gate = NULL, *events[3] = {NULL}, *taken;
    void *user;
    size_t left, given_up;
    if (open_more() && ends_good(drupe_watch_open(NULL, NULL, &watch)) &&
        ends_good(drupe_event_open("gate", 0, &gate))) {
        drupe_queue *queues[] = {bench.queue, unordered};
        ends_good(bench_barrier(bench.queue, gate, &events[0]));
        ends_good(bench_barrier(unordered, gate, &events[1]));
        for (size_t i = 0; i < 2; i++) {
            if (events[i]) ends_good(drupe_watch_add(watch, events[i], NULL));
            ends_good(drupe_queue_cancel(queues[i], &left, &given_up));
        }
        (void)!drupe_event_finish(gate, NULL);
        for (size_t i = 0; i < 2; i++) ends_settle(queues[i]);
        while (drupe_watch_take(watch, &taken, &user)) drupe_event_release(taken);
    }
    drupe_watch_close(watch, NULL);
    drupe_event_release(gate);
    for (size_t i = 0; i < 3; i++) drupe_event_release(events[i]);
    close_more();
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    ends_walk(submissions);
    ends_walk(watching_and_cancelling);
}

/* --- A forked child --------------------------------------------------------------------------------------
 */

static drupe_event *event;
static drupe_watch *watch;

static void in_the_child(void)
{
    drupe_queue *queue, *list[4];
    drupe_event *fresh;
    drupe_watch *other;
    drupe_context *context;
    drupe_failure failure;
    drupe_times times;
    size_t left, given_up, count;
    void *user;
    ENDS_FORKED(drupe_queue_open(bench.context, bench.device, 0, &queue));
    ENDS_FORKED(drupe_device_context(bench.device, &context));
    ENDS_FORKED(drupe_device_queue(bench.device, &queue));
    ENDS_FORKED(drupe_queue_wait(bench.queue, 0));
    ENDS_FORKED(drupe_queue_cancel(bench.queue, &left, &given_up));
    ENDS_FORKED(drupe_queue_native(bench.queue, &user));
    ENDS_FORKED(drupe_event_open("e", 0, &fresh));
    ENDS_FORKED(drupe_event_wait(event, 0));
    ENDS_FORKED(drupe_event_finish(event, NULL));
    ENDS_FORKED(drupe_event_times(event, &times));
    ENDS_FORKED(drupe_event_waits(event, NULL, 0, &count));
    ENDS_FORKED(drupe_watch_open(NULL, NULL, &other));
    ENDS_FORKED(drupe_watch_add(watch, event, NULL));
    ENDS_FORKED(drupe_memory_contents(memory));
    ENDS_FORKED(drupe_memory_before_use(memory, &fresh));
    ENDS_MUST(drupe_event_state_of(event) == DRUPE_EVENT_SUBMITTED);
    ENDS_MUST(!drupe_event_error(event));
    ENDS_MUST(!drupe_watch_take(watch, &fresh, &user));
    ENDS_MUST(drupe_queue_pending(bench.queue) == 0);
    ENDS_MUST(!drupe_queue_idle(bench.queue, 0));
    ENDS_MUST(drupe_queue_list(list, 4) == 0);
    ENDS_MUST(!drupe_failure_take(&failure));
    (void)drupe_queue_profile(false);
    (void)drupe_queue_profile(true);
    drupe_memory_accept(memory);
    drupe_queue_collect(bench.queue);
    drupe_watch_close(watch, NULL);
    drupe_event_release(event);
    drupe_queue_release(bench.queue);
    drupe_uses_drop(memory);
}

static void a_forked_child_is_told_so(void **state)
{
    ends_setup(state);
    drupe_event *gate = bench_gate();
    assert_true(open_more());
    OK(bench_barrier(bench.queue, gate, &event));
    OK(drupe_watch_open(NULL, NULL, &watch));
    ends_in_child(in_the_child);
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG)); /* the parent has lost nothing */
    drupe_event_release(event);
    drupe_watch_close(watch, NULL);
    close_more();
    assert_int_equal(bench_teardown(state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_is_left),
        cmocka_unit_test(a_forked_child_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
