/* Guarded memory: what the host does not reach, guard pages that cannot be, and what faults there are told.
 */
#include "core/check/check_room.h"
#include "core_bench.h"
#include "drupe/fault.h"
#include <errno.h>
#include <sys/mman.h>

/* --- The system ------------------------------------------------------------------------------------------
 */

static unsigned refused, calls; /* of the coming calls, a bit each; how many there were since */
static bool below;              /* in the backend, whose own calls do not count */

int __real_mprotect(void *address, size_t size, int access);
int __wrap_mprotect(void *address, size_t size, int access);

int __wrap_mprotect(void *address, size_t size, int access)
{
    if (below || !(refused >> calls++ & 1)) return __real_mprotect(address, size, access);
    errno = ENOMEM; /* no more maps */
    return -1;
}

static void refuse(unsigned bits)
{
    refused = bits;
    calls = 0;
}

static drupe_backend counting;
static const drupe_backend *real;
static unsigned freed;

static void count_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer)
{
    freed++;
    below = true;
    real->mem_free(context, device, kind, pointer);
    below = false;
}

static drupe_status alloc(drupe_context *context, drupe_device *device, drupe_mem_kind kind, size_t size,
                          size_t align, void **pointer)
{
    if (size > SIZE_MAX / 2) return drupe_error_set(DRUPE_E_NO_MEMORY, "Nobody has %zu bytes.", size);
    below = true;
    const drupe_status status = real->mem_alloc(context, device, kind, size, align, pointer);
    below = false;
    return status;
}

static drupe_status tell_nothing(drupe_device *device, drupe_info key, uint64_t *number, drupe_text *text)
{
    (void)device, (void)key, (void)number, (void)text;
    return drupe_error_set(DRUPE_E_UNSUPPORTED, "It does not tell.");
}

static int setup(void **state)
{
    drupe_check_begin();
    if (bench_setup(state) != 0) return -1;
    real = bench.device->slot->backend;
    counting = *real;
    counting.mem_free = count_free;
    counting.mem_alloc = alloc;
    bench.device->slot->backend = &counting;
    freed = 0;
    return 0;
}

static int setup_contained(void **state)
{
    drupe_fault_contain();
    return setup(state);
}

static int teardown(void **state)
{
    drupe_slot *slot = bench.device->slot;
    refuse(0);
    bench.device->type = DRUPE_DEVICE_CPU;
    const int result = bench_teardown(state);
    slot->backend = real;
    drupe_check_end();
    return result;
}

static size_t kept_back(void)
{
    drupe_pool_stats stats;
    drupe_pool_stats_of(bench.device, &stats);
    return stats.reserved;
}

/* --- Which memory is guarded -----------------------------------------------------------------------------
 */

static void what_the_host_does_not_reach_is_not_looked_at(void **state)
{
    (void)state;
    static const drupe_mem_kind kinds[] = {DRUPE_MEM_DEVICE, DRUPE_MEM_HOST};
    bench.device->type = DRUPE_DEVICE_GPU;
    for (size_t i = 0; i < 2; i++) {
        drupe_memory *memory = bench_memory(bench.queue, kinds[i], 100), *other;
        other = bench_memory(bench.queue, DRUPE_MEM_HOST, 100);
        ((char *)drupe_memory_pointer(memory))[100] = 1;
        if (kinds[i] == DRUPE_MEM_DEVICE)
            OK(drupe_check_memory());
        else
            FAILS(drupe_check_memory(), DRUPE_E_CHECK, "0 bytes behind the host memory of 100 bytes");
        const size_t before = kept_back();
        drupe_memory_release(memory);
        assert_int_equal(before - kept_back(), kinds[i] == DRUPE_MEM_DEVICE ? 100 : 0);
        drupe_memory_release(other);
    }
}

/* More than there are addresses, on a device that tells nothing of its memory. */
static void no_redzone_makes_a_size_small(void **state)
{
    (void)state;
    drupe_memory *memory = NULL;
    drupe_pool_of(bench.queue, DRUPE_MEM_SHARED)->most = UINT64_MAX;
    drupe_pool_set_limit(bench.device, UINT64_MAX);
    counting.device_info = tell_nothing;
    FAILS(drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, SIZE_MAX - 5000, 0, &memory), DRUPE_E_NO_MEMORY,
          "Nobody has");
    drupe_pool_set_limit(bench.device, 0);
}

/* --- Guard pages -----------------------------------------------------------------------------------------
 */

static drupe_memory *page(void)
{
    return bench_memory(bench.queue, DRUPE_MEM_SHARED, 4096);
}

static void only_host_memory_has_guard_pages(void **state)
{
    (void)state;
    drupe_memory *memory = page();
    assert_true(memory->guard_bytes > 0);
    drupe_memory_release(memory);
    bench.device->type = DRUPE_DEVICE_GPU;
    memory = page();
    assert_int_equal(memory->guard_bytes, 0);
    drupe_memory_release(memory);
    bench.device->type = DRUPE_DEVICE_CPU;
    bench.device->info[DRUPE_INFO_HAS_USM_SYSTEM].number[0] = 0;
    memory = page();
    assert_int_equal(memory->guard_bytes, 0);
    drupe_memory_release(memory);
}

/* Each side is raised by a call, and lowered by one. */
static void pages_that_cannot_be_raised_become_redzones(void **state)
{
    (void)state;
    static const unsigned raising[] = {1 << 0, 1 << 1};
    for (size_t i = 0; i < 2; i++) {
        refuse(raising[i]);
        drupe_memory *memory = page();
        char *at = drupe_memory_pointer(memory);
        assert_int_equal(memory->guard_bytes, 0);
        assert_int_equal(calls, i + 3);
        at[4096 + 24] = 1;
        FAILS(drupe_check_memory(), DRUPE_E_CHECK, "24 bytes behind the shared memory of 4096 bytes");
        at[-8] = 1;
        FAILS(drupe_check_memory(), DRUPE_E_CHECK, "8 bytes before");
        drupe_memory_release(memory);
        drupe_redzone_release(NULL);
        assert_int_equal(freed, i + 1);
    }
}

/* The first call raises one side, the second fails; the third or fourth is to take that back. */
static void a_side_that_stands_is_lowered_before_the_driver_gets_it(void **state)
{
    (void)state;
    static const unsigned raising[] = {1 << 1 | 1 << 2, 1 << 1 | 1 << 3};
    char text[300];
    for (size_t i = 0; i < 2; i++) {
        refuse(raising[i]);
        drupe_memory *memory = page();
        drupe_fault fault = {.address = (uintptr_t)drupe_memory_pointer(memory) - 8192, .access = 1};
        assert_true(memory->guard_bytes > 0);
        assert_true(drupe_redzone_fault(&fault, text, sizeof text));
        assert_non_null(strstr(text, ": it read 8192 bytes before the start of the 4096 bytes"));
        OK(drupe_check_memory());
        drupe_memory_release(memory);
        drupe_redzone_release(NULL);
        assert_int_equal(freed, i + 1);
    }
}

static void what_cannot_be_lowered_stays(void **state)
{
    (void)state;
    static char *volatile left; /* the block, which nobody else knows now */
    drupe_memory *memory = page();
    char *base = drupe_memory_pointer(memory);
    const size_t before = memory->redzone, all = before + 4096 + memory->behind;
    drupe_memory_release(memory);
    refuse(1);
    drupe_redzone_release(NULL);
    assert_int_equal(calls, 1);
    assert_int_equal(freed, 0); /* a driver would fault in it */
    assert_int_equal(kept_back(), 0);
    left = base - before;
    assert_int_equal(__real_mprotect(left, all, PROT_READ | PROT_WRITE), 0);
    real->mem_free(bench.context, bench.device, DRUPE_MEM_SHARED, left);
}

static size_t place_text(uint32_t site, uint32_t cell, char *text, size_t size)
{
    (void)cell;
    return (size_t)snprintf(text, size, "line %u", site);
}

static uint32_t line_12(void)
{
    return 12;
}

static void faults_name_who_allocated(void **state)
{
    (void)state;
    static const drupe_observer observer = {.site = line_12, .site_text = place_text};
    char text[300];
    drupe_library_observe(&observer);
    drupe_memory *memory = page();
    drupe_fault fault = {.address = (uintptr_t)drupe_memory_pointer(memory) + 4096, .access = 2};
    assert_true(drupe_redzone_fault(&fault, text, sizeof text));
    assert_string_equal(
        text, ": it wrote 0 bytes behind the end of the 4096 bytes of shared memory that line 12 allocated");
    fault.address += memory->behind; /* the first byte that is another's */
    assert_false(drupe_redzone_fault(&fault, text, sizeof text));
    drupe_memory_release(memory);
    drupe_library_observe(NULL);
}

int main(void)
{
#define TEST(name)      cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CONTAINED(name) cmocka_unit_test_setup_teardown(name, setup_contained, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_the_host_does_not_reach_is_not_looked_at),
        TEST(no_redzone_makes_a_size_small),
        /* From here on faults are contained: memory ends at pages that nobody may touch. */
        CONTAINED(only_host_memory_has_guard_pages),
        CONTAINED(pages_that_cannot_be_raised_become_redzones),
        CONTAINED(a_side_that_stands_is_lowered_before_the_driver_gets_it),
        CONTAINED(what_cannot_be_lowered_stays),
        CONTAINED(faults_name_who_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
