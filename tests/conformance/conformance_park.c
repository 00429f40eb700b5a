/* Parking: contents, addresses, refusals, all or nothing. */
#include "conformance.h"
#include "drupe/park.h"

enum { N = 5000 };

static drupe_pool_stats stats_of(const struct bench *b)
{
    drupe_pool_stats stats;
    drupe_pool_stats_of(b->device, &stats);
    return stats;
}

static drupe_park_report park(struct bench *b, uint32_t flags)
{
    drupe_park_report report;
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    OK(drupe_park(b->device, flags, &report));
    assert_true(drupe_device_parked(b->device));
    return report;
}

/* All that is there comes back: each kind, many sizes, another context's memory too. */
static void contents(struct suite *suite)
{
    static const size_t sizes[] = {1, 63, 100, 4096, 5000, 1u << 20, (8u << 20) + 1};
    enum { COUNT_ALL = COUNT(sizes) * 3 };
    struct bench *b = &suite->bench;
    drupe_memory *all[COUNT_ALL + 1];
    char *bytes = test_malloc((8u << 20) + 1), *seen = test_malloc((8u << 20) + 1);
    for (size_t i = 0; i < COUNT_ALL; i++) {
        size_t size = sizes[i / 3];
        all[i] = new_memory(b->queue, kind_or_device(b, (drupe_mem_kind)(i % 3)), size);
        for (size_t k = 0; k < size; k++) bytes[k] = (char)(k * 7 + i);
        write_memory(b->queue, all[i], bytes, size);
    }
    struct bench *other = use_other(suite);
    all[COUNT_ALL] = new_memory(other->queue, DRUPE_MEM_DEVICE, N * 8);
    fill_u64(other->queue, all[COUNT_ALL], 77, N);
    OK(drupe_queue_wait(other->queue, DRUPE_FOREVER));
    for (int round = 0; round < 2; round++) {
        uint64_t reserved = stats_of(b).reserved;
        drupe_park_report report = park(b, 0);
        assert_int_equal(report.pieces, COUNT_ALL + 1);
        assert_int_equal(report.freed, reserved);
        assert_int_equal(stats_of(b).reserved, 0);
        assert_int_equal(stats_of(b).count, COUNT_ALL + 1);
        for (size_t i = 0; i <= COUNT_ALL; i++) assert_true(drupe_memory_parked(all[i]));
        OK(drupe_unpark(b->device, &report));
        assert_int_equal(report.pieces, COUNT_ALL + 1);
        assert_false(drupe_device_parked(b->device));
        for (size_t i = 0; i < COUNT_ALL; i++) {
            assert_false(drupe_memory_parked(all[i]));
            for (size_t k = 0; k < sizes[i / 3]; k++) bytes[k] = (char)(k * 7 + i);
            read_memory(b->queue, all[i], seen, sizes[i / 3]);
            assert_memory_equal(seen, bytes, sizes[i / 3]);
        }
        expect_u64(other->queue, all[COUNT_ALL], 77, N);
    }
    for (size_t i = 0; i <= COUNT_ALL; i++) drupe_memory_release(all[i]);
    test_free(bytes);
    test_free(seen);
}

static void contents_by_driver(struct suite *suite)
{
    setenv("DRUPE_PINNED", "0", 1);
    contents(suite);
    unsetenv("DRUPE_PINNED");
}

/* Every kind of use has the memory back; what was freed meanwhile does not come. */
static void first_use(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    drupe_submission s = {.queue = b->queue};
    for (int use = 0; use < 5; use++) {
        drupe_memory *more = new_memory(b->queue, DRUPE_MEM_DEVICE, 100), *fresh = NULL;
        drupe_event *event = NULL;
        park(b, 0);
        drupe_memory_release(more);
        if (use == 0) OK(drupe_memory_alloc(b->queue, DRUPE_MEM_DEVICE, 10, 0, &fresh));
        if (use == 1) assert_non_null(drupe_memory_pointer(pair.a));
        if (use == 2) OK(drupe_submit_barrier(&(drupe_submission){.queue = b->queue, .label = "b"}, &event));
        if (use == 3) OK(submit_mad(b, b->queue, pair.a, pair.b, N, 1, 0, NULL, 0, NULL));
        if (use == 4) OK(drupe_memory_before_use(pair.b, &event));
        assert_false(drupe_device_parked(b->device));
        drupe_event_release(event);
        drupe_memory_release(fresh);
        expect_u64(b->queue, pair.a, use < 3 ? 1 : 2, N);
        expect_u64(b->queue, pair.b, 2, N);
    }
    OK(drupe_submit_fill(&s, drupe_memory_pointer(pair.a), "x", 1, 8, NULL));
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    assert_int_equal(stats_of(b).count, 2);
    drop_pair(pair);
}

/* Until it is asked back nothing can be done, and everything says so. */
static void kept(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    drupe_submission s = {.queue = b->queue, .label = "kept"};
    drupe_memory *fresh;
    drupe_event *event;
    park(b, DRUPE_PARK_KEPT);
    FAILS(drupe_memory_alloc(b->queue, DRUPE_MEM_DEVICE, 10, 0, &fresh), DRUPE_E_BUSY, "parked");
    FAILS(submit_mad(b, b->queue, pair.a, pair.b, N, 1, 0, NULL, 0, NULL), DRUPE_E_BUSY, "parked");
    FAILS(drupe_submit_fill(&s, drupe_memory_pointer(pair.a), "x", 1, 8, NULL), DRUPE_E_BUSY, "parked");
    FAILS(drupe_submit_barrier(&s, NULL), DRUPE_E_BUSY, "parked");
    FAILS(drupe_memory_before_use(pair.a, &event), DRUPE_E_BUSY, "parked");
    assert_null(drupe_memory_pointer(pair.a));
    /* Asked again it may come back by itself; who was given no address is refused all the same. */
    OK(drupe_park(b->device, 0, NULL));
    FAILS(drupe_submit_barrier(&s, NULL), DRUPE_E_BUSY, "Try again");
    OK(drupe_submit_barrier(&s, NULL));
    expect_u64(b->queue, pair.a, 1, N);
    FAILS(drupe_park(b->device, 8, NULL), DRUPE_E_INVALID, "0x8");
    drop_pair(pair);
}

static void unparkable(struct bench *b, const char *why)
{
    drupe_park_report report;
    FAILS(drupe_parkable(b->device, &report), DRUPE_E_BUSY, why);
    FAILS(drupe_park(b->device, 0, &report), DRUPE_E_BUSY, why);
    assert_false(drupe_device_parked(b->device));
}

static void refused(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    drupe_holder holders[2];
    drupe_event *event;
    struct gate gate;
    gate_init(&gate);
    drupe_event *closed = submit_gate(b->queue, &gate);
    unparkable(b, "not over");
    gate_open(&gate);
    OK(drupe_event_wait(closed, DRUPE_FOREVER));
    drupe_event_release(closed);
    gate_destroy(&gate);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_park_hold();
    unparkable(b, "under way");
    drupe_park_let_go();
    OK(drupe_memory_before_view(pair.a, &event));
    assert_null(event);
    drupe_memory_view(pair.a, 1);
    unparkable(b, "delete the views");
    assert_int_equal(drupe_park_holders(b->device, holders, 2), 1);
    assert_int_equal(holders[0].bytes, N * 8);
    drupe_memory_view(pair.a, -1);
    park(b, 0);
    OK(drupe_memory_before_use(pair.b, &event));
    assert_null(event);
    unparkable(b, "given away");
    expect_u64(b->queue, pair.a, 1, N);
    drupe_memory_release(pair.b);
    park(b, 0);
    drupe_memory_release(pair.a); /* without a place on the device */
    assert_int_equal(stats_of(b).count, 0);
    OK(drupe_unpark(b->device, NULL));
}

/* Room for some of it only: nothing comes back, and nothing is lost. */
static void no_room(struct suite *suite)
{
    struct bench *b = &suite->bench;
    struct pair pair = new_pair(b->queue, N);
    park(b, 0);
    drupe_pool_set_limit(b->device, N * 8 + 4096);
    FAILS(drupe_unpark(b->device, NULL), DRUPE_E_NO_MEMORY, "waits in host memory as before");
    assert_int_equal(stats_of(b).reserved, 0);
    FAILS(submit_mad(b, b->queue, pair.a, pair.b, N, 1, 0, NULL, 0, NULL), DRUPE_E_NO_MEMORY, "no room");
    assert_true(drupe_device_parked(b->device) && drupe_memory_parked(pair.a));
    drupe_pool_set_limit(b->device, 0);
    OK(drupe_unpark(b->device, NULL));
    expect_u64(b->queue, pair.a, 1, N);
    expect_u64(b->queue, pair.b, 2, N);
    drop_pair(pair);
}

/* --- Threads -------------------------------------------------------------------------------------------- */

struct worker {
    struct bench *b;
    struct pair pair;
    _Atomic(bool) stop;
    uint64_t rounds;
};

static void *work(void *user)
{
    struct worker *w = user;
    while (!atomic_load(&w->stop)) {
        drupe_event *event = NULL;
        drupe_park_hold();
        drupe_status status = submit_mad(w->b, w->b->queue, w->pair.a, w->pair.a, N, 1, 1, NULL, 0, &event);
        drupe_park_let_go();
        if (status == DRUPE_OK) status = drupe_event_wait(event, DRUPE_FOREVER);
        drupe_event_release(event);
        if (status != DRUPE_OK) break;
        w->rounds++;
    }
    return NULL;
}

/* While one thread submits, another parks: whatever happens first, every round counts once. */
static void beside_work(struct suite *suite)
{
    struct worker w = {.b = &suite->bench, .pair = new_pair(suite->bench.queue, N)};
    unsigned parked = 0;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, work, &w), 0);
    while (parked < 20) {
        drupe_status status = drupe_park(suite->bench.device, 0, NULL);
        if (status != DRUPE_E_BUSY) OK(status);
        parked += status == DRUPE_OK;
    }
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    expect_u64(w.b->queue, w.pair.a, 1 + w.rounds, N);
    drop_pair(w.pair);
}

const conformance_case cases_park[] = {
    {"park_contents", contents},       {"park_by_driver", contents_by_driver},
    {"park_first_use", first_use},     {"park_kept", kept},
    {"park_refused", refused},         {"park_no_room", no_room},
    {"park_beside_work", beside_work}, {NULL, NULL},
};
