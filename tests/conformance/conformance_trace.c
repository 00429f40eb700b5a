/* The trace ring: what it says of each submission, how it ends, and that reading it needs nobody's leave. */
#include "conformance.h"
#include "drupe/trace.h"
#include <stdio.h>

#define N 16

#define HAIR 20000u /* ns: ticks are reckoned into time anew by each look */

static drupe_trace_record last_labelled(const char *label)
{
    static drupe_trace_record records[DRUPE_TRACE_RECORDS];
    drupe_trace_record found = {.id = 0};
    size_t count = drupe_trace_read(0, records, COUNT(records));
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || records[i].id > records[i - 1].id);
        if (strcmp(records[i].label, label) == 0) found = records[i];
    }
    assert_true(found.id > 0);
    return found;
}

/* Times are known or not, and never half. What threads of the engine ran lies where the engine saw it. */
static void check_run(const struct suite *suite, const drupe_trace_record *record)
{
    bool host = strncmp(drupe_device_filter(suite->bench.device), "host", 4) == 0;
    assert_int_equal(record->started_ns != 0, record->ended_ns != 0);
    assert_true(record->started_ns <= record->ended_ns);
    if (!host) return;
    assert_true(record->ended_ns != 0 && !record->own_clock && record->told);
    assert_true(record->started_ns + HAIR >= record->submitted_ns);
    assert_true(record->ended_ns <= record->seen_ns + HAIR);
}

static void tells(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    uint64_t pattern = 1;
    drupe_submission s = {.queue = b->queue, .label = "traced fill", .site = 77};
    drupe_event *event;
    OK(drupe_submit_fill(&s, drupe_memory_pointer(memory), &pattern, 8, N * 8, &event));
    drupe_trace_record record = last_labelled("traced fill");
    assert_int_equal(record.kind, DRUPE_WORK_FILL);
    assert_int_equal(record.bytes, N * 8);
    assert_int_equal(record.site, 77);
    assert_int_equal(record.queue, drupe_queue_number(b->queue));
    assert_string_equal(record.device, drupe_device_filter(b->device));
    assert_true(record.id <= drupe_trace_latest() && record.submitted_ns > 0);
    OK(drupe_event_wait(event, DRUPE_FOREVER));
    record = last_labelled("traced fill");
    assert_int_equal(record.status, DRUPE_TRACE_COMPLETE);
    assert_true(record.seen_ns >= record.submitted_ns);
    check_run(suite, &record);
    drupe_event_release(event);
    OK(submit_mad(b, b->queue, memory, memory, N, 1, 1, NULL, 0, NULL));
    assert_true(last_labelled("test_mad").items > 0);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_queue_collect(b->queue);
    record = last_labelled("test_mad");
    /* With an event of its own where times cost nothing. */
    assert_true(record.status == DRUPE_TRACE_PASSED || record.status == DRUPE_TRACE_COMPLETE);
    check_run(suite, &record);
    drupe_memory_release(memory);
}

static void ends(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    struct gate gate;
    gate_init(&gate);
    gate.result = DRUPE_E_INVALID;
    drupe_event *cause = submit_gate(b->queue, &gate), *behind;
    OK(submit_mad(b, b->queue, memory, memory, N, 1, 1, NULL, 0, &behind));
    assert_int_equal(last_labelled("gate").status, DRUPE_TRACE_PENDING);
    assert_int_equal(last_labelled("gate").seen_ns, 0);
    gate_open(&gate);
    FAILS(drupe_event_wait(behind, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    assert_int_equal(last_labelled("gate").status, DRUPE_TRACE_FAILED);
    assert_int_equal(last_labelled("test_mad").status, DRUPE_TRACE_SKIPPED);
    char text[4096];
    size_t size = drupe_trace_text(text, sizeof text - 1, 2);
    text[size] = '\0';
    assert_non_null(strstr(text, "'gate'"));
    assert_non_null(strstr(text, "failed when looked at"));
    assert_non_null(strstr(text, "kernel 'test_mad'"));
    assert_true(text[size - 1] == '\n');
    drupe_event_release(cause);
    drupe_event_release(behind);
    drupe_memory_release(memory);
    gate_destroy(&gate);
}

/* Names of kernels have numbers, as long as there are some; labels tell the same without. */
static void kernel_names(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    uint32_t known = white_box_name_number("test_mad"), number = white_box_trace_name(b->mad, 0);
    assert_int_equal(number, known);
    for (int i = 0; i < 3; i++) {
        white_box_trace_name(b->mad, i == 1 ? 0 : number);
        OK(submit_mad(b, b->queue, memory, memory, N, 1, 1, NULL, 0, NULL));
        drupe_trace_record record = last_labelled("test_mad");
        assert_int_equal(record.id, drupe_trace_latest());
        assert_true(record.ended_ns == 0 || record.started_ns <= record.ended_ns);
    }
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    for (int i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof name, "one of many %d", i);
        uint32_t found = white_box_name_number(name);
        assert_true(found == 0 || found > known);
        assert_int_equal(white_box_name_number(name), found);
        assert_true(i < 1999 || found == 0);
    }
    assert_int_equal(white_box_name_number("test_mad"), known);
    drupe_memory_release(memory);
}

/* What does not fit is what is older, line by line. */
static void short_texts(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_submission s = {.queue = b->queue, .label = "line\nbreak"};
    for (int i = 0; i < 40; i++) OK(drupe_submit_barrier(&s, NULL));
    drupe_trace_record none;
    assert_int_equal(drupe_trace_read(UINT64_MAX, &none, 1), 0);
    char text[8192];
    size_t whole = drupe_trace_text(text, sizeof text, 32), lines = 0;
    for (size_t i = 0; i < whole; i++) lines += text[i] == '\n';
    assert_int_equal(lines, 32);
    for (size_t room = 0; room < 400; room++) {
        char part[400];
        size_t size = drupe_trace_text(part, room, 32);
        assert_true(size <= room && (size == 0 || (part[0] == '#' && part[size - 1] == '\n')));
    }
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
}

static void device_times(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queue;
    OK(drupe_queue_open(b->context, b->device, DRUPE_QUEUE_PROFILING, &queue));
    drupe_memory *memory = new_memory(queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_event *event;
    drupe_times times;
    OK(submit_mad(b, queue, memory, memory, N, 1, 0, NULL, 0, &event));
    OK(drupe_event_wait(event, DRUPE_FOREVER));
    if (drupe_event_times(event, &times) == DRUPE_OK) {
        drupe_trace_record record = last_labelled("test_mad");
        assert_int_equal(record.started_ns, times.started);
        assert_int_equal(record.ended_ns, times.ended);
    }
    drupe_event_release(event);
    drupe_memory_release(memory);
    drupe_queue_release(queue);
}

static _Atomic(int) kept;

static void release_kept(void *object)
{
    (void)object;
    kept--;
}

/* More than what is looked at, or dropped, at one time: looking finds all that is over and drops nothing. */
static void looks(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_keep keep = {&kept, release_kept};
    drupe_submission s = {.queue = b->queue, .label = "looked at", .keeps = &keep, .nkeeps = 1};
    uint64_t value = 1;
    struct gate gate;
    gate_init(&gate);
    drupe_event *stopped = submit_gate(b->queue, &gate), *event = NULL;
    for (kept = 0; kept < 3000; kept++) {
        OK(drupe_submit_fill(&s, drupe_memory_pointer(memory), &value, 8, N * 8, kept % 3 ? NULL : &event));
        if (kept % 3 == 0) drupe_event_release(event);
    }
    gate_open(&gate);
    OK(drupe_event_wait(stopped, DRUPE_FOREVER));
    while (drupe_trace_oldest(drupe_queue_number(b->queue)) != UINT64_MAX) drupe_trace_look();
    assert_int_equal(kept, 3000);
    assert_int_equal(drupe_queue_pending(b->queue), 0);
    assert_int_not_equal(last_labelled("looked at").status, DRUPE_TRACE_PENDING);
    drupe_queue_collect(b->queue);
    assert_int_equal(kept, 0);
    drupe_event_release(stopped);
    drupe_memory_release(memory);
    gate_destroy(&gate);
}

/* --- Many writers, many laps, readers all the while ----------------------------------------------------- */

#define WRITERS 3
#define ROUNDS  6000

static _Atomic(bool) writers_over;

static void *write_much(void *user)
{
    drupe_submission s = {
        .queue = user, .label = "the very long label of a lap, long enough to tear", .site = 9};
    for (int i = 0; i < ROUNDS; i++) {
        if (drupe_submit_barrier(&s, NULL) != DRUPE_OK) return user;
    }
    return NULL;
}

static void check_whole(const drupe_trace_record *record)
{
    if (strncmp(record->label, "the very", 8) != 0) return;
    assert_string_equal(record->label, "the very long label of a lap, long enough to tear");
    assert_int_equal(record->site, 9);
    assert_int_equal(record->kind, DRUPE_WORK_BARRIER);
    assert_true(record->status < DRUPE_TRACE_STATUS_COUNT);
    assert_true(record->seen_ns == 0 || record->seen_ns >= record->submitted_ns);
}

static void *read_much(void *user)
{
    size_t *whole = user;
    static _Thread_local drupe_trace_record records[512];
    do {
        uint64_t latest = drupe_trace_latest();
        size_t count = drupe_trace_read(latest > 400 ? latest - 400 : 0, records, COUNT(records));
        for (size_t i = 0; i < count; i++) check_whole(&records[i]);
        *whole += count;
    } while (!writers_over);
    return NULL;
}

static void read_while_written(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queues[WRITERS];
    pthread_t writers[WRITERS], reader;
    size_t whole = 0;
    writers_over = false;
    assert_int_equal(pthread_create(&reader, NULL, read_much, &whole), 0);
    for (int i = 0; i < WRITERS; i++) {
        OK(drupe_queue_open(b->context, b->device, 0, &queues[i]));
        assert_int_equal(pthread_create(&writers[i], NULL, write_much, queues[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        void *failed;
        pthread_join(writers[i], &failed);
        assert_null(failed);
        OK(drupe_queue_wait(queues[i], DRUPE_FOREVER));
        drupe_queue_release(queues[i]);
    }
    writers_over = true;
    pthread_join(reader, NULL);
    assert_true(whole > 0);
}

const conformance_case cases_trace[] = {
    {"tells", tells},
    {"ends", ends},
    {"kernel_names", kernel_names},
    {"short_texts", short_texts},
    {"device_times", device_times},
    {"looks", looks},
    {"read_while_written", read_while_written},
    {NULL, NULL},
};
