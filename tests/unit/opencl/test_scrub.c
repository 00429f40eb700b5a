/* What a process leaves in local memory, and that it is overwritten at its end. */
#include "backends/opencl/opencl.h"
#include "base/base.h"
#include "stand_in.h"
#include <stdlib.h>

#define B      (&drupe_backend_opencl)
#define SECRET 0x5ec4e7u
#define GROUPS 256

static const char text[] =
    "kernel void leave(volatile local uint *words, uint count, global uint *found) {\n"
    "    for (uint i = get_local_id(0); i < count; i += get_local_size(0)) words[i] = 0x5ec4e7;\n"
    "    if (found[0] == 0xffffffffu) found[0] = words[0];\n"
    "}\n"
    "kernel void look(volatile local uint *words, uint count, global uint *found) {\n"
    "    uint sum = 0;\n"
    "    for (uint i = get_local_id(0); i < count; i += get_local_size(0)) sum += words[i] == 0x5ec4e7;\n"
    "    if (sum) atomic_add(found, sum);\n"
    "}\n";

/* Run one of them over all local memory, in every compute unit; the words with the secret that it found. */
static unsigned run(fixture *b, const char *name)
{
    drupe_program *program;
    drupe_kernel *kernel;
    void *found = NULL;
    unsigned count = 0;
    const unsigned words = (unsigned)(info_number(b->device, DRUPE_INFO_LOCAL_MEM_SIZE) / sizeof count);
    assert_int_equal(try_program(b->context, b->device, text, NULL, NULL, &program), DRUPE_OK);
    assert_int_equal(try_kernel(program, name, &kernel), DRUPE_OK);
    assert_int_equal(B->mem_alloc(b->context, b->device, DRUPE_MEM_DEVICE, sizeof count, 64, &found),
                     DRUPE_OK);
    drupe_submit s = {.queue = b->queue};
    assert_int_equal(B->submit_copy(&s, found, &count, sizeof count), DRUPE_OK);
    const drupe_arg args[] = {{.kind = DRUPE_ARG_LOCAL, .size = words * sizeof words},
                              {.kind = DRUPE_ARG_VALUE, .size = sizeof words, .value = &words},
                              {.kind = DRUPE_ARG_POINTER, .size = sizeof found, .value = &found}};
    const drupe_range range = {.dims = 1, .global = {GROUPS * 32}, .local = {32}};
    assert_int_equal(B->submit_kernel(&s, kernel, &range, args, 3), DRUPE_OK);
    assert_int_equal(B->submit_copy(&s, &count, found, sizeof count), DRUPE_OK);
    wait_idle(b->queue);
    B->mem_free(b->context, b->device, DRUPE_MEM_DEVICE, found);
    close_kernel(kernel);
    close_program(program);
    return count;
}

/* On this driver the next kernel finds what the one before it left: else this would test nothing. */
static void local_memory_is_overwritten(void **state)
{
    (void)state;
    need_memory();
    fixture b;
    fixture_open(&b, "gpu");
    run(&b, "leave");
    if (run(&b, "look") == 0) {
        fixture_close(&b);
        skip();
    }
    run(&b, "leave");
    /* The compute units of this GPU are threads. On a busy machine one may run all groups of a launch. */
    unsigned found = 1;
    for (int i = 0; i < 100 && found; i++) {
        assert_int_equal(B->device_scrub(b.device), DRUPE_OK);
        found = run(&b, "look");
    }
    assert_int_equal(found, 0);
    fixture_close(&b);
}

/* It can be asked again, and leaves nothing open: leaks are looked for. */
static void every_device_can_be_asked(void **state)
{
    (void)state;
    static const char *const words[] = {"", "gpu", "gpu coarse", "gpu nosvm", "gpu fault"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(words); i++) {
        fixture b;
        fixture_open(&b, words[i]);
        assert_int_equal(B->device_scrub(b.device), DRUPE_OK);
        assert_int_equal(B->device_scrub(b.device), DRUPE_OK);
        fixture_close(&b);
    }
}

const struct CMUnitTest scrub_tests[] = {
    cmocka_unit_test(local_memory_is_overwritten), cmocka_unit_test(every_device_can_be_asked), {0}};
