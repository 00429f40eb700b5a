/* Runs the suite over the backend named in DRUPE_TEST_BACKEND (host). An argument is a pattern of cases. */
#include "conformance.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define CASE_LIMIT 240 /* seconds: a case that takes longer hangs */
#define SKIPPED    77  /* what ctest takes for "not run" */

static const struct fixture *chosen;

static const conformance_case *const groups[] = {
    cases_device,      cases_memory,   cases_copy,  cases_order,    cases_failure,
    cases_failure_log, cases_cancel,   cases_trace, cases_keep,     cases_time,
    cases_program,     cases_library,  cases_graph, cases_check,    cases_unordered,
    cases_watch,       cases_inferred, cases_reuse, cases_contents, cases_park,
};

/* A case that failed with a closed gate leaves a queue that nobody can drain: the suite must end all the
 * same.
 */
static char overdue[128];
static volatile sig_atomic_t overdue_length;

static void on_alarm(int signal)
{
    (void)signal;
    ssize_t written = write(STDERR_FILENO, overdue, (size_t)overdue_length);
    _exit(written < 0 ? 4 : 3);
}

static void watch(const char *name)
{
    int length = snprintf(overdue, sizeof overdue, "%s has not ended after %d s\n", name, CASE_LIMIT);
    overdue_length = length;
    signal(SIGALRM, on_alarm);
    alarm(CASE_LIMIT);
}

static int setup(void **state)
{
    struct suite *suite = test_calloc(1, sizeof *suite);
    suite->fixture = chosen;
    bench_open(&suite->bench, chosen, NULL);
    *state = suite;
    return 0;
}

static int teardown(void **state)
{
    struct suite *suite = *state;
    bench_close(&suite->bench);
    bench_close(&suite->other);
    bench_close(&suite->remote);
    test_free(suite);
    size_t left = drupe_library_close(20ull * SECOND);
    if (left) print_error("%zu objects are left after the case\n", left);
    return left ? -1 : 0;
}

/* cmocka hands over the state; the case's function is found through its initial state. */
static void run_case(void **state);

struct running {
    struct suite *suite;
    const conformance_case *one;
};

static int setup_case(void **state)
{
    struct running *running = test_calloc(1, sizeof *running);
    running->one = *state;
    watch(running->one->name);
    int result = setup((void **)&running->suite);
    *state = running;
    return result;
}

static int teardown_case(void **state)
{
    struct running *running = *state;
    int result = teardown((void **)&running->suite);
    test_free(running);
    return result;
}

static void run_case(void **state)
{
    struct running *running = *state;
    running->one->run(running->suite);
}

int main(int argc, char **argv)
{
    const char *backend = getenv("DRUPE_TEST_BACKEND");
    setenv("DRUPE_CACHE", "0", 0);
    chosen = fixture_find(backend ? backend : "host");
    drupe_device *device;
    if (!chosen || drupe_device_select(chosen->filter, &device) != DRUPE_OK) {
        printf("no device: %s\n", chosen ? drupe_error_last()->text : "unknown backend");
        return SKIPPED;
    }
    bool takes = drupe_device_number(device, DRUPE_INFO_LANGUAGES, 0) & (uint64_t)chosen->language;
    drupe_device_release(device);
    if (!takes) {
        printf("the device does not take the language of these kernels\n");
        return SKIPPED;
    }
    size_t count = 0;
    struct CMUnitTest tests[256];
    for (size_t g = 0; g < COUNT(groups); g++) {
        for (const conformance_case *one = groups[g]; one->name && count < COUNT(tests); one++) {
            tests[count++] = (struct CMUnitTest){one->name, run_case, setup_case, teardown_case, (void *)one};
        }
    }
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests(chosen->backend, tests, count, NULL, NULL);
}
