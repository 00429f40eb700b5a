/* Programs and kernels over a scripted compiler: what is asked of it once, what messages say of arguments,
 * and builds on a thread of their own. */
#include "core/program/program_room.h"
#include "core_bench.h"
#include "test_script.h"
#include <pthread.h>

static struct {
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queue;
    const drupe_backend *real;
    drupe_backend table;
} t;

/* --- The compiler ----------------------------------------------------------------------------------------
 */

static drupe_arg_info declared[20];
static uint32_t ndeclared;
static drupe_status arg_answer, number_answer, open_answer;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed, entered;
} door = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static drupe_status say(drupe_status status)
{
    return status == DRUPE_OK ? status : drupe_error_set(status, "The compiler says no.");
}

static drupe_status kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value)
{
    (void)kernel;
    if (key != DRUPE_KERNEL_ARG_COUNT) {
        *value = 99;
        return say(number_answer);
    }
    *value = ndeclared;
    return DRUPE_OK;
}

static drupe_status kernel_arg(drupe_kernel *kernel, size_t index, drupe_arg_info *info)
{
    (void)kernel;
    *info = declared[index];
    return say(arg_answer);
}

static drupe_status kernel_open(drupe_kernel *kernel, const char *name)
{
    (void)kernel;
    return strcmp(name, "absent") == 0 ? say(DRUPE_E_NOT_FOUND) : say(open_answer);
}

static drupe_status program_open(drupe_program *program, const drupe_source *source, char **log)
{
    pthread_mutex_lock(&door.lock);
    door.entered = true;
    pthread_cond_broadcast(&door.changed);
    while (door.closed) pthread_cond_wait(&door.changed, &door.lock);
    pthread_mutex_unlock(&door.lock);
    *log = strdup("a remark");
    if (memmem(source->bytes, source->size, "names", 5)) program->names = strdup("one;two");
    if (memmem(source->bytes, source->size, "wrong", 5)) return say(DRUPE_E_BUILD_FAILED);
    return DRUPE_OK;
}

static int setup(void **state)
{
    (void)state;
    setenv("DRUPE_CACHE", "0", 1);
    test_script_reset();
    assert_true(drupe_slot_count() > 0);
    t.real = drupe_slot_at(0)->base;
    t.table = *t.real;
    t.table.kernel_number = kernel_number;
    t.table.kernel_arg = kernel_arg;
    t.table.kernel_open = kernel_open;
    t.table.program_open = program_open;
    drupe_slot_at(0)->base = &t.table;
    arg_answer = number_answer = open_answer = DRUPE_OK;
    ndeclared = 0;
    memset(declared, 0, sizeof declared);
    for (size_t i = 0; i < DRUPE_COUNT_OF(declared); i++) declared[i].lanes = 1;
    door.closed = door.entered = false;
    OK(drupe_device_select("host", &t.device));
    OK(drupe_device_context(t.device, &t.context));
    OK(drupe_queue_open(t.context, t.device, 0, &t.queue));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    drupe_queue_release(t.queue);
    drupe_context_release(t.context);
    drupe_device_release(t.device);
    const size_t left = drupe_library_close(LONG);
    drupe_slot_at(0)->base = t.real;
    return left == 0 ? 0 : -1;
}

static drupe_source source_of(const char *text)
{
    return (drupe_source){.language = DRUPE_LANG_OPENCL_C, .bytes = text, .size = strlen(text)};
}

static drupe_program *open_program(const char *text)
{
    const drupe_source source = source_of(text);
    drupe_program *program;
    OK(drupe_program_open(t.context, t.device, &source, NULL, &program));
    return program;
}

/* --- Programs and kernels --------------------------------------------------------------------------------
 */

static void programs_know_where_they_are_from(void **state)
{
    (void)state;
    drupe_program *program = open_program("names"), *plain = open_program("text");
    drupe_kernel *kernel;
    assert_ptr_equal(drupe_program_context(program), t.context);
    assert_ptr_equal(drupe_program_device(program), t.device);
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
    open_answer = DRUPE_E_INTERNAL;
    FAILS(drupe_kernel_open(program, "one", &kernel), DRUPE_E_INTERNAL, "The compiler says no.");
    drupe_program_release(drupe_program_retain(program));
    drupe_program_release(program);
    drupe_program_release(plain);
    drupe_program_release(drupe_program_retain(NULL));
    drupe_kernel_release(drupe_kernel_retain(NULL));
}

static drupe_kernel *open_kernel(const char *text)
{
    drupe_program *program = open_program(text);
    drupe_kernel *kernel;
    OK(drupe_kernel_open(program, "one", &kernel));
    drupe_program_release(program);
    return kernel;
}

static void kernels_tell_their_arguments(void **state)
{
    (void)state;
    drupe_arg_info info;
    uint64_t number;
    ndeclared = 2;
    declared[0] = (drupe_arg_info){.kind = DRUPE_ARG_POINTER, .reads_only = true, .name = "in", .lanes = 1};
    declared[1] = (drupe_arg_info){.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_I32, .lanes = 1};
    drupe_kernel *kernel = open_kernel("text");
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
    number_answer = DRUPE_E_UNSUPPORTED;
    kernel = open_kernel("text");
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
                 {{.kind = DRUPE_ARG_POINTER, .lanes = 1}, 12, true},
                 {{.kind = DRUPE_ARG_POINTER, .lanes = 1}, 13, false}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        ndeclared = cases[i].count;
        for (size_t k = 0; k < ndeclared; k++)
            declared[k] = (drupe_arg_info){.kind = DRUPE_ARG_POINTER, .lanes = 1};
        declared[ndeclared - 1] = cases[i].last;
        drupe_kernel *kernel = open_kernel("text");
        assert_int_equal(drupe_kernel_words(kernel), cases[i].words);
        drupe_kernel_release(kernel);
    }
}

static void a_compiler_may_not_tell(void **state)
{
    (void)state;
    drupe_arg_info info;
    drupe_kernel *kernel;
    ndeclared = 1;
    arg_answer = DRUPE_E_UNSUPPORTED;
    kernel = open_kernel("text");
    FAILS(drupe_kernel_arg(kernel, 0, &info), DRUPE_E_UNSUPPORTED, "does not report the arguments of 'one'");
    assert_false(drupe_kernel_words(kernel));
    drupe_kernel_release(kernel);
    /* What is missing for lack of memory would be missing for as long as the kernel lives. */
    arg_answer = DRUPE_E_NO_MEMORY;
    drupe_program *program = open_program("text");
    FAILS(drupe_kernel_open(program, "one", &kernel), DRUPE_E_NO_MEMORY, "The compiler says no.");
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
        drupe_source source = source_of("text");
        source.language = cases[i].language;
        FAILS(drupe_program_open(t.context, t.device, &source, NULL, &program), DRUPE_E_UNSUPPORTED,
              cases[i].name);
    }
    drupe_source empty = source_of("");
    assert_int_equal(drupe_program_open(t.context, t.device, &empty, NULL, &program), DRUPE_E_INVALID);
    program = open_program("text");
    FAILS(drupe_program_binary(program, &bytes, &size), DRUPE_E_UNSUPPORTED, "binary programs");
    drupe_program_release(program);
}

/* What is kept with a binary is found again, if it is sound. */
static void packed_arguments_are_found_again(void **state)
{
    (void)state;
    drupe_text text = {0};
    drupe_arg_info found[2];
    ndeclared = 2;
    declared[0] =
        (drupe_arg_info){.kind = DRUPE_ARG_POINTER, .scalar = DRUPE_SCALAR_F16, .lanes = 3, .name = "x"};
    declared[1] =
        (drupe_arg_info){.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_U8, .lanes = 1, .name = "y"};
    drupe_program *program = open_program("names");
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
    memcpy(bytes, span.bytes, span.size);
    memset(bytes + first + offsetof(drupe_arg_info, name), 'x', sizeof found[0].name);
    assert_false(drupe_args_find((drupe_span){bytes, span.size}, "one", 2, found));
    const drupe_arg_info odd = {.scalar = (drupe_scalar_type)1000, .lanes = 1};
    assert_int_equal(drupe_args_element(&odd), 0);
    free(bytes);
    /* And used where the driver does not tell. */
    program->args = memcpy(malloc(span.size), span.bytes, span.size);
    program->args_size = span.size;
    arg_answer = DRUPE_E_UNSUPPORTED;
    drupe_kernel *kernel;
    OK(drupe_kernel_open(program, "two", &kernel));
    assert_non_null(kernel->args);
    drupe_kernel_release(kernel);
    drupe_text_clear(&text);
    text = (drupe_text){0};
    arg_answer = DRUPE_OK;
    open_answer = DRUPE_E_INTERNAL;
    FAILS(drupe_args_pack(program, &text), DRUPE_E_INTERNAL, "says no");
    drupe_text_clear(&text);
    drupe_program_release(program);
}

/* --- What messages say of arguments ----------------------------------------------------------------------
 */

static const char *told(const drupe_work *work, const drupe_keep *refs, size_t nrefs, size_t size)
{
    static char text[600];
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
        ndeclared = 1;
        declared[0] =
            (drupe_arg_info){.kind = DRUPE_ARG_VALUE, .scalar = cases[i].type, .lanes = 1, .name = "x"};
        drupe_kernel *kernel = open_kernel("text");
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
    drupe_memory *memory = bench_memory(t.queue, DRUPE_MEM_SHARED, 100);
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
    work = (drupe_work){.kind = DRUPE_WORK_FILL, .dst = at, .bytes = 8, .pattern_size = 2};
    assert_string_equal(told(&work, refs, 2, 600),
                        "8 bytes at shared memory of 100 bytes, with a pattern of 2 bytes");
    work.kind = DRUPE_WORK_PREFETCH;
    assert_string_equal(told(&work, refs, 2, 600), "8 bytes at shared memory of 100 bytes");
    assert_string_equal(told(&work, refs, 2, 12), "8 bytes ...");
    assert_string_equal(told(&work, refs, 2, 3), "8 ");
    work.kind = DRUPE_WORK_BARRIER;
    assert_string_equal(told(&work, refs, 2, 600), "");
    drupe_memory_release(memory);
}

static void launches_are_told_with_their_range(void **state)
{
    (void)state;
    const drupe_range range = {.dims = 2, .global = {64, 32}, .local = {8, 4}}, odd = {.dims = 9};
    const uint64_t large[2] = {1, 2};
    drupe_arg args[16];
    for (size_t i = 0; i < 16; i++) args[i] = (drupe_arg){DRUPE_ARG_VALUE, 16, large};
    args[1] = (drupe_arg){DRUPE_ARG_LOCAL, 512, NULL};
    drupe_work work = {.kind = DRUPE_WORK_KERNEL, .range = &range, .args = args, .nargs = 2};
    assert_string_equal(told(&work, NULL, 0, 600),
                        "argument 0 = 16 bytes, argument 1 = 512 bytes of local memory; "
                        "64 x 32 work-items in groups of 8 x 4");
    work.nargs = 16;
    assert_non_null(strstr(told(&work, NULL, 0, 600), "argument 11 = 16 bytes and 4 more; 64 x 32"));
    work = (drupe_work){.kind = DRUPE_WORK_KERNEL, .range = &odd};
    assert_string_equal(told(&work, NULL, 0, 600), ""); /* incomplete, as it is when it was refused */
    /* Words lie as the kernel's forms say. */
    ndeclared = 1;
    declared[0] = (drupe_arg_info){.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_I32, .lanes = 1};
    drupe_kernel *kernel = open_kernel("text");
    const uint64_t words[] = {5};
    work =
        (drupe_work){.kind = DRUPE_WORK_KERNEL, .kernel = kernel, .args = args, .nargs = 1, .words = words};
    assert_string_equal(told(&work, NULL, 0, 600), "argument 0 = 5; ");
    drupe_kernel_release(kernel);
}

/* --- Builds on a thread of their own ---------------------------------------------------------------------
 */

static void close_door(void)
{
    door.closed = true;
}

static void await_entered(void)
{
    pthread_mutex_lock(&door.lock);
    while (!door.entered) pthread_cond_wait(&door.changed, &door.lock);
    pthread_mutex_unlock(&door.lock);
}

static void open_door(void)
{
    pthread_mutex_lock(&door.lock);
    door.closed = false;
    pthread_cond_broadcast(&door.changed);
    pthread_mutex_unlock(&door.lock);
}

static void who_waits_takes_the_program(void **state)
{
    (void)state;
    char text[] = "names", options[] = "-DX";
    drupe_source source = source_of(text);
    drupe_build *build;
    drupe_program *program;
    char *log;
    source.options = options;
    close_door();
    OK(drupe_build_begin(t.context, t.device, &source, &build));
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
    const drupe_source source = source_of("wrong");
    drupe_build *build;
    drupe_program *program;
    char *log;
    OK(drupe_build_begin(t.context, t.device, &source, &build));
    FAILS(drupe_build_take(build, &log, &program), DRUPE_E_BUILD_FAILED, "The compiler says no.");
    assert_null(program);
    free(log);
    while (drupe_builds()) continue;
}

static void who_leaves_drops_what_comes_of_it(void **state)
{
    (void)state;
    const drupe_source source = source_of("text");
    drupe_build *builds[2];
    close_door();
    for (size_t i = 0; i < 2; i++) OK(drupe_build_begin(t.context, t.device, &source, &builds[i]));
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
    drupe_source source = source_of("text");
    drupe_build *build;
    drupe_program *program;
    char *log;
    source.values = &value;
    source.nvalues = 1;
    OK(drupe_build_begin(t.context, t.device, &source, &build));
    FAILS(drupe_build_take(build, &log, &program), DRUPE_E_INVALID, ""); /* text has no such constants */
    free(log);
    while (drupe_builds()) continue;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(programs_know_where_they_are_from),
        TEST(kernels_tell_their_arguments),
        TEST(words_are_for_simple_kernels),
        TEST(a_compiler_may_not_tell),
        TEST(languages_that_no_device_takes_are_refused),
        TEST(packed_arguments_are_found_again),
        TEST(numbers_are_told_by_their_type),
        TEST(memory_is_told_by_kind_and_size),
        TEST(launches_are_told_with_their_range),
        TEST(who_waits_takes_the_program),
        TEST(a_failed_build_is_told_to_who_takes_it),
        TEST(who_leaves_drops_what_comes_of_it),
        TEST(values_of_constants_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
