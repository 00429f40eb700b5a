/* Who holds the memory of two scripted devices, and the figures of devices that others open and close. */
#include "core/memory/memory_room.h"
#include "core_bench.h"
#include "test_script.h"
#include <time.h>

static uint32_t site, cell;

static void *cell_retain(void)
{
    return &cell;
}

static uint32_t cell_number(void *one)
{
    return *(uint32_t *)one;
}

static uint32_t site_now(void)
{
    return site;
}

static size_t site_text(uint32_t where, uint32_t number, char *text, size_t size)
{
    return (size_t)snprintf(text, size, "cell [%u], line %u", number, where);
}

static int setup(void **state)
{
    static const drupe_observer observer = {
        .cell_retain = cell_retain, .cell_number = cell_number, .site = site_now, .site_text = site_text};
    (void)state;
    test_script_reset();
    test_script.backends[0].count = 2;
    test_script.backends[0].devices[1] = test_script.backends[0].devices[0];
    drupe_library_observe(&observer);
    return bench_open("host", 0);
}

static int teardown(void **state)
{
    drupe_library_observe(NULL);
    site = cell = 0;
    return bench_teardown(state);
}

/* --- Holders ---------------------------------------------------------------------------------------------
 */

static drupe_queue *queue_of(const char *filter)
{
    drupe_device *device;
    drupe_queue *queue;
    OK(drupe_device_select(filter, &device));
    OK(drupe_device_queue(device, &queue));
    drupe_device_release(device);
    return queue;
}

static const struct holding {
    unsigned device;
    uint32_t site, cell;
    drupe_mem_kind kind;
} sorted[] = {
    {0, 1, 2, DRUPE_MEM_SHARED}, {0, 2, 1, DRUPE_MEM_SHARED}, {0, 2, 1, DRUPE_MEM_HOST},
    {0, 2, 2, DRUPE_MEM_DEVICE}, {1, 1, 1, DRUPE_MEM_DEVICE},
};
enum { HOLDINGS = DRUPE_COUNT_OF(sorted) };

static bool is(const drupe_holder *holder, const struct holding *wanted)
{
    return strcmp(holder->filter, wanted->device ? "host:cpu:1" : "host:cpu:0") == 0 &&
           holder->site == wanted->site && holder->cell == wanted->cell && holder->kind == wanted->kind;
}

/* Of as many bytes: by device, then place, cell and kind. */
static void equal_holders_stand_in_a_fixed_order(void **state)
{
    (void)state;
    drupe_queue *queues[] = {queue_of("host:cpu:0"), queue_of("host:cpu:1")};
    drupe_memory *memories[HOLDINGS];
    drupe_holder holders[HOLDINGS];
    for (size_t i = 0; i < HOLDINGS; i++) {
        const struct holding *one = &sorted[i * 3 % HOLDINGS]; /* in another order than that */
        site = one->site;
        cell = one->cell;
        memories[i] = bench_memory(queues[one->device], one->kind, 4096);
    }
    for (int merge = 0; merge < 2; merge++) {
        assert_int_equal(drupe_memory_holders(NULL, merge, holders, HOLDINGS), HOLDINGS);
        for (size_t i = 0; i < HOLDINGS; i++) assert_true(is(&holders[i], &sorted[i]));
    }
    drupe_device *second = drupe_queue_device(queues[1]);
    assert_int_equal(drupe_memory_holders(second, false, holders, HOLDINGS), 1);
    assert_true(is(&holders[0], &sorted[HOLDINGS - 1]));
    for (size_t i = 0; i < HOLDINGS; i++) drupe_memory_release(memories[i]);
    for (size_t i = 0; i < 2; i++) drupe_queue_release(queues[i]);
}

/* Three of them, with bytes and places. */
static void a_full_device_names_its_largest_holders(void **state)
{
    (void)state;
    drupe_memory *memories[4], *more;
    cell = 5;
    for (size_t i = 0; i < 4; i++) {
        site = (uint32_t)i + 1;
        memories[i] = bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096 << i);
    }
    drupe_pool_set_limit(bench.device, 64 << 10);
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 32 << 10, 0, &more), DRUPE_E_NO_MEMORY,
          "The largest holders: 32.0 KiB (shared, cell [5], line 4), 16.0 KiB (shared, cell [5], line 3), "
          "8.00 KiB (shared, cell [5], line 2). Delete");
    drupe_pool_set_limit(bench.device, 0);
    for (size_t i = 0; i < 4; i++) drupe_memory_release(memories[i]);
}

static char theirs[4096];

static drupe_status import_theirs(drupe_context *context, drupe_device *device,
                                  const unsigned char handle[DRUPE_IPC_BYTES], drupe_mem_kind *kind,
                                  void **pointer, size_t *size)
{
    (void)context, (void)device, (void)handle;
    *kind = DRUPE_MEM_SHARED;
    *pointer = theirs;
    *size = sizeof theirs;
    return DRUPE_OK;
}

static void detach(drupe_context *context, drupe_device *device, void *pointer, size_t size)
{
    (void)context, (void)device, (void)size;
    assert_ptr_equal(pointer, theirs);
}

static void what_others_lend_is_not_held_here(void **state)
{
    (void)state;
    unsigned char handle[DRUPE_IPC_BYTES] = {0};
    drupe_memory *twin;
    drupe_holder holders[1];
    test_script_tables[0].mem_import = import_theirs;
    test_script_tables[0].mem_detach = detach;
    OK(drupe_memory_import(bench.queue, handle, 0, &twin));
    assert_int_equal(drupe_memory_holders(NULL, false, holders, 1), 0);
    drupe_memory_release(twin);
}

/* --- Figures ---------------------------------------------------------------------------------------------
 */

static drupe_device_figures figures_now(void)
{
    drupe_device_figures figures[2];
    assert_int_equal(drupe_device_figures_of(figures, 2), 2);
    return figures[0];
}

/* What nobody has asked of a device is 0; it counts as used while it has memory, or had some. */
static void a_device_is_used_once_memory_was_taken(void **state)
{
    drupe_device *device;
    assert_int_equal(bench_teardown(state), 0);
    OK(drupe_device_select("host", &device));
    assert_int_equal(figures_now().use.total, 0);
    assert_false(figures_now().used);
    drupe_device_release(device);
    assert_int_equal(bench_open("host", 0), 0);
    assert_int_equal(figures_now().use.total, test_script.backends[0].devices[0].memory);
    assert_false(figures_now().used);
    drupe_memory_release(bench_memory(bench.queue, DRUPE_MEM_SHARED, 64));
    assert_true(figures_now().used);
    drupe_pool_reset_peak(bench.device);
    assert_true(figures_now().used); /* a piece waits in the pool */
    drupe_pool_trim(bench.device);
    assert_false(figures_now().used);
}

static struct {
    pthread_mutex_t *lock; /* the test's, while it stands for a thread that opens the backend */
    drupe_slot *slot;
    unsigned rests, after; /* how often readers rested; the owner lets go at the `after`th */
    bool unloads, closing; /* it has closed the backend then; it closes it before the lock is tried */
    uint64_t passed;       /* nanoseconds that the clock is ahead */
} other;

int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
    if (other.slot && other.closing && lock == &other.slot->lock) atomic_store(&other.slot->loaded, 0);
    return __real_pthread_mutex_trylock(lock);
}

int __real_nanosleep(const struct timespec *span, struct timespec *left);
int __wrap_nanosleep(const struct timespec *span, struct timespec *left);
int __wrap_nanosleep(const struct timespec *span, struct timespec *left)
{
    if (!other.slot) return __real_nanosleep(span, left);
    if (++other.rests == other.after) {
        if (other.unloads) atomic_store(&other.slot->loaded, 0);
        pthread_mutex_unlock(other.lock);
    }
    other.passed += SECOND;
    return 0;
}

uint64_t __real_drupe_now_ns(void);
uint64_t __wrap_drupe_now_ns(void);
uint64_t __wrap_drupe_now_ns(void)
{
    return __real_drupe_now_ns() + other.passed;
}

/* A reader gives a backend that others hold a moment, then leaves its devices out. */
static void a_backend_that_is_opened_or_closed_is_left_out(void **state)
{
    (void)state;
    static const struct {
        bool held, unloads, closing;
        unsigned after, rests;
        size_t found;
    } cases[] = {
        {.held = true, .after = 2, .rests = 2, .found = 2},
        {.held = true, .after = 1, .rests = 1, .unloads = true},
        {.held = true, .after = 100, .rests = 2}, /* the clock says that it takes too long */
        {.closing = true},
        {.found = 2},
    };
    drupe_slot *slot = bench.device->slot;
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        drupe_device_figures figures[2];
        other.lock = &slot->lock;
        other.unloads = cases[i].unloads;
        other.closing = cases[i].closing;
        other.after = cases[i].after;
        other.rests = 0;
        other.passed = 0;
        if (cases[i].held) pthread_mutex_lock(&slot->lock);
        other.slot = slot;
        assert_int_equal(drupe_device_figures_of(figures, 2), cases[i].found);
        other.slot = NULL;
        assert_in_range(other.rests, cases[i].rests, cases[i].rests + 1);
        if (cases[i].held && other.rests < other.after) pthread_mutex_unlock(&slot->lock);
        atomic_store(&slot->loaded, 1);
    }
    other.passed = 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(equal_holders_stand_in_a_fixed_order),
        TEST(a_full_device_names_its_largest_holders),
        TEST(what_others_lend_is_not_held_here),
        TEST(a_device_is_used_once_memory_was_taken),
        TEST(a_backend_that_is_opened_or_closed_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
