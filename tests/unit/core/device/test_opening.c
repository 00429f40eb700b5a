/* Opening a backend: what its driver answers, what the environment says, no host memory, a fork in the
 * middle; and what another thread does between two looks. */
#include "core/device/device_room.h"
#include "fault/leave.h"
#include "test_script.h"
#include "walk/wrap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

/* --- Another thread ------------------------------------------------------------------------------------- */

/* What another thread does before the next lock is taken, or after the next look at a variable; once. */
static void (*before_lock)(void), (*after_look)(void);

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
char *__real_getenv(const char *name);
char *__wrap_getenv(const char *name);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    void (*act)(void) = before_lock;
    before_lock = NULL;
    if (act) act();
    return __real_pthread_mutex_lock(mutex);
}

char *__wrap_getenv(const char *name)
{
    void (*act)(void) = after_look;
    char *value = __real_getenv(name);
    after_look = NULL;
    if (act) act();
    return value;
}

/* --- The bench ------------------------------------------------------------------------------------------ */

static drupe_slot *slot;
static const drupe_backend *real;
static drupe_backend table;
static drupe_device *device;

static int setup(void **state)
{
    (void)state;
    test_script_reset();
    assert_int_equal(drupe_slot_count(), 2);
    slot = drupe_slot_at(0);
    real = slot->base;
    table = *real;
    slot->base = &table;
    device = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("DRUPE_DEVICES");
    unsetenv("DRUPE_MEMORY_WIPE");
    const size_t left = drupe_library_close(0);
    slot->base = slot->backend = real;
    return left == 0 && atomic_load(&slot->live) == 0 ? 0 : -1;
}

static void expect_failure(drupe_status status, const char *words)
{
    assert_int_equal(drupe_slot_load(slot), status);
    if (!strstr(drupe_error_last()->text, words)) fail_msg("%s", drupe_error_last()->text);
    assert_int_equal(slot->ndevices, 0);
}

static drupe_status count_none(void *state, uint32_t *count)
{
    (void)state, (void)count;
    return drupe_error_set(DRUPE_E_INTERNAL, "No count.");
}

static void failures_are_kept_until_the_library_closes(void **state)
{
    (void)state;
    table.device_count = count_none;
    expect_failure(DRUPE_E_INTERNAL, "No count.");
    table.device_count = real->device_count;
    expect_failure(DRUPE_E_INTERNAL, "No count.");
    assert_int_equal(test_script.backends[0].loads, 1);
    assert_int_equal(drupe_library_close(0), 0);
    test_script.layer = DRUPE_E_INVALID;
    expect_failure(DRUPE_E_INVALID, "The script says no");
    test_script.layer = DRUPE_OK;
    assert_int_equal(drupe_library_close(0), 0);
    assert_int_equal(test_script.backends[0].loads, 1); /* not with a layer that is not there */
    assert_int_equal(drupe_slot_load(slot), DRUPE_OK);
}

static void an_unknown_type_is_custom(void **state)
{
    (void)state;
    test_script.backends[0].devices[0].type = (drupe_device_type)77;
    assert_int_equal(drupe_slot_load(slot), DRUPE_OK);
    assert_string_equal(drupe_device_filter(slot->devices[0]), "host:custom:0");
}

static void devices_are_told_when_to_wipe(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        uint32_t when;
    } cases[] = {{"free", DRUPE_WIPE_FREE},
                 {"alloc,free", DRUPE_WIPE_ALLOC | DRUPE_WIPE_FREE},
                 {"", 0},
                 {"0", 0},
                 {"alloc,never", DRUPE_WIPE_ALLOC | DRUPE_WIPE_FREE}}; /* a mistake protects */
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        setenv("DRUPE_MEMORY_WIPE", cases[i].value, 1);
        assert_int_equal(drupe_slot_load(slot), DRUPE_OK);
        assert_int_equal(atomic_load(&slot->devices[0]->wipe), cases[i].when);
        assert_int_equal(drupe_library_close(0), 0);
    }
}

/* --- No host memory ------------------------------------------------------------------------------------- */

static void list_all(size_t expected)
{
    size_t count;
    assert_int_equal(drupe_device_list(NULL, NULL, 0, &count), DRUPE_OK);
    assert_int_equal(count, expected);
}

static void without_memory_it_is_tried_again(void **state)
{
    (void)state;
    bool made = true;
    for (size_t i = 0; i < 2; i++)
        test_script.backends[i].devices[0] = (struct test_device){
            .type = DRUPE_DEVICE_CPU, .units = 8, .kinds = DRUPE_FLAG(DRUPE_SPLIT_AFFINITY), .numa = 2};
    setenv("DRUPE_DEVICES", "host:*;opencl:0.0.*,0.1", 1);
    for (unsigned long n = 1; made; n++) {
        size_t count;
        wrap_plan(WRAP_MALLOC, n);
        const drupe_status status = drupe_device_list(NULL, NULL, 0, &count);
        made = wrap_made() > 0;
        wrap_plan(WRAP_NOTHING, 0);
        assert_true(status == DRUPE_OK || status == DRUPE_E_NO_MEMORY);
        list_all(4);
        assert_int_equal(drupe_library_close(0), 0);
        assert_int_equal(atomic_load(&slot->live) + atomic_load(&drupe_slot_at(1)->live), 0);
    }
}

/* --- Forks ---------------------------------------------------------------------------------------------- */

static int child_status;

static drupe_status load_and_fork(void **state)
{
    const pid_t child = fork();
    if (child == 0) {
        const bool told = drupe_slot_load(slot) == DRUPE_E_UNAVAILABLE &&
                          strstr(drupe_error_last()->text, "forked") != NULL;
        leave(told ? 0 : 1);
    }
    assert_true(child > 0 && waitpid(child, &child_status, 0) == child);
    return real->load(state);
}

static void a_child_has_no_half_open_backend(void **state)
{
    (void)state;
    child_status = -1;
    table.load = load_and_fork;
    assert_int_equal(drupe_slot_load(slot), DRUPE_OK);
    assert_int_equal(child_status, 0);
    assert_int_equal(slot->ndevices, 1);
}

/* --- Meanwhile ------------------------------------------------------------------------------------------ */

static void load_it(void)
{
    assert_int_equal(drupe_slot_load(slot), DRUPE_OK);
}

static void a_backend_is_opened_once(void **state)
{
    (void)state;
    before_lock = load_it;
    assert_int_equal(drupe_slot_load(slot), DRUPE_OK);
    assert_int_equal(test_script.backends[0].loads, 1);
}

static int asked;

static drupe_status count_questions(drupe_device *of, drupe_info key, uint64_t number[3], drupe_text *text)
{
    asked++;
    return real->device_info(of, key, number, text);
}

static void ask_it(void)
{
    assert_int_equal(drupe_device_number(slot->devices[0], DRUPE_INFO_GLOBAL_MEM_SIZE, 7), 1 << 30);
}

static void a_property_is_asked_for_once(void **state)
{
    (void)state;
    table.device_info = count_questions;
    load_it();
    asked = 0;
    before_lock = ask_it;
    ask_it();
    assert_int_equal(asked, 1);
}

static void select_part(void)
{
    assert_int_equal(drupe_device_select("host:cpu:0.1", &device), DRUPE_OK);
}

/* Its last reference is gone, and filters find it still. */
static void a_part_that_goes_is_made_anew(void **state)
{
    (void)state;
    select_part();
    drupe_device *first = device;
    const uintptr_t gone = (uintptr_t)first;
    before_lock = select_part;
    drupe_device_release(first);
    assert_true((uintptr_t)device != gone);
    assert_string_equal(drupe_device_filter(device), "host:cpu:0.1");
    drupe_device *again;
    assert_int_equal(drupe_device_select("host:cpu:0.1", &again), DRUPE_OK);
    assert_ptr_equal(again, device);
    drupe_device_release(again);
    drupe_device_release(device);
}

static void take_variable_away(void)
{
    setenv("DRUPE_DEVICES", " ", 1);
}

static void a_variable_goes_while_it_is_read(void **state)
{
    (void)state;
    static char entry[] = "DRUPE_DEVICES=gpu"; /* the text outlives the variable */
    putenv(entry);
    after_look = take_variable_away;
    assert_int_equal(drupe_selector_check(), DRUPE_E_INVALID);
    assert_non_null(strstr(drupe_error_last()->text, "The selector= cannot be understood: 'gpu'"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(failures_are_kept_until_the_library_closes),
        TEST(an_unknown_type_is_custom),
        TEST(devices_are_told_when_to_wipe),
        TEST(without_memory_it_is_tried_again),
        TEST(a_child_has_no_half_open_backend),
        TEST(a_backend_is_opened_once),
        TEST(a_property_is_asked_for_once),
        TEST(a_part_that_goes_is_made_anew),
        TEST(a_variable_goes_while_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
