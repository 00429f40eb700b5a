/* Copies between all kinds of places, and fills. */
#include "conformance.h"

/* Somewhere bytes can be: memory of a bench, or the heap. */
struct place {
    struct bench *bench; /* NULL: host memory */
    drupe_mem_kind kind;
    drupe_memory *memory;
    unsigned char *pointer;
};

static void open_place(struct place *place, size_t bytes)
{
    if (!place->bench) {
        place->pointer = malloc(bytes);
        assert_non_null(place->pointer);
        return;
    }
    place->memory = new_memory(place->bench->queue, place->kind, bytes);
    place->pointer = drupe_memory_pointer(place->memory);
}

static void close_place(struct place *place)
{
    if (place->bench)
        drupe_memory_release(place->memory);
    else
        free(place->pointer);
}

/* Through the queue of the memory's own context, so that only the copy under test is a strange one. */
static void set_bytes(struct place *place, const unsigned char *bytes, size_t size)
{
    if (place->bench)
        write_memory(place->bench->queue, place->memory, bytes, size);
    else
        memcpy(place->pointer, bytes, size);
}

static void get_bytes(struct place *place, unsigned char *bytes, size_t size)
{
    if (place->bench)
        read_memory(place->bench->queue, place->memory, bytes, size);
    else
        memcpy(bytes, place->pointer, size);
}

/* The copy stands between two gates' worth of order: after a slow start, before a host function's look. */
static void copy_between(drupe_queue *queue, struct place from, struct place to, size_t size)
{
    unsigned char *bytes = malloc(size), *result = calloc(1, size);
    assert_non_null(bytes);
    assert_non_null(result);
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 7 + size);
    open_place(&from, size);
    open_place(&to, size);
    set_bytes(&from, bytes, size);
    set_bytes(&to, result, size);
    drupe_submission s = {.queue = queue};
    drupe_event *event;
    OK(drupe_submit_copy(&s, to.pointer, from.pointer, size, &event));
    OK(drupe_event_wait(event, DRUPE_FOREVER));
    drupe_event_release(event);
    get_bytes(&to, result, size);
    assert_memory_equal(bytes, result, size);
    close_place(&from);
    close_place(&to);
    free(bytes);
    free(result);
}

static const size_t sizes[] = {1, 1000, 100000, 3u << 20};

static size_t list_places(struct suite *suite, struct bench *far, struct place *places)
{
    size_t count = 0;
    places[count++] = (struct place){.bench = NULL};
    for (int kind = 0; kind < 3; kind++) {
        if (has_kind(&suite->bench, (drupe_mem_kind)kind))
            places[count++] = (struct place){.bench = &suite->bench, .kind = (drupe_mem_kind)kind};
        if (far && has_kind(far, (drupe_mem_kind)kind))
            places[count++] = (struct place){.bench = far, .kind = (drupe_mem_kind)kind};
    }
    return count;
}

static void copy_all(struct suite *suite, struct bench *far)
{
    struct place places[8];
    size_t count = list_places(suite, far, places);
    for (size_t from = 0; from < count; from++) {
        for (size_t to = 0; to < count; to++) {
            /* Between the far memory and itself the near queue has nothing to do; it may do it all the same.
             */
            for (size_t i = 0; i < COUNT(sizes); i++) {
                copy_between(suite->bench.queue, places[from], places[to], sizes[i]);
            }
        }
    }
}

static void in_context(struct suite *suite)
{
    copy_all(suite, NULL);
}

static void between_contexts(struct suite *suite)
{
    copy_all(suite, use_other(suite));
}

static void between_backends(struct suite *suite)
{
    copy_all(suite, use_remote(suite));
}

/* A staged copy keeps its place in the queue's order and waits for what was named. */
static void staged_in_order(struct suite *suite, struct bench *far)
{
    struct bench *b = &suite->bench;
    enum { N = 5000 };
    drupe_memory *near_memory = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_memory *far_memory = new_memory(far->queue, DRUPE_MEM_DEVICE, N * 8);
    fill_u64(far->queue, far_memory, 5, N);
    OK(drupe_queue_wait(far->queue, DRUPE_FOREVER));
    fill_u64(b->queue, near_memory, 1, N);
    uint64_t expected = 1;
    for (uint64_t i = 0; i < 10; i++) {
        drupe_event *there, *back;
        drupe_submission s = {.queue = b->queue};
        OK(submit_mad(b, b->queue, near_memory, near_memory, N, 2, i, NULL, 0, NULL));
        OK(drupe_submit_copy(&s, drupe_memory_pointer(far_memory), drupe_memory_pointer(near_memory), N * 8,
                             &there));
        OK(submit_mad(b, b->queue, near_memory, near_memory, N, 0, 7, NULL, 0, NULL));
        OK(submit_mad(far, far->queue, far_memory, far_memory, N, 3, 1, &there, 1, &back));
        drupe_submission t = {.queue = b->queue, .waits = &back, .nwaits = 1};
        OK(drupe_submit_copy(&t, drupe_memory_pointer(near_memory), drupe_memory_pointer(far_memory), N * 8,
                             NULL));
        drupe_event_release(there);
        drupe_event_release(back);
        expected = (expected * 2 + i) * 3 + 1;
    }
    expect_u64(b->queue, near_memory, expected, N);
    drupe_memory_release(near_memory);
    drupe_memory_release(far_memory);
}

/* There and back on one queue, with nothing named: the second copy reads what the first one wrote. */
static void round_trip(struct suite *suite, struct bench *far)
{
    struct bench *b = &suite->bench;
    enum { N = 200000 };
    drupe_memory *here = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_memory *there = new_memory(far->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_submission s = {.queue = b->queue};
    for (uint64_t i = 1; i < 10; i++) {
        fill_u64(b->queue, here, i, N);
        OK(drupe_submit_copy(&s, drupe_memory_pointer(there), drupe_memory_pointer(here), N * 8, NULL));
        fill_u64(b->queue, here, 0, N);
        OK(drupe_submit_copy(&s, drupe_memory_pointer(here), drupe_memory_pointer(there), N * 8, NULL));
        expect_u64(b->queue, here, i, N);
    }
    drupe_memory_release(here);
    drupe_memory_release(there);
}

static void staged_round_trip(struct suite *suite)
{
    round_trip(suite, use_other(suite));
}

static void staged_order_contexts(struct suite *suite)
{
    staged_in_order(suite, use_other(suite));
}

static void staged_order_backends(struct suite *suite)
{
    staged_in_order(suite, use_remote(suite));
}

static void staged_failure(struct suite *suite)
{
    struct bench *b = &suite->bench, *far = use_other(suite);
    drupe_memory *near_memory = new_memory(b->queue, DRUPE_MEM_DEVICE, 80);
    drupe_memory *far_memory = new_memory(far->queue, DRUPE_MEM_DEVICE, 80);
    fill_u64(b->queue, near_memory, 1, 10);
    fill_u64(far->queue, far_memory, 2, 10);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    OK(drupe_queue_wait(far->queue, DRUPE_FOREVER));
    drupe_event *cause = submit_failure(far->queue, "source"), *event;
    drupe_submission s = {.queue = b->queue, .waits = &cause, .nwaits = 1};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(near_memory), drupe_memory_pointer(far_memory), 80,
                         &event));
    FAILS(drupe_event_wait(event, DRUPE_FOREVER), DRUPE_E_DEPENDENCY, PLANNED);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    OK(drupe_queue_wait(far->queue, DRUPE_FOREVER));
    expect_u64(b->queue, near_memory, 1, 10);
    drupe_event_release(cause);
    drupe_event_release(event);
    drupe_memory_release(near_memory);
    drupe_memory_release(far_memory);
}

static void refused(struct suite *suite)
{
    drupe_queue *q = suite->bench.queue;
    drupe_submission s = {.queue = q};
    char *host = malloc(1000);
    assert_non_null(host);
    drupe_memory *m = new_memory(q, DRUPE_MEM_DEVICE, 1000);
    char *p = drupe_memory_pointer(m);
    FAILS(drupe_submit_copy(&s, p, p + 10, 20, NULL), DRUPE_E_INVALID, "overlap");
    FAILS(drupe_submit_copy(&s, p + 10, p, 20, NULL), DRUPE_E_INVALID, "overlap");
    FAILS(drupe_submit_copy(&s, host, host + 1, 2, NULL), DRUPE_E_INVALID, "overlap");
    FAILS(drupe_submit_copy(&s, p, host, 1001, NULL), DRUPE_E_OUT_OF_RANGE, "1000 bytes");
    FAILS(drupe_submit_copy(&s, host, p + 900, 101, NULL), DRUPE_E_OUT_OF_RANGE, "offset 900");
    FAILS(drupe_submit_copy(&s, NULL, p, 1, NULL), DRUPE_E_INVALID, "NULL");
    FAILS(drupe_submit_copy(&s, host, NULL, 1, NULL), DRUPE_E_INVALID, "NULL");
    FAILS(drupe_submit_copy(NULL, host, p, 1, NULL), DRUPE_E_INVALID, "queue");
    drupe_event *event;
    OK(drupe_submit_copy(&s, host, p, 0, &event));
    OK(drupe_event_wait(event, DRUPE_FOREVER));
    drupe_event_release(event);
    OK(drupe_submit_copy(&s, p, p + 10, 10, NULL));
    OK(drupe_submit_copy(&s, p, host, 1000, NULL));
    OK(drupe_queue_wait(q, DRUPE_FOREVER));
    drupe_memory_release(m);
    free(host);
}

/* Large copies of plain host memory go through pinned memory in pieces where the device gains by it; in order
 * all the same, and one after the other through the same pieces. */
static void large_copies(struct suite *suite)
{
    struct bench *b = &suite->bench;
    const size_t size = ((size_t)37 << 20) + 40, n = size / 8;
    uint64_t *out = malloc(size), *in = malloc(size);
    assert_non_null(out);
    assert_non_null(in);
    for (size_t i = 0; i < n; i++) out[i] = i * 7 + 1;
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, size);
    drupe_submission s = {.queue = b->queue};
    drupe_event *up, *down;
    fill_u64(b->queue, m, 5, n);
    OK(drupe_submit_copy(&s, drupe_memory_pointer(m), out, size, &up));
    OK(submit_mad(b, b->queue, m, m, n, 2, 1, NULL, 0, NULL));
    OK(drupe_submit_copy(&s, in, drupe_memory_pointer(m), size, &down));
    OK(drupe_submit_copy(&s, drupe_memory_pointer(m), out, size, NULL));
    OK(drupe_submit_copy(&s, out, drupe_memory_pointer(m), size - 8, NULL));
    OK(drupe_event_wait(down, DRUPE_FOREVER));
    for (size_t i = 0; i < n; i++) {
        if (in[i] != (i * 7 + 1) * 2 + 1) fail_msg("element %zu", i);
    }
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    for (size_t i = 0; i < n; i++) assert_true(out[i] == i * 7 + 1);
    /* Behind a failure nothing is copied, and nothing is lost. */
    drupe_event *failed = submit_failure(b->queue, "large");
    OK(drupe_submit_copy(&s, in, drupe_memory_pointer(m), size, NULL));
    FAILS(drupe_queue_wait(b->queue, DRUPE_FOREVER), DRUPE_E_INVALID, PLANNED);
    assert_true(in[0] == 3 && in[n - 1] == ((n - 1) * 7 + 1) * 2 + 1);
    drupe_event_release(failed);
    drupe_event_release(up);
    drupe_event_release(down);
    drupe_memory_release(m);
    free(out);
    free(in);
}

/* Pieces of all sizes, whole and broken ones at the end; nothing beside the copy is touched. */
static void sizes_of_large_copies(struct suite *suite)
{
    drupe_queue *q = suite->bench.queue;
    const size_t mib = (size_t)1 << 20;
    const size_t lengths[] = {32 * mib, 4 * mib, 4 * mib + 1, 8 * mib - 1, 61 * mib + 4097 * 5 + 13};
    const size_t room = 62 * mib;
    unsigned char *out = malloc(room), *in = malloc(room);
    assert_non_null(out);
    assert_non_null(in);
    for (size_t i = 0; i < room; i++) out[i] = (unsigned char)(i * 2654435761u >> 13);
    drupe_memory *m = new_memory(q, DRUPE_MEM_DEVICE, room);
    drupe_submission s = {.queue = q};
    /* The host device knows no pieces. */
    bool host = strcmp(drupe_device_backend(suite->bench.device), "host") == 0;
    for (size_t i = 0; i < (host ? 1 : COUNT(lengths)); i++) {
        const unsigned char zero = 0;
        size_t size = lengths[i];
        memset(in, 0, room);
        OK(drupe_submit_fill(&s, drupe_memory_pointer(m), &zero, 1, room, NULL));
        OK(drupe_submit_copy(&s, (char *)drupe_memory_pointer(m) + i, out + 3, size, NULL));
        OK(drupe_submit_copy(&s, in + 5, (char *)drupe_memory_pointer(m) + i, size, NULL));
        OK(drupe_queue_wait(q, DRUPE_FOREVER));
        assert_true(memcmp(in + 5, out + 3, size) == 0);
        assert_true(in[4] == 0 && in[5 + size] == 0);
        unsigned char beyond = 1;
        OK(drupe_submit_copy(&s, &beyond, (char *)drupe_memory_pointer(m) + i + size, 1, NULL));
        OK(drupe_queue_wait(q, DRUPE_FOREVER));
        assert_int_equal(beyond, 0);
    }
    drupe_memory_release(m);
    free(out);
    free(in);
}

static void fill_patterns(struct suite *suite)
{
    drupe_queue *q = suite->bench.queue;
    enum { ROOM = 200000 };
    unsigned char *bytes = malloc(ROOM), pattern[16];
    assert_non_null(bytes);
    for (int i = 0; i < 16; i++) pattern[i] = (unsigned char)(17 * i + 3);
    drupe_memory *m = new_memory(q, DRUPE_MEM_DEVICE, ROOM);
    for (size_t size = 1; size <= 16; size *= 2) {
        static const size_t counts[] = {1, 7, 1000, 12345};
        for (size_t i = 0; i < COUNT(counts); i++) {
            size_t length = counts[i] * size < ROOM - 64 ? counts[i] * size : (ROOM - 64) / size * size;
            unsigned char zero = 0;
            drupe_submission s = {.queue = q};
            OK(drupe_submit_fill(&s, drupe_memory_pointer(m), &zero, 1, ROOM, NULL));
            OK(drupe_submit_fill(&s, (char *)drupe_memory_pointer(m) + 32, pattern, size, length, NULL));
            read_memory(q, m, bytes, ROOM);
            for (size_t k = 0; k < length + 64; k++) {
                unsigned char expected = k < 32 || k >= length + 32 ? 0 : pattern[(k - 32) % size];
                if (bytes[k] != expected) fail_msg("pattern of %zu, %zu bytes: byte %zu", size, length, k);
            }
        }
    }
    drupe_memory_release(m);
    free(bytes);
}

static void fill_refused(struct suite *suite)
{
    drupe_queue *q = suite->bench.queue;
    drupe_submission s = {.queue = q};
    drupe_memory *m = new_memory(q, DRUPE_MEM_DEVICE, 96);
    char *p = drupe_memory_pointer(m), pattern[32] = {0};
    static const size_t wrong[] = {0, 3, 5, 12, 32};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        FAILS(drupe_submit_fill(&s, p, pattern, wrong[i], 96, NULL), DRUPE_E_INVALID, "1, 2, 4, 8 or 16");
    }
    FAILS(drupe_submit_fill(&s, p, NULL, 1, 96, NULL), DRUPE_E_INVALID, "pattern");
    FAILS(drupe_submit_fill(&s, p, pattern, 8, 92, NULL), DRUPE_E_INVALID, "92 bytes");
    FAILS(drupe_submit_fill(&s, p, pattern, 8, 104, NULL), DRUPE_E_OUT_OF_RANGE, "96 bytes");
    FAILS(drupe_submit_fill(&s, p + 4, pattern, 8, 8, NULL), DRUPE_E_INVALID, "multiple");
    FAILS(drupe_submit_fill(&s, pattern, pattern + 16, 1, 8, NULL), DRUPE_E_INVALID, "USM");
    struct bench *other = use_other(suite);
    drupe_submission t = {.queue = other->queue};
    FAILS(drupe_submit_fill(&t, p, pattern, 8, 8, NULL), DRUPE_E_INVALID, "context");
    OK(drupe_submit_fill(&s, p, pattern, 8, 0, NULL));
    OK(drupe_queue_wait(q, DRUPE_FOREVER));
    drupe_memory_release(m);
}

/* A copy to host memory and one from there, queued without a wait between: by the queue's order, and by
 * events. */
static void through_host(struct suite *suite)
{
    struct bench *b = &suite->bench;
    enum { N = 500 };
    drupe_queue *queues[2] = {b->queue, NULL};
    OK(drupe_queue_open(b->context, b->device, DRUPE_QUEUE_DEFAULT, &queues[1]));
    drupe_memory *one = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_memory *two = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    uint64_t host[N];
    for (uint64_t round = 0; round < 20; round++) {
        drupe_submission s = {.queue = b->queue};
        drupe_event *fetched, *stored;
        memset(host, 0xee, sizeof host);
        fill_u64(b->queue, one, round, N);
        OK(submit_mad(b, b->queue, one, one, N, 3, 1, NULL, 0, NULL));
        OK(drupe_submit_copy(&s, host, drupe_memory_pointer(one), N * 8, &fetched));
        if (round % 2) {
            s.queue = queues[1];
            s.waits = &fetched;
            s.nwaits = 1;
        }
        OK(drupe_submit_copy(&s, drupe_memory_pointer(two), host, N * 8, &stored));
        OK(drupe_event_wait(stored, DRUPE_FOREVER));
        drupe_event_release(fetched);
        drupe_event_release(stored);
        expect_u64(b->queue, two, 3 * round + 1, N);
    }
    drupe_memory_release(one);
    drupe_memory_release(two);
    drupe_queue_release(queues[1]);
}

const conformance_case cases_copy[] = {
    {"copy_in_context", in_context},
    {"copy_between_contexts", between_contexts},
    {"copy_between_backends", between_backends},
    {"copy_through_host", through_host},
    {"staged_round_trip", staged_round_trip},
    {"staged_order_contexts", staged_order_contexts},
    {"staged_order_backends", staged_order_backends},
    {"staged_failure", staged_failure},
    {"copy_refused", refused},
    {"large_copies", large_copies},
    {"sizes_of_large_copies", sizes_of_large_copies},
    {"fill_patterns", fill_patterns},
    {"fill_refused", fill_refused},
    {NULL, NULL},
};
