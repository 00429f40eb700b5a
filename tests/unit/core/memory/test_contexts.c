/* Contexts over two scripted devices: who is in one, parts that need their own, and their end. */
#include "core/memory/memory_room.h"
#include "core_bench.h"
#include "test_script.h"

static drupe_device *pair[2], *part;
static unsigned opened, closed;

static drupe_status context_open(drupe_context *context)
{
    (void)context;
    opened++;
    return DRUPE_OK;
}

static void context_close(drupe_context *context)
{
    (void)context;
    closed++;
}

static int setup(void **state)
{
    size_t count;
    (void)state;
    test_script_reset();
    test_script.backends[0].count = 2;
    test_script.backends[0].devices[1] = test_script.backends[0].devices[0];
    test_script_tables[0].context_open = context_open;
    test_script_tables[0].context_close = context_close;
    if (bench_open("host", 0) != 0) return -1;
    OK(drupe_device_list("host", pair, 2, &count));
    assert_int_equal(count, 2);
    opened = closed = 0;
    return 0;
}

static int teardown(void **state)
{
    for (size_t i = 0; i < 2; i++) drupe_device_release(pair[i]);
    return bench_teardown(state);
}

static void devices_of_two_platforms_share_none(void **state)
{
    (void)state;
    drupe_context *context;
    drupe_info_entry *platform = &pair[1]->info[DRUPE_INFO_PLATFORM_INDEX];
    platform->number[0] = 1;
    atomic_store(&platform->state, DRUPE_INFO_KNOWN);
    FAILS(drupe_context_open(pair, 2, &context), DRUPE_E_INVALID,
          "host:cpu:0 and host:cpu:1 are of different platforms");
    assert_int_equal(opened, 0);
}

/* A part is at home where its device, or a part above it, is a member. */
static void parts_are_at_home_with_their_device(void **state)
{
    (void)state;
    drupe_context *context, *narrow;
    OK(drupe_device_select("host:cpu:0.0", &part));
    OK(drupe_context_open(pair, 1, &context));
    OK(drupe_context_open(&part, 1, &narrow));
    assert_ptr_equal(drupe_context_home(context, pair[0]), pair[0]);
    assert_ptr_equal(drupe_context_home(context, part), pair[0]);
    assert_null(drupe_context_home(context, pair[1]));
    assert_ptr_equal(drupe_context_home(narrow, part), part);
    assert_null(drupe_context_home(narrow, pair[0]));
    drupe_context_release(narrow);
    drupe_context_release(context);
    drupe_device_release(part);
}

/* A driver that is silent is not told, whichever device of the context is lost. */
static void a_context_of_a_silent_device_is_not_closed(void **state)
{
    (void)state;
    for (size_t lost = 0; lost < 2; lost++) {
        drupe_context *context;
        drupe_loss loss = {.error = {.status = DRUPE_E_DEVICE_LOST}, .silent = true};
        OK(drupe_context_open(pair, 2, &context));
        assert_int_equal(opened, lost + 1);
        atomic_store(&pair[lost]->loss, &loss);
        drupe_context_release(context);
        assert_int_equal(closed, 0);
        atomic_store(&pair[lost]->loss, NULL);
    }
    drupe_context *context;
    OK(drupe_context_open(pair, 2, &context));
    drupe_context_release(context);
    assert_int_equal(closed, 1);
}

static unsigned rings;

static void ring_close(drupe_context *context)
{
    assert_string_equal(context->ring, "pinned");
    assert_int_equal(closed, 0); /* before its context */
    rings++;
}

static void pinned_memory_goes_with_its_context(void **state)
{
    (void)state;
    drupe_context *context;
    char ring[] = "pinned";
    OK(drupe_context_open(pair, 1, &context));
    context->ring = ring;
    context->ring_close = ring_close;
    rings = 0;
    drupe_context_release(context);
    assert_int_equal(rings, 1);
    assert_int_equal(closed, 1);
}

/* --- Parts with a context of their own -------------------------------------------------------------------
 */

static void (*on_lock)(void); /* before the library's lock is taken */
void __real_drupe_library_lock(void);
void __wrap_drupe_library_lock(void);
void __wrap_drupe_library_lock(void)
{
    void (*act)(void) = on_lock;
    on_lock = NULL;
    if (act) act();
    __real_drupe_library_lock();
}

static drupe_context *later;

static void ask_again(void)
{
    OK(drupe_device_context(part, &later));
}

static void a_part_forgets_its_context_when_that_goes(void **state)
{
    (void)state;
    drupe_context *context, *again;
    OK(drupe_device_select("host:cpu:0.0", &part));
    part->root->parts = DRUPE_PARTS_ALONE;
    OK(drupe_device_context(part, &context));
    assert_ptr_equal(drupe_context_device(context, 0), part);
    OK(drupe_device_context(part, &again));
    assert_ptr_equal(again, context);
    drupe_context_release(again);
    drupe_context_release(context);
    assert_null(part->context);
    /* While the old one goes, another thread makes a new one, which stays. */
    OK(drupe_device_context(part, &context));
    on_lock = ask_again;
    drupe_context_release(context);
    assert_null(on_lock);
    assert_ptr_equal(part->context, later);
    drupe_context_release(later);
    assert_null(part->context);
    drupe_device_release(part);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(devices_of_two_platforms_share_none),        TEST(parts_are_at_home_with_their_device),
        TEST(a_context_of_a_silent_device_is_not_closed), TEST(pinned_memory_goes_with_its_context),
        TEST(a_part_forgets_its_context_when_that_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
