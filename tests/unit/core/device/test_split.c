/* Dividing devices: what core refuses before a backend is asked, and how the parts are called. */
#include "core/device/device_room.h"
#include "test_script.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static drupe_device *device;

static int setup(void **state)
{
    (void)state;
    test_script_reset();
    test_script.backends[0].devices[0].numa = 2;
    return drupe_device_select("host", &device) == DRUPE_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    drupe_device_release(device);
    return drupe_library_close(0) == 0 ? 0 : -1;
}

static void expect_refusal(const drupe_partition *how, size_t capacity, drupe_status status,
                           const char *words)
{
    drupe_device *subs[8];
    size_t count = 77;
    assert_int_equal(drupe_device_split(device, how, subs, capacity, &count), status);
    assert_int_equal(count, 0);
    if (!strstr(drupe_error_last()->text, words)) fail_msg("%s", drupe_error_last()->text);
}

static void mistakes(void **state)
{
    (void)state;
    const uint32_t three = 3, none = 0, many = 9, list[] = {4, 5}, two[] = {2, 2};
    drupe_partition how = {.kind = DRUPE_SPLIT_EQUALLY, .count = 1, .units = &none};
    expect_refusal(&how, 0, DRUPE_E_INVALID, "at least 1 unit");
    how.units = &many;
    expect_refusal(&how, 0, DRUPE_E_OUT_OF_RANGE, "host:cpu:0 has 8");
    how = (drupe_partition){.kind = DRUPE_SPLIT_COUNTS, .count = 2, .units = list};
    expect_refusal(&how, 0, DRUPE_E_OUT_OF_RANGE, "Cannot give 9 compute units");
    how = (drupe_partition){.kind = DRUPE_SPLIT_EQUALLY, .count = 2, .units = two};
    expect_refusal(&how, 0, DRUPE_E_INVALID, "one number of units");
    how = (drupe_partition){.kind = DRUPE_SPLIT_COUNTS, .count = 0, .units = two};
    expect_refusal(&how, 0, DRUPE_E_INVALID, "one number of units");
    how = (drupe_partition){.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_domain_COUNT};
    expect_refusal(&how, 0, DRUPE_E_INVALID, "no affinity domain number");
    how.domain = DRUPE_DOMAIN_L2;
    expect_refusal(&how, 0, DRUPE_E_UNSUPPORTED, "It can be divided along: numa.");
    how = (drupe_partition){.kind = DRUPE_SPLIT_EQUALLY, .count = 1};
    expect_refusal(&how, 0, DRUPE_E_INVALID, "one number of units");
    how = (drupe_partition){.kind = (drupe_partition_kind)77, .count = 1, .units = two};
    expect_refusal(&how, 0, DRUPE_E_INVALID, "one number of units");
    how = (drupe_partition){.kind = DRUPE_SPLIT_EQUALLY, .count = 1, .units = &three};
    expect_refusal(&how, 1, DRUPE_E_INVALID, "room for 1 sub-devices, 2 would be made");
}

static void what_the_driver_cannot(void **state)
{
    (void)state;
    const uint32_t two[] = {2, 2};
    drupe_partition how = {.kind = DRUPE_SPLIT_COUNTS, .count = 2, .units = two};
    drupe_device *subs[2];
    size_t count;
    assert_int_equal(drupe_device_split(device, &how, subs, 2, &count), DRUPE_OK);
    assert_int_equal(count, 2);
    assert_string_equal(drupe_device_filter(subs[1]), "host:cpu:0{2+2}.1");
    drupe_device_release(subs[0]);
    drupe_device *whole = device;
    device = subs[1];
    how = (drupe_partition){.kind = DRUPE_SPLIT_EQUALLY, .count = 1, .units = two};
    assert_int_equal(drupe_device_split(device, &how, NULL, 0, &count), DRUPE_OK);
    assert_int_equal(count, 1);
    drupe_device_release(device);
    device = whole;
}

/* The device as the script says now. */
static void opened_anew(struct test_device as)
{
    drupe_device_release(device);
    device = NULL;
    assert_int_equal(drupe_library_close(0), 0);
    test_script.backends[0].devices[0] = as;
    assert_int_equal(drupe_device_select("host", &device), DRUPE_OK);
}

static void domains_of_the_device(void **state)
{
    (void)state;
    drupe_partition next = {.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_DOMAIN_NEXT};
    drupe_partition l2 = {.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_DOMAIN_L2};
    struct test_device as = {.units = 8, .numa = 2, .kinds = DRUPE_FLAG(DRUPE_SPLIT_AFFINITY)};
    drupe_device *found;
    opened_anew((struct test_device){.units = 8});
    expect_refusal(&next, 0, DRUPE_E_UNSUPPORTED, "along 'next_partitionable'");
    expect_refusal(&next, 0, DRUPE_E_UNSUPPORTED, "It can be divided along: none.");
    as.domains = DRUPE_FLAG(DRUPE_DOMAIN_NUMA) | DRUPE_FLAG(DRUPE_DOMAIN_L3);
    opened_anew(as);
    expect_refusal(&l2, 0, DRUPE_E_UNSUPPORTED, "It can be divided along: numa, L3_cache.");
    assert_int_equal(drupe_device_select("host:cpu:0{L2_cache}.0", &found), DRUPE_E_NOT_FOUND);
    assert_non_null(strstr(drupe_error_last()->text, "cannot be divided along 'L2_cache'"));
    as.domains = DRUPE_FLAG(DRUPE_DOMAIN_L3);
    opened_anew(as);
    assert_int_equal(drupe_device_select("host:cpu:0{next_partitionable}.1", &found), DRUPE_OK);
    assert_string_equal(drupe_device_filter(found), "host:cpu:0.1"); /* what a step means anyway */
    assert_int_equal(drupe_device_number(found, DRUPE_INFO_PARTITION_TYPE_DOMAIN, 77), DRUPE_DOMAIN_L3);
    drupe_device_release(found);
}

static void what_the_driver_lacks(void **state)
{
    (void)state;
    const uint32_t one = 1, two[] = {2, 2};
    const drupe_backend *real = device->slot->backend;
    drupe_backend table = *real;
    drupe_partition equally = {.kind = DRUPE_SPLIT_EQUALLY, .count = 1, .units = &one};
    drupe_partition counts = {.kind = DRUPE_SPLIT_COUNTS, .count = 2, .units = two};
    drupe_partition along = {.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_DOMAIN_NUMA};
    drupe_device *subs[8];
    size_t count = 77;
    device->slot->backend = &table;
    table.device_parts = NULL;
    expect_refusal(&along, 0, DRUPE_E_UNSUPPORTED, "cannot be divided by affinity domain");
    table.device_split = NULL;
    expect_refusal(&equally, 0, DRUPE_E_UNSUPPORTED,
                   "it has 8 compute units and its driver offers no partition.");
    table = *real;
    table.device_close = NULL; /* nothing is to be done for a device */
    assert_int_equal(drupe_device_split(device, &counts, subs, 8, &count), DRUPE_OK);
    for (size_t i = 0; i < count; i++) drupe_device_release(subs[i]);
    assert_int_equal(atomic_load(&device->slot->live), 0);
    device->slot->backend = real;
    opened_anew((struct test_device){.units = 8, .most_parts = 2});
    expect_refusal(&equally, 8, DRUPE_E_OUT_OF_RANGE, "8 sub-devices are too many: host:cpu:0 allows 2.");
    test_script.split = DRUPE_E_INTERNAL;
    expect_refusal(&counts, 8, DRUPE_E_INTERNAL, "The script says no");
    assert_int_equal(atomic_load(&device->slot->live), 0);
}

/* Without a division that a step means by itself, its name says which. */
static void divided_by_counts_alone(void **state)
{
    (void)state;
    drupe_device *found;
    opened_anew((struct test_device){.units = 8, .kinds = DRUPE_FLAG(DRUPE_SPLIT_COUNTS)});
    assert_int_equal(drupe_device_select("host:cpu:0{000002+000002+000004}.2", &found), DRUPE_OK);
    assert_string_equal(drupe_device_filter(found), "host:cpu:0{2+2+4}.2");
    drupe_device_release(found);
    /* Longer than any domain's name. */
    assert_int_equal(drupe_device_select("host:cpu:0{000002+000002+000002+000002}.3", &found), DRUPE_OK);
    assert_string_equal(drupe_device_filter(found), "host:cpu:0{2+2+2+2}.3");
    drupe_device_release(found);
    assert_int_equal(drupe_device_select("host:cpu:0.1", &found), DRUPE_E_NOT_FOUND);
    assert_non_null(strstr(drupe_error_last()->text, "The device host:cpu:0 cannot be divided."));
    assert_int_equal(drupe_device_select("host:cpu:0{9+1}.0", &found), DRUPE_E_NOT_FOUND);
    assert_non_null(strstr(drupe_error_last()->text, "Cannot give 10 compute units"));
}

static void one_unit_is_indivisible(void **state)
{
    (void)state;
    const uint32_t one = 1;
    drupe_partition how = {.kind = DRUPE_SPLIT_EQUALLY, .count = 1, .units = &one};
    drupe_device *whole = device;
    assert_int_equal(drupe_device_select("host:cpu:0.3", &device), DRUPE_OK);
    assert_ptr_equal(drupe_device_parent(device), whole);
    expect_refusal(&how, 0, DRUPE_E_UNSUPPORTED, "it has 1 compute unit.");
    drupe_device_release(device);
    device = whole;
}

static void kinds_that_it_does_not_know(void **state)
{
    (void)state;
    const uint32_t two[] = {2, 2};
    drupe_partition how = {.kind = DRUPE_SPLIT_COUNTS, .count = 2, .units = two};
    drupe_device *found;
    drupe_device_release(device);
    assert_int_equal(drupe_library_close(0), 0);
    test_script.backends[0].devices[0].kinds = DRUPE_FLAG(DRUPE_SPLIT_AFFINITY);
    assert_int_equal(drupe_device_select("host", &device), DRUPE_OK);
    expect_refusal(&how, 0, DRUPE_E_UNSUPPORTED, "cannot be divided by counts");
    /* A step that says nothing goes along the first domain. */
    assert_int_equal(drupe_device_select("host:cpu:0.1", &found), DRUPE_OK);
    assert_string_equal(drupe_device_filter(found), "host:cpu:0.1");
    drupe_device_release(found);
    assert_int_equal(drupe_device_select("host:cpu:0.2", &found), DRUPE_E_NOT_FOUND);
    assert_non_null(strstr(drupe_error_last()->text, "has 2 such parts"));
}

static void living_parts_are_found_again(void **state)
{
    (void)state;
    static const char *const paths[] = {"host:cpu:0.1",        "host:cpu:0{2}.3",    "host:cpu:0{3+}.0",
                                        "host:cpu:0{1+2+3}.2", "host:cpu:0{numa}.1", "host:cpu:0{4}.1{2}.0"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(paths); i++) {
        drupe_device *first, *second;
        if (drupe_device_select(paths[i], &first) != DRUPE_OK) fail_msg("%s", drupe_error_last()->text);
        assert_string_equal(drupe_device_filter(first), paths[i]);
        assert_int_equal(drupe_device_select(paths[i], &second), DRUPE_OK);
        assert_ptr_equal(first, second);
        drupe_device_release(first);
        drupe_device_release(second);
    }
}

static void malformed_paths(void **state)
{
    (void)state;
    static const char *const paths[] = {"host:cpu:0.",     "host:cpu:0{}.1", "host:cpu:0{2.1",
                                        "host:cpu:0{x}.1", "host:cpu:0{2}",  "host:cpu:0{2+}",
                                        "host:cpu:0.1x"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(paths); i++) {
        drupe_device *found;
        if (drupe_device_select(paths[i], &found) != DRUPE_E_INVALID) fail_msg("%s", paths[i]);
        assert_non_null(strstr(drupe_error_last()->text, "A filter looks like"));
    }
}

/* Also a path that no filter has brought. */
static void malformed_steps(void **state)
{
    (void)state;
    static const char *const paths[][2] = {{"x", "A bad path into a device."},
                                           {".0{2}", "A bad path into a device."},
                                           {"{x}.0", "A bad division."}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(paths); i++) {
        drupe_device *found = device;
        assert_int_equal(drupe_path_walk(device, paths[i][0], strlen(paths[i][0]), &found), DRUPE_E_INVALID);
        assert_string_equal(drupe_error_last()->text, paths[i][1]);
        assert_null(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mistakes, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_driver_cannot, setup, teardown),
        cmocka_unit_test_setup_teardown(domains_of_the_device, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_driver_lacks, setup, teardown),
        cmocka_unit_test_setup_teardown(divided_by_counts_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(one_unit_is_indivisible, setup, teardown),
        cmocka_unit_test_setup_teardown(kinds_that_it_does_not_know, setup, teardown),
        cmocka_unit_test_setup_teardown(living_parts_are_found_again, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_paths, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_steps, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
