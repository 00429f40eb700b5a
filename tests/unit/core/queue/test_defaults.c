/* Default contexts and queues of devices and of their parts: who keeps them, and what fails. */
#include "queue/script_bench.h"

static drupe_status queue_answer;
static size_t context_failures; /* of the next calls */

static drupe_status queue_open(drupe_queue *queue, uint32_t flags)
{
    if (queue_answer != DRUPE_OK) return drupe_error_set(queue_answer, "No queue.");
    return bench_real->queue_open(queue, flags);
}

static drupe_status context_open(drupe_context *context)
{
    if (context_failures) return context_failures--, drupe_error_set(DRUPE_E_INTERNAL, "No context.");
    return bench_real->context_open(context);
}

static drupe_device *part_of(const char *filter)
{
    drupe_device *part;
    OK(drupe_device_select(filter, &part));
    return part;
}

static void a_device_without_a_context_has_no_queue(void **state)
{
    (void)state;
    drupe_device *other = part_of("opencl"); /* whose context nobody has asked for */
    drupe_context *context;
    drupe_queue *queue;
    wrap_plan(WRAP_MALLOC, 1);
    FAILS(drupe_device_queue(other, &queue), DRUPE_E_NO_MEMORY, "No host memory");
    assert_null(queue);
    wrap_plan(WRAP_MALLOC, 1);
    FAILS(drupe_device_context(other, &context), DRUPE_E_NO_MEMORY, "No host memory");
    assert_null(context);
    OK(drupe_device_queue(other, &queue));
    drupe_queue_release(queue);
    drupe_device_release(other);
}

/* A failure of another kind tells nothing of where parts may be used. */
static void whether_parts_stand_alone_is_asked_until_it_is_known(void **state)
{
    (void)state;
    drupe_device *part = part_of("host:cpu:0.0");
    drupe_context *context;
    drupe_queue *queue;
    bench_table.queue_open = queue_open;
    queue_answer = DRUPE_E_NO_MEMORY;
    FAILS(drupe_device_queue(part, &queue), DRUPE_E_NO_MEMORY, "No queue.");
    assert_null(queue);
    queue_answer = DRUPE_OK;
    OK(drupe_device_context(part, &context));
    assert_ptr_equal(context, bench.context); /* they share it */
    drupe_context_release(context);
    drupe_device_release(part);
}

static void a_part_without_its_own_context_has_none(void **state)
{
    (void)state;
    drupe_device *part = part_of("host:cpu:0.0");
    drupe_context *context;
    bench_table.queue_open = script_strict;
    bench_table.context_open = context_open;
    context_failures = 1;
    FAILS(drupe_device_context(part, &context), DRUPE_E_INTERNAL, "No context.");
    assert_null(context);
    OK(drupe_device_context(part, &context));
    assert_ptr_equal(drupe_context_device(context, 0), part);
    drupe_context_release(context);
    drupe_device_release(part);
}

/* --- Kept and borrowed -----------------------------------------------------------------------------------
 */

static void the_library_keeps_those_of_its_devices(void **state)
{
    (void)state;
    drupe_queue *first, *second;
    drupe_context *context;
    assert_non_null(drupe_device_parent(bench.device)); /* though it is a part */
    assert_ptr_equal(drupe_context_device(bench.context, 0), bench.device);
    OK(drupe_device_queue(bench.device, &first));
    const uint32_t number = drupe_queue_number(first);
    drupe_queue_release(first);
    OK(drupe_device_queue(bench.device, &second));
    assert_int_equal(drupe_queue_number(second), number);
    drupe_queue_release(second);
    const drupe_context *const mine = bench.context;
    drupe_context_release(bench.context);
    bench.context = NULL;
    OK(drupe_device_context(bench.device, &context));
    assert_ptr_equal(context, mine);
    bench.context = context;
}

static drupe_device *part;
static drupe_context *fresh_context;
static drupe_queue *fresh_queue;

static void ask_for_context(void)
{
    OK(drupe_device_context(part, &fresh_context));
}

static void ask_for_queue(void)
{
    OK(drupe_device_queue(part, &fresh_queue));
}

/* Parts only borrow theirs: another thread may ask for it while the last owner lets it go. */
static void what_is_about_to_go_is_not_given_out(void **state)
{
    (void)state;
    drupe_context *context;
    drupe_queue *queue;
    bench_table.queue_open = script_strict;
    part = part_of("host:cpu:0.0");
    OK(drupe_device_context(part, &context));
    script_at_lock(NULL, ask_for_context);
    drupe_context_release(context);
    assert_ptr_equal(drupe_context_device(fresh_context, 0), part);
    OK(drupe_device_context(part, &context));
    assert_ptr_equal(context, fresh_context); /* the old one has not taken it along */
    drupe_context_release(context);

    OK(drupe_device_queue(part, &queue));
    const uint32_t number = drupe_queue_number(queue);
    script_at_lock(NULL, ask_for_queue);
    drupe_queue_release(queue);
    assert_int_not_equal(drupe_queue_number(fresh_queue), number);
    OK(drupe_device_queue(part, &queue));
    assert_ptr_equal(queue, fresh_queue);
    drupe_queue_release(queue);
    drupe_queue_release(fresh_queue);
    drupe_context_release(fresh_context);
    drupe_device_release(part);
}

int main(void)
{
#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_device_without_a_context_has_no_queue, script_setup),
        TEST(whether_parts_stand_alone_is_asked_until_it_is_known, script_setup),
        TEST(a_part_without_its_own_context_has_none, script_setup),
        TEST(the_library_keeps_those_of_its_devices, script_setup_part),
        TEST(what_is_about_to_go_is_not_given_out, script_setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
