/* The public submissions: what is refused and with which words, what is done, what is kept alive. */
#include "core/submit/submit_room.h"
#include "core_bench.h"
#include "layers/fault_layer.h"

static drupe_memory *ours, *foreign;
static drupe_queue *far;
static drupe_submission s;

static int setup(void **state)
{
    drupe_fault_layer(true);
    if (drupe_fault_plan(NULL) != DRUPE_OK || bench_setup(state) != 0) return -1;
    far = bench_elsewhere();
    ours = bench_memory(bench.queue, DRUPE_MEM_SHARED, 1024);
    foreign = bench_memory(far, DRUPE_MEM_DEVICE, 1024);
    s = (drupe_submission){.queue = bench.queue};
    return 0;
}

static int teardown(void **state)
{
    drupe_memory_release(ours);
    drupe_memory_release(foreign);
    drupe_queue_release(far);
    return bench_teardown(state);
}

static char *at(size_t offset)
{
    return (char *)drupe_memory_pointer(ours) + offset;
}

static _Atomic(int) released;

static void release(void *object)
{
    atomic_fetch_add((_Atomic(int) *)object, 1);
}

/* --- Copy, fill, hints -----------------------------------------------------------------------------------
 */

static void copies_go_both_ways(void **state)
{
    (void)state;
    char here[1024];
    drupe_event *event;
    memset(here, 5, sizeof here);
    OK(drupe_submit_copy(&s, at(0), here, 1024, &event));
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    bench_expect_bytes(ours, 5, 1024);
    OK(drupe_submit_fill(&s, at(0), "ab", 2, 512, NULL));
    OK(drupe_submit_copy(&s, at(512), at(0), 512, NULL));
    OK(drupe_submit_copy(&s, here, at(512), 512, &event));
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    for (size_t i = 0; i < 512; i++) assert_int_equal(here[i], i % 2 ? 'b' : 'a');
    OK(drupe_submit_copy(&s, NULL, NULL, 0, &event)); /* nothing to do, but an event */
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    OK(drupe_submit_fill(&s, NULL, "x", 1, 0, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
}

static void copies_that_cannot_be_are_refused(void **state)
{
    (void)state;
    char here[64];
    drupe_event *event = (drupe_event *)1;
    drupe_submission nowhere = {0};
    FAILS(drupe_submit_copy(NULL, at(0), here, 8, &event), DRUPE_E_INVALID, "needs a queue");
    assert_null(event);
    FAILS(drupe_submit_copy(&nowhere, at(0), here, 8, NULL), DRUPE_E_INVALID, "needs a queue");
    FAILS(drupe_submit_copy(&s, NULL, here, 8, NULL), DRUPE_E_INVALID, "copy target: the address is NULL");
    FAILS(drupe_submit_copy(&s, at(0), NULL, 8, NULL), DRUPE_E_INVALID, "copy source: the address is NULL");
    FAILS(drupe_submit_copy(&s, at(0), at(4), 8, NULL), DRUPE_E_INVALID, "8 bytes overlap");
    FAILS(drupe_submit_copy(&s, at(4), at(0), 8, NULL), DRUPE_E_INVALID, "8 bytes overlap");
    FAILS(drupe_submit_copy(&s, at(1000), here, 64, NULL), DRUPE_E_OUT_OF_RANGE,
          "64 bytes from offset 1000 run past the end of an allocation of 1024 bytes");
    FAILS(drupe_submit_copy(&s, here, at(1000), 64, NULL), DRUPE_E_OUT_OF_RANGE, "copy source");
    FAILS(drupe_submit_copy(&s, here, at(0) - 8, 16, NULL), DRUPE_E_OUT_OF_RANGE, "run into an allocation");
    s.nwaits = 1;
    FAILS(drupe_submit_copy(&s, at(0), here, 8, NULL), DRUPE_E_INVALID, "list of events is missing");
    drupe_memory *gone = bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096);
    char *there = drupe_memory_pointer(gone);
    drupe_memory_release(gone);
    s.nwaits = 0;
    FAILS(drupe_submit_copy(&s, there, here, 8, NULL), DRUPE_E_INVALID, "memory that is not allocated");
}

static void fills_repeat_a_pattern(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 16; size *= 2) {
        OK(drupe_submit_fill(&s, at(0), "0123456789abcdef", size, 1024, NULL));
        OK(drupe_queue_wait(bench.queue, LONG));
        for (size_t i = 0; i < 1024; i++) assert_int_equal(*at(i), "0123456789abcdef"[i % size]);
    }
    FAILS(drupe_submit_fill(&s, at(0), NULL, 1, 8, NULL), DRUPE_E_INVALID, "1, 2, 4, 8 or 16");
    FAILS(drupe_submit_fill(&s, at(0), "x", 0, 8, NULL), DRUPE_E_INVALID, "not 0");
    FAILS(drupe_submit_fill(&s, at(0), "xxx", 3, 9, NULL), DRUPE_E_INVALID, "not 3");
    FAILS(drupe_submit_fill(&s, at(0), "", 32, 64, NULL), DRUPE_E_INVALID, "not 32");
    FAILS(drupe_submit_fill(&s, at(0), "xxxx", 4, 7, NULL), DRUPE_E_INVALID, "7 bytes cannot be filled");
    FAILS(drupe_submit_fill(&s, at(2), "xxxx", 4, 8, NULL), DRUPE_E_INVALID,
          "multiple of its pattern's size 4");
    FAILS(drupe_submit_fill(&s, drupe_memory_pointer(foreign), "x", 1, 8, NULL), DRUPE_E_INVALID,
          "needs USM");
    char here[8];
    FAILS(drupe_submit_fill(&s, here, "x", 1, 8, NULL), DRUPE_E_INVALID, "needs USM");
    FAILS(drupe_submit_fill(&s, at(1020), "x", 1, 8, NULL), DRUPE_E_OUT_OF_RANGE, "fill");
}

static void hints_touch_nothing(void **state)
{
    (void)state;
    char here[8];
    drupe_event *event;
    memset(at(0), 3, 1024);
    OK(drupe_submit_prefetch(&s, at(0), 1024, &event));
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    OK(drupe_submit_advise(&s, at(0), 512, 0, NULL));
    OK(drupe_submit_prefetch(&s, at(0), 0, NULL));
    OK(drupe_submit_advise(&s, NULL, 0, 0, NULL));
    FAILS(drupe_submit_prefetch(&s, NULL, 8, NULL), DRUPE_E_INVALID, "prefetch: the address is NULL");
    FAILS(drupe_submit_prefetch(&s, here, 8, NULL), DRUPE_E_INVALID, "not in USM");
    FAILS(drupe_submit_advise(&s, drupe_memory_pointer(foreign), 8, 1, NULL), DRUPE_E_INVALID, "advice");
    FAILS(drupe_submit_advise(NULL, at(0), 8, 1, NULL), DRUPE_E_INVALID, "needs a queue");
    OK(drupe_queue_wait(bench.queue, LONG));
    bench_expect_bytes(ours, 3, 1024);
}

/* What is said of a submission that is refused, beside the words. */
static void refusals_name_the_submission(void **state)
{
    (void)state;
    drupe_failure own, cause;
    s.label = "named";
    s.site = 9;
    FAILS(drupe_submit_fill(&s, at(0), "xxx", 3, 9, NULL), DRUPE_E_INVALID, "not 3");
    assert_true(drupe_failure_last(&own, &cause));
    assert_string_equal(own.label, "named");
    assert_int_equal(own.site, 9);
    s.label = NULL;
    FAILS(drupe_submit_prefetch(&s, at(1020), 8, NULL), DRUPE_E_OUT_OF_RANGE, "prefetch");
    assert_true(drupe_failure_last(&own, &cause));
    assert_string_equal(own.label, "prefetch");
}

/* --- Keeps -----------------------------------------------------------------------------------------------
 */

static void keeps_are_taken_whatever_happens(void **state)
{
    (void)state;
    const drupe_keep keeps[] = {{(void *)&released, release}, {(void *)&released, release}};
    drupe_event *gate = bench_gate();
    atomic_store(&released, 0);
    s.keeps = keeps;
    s.nkeeps = 2;
    s.waits = &gate;
    s.nwaits = 1;
    OK(drupe_submit_fill(&s, at(0), "x", 1, 8, NULL));
    assert_int_equal(released, 0);
    FAILS(drupe_submit_fill(&s, at(0), "xxx", 3, 8, NULL), DRUPE_E_INVALID, "pattern");
    assert_int_equal(released, 2);
    s.queue = NULL;
    FAILS(drupe_submit_barrier(&s, NULL), DRUPE_E_INVALID, "needs a queue");
    assert_int_equal(released, 4);
    s.queue = bench.queue;
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    assert_int_equal(released, 6);
}

static drupe_status write_byte(void *user)
{
    *(char *)user = 7;
    return DRUPE_OK;
}

static void host_functions_say_what_they_touch(void **state)
{
    (void)state;
    const drupe_effects reads = {.reads = 1}, replaces = {.writes = 1, .replaces = 1};
    drupe_keep keep = drupe_memory_keep(ours, bench.queue);
    drupe_event *failure = bench_failure(bench.queue, "before", NULL), *event;
    OK(bench_fill(bench.queue, ours, 1, NULL, NULL)); /* does not run */
    assert_int_equal(drupe_queue_wait(bench.queue, LONG), DRUPE_E_INVALID);
    drupe_event_release(failure);
    s.keeps = &keep;
    s.nkeeps = 1;
    s.effects = &reads;
    FAILS(drupe_submit_host(&s, write_byte, at(0), NULL), DRUPE_E_DEPENDENCY, "'before'");
    keep = drupe_memory_keep(ours, bench.queue);
    s.effects = NULL; /* it might read */
    FAILS(drupe_submit_host(&s, write_byte, at(0), NULL), DRUPE_E_DEPENDENCY, "'before'");
    keep = drupe_memory_keep(ours, bench.queue);
    s.effects = &replaces;
    OK(drupe_submit_host(&s, write_byte, at(0), &event));
    OK(drupe_event_wait(event, LONG));
    OK(drupe_memory_contents(ours));
    assert_int_equal(*at(0), 7);
    drupe_event_release(event);
    s.nkeeps = 0;
    FAILS(drupe_submit_host(&s, NULL, NULL, NULL), DRUPE_E_INVALID, "host function is missing");
    FAILS(drupe_submit_host(NULL, write_byte, NULL, NULL), DRUPE_E_INVALID, "needs a queue");
}

/* --- Kernels ---------------------------------------------------------------------------------------------
 */

struct launch {
    drupe_range range;
    drupe_arg args[5];
    void *out, *in;
    uint64_t n, mul, add;
    size_t nargs;
};

static void load(struct launch *one)
{
    *one = (struct launch){.range = {.dims = 1, .global = {4}}, .n = 128, .mul = 1, .add = 2, .nargs = 5};
    one->out = one->in = drupe_memory_pointer(ours);
    one->args[0] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &one->out};
    one->args[1] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &one->in};
    one->args[2] = (drupe_arg){DRUPE_ARG_VALUE, 8, &one->n};
    one->args[3] = (drupe_arg){DRUPE_ARG_VALUE, 8, &one->mul};
    one->args[4] = (drupe_arg){DRUPE_ARG_VALUE, 8, &one->add};
}

static drupe_status submit(struct launch *one, drupe_event **event)
{
    return drupe_submit_kernel(&s, bench.mad, &one->range, one->args, one->nargs, event);
}

static void launches_run(void **state)
{
    (void)state;
    struct launch one;
    drupe_event *event, *gate = bench_gate();
    load(&one);
    memset(at(0), 0, 1024);
    OK(submit(&one, NULL));
    OK(submit(&one, &event));
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    drupe_memory *memories[5] = {ours, ours};
    s.memories = memories;
    for (size_t i = 0; i < 3; i++) OK(submit(&one, NULL)); /* the references are passed on */
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_int_equal(*(uint64_t *)drupe_memory_pointer(ours), 10);
    s.waits = &gate;
    s.nwaits = 1;
    s.label = "named";
    OK(submit(&one, &event));
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_QUEUED);
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    assert_int_equal(*(uint64_t *)drupe_memory_pointer(ours), 12);
    one.range.global[0] = 0; /* nothing to run, but an event */
    s = (drupe_submission){.queue = bench.queue};
    OK(submit(&one, &event));
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    assert_int_equal(*(uint64_t *)drupe_memory_pointer(ours), 12);
}

static void launches_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct launch one;
    char here[64];
    load(&one);
    FAILS(drupe_submit_kernel(&s, NULL, &one.range, one.args, 5, NULL), DRUPE_E_INVALID, "are missing");
    FAILS(drupe_submit_kernel(&s, bench.mad, &one.range, NULL, 5, NULL), DRUPE_E_INVALID, "are missing");
    FAILS(drupe_submit_kernel(NULL, bench.mad, &one.range, one.args, 5, NULL), DRUPE_E_INVALID, "a queue");
    FAILS(drupe_submit_kernel(&s, bench.mad, NULL, one.args, 5, NULL), DRUPE_E_INVALID, "1 to 3 dimensions");
    FAILS(drupe_submit_kernel(&s, bench.mad, &one.range, one.args, 4, NULL), DRUPE_E_INVALID,
          "takes 5 arguments, 4 were given");
    FAILS(drupe_submit_kernel(&s, bench.gid, &one.range, one.args, 0, NULL), DRUPE_E_INVALID,
          "takes 1 argument, 0 were given");
    FAILS(drupe_submit_kernel(&s, bench.gid, &one.range, one.args, 2, NULL), DRUPE_E_INVALID, "2 were given");
    one.range.dims = 4;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "1 to 3 dimensions");
    load(&one);
    one.range.local[0] = 4096;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "local size of dimension 0 is 4096");
    load(&one);
    one.in = here;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "which is not in USM");
    one.in = drupe_memory_pointer(foreign);
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "memory of another context");
    load(&one);
    one.args[2].kind = (drupe_arg_kind)9;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "Argument 2 of 'test_mad' has no known kind");
    load(&one);
    one.args[3].value = NULL;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "Argument 3 of 'test_mad' has no value");
    load(&one);
    one.args[4].size = 0;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "Argument 4 of 'test_mad' has no size");
    load(&one);
    s.queue = far;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "in another context");
}

/* What the compiler tells of the arguments. */
static void arguments_are_as_declared(void **state)
{
    (void)state;
    static drupe_arg_info infos[5] = {{.kind = DRUPE_ARG_POINTER, .name = "out", .type_name = "ulong*"},
                                      {.kind = DRUPE_ARG_POINTER, .name = "in", .type_name = "ulong*"},
                                      {.kind = DRUPE_ARG_VALUE, .name = "n", .type_name = "ulong"},
                                      {.kind = DRUPE_ARG_VALUE, .name = "mul", .type_name = "ulong"},
                                      {.kind = DRUPE_ARG_VALUE, .name = "add", .type_name = "ulong"}};
    static drupe_form forms[5] = {{DRUPE_ARG_POINTER, 0},
                                  {DRUPE_ARG_POINTER, 0},
                                  {DRUPE_ARG_VALUE, 8},
                                  {DRUPE_ARG_VALUE, 8},
                                  {DRUPE_ARG_VALUE, 8}};
    struct launch one;
    bench.mad->args = infos;
    bench.mad->forms = forms;
    load(&one);
    OK(submit(&one, NULL));
    one.args[2].kind = DRUPE_ARG_LOCAL;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "(ulong n) is a value, local memory was given");
    load(&one);
    one.args[2].size = 4;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "(ulong n) has 8 bytes, 4 were given");
    bench.mad->worded = true;
    const uint64_t words[5] = {(uintptr_t)one.out, (uintptr_t)one.in, 128, 1, 2};
    OK(drupe_submit_words(&s, bench.mad, &one.range, words, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    bench.mad->worded = false;
    FAILS(drupe_submit_words(&s, bench.mad, &one.range, words, NULL), DRUPE_E_INVALID, "as words");
    FAILS(drupe_submit_words(&s, NULL, &one.range, words, NULL), DRUPE_E_INVALID, "as words");
    FAILS(drupe_submit_words(&s, bench.mad, &one.range, NULL, NULL), DRUPE_E_INVALID, "as words");
    bench.mad->args = NULL;
    bench.mad->forms = NULL;
}

/* A device that does not tell its limit has none that is known. */
static void limits_that_nobody_tells_are_not_asked_for(void **state)
{
    (void)state;
    struct launch one;
    drupe_info_entry *items = &bench.device->info[DRUPE_INFO_MAX_WORK_ITEM_SIZES];
    const int told = atomic_load(&items->state);
    load(&one);
    one.range.local[0] = 4;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "it must be from 1 to ");
    atomic_store(&items->state, DRUPE_INFO_MEANINGLESS);
    bench.mad->group_size = 2;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "a work-group of 4 work-items is too large; at most 2");
    atomic_store(&items->state, told);
}

static void devices_have_limits(void **state)
{
    (void)state;
    struct launch one;
    static char much[1u << 20];
    load(&one);
    one.args[4] = (drupe_arg){DRUPE_ARG_VALUE, sizeof much, much};
    FAILS(submit(&one, NULL), DRUPE_E_OUT_OF_RANGE, "bytes, host:cpu:0 allows ");
    drupe_info_entry *local = &bench.device->info[DRUPE_INFO_LOCAL_MEM_SIZE];
    local->number[0] = 1024;
    atomic_store(&local->state, DRUPE_INFO_KNOWN);
    one.args[4] = (drupe_arg){DRUPE_ARG_LOCAL, 2000, NULL};
    FAILS(submit(&one, NULL), DRUPE_E_OUT_OF_RANGE, "would use 2000 bytes of local memory");
    drupe_info_entry *items = &bench.device->info[DRUPE_INFO_MAX_WORK_ITEM_SIZES];
    for (size_t d = 0; d < 3; d++) items->number[d] = 64;
    atomic_store(&items->state, DRUPE_INFO_KNOWN);
    load(&one);
    bench.mad->group_size = 32;
    one.range = (drupe_range){.dims = 2, .global = {64, 64}, .local = {8, 8}};
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "a work-group of 64 work-items is too large; at most 32");
    one.range.local[1] = 3;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "local size 3 does not divide the global size 64");
    one.range.local[1] = 0;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "local size of dimension 1 is 0");
}

static void a_refused_launch_leaves_nothing(void **state)
{
    (void)state;
    struct launch one;
    drupe_event *event;
    load(&one);
    OK(drupe_queue_wait(bench.queue, LONG));
    OK(drupe_fault_plan("submit_kernel:1+=NO_MEMORY"));
    FAILS(submit(&one, &event), DRUPE_E_NO_MEMORY, "Planned");
    assert_null(event);
    s.label = "named"; /* the steps */
    FAILS(submit(&one, &event), DRUPE_E_NO_MEMORY, "Planned");
    assert_null(event);
    OK(drupe_fault_plan(NULL));
    drupe_queue_collect(bench.queue);
    assert_int_equal(drupe_queue_pending(bench.queue), 0);
    assert_false(drupe_memory_in_use(ours));
}

/* --- Barriers and turns ----------------------------------------------------------------------------------
 */

static void a_barrier_with_nothing_before_is_over(void **state)
{
    (void)state;
    drupe_event *event, *gate = bench_gate(), *held;
    drupe_trace_record record;
    OK(drupe_submit_barrier(&s, &event));
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    assert_true(drupe_trace_one(drupe_event_submission(event), &record));
    assert_int_equal(record.kind, DRUPE_WORK_BARRIER);
    drupe_event_release(event);
    s.label = "named";
    OK(drupe_submit_barrier(&s, &event));
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    s = (drupe_submission){.queue = bench.queue, .waits = &gate, .nwaits = 1};
    OK(drupe_submit_barrier(&s, &held));
    s.nwaits = 0;
    OK(drupe_submit_barrier(&s, &event)); /* not with something before it */
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_QUEUED);
    bench_open_gate(gate);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    drupe_event_release(held);
    FAILS(drupe_submit_barrier(NULL, &event), DRUPE_E_INVALID, "needs a queue");
    FAILS(drupe_submit_turn(NULL, &event), DRUPE_E_INVALID, "needs a queue");
    OK(drupe_submit_turn(&s, &event));
    while (drupe_event_state_of(event) != DRUPE_EVENT_RUNNING) continue;
    OK(drupe_event_finish(event, NULL));
    drupe_event_release(event);
}

/* Work of a kernel that prints has an event in any case. */
static void kernels_that_print_run_as_others_do(void **state)
{
    (void)state;
    struct launch one;
    drupe_event *event;
    load(&one);
    memset(at(0), 0, 1024);
    bench.mad->prints = true;
    OK(submit(&one, NULL));
    OK(submit(&one, &event));
    OK(drupe_event_wait(event, LONG));
    assert_int_equal(*(uint64_t *)drupe_memory_pointer(ours), 4);
    one.args[4].size = 0;
    FAILS(submit(&one, NULL), DRUPE_E_INVALID, "has no size");
    bench.mad->prints = false;
    drupe_event_release(event);
}

/* What the memory waits for joins what the caller named. */
static void waits_of_memory_and_caller_join(void **state)
{
    (void)state;
    drupe_event *gates[] = {bench_gate(), bench_gate()}, *event;
    drupe_memory *memory = bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096), *next;
    drupe_queue *other;
    OK(drupe_queue_open(bench.context, bench.device, 0, &other));
    OK(bench_fill(bench.queue, memory, 1, gates[0], NULL));
    drupe_memory_release(memory);
    OK(drupe_memory_alloc_result(bench.queue, DRUPE_MEM_SHARED, 4096, &next));
    OK(bench_fill(other, next, 2, gates[1], &event));
    bench_open_gate(gates[1]);
    assert_int_equal(drupe_event_wait(event, 1000), DRUPE_E_TIMEOUT); /* that of the memory */
    bench_open_gate(gates[0]);
    OK(drupe_event_wait(event, LONG));
    bench_expect_bytes(next, 2, 4096);
    drupe_event_release(event);
    drupe_memory_release(next);
    drupe_queue_release(other);
}

static void copies_cross_contexts(void **state)
{
    (void)state;
    char here[1024];
    drupe_event *event;
    OK(drupe_submit_fill(&s, at(0), "ab", 2, 1024, NULL));
    OK(drupe_submit_copy(&s, drupe_memory_pointer(foreign), at(0), 1024, NULL));
    memset(here, 0, sizeof here);
    OK(drupe_submit_copy(&s, here, drupe_memory_pointer(foreign), 1024, &event));
    OK(drupe_event_wait(event, LONG));
    for (size_t i = 0; i < 1024; i++) assert_int_equal(here[i], i % 2 ? 'b' : 'a');
    drupe_event_release(event);
    /* What the host reaches is like memory of its own, in whatever context it is. */
    drupe_memory *open = bench_memory(far, DRUPE_MEM_SHARED, 1024);
    OK(drupe_submit_copy(&s, drupe_memory_pointer(open), at(0), 1024, &event));
    OK(drupe_event_wait(event, LONG));
    assert_memory_equal(drupe_memory_pointer(open), at(0), 1024);
    drupe_event_release(event);
    drupe_memory_release(open);
}

/* The last one: a device is lost for the process. Memory of a CPU device is there all the same. */
static void what_a_lost_device_has_can_be_copied(void **state)
{
    (void)state;
    char here[1024];
    drupe_event *event;
    drupe_failure failure;
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "It went away."};
    memset(at(0), 6, 1024);
    drupe_core_device_lost(bench.device, &error, true);
    FAILS(drupe_submit_fill(&s, at(0), "x", 1, 8, NULL), DRUPE_E_DEVICE_LOST, "It went away.");
    OK(drupe_submit_copy(&s, here, at(0), 512, &event));
    assert_int_equal(drupe_event_state_of(event), DRUPE_EVENT_COMPLETE);
    drupe_event_release(event);
    OK(drupe_submit_copy(&s, here + 512, at(512), 512, NULL));
    for (size_t i = 0; i < 1024; i++) assert_int_equal(here[i], 6);
    FAILS(drupe_submit_copy(&s, at(0), here, 8, NULL), DRUPE_E_DEVICE_LOST, "It went away.");
    bench.device->type = DRUPE_DEVICE_GPU; /* whose memory went with it */
    FAILS(drupe_submit_copy(&s, here, at(0), 8, NULL), DRUPE_E_DEVICE_LOST, "It went away.");
    bench.device->type = DRUPE_DEVICE_CPU;
    while (drupe_failure_take(&failure)) continue;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(copies_go_both_ways),
        TEST(copies_that_cannot_be_are_refused),
        TEST(fills_repeat_a_pattern),
        TEST(hints_touch_nothing),
        TEST(refusals_name_the_submission),
        TEST(keeps_are_taken_whatever_happens),
        TEST(host_functions_say_what_they_touch),
        TEST(launches_run),
        TEST(launches_that_cannot_be_are_refused),
        TEST(arguments_are_as_declared),
        TEST(limits_that_nobody_tells_are_not_asked_for),
        TEST(devices_have_limits),
        TEST(a_refused_launch_leaves_nothing),
        TEST(a_barrier_with_nothing_before_is_over),
        TEST(kernels_that_print_run_as_others_do),
        TEST(waits_of_memory_and_caller_join),
        TEST(copies_cross_contexts),
        TEST(what_a_lost_device_has_can_be_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
