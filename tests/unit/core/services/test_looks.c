/* Looking at queues for others: what the trace knows of work that is not over, and failures while nobody
 * looks. */
#include "core/services/services_room.h"
#include "core_bench.h"
#include <pthread.h>
#include <stdatomic.h>

/* --- The trace -------------------------------------------------------------------------------------------
 */

static uint32_t number_of(const drupe_queue *queue)
{
    return drupe_queue_number(queue);
}

static void the_oldest_is_what_is_not_over(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *first, *second;
    assert_int_equal(drupe_trace_oldest(number_of(bench.queue)), UINT64_MAX);
    assert_int_equal(drupe_trace_oldest(123456), UINT64_MAX); /* no such queue */
    OK(bench_barrier(bench.queue, gate, &first));
    OK(bench_barrier(bench.queue, NULL, &second));
    assert_int_equal(drupe_trace_oldest(number_of(bench.queue)), drupe_event_submission(first));
    bench_open_gate(gate);
    OK(drupe_event_wait(second, LONG));
    assert_int_equal(drupe_trace_oldest(number_of(bench.queue)), UINT64_MAX);
    drupe_event_release(first);
    drupe_event_release(second);
}

static void work_without_an_event_has_an_end_as_well(void **state)
{
    (void)state;
    drupe_trace_record record;
    drupe_event *gate = bench_gate();
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 64);
    OK(bench_fill(bench.queue, memory, 1, gate, NULL));
    OK(bench_fill(bench.queue, memory, 2, NULL, NULL));
    const uint64_t last = drupe_trace_latest();
    assert_int_equal(drupe_trace_oldest(number_of(bench.queue)), last - 1);
    drupe_trace_look();
    assert_true(drupe_trace_one(last, &record));
    assert_int_equal(record.status, DRUPE_TRACE_PENDING);
    bench_open_gate(gate);
    do {
        drupe_trace_look();
        assert_true(drupe_trace_one(last, &record));
    } while (record.status == DRUPE_TRACE_PENDING);
    assert_true(record.status == DRUPE_TRACE_PASSED || record.status == DRUPE_TRACE_COMPLETE);
    drupe_memory_release(memory);
    drupe_trace_update();
    assert_int_equal(drupe_queue_pending(bench.queue), 0);
}

static void unordered_queues_are_looked_at_too(void **state)
{
    (void)state;
    drupe_event *gates[] = {bench_gate(), bench_gate()}, *events[2];
    drupe_memory *memories[2];
    for (size_t i = 0; i < 2; i++) {
        memories[i] = bench_memory(bench.queue, DRUPE_MEM_HOST, 64);
        OK(bench_fill(bench.queue, memories[i], 1, gates[i], &events[i]));
    }
    assert_int_equal(drupe_trace_oldest(number_of(bench.queue)), drupe_event_submission(events[0]));
    assert_int_equal(drupe_trace_start_of(number_of(bench.queue), drupe_event_submission(events[0])),
                     DRUPE_TRACE_BEHIND);
    bench_open_gate(gates[0]);
    OK(drupe_event_wait(events[0], LONG));
    drupe_trace_look();
    assert_int_equal(drupe_trace_oldest(number_of(bench.queue)), drupe_event_submission(events[1]));
    bench_open_gate(gates[1]);
    OK(drupe_event_wait(events[1], LONG));
    drupe_trace_look();
    assert_int_equal(drupe_trace_oldest(number_of(bench.queue)), UINT64_MAX);
    for (size_t i = 0; i < 2; i++) {
        drupe_event_release(events[i]);
        drupe_memory_release(memories[i]);
    }
}

static void what_waits_has_not_begun(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *event;
    OK(bench_barrier(bench.queue, gate, &event));
    const uint64_t number = drupe_event_submission(event);
    assert_int_equal(drupe_trace_start_of(number_of(bench.queue), number), DRUPE_TRACE_BEHIND);
    assert_int_equal(drupe_trace_start_of(number_of(bench.queue), number + 1000), DRUPE_TRACE_BEGUN);
    assert_int_equal(drupe_trace_start_of(123456, number), DRUPE_TRACE_BEGUN);
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    assert_int_equal(drupe_trace_start_of(number_of(bench.queue), number), DRUPE_TRACE_BEGUN);
    drupe_event_release(event);
}

/* --- Failures while nobody looks -------------------------------------------------------------------------
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int offered; /* the lock's */
static char label[64];
static _Atomic(int) cells;

static void *cell_retain(void)
{
    atomic_fetch_add(&cells, 1);
    return &cells;
}

static void cell_release(void *cell)
{
    if (cell) atomic_fetch_sub(&cells, 1);
}

static void *cell_share(void *cell)
{
    atomic_fetch_add(&cells, 1);
    return cell;
}

static bool failed(const drupe_failure *failure)
{
    pthread_mutex_lock(&lock);
    offered++;
    snprintf(label, sizeof label, "%s", failure->label);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return true;
}

static const drupe_observer observer = {
    .cell_retain = cell_retain, .cell_release = cell_release, .cell_share = cell_share, .failed = failed};

static void await_offered(int count)
{
    pthread_mutex_lock(&lock);
    while (offered < count) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void failures_are_offered_while_nobody_looks(void **state)
{
    (void)state;
    drupe_failure failure;
    drupe_library_observe(&observer);
    drupe_failures_watch(); /* nothing is unfinished */
    drupe_event *gate = bench_gate(), *event = bench_failure(bench.queue, "unseen", gate);
    drupe_failures_watch();
    drupe_failures_watch();
    assert_int_equal(offered, 0);
    bench_open_gate(gate);
    await_offered(1);
    assert_string_equal(label, "unseen");
    assert_true(drupe_failure_take(&failure)); /* it stays to be told */
    assert_true(failure.shown);
    cell_release(failure.cell);
    drupe_event_release(event);
    /* And again, when there is work again. */
    gate = bench_gate();
    event = bench_failure(bench.queue, "second", gate);
    drupe_failures_watch();
    bench_open_gate(gate);
    await_offered(2);
    assert_true(drupe_failure_take(&failure));
    cell_release(failure.cell);
    drupe_event_release(event);
    drupe_failure_poller_stop();
    drupe_queue_collect(bench.queue);
}

enum { PAUSES = 10 };
static uint64_t pauses[PAUSES]; /* the lock's, as the next */
static size_t npauses;

uint64_t __real_drupe_deadline(uint64_t ns);
uint64_t __wrap_drupe_deadline(uint64_t ns);
uint64_t __wrap_drupe_deadline(uint64_t ns)
{
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "drupe-failures") != 0) return __real_drupe_deadline(ns);
    pthread_mutex_lock(&lock);
    if (npauses < PAUSES) pauses[npauses++] = ns;
    const bool enough = npauses == PAUSES;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return enough ? __real_drupe_deadline(ns) : 1; /* the pause is over already */
}

static void pauses_grow_to_an_end(void **state)
{
    (void)state;
    drupe_event *gate = bench_gate(), *event;
    OK(bench_barrier(bench.queue, gate, &event));
    npauses = 0;
    drupe_failures_watch();
    pthread_mutex_lock(&lock);
    while (npauses < PAUSES) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < PAUSES; i++)
        assert_int_equal(pauses[i], i < 7 ? UINT64_C(1000000) << i : UINT64_C(50000000));
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    drupe_failure_poller_stop();
}

static int teardown_cells(void **state)
{
    const int result = bench_teardown(state);
    drupe_library_observe(NULL);
    return result == 0 && atomic_load(&cells) == 0 ? 0 : -1;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_oldest_is_what_is_not_over),
        TEST(work_without_an_event_has_an_end_as_well),
        cmocka_unit_test_setup_teardown(unordered_queues_are_looked_at_too, bench_setup_unordered,
                                        bench_teardown),
        TEST(what_waits_has_not_begun),
        TEST(pauses_grow_to_an_end),
        cmocka_unit_test_setup_teardown(failures_are_offered_while_nobody_looks, bench_setup, teardown_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
