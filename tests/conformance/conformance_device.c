/* Finding, asking and dividing devices. */
#include "conformance.h"
#include <stdio.h>

static void filters(struct suite *suite)
{
    drupe_device *device = suite->bench.device, *same, *list[16];
    size_t count;
    OK(drupe_device_select(drupe_device_filter(device), &same));
    assert_ptr_equal(same, device);
    drupe_device_release(same);
    char upper[64];
    snprintf(upper, sizeof upper, " %s ", drupe_device_filter(device));
    for (char *c = upper; *c; c++) *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
    OK(drupe_device_select(upper, &same));
    assert_ptr_equal(same, device);
    drupe_device_release(same);
    const char *backend = drupe_device_backend(device);
    OK(drupe_device_list(backend, list, 16, &count));
    assert_true(count >= 1);
    assert_string_equal(drupe_device_backend(list[0]), backend);
    for (size_t i = 0; i < count && i < 16; i++) drupe_device_release(list[i]);
    char alternatives[128];
    snprintf(alternatives, sizeof alternatives, "%s,%s,%s:99", backend, backend, backend);
    size_t again;
    OK(drupe_device_list(alternatives, NULL, 0, &again));
    assert_int_equal(again, count);
    snprintf(alternatives, sizeof alternatives, "%s:99", backend);
    OK(drupe_device_list(alternatives, list, 16, &count));
    assert_int_equal(count, 0);
    FAILS(drupe_device_select(alternatives, &same), DRUPE_E_NOT_FOUND, drupe_device_filter(device));
    assert_null(same);
}

static void filter_mistakes(struct suite *suite)
{
    (void)suite;
    static const char *const wrong[] = {"fpga2:gpu", "cpu:", ":cpu", "cpu,,gpu", "cpu,",    "cpu:host",
                                        "0:cpu",     "-1",   "1.",   "cpu:0:1",  "cpu gpu", "host:host"};
    drupe_device *device;
    size_t count;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        FAILS(drupe_device_select(wrong[i], &device), DRUPE_E_INVALID, "device filter");
        FAILS(drupe_device_list(wrong[i], NULL, 0, &count), DRUPE_E_INVALID, "device filter");
        assert_null(device);
    }
}

static void info_text(drupe_device *device, drupe_info key)
{
    char text[4096], shorter[4];
    size_t needed = 0;
    drupe_status status = drupe_device_info(device, key, text, sizeof text, &needed);
    if (status != DRUPE_OK) {
        FAILS(status, DRUPE_E_UNSUPPORTED, drupe_info_name(key));
        return;
    }
    assert_int_equal(needed, strlen(text) + 1);
    OK(drupe_device_info(device, key, shorter, sizeof shorter, &needed));
    assert_int_equal(needed, strlen(text) + 1);
    assert_true(strlen(shorter) < sizeof shorter);
    assert_int_equal(strncmp(shorter, text, strlen(shorter)), 0);
}

/* Whether every bit of FLAGS, or the number of ENUM, has a word. */
static bool has_words(drupe_info key, uint64_t value)
{
    bool flags = drupe_info_type_of(key) == DRUPE_INFO_FLAGS;
    if (!flags) return drupe_info_word(key, (unsigned)value) != NULL;
    for (unsigned i = 0; i < 64; i++) {
        if ((value & DRUPE_FLAG(i)) && !drupe_info_word(key, i)) return false;
    }
    return true;
}

static void info_numbers(drupe_device *device, drupe_info key)
{
    uint64_t numbers[64] = {7, 7, 7};
    size_t needed = 0;
    drupe_status status = drupe_device_info(device, key, numbers, sizeof numbers, &needed);
    bool words = drupe_info_enumeration(key) != NULL;
    if (status != DRUPE_OK) {
        FAILS(status, DRUPE_E_UNSUPPORTED, drupe_info_name(key));
        assert_int_equal(drupe_device_number(device, key, 12345), 12345);
        return;
    }
    switch (drupe_info_type_of(key)) {
    case DRUPE_INFO_BOOL: assert_true(numbers[0] <= 1); break;
    case DRUPE_INFO_LIST: assert_int_equal(needed % sizeof *numbers, 0); return;
    case DRUPE_INFO_U64X3: assert_int_equal(needed, 24); return;
    case DRUPE_INFO_ENUM:
    case DRUPE_INFO_FLAGS: assert_true(words && has_words(key, numbers[0])); break;
    default: assert_false(words); break;
    }
    assert_int_equal(needed, sizeof *numbers);
    if (key != DRUPE_INFO_FREE_MEMORY) assert_int_equal(drupe_device_number(device, key, 0), numbers[0]);
}

static void info(struct suite *suite)
{
    drupe_device *device = suite->bench.device;
    for (int key = 0; key < DRUPE_INFO_COUNT; key++) {
        if (drupe_info_type_of((drupe_info)key) == DRUPE_INFO_STRING)
            info_text(device, (drupe_info)key);
        else
            info_numbers(device, (drupe_info)key);
    }
    FAILS(drupe_device_info(device, DRUPE_INFO_COUNT, NULL, 0, NULL), DRUPE_E_INVALID, "property");
    assert_true(drupe_device_number(device, DRUPE_INFO_MAX_COMPUTE_UNITS, 0) >= 1);
    assert_true(drupe_device_number(device, DRUPE_INFO_GLOBAL_MEM_SIZE, 0) > 1u << 20);
    assert_int_equal(drupe_device_number(device, DRUPE_INFO_NAME, 123), 123);
    assert_int_equal(drupe_device_number(device, DRUPE_INFO_AVAILABLE, 0), 1);
    assert_int_equal(drupe_device_number(device, DRUPE_INFO_PARTITION_TYPE, 9), DRUPE_SPLIT_NONE);
    assert_string_equal(drupe_info_name(DRUPE_INFO_MAX_COMPUTE_UNITS), "max_compute_units");
    assert_string_equal(drupe_info_enumeration(DRUPE_INFO_LOCAL_MEM_TYPE), "local_mem_type");
    assert_string_equal(drupe_info_word(DRUPE_INFO_DOUBLE_FP_CONFIG, DRUPE_FP_FMA), "fma");
    assert_int_equal(drupe_info_find_word(DRUPE_INFO_PARTITION_DOMAINS, "L3_cache"), DRUPE_DOMAIN_L3);
    assert_int_equal(drupe_info_find_word(DRUPE_INFO_PARTITION_DOMAINS, "L9"), -1);
    assert_null(drupe_info_word(DRUPE_INFO_NAME, 0));
}

static void contexts(struct suite *suite)
{
    drupe_context *context, *again;
    drupe_device *device = suite->bench.device;
    OK(drupe_device_context(device, &context));
    OK(drupe_device_context(device, &again));
    assert_ptr_equal(context, again);
    assert_int_equal(drupe_context_device_count(context), 1);
    assert_ptr_equal(drupe_context_device(context, 0), device);
    assert_null(drupe_context_device(context, 1));
    drupe_context_release(context);
    drupe_context_release(again);
    FAILS(drupe_context_open(&device, 0, &context), DRUPE_E_INVALID, "device");
    assert_null(context);
    struct bench *remote = use_remote(suite);
    drupe_device *mixed[] = {device, remote->device};
    FAILS(drupe_context_open(mixed, 2, &context), DRUPE_E_INVALID, "platform");
    drupe_queue *queue;
    FAILS(drupe_queue_open(suite->bench.context, remote->device, 0, &queue), DRUPE_E_INVALID, "belong");
}

static void default_queue(struct suite *suite)
{
    drupe_queue *first, *second;
    OK(drupe_device_queue(suite->bench.device, &first));
    OK(drupe_device_queue(suite->bench.device, &second));
    assert_ptr_equal(first, second);
    assert_ptr_equal(drupe_queue_device(first), suite->bench.device);
    assert_ptr_equal(drupe_queue_context(first), suite->bench.context);
    assert_int_equal(drupe_queue_flags_of(first), 0);
    drupe_queue_release(first);
    drupe_queue_release(second);
    FAILS(drupe_queue_open(suite->bench.context, suite->bench.device, 64, &first), DRUPE_E_INVALID, "flags");
}

/* --- Division ------------------------------------------------------------------------------------------- */

/* Where parts live in their whole's context. */
static void use_shared(struct suite *suite, drupe_queue *queue, drupe_memory *m)
{
    drupe_event *event;
    OK(submit_mad(&suite->bench, queue, m, m, 500, 5, 1, NULL, 0, NULL));
    expect_u64(queue, m, 21, 500);
    OK(submit_mad(&suite->bench, queue, m, m, 500, 2, 0, NULL, 0, &event));
    OK(submit_mad(&suite->bench, suite->bench.queue, m, m, 500, 1, 1, &event, 1, NULL));
    expect_u64(suite->bench.queue, m, 43, 500);
    drupe_event_release(event);
}

/* Where the driver wants a context for each part: the same one while it is used, with kernels of its own. */
static void use_alone(struct suite *suite, drupe_queue *queue, drupe_memory *m)
{
    drupe_context *context;
    struct bench alone = {.fixture = suite->fixture, .device = drupe_queue_device(queue)};
    drupe_source source = {.language = suite->fixture->language, .bytes = suite->fixture->source};
    if (source.bytes) source.size = strlen(suite->fixture->source);
    OK(drupe_device_context(alone.device, &context));
    assert_ptr_equal(context, drupe_queue_context(queue));
    assert_ptr_equal(drupe_context_device(context, 0), alone.device);
    OK(drupe_program_open(context, alone.device, &source, NULL, &alone.program));
    OK(drupe_kernel_open(alone.program, "test_mad", &alone.mad));
    OK(submit_mad(&alone, queue, m, m, 500, 5, 1, NULL, 0, NULL));
    expect_u64(queue, m, 21, 500);
    expect_u64(suite->bench.queue, m, 21, 500); /* by way of the host */
    drupe_kernel_release(alone.mad);
    drupe_program_release(alone.program);
    drupe_context_release(context);
}

/* A sub-device computes, has memory, and a default queue of its own. */
static void use_sub(struct suite *suite, drupe_device *sub, drupe_device *parent)
{
    drupe_queue *queue, *same;
    assert_ptr_equal(drupe_device_parent(sub), parent);
    assert_ptr_equal(drupe_device_root(sub), suite->bench.device);
    OK(drupe_device_queue(sub, &queue));
    OK(drupe_device_queue(sub, &same));
    assert_ptr_equal(queue, same);
    drupe_memory *m = new_memory(queue, DRUPE_MEM_DEVICE, 4000);
    fill_u64(queue, m, 4, 500);
    if (drupe_queue_context(queue) == suite->bench.context)
        use_shared(suite, queue, m);
    else
        use_alone(suite, queue, m);
    drupe_memory_release(m);
    drupe_queue_release(queue);
    drupe_queue_release(same);
}

static uint32_t divisible_units(struct suite *suite)
{
    uint64_t units = drupe_device_number(suite->bench.device, DRUPE_INFO_MAX_COMPUTE_UNITS, 1);
    if (units < 2 || drupe_device_number(suite->bench.device, DRUPE_INFO_PARTITION_MAX, 0) < 2) {
        skip_known(suite, "split");
    }
    return (uint32_t)units;
}

static void split_equally(struct suite *suite)
{
    drupe_device *device = suite->bench.device, *subs[1024];
    uint32_t units = divisible_units(suite), one = 1, wrong = units + 1, zero = 0;
    size_t count;
    drupe_partition partition = {DRUPE_SPLIT_EQUALLY, 1, &one, DRUPE_DOMAIN_NONE};
    OK(drupe_device_split(device, &partition, NULL, 0, &count));
    assert_int_equal(count, units);
    OK(drupe_device_split(device, &partition, subs, 1024, &count));
    assert_int_equal(count, units);
    for (size_t i = 0; i < count; i++) {
        char filter[80];
        snprintf(filter, sizeof filter, "%s.%zu", drupe_device_filter(device), i);
        assert_string_equal(drupe_device_filter(subs[i]), filter);
        assert_int_equal(drupe_device_number(subs[i], DRUPE_INFO_MAX_COMPUTE_UNITS, 0), 1);
    }
    use_sub(suite, subs[0], device);
    use_sub(suite, subs[count - 1], device);
    drupe_device *none;
    FAILS(drupe_device_split(subs[0], &partition, &none, 1, &count), DRUPE_E_UNSUPPORTED, "1 compute unit");
    for (size_t i = 0; i < units; i++) drupe_device_release(subs[i]);
    partition.units = &wrong;
    FAILS(drupe_device_split(device, &partition, subs, 1024, &count), DRUPE_E_OUT_OF_RANGE, "has ");
    partition.units = &zero;
    FAILS(drupe_device_split(device, &partition, subs, 1024, &count), DRUPE_E_INVALID, "at least 1");
    partition.units = NULL;
    FAILS(drupe_device_split(device, &partition, subs, 1024, &count), DRUPE_E_INVALID, "partition");
    partition = (drupe_partition){(drupe_partition_kind)9, 1, &one, DRUPE_DOMAIN_NONE};
    FAILS(drupe_device_split(device, &partition, subs, 1024, &count), DRUPE_E_INVALID, "partition");
    partition = (drupe_partition){DRUPE_SPLIT_EQUALLY, 1, &one, DRUPE_DOMAIN_NONE};
    FAILS(drupe_device_split(device, &partition, subs, 1, &count), DRUPE_E_INVALID, "room");
}

/* The parts that filters name, and those that live already. */
static void parts_in_filters(struct suite *suite)
{
    static const char *const nowhere[] = {".9999", ".0.0.0", "{99}.0", "{L1_cache}.9999", "{1+1+1+9999}.0"};
    static const char *const wrong[] = {".",  "..0",      ".x",       "{}.0", "{2}",
                                        "{2", "{frog}.0", "{1++1}.0", ".0{",  ".-1"};
    drupe_device *device = suite->bench.device, *part, *same, *list[2];
    char filter[256];
    size_t count;
    for (size_t i = 0; i < COUNT(nowhere); i++) {
        snprintf(filter, sizeof filter, "%s%s", drupe_device_filter(device), nowhere[i]);
        FAILS(drupe_device_select(filter, &part), DRUPE_E_NOT_FOUND, drupe_device_filter(device));
        OK(drupe_device_list(filter, NULL, 0, &count));
        assert_int_equal(count, 0);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        snprintf(filter, sizeof filter, "%s%s", drupe_device_filter(device), wrong[i]);
        FAILS(drupe_device_select(filter, &part), DRUPE_E_INVALID, "device filter");
    }
    divisible_units(suite);
    snprintf(filter, sizeof filter, "%s.1", drupe_device_filter(device));
    OK(drupe_device_select(filter, &part));
    OK(drupe_device_select(filter, &same));
    assert_ptr_equal(part, same);
    assert_string_equal(drupe_device_filter(part), filter);
    drupe_device_release(same);
    use_sub(suite, part, device);
    snprintf(filter, sizeof filter, "%s{1}.1,%s.1", drupe_device_filter(device), drupe_device_filter(device));
    OK(drupe_device_list(filter, list, 2, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(list[0], part);
    drupe_device_release(list[0]);
    drupe_device_release(part);
    snprintf(filter, sizeof filter, "%s{1+1}.0", drupe_device_filter(device));
    OK(drupe_device_select(filter, &part));
    assert_string_equal(drupe_device_filter(part), filter);
    assert_int_equal(drupe_device_number(part, DRUPE_INFO_PARTITION_TYPE, 0), DRUPE_SPLIT_COUNTS);
    drupe_device_release(part);
}

/* Along every domain that the device tells of, and none other. */
static void split_along_domains(struct suite *suite)
{
    drupe_device *device = suite->bench.device, *subs[1024];
    uint64_t there = drupe_device_number(device, DRUPE_INFO_PARTITION_DOMAINS, 0);
    uint64_t kinds = drupe_device_number(device, DRUPE_INFO_PARTITION_KINDS, 0);
    assert_int_equal(!!(kinds & DRUPE_FLAG(DRUPE_SPLIT_AFFINITY)), there != 0);
    for (int domain = DRUPE_DOMAIN_NUMA; domain < DRUPE_domain_COUNT; domain++) {
        drupe_partition partition = {.kind = DRUPE_SPLIT_AFFINITY, .domain = (drupe_domain)domain};
        size_t count;
        if (!(there & DRUPE_FLAG(domain))) {
            FAILS(drupe_device_split(device, &partition, subs, 1024, &count), DRUPE_E_UNSUPPORTED, "divided");
            continue;
        }
        OK(drupe_device_split(device, &partition, subs, 1024, &count));
        assert_true(count > 1);
        use_sub(suite, subs[count - 1], device);
        for (size_t i = 0; i < count; i++) drupe_device_release(subs[i]);
    }
    drupe_partition none = {.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_DOMAIN_NONE};
    size_t count;
    if (there) FAILS(drupe_device_split(device, &none, subs, 2, &count), DRUPE_E_INVALID, "domain");
}

static void split_by_counts(struct suite *suite)
{
    drupe_device *device = suite->bench.device, *subs[2];
    uint32_t units = divisible_units(suite), counts[] = {units - 1, 1}, many[] = {units, 1};
    size_t count;
    drupe_partition partition = {DRUPE_SPLIT_COUNTS, 2, counts, DRUPE_DOMAIN_NONE};
    OK(drupe_device_split(device, &partition, subs, 2, &count));
    assert_int_equal(count, 2);
    assert_int_equal(drupe_device_number(subs[0], DRUPE_INFO_MAX_COMPUTE_UNITS, 0), units - 1);
    use_sub(suite, subs[0], device);
    use_sub(suite, subs[1], device);
    drupe_device_release(subs[0]);
    drupe_device_release(subs[1]);
    partition.units = many;
    FAILS(drupe_device_split(device, &partition, subs, 2, &count), DRUPE_E_OUT_OF_RANGE, "has ");
    partition.count = 0;
    FAILS(drupe_device_split(device, &partition, subs, 2, &count), DRUPE_E_INVALID, "partition");
}

const conformance_case cases_device[] = {
    {"filters", filters},
    {"filter_mistakes", filter_mistakes},
    {"info", info},
    {"contexts", contexts},
    {"default_queue", default_queue},
    {"split_equally", split_equally},
    {"split_by_counts", split_by_counts},
    {"parts_in_filters", parts_in_filters},
    {"split_along_domains", split_along_domains},
    {NULL, NULL},
};
