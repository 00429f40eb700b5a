/* Builds on a thread of their own: who waits for them, who leaves, and the end of the process. */
#include "base/file.h"
#include "kernel_fixture.h"

static void who_waits_takes_the_program(void **state)
{
    (void)state;
    char text[] = "names", options[] = "-DX";
    drupe_source source = script_source(text);
    drupe_build *build;
    drupe_program *program;
    char *log;
    source.options = options;
    close_door();
    OK(drupe_build_begin(script.context, script.device, &source, &build));
    memset(text, 'x', 5); /* it is copied */
    options[0] = 'x';
    await_entered();
    assert_int_equal(drupe_builds(), 1);
    assert_false(drupe_build_wait(build, 1000));
    open_door();
    assert_true(drupe_build_wait(build, LONG));
    OK(drupe_build_take(build, &log, &program));
    assert_string_equal(log, "a remark");
    assert_string_equal(drupe_program_kernel_names(program), "one;two");
    free(log);
    drupe_program_release(program);
    while (drupe_builds()) continue;
}

static void a_failed_build_is_told_to_who_takes_it(void **state)
{
    (void)state;
    const drupe_source source = script_source("wrong");
    drupe_build *build;
    drupe_program *program;
    char *log;
    OK(drupe_build_begin(script.context, script.device, &source, &build));
    FAILS(drupe_build_take(build, &log, &program), DRUPE_E_BUILD_FAILED, "The compiler says no.");
    assert_null(program);
    free(log);
    while (drupe_builds()) continue;
}

static void who_leaves_drops_what_comes_of_it(void **state)
{
    (void)state;
    const drupe_source source = script_source("text");
    drupe_build *builds[2];
    close_door();
    for (size_t i = 0; i < 2; i++) OK(drupe_build_begin(script.context, script.device, &source, &builds[i]));
    await_entered();
    for (size_t i = 0; i < 2; i++) drupe_build_leave(builds[i]);
    assert_true(drupe_builds() > 0);
    open_door();
    drupe_builds_end(LONG);
    assert_int_equal(drupe_builds(), 0);
}

static void values_of_constants_are_copied(void **state)
{
    (void)state;
    uint32_t number = 5;
    const drupe_spec_value value = {.id = 1, .size = sizeof number, .value = &number};
    drupe_source source = script_source("text");
    drupe_build *build;
    drupe_program *program;
    char *log;
    source.values = &value;
    source.nvalues = 1;
    OK(drupe_build_begin(script.context, script.device, &source, &build));
    FAILS(drupe_build_take(build, &log, &program), DRUPE_E_INVALID, ""); /* text has no such constants */
    free(log);
    while (drupe_builds()) continue;
}

/* Builds end in any order. */
static void a_later_build_may_be_over_first(void **state)
{
    (void)state;
    const drupe_source text = script_source("text");
    drupe_source refused = text;
    drupe_build *first, *second;
    drupe_program *program;
    char *log;
    refused.language = DRUPE_LANG_SPIRV;
    close_door();
    OK(drupe_build_begin(script.context, script.device, &text, &first));
    await_entered();
    OK(drupe_build_begin(script.context, script.device, &refused, &second));
    FAILS(drupe_build_take(second, &log, &program), DRUPE_E_UNSUPPORTED, "does not take SPIR-V");
    assert_false(drupe_build_wait(first, 1000));
    open_door();
    OK(drupe_build_take(first, &log, &program));
    free(log);
    drupe_program_release(program);
    drupe_builds_end(LONG);
    assert_int_equal(drupe_builds(), 0);
}

static drupe_status run_answer;

/* A compiler that is a program of the machine. */
static drupe_status run_process(drupe_program *program, const drupe_source *source, char **log)
{
    static const char *const argv[] = {"/bin/sleep", "60", NULL};
    drupe_text output = {0};
    (void)program, (void)source, (void)log;
    run_answer = drupe_process_run(argv, (drupe_span){NULL, 0}, LONG, &output);
    drupe_text_clear(&output);
    return run_answer;
}

static void who_leaves_stops_a_process(void **state)
{
    (void)state;
    const drupe_source source = script_source("text");
    const uint64_t begin = drupe_now_ns();
    drupe_build *build;
    script.tables[0].program_open = run_process;
    OK(drupe_build_begin(script.context, script.device, &source, &build));
    drupe_build_leave(build);
    drupe_builds_end(LONG);
    assert_int_equal(drupe_builds(), 0);
    assert_int_equal(run_answer, DRUPE_E_CANCELLED);
    assert_true(drupe_now_ns() - begin < LONG);
}

/* What is told of builds: of those in a driver's compiler, once each, also on a thread of their own. */
static int shown, good, bad;

static void *building(const drupe_source *source, const char *device)
{
    (void)source;
    assert_string_equal(device, "host:cpu:0");
    return &shown;
}

static void built(void *what, bool is_good)
{
    shown += what == &shown;
    good += is_good;
    bad += !is_good;
}

static void builds_are_shown(void **state)
{
    (void)state;
    static const drupe_observer observer = {.building = building, .built = built};
    static const char *const texts[] = {"text", "wrong"};
    script.languages[0] = DRUPE_LANG_OPENCL_C | DRUPE_LANG_BUILTIN;
    shown = good = bad = 0;
    drupe_library_observe(&observer);
    for (size_t i = 0; i < 2; i++) {
        drupe_source source = script_source(texts[i]);
        drupe_build *build;
        drupe_program *program;
        char *log;
        (void)!drupe_program_open(script.context, script.device, &source, NULL, &program);
        drupe_program_release(program);
        assert_int_equal(shown, 4 * i + 1);
        OK(drupe_build_begin(script.context, script.device, &source, &build));
        (void)!drupe_build_take(build, &log, &program);
        free(log);
        drupe_program_release(program);
        drupe_builds_end(LONG);
        assert_int_equal(shown, 4 * i + 2);
        source.language = DRUPE_LANG_BUILTIN; /* compiled before */
        OK(drupe_build_begin(script.context, script.device, &source, &build));
        (void)!drupe_build_take(build, &log, &program);
        free(log);
        drupe_program_release(program);
        assert_int_equal(shown, 4 * i + 2);
        shown += 2;
    }
    drupe_library_observe(NULL);
    assert_int_equal(good, 2);
    assert_int_equal(bad, 2);
}

static int early_exits;
static uint32_t standing;

void __wrap_drupe_exit_early(_Atomic(uint32_t) *running);
void __wrap_drupe_exit_early(_Atomic(uint32_t) *running)
{
    early_exits++;
    standing = *running;
}

/* The ends of the drivers would pull away what the compiler works with. */
static void a_build_that_stays_has_the_process_end_early(void **state)
{
    (void)state;
    const drupe_source source = script_source("text");
    drupe_build *build;
    close_door();
    OK(drupe_build_begin(script.context, script.device, &source, &build));
    await_entered();
    drupe_builds_end(1000);
    assert_int_equal(early_exits, 1);
    assert_int_equal(standing, 1);
    drupe_build_leave(build);
    open_door();
    drupe_builds_end(LONG);
    assert_int_equal(early_exits, 1);
    assert_int_equal(drupe_builds(), 0);
}

/* A process that is about to exit does not wait, but must not go on behind the driver's end either, also if
 * such a build begins after that. */
static void nobody_waits_for_the_background(void **state)
{
    (void)state;
    drupe_source source = script_source("text");
    drupe_build *build;
    source.flags = DRUPE_SOURCE_BACKGROUND;
    for (int round = 0; round < 2; round++) {
        early_exits = 0;
        close_door();
        OK(drupe_build_begin(script.context, script.device, &source, &build));
        await_entered();
        if (round == 0) early_exits = 0; /* other tests have told of an end */
        if (round == 0) drupe_builds_end(DRUPE_FOREVER);
        assert_int_equal(early_exits, 1);
        assert_int_equal(standing, 1);
        drupe_build_leave(build);
        open_door();
        while (drupe_builds()) continue;
    }
}

static void what_is_not_stored_is_not_built(void **state)
{
    (void)state;
    drupe_source source = script_source("text");
    drupe_program *program;
    source.flags = DRUPE_SOURCE_STORED;
    FAILS(drupe_program_open(script.context, script.device, &source, NULL, &program), DRUPE_E_NOT_FOUND,
          "The disk cache does not have this program.");
    assert_null(program);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(who_waits_takes_the_program),
        TEST(a_failed_build_is_told_to_who_takes_it),
        TEST(who_leaves_drops_what_comes_of_it),
        TEST(values_of_constants_are_copied),
        TEST(a_later_build_may_be_over_first),
        TEST(who_leaves_stops_a_process),
        TEST(builds_are_shown),
        TEST(a_build_that_stays_has_the_process_end_early),
        TEST(nobody_waits_for_the_background),
        TEST(what_is_not_stored_is_not_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
