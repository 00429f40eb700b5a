/* What a submission meets on its way onto the queue: copies from plain host memory on a GPU, contents that
 * fail meanwhile, and checked mode. */
#include "queue/script_bench.h"

static drupe_memory *memory;

static int add_memory(int result)
{
    if (result == 0) memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, 64);
    return result;
}

static int setup(void **state)
{
    return add_memory(script_setup(state));
}

static int setup_gpu(void **state)
{
    return add_memory(script_setup_gpu(state));
}

static int teardown(void **state)
{
    drupe_memory_release(memory);
    return script_teardown(state);
}

/* --- Copies from and to plain host memory ----------------------------------------------------------------
 */

static char plain[64];

static drupe_status copy_out(drupe_event **event)
{
    const drupe_submission s = {.queue = bench.queue};
    return drupe_submit_copy(&s, plain, drupe_memory_pointer(memory), sizeof plain, event);
}

static drupe_event *copy_in(void)
{
    const drupe_submission s = {.queue = bench.queue};
    drupe_event *event;
    OK(drupe_submit_copy(&s, drupe_memory_pointer(memory), plain, sizeof plain, &event));
    return event;
}

/* Its driver may read the source as the copy is queued, which the copy before it is to write. */
static void copies_from_the_host_wait_for_the_last_to_it(void **state)
{
    (void)state;
    OK(copy_out(NULL));
    drupe_event *out = drupe_event_retain(bench.queue->order.tail->event);
    assert_non_null(out); /* though nobody asked for one */
    drupe_event *kernel_like = script_fill(bench.queue, NULL), *in = copy_in(), *last = copy_in();
    assert_int_equal(drupe_event_state_of(kernel_like), DRUPE_EVENT_SUBMITTED);
    assert_int_equal(drupe_event_state_of(in), DRUPE_EVENT_QUEUED);
    assert_int_equal(drupe_event_state_of(last), DRUPE_EVENT_QUEUED);
    script_end(out);
    while (drupe_event_state_of(last) == DRUPE_EVENT_QUEUED) continue; /* the waiter launches them */
    assert_int_equal(drupe_event_state_of(in), DRUPE_EVENT_SUBMITTED);
    test_script_finish(kernel_like, true);
    test_script_finish(in, true);
    script_end(last);
    drupe_event_release(kernel_like);
    drupe_event_release(in);
    drupe_queue_collect(bench.queue);
    in = copy_in(); /* nothing is fetched any more */
    assert_int_equal(drupe_event_state_of(in), DRUPE_EVENT_SUBMITTED);
    script_end(in);
}

static void a_cpu_reads_the_host_in_its_turn(void **state)
{
    (void)state;
    OK(copy_out(NULL));
    assert_null(bench.queue->order.tail->event);
    drupe_event *in = copy_in();
    assert_int_equal(drupe_event_state_of(in), DRUPE_EVENT_SUBMITTED);
    script_end(in);
}

static drupe_status copy_at_once(const drupe_submit *s, void *dst, const void *src, size_t bytes)
{
    (void)dst, (void)src, (void)bytes;
    *s->done = true;
    return DRUPE_OK;
}

static void what_was_copied_at_once_is_not_waited_for(void **state)
{
    (void)state;
    drupe_event *out;
    bench_table.submit_copy = copy_at_once;
    OK(copy_out(&out));
    assert_int_equal(drupe_event_state_of(out), DRUPE_EVENT_COMPLETE);
    assert_null(bench.queue->names.fetch);
    bench_table.submit_copy = bench_real->submit_copy;
    drupe_event *in = copy_in();
    assert_int_equal(drupe_event_state_of(in), DRUPE_EVENT_SUBMITTED);
    script_end(in);
    drupe_event_release(out);
}

/* --- Contents that fail meanwhile ------------------------------------------------------------------------
 */

static drupe_event *writer;

static void find_failure(void)
{
    assert_int_equal(drupe_event_state_of(writer), DRUPE_EVENT_FAILED);
}

static void tell_failure(void)
{
    FAILS(drupe_event_wait(writer, LONG), DRUPE_E_INTERNAL, "The script says no");
}

/* Between the look at what is read and the queue's lock another thread finds that it was not written. */
static void what_fails_meanwhile_is_not_read(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_event *reader;
    for (int i = 0; i < 2; i++) {
        OK(bench_fill(other, memory, 1, NULL, &writer));
        test_script_finish(writer, false);
        script_at_lock(&bench.queue->lock, i ? tell_failure : find_failure);
        if (i) {
            FAILS(copy_out(&reader), DRUPE_E_DEPENDENCY, "This memory was to be written by 'fill'");
            assert_null(reader);
        } else {
            OK(copy_out(&reader));
            FAILS(drupe_event_wait(reader, LONG), DRUPE_E_DEPENDENCY, "The script says no");
            drupe_event_release(reader);
        }
        assert_int_equal(script_take_failures(), 0);
        drupe_event_release(writer);
        drupe_memory_accept(memory);
    }
    script.finishes = true;
    drupe_queue_release(other);
}

/* --- Checked mode ----------------------------------------------------------------------------------------
 */

static int setup_checked(void **state)
{
    const int result = setup(state);
    drupe_check_begin();
    atomic_store(&drupe_checker_now, &script_checker);
    return result;
}

static int teardown_checked(void **state)
{
    drupe_check_end();
    atomic_store(&drupe_checker_now, NULL);
    return teardown(state);
}

static size_t released;

static void count_release(void *unused)
{
    (void)unused;
    released++;
}

static void checked_mode_may_refuse_a_submission(void **state)
{
    (void)state;
    drupe_keep keeps[] = {{&released, count_release}, {&released, NULL}};
    const drupe_submission s = {.queue = bench.queue, .keeps = keeps, .nkeeps = 2};
    drupe_event *event;
    released = 0;
    for (int i = 0; i < 2; i++) {
        script_told.submission_answer = i ? DRUPE_OK : DRUPE_E_CHECK;
        if (i) {
            OK(drupe_submit_barrier(&s, &event));
            script_end(event);
            drupe_queue_collect(bench.queue);
        } else {
            FAILS(drupe_submit_barrier(&s, &event), DRUPE_E_CHECK, "Checked mode says no.");
            assert_null(event);
        }
        assert_int_equal(script_told.submissions, i + 1);
        assert_int_equal(script_told.dropped, i + 1);
        assert_int_equal(released, i + 1);
    }
}

static void checked_mode_hears_of_what_the_caller_knows(void **state)
{
    (void)state;
    drupe_event *event = script_fill(bench.queue, NULL);
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_SUBMITTED);
    assert_int_equal(script_told.events, 0);
    test_script_finish(event, true);
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    assert_int_equal(script_told.events, 1);
    OK(drupe_event_wait(event, LONG)); /* though it is known to be over */
    assert_int_equal(script_told.events, 2);
    script_told.memory_answer = DRUPE_E_CHECK;
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_CHECK, "Checked mode says no.");
    script_told.memory_answer = DRUPE_OK;
    drupe_event_release(event);
}

static drupe_status fill_at_once(const drupe_submit *s, void *dst, const void *pattern, size_t pattern_size,
                                 size_t bytes)
{
    (void)dst, (void)pattern, (void)pattern_size, (void)bytes;
    *s->done = true;
    return DRUPE_OK;
}

static void checked_mode_hears_of_what_did_not_run(void **state)
{
    (void)state;
    drupe_event *failed = script_fill(bench.queue, NULL);
    test_script_finish(failed, false);
    assert_int_equal(drupe_event_state_of(failed), DRUPE_EVENT_FAILED);
    drupe_event *behind = script_fill(bench.queue, NULL);
    assert_int_equal(script_told.skipped, 1);
    FAILS(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY, "The script says no");
    assert_int_equal(script_take_failures(), 0);
    bench_table.submit_fill = fill_at_once;
    drupe_event *runs = script_fill(bench.queue, NULL);
    assert_int_equal(drupe_event_state_of(runs), DRUPE_EVENT_COMPLETE);
    assert_int_equal(script_told.skipped, 1);
    drupe_event_release(failed);
    drupe_event_release(behind);
    drupe_event_release(runs);
    script.finishes = true;
    OK(drupe_queue_wait(bench.queue, LONG));
}

int main(void)
{
#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, teardown)
#define CHECKED(name)      cmocka_unit_test_setup_teardown(name, setup_checked, teardown_checked)
    const struct CMUnitTest tests[] = {
        TEST(copies_from_the_host_wait_for_the_last_to_it, setup_gpu),
        TEST(a_cpu_reads_the_host_in_its_turn, setup),
        TEST(what_was_copied_at_once_is_not_waited_for, setup_gpu),
        TEST(what_fails_meanwhile_is_not_read, setup),
        CHECKED(checked_mode_may_refuse_a_submission),
        CHECKED(checked_mode_hears_of_what_the_caller_knows),
        CHECKED(checked_mode_hears_of_what_did_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
