/* Watches, events that the caller ends, what an event waits for, hints, and the place of a submission. */
#include "conformance.h"
#include <poll.h>
#include <sched.h>

#define N 64

static bool readable(const drupe_watch *watch, int timeout_ms)
{
    struct pollfd fd = {.fd = drupe_watch_fd(watch), .events = POLLIN};
    return poll(&fd, 1, timeout_ms) == 1;
}

/* The next one, waited for. */
static void take(drupe_watch *watch, drupe_event *expected, void *user)
{
    drupe_event *event;
    void *given;
    assert_true(readable(watch, 20000));
    assert_true(drupe_watch_take(watch, &event, &given));
    assert_ptr_equal(event, expected);
    assert_ptr_equal(given, user);
    drupe_event_release(event);
}

static void count_wake(void *user)
{
    atomic_fetch_add((_Atomic(int) *)user, 1);
}

static void takes_what_is_over(struct suite *suite)
{
    struct bench *b = &suite->bench;
    _Atomic(int) wakes = 0;
    drupe_watch *watch;
    OK(drupe_watch_open(count_wake, &wakes, &watch));
    struct gate gate;
    gate_init(&gate);
    drupe_event *none, *stopped = submit_gate(b->queue, &gate), *failed;
    void *user;
    gate.result = DRUPE_E_INVALID;
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    OK(submit_mad(b, b->queue, memory, memory, N, 1, 1, NULL, 0, &failed));
    OK(drupe_watch_add(watch, stopped, &gate));
    assert_false(readable(watch, 20));
    assert_false(drupe_watch_take(watch, &none, &user));
    assert_int_equal(wakes, 0);
    gate_open(&gate);
    take(watch, stopped, &gate);
    /* The thread that puts an event there wakes afterwards. */
    while (wakes == 0) sched_yield();
    assert_int_equal(wakes, 1);
    assert_false(readable(watch, 0));
    /* Failed work comes too, and what was over before, and the same event twice. */
    OK(drupe_watch_add(watch, failed, &wakes));
    OK(drupe_watch_add(watch, stopped, NULL));
    OK(drupe_watch_add(watch, stopped, &gate));
    size_t taken = 0;
    while (taken < 3) {
        assert_true(readable(watch, 20000));
        for (drupe_event *event; drupe_watch_take(watch, &event, &user); taken++) {
            assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_FAILED);
            drupe_event_release(event);
        }
    }
    assert_false(drupe_watch_take(watch, &none, &user));
    drupe_watch_close(watch, NULL);
    FAILS(drupe_event_wait(stopped, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    FAILS(drupe_event_wait(failed, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    drupe_event_release(stopped);
    drupe_event_release(failed);
    drupe_memory_release(memory);
    gate_destroy(&gate);
}

static void count_release(void *user)
{
    ++*(int *)user;
}

static void closing_gives_back(struct suite *suite)
{
    (void)suite;
    int released = 0;
    drupe_watch *watch;
    drupe_event *over, *open;
    OK(drupe_watch_open(NULL, NULL, &watch));
    OK(drupe_event_open(NULL, 0, &over));
    OK(drupe_event_open(NULL, 0, &open));
    OK(drupe_watch_add(watch, over, &released));
    OK(drupe_watch_add(watch, open, &released));
    OK(drupe_event_finish(over, NULL));
    assert_true(readable(watch, 20000));
    drupe_watch_close(watch, count_release);
    assert_int_equal(released, 2);
    OK(drupe_event_finish(open, NULL));
    drupe_event_release(over);
    drupe_event_release(open);
    drupe_watch_close(NULL, count_release);
}

/* Silent drivers, many events: all come. */
static void watches_many(struct suite *suite)
{
    struct bench *b = &suite->bench;
    enum { MANY = 500 };
    drupe_watch *watch;
    drupe_event *event;
    void *user;
    OK(drupe_watch_open(NULL, NULL, &watch));
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    for (size_t i = 0; i < MANY; i++) {
        OK(submit_mad(b, b->queue, memory, memory, N, 1, 1, NULL, 0, &event));
        OK(drupe_watch_add(watch, event, NULL));
        drupe_event_release(event);
    }
    for (size_t taken = 0; taken < MANY;) {
        assert_true(readable(watch, 20000));
        for (; drupe_watch_take(watch, &event, &user); taken++) drupe_event_release(event);
    }
    drupe_watch_close(watch, NULL);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_memory_release(memory);
}

/* --- Events that the caller ends ------------------------------------------------------------------------ */

static void opened_event_holds(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    fill_u64(b->queue, memory, 1, N);
    drupe_event *opened, *held, *behind, *waits[2];
    drupe_times times;
    size_t count;
    OK(drupe_event_open("signal", 0, &opened));
    assert_null(drupe_event_queue(opened));
    assert_int_equal(drupe_event_state_of(opened), DRUPE_EVENT_QUEUED);
    FAILS(drupe_event_wait(opened, 1000000), DRUPE_E_TIMEOUT, "");
    FAILS(drupe_event_times(opened, &times), DRUPE_E_UNSUPPORTED, "");
    OK(submit_mad(b, b->queue, memory, memory, N, 1, 1, &opened, 1, &held));
    OK(submit_mad(b, b->queue, memory, memory, N, 1, 1, NULL, 0, &behind));
    OK(drupe_event_waits(held, waits, COUNT(waits), &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(waits[0], opened);
    drupe_event_release(waits[0]);
    OK(drupe_event_waits(held, NULL, 0, &count));
    assert_int_equal(count, 1);
    FAILS(drupe_event_wait(behind, 10000000), DRUPE_E_TIMEOUT, "");
    FAILS(drupe_event_finish(behind, NULL), DRUPE_E_INVALID, "ended by the caller");
    OK(drupe_event_finish(opened, NULL));
    OK(drupe_event_finish(opened, NULL));
    OK(drupe_event_wait(behind, DRUPE_FOREVER));
    OK(drupe_event_wait(opened, 0));
    OK(drupe_event_waits(held, waits, COUNT(waits), &count));
    assert_int_equal(count, 0);
    expect_u64(b->queue, memory, 3, N);
    drupe_event *events[] = {opened, held, behind};
    for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    drupe_memory_release(memory);
}

static void opened_event_fails(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    fill_u64(b->queue, memory, 1, N);
    drupe_event *opened, *held;
    drupe_error error = {.status = DRUPE_E_CANCELLED, .text = "given up by the caller"};
    drupe_failure failure;
    OK(drupe_event_open("signal", 77, &opened));
    OK(submit_mad(b, b->queue, memory, memory, N, 1, 1, &opened, 1, &held));
    OK(drupe_event_finish(opened, &error));
    OK(drupe_event_finish(opened, NULL));
    assert_int_equal(drupe_event_state_of(opened), DRUPE_EVENT_FAILED);
    assert_true(drupe_failure_take(&failure));
    assert_string_equal(failure.label, "signal");
    assert_int_equal(failure.site, 77);
    assert_int_equal(failure.error.status, DRUPE_E_CANCELLED);
    FAILS(drupe_event_wait(held, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, "'signal' failed: given up");
    FAILS(drupe_event_wait(opened, DRUPE_FOREVER), DRUPE_E_CANCELLED, "given up");
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    expect_u64(b->queue, memory, 1, N);
    drupe_event_release(opened);
    drupe_event_release(held);
    drupe_memory_release(memory);
}

/* A place on a queue for work of the caller: in order, once, and nothing behind it starts before. */
static void turns(struct suite *suite, uint32_t flags)
{
    struct bench *b = &suite->bench;
    drupe_queue *queue;
    drupe_watch *watch;
    drupe_event *turn, *behind;
    struct gate gate;
    gate_init(&gate);
    OK(drupe_watch_open(NULL, NULL, &watch));
    OK(drupe_queue_open(b->context, b->device, flags, &queue));
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    fill_u64(b->queue, memory, 1, N);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_event *stop = submit_gate(queue, &gate);
    drupe_submission s = {.queue = queue, .label = "mine", .waits = &stop, .nwaits = 1};
    OK(drupe_submit_turn(&s, &turn));
    OK(submit_mad(b, queue, memory, memory, N, 1, 1, &turn, 1, &behind));
    OK(drupe_watch_turn(watch, turn, &gate));
    assert_false(readable(watch, 20));
    FAILS(drupe_event_finish(turn, NULL), DRUPE_E_INVALID, "turn");
    gate_open(&gate);
    take(watch, turn, &gate);
    assert_int_equal(drupe_event_state_of(turn), DRUPE_EVENT_RUNNING);
    OK(drupe_watch_add(watch, turn, NULL));
    assert_false(readable(watch, 20));
    FAILS(drupe_event_wait(behind, 10000000), DRUPE_E_TIMEOUT, "");
    OK(drupe_event_finish(turn, NULL));
    OK(drupe_event_wait(behind, DRUPE_FOREVER));
    take(watch, turn, NULL);
    expect_u64(b->queue, memory, 2, N);
    drupe_event_release(turn);
    drupe_event_release(behind);
    /* Given up before its turn. */
    drupe_event *opened;
    drupe_error error = {.status = DRUPE_E_CANCELLED, .text = "no longer wanted"};
    OK(drupe_event_open(NULL, 0, &opened));
    s = (drupe_submission){.queue = queue, .label = "mine", .waits = &opened, .nwaits = 1};
    OK(drupe_submit_turn(&s, &turn));
    OK(submit_mad(b, queue, memory, memory, N, 1, 1, &turn, 1, &behind));
    OK(drupe_event_finish(turn, &error));
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, "no longer wanted");
    FAILS(drupe_event_wait(turn, DRUPE_FOREVER), DRUPE_E_CANCELLED, "no longer wanted");
    OK(drupe_event_finish(opened, NULL));
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    drupe_event *events[] = {stop, turn, behind, opened};
    for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    drupe_memory_release(memory);
    drupe_queue_release(queue);
    drupe_watch_close(watch, NULL);
    gate_destroy(&gate);
}

static void turn_in_order(struct suite *suite)
{
    turns(suite, DRUPE_QUEUE_DEFAULT);
}

static void turn_unordered(struct suite *suite)
{
    turns(suite, DRUPE_QUEUE_OUT_OF_ORDER);
}

/* --- Hints and places ----------------------------------------------------------------------------------- */

static void hints(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_mem_kind kinds[] = {DRUPE_MEM_DEVICE, kind_or_device(&suite->bench, DRUPE_MEM_SHARED)};
    char host[16] = {0};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        drupe_memory *memory = new_memory(b->queue, kinds[i], N * 8);
        char *pointer = drupe_memory_pointer(memory);
        drupe_event *first, *second;
        fill_u64(b->queue, memory, 4, N);
        drupe_submission s = {.queue = b->queue};
        OK(drupe_submit_prefetch(&s, pointer, N * 8, &first));
        s = (drupe_submission){.queue = b->queue, .waits = &first, .nwaits = 1};
        OK(drupe_submit_advise(&s, pointer + 8, 8, 0, &second));
        OK(drupe_submit_prefetch(&s, pointer, 0, NULL));
        OK(drupe_event_wait(second, DRUPE_FOREVER));
        FAILS(drupe_submit_prefetch(&s, pointer, N * 8 + 8, NULL), DRUPE_E_OUT_OF_RANGE, "");
        FAILS(drupe_submit_advise(&s, host, sizeof host, 0, NULL), DRUPE_E_INVALID, "not in USM");
        expect_u64(b->queue, memory, 4, N);
        drupe_event_release(first);
        drupe_event_release(second);
        drupe_memory_release(memory);
    }
}

static void failure_has_its_site(struct suite *suite)
{
    drupe_submission s = {.queue = suite->bench.queue, .label = "sited", .site = 4711};
    struct gate gate;
    gate_init(&gate);
    drupe_event *event;
    drupe_failure failure;
    drupe_event *stop = submit_gate(suite->bench.queue, &gate);
    OK(drupe_submit_host(&s, fail_as_planned, NULL, &event));
    gate_open(&gate);
    while (drupe_event_state_of(event) != DRUPE_EVENT_FAILED) drupe_queue_collect(suite->bench.queue);
    assert_true(drupe_failure_take(&failure));
    assert_int_equal(failure.site, 4711);
    assert_string_equal(failure.label, "sited");
    drupe_event_release(stop);
    drupe_event_release(event);
    gate_destroy(&gate);
}

const conformance_case cases_watch[] = {
    {"watch_takes_what_is_over", takes_what_is_over},
    {"watch_closing_gives_back", closing_gives_back},
    {"watch_many", watches_many},
    {"opened_event_holds", opened_event_holds},
    {"opened_event_fails", opened_event_fails},
    {"turn_in_order", turn_in_order},
    {"turn_unordered", turn_unordered},
    {"hints", hints},
    {"failure_has_its_site", failure_has_its_site},
    {NULL, NULL},
};
