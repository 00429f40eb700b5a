/* What the environment says of devices: DRUPE_DEVICES, ONEAPI_DEVICE_SELECTOR, amounts of memory, settings.
 */
#include "core/device/device_room.h"
#include "drupe/memory.h"
#include "test_script.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GIB (UINT64_C(1) << 30)

static int setup(void **state)
{
    (void)state;
    test_script_reset();
    test_script.backends[1].count = 3;
    test_script.backends[1].devices[0] =
        (struct test_device){.type = DRUPE_DEVICE_CPU, .units = 4, .memory = GIB};
    test_script.backends[1].devices[1] =
        (struct test_device){.type = DRUPE_DEVICE_GPU, .units = 1, .memory = GIB};
    test_script.backends[1].devices[2] =
        (struct test_device){.type = DRUPE_DEVICE_ACCELERATOR, .units = 1, .memory = GIB};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    static const char *const names[] = {"DRUPE_DEVICES", "ONEAPI_DEVICE_SELECTOR", "DRUPE_MEMORY_LIMIT",
                                        "DRUPE_MEMORY_KEEP"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(names); i++) unsetenv(names[i]);
    return drupe_library_close(0) == 0 ? 0 : -1;
}

/* The filters of all devices, with spaces between them. */
static const char *listed(char *text, size_t size)
{
    drupe_device *devices[32];
    size_t count;
    assert_int_equal(drupe_device_list(NULL, devices, 32, &count), DRUPE_OK);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        strncat(text, i ? " " : "", size - strlen(text) - 1);
        strncat(text, drupe_device_filter(devices[i]), size - strlen(text) - 1);
        drupe_device_release(devices[i]);
    }
    return text;
}

static void expect_devices(const char *variable, const char *value, const char *expected)
{
    char text[512];
    assert_int_equal(drupe_library_close(0), 0);
    setenv(variable, value, 1);
    if (strcmp(listed(text, sizeof text), expected) != 0) fail_msg("%s=%s leaves %s", variable, value, text);
    unsetenv(variable);
}

#define ALL "host:cpu:0 opencl:cpu:0 opencl:gpu:0 opencl:accelerator:0"

static void selectors_leave(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ALL},
        {"  ", ALL},
        {"*:*", ALL},
        {"host:*", "host:cpu:0"},
        {"opencl:gpu", "opencl:gpu:0"},
        {"opencl:gpu,cpu", "opencl:cpu:0 opencl:gpu:0"},
        {"OpenCL:GPU ; host:cpu", "host:cpu:0 opencl:gpu:0"},
        {"opencl:fpga", "opencl:accelerator:0"},
        {"opencl:1,2", "opencl:gpu:0 opencl:accelerator:0"},
        {"opencl:7", ""},
        {"*:gpu", "opencl:gpu:0"},
        {"!opencl:cpu", "host:cpu:0 opencl:gpu:0 opencl:accelerator:0"},
        {"opencl:*;!opencl:gpu", "opencl:cpu:0 opencl:accelerator:0"},
        {"!*:cpu;!opencl:gpu", "opencl:accelerator:0"},
        {"cuda:*", ""},
        {"native_cpu:*;host:0", "host:cpu:0"},
        /* Parts are numbered anew, and one that is named twice is there once. */
        {"opencl:0.1", "opencl:cpu:0"},
        {"opencl:0.*", "opencl:cpu:0 opencl:cpu:1 opencl:cpu:2 opencl:cpu:3"},
        {"opencl:0.1,0.1,0", "opencl:cpu:0 opencl:cpu:1"},
        {"opencl:0.9", ""},
        {"opencl:1.0", ""},   /* it cannot be divided */
        {"opencl:0.0.0", ""}, /* nor can a part of one unit */
        {"opencl:*.0", "opencl:cpu:0"},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++)
        expect_devices("DRUPE_DEVICES", cases[i][0], cases[i][1]);
}

/* They mean the same devices whatever else is there. */
static void selectors_of_uuids(void **state)
{
    (void)state;
    test_script.backends[1].devices[0].uuid = "0123abcd-0000-4000-8000-00000000000f";
    test_script.backends[1].devices[2].uuid = "0123abcd-0000-4000-8000-00000000000e";
    expect_devices("DRUPE_DEVICES", "opencl:0123ABCD-0000-4000-8000-00000000000e", "opencl:accelerator:0");
    expect_devices("DRUPE_DEVICES", "*:0123abcd-0000-4000-8000-00000000000f.1,gpu",
                   "opencl:cpu:0 opencl:gpu:0");
    expect_devices("DRUPE_DEVICES", "!opencl:0123abcd-0000-4000-8000-00000000000f",
                   "host:cpu:0 opencl:gpu:0 opencl:accelerator:0");
    expect_devices("DRUPE_DEVICES", "opencl:0123abcd-0000-4000-8000-000000000000", "");
}

static void selectors_leave_parts_of_parts(void **state)
{
    (void)state;
    size_t count;
    struct test_device *whole = &test_script.backends[1].devices[0];
    *whole = (struct test_device){
        .type = DRUPE_DEVICE_CPU, .units = 8, .kinds = DRUPE_FLAG(DRUPE_SPLIT_AFFINITY), .numa = 2};
    expect_devices("DRUPE_DEVICES", "opencl:0.0.*", "opencl:cpu:0 opencl:cpu:1");
    expect_devices("DRUPE_DEVICES", "opencl:0.*.*", "opencl:cpu:0 opencl:cpu:1 opencl:cpu:2 opencl:cpu:3");
    whole->numa = 0; /* there are no domains */
    expect_devices("DRUPE_DEVICES", "opencl:0.*,0.1", "");
    whole->kinds = 0;
    whole->units = 40;
    assert_int_equal(drupe_library_close(0), 0);
    setenv("DRUPE_DEVICES", "opencl:0.*", 1);
    assert_int_equal(drupe_device_list(NULL, NULL, 0, &count), DRUPE_OK);
    assert_int_equal(count, 40);
}

/* What the driver does not count has no parts; what it does not divide is told. */
static void parts_that_cannot_be_made(void **state)
{
    (void)state;
    size_t count;
    test_script.backends[1].devices[0].kinds = DRUPE_FLAG(DRUPE_SPLIT_AFFINITY);
    test_script.backends[1].devices[0].domains = DRUPE_FLAG(DRUPE_DOMAIN_NUMA);
    expect_devices("DRUPE_DEVICES", "opencl:0.*", "");
    test_script.backends[1].devices[0].kinds = 0;
    test_script.split = DRUPE_E_INTERNAL;
    expect_devices("DRUPE_DEVICES", "host:*;opencl:0.1", "host:cpu:0");
    setenv("DRUPE_DEVICES", "opencl:0.*,1", 1);
    drupe_device *device;
    assert_int_equal(drupe_device_select(NULL, &device), DRUPE_E_NOT_FOUND);
    assert_non_null(strstr(drupe_error_last()->text, "There is no device. The script says no"));
    assert_int_equal(drupe_device_list(NULL, NULL, 0, &count), DRUPE_OK);
    assert_int_equal(count, 0);
}

static void the_foreign_selector_leaves_host(void **state)
{
    (void)state;
    expect_devices("ONEAPI_DEVICE_SELECTOR", "opencl:gpu", "host:cpu:0 opencl:gpu:0");
    expect_devices("ONEAPI_DEVICE_SELECTOR", "!*:*", "host:cpu:0");
    setenv("ONEAPI_DEVICE_SELECTOR", "opencl:gpu", 1);
    expect_devices("DRUPE_DEVICES", "opencl:cpu", "opencl:cpu:0");
}

static void what_is_not_chosen_is_not_opened(void **state)
{
    (void)state;
    expect_devices("DRUPE_DEVICES", "host:*", "host:cpu:0");
    assert_int_equal(test_script.backends[1].loads, 0);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"gpu", "'gpu' has no ':'"},
        {"vulkan:gpu", "'vulkan' is not a backend"},
        {"opencl:tpu", "'tpu' is not a device"},
        {"opencl:cpu,,gpu", "has a place without a device"},
        {"opencl:", "has a place without a device"},
        {"opencl:gpu.0", "'gpu.0' is not a device"},
        {"opencl:0.x", "'0.x' is not a device"},
        {"opencl:0..1", "'0..1' is not a device"},
        {"opencl:1234567", "'1234567' is not a device"},
        {"opencl:0123abcd-0000-4000-8000-00000000000", "is not a device"},
        {"opencl:0123abcd-0000-4000-8000_00000000000f", "is not a device"},
        {"!opencl:0.1", "'0.1' takes away parts"},
        {"!opencl:cpu;host:*", "'host:*' follows a term with '!'"},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        size_t count;
        setenv("DRUPE_DEVICES", cases[i][0], 1);
        assert_int_equal(drupe_device_list(NULL, NULL, 0, &count), DRUPE_E_INVALID);
        if (!strstr(drupe_error_last()->text, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], drupe_error_last()->text);
    }
}

/* The variable may change after it was checked: what stands before a mistake holds. */
static void a_selector_that_became_wrong(void **state)
{
    (void)state;
    assert_int_equal(drupe_slot_count(), 2);
    setenv("DRUPE_DEVICES", "opencl:gpu;((", 1);
    assert_false(drupe_selector_possible(0));
    assert_true(drupe_selector_possible(1));
    setenv("DRUPE_DEVICES", "((;opencl:gpu", 1);
    assert_true(drupe_selector_possible(0));
    assert_int_equal(drupe_slot_load(drupe_slot_at(0)), DRUPE_E_INVALID);
    assert_non_null(strstr(drupe_error_last()->text, "'((' has no ':'"));
}

/* --- Amounts of memory ---------------------------------------------------------------------------------- */

static uint64_t amount_for(const char *filter, const char *value, uint64_t fallback)
{
    drupe_device *device;
    setenv("DRUPE_MEMORY_LIMIT", value, 1);
    assert_int_equal(drupe_device_select(filter, &device), DRUPE_OK);
    uint64_t bytes = drupe_amount_of("DRUPE_MEMORY_LIMIT", device, GIB, fallback);
    drupe_device_release(device);
    return bytes;
}

static void amounts_are_read(void **state)
{
    (void)state;
    assert_int_equal(amount_for("host", "4096", 7), 4096);
    assert_int_equal(amount_for("host", "2K", 7), 2048);
    assert_int_equal(amount_for("host", "3MiB", 7), 3 << 20);
    assert_int_equal(amount_for("host", "1.5gb", 7), GIB + GIB / 2);
    assert_true(amount_for("host", "1T", 7) == GIB << 10);
    assert_int_equal(amount_for("host", "50%", 7), GIB / 2);
    assert_true(amount_for("host", "99999999999999999999", 7) == UINT64_MAX);
    /* The last part that holds for a device; others keep what they had. */
    assert_int_equal(amount_for("opencl:gpu", "4K, opencl=8K,gpu=16K", 7), 16 << 10);
    assert_int_equal(amount_for("opencl:cpu", "4K, opencl=8K,gpu=16K", 7), 8 << 10);
    assert_int_equal(amount_for("host", "4K, opencl=8K,gpu=16K", 7), 4 << 10);
    assert_int_equal(amount_for("host", "opencl=8K", 7), 7);
    assert_int_equal(amount_for("opencl:gpu", "opencl:gpu:0=8K", 7), 8 << 10);
    assert_int_equal(amount_for("opencl:cpu", "opencl:gpu:0=8K", 7), 7);
    assert_int_equal(amount_for("opencl:cpu", "cuda=8K", 7), 7);
    assert_int_equal(amount_for("opencl:gpu", "opencl:gpu:1=8K", 7), 7);
    assert_int_equal(amount_for("opencl:gpu:0", "opencl:gpu:1=8K,opencl:gpu:0=4K,opencl:cpu:0=2K", 7), 4096);
}

/* Devices are not looked for with it any more, but are there. */
static void amounts_that_became_wrong_say_nothing(void **state)
{
    (void)state;
    drupe_device *device;
    assert_int_equal(drupe_device_select("opencl:gpu", &device), DRUPE_OK);
    assert_int_equal(drupe_error_set(DRUPE_E_BUSY, "An error of before."), DRUPE_E_BUSY);
    static const char *const values[] = {"vulkan=4K", "opencl=much", "gpu=4X", "host:gpu.1=4K"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(values); i++) {
        setenv("DRUPE_MEMORY_LIMIT", values[i], 1);
        assert_int_equal(drupe_amount_of("DRUPE_MEMORY_LIMIT", device, GIB, 7), 7);
    }
    assert_string_equal(drupe_error_last()->text, "An error of before.");
    setenv("DRUPE_MEMORY_LIMIT", "gpu=4K,vulkan=8K,gpu=much", 1);
    assert_int_equal(drupe_amount_of("DRUPE_MEMORY_LIMIT", device, GIB, 7), 4096);
    drupe_device_release(device);
}

static void wrong_amounts_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"much", "'much' is no amount"},      {"4X", "'4X' is no amount"},
        {"4Gibs", "'4Gibs' is no amount"},    {"50%%", "'50%%' is no amount"},
        {"host=", "'' is no amount"},         {"-4G", "'-4G' is no amount"},
        {"=4G", "'' names no devices"},       {"vulkan=4G", "'vulkan' names no devices"},
        {"opencl:0=4G", "names no devices"},  {"opencl:cpu:0.1=4G", "names no devices"},
        {"cpu,gpu=4G", "'cpu' is no amount"}, {"gpu:0=4G", "'gpu:0' names no devices"},
        {"0=4G", "'0' names no devices"},
    };
    static const char *const variables[] = {"DRUPE_MEMORY_LIMIT", "DRUPE_MEMORY_KEEP"};
    for (size_t v = 0; v < DRUPE_COUNT_OF(variables); v++) {
        for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
            setenv(variables[v], cases[i][0], 1);
            assert_int_equal(drupe_limit_check(), DRUPE_E_INVALID);
            if (!strstr(drupe_error_last()->text, cases[i][1]) ||
                !strstr(drupe_error_last()->text, variables[v]))
                fail_msg("%s: %s", cases[i][0], drupe_error_last()->text);
        }
        size_t count; /* no device is used with it */
        assert_int_equal(drupe_device_list(NULL, NULL, 0, &count), DRUPE_E_INVALID);
        unsetenv(variables[v]);
        assert_int_equal(drupe_limit_check(), DRUPE_OK);
    }
}

/* --- Settings ------------------------------------------------------------------------------------------- */

static void settings_are_understood_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *good[4], *bad[4];
    } cases[] = {
        {"DRUPE_BLAS", {"none", "/opt/libblas", "libopenblas.so.0"}, {"openblas"}},
        {"DRUPE_CACHE", {"0", "1", "on", "OFF"}, {"yes", "2"}},
        {"DRUPE_CACHE_SIZE",
         {"256M", "2g", "1.5G", "18446744073709551615"},
         {"50%", "2X", "36893488147419103232", "0x10"}},
        {"DRUPE_FORM", {"cpu", "gpu"}, {"tpu"}},
        {"DRUPE_HOST_SHUFFLE", {"12"}, {"x", "123456789012345678901"}},
        {"DRUPE_HOST_THREADS", {"1", "1024"}, {"0", "1025", "two"}},
        {"DRUPE_HOST_VARIANT", {"baseline", "avx2", "avx512"}, {"sse"}},
        {"DRUPE_MEMORY_WIPE",
         {"alloc", "free", "alloc , free", "0"},
         {"wipe", "alloc,", "alloc free", "wiped"}},
        {"DRUPE_PINNED", {"0", "1"}, {"2"}},
        {"DRUPE_HOST_COPIES", {"0", "1"}, {"no"}},
        {"DRUPE_PROFILE", {"0", "1"}, {"on"}},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        for (size_t k = 0; k < 4 && cases[i].good[k]; k++) {
            setenv(cases[i].name, cases[i].good[k], 1);
            drupe_settings_forget();
            if (drupe_settings_check() != DRUPE_OK) fail_msg("%s", drupe_error_last()->text);
        }
        for (size_t k = 0; k < 4 && cases[i].bad[k]; k++) {
            setenv(cases[i].name, cases[i].bad[k], 1);
            drupe_settings_forget();
            assert_int_equal(drupe_settings_check(), DRUPE_E_INVALID);
            assert_non_null(strstr(drupe_error_last()->text, cases[i].name));
            assert_non_null(strstr(drupe_error_last()->text, cases[i].bad[k]));
        }
        setenv(cases[i].name, "", 1); /* as if unset */
        drupe_settings_forget();
        assert_int_equal(drupe_settings_check(), DRUPE_OK);
        unsetenv(cases[i].name);
    }
}

/* --- Backends and devices that do not open -------------------------------------------------------------- */

static void a_device_that_does_not_open_is_left_out(void **state)
{
    (void)state;
    char text[512];
    test_script.backends[1].devices[0].open = DRUPE_E_INTERNAL;
    assert_string_equal(listed(text, sizeof text), "host:cpu:0 opencl:gpu:0 opencl:accelerator:0");
}

static void without_memory_a_backend_is_tried_again(void **state)
{
    (void)state;
    char text[512];
    test_script.backends[1].devices[1].open = DRUPE_E_NO_MEMORY;
    assert_string_equal(listed(text, sizeof text), "host:cpu:0");
    test_script.backends[1].devices[1].open = DRUPE_OK;
    assert_string_equal(listed(text, sizeof text), ALL);
    assert_int_equal(test_script.backends[1].loads, 2);
}

static void a_library_that_is_missing_is_asked_once(void **state)
{
    (void)state;
    char text[512];
    drupe_device *device;
    test_script.backends[1].load = DRUPE_E_UNAVAILABLE;
    for (int i = 0; i < 3; i++) assert_string_equal(listed(text, sizeof text), "host:cpu:0");
    assert_int_equal(test_script.backends[1].loads, 1);
    assert_int_equal(drupe_device_select("opencl", &device), DRUPE_E_NOT_FOUND);
    assert_non_null(strstr(drupe_error_last()->text, "The script says no"));
    assert_int_equal(drupe_device_select("cuda", &device), DRUPE_E_NOT_FOUND);
    assert_non_null(strstr(drupe_error_last()->text, "not part of this build"));
    assert_int_equal(drupe_library_close(0), 0);
    test_script.backends[1].load = DRUPE_OK; /* after a close it is asked anew */
    assert_string_equal(listed(text, sizeof text), ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(selectors_leave, setup, teardown),
        cmocka_unit_test_setup_teardown(selectors_leave_parts_of_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_that_cannot_be_made, setup, teardown),
        cmocka_unit_test_setup_teardown(the_foreign_selector_leaves_host, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_chosen_is_not_opened, setup, teardown),
        cmocka_unit_test_setup_teardown(selectors_of_uuids, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_selector_that_became_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(amounts_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(amounts_that_became_wrong_say_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_amounts_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(settings_are_understood_or_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_device_that_does_not_open_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(without_memory_a_backend_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_library_that_is_missing_is_asked_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
