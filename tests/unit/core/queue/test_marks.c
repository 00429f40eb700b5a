/* Marks of memory whose work did not run, where memory or time are short; and the references that submissions
 * gather. */
#include "core/queue/valid.h"
#include "queue/script_bench.h"

static void release_all(drupe_memory **memory, size_t count)
{
    for (size_t i = 0; i < count; i++) drupe_memory_release(memory[i]);
}

/* Reported, and forgotten. */
static void settle(drupe_event **events, size_t count)
{
    script_finish_all();
    (void)!drupe_queue_wait(bench.queue, LONG);
    drupe_queue_collect(bench.queue);
    (void)script_take_failures();
    script_release(events, count);
}

/* --- Who is marked ---------------------------------------------------------------------------------------
 */

static void what_is_only_read_is_not_marked(void **state)
{
    (void)state;
    drupe_memory *source = bench_shared(64), *target = bench_shared(64);
    drupe_event *failure = script_failure(bench.queue);
    const drupe_submission s = {.queue = bench.queue};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(target), drupe_memory_pointer(source), 64, NULL));
    OK(drupe_memory_contents(source));
    FAILS(drupe_memory_contents(target), DRUPE_E_DEPENDENCY, "'copy', which did not run, because 'culprit'");
    settle(&failure, 1);
    release_all((drupe_memory *[]){source, target}, 2);
}

static void with_many_references_all_behind_the_last_bit_are_written(void **state)
{
    (void)state;
    enum { MANY = 70 };
    drupe_memory *memory[MANY];
    drupe_keep keeps[MANY];
    drupe_event *failure = script_failure(bench.queue);
    const drupe_effects effects = {.writes = 2, .replaces = 2};
    for (size_t i = 0; i < MANY; i++) {
        memory[i] = bench_shared(64);
        keeps[i] = drupe_memory_keep(memory[i], bench.queue);
    }
    const drupe_submission s = {.queue = bench.queue, .keeps = keeps, .nkeeps = MANY, .effects = &effects};
    OK(drupe_submit_host(&s, bench_nothing, NULL, NULL));
    for (size_t i = 0; i < MANY; i++) {
        if (i == 1)
            FAILS(drupe_memory_contents(memory[i]), DRUPE_E_DEPENDENCY, "It holds no result.");
        else if (i >= 64)
            FAILS(drupe_memory_contents(memory[i]), DRUPE_E_DEPENDENCY, "It holds its earlier value.");
        else
            OK(drupe_memory_contents(memory[i]));
    }
    settle(&failure, 1);
    release_all(memory, MANY);
}

/* The handle's work fails when another handle has the piece. */
static void the_next_handle_of_a_piece_is_not_marked(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(4096), *next;
    drupe_event *gate = bench_gate(), *event;
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "mine"};
    const void *at = drupe_memory_pointer(memory);
    OK(bench_fill(bench.queue, memory, 1, gate, &event));
    drupe_memory_release(memory);
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 4096, &next));
    assert_ptr_equal(drupe_memory_pointer(next), at);
    OK(drupe_event_finish(gate, &error));
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, "mine");
    OK(drupe_memory_contents(next));
    settle((drupe_event *[]){gate, event}, 2);
    drupe_memory_release(next);
}

/* The cause is the work's own, made because nobody would hear of it otherwise; it did not run all the same.
 */
static void what_waits_for_a_reported_failure_did_not_run(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_memory *memory = bench_shared(64);
    drupe_event *failure = script_failure(other), *event;
    assert_int_equal(drupe_event_wait(failure, 0), DRUPE_E_INTERNAL);
    OK(bench_fill(bench.queue, memory, 1, failure, &event));
    FAILS(drupe_memory_contents(memory), DRUPE_E_DEPENDENCY, "'fill', which did not run, because 'culprit'");
    FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
    settle((drupe_event *[]){failure, event}, 2);
    drupe_memory_release(memory);
    drupe_queue_release(other);
}

/* Work that waits for a failure which was told before what stands behind it was submitted. */
static struct {
    drupe_queue *other;
    bool before; /* `first` waits as well, ahead of the other */
    drupe_event *failure, *first, *fallible;
    drupe_memory *target; /* of the work that waits */
} told;

static void tell_of_failure(bool minds)
{
    bench_table.takes_predecessor = minds;
    told.other = script_queue(0);
    told.target = bench_shared(64);
    const drupe_submission culprit = {.queue = told.other, .label = "culprit"};
    OK(drupe_submit_fill(&culprit, drupe_memory_pointer(script.memory), "x", 1, 64, &told.failure));
    if (told.before) told.first = script_fill(bench.queue, told.failure);
    OK(bench_fill(bench.queue, told.target, 1, told.failure, &told.fallible));
    test_script_finish(told.failure, false);
    FAILS(drupe_event_wait(told.failure, LONG), DRUPE_E_INTERNAL, "The script says no");
}

/* Nobody has looked since. */
static void fallible_fails(void)
{
    assert_ptr_equal(script.predecessor ? script.predecessor : script.waits[0], told.fallible);
    test_script_finish(told.fallible, false);
}

static void forget_failure_told(drupe_memory *memory)
{
    settle((drupe_event *[]){told.failure, told.fallible}, 2);
    release_all((drupe_memory *[]){told.target, memory}, 2);
    drupe_queue_release(told.other);
    script.finishes = false;
}

/* It stood behind the failed work by name, so it did not run; and nobody would hear of it otherwise. */
static void silent_work_behind_a_failure_told_before_is_marked(void **state)
{
    (void)state;
    for (int minds = 0; minds < 2; minds++) {
        drupe_memory *memory = bench_shared(64);
        tell_of_failure(minds);
        OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
        fallible_fails();
        FAILS(drupe_event_wait(told.fallible, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
        FAILS(drupe_memory_contents(memory), DRUPE_E_DEPENDENCY, "did not run, because 'culprit'");
        script_finish_all();
        FAILS(drupe_queue_wait(bench.queue, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
        forget_failure_told(memory);
    }
}

/* The queue has the same cause already, from work further ahead. */
static void the_second_that_fails_for_it_marks_too(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(64);
    told.before = true;
    tell_of_failure(true);
    told.before = false;
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    test_script_finish(told.first, false);
    FAILS(drupe_event_wait(told.first, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
    OK(drupe_memory_contents(memory)); /* the other one may still succeed */
    assert_int_equal(atomic_load(&drupe_marks_owed), 0);
    fallible_fails();
    FAILS(drupe_event_wait(told.fallible, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
    FAILS(drupe_memory_contents(memory), DRUPE_E_DEPENDENCY, "did not run, because 'culprit'");
    drupe_event_release(told.first);
    forget_failure_told(memory);
}

/* Also where the submission that reads is the first to see the failure; with an event and without. */
static void who_reads_sees_it_first(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        drupe_memory *memory = bench_shared(64), *out = bench_shared(64);
        drupe_event *event = NULL;
        tell_of_failure(i & 1);
        OK(bench_fill(bench.queue, memory, 1, NULL, i & 2 ? &event : NULL));
        fallible_fails();
        const size_t taken = script.taken;
        const drupe_submission s = {.queue = bench.queue};
        (void)!drupe_submit_copy(&s, drupe_memory_pointer(out), drupe_memory_pointer(memory), 64, NULL);
        assert_int_equal(script.taken, taken); /* it does not run */
        if (event) test_script_finish(event, false);
        drupe_event_release(event);
        forget_failure_told(memory);
        drupe_memory_release(out);
    }
}

static void who_reads_what_failed_sees_it_first(void **state)
{
    (void)state;
    drupe_memory *out = bench_shared(64);
    tell_of_failure(true);
    script_silent(bench.queue);
    fallible_fails();
    const size_t taken = script.taken;
    const drupe_submission s = {.queue = bench.queue};
    (void)!drupe_submit_copy(&s, drupe_memory_pointer(out), drupe_memory_pointer(told.target), 64, NULL);
    assert_int_equal(script.taken, taken);
    forget_failure_told(out);
}

static void a_sentence_ends_once(void **state)
{
    (void)state;
    static const char *const texts[] = {"without an end", "with one."};
    static const char *const expected[] = {"without an end. It holds no result.",
                                           "with one. It holds no result."};
    for (size_t i = 0; i < 2; i++) {
        drupe_memory *memory = bench_shared(64);
        drupe_event *gate = bench_gate(), *event;
        drupe_error error = {.status = DRUPE_E_INVALID};
        snprintf(error.text, sizeof error.text, "%s", texts[i]);
        OK(drupe_event_finish(gate, &error));
        OK(bench_fill(bench.queue, memory, 1, gate, &event));
        FAILS(drupe_memory_contents(memory), DRUPE_E_DEPENDENCY, expected[i]);
        settle((drupe_event *[]){gate, event}, 2);
        drupe_memory_release(memory);
    }
}

/* --- Without memory --------------------------------------------------------------------------------------
 */

/* Marked while there was no memory to say why. */
static drupe_memory *unexplained(void)
{
    drupe_memory *memory = bench_shared(64);
    drupe_event *failure = script_failure(bench.queue);
    drupe_queue_collect(bench.queue);
    wrap_plan(WRAP_MALLOC, 1);
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    settle(&failure, 1);
    return memory;
}

static void without_memory_the_mark_says_so(void **state)
{
    (void)state;
    drupe_memory *memory = unexplained(), *out = bench_shared(64);
    const drupe_submission s = {.queue = bench.queue};
    FAILS(drupe_memory_contents(memory), DRUPE_E_DEPENDENCY, "there was no host memory to keep the reason");
    FAILS(drupe_submit_copy(&s, drupe_memory_pointer(out), drupe_memory_pointer(memory), 64, NULL),
          DRUPE_E_DEPENDENCY, "there was no host memory to keep the reason");
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL)); /* a new result lifts it */
    OK(drupe_memory_contents(memory));
    script_finish_all();
    OK(drupe_queue_wait(bench.queue, LONG));
    release_all((drupe_memory *[]){memory, out}, 2);
}

/* --- What is lifted --------------------------------------------------------------------------------------
 */

static int dropped;

static void count_drop(void *unused)
{
    (void)unused;
    dropped++;
}

/* Only what the work replaces is: not what else it keeps alive, however much that is. */
static void a_new_result_lifts_its_own_mark(void **state)
{
    (void)state;
    enum { MANY = 70 };
    drupe_memory *memory = bench_shared(64), *other = bench_shared(64);
    drupe_event *failure = script_failure(bench.queue);
    drupe_keep keeps[MANY] = {{NULL, NULL}};
    OK(bench_fill(bench.queue, memory, 1, NULL, NULL));
    OK(bench_fill(bench.queue, other, 1, NULL, NULL));
    settle(&failure, 1);
    const drupe_effects effects = {.writes = 1, .replaces = 1};
    for (size_t i = 0; i < MANY; i++) keeps[i] = (drupe_keep){&dropped, count_drop};
    keeps[0] = drupe_memory_keep(memory, bench.queue);
    keeps[1] = drupe_memory_keep(other, bench.queue);
    const drupe_submission s = {.queue = bench.queue, .keeps = keeps, .nkeeps = MANY, .effects = &effects};
    dropped = 0;
    OK(drupe_submit_host(&s, bench_nothing, NULL, NULL));
    OK(drupe_memory_contents(memory));
    FAILS(drupe_memory_contents(other), DRUPE_E_DEPENDENCY, "'culprit'");
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    assert_int_equal(dropped, MANY - 2);
    release_all((drupe_memory *[]){memory, other}, 2);
}

/* --- What is owed ----------------------------------------------------------------------------------------
 */

/* During a walk over the queue another thread finds another cause. */
static drupe_queue *asks;
static unsigned looks;
drupe_cause *__real_drupe_queue_pending_failure(drupe_queue *queue, uint64_t number);
drupe_cause *__wrap_drupe_queue_pending_failure(drupe_queue *queue, uint64_t number);

drupe_cause *__wrap_drupe_queue_pending_failure(drupe_queue *queue, uint64_t number)
{
    if (asks == queue && looks++ == 0) drupe_marks_ask(queue);
    return __real_drupe_queue_pending_failure(queue, number);
}

static void a_cause_that_comes_during_the_walk_has_it_repeated(void **state)
{
    (void)state;
    drupe_memory *memory = bench_shared(64), *behind = bench_shared(64);
    drupe_event *event;
    const drupe_error error = {.status = DRUPE_E_INVALID, .text = "mine"};
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));
    OK(bench_fill(bench.queue, behind, 1, NULL, NULL));
    drupe_cause *cause = drupe_cause_new(&error, NULL, bench.queue, drupe_event_submission(event));
    drupe_queue_set_cause(bench.queue, cause, drupe_event_submission(event));
    assert_int_equal(atomic_load(&drupe_marks_owed), 1);
    looks = 0;
    asks = bench.queue;
    drupe_marks_settle();
    asks = NULL;
    assert_true(looks > 2); /* twice over both, but for what is marked already */
    assert_int_equal(atomic_load(&drupe_marks_owed), 0);
    OK(drupe_memory_contents(memory)); /* it stands before the cause */
    FAILS(drupe_memory_contents(behind), DRUPE_E_DEPENDENCY, "mine");
    drupe_cause_report(cause);
    drupe_cause_release(cause);
    settle(&event, 1);
    release_all((drupe_memory *[]){memory, behind}, 2);
}

/* While a queue owes marks any memory may be marked; most is not. */
static void memory_without_a_mark_is_read_while_marks_are_owed(void **state)
{
    (void)state;
    drupe_memory *from = bench_shared(64), *to = bench_shared(64);
    const drupe_submission s = {.queue = bench.queue};
    drupe_marks_ask(bench.queue);
    OK(drupe_memory_contents(from));
    drupe_marks_ask(bench.queue);
    OK(drupe_submit_copy(&s, drupe_memory_pointer(to), drupe_memory_pointer(from), 64, NULL));
    assert_int_equal(atomic_load(&drupe_marks_owed), 0);
    script_finish_all();
    OK(drupe_queue_wait(bench.queue, LONG));
    release_all((drupe_memory *[]){from, to}, 2);
}

/* --- Marked between the look and the submission ----------------------------------------------------------
 */

static drupe_memory *to_mark;
static drupe_queue *to_fail;
static bool to_report;

/* The submission asks for its cell when it has looked at its memory and has no lock yet. */
static void *mark_now(void)
{
    if (!to_fail) return NULL;
    drupe_queue *queue = to_fail;
    to_fail = NULL;
    drupe_event *failure = script_failure(queue);
    OK(bench_fill(queue, to_mark, 1, NULL, NULL));
    if (to_report) assert_int_equal(drupe_event_wait(failure, 0), DRUPE_E_INTERNAL);
    drupe_event_release(failure);
    return NULL;
}

static const drupe_observer marking = {.cell_retain = mark_now};

static void a_late_mark_is_seen(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_memory *clean = bench_shared(64), *out = bench_shared(64);
    drupe_event *event = NULL;
    for (int report = 0; report < 2; report++) {
        to_mark = bench_shared(64);
        drupe_keep keeps[] = {drupe_memory_keep(clean, bench.queue),
                              drupe_memory_keep(out, bench.queue),
                              {&dropped, count_drop},
                              drupe_memory_keep(to_mark, bench.queue)};
        const drupe_effects effects = {.reads = 9, .writes = 2};
        const drupe_submission s = {.queue = bench.queue, .keeps = keeps, .nkeeps = 4, .effects = &effects};
        to_report = report;
        drupe_library_observe(&marking);
        to_fail = other;
        drupe_status status = drupe_submit_host(&s, bench_nothing, NULL, &event);
        drupe_library_observe(NULL);
        if (report) { /* the program was told: it is refused */
            FAILS(status, DRUPE_E_DEPENDENCY, "'culprit'");
            assert_null(event);
        } else {
            OK(status);
            FAILS(drupe_event_wait(event, LONG), DRUPE_E_DEPENDENCY, "'culprit'");
        }
        settle(&event, 1);
        script.finishes = false;
        event = NULL;
        drupe_memory_accept(out);
        drupe_memory_release(to_mark);
    }
    script_finish_all();
    release_all((drupe_memory *[]){clean, out}, 2);
    drupe_queue_release(other);
}

/* --- References ------------------------------------------------------------------------------------------
 */

static void references_are_taken_over_with_what_is_known_of_them(void **state)
{
    (void)state;
    drupe_refs refs;
    drupe_keep keeps[20];
    for (size_t i = 0; i < 20; i++) keeps[i] = (drupe_keep){&dropped, count_drop};
    drupe_operands uses = {.refs = keeps, .nrefs = 20, .bytes = 100, .written = 1, .replaced = 2, .read = 4};
    drupe_refs_init(&refs);
    OK(drupe_refs_add(&refs, &dropped, NULL));
    OK(drupe_refs_take(&refs, &uses));
    assert_int_equal(refs.all.nrefs, 21);
    assert_int_equal(refs.all.bytes, 100);
    assert_int_equal(refs.all.written, 2);
    assert_int_equal(refs.all.replaced, 4);
    assert_int_equal(refs.all.read, 8);
    assert_null(keeps[19].release); /* whose they are now */
    dropped = 0;
    drupe_refs_drop(&refs);
    assert_int_equal(dropped, 20);
    /* Without room the one that did not fit is dropped; the rest stays its owner's. */
    for (size_t i = 0; i < 20; i++) keeps[i] = (drupe_keep){&dropped, count_drop};
    drupe_refs_init(&refs);
    dropped = 0;
    wrap_plan(WRAP_MALLOC, 1);
    FAILS(drupe_refs_take(&refs, &uses), DRUPE_E_NO_MEMORY, "a submission of 32 objects");
    assert_int_equal(dropped, 1);
    wrap_plan(WRAP_MALLOC, 1);
    FAILS(drupe_refs_add(&refs, &dropped, NULL), DRUPE_E_NO_MEMORY, "a submission of 32 objects");
    assert_int_equal(dropped, 1);
    drupe_refs_drop(&refs);
    assert_int_equal(dropped, 17);
    assert_non_null(keeps[17].release);
}

/* Memory that another queue may still use is waited for; for which there may be no memory. */
static void without_memory_for_what_is_waited_for_nothing_is_submitted(void **state)
{
    (void)state;
    drupe_queue *other = script_queue(0);
    drupe_memory *memory = bench_shared(4096), *next;
    drupe_event *event, *before;
    OK(bench_fill(bench.queue, memory, 1, NULL, &event));
    drupe_memory_release(memory);
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 4096, &next));
    OK(drupe_memory_before_use(next, &before));
    assert_ptr_equal(before, event);
    drupe_event_release(before);
    const drupe_submission s = {.queue = other};
    const size_t taken = script.taken;
    wrap_plan(WRAP_MALLOC, 1);
    FAILS(drupe_submit_fill(&s, drupe_memory_pointer(next), "x", 1, 4096, NULL), DRUPE_E_NO_MEMORY,
          "what a submission waits for");
    drupe_keep keep = drupe_memory_keep(next, other);
    const drupe_submission keeping = {.queue = other, .keeps = &keep, .nkeeps = 1};
    wrap_plan(WRAP_MALLOC, 1);
    FAILS(drupe_submit_barrier(&keeping, NULL), DRUPE_E_NO_MEMORY, "what a submission waits for");
    wrap_plan(WRAP_NOTHING, 0);
    assert_int_equal(script.taken, taken);
    script_finish_all();
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    assert_false(drupe_memory_in_use(next)); /* its keep was given back */
    drupe_event_release(event);
    drupe_memory_release(next);
    drupe_queue_release(other);
}

/* What is read as well keeps its mark: nothing of it is replaced unseen. */
static void what_is_read_is_not_replaced(void **state)
{
    (void)state;
    drupe_refs refs;
    const drupe_submission s = {.queue = bench.queue};
    drupe_refs_init(&refs);
    OK(drupe_refs_add_memory(&refs, script.memory, &s, (drupe_touch){true, true, true}));
    OK(drupe_refs_add_memory(&refs, script.memory, &s, (drupe_touch){false, true, true}));
    assert_int_equal(refs.all.read, 1);
    assert_int_equal(refs.all.written, 3);
    assert_int_equal(refs.all.replaced, 2);
    drupe_refs_drop(&refs);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_only_read_is_not_marked),
        TEST(with_many_references_all_behind_the_last_bit_are_written),
        TEST(the_next_handle_of_a_piece_is_not_marked),
        TEST(silent_work_behind_a_failure_told_before_is_marked),
        TEST(the_second_that_fails_for_it_marks_too),
        TEST(who_reads_sees_it_first),
        TEST(who_reads_what_failed_sees_it_first),
        TEST(what_waits_for_a_reported_failure_did_not_run),
        TEST(a_sentence_ends_once),
        TEST(without_memory_the_mark_says_so),
        TEST(a_new_result_lifts_its_own_mark),
        TEST(a_cause_that_comes_during_the_walk_has_it_repeated),
        TEST(memory_without_a_mark_is_read_while_marks_are_owed),
        TEST(a_late_mark_is_seen),
        TEST(references_are_taken_over_with_what_is_known_of_them),
        TEST(without_memory_for_what_is_waited_for_nothing_is_submitted),
        TEST(what_is_read_is_not_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
