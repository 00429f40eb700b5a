/* Programs, kernels and their arguments. */
#include "backends/opencl/opencl.h"
#include "base/base.h"
#include "stand_in.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define B (&drupe_backend_opencl)

static const char text[] =
    "typedef struct { int a; } pair;\n"
    "kernel void add(global const float *a, global const float *b, global float *c, uint n) {\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i < n) c[i] = a[i] + b[i];\n"
    "}\n"
    "kernel void many(global double4 *p, constant ulong2 *q, local uint *scratch, uchar u, float3 v, pair s) "
    "{\n"
    "    local int fixed[16];\n"
    "    size_t i = get_local_id(0);\n"
    "    fixed[i & 15] = u; scratch[i] = (uint)i;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    p[i].x = fixed[i & 15] + scratch[i] + v.z + q[0].x + s.a;\n"
    "}\n"
    "kernel void absent(global int *a, global const int *b, global const int *c) {\n"
    "    a[get_global_id(0)] = (b ? 1 : 2) + (c ? 10 : 20);\n"
    "}\n"
    "kernel __attribute__((reqd_work_group_size(4, 1, 1))) void fours(global int *a) {\n"
    "    a[get_global_id(0)] = (int)get_local_size(0);\n"
    "}\n";

typedef struct code {
    fixture b;
    drupe_program *program;
} code;

static void code_open(code *c, const char *words)
{
    fixture_open(&c->b, words);
    assert_int_equal(try_program(c->b.context, c->b.device, text, "-DUNUSED=1", NULL, &c->program), DRUPE_OK);
}

static void code_close(code *c)
{
    close_program(c->program);
    fixture_close(&c->b);
}

static drupe_kernel *open_kernel(code *c, const char *name)
{
    drupe_kernel *kernel;
    assert_int_equal(try_kernel(c->program, name, &kernel), DRUPE_OK);
    return kernel;
}

/* --- Building ------------------------------------------------------------------------------------------- */

static void build_logs(void **state)
{
    (void)state;
    fixture b;
    fixture_open(&b, "");
    drupe_program *program;
    char *log = NULL;
    const char *wrong = "kernel void f(global int *a) {\n    a[0] = missing;\n}\n";
    assert_error(try_program(b.context, b.device, wrong, NULL, &log, &program), DRUPE_E_BUILD_FAILED,
                 "missing");
    assert_int_equal(drupe_error_last()->native, -11);
    assert_non_null(log);
    assert_non_null(strstr(log, "missing"));
    free(log);
    log = NULL;
    assert_error(try_program(b.context, b.device, "kernel void f() {}", "-no-such-option", &log, &program),
                 DRUPE_E_BUILD_FAILED, "-no-such-option");
    free(log);
    log = NULL;
    const char *warns = "#warning look here\nkernel void f(global int *a) { a[0] = 1; }\n";
    assert_int_equal(try_program(b.context, b.device, warns, NULL, &log, &program), DRUPE_OK);
    assert_non_null(log);
    assert_non_null(strstr(log, "look here"));
    free(log);
    close_program(program);
    fixture_close(&b);
}

static void other_languages(void **state)
{
    (void)state;
    static const uint32_t module[] = {
#include "tests/spirv/constants.inc"
    };
    fixture b;
    fixture_open(&b, "");
    drupe_program *program;
    drupe_source source = {.language = DRUPE_LANG_BINARY, .bytes = "abcd", .size = 4};
    assert_error(try_source(b.context, b.device, &source, NULL, &program), DRUPE_E_BUILD_FAILED,
                 "CL_INVALID_BINARY");
    source = (drupe_source){.language = DRUPE_LANG_SPIRV, .bytes = module, .size = sizeof module};
    if (info_number(b.device, DRUPE_INFO_LANGUAGES) & DRUPE_LANG_SPIRV) {
        assert_int_equal(try_source(b.context, b.device, &source, NULL, &program), DRUPE_OK);
        assert_string_equal(program->names, "constants");
        close_program(program);
    }
    fixture_close(&b);
}

static void translators(void **state)
{
    (void)state;
    setenv("DRUPE_LLVM_SPIRV", "/no/such/program", 1);
    assert_null(drupe_cl_translator(15));
    setenv("DRUPE_LLVM_SPIRV", "/bin/false", 1);
    fixture b;
    fixture_open(&b, "");
    drupe_cl_device device = *(drupe_cl_device *)drupe_native(b.device);
    drupe_source source = {.language = DRUPE_LANG_SPIRV, .bytes = "abcd", .size = 4};
    drupe_text bitcode = {0};
    device.caps.bitcode = 15;
    assert_error(drupe_cl_translate(&device, &source, &bitcode), DRUPE_E_BUILD_FAILED, "/bin/false failed");
    setenv("DRUPE_LLVM_SPIRV", "/bin/true", 1);
    assert_error(drupe_cl_translate(&device, &source, &bitcode), DRUPE_E_BUILD_FAILED, "no bitcode");
    setenv("DRUPE_LLVM_SPIRV", "/no/such/program", 1);
    assert_error(drupe_cl_translate(&device, &source, &bitcode), DRUPE_E_UNSUPPORTED, "llvm-spirv");
    unsetenv("DRUPE_LLVM_SPIRV");
    char *path = drupe_cl_translator(15);
    if (path) {
        assert_error(drupe_cl_translate(&device, &source, &bitcode), DRUPE_E_BUILD_FAILED, "translated");
        free(path);
    }
    assert_null(drupe_cl_translator(999));
    drupe_text_clear(&bitcode);
    fixture_close(&b);
}

static void binaries(void **state)
{
    (void)state;
    code c;
    void *bytes = NULL;
    size_t size = 0;
    code_open(&c, "");
    assert_int_equal(B->program_binary(c.program, &bytes, &size), DRUPE_OK);
    assert_true(size > 0);
    drupe_source source = {.language = DRUPE_LANG_BINARY, .bytes = bytes, .size = size};
    drupe_program *program;
    assert_int_equal(try_source(c.b.context, c.b.device, &source, NULL, &program), DRUPE_OK);
    assert_string_equal(program->names, c.program->names);
    drupe_kernel *kernel;
    drupe_arg_info info;
    assert_int_equal(try_kernel(program, "add", &kernel), DRUPE_OK);
    assert_int_equal(B->kernel_arg(kernel, 0, &info), DRUPE_OK); /* as from the source */
    assert_int_equal(info.kind, DRUPE_ARG_POINTER);
    close_kernel(kernel);
    close_program(program);
    free(bytes);
    code_close(&c);
}

static void names_and_numbers(void **state)
{
    (void)state;
    code c;
    drupe_kernel *kernel;
    uint64_t value;
    code_open(&c, "");
    assert_non_null(strstr(c.program->names, "add"));
    assert_non_null(strstr(c.program->names, ";"));
    assert_error(try_kernel(c.program, "nothing", &kernel), DRUPE_E_NOT_FOUND, "CL_INVALID_KERNEL_NAME");
    kernel = open_kernel(&c, "add");
    assert_int_equal(B->kernel_number(kernel, DRUPE_KERNEL_ARG_COUNT, &value), DRUPE_OK);
    assert_int_equal(value, 4);
    assert_int_equal(B->kernel_number(kernel, DRUPE_KERNEL_WORK_GROUP_SIZE, &value), DRUPE_OK);
    assert_true(value >= 1);
    assert_int_equal(B->kernel_number(kernel, DRUPE_KERNEL_PREFERRED_MULTIPLE, &value), DRUPE_OK);
    assert_true(value >= 1);
    assert_int_equal(B->kernel_number(kernel, DRUPE_KERNEL_PRIVATE_MEM_SIZE, &value), DRUPE_OK);
    assert_int_equal(B->kernel_number(kernel, DRUPE_KERNEL_LOCAL_MEM_SIZE, &value), DRUPE_OK);
    close_kernel(kernel);
    code_close(&c);
}

static void argument_types(void **state)
{
    (void)state;
    static const drupe_arg_info expected[] = {
        {.kind = DRUPE_ARG_POINTER,
         .scalar = DRUPE_SCALAR_F64,
         .lanes = 4,
         .name = "p",
         .type_name = "double4*"},
        {.kind = DRUPE_ARG_POINTER,
         .scalar = DRUPE_SCALAR_U64,
         .lanes = 2,
         .name = "q",
         .type_name = "ulong2*"},
        {.kind = DRUPE_ARG_LOCAL,
         .scalar = DRUPE_SCALAR_U32,
         .lanes = 1,
         .name = "scratch",
         .type_name = "uint*"},
        {.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_U8, .lanes = 1, .name = "u", .type_name = "uchar"},
        {.kind = DRUPE_ARG_VALUE, .scalar = DRUPE_SCALAR_F32, .lanes = 3, .name = "v", .type_name = "float3"},
        {.kind = DRUPE_ARG_VALUE,
         .scalar = DRUPE_SCALAR_UNKNOWN,
         .lanes = 1,
         .name = "s",
         .type_name = "pair"},
    };
    code c;
    drupe_arg_info info;
    code_open(&c, "");
    drupe_kernel *kernel = open_kernel(&c, "many");
    for (size_t i = 0; i < DRUPE_COUNT_OF(expected); i++) {
        assert_int_equal(B->kernel_arg(kernel, i, &info), DRUPE_OK);
        assert_int_equal(info.kind, expected[i].kind);
        assert_int_equal(info.scalar, expected[i].scalar);
        assert_int_equal(info.lanes, expected[i].lanes);
        assert_string_equal(info.name, expected[i].name);
        assert_string_equal(info.type_name, expected[i].type_name);
    }
    close_kernel(kernel);
    code_close(&c);
}

/* A driver that has no memory to report an argument says so: it is never taken for one that tells
 * nothing. */
static void short_of_memory_for_argument_types(void **state)
{
    (void)state;
    code c;
    code_open(&c, "plain");
    void *shim = dlopen(OPENCL_SHIM, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(shim);
    unsigned *shortage = dlsym(shim, "shim_arg_shortage"), failures = 0;
    assert_non_null(shortage);
    for (unsigned number = 1, met = number; met; number++) {
        drupe_kernel *kernel = NULL;
        drupe_arg_info info;
        *shortage = number;
        drupe_status status = try_kernel(c.program, "many", &kernel);
        bool opened = status == DRUPE_OK;
        for (size_t i = 0; status == DRUPE_OK && i < 6; i++) status = B->kernel_arg(kernel, i, &info);
        met = *shortage == 0;
        *shortage = 0;
        if (status != DRUPE_OK) {
            assert_error(status, DRUPE_E_NO_MEMORY, "no memory to report a kernel's arguments");
            failures++;
        }
        if (opened) close_kernel(kernel);
    }
    assert_uint_in_range(failures, 12, 1000); /* a kind and a type of each, at least */
    dlclose(shim);
    code_close(&c);
}

/* --- Launching ------------------------------------------------------------------------------------------ */

/* c = a + b over `n` elements; with `offset` the kernel is given interior pointers. */
static void add_on(const char *words, size_t n, size_t offset)
{
    code c;
    code_open(&c, words);
    drupe_kernel *kernel = open_kernel(&c, "add");
    size_t bytes = (n + offset) * sizeof(float);
    float *host = malloc(bytes), *device[3], *inner[3];
    assert_non_null(host);
    for (size_t i = 0; i < n + offset; i++) host[i] = (float)i;
    drupe_submit s = {.queue = c.b.queue};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            B->mem_alloc(c.b.context, c.b.device, DRUPE_MEM_DEVICE, bytes, 64, (void **)&device[i]),
            DRUPE_OK);
        assert_int_equal(B->submit_copy(&s, device[i], host, bytes), DRUPE_OK);
        inner[i] = device[i] + offset;
    }
    uint32_t limit = (uint32_t)n;
    drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof(void *), &inner[0]},
                        {DRUPE_ARG_POINTER, sizeof(void *), &inner[1]},
                        {DRUPE_ARG_POINTER, sizeof(void *), &inner[2]},
                        {DRUPE_ARG_VALUE, sizeof limit, &limit}};
    drupe_range range = {.dims = 1, .global = {n}};
    assert_int_equal(B->submit_kernel(&s, kernel, &range, args, 4), DRUPE_OK);
    assert_int_equal(B->submit_copy(&s, host, device[2], bytes), DRUPE_OK);
    wait_idle(c.b.queue);
    for (size_t i = 0; i < n + offset; i++) assert_true(host[i] == (float)(i < offset ? i : 2 * i));
    for (int i = 0; i < 3; i++) B->mem_free(c.b.context, c.b.device, DRUPE_MEM_DEVICE, device[i]);
    free(host);
    close_kernel(kernel);
    code_close(&c);
}

static void additions(void **state)
{
    (void)state;
    need_memory();
    static const char *const tiers[] = {"", "coarse", "intel", "align"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(tiers); i++) add_on(tiers[i], 10007, 3);
    add_on("", 65536, 0);
}

/* The whole of kernel "many", with values that a wrong order of arguments would not give. */
static void mixed_arguments(void **state)
{
    (void)state;
    need_memory();
    code c;
    code_open(&c, "");
    if (!info_number(c.b.device, DRUPE_INFO_HAS_FP64)) skip();
    drupe_kernel *kernel = open_kernel(&c, "many");
    double *p, out[16 * 4];
    uint64_t *q, first[2] = {1000, 0};
    assert_int_equal(B->mem_alloc(c.b.context, c.b.device, DRUPE_MEM_DEVICE, sizeof out, 64, (void **)&p),
                     DRUPE_OK);
    assert_int_equal(B->mem_alloc(c.b.context, c.b.device, DRUPE_MEM_DEVICE, 64, 64, (void **)&q), DRUPE_OK);
    drupe_submit s = {.queue = c.b.queue};
    assert_int_equal(B->submit_copy(&s, q, first, sizeof first), DRUPE_OK);
    uint8_t u = 200;
    float v[4] = {0, 0, 0.5f, 0};
    int32_t pair = 10000;
    drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof(void *), &p},
                        {DRUPE_ARG_POINTER, sizeof(void *), &q},
                        {DRUPE_ARG_LOCAL, 64, NULL},
                        {DRUPE_ARG_VALUE, sizeof u, &u},
                        {DRUPE_ARG_VALUE, sizeof v, v},
                        {DRUPE_ARG_VALUE, sizeof pair, &pair}};
    drupe_range range = {.dims = 1, .global = {16}, .local = {16}};
    assert_int_equal(B->submit_kernel(&s, kernel, &range, args, 6), DRUPE_OK);
    assert_int_equal(B->submit_copy(&s, out, p, sizeof out), DRUPE_OK);
    wait_idle(c.b.queue);
    for (int i = 0; i < 16; i++) assert_true(out[i * 4] == 11200.5 + i);
    B->mem_free(c.b.context, c.b.device, DRUPE_MEM_DEVICE, p);
    B->mem_free(c.b.context, c.b.device, DRUPE_MEM_DEVICE, q);
    close_kernel(kernel);
    code_close(&c);
}

/* NULL also after something else was set, and the other way round, in every order. */
static void null_pointers(void **state)
{
    (void)state;
    need_memory();
    static const char *const tiers[] = {"", "coarse", "intel"};
    for (size_t t = 0; t < DRUPE_COUNT_OF(tiers); t++) {
        code c;
        code_open(&c, tiers[t]);
        drupe_kernel *kernel = open_kernel(&c, "absent");
        int *a, out[4];
        void *null = NULL;
        assert_int_equal(B->mem_alloc(c.b.context, c.b.device, DRUPE_MEM_DEVICE, sizeof out, 64, (void **)&a),
                         DRUPE_OK);
        drupe_submit s = {.queue = c.b.queue};
        drupe_range range = {.dims = 1, .global = {4}};
        for (unsigned turn = 0; turn < 32; turn++) {
            unsigned given = (turn ^ turn >> 2) & 3; /* 0 1 2 3 1 0 3 2 ... */
            drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof null, &a},
                                {DRUPE_ARG_POINTER, sizeof null, given & 1 ? (void *)&a : &null},
                                {DRUPE_ARG_POINTER, sizeof null, given & 2 ? (void *)&a : &null}};
            assert_int_equal(B->submit_kernel(&s, kernel, &range, args, 3), DRUPE_OK);
            assert_int_equal(B->submit_copy(&s, out, a, sizeof out), DRUPE_OK);
            wait_idle(c.b.queue);
            int expected = (given & 1 ? 1 : 2) + (given & 2 ? 10 : 20);
            for (int i = 0; i < 4; i++) assert_int_equal(out[i], expected);
        }
        B->mem_free(c.b.context, c.b.device, DRUPE_MEM_DEVICE, a);
        close_kernel(kernel);
        code_close(&c);
    }
}

/* More patterns of NULL than native kernels are kept. */
static void many_null_patterns(void **state)
{
    (void)state;
    need_memory();
    fixture b;
    drupe_program *program;
    drupe_kernel *kernel;
    fixture_open(&b, "coarse");
    const char *source =
        "kernel void which(global int *o, global int *a, global int *b, global int *c, global int *d) {"
        "    *o = (a ? 1 : 0) | (b ? 2 : 0) | (c ? 4 : 0) | (d ? 8 : 0);"
        "}";
    assert_int_equal(try_program(b.context, b.device, source, NULL, NULL, &program), DRUPE_OK);
    assert_int_equal(try_kernel(program, "which", &kernel), DRUPE_OK);
    int *o, out;
    void *null = NULL;
    assert_int_equal(B->mem_alloc(b.context, b.device, DRUPE_MEM_DEVICE, 64, 64, (void **)&o), DRUPE_OK);
    drupe_submit s = {.queue = b.queue};
    drupe_range range = {.dims = 1, .global = {1}};
    for (int turn = 0; turn < 64; turn++) {
        int given = turn * 7 & 15;
        drupe_arg args[5] = {{DRUPE_ARG_POINTER, sizeof null, &o}};
        for (int i = 0; i < 4; i++) {
            args[i + 1] = (drupe_arg){DRUPE_ARG_POINTER, sizeof null, given >> i & 1 ? (void *)&o : &null};
        }
        assert_int_equal(B->submit_kernel(&s, kernel, &range, args, 5), DRUPE_OK);
        assert_int_equal(B->submit_copy(&s, &out, o, sizeof out), DRUPE_OK);
        wait_idle(b.queue);
        assert_int_equal(out, given);
    }
    B->mem_free(b.context, b.device, DRUPE_MEM_DEVICE, o);
    close_kernel(kernel);
    close_program(program);
    fixture_close(&b);
}

static void required_local_size(void **state)
{
    (void)state;
    need_memory();
    code c;
    code_open(&c, "");
    drupe_kernel *kernel = open_kernel(&c, "fours");
    int *a, out[8];
    assert_int_equal(B->mem_alloc(c.b.context, c.b.device, DRUPE_MEM_DEVICE, sizeof out, 64, (void **)&a),
                     DRUPE_OK);
    drupe_submit s = {.queue = c.b.queue};
    drupe_range range = {.dims = 1, .global = {8}};
    drupe_arg arg = {DRUPE_ARG_POINTER, sizeof(void *), &a};
    assert_int_equal(B->submit_kernel(&s, kernel, &range, &arg, 1), DRUPE_OK);
    assert_int_equal(B->submit_copy(&s, out, a, sizeof out), DRUPE_OK);
    wait_idle(c.b.queue);
    for (int i = 0; i < 8; i++) assert_int_equal(out[i], 4);
    range.local[0] = 2;
    assert_error(B->submit_kernel(&s, kernel, &range, &arg, 1), DRUPE_E_INVALID, "written for local size 4");
    B->mem_free(c.b.context, c.b.device, DRUPE_MEM_DEVICE, a);
    close_kernel(kernel);
    code_close(&c);
}

const struct CMUnitTest program_tests[] = {cmocka_unit_test(build_logs),
                                           cmocka_unit_test(other_languages),
                                           cmocka_unit_test(translators),
                                           cmocka_unit_test(binaries),
                                           cmocka_unit_test(names_and_numbers),
                                           cmocka_unit_test(argument_types),
                                           cmocka_unit_test(short_of_memory_for_argument_types),
                                           cmocka_unit_test(additions),
                                           cmocka_unit_test(mixed_arguments),
                                           cmocka_unit_test(required_local_size),
                                           cmocka_unit_test(null_pointers),
                                           cmocka_unit_test(many_null_patterns),
                                           {0}};
