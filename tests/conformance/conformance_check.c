/* Checked mode: what it finds, and what it must leave alone. */
#include "conformance.h"

#define N 512u

struct buffers {
    drupe_queue *queues[2];
    drupe_memory *memory, *other;
};

static void open_pair(struct suite *suite, struct buffers *pair)
{
    drupe_check_begin();
    for (int i = 0; i < 2; i++) {
        OK(drupe_queue_open(suite->bench.context, suite->bench.device, DRUPE_QUEUE_DEFAULT,
                            &pair->queues[i]));
    }
    pair->memory = new_memory(suite->bench.queue, DRUPE_MEM_DEVICE, N * 8);
    pair->other = new_memory(suite->bench.queue, DRUPE_MEM_DEVICE, N * 8);
}

static void close_pair(struct buffers *pair)
{
    drupe_memory_release(pair->memory);
    drupe_memory_release(pair->other);
    for (int i = 0; i < 2; i++) drupe_queue_release(pair->queues[i]);
    drupe_check_end();
}

static drupe_status fill(drupe_queue *queue, drupe_memory *memory, size_t first, size_t count,
                         drupe_event *wait, uint32_t site, drupe_event **event)
{
    uint64_t value = 7;
    drupe_submission s = {.queue = queue, .waits = &wait, .nwaits = wait ? 1 : 0, .site = site};
    char *base = drupe_memory_pointer(memory);
    return drupe_submit_fill(&s, base + first * 8, &value, 8, count * 8, event);
}

static void race(struct suite *suite)
{
    struct buffers p;
    uint64_t before = drupe_check_findings();
    open_pair(suite, &p);
    OK(fill(p.queues[0], p.memory, 0, N, NULL, 11, NULL));
    FAILS(fill(p.queues[1], p.memory, N - 1, 1, NULL, 22, NULL), DRUPE_E_CHECK, "may still be writing");
    assert_non_null(strstr(drupe_error_last()->text, "Race: 'fill' on"));
    assert_non_null(strstr(drupe_error_last()->text, "that 'fill' (submission"));
    assert_int_equal(drupe_check_findings(), before + 1);
    /* What was refused is no submission, and the same queue orders. */
    OK(drupe_queue_wait(p.queues[1], DRUPE_FOREVER));
    OK(fill(p.queues[0], p.memory, 0, N, NULL, 0, NULL));
    close_pair(&p);
}

static void race_with_a_read(struct suite *suite)
{
    struct buffers p;
    uint64_t bytes[N];
    open_pair(suite, &p);
    drupe_submission s = {.queue = p.queues[0]};
    OK(drupe_submit_copy(&s, bytes, drupe_memory_pointer(p.memory), sizeof bytes, NULL));
    FAILS(fill(p.queues[1], p.memory, 0, 1, NULL, 0, NULL), DRUPE_E_CHECK, "may still be reading");
    /* Into one array of the host from two queues. */
    s.queue = p.queues[1];
    FAILS(drupe_submit_copy(&s, bytes, drupe_memory_pointer(p.other), 8, NULL), DRUPE_E_CHECK,
          "may still be writing");
    OK(drupe_queue_wait(p.queues[0], DRUPE_FOREVER));
    close_pair(&p);
}

static void give_up(void *user)
{
    atomic_store((_Atomic(bool) *)user, true);
}

/* What work had kept alive and gave up when it was over may be another's: the host has not waited, and need
 * not. */
static void host_memory_that_was_given_up(struct suite *suite)
{
    struct buffers p;
    uint64_t bytes[N], deadline = drupe_deadline(20ull * SECOND);
    _Atomic(bool) over = false;
    open_pair(suite, &p);
    drupe_keep keep = {&over, give_up};
    drupe_submission s = {.queue = p.queues[0], .keeps = &keep, .nkeeps = 1};
    OK(drupe_submit_copy(&s, bytes + 8, drupe_memory_pointer(p.memory), 8, NULL));
    while (!over && drupe_now_ns() < deadline) drupe_queue_collect(p.queues[0]);
    assert_true(over);
    s = (drupe_submission){.queue = p.queues[1]};
    OK(drupe_submit_copy(&s, bytes, drupe_memory_pointer(p.other), sizeof bytes, NULL));
    OK(drupe_queue_wait(p.queues[1], DRUPE_FOREVER));
    close_pair(&p);
}

static void no_race(struct suite *suite)
{
    struct buffers p;
    drupe_event *event, *second;
    open_pair(suite, &p);
    OK(fill(p.queues[0], p.memory, 0, N / 2, NULL, 0, &event));
    OK(fill(p.queues[1], p.memory, N / 2, N / 2, NULL, 0, NULL));
    /* Through a barrier on a third queue. */
    drupe_submission s = {.queue = suite->bench.queue, .waits = &event, .nwaits = 1};
    OK(drupe_submit_barrier(&s, &second));
    OK(fill(p.queues[1], p.memory, 0, N, second, 0, NULL));
    OK(drupe_queue_wait(p.queues[1], DRUPE_FOREVER));
    OK(fill(p.queues[0], p.memory, 0, N, NULL, 0, NULL));
    drupe_event_release(event);
    drupe_event_release(second);
    close_pair(&p);
}

static drupe_status submit_add(struct suite *suite, drupe_queue *queue, void *a, void *out, uint64_t n)
{
    drupe_arg args[] = {{DRUPE_ARG_POINTER, 0, &a},
                        {DRUPE_ARG_POINTER, 0, &a},
                        {DRUPE_ARG_POINTER, 0, &out},
                        {DRUPE_ARG_VALUE, 8, &n}};
    drupe_range range = {.dims = 1, .global = {n}};
    drupe_submission s = {.queue = queue};
    return drupe_submit_kernel(&s, suite->bench.add, &range, args, COUNT(args), NULL);
}

/* Two kernels read the same memory: fine where the compiler says that they only read. Halves of one
 * allocation. */
static void kernels(struct suite *suite)
{
    struct buffers p;
    open_pair(suite, &p);
    OK(fill(p.queues[0], p.memory, 0, N, NULL, 0, NULL));
    OK(drupe_queue_wait(p.queues[0], DRUPE_FOREVER));
    char *in = drupe_memory_pointer(p.memory), *out = drupe_memory_pointer(p.other);
    OK(submit_add(suite, p.queues[0], in, out, 64));
    if (suite->fixture->source) {
        OK(submit_add(suite, p.queues[1], in, out + 64 * sizeof(float), 64));
        FAILS(submit_add(suite, p.queues[1], in, out + 60 * sizeof(float), 8), DRUPE_E_CHECK, "test_add");
    } else {
        FAILS(submit_add(suite, p.queues[1], in, out, 64), DRUPE_E_CHECK, "test_add");
    }
    close_pair(&p);
}

static void alignment(struct suite *suite)
{
    struct buffers p;
    if (!suite->fixture->source) skip_known(suite, "argument_information");
    open_pair(suite, &p);
    char *in = drupe_memory_pointer(p.memory), *out = drupe_memory_pointer(p.other);
    FAILS(submit_add(suite, p.queues[0], in + 2, out, 8), DRUPE_E_CHECK, "no multiple of the 4 bytes");
    close_pair(&p);
}

static void behind_the_end(struct suite *suite)
{
    struct buffers p;
    if (!has_kind(&suite->bench, DRUPE_MEM_HOST)) skip_known(suite, "guarded_memory");
    open_pair(suite, &p);
    drupe_memory *small = new_memory(suite->bench.queue, DRUPE_MEM_DEVICE, 40);
    OK(submit_spin(&suite->bench, p.queues[0], small, 7, 1, NULL));
    FAILS(drupe_queue_wait(p.queues[0], DRUPE_FOREVER), DRUPE_E_CHECK, "Out of bounds");
    assert_non_null(strstr(drupe_error_last()->text, "wrote to it is 'test_spin'"));
    /* It is told once. */
    OK(drupe_queue_wait(p.queues[0], DRUPE_FOREVER));
    drupe_memory_release(small);
    close_pair(&p);
}

static void before_the_start(struct suite *suite)
{
    struct buffers p;
    if (!has_kind(&suite->bench, DRUPE_MEM_HOST)) skip_known(suite, "guarded_memory");
    open_pair(suite, &p);
    drupe_memory *memory = new_memory(suite->bench.queue, DRUPE_MEM_HOST, 100);
    ((char *)drupe_memory_pointer(memory))[-3] = 1;
    FAILS(drupe_queue_wait(p.queues[0], DRUPE_FOREVER), DRUPE_E_CHECK, "3 bytes before");
    /* Seen when it is freed: nobody can be told but by the next look for failures. */
    ((char *)drupe_memory_pointer(memory))[100] = 1;
    drupe_memory_release(memory);
    drupe_failure failure;
    assert_true(drupe_failure_take(&failure));
    assert_int_equal(failure.error.status, DRUPE_E_CHECK);
    assert_non_null(strstr(failure.error.text, "0 bytes behind"));
    close_pair(&p);
}

static void after_free(struct suite *suite)
{
    struct buffers p;
    if (!has_kind(&suite->bench, DRUPE_MEM_HOST)) skip_known(suite, "guarded_memory");
    open_pair(suite, &p);
    drupe_memory *memory = new_memory(suite->bench.queue, DRUPE_MEM_HOST, 100);
    char *pointer = drupe_memory_pointer(memory);
    uint64_t value = 1;
    drupe_memory_release(memory);
    drupe_submission s = {.queue = p.queues[0]};
    FAILS(drupe_submit_fill(&s, pointer, &value, 8, 8, NULL), DRUPE_E_CHECK, "Use after free");
    pointer[5] = 1;
    drupe_pool_trim(suite->bench.device);
    drupe_failure failure;
    assert_true(drupe_failure_take(&failure));
    assert_non_null(strstr(failure.error.text, "byte 5 of 100"));
    close_pair(&p);
}

static void host_access(struct suite *suite)
{
    struct buffers p;
    struct gate gate;
    open_pair(suite, &p);
    gate_init(&gate);
    drupe_event *entered = submit_gate(p.queues[0], &gate);
    OK(fill(p.queues[0], p.memory, 0, N, NULL, 0, NULL));
    char *pointer = drupe_memory_pointer(p.memory);
    FAILS(drupe_check_host(pointer + 8, 1, false), DRUPE_E_CHECK, "the host would read");
    OK(drupe_check_host(drupe_memory_pointer(p.other), N * 8, true));
    gate_open(&gate);
    OK(drupe_queue_wait(p.queues[0], DRUPE_FOREVER));
    OK(drupe_check_host(pointer, N * 8, true));
    drupe_event_release(entered);
    gate_destroy(&gate);
    close_pair(&p);
}

const conformance_case cases_check[] = {
    {"check_race", race},
    {"check_race_with_a_read", race_with_a_read},
    {"check_given_up", host_memory_that_was_given_up},
    {"check_no_race", no_race},
    {"check_kernels", kernels},
    {"check_alignment", alignment},
    {"check_behind_the_end", behind_the_end},
    {"check_before_the_start", before_the_start},
    {"check_after_free", after_free},
    {"check_host_access", host_access},
    {NULL, NULL},
};
