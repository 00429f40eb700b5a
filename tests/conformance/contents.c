/* What memory holds that work was to write, and which did not run or failed: no result, and nobody reads it
 * as one. */
#include "conformance.h"

#define N 100

#define REFUSED(expression, text) FAILS(expression, DRUPE_E_DEPENDENCY, text)

static drupe_status copy_out(drupe_queue *queue, drupe_memory *memory, uint64_t *bytes)
{
    drupe_submission s = {.queue = queue};
    DRUPE_TRY(drupe_submit_copy(&s, bytes, drupe_memory_pointer(memory), N * sizeof *bytes, NULL));
    return drupe_queue_wait(queue, DRUPE_FOREVER);
}

static void report_failure(drupe_queue *queue)
{
    FAILS(drupe_queue_wait(queue, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
}

/* Without an event and behind a failure: what was to be filled is refused, named and accepted. */
static void behind_a_failure(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    uint64_t bytes[N];
    drupe_event_release(submit_failure(b->queue, "first"));
    fill_u64(b->queue, pair.a, 7, N);
    report_failure(b->queue);
    REFUSED(drupe_memory_contents(pair.a), "'first'");
    REFUSED(copy_out(b->queue, pair.a, bytes), "'fill', which did not run");
    drupe_failure own, cause;
    assert_true(drupe_failure_last(&own, &cause));
    assert_string_equal(cause.label, "first");
    OK(drupe_memory_contents(pair.b));
    OK(copy_out(b->queue, pair.b, bytes));
    drupe_memory_accept(pair.a);
    OK(copy_out(b->queue, pair.a, bytes));
    assert_int_equal(bytes[0], 1);
    drop_pair(pair);
}

/* A kernel reads what its pointers point to, and writes it unless the compiler says otherwise. */
static void computed_from(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    void *to = drupe_memory_pointer(pair.b), *from = drupe_memory_pointer(pair.a);
    uint64_t count = N, mul = 1, add = 1;
    drupe_arg args[] = {{DRUPE_ARG_POINTER, 0, &to},
                        {DRUPE_ARG_POINTER, 0, &from},
                        {DRUPE_ARG_VALUE, 8, &count},
                        {DRUPE_ARG_VALUE, 8, &mul},
                        {DRUPE_ARG_VALUE, 8, &add}};
    drupe_range range = {.dims = 1, .global = {8}};
    drupe_submission s = {.queue = b->queue};
    drupe_event_release(submit_failure(b->queue, "first"));
    fill_u64(b->queue, pair.a, 7, N);
    report_failure(b->queue);
    REFUSED(drupe_submit_kernel(&s, b->mad, &range, args, COUNT(args), NULL), "It holds no result");
    OK(drupe_memory_contents(pair.b));
    /* What is not read may be written; nothing old remains where all of it is. */
    fill_u64(b->queue, pair.a, 9, N);
    OK(drupe_memory_contents(pair.a));
    OK(drupe_submit_kernel(&s, b->mad, &range, args, COUNT(args), NULL));
    expect_u64(b->queue, pair.b, 10, N);
    drop_pair(pair);
}

/* Partly written over it still holds no result. */
static void partly_replaced(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    const uint64_t half[N / 2] = {0};
    drupe_submission s = {.queue = b->queue};
    drupe_event_release(submit_failure(b->queue, "first"));
    fill_u64(b->queue, pair.a, 7, N);
    report_failure(b->queue);
    OK(drupe_submit_copy(&s, drupe_memory_pointer(pair.a), half, sizeof half, NULL));
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    REFUSED(drupe_memory_contents(pair.a), "'first'");
    uint64_t whole[N] = {0};
    write_memory(b->queue, pair.a, whole, sizeof whole);
    OK(drupe_memory_contents(pair.a));
    drop_pair(pair);
}

/* What reads it before anybody was told fails behind the same cause, and so does what reads that. */
static void passed_on(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *second;
    if (drupe_check_active()) return; /* it is a race, too */
    OK(drupe_queue_open(b->context, b->device, DRUPE_QUEUE_DEFAULT, &second));
    struct pair pair = new_pair(b->queue, N);
    drupe_submission there = {.queue = second};
    drupe_event *failed = submit_failure(b->queue, "first"), *copied;
    fill_u64(b->queue, pair.a, 7, N);
    while (drupe_event_state_of(failed) != DRUPE_EVENT_FAILED) {}
    OK(drupe_submit_copy(&there, drupe_memory_pointer(pair.b), drupe_memory_pointer(pair.a), N * 8, &copied));
    FAILS(drupe_event_wait(copied, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    REFUSED(drupe_memory_contents(pair.b), "'first'");
    REFUSED(drupe_memory_contents(pair.a), "'first'");
    OK(drupe_queue_wait(second, DRUPE_FOREVER));
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_event_release(failed);
    drupe_event_release(copied);
    drop_pair(pair);
    drupe_queue_release(second);
}

/* Given up: the text says that the earlier value is there where the work was in place. */
static void cancelled(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    struct gate gate;
    gate_init(&gate);
    size_t left, given_up;
    drupe_event *runs = submit_gate(b->queue, &gate);
    while (drupe_event_state_of(runs) != DRUPE_EVENT_RUNNING) {}
    drupe_event_release(submit_failure(b->queue, "never runs"));
    OK(submit_mad(b, b->queue, pair.a, pair.a, N, 1, 1, NULL, 0, NULL));
    fill_u64(b->queue, pair.b, 7, N);
    OK(drupe_queue_cancel(b->queue, &left, &given_up));
    FAILS(drupe_memory_contents(pair.a), DRUPE_E_CANCELLED, "It holds its earlier value");
    FAILS(drupe_memory_contents(pair.b), DRUPE_E_CANCELLED, "'fill', which was cancelled");
    /* What comes next runs and is right. */
    fill_u64(b->queue, pair.b, 3, N);
    gate_open(&gate);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    OK(drupe_memory_contents(pair.b));
    expect_u64(b->queue, pair.b, 3, N);
    expect_u64(b->queue, pair.a, 1, N);
    drupe_event_release(runs);
    drop_pair(pair);
    gate_destroy(&gate);
}

/* A handle that takes a piece over begins without a mark. */
static void not_of_the_next_handle(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *first, *second;
    struct gate gate;
    gate_init(&gate);
    OK(drupe_memory_alloc(b->queue, DRUPE_MEM_DEVICE, N * 8, 0, &first));
    gate.result = DRUPE_E_INVALID;
    drupe_event *fails = submit_gate(b->queue, &gate);
    fill_u64(b->queue, first, 1, N);
    void *there = drupe_memory_pointer(first);
    drupe_memory_release(first);
    OK(drupe_memory_alloc_result(b->queue, DRUPE_MEM_DEVICE, N * 8, &second));
    if (!drupe_check_active()) assert_ptr_equal(drupe_memory_pointer(second), there);
    gate_open(&gate);
    assert_int_not_equal(drupe_event_wait(fails, DRUPE_FOREVER), DRUPE_OK);
    OK(drupe_memory_contents(second));
    fill_u64(b->queue, second, 2, N);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    expect_u64(b->queue, second, 2, N);
    drupe_memory_release(second);
    drupe_event_release(fails);
    gate_destroy(&gate);
}

/* A host function writes what it keeps, as far as it does not say otherwise. */
static void host_functions(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    drupe_event *event;
    drupe_keep keeps[] = {drupe_memory_keep(pair.a, b->queue), drupe_memory_keep(pair.b, b->queue)};
    const drupe_effects effects = {.reads = 1, .writes = 2};
    drupe_submission s = {.queue = b->queue, .keeps = keeps, .nkeeps = 2, .effects = &effects};
    OK(drupe_submit_host(&s, fail_as_planned, NULL, &event));
    FAILS(drupe_event_wait(event, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    OK(drupe_memory_contents(pair.a));
    REFUSED(drupe_memory_contents(pair.b), "undefined");
    keeps[0] = drupe_memory_keep(pair.b, b->queue);
    s.nkeeps = 1;
    REFUSED(drupe_submit_host(&s, fail_as_planned, NULL, NULL), PLANNED);
    drupe_event_release(event);
    drop_pair(pair);
}

const conformance_case cases_contents[] = {
    {"contents_behind_a_failure", behind_a_failure},
    {"contents_computed_from", computed_from},
    {"contents_partly_replaced", partly_replaced},
    {"contents_passed_on", passed_on},
    {"contents_cancelled", cancelled},
    {"contents_not_of_the_next_handle", not_of_the_next_handle},
    {"contents_host_functions", host_functions},
    {NULL, NULL},
};
