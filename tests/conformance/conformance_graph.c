/* Random graphs of work against a sequential oracle.
 *
 * Buffers live in two contexts and, where there is one, in another backend. Each step reads and writes
 * buffers on a random queue and waits for whatever it conflicts with, as a careful user would; the same
 * steps, done one after the other on the host, say what must come out. */
#include "conformance.h"

#define BUFFERS 9
#define QUEUES  6
#define STEPS   120
#define N       300

struct buffer {
    struct bench *bench;
    drupe_memory *memory;
    drupe_event *writer;         /* of the last step that wrote it */
    drupe_event *readers[STEPS]; /* since then */
    size_t nreaders;
    uint64_t oracle[N];
};

struct graph {
    struct bench *benches[3];
    size_t nbenches;
    drupe_queue *queues[3][QUEUES];
    struct buffer buffers[BUFFERS];
    uint64_t random;
};

static uint64_t dice(struct graph *graph, uint64_t sides)
{
    graph->random = graph->random * 6364136223846793005u + 1442695040888963407u;
    return (graph->random >> 33) % sides;
}

static void forget_readers(struct buffer *buffer)
{
    while (buffer->nreaders) drupe_event_release(buffer->readers[--buffer->nreaders]);
}

static size_t conflicts(struct buffer *buffer, bool writes, drupe_event **waits, size_t count)
{
    if (buffer->writer) waits[count++] = buffer->writer;
    for (size_t i = 0; writes && i < buffer->nreaders; i++) waits[count++] = buffer->readers[i];
    return count;
}

static void note(struct buffer *in, struct buffer *out, drupe_event *event)
{
    if (in != out) in->readers[in->nreaders++] = drupe_event_retain(event);
    forget_readers(out);
    drupe_event_release(out->writer);
    out->writer = event;
}

static drupe_status nothing(void *user)
{
    (void)user;
    return DRUPE_OK;
}

static void step(struct graph *graph)
{
    struct buffer *out = &graph->buffers[dice(graph, BUFFERS)], *in = &graph->buffers[dice(graph, BUFFERS)];
    size_t where = 0;
    while (graph->benches[where] != out->bench) where++;
    drupe_queue *queue = graph->queues[where][dice(graph, QUEUES)];
    drupe_event *waits[2 * STEPS + 4], *event;
    size_t nwaits = conflicts(out, true, waits, 0);
    nwaits = conflicts(in, false, waits, nwaits);
    drupe_submission s = {.queue = queue, .waits = waits, .nwaits = nwaits};
    uint64_t mul = dice(graph, 5), add = dice(graph, 100), kind = dice(graph, 10);
    if (in->bench != out->bench || (kind < 3 && in != out)) {
        if (in == out) return;
        OK(drupe_submit_copy(&s, drupe_memory_pointer(out->memory), drupe_memory_pointer(in->memory), N * 8,
                             &event));
        memcpy(out->oracle, in->oracle, sizeof out->oracle);
    } else if (kind == 3) {
        OK(drupe_submit_fill(&s, drupe_memory_pointer(out->memory), &add, 8, N * 8, &event));
        for (size_t i = 0; i < N; i++) out->oracle[i] = add;
        in = out;
    } else if (kind == 4) {
        OK(drupe_submit_host(&s, nothing, NULL, &event));
    } else {
        OK(submit_mad(out->bench, queue, out->memory, in->memory, N, mul, add, waits, nwaits, &event));
        for (size_t i = 0; i < N; i++) out->oracle[i] = in->oracle[i] * mul + add;
    }
    note(in, out, event);
    if (dice(graph, 20) == 0) OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    if (dice(graph, 20) == 0) drupe_queue_collect(queue);
}

static void open_graph(struct graph *graph, struct suite *suite, uint64_t seed, bool remote)
{
    graph->random = seed;
    graph->nbenches = 0;
    graph->benches[graph->nbenches++] = &suite->bench;
    graph->benches[graph->nbenches++] = &suite->other;
    if (remote) graph->benches[graph->nbenches++] = &suite->remote;
    for (size_t b = 0; b < graph->nbenches; b++) {
        struct bench *bench = graph->benches[b];
        for (size_t q = 0; q < QUEUES; q++) {
            uint32_t flags = q % 2 ? DRUPE_QUEUE_OUT_OF_ORDER : DRUPE_QUEUE_DEFAULT;
            OK(drupe_queue_open(bench->context, bench->device, flags, &graph->queues[b][q]));
        }
    }
    for (size_t i = 0; i < BUFFERS; i++) {
        struct buffer *buffer = &graph->buffers[i];
        buffer->bench = graph->benches[i % graph->nbenches];
        drupe_mem_kind kind = kind_or_device(buffer->bench, (drupe_mem_kind)(i / graph->nbenches % 3));
        buffer->memory = new_memory(buffer->bench->queue, kind, N * 8);
        for (size_t k = 0; k < N; k++) buffer->oracle[k] = i + 1;
        fill_u64(buffer->bench->queue, buffer->memory, i + 1, N);
        OK(drupe_queue_wait(buffer->bench->queue, DRUPE_FOREVER));
    }
}

static void close_graph(struct graph *graph)
{
    for (size_t i = 0; i < BUFFERS; i++) {
        struct buffer *buffer = &graph->buffers[i];
        uint64_t bytes[N];
        if (buffer->writer) OK(drupe_event_wait(buffer->writer, DRUPE_FOREVER));
        read_memory(buffer->bench->queue, buffer->memory, bytes, sizeof bytes);
        assert_memory_equal(bytes, buffer->oracle, sizeof bytes);
        forget_readers(buffer);
        drupe_event_release(buffer->writer);
        drupe_memory_release(buffer->memory);
    }
    for (size_t b = 0; b < graph->nbenches; b++) {
        for (size_t q = 0; q < QUEUES; q++) drupe_queue_release(graph->queues[b][q]);
    }
    free(graph);
}

static void run_seeds(struct suite *suite, bool remote)
{
    const char *shuffle = getenv("DRUPE_HOST_SHUFFLE");
    uint64_t first = shuffle ? strtoull(shuffle, NULL, 10) * 1000 : 1;
    for (uint64_t seed = first; seed < first + 12; seed++) {
        struct graph *graph = calloc(1, sizeof *graph);
        assert_non_null(graph);
        open_graph(graph, suite, seed, remote);
        for (int i = 0; i < STEPS; i++) step(graph);
        close_graph(graph);
    }
}

static void random_graph(struct suite *suite)
{
    use_other(suite);
    run_seeds(suite, false);
}

static void random_graph_with_remote(struct suite *suite)
{
    use_other(suite);
    use_remote(suite);
    run_seeds(suite, true);
}

const conformance_case cases_graph[] = {
    {"random_graph", random_graph},
    {"random_graph_with_remote", random_graph_with_remote},
    {NULL, NULL},
};
