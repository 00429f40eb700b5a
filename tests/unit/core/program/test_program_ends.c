/* Programs at their ends: no host memory, one allocation after the other, and a forked child. */
#include "core_ends.h"

static const drupe_source builtin = {.language = DRUPE_LANG_BUILTIN};

static void programs(void)
{
    drupe_program *program = NULL;
    drupe_kernel *kernel = NULL;
    char *log = NULL;
    if (ends_good(drupe_program_open(bench.context, bench.device, &builtin, &log, &program)) &&
        ends_good(drupe_kernel_open(program, "test_mad", &kernel)))
        assert_string_equal(drupe_kernel_name(kernel), "test_mad");
    free(log);
    drupe_kernel_release(kernel);
    drupe_program_release(program);
}

static void builds(void)
{
    drupe_program *program = NULL;
    drupe_build *build = NULL;
    char *log = NULL;
    drupe_source source = builtin;
    source.options = "inline";
    if (ends_good(drupe_build_begin(bench.context, bench.device, &source, &build)))
        ends_good(drupe_build_take(build, &log, &program));
    drupe_program_release(program);
    free(log);
    if (ends_good(drupe_build_begin(bench.context, bench.device, &source, &build))) drupe_build_leave(build);
    drupe_builds_end(LONG);
    assert_int_equal(drupe_builds(), 0);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    ends_walk(programs);
    ends_walk(builds);
}

static void in_the_child(void)
{
    drupe_program *program;
    drupe_kernel *kernel;
    drupe_build *build;
    drupe_arg_info info;
    uint64_t number;
    void *bytes;
    size_t size;
    ENDS_FORKED(drupe_program_open(bench.context, bench.device, &builtin, NULL, &program));
    ENDS_FORKED(drupe_build_begin(bench.context, bench.device, &builtin, &build));
    ENDS_FORKED(drupe_kernel_open(bench.program, "test_mad", &kernel));
    ENDS_FORKED(drupe_kernel_number(bench.mad, DRUPE_KERNEL_ARG_COUNT, &number));
    ENDS_FORKED(drupe_kernel_arg(bench.mad, 0, &info));
    ENDS_FORKED(drupe_program_binary(bench.program, &bytes, &size));
    drupe_builds_end(0);
    drupe_kernel_release(bench.mad);
    drupe_program_release(bench.program);
}

static void a_forked_child_is_told_so(void **state)
{
    ends_setup(state);
    ends_in_child(in_the_child);
    assert_int_equal(bench_teardown(state), 0);
}

static void sources_are_checked(void **state)
{
    drupe_program *program;
    drupe_kernel *kernel;
    void *bytes;
    size_t size;
    ends_setup(state);
    const drupe_source text = {.language = DRUPE_LANG_OPENCL_C, .bytes = "x", .size = 1};
    const drupe_source none = {.language = (drupe_language)1024}, empty = {.language = DRUPE_LANG_C};
    FAILS(drupe_program_open(bench.context, bench.device, &text, NULL, &program), DRUPE_E_UNSUPPORTED, "");
    assert_int_not_equal(drupe_program_open(bench.context, bench.device, &none, NULL, &program), DRUPE_OK);
    assert_int_not_equal(drupe_program_open(bench.context, bench.device, &empty, NULL, &program), DRUPE_OK);
    assert_null(program);
    FAILS(drupe_program_binary(bench.program, &bytes, &size), DRUPE_E_UNSUPPORTED, "");
    FAILS(drupe_kernel_open(bench.program, "no_such_kernel", &kernel), DRUPE_E_NOT_FOUND, "no_such_kernel");
    assert_int_equal(bench_teardown(state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forked_child_is_told_so), /* before threads of builds end by themselves */
        cmocka_unit_test(without_memory_nothing_is_left),
        cmocka_unit_test(sources_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
