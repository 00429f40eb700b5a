/* Devices at their ends: no host memory, one allocation after the other, and a forked child. */
#include "core/device/device_room.h"
#include "core_ends.h"

static void asking(void)
{
    drupe_device *found = NULL, *subs[64] = {NULL}, *list[4] = {NULL};
    char name[64];
    size_t count = 0;
    const uint32_t one = 1;
    const drupe_partition equally = {.kind = DRUPE_SPLIT_EQUALLY, .count = 1, .units = &one};
    drupe_info_entry *entry = &bench.device->info[DRUPE_INFO_NAME]; /* is asked for again */
    free(entry->text);
    entry->text = NULL;
    entry->state = DRUPE_INFO_UNASKED;
    ends_good(drupe_device_info(bench.device, DRUPE_INFO_NAME, name, sizeof name, NULL));
    if (ends_good(drupe_device_select("host:cpu:0", &found))) drupe_device_release(found);
    if (drupe_device_select("host:cpu:0.0", &found) == DRUPE_OK) drupe_device_release(found);
    if (drupe_device_select("host:cpu:0{1}.0", &found) == DRUPE_OK) drupe_device_release(found);
    ends_good(drupe_device_list("host,cpu", list, 4, &count));
    for (size_t i = 0; i < 4; i++) drupe_device_release(list[i]);
    if (drupe_device_split(bench.device, &equally, subs, 64, &count) == DRUPE_OK)
        for (size_t i = 0; i < count && i < 64; i++) drupe_device_release(subs[i]);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    ends_walk(asking);
}

static void in_the_child(void)
{
    drupe_device *device;
    size_t count;
    char name[8];
    const drupe_partition along = {.kind = DRUPE_SPLIT_AFFINITY};
    ENDS_FORKED(drupe_device_select("host", &device));
    ENDS_FORKED(drupe_device_list(NULL, &device, 1, &count));
    ENDS_FORKED(drupe_device_info(bench.device, DRUPE_INFO_NAME, name, sizeof name, NULL));
    ENDS_FORKED(drupe_device_split(bench.device, &along, NULL, 0, &count));
    ENDS_MUST(drupe_device_number(bench.device, DRUPE_INFO_GLOBAL_MEM_SIZE, 7) == 7);
    drupe_device_release(bench.device);
    ENDS_MUST(strcmp(drupe_device_filter(bench.device), "host:cpu:0") == 0);
}

static void a_forked_child_is_told_so(void **state)
{
    ends_setup(state);
    ends_in_child(in_the_child);
    assert_string_equal(drupe_device_backend(bench.device), "host");
    assert_int_equal(drupe_device_kind(bench.device), DRUPE_DEVICE_CPU);
    assert_string_equal(drupe_device_type_name(DRUPE_DEVICE_CPU), "cpu");
    assert_ptr_equal(drupe_device_root(bench.device), bench.device);
    assert_null(drupe_device_parent(bench.device));
    assert_true(strlen(drupe_version()) >= 5);
    drupe_device_release(drupe_device_retain(bench.device));
    assert_int_equal(bench_teardown(state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_is_left),
        cmocka_unit_test(a_forked_child_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
