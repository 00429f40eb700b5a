/* The embedding program as core asks it, with and without each of its functions; objects; a forked child. */
#include "core/object/object_room.h"
#include "drupe/program.h"
#include "fault/leave.h"
#include "test_script.h"
#include "walk/wrap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int cell; /* the observer's only one */
static int released, shared, printing, built;
static char logged[2048];

static void *cell_retain(void)
{
    return &cell;
}

static void cell_release(void *one)
{
    released += one == &cell;
}

static uint32_t cell_number(void *one)
{
    return one == &cell ? 7 : 0;
}

static uint32_t site(void)
{
    return 9;
}

static size_t site_text(uint32_t where, uint32_t number, char *text, size_t size)
{
    return (size_t)snprintf(text, size, "cell [%u], site %u", number, where);
}

static bool failed(const drupe_failure *failure)
{
    return strcmp(failure->label, "shown") == 0;
}

static void *cell_share(void *one)
{
    shared++;
    return one;
}

static void on_printing(void *one)
{
    printing += one == &cell;
}

static void *building(const drupe_source *source, const char *device)
{
    return source && strcmp(device, "host:cpu:0") == 0 ? &cell : NULL;
}

static void on_built(void *shown, bool good)
{
    built += shown == &cell && good;
}

static drupe_status pause_for(drupe_queue *queue, uint64_t timeout_ns)
{
    return !queue && timeout_ns == 5 ? DRUPE_E_BUSY : DRUPE_OK;
}

static void take_line(const char *line)
{
    snprintf(logged, sizeof logged, "%s", line);
}

static const drupe_observer full = {.cell_retain = cell_retain,
                                    .cell_release = cell_release,
                                    .cell_number = cell_number,
                                    .site = site,
                                    .site_text = site_text,
                                    .failed = failed,
                                    .cell_share = cell_share,
                                    .printing = on_printing,
                                    .building = building,
                                    .built = on_built,
                                    .pause = pause_for,
                                    .log = take_line};
static const drupe_observer empty;

static int teardown(void **state)
{
    (void)state;
    drupe_library_observe(NULL);
    return drupe_library_close(0) == 0 ? 0 : -1;
}

static void everything_is_asked(void **state)
{
    (void)state;
    char text[64];
    drupe_status status = DRUPE_OK;
    const drupe_failure seen = {.label = "shown"}, unseen = {.label = "other"};
    const drupe_source source = {.language = DRUPE_LANG_C};
    drupe_library_observe(&full);
    assert_ptr_equal(drupe_core_cell(), &cell);
    assert_ptr_equal(drupe_core_cell_share(&cell), &cell);
    drupe_core_cell_release(&cell);
    assert_int_equal(released, 1);
    assert_int_equal(shared, 1);
    assert_int_equal(drupe_core_cell_number(&cell), 7);
    assert_int_equal(drupe_core_cell_here(), 7);
    assert_int_equal(released, 2); /* it was only looked at */
    assert_int_equal(drupe_core_site(), 9);
    drupe_trace_place(3, 4, text, sizeof text);
    assert_string_equal(text, "cell [4], site 3");
    assert_true(drupe_core_failed(&seen));
    assert_false(drupe_core_failed(&unseen));
    assert_true(drupe_core_prints());
    drupe_core_printing(&cell);
    assert_int_equal(printing, 1);
    assert_ptr_equal(drupe_core_building(&source, "host:cpu:0"), &cell);
    drupe_core_built(&cell, true);
    assert_int_equal(built, 1);
    assert_true(drupe_core_pause(NULL, 5, &status));
    assert_int_equal(status, DRUPE_E_BUSY);
    drupe_core_note("%d lines", 3);
    assert_string_equal(logged, "3 lines");
}

/* NULL is no cell and no build. */
static void nothing_is_not_given_back(void **state)
{
    (void)state;
    drupe_library_observe(&full);
    released = shared = built = 0;
    drupe_core_cell_release(NULL);
    assert_null(drupe_core_cell_share(NULL));
    assert_int_equal(drupe_core_cell_number(NULL), 0);
    drupe_core_built(NULL, true);
    assert_int_equal(released + shared + built, 0);
}

static void expect_silence(const drupe_observer *observer)
{
    char text[8] = "old";
    drupe_status status;
    const drupe_failure failure = {.label = "shown"};
    const drupe_source source = {.language = DRUPE_LANG_C};
    drupe_library_observe(observer);
    released = printing = built = 0;
    assert_null(drupe_core_cell());
    assert_null(drupe_core_cell_share(&cell));
    drupe_core_cell_release(&cell);
    assert_int_equal(drupe_core_cell_number(&cell), 0);
    assert_int_equal(drupe_core_cell_here(), 0);
    assert_int_equal(drupe_core_site(), 0);
    drupe_trace_place(3, 4, text, sizeof text);
    assert_string_equal(text, "");
    assert_false(drupe_core_failed(&failure));
    assert_false(drupe_core_prints());
    drupe_core_printing(&cell);
    assert_null(drupe_core_building(&source, "host:cpu:0"));
    drupe_core_built(&cell, true);
    assert_false(drupe_core_pause(NULL, 5, &status));
    drupe_core_note("unheard");
    assert_int_equal(released + printing + built, 0);
}

static void functions_that_are_not_there_are_skipped(void **state)
{
    (void)state;
    expect_silence(NULL);
    expect_silence(&empty);
    /* Some functions are of use only with another one. */
    drupe_observer half = {.printing = on_printing, .cell_share = cell_share, .building = building};
    drupe_library_observe(&half);
    assert_true(drupe_core_prints());
    assert_null(drupe_core_cell_share(&cell)); /* without failed() */
    assert_null(drupe_core_building(&(drupe_source){.language = DRUPE_LANG_C}, "host:cpu:0"));
    half.cell_share = NULL;
    assert_false(drupe_core_prints());
    half.failed = failed;
    assert_null(drupe_core_cell_share(&cell));
}

static void long_lines_are_cut(void **state)
{
    (void)state;
    char line[4000];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    drupe_library_observe(&full);
    drupe_core_note("%s", line);
    assert_in_range(strlen(logged), 1000, 1400);
}

/* --- Objects -------------------------------------------------------------------------------------------- */

static void references_are_counted(void **state)
{
    (void)state;
    _Atomic(size_t) live = 0;
    drupe_object *object = drupe_object_new(&live, NULL, sizeof *object, 40);
    assert_non_null(object);
    assert_int_equal(atomic_load(&live), 1);
    const unsigned char *native = drupe_native(object);
    for (size_t i = 0; i < 40; i++) assert_int_equal(native[i], 0);
    assert_int_equal((uintptr_t)native % 16, 0);
    drupe_object_retain(object);
    drupe_object_retain_unshared(object);
    assert_true(drupe_object_try_retain(object));
    for (int i = 0; i < 3; i++) assert_false(drupe_object_release(object));
    assert_true(drupe_object_release(object));
    assert_false(drupe_object_try_retain(object)); /* the last one is gone */
    drupe_object_free(&live, object);
    assert_int_equal(atomic_load(&live), 0);
}

static void without_memory_there_is_no_object(void **state)
{
    (void)state;
    _Atomic(size_t) live = 0;
    wrap_plan(WRAP_MALLOC, 1);
    assert_null(drupe_object_new(&live, NULL, sizeof(drupe_object), 40));
    wrap_plan(WRAP_NOTHING, 0);
    assert_int_equal(drupe_error_last()->status, DRUPE_E_NO_MEMORY);
    assert_non_null(strstr(drupe_error_last()->text, "No host memory for an object of"));
    assert_int_equal(atomic_load(&live), 0);
}

/* The child of a process with an open library cannot use it, and its releases do nothing. */
static void a_forked_child_is_refused(void **state)
{
    (void)state;
    drupe_device *device, *again;
    int status = 0;
    test_script_reset();
    assert_int_equal(drupe_device_select("host", &device), DRUPE_OK);
    const pid_t child = fork();
    if (child == 0) {
        drupe_device_release(device);
        const bool refused = drupe_device_select("host", &again) == DRUPE_E_UNAVAILABLE &&
                             strstr(drupe_error_last()->text, "'spawn'");
        leave(refused && drupe_core_check() == DRUPE_E_UNAVAILABLE ? 0 : 1);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    assert_int_equal(drupe_core_check(), DRUPE_OK);
    drupe_device_release(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(everything_is_asked, teardown),
        cmocka_unit_test_teardown(nothing_is_not_given_back, teardown),
        cmocka_unit_test_teardown(functions_that_are_not_there_are_skipped, teardown),
        cmocka_unit_test_teardown(long_lines_are_cut, teardown),
        cmocka_unit_test_teardown(references_are_counted, teardown),
        cmocka_unit_test_teardown(without_memory_there_is_no_object, teardown),
        cmocka_unit_test_teardown(a_forked_child_is_refused, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
