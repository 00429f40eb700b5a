/* The layer of tests: which table core calls through, and failures on demand. */
#include "base/base.h"
#include "drupe/park.h"
#include "layers/entries.h"
#include "layers/fault_layer.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 1000000000u
#define LONG   (60ull * SECOND)

#define OK(expression) check((expression), #expression, __LINE__)

static void check(drupe_status status, const char *what, int line)
{
    if (status != DRUPE_OK) fail_msg("line %d: %s: %s", line, what, drupe_error_last()->text);
}

static drupe_queue *open_queue(void)
{
    drupe_device *device;
    drupe_queue *queue;
    OK(drupe_device_select("host", &device));
    OK(drupe_device_queue(device, &queue));
    drupe_device_release(device);
    return queue;
}

static drupe_status submit(drupe_queue *queue, drupe_event **event)
{
    drupe_submission s = {.queue = queue};
    return drupe_submit_barrier(&s, event);
}

static const drupe_backend *table_of(drupe_queue *queue)
{
    return ((const drupe_object *)(const void *)queue)->backend;
}

static int close_library(void **state)
{
    (void)state;
    OK(drupe_fault_plan(NULL));
    drupe_fault_layer(false);
    assert_int_equal(drupe_library_close(SECOND), 0);
    return 0;
}

static void without_layers_core_calls_the_backend(void **state)
{
    (void)state;
    drupe_queue *queue = open_queue();
    assert_ptr_equal(table_of(queue), drupe_backends[0]);
    drupe_queue_release(queue);
}

static void with_a_layer_absent_entries_stay_absent(void **state)
{
    (void)state;
    drupe_fault_layer(true);
    drupe_queue *queue = open_queue();
    const drupe_backend *table = table_of(queue), *below = drupe_backends[0];
    assert_ptr_not_equal(table, below);
    assert_true(table->submit_barrier != below->submit_barrier);
#define SAME_ABSENCE(result, name, ...) assert_int_equal(table->name == NULL, below->name == NULL);
    DRUPE_ENTRIES_SLOT(SAME_ABSENCE)
    DRUPE_ENTRIES_OBJECT(SAME_ABSENCE)
    assert_null(table->queue_flush);
    drupe_queue_release(queue);
}

static void the_layer_changes_when_the_backend_is_loaded_again(void **state)
{
    (void)state;
    drupe_fault_layer(true);
    drupe_queue *queue = open_queue();
    const drupe_backend *table = table_of(queue);
    drupe_queue_release(queue);
    drupe_fault_layer(false);
    assert_int_equal(drupe_library_close(SECOND), 0);
    queue = open_queue();
    assert_ptr_equal(table_of(queue), drupe_backends[0]);
    drupe_queue_release(queue);
    drupe_fault_layer(true);
    assert_int_equal(drupe_library_close(SECOND), 0);
    queue = open_queue();
    assert_ptr_equal(table_of(queue), table);
    drupe_queue_release(queue);
}

static void plans_are_read(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "any:1",
                                       "submit_kernel:3=NO_MEMORY",
                                       "mem_alloc:2+",
                                       "event:1=late",
                                       "device:lost@7",
                                       "random:3:0.5",
                                       "any:1, load:2"};
    static const char *const bad[] = {"x",          "any",           "any:",     "any:0",
                                      "any:1=WHAT", "event:1x",      "device:7", "device:lost@0",
                                      "random:1:2", "queue_close:1", "nothing:1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) OK(drupe_fault_plan(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (drupe_fault_plan(bad[i]) != DRUPE_E_INVALID) fail_msg("'%s' was taken", bad[i]);
        assert_non_null(strstr(drupe_error_last()->text, bad[i]));
    }
    char many[65 * sizeof "any:1,"] = "";
    for (int i = 0; i < 65; i++) {
        if (i == 64) OK(drupe_fault_plan(many));
        memcpy(many + strlen(many), "any:1,", sizeof "any:1,");
    }
    assert_int_equal(drupe_fault_plan(many), DRUPE_E_INVALID);
}

static void the_chosen_call_fails(void **state)
{
    (void)state;
    drupe_fault_layer(true);
    drupe_queue *queue = open_queue();
    OK(drupe_fault_plan("submit_barrier:2=BUSY"));
    OK(submit(queue, NULL));
    assert_int_equal(submit(queue, NULL), DRUPE_E_BUSY);
    assert_non_null(strstr(drupe_error_last()->text, "submit_barrier, call 2"));
    OK(submit(queue, NULL));
    assert_int_equal(drupe_fault_calls("submit_barrier"), 3);
    assert_int_equal(drupe_fault_made(), 1);
    OK(drupe_fault_plan(NULL));
    OK(drupe_queue_wait(queue, SECOND));
    drupe_queue_release(queue);
}

static void memory_runs_out(void **state)
{
    (void)state;
    drupe_fault_layer(true);
    drupe_queue *queue = open_queue();
    OK(drupe_fault_plan("mem_alloc:1+=NO_MEMORY"));
    drupe_memory *memory;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(drupe_memory_alloc(queue, DRUPE_MEM_SHARED, 1u << 20, 0, &memory),
                         DRUPE_E_NO_MEMORY);
    }
    drupe_queue_release(queue);
}

static void an_event_fails_late(void **state)
{
    (void)state;
    drupe_fault_layer(true);
    drupe_queue *queue = open_queue();
    drupe_event *good, *bad;
    OK(drupe_fault_plan("event:2=late"));
    OK(submit(queue, &good));
    OK(submit(queue, &bad));
    OK(drupe_event_wait(good, SECOND));
    assert_int_equal(drupe_event_wait(bad, SECOND), DRUPE_E_INTERNAL);
    assert_non_null(strstr(drupe_error_last()->text, "late"));
    drupe_event_release(good);
    drupe_event_release(bad);
    OK(drupe_queue_wait(queue, SECOND));
    drupe_queue_release(queue);
}

/* A place for work of the caller behind work without an event, so that core has to put a barrier before it;
 * and a fill behind that. All three are submitted before the barrier, which is put once the gate is finished.
 */
struct line {
    drupe_queue *queue;
    drupe_memory *memory;
    drupe_event *gate, *turn, *behind;
};

static struct line begin_line(void)
{
    struct line line = {0};
    static const uint64_t before = 1, after = 2;
    drupe_fault_layer(true);
    line.queue = open_queue();
    OK(drupe_memory_alloc(line.queue, DRUPE_MEM_SHARED, 8, 0, &line.memory));
    void *target = drupe_memory_pointer(line.memory);
    drupe_submission s = {.queue = line.queue};
    OK(drupe_submit_fill(&s, target, &before, 8, 8, NULL));
    OK(drupe_queue_wait(line.queue, LONG));
    OK(submit(line.queue, NULL));
    OK(drupe_event_open("gate", 0, &line.gate));
    s.waits = &line.gate;
    s.nwaits = 1;
    OK(drupe_submit_turn(&s, &line.turn));
    s.nwaits = 0;
    OK(drupe_submit_fill(&s, target, &after, 8, 8, &line.behind));
    return line;
}

static void end_line(struct line *line, const char *why)
{
    assert_int_equal(drupe_event_wait(line->behind, LONG), DRUPE_E_DEPENDENCY);
    if (!strstr(drupe_error_last()->text, why)) fail_msg("%s", drupe_error_last()->text);
    assert_int_equal(*(uint64_t *)drupe_memory_pointer(line->memory), 1);
    drupe_failure failure;
    assert_false(drupe_failure_take(&failure)); /* there was one, and it was told */
    OK(drupe_fault_plan(NULL));
    drupe_event_release(line->gate);
    drupe_event_release(line->turn);
    drupe_event_release(line->behind);
    OK(drupe_queue_wait(line->queue, LONG));
    drupe_memory_release(line->memory);
    drupe_queue_release(line->queue);
}

static void what_a_barrier_of_core_was_put_before_fails_with_it(void **state)
{
    (void)state;
    struct line line = begin_line();
    OK(drupe_fault_plan("event:1=late"));
    OK(drupe_event_finish(line.gate, NULL));
    assert_int_equal(drupe_event_wait(line.turn, LONG), DRUPE_E_DEPENDENCY);
    assert_non_null(strstr(drupe_error_last()->text, "Planned late failure"));
    end_line(&line, "Planned late failure");
}

static void work_before_which_no_barrier_can_be_put_says_why(void **state)
{
    (void)state;
    struct line line = begin_line();
    OK(drupe_fault_plan("submit_barrier:1=BUSY"));
    OK(drupe_event_finish(line.gate, NULL));
    assert_int_equal(drupe_event_wait(line.turn, LONG), DRUPE_E_BUSY);
    assert_non_null(strstr(drupe_error_last()->text, "submit_barrier, call 1"));
    end_line(&line, "submit_barrier, call 1");
}

static drupe_status pass(void *user)
{
    while (!atomic_load((_Atomic(bool) *)user)) sched_yield();
    return DRUPE_OK;
}

/* Work of the caller behind work that fails, for a reason that was told before the former was submitted. */
static void after_a_failure_was_told_the_queue_works_on(void **state)
{
    (void)state;
    _Atomic(bool) open[2] = {false, false};
    drupe_queue *queues[3];
    drupe_event *first, *bad, *second, *dependent, *turn;
    drupe_fault_layer(true);
    queues[0] = open_queue();
    for (size_t i = 1; i < 3; i++)
        OK(drupe_queue_open(drupe_queue_context(queues[0]), drupe_queue_device(queues[0]), 0, &queues[i]));
    OK(drupe_fault_plan("event:2=late,event:4=late"));
    drupe_submission s = {.queue = queues[1]};
    OK(drupe_submit_host(&s, pass, (void *)&open[0], &first));
    OK(submit(queues[1], &bad));
    s.queue = queues[2];
    OK(drupe_submit_host(&s, pass, (void *)&open[1], &second));
    drupe_event *const waits[] = {bad, second};
    s = (drupe_submission){.queue = queues[0], .waits = waits, .nwaits = 2};
    OK(drupe_submit_barrier(&s, &dependent));
    atomic_store(&open[0], true);
    assert_int_equal(drupe_event_wait(bad, LONG), DRUPE_E_INTERNAL);
    s = (drupe_submission){.queue = queues[0]};
    OK(drupe_submit_turn(&s, &turn));
    atomic_store(&open[1], true);
    while (drupe_event_state_of(turn) == DRUPE_EVENT_QUEUED) sched_yield();
    OK(drupe_event_finish(turn, NULL));
    OK(drupe_event_wait(turn, LONG));
    assert_int_equal(drupe_event_wait(dependent, LONG), DRUPE_E_DEPENDENCY);
    drupe_event *events[] = {first, bad, second, dependent, turn};
    for (size_t i = 0; i < DRUPE_COUNT_OF(events); i++) drupe_event_release(events[i]);
    for (size_t i = 0; i < 3; i++) OK(drupe_queue_wait(queues[i], LONG));
    for (size_t i = 0; i < 3; i++) drupe_queue_release(queues[i]);
}

/* The caller gives up what stands further back; that does not hide what fails before it. */
static void the_first_of_two_failures_counts(void **state)
{
    (void)state;
    struct line line = begin_line();
    drupe_submission s = {.queue = line.queue};
    drupe_event *last;
    const drupe_error given_up = {.status = DRUPE_E_INVALID, .text = "given up"};
    OK(drupe_submit_turn(&s, &last));
    OK(drupe_event_finish(last, &given_up));
    OK(drupe_fault_plan("event:1=late"));
    OK(drupe_event_finish(line.gate, NULL));
    assert_int_equal(drupe_event_wait(last, LONG), DRUPE_E_INVALID);
    end_line(&line, "Planned late failure");
    drupe_event_release(last);
}

static void a_device_is_lost(void **state)
{
    (void)state;
    drupe_fault_layer(true);
    drupe_queue *queue = open_queue();
    drupe_event *event;
    OK(drupe_fault_plan("device:lost@2"));
    OK(submit(queue, NULL));
    assert_int_equal(submit(queue, &event), DRUPE_E_DEVICE_LOST);
    drupe_memory *memory;
    assert_int_equal(drupe_memory_alloc(queue, DRUPE_MEM_SHARED, 1u << 20, 0, &memory), DRUPE_E_DEVICE_LOST);
    OK(drupe_fault_plan(NULL));
    drupe_queue_release(queue);
}

#define PIECES 3
#define BYTES  5000

/* Byte k of piece i; `read` compares, else it is written. */
static void all_bytes(drupe_queue *queue, drupe_memory **pieces, bool read)
{
    unsigned char bytes[BYTES], seen[BYTES] = {0};
    drupe_submission s = {.queue = queue};
    for (size_t i = 0; i < PIECES; i++) {
        drupe_event *event;
        void *there = drupe_memory_pointer(pieces[i]);
        for (size_t k = 0; k < BYTES; k++) bytes[k] = (unsigned char)(k * (i + 3));
        OK(read ? drupe_submit_copy(&s, seen, there, BYTES, &event)
                : drupe_submit_copy(&s, there, bytes, BYTES, &event));
        OK(drupe_event_wait(event, LONG));
        drupe_event_release(event);
        if (read) assert_memory_equal(seen, bytes, BYTES);
    }
    OK(drupe_queue_wait(queue, LONG));
}

/* Whichever copy or allocation fails on the way there or back: all is there still, and the next try succeeds.
 */
static void what_fails_in_parking_loses_nothing(void **state)
{
    (void)state;
    drupe_memory *pieces[PIECES];
    char plan[32];
    setenv("DRUPE_PINNED", "0", 1); /* the backend copies */
    drupe_fault_layer(true);
    drupe_queue *queue = open_queue();
    drupe_device *device = drupe_queue_device(queue);
    for (size_t i = 0; i < PIECES; i++) OK(drupe_memory_alloc(queue, DRUPE_MEM_DEVICE, BYTES, 0, &pieces[i]));
    all_bytes(queue, pieces, false);
    for (int call = 0; call < 2 * PIECES; call++) {
        OK(drupe_queue_wait(queue, LONG));
        snprintf(plan, sizeof plan, "submit_copy:%d=INTERNAL", call + 1);
        OK(drupe_fault_plan(plan));
        drupe_status there = drupe_park(device, 0, NULL);
        assert_int_equal(there, call < PIECES ? DRUPE_E_INTERNAL : DRUPE_OK);
        assert_int_equal(drupe_device_parked(device), there == DRUPE_OK);
        if (there == DRUPE_OK) {
            assert_int_equal(drupe_unpark(device, NULL), DRUPE_E_INTERNAL);
            assert_non_null(strstr(drupe_error_last()->text, "as before"));
            assert_true(drupe_device_parked(device));
        }
        OK(drupe_fault_plan(NULL));
        all_bytes(queue, pieces, true);
    }
    for (int call = 0; call < PIECES; call++) {
        OK(drupe_park(device, 0, NULL));
        snprintf(plan, sizeof plan, "mem_alloc:%d=NO_MEMORY", call + 1);
        OK(drupe_fault_plan(plan));
        assert_int_equal(drupe_unpark(device, NULL), DRUPE_E_NO_MEMORY);
        OK(drupe_fault_plan(NULL));
        all_bytes(queue, pieces, true);
    }
    for (size_t i = 0; i < PIECES; i++) drupe_memory_release(pieces[i]);
    drupe_queue_release(queue);
    unsetenv("DRUPE_PINNED");
}

static void chance_repeats_itself(void **state)
{
    (void)state;
    uint64_t seen[2];
    drupe_fault_layer(true);
    drupe_queue *queue = open_queue();
    for (int run = 0; run < 2; run++) {
        OK(drupe_fault_plan("random:11:0.3"));
        for (int i = 0; i < 40; i++) {
            if (submit(queue, NULL) == DRUPE_OK) continue;
            assert_int_equal(drupe_error_last()->status, DRUPE_E_INTERNAL);
        }
        seen[run] = drupe_fault_made();
        OK(drupe_fault_plan(NULL));
        OK(drupe_queue_wait(queue, SECOND));
    }
    assert_int_equal(seen[0], seen[1]);
    assert_uint_in_range(seen[0], 3, 30);
    drupe_queue_release(queue);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(without_layers_core_calls_the_backend, close_library),
        cmocka_unit_test_teardown(with_a_layer_absent_entries_stay_absent, close_library),
        cmocka_unit_test_teardown(the_layer_changes_when_the_backend_is_loaded_again, close_library),
        cmocka_unit_test_teardown(plans_are_read, close_library),
        cmocka_unit_test_teardown(the_chosen_call_fails, close_library),
        cmocka_unit_test_teardown(memory_runs_out, close_library),
        cmocka_unit_test_teardown(an_event_fails_late, close_library),
        cmocka_unit_test_teardown(what_a_barrier_of_core_was_put_before_fails_with_it, close_library),
        cmocka_unit_test_teardown(work_before_which_no_barrier_can_be_put_says_why, close_library),
        cmocka_unit_test_teardown(after_a_failure_was_told_the_queue_works_on, close_library),
        cmocka_unit_test_teardown(the_first_of_two_failures_counts, close_library),
        cmocka_unit_test_teardown(a_device_is_lost, close_library),
        cmocka_unit_test_teardown(what_fails_in_parking_loses_nothing, close_library),
        cmocka_unit_test_teardown(chance_repeats_itself, close_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
