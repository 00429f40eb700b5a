/* USM: kinds, addresses, limits. */
#include "conformance.h"

static void kinds(struct suite *suite)
{
    static const size_t sizes[] = {1, 63, 64, 65, 100, 4095, 4096, 5000, 1u << 20, (8u << 20) + 1};
    drupe_queue *queue = suite->bench.queue;
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; has_kind(&suite->bench, (drupe_mem_kind)kind) && i < COUNT(sizes); i++) {
            drupe_memory *m = new_memory(queue, (drupe_mem_kind)kind, sizes[i]);
            assert_int_equal((uintptr_t)drupe_memory_pointer(m) % 64, 0);
            assert_int_equal(drupe_memory_size(m), sizes[i]);
            assert_int_equal(drupe_memory_kind(m), kind);
            assert_ptr_equal(drupe_memory_queue(m), queue);
            assert_int_equal(drupe_memory_host_accessible(m), kind != DRUPE_MEM_DEVICE);
            if (kind != DRUPE_MEM_DEVICE) memset(drupe_memory_pointer(m), 1, sizes[i]);
            drupe_memory_release(m);
        }
    }
    for (size_t align = 1; align <= 4096; align *= 2) {
        drupe_memory *m;
        OK(drupe_memory_alloc(queue, DRUPE_MEM_DEVICE, 100, align, &m));
        assert_int_equal((uintptr_t)drupe_memory_pointer(m) % align, 0);
        drupe_memory_release(m);
    }
}

/* What the host writes a kernel reads, and what the kernel writes the host reads after a wait. */
static void host_and_device(struct suite *suite, drupe_mem_kind kind)
{
    struct bench *b = &suite->bench;
    enum { N = 3000 };
    if (!has_kind(b, kind)) {
        drupe_memory *none;
        FAILS(drupe_memory_alloc(b->queue, kind, 8, 0, &none), DRUPE_E_UNSUPPORTED,
              "Use device memory and copy");
        skip_known(suite, drupe_mem_kind_name(kind));
    }
    drupe_memory *m = new_memory(b->queue, kind, N * 8);
    uint64_t *elements = drupe_memory_pointer(m);
    for (uint64_t round = 0; round < 20; round++) {
        for (uint64_t i = 0; i < N; i++) elements[i] = i + round;
        OK(submit_mad(b, b->queue, m, m, N, 3, 1, NULL, 0, NULL));
        OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
        for (uint64_t i = 0; i < N; i++) assert_int_equal(elements[i], (i + round) * 3 + 1);
    }
    drupe_memory_release(m);
}

static void shared_kind(struct suite *suite)
{
    host_and_device(suite, DRUPE_MEM_SHARED);
}

static void host_kind(struct suite *suite)
{
    host_and_device(suite, DRUPE_MEM_HOST);
}

static void refused(struct suite *suite)
{
    drupe_queue *queue = suite->bench.queue;
    drupe_memory *m;
    FAILS(drupe_memory_alloc(queue, DRUPE_MEM_DEVICE, 0, 0, &m), DRUPE_E_INVALID, "1 byte");
    FAILS(drupe_memory_alloc(queue, DRUPE_MEM_DEVICE, 8, 3, &m), DRUPE_E_INVALID, "power of two");
    FAILS(drupe_memory_alloc(queue, DRUPE_MEM_DEVICE, 8, 8192, &m), DRUPE_E_INVALID, "4096");
    FAILS(drupe_memory_alloc(queue, (drupe_mem_kind)3, 8, 0, &m), DRUPE_E_INVALID, "kind");
    assert_null(m);
}

static void find(struct suite *suite)
{
    drupe_queue *queue = suite->bench.queue;
    drupe_memory *all[50];
    for (size_t i = 0; i < 50; i++) {
        drupe_mem_kind kind = kind_or_device(&suite->bench, (drupe_mem_kind)(i % 3));
        all[i] = new_memory(queue, kind, 100 + i * 37);
    }
    for (size_t i = 0; i < 50; i++) {
        char *p = drupe_memory_pointer(all[i]);
        const size_t offsets[] = {0, 1, 99 + i * 37};
        for (size_t k = 0; k < 3; k++) {
            drupe_memory *found = drupe_memory_find(p + offsets[k]);
            assert_ptr_equal(found, all[i]);
            drupe_memory_release(found);
        }
        assert_ptr_not_equal(drupe_memory_find(p + 100 + i * 37), all[i]);
    }
    char *gone = drupe_memory_pointer(all[0]);
    for (size_t i = 0; i < 50; i++) drupe_memory_release(all[i]);
    assert_null(drupe_memory_find(gone));
    assert_null(drupe_memory_find(&gone));
    assert_null(drupe_memory_find(NULL));
}

static void out_of_memory(struct suite *suite)
{
    drupe_queue *queue = suite->bench.queue;
    drupe_device *device = suite->bench.device;
    uint64_t most = drupe_device_number(device, DRUPE_INFO_MAX_MEM_ALLOC_SIZE, 0);
    drupe_memory *m;
    assert_true(most > 0);
    FAILS(drupe_memory_alloc(queue, DRUPE_MEM_DEVICE, most + 1, 0, &m), DRUPE_E_NO_MEMORY, "at most");
    FAILS(drupe_memory_alloc(queue, DRUPE_MEM_DEVICE, SIZE_MAX, 0, &m), DRUPE_E_NO_MEMORY, "at most");
    /* Many large pieces, untouched, until the total is reached. */
    drupe_memory *held[64];
    size_t count = 0;
    drupe_status status = DRUPE_OK;
    uint64_t piece = drupe_device_number(device, DRUPE_INFO_GLOBAL_MEM_SIZE, 0) / 32;
    if (piece > most) piece = most;
    while (status == DRUPE_OK && count < 64) {
        status = drupe_memory_alloc(queue, DRUPE_MEM_DEVICE, piece, 0, &held[count]);
        if (status == DRUPE_OK) count++;
    }
    FAILS(status, DRUPE_E_NO_MEMORY, "were asked for");
    drupe_pool_stats stats;
    drupe_pool_stats_of(device, &stats);
    assert_true(stats.used <= drupe_device_number(device, DRUPE_INFO_GLOBAL_MEM_SIZE, 0));
    for (size_t i = 0; i < count; i++) drupe_memory_release(held[i]);
    /* Then it works again. */
    m = new_memory(queue, DRUPE_MEM_DEVICE, 1000);
    drupe_memory_release(m);
    drupe_pool_trim(device);
}

/* In checked mode memory comes straight from the driver, with guarded zones, and is not used again soon. */
static void needs_pools(void)
{
    if (drupe_check_active()) skip();
}

static void pool(struct suite *suite)
{
    drupe_queue *queue = suite->bench.queue;
    drupe_device *device = suite->bench.device;
    drupe_pool_stats before, during, after;
    needs_pools();
    drupe_pool_trim(device);
    drupe_pool_stats_of(device, &before);
    drupe_memory *m = new_memory(queue, DRUPE_MEM_DEVICE, 10000);
    void *address = drupe_memory_pointer(m);
    drupe_pool_stats_of(device, &during);
    assert_int_equal(during.count, before.count + 1);
    assert_true(during.used >= before.used + 10000 && during.used <= before.used + 12500);
    assert_true(during.reserved >= during.used && during.peak >= during.used);
    drupe_memory_release(m);
    drupe_pool_stats_of(device, &after);
    assert_int_equal(after.count, before.count);
    assert_int_equal(after.used, before.used);
    assert_int_equal(after.reserved, during.reserved);
    m = new_memory(queue, DRUPE_MEM_DEVICE, 9999);
    assert_ptr_equal(drupe_memory_pointer(m), address);
    drupe_memory_release(m);
    assert_true(drupe_pool_trim(device) >= 10000);
    drupe_pool_stats_of(device, &after);
    assert_int_equal(after.reserved, before.reserved);
}

static void figures_by_kind(struct suite *suite)
{
    struct bench *b = &suite->bench;
    for (int kind = 0; kind < 3; kind++) {
        if (!has_kind(b, (drupe_mem_kind)kind)) continue;
        drupe_pool_stats before, during, after;
        drupe_pool_stats_of(b->device, &before);
        drupe_memory *m = new_memory(b->queue, (drupe_mem_kind)kind, 5000);
        drupe_pool_stats_of(b->device, &during);
        drupe_memory_release(m);
        drupe_pool_stats_of(b->device, &after);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(during.kinds[k].count, before.kinds[k].count + (k == kind));
            if (k != kind) assert_int_equal(during.kinds[k].used, before.kinds[k].used);
            assert_int_equal(after.kinds[k].used, before.kinds[k].used);
        }
        assert_true(during.kinds[kind].used >= before.kinds[kind].used + 5000);
        assert_true(after.kinds[kind].peak >= during.kinds[kind].used);
        drupe_pool_reset_peak(b->device);
        drupe_pool_stats_of(b->device, &after);
        assert_int_equal(after.kinds[kind].peak, after.kinds[kind].used);
        assert_int_equal(after.peak, after.used);
    }
}

enum { MIB = 1 << 20 };

static uint32_t here(void)
{
    return 4711;
}

static void limit(struct suite *suite)
{
    static const drupe_observer observer = {.site = here};
    struct bench *b = &suite->bench;
    drupe_memory *m, *more;
    drupe_pool_stats stats;
    drupe_pool_trim(b->device);
    drupe_pool_stats_of(b->device, &stats);
    assert_true(stats.limit > 0);
    uint64_t all = stats.limit;
    drupe_pool_set_limit(b->device, stats.reserved + 3 * MIB);
    drupe_library_observe(&observer);
    m = new_memory(b->queue, DRUPE_MEM_DEVICE, 2 * MIB);
    drupe_library_observe(NULL);
    drupe_holder holder;
    assert_true(drupe_memory_holders(b->device, true, &holder, 1) >= 1);
    assert_int_equal(holder.site, 4711);
    FAILS(drupe_memory_alloc(b->queue, DRUPE_MEM_DEVICE, 2 * MIB, 0, &more), DRUPE_E_NO_MEMORY,
          "The largest holders: 2.00 MiB (device)");
    assert_non_null(strstr(drupe_error_last()->text, "were asked for"));
    drupe_memory_release(m);
    /* What was given back is kept by the pool, and given up for a request of another size. */
    m = new_memory(b->queue, DRUPE_MEM_DEVICE, 3 * MIB);
    drupe_memory_release(m);
    drupe_pool_set_limit(b->device, 0);
    drupe_pool_stats_of(b->device, &stats);
    assert_int_equal(stats.limit, all);
}

/* Memory that only work in flight keeps is waited for. */
static void room_in_flight(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_pool_stats stats;
    drupe_pool_trim(b->device);
    drupe_pool_stats_of(b->device, &stats);
    drupe_pool_set_limit(b->device, stats.reserved + 5 * MIB);
    for (int i = 0; i < 40; i++) {
        drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 4 * MIB + (size_t)i * 20000);
        fill_u64(b->queue, m, (uint64_t)i, 4 * MIB / 8);
        OK(submit_mad(b, b->queue, m, m, 1000, 1, 1, NULL, 0, NULL));
        drupe_memory_release(m);
    }
    drupe_pool_set_limit(b->device, 0);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
}

static void expect_bytes(drupe_queue *queue, drupe_memory *m, unsigned char value, size_t size)
{
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    read_memory(queue, m, bytes, size);
    for (size_t i = 0; i < size; i++) assert_int_equal(bytes[i], value);
    free(bytes);
}

static void wipe(struct suite *suite)
{
    needs_pools();
    struct bench *b = &suite->bench;
    static const unsigned char secret[10000] = {[0] = 1, [500] = 2, [9999] = 3};
    FAILS(drupe_pool_set_wipe(b->device, 8), DRUPE_E_INVALID, "0x8");
    for (int kind = 0; kind < 3; kind++) {
        if (!has_kind(b, (drupe_mem_kind)kind)) continue;
        for (uint32_t when = DRUPE_WIPE_ALLOC; when <= DRUPE_WIPE_FREE; when++) {
            OK(drupe_pool_set_wipe(b->device, when));
            drupe_memory *m = new_memory(b->queue, (drupe_mem_kind)kind, sizeof secret);
            void *address = drupe_memory_pointer(m);
            write_memory(b->queue, m, secret, sizeof secret);
            drupe_queue_collect(b->queue);
            drupe_memory_release(m);
            if (when == DRUPE_WIPE_FREE) OK(drupe_pool_set_wipe(b->device, 0));
            m = new_memory(b->queue, (drupe_mem_kind)kind, sizeof secret);
            assert_ptr_equal(drupe_memory_pointer(m), address);
            expect_bytes(b->queue, m, 0, sizeof secret);
            drupe_memory_release(m);
        }
    }
    OK(drupe_pool_set_wipe(b->device, 0));
}

static void holders(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_memory *held[6];
    drupe_holder list[4];
    size_t before = drupe_memory_holders(b->device, false, NULL, 0);
    for (size_t i = 0; i < 6; i++) held[i] = new_memory(b->queue, DRUPE_MEM_DEVICE, (i + 1) * MIB);
    assert_int_equal(drupe_memory_holders(b->device, false, list, 4), before + 6);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(list[i].bytes, (6 - i) * MIB);
        assert_int_equal(list[i].count, 1);
        assert_string_equal(list[i].filter, drupe_device_filter(b->device));
    }
    assert_true(drupe_memory_holders(NULL, true, list, 4) >= 1);
    assert_true(list[0].count >= 6 && list[0].bytes >= 21 * MIB && list[0].kind == DRUPE_MEM_DEVICE);
    for (size_t i = 0; i < 6; i++) drupe_memory_release(held[i]);
    assert_int_equal(drupe_memory_holders(b->device, false, list, 4), before);
}

/* Large pieces are kept for requests of about their size. */
static void large(struct suite *suite)
{
    needs_pools();
    struct bench *b = &suite->bench;
    drupe_pool_stats stats;
    drupe_pool_stats_of(b->device, &stats);
    if (stats.limit / 8 < (uint64_t)1300 * MIB) return;
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, (size_t)1000 * MIB);
    void *address = drupe_memory_pointer(m);
    drupe_memory_release(m);
    m = new_memory(b->queue, DRUPE_MEM_DEVICE, (size_t)950 * MIB);
    assert_ptr_equal(drupe_memory_pointer(m), address);
    drupe_memory_release(m);
    assert_true(drupe_pool_trim(b->device) >= (size_t)1000 * MIB);
}

/* Two views of the same memory, one by its name. */
static void shared_by_name(struct suite *suite)
{
    needs_pools();
    struct bench *b = &suite->bench;
    unsigned char handle[DRUPE_IPC_BYTES], other[DRUPE_IPC_BYTES];
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 5000), *view;
    enum { N = 600 };
    fill_u64(b->queue, m, 7, N);
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_status status = drupe_memory_export(m, handle);
    if (status != DRUPE_OK) {
        FAILS(status, DRUPE_E_UNSUPPORTED, "between processes");
        drupe_memory_release(m);
        skip_known(suite, "ipc");
    }
    OK(drupe_memory_export(m, other));
    assert_memory_equal(handle, other, sizeof handle);
    FAILS(drupe_memory_import(b->queue, handle, (size_t)1 << 40, &view), DRUPE_E_OUT_OF_RANGE, "behind the");
    OK(drupe_memory_import(b->queue, handle, N * 8, &view));
    assert_int_equal(drupe_memory_size(view), N * 8);
    assert_ptr_not_equal(drupe_memory_pointer(view), drupe_memory_pointer(m));
    expect_u64(b->queue, view, 7, N);
    OK(submit_mad(b, b->queue, view, view, N, 2, 1, NULL, 0, NULL));
    expect_u64(b->queue, m, 15, N);
    drupe_queue_collect(b->queue);
    void *address = drupe_memory_pointer(m);
    drupe_memory_release(m);
    assert_null(drupe_memory_find(address));
    m = new_memory(b->queue, DRUPE_MEM_DEVICE, 5000);
    fill_u64(b->queue, m, 1, N);
    expect_u64(b->queue, view, 15, N);
    drupe_memory_release(m);
    drupe_memory_release(view);
    FAILS(drupe_memory_import(b->queue, handle, 0, &view), DRUPE_E_NOT_FOUND, "freed it");
    memset(other, 'x', sizeof other);
    FAILS(drupe_memory_import(b->queue, other, 0, &view), DRUPE_E_INVALID, "not a handle");
    m = new_memory(b->queue, DRUPE_MEM_DEVICE, 100);
    FAILS(drupe_memory_export(m, other), DRUPE_E_UNSUPPORTED, "alignment of 4096");
    drupe_memory_release(m);
}

/* Memory outlives the queue and the context handle it was made with. */
static void outlives(struct suite *suite)
{
    struct bench *other = use_other(suite);
    drupe_memory *m = new_memory(other->queue, kind_or_device(other, DRUPE_MEM_SHARED), 100);
    bench_close(other);
    if (drupe_memory_host_accessible(m)) memset(drupe_memory_pointer(m), 5, 100);
    drupe_memory *found = drupe_memory_find((char *)drupe_memory_pointer(m) + 99);
    assert_ptr_equal(found, m);
    drupe_memory_release(found);
    drupe_memory_release(m);
}

const conformance_case cases_memory[] = {
    {"kinds", kinds},
    {"shared_kind", shared_kind},
    {"host_kind", host_kind},
    {"alloc_refused", refused},
    {"find", find},
    {"out_of_memory", out_of_memory},
    {"pool", pool},
    {"figures_by_kind", figures_by_kind},
    {"limit", limit},
    {"room_in_flight", room_in_flight},
    {"wipe", wipe},
    {"holders", holders},
    {"large", large},
    {"shared_by_name", shared_by_name},
    {"memory_outlives", outlives},
    {NULL, NULL},
};
