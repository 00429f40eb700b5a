/* What another thread does between two steps of a call: a wrapped function does it there. And marks, which
 * meet in the same places. */
#include "core/memory/memory_room.h"
#include "core_bench.h"
#include "test_script.h"

static _Thread_local void (*on_lock)(void); /* before the next lock is taken */
static void (*on_environment)(void);        /* before the environment is read */
static bool no_growth;                      /* realloc() fails */

static void pass(void (**gate)(void))
{
    void (*act)(void) = *gate;
    *gate = NULL;
    if (act) act();
}

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    pass(&on_lock);
    return __real_pthread_mutex_lock(lock);
}

char *__real_getenv(const char *name);
char *__wrap_getenv(const char *name);
char *__wrap_getenv(const char *name)
{
    if (strcmp(name, "DRUPE_MEMORY_LIMIT") == 0) pass(&on_environment);
    return __real_getenv(name);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    return no_growth ? NULL : __real_realloc(old, size);
}

/* --- A driver that counts --------------------------------------------------------------------------------
 */

static unsigned allocated, given_back, attached, detached;
static drupe_status (*real_alloc)(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                  size_t size, size_t align, void **pointer);
static void (*real_free)(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer);

static drupe_status mem_alloc(drupe_context *context, drupe_device *device, drupe_mem_kind kind, size_t size,
                              size_t align, void **pointer)
{
    allocated++;
    return real_alloc(context, device, kind, size, align, pointer);
}

static void mem_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer)
{
    given_back++;
    real_free(context, device, kind, pointer);
}

static drupe_status mem_import(drupe_context *context, drupe_device *device,
                               const unsigned char handle[DRUPE_IPC_BYTES], drupe_mem_kind *kind,
                               void **pointer, size_t *size)
{
    static char theirs[64];
    (void)context, (void)device, (void)handle;
    *kind = DRUPE_MEM_SHARED;
    *pointer = theirs;
    *size = sizeof theirs;
    attached++;
    return DRUPE_OK;
}

static void mem_detach(drupe_context *context, drupe_device *device, void *pointer, size_t size)
{
    (void)context, (void)device, (void)pointer, (void)size;
    detached++;
}

static int setup(void **state)
{
    (void)state;
    test_script_reset();
    real_alloc = test_script_tables[0].mem_alloc;
    real_free = test_script_tables[0].mem_free;
    test_script_tables[0].mem_alloc = mem_alloc;
    test_script_tables[0].mem_free = mem_free;
    test_script_tables[0].mem_import = mem_import;
    test_script_tables[0].mem_detach = mem_detach;
    allocated = given_back = attached = detached = 0;
    return bench_open("host", 0);
}

static drupe_memory *memory; /* what the meetings are about */

/* --- The table of all memory cannot grow -----------------------------------------------------------------
 */

enum { MANY = 1000 };

/* The first of so many that has no room in the table; the others are in `all`. */
static size_t fill_table(drupe_memory **all, drupe_status (*more)(drupe_memory **memory))
{
    size_t count = 0;
    no_growth = true;
    while (count < MANY && more(&all[count]) == DRUPE_OK) count++;
    no_growth = false;
    assert_true(count < MANY);
    assert_null(all[count]);
    return count;
}

static drupe_status allocate(drupe_memory **result)
{
    return drupe_memory_alloc(bench.queue, DRUPE_MEM_SHARED, 64, 0, result);
}

static drupe_status import(drupe_memory **result)
{
    const unsigned char handle[DRUPE_IPC_BYTES] = {0};
    return drupe_memory_import(bench.queue, handle, 0, result);
}

static void what_cannot_be_registered_goes_back(void **state)
{
    (void)state;
    static drupe_memory *all[MANY];
    size_t count = fill_table(all, allocate);
    assert_non_null(strstr(drupe_error_last()->text, "No memory to register"));
    assert_int_equal(allocated - given_back, count);
    OK(allocate(&all[count]));
    for (size_t i = 0; i <= count; i++) drupe_memory_release(all[i]);
    drupe_pool_trim(bench.device);
    assert_int_equal(given_back, allocated);

    count = fill_table(all, import);
    assert_non_null(strstr(drupe_error_last()->text, "No memory to register"));
    assert_int_equal(detached, 1);
    assert_int_equal(attached, count + 1);
    for (size_t i = 0; i < count; i++) drupe_memory_release(all[i]);
    assert_int_equal(detached, attached);
}

/* --- Uses ------------------------------------------------------------------------------------------------
 */

static void end_use(void)
{
    drupe_uses_drop(memory);
}

/* The work is over while the handle goes: the piece is nobody's at once. */
static void the_last_use_ends_while_the_handle_goes(void **state)
{
    (void)state;
    drupe_pool_stats stats;
    drupe_memory *again;
    OK(allocate(&memory));
    const void *at = drupe_memory_pointer(memory);
    drupe_uses_add(memory, bench.queue);
    on_lock = end_use;
    drupe_memory_release(memory);
    assert_null(on_lock);
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.flying, 0);
    OK(allocate(&again));
    assert_ptr_equal(drupe_memory_pointer(again), at);
    assert_false(drupe_memory_in_use(again));
    drupe_memory_release(again);
}

static void set_limit(void)
{
    drupe_pool_set_limit(bench.device, 12345);
}

static void a_limit_that_is_set_meanwhile_counts(void **state)
{
    (void)state;
    drupe_pool_set_limit(bench.device, 0);
    on_environment = set_limit;
    assert_int_equal(drupe_limit_get(bench.device), 12345);
    assert_null(on_environment);
    assert_int_equal(drupe_limit_get(bench.device), 12345);
}

/* --- Marks -----------------------------------------------------------------------------------------------
 */

struct mark {
    drupe_mark mark;
    bool gone;
};

static void mark_gone(drupe_mark *mark)
{
    ((struct mark *)mark)->gone = true;
}

static void mark_seen(const drupe_mark *mark, void *user)
{
    *(const drupe_mark **)user = mark;
}

static const drupe_mark *mark_of(drupe_memory *of)
{
    const drupe_mark *seen = NULL;
    const bool found = drupe_mark_look(of, mark_seen, &seen);
    assert_int_equal(found, seen != NULL);
    return seen;
}

static struct mark mark_for(uint64_t born)
{
    return (struct mark){.mark = {.free = mark_gone, .born = born}};
}

static void the_first_mark_of_a_handle_stays(void **state)
{
    (void)state;
    OK(allocate(&memory));
    const uint64_t born = memory->born;
    struct mark stale = mark_for(born + 1), first = mark_for(born), second = mark_for(born),
                late = mark_for(born);
    /* One of an earlier handle is none, and gives way. */
    atomic_store(&memory->mark, &stale.mark);
    assert_null(mark_of(memory));
    const unsigned version = atomic_load(&drupe_marks_version);
    drupe_mark_put(memory, &first.mark, born);
    assert_true(stale.gone);
    assert_ptr_equal(mark_of(memory), &first.mark);
    assert_int_equal(atomic_load(&drupe_marks_version), version + 1);
    drupe_mark_put(memory, &second.mark, born);
    assert_true(second.gone && !first.gone);
    drupe_memory_release(memory);
    assert_true(first.gone);
    /* The handle that it is for is gone. */
    OK(allocate(&memory));
    drupe_mark_put(memory, &late.mark, memory->born + 1);
    assert_true(late.gone);
    assert_null(mark_of(memory));
    assert_int_equal(atomic_load(&drupe_marks_version), version + 1);
    drupe_memory_release(memory);
}

static void any_handle_has_a_mark_for_all(void **state)
{
    (void)state;
    OK(allocate(&memory));
    struct mark any = mark_for(DRUPE_MARK_ANY);
    drupe_mark_put(memory, &any.mark, memory->born);
    memory->born++;
    assert_ptr_equal(mark_of(memory), &any.mark);
    drupe_memory_release(memory);
    assert_true(any.gone);
}

static drupe_mark *taken;

static void take_mark(void)
{
    taken = drupe_mark_take(memory);
}

/* The mark is accepted on another thread while the handle goes. */
static void a_mark_goes_once(void **state)
{
    (void)state;
    OK(allocate(&memory));
    struct mark mark = mark_for(memory->born);
    drupe_mark_put(memory, &mark.mark, memory->born);
    taken = NULL;
    on_lock = take_mark;
    drupe_memory_release(memory);
    assert_ptr_equal(taken, &mark.mark);
    assert_false(mark.gone);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_cannot_be_registered_goes_back),  TEST(the_last_use_ends_while_the_handle_goes),
        TEST(a_limit_that_is_set_meanwhile_counts), TEST(the_first_mark_of_a_handle_stays),
        TEST(any_handle_has_a_mark_for_all),        TEST(a_mark_goes_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
