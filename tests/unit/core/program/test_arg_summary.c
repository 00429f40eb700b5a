/* What messages say of the arguments of a submission. */
#include "core/program/program_room.h"
#include "kernel_fixture.h"

static const char *told(const drupe_work *work, const drupe_keep *refs, size_t nrefs, size_t size)
{
    static char text[800];
    drupe_arg_summary summary = {0};
    drupe_arg_summary_take(&summary, work);
    drupe_arg_summary_text(&summary, refs, nrefs, text, size);
    return text;
}

static void numbers_are_told_by_their_type(void **state)
{
    (void)state;
    static const struct {
        drupe_scalar_type type;
        uint64_t bits;
        size_t size;
        const char *text;
    } cases[] = {
        {DRUPE_SCALAR_I8, 0xff, 1, "-1"},
        {DRUPE_SCALAR_U8, 0xff, 1, "255"},
        {DRUPE_SCALAR_I16, 0xfffe, 2, "-2"},
        {DRUPE_SCALAR_U16, 0xfffe, 2, "65534"},
        {DRUPE_SCALAR_I32, 0xfffffffd, 4, "-3"},
        {DRUPE_SCALAR_U32, 0xfffffffd, 4, "4294967293"},
        {DRUPE_SCALAR_I64, UINT64_MAX, 8, "-1"},
        {DRUPE_SCALAR_U64, UINT64_MAX, 8, "18446744073709551615"},
        {DRUPE_SCALAR_F32, 0x3fc00000, 4, "1.5"},
        {DRUPE_SCALAR_F64, 0x4004000000000000, 8, "2.5"},
        {DRUPE_SCALAR_F16, 0x3c00, 2, "0x3c00 (2 bytes)"},
        {DRUPE_SCALAR_UNKNOWN, 7, 3, "0x7 (3 bytes)"},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        char expected[64];
        uint64_t bits = cases[i].bits;
        script.ndeclared = 1;
        script.declared[0] =
            (drupe_arg_info){.kind = DRUPE_ARG_VALUE, .scalar = cases[i].type, .lanes = 1, .name = "x"};
        drupe_kernel *kernel = script_kernel("text");
        const drupe_arg arg = {DRUPE_ARG_VALUE, cases[i].size, &bits};
        const drupe_work work = {.kind = DRUPE_WORK_KERNEL, .kernel = kernel, .args = &arg, .nargs = 1};
        snprintf(expected, sizeof expected, "x = %s; ", cases[i].text);
        assert_string_equal(told(&work, NULL, 0, 600), expected);
        kernel->args[0].lanes = 2; /* no number: its bytes */
        snprintf(expected, sizeof expected, "x = 0x%llx (%zu bytes); ", (unsigned long long)bits,
                 cases[i].size);
        assert_string_equal(told(&work, NULL, 0, 600), expected);
        drupe_kernel_release(kernel);
    }
}

static void memory_is_told_by_kind_and_size(void **state)
{
    (void)state;
    drupe_memory *memory = bench_memory(script.queue, DRUPE_MEM_SHARED, 100);
    char *at = drupe_memory_pointer(memory), expected[128];
    const drupe_keep refs[] = {{memory, drupe_kernel_drop}, {memory, drupe_uses_drop}};
    drupe_work work = {.kind = DRUPE_WORK_COPY, .dst = at + 4, .src = at, .bytes = 8};
    assert_string_equal(told(&work, refs, 2, 600),
                        "8 bytes from shared memory of 100 bytes to shared memory of 100 bytes + 4");
    snprintf(expected, sizeof expected, "8 bytes from 0x%llx, which is not USM to NULL",
             (unsigned long long)(uintptr_t)&work);
    work.src = &work;
    work.dst = NULL;
    assert_string_equal(told(&work, refs, 2, 600), expected);
    snprintf(expected, sizeof expected, "8 bytes from 0x%llx, which is not USM to NULL",
             (unsigned long long)(uintptr_t)(at + 100)); /* behind the memory */
    work.src = at + 100;
    assert_string_equal(told(&work, refs, 2, 600), expected);
    work = (drupe_work){.kind = DRUPE_WORK_FILL, .dst = at, .bytes = 8, .pattern_size = 2};
    assert_string_equal(told(&work, refs, 2, 600),
                        "8 bytes at shared memory of 100 bytes, with a pattern of 2 bytes");
    work.kind = DRUPE_WORK_PREFETCH;
    assert_string_equal(told(&work, refs, 2, 600), "8 bytes at shared memory of 100 bytes");
    assert_string_equal(told(&work, refs, 2, 12), "8 bytes ...");
    assert_string_equal(told(&work, refs, 2, 3), "8 ");
    static const drupe_work_kind silent[] = {DRUPE_WORK_BARRIER, DRUPE_WORK_MARK, DRUPE_WORK_HOST};
    for (size_t i = 0; i < DRUPE_COUNT_OF(silent); i++) {
        work.kind = silent[i];
        assert_string_equal(told(&work, refs, 2, 600), "");
    }
    drupe_memory_release(memory);
}

static void launches_are_told_with_their_range(void **state)
{
    (void)state;
    const drupe_range range = {.dims = 2, .global = {64, 32}, .local = {8, 4}}, odd = {.dims = 9};
    const uint64_t large[2] = {1, 2};
    drupe_arg args[28];
    for (size_t i = 0; i < 28; i++) args[i] = (drupe_arg){DRUPE_ARG_VALUE, 16, large};
    args[1] = (drupe_arg){DRUPE_ARG_LOCAL, 512, NULL};
    drupe_work work = {.kind = DRUPE_WORK_KERNEL, .range = &range, .args = args, .nargs = 2};
    assert_string_equal(told(&work, NULL, 0, 600),
                        "argument 0 = 16 bytes, argument 1 = 512 bytes of local memory; "
                        "64 x 32 work-items in groups of 8 x 4");
    work.nargs = 28;
    assert_non_null(strstr(told(&work, NULL, 0, 800), "argument 23 = 16 bytes and 4 more; 64 x 32"));
    work = (drupe_work){.kind = DRUPE_WORK_KERNEL, .range = &odd};
    assert_string_equal(told(&work, NULL, 0, 600), ""); /* incomplete, as it is when it was refused */
    /* Words lie as the kernel's forms say. */
    script.ndeclared = 1;
    script.declared[0] = (drupe_arg_info){.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_I32, .lanes = 1};
    drupe_kernel *kernel = script_kernel("text");
    const uint64_t words[] = {5};
    work =
        (drupe_work){.kind = DRUPE_WORK_KERNEL, .kernel = kernel, .args = args, .nargs = 1, .words = words};
    assert_string_equal(told(&work, NULL, 0, 600), "argument 0 = 5; ");
    drupe_kernel_release(kernel);
}

static void pointers_are_told_by_what_they_point_to(void **state)
{
    (void)state;
    drupe_memory *memory = bench_memory(script.queue, DRUPE_MEM_HOST, 100);
    char *at = (char *)drupe_memory_pointer(memory) + 8;
    const drupe_keep ref = {memory, drupe_uses_drop};
    void *none = NULL;
    const drupe_range range = {.dims = 1, .global = {7}};
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof at, &at},
                              {DRUPE_ARG_POINTER, 0, &none}, /* its size is known */
                              {DRUPE_ARG_VALUE, 4, NULL}};   /* as a refused one may be */
    const drupe_work work = {.kind = DRUPE_WORK_KERNEL, .range = &range, .args = args, .nargs = 3};
    assert_string_equal(told(&work, &ref, 1, 600),
                        "argument 0 = host memory of 100 bytes + 8, argument 1 = NULL, "
                        "argument 2 = 0x0 (4 bytes); 7 work-items");
    drupe_memory_release(memory);
}

/* What is not declared is told by its bytes, and so are integers whose sign nobody tells. */
static void what_is_not_declared_is_told_by_its_bytes(void **state)
{
    (void)state;
    const uint32_t value = 7;
    const drupe_arg args[] = {{DRUPE_ARG_VALUE, 4, &value}, {DRUPE_ARG_VALUE, 4, &value}};
    drupe_work work = {.kind = DRUPE_WORK_KERNEL, .args = args, .nargs = 2};
    script.ndeclared = 1;
    script.declared[0] = (drupe_arg_info){.scalar = DRUPE_SCALAR_I32, .lanes = 1, .name = "n"};
    script.declared[0].kind = DRUPE_ARG_VALUE;
    work.kernel = script_kernel("text");
    assert_string_equal(told(&work, NULL, 0, 600), "n = 7, argument 1 = 0x7 (4 bytes); "); /* one too many */
    drupe_kernel_release(work.kernel);
    script.declared[0].either_sign = true;
    work.kernel = script_kernel("text");
    work.nargs = 1;
    assert_string_equal(told(&work, NULL, 0, 600), "n = 0x7 (4 bytes); ");
    drupe_kernel_release(work.kernel);
    script.arg_answer = DRUPE_E_UNSUPPORTED;
    work.kernel = script_kernel("text");
    assert_string_equal(told(&work, NULL, 0, 600), "argument 0 = 0x7 (4 bytes); ");
    drupe_kernel_release(work.kernel);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(numbers_are_told_by_their_type),
        TEST(memory_is_told_by_kind_and_size),
        TEST(launches_are_told_with_their_range),
        TEST(pointers_are_told_by_what_they_point_to),
        TEST(what_is_not_declared_is_told_by_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
