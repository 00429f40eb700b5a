/* Programs of the quick compiler on the host device: where its code lives and how long, and what a fault in
 * it does. Its results are compared with those of the C compiler in Python. */
#include "backends/services.h"
#include "base/base.h"
#include "core/fault/fault_room.h"
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG    UINT64_C(30000000000)
#define ITEMS   1000
#define OPTIONS "-drupe-table -drupe-quick"

#define OK(expression) check((expression), #expression, __LINE__)

static void check(drupe_status status, const char *what, int line)
{
    if (status != DRUPE_OK) fail_msg("line %d: %s: %s", line, what, drupe_error_last()->text);
}

struct bench {
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queue;
    drupe_memory *memory;
    long long *out;
};

static void on_fault(int signal, siginfo_t *info, void *context)
{
    int verdict = drupe_fault_claim(signal, info, context);
    if (verdict == DRUPE_FAULT_RETURN) return;
    if (verdict == DRUPE_FAULT_PARK) {
        for (;;) pause();
    }
    _exit(128 + signal);
}

/* cmocka sets handlers of its own before each test and fixture. */
static struct bench *begin(void **state)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    action.sa_sigaction = on_fault;
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < DRUPE_COUNT_OF(signals); i++) sigaction(signals[i], &action, NULL);
    struct bench *bench = *state;
    memset(bench->out, 0, ITEMS * sizeof *bench->out);
    return bench;
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    drupe_fault_contain();
    OK(drupe_device_select("host", &bench->device));
    OK(drupe_device_context(bench->device, &bench->context));
    OK(drupe_queue_open(bench->context, bench->device, 0, &bench->queue));
    OK(drupe_memory_alloc(bench->queue, DRUPE_MEM_SHARED, ITEMS * sizeof *bench->out, 0, &bench->memory));
    bench->out = drupe_memory_pointer(bench->memory);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    drupe_failure failure;
    while (drupe_failure_take(&failure)) {}
    drupe_memory_release(bench->memory);
    drupe_queue_release(bench->queue);
    drupe_context_release(bench->context);
    drupe_device_release(bench->device);
    free(bench);
    return drupe_library_close(LONG) == 0 ? 0 : -1;
}

/* --- Programs --------------------------------------------------------------------------------------------
 */

/* `body` is a function run(begin, end, n, args) of one argument, a pointer to long long. */
#define TEXT(body)                                                                                           \
    body "static const drupe_param_ params[] = {{1, 7, 0, 8, \"out\", \"long long *\"}};\n"                  \
         "const drupe_entry_ drupe_entries_[] = {{\"f\", 1, params, run}, {0, 0, 0, 0}};\n"
#define HEAD                                                                                                 \
    "static void run(drupe_size_ begin, drupe_size_ end, drupe_size_ n, const void *const *args)\n"          \
    "{ long long *out = *(long long *const *)args[1];\n"
#define PUT(value) TEXT(HEAD "for (drupe_size_ i = begin; i < end; i++) out[i] = (" value "); }\n")

static drupe_status open_text(struct bench *bench, const char *text, const char *options, char **log,
                              drupe_program **program)
{
    drupe_source source = {.language = DRUPE_LANG_C, .bytes = text, .size = strlen(text), .options = options};
    return drupe_program_open(bench->context, bench->device, &source, log, program);
}

static void open_kernel(struct bench *bench, const char *text, const char *options, drupe_kernel **kernel)
{
    drupe_program *program;
    OK(open_text(bench, text, options, NULL, &program));
    assert_string_equal(drupe_program_kernel_names(program), "f");
    OK(drupe_kernel_open(program, "f", kernel));
    drupe_program_release(program);
}

static void launch(struct bench *bench, drupe_queue *queue, drupe_kernel *kernel, drupe_event **event)
{
    drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof(void *), &bench->out}};
    drupe_range range = {.dims = 1, .global = {ITEMS}};
    drupe_submission s = {.queue = queue};
    OK(drupe_submit_kernel(&s, kernel, &range, args, 1, event));
}

static drupe_status run_text(struct bench *bench, const char *text, const char *options)
{
    drupe_kernel *kernel;
    drupe_event *event;
    open_kernel(bench, text, options, &kernel);
    launch(bench, bench->queue, kernel, &event);
    drupe_kernel_release(kernel);
    drupe_status status = drupe_event_wait(event, LONG);
    drupe_event_release(event);
    return status;
}

static void expect_values(const struct bench *bench, long long first, long long step)
{
    for (long long i = 0; i < ITEMS; i++) assert_int_equal(bench->out[i], first + i * step);
}

static int lines_of_maps(const char *word)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) count += strstr(line, word) != NULL;
    fclose(maps);
    return count;
}

static drupe_status nothing(void *user)
{
    (void)user;
    return DRUPE_OK;
}

/* Of programs that somebody has: what finished work kept is dropped by what comes behind it, in time. */
static int maps_of_programs(struct bench *bench)
{
    drupe_submission s = {.queue = bench->queue};
    int least = lines_of_maps("memfd:drupe-quick");
    for (int i = 0; i < 10; i++) {
        OK(drupe_submit_host(&s, nothing, NULL, NULL));
        OK(drupe_queue_wait(bench->queue, LONG));
        const int count = lines_of_maps("memfd:drupe-quick");
        if (count < least) least = count;
    }
    return least;
}

/* --- Tests -----------------------------------------------------------------------------------------------
 */

static void results(void **state)
{
    struct bench *bench = begin(state);
    OK(run_text(bench, PUT("3 * i + ADD"), OPTIONS " -O2 -DADD=7"));
    expect_values(bench, 7, 3);
    OK(run_text(bench,
                TEXT(HEAD "static long long zero, count[2] = {5, 6};\n"
                          "for (; begin < end; begin++) out[begin] = zero + count[1]; }\n"),
                OPTIONS));
    expect_values(bench, 6, 0);
}

/* Code is where nothing can be written to, and goes with the last user of it. */
static void many_programs(void **state)
{
    struct bench *bench = begin(state);
    drupe_kernel *kept[8];
    const int before = maps_of_programs(bench);
    for (int round = 0; round < 300; round++) {
        char options[64];
        drupe_event *event;
        snprintf(options, sizeof options, OPTIONS " -DN=%d", round);
        if (round >= 8) drupe_kernel_release(kept[round % 8]);
        open_kernel(bench, PUT("i + N"), options, &kept[round % 8]);
        launch(bench, bench->queue, kept[round % 8], &event);
        OK(drupe_event_wait(event, LONG));
        drupe_event_release(event);
        expect_values(bench, round, 1);
    }
    assert_true(lines_of_maps("memfd:drupe-quick") >= before + 8);
    assert_int_equal(lines_of_maps("rwx"), 0);
    for (int i = 0; i < 8; i++) drupe_kernel_release(kept[i]);
    assert_int_equal(maps_of_programs(bench), before);
}

static void refused(struct bench *bench, const char *text, const char *options, drupe_status expected,
                    const char *part)
{
    drupe_program *program;
    char *log;
    assert_int_equal(open_text(bench, text, options, &log, &program), expected);
    if (!strstr(drupe_error_last()->text, part)) fail_msg("'%s': %s", part, drupe_error_last()->text);
    if (expected == DRUPE_E_BUILD_FAILED) {
        assert_non_null(log);
        assert_non_null(strstr(log, part));
    }
    free(log);
}

static void mistakes_are_told(void **state)
{
    struct bench *bench = begin(state);
    refused(bench, PUT("nothing"), OPTIONS, DRUPE_E_BUILD_FAILED, "program.c:3: error: 'nothing' undeclared");
    refused(bench, PUT("later(i)") "long long later(long long i) { return i; }", OPTIONS,
            DRUPE_E_BUILD_FAILED, "implicit declaration of function 'later'");
    refused(bench, "long long nowhere(long long i);\n" PUT("nowhere(i)"), OPTIONS, DRUPE_E_BUILD_FAILED,
            "undefined symbol 'nowhere'");
    refused(bench, "#include <math.h>\n" PUT("i"), OPTIONS, DRUPE_E_BUILD_FAILED, "'math.h' not found");
    refused(bench, "int x;\n#error no more\n", OPTIONS, DRUPE_E_BUILD_FAILED, "no more");
    refused(bench, "int x;", OPTIONS, DRUPE_E_BUILD_FAILED, "'drupe_kernels_3' is not defined");
    refused(bench, "const drupe_entry_ drupe_entries_[] = {{0, 0, 0, 0}};", OPTIONS, DRUPE_E_BUILD_FAILED,
            "kernel in the program");
    refused(bench, PUT("i"), "-drupe-quick", DRUPE_E_INVALID, "-drupe-table");
    refused(bench, PUT("i"), OPTIONS " -I/tmp", DRUPE_E_INVALID, "-I/tmp");
    refused(bench, PUT("i"), OPTIONS " -lm", DRUPE_E_INVALID, "-lm");
    refused(bench, TEXT(HEAD "char large[200000]; large[begin] = 1; out[0] = large[end]; }\n"), OPTIONS,
            DRUPE_E_UNSUPPORTED, "more than 131072");
    OK(run_text(bench, PUT("i"), OPTIONS));
    expect_values(bench, 0, 1);
}

/* What comes after a mistake is as good as ever, and nothing is kept of it. */
static void mistakes_leave_nothing(void **state)
{
    struct bench *bench = begin(state);
    const int before = maps_of_programs(bench);
    for (int round = 0; round < 100; round++) {
        refused(bench, PUT("i +"), OPTIONS, DRUPE_E_BUILD_FAILED, "error");
        refused(bench, "extern int x, *y = &x;" PUT("*y"), OPTIONS, DRUPE_E_BUILD_FAILED, "undefined symbol");
    }
    assert_int_equal(maps_of_programs(bench), before);
}

/* --- Threads ---------------------------------------------------------------------------------------------
 */

struct compiling {
    pthread_t thread;
    struct bench *bench;
    int number, wrong;
};

static void *compile_many(void *user)
{
    struct compiling *self = user;
    struct bench *bench = self->bench;
    for (int round = 0; round < 40; round++) {
        char options[64];
        drupe_program *program = NULL;
        drupe_kernel *kernel = NULL;
        drupe_event *event = NULL;
        long long *pointer = &bench->out[self->number];
        drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof(void *), &pointer}};
        drupe_range range = {.dims = 1, .global = {1}};
        drupe_submission s = {.queue = bench->queue};
        snprintf(options, sizeof options, OPTIONS " -DN=%d", 1000 * self->number + round);
        if (round % 8 == 7 && open_text(bench, PUT("wrong"), options, NULL, &program) != DRUPE_E_BUILD_FAILED)
            self->wrong++;
        if (open_text(bench, PUT("N"), options, NULL, &program) != DRUPE_OK ||
            drupe_kernel_open(program, "f", &kernel) != DRUPE_OK ||
            drupe_submit_kernel(&s, kernel, &range, args, 1, &event) != DRUPE_OK ||
            drupe_event_wait(event, LONG) != DRUPE_OK || *pointer != 1000 * self->number + round)
            self->wrong++;
        drupe_event_release(event);
        drupe_kernel_release(kernel);
        drupe_program_release(program);
    }
    return NULL;
}

static void threads_compile_at_once(void **state)
{
    struct bench *bench = begin(state);
    struct compiling all[4];
    for (int i = 0; i < 4; i++) {
        all[i] = (struct compiling){.bench = bench, .number = i};
        assert_int_equal(pthread_create(&all[i].thread, NULL, compile_many, &all[i]), 0);
    }
    for (int i = 0; i < 4; i++) pthread_join(all[i].thread, NULL);
    for (int i = 0; i < 4; i++) assert_int_equal(all[i].wrong, 0);
}

/* --- Life ------------------------------------------------------------------------------------------------
 */

static drupe_status wait_for_gate(void *gate)
{
    while (!atomic_load((_Atomic(bool) *)gate)) sched_yield();
    return DRUPE_OK;
}

static void work_keeps_its_code(void **state)
{
    struct bench *bench = begin(state);
    _Atomic(bool) gate = false;
    drupe_kernel *kernel;
    drupe_event *event;
    const int before = maps_of_programs(bench);
    drupe_submission s = {.queue = bench->queue};
    OK(drupe_submit_host(&s, wait_for_gate, &gate, NULL));
    open_kernel(bench, PUT("5 * i"), OPTIONS, &kernel);
    launch(bench, bench->queue, kernel, &event);
    drupe_kernel_release(kernel);
    assert_true(lines_of_maps("memfd:drupe-quick") > before);
    atomic_store(&gate, true);
    OK(drupe_event_wait(event, LONG));
    drupe_event_release(event);
    expect_values(bench, 0, 5);
    assert_int_equal(maps_of_programs(bench), before);
}

/* A build that nobody waits for is done all the same, and dropped. */
static void a_build_that_is_left(void **state)
{
    struct bench *bench = begin(state);
    const char *text = PUT("i");
    drupe_source source = {.language = DRUPE_LANG_C, .bytes = text, .size = strlen(text), .options = OPTIONS};
    drupe_build *build;
    drupe_program *program;
    char *log;
    const int before = maps_of_programs(bench);
    OK(drupe_build_begin(bench->context, bench->device, &source, &build));
    drupe_build_leave(build);
    assert_int_equal(drupe_builds(), 0);
    assert_int_equal(maps_of_programs(bench), before);
    OK(drupe_build_begin(bench->context, bench->device, &source, &build));
    assert_true(drupe_build_wait(build, 0));
    OK(drupe_build_take(build, &log, &program));
    assert_null(log);
    drupe_program_release(program);
    assert_int_equal(drupe_builds(), 0);
}

/* --- Faults ----------------------------------------------------------------------------------------------
 */

static int count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = -2;
    assert_non_null(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

static void faults(struct bench *bench, const char *text, const char *part)
{
    assert_int_equal(run_text(bench, text, OPTIONS), DRUPE_E_DEVICE_LOST);
    const char *told = drupe_error_last()->text;
    if (!strstr(told, "kernel 'f' faulted in the work-items") || !strstr(told, part)) fail_msg("%s", told);
    drupe_memory_accept(bench->memory);
    OK(run_text(bench, PUT("i"), OPTIONS));
    expect_values(bench, 0, 1);
}

/* A thread leaves its own code and goes on; one that is in the C library is replaced. */
static void faults_are_contained(void **state)
{
    struct bench *bench = begin(state);
    OK(run_text(bench, PUT("i"), OPTIONS));
    const int before = count_threads();
    for (int round = 0; round < 5; round++) {
        faults(bench, TEXT(HEAD "*(volatile long long *)16 = out[begin]; }\n"), "address 0x10");
        faults(bench, TEXT(HEAD "volatile int zero = 0; out[0] = 5 / zero; }\n"), "SIGFPE");
    }
    assert_int_equal(count_threads(), before);
}

static void full_stacks_are_contained(void **state)
{
    struct bench *bench = begin(state);
    faults(bench,
           "static int deep(int n) { volatile char large[100000]; large[0] = n; return deep(n + 1) + "
           "large[0]; }\n" TEXT(HEAD "out[0] = deep(0); }\n"),
           "SIGSEGV");
    OK(run_text(bench,
                "void *alloca(drupe_size_);\n" TEXT(HEAD "for (; begin < end; begin++) {\n"
                                                         "  char *a = alloca(100), *b = alloca(5000), c[7];\n"
                                                         "  a[99] = 1; b[0] = b[4999] = 2; c[6] = 3;\n"
                                                         "  out[begin] = a[99] + b[0] + b[4999] + c[6]\n"
                                                         "    + ((unsigned long long)b % 16 != 0); }}\n"),
                OPTIONS));
    expect_values(bench, 8, 0);
}

#ifndef __SANITIZE_ADDRESS__ /* which does not hear of threads that end so */
static void functions_that_are_called_fault(void **state)
{
    struct bench *bench = begin(state);
    faults(bench, TEXT(HEAD "((void (*)(void))24)(); out[0] = end; }\n"), "address 0x18");
    faults(bench,
           "void *memset(void *, int, drupe_size_);\n" TEXT(
               HEAD "memset((void *)32, 1, 4096); out[0] = begin; }\n"),
           "SIGSEGV");
    faults(bench,
           "void *alloca(drupe_size_);\n" TEXT(
               HEAD "char *large = alloca(1ull << 30); large[0] = 1; out[0] = large[0]; }\n"),
           "SIGSEGV");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results),
        cmocka_unit_test(many_programs),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(mistakes_leave_nothing),
        cmocka_unit_test(threads_compile_at_once),
        cmocka_unit_test(work_keeps_its_code),
        cmocka_unit_test(a_build_that_is_left),
        cmocka_unit_test(faults_are_contained),
        cmocka_unit_test(full_stacks_are_contained),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(functions_that_are_called_fault),
#endif
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
