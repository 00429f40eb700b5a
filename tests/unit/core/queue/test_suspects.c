/* Whose failure it was, where a driver does not tell: of devices that are lost, of work without an event, and
 * of GPUs that name no kernel. */
#include "queue/script_bench.h"

static drupe_queue *queue; /* that the test submits to */
static drupe_event *events[3];

static int setup(void **state)
{
    const int result = script_setup(state);
    queue = bench.queue;
    return result;
}

static int teardown(void **state)
{
    script_finish_all();
    script_release(events, DRUPE_COUNT_OF(events));
    memset(events, 0, sizeof events);
    return script_teardown(state);
}

static void submit(size_t index, const char *label)
{
    const drupe_submission s = {.queue = queue, .label = label};
    OK(drupe_submit_fill(&s, drupe_memory_pointer(script.memory), "x", 1, 64, &events[index]));
}

/* --- Of a device that is lost ----------------------------------------------------------------------------
 */

/* What is said of the work that a function of that name may belong to: of event `index`, then `more`. */
static void expect_suspect(const char *function, size_t index, const char *label, const char *more)
{
    char expected[256];
    drupe_text text = {0};
    snprintf(expected, sizeof expected, "'%s' (submission %llu)%s", label,
             (unsigned long long)drupe_event_submission(events[index]), more);
    drupe_loss_suspects(bench.device, function, &text);
    assert_string_equal(drupe_text_get(&text), expected);
    drupe_text_clear(&text);
}

static void expect_no_suspect(const drupe_device *device, const char *function)
{
    drupe_text text = {0};
    drupe_loss_suspects(device, function, &text);
    assert_int_equal(text.length, 0);
    drupe_text_clear(&text);
}

static void the_work_that_is_not_over_is_suspect(void **state)
{
    (void)state;
    expect_no_suspect(bench.device, "");
    submit(0, "scale");
    expect_suspect("", 0, "scale", "");
    submit(1, "add_one");
    expect_suspect("", 0, "scale", " or one of 1 behind it");
    expect_suspect("nothing_of_it", 0, "scale", " or one of 1 behind it");
    test_script_finish(events[0], true);
    expect_suspect("", 1, "add_one", "");
}

static void a_function_names_its_kernel(void **state)
{
    (void)state;
    submit(0, "scale");
    submit(1, "add");
    expect_suspect("_pocl_kernel_add_workgroup", 1, "add", "");
    expect_suspect("add", 1, "add", "");
    expect_suspect("madd", 0, "scale", " or one of 1 behind it");
    expect_suspect("adder", 0, "scale", " or one of 1 behind it");
    /* What proves everything before it leaves no suspects. */
    test_script_finish(events[0], true);
    test_script_finish(events[1], true);
    expect_no_suspect(bench.device, "add");
}

static void queues_of_other_devices_are_not_asked(void **state)
{
    (void)state;
    drupe_device *other;
    submit(0, "scale");
    OK(drupe_device_select("opencl", &other));
    expect_no_suspect(other, "");
    drupe_device_release(other);
}

static void what_core_holds_is_not_suspect(void **state)
{
    (void)state;
    drupe_event *gate;
    OK(drupe_event_open("gate", 0, &gate));
    const drupe_submission s = {.queue = queue, .waits = &gate, .nwaits = 1};
    submit(0, "scale");
    OK(drupe_submit_barrier(&s, &events[1]));
    expect_suspect("", 0, "scale", "");
    OK(drupe_event_finish(gate, NULL));
    drupe_event_release(gate);
}

static void the_first_of_a_name_is_suspect(void **state)
{
    (void)state;
    submit(0, "scale");
    submit(1, "add");
    submit(2, "add");
    expect_suspect("add", 1, "add", "");
}

/* On an out-of-order queue what is over proves nothing. */
static void unordered_work_is_suspect_one_by_one(void **state)
{
    (void)state;
    queue = script_queue(DRUPE_QUEUE_OUT_OF_ORDER);
    submit(0, "scale");
    submit(1, "add");
    test_script_finish(events[1], true);
    expect_suspect("", 0, "scale", "");
    test_script_finish(events[0], true);
    drupe_queue_release(queue);
}

static drupe_queue *submit_on_two(const char *first, const char *second)
{
    submit(0, first);
    queue = script_queue(0); /* the one that was opened last is asked first */
    submit(1, second);
    drupe_queue *other = queue;
    queue = bench.queue;
    return other;
}

static void each_queue_has_its_suspects_unless_one_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *function, *work[2]; /* of the queue that is asked last, and of the one before */
        int told[2];                    /* 1 + which of them is named, in this order; 0: no other */
    } cases[] = {{"", {"scale", "copy"}, {2, 1}},
                 {"add", {"add", "copy"}, {1, 0}},
                 {"add", {"scale", "add"}, {2, 0}},
                 {"add", {"add", "add"}, {2, 1}}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        drupe_queue *other = submit_on_two(cases[i].work[0], cases[i].work[1]);
        drupe_text text = {0}, expected = {0};
        for (size_t k = 0; k < 2 && cases[i].told[k]; k++) {
            const int which = cases[i].told[k] - 1;
            drupe_text_printf(&expected, "%s'%s' (submission %llu)", k ? " or " : "", cases[i].work[which],
                              (unsigned long long)drupe_event_submission(events[which]));
        }
        drupe_loss_suspects(bench.device, cases[i].function, &text);
        assert_string_equal(drupe_text_get(&text), drupe_text_get(&expected));
        drupe_text_clear(&text);
        drupe_text_clear(&expected);
        for (size_t k = 0; k < 2; k++) {
            test_script_finish(events[k], true);
            drupe_event_release(events[k]);
            events[k] = NULL;
        }
        drupe_queue_release(other);
    }
}

/* --- Of work without an event ----------------------------------------------------------------------------
 */

static const char *failure_text; /* of the next wait for the driver's queue, which fails */

static drupe_status queue_wait(drupe_queue *of, uint64_t timeout_ns)
{
    if (!failure_text) return bench_real->queue_wait(of, timeout_ns);
    drupe_error_set(DRUPE_E_INTERNAL, "%s", failure_text);
    failure_text = NULL;
    return DRUPE_E_INTERNAL;
}

/* Cells are numbers. */
static uintptr_t cell;

static void *cell_retain(void)
{
    return (void *)cell;
}

static void cell_release(void *unused)
{
    (void)unused;
}

static uint32_t cell_number(void *of)
{
    return (uint32_t)(uintptr_t)of;
}

static unsigned shares;

static void *cell_share(void *of)
{
    shares++;
    return of;
}

static bool failed(const drupe_failure *unused)
{
    (void)unused;
    return false;
}

static const drupe_observer observer = {.cell_retain = cell_retain,
                                        .cell_release = cell_release,
                                        .cell_number = cell_number,
                                        .failed = failed,
                                        .cell_share = cell_share};

static void submit_silently(const char *label, uintptr_t of_cell)
{
    const drupe_submission s = {.queue = queue, .label = label};
    cell = of_cell;
    OK(drupe_submit_fill(&s, drupe_memory_pointer(script.memory), "x", 1, 64, NULL));
    cell = 0;
}

/* The failure of silent work that a wait for the queue tells. */
static drupe_failure silent_failure(const char *text)
{
    drupe_failure failure, cause;
    bench_table.queue_wait = queue_wait;
    script.finishes = true;
    failure_text = text;
    assert_int_equal(drupe_queue_wait(queue, LONG), DRUPE_E_INTERNAL);
    assert_true(drupe_failure_last(&failure, &cause));
    OK(drupe_queue_wait(queue, LONG));
    drupe_queue_collect(queue);
    script.finishes = false;
    drupe_memory_accept(script.memory);
    return failure;
}

static void suspects_of_one_cell_are_told_there(void **state)
{
    (void)state;
    static const struct {
        uintptr_t first, second, third;
        uint32_t expected;
        const char *label;
    } cases[] = {{0, 7, 7, 0, "one of 3 submissions"},
                 {7, 7, 7, 7, "one of 3 submissions"},
                 {7, 8, 7, 0, "one of 3 submissions"}};
    drupe_library_observe(&observer);
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        submit_silently("first", cases[i].first);
        submit_silently("second", cases[i].second);
        submit_silently("third", cases[i].third);
        shares = 0;
        drupe_failure failure = silent_failure("Something failed.");
        assert_int_equal(failure.cell_number, cases[i].expected);
        assert_string_equal(failure.label, cases[i].label);
        assert_int_equal(shares, cases[i].expected ? 1 : 0);
    }
    /* The driver names the second one of another cell. */
    submit_silently("first", 7);
    submit_silently("second", 8);
    drupe_failure failure = silent_failure("The work 'second' failed.");
    assert_int_equal(failure.cell_number, 8);
    assert_string_equal(failure.label, "second");
    drupe_library_observe(NULL);
}

/* What has an event has told how it ended, and other queues have failures of their own. */
static void who_has_an_alibi_is_not_suspect(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    submit_silently("culprit", 0);
    submit(0, "innocent");
    test_script_finish(events[0], true);
    assert_int_equal(drupe_event_state_of(events[0]), DRUPE_EVENT_COMPLETE);
    queue = other;
    submit(1, "elsewhere");
    queue = bench.queue;
    submit_silently("accomplice", 0);
    assert_string_equal(silent_failure("Something failed.").label, "one of 2 submissions");
    script_finish_all();
    drupe_queue_release(other);
}

static void without_suspects_the_failure_has_no_name(void **state)
{
    (void)state;
    submit_silently("culprit", 0);
    script.finishes = true;
    OK(drupe_queue_wait(queue, LONG)); /* that is over */
    drupe_error_set(DRUPE_E_INTERNAL, "Something failed.");
    pthread_mutex_lock(&queue->lock);
    drupe_cause *cause = drupe_cause_silent(queue, queue->proof.proven);
    pthread_mutex_unlock(&queue->lock);
    assert_string_equal(cause->what.label, "work without an event");
    assert_string_equal(cause->what.error.text, "Something failed.");
    drupe_cause_report(cause);
    drupe_cause_release(cause);
    /* Nor where the records of some are forgotten. */
    submit_silently("culprit", 0);
    atomic_fetch_add(&drupe_inflight_last, DRUPE_TRACE_RECORDS);
    submit_silently("accomplice", 0);
    assert_string_equal(silent_failure("The work 'accomplice' failed.").label, "work without an event");
}

/* --- Of a GPU that names no kernel -----------------------------------------------------------------------
 */

static void expect_widened(drupe_status status, uint64_t number, const char *more)
{
    char expected[400];
    drupe_error error = {.status = status, .text = "The GPU has faulted."};
    snprintf(expected, sizeof expected, "The GPU has faulted.%s", more);
    drupe_failure_widen(&error, queue, number);
    assert_string_equal(error.text, expected);
}

#define WIDER                                                                                                \
    " The driver does not report which kernel it was: either this one, the first that is not known to have " \
    "finished, or one of the %d submitted after it."

static void later_work_may_be_to_blame_as_well(void **state)
{
    (void)state;
    char wider[400];
    bench_table.gpu_faults_last = true;
    bench.device->type = DRUPE_DEVICE_GPU;
    queue = script_queue(0);
    bench.device->type = DRUPE_DEVICE_CPU;
    submit(0, "first");
    const uint64_t first = drupe_event_submission(events[0]);
    expect_widened(DRUPE_E_DEVICE_LOST, first, ""); /* nothing stands behind it */
    submit(1, "second");
    submit(2, "third");
    snprintf(wider, sizeof wider, WIDER, 2);
    expect_widened(DRUPE_E_DEVICE_LOST, first, wider);
    expect_widened(DRUPE_E_INTERNAL, first, "");                     /* such a failure is its own */
    atomic_fetch_add(&drupe_inflight_last, 2 * DRUPE_TRACE_RECORDS); /* of other queues */
    expect_widened(DRUPE_E_DEVICE_LOST, first, wider);
    script_finish_all();
    drupe_queue_release(queue);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_work_that_is_not_over_is_suspect),
        TEST(a_function_names_its_kernel),
        TEST(queues_of_other_devices_are_not_asked),
        TEST(what_core_holds_is_not_suspect),
        TEST(the_first_of_a_name_is_suspect),
        TEST(unordered_work_is_suspect_one_by_one),
        TEST(each_queue_has_its_suspects_unless_one_is_named),
        TEST(suspects_of_one_cell_are_told_there),
        TEST(who_has_an_alibi_is_not_suspect),
        TEST(without_suspects_the_failure_has_no_name),
        TEST(later_work_may_be_to_blame_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
