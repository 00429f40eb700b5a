/* Programs, kernels, and the checks of a launch. */
#include "conformance.h"

static void names(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_kernel *kernel;
    assert_string_equal(drupe_kernel_name(b->mad), "test_mad");
    assert_ptr_equal(drupe_kernel_program(b->mad), b->program);
    assert_ptr_equal(drupe_program_context(b->program), b->context);
    assert_ptr_equal(drupe_program_device(b->program), b->device);
    FAILS(drupe_kernel_open(b->program, "no_such_kernel", &kernel), DRUPE_E_NOT_FOUND, "no_such_kernel");
    assert_null(kernel);
    FAILS(drupe_kernel_open(b->program, "", &kernel), DRUPE_E_INVALID, "empty");
    const char *all = drupe_program_kernel_names(b->program);
    if (*all) assert_non_null(strstr(all, "test_spin"));
    uint64_t value;
    OK(drupe_kernel_number(b->mad, DRUPE_KERNEL_ARG_COUNT, &value));
    assert_int_equal(value, 5);
    OK(drupe_kernel_number(b->mad, DRUPE_KERNEL_WORK_GROUP_SIZE, &value));
    assert_true(value >= 1);
    FAILS(drupe_kernel_number(b->mad, DRUPE_KERNEL_KEY_COUNT, &value), DRUPE_E_INVALID, "property");
}

static void languages(struct suite *suite)
{
    struct bench *b = &suite->bench;
    uint64_t taken = drupe_device_number(b->device, DRUPE_INFO_LANGUAGES, 0);
    assert_true(taken & (uint64_t)b->fixture->language);
    drupe_program *program;
    for (uint64_t language = 1; language <= 16; language *= 2) {
        drupe_source source = {.language = (drupe_language)language, .bytes = "x", .size = 1};
        if (taken & language) continue;
        FAILS(drupe_program_open(b->context, b->device, &source, NULL, &program), DRUPE_E_UNSUPPORTED,
              "does not take");
        if (language == DRUPE_LANG_OPENCL_C) assert_non_null(strstr(drupe_error_last()->text, "opencl:cpu"));
        assert_null(program);
    }
    if (!b->fixture->source) return;
    drupe_source empty = {.language = b->fixture->language, .bytes = "", .size = 0};
    FAILS(drupe_program_open(b->context, b->device, &empty, NULL, &program), DRUPE_E_INVALID, "empty");
}

static void build_failure(struct suite *suite)
{
    struct bench *b = &suite->bench;
    if (!b->fixture->source) skip_known(suite, "build_failure");
    const char *text = b->fixture->language == DRUPE_LANG_C
                           ? "kernel void broken(int *p)\n{ p[0] = undefined_name; }\n"
                           : "kernel void broken(global int *p)\n{ p[0] = undefined_name; }\n";
    drupe_source source = {.language = b->fixture->language, .bytes = text, .size = strlen(text)};
    drupe_program *program;
    char *log = NULL;
    FAILS(drupe_program_open(b->context, b->device, &source, &log, &program), DRUPE_E_BUILD_FAILED,
          "undefined_name");
    assert_non_null(log);
    assert_non_null(strstr(log, "undefined_name"));
    free(log);
}

static void built_in_kernels(struct suite *suite)
{
    struct bench *b = &suite->bench;
    enum { N = 10000 };
    drupe_memory *x = new_memory(b->queue, kind_or_device(b, DRUPE_MEM_SHARED), N * 4),
                 *y = new_memory(b->queue, kind_or_device(b, DRUPE_MEM_HOST), N * 4);
    drupe_memory *z = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    float *zs = malloc(N * 4);
    assert_non_null(zs);
    for (int i = 0; i < N; i++) zs[i] = (float)i;
    write_memory(b->queue, x, zs, N * 4);
    for (int i = 0; i < N; i++) zs[i] = 0.5f;
    write_memory(b->queue, y, zs, N * 4);
    void *pointers[] = {drupe_memory_pointer(x), drupe_memory_pointer(y), drupe_memory_pointer(z)};
    uint64_t n = N;
    drupe_arg args[] = {{DRUPE_ARG_POINTER, 0, &pointers[0]},
                        {DRUPE_ARG_POINTER, 0, &pointers[1]},
                        {DRUPE_ARG_POINTER, 0, &pointers[2]},
                        {DRUPE_ARG_VALUE, 8, &n}};
    drupe_submission s = {.queue = b->queue};
    drupe_range range = {.dims = 1, .global = {N}};
    OK(drupe_submit_kernel(&s, b->add, &range, args, 4, NULL));
    read_memory(b->queue, z, zs, N * 4);
    for (int i = 0; i < N; i++) assert_true(zs[i] == (float)i + 0.5f);
    /* Interior pointers are arguments like others, and each work-item runs once. */
    uint64_t *ids = malloc(N * 8);
    assert_non_null(ids);
    OK(drupe_submit_kernel(&s, b->gid, &range, &args[2], 1, NULL));
    read_memory(b->queue, z, ids, N * 8);
    for (uint64_t i = 0; i < N; i++) assert_int_equal(ids[i], i);
    free(ids);
    free(zs);
    drupe_memory_release(x);
    drupe_memory_release(y);
    drupe_memory_release(z);
}

static void launch_refused(struct suite *suite)
{
    struct bench *b = &suite->bench, *other = use_other(suite);
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 64),
                 *far = new_memory(other->queue, DRUPE_MEM_DEVICE, 64);
    uint64_t on_stack[8];
    void *good = drupe_memory_pointer(m), *stranger = on_stack, *foreign = drupe_memory_pointer(far),
         *null = NULL;
    drupe_submission s = {.queue = b->queue};
    drupe_range range = {.dims = 1, .global = {8}}, none = {.dims = 0}, empty = {.dims = 1};
    drupe_arg arg = {DRUPE_ARG_POINTER, 0, &good};
    FAILS(drupe_submit_kernel(&s, b->gid, &range, &arg, 0, NULL), DRUPE_E_INVALID,
          "takes 1 argument, 0 were given");
    FAILS(drupe_submit_kernel(&s, b->mad, &range, &arg, 1, NULL), DRUPE_E_INVALID,
          "takes 5 arguments, 1 was");
    FAILS(drupe_submit_kernel(&s, NULL, &range, &arg, 1, NULL), DRUPE_E_INVALID, "missing");
    FAILS(drupe_submit_kernel(&s, b->gid, NULL, &arg, 1, NULL), DRUPE_E_INVALID, "dimensions");
    FAILS(drupe_submit_kernel(&s, b->gid, &none, &arg, 1, NULL), DRUPE_E_INVALID, "dimensions");
    FAILS(drupe_submit_kernel(&s, other->gid, &range, &arg, 1, NULL), DRUPE_E_INVALID, "another context");
    drupe_submission nowhere = {.queue = NULL};
    FAILS(drupe_submit_kernel(&nowhere, b->gid, &range, &arg, 1, NULL), DRUPE_E_INVALID, "queue");
    arg.value = &stranger;
    FAILS(drupe_submit_kernel(&s, b->gid, &range, &arg, 1, NULL), DRUPE_E_INVALID, "not in USM");
    arg.value = &foreign;
    FAILS(drupe_submit_kernel(&s, b->gid, &range, &arg, 1, NULL), DRUPE_E_INVALID, "another context");
    arg.value = NULL;
    FAILS(drupe_submit_kernel(&s, b->gid, &range, &arg, 1, NULL), DRUPE_E_INVALID, "no value");
    arg = (drupe_arg){(drupe_arg_kind)9, 8, &good};
    FAILS(drupe_submit_kernel(&s, b->gid, &range, &arg, 1, NULL), DRUPE_E_INVALID, "kind");
    /* An empty range runs nothing, a NULL pointer is the kernel's business. */
    drupe_event *event;
    arg = (drupe_arg){DRUPE_ARG_POINTER, 0, &null};
    OK(drupe_submit_kernel(&s, b->gid, &empty, &arg, 1, &event));
    OK(drupe_event_wait(event, DRUPE_FOREVER));
    drupe_event_release(event);
    drupe_memory_release(m);
    drupe_memory_release(far);
}

static void argument_information(struct suite *suite)
{
    struct bench *b = &suite->bench;
    drupe_arg_info info;
    FAILS(drupe_kernel_arg(b->mad, 5, &info), DRUPE_E_OUT_OF_RANGE, "5 arguments");
    if (drupe_kernel_arg(b->mad, 0, &info) == DRUPE_E_UNSUPPORTED) skip_known(suite, "argument_information");
    assert_int_equal(info.kind, DRUPE_ARG_POINTER);
    OK(drupe_kernel_arg(b->mad, 3, &info));
    assert_int_equal(info.kind, DRUPE_ARG_VALUE);
    assert_int_equal(info.scalar, DRUPE_SCALAR_U64);
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 64);
    void *p = drupe_memory_pointer(m);
    uint64_t value = 1;
    drupe_arg args[] = {{DRUPE_ARG_POINTER, 0, &p}, {DRUPE_ARG_VALUE, 4, &value}};
    drupe_submission s = {.queue = b->queue};
    drupe_range range = {.dims = 1, .global = {1}};
    FAILS(drupe_submit_kernel(&s, b->spin, &range, args, 2, NULL), DRUPE_E_INVALID, "8 bytes, 4 were given");
    args[1].kind = DRUPE_ARG_LOCAL;
    FAILS(drupe_submit_kernel(&s, b->spin, &range, args, 2, NULL), DRUPE_E_INVALID, "local memory was given");
    drupe_memory_release(m);
}

static void local_size(struct suite *suite)
{
    struct bench *b = &suite->bench;
    uint64_t most = drupe_device_number(b->device, DRUPE_INFO_MAX_WORK_GROUP_SIZE, 1);
    if (most < 16) skip_known(suite, "local_size");
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 8 * 8 * most);
    void *p = drupe_memory_pointer(m);
    drupe_arg arg = {DRUPE_ARG_POINTER, 0, &p};
    drupe_submission s = {.queue = b->queue};
    drupe_range range = {.dims = 1, .global = {100}, .local = {16}};
    FAILS(drupe_submit_kernel(&s, b->gid, &range, &arg, 1, NULL), DRUPE_E_INVALID, "does not divide");
    range = (drupe_range){.dims = 1, .global = {most * 4}, .local = {most * 4}};
    FAILS(drupe_submit_kernel(&s, b->gid, &range, &arg, 1, NULL), DRUPE_E_INVALID, "from 1 to");
    range = (drupe_range){.dims = 2, .global = {16, 16}, .local = {16, 0}};
    FAILS(drupe_submit_kernel(&s, b->gid, &range, &arg, 1, NULL), DRUPE_E_INVALID, "dimension 1");
    range = (drupe_range){.dims = 1, .global = {96}, .local = {16}};
    OK(drupe_submit_kernel(&s, b->gid, &range, &arg, 1, NULL));
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_memory_release(m);
}

static void local_memory_limit(struct suite *suite)
{
    struct bench *b = &suite->bench;
    uint64_t most = drupe_device_number(b->device, DRUPE_INFO_LOCAL_MEM_SIZE, 0);
    /* Groups of kernels in C are of a size that is built in: tests/python/test_c_groups.py. */
    const bool opencl = b->fixture->source && b->fixture->language == DRUPE_LANG_OPENCL_C;
    if (most == 0 || !opencl) skip_known(suite, "local_memory_limit");
    static const char text[] =
        "kernel void scratch(global int *p, local int *s)\n"
        "{ s[get_local_id(0)] = 1; barrier(CLK_LOCAL_MEM_FENCE); p[get_global_id(0)] = s[0]; }"
        "kernel void twice(global int *p, local int *s, local int *t) { p[0] = s[0] + t[0]; }";
    drupe_source source = {.language = b->fixture->language, .bytes = text, .size = sizeof text - 1};
    drupe_program *program;
    drupe_kernel *kernel, *twice;
    OK(drupe_program_open(b->context, b->device, &source, NULL, &program));
    OK(drupe_kernel_open(program, "scratch", &kernel));
    OK(drupe_kernel_open(program, "twice", &twice));
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 64);
    void *p = drupe_memory_pointer(m);
    drupe_arg args[] = {{DRUPE_ARG_POINTER, 0, &p}, {DRUPE_ARG_LOCAL, most + 4, NULL}};
    drupe_submission s = {.queue = b->queue};
    drupe_range range = {.dims = 1, .global = {16}, .local = {16}};
    FAILS(drupe_submit_kernel(&s, kernel, &range, args, 2, NULL), DRUPE_E_OUT_OF_RANGE, "local memory");
    /* Sizes whose sum is none. */
    drupe_arg halves[] = {args[0], {DRUPE_ARG_LOCAL, SIZE_MAX / 2 + 1, NULL}, {DRUPE_ARG_LOCAL, 0, NULL}};
    halves[2].size = halves[1].size;
    FAILS(drupe_submit_kernel(&s, twice, &range, halves, 3, NULL), DRUPE_E_OUT_OF_RANGE, "local memory");
    args[1].size = 64;
    OK(drupe_submit_kernel(&s, kernel, &range, args, 2, NULL));
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_memory_release(m);
    drupe_kernel_release(twice);
    drupe_kernel_release(kernel);
    drupe_program_release(program);
}

/* A program given back as it was built does the same, and a damaged one reaches no driver. */
static void binary(struct suite *suite)
{
    struct bench *b = &suite->bench;
    void *bytes;
    size_t size;
    drupe_program *program;
    uint64_t taken = drupe_device_number(b->device, DRUPE_INFO_LANGUAGES, 0);
    if (!b->fixture->source || !(taken & DRUPE_LANG_BINARY)) {
        FAILS(drupe_program_binary(b->program, &bytes, &size), DRUPE_E_UNSUPPORTED, "binary");
        assert_null(bytes);
        skip_known(suite, "binary");
    }
    OK(drupe_program_binary(b->program, &bytes, &size));
    drupe_source source = {.language = DRUPE_LANG_BINARY, .bytes = bytes, .size = size - 1};
    FAILS(drupe_program_open(b->context, b->device, &source, NULL, &program), DRUPE_E_INVALID, "damaged");
    source.size = size;
    OK(drupe_program_open(b->context, b->device, &source, NULL, &program));
    free(bytes);
    drupe_kernel *kernel, *first = b->mad;
    drupe_arg_info info, other;
    OK(drupe_kernel_open(program, "test_mad", &kernel));
    if (drupe_kernel_arg(first, 3, &info) == DRUPE_OK) {
        OK(drupe_kernel_arg(kernel, 3, &other));
        assert_int_equal(info.scalar, other.scalar);
    }
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 80);
    fill_u64(b->queue, m, 5, 10);
    b->mad = kernel;
    OK(submit_mad(b, b->queue, m, m, 10, 3, 1, NULL, 0, NULL));
    b->mad = first;
    expect_u64(b->queue, m, 16, 10);
    drupe_memory_release(m);
    drupe_kernel_release(kernel);
    drupe_program_release(program);
}

static void spirv(struct suite *suite)
{
    struct bench *b = &suite->bench;
    static const uint32_t module[] = {
#include "tests/spirv/constants.inc"
    };
    int32_t number = 1234;
    drupe_spec_value value = {.id = 0, .size = sizeof number, .value = &number};
    drupe_source source = {
        .language = DRUPE_LANG_SPIRV, .bytes = module, .size = sizeof module, .values = &value, .nvalues = 1};
    drupe_program *program;
    if (!(drupe_device_number(b->device, DRUPE_INFO_LANGUAGES, 0) & DRUPE_LANG_SPIRV)) {
        FAILS(drupe_program_open(b->context, b->device, &source, NULL, &program), DRUPE_E_UNSUPPORTED,
              "SPIR-V");
        skip_known(suite, "spirv");
    }
    drupe_kernel *kernel;
    OK(drupe_program_open(b->context, b->device, &source, NULL, &program));
    OK(drupe_kernel_open(program, "constants", &kernel));
    drupe_memory *m = new_memory(b->queue, DRUPE_MEM_DEVICE, 64);
    void *p = drupe_memory_pointer(m);
    drupe_arg arg = {DRUPE_ARG_POINTER, 0, &p};
    drupe_submission s = {.queue = b->queue};
    drupe_range range = {.dims = 1, .global = {1}};
    int32_t out[5];
    OK(drupe_submit_kernel(&s, kernel, &range, &arg, 1, NULL));
    read_memory(b->queue, m, out, sizeof out);
    assert_int_equal(out[0], 1234);
    assert_int_equal(out[3], 2);
    drupe_memory_release(m);
    drupe_kernel_release(kernel);
    drupe_program_release(program);
    source.size -= 4;
    FAILS(drupe_program_open(b->context, b->device, &source, NULL, &program), DRUPE_E_INVALID, "cut off");
}

/* What a launch by words refuses, and that it takes what it is told of memory for a hint. */
static void words(struct suite *suite)
{
    struct bench *b = &suite->bench;
    enum { N = 8 };
    uint64_t host[N] = {0};
    bool groups = drupe_device_number(b->device, DRUPE_INFO_MAX_WORK_GROUP_SIZE, 1) >= 4;
    drupe_range range = {.dims = 1, .global = {8}, .local = {groups ? 4 : 1}};
    drupe_submission s = {.queue = b->queue}, nowhere = {0};
    if (!drupe_kernel_words(b->mad)) {
        FAILS(drupe_submit_words(&s, b->mad, &range, host, NULL), DRUPE_E_INVALID, "no words");
        return;
    }
    drupe_memory *in = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8),
                 *out = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
    drupe_memory *const crossed[] = {in, out, in, in, in};
    fill_u64(b->queue, in, 3, N);
    s.memories = crossed;
    uint64_t to = (uintptr_t)drupe_memory_pointer(out), from = (uintptr_t)drupe_memory_pointer(in);
    for (uint64_t mul = 1; mul < 100; mul++) {
        const uint64_t given[] = {to, from, N, mul, 1};
        OK(drupe_submit_words(&s, b->mad, &range, given, NULL));
        if (mul % 33 == 0) expect_u64(b->queue, out, 3 * mul + 1, N);
    }
    const uint64_t good[] = {to, from, N, 2, 1}, null[] = {0, 0, 0, 2, 1},
                   outside[] = {to, (uintptr_t)host, N, 2, 1}, behind[] = {to + N * 8, from, N, 2, 1};
    OK(drupe_submit_words(&s, b->mad, &range, null, NULL));
    FAILS(drupe_submit_words(NULL, b->mad, &range, good, NULL), DRUPE_E_INVALID, "queue");
    FAILS(drupe_submit_words(&nowhere, b->mad, &range, good, NULL), DRUPE_E_INVALID, "queue");
    FAILS(drupe_submit_words(&s, NULL, &range, good, NULL), DRUPE_E_INVALID, "words");
    FAILS(drupe_submit_words(&s, b->mad, &range, NULL, NULL), DRUPE_E_INVALID, "words");
    FAILS(drupe_submit_words(&s, b->mad, NULL, good, NULL), DRUPE_E_INVALID, "dimensions");
    FAILS(drupe_submit_words(&s, b->mad, &range, outside, NULL), DRUPE_E_INVALID, "not in USM");
    FAILS(drupe_submit_words(&s, b->mad, &range, behind, NULL), DRUPE_E_INVALID, "not");
    range.local[0] = 3;
    FAILS(drupe_submit_words(&s, b->mad, &range, good, NULL), DRUPE_E_INVALID,
          groups ? "divide" : "from 1 to 1");
    range = (drupe_range){.dims = 1, .global = {0}};
    OK(drupe_submit_words(&s, b->mad, &range, good, NULL));
    struct bench *other = use_other(suite);
    s.queue = other->queue;
    range.global[0] = 1;
    FAILS(drupe_submit_words(&s, b->mad, &range, good, NULL), DRUPE_E_INVALID, "another context");
    OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    drupe_memory_release(in);
    drupe_memory_release(out);
}

/* Launches that use the same memory as the one before, from a caller that gives the memory up at once. */
static void again(struct suite *suite)
{
    struct bench *b = &suite->bench;
    enum { N = 64, LAUNCHES = 150 };
    drupe_range range = {.dims = 1, .global = {8}};
    drupe_pool_stats before = {0}, after;
    if (!drupe_kernel_words(b->mad)) return;
    for (int round = 0; round < 6; round++) {
        drupe_memory *m[3], *fresh;
        for (int i = 0; i < 3; i++) m[i] = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
        fill_u64(b->queue, m[0], 0, N);
        for (int i = 0; i < LAUNCHES; i++) {
            drupe_memory *other = i % 50 < 45 ? m[0] : m[2], *const used[] = {other, other, NULL, NULL, NULL};
            drupe_submission s = {.queue = b->queue, .memories = used};
            uint64_t place = (uintptr_t)drupe_memory_pointer(other);
            const uint64_t given[] = {place, place, N, 1, 1};
            drupe_event *event = NULL;
            if (other == m[2] && i % 50 == 45) fill_u64(b->queue, m[2], 0, N);
            OK(drupe_submit_words(&s, b->mad, &range, given, i % (round + 1) ? &event : NULL));
            drupe_event_release(event);
        }
        drupe_submission s = {.queue = b->queue};
        void *to = drupe_memory_pointer(m[1]), *from = drupe_memory_pointer(m[0]);
        OK(drupe_submit_copy(&s, to, from, N * 8, NULL));
        drupe_memory_release(m[0]);
        drupe_memory_release(m[2]);
        /* The same size: what is still in use must not come back. */
        fresh = new_memory(b->queue, DRUPE_MEM_DEVICE, N * 8);
        fill_u64(b->queue, fresh, 77, N);
        expect_u64(b->queue, m[1], 135, N);
        drupe_memory_release(fresh);
        drupe_memory_release(m[1]);
        OK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
        drupe_queue_collect(b->queue); /* a wait alone leaves what finished work keeps */
        drupe_pool_stats_of(b->device, &after);
        if (round == 0) before = after;
        assert_int_equal(after.kinds[DRUPE_MEM_DEVICE].used, before.kinds[DRUPE_MEM_DEVICE].used);
    }
}

static void kernel_numbers(struct suite *suite)
{
    struct bench *b = &suite->bench;
    for (int key = 0; key < DRUPE_KERNEL_KEY_COUNT; key++) {
        uint64_t value = UINT64_MAX;
        drupe_status status = drupe_kernel_number(b->mad, (drupe_kernel_key)key, &value);
        bool may_lack = key >= DRUPE_KERNEL_MAX_NUM_SUB_GROUPS; /* OpenCL 2.1 brought sub-groups */
        assert_true(status == DRUPE_OK || (may_lack && status == DRUPE_E_UNSUPPORTED));
        if (status == DRUPE_OK) assert_true(value < UINT32_MAX);
    }
}

const conformance_case cases_program[] = {
    {"names", names},
    {"languages", languages},
    {"build_failure", build_failure},
    {"built_in_kernels", built_in_kernels},
    {"launch_refused", launch_refused},
    {"words", words},
    {"again", again},
    {"argument_information", argument_information},
    {"local_size", local_size},
    {"local_memory_limit", local_memory_limit},
    {"binary", binary},
    {"spirv", spirv},
    {"kernel_numbers", kernel_numbers},
    {NULL, NULL},
};
