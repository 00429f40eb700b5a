/* What core holds, and what it runs itself because the driver cannot: copies of the work, host functions and
 * copies in pieces on threads of core, and when their turn has come. */
#include "queue/script_bench.h"
#include <semaphore.h>

static drupe_event *host_function(drupe_queue *queue, drupe_event *wait)
{
    const drupe_submission s = {.queue = queue, .waits = &wait, .nwaits = 1};
    drupe_event *event;
    OK(drupe_submit_host(&s, bench_nothing, NULL, &event));
    return event;
}

static void expect_complete(drupe_event *event)
{
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
}

/* --- Copies of the work ----------------------------------------------------------------------------------
 */

static size_t launched_local;
static uint64_t launched_value;

static drupe_status submit_kernel(const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range,
                                  const drupe_arg *args, size_t nargs)
{
    assert_int_equal(args[0].kind, DRUPE_ARG_LOCAL);
    launched_local = args[0].size;
    memcpy(&launched_value, args[1].value, sizeof launched_value);
    const drupe_status status = bench_real->submit_kernel(s, kernel, range, args, nargs);
    test_script_finish(s->event, true);
    return status;
}

static void the_arguments_are_those_of_the_call(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *event;
    const drupe_submission s = {.queue = bench.queue, .waits = &gate, .nwaits = 1};
    drupe_range range = {.dims = 1, .global = {4}};
    uint64_t value = 42;
    drupe_arg args[] = {{DRUPE_ARG_LOCAL, 96, NULL}, {DRUPE_ARG_VALUE, sizeof value, &value}};
    bench_table.submit_kernel = submit_kernel;
    OK(drupe_submit_kernel(&s, script_kernel(2), &range, args, 2, &event));
    value = 0;
    args[0] = args[1] = (drupe_arg){0};
    bench_open_gate(gate);
    expect_complete(event);
    assert_int_equal(launched_local, 96);
    assert_int_equal(launched_value, 42);
}

static struct {
    drupe_pieces pieces; /* first */
    _Atomic(int) hurries, runs;
} copy;

static void hurry(drupe_pieces *pieces)
{
    assert_ptr_equal(pieces, &copy.pieces);
    atomic_fetch_add(&copy.hurries, 1);
}

static drupe_status run_copy(void *user)
{
    assert_ptr_equal(user, &copy);
    atomic_fetch_add(&copy.runs, 1);
    return DRUPE_OK;
}

static void copies_in_pieces_are_hurried(void **state)
{
    (void)state;
    char from[8] = "", to[8];
    const drupe_work work = {
        .kind = DRUPE_WORK_COPY, .dst = to, .src = from, .bytes = 8, .fn = run_copy, .user = &copy};
    const drupe_submit_info info = {.queue = bench.queue, .label = "copy", .label_static = true};
    for (int i = 0; i < 2; i++) {
        drupe_event *event;
        copy.pieces = (drupe_pieces){.hurry = hurry, .spins = i == 1};
        OK(drupe_queue_submit(&info, &work, &event));
        assert_int_equal(event->spins, i == 1);
        expect_complete(event);
        OK(drupe_queue_wait(bench.queue, LONG));
        assert_int_equal(copy.hurries, i + 1);
        assert_int_equal(copy.runs, i + 1);
    }
}

/* --- Host functions --------------------------------------------------------------------------------------
 */

static void without_a_thread_host_functions_are_refused(void **state)
{
    (void)state;
    const drupe_submission s = {.queue = bench.queue};
    drupe_event *event;
    wrap_plan(WRAP_THREAD, 1);
    assert_int_not_equal(drupe_submit_host(&s, bench_nothing, NULL, &event), DRUPE_OK);
    assert_non_null(strstr(drupe_error_last()->text, "thread"));
    assert_null(event);
    assert_int_equal(wrap_made(), 1);
    expect_complete(host_function(bench.queue, NULL));
}

static drupe_status fail_silently(void *unused)
{
    (void)unused;
    return DRUPE_E_UNSUPPORTED;
}

static void a_failure_without_a_reason_gets_one(void **state)
{
    (void)state;
    const drupe_submission s = {.queue = bench.queue};
    drupe_event *event;
    OK(drupe_submit_host(&s, fail_silently, NULL, &event));
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_UNSUPPORTED, "answered UNSUPPORTED without a reason");
    drupe_event_release(event);
}

static void unordered_host_functions_wait_for_nothing(void **state)
{
    (void)state;
    drupe_event *native = script_fill(bench.queue, NULL);
    expect_complete(host_function(bench.queue, NULL));
    assert_int_equal(drupe_event_state_of(native), DRUPE_EVENT_SUBMITTED);
    script_end(native);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue); /* nothing is on it */
    assert_null(bench.queue->order.head);
    expect_complete(host_function(bench.queue, NULL));
}

/* --- Whether its turn has come ---------------------------------------------------------------------------
 */

static sem_t asked;

static void tell(void)
{
    sem_post(&asked);
}

static void await_telling(void)
{
    while (sem_wait(&asked) != 0) continue;
}

/* No driver waits in its place, though it could: the event is one of its own. */
static void host_functions_wait_for_events_of_the_driver(void **state)
{
    (void)state;
    drupe_queue *other;
    sem_init(&asked, 0, 0);
    other = script_queue(0);
    drupe_event *native = script_fill(other, NULL);
    script_at_look(native, 3, tell); /* the waiter has been through with it by then */
    drupe_event *event = host_function(bench.queue, native);
    await_telling();
    assert_int_equal(drupe_event_phase(event), DRUPE_PHASE_DEFERRED);
    script_end(native);
    expect_complete(event);
    drupe_queue_release(other);
    sem_destroy(&asked);
}

static void without_a_mark_nobody_knows_the_turn(void **state)
{
    (void)state;
    script_silent(bench.queue);
    script.refuses = DRUPE_E_INTERNAL;
    drupe_event *event = host_function(bench.queue, NULL);
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_INTERNAL, "The script refuses.");
    assert_int_equal(script.kind, DRUPE_WORK_BARRIER);
    script.refuses = DRUPE_OK;
    script.finishes = true;
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_event_release(event);
}

static void a_failure_before_it_is_found_by_its_mark(void **state)
{
    (void)state;
    drupe_failure own, cause;
    drupe_event *failed = script_fill(bench.queue, NULL), *event = host_function(bench.queue, NULL);
    test_script_finish(failed, false);
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, "The script says no");
    assert_true(drupe_failure_last(&own, &cause));
    assert_true(cause.submission == drupe_event_submission(failed));
    assert_int_equal(script_take_failures(), 0);
    drupe_event_release(failed);
    drupe_event_release(event);
    script.finishes = true;
    OK(drupe_queue_wait(bench.queue, LONG));
}

static drupe_status event_notify(drupe_event *event)
{
    (void)event;
    tell();
    return DRUPE_OK;
}

/* What stands before it fails for something that was told before it was submitted: then the queue works. */
static void old_failures_are_no_mark(void **state)
{
    (void)state;
    drupe_queue *other;
    sem_init(&asked, 0, 0);
    other = script_queue(0);
    drupe_event *first = script_fill(other, NULL), *behind = script_fill(bench.queue, first);
    test_script_finish(first, false);
    FAILS(drupe_event_wait(first, LONG), DRUPE_E_INTERNAL, "The script says no");
    script.finishes = true; /* the barrier that takes the place of the mark, too */
    bench_table.event_notify = event_notify;
    drupe_event *event = host_function(bench.queue, NULL);
    await_telling(); /* `behind` is its mark */
    test_script_finish(behind, false);
    expect_complete(event);
    FAILS(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY, "The script says no");
    drupe_event_release(first);
    drupe_event_release(behind);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_release(other);
    sem_destroy(&asked);
}

/* It stands before it, though it was made later. */
static void a_mark_does_not_fail_for_what_stands_behind_it(void **state)
{
    (void)state;
    const drupe_submission s = {.queue = bench.queue};
    const drupe_error mine = {.status = DRUPE_E_INVALID, .text = "mine"};
    drupe_event *turn;
    sem_init(&asked, 0, 0);
    bench_table.event_notify = event_notify;
    script_silent(bench.queue);
    OK(drupe_submit_turn(&s, &turn));
    await_telling();
    pthread_mutex_lock(&bench.queue->lock);
    drupe_event *mark = drupe_event_retain(bench.queue->order.head->next->event);
    pthread_mutex_unlock(&bench.queue->lock);
    assert_true(mark->behind != 0 && mark->number > turn->number);
    OK(drupe_event_finish(turn, &mine));
    test_script_finish(mark, false);
    assert_int_equal(drupe_event_state_of(mark), DRUPE_EVENT_FAILED);
    assert_string_equal(drupe_event_error(mark)->text, "The script says no.");
    assert_string_equal(drupe_event_error(turn)->text, "mine");
    assert_int_equal(script_take_failures(), 2);
    drupe_event_release(mark);
    drupe_event_release(turn);
    script.finishes = true;
    OK(drupe_queue_wait(bench.queue, LONG));
    sem_destroy(&asked);
}

static void end_turn(void)
{
    const drupe_error mine = {.status = DRUPE_E_INVALID, .text = "mine"};
    OK(drupe_event_finish(bench.queue->order.deferred->event, &mine));
}

static void a_turn_may_be_ended_as_it_comes(void **state)
{
    (void)state;
    const drupe_submission s = {.queue = bench.queue};
    drupe_event *before = script_fill(bench.queue, NULL), *turn;
    test_script_finish(before, true);
    script_at_look(before, 1, end_turn); /* the waiter finds that its turn has come */
    OK(drupe_submit_turn(&s, &turn));
    FAILS(drupe_event_wait(turn, LONG), DRUPE_E_INVALID, "mine");
    drupe_event_release(turn);
    drupe_event_release(before);
}

static void the_first_turn_waits_for_the_waiter(void **state)
{
    (void)state;
    const drupe_submission s = {.queue = bench.queue};
    drupe_event *turn;
    OK(drupe_submit_turn(&s, &turn));
    while (drupe_event_state_of(turn) == DRUPE_EVENT_QUEUED) continue;
    assert_int_equal(drupe_event_state_of(turn), DRUPE_EVENT_RUNNING);
    OK(drupe_event_finish(turn, NULL));
    expect_complete(turn);
}

/* --- What it reads ---------------------------------------------------------------------------------------
 */

static struct {
    drupe_queue *queue;
    drupe_memory *memory;
    drupe_event *copy; /* of that memory, on that queue */
    bool hands_on;     /* the piece has another handle by the time that nobody has written it */
    char bytes[64];
} reader;

static void hand_on(void)
{
    const drupe_memory *before = reader.memory;
    drupe_memory_release(reader.memory);
    OK(drupe_memory_alloc_result(reader.queue, DRUPE_MEM_SHARED, 64, &reader.memory));
    assert_ptr_equal(reader.memory, before);
}

/* The waiter's thread is here, so all that is deferred stays so. */
static void cancel_and_read(void)
{
    const drupe_submission s = {.queue = reader.queue};
    size_t left, given_up;
    OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    assert_int_equal(given_up, 1);
    OK(drupe_submit_copy(&s, reader.bytes, drupe_memory_pointer(reader.memory), 64, &reader.copy));
    if (reader.hands_on) hand_on();
    tell();
}

/* It was submitted after the caller was told that the other queue's work was cancelled, and before anybody had
 * found that what writes its source waits for that. */
static void read_unwritten(bool hands_on)
{
    sem_init(&asked, 0, 0);
    reader.queue = script_queue(0);
    reader.hands_on = hands_on;
    OK(drupe_memory_alloc(reader.queue, DRUPE_MEM_SHARED, 64, 0, &reader.memory));
    drupe_event *gate = bench_gate(), *held = script_fill(bench.queue, gate), *written;
    OK(bench_fill(reader.queue, reader.memory, 1, held, &written));
    script.finishes = true;
    script.kind = DRUPE_WORK_BARRIER;
    script_at_lock(&reader.queue->lock, cancel_and_read);
    drupe_deferred_kick();
    await_telling();
    FAILS(drupe_event_wait(reader.copy, LONG), DRUPE_E_DEPENDENCY, "The queue's work was cancelled");
    assert_int_not_equal(script.kind, DRUPE_WORK_COPY);
    FAILS(drupe_event_wait(written, LONG), DRUPE_E_DEPENDENCY, "The queue's work was cancelled");
    assert_int_equal(script_take_failures(), 0);
    bench_open_gate(gate);
    script_release((drupe_event *[]){held, written, reader.copy}, 3);
}

static void end_reader(void)
{
    expect_complete(script_fill(reader.queue, NULL)); /* the queue works */
    drupe_memory_release(reader.memory);
    drupe_queue_release(reader.queue);
    sem_destroy(&asked);
}

static void what_was_not_written_is_not_read(void **state)
{
    (void)state;
    read_unwritten(false);
    FAILS(drupe_memory_contents(reader.memory), DRUPE_E_CANCELLED, "was cancelled before it started");
    end_reader();
}

static void nor_where_its_handle_is_gone(void **state)
{
    (void)state;
    read_unwritten(true);
    OK(drupe_memory_contents(reader.memory));
    end_reader();
}

static int locks;

/* By the waiter, each time that it is about to take the queue's lock: at first all is cancelled; the first entry
 * fails behind the second lock; before the third something further back fails, which is the queue's cause then. */
static void cancel_and_fail(void)
{
    const drupe_error mine = {.status = DRUPE_E_INVALID, .text = "mine"};
    const drupe_submission s = {.queue = bench.queue};
    drupe_event *turn;
    size_t left, given_up;
    if (locks == 0) OK(drupe_queue_cancel(bench.queue, &left, &given_up));
    if (locks++ < 2) {
        script_at_lock(&bench.queue->lock, cancel_and_fail);
        return;
    }
    OK(drupe_submit_turn(&s, &turn));
    OK(drupe_event_finish(turn, &mine));
    drupe_event_release(turn);
    tell();
}

static void what_was_given_up_stays_so_behind_another_failure(void **state)
{
    (void)state;
    sem_init(&asked, 0, 0);
    drupe_memory *memory = bench_shared(64);
    drupe_event *gate = bench_gate(), *written, *read;
    const drupe_submission s = {.queue = bench.queue};
    char bytes[64];
    OK(bench_fill(bench.queue, memory, 1, gate, &written));
    OK(drupe_submit_copy(&s, bytes, drupe_memory_pointer(memory), 64, &read));
    script.finishes = true;
    locks = 0;
    script_at_lock(&bench.queue->lock, cancel_and_fail);
    drupe_deferred_kick();
    await_telling();
    FAILS(drupe_event_wait(read, LONG), DRUPE_E_CANCELLED, "was cancelled before it started");
    assert_int_equal(drupe_event_state_of(written), DRUPE_EVENT_FAILED);
    assert_int_not_equal(script.kind, DRUPE_WORK_COPY);
    bench_open_gate(gate);
    assert_int_equal(script_take_failures(), 1);
    script_release((drupe_event *[]){written, read}, 2);
    drupe_memory_release(memory);
    sem_destroy(&asked);
}

/* What stands behind it in the order of submission has not changed it yet. */
static void later_work_does_not_count(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(64);
    drupe_event *gate = bench_gate(), *turn, *event;
    const drupe_error mine = {.status = DRUPE_E_INVALID, .text = "mine"};
    const drupe_submission reads = {.queue = bench.queue, .waits = &gate, .nwaits = 1};
    char bytes[64];
    drupe_keep keep = drupe_memory_keep(memory, bench.queue);
    const drupe_submission writes = {.queue = bench.queue, .keeps = &keep, .nkeeps = 1};
    script.finishes = true;
    OK(drupe_submit_copy(&reads, bytes, drupe_memory_pointer(memory), 64, &event));
    OK(drupe_submit_turn(&writes, &turn));
    OK(drupe_event_finish(turn, &mine));
    FAILS(drupe_memory_contents(memory), DRUPE_E_DEPENDENCY, "mine");
    bench_open_gate(gate);
    expect_complete(event);
    assert_int_equal(script.kind, DRUPE_WORK_COPY);
    assert_int_equal(script_take_failures(), 1);
    drupe_event_release(turn);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_memory_release(memory);
}

int main(void)
{
#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_arguments_are_those_of_the_call, script_setup),
        TEST(copies_in_pieces_are_hurried, script_setup),
        TEST(without_a_thread_host_functions_are_refused, script_setup),
        TEST(a_failure_without_a_reason_gets_one, script_setup),
        TEST(unordered_host_functions_wait_for_nothing, script_setup_unordered),
        TEST(host_functions_wait_for_events_of_the_driver, script_setup),
        TEST(without_a_mark_nobody_knows_the_turn, script_setup),
        TEST(a_failure_before_it_is_found_by_its_mark, script_setup),
        TEST(old_failures_are_no_mark, script_setup),
        TEST(a_mark_does_not_fail_for_what_stands_behind_it, script_setup),
        TEST(a_turn_may_be_ended_as_it_comes, script_setup),
        TEST(the_first_turn_waits_for_the_waiter, script_setup),
        TEST(what_was_not_written_is_not_read, script_setup),
        TEST(nor_where_its_handle_is_gone, script_setup),
        TEST(what_was_given_up_stays_so_behind_another_failure, script_setup),
        TEST(later_work_does_not_count, script_setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
