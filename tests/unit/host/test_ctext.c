/* C kernels: what becomes of the text before a compiler sees it. */
#include "backends/host/code.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void becomes(const char *text, const char *const *parts)
{
    drupe_text out = {0};
    if (drupe_host_code_text(text, strlen(text), NULL, &out) != DRUPE_OK)
        fail_msg("'%s': %s", text, drupe_error_last()->text);
    for (; *parts; parts++)
        if (!strstr(drupe_text_get(&out), *parts))
            fail_msg("'%s' is not in: %s", *parts, drupe_text_get(&out));
    drupe_text_clear(&out);
}

static void kernels_are_found(void **state)
{
    (void)state;
    becomes("kernel void f(float *x) {}", (const char *const[]){"drupe_run_f", "\"x\", \"float *\"", NULL});
    becomes(
        "kernel\n  void f ( const float x [ 3 ] , int n)\n{}",
        (const char *const[]){"\"x\", \"const float *\"", "\"n\", \"int\"", "#line 2 \"program.c\"", NULL});
    becomes("/* kernel void no(int x) {} */ kernel void f(/* int y, */ unsigned long long z // end\n) {}",
            (const char *const[]){"\"z\", \"unsigned long long\"", "{\"f\", 1,", NULL});
    becomes("kernel void a(void) {}\nkernel void b() {}",
            (const char *const[]){"{\"a\", 0,", "{\"b\", 0,", NULL});
    becomes("#define K kernel void no(int x) { \\\n }\nconst char *s = \"kernel void no(int x) {}\\\"\";\n"
            "kernel void f(int x) {}\nkernel void f(int x);\nint g(void) { int kernel = 1; return kernel; }",
            (const char *const[]){"{\"f\", 1,", NULL});
}

/* What the text of a kernel becomes stands right behind it, and only what the preprocessor leaves is listed.
 */
static void branches_are_followed(void **state)
{
    (void)state;
    becomes("kernel void f(int x) {}int after;",
            (const char *const[]){"#define drupe_has_0_\n", "                       int after;", NULL});
    becomes("#if A /* {\n { */\nkernel void f(int x) { if (x) {\n#else\nint f; {\n#endif\n}}\nkernel void "
            "g(int x) {}",
            (const char *const[]){"drupe_run_f", "drupe_run_g", NULL});
    becomes("kernel void f(int x) {}\n#error don't /* stop\n here */\nkernel void g(global2 x) {}",
            (const char *const[]){"drupe_run_g", "\"global2\"", NULL});
}

static void refused(const char *text, drupe_status expected, const char *part)
{
    drupe_text out = {0};
    assert_int_equal(drupe_host_code_text(text, strlen(text), NULL, &out), expected);
    if (!strstr(drupe_error_last()->text, part))
        fail_msg("'%s' is not in: %s", part, drupe_error_last()->text);
    drupe_text_clear(&out);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    refused("int f(void) { return 1; }", DRUPE_E_BUILD_FAILED, "no kernel");
    refused("int kernel;", DRUPE_E_BUILD_FAILED, "no kernel");
    refused("kernel void f(int x", DRUPE_E_BUILD_FAILED, "does not end");
    refused("kernel void f(int, int y) {}", DRUPE_E_BUILD_FAILED, "parameter 0");
    refused("kernel void f(void (*g)(int)) {}", DRUPE_E_BUILD_FAILED, "functions");
    refused("#if A\nkernel void f(int x) {\n#else\nkernel void f(long x) {\n#endif\n}", DRUPE_E_BUILD_FAILED,
            "'f' begins before");
    refused("__kernel void f(int x) {}", DRUPE_E_UNSUPPORTED, "opencl:cpu");
    refused("kernel void f(global int *x) {}", DRUPE_E_UNSUPPORTED, "opencl:cpu");
    drupe_text out = {0};
    assert_int_equal(drupe_host_code_text("kernel\0", 7, NULL, &out), DRUPE_E_INVALID);
    drupe_text_clear(&out);
}

/* Not a byte of it is touched, and messages keep its lines. */
static void tables_stay_as_they_are(void **state)
{
    (void)state;
    drupe_text out = {0};
    static const char text[] = "kernel void f(int x) {\n#if";
    assert_int_equal(drupe_host_code_table(text, strlen(text), false, &out), DRUPE_OK);
    assert_non_null(strstr(drupe_text_get(&out), "#line 1 \"program.c\"\nkernel void f(int x) {\n#if\n"));
    assert_null(strstr(drupe_text_get(&out), "#include"));
    drupe_text_clear(&out);
    assert_int_equal(drupe_host_code_table("a\0b", 3, true, &out), DRUPE_E_INVALID);
    drupe_text_clear(&out);
}

static void options_are_told_apart(void **state)
{
    (void)state;
    drupe_host_options options;
    assert_int_equal(drupe_host_options_read("-O1 -drupe-table\t-lm  x.o -DA=-drupe-quick", &options),
                     DRUPE_OK);
    assert_true(options.table);
    assert_int_equal(options.nfirst, 2);
    assert_int_equal(options.nlinked, 2);
    assert_string_equal(options.first[1], "-DA=-drupe-quick");
    free(options.text);
    assert_int_equal(drupe_host_options_read(NULL, &options), DRUPE_OK);
    assert_false(options.table);
    free(options.text);
    char many[DRUPE_HOST_OPTIONS * 3 + 8] = "";
    for (unsigned i = 0; i <= DRUPE_HOST_OPTIONS; i++) strcat(many, "-g ");
    assert_int_equal(drupe_host_options_read(many, &options), DRUPE_E_INVALID);
    free(options.text);
}

static void groups_have_their_loop(void **state)
{
    (void)state;
    const char *text =
        "kernel void f(local float *p, __local int q[3], double localx)\n{ local int n; barrier(1); }";
    const size_t block[3] = {4, 2, 1}, large[3] = {1024, 2, 1}, none[3] = {4, 0, 1};
    static const char *const parts[] = {"(d) == 0 ? 4 : (d) == 1 ? 2",
                                        "drupe_together_(drupe_one_f, drupe_v_, 8)",
                                        "{2, drupe_scalar_(*(float * *)0), 0, 0, \"p\", \"local float *\"}",
                                        "\"local int *\"",
                                        "\"localx\", \"double\"",
                                        "#define local static __thread",
                                        "{\"f\", 3, drupe_params_f, drupe_run_f, {4, 2, 1}}"};
    drupe_text out = {0};
    assert_int_equal(drupe_host_code_text(text, strlen(text), block, &out), DRUPE_OK);
    for (size_t i = 0; i < DRUPE_COUNT_OF(parts); i++)
        if (!strstr(drupe_text_get(&out), parts[i]))
            fail_msg("'%s' is not in: %s", parts[i], drupe_text_get(&out));
    drupe_text_clear(&out);
    assert_int_equal(drupe_host_code_text(text, strlen(text), large, &out), DRUPE_E_INVALID);
    drupe_text_clear(&out);
    assert_int_equal(drupe_host_code_text(text, strlen(text), none, &out), DRUPE_E_INVALID);
    drupe_text_clear(&out);
    refused(text, DRUPE_E_UNSUPPORTED, "OpenCL C ('local')"); /* without groups */
    drupe_host_options options;
    assert_int_equal(drupe_host_options_read("-O1 -drupe-groups=4,2,1 -g", &options), DRUPE_OK);
    assert_int_equal(options.nfirst, 2);
    assert_memory_equal(options.block, block, sizeof block);
    free(options.text);
}

/* Whatever stands in the text, nothing behind its end is read: it lies in memory of just its size. */
static void any_text(void **state)
{
    (void)state;
    static const char *const words[] = {"kernel", "void", "f",  "(",      ")",   "{",   "}",  "int",
                                        "x",      ",",    "/*", "*/",     "//",  "\n",  "\"", "\\",
                                        "'",      "#if",  " ",  "*",      "[",   "]",   ";",  "void",
                                        "(",      "kern", "\t", "global", "y z", "\\\n"};
    unsigned seed = 1, good = 0;
    for (int round = 0; round < 30000; round++) {
        char text[512];
        size_t length = 0;
        for (int i = 0; i < 5 + round % 30; i++) {
            seed = seed * 1103515245u + 12345u;
            const char *word = words[(seed >> 8) % DRUPE_COUNT_OF(words)];
            if (i == 0 && round % 2) word = "kernel void f(int x";
            length += (size_t)snprintf(text + length, sizeof text - length, "%s", word);
            if (round % 3) text[length++] = ' ';
        }
        char *exact = malloc(length);
        assert_non_null(exact);
        memcpy(exact, text, length);
        drupe_text out = {0};
        const size_t block[3] = {2, 2, 2};
        good += drupe_host_code_text(exact, length, round % 4 ? NULL : block, &out) == DRUPE_OK;
        drupe_text_clear(&out);
        free(exact);
    }
    assert_uint_in_range(good, 10, 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_found),      cmocka_unit_test(branches_are_followed),
        cmocka_unit_test(mistakes_are_named),     cmocka_unit_test(tables_stay_as_they_are),
        cmocka_unit_test(options_are_told_apart), cmocka_unit_test(any_text),
        cmocka_unit_test(groups_have_their_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
