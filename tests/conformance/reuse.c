/* Memory that was given back while work uses it: the next result on that queue takes it, and whatever is not
 * in the queue's order waits. */
#include "conformance.h"

#define N     100
#define BYTES (N * sizeof(uint64_t))

/* A queue that stands still, and memory that work behind the gate reads. */
struct scene {
    struct bench *bench;
    drupe_queue *queue;
    struct gate gate;
    drupe_event *gated;
    drupe_memory *out; /* gets a copy of what was given back */
    void *given_back;  /* where that lies */
};

static void submit_copy(drupe_queue *queue, drupe_memory *dst, drupe_memory *src)
{
    drupe_submission s = {.queue = queue, .ordered = true};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(dst), drupe_memory_pointer(src), BYTES, NULL));
}

static void scene_open(struct scene *scene, struct bench *bench, uint32_t flags)
{
    *scene = (struct scene){.bench = bench};
    OK(drupe_queue_open(bench->context, bench->device, flags, &scene->queue));
    gate_init(&scene->gate);
    scene->out = new_memory(scene->queue, DRUPE_MEM_DEVICE, BYTES);
    drupe_memory *memory = new_memory(scene->queue, DRUPE_MEM_DEVICE, BYTES);
    fill_u64(scene->queue, memory, 42, N);
    OK(drupe_queue_wait(scene->queue, DRUPE_FOREVER));
    drupe_queue_collect(scene->queue);
    scene->gated = submit_gate(scene->queue, &scene->gate);
    submit_copy(scene->queue, scene->out, memory);
    scene->given_back = drupe_memory_pointer(memory);
    drupe_memory_release(memory);
}

static void scene_close(struct scene *scene)
{
    gate_open(&scene->gate);
    OK(drupe_queue_wait(scene->queue, DRUPE_FOREVER));
    expect_u64(scene->queue, scene->out, 42, N);
    drupe_event_release(scene->gated);
    drupe_memory_release(scene->out);
    drupe_queue_release(scene->queue);
    gate_destroy(&scene->gate);
}

static drupe_memory *take_result(struct scene *scene)
{
    drupe_memory *memory;
    OK(drupe_memory_alloc_result(scene->queue, DRUPE_MEM_DEVICE, BYTES, &memory));
    return memory;
}

static bool is_handed_on(const struct scene *scene, const drupe_memory *memory)
{
    return drupe_memory_pointer(memory) == scene->given_back;
}

/* In checked mode freed memory is kept back. */
static void expect_handed_on(const struct scene *scene, const drupe_memory *memory)
{
    assert_true(is_handed_on(scene, memory) || drupe_check_active());
}

/* Its reader has not run yet, and the next result is written to the same bytes. */
static void while_its_reader_runs(struct suite *suite, uint32_t flags)
{
    struct scene scene;
    scene_open(&scene, &suite->bench, flags);
    drupe_memory *plain = new_memory(scene.queue, DRUPE_MEM_DEVICE, BYTES), *result = take_result(&scene);
    assert_false(is_handed_on(&scene, plain));
    expect_handed_on(&scene, result);
    const drupe_submission s = {.queue = scene.queue, .ordered = true};
    const uint64_t value = 7;
    OK(drupe_submit_fill(&s, drupe_memory_pointer(result), &value, sizeof value, BYTES, NULL));
    scene_close(&scene);
    expect_u64(suite->bench.queue, result, 7, N);
    drupe_memory_release(plain);
    drupe_memory_release(result);
}

static void in_order(struct suite *suite)
{
    while_its_reader_runs(suite, DRUPE_QUEUE_DEFAULT);
}

static void out_of_order(struct suite *suite)
{
    while_its_reader_runs(suite, DRUPE_QUEUE_OUT_OF_ORDER);
}

/* Host memory is copied into it behind its reader, though a driver may read that early. */
static void from_host_memory(struct suite *suite)
{
    struct scene scene;
    uint64_t bytes[N];
    for (size_t i = 0; i < N; i++) bytes[i] = 7;
    scene_open(&scene, &suite->bench, DRUPE_QUEUE_DEFAULT);
    drupe_memory *result = take_result(&scene);
    expect_handed_on(&scene, result);
    const drupe_submission s = {.queue = scene.queue};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(result), bytes, BYTES, NULL));
    scene_close(&scene);
    expect_u64(suite->bench.queue, result, 7, N);
    drupe_memory_release(result);
}

/* Another queue that writes it waits for the first one's reader, though nobody tells it to. */
static void on_another_queue(struct suite *suite, struct bench *bench)
{
    struct scene scene;
    drupe_queue *second;
    drupe_event *event;
    OK(drupe_queue_open(bench->context, bench->device, DRUPE_QUEUE_DEFAULT, &second));
    scene_open(&scene, &suite->bench, DRUPE_QUEUE_DEFAULT);
    drupe_memory *result = take_result(&scene), *source = new_memory(second, DRUPE_MEM_DEVICE, BYTES);
    expect_handed_on(&scene, result);
    fill_u64(second, source, 9, N);
    const drupe_submission s = {.queue = second};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(result), drupe_memory_pointer(source), BYTES, &event));
    if (is_handed_on(&scene, result)) {
        drupe_event *before = NULL;
        OK(drupe_memory_before_use(result, &before));
        assert_non_null(before);
        drupe_event_release(before);
        FAILS(drupe_event_wait(event, SECOND / 50), DRUPE_E_TIMEOUT, "");
    }
    scene_close(&scene);
    OK(drupe_event_wait(event, DRUPE_FOREVER));
    expect_u64(second, result, 9, N);
    drupe_event_release(event);
    drupe_memory_release(result);
    drupe_memory_release(source);
    drupe_queue_release(second);
}

static void two_queues(struct suite *suite)
{
    on_another_queue(suite, &suite->bench);
}

static void staged(struct suite *suite)
{
    on_another_queue(suite, use_other(suite));
}

/* Nobody's order: what two queues use is used again when both are over. */
static void used_by_two(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct scene scene;
    struct gate second;
    gate_init(&second);
    scene_open(&scene, b, DRUPE_QUEUE_DEFAULT);
    drupe_memory *shared = new_memory(b->queue, DRUPE_MEM_DEVICE, BYTES);
    drupe_memory *first = new_memory(b->queue, DRUPE_MEM_DEVICE, BYTES);
    fill_u64(b->queue, shared, 5, N);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_event *held = submit_gate(b->queue, &second);
    submit_copy(b->queue, first, shared);
    submit_copy(scene.queue, scene.out, shared);
    void *there = drupe_memory_pointer(shared);
    drupe_memory_release(shared);
    drupe_memory *result = take_result(&scene), *other;
    OK(drupe_memory_alloc_result(b->queue, DRUPE_MEM_DEVICE, BYTES, &other));
    assert_ptr_not_equal(drupe_memory_pointer(result), there);
    assert_ptr_not_equal(drupe_memory_pointer(other), there);
    gate_open(&second);
    OK(drupe_event_wait(held, DRUPE_FOREVER));
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    expect_u64(b->queue, first, 5, N);
    gate_open(&scene.gate);
    OK(drupe_queue_wait(scene.queue, DRUPE_FOREVER));
    expect_u64(scene.queue, scene.out, 5, N);
    fill_u64(scene.queue, scene.out, 42, N);
    scene_close(&scene);
    drupe_event_release(held);
    drupe_memory *memories[] = {first, result, other};
    for (size_t i = 0; i < COUNT(memories); i++) drupe_memory_release(memories[i]);
    gate_destroy(&second);
}

/* The reader fails or is given up: what was handed on does not hear of it. */
static void failure_between(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct scene scene;
    size_t left, given_up;
    scene_open(&scene, b, DRUPE_QUEUE_DEFAULT);
    drupe_event *gone = submit_failure(scene.queue, "never runs");
    OK(drupe_queue_cancel(scene.queue, &left, &given_up));
    drupe_memory *result = take_result(&scene);
    fill_u64(scene.queue, result, 7, N);
    gate_open(&scene.gate);
    OK(drupe_queue_wait(scene.queue, DRUPE_FOREVER));
    expect_u64(scene.queue, result, 7, N);
    FAILS(drupe_event_wait(gone, DRUPE_FOREVER), DRUPE_E_CANCELLED, "");
    drupe_memory_accept(scene.out); /* its copy was given up, or was not */
    fill_u64(scene.queue, scene.out, 42, N);
    scene_close(&scene);
    drupe_event_release(gone);
    drupe_memory_release(result);
}

static drupe_status write_seven(void *user)
{
    uint64_t *bytes = user;
    for (size_t i = 0; i < N; i++) bytes[i] = 7;
    return DRUPE_OK;
}

/* A host function writes it, in its place on the queue. */
static void host_function(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_mem_kind kind = kind_or_device(b, DRUPE_MEM_SHARED);
    if (kind == DRUPE_MEM_DEVICE) return; /* a host function cannot reach it */
    drupe_memory *source, *copy = new_memory(b->queue, kind, BYTES), *result;
    struct gate gate;
    gate_init(&gate);
    source = new_memory(b->queue, kind, BYTES);
    fill_u64(b->queue, source, 42, N);
    drupe_event *gated = submit_gate(b->queue, &gate);
    submit_copy(b->queue, copy, source);
    drupe_memory_release(source);
    OK(drupe_memory_alloc_result(b->queue, kind, BYTES, &result));
    const drupe_keep keep = drupe_memory_keep(result, b->queue);
    const drupe_effects effects = {.writes = 1, .replaces = 1};
    const drupe_submission s = {.queue = b->queue, .keeps = &keep, .nkeeps = 1, .effects = &effects};
    OK(drupe_submit_host(&s, write_seven, drupe_memory_pointer(result), NULL));
    gate_open(&gate);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    expect_u64(b->queue, copy, 42, N);
    expect_u64(b->queue, result, 7, N);
    drupe_event_release(gated);
    drupe_memory_release(copy);
    drupe_memory_release(result);
    gate_destroy(&gate);
}

/* What is kept, in flight and in reserve are told apart. */
static void figures(struct suite *suite)
{
    struct scene scene;
    drupe_pool_stats before, flying, after;
    if (drupe_check_active()) return;
    scene_open(&scene, &suite->bench, DRUPE_QUEUE_DEFAULT);
    drupe_pool_stats_of(suite->bench.device, &before);
    drupe_memory *result = take_result(&scene);
    drupe_pool_stats_of(suite->bench.device, &flying);
    assert_true(before.flying > 0);
    assert_int_equal(flying.flying, 0);
    assert_int_equal(flying.used - before.used, before.flying);
    assert_int_equal(flying.reserved, before.reserved);
    drupe_memory_release(result);
    scene_close(&scene);
    drupe_pool_stats_of(suite->bench.device, &after);
    assert_int_equal(after.flying, 0);
}

/* A loop that makes results and drops them needs a handful of pieces, however far the queue is behind. */
static void loop(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct gate gate;
    drupe_pool_stats before, after;
    if (drupe_check_active()) return;
    gate_init(&gate);
    drupe_memory *x, *y;
    OK(drupe_memory_alloc_result(b->queue, DRUPE_MEM_DEVICE, BYTES, &x));
    fill_u64(b->queue, x, 1, N);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_event *gated = submit_gate(b->queue, &gate);
    drupe_pool_stats_of(b->device, &before);
    for (int i = 0; i < 300; i++) {
        OK(drupe_memory_alloc_result(b->queue, DRUPE_MEM_DEVICE, BYTES, &y));
        OK(submit_mad(b, b->queue, y, x, N, 1, 1, NULL, 0, NULL));
        drupe_memory_release(x);
        x = y;
    }
    drupe_pool_stats_of(b->device, &after);
    assert_true(after.reserved <= before.reserved + 4 * 1024);
    gate_open(&gate);
    expect_u64(b->queue, x, 301, N);
    drupe_memory_release(x);
    drupe_event_release(gated);
    gate_destroy(&gate);
}

/* Sharing with another process waits for whoever uses it. */
static void not_shared_in_flight(struct suite *suite)
{
    struct scene scene;
    unsigned char handle[DRUPE_IPC_BYTES];
    scene_open(&scene, &suite->bench, DRUPE_QUEUE_DEFAULT);
    drupe_memory *memory = new_memory(suite->bench.queue, DRUPE_MEM_DEVICE, 4096);
    drupe_status possible = drupe_memory_export(memory, handle);
    drupe_memory_release(memory);
    if (possible == DRUPE_OK) {
        memory = new_memory(suite->bench.queue, DRUPE_MEM_DEVICE, 4096);
        fill_u64(scene.queue, memory, 1, 4096 / 8);
        FAILS(drupe_memory_export(memory, handle), DRUPE_E_BUSY, "Work in flight uses this memory");
        gate_open(&scene.gate);
        OK(drupe_queue_wait(scene.queue, DRUPE_FOREVER));
        drupe_queue_collect(scene.queue);
        OK(drupe_memory_export(memory, handle));
        drupe_memory_release(memory);
    }
    scene_close(&scene);
}

/* --- Submissions ahead ---------------------------------------------------------------------------------- */

static struct {
    struct gate *gate;
    unsigned calls;
    size_t most;
    drupe_status answer;
} paced;

static drupe_status pause_here(drupe_queue *queue, uint64_t timeout_ns)
{
    size_t pending = drupe_queue_pending(queue);
    if (pending > paced.most) paced.most = pending;
    paced.calls++;
    if (paced.answer != DRUPE_OK) return paced.answer;
    gate_open(paced.gate);
    (void)drupe_queue_idle(queue, timeout_ns);
    return DRUPE_OK;
}

/* A loop that never waits is stopped when it is far ahead, and goes on when some is over. */
static void paced_loop(struct suite *suite)
{
    static const drupe_observer observer = {.pause = pause_here};
    struct bench *b = &suite->bench;
    struct gate gate;
    drupe_queue *queue;
    OK(drupe_queue_open(b->context, b->device, DRUPE_QUEUE_DEFAULT, &queue));
    drupe_memory *x = new_memory(queue, DRUPE_MEM_DEVICE, BYTES);
    fill_u64(queue, x, 1, N);
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    gate_init(&gate);
    drupe_event *gated = submit_gate(queue, &gate);
    memset(&paced, 0, sizeof paced);
    paced.gate = &gate;
    drupe_library_observe(&observer);
    for (int i = 0; i < 400; i++) {
        OK(drupe_queue_pace(queue));
        OK(submit_mad(b, queue, x, x, N, 1, 1, NULL, 0, NULL));
    }
    assert_int_equal(paced.calls, 0);
    for (int i = 0; i < 200; i++) OK(submit_mad(b, queue, x, x, N, 1, 1, NULL, 0, NULL));
    paced.answer = DRUPE_E_CANCELLED;
    FAILS(drupe_queue_pace(queue), DRUPE_E_CANCELLED, "waited for earlier work");
    paced.answer = DRUPE_E_BUSY; /* a thread that must not wait */
    OK(drupe_queue_pace(queue));
    assert_int_equal(paced.calls, 2);
    paced.answer = DRUPE_OK;
    for (int i = 0; i < 400; i++) OK(submit_mad(b, queue, x, x, N, 1, 1, NULL, 0, NULL));
    OK(drupe_queue_pace(queue));
    assert_true(paced.most >= 600);
    drupe_library_observe(NULL);
    gate_open(&gate);
    expect_u64(queue, x, 1001, N);
    drupe_event_release(gated);
    drupe_memory_release(x);
    drupe_queue_release(queue);
    gate_destroy(&gate);
}

/* Waiting for what is the caller's own to end would be for ever. */
static void paced_behind_the_caller(struct suite *suite)
{
    static const drupe_observer observer = {.pause = pause_here};
    struct bench *b = &suite->bench;
    drupe_queue *queue;
    drupe_event *own;
    OK(drupe_queue_open(b->context, b->device, DRUPE_QUEUE_DEFAULT, &queue));
    drupe_memory *x = new_memory(queue, DRUPE_MEM_DEVICE, BYTES);
    fill_u64(queue, x, 1, N);
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    OK(drupe_event_open(NULL, 0, &own));
    memset(&paced, 0, sizeof paced);
    drupe_library_observe(&observer);
    OK(submit_mad(b, queue, x, x, N, 1, 1, &own, 1, NULL));
    for (int i = 0; i < 700; i++) {
        OK(drupe_queue_pace(queue));
        OK(submit_mad(b, queue, x, x, N, 1, 1, NULL, 0, NULL));
    }
    assert_int_equal(paced.calls, 0);
    OK(drupe_event_finish(own, NULL));
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    drupe_queue_collect(queue);
    /* That was for that time only. */
    struct gate gate;
    gate_init(&gate);
    paced.gate = &gate;
    drupe_event *gated = submit_gate(queue, &gate);
    for (int i = 0; i < 700; i++) {
        OK(drupe_queue_pace(queue));
        OK(submit_mad(b, queue, x, x, N, 1, 1, NULL, 0, NULL));
    }
    assert_true(paced.calls > 0);
    drupe_library_observe(NULL);
    gate_open(&gate);
    expect_u64(queue, x, 1402, N);
    drupe_event_release(gated);
    gate_destroy(&gate);
    drupe_event_release(own);
    drupe_memory_release(x);
    drupe_queue_release(queue);
}

/* --- Memory that an operation may take over ------------------------------------------------------------- */

static void sole(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct scene scene;
    drupe_queue *other;
    scene_open(&scene, b, DRUPE_QUEUE_DEFAULT);
    OK(drupe_queue_open(b->context, b->device, DRUPE_QUEUE_DEFAULT, &other));
    drupe_memory *memory = new_memory(scene.queue, DRUPE_MEM_DEVICE, BYTES);
    assert_true(drupe_memory_sole(memory, scene.queue));
    assert_false(drupe_memory_sole(memory, other));
    drupe_memory_retain(memory);
    assert_false(drupe_memory_sole(memory, scene.queue));
    drupe_memory_release(memory);
    drupe_event *filled;
    drupe_submission s = {.queue = scene.queue};
    OK(drupe_submit_fill(&s, drupe_memory_pointer(memory), "\1", 1, BYTES, &filled));
    assert_true(drupe_memory_sole(memory, scene.queue)); /* behind the gate */
    s = (drupe_submission){.queue = other, .waits = &filled, .nwaits = 1};
    OK(drupe_submit_fill(&s, drupe_memory_pointer(memory), "\2", 1, BYTES, NULL));
    assert_false(drupe_memory_sole(memory, scene.queue));
    gate_open(&scene.gate);
    OK(drupe_queue_wait(other, DRUPE_FOREVER));
    drupe_event_release(filled);
    drupe_memory_release(memory);
    drupe_queue_release(other);
    scene_close(&scene);
    scene_open(&scene, b, DRUPE_QUEUE_OUT_OF_ORDER);
    memory = new_memory(scene.queue, DRUPE_MEM_DEVICE, BYTES);
    assert_false(drupe_memory_sole(memory, scene.queue));
    drupe_memory_release(memory);
    scene_close(&scene);
}

const conformance_case cases_reuse[] = {
    {"reuse_in_order", in_order},
    {"reuse_out_of_order", out_of_order},
    {"reuse_from_host_memory", from_host_memory},
    {"reuse_two_queues", two_queues},
    {"reuse_staged", staged},
    {"reuse_used_by_two", used_by_two},
    {"reuse_failure_between", failure_between},
    {"reuse_host_function", host_function},
    {"reuse_figures", figures},
    {"reuse_loop", loop},
    {"reuse_not_shared_in_flight", not_shared_in_flight},
    {"reuse_paced_loop", paced_loop},
    {"reuse_paced_behind_the_caller", paced_behind_the_caller},
    {"reuse_sole", sole},
    {NULL, NULL},
};
