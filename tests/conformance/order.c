/* What runs before what. */
#include "conformance.h"

#define N 1000

static void in_order(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    uint64_t expected = 1;
    fill_u64(b->queue, m, 1, N);
    for (uint64_t i = 0; i < 300; i++) {
        OK(submit_mad(b, b->queue, m, m, i % 3 ? N : 20, 1, 0, NULL, 0, NULL));
        OK(submit_mad(b, b->queue, m, m, N, 3, i, NULL, 0, NULL));
        expected = expected * 3 + i;
    }
    expect_u64(b->queue, m, expected, N);
    drupe_memory_release(m);
}

/* y <- x on one queue after x was written on another one, which is stopped by a gate. */
static void wait_across(struct suite *suite, struct bench *writer, struct bench *reader)
{
    (void)suite;
    struct gate gate;
    gate_init(&gate);
    drupe_queue *first, *second;
    OK(drupe_queue_open(writer->context, writer->device, 0, &first));
    OK(drupe_queue_open(reader->context, reader->device, 0, &second));
    drupe_memory *x = new_memory(first, DRUPE_MEM_DEVICE, N * 8);
    drupe_memory *y = new_memory(second, DRUPE_MEM_DEVICE, N * 8);
    fill_u64(first, x, 1, N);
    fill_u64(second, y, 2, N);
    OK(drupe_queue_wait(first, DRUPE_FOREVER));
    drupe_event *stopped = submit_gate(first, &gate), *written, *copied, *behind;
    OK(submit_mad(writer, first, x, x, N, 5, 2, NULL, 0, &written));
    drupe_submission s = {.queue = second, .waits = &written, .nwaits = 1};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(y), drupe_memory_pointer(x), N * 8, &copied));
    OK(submit_mad(reader, second, y, y, N, 10, 1, NULL, 0, &behind));
    FAILS(drupe_event_wait(behind, 2000000), DRUPE_E_TIMEOUT, "");
    assert_true(drupe_event_state_of(copied) < DRUPE_EVENT_COMPLETE);
    assert_true(drupe_queue_pending(second) > 0);
    gate_open(&gate);
    OK(drupe_event_wait(behind, DRUPE_FOREVER));
    assert_int_equal(drupe_event_state_of(stopped), DRUPE_EVENT_COMPLETE);
    assert_int_equal(drupe_event_state_of(written), DRUPE_EVENT_COMPLETE);
    expect_u64(second, y, 71, N);
    drupe_event *events[] = {stopped, written, copied, behind};
    for (size_t i = 0; i < COUNT(events); i++) drupe_event_release(events[i]);
    drupe_memory_release(x);
    drupe_memory_release(y);
    drupe_queue_release(first);
    drupe_queue_release(second);
    gate_destroy(&gate);
}

static void wait_across_queues(struct suite *suite)
{
    wait_across(suite, &suite->bench, &suite->bench);
}

static void wait_across_contexts(struct suite *suite)
{
    struct bench *other = use_other(suite);
    wait_across(suite, &suite->bench, other);
    wait_across(suite, other, &suite->bench);
}

static void wait_across_backends(struct suite *suite)
{
    struct bench *remote = use_remote(suite);
    wait_across(suite, &suite->bench, remote);
    wait_across(suite, remote, &suite->bench);
}

/* Without any host function: the driver's own waits. */
static void native_waits(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *queues[4];
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_memory *busy = new_memory(b->queue, DRUPE_MEM_DEVICE, 64 * 8);
    uint64_t expected = 7;
    fill_u64(b->queue, m, 7, N);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    for (size_t i = 0; i < COUNT(queues); i++) OK(drupe_queue_open(b->context, b->device, 0, &queues[i]));
    drupe_event *last = NULL;
    for (uint64_t i = 0; i < 200; i++) {
        drupe_queue *queue = queues[i * 7 % COUNT(queues)];
        drupe_event *next;
        if (i % 50 == 0) OK(submit_spin(b, queue, busy, 64, 20000, NULL));
        OK(submit_mad(b, queue, m, m, N, 3, i, &last, 1, &next));
        drupe_event_release(last);
        last = next;
        expected = expected * 3 + i;
    }
    OK(drupe_event_wait(last, DRUPE_FOREVER));
    drupe_event_release(last);
    expect_u64(b->queue, m, expected, N);
    for (size_t i = 0; i < COUNT(queues); i++) drupe_queue_release(queues[i]);
    drupe_memory_release(m);
    drupe_memory_release(busy);
}

/* Everything behind a held submission is held with it, in order, whatever it is. */
static void held_keeps_order(struct suite *suite)
{
    struct bench *b = &suite->bench, *other = use_other(suite);
    struct gate gate;
    gate_init(&gate);
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_memory *copy = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    fill_u64(b->queue, m, 1, N);
    drupe_event *foreign = submit_gate(other->queue, &gate);
    OK(submit_mad(b, b->queue, m, m, N, 2, 1, &foreign, 1, NULL));
    uint64_t expected = 3;
    for (uint64_t i = 0; i < 100; i++) {
        OK(submit_mad(b, b->queue, m, m, N, 3, i, NULL, 0, NULL));
        expected = expected * 3 + i;
    }
    drupe_submission s = {.queue = b->queue};
    drupe_event *end;
    OK(drupe_submit_copy(&s, drupe_memory_pointer(copy), drupe_memory_pointer(m), N * 8, NULL));
    fill_u64(b->queue, m, 99, N);
    OK(drupe_submit_barrier(&s, &end));
    assert_int_equal(drupe_event_state_of(end), DRUPE_EVENT_QUEUED);
    assert_true(drupe_queue_pending(b->queue) >= 103);
    gate_open(&gate);
    OK(drupe_event_wait(end, DRUPE_FOREVER));
    expect_u64(b->queue, copy, expected, N);
    expect_u64(b->queue, m, 99, N);
    drupe_event_release(end);
    drupe_event_release(foreign);
    drupe_memory_release(m);
    drupe_memory_release(copy);
    gate_destroy(&gate);
}

static void many_waits(struct suite *suite)
{
    struct bench *b = &suite->bench, *other = use_other(suite);
    drupe_event *events[61] = {0};
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_queue *second;
    OK(drupe_queue_open(b->context, b->device, 0, &second));
    fill_u64(b->queue, m, 1, N);
    for (size_t i = 0; i < 60; i++) {
        drupe_submission s = {.queue = i % 3 ? b->queue : other->queue};
        OK(drupe_submit_barrier(&s, &events[i]));
    }
    drupe_event *end;
    OK(submit_mad(b, second, m, m, N, 4, 4, events, COUNT(events), &end));
    OK(drupe_event_wait(end, DRUPE_FOREVER));
    expect_u64(second, m, 8, N);
    for (size_t i = 0; i < 60; i++) drupe_event_release(events[i]);
    drupe_event_release(end);
    drupe_memory_release(m);
    drupe_queue_release(second);
}

/* A wait that is over holds nothing, not even across contexts. */
static void wait_for_the_past(struct suite *suite)
{
    struct bench *b = &suite->bench, *other = use_other(suite);
    drupe_submission s = {.queue = other->queue};
    drupe_event *past, *end;
    OK(drupe_submit_barrier(&s, &past));
    OK(drupe_event_wait(past, DRUPE_FOREVER));
    drupe_submission t = {.queue = b->queue, .waits = &past, .nwaits = 1};
    OK(drupe_submit_barrier(&t, &end));
    assert_int_not_equal(drupe_event_state_of(end), DRUPE_EVENT_QUEUED);
    OK(drupe_event_wait(end, DRUPE_FOREVER));
    drupe_event_release(past);
    drupe_event_release(end);
}

struct log {
    int seen[64];
    size_t count;
    pthread_t thread;
};
struct entry {
    struct log *log;
    int number;
};

static drupe_status write_log(void *user)
{
    struct entry *entry = user;
    entry->log->seen[entry->log->count++] = entry->number;
    entry->log->thread = pthread_self();
    return DRUPE_OK;
}

/* Host functions take turns with device work, and never run on the submitting thread. */
static void submit_host(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct log log = {.count = 0};
    struct entry entries[20];
    drupe_submission s = {.queue = b->queue};
    drupe_memory *m = new_memory(b->queue, kind_or_device(b, DRUPE_MEM_HOST), N * 8);
    fill_u64(b->queue, m, 0, N);
    for (int i = 0; i < 20; i++) {
        entries[i] = (struct entry){&log, i};
        OK(drupe_submit_host(&s, write_log, &entries[i], NULL));
        OK(submit_mad(b, b->queue, m, m, N, 1, 1, NULL, 0, NULL));
    }
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    assert_int_equal(log.count, 20);
    for (int i = 0; i < 20; i++) assert_int_equal(log.seen[i], i);
    assert_false(pthread_equal(log.thread, pthread_self()));
    expect_u64(b->queue, m, 20, N);
    drupe_memory_release(m);
}

struct peek {
    const uint64_t *value;
    uint64_t seen;
};

static drupe_status look(void *user)
{
    struct peek *peek = user;
    peek->seen = *peek->value;
    return DRUPE_OK;
}

/* A host function sees what was written before it, and nothing of what comes after it. */
static void host_between_kernels(struct suite *suite)
{
    struct bench *b = &suite->bench;
    uint64_t value = 5;
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 8);
    drupe_submission s = {.queue = b->queue};
    struct peek peek = {.value = &value};
    fill_u64(b->queue, m, 41, 1);
    OK(submit_mad(b, b->queue, m, m, 1, 1, 1, NULL, 0, NULL));
    OK(drupe_submit_copy(&s, &value, drupe_memory_pointer(m), 8, NULL));
    OK(drupe_submit_host(&s, look, &peek, NULL));
    OK(submit_mad(b, b->queue, m, m, 1, 2, 0, NULL, 0, NULL));
    OK(drupe_submit_copy(&s, &value, drupe_memory_pointer(m), 8, NULL));
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    assert_int_equal(peek.seen, 42);
    assert_int_equal(value, 84);
    drupe_memory_release(m);
}

/* A host function waits for work of another queue, also where core runs it. */
static void host_waits(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_queue *second;
    OK(drupe_queue_open(b->context, b->device, 0, &second));
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 64 * 8);
    for (int i = 0; i < 20; i++) {
        uint64_t value = 0;
        drupe_event *copied;
        drupe_submission s = {.queue = b->queue};
        struct peek peek = {.value = &value};
        OK(submit_spin(b, b->queue, m, 64, 30000, NULL));
        fill_u64(b->queue, m, 5, 64);
        OK(drupe_submit_copy(&s, &value, drupe_memory_pointer(m), 8, &copied));
        drupe_submission t = {.queue = second, .waits = &copied, .nwaits = 1};
        OK(drupe_submit_host(&t, look, &peek, NULL));
        OK(drupe_queue_wait(second, DRUPE_FOREVER));
        assert_int_equal(peek.seen, 5);
        drupe_event_release(copied);
    }
    drupe_memory_release(m);
    drupe_queue_release(second);
}

struct submitter {
    struct bench *bench;
    drupe_queue *queue;
    drupe_memory *memory;
    uint64_t add, count;
    bool failed;
};

static void *submit_many(void *user)
{
    struct submitter *me = user;
    for (uint64_t i = 0; i < me->count; i++) {
        drupe_event *event = NULL;
        if (submit_mad(me->bench, me->queue, me->memory, me->memory, N, 1, me->add, NULL, 0,
                       i % 4 ? NULL : &event)) {
            me->failed = true;
        }
        if (event && i % 16 == 0 && drupe_event_wait(event, DRUPE_FOREVER)) me->failed = true;
        drupe_event_release(event);
    }
    return NULL;
}

/* Several threads, one queue: nothing is lost. */
static void many_threads(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    fill_u64(b->queue, m, 0, N);
    struct submitter submitter = {.bench = b, .queue = b->queue, .memory = m, .add = 1, .count = 500};
    struct submitter copies[4] = {submitter, submitter, submitter, submitter};
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) OK(drupe_thread_start(&threads[i], submit_many, &copies[i], "submitter"));
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_false(copies[i].failed);
    }
    expect_u64(b->queue, m, 2000, N);
    drupe_memory_release(m);
}

/* Several threads, each with a queue of its own, and one kernel: arguments stay with their launches. */
static void many_queues_one_kernel(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct submitter submitters[4];
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        struct submitter *one = &submitters[i];
        *one = (struct submitter){.bench = b, .add = i + 1, .count = 2500};
        OK(drupe_queue_open(b->context, b->device, DRUPE_QUEUE_DEFAULT, &one->queue));
        one->memory = new_memory(one->queue, DRUPE_MEM_DEVICE, N * 8);
        fill_u64(one->queue, one->memory, 0, N);
    }
    for (size_t i = 0; i < 4; i++)
        OK(drupe_thread_start(&threads[i], submit_many, &submitters[i], "submitter"));
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_false(submitters[i].failed);
    }
    for (size_t i = 0; i < 4; i++) {
        expect_u64(submitters[i].queue, submitters[i].memory, 2500 * (i + 1), N);
        drupe_memory_release(submitters[i].memory);
        drupe_queue_release(submitters[i].queue);
    }
}

const conformance_case cases_order[] = {
    {"in_order", in_order},
    {"wait_across_queues", wait_across_queues},
    {"wait_across_contexts", wait_across_contexts},
    {"wait_across_backends", wait_across_backends},
    {"native_waits", native_waits},
    {"held_keeps_order", held_keeps_order},
    {"many_waits", many_waits},
    {"wait_for_the_past", wait_for_the_past},
    {"submit_host", submit_host},
    {"host_between_kernels", host_between_kernels},
    {"host_waits", host_waits},
    {"many_threads", many_threads},
    {"many_queues_one_kernel", many_queues_one_kernel},
    {NULL, NULL},
};
