/* Runs all tests of the OpenCL backend. */
#include "stand_in.h"

static int run(const char *name, const struct CMUnitTest *tests)
{
    size_t count = 0;
    while (tests[count].name) count++;
    return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
}

int main(void)
{
    int failed = 0;
    failed += run("opencl signals", signal_tests);
    failed += run("opencl precompiled kernels", builtin_tests);
    failed += run("opencl tables", table_tests);
    failed += run("opencl limits", limit_tests);
    failed += run("opencl memory", memory_tests);
    failed += run("opencl queue", queue_tests);
    failed += run("opencl program", program_tests);
    failed += run("opencl scrub", scrub_tests);
    return failed != 0;
}
