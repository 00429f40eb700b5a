/* How far a program may be ahead: what is free, whom it waits for, and when it does not. The clock is the
 * test's. */
#include "queue/script_bench.h"
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* --- The clock, what is free, pauses ---------------------------------------------------------------------
 */

/* This thread's clock is ahead by so much, and by another step at each look. */
static _Thread_local uint64_t later, step;
uint64_t __real_drupe_now_ns(void);
uint64_t __wrap_drupe_now_ns(void);
uint64_t __real_drupe_deadline(uint64_t timeout_ns);
uint64_t __wrap_drupe_deadline(uint64_t timeout_ns);
uint64_t __real_drupe_limit_free(drupe_device *root);
uint64_t __wrap_drupe_limit_free(drupe_device *root);

uint64_t __wrap_drupe_now_ns(void)
{
    later += step;
    return __real_drupe_now_ns() + later;
}

uint64_t __wrap_drupe_deadline(uint64_t timeout_ns)
{
    const uint64_t deadline = __real_drupe_deadline(timeout_ns);
    return deadline == UINT64_MAX ? deadline : deadline + later;
}

static bool tells;
static unsigned asked;
static uint64_t free_bytes;

uint64_t __wrap_drupe_limit_free(drupe_device *root)
{
    if (!tells) return __real_drupe_limit_free(root);
    asked++;
    return free_bytes;
}

static unsigned pauses;
static drupe_status pause_answer;
static void (*in_pause)(void);

static drupe_status on_pause(drupe_queue *queue, uint64_t timeout_ns)
{
    (void)queue, (void)timeout_ns;
    pauses++;
    if (in_pause) in_pause();
    return pause_answer;
}

static const drupe_observer pausing = {.pause = on_pause};

static int setup(void **state)
{
    const int result = script_setup(state);
    later = step = 0;
    tells = true;
    asked = pauses = 0;
    free_bytes = 0;
    pause_answer = DRUPE_E_BUSY;
    in_pause = NULL;
    drupe_library_observe(&pausing);
    return result;
}

static int teardown(void **state)
{
    later = step = 0;
    tells = false;
    atomic_store(&drupe_core_forked, false);
    return script_teardown(state);
}

/* --- Memory ----------------------------------------------------------------------------------------------
 */

/* Work keeps these bytes, whose handle is gone; it is a barrier behind `wait`. */
static drupe_event *fly(drupe_queue *queue, drupe_event *const *waits, size_t nwaits)
{
    drupe_memory *memory = bench_shared(80 * MIB);
    drupe_event *event;
    const drupe_keep keep = drupe_memory_keep(memory, queue);
    const drupe_submission s = {
        .queue = queue, .waits = waits, .nwaits = nwaits, .keeps = &keep, .nkeeps = 1};
    OK(drupe_submit_fill(&s, drupe_memory_pointer(script.memory), "x", 1, 64, &event));
    drupe_memory_release(memory);
    return event;
}

/* Once more, though waiting did not help the last time. */
static drupe_status throttle(void)
{
    atomic_store(&bench.device->stuck, 0);
    pauses = 0;
    return drupe_throttle(bench.device, 1);
}

static void what_is_free_is_asked_now_and_then(void **state)
{
    (void)state;
    drupe_event *event = fly(bench.queue, NULL, 0);
    asked = 0;
    atomic_store(&bench.device->free_asked, 0);
    OK(throttle());
    assert_int_equal(asked, 1);
    assert_int_equal(pauses, 1);
    atomic_store(&bench.device->free_asked, drupe_now_ns()); /* just now */
    OK(throttle());
    assert_int_equal(asked, 1);
    later += SECOND;
    free_bytes = 1024 * MIB; /* a good deal more is free by now */
    OK(throttle());
    assert_int_equal(asked, 2);
    assert_int_equal(pauses, 0);
    script_finish_all();
    drupe_event_release(event);
}

static void free_lists_are_as_good_as_free(void **state)
{
    (void)state;
    drupe_memory *idle[2];
    for (size_t i = 0; i < 2; i++) idle[i] = bench_shared(90 * MIB);
    drupe_event *event = fly(bench.queue, NULL, 0);
    free_bytes = 400 * MIB; /* an eighth of it is not enough, with the lists it is */
    OK(throttle());
    assert_int_equal(pauses, 1);
    for (size_t i = 0; i < 2; i++) drupe_memory_release(idle[i]);
    OK(throttle());
    assert_int_equal(pauses, 0);
    script_finish_all();
    drupe_event_release(event);
}

/* The program alone can end it. */
static void nobody_waits_for_its_own_turn(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(80 * MIB);
    const drupe_keep keep = drupe_memory_keep(memory, bench.queue);
    const drupe_submission s = {.queue = bench.queue, .keeps = &keep, .nkeeps = 1};
    drupe_event *turn;
    OK(drupe_submit_turn(&s, &turn));
    drupe_memory_release(memory);
    OK(throttle());
    assert_int_equal(pauses, 0);
    while (drupe_event_state_of(turn) != DRUPE_EVENT_RUNNING) continue;
    OK(drupe_event_finish(turn, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_event_release(turn);
}

static void what_the_program_has_ended_is_not_its_own_any_more(void **state)
{
    (void)state;
    drupe_queue *far = bench_elsewhere();
    drupe_event *waits[2] = {bench_gate()}, *event;
    OK(bench_barrier(far, NULL, NULL));
    OK(bench_barrier(far, NULL, &waits[1])); /* core waits for it */
    event = fly(bench.queue, waits, 2);
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_QUEUED);
    OK(throttle());
    assert_int_equal(pauses, 1); /* for `far` */
    OK(drupe_event_finish(waits[0], NULL));
    test_script_finish(waits[1], true);
    OK(throttle());
    assert_int_equal(pauses, 1); /* for the queue itself */
    script_finish_all();
    OK(drupe_event_wait(event, LONG));
    script_release((drupe_event *[]){waits[0], waits[1], event}, 3);
    drupe_queue_release(far);
}

/* The queues that were opened later are looked at first. */
static drupe_queue *paused_for;

static drupe_status note_queue(drupe_queue *queue, uint64_t timeout_ns)
{
    paused_for = queue;
    return on_pause(queue, timeout_ns);
}

static const drupe_observer noting = {.pause = note_queue};

static void one_of_the_devices_own_queues_is_waited_for(void **state)
{
    (void)state;
    drupe_device *device;
    drupe_context *context;
    drupe_queue *second = script_queue(0), *elsewhere;
    OK(drupe_device_select("opencl", &device));
    OK(drupe_device_context(device, &context));
    OK(drupe_queue_open(context, device, 0, &elsewhere));
    drupe_event *here = fly(bench.queue, NULL, 0), *there = fly(second, NULL, 0);
    drupe_library_observe(&noting);
    OK(throttle());
    assert_int_equal(pauses, 1);
    assert_ptr_equal(paused_for, second);
    script_finish_all();
    script_release((drupe_event *[]){here, there}, 2);
    drupe_context_release(context);
    drupe_device_release(device);
    drupe_queue_release(second);
    drupe_queue_release(elsewhere);
}

static drupe_event *to_finish;

static void finish_one(void)
{
    if (to_finish) test_script_finish(to_finish, true);
    to_finish = NULL;
}

/* Something has come back, though a queue is still at work. */
static void a_little_is_enough(void **state)
{
    (void)state;
    drupe_queue *second = script_queue(0);
    drupe_event *here = fly(bench.queue, NULL, 0), *there;
    OK(bench_barrier(second, NULL, NULL));
    OK(bench_barrier(second, NULL, &there));
    pause_answer = DRUPE_OK;
    in_pause = finish_one;
    to_finish = here;
    OK(throttle());
    assert_int_equal(pauses, 1);
    assert_int_equal(atomic_load(&bench.device->use.flying), 0);
    assert_int_equal(drupe_event_state_of(there), DRUPE_EVENT_SUBMITTED);
    script_finish_all();
    script_release((drupe_event *[]){here, there}, 2);
    drupe_queue_release(second);
}

static void where_nothing_comes_back_the_bound_gives_way(void **state)
{
    (void)state;
    drupe_event *first = fly(bench.queue, NULL, 0), *second;
    pause_answer = DRUPE_OK;
    step = SECOND / 8;
    OK(throttle());
    assert_in_range(pauses, 2, 8); /* until a second has passed */
    const unsigned before = pauses;
    OK(drupe_throttle(bench.device, 1)); /* it did not help: not again */
    assert_int_equal(pauses, before);
    step = 0;
    second = fly(bench.queue, NULL, 0);
    step = SECOND / 8;
    OK(throttle());
    test_script_finish(first, true);
    drupe_queue_collect(bench.queue); /* that came back */
    pauses = 0;
    OK(drupe_throttle(bench.device, 1));
    assert_true(pauses >= 2);
    step = 0;
    script_finish_all();
    script_release((drupe_event *[]){first, second}, 2);
}

static void without_an_observer_the_queue_is_waited_for(void **state)
{
    (void)state;
    drupe_event *event = fly(bench.queue, NULL, 0);
    drupe_library_observe(NULL);
    step = SECOND / 8;
    OK(throttle());
    step = 0;
    assert_true(atomic_load(&bench.device->stuck) > 0);
    script_finish_all();
    OK(throttle());
    assert_int_equal(atomic_load(&bench.device->use.flying), 0);
    drupe_event_release(event);
}

static void room_is_waited_for_until_a_deadline(void **state)
{
    (void)state;
    drupe_event *event = fly(bench.queue, NULL, 0);
    OK(drupe_throttle_room(bench.device, 0)); /* it has passed */
    assert_int_equal(pauses, 0);
    OK(drupe_throttle_room(bench.device, UINT64_MAX)); /* this thread must not wait */
    assert_int_equal(pauses, 1);
    pause_answer = DRUPE_E_CANCELLED;
    FAILS(drupe_throttle_room(bench.device, UINT64_MAX), DRUPE_E_CANCELLED,
          "interrupted while it waited for memory of host:cpu:0");
    script_finish_all();
    OK(drupe_throttle_room(bench.device, UINT64_MAX)); /* it has come back */
    assert_int_equal(atomic_load(&bench.device->use.flying), 0);
    drupe_event_release(event);
}

/* --- Submissions -----------------------------------------------------------------------------------------
 */

static drupe_event *ahead[4];

static void get_ahead(void)
{
    for (size_t i = 0; i < 4; i++) ahead[i] = script_fill(bench.queue, NULL);
}

/* Of the largest products two may be ahead. */
static drupe_status pace(void)
{
    return drupe_queue_pace_heavy(bench.queue, 1e15);
}

static void a_queue_that_hangs_is_waited_for_so_long(void **state)
{
    (void)state;
    get_ahead();
    pause_answer = DRUPE_OK;
    step = 1000 * SECOND;
    OK(pace());
    assert_in_range(pauses, 1, 5000);
    step = 0;
    pauses = 0;
    OK(pace()); /* it did not help: not again */
    assert_int_equal(pauses, 0);
    in_pause = script_finish_all;
    test_script_finish(ahead[0], true);
    OK(pace());
    assert_int_equal(pauses, 1);
    assert_int_equal(drupe_queue_pending(bench.queue), 0);
    script_release(ahead, 4);
}

static void other_devices_are_taken_to_be_faster(void **state)
{
    (void)state;
    get_ahead();
    OK(drupe_queue_pace_heavy(bench.queue, 2e9)); /* two of these on a CPU */
    assert_int_equal(pauses, 1);
    bench.device->type = DRUPE_DEVICE_GPU;
    pauses = 0;
    OK(drupe_queue_pace_heavy(bench.queue, 2e9)); /* 250 on others */
    OK(drupe_queue_pace_heavy(bench.queue, 1e8)); /* as many as of any others */
    assert_int_equal(pauses, 0);
    bench.device->type = DRUPE_DEVICE_CPU;
    script_finish_all();
    script_release(ahead, 4);
}

static void a_forked_child_is_told_so(void **state)
{
    (void)state;
    get_ahead();
    atomic_store(&drupe_core_forked, true);
    const drupe_status status = pace();
    atomic_store(&drupe_core_forked, false);
    FAILS(status, DRUPE_E_UNAVAILABLE, "fork");
    script_finish_all();
    script_release(ahead, 4);
}

/* A thread of the engine serves those who wait. */
static drupe_status on_the_engines_thread(void *unused)
{
    (void)unused;
    DRUPE_TRY(pace());
    return throttle();
}

static void the_engines_threads_do_not_wait(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_event *event, *flying = fly(bench.queue, NULL, 0);
    get_ahead();
    pauses = 0;
    OK(drupe_submit_host(&(drupe_submission){.queue = other}, on_the_engines_thread, NULL, &event));
    OK(drupe_event_wait(event, LONG));
    assert_int_equal(pauses, 0);
    OK(pace());
    assert_int_equal(pauses, 1); /* others do */
    script_finish_all();
    script_release(ahead, 4);
    script_release((drupe_event *[]){event, flying}, 2);
    drupe_queue_release(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_free_is_asked_now_and_then),
        TEST(free_lists_are_as_good_as_free),
        TEST(nobody_waits_for_its_own_turn),
        TEST(what_the_program_has_ended_is_not_its_own_any_more),
        TEST(one_of_the_devices_own_queues_is_waited_for),
        TEST(a_little_is_enough),
        TEST(where_nothing_comes_back_the_bound_gives_way),
        TEST(without_an_observer_the_queue_is_waited_for),
        TEST(room_is_waited_for_until_a_deadline),
        TEST(a_queue_that_hangs_is_waited_for_so_long),
        TEST(other_devices_are_taken_to_be_faster),
        TEST(a_forked_child_is_told_so),
        TEST(the_engines_threads_do_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
