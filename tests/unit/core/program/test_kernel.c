/* Programs and kernels over a scripted compiler: what is asked of it once, and what is refused. */
#include "core/program/program_room.h"
#include "kernel_fixture.h"
#include "walk/wrap.h"

/* --- Programs and kernels --------------------------------------------------------------------------------
 */

static void programs_know_where_they_are_from(void **state)
{
    (void)state;
    drupe_program *program = script_program("names"), *plain = script_program("text");
    drupe_kernel *kernel;
    assert_ptr_equal(drupe_program_context(program), script.context);
    assert_ptr_equal(drupe_program_device(program), script.device);
    assert_string_equal(drupe_program_kernel_names(program), "one;two");
    assert_string_equal(drupe_program_kernel_names(plain), "");
    OK(drupe_kernel_open(program, "one", &kernel));
    assert_string_equal(drupe_kernel_name(kernel), "one");
    assert_ptr_equal(drupe_kernel_program(kernel), program);
    drupe_kernel_release(drupe_kernel_retain(kernel));
    drupe_kernel_release(kernel);
    FAILS(drupe_kernel_open(program, "absent", &kernel), DRUPE_E_NOT_FOUND,
          "no kernel 'absent'. It has: one;two.");
    assert_null(kernel);
    FAILS(drupe_kernel_open(plain, "absent", &kernel), DRUPE_E_NOT_FOUND, "The compiler says no.");
    FAILS(drupe_kernel_open(plain, "", &kernel), DRUPE_E_INVALID, "is empty");
    FAILS(drupe_kernel_open(plain, NULL, &kernel), DRUPE_E_INVALID, "is empty");
    script.open_answer = DRUPE_E_INTERNAL;
    FAILS(drupe_kernel_open(program, "one", &kernel), DRUPE_E_INTERNAL, "The compiler says no.");
    drupe_program_release(drupe_program_retain(program));
    drupe_program_release(program);
    drupe_program_release(plain);
    drupe_program_release(drupe_program_retain(NULL));
    drupe_kernel_release(drupe_kernel_retain(NULL));
}

static void kernels_tell_their_arguments(void **state)
{
    (void)state;
    drupe_arg_info info;
    uint64_t number;
    script.ndeclared = 2;
    script.declared[0] =
        (drupe_arg_info){.kind = DRUPE_ARG_POINTER, .reads_only = true, .name = "in", .lanes = 1};
    script.declared[1] = (drupe_arg_info){.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_I32, .lanes = 1};
    drupe_kernel *kernel = script_kernel("text");
    OK(drupe_kernel_arg(kernel, 0, &info));
    assert_string_equal(info.name, "in");
    FAILS(drupe_kernel_arg(kernel, 2, &info), DRUPE_E_OUT_OF_RANGE, "has 2 arguments, there is no number 2");
    assert_true(drupe_kernel_words(kernel));
    assert_int_equal(kernel->writes, ~UINT64_C(1)); /* nothing is written through the first */
    assert_int_equal(kernel->forms[1].size, 4);
    OK(drupe_kernel_number(kernel, DRUPE_KERNEL_WORK_GROUP_SIZE, &number));
    assert_int_equal(number, 99);
    FAILS(drupe_kernel_number(kernel, DRUPE_KERNEL_KEY_COUNT, &number), DRUPE_E_INVALID, "property number 9");
    drupe_kernel_release(kernel);
    /* Limits that a backend does not know are not checked. */
    script.number_answer = DRUPE_E_UNSUPPORTED;
    kernel = script_kernel("text");
    assert_int_equal(kernel->group_size, 0);
    assert_int_equal(kernel->local_size, 0);
    drupe_kernel_release(kernel);
}

static void words_are_for_simple_kernels(void **state)
{
    (void)state;
    static const struct {
        drupe_arg_info last;
        uint32_t count;
        bool words;
    } cases[] = {{{.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_F64, .lanes = 1}, 1, true},
                 {{.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_F64, .lanes = 2}, 1, false},
                 {{.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_UNKNOWN, .lanes = 1}, 2, false},
                 {{.kind = DRUPE_ARG_LOCAL, .scalar = DRUPE_SCALAR_F32, .lanes = 1}, 3, false},
                 {{.kind = DRUPE_ARG_POINTER, .lanes = 1}, 24, true},
                 {{.kind = DRUPE_ARG_POINTER, .lanes = 1}, 25, false}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        script.ndeclared = cases[i].count;
        for (size_t k = 0; k < SCRIPT_ARGS; k++)
            script.declared[k] = (drupe_arg_info){.kind = DRUPE_ARG_POINTER, .lanes = 1};
        script.declared[(script.ndeclared - 1) % SCRIPT_ARGS] = cases[i].last;
        drupe_kernel *kernel = script_kernel("text");
        assert_int_equal(drupe_kernel_words(kernel), cases[i].words);
        drupe_kernel_release(kernel);
    }
    script.ndeclared = 2; /* the first, too */
    script.declared[0] = (drupe_arg_info){.kind = DRUPE_ARG_LOCAL, .lanes = 1};
    script.declared[1] = (drupe_arg_info){.kind = DRUPE_ARG_POINTER, .lanes = 1};
    drupe_kernel *kernel = script_kernel("text");
    assert_false(drupe_kernel_words(kernel));
    drupe_kernel_release(kernel);
}

/* Which pointers nothing is written through is known of the first 64. */
static void kernels_may_have_many_arguments(void **state)
{
    (void)state;
    script.ndeclared = 70;
    for (size_t i = 0; i < SCRIPT_ARGS; i++)
        script.declared[i] = (drupe_arg_info){.kind = DRUPE_ARG_POINTER, .reads_only = i != 3, .lanes = 1};
    drupe_kernel *kernel = script_kernel("text");
    assert_int_equal(kernel->writes,
                     UINT64_C(1) << 3 | UINT64_C(1) << 23 | UINT64_C(1) << 43 | UINT64_C(1) << 63);
    assert_false(drupe_kernel_words(kernel));
    drupe_kernel_release(kernel);
}

static void a_compiler_may_not_tell(void **state)
{
    (void)state;
    drupe_arg_info info;
    drupe_kernel *kernel;
    drupe_status (*const kernel_arg)(drupe_kernel *, size_t, drupe_arg_info *) = script.tables[0].kernel_arg;
    script.ndeclared = 1;
    script.arg_answer = DRUPE_E_UNSUPPORTED;
    kernel = script_kernel("text");
    FAILS(drupe_kernel_arg(kernel, 0, &info), DRUPE_E_UNSUPPORTED, "does not report the arguments of 'one'");
    assert_false(drupe_kernel_words(kernel));
    drupe_kernel_release(kernel);
    script.arg_answer = DRUPE_OK;
    script.tables[0].kernel_arg = NULL;
    kernel = script_kernel("text");
    FAILS(drupe_kernel_arg(kernel, 0, &info), DRUPE_E_UNSUPPORTED, "does not report the arguments of 'one'");
    drupe_kernel_release(kernel);
    script.tables[0].kernel_arg = kernel_arg;
    /* What is missing for lack of memory would be missing for as long as the kernel lives. */
    script.arg_answer = DRUPE_E_NO_MEMORY;
    drupe_program *program = script_program("text");
    FAILS(drupe_kernel_open(program, "one", &kernel), DRUPE_E_NO_MEMORY, "The compiler says no.");
    /* How many there are has to be known. */
    script.arg_answer = DRUPE_OK;
    script.count_answer = DRUPE_E_INTERNAL;
    FAILS(drupe_kernel_open(program, "one", &kernel), DRUPE_E_INTERNAL, "The compiler says no.");
    drupe_program_release(program);
}

/* Each is closed once, when the last reference is dropped, and none of which the driver was not told. */
static void kernels_are_closed(void **state)
{
    (void)state;
    drupe_kernel *kernel = script_kernel("names");
    const drupe_keep keep = {drupe_kernel_retain(kernel), drupe_kernel_drop};
    drupe_kernel_release(kernel);
    assert_int_equal(script.kernels_closed, 0);
    keep.release(keep.object);
    assert_int_equal(script.kernels_closed, 1);
    assert_int_equal(script.programs_closed, 1);
}

static void without_memory_no_kernel_is_left(void **state)
{
    (void)state;
    drupe_program *program = script_program("names");
    unsigned long n = 1;
    script.ndeclared = 2;
    drupe_kernel_release(script_kernel("names")); /* what is kept for the next one is there */
    for (bool made = true; made; n++) {
        drupe_kernel *kernel;
        script.kernels_closed = 0;
        wrap_plan(WRAP_MALLOC, n);
        const drupe_status status = drupe_kernel_open(program, "one", &kernel);
        made = wrap_made() > 0;
        wrap_plan(WRAP_NOTHING, 0);
        if (made) FAILS(status, DRUPE_E_NO_MEMORY, "o");
        if (made && n > 1) assert_non_null(strstr(drupe_error_last()->text, "the kernel 'one'"));
        assert_true((kernel != NULL) == !made);
        drupe_kernel_release(kernel);
        assert_int_equal(script.kernels_closed,
                         n > 2); /* the object, its name: then it is the driver's, too */
    }
    assert_int_equal(n, 6);
    drupe_program_release(program);
}

static void languages_that_no_device_takes_are_refused(void **state)
{
    (void)state;
    static const struct {
        drupe_language language;
        const char *name;
    } cases[] = {{DRUPE_LANG_SPIRV, "SPIR-V"},
                 {DRUPE_LANG_BINARY, "binary programs"},
                 {DRUPE_LANG_C, "C"},
                 {DRUPE_LANG_BUILTIN, ""},
                 {(drupe_language)4096, "this language"}};
    drupe_program *program;
    void *bytes;
    size_t size;
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        drupe_source source = script_source("text");
        source.language = cases[i].language;
        FAILS(drupe_program_open(script.context, script.device, &source, NULL, &program), DRUPE_E_UNSUPPORTED,
              cases[i].name);
    }
    drupe_source empty = script_source("");
    assert_int_equal(drupe_program_open(script.context, script.device, &empty, NULL, &program),
                     DRUPE_E_INVALID);
    program = script_program("text");
    FAILS(drupe_program_binary(program, &bytes, &size), DRUPE_E_UNSUPPORTED, "binary programs");
    drupe_program_release(program);
}

static const char *advice(drupe_device *device, drupe_language language)
{
    (void)device;
    return language == DRUPE_LANG_C ? "Install a compiler." : NULL;
}

/* What is refused comes with what helps: a device that takes it, or what to install. */
static void refusals_say_what_helps(void **state)
{
    (void)state;
    drupe_device *other;
    drupe_program *program;
    drupe_source source = script_source("text");
    source.language = DRUPE_LANG_SPIRV;
    script.languages[0] = DRUPE_LANG_BUILTIN;
    script.languages[1] = DRUPE_LANG_SPIRV;
    FAILS(drupe_program_open(script.context, script.device, &source, NULL, &program), DRUPE_E_UNSUPPORTED,
          "does not take SPIR-V. Give OpenCL C source to an OpenCL device instead.");
    OK(drupe_device_select("opencl", &other)); /* from now on it is known */
    FAILS(drupe_program_open(script.context, script.device, &source, NULL, &program), DRUPE_E_UNSUPPORTED,
          "does not take SPIR-V. drupe.Device(\"opencl:cpu:0\") takes it.");
    source.language = DRUPE_LANG_OPENCL_C;
    FAILS(drupe_program_open(script.context, script.device, &source, NULL, &program), DRUPE_E_UNSUPPORTED,
          "does not take OpenCL C. Use drupe.Device(\"opencl:cpu\"), or another OpenCL device.");
    script.tables[0].program_advice = advice;
    source.language = DRUPE_LANG_C;
    FAILS(drupe_program_open(script.context, script.device, &source, NULL, &program), DRUPE_E_UNSUPPORTED,
          "");
    assert_string_equal(drupe_error_last()->text,
                        "The device host:cpu:0 does not take C. Install a compiler.");
    /* A device of another context. */
    source.language = DRUPE_LANG_SPIRV;
    FAILS(drupe_program_open(script.context, other, &source, NULL, &program), DRUPE_E_INVALID,
          "The device opencl:cpu:0 does not belong to this context.");
    drupe_device_release(other);
}

/* What is kept with a binary is found again, if it is sound. */
static void packed_arguments_are_found_again(void **state)
{
    (void)state;
    drupe_text text = {0};
    drupe_arg_info found[2];
    script.ndeclared = 2;
    script.declared[0] =
        (drupe_arg_info){.kind = DRUPE_ARG_POINTER, .scalar = DRUPE_SCALAR_F16, .lanes = 3, .name = "x"};
    script.declared[1] =
        (drupe_arg_info){.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_U8, .lanes = 1, .name = "y"};
    drupe_program *program = script_program("names");
    OK(drupe_args_pack(program, &text));
    drupe_span span = {drupe_text_get(&text), text.length};
    assert_true(drupe_args_find(span, "two", 2, found));
    assert_string_equal(found[1].name, "y");
    assert_int_equal(drupe_args_element(&found[0]), 8); /* three lanes take the room of four */
    assert_false(drupe_args_find(span, "three", 2, found));
    assert_false(drupe_args_find(span, "one", 1, found));
    for (size_t cut = 1; cut < span.size; cut += 7) {
        const drupe_span part = {span.bytes, span.size - cut};
        assert_false(drupe_args_find(part, "two", 2, found));
    }
    static const struct {
        size_t offset;
        unsigned char byte;
    } damages[] = {{offsetof(drupe_arg_info, reads_only), 2}, {offsetof(drupe_arg_info, either_sign), 7},
                   {offsetof(drupe_arg_info, kind), 9},       {offsetof(drupe_arg_info, scalar), 99},
                   {offsetof(drupe_arg_info, lanes), 0},      {offsetof(drupe_arg_info, lanes), 17}};
    char *bytes = malloc(span.size);
    const size_t first = strlen("one") + 1 + sizeof(uint32_t);
    for (size_t i = 0; i < DRUPE_COUNT_OF(damages); i++) {
        memcpy(bytes, span.bytes, span.size);
        bytes[first + damages[i].offset] = (char)damages[i].byte;
        assert_false(drupe_args_find((drupe_span){bytes, span.size}, "one", 2, found));
        assert_true(drupe_args_find((drupe_span){bytes, span.size}, "two", 2, found));
    }
    static const size_t names[] = {offsetof(drupe_arg_info, name), offsetof(drupe_arg_info, type_name)};
    for (size_t i = 0; i < 2; i++) { /* that do not end */
        memcpy(bytes, span.bytes, span.size);
        memset(bytes + first + names[i], 'x', sizeof found[0].name);
        assert_false(drupe_args_find((drupe_span){bytes, span.size}, "one", 2, found));
    }
    const drupe_arg_info odd = {.scalar = (drupe_scalar_type)1000, .lanes = 1};
    assert_int_equal(drupe_args_element(&odd), 0);
    free(bytes);
    /* And used where the driver does not tell. */
    program->args = memcpy(malloc(span.size), span.bytes, span.size);
    program->args_size = span.size;
    script.arg_answer = DRUPE_E_UNSUPPORTED;
    drupe_kernel *kernel;
    OK(drupe_kernel_open(program, "two", &kernel));
    assert_non_null(kernel->args);
    drupe_kernel_release(kernel);
    drupe_text_clear(&text);
    text = (drupe_text){0};
    script.arg_answer = DRUPE_OK;
    script.open_answer = DRUPE_E_INTERNAL;
    FAILS(drupe_args_pack(program, &text), DRUPE_E_INTERNAL, "says no");
    drupe_text_clear(&text);
    drupe_program_release(program);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
    const struct CMUnitTest tests[] = {
        TEST(programs_know_where_they_are_from), TEST(kernels_tell_their_arguments),
        TEST(words_are_for_simple_kernels),      TEST(kernels_may_have_many_arguments),
        TEST(a_compiler_may_not_tell),           TEST(kernels_are_closed),
        TEST(without_memory_no_kernel_is_left),  TEST(languages_that_no_device_takes_are_refused),
        TEST(refusals_say_what_helps),           TEST(packed_arguments_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
