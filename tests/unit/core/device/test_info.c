/* Properties of devices, asked once; choosing a device; loss, for what is answered afterwards. */
#include "backends/services.h"
#include "core/device/device_room.h"
#include "core_bench.h"
#include "test_script.h"

static drupe_device *device;
static const drupe_backend *real;
static drupe_backend table;
static int asked;
static drupe_status answer;
static uint64_t free_memory;
static int closed;

static drupe_status device_info(drupe_device *of, drupe_info key, uint64_t number[3], drupe_text *text)
{
    asked++;
    if (answer != DRUPE_OK) return drupe_error_set(answer, "Not now.");
    if (key == DRUPE_INFO_FREE_MEMORY || key == DRUPE_INFO_AVAILABLE) {
        number[0] = free_memory;
        return DRUPE_OK;
    }
    if (key == DRUPE_INFO_MAX_WORK_ITEM_SIZES) {
        for (size_t i = 0; i < 3; i++) number[i] = 7 + i;
        return DRUPE_OK;
    }
    if (key == DRUPE_INFO_SUB_GROUP_SIZES) {
        static const uint64_t sizes[] = {0x0101010101010101, 0x0202020202020202};
        drupe_text_append(text, (const char *)sizes, sizeof sizes);
        return DRUPE_OK;
    }
    return real->device_info(of, key, number, text);
}

static void device_close(drupe_device *of)
{
    closed++;
    real->device_close(of);
}

static int setup(void **state)
{
    (void)state;
    unsetenv("DRUPE_DEVICES");
    test_script_reset();
    assert_true(drupe_slot_count() > 0);
    real = drupe_slot_at(0)->base;
    table = *real;
    table.device_info = device_info;
    table.device_close = device_close;
    drupe_slot_at(0)->base = &table;
    answer = DRUPE_OK;
    device = NULL;
    return 0;
}

static void open_device(void)
{
    OK(drupe_device_select("host", &device));
    asked = 0;
}

static int teardown(void **state)
{
    (void)state;
    drupe_device_release(device);
    const size_t left = drupe_library_close(LONG);
    drupe_slot_at(0)->base = real;
    return left == 0 ? 0 : -1;
}

static void answers_are_asked_for_once(void **state)
{
    (void)state;
    uint64_t number = 0, sizes[3];
    size_t needed;
    open_device();
    for (size_t i = 0; i < 3; i++) {
        OK(drupe_device_info(device, DRUPE_INFO_GLOBAL_MEM_SIZE, &number, sizeof number, &needed));
        OK(drupe_device_info(device, DRUPE_INFO_MAX_WORK_ITEM_SIZES, sizes, sizeof sizes, &needed));
    }
    assert_int_equal(asked, 2);
    assert_int_equal(number, UINT64_C(1) << 30);
    assert_int_equal(needed, sizeof sizes);
    assert_int_equal(sizes[2], 9);
    uint32_t half = 0;
    OK(drupe_device_info(device, DRUPE_INFO_GLOBAL_MEM_SIZE, &half, sizeof half, NULL)); /* cut */
    assert_int_equal(half, 1u << 30);
    OK(drupe_device_info(device, DRUPE_INFO_GLOBAL_MEM_SIZE, NULL, 0, &needed));
    assert_int_equal(needed, 8);
}

static void texts_are_cut_and_ended(void **state)
{
    (void)state;
    char name[64];
    size_t needed;
    open_device();
    OK(drupe_device_info(device, DRUPE_INFO_NAME, name, sizeof name, &needed));
    assert_string_equal(name, "scripted device");
    assert_int_equal(needed, sizeof "scripted device");
    OK(drupe_device_info(device, DRUPE_INFO_NAME, name, 5, NULL));
    assert_string_equal(name, "scri");
    OK(drupe_device_info(device, DRUPE_INFO_NAME, NULL, 0, &needed));
    OK(drupe_device_info(device, DRUPE_INFO_NAME, name, 0, NULL));
    assert_string_equal(name, "scri");
}

/* Only a text is ended. */
static void lists_are_cut(void **state)
{
    (void)state;
    unsigned char sizes[16] = {0};
    size_t needed;
    open_device();
    OK(drupe_device_info(device, DRUPE_INFO_SUB_GROUP_SIZES, sizes, 12, &needed));
    assert_int_equal(needed, 16);
    assert_int_equal(sizes[7], 1);
    assert_int_equal(sizes[11], 2);
    assert_int_equal(sizes[12], 0);
    OK(drupe_device_info(device, DRUPE_INFO_SUB_GROUP_SIZES, sizes, sizeof sizes, NULL));
    assert_int_equal(sizes[15], 2);
    assert_int_equal(asked, 1);
}

static void parts_know_how_they_were_made(void **state)
{
    (void)state;
    static const struct {
        const char *filter;
        uint64_t kind, domain;
    } cases[] = {{"host:cpu:0.1", DRUPE_SPLIT_EQUALLY, DRUPE_DOMAIN_NONE},
                 {"host:cpu:0{1+2}.1", DRUPE_SPLIT_COUNTS, DRUPE_DOMAIN_NONE},
                 {"host:cpu:0{numa}.1", DRUPE_SPLIT_AFFINITY, DRUPE_DOMAIN_NUMA},
                 {"host:cpu:0", DRUPE_SPLIT_NONE, DRUPE_DOMAIN_NONE}};
    test_script.backends[0].devices[0].numa = 2;
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        OK(drupe_device_select(cases[i].filter, &device));
        assert_int_equal(drupe_device_number(device, DRUPE_INFO_PARTITION_TYPE, 77), cases[i].kind);
        assert_int_equal(drupe_device_number(device, DRUPE_INFO_PARTITION_TYPE_DOMAIN, 77), cases[i].domain);
        drupe_device_release(device);
    }
    device = NULL;
}

static void what_means_nothing_is_remembered_and_what_failed_is_not(void **state)
{
    (void)state;
    uint64_t number;
    char text[8];
    open_device();
    FAILS(drupe_device_info(device, DRUPE_INFO_VENDOR, text, sizeof text, NULL), DRUPE_E_UNSUPPORTED,
          "The device host:cpu:0 has no property 'vendor'.");
    asked = 0;
    FAILS(drupe_device_info(device, DRUPE_INFO_VENDOR, text, sizeof text, NULL), DRUPE_E_UNSUPPORTED,
          "vendor");
    assert_int_equal(asked, 0);
    answer = DRUPE_E_BUSY;
    FAILS(drupe_device_info(device, DRUPE_INFO_MAX_WORK_ITEM_SIZES, &number, 8, NULL), DRUPE_E_BUSY,
          "Not now");
    FAILS(drupe_device_info(device, DRUPE_INFO_NAME, text, 8, NULL), DRUPE_E_BUSY, "Not now");
    answer = DRUPE_OK;
    OK(drupe_device_info(device, DRUPE_INFO_MAX_WORK_ITEM_SIZES, &number, 8, NULL));
    FAILS(drupe_device_info(device, (drupe_info)10000, &number, 8, NULL), DRUPE_E_INVALID, "number 10000");
}

static void some_answers_change(void **state)
{
    (void)state;
    uint64_t number;
    size_t needed;
    open_device();
    for (free_memory = 5; free_memory < 8; free_memory++) {
        OK(drupe_device_info(device, DRUPE_INFO_FREE_MEMORY, &number, sizeof number, &needed));
        assert_int_equal(number, free_memory);
        OK(drupe_device_info(device, DRUPE_INFO_AVAILABLE, &number, sizeof number, NULL));
        assert_int_equal(number, free_memory);
    }
    assert_int_equal(needed, 8);
    answer = DRUPE_E_UNSUPPORTED;
    FAILS(drupe_device_info(device, DRUPE_INFO_FREE_MEMORY, &number, 8, NULL), DRUPE_E_UNSUPPORTED,
          "no property 'free_memory'");
    answer = DRUPE_E_BUSY;
    FAILS(drupe_device_info(device, DRUPE_INFO_FREE_MEMORY, &number, 8, NULL), DRUPE_E_BUSY, "Not now");
    assert_int_equal(drupe_device_number(device, DRUPE_INFO_FREE_MEMORY, 77), 77);
}

static void numbers_have_a_fallback(void **state)
{
    (void)state;
    open_device();
    assert_int_equal(drupe_device_number(device, DRUPE_INFO_GLOBAL_MEM_SIZE, 1), UINT64_C(1) << 30);
    assert_int_equal(drupe_device_number(device, DRUPE_INFO_NAME, 1), 1);
    assert_int_equal(drupe_device_number(device, DRUPE_INFO_MAX_WORK_ITEM_SIZES, 2), 2);
    assert_int_equal(drupe_device_number(device, DRUPE_INFO_HAS_IPC, 2), 0); /* core knows better */
    assert_int_equal(drupe_device_number(device, (drupe_info)10000, 3), 3);
}

static void properties_have_names_and_words(void **state)
{
    (void)state;
    static const drupe_info unknown = (drupe_info)10000;
    assert_string_equal(drupe_info_name(DRUPE_INFO_NAME), "name");
    assert_int_equal(drupe_info_type_of(DRUPE_INFO_NAME), DRUPE_INFO_STRING);
    assert_null(drupe_info_enumeration(DRUPE_INFO_NAME));
    assert_null(drupe_info_word(DRUPE_INFO_NAME, 0));
    assert_string_equal(drupe_info_name(unknown), "unknown");
    assert_string_equal(drupe_device_type_name((drupe_device_type)77), "unknown");
    assert_int_equal(drupe_info_type_of(unknown), DRUPE_INFO_U64);
    assert_null(drupe_info_enumeration(unknown));
    assert_null(drupe_info_word(unknown, 0));
    assert_int_equal(drupe_info_find_word(unknown, "x"), -1);
    /* Every enumeration: its words are found again by their numbers. */
    size_t words = 0;
    for (int key = 0; key < DRUPE_INFO_COUNT; key++) {
        if (!drupe_info_enumeration((drupe_info)key)) continue;
        const char *word;
        for (unsigned i = 0; (word = drupe_info_word((drupe_info)key, i)) != NULL; i++, words++)
            assert_int_equal(drupe_info_find_word((drupe_info)key, word), i);
        assert_int_equal(drupe_info_find_word((drupe_info)key, "no such word"), -1);
    }
    assert_true(words > 10);
}

/* --- Choosing --------------------------------------------------------------------------------------------
 */

static const char *selected(const char *filter)
{
    drupe_device_release(device);
    OK(drupe_device_select(filter, &device));
    return drupe_device_filter(device);
}

static void the_best_device_is_chosen(void **state)
{
    (void)state;
    test_script.backends[1].count = 3;
    test_script.backends[1].devices[1] = (struct test_device){.type = DRUPE_DEVICE_GPU, .units = 4};
    test_script.backends[1].devices[2] = (struct test_device){.type = DRUPE_DEVICE_ACCELERATOR, .units = 4};
    assert_string_equal(selected(NULL), "opencl:gpu:0");
    assert_int_equal(drupe_device_score(device), 1000);
    assert_string_equal(selected(""), "opencl:gpu:0");
    assert_string_equal(selected("cpu"), "host:cpu:0");
    assert_int_equal(drupe_device_score(device), 550);
    assert_string_equal(selected("opencl"), "opencl:gpu:0");
    assert_string_equal(selected("opencl:cpu"), "opencl:cpu:0");
    assert_string_equal(selected("accelerator,cpu"), "opencl:accelerator:0");
    assert_string_equal(selected("custom,cpu"), "host:cpu:0");
    assert_string_equal(selected("1"), "opencl:cpu:0"); /* the second of all */
    drupe_device *list[8];
    size_t count;
    OK(drupe_device_list(NULL, list, 2, &count));
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 2; i++) drupe_device_release(list[i]);
    OK(drupe_device_list("gpu,host,gpu", NULL, 0, &count));
    assert_int_equal(count, 2); /* each once */
    OK(drupe_device_list("", NULL, 0, &count));
    assert_int_equal(count, 4);
    OK(drupe_device_list("host:cpu:7", list, 8, &count));
    assert_int_equal(count, 0);
    OK(drupe_device_list("host:0.77", list, 8, &count)); /* a path that leads nowhere */
    assert_int_equal(count, 0);
}

/* Whatever the order of the backends is: one that could be better is opened. */
static void the_order_of_backends_does_not_matter(void **state)
{
    (void)state;
    drupe_slot *slots[2] = {drupe_slot_at(0), drupe_slot_at(1)};
    const drupe_backend *other = slots[1]->base;
    slots[0]->base = slots[0]->backend = other;
    slots[1]->base = slots[1]->backend = &table;
    drupe_device *found;
    const drupe_status status = drupe_device_select("cpu", &found);
    const bool host = status == DRUPE_OK && strcmp(drupe_device_filter(found), "host:cpu:0") == 0;
    drupe_device_release(found);
    const size_t left = drupe_library_close(LONG);
    slots[0]->base = slots[0]->backend = real;
    slots[1]->base = slots[1]->backend = other;
    assert_true(host && left == 0);
}

/* Backend, type and number, each at most once and in this order. */
static void wrong_filters_are_told(void **state)
{
    (void)state;
    static const char *const filters[][2] = {
        {"cpu:host", "'host'"}, {"host:opencl", "'opencl'"}, {"0:host", "'host'"},
        {"cpu:gpu", "'gpu'"},   {"0:cpu", "'cpu'"},          {"0:1", "'1'"},
        {"cpu,", "''"},         {"cpu,host:x", "'x'"},       {":", "''"},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(filters); i++) {
        size_t count = 77;
        char words[64];
        snprintf(words, sizeof words, "%s in a device filter", filters[i][1]);
        FAILS(drupe_device_select(filters[i][0], &device), DRUPE_E_INVALID, words);
        FAILS(drupe_device_list(filters[i][0], NULL, 0, &count), DRUPE_E_INVALID, words);
        assert_int_equal(count, 0);
    }
    assert_int_equal(test_script.backends[1].loads, 0); /* a mistake opens no library */
}

static void who_finds_nothing_is_told_what_there_is(void **state)
{
    (void)state;
    FAILS(drupe_device_select("gpu", &device), DRUPE_E_NOT_FOUND,
          "No device matches 'gpu'. There are: host:cpu:0, opencl:cpu:0.");
    FAILS(drupe_device_select("cuda", &device), DRUPE_E_NOT_FOUND, "That backend is not part of this build.");
    FAILS(drupe_device_select("host:0.99", &device), DRUPE_E_NOT_FOUND, "No device matches 'host:0.99'");
    FAILS(drupe_device_select("nonsense", &device), DRUPE_E_INVALID, "nonsense");
    FAILS(drupe_device_select("cpu,nonsense", &device), DRUPE_E_INVALID, "nonsense");
    assert_null(device);
}

static void a_vendors_library_may_be_broken(void **state)
{
    (void)state;
    test_script.backends[1].load = DRUPE_E_UNAVAILABLE;
    FAILS(drupe_device_select("opencl", &device), DRUPE_E_NOT_FOUND,
          "There are: host:cpu:0. The script says no");
    assert_string_equal(selected(NULL), "host:cpu:0");
    size_t count;
    OK(drupe_device_list("opencl", NULL, 0, &count));
    assert_int_equal(count, 0);
}

static void without_any_device_the_reason_is_told(void **state)
{
    (void)state;
    test_script.backends[0].count = 0;
    test_script.backends[1].load = DRUPE_E_UNAVAILABLE;
    FAILS(drupe_device_select(NULL, &device), DRUPE_E_NOT_FOUND, "There is no device. The script says no");
    FAILS(drupe_device_select("gpu", &device), DRUPE_E_NOT_FOUND, "There are: none. The script says no");
    setenv("DRUPE_DEVICES", "opencl:*", 1);
    FAILS(drupe_device_select(NULL, &device), DRUPE_E_NOT_FOUND,
          "DRUPE_DEVICES=opencl:* limits the devices.");
    unsetenv("DRUPE_DEVICES");
}

static void the_environment_is_read_first(void **state)
{
    (void)state;
    size_t count;
    setenv("DRUPE_DEVICES", "((", 1);
    assert_int_equal(drupe_device_select(NULL, &device), DRUPE_E_INVALID);
    assert_int_equal(drupe_device_list(NULL, NULL, 0, &count), DRUPE_E_INVALID);
    unsetenv("DRUPE_DEVICES");
}

/* --- The last one: a lost device ----------------------------------------------------------- */

static void a_lost_device_answers_what_is_known(void **state)
{
    (void)state;
    char name[64];
    uint64_t number = 9;
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "It went away.", .backend = "script"};
    const drupe_partition along = {.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_DOMAIN_NEXT};
    drupe_device *part;
    size_t count = 77;
    open_device();
    OK(drupe_device_select("host:cpu:0.1", &part));
    OK(drupe_loss_check(device));
    OK(drupe_device_info(device, DRUPE_INFO_NAME, name, sizeof name, NULL));
    drupe_core_device_lost(device, &error, true);
    FAILS(drupe_loss_check(device), DRUPE_E_DEVICE_LOST, "The device host:cpu:0 is lost: It went away.");
    assert_string_equal(drupe_error_last()->backend, "script");
    OK(drupe_device_info(device, DRUPE_INFO_NAME, name, sizeof name, NULL));
    assert_string_equal(name, "scripted device");
    asked = 0;
    FAILS(drupe_device_info(device, DRUPE_INFO_MAX_WORK_ITEM_SIZES, &number, 8, NULL), DRUPE_E_DEVICE_LOST,
          "lost");
    FAILS(drupe_device_info(device, DRUPE_INFO_FREE_MEMORY, &number, 8, NULL), DRUPE_E_DEVICE_LOST, "lost");
    OK(drupe_device_info(device, DRUPE_INFO_AVAILABLE, &number, 8, NULL));
    assert_int_equal(number, 0);
    FAILS(drupe_device_split(device, &along, NULL, 0, &count), DRUPE_E_DEVICE_LOST, "lost");
    assert_int_equal(count, 0);
    assert_int_equal(asked, 0);
    closed = 0;
    drupe_device_release(part); /* its driver is not called */
    assert_int_equal(closed, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(answers_are_asked_for_once),
        TEST(texts_are_cut_and_ended),
        TEST(lists_are_cut),
        TEST(parts_know_how_they_were_made),
        TEST(what_means_nothing_is_remembered_and_what_failed_is_not),
        TEST(some_answers_change),
        TEST(numbers_have_a_fallback),
        TEST(properties_have_names_and_words),
        TEST(the_best_device_is_chosen),
        TEST(the_order_of_backends_does_not_matter),
        TEST(wrong_filters_are_told),
        TEST(who_finds_nothing_is_told_what_there_is),
        TEST(a_vendors_library_may_be_broken),
        TEST(without_any_device_the_reason_is_told),
        TEST(the_environment_is_read_first),
        TEST(a_lost_device_answers_what_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
