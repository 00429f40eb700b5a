/* The recorder at work on the host device: what it counts, what it misses, whom it may disturb. */
#include "view/history.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define OK(call) assert_int_equal((call), DRUPE_OK)
#define PATIENCE UINT64_C(60000000000)
#define SIZE     4096u

static struct {
    drupe_device *device;
    drupe_queue *queue;
    drupe_memory *memory;
} bench;

static int open_bench(void **state)
{
    drupe_context *context;
    (void)state;
    OK(drupe_device_select("host", &bench.device));
    OK(drupe_device_context(bench.device, &context));
    OK(drupe_queue_open(context, bench.device, 0, &bench.queue));
    drupe_context_release(context);
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_DEVICE, SIZE, 0, &bench.memory));
    return 0;
}

static int close_bench(void **state)
{
    (void)state;
    drupe_view_stop();
    drupe_queue_release(bench.queue);
    drupe_memory_release(bench.memory);
    drupe_device_release(bench.device);
    assert_int_equal(drupe_library_close(DRUPE_FOREVER), 0);
    return 0;
}

static void fill(drupe_queue *queue)
{
    drupe_submission s = {.queue = queue};
    OK(drupe_submit_fill(&s, drupe_memory_pointer(bench.memory), "x", 1, 64, NULL));
}

static drupe_view *take(void)
{
    drupe_view *view = NULL;
    OK(drupe_view_take(NULL, &view));
    return view;
}

static const drupe_view_cell *cell_of(const drupe_view *view, uint32_t number)
{
    for (size_t i = 0; i < view->ncells; i++)
        if (view->cells[i].number == number) return &view->cells[i];
    return NULL;
}

static uint64_t work_of(const drupe_view_cell *cell)
{
    return cell ? cell->count[0] + cell->count[1] + cell->count[2] : 0;
}

/* Until nothing waits, by the recorder's own looks: this thread only reads. */
static drupe_view *take_when_over(void)
{
    uint64_t deadline = drupe_deadline(PATIENCE);
    for (;;) {
        drupe_view *view = take();
        const drupe_view_cell *cell = cell_of(view, 0);
        if (!cell || cell->waiting == 0) return view;
        drupe_view_release(view);
        if (drupe_now_ns() > deadline) fail_msg("the work is never seen to be over");
        sched_yield();
    }
}

/* --- Life ----------------------------------------------------------------------------------------------- */

static void start_and_stop(void **state)
{
    drupe_view *view;
    (void)state;
    drupe_view_stop();
    assert_int_equal(drupe_view_take(NULL, &view), DRUPE_E_UNSUPPORTED);
    assert_null(view);
    drupe_view_cell_began(1);
    for (int i = 0; i < 3; i++) {
        OK(drupe_view_start());
        OK(drupe_view_start());
        fill(bench.queue);
        view = take();
        assert_true(work_of(cell_of(view, 0)) >= 1);
        drupe_view_release(view);
        drupe_view_stop();
        drupe_view_stop();
    }
    drupe_view_release(NULL);
}

static void ends_are_seen_when_nobody_waits(void **state)
{
    (void)state;
    OK(drupe_view_start());
    for (int i = 0; i < 1000; i++) fill(bench.queue);
    drupe_view *view = take_when_over();
    assert_true(work_of(cell_of(view, 0)) >= 1000);
    for (size_t i = 0; i < view->nspans; i++) assert_true(view->spans[i].end_ns >= view->spans[i].start_ns);
    drupe_view_release(view);
}

static drupe_status pass_gate(void *user)
{
    while (!atomic_load((_Atomic(bool) *)user)) sched_yield();
    return DRUPE_OK;
}

static void dropped(void *user)
{
    *(pthread_t *)user = pthread_self();
}

static _Atomic(unsigned) told;

static void on_news(void)
{
    atomic_fetch_add(&told, 1);
}

/* Whoever keeps what was told last has the time of work that hangs. */
static void work_that_goes_on_is_told_again(void **state)
{
    _Atomic(bool) open = false;
    uint64_t deadline = drupe_deadline(PATIENCE);
    (void)state;
    OK(drupe_view_start());
    drupe_submission s = {.queue = bench.queue};
    OK(drupe_submit_host(&s, pass_gate, (void *)&open, NULL));
    drupe_view_release(take());
    atomic_store(&told, 0);
    drupe_view_listen(on_news);
    while (atomic_load(&told) < 4 && drupe_now_ns() < deadline) usleep(1000);
    unsigned count = atomic_load(&told);
    drupe_view_listen(NULL);
    atomic_store(&open, true);
    OK(drupe_queue_wait(bench.queue, PATIENCE));
    assert_true(count >= 4);
}

static void references_are_left_to_their_owner(void **state)
{
    pthread_t by = 0;
    _Atomic(bool) open = false;
    (void)state;
    OK(drupe_view_start());
    drupe_submission before = {.queue = bench.queue, .label = "gate"};
    OK(drupe_submit_host(&before, pass_gate, (void *)&open, NULL));
    drupe_keep keep = {&by, dropped};
    drupe_submission s = {.queue = bench.queue, .keeps = &keep, .nkeeps = 1};
    OK(drupe_submit_barrier(&s, NULL));
    fill(bench.queue);
    atomic_store(&open, true);
    drupe_view_release(take_when_over());
    assert_int_equal(by, 0);
    drupe_queue_collect(bench.queue);
    assert_true(pthread_equal(by, pthread_self()));
}

/* --- The ring ------------------------------------------------------------------------------------------- */

static void what_was_overwritten_is_counted(void **state)
{
    (void)state;
    drupe_history *history = drupe_history_new();
    assert_non_null(history);
    history->after = drupe_trace_latest();
    const uint64_t most = 3 * DRUPE_TRACE_RECORDS;
    for (uint64_t i = 0; i < most; i++) fill(bench.queue);
    uint64_t numbers = drupe_trace_latest() - history->after;
    drupe_history_read(history, drupe_now_ns());
    const drupe_cell_totals *ledger = drupe_account_of(history, 0);
    assert_int_equal(ledger->cell.missed, numbers - DRUPE_TRACE_RECORDS);
    /* One in 64 is a mark and no work. */
    uint64_t read = work_of(&ledger->cell);
    assert_true(read <= DRUPE_TRACE_RECORDS && read >= DRUPE_TRACE_RECORDS - DRUPE_TRACE_RECORDS / 32);
    assert_int_equal(history->nholes, 0);
    drupe_history_free(history);
    OK(drupe_queue_wait(bench.queue, DRUPE_FOREVER));
}

/* As the recorder's thread does. */
static void read_and_ask(drupe_history *history)
{
    uint32_t stale[DRUPE_QUEUES_MOST];
    drupe_history_read(history, drupe_now_ns());
    size_t count = drupe_history_stale_queues(history, stale);
    uint64_t latest = drupe_trace_latest();
    for (size_t i = 0; i < count; i++)
        drupe_history_resolve(history, stale[i], drupe_trace_oldest(stale[i]), latest, drupe_now_ns());
}

static uint8_t status_of(drupe_history *history, const char *label)
{
    drupe_view *view;
    uint8_t status = DRUPE_TRACE_PENDING;
    OK(drupe_view_make(history, &(drupe_view_wish){0}, drupe_now_ns(), &view));
    for (size_t i = 0; i < view->nspans; i++)
        if (strcmp(view->spans[i].label, label) == 0) status = view->spans[i].status;
    drupe_view_release(view);
    return status;
}

/* The record of work that goes on is overwritten by that of another queue. */
static void work_that_outlives_its_record(void **state)
{
    (void)state;
    _Atomic(bool) open = false;
    drupe_queue *other;
    drupe_context *context = drupe_context_retain(drupe_queue_context(bench.queue));
    OK(drupe_queue_open(context, bench.device, 0, &other));
    drupe_history *history = drupe_history_new();
    history->after = drupe_trace_latest();
    drupe_submission s = {.queue = other, .label = "gate"};
    OK(drupe_submit_host(&s, pass_gate, (void *)&open, NULL));
    for (uint64_t i = 0; i < 3 * DRUPE_TRACE_RECORDS; i++) {
        fill(bench.queue);
        if (i % 1000 == 0) read_and_ask(history);
    }
    OK(drupe_queue_wait(bench.queue, DRUPE_FOREVER));
    drupe_queue_collect(bench.queue);
    read_and_ask(history);
    uint64_t waiting = drupe_account_of(history, 0)->cell.waiting;
    atomic_store(&open, true);
    assert_int_equal(waiting, 1);
    OK(drupe_queue_wait(other, DRUPE_FOREVER));
    read_and_ask(history);
    assert_int_equal(drupe_account_of(history, 0)->cell.waiting, 0);
    assert_int_equal(drupe_account_of(history, 0)->cell.missed, 0);
    assert_int_equal(status_of(history, "gate"), DRUPE_TRACE_UNKNOWN);
    drupe_history_free(history);
    drupe_queue_release(other);
    drupe_context_release(context);
}

#define SUBMITTERS 3
#define EACH       20000u

static void *submitter(void *offset)
{
    drupe_context *context = drupe_queue_context(bench.queue);
    drupe_queue *queue;
    char *own = (char *)drupe_memory_pointer(bench.memory) + (size_t)(uintptr_t)offset;
    if (drupe_queue_open(context, bench.device, 0, &queue) != DRUPE_OK) return NULL;
    drupe_submission s = {.queue = queue, .label = "stormy"};
    for (unsigned i = 0; i < EACH; i++) {
        if (drupe_submit_fill(&s, own, "x", 1, 64, NULL) != DRUPE_OK) break;
        if (i % 512 == 0 && drupe_queue_wait(queue, DRUPE_FOREVER) != DRUPE_OK) break;
    }
    drupe_queue_release(queue);
    return NULL;
}

/* A record that is missing when the others are read may be written, and its work over, a moment later. */
static void work_that_ends_while_others_are_read(void **state)
{
    pthread_t thread;
    (void)state;
    drupe_history *history = drupe_history_new();
    assert_non_null(history);
    uint64_t now = drupe_now_ns(); /* always the same: no number is given up */
    for (unsigned round = 0; round < 5; round++) {
        uint64_t begun = history->after = drupe_trace_latest();
        OK(drupe_thread_start(&thread, submitter, NULL, "submitter"));
        while (drupe_trace_latest() - begun < EACH) drupe_history_read(history, now);
        pthread_join(thread, NULL);
        for (int i = 0; i < 2; i++) drupe_history_read(history, now);
    }
    const drupe_view_cell *cell = &drupe_account_of(history, 0)->cell;
    assert_true(work_of(cell) <= 5 * EACH);
    assert_true(work_of(cell) + cell->missed >= 5 * EACH);
    drupe_history_free(history);
}

static _Atomic(bool) enough;

static void *reader(void *unused)
{
    uint64_t serial = 0;
    (void)unused;
    for (uint32_t n = 1; !atomic_load(&enough); n++) {
        drupe_view *view;
        const drupe_view_wish wish = {.after = n % 3 ? serial : 0, .spans = n % 2 ? 100 : 0};
        drupe_view_cell_began(n);
        if (drupe_view_take(&wish, &view) != DRUPE_OK) continue;
        serial = view->serial;
        char *json;
        size_t size;
        if (drupe_frame_json(view, &json, &size) == DRUPE_OK) free(json);
        drupe_view_release(view);
        drupe_view_cell_ended(n);
    }
    return NULL;
}

static void many_submit_and_many_read(void **state)
{
    pthread_t submitters[SUBMITTERS], readers[2];
    (void)state;
    OK(drupe_queue_wait(bench.queue, DRUPE_FOREVER));
    drupe_queue_collect(bench.queue);
    OK(drupe_view_start());
    drupe_view *before = take_when_over();
    uint64_t earlier = work_of(cell_of(before, 0));
    drupe_view_release(before);
    atomic_store(&enough, false);
    for (size_t i = 0; i < SUBMITTERS; i++)
        OK(drupe_thread_start(&submitters[i], submitter, (void *)(uintptr_t)(i * 64), "submitter"));
    for (size_t i = 0; i < 2; i++) OK(drupe_thread_start(&readers[i], reader, NULL, "reader"));
    for (size_t i = 0; i < SUBMITTERS; i++) pthread_join(submitters[i], NULL);
    atomic_store(&enough, true);
    for (size_t i = 0; i < 2; i++) pthread_join(readers[i], NULL);
    drupe_view *view = take_when_over();
    /* A number whose record could not be written is given up after a while. */
    uint64_t deadline = drupe_deadline(PATIENCE), total = (uint64_t)SUBMITTERS * EACH;
    while (work_of(cell_of(view, 0)) - earlier + cell_of(view, 0)->missed < total &&
           drupe_now_ns() < deadline) {
        drupe_view_release(view);
        view = take_when_over();
    }
    const drupe_view_cell *cell = cell_of(view, 0);
    uint64_t counted = work_of(cell) - earlier, spanned = 0;
    /* Marks that were overwritten unread count as missed, too: at most one for each submission with an event.
     */
    assert_true(counted <= total);
    assert_true(counted + cell->missed >= total);
    for (size_t i = 0; i < view->nspans; i++) spanned += view->spans[i].count;
    assert_int_equal(spanned, work_of(cell));
    drupe_view_release(view);
}

static void *figure_reader(void *user)
{
    _Atomic(bool) *good = user;
    for (int i = 0; i < 5000; i++) {
        drupe_device_figures figures[8];
        size_t count = drupe_device_figures_of(figures, DRUPE_COUNT_OF(figures));
        bool found = false;
        for (size_t at = 0; at < count; at++) found = found || strcmp(figures[at].use.backend, "host") == 0;
        if (!found) atomic_store(good, false);
    }
    return NULL;
}

static void who_reads_figures_is_in_nobodys_way(void **state)
{
    pthread_t readers[3];
    _Atomic(bool) good = true;
    (void)state;
    for (size_t i = 0; i < 3; i++) OK(drupe_thread_start(&readers[i], figure_reader, &good, "reader"));
    for (size_t i = 0; i < 3; i++) pthread_join(readers[i], NULL);
    assert_true(atomic_load(&good));
}

/* Work tells whether something stands before it, on its queue or another of the device. */
static void beginnings_are_known(void **state)
{
    _Atomic(bool) open = false;
    drupe_submission s = {.queue = bench.queue, .label = "gate"}, behind = {.queue = bench.queue};
    drupe_event *event;
    uint32_t queue = drupe_queue_number(bench.queue);
    (void)state;
    OK(drupe_submit_host(&s, pass_gate, (void *)&open, NULL));
    OK(drupe_submit_fill(&behind, drupe_memory_pointer(bench.memory), "x", 1, 64, &event));
    uint64_t id = drupe_event_submission(event);
    drupe_trace_start start = drupe_trace_start_of(queue, id);
    drupe_trace_start nowhere = drupe_trace_start_of(queue + 100, id);
    drupe_trace_start unknown = drupe_trace_start_of(queue, id + 100);
    atomic_store(&open, true);
    OK(drupe_event_wait(event, DRUPE_FOREVER));
    assert_int_equal(start, DRUPE_TRACE_BEHIND);
    assert_int_equal(nowhere, DRUPE_TRACE_BEGUN); /* nobody can tell */
    assert_int_equal(unknown, DRUPE_TRACE_BEGUN);
    assert_int_equal(drupe_trace_start_of(queue, id), DRUPE_TRACE_BEGUN);
    drupe_event_release(event);
}

/* --- Cells and memory ----------------------------------------------------------------------------------- */

static void peaks_of_cells(void **state)
{
    drupe_memory *large, *small;
    drupe_pool_stats stats;
    (void)state;
    OK(drupe_view_start());
    drupe_pool_reset_peak(bench.device);
    drupe_view_cell_began(1);
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_DEVICE, 8u << 20, 0, &large));
    drupe_memory_release(large);
    drupe_view_cell_ended(1);
    drupe_view_cell_began(2);
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 1u << 20, 0, &small));
    drupe_view_cell_ended(2);
    drupe_view_cell_began(3);
    drupe_view *view = take();
    const drupe_view_cell *first = cell_of(view, 1), *second = cell_of(view, 2), *third = cell_of(view, 3);
    assert_true(first && second && third);
    assert_int_equal(first->memory_peak - first->memory_before, 8u << 20);
    assert_int_equal(first->memory_after, first->memory_before);
    assert_int_equal(second->memory_peak, second->memory_after);
    assert_int_equal(second->memory_after - second->memory_before, 1u << 20);
    assert_true(third->running && !second->running);
    assert_int_equal(third->memory_peak, second->memory_after);
    assert_true(first->began_ns < first->ended_ns && first->ended_ns <= second->began_ns);
    assert_int_equal(view->ndevices, 1);
    assert_true(view->devices[0].nsamples >= 1);
    assert_true(view->devices[0].used[DRUPE_MEM_SHARED] == 1u << 20);
    drupe_view_release(view);
    drupe_view_cell_ended(3); /* it changed nothing: the amount stays the second's */
    view = take();
    assert_int_equal(view->devices[0].samples[view->devices[0].nsamples - 1].cell, 2);
    drupe_view_release(view);
    drupe_pool_stats_of(bench.device, &stats);
    assert_true(stats.peak >= 8u << 20); /* the user's own is as it was */
    drupe_memory_release(small);
}

/* Whenever the recorder looks: here while the cell that takes memory still runs. */
static void memory_is_the_running_cells(void **state)
{
    drupe_memory *memory;
    (void)state;
    OK(drupe_view_start());
    drupe_view_cell_began(1);
    drupe_view_cell_ended(1);
    drupe_view_cell_began(2);
    OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 1u << 20, 0, &memory));
    drupe_view_release(take());
    drupe_view_cell_ended(2);
    drupe_view *view = take();
    const drupe_view_device *device = &view->devices[0];
    bool seen = false;
    for (size_t i = 0; i < device->nsamples; i++) {
        if (device->samples[i].used[DRUPE_MEM_SHARED] == 0) continue;
        assert_int_equal(device->samples[i].cell, 2);
        seen = true;
    }
    assert_true(seen);
    drupe_view_release(view);
    drupe_memory_release(memory);
}

static void samples_are_bounded(void **state)
{
    (void)state;
    OK(drupe_view_start());
    for (size_t i = 0; i < 3 * DRUPE_VIEW_SAMPLES; i++) {
        drupe_memory *memory;
        OK(drupe_memory_alloc(bench.queue, DRUPE_MEM_DEVICE, i == 100 ? 64u << 20 : (1 + i % 2) << 16, 0,
                              &memory));
        drupe_view *look;
        OK(drupe_view_take(&(drupe_view_wish){.after = UINT64_MAX, .since_ns = UINT64_MAX}, &look));
        drupe_view_release(look);
        drupe_memory_release(memory);
    }
    drupe_view *view = take();
    uint64_t most = 0;
    const drupe_view_device *device = &view->devices[0];
    assert_true(device->nsamples <= DRUPE_VIEW_SAMPLES && device->nsamples > DRUPE_VIEW_SAMPLES / 4);
    for (size_t i = 0; i < device->nsamples; i++) {
        if (device->samples[i].used[0] > most) most = device->samples[i].used[0];
        if (i) assert_true(device->samples[i - 1].ns <= device->samples[i].ns);
    }
    assert_true(most >= 64u << 20); /* a peak survives */
    drupe_view_release(view);
}

/* --- Fork ----------------------------------------------------------------------------------------------- */

static void a_child_is_silent(void **state)
{
    (void)state;
    OK(drupe_view_start());
    fill(bench.queue);
    pid_t child = fork();
    if (child == 0) {
        drupe_view *view;
        drupe_view_cell_began(1);
        drupe_view_cell_ended(1);
        bool right = drupe_view_take(NULL, &view) == DRUPE_E_UNAVAILABLE && !view;
        right = right && drupe_view_start() == DRUPE_E_UNAVAILABLE;
        drupe_view_stop();
        _exit(right ? 7 : 8);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 7);
    drupe_view_release(take());
}

static atomic_uint heard;

static void hear(void)
{
    atomic_fetch_add(&heard, 1);
}

/* Of what is new, sooner or later, and not of each submission. */
static void who_listens_is_told(void **state)
{
    enum { COUNT = 5000 };
    (void)state;
    drupe_view_listen(hear);
    OK(drupe_view_start());
    uint64_t begun = drupe_now_ns(), deadline = drupe_deadline(PATIENCE);
    for (unsigned round = 1; round <= 2; round++) {
        unsigned before = atomic_load(&heard);
        for (int i = 0; i < COUNT; i++) fill(bench.queue);
        OK(drupe_queue_wait(bench.queue, DRUPE_FOREVER));
        while (atomic_load(&heard) == before) {
            if (drupe_now_ns() > deadline) fail_msg("nobody tells");
            sched_yield();
        }
    }
    /* Four a second. */
    assert_true(atomic_load(&heard) <= (drupe_now_ns() - begun) / 250000000 + 2);
    drupe_view_listen(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(start_and_stop),
        CASE(ends_are_seen_when_nobody_waits),
        CASE(beginnings_are_known),
        CASE(work_that_goes_on_is_told_again),
        CASE(references_are_left_to_their_owner),
        CASE(what_was_overwritten_is_counted),
        CASE(work_that_outlives_its_record),
        CASE(work_that_ends_while_others_are_read),
        CASE(many_submit_and_many_read),
        CASE(who_reads_figures_is_in_nobodys_way),
        CASE(peaks_of_cells),
        CASE(memory_is_the_running_cells),
        CASE(samples_are_bounded),
        CASE(a_child_is_silent),
        CASE(who_listens_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
