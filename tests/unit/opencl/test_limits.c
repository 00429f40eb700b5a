/* Libraries, devices and sub-devices. */
#include "base/base.h"
#include "stand_in.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define B (&drupe_backend_opencl)

/* --- The library ---------------------------------------------------------------------------------------- */

static void missing_library(void **state)
{
    (void)state;
    void *library = NULL;
    assert_error(try_load("/nowhere/libOpenCL.so", "", &library), DRUPE_E_UNAVAILABLE,
                 "/nowhere/libOpenCL.so");
    assert_non_null(strstr(drupe_error_last()->text, "pocl-opencl-icd"));
    assert_null(library);
    assert_error(try_load("libm.so.6", "", &library), DRUPE_E_UNAVAILABLE, "clGetPlatformIDs");
    assert_null(library);
}

static void nothing_behind_the_loader(void **state)
{
    (void)state;
    void *library = NULL;
    assert_error(try_load(OPENCL_SHIM, "noplatform", &library), DRUPE_E_UNAVAILABLE, "pocl-opencl-icd");
    assert_int_equal(drupe_error_last()->native, -1001);
    assert_null(library);
    B->unload(load_backend("")); /* skips without a driver */
    assert_error(try_load(OPENCL_SHIM, "nodevice", &library), DRUPE_E_UNAVAILABLE, "none of them offers");
    assert_null(library);
}

static void likely_looks_at_nodes(void **state)
{
    (void)state;
    char folder[] = "/tmp/drupe-icd-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *set = getenv("OCL_ICD_VENDORS");
    char *before = set ? strdup(set) : NULL;
    unsetenv("DRUPE_OPENCL_LIBRARY");
    if (getenv("OCL_ICD_FILENAMES")) skip(); /* names a driver whatever the folder holds */
    setenv("OCL_ICD_VENDORS", folder, 1);
    assert_false(B->likely(DRUPE_DEVICE_CPU));
    assert_false(B->likely(DRUPE_DEVICE_GPU));
    setenv("DRUPE_OPENCL_LIBRARY", "libOpenCL.so.1", 1);
    assert_true(B->likely(DRUPE_DEVICE_GPU));
    unsetenv("DRUPE_OPENCL_LIBRARY");
    char file[64];
    snprintf(file, sizeof file, "%s/some.icd", folder);
    FILE *icd = fopen(file, "w");
    assert_non_null(icd);
    fclose(icd);
    assert_true(B->likely(DRUPE_DEVICE_CPU));
    unlink(file);
    rmdir(folder);
    if (before) {
        setenv("OCL_ICD_VENDORS", before, 1);
    } else {
        unsetenv("OCL_ICD_VENDORS");
    }
    free(before);
}

/* --- What vendors tell ---------------------------------------------------------------------------------- */

static void text_is(drupe_device *device, drupe_info key, const char *expected)
{
    drupe_text text = {0};
    drupe_status status = B->device_info(device, key, (uint64_t[3]){0}, &text);
    assert_int_equal(status, expected ? DRUPE_OK : DRUPE_E_UNSUPPORTED);
    if (expected) assert_string_equal(drupe_text_get(&text), expected);
    drupe_text_clear(&text);
}

static void list_is(drupe_device *device, drupe_info key, const uint64_t *expected, size_t count)
{
    drupe_text list = {0};
    drupe_status status = B->device_info(device, key, (uint64_t[3]){0}, &list);
    assert_int_equal(status, count ? DRUPE_OK : DRUPE_E_UNSUPPORTED);
    assert_int_equal(list.length, count * sizeof *expected);
    if (count) assert_memory_equal(list.data, expected, list.length);
    drupe_text_clear(&list);
}

static void cards_of_vendors(void **state)
{
    (void)state;
    static const struct {
        const char *word, *address, *capability, *uuid;
        uint64_t sizes[3];
        size_t nsizes;
        uint64_t product, units, free, advance; /* UINT64_MAX: not told; free 0: the machine's, any number */
    } cases[] = {
        {"", NULL, NULL, NULL, {0}, 0, UINT64_MAX, UINT64_MAX, 0, UINT64_MAX},
        {"nvcard gpu", "0001:3b:03.0", "9.0", NULL, {32}, 1, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
        {"amdcard gpu", "0000:c1:02.3", NULL, NULL, {64}, 1, 0x73bf, UINT64_MAX, 4096 << 10, UINT64_MAX},
        {"xecard gpu", NULL, NULL, NULL, {8, 16, 32}, 3, 0x56a0, 512, UINT64_MAX, 1},
        {"khrcard gpu",
         "0000:af:01.2",
         NULL,
         "00010203-0405-0607-0809-0a0b0c0d0eff",
         {0},
         0,
         UINT64_MAX,
         UINT64_MAX,
         UINT64_MAX,
         UINT64_MAX},
    };
    void *library = load_backend(""); /* skips without a driver */
    drupe_device *below = make_device(library, 0);
    drupe_text list = {0};
    bool card = B->device_info(below, DRUPE_INFO_SUB_GROUP_SIZES, (uint64_t[3]){0}, &list) == DRUPE_OK;
    drupe_text_clear(&list);
    close_device(below);
    B->unload(library);
    if (card) skip(); /* it would answer for the ones made here */
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        assert_int_equal(try_load(OPENCL_SHIM, cases[i].word, &library), DRUPE_OK);
        drupe_device *device = make_device(library, 0);
        text_is(device, DRUPE_INFO_PCI_ADDRESS, cases[i].address);
        text_is(device, DRUPE_INFO_COMPUTE_CAPABILITY, cases[i].capability);
        text_is(device, DRUPE_INFO_UUID, cases[i].uuid);
        list_is(device, DRUPE_INFO_SUB_GROUP_SIZES, cases[i].sizes, cases[i].nsizes);
        const struct {
            drupe_info key;
            uint64_t expected;
        } numbers[] = {{DRUPE_INFO_DEVICE_ID, cases[i].product},
                       {DRUPE_INFO_GPU_EUS, cases[i].units},
                       {DRUPE_INFO_FREE_MEMORY, cases[i].free},
                       {DRUPE_INFO_SUB_GROUP_PROGRESS, cases[i].advance}};
        for (size_t k = 0; k < DRUPE_COUNT_OF(numbers); k++) {
            uint64_t number[3] = {0};
            drupe_status status = B->device_info(device, numbers[k].key, number, NULL);
            assert_int_equal(status, numbers[k].expected == UINT64_MAX ? DRUPE_E_UNSUPPORTED : DRUPE_OK);
            if (status == DRUPE_OK && numbers[k].expected) assert_int_equal(number[0], numbers[k].expected);
        }
        close_device(device);
        B->unload(library);
    }
}

static void divided_along_nodes(void **state)
{
    (void)state;
    fixture b;
    fixture_open(&b, "");
    uint64_t units = info_number(b.device, DRUPE_INFO_MAX_COMPUTE_UNITS);
    bool divisible = info_number(b.device, DRUPE_INFO_PARTITION_KINDS) & DRUPE_FLAG(DRUPE_SPLIT_EQUALLY);
    fixture_close(&b);
    if (units < 2 || units > 64 || !divisible) skip();
    fixture_open(&b, "nodes");
    drupe_partition numa = {.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_DOMAIN_NUMA};
    drupe_device *subs[64];
    size_t count;
    assert_int_equal(info_number(b.device, DRUPE_INFO_PARTITION_KINDS), DRUPE_FLAG(DRUPE_SPLIT_AFFINITY));
    assert_int_equal(info_number(b.device, DRUPE_INFO_PARTITION_DOMAINS),
                     DRUPE_FLAG(DRUPE_DOMAIN_NUMA) | DRUPE_FLAG(DRUPE_DOMAIN_NEXT));
    assert_int_equal(B->device_parts(b.device, DRUPE_DOMAIN_NUMA, &count), DRUPE_OK);
    assert_int_equal(count, units);
    assert_int_equal(try_split(b.device, &numa, subs, count), DRUPE_OK);
    assert_int_equal(info_number(subs[1], DRUPE_INFO_MAX_COMPUTE_UNITS), 1);
    for (size_t i = 0; i < count; i++) close_device(subs[i]);
    assert_error(B->device_parts(b.device, DRUPE_DOMAIN_L3, &count), DRUPE_E_UNSUPPORTED, "affinity domain");
    fixture_close(&b);
}

/* --- Properties ----------------------------------------------------------------------------------------- */

static void all_properties(void **state)
{
    (void)state;
    static const drupe_info_type types[] = {
#define DRUPE_INFO(key, type, enumeration, name, doc) DRUPE_INFO_##type,
#include "drupe/device_info.def"
#undef DRUPE_INFO
    };
    fixture b;
    fixture_open(&b, "");
    for (int key = 0; key < DRUPE_INFO_COUNT; key++) {
        uint64_t numbers[3] = {0};
        drupe_text text = {0};
        drupe_status status = B->device_info(b.device, (drupe_info)key, numbers, &text);
        if (status != DRUPE_E_UNSUPPORTED) assert_int_equal(status, DRUPE_OK); /* the driver does not tell */
        if (types[key] == DRUPE_INFO_STRING)
            assert_int_equal(strlen(drupe_text_get(&text)), text.length);
        else
            assert_int_equal(types[key] == DRUPE_INFO_LIST ? text.length % 8 : text.length, 0);
        if (key == DRUPE_INFO_NAME) assert_true(text.length > 0);
        if (types[key] == DRUPE_INFO_BOOL) assert_true(numbers[0] <= 1);
        drupe_text_clear(&text);
    }
    /* Every driver has to tell these. */
    static const drupe_info always[] = {
        DRUPE_INFO_VENDOR_ID,
        DRUPE_INFO_AVAILABLE,
        DRUPE_INFO_LOCAL_MEM_TYPE,
        DRUPE_INFO_HAS_IMAGE,
        DRUPE_INFO_GLOBAL_MEM_CACHE_TYPE,
        DRUPE_INFO_SINGLE_FP_CONFIG,
        DRUPE_INFO_PREFERRED_FLOAT,
        DRUPE_INFO_NATIVE_DOUBLE,
        DRUPE_INFO_ERROR_CORRECTION,
        DRUPE_INFO_HAS_ONLINE_LINKER,
        DRUPE_INFO_PLATFORM_INDEX,
        DRUPE_INFO_PARTITION_KINDS,
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(always); i++) {
        uint64_t number[3];
        assert_int_equal(B->device_info(b.device, always[i], number, NULL), DRUPE_OK);
    }
    assert_true(info_number(b.device, DRUPE_INFO_MAX_COMPUTE_UNITS) > 0);
    assert_true(info_number(b.device, DRUPE_INFO_GLOBAL_MEM_SIZE) > 1 << 20);
    assert_true(info_number(b.device, DRUPE_INFO_MEM_BASE_ALIGN) >= 16);
    assert_true(info_number(b.device, DRUPE_INFO_LANGUAGES) & DRUPE_LANG_OPENCL_C);
    fixture_close(&b);
}

static void support_by_tier(void **state)
{
    (void)state;
    need_memory();
    static const struct {
        const char *words;
        drupe_usm_support device, shared, host;
    } cases[] = {
        {"coarse", DRUPE_USM_NATIVE, DRUPE_USM_NONE, DRUPE_USM_NONE},
        {"nosvm", DRUPE_USM_NONE, DRUPE_USM_NONE, DRUPE_USM_NONE},
        {"old", DRUPE_USM_NONE, DRUPE_USM_NONE, DRUPE_USM_NONE},
        {"intel", DRUPE_USM_NATIVE, DRUPE_USM_NATIVE, DRUPE_USM_NATIVE},
        {"intel noshared", DRUPE_USM_NATIVE, DRUPE_USM_NONE, DRUPE_USM_NATIVE},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        void *library = load_backend(cases[i].words);
        drupe_device *device = make_device(library, 0);
        assert_int_equal(info_number(device, DRUPE_INFO_USM_DEVICE), cases[i].device);
        assert_int_equal(info_number(device, DRUPE_INFO_USM_SHARED), cases[i].shared);
        assert_int_equal(info_number(device, DRUPE_INFO_USM_HOST), cases[i].host);
        close_device(device);
        B->unload(library);
    }
}

/* --- Sub-devices ---------------------------------------------------------------------------------------- */

static void fill_on(drupe_context *context, drupe_device *device)
{
    drupe_queue *queue;
    drupe_program *program;
    drupe_kernel *kernel;
    int *data = NULL;
    assert_int_equal(try_queue(context, device, 0, &queue), DRUPE_OK);
    assert_int_equal(try_program(context, device,
                                 "kernel void set(global int *a) { a[get_global_id(0)] = 7; }", NULL, NULL,
                                 &program),
                     DRUPE_OK);
    assert_int_equal(try_kernel(program, "set", &kernel), DRUPE_OK);
    assert_int_equal(B->mem_alloc(context, device, DRUPE_MEM_SHARED, 256 * sizeof *data, 64, (void **)&data),
                     DRUPE_OK);
    memset(data, 0, 256 * sizeof *data);
    drupe_submit s = {.queue = queue};
    drupe_range range = {.dims = 1, .global = {256}};
    drupe_arg arg = {DRUPE_ARG_POINTER, sizeof(void *), &data};
    assert_int_equal(B->submit_kernel(&s, kernel, &range, &arg, 1), DRUPE_OK);
    wait_idle(queue);
    for (int i = 0; i < 256; i++) assert_int_equal(data[i], 7);
    B->mem_free(context, device, DRUPE_MEM_SHARED, data);
    close_kernel(kernel);
    close_program(program);
    close_queue(queue);
}

static void sub_devices_work(void **state)
{
    (void)state;
    fixture b;
    fixture_open(&b, "");
    uint64_t units = info_number(b.device, DRUPE_INFO_MAX_COMPUTE_UNITS);
    uint64_t kinds = info_number(b.device, DRUPE_INFO_PARTITION_KINDS);
    if (units < 2 || !(kinds & DRUPE_FLAG(DRUPE_SPLIT_EQUALLY)) ||
        !info_number(b.device, DRUPE_INFO_USM_SHARED)) {
        fixture_close(&b);
        skip();
    }
    drupe_device *subs[64];
    uint32_t one = 1, counts[2] = {1, 1};
    drupe_partition equally = {DRUPE_SPLIT_EQUALLY, 1, &one, DRUPE_DOMAIN_NONE},
                    by_counts = {DRUPE_SPLIT_COUNTS, 2, counts, DRUPE_DOMAIN_NONE};
    assert_true(units <= 64);
    assert_int_equal(try_split(b.device, &equally, subs, units), DRUPE_OK);
    assert_int_equal(info_number(subs[0], DRUPE_INFO_MAX_COMPUTE_UNITS), 1);
    assert_int_equal(info_number(subs[0], DRUPE_INFO_PARTITION_MAX), 0);
    fill_on(b.context, subs[1]); /* in the root's context, which is older */
    drupe_context *wider = make_context((drupe_device *[]){b.device, subs[0], subs[1]}, 3);
    fill_on(wider, subs[0]);
    close_context(wider);
    for (size_t i = 0; i < units; i++) close_device(subs[i]);
    if (kinds & DRUPE_FLAG(DRUPE_SPLIT_COUNTS)) {
        assert_int_equal(try_split(b.device, &by_counts, subs, 2), DRUPE_OK);
        fill_on(b.context, subs[0]);
        close_device(subs[0]);
        close_device(subs[1]);
    }
    fixture_close(&b);
}

static void strict_contexts(void **state)
{
    (void)state;
    fixture b;
    fixture_open(&b, "strict");
    uint64_t units = info_number(b.device, DRUPE_INFO_MAX_COMPUTE_UNITS);
    if (units != 2 ||
        !(info_number(b.device, DRUPE_INFO_PARTITION_KINDS) & DRUPE_FLAG(DRUPE_SPLIT_EQUALLY))) {
        fixture_close(&b);
        skip();
    }
    drupe_device *subs[2];
    uint32_t one = 1;
    drupe_partition equally = {DRUPE_SPLIT_EQUALLY, 1, &one, DRUPE_DOMAIN_NONE};
    assert_int_equal(try_split(b.device, &equally, subs, 2), DRUPE_OK);
    drupe_queue *queue;
    assert_error(try_queue(b.context, subs[0], 0, &queue), DRUPE_E_UNSUPPORTED, "opened over them");
    close_device(subs[0]);
    close_device(subs[1]);
    fixture_close(&b);
}

const struct CMUnitTest limit_tests[] = {
    cmocka_unit_test(missing_library),       cmocka_unit_test(nothing_behind_the_loader),
    cmocka_unit_test(likely_looks_at_nodes), cmocka_unit_test(all_properties),
    cmocka_unit_test(cards_of_vendors),      cmocka_unit_test(divided_along_nodes),
    cmocka_unit_test(support_by_tier),       cmocka_unit_test(sub_devices_work),
    cmocka_unit_test(strict_contexts),       {0}};
