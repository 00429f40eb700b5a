/* Binaries of programs over the scripted compiler, what they are tied to, and programs of lost devices. */
#include "core/program/program_room.h"
#include "core_ends.h"
#include "kernel_fixture.h"
#include "walk/wrap.h"

static drupe_status binary_answer, names_answer;
static int binaries, tools;

static drupe_status say(drupe_status status)
{
    return status == DRUPE_OK ? status : drupe_error_set(status, "The compiler says no.");
}

static drupe_status program_binary(drupe_program *program, void **bytes, size_t *size)
{
    (void)program;
    binaries++;
    DRUPE_TRY(say(binary_answer));
    *bytes = strdup("native");
    *size = 6;
    return *bytes ? DRUPE_OK : drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a binary.");
}

static drupe_status program_names(drupe_program *program, char **names)
{
    (void)program;
    if (names_answer == DRUPE_OK) *names = strdup("a;b;c");
    return say(names_answer);
}

static drupe_status program_tools(drupe_device *device, drupe_language language, char **text)
{
    (void)device, (void)language, (void)text;
    tools++;
    return DRUPE_OK;
}

static int setup(void **state)
{
    const int result = script_setup(state);
    script.tables[0].program_binary = program_binary;
    script.languages[0] = DRUPE_LANG_OPENCL_C | DRUPE_LANG_BINARY;
    binary_answer = names_answer = DRUPE_OK;
    binaries = tools = 0;
    return result;
}

/* As another process would begin, with the same compiler. */
static void start_again(void)
{
    void *state = NULL;
    const char *extensions = script.extensions;
    assert_int_equal(script_teardown(&state), 0);
    assert_int_equal(setup(&state), 0);
    script.extensions = extensions;
}

/* --- What is asked of the driver ------------------------------------------------------------------------ */

static void binaries_are_for_devices_that_take_them(void **state)
{
    (void)state;
    void *bytes;
    size_t size;
    script.tables[0].program_tools = program_tools;
    script.languages[0] = DRUPE_LANG_OPENCL_C;
    drupe_program *program = script_program("text");
    FAILS(drupe_program_binary(program, &bytes, &size), DRUPE_E_UNSUPPORTED, "binary programs");
    assert_int_equal(binaries, 0);
    assert_int_equal(tools, 0); /* nothing of it can be kept */
    drupe_program_release(program);
    start_again();
    program = script_program("text"); /* with a driver that needs no tools */
    script.tables[0].program_tools = program_tools;
    drupe_program_release(script_program("other text"));
    assert_int_equal(tools, 1);
    OK(drupe_program_binary(program, &bytes, &size));
    assert_int_equal(binaries, 1);
    free(bytes);
    drupe_program_release(program);
}

static void programs_need_no_names(void **state)
{
    (void)state;
    script.tables[0].program_names = program_names;
    drupe_program *program = script_program("text");
    assert_string_equal(drupe_program_kernel_names(program), "a;b;c");
    drupe_program_release(program);
    names_answer = DRUPE_E_INTERNAL;
    program = script_program("text");
    assert_string_equal(drupe_program_kernel_names(program), "");
    drupe_program_release(program);
}

static void a_driver_may_refuse_a_binary(void **state)
{
    (void)state;
    void *bytes;
    size_t size;
    drupe_program *program = script_program("names");
    script.open_answer = DRUPE_E_INTERNAL; /* kernels, whose arguments go with it */
    FAILS(drupe_program_binary(program, &bytes, &size), DRUPE_E_INTERNAL, "The compiler says no.");
    assert_int_equal(binaries, 0);
    script.open_answer = DRUPE_OK;
    binary_answer = DRUPE_E_BUILD_FAILED;
    FAILS(drupe_program_binary(program, &bytes, &size), DRUPE_E_BUILD_FAILED, "The compiler says no.");
    assert_null(bytes);
    assert_int_equal(size, 0);
    drupe_program_release(program);
}

/* Arguments that the driver does not tell are no part of it. */
static void what_is_not_known_is_not_packed(void **state)
{
    (void)state;
    drupe_text text = {0};
    drupe_program *program = script_program("names");
    script.ndeclared = 1;
    script.arg_answer = DRUPE_E_UNSUPPORTED;
    OK(drupe_args_pack(program, &text));
    assert_int_equal(text.length, 0);
    drupe_program_release(program);
}

/* --- Without memory ------------------------------------------------------------------------------------- */

static void binary_of(const char *text, void **bytes, size_t *size)
{
    drupe_program *program = script_program(text);
    OK(drupe_program_binary(program, bytes, size));
    drupe_program_release(program);
}

static void without_memory_there_is_no_binary(void **state)
{
    (void)state;
    drupe_program *program = script_program("names");
    script.ndeclared = 1;
    unsigned long n = 1;
    for (bool made = true; made; n++) {
        void *bytes;
        size_t size;
        wrap_plan(WRAP_MALLOC, n);
        const drupe_status status = drupe_program_binary(program, &bytes, &size);
        made = wrap_made() > 0;
        wrap_plan(WRAP_NOTHING, 0);
        assert_int_equal(status, made ? DRUPE_E_NO_MEMORY : DRUPE_OK);
        if (made) assert_true(strlen(drupe_error_last()->text) > 10);
        assert_true(!bytes == made && !size == made);
        free(bytes);
    }
    /* The key, the names and kernels with what they take, the driver's part, the record. */
    assert_true(n > 10);
    drupe_program_release(program);
}

/* Either with all that the binary says of arguments, or not at all. */
static void without_memory_no_binary_is_opened(void **state)
{
    (void)state;
    void *bytes;
    size_t size;
    script.ndeclared = 1;
    binary_of("names", &bytes, &size);
    const drupe_source source = {.language = DRUPE_LANG_BINARY, .bytes = bytes, .size = size};
    unsigned long n = 1;
    for (bool made = true; made; n++) {
        drupe_program *program;
        drupe_kernel *kernel;
        wrap_plan(WRAP_MALLOC, n);
        const drupe_status status =
            drupe_program_open(script.context, script.device, &source, NULL, &program);
        made = wrap_made() > 0;
        wrap_plan(WRAP_NOTHING, 0);
        if (status != DRUPE_OK) {
            FAILS(status, DRUPE_E_NO_MEMORY, "o");
            assert_true(made);
            continue;
        }
        script.ndeclared = 1;
        script.arg_answer = DRUPE_E_UNSUPPORTED;
        OK(drupe_kernel_open(program, "two", &kernel));
        assert_non_null(kernel->args);
        drupe_kernel_release(kernel);
        drupe_program_release(program);
    }
    assert_true(n > 3);
    free(bytes);
}

/* --- What a binary is tied to --------------------------------------------------------------------------- */

static void a_binary_is_for_one_driver(void **state)
{
    (void)state;
    char long_list[600];
    memset(long_list, 'x', sizeof long_list);
    long_list[sizeof long_list - 1] = '\0';
    char *const other = strdup(long_list);
    other[500] = 'y';
    const char *const lists[] = {"fp64", "fp16", "fp64 fp16", long_list, other};
    for (size_t i = 0; i < DRUPE_COUNT_OF(lists); i++) {
        void *bytes;
        size_t size;
        drupe_program *program;
        script.extensions = lists[i];
        start_again();
        binary_of("text", &bytes, &size);
        const drupe_source source = {.language = DRUPE_LANG_BINARY, .bytes = bytes, .size = size};
        for (size_t k = 0; k < DRUPE_COUNT_OF(lists); k++) {
            script.extensions = lists[k];
            start_again();
            const drupe_status status =
                drupe_program_open(script.context, script.device, &source, NULL, &program);
            if (i != k) FAILS(status, DRUPE_E_INVALID, "built for another device, driver or version");
            if (i == k) OK(status);
            drupe_program_release(program);
        }
        free(bytes);
    }
    free(other);
    script.extensions = NULL;
}

static int infos_that_work = -1; /* then one fails; negative: all do */

drupe_status __real_drupe_device_info(drupe_device *device, drupe_info key, void *value, size_t size,
                                      size_t *needed);
drupe_status __wrap_drupe_device_info(drupe_device *device, drupe_info key, void *value, size_t size,
                                      size_t *needed);
drupe_status __wrap_drupe_device_info(drupe_device *device, drupe_info key, void *value, size_t size,
                                      size_t *needed)
{
    if (infos_that_work >= 0 && infos_that_work-- == 0)
        return drupe_error_set(DRUPE_E_UNAVAILABLE, "The driver does not answer.");
    return __real_drupe_device_info(device, key, value, size, needed);
}

/* A key with a hole would match too much. */
static void a_key_is_whole_or_failed(void **state)
{
    (void)state;
    static char extensions[300];
    drupe_text whole = {0};
    memset(extensions, 'x', sizeof extensions - 1);
    script.extensions = extensions;
    drupe_key_where(&whole, script.device);
    assert_non_null(strstr(drupe_text_get(&whole), "\ndevice scripted device\n"));
    assert_non_null(strstr(drupe_text_get(&whole), extensions));
    int failed = 0;
    for (int calls = 0; calls < 20; calls++) {
        drupe_text text = {0};
        infos_that_work = calls;
        drupe_key_where(&text, script.device);
        infos_that_work = -1;
        if (!text.failed) assert_string_equal(drupe_text_get(&text), drupe_text_get(&whole));
        failed += text.failed;
        drupe_text_clear(&text);
    }
    assert_int_equal(failed, 9); /* seven are asked for; two are there and asked for twice */
    unsigned long n = 1;
    for (bool made = true; made; n++) {
        drupe_text text = {0};
        start_again(); /* nothing is known of the device */
        (void)drupe_device_number(script.device, DRUPE_INFO_LANGUAGES, 0);
        wrap_plan(WRAP_MALLOC, n);
        drupe_key_where(&text, script.device);
        made = wrap_made() > 0;
        wrap_plan(WRAP_NOTHING, 0);
        assert_int_equal(text.failed, made);
        if (!made) assert_string_equal(drupe_text_get(&text), drupe_text_get(&whole));
        drupe_text_clear(&text);
    }
    drupe_text_clear(&whole);
    script.extensions = NULL;
}

/* --- Lost devices --------------------------------------------------------------------------------------- */

static void lose(bool silent)
{
    const drupe_error error = {.status = DRUPE_E_DEVICE_LOST, .text = "The device went away"};
    drupe_core_device_lost(script.device, &error, silent);
}

static void nothing_is_built_for_a_lost_device(void **state)
{
    (void)state;
    drupe_program *program = script_program("names"), *other;
    const drupe_source source = script_source("text");
    drupe_kernel *kernel;
    void *bytes;
    size_t size;
    lose(false);
    FAILS(drupe_program_open(script.context, script.device, &source, NULL, &other), DRUPE_E_DEVICE_LOST,
          "The device went away");
    FAILS(drupe_kernel_open(program, "one", &kernel), DRUPE_E_DEVICE_LOST, "The device went away");
    FAILS(drupe_program_binary(program, &bytes, &size), DRUPE_E_DEVICE_LOST, "The device went away");
    drupe_program_release(program);
    assert_int_equal(script.programs_closed, 1); /* its driver still answers */
}

static void in_the_child(void)
{
    void *state = NULL;
    ENDS_MUST(setup(&state) == 0);
    drupe_program *program = script_program("names");
    drupe_kernel *kernel = NULL;
    ENDS_MUST(drupe_kernel_open(program, "one", &kernel) == DRUPE_OK);
    lose(true);
    drupe_kernel_release(kernel);
    drupe_program_release(program);
    ENDS_MUST(script.kernels_closed == 0 && script.programs_closed == 0);
}

/* In a process of its own: it keeps such a device. */
static void a_silent_driver_closes_nothing(void **state)
{
    (void)state;
    ends_in_child(in_the_child);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(binaries_are_for_devices_that_take_them),
        TEST(programs_need_no_names),
        TEST(a_driver_may_refuse_a_binary),
        TEST(what_is_not_known_is_not_packed),
        TEST(without_memory_there_is_no_binary),
        TEST(without_memory_no_binary_is_opened),
        TEST(a_binary_is_for_one_driver),
        TEST(a_key_is_whole_or_failed),
        TEST(nothing_is_built_for_a_lost_device),
        cmocka_unit_test(a_silent_driver_closes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
