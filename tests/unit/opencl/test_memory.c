/* Allocation, copies and fills in every tier of shared memory. */
#include "base/base.h"
#include "stand_in.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define B (&drupe_backend_opencl)
#define N 4096

static const char *const tiers[] = {"", "coarse", "intel", "align"};

static void allocate(fixture *b, drupe_mem_kind kind, size_t size, size_t align, void **pointer)
{
    assert_int_equal(B->mem_alloc(b->context, b->device, kind, size, align, pointer), DRUPE_OK);
    assert_non_null(*pointer);
    assert_int_equal((uintptr_t)*pointer % (align ? align : 8), 0);
}

static void copies_and_interior_pointers(void **state)
{
    (void)state;
    need_memory();
    for (size_t t = 0; t < DRUPE_COUNT_OF(tiers); t++) {
        fixture b;
        fixture_open(&b, tiers[t]);
        int in[N], out[N] = {0};
        for (int i = 0; i < N; i++) in[i] = i * 3;
        int *first, *second;
        allocate(&b, DRUPE_MEM_DEVICE, sizeof in, 64, (void **)&first);
        allocate(&b, DRUPE_MEM_DEVICE, sizeof in, 0, (void **)&second);
        drupe_submit s = {.queue = b.queue};
        assert_int_equal(B->submit_copy(&s, first, in, sizeof in), DRUPE_OK);
        assert_int_equal(B->submit_copy(&s, second + 100, first + 200, 1000 * sizeof *in), DRUPE_OK);
        assert_int_equal(B->submit_copy(&s, out, second + 100, 1000 * sizeof *in), DRUPE_OK);
        wait_idle(b.queue);
        assert_memory_equal(out, in + 200, 1000 * sizeof *in);
        B->mem_free(b.context, b.device, DRUPE_MEM_DEVICE, first);
        B->mem_free(b.context, b.device, DRUPE_MEM_DEVICE, second);
        fixture_close(&b);
    }
}

static void fills(void **state)
{
    (void)state;
    need_memory();
    for (size_t t = 0; t < DRUPE_COUNT_OF(tiers); t++) {
        fixture b;
        fixture_open(&b, tiers[t]);
        unsigned char *memory, out[N], pattern[16];
        for (int i = 0; i < 16; i++) pattern[i] = (unsigned char)(i * 7 + 1);
        allocate(&b, DRUPE_MEM_DEVICE, N, 64, (void **)&memory);
        drupe_submit s = {.queue = b.queue};
        for (size_t size = 1; size <= 16; size *= 2) {
            assert_int_equal(B->submit_fill(&s, memory, "", 1, N), DRUPE_OK);
            assert_int_equal(B->submit_fill(&s, memory + 64, pattern, size, N - 128), DRUPE_OK);
            assert_int_equal(B->submit_copy(&s, out, memory, N), DRUPE_OK);
            wait_idle(b.queue);
            for (size_t i = 0; i < N; i++) {
                assert_int_equal(out[i], i < 64 || i >= N - 64 ? 0 : pattern[(i - 64) % size]);
            }
        }
        assert_int_equal(B->submit_fill(&s, memory + 1, "zzzzzzzz", 8, 64), DRUPE_OK); /* one byte repeated */
        wait_idle(b.queue);
        B->mem_free(b.context, b.device, DRUPE_MEM_DEVICE, memory);
        fixture_close(&b);
    }
}

static void large_fills_are_split(void **state)
{
    (void)state;
    need_memory();
    fixture b;
    fixture_open(&b, "fills");
    void *shim = dlopen(OPENCL_SHIM, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(shim);
    unsigned *count = dlsym(shim, "shim_fill_count");
    const size_t *largest = dlsym(shim, "shim_fill_largest");
    *count = 0;
    void *memory;
    allocate(&b, DRUPE_MEM_DEVICE, N, 64, &memory);
    drupe_event *event = make_event(b.queue);
    drupe_submit s = {.queue = b.queue, .event = event};
    assert_int_equal(B->submit_fill(&s, memory, "abcd", 4, ((size_t)5 << 30) + 4), DRUPE_OK);
    assert_int_equal(B->event_wait(event, DRUPE_FOREVER), DRUPE_OK);
    assert_int_equal(*count, 6);
    assert_int_equal(*largest, (size_t)1 << 30);
    close_event(event);
    B->mem_free(b.context, b.device, DRUPE_MEM_DEVICE, memory);
    fixture_close(&b);
    dlclose(shim);
}

static void alignments(void **state)
{
    (void)state;
    need_memory();
    for (size_t t = 0; t < DRUPE_COUNT_OF(tiers); t++) {
        fixture b;
        fixture_open(&b, tiers[t]);
        void *kept[13];
        drupe_submit s = {.queue = b.queue};
        for (int i = 0; i <= 12; i++) {
            allocate(&b, DRUPE_MEM_DEVICE, 1000, (size_t)1 << i, &kept[i]);
            assert_int_equal(B->submit_fill(&s, kept[i], "x", 1, 1000), DRUPE_OK);
        }
        wait_idle(b.queue);
        for (int i = 0; i <= 12; i++) B->mem_free(b.context, b.device, DRUPE_MEM_DEVICE, kept[i]);
        B->mem_free(b.context, b.device, DRUPE_MEM_DEVICE, NULL);
        fixture_close(&b);
    }
}

static void refuse(const char *words, drupe_mem_kind kind, const char *part)
{
    fixture b;
    void *pointer = NULL;
    fixture_open(&b, words);
    assert_error(B->mem_alloc(b.context, b.device, kind, 64, 64, &pointer), DRUPE_E_UNSUPPORTED, part);
    assert_null(pointer);
    fixture_close(&b);
}

static void kinds_a_tier_lacks(void **state)
{
    (void)state;
    need_memory();
    refuse("coarse", DRUPE_MEM_SHARED, "no shared memory");
    refuse("coarse", DRUPE_MEM_HOST, "allocate device memory and copy");
    refuse("intel noshared", DRUPE_MEM_SHARED, "no shared memory");
    refuse("nosvm", DRUPE_MEM_DEVICE, "no device memory");
    refuse("old", DRUPE_MEM_HOST, "no host memory");
}

static void without_shared_memory(void **state)
{
    (void)state;
    fixture b;
    fixture_open(&b, "old"); /* newer functions end the process: queue, barrier and wait must do without */
    drupe_submit s = {.queue = b.queue};
    char byte = 0;
    assert_int_equal(B->submit_barrier(&s), DRUPE_OK);
    wait_idle(b.queue);
    assert_error(B->submit_copy(&s, &byte, &byte, 1), DRUPE_E_UNSUPPORTED, "no unified");
    fixture_close(&b);
}

static void too_much_memory(void **state)
{
    (void)state;
    need_memory();
    for (size_t t = 0; t < DRUPE_COUNT_OF(tiers); t++) {
        fixture b;
        void *pointer = NULL;
        fixture_open(&b, tiers[t]);
        size_t size = (size_t)1 << 50;
        assert_error(B->mem_alloc(b.context, b.device, DRUPE_MEM_DEVICE, size, 64, &pointer),
                     DRUPE_E_NO_MEMORY, "at most");
        assert_error(B->mem_alloc(b.context, b.device, DRUPE_MEM_DEVICE, SIZE_MAX - 8, 4096, &pointer),
                     DRUPE_E_NO_MEMORY, "bytes) of device memory");
        fixture_close(&b);
    }
}

const struct CMUnitTest memory_tests[] = {cmocka_unit_test(copies_and_interior_pointers),
                                          cmocka_unit_test(fills),
                                          cmocka_unit_test(large_fills_are_split),
                                          cmocka_unit_test(alignments),
                                          cmocka_unit_test(kinds_a_tier_lacks),
                                          cmocka_unit_test(without_shared_memory),
                                          cmocka_unit_test(too_much_memory),
                                          {0}};
