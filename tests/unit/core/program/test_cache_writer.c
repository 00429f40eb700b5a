/* The thread that writes built programs to the disk cache: what waits, what is dropped, what fails. Its
 * driver stops where a test says so, and the clock that measures rest may be the test's own. */
#include "base/service.h"
#include "cache_fixture.h"
#include "core/program/program_room.h"
#include "walk/wrap.h"
#include <pthread.h>
#include <sys/resource.h>

/* --- The driver's thread and the clock ------------------------------------------------------------------ */

enum { AT_BINARY, AT_CLOSE }; /* where the driver may be stopped */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed[2];
    int entered[2];
} doors = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pass(int door)
{
    pthread_mutex_lock(&doors.lock);
    doors.entered[door]++;
    pthread_cond_broadcast(&doors.changed);
    while (doors.closed[door]) pthread_cond_wait(&doors.changed, &doors.lock);
    pthread_mutex_unlock(&doors.lock);
}

static void pass_binary(void)
{
    pass(AT_BINARY);
}

static void pass_close(void)
{
    pass(AT_CLOSE);
}

static void await_entered(int door)
{
    pthread_mutex_lock(&doors.lock);
    while (doors.entered[door] == 0) pthread_cond_wait(&doors.changed, &doors.lock);
    doors.entered[door] = 0;
    pthread_mutex_unlock(&doors.lock);
}

static void set_door(int door, bool closed)
{
    pthread_mutex_lock(&doors.lock);
    doors.closed[door] = closed;
    doors.entered[door] = 0;
    pthread_cond_broadcast(&doors.changed);
    pthread_mutex_unlock(&doors.lock);
}

/* Each look at a clock of the test's own is so much later than the one before; 0: it is the real one. All of
 * its times are over, so that nobody sleeps until one of them. */
static _Atomic(uint64_t) step, elapsed;

uint64_t __real_drupe_now_ns(void);
uint64_t __wrap_drupe_now_ns(void);
uint64_t __wrap_drupe_now_ns(void)
{
    const uint64_t by = step;
    return by ? atomic_fetch_add(&elapsed, by) : __real_drupe_now_ns();
}

static int setup(void **state)
{
    set_door(AT_BINARY, false);
    set_door(AT_CLOSE, false);
    const int result = cache_setup(state);
    test_compiler.asked = pass_binary;
    test_compiler.closed = pass_close;
    return result;
}

static int teardown(void **state)
{
    step = 0;
    return cache_teardown(state);
}

static void build_one(const char *text)
{
    const drupe_source source = text_source(text);
    drupe_program *program;
    OK(build(&source, NULL, &program));
    drupe_program_release(program);
}

/* Build, and have the driver stop where it is asked for the binary. */
static void hold_at_binary(const char *text)
{
    set_door(AT_BINARY, true);
    build_one(text);
    await_entered(AT_BINARY);
}

static void go_on(void)
{
    set_door(AT_BINARY, false);
    OK(drupe_cache_flush(20 * SECOND));
}

/* --- What waits ----------------------------------------------------------------------------------------- */

static void the_oldest_of_too_many_is_dropped(void **state)
{
    (void)state;
    char text[32];
    const uint64_t stored = info().stored;
    test_compiler.build_us = 1100;
    hold_at_binary("first");
    for (int i = 0; i < 66; i++) {
        snprintf(text, sizeof text, "number %d", i);
        build_one(text);
    }
    go_on();
    assert_int_equal(info().stored, stored + 1 + 64);
    assert_true(in_folder("first", DRUPE_LANG_OPENCL_C));
    assert_false(in_folder("number 1", DRUPE_LANG_OPENCL_C));
    assert_true(in_folder("number 2", DRUPE_LANG_OPENCL_C));
    assert_true(in_folder("number 65", DRUPE_LANG_OPENCL_C));
    test_compiler.build_us = 2000;
}

static void too_many_bytes_are_dropped(void **state)
{
    (void)state;
    char key[32];
    hold_at_binary("first");
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "number %d", i);
        drupe_cache_bytes_add(key, strlen(key), "bytes", 5);
    }
    go_on();
    assert_int_equal(info().entries, 1 + 128);
    drupe_cache_bytes_add("one more", 8, "bytes", 5);
    OK(drupe_cache_flush(20 * SECOND));
    assert_int_equal(info().entries, 1 + 129);
}

/* The folder is not looked through for each of them. */
static void small_entries_keep_to_the_limit(void **state)
{
    (void)state;
    char key[32], bytes[2000];
    uint64_t most = 0;
    memset(bytes, 'x', sizeof bytes);
    setenv("DRUPE_CACHE_SIZE", "256K", 1);
    start_again();
    for (int i = 0; i < 400; i++) {
        snprintf(key, sizeof key, "number %d", i);
        drupe_cache_bytes_add(key, strlen(key), bytes, sizeof bytes);
        OK(drupe_cache_flush(20 * SECOND));
        const uint64_t now = info().bytes;
        if (now > most) most = now;
        assert_true(now <= 256 << 10);
    }
    assert_true(most > 192 << 10);
}

static void who_waits_for_the_writer_has_a_deadline(void **state)
{
    (void)state;
    hold_at_binary("first");
    assert_int_equal(drupe_cache_flush(1000), DRUPE_E_TIMEOUT); /* it is at work */
    build_one("second");
    assert_int_equal(drupe_cache_flush(1000), DRUPE_E_TIMEOUT); /* another one waits, too */
    assert_string_equal(drupe_error_last()->text, "Programs still wait to be written to the cache.");
    go_on();
    assert_int_equal(info().entries, 2);
}

static void without_a_thread_programs_are_built_all_the_same(void **state)
{
    (void)state;
    start_again();
    wrap_plan(WRAP_THREAD, 1);
    build_one("first");
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    OK(drupe_cache_flush(SECOND));
    assert_int_equal(info().entries, 0);
    assert_false(cached("first"));
    assert_true(cached("first"));
}

/* --- What costs something, and what does not ------------------------------------------------------------ */

#define FORTY "k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k,k"

/* Of drivers that compile for it each kernel takes its time. */
static void programs_of_many_kernels_are_for_who_waits_only(void **state)
{
    (void)state;
    static char names[] = FORTY ",k";
    for (char *at = names; *at; at++)
        if (*at == ',') *at = ';';
    test_compiler.type = DRUPE_DEVICE_CPU;
    start_again();
    step = 400000000; /* so that rest comes soon */
    const uint64_t stored = info().stored;
    for (size_t cut = 0; cut <= 2; cut += 2) {
        names[sizeof names - 1 - cut] = '\0';
        test_compiler.names = names;
        set_door(AT_CLOSE, false);
        build_one(cut ? "forty kernels" : "and one more");
        await_entered(AT_CLOSE); /* the writer has dropped it */
        assert_int_equal(info().stored, stored + (cut ? 1 : 0));
    }
    assert_false(in_folder("and one more", DRUPE_LANG_OPENCL_C));
    assert_true(in_folder("forty kernels", DRUPE_LANG_OPENCL_C));
    step = 0;
    names[sizeof names - 3] = ';';
    build_one("and one more");
    OK(drupe_cache_flush(20 * SECOND));
    assert_true(in_folder("and one more", DRUPE_LANG_OPENCL_C));
}

static void builds_of_no_time_are_not_kept(void **state)
{
    (void)state;
    step = 1;
    assert_false(cached("first"));
    assert_int_equal(info().entries, 0);
    step = 2000000;
    assert_false(cached("first"));
    assert_true(cached("first"));
}

static void builds_without_messages_are_kept(void **state)
{
    (void)state;
    const drupe_source source = text_source("first");
    const int builds = test_compiler.builds;
    test_compiler.quiet = true;
    for (int i = 0; i < 2; i++) {
        drupe_program *program;
        char *log;
        OK(build(&source, &log, &program));
        assert_null(log);
        drupe_program_release(program);
        OK(drupe_cache_flush(20 * SECOND));
    }
    assert_int_equal(test_compiler.builds, builds + 1);
}

/* --- What fails ----------------------------------------------------------------------------------------- */

static bool oversize;

drupe_status __real_drupe_record_pack(const drupe_record *record, void **bytes, size_t *size);
drupe_status __wrap_drupe_record_pack(const drupe_record *record, void **bytes, size_t *size);
drupe_status __wrap_drupe_record_pack(const drupe_record *record, void **bytes, size_t *size)
{
    DRUPE_TRY(__real_drupe_record_pack(record, bytes, size));
    if (oversize) *size = ((size_t)1 << 28) + 1; /* as if: nobody may look at what is behind */
    return DRUPE_OK;
}

static void expect_not_stored(const char *text, const char *reason)
{
    const uint64_t stored = info().stored;
    assert_false(cached(text));
    assert_int_equal(info().stored, stored);
    if (!strstr(info().reason, reason)) fail_msg("'%s' is not in: %s", reason, info().reason);
}

static void what_cannot_be_stored_is_told(void **state)
{
    (void)state;
    setenv("DRUPE_CACHE_SIZE", "1G", 1);
    start_again();
    test_compiler.names = "k";
    test_compiler.kernel = DRUPE_E_INTERNAL;
    expect_not_stored("first", "The test compiler says no.");
    test_compiler.kernel = DRUPE_OK;
    test_compiler.binary = DRUPE_E_UNAVAILABLE;
    expect_not_stored("first", "The test compiler says no.");
    test_compiler.binary = DRUPE_OK;
    oversize = true;
    expect_not_stored("first", "An entry of 268435457 bytes is larger than the limit.");
    oversize = false;
    assert_false(cached("first"));
    assert_string_equal(info().reason, "");
    assert_true(cached("first"));
}

/* The driver of a lost device is not asked. */
static void programs_of_lost_devices_are_not_stored(void **state)
{
    (void)state;
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "The device went away"};
    const uint64_t stored = info().stored;
    drupe_device *device;
    hold_at_binary("first");
    build_one("second");
    OK(drupe_device_select("host", &device));
    drupe_core_device_lost(device, &error, false);
    drupe_device_release(device);
    const int binaries = test_compiler.binaries;
    go_on();
    assert_int_equal(test_compiler.binaries, binaries);
    assert_int_equal(info().stored, stored + 1);
    assert_non_null(strstr(info().reason, "is lost: The device went away"));
}

/* A process may have run out of files just then. */
static void without_files_nothing_is_stored(void **state)
{
    (void)state;
    struct rlimit files, none;
    const uint64_t stored = info().stored;
    hold_at_binary("first");
    build_one("second");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = files;
    none.rlim_cur = 0;
    const int binaries = test_compiler.binaries;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    go_on();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(test_compiler.binaries, binaries); /* the second was not asked for */
    assert_int_equal(info().stored, stored);
    assert_false(cached("second"));
    assert_true(cached("second"));
}

/* --- The end -------------------------------------------------------------------------------------------- */

static int timeouts, opened_then = -1;

drupe_status __real_drupe_service_end(drupe_service *service, uint64_t deadline);
drupe_status __wrap_drupe_service_end(drupe_service *service, uint64_t deadline);
drupe_status __wrap_drupe_service_end(drupe_service *service, uint64_t deadline)
{
    const drupe_status status = __real_drupe_service_end(service, deadline);
    if (status != DRUPE_E_TIMEOUT) return status;
    timeouts++;
    if (opened_then >= 0) set_door(opened_then, false);
    return status;
}

static void the_end_waits_for_a_driver_at_work(void **state)
{
    (void)state;
    const uint64_t stored = info().stored;
    hold_at_binary("first");
    timeouts = 0;
    opened_then = AT_BINARY;
    start_again();
    assert_true(timeouts > 0);
    assert_int_equal(info().stored, stored + 1);
    /* Also for one that drops a program that it was asked for. */
    set_door(AT_CLOSE, true);
    drupe_source source = text_source("second");
    drupe_program *program;
    hold_at_binary("second");
    set_door(AT_BINARY, false);
    await_entered(AT_CLOSE);
    timeouts = 0;
    opened_then = AT_CLOSE;
    start_again();
    assert_true(timeouts > 0);
    opened_then = -1;
    OK(build(&source, NULL, &program));
    drupe_program_release(program);
    assert_int_equal(info().entries, 2);
}

static void leave_a_silent_driver(void)
{
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "The device went away"};
    drupe_device *device;
    hold_at_binary("first");
    OK(drupe_device_select("host", &device));
    drupe_core_device_lost(device, &error, true);
    drupe_device_release(device);
    timeouts = 0;
    const size_t left = drupe_library_close(SECOND);
    if (left == 0 || timeouts != 1) _Exit(3); /* what the driver works with is still there */
}

/* A driver that may never answer holds nobody up. In a process of its own, whose driver stays where it is. */
static void the_end_leaves_a_driver_that_is_silent(void **state)
{
    (void)state;
    in_child(leave_a_silent_driver);
}

int main(void)
{
    if (!cache_make()) return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_oldest_of_too_many_is_dropped),
        TEST(too_many_bytes_are_dropped),
        TEST(small_entries_keep_to_the_limit),
        TEST(who_waits_for_the_writer_has_a_deadline),
        TEST(without_a_thread_programs_are_built_all_the_same),
        TEST(programs_of_many_kernels_are_for_who_waits_only),
        TEST(builds_of_no_time_are_not_kept),
        TEST(builds_without_messages_are_kept),
        TEST(what_cannot_be_stored_is_told),
        TEST(programs_of_lost_devices_are_not_stored),
        TEST(without_files_nothing_is_stored),
        TEST(the_end_waits_for_a_driver_at_work),
        TEST(the_end_leaves_a_driver_that_is_silent),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return cache_remove() ? failed : 1;
}
